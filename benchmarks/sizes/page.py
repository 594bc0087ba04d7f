"""The results as lines, as geometric means with the rows above their bounds, and as a page with a chart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE, CHART = ROOT / "docs" / "sizes.md", ROOT / "docs" / "sizes.png"
PEERS = {"jax": "JAX", "torch": "PyTorch"}
COLOURS = {("eager", "JAX"): "#9ecae1", ("eager", "PyTorch"): "#fdae6b", ("compiled", "JAX"): "#3182bd"}
Result = Mapping[str, Any]
SAME = "same program"


def ratio(result: Result, peer: str) -> float | None:
    """Our time over a peer's; None if either has none."""
    ours, theirs = result["seconds"].get("pullback"), result["seconds"].get(peer)
    return ours / theirs if isinstance(ours, float) and isinstance(theirs, float) else None


def is_same(result: Result) -> bool:
    """Whether the compiled program is JAX's, so that the ratio of their times is that of calls and of the machine."""
    return bool(result.get("same_program"))


def _time(found: Any) -> str:
    return f"{1e6 * found:,.{2 if found < 1e-4 else 0}f}" if isinstance(found, float) else "-"


def line(result: Result) -> str:
    """A result as a line: microseconds, and ratios."""
    times = "".join(f"{_time(result['seconds'].get(name)):>13}" for name in ("pullback", *PEERS))
    ratios = "".join(f"{value:8.2f}" if (value := ratio(result, peer)) else "       -" for peer in PEERS)
    errors = [
        f"{k}: {v}" for k, v in result["seconds"].items() if isinstance(v, str) and v != "LookupError: not measured"
    ]
    notes = [SAME] * is_same(result) + errors
    return (
        f"{result['row'][:32]:32} {result['size']:>11,} {result['mode']:17} {times} {ratios}  {'; '.join(notes)[:90]}"
    )


def mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _groups(results: Sequence[Result]) -> Iterator[tuple[str, str, int, list[tuple[float, Result]]]]:
    """For eager and compiled code, each peer and each size the ratios, with the results."""
    for kind in ("eager", "compiled"):
        of_kind = [r for r in results if r["mode"].startswith("compiled") is (kind == "compiled")]
        for peer in PEERS:
            for size in sorted({r["size"] for r in of_kind}):
                found = [(ratio(r, peer), r) for r in of_kind if r["size"] == size]
                known = [(value, r) for value, r in found if value is not None]
                if known:
                    yield kind, peer, size, known


def summary(results: Sequence[Result]) -> str:
    """The geometric means, and the rows that are slowest."""
    lines = []
    for kind, peer, size, known in _groups(results):
        bound = 1.5 if kind == "eager" else 1.1
        worst = sorted((item for item in known if item[0] > bound), key=lambda item: -item[0])
        names = [f"{r['row']}, {r['mode']} {value:.2f}{f' ({SAME})' if is_same(r) else ''}" for value, r in worst]
        lines.append(
            f"{kind} at {size:,}, of {PEERS[peer]}: mean {mean([v for v, _ in known]):.3f}, "
            f"{len(worst)} of {len(known)} above {bound}: {'; '.join(names)}"
        )
    return "\n".join(lines)


def _again(measured: Mapping[str, Any]) -> str:
    """What the page says of rows that were measured again; nothing of runs from before that was done."""
    if "again" not in measured:
        return ""
    return (
        "Compiled rows that took more than 1.1 of JAX's time, or less than 1 / 1.1, were measured again at the end of "
        f"the run, by\nnew processes, and only that counts: {measured['again']} rows.\n\n"
    )


def write(results: Sequence[Result], measured: Mapping[str, Any]) -> None:
    """Write the page and its chart.

    Args:
      results: the measurements.
      measured: the machine, the versions of the libraries by name, and how many rounds.
    """
    machine = measured["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
    head = (
        "# Operations by size\n\nTimes of single operations, in microseconds, and the ratio of Pullback's to JAX's and "
        "to PyTorch's: below 1,\nPullback is faster. `python -m benchmarks.sizes` measures them, and writes this page; "
        "the gradient is the vector-Jacobian\nproduct with weights that differ, with the value that it needs. Compiled "
        "functions run as compiled from the first call.\n\n"
        f"Measured on {machine['cores']} cores of {machine['processor']}, with Python {machine['python']}, {versions}: "
        f"lower quartiles of\n{measured['rounds']} turns, fewer where calls are long. The libraries take turns of some "
        "milliseconds, and a turn counts by the\nquickest of its short blocks of calls.\n\n"
        "Where the compiler's optimised program is JAX's, names and the order of operations aside, a compiled row says "
        "so: its\nratio is that of the calls and of the machine.\n\n"
        f"{_again(measured)}"
        "![Ratios of times by size; left of 1, Pullback is faster](sizes.png)\n\n## Means\n\n"
    )
    means = ["| | at | of | rows | geometric mean | greatest | of other programs |", "|---" * 7 + "|"]
    for kind, peer, size, known in _groups(results):
        values, other = [v for v, _ in known], [v for v, r in known if not is_same(r)]
        means.append(
            f"| {kind} | {size:,} | {PEERS[peer]} | {len(values)} | {mean(values):.2f} | {max(values):.2f} "
            f"| {f'{max(other):.2f} ({len(other)} rows)' if other and kind == 'compiled' else '-'} |"
        )
    rows = [
        "| operation | elements | | Pullback | JAX | PyTorch | of JAX | of PyTorch | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        times = " | ".join(_time(r["seconds"].get(name)) for name in ("pullback", *PEERS))
        ratios = " | ".join(f"{v:.2f}" if (v := ratio(r, peer)) else "-" for peer in PEERS)
        rows.append(f"| {r['row']} | {r['size']:,} | {r['mode']} | {times} | {ratios} | {SAME * is_same(r)} |")
    PAGE.write_text(head + "\n".join(means) + "\n\n## All\n\n" + "\n".join(rows) + "\n", encoding="utf-8")
    _draw(results)


def _draw(results: Sequence[Result]) -> None:
    """A box of the ratios for each size, eager and compiled, of each peer."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = list(_groups(results))
    figure, axes = pyplot.subplots(figsize=(9, 0.4 * len(groups) + 1), layout="constrained")
    boxes = axes.boxplot(
        [[v for v, _ in known] for *_, known in groups], orientation="horizontal", whis=(5, 95), widths=0.6,
        patch_artist=True, medianprops={"color": "black"}, flierprops={"markersize": 3},
    )  # fmt: skip
    for box, (kind, peer, *_) in zip(boxes["boxes"], groups, strict=True):
        box.set_facecolor(COLOURS[kind, PEERS[peer]])
    axes.set_yticks(
        range(1, len(groups) + 1),
        [
            f"{kind}, of {PEERS[peer]}, $10^{{{round(math.log10(size))}}}$ elements ({len(k)})"
            for kind, peer, size, k in groups
        ],
    )
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("Pullback's time / the other library's; left of 1, Pullback is faster (log scale)")
    axes.invert_yaxis()
    figure.savefig(CHART, dpi=130)
    pyplot.close(figure)
