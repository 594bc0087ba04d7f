"""One library doing one workload, in a process of its own.

``python -m benchmarks.worker LIBRARY WORKLOAD SECONDS``: each line on standard input asks for one timed
block of about that many seconds; each answer is one line of JSON on standard output. The first answer
comes unasked, when the warm-up is over.
"""

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any, TextIO

import numpy

from benchmarks.compiled import Task
from benchmarks.compilers import leaves
from benchmarks.libraries import LOADERS
from benchmarks.workloads import WORKLOADS

WARM_UP_SECONDS = 0.3

Wait = Callable[[Any], Any] | None


def fingerprint(result: Any) -> list[float]:
    """Size, sum and sum of magnitudes, by which two libraries' results are compared; empty for a jaxpr."""
    arrays = [numpy.asarray(leaf, dtype=numpy.float64) for leaf in leaves(result)]
    if not arrays:
        return []
    return [
        float(sum(array.size for array in arrays)),
        float(sum(array.sum() for array in arrays)),
        float(sum(abs(array).sum() for array in arrays)),
    ]


def time_block(task: Task, wait: Wait, calls: int) -> float:
    """Seconds a call, over a block of ``calls``, every result waited for and the last one read."""
    run = _repeat_prepared if task.prepare else _repeat
    if calls > 1:
        run(task, wait, 1)  # not timed: the other libraries' blocks have filled the caches
    gc.collect()
    return run(task, wait, calls) / calls


def _repeat(task: Task, wait: Wait, calls: int) -> float:
    """Seconds of so many calls, one after another."""
    call, result = task.call, None
    start = perf_counter()
    if wait is None or task.waits_once:
        for _ in repeat(None, calls):
            result = call()
    else:
        for _ in repeat(None, calls):
            result = wait(call())
    if task.waits_once:
        if wait is not None:
            wait(result)
    else:
        for leaf in leaves(result):
            numpy.asarray(leaf)
    return perf_counter() - start


def _repeat_prepared(task: Task, wait: Wait, calls: int) -> float:
    """Seconds of so many calls, without those that prepare them."""
    assert task.prepare is not None
    total = 0.0
    for _ in repeat(None, calls):
        prepared = task.prepare()
        start = perf_counter()
        result = task.call(prepared)
        if wait is not None:
            wait(result)
        total += perf_counter() - start
    return total


def warm_up(task: Task, wait: Wait, seconds: float) -> int:
    """Call until caches are filled and compilation is over; the calls that then fill ``seconds``."""
    if task.cold:
        return 1
    end = perf_counter() + WARM_UP_SECONDS
    calls, each = 1, time_block(task, wait, 1)
    while perf_counter() < end or calls * each < seconds / 2:
        each = time_block(task, wait, calls)
        calls = min(max(1, round(seconds / each)), 10 * calls)
    return calls


def serve(name: str, workload_name: str, seconds: float, answers: TextIO) -> None:
    """Set the workload up, report that it is ready, and time a block for each line that comes in."""
    workload = next(workload for workload in WORKLOADS if workload.name == workload_name)
    library = LOADERS[name]()
    built = workload.build(library)
    task = built if isinstance(built, Task) else Task(built)
    result = task.call(task.prepare()) if task.prepare else task.call()
    wait = library.wait_for(result)
    # Before the warm-up, since a training step goes on from where it is.
    compared = fingerprint(task.check() if task.check else result)
    calls = warm_up(task, wait, seconds)
    ready = {"version": library.version, "threads": library.threads(), "fingerprint": compared, "calls": calls}
    print(json.dumps(ready), file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": time_block(task, wait, calls)}), file=answers, flush=True)


def main(name: str, workload: str, seconds: str) -> None:
    """Keep the answers apart from anything that a library may print, and report any failure as an answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        serve(name, workload, float(seconds), answers)
    except Exception as error:  # whatever a library raises is its result
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps({"error": message}), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
