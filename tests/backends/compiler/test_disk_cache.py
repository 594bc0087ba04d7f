"""The persistent cache: what is kept is found again, and nothing that happens to the disk shows in a result."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pullback.backends.compiler import client, disk_cache
from pullback.backends.devices.devices import HOST, device
from pullback.core import systems
from pullback.core.config import config, override
from pullback.core.errors import CompilationCacheWarning

ROOT = systems.user() == 0
SOMEBODY = (systems.user() or 0) + 12345
HEADER = 84


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a process that has seen no trouble yet."""
    monkeypatch.setattr(disk_cache, "_refused", set())
    monkeypatch.setattr(disk_cache, "_unwritable", set())
    monkeypatch.setattr(disk_cache, "_warned", set())
    monkeypatch.setattr(disk_cache, "_until_scan", {})
    place = tmp_path / "cache"
    with override("compilation_cache_dir", str(place)), override("enable_compilation_cache", True):
        yield place


@pytest.fixture
def plain(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Programs are bytes here, and nothing is compiled; what the compiler's reader would have been given."""
    given: list[bytes] = []
    monkeypatch.setattr(client, "serialize", lambda loaded, device: loaded)
    monkeypatch.setattr(client, "deserialize", lambda data, device, callbacks: given.append(data) or data)
    return given


def ask(text: str, code: bytes | None = None) -> str:
    """Ask for a program whose code is known; whether it came from the disk."""
    expected = text.encode() * 8 if code is None else code
    found, word = disk_cache.load_or_compile(text, HOST, [], lambda: expected)
    assert found == expected
    return word


def path_of(text: str) -> Path:
    place = disk_cache.cache_directory()
    assert place is not None
    return Path(place) / disk_cache._key(text, HOST, []).hex()


def warned(action: Callable[[], Any]) -> list[str]:
    """The warnings of an action, all of which are of the cache's own kind and name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    for w in caught:
        assert w.category is CompilationCacheWarning
        assert w.filename == __file__
    return [str(w.message) for w in caught]


# Found again ---------------------------------------------------------------------------------------------------------


def run_python(source: str, place: Path, **environment: str) -> tuple[str, str]:
    variables = {"PULLBACK_COMPILATION_CACHE_DIR": str(place), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env={**os.environ, **variables, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


STEP = """
    import numpy as np
    import pullback.numpy as pnp
    from pullback import grad, jit, vmap
    from pullback.core.config import config

    config.update("log_compiles", True)
    def step(w, x):
        slope = vmap(grad(lambda w, x: pnp.tanh(w * x)))(w, x)
        return w - slope, pnp.tanh(w * x)

    w, x = pnp.arange(3.0), pnp.ones(3)
    step = jit(step, donate_argnums=0)
    for _ in range(2):
        w, loss = step(w, x)
    print(np.asarray(w).tobytes().hex(), np.asarray(loss).tobytes().hex())
"""


def test_found_by_the_next_process(tmp_path: Path) -> None:
    figures, words = run_python(STEP, tmp_path / "cache", PYTHONHASHSEED="1")
    assert "compiled jit_step" in words
    # Lines and the seed of Python's hashes are others; the program, with its donated argument, is the same.
    again, words = run_python("\n\n" + STEP, tmp_path / "cache", PYTHONHASHSEED="2")
    assert "loaded jit_step" in words
    assert "compiled jit_step" not in words
    assert again == figures


CALLS_PYTHON = """
import logging, sys
import numpy as np
import pullback, pullback.numpy as jnp
from pullback import ShapeDtypeStruct, debug, jit, pure_callback
from pullback.experimental import io_callback
logging.basicConfig(stream=sys.stdout, format="%(message)s")
pullback.config.update("log_compiles", True)

def program(compute, word):
    def called(x):
        y = pure_callback(compute, x, x)
        debug.print(word + " {}", y[0])
        io_callback(lambda v: print(word, "once", v), None, y[0], ordered=True)
        return y + 1
    return jit(called)

def failing(x):
    return pure_callback(lambda x: {}[word], x, x)

print(program(np.sign, "first")(jnp.ones(3))[0])
print(program(np.negative, "again")(jnp.ones(3))[0])
for word in ("one", "two"):
    try:
        jit(failing)(jnp.ones(3))
    except KeyError as error:
        print("raised", error)
"""


LOGGED = ("traced", "lowered", "loaded", "compiled")


def test_a_program_that_calls_python_is_kept_and_gets_the_functions_of_whoever_loads_it(tmp_path: Path) -> None:
    expected = [
        *("first 1.0", "first once 1.0", "2.0", "again -1.0", "again once -1.0", "0.0"),
        *(f"raised pure_callback of <lambda> raised an error: KeyError: {word!r}" for word in ("one", "two")),
    ]
    for compiled in (2, 0):
        out, _ = run_python(CALLS_PYTHON, tmp_path)
        printed = [line for line in out.splitlines() if line.split()[0] not in LOGGED]
        assert printed == expected, out
        assert sum(line.startswith("compiled") for line in out.splitlines()) == compiled, out


ON_SEVERAL = """
import numpy as np
import pullback, pullback.numpy as jnp
from pullback import jit, make_mesh, pure_callback
from pullback.sharding import NamedSharding, PartitionSpec
mesh = make_mesh((4,), ("i",))
x = pullback.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("i")))
for compute in (np.negative, np.square, lambda x: {}["nothing"]):
    try:
        print(jit(lambda x: pure_callback(compute, x, x) + 1)(x))
    except KeyError as error:
        print("raised", error)
"""


def test_programs_over_several_devices_that_call_python_are_kept_too(tmp_path: Path) -> None:
    for _ in range(2):
        out, _ = run_python(ON_SEVERAL, tmp_path, PULLBACK_NUM_CPU_DEVICES="4")
        assert out.splitlines()[0] == "[ 1.  0. -1. -2. -3. -4. -5. -6.]"
        assert out.splitlines()[1] == "[ 1.  2.  5. 10. 17. 26. 37. 50.]"
        assert out.splitlines()[2].endswith("KeyError: 'nothing'")


def test_switched_off(tmp_path: Path) -> None:
    run_python(STEP, tmp_path / "cache", PULLBACK_ENABLE_COMPILATION_CACHE="0")
    assert not (tmp_path / "cache").exists()


def test_of_each_device(directory: Path) -> None:
    source = """
        import pullback, pullback.numpy as pnp
        from pullback.core.config import config
        config.update("num_cpu_devices", 2)
        f = pullback.jit(lambda x: x * 2 + 1)
        for device in pullback.devices():
            y = f(pullback.device_put(pnp.arange(2.0), device))
            assert y.devices() == {device}
            assert y.tolist() == [1.0, 3.0]
    """
    for _ in range(2):
        run_python(source, directory)
    assert len(list(directory.iterdir())) == 2


def test_a_loaded_program_can_be_looked_into(directory: Path) -> None:
    text = """
        func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
          %y = stablehlo.sine %x : tensor<3xf32>
          return %y : tensor<3xf32>
        }
    """
    made, word = disk_cache.load_or_compile(text, HOST, [], lambda: client.compile_text(text, HOST))
    assert word == "compiled"
    found, word = disk_cache.load_or_compile(text, HOST, [], lambda: pytest.fail("not found"))
    assert word == "loaded"
    assert found.hlo_modules()[0].to_string() == made.hlo_modules()[0].to_string()
    assert found.cost_analysis() == made.cost_analysis()
    sizes = [x.get_compiled_memory_stats().argument_size_in_bytes for x in (made, found)]
    assert sizes == [12, 12]


KEYED = {
    "the text": lambda patch: "another",
    "an option": lambda patch: patch(client, "options_as_bytes", lambda overrides: b"others"),
    "the compiler": lambda patch: patch(client, "version", lambda device: "99.0"),
    "the format": lambda patch: patch(disk_cache, "_FORMAT", 99),
    "the processor": lambda patch: patch(systems, "processor", lambda: ("another",)),
    "the number of devices": lambda patch: patch(client, "count", lambda platform: 99),
    "the number of processors": lambda patch: patch(os, "sched_getaffinity", lambda process: range(99), raising=False),
}


@pytest.mark.parametrize("what", KEYED)
def test_the_key_changes_with(what: str, plain: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("text", b"first") == "compiled"
    assert ask("text", b"first") == "loaded"
    disk_cache.environment.cache_clear()
    try:
        text = KEYED[what](monkeypatch.setattr) or "text"
        assert ask(text, b"second") == "compiled"
    finally:
        disk_cache.environment.cache_clear()


def test_the_key_changes_with_options_and_devices() -> None:
    def key(number: int, *overrides: tuple[str, Any]) -> bytes:
        return disk_cache._key("text", device("cpu", number), overrides)

    option = ("xla_cpu_enable_fast_math", True)
    assert len({key(0), key(0, option), key(0, (option[0], False))}) == 3
    assert key(0) == key(0)


def test_the_key_changes_with_flags_of_the_environment(tmp_path: Path) -> None:
    source = """
        from pullback.backends.devices import devices
        from pullback.backends.compiler import disk_cache
        print(disk_cache._key("text", devices.HOST, []).hex())
    """
    keys = [run_python(source, tmp_path, XLA_FLAGS=flags)[0] for flags in ("", "--xla_cpu_enable_fast_math=true", "")]
    assert keys[0] == keys[2] != keys[1]


def test_what_cannot_be_written_as_bytes_is_compiled(plain: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(loaded: Any, device: Any) -> bytes:
        raise RuntimeError("UNIMPLEMENTED")

    monkeypatch.setattr(client, "serialize", refuse)
    assert [ask("text"), ask("text")] == ["compiled", "compiled"]


def test_imports_nothing_more() -> None:
    source = """
        import sys
        from pullback.backends.compiler import programs
        before = set(sys.modules)
        from pullback.backends.compiler import disk_cache
        print(sorted(set(sys.modules) - before))
    """
    assert run_python(source, Path("unused"))[0].strip() == "['pullback.backends.compiler.disk_cache']"


# The place -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xdg", "chosen", "expected"),
    [
        (None, None, "{home}/.cache/pullback/programs"),
        ("", None, "{home}/.cache/pullback/programs"),
        ("relative", None, "{home}/.cache/pullback/programs"),
        ("{home}/xdg", None, "{home}/xdg/pullback/programs"),
        ("{home}/xdg", "~/mine", "{home}/mine"),
        ("{home}/xdg", Path("/mine"), "/mine"),
    ],
)
def test_the_place(
    xdg: str | None, chosen: Any, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if xdg is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg.format(home=tmp_path))
    with override("compilation_cache_dir", chosen):
        assert disk_cache.cache_directory() == expected.format(home=tmp_path)
        with override("enable_compilation_cache", False):
            assert disk_cache.cache_directory() is None


def test_the_tests_leave_the_users_cache_alone() -> None:
    chosen = config.compilation_cache_dir
    assert chosen is not None
    assert chosen == os.environ["PULLBACK_COMPILATION_CACHE_DIR"]


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the user has no entry
    with override("compilation_cache_dir", None):
        assert disk_cache.cache_directory() is None
        assert disk_cache.load_or_compile("text", HOST, [], lambda: 1) == (1, "compiled")
        assert disk_cache.clear() == 0


def test_made_for_this_user_alone(plain: list[bytes], tmp_path: Path) -> None:
    place = tmp_path / "one" / "two"
    before = os.umask(0)
    try:
        with override("compilation_cache_dir", str(place)):
            assert [ask("text"), ask("text")] == ["compiled", "loaded"]
            made = path_of("text")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(x.stat().st_mode) for x in (place.parent, place, made)] == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("place", ["cache", "one/two/", "./cache"])
def test_a_relative_place(place: str, plain: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with override("compilation_cache_dir", place):
        assert [ask("text"), ask("text")] == ["compiled", "loaded"]
        assert len(list((tmp_path / place).iterdir())) == 1


def test_removed_meanwhile(plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("first") == "compiled"
    path_of("first").unlink()
    directory.rmdir()
    assert [ask("second"), ask("second")] == ["compiled", "loaded"]
    path_of("second").unlink()
    prepared = disk_cache._prepared
    monkeypatch.setattr(disk_cache, "_prepared", lambda place: prepared(place) and directory.rmdir() is None)
    assert ask("third") == "compiled"  # removed between the making and the writing
    monkeypatch.undo()
    with override("compilation_cache_dir", str(directory)):
        assert not directory.exists()


def assert_useless(place: Path, complaint: str, files: int = 0) -> None:
    """A directory is neither read nor written, and there is one warning, which says why and what to do."""
    messages = warned(lambda: [ask(text) for text in ("one", "two", "one")])
    assert len(messages) == 1
    assert complaint in messages[0]
    assert str(place) in messages[0]
    assert "PULLBACK_COMPILATION_CACHE_DIR" in messages[0]
    if place.is_dir():
        assert len(list(place.iterdir())) == files


def test_anothers_directory(plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask("one")
    user = os.geteuid()
    if ROOT:
        os.chown(directory, SOMEBODY, -1)
        expected = f"belongs to user {SOMEBODY}, while this process runs as user {user}"
    else:
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
        expected = f"belongs to user {user}, while this process runs as user {SOMEBODY}"
    assert_useless(directory, expected, files=1)
    assert plain == []
    assert disk_cache.clear() == 0


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_directory_that_others_may_write_to(plain: list[bytes], directory: Path, mode: int) -> None:
    ask("one")
    directory.chmod(mode)
    assert_useless(directory, f"`chmod go-w {directory}`", files=1)
    assert plain == []


@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o700])
def test_a_directory_in_which_others_cannot_rename(plain: list[bytes], directory: Path, mode: int) -> None:
    directory.mkdir()
    directory.chmod(mode)
    assert [ask("text"), ask("text")] == ["compiled", "loaded"]


def test_a_file_in_its_place(plain: list[bytes], directory: Path) -> None:
    directory.write_text("")
    assert_useless(directory, "is not a directory")


def test_a_file_above_it(plain: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with override("compilation_cache_dir", str(tmp_path / "file" / "cache")):
        assert_useless(tmp_path / "file" / "cache", "Not a directory")


def test_a_directory_that_cannot_be_made(plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def refuse(path: str, mode: int) -> None:
        attempts.append(path)
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "mkdir", refuse)
    assert_useless(directory, "cannot be made: [Errno 13] Permission denied")
    assert len(attempts) == 1


def test_a_home_that_does_not_exist(plain: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with override("compilation_cache_dir", None):
        assert_useless(home / ".cache" / "pullback" / "programs", f"there is no home directory {home}")
    assert not home.exists()


@pytest.mark.skipif(not ROOT, reason="only root can make directories in another user's")
def test_root_leaves_no_directories_behind(plain: list[bytes], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, SOMEBODY, -1)
    with override("compilation_cache_dir", str(home / ".cache" / "programs")):
        assert_useless(home / ".cache" / "programs", f"belongs to user {SOMEBODY}")
    assert list(home.iterdir()) == []


def test_a_link_of_ones_own(plain: list[bytes], directory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    directory.symlink_to(tmp_path / "elsewhere")
    assert [ask("text"), ask("text")] == ["compiled", "loaded"]


def test_a_link_to_nowhere(plain: list[bytes], directory: Path, tmp_path: Path) -> None:
    directory.symlink_to(tmp_path / "nowhere")
    assert_useless(directory, "cannot be made")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(not ROOT, reason="only root can give a link away")
def test_anothers_link(plain: list[bytes], directory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    directory.symlink_to(tmp_path / "elsewhere")
    os.lchown(directory, SOMEBODY, -1)
    assert_useless(directory, f"is a link that belongs to user {SOMEBODY}")


def test_warnings_as_errors_leave_a_cache_that_can_be_asked(plain: list[bytes], directory: Path) -> None:
    directory.write_text("")
    with pytest.raises(CompilationCacheWarning):  # the tests run so
        ask("text")
    assert ask("text") == "compiled"


# Damage --------------------------------------------------------------------------------------------------------------


def assert_replaced(plain: list[bytes], text: str = "text", others: int = 0) -> None:
    """What is there is recognised as damaged, with no more than one warning in all, and replaced."""
    plain.clear()
    assert ask(text) == "compiled"
    assert plain == []
    assert ask(text) == "loaded"


def test_every_shorter_file(plain: list[bytes]) -> None:
    ask("text")
    whole = path_of("text").read_bytes()
    assert len(whole) == HEADER + 32

    def action() -> None:
        for length in range(len(whole)):
            path_of("text").write_bytes(whole[:length])
            assert_replaced(plain)
        for more in (b"\0", whole):
            path_of("text").write_bytes(whole + more)
            assert_replaced(plain)

    messages = warned(action)
    assert len(messages) == 1
    assert "it ends after 0 bytes" in messages[0]
    assert str(path_of("text")) in messages[0]
    assert path_of("text").read_bytes() == whole


@pytest.mark.slow
def test_every_bit(plain: list[bytes]) -> None:
    ask("text")
    whole = path_of("text").read_bytes()

    def action() -> None:
        for bit in range(8 * len(whole)):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            path_of("text").write_bytes(damaged)
            assert_replaced(plain)

    assert len(warned(action)) == 1


def test_a_file_under_anothers_name(plain: list[bytes]) -> None:
    ask("one")
    ask("two")
    os.replace(path_of("one"), path_of("two"))
    assert len(warned(lambda: assert_replaced(plain, "two"))) == 1


TEXT = """
    func.func public @main(%x: tensor<f32>) -> tensor<f32> {
      %y = stablehlo.negate %x : tensor<f32>
      return %y : tensor<f32>
    }
"""


def test_what_the_compilers_reader_refuses(directory: Path) -> None:
    def compile() -> Any:
        return client.compile_text(TEXT, HOST)

    key = disk_cache._key(TEXT, HOST, [])
    made, _ = disk_cache.load_or_compile(TEXT, HOST, [], compile)
    code = client.serialize(made, HOST)
    words = []

    def action() -> None:
        for payload in (b"", b"garbage", code[: len(code) // 2]):
            header = disk_cache._HEADER.pack(
                disk_cache._MAGIC, disk_cache._FORMAT, key, len(payload), disk_cache.hashlib.sha256(payload).digest()
            )
            path_of(TEXT).write_bytes(header + payload)
            words.extend(disk_cache.load_or_compile(TEXT, HOST, [], compile)[1] for _ in range(2))

    assert len(warned(action)) == 1
    assert words == ["compiled", "loaded"] * 3


def test_a_planted_link_is_not_followed(plain: list[bytes], tmp_path: Path) -> None:
    ask("text")
    os.replace(path_of("text"), tmp_path / "victim")
    path_of("text").symlink_to(tmp_path / "victim")
    before = (tmp_path / "victim").read_bytes()
    assert len(warned(lambda: assert_replaced(plain))) == 1
    assert not path_of("text").is_symlink()
    assert (tmp_path / "victim").read_bytes() == before


def test_a_planted_pipe_does_not_hang(plain: list[bytes]) -> None:
    ask("text")
    path_of("text").unlink()
    os.mkfifo(path_of("text"))
    assert len(warned(lambda: assert_replaced(plain))) == 1


def test_a_file_that_others_may_write_to(plain: list[bytes]) -> None:
    ask("text")
    path_of("text").chmod(0o622)
    assert len(warned(lambda: assert_replaced(plain))) == 1
    assert stat.S_IMODE(path_of("text").stat().st_mode) == 0o600


@pytest.mark.skipif(not ROOT, reason="only root can give a file away")
def test_anothers_file(plain: list[bytes], directory: Path) -> None:
    ask("text")
    directory.chmod(0o1777)
    os.chown(path_of("text"), SOMEBODY, -1)
    assert len(warned(lambda: assert_replaced(plain))) == 1


# Disks that are full, or may only be read ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk(code: int, plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask("kept") == "compiled"
    write, attempts = os.write, []

    def fail(descriptor: int, data: Any) -> int:
        attempts.append(len(data))
        if len(attempts) == 1:
            return write(descriptor, data[: len(data) // 2])
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", fail)
    messages = warned(lambda: [ask(f"text {i}") for i in range(20)])
    assert len(messages) == 1
    assert os.strerror(code) in messages[0]
    assert len(attempts) == 2  # no other program is tried
    assert ask("kept") == "loaded"
    assert [x.name for x in directory.iterdir()] == [path_of("kept").name]


def test_a_directory_that_may_only_be_read(
    plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask("kept") == "compiled"
    os.utime(path_of("kept"), (0, 0))
    attempts = []

    def opened(path: str, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_CREAT:
            attempts.append(path)
            raise OSError(errno.EROFS, "Read-only file system", path)
        return real(path, flags, *rest, **more)

    def refuse(path: str, *rest: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", path)

    real = os.open
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "utime", refuse)
    messages = warned(lambda: [ask("one"), ask("two"), ask("kept")])
    assert len(messages) == 1
    assert "Read-only file system" in messages[0]
    assert len(attempts) == 1
    assert ask("kept") == "loaded"


@pytest.mark.skipif(ROOT, reason="root may write to every directory")
def test_a_directory_without_the_permission_to_write(plain: list[bytes], directory: Path) -> None:
    assert ask("kept") == "compiled"
    directory.chmod(0o500)
    assert len(warned(lambda: [ask("one"), ask("two")])) == 1
    assert ask("kept") == "loaded"


def test_interrupted_while_writing(plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(descriptor: int, data: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ask("text")
    assert list(directory.iterdir()) == []


# The bound -----------------------------------------------------------------------------------------------------------


def sizes(directory: Path) -> int:
    return sum(x.stat().st_size for x in directory.iterdir())


def test_what_has_not_been_used_for_longest_goes_first(plain: list[bytes], directory: Path) -> None:
    names = [f"program {i}" for i in range(8)]
    for i, name in enumerate(names):
        ask(name, bytes(1000 - HEADER))
        os.utime(path_of(name), (time.time() - 80000 + 100 * i,) * 2)
    assert ask(names[0], bytes(1000 - HEADER)) == "loaded"  # which is noted
    with override("compilation_cache_max_size", 8500):
        ask("new", bytes(1000 - HEADER))
    assert sizes(directory) <= 8500
    left = [name for name in names if path_of(name).exists()]
    assert left[0] == names[0]
    assert left[1:] == names[-len(left[1:]) :]
    assert len(left) in (6, 7)
    assert path_of("new").exists()


def test_a_use_is_noted_once_an_hour(plain: list[bytes]) -> None:
    ask("text")
    for age, noted in ((1800, False), (7200, True), (-7200, True)):
        then = time.time() - age
        os.utime(path_of("text"), (then, then))
        assert ask("text") == "loaded"
        assert (abs(path_of("text").stat().st_mtime - then) > 60) is noted


@pytest.mark.parametrize("length", [1000, 3000, 20000])
def test_the_bound_holds(length: int, plain: list[bytes], directory: Path) -> None:
    with override("compilation_cache_max_size", 100_000):
        for i in range(200_000 // length):
            ask(f"program {i}", bytes(length))
            assert sizes(directory) <= 100_000
        assert sizes(directory) > 60_000  # it is used, too
        ask("too large", bytes(100_000))
        assert not path_of("too large").exists()


def test_bounds_that_mean_something_else(plain: list[bytes], directory: Path) -> None:
    with override("compilation_cache_max_size", 0):
        ask("text")
        assert not directory.exists()
    with override("compilation_cache_max_size", -1):
        ask("text")
        assert path_of("text").exists()


def test_the_directory_is_not_looked_through_at_each_write(plain: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    scans, real = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: scans.append(path) or real(path))
    with override("compilation_cache_max_size", 1_600_000):  # a sixteenth is a hundred programs
        for i in range(250):
            ask(f"program {i}", bytes(1000 - HEADER))
    assert 2 <= len(scans) <= 3


def test_what_writers_left_behind_is_swept(plain: list[bytes], directory: Path) -> None:
    ask("text")
    old, young = (directory / f"{path_of('text').name}.{digit * 16}.tmp" for digit in "ab")
    for path in (old, young, directory / "notes.tmp", directory / "somebody's"):
        path.write_bytes(bytes(10))
        os.utime(path, (0, 0))
    os.utime(young)
    with override("compilation_cache_max_size", 2000):
        ask("another")
    assert not old.exists()
    assert {x.name for x in directory.iterdir()} == {
        *("notes.tmp", "somebody's", young.name, path_of("text").name, path_of("another").name)
    }


def test_files_that_another_process_removes_meanwhile(
    plain: list[bytes], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(20):
        ask(f"program {i}", bytes(1000))
    unlink = os.unlink

    def twice(path: Any, **more: Any) -> None:
        unlink(path, **more)
        unlink(path, **more)  # somebody else was quicker

    monkeypatch.setattr(os, "unlink", twice)
    with override("compilation_cache_max_size", 10_000):
        assert [ask("text", bytes(1000)), ask("text", bytes(1000))] == ["compiled", "loaded"]
    assert sizes(directory) <= 10_000


def test_clear(plain: list[bytes], directory: Path) -> None:
    assert disk_cache.clear() == 0
    ask("one")
    ask("two")
    (directory / f"{path_of('one').name}.{'0' * 16}.tmp").write_bytes(b"")
    (directory / "somebody's").write_bytes(b"")
    assert disk_cache.clear() == 2
    assert [x.name for x in directory.iterdir()] == ["somebody's"]
    assert ask("one") == "compiled"
