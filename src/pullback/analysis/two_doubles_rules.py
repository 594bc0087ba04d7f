"""The operations on numbers of two doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.analysis import double_double as dd
from pullback.analysis.double_double import InC, Two, in_c
from pullback.analysis.two_doubles import beside, coarse, kernels, two_doubles
from pullback.core import dtypes
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg.contraction import dot_general_p
from pullback.primitives.power_series import sum_of_products_p
from pullback.primitives.sums import reduce_sum_p


def is_complex(x: Any) -> bool:
    """Whether an operand has complex numbers."""
    return isinstance(x, Two) and x.hi.dtype.kind == "c"


def _rule(primitive: Primitive, function: Callable[..., Two], of_complex: bool = False) -> None:
    """Register a function of numbers of two doubles, for real operands or for all."""
    in_c = function if isinstance(function, InC) and function.kernel is not None else None

    def rule(*xs: Any, **params: Any) -> Any:
        if not of_complex and any(map(is_complex, xs)):
            return None
        return function(*[x if isinstance(x, Two) else dd.two(np.asarray(x, float)[()]) for x in xs], **params)

    two_doubles(primitive)(rule)
    if in_c is not None:
        beside[primitive] = in_c.beside
        kernels[primitive] = in_c.kernel  # type: ignore[assignment]


def _exp2(x: Two) -> Two:
    return dd.exp(dd.mul(x, dd.log(dd.two(np.float64(2)))))


def _rsqrt(x: Two) -> Two:
    return dd.div(dd.two(np.float64(1)), dd.sqrt(x))


def _one_minus_square(x: Two) -> Two:
    one = dd.two(np.float64(1))
    return dd.mul(dd.sub(one, x), dd.add(one, x))


def _logaddexp(x: Two, y: Two) -> Two:
    distance = dd.absolute(dd.sub(x, y))
    far = dd.where(np.isfinite(distance.hi), distance, dd.two(np.full_like(distance.hi, np.inf)))
    return dd.add(_larger(x, y), dd.log1p(dd.exp(dd.neg(far))))


def _slope(x: Two) -> Two:
    return dd.mul(dd.logistic(x), dd.logistic(dd.neg(x)))


def _is_less(x: Two, y: Two) -> Any:
    return (x.hi < y.hi) | ((x.hi == y.hi) & (x.lo < y.lo)) | np.isnan(x.hi)


@in_c("larger")
def _larger(x: Two, y: Two) -> Two:
    x, y = _broadcast(x, y)
    return dd.where(_is_less(y, x) & ~np.isnan(x.hi) & ~np.isnan(y.hi) | np.isnan(x.hi), x, y)


@in_c("smaller")
def _smaller(x: Two, y: Two) -> Two:
    return dd.neg(_larger(dd.neg(x), dd.neg(y)))


def _clamp(low: Two, x: Two, high: Two) -> Two:
    return _smaller(_larger(x, low), high)


def _broadcast(*xs: Two) -> list[Two]:
    shape = np.broadcast_shapes(*[x.hi.shape for x in xs])
    return [Two(np.broadcast_to(x.hi, shape)[()], np.broadcast_to(x.lo, shape)[()]) for x in xs]


def _floor(x: Two) -> Two:
    low = np.floor(x.hi)
    return dd.normal(low, np.where(low == x.hi, np.floor(x.lo), 0.0)[()])


def _ceil(x: Two) -> Two:
    return dd.neg(_floor(dd.neg(x)))


_OF_REAL: dict[Primitive, Callable[..., Two]] = {
    ops.sqrt_p: dd.sqrt, ops.exp_p: dd.exp, ops.expm1_p: dd.expm1, ops.log_p: dd.log, ops.log1p_p: dd.log1p,
    ops.sin_p: dd.sin, ops.cos_p: dd.cos, ops.tan_p: dd.tan, ops.asin_p: dd.asin, ops.acos_p: dd.acos,
    ops.atan_p: dd.atan, ops.atan2_p: dd.atan2, ops.sinh_p: dd.sinh, ops.cosh_p: dd.cosh, ops.tanh_p: dd.tanh,
    ops.asinh_p: dd.asinh, ops.acosh_p: dd.acosh, ops.atanh_p: dd.atanh, ops.cbrt_p: dd.cbrt,
    ops.logistic_p: dd.logistic, ops.hypot_p: dd.hypot, ops.pow_p: dd.power, ops.exp2_p: _exp2, ops.rsqrt_p: _rsqrt,
    ops.one_minus_square_p: _one_minus_square, ops.logaddexp_p: _logaddexp, ops.logistic_slope_p: _slope,
    ops.max_p: _larger, ops.min_p: _smaller, ops.clamp_p: _clamp, ops.abs_p: dd.absolute, ops.floor_p: _floor,
    ops.ceil_p: _ceil,
}  # fmt: skip
_OF_ALL: dict[Primitive, Callable[..., Two]] = {
    ops.add_p: dd.add, ops.add_any_p: dd.add, ops.sub_p: dd.sub, ops.mul_p: dd.mul, ops.div_p: dd.div,
    ops.neg_p: dd.neg, ops.square_p: dd.square, ops.stop_gradient_p: lambda x: x, ops.once_p: lambda x: x,
    ops.integer_pow_p: dd.integer_pow,
}  # fmt: skip
for _primitive, _function in _OF_REAL.items():
    _rule(_primitive, _function)
for _primitive, _function in _OF_ALL.items():
    _rule(_primitive, _function, of_complex=True)


@two_doubles(ops.convert_element_type_p)
def _convert(x: Any, *, new_dtype: Any, weak_type: bool) -> Two:
    if not isinstance(x, Two):
        x = dd.two(np.asarray(x, np.float64)[()])
    if dtypes.is_complex(new_dtype) and not is_complex(x):
        return Two(x.hi + 0j, x.lo + 0j)
    return x


@two_doubles(sum_of_products_p)
def _sum_of_products(*factors: Any, scale: float) -> Two:
    products = [dd.mul(x, y) for x, y in zip(factors[::2], factors[1::2], strict=True)]
    found = products[0]
    for product in products[1:]:
        found = dd.add(found, product)
    return found if scale == 1 else dd.mul(found, dd.two(np.float64(scale)))


# Sums and products --------------------------------------------------------------------------------------------------


@two_doubles(reduce_sum_p)
def _reduce_sum(x: Two, *, axes: tuple[int, ...]) -> Two:
    return _item(dd.total(x, axes))


@two_doubles(reductions.norm_p)
def _norm(x: Two, *, axes: tuple[int, ...]) -> Any:
    if is_complex(x):
        return None
    largest = np.max(np.abs(x.hi), axis=axes, keepdims=True, initial=0.0)
    exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    small = Two(np.ldexp(x.hi, -exponent), np.ldexp(x.lo, -exponent))
    root = dd.sqrt(dd.total(dd.square(small), axes))
    exponent = exponent.reshape(np.shape(root.hi))
    return _item(Two(np.ldexp(root.hi, exponent), np.ldexp(root.lo, exponent)))


@two_doubles(reductions.reduce_prod_p)
def _reduce_prod(x: Two, *, axes: tuple[int, ...]) -> Two:
    return _item(_folded(x, axes, dd.mul, 1.0))


@two_doubles(reductions.reduce_max_p)
def _reduce_max(x: Two, *, axes: tuple[int, ...]) -> Any:
    return None if is_complex(x) or not x.hi.size else _largest(x, axes)


@two_doubles(reductions.reduce_min_p)
def _reduce_min(x: Two, *, axes: tuple[int, ...]) -> Any:
    return None if is_complex(x) or not x.hi.size else dd.neg(_largest(dd.neg(x), axes))


def _largest(x: Two, axes: tuple[int, ...]) -> Two:
    """Return the largest of the second doubles of those numbers whose first one is the largest."""
    hi = np.max(x.hi, axis=axes, keepdims=True)
    lo = np.max(np.where(x.hi == hi, x.lo, -np.inf), axis=axes)
    return _item(Two(hi.reshape(lo.shape), np.where(np.isfinite(lo), lo, 0.0)))


def _folded(x: Two, axes: tuple[int, ...], function: Callable[[Two, Two], Two], neutral: float) -> Two:
    """Return a reduction along axes by a function of pairs."""
    kept = [i for i in range(x.hi.ndim) if i not in axes]
    shape = tuple(x.hi.shape[i] for i in kept)
    hi, lo = (np.transpose(y, [*axes, *kept]).reshape(-1, *shape) for y in x)
    while len(hi) > 1:
        if len(hi) % 2:
            hi = np.concatenate([hi, np.full((1, *shape), neutral, hi.dtype)])
            lo = np.concatenate([lo, np.zeros((1, *shape), lo.dtype)])
        hi, lo = function(Two(hi[::2], lo[::2]), Two(hi[1::2], lo[1::2]))
    return Two(hi[0], lo[0]) if len(hi) else dd.two(np.full(shape, neutral, hi.dtype))


@two_doubles(reductions.cumsum_p)
def _cumsum(x: Two, *, axis: int, reverse: bool) -> Two:
    """Return the sums up to each element: each round adds the element twice as far away."""
    hi, lo = (np.moveaxis(y, axis, 0) for y in x)
    hi, lo = (hi[::-1], lo[::-1]) if reverse else (hi, lo)
    step = 1
    while step < len(hi):
        later = dd.add(Two(hi[step:], lo[step:]), Two(hi[:-step], lo[:-step]))
        hi, lo = np.concatenate([hi[:step], later.hi]), np.concatenate([lo[:step], later.lo])
        step *= 2
    hi, lo = (hi[::-1], lo[::-1]) if reverse else (hi, lo)
    return Two(np.moveaxis(hi, 0, axis), np.moveaxis(lo, 0, axis))


def _item(x: Two) -> Two:
    """Return results without axes as NumPy scalars, as NumPy does."""
    return Two(np.asarray(x.hi)[()], np.asarray(x.lo)[()])


@two_doubles(dot_general_p)
def _dot_general(x: Two, y: Two, *, dimension_numbers: Any, precision: Any = None) -> Two:
    (xc, yc), (xb, _) = dimension_numbers
    if is_complex(x) or is_complex(y):
        (a, b), (c, d) = dd.parts(x), dd.parts(y)
        product = lambda p, q: _dot_general(p, q, dimension_numbers=dimension_numbers)
        return dd.joined(dd.sub(product(a, c), product(b, d)), dd.add(product(a, d), product(b, c)))
    terms = math.prod(x.hi.shape[i] for i in xc)
    shared = terms * math.prod(x.hi.shape[i] for i in xb)
    if x.hi.size * y.hi.size <= _FEW * shared:
        return _one_by_one(x, y, dimension_numbers)
    product = partial(_contracted, dimension_numbers=dimension_numbers)
    if not (np.isfinite(x.hi).all() and np.isfinite(y.hi).all()):
        return dd.two(product(x.hi, y.hi))
    a, b = coarse(x.hi, tuple(xc), terms), coarse(y.hi, tuple(yc), terms)
    rest = product(a, (y.hi - b) + y.lo) + product((x.hi - a) + x.lo, y.hi)
    return Two(*dd.two_sum(product(a, b), rest))  # the first product is exact, and the others smaller by 2^-20


def _contracted(x: Any, y: Any, dimension_numbers: Any) -> Any:
    assert dot_general_p.host_rule is not None
    return dot_general_p.host_rule(x, y, dimension_numbers=dimension_numbers)


_FEW = 4096
"""Up to how many products a product of matrices is computed one by one."""


def _one_by_one(x: Two, y: Two, dims: Any) -> Two:
    """Return a contraction whose products are computed one by one, and then added by pairs."""
    (xc, yc), (xb, yb) = dims
    x_free = [i for i in range(x.hi.ndim) if i not in (*xc, *xb)]
    y_free = [i for i in range(y.hi.ndim) if i not in (*yc, *yb)]
    batch = [x.hi.shape[i] for i in xb]
    rows, columns = [x.hi.shape[i] for i in x_free], [y.hi.shape[i] for i in y_free]
    terms = [x.hi.shape[i] for i in xc]
    along_x = [*batch, *rows, *[1] * len(columns), *terms]
    along_y = [*batch, *[1] * len(rows), *columns, *terms]
    left = [np.transpose(z, (*xb, *x_free, *xc)).reshape(along_x) for z in x]
    right = [np.transpose(z, (*yb, *y_free, *yc)).reshape(along_y) for z in y]
    rank = len(along_x)
    return _item(dd.total(dd.mul(Two(*left), Two(*right)), tuple(range(rank - len(terms), rank))))


# Moves --------------------------------------------------------------------------------------------------------------


def _by_halves(primitive: Primitive) -> None:
    """Register the rule of an operation that moves elements, and makes none: it moves those of both doubles alike."""
    move = primitive.host_rule
    assert move is not None

    def rule(*xs: Any, **params: Any) -> Two:
        hi = move(*[x.hi if type(x) is Two else x for x in xs], **params)
        return Two(hi, move(*[x.lo if type(x) is Two else x for x in xs], **params))

    two_doubles(primitive)(rule)


for _primitive in (
    shapes.broadcast_in_dim_p, shapes.reshape_p, shapes.squeeze_p, shapes.transpose_p, slicing.slice_p, slicing.pad_p,
    slicing.concatenate_p, slicing.stack_p, slicing.rev_p, ops.select_n_p,
):  # fmt: skip
    _by_halves(_primitive)
