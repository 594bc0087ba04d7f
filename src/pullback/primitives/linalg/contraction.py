"""Contraction of two arrays: batched matrix products over any axes.

The order of axes depends on ranks and dimension numbers only, and is cached for these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host import blas
from pullback.core import dtypes
from pullback.core.arguments import quote
from pullback.core.array import LARGE, ArrayImpl
from pullback.core.config import PRECISIONS, config
from pullback.core.dims import any_symbolic
from pullback.core.errors import ArgumentError, ShapeError, ShardingTypeError
from pullback.core.linear import LinearVar
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, RelayTrace, state
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import same_dtype
from pullback.primitives.declare import jvp_bilinear
from pullback.primitives.explicit_shardings import REMEDY, by_axes, entries_of
from pullback.primitives.large import compiled
from pullback.primitives.masked import masked_sum_of_products
from pullback.primitives.rules import GONE, axis_divided, axis_kept, sharding_rule, unsummed
from pullback.primitives.sums import reduce_sum

Dims = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]
"""The dimension numbers: ((contracted axes of x, of y), (batch axes of x, of y))."""


def pairs_of_axes(name: str, dimension_numbers: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the axes of a product: those that are contracted, and those of batches, each of both operands.

    Raises:
      ShapeError: they do not have this form (a TypeError and a ValueError).
    """
    try:
        (xc, yc), (xb, yb) = dimension_numbers
    except (TypeError, ValueError):
        raise ShapeError(
            f"{name}: dimension_numbers must be two pairs of sequences of axes, ((lhs contracted, rhs contracted), "
            f"(lhs batch, rhs batch)), got {quote(dimension_numbers)}"
        ) from None
    return (xc, yc), (xb, yb)


def dot_general(x: Any, y: Any, dimension_numbers: Any, precision: Any = None) -> Any:
    """Return the sums over the contracted axes of products of ``x`` and ``y``, for each index of the batch axes.

    ``dimension_numbers`` is as in JAX: ``((x contracted, y contracted), (x batch, y batch))``. The result has the batch
    axes, then the free axes of ``x``, then the free axes of ``y``. ``precision`` is a pair of names of precisions, one
    for each operand, as in StableHLO; None for that of the switch ``default_matmul_precision``.
    """
    (xc, yc), (xb, yb) = dimension_numbers
    numbers = ((tuple(xc), tuple(yc)), (tuple(xb), tuple(yb)))
    if precision is None:
        return dot_general_p.bind(x, y, dimension_numbers=numbers)
    return dot_general_p.bind(x, y, dimension_numbers=numbers, precision=precision)


def by_precision(precision: Any) -> Callable[..., Any]:
    """Return ``dot_general_p.bind`` with a precision, which is no parameter of the operation if it is None."""
    return dot_general_p.bind if precision is None else partial(dot_general_p.bind, precision=precision)


def precisely(precision: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, whose contractions have a precision.

    Args:
      precision: a precision by its name or as an enum, or a pair of these; other objects, such as algorithms, have no
        effect.
      function: the function.
      args: its arguments.

    Raises:
      ArgumentError: there is no precision of this name (a TypeError and a ValueError).
    """
    names = precision_names(precision)
    if names is None:
        return function(*args)
    return RelayTrace(state.trace, partial(_with_precision, names)).run(function, *args)


def _with_precision(
    names: tuple[str, str], trace: RelayTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
) -> Any:
    if primitive is dot_general_p:  # the one operation that has a precision
        params = {"precision": names, **params}
    outer, state.trace = state.trace, trace.parent
    try:
        return trace.parent.process(primitive, args, params)
    finally:
        state.trace = outer


def precision_names(precision: Any) -> tuple[str, str] | None:
    """Convert a precision to a pair of StableHLO's names, for the two operands; None for what is no plain precision."""
    pair = precision if isinstance(precision, (tuple, list)) and len(precision) == 2 else (precision, precision)
    names = [_precision_name(one) for one in pair]
    return (names[0], names[1]) if None not in names else None


def _precision_name(precision: Any) -> Any:
    if precision is None:
        return "DEFAULT"
    text = str(getattr(precision, "name", precision)).lower()
    if text == "fastest":
        return "DEFAULT"
    if isinstance(precision, str) and text not in PRECISIONS and not text.startswith(("bf16", "f", "tf32", "any")):
        raise ArgumentError(f"precision must be None or one of {', '.join(PRECISIONS)}, got {precision!r}")
    return PRECISIONS.get(text)


HIGHEST = ("HIGHEST", "HIGHEST")
"""The precision of products within decompositions and their derivatives: GPUs by default round operands to TF32."""
# A parameter ``precision`` is only in equations of which the user, or a rule, asked for one. CPUs know no difference.
dot_general_p = Primitive("dot_general", cost=Cost.PRODUCT)
dot_general_p.jvp_rule = jvp_bilinear(dot_general_p)


def _free(rank: int, *used: Sequence[int]) -> list[int]:
    return [i for i in range(rank) if not any(i in t for t in used)]


def _permutation(order: Sequence[int]) -> Shape | None:
    """Return ``order`` as a tuple; None if it is the identity, for which no transposition is needed."""
    return None if all(i == a for i, a in enumerate(order)) else tuple(order)


# Evaluation --------------------------------------------------------------------------------------------------------

_BLAS = "fdFD"
INTEGER_PRODUCTS = 2_000_000
"""The least number of products for which a contraction of integers is compiled, as in ``primitives.large``: two
matrices of 256 x 256 take 14263 / 860 microseconds, of 64 x 64 131 / 139."""


@dot_general_p.host
def _dot_host(x: Any, y: Any, *, dimension_numbers: Dims, precision: Any = None) -> Any:
    (xc, yc), (xb, _) = dimension_numbers
    if not xb and len(xc) == 1 and x.dtype.char in _BLAS:
        rank = x.ndim
        if rank <= 2 and y.ndim <= 2:
            # It contracts the last axis of x with the last axis but one of y (the only axis of a vector).
            return blas.dot(x if xc[0] == rank - 1 else x.T, y if yc[0] == 0 else y.T)
    plan = _plan(x.ndim, y.ndim, dimension_numbers)
    if x.dtype.char in _BLAS:
        return _contract(x, y, plan)
    if x.dtype.kind in "iu" and x.size >= 1000 and config.compile_large_operations:
        (_, contracted), (_, mapped) = dimension_numbers
        free = math.prod(n for i, n in enumerate(y.shape) if i not in contracted and i not in mapped)
        if x.size * free >= INTEGER_PRODUCTS:
            params = {"dimension_numbers": dimension_numbers}
            return compiled(dot_general_p, lambda x, y, **params: _contract_wide(x, y, plan), (x, y), params)
    return _contract_wide(x, y, plan)


def _contract_wide(x: Any, y: Any, plan: _Plan) -> Any:
    """Contract ``x`` and ``y`` as ``plan`` says; compute narrow dtypes in a wider one, and convert the result back."""
    wide = _wide(x.dtype)
    return _contract(x, y, plan) if wide is None else _contract(x.astype(wide), y.astype(wide), plan).astype(x.dtype)


def _wide(dtype: np.dtype[Any]) -> Any:
    """The wider dtype in which NumPy contracts operands of a narrow ``dtype``; None if ``dtype`` is not narrow."""
    if dtype == np.float16 or dtype.isbuiltin == 2:
        return np.int32 if dtypes.is_integer(dtype) else np.float32
    return None


class _Plan(NamedTuple):
    """How to evaluate a contraction as a batch of matrix products: the order and the numbers of axes."""

    left: Shape | None  # the order of the axes of x: batch, free, contracted
    right: Shape | None  # the order of the axes of y: batch, contracted, free
    batch: int  # the number of batch axes
    contracted: int  # the number of contracted axes
    plain: bool  # whether the operands are matrices in this order: one free axis each, and one contracted


@lru_cache(maxsize=4096)
def _plan(x_rank: int, y_rank: int, dims: Dims) -> _Plan:
    (xc, yc), (xb, yb) = dims
    pairs = sorted(zip(xc, yc, strict=True))  # in the order of x, so that x need not be copied
    xs, ys = [a for a, _ in pairs], [b for _, b in pairs]
    x_free, y_free = _free(x_rank, xc, xb), _free(y_rank, yc, yb)
    plain = len(x_free) == len(y_free) == len(xs) == 1
    return _Plan(_permutation([*xb, *x_free, *xs]), _permutation([*yb, *ys, *y_free]), len(xb), len(xs), plain)


def _contract(x: Any, y: Any, plan: _Plan) -> Any:
    left, right, n, k, plain = plan
    if left is not None:
        x = x.transpose(left)
    if right is not None:
        y = y.transpose(right)
    matmul = blas.matmul if x.dtype.char in _BLAS else np.matmul
    if plain:
        return matmul(x, y)
    batch, x_free, y_free = x.shape[:n], x.shape[n : x.ndim - k], y.shape[n + k :]
    if k == 0:
        x = x.reshape((*batch, *x_free, *(1,) * len(y_free)))
        return np.multiply(x, y.reshape((*batch, *(1,) * len(x_free), *y_free)))
    inner = math.prod(x.shape[x.ndim - k :])
    if not x_free and not y_free and x.dtype.kind != "c":  # np.vecdot would conjugate
        return np.vecdot(x.reshape((*batch, inner)), y.reshape((*batch, inner)))
    x = shapes.reshape_host(x, new_sizes=(*batch, math.prod(x_free), inner))
    y = shapes.reshape_host(y, new_sizes=(*batch, inner, math.prod(y_free)))
    return matmul(x, y).reshape(batch + x_free + y_free)


# Types -------------------------------------------------------------------------------------------------------------


@dot_general_p.abstract_eval
def _dot_abstract_eval(
    x: ShapedArray, y: ShapedArray, *, dimension_numbers: Dims, precision: Any = None
) -> ShapedArray:
    dtype = same_dtype("dot_general", [x, y])
    return ShapedArray(_result_shape(x.shape, y.shape, dimension_numbers), dtype)


@lru_cache(maxsize=4096)
def _result_shape(x: Shape, y: Shape, dims: Dims) -> Shape:
    (xc, yc), (xb, yb) = dims
    for what, xs, ys in (("contracting", xc, yc), ("batch", xb, yb)):
        if len(xs) != len(ys) or not _are_axes(len(x), xc + xb) or not _are_axes(len(y), yc + yb):
            raise ShapeError(
                f"dot_general: the {what} axes {xs} and {ys} must be equally many distinct axes of operands of shapes "
                f"{x} and {y}"
            )
        sizes = tuple(x[i] for i in xs), tuple(y[i] for i in ys)
        if sizes[0] != sizes[1]:
            raise ShapeError(
                f"dot_general requires {what} dimensions to have the same shape, got {sizes[0]} and {sizes[1]}, in "
                f"operands of shapes {x} and {y}"
            )
    free = [x[i] for i in _free(len(x), xc, xb)] + [y[i] for i in _free(len(y), yc, yb)]
    return (*(x[i] for i in xb), *free)


def _are_axes(rank: int, axes: Shape) -> bool:
    return len(set(axes)) == len(axes) and all(0 <= a < rank for a in axes)


# Transposition -----------------------------------------------------------------------------------------------------


@partial(dot_general_p.transpose, linear_in="each")
def _dot_transpose(ct: Any, x: Any, y: Any, *, dimension_numbers: Dims, precision: Any = None) -> Any:
    return transpose_by(partial(_of_cotangent, precision), ct, x, y, dimension_numbers)


def _of_cotangent(precision: Any, x: Any, y: Any, *, dimension_numbers: Dims) -> Any:
    """Contract a cotangent and an operand; if they make a large outer product of eager arrays, it can be pending."""
    (contracted, _), (batch, _) = dimension_numbers
    is_outer = not contracted and not batch and state.trace.quick and type(x) is ArrayImpl and type(y) is ArrayImpl
    if not is_outer or x.size * y.size < LARGE or x.dtype.char not in _BLAS or (x.weak_type and y.weak_type):
        return by_precision(precision)(x, y, dimension_numbers=dimension_numbers)
    return ops.mul(shapes.reshape(x, (*x.shape, *(1,) * y.ndim)), y)


def transpose_by(contract: Callable[..., Any], ct: Any, x: Any, y: Any, dims: Dims) -> Any:
    """Return the cotangents of ``x`` and ``y``, the operands of a contraction; None for the operand that is not linear.

    Args:
      contract: a function like ``dot_general``, which multiplies the cotangent by the operand that is not linear.
      ct: the cotangent of the result.
      x, y: the operands; one is linear.
      dims: the dimension numbers of the contraction.
    """
    if type(x) is LinearVar:
        numbers, order = _left_cotangent(len(ct.shape), len(y.shape), dims)
        return _permuted(contract(ct, y, dimension_numbers=numbers), order), None
    numbers, order = _right_cotangent(len(ct.shape), len(x.shape), dims)
    return None, _permuted(contract(x, ct, dimension_numbers=numbers), order)


def _permuted(x: Any, order: Shape | None) -> Any:
    """Permute the axes of a cotangent. If it is large, what is done with it next, such as a step, can be pending."""
    out = x if order is None else shapes.transpose_p.bind(x, permutation=order)
    return runtime.hold(out) if type(out) is ArrayImpl and out._host_value.size >= LARGE else out


def _inverse(order: Sequence[int]) -> Shape | None:
    inverse = [0] * len(order)
    for position, a in enumerate(order):
        inverse[a] = position
    return _permutation(inverse)


@lru_cache(maxsize=4096)
def _left_cotangent(ct_rank: int, y_rank: int, dims: Dims) -> tuple[Dims, Shape | None]:
    """Return the dimension numbers with which ``dot_general(ct, y)`` is the cotangent of x, up to the order of axes.

    Args:
      ct_rank: the rank of ct, the cotangent of the result.
      y_rank: the rank of y.
      dims: the dimension numbers of the contraction of x and y.

    Returns:
      The dimension numbers, which contract the free axes of y; and the permutation of axes to apply to the result, or
      None for the identity.
    """
    (xc, yc), (xb, yb) = dims
    y_free = _free(y_rank, yc, yb)
    x_rank = ct_rank - len(y_free) + len(xc)
    numbers = ((tuple(range(ct_rank - len(y_free), ct_rank)), tuple(y_free)), (tuple(range(len(xb))), yb))
    return numbers, _inverse([*xb, *_free(x_rank, xc, xb), *(xc[yc.index(i)] for i in sorted(yc))])


@lru_cache(maxsize=4096)
def _right_cotangent(ct_rank: int, x_rank: int, dims: Dims) -> tuple[Dims, Shape | None]:
    """Return the dimension numbers with which ``dot_general(x, ct)`` is the cotangent of y, up to the order of axes.

    Args:
      ct_rank: the rank of ct, the cotangent of the result.
      x_rank: the rank of x.
      dims: the dimension numbers of the contraction of x and y.

    Returns:
      The dimension numbers, which contract the free axes of x; and the permutation of axes to apply to the result, or
      None for the identity.
    """
    (xc, yc), (xb, yb) = dims
    x_free = _free(x_rank, xc, xb)
    y_rank = ct_rank - len(x_free) + len(yc)
    start = len(xb)
    numbers = ((tuple(x_free), tuple(range(start, start + len(x_free)))), (xb, tuple(range(start))))
    return numbers, _inverse([*yb, *(yc[xc.index(i)] for i in sorted(xc)), *_free(y_rank, yc, yb)])


# Batching ----------------------------------------------------------------------------------------------------------


@dot_general_p.batch
def _dot_batch(axis: MappedAxis, args: Any, dims: Any, *, dimension_numbers: Dims, precision: Any = None) -> Any:
    x, y = args
    numbers, dim = batched_numbers(len(x.shape), len(y.shape), dims[0], dims[1], dimension_numbers)
    return by_precision(precision)(x, y, dimension_numbers=numbers), dim


@lru_cache(maxsize=4096)
def batched_numbers(x_rank: int, y_rank: int, dx: int | None, dy: int | None, dims: Dims) -> tuple[Dims, int]:
    """Adapt the dimension numbers of a contraction to mapped axes.

    Args:
      x_rank, y_rank: the ranks of the operands, with their mapped axes.
      dx, dy: the positions of the mapped axes; None for an unmapped operand.
      dims: the dimension numbers of one example.

    Returns:
      The dimension numbers of the batch, and the position of the mapped axis in the result.
    """
    (xc, yc), (xb, yb) = dims

    def shift(axes: Shape, d: int | None) -> Shape:
        return axes if d is None else tuple(a + (a >= d) for a in axes)

    xc, xb, yc, yb = shift(xc, dx), shift(xb, dx), shift(yc, dy), shift(yb, dy)
    if dx is not None and dy is not None:
        return ((xc, yc), ((dx, *xb), (dy, *yb))), 0
    numbers = ((xc, yc), (xb, yb))
    if dx is not None:
        return numbers, len(xb) + _free(x_rank, xc, xb).index(dx)
    assert dy is not None
    return numbers, x_rank - len(xc) + _free(y_rank, yc, yb).index(dy)


@axis_kept(dot_general_p)
def _dot_keeps(
    axis: int, operand: int, x: Shape, y: Shape, *, dimension_numbers: Dims, precision: Any = None
) -> int | None:
    contracted, batch = (side[operand] for side in dimension_numbers)
    if axis in contracted:
        return None
    if axis in batch:
        return batch.index(axis)
    free = _free(len((x, y)[operand]), contracted, batch).index(axis)
    others = len(x) - len(contracted) - len(batch) if operand else 0
    return len(batch) + others + free


@axis_divided(dot_general_p)
def _dot_divided(axis: int, operand: int, x: Shape, y: Shape, *, dimension_numbers: Dims, precision: Any = None) -> int:
    return GONE  # a contracted axis


@sharding_rule(dot_general_p)
def _dot_sharding(operands: Any, results: Any, *, dimension_numbers: Dims, precision: Any = None) -> Any:
    (contracted, batch), entries = dimension_numbers, list(map(entries_of, operands))
    for axes, what in (
        (batch, "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same sharding"),
        (contracted, "Contracting dimensions are sharded and it is ambiguous how the output should be sharded"),
    ):
        for i, j in zip(*axes, strict=True):
            a, b = entries[0][i], entries[1][j]
            if a is not None and b is not None and (a != b or axes is contracted):
                raise ShardingTypeError(
                    f"dot_general of {operands[0]} and {operands[1]}: {what}: axis {i} of the first operand is sharded "
                    f"over {a!r}, and axis {j} of the second over {b!r}. {REMEDY}"
                )
    return by_axes(dot_general_p, operands, {"dimension_numbers": dimension_numbers}, results)


@unsummed(dot_general_p)
def _dot_unsummed(
    axis: int, operand: int, *shapes: Shape, dimension_numbers: Dims, **precision: Any
) -> tuple[dict[str, Any], int] | None:
    contracted, batch = dimension_numbers
    if axis not in contracted[operand]:
        return None
    k = contracted[operand].index(axis)
    (xc, yc), (xb, yb) = ((c[:k] + c[k + 1 :] for c in contracted), ((c[k], *b) for c, b in zip(contracted, batch)))
    return {"dimension_numbers": ((xc, yc), (xb, yb)), **precision}, 0


masked_dot_general_p = masked_sum_of_products(dot_general_p)


@partial(masked_dot_general_p.transpose, linear_in="each")
def _masked_dot_transpose(
    ct: Any, x: Any, y: Any, *, dimension_numbers: Dims, zeros: tuple[bool, bool], **params: Any
) -> Any:
    flags = (True, zeros[1]) if type(x) is LinearVar else (zeros[0], True)
    return transpose_by(partial(masked_dot_general_p.bind, zeros=flags, **params), ct, x, y, dimension_numbers)


@masked_dot_general_p.batch
def _masked_dot_batch(axis: MappedAxis, args: Any, dims: Any, *, dimension_numbers: Dims, **params: Any) -> Any:
    x, y = args
    numbers, dim = batched_numbers(len(x.shape), len(y.shape), dims[0], dims[1], dimension_numbers)
    return masked_dot_general_p.bind(x, y, dimension_numbers=numbers, **params), dim


# Compilation -------------------------------------------------------------------------------------------------------

_LONG = 1 << 15
"""From how many elements on an inner product of vectors is a sum of products. The CPU's library computes sums, but
not in programs that have operations called products (``backends/compiler/options``); without the library the compiler
writes the products to memory: a million take 430 instead of 280 us, on two cores."""


def _is_long_sum(hlo: Any, x: Any) -> bool:
    (size,) = x.shape  # perhaps symbolic
    return type(size) is int and size >= _LONG and x.dtype.char in "fd" and hlo.module.platform == "cpu"


_MANY_PRODUCTS = 1 << 20
"""The least number of products for which four real contractions take half the time of the complex one, which has no
library routine."""


@dot_general_p.lowering
def _dot_lowering(hlo: Any, x: Any, y: Any, *, dimension_numbers: Dims, precision: Any = None) -> Any:
    (xc, _), _ = dimension_numbers
    if len(x.shape) == len(y.shape) == 1 and _is_long_sum(hlo, x):
        return hlo.inline(lambda x, y: reduce_sum(ops.mul(x, y), (0,)), x, y)
    products = math.prod(hlo.result.shape) * math.prod(x.shape[i] for i in xc)
    if not dtypes.is_complex(x.dtype) or products < _MANY_PRODUCTS or hlo.module.platform != "cpu":
        return _real_dot(hlo, x, y, dimension_numbers, precision)
    real = np.dtype(f"f{x.dtype.itemsize // 2}")
    (a, b), (c, d) = ([hlo.op(f"stablehlo.{name}", [v], v.shape, real) for name in ("real", "imag")] for v in (x, y))
    ac, bd, ad, bc = (_real_dot(hlo, v, w, dimension_numbers, precision) for v, w in ((a, c), (b, d), (a, d), (b, c)))
    parts = [hlo.elementwise("stablehlo.subtract", ac, bd), hlo.elementwise("stablehlo.add", ad, bc)]
    return hlo.op("stablehlo.complex", parts, hlo.result.shape, x.dtype)


def _real_dot(hlo: Any, x: Any, y: Any, dims: Dims, precision: Any) -> Any:
    (xc, yc), (xb, yb) = dims
    dtype = x.dtype
    x, y = hlo.at_least_one_byte(x), hlo.at_least_one_byte(y)
    pairs = sorted(zip(xc, yc, strict=True))
    neighbours = all(b == (a[0] + 1, a[1] + 1) for a, b in itertools.pairwise(pairs))
    if len(pairs) > 1 and neighbours and hlo.module.whole_arrays():
        x, xc, xb = _with_one_contracted_axis(hlo, x, pairs[0][0], len(pairs), xb)
        y, yc, yb = _with_one_contracted_axis(hlo, y, pairs[0][1], len(pairs), yb)
    if not xb and _is_quicker_by_rows(hlo, x, y, xc, yc):
        x, xc = hlo.hidden(hlo.transpose(_in_memory(hlo, x), (1, 0))), (1,)
    attributes = (
        f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {list(xb)}, "
        f"rhs_batching_dimensions = {list(yb)}, lhs_contracting_dimensions = {list(xc)}, "
        f"rhs_contracting_dimensions = {list(yc)}>"
    )
    attributes += precision_attribute(hlo, precision)
    out = hlo.op("stablehlo.dot_general", [x, y], hlo.result.shape, _accumulated(dtype), attributes)
    return hlo.convert(out, dtype)


def _is_quicker_by_rows(hlo: Any, x: Any, y: Any, xc: Shape, yc: Shape) -> bool:
    """Return whether to transpose the first of two matrices whose rows are contracted, as in gradients of weights.

    The compiler leaves products of rows with columns to its library, and others to code that takes up to twice the
    time. The bounds are those from which the copy pays, and a size of copies whose memory is reused.
    """
    least = _LEAST_COLUMNS.get(x.dtype)
    if least is None or hlo.module.platform != "cpu" or (tuple(xc), tuple(yc)) != ((0,), (0,)):
        return False
    if len(x.shape) != 2 or len(y.shape) != 2 or any_symbolic((*x.shape, *y.shape)) or not hlo.module.whole_arrays():
        return False
    (rows, m), n = x.shape, y.shape[1]
    is_large = m >= 128 and n >= least and max(m, n) >= 256 and rows >= 8 and rows * m * n >= 1 << 19
    return is_large and rows * m * x.dtype.itemsize <= 1 << 25


def _in_memory(hlo: Any, x: Any) -> Any:
    """Return a large matrix such that it is not computed anew, element by element, in the order of its transposition.

    The compiler would join the operations of which it is the result with the copy, and read their operands by columns.
    """
    from pullback.backends.hlo.in_place import is_exact, materialized

    return x if math.prod(x.shape) < _LEAST_MATERIALIZED or is_exact(hlo, x) else materialized(hlo, x)


_LEAST_MATERIALIZED = 1 << 18
"""The least elements of a matrix that is written to memory before it is transposed."""
_LEAST_COLUMNS = {np.dtype(np.float32): 8, np.dtype(np.float64): 64}
"""The least columns of the second matrix; in double precision the library is slow with few."""


def precision_attribute(hlo: Any, precision: Any) -> str:
    """Return the text of the attribute of a product's precision, which begins with a comma; empty for the default.

    ``precision`` is a pair of names as in StableHLO, or None for that of the switch ``default_matmul_precision``.
    """
    if precision is None and config.default_matmul_precision is not None:
        precision = (PRECISIONS[config.default_matmul_precision],) * 2
    elif precision is None or hlo.module.platform == "cpu":
        return ""
    return f", precision_config = [{', '.join(f'#stablehlo<precision {name}>' for name in precision)}]"


def _with_one_contracted_axis(hlo: Any, x: Any, first: int, count: int, mapped: Shape) -> tuple[Any, Shape, Shape]:
    """Merge the contracted axes of an operand, which are neighbours, into one axis.

    The compiler copies an operand to move several contracted axes to the end, but not to move one axis: the copies take
    a fifth of the time of a training step of a transformer block. Where axes are divided over devices, the partitioner
    divides two axes well, and one made of them badly: a training step with 24 sharded matrices made 40 gatherings.

    Args:
      hlo: the builder.
      x: the operand.
      first: the position of the first contracted axis.
      count: the number of contracted axes.
      mapped: the positions of the batch axes of the operand.

    Returns:
      The reshaped operand, the position of its contracted axis as a tuple, and the positions of its batch axes.
    """
    merged = (*x.shape[:first], math.prod(x.shape[first : first + count]), *x.shape[first + count :])
    return hlo.reshape(x, merged), (first,), tuple(b if b < first else b - count + 1 for b in mapped)


def _accumulated(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which products are summed.

    The compiler contracts narrow operands fast if the result is wide: for 8-bit integers 500 times as fast as to 8
    bits, for bfloat16 4 times.
    """
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype(np.float32 if dtypes.is_float(dtype) else np.int32 if dtypes.is_integer(dtype) else dtype)
