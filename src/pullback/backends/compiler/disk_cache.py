"""The persistent cache: compiled programs on disk, so that the next process need not compile them.

Each program is one file. Its name is a digest of all that the compiled code depends on: one half, 128 bits, is a digest
of the text, the other of the options, the compiler, the device, and this machine's CPU. A file begins with its key, its
length and its checksum; only if they are right does the compiler's own reader get the rest.

* **Writers** write a temporary file and rename it, which is atomic: readers see the old file, the new one, or none,
  whichever process is killed. Files are not synced to the disk: the checksum detects those that a power failure cut.
* **Trust.** Whoever can write a program can make this process run any code, so the directory must belong to this user,
  and nobody else may write there. Each file is checked again once it is open, so that a link or another directory
  that was put there meanwhile does not help an attacker.
* **The bound**, the switch ``compilation_cache_max_size``, is in bytes: 0 writes no files, and a negative number sets
  no bound. The least recently used files are removed. A process scans the directory when it has written a sixteenth
  of the bound since its last scan, and starts to count at a random number, so that many short processes scan as often
  as one long one.
* **Failures** never end a program: it is compiled as if there were no cache, with one warning for damaged files and
  one for a directory that cannot be used.
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
from pullback.core import monitoring, systems
from pullback.core.config import config
from pullback.core.errors import CompilationCacheWarning
from pullback.core.source import warn

_MAGIC = b"PULLBACK"
_FORMAT = 1
# Magic bytes, format, key, length and checksum of the rest. The checksum is SHA-256 because the key needs it in any
# case: zlib.crc32 is faster by 0.4 µs a KiB, but importing zlib takes longer than checking a usual program.
_HEADER = struct.Struct("<8sI32sQ32s")

_HOUR = 3600.0  # how often a file's time of use is updated; an older temporary file has no writer any more
_SCANS = 16  # how often the directory is scanned while as many bytes are written as the bound allows

_refused: set[str] = set()
"""Directories that this process no longer uses."""
_unwritable: set[str] = set()
"""Directories that this process no longer writes to."""
_until_scan: dict[str, float] = {}
"""For each directory, how many bytes may be written before its next scan."""
_warned: set[str] = set()


def cache_directory() -> str | None:
    """The directory of the persistent cache of compiled programs.

    The switch ``compilation_cache_dir`` comes first, then ``$XDG_CACHE_HOME/pullback/programs``, then
    ``~/.cache/pullback/programs``.

    Returns:
      The directory, which need not exist yet; None if the switch ``enable_compilation_cache`` is off, or if there is no
      setting and no home directory.

    >>> from pullback.backends.compiler.disk_cache import cache_directory
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
      How many programs were removed.

    >>> import tempfile
    >>> from pullback.backends.compiler.disk_cache import clear
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


def usage() -> tuple[int, int]:
    """The number of compiled programs in the cache directory, and their size in bytes.

    >>> import tempfile
    >>> from pullback.backends.compiler import disk_cache
    >>> from pullback.core.config import override
    >>> with tempfile.TemporaryDirectory() as directory, override("compilation_cache_dir", directory):
    ...     disk_cache.usage()
    (0, 0)
    """
    directory = cache_directory()
    if directory is None or not _accepted(directory):
        return 0, 0
    with contextlib.suppress(FileNotFoundError):
        sizes = [found.st_size for _, temporary, found in _files(directory) if not temporary]
        return len(sizes), sum(sizes)
    return 0, 0


def load_or_compile(
    text: str,
    device: Device,
    overrides: Sequence[tuple[str, Any]],
    compile: Callable[[], Any],
    callbacks: Sequence[Callable[..., Any]] = (),
) -> tuple[Any, str]:
    """Load the executable for a program from the disk, or compile the program and write its executable there.

    Args:
      text: the program as StableHLO, without source locations, so that moving the source does not change the key.
      device: the device that the program runs on.
      overrides: names and values of the compiler's options, instead of their defaults.
      compile: compiles the program; called without arguments if the executable is not on disk.
      callbacks: the Python functions that the program calls, each by its index in this sequence. What is on disk does
        not depend on them.

    Returns:
      The runtime's loaded executable, and ``"loaded"`` or ``"compiled"``.

    Raises:
      Exception: any exception of ``compile``. A failure of the cache is only a warning.
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
            loaded = backend().deserialize(payload, device, callbacks)
            monitoring.record_event("/jax/compilation_cache/cache_hits")
            return loaded, "loaded"
    except Exception as error:  # of whatever kind: the compiler's reader has many
        _warn(
            "damaged",
            f"a program in the cache is damaged and is compiled again: {path}: {error}. You need not do anything; "
            f"further ones in this process are replaced without a warning.",
        )
    monitoring.record_event("/jax/compilation_cache/cache_misses")
    start = time.perf_counter()
    loaded = compile()
    if time.perf_counter() - start >= config.persistent_cache_min_compile_time_secs:
        _keep(directory, path, key, loaded, device)
    return loaded, "compiled"


def has(text: str, device: Device, overrides: Sequence[tuple[str, Any]]) -> bool:
    """Whether the cache has a file for a program. The file is not read, so it may be damaged."""
    directory = cache_directory()
    if directory is None or not _accepted(directory):
        return False
    return os.path.exists(os.path.join(directory, _key(text, device, overrides).hex()))


def why_missing(text: str, device: Device, overrides: Sequence[tuple[str, Any]]) -> str | None:
    """The reason, in words, why the cache has no file for a program; None if it has one."""
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
                "the program was compiled before, but with other options, by another release of the compiler, or "
                "for another device or CPU"
            )
    return f"no program of this text is kept in {directory}"


# Keys ----------------------------------------------------------------------------------------------------------------


def _key(text: str, device: Device, overrides: Sequence[tuple[str, Any]]) -> bytes:
    """A digest of the text, the options and the environment: all that a compiled program depends on."""
    # XLA divides loops among the CPU cores that it may use when it compiles.
    settings = (systems.cores(), backend().options_as_bytes(overrides))
    digest = hashlib.sha256(environment(device))
    digest.update(hashlib.sha256(repr(settings).encode()).digest())
    return hashlib.sha256(text.encode()).digest()[:_HALF] + digest.digest()[:_HALF]


_HALF = 16


@functools.cache
def environment(device: Device) -> bytes:
    """A digest of the compiler, the device and the machine.

    It depends on the device, because a compiled program runs only on the device for which it was compiled.
    """
    facts = (
        _FORMAT,
        backend().version(device),
        device.target,
        device.id,
        backend().count(device.target),
        device.device_kind,
        systems.processor(),
    )
    return hashlib.sha256(repr(facts).encode()).digest()


# Files ---------------------------------------------------------------------------------------------------------------


class _DamagedError(Exception):
    """Raised for a file of the cache that is incomplete, altered, or writable by others."""


def _read(path: str, key: bytes) -> bytes | None:
    """Read the serialised program of the cache key ``key`` from a file; None if there is no file.

    Raises:
      _DamagedError: the file was altered, has another key, or others can write to it.
      OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, systems.READ)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) and systems.is_own(found) and systems.is_private(found)):
            raise _DamagedError("other users can write to the file")
        data = b"".join(iter(lambda: os.read(descriptor, found.st_size + 1), b""))
    finally:
        os.close(descriptor)
    if len(data) < _HEADER.size:
        raise _DamagedError(f"it ends after {len(data)} bytes")
    *identity, checksum = _HEADER.unpack_from(data)
    payload = data[_HEADER.size :]
    if identity != [_MAGIC, _FORMAT, key, len(payload)] or hashlib.sha256(payload).digest() != checksum:
        raise _DamagedError("its checksum, its length or its name does not match its content")
    if abs(time.time() - found.st_mtime) > _HOUR:
        with contextlib.suppress(OSError):  # a read-only directory works too
            os.utime(path)
    return payload


def _keep(directory: str, path: str, key: bytes, loaded: Any, device: Device) -> None:
    """Write a compiled program to the cache.

    Nothing is written if the program cannot be serialised, if its size is outside the limits, or if the directory is
    not writable.

    Args:
      directory: the cache directory.
      path: the file for the program.
      key: the cache key, which the file contains.
      loaded: the runtime's object for the program.
      device: the device that the program runs on.
    """
    bound = config.compilation_cache_max_size
    if directory in _unwritable or bound == 0 or not _prepared(directory):
        return
    try:
        payload = backend().serialize(loaded, device)
    except RuntimeError:  # not every platform can serialise
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
        pass  # another process has removed the directory just now; the next program makes it again
    except OSError as error:
        _unwritable.add(directory)
        _warn(
            "directory",
            _advice(f"compiled programs are no longer kept in {directory}, because it cannot be written to: {error}"),
        )


def _write(path: str, data: bytes) -> None:
    """Write a file atomically, by renaming a temporary file."""
    temporary = f"{path}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, systems.WRITE_NEW, 0o600)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        if not systems.replace(temporary, path):
            _remove(temporary)  # another process reads the program that is there
    except BaseException:
        _remove(temporary)
        raise


def _files(directory: str) -> Iterator[tuple[os.DirEntry[str], bool, os.stat_result]]:
    """Find the files of a directory that are named like those of the cache.

    Yields:
      The directory entry, whether the file is temporary, and its status.
    """
    ours = re.compile(r"[0-9a-f]{64}(\.[0-9a-f]{16}\.tmp)?")
    with os.scandir(directory) as entries:
        for entry in entries:
            match = ours.fullmatch(entry.name)
            if match is not None:
                with contextlib.suppress(OSError):  # another process may have removed it
                    yield entry, match[1] is not None, entry.stat(follow_symlinks=False)


def _remove(path: str) -> bool:
    """Remove a file, and return whether that succeeded."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _make_room(directory: str, size: int, bound: int) -> None:
    """Remove the least recently used files if a new file would make a directory larger than its bound.

    The directory is scanned only once in many calls, since a scan takes time.

    Args:
      directory: the cache directory.
      size: the size of the new file, in bytes.
      bound: the most bytes that the directory should hold.
    """
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
            _remove(path)  # another process may have removed it
            total -= length
    _until_scan[directory] = min(step, bound - total)


# Directories ---------------------------------------------------------------------------------------------------------


def _objection(directory: str) -> str | None:
    """The reason why a directory cannot be trusted; None if it can be trusted, or does not exist."""
    try:
        link = os.lstat(directory)
        found = os.stat(directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be inspected: {error}"
    if not stat.S_ISDIR(found.st_mode):
        return "is not a directory"
    if not systems.is_own(found):
        return f"belongs to user {found.st_uid}, while this process runs as user {systems.user()}"
    if stat.S_ISLNK(link.st_mode) and link.st_uid != 0 and not systems.is_own(link):
        return f"is a link that belongs to user {link.st_uid}, while this process runs as user {systems.user()}"
    if not systems.is_private(found) and not found.st_mode & stat.S_ISVTX:  # the sticky bit protects our files
        return (
            f"other users may write to (its mode is {stat.filemode(found.st_mode)}; "
            f"`chmod go-w {directory}` makes it private)"
        )
    return None


def _accepted(directory: str) -> bool:
    """Whether a directory can be trusted, or does not exist yet. Warn if it cannot be trusted."""
    if directory in _refused:
        return False
    objection = _objection(directory)
    return objection is None or _refuse(directory, objection)


def _refuse(directory: str, objection: str) -> bool:
    _refused.add(directory)
    _warn("directory", _advice(f"programs are not kept in {directory}, which {objection}"))
    return False


def _prepared(directory: str) -> bool:
    """Make a directory if it does not exist, and return whether it can be used."""
    if not os.path.isdir(directory):
        try:
            _make(directory)
        except OSError as error:
            return _refuse(directory, f"cannot be made: {error}")
    return _accepted(directory)


def _make(directory: str) -> None:
    """Make a directory and its parents, accessible to this user only."""
    above = os.path.dirname(directory) or os.curdir
    if not os.path.isdir(above):
        if above == directory:  # a drive of Windows
            raise FileNotFoundError(f"there is no {directory}")
        if above == os.path.expanduser("~"):
            raise FileNotFoundError(f"there is no home directory {above}")
        _make(above)
    elif systems.user() == 0 != os.stat(above).st_uid:
        raise PermissionError(f"this process runs as root, and {above} belongs to user {os.stat(above).st_uid}")
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:  # another process was first; or it is a dangling link
        if not os.path.isdir(directory):
            raise


# Warnings ------------------------------------------------------------------------------------------------------------


def _advice(trouble: str) -> str:
    return (
        f"{trouble}. Programs are compiled and run nevertheless. Set PULLBACK_COMPILATION_CACHE_DIR (the switch "
        "compilation_cache_dir) to a directory that only you can write to, or turn the cache off with "
        "PULLBACK_ENABLE_COMPILATION_CACHE=0 (the switch enable_compilation_cache)."
    )


def _warn(kind: str, message: str) -> None:
    """Warn at the user's line, once for each ``kind`` in a process."""
    if kind in _warned:
        return
    _warned.add(kind)
    warn(message, CompilationCacheWarning)
