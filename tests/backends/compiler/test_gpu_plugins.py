"""What plug-ins of GPUs need beside their library, without a GPU: the modules of the plug-in are stand-ins here."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from pullback.backends.compiler import client, gpu_plugins
from pullback.core.errors import BackendError


class Registry:
    """What stands for ``jaxlib.xla_client``: it keeps what is registered, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.calls.append((name, *args, *sorted(kwargs.items())))


def stand_in(missing: tuple[str, ...] = ()) -> Any:
    """A function that imports: the modules of a plug-in, without those that are ``missing``."""
    extension = types.SimpleNamespace(
        ffi_types=lambda: {"Plan": 1}, ffi_handlers=lambda: {"xla_callback": 2},
        register_custom_type=lambda *args: None, register_custom_call_target=lambda *args: None,
    )  # fmt: skip
    started: list[int] = []
    empty = types.SimpleNamespace(registrations=lambda: {"CUDA": []})
    solver = types.SimpleNamespace(
        registrations=lambda: {"CUDA": [("cusolver_potrf_ffi", 3, 1), ("old", 4, 0)], "ROCM": [("hip", 5, 1)]},
        batch_partitionable_targets=lambda: ["cusolver_potrf_ffi"],
        initialize_hybrid_kernels=lambda: started.append(1),
    )

    def module(name: str) -> Any:
        if name.endswith("_extension"):
            if name.partition(".")[0] in missing:
                raise ImportError(name)
            return extension
        return solver if name == "jaxlib.gpu_solver" else empty

    module.started = started  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("missing", [(), ("jax_cuda13_plugin",)])
def test_functions_are_registered(missing: tuple[str, ...]) -> None:
    registry, module = Registry(), stand_in(missing)
    gpu_plugins.register("cuda", "api", registry, module)
    assert [call[:2] for call in registry.calls[:2]] == [
        ("register_custom_type_handler", "CUDA"), ("register_custom_call_handler", "CUDA"),
    ]  # fmt: skip
    typed, untyped = ("api_version", 1), ("api_version", 0)
    on = ("platform", "CUDA")
    assert registry.calls[2:] == [
        ("register_custom_type", "Plan", 1, on),
        ("register_custom_call_target", "xla_callback", 2, typed, on),
        ("register_custom_call_target", "cusolver_potrf_ffi", 3, typed, on),
        ("register_custom_call_target", "old", 4, untyped, on),
        ("register_custom_call_as_batch_partitionable", "cusolver_potrf_ffi", "api"),
    ]
    assert module.started == [1]


def test_without_the_package_nothing_is_registered() -> None:
    registry = Registry()
    gpu_plugins.register("cuda", "api", registry, stand_in(gpu_plugins.PACKAGES["cuda"]))
    gpu_plugins.register("tpu", "api", registry, stand_in())
    assert registry.calls == []


def test_libraries_are_loaded_in_the_order_of_their_needs(tmp_path: Path) -> None:
    for file in ("cublas/lib/libcublasLt.so.13", "cu13/lib/libcudart.so.13", "cudnn/lib/libcudnn.so.9", "x/lib/a.so.1"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    found = gpu_plugins.library_files([str(tmp_path)])
    assert [Path(file).name for file in found] == ["libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9"]


def test_options_of_memory() -> None:
    assert gpu_plugins.memory_options({}) == {}
    environment = {
        "PULLBACK_GPU_MEMORY_FRACTION": "0.5", "PULLBACK_GPU_PREALLOCATE": "false", "PULLBACK_GPU_ALLOCATOR": "BFC",
    }  # fmt: skip
    assert gpu_plugins.memory_options(environment) == {
        "memory_fraction": 0.5, "preallocate": False, "allocator": "bfc",
    }  # fmt: skip
    assert gpu_plugins.memory_options({"PULLBACK_GPU_PREALLOCATE": "1"}) == {"preallocate": True}


@pytest.mark.parametrize(
    ("variable", "value"),
    [("MEMORY_FRACTION", "much"), ("MEMORY_FRACTION", "1.5"), ("PREALLOCATE", "2"), ("ALLOCATOR", "own")],
)
def test_options_of_memory_that_are_wrong(variable: str, value: str) -> None:
    with pytest.raises(BackendError, match=f"PULLBACK_GPU_{variable} must be .*, got '{value}'"):
        gpu_plugins.memory_options({f"PULLBACK_GPU_{variable}": value})


def test_variables_of_jax_apply_where_there_are_no_own_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.25")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    found = client._gpu_options("cuda")
    assert (found["memory_fraction"], found["preallocate"]) == (0.25, False)
    monkeypatch.setenv("PULLBACK_GPU_MEMORY_FRACTION", "0.75")
    assert client._gpu_options("rocm")["memory_fraction"] == 0.75
    assert client._gpu_options("nowhere") == {}
