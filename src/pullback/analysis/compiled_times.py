"""The time that the lines of a compiled program take, from a profile of one run."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pullback.analysis.buffers import Instruction, computations_of
from pullback.backends.compiler import client, profiling

_SAME = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def seconds_of_instructions(run: Callable[[], Any], module: str) -> dict[str, float]:
    """Run a compiled program under the profiler; return the time of each instruction that the profile names.

    Args:
      run: calls the program, and waits for its results.
      module: the name of the program.

    Raises:
      ProfilerError: a profile is being recorded (a RuntimeError and ValueError).
    """
    options = client.profiler().ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with profiling.trace(folder, create_perfetto_trace=False, profiler_options=options):
            run()
        found: dict[str, float] = {}
        for path in Path(folder).rglob("*.trace.json.gz"):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
            for event in events:
                args = event.get("args", {})
                if "hlo_op" in args and args.get("hlo_module") == module:
                    found[args["hlo_op"]] = found.get(args["hlo_op"], 0.0) + event.get("dur", 0.0) * 1e-6
    return found


def by_line(text: str, seconds: dict[str, float], known: Iterable[str]) -> dict[str, float]:
    """Return the time of each line of a compiled program.

    A loop or a branch counts as the instructions in it, where the profile names some. The time of fused instructions
    is shared by their lines, in proportion to the elements of their results.

    Args:
      text: the compiled program.
      seconds: the time of instructions, by their names.
      known: the lines of the program as reports name them, ``file:line function``; of several functions on a line the
        last counts. Others stay as ``file:line``.
    """
    computations, _ = computations_of(text)
    names = {line.partition(" ")[0]: line.partition(" [")[0] for line in known}
    found: dict[str, float] = {}
    for instructions in computations.values():
        for each in instructions:
            if each.name not in seconds or any(_is_timed(c, computations, seconds) for c in each.called):
                continue
            shares = _shares(each, computations)
            total = sum(shares.values())
            for line, share in shares.items():
                where = names.get(line, line)
                found[where] = found.get(where, 0.0) + seconds[each.name] * share / total
    return found


def _is_timed(name: str, computations: dict[str, list[Instruction]], seconds: dict[str, float]) -> bool:
    """Whether a profile names instructions of a computation, or of those that it calls."""
    return any(
        each.name in seconds or any(_is_timed(c, computations, seconds) for c in each.called)
        for each in computations.get(name, ())
    )


def _shares(each: Instruction, computations: dict[str, list[Instruction]]) -> Counter[str]:
    """Return the lines of an instruction, with the bytes of their results."""
    inner = [x for name in each.fused for x in computations.get(name, ()) if x.opcode not in _SAME]
    shares: Counter[str] = Counter()
    for x in inner:
        for line, share in _shares(x, computations).items():
            shares[line] += share
    known = Counter({line: share for line, share in shares.items() if line != _UNKNOWN and share})
    return known or Counter({each.line: max(sum(each.sizes), 1)})


_UNKNOWN = "an unknown line"


def module_name(text: str) -> str:
    """Return the name of a compiled program, from its text."""
    return text.partition("HloModule ")[2].partition(",")[0].split()[0]
