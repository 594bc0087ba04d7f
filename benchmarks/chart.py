"""The bar chart of the ratios, for the README."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import PEERS, TITLES
from benchmarks.report import Results, ratio
from benchmarks.workloads import Workload

COLOURS = {"jax": "#3f6fb5", "torch": "#d9793b", "autograd": "#6c9f58"}
BAR_HEIGHT = 0.25


def draw(path: Path, workloads: Sequence[Workload], results: Results) -> None:
    """One group of bars a workload, one bar a peer, from equal time to the ratio; ticks mark the bounds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.42 * len(workloads) + 1.2), layout="constrained")
    handles: list[Any] = []
    bounds = []
    for offset, peer in zip((-BAR_HEIGHT, 0.0, BAR_HEIGHT), PEERS):
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
            handles += [axes.barh(positions, lengths, BAR_HEIGHT * 0.9, left=1, color=colour, label=title)]
    if bounds:
        limits, positions = zip(*bounds)
        ticks = axes.scatter(limits, positions, c="black", marker="|", zorder=3, label="accepted at most")
        handles += [ticks]
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(workloads)), [workload.title for workload in workloads])
    axes.set_ylim(len(workloads) - 0.4, -0.6)
    axes.set_xlabel("Pullback's time / the other library's (log scale): left of 1, Pullback is faster")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(axis="x", which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
