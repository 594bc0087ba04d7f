"""Orthogonal polynomials and quadratures: values, derivatives, degrees of all kinds, and errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
import pullback.numpy as jnp
from pullback import errors
from pullback.core.config import enable_x64
from pullback.scipy import special
from pullback.test_util import check_grads
from tests.helpers import eager_and_compiled

PARAMETERS: dict[str, list[float]] = {
    "eval_legendre": [], "eval_chebyt": [], "eval_chebyu": [], "eval_chebyc": [], "eval_chebys": [], "eval_hermite": [],
    "eval_hermitenorm": [], "eval_laguerre": [], "eval_genlaguerre": [0.4], "eval_gegenbauer": [0.7],
    "eval_jacobi": [0.3, 1.2], "eval_sh_legendre": [], "eval_sh_chebyt": [], "eval_sh_chebyu": [],
    "eval_sh_jacobi": [2.2, 1.3],
}  # fmt: skip
WHOLE = ("eval_hermite", "eval_hermitenorm")


@pytest.mark.parametrize("name", PARAMETERS)
def test_polynomials_are_scipys(name: str) -> None:
    rng = np.random.default_rng(0)
    n, x = rng.integers(0, 15, 60), rng.uniform(-1, 1, 60)
    reference = getattr(scipy.special, name)(n, *PARAMETERS[name], x)
    with enable_x64():
        for out in eager_and_compiled(lambda n, x: getattr(special, name)(n, *PARAMETERS[name], x), n, x):
            np.testing.assert_allclose(out, reference, rtol=1e-13, atol=1e-14)
        assert getattr(special, name)(np.arange(3), *PARAMETERS[name], np.float32(0.5)).dtype == np.float32


@pytest.mark.parametrize("name", PARAMETERS)
def test_polynomials_have_derivatives_by_all_but_the_degree(name: str) -> None:
    function, count = getattr(special, name), len(PARAMETERS[name])
    with enable_x64():
        x = jnp.array([0.3, 0.8])
        check_grads(lambda *xs: function(np.array([4, 5]), *xs), (*map(jnp.array, PARAMETERS[name]), x), order=2)
        assert pullback.grad(function, count + 1)(0, *PARAMETERS[name], 0.3) == 0
        mapped = pullback.vmap(pullback.grad(function, count + 1), (0, *[None] * count, 0))
        slopes = mapped(jnp.array([1, 6]), *PARAMETERS[name], x)
        loop = [pullback.grad(function, count + 1)(n, *PARAMETERS[name], y) for n, y in zip((1, 6), x, strict=True)]
        np.testing.assert_allclose(slopes, loop, rtol=1e-13)
        with pytest.raises(errors.NotDifferentiableError, match="no derivative by"):
            pullback.grad(function)(2.0, *PARAMETERS[name], 0.3)


@pytest.mark.parametrize("name", [name for name in PARAMETERS if name not in WHOLE])
def test_polynomials_of_other_degrees_are_scipys(name: str) -> None:
    n = np.array([2.5, 0.25, 3.0])
    reference, h = getattr(scipy.special, name), 1e-5

    def ours(n: Any, x: Any) -> Any:
        return getattr(special, name)(n, *PARAMETERS[name], x)

    with enable_x64():
        for out in eager_and_compiled(ours, n, 0.3):
            np.testing.assert_allclose(out, reference(n, *PARAMETERS[name], 0.3), rtol=1e-13)
        slope = pullback.jit(pullback.vmap(pullback.grad(ours, 1), (0, None)))(n, 0.3)
        above, below = (reference(n, *PARAMETERS[name], 0.3 + step) for step in (h, -h))
        np.testing.assert_allclose(slope, (above - below) / (2 * h), rtol=1e-7)


def test_degrees_that_are_refused() -> None:
    with enable_x64():
        assert special.eval_legendre(-3, 0.3) == pytest.approx(scipy.special.eval_legendre(2, 0.3), rel=1e-13)
        assert np.isnan(pullback.jit(special.eval_legendre)(-3, 0.3))
        for out in eager_and_compiled(special.eval_hermite, np.array([-1.0, 2.5]), 0.3):
            assert np.isnan(out).all()
    with pytest.raises(errors.DtypeError, match="eval_jacobi takes real numbers"):
        special.eval_jacobi(2, 1.0, 1.0, 1j)
    with pytest.raises(errors.OperandError, match="eval_legendre"):
        special.eval_legendre(2, "x")
    assert special.eval_legendre(np.zeros(0, int), np.zeros(0)).shape == (0,)


def test_chebyshevs_polynomials_are_cosines_of_high_degrees() -> None:
    angle = np.linspace(0.1, 3, 50)
    with enable_x64():
        for out in eager_and_compiled(special.eval_chebyt, np.full(50, 200), np.cos(angle)):
            np.testing.assert_allclose(out, np.cos(200 * angle), atol=1e-12)


@pytest.mark.parametrize("name", [name.replace("eval", "roots") for name in PARAMETERS])
def test_quadratures_are_exact(name: str) -> None:
    parameters = PARAMETERS[name.replace("roots", "eval")]
    polynomial = getattr(special, name.replace("roots", "eval"))
    with enable_x64():
        nodes, weights, total = getattr(special, name)(6, *parameters, mu=True)
        # the polynomials of degrees 1 to 5 are orthogonal to that of degree 6, and to the constant
        degrees = np.arange(1, 6)[:, None]
        values = np.asarray(polynomial(degrees, *parameters, nodes))
        size = (abs(values) * np.asarray(weights)).sum(axis=1)
        assert (abs((values * np.asarray(weights)).sum(axis=1)) < 1e-12 * size).all()
        assert abs(np.asarray(polynomial(6, *parameters, nodes))).max() < 1e-9 * abs(values).max()
        assert float(weights.sum()) == pytest.approx(float(total), rel=1e-13)
    assert getattr(special, name)(2, *parameters)[0].dtype == np.float32


def test_quadratures_need_known_numbers() -> None:
    with pytest.raises(errors.ArgumentError, match="roots_legendre: the number of nodes n must be positive, got 0"):
        special.roots_legendre(0)
    with pytest.raises(errors.ConcretizationTypeError, match="roots_jacobi: alpha and beta must be known"):
        pullback.jit(lambda a: special.roots_jacobi(3, a, 0.0)[0])(0.5)
    with pytest.raises(errors.ArgumentError, match="roots_jacobi"):
        special.roots_jacobi(3, -2.0, 0.0)
    with pytest.raises(errors.ArgumentError, match="must be numbers"):
        special.roots_gegenbauer(3, np.ones(2))


def test_legendres_polynomials_integrate_a_function() -> None:
    nodes, weights = special.roots_legendre(20)
    assert float((jnp.exp(nodes) * weights).sum()) == pytest.approx(math.e - 1 / math.e, rel=1e-6)
