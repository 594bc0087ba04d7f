"""Lineax: linear solves by several methods, with operators that are Jacobians, tagged or structured; derivatives."""

import json

import jax
import jax.numpy as jnp
import lineax as lx

keys = jax.random.split(jax.random.key(0), 4)
matrix = jax.random.normal(keys[0], (5, 5)) + 4 * jnp.eye(5)
tall = jax.random.normal(keys[1], (7, 3))
vector = jax.random.normal(keys[2], (5,))
long = jax.random.normal(keys[3], (7,))
positive = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)


def residual(y, args):
    return jnp.tanh(y) + 2.0 * y + args * jnp.roll(y, 1) ** 2


@jax.jit
def newton_step(y, args):
    jacobian = lx.JacobianLinearOperator(residual, y, args)
    return y - lx.linear_solve(jacobian, residual(y, args), lx.GMRES(rtol=1e-6, atol=1e-6)).value


def least_squares(tall, long):
    return lx.linear_solve(lx.MatrixLinearOperator(tall), long, lx.QR()).value


def quadratic(matrix, vector):
    operator = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
    solution = lx.linear_solve(operator, vector, lx.CG(rtol=1e-6, atol=1e-6)).value
    return vector @ solution


tridiagonal = lx.TridiagonalLinearOperator(jnp.full(5, 4.0), jnp.full(4, -1.0), jnp.full(4, -1.5))
tree = lx.FunctionLinearOperator(lambda t: {"a": 2 * t["a"], "b": t["a"].sum() + 3 * t["b"]}, {"a": vector, "b": 1.0})
minimal = lx.linear_solve(lx.MatrixLinearOperator(tall.T), vector[:3], lx.SVD())
singular = lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((3, 3))), vector[:3], lx.LU(), throw=False)
value, tangent = jax.jvp(least_squares, (tall, long), (tall + 1.0, long))

figures = {
    "LU": jax.jit(lambda a, b: lx.linear_solve(lx.MatrixLinearOperator(a), b).value)(matrix, vector).tolist(),
    "Cholesky": lx.linear_solve(positive, vector, lx.Cholesky()).value.tolist(),
    "CG": lx.linear_solve(positive, vector, lx.CG(rtol=1e-6, atol=1e-6)).value.tolist(),
    "Newton": newton_step(newton_step(vector, 0.3), 0.3).tolist(),
    "least squares": value.tolist() + tangent.tolist(),
    "gradient": jax.grad(lambda a, b: least_squares(a, b).sum())(tall, long).ravel().tolist(),
    "gradient of CG": jax.grad(quadratic)(matrix, vector)[0].tolist(),
    "tridiagonal": jax.vmap(lambda b: lx.linear_solve(tridiagonal, b).value)(matrix)[1].tolist(),
    "tree": lx.linear_solve(tree, {"a": vector, "b": 1.0}, lx.GMRES(rtol=1e-6, atol=1e-6)).value["a"].tolist(),
    "minimal norm": minimal.value.tolist(),
    "succeeded": [bool(s.result == lx.RESULTS.successful) for s in (minimal, singular)],
}
print(json.dumps(figures))
