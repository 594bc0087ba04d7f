"""Densities estimated from samples by Gaussian kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pullback.numpy as pnp
from pullback import random
from pullback.control.scan import map as map_rows
from pullback.core.annotations import PyTree, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError, ImmutableArrayError, ShapeError, UnsupportedArgumentError
from pullback.core.tree import register_pytree_node_class
from pullback.nn.normalized import logsumexp
from pullback.numpy.promotion import inexact_operand, operand
from pullback.scipy import linalg
from pullback.scipy.special import ndtr

Bandwidth = str | ArrayLike | Callable[..., ArrayLike] | None
"""The argument ``bw_method``, the width of kernels."""
_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from samples, by a Gaussian kernel at each.

    Args:
      dataset: an array (d, n) of n samples of d variables, or (n,) of one.
      bw_method: the width of the kernels, relative to the samples: ``"scott"`` (the default), ``"silverman"``, a
        number, or a function of the estimate that returns one.
      weights: an array (n,) of the weights of the samples; equal by default.

    Attributes:
      dataset: the samples, of shape (d, n).
      weights: the weights, whose sum is one.
      neff: the effective number of samples, one divided by the sum of the squares of the weights.
      covariance, inv_cov: the covariance of each kernel, and its inverse, of shape (d, d).
      d, n: the numbers of variables and of samples.

    Raises:
      ArgumentError: fewer than two samples, or an unknown ``bw_method`` (a TypeError and a ValueError).
      ShapeError: weights of another shape than (n,), or samples with more than two axes (a TypeError and a ValueError).
      DtypeError, OperandError: no arrays of real numbers (a TypeError).

    An estimate is a pytree, so that it is differentiated, mapped and passed to compiled functions. Many
    points are evaluated one at a time, without an array of points times samples.

    Source: D. W. Scott, *Multivariate Density Estimation* (1992). As :class:`scipy.stats.gaussian_kde`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import stats
    >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).evaluate(2.0)[0]:.4f}")
    0.2149
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: ArrayLike, bw_method: Bandwidth = None, weights: ArrayLike | None = None) -> None:
        data = pnp.atleast_2d(_real("dataset", dataset))
        if data.ndim != 2:
            raise ShapeError(f"gaussian_kde: the samples must have the shape (d, n) or (n,), got {data.shape}")
        if data.size < 2:
            raise ArgumentError(f"gaussian_kde: there must be at least two samples, got the shape {data.shape}")
        d, n = data.shape
        if weights is None:
            shares = pnp.full((n,), 1 / n, data.dtype)
        else:
            raw = _real("weights", weights).astype(data.dtype)
            if raw.shape != (n,):
                raise ShapeError(
                    f"gaussian_kde: weights must have the shape ({n},), as many as samples, got {raw.shape}"
                )
            shares = raw / pnp.sum(raw)
        self._set("dataset", data)
        self._set("weights", shares)
        self._set("neff", 1 / pnp.sum(shares**2))
        factor = self._factor(bw_method, d)
        covariance = pnp.atleast_2d(pnp.cov(data, rowvar=True, bias=False, aweights=shares))
        self._set("covariance", covariance * factor**2)
        self._set("inv_cov", pnp.linalg.inv(covariance) / factor**2)

    def _factor(self, method: Any, d: int) -> Any:
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.neff ** (-1 / (d + 4))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (d + 2) / 4.0) ** (-1 / (d + 4))
        if callable(method):
            return method(self)
        if (
            not isinstance(method, str)
            and (isinstance(method, Array) or pnp.isscalar(method))
            and pnp.ndim(method) == 0
        ):
            return method
        raise ArgumentError(
            f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got {method!r}"
        )

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ImmutableArrayError(
            f"gaussian_kde: {name} cannot be assigned, because estimates are immutable; make a new one"
        )

    def __repr__(self) -> str:
        return f"gaussian_kde({', '.join(f'{name}={getattr(self, name)!r}' for name in _FIELDS)})"

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], None]:
        """Return the arrays of the estimate, for pytrees.

        Returns:
          A pair: a tuple of arrays, and None.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> len(stats.gaussian_kde(jnp.array([1.0, 2.0])).tree_flatten()[0])
        5
        """
        return tuple(getattr(self, name) for name in _FIELDS), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: PyTree) -> gaussian_kde:
        """Rebuild an estimate from its arrays.

        Args:
          aux: None.
          children: the arrays, as :meth:`tree_flatten` returns them.

        Returns:
          The estimate.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> arrays, aux = stats.gaussian_kde(jnp.array([1.0, 2.0])).tree_flatten()
        >>> stats.gaussian_kde.tree_unflatten(aux, arrays).n
        2
        """
        new = object.__new__(cls)
        for name, value in zip(_FIELDS, children, strict=True):
            new._set(name, value)
        return new

    @property
    def d(self) -> int:
        """The number of variables."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.dataset.shape[1])

    def _factor_of(self, covariance: Any) -> tuple[Any, Any]:
        """Return the Cholesky factor of a covariance, and the log of the normalising constant of its kernel.

        The kernel is the normal density with this covariance.
        """
        factor = pnp.linalg.cholesky(covariance)
        return factor, pnp.sum(pnp.log(pnp.diagonal(factor))) + 0.5 * self.d * math.log(2 * math.pi)

    def _log_terms(self, factor: Any, constant: Any, centres: Any, weights: Any, point: Any) -> Any:
        """Return the logarithm of the weighted sum of the kernels at one point.

        Args:
          factor: the Cholesky factor of the kernels' covariance.
          constant: the log of the normalising constant of a kernel.
          centres, weights: the centres of the kernels, (dimensions, n), and their weights.
          point: the point.
        """
        whitened = linalg.solve_triangular(factor, centres - point[:, None], lower=True)
        return logsumexp(-0.5 * pnp.sum(whitened**2, 0), b=weights) - constant

    def _points(self, points: Any) -> Any:
        x = pnp.atleast_2d(_real("points", points)).astype(self.dataset.dtype)
        if x.ndim != 2:
            raise ShapeError(f"gaussian_kde: points must have the shape ({self.d}, m), got {x.shape}")
        if x.shape[0] != self.d:
            if x.shape[0] != 1 or x.shape[1] != self.d:
                raise ShapeError(
                    f"gaussian_kde: points have {x.shape[0]} variables, but the samples have {self.d}; the first "
                    f"axis must be that of the variables"
                )
            x = x.reshape(self.d, 1)  # one point
        return x

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the estimated density.

        Args:
          x: the points, an array (d, m); or (m,) of one variable, or (d,) of one point.

        Returns:
          An array (m,).

        Raises:
          ShapeError: points of another number of variables (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).logpdf(2.0)[0]:.4f}")
        -1.5376
        """
        points = self._points(x)
        factor, constant = self._factor_of(self.covariance)
        return map_rows(lambda point: self._log_terms(factor, constant, self.dataset, self.weights, point), points.T)

    def evaluate(self, points: ArrayLike) -> Array:
        """The estimated density.

        Args:
          points: an array (d, m); or (m,) of one variable, or (d,) of one point.

        Returns:
          An array (m,).

        Raises:
          ShapeError: points of another number of variables (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).evaluate(2.0)[0]:.4f}")
        0.2149
        """
        return pnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The estimated density, as :meth:`evaluate`.

        Args:
          x: the points, an array (d, m); or (m,) of one variable, or (d,) of one point.

        Returns:
          An array (m,) of floats.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).pdf(2.0)[0]:.4f}")
        0.2149
        """
        return self.evaluate(x)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times the density of a normal distribution.

        Args:
          mean: its mean, an array (d,), or a number where d is 1.
          cov: its covariance, an array (d, d), or a number.

        Returns:
          A number.

        Raises:
          ShapeError: the shapes do not fit (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).integrate_gaussian(0.0, 1.0):.4f}")
        0.1101
        """
        centre = pnp.atleast_1d(pnp.squeeze(_real("mean", mean)))
        spread = pnp.atleast_2d(_real("cov", cov))
        if centre.shape != (self.d,):
            raise ShapeError(f"gaussian_kde: mean must have the shape ({self.d},), got {centre.shape}")
        if spread.shape != (self.d, self.d):
            raise ShapeError(f"gaussian_kde: cov must have the shape ({self.d}, {self.d}), got {spread.shape}")
        factor, constant = self._factor_of(self.covariance + spread)
        return pnp.exp(self._log_terms(factor, constant, self.dataset, self.weights, centre))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of an interval, of one variable.

        Args:
          low: its lower end, a number.
          high: its upper end.

        Returns:
          A number.

        Raises:
          ShapeError: an estimate of several variables, or ends that are no numbers (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).integrate_box_1d(0.0, 3.0):.4f}")
        0.5631
        """
        if self.d != 1:
            raise ShapeError(f"gaussian_kde: integrate_box_1d takes estimates of one variable, this one has {self.d}")
        ends = [_real("an end", end) for end in (low, high)]
        if any(end.ndim for end in ends):
            raise ShapeError(
                f"gaussian_kde: the ends must be scalars, got the shapes {ends[0].shape} and {ends[1].shape}"
            )
        sigma = pnp.sqrt(self.covariance[0, 0])
        below, above = [ndtr((end - self.dataset[0]) / sigma) for end in ends]
        return pnp.sum(self.weights * (above - below))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two estimated densities.

        Args:
          other: the other estimate, of as many variables.

        Returns:
          A number.

        Raises:
          ShapeError: an estimate of another number of variables (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> kde = stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0]))
        >>> print(f"{kde.integrate_kde(kde):.4f}")
        0.1577
        """
        if other.d != self.d:
            raise ShapeError(f"gaussian_kde: the estimates are of {self.d} and {other.d} variables")
        factor, constant = self._factor_of(self.covariance + other.covariance)
        each = map_rows(
            lambda point: self._log_terms(factor, constant, self.dataset, self.weights, point), other.dataset.T
        )
        return pnp.exp(logsumexp(each, b=other.weights))

    def resample(self, key: KeyArray, shape: ShapeLike = ()) -> Array:
        """Samples of the estimated distribution.

        Args:
          key: a random key.
          shape: the shape of the samples.

        Returns:
          An array (d, \\*shape).

        >>> import pullback.numpy as jnp
        >>> from pullback import random
        >>> from pullback.scipy import stats
        >>> print(stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).resample(random.key(0), (5,)).shape)
        (1, 5)
        """
        first, second = random.split(key)
        indices = random.choice(first, self.n, shape=shape, p=self.weights)
        noise = random.multivariate_normal(
            second, pnp.zeros(self.d, self.dataset.dtype), self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, indices] + pnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None) -> Array:
        """The probability of an interval, for one variable; not supported for several.

        Args:
          low_bounds: the lower ends, real numbers.
          high_bounds: the upper ends, real numbers.
          maxpts: not used.

        Returns:
          An array of floats, of the shape to which the ends broadcast.

        Raises:
          UnsupportedArgumentError: an estimate of several variables (a NotImplementedError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import stats
        >>> print(f"{stats.gaussian_kde(jnp.array([1.0, 2.0, 4.0])).integrate_box(0.0, 3.0):.4f}")
        0.5631
        """
        if self.d != 1:
            raise UnsupportedArgumentError(
                f"gaussian_kde: integrate_box takes estimates of one variable, this one has {self.d}; use resample "
                f"and count"
            )
        return self.integrate_box_1d(
            pnp.squeeze(operand("low_bounds", low_bounds)), pnp.squeeze(operand("high_bounds", high_bounds))
        )

    def set_bandwidth(self, bw_method: Bandwidth = None) -> None:
        """Raise, since estimates are immutable: make another with that bandwidth.

        Args:
          bw_method: see the class.

        Raises:
          UnsupportedArgumentError: always (a NotImplementedError).
        """
        raise UnsupportedArgumentError(
            f"gaussian_kde: the bandwidth cannot be changed, because estimates are immutable; write "
            f"gaussian_kde(kde.dataset, bw_method={bw_method!r}, weights=kde.weights)"
        )


def _real(what: str, x: Any) -> Any:
    return inexact_operand(f"gaussian_kde, {what}", x)
