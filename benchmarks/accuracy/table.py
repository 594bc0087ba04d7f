"""What a row of the table of functions says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Exact = Callable[..., Any]
Scale = float | Callable[..., Any]


@dataclass(frozen=True)
class Operand:
    """Where the points of one operand are taken from.

    Attributes:
      low, high: the ends of the domain, in which bits are drawn at random, so that all exponents occur.
      usual: an interval in which points are drawn uniformly.
      single: the same for float32, where it is another.
      marks: where the function has zeros, poles, branch points or other formulas: points at them and on both sides.
      tiny: no point but 0 is smaller in size.
      whole: integers only.
    """

    low: float = float("-inf")
    high: float = float("inf")
    usual: tuple[float, float] = (-4.0, 4.0)
    single: tuple[float, float] | None = None
    marks: tuple[float, ...] = (0.0,)
    tiny: float = 0.0
    whole: bool = False


@dataclass(frozen=True)
class Plane:
    """Where the points of a complex operand are taken from.

    Attributes:
      real, imaginary: where its parts are. They are paired at random, and at some points one of them is a zero of
        either sign, or next to zero: on both sides of the branch cuts, all of which are on the axes.
    """

    real: Operand = Operand()
    imaginary: Operand = Operand()
    whole: bool = False


@dataclass(frozen=True)
class Function:
    """A function that is measured.

    Attributes:
      name: the module and the name, in Pullback and in JAX alike: ``"numpy.exp"``.
      exact: the function in mpmath's numbers.
      slopes: its derivative by each operand in mpmath's numbers, by a complex one the holomorphic derivative; None
        where there is none to measure.
      operands: where the points are.
      peer: NumPy's or SciPy's function, ``"scipy.special.erf"``, if there is one.
      scales: for the value and each slope, the size below which an error counts in ulps of this size. It is 0, except
        where zeros are no floats, so that the rounding of the operand alone moves the result by many of its own ulps;
        a number, or a function of the operands.
      points: how many points at most.
      arguments: further keyword arguments.
      title: what the page calls it, if not by its name.
      part: for a function that returns a tuple, which of its results.
    """

    name: str
    exact: Exact
    slopes: tuple[Exact | None, ...]
    operands: tuple[Operand | Plane, ...]
    peer: str | None = None
    scales: tuple[Scale, ...] = ()
    points: int = 2000
    arguments: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    part: int | None = None

    @property
    def label(self) -> str:
        """What the page calls the function."""
        return self.title or self.name

    @property
    def dtypes(self) -> tuple[np.dtype, ...]:
        """The dtypes in which it is measured."""
        plane = isinstance(self.operands[0], Plane)
        return tuple(map(np.dtype, ("complex64", "complex128") if plane else ("float32", "float64")))

    def outputs(self) -> list[tuple[str, int | None, Exact, Scale]]:
        """Of the value and each slope: a name, the operand that it is by, the exact function, and the scale."""
        rows: list[tuple[str, int | None, Exact, Scale]] = [("value", None, self.exact, self._scale(0))]
        for i, slope in enumerate(self.slopes):
            if slope is not None:
                name = "slope" if len(self.slopes) == 1 else f"slope {i + 1}"
                rows.append((name, i, slope, self._scale(i + 1)))
        return rows

    def _scale(self, i: int) -> Scale:
        return self.scales[i] if i < len(self.scales) else 0.0
