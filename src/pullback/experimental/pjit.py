"""``pjit``, the older name of ``jit`` with shardings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from pullback.backends.devices.shardings import DeviceLike
from pullback.core.annotations import PyTree
from pullback.core.faces import face
from pullback.transforms.jit.jit import JitFunction, jit

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["pjit"]
face(globals())


def pjit(
    fun: Callable[P, R],
    in_shardings: PyTree = None,
    out_shardings: PyTree = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: DeviceLike = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> JitFunction[P, R]:
    """Compile a function, as ``pullback.jit`` does; options may also be positional here.

    Args:
      fun: a function of trees of arrays, which returns a tree of arrays.
      in_shardings: how the arguments are sharded: a tree of shardings or specifications, or None.
      out_shardings: how the results are sharded, in the same form.
      static_argnums: the positions of static arguments, whose values are part of the program.
      static_argnames: their names.
      donate_argnums: the positions of arguments whose memory results may take over.
      donate_argnames: their names.
      keep_unused: whether the program keeps arguments that it does not use.
      device: the device to run on, or None.
      backend: the platform to run on, or None.
      inline: whether calls in other traced functions are inlined.
      compiler_options: options of the compiler, by name.

    Returns:
      The compiled function.

    Raises:
      ArgumentError: ``fun`` is no function, or an option has a value that it does not take (a TypeError and a
        ValueError).
      ShardingError: a sharding is none, or does not fit its array (a TypeError and a ValueError).

    Options and errors are those of ``pullback.jit``.

    >>> from pullback.experimental.pjit import pjit
    >>> print(pjit(lambda x: x + 1)(1.0))
    2.0
    """
    return jit(
        fun,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=keep_unused,
        device=device,
        backend=backend,
        inline=inline,
        compiler_options=compiler_options,
    )
