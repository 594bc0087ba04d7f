"""Every documented name of the API exists, and takes the documented parameters."""

import importlib
import inspect
import re

import pytest

from pullback.core.errors import UnsupportedArgumentError
from tests.public.documented_parameters import documented as documented_lists
from tests.public.documented_parameters import parameters

NAMES = {module.replace("jax", "pullback", 1): names for module, names in documented_lists()}
ATTRIBUTES = {
    owner.replace("jax", "pullback", 1): names for owner, names in documented_lists("documented_attributes.txt")
}


@pytest.mark.parametrize("module", NAMES)
def test_documented_names_exist(module):
    there = importlib.import_module(module)
    assert {name for name in NAMES[module] if not hasattr(there, name)} == set()


@pytest.mark.parametrize("owner", ATTRIBUTES)
def test_documented_attributes_of_classes_exist(owner):
    module, *names = owner.split(".")
    there = importlib.import_module(module)
    for name in names:
        there = getattr(there, name)
    assert {name for name in ATTRIBUTES[owner] if not hasattr(there, name)} == set()


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
