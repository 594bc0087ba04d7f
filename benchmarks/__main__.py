"""Measure, print the table, and, after a full run, rewrite ``results.json`` and ``ratios.png``.

Each workload's measurements are written as they come, so that ``--resume`` can go on after a run that was broken off.
"""

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path

from benchmarks import chart, measure, report
from benchmarks.libraries import OURS, TITLES
from benchmarks.partial import Partial
from benchmarks.workloads import WORKLOADS

HERE = Path(__file__).parent


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's options."""
    names = ", ".join(workload.name for workload in WORKLOADS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, epilog=f"Workloads: {names}")
    parser.add_argument("--only", action="append", metavar="NAME", help="workloads whose name starts so; repeatable")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter blocks: a first impression")
    parser.add_argument("--resume", action="store_true", help="keep what a run that was broken off has measured")
    parser.add_argument("--libraries", nargs="+", choices=list(TITLES), default=list(TITLES))
    return parser.parse_args(arguments)


def kept(rows: Partial) -> dict[str, dict[str, measure.Measurement]]:
    """The measurements by workload and library."""
    return {
        name: {library: measure.Measurement(**fields) for library, fields in row.items()}
        for name, row in rows.found.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; the exit status is 1 if Pullback failed at any of it."""
    options = parse(arguments)
    prefixes = tuple(options.only or [""])
    workloads = [workload for workload in WORKLOADS if workload.name.startswith(prefixes)]
    settings = measure.QUICK if options.quick else measure.FULL
    rows = Partial(HERE / "partial.jsonl", [options.libraries, settings.rounds, settings.block_seconds], options.resume)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for workload in workloads:
            if workload.name not in rows.found:
                print(f"measuring {workload.name} ...", file=sys.stderr, flush=True)
                measured = measure.measure(workload, options.libraries, settings, scratch)
                rows.add(workload.name, {name: dataclasses.asdict(found) for name, found in measured.items()})
    results = kept(rows)
    print(report.table(workloads, results))
    if not options.quick and len(workloads) == len(WORKLOADS) and len(options.libraries) == len(TITLES):
        report.write_json(HERE / "results.json", report.as_json(workloads, results, settings))
        chart.draw(HERE / "ratios.png", workloads, results)
    rows.finish()
    return int(any(measured[OURS].failed for measured in results.values() if OURS in measured))


if __name__ == "__main__":
    sys.exit(main())
