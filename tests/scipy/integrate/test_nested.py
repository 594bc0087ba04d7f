"""Integrals over several variables, one after the other: values, derivatives, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import pullback.numpy as jnp
from pullback import grad, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.scipy.integrate import dblquad, nquad, tplquad


def test_values_are_those_of_scipy() -> None:
    with enable_x64():
        wave = lambda m: lambda y, x, k: m.exp(-k * y) * m.cos(x)
        ours = dblquad(wave(jnp), 0.0, 2.0, lambda x: x - 1, lambda x: jnp.sqrt(x) + 1, args=(0.7,))
        theirs = scipy.integrate.dblquad(wave(np), 0.0, 2.0, lambda x: x - 1, lambda x: np.sqrt(x) + 1, args=(0.7,))
        assert abs(float(ours[0]) - theirs[0]) < 1e-9
        assert 0 <= float(ours[1]) < 1e-6
        half = nquad(lambda y, x: jnp.exp(-x * x - y * y), [(0.0, np.inf), (-np.inf, np.inf)])
        assert abs(float(half[0]) - np.pi / 2) < 1e-8


@pytest.mark.slow
def test_three_variables_whose_order_is_that_of_scipy() -> None:
    with enable_x64():
        f = lambda z, y, x: x + 2 * y * z
        limits: Any = (0.0, 1.0, lambda x: -x, 2.0, lambda x, y: x * y, lambda x, y: x + y * y)
        assert abs(float(tplquad(f, *limits)[0]) - scipy.integrate.tplquad(f, *limits)[0]) < 1e-9
        by_ranges = nquad(f, [lambda y, x: (x * y, x + y * y), lambda x: (-x, 2.0), (0.0, 1.0)])
        assert abs(float(by_ranges[0]) - scipy.integrate.tplquad(f, *limits)[0]) < 1e-9


@pytest.mark.slow
def test_derivatives_of_limits_and_parameters() -> None:
    """The integral of exp(-k x y) over a triangle of side r, against central differences of values."""
    with enable_x64():

        def value(r: Any, k: Any) -> Any:
            return dblquad(lambda y, x: jnp.exp(-k * x * y), 0.0, r, 0.0, lambda x: x / 2)[0]

        at, step = (1.2, 0.8), 1e-4
        gradient = grad(value, (0, 1))(*at)
        for i, found in enumerate(gradient):
            up, down = ([a + s * (i == j) for j, a in enumerate(at)] for s in (step, -step))
            assert abs(float(found) - float(value(*up) - value(*down)) / (2 * step)) < 1e-7
        assert abs(float(jvp(value, at, (1.0, 1.0))[1]) - float(sum(gradient))) < 1e-9
        assert abs(float(jit(value)(*at)) - float(value(*at))) < 1e-12
        batch = vmap(lambda r: value(r, 0.8))(jnp.array([1.2, 0.5]))
        assert abs(float(batch[0]) - float(value(*at))) < 1e-12


def test_the_error_has_that_of_the_inner_integrals() -> None:
    """The outer integrand is constant, and the inner ones are cut off after one interval."""
    with enable_x64():
        opts = [{"limit": 1}, {}]
        value, error = nquad(lambda y, x: jnp.abs(y - 0.3), [(0.0, 1.0), (0.0, 2.0)], opts=opts)
        assert 1e-5 < abs(float(value) - 2 * 0.29) <= float(error)


def test_options_of_each_variable() -> None:
    with enable_x64():
        step = lambda y, x: jnp.where(y > x / 3, 1.0, 0.0)
        opts = [lambda x: {"points": [x / 3], "epsabs": 1e-10}, {"limit": 20}]
        value, error = nquad(step, [(0.0, 1.0), (0.0, 1.0)], opts=opts)
        assert abs(float(value) - (1 - 1 / 6)) < 1e-10
        assert float(error) < 1e-8


def test_the_error_contains_that_of_inner_integrals() -> None:
    with enable_x64():
        step = lambda y, x: jnp.where(y > x / np.pi, 1.0, 0.0)
        value, error = nquad(step, [(0.0, 1.0), (0.0, 1.0)], opts=[{"limit": 1}, {"epsabs": 1.0}])
        assert abs(float(value) - (1 - 1 / (2 * np.pi))) <= float(error)
        assert float(error) > 1e-3


def test_bad_input_has_its_errors() -> None:
    product = lambda y, x: x * y
    box = [(0.0, 1.0), (0.0, 1.0)]
    with pytest.raises(ArgumentError, match="nquad: func must be a function"):
        nquad(3.0, box)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a range for each variable"):
        nquad(product, [])
    with pytest.raises(ArgumentError, match="a pair of limits"):
        nquad(product, [(0.0, 1.0), 2.0])
    with pytest.raises(ArgumentError, match="one of epsabs, epsrel, limit, points, got 'weight'"):
        nquad(product, box, opts={"weight": "cos"})
    with pytest.raises(ArgumentError, match="must have 2 dictionaries"):
        nquad(product, box, opts=[{}])
    with pytest.raises(ArgumentError, match="options must be a dictionary"):
        nquad(product, box, opts=3)
    with pytest.raises(ArgumentError, match="dblquad: epsabs must be"):
        dblquad(product, 0.0, 1.0, 0.0, 1.0, epsabs=-1.0)
    with pytest.raises(UnsupportedArgumentError, match="full_output"):
        nquad(product, box, full_output=True)
    with pytest.raises(ShapeError, match="tplquad: the integrand must return a number"):
        tplquad(lambda z, y, x: jnp.ones(2) * z, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
    with pytest.raises(ShapeError, match="dblquad: the limits and points must be scalars"):
        dblquad(product, jnp.zeros(2), 1.0, 0.0, 1.0)
    with pytest.raises(DtypeError, match="must be real"):
        dblquad(lambda y, x: 1j * x, 0.0, 1.0, 0.0, 1.0)
