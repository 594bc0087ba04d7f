"""The documentation of the public functions says what each parameter is."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

MODULES = (
    "pullback", "pullback.ad_checkpoint", "pullback.custom_batching", "pullback.custom_derivatives", "pullback.debug",
    "pullback.analysis", "pullback.checkpointing", "pullback.derivatives", "pullback.distributed", "pullback.dtypes",
    "pullback.experimental.multihost_utils", "pullback.experimental.ode",
    "pullback.export", "pullback.extend", "pullback.flatten_util",
    "pullback.gradient_helpers", "pullback.interpreters.ad", "pullback.interpreters.batching",
    "pullback.interpreters.mlir", "pullback.lax", "pullback.lax.linalg", "pullback.nn", "pullback.nn.initializers",
    "pullback.numpy", "pullback.numpy.fft", "pullback.numpy.linalg", "pullback.profiler", "pullback.random",
    "pullback.ref",
    "pullback.scipy.cluster.vq", "pullback.scipy.fft", "pullback.scipy.integrate", "pullback.scipy.interpolate",
    "pullback.scipy.linalg", "pullback.scipy.ndimage", "pullback.scipy.optimize", "pullback.scipy.signal",
    "pullback.scipy.sparse.linalg",
    "pullback.scipy.spatial", "pullback.scipy.spatial.distance",
    "pullback.scipy.special", "pullback.show", "pullback.stages", "pullback.test_util", "pullback.tree",
    "pullback.tree_util",
)  # fmt: skip
MANY = 3
"""From how many parameters on a section of its own describes them."""


def public_functions() -> Iterator[tuple[str, Any]]:
    """Every function of ours with several parameters that a public module offers, once."""
    seen: set[int] = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for attribute in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
            function = getattr(module, attribute, None)
            if function is None or inspect.isclass(function) or not callable(function) or inspect.ismodule(function):
                continue
            source = getattr(inspect.unwrap(function), "__module__", None) or ""
            if id(inspect.unwrap(function)) in seen or not source.startswith("pullback"):
                continue
            seen.add(id(inspect.unwrap(function)))
            yield f"{name}.{attribute}", function


def parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


FUNCTIONS = {name: function for name, function in public_functions() if len(parameters(function)) >= MANY}


def described(doc: str) -> set[str]:
    """The names to the left of the colons of the section ``Args``."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)*)", doc, re.MULTILINE)
    if section is None:
        return set()
    lines = section[1].splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    found: set[str] = set()
    for line in lines:
        entry = re.match(rf"[ ]{{{indent}}}(\*{{0,2}}\w+(?:, \*{{0,2}}\w+)*):", line)
        if entry:
            found |= {name.lstrip("*") for name in entry[1].split(", ")}
    return found


def test_there_are_many_functions() -> None:
    assert len(FUNCTIONS) > 200


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_described(name: str) -> None:
    function = FUNCTIONS[name]
    missing = [p for p in parameters(function) if p not in described(inspect.getdoc(function) or "")]
    assert not missing, f"{name}{inspect.signature(function)}: Args: says nothing of {', '.join(missing)}"
