"""The forward Laplacian, against the trace of the Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    errors,
    grad,
    hessian,
    jacfwd,
    jit,
    jvp,
    lax,
    make_jaxpr,
    nn,
    vmap,
)
from pullback.derivatives import forward_laplacian, jet, laplacian
from pullback.extend import Primitive
from pullback.primitives.power_series import sum_of_products_p
from tests.helpers import assert_close, random
from tests.random_programs import Program, programs

pytestmark = pytest.mark.usefixtures("all_in_x64")

A = random(6, 6)
LAYERS = [random(6, 8) / 3, random(8, 8) / 3, random(8, 1) / 3]
LOOP_WEIGHTS = random(3, 6, 6) / 3
X = random(6)


def expected(f: Callable[..., Any], x: Any, weights: Any = 1.0) -> Any:
    """The sum of the unmixed second derivatives, of real and imaginary parts apart."""
    size = np.size(x)

    def along(part: Callable[[Any], Any]) -> Any:
        h = jnp.asarray(hessian(lambda v: part(jnp.asarray(f(v.reshape(np.shape(x))))))(jnp.ravel(x)))
        h = jnp.diagonal(h.reshape(-1, size, size), axis1=1, axis2=2)
        return (h * jnp.ravel(jnp.broadcast_to(weights, np.shape(x)))).sum(-1)

    out = jnp.asarray(f(jnp.asarray(x)))
    found = along(jnp.real) if out.dtype.kind == "f" else along(jnp.real) + 1j * along(jnp.imag)
    return found.reshape(out.shape)


def network(x: Any) -> Any:
    for w in LAYERS[:-1]:
        x = jnp.tanh(x @ w)
    return (x @ LAYERS[-1])[0]


@custom_jvp
def sine(x: Any) -> Any:
    return jnp.sin(x)


sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0]))


@custom_vjp
def cosine(x: Any) -> Any:
    return jnp.cos(x)


cosine.defvjp(lambda x: (cosine(x), x), lambda x, ct: (-jnp.sin(x) * ct,))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "network": network,
    "compiled network": jit(network),
    "checkpointed": checkpoint(network),
    "quadratic": lambda x: x @ A @ x,
    "quotient": lambda x: jnp.sum(x[:3] / x[3:]),
    "power": lambda x: jnp.sum(jnp.abs(x[:3]) ** x[3:]),
    "vector": lambda x: jnp.sin(x) * x[::-1],
    "operands that move together": lambda x: jnp.arctan2(x, x**2 * x[::-1]).sum() + jnp.sum(jnp.abs(x) ** x),
    "logsumexp": lambda x: nn.logsumexp(x) * x,
    "chosen": lambda x: jnp.max(x) * jnp.where(x > 0, x**3, jnp.sort(x)),
    "inner gradient": lambda x: jnp.sum(grad(lambda y: jnp.sum(jnp.sin(y) * y[::-1]))(x) ** 2),
    "inner tangent": lambda x: jvp(jnp.sin, (x,), (x,))[1].sum(),
    "inner map": lambda x: jnp.sum(vmap(lambda a, b: jnp.sin(a * b))(x[:3], x[3:]) ** 2),
    "inner program": lambda x: jit(lambda y, z: (y * z, jnp.sin(z)))(x, 2.0)[0].sum() * x[0],
    "rule of forward mode": lambda x: jnp.prod(sine(x)),
    "rule of reverse mode": lambda x: jnp.prod(cosine(x)),
    "scan": lambda x: lax.scan(lambda c, y: (jnp.sin(c * y) + c, c * y), x[0], x[1:])[0],
    "layers in a scan": lambda x: lax.scan(lambda h, w: (jnp.tanh(h @ w), h**2), x, LOOP_WEIGHTS)[1],
    "elements in reverse": lambda x: lax.scan(lambda c, y: (c * y, jnp.sin(y) * c), 1.0, x, reverse=True)[1],
    "growing carries": lambda x: lax.scan(lambda c, y: ((c[1], c[0] * y, c[2] + 1), c[2]), (1.0, 2.0, 0), x)[0][0],
    "a scan in a scan": lambda x: lax.scan(
        lambda c, w: (lax.scan(lambda d, y: (jnp.sin(d * y), d), c[0], c)[1] + w @ c, None), x, LOOP_WEIGHTS
    )[0],
    "for": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x + c, x).sum(),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * c[1]), (0, x))[1].sum(),
    "branch": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x).sum() ** 2,
    "determinant": lambda x: jnp.linalg.slogdet(A + jnp.outer(x, x))[1],
    "solution": lambda x: jnp.sum(jnp.linalg.solve(A + jnp.diag(x), x)),
    "eigenvalue": lambda x: jnp.linalg.eigvalsh(A + A.T + jnp.diag(x))[0],
    "complex": lambda x: jnp.abs(jnp.exp(1j * x) @ A @ jnp.exp(x)) ** 2,
    "complex result": lambda x: jnp.exp(1j * x[0] * x),
    "constant": lambda x: 3.0,
    "identity": lambda x: x,
    "gathered": lambda x: x[jnp.array([0, 0, 2])] ** 3,
    "of a sum": lambda x: jnp.sum(jnp.sin(x)) ** 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_laplacian_is_the_trace_of_the_hessian(name: str) -> None:
    f = FUNCTIONS[name]
    assert_close(laplacian(f)(X), expected(f, X))


@pytest.mark.parametrize("name", ["network", "compiled network", "scan", "while", "solution", "complex result"])
def test_compiled(name: str) -> None:
    f = FUNCTIONS[name]
    assert_close(jit(laplacian(f))(X), expected(f, X))


@pytest.mark.parametrize("name", ["network", "layers in a scan", "elements in reverse", "a scan in a scan", "while"])
def test_weighted(name: str) -> None:
    weights = jnp.asarray([1.0, -2.0, 0.5, 0.0, 3.0, 1.0])
    assert_close(laplacian(FUNCTIONS[name], weights=weights)(X), expected(FUNCTIONS[name], X, weights))


@settings(max_examples=40)
@given(programs())
def test_of_random_programs(p: Program) -> None:
    args = p.arguments()
    whole = [jnp.zeros_like(out) for out in p(*args)]
    for i, x in enumerate(args):  # with blocks
        h = hessian(p, i)(*args)
        expected_by_x = [jnp.trace(y.reshape(-1, x.size, x.size), axis1=1, axis2=2) for y in h]
        got = laplacian(p, i)(*args)
        for k, y in enumerate(expected_by_x):
            assert_close(got[k], y.reshape(got[k].shape), 1e-8)
            whole[k] = whole[k] + got[k]
    assert_close(laplacian(p, argnums=tuple(range(len(args))))(*args), whole, 1e-8)


# Blocks --------------------------------------------------------------------------------------------------------------

ELECTRONS = random(4, 3)
W, V = random(3, 5), random(5, 2)

BLOCKWISE: dict[str, Callable[[Any], Any]] = {
    "each by itself": lambda r: jnp.tanh(jnp.tanh(r @ W) @ V),
    "distances from a point": lambda r: jnp.exp(-jnp.linalg.norm(r, axis=-1)),
    "features and their mean": lambda r: jnp.tanh((h := jnp.sin(r @ W)) + jnp.mean(h, 0)) @ V,
    "a sum of terms": lambda r: jnp.sum(jnp.tanh(r @ W)),
    "pairs": lambda r: jnp.sum(jnp.exp(-jnp.sum((r[:, None] - r[None]) ** 2, -1))),
    "a determinant": lambda r: jnp.linalg.det(jnp.tanh(jnp.tanh(r @ W) @ random(5, 4))),
    "attention": lambda r: nn.softmax((h := jnp.tanh(r @ W)) @ h.T) @ h,
    "transposed": lambda r: jnp.sin((jnp.sin(r).T * jnp.arange(1.0, 5)).reshape(3, 4, 1)),
    "concatenated": lambda r: jnp.concatenate([r, jnp.sin(r), jnp.ones((4, 1))], 1) ** 2,
    "mapped": lambda r: vmap(lambda x: jnp.sin(x) * x[0] ** 2)(r),
    "broadcast against more": lambda r: jnp.sin(r) * jnp.cos(r)[:, None],
    "compiled": lambda r: jnp.sum(jit(lambda r: jnp.tanh(r @ W))(r) ** 2, 0),
    "one row": lambda r: jnp.sin(r[:1] * 2.0) * jnp.arange(8.0).reshape(8, 1),
    "contracted with itself": lambda r: jnp.einsum("ij,ij->i", jnp.sin(r), r),
}


@pytest.mark.parametrize("name", BLOCKWISE)
def test_blocks_of_jacobians(name: str) -> None:
    f = BLOCKWISE[name]
    weights = random(4, 1)
    assert_close(laplacian(f)(ELECTRONS), expected(f, ELECTRONS))
    assert_close(laplacian(f, weights=weights)(ELECTRONS), expected(f, ELECTRONS, weights))
    assert_close(forward_laplacian(f)(ELECTRONS)[:2], (jnp.asarray(f(ELECTRONS)), jacfwd(f)(jnp.asarray(ELECTRONS))))


def test_programs_are_told_apart_by_the_derivatives_of_their_operands() -> None:
    product = jit(lambda a, b: jnp.sin(a) * b)
    c = random(4, 3)
    f = lambda r: (product(r, c), product(c, r), product(r.T, c.T), product(c + jnp.sum(r), c))
    for got, part in zip(laplacian(f)(ELECTRONS), range(4), strict=True):
        assert_close(got, expected(lambda r, k=part: f(r)[k], ELECTRONS))


def largest(f: Callable[[Any], Any], x: Any) -> int:
    """The number of elements of the largest value in the program of a Laplacian."""
    return max(v.aval.size for e in make_jaxpr(laplacian(f))(x).jaxpr.eqns for v in e.outvars)


def test_blocks_are_all_that_is_stored() -> None:
    r = jnp.asarray(random(10, 3))
    separate = lambda r: jnp.sum(jnp.tanh(jnp.tanh(r @ W) @ V), 1)
    assert largest(separate, r) == 3 * 10 * 5
    assert largest(jit(separate), r) < 3 * 10 * 5  # of what goes in and comes out of the program
    assert largest(lambda r: separate(r - jnp.mean(r, 0)), r) == 30 * 10 * 5


def test_a_value_that_is_not_finite_stays_in_its_block() -> None:
    f = lambda r: jnp.sqrt(jnp.sum(r**2, 1)) + 0 * jnp.sum(r, 0)[0]
    r = jnp.asarray(random(3, 2)).at[1].set(0.0)
    got = np.asarray(laplacian(f)(r))
    assert np.isfinite(got[[0, 2]]).all()
    assert not np.isfinite(got[1])


# Options and results --------------------------------------------------------------------------------------------------


def test_value_jacobian_and_laplacian_in_trees() -> None:
    f = lambda p, s: {"y": jnp.sin(p["a"]) * jnp.sum(p["b"]) ** 2 * s, "n": 3}
    point = {"a": jnp.asarray(random(2)), "b": jnp.asarray(random(2, 2))}
    value, jacobian, second = forward_laplacian(f)(point, 2.0)
    assert_close(value["y"], f(point, 2.0)["y"])
    assert_close(jacobian["y"], jacfwd(lambda p: f(p, 2.0)["y"])(point))
    parts = hessian(lambda p: f(p, 2.0)["y"])(point)
    trace = jnp.trace(parts["a"]["a"], axis1=1, axis2=2)
    assert_close(second["y"], trace + parts["b"]["b"].reshape(2, 4, 4).trace(axis1=1, axis2=2))
    assert int(value["n"]) == 3
    weighted = laplacian(f, weights={"a": 2.0, "b": jnp.asarray([[1.0], [0.0]])})(point, 2.0)["y"]
    assert_close(weighted, 2 * trace + parts["b"]["b"][:, 0][:, :, 0].trace(axis1=1, axis2=2))
    assert_close(laplacian(f, argnums=(0, 1))(point, 2.0)["y"], second["y"])
    wave = laplacian(lambda x: jnp.sin(x[0] - x[1]), weights=jnp.asarray([1.0, -1.0]))
    assert_close(wave(jnp.asarray([0.3, 0.9])), jnp.asarray(0.0))


def test_the_function_runs_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return jnp.sum(x**3)

    laplacian(f)(jnp.ones(5))
    assert len(calls) == 1


def test_values_may_be_looked_at() -> None:
    f = lambda x: jnp.sum(x**2) if x[0] > 0 and float(lax.stop_gradient(x[1])) > 0 else jnp.sum(x**3)
    assert_close(laplacian(f)(jnp.ones(2)), jnp.asarray(4.0))
    assert_close(laplacian(f)(-jnp.ones(2)), jnp.asarray(-12.0))


def test_of_no_numbers() -> None:
    assert_close(laplacian(lambda x: jnp.sum(x**2) + 1.0)(jnp.zeros(0)), jnp.asarray(0.0))


def test_refusals() -> None:
    with pytest.raises(errors.NotDifferentiableError, match=r"laplacian needs real inputs, but .* of type c128"):
        laplacian(jnp.abs)(1j)
    with pytest.raises(errors.NotDifferentiableError, match=r"argument 0 .* is i64"):
        laplacian(jnp.sum)(jnp.arange(2))
    with pytest.raises(errors.TangentMismatchError, match="weights must be real and broadcast to the argument"):
        laplacian(jnp.sum, weights=jnp.ones(3))(jnp.ones(2))
    with pytest.raises(errors.ArgumentError, match="weights must be a prefix"):
        laplacian(jnp.sum, weights={"a": 1.0})(jnp.ones(2))


def test_an_operation_without_a_derivative_is_named_with_its_line() -> None:
    odd = Primitive("odd_one")
    odd.host(lambda x: x)

    def inside(x: Any) -> Any:
        return odd.bind(x)

    with pytest.raises(errors.MissingRuleError, match=r"'odd_one' has no jvp rule.*test_laplacians\.py:\d+ \(inside\)"):
        laplacian(inside)(1.0)


# Constants beside what moves ------------------------------------------------------------------------------------------

AFFINE: dict[str, Callable[[Any], Any]] = {
    "set": lambda x: x.at[0].set(5.0),
    "add": lambda x: x.at[0].add(5.0),
    "a constant that is written to": lambda x: jnp.ones(8).at[1:7].set(x),
    "a constant that is added to": lambda x: jnp.ones(8).at[1:7].add(x),
    "a block": lambda x: lax.dynamic_update_slice(x, jnp.full(2, 5.0), (3,)),
    "a diagonal": lambda x: jnp.fill_diagonal(jnp.outer(x, x), 2.0, inplace=False),
    "filled": lambda x: x.at[jnp.array([0, 2, 7])].get(mode="fill", fill_value=0.25),
    "padded": lambda x: jnp.pad(x, 1, constant_values=3.0),
    "selected": lambda x: jnp.where(x > 0, x, 3.0),
    "through integers": lambda x: x * (3 * x).astype(int),
}


@pytest.mark.parametrize("name", AFFINE)
def test_of_what_is_affine(name: str) -> None:
    """An operation that is linear in several operands together is linear in one where the others are zero."""
    f = lambda x: jnp.sum(AFFINE[name](x) ** 3)
    found = forward_laplacian(f)(X)
    assert_close(found.laplacian, jnp.trace(hessian(f)(X)))
    assert_close(found.jacobian, grad(f)(X))
    assert_close(jit(laplacian(f))(X), found.laplacian)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_of_nothing(shape: tuple[int, ...]) -> None:
    x = jnp.zeros(shape)
    for f in (jnp.sin, jnp.sum, lambda x: jnp.ones(3), lambda x: x @ jnp.ones((shape[-1], 4))):
        for found in (forward_laplacian(f)(x), forward_laplacian(f, weights=jnp.ones(shape))(x)):
            assert_close(found.value, f(x))
            assert_close(found.jacobian, jacfwd(f)(x))
            assert_close(found.laplacian, jnp.zeros_like(f(x)))


def test_of_a_product_within_a_coefficient() -> None:
    """Sums of products, which Taylor mode makes, are linear in one factor of each product."""
    f = lambda x: jet(lambda x, y: x * y + jnp.sin(x), (x[0], x[1]), ([x[2], x[0]], [x[1], x[2]]))[1][1]
    assert_close(laplacian(f)(X), jnp.trace(hessian(f)(X)))
    g = lambda x: sum_of_products_p.bind(x[0], x[1], x[2], jnp.asarray(3.0), scale=2.0)
    assert_close(laplacian(g)(X), jnp.trace(hessian(g)(X)))
    h = lambda x: g(jnp.stack([x[0], jnp.asarray(2.0), x[1]])) ** 2
    assert_close(laplacian(h)(X), jnp.trace(hessian(h)(X)))


def test_of_a_solution_whose_solver_closes_over_what_moves():
    """A solver that the user gives may close over the matrix; derivatives do not look into it."""

    def f(x):
        a, b = x.reshape(2, 2) + 3 * jnp.eye(2), jnp.ones(2) * x[0]
        inverse = lambda transposed: lambda product, b: jnp.linalg.solve(a.T if transposed else a, b)
        return jnp.sum(jnp.sin(lax.custom_linear_solve(lambda v: a @ v, b, inverse(False), inverse(True))))

    x = jnp.arange(4.0) / 10
    expected = jnp.trace(hessian(f)(x))
    np.testing.assert_allclose(laplacian(f)(x), expected, rtol=1e-5)
    np.testing.assert_allclose(jit(laplacian(f))(x), expected, rtol=1e-5)
