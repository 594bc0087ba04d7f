"""What the plug-ins of GPUs need beside their library: NVIDIA's libraries, options of memory, and functions to call.

Programs call the functions of cuSOLVER, cuSPARSE and others by names that the packages ``jax_cuda13_plugin`` and
``jax_rocm7_plugin`` register. Only their packages of JAX's name are read, never JAX itself.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pullback.core.errors import BackendError

PACKAGES = {
    "cuda": ("jax_cuda13_plugin", "jax_cuda12_plugin"),
    "rocm": ("jax_rocm7_plugin", "jax_rocm60_plugin"),
}
"""By the platform, the packages that may have its functions, the preferred one first."""
_EXTENSIONS = {"cuda": "cuda_plugin_extension", "rocm": "rocm_plugin_extension"}
_MODULES = ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse")
"""The modules of ``jaxlib`` that list the functions of these packages."""

# Libraries --------------------------------------------------------------------------------------------------------

_LIBRARIES = (
    "libcudart", "libnvrtc", "libcublas", "libcublasLt", "libnccl", "libcupti", "libcusparse", "libcusolver",
    "libcufft", "libnvshmem_host", "libcudnn",
)  # fmt: skip
"""The libraries that the plug-in opens by name when they are first needed, each after those that it needs itself."""


def library_files(folders: Sequence[str]) -> list[str]:
    """Return the files of NVIDIA's libraries in its Python packages, in the order in which they are loaded.

    Args:
      folders: the folders of the package ``nvidia``, of which each other package is a folder with a folder ``lib``.
    """
    patterns = [os.path.join(folder, "*", "lib", f"{name}.so.*") for name in _LIBRARIES for folder in folders]
    return [min(found) for found in map(glob.glob, patterns) if found]


def load_libraries() -> None:
    """Load NVIDIA's libraries from its Python packages, so that the plug-in finds them by their names.

    What cannot be loaded is left to the system's search path: the plug-in says what it does not find.
    """
    spec = importlib.util.find_spec("nvidia")
    for file in library_files(list(spec.submodule_search_locations or ()) if spec is not None else ()):
        try:
            ctypes.CDLL(file)
        except OSError:
            continue


# Memory -----------------------------------------------------------------------------------------------------------

_ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm")


def memory_options(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of memory that environment variables select, for the client of a GPU.

    ``PULLBACK_GPU_MEMORY_FRACTION`` is the share of a GPU's memory that the process takes, ``PULLBACK_GPU_PREALLOCATE``
    whether it takes that share at once, ``PULLBACK_GPU_ALLOCATOR`` the allocator. Those that are not set are left to
    JAX's variables, such as ``XLA_PYTHON_CLIENT_MEM_FRACTION``.

    Raises:
      BackendError: a variable has another value (a RuntimeError).
    """
    found: dict[str, Any] = {}
    fraction = environment.get("PULLBACK_GPU_MEMORY_FRACTION", "")
    if fraction:
        try:
            found["memory_fraction"] = float(fraction)
        except ValueError:
            found["memory_fraction"] = 0.0
        if not 0 < found["memory_fraction"] <= 1:
            raise _wrong("PULLBACK_GPU_MEMORY_FRACTION", "a number above 0 and at most 1, such as 0.5", fraction)
    ahead = environment.get("PULLBACK_GPU_PREALLOCATE", "").lower()
    if ahead:
        if ahead not in ("0", "1", "false", "true"):
            raise _wrong("PULLBACK_GPU_PREALLOCATE", "0 or 1", ahead)
        found["preallocate"] = ahead in ("1", "true")
    allocator = environment.get("PULLBACK_GPU_ALLOCATOR", "").lower()
    if allocator:
        if allocator not in _ALLOCATORS:
            raise _wrong("PULLBACK_GPU_ALLOCATOR", f"one of {', '.join(_ALLOCATORS)}", allocator)
        found["allocator"] = allocator
    return found


def _wrong(variable: str, expected: str, got: str) -> BackendError:
    return BackendError(f"the environment variable {variable} must be {expected}, got {got!r}")


# Functions --------------------------------------------------------------------------------------------------------


def register(platform: str, c_api: Any, xla_client: Any, module: Callable[[str], Any]) -> None:
    """Register the functions that programs for a GPU call, if the package that has them is installed.

    Args:
      platform: ``"cuda"`` or ``"rocm"``.
      c_api: the loaded plug-in.
      xla_client: the module of ``jaxlib`` with the functions that register.
      module: imports a module by its name; raises ImportError.
    """
    runtime = platform.upper()
    extension = _extension(platform, module)
    if extension is None:
        return
    xla_client.register_custom_type_handler(runtime, partial(extension.register_custom_type, c_api))
    xla_client.register_custom_call_handler(runtime, partial(extension.register_custom_call_target, c_api))
    for name, kind in extension.ffi_types().items():
        xla_client.register_custom_type(name, kind, platform=runtime)
    for name, function in extension.ffi_handlers().items():
        xla_client.register_custom_call_target(name, function, platform=runtime, api_version=1)
    for listed in map(module, (f"jaxlib.{name}" for name in _MODULES)):
        for name, function, version in listed.registrations().get(runtime, ()):
            xla_client.register_custom_call_target(name, function, platform=runtime, api_version=version)
        for name in getattr(listed, "batch_partitionable_targets", list)():
            xla_client.register_custom_call_as_batch_partitionable(name, c_api)
    solver = module("jaxlib.gpu_solver")
    solver.initialize_hybrid_kernels()  # so that those that compute on the host find LAPACK


def _extension(platform: str, module: Callable[[str], Any]) -> Any:
    for package in PACKAGES.get(platform, ()):
        try:
            return module(f"{package}.{_EXTENSIONS[platform]}")
        except ImportError:
            continue
    return None
