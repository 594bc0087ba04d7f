"""PJRT plug-ins, by which the runtime uses GPUs: which are installed, their options, and why one does not work here.

A plug-in is a shared library. Its packages register it with the package ``jax``, which is never imported: this module
finds the library, and the options that JAX would give to it.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from pullback.core import systems
from pullback.core.config import config
from pullback.core.errors import ArgumentError


class Plugin(NamedTuple):
    """The packages of a platform that comes as a plug-in; the preferred ones are first.

    Attributes:
      modules: the modules that hold the library.
      extensions: the packages with the functions that programs call.
      hardware: files of which one exists where there is such a device.
    """

    modules: tuple[str, ...]
    extensions: tuple[str, ...]
    hardware: tuple[str, ...]


PLUGINS = {
    "cuda": Plugin(
        ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"),
        ("jax_cuda13_plugin", "jax_cuda12_plugin"),
        systems.NVIDIA_FILES,
    ),
}
"""Platforms that come as plug-ins whose packages are known here."""


def library_of(name: str) -> str | None:
    """Find the library of the platform ``name``: named by the environment, or installed; None if there is none.

    ``PULLBACK_<NAME>_PLUGIN`` names it, or JAX's variable ``PJRT_NAMES_AND_LIBRARY_PATHS``, a list of ``name:path``.
    """
    return os.environ.get(f"PULLBACK_{name.upper()}_PLUGIN") or _listed().get(name) or _installed(name)


def _listed() -> dict[str, str]:
    """Return the libraries that ``PJRT_NAMES_AND_LIBRARY_PATHS`` names, by platform."""
    text = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
    pairs = (entry.partition(":" if ":" in entry else ";") for entry in text.split(",") if entry)
    return {name.strip(): path.strip() for name, _, path in pairs}


def _installed(name: str) -> str | None:
    for folder in _folders(name):
        stem = os.path.join(folder, f"xla_{name}_plugin")
        for ending in systems.LIBRARY_ENDINGS:
            if os.path.exists(stem + ending):
                return stem + ending
    return None


def _folders(name: str) -> Iterator[str]:
    for module in PLUGINS[name].modules if name in PLUGINS else ():
        with suppress(ModuleNotFoundError):
            spec = importlib.util.find_spec(module)
            if spec is not None and spec.submodule_search_locations:
                yield spec.submodule_search_locations[0]


def has_hardware(name: str) -> bool:
    """Whether this machine seems to have a device of the platform ``name``; the system's files say so."""
    return name in PLUGINS and any(map(os.path.exists, PLUGINS[name].hardware))


@functools.cache
def automatic_platform() -> str:
    """The platform on which programs run if no switch names one: a GPU's if there is one with its plug-in, or cpu."""
    for name in PLUGINS:
        if has_hardware(name):
            if library_of(name) is not None:
                return name
            import logging

            logging.getLogger("pullback").warning(
                "this machine seems to have a GPU, which is not used, because the plug-in is missing: "
                "pip install 'pullback[%s]' (PULLBACK_PLATFORMS=cpu silences this message)", name,
            )  # fmt: skip
    return "cpu"


def missing(name: str) -> str:
    """Return the message for a platform of which there is no plug-in."""
    known = "".join(f", and {key} once its plug-in is installed (pip install 'pullback[{key}]')" for key in PLUGINS)
    return (
        f"there is no platform {name!r} here. Platforms are cpu{known}; the library of any other PJRT plug-in is "
        f"named by the environment variable PULLBACK_{name.upper()}_PLUGIN."
    )


# Options -------------------------------------------------------------------------------------------------------------

_NO = ("0", "false", "no", "off")


def options_of(name: str, of_jax: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the options of a platform's client.

    Args:
      name: the platform.
      of_jax: returns what the variables that JAX documents say, such as ``XLA_PYTHON_CLIENT_PREALLOCATE``.

    Raises:
      ArgumentError: a switch or a variable has a value that it does not take (a ValueError).
    """
    options = {}
    if name in PLUGINS:
        try:
            options = dict(of_jax())
        except ValueError as error:
            raise ArgumentError(f"the memory of GPUs: {error}") from None
        options["platform_name"] = name
        options |= _memory()
        visible = config.read(f"{name}_visible_devices")
        if visible != "all":
            options["visible_devices"] = _numbers(f"{name}_visible_devices", visible)
        options |= _mock()
    return options | _asked_for()


def _memory() -> dict[str, Any]:
    """Return the options for memory that Pullback's own variables set; they outweigh JAX's."""
    found: dict[str, Any] = {}
    if fraction := os.environ.get("PULLBACK_GPU_MEMORY_FRACTION"):
        found["memory_fraction"] = _fraction(fraction)
    if preallocate := os.environ.get("PULLBACK_GPU_PREALLOCATE"):
        found["preallocate"] = preallocate.strip().lower() not in _NO
    if allocator := os.environ.get("PULLBACK_GPU_ALLOCATOR"):
        allocators = ("default", "platform", "bfc", "cuda_async", "vmm")
        if allocator not in allocators:
            raise ArgumentError(f"PULLBACK_GPU_ALLOCATOR must be one of {', '.join(allocators)}, got {allocator!r}")
        found["allocator"] = allocator
    return found


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise ArgumentError(
            f"PULLBACK_GPU_MEMORY_FRACTION must be a positive number, the part of a GPU's memory that is reserved when "
            f"it is first used, 0.75 by default, got {text!r}"
        )
    return value


def _numbers(switch: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ArgumentError(f"{switch} must be 'all', or numbers of devices such as '0,2', got {text!r}") from None


def _mock() -> dict[str, Any]:
    """Return the options for a client that compiles for processes that are not there, as for ``mock_gpu_topology``."""
    topology, processes = config.mock_gpu_topology, config.mock_num_gpu_processes
    if topology:
        sizes = topology.split("x")
        if len(sizes) != 3 or not all(size.strip().isdigit() for size in sizes):
            raise ArgumentError(
                f"mock_gpu_topology must be 'slices x hosts per slice x devices per host', such as '2x4x8', got "
                f"{topology!r}"
            )
        processes = int(sizes[0]) * int(sizes[1])
    found: dict[str, Any] = {"enable_mock_nccl": processes > 0}
    if processes > 0:
        found["num_nodes"] = processes
    if topology:
        found["mock_gpu_topology"] = topology
    return found


def _asked_for() -> dict[str, Any]:
    """Return the options that the switch ``pjrt_client_create_options`` names, as a dictionary or ``key:value;...``."""
    given = config.pjrt_client_create_options
    if not given:
        return {}
    if isinstance(given, dict):
        return dict(given)
    pairs = [tuple(entry.split(":")) for entry in given.split(";") if entry]
    if any(len(pair) != 2 for pair in pairs):
        raise ArgumentError(
            f"pjrt_client_create_options must be 'name:value;name:value', or a dictionary, got {given!r}"
        )
    return dict(pairs)


# NVIDIA's libraries --------------------------------------------------------------------------------------------------

_NVIDIA = (
    "cudart", "nvrtc", "cublas", "cublasLt", "nccl", "cupti", "nvJitLink", "cusparse", "cusolver", "cufft",
    "nvshmem_host", "cudnn",
)  # fmt: skip
"""The libraries of NVIDIA that the plug-in uses, each after those that it needs itself."""


def load_nvidia_libraries(path: str) -> list[str]:
    """Load those of NVIDIA's libraries that are installed as Python packages, so that the plug-in finds these.

    Libraries that are not installed so, the system's loader looks for when the plug-in needs them.

    Args:
      path: the library of the plug-in, whose folder has the release of CUDA in its name.

    Returns:
      The paths of the libraries that were loaded.
    """
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    roots = [] if spec is None else list(spec.submodule_search_locations or ())
    twelve = "cuda12" in path
    loaded = []
    for library in _NVIDIA:
        for root in roots:
            for found in sorted(glob.glob(os.path.join(root, "*", "lib", f"lib{library}.so.[0-9]*"))):
                folder = os.path.basename(os.path.dirname(os.path.dirname(found)))
                if folder.startswith("cu1") is twelve and folder not in ("nccl", "nvshmem", "cudnn"):
                    continue  # of another release of CUDA: the packages of 13 are in one folder, cu13
                with suppress(OSError):
                    ctypes.CDLL(found)
                    loaded.append(found)
    return loaded


# Failures ------------------------------------------------------------------------------------------------------------


def release_of(name: str) -> str | None:
    """The release of the installed packages of a plug-in; None if they have none, or are not installed."""
    for package in PLUGINS[name].extensions if name in PLUGINS else ():
        with suppress(ImportError, AttributeError):
            return str(importlib.import_module(f"{package}.version").__version__)
    return None


def misfit(name: str, jaxlib: str) -> str | None:
    """Return the message for a plug-in of another release than ``jaxlib``'s; None if they fit.

    The library asks ``jaxlib`` for functions whose form changes between releases.
    """
    release = release_of(name)
    if release is None or _numbers_of(release) == _numbers_of(jaxlib):
        return None
    return (
        f"the plug-in for {name!r} is of release {release}, and jaxlib of release {jaxlib}; they must be equal: "
        f"pip install 'pullback[{name}]' 'jaxlib=={release}', or PULLBACK_PLATFORMS=cpu to use no GPU"
    )


def _numbers_of(release: str) -> list[str]:
    return re.match(r"[\d.]*", release)[0].strip(".").split(".")  # type: ignore[index]


def failed(name: str, path: str, error: object) -> str:
    """Return the message for a plug-in whose client cannot be made, with the reasons that are known."""
    message = f"the plug-in {path} for {name!r} does not work here: {str(error).rstrip('.')}."
    if name not in PLUGINS:
        return message
    if not has_hardware(name):
        files = ", ".join(PLUGINS[name].hardware)
        message += (
            f" This machine shows no GPU: none of {files} exists. The driver is not loaded, or a container was "
            "started without its devices (docker run --gpus all)."
        )
    elif lacking := _lacking(name):
        message += f" These parts of CUDA do not load: {'; '.join(lacking)}. pip install 'pullback[{name}]' has them."
    else:
        message += (
            " Other processes may hold the GPU's memory: PULLBACK_GPU_PREALLOCATE=false, or a smaller "
            "PULLBACK_GPU_MEMORY_FRACTION, asks for less."
        )
    return f"{message} PULLBACK_PLATFORMS=cpu uses no GPU."


def _lacking(name: str) -> list[str]:
    """Return what the parts of CUDA say that cannot tell their release."""
    found = []
    for package in PLUGINS[name].extensions:
        try:
            versions = importlib.import_module(f"{package}._versions")
        except ImportError:
            continue
        for attribute in sorted(vars(versions)):
            if attribute.endswith("_get_version"):
                try:
                    getattr(versions, attribute)()
                except Exception as error:
                    found.append(f"{attribute.removesuffix('_get_version')} ({str(error).splitlines()[0][:80]})")
        break
    return found
