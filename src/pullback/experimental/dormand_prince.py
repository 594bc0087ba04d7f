"""The Dormand-Prince method of order 5(4) for ordinary differential equations, with adaptive steps.

Source: E. Hairer, S. P. Nørsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd ed.: the method is in
table II.5.2, the choice of steps in section II.4, the dense output in section II.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.control.common import op_count
from pullback.control.loops import while_loop
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.lists import split_list
from pullback.core.types import ShapedArray
from pullback.primitives.arrays.indexing import dynamic_update_slice
from pullback.primitives.arrays.slicing import concatenate, stack
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.stage import stage_flat

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
"""The times of the second to the seventh stage, as fractions of the step."""

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""The weights, in each of these stages, of the derivatives at the earlier ones. The last stage ends the step."""

ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""The weights of the difference between the results of order 5 and 4."""

BEND = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)
"""The weights of the bend: the coefficient of θ²(1 - θ)² that the interpolant of order 4 adds to Hermite's cubic."""

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
"""The next step is SAFETY times the estimated largest acceptable one, and SHRINK to GROW times the last one."""

UNROLLED, UNROLLED_BACKWARDS = 100, 32
"""The six stages are unrolled if the derivatives have at most this many operations; otherwise they run in a loop.

Measured with compiled gradients, on two cores: microseconds of a run, and seconds for compiling

| equation, and operations of its derivatives | written out | in a loop, backwards | both ways |
|---|---|---|---|
| pendulum, 101 times: 13 | 53, 0.35 | 151, 0.36 | 130, 0.37 |
| the same, 20 times, its Hessian: 13 and 31 | 221, 1.42 | 237, 1.16 | 293, 1.03 |
| Lorenz's: 13 | 55, 0.36 | 116, 0.40 | 117, 0.33 |
| network of two layers of 64: 4 | 221, 0.93 | 176, 0.76 | 189, 0.74 |
| of six: 12 | 341, 1.76 | 371, 1.40 | 325, 1.01 |
"""

Derivatives = Callable[[Sequence[Any], Any], list[Any]]


class Problem(NamedTuple):
    """A differential equation, and how it is solved.

    Attributes:
      derivatives: maps the vectors of the state, the time and parameters to the derivatives of the vectors.
      vectors: the number of vectors of the state. The error of the first controls the steps.
      rtol, atol: the error of a step that is accepted is at most ``atol + rtol * abs(y)``, as a root mean square.
      mxstep: the maximal number of attempted steps from one time to the next.
      hmax: the largest step.
    """

    derivatives: ClosedJaxpr
    vectors: int
    rtol: float
    atol: float
    mxstep: float
    hmax: float


def first_step(problem: Problem, state: Sequence[Any], time: Any, parameters: Sequence[Any]) -> Any:
    """Estimate the size of the first step (section II.4, starting step size)."""
    return run("odeint_first_step", _begin, problem, [*state, time, *parameters])[0]


def solve(problem: Problem, state: Sequence[Any], times: Any, step: Any, parameters: Sequence[Any]) -> list[Any]:
    """Solve the equation: return the vectors of the state at ``times``, stacked along axis 0.

    The solution is NaN at times that cannot be reached, because ``mxstep`` steps are not enough, steps become too small
    for the precision, or the times decrease.

    Args:
      problem: the equation.
      state: the vectors at the first time.
      times: a vector of increasing times.
      step: the size of the first step.
      parameters: further arguments of the derivatives.
    """
    return run("odeint", _integrate, problem, [*state, times, step, *parameters])


def run(
    name: str,
    function: Callable[..., list[Any]],
    problem: Problem,
    operands: Sequence[Any],
    settings: Sequence[Any] = (),
) -> list[Any]:
    """Return the results of ``function(problem, *settings, *operands)``, run as a cached program."""
    avals = tuple([ShapedArray(x.shape, x.dtype) for x in operands])
    jaxpr = _program(problem.derivatives, function, problem[1:], avals, tuple(settings))
    return jit_p.bind(*operands, jaxpr=jaxpr, name=name)  # type: ignore[no-any-return]


@cached_by_jaxpr
def _program(
    derivatives: ClosedJaxpr,
    function: Callable[..., list[Any]],
    limits: Sequence[Any],
    avals: Sequence[ShapedArray],
    settings: Sequence[Any],
) -> ClosedJaxpr:
    problem = Problem(derivatives, *limits)
    return stage_flat(function, lambda *xs: function(problem, *settings, *xs), avals)


# Combinations of derivatives -----------------------------------------------------------------------------------------


def of_type(x: Any, like: Any) -> Any:
    """Convert a time to the precision of a vector."""
    return x.astype(dtypes.to_real(like.dtype))


def _combined(weights: Sequence[float], derivatives: Sequence[Any]) -> Any:
    terms = [w * k for w, k in zip(weights, derivatives, strict=True) if w]
    return sum(terms[1:], terms[0])


def _mean_square(x: Any, dtype: Any) -> Any:
    return pnp.mean((x.real**2 + x.imag**2 if dtypes.is_complex(x.dtype) else x**2).astype(dtype))


# The first step ------------------------------------------------------------------------------------------------------


def _begin(problem: Problem, *operands: Any) -> list[Any]:
    state, (time,), parameters = split_list(operands, problem.vectors, 1)
    derive = jaxpr_as_fun(problem.derivatives)
    scale = problem.atol + problem.rtol * pnp.abs(state[0])

    def norm(x: Any) -> Any:
        return pnp.sqrt(_mean_square(x / scale, time.dtype))

    slopes = derive(*state, time, *parameters)
    size, slope = norm(state[0]), norm(slopes[0])
    vague = (size < 1e-5) | (slope < 1e-5)
    guess = pnp.where(vague, 1e-6, 0.01 * size / pnp.where(vague, 1.0, slope))
    moved = [y + of_type(guess, y) * k for y, k in zip(state, slopes, strict=True)]
    later = derive(*moved, time + guess, *parameters)
    largest = pnp.maximum(slope, norm(later[0] - slopes[0]) / guess)
    flat = largest <= 1e-15
    better = pnp.where(flat, pnp.maximum(1e-6, guess * 1e-3), (0.01 / pnp.where(flat, 1.0, largest)) ** (1 / 5))
    return [pnp.minimum(pnp.minimum(100 * guess, better), problem.hmax).astype(time.dtype)]


# The steps -----------------------------------------------------------------------------------------------------------


class Attempt(NamedTuple):
    """An attempted step.

    Attributes:
      accepted: whether its error is within the tolerance.
      step: its size.
      time: its end.
      next_step: the size of the next step, or of the next attempt.
      state, slopes: for each vector, its value at the end, and its derivative there.
      bends: for each vector, the bend of the interpolant (see ``BEND``).
    """

    accepted: Any
    step: Any
    time: Any
    next_step: Any
    state: list[Any]
    slopes: list[Any]
    bends: list[Any]


def attempt(
    problem: Problem,
    derivatives: Derivatives,
    state: Sequence[Any],
    slopes: Sequence[Any],
    time: Any,
    step: Any,
    limit: Any,
) -> Attempt:
    """Attempt a step that ends at or before a limit."""
    # A step that would end just short of the limit is extended to it, so that no tiny step remains.
    ends = time + 1.01 * step >= limit
    size = pnp.where(ends, limit - time, step)
    after, last_slopes, errors, bends = stages(
        derivatives, state, slopes, time, size, op_count(problem.derivatives) <= UNROLLED
    )
    scale = problem.atol + problem.rtol * pnp.maximum(pnp.abs(state[0]), pnp.abs(after[0]))
    square = _mean_square(errors[0] / scale, time.dtype)
    square = pnp.where(square < 1e30, square, 1e30)  # NaN too: a smaller step may succeed
    accepted = square <= 1
    next_step = size * pnp.clip(SAFETY * pnp.maximum(square, 1e-30) ** -0.1, SHRINK, GROW)
    # A step that was cut off at the limit must not make the next one small.
    next_step = pnp.where(accepted & ends, pnp.maximum(next_step, step), next_step)
    next_step = pnp.minimum(next_step, problem.hmax)
    return Attempt(accepted, size, pnp.where(ends, limit, time + size), next_step, after, last_slopes, bends)


class Progress(NamedTuple):
    """The state of a solution in progress.

    Attributes:
      time, step: the current time, and the size of the next step.
      start: the time at which the last step began.
      tried: the number of steps attempted since the last output time; None if unlimited.
      rows: for each vector, its value and derivative, both at the beginning of the last step, and the bend of the
        interpolant there.
    """

    time: Any
    step: Any
    start: Any
    tried: Any
    rows: list[Any]


def _integrate(problem: Problem, *operands: Any) -> list[Any]:
    state, (times, step), parameters = split_list(operands, problem.vectors, 2)
    derive = jaxpr_as_fun(problem.derivatives)

    def derivatives(vectors: Sequence[Any], time: Any) -> list[Any]:
        return derive(*vectors, time, *parameters)

    def try_step(now: Progress) -> Progress:
        before, slopes = [rows[0] for rows in now.rows], [rows[1] for rows in now.rows]
        found = attempt(problem, derivatives, before, slopes, now.time, now.step, times[-1])
        news = zip(found.state, found.slopes, before, slopes, found.bends, strict=True)
        return Progress(
            pnp.where(found.accepted, found.time, now.time),
            found.next_step,
            pnp.where(found.accepted, now.time, now.start),
            None if now.tried is None else now.tried + 1,
            [pnp.where(found.accepted, stack(new, 0), rows) for new, rows in zip(news, now.rows, strict=True)],
        )

    def advance(progress: Progress, target: Any) -> tuple[Progress, list[Any]]:
        if progress.tried is not None:
            progress = progress._replace(tried=pnp.zeros_like(progress.tried))

        def goes_on(now: Progress) -> Any:
            # A step that does not change the time is too small for the precision, or NaN.
            more = (now.time < target) & (now.time + now.step > now.time)
            return more if now.tried is None else more & (now.tried < problem.mxstep)

        progress = while_loop(goes_on, try_step, progress)
        return progress, _at(progress, target)

    pairs = zip(state, derivatives(state, times[0]), strict=True)
    rows = [stack([y, k, y, k, pnp.zeros_like(y)], 0) for y, k in pairs]
    tried = None if math.isinf(problem.mxstep) else pnp.zeros((), np.int32)
    _, results = scan(advance, Progress(times[0], step, times[0], tried, rows), times[1:])
    return [concatenate([y[None], ys], 0) for y, ys in zip(state, results, strict=True)]


Stages = tuple[list[Any], list[Any], list[Any], list[Any]]


def stages(
    derivatives: Derivatives, state: Sequence[Any], slopes: Sequence[Any], time: Any, step: Any, unrolled: bool
) -> Stages:
    """Return, for each vector, its value after a step, its derivative there, the error, and the interpolant's bend."""
    write = _unrolled if unrolled else _looped
    return write(derivatives, state, slopes, time, step)


def _unrolled(derivatives: Derivatives, state: Sequence[Any], slopes: Sequence[Any], time: Any, step: Any) -> Stages:
    known: list[list[Any]] = [[k] for k in slopes]
    after = list(state)
    sizes = [of_type(step, y) for y in state]
    for weights, node in zip(STAGES, NODES, strict=True):
        after = [y + h * _combined(weights, ks) for y, h, ks in zip(state, sizes, known, strict=True)]
        for ks, k in zip(known, derivatives(after, time + node * step), strict=True):
            ks.append(k)
    errors, bends = (
        [h * _combined(weights, ks) for h, ks in zip(sizes, known, strict=True)] for weights in (ERROR, BEND)
    )
    return after, [ks[-1] for ks in known], errors, bends


_WEIGHTS = np.array([[*weights, *[0.0] * (7 - len(weights))] for weights in STAGES])
_RESULTS = np.array([ERROR, BEND])


def _looped(derivatives: Derivatives, state: Sequence[Any], slopes: Sequence[Any], time: Any, step: Any) -> Stages:
    def stage(carry: tuple[list[Any], list[Any]], x: tuple[Any, Any, Any]) -> tuple[tuple[list[Any], list[Any]], None]:
        known, _ = carry
        i, weights, node = x
        after = [y + of_type(step, y) * (weights.astype(ks.dtype) @ ks) for y, ks in zip(state, known, strict=True)]
        found = derivatives(after, time + node * step)
        known = [dynamic_update_slice(ks, k[None], [i, *[0] * k.ndim]) for ks, k in zip(known, found, strict=True)]
        return (known, after), None

    known = [concatenate([k[None], pnp.zeros((6, *k.shape), k.dtype)], 0) for k in slopes]
    nodes = (pnp.arange(1, 7), pnp.asarray(_WEIGHTS, time.dtype), pnp.asarray(NODES, time.dtype))
    (known, after), _ = scan(stage, (known, list(state)), nodes)
    results = [of_type(step, ks) * (pnp.asarray(_RESULTS, ks.dtype) @ ks) for ks in known]
    return after, [ks[6] for ks in known], [r[0] for r in results], [r[1] for r in results]


def _at(progress: Progress, target: Any) -> list[Any]:
    """Interpolate the vectors of the state at the time ``target`` within the last step of the solver.

    ``progress`` holds the times and values at both ends of the step. The interpolated vectors are NaN if ``target`` is
    outside of the step.
    """
    reached = (progress.time >= target) & (progress.start <= target)
    width = progress.time - progress.start
    part = pnp.where(width > 0, (target - progress.start) / pnp.where(width > 0, width, 1.0), 1.0)
    results = []
    for after, last_slope, before, first_slope, bend in progress.rows:
        x, h, change = of_type(part, after), of_type(width, after), after - before
        cubic = (1 - 2 * x) * change + h * ((x - 1) * first_slope + x * last_slope)
        y = before + x * change + x * (x - 1) * cubic + (x * (1 - x)) ** 2 * bend
        results.append(pnp.where(reached, y, pnp.nan))
    return results
