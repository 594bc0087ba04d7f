"""A row of the table: a function, the one whose signature it has, and the problems on which both are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """A function of the table.

    Attributes:
      name: its full name below ``pullback``, such as ``scipy.sparse.linalg.spsolve``, and after a colon its method,
        if several methods have rows.
      signature: the anchor's arguments that it takes, as they are written on the page.
      ours: from arrays of real numbers to an array: the function on a problem.
      theirs: the same by the anchor, of NumPy arrays.
      small: the arrays of a problem for the checks of values and derivatives; the derivatives are by all of them.
      large: the arrays of a problem for the times; of 10,000 elements, or of the problem's size.
      timed: what is timed instead of ``ours`` and ``theirs``: a pair of functions of ``large``.
      peer: from nothing to a function of ``large`` by a JAX library, which is imported there; None if none has it.
      peer_name: the name of this function.
      anchor_error: how precise the anchor's result is, where that is more than rounding.
      second: whether second derivatives are compared with differences; some loops within loops take minutes.
      note: what the page says of the row.
    """

    name: str
    signature: str
    ours: Function
    theirs: Function
    small: Callable[[], Sequence[Any]]
    large: Callable[[], Sequence[Any]]
    timed: tuple[Function, Function] | None = None
    peer: Callable[[], Function] | None = None
    peer_name: str = ""
    anchor_error: float = 0.0
    second: bool = True
    note: str = ""


@dataclass(frozen=True)
class Part:
    """A section of the page.

    Attributes:
      title: its heading.
      text: what stands below it.
      rows: its rows.
    """

    title: str
    text: str
    rows: Sequence[Row]
