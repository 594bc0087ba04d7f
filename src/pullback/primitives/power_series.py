"""Arithmetic of Taylor coefficients, for the rules of Taylor mode.

Coefficients may be ``ZERO``, and then cost no operations.
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

# ``scale * (x0 * y0 + x1 * y1 + ...)`` of the operands ``x0, y0, x1, y1, ...``, which broadcast. A coefficient is one
# operation instead of dozens: programs are short, and NumPy's arrays stay in the cache.
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
        except ValueError:  # the sum is larger than the first product, by broadcasting
            out = sum((a * b for a, b in zip(factors[2::2], factors[3::2], strict=True)), start=factors[0] * factors[1])
        if scale != 1:
            out *= scale
        return out
    for a, b in zip(factors[2::2], factors[3::2], strict=True):
        out = out + a * b
    return out if scale == 1 else out * out.dtype.type(scale)


def _add_products(out: Any, factors: Sequence[Any]) -> None:
    """Add the products factors[0] * factors[1], factors[2] * factors[3], ... to ``out`` in place.

    Large arrays are processed by blocks, which stay in the cache.
    """
    pairs = list(zip(factors[::2], factors[1::2], strict=True))
    if out.size > 2 * _BLOCK:
        arrays = [out, *[x for x in factors if np.ndim(x)]]
        if all(x.shape == out.shape and x.flags.c_contiguous for x in arrays):
            flat = [(x.reshape(-1) if np.ndim(x) else x, y.reshape(-1) if np.ndim(y) else y) for x, y in pairs]
            flat_out, term = out.reshape(-1), np.empty(_BLOCK, out.dtype)
            for start in range(0, out.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                to = flat_out[block]
                for a, b in flat:
                    to += np.multiply(a[block] if np.ndim(a) else a, b[block] if np.ndim(b) else b, out=term[: len(to)])
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
    """Return, for each product of a sum of products, the position of its factor that varies.

    A product without such a factor has the position of its first factor. The function returns None if both factors of a
    product vary, since the sum is then not linear.

    Args:
      moving: the positions of the operands that vary.
      count: the number of operands, two for each product.
      scale: not used.
    """
    factors = [[i for i in (k, k + 1) if i in moving] or [k] for k in range(0, count, 2)]
    return None if any(len(varying) > 1 for varying in factors) else [i for (i,) in factors]


@taylor(sum_of_products_p)
def _sum_taylor(ans: Series, *factors: Series, scale: float) -> Coefficient:
    pairs = list(zip(factors[::2], factors[1::2], strict=True))

    def coefficient(k: int) -> Any:
        c = _sum([term for x, y in pairs for term in _terms(x, y, k)], scale)
        return c if c is ZERO or c.shape == ans[0].shape else broadcast_to(c, ans[0].shape)

    return coefficient


# Coefficients --------------------------------------------------------------------------------------------------------


def total(terms: Iterable[Any]) -> Any:
    """Return the sum of coefficients of the same shape; ``ZERO`` if all coefficients are ``ZERO``."""
    out: Any = ZERO
    for term in terms:
        if term is not ZERO:
            out = term if out is ZERO else add_any(out, term)
    return out


def convolution(product: Callable[[Any, Any], Any], x: Series, y: Series, k: int, first: int = 0) -> Any:
    """Return the sum of ``product(x[j], y[k - j])`` for j from ``first`` to k.

    With ``first`` 0 it is the coefficient of order k of the product of the series ``x`` and ``y``.
    """
    return total(product(a, b) for a, b in _terms(x, y, k, first))


def of_product(x: Series, y: Series, k: int, first: int = 0) -> Any:
    """Return the sum of ``x[j] * y[k - j]`` for j from ``first`` to k.

    With ``first`` 0 it is the coefficient of order k of the elementwise product of the series ``x`` and ``y``.
    """
    return of_square(x, k, first) if x is y else _convolved(x, y, k, first, k)


def of_square(x: Series, k: int, first: int = 0, sign: int = 1) -> Any:
    """Return ``sign`` times the sum of ``x[j] * x[k - j]`` for j from ``first`` to k - ``first``.

    With ``first`` 0 the sum is the coefficient of order k of the square of the series ``x``. Products that occur twice
    are computed only once.
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
    """The series of the derivative of ``x``."""
    count = len(x.known)
    rows = _rows(x, count) if x.next is None and count > 2 * _FEW and state.trace.quick else None
    if rows is None:
        return Series([], lambda k: times(x[k + 1], k + 1))
    slopes = _silently(np.multiply, rows[1:count], np.arange(1, count, dtype=rows.dtype)[:, None])
    out = Series([ArrayImpl(c.reshape(x.known[0].shape)) for c in slopes])
    out.rows = slopes, count - 1
    return out


def integral(slope: Series, speed: Series, sign: int = 1) -> Coefficient:
    """Return the function that computes the coefficients, from order 1 on, of y with ``y' = sign * slope * speed``.

    ``speed`` is the series of the derivative of x, and ``slope`` the series of dy/dx.
    """
    return lambda k: _convolved(speed, slope, k - 1, 0, k - 1, sign / k)


def composition(outer: Series, inner: Series) -> Coefficient:
    """Return the function that computes the coefficients, from order 1 on, of f(x), where ``inner`` is the series of x.

    ``outer`` is the series of f about the value of x. The function computes powers of x minus its value up to the
    fourth, and polynomials of degree 3 in the fourth power (M. S. Paterson and L. J. Stockmeyer, On the number of
    nonscalar multiplications necessary to evaluate polynomials, 1973). Since the series of powers begin with zeros,
    order n takes n**3 / 24 products, and fewer if x has few coefficients.
    """
    x = Series([ZERO], lambda k: inner[k])
    square = Series([ZERO], lambda k: of_square(x, k))
    cube = Series([ZERO], lambda k: of_product(x, square, k))
    fourth = Series([ZERO], lambda k: of_square(square, k))
    return _composed(outer, (x, square, cube, fourth), 0).__getitem__


def _composed(outer: Series, powers: Sequence[Series], start: int) -> Series:
    """Return the series of ``outer[start] + outer[start + 1] * z + outer[start + 2] * z**2 + ...``, for a series z.

    ``powers`` holds the series of z, z**2, ... up to some power. The value of z is zero.
    """
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
    """Return whether a series is constant: all coefficients after its value are zero."""
    return x.next is None and len(x.known) == 1


def with_array(x: Series, like: Series) -> Series:
    """Return ``x``, but if its value is a Python number, a series whose value is an array of the dtype of ``like``."""
    return Series([full((), x[0], like[0].dtype)]) if type(x[0]) in SCALARS else x


def times(c: Any, number: float) -> Any:
    """Multiply a coefficient, which may be ``ZERO``, by a number."""
    return c if c is ZERO or number == 1 else sum_of_products_p.bind(c, number, scale=1)


def _convolved(x: Series, y: Series, k: int, first: int, last: int, scale: float = 1) -> Any:
    """``scale`` times the sum of ``x[j] * y[k - j]`` for j from ``first`` to ``last``."""
    stacked = _of_rows(x, y, k, first, last, scale)
    return _sum(_terms(x, y, k, first, last), scale) if stacked is None else stacked


_FEW, _SMALL = 3, 4096


def _of_rows(x: Series, y: Series, k: int, first: int, last: int, scale: float) -> Any:
    """Return ``scale`` times the sum of ``x[j] * y[k - j]`` for j from ``first`` to ``last``, by one NumPy call.

    Return None if the sum is short, or if the coefficients are not small host arrays: other ways are then faster.
    """
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
    except RuntimeError:  # within the rule of another operation, warnings are off already
        return function(*args)


def _rows(x: Series, count: int) -> Any:
    """Return a matrix whose rows are at least ``count`` coefficients of ``x``, flattened.

    Return None if fewer are known, or if they are not small host arrays of one shape and dtype.
    """
    known, rows = x.known, x.rows
    if rows is False or len(known) < count:
        return None
    if rows is not None and rows[1] >= count:
        return rows[0]
    x.rows = False
    value = known[0]
    if not is_on_host(value) or not value.shape or not 0 < value.size <= _SMALL or value.dtype.char not in "fdFD":
        return None
    array = value._value
    shape, dtype = array.shape, array.dtype
    stack, filled = rows or (np.empty((0, array.size), dtype), 0)
    if len(stack) < len(known):
        stack = np.concatenate([stack, np.empty((len(known) + 8, array.size), dtype)])
    for c in known[filled:]:
        if type(c) is not ArrayImpl or c.weak_type:
            return None
        array = c._value
        if type(array) is not np.ndarray or array.shape != shape or array.dtype != dtype:
            return None
        stack[filled] = array.reshape(-1)
        filled += 1
    x.rows = stack, filled
    return stack


def _terms(x: Series, y: Series, k: int, first: int = 0, last: int | None = None) -> list[tuple[Any, Any]]:
    """Return the pairs ``(x[j], y[k - j])`` for j from ``first`` to ``last`` (default k), without zero coefficients."""
    last = k if last is None else last
    if first > last:
        return []
    x[last], y[k - first]  # computes all needed coefficients; later ones are zero
    xs, ys = x.known, y.known
    first, last = max(first, k + 1 - len(ys)), min(last, len(xs) - 1)
    pairs = [(xs[j], ys[k - j]) for j in range(first, last + 1)]
    return [(a, b) for a, b in pairs if a is not ZERO and b is not ZERO]


def _sum(pairs: Sequence[tuple[Any, Any]], scale: float = 1) -> Any:
    return sum_of_products_p.bind(*[x for pair in pairs for x in pair], scale=scale) if pairs else ZERO
