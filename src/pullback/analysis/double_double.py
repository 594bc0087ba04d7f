"""Numbers of two doubles each: the sum of a double and of a much smaller one, with some 106 bits together.

Sums, products, quotients and square roots have errors of about 2^-104, elementary functions of about 2^-66: they reduce
their operand by tables, and compute in doubles only the terms that are smaller than the result by 2^-13 or more.

Source: T. J. Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18 (1971);
Y. Hida, X. S. Li and D. H. Bailey, Algorithms for quad-double precision floating point arithmetic, ARITH-15 (2001);
P. T. P. Tang, Table-lookup algorithms for elementary functions, ARITH-10 (1991).
"""

from __future__ import annotations

import decimal
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

try:
    from pullback.backends.host import pairs
except ImportError:  # it was installed without a compiler
    pairs = None  # type: ignore[assignment]


class Two(NamedTuple):
    """Numbers that are the sums of two doubles.

    Attributes:
      hi: the numbers, rounded to doubles.
      lo: the rest.
    """

    hi: Any
    lo: Any


_ZERO = np.float64(0)
_new = tuple.__new__


def two(x: Any) -> Two:
    """Return doubles as sums of two."""
    return Two(x, _ZERO if type(x) is np.float64 else np.zeros_like(x))


class InC:
    """A function of numbers of two doubles that the module in C computes in one pass; otherwise NumPy does.

    Attributes:
      kernel: the index of the function in the module; None if there is no module.
      by_numpy: computes it by NumPy, where numbers are huge, tiny or not finite, too.
    """

    def __init__(self, name: str, by_numpy: Callable[..., Two]) -> None:
        self.kernel = None if pairs is None else pairs.kernel(name)
        self.by_numpy = by_numpy
        functools.update_wrapper(self, by_numpy)

    def __call__(self, *xs: Two) -> Two:
        if self.kernel is not None:
            use_tables()
            found = pairs.apply(self.kernel, None, True, 0.0, *[y for x in xs for y in x])
            if found is not None:
                return _new(Two, found)  # type: ignore[type-var]
        return self.by_numpy(*xs)

    def beside(self, xs: Any, value: Any, zeros: bool, unit: float) -> tuple[Two, float] | None:
        """Return the results, and the relative error that few of the doubles ``value`` exceed.

        Args:
          xs: the operands.
          value: the same results, computed with rounding.
          zeros: whether a result of zero needs no closer look.
          unit: the unit roundoff of the values.

        Returns:
          None if this needs the general way, such as for special values.
        """
        use_tables()
        assert self.kernel is not None
        found = pairs.apply(self.kernel, value, zeros, unit, *[y for x in xs for y in x])
        if found is None:
            return None
        hi, lo, error = found
        return _new(Two, (hi, lo)), error  # type: ignore[type-var]


def in_c(name: str) -> Callable[[Callable[..., Two]], InC]:
    """Return a decorator for the function of two doubles that the module in C has by this name."""
    return lambda by_numpy: InC(name, by_numpy)


def normal(s: Any, e: Any) -> Two:
    """Return ``s + e``, where ``e`` is smaller than ``s``; infinities and NaN of ``s`` stay."""
    hi = s + e
    lo = e - (hi - s)
    if _are_finite(lo):
        return Two(hi, lo)
    finite = np.isfinite(s)
    return Two(np.where(finite, hi, s)[()], np.where(finite & np.isfinite(lo), lo, 0.0)[()])


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the sum of doubles, and its rounding error."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


_SPLIT = 134217729.0  # 2^27 + 1


def _split(a: Any) -> tuple[Any, Any]:
    t = _SPLIT * a
    hi = t - (t - a)
    return hi, a - hi


def two_prod(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the product of doubles, and its rounding error; of huge and tiny numbers the error is 0."""
    p, e = _exact_product(a, b)
    if not _are_finite(e):
        e = np.where(np.isfinite(e), e, 0.0)[()]
    return p, e


def _are_finite(lo: Any) -> bool:
    return math.isfinite(abs(lo if type(lo) is np.float64 else np.add.reduce(lo, None)))


def _all(mask: Any) -> bool:
    return bool(mask if mask.ndim == 0 else mask.all())


@in_c("add")
def add(x: Two, y: Two) -> Two:
    """Return the sum."""
    s, e = two_sum(x.hi, y.hi)
    return normal(s, e + (x.lo + y.lo))


@in_c("neg")
def neg(x: Two) -> Two:
    """Return the numbers with the other sign."""
    return Two(-x.hi, -x.lo)


@in_c("sub")
def sub(x: Two, y: Two) -> Two:
    """Return the difference."""
    return add(x, neg(y))


def _exact_product(a: Any, b: Any) -> tuple[Any, Any]:
    p = a * b
    ah, al = _split(a)
    bh, bl = (ah, al) if b is a else _split(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@in_c("mul")
def mul(x: Two, y: Two) -> Two:
    """Return the product."""
    if _is_complex(x) or _is_complex(y):
        a, b, c, d = *parts(x), *parts(y)
        return joined(sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c)))
    p, e = two_prod(x.hi, y.hi)
    return normal(p, e + (x.hi * y.lo + x.lo * y.hi))


@in_c("square")
def square(x: Two) -> Two:
    """Return the square."""
    if _is_complex(x):
        return mul(x, x)
    p, e = two_prod(x.hi, x.hi)
    return normal(p, e + 2 * (x.hi * x.lo))


@in_c("div")
def div(x: Two, y: Two) -> Two:
    """Return the quotient."""
    if _is_complex(y):
        a, b = parts(y)
        size = add(square(a), square(b))
        numerator = mul(x, joined(a, neg(b)))
        return div(numerator, size)
    if _is_complex(x):
        a, b = parts(x)
        return joined(div(a, y), div(b, y))
    q = x.hi / y.hi
    p, e = two_prod(q, y.hi)
    rest = (x.hi - p) - e + x.lo - q * y.lo
    more = rest / y.hi
    return normal(q, np.where(np.isfinite(more), more, 0.0)[()] if not np.isfinite(more).all() else more)


@in_c("sqrt")
def sqrt(x: Two) -> Two:
    """Return the square root."""
    q = np.sqrt(x.hi)
    p, e = two_prod(q, q)
    more = ((x.hi - p) - e + x.lo) / (2 * q)
    return normal(q, more if _are_finite(more) else np.where(np.isfinite(more), more, 0.0)[()])


def scaled(x: Two, factor: float) -> Two:
    """Return the numbers times a power of two."""
    return Two(x.hi * factor, x.lo * factor)


def where(condition: Any, x: Two, y: Two) -> Two:
    """Return the numbers of ``x`` where a condition holds, and those of ``y`` elsewhere."""
    if type(x.hi) is np.float64 and type(y.hi) is np.float64 and type(condition) is np.bool_:
        return x if condition else y
    return Two(np.where(condition, x.hi, y.hi)[()], np.where(condition, x.lo, y.lo)[()])


@in_c("abs")
def absolute(x: Two) -> Two:
    """Return the absolute values of real numbers."""
    return where(x.hi < 0, neg(x), x)


def _is_complex(x: Two) -> bool:
    return bool(x.hi.dtype.kind == "c")


def parts(x: Two) -> tuple[Two, Two]:
    """Return the real and the imaginary parts."""
    if not _is_complex(x):
        return x, two(np.zeros_like(x.hi))
    return Two(x.hi.real, x.lo.real), Two(x.hi.imag, x.lo.imag)


def joined(real: Two, imag: Two) -> Two:
    """Return complex numbers of their parts."""
    return Two(real.hi + 1j * imag.hi, real.lo + 1j * imag.lo)


def total(x: Two, axes: tuple[int, ...]) -> Two:
    """Return the sums along axes, by pairs."""
    if not axes:
        return x
    rank = np.ndim(x.hi)
    kept = [i for i in range(rank) if i not in axes]
    shape = tuple(np.shape(x.hi)[i] for i in kept)
    found = _total_in_c(x, axes, kept)
    if found is not None:
        return Two(found.hi.reshape(shape)[()], found.lo.reshape(shape)[()])
    hi, lo = (np.transpose(y, [*axes, *kept]).reshape(-1, *shape) for y in x)
    while len(hi) > 1:
        half = len(hi) // 2
        rest = hi[2 * half :], lo[2 * half :]
        hi, lo = add(Two(hi[:half], lo[:half]), Two(hi[half : 2 * half], lo[half : 2 * half]))
        if len(rest[0]):
            hi, lo = np.concatenate([hi, rest[0]]), np.concatenate([lo, rest[1]])
    return Two(hi[0], lo[0]) if len(hi) else two(np.zeros(shape, hi.dtype))


def _total_in_c(x: Two, axes: tuple[int, ...], kept: list[int]) -> Two | None:
    """Return the sums along axes, with any axes; None where this needs the general way."""
    shape = x.hi.shape
    if pairs is None or x.hi.dtype != _DOUBLE or not x.hi.size:
        return None
    first, last = min(axes), max(axes)
    together = len(axes) == last - first + 1
    order = range(len(shape)) if together else [*kept, *axes]
    outer = math.prod(shape[:first] if together else [shape[i] for i in kept])
    inner = math.prod(shape[last + 1 :]) if together else 1
    hi, lo = (np.ascontiguousarray(np.transpose(y, order).reshape(outer, -1, inner), _DOUBLE) for y in x)
    found = pairs.total(hi, lo)
    return None if found is None else Two(*found)


_DOUBLE = np.dtype(np.float64)


# Constants ------------------------------------------------------------------------------------------------------------

_EXACT = decimal.Context(prec=60)


def _pair(x: decimal.Decimal) -> tuple[float, float]:
    """Return a number of many digits as the sum of two doubles."""
    hi = float(x)
    return hi, float(_EXACT.subtract(x, decimal.Decimal(hi)))


def _pieces(x: decimal.Decimal, bits: int, count: int) -> list[float]:
    """Return a number as a sum of doubles with few bits each, and a last one."""
    found = []
    for _ in range(count):
        value = float(x)
        exponent = np.frexp(value)[1]
        piece = float(np.ldexp(np.rint(np.ldexp(value, bits - exponent)), exponent - bits))
        found.append(piece)
        x = _EXACT.subtract(x, decimal.Decimal(piece))
    return [*found, float(x)]


@functools.cache
def _pi() -> decimal.Decimal:
    """Return pi with 60 digits, by Machin's formula."""
    with decimal.localcontext(_EXACT):
        return 16 * _arctan(5) - 4 * _arctan(239)


def _arctan(n: int) -> decimal.Decimal:
    x = decimal.Decimal(1) / n
    total_, power, k = x, x, 1
    while abs(power) > decimal.Decimal(10) ** -62:
        power /= -n * n
        k += 2
        total_ += power / k
    return total_


def _table(values: list[decimal.Decimal]) -> Two:
    pairs = np.array([_pair(x) for x in values])
    return Two(pairs[:, 0], pairs[:, 1])


@functools.cache
def _exp_constants() -> tuple[list[float], Two]:
    """Return log(2)/64 in pieces, and the powers 2^(j/64)."""
    with decimal.localcontext(_EXACT):
        step = decimal.Decimal(2).ln() / 64
        return _pieces(step, 34, 2), _table([(step * j).exp() for j in range(64)])


@functools.cache
def _log_constants() -> tuple[list[float], Two]:
    """Return log(2) in pieces, and the logarithms of j/64."""
    with decimal.localcontext(_EXACT):
        return _pieces(decimal.Decimal(2).ln(), 40, 1), _table([
            decimal.Decimal(max(j, 1)).ln() - decimal.Decimal(64).ln() for j in range(96)
        ])  # fmt: skip


_TURN = 256


@functools.cache
def _sine_constants() -> tuple[list[float], Two, Two]:
    """Return pi/256 in pieces, and the sines and cosines of its multiples up to 2 pi."""
    with decimal.localcontext(_EXACT):
        step = _pi() / _TURN
        sines, cosines = [], []
        for j in range(2 * _TURN):
            sine, cosine = _sine_and_cosine(step * j if j <= _TURN else step * (j - 2 * _TURN))
            sines.append(sine)
            cosines.append(cosine)
        return _pieces(step, 26, 3), _table(sines), _table(cosines)


def _sine_and_cosine(x: decimal.Decimal) -> tuple[decimal.Decimal, decimal.Decimal]:
    sums = [decimal.Decimal(0), decimal.Decimal(0)]
    term, k = decimal.Decimal(1), 0
    while k < 6 or abs(term) > decimal.Decimal(10) ** -60:
        sums[k % 2] += term * (-1) ** (k // 2)
        k += 1
        term = term * x / k
    return sums[1], sums[0]


@functools.cache
def use_tables() -> None:
    """Hand the constants to the module in C."""
    (exp, powers), (log, logs), (angle, sines, cosines) = _exp_constants(), _log_constants(), _sine_constants()
    tables = [np.stack(table, 1).reshape(-1) for table in (powers, logs, sines, cosines)]
    pairs.use_tables(np.concatenate([[*exp, *log, *angle], *tables]))


def pi() -> Two:
    """Return pi."""
    hi, lo = _pair(_pi())
    return Two(np.float64(hi), np.float64(lo))


# Elementary functions -------------------------------------------------------------------------------------------------


def _horner(r: Any, coefficients: list[float]) -> Any:
    """Return a polynomial in doubles, whose coefficients are given from the constant one on."""
    value: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * r + c
    return value


_EXP = [1 / 3, 1 / 12, 1 / 60, 1 / 360, 1 / 2520, 1 / 20160]
_LOG = [1 / 3, -1 / 4, 1 / 5, -1 / 6, 1 / 7, -1 / 8, 1 / 9, -1 / 10]
_SINE = [-1 / 6, 1 / 120, -1 / 5040, 1 / 362880]
_COSINE = [1 / 24, -1 / 720, 1 / 40320]


def _guarded(rough: Any, x: Two) -> Two:
    """Return ``x``, but the doubles ``rough`` alone where these are not finite or tiny."""
    usual = np.isfinite(rough) & (np.abs(rough) > 1e-290)
    return x if _all(usual) else where(usual & np.isfinite(x.hi), x, two(rough))


def _reduced(x: Two, count: Any, pieces: list[float]) -> Two:
    """Return ``x - count * step``; the products of ``count`` and the pieces of the step are exact but for the last."""
    rest: Two = Two(x.hi - count * pieces[0], x.lo)
    for piece in pieces[1:-1]:
        s, e = two_sum(rest.hi, -count * piece)
        rest = Two(s, rest.lo + e)
    return normal(rest.hi, rest.lo - count * pieces[-1])


def _exp_parts(x: Two) -> tuple[Any, Two]:
    """Return the multiple of log(2)/64 that is next to ``x``, and exp(rest) - 1 of the rest."""
    pieces, _ = _exp_constants()
    count = np.rint(np.where(np.abs(x.hi) < 800, x.hi, 0.0) / (pieces[0] + pieces[1]))
    r = _reduced(x, count, pieces)
    half = scaled(square(r), 0.5)
    return count, add(r, normal(half.hi, half.lo + r.hi * half.hi * _horner(r.hi, _EXP)))


@in_c("exp")
def exp(x: Two) -> Two:
    """Return the exponentials of real numbers."""
    count, more = _exp_parts(x)
    _, table = _exp_constants()
    n = count.astype(np.int64)
    power = Two(table.hi[n & 63], table.lo[n & 63])
    y = add(power, mul(power, more))
    return _guarded(np.exp(x.hi), Two(np.ldexp(y.hi, n >> 6), np.ldexp(y.lo, n >> 6)))


@in_c("expm1")
def expm1(x: Two) -> Two:
    """Return ``exp(x) - 1`` of real numbers."""
    count, more = _exp_parts(x)
    return _guarded(np.expm1(x.hi), where(count == 0, more, sub(exp(x), two(np.ones_like(x.hi)))))


@in_c("log")
def log(x: Two) -> Two:
    """Return the logarithms of real numbers."""
    pieces, table = _log_constants()
    mantissa, exponent = np.frexp(np.where(np.isfinite(x.hi), x.hi, 1.0))
    small = mantissa < 0.7071
    mantissa, exponent = np.where(small, 2 * mantissa, mantissa), exponent - small
    j = np.rint(64 * np.maximum(mantissa, 0.7)).astype(np.int64)
    centre = j / 64
    u = normal(mantissa - centre, np.ldexp(x.lo, -exponent))
    r = div(u, two(centre))
    cube = mul(square(r), r)
    half = scaled(square(r), -0.5)
    tail = cube.hi * _horner(r.hi, _LOG)
    y = add(r, normal(half.hi, half.lo + tail))
    n = exponent.astype(np.float64)
    large = add(normal(n * pieces[0], n * pieces[1]), Two(table.hi[j], table.lo[j]))
    return _guarded_log(np.log(x.hi), where((j == 64) & (exponent == 0), y, add(large, y)))


def _guarded_log(rough: Any, x: Two) -> Two:
    """Return ``x``, but the doubles ``rough`` where these are not finite."""
    usual = np.isfinite(rough)
    return x if _all(usual) else where(usual, x, two(rough))


@in_c("log1p")
def log1p(x: Two) -> Two:
    """Return ``log(1 + x)`` of real numbers."""
    s, e = two_sum(np.ones_like(x.hi), x.hi)
    half = scaled(square(x), -0.5)
    small = add(x, Two(half.hi, half.lo + x.hi * x.hi * x.hi / 3))
    return _guarded_log(np.log1p(x.hi), where(np.abs(x.hi) < 1e-8, small, log(normal(s, e + x.lo))))


def sine_and_cosine(x: Two) -> tuple[Two, Two]:
    """Return the sines and the cosines of real numbers up to 1,500,000; of larger ones, to the last digit."""
    return sin(x), cos(x)


@in_c("sin")
def sin(x: Two) -> Two:
    """Return the sines of real numbers; see :func:`sine_and_cosine`."""
    return _circular(x, False)


@in_c("cos")
def cos(x: Two) -> Two:
    """Return the cosines of real numbers; see :func:`sine_and_cosine`."""
    return _circular(x, True)


def _circular(x: Two, cosines: bool) -> Two:
    """Return the sines, or the cosines, of real numbers."""
    near = np.abs(x.hi) < 1.5e6
    if not _all(near):
        s, c = np.sin(x.hi), np.cos(x.hi)
        far = normal(c, -s * x.lo) if cosines else normal(s, c * x.lo)
        return where(near, _circular(where(near, x, two(np.zeros_like(x.hi))), cosines), far)
    (j, r, rr), (_, first, second) = _turned(x), _sine_constants()
    s, c = Two(first.hi[j], first.lo[j]), Two(second.hi[j], second.lo[j])
    sine = normal(r.hi, r.lo + r.hi * rr.hi * _horner(rr.hi, _SINE))
    less = Two(-0.5 * rr.hi, -0.5 * rr.lo + rr.hi * rr.hi * _horner(rr.hi, _COSINE))  # the cosine of the rest, minus 1
    if cosines:
        change = sub(mul(c, less), mul(s, sine))
        return add(c, change)
    change = add(mul(s, less), mul(c, sine))
    return add(s, change)


def _turned(x: Two) -> tuple[Any, Two, Two]:
    """Return the multiples of pi/256 next to real numbers, modulo 2 pi, the rest, and its square."""
    pieces, _, _ = _sine_constants()
    count = np.rint(x.hi / (pieces[0] + pieces[1]))
    r = _reduced(x, count, pieces)
    return count.astype(np.int64) % (2 * _TURN), r, square(r)


def tan(x: Two) -> Two:
    """Return the tangents of real numbers."""
    return div(*sine_and_cosine(x))


def atan2(y: Two, x: Two) -> Two:
    """Return the angles of the points (x, y): the angle in doubles, corrected by Newton's method."""
    rough = np.arctan2(y.hi, x.hi)
    s, c = sine_and_cosine(two(rough))
    across, along = sub(mul(y, c), mul(x, s)), add(mul(x, c), mul(y, s))
    more = div(across, along)
    return _guarded(rough, add(two(rough), where(np.isfinite(more.hi), more, two(np.zeros_like(rough)))))


def atan(x: Two) -> Two:
    """Return the arc tangents of real numbers."""
    return atan2(x, two(np.ones_like(x.hi)))


def _complement(x: Two) -> Two:
    """Return ``sqrt(1 - x * x)``."""
    one = two(np.ones_like(x.hi))
    return sqrt(mul(sub(one, x), add(one, x)))


def asin(x: Two) -> Two:
    """Return the arc sines of real numbers."""
    return _guarded(np.arcsin(x.hi), atan2(x, _complement(x)))


def acos(x: Two) -> Two:
    """Return the arc cosines of real numbers."""
    return _guarded_log(np.arccos(x.hi), atan2(_complement(x), x))


def sinh(x: Two) -> Two:
    """Return the hyperbolic sines of real numbers."""
    e = expm1(absolute(x))
    share = div(e, add(e, two(np.ones_like(x.hi))))
    y = scaled(add(e, share), 0.5)
    return _guarded(np.sinh(x.hi), where(x.hi < 0, neg(y), y))


def cosh(x: Two) -> Two:
    """Return the hyperbolic cosines of real numbers."""
    e = exp(x)
    return _guarded(np.cosh(x.hi), scaled(add(e, div(two(np.ones_like(x.hi)), e)), 0.5))


@in_c("tanh")
def tanh(x: Two) -> Two:
    """Return the hyperbolic tangents of real numbers."""
    e = expm1(scaled(where(np.abs(x.hi) < 60, x, two(np.copysign(60.0, x.hi))), 2.0))
    return _guarded(np.tanh(x.hi), div(e, add(e, two(np.full_like(x.hi, 2.0)))))


def asinh(x: Two) -> Two:
    """Return the inverse hyperbolic sines of real numbers."""
    a = absolute(x)
    one = two(np.ones_like(x.hi))
    root = sqrt(add(one, square(a)))
    share = div(square(a), add(one, root))
    y = log1p(add(a, share))
    return _guarded(np.arcsinh(x.hi), where(x.hi < 0, neg(y), y))


def acosh(x: Two) -> Two:
    """Return the inverse hyperbolic cosines of real numbers."""
    one = two(np.ones_like(x.hi))
    t = sub(x, one)
    root = sqrt(mul(t, add(x, one)))
    return _guarded_log(np.arccosh(x.hi), log1p(add(t, root)))


def atanh(x: Two) -> Two:
    """Return the inverse hyperbolic tangents of real numbers."""
    one = two(np.ones_like(x.hi))
    return _guarded(np.arctanh(x.hi), scaled(log1p(div(scaled(x, 2.0), sub(one, x))), 0.5))


def cbrt(x: Two) -> Two:
    """Return the cube roots of real numbers: those in doubles, corrected by Newton's method."""
    q = two(np.cbrt(x.hi))
    slope = mul(square(q), two(np.full_like(x.hi, 3.0)))
    missing = sub(x, mul(square(q), q))
    return _guarded(q.hi, add(q, div(missing, slope)))


@in_c("logistic")
def logistic(x: Two) -> Two:
    """Return ``1 / (1 + exp(-x))`` of real numbers."""
    one = two(np.ones_like(x.hi))
    e = exp(neg(absolute(x)))
    return where(x.hi < 0, div(e, add(one, e)), div(one, add(one, e)))


def hypot(x: Two, y: Two) -> Two:
    """Return ``sqrt(x * x + y * y)`` of real numbers, without overflow."""
    size = np.maximum(np.abs(x.hi), np.abs(y.hi))
    exponent = np.where(np.isfinite(size), np.frexp(size)[1], 0)
    a, b = (Two(np.ldexp(z.hi, -exponent), np.ldexp(z.lo, -exponent)) for z in (x, y))
    r = sqrt(add(square(a), square(b)))
    return _guarded_log(np.hypot(x.hi, y.hi), Two(np.ldexp(r.hi, exponent), np.ldexp(r.lo, exponent)))


def integer_pow(x: Two, y: int) -> Two:
    """Return a power with an integer exponent."""
    one = two(np.ones_like(x.hi))
    if y < 0:
        return div(one, integer_pow(x, -y))
    found, power = one, x
    while y:
        found = mul(found, power) if y & 1 else found
        y >>= 1
        power = square(power) if y else power
    return found


def power(x: Two, y: Two) -> Two:
    """Return powers of real numbers, ``exp(y * log(x))``."""
    rough = np.power(x.hi, y.hi)
    found = exp(mul(y, log(absolute(x))))
    odd = (x.hi < 0) & (np.fmod(y.hi, 2.0) != 0)
    return _guarded(rough, where(odd, neg(found), found))
