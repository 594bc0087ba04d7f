"""``linalg.matrix_function``: derivatives at every gap of eigenvalues, against polynomials and series of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, hessian, jacfwd, jacrev, jit, jvp, make_jaxpr, vmap
from pullback.control.matrix_function import Scalar, _order, _taylor_coefficients, divided_differences
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.derivatives import taylor
from tests.helpers import assert_close

Function = Callable[..., Any]
RNG = np.random.default_rng(0)
Q = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
U = np.linalg.qr(RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4)))[0]


def hermitian(a: Any) -> Any:
    return (a + jnp.conj(jnp.swapaxes(a, -1, -2))) / 2


def with_gap(gap: float, q: Any = Q) -> Any:
    a = (q * np.array([1.0, 1 + gap, 2, 2 + gap])) @ q.conj().T
    return (a + a.conj().T) / 2


def random_hermitian(imaginary: complex = 0) -> Any:
    x = RNG.normal(size=(4, 4)) + (imaginary * RNG.normal(size=(4, 4)) if imaginary else 0)
    return (x + x.conj().T) / 2


K, D, E, COMPLEX = random_hermitian(), random_hermitian(), random_hermitian(), random_hermitian(1j)


def expm(a: Any) -> Any:
    """By Taylor's series, which is differentiated term by term."""
    term = total = jnp.eye(4)
    for i in range(1, 45):
        term = term @ a / i
        total = total + term
    return total


FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "exp": (jnp.exp, expm),
    "cube": (lambda w: w**3, lambda a: a @ a @ a),
    "polynomial": (lambda w: w**5 - 2 * w**2 + 1, lambda a: a @ a @ a @ a @ a - 2 * a @ a + jnp.eye(4)),
    "inverse": (lambda w: 1 / w, jnp.linalg.inv),
}


close = partial(assert_close, tolerance=2e-14, least=0, dtypes=False)


def pair(name: str) -> tuple[Function, Function]:
    f, same = FUNCTIONS[name]
    of = lambda g: lambda a: jnp.sum(g(hermitian(a)) * K)
    return of(lambda a: jnp.linalg.matrix_function(f, a)), of(same)


@pytest.mark.parametrize("gap", [0, 1e-15, 1e-13, 1e-8, 1e-5, 1e-3, 0.01, 0.03, 0.1, 0.3, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_at_every_gap(name: str, gap: float) -> None:
    f, same = pair(name)
    a = with_gap(gap)
    with enable_x64():
        close(f(a), same(a), tolerance=1e-13)
        close(grad(f)(a), grad(same)(a))
        close(hessian(f)(a), hessian(same)(a))
        third = [jvp(lambda a, g=g: jvp(grad(g), (a,), (D,))[1], (a,), (E,))[1] for g in (f, same)]
        close(*third, tolerance=1e-12)


def test_the_plain_way_loses_its_digits_there() -> None:
    """What the page says of functions of values and vectors."""

    def plain(a: Any) -> Any:
        w, v = jnp.linalg.eigh(a)
        return jnp.sum(((v * jnp.exp(w)) @ v.T) * K)

    f, same = pair("exp")
    a = with_gap(1e-8)
    with enable_x64():
        wanted, found, lost = (np.asarray(hessian(g)(a)) for g in (same, f, plain))
        assert np.abs(found - wanted).max() < 1e-13 < 1e-2 < np.abs(lost - wanted).max()


@pytest.mark.parametrize(
    "second",
    [
        lambda f: jacfwd(jacfwd(f)),
        lambda f: jacrev(jacrev(f)),
        lambda f: jacrev(jacfwd(f)),
        lambda f: jit(hessian(jit(f))),
        lambda f: hessian(lambda a: vmap(f)(jnp.stack([a, a]))[1]),
    ],
    ids=["forward over forward", "reverse over reverse", "reverse over forward", "compiled", "mapped"],
)
def test_every_mode(second: Function) -> None:
    f, same = pair("exp")
    with enable_x64():
        for gap in (0, 1e-8):
            close(second(f)(with_gap(gap)), hessian(same)(with_gap(gap)))


def test_taylor_coefficients_along_a_line() -> None:
    f, same = pair("exp")
    with enable_x64():
        found, wanted = (taylor(lambda t, g=g: g(with_gap(1e-8) + t * D), 0.0, 4) for g in (f, same))
        for a, b in zip(found, wanted, strict=True):
            close(a, b, tolerance=1e-12)


def test_complex_matrices() -> None:
    of = lambda g: lambda a: jnp.sum(g(hermitian(a)) * COMPLEX).real
    f, same = of(lambda a: jnp.linalg.matrix_function(jnp.exp, a)), of(expm)
    with enable_x64():
        for gap in (0, 1e-8, 1.0):
            a = with_gap(gap, U)
            close(grad(f)(a), grad(same)(a))
            for d in (D + 0j, COMPLEX):
                close(jvp(grad(f), (a,), (d,))[1], jvp(grad(same), (a,), (d,))[1])
            square = lambda g: lambda x: jnp.sum(jnp.abs(grad(g)(x)) ** 2)
            close(grad(square(f))(a), grad(square(same))(a), tolerance=1e-13)


def test_a_complex_function_of_real_matrices() -> None:
    of = lambda g: lambda a: jnp.sum(jnp.abs(g(hermitian(a)) - K) ** 2)
    f = of(lambda a: jnp.linalg.matrix_function(lambda w: jnp.exp(1j * w), a))
    same = of(lambda a: expm(1j * a))
    with enable_x64():
        close(grad(f)(with_gap(1e-8)), grad(same)(with_gap(1e-8)))
        close(hessian(f)(with_gap(1e-8)), hessian(same)(with_gap(1e-8)), tolerance=1e-13)


def of_rate(a: Any, c: Any) -> Any:
    return jnp.sum(jnp.linalg.matrix_function(lambda w: jnp.exp(c * w), hermitian(a)) * K)


def same_of_rate(a: Any, c: Any) -> Any:
    return jnp.sum(expm(c * hermitian(a)) * K)


def test_what_the_function_closes_over() -> None:
    a, c = with_gap(1e-8), 0.7
    with enable_x64():
        for i in (0, 1):
            for j in (0, 1):
                wanted = hessian(same_of_rate, (0, 1))(a, c)[i][j]
                for found in (
                    hessian(of_rate, (0, 1))(a, c)[i][j],
                    jit(hessian(of_rate, (0, 1)))(a, c)[i][j],
                ):
                    close(found, wanted, tolerance=1e-13)
                wanted = jacrev(jacrev(same_of_rate, i), j)(a, c)
                close(jacrev(jacrev(of_rate, i), j)(a, c), wanted, tolerance=1e-13)
                close(jacfwd(jacfwd(of_rate, i), j)(a, c), wanted, tolerance=1e-13)


def test_two_arrays_that_the_function_closes_over() -> None:
    """A number and a vector, whose second derivatives by each other are not symmetric in their places."""

    def f(a: Any, c: Any, s: Any) -> Any:
        return jnp.sum(
            jnp.linalg.matrix_function(lambda w: jnp.exp(c * w) * s[0] + s[1] ** 2 * c * w**3, hermitian(a)) * K
        )

    def same(a: Any, c: Any, s: Any) -> Any:
        a = hermitian(a)
        return jnp.sum((expm(c * a) * s[0] + s[1] ** 2 * c * a @ a @ a) * K)

    point = with_gap(1e-8), 0.7, np.array([0.4, 1.3])
    with enable_x64():
        for i in range(3):
            for j in range(3):
                wanted = jacrev(jacrev(same, i), j)(*point)
                for second in (jacrev(jacrev(f, i), j), jacfwd(jacrev(f, i), j), jit(jacrev(jacfwd(f, i), j))):
                    close(second(*point), wanted, tolerance=1e-12)


def test_higher_derivatives_by_what_the_function_closes_over() -> None:
    def third(f: Function) -> Any:
        of_gradients = lambda a, c: grad(lambda a, c: grad(f, 1)(a, c) ** 2 + f(a, c), (0, 1))(a, c)
        return jvp(of_gradients, (with_gap(1e-8), 0.7), (D, 0.3))[1]

    def fourth(f: Function) -> Any:
        mixed = lambda c: grad(lambda a: jvp(lambda c: grad(f, 1)(a, c), (c,), (1.0,))[1])(with_gap(0))
        return grad(lambda c: jnp.sum(mixed(c) * D))(0.7)

    with enable_x64():
        for found, wanted in zip(third(of_rate), third(same_of_rate), strict=True):
            close(found, wanted, tolerance=1e-12)
        close(fourth(of_rate), fourth(same_of_rate), tolerance=1e-12)


DERIVATIVES: dict[str, Function] = {
    "value": of_rate,
    "by the matrix": grad(of_rate),
    "by the rate": grad(of_rate, 1),
    "Hessian": hessian(of_rate),
    "mixed": jacrev(grad(of_rate), 1),
    "mixed the other way": jacfwd(grad(of_rate, 1)),
    "twice by the rate": grad(grad(of_rate, 1), 1),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_batches_are_loops(name: str) -> None:
    f, rates = DERIVATIVES[name], np.array([0.3, 0.7, 1.1])
    with enable_x64():
        matrices = np.stack([with_gap(1e-8), np.diag([1.0, 1, 3, 4]), np.eye(4)])
        loop = lambda pairs: np.stack([np.asarray(f(*p)) for p in pairs])
        close(vmap(f)(matrices, rates), loop(zip(matrices, rates, strict=True)))
        close(vmap(f, (0, None))(matrices, 0.7), loop((a, 0.7) for a in matrices))
        close(vmap(f, (None, 0))(matrices[0], rates), loop((matrices[0], c) for c in rates))
        both = vmap(vmap(f, (None, 0)), (0, None))(matrices, rates)
        close(both[1], loop((matrices[1], c) for c in rates))


def test_a_hessian_decomposes_its_matrix_once() -> None:
    f, _ = pair("exp")
    eqns = make_jaxpr(hessian(f))(np.eye(4)).jaxpr.eqns
    found = {e.invars[1].aval.shape for e in eqns if e.primitive.name == "matrix_function_along"}
    assert found == {(4, 4), (1, 4, 4)}


# Divided differences of second and third order at sorted nodes; the references are mpmath's, of 120 digits.
NODES = {
    "exp(-100 x)": (lambda x: jnp.exp(-100 * x), lambda x, k: (-100) ** k * np.exp(-100 * x)),
    "sin(30 x)": (lambda x: jnp.sin(30 * x), lambda x, k: 30**k * np.sin(30 * x + k * np.pi / 2)),
    "1 / x": (lambda x: 1 / x, lambda x, k: (-1) ** k * [1, 1, 2, 6][k] / x ** (k + 1)),
}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_divided_differences_are_integrals(name: str, k: int) -> None:
    """Of the derivative, over the simplex (Genocchi and Hermite), by Gauss's rule in each direction."""
    f, derivative = NODES[name]
    points, weights = np.polynomial.legendre.leggauss(40)
    points, weights = (points + 1) / 2, weights / 2
    with enable_x64():
        for gap in (0, 1e-15, 1e-12, 1e-8, 1e-5, 1e-3, 0.01, 0.03, 0.1):
            w = np.array([1.0, 1 + gap, 1 + 1.7 * gap, 1.2])
            coefficients = _taylor_coefficients(Scalar(f, name), jnp.asarray(w), (), (), _order(k, w.dtype))
            found = np.asarray(divided_differences(coefficients, jnp.asarray(w), k))
            wanted = np.empty_like(found)
            for index in np.ndindex(found.shape):
                x, weight, rest = w[index[0]], 1.0, 1.0
                for i in range(k):  # t_1 >= t_2 >= ... >= t_k
                    shape = (-1, *(1,) * i)
                    t = rest * points.reshape(shape)
                    x = x + t * (w[index[i + 1]] - w[index[i]])
                    weight, rest = weight * rest * weights.reshape(shape), t
                wanted[index] = np.sum(weight * derivative(x, k))
            close(found, wanted, tolerance=2e-13)


def test_a_kink_between_eigenvalues_is_not_reached_over() -> None:
    with enable_x64():
        w = np.array([-1e-6, 1e-6, 1.0, -1.0])
        a = (Q * w) @ Q.T
        difference = w[:, None] - w[None, :]
        quotient = (np.abs(w)[:, None] - np.abs(w)[None, :]) / np.where(difference == 0, 1, difference)
        quotient = np.where(difference == 0, np.sign(w)[:, None], quotient)
        wanted = Q @ (quotient * (Q.T @ K @ Q)) @ Q.T
        found = grad(lambda a: jnp.sum(jnp.linalg.matrix_function(jnp.abs, a) * K))(a)
        np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_single_precision_and_edges() -> None:
    a = jnp.asarray(with_gap(1e-3), "float32")
    found = hessian(lambda a: jnp.sum(jnp.linalg.matrix_function(jnp.exp, a) * jnp.asarray(K, "float32")))(a)
    assert found.dtype == np.float32
    with enable_x64():
        close(found, hessian(pair("exp")[1])(with_gap(1e-3)), tolerance=2e-5)
    assert jnp.linalg.matrix_function(jnp.exp, jnp.zeros((2, 0, 0))).shape == (2, 0, 0)
    assert np.isnan(jnp.linalg.matrix_function(jnp.exp, jnp.array([[1.0, np.nan], [np.nan, 1]]))).all()
    np.testing.assert_allclose(jnp.linalg.matrix_function(jnp.sqrt, np.array([[4, 0], [0, 9]])), [[2, 0], [0, 3]])


@pytest.mark.parametrize(
    ("f", "a", "error", "message"),
    [
        (2.0, jnp.eye(2), ArgumentError, "f must be a function of a number, got 2.0"),
        (jnp.exp, jnp.ones((2, 3)), ShapeError, r"square .* got shape \(2, 3\)"),
        (jnp.exp, jnp.eye(2, dtype="float16"), DtypeError, "got f16"),
        (lambda x: x * jnp.ones(3), jnp.eye(2), ShapeError, r"must return a number .* got .*float32\[3\]"),
        (lambda x: (x, x), jnp.eye(2), ShapeError, "must return a number"),
        (lambda x: x > 0, jnp.eye(2), DtypeError, "float or complex number .* got bool"),
    ],
)  # fmt: skip
def test_bad_input(f: Any, a: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        jnp.linalg.matrix_function(f, a)
