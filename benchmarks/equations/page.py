"""The chart, and the section of ``docs/differential_equations.md``, from the recorded results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.equations.problems import PROBLEMS

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "differential_equations.md"
CHART = PAGE.with_name("work_precision.png")
BEGIN, END = "<!-- table: written by `python -m benchmarks.equations` -->\n", "<!-- end of the table -->"
STYLES = {
    "eager": ("#3f6fb5", "-"),
    "compiled": ("#d9793b", "-"),
    "SciPy": ("#8a8a8a", "--"),
    "Diffrax": ("#6c9f58", "-."),
}
MARKERS = {
    "RK45": "o",
    "DOP853": "s",
    "Radau": "o",
    "BDF": "s",
    "Rodas5P": "^",
    "Tsit5": "o",
    "Dopri8": "s",
    "Kvaerno5": "D",
}
AT = (1e-4, 1e-7)
"""The errors at which the table compares times."""

Curves = Mapping[str, Sequence[Sequence[float]]]


def recorded() -> dict[str, Any]:
    """Return the recorded results, by the names of the problems."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def write(results: Mapping[str, Curves]) -> None:
    """Write the results, the chart and the section."""
    rounded = {
        name: {solver: [[float(f"{x:.3g}") for x in point] for point in points] for solver, points in curves.items()}
        for name, curves in results.items()
    }
    RESULTS.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
    draw(rounded)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(rounded)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def time_at(points: Sequence[Sequence[float]], wanted: float) -> float | None:
    """Return the time at an error, by a line through the logarithms of the points on its two sides; None outside."""
    errors, times = np.log([p[1] for p in points]), np.log([p[2] for p in points])
    level = np.log(wanted)
    for i in range(len(points) - 1):
        if errors[i] >= level >= errors[i + 1]:
            part = (errors[i] - level) / max(errors[i] - errors[i + 1], 1e-300)
            return float(np.exp(times[i] + part * (times[i + 1] - times[i])))
    return None


def table(results: Mapping[str, Curves]) -> str:
    """Return the table of the times at two errors."""
    lines = ["| problem | solver | " + " | ".join(f"ms at {x:.0e}" for x in AT) + " |", "|---|---|--:|--:|"]
    for name, problem in PROBLEMS.items():
        for solver, points in results.get(name, {}).items():
            times = [time_at(points, x) for x in AT]
            shown = " | ".join("" if t is None else f"{t:.2g}" if t < 100 else f"{t:.0f}" for t in times)
            lines.append(f"| {problem.title} | {solver} | {shown} |")
    return "\n".join([*lines, ""])


def draw(results: Mapping[str, Curves]) -> None:
    """Draw a panel for each problem: CPU time against error."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [name for name in PROBLEMS if name in results]
    figure, panels = pyplot.subplots(
        (len(shown) + 1) // 2, 2, figsize=(12, 3.6 * ((len(shown) + 1) // 2)), squeeze=False, layout="constrained"
    )  # fmt: skip
    for axes in panels.flat[len(shown) :]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, shown, strict=False):
        for solver, points in results[name].items():
            kind, method = solver.split()
            colour, line = STYLES[kind]
            axes.loglog(
                [p[1] for p in points], [p[2] for p in points], line, color=colour, marker=MARKERS[method],
                markersize=4, linewidth=1.2, label=solver,
            )  # fmt: skip
        axes.set_title(PROBLEMS[name].title, fontsize="medium", loc="left")
        axes.set_xlabel("largest relative error at the end")
        axes.set_ylabel("CPU time, ms")
        axes.invert_xaxis()
        axes.grid(which="major", color="#dddddd", linewidth=0.8)
        axes.legend(fontsize="x-small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(CHART, dpi=110)
    pyplot.close(figure)
