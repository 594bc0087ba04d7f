"""The page of budgets of memory is that of the recorded results, and the budgets are kept."""

import json

from benchmarks.memory import report
from benchmarks.memory.__main__ import RESULTS


def test_the_page_has_the_results() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert report.PAGE.read_text(encoding="utf-8") == report.page(results)
    assert len(results) == 12


def test_recorded_budgets_are_kept() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for libraries in results.values():
        row = libraries["pullback"]
        for share, found in row["shares"].items():
            assert "impossible" in found or found["temporaries"] <= float(share) * row["usual"]
            assert found.get("difference", 0.0) < 1e-5
