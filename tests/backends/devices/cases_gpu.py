"""Programs beside a GPU, whose part a second client of the CPU plays: what is decided by the platform.

The cases run in a process of their own, which ``test_elsewhere.py`` starts. Compiled programs of the stand-in are those
for CUDA, so no case calls a library of CUDA.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import pickle
import types
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import config, device_put, devices, errors, grad, jit, random, vmap
from pullback.backends.compiler import client, plugins
from pullback.backends.devices import transfers
from pullback.core.config import override

os.environ["PULLBACK_CUDA_PLUGIN"] = "/a/stand-in.so"
client._plugin_client = lambda name: client.library().xla_client.make_cpu_client(num_devices=2)
plugins.has_hardware = lambda name: True
plugins.automatic_platform.cache_clear()
config.update("platforms", "")  # as the import decides where there is a GPU

FIRST, SECOND = devices()
HOST = devices("cpu")[0]


def seen(directions: list[str]) -> Any:
    """A watcher that adds the directions of transfers to a list."""

    def watch(transfer: transfers.Transfer) -> Any:
        directions.append(transfer.direction)
        return nullcontext()

    return watch


def test_the_gpu_is_the_default() -> None:
    assert [str(device) for device in devices()] == ["CudaDevice(id=0)", "CudaDevice(id=1)"]
    assert devices("gpu") == devices("cuda") == [FIRST, SECOND]
    assert (FIRST.platform, FIRST.target, FIRST.local_hardware_id, SECOND.local_hardware_id) == ("gpu", "cuda", 0, 1)
    assert (pullback.default_backend(), pullback.device_count(), HOST.platform) == ("gpu", 2, "cpu")
    x = jnp.arange(3.0)
    for made in (x, x + 1, jnp.sin(x), jit(jnp.sin)(x), random.normal(random.key(0), (3,)), grad(jnp.sin)(1.0)):
        assert made.devices() == {FIRST}
        assert not made.committed
    assert pickle.loads(pickle.dumps(SECOND)) is SECOND
    assert [x for x in pullback.live_arrays("gpu") if x.devices() == {FIRST}]


def test_eager_operations_stay_there() -> None:
    x = jit(lambda: jnp.arange(6.0).reshape(2, 3))()
    found: list[str] = []
    transfers.watchers.append(seen(found))
    try:
        step = x - 0.1 * grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(x)
        rows = vmap(lambda row: jnp.sort(row) * row.mean())(step)
    finally:
        transfers.watchers.clear()
    assert set(found) <= {"host_to_device"}
    assert len(found) < 6
    assert rows.devices() == {FIRST}
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    step = x - 0.2 * np.tanh(x) / np.cosh(x) ** 2
    np.testing.assert_allclose(rows, np.sort(step) * step.mean(1, keepdims=True), rtol=1e-5)


def test_committed_and_uncommitted_arrays() -> None:
    free, second, host = jnp.ones(3), device_put(jnp.ones(3), SECOND), device_put(jnp.ones(3), "cpu")
    assert (
        (free + second).devices() == (second + np.ones(3)).devices() == jit(jnp.add)(free, second).devices() == {SECOND}
    )
    assert (host + 1).devices() == jnp.sin(free + host).devices() == jit(jnp.sin)(host).devices() == {HOST}
    assert (host + 1).committed
    for f in (jnp.add, jit(jnp.add)):
        with pytest.raises(errors.IncompatibleDevicesError, match=r"CudaDevice\(id=1\) and CpuDevice\(id=0\)"):
            f(second, host)
    assert device_put(host, SECOND).devices() == {SECOND}
    assert second.to_device(HOST).devices() == {HOST}
    assert jit(lambda x: x, device=HOST)(second).devices() == {HOST}


def test_code_that_asks_for_the_host() -> None:
    with pullback.default_device("cpu"):
        assert (jnp.ones(3) + 1).devices() == {HOST}
        assert pullback.default_backend() == "cpu"
    with pullback.default_device(HOST):
        assert jit(jnp.sin)(1.0).devices() == {HOST}
    with override("platforms", "cpu"):
        assert devices()[0] is HOST
        assert (jnp.ones(3) + 1).devices() == {HOST}
    with override("eager_on_host", True):
        out = jit(lambda x: x + 1)(jnp.ones(3))
        assert out.devices() == {FIRST}
        np.testing.assert_array_equal(out * 2, [4, 4, 4])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_computes_with_numpy() -> None:
    """It cannot compile: the threads of the compiler are in the parent."""
    x = np.arange(3.0, dtype=np.float32)
    child = os.fork()
    if child == 0:
        os._exit(0 if float((jnp.asarray(x) + 1).sum()) == 6 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_guards(caplog: Any) -> None:
    x = jit(lambda: jnp.ones(3))()
    with pullback.transfer_guard("disallow"):
        y = x + 4321.5
        with pytest.raises(errors.TransferGuardError, match="device-to-host transfer of f32"):
            np.asarray(y)
        with pytest.raises(errors.TransferGuardError, match="host-to-device transfer of f32"):
            jit(lambda x: x)(np.ones(3, np.float32))
        with pytest.raises(errors.TransferGuardError, match="host-to-device transfer of f32"):
            x[:1] + np.ones(10_000, np.float32)
        np.testing.assert_array_equal(pullback.device_get(y), [4322.5] * 3)
        assert device_put(np.ones(3)).devices() == {FIRST}
    with pullback.transfer_guard_device_to_host("log"), caplog.at_level(logging.WARNING, "pullback"):
        assert str(x + 2) == "[3. 3. 3.]"
    assert "device-to-host" in caplog.text
    with pullback.transfer_guard_device_to_device("disallow_explicit"), pytest.raises(errors.TransferGuardError):
        device_put(x, SECOND)


def test_a_mesh_of_gpus() -> None:
    mesh = pullback.make_mesh((2,), ("x",))
    assert list(mesh.devices.flat) == [FIRST, SECOND]
    x = device_put(jnp.arange(4.0), pullback.NamedSharding(mesh, pullback.P("x")))
    out = jit(lambda x: x * 2 + x.sum())(x)
    np.testing.assert_array_equal(out, [6, 8, 10, 12])
    assert (x + 1).sharding.device_set == {FIRST, SECOND}
    with pytest.raises(errors.ExchangeError, match="over several devices cannot be exchanged"):
        x.__dlpack__()


class Theirs:
    """An array of another library on a GPU: memory of NumPy's, for the stand-in."""

    def __init__(self, value: np.ndarray[Any, Any], kind: int = 2) -> None:
        self.value, self.kind, self.streams = value, kind, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 1

    def __dlpack__(self, **options: Any) -> Any:
        self.streams.append(options)
        return self.value.__dlpack__()


def aligned(count: int) -> Any:
    memory = np.zeros(count + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + count]


def test_arrays_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share the memory, in both directions, and each library is told of the other's stream."""
    value = aligned(64)
    theirs = Theirs(value)
    ours = jnp.from_dlpack(theirs)
    assert (ours.devices(), ours.committed, theirs.streams) == ({SECOND}, True, [{}])
    value[:] = 3
    assert float(ours[5]) == 3
    assert ours.__dlpack_device__() == (2, 1)
    copied = jnp.from_dlpack(theirs, copy=True)
    value[:] = 4
    assert (float(copied[5]), float((ours + 1)[5])) == (3, 5)
    jit(lambda x: x * 0, donate_argnums=0)(ours)
    assert value[5] == 4
    given: list[Any] = []
    export = client.shared_to_dlpack
    monkeypatch.setattr(client, "stream_of", lambda device: 77)
    monkeypatch.setattr(client, "shared_from_dlpack", lambda c, d, stream, k: given.append(stream) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jnp.from_dlpack(theirs)
    assert (theirs.streams[-1], given) == ({"stream": 77}, [77])
    monkeypatch.setattr(client, "shared_to_dlpack", lambda buffer, stream: given.append(stream) or export(buffer, None))
    x = device_put(jnp.arange(3.0), SECOND)
    for stream in (None, -1, 1, 2, 1 << 40):
        assert "dltensor" in str(x.__dlpack__(stream=stream, max_version=(1, 0)))
    assert given[1:] == [None, None, 1, 2, 1 << 40]
    monkeypatch.undo()
    assert x.unsafe_buffer_pointer() == x._buffer.unsafe_buffer_pointer()
    assert not hasattr(device_put(x, HOST), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="only defined for GPU buffers"):  # the runtime knows that it is none
        x.__cuda_array_interface__  # noqa: B018
    on_host = types.SimpleNamespace(__dlpack_device__=lambda: (1, 0), __dlpack__=lambda **options: x.__dlpack__())
    shared = np.from_dlpack(on_host)
    assert shared.__array_interface__["data"][0] == x._buffer.unsafe_buffer_pointer()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.__dlpack__(stream=0), "stream must be None, -1, or a stream of CUDA .*got 0"),
        (lambda x: x.__dlpack__(stream="main"), "got 'main'"),
        (lambda x: x.__dlpack__(dl_device=(2, 0)), r"is on CudaDevice\(id=1\), got dl_device=\(2, 0\)"),
        (lambda x: x.__dlpack__(dl_device=(1, 0), copy=False), "must be copied to CPU memory, but copy is False"),
        (lambda x: device_put(jnp.zeros(2, "int4"), SECOND).__dlpack__(), "DLPack has no int4"),
        (lambda x: jnp.from_dlpack(Theirs(np.ones(3), kind=14)), "DLPack's kind 14, number 1; copy it to CPU"),
        (
            lambda x: jnp.from_dlpack(Theirs(aligned(64).view(np.float64))),
            "converted to float32 by its library",
        ),
    ],
)
def test_exchanges_that_are_refused(call: Any, message: str) -> None:
    with pytest.raises(errors.ExchangeError, match=message):
        call(device_put(jnp.arange(3.0), SECOND))


def test_a_copy_for_the_host() -> None:
    x = device_put(jnp.arange(3.0), SECOND)
    assert "dltensor" in str(x.__dlpack__(dl_device=(1, 0)))
    np.testing.assert_array_equal(np.asarray(x), [0, 1, 2])


def test_profiles_name_transfers(tmp_path: Path) -> None:
    x = jit(lambda: jnp.ones((4, 8)))()
    with pullback.profiler.trace(str(tmp_path)):
        np.asarray(x + 1234.5)
        device_put(np.ones(5, np.float32), SECOND)
        device_put(x, SECOND)
    assert not transfers.watchers
    (path,) = tmp_path.rglob("perfetto_trace.json.gz")
    with gzip.open(path) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("name", "").endswith(" transfer")]
    assert [(e["name"], *map(e["args"].get, ("bytes", "type", "source", "target"))) for e in events] == [
        ("host-to-device transfer", "4", "float32[]", "host", "cuda:0"),
        ("device-to-host transfer", "128", "float32[4x8]", "cuda:0", "host"),
        ("host-to-device transfer", "20", "float32[5]", "host", "cuda:1"),
        ("device-to-device transfer", "128", "float32[4x8]", "cuda:0", "cuda:1"),
    ]
