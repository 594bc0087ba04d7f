"""The persistent cache: compiled programs on disk, so that the next process need not compile them.

A program is one file. Its name is a digest of all that the compiled code depends on: half of it, 128 bits, is of the
text, and half of the options, the compiler, the device, and the processor of this machine. What is found is used only
if it is whole: a file begins with its key, its length and its checksum, and nothing else than the compiler's own reader
ever sees the rest.

* **Writers** write a file of their own and rename it, which is atomic: readers see the old file, the new one, or none,
  whoever is killed and whenever. Nothing is forced to the disk: what a power failure leaves half written is found out
  by its checksum.
* **Trust.** Who can write a program can make this process run any code, so the directory has to belong to this user,
  and nobody else may write there. The same is asked of each file once it is open, so that nothing is gained by putting
  a link or another directory in the place.
* **The bound**, the switch ``compilation_cache_max_size``, is in bytes: at 0 nothing is written, and below it there is
  no bound. It is kept by removing what has not been used for longest. A directory is not looked through at each
  write: a process does it when it has written a sixteenth of the bound since the last time, and begins to count at a
  random point, so that many short processes do it as often as one long one.
* **Trouble** never ends a program: it is compiled, as if there were no cache, with one warning for damaged files and
  one for a directory that is no use.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.backends.compiler.backend import backend
from pullback.backends.devices.devices import Device
from pullback.core import monitoring
from pullback.core.config import config
from pullback.core.errors import CompilationCacheWarning
from pullback.core.source import warn

_MAGIC = b"PULLBACK"
_FORMAT = 1
# What it is, format, key, length and checksum of what follows. The checksum is SHA-256 because it is imported for the
# key already: zlib.crc32 is faster by 0.4 µs a KiB, but importing zlib takes longer than checking a usual program.
_HEADER = struct.Struct("<8sI32sQ32s")

_HOUR = 3600.0  # a use is noted no more often; a temporary file that is older has no writer any more
_SCANS = 16  # how often the directory is looked through while as much is written as the bound allows

_read_flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_write_flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_refused: set[str] = set()
"""Directories that this process neither reads nor writes any more."""
_unwritable: set[str] = set()
"""Directories that this process does not write any more."""
_until_scan: dict[str, float] = {}
"""How many bytes may be written to a directory before it is looked through."""
_warned: set[str] = set()


def cache_directory() -> str | None:
    """Where compiled programs are kept.

    The switch ``compilation_cache_dir`` comes first, then ``$XDG_CACHE_HOME/pullback/programs``, then
    ``~/.cache/pullback/programs``.

    Returns:
      The directory, which need not exist yet; None if the switch ``enable_compilation_cache`` is off, or if there is
      neither a setting nor a home.

    >>> from pullback.core.config import override
    >>> with override("compilation_cache_dir", "/var/tmp/programs"):
    ...     cache_directory()
    '/var/tmp/programs'
    """
    if not config.enable_compilation_cache:
        return None
    if config.compilation_cache_dir:
        return os.path.expanduser(config.compilation_cache_dir)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # by its specification, any other is ignored
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "pullback", "programs") if os.path.isabs(base) else None


def clear() -> int:
    """Remove all compiled programs from the cache directory; other files stay.

    Returns:
      How many there were.

    >>> import tempfile
    >>> from pullback.core.config import override
    >>> with tempfile.TemporaryDirectory() as directory, override("compilation_cache_dir", directory):
    ...     clear()
    0
    """
    directory = cache_directory()
    if directory is None or not _accepted(directory):
        return 0
    removed = 0
    with contextlib.suppress(FileNotFoundError):
        for entry, temporary, _ in _files(directory):
            removed += _remove(entry.path) and not temporary
    return removed


def load_or_compile(
    text: str, device: Device, overrides: Sequence[tuple[str, Any]], compile: Callable[[], Any]
) -> tuple[Any, str]:
    """The executable for a text, from the disk or else compiled and kept there.

    Args:
      text: the program as StableHLO, without locations, so that it does not change with the lines above it.
      device: what it runs on.
      overrides: the compiler's options that are not its defaults.
      compile: called without arguments if it is not on disk.

    Returns:
      What the compiler's runtime calls a loaded executable, and ``"loaded"`` or ``"compiled"``.

    Raises:
      Exception: what ``compile`` raises; nothing else, unless warnings are errors.
    """
    directory = cache_directory()
    if directory is None or not _accepted(directory):
        return compile(), "compiled"
    monitoring.record_event("/jax/compilation_cache/compile_requests_use_cache")
    key = _key(text, device, overrides)
    path = os.path.join(directory, key.hex())
    try:
        payload = _read(path, key)
        if payload is not None:
            loaded = backend().deserialize(payload, device)
            monitoring.record_event("/jax/compilation_cache/cache_hits")
            return loaded, "loaded"
    except Exception as error:  # of whatever kind: the compiler's reader has many
        _warn(
            "damaged",
            f"a program in the cache is damaged, and is compiled anew: {path}: {error}. Nothing need be done; "
            "others in this process are replaced without a warning.",
        )
    monitoring.record_event("/jax/compilation_cache/cache_misses")
    start = time.perf_counter()
    loaded = compile()
    if time.perf_counter() - start >= config.persistent_cache_min_compile_time_secs:
        _keep(directory, path, key, loaded, device)
    return loaded, "compiled"


def has(text: str, device: Device, overrides: Sequence[tuple[str, Any]]) -> bool:
    """Whether there is a file for a program; it may turn out to be damaged."""
    directory = cache_directory()
    if directory is None or not _accepted(directory):
        return False
    return os.path.exists(os.path.join(directory, _key(text, device, overrides).hex()))


def why_missing(text: str, device: Device, overrides: Sequence[tuple[str, Any]]) -> str | None:
    """Why there is no file for a program, for people; None if there is one."""
    if not config.enable_compilation_cache:
        return "the cache is off (enable_compilation_cache)"
    directory = cache_directory()
    if directory is None:
        return "there is no home directory for the cache (compilation_cache_dir)"
    if not _accepted(directory):
        return f"the directory {directory} cannot be used as a cache"
    key = _key(text, device, overrides).hex()
    if os.path.exists(os.path.join(directory, key)):
        return None
    same_text = key[: 2 * _HALF]
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        if any(entry.name.startswith(same_text) for entry in entries):
            return (
                "it was compiled before, but with other options, by another release of the compiler, or for another "
                "device or processor"
            )
    return f"no program of this text is kept in {directory}"


# Keys ----------------------------------------------------------------------------------------------------------------


def _key(text: str, device: Device, overrides: Sequence[tuple[str, Any]]) -> bytes:
    """A digest of all that a compiled program depends on."""
    # XLA divides loops among the processors that it may use when it compiles.
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    settings = (processors, backend().options_as_bytes(overrides))
    digest = hashlib.sha256(_environment(device))
    digest.update(hashlib.sha256(repr(settings).encode()).digest())
    return hashlib.sha256(text.encode()).digest()[:_HALF] + digest.digest()[:_HALF]


_HALF = 16


@functools.cache
def _environment(device: Device) -> bytes:
    """A digest of the compiler, the device and the machine. A compiled program can run on its own device only."""
    parts = (
        _FORMAT,
        backend().version(device),
        device.platform,
        device.id,
        backend().count(device.platform),
        device.device_kind,
        _processor(),
    )
    return hashlib.sha256(repr(parts).encode()).digest()


_FEATURES = (
    *(b"vendor_id", b"cpu family", b"model", b"model name", b"flags"),  # x86
    *(b"CPU implementer", b"CPU architecture", b"CPU variant", b"CPU part", b"Features"),  # Arm
    *(b"cpu", b"isa", b"uarch", b"features"),  # POWER, RISC-V, z/Architecture
)


def _processor(source: str = "/proc/cpuinfo") -> tuple[Any, ...]:
    """Which processor this is and what it can do; where the system does not say, which machine this is."""
    try:
        # Unbuffered and short: the system makes up this file as it is read, with an interrupt for each processor.
        with open(source, "rb", buffering=0) as file:
            first = file.read(8192).split(b"\n\n")[0]
    except OSError:
        first = b""
    known = []
    for line in first.splitlines():
        name, _, value = line.partition(b":")
        if name.strip() in _FEATURES:
            known.append((name.strip(), value.strip()))
    if known:
        return tuple(known)
    import platform

    return platform.machine(), platform.node(), os.environ.get("PROCESSOR_IDENTIFIER")


# Files ---------------------------------------------------------------------------------------------------------------


class _DamagedError(Exception):
    """A file that is not a whole program of ours."""


def _read(path: str, key: bytes) -> bytes | None:
    """The program in a file, or None if there is none.

    Raises:
      _DamagedError: it is not what was written, or was written by others.
      OSError: it cannot be read.
    """
    try:
        descriptor = os.open(path, _read_flags)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) and _is_mine(found) and _is_private(found)):
            raise _DamagedError("it is not a file that this user alone can write to")
        data = b"".join(iter(lambda: os.read(descriptor, found.st_size + 1), b""))
    finally:
        os.close(descriptor)
    if len(data) < _HEADER.size:
        raise _DamagedError(f"it ends after {len(data)} bytes")
    *identity, checksum = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if identity != [_MAGIC, _FORMAT, key, len(payload)] or hashlib.sha256(payload).digest() != checksum:
        raise _DamagedError("its checksum, its length or its name is not that which was written")
    if abs(time.time() - found.st_mtime) > _HOUR:
        with contextlib.suppress(OSError):  # a directory that may only be read serves as well
            os.utime(path)
    return payload


def _keep(directory: str, path: str, key: bytes, loaded: Any, device: Device) -> None:
    """Write a program to the cache, if it can be."""
    bound = config.compilation_cache_max_size
    if directory in _unwritable or bound == 0 or not _prepared(directory):
        return
    try:
        payload = backend().serialize(loaded, device)
    except RuntimeError:  # not every platform can
        return
    size = _HEADER.size + len(payload)
    if 0 <= bound < size or size < config.persistent_cache_min_entry_size_bytes:
        return
    header = _HEADER.pack(_MAGIC, _FORMAT, key, len(payload), hashlib.sha256(payload).digest())
    try:
        if bound > 0:
            _make_room(directory, size, bound)
        _write(path, header + payload)
    except FileNotFoundError:
        pass  # somebody has removed the directory just now; the next program makes it again
    except OSError as error:
        _unwritable.add(directory)
        _warn("directory", _advice(f"no more programs are kept in {directory}, which cannot be written to: {error}"))


def _write(path: str, data: bytes) -> None:
    """Write a file at one stroke."""
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, _write_flags, 0o600)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _files(directory: str) -> Iterator[tuple[os.DirEntry[str], bool, os.stat_result]]:
    """The files in a directory that are ours by name, and whether they are temporary ones."""
    ours = re.compile(r"[0-9a-f]{64}(\.[0-9a-f]{16}\.tmp)?")
    with os.scandir(directory) as entries:
        for entry in entries:
            match = ours.fullmatch(entry.name)
            if match is not None:
                with contextlib.suppress(OSError):  # another process may have removed it
                    yield entry, match[1] is not None, entry.stat(follow_symlinks=False)


def _remove(path: str) -> bool:
    """Remove a file, if it can be, and is there."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _make_room(directory: str, size: int, bound: int) -> None:
    """Before a file of this size is written: remove what has not been used for longest, if it is time to look."""
    step = bound / _SCANS
    left = _until_scan.get(directory)
    left = step * int.from_bytes(os.urandom(4), "little") / 2**32 if left is None else min(left, step)
    _until_scan[directory] = left - size
    if left >= size:
        return
    now, total, programs = time.time(), size, []
    for entry, temporary, found in _files(directory):
        if temporary and abs(now - found.st_mtime) > _HOUR and _remove(entry.path):
            continue
        total += found.st_size
        if not temporary:
            programs.append((found.st_mtime_ns, found.st_size, entry.path))
    if total > bound:
        for _, length, path in sorted(programs):
            if total <= bound - 2 * step:
                break
            _remove(path)  # if it is gone already, so much the better
            total -= length
    _until_scan[directory] = min(step, bound - total)


# Directories ---------------------------------------------------------------------------------------------------------


# Elsewhere than on POSIX systems permissions are of another kind, and users' files are in private places.
_posix = hasattr(os, "geteuid")


def _is_mine(found: os.stat_result) -> bool:
    return not _posix or found.st_uid == os.geteuid()


def _is_private(found: os.stat_result) -> bool:
    return not _posix or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _objection(directory: str) -> str | None:
    """What is wrong with a directory, or None; also if it does not exist."""
    try:
        link = os.lstat(directory)
        found = os.stat(directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be looked at: {error}"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    if not _is_mine(found):
        return f"belongs to user {found.st_uid}, while this process runs as user {os.geteuid()}"
    if stat.S_ISLNK(link.st_mode) and link.st_uid != 0 and not _is_mine(link):
        return f"is a link that belongs to user {link.st_uid}, while this process runs as user {os.geteuid()}"
    if not _is_private(found) and not found.st_mode & stat.S_ISVTX:  # where it is set, others cannot rename our files
        return (
            f"others may write to (its mode is {stat.filemode(found.st_mode)}; "
            f"if nobody else has, `chmod go-w {directory}` makes it private)"
        )
    return None


def _accepted(directory: str) -> bool:
    """Whether a directory may be used, or may be made."""
    if directory in _refused:
        return False
    objection = _objection(directory)
    return objection is None or _refuse(directory, objection)


def _refuse(directory: str, objection: str) -> bool:
    _refused.add(directory)
    _warn("directory", _advice(f"programs are not kept in {directory}, which {objection}"))
    return False


def _prepared(directory: str) -> bool:
    """Whether a directory may be written to; it is made if it does not exist."""
    if not os.path.isdir(directory):
        try:
            _make(directory)
        except OSError as error:
            return _refuse(directory, f"cannot be made: {error}")
    return _accepted(directory)


def _make(directory: str) -> None:
    """Make a directory, and those above it, for this user alone."""
    above = os.path.dirname(directory) or os.curdir
    if not os.path.isdir(above):
        if above == os.path.expanduser("~"):
            raise FileNotFoundError(f"there is no home directory {above}")
        _make(above)
    elif _posix and os.geteuid() == 0 != os.stat(above).st_uid:
        raise PermissionError(f"this process runs as root, and {above} belongs to user {os.stat(above).st_uid}")
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:  # another process was first; but a link to nowhere exists, too
        if not os.path.isdir(directory):
            raise


# Warnings ------------------------------------------------------------------------------------------------------------


def _advice(trouble: str) -> str:
    return (
        f"{trouble}. Programs are compiled, and run all the same. Set PULLBACK_COMPILATION_CACHE_DIR (the switch "
        "compilation_cache_dir) to a directory of your own, or PULLBACK_ENABLE_COMPILATION_CACHE=0 (the switch "
        "enable_compilation_cache) to do without."
    )


def _warn(kind: str, message: str) -> None:
    """Warn, once for each kind in a process, at the user's line."""
    if kind in _warned:
        return
    _warned.add(kind)
    warn(message, CompilationCacheWarning)
