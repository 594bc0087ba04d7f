"""The page of functions for science is that of the recorded results, whose errors are small."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
import pytest

from benchmarks.science.__main__ import PAGES, PARTS
from benchmarks.science.exceptions import FAMILIES, REASONS
from benchmarks.science.measure import Call, checks, fastest
from benchmarks.science.page import COLUMNS, PAGE, page, recorded, with_tables
from benchmarks.science.rows import Row
from pullback.core.config import enable_x64

ROWS = {row.name: row for part in PARTS for row in part.rows}
MODULES = (
    "signal", "signal.windows", "signal.wavelets", "ndimage", "special", "optimize", "interpolate", "integrate",
    "sparse.linalg", "stats", "stats.qmc", "spatial", "spatial.distance", "spatial.transform",
)  # fmt: skip
LIMITS = {"value": 1e-11, "forward": 1e-6, "reverse": 1e-9, "second": 1e-5, "batch": 1e-11, "compiled": 1e-10}


def limit(row: Row, column: str) -> float:
    """The greatest error of a column; the values of some rows differ by what the anchor is imprecise."""
    return max(LIMITS[column], row.anchor_error if column == "value" else 0.0)


def test_the_page_has_the_recorded_results_of_every_row() -> None:
    results = recorded()
    assert sorted(results) == sorted(ROWS)
    assert PAGE.read_text(encoding="utf-8") == page(PARTS, results)
    for path, parts in PAGES.items():
        text = path.read_text(encoding="utf-8")
        assert text == with_tables(text, parts, results)
    for name, found in results.items():
        for column in COLUMNS:
            assert found.get(column, 0.0) <= limit(ROWS[name], column), (name, column)
        assert ("second" in found) == ROWS[name].second


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_the_errors_are_small_here_too(name: str) -> None:
    row: Row = ROWS[name]
    with enable_x64():
        found = checks(row)
    for column, error in found.items():
        assert error <= limit(row, column), column


def test_operands_are_made_before_the_time_begins_and_for_both_sides_alike() -> None:
    seen: list[Any] = []

    def slow(x: Any) -> Any:
        time.sleep(0.02)
        return np.array(x)

    def remembered(x: Any) -> Any:
        seen.append(x[0])
        return x

    best = fastest([Call(remembered, slow), Call(remembered, np.asarray)], [np.ones(3)], 0.0)
    assert max(best) < 0.02
    assert len(seen) == len(set(seen)) == 12


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_has_a_row_or_a_reason(module: str) -> None:
    names = {f"scipy.{module}.{name}" for name in importlib.import_module(f"pullback.scipy.{module}").__all__}
    rows = {name.partition(":")[0] for name in ROWS}
    reasons = {name for name in REASONS if name.rpartition(".")[0] == f"scipy.{module}"}
    assert not reasons & rows
    assert not reasons - names
    if module in FAMILIES:
        assert not names & rows
        return
    assert not names - rows - reasons
