"""Stochastic estimates of traces and diagonals of matrices, from their products with random vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pullback.numpy as pnp
from pullback import random
from pullback.control.scan import scan
from pullback.core.arguments import is_listed, require_function
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.naming import quoted
from pullback.derivatives.products import CurvatureOperator, hessian_operator
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import check_chunk_size

METHODS = ("hutchinson", "hutch++")


class Estimate(NamedTuple):
    """An estimate from random samples, and its standard error.

    Attributes:
      value: the estimate, a mean over the samples.
      standard_error: the standard deviation of ``value``, estimated from the spread of the samples.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import stochastic_trace
    >>> found = stochastic_trace(jnp.diag(jnp.array([1.0, 2.0, 3.0])), random.key(0), 10)
    >>> print(found.value, found.standard_error)
    6.0 0.0
    """

    value: Any
    standard_error: Any


def stochastic_trace(
    a: Any, key: Any, samples: int, *, method: str = "hutchinson", chunk_size: int | None = None
) -> Estimate:
    """Estimate the trace of a matrix from its products with random vectors.

    Args:
      a: a :class:`CurvatureOperator`, or a square matrix, both real and symmetric.
      key: a random key.
      samples: the number of products to compute: at least 2, or 4 for ``"hutch++"``.
      method: ``"hutchinson"`` returns the mean of v^T A v over random vectors v of 1 and -1. ``"hutch++"`` uses a third
        of the products to find a subspace of large eigenvalues, computes the trace on this subspace exactly, and
        estimates the rest. For matrices without negative eigenvalues its error falls with 1 / samples, instead of 1 /
        sqrt(samples).
      chunk_size: the number of vectors in memory at a time; all by default. The result does not depend on it, except
        for rounding.

    Returns:
      An :class:`Estimate` of two scalars. With ``"hutch++"`` the standard error covers only the estimated remainder.

    Raises:
      ArgumentError: ``samples``, ``method`` or ``chunk_size`` is none of the allowed values (a TypeError and
        ValueError).
      ShapeError: ``a`` is not square (a TypeError and ValueError).

    Source: M. F. Hutchinson, A stochastic estimator of the trace of the influence matrix, Communications in Statistics
    19 (1990); R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff, Hutch++: optimal stochastic trace estimation, SOSA
    2021.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import stochastic_trace
    >>> print(stochastic_trace(jnp.diag(jnp.array([1.0, 2.0])), random.key(0), 10))
    Estimate(value=Array(3., dtype=float32), standard_error=Array(0., dtype=float32))
    """
    return _estimate("stochastic_trace", True, a, key, samples, method, chunk_size)


def stochastic_diag(
    a: Any, key: Any, samples: int, *, method: str = "hutchinson", chunk_size: int | None = None
) -> Estimate:
    """Estimate the diagonal of a matrix from its products with random vectors.

    Args:
      a: a :class:`CurvatureOperator`, or a square matrix, both real and symmetric.
      key: a random key.
      samples: the number of products to compute: at least 2, or 4 for ``"hutch++"``.
      method: ``"hutchinson"`` returns the mean of v * A v over random vectors v of 1 and -1. ``"hutch++"`` uses a third
        of the products to find a subspace of large eigenvalues, computes their share of the diagonal exactly, and
        estimates the rest.
      chunk_size: the number of vectors in memory at a time; all by default. The result does not depend on it, except
        for rounding.

    Returns:
      An :class:`Estimate`, whose two entries are trees like the point of the operator, or vectors if ``a`` is a matrix.

    Raises:
      ArgumentError: ``samples``, ``method`` or ``chunk_size`` is none of the allowed values (a TypeError and
        ValueError).
      ShapeError: ``a`` is not square (a TypeError and ValueError).

    Source: C. Bekas, E. Kokiopoulou and Y. Saad, An estimator for the diagonal of a matrix, Applied Numerical
    Mathematics 57 (2007); R. A. Baston and Y. Nakatsukasa, Stochastic diagonal estimation, arXiv:2201.10684 (2022).

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import stochastic_diag
    >>> print(stochastic_diag(jnp.diag(jnp.array([1.0, 2.0])), random.key(0), 10).value)
    [1. 2.]
    """
    found = _estimate("stochastic_diag", False, a, key, samples, method, chunk_size)
    return Estimate(*map(a.vectors.tree, found)) if isinstance(a, CurvatureOperator) else found


def hessian_trace(
    f: Callable[..., Any], *, method: str = "hutchinson", chunk_size: int | None = None
) -> Callable[..., Estimate]:
    """Return a function that estimates the trace of the Hessian of ``f`` from Hessian-vector products.

    Args:
      f: takes a tree of real arrays, and returns a real scalar.
      method: the name of the estimator, as for :func:`stochastic_trace`.
      chunk_size: the number of products at a time, as for :func:`stochastic_trace`.

    Returns:
      A function ``(x, key, samples)`` that returns an :class:`Estimate`: ``x`` is the argument of ``f``, ``key`` a
      random key, and ``samples`` the number of products, a Python integer.

    Raises:
      ArgumentError: ``f`` is no function; from the returned function, ``samples``, ``method`` or ``chunk_size`` is
        none of the allowed values (a TypeError and a ValueError).
      NotDifferentiableError: from the returned function: ``f`` returns no real scalar, or its argument is not real (a
        TypeError).

    Source: see :func:`stochastic_trace`.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import hessian_trace
    >>> print(hessian_trace(lambda x: jnp.sum(x**2))(jnp.ones(3), random.key(0), 10).value)
    6.0
    """
    return _of_hessian("hessian_trace", f, partial(stochastic_trace, method=method, chunk_size=chunk_size))


def hessian_diag(
    f: Callable[..., Any], *, method: str = "hutchinson", chunk_size: int | None = None
) -> Callable[..., Estimate]:
    """Return a function that estimates the diagonal of the Hessian of ``f`` from Hessian-vector products.

    Args:
      f: takes a tree of real arrays, and returns a real scalar.
      method: the name of the estimator, as for :func:`stochastic_diag`.
      chunk_size: the number of products at a time, as for :func:`stochastic_diag`.

    Returns:
      A function ``(x, key, samples)`` that returns an :class:`Estimate` of two trees like ``x``: ``x`` is the argument
      of ``f``, ``key`` a random key, and ``samples`` the number of products, a Python integer.

    Raises:
      ArgumentError: ``f`` is no function; from the returned function, ``samples``, ``method`` or ``chunk_size`` is
        none of the allowed values (a TypeError and a ValueError).
      NotDifferentiableError: from the returned function: ``f`` returns no real scalar, or its argument is not real (a
        TypeError).

    Source: see :func:`stochastic_diag`.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.derivatives import hessian_diag
    >>> print(hessian_diag(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0]), random.key(0), 10).value)
    [ 6. 12.]
    """
    return _of_hessian("hessian_diag", f, partial(stochastic_diag, method=method, chunk_size=chunk_size))


def _of_hessian(name: str, f: Any, estimate: Callable[..., Estimate]) -> Callable[..., Estimate]:
    require_function(name, "f", f)

    @api_boundary
    def estimated(x: Any, key: Any, samples: int) -> Estimate:
        return estimate(hessian_operator(f)(x), key, samples)

    return estimated


def matrix_product(name: str, a: Any) -> tuple[Callable[[Any], Any], int, Any]:
    """Return a function that multiplies ``a`` by a vector, the number of rows of ``a``, and the dtype of ``a``.

    ``a`` is a ``CurvatureOperator`` or a square matrix; otherwise raise an error that names the function ``name``.
    """
    if isinstance(a, CurvatureOperator):
        return a.matvec, a.shape[0], a.dtype
    a = pnp.asarray(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name} takes a CurvatureOperator or a square matrix, got an array of shape {a.shape}")
    return lambda v: a @ v, a.shape[0], a.dtype


def check_count(name: str, what: str, count: Any, least: int) -> int:
    if type(count) is not int or count < least:
        raise ArgumentError(f"{name}: {what} must be a Python integer of at least {least}, got {quoted(count)}")
    return count


def _estimate(name: str, trace: bool, a: Any, key: Any, samples: int, method: str, chunk_size: int | None) -> Estimate:
    if not is_listed(method, METHODS):
        raise ArgumentError(f"{name}: method must be one of {METHODS}, got {quoted(method)}")
    check_count(name, "samples", samples, 2 if method == "hutchinson" else 4)
    check_chunk_size(chunk_size, name)
    product, n, dtype = matrix_product(name, a)

    def of_vector(v: Any, image: Any) -> Any:
        return v @ image if trace else v * image

    if method == "hutchinson":

        def sample(key: Any) -> Any:
            v = random.rademacher(key, (n,), dtype)
            return of_vector(v, product(v))

        return Estimate(*_moments(sample, random.split(key, samples), chunk_size))

    rank = min(samples // 3, n)
    for_space, for_rest = random.split(key)
    draws = random.split(for_space, rank)
    images = _mapped(lambda key: product(random.rademacher(key, (n,), dtype)), draws, chunk_size)
    q = pnp.linalg.qr(images.T)[0]  # n by rank, whose columns span the images
    of_q = _mapped(product, q.T, chunk_size)

    def rest(key: Any) -> Any:
        """Return one random sample of the trace, or of the diagonal, of (1 - Q Q^T) A.

        A is the matrix, and Q the matrix ``q``, whose columns are orthonormal. ``key`` draws a vector of 1 and -1. The
        sample of the trace is computed from (1 - Q Q^T) A (1 - Q Q^T): it has the same trace, and less variance.
        """
        v = random.rademacher(key, (n,), dtype)
        if trace:
            v = v - q @ (q.T @ v)
            return v @ product(v)
        image = product(v)
        return v * (image - q @ (q.T @ image))

    exact = pnp.sum(q.T * of_q, axis=None if trace else 0)
    mean, error = _moments(rest, random.split(for_rest, samples - 2 * rank), chunk_size)
    return Estimate(exact + mean, error)


def _mapped(function: Callable[[Any], Any], rows: Any, chunk_size: int | None) -> Any:
    """Return ``function`` of each row of ``rows``, stacked.

    The function is mapped over ``chunk_size`` rows at a time; over all rows at once if ``chunk_size`` is None.
    """
    size = rows.shape[0]
    if chunk_size is None or chunk_size >= size:
        return vmap(function)(rows)
    whole = size - size % chunk_size
    chunks = rows[:whole].reshape(-1, chunk_size, *rows.shape[1:])
    outs = scan(lambda _, chunk: (None, vmap(function)(chunk)), None, chunks)[1]
    outs = outs.reshape(whole, *outs.shape[2:])
    return outs if whole == size else pnp.concatenate([outs, vmap(function)(rows[whole:])])


def _moments(sample: Callable[[Any], Any], keys: Any, chunk_size: int | None) -> tuple[Any, Any]:
    """Return the mean of ``sample(key)`` over the keys, and the standard error of the mean.

    ``chunk_size`` samples are computed at a time; all if it is None.

    Source: T. F. Chan, G. H. Golub and R. J. LeVeque, Algorithms for computing the sample variance, The American
    Statistician 37 (1983), for combining the sums of squares of two chunks.
    """

    def part(keys: Any) -> tuple[Any, Any]:
        values = vmap(sample)(keys)
        mean = pnp.mean(values, axis=0)
        return mean, pnp.sum((values - mean) ** 2, axis=0)

    def joined(a: Any, size_a: Any, b: Any, size_b: Any) -> tuple[Any, Any]:
        difference, size = b[0] - a[0], size_a + size_b
        return a[0] + difference * (size_b / size), a[1] + b[1] + difference**2 * (size_a * size_b / size)

    count = keys.shape[0]
    step = min(chunk_size or count, count)
    whole = count - count % step
    first = part(keys[:step])

    def more(carry: Any, keys: Any) -> tuple[Any, None]:
        moments, size = carry
        return (joined(moments, size, part(keys), step), size + step), None

    moments, size = first, step
    if whole > step:
        dtype = first[0].dtype
        (moments, _), _ = scan(more, (first, pnp.asarray(step, dtype)), keys[step:whole].reshape(-1, step))
        size = whole
    if whole < count:
        moments = joined(moments, size, part(keys[whole:]), count - whole)
    return moments[0], pnp.sqrt(moments[1] / (count * (count - 1)))
