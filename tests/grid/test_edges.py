"""Values and gradients at infinite, huge, tiny and missing numbers, and of extremes: eager, compiled and right."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, hessian, jit, lax, nn, vmap
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from pullback.scipy import special
from tests.helpers import chosen

inf, nan = math.inf, math.nan

# Extremes are found once ----------------------------------------------------------------------------------------------


def smooth(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * jnp.exp(0.3 * x[::-1])) + jnp.prod(jnp.tanh(x)) + jnp.sum(x**3 / (1 + x**2))


EXTREMES: dict[str, Callable[[Any], Any]] = {
    "max": lambda h: jnp.max(jnp.abs(h)),
    "min": lambda h: jnp.min(jnp.abs(h)),
    "norm": lambda h: jnp.linalg.norm(h.ravel(), ord=jnp.inf),
    "maximum": lambda h: jnp.sum(jnp.maximum(h, h.T) * jnp.arange(16.0).reshape(4, 4)),
    "cummax": lambda h: jnp.sum(lax.cummax(jnp.abs(h.ravel()))),
    "cummin": lambda h: jnp.sum(lax.cummin(jnp.abs(h.ravel()))),
    "scatter max": lambda h: jnp.sum(jnp.zeros(2).at[jnp.arange(16) % 2].max(jnp.abs(h.ravel()))),
    "scatter min": lambda h: jnp.sum(jnp.ones(2).at[jnp.arange(16) % 2].min(h.ravel())),
}


@pytest.mark.parametrize("name", chosen(["max", "norm", "maximum", "cummax", "scatter max"], list(EXTREMES)))
def test_extremes_of_computed_elements(name: str) -> None:
    """The compiler computes elements anew where they are compared with the extreme, and may round them differently.

    A Hessian is symmetric, so that most extremes are ties, of elements with one derivative. The expected figures are
    those of double precision.
    """
    points = np.random.default_rng(0).normal(size=(200, 4))

    def gradients(x: Any) -> Any:
        return vmap(grad(lambda x: EXTREMES[name](hessian(smooth)(x))))(x)

    with enable_x64():
        expected = np.asarray(gradients(as_array(points)))
    got = np.asarray(jit(gradients)(as_array(points.astype(np.float32))))
    off = np.abs(got - expected).max(1) > 1e-3 * (1 + np.abs(expected).max(1))
    # In a row or two another element wins, by rounding.
    assert off.sum() <= 2, f"{off.sum()} of 200 rows are wrong, NaN in {np.isnan(got).any(1).sum()}"


# Values and gradients, element by element -----------------------------------------------------------------------------

ONE: list[tuple[str, Callable[[Any], Any], Sequence[float], Sequence[float], Sequence[float]]] = [
    ("x**0.5", lambda x: x**0.5, (-inf, 0, 4, inf), (inf, 0, 2, inf), (0, inf, 0.25, 0)),
    ("x**1.5", lambda x: x**1.5, (-inf, 0, 4), (inf, 0, 8), (inf, 0, 3)),
    ("gammaln", special.gammaln, (-inf, inf, 0, -1, 1), (inf, inf, inf, inf, 0), (nan, inf, -inf, nan, -0.5772156649)),
    ("digamma", special.digamma, (1e20,), (46.0517018599,), (1e-20,)),
    ("cbrt", jnp.cbrt, (0, 1e-30, 1e30, -8), (0, 1e-10, 1e10, -2), (inf, 1e20 / 3, 1e-20 / 3, 1 / 12)),
    ("arcsinh", jnp.arcsinh, (1e30, -1e20, 0), (69.7706997, -46.7448490404, 0), (1e-30, 1e-20, 1)),
    ("sparse_plus", nn.sparse_plus, (3e38, inf, 0), (3e38, inf, 0.25), (1, 1, 0.5)),
    ("maximum", lambda x: jnp.maximum(x, 1.0), (nan, 1, 2, 0), (nan, 1, 2, 1), (1, 0.5, 1, 0)),
    ("minimum", lambda x: jnp.minimum(1.0, x), (nan, 1, 2, 0), (nan, 1, 1, 0), (1, 0.5, 0, 1)),
    ("1e30 / x", lambda x: 1e30 / x, (1e30, -2e30), (1, -0.5), (-1e-30, -2.5e-31)),
    ("x / 3e38", lambda x: x / 3e38, (3e38,), (1,), (1 / 3e38,)),
    ("x / y / y", lambda x: x / 1e30 / (0 * x + 1e30), (3e38,), (3e-22,), ()),
    ("x / (y / x)", lambda x: x / ((0 * x + 1e-30) / x), (1e-30,), (1e-30,), ()),
    ("atan2(x, 1e30)", lambda x: jnp.arctan2(x, 1e30), (0, 1e30), (0, math.pi / 4), (1e-30, 5e-31)),
    ("atan2(1e-30, x)", lambda x: jnp.arctan2(1e-30, x), (1e-30,), (math.pi / 4,), (-5e29,)),
    ("atan2(1, x)", lambda x: jnp.arctan2(1.0, x), (inf,), (0,), (0,)),
]  # fmt: skip


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(("name", "f", "points", "values", "gradients"), ONE, ids=[row[0] for row in ONE])
def test_values_and_gradients(name: str, f: Any, points: Any, values: Any, gradients: Any) -> None:
    x = as_array(np.array(points, np.float32))
    for way in (lambda f: f, jit):
        np.testing.assert_allclose(way(f)(x), np.array(values, np.float32), rtol=3e-6, atol=1e-44)
        if gradients:
            got = way(vmap(grad(f)))(x)
            np.testing.assert_allclose(got, np.array(gradients, np.float32), rtol=3e-6, atol=1e-38)


def test_quotients_of_half_precision_are_not_products() -> None:
    x, y = as_array(np.array([2e-5, 6e4], np.float16)), as_array(np.float16(1e-5))
    assert np.array_equal(jit(lambda x, y: x / y)(x[:1], y), x[:1] / y)
    assert np.array_equal(jit(lambda x: x / 6e4)(x), x / 6e4)


VECTORS: list[tuple[str, Callable[[Any], Any], Sequence[float], Sequence[float]]] = [
    ("norm", jnp.linalg.norm, (1e30, 3e38), (1e30 / 3e38, 1)),
    ("norm", jnp.linalg.norm, (1e-30, 1e-30), (math.sqrt(0.5), math.sqrt(0.5))),
    ("norm", jnp.linalg.norm, (0, 0), (0, 0)),
    ("max", jnp.max, (1, nan, 3), (0, 1, 0)),
    ("min", jnp.min, (nan, nan, 3), (0.5, 0.5, 0)),
    ("cummax", lambda x: jnp.sum(lax.cummax(x)), (1, nan, 3), (1, 2, 0)),
    ("cummin", lambda x: jnp.sum(lax.cummin(x, reverse=True)), (1, nan, 3), (0, 2, 1)),
    ("sort", lambda x: jnp.sum(jnp.sort(x) * jnp.arange(1.0, 4)), (1, nan, 0), (2, 3, 1)),
    ("scatter max", lambda x: jnp.zeros(1).at[jnp.array([0, 0])].max(x)[0], (nan, 1), (1, 0)),
]


@pytest.mark.parametrize(("name", "f", "point", "gradient"), VECTORS, ids=[f"{r[0]}{r[2]}" for r in VECTORS])
def test_gradients_of_vectors(name: str, f: Any, point: Any, gradient: Any) -> None:
    x = as_array(np.array(point, np.float32))
    for way in (lambda f: f, jit):
        np.testing.assert_allclose(way(grad(f))(x), np.array(gradient, np.float32), rtol=3e-6)
    assert np.isfinite(np.asarray(jit(f)(x))) == np.isfinite(np.asarray(f(x)))
