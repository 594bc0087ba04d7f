"""The examples in docstrings run as in a new interpreter, into which a reader pastes them."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each example begins with an empty namespace, without the names of its module: it imports what it uses."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
            item.dtest.globs = {"__name__": "__main__"}
