"""The cases need two devices: they are collected in the processes that ``test_elsewhere.py`` starts."""

import os
from typing import Any

collect_ignore_glob = [] if os.environ.get("PULLBACK_NUM_CPU_DEVICES") == "2" else ["cases_*.py"]


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep one part of the cases, ``k/n``, if the environment says which."""
    if collect_ignore_glob:
        return
    part, _, count = os.environ.get("PULLBACK_TEST_PART", "0/1").partition("/")
    items[:] = items[int(part) :: int(count)]
