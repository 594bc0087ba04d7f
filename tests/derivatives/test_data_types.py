"""A data type with tangents of another type: the circle, whose points have two components and one degree of freedom."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import custom_jvp, errors, grad, jacfwd, jit, vmap
from pullback.derivatives import (
    check_data_type,
    difference,
    in_coordinates,
    laplacian,
    local_rule,
    move,
    register_data_type,
    zero_tangent,
)
from pullback.test_util import check_rule
from tests.helpers import assert_close

pytestmark = pytest.mark.usefixtures("all_in_x64")


class Angle(NamedTuple):
    cos: Any
    sin: Any
    turns: Any = 0


class Skewed(NamedTuple):
    """A type whose two functions are not inverse to each other."""

    value: Any


class Shifted(NamedTuple):
    """A type that the zero tangent moves."""

    value: Any


def turned(a: Angle, t: Any) -> Angle:
    return Angle(a.cos * jnp.cos(t) - a.sin * jnp.sin(t), a.sin * jnp.cos(t) + a.cos * jnp.sin(t), a.turns)


def between(a: Angle, b: Angle) -> Any:
    return jnp.arctan2(a.cos * b.sin - a.sin * b.cos, a.cos * b.cos + a.sin * b.sin)


register_data_type(Angle, zero=lambda a: jnp.zeros(()), move=turned, difference=between)
register_data_type(
    Skewed,
    zero=lambda s: jnp.zeros(()),
    move=lambda s, t: Skewed(s.value + 2 * t),
    difference=lambda a, b: b.value - a.value,
)
register_data_type(
    Shifted,
    zero=lambda s: jnp.zeros(()),
    move=lambda s, t: Shifted(s.value + t + 1),
    difference=lambda a, b: b.value - a.value - 1,
)


def angle(t: float) -> Angle:
    return Angle(jnp.cos(t), jnp.sin(t))


def added(a: Angle, b: Angle) -> Angle:
    return Angle(a.cos * b.cos - a.sin * b.sin, a.sin * b.cos + a.cos * b.sin)


def test_derivatives_are_by_the_tangents_of_the_type() -> None:
    f = lambda a, x: {"y": a.sin * x, "a": added(a, added(a, a)), "n": 2}
    function, zeros = in_coordinates(f, angle(0.3), jnp.asarray(2.0))
    assert_close(function(*zeros)["a"], jnp.asarray(0.0))
    slopes = jacfwd(lambda t, x: {k: function(t, x)[k] for k in "ya"}, (0, 1))(*zeros)
    assert_close(slopes["a"], (jnp.asarray(3.0), jnp.asarray(0.0)))
    np.testing.assert_allclose(slopes["y"], (2 * np.cos(0.3), np.sin(0.3)))
    assert function(*zeros)["n"].dtype == pullback.float0


def test_under_transformations() -> None:
    def slope(t: Any) -> Any:
        function, zeros = in_coordinates(lambda a: a.sin**2, Angle(jnp.cos(t), jnp.sin(t)))
        return grad(function)(*zeros), laplacian(function)(*zeros)

    ts = jnp.asarray([0.1, 0.5, 2.0])
    assert_close(jit(vmap(slope))(ts), (jnp.sin(2 * ts), 2 * jnp.cos(2 * ts)))


def test_trees_of_values_and_arrays() -> None:
    x = {"a": angle(0.2), "b": [jnp.ones(2), 3]}
    zero = zero_tangent(x)
    assert zero["a"].shape == ()
    assert zero["b"][1].dtype == pullback.float0
    y = move(x, {"a": jnp.asarray(0.5), "b": [jnp.asarray([1.0, 2.0]), zero["b"][1]]})
    assert_close((y["a"].cos, y["a"].sin), (jnp.cos(0.7), jnp.sin(0.7)))
    back = difference(x, y)
    assert_close((back["a"], back["b"][0]), (jnp.asarray(0.5), jnp.asarray([1.0, 2.0])))
    with pytest.raises(errors.TangentMismatchError, match="the tangent does not fit the tree of values"):
        move(x, {"a": 0.5})


def test_rules_on_own_tangents_are_checked() -> None:
    sine = custom_jvp(lambda a: a.sin / jnp.hypot(a.cos, a.sin))
    sine.defjvp(local_rule(lambda primals, tangents: (sine(*primals), primals[0].cos * tangents[0])))
    check_rule(sine, angle(0.4))
    assert_close(grad(lambda t: sine(turned(angle(0.4), t)))(0.0), jnp.cos(0.4))

    doubled = custom_jvp(lambda a: added(a, a))
    doubled.defjvp(local_rule(lambda primals, tangents: (doubled(*primals), 2 * tangents[0])))
    function, zeros = in_coordinates(doubled, angle(0.4))
    assert_close(grad(function)(*zeros), jnp.asarray(2.0))

    wrong = custom_jvp(lambda a: a.sin / jnp.hypot(a.cos, a.sin))
    wrong.defjvp(local_rule(lambda primals, tangents: (wrong(*primals), 1.5 * primals[0].cos * tangents[0])))
    with pytest.raises(errors.RuleCheckError, match=r"by a factor of 1\.5"):
        check_rule(wrong, angle(0.4))


def test_types_are_checked() -> None:
    check_data_type({"a": angle(0.3), "b": np.ones(2)})
    with pytest.raises(errors.RuleCheckError, match=r"by a factor of 0\.5"):
        check_data_type(Skewed(jnp.asarray(1.0)))
    with pytest.raises(
        errors.RuleCheckError, match=r"zero tangent changed component 0 .*; move\(x, zero\(x\)\) must be x"
    ):
        check_data_type(Shifted(jnp.asarray(1.0)))


def test_declarations_are_checked() -> None:
    functions: dict[str, Any] = {"zero": jnp.sin, "move": jnp.sin, "difference": jnp.sin}
    with pytest.raises(errors.ArgumentError, match="register_data_type takes a class, got 3"):
        register_data_type(3, **functions)  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="Angle is already registered"):
        register_data_type(Angle, **functions)
    with pytest.raises(errors.ArgumentError, match="register_data_type: move must be a function, got None"):
        register_data_type(list, **{**functions, "move": None})
