"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.backends.host import rules as host
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives.special.gamma_functions import betaln_p
from pullback.primitives.special.inverse_incomplete import student_quantile
from pullback.primitives.special.log_incomplete import log_beta_sides
from pullback.scipy.stats import norm
from pullback.scipy.stats.distributions import Continuous, Formula, log, log1p, where
from pullback.scipy.stats.operations import from_log_tail, quantile_function

_HUGE = 1e60
"""Ratios of ``y`` to the root of the degrees of freedom above this are not squared."""


def _square_ratio(y: Any, df: Any) -> tuple[Any, Any]:
    """Return y² / df, and a mask of where its square root exceeds the dtype's limit; there the first result is 1."""
    ratio = ops.div(y, ops.sqrt(df))
    huge = ops.gt(ops.abs(ratio), _limit(y))
    ratio = where(huge, 1, ratio)
    return ops.mul(ratio, ratio), huge


def _limit(y: Any) -> float:
    return _HUGE if y.dtype.itemsize == 8 else 1e15 if y.dtype.itemsize == 4 else 100.0


def _log_kernel(y: Any, df: Any) -> Any:
    """Return log(1 + y² / df), also where y² overflows."""
    square, huge = _square_ratio(y, df)
    far = ops.sub(ops.mul(log(ops.abs(where(huge, y, 1))), 2), log(df))
    return where(huge, far, log1p(square))


def _log_density(y: Any, df: Any) -> Any:
    half = df * 0.5
    constant = betaln_p.bind(half, df * 0 + 0.5) + log(df) * 0.5
    return -ops.add(constant, ops.mul(half + 0.5, _log_kernel(y, df)))


def _log_tail(df: Any, size: Any) -> Any:
    """Return the log probability of Student's distribution below ``-size``.

    It is computed by the incomplete beta function of df / (df + size²).
    """
    square, huge = _square_ratio(size, df)
    zero = ops.eq(square, 0)
    inner = where(zero, 1, square)
    half, other = ops.mul(df, 0.5), ops.add(ops.mul(df, 0), 0.5)
    below = ops.add(inner, 1)
    inside, _ = log_beta_sides(half, other, ops.div(1, below), ops.gt(ops.mul(df, 0), 1), ops.div(inner, below))
    distance = ops.sub(log(df), ops.mul(log(where(huge, size, 1)), 2))
    beyond = half * distance - log(half) - betaln_p.bind(half, other)
    return ops.sub(where(zero, 0, where(huge, beyond, inside)), math.log(2))


student_cdf_p, student_log_cdf_p = from_log_tail("student", _log_tail, _log_density, host.special("stdtr"))


def _host_quantile(df: Any, q: Any) -> Any:
    """Evaluate SciPy's quantile of Student's distribution in double precision, and round it to the operands' dtype.

    SciPy's float32 version returns at most 5e18.
    """
    wide = _stdtrit(np.asarray(df, np.float64), np.asarray(q, np.float64))
    return wide.astype(np.result_type(df, q) if hasattr(df, "dtype") else q.dtype)


_stdtrit = host.special("stdtrit")
student_quantile_p = quantile_function(
    "student_quantile", student_quantile, _host_quantile, student_cdf_p, _log_density
)


def _or_normal(formula: Formula, limit: Formula) -> Formula:
    """Return a formula of y and the degrees of freedom df: ``formula(y, df)``, or ``limit(y)`` where df is infinite."""

    def of_any(y: Any, df: Any) -> Any:
        finite = ops.lt(df, math.inf)
        return where(finite, formula(y, where(finite, df, 1)), limit(y))

    return of_any


def _of_order_zero(primitive: Primitive) -> Formula:
    return lambda y, df: primitive.bind(df, y, orders=(0, 0))


_normal: Any = norm.DISTRIBUTION
DISTRIBUTION = Continuous(
    values=("0.1302", "-2.039", "0.05097", "-2.977", "0.949", "-0.05231", "2.738", "1.262"),
    formulas=(
        "(1 + z**2 / df)**(-(df + 1) / 2) / (sqrt(df) * beta(df / 2, 1 / 2))",
        "1 / 2 + sign(z) * betainc(1 / 2, df / 2, z**2 / (df + z**2)) / 2",
        "1 / 2 - sign(z) * betainc(1 / 2, df / 2, z**2 / (df + z**2)) / 2",
    ),
    support="all real ``z``",
    name="t", of="Student's t distribution", parameters={"df": "the degrees of freedom, positive"},
    valid=lambda df: ops.gt(df, 0), symmetric=True, example="1.0; 0.9; 5.0; 2.0; 0.5",
    log_density=_or_normal(_log_density, _normal.log_density),
    cdf=_or_normal(_of_order_zero(student_cdf_p), _normal.cdf),

    logcdf=_or_normal(_of_order_zero(student_log_cdf_p), _normal.logcdf),
    ppf=_or_normal(lambda q, df: student_quantile_p.bind(df, q), _normal.ppf),
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
