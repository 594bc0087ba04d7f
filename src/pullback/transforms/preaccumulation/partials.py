"""Partial derivatives of elementwise operations, and the products and sums of them that elimination needs.

A partial derivative is a number, an array, or a :class:`Factor`, which is cheaper to multiply by than its array.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import SCALARS, ArrayImpl
from pullback.core.linear import LinearVar
from pullback.core.trace import RuleKind
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays.shapes import broadcast_in_dim_p


class Factor:
    """A partial derivative that is represented by the operation that multiplies by it, instead of by an array.

    The product is rounded as in the jvp rule of the differentiated operation.
    """

    __slots__ = ()

    def of(self, x: Any) -> Any:
        """Multiply an array by the factor."""
        raise NotImplementedError


class Selected(Factor):
    """The factor of an operand of ``select_n``: 1 where the operand is selected, and 0 elsewhere.

    Its product with an infinity or NaN is 0 where the operand is not selected.
    """

    __slots__ = ("case", "count", "which")

    def __init__(self, which: Any, case: int, count: int) -> None:
        self.which = which
        self.case = case
        self.count = count

    def of(self, x: Any) -> Any:
        return ops.select_n(self.which, *[x if i == self.case else 0 for i in range(self.count)])


class Divided(Factor):
    """The partial derivative ``1 / x``. To multiply by it is to divide by ``divisor``, the array ``x``."""

    __slots__ = ("divisor",)

    def __init__(self, divisor: Any) -> None:
        self.divisor = divisor

    def of(self, x: Any) -> Any:
        divisor = self.divisor
        return ops.div(x, divisor if type(divisor) in SCALARS else ops.convert_element_type(divisor, x.dtype))


def as_array(partial: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a partial derivative, a factor or an array, to an array of a dtype."""
    if isinstance(partial, Factor):
        return partial.of(ArrayImpl(dtype.type(1), False))
    return partial if partial.dtype == dtype else ops.convert_element_type(partial, dtype)


def stored(partial: Any) -> Any:
    """Return the array that is stored for multiplications by a partial derivative.

    This is the derivative itself; for a :class:`Factor`, the divisor or the array that selects.
    """
    if isinstance(partial, Selected):
        return partial.which
    return partial.divisor if isinstance(partial, Divided) else partial


def times(outer: Any, inner: Any, dtype: np.dtype[Any]) -> Any:
    """Multiply two partial derivatives; ``dtype`` is the dtype of the differentiated variable."""
    if type(outer) in SCALARS and type(inner) in SCALARS:
        return outer * inner
    for number, other in ((outer, inner), (inner, outer)):
        if type(number) in SCALARS:
            if number == 1:
                return other
            value = as_array(other, dtype)
            return ops.neg(value) if number == -1 else ops.mul(value, number)
    if isinstance(outer, Factor):
        return outer.of(as_array(inner, dtype))
    if isinstance(inner, Factor):
        return inner.of(as_array(outer, dtype))
    return ops.mul(as_array(outer, dtype), as_array(inner, dtype))


def plus(a: Any, b: Any, dtype: np.dtype[Any]) -> Any:
    """Add two partial derivatives; ``dtype`` is the dtype of the differentiated variable."""
    if type(a) in SCALARS and type(b) in SCALARS:
        return a + b
    if type(a) in SCALARS:
        a, b = b, a
    return ops.add(as_array(a, dtype), b if type(b) in SCALARS else as_array(b, dtype))


# By operation -------------------------------------------------------------------------------------------------------

Edges = list[tuple[LinearVar, Any]]
edges = RuleKind("edges", "the jvp rule is called")
"""``rule(*args, **params) -> edges``, of a linear elementwise operation: pairs of a linear operand and its factor, a
number, an array, :class:`Divided` or :class:`Selected`. None if it is not elementwise with these parameters."""


def edges_of(node: LinearVar) -> Edges | None:
    """Return the linear operands of an elementwise operation on a tape, each with its partial derivative.

    Return None if there is no rule for the operation.
    """
    if node.primitive is None or node.results is not None or dtypes.is_complex(node.dtype):
        return None
    rule = edges.of(node.primitive)
    return None if rule is None else rule(*node.args, **node.params)


def _sum(x: Any, y: Any, sign: int = 1) -> Edges:
    """Return the linear operands of ``x + y``, each with its partial derivative, 1 or -1.

    If ``sign`` is -1, the operation is ``x - y``.
    """
    return [(v, n) for v, n in ((x, 1), (y, sign)) if type(v) is LinearVar]


def _select(which: Any, *cases: Any) -> Edges:
    """Return the linear operands among ``cases`` in ``select_n(which, *cases)``, each with its partial derivative."""
    return [(x, Selected(which, i, len(cases))) for i, x in enumerate(cases) if type(x) is LinearVar]


def _broadcast(x: LinearVar, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]) -> Edges | None:
    """Return the linear operand of a broadcast, with its partial derivative.

    Return None if the broadcast is not one that elementwise operations do implicitly.
    """
    trailing = tuple(range(len(shape) - len(x.shape), len(shape)))
    return [(x, 1)] if tuple(broadcast_dimensions) == trailing else None


edges(ops.add_any_p)(_sum)
edges(ops.add_p)(_sum)
edges(ops.sub_p)(partial(_sum, sign=-1))
edges(ops.neg_p)(lambda x: [(x, -1)])
edges(ops.mul_p)(lambda x, y: [(x, y) if type(x) is LinearVar else (y, x)])
edges(ops.div_p)(lambda x, y: [(x, Divided(y))])
edges(ops.copy_p)(lambda x: [(x, 1)])
edges(ops.convert_element_type_p)(lambda x, **params: [(x, 1)])
edges(broadcast_in_dim_p)(_broadcast)
edges(ops.select_n_p)(_select)
