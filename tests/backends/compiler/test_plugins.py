"""Plug-ins for GPUs: which is found, its options, what is registered, and what errors say. None of it needs a GPU."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import config, errors
from pullback.backends.compiler import client, plugins
from pullback.core.config import override
from tests.helpers import ROOT


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of fake packages, which Python imports from."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [m for m in sys.modules if m.partition(".")[0] in ("jax_plugins", "jax_cuda13_plugin")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("PULLBACK_CUDA_PLUGIN", "PJRT_NAMES_AND_LIBRARY_PATHS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_where_the_library_is(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plugins.library_of("elsewhere") is None
    twelve = write(packages / "jax_plugins/xla_cuda12/xla_cuda_plugin.so")
    assert plugins.library_of("cuda") == str(twelve)
    thirteen = write(packages / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    assert plugins.library_of("cuda") == str(thirteen)
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "cuda:/a.so,elsewhere:/b.so")
    assert [plugins.library_of(name) for name in ("cuda", "elsewhere")] == ["/a.so", "/b.so"]
    monkeypatch.setenv("PULLBACK_CUDA_PLUGIN", "/c.so")
    assert plugins.library_of("cuda") == "/c.so"


OPTIONS: list[tuple[dict[str, str], dict[str, Any], dict[str, Any]]] = [
    ({}, {}, {"enable_mock_nccl": False}),
    ({"PULLBACK_GPU_MEMORY_FRACTION": "0.5"}, {}, {"memory_fraction": 0.5}),
    ({"PULLBACK_GPU_PREALLOCATE": "false"}, {}, {"preallocate": False}),
    ({"PULLBACK_GPU_PREALLOCATE": "1"}, {}, {"preallocate": True}),
    ({"PULLBACK_GPU_ALLOCATOR": "cuda_async"}, {}, {"allocator": "cuda_async"}),
    ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {}, {"preallocate": False}),
    ({"XLA_CLIENT_MEM_FRACTION": ".9", "PULLBACK_GPU_MEMORY_FRACTION": ".3"}, {}, {"memory_fraction": 0.3}),
    ({}, {"cuda_visible_devices": "0,2"}, {"visible_devices": [0, 2]}),
    ({}, {"mock_num_gpu_processes": 4}, {"enable_mock_nccl": True, "num_nodes": 4}),
    ({}, {"mock_gpu_topology": "2x4x8"}, {"enable_mock_nccl": True, "num_nodes": 8, "mock_gpu_topology": "2x4x8"}),
    ({}, {"pjrt_client_create_options": "allocator:bfc;a:b"}, {"allocator": "bfc", "a": "b"}),
    ({}, {"pjrt_client_create_options": {"n": 3}}, {"n": 3}),
]


@pytest.mark.parametrize(("variables", "switches", "expected"), OPTIONS)
def test_options(
    variables: dict[str, str], switches: dict[str, Any], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _options(variables, switches, monkeypatch)
    assert made["platform_name"] == "cuda"
    assert {name: made[name] for name in expected} == expected
    assert ("visible_devices" in made) is ("cuda_visible_devices" in switches)


def _options(variables: dict[str, str], switches: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = {name: config.read(name) for name in switches}
    try:
        for name, value in switches.items():
            config.update(name, value)
        return plugins.options_of("cuda", client.library().xla_client.generate_pjrt_gpu_plugin_options)
    finally:
        for name, value in before.items():
            config.update(name, value)


BAD: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"PULLBACK_GPU_MEMORY_FRACTION": "much"}, {}, "PULLBACK_GPU_MEMORY_FRACTION must be a positive number.*'much'"),
    ({"PULLBACK_GPU_MEMORY_FRACTION": "0"}, {}, "must be a positive number"),
    ({"PULLBACK_GPU_ALLOCATOR": "mine"}, {}, "must be one of default, platform, bfc, cuda_async, vmm, got 'mine'"),
    ({"XLA_PYTHON_CLIENT_ALLOCATOR": "mine"}, {}, "the memory of GPUs: .*XLA_PYTHON_CLIENT_ALLOCATOR"),
    ({}, {"cuda_visible_devices": "first"}, "cuda_visible_devices must be 'all', or numbers.*'first'"),
    ({}, {"mock_gpu_topology": "8"}, "mock_gpu_topology must be .*'2x4x8', got '8'"),
    ({}, {"pjrt_client_create_options": "a"}, "must be 'name:value;name:value', or a dictionary, got 'a'"),
]


@pytest.mark.parametrize(("variables", "switches", "message"), BAD)
def test_options_that_are_refused(
    variables: dict[str, str], switches: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(errors.ArgumentError, match=message):
        _options(variables, switches, monkeypatch)


class FakeRuntime:
    """The functions of ``jaxlib`` by which plug-ins are loaded. It notes what is asked of it.

    Attributes:
      fails: the message of the error with which making the client ends; None if it succeeds.
    """

    def __init__(self, fails: str | None = None) -> None:
        self.fails = fails
        self.asked: list[tuple[Any, ...]] = []
        self.generate_pjrt_gpu_plugin_options = dict

    def pjrt_plugin_loaded(self, name: str) -> bool:
        return False

    pjrt_plugin_initialized = pjrt_plugin_loaded

    def load_pjrt_plugin_dynamically(self, name: str, path: str) -> str:
        self.asked.append(("load", name, path))
        return "the interface"

    def initialize_pjrt_plugin(self, name: str) -> None:
        self.asked.append(("initialize", name))

    def make_c_api_client(self, name: str, options: dict[str, Any], common: Any) -> Any:
        self.asked.append(("make", name, options, common))
        if self.fails:
            raise RuntimeError(self.fails)
        return types.SimpleNamespace(devices=lambda: ["a device"])

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("register_"):
            raise AttributeError(name)
        return lambda *args, **options: self.asked.append((name, *args, options.get("platform")))


def runtime(monkeypatch: pytest.MonkeyPatch, fails: str | None = None) -> FakeRuntime:
    fake = FakeRuntime(fails)
    monkeypatch.setattr(client, "library", lambda: types.SimpleNamespace(xla_client=fake))
    monkeypatch.setenv("PULLBACK_CUDA_PLUGIN", "/fake/xla_cuda13/plugin.so")
    monkeypatch.setattr(client, "_c_apis", {})
    return fake


def test_a_client_is_made_as_jax_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the packages are registered before the client is made, and processes tell it of each other."""
    fake = runtime(monkeypatch)
    functions = types.SimpleNamespace(
        registrations=lambda: {"CUDA": [("solve", "f", 1)], "ROCM": [("other", "g", 1)]},
        batch_partitionable_targets=lambda: ["solve"],
        initialize_hybrid_kernels=lambda: fake.asked.append(("hybrid",)),
    )
    extension = types.SimpleNamespace(
        register_custom_type=print, register_custom_call_target=print, ffi_types=lambda: {"cache": "t"},
        ffi_handlers=lambda: {"call_python": "h"},
    )  # fmt: skip
    known = {
        "jaxlib.version": types.SimpleNamespace(__version__="1.2.3"),
        "jaxlib.plugin_support": types.SimpleNamespace(import_from_plugin=lambda *names: extension),
        "jaxlib.gpu_solver": functions,
    }
    monkeypatch.setattr(client, "imported", lambda name: known.get(name) or types.SimpleNamespace())
    monkeypatch.setattr(plugins, "release_of", lambda name: "1.2.3")
    group = types.SimpleNamespace(
        process=1, processes=2, visible=(3,), link=types.SimpleNamespace(result=lambda work, what: work())
    )
    monkeypatch.setattr(client, "_joined", (group, "the service"))
    assert client._plugin_client("cuda").devices()
    assert [entry[:2] for entry in fake.asked if entry[0] in ("load", "initialize", "make", "hybrid")] == [
        ("load", "cuda"), ("initialize", "cuda"), ("hybrid",), ("make", "cuda"),
    ]  # fmt: skip
    assert ("register_custom_call_target", "solve", "f", "CUDA") in fake.asked
    assert ("register_custom_call_target", "call_python", "h", "CUDA") in fake.asked
    assert ("register_custom_type", "cache", "t", "CUDA") in fake.asked
    assert ("register_custom_call_as_batch_partitionable", "solve", "the interface", None) in fake.asked
    assert not any("other" in entry for entry in fake.asked)
    options, common = fake.asked[-1][2:]
    assert (options["node_id"], options["num_nodes"], options["visible_devices"], common) == (1, 2, [3], "the service")


def test_a_plug_in_of_another_release_than_jaxlib(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = runtime(monkeypatch)
    write(packages / "jax_cuda13_plugin/__init__.py")
    write(packages / "jax_cuda13_plugin/version.py", "__version__ = '0.1.2.dev3'")
    with pytest.raises(
        errors.BackendError, match=r"'cuda' is of release 0\.1\.2\.dev3, and jaxlib of release .*must be"
    ):
        client._plugin_client("cuda")
    assert not fake.asked
    assert plugins.misfit("cuda", "0.1.2") is None
    assert plugins.misfit("another", "0.1.2") is None


def test_a_plug_in_without_a_gpu(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime(monkeypatch, fails="no supported devices found.")
    monkeypatch.setattr(client, "_register_calls", lambda name, c_api: None)
    monkeypatch.setattr(plugins, "has_hardware", lambda name: False)
    message = "does not work here: no supported devices found. This machine shows no GPU: none of /dev/nvidia0.*CPU|cpu"
    with pytest.raises(errors.BackendError, match=message):
        client._plugin_client("cuda")


def test_a_plug_in_whose_libraries_are_missing(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime(monkeypatch, fails="it failed")
    monkeypatch.setattr(client, "_register_calls", lambda name, c_api: None)
    monkeypatch.setattr(plugins, "has_hardware", lambda name: True)
    write(packages / "jax_cuda13_plugin/__init__.py")
    text = "def cudnn_get_version():\n    raise RuntimeError('cuDNN not found.')\ndef cufft_get_version(): return 1\n"
    write(packages / "jax_cuda13_plugin/_versions.py", text)
    with pytest.raises(errors.BackendError, match=r"do not load: cudnn \(cuDNN not found\.\)\. pip install"):
        client._plugin_client("cuda")
    write(packages / "jax_cuda13_plugin/_versions.py", "")
    sys.modules.pop("jax_cuda13_plugin._versions")
    monkeypatch.setattr(plugins, "_lacking", lambda name: [])
    with pytest.raises(errors.BackendError, match="hold the GPU's memory: PULLBACK_GPU_PREALLOCATE=false"):
        client._plugin_client("cuda")


def test_nvidias_libraries_of_the_same_release_are_loaded(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("cu13/lib/libcublas.so.13", "cublas/lib/libcublas.so.12", "nccl/lib/libnccl.so.2"):
        write(packages / "nvidia" / path)
    write(packages / "nvidia/cu13/lib/libcudart.so.13")
    tried: list[str] = []
    monkeypatch.setattr(plugins.ctypes, "CDLL", tried.append)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    names = lambda: [Path(path).name for path in tried]
    plugins.load_nvidia_libraries("/x/xla_cuda13/xla_cuda_plugin.so")
    assert names() == ["libcudart.so.13", "libcublas.so.13", "libnccl.so.2"]
    tried.clear()
    plugins.load_nvidia_libraries("/x/xla_cuda12/xla_cuda_plugin.so")
    assert names() == ["libcublas.so.12", "libnccl.so.2"]


def test_the_platform_of_programs(packages: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """A GPU, where there is one with its plug-in; without the plug-in a message says so, once."""
    found = plugins.automatic_platform.__wrapped__
    monkeypatch.setattr(plugins, "has_hardware", lambda name: False)
    assert found() == "cpu"
    monkeypatch.setattr(plugins, "has_hardware", lambda name: True)
    assert found() == "cpu"
    assert "the plug-in is missing: pip install 'pullback[cuda]'" in caplog.text
    write(packages / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    assert found() == "cuda"


def test_platforms_that_are_not_there() -> None:
    with pytest.raises(errors.BackendError, match=r"no platform 'rocm' here.*PULLBACK_ROCM_PLUGIN"):
        pullback.devices("rocm")
    with override("platforms", "rocm,cpu"), pytest.raises(errors.BackendError, match="no platform 'rocm'"):
        pullback.devices()


def test_importing_asks_no_plug_in() -> None:
    """Where the system's files show no GPU, nothing is searched, imported or loaded."""
    program = "import sys, pullback, pullback.numpy as n; n.ones(3) + 1; assert 'jaxlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
