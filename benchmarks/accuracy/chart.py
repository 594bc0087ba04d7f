"""The pictures: the largest error of each function, by source, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.measure import Row

STYLES = {
    "peer": ("NumPy or SciPy", "#e8b04a", "s", 34),
    "jax": ("JAX", "#3f6fb5", "D", 26),
    "compiled": ("Pullback, compiled", "#b5483f", "o", 24),
    "eager": ("Pullback, eager", "#222222", ".", 24),
}
LEAST, MOST = 0.3, 1e6


def draw(path: Path, rows: Sequence[Row]) -> None:
    """Two panels, of values and of derivatives (the worst of a function's), a line a function."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = list(dict.fromkeys(row.name for row in rows))
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 0.19 * len(labels) + 1.2), sharey=True, layout="constrained")
    for axes, title, limit in ((panels[0], "value", 4), (panels[1], "derivatives", 16)):
        chosen = [row for row in rows if (row.output == "value") == (title == "value")]
        _panel(axes, labels, chosen, limit)
        axes.set_title(f"{title}, {rows[0].dtype}", fontsize="medium", loc="left")
    panels[0].set_yticks(range(len(labels)), labels, fontsize=7)
    panels[0].set_ylim(len(labels) - 0.4, -0.6)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4, frameon=False)
    figure.supxlabel(f"largest error in ulps ({MOST:.0e} stands for more); the line is the limit", fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _panel(axes: Any, labels: Sequence[str], rows: Sequence[Row], limit: float) -> None:
    place = {label: i for i, label in enumerate(labels)}
    for source, (title, colour, marker, size) in STYLES.items():
        worst: dict[str, float] = {}
        for row in rows:
            if source in row.errors:
                label = row.name
                worst[label] = max(worst.get(label, 0.0), row.errors[source].largest)
        x = [min(max(v, LEAST), MOST) for v in worst.values()]
        axes.scatter(x, [place[label] for label in worst], s=size, c=colour, marker=marker, label=title, zorder=3)
    axes.set_xscale("log")
    axes.set_xlim(LEAST * 0.8, MOST * 1.25)
    axes.axvline(limit, color="#999999", linewidth=0.8)
    axes.grid(axis="both", color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
