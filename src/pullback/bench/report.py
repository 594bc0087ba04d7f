"""What ``pullback bench`` prints: a table of times and ratios, or JSON; and the progress meanwhile."""

from __future__ import annotations

import json
import math
import platform
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeVar

import pullback
from pullback.bench.measure import DIFFERS, MODES, OURS, TITLES, Row
from pullback.bench.workloads import LIBRARIES
from pullback.core import systems

T = TypeVar("T")
SILENT_SECONDS = 2.0
"""How long a run takes before it shows its progress."""
WIDTH = 30


def ratio(row: Row, library: str, mode: str) -> float | None:
    """Return the time of a library divided by that of Pullback in the same mode; ``None`` where either has none."""
    theirs, ours = row.get((library, mode)), row.get((OURS, mode))
    if theirs is None or ours is None or theirs.median is None or ours.median is None:
        return None
    return theirs.median / ours.median


def duration(seconds: float) -> str:
    """Return a time in three digits, in seconds, milliseconds or microseconds."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds * 1e6)} µs"


def _digits(x: float) -> str:
    """Return a positive number in three digits."""
    rounded = float(f"{x:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}"


def _cell(row: Row, library: str, mode: str) -> str:
    made = row.get((library, mode))
    if made is None:
        return ""
    if made.median is None:
        return "differs" if made.failed == DIFFERS else "failed"
    if library == OURS:
        return duration(made.median)
    times = ratio(row, library, mode)
    return "-" if times is None else f"{_digits(times)} x"


def table(rows: Mapping[str, Row], libraries: Sequence[str], versions: Mapping[str, str]) -> str:
    """Return the table: the times of Pullback, and how many times as long the others take."""
    columns = [(library, mode) for library in libraries for mode in MODES[library]]
    lines = [
        ["", *(LIBRARIES[library] if mode == "eager" else "" for library, mode in columns)],
        ["", *(mode for _, mode in columns)],
        *([TITLES[name], *(_cell(row, *column) for column in columns)] for name, row in rows.items()),
    ]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns) + 1)]
    text = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(n) for cell, n in zip(line[1:], widths[1:]))]).rstrip()
        for line in lines
    ]
    about = ", ".join(f"{LIBRARIES[name]} {versions[name]}" for name in libraries)
    notes = [f"{about}; Python {platform.python_version()}; {systems.cores()} cores"]
    if len(libraries) > 1:
        notes.append("x: how many times as long as Pullback, eager beside eager, compiled beside compiled")
    absent = [title for name, title in LIBRARIES.items() if name not in libraries]
    notes += [f"not installed: {', '.join(absent)}"] if absent else []
    return "\n".join([*text, "", *notes, *_failures(rows)])


def _failures(rows: Mapping[str, Row]) -> list[str]:
    return [
        f"{name}: {LIBRARIES[library]}, {mode}: {made.failed}"
        for name, row in rows.items()
        for (library, mode), made in row.items()
        if made.failed
    ]


def has_failed(rows: Mapping[str, Row]) -> bool:
    """Return whether Pullback failed, or the result of another library differs."""
    every = [(library, made) for row in rows.values() for (library, _), made in row.items()]
    return any(made.failed and (library == OURS or made.failed == DIFFERS) for library, made in every)


def as_json(rows: Mapping[str, Row], versions: Mapping[str, str]) -> str:
    """Return versions, seconds and ratios in JSON."""
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": systems.cores()}
    found: dict[str, Any] = {}
    for name, row in rows.items():
        found[name] = [
            {"library": library, "mode": mode, "seconds": made.median, "ratio": ratio(row, library, mode)}
            | ({"failed": made.failed} if made.failed else {})
            for (library, mode), made in row.items()
        ]
    return json.dumps({"pullback": pullback.__version__, "machine": machine, "versions": versions, "workloads": found})


def shown(items: Iterable[tuple[str, T]], total: int, file: TextIO | None) -> Iterator[tuple[str, T]]:
    """Yield ``items``, and show after each how many of ``total`` are done, from two seconds on.

    Args:
      items: names, and what belongs to them.
      total: how many there are.
      file: the terminal; ``None`` shows nothing.
    """
    start = time.monotonic()
    try:
        for done, (name, item) in enumerate(items, 1):
            yield name, item
            if file is not None and time.monotonic() - start > SILENT_SECONDS:
                bar = ("#" * (WIDTH * done // total)).ljust(WIDTH, ".")
                columns = shutil.get_terminal_size().columns - 1
                file.write("\r" + f"[{bar}] {done}/{total} {TITLES.get(name, name)}"[:columns].ljust(columns))
                file.flush()
    finally:
        if file is not None:
            file.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
            file.flush()
