"""Compilation rules in JAX's oldest spelling: ``jax.interpreters.xla``.

Rules were once functions that built operations with a class that the runtime no longer has. Rules from ``lower_fun``
still work; others raise an error that says what to write instead.

>>> import functools
>>> from pullback import core
>>> from pullback.interpreters import xla
>>> double_p = core.Primitive("double")
>>> implementation = double_p.def_impl(functools.partial(xla.apply_primitive, double_p))
>>> abstract = double_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
>>> xla.translations[double_p] = xla.lower_fun(lambda x: x + x, multiple_results=False)
>>> print(double_p.bind(2.0))
4.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core import rules
from pullback.core.errors import CustomRuleError
from pullback.core.faces import face
from pullback.core.source import describe_function
from pullback.core.trace import Primitive, Rule, missing_rule
from pullback.interpreters.mlir import LoweredFunction, register_lowering
from pullback.interpreters.mlir import lower_fun as lower_fun
from pullback.interpreters.table import Table


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Evaluate an operation by compiling it, as a program of one operation; for ``def_impl``.

    Args:
      prim: an operation with an abstract evaluation rule and a rule for the compiler.
      args: arrays and numbers.
      params: its parameters.

    Returns:
      An array, or a list of arrays if the operation has several results.

    Raises:
      MissingRuleError: it has no rule for the compiler (a NotImplementedError).

    >>> from pullback import lax
    >>> from pullback.interpreters import xla
    >>> print(xla.apply_primitive(lax.add_p, 1.0, 2.0))
    3.0
    """
    from pullback.backends.compiler.one_operation import evaluate

    if prim.lowering_rule is None:
        raise missing_rule(prim, "lowering", "compilation (apply_primitive)")
    return evaluate(prim, rules.as_operands(args), params)


def register_translation(prim: Primitive, rule: Callable[..., Any], *, platform: str | None = None) -> None:
    """Register the lowering rule of an operation.

    Args:
      prim: the operation.
      rule: from :func:`lower_fun`.
      platform: the platform of the rule, ``"cpu"``, ``"cuda"``, ...; None for all platforms without their own rule.

    Raises:
      CustomRuleError: the rule is not from ``lower_fun`` (a TypeError).

    >>> from pullback import core, jit
    >>> from pullback.interpreters import xla
    >>> double_p = core.Primitive("double")
    >>> double = double_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    >>> xla.register_translation(double_p, xla.lower_fun(lambda x: x + x, multiple_results=False))
    >>> print(jit(double_p.bind)(2.0))
    4.0
    """
    if not isinstance(rule, LoweredFunction):
        raise CustomRuleError(
            f"the translation rule of the primitive {prim.name!r}, {describe_function(rule)}, must be one made by "
            "xla.lower_fun: other rules need a class that the runtime no longer has. Write it with @p.lowering "
            "(pullback.extend), or register it with mlir.register_lowering if it builds operations of StableHLO."
        )
    register_lowering(prim, rule, platform)


def _translations(platform: str | None) -> Table:
    def register(primitive: Primitive, rule: Rule) -> None:
        register_translation(primitive, rule, platform=platform)

    return Table("translation", lambda primitive: primitive.lowering_rule, register, lambda primitive, rule: rule)


class _Platforms(dict[str, Table]):
    """A dictionary from platform names to tables; a table is made at its first use."""

    def __missing__(self, platform: str) -> Table:
        table = self[platform] = _translations(platform)
        return table


translations = _translations(None)
"""For each primitive, its rule from :func:`lower_fun`."""
backend_specific_translations = _Platforms()
"""For each platform, a table of rules from :func:`lower_fun` by primitive."""

__all__ = [
    "apply_primitive", "backend_specific_translations", "lower_fun", "register_translation", "translations",
]  # fmt: skip
face(globals())
