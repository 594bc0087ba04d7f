"""The geometric distribution: the number of trials up to the first success."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.primitives import elementwise as ops
from pullback.primitives.special.others import xlog1py_p
from pullback.scipy.stats.distributions import Discrete, Formula, at_most, both, exp, expm1, log, log1mexp
from pullback.scipy.stats.docstrings import WITHOUT_CANCELLATION


def _log_sf(k: Any, p: Any) -> Any:
    return xlog1py_p.bind(k, ops.neg(p))


def _in_double(formula: Formula) -> Formula:
    """Convert a formula of the log survival function, log(sf), to a formula of k and p.

    The result is computed in double precision, since the formula takes the exponential of log(sf), which amplifies
    rounding errors.
    """

    def of_tail(k: Any, p: Any) -> Any:
        wide = [ops.convert_element_type(x, np.dtype(np.float64)) for x in (k, p)]
        return ops.convert_element_type(formula(_log_sf(*wide)), k.dtype)

    return of_tail


DISTRIBUTION = Discrete(
    values=("0.147", "-1.917", "0.657", "-0.4201", "0.343", "-1.07", "7", "1"),
    formulas=("(1 - p)**(i - 1) * p", "1 - (1 - p)**i", "(1 - p)**i"),
    support="integers ``i >= 1``",
    notes={"logcdf": WITHOUT_CANCELLATION},
    name="geom", of="the geometric distribution", low=1.0, example="3; 0.9; 0.3",
    parameters={"p": "the probability of a success"}, valid=lambda p: both(ops.gt(p, 0), at_most(p, 1)),
    log_mass=lambda k, p: ops.add(_log_sf(ops.sub(k, 1), p), log(p)),
    cdf=_in_double(lambda x: ops.neg(expm1(x))), logcdf=_in_double(log1mexp),
    sf=_in_double(exp), logsf=_log_sf, exact=True,
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
