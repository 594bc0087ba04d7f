"""Minkowski's distances, and superimposed sets of points."""

from __future__ import annotations

import math
from typing import Any

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from pullback.numpy.promotion import promote_all
from pullback.primitives import elementwise as ops
from pullback.primitives.reductions import reduce_max, reduce_sum
from pullback.scipy.arguments import known, real_floats

__all__ = ["distance_matrix", "minkowski_distance", "minkowski_distance_p", "procrustes"]


def order_of(name: str, p: Any, least: float = 1.0) -> float:
    """Return the order of a norm as a number, or raise; it is static, since 1, 2 and infinity are special."""
    try:
        value = float(p)
    except (TypeError, ValueError, OperandError) as error:
        raise ArgumentError(f"{name}: p must be a number that is not traced, got {p!r}") from error
    if not (value >= least and value > 0):
        raise ArgumentError(f"{name}: p must be at least {least:g}, got {p!r}")
    return value


def root(x: Any, p: float = 2.0) -> Any:
    """Return the p-th root of numbers that are not negative; where they are zero, with derivatives of zero."""
    zero = ops.eq_p.bind(x, 0.0)
    safe = pnp.where(zero, 1.0, x)
    return pnp.where(zero, 0.0, pnp.sqrt(safe) if p == 2 else safe ** (1.0 / p))


def power(x: Any, p: float) -> Any:
    """Return the absolute values of ``x`` to the power ``p``, with derivatives of zero where ``x`` is zero."""
    if p == 2:
        return ops.square(x)
    if p == 1:
        return abs(x)
    zero = ops.eq_p.bind(x, 0.0)
    return pnp.where(zero, 0.0, abs(pnp.where(zero, 1.0, x)) ** p)


def minkowski_lengths(x: Any, p: float, powers: bool = False) -> Any:
    """Return the norms of order ``p`` along the last axis, or their powers; with derivatives of zero at zero."""
    axis = len(x.shape) - 1
    if math.isinf(p):
        return reduce_max(abs(x), (axis,)) if x.shape[axis] else pnp.zeros(x.shape[:-1], x.dtype)
    total = reduce_sum(power(x, p), (axis,))
    return total if powers or p == 1 else root(total, p)


def _pairs(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    x, y = promote_all(name, (real_floats(name, x, "the points"), real_floats(name, y, "the points")))
    if not x.shape or not y.shape or x.shape[-1] != y.shape[-1]:
        raise ShapeError(f"{name}: points must have equally many coordinates, got shapes {x.shape} and {y.shape}")
    return x, y


def minkowski_distance_p(x: ArrayLike, y: ArrayLike, p: float = 2.0) -> Array:
    """Return Minkowski's distances to the power ``p``, without the root.

    Args:
      x, y: points, (..., n), which broadcast against each other.
      p: the order, at least 1 and not traced; may be infinity, for the largest difference itself.

    Returns:
      An array without the last axis.

    Raises:
      ShapeError: points with different numbers of coordinates (a TypeError and a ValueError).
      ArgumentError: ``p`` is below 1 (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial import minkowski_distance_p
    >>> print(minkowski_distance_p(jnp.zeros(2), jnp.array([3.0, 4.0])))
    25.0
    """
    a, b = _pairs("minkowski_distance_p", x, y)
    return minkowski_lengths(b - a, order_of("minkowski_distance_p", p), powers=True)  # type: ignore[no-any-return]


def minkowski_distance(x: ArrayLike, y: ArrayLike, p: float = 2.0) -> Array:
    """Return Minkowski's distances; a distance of zero has the derivative zero.

    Args:
      x, y: points, (..., n), which broadcast against each other.
      p: the order, at least 1 and not traced; may be infinity.

    Returns:
      An array without the last axis.

    Raises:
      ShapeError: points with different numbers of coordinates (a TypeError and a ValueError).
      ArgumentError: ``p`` is below 1 (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial import minkowski_distance
    >>> print(minkowski_distance(jnp.zeros(2), jnp.array([3.0, 4.0])))
    5.0
    """
    a, b = _pairs("minkowski_distance", x, y)
    return minkowski_lengths(b - a, order_of("minkowski_distance", p))  # type: ignore[no-any-return]


def distance_matrix(x: ArrayLike, y: ArrayLike, p: float = 2.0, threshold: int = 1000000) -> Array:
    """Return the distances between all points of two sets; a distance of zero has the derivative zero.

    Args:
      x: the first points, (m, n).
      y: the second points, (k, n).
      p: the order of Minkowski's distance, at least 1 and not traced; may be infinity.
      threshold: accepted for compatibility.

    Returns:
      An array (m, k).

    Raises:
      ShapeError: no sets of points, or with different numbers of coordinates (a TypeError and a ValueError).
      ArgumentError: ``p`` is below 1 (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial import distance_matrix
    >>> print(distance_matrix(jnp.zeros((1, 2)), jnp.array([[3.0, 4.0], [0.0, 1.0]])))
    [[5. 1.]]
    """
    a, b = _pairs("distance_matrix", x, y)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ShapeError(f"distance_matrix: x and y must be sets of points, (m, n), got shapes {a.shape} and {b.shape}")
    return minkowski_lengths(b[None] - a[:, None], order_of("distance_matrix", p))  # type: ignore[no-any-return]


def procrustes(data1: ArrayLike, data2: ArrayLike) -> tuple[Array, Array, Array]:
    """Move, scale and rotate a set of points so that it is nearest to another one, of as many points.

    Args:
      data1: the points, (m, n), which are only centred, and divided by the root of the sum of their squares.
      data2: the points that are superimposed on them, (m, n).

    Returns:
      The first points, the second points, and the sum of the squares of their differences.

    Raises:
      ShapeError: sets of points that are empty or of different shapes (a TypeError and a ValueError).
      ArgumentError: all points of a set are equal (a TypeError and a ValueError).

    Source: Gower 1975, "Generalized Procrustes analysis".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial import procrustes
    >>> triangle = jnp.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> print(procrustes(triangle, 3 * triangle[:, ::-1] + 1)[2].round(4))
    0.0
    """
    name = "procrustes"
    pair = promote_all(name, tuple(real_floats(name, x, "the points") for x in (data1, data2)))
    if pair[0].shape != pair[1].shape or len(pair[0].shape) != 2 or not pair[0].size:
        raise ShapeError(f"{name}: two sets of points (m, n) must have one shape, got {pair[0].shape}, {pair[1].shape}")
    normed = []
    for x in pair:
        centred = x - pnp.mean(x, axis=0)
        norm = pnp.linalg.norm(centred)
        if known(norm) is not None and known(norm) == 0:
            raise ArgumentError(f"{name}: the points of a set must not be all equal")
        normed.append(centred / norm)
    first, second = normed
    u, w, vt = pnp.linalg.svd(pnp.matmul(first.T, second))
    turned = pnp.matmul(second, pnp.matmul(u, vt).T) * pnp.sum(w)
    return first, turned, pnp.sum(ops.square(first - turned))
