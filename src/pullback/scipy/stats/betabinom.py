"""The beta-binomial distribution: a binomial one whose probability has a beta distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.control.loops import while_loop
from pullback.primitives import elementwise as ops
from pullback.primitives import shapes
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.gamma_functions import betaln_p
from pullback.primitives.reductions import reduce_max
from pullback.scipy.stats.distributions import Discrete, at_least, both, log, positive, where, whole

_betaln = betaln_p.bind


def _log_mass(k: Any, n: Any, a: Any, b: Any) -> Any:
    rest = ops.sub(n, k)
    ways = ops.neg(ops.add(log(ops.add(n, 1)), _betaln(ops.add(rest, 1), ops.add(k, 1))))
    return ops.add(ways, ops.sub(_betaln(ops.add(k, a), ops.add(rest, b)), _betaln(a, b)))


def _log_sum(first: Any, last: Any, n: Any, a: Any, b: Any) -> Any:
    """The logarithm of the sum of the probabilities from one count to another, term by term."""
    shape = broadcast_shape("betabinom", [x.shape for x in (first, last, n, a, b)])
    first, last, n, a, b = [shapes.broadcast_to(x, shape) for x in (first, last, n, a, b)]
    valid = both(at_least(n, 0), ops.lt(n, math.inf))
    n, first, last = where(valid, n, 0), where(valid, first, 0), where(valid, last, 0)

    def going(state: tuple[Any, Any]) -> Any:
        return ops.le_p.bind(state[0], most)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        i, total = state
        due = at_least(last, ops.add(first, i))
        term = _log_mass(where(due, ops.add(first, i), first), n, a, b)
        return ops.add(i, 1), where(due, ops.logaddexp_p.bind(total, term), total)

    count = ops.sub(last, first)
    most = reduce_max(count, tuple(range(len(shape)))) if 0 not in shape else shapes.full((), 0, count.dtype)
    start = shapes.full((), 1, count.dtype), _log_mass(first, n, a, b)
    return while_loop(going, step, start)[1]


DISTRIBUTION = Discrete(
    values=("0.1439", "-1.939", "0.4545", "-0.7885", "0.5455", "-0.6061", "7", "1"),
    name="betabinom", of="the beta-binomial distribution", high=lambda n, a, b: n, example="3; 0.9; 10; 2.0; 3.0",
    parameters={
        "n": "the number of trials, an integer",
        "a": "the first shape of the beta distribution, positive",
        "b": "the second shape, positive",
    },
    valid=lambda n, a, b: both(both(at_least(n, 0), whole(n)), positive(a, b)), log_mass=_log_mass,
    source="The distribution function is a sum over the counts, as in SciPy.",
    logcdf=lambda k, n, a, b: _log_sum(ops.mul(k, 0), k, n, a, b),
    logsf=lambda k, n, a, b: _log_sum(ops.add(k, 1), n, n, a, b),
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(__name__)

__all__ = ["cdf", "isf", "logcdf", "logpmf", "logsf", "pmf", "ppf", "sf"]
