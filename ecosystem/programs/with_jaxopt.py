"""JAXopt: minimisers with and without constraints, a root, and derivatives by the implicit function theorem.

derivative on the simplex: to 1e-3, because the linear solve stops at a residual of 1e-5.
descent: to 1e-3, because the derivative is by such a solve, at a point that is accurate to 1e-6.
"""

import json

import jax
import jax.numpy as jnp
import jaxopt
from jaxopt import projection

keys = jax.random.split(jax.random.key(0), 2)
x = jax.random.normal(keys[0], (30, 4))
y = x @ jnp.array([1.0, -2.0, 0.0, 0.5]) + 0.1 * jax.random.normal(keys[1], (30,))


def ridge(w, penalty):
    return jnp.mean((x @ w - y) ** 2) + penalty * jnp.sum(w**2)


def logistic(w, penalty):
    return jnp.mean(jax.nn.softplus(-jnp.sign(y) * (x @ w))) + penalty * jnp.sum(w**2)


@jaxopt.implicit_diff.custom_root(jax.grad(ridge))
def closed_form(start, penalty):
    return jnp.linalg.solve(x.T @ x / 30 + penalty * jnp.eye(4), x.T @ y / 30)


@jax.jit
def best(penalty):
    return jaxopt.LBFGS(logistic, maxiter=100, tol=1e-6).run(jnp.zeros(4), penalty).params


def simplex(penalty):
    solver = jaxopt.ProjectedGradient(ridge, projection.projection_simplex, maxiter=500, tol=1e-6)
    return solver.run(jnp.full(4, 0.25), 1.0, penalty).params


lasso = jaxopt.ProximalGradient(lambda w: ridge(w, 0.0), jaxopt.prox.prox_lasso, maxiter=300, tol=1e-6)
newton = jaxopt.GaussNewton(lambda w: jnp.tanh(x @ w) - jnp.tanh(y), maxiter=20, tol=1e-5)
bisection = jaxopt.Bisection(lambda t, a: t**3 - a, 0.0, 3.0, check_bracket=False)
descent = jaxopt.GradientDescent(ridge, maxiter=200, tol=1e-6)
quadratic = jaxopt.OSQP(tol=1e-5).run(
    params_obj=(jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, 1.0])),
    params_eq=(jnp.array([[1.0, 1.0]]), jnp.array([1.0])), params_ineq=(-jnp.eye(2), jnp.zeros(2)),
)  # fmt: skip
figures = {
    "LBFGS": best(0.05).tolist(),
    "derivative": jax.jacrev(best)(0.05).tolist(),
    "closed form": jax.jacrev(closed_form, argnums=1)(None, 0.1).tolist(),
    "simplex": simplex(0.1).tolist(),
    "derivative on the simplex": jax.jacrev(simplex)(0.1).tolist(),
    "lasso": lasso.run(jnp.zeros(4), 0.3).params.tolist(),
    "Gauss-Newton": newton.run(jnp.array([0.8, -1.5, 0.1, 0.3])).params.tolist(),
    "roots": jax.vmap(lambda a: bisection.run(1.0, a).params)(jnp.array([2.0, 5.0, 8.0])).tolist(),
    "descent": jax.grad(lambda p: descent.run(jnp.zeros(4), p).params.sum())(0.1).tolist(),
    "quadratic": quadratic.params.primal.tolist(),
    "projection": projection.projection_l1_ball(jnp.array([1.0, -2.0, 0.5]), 1.5).tolist(),
}
print(json.dumps(figures))
