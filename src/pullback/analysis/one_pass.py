"""Formulas in doubles that compute large arrays in one pass, by blocks that stay in the cache.

A formula of sums, differences, products and quotients is recorded once, and becomes a program of the loops in C
(``backends/host/native``), which call NumPy's own loops: each element has the bits that NumPy's operations give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from pullback.backends.host import native

SMALLEST = 128
"""The fewest elements for which a program takes less time than calls of NumPy's."""
_DOUBLE = np.dtype(np.float64)


class _Symbol:
    """An operand or a result in a formula that is recorded."""

    __array_ufunc__ = None
    __slots__ = ("index", "record")

    def __init__(self, record: _Record, index: int) -> None:
        self.record, self.index = record, index

    def __add__(self, other: Any) -> _Symbol:
        return self.record.add(np.add, self, other)

    def __radd__(self, other: Any) -> _Symbol:
        return self.record.add(np.add, other, self)

    def __sub__(self, other: Any) -> _Symbol:
        return self.record.add(np.subtract, self, other)

    def __rsub__(self, other: Any) -> _Symbol:
        return self.record.add(np.subtract, other, self)

    def __mul__(self, other: Any) -> _Symbol:
        return self.record.add(np.multiply, self, other)

    def __rmul__(self, other: Any) -> _Symbol:
        return self.record.add(np.multiply, other, self)

    def __truediv__(self, other: Any) -> _Symbol:
        return self.record.add(np.divide, self, other)


class _Record:
    """The operations of a formula, as ``native.planned`` takes them.

    Attributes:
      operations: the operations.
      numbers: the Python numbers that are operands, after the arrays.
      arrays: the number of arrays.
    """

    def __init__(self, arrays: int) -> None:
        self.arrays = arrays
        self.operations: list[native.Operation] = []
        self.numbers: list[float] = []

    def add(self, ufunc: np.ufunc, *operands: Any) -> _Symbol:
        indices = []
        for x in operands:
            if type(x) is _Symbol:
                indices.append(x.index)
            else:
                indices.append(~(self.arrays + len(self.numbers)))
                self.numbers.append(float(x))
        self.operations.append((ufunc, (), _DOUBLE, tuple(indices)))
        return _Symbol(self, len(self.operations) - 1)


@lru_cache(maxsize=512)
def _planned(
    formula: Callable[..., Any], shape: tuple[int, ...], arrays: tuple[Any, ...]
) -> tuple[native.Plan, list[float], int] | None:
    """Return the program of a formula for arrays of some shapes, its numbers, and how many results it has."""
    record = _Record(len(arrays))
    outs = formula(*[_Symbol(record, ~i) for i in range(len(arrays))])
    kept = tuple([x.index for x in outs])
    operands = (*arrays, *[float] * len(record.numbers))
    plan = native.planned(shape, tuple(record.operations), operands, kept)
    return None if plan is None else (plan, record.numbers, len(kept))


def in_one_pass(formula: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
    """Return a function that computes a formula of arithmetic in one pass, where its operands are large doubles.

    Args:
      formula: takes arrays, and returns a sequence of different arrays of the shape to which they broadcast; it
        computes with ``+``, ``-``, ``*`` and ``/``.

    >>> import numpy as np
    >>> from pullback.analysis.one_pass import in_one_pass
    >>> both = in_one_pass(lambda x, y: (x + y, x * y))
    >>> [z.tolist() for z in both(np.full(1000, 2.0), np.full(1, 3.0))][1][:2]
    [6.0, 6.0]
    """

    @wraps(formula)
    def run(*arrays: Any) -> Sequence[Any]:
        for x in arrays:
            if type(x) is not np.float64:
                break
        else:
            return formula(*arrays)
        shape = arrays[0].shape
        if any(x.shape != shape for x in arrays):
            shape = np.broadcast_shapes(*[x.shape for x in arrays])
        few = native.loops is None or math.prod(shape) < SMALLEST
        if few or any(x.dtype != _DOUBLE for x in arrays):
            return formula(*arrays)
        given = [np.asarray(x) for x in arrays]
        found = _planned(formula, shape, tuple([(x.shape, x.strides, _DOUBLE) for x in given]))
        if found is None:
            return formula(*arrays)
        plan, numbers, count = found
        outs = [np.empty(shape) for _ in range(count)]
        plan.run([*given, *numbers], outs)
        return outs

    return run
