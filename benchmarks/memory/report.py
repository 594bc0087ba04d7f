"""The page of the results: ``docs/memory_budgets.md``."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "memory_budgets.md"
_HEAD = """\
# Budgets of memory, measured

`python -m benchmarks.memory --page` writes this page. Twelve programs are differentiated under budgets of 75, 50 and
30 % of the temporaries that their gradients usually need, in the compiler's own count. A cell has the share that was
needed, and the CPU time in multiples of that without a budget. "Not possible" is an error that says the least that was
found. The column "predicted" has the peak without a budget as `memory_profile` predicts it. [How to fit a gradient into
memory](how_to/memory_budget.md) shows the option.

| program | usual | predicted | 75 % | 50 % | 30 % | difference |
|---|---|---|---|---|---|---|
"""
_JAX = """
## Beside JAX's policies

JAX's users apply a policy (`dots_saveable`, `dots_with_no_batch_dims_saveable`, `nothing_saveable`) to the
whole function, or to each layer, block or step. For each budget, the fastest of these, and of no policy, whose
temporaries are within the same number of bytes; Pullback's CPU time in multiples of its time; and in multiples of the
time of the same program without a budget, Pullback's and then JAX's. A dash is a budget that no policy keeps.

| program | 75 % | 50 % | 30 % |
|---|---|---|---|
"""
_TORCH = """
## Beside PyTorch's budget

`torch.compile` takes `activation_memory_budget`, a share between 0 and 1. For each budget, the fastest share whose
saved activations are within the same number of bytes; Pullback's CPU time in multiples of its time; and in multiples of
the time of the same program without a budget, Pullback's and then PyTorch's. PyTorch counts no temporaries on CPUs:
what is compared is less, the bytes that the forward pass saves. `python -m benchmarks.memory --library torch` runs each
library in a process of its own, on one thread of the same CPU. The processes take turns; a time is the median over the
turns, and so is a quotient of two.

| program | 75 % | 50 % | 30 % |
|---|---|---|---|
"""


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.1f} MB"


def _cell(row: dict[str, Any], share: str) -> str:
    found = row["shares"][share]
    if "impossible" in found:
        return "not possible"
    return f"{100 * found['temporaries'] / row['usual']:.0f} %, {found['seconds'] / row['seconds']:.2f}"


def _beside_jax(row: dict[str, Any], jax: dict[str, Any], share: str) -> str:
    """Return a cell: Pullback beside the fastest of JAX's policies that keeps the same budget."""
    found = row["shares"][share]
    if "impossible" in found:
        return ""
    limit = float(share) * row["usual"]
    fitting = [(each["seconds"], name) for name, each in jax.items() if each["temporaries"] <= limit]
    if not fitting:
        return "—"
    seconds, name = min(fitting)
    own, theirs = found["seconds"] / row["seconds"], seconds / jax["everything"]["seconds"]
    return f"{found['seconds'] / seconds:.2f} of {name} ({own:.2f}, {theirs:.2f})"


def _beside_torch(found: dict[str, Any], share: str) -> str:
    """Return a cell: Pullback beside the fastest share of PyTorch's that saves no more bytes than the budget has."""
    own, torch = found["pullback"], found["torch"]
    if share not in own["seconds"]:
        return ""
    limit = float(share) * own["known"]["usual"]
    times = {way: median(torch["seconds"][way]) for way, known in torch["known"].items() if known["saved"] <= limit}
    if not times:
        return "—"
    way = min(times, key=lambda way: times[way])
    pairs = [
        (own["seconds"][share], torch["seconds"][way]),
        (own["seconds"][share], own["seconds"]["usual"]),
        (torch["seconds"][way], torch["seconds"]["1.0"]),
    ]
    ratio, ours, theirs = (median(x / y for x, y in zip(*pair, strict=True)) for pair in pairs)
    return f"{ratio:.2f} of {way} ({ours:.2f}, {theirs:.2f})"


def page(results: dict[str, Any]) -> str:
    """Return the text of the page."""
    lines: list[str] = []
    beside_jax: list[str] = []
    beside_torch: list[str] = []
    for name, libraries in results.items():
        row = libraries.get("pullback")
        if row is None:
            continue
        shares = sorted(row["shares"], key=float, reverse=True)
        worst = max((f["difference"] for f in row["shares"].values() if "difference" in f), default=0.0)
        cells = [_cell(row, share) for share in shares]
        predicted = f"{100 * row['predicted'] / row['usual']:.0f} %"
        lines.append(_line(name, _megabytes(row["usual"]), predicted, *cells, f"{worst:.0e}"))
        if "jax" in libraries:
            beside_jax.append(_line(name, *[_beside_jax(row, libraries["jax"], share) for share in shares]))
        if found := libraries.get("beside torch"):
            beside_torch.append(_line(name, *[_beside_torch(found, share) for share in shares]))
    alone = [name for name, libraries in results.items() if libraries.get("pullback", {}).get("threads") == 1]
    lines += [f"\nOn one thread: {', '.join(alone)}. The others on all."] if alone else []
    tables = [(_HEAD, lines), (_JAX, beside_jax), (_TORCH, beside_torch)]
    return "".join(head + "\n".join(rows) + "\n" for head, rows in tables if rows)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def write_page(results: dict[str, Any]) -> None:
    """Write the page."""
    PAGE.write_text(page(results), encoding="utf-8")
