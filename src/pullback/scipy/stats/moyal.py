"""The Moyal distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.primitives import elementwise as ops
from pullback.scipy.stats.distributions import Continuous, exp, log, where
from pullback.scipy.stats.formulas import FAR, by_gamma

_SHARED = by_gamma(lambda y: y * 0 + 0.5, lambda y: exp(-y) * 0.5, lambda y: -y, lambda g: -log(g * 2), decreasing=True)


def _log_sf(y: Any) -> Any:
    """Return the log survival function: far up, that of the first term of the series of erf."""
    far = ops.gt(y, FAR)
    return where(far, y * -0.5 + 0.5 * math.log(2 / math.pi), _SHARED["logsf"](where(far, 0, y)))


DISTRIBUTION = Continuous(
    values=("0.1686", "-1.781", "0.6367", "-0.4515", "0.3633", "-1.012", "0.3449", "1.291"),
    formulas=(
        "exp(-(z + exp(-z)) / 2) / sqrt(2 * pi)",
        "erfc(exp(-z / 2) / sqrt(2))",
        "erf(exp(-z / 2) / sqrt(2))",
    ),
    support="all real ``z``",
    name="moyal",
    of="the Moyal distribution, of the energy that a fast particle loses",
    interior=0.0, example="1.5; 0.4",
    **_SHARED | {
        "log_density": lambda y: ops.add(y, exp(-y)) * -0.5 - 0.5 * math.log(2 * math.pi), "logsf": _log_sf,
        "sf": lambda y: exp(_log_sf(y)),
    },
)  # fmt: skip

pdf, logpdf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
