"""The normal distribution between two points."""

from __future__ import annotations

import math
from typing import Any

from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, slice_in_dim
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.special.inverse_incomplete import ndtri_exp_p
from pullback.primitives.special.log_incomplete import log_ndtr_p
from pullback.scipy.special import ndtr
from pullback.scipy.stats.distributions import Continuous, both, by_the_smaller, exp, log, log1mexp, log1p, where
from pullback.scipy.stats.docstrings import WITHOUT_CANCELLATION

_log_ndtr, _logaddexp = log_ndtr_p.bind, ops.logaddexp_p.bind


def _log_mass(a: Any, b: Any) -> Any:
    """Return the log of the normal probability between ``a`` and ``b``.

    If both points are in one tail, it is computed in this tail. For points near each other it is computed from the
    density times the width, expanded to the fourth power of the width.
    """
    swapped = ops.gt(a, 0)
    left, right = where(swapped, ops.neg(b), a), where(swapped, ops.neg(a), b)
    around = ops.gt(right, 0)
    lower, upper = where(around, -2, left), where(around, -1, right)
    high = _log_ndtr(upper)
    in_tail = ops.add(high, log1mexp(ops.min_p.bind(ops.sub(_log_ndtr(lower), high), -1e-300)))
    missing = ops.add(ndtr(where(around, left, -1)), ndtr(ops.neg(where(around, right, 1))))
    width, centre = ops.sub(b, a), ops.mul(ops.add(a, b), 0.5)
    narrow = both(ops.lt(ops.mul(width, ops.max_p.bind(ops.abs(centre), 1)), 1e-3), ops.lt(ops.abs(centre), math.inf))
    between, small = where(narrow, centre, 0), where(both(narrow, ops.gt(width, 0)), width, 1e-3)
    square = between * between
    bend = log1p((square - 1) * (1 / 24) * (small * small))
    direct = square * -0.5 - 0.5 * math.log(2 * math.pi) + (log(small) + bend)
    direct = where(ops.gt(width, 0), direct, -math.inf)
    return where(narrow, direct, where(around, log1p(ops.neg(missing)), in_tail))


def _log_density(y: Any, a: Any, b: Any) -> Any:
    return ops.sub(y * y * -0.5 - 0.5 * math.log(2 * math.pi), _log_mass(a, b))


def _log_shares(y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the log of the distribution function at ``y``, and the log of the survival function at ``y``.

    The distribution is the normal distribution between ``a`` and ``b``. Each result is a log probability between two
    points, minus the log probability between ``a`` and ``b``; the three are computed as one array.
    """
    shape = broadcast_shape("truncnorm", [x.shape for x in (y, a, b)])
    y, a, b = [shapes.expand_dims(shapes.broadcast_to(x, shape), (0,)) for x in (y, a, b)]
    masses = _log_mass(concatenate([a, y, a], 0), concatenate([y, b, b], 0))
    below, above, total = [shapes.squeeze(slice_in_dim(masses, i, i + 1, 0), (0,)) for i in range(3)]
    return ops.sub(below, total), ops.sub(above, total)


def _log_cdf(y: Any, a: Any, b: Any) -> Any:
    return by_the_smaller(*_log_shares(y, a, b))


def _log_sf(y: Any, a: Any, b: Any) -> Any:
    return by_the_smaller(*_log_shares(y, a, b)[::-1])


def _from_below(q: Any, rest: Any, a: Any, b: Any) -> Any:
    """Return the quantile of ``q`` of the normal distribution between ``a`` and ``b``, where ``rest`` is 1 - q.

    It is computed in the lower or the upper tail, and by a series next to ``a`` or ``b``.
    """
    total, left = _log_mass(a, b), ops.lt(a, 0)
    # Where there is no logarithm, the point is an end.
    log_q, log_rest = (
        where(ops.lt(x, 0.5), log(where(ops.gt(x, 0), x, 0.25)), log1p(ops.neg(where(ops.lt(x, 0.5), 0, other))))
        for x, other in ((q, rest), (rest, q))
    )
    lower = _logaddexp(_log_ndtr(where(left, a, -1)), ops.add(log_q, total))
    upper = _logaddexp(_log_ndtr(ops.neg(where(ops.gt(b, -1), b, 0))), ops.add(log_rest, total))
    point = ndtri_exp_p.bind(ops.min_p.bind(where(left, lower, upper), 0))
    point = where(left, point, ops.neg(point))
    at_low, from_low = _next_to(a, q, total)
    at_high, from_high = _next_to(ops.neg(b), rest, total)
    point = where(at_low, ops.add(a, from_low), where(at_high, ops.sub(b, from_high), point))
    return ops.min_p.bind(ops.max_p.bind(point, a), b)


def _next_to(end: Any, share: Any, log_total: Any) -> tuple[Any, Any]:
    """Return a mask of where the quantile of ``share`` is near the lower end ``end``, and its distance from ``end``.

    The distance of the quantile is computed by a series that applies only near the end. ``log_total`` is the log of the
    normal probability of the interval.
    """
    finite = ops.lt(ops.abs(end), math.inf)
    end = where(finite, end, 0)
    log_density = end * end * -0.5 - 0.5 * math.log(2 * math.pi)
    u = ops.mul(share, exp(ops.sub(log_total, log_density)))
    bound = float(dtypes.finfo(share.dtype).eps) ** (1 / 3) / 4
    near = both(finite, ops.lt(ops.mul(u, ops.max_p.bind(ops.abs(end), 1)), bound))
    u = where(near, u, 0)
    second = end * end * 2 + 1
    bend = ops.add(end * 0.5, ops.mul(second, u) * (1 / 6))
    return near, u * (u * bend + 1)


def _middle(a: Any, b: Any) -> Any:
    low, high = ops.max_p.bind(a, -1e3), ops.min_p.bind(b, 1e3)
    return where(ops.lt(a, 1e3), where(ops.gt(b, -1e3), ops.mul(ops.add(low, high), 0.5), b), a)


DISTRIBUTION = Continuous(
    values=("0.4301", "-0.8438", "0.6509", "-0.4294", "0.3491", "-1.052", "1.256", "-0.7046"),
    formulas=(
        "exp(-z**2 / 2) / sqrt(2 * pi) / (ndtr(b) - ndtr(a))",
        "(ndtr(z) - ndtr(a)) / (ndtr(b) - ndtr(a))",
        "(ndtr(b) - ndtr(z)) / (ndtr(b) - ndtr(a))",
    ),
    support="``a <= z <= b``",
    notes={"logcdf": WITHOUT_CANCELLATION},
    name="truncnorm", of="the normal distribution between ``loc + a * scale`` and ``loc + b * scale``",
    parameters={"a": "the lower end of the standardised variable", "b": "the upper end"},
    valid=ops.lt, low=lambda a, b: a, high=lambda a, b: b, interior=_middle, example="0.5; 0.9; -1.0; 2.0",
    log_density=_log_density, logcdf=_log_cdf, logsf=_log_sf,
    ppf=lambda q, a, b: _from_below(q, ops.sub(1, q), a, b),
    isf=lambda q, a, b: _from_below(ops.sub(1, q), q, a, b),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
