"""Functions of functions that close over positions: derivative rules run after the trace of the positions ended."""

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import grad, jit, lax, vmap
from pullback.experimental.sparse import BCOO
from pullback.scipy import integrate, linalg, optimize
from pullback.scipy.sparse import linalg as sparse

X, AT = jnp.array([1.0, 2.0, 3.0]), jnp.array([2, 0, 1])
ONES = jnp.ones(3)


def root(x, at):
    halved = lambda f, start: lax.fori_loop(0, 20, lambda _, y: y - f(y) / (2 * y), start)
    return lax.custom_root(lambda y: y**2 - x[at][0], 1.0, halved, lambda f, y: y / f(1.0))


FUNCTIONS = {
    "custom_root": root,
    "custom_linear_solve": lambda x, at: sparse.cg(lambda v: v * x[at], ONES)[0][0],
    "spsolve": lambda x, at: sparse.spsolve(BCOO((x, jnp.stack([at, at], -1)), shape=(3, 3)), ONES)[1],
    "lsmr": lambda x, at: sparse.lsmr(BCOO((x, jnp.stack([at, at], -1)), shape=(3, 3)), ONES)[0][1],
    "minimize": lambda x, at: optimize.minimize(lambda p: ((p - x[at]) ** 2).sum(), jnp.zeros(3), method="BFGS").x[0],
    "least_squares": lambda x, at: optimize.least_squares(lambda p: p - x[at], jnp.zeros(3)).x[0],
    "root": lambda x, at: optimize.root(lambda p: p**3 - x[at], ONES).x[0],
    "brentq": lambda x, at: optimize.brentq(lambda p: p**3 - x[at[0]], 0.0, 4.0),
    "fixed_point": lambda x, at: optimize.fixed_point(lambda p: jnp.cos(p) * x[at] / 4, ONES)[0],
    "quad": lambda x, at: integrate.quad(lambda t: t * x[at[0]], 0.0, 1.0)[0],
    "cubature": lambda x, at: integrate.cubature(lambda t: t.sum(-1) * x[at[0]], jnp.zeros(2), jnp.ones(2)).estimate,
    "solve_ivp": lambda x, at: integrate.solve_ivp(lambda t, y: -y * x[at], (0.0, 1.0), ONES).y[0, -1],
    "solve_symplectic": lambda x, at: integrate.solve_symplectic(
        lambda t, y: -y * x[at], (0.0, 1.0), ONES, ONES, steps=10
    ).q[0, -1],
    "funm": lambda x, at: linalg.funm(jnp.diag(ONES), lambda e: e * x[at[0]])[0, 0].real,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_function_is_differentiated_outside(name) -> None:
    f = FUNCTIONS[name]
    expected = np.asarray(grad(f)(X, AT))
    assert np.abs(expected[2]) > 0.01
    assert not expected[:2].any()
    near = lambda found: np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)
    near(grad(jit(f))(X, AT))
    near(jit(grad(f))(X, AT))
    near(vmap(grad(jit(f)))(jnp.stack([X, X + 1]), jnp.stack([AT, AT]))[0])
