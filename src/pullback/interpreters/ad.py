"""Derivative rules in JAX's older spelling: ``jax.interpreters.ad``.

Classes:
  JVPTrace: the trace of differentiation, which applies derivative rules to primals and tangents; ``jvp`` and others
    make it.
  JVPTracer: a value with its tangent, ``primal`` and ``tangent``; a trace makes it.

>>> from pullback import core, jvp
>>> from pullback.interpreters import ad
>>> negate_p = core.Primitive("negate")
>>> negate = negate_p.def_impl(lambda x: -x)
>>> def rule(primals, tangents):
...     (x,), (t,) = primals, tangents
...     return negate_p.bind(x), ad.Zero(t.aval) if type(t) is ad.Zero else negate_p.bind(t)
>>> ad.primitive_jvps[negate_p] = rule
>>> print(*jvp(negate_p.bind, (2.0,), (1.0,)))
-2.0 -1.0
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import rules, trace, tree
from pullback.core.array import Array
from pullback.core.errors import CustomRuleError
from pullback.core.faces import face
from pullback.core.jaxpr import infer
from pullback.core.linear import LinearVar, operand_avals
from pullback.core.trace import Primitive, Rule
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import Zero as Zero
from pullback.core.zeros import instantiate_zeros as instantiate_zeros
from pullback.core.zeros import zeros_of
from pullback.interpreters.table import Table
from pullback.primitives.elementwise import add_any
from pullback.transforms.traces.forward import JVPTrace as JVPTrace
from pullback.transforms.traces.forward import JVPTracer as JVPTracer


class UndefinedPrimal:
    """A linear operand in a transposition rule, which has a type but no value.

    Attributes:
      aval: its type.

    >>> from pullback import core
    >>> from pullback.interpreters import ad
    >>> ad.UndefinedPrimal(core.ShapedArray((2,), "float32")).aval.shape
    (2,)
    """

    __slots__ = ("_linear",)

    def __init__(self, aval: ShapedArray) -> None:
        self._linear = LinearVar(-1, None, (), {}, aval)

    @property
    def aval(self) -> ShapedArray:
        return self._linear.aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval!s})"


tree.register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))


def is_undefined_primal(x: Any) -> bool:
    """Return whether an operand of a transposition rule is linear.

    Args:
      x: an operand: an array, or an :class:`UndefinedPrimal`.

    Returns:
      True for an :class:`UndefinedPrimal`, otherwise False.

    >>> from pullback import core
    >>> from pullback.interpreters import ad
    >>> ad.is_undefined_primal(ad.UndefinedPrimal(core.get_aval(1.0))), ad.is_undefined_primal(1.0)
    (True, False)
    """
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: ShapedArray) -> Array:
    """Return zeros of a type.

    Args:
      aval: the type of the result, a ``ShapedArray``.

    Returns:
      An array of zeros.

    >>> from pullback import core
    >>> from pullback.interpreters import ad
    >>> print(ad.zeros_like_aval(core.get_aval(1.0)))
    0.0
    """
    return zeros_of(aval)


def add_jaxvals(x: Any, y: Any) -> Any:
    """Return the sum of two arrays of one type.

    Args:
      x, y: arrays or numbers of one shape and dtype.

    Returns:
      An array of the same shape and dtype.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes differ (a TypeError and a ValueError).

    >>> from pullback.interpreters import ad
    >>> print(ad.add_jaxvals(1.0, 2.0))
    3.0
    """
    return add_any(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """Return the sum of two tangents of one type, each of which may be a :class:`Zero`.

    Args:
      x, y: arrays or numbers of one shape and dtype, or :class:`Zero`.

    Returns:
      An array of the same shape and dtype, or a :class:`Zero` if both are.

    Raises:
      OperandError: an argument is neither an array nor a number (a TypeError).
      ShapeError: the shapes differ (a TypeError and a ValueError).

    >>> from pullback.interpreters import ad
    >>> print(ad.add_tangents(1.0, ad.Zero.from_primal_value(2.0)))
    1.0
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_any(x, y)


# The tables -----------------------------------------------------------------------------------------------------------


def _inwards(given: Any) -> Any:
    """Convert the result of a user's rule, written for JAX: instances of JAX's ``Zero`` become Pullback's ``ZERO``.

    Lists and tuples are converted element by element.
    """
    if type(given) is Zero:
        return ZERO
    if isinstance(given, (tuple, list)):
        return (list if isinstance(given, list) else tuple)(map(_inwards, given))
    return given


def _tangent(t: Any, primal: Any) -> Any:
    return Zero.from_primal_value(primal) if t is ZERO else t


def _set_jvp(primitive: Primitive, rule: Rule) -> None:
    @functools.wraps(rule)
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        given = tuple(_tangent(t, x) for t, x in zip(tangents, primals, strict=True))
        return _inwards(rule(tuple(primals), given, **params))

    trace.Primitive.jvp(primitive, rules.checked_jvp(primitive, jvp))


def _spelled_jvp(primitive: Primitive, rule: Rule) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if all(type(t) is Zero for t in tangents):
            out = primitive.bind(*primals, **params)
            return out, _zero_tangents(primitive, out)
        out, tangent = rule(tuple(rules.as_operands(primals)), tuple(map(_inwards, tangents)), **params)
        if primitive.multiple_results:
            return out, [_tangent(t, o) for t, o in zip(tangent, out, strict=True)]
        return out, _tangent(tangent, out)

    return jvp


primitive_jvps = Table("jvp", lambda p: p.jvp_rule, _set_jvp, _spelled_jvp)
"""For each primitive, ``rule(primals, tangents, **params) -> (out, tangent_out)``; tangents may be :class:`Zero`."""


def _set_transpose(primitive: Primitive, rule: Rule) -> None:
    @functools.wraps(rule)
    def transpose(ct: Any, *operands: Any, **params: Any) -> Any:
        if primitive.multiple_results and any(c is ZERO for c in ct):
            avals = infer(primitive, operand_avals(operands), params)
            ct = [Zero(a) if c is ZERO else c for c, a in zip(ct, avals, strict=True)]
        return _inwards(rule(ct, *map(_undefined, operands), **params))

    trace.Primitive.transpose(primitive, rules.checked_transpose(primitive, transpose))


def _undefined(x: Any) -> Any:
    if type(x) is not LinearVar:
        return x
    undefined = object.__new__(UndefinedPrimal)
    undefined._linear = x
    return undefined


def _spelled_transpose(primitive: Primitive, rule: Rule) -> Rule:
    def transpose(ct: Any, *operands: Any, **params: Any) -> Any:
        ct = _inwards(ct)
        linear = [x._linear if type(x) is UndefinedPrimal else x for x in operands]
        if ct is ZERO or (primitive.multiple_results and all(c is ZERO for c in ct)):
            cts: Sequence[Any] = [ZERO] * len(linear)
        else:
            cts = rule(ct, *linear, **params)
        return [
            None if type(x) is not LinearVar or c is None else Zero(x.aval) if c is ZERO else c
            for c, x in zip(cts, linear, strict=True)
        ]

    return transpose


primitive_transposes = Table(
    "transpose", lambda primitive: primitive.transpose_rule, _set_transpose, _spelled_transpose
)
"""For each primitive, ``rule(ct, *operands, **params) -> cotangents``; linear operands are :class:`UndefinedPrimal`."""


def get_primitive_transpose(p: Primitive) -> Rule:
    """Return the transposition rule of an operation.

    Args:
      p: the operation.

    Returns:
      The rule, ``rule(ct, *operands, **params) -> cotangents``.

    Raises:
      MissingRuleError: it has none (a NotImplementedError).

    >>> from pullback import core, lax
    >>> from pullback.interpreters import ad
    >>> print(ad.get_primitive_transpose(lax.neg_p)(1.0, ad.UndefinedPrimal(core.get_aval(1.0)))[0])
    -1.0
    """
    rule = primitive_transposes.get(p)
    if rule is None:
        raise trace.missing_rule(p, "transpose", "reverse mode")
    return rule  # type: ignore[no-any-return]


# Rules of frequent forms ----------------------------------------------------------------------------------------------


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Register, for each operand, the tangent that it contributes.

    Args:
      primitive: an operation of one result.
      jvprules: for each operand ``rule(t, *primals, **params) -> tangent``, or None where the derivative is zero.

    Raises:
      CustomRuleError: in use, if there are not as many rules as operands (a TypeError).

    >>> from pullback import core, grad
    >>> from pullback.interpreters import ad
    >>> product_p = core.Primitive("product")
    >>> product = product_p.def_impl(lambda x, y: x * y)
    >>> ad.defjvp(product_p, lambda t, x, y: t * y, lambda t, x, y: x * t)
    >>> print(*grad(product_p.bind, argnums=(0, 1))(2.0, 3.0))
    3.0 2.0
    """
    defjvp2(primitive, *[None if rule is None else _without_result(rule) for rule in jvprules])


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, ans, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Register, for each operand, the tangent that it contributes, from the result and the operands.

    Args:
      primitive: an operation of one result.
      jvprules: for each operand ``rule(t, ans, *primals, **params) -> tangent``, or None where the derivative is zero.

    Raises:
      CustomRuleError: in use, if there are not as many rules as operands (a TypeError).

    >>> import numpy as np
    >>> from pullback import core, grad
    >>> from pullback.interpreters import ad
    >>> exponential_p = core.Primitive("exponential")
    >>> exponential = exponential_p.def_impl(np.exp)
    >>> ad.defjvp2(exponential_p, lambda t, ans, x: ans * t)
    >>> print(grad(exponential_p.bind)(0.0))
    1.0
    """

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if len(jvprules) != len(primals):
            raise CustomRuleError(
                f"{primitive.name} was given {len(jvprules)} derivative rules by defjvp, but has {len(primals)} "
                f"operands: pass one rule for each, and None for a derivative of zero"
            )
        out = primitive.bind(*primals, **params)
        terms = [
            rule(t, out, *primals, **params)
            for rule, t in zip(jvprules, tangents, strict=True)
            if rule is not None and type(t) is not Zero
        ]
        return out, functools.reduce(add_tangents, terms, Zero.from_primal_value(out))

    primitive_jvps[primitive] = jvp


def _linear_jvp(primitive: Primitive) -> Rule:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, _zero_tangents(primitive, out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    return jvp


def _zero_tangents(primitive: Primitive, out: Any) -> Any:
    return list(map(Zero.from_primal_value, out)) if primitive.multiple_results else Zero.from_primal_value(out)


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Register the derivatives of an operation that is linear in all its operands jointly.

    Args:
      primitive: the operation.
      transpose_rule: ``rule(ct, **params) -> cotangents``, one for each operand.

    >>> from pullback import core, grad
    >>> from pullback.interpreters import ad
    >>> double_p = core.Primitive("double")
    >>> double = double_p.def_impl(lambda x: x + x)
    >>> ad.deflinear(double_p, lambda ct: [ct + ct])
    >>> print(grad(double_p.bind)(1.0))
    2.0
    """
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Register the derivatives of an operation that is linear in all its operands jointly.

    Args:
      primitive: the operation.
      transpose_rule: ``rule(ct, *operands, **params) -> cotangents``, one for each operand.

    >>> import pullback.numpy as jnp
    >>> from pullback import core, grad
    >>> from pullback.interpreters import ad
    >>> total_p = core.Primitive("total")
    >>> total = total_p.def_impl(jnp.sum)
    >>> ad.deflinear2(total_p, lambda ct, x: [jnp.broadcast_to(ct, x.aval.shape)])
    >>> print(grad(total_p.bind)(jnp.ones(2)))
    [1. 1.]
    """
    primitive_jvps[primitive] = _linear_jvp(primitive)
    primitive_transposes[primitive] = transpose_rule


def defbilinear(primitive: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Register the derivatives of an operation of two operands that is linear in each.

    Args:
      primitive: the operation.
      lhs_rule: ``rule(ct, x, y, **params)``, the cotangent of the first operand; ``x`` is an :class:`UndefinedPrimal`.
      rhs_rule: ``rule(ct, x, y, **params)``, the cotangent of the second operand; ``y`` is undefined.

    >>> from pullback import core, grad
    >>> from pullback.interpreters import ad
    >>> product_p = core.Primitive("product")
    >>> product = product_p.def_impl(lambda x, y: x * y)
    >>> ad.defbilinear(product_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> print(grad(lambda x: product_p.bind(x, x))(3.0))
    6.0
    """

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> Any:
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    by_x = lambda t, x, y, **params: primitive.bind(t, y, **params)
    by_y = lambda t, x, y, **params: primitive.bind(x, t, **params)
    defjvp(primitive, by_x, by_y)
    primitive_transposes[primitive] = transpose
    primitive.linear_in = "each"


__all__ = [
    "JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero", "add_jaxvals", "add_tangents", "defbilinear", "defjvp",
    "defjvp2", "deflinear", "deflinear2", "get_primitive_transpose", "instantiate_zeros", "is_undefined_primal",
    "primitive_jvps", "primitive_transposes", "zeros_like_aval",
]  # fmt: skip
face(globals())
