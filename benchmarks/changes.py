"""What a change costs: every workload in this source tree and in another one, by turns.

``python -m benchmarks.changes FOLDER`` compares with the tree in ``FOLDER``, which is a checkout of the commit before.
Each row is the ratio of the lower quartiles of the two trees' blocks. Where it is above the bound, the row is measured
again, in new processes, and the median of the ratios counts: two processes of one tree differ by some percent too.
"""

import argparse
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.libraries import OURS
from benchmarks.measure import FULL, QUICK, Measurement, Settings, Worker
from benchmarks.workloads import WORKLOADS, Workload

# A change may cost so much at most.
BOUND = 1.03
# So often is a row measured in all, if it is above the bound the first time.
ATTEMPTS = 5


def compare(workload: Workload, before: Path, settings: Settings) -> tuple[Measurement, Measurement]:
    """Time ``workload`` in this tree and in ``before``, one block each in turn, in new processes."""
    with ExitStack() as stack:
        workers = []
        for source in ("", str(before / "src")):
            # Of its own, so that no tree reads what the other has compiled.
            scratch = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            workers.append(stack.enter_context(Worker(OURS, workload, settings, scratch, source)))
        for turn in range(2 * settings.rounds):
            for worker in workers if turn % 2 else reversed(workers):
                worker.block()
        now, then = (worker.measurement for worker in workers)
    return now, then


def quartile(measurement: Measurement) -> float:
    """Seconds a call that a quarter of the blocks stay below: what the machine did beside it is in the others."""
    return statistics.quantiles(measurement.seconds, n=4)[0]


def change(workload: Workload, before: Path, settings: Settings) -> str:
    """One line: the name, microseconds now and before, and the ratios."""
    ratios: list[float] = []
    while not ratios or (max(ratios[0], statistics.median(ratios)) > BOUND and len(ratios) < ATTEMPTS):
        now, then = compare(workload, before, settings)
        if now.failed or then.failed:
            return f"{workload.name:32} failed: {now.failed or 'no'}; before: {then.failed or 'no'}"
        ratios.append(quartile(now) / quartile(then))
    median = statistics.median(ratios)
    verdict = "SLOWER" if median > BOUND else ""
    each = " ".join(f"{ratio:.3f}" for ratio in ratios)
    times = f"{1e6 * quartile(now):12,.2f} {1e6 * quartile(then):12,.2f}"
    return f"{workload.name:32} {times} {median:6.3f} {verdict:6} {each}"


def main(arguments: list[str] | None = None) -> int:
    """Measure what the command line asks for; the exit status is 1 if a row is slower than before, or failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.changes", description=__doc__)
    parser.add_argument("before", type=Path, help="a checkout of the commit to compare with")
    parser.add_argument("--only", action="append", metavar="NAME", help="workloads whose name starts so; repeatable")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter blocks: a first impression")
    options = parser.parse_args(arguments)
    lines = []
    print(f"{'workload':32} {'now, us':>12} {'before, us':>12} {'ratio':>6}", flush=True)
    for workload in WORKLOADS:
        if workload.name.startswith(tuple(options.only or [""])):
            lines.append(change(workload, options.before, QUICK if options.quick else FULL))
            print(lines[-1], flush=True)
    worse = [line.split()[0] for line in lines if "SLOWER" in line or "failed" in line]
    print(
        f"{len(lines)} rows, {len(worse)} slower by more than {BOUND - 1:.0%} or failed: {', '.join(worse) or 'none'}"
    )
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
