"""What the methods of ``solve_ivp`` have in common: attempted steps, exact steps, and the polynomials within steps."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.primitives import elementwise as ops

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0
"""The next step is SAFETY times the estimated largest acceptable one, and SHRINK to GROW times the last one."""


class Made(NamedTuple):
    """A step that was made.

    Attributes:
      y: the state at its end.
      memory: what the method remembers for the next step, a tree of arrays.
      trail: what the polynomial within the step is computed from, a tree of arrays.
    """

    y: Any
    memory: Any
    trail: Any


class Attempt(NamedTuple):
    """A step that was tried.

    Attributes:
      accepted: whether its error is within the tolerance.
      factor: the size of the next step or attempt, relative to this one.
      step: the step.
      note: an integer that the step has to be made with if it is repeated, such as an order.
      calls: how often the right-hand side was evaluated.
    """

    accepted: Any
    factor: Any
    step: Made
    note: Any
    calls: Any


class Method(Protocol):
    """A method at a problem's functions.

    Attributes:
      degree: the degree of the polynomial within a step.
      estimate: the order of the estimated error, by which the first step is chosen.
    """

    degree: int
    estimate: int

    def start(self, t: Any, y: Any, h: Any) -> tuple[Any, Any]:
        """Return the memory and the trail before the first step, whose signed size is ``h``."""

    def attempt(self, t: Any, y: Any, h: Any, memory: Any) -> Attempt:
        """Try a step; its derivative is never taken."""

    def step(self, t: Any, y: Any, h: Any, memory: Any, note: Any) -> Made:
        """Make a step that was accepted, so that it can be differentiated."""

    def polynomial(self, trail: Any) -> Any:
        """Return the coefficients of the state as a polynomial of the time from 0 to 1 within a step.

        They have shape (degree + 1, n), from the constant to the highest power.
        """


def real(x: Any, like: Any) -> Any:
    """Convert a time to the precision of a vector."""
    return ops.convert_element_type(x, dtypes.to_real(like.dtype))


def rms(x: Any) -> Any:
    """Return the root mean square of a vector."""
    square = ops.square(x.real) + ops.square(x.imag) if dtypes.is_complex(x.dtype) else ops.square(x)
    return ops.sqrt(pnp.mean(square))


def finite(error: Any) -> Any:
    """Return an error, or infinity if it is NaN."""
    return ops.where(ops.eq(error, error), error, float("inf"))


def selected(which: Any, new: Any, old: Any) -> Any:
    """Return the tree ``new`` if the boolean ``which`` holds, else the tree ``old``."""
    return tree.tree_map(lambda a, b: ops.where(which, a, b), new, old)


def at(pieces: Any, x: Any) -> Any:
    """Evaluate a polynomial, of coefficients (degree + 1, n) from the constant, at a number ``x``."""
    value = pieces[-1]
    for i in range(pieces.shape[0] - 2, -1, -1):
        value = value * x + pieces[i]
    return value


def weighted(weights: Any, rows: Any) -> Any:
    """Return the sum of vectors, the rows of a list, times numbers; those that are zero are left out."""
    terms = [rows[i] if w == 1 else rows[i] * float(w) for i, w in enumerate(weights) if w]
    return sum(terms[1:], terms[0])
