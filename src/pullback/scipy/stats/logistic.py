"""The logistic distribution."""

from __future__ import annotations

from typing import Any

from pullback.nn.activations import log_sigmoid
from pullback.primitives import elementwise as ops
from pullback.scipy.special import logit
from pullback.scipy.stats.distributions import Continuous


def _log_density(y: Any) -> Any:
    """Return the log density of the logistic distribution, log(s(y) s(-y)), where s is the logistic function."""
    return ops.add(log_sigmoid(y), log_sigmoid(ops.neg(y)))


DISTRIBUTION = Continuous(
    values=("0.21", "-1.561", "0.1192", "-2.127", "0.8808", "-0.1269", "3.099", "0.9014"),
    formulas=("exp(-z) / (1 + exp(-z))**2", "1 / (1 + exp(-z))", "1 / (1 + exp(z))"),
    support="all real ``z``",
    name="logistic", of="the logistic distribution", symmetric=True, example="1.0; 0.9; 2.0; 0.5",
    quantile={"ppf": "x", "isf": "x"},
    log_density=_log_density, cdf=ops.logistic, logcdf=log_sigmoid, ppf=logit,
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
