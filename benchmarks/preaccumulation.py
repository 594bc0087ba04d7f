"""What ``preaccumulate`` saves: the gradient through a solver of scalar equations, mapped over many points.

``python -m benchmarks.preaccumulation`` prints, beside plain reverse mode in the same run, the bytes that are kept
between the passes and the time of both.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

STEPS = 12


def solvers(np: Any, lax: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """Newton's method for ``x**3 + b sin(x) == a``, as a loop and as its steps one after the other."""

    def step(x: Any, a: Any, b: Any) -> Any:
        return x - (x**3 + b * np.sin(x) - a) / (3 * x**2 + b * np.cos(x) + 1)

    def loop(a: Any, b: Any) -> Any:
        return lax.fori_loop(0, STEPS, lambda i, x: step(x, a, b), a)

    def steps(a: Any, b: Any) -> Any:
        x = a
        for _ in range(STEPS):
            x = step(x, a, b)
        return x

    return {"loop": loop, "steps": steps}


def fastest(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """The least time of each call, in seconds; they take turns, so that noise hits all alike."""
    for call in calls:
        call()
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def bytes_kept(function: Callable[..., Any], points: Sequence[Any]) -> int:
    """The bytes of the arrays that an eager backward pass holds, each counted once."""
    from pullback import tree, vjp

    arrays = {id(x): x for x in tree.leaves(vjp(function, *points)[1])}
    return sum(x.nbytes for x in arrays.values())


def _loss(total: Callable[[Any], Any], solve: Callable[..., Any], a: Any, b: Any) -> Any:
    """The sum of the squares of the roots."""
    return total(solve(a, b) ** 2)


def _fetched(gradient: Callable[..., Any], points: Sequence[Any]) -> list[numpy.ndarray[Any, Any]]:
    """A gradient, waited for."""
    return [numpy.asarray(x) for x in gradient(*points)]


def compare(count: int, rounds: int) -> list[tuple[str, float, float, float]]:
    """For each solver, eager and compiled: the ratio of bytes, and both times in milliseconds."""
    import pullback.numpy as np
    from pullback import grad, jit, lax, vmap
    from pullback.derivatives import preaccumulate

    points = [np.asarray(numpy.linspace(*ends, count, dtype=numpy.float32)) for ends in ((0.5, 2.0), (1.0, 2.0))]
    rows = []
    for name, solve in solvers(np, lax).items():
        losses = [partial(_loss, np.sum, vmap(part)) for part in (solve, preaccumulate(solve))]
        plain, less = (bytes_kept(loss, points) for loss in losses)
        for how, wrap in (("eager", lambda f: f), ("compiled", jit)):
            gradients = [wrap(grad(loss, (0, 1))) for loss in losses]
            first, second = fastest([partial(_fetched, gradient, points) for gradient in gradients], rounds)
            rows.append((f"{name}, {how}", less / plain, first * 1e3, second * 1e3))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    print("| solver | bytes kept, of plain | plain, ms | preaccumulated, ms | time, of plain |")
    print("|---|---|---|---|---|")
    for name, kept, plain, less in compare(options.points, options.rounds):
        print(f"| {name} | {kept:.3f} | {plain:.1f} | {less:.1f} | {less / plain:.2f} |")


if __name__ == "__main__":
    main()
