"""A run of programs of many kinds, for a given time, whose resident memory is sampled."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable

from pullback import config
from tests.soak import memory
from tests.soak.load import MODES, Load
from tests.soak.memory import FLAT, Sample


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``python -m tests.soak long`` takes."""
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--mode", choices=MODES, default="compiled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two samples")
    parser.add_argument("--share", type=float, default=1.0, help="the share of a processor that the run may take")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run a load, print its samples and the verdict; return the exit status."""
    folder = tempfile.mkdtemp(prefix="pullback-soak-")
    config.update("compilation_cache_dir", folder)  # new programs are not left in the user's cache
    try:
        load = Load(given.mode, given.seed)
        samples = sampled(load.step, 60 * given.minutes, given.every, given.share)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return verdict(given.mode, samples, load.counts)


def sampled(step: Callable[[], object], seconds: float, every: float, share: float = 1.0) -> list[Sample]:
    """Run steps for so many seconds; return four samples of memory or more, which are printed too.

    Args:
      step: runs one program.
      seconds: how long the run takes.
      every: the seconds between two samples.
      share: the share of a processor that the run may take; it sleeps for the rest.
    """
    samples: list[Sample] = []
    start, used = time.monotonic(), time.process_time()
    steps = 0
    while (now := time.monotonic() - start) < seconds or len(samples) < 4:
        if now >= every * (len(samples) + 1):
            samples.append(Sample(now, memory.resident(), memory.blocks(), steps))
            print("{:7.1f} s {:9.2f} MB {:9d} blocks {:9d} steps".format(now, *in_mb(samples[-1])), flush=True)
        step()
        steps += 1
        ahead = (time.process_time() - used) / share - (time.monotonic() - start)
        if ahead > 0.01:
            time.sleep(min(ahead, 1.0))
    return samples


def in_mb(sample: Sample) -> tuple[float, int, int]:
    return sample.resident / 2**20, sample.blocks, sample.steps


TITLES = ("mode", "minutes", "steps", "MB at 1/4", "at the end", "peak", "growth", "live objects a step", "")


def verdict(mode: str, samples: list[Sample], counts: dict[str, int]) -> int:
    """Print a row of a table; return 0 if memory was flat from a quarter of the time to the end, and 1 otherwise."""
    grown = memory.growth(samples)
    quarter, last = samples[len(samples) // 4], samples[-1]
    sizes = (size / 2**20 for size in (quarter.resident, last.resident, memory.peak()))
    rate = (last.blocks - quarter.blocks) / (last.steps - quarter.steps)
    cells = [mode, f"{last.seconds / 60:.1f}", f"{last.steps:,}", *(f"{size:.1f}" for size in sizes)]
    cells += [f"{100 * grown:+.2f} %", f"{rate:.4f}", "**grows**" if grown > FLAT else "flat"]
    print(f"{mode}: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    for row in (TITLES, ["---"] * len(TITLES), cells):
        print("| " + " | ".join(row) + " |")
    return int(grown > FLAT)
