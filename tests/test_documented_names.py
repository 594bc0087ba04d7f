"""Every documented name of the API exists, or stands in the table of exemptions of ``docs/names.md`` with a reason."""

import importlib
import re
from pathlib import Path

import pytest

LISTED = Path(__file__).with_name("documented_names.txt")
PAGE = Path(__file__).parents[1] / "docs" / "names.md"
MOST = 15


def documented():
    """The names of each module."""
    found = {}
    for line in LISTED.read_text().splitlines():
        if line.startswith("jax"):
            names = found[line.replace("jax", "pullback", 1)] = []
        elif line.startswith("  "):
            names += line.split()
    return found


def exempted():
    """The names in the first column of the first table of the page, with their reasons."""
    table = PAGE.read_text().split("\n\n")[2]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {name: reason for names, reason in rows for name in re.findall(r"`([\w.]+)`", names)}


NAMES = documented()


@pytest.mark.parametrize("module", NAMES)
def test_documented_names_exist_or_are_exempted(module):
    there = importlib.import_module(module)
    missing = {f"{module}.{name}".removeprefix("pullback.") for name in NAMES[module] if not hasattr(there, name)}
    assert missing - set(exempted()) == set()


def test_exemptions_are_few_and_none_is_stale():
    reasons = exempted()
    assert len(reasons) <= MOST
    assert all(len(reason) > 20 for reason in reasons.values())
    for name in reasons:
        module, _, last = f"pullback.{name}".rpartition(".")
        assert last in NAMES[module]
        assert not hasattr(importlib.import_module(module), last), f"{name} is there"
