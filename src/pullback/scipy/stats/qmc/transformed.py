"""Quasi-random points of other distributions: multivariate normal vectors, and counts of categories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import size_of
from pullback.primitives import elementwise as ops
from pullback.primitives.special.error_functions import ndtri_p
from pullback.scipy.arguments import known, real_floats
from pullback.scipy.stats.qmc.engines import QMCEngine, Sobol

__all__ = ["MultinomialQMC", "MultivariateNormalQMC"]

NEGATIVE = -1e-8
"""Eigenvalues of covariances above this count as zero where they are negative, as in SciPy."""


class MultivariateNormalQMC:
    """Quasi-random vectors of a normal distribution.

    Args:
      mean: the mean, a vector of d real numbers, or a number.
      cov: the covariance, a matrix (d, d); the identity by default.
      cov_root: instead of ``cov``, a matrix (d, d) whose transpose times itself is the covariance.
      inv_transform: whether normal numbers are quantiles of uniform ones; otherwise each pair of coordinates is
        computed from two of them (Box and Muller, 1958).
      engine: a :class:`QMCEngine` of dimension d (the next even number if ``inv_transform`` is false); by default a
        scrambled :class:`Sobol`, which needs ``rng``.
      rng: a key, or an int from which one is made.
      seed: another name of ``rng``.

    Raises:
      ShapeError: shapes or dimensions that do not fit (a TypeError and a ValueError).
      ArgumentError: a known covariance that is not symmetric and positive semidefinite, or no key (a ValueError).

    Vectors are differentiable in the mean and the covariance where these are traced as the engine is made. As
    ``scipy.stats.qmc.MultivariateNormalQMC``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import qmc
    >>> engine = qmc.MultivariateNormalQMC(jnp.array([0.0, 5.0]), rng=0)
    >>> print(engine.random(256).mean(0).round(1))
    [0. 5.]
    """

    def __init__(
        self, mean: ArrayLike, cov: ArrayLike | None = None, *, cov_root: ArrayLike | None = None,
        inv_transform: bool = True, engine: QMCEngine | None = None, rng: KeyArray | int | None = None,
        seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        name = "MultivariateNormalQMC"
        self._mean = pnp.atleast_1d(real_floats(name, mean, "mean"))
        if len(self._mean.shape) != 1:
            raise ShapeError(f"{name}: mean must be a vector, got the shape {self._mean.shape}")
        self._d, self._inv_transform = self._mean.shape[0], bool(inv_transform)
        self._root: Any = None
        for what, given in (("cov", cov), ("cov_root", cov_root)):
            if given is None or self._root is not None:
                continue
            matrix = pnp.atleast_2d(real_floats(name, given, what))
            if matrix.shape != (self._d, self._d):
                raise ShapeError(f"{name}: {what} must have the shape {(self._d, self._d)}, got {matrix.shape}")
            self._root = _root_of(name, matrix) if what == "cov" else matrix
        wanted = self._d if inv_transform else self._d + self._d % 2
        self.engine = Sobol(wanted, rng=rng, seed=seed) if engine is None else _checked(name, engine, wanted)

    def random(self, n: int = 1) -> Array:
        """Draw the next vectors.

        Args:
          n: their number.

        Returns:
          An array (n, d) of floats.

        Raises:
          ArgumentError: a number outside the range of the engine (a ValueError).
        """
        dtype = self._mean.dtype if self._root is None else dtypes.result_type(self._mean.dtype, self._root.dtype)
        u = ops.convert_element_type(self.engine.random(n), dtype)
        shrink = 1e-10 if dtype.itemsize == 8 else float(dtypes.finfo(dtype).epsneg)
        if self._inv_transform:
            normal = ndtri_p.bind((1 - shrink) * (u - 0.5) + 0.5)
        else:
            size = pnp.sqrt(-2 * pnp.log(pnp.maximum(u[:, 0::2], shrink)))
            angle = u[:, 1::2] * (2 * math.pi)
            both = pnp.stack([size * pnp.cos(angle), size * pnp.sin(angle)], -1)
            normal = both.reshape(u.shape)[:, : self._d]
        return (normal if self._root is None else normal @ self._root) + self._mean


def _checked(name: str, engine: Any, d: int) -> QMCEngine:
    if not isinstance(engine, QMCEngine):
        raise ArgumentError(f"{name}: engine must be a QMCEngine, got {engine!r}")
    if engine.d != d:
        raise ShapeError(f"{name}: engine must have the dimension {d}, got {engine.d}")
    return engine


def _root_of(name: str, cov: Any) -> Any:
    """Return a matrix whose transpose times itself is ``cov``.

    It is a Cholesky factor, or is computed from eigenvalues if ``cov`` is known to be singular.
    """
    values = known(cov)
    if values is not None and not np.allclose(values, values.T):
        raise ArgumentError(f"{name}: cov must be symmetric, got {values}")
    if values is not None and np.isnan(known(pnp.linalg.cholesky(cov))).any():
        sizes, vectors = pnp.linalg.eigh(cov)
        if not (known(sizes) >= NEGATIVE).all():
            raise ArgumentError(f"{name}: cov must be positive semidefinite, got the eigenvalues {known(sizes)}")
        return (vectors * pnp.sqrt(pnp.maximum(sizes, 0))).T
    return pnp.linalg.cholesky(cov).T


class MultinomialQMC:
    """Quasi-random counts of categories.

    Args:
      pvals: the probabilities of the categories, a vector whose sum is one.
      n_trials: the sum of the counts of a sample.
      engine: a :class:`QMCEngine` of dimension one; by default a scrambled :class:`Sobol`, which needs ``rng``.
      rng: a key, or an int from which one is made.
      seed: another name of ``rng``.

    Raises:
      ShapeError: ``pvals`` that are no vector, or an engine of another dimension (a TypeError and a ValueError).
      ArgumentError: known probabilities that are negative or whose sum is not one, or no key (a ValueError).

    As ``scipy.stats.qmc.MultinomialQMC``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import qmc
    >>> print(qmc.MultinomialQMC(jnp.array([0.25, 0.75]), 64, rng=0).random(1))
    [[16. 48.]]
    """

    def __init__(
        self, pvals: ArrayLike, n_trials: int, *, engine: QMCEngine | None = None, rng: KeyArray | int | None = None,
        seed: KeyArray | int | None = None,
    ) -> None:  # fmt: skip
        name = "MultinomialQMC"
        self.pvals = pnp.atleast_1d(real_floats(name, pvals, "pvals"))
        self.n_trials = size_of(name, "n_trials", n_trials)
        if len(self.pvals.shape) != 1:
            raise ShapeError(f"{name}: pvals must be a vector, got the shape {self.pvals.shape}")
        values = known(self.pvals)
        if values is not None and (values.min(initial=0) < 0 or not np.isclose(values.sum(), 1)):
            raise ArgumentError(f"{name}: pvals must not be negative, and their sum must be one, got {values}")
        self.engine = Sobol(1, rng=rng, seed=seed) if engine is None else _checked(name, engine, 1)

    def random(self, n: int = 1) -> Array:
        """Draw the next samples.

        Args:
          n: their number.

        Returns:
          An array (n, k) of the counts of k categories, as floats.

        Raises:
          ArgumentError: a number outside the range of the engine (a ValueError).
        """
        count = size_of("MultinomialQMC", "n", n)
        drawn = [self.engine.random(self.n_trials)[:, 0] for _ in range(count)]
        u = pnp.stack(drawn) if drawn else pnp.zeros((0, self.n_trials))
        ends = pnp.cumsum(self.pvals)[:-1]
        below = pnp.sum(u[:, None, :] <= ends[:, None], -1).astype(self.pvals.dtype)
        rest = pnp.full((count, 1), self.n_trials, self.pvals.dtype)
        return pnp.diff(below, prepend=0 * rest, append=rest)
