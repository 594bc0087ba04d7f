"""The modules of ``extend`` that offer the runtime and the compiler: clients, MLIR, compiler passes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pullback
from pullback import clear_caches, config, devices, jit
from pullback.extend import backend, lowering, mlir, xla


def test_clients_by_platform() -> None:
    client = backend.get_backend()
    assert client is backend.get_backend("cpu") is backend.backends()["cpu"] is backend.get_backend(client)
    assert backend.get_default_device() is devices()[0]
    with pytest.raises(RuntimeError, match="there is no platform 'abacus' here"):
        backend.get_backend("abacus")
    with pytest.raises(ValueError, match="a platform 'cpu' already"):
        backend.register_backend_factory("cpu", lambda: None)


TWIN = """
import pullback
from pullback.extend.backend import register_backend_factory
from jaxlib import xla_client
register_backend_factory("twin", lambda: xla_client.make_cpu_client(num_devices=2))
print(pullback.devices("twin"))
x = pullback.device_put(pullback.numpy.arange(3.0), pullback.devices("twin")[1])
print(pullback.jit(lambda x: 2 * x)(x), pullback.jit(lambda x: 2 * x)(x).devices())
"""


def test_a_registered_platform_computes() -> None:
    done = subprocess.run([sys.executable, "-c", TWIN], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[TwinDevice(id=0), TwinDevice(id=1)]", "[0. 2. 4.] {TwinDevice(id=1)}"]


def test_options_of_the_compiler() -> None:
    options = backend.get_compile_options(1, 2, [devices() * 2], {"xla_cpu_enable_fast_math": True})
    assert (options.num_replicas, options.num_partitions) == (1, 2)
    with pytest.raises(ValueError, match=r"device_assignment must have shape \(1, 2\), got \(2,\)"):
        backend.get_compile_options(1, 2, [0, 1])


def test_caches_of_libraries_are_cleared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.transforms.jit import jit as module

    monkeypatch.setattr(module, "cleared_too", [])

    class Library:
        cleared = 0

        def cache_clear(self) -> None:
            self.cleared += 1

    library = Library()
    backend.register_backend_cache(library, "a test")
    clear_caches()
    assert library.cleared == 1
    with pytest.raises(TypeError, match="an object with a method cache_clear, got 3"):
        backend.register_backend_cache(3, "a number")


def test_mlir_reads_and_converts_programs() -> None:
    import pullback.extend.mlir.dialects.stablehlo as stablehlo
    from pullback.extend.mlir.dialects import func

    text = jit(lambda x: x + 1).lower(1.0).as_text()
    context = lowering.JaxIrContext()
    module = mlir.deserialize_portable_artifact(mlir.serialize_portable_artifact(text, "1.9.0"), context)
    parsed = mlir.ir.Module.parse(str(module), context)
    (function,) = parsed.body.operations
    assert isinstance(function, func.FuncOp)
    assert any(isinstance(o.opview, stablehlo.AddOp) for o in function.body.blocks[0].operations)
    assert lowering.upstream_dialects is not None
    assert mlir.passmanager.PassManager


def test_a_compiler_pass_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    config.update("enable_compilation_cache", False)
    try:
        xla.register_hlo_module_transformation(lambda program: seen.append(len(program)), name="look")
        assert jit(lambda x: x * 7 + 1)(2.0) == 15
        assert seen
        assert xla.clear_hlo_module_transformation("look")
        assert not xla.clear_hlo_module_transformation("look")
        count = len(seen)
        assert jit(lambda x: x * 8 + 1)(2.0) == 17
        assert len(seen) == count
    finally:
        config.update("enable_compilation_cache", True)


def test_names_are_listed() -> None:
    for module in (backend, lowering, mlir, xla):
        assert set(module.__all__) <= set(dir(module)), pullback
