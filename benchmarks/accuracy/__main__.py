"""Measure, print the table, and rewrite ``docs/accuracy.md`` and its pictures from the latest results there are."""

import argparse
import sys
from collections.abc import Sequence

from benchmarks.accuracy import measure, page, results
from benchmarks.accuracy.functions import FUNCTIONS

GROUP = 8
"""So many functions are measured at a time; what is done is kept if the rest is cut short."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; the exit status is 1 if an error is over its limit without an exemption."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="functions whose name has this; repeatable")
    parser.add_argument("--quick", action="store_true", help="200 points each: a first impression")
    options = parser.parse_args(arguments)
    wanted = options.only or [""]
    chosen = [i for i, f in enumerate(FUNCTIONS) if any(w in f.label for w in wanted)]
    rows = []
    for start in range(0, len(chosen), GROUP):
        measured = measure.measure(chosen[start : start + GROUP], 200 if options.quick else 2000)
        rows += measured
        if not options.quick:
            results.keep(measured)
    print(page.table(rows))
    if not options.quick:
        page.write(results.latest(), results.missing())
    full = not options.quick and len(chosen) == len(FUNCTIONS)
    problems = page.problems(rows, complete=full)
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
