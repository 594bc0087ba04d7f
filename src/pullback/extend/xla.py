"""Compiler passes written in Python: ``jax.extend.xla``."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.compiler import client as _client
from pullback.core.faces import face

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]
face(globals())


class PipelineStage(enum.Enum):
    """When a pass runs: before instructions are ordered (``PRE_SCHEDULER``), or after (``POST_SCHEDULER``).

    >>> from pullback.extend.xla import PipelineStage
    >>> PipelineStage.PRE_SCHEDULER.value
    0
    """

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def register_hlo_module_transformation(
    callback: Callable[[bytes], bytes | None],
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> None:
    """Have the compiler call a function on each program, which may return another program.

    Programs in the cache on disk are not compiled, and so not transformed: turn the cache off, by the switch
    ``enable_compilation_cache``.

    Args:
      callback: takes a serialised ``HloModuleProto``, and returns another, or None to leave the program as it is.
      name: the name of the pass.
      stage: when it runs.
      platforms: the platforms whose programs it sees; by default those in use.

    Raises:
      BackendError: this ``jaxlib`` has no such passes (a RuntimeError).

    >>> from pullback import config, jit
    >>> from pullback.extend.xla import clear_hlo_module_transformation, register_hlo_module_transformation
    >>> config.update("enable_compilation_cache", False)
    >>> register_hlo_module_transformation(lambda program: print(type(program)), name="look")
    >>> out = jit(lambda x: x * 5 - 1)(2.0)
    <class 'bytes'>
    >>> clear_hlo_module_transformation("look")
    True
    >>> config.update("enable_compilation_cache", True)
    """
    for platform in _chosen(platforms):
        if platform == "cpu":
            _client.compiler_passes("register_xla_transform")(name, stage.value, callback)
        else:
            _client.compiler_passes("register_xla_transform_c_api")(_plugin(platform), name, stage.value, callback)


def clear_hlo_module_transformation(
    name: str, stage: PipelineStage = PipelineStage.PRE_SCHEDULER, platforms: Sequence[str] | str | None = None
) -> bool:
    """Remove a pass that :func:`register_hlo_module_transformation` has registered.

    Args:
      name: the name of the pass.
      stage: when it runs.
      platforms: the platforms; by default those in use.

    Returns:
      Whether there was such a pass.

    Raises:
      BackendError: this ``jaxlib`` has no such passes (a RuntimeError).

    >>> from pullback.extend.xla import clear_hlo_module_transformation
    >>> clear_hlo_module_transformation("never registered")
    False
    """
    removed = [
        _client.compiler_passes("clear_xla_transform")(name, stage.value)
        if platform == "cpu"
        else _client.compiler_passes("clear_xla_transform_c_api")(_plugin(platform), name, stage.value)
        for platform in _chosen(platforms)
    ]
    return any(removed)


def _chosen(platforms: Sequence[str] | str | None) -> list[str]:
    if platforms is None:
        _client.client()
        return [*_client.clients()]
    return [platforms] if isinstance(platforms, str) else [*platforms]


def _plugin(platform: str) -> Any:
    _client.client(platform)
    return _client.library().jax.get_pjrt_plugin(platform)
