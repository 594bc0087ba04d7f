"""What the docstrings of declared operations say of dtypes and shapes is what their functions do."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jit, jvp, lax
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


# Derivatives of extremes and reciprocals ------------------------------------------------------------------------------

_SPECIAL = np.array([-np.inf, -1.0, -0.0, 0.0, 1.0, 2.0, np.inf, np.nan], np.float32)


@pytest.mark.parametrize("f", [lax.max, lax.min])
def test_compiled_derivatives_of_extremes_are_those_of_eager_code(f: Any) -> None:
    """Of each pair of special numbers: 1 where an operand is selected, 1/2 where both are, which NaN always is."""
    x, y = (jnp.asarray(a.ravel()) for a in np.meshgrid(_SPECIAL, _SPECIAL))
    both = grad(lambda x, y: f(x, y).sum(), (0, 1))
    of_one = lambda x, y: (grad(lambda x: f(x, y).sum())(x), grad(lambda y: f(x, y).sum())(y))
    for gradients in (both, of_one):
        eager, compiled = gradients(x, y), jit(gradients)(x, y)
        for a, b, other, own in zip(eager, compiled, (y, x), (x, y), strict=True):
            np.testing.assert_array_equal(a, b)
            selected = [np.isnan(v) | (v == np.where(f is lax.max, np.fmax(x, y), np.fmin(x, y))) for v in (own, other)]
            either_is_nan = np.isnan(x) | np.isnan(y)
            selected = [np.where(either_is_nan, np.isnan(v), s) for v, s in zip((own, other), selected, strict=True)]
            np.testing.assert_array_equal(a, np.where(selected[0], np.where(selected[1], 0.5, 1), 0))
    for number in _SPECIAL.tolist():  # beside an array the compiler knows it
        one = grad(lambda x, number=number: f(x, number).sum())
        np.testing.assert_array_equal(one(x), jit(one)(x))
        np.testing.assert_array_equal(one(x), grad(lambda x, n=number: f(x, jnp.full(x.shape, n)).sum())(x))


def test_derivatives_of_reciprocals_at_the_ends_of_the_range() -> None:
    """The square of the operand, by which one might divide, overflows or is zero."""
    x = jnp.array([3e-19, -1e-10, 1.0, 2.0, -1e15, 1e18, jnp.inf, 0.0])
    gradient = grad(lambda x: (1 / x).sum())
    expected = [-1.0 / 9e-38, -1e20, -1.0, -0.25, -1e-30, -1e-36, 0.0, -np.inf]
    for f in (gradient, jit(gradient), grad(lambda x: lax.reciprocal(x).sum())):
        np.testing.assert_allclose(f(x), np.array(expected, np.float32), rtol=3e-7)
    np.testing.assert_allclose(grad(grad(lambda x: 1 / x))(2.0), 0.25, rtol=3e-7)
    np.testing.assert_allclose(jvp(lambda x: 1 / x, (x[:4],), (x[:4],))[1], -1 / x[:4], rtol=3e-7)
