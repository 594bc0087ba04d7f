"""Every documented name of the API exists, or stands in the table of exemptions of ``docs/names.md`` with a reason."""

import importlib
import inspect
import re

import pytest

from pullback.core.errors import UnsupportedArgumentError
from tests.helpers import ROOT
from tests.public.documented_parameters import documented as documented_lists
from tests.public.documented_parameters import parameters

PAGE = ROOT / "docs" / "names.md"
MOST = 15


def documented():
    """The names of each module."""
    return {module.replace("jax", "pullback", 1): names for module, names in documented_lists()}


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


LISTS = {module.replace("jax", "pullback", 1): words for module, words in documented_lists("documented_parameters.txt")}


@pytest.mark.parametrize("module", LISTS)
def test_documented_parameters_are_taken(module):
    there = importlib.import_module(module)
    lacking = []
    for name, given in re.findall(r"(\w+)\(([^)]*)\)", " ".join(LISTS[module])):
        function = getattr(there, name, None)
        kinds = [] if function is None else [p.kind for p in inspect.signature(function).parameters.values()]
        if function is not None and inspect.Parameter.VAR_KEYWORD not in kinds:
            lacking += [f"{name}({p})" for p in given.split(",") if p not in parameters(function)]
    refused = [word for word in lacking if word.endswith(("(out)", "(where)"))]
    assert set(lacking) == set(refused)
    for word in refused:  # of ufuncs, whose arrays are immutable, in JAX too
        name, option, _ = re.split(r"\W", word)
        function = getattr(there, name)
        operands = [1 for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
        with pytest.raises(UnsupportedArgumentError, match=f"{name}: the argument {option} is not supported"):
            function(*operands, **{option: True})
