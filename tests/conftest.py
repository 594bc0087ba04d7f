"""What all tests share: jaxprs are checked, random examples are always the same, the user's cache is left alone."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

from hypothesis import HealthCheck, settings

from pullback.core.config import config

config.update("enable_checks", True)

# Compiled programs are kept for this run only, also those of processes that tests start.
_cache = os.environ["PULLBACK_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="pullback-tests-")
config.update("compilation_cache_dir", _cache)
atexit.register(shutil.rmtree, _cache, ignore_errors=True)

settings.register_profile(
    "pullback",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pullback")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many checks the grid has generated; a test that makes several says how many."""
    counts = {}
    for outcome in ("passed", "failed"):
        reports = [r for r in terminalreporter.stats.get(outcome, []) if "grid/test_grid.py" in r.nodeid]
        counts[outcome] = sum(dict(r.user_properties).get("checks", 1) for r in reports)
    if any(counts.values()):
        terminalreporter.write_line(f"grid of operations: {counts['passed']} checks passed, {counts['failed']} failed")
