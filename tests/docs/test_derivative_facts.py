"""What the reference says of derivatives and of parameters without effect is so."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from docs.generate import facts, names, reference
from pullback import grad, jvp, lax, ops, scipy, tree
from pullback.errors import MissingRuleError
from tests.docs import derivatives
from tests.helpers import chosen

RECORDED: dict[str, dict[str, str]] = json.loads(facts.DERIVATIVES.read_text(encoding="utf-8"))
LONG = ("special", "signm", "funm", "odeint", "quad")
"""Functions whose second derivatives take seconds."""
QUICK = [full for full in RECORDED if not any(word in full for word in LONG)]
SAMPLE = [*QUICK[:: chosen(20, 2)], "pullback.lax.linalg.hessenberg", "pullback.numpy.histogram2d"]
"""Every function is measured again by ``make facts``; here a part."""


def test_what_is_recorded_is_of_public_functions_and_their_parameters() -> None:
    assert set(RECORDED) == set(derivatives.rows()), "make facts"
    assert len(RECORDED) > 500
    for full, found in RECORDED.items():
        parameters = {*inspect.signature(names.public_names()[full].value).parameters}
        assert {*found} <= parameters
        assert {*found.values()} <= {*facts.OF_DERIVATIVES}


@pytest.mark.parametrize("full", SAMPLE)
def test_what_is_recorded_is_measured_again(full: str) -> None:
    assert derivatives.of_function(full, derivatives.rows()[full]) == RECORDED[full], "make facts"


@pytest.mark.parametrize(
    ("full", "parameter", "call"),
    [
        ("pullback.numpy.hypot", "y", lambda y: jnp.hypot(2.0, y)),
        ("pullback.numpy.where", "x", lambda x: jnp.where(True, x**2, 1.0)),
        ("pullback.lax.sin", "x", lax.sin),
        ("pullback.numpy.max", "a", lambda x: jnp.max(jnp.stack([x**2, x]))),
    ],
)
def test_what_is_differentiable_more_than_once_is(full: str, parameter: str, call: Callable[..., Any]) -> None:
    assert RECORDED[full][parameter] == derivatives.MORE
    step, x = 1e-2, 3.0
    first = grad(call)(x)
    np.testing.assert_allclose(jvp(call, (x,), (1.0,))[1], first, rtol=1e-5)
    np.testing.assert_allclose((call(x + step) - call(x - step)) / (2 * step), first, rtol=1e-2)
    np.testing.assert_allclose(jvp(grad(call), (x,), (1.0,))[1], grad(grad(call))(x), rtol=1e-5)


def test_what_has_a_derivative_of_zero_or_none_has() -> None:
    for full, call in {"pullback.numpy.floor": jnp.floor, "pullback.lax.stop_gradient": lax.stop_gradient}.items():
        assert set(RECORDED[full].values()) == {derivatives.ZERO}
        assert grad(call)(1.5) == 0
    assert RECORDED["pullback.lax.linalg.hessenberg"] == {"a": derivatives.NONE}
    with pytest.raises(MissingRuleError):
        jvp(lax.linalg.hessenberg, (jnp.eye(3),), (jnp.eye(3),))


def of_steps(x: Any, y: Any, z: Any, n: int) -> list[Any]:
    """A function that is differentiable in its first argument, constant in steps in the second one."""
    return [x * n, jnp.floor(y), z > 0]


def test_how_parameters_are_told_apart() -> None:
    bound = inspect.signature(of_steps).bind(*map(jnp.asarray, (1.0, 2.0, 3.0)), 2)
    call = derivatives.Call(of_steps, bound, (("x", 0), ("y", 0), ("z", 0)))
    assert derivatives.constant_in(call) == {"y", "z"}
    assert derivatives.measured(call.of("x")) == derivatives.MORE
    without = derivatives.Call(
        lax.linalg.hessenberg, inspect.signature(lax.linalg.hessenberg).bind(jnp.eye(3)), (("a", 0),)
    )
    assert derivatives.measured(without) == derivatives.NONE


def test_the_reference_says_it() -> None:
    there = names.public_names()
    assert (
        "* Differentiable in ``x`` and ``y``, in forward and reverse mode, more than once."
        in reference.page_of(there["pullback.numpy.hypot"])
    )  # fmt: skip
    assert "* The derivative in ``x`` is zero everywhere." in reference.page_of(there["pullback.numpy.floor"])
    assert "* Not differentiable in ``a``." in reference.page_of(there["pullback.lax.linalg.hessenberg"])
    assert "* Accepted without effect: ``order``." in reference.page_of(there["pullback.numpy.asarray"])
    assert facts.derivatives("pullback.grad") == []


# Parameters without effect -------------------------------------------------------------------------------------------

DOC = """Do.

Args:
  a: an array; others are ignored.
  b, c: accepted for compatibility.
  d: is ignored, since
    it is.
  e: accepted; only None.
  f: a number, or None; without effect: it is.
"""


def test_parameters_without_effect_are_found() -> None:
    assert facts.without_effect(DOC) == ["b", "c", "d", "f"]
    assert facts.without_effect("Do.") == []
    found = {full: facts.without_effect(name.doc) for full, name in names.public_names().items() if not name.second}
    assert sum(map(bool, found.values())) > 80


@pytest.mark.parametrize(
    ("full", "parameter", "value", "call"),
    [
        ("pullback.numpy.array", "order", "F", lambda **o: jnp.array([[1.0, 2.0]], **o)),
        ("pullback.numpy.nan_to_num", "copy", False, lambda **o: jnp.nan_to_num(jnp.array([jnp.nan, 1.0]), **o)),
        ("pullback.numpy.linalg.slogdet", "method", "qr", lambda **o: jnp.linalg.slogdet(2 * jnp.eye(3), **o)),
        ("pullback.scipy.linalg.cho_factor", "overwrite_a", True, lambda **o: scipy.linalg.cho_factor(jnp.eye(3), **o)),
        (
            "pullback.ops.segment_max", "bucket_size", 2,
            lambda **o: ops.segment_max(jnp.arange(4.0), jnp.array([0, 0, 1, 1]), **o),
        ),
    ],
)  # fmt: skip
def test_they_have_no_effect(full: str, parameter: str, value: Any, call: Callable[..., Any]) -> None:
    assert parameter in facts.without_effect(names.public_names()[full].doc)
    for with_it, without in zip(tree.leaves(call(**{parameter: value})), tree.leaves(call()), strict=True):
        np.testing.assert_array_equal(with_it, without)
