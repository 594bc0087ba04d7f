"""What the docstrings of declared functions say of dtypes is what the functions do."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback.core.errors import DtypeError

VALUES = {"bool": True, "int32": 3, "float32": 0.5, "complex64": 0.5 + 0.1j}
KINDS = {
    "numbers": {"int32", "float32", "complex64"},
    "numbers or booleans": set(VALUES),
    "real numbers or booleans": {"bool", "int32", "float32"},
    "integers or booleans": {"bool", "int32"},
    "floats": {"float32"},
    "floats or complex numbers": {"float32", "complex64"},
}
"""The dtypes that the words of a docstring stand for."""
OPERANDS = re.compile(
    r"^  (x|x, y): (?:an array|arrays) of (.*?), or (?:a Python number|Python numbers)\b", re.MULTILINE
)


def documented() -> dict[str, tuple[Any, int, set[str]]]:
    """The functions whose operands are described so, with how many these are, and the dtypes that are taken."""
    found = {}
    for name in dir(jnp):
        doc = inspect.getdoc(getattr(jnp, name)) or ""
        operands = OPERANDS.search(doc)
        if operands is not None and operands[2] in KINDS:
            converted = {"bool", "int32"} if "Integers and booleans become floats" in doc else set[str]()
            found[name] = getattr(jnp, name), operands[1].count(",") + 1, KINDS[operands[2]] | converted
    return found


FUNCTIONS = documented()


def test_there_are_many() -> None:
    assert len(FUNCTIONS) > 50
    assert {"sin", "add", "less", "floor", "isposinf", "deg2rad", "logical_and", "true_divide"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_say_which_dtypes_are_accepted_and_returned(name: str) -> None:
    function, count, taken = FUNCTIONS[name]
    doc = inspect.getdoc(function) or ""
    for dtype, value in VALUES.items():
        operands = [jnp.full((2,), value, dtype)] * count
        if dtype not in taken:
            assert "DtypeError" in doc
            with pytest.raises(DtypeError):
                function(*operands)
            continue
        out = function(*operands)
        assert out.shape == (2,)
        if "An array of booleans" in doc:
            assert out.dtype == bool
        elif "An array of floats or complex numbers" in doc:
            assert np.issubdtype(out.dtype, np.inexact)
        elif "An array of floats" in doc:
            assert out.dtype == np.float32
