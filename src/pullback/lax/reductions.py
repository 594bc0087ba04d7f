"""Reductions, cumulative operations and sorts, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, overload

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, PyTree
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.dims import is_symbolic
from pullback.core.docs import describe
from pullback.core.errors import ShapeError
from pullback.core.naming import named
from pullback.core.trace import Primitive
from pullback.lax.arguments import axis_position, ints
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import sorting
from pullback.primitives.arrays.slicing import slice_in_dim
from pullback.primitives.checks import FLOAT, check_dtype, known_int
from pullback.primitives.operands import array_operand, bind
from pullback.transforms.programs.placement import spread


class Reduction(Protocol):
    """The signature of the checked reductions."""

    def __call__(self, operand: ArrayLike, axes: Sequence[int], *, out_sharding: OutSharding = None) -> Array: ...


class Position(Protocol):
    """The signature of the checked ``argmax`` and ``argmin``."""

    def __call__(self, operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array: ...


class Cumulative(Protocol):
    """The signature of the checked cumulative operations."""

    def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...


# Reductions --------------------------------------------------------------------------------------------------------


_OF_REDUCTION = """The {what} of the elements along some axes, in their dtype.

Args:
  operand: an array of {of}.
  axes: the axes, which the result lacks.
  out_sharding: how the result is spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

Returns:
  An array of the dtype of ``operand`` without these axes.

Raises:
  OperandError: ``operand`` is neither an array nor a number (a TypeError).
  DtypeError: ``operand`` has another dtype (a TypeError).
  ShapeError: an axis does not exist, or occurs twice (a TypeError and a ValueError).

>>> import pullback.numpy as jnp
>>> from pullback import lax
>>> print(lax.{name}(jnp.array([[1, 2, 3], [4, 5, 6]]), (1,)))
{result}
"""
_OF_POSITION = """The position of the first {what} element along an axis, in an integer dtype.

Args:
  operand: an array of real numbers or booleans.
  axis: the axis, which the result lacks.
  index_dtype: the dtype of the result, which must hold all positions.

Returns:
  An array of integers of that dtype, of the shape of ``operand`` without the axis.

Raises:
  DtypeError: ``operand`` is complex, or ``index_dtype`` is not a dtype of integers (a TypeError).
  AxisError: the axis does not exist (a ValueError and an IndexError).
  ShapeError: the axis has no elements (a TypeError and a ValueError).
  IndexRangeError: ``index_dtype`` does not hold all positions (an OverflowError and a ValueError).

>>> import pullback.numpy as jnp
>>> from pullback import lax
>>> print(lax.{name}(jnp.array([[3, 1, 2], [4, 6, 5]]), 1, "int32"))
{result}
"""
_OF_CUMULATIVE = """The cumulative {what} of the elements along an axis, from the end if ``reverse``.

Args:
  operand: an array of {of}.
  axis: the axis.
  reverse: whether to begin with the last element.

Returns:
  An array of the shape and dtype of ``operand``.

Raises:
  DtypeError: ``operand`` has another dtype (a TypeError).
  AxisError: the axis does not exist (a ValueError and an IndexError).

>>> import pullback.numpy as jnp
>>> from pullback import lax
>>> print(lax.{name}(jnp.array([1.0, 3.0, 2.0])))
{result}
"""


def _reduction(primitive: Primitive, what: str, of: str, result: str) -> Reduction:
    name = primitive.name

    def function(operand: Any, axes: Sequence[int], *, out_sharding: OutSharding = None) -> Any:
        function = partial(bind, primitive, axes=ints(axes))
        return spread(function, [array_operand(name, operand)], out_sharding, f"lax.{name}")

    return describe(function, name, _OF_REDUCTION.format(name=name, what=what, of=of, result=result))


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: OutSharding = None) -> Array:
    """The sum of the elements along some axes, in their dtype.

    Args:
      operand: an array of numbers.
      axes: the axes, which the result lacks.
      out_sharding: how the result is spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      An array of the dtype of ``operand`` without these axes.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      DtypeError: ``operand`` has another dtype (a TypeError).
      ShapeError: an axis does not exist, or occurs twice (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.reduce_sum(jnp.array([[1, 2, 3], [4, 5, 6]]), (1,)))
    [ 6 15]
    """
    function = partial(bind, reductions.reduce_sum_p, axes=ints(axes))
    return spread(function, [array_operand("reduce_sum", operand)], out_sharding, "lax.reduce_sum")


reduce_prod = _reduction(reductions.reduce_prod_p, "product", "numbers", "[  6 120]")
reduce_max = _reduction(reductions.reduce_max_p, "maximum", "numbers or booleans", "[3 6]")
reduce_min = _reduction(reductions.reduce_min_p, "minimum", "numbers or booleans", "[1 4]")
reduce_and = _reduction(reductions.reduce_and_p, "conjunction", "integers or booleans", "[0 4]")
reduce_or = _reduction(reductions.reduce_or_p, "disjunction", "integers or booleans", "[3 7]")
reduce_xor = _reduction(reductions.reduce_xor_p, "exclusive disjunction", "integers or booleans", "[0 7]")


def _position(primitive: Primitive, what: str, result: str) -> Position:
    name = primitive.name

    def function(operand: Any, axis: int, index_dtype: Any) -> Any:
        x = array_operand(name, operand)
        axes = (axis_position(name, axis, len(x.shape)),)
        return bind(primitive, x, axes=axes, index_dtype=dtypes.requested_dtype(index_dtype, name))

    return describe(function, name, _OF_POSITION.format(name=name, what=what, result=result))


argmax = _position(reductions.argmax_p, "largest", "[0 1]")
argmin = _position(reductions.argmin_p, "smallest", "[1 0]")


def _cumulative(
    primitive: Primitive, what: str, of: str, result: str, of_complex: Callable[..., Any] | None = None
) -> Cumulative:
    name = primitive.name

    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        x = array_operand(name, operand)
        along = axis_position(name, axis, len(x.shape))
        if of_complex is not None and dtypes.is_complex(x.dtype):
            return of_complex(x, along, flag(name, "reverse", reverse))
        return bind(primitive, x, axis=along, reverse=flag(name, "reverse", reverse))

    return describe(function, name, _OF_CUMULATIVE.format(name=name, what=what, of=of, result=result))


cumsum = _cumulative(reductions.cumsum_p, "sum", "numbers", "[1. 4. 6.]")
cumprod = _cumulative(reductions.cumprod_p, "product", "numbers", "[1. 3. 6.]")
cummax = _cumulative(reductions.cummax_p, "maximum", "numbers or booleans", "[1. 3. 3.]")
cummin = _cumulative(reductions.cummin_p, "minimum", "numbers or booleans", "[1. 1. 1.]")
cumlogsumexp = _cumulative(
    reductions.cumlogsumexp_p, "logarithm of the sum of the exponentials", "floats or complex numbers",
    "[1.        3.126928  3.4076061]", reductions.complex_cumlogsumexp,
)  # fmt: skip


@overload
def sort(operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...
def sort(operand: PyTree, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """The elements in ascending order along an axis.

    Args:
      operand: an array; or several, as a list or tuple, of one shape, which are sorted by the first ``num_keys``.
      dimension: the axis.
      is_stable: whether equal elements keep their order.
      num_keys: the number of keys among several operands.

    Returns:
      An array, or a tuple of arrays.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: there are no operands, or their shapes differ (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.sort(jnp.array([3, 1, 2])))
    [1 2 3]
    """
    several = isinstance(operand, (list, tuple))
    xs = [array_operand("sort", x) for x in (operand if several else (operand,))]
    if not xs:
        raise ShapeError("lax.sort needs at least one operand")
    axis = axis_position("sort", dimension, len(xs[0].shape))
    stable, keys = flag("sort", "is_stable", is_stable), known_int("lax.sort", "num_keys", num_keys)
    out = bind(sorting.sort_p, *xs, dimension=axis, is_stable=stable, num_keys=keys)
    return tuple(out) if several else out[0]


@named
def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Keys in ascending order along an axis, and values in the order of their keys.

    Args:
      keys: an array.
      values: an array of the same shape.
      dimension: the axis.
      is_stable: whether values of equal keys keep their order.

    Returns:
      The keys and the values, two arrays.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: the shapes differ (a TypeError and a ValueError).
      ArgumentError: ``is_stable`` is not a boolean (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([30, 10, 20]))[1])
    [10 20 30]
    """
    is_stable = flag("lax.sort_key_val", "is_stable", is_stable)
    ordered, carried = sort((keys, values), dimension, is_stable)
    return ordered, carried


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """The ``k`` largest elements along an axis, in descending order, and their positions.

    Args:
      operand: an array of real numbers.
      k: the number of elements, at most the size of the axis.
      axis: the axis.
      is_stable: without effect: of equal elements the first come first in any case.

    Returns:
      The elements, of the dtype of ``operand``, and their positions, of integers.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      DtypeError: ``operand`` has another dtype (a TypeError).
      AxisError: the axis does not exist (a ValueError and an IndexError).
      ShapeError: ``k`` is negative, or larger than the axis (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> values, positions = lax.top_k(jnp.array([1, 3, 2]), 2)
    >>> print(values, positions)
    [3 2] [1 2]
    """
    x = array_operand("top_k", operand)
    flag("lax.top_k", "is_stable", is_stable)
    axis = axis_position("top_k", axis, len(x.shape))
    size = x.shape[axis]
    if is_symbolic(k) and not is_symbolic(size):  # the compiler's operation takes a constant: sort all, and slice
        values, positions = bind(sorting.top_k_p, x, k=size, axis=axis)
        return slice_in_dim(values, 0, k, axis), slice_in_dim(positions, 0, k, axis)
    values, positions = bind(sorting.top_k_p, x, k=known_int("lax.top_k", "k", k), axis=axis)
    return values, positions


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` largest elements along an axis, where a few may be missed for speed; here none are.

    Args:
      operand: an array of floats.
      k: the number of elements, at most the size of the axis.
      reduction_dimension: the axis.
      recall_target: the share of the ``k`` largest that must be found, above 0 and at most 1. All are found.
      reduction_input_size_override: a larger size to which the target refers, without effect.
      aggregate_to_topk: whether to return exactly ``k`` elements; here there are never more.

    Returns:
      The elements in descending order, and their positions, int32.

    Raises:
      DtypeError: another dtype (a TypeError).
      ShapeError: the axis, ``k`` or the target is out of range (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(*lax.approx_max_k(jnp.array([3.0, 1.0, 2.0]), 2))
    [3. 2.] [0 2]
    """
    aggregate_to_topk = flag("lax.approx_max_k", "aggregate_to_topk", aggregate_to_topk)
    x, axis = _approximable("approx_max_k", operand, reduction_dimension, recall_target)
    values, indices = bind(sorting.top_k_p, x, k=known_int("lax.approx_max_k", "k", k), axis=axis)
    return values, indices


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The ``k`` smallest elements along an axis, where a few may be missed for speed; here none are.

    Args:
      operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk: as for
        :func:`approx_max_k`.

    Returns:
      The elements in ascending order, and their positions, int32.

    Raises:
      DtypeError: another dtype (a TypeError).
      ShapeError: the axis, ``k`` or the target is out of range (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(*lax.approx_min_k(jnp.array([3.0, 1.0, 2.0]), 2))
    [1. 2.] [1 2]
    """
    aggregate_to_topk = flag("lax.approx_min_k", "aggregate_to_topk", aggregate_to_topk)
    x, axis = _approximable("approx_min_k", operand, reduction_dimension, recall_target)
    values, indices = bind(sorting.top_k_p, ops.neg(x), k=known_int("lax.approx_min_k", "k", k), axis=axis)
    return ops.neg(values), indices


def _approximable(name: str, operand: Any, axis: int, recall_target: float) -> tuple[Any, int]:
    x = array_operand(name, operand)
    check_dtype(name, FLOAT, x.dtype)
    if not isinstance(recall_target, (int, float, np.floating)) or not 0 < recall_target <= 1:
        raise ShapeError(f"lax.{name}: recall_target must be greater than 0 and at most 1, got {recall_target!r}")
    return x, axis_position(name, axis, len(x.shape))
