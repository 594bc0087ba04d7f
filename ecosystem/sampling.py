"""A plugin of pytest that runs a sample of the tests, stops when its time is over, and writes what came of each.

The environment variable ``LIBRARY_TESTS`` has its options as JSON: ``count``, the size of the sample, or 0 for all
tests; ``seed``; ``seconds`` from the end of the collection, after which no further test begins; and ``report``, the
file to write.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
from typing import Any

import pytest

SECONDS_PER_TEST = 120


class Sample:
    """Chooses tests, and notes for each ``passed``, ``failed``, ``skipped`` or ``error``, and the error's last line."""

    def __init__(self, count: int, seed: int, seconds: float, report: str) -> None:
        self.count, self.seed, self.report = count, seed, report
        self.seconds, self.end = seconds, math.inf
        self.collected = 0
        self.outcomes: dict[str, tuple[str, str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.collected = len(items)
        if self.count and len(items) > self.count:
            chosen = set(random.Random(self.seed).sample(range(len(items)), self.count))
            items[:] = [item for i, item in enumerate(items) if i in chosen]

    def pytest_collection_finish(self) -> None:
        self.end = time.monotonic() + self.seconds  # files that import large libraries take minutes

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Any:
        signal.signal(signal.SIGALRM, late)
        signal.alarm(SECONDS_PER_TEST)
        try:
            return (yield)
        finally:
            signal.alarm(0)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcomes[report.nodeid] = "error", said(report)
        elif report.skipped:
            self.outcomes[report.nodeid] = "skipped", said(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            outcome = "passed" if report.passed or hasattr(report, "wasxfail") else report.outcome
            if self.outcomes.get(report.nodeid, ("passed",))[0] in ("passed", "skipped"):
                self.outcomes[report.nodeid] = outcome, "" if outcome == "passed" else said(report)
        if report.when == "teardown" and time.monotonic() > self.end:
            pytest.exit("the time is over", returncode=0)

    def pytest_sessionfinish(self) -> None:
        with open(self.report, "w", encoding="utf-8") as file:
            json.dump({"collected": self.collected, "outcomes": self.outcomes}, file, indent=1)


def late(number: int, frame: Any) -> None:
    raise TimeoutError(f"the test took more than {SECONDS_PER_TEST} seconds")


def said(report: Any) -> str:
    """Return the lines of a report that say what went wrong, shortened."""
    lines = str(report.longrepr).splitlines()
    marked = [line[1:].strip() for line in lines if line[:2] == "E " and line[1:].strip()]
    return " | ".join(marked[:3] or lines[-1:])[:500]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Sample(**json.loads(os.environ["LIBRARY_TESTS"])))
