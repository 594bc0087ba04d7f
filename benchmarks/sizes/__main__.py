"""Measure operations at several sizes; after a full run, write ``sizes.json``, the page and its chart.

Every library has a process, and they take turns, so that the machine's noise hits all alike. Whatever else runs makes
calls longer, never shorter: a turn counts by the quickest of its short blocks of calls, and of the turns the lower
quartile. ``--control jax`` measures JAX in Pullback's place, and so shows the noise that is left. Each measurement is
written as it comes, so that ``--resume`` can go on after a run that was broken off.

A compiled row that is far from JAX's, in either direction, is measured again at the end, by new processes, and its
first measurement is dropped: so one row of chance counts for neither library. Where both have the same program, the
result says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.partial import Partial
from benchmarks.report import machine, write_json
from benchmarks.sizes import page
from benchmarks.sizes.catalogue import ROWS, Row
from benchmarks.sizes.worker import LIBRARIES, MODES

HERE = Path(__file__).parent
ROUNDS, TURN_SECONDS = 60, 0.003
MOST_SECONDS, LEAST_ROUNDS = 0.5, 3
"""Where the turns of a library take longer in all, there are fewer rounds."""
FAR = 1.1
"""Compiled rows whose ratio to JAX's time, or its inverse, is above this are measured again."""
# Results are mostly float32, and their sums are compared.
RELATIVE_TOLERANCE = 2e-3


class Worker:
    """A library's process."""

    def __init__(self, library: str, scratch: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sizes.worker", library], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(scratch),
        )  # fmt: skip
        self._answer()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, *task: Any) -> dict[str, Any]:
        """The answer to a task."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _environment(scratch: str) -> dict[str, str]:
    return {
        **os.environ, "PULLBACK_TIERED": "off", "PULLBACK_COMPILATION_CACHE_DIR": scratch,
    }  # fmt: skip


def tasks(rows: Sequence[Row], sizes: Sequence[int] | None, modes: Sequence[str]) -> Iterator[tuple[Row, int, str]]:
    """What there is to measure."""
    for row in rows:
        for size in row.sizes:
            for mode in modes:
                if (sizes is None or size in sizes) and (row.differentiable or not mode.endswith("gradient")):
                    yield row, size, mode


def _key(row: Row, size: int, mode: str) -> str:
    """What a measurement is kept by."""
    return f"{row.name}, {size}, {mode}"


def measure(workers: dict[str, Worker], row: Row, size: int, mode: str, rounds: int) -> dict[str, Any]:
    """The lower quartile of the seconds of each library, or why there are none; and whether programs are the same."""
    made = {name: worker.ask("make", row.name, size, mode) for name, worker in workers.items()}
    found: dict[str, Any] = {name: answer["error"] for name, answer in made.items() if "error" in answer}
    able = [name for name in workers if name not in found]
    seconds: dict[str, list[float]] = {name: [] for name in able}
    spent = dict.fromkeys(able, 0.0)
    for k in range(rounds):
        if k >= LEAST_ROUNDS and max(spent.values(), default=0.0) > MOST_SECONDS:
            break
        for name in able if k % 2 == 0 else able[::-1]:
            start = time.perf_counter()
            seconds[name].append(workers[name].ask("turn", TURN_SECONDS)["seconds"])
            spent[name] += time.perf_counter() - start
    reference = made.get("jax", made[able[0]]).get("fingerprint") if able else None
    for name in able:
        agrees = reference is None or _agree(made[name]["fingerprint"], reference)
        found[name] = lower_quartile(seconds[name]) if agrees else "another result"
    ours, theirs = (made.get(name, {}).get("program") for name in ("pullback", "jax"))
    same = {} if ours is None or theirs is None else {"same_program": ours == theirs}
    return {"row": row.name, "size": size, "mode": mode, "seconds": found, **same}


def lower_quartile(seconds: Sequence[float]) -> float:
    """The value below which a quarter of the others are."""
    return sorted(seconds)[len(seconds) // 4]


def is_far(result: page.Result) -> bool:
    """Whether a compiled row takes much more time than JAX's, or much less."""
    of_jax = page.ratio(result, "jax")
    return result["mode"].startswith("compiled") and of_jax is not None and not 1 / FAR <= of_jax <= FAR


def _agree(found: list[float], expected: list[float]) -> bool:
    tolerance = RELATIVE_TOLERANCE * expected[2] + 1e-6
    return found[0] == expected[0] and all(math.isclose(a, b, abs_tol=tolerance) for a, b in zip(found, expected))


def _versions(libraries: Sequence[str]) -> dict[str, str]:
    """The versions of the libraries that are installed, by the names that people know."""
    found = {}
    for name in libraries:
        with suppress(PackageNotFoundError):
            found[page.PEERS.get(name, "Pullback")] = version(name)
    return found


def _run(made: Partial, asked: Sequence[tuple[str, Row, int, str]], options: argparse.Namespace) -> None:
    """Measure in new processes what is asked for and not in ``made``: keys with rows, sizes and modes."""
    missing = [task for task in asked if task[0] not in made.found]
    if not missing:
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, ExitStack() as stack:
        measured_as = {"pullback": options.control or "pullback"}
        workers = {n: stack.enter_context(Worker(measured_as.get(n, n), scratch)) for n in options.libraries}
        for key, row, size, mode in missing:
            made.add(key, measure(workers, row, size, mode, options.rounds))
            print(page.line(made.found[key]), flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; the exit status is 1 if Pullback failed at any of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="rows whose name starts so; repeatable")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of elements; all that a row has by default")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--libraries", nargs="+", choices=list(LIBRARIES), default=list(LIBRARIES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--control", choices=list(LIBRARIES), help="a library that is measured in Pullback's place")
    parser.add_argument("--resume", action="store_true", help="keep what a run that was broken off has measured")
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if row.name.startswith(tuple(options.only or [""]))]
    made = Partial(HERE / "partial.jsonl", [options.libraries, options.rounds, options.control], options.resume)
    asked = [(row, size, mode) for row, size, mode in tasks(rows, options.sizes, options.modes)]
    _run(made, [(_key(*task), *task) for task in asked], options)
    again = [(f"{_key(*task)}, again", *task) for task in asked if is_far(made.found[_key(*task)])]
    print(f"\n{len(again)} compiled rows are far from JAX's, and measured again")
    _run(made, again, options)
    results = [made.found.get(f"{_key(*task)}, again", made.found[_key(*task)]) for task in asked]
    print(page.summary(results))
    if len(rows) == len(ROWS) and options.sizes is options.control is None and list(options.modes) == list(MODES):
        measured = {"machine": machine(), "versions": _versions(options.libraries), "rounds": options.rounds}
        measured["again"] = len(again)
        write_json(HERE / "sizes.json", {**measured, "results": results})
        page.write(results, measured)
    made.finish()
    return int(any(isinstance(result["seconds"].get("pullback"), str) for result in results))


if __name__ == "__main__":
    sys.exit(main())
