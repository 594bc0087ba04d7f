"""The uniform distribution."""

from __future__ import annotations

from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, log, log1p


def _rest(q: Any) -> Any:
    return ops.sub(1, q)


def _itself(q: Any) -> Any:
    return q


DISTRIBUTION = Continuous(
    values=("0.5", "-0.6931", "0.25", "-1.386", "0.75", "-0.2877", "2.8", "1.2"),
    formulas=("1", "z", "1 - z"),
    support="``0 <= z <= 1``",
    name="uniform", of="the uniform distribution from ``loc`` to ``loc + scale``", low=0.0, high=1.0,
    example="1.5; 0.9; 1.0; 2.0",
    log_density=lambda y: ops.mul(y, 0),
    cdf=_itself, logcdf=log, sf=_rest, logsf=lambda y: log1p(ops.neg(y)), ppf=_itself, isf=_rest,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
