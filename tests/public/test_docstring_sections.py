"""Docstrings of public names have the sections ``Args``, ``Returns`` and ``Raises``, an example, and types."""

from __future__ import annotations

import dataclasses

import pytest

import pullback.numpy as jnp
from docs.generate.names import Name, names_of, public_modules
from pullback.core.errors import ShapeError
from tests.public.docstring_sections import lacking, missing, raises


@pytest.mark.parametrize("module", public_modules())
def test_docstrings_lack_nothing(module: str) -> None:
    assert lacking(module) == {}


# What is looked at --------------------------------------------------------------------------------------------------


def of_function(value: object) -> list[str]:
    return missing(Name("m", "f", value, "function", "m.f"))


def halve(x: float, y: int = 0) -> float:
    if y:
        raise ShapeError("there is no y")
    return x / 2


def test_a_function_without_a_docstring_lacks_all() -> None:
    assert of_function(halve) == ["Args", "Returns", "Raises", "an example"]


def test_every_parameter_needs_an_entry() -> None:
    def described(x: float, *ys: int) -> None:
        """Do nothing.

        Args:
          x: a number.

        >>> described(1)
        """

    assert of_function(described) == ["Args"]
    described.__doc__ = str(described.__doc__).replace("x: a number", "x, *ys: numbers")
    assert of_function(described) == []


def test_untyped_parameters_and_results_are_found() -> None:
    def plain(x):  # type: ignore[no-untyped-def]
        """Do nothing."""

    assert of_function(plain) == ["Args", "Returns", "an example", "types"]


def test_errors_of_functions_that_are_called_count() -> None:
    assert raises(halve)
    assert raises(jnp.flip)
    assert not raises(jnp.isscalar)


def test_a_module_may_describe_its_names() -> None:
    """Classes of the core have one sentence, and their module says the rest."""
    described = [name for name in names_of("pullback.extend.core") if name.name in ("Var", "jaxpr_as_fun")]
    assert [name.full for name in described] == ["pullback.extend.core.jaxpr_as_fun", "pullback.extend.core.Var"]
    for name in described:
        assert missing(name) == []
        assert missing(dataclasses.replace(name, module="pullback.extend", main=f"pullback.extend.{name.name}"))


def test_dtypes_second_names_and_constants_need_nothing() -> None:
    assert missing(Name("pullback.numpy", "float32", jnp.float32, "class", "pullback.numpy.float32")) == []
    assert missing(Name("m", "f", halve, "function", "m.g")) == []
    assert missing(Name("m", "x", 3, "data")) == []
