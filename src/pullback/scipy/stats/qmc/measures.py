"""How evenly points fill the unit cube, with derivatives by the points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.fori_loop import fori_loop
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, as_array
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.interrupts import imported
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import known, on_host, real_floats
from pullback.scipy.spatial.distance import pdist

__all__ = ["discrepancy", "geometric_discrepancy", "scale", "update_discrepancy"]

METHODS = ("CD", "WD", "MD", "L2-star")


def _points(name: str, sample: ArrayLike, what: str = "sample") -> Array:
    x = real_floats(name, sample, what)
    if len(x.shape) != 2:
        raise ShapeError(f"{name}: {what} must have the shape (n, d), got {x.shape}")
    return x


def _check_unit(name: str, x: Any, what: str = "sample") -> None:
    values = known(x)
    if values is not None and values.size and not ((values >= 0) & (values <= 1)).all():
        raise ArgumentError(
            f"{name}: {what} must be in the unit cube, got numbers from {values.min()} to {values.max()}"
        )


def scale(sample: ArrayLike, l_bounds: ArrayLike, u_bounds: ArrayLike, *, reverse: bool = False) -> Array:
    """Move points of the unit cube to a box, or back.

    Args:
      sample: the points, an array (n, d) of real numbers.
      l_bounds, u_bounds: the ends of the coordinates, numbers or arrays (d,); the lower ones are below the upper ones.
      reverse: whether to move points of the box to the unit cube.

    Returns:
      An array (n, d) of floats, differentiable in all arguments.

    Raises:
      ShapeError: shapes that do not fit (a TypeError and a ValueError).
      ArgumentError: known points outside the cube or the box, or known bounds that do not increase (a ValueError).

    As ``scipy.stats.qmc.scale``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.stats import qmc
    >>> print(qmc.scale(jnp.array([[0.5, 0.75], [0.25, 0.5]]), jnp.array([-2.0, 0.0]), jnp.array([6.0, 4.0])))
    [[2. 3.]
     [0. 2.]]
    """
    x = _points("scale", sample)
    low, high = (real_floats("scale", b, what) for b, what in ((l_bounds, "l_bounds"), (u_bounds, "u_bounds")))
    d = x.shape[1]
    if any(b.shape not in ((), (1,), (d,)) for b in (low, high)):
        raise ShapeError(
            f"scale: l_bounds and u_bounds must be numbers or have the shape ({d},), got {low.shape} and {high.shape}"
        )
    ends = [known(b) for b in (low, high)]
    if all(e is not None for e in ends) and not np.all(ends[0] < ends[1]):
        raise ArgumentError(f"scale: l_bounds must be below u_bounds, got {ends[0]} and {ends[1]}")
    width = ops.sub(high, low)
    if not reverse:
        _check_unit("scale", x)
        return ops.add(ops.mul(x, width), low)
    values = known(x)
    inside = values is None or ends[0] is None or ends[1] is None or ((values >= ends[0]) & (values <= ends[1])).all()
    if not inside:
        raise ArgumentError(f"scale: sample must be between the bounds, got numbers outside {ends[0]} and {ends[1]}")
    return ops.div(ops.sub(x, low), width)


Factor = Callable[..., Any]


def _product(factor: Factor, *columns: list[Any]) -> Any:
    """Return the product over coordinates of a function of the coordinates of points."""
    out: Any = None
    for xs in zip(*columns, strict=True):
        value = factor(*xs)
        out = value if out is None else ops.mul(out, value)
    return out


def _centred(x: Any) -> Any:
    return abs(x - 0.5)


def _cd_one(x: Any) -> Any:
    c = _centred(x)
    return 1 + 0.5 * c - 0.5 * (c * c)


def _cd_two(x: Any, y: Any) -> Any:
    return 1 + 0.5 * ops.add(_centred(x), _centred(y)) - 0.5 * abs(ops.sub(x, y))


def _md_one(x: Any) -> Any:
    c = _centred(x)
    return 5 / 3 - 0.25 * c - 0.25 * (c * c)


def _md_two(x: Any, y: Any) -> Any:
    gap = abs(ops.sub(x, y))
    return 15 / 8 - 0.25 * ops.add(_centred(x), _centred(y)) - 0.75 * gap + 0.5 * (gap * gap)


def _wd_two(x: Any, y: Any) -> Any:
    gap = abs(ops.sub(x, y))
    return 1.5 - gap * (1 - gap)


def _star_two(x: Any, y: Any) -> Any:
    return 1 - ops.max_p.bind(*pnp.broadcast_arrays(x, y))


def _formula(method: str, x: Any, n: int) -> Any:
    """Return the discrepancy of points by a method; ``n`` is the number of points by which sums are divided."""
    d = x.shape[1]
    columns = [x[:, k] for k in range(d)]
    pairs = [c[:, None] for c in columns], [c[None, :] for c in columns]
    two = {"CD": _cd_two, "WD": _wd_two, "MD": _md_two, "L2-star": _star_two}[method]
    doubles = pnp.sum(_product(two, *pairs)) / n**2
    if method == "WD":
        return doubles - (4 / 3) ** d
    one = {"CD": _cd_one, "MD": _md_one, "L2-star": lambda x: 1 - x * x}[method]
    constant, weight = {"CD": (13 / 12, 2.0), "MD": (19 / 12, 2.0), "L2-star": (1 / 3, 2.0 ** (1 - d))}[method]
    out = constant**d - (weight / n) * pnp.sum(_product(one, columns)) + doubles
    return pnp.sqrt(out) if method == "L2-star" else out


def discrepancy(sample: ArrayLike, *, iterative: bool = False, method: str = "CD", workers: int = 1) -> Array:
    """Return how far points are from filling the unit cube evenly; less is better.

    Args:
      sample: the points, an array (n, d) of numbers in [0, 1].
      iterative: whether to leave room for one more point, for :func:`update_discrepancy`.
      method: ``"CD"``, the centred discrepancy; ``"WD"``, that of the torus; ``"MD"``, a mixture; ``"L2-star"``, of the
        boxes that begin at zero.
      workers: SciPy's number of threads for eager calls.

    Returns:
      A number, differentiable in the points, which takes memory for all pairs of points.

    Raises:
      ShapeError: ``sample`` is no set of points (a TypeError and a ValueError).
      ArgumentError: an unknown method, or known points outside the unit cube (a ValueError).

    Source: F. J. Hickernell, *A generalized discrepancy and quadrature error bound* (1998); Y.-D. Zhou, K.-T. Fang and
    J.-H. Ning, *Mixture discrepancy for quasi-random point sets* (2013). As ``scipy.stats.qmc.discrepancy``, which
    computes eager values.

    >>> from pullback.scipy.stats import qmc
    >>> print(f"{qmc.discrepancy(qmc.halton(None, 8, 2)):.4f}")
    0.0242
    """
    name = "discrepancy"
    if not is_listed(method, METHODS):
        raise ArgumentError(f"{name}: method must be one of {', '.join(METHODS)}, got {method!r}")
    x = _points(name, sample)
    _check_unit(name, x)
    if 0 in x.shape:
        raise ShapeError(f"{name}: sample must have points and coordinates, got the shape {x.shape}")
    values = on_host(x)
    if values is not None:
        exact = np.ascontiguousarray(values[0], np.float64)
        found = imported("scipy.stats").qmc.discrepancy(exact, iterative=iterative, method=method, workers=workers)
        return as_array(np.asarray(found, x.dtype))
    return _formula(method, x, x.shape[0] + bool(iterative))  # type: ignore[no-any-return]


def update_discrepancy(x_new: ArrayLike, sample: ArrayLike, initial_disc: ArrayLike) -> Array:
    """Return the centred discrepancy of points and one more.

    Args:
      x_new: the new point, an array (d,) of numbers in [0, 1].
      sample: the other points, an array (n, d).
      initial_disc: the centred discrepancy of the other points, computed with ``iterative=True``.

    Returns:
      A number, differentiable in all arguments.

    Raises:
      ShapeError: shapes that do not fit (a TypeError and a ValueError).
      ArgumentError: known points outside the unit cube (a ValueError).

    As ``scipy.stats.qmc.update_discrepancy``.

    >>> from pullback.scipy.stats import qmc
    >>> points = qmc.halton(None, 8, 2)
    >>> first = qmc.discrepancy(points[:7], iterative=True)
    >>> print(f"{qmc.update_discrepancy(points[7], points[:7], first):.4f}")
    0.0242
    """
    name = "update_discrepancy"
    x, new = _points(name, sample), real_floats(name, x_new, "x_new")
    before = real_floats(name, initial_disc, "initial_disc")
    if new.shape != x.shape[1:]:
        raise ShapeError(f"{name}: x_new must have the shape {x.shape[1:]} of one point, got {new.shape}")
    _check_unit(name, x)
    _check_unit(name, new, "x_new")
    n, d = x.shape[0] + 1, x.shape[1]
    here, there = [new[k] for k in range(d)], [x[:, k] for k in range(d)]
    alone = _product(_cd_one, here) * (-2 / n)
    beside = pnp.sum(_product(_cd_two, here, there)) * (2 / n**2)
    itself = _product(lambda a: 1 + _centred(a), here) / n**2
    return ops.add(before, alone + beside + itself)


def _tree_edges(x: Any) -> Any:
    """Return the two ends of each edge of the shortest tree that connects points, by the algorithm of Prim."""
    n = x.shape[0]

    def step(i: Any, state: Any) -> Any:
        inside, nearest, distance, ends = state
        new = pnp.argmin(pnp.where(inside, math.inf, distance)).astype(pnp.int32)
        ends = ends.at[i].set(pnp.stack([nearest[new], new]))
        inside = inside.at[new].set(True)
        from_new = pnp.sum((x - x[new]) ** 2, -1)
        nearer = from_new < distance
        return inside, pnp.where(nearer, new, nearest), pnp.where(nearer, from_new, distance), ends

    start = pnp.arange(n) == 0
    first = pnp.zeros(n, pnp.int32)
    ends = pnp.zeros((n - 1, 2), pnp.int32)
    return fori_loop(0, n - 1, step, (start, first, pnp.sum((x - x[0]) ** 2, -1), ends))[3]


def geometric_discrepancy(sample: ArrayLike, method: str = "mindist", metric: str = "euclidean") -> Array:
    """Return how far points are from each other; more is better.

    Args:
      sample: the points, an array (n, d) of numbers in [0, 1].
      method: ``"mindist"``, the least distance of two points; or ``"mst"``, the mean length of an edge of the shortest
        tree that connects the points, which is of Euclidean distances.
      metric: a metric of :func:`pullback.scipy.spatial.distance.pdist`.

    Returns:
      A number, differentiable in the points where no two distances are equal.

    Raises:
      ShapeError: fewer than two points (a TypeError and a ValueError).
      ArgumentError: an unknown method or metric, or known points outside the unit cube (a ValueError).

    As ``scipy.stats.qmc.geometric_discrepancy``.

    >>> from pullback.scipy.stats import qmc
    >>> print(f"{qmc.geometric_discrepancy(qmc.halton(None, 8, 2)):.4f}")
    0.1672
    """
    name = "geometric_discrepancy"
    if not is_listed(method, ("mindist", "mst")):
        raise ArgumentError(f"{name}: method must be 'mindist' or 'mst', got {method!r}")
    x = _points(name, sample)
    _check_unit(name, x)
    if x.shape[0] < 2:
        raise ShapeError(f"{name}: sample must have at least two points, got the shape {x.shape}")
    if method == "mindist":
        return pnp.min(pdist(x, metric))
    if metric != "euclidean":
        raise ArgumentError(f"{name}: with method='mst' the metric must be 'euclidean', got {metric!r}")
    ends = _tree_edges(stop_gradient(x))
    return pnp.mean(pnp.linalg.norm(x[ends[:, 0]] - x[ends[:, 1]], axis=-1))
