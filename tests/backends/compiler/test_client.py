"""Devices, transfers, and the company of JAX in one process."""

from __future__ import annotations

import gc
import importlib.util
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import errors, jit
from pullback.backends.compiler import client
from pullback.backends.compiler.backend import Backend


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_processor_by_default() -> None:
    (device,) = pullback.devices()
    assert (device.platform, device.id, str(device)) == ("cpu", 0, "CpuDevice(id=0)")
    assert pullback.local_devices() == [device]
    assert (pullback.device_count(), pullback.default_backend()) == (1, "cpu")
    assert jnp.ones(3).device is device
    assert jit(lambda x: x + 1)(1.0).devices() == {device}


def test_put_and_get() -> None:
    tree = {"a": np.arange(3.0), "b": [1, True]}
    put = pullback.device_put(tree, pullback.devices()[0])
    assert put["a"].committed
    assert not pullback.device_put(tree)["a"].committed
    back = pullback.device_get(put)
    np.testing.assert_array_equal(back["a"], np.arange(3.0, dtype=np.float32))
    assert isinstance(back["a"], np.ndarray)
    assert put["b"][0].weak_type
    out = jit(lambda t: t["a"] * 2)(put)
    assert out.committed
    key = pullback.device_put(pullback.random.key(7), pullback.devices()[0])
    np.testing.assert_array_equal(pullback.random.key_data(key), pullback.random.key_data(pullback.random.key(7)))


def test_put_takes_a_snapshot() -> None:
    mine = np.zeros(100000, np.float32)
    put = pullback.device_put(mine)
    mine[:] = 1
    assert float(put[5]) == 0


@pytest.mark.parametrize("place", [3, object()])
def test_a_place_that_is_none(place: object) -> None:
    with pytest.raises(errors.BackendError, match="expected a device"):
        pullback.device_put(1.0, place)


def test_a_platform_that_is_not_there() -> None:
    text = (
        r"no platform 'nowhere' here\. Platforms are cpu, and cuda once its plug-in is installed.*PULLBACK_NOWHERE_PL"
    )
    with pytest.raises(errors.BackendError, match=text):
        pullback.devices("nowhere")
    with pytest.raises(errors.BackendError, match="no platform"):
        jit(lambda x: x, device="nowhere")(1.0)


def test_processes_that_cannot_be_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, for which jaxlib has no connections between CPU devices."""
    lib = client.library()

    def refuse(**options: object) -> None:
        raise lib.jax.JaxRuntimeError("only implemented for linux and macos")

    group = types.SimpleNamespace(host="localhost")
    monkeypatch.setattr(client, "_joined", (group, None))
    monkeypatch.setattr(lib, "jax", types.SimpleNamespace(**{**vars(lib.jax), "make_gloo_tcp_collectives": refuse}))
    with pytest.raises(errors.BackendError, match="cannot connect the CPU devices of several processes: only"):
        client._cpu_client()


def test_a_platform_whose_library_does_not_load(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    monkeypatch.setenv("PULLBACK_BROKEN_PLUGIN", str(broken))
    with pytest.raises(errors.BackendError, match="does not work here"):
        pullback.devices("broken")


def test_several_devices() -> None:
    run("""
import pullback, numpy as np
import pullback.numpy as jnp
from pullback import jit, grad
pullback.config.update("num_cpu_devices", 3)
a, b, c = pullback.devices()
f = jit(lambda x: x * 2.0)
x = pullback.device_put(jnp.arange(3.0), b)
y = f(x)
assert y.device is b and y.committed, y.device
assert f(jnp.arange(3.0)).device is a
z = f(f(pullback.device_put(y, c)))
assert z.device is c
np.testing.assert_array_equal(z, [0, 8, 16])
assert jit(lambda x: x + 1, device=c)(1.0).device is c
with pullback.default_device(b):
    free = f(jnp.ones(3))
    assert free.device is b and not free.committed
np.testing.assert_array_equal(f(free), [4, 4, 4])        # moved to the default device
np.testing.assert_array_equal(jit(jnp.add)(free, x), [2, 3, 4])
try:
    jit(jnp.add)(x, z)
except pullback.errors.BackendError as error:
    assert "different devices" in str(error)
else:
    raise AssertionError
try:
    x + z
except ValueError as error:
    assert "different devices" in str(error)
else:
    raise AssertionError
assert float(grad(lambda x: f(x).sum())(x)[0]) == 2.0
""")


def test_loops_that_are_compiled_by_themselves_run_on_the_default_device() -> None:
    run("""
import pullback
from pullback import lax
pullback.config.update("num_cpu_devices", 2)
for device in [*pullback.devices(), *pullback.devices()]:
    with pullback.default_device(device):
        x = lax.while_loop(lambda x: x < 300.0, lambda x: x + 1.0, 0.0)
        assert x.device is device and float(x) == 300.0, (x.device, device)
""")


def test_more_devices_than_there_are() -> None:
    run("""
import pullback
pullback.jit(lambda x: x)(1.0); pullback.jit(lambda x: x + 1)(1.0)
try:
    pullback.config.update("num_cpu_devices", 2)
except RuntimeError as error:
    assert "the CPU is already in use as 1 device" in str(error)
else:
    raise AssertionError
assert len(pullback.devices()) == 1
""")


BOTH = """
import numpy as np

def ours():
    import pullback, pullback.numpy as jnp
    f = pullback.jit(lambda x: jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(3)).sum() + jnp.tanh(x).sum())
    x = jnp.arange(9.0).reshape(3, 3)
    with pullback.enable_x64():
        assert pullback.jit(lambda x: x + 1)(1.0).dtype == np.float64
    return float(f(x)), np.asarray(pullback.grad(f)(x))

def theirs():
    import jax, jax.numpy as jnp
    f = jax.jit(lambda x: jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(3)).sum() + jnp.tanh(x).sum())
    x = jnp.arange(9.0).reshape(3, 3)
    assert jax.jit(lambda x: x + 1)(1.0).dtype == np.float32
    return float(f(x)), np.asarray(jax.grad(f)(x))

results = [run() for run in (FIRST, SECOND, FIRST, SECOND)]
for value, gradient in results[1:]:
    np.testing.assert_allclose(value, results[0][0], rtol=1e-5)
    np.testing.assert_allclose(gradient, results[0][1], rtol=1e-4)
import jax, pullback
np.testing.assert_array_equal(jax.numpy.asarray(np.asarray(pullback.jit(pullback.numpy.sin)(1.0))), jax.numpy.sin(1.0))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("order", ["ours, theirs", "theirs, ours"])
def test_jax_in_the_same_process(order: str) -> None:
    first, second = order.split(", ")
    run(BOTH.replace("FIRST", first).replace("SECOND", second))


def test_a_program_that_the_compiler_refuses_names_the_operation_and_the_line() -> None:
    from pullback.extend import Primitive, ShapedArray

    bad_p = Primitive("bad")
    bad_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    bad_p.lowering(lambda hlo, x: hlo.op("stablehlo.no_such_operation", [x], x.shape, x.dtype))
    with pytest.raises(errors.CompilationError, match=r"(?s)test_client\.py.*stablehlo\.no_such_operation"):
        jit(bad_p.bind)(1.0)


PRIVATE = (
    "execute_sharded|consume_with_handlers|get_hlo_text|get_compiled_memory_stats|consume_token|_to_np_array_did_copy|"
    r"_copy_single_device|batched_device_put|(?<!backend_)compile_and_load|client\.serialize_executable|"
    "hlo_module_cost_analysis"
)


def test_one_module_knows_jaxlib() -> None:
    root = Path(client.__file__).parents[2]
    texts = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")}
    imports = r"(?m)^\s*(import|from) jaxlib|imported\(f?[\"']jaxlib|import_module\(f?[\"']jaxlib"
    for what in (imports, PRIVATE):
        assert [name for name, text in texts.items() if re.search(what, text)] == ["backends/compiler/client.py"]


def test_any_module_with_what_the_protocol_asks_for_serves_as_the_compiler() -> None:
    names = [name for name in vars(Backend) if not name.startswith("_")]
    out = run(f"""
import sys, tempfile, types
from pullback.backends.compiler import backend, client
asked = []
def noted(name):
    return lambda *args, **kwargs: asked.append(name) or getattr(client, name)(*args, **kwargs)
other = sys.modules["other"] = types.ModuleType("other")
vars(other).update({{name: noted(name) for name in {names}}})
backend.ADAPTER = "other"
import numpy as np, pullback, pullback.numpy as jnp
pullback.config.update("compilation_cache_dir", tempfile.mkdtemp())
big = jnp.arange(100.0)
step = pullback.jit(lambda s, x: {{k: v * x + big for k, v in s.items()}}, donate_argnums=0)
state = step({{"a": jnp.ones(100), "b": jnp.zeros(100)}}, np.float32(2))
assert float(step(state, 3.0)["a"][1]) == 10.0
compiled = pullback.jit(jnp.sin).lower(1.0).compile()
assert compiled.cost_analysis() and "sine" in compiled.as_text() and float(compiled(0.0)) == 0.0
pullback.device_put(jnp.ones(3), pullback.devices()[0]).block_until_ready()
print(*sorted(set(asked)))
""")
    assert {"put", "fetch", "compile_text", "executable", "serialize", "tree_registry"} <= set(out.split())


@pytest.mark.parametrize("calls_python", [False, True])
def test_calls_leave_nothing_behind_that_the_runtime_has_set_aside(calls_python: bool) -> None:
    """Objects that threads without Python's lock let go of are set aside until the runtime is asked to free them."""
    like = pullback.ShapeDtypeStruct((3,), "float32")
    f = jit(lambda x: pullback.pure_callback(np.sin, like, x) if calls_python else jnp.sin(x))
    x = jnp.ones(3)
    assert _left_behind(lambda: f(x), 2048) < 1100


def test_executables_that_are_not_called_leave_nothing_behind() -> None:
    assert _left_behind(lambda: jit(lambda x: jnp.sin(x)).lower(1.0).compile(), 300) < 150


def _left_behind(call: Callable[[], object], count: int) -> int:
    """Make calls, the first ``count`` of them to warm up; return by how many blocks Python has allocated more."""
    for _ in range(count):
        call()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(count):
        call()
    gc.collect()
    return sys.getallocatedblocks() - before
