"""Measure error against work: ``python -m benchmarks.equations``.

It rewrites ``results.json``, the chart ``docs/work_precision.png``, and the section of the page
``docs/differential_equations.md`` that shows them. With ``--only`` it measures some problems, and leaves the others as
they are recorded.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from benchmarks.equations import page
from benchmarks.equations.problems import PROBLEMS, Problem, error
from benchmarks.equations.solvers import MAKERS, Run, solvers

LONG = 20.0
"""The time in seconds after which a solver is not measured with smaller tolerances."""


def fastest(run: Run, seconds: float) -> tuple[Any, float]:
    """Return the result, and the least CPU time of some calls; the first, which compiles, does not count."""
    import numpy as np

    def timed() -> tuple[Any, float]:
        start = time.process_time()
        result = np.asarray(run())
        return result, time.process_time() - start

    result, _ = timed()
    best, spent = float("inf"), 0.0
    while spent < seconds:
        _, last = timed()
        best, spent = min(best, last), spent + last
    return result, best


def measured(problem: Problem, seconds: float) -> dict[str, list[list[float]]]:
    """Return the curves of a problem: by solver, the tolerances, errors, and times in milliseconds."""
    reference = problem.reference()
    if problem.published is not None:
        print(f"{problem.title}: {error(reference, problem.published):.1e} from the published solution", flush=True)
    curves: dict[str, list[list[float]]] = {}
    for kind, method in solvers(problem):
        points: list[list[float]] = []
        for rtol in problem.tolerances:
            result, least = fastest(MAKERS[kind](problem, method, rtol), seconds)
            points.append([rtol, error(result, reference), 1e3 * least])
            if least > LONG:
                break
        curves[f"{kind} {method}"] = points
        shown = "; ".join(f"{rtol:.0e}: {wrong:.1e} in {ms:.3g} ms" for rtol, wrong, ms in points)
        print(f"{problem.title}, {kind} {method}: {shown}", flush=True)
    return curves


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Measure error against work of solvers of differential equations.")
    parser.add_argument("--only", nargs="*", choices=list(PROBLEMS), default=list(PROBLEMS), help="the problems")
    parser.add_argument("--dry", action="store_true", help="print, and rewrite nothing")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long to repeat each solution")
    options = parser.parse_args()

    import jax

    from pullback import config

    config.update("enable_x64", True)
    jax.config.update("jax_enable_x64", True)
    results = page.recorded()
    for name in options.only:
        results[name] = measured(PROBLEMS[name], options.seconds)
        if not options.dry:
            page.write(results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
