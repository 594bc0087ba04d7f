"""Arithmetic of Taylor coefficients, of which rules for Taylor mode are made.

Coefficients may be ``ZERO``: what is not there costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.core.array import SCALARS, ArrayImpl, is_on_host
from pullback.core.errors import NotLinearError, OperandError
from pullback.core.linear import LinearVar
from pullback.core.linearity import linear_operands
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.arrays.shapes import broadcast_to, full
from pullback.primitives.checks import INEXACT, broadcast_shape, check_dtype, same_dtype
from pullback.primitives.declare import batch_broadcasting
from pullback.primitives.sums import add_any, sum_to

# A sum of products as one operation ----------------------------------------------------------------------------------

# Operands are a factor, the other factor, and so on; all broadcast. A coefficient is one operation instead of dozens:
# programs are short, and in NumPy arrays need not leave the cache. The sum is multiplied by ``scale``.
sum_of_products_p = Primitive("sum_of_products", elementwise=True, cost=Cost.SIMPLE)
sum_of_products_p.batch_rule = batch_broadcasting(sum_of_products_p)
_BLOCK = 1 << 13


@sum_of_products_p.host
def _sum_host(*factors: Any, scale: float) -> Any:
    out = factors[0] * factors[1]
    if len(factors) == 2:
        return out if scale == 1 else out * out.dtype.type(scale)
    if isinstance(out, np.ndarray):
        try:
            _add_products(out, factors[2:])
        except ValueError:  # the first product is of another shape than the sum
            out = sum((a * b for a, b in zip(factors[2::2], factors[3::2], strict=True)), start=factors[0] * factors[1])
        if scale != 1:
            out *= scale
        return out
    for a, b in zip(factors[2::2], factors[3::2], strict=True):
        out = out + a * b
    return out if scale == 1 else out * out.dtype.type(scale)


def _add_products(out: Any, factors: Sequence[Any]) -> None:
    """Add products in place; of large arrays a block of elements at a time, which stays in the cache."""
    pairs = list(zip(factors[::2], factors[1::2], strict=True))
    if out.size > 2 * _BLOCK:
        arrays = [out, *[x for x in factors if np.ndim(x)]]
        if all(x.shape == out.shape and x.flags.c_contiguous for x in arrays):
            flat = [(x.reshape(-1) if np.ndim(x) else x, y.reshape(-1) if np.ndim(y) else y) for x, y in pairs]
            whole, term = out.reshape(-1), np.empty(_BLOCK, out.dtype)
            for start in range(0, out.size, _BLOCK):
                part = slice(start, start + _BLOCK)
                to = whole[part]
                for a, b in flat:
                    to += np.multiply(a[part] if np.ndim(a) else a, b[part] if np.ndim(b) else b, out=term[: len(to)])
            return
    term = np.empty_like(out)
    for a, b in pairs:
        out += np.multiply(a, b, out=term)


@sum_of_products_p.abstract_eval
def _sum_abstract_eval(*avals: ShapedArray, scale: float) -> ShapedArray:
    if len(avals) < 2 or len(avals) % 2:
        raise OperandError(f"sum_of_products takes pairs of factors, got {len(avals)} operands")
    dtype = same_dtype("sum_of_products", avals)
    check_dtype("sum_of_products", INEXACT, dtype)
    return ShapedArray(broadcast_shape("sum_of_products", [a.shape for a in avals]), dtype)


@sum_of_products_p.lowering
def _sum_lowering(hlo: Any, *factors: Any, scale: float) -> Any:
    wide = [hlo.broadcast(x, hlo.result.shape) for x in factors]
    out = None
    for a, b in zip(wide[::2], wide[1::2], strict=True):
        term = hlo.elementwise("stablehlo.multiply", a, b)
        out = term if out is None else hlo.elementwise("stablehlo.add", out, term)
    if scale == 1:
        return out
    return hlo.elementwise("stablehlo.multiply", out, hlo.splat(scale, hlo.result.shape, hlo.result.dtype))


@sum_of_products_p.jvp
def _sum_jvp(primals: Any, tangents: Any, *, scale: float) -> Any:
    factors: list[Any] = []
    for x, y, tx, ty in zip(primals[::2], primals[1::2], tangents[::2], tangents[1::2], strict=True):
        factors += [] if tx is ZERO else [tx, y]
        factors += [] if ty is ZERO else [x, ty]
    ans = sum_of_products_p.bind(*primals, scale=scale)
    t = sum_of_products_p.bind(*factors, scale=scale)
    return ans, t if t.shape == ans.shape else broadcast_to(t, ans.shape)


@sum_of_products_p.transpose
def _sum_transpose(ct: Any, *factors: Any, scale: float) -> Any:
    cts: list[Any] = []
    for x, y in zip(factors[::2], factors[1::2], strict=True):
        if type(x) is LinearVar and type(y) is LinearVar:
            raise NotLinearError("sum_of_products is not linear in both factors of a product")
        for factor, other in ((x, y), (y, x)):
            linear = type(factor) is LinearVar
            cts.append(sum_to(sum_of_products_p.bind(ct, other, scale=scale), factor) if linear else None)
    return cts


@linear_operands(sum_of_products_p)
def _linear_factors(moving: Sequence[int], count: int, *, scale: float) -> list[int] | None:
    """One factor of each product, the one that is not constant if there is one."""
    factors = [[i for i in (k, k + 1) if i in moving] or [k] for k in range(0, count, 2)]
    return None if any(len(mine) > 1 for mine in factors) else [i for (i,) in factors]


@taylor(sum_of_products_p)
def _sum_taylor(ans: Series, *factors: Series, scale: float) -> Coefficient:
    pairs = list(zip(factors[::2], factors[1::2], strict=True))

    def coefficient(k: int) -> Any:
        c = _sum([term for x, y in pairs for term in _terms(x, y, k)], scale)
        return c if c is ZERO or c.shape == ans[0].shape else broadcast_to(c, ans[0].shape)

    return coefficient


# Coefficients --------------------------------------------------------------------------------------------------------


def total(terms: Iterable[Any]) -> Any:
    """The sum of coefficients of one shape; ``ZERO`` if all are."""
    out: Any = ZERO
    for term in terms:
        if term is not ZERO:
            out = term if out is ZERO else add_any(out, term)
    return out


def convolution(product: Callable[[Any, Any], Any], x: Series, y: Series, k: int, first: int = 0) -> Any:
    """The coefficient of order k of a product, from the term with ``x[first]`` on."""
    return total(product(a, b) for a, b in _terms(x, y, k, first))


def of_product(x: Series, y: Series, k: int, first: int = 0) -> Any:
    """The coefficient of order k of the product of elements, from the term with ``x[first]`` on."""
    return of_square(x, k, first) if x is y else _convolved(x, y, k, first, k)


def of_square(x: Series, k: int, first: int = 0, sign: int = 1) -> Any:
    """The coefficient of order k of the square of elements, or minus that, without factors of orders below ``first``.

    Of the products that are there twice, one is computed.
    """
    stacked = _of_rows(x, x, k, first, k - first, sign)
    if stacked is not None:
        return stacked
    pairs = _terms(x, x, k, first, (k - 1) // 2)
    middle = x[k // 2] if k % 2 == 0 and k // 2 >= first else ZERO
    if middle is not ZERO:
        if not pairs:
            return _sum([(middle, middle)], sign)
        pairs.append((times(middle, 0.5), middle))
    return _sum(pairs, 2 * sign)


def derivative(x: Series) -> Series:
    """The coefficients of x'."""
    count = len(x.known)
    rows = _rows(x, count) if x.next is None and count > 2 * _FEW and state.trace.quick else None
    if rows is None:
        return Series([], lambda k: times(x[k + 1], k + 1))
    slopes = _silently(np.multiply, rows[1:count], np.arange(1, count, dtype=rows.dtype)[:, None])
    out = Series([ArrayImpl(c.reshape(x.known[0].shape)) for c in slopes])
    out.rows = slopes, count - 1
    return out


def integral(slope: Series, speed: Series, sign: int = 1) -> Coefficient:
    """The coefficients, from order 1 on, of y with y' = slope x', where ``speed`` is x'; or of -y."""
    return lambda k: _convolved(speed, slope, k - 1, 0, k - 1, sign / k)


def composition(outer: Series, inner: Series) -> Coefficient:
    """The coefficients, from order 1 on, of f(x), from those of f about the value of x.

    By the powers of x up to the fourth, less its value, and polynomials of degree 3 in it (M. S. Paterson and L. J.
    Stockmeyer, On the number of nonscalar multiplications necessary to evaluate polynomials, 1973). As the powers
    begin with zeros, order n takes n**3 / 24 products, and few if x has few coefficients.
    """
    x = Series([ZERO], lambda k: inner[k])
    square = Series([ZERO], lambda k: of_square(x, k))
    cube = Series([ZERO], lambda k: of_product(x, square, k))
    fourth = Series([ZERO], lambda k: of_square(square, k))
    return _composed(outer, (x, square, cube, fourth), 0).__getitem__


def _composed(outer: Series, powers: Sequence[Series], start: int) -> Series:
    """The part of a composition from the power ``start`` on, divided by that power."""
    rest: list[Series] = []

    def coefficient(k: int) -> Any:
        pairs = [(outer[start + i], power[k]) for i, power in enumerate(powers[:-1], 1) if power[k] is not ZERO]
        if k >= len(powers):
            if not rest:
                rest.append(_composed(outer, powers, start + len(powers)))
            pairs += _terms(powers[-1], rest[0], k, len(powers))
        return _sum(pairs)

    return Series([outer[start]], coefficient)


def is_fixed(x: Series) -> bool:
    """Whether a value does not depend on t."""
    return x.next is None and len(x.known) == 1


def with_array(x: Series, like: Series) -> Series:
    """A series whose value is an array, in the place of one whose value may be a number."""
    return Series([full((), x[0], like[0].dtype)]) if type(x[0]) in SCALARS else x


def times(c: Any, number: float) -> Any:
    """A coefficient, times a number."""
    return c if c is ZERO or number == 1 else sum_of_products_p.bind(c, number, scale=1)


def _convolved(x: Series, y: Series, k: int, first: int, last: int, scale: float = 1) -> Any:
    """The sum of ``x[j] y[k - j]`` for j from ``first`` to ``last``, times a number."""
    stacked = _of_rows(x, y, k, first, last, scale)
    return _sum(_terms(x, y, k, first, last), scale) if stacked is None else stacked


_FEW, _SMALL = 3, 4096


def _of_rows(x: Series, y: Series, k: int, first: int, last: int, scale: float) -> Any:
    """The same, of small arrays by one call of NumPy: calls take longer than what they compute. None of others."""
    if last - first < _FEW or not state.trace.quick:
        return None
    x[last], y[k - first]
    xs, ys = _rows(x, last + 1), _rows(y, k - first + 1)
    if xs is None or ys is None or xs.dtype != ys.dtype:
        return None
    shape = x.known[0].shape
    if shape != y.known[0].shape:  # they broadcast
        return None
    below = k - last - 1
    out = _silently(np.einsum, "kn,kn->n", xs[first : last + 1], ys[k - first : None if below < 0 else below : -1])
    if scale != 1:
        out *= scale
    return ArrayImpl(out.reshape(shape))


def _silently(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return state.silently(function, *args)
    except RuntimeError:  # within the rule of another operation, which is silent
        return function(*args)


def _rows(x: Series, count: int) -> Any:
    """At least so many coefficients as rows; None unless all are small arrays on the host, of one type."""
    known, rows = x.known, x.rows
    if rows is False or len(known) < count:
        return None
    if rows is not None and rows[1] >= count:
        return rows[0]
    x.rows = False
    value = known[0]
    if not is_on_host(value) or not value.shape or not 0 < value.size <= _SMALL or value.dtype.char not in "fdFD":
        return None
    held = value._host_value
    shape, dtype = held.shape, held.dtype
    stack, filled = rows or (np.empty((0, held.size), dtype), 0)
    if len(stack) < len(known):
        stack = np.concatenate([stack, np.empty((len(known) + 8, held.size), dtype)])
    for c in known[filled:]:
        if type(c) is not ArrayImpl or c.weak_type:
            return None
        held = c._host_value
        if type(held) is not np.ndarray or held.shape != shape or held.dtype != dtype:
            return None
        stack[filled] = held.reshape(-1)
        filled += 1
    x.rows = stack, filled
    return stack


def _terms(x: Series, y: Series, k: int, first: int = 0, last: int | None = None) -> list[tuple[Any, Any]]:
    """The factors of the products of order k that are not zero, those with ``x[first]`` to ``x[last]``."""
    last = k if last is None else last
    if first > last:
        return []
    x[last], y[k - first]  # now all that are needed are known; those beyond are zero
    xs, ys = x.known, y.known
    first, last = max(first, k + 1 - len(ys)), min(last, len(xs) - 1)
    pairs = [(xs[j], ys[k - j]) for j in range(first, last + 1)]
    return [(a, b) for a, b in pairs if a is not ZERO and b is not ZERO]


def _sum(pairs: Sequence[tuple[Any, Any]], scale: float = 1) -> Any:
    return sum_of_products_p.bind(*[x for pair in pairs for x in pair], scale=scale) if pairs else ZERO
