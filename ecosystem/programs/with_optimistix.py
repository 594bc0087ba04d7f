"""Optimistix: roots, fixed points, least squares and minima, and their derivatives by the implicit function theorem."""

import json

import jax
import jax.numpy as jnp
import optimistix as optx


def equations(y, args):
    a, b = y
    return a - jnp.tanh(b) - 0.1, b - args * jnp.cos(a)


def rosenbrock(y, args):
    return jnp.array([args * (y[1] - y[0] ** 2), 1 - y[0]])


def model(y, args):
    x, data = args
    return y["scale"] * jnp.exp(-y["rate"] * x) - data


@jax.jit
def root(args):
    return optx.root_find(equations, optx.Newton(rtol=1e-6, atol=1e-6), (jnp.array(0.1), jnp.array(0.2)), args).value


def fit(data):
    solver = optx.LevenbergMarquardt(rtol=1e-6, atol=1e-6)
    start = {"scale": jnp.array(1.0), "rate": jnp.array(1.0)}
    return optx.least_squares(model, solver, start, args=(x, data)).value


x = jnp.linspace(0.0, 2.0, 20)
data = 2.5 * jnp.exp(-1.3 * x) + 0.05 * jax.random.normal(jax.random.key(0), (20,))
dogleg = optx.least_squares(rosenbrock, optx.Dogleg(rtol=1e-6, atol=1e-6), jnp.array([-1.2, 1.0]), args=10.0)
bfgs = optx.minimise(
    lambda y, args: jnp.sum(rosenbrock(y, args) ** 2), optx.BFGS(rtol=1e-6, atol=1e-6), jnp.array([-1.2, 1.0]), args=3.0
)
bisection = optx.root_find(
    lambda y, args: y**3 - args, optx.Bisection(1e-6, 1e-6), 1.0, args=5.0, options={"lower": 0.0, "upper": 3.0}
)
fixed = optx.fixed_point(lambda y, args: jnp.cos(args * y), optx.FixedPointIteration(1e-6, 1e-6), 0.5, args=0.9)
simplex = optx.minimise(lambda y, _: jnp.sum((y - 1) ** 2), optx.NelderMead(1e-6, 1e-6), jnp.zeros(2), max_steps=500)
failed = optx.root_find(lambda y, _: y**2 + 1, optx.Newton(1e-6, 1e-6), 1.0, throw=False, max_steps=20)

figures = {
    "root": [float(leaf) for leaf in root(0.7)],
    "derivative of a root": [float(leaf) for leaf in jax.jacrev(root)(0.7) + jax.jacfwd(root)(0.7)],
    "fit": [float(leaf) for leaf in jax.tree.leaves(fit(data))],
    "gradient of a fit": jax.jit(jax.grad(lambda data: fit(data)["rate"]))(data).tolist(),
    "roots": jax.vmap(lambda a: root(a)[0])(jnp.linspace(0.2, 0.8, 4)).tolist(),
    "minima": dogleg.value.tolist() + bfgs.value.round(3).tolist() + simplex.value.round(3).tolist(),
    "bisection": float(bisection.value),
    "fixed point": float(fixed.value),
    "succeeded": [bool(s.result == optx.RESULTS.successful) for s in (dogleg, bfgs, failed)],
}
print(json.dumps(figures))
