"""Training steps over large meshes: they move what the literature says, and the page is written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.meshes import page
from benchmarks.meshes.transformer import WAYS, by_the_literature

ROOT = Path(__file__).resolve().parents[2]


def worker(*task: str) -> dict[str, Any]:
    """What the worker says."""
    known = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.meshes.worker", "pullback", *task], cwd=ROOT, env=known, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_is_moved(way: str) -> None:
    """As by the literature; the CPU's compiler has no scattered sums, and a gathered matrix is kept."""
    found = worker(way, "8")
    bound = 1.0 if way in ("data", "fully sharded", "pipeline", "expert") else 2.3
    assert 0.99 <= (page.moved(found) or 0) / by_the_literature(way, 8) <= bound * 1.01


def test_lowering_for_many_devices() -> None:
    assert set(worker("pipeline", "64", "lower")) == {"trace", "lower"}


def result(library: str, devices: int, moved: float) -> dict[str, Any]:
    """The result of a program that sums once."""
    return {
        "library": library, "way": "data", "devices": devices, "trace": 1.0, "lower": devices / 8,
        "partition": 0.5, "compile": 2.0, "peak": 3_000_000, "temporaries": 1,
        "collectives": [["all-reduce", "data", 10, 1, moved]],
    }  # fmt: skip


def test_the_page_and_the_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = [result("pullback", 8, 4e6), result("jax", 8, 2e6), result("pullback", 64, 2e6), result("jax", 64, 2e6)]
    assert page.summary(results).splitlines() == [
        "data over 8 devices moves more than JAX's: 4000000.0, 2000000.0 bytes",
        "data: 64 devices take 8.00 of the time of 8 to lower",
    ]
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.write(results)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| data | 8 | 1 all-reduce | 4.00 | 2.00 | 88.11 | 3.0 | 3.0 |" in text
    assert "| data | 64 | 1000 / 1000 | 8000 / 8000 | 500 / 500 | 2000 / 2000 | 8.00 / 8.00 |" in text


def test_lines() -> None:
    assert page.line({"library": "jax", "way": "data", "devices": 8, "error": "no"}).endswith("8  no")
    assert page.line(result("jax", 8, 2e6)).endswith("2.00 MB moved, 3.0 MB; 1 all-reduce")
