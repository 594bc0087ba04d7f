"""The page ``docs/accuracy.md``, the limits and what is exempt from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.accuracy.exemptions import EXEMPT
from benchmarks.accuracy.measure import SOURCES, Error, Row

TITLES = ("eager", "compiled", "JAX", "NumPy or SciPy")


def number(x: float) -> str:
    """An error in few figures."""
    if math.isinf(x):
        return "inf"
    if x < 100:
        return f"{x:.2g}" if x < 1 else f"{x:.1f}"
    return f"{x:.0f}" if x < 1e4 else f"{x:.0e}"


def _cell(error: Error | None) -> str:
    if error is None:
        return ""
    shown = f"{number(error.largest)} ({number(error.most)})"
    return f"{shown}, {error.nans} nan" if error.nans else shown


def table(rows: Sequence[Row]) -> str:
    """Largest errors and 99th percentiles, a line a function, output and dtype."""
    lines = ["| function | | dtype | " + " | ".join(TITLES) + " |", "|---|---|---|" + "--:|" * len(TITLES)]
    before = None
    for row in rows:
        name = f"`{row.function.label}`" if row.function.label != before else ""
        before = row.function.label
        cells = [_cell(row.errors.get(source)) for source in SOURCES]
        fault = " †" if row.faults() else ""
        lines.append(f"| {name} | {row.output}{fault} | {row.dtype} | {' | '.join(cells)} |")
    return "\n".join(lines)


def problems(rows: Sequence[Row], *, complete: bool) -> list[str]:
    """What is over its limit without an exemption; and, of a complete run, exemptions that nothing needs."""
    found, used = [], set()
    for row in rows:
        for source in row.faults():
            if row.function.label in EXEMPT:
                used.add(row.function.label)
                continue
            error = row.errors[source]
            found.append(
                f"{row.function.label} {row.output} {row.dtype} {source}: {number(error.largest)} ulps at {error.worst}, "
                f"{error.nans} nan; at most {number(row.limit)}"
            )
    if complete:
        found += [f"nothing needs the exemption of {name}" for name in EXEMPT if name not in used]
    if len(EXEMPT) > 10:
        found.append(f"there are {len(EXEMPT)} exemptions, and at most ten are allowed")
    return found


def write(rows: Sequence[Row]) -> None:
    """Rewrite the page."""
