"""The page ``docs/science.md``, from the recorded results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.science.rows import Part, Row

PAGE = Path(__file__).parents[2] / "docs" / "science.md"
RESULTS = Path(__file__).with_name("results.json")
HEAD = """# Functions for science

Functions that numerical programs need beside JAX's: with the signatures of SciPy, whose routines they call on the host
where it has them; with derivatives in both modes and to any order, under `vmap` and `jit`, in eager code and compiled.
The reference describes each.

`make science` writes the tables ([benchmarks](benchmarking.md#functions-for-science)). Errors are the largest
differences on a small problem in double precision, relative to the largest element or to 1:

* *value*: to SciPy's result; *batch*: of `vmap` to a loop; *jit*: of compiled values and gradients to eager ones;
* *forward*: of a forward derivative to a central difference, whose own error is about 1e-9; *reverse*: of a gradient
  along a direction to the forward derivative; *second*: of forward over reverse mode to a difference of gradients.

Times are of a large problem, in one run: milliseconds of eager code, the ratios of the eager and of the compiled time
to SciPy's, and of the compiled time to that of the library of JAX that has the function. Of rows without times only the
errors were measured.
"""
BEGIN, END = "<!-- table: written by `make science` -->\n", "<!-- end of the table -->"
"""The marks of tables in a page that is written by hand otherwise."""
COLUMNS = ("value", "forward", "reverse", "second", "batch", "compiled")


def recorded() -> dict[str, Any]:
    """Return the recorded results, by the names of the rows."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def with_tables(text: str, parts: Sequence[Part], results: Mapping[str, Any]) -> str:
    """Return the text of a page about some of the parts, with their tables between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n".join(_section(part, results).replace("## ", "### ", 1) for part in parts)
    return f"{before}{BEGIN}\n{tables}{END}{after}"


def page(parts: Sequence[Part], results: Mapping[str, Any]) -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *(_section(part, results) for part in parts)])


def _section(part: Part, results: Mapping[str, Any]) -> str:
    lines = [f"## {part.title}", "", part.text, ""]
    lines.append(
        "| function | "
        + " | ".join("jit" if c == "compiled" else c for c in COLUMNS)
        + " | ms | eager | compiled | to JAX's |"
    )
    lines.append("|---|" + "--:|" * (len(COLUMNS) + 4))
    lines += [_line(row, results[row.name]) for row in part.rows]
    notes = [f"* `{_short(row)}`: {row.note}" for row in part.rows if row.note]
    return "\n".join([*lines, "", *notes, ""] if notes else [*lines, ""])


def _short(row: Row) -> str:
    return row.name.rpartition(".")[2].partition(":")[0]


def _line(row: Row, found: Mapping[str, float]) -> str:
    errors = [f"{found[name]:.0e}" if name in found else "" for name in COLUMNS]
    peer = f"{found['peer']:.2f} ({row.peer_name})" if "peer" in found else ""
    times = [
        f"{found['milliseconds']:.2g}" if "milliseconds" in found else "",
        f"{found['anchor']:.2f}" if "anchor" in found else "",
        f"{found['jit']:.2f}" if "jit" in found else "",
        peer,
    ]
    return f"| `{_short(row)}{row.signature}` | " + " | ".join([*errors, *times]) + " |"
