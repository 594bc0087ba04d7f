"""The page ``docs/accuracy.md``, the limits and what is exempt from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.accuracy import chart
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
        name = f"`{row.name}`" if row.name != before else ""
        before = row.name
        cells = [_cell(row.errors.get(source)) for source in SOURCES]
        fault = " †" if row.faults() else ""
        lines.append(f"| {name} | {row.output}{fault} | {row.dtype} | {' | '.join(cells)} |")
    return "\n".join(lines)


def problems(rows: Sequence[Row], *, complete: bool) -> list[str]:
    """What is over its limit without an exemption; and, of a complete run, exemptions that nothing needs."""
    found, used = [], set()
    for row in rows:
        for source in row.faults():
            if row.name in EXEMPT:
                used.add(row.name)
                continue
            error = row.errors[source]
            found.append(
                f"{row.name} {row.output} {row.dtype} {source}: {number(error.largest)} ulps at "
                f"{error.worst}, {error.nans} nan; at most {number(row.limit)}"
            )
    if complete:
        found += [f"nothing needs the exemption of {name}" for name in EXEMPT if name not in used]
    if len(EXEMPT) > 10:
        found.append(f"there are {len(EXEMPT)} exemptions, and at most ten are allowed")
    return found


_TEXT = """# How accurate the numbers are

`make accuracy` (`benchmarks/accuracy`) writes this page. It measures every elementwise operation and every special
function: value and first derivatives, in float32 and float64, eager and compiled, against values of at least 50 digits
from mpmath.

* **Errors** are in units in the last place (ulps) of the exact result. Each cell shows the largest error over all
  points, and the 99th percentile in parentheses. Correct rounding is at most 0.5.
* **Points**: up to {count:,} for each function and dtype. They are random bits in the domain, so that all exponents
  occur; uniform numbers where the function varies most; and zeros, poles, branch points and ends, with neighbouring
  floats and points farther away on both sides. Functions of several operands are measured at random pairs of these.
* **Compiled** is the result of the compiled program on this CPU, **JAX** that of `jax.jit` ({jax}) at the same points,
  and the last column that of NumPy's or SciPy's function. A cell is empty if the library has no such function or
  derivative. JAX's `exp1` and `expi` do not return from points like 1e-10 and -1e-10.
* **Irrational zeros**: near the negative zeros of `gammaln`, that of `digamma` and those of a few derivatives, rounding
  the operand already moves the result by many ulps. There an error counts in ulps of the terms that cancel (a fixed
  size; `scales` in `benchmarks/accuracy/functions.py`). All other zeros are measured like any number.
* **Subnormal numbers** are operands where the backend supports them, which is in eager code. A result below the
  smallest normal number is measured in ulps of that number.
* **Infinite results** count as the power of two after the largest float; a wrong NaN counts as an infinite error.
* **Complex numbers** are measured in complex64 and complex128: the error is the distance from the exact result in ulps
  of its modulus. Real and imaginary parts are points as above, paired at random. At a third of them one part is a zero
  of either sign, or the smallest number next to it, so both sides of all branch cuts are measured. At a zero the exact
  value is the limit from the side of its sign. Derivatives are holomorphic ones. If a part of the exact result
  overflows, any infinite or NaN result counts as right.
* A function that `lax` and `numpy` share has one row. `logsumexp`, `softmax` and `log_softmax` are not elementwise.

The limit is 4 ulps for values and 16 for derivatives, or JAX's own largest error if that is larger; where JAX has no
such function, that of NumPy or SciPy. `make accuracy` fails if an error exceeds it (†) without an exemption.

![float64](accuracy.png)

![float32](accuracy_float32.png)

## Exemptions

{exempt}

## All errors

{table}

## Complex functions

{complex_table}

{missing}"""


def write(rows: Sequence[Row], missing: Sequence[str]) -> None:
    """Rewrite the page and its pictures.

    Args:
      rows: results.
      missing: functions of the table that have none.
    """
    docs = Path(__file__).resolve().parents[2] / "docs"
    reasons = [f"* `{name}`: {reason}" for name, reason in EXEMPT.items()]
    of_complex = [row for row in rows if row.dtype.startswith("complex")]
    text = _TEXT.format(
        count=max(row.count for row in rows),
        jax=version("jax"),
        exempt="\n".join(reasons) or "None.",
        table=table([row for row in rows if row not in of_complex]),
        complex_table=table(of_complex),
        missing=f"Not measured yet: {', '.join(f'`{name}`' for name in missing)}.\n" if missing else "",
    )
    (docs / "accuracy.md").write_text(text)
    chart.draw(docs / "accuracy.png", [row for row in rows if row.dtype == "float64"])
    chart.draw(docs / "accuracy_float32.png", [row for row in rows if row.dtype == "float32"])
