"""Measure, print the table, and, after a full run, rewrite ``results.json`` and ``ratios.png``.

Each workload's measurements are written as they come, so that ``--resume`` can go on after a run that was broken off.
"""

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

from benchmarks import chart, measure, report
from benchmarks.libraries import OURS, TITLES
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


class Rows:
    """The measurements of a run that is not complete, by workload, in a file of one line for each.

    Args:
      path: the file.
      run: what has to agree for rows of another run to be kept: libraries and settings.
      resume: whether rows in the file are kept; otherwise it begins anew.
    """

    def __init__(self, path: Path, run: list[object], resume: bool) -> None:
        self.path, self.run = path, run
        self.results: dict[str, dict[str, measure.Measurement]] = {}
        if resume and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                made_by, name, row = json.loads(line)
                if made_by == run:
                    self.results[name] = {library: measure.Measurement(**fields) for library, fields in row.items()}
        else:
            path.unlink(missing_ok=True)

    def add(self, name: str, measured: dict[str, measure.Measurement]) -> None:
        """Keep the measurements of a workload."""
        self.results[name] = measured
        row = {library: dataclasses.asdict(measurement) for library, measurement in measured.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([self.run, name, row]) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; the exit status is 1 if Pullback failed at any of it."""
    options = parse(arguments)
    prefixes = tuple(options.only or [""])
    workloads = [workload for workload in WORKLOADS if workload.name.startswith(prefixes)]
    settings = measure.QUICK if options.quick else measure.FULL
    rows = Rows(HERE / "partial.jsonl", [options.libraries, settings.rounds, settings.block_seconds], options.resume)
    results = rows.results
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for workload in workloads:
            if workload.name not in results:
                print(f"measuring {workload.name} ...", file=sys.stderr, flush=True)
                rows.add(workload.name, measure.measure(workload, options.libraries, settings, scratch))
    print(report.table(workloads, results))
    if not options.quick and len(workloads) == len(WORKLOADS) and len(options.libraries) == len(TITLES):
        report.write_json(HERE / "results.json", report.as_json(workloads, results, settings))
        chart.draw(HERE / "ratios.png", workloads, results)
    rows.path.unlink()
    return int(any(measured[OURS].failed for measured in results.values() if OURS in measured))


if __name__ == "__main__":
    sys.exit(main())
