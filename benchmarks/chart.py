"""The bar chart of the ratios, for the README."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS, TITLES
from benchmarks.report import Results, by_group, ratio
from benchmarks.workloads import Workload

COLOURS = {
    "jax": "#3f6fb5",
    "torch": "#d9793b",
    "autograd": "#6c9f58",
    "torch-compile": "#b5483f",
    "torch-imperative": "#e8b04a",
    "equinox": "#7d5ba6",
    "folx": "#4fa3a0",
    "scipy": "#8a8a8a",
}
BAR_HEIGHT = 0.25
BOUND = "accepted at most"


def draw(path: Path, workloads: Sequence[Workload], results: Results) -> None:
    """A panel a group, a row a workload, a bar a peer, from equal time to the ratio; ticks mark the bounds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = by_group(workloads)
    figure, panels = pyplot.subplots(
        len(groups),
        squeeze=False,
        figsize=(9, 0.42 * len(workloads) + 0.6 * len(groups) + 0.6),
        height_ratios=[len(members) for members in groups.values()],
        layout="constrained",
    )
    handles: dict[str, Any] = {}
    for (group, members), (axes,) in zip(groups.items(), panels):
        handles |= _draw_bars(axes, members, results)
        axes.set_title(group, fontsize="medium", loc="left")
    panels[-1][0].set_xlabel("Pullback's time / the other library's (log scale): left of 1, Pullback is faster")
    order = [TITLES[peer] for peer in PEERS] + [BOUND]
    shown = [handles[title] for title in order if title in handles]
    figure.legend(handles=shown, loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _draw_bars(axes: Any, workloads: Sequence[Workload], results: Results) -> dict[str, Any]:
    """The bars of one group; returns what the legend shows, by title."""
    handles: dict[str, Any] = {}
    bounds = []
    peers = [peer for peer in PEERS if any(peer in workload.peers for workload in workloads)]
    for place, peer in enumerate(peers):
        offset = (place - (len(peers) - 1) / 2) * BAR_HEIGHT
        bars = []
        for row, workload in enumerate(workloads):
            value, bound = ratio(results[workload.name], peer), workload.peers.get(peer)
            if value is not None:
                bars.append((row + offset, value - 1))
                if bound is not None:
                    bounds.append((bound, row + offset))
        if bars:
            positions, lengths = zip(*bars)
            colour, title = COLOURS[peer], TITLES[peer]
            handles[title] = axes.barh(positions, lengths, BAR_HEIGHT * 0.9, left=1, color=colour, label=title)
    if bounds:
        limits, positions = zip(*bounds)
        handles[BOUND] = axes.scatter(limits, positions, c="black", marker="|", zorder=3, label=BOUND)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(workloads)), [workload.title for workload in workloads])
    axes.set_ylim(len(workloads) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x", which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return handles
