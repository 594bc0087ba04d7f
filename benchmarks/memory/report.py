"""The page of the results: ``docs/memory_budgets.md``."""

from __future__ import annotations

from pathlib import Path
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
what is compared is less, the bytes that the forward pass saves. Each library has a run of its own: how busy the cores
were may differ, and PyTorch's threads spin while they wait, which counts as CPU time.

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


def _beside(row: dict[str, Any], peer: dict[str, Any], share: str, usual: str, memory: str) -> str:
    """Return a cell: Pullback beside the fastest way of a peer that keeps the same budget.

    Args:
      row: what was measured of Pullback.
      peer: what was measured of the peer, by ways.
      share: the budget.
      usual: the peer's way without recomputation.
      memory: the name of the peer's count of bytes.
    """
    found = row["shares"][share]
    if "impossible" in found:
        return ""
    limit = float(share) * row["usual"]
    fitting = [(each["seconds"], name) for name, each in peer.items() if each[memory] <= limit]
    if not fitting:
        return "—"
    seconds, name = min(fitting)
    own, theirs = found["seconds"] / row["seconds"], seconds / peer[usual]["seconds"]
    return f"{found['seconds'] / seconds:.2f} of {name} ({own:.2f}, {theirs:.2f})"


_PEERS = {"jax": (_JAX, "everything", "temporaries"), "torch": (_TORCH, "1.0", "saved")}
"""For each peer the head of its table, its way without recomputation, and its count of bytes."""


def page(results: dict[str, Any]) -> str:
    """Return the text of the page."""
    lines: list[str] = []
    beside: dict[str, list[str]] = {peer: [] for peer in _PEERS}
    for name, libraries in results.items():
        row = libraries.get("pullback")
        if row is None:
            continue
        shares = sorted(row["shares"], key=float, reverse=True)
        worst = max((f["difference"] for f in row["shares"].values() if "difference" in f), default=0.0)
        cells = [_cell(row, share) for share in shares]
        predicted = f"{100 * row['predicted'] / row['usual']:.0f} %"
        lines.append(f"| {' | '.join([name, _megabytes(row['usual']), predicted, *cells, f'{worst:.0e}'])} |")
        for peer, (_, usual, memory) in _PEERS.items():
            if peer in libraries:
                cells = [_beside(row, libraries[peer], share, usual, memory) for share in shares]
                beside[peer].append(f"| {' | '.join([name, *cells])} |")
    tables = [head + "\n".join(beside[peer]) + "\n" for peer, (head, _, _) in _PEERS.items() if beside[peer]]
    return _HEAD + "\n".join(lines) + "\n" + "".join(tables)


def write_page(results: dict[str, Any]) -> None:
    """Write the page."""
    PAGE.write_text(page(results), encoding="utf-8")
