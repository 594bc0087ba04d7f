"""Distances between sets of points by all of SciPy's metrics: ``pullback.scipy.spatial.distance``.

On concrete arrays they are SciPy's. A distance of zero has the derivative zero, as the distance of a point to itself
has, although those of different points that meet have a kink.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayImpl, ArrayLike, host_value, is_on_host
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.core.interrupts import imported
from pullback.core.trace import state
from pullback.numpy.promotion import promote_all, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.reductions import reduce_max
from pullback.scipy.arguments import known, of_own_memory, on_host, real_floats
from pullback.scipy.spatial.powers import order_of, power, root
from pullback.scipy.special import rel_entr
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["cdist", "pdist", "squareform"]
face(globals())

Metric = str | Callable[[Array, Array], ArrayLike]


def _total(x: Any, w: Any) -> Any:
    return pnp.sum(x if w is None else x * w, axis=-1)


def _quotient(x: Any, y: Any) -> Any:
    """Return x / y, and zero where y is zero."""
    zero = ops.eq_p.bind(y, 0.0)
    return pnp.where(zero, 0.0, x / pnp.where(zero, 1.0, y))


def _cosine(a: Any, b: Any, w: Any) -> Any:
    product, squares = _total(a * b, w), _total(ops.square(a), w) * _total(ops.square(b), w)
    return 1.0 - product / pnp.sqrt(squares)


def _correlation(a: Any, b: Any, w: Any) -> Any:
    if w is not None:
        w = w / pnp.sum(w)

    def centred(x: Any) -> Any:
        return x - (pnp.mean(x, axis=-1, keepdims=True) if w is None else _total(x, w)[..., None])

    return _cosine(centred(a), centred(b), w)


def _chebyshev(a: Any, b: Any, w: Any) -> Any:
    lengths = abs(a - b) if w is None else pnp.where(w > 0, abs(a - b), 0.0)
    return reduce_max(lengths, (len(lengths.shape) - 1,))


def _hamming(a: Any, b: Any, w: Any) -> Any:
    unequal = ops.ne_p.bind(a, b).astype(a.dtype)
    return pnp.mean(unequal, axis=-1) if w is None else _total(unequal, w) / pnp.sum(w)


def _jensenshannon(a: Any, b: Any, w: Any) -> Any:
    p, q = (x / pnp.sum(x, axis=-1, keepdims=True) for x in (a, b))
    middle = 0.5 * (p + q)
    return root(0.5 * pnp.sum(rel_entr(p, middle) + rel_entr(q, middle), axis=-1))


_REAL: dict[str, Callable[[Any, Any, Any], Any]] = {
    "braycurtis": lambda a, b, w: _total(abs(a - b), w) / _total(abs(a + b), w),
    "canberra": lambda a, b, w: _total(_quotient(abs(a - b), abs(a) + abs(b)), w),
    "chebyshev": _chebyshev,
    "cityblock": lambda a, b, w: _total(abs(a - b), w),
    "correlation": _correlation,
    "cosine": _cosine,
    "euclidean": lambda a, b, w: root(_total(ops.square(a - b), w)),
    "hamming": _hamming,
    "jensenshannon": _jensenshannon,
    "sqeuclidean": lambda a, b, w: _total(ops.square(a - b), w),
}
"""Metrics of real vectors along the last axis, with weights or None."""


def _of_counts(function: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Return a metric of Booleans, by how many are both true, different, and both false."""

    def metric(a: Any, b: Any, w: Any) -> Any:
        true, other = (ops.ne_p.bind(x, 0.0) for x in (a, b))
        counts = true & other, true ^ other, ~(true | other)
        return function(*(_total(x.astype(a.dtype), w) for x in counts))

    return metric


def _yule(a: Any, b: Any, w: Any) -> Any:
    true, other = (ops.ne_p.bind(x, 0.0) for x in (a, b))
    tt, tf, ft, ff = (
        _total(x.astype(a.dtype), w) for x in (true & other, true & ~other, ~true & other, ~(true | other))
    )
    return _quotient(2.0 * tf * ft, tt * ff + tf * ft)


_BOOLEAN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "dice": _of_counts(lambda both, one, none: one / (2.0 * both + one)),
    "jaccard": _of_counts(lambda both, one, none: _quotient(one, both + one)),
    "rogerstanimoto": _of_counts(lambda both, one, none: 2.0 * one / (both + none + 2.0 * one)),
    "russellrao": _of_counts(lambda both, one, none: (one + none) / (both + one + none)),
    "sokalsneath": _of_counts(lambda both, one, none: 2.0 * one / (both + 2.0 * one)),
    "yule": _yule,
}
"""Metrics of Boolean vectors; numbers count as true where they are not zero. Their derivatives are zero."""

_OWN = {"minkowski": ("p", "w"), "mahalanobis": ("VI",), "seuclidean": ("V",), "jensenshannon": ()}
_NAMES = {
    **{name: name for name in (*_REAL, *_BOOLEAN, "minkowski", "mahalanobis", "seuclidean")}, "manhattan": "cityblock",
    "cheb": "chebyshev", "chebychev": "chebyshev", "cos": "cosine", "euclid": "euclidean", "eu": "euclidean",
    "sqeuclid": "sqeuclidean", "js": "jensenshannon", "mahal": "mahalanobis", "mi": "minkowski",
    "se": "seuclidean", "matching": "hamming", "hamm": "hamming", "co": "correlation",
}  # fmt: skip


class _Measure:
    """A metric with its options, checked.

    Attributes:
      name: its name.
      function: the distances of vectors along the last axis.
      options: SciPy's arguments.
      arrays: those options that are arrays, by their names.
    """

    def __init__(self, name: str, metric: Any, options: dict[str, Any], *points: Any) -> None:
        if not isinstance(metric, str) or metric.lower() not in _NAMES:
            raise ArgumentError(
                f"{name}: metric must be a function or one of {', '.join(sorted(_NAMES))}; got {quote(metric)}"
            )
        self.name = kind = _NAMES[metric.lower()]
        allowed = _OWN.get(kind, ("w",))
        unknown = [key for key in options if key not in allowed] if options else None
        if unknown:
            raise ArgumentError(
                f"{name}: metric {kind!r} takes the options {', '.join(allowed) or 'none'}, got {unknown[0]!r}"
            )
        given = {key: value for key, value in options.items() if value is not None} if options else {}
        n, dtype = points[0].shape[-1], points[0].dtype
        self.arrays: dict[str, Any] = {}
        self.numbers: dict[str, Any] = {}
        if kind == "minkowski":
            self.numbers["p"] = order_of(name, given.pop("p", 2.0), 0.0)
        elif kind == "seuclidean" and "V" not in given:
            given["V"] = pnp.var(pnp.concatenate(points), axis=0, ddof=1)
        elif kind == "mahalanobis" and "VI" not in given:
            count = sum(x.shape[0] for x in points)
            if count <= n:
                raise ArgumentError(
                    f"{name}: {count} points do not determine the covariances of {n} coordinates; pass VI"
                )
            given["VI"] = pnp.linalg.inv(pnp.atleast_2d(pnp.cov(pnp.concatenate(points).T))).T
        for key, value in given.items():
            value = ops.convert_element_type(real_floats(name, value, key), dtype)
            shape = (n, n) if key == "VI" else (n,)
            if value.shape != shape:
                raise ShapeError(f"{name}: {key} must have shape {shape}, got {value.shape}")
            if key == "w" and known(value) is not None and (known(value) < 0).any():
                raise ArgumentError(f"{name}: the weights must not be negative")
            self.arrays[key] = value

    def __call__(self, a: Any, b: Any) -> Any:
        """Return the distances of vectors along the last axis."""
        w = self.arrays.get("w")
        if self.name == "minkowski":
            return self._minkowski(a - b, self.numbers["p"], w)
        if self.name == "seuclidean":
            return root(_total(ops.square(a - b) / self.arrays["V"], None))
        if self.name == "mahalanobis":
            d = a - b
            return root(pnp.sum(d * pnp.matmul(d, self.arrays["VI"].T), axis=-1))
        return (_REAL.get(self.name) or _BOOLEAN[self.name])(a, b, w)

    def _minkowski(self, d: Any, p: float, w: Any) -> Any:
        if np.isinf(p):
            lengths = abs(d) if w is None else pnp.where(w > 0, abs(d), 0.0)
            return reduce_max(lengths, (len(d.shape) - 1,))
        return root(_total(power(d, p), w), p)

    def by_scipy(self, function: str, dtype: Any, *points: Any) -> Array | None:
        """Return SciPy's result if all arrays are concrete, else None."""
        values = on_host(*points, *self.arrays.values())
        if values is None:
            return None
        for v in values:
            if not v.size:
                return None
        elements, given = values[: len(points)], values[len(points) :]
        if self.name in _BOOLEAN:
            elements = [v != 0 for v in elements]
        options = {key: v.astype(np.float64) for key, v in zip(self.arrays, given, strict=True)}
        call = getattr(imported("scipy.spatial.distance"), function)
        found = state.silently(call, *elements, self.name, **options, **self.numbers)
        return of_own_memory(found if found.dtype is dtype else found.astype(dtype))


def _above_diagonal(m: int) -> Any:
    """Return the rows and the columns of the elements above the diagonal of an (m, m) matrix."""
    return tuple(i.astype(np.int32) for i in np.triu_indices(m, 1))


def _matrix(name: str, x: Any, what: str) -> Any:
    x = real_floats(name, x, what)
    if len(x.shape) != 2:
        raise ShapeError(f"{name}: {what} must be an array of points, (m, n), got shape {x.shape}")
    return x


# long: half of it is its documentation
def cdist(XA: ArrayLike, XB: ArrayLike, metric: Metric = "euclidean", *, out: None = None, **kwargs: Any) -> Array:
    """Return the distances of all points of a set to all points of another one.

    They have derivatives by the points and by the metric's arrays, in both modes and to any order.

    Args:
      XA: the first points, (m, n), real.
      XB: the second points, (k, n).
      metric: "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean",
        "hamming", "jaccard", "jensenshannon", "mahalanobis", "minkowski", "rogerstanimoto", "russellrao",
        "seuclidean", "sokalsneath", "sqeuclidean" or "yule"; or a function of two vectors.
      out: None: arrays do not change.
      kwargs: ``w``, the weights of the coordinates; ``p``, the order of Minkowski's distance, a number; ``V``, the
        variances of "seuclidean"; ``VI``, the inverse of the covariances of "mahalanobis". Variances and covariances
        are by default those of all points.

    Returns:
      An array (m, k).

    Raises:
      ShapeError: no sets of points with equally many coordinates (a TypeError and a ValueError).
      ArgumentError: an unknown metric or option (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial.distance import cdist
    >>> print(cdist(jnp.zeros((1, 2)), jnp.array([[3.0, 4.0], [0.0, 1.0]])))
    [[5. 1.]]
    """
    name = "cdist"
    a, b = promote_all(name, (_matrix(name, XA, "XA"), _matrix(name, XB, "XB")))
    if out is not None:
        raise ArgumentError(f"{name}: out must be None, because arrays do not change")
    if a.shape[1] != b.shape[1]:
        raise ShapeError(f"{name}: points must have equally many coordinates, got shapes {a.shape} and {b.shape}")
    if callable(metric):
        function = lambda u, v: metric(u, v, **kwargs)
        return pnp.asarray(vmap(vmap(function, (None, 0)), (0, None))(a, b))
    measure = _Measure(name, metric, kwargs, a, b)
    found = measure.by_scipy("cdist", a.dtype, a, b)
    return measure(a[:, None], b[None]) if found is None else found  # type: ignore[no-any-return]


def pdist(X: ArrayLike, metric: Metric = "euclidean", *, out: None = None, **kwargs: Any) -> Array:
    """Return the distances of all pairs of points of a set, as a vector: those of the first point, of the second, ...

    They have derivatives by the points and by the metric's arrays, in both modes and to any order.

    Args:
      X: the points, (m, n), real.
      metric: as for :func:`cdist`.
      out: None: arrays do not change.
      kwargs: as for :func:`cdist`.

    Returns:
      A vector of m (m - 1) / 2. :func:`squareform` makes a matrix of it.

    Raises:
      ShapeError: ``X`` is no set of points (a TypeError and a ValueError).
      ArgumentError: an unknown metric or option (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial.distance import pdist
    >>> print(pdist(jnp.array([[0.0, 0.0], [3.0, 4.0], [3.0, 3.0]])).round(4))
    [5.     4.2426 1.    ]
    """
    name = "pdist"
    x = _matrix(name, X, "X")
    if out is not None:
        raise ArgumentError(f"{name}: out must be None, because arrays do not change")
    if callable(metric):
        first, second = _above_diagonal(x.shape[0])
        return pnp.asarray(vmap(lambda u, v: metric(u, v, **kwargs))(x[first], x[second]))
    measure = _Measure(name, metric, kwargs, x)
    found = measure.by_scipy("pdist", x.dtype, x)
    if found is not None:
        return found
    first, second = _above_diagonal(x.shape[0])
    return measure(x[first], x[second])  # type: ignore[no-any-return]


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:
    """Convert a vector of distances to a symmetric matrix with zeros on its diagonal, or back.

    Args:
      X: a vector of m (m - 1) / 2 numbers, or a matrix (m, m).
      force: "no"; or "tomatrix" or "tovector", to raise if the result is another one.
      checks: whether a known matrix must be symmetric, with zeros on its diagonal.

    Returns:
      The matrix, or the vector of the elements above its diagonal, row by row.

    Raises:
      ShapeError: another rank, or a length that no number of points has (a TypeError and a ValueError).
      ArgumentError: the matrix is no matrix of distances, or ``force`` says otherwise (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.spatial.distance import squareform
    >>> print(squareform(jnp.array([1.0, 2.0, 3.0])))
    [[0. 1. 2.]
     [1. 0. 3.]
     [2. 3. 0.]]
    """
    x = X if type(X) is ArrayImpl else pnp.asarray(X)
    shape = x.shape
    if force not in ("no", "tomatrix", "tovector"):
        raise ArgumentError(f"squareform: force must be 'no', 'tomatrix' or 'tovector', got {quote(force)}")
    if len(shape) not in (1, 2):
        raise ShapeError(f"squareform takes a vector or a matrix, got shape {shape}")
    if force == ("tovector" if len(shape) == 1 else "tomatrix"):
        raise ArgumentError(f"squareform: force={force!r}, but X has shape {shape}")
    if len(shape) == 1:
        m = (1 + math.isqrt(1 + 8 * shape[0])) // 2
        if m * (m - 1) // 2 != shape[0]:
            raise ShapeError(f"squareform: no number of points has {shape[0]} distances")
        if is_on_host(x) and shape[0]:
            found = imported("scipy.spatial.distance").squareform(host_value(x))
            return of_own_memory(found if found.dtype is x.dtype else found.astype(x.dtype))
        first, second = _above_diagonal(m)
        half = pnp.zeros((m, m), x.dtype).at[first, second].set(x)
        return half + half.T if x.dtype != bool else half | half.T  # type: ignore[no-any-return]
    if x.shape[0] != x.shape[1]:
        raise ShapeError(f"squareform: the matrix must be square, got shape {x.shape}")
    values = known(x)
    if checks and values is not None and (not np.allclose(values, values.T) or np.diagonal(values).any()):
        raise ArgumentError("squareform: a matrix of distances is symmetric with zeros on its diagonal; see checks")
    first, second = _above_diagonal(x.shape[0])
    return x[first, second]  # type: ignore[no-any-return]
