"""What the docstrings of declared operations say of dtypes and shapes is what their functions do."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import lax
from pullback.core.errors import DtypeError, OperandError, ShapeError
from pullback.core.trace import Primitive
from pullback.primitives.checks import ANY, kinds
from pullback.primitives.declare import PUBLIC

VALUES = {"bool": True, "int32": 3, "float32": 0.5, "complex64": 0.5 + 0.1j}


def parts(function: Any) -> tuple[str, str]:
    """The text of the sections ``Args`` and ``Returns``."""
    doc = inspect.getdoc(function) or ""
    args, rest = doc.split("\nArgs:\n")[1].split("\n\nReturns:\n")
    return args, rest.split("\n\nRaises:\n")[0]


@pytest.mark.parametrize("primitive", PUBLIC, ids=str)
def test_docstrings_say_which_dtypes_are_accepted_and_returned(primitive: Primitive) -> None:
    public = PUBLIC[primitive]
    function = getattr(lax, public.name)
    args, returns = parts(function)
    assert public.of is ANY or f" of {kinds(public.of)}" in args
    for dtype, value in VALUES.items():
        operands = [jnp.full((2, 1), value, dtype)] * public.arity
        if not public.of(np.dtype(dtype)):
            with pytest.raises(DtypeError):
                function(*operands)
            continue
        out = function(*operands)
        if "booleans" in returns:
            assert out.dtype == bool
        elif "their parts" in returns:
            assert out.dtype == np.real(np.zeros((), dtype)).dtype
        elif "complex numbers" in returns:
            assert out.dtype == np.dtype("complex64")
        else:
            assert "dtype of ``x``" in returns or "their dtype" in returns
            assert out.dtype == dtype


@pytest.mark.parametrize("primitive", PUBLIC, ids=str)
def test_docstrings_say_which_operands_are_refused(primitive: Primitive) -> None:
    public = PUBLIC[primitive]
    function = getattr(lax, public.name)
    raised = (inspect.getdoc(function) or "").split("\nRaises:\n")[1].split("\n\n")[0]
    assert "OperandError" in raised
    with pytest.raises(OperandError):
        function(*["text"] * public.arity)
    if public.arity == 2:
        (dtype,) = [d for d in ("int32", "float32") if public.of(np.dtype(d))][-1:]
        of_rank_1, of_rank_2 = jnp.ones(2, dtype), jnp.ones((2, 1), dtype)
        assert "ShapeError" in raised
        with pytest.raises(ShapeError):
            function(of_rank_1, of_rank_2)
        assert function(of_rank_2, jnp.ones((1, 3), dtype)).shape == (2, 3)
        assert function(of_rank_2, jnp.ones((), dtype)).shape == (2, 1)


@pytest.mark.parametrize(("name", "names"), [("nextafter", ("x1", "x2")), ("polygamma", ("m", "x"))])
def test_operands_of_other_names_are_documented_by_these(name: str, names: tuple[str, str]) -> None:
    function = getattr(lax, name)
    assert tuple(inspect.signature(function).parameters) == names
    args, returns = parts(function)
    assert args.startswith(f"  {', '.join(names)}: ")
    assert f"``{names[0]}`` and ``{names[1]}``" in returns
    assert "``y``" not in (inspect.getdoc(function) or "")
