"""Constraints of optimisation problems: ``Bounds``, ``LinearConstraint`` and ``NonlinearConstraint``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pullback.core.array import ArrayLike


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
