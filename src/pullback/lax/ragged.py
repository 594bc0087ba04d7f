"""Products of arrays with an axis in groups of different sizes, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, PrecisionLike
from pullback.core.arguments import quote
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError, UnsupportedArgumentError
from pullback.lax import precision as precisions
from pullback.lax.arguments import ints
from pullback.lax.contraction import DotDimensionNumbers, dot_general
from pullback.lax.precision import DotAlgorithm
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg import ragged
from pullback.primitives.operands import array_operand
from pullback.primitives.reductions import reduce_sum
from pullback.transforms.programs.placement import spread


class RaggedDotDimensionNumbers:
    """The roles of the axes of the operands of :func:`ragged_dot_general`.

    Attributes:
      dot_dimension_numbers: as for :func:`dot_general`.
      lhs_ragged_dimensions: the axis of the left operand that is in groups, in a sequence.
      rhs_group_dimensions: the axis of the right operand with an element for each group, in a sequence; an empty one if
        the axis in groups is contracted or a batch axis.

    >>> from pullback import lax
    >>> lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    """

    def __init__(
        self,
        dot_dimension_numbers: DotDimensionNumbers,
        lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ) -> None:
        (lc, rc), (lb, rb) = dot_dimension_numbers
        self.dot_dimension_numbers = ((ints(lc), ints(rc)), (ints(lb), ints(rb)))
        self.lhs_ragged_dimensions = ints(lhs_ragged_dimensions)
        self.rhs_group_dimensions = ints(rhs_group_dimensions)

    def _all(self) -> tuple[Any, ...]:
        return self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedDotDimensionNumbers) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return f"RaggedDotDimensionNumbers({', '.join(map(repr, self._all()))})"


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of a matrix whose rows are in groups: each row is multiplied by the matrix of its group.

    Args:
      lhs: an array (m, k), whose rows are in groups one after the other.
      rhs: a matrix for each group, (g, k, n).
      group_sizes: the number of rows in each group, integers (g,); rows beyond the last group become zeros.
      precision, preferred_element_type, out_sharding: as for :func:`dot_general`.
      group_offset: must be None.

    Returns:
      An array (m, n).

    Raises:
      DtypeError, ShapeError: the operands do not fit each other.
      UnsupportedArgumentError: ``group_offset`` is not None (a NotImplementedError).

    Eager, each group is one product. Compiled, all rows are multiplied with each of the matrices, one after the other,
    without an array as large as rows times groups.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> weights = jnp.array([[[1.0]], [[10.0]]])
    >>> print(lax.ragged_dot(jnp.array([[1.0], [2.0], [3.0]]), weights, jnp.array([2, 1])).ravel())
    [ 1.  2. 30.]
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    x, y = array_operand("ragged_dot", lhs), array_operand("ragged_dot", rhs)
    if len(x.shape) != 2 or len(y.shape) != 3:
        raise ShapeError(f"lax.ragged_dot takes arrays (m, k) and (g, k, n), got shapes {x.shape} and {y.shape}")
    return ragged_dot_general(
        x, y, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )  # fmt: skip


# long: half of it is its documentation
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
    group_offset: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The contraction of two arrays, where an axis of the left operand is in groups of different sizes.

    Args:
      lhs, rhs: arrays.
      group_sizes: the number of elements of the axis in each group, integers (g,); or (..., g), with the axes of the
        left operand in front of it: the batch axes, and axes of its kind, contracted or free.
      ragged_dot_dimension_numbers: the roles of the axes. If the axis in groups is

        * free, the right operand has an axis with an element for each group, and each index is multiplied with the
          element of its group;
        * contracted, each group is contracted separately, and the result has a new first axis of the groups;
        * a batch axis, the result is the one of :func:`dot_general`.

      precision, preferred_element_type, out_sharding: as for :func:`dot_general`.
      group_offset: must be None.

    Returns:
      An array of the dtype to which the operands promote.

    Raises:
      DtypeError, ShapeError: the operands do not fit each other or the axes.
      UnsupportedArgumentError: ``group_offset`` is not None (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> print(lax.ragged_dot_general(jnp.arange(4.0), jnp.ones(4), jnp.array([1, 3]), numbers))
    [0. 6.]
    """
    if group_offset is not None:
        raise UnsupportedArgumentError("lax.ragged_dot: group_offset is not supported; slice rhs and group_sizes")
    x, y = array_operand("ragged_dot", lhs), array_operand("ragged_dot", rhs)
    sizes = array_operand("ragged_dot", group_sizes)
    free = _is_free(x, y, sizes, ragged_dot_dimension_numbers)
    numbers = ragged_dot_dimension_numbers
    where, (_, (lb, _)) = numbers.lhs_ragged_dimensions, numbers.dot_dimension_numbers
    if where[0] in lb:
        return dot_general(
            x, y, numbers.dot_dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
        )  # fmt: skip
    if preferred_element_type is None:
        total = dtypes.promote_types(x.dtype, y.dtype)
    else:
        total = dtypes.requested_dtype(preferred_element_type, "ragged_dot")
    contract = lambda x, y: (_each_row if free else _each_group)(x, y, sizes, numbers)
    algorithm = precisions.algorithm_of("ragged_dot", precision)

    def function(x: Any, y: Any) -> Any:
        if algorithm is not None:
            out = precisions.apply("ragged_dot", algorithm, contract, x, y)
        else:
            common = dtypes.accumulator(total, x.dtype, y.dtype)
            out = contract(ops.convert_element_type(x, common), ops.convert_element_type(y, common))
        return ops.convert_element_type(out, total)

    return spread(function, [x, y], out_sharding, "lax.ragged_dot")


def _is_free(x: Any, y: Any, sizes: Any, numbers: RaggedDotDimensionNumbers) -> bool:
    """Return whether the axis of ``x`` that is divided into groups is free: neither contracted nor a batch axis.

    Raise an error if the operands, the group sizes and the dimension numbers do not fit together.
    """
    if not dtypes.is_integer(sizes.dtype):
        raise DtypeError(f"lax.ragged_dot: group_sizes must be integers, got {dtypes.short_name(sizes.dtype)}")
    if not sizes.shape:
        raise ShapeError("lax.ragged_dot: group_sizes must have an axis for the groups, got a scalar")
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise ShapeError(
            f"lax.ragged_dot_general: the dimension numbers must be RaggedDotDimensionNumbers, got {quote(numbers)}"
        )
    ((lc, rc), (lb, rb)), where, groups = numbers._all()
    for axes, others in ((lc, rc), (lb, rb)):
        inside = all(0 <= i < len(x.shape) for i in axes) and all(0 <= i < len(y.shape) for i in others)
        if not inside or _sizes(x, axes) != _sizes(y, others):
            raise ShapeError(
                f"lax.ragged_dot: the axes {axes} of lhs and {others} of rhs must have equal sizes, got arrays of "
                f"shapes {x.shape} and {y.shape}"
            )
    if len(where) != 1 or not 0 <= where[0] < len(x.shape):
        raise ShapeError(
            f"lax.ragged_dot: exactly one axis of lhs is divided into groups, got {where} for an array "
            f"of shape {x.shape}"
        )
    free = where[0] not in (*lc, *lb)
    if len(groups) != free:
        raise ShapeError(
            f"lax.ragged_dot: the right operand needs {int(free)} axes of groups, as the axis {where[0]} of lhs is "
            f"{'neither contracted nor of the batch' if free else 'contracted or of the batch'}; got {groups}"
        )
    return free


def _each_row(x: Any, y: Any, sizes: Any, numbers: RaggedDotDimensionNumbers) -> Any:
    """Compute ``ragged_dot_general`` if the axis of groups is free: multiply each row by its group's matrix."""
    ((lc, rc), (lb, rb)), (axis,), (group,) = numbers._all()
    free = [i for i in range(len(x.shape)) if i not in (*lc, *lb)]
    outer, inner = free[: free.index(axis)], free[free.index(axis) + 1 :]
    columns = [i for i in range(len(y.shape)) if i not in (*rc, *rb, group)]
    batch, outside, rows = (_sizes(x, axes) for axes in (lb, outer, [axis, *inner]))
    contracted, width, count = _sizes(x, lc), _sizes(y, columns), y.shape[group]
    lead = math.prod(batch) * math.prod(outside)
    left = _merged(x, [*lb, *outer, axis, *inner, *lc], (lead, math.prod(rows), math.prod(contracted)))
    right = shapes.transpose(y, [*rb, group, *rc, *columns])
    one = (math.prod(batch), 1, count, math.prod(contracted), math.prod(width))
    right = shapes.broadcast_to(shapes.reshape(right, one), (one[0], math.prod(outside), *one[2:]))
    right = shapes.reshape(right, (lead, *one[2:]))
    counts = _spread_sizes(sizes, (*batch, *outside), count, math.prod(rows[1:]))
    return shapes.reshape(ragged.grouped_rows(left, right, counts), (*batch, *outside, *rows, *width))


def _each_group(x: Any, y: Any, sizes: Any, numbers: RaggedDotDimensionNumbers) -> Any:
    """Compute ``ragged_dot_general`` if the axis of groups is contracted: stack one matrix product for each group."""
    ((lc, rc), (lb, rb)), (axis,), _ = numbers._all()
    position = lc.index(axis)
    batch, outside = _sizes(x, lb), _sizes(x, lc[:position])
    rows = _sizes(x, lc[position:])
    left_free = [i for i in range(len(x.shape)) if i not in (*lc, *lb)]
    right_free = [i for i in range(len(y.shape)) if i not in (*rc, *rb)]
    height, width = _sizes(x, left_free), _sizes(y, right_free)
    lead = math.prod(batch) * math.prod(outside)
    left = _merged(x, [*lb, *lc, *left_free], (lead, math.prod(rows), math.prod(height)))
    right = _merged(y, [*rb, *rc, *right_free], (lead, math.prod(rows), math.prod(width)))
    counts = _spread_sizes(sizes, (*batch, *outside), sizes.shape[-1], math.prod(rows[1:]))
    out = ragged.grouped_products(left, right, counts)
    groups = sizes.shape[-1]
    out = reduce_sum(shapes.reshape(out, (math.prod(batch), math.prod(outside), *out.shape[1:])), (1,))
    return shapes.reshape(shapes.moveaxis(out, 1, 0), (groups, *batch, *height, *width))


def _sizes(x: Any, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(x.shape[i] for i in axes)


def _merged(x: Any, order: Sequence[int], shape: tuple[int, ...]) -> Any:
    return shapes.reshape(shapes.transpose(x, order), shape)


def _spread_sizes(sizes: Any, lead: tuple[int, ...], groups: int, inside: int) -> Any:
    """Broadcast group sizes to the leading axes of the operand, and convert them to numbers of rows.

    Args:
      sizes: the number of indices of each group along the axis of groups.
      lead: the sizes of the leading axes.
      groups: the number of groups.
      inside: the number of rows at each index of the axis of groups.

    Returns:
      The numbers of rows, an array (product of ``lead``, ``groups``).
    """
    if sizes.shape not in ((groups,), (*lead, groups)):
        raise ShapeError(
            f"lax.ragged_dot: group_sizes must have shape {(groups,)} or {(*lead, groups)}, got {sizes.shape}"
        )
    spread = shapes.broadcast_to(sizes, (*lead, groups))
    return ops.mul(shapes.reshape(spread, (math.prod(lead), groups)), inside)
