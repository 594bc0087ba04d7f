"""Nearest neighbours by trees on the host: ``KDTree``, with derivatives of the distances by the points.

SciPy's tree is built again only where the elements of the points differ: the host keeps the newest trees.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import tree
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_host
from pullback.core.errors import ArgumentError, ConcretizationTypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.locks import lock
from pullback.numpy.promotion import known_int, promote_all
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import real_floats
from pullback.scipy.spatial.powers import minkowski_lengths, order_of
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = ["KDTree"]

_KEPT = 8


class Kept:
    """The newest results of a function of an array, by the elements of the array and by options.

    Attributes:
      make: the function.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make
        self._lock = lock(vars(self), "_lock")
        self._found: OrderedDict[Any, Any] = OrderedDict()

    def of(self, array: np.ndarray[Any, Any], *options: Any) -> Any:
        """Return the result for an array, which may be that of an earlier call with equal elements."""
        key = (array.shape, array.dtype.str, array.tobytes(), options)
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = self.make(array, *options)
        with self._lock:
            self._found[key] = found
            while len(self._found) > _KEPT:
                self._found.popitem(last=False)
        return found


def _built(points: np.ndarray[Any, Any], leafsize: int) -> Any:
    return imported("scipy.spatial").cKDTree(np.array(points, np.float64), leafsize)


_trees = Kept(_built)


def neighbours(data: Any, x: Any, k: int) -> Any:
    """Return the positions, int32, of the ``k`` nearest of the points ``data`` to each of the points ``x``, (q, k).

    They are sorted by position. The arrays must have no derivative.
    """

    def on_host(data: Any, x: Any) -> Any:
        found = _trees.of(data, 10).query(x, range(1, k + 1))[1]
        return np.sort(found, axis=-1).astype(np.int32)

    result = ShapeDtypeStruct((x.shape[0], k), np.int32)
    return pure_callback(on_host, result, data, x, vmap_method="sequential")


class KDTree:
    """A tree of points in n dimensions, which finds the nearest ones to others.

    It is a pytree of its points, so that it may be passed to compiled functions. The search runs on the host, by SciPy.
    Distances have derivatives by both kinds of points, in both modes and to any order; which points are the nearest
    counts as constant. A distance of zero has the derivative zero.

    Args:
      data: the points, (m, n), real.
      leafsize: how many points are searched one by one.

    Attributes:
      data, leafsize: the arguments.
      n, m: the number of points, and of their coordinates.

    Raises:
      ShapeError: ``data`` is no matrix (a TypeError and a ValueError).
      ArgumentError: points that are not finite, or a ``leafsize`` below 1 (a TypeError and a ValueError).

    Source: Maneewongvatana and Mount 1999, "Analysis of approximate nearest neighbor searching with clustered point
    sets".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial import KDTree
    >>> tree = KDTree(jnp.array([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]]))
    >>> print(*tree.query(jnp.array([3.0, 1.0]), k=2))
    [3.        3.1622777] [1 0]
    """

    def __init__(self, data: ArrayLike, leafsize: int = 10) -> None:
        self.data = _points("KDTree", data, "data", None)
        self.leafsize = known_int("KDTree", "leafsize", leafsize)
        if self.leafsize < 1:
            raise ArgumentError(f"KDTree: leafsize must be positive, got {leafsize}")
        if is_on_host(self.data) and not np.isfinite(host_value(self.data)).all():
            raise ArgumentError("KDTree: the points must be finite")

    def __repr__(self) -> str:
        return f"KDTree({getattr(self.data, 'shape', '?')})"

    @property
    def n(self) -> int:
        """The number of points."""
        return int(self.data.shape[0])

    @property
    def m(self) -> int:
        """The number of coordinates of a point."""
        return int(self.data.shape[1])

    # long: half of it is its documentation
    def query(
        self, x: ArrayLike, k: Any = 1, eps: float = 0.0, p: float = 2.0,
        distance_upper_bound: float = np.inf, workers: int = 1,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Find the nearest points.

        Args:
          x: where to look, (..., n).
          k: how many points; or a list of which of them, counted from 1.
          eps: how much farther, relatively, than the nearest ones the found points may be.
          p: the order of Minkowski's distance, at least 1; may be infinity.
          distance_upper_bound: points that are not nearer do not count.
          workers: accepted for compatibility.

        Returns:
          The distances, (..., k), and the int32 positions of the points; without the last axis if ``k`` is 1. Where
          fewer points are found, the distance is infinite and the position is the number of points.

        Raises:
          ShapeError: points with other than n coordinates (a TypeError and a ValueError).
          ArgumentError: ``k`` is not positive, or ``p`` is below 1 (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback import grad
        >>> from pullback.scipy.spatial import KDTree
        >>> tree = KDTree(jnp.array([[0.0, 0.0], [3.0, 4.0]]))
        >>> print(grad(lambda x: tree.query(x)[0])(jnp.array([3.6, 3.2])).round(4))
        [ 0.6 -0.8]
        """
        name = "KDTree.query"
        which = k if isinstance(k, (list, tuple, range)) else range(1, known_int(name, "k", k) + 1)
        which = [known_int(name, "k", i) for i in which]
        if not which or min(which) < 1:
            raise ArgumentError(f"{name}: k must be positive, or a list of positive numbers, got {k!r}")
        x, data = promote_all(name, (_points(name, x, "x", self.m), self.data))
        order = order_of(name, p)
        search = partial(_query, self.leafsize, tuple(which), float(eps), order, float(distance_upper_bound))
        lead = (*x.shape[:-1], len(which))
        if is_on_host(x) and is_on_host(data):
            found = search(host_value(data), host_value(x))
            distances, positions = as_array(found[0].astype(x.dtype, copy=False)), as_array(found[1])
        else:
            result = ShapeDtypeStruct(lead, np.int32)
            fixed = stop_gradient((data, x))
            positions = pure_callback(lambda *a: search(*a)[1], result, *fixed, vmap_method="sequential")
            missing = ops.eq_p.bind(positions, np.int32(self.n))
            nearest = data[ops.min_p.bind(positions, np.int32(max(self.n - 1, 0)))]
            lengths = minkowski_lengths(nearest - x[..., None, :], order)
            distances = pnp.where(missing, np.inf, lengths)
        squeezed = not isinstance(k, (list, tuple, range)) and len(which) == 1
        return (distances[..., 0], positions[..., 0]) if squeezed else (distances, positions)

    def query_ball_point(
        self, x: ArrayLike, r: ArrayLike, p: float = 2.0, eps: float = 0.0, workers: int = 1,
        return_sorted: bool | None = None, return_length: bool = False,
    ) -> Any:  # fmt: skip
        """Find the points within a distance.

        Args:
          x: where to look, (..., n).
          r: the distance, or one for each point.
          p: the order of Minkowski's distance, at least 1; may be infinity.
          eps: how much, relatively, the distance is approximate.
          workers: accepted for compatibility.
          return_sorted: whether the positions are sorted; by default those of several points are.
          return_length: whether to return the numbers of points, instead.

        Returns:
          A list of positions, or a NumPy array of lists, since they have different lengths; or an array of numbers.

        Raises:
          ConcretizationTypeError: traced points: the number of neighbours is not known (a TypeError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial import KDTree
        >>> print(KDTree(jnp.array([[0.0], [1.0], [5.0]])).query_ball_point(jnp.array([0.4]), 1.0))
        [0, 1]
        """
        name = "KDTree.query_ball_point"
        points, radius = self._concrete(name, _points(name, x, "x", self.m), real_floats(name, r, "r"))
        found = self._scipy().query_ball_point(
            points, radius, order_of(name, p), float(eps), 1, return_sorted, return_length
        )
        return as_array(np.asarray(found, np.int32)) if return_length else found

    def query_pairs(self, r: float, p: float = 2.0, eps: float = 0.0, output_type: str = "set") -> Any:
        """Find all pairs of points within a distance.

        Args:
          r: the distance.
          p: the order of Minkowski's distance, at least 1; may be infinity.
          eps: how much, relatively, the distance is approximate.
          output_type: "set" or "ndarray".

        Returns:
          A set of pairs of positions i < j, or an int32 array (number of pairs, 2).

        Raises:
          ConcretizationTypeError: traced points: the number of pairs is not known (a TypeError).
          ArgumentError: another ``output_type`` (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy.spatial import KDTree
        >>> print(KDTree(jnp.array([[0.0], [1.0], [5.0]])).query_pairs(2.0))
        {(0, 1)}
        """
        name = "KDTree.query_pairs"
        if output_type not in ("set", "ndarray"):
            raise ArgumentError(f"{name}: output_type must be 'set' or 'ndarray', got {output_type!r}")
        (radius,) = self._concrete(name, real_floats(name, r, "r"))
        found = self._scipy().query_pairs(float(radius), order_of(name, p), float(eps), output_type)
        return as_array(found.astype(np.int32)) if output_type == "ndarray" else found

    def _concrete(self, name: str, *arrays: Any) -> list[Any]:
        if not all(map(is_on_host, (self.data, *arrays))):
            raise ConcretizationTypeError(
                f"{name}: how many points are found is not known while the arrays are traced; call it outside of the "
                f"transformed function, or use query with a fixed k and distance_upper_bound"
            )
        return [host_value(x) for x in arrays]

    def _scipy(self) -> Any:
        return _trees.of(host_value(self.data), self.leafsize)


def _points(name: str, x: Any, what: str, size: int | None) -> Any:
    """Convert ``x`` to points: a matrix if ``size`` is None, or any array whose last axis has this size."""
    x = real_floats(name, x, what)
    if size is None and len(x.shape) != 2:
        raise ShapeError(f"{name}: {what} must be an array of points, (m, n), got shape {x.shape}")
    if size is not None and (not x.shape or x.shape[-1] != size):
        raise ShapeError(f"{name}: {what} must have {size} coordinates along its last axis, got shape {x.shape}")
    return x


def _query(leafsize: int, which: Any, eps: float, p: float, bound: float, data: Any, x: Any) -> tuple[Any, Any]:
    """Return the distances and the int32 positions of the nearest points, of NumPy's arrays."""
    distances, positions = _trees.of(data, leafsize).query(x, list(which), eps, p, bound)
    return distances, positions.astype(np.int32)


def _flatten(f: KDTree) -> tuple[Any, Any]:
    return (f.data,), f.leafsize


def _unflatten(leafsize: Any, children: Any) -> KDTree:
    f = object.__new__(KDTree)
    (f.data,), f.leafsize = children, leafsize
    return f


tree.register_pytree_node(KDTree, _flatten, _unflatten)
