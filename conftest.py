"""Workers that run beside each other share the cores; examples in docstrings run as in a new interpreter."""

from __future__ import annotations

import os

import pytest

# Threads of OpenBLAS wait by turning in place: where several workers have them, that takes most of the time.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each example begins with an empty namespace, without the names of its module: it imports what it uses."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
            item.dtest.globs = {"__name__": "__main__"}
