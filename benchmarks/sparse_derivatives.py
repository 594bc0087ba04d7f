"""Sparse Jacobians and Hessians beside asdex on JAX: patterns, numbers of colours, and times, in one run.

    python -m benchmarks.sparse_derivatives --peer PYTHON [--only NAME] [--rounds 5]

``PYTHON`` is an interpreter with asdex: version 0.5.2 needs Python 3.12 and JAX 0.11, which the other benchmarks do not
have. Each library works in a process of its own, and the two take turns. Each round has new processes: the runtime's
thread may take 8 or 20 us to wake, for a program in all of its calls. Times of finding patterns are the processor's,
those of evaluating are the clock's, each the best of all. The exit status is 1 if a pattern or a number of colours is
larger than the peer's, or a time more than its bound: 0.5 of the peer's to find the pattern, 1.0 to evaluate.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BOUNDS = {"detect": 0.5, "evaluate": 1.0}
TURN = 0.05
"""How many seconds of evaluations there are in a turn: with a few dozen calls of 20 us, whether the runtime's threads
happen to be awake decides."""


def main() -> int:
    """Measure and print; see above."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse_derivatives", description=__doc__)
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with asdex and JAX")
    parser.add_argument("--only", default="", metavar="NAME", help="problems whose name starts so")
    parser.add_argument("--rounds", type=int, default=5, help="how many processes each library has")
    parser.add_argument("--serve", choices=["pullback", "asdex"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    libraries = [(sys.executable, "pullback")] + ([(options.peer, "asdex")] if options.peer else [])
    best: dict[str, list[dict[str, Any]]] = {}
    for _ in range(options.rounds):
        workers = [worker(*library) for library in libraries]
        for name in [n for n in ask(workers[0], "names") if n.startswith(options.only)]:
            figures = best.setdefault(name, [{} for _ in workers])
            for mine, process in zip(figures, workers, strict=True):
                for key, value in ask(process, name).items():
                    mine[key] = min(value, mine.get(key, value))
        for process in workers:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
    print(f"{'':16s} {'nnz':>13s} {'colours':>9s} {'pattern, ms':>22s} {'evaluation, us':>22s}")
    failed = False
    for name, figures in best.items():
        cells, worse = row(figures)
        failed |= worse
        print(f"{name:16s} {cells}{'  <-' if worse else ''}", flush=True)
    return int(failed)


def row(found: list[dict[str, Any]]) -> tuple[str, bool]:
    """The figures of a problem, and whether one of them is worse than it may be."""
    ours, peer = found[0], found[-1]
    counts = [f"{ours[k]}/{peer[k]}" for k in ("nnz", "colours")]
    ratios = {k: ours[k] / peer[k] for k in BOUNDS}
    times = [
        f"{ours[k] * scale:7.2f}/{peer[k] * scale:7.2f} {ratios[k]:6.2f}"
        for k, scale in (("detect", 1e3), ("evaluate", 1e6))
    ]
    worse = ours["nnz"] > peer["nnz"] or ours["colours"] > peer["colours"]
    slower = len(found) > 1 and any(ratios[k] > bound for k, bound in BOUNDS.items())
    return f"{counts[0]:>13s} {counts[1]:>9s} {times[0]} {times[1]}", worse or slower


def worker(python: str, library: str) -> subprocess.Popen[str]:
    """A process that measures a library; its own errors are printed."""
    command = [python, "-m", "benchmarks.sparse_derivatives", "--serve", library]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def ask(process: subprocess.Popen[str], what: str) -> Any:
    """What a process answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(what + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"the process of {process.args!r} ended")
    return json.loads(line)


# In the processes ----------------------------------------------------------------------------------------------------


def serve(library: str) -> int:
    """Answer questions: the names of the problems, or the figures of one."""
    from benchmarks.sparse_problems import problems

    package = "pullback" if library == "pullback" else "jax"
    jnp, lax = (importlib.import_module(f"{package}.{name}") for name in ("numpy", "lax"))
    tools = Pullback() if library == "pullback" else Asdex()
    table = problems(jnp, lax)
    ready: dict[str, Any] = {}
    for line in sys.stdin:
        name = line.strip()
        if name == "names":
            print(json.dumps(list(table)), flush=True)
            continue
        f, x, hessian = table[name]
        point = jnp.asarray(x)
        if name not in ready:
            pattern = tools.pattern(f, point, hessian)
            evaluate, colours = tools.evaluator(f, point, hessian)
            evaluate(point)
            ready[name] = evaluate, {"nnz": int(pattern.nnz), "colours": colours}
        evaluate, figures = ready[name]
        figures["detect"] = min(detection(tools, f, point, hessian) for _ in range(5))
        figures["evaluate"] = evaluation(evaluate, point)
        print(json.dumps(figures), flush=True)
    return 0


def detection(tools: Any, f: Any, point: Any, hessian: bool) -> float:
    """The processor's time to find a pattern: of another function each time, of which nothing is kept."""
    start = time.process_time()
    tools.pattern(lambda y: f(y), point, hessian)
    return time.process_time() - start


def evaluation(evaluate: Any, point: Any) -> float:
    """The time of one evaluation, the best of a turn."""
    begun, best = time.perf_counter(), math.inf
    while (start := time.perf_counter()) < begun + TURN:
        evaluate(point)
        best = min(best, time.perf_counter() - start)
    return best


class Pullback:
    """What Pullback does."""

    def pattern(self, f: Any, x: Any, hessian: bool) -> Any:
        """The pattern of a derivative."""
        from pullback.derivatives import hessian_pattern, jacobian_pattern

        return (hessian_pattern if hessian else jacobian_pattern)(f)(x)

    def evaluator(self, f: Any, x: Any, hessian: bool) -> tuple[Any, int]:
        """A function that evaluates a derivative and waits for it, and the number of colours."""
        from pullback.derivatives import sparse_hessian, sparse_jacobian

        derivative = sparse_hessian(f) if hessian else sparse_jacobian(f)
        return lambda y: derivative(y).data.block_until_ready(), derivative.prepare(x).count


class Asdex:
    """What asdex does."""

    def pattern(self, f: Any, x: Any, hessian: bool) -> Any:
        """The pattern of a derivative."""
        asdex = importlib.import_module("asdex")
        return (asdex.hessian_sparsity if hessian else asdex.jacobian_sparsity)(f, x)

    def evaluator(self, f: Any, x: Any, hessian: bool) -> tuple[Any, int]:
        """A function that evaluates a derivative and waits for it, and the number of colours."""
        asdex, jax = map(importlib.import_module, ("asdex", "jax"))
        with warnings.catch_warnings():  # that so many colours are no gain
            warnings.simplefilter("ignore")
            colouring = (asdex.hessian_coloring if hessian else asdex.jacobian_coloring)(f, x)
        make = asdex.hessian_from_coloring if hessian else asdex.jacobian_from_coloring
        derivative = jax.jit(make(f, colouring))
        return lambda y: jax.block_until_ready(derivative(y)), int(colouring.num_colors)


if __name__ == "__main__":
    sys.exit(main())
