"""Every row of the benchmark by size runs in Pullback, and its results become lines, means and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from benchmarks.sizes import __main__ as command
from benchmarks.sizes import page
from benchmarks.sizes.catalogue import ROWS, Row
from benchmarks.sizes.worker import MODES, JaxLike, fingerprint


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_runs_eagerly(row: Row) -> None:
    library, arrays = JaxLike("pullback"), row.operands(1000, np.random.default_rng(0))
    with pullback.enable_x64(True):
        size, total, magnitude = fingerprint(library.task(row, arrays, "value")())
        assert size > 0
        assert np.isfinite(total)
        assert magnitude > 0
        if row.differentiable:
            size, *_ = fingerprint(library.task(row, arrays, "gradient")())
            assert size == sum(np.size(a) for a in arrays[: row.differentiable])


def test_rows_have_names_of_their_own() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


def results() -> list[dict[str, Any]]:
    """Made-up times: Pullback takes half of JAX's time, and twice PyTorch's, which has no compiled rows."""
    return [
        {"row": row.name, "size": size, "mode": mode, "seconds": {
            "pullback": 2e-6, "jax": 4e-6, "torch": "LookupError: not measured" if "compiled" in mode else 1e-6
        }}
        for row, size, mode in command.tasks(ROWS[:3], None, MODES)
    ]  # fmt: skip


def test_the_page_has_means_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "sizes.md")
    monkeypatch.setattr(page, "CHART", tmp_path / "sizes.png")
    found = results()
    page.write(found)
    text = (tmp_path / "sizes.md").read_text()
    assert "| eager | 1,000 | JAX | 6 | 0.50 | 0.50 |" in text
    assert "| eager | 1,000 | PyTorch | 6 | 2.00 | 2.00 |" in text
    assert "PyTorch" not in text[text.index("| compiled | 1,000") : text.index("## All")]
    assert text.count("\n| add |") == 4 * len(ROWS[0].sizes)
    assert (tmp_path / "sizes.png").stat().st_size > 5_000
    assert "6 of 6 above 1.5" in page.summary(found)
