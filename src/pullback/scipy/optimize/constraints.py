"""Constraints of optimisation problems, in the forms of SciPy, and as one function with limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import inexact_operand, operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.optimize.problems import is_real, times
from pullback.transforms.autodiff.tracing import eval_shape


class Bounds(NamedTuple):
    """The constraint ``lb <= x <= ub``, element by element.

    Attributes:
      lb, ub: arrays that broadcast to the shape of ``x``; infinite where there is no bound.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import Bounds, minimize
    >>> print(minimize(lambda x: (x**2).sum(), jnp.ones(2), bounds=Bounds(0.5, jnp.inf)).x)
    [0.5 0.5]
    """

    lb: ArrayLike = -np.inf
    ub: ArrayLike = np.inf


class LinearConstraint(NamedTuple):
    """The constraint ``lb <= A @ x <= ub``, of vectors ``x``.

    Attributes:
      A: a matrix with a column for each unknown, or the row of a single constraint.
      lb, ub: arrays with an element for each row, or numbers; equal where the constraint is an equation.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import LinearConstraint, minimize
    >>> print(minimize(lambda x: (x**2).sum(), jnp.zeros(2), constraints=LinearConstraint(jnp.ones(2), 2.0)).x)
    [1. 1.]
    """

    A: ArrayLike
    lb: ArrayLike = -np.inf
    ub: ArrayLike = np.inf


class NonlinearConstraint(NamedTuple):
    """The constraint ``lb <= fun(x) <= ub``.

    Attributes:
      fun: ``fun(x)`` returns an array of real numbers; it is differentiated.
      lb, ub: arrays that broadcast to the shape of its result; equal where the constraint is an equation.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.optimize import NonlinearConstraint, minimize
    >>> circle = NonlinearConstraint(lambda x: (x**2).sum(), -jnp.inf, 2.0)
    >>> print(minimize(lambda x: -x.sum(), jnp.zeros(2), constraints=circle).x.round(4))
    [1. 1.]
    """

    fun: Callable[[Any], Any]
    lb: ArrayLike
    ub: ArrayLike


class Constraints(NamedTuple):
    """All constraints of a problem.

    Attributes:
      values: from vectors to the vector of the constrained values.
      number: how many there are.
      limits: the least and greatest values, and those of the unknowns: four vectors.
    """

    values: Callable[[Any], Any]
    number: int
    limits: list[Any]


def constraints_of(name: str, bounds: Any, constraints: Any, x0: Array) -> Constraints:
    """Return the constraints of unknowns like ``x0``, from the arguments of ``minimize``."""
    single = isinstance(constraints, Mapping) or any(hasattr(constraints, key) for key in ("lb", "fun"))
    parts = [_one(name, part, x0) for part in ([constraints] if single else constraints)]
    limits = [pnp.concatenate([pnp.zeros(0, x0.dtype), *ends]) for ends in zip(*(p[1] for p in parts), strict=True)]
    functions = [part[0] for part in parts]

    def values(x: Any) -> Any:
        found = [pnp.ravel(f(x)) for f in functions]
        return pnp.concatenate([pnp.zeros(0, x.dtype), *(ops.convert_element_type(v, x.dtype) for v in found)])

    limits = limits or [pnp.zeros(0, x0.dtype)] * 2
    return Constraints(values, limits[0].shape[0], [*limits, *_limits_of_unknowns(name, bounds, x0)])


def _one(name: str, constraint: Any, x0: Array) -> tuple[Callable[[Any], Any], tuple[Any, Any]]:
    """Return a constraint as a function of vectors, and its least and greatest values as vectors."""
    if isinstance(constraint, Mapping):
        kind, fun, args = constraint.get("type"), constraint.get("fun"), constraint.get("args", ())
        if kind not in ("eq", "ineq") or not callable(fun):
            raise ArgumentError(
                f"{name}: a constraint that is a dictionary needs a 'type', 'eq' or 'ineq', and a function 'fun', got "
                f"{quote(constraint)}"
            )
        low, high = 0.0, 0.0 if kind == "eq" else np.inf
        function = lambda x: fun(shapes.reshape(x, x0.shape), *args)
    elif hasattr(constraint, "A"):
        matrix = pnp.atleast_2d(inexact_operand(name, pnp.asarray(constraint.A)))
        if matrix.ndim != 2 or matrix.shape[1] != x0.size:
            raise ShapeError(
                f"{name}: A of a constraint must have {x0.size} columns, as there are unknowns, got {matrix.shape}"
            )
        low, high = constraint.lb, constraint.ub
        function = lambda x: times(ops.convert_element_type(matrix, x.dtype), x)
    elif hasattr(constraint, "lb") and callable(getattr(constraint, "fun", None)):
        low, high = constraint.lb, constraint.ub
        function = lambda x: constraint.fun(shapes.reshape(x, x0.shape))
    else:
        raise ArgumentError(
            f"{name}: constraints must be of the classes LinearConstraint and NonlinearConstraint, or dictionaries, "
            f"got {quote(constraint)}"
        )
    found = eval_shape(function, shapes.reshape(x0, (x0.size,)))
    if not is_real(found):
        raise ShapeError(f"{name}: the function of a constraint must return an array of real numbers, got {found}")
    return function, (_limit(name, low, found.shape), _limit(name, high, found.shape))


def _limit(name: str, limit: Any, shape: tuple[int, ...]) -> Any:
    """Return a limit as a vector, one for each element of an array of the shape."""
    found = inexact_operand(name, pnp.asarray(limit))
    pairs = zip(reversed(found.shape), reversed(shape), strict=False)
    if len(found.shape) > len(shape) or any(m not in (1, n) for m, n in pairs):
        raise ShapeError(f"{name}: the limits of values of shape {shape} must broadcast to it, got shape {found.shape}")
    return pnp.ravel(pnp.broadcast_to(found, shape))


def _limits_of_unknowns(name: str, bounds: Any, x0: Array) -> tuple[Any, Any]:
    if hasattr(bounds, "lb"):
        return _limit(name, bounds.lb, x0.shape), _limit(name, bounds.ub, x0.shape)
    return bounds_of(name, bounds, x0.size)


def bounds_of(name: str, bounds: Any, n: int) -> tuple[Any, Any]:
    """Return the least and the greatest values of n unknowns, from pairs, one pair, an array of them, or None."""
    if bounds is None:
        bounds = (None, None)
    if isinstance(bounds, (tuple, list)):
        pairs = bounds if any(isinstance(x, (tuple, list)) for x in bounds) else [bounds]
        if any(not hasattr(pair, "__len__") or len(pair) != 2 for pair in pairs):
            raise ArgumentError(f"{name}: bounds must be pairs of a least and a greatest value, got {quote(bounds)}")
        ends = [
            [sign * np.inf if x is None else operand(name, x) for x in side]
            for sign, side in zip((-1, 1), zip(*pairs, strict=True), strict=True)
        ]
        columns = [pnp.stack([pnp.asarray(x) for x in side]) if side else pnp.zeros(0, np.float32) for side in ends]
    else:
        both = inexact_operand(name, bounds)
        if both.ndim not in (1, 2) or both.shape[-1] != 2:
            raise ShapeError(f"{name}: bounds must have shape ({n}, 2) or (2,), got {both.shape}")
        columns = [both[..., 0], both[..., 1]]
    if any(x.shape not in ((), (1,), (n,)) for x in columns):
        raise ShapeError(f"{name}: bounds must be one pair or {n}, as there are unknowns, got {columns[0].shape[0]}")
    return pnp.broadcast_to(columns[0], (n,)), pnp.broadcast_to(columns[1], (n,))
