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

# Compiled programs are kept for this run only, by all processes that tests start; or, if the environment says where,
# for the runs on several versions of Python.
if "PULLBACK_TEST_CACHE" not in os.environ:
    os.environ["PULLBACK_TEST_CACHE"] = tempfile.mkdtemp(prefix="pullback-tests-")
    atexit.register(shutil.rmtree, os.environ["PULLBACK_TEST_CACHE"], ignore_errors=True)
_cache = os.environ["PULLBACK_COMPILATION_CACHE_DIR"] = os.environ["PULLBACK_TEST_CACHE"]
config.update("compilation_cache_dir", _cache)

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
