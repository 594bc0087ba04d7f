"""Products with second derivatives, against the dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

import pullback.numpy as jnp
from pullback import errors, grad, hessian, jacfwd, jit, jvp, nn, tree, vmap
from pullback.derivatives import empirical_fisher, fisher, gauss_newton, hessian_operator, hvp
from pullback.flatten_util import ravel_pytree
from pullback.scipy.sparse.linalg import cg, minres
from tests.helpers import assert_close, random

pytestmark = pytest.mark.usefixtures("all_in_x64")

POINT = {"w": random(4, 3), "b": random(4)}
INPUTS, TARGETS = random(5, 3), random(5, 4)


def model(params: Any, x: Any = INPUTS) -> Any:
    return jnp.tanh(x @ jnp.transpose(params["w"]) + params["b"])


def loss(out: Any) -> Any:
    return jnp.sum(jnp.cosh(out - TARGETS))


def dense(f: Any, point: Any) -> np.ndarray:
    flat, unravel = ravel_pytree(point)
    return np.asarray(hessian(lambda v: f(unravel(v)))(flat))


def gauss_newton_matrix(out_loss: Any) -> np.ndarray:
    flat, unravel = ravel_pytree(POINT)
    j = np.asarray(jacfwd(lambda v: model(unravel(v)).ravel())(flat))
    c = np.asarray(hessian(lambda y: out_loss(y.reshape(5, 4)))(model(POINT).ravel()))
    return j.T @ c @ j


def matrix_of(a: Any) -> np.ndarray:
    return np.asarray(a @ np.eye(a.shape[0]))


def test_hvp_is_the_product_with_the_hessian() -> None:
    f = lambda p: loss(model(p))
    v = tree.map(lambda x: jnp.asarray(random(*x.shape)), POINT)
    expected = dense(f, POINT) @ ravel_pytree(v)[0]
    got = hvp(f, (POINT,), (v,))
    assert tree.structure(got) == tree.structure(POINT)
    assert_close(ravel_pytree(got)[0], expected)
    assert_close(ravel_pytree(jit(lambda p, v: hvp(f, (p,), (v,)))(POINT, v))[0], expected)


def test_hvp_of_several_arguments_has_a_part_for_each() -> None:
    f = lambda a, b: jnp.sum(jnp.sin(a) * b**3)
    x, v = (jnp.asarray(random(2)), jnp.asarray(random(2) + 3)), (jnp.ones(2), jnp.asarray([2.0, 0.0]))
    (aa, ab), (ba, bb) = hessian(f, (0, 1))(*x)
    assert_close(hvp(f, x, v), (aa @ v[0] + ab @ v[1], ba @ v[0] + bb @ v[1]))


def test_hvp_refuses_what_does_not_fit() -> None:
    with pytest.raises(errors.ArgumentError, match="hvp takes primals as a tuple or list, one entry"):
        hvp(jnp.sum, jnp.ones(2), jnp.ones(2))
    with pytest.raises(errors.TangentMismatchError, match="argument 0"):
        hvp(jnp.sum, (jnp.ones(2),), (jnp.ones(3),))
    with pytest.raises(errors.NotDifferentiableError, match="shape \\(2,\\)"):
        hvp(jnp.sin, (jnp.ones(2),), (jnp.ones(2),))


def test_operators_are_the_dense_matrices() -> None:
    assert_close(matrix_of(hessian_operator(lambda p: loss(model(p)))(POINT)), dense(lambda p: loss(model(p)), POINT))
    assert_close(matrix_of(gauss_newton(model, loss)(POINT)), gauss_newton_matrix(loss))


FAMILIES = {
    "normal": lambda z: jnp.sum(z**2) / 2,
    "bernoulli": lambda z: jnp.sum(jnp.log(1 + jnp.exp(z))),
    "categorical": lambda z: jnp.sum(jnp.log(jnp.sum(jnp.exp(z), -1))),
    "poisson": lambda z: jnp.sum(jnp.exp(z)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_fisher_is_the_expected_outer_product_of_scores(family: str) -> None:
    assert_close(matrix_of(fisher(model, family)(POINT)), gauss_newton_matrix(FAMILIES[family]))


def test_fisher_of_bernoulli_by_enumeration() -> None:
    x = random(3, 2)
    w = random(2)
    logits = x @ w
    expected = np.zeros((2, 2))
    for i in range(3):
        for outcome in (0.0, 1.0):
            log_p = lambda w, i=i, outcome=outcome: -nn.softplus((1 - 2 * outcome) * (jnp.asarray(x[i]) @ w))
            score = np.asarray(grad(log_p)(jnp.asarray(w)))
            expected += float(jnp.exp(log_p(jnp.asarray(w)))) * np.outer(score, score)
    assert logits.shape == (3,)
    assert_close(matrix_of(fisher(lambda w: jnp.asarray(x) @ w, "bernoulli")(jnp.asarray(w))), expected)


@pytest.mark.parametrize("centred", [False, True])
def test_empirical_fisher_is_the_mean_outer_product_of_scores(centred: bool) -> None:
    log_p = lambda p, x, y: -jnp.sum((model(p, x) - y) ** 2)
    flat, unravel = ravel_pytree(POINT)
    scores = np.asarray(vmap(grad(lambda v, x, y: log_p(unravel(v), x, y)), (None, 0, 0))(flat, INPUTS, TARGETS))
    scores = scores - scores.mean(0) * centred
    assert_close(matrix_of(empirical_fisher(log_p, centred)(POINT, INPUTS, TARGETS)), scores.T @ scores / 5)


def test_operators_take_trees_and_coordinates() -> None:
    a = gauss_newton(model, loss)(POINT)
    v = tree.map(lambda x: jnp.asarray(random(*x.shape)), POINT)
    flat = ravel_pytree(v)[0]
    assert_close(ravel_pytree(a @ v)[0], a @ flat)
    assert_close(a @ np.asarray(flat), a @ flat)
    assert_close(a.matmat(jnp.stack([flat, 2 * flat], 1)), jnp.stack([a @ flat, 2 * (a @ flat)], 1))
    with pytest.raises(errors.ShapeError, match=r"coordinates of shape \(16,\) or \(16, k\), got .* shape \(3,\)"):
        a @ jnp.ones(3)


def test_operators_fit_conjugate_gradients_of_ours_and_of_scipy() -> None:
    a = gauss_newton(model, lambda y: jnp.sum(y**2))(POINT)
    right = np.asarray(a @ random(16))
    expected = np.linalg.lstsq(matrix_of(a), right, rcond=None)[0]
    ours = cg(a, a.vectors.tree(jnp.asarray(right)), tol=1e-12)[0]
    assert_close(a @ ravel_pytree(ours)[0], right, 1e-7)
    theirs, failed = scipy.sparse.linalg.cg(a, right, rtol=1e-12)
    assert not failed
    assert_close(matrix_of(a) @ theirs, right, 1e-7)
    assert expected.shape == theirs.shape
    indefinite = hessian_operator(lambda x: x[0] ** 2 - x[1] ** 2)(jnp.ones(2))
    assert_close(minres(indefinite, jnp.ones(2))[0], jnp.asarray([0.5, -0.5]), 1e-6)
    values = scipy.sparse.linalg.eigsh(a, 3)[0]
    assert_close(values, np.linalg.eigvalsh(matrix_of(a))[-3:], 1e-8)


def test_operators_are_trees_that_transformations_take() -> None:
    a = gauss_newton(model, loss)(POINT)
    v = jnp.asarray(random(16))
    assert_close(jit(lambda a, v: a @ v)(a, v), a @ v)
    assert_close(jvp(lambda v: a @ v, (v,), (v,))[1], a @ v)
    assert_close(vmap(lambda v: a @ v)(jnp.stack([v, -v])), jnp.stack([a @ v, -(a @ v)]))
    assert tree.map(lambda _: None, a) is not None
    assert repr(tree.map(lambda x: x, a)) == repr(a)


def test_an_operator_evaluates_the_model_once() -> None:
    calls = []

    def counted(params: Any) -> Any:
        calls.append(1)
        return model(params)

    a = gauss_newton(counted, loss)(POINT)
    for _ in range(3):
        a @ jnp.ones(16)
    assert len(calls) == 1


def test_derivatives_through_an_operator() -> None:
    product = lambda x: gauss_newton(jnp.sin, lambda y: jnp.sum(y**2) / 2)(x) @ jnp.ones(3)
    x = jnp.asarray(random(3))
    assert_close(product(x), jnp.cos(x) ** 2)
    assert_close(jacfwd(product)(x), jnp.diag(-jnp.sin(2 * x)))
    assert_close(grad(lambda x: product(x).sum())(x), -jnp.sin(2 * x))


def test_operators_refuse_what_does_not_fit() -> None:
    with pytest.raises(errors.NotDifferentiableError, match="hessian_operator needs real inputs, but argument 0"):
        hessian_operator(lambda z: jnp.abs(z) ** 2)(1j)
    with pytest.raises(errors.NotDifferentiableError, match="gauss_newton needs real or complex inputs"):
        gauss_newton(lambda x: x, jnp.sum)(jnp.arange(2))
    with pytest.raises(errors.ArgumentError, match="family must be one of \\['bernoulli', 'categorical'"):
        fisher(model, "gamma")
    with pytest.raises(errors.ArgumentError, match="argnums must be an int"):
        hessian_operator(model, (0, 1))  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="has no arrays"):
        hessian_operator(model)({})
    with pytest.raises(errors.NotDifferentiableError, match="one scalar for each example"):
        empirical_fisher(lambda p, x: x * p)(1.0, jnp.ones((3, 2)))
