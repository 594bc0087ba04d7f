"""``platform_dependent`` and ``composite``: code that depends on the platform, and named operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from pullback.control.conditional import switch
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.errors import ArgumentError, MissingRuleError
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives.rules import jvp_zero
from pullback.transforms.debugging.named_scope import named_call

P = ParamSpec("P")
R = TypeVar("R")

platform_index_p = Primitive("platform_index", cost=Cost.SIMPLE)
platform_index_p.jvp_rule = jvp_zero(platform_index_p)
platform_index_p.abstract_eval(lambda *, platforms, default: ShapedArray((), np.dtype(np.int32)))

_ALSO = {"cuda": ("gpu",), "rocm": ("gpu",), "gpu": ("cuda", "rocm")}


def _index(platform: str, platforms: tuple[str, ...], default: bool) -> int:
    """The index of the function for ``platform``: its position in ``platforms``, or that of the default function.

    The default function comes after the functions for ``platforms``. Raises if the platform is absent and there is no
    default.
    """
    for name in (platform, *_ALSO.get(platform, ())):
        if name in platforms:
            return platforms.index(name)
    if default:
        return len(platforms)
    raise MissingRuleError(
        f"platform_dependent: no function for the platform {platform!r}, on which this runs: pass {platform}= or "
        f"default=; got {', '.join(platforms) or 'none'}"
    )


@platform_index_p.host
def _index_host(*, platforms: tuple[str, ...], default: bool) -> Any:
    return np.int32(_index("cpu", platforms, default))


@platform_index_p.lowering
def _index_lowering(hlo: Any, *, platforms: tuple[str, ...], default: bool) -> Any:
    return hlo.number(_index(hlo.module.platform, platforms, default), np.dtype(np.int32))


def platform_dependent(*args: PyTree, default: Callable[..., R] | None = None, **per_platform: Callable[..., R]) -> R:
    """Run the function for the platform on which the program runs.

    A traced program has all functions; lowering selects the function for the platform. Eager code runs the function for
    the host, ``cpu``.

    Args:
      args: trees of arrays.
      default: the function for other platforms.
      per_platform: functions by platform: ``cpu=``, ``cuda=``, ``rocm=``, ``gpu=`` (for CUDA and ROCm), ``tpu=``.

    Returns:
      The result of the function, a tree of arrays.

    Raises:
      ArgumentError: an argument is no function (a TypeError and a ValueError).
      MissingRuleError: there is no function for the platform, and no default (a NotImplementedError).

    >>> from pullback import jit, lax
    >>> f = lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)
    >>> print(f(1.0), jit(f)(1.0))
    2.0 2.0
    """
    named = per_platform if default is None else {**per_platform, "default": default}
    for name, branch in named.items():
        require_function("platform_dependent", name, branch)
    branches = list(named.values())
    if default is not None and not per_platform:
        return default(*args)
    index = platform_index_p.bind(platforms=tuple(per_platform), default=default is not None)
    if len(branches) == 1:
        branches *= 2  # keeps the choice in the program, so that lowering for other platforms raises
    result: R = switch(index, branches, *args)
    return result


def composite(decomposition: Callable[P, R], name: str, version: int = 0) -> Callable[P, R]:
    """Make a function that applies a decomposition, under a name.

    The compiler has no operations for such names. Programs have the operations of the decomposition, in a named scope,
    so that all transformations apply to them.

    Args:
      decomposition: a function of trees of arrays; its keyword arguments are attributes of the operation.
      name: the name, such as ``"my.tangent"``.
      version: the version of the operation, an int that is not negative.

    Returns:
      A function like ``decomposition``.

    Raises:
      ArgumentError: the name is no string, or the version no such int (a TypeError and a ValueError).

    >>> from pullback import grad, lax
    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), name="my.tangent")
    >>> print(tangent(0.0), grad(tangent)(0.0))
    0.0 1.0
    """
    require_function("composite", "decomposition", decomposition)
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"composite: name must be a non-empty string, got {name!r}")
    if not isinstance(version, int) or version < 0:
        raise ArgumentError(f"composite: version must be a non-negative int, got {version!r}")
    return named_call(decomposition, name=name)
