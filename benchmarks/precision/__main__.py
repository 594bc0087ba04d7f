"""``python -m benchmarks.precision``: measure, and print the table; ``--page`` writes the page of the results."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pullback
from benchmarks.precision.programs import Program, cases, programs
from pullback import analysis

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "precision_overhead.md"
LEAST = 2e-3
"""The seconds that a measurement takes at least."""
_HEAD = """\
# The time of `analysis.precision`, measured

`python -m benchmarks.precision --page` writes this page. `precision(f)` runs on the arguments of `f` as often as `f`
itself, eagerly; both take turns, and the least CPU time of each counts. A cell is the one in multiples of the other.
A compiled function is compared with the same function without compilation, since `precision` runs programs operation
by operation. [See which digits are true](how_to/true_digits.md) shows the function.

| program | float32 | float64 |
|---|---|---|
"""


def _calls(call: Callable[[], Any]) -> int:
    """Return how many calls take long enough to be measured."""
    call()
    start = time.process_time()
    call()
    return max(1, math.ceil(LEAST / max(time.process_time() - start, 1e-7)))


def ratio(program: Program, turns: int) -> dict[str, float]:
    """Measure a program: the least CPU seconds of an eager run, and of ``precision``."""
    report = analysis.precision(program.function)
    ways: dict[str, Callable[[], Any]] = {
        "eager": lambda: pullback.block_until_ready(program.eager(*program.args)),
        "precision": lambda: report(*program.args),
    }
    counts = {way: _calls(call) for way, call in ways.items()}
    best = dict.fromkeys(ways, math.inf)
    for _ in range(turns):
        for way, call in ways.items():
            start = time.process_time()
            for _ in range(counts[way]):
                call()
            best[way] = min(best[way], (time.process_time() - start) / counts[way])
    return {**best, "ratio": best["precision"] / best["eager"]}


def page(results: dict[str, Any]) -> str:
    """Return the text of the page."""
    rows = results["programs"]
    lines = [
        f"| {name} | {each['float32']['ratio']:.1f} | {each['float64']['ratio']:.1f} |" for name, each in rows.items()
    ]
    found = sorted(each["ratio"] for each in results["cases"].values())
    middle = found[len(found) // 2]
    within = sum(x <= 10 for x in found)
    text = (
        "Programs of 2 to 40 operations, mostly on one number (`tests/analysis/precision_cases.py`). The median is "
        f"{middle:.1f}\ntimes an eager run, the largest {found[-1]:.1f}; {within} of {len(found)} take at most ten "
        "times as long.\n"
    )
    return _HEAD + "\n".join(lines) + "\n\n## The classical cases\n\n" + text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precision", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a part of the name of programs")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--cases", action="store_true", help="measure the classical cases, too")
    parser.add_argument("--record", action="store_true", help="write the file of results")
    parser.add_argument("--page", action="store_true", help="write docs/precision_overhead.md from the results")
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.page:
        PAGE.write_text(page(known), encoding="utf-8")
        return
    with pullback.enable_x64():
        chosen = [(p, "programs") for p in programs()]
        chosen += [(p, "cases") for p in cases()] if options.cases else []
        for program, kind in chosen:
            if options.only not in program.name:
                continue
            with pullback.enable_x64(program.dtype == "float64"):
                found = ratio(program, options.turns)
            print(f"{program.name}, {program.dtype}: {found['ratio']:.1f} ({found['eager'] * 1e6:.1f} us)", flush=True)
            row = known.setdefault(kind, {})
            if kind == "programs":
                row.setdefault(program.name, {})[program.dtype] = found
            else:
                row[program.name] = found
    if options.record:
        RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
