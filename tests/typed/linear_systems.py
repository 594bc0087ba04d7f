"""Linear systems: decompositions, iterative methods, and sparse matrices."""

import pullback
import pullback.numpy as jnp
import pullback.scipy.linalg as jsl
from pullback import Array, lax
from pullback.experimental import sparse
from pullback.scipy.sparse.linalg import cg, gmres


def laplacian(x: Array) -> Array:
    return 2.1 * x - jnp.roll(x, 1) - jnp.roll(x, -1)


def energy(b: Array) -> Array:
    x, _ = cg(laplacian, b, tol=1e-6, maxiter=50)
    return b @ x


def in_parts(b: dict[str, Array]) -> dict[str, Array]:
    x, _ = gmres(lambda v: {name: laplacian(part) for name, part in v.items()}, b)
    return x


def mistaken(b: Array) -> Array:
    return cg(3.0, b)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def main() -> None:
    b = jnp.arange(1.0, 6.0)
    dense = pullback.jacobian(laplacian)(b)
    q, r = jnp.linalg.qr(dense)
    values, vectors = jnp.linalg.eigh(dense)
    u, s, vh = jnp.linalg.svd(dense)
    only = jnp.linalg.svd(dense, compute_uv=False)
    lu = jsl.lu_factor(dense)
    assert jnp.allclose(jsl.lu_solve(lu, b), jnp.linalg.solve(dense, b), atol=1e-3)
    assert jnp.allclose(q @ r, u @ jnp.diag(s) @ vh, atol=1e-3)
    factor = jsl.cho_factor(dense, lower=True)
    eigenvalues = jsl.eigh(dense, eigvals_only=True)
    print(jsl.cho_solve(factor, b).shape, vectors.shape, eigenvalues.shape, only.shape, values.min() > 0)
    matrix = sparse.BCOO.fromdense(dense)
    product = matrix @ b
    assert jnp.allclose(product, dense @ b, atol=1e-4)
    solved, _ = cg(matrix, b)
    own = lax.custom_linear_solve(laplacian, b, lambda f, y: cg(f, y)[0], symmetric=True)
    print(matrix.todense().shape, matrix.nse, jnp.allclose(solved, own, atol=1e-3), pullback.grad(energy)(b).shape)
    print(sorted(in_parts({"a": b, "b": 2 * b})), jnp.linalg.slogdet(dense).sign, jnp.linalg.lstsq(dense, b)[0].shape)
