"""What all tests share: checked jaxprs, the same random examples in each run, a cache and a time limit; fixtures."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pullback.backends.compiler import client
from pullback.core import array
from pullback.core.config import config, enable_x64
from tests.helpers import EXHAUSTIVE, SECONDS, time_limit

config.update("enable_checks", True)

# Compiled programs are kept for this run only, by all processes that tests start; or, if the environment says where,
# for the runs on several versions of Python.
if "PULLBACK_TEST_CACHE" not in os.environ:
    os.environ["PULLBACK_TEST_CACHE"] = tempfile.mkdtemp(prefix="pullback-tests-")
    atexit.register(shutil.rmtree, os.environ["PULLBACK_TEST_CACHE"], ignore_errors=True)
_cache = os.environ["PULLBACK_COMPILATION_CACHE_DIR"] = os.environ["PULLBACK_TEST_CACHE"]
config.update("compilation_cache_dir", _cache)

# Tests are of compiled programs: those of tiers turn them on.
os.environ["PULLBACK_TIERED"] = "off"
config.update("tiered", "off")

# `make test-newest-jaxlib` tries releases that are not allowed yet.
if os.environ.get("PULLBACK_TEST_ANY_JAXLIB", "0") != "0":
    client.RELEASES = (client.RELEASES[0], (1 << 30,))

# Most of the time goes by in the compiler, which optimises little here; as users have it, in the exhaustive run, where
# the environment says how (`make test-processor-%`), and in tests that ask for it.
QUICK = {"xla_backend_optimization_level": "0", "xla_cpu_parallel_codegen_split_count": "1"}
AS_FOR_USERS: list[tuple[str, Any]] = [("xla_backend_optimization_level", 3)]
if version("jaxlib") < "0.11":  # newer releases know only one way to fuse
    QUICK["xla_cpu_use_fusion_emitters"] = "false"
    AS_FOR_USERS.append(("xla_cpu_use_fusion_emitters", True))
if not EXHAUSTIVE:
    os.environ.setdefault("XLA_FLAGS", " ".join(f"--{name}={value}" for name, value in QUICK.items()))

settings.register_profile(
    "pullback",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pullback")


def pytest_collection_finish() -> None:
    """The tests themselves live as long as the run: collections of garbage need not look at them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """A test that hangs fails."""
    with time_limit(SECONDS):
        return (yield)


LARGE = array.LARGE


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Any:
    """A test that makes small arrays large, for it or for all that come after it, leaves them small."""
    result = yield
    changed, array.LARGE = array.LARGE != LARGE, LARGE
    assert not changed, f"{item.nodeid} leaves another size of large arrays"
    return result


@pytest.fixture
def x64() -> Iterator[None]:
    """A test in 64 bits."""
    with enable_x64():
        yield


@pytest.fixture(scope="module")
def all_in_x64() -> Iterator[None]:
    """A file of tests in 64 bits."""
    with enable_x64():
        yield


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Without the garbage collector: reference counting must free everything."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many checks the grid has generated; a test that makes several says how many."""
    counts = {}
    for outcome in ("passed", "failed"):
        reports = [r for r in terminalreporter.stats.get(outcome, []) if "grid/test_grid.py" in r.nodeid]
        counts[outcome] = sum(dict(r.user_properties).get("checks", 1) for r in reports)
    if any(counts.values()):
        terminalreporter.write_line(f"grid of operations: {counts['passed']} checks passed, {counts['failed']} failed")


@pytest.fixture
def optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are compiled as users have them: what is tested depends on the compiler's optimisations."""
    usual = client.compile_options
    monkeypatch.setattr(client, "compile_options", lambda given, device=None: usual([*AS_FOR_USERS, *given], device))
