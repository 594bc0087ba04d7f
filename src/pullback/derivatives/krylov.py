"""Lanczos' method: spectra of symmetric matrices from matrix-vector products."""

from __future__ import annotations

from typing import Any, NamedTuple

import pullback.numpy as pnp
from pullback import random
from pullback.control.conditional import cond
from pullback.control.scan import scan
from pullback.core.errors import ArgumentError
from pullback.core.naming import quoted
from pullback.derivatives.estimates import Estimate, check_count, matrix_product
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import api_boundary


class Tridiagonal(NamedTuple):
    """The result of Lanczos' method for a matrix A: a tridiagonal matrix T and orthonormal vectors Q, with A Q ≈ Q T.

    Attributes:
      alphas: the diagonal of T, of shape ``(steps,)``.
      betas: the off-diagonal of T, followed by the norm of the residual; of shape ``(steps,)``.
      basis: Q^T, with orthonormal rows; of shape ``(steps, n)``.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import lanczos
    >>> found = lanczos(jnp.diag(jnp.array([1.0, 2.0, 4.0])), jnp.ones(3), 3)
    >>> print(found.alphas.shape, found.basis.shape, found.ritz()[0].round(3))
    (3,) (3, 3) [1. 2. 4.]
    """

    alphas: Any
    betas: Any
    basis: Any

    def ritz(self) -> tuple[Any, Any, Any]:
        """Return the Ritz values, in ascending order; the Ritz vectors, as rows; and error bounds of the values.

        Ritz values and vectors approximate eigenvalues and eigenvectors. Each bound is an upper bound of the distance
        of a Ritz value from the nearest eigenvalue.
        """
        values, vectors = _eigh(self.alphas, self.betas)
        return values, vectors.T @ self.basis, pnp.abs(self.betas[-1] * vectors[-1])


def _eigh(alphas: Any, betas: Any) -> tuple[Any, Any]:
    beside = pnp.diag(betas[:-1], 1)
    return pnp.linalg.eigh(pnp.diag(alphas) + beside + beside.T)


@api_boundary
def lanczos(a: Any, start: Any, steps: int) -> Tridiagonal:
    """Run Lanczos' method: compute a tridiagonal matrix whose eigenvalues approximate those of a symmetric matrix.

    The largest and the smallest eigenvalues converge first. Each new vector is orthogonalized twice against all others,
    so that no spurious copies of eigenvalues appear. If the vectors span an invariant subspace, a random one follows.

    Args:
      a: a :class:`CurvatureOperator`, or a square matrix, both real and symmetric.
      start: the first vector, not zero; or a random key, for a random vector.
      steps: the number of products, at most the number of rows of the matrix. ``steps`` vectors are stored.

    Returns:
      A :class:`Tridiagonal`; its method ``ritz()`` returns approximate eigenvalues, eigenvectors and error bounds.

    Raises:
      ArgumentError: ``steps`` is not a Python integer from 1 to the number of rows (a TypeError and ValueError).
      ShapeError: ``a`` is not square (a TypeError and ValueError).

    Source: G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., sections 10.1 and 10.3.

    >>> import pullback.numpy as jnp
    >>> from pullback.derivatives import lanczos
    >>> values, vectors, errors = lanczos(jnp.diag(jnp.array([1.0, 2.0, 4.0])), jnp.ones(3), 3).ritz()
    >>> print(jnp.round(values, 4))
    [1. 2. 4.]
    """
    product, n, dtype = matrix_product("lanczos", a)
    check_count("lanczos", "steps", steps, 1)
    if steps > n:
        raise ArgumentError(f"lanczos: steps must be at most {n}, the number of rows of {quoted(a)}, got {steps}")
    first = _first(start, n, dtype)
    tiny = 10 * float(pnp.finfo(dtype).eps)
    restarts = random.key(0)  # any vector outside of the span will do: drawn by a fixed key

    def orthogonal(w: Any, basis: Any) -> Any:
        for _ in range(2):
            w = w - basis.T @ (basis @ w)
        return w

    def step(carry: Any, i: Any) -> tuple[Any, Any]:
        basis, q, scale = carry
        basis = basis.at[i].set(q)
        image = product(q)
        alpha = q @ image
        w = orthogonal(image, basis)
        beta = pnp.linalg.norm(w)
        scale = pnp.maximum(scale, pnp.maximum(pnp.abs(alpha), beta))
        ended = beta <= tiny * scale

        def fresh(w: Any) -> Any:
            other = orthogonal(random.normal(random.fold_in(restarts, i), (n,), dtype), basis)
            size = pnp.linalg.norm(other)
            return other / pnp.where(size > 0, size, 1)  # zero after n steps

        following = cond(ended, fresh, lambda w: w / beta, w)
        return (basis, following, scale), (alpha, pnp.where(ended, 0, beta))

    init = pnp.zeros((steps, n), dtype), first, pnp.zeros((), dtype)
    (basis, _, _), (alphas, betas) = scan(step, init, pnp.arange(steps))
    return Tridiagonal(alphas, betas, basis)


def _first(start: Any, n: int, dtype: Any) -> Any:
    """Return the first vector for Lanczos' method: ``start`` divided by its norm, an array of ``dtype``.

    If ``start`` is a random key, return a random vector of ``n`` elements and norm 1.
    """
    v = pnp.asarray(start)
    if not pnp.issubdtype(v.dtype, pnp.inexact):
        v = random.normal(start, (n,), dtype)
    elif v.shape != (n,):
        raise ArgumentError(f"lanczos: start must be a vector of shape ({n},) or a random key, got {quoted(start)}")
    return v.astype(dtype) / pnp.linalg.norm(v.astype(dtype))


class Spectrum(NamedTuple):
    """The density of the eigenvalues of a matrix, as weighted nodes: one such approximation for each random sample.

    Attributes:
      nodes: the positions on the real line; of shape ``(samples, steps)``.
      weights: the fraction of the eigenvalues at each node; of the same shape. The weights of each sample sum to 1.
      size: the number of eigenvalues.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import spectrum
    >>> found = spectrum(jnp.diag(jnp.array([1.0, 2.0, 4.0])), random.key(0), steps=3, samples=2)
    >>> print(found.nodes.shape, jnp.sum(found.weights, 1).round(4), f"{found.trace(jnp.log).value:.4f}")
    (2, 3) [1. 1.] 2.0794
    """

    nodes: Any
    weights: Any
    size: int

    def trace(self, function: Any) -> Estimate:
        """Estimate the trace of ``function(A)``, the sum of the function over the eigenvalues of the matrix A.

        For ``jnp.log`` this is the logarithm of the determinant.

        Args:
          function: takes an array of eigenvalues, and returns an array with the function of each.
        """
        sums = self.size * pnp.sum(self.weights * function(self.nodes), axis=1)
        return Estimate(pnp.mean(sums), pnp.std(sums, ddof=1) / sums.shape[0] ** 0.5)


@api_boundary
def spectrum(a: Any, key: Any, steps: int, samples: int = 2) -> Spectrum:
    """Estimate the density of the eigenvalues of a matrix, by Lanczos' method from random vectors.

    Args:
      a: a :class:`CurvatureOperator`, or a square matrix, both real and symmetric.
      key: a random key.
      steps: the number of products for each random vector, at most the number of rows of the matrix.
      samples: the number of random vectors, at least 2.

    Returns:
      A :class:`Spectrum`. For each random vector v of norm 1, the weighted sum of p(nodes) is v^T p(A) v exactly, for
      polynomials p up to degree ``2 * steps - 1``.

    Raises:
      ArgumentError: ``steps`` or ``samples`` is not a Python integer in this range (a TypeError and ValueError).

    Source: S. Ubaru, J. Chen and Y. Saad, Fast estimation of tr(f(A)) via stochastic Lanczos quadrature, SIAM Journal
    on Matrix Analysis and Applications 38 (2017).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import spectrum
    >>> found = spectrum(jnp.diag(jnp.array([1.0, 1.0, 4.0])), random.key(0), 2)
    >>> print(jnp.round(found.nodes, 3))
    [[1. 4.]
     [1. 4.]]
    """
    _, n, dtype = matrix_product("spectrum", a)
    check_count("spectrum", "samples", samples, 2)

    def sample(key: Any) -> tuple[Any, Any]:
        found = lanczos(a, random.rademacher(key, (n,), dtype), steps)
        values, vectors = _eigh(found.alphas, found.betas)
        return values, vectors[0] ** 2

    nodes, weights = vmap(sample)(random.split(key, samples))
    return Spectrum(nodes, weights, n)
