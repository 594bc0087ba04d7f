"""Functions composed of others: elementary ones, Huber's, and distribution functions.

SciPy computes concrete arrays. Otherwise each is a formula of operations, whose derivatives are the formula's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.interrupts import imported
from pullback.core.traits import Cost
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import elementwise
from pullback.primitives.special import error_functions, incomplete
from pullback.primitives.special import gamma_functions as gamma_primitives
from pullback.primitives.special import inverse_incomplete as quantiles
from pullback.primitives.special.exponential_integrals import log_ratio_p
from pullback.primitives.special.others import exprel_p
from pullback.primitives.special.precision import doubled
from pullback.primitives.special.quadrature import in_blocks
from pullback.scipy.special import elliptic_formulas
from pullback.scipy.special.airy import all_of
from pullback.scipy.special.declared import Binary, Function, Ternary, Unaries, Unary, composed, declared
from pullback.scipy.special.differentiated import by_forward_mode, derivative
from pullback.scipy.special.gammas import digamma
from pullback.scipy.special.relations import relation, wide

from pullback.primitives.formulas import (  # isort: skip
    binary, cos, exp, floor, formula, lifted, log, round, sin, sqrt, square, stop_gradient, unary, where,
)  # fmt: skip


def _scipys(name: str) -> Function:
    return lambda *xs: getattr(imported("scipy.special"), name)(*xs)


def _of(name: str, of: Function) -> Function:
    """Return SciPy's function of concrete arrays, and the formula ``of`` of others."""
    return composed(_of_trials(name) if name in ("bdtr", "bdtrc") else _scipys(name), formula(of))


def _of_trials(name: str) -> Function:
    """Return SciPy's function of successes, trials and a probability; it warns of trials that are floats."""
    of_integers = _scipys(name)

    def function(k: Any, n: Any, p: Any) -> Any:
        fine = np.isfinite(n)
        return np.where(fine, of_integers(k, np.where(fine, n, 0).astype(np.int64), p), np.nan)

    return function


# Elementary functions ------------------------------------------------------------------------------------------------

_gamma, _digamma = map(unary, (gamma_primitives.gamma_p, ops.digamma_p))
_expm1, _log1p = map(unary, (ops.expm1_p, ops.log1p_p))
_logaddexp, _square_error = binary(ops.logaddexp_p), lifted(ops.square_error)


def _sin_pi(x: Any) -> Any:
    """Return sin(pi x), which is zero at integers."""
    nearest = round(stop_gradient(x))
    return sin((x - nearest) * math.pi) * _parity(nearest)


def _parity(number: Any) -> Any:
    """Return 1 for even integers, and -1 for odd ones."""
    return 1 - 2 * (number - 2 * floor(number / 2))


def _rgamma_of(x: Any) -> Any:
    """Return 1 / gamma(x), by reflection left of 1/2: there it is a product without poles."""
    left = x < 0.5
    near, far = where(left, x, 0.25), where(left, 1, x)
    # gamma(1 - x), for negative x without the rounding of 1 - x
    size = where(near < -0.5, -near, 1)
    mirrored = where(near < -0.5, size * _gamma(size), _gamma(1 - near))
    return where(left, mirrored * _sin_pi(near) / math.pi, 1 / _gamma(far))


def _rgamma_slope(x: Any) -> Any:
    """Return the derivative: left of 1/2 that of the product, and else by digamma, as squares of gamma overflow."""
    left = x < 0.5
    near, far = where(left, x, 0.25), where(left, 1, x)
    turned = (near - round(stop_gradient(near))) * math.pi
    cosine = cos(turned) * _parity(round(stop_gradient(near)))
    product = _gamma(1 - near) * (cosine - _digamma(1 - near) * (_sin_pi(near) / math.pi))
    return where(left, product, -(_digamma(far) * _rgamma(far)))


def _degrees(shift: float) -> Function:
    """Return the sine of degrees and a shift, which is exact at multiples of 90."""

    def of(x: Any) -> Any:
        quarters = round(stop_gradient(x) / 90)
        angle = (x - 90 * quarters) * (math.pi / 180)
        turn = quarters + shift
        turn = turn - 4 * floor(turn / 4)
        sine, cosine = sin(angle), cos(angle)
        return where(turn == 0, sine, where(turn == 1, cosine, where(turn == 2, -sine, -cosine)))

    return of


_sine, _cosine = _degrees(0), _degrees(1)


def _agm(a: Any, b: Any) -> Any:
    """Return the mean by the complete elliptic integral (DLMF 19.8.5)."""
    both = a + b
    return both * (math.pi / 4) / lifted(elliptic_formulas.ellipkm1_p.bind)(4 * (a / both) * (b / both))


def _power_of(y: Any, power: Any) -> Any:
    """Return ``log(1 + power y) / power``, which is y where the power is zero."""
    return y * lifted(log_ratio_p.bind)(power * y, order=0)


def _huber(delta: Any, r: Any) -> Any:
    size = abs(r)
    value = where(size <= delta, 0.5 * square(r), delta * (size - 0.5 * delta))
    return where(delta < 0, math.inf, value)


def _pseudo_huber(delta: Any, r: Any) -> Any:
    safe = where(delta == 0, 1, delta)
    ratio = square(r / safe)
    value = square(safe) * ratio / (1 + sqrt(1 + ratio))
    return where(delta < 0, math.inf, where(delta == 0, 0, value))


def _binom(x: Any, y: Any) -> Any:
    """Return the coefficient by the beta function, and outside 0 <= y <= x by the gamma function."""
    inside = (y >= 0) & (y <= x)
    near = lifted(gamma_primitives.binomial_p.bind)(where(inside, x, 1), where(inside, y, 0))
    far_x, far_y = where(inside, 0, x), where(inside, 0, y)
    far = _gamma(far_x + 1) * _rgamma(far_y + 1) * _rgamma(far_x - far_y + 1)
    return where(inside, near, far)


def _exp_of_square(x: Any) -> Any:
    """Return exp(x**2) with the rounding error of the square."""
    return exp(square(x)) * (1 + _square_error(stop_gradient(x)))


def _erfi_of(x: Any) -> Any:
    return _exp_of_square(x) * lifted(error_functions.dawsn_p.bind)(x) * (2 / math.sqrt(math.pi))


def _log_expit(x: Any) -> Any:
    return -_logaddexp(x * 0, -x)


# Distribution functions ----------------------------------------------------------------------------------------------

_beta = binary(gamma_primitives.beta_p)
_gammainc, _gammaincc = binary(incomplete.igamma_p), binary(incomplete.igammac_p)
_gammainccinv = binary(quantiles.gammainccinv_p)
_betainc, _betaincc, _betaincinv = (
    lifted(p.bind) for p in (incomplete.betainc_p, incomplete.betaincc_p, quantiles.betaincinv_p)
)


def _odds(n: Any, d: Any, x: Any) -> tuple[Any, Any]:
    """Return ``n x / (d + n x)``, and one minus it without cancellation."""
    whole = d + n * x
    return n * x / whole, d / whole


def _fdtr(n: Any, d: Any, x: Any) -> Any:
    ratio, rest = _odds(n, d, where(x > 0, x, 1))
    low = ratio < 0.5
    tail = _betainc(where(low, n, d) / 2, where(low, d, n) / 2, where(low, ratio, rest))
    return where(x > 0, where(low, tail, 1 - tail), where(x == 0, x, math.nan))


def _fdtrc(n: Any, d: Any, x: Any) -> Any:
    _, rest = _odds(n, d, where(x > 0, x, 1))
    value = _betainc(d / 2, n / 2, rest)
    return where(x > 0, value, where(x == 0, x + 1, math.nan))


def _fdtri(n: Any, d: Any, p: Any) -> Any:
    """Return the quantile by the smaller of both tails."""
    low = p < 0.5
    ratio = _betaincinv(where(low, n, d) / 2, where(low, d, n) / 2, where(low, p, 1 - p))
    return d / n * where(low, ratio / (1 - ratio), (1 - ratio) / ratio)


def _chdtr(v: Any, x: Any) -> Any:
    return _gammainc(v / 2, x / 2)


def _chdtrc(v: Any, x: Any) -> Any:
    return where(x < 0, 1, _gammaincc(v / 2, where(x < 0, 1, x) / 2))


def _chdtri(v: Any, p: Any) -> Any:
    return 2 * _gammainccinv(v / 2, p)


def _pdtr(k: Any, m: Any) -> Any:
    return where((k < 0) | (m < 0), math.nan, _gammaincc(floor(where(k < 0, 0, k)) + 1, where(m < 0, 1, m)))


def _pdtrc(k: Any, m: Any) -> Any:
    return where((k < 0) | (m < 0), math.nan, _gammainc(floor(where(k < 0, 0, k)) + 1, where(m < 0, 1, m)))


def _bdtr(k: Any, n: Any, p: Any) -> Any:
    below, trials = floor(k), floor(n)
    inside = (below >= 0) & (below < trials) & (p >= 0) & (p <= 1)
    a, b = where(inside, trials - below, 1), where(inside, below + 1, 1)
    value = _betaincc(b, a, where(inside, p, 0.5))
    defined = (below >= 0) & (below <= trials) & (p >= 0) & (p <= 1)
    return where(inside, value, where(defined, p * 0 + 1, math.nan))


def _bdtrc(k: Any, n: Any, p: Any) -> Any:
    below, trials = floor(k), floor(n)
    inside = (below >= 0) & (below < trials) & (p >= 0) & (p <= 1)
    a, b = where(inside, below + 1, 1), where(inside, trials - below, 1)
    value = _betainc(a, b, where(inside, p, 0.5))
    defined = (below <= trials) & (p >= 0) & (p <= 1)
    return where(inside, value, where(defined, where(below < 0, p * 0 + 1, 0), math.nan))


def _nbdtr(k: Any, n: Any, p: Any) -> Any:
    return _betainc(n, floor(k) + 1, p)


def _nbdtrc(k: Any, n: Any, p: Any) -> Any:
    return _betaincc(n, floor(k) + 1, p)


def _stdtr(df: Any, t: Any) -> Any:
    """Return Student's distribution function, of its tail by ``df / (df + t**2)``, near zero by one minus it."""
    squared = square(t)
    near = squared < df
    inner = where(near, t, 0.5)
    ratio = square(inner) / (df + square(inner))
    safe = where(ratio == 0, 0.25, ratio)
    half, both = df * 0 + 0.5, df / 2
    far = df / (df + where(near, df, squared))
    value = _betainc(where(near, half, both), where(near, both, half), where(near, safe, far)) * 0.5
    # near zero it is t times an analytic function of t**2
    middle, tail = where(ratio == 0, t * 0, value), value
    right = where(near, 0.5 + middle, 1 - tail)
    left = where(near, 0.5 - middle, tail)
    return where(t > 0, right, left)


def _density(df: Any, t: Any) -> Any:
    """Return the density of Student's distribution, the derivative of its distribution function."""
    factor = 1 / (sqrt(df) * _beta(df / 2, df * 0 + 0.5))
    return factor * exp(-(df + 1) / 2 * _log1p(square(t) / df))


# Declarations --------------------------------------------------------------------------------------------------------

_BY_ALL = "SciPy computes concrete arrays; others are a formula of operations, with derivatives by all operands."


def _unary(name: str, of: Function, sentence: str, example: tuple[str, str], note: str = _BY_ALL) -> Any:
    return declared(__name__, name, "x", _of(name, of), sentence, example, note=note)


psi: Unary = declared(
    __name__,
    "psi",
    "x",
    digamma,
    "The digamma function, as :func:`digamma`, under SciPy's other name.",
    ("1.0", "-0.5772"),
)
_rgamma_relation: Function = relation("rgamma", "x", doubled(formula(_rgamma_slope)), formula=formula(_rgamma_of))
_rgamma = lifted(_rgamma_relation)
rgamma: Unary = declared(
    __name__, "rgamma", "x", _rgamma_relation,
    "The reciprocal of the gamma function: zero at the poles of :func:`gamma`.", ("3.0", "0.5000"),
    note="Derivatives are right at the poles too, by the reflection formula (DLMF 5.5.3).",
)  # fmt: skip
cosm1: Unary = declared(
    __name__, "cosm1", "x",
    relation("cosm1", "x", lambda x: ops.neg(ops.sin(x)), formula=formula(lambda x: -2 * square(sin(x / 2)))),
    "``cos(x) - 1``, without cancellation.", ("1.0", "-0.4597"),
)  # fmt: skip
_erfi = relation(
    "erfi", "x", doubled(formula(lambda x: _exp_of_square(x) * (2 / math.sqrt(math.pi)))),
    formula=formula(_erfi_of),
)  # fmt: skip
erfi: Unary = declared(
    __name__, "erfi", "x", _erfi, "The imaginary error function, ``-1j * erf(1j * x)``.", ("1.0", "1.6504")
)
exp10: Unary = _unary(
    "exp10", lambda x: lifted(ops.pow)(x * 0 + 10, x), "10 to the power of ``x``.", ("2.0", "100.0000")
)
exp2: Unary = declared(__name__, "exp2", "x", pnp.exp2, "2 to the power of ``x``.", ("3.0", "8.0000"))
expm1: Unary = declared(__name__, "expm1", "x", pnp.expm1, "``exp(x) - 1``, without cancellation.", ("1.0", "1.7183"))
log1p: Unary = declared(__name__, "log1p", "x", pnp.log1p, "``log(1 + x)``, without cancellation.", ("1.0", "0.6931"))
cbrt: Unary = declared(__name__, "cbrt", "x", pnp.cbrt, "The real cube root.", ("8.0", "2.0000"))
sinc: Unary = declared(__name__, "sinc", "x", pnp.sinc, "``sin(pi x) / (pi x)``, and 1 at 0.", ("0.5", "0.6366"))
log_expit: Unary = _unary("log_expit", _log_expit, "The logarithm of the logistic function.", ("0.0", "-0.6931"))
softplus: Unary = _unary(
    "softplus", lambda x: _logaddexp(x * 0, x), "``log(1 + exp(x))``, without overflow.", ("0.0", "0.6931")
)
sindg: Unary = _unary("sindg", _sine, "The sine of an angle in degrees, exact at multiples of 90.", ("30.0", "0.5000"))
cosdg: Unary = _unary(
    "cosdg", _cosine, "The cosine of an angle in degrees, exact at multiples of 90.", ("60.0", "0.5000")
)
tandg: Unary = _unary(
    "tandg", lambda x: _sine(x) / _cosine(x), "The tangent of an angle in degrees.", ("45.0", "1.0000")
)
cotdg: Unary = _unary(
    "cotdg", lambda x: _cosine(x) / _sine(x), "The cotangent of an angle in degrees.", ("45.0", "1.0000")
)


def _binary(
    name: str, operands: str, of: Function, sentence: str, example: tuple[str, str], note: str = _BY_ALL
) -> Any:
    return declared(__name__, name, operands, _of(name, of), sentence, example, note=note)


binom: Binary = _binary(
    "binom",
    "x, y",
    _binom,
    "The binomial coefficient of real numbers, ``gamma(x + 1) / gamma(y + 1) / gamma(x - y + 1)``.",
    ("5.0, 2.0", "10.0000"),
)
agm: Binary = _binary(
    "agm",
    "a, b",
    _agm,
    "The arithmetic-geometric mean of two numbers.",
    ("1.0, 2.0", "1.4568"),
    "Compiled it is an elliptic integral (DLMF 19.8.5), for positive numbers.",
)
powm1: Binary = _binary(
    "powm1",
    "x, y",
    lambda x, y: _expm1(y * log(x)),
    "``x**y - 1``, without cancellation.",
    ("2.0, 3.0", "7.0000"),
    "Compiled it takes positive ``x``, and returns NaN for negative ones.",
)
huber: Binary = _binary(
    "huber",
    "delta, r",
    _huber,
    "Huber's loss: half of the square up to ``delta``, and linear beyond.",
    ("1.0, 2.0", "1.5000"),
)
pseudo_huber: Binary = _binary(
    "pseudo_huber",
    "delta, r",
    _pseudo_huber,
    "The smooth Huber loss, ``delta**2 (sqrt(1 + (r / delta)**2) - 1)``.",
    ("1.0, 2.0", "1.2361"),
)
inv_boxcox: Binary = _binary(
    "inv_boxcox",
    "y, lmbda",
    lambda y, power: exp(_power_of(y, power)),
    "The inverse of :func:`boxcox`.",
    ("1.5, 2.0", "2.0000"),
)
inv_boxcox1p: Binary = _binary(
    "inv_boxcox1p",
    "y, lmbda",
    lambda y, power: _expm1(_power_of(y, power)),
    "The inverse of :func:`boxcox1p`.",
    ("1.5, 2.0", "1.0000"),
)
chdtr: Binary = _binary("chdtr", "v, x", _chdtr, "The distribution function of chi-squared.", ("2.0, 1.0", "0.3935"))
chdtrc: Binary = _binary("chdtrc", "v, x", _chdtrc, "The survival function of chi-squared.", ("2.0, 1.0", "0.6065"))
chdtri: Binary = _binary("chdtri", "v, p", _chdtri, "The inverse of :func:`chdtrc` by ``x``.", ("2.0, 0.5", "1.3863"))
_COUNTS = (
    "SciPy computes concrete arrays; others are a formula of operations, with derivatives by all operands but counts."
)
pdtr: Binary = _binary(
    "pdtr", "k, m", _pdtr, "Poisson's distribution function of mean ``m``.", ("1.0, 1.0", "0.7358"), _COUNTS
)
pdtrc: Binary = _binary(
    "pdtrc", "k, m", _pdtrc, "Poisson's survival function of mean ``m``.", ("1.0, 1.0", "0.2642"), _COUNTS
)
betaincc: Ternary = _binary(
    "betaincc",
    "a, b, x",
    _betaincc,
    "The complement of :func:`betainc`: ``1 - betainc(a, b, x)``.",
    ("1.0, 2.0, 0.5", "0.2500"),
)
gdtr: Ternary = _binary(
    "gdtr",
    "a, b, x",
    lambda a, b, x: _gammainc(b, a * x),
    "The distribution function of gamma, of rate ``a`` and shape ``b``.",
    ("1.0, 2.0, 1.0", "0.2642"),
)
gdtrc: Ternary = _binary(
    "gdtrc",
    "a, b, x",
    lambda a, b, x: _gammaincc(b, a * x),
    "The survival function of gamma, of rate ``a`` and shape ``b``.",
    ("1.0, 2.0, 1.0", "0.7358"),
)
bdtr: Ternary = _binary(
    "bdtr",
    "k, n, p",
    _bdtr,
    "The binomial distribution function: at most ``k`` successes in ``n`` trials.",
    ("1.0, 2.0, 0.5", "0.7500"),
    _COUNTS,
)
bdtrc: Ternary = _binary(
    "bdtrc",
    "k, n, p",
    _bdtrc,
    "The binomial survival function: more than ``k`` successes in ``n`` trials.",
    ("1.0, 2.0, 0.5", "0.2500"),
    _COUNTS,
)
nbdtr: Ternary = _binary(
    "nbdtr",
    "k, n, p",
    _nbdtr,
    "The negative binomial distribution function: at most ``k`` failures before ``n`` successes.",
    ("1.0, 2.0, 0.5", "0.5000"),
    _COUNTS,
)
nbdtrc: Ternary = _binary(
    "nbdtrc",
    "k, n, p",
    _nbdtrc,
    "The negative binomial survival function: more than ``k`` failures before ``n`` successes.",
    ("1.0, 2.0, 0.5", "0.5000"),
    _COUNTS,
)
fdtr: Ternary = _binary("fdtr", "dfn, dfd, x", _fdtr, "The distribution function of F.", ("1.0, 2.0, 1.0", "0.5774"))
fdtrc: Ternary = _binary("fdtrc", "dfn, dfd, x", _fdtrc, "The survival function of F.", ("1.0, 2.0, 1.0", "0.4226"))
fdtri: Ternary = _binary(
    "fdtri", "dfn, dfd, p", _fdtri, "The inverse of :func:`fdtr` by ``x``.", ("1.0, 2.0, 0.5", "0.6667")
)

# Functions with relations --------------------------------------------------------------------------------------------


def _sinh_ratio(x: Any) -> Any:
    """Return ``sinh(x) / x``, which is 1 at 0."""
    other = exprel_p.bind(ops.neg(x))
    return ops.mul(ops.add(exprel_p.bind(x), other), 0.5)


_density_of_t = doubled(formula(_density))


def _by_t(t: Any, df: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    return ops.mul(t, doubled(derivative(formula(_density), orders))(df, x))


_stdtr_p = by_forward_mode(
    "stdtr", formula(_stdtr), arity=2, host=lambda *xs: _scipys("stdtr")(*map(wide, xs)), integrals=True,
    slopes=(None, _by_t),
)  # fmt: skip


def _by_df(t: Any, df: Any, p: Any, ans: Any) -> Any:
    change = ops.mul(t, _stdtr_p.bind(df, ans, orders=(1, 0)))
    return ops.neg(ops.div(change, _density_of_t(df, ans)))


def _host_stdtrit(df: Any, p: Any) -> Any:
    """Evaluate SciPy's function in double precision: of singles it returns at most 5e18."""
    dtype = df.dtype if hasattr(df, "dtype") else p.dtype
    return np.asarray(_scipys("stdtrit")(wide(df), wide(p))).astype(dtype)[()]


_stdtrit_p = elementwise(
    "stdtrit", of=FLOAT, arity=2, host=_host_stdtrit,
    hlo=in_blocks(quantiles.student_quantile),
    jvp=(_by_df, lambda t, df, p, ans: ops.div(t, _density_of_t(df, ans))), cost=Cost.SPECIAL,
)  # fmt: skip
stdtr: Binary = declared(
    __name__,
    "stdtr",
    "df, t",
    lambda df, t: _stdtr_p.bind(df, t, orders=(0, 0)),
    "The distribution function of Student's t.",
    ("1.0, 1.0", "0.7500"),
    note="Compiled it is an incomplete beta function.",
)
stdtrit: Binary = declared(
    __name__,
    "stdtrit",
    "df, p",
    _stdtrit_p.bind,
    "The inverse of :func:`stdtr` by ``t``.",
    ("1.0, 0.75", "1.0000"),
    note="Compiled it is Newton's iteration for the smaller tail.",
)
ndtri_exp: Unary = declared(
    __name__, "ndtri_exp", "y", quantiles.ndtri_exp_p.bind,
    "The inverse of :func:`log_ndtr`, a quantile by the logarithm of a probability.", ("-1.0", "-0.3375"),
    note="Compiled it is Newton's iteration.",
)  # fmt: skip
_shi = relation("shichi.shi", "x", _sinh_ratio, result=0)
_chi = relation("shichi.chi", "x", lambda x: ops.div(ops.cosh(x), x), result=1)
shichi: Unaries = declared(
    __name__,
    "shichi",
    "x",
    all_of("shichi", _shi, _chi),
    "The integrals of ``sinh(t) / t`` and of ``cosh(t) / t``.",
    ("1.0", "1.0573 0.8379"),
    note="SciPy computes them on the host, also within compiled programs.",
    results=2,
)

__all__ = [
    "agm",
    "bdtr",
    "bdtrc",
    "betaincc",
    "binom",
    "cbrt",
    "chdtr",
    "chdtrc",
    "chdtri",
    "cosdg",
    "cosm1",
    "cotdg",
    "erfi",
    "exp2",
    "exp10",
    "expm1",
    "fdtr",
    "fdtrc",
    "fdtri",
    "gdtr",
    "gdtrc",
    "huber",
    "inv_boxcox",
    "inv_boxcox1p",
    "log1p",
    "log_expit",
    "nbdtr",
    "nbdtrc",
    "ndtri_exp",
    "pdtr",
    "pdtrc",
    "powm1",
    "pseudo_huber",
    "psi",
    "rgamma",
    "shichi",
    "sinc",
    "sindg",
    "softplus",
    "stdtr",
    "stdtrit",
    "tandg",
]  # fmt: skip
