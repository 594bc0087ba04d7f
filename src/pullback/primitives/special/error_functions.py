"""Functions related to the error function: erfcx, wofz, ndtri, and Dawson's, Fresnel's and Owen's integrals.

When compiled, all except the inverse are integrals of positive functions, so that nothing cancels, or series; wofz is
the trapezoidal rule with a correction for poles. For every dtype they are computed in double precision and rounded
once. Numbers such as 7.7.10 are formulas of the *Digital Library of Mathematical Functions*.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.backends.host.special import by_loop, has_loop, ndtri
from pullback.core.taylor_rules import Coefficient, Series, taylor
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import iota
from pullback.primitives.checks import COMPLEX, FLOAT
from pullback.primitives.declare import composite, elementwise, host_fused, in_double, in_single
from pullback.primitives.elementwise import mul
from pullback.primitives.large import compiled_from
from pullback.primitives.power_series import derivative, of_product
from pullback.primitives.power_series import integral as coefficients_of_integral
from pullback.primitives.special import chebyshev
from pullback.primitives.special.chebyshev import power_coefficients
from pullback.primitives.special.precision import doubled, log_of_positive_p
from pullback.primitives.special.quadrature import SERIES_BELOW, by_integrals, in_blocks, in_series
from pullback.primitives.special.quadrature import formula_integral as integral

from pullback.primitives.formulas import (  # isort: skip
    complex, cos, exp, expm1, floor, formula, imag, lifted, log, maximum, minimum, polynomial, real, remainder, round,
    sign, sin, sqrt, square, unary, where,
)  # fmt: skip
from pullback.primitives.formulas import stop_gradient as fixed

conj, log_of_positive, erf = lifted(ops.conj), unary(log_of_positive_p), unary(ops.erf_p)
integer_pow, bitcast_convert_type = lifted(ops.integer_pow), lifted(ops.bitcast_convert_type)
chebyshev_sum, expand_dims, reduce_sum = map(
    lifted, (chebyshev.chebyshev_sum, shapes.expand_dims, reductions.reduce_sum)
)

_BELOW = 38.0
"""Integrands are cut off where they fall to exp(-38) of their maximum, less than a rounding error."""
_ROOT_PI = math.sqrt(math.pi)


def halves(x: Any) -> tuple[Any, Any]:
    """Split ``x``, in double precision, into two numbers whose sum is ``x``; return both.

    The first number has 26 bits, so that its square is exact.
    """
    bits = np.dtype(np.uint64)
    word = bitcast_convert_type(x, bits) & shapes.full((), ~np.uint64(0x7FFFFFF), bits)
    high = bitcast_convert_type(word, x.dtype)
    return high, x - high


def exp_of_square(x: Any, factor: float) -> Any:
    """Return ``exp(factor * x²)`` without the error that the rounding of x² would cause.

    ``factor`` is a power of two, or minus a power of two.
    """
    high, low = halves(maximum(minimum(x, 1e100), -1e100))
    rest = expm1(low * (high + high + low) * factor)
    return exp(square(high) * factor) * (1 + rest)  # the compiler would merge a product of exponentials


# erfcx -------------------------------------------------------------------------------------------------------------

_SCALED = (
    1.1760066555883004, 0.025779673870048208, -0.10659315067778503, 0.038808879574483821, -0.005414899930893725,
    -0.00040815257282372385, 0.00019843768248553526, 9.8425327760481267e-6, -7.7632655610628584e-6,
    -7.174001457529683e-7, 3.1406949555818431e-7, 6.1884236695461443e-8, -9.8906199344922144e-9,
    -4.5953996225101798e-9, -7.1805877281770854e-11, 2.6296183336364044e-10, 4.8677340566079037e-11,
    -8.0268041937590186e-12, -4.7791335708452977e-12, -4.3470126478464434e-13, 2.412314273846194e-13,
    8.6109005212772468e-14, 2.59476489837122e-15, -5.8722543815010506e-15, -1.7019328812344318e-15,
    1.3873587121173449e-17, 1.4092174407259633e-16, 3.8412754939993898e-17,
)  # fmt: skip
"""The Chebyshev coefficients of (1 + 2 x) erfcx(x) in (x - 2) / (x + 2), from values of 45 digits; the variable is from
Shepherd and Laframboise, *Chebyshev approximation of (1 + 2x) exp(x²) erfc x*, Mathematics of Computation 36 (1981)."""


_SCALED_TO_SINGLE = (
    1.592640986675195e-06, 2.387735877488366e-06, -1.5877225523232664e-05, -2.7415980423530756e-05,
    0.00010640316997724133, 0.0002746834004621534, -0.0005478490048534832, -0.0030332443632784473,
    -0.0012125117668076958, 0.02682706755561177, 0.11952777001401597, 0.31046727713552813, 0.5902283568712466,
    0.8833944527643361, 1.0740069070883398,
)  # fmt: skip
"""The coefficients of a polynomial, the highest power first, in 6 / (x + 3) - 1, which interpolates (x + 3) erfcx(x) at
15 of Chebyshev's points; the error is 3e-11."""


def erfcx_of_positive(x: Any, single: bool) -> Any:
    """Evaluate erfcx for positive numbers, in double precision.

    If ``single``, the result is accurate to single precision only, and faster.
    """
    x = minimum(x, 1e300)
    if single:
        inverse = 1 / (x + 3)
        return inverse * polynomial(inverse * 6 - 1, _SCALED_TO_SINGLE)
    return chebyshev_sum(_SCALED, (x - 2) / (x + 2)) / (x * 2 + 1)


@formula
def _erfcx_value(x: Any, single: bool) -> Any:
    value = erfcx_of_positive(abs(x), single)
    negative = where(x < 0, x, 0)
    out = where(x < 0, 2 * exp_of_square(negative, 1.0) - value, value)
    return where(x == math.inf, 0, where(x == -math.inf, math.inf, out))


def _erfcx_derivative(x: Any, *, order: int) -> Any:
    """Evaluate the derivative of order ``order`` of w = erfcx.

    For positive x it is an integral (DLMF 7.7.1). For negative x it follows by recurrence from w' = 2 x w - 2 / √π.
    """
    size, far = abs(x), _BELOW + 6 * order
    end = minimum(math.sqrt(far), far / 2 / size)

    def integrand(t: Any, size: Any) -> Any:
        return exp(-(t * (t + 2 * size))) * integer_pow(t * -2, order)

    positive = integral(integrand, end, size) * (2 / _ROOT_PI)
    negative = where(x < 0, x, 0)
    before: Any = None
    below = _erfcx_value(negative, single=False)
    for n in range(order):
        rest = 2 / _ROOT_PI if n == 0 else before * (-2 * n)
        before, below = below, 2 * negative * below - rest
    out = where(x < 0, below, positive)
    out = where(x == math.inf, 0, where(x == -math.inf, (-1) ** order * math.inf, out))
    return where(x != x, x, out)


erfcx_derivative_p: Primitive = by_integrals(
    "erfcx_derivative", formula(_erfcx_derivative),
    (lambda t, x, order: mul(t, erfcx_derivative_p.bind(x, order=order + 1)),),
)  # fmt: skip


def host_erfcx(x: Any) -> Any:
    """Evaluate SciPy's erfcx; for x below -1, where SciPy rounds x² first, evaluate 2 exp(x²) - erfcx(-x) instead."""
    if x.dtype != np.float64 or not np.any(x < -1):
        return _scipy_erfcx(x)
    low = np.clip(x, -30.0, -1.0)
    high = np.round(low * 2**20) / 2**20
    rest = low - high
    direct = 2 * np.exp(high * high) * (1 + np.expm1(rest * (2 * high + rest))) - _scipy_erfcx(-low)
    return np.where(x < -1, direct, _scipy_erfcx(x))[()]


_scipy_erfcx = host.special("erfcx")
erfcx_p: Primitive = elementwise(
    "erfcx", of=FLOAT, host=by_loop(host_erfcx, "erfcx"),
    hlo=lambda hlo, x: in_double(partial(_erfcx_value, single=hlo.result.dtype.itemsize < 8))(hlo, x),
    jvp=lambda t, x, ans: mul(t, erfcx_derivative_p.bind(x, order=1)),
)  # fmt: skip


@in_series(erfcx_p)
@formula
def _erfcx_in_series(x: Any) -> Any:
    """Evaluate erfcx for its Taylor rule, by an integral I that depends on abs(x).

    For positive x erfcx is I; for negative x it is 2 exp(x²) - I.
    """
    negative = x < 0
    size = where(negative, -x, x)
    end = minimum(math.sqrt(SERIES_BELOW), SERIES_BELOW / 2 / fixed(size))
    positive = integral(lambda t, size: exp(-(t * (t + 2 * size))), end, size)
    positive = positive * (2 / _ROOT_PI)
    return where(negative, 2 * exp(square(where(negative, x, 0))) - positive, positive)


# Dawson's integral -------------------------------------------------------------------------------------------------

_FAR = 7.0
"""The least variable for which the asymptotic series are used: their smallest terms are below exp(-49)."""


def _far_series(z: Any, order: int) -> Any:
    """Return the derivative of order ``order`` at ``z`` of the sum of (2k - 1)!! / 2**k / z**(2k + 1) over k >= 0.

    The sum is the asymptotic series of functions such as Dawson's for large ``z`` (DLMF 7.12.1), cut off at 26 terms.
    """
    coefficients = []
    for k in range(26):
        double_factorial = math.prod(range(1, 2 * k, 2))
        coefficients.append(double_factorial / 2**k * math.prod(range(2 * k + 1, 2 * k + 1 + order)))
    inverse = 1 / z  # its powers do not overflow
    return integer_pow(inverse, order + 1) * (-1.0) ** order * polynomial(square(inverse), coefficients[::-1])


@formula
def _dawsn(x: Any, *, order: int = 0) -> Any:
    """Evaluate the derivative of order ``order`` of Dawson's integral D; order 0 is D itself.

    D is the integral of exp(-u (2x - u)) over u from 0 to x. The first derivative is 1 - 2 x D for x < 2; beyond, where
    this would cancel, it is exp(-2x²) minus the integral of 2 x exp(-2 x u) (exp(u²) - 1). Higher derivatives follow by
    recurrence. Far from zero each derivative is an asymptotic series.
    """
    size = abs(x)
    near = minimum(size, _FAR)
    end = minimum(near, _BELOW / (near + sqrt(maximum(square(near) - _BELOW, 0))))
    value = integral(lambda u, near: exp(-(u * (2 * near - u))), end, near)
    if order:
        direct = 1 - 2 * near * value
        small = integral(lambda u, near: exp(u * near * -2) * expm1(square(u)), near, near)
        other = exp(square(near) * -2) - 2 * near * small
        before, value = value, where(near < 2, direct, other)
        for n in range(1, order):
            before, value = value, near * -2 * value - 2 * n * before
    far = _far_series(maximum(size, _FAR), order) * 0.5
    out = where(size < _FAR, value, far)
    out = where(x < 0, -out, out) if order % 2 == 0 else out
    return where(x == 0, x, out) if order == 0 else out


dawsn_derivative_p: Primitive = by_integrals(
    "dawsn_derivative", _dawsn, (lambda t, x, order: mul(t, dawsn_derivative_p.bind(x, order=order + 1)),)
)
_scipy_dawsn = host.special("dawsn")
_DAWSON_SERIES = [(-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(11)]


def _host_dawsn(x: Any) -> Any:
    """Evaluate SciPy's dawsn on the host; near zero evaluate a Taylor series instead (DLMF 7.6.3).

    There SciPy's result is off by 75 ulps.
    """
    near = np.abs(x) < 0.3
    if x.dtype != np.float64 or not np.any(near):
        return _scipy_dawsn(x)
    small = np.where(near, x, 0.0)
    return np.where(near, small * np.polyval(_DAWSON_SERIES[::-1], small * small), _scipy_dawsn(x))[()]


dawsn_p: Primitive = elementwise(
    "dawsn", of=FLOAT, host=_host_dawsn, hlo=in_blocks(_dawsn),
    jvp=lambda t, x, ans: mul(t, dawsn_derivative_p.bind(x, order=1)),
)  # fmt: skip


@in_series(dawsn_p)
@formula
def _dawsn_in_series(x: Any) -> Any:
    """Evaluate Dawson's integral for its Taylor rule: x times the integral of exp(-x² v (2 - v)) over v from 0 to 1.

    No terms of the integral cancel.
    """
    squared = square(x)
    most = minimum(60 / fixed(squared), 1)  # 48 nodes are too few for more
    end = most / (sqrt(1 - most) + 1)
    return x * integral(lambda v, z: exp(-(z * (v * (2 - v)))), end, squared)


# Faddeeva's function -----------------------------------------------------------------------------------------------

_COUNT = 12
_STEP = math.sqrt(math.pi / _COUNT)


def _faddeeva_near(z: Any) -> Any:
    """Evaluate the Faddeeva function w(z) in the first quadrant, by the trapezoidal or the midpoint rule.

    The rule is corrected for the poles of the integrand. Source: M. Al Azah and S. N. Chandler-Wilde, *Computation of
    the complex error function using modified trapezoidal rules*, SIAM Journal on Numerical Analysis 59 (2021). The
    relative error is below 1e-14 with 12 points.
    """
    x, y = real(z), imag(z)
    fraction = x / _STEP
    fraction = fraction - floor(fraction)
    trapezoid = (y < x) & ((fraction >= 0.25) & (fraction <= 0.75))
    plain = y >= maximum(x, math.pi / _STEP)
    shift = where(trapezoid, shapes.full((), 0.0, x.dtype), 0.5)
    k = iota(x.dtype, (_COUNT,), 0)
    nodes = (expand_dims(shift, (len(x.shape),)) + k) * _STEP
    weights = exp(-square(nodes))
    weights = where(nodes == 0, weights * 0.5, weights)  # the node at zero counts for both sides
    wide = expand_dims(z, (len(x.shape),))
    zero = shapes.full((), 0.0, x.dtype)
    # A product of differences: the difference of squares would cancel near a node.
    differences = (wide - complex(nodes, zero)) * (wide + complex(nodes, zero))
    terms = complex(weights, zero) / differences
    total = reduce_sum(terms, (len(x.shape),))
    value = z * total * (2j * _STEP / math.pi)
    capped = complex(x, minimum(y, math.pi / _STEP))
    turned = exp(capped * (-2j * math.pi / _STEP))
    sign = where(trapezoid, shapes.full((), -1.0, x.dtype), 1)
    gauss = exp(complex((y - x) * (x + y), x * y * -2))
    correction = 2 * gauss / (1 + turned * complex(sign, zero))
    return where(plain, value, value + correction)


@formula
def _wofz(z: Any, *, order: int = 0) -> Any:
    """Evaluate the derivative of order ``order`` of the Faddeeva function w(z) = exp(-z²) erfc(-i z).

    In the first quadrant the derivatives follow by recurrence from w' = 2i / sqrt(pi) - 2 z w (DLMF 7.10.2). The other
    quadrants are reflected to the first (DLMF 7.4.3).
    """
    x, y = real(z), imag(z)
    low = y < 0
    upper = where(low, -z, z)
    left = real(upper) < 0
    size_x, size_y = abs(x), abs(y)
    far = maximum(size_x, size_y) > _FAR
    near = complex(where(far, 1, size_x), where(far, 1, size_y))
    distant = complex(where(far, size_x, _FAR), where(far, size_y, 1))
    value = _hermite_recurrence(near, _faddeeva_near(near), 2j / _ROOT_PI, order)
    outside = _far_series(distant, order) * (1j / _ROOT_PI)
    if order == 0:
        on_axis = where(size_y == 0, exp_of_square(where(far, size_x, _FAR), -1.0), 0)
        outside = outside + complex(on_axis, on_axis * 0)
    out = where(far, outside, value)
    sign = (-1.0) ** order
    out = where(left, conj(out) * sign, out)
    size = maximum((y - x) * (x + y), -1000)
    gauss = exp(complex(size, where(size == -1000, 0, x * y * -2)))
    return where(low, _hermite_recurrence(z, gauss, 0, order) * 2 - out * sign, out)


def _hermite_recurrence(z: Any, value: Any, rest: Any, order: int) -> Any:
    """Return the derivative of order ``order`` of w at ``z``, where w' = rest - 2 z w and w(z) = ``value``.

    ``rest`` is a constant.
    """
    before: Any = None
    for n in range(order):
        other = rest if n == 0 else before * (-2 * n)
        before, value = value, z * value * -2 + other
    return value


wofz_derivative_p: Primitive = composite(
    "wofz_derivative", of=COMPLEX, formula=doubled(_wofz),
    jvp=(lambda t, z, order: mul(t, wofz_derivative_p.bind(z, order=order + 1)),),
)  # fmt: skip
wofz_p: Primitive = elementwise(
    "wofz", of=COMPLEX, host=host.special("wofz"), hlo=in_double(_wofz),
    jvp=lambda t, z, ans: mul(t, wofz_derivative_p.bind(z, order=1)),
)  # fmt: skip


_FAR_FROM_WIDTH = 1e8


@formula
def _voigt(zeta: Any, sigma: Any, *, order: int) -> Any:
    """Return a derivative of ``wofz(zeta / (sigma sqrt(2))) / (sigma sqrt(2 pi))`` by zeta.

    Its limit for small sigma is the derivative of ``i / (pi zeta)``, which differs by less than a rounding error where
    zeta is 1e8 times as large as sigma.
    """
    scale = sigma * math.sqrt(2)
    far = abs(zeta) > abs(scale) * _FAR_FROM_WIDTH
    safe = where(far | (scale == 0), 1, scale)
    z = where(far | (scale == 0), 1j, zeta) / safe
    near = lifted(wofz_p.bind)(z) if order == 0 else lifted(wofz_derivative_p.bind)(z, order=order)
    near = near / math.sqrt(math.pi)
    limit = 1j * (math.factorial(order) * (-1) ** order / math.pi)
    for _ in range(order + 1):
        near, limit = near / safe, limit / where(far, zeta, 1)
    return where(far, limit, near)


voigt_p: Primitive = composite(
    "voigt", of=COMPLEX, formula=_voigt,
    jvp=(
        lambda t, zeta, sigma, order: mul(t, voigt_p.bind(zeta, sigma, order=order + 1)),
        # it solves the heat equation: its derivative by sigma**2 is half the second one by zeta
        lambda t, zeta, sigma, order: mul(t, mul(sigma, voigt_p.bind(zeta, sigma, order=order + 2))),
    ),
)  # fmt: skip


@formula
def _wave(x: Any, sigma: Any, gamma: Any, *, order: int) -> Any:
    """Return a derivative by x of Voigt's profile, and, as imaginary part, of its dispersion."""
    nothing = x * 0 + sigma * 0 + gamma * 0
    return lifted(voigt_p.bind)(complex(x + nothing, gamma + nothing), complex(sigma + nothing, nothing), order=order)


@formula
def _voigt_profile(x: Any, sigma: Any, gamma: Any) -> Any:
    value = real(_wave(x, sigma, gamma, order=0))
    return where((sigma == 0) & (gamma == 0) & (x == 0), math.inf, value)


voigt_profile_p: Primitive = elementwise(
    "voigt_profile", of=FLOAT, arity=3, host=host.special("voigt_profile"), hlo=in_double(_voigt_profile),
    cost=Cost.SPECIAL,
    jvp=(
        lambda t, x, sigma, gamma, ans: mul(t, ops.real_p.bind(_wave(x, sigma, gamma, order=1))),
        lambda t, x, sigma, gamma, ans: mul(t, mul(sigma, ops.real_p.bind(_wave(x, sigma, gamma, order=2)))),
        lambda t, x, sigma, gamma, ans: mul(t, ops.neg(ops.imag_p.bind(_wave(x, sigma, gamma, order=1)))),
    ),
)  # fmt: skip


# The quantiles of the normal distribution ----------------------------------------------------------------------------

_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
     1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
     687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_MIDDLE = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_TAILS = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def _ndtri(p: Any) -> Any:
    """Evaluate the normal quantile by the rational approximations of M. J. Wichura.

    Source: *Algorithm AS 241: the percentage points of the normal distribution*, Applied Statistics 37 (1988). The
    relative error is below 1e-16.
    """
    centre = p - 0.5
    inner = abs(centre) <= 0.425
    squared = 0.180625 - square(where(inner, centre, 0))
    tail = where(centre > 0, 1 - p, p)
    tail = where(inner | (tail <= 0), 0.05, tail)
    r = sqrt(-log_of_positive(tail))
    close = r <= 5
    inside, outside = minimum(r, 5) - 1.6, maximum(r, 5) - 5
    ratios = [
        polynomial(x, above) / polynomial(x, below)
        for x, (above, below) in ((squared, _CENTRE), (inside, _MIDDLE), (outside, _TAILS))
    ]
    size = where(close, ratios[1], ratios[2])
    out = where(inner, centre * ratios[0], where(centre > 0, size, -size))
    return _ndtri_at_ends(p, out)


_NEAR_CENTRE = 0.375


@formula
def _ndtri_of_singles(p: Any) -> Any:
    """Evaluate the normal quantile in single precision.

    Near 1/2 it is p - 1/2 times a polynomial in (p - 1/2)². In the lower tail it is a polynomial in 1 / sqrt(-log p),
    times sqrt(-log p); the upper tail is symmetric.
    """
    centre = p - 0.5
    inner = abs(centre) <= _NEAR_CENTRE
    tail = minimum(p, 1 - p)
    r = sqrt(-log(where(inner | (tail <= 0), 0.05, tail)))
    close = polynomial(square(where(inner, centre, 0)), power_coefficients(_near_centre, 0.0, _NEAR_CENTRE**2, 10))
    t = (1 / r - _MIDDLE_INVERSE) * (1 / _HALF_WIDTH)
    beyond = r * polynomial(t, power_coefficients(_in_tail, -1.0, 1.0, 12))
    out = where(inner, centre * close, where(centre > 0, beyond, -beyond))
    return _ndtri_at_ends(p, out)


_LOW_INVERSE, _HIGH_INVERSE = (1 / math.sqrt(-math.log(p)) for p in (1e-46, 0.5 - _NEAR_CENTRE))
_MIDDLE_INVERSE, _HALF_WIDTH = (_HIGH_INVERSE + _LOW_INVERSE) / 2, (_HIGH_INVERSE - _LOW_INVERSE) / 2


def _near_centre(square: Any) -> Any:
    return host.special("ndtri")(0.5 + np.sqrt(square)) / np.sqrt(square)


def _in_tail(t: Any) -> Any:
    inverse = _MIDDLE_INVERSE + _HALF_WIDTH * t
    return -host.special("ndtri_exp")(-(inverse**-2.0)) * inverse


def _ndtri_at_ends(p: Any, inside: Any) -> Any:
    out = where(p == 0, -math.inf, where(p == 1, math.inf, inside))
    return where((p >= 0) & (p <= 1), out, math.nan)


@formula
def _ndtri_slope(p: Any, q: Any) -> Any:
    """Return the reciprocal of the normal density at ``q``, the quantile of the probability ``p``.

    It is computed from the tail probability and erfcx(abs(q) / √2). The density's exp(-q²/2) would amplify the rounding
    of q.
    """
    below = p < 0.5
    tail, distance = where(below, p, 1 - p), where(below, -q, q)
    end = tail == 0
    slope = unary(erfcx_p)(distance * math.sqrt(0.5)) * math.sqrt(math.pi / 2) / where(end, 1, tail)
    return where(end, math.inf, slope)


ndtri_p: Primitive = elementwise(
    "ndtri", of=FLOAT, host=ndtri,
    hlo=lambda hlo, p: (in_double(formula(_ndtri)) if p.dtype == np.float64 else in_single(_ndtri_of_singles))(hlo, p),
    jvp=lambda t, p, ans: mul(t, _ndtri_slope(p, ans)),
)  # fmt: skip
compiled_from(ndtri_p, 50_000, unless=has_loop)  # 100,000: 1190 / 150, of 64 bits 648 / 395


@taylor(ndtri_p)
def _ndtri_taylor(ans: Series, p: Series) -> Coefficient:
    """Taylor rule of the normal quantile: return the Taylor coefficients of ``ans`` for those of the probability ``p``.

    The derivative of the quantile y is s = √(2π) exp(y²/2), and the derivative of log(s) is y y'.
    """
    slope = Series([_ndtri_slope(p[0], ans[0])])
    growth = Series([], lambda k: of_product(ans, derivative(ans), k))
    along, by_growth = coefficients_of_integral(slope, derivative(p)), coefficients_of_integral(slope, growth)

    def coefficient(k: int) -> Any:
        if k > 1:
            slope.known.append(by_growth(k - 1))
        return along(k)

    return coefficient


# Fresnel's integrals -------------------------------------------------------------------------------------------------


@formula
def _turn(x: Any, *, quarters: int) -> Any:
    """Return ``sin(pi / 2 (x² + quarters))``.

    First, x² is reduced modulo 4 without a rounding error.
    """
    high, low = halves(x)
    terms = [square(high), high * low * 2, square(low)]
    reduced = [remainder(term, 4.0) for term in terms]
    rest = reduced[0] + reduced[1] + (reduced[2] + quarters % 4)
    quarter = round(rest)
    angle = (rest - quarter) * (math.pi / 2)
    turn = remainder(quarter, 4.0)
    turn = where(turn < 0, turn + 4, turn)
    odd = (turn == 1) | (turn == 3)
    value = where(odd, cos(angle), sin(angle))
    return where(turn >= 2, -value, value)


fresnel_turn_p: Primitive = composite(
    "fresnel_turn", of=FLOAT, formula=doubled(_turn),
    jvp=(formula(lambda t, x, quarters: t * (x * math.pi * _next_turn(x, quarters))),),
)  # fmt: skip


def _next_turn(x: Any, quarters: int) -> Any:
    """Evaluate sin(π / 2 (x² + quarters + 1)), where ``quarters`` is 0 or 1.

    For ``quarters`` 1 it is computed as -sin(π / 2 x²), so that Taylor series are needed of two functions only.
    """
    turn = lifted(fresnel_turn_p.bind)
    return -turn(x, quarters=0) if quarters == 1 else turn(x, quarters=quarters + 1)


_AUXILIARY = math.sqrt(2) / math.pi


@formula
def _fresnel(x: Any, *, cosine: bool) -> Any:
    """Evaluate the Fresnel integral C if ``cosine``, else the Fresnel integral S.

    For abs(x) up to 1.6 it is computed by quadrature, and beyond from the auxiliary functions (DLMF 7.5.3, 7.5.4,
    7.7.10, 7.7.11).
    """
    size = abs(x)
    near = minimum(size, 1.6)
    within = integral(lambda t: (cos if cosine else sin)(square(t) * (math.pi / 2)), near)
    far = minimum(maximum(size, 1.6), 1e150)
    end = math.sqrt(2 * _BELOW / math.pi) / far

    def fall(u: Any, far: Any) -> Any:
        return exp(square(u * far) * (-math.pi / 2)) / (1 + square(square(u)))

    f = integral(fall, end, far) * _AUXILIARY
    g = integral(lambda u, far: square(u) * fall(u, far), end, far) * _AUXILIARY
    sine, other = _turn(far, quarters=0), _turn(far, quarters=1)
    swing = f * sine - g * other if cosine else -(f * other + g * sine)
    out = where(size < 1.6, within, 0.5 + swing)
    out = where(size == math.inf, 0.5, out)
    return sign(x) * out


fresnel_s_p: Primitive = elementwise(
    "fresnel_s", of=FLOAT, host=lambda x: _host_fresnel(x)[0], hlo=in_blocks(partial(_fresnel, cosine=False)),
    jvp=lambda t, x, ans: mul(t, fresnel_turn_p.bind(x, quarters=0)),
)  # fmt: skip
fresnel_c_p: Primitive = elementwise(
    "fresnel_c", of=FLOAT, host=lambda x: _host_fresnel(x)[1], hlo=in_blocks(partial(_fresnel, cosine=True)),
    jvp=lambda t, x, ans: mul(t, fresnel_turn_p.bind(x, quarters=1)),
)  # fmt: skip


_scipy_fresnel = host.special_pair("fresnel")
_DISTANT = 5.5
_OF_F = [(-1) ** k * math.prod(range(1, 4 * k, 2)) for k in range(10)]
_OF_G = [(-1) ** k * math.prod(range(1, 4 * k + 2, 2)) for k in range(10)]


def _host_fresnel(x: Any) -> list[Any]:
    """Return the Fresnel integrals S and C, evaluated by SciPy on the host.

    Far from zero, in double precision, asymptotic series replace SciPy's values (DLMF 7.12.2, 7.12.3): SciPy loses x²
    modulo 4 there.
    """
    both = [np.asarray(v) for v in _scipy_fresnel(x)]
    far = np.isfinite(x) & (np.abs(x) > _DISTANT)
    if x.dtype == np.float64 and np.any(far):
        for value, swing in zip(both, _swings(np.minimum(np.abs(x)[far], 1e150)), strict=True):
            value[far] = np.copysign(0.5 + swing, x[far])
    return [value[()] for value in both]


def _swings(size: Any) -> tuple[Any, Any]:
    """Return S - 1/2 and C - 1/2, where S and C are the Fresnel integrals at ``size``, a large positive number."""
    high = (size.view(np.uint64) & ~np.uint64(0x7FFFFFF)).view(np.float64)
    low = size - high
    angle = np.fmod(np.fmod(high * high, 4) + np.fmod(2 * high * low, 4) + np.fmod(low * low, 4), 4) * (np.pi / 2)
    inverse = 1 / (np.pi * size)
    inverse_square = inverse / size
    f = inverse * np.polyval(_OF_F[::-1], inverse_square**2)
    g = inverse * inverse_square * np.polyval(_OF_G[::-1], inverse_square**2)
    sine, cosine = np.sin(angle), np.cos(angle)
    return -f * cosine - g * sine, f * sine - g * cosine


fresnel = host_fused(
    "fresnel", host=_host_fresnel, otherwise=lambda x: [fresnel_s_p.bind(x), fresnel_c_p.bind(x)], results=2
)


# Owen's T ------------------------------------------------------------------------------------------------------------


def _owens_t(h: Any, a: Any) -> Any:
    """Evaluate Owen's function T(h, a): by quadrature for abs(a) up to 1, else from T(a h, 1 / a).

    Source of the relation: D. B. Owen, 1956.
    """
    h, size = abs(h), abs(a)
    beyond = size > 1
    product = where((h == 0) | (size == 0), 0, h * size)
    slope = where(beyond, 1 / size, size)
    height = minimum(where(beyond, product, h), 1e100)
    end = minimum(slope, math.sqrt(2 * _BELOW) / height)
    inner = integral(lambda x, height: exp(square(x * height) * -0.5) / (1 + square(x)), end, height)
    value = inner * exp_of_square(height, -0.5) * (0.5 / math.pi)
    tails = [exp_of_square(x, -0.5) * unary(erfcx_p)(x * math.sqrt(0.5)) * 0.5 for x in (h, product)]
    other = (tails[0] + tails[1]) * 0.5 - tails[0] * tails[1] - value
    out = sign(a) * where(beyond, other, value)
    return where((h != h) | (a != a), math.nan, out)


def _owens_by_a(h: Any, a: Any) -> Any:
    return exp(square(h) * (1 + square(a)) * -0.5) / ((1 + square(a)) * (2 * math.pi))


# SciPy's function is off by hundreds of ulps, and by a factor of 400 at (20, 1e-38), so that the host evaluates the
# formula too.
owens_t_p: Primitive = by_integrals(
    "owens_t", formula(_owens_t),
    (lambda t, h, a: mul(t, _owens_by_h(h, a)), lambda t, h, a: mul(t, doubled(formula(_owens_by_a))(h, a))),
)  # fmt: skip


@formula
def _owens_by_h(h: Any, a: Any) -> Any:
    density = exp(square(h) * -0.5) * (-0.5 / math.sqrt(2 * math.pi))
    return density * erf(h * a * math.sqrt(0.5))
