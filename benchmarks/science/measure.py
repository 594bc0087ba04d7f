"""What the table says of a row: largest errors of values and derivatives, and ratios of times."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.science.rows import Function, Row

STEP = 1e-6


def difference(found: Any, expected: Any) -> float:
    """The largest difference of two arrays, relative to the largest expected element, or to 1 if that is smaller."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


def checks(row: Row) -> dict[str, float]:
    """Return the largest relative differences: of values, derivatives, batches and compiled results."""
    from pullback import grad, jit, jvp, vmap
    from pullback import numpy as jnp

    args = tuple(map(jnp.asarray, row.small()))
    rng = np.random.default_rng(0)
    directions = tuple(jnp.asarray(rng.standard_normal(x.shape)) for x in args)
    at = lambda t: tuple(x + t * d for x, d in zip(args, directions, strict=True))
    out = row.ours(*args)
    weights = jnp.asarray(rng.standard_normal(out.shape))
    scalar = lambda *xs: jnp.sum(weights * jnp.sin(row.ours(*xs)))
    every = tuple(range(len(args)))

    def along(f: Function) -> Any:
        return (np.asarray(f(STEP)) - np.asarray(f(-STEP))) / (2 * STEP)

    forward = jvp(row.ours, args, directions)[1]
    slope = jvp(scalar, args, directions)[1]
    gradient = grad(scalar, every)(*args)
    by_gradient = sum(float(jnp.vdot(g, d)) for g, d in zip(gradient, directions, strict=True))
    batch = tuple(jnp.stack([x, y]) for x, y in zip(args, at(0.1), strict=True))
    found = {
        "value": difference(out, row.theirs(*map(np.array, args))),  # some of SciPy's refuse memory that is read-only
        "forward": difference(forward, along(lambda t: row.ours(*at(t)))),
        "reverse": difference(by_gradient, slope),
        "batch": difference(vmap(row.ours)(*batch), np.stack([row.ours(*args), row.ours(*at(0.1))])),
        "compiled": max(
            difference(jit(row.ours)(*args), out), *(map(difference, jit(grad(scalar, every))(*args), gradient))
        ),
    }
    if row.second:
        flat = lambda gradients: np.concatenate([np.ravel(g) for g in gradients])
        second = jvp(grad(scalar, every), args, directions)[1]
        found["second"] = difference(flat(second), along(lambda t: flat(grad(scalar, every)(*at(t)))))
    return found


class Call(NamedTuple):
    """A function that is timed.

    Attributes:
      function: of the operands; its result is read as a NumPy array, which is timed too.
      array: converts an operand, which is not timed.
    """

    function: Function
    array: Callable[[Any], Any]


def fastest(calls: Sequence[Call], args: Sequence[Any], seconds: float) -> list[float]:
    """Return the least time of each call, in seconds; they take turns, so that noise hits all alike.

    Each call gets operands with other elements than any before, which are made before its time begins. Otherwise ours
    would find the results that it keeps, such as a factorisation.
    """
    best = [float("inf")] * len(calls)
    rounds, end = -1, 0.0  # the first round, in which programs are compiled, does not count
    while rounds < 5 or time.perf_counter() < end:
        for i, call in enumerate(calls):
            operands = [call.array(x) for x in fresh(args)]
            start = time.perf_counter()
            np.asarray(call.function(*operands))
            if rounds >= 0:
                best[i] = min(best[i], time.perf_counter() - start)
        rounds += 1
        end = end if rounds else time.perf_counter() + seconds
    return best


def times(row: Row, peers: bool, seconds: float) -> dict[str, float]:
    """Return the eager time in milliseconds, its ratio to the anchor's, and the compiled one's, also to the peer's."""
    from pullback import jit
    from pullback import numpy as jnp

    args = tuple(map(np.asarray, row.large()))
    ours, theirs = row.timed or (row.ours, row.theirs)
    calls = [Call(ours, jnp.asarray), Call(theirs, np.asarray)]
    if row.timed is None:
        calls.append(Call(jit(row.ours), jnp.asarray))
    if row.peer is not None and peers:
        import jax

        calls.append(Call(row.peer(), jax.numpy.asarray))
    best = fastest(calls, args, seconds)
    found = {"milliseconds": best[0] * 1e3, "anchor": best[0] / best[1]}
    if row.timed is None:
        found["jit"] = best[2] / best[1]
        if row.peer is not None and peers:  # it is compiled, too
            found["peer"] = best[2] / best[3]
    return found


_calls = itertools.count()


def fresh(args: Sequence[Any]) -> list[Any]:
    """Return the arrays with other elements than in any call before."""
    scale = 1 + next(_calls) * 1e-12
    return [x * scale for x in args]
