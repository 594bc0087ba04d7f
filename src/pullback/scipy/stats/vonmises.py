"""The von Mises distribution, of angles."""

from __future__ import annotations

import math
from typing import Any

from pullback.control.fori_loop import fori_loop
from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.operands import stop_gradient
from pullback.primitives.special.bessel import bessel_i0e_p
from pullback.primitives.special.quadrature import integral
from pullback.scipy.stats.distributions import Continuous, at_least, both, exp, floor, log, where
from pullback.scipy.stats.operations import from_log_tail
from pullback.transforms.custom.custom_rules import custom_jvp

_PERIOD = 2 * math.pi


def _log_constant(kappa: Any) -> Any:
    return log(ops.mul(bessel_i0e_p.bind(kappa), _PERIOD))


def _log_density(y: Any, kappa: Any) -> Any:
    sine = ops.sin(y * 0.5)
    return ops.sub(ops.mul(kappa, sine * sine) * -2, _log_constant(kappa))


def _log_tail(kappa: Any, size: Any) -> Any:
    """Return the log probability of the von Mises distribution below ``-size``.

    It is the log density at ``-size``, plus the log of an integral over s: of the density at -size - s, relative to the
    density at ``-size``. The integral ends where s² is 19 π² / κ: since 1 - cos(s) is at least 2 s² / π², the relative
    density is below exp(-38) there.
    """
    reach = ops.sqrt(ops.div(19 * math.pi**2, ops.max_p.bind(kappa, 1e-3)))
    end = ops.min_p.bind(ops.sub(math.pi, size), reach)

    def integrand(s: Any, size: Any, kappa: Any) -> Any:
        half = s * 0.5
        return exp(kappa * -2 * (ops.sin(size + half) * ops.sin(half)))

    start = ops.le_p.bind(end, 0)
    inner = integral(integrand, where(start, 1, end), where(start, 1, size), kappa)
    return where(start, -math.inf, ops.add(_log_density(size, kappa), log(inner)))


von_mises_cdf_p, von_mises_log_cdf_p = from_log_tail("von_mises", _log_tail, _log_density)


def _turns(y: Any) -> Any:
    """Return the number of whole turns, of 2π, to subtract from an angle ``y`` so that it is in [-π, π]."""
    return stop_gradient(floor(ops.add(ops.div(y, _PERIOD), 0.5)))


def _cdf(y: Any, kappa: Any) -> Any:
    turns = _turns(y)
    rest = ops.sub(y, ops.mul(turns, _PERIOD))
    return ops.add(von_mises_cdf_p.bind(kappa, rest, orders=(0, 0)), turns)


def _log_cdf(y: Any, kappa: Any) -> Any:
    turns = _turns(y)
    first = ops.eq(turns, 0)
    inside = von_mises_log_cdf_p.bind(kappa, where(first, y, 0), orders=(0, 0))
    return where(first, inside, log(where(first, 1, ops.max_p.bind(_cdf(y, kappa), 0))))


@custom_jvp
def _angle(kappa: Any, logarithm: Any) -> Any:
    """Return the angle in [-π, 0] below which the log probability is ``logarithm``, by bisection.

    ``logarithm`` is at most log(1/2).
    """
    shape = broadcast_shape("vonmises.ppf", [kappa.shape, logarithm.shape])
    kappa, logarithm = [shapes.broadcast_to(x, shape) for x in (kappa, logarithm)]

    def step(_: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = ops.mul(ops.add(low, high), 0.5)
        over = at_least(von_mises_log_cdf_p.bind(kappa, middle, orders=(0, 0)), logarithm)
        return where(over, low, middle), where(over, middle, high)

    start = [shapes.full(shape, end, kappa.dtype) for end in (-math.pi, 0.0)]
    return fori_loop(0, 60 if kappa.dtype.itemsize == 8 else 30, step, tuple(start))[1]


@_angle.defjvp
def _angle_rule(primals: Any, tangents: Any) -> Any:
    """Jvp rule of :func:`_angle`, the inverse of the log distribution function, by the implicit function theorem.

    Return the angle and its tangent.
    """
    kappa, _ = primals
    ans = _angle(*primals)
    by_kappa = von_mises_log_cdf_p.bind(kappa, ans, orders=(1, 0))
    slope = exp(ops.sub(_log_density(ans, kappa), von_mises_log_cdf_p.bind(kappa, ans, orders=(0, 0))))
    change = ops.sub(tangents[1], ops.mul(by_kappa, tangents[0]))
    return ans, ops.div(change, slope)


def _ppf(q: Any, kappa: Any) -> Any:
    """Return the quantile of the von Mises distribution.

    Next to q = 1/2 it is a cubic series, whose next term is below the rounding error.
    """
    low = ops.lt(q, 0.5)
    size = _angle(kappa, log(where(low, q, ops.sub(1, q))))
    u = ops.mul(q - 0.5, exp(-_log_density(q * 0, kappa)))
    near = ops.lt(ops.mul(ops.mul(u, u), ops.max_p.bind(kappa, 1)), float(dtypes.finfo(q.dtype).eps) ** 0.5)
    u = where(near, u, 0)
    series = u * (ops.mul(kappa, u * u * (1 / 6)) + 1)
    return where(near, series, where(low, size, ops.neg(size)))


DISTRIBUTION = Continuous(
    values=("0.2057", "-1.581", "0.8896", "-0.117", "0.1104", "-2.203", "1.053", "-1.053"),
    name="vonmises", of="the von Mises distribution", parameters={"kappa": "the concentration, not negative"},
    valid=lambda kappa: both(at_least(kappa, 0), ops.lt(kappa, math.inf)), symmetric=True,
    example="1.0; 0.9; 2.0",
    source="The distribution function increases by one with each turn, and its inverse is between -π and π, as in "
        "SciPy.",
    log_density=_log_density, cdf=_cdf, logcdf=_log_cdf, ppf=_ppf,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
