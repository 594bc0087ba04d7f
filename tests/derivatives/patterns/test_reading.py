"""Reading some elements of a program's result: against all of them, and that no others are computed."""

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import debug, lax, make_jaxpr
from pullback.derivatives import sparse_jacobian
from pullback.derivatives.patterns.reading import read

X = np.array([0.7, -1.2, 0.4, 1.9, -0.3], np.float32)
SEEDS = np.array([[1, 0, 0, 2, 0], [0, 3, 0, 0, 0], [0, 0, 1, 0, 4]], np.float32)
OTHERS = np.array([[0, 0, 5, 1, 0], [0, 2, 0, 0, 7], [1, 0, 0, 0, 0]], np.float32)

PROGRAMS = {
    "products": lambda x: SEEDS * pnp.cos(x) / (2 + x),
    "factors that are broadcast": lambda x: (SEEDS * x) * pnp.array([[2.0], [0.0], [1.0]], np.float32),
    "a sum of parts": lambda x: SEEDS * x + OTHERS * x**2,
    "a difference": lambda x: SEEDS * x - OTHERS * pnp.sin(x),
    "a difference from a constant": lambda x: OTHERS - SEEDS * x,
    "a sum with what is not zero anywhere": lambda x: SEEDS * x + pnp.exp(x),
    "a number": lambda x: SEEDS * pnp.sum(x),
    "a value that is read twice": lambda x: (lambda y: y[:, 1:] * 2 - y[:, :-1])(SEEDS * x),
    "a quotient": lambda x: SEEDS / x + x / (1 + OTHERS),
    "a quotient by zeros": lambda x: pnp.exp(x) / SEEDS,
    "moves": lambda x: pnp.flip((SEEDS * x).T[1:4], 0).reshape(3, 3) * 2,
    "joined": lambda x: pnp.concatenate([SEEDS * x, pnp.ones((2, 5), np.float32), -(OTHERS * x)]),
    "stacked": lambda x: pnp.stack([SEEDS * x, OTHERS * x], axis=1),
    "padded with zeros": lambda x: pnp.pad(SEEDS * x, ((0, 1), (2, 1))),
    "padded with ones": lambda x: pnp.pad(SEEDS * x, 1, constant_values=1.0),
    "padded by less than nothing": lambda x: lax.pad(SEEDS * x, np.float32(0), ((-1, 0, 0), (1, -2, 1))),
    "cases": lambda x: pnp.where(x > 0, SEEDS * x, OTHERS),
    "not linear": lambda x: pnp.exp(SEEDS * x) * pnp.maximum(OTHERS * x, 0.5),
    "sums at places": lambda x: pnp.zeros((3, 4), np.float32).at[:, [0, 2, 3, 3, 1]].add(OTHERS * x),
    "sums at places of something": lambda x: pnp.cumsum(OTHERS, 1).at[:, [4, 0, 4, 2, 9]].add(SEEDS * x, mode="drop"),
    "sums at places that depend on values": lambda x: pnp.zeros(9).at[pnp.argsort(x)].add(x),
    "reduced": lambda x: pnp.cumsum(SEEDS * x, axis=0) * x,
    "a scan": lambda x: lax.scan(lambda c, s: (c + s, c * s), x, SEEDS * x)[1] * SEEDS,
    "nothing": lambda x: 0 * SEEDS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements_are_those_of_the_whole(name):
    program = make_jaxpr(PROGRAMS[name])(X)
    whole = np.ravel(np.asarray(PROGRAMS[name](pnp.asarray(X))))
    rng = np.random.default_rng(0)
    for count in (1, 4, len(whole), 2 * len(whole)):
        places = rng.integers(0, len(whole), count)
        np.testing.assert_allclose(read(program, [pnp.asarray(X)], places), whole[places], rtol=1e-6)
    for places in (np.arange(len(whole)), rng.permutation(len(whole)), np.flatnonzero(whole)):
        np.testing.assert_allclose(read(program, [pnp.asarray(X)], places), whole[places], rtol=1e-6)


def test_programs_of_many_operations():
    def many(x):
        y = SEEDS * x
        for _ in range(400):
            y = y * 1.01
        return y

    places = np.array([14, 3, 0, 1])
    found = read(make_jaxpr(many)(X), [pnp.asarray(X)], places)
    np.testing.assert_allclose(found, np.ravel(many(X))[places], rtol=1e-4)


def equations(jacobian, x):
    jacobian(x)
    return make_jaxpr(lambda y: jacobian(y).data)(x).eqns


def test_only_elements_that_are_read_are_computed():
    x = np.linspace(1, 2, 50, dtype=np.float32)
    stencil = sparse_jacobian(lambda y: pnp.sin(y[1:-1]) * y[:-2] - y[2:] ** 2)
    sizes = [v.aval.size for eqn in equations(stencil, x) for v in eqn.outvars]
    assert max(sizes) == 3 * 48  # all elements, once they are side by side
    assert sum(n == 3 * 48 for n in sizes) <= 2
    assert not any(eqn.primitive.name in ("gather", "scatter") for eqn in equations(stencil, x))


def test_constant_elements_are_not_computed():
    x = np.linspace(1, 2, 50, dtype=np.float32)
    heat = sparse_jacobian(lambda u: u[:-2] - 2 * u[1:-1] + u[2:] + pnp.sin(u[1:-1]))
    names = [eqn.primitive.name for eqn in equations(heat, x)]
    assert names.count("scatter") == 1  # of the diagonal into a constant
    assert all(v.aval.size <= 50 for eqn in equations(heat, x) if eqn.primitive.name != "scatter" for v in eqn.outvars)


def test_values_beside_the_zeros_of_colours_stay_away():
    """A factor that is infinite where another column has its element does not come in by way of 0 * inf."""
    f = lambda x: pnp.concatenate([x[:1] * x[1:2], pnp.log(x[1:]) * x[:-1]])
    x = np.array([1.0, 2.0, 0.0, 4.0], np.float32)
    found = np.asarray(sparse_jacobian(f)(x).todense())
    expected = [[2, 1, 0, 0], [np.log(2), 0.5, 0, 0], [0, -np.inf, np.inf, 0], [0, 0, np.log(4), 0]]
    np.testing.assert_allclose(found, np.array(expected, np.float32), rtol=1e-6)


def test_effects_are_kept():
    said = []

    def f(x):
        debug.callback(lambda y: said.append(np.asarray(y)), x[0])
        return x[1:] * x[:-1]

    np.testing.assert_allclose(sparse_jacobian(f)(X).todense(), _bidiagonal(X))
    assert said


def _bidiagonal(x):
    dense = np.zeros((len(x) - 1, len(x)), np.float32)
    at = np.arange(len(x) - 1)
    dense[at, at], dense[at, at + 1] = x[1:], x[:-1]
    return dense
