"""The sums that derivative rules need: of two terms, over axes, and over the axes of a broadcast.

A broadcast and a sum over axes are transposes of each other, so both rules are here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.host import reductions as host
from pullback.core.array import typeof
from pullback.core.errors import MissingRuleError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive, Rule, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.core.user_types import types_of_values
from pullback.primitives.arrays import shapes
from pullback.primitives.axis_maps import mapped_to_front, reduces
from pullback.primitives.checks import INEXACT, NUMBER, Of, broadcast_shape, check_dtype, same_dtype
from pullback.primitives.rules import axis_kept, jvp_linear, unsummed

# Of two terms ------------------------------------------------------------------------------------------------------


class _SumOfTwo(Primitive):
    """The sum of two tangents or cotangents; for those that are values of users' types, their type adds them."""

    def bind(self, x: Any, y: Any) -> Any:  # type: ignore[override]
        if types_of_values and (user_type := _user_type(x)) is not None:
            return user_type.vspace_add(x, y)
        return state.trace.process(self, (x, y), {})


def _user_type(x: Any) -> Any:
    """The type of a value of a user's type; None for an array, and for results of operations that say no types."""
    try:
        aval = typeof(x)
    except MissingRuleError:
        return None
    return None if isinstance(aval, ShapedArray) else aval


# The terms have the same shape, without broadcasting, so that the transpose does not sum.
add_any_p = _SumOfTwo("add_any", elementwise=True, cost=Cost.LIGHT, signs=(1, 1))
add_any: Rule = add_any_p.bind
add_any_p.host_rule = operator.add
add_any_p.lowering(
    lambda hlo, x, y: hlo.elementwise("stablehlo.add", *[hlo.broadcast(v, hlo.result.shape) for v in (x, y)])
)
add_any_p.transpose(lambda ct, x, y: (ct if type(x) is LinearVar else None, ct if type(y) is LinearVar else None))


@add_any_p.abstract_eval
def _add_any_abstract_eval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    dtype = same_dtype("add_any", (x, y))
    check_dtype("add_any", INEXACT, dtype)
    return ShapedArray(broadcast_shape("add_any", [x.shape, y.shape]), dtype)


axis_kept(add_any_p)(lambda axis, operand, x, y: axis)


@add_any_p.batch
def _add_any_batch(axis: MappedAxis, args: Any, dims: Any) -> Any:
    return add_any(*mapped_to_front(axis, args, dims)), 0


@add_any_p.tangent
def _add_any_tangent(ans: Any, primals: Any, tangents: Any) -> Any:
    tx, ty = tangents
    return ty if tx is ZERO else tx if ty is ZERO else add_any(tx, ty)


# Over axes ---------------------------------------------------------------------------------------------------------


def reduced_shape(name: str, shape: Shape, axes: Shape) -> Shape:
    """Return ``shape`` without the reduced ``axes``; raise unless these are distinct axes of ``shape``."""
    if any(not 0 <= a < len(shape) for a in axes) or len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: {axes} are not distinct axes of an array of shape {shape}")
    return tuple(n for i, n in enumerate(shape) if i not in axes)


Start = Callable[[np.dtype[Any]], Any]
"""A function from a dtype to the neutral element of an operation."""
Element = str | Callable[..., Any]
"""An operation of two elements: its name in StableHLO, or ``rule(hlo, x, y) -> value``."""


def reduction(
    name: str, *, of: Of, host: Callable[..., Any], hlo: Element, start: Start, passes_nan: bool = False
) -> Primitive:
    """Declare an operation that reduces over its parameter ``axes``, and keeps the dtype of its operand.

    Args:
      name: the name in jaxprs and errors.
      of: a predicate on dtypes: the dtypes that the operand may have.
      host: the NumPy function.
      hlo: the StableHLO operation that combines two elements, or ``rule(hlo, x, y) -> value``.
      start: a function from a dtype to the result of a reduction over no elements.
      passes_nan: whether the result is NaN only if an element is NaN.
    """
    p = Primitive(name, cost=Cost.SIMPLE, passes_nan=passes_nan)
    p.host_rule = host
    reduces(p)
    p.lowering_rule = _xla_reduction(hlo, start)

    @p.abstract_eval
    def shape(x: ShapedArray, *, axes: Shape) -> ShapedArray:
        check_dtype(name, of, x.dtype)
        return ShapedArray(reduced_shape(name, x.shape, axes), x.dtype)

    return p


def _xla_reduction(operation: Element, start: Start) -> Callable[..., Any]:
    def rule(hlo: Any, x: Any, *, axes: Shape) -> Any:
        from pullback.backends.hlo.recurrences import carried_dtype

        if not axes:
            return x
        wide = hlo.convert(x, carried_dtype(x.dtype)) if operation in ("add", "multiply") else x
        scalar = ((), wide.dtype)
        body = hlo.region([scalar, scalar], lambda a, b: [combined(operation, hlo, a, b)])
        operands = [wide, hlo.number(wide.dtype.type(start(x.dtype)), wide.dtype)]
        results = [(hlo.result.shape, wide.dtype)]
        out = hlo.multi_result("stablehlo.reduce", operands, results, f"dimensions = {hlo.integers(axes)}", [body])[0]
        return hlo.convert(out, x.dtype)

    return rule


def combined(operation: Element, hlo: Any, a: Any, b: Any) -> Any:
    """Emit ``operation`` of the two elements ``a`` and ``b``.

    ``operation`` is the name of a StableHLO operation, or a lowering rule.
    """
    return operation(hlo, a, b) if callable(operation) else hlo.elementwise(f"stablehlo.{operation}", a, b)


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """Return the sum of ``x`` over ``axes``."""
    return reduce_sum_p.bind(x, axes=tuple(axes)) if axes else x


reduce_sum_p = reduction("reduce_sum", of=NUMBER, host=host.reduce_sum, hlo="add", start=lambda dtype: 0)
reduce_sum_p.jvp_rule = jvp_linear(reduce_sum_p)


@unsummed(reduce_sum_p)
def _unsummed(axis: int, operand: int, x: Shape, *, axes: Shape) -> tuple[dict[str, Any], int] | None:
    others = tuple(a for a in axes if a != axis)
    return ({"axes": others}, axis - sum(a < axis for a in others)) if axis in axes else None


@reduce_sum_p.transpose
def _reduce_sum_transpose(ct: Any, x: LinearVar, *, axes: Shape) -> Any:
    shape = x.shape
    unreduced = [i for i in range(len(shape)) if i not in axes]
    return (shapes.broadcast_in_dim(ct, shape, unreduced),)


@shapes.broadcast_in_dim_p.transpose
def _broadcast_transpose(ct: Any, x: LinearVar, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
    unreduced = [d for n, d in zip(x.shape, broadcast_dimensions, strict=True) if n != 1 or shape[d] == 1]
    out = reduce_sum(ct, [d for d in range(len(shape)) if d not in unreduced])
    return (shapes.reshape(out, x.shape),)


def unbroadcast(x: Any, shape: Shape) -> Any:
    """Sum ``x`` to ``shape``, over the axes along which NumPy would broadcast ``shape`` to the shape of ``x``."""
    extra = len(x.shape) - len(shape)
    summed = [*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1)]
    return shapes.reshape(reduce_sum(x, summed), shape)


def sum_to(ct: Any, x: LinearVar) -> Any:
    """Sum the cotangent ``ct`` to the shape of the operand ``x``: over the axes along which ``x`` was broadcast."""
    shape = x.shape
    return ct if ct.shape == shape else unbroadcast(ct, shape)
