"""How many checks the grid has generated, at the end of the run."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the checks that passed and failed; a test that makes several says how many."""
    counts = {}
    for outcome in ("passed", "failed"):
        reports = [r for r in terminalreporter.stats.get(outcome, []) if "grid/test_grid.py" in r.nodeid]
        counts[outcome] = sum(dict(r.user_properties).get("checks", 1) for r in reports)
    if any(counts.values()):
        terminalreporter.write_line(f"grid of operations: {counts['passed']} checks passed, {counts['failed']} failed")
