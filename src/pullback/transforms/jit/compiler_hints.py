"""Choices that a user makes for the compiler: when nested functions are inlined, and how hard it works."""

from __future__ import annotations

import enum


class Inline(enum.Enum):
    """When a function under ``jit`` is inlined in another one: values of the argument ``inline`` of ``jit``.

    ``JAX_EARLY`` inlines its equations while the other function is traced, as ``inline=True`` does. With the others the
    call stays in the traced program, as with ``inline=False``, and the compiler decides.

    >>> from pullback import Inline, jit, make_jaxpr
    >>> print(make_jaxpr(jit(lambda x: -x, inline=Inline.JAX_EARLY))(1.0))
    { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


class CompilerEffortLevel(enum.Enum):
    """How much time the compiler may spend: ``optimization_level`` among the ``compiler_options`` of ``jit`` is one.

    The switches such as ``jax_optimization_level`` take one too, and have no effect.

    >>> from pullback import CompilerEffortLevel, config, jit
    >>> print(jit(lambda x: x + 1, compiler_options={"optimization_level": CompilerEffortLevel.O1})(1.0))
    2.0
    >>> print(jit(lambda x: x + 1, compiler_options={"optimization_level": "O0"})(1.0))
    2.0
    >>> config.update("jax_optimization_level", CompilerEffortLevel.O1)
    >>> config.update("jax_optimization_level", "UNKNOWN")
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39
