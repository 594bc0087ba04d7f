"""The beta-binomial distribution: a binomial one whose probability has a beta distribution."""

from __future__ import annotations

import math
from typing import Any

from pullback.control.loops import while_loop
from pullback.nn.normalized import logsumexp
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.reductions import reduce_max
from pullback.primitives.special.gamma_functions import betaln_p
from pullback.scipy.stats.distributions import Discrete, at_least, both, is_integer, log, positive, where


def _log_mass(k: Any, n: Any, a: Any, b: Any) -> Any:
    """Return the log probability of ``k`` under the beta-binomial distribution.

    Its three log beta functions are computed in one call, since compiling a call takes long.
    """
    rest = ops.sub(n, k)
    pairs = [(ops.add(rest, 1), ops.add(k, 1)), (ops.add(k, a), ops.add(rest, b)), (a, b)]
    shape = broadcast_shape("betabinom", [x.shape for x in pairs[1]])
    columns = [[shapes.broadcast_to(x, (1, *shape)) for x in xs] for xs in zip(*pairs, strict=True)]
    ways, both_ways, shares = betaln_p.bind(*[slicing.concatenate(column, 0) for column in columns])
    return ops.sub(both_ways - shares, ops.add(log(n + 1), ways))


_BLOCK = 64
"""The number of probabilities that are summed in one step."""


def _log_sum(first: Any, last: Any, n: Any, a: Any, b: Any) -> Any:
    """Return the log of the sum of beta-binomial probabilities, over the counts from ``first`` to ``last``."""
    shape = broadcast_shape("betabinom", [x.shape for x in (first, last, n, a, b)])
    operands = [shapes.broadcast_to(x, shape) for x in (first, last, n, a, b)]
    first, last, n, a, b = [shapes.reshape(x, (*shape, 1)) for x in operands]
    valid = both(at_least(n, 0), ops.lt(n, math.inf))
    n, first, last = where(valid, n, 0), where(valid, first, 0), where(valid, last, 0)
    ahead = slicing.iota(first.dtype, (_BLOCK,), 0)

    def going(state: tuple[Any, Any]) -> Any:
        return ops.le_p.bind(state[0], most)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        i, total = state
        counts = ops.add(first, ops.add(i, ahead))
        due = ops.or_p.bind(at_least(last, counts), ops.eq(counts, first))
        terms = where(due, _log_mass(where(due, counts, first), n, a, b), -math.inf)
        return ops.add(i, _BLOCK), logsumexp(slicing.concatenate([total, terms], len(shape)), -1, keepdims=True)

    count = ops.sub(last, first)
    most = reduce_max(count, tuple(range(len(count.shape)))) if 0 not in shape else shapes.full((), 0, count.dtype)
    start = shapes.full((), 0, count.dtype), shapes.full(count.shape, -math.inf, count.dtype)
    return shapes.reshape(while_loop(going, step, start)[1], shape)


DISTRIBUTION = Discrete(
    values=("0.1439", "-1.939", "0.4545", "-0.7885", "0.5455", "-0.6061", "7", "1"),
    formulas=(
        "comb(n, i) * beta(i + a, n - i + b) / beta(a, b)",
        "the sum of the probabilities from 0 to ``i``",
        "the sum of the probabilities from ``i + 1`` to ``n``",
    ),
    support="integers ``0 <= i <= n``",
    notes={
        "cdf logcdf sf logsf": "The probabilities are added up one by one, as in SciPy.",
    },
    name="betabinom", of="the beta-binomial distribution", high=lambda n, a, b: n, example="3; 0.9; 10; 2.0; 3.0",
    parameters={
        "n": "the number of trials, an integer",
        "a": "the first shape of the beta distribution, positive",
        "b": "the second shape, positive",
    },
    valid=lambda n, a, b: both(both(at_least(n, 0), is_integer(n)), positive(a, b)), log_mass=_log_mass,
    logcdf=lambda k, n, a, b: _log_sum(ops.mul(k, 0), k, n, a, b),
    logsf=lambda k, n, a, b: _log_sum(ops.add(k, 1), n, n, a, b),
)  # fmt: skip

pmf, logpmf, cdf, logcdf, sf, logsf, ppf, isf = DISTRIBUTION.functions(globals())
