"""The persistent cache between processes: many at once, and some that are killed while they write."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.backends.compiler.test_disk_cache import run_python
from tests.helpers import chosen

CROWD = """
    import os, random, sys, traceback, warnings
    from pullback.backends.compiler import client, disk_cache
    from pullback.backends.devices.devices import HOST
    from pullback.core.config import config

    warnings.simplefilter("error")
    config.update("compilation_cache_max_size", 60_000)
    client.serialize = lambda loaded, device: loaded
    client.deserialize = lambda data, device, callbacks: data
    client.version = lambda device: "none"
    client.count = lambda platform: 1
    client.options_as_bytes = lambda overrides: b""

    def work(number):
        random.seed(number)
        words = {"loaded": 0, "compiled": 0}
        for _ in range(400):
            text = str(random.randrange(20))
            code = text.encode() * random.Random(text).randrange(1000, 4000)
            found, word = disk_cache.load_or_compile(text, HOST, [], lambda: code)
            assert found == code
            words[word] += 1
            if random.random() < 0.01:
                disk_cache.clear()
        assert min(words.values()) > 20, words

    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            try:
                work(number)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    place = disk_cache.cache_directory()
    assert not [name for name in os.listdir(place) if name.endswith(".tmp")]
"""


def test_eight_processes_at_once(tmp_path: Path) -> None:
    run_python(CROWD, tmp_path / "cache")


KILLED = """
    import contextlib, os, random, signal, sys, time, traceback, warnings
    import numpy as np
    import pullback.numpy as pnp
    from pullback import grad, jit, vmap
    from pullback.backends.compiler import client, disk_cache
    from pullback.core.types import ShapedArray

    sys.modules["jax"] = None  # where it is installed, parts of jaxlib import it, and each child would
    warnings.simplefilter("error")  # a damaged file would be reported
    functions = [
        lambda x: pnp.sin(x) * 2,
        lambda x: x * x - 1,
        vmap(grad(lambda x: pnp.tanh(x * 3))),
    ]
    point = np.linspace(-1, 1, 50, dtype=np.float32)
    expected = [np.asarray(f(point)) for f in functions]
    for f in functions:
        jit(f).lower(point)  # what is imported here is not imported by each child
    client.library()

    asked, real = [], disk_cache.load_or_compile
    def remember(text, device, overrides, compile, callbacks):
        loaded, word = real(text, device, overrides, compile, callbacks)
        asked.append((text, device, overrides, loaded))
        return loaded, word

    # XLA can write what it compiled, but not what it has read: a program that was read is written as it was.
    codes, serialize, deserialize = {}, client.serialize, client.deserialize
    def written(loaded, device):
        if loaded not in codes:
            codes[loaded] = serialize(loaded, device)
        return codes[loaded]
    def read(data, device, callbacks):
        loaded = deserialize(data, device, callbacks)
        codes[loaded] = data
        return loaded
    client.serialize, client.deserialize = written, read

    def check():
        disk_cache.load_or_compile = remember
        for f, y in zip(functions, expected):
            assert np.allclose(jit(f)(point), y, rtol=1e-5, atol=1e-6)
        for i, y, (text, device, overrides, loaded) in random.sample(copies(), 10):
            found, _ = real(f"{text} // {i}", device, overrides, lambda: loaded)
            aval = ShapedArray(point.shape, point.dtype)
            (buffer,) = client.Executable(found, device, [aval]).run([client.put(point, aval, device)])
            assert np.allclose(client.to_numpy(buffer), y, rtol=1e-5, atol=1e-6)

    def copies():  # each program under many keys, so that all can be removed and written, and none compiled again
        return [(i, y, program) for i in range(20) for y, program in zip(expected, asked, strict=True)]

    def write_for_ever(ready):
        os.write(ready, b"!")
        place, write = disk_cache.cache_directory(), os.write
        def write_slowly(descriptor, data):  # so that most of the time a file is there in part
            time.sleep(0.0005)
            return write(descriptor, data[:500])
        os.write = write_slowly
        while True:
            i, _, (text, device, overrides, loaded) = random.choice(copies())
            text = f"{text} // {i}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(place, disk_cache._key(text, device, overrides).hex()))
            real(text, device, overrides, lambda: loaded)

    def child(action, *args):
        number = os.fork()
        if number == 0:
            try:
                check()
                action(*args)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        return number

    for i in range(TIMES):
        ready, write_end = os.pipe()
        random.seed(i)
        number = child(write_for_ever, write_end)
        os.close(write_end)
        assert os.read(ready, 1) == b"!", "a process after one that was killed has failed"
        os.close(ready)
        time.sleep(random.uniform(0, 0.01))
        os.kill(number, signal.SIGKILL)
        assert os.WTERMSIG(os.waitpid(number, 0)[1]) == signal.SIGKILL
    number = child(lambda: None)
    assert os.waitpid(number, 0)[1] == 0
    names = os.listdir(disk_cache.cache_directory())
    print(sum(name.endswith(".tmp") for name in names), len(names))
"""


def killed(times: int, place: Path) -> int:
    """Kill as many processes, one after the other, while they write; how many left a part of a file behind."""
    source = textwrap.dedent(KILLED).replace("TIMES", str(times))
    parts, names = map(int, run_python(source, place)[0].split())
    assert names > parts
    return parts


def test_killed_while_writing(tmp_path: Path) -> None:
    killed(5, tmp_path / "cache")


@pytest.mark.slow
def test_killed_many_times_while_writing(tmp_path: Path) -> None:
    times = chosen(50, 200)
    assert killed(times, tmp_path / "cache") > times / 10  # or they were not writing
