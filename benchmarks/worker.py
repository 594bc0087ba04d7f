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
from collections.abc import Callable, Iterator
from itertools import repeat
from time import perf_counter
from typing import Any, TextIO

import numpy

from benchmarks.libraries import LOADERS
from benchmarks.problems import Call
from benchmarks.workloads import WORKLOADS

WARM_UP_SECONDS = 0.3


def _leaves(result: Any) -> Iterator[Any]:
    """The arrays of a result, whatever containers it is made of."""
    if isinstance(result, tuple | list):
        for item in result:
            yield from _leaves(item)
    elif hasattr(result, "__array__") or isinstance(result, float):
        yield result


def fingerprint(result: Any) -> list[float]:
    """Size, sum and sum of magnitudes, by which two libraries' results are compared; empty for a jaxpr."""
    leaves = [numpy.asarray(leaf, dtype=numpy.float64) for leaf in _leaves(result)]
    if not leaves:
        return []
    return [
        float(sum(leaf.size for leaf in leaves)),
        float(sum(leaf.sum() for leaf in leaves)),
        float(sum(abs(leaf).sum() for leaf in leaves)),
    ]


def time_block(call: Call, wait: Callable[[Any], Any] | None, calls: int) -> float:
    """Seconds a call, over a block of ``calls``, every result waited for and the last one read."""
    if calls > 1:
        call()  # not timed: the other libraries' blocks have filled the caches
    gc.collect()
    result = None
    start = perf_counter()
    if wait is None:
        for _ in repeat(None, calls):
            result = call()
    else:
        for _ in repeat(None, calls):
            result = wait(call())
    for leaf in _leaves(result):
        numpy.asarray(leaf)
    return (perf_counter() - start) / calls


def warm_up(call: Call, wait: Callable[[Any], Any] | None, seconds: float) -> int:
    """Call until caches are filled and compilation is over; the calls that then fill ``seconds``."""
    end = perf_counter() + WARM_UP_SECONDS
    calls, each = 1, time_block(call, wait, 1)
    while perf_counter() < end or calls * each < seconds / 2:
        each = time_block(call, wait, calls)
        calls = min(max(1, round(seconds / each)), 10 * calls)
    return calls


def serve(name: str, workload_name: str, seconds: float, answers: TextIO) -> None:
    """Set the workload up, report that it is ready, and time a block for each line that comes in."""
    workload = next(workload for workload in WORKLOADS if workload.name == workload_name)
    library = LOADERS[name]()
    call = workload.build(library)
    result = call()
    wait = library.wait_for(result)
    calls = warm_up(call, wait, seconds)
    ready = {"version": library.version, "fingerprint": fingerprint(result), "calls": calls}
    print(json.dumps(ready), file=answers, flush=True)
    for _ in sys.stdin:
        print(json.dumps({"seconds": time_block(call, wait, calls)}), file=answers, flush=True)


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
