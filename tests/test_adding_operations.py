"""An operation on elements is added by its declaration, a line that makes it public, and a row of the grid."""

from __future__ import annotations

import doctest
import inspect
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import lax
from pullback.core.trace import Primitive
from pullback.lax import elementwise as functions
from pullback.numpy import declare as numpy_declare
from pullback.primitives import elementwise as ops
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import PUBLIC, elementwise


@pytest.fixture
def versine_p() -> Iterator[Primitive]:
    """The first edit: an operation is declared."""
    p = elementwise(
        "versine", doc=("``1 - cos(x)``.", "0.0", "0.0"),
        of=FLOAT, host=lambda x: 1 - np.cos(x), hlo=lambda hlo, x: hlo.inline(lambda x: ops.sub(1, ops.cos(x)), x),
        jvp=lambda t, x, ans: ops.mul(t, ops.sin(x)),
    )  # fmt: skip
    yield p
    del PUBLIC[p]


def test_a_declared_operation_is_public_by_one_line(versine_p: Primitive) -> None:
    versine = numpy_declare.inexact_unary("versine", versine_p, "pullback.numpy.ufuncs")  # the second edit
    of_lax = functions.checked(versine_p, PUBLIC[versine_p])
    x = pnp.array([0.0, 0.5, 2.0])
    for f in (versine, of_lax, pullback.jit(versine), pullback.vmap(of_lax)):
        np.testing.assert_allclose(f(x), 1 - np.cos(np.array(x)), rtol=1e-6)
    for f in (versine, of_lax):
        assert float(pullback.grad(f)(2.0)) == pytest.approx(math.sin(2.0))
    assert versine(0) == 0.0  # numpy's function converts, that of lax refuses
    with pytest.raises(TypeError, match="versine takes floats, got i32"):
        of_lax(pnp.array(0))
    assert str(pullback.make_jaxpr(versine)(2.0)).count("versine") == 1
    for f, name in ((versine, "pnp.versine(0.0)"), (of_lax, "lax.versine(0.0)")):
        assert f.__name__ == "versine"
        assert inspect.getdoc(f).startswith("``1 - cos(x)``.")  # type: ignore[union-attr]
        assert name in f.__doc__


@pytest.mark.parametrize("primitive", PUBLIC, ids=str)
def test_a_public_operation_is_in_lax_with_an_example(primitive: Primitive) -> None:
    name = PUBLIC[primitive].name
    function: Any = getattr(lax, name)
    assert function is getattr(functions, name)
    assert function.__name__ == name
    assert getattr(lax, f"{primitive.name}_p") is primitive
    assert [e.want for e in doctest.DocTestParser().get_examples(function.__doc__)][1:]


def test_the_names_of_a_face_are_those_of_its_functions() -> None:
    """So a line ``exp = _unary("exp", ops.exp_p)`` makes ``exp`` public."""
    from pullback.numpy import logic, ufuncs
    from pullback.scipy import special

    for module in (logic, ufuncs):
        assert set(module.__all__) <= set(pnp.__all__)
    assert {"exp", "arcsin", "asin", "abs", "absolute"} <= set(ufuncs.__all__)
    assert {"exprel", "logsumexp"} <= set(special.__all__)
    assert not {"operand", "partial", "Any", "ops"} & {*ufuncs.__all__, *logic.__all__, *special.__all__}
