"""Reductions of ragged arrays: each is written once, for the elements of every row and for all elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback import ops
from pullback.core import dtypes
from pullback.core.array import Array
from pullback.core.errors import DtypeError
from pullback.primitives.operands import stop_gradient
from pullback.ragged import layout
from pullback.scipy.special import logsumexp


def unknown(dtype: Any) -> Any:
    """Return what stands for a value that is not known: NaN, the lowest integer, or False."""
    if dtypes.is_inexact(dtype):
        return np.asarray(np.nan, dtype)
    return np.asarray(np.iinfo(dtype).min if dtypes.is_integer(dtype) else False, dtype)


class OfRows:
    """Reductions of the values of each row. Padding counts in none.

    Args:
      numbers: the row of each value.
      padding: where values are padding, or None.
      lengths: the length of each row.
    """

    def __init__(self, numbers: Any, padding: Any, lengths: Any) -> None:
        self.numbers, self.padding, self.lengths = numbers, padding, lengths

    def _by(self, function: Callable[..., Any], x: Any) -> Any:
        return function(x, self.numbers, len(self.lengths), indices_are_sorted=True)

    def sum(self, x: Any) -> Any:
        return self._by(ops.segment_sum, x)

    def prod(self, x: Any) -> Any:
        return self._by(ops.segment_prod, x)

    def max(self, x: Any) -> Any:
        return self._by(ops.segment_max, x)

    def min(self, x: Any) -> Any:
        return self._by(ops.segment_min, x)

    def back(self, x: Any) -> Any:
        """Return for each value the result of its row."""
        if len(self.lengths):
            return x.take(self.numbers, axis=0, mode="clip")
        return pnp.zeros((len(self.numbers), *x.shape[1:]), x.dtype)

    def count(self, x: Any) -> Any:
        """Return the number of elements of each row, of a shape that broadcasts against a result."""
        return layout.spread(pnp.asarray(self.lengths), x)


class OfAll:
    """Reductions of all values to a number. Padding counts in none.

    Args:
      padding: where values are padding, or None.
      lengths: the length of each row.
    """

    def __init__(self, padding: Any, lengths: Any) -> None:
        self.padding, self.lengths = padding, lengths

    def _with(self, x: Any, neutral: Any) -> Any:
        return x if self.padding is None else pnp.where(self.padding, pnp.asarray(neutral, x.dtype), x)

    def sum(self, x: Any) -> Any:
        return pnp.sum(self._with(x, 0))

    def prod(self, x: Any) -> Any:
        return pnp.prod(self._with(x, 1))

    def max(self, x: Any) -> Any:
        low = _bound(x.dtype, -1)
        return pnp.max(self._with(x, low), initial=low)

    def min(self, x: Any) -> Any:
        high = _bound(x.dtype, 1)
        return pnp.min(self._with(x, high), initial=high)

    def back(self, x: Any) -> Any:
        """Return for each value the result of all."""
        return x

    def count(self, x: Any) -> Any:
        """Return the number of all elements."""
        return pnp.sum(pnp.asarray(self.lengths)) * math.prod(x.shape[1:])


def _bound(dtype: Any, sign: int) -> Any:
    if dtypes.is_inexact(dtype):
        return sign * math.inf
    if not dtypes.is_integer(dtype):
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _summed(x: Any) -> Any:
    """Convert booleans and small integers to the dtype in which NumPy sums them."""
    return x.astype(pnp.sum(pnp.zeros(0, x.dtype)).dtype)


def _mean(over: Any, x: Any) -> Any:
    x = x if dtypes.is_inexact(x.dtype) else x.astype(pnp.result_type(x.dtype, float))
    total = over.sum(x)
    return total / over.count(x if total.ndim == 0 else total).astype(total.real.dtype)


def _var(over: Any, x: Any) -> Any:
    off = _inside(over, x - over.back(_mean(over, x)))
    return _mean(over, (off * off.conj()).real if dtypes.is_complex(off.dtype) else off * off)


def _std(over: Any, x: Any) -> Any:
    return pnp.sqrt(_var(over, x))


def _any(over: Any, x: Any) -> Any:
    return over.sum((x != 0).astype(np.int32)) > 0


def _all(over: Any, x: Any) -> Any:
    return over.sum((x == 0).astype(np.int32)) == 0


def _inside(over: Any, x: Any) -> Any:
    """Return the values with zeros instead of padding, whose numbers might overflow where they are unused."""
    return x if over.padding is None else pnp.where(over.padding, pnp.zeros((), x.dtype), x)


def _shifted(over: Any, x: Any) -> tuple[Any, Any]:
    """Return the values minus the greatest of their row, and the greatest; 0 where that is infinite."""
    if not dtypes.is_inexact(x.dtype):
        x = x.astype(pnp.result_type(x.dtype, float))
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"logsumexp and softmax of a ragged array need real values, got {x.dtype}")
    top = stop_gradient(over.max(_inside(over, x)))
    top = pnp.where(pnp.isfinite(top), top, pnp.zeros((), top.dtype))
    return _inside(over, x - over.back(top)), top


def _logsumexp(over: Any, x: Any) -> Any:
    moved, top = _shifted(over, x)
    return pnp.log(over.sum(pnp.exp(moved))) + top


def softmax(over: OfRows, x: Any) -> Any:
    """Return exp(x) divided by its sum over the row."""
    grown = pnp.exp(_shifted(over, x)[0])
    return _inside(over, grown / over.back(over.sum(grown)))


def log_softmax(over: OfRows, x: Any) -> Any:
    """Return the logarithm of :func:`softmax`."""
    moved, _ = _shifted(over, x)
    return _inside(over, moved - over.back(pnp.log(over.sum(pnp.exp(moved)))))


OVER: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda over, x: over.sum(_summed(x)),
    "prod": lambda over, x: over.prod(_summed(x)),
    "max": lambda over, x: over.max(x),
    "min": lambda over, x: over.min(x),
    "mean": _mean,
    "var": _var,
    "std": _std,
    "any": _any,
    "all": _all,
    "logsumexp": _logsumexp,
}
"""Each reduction, of the values that an ``OfRows`` or an ``OfAll`` reduces."""


def along_element(name: str, values: Array, axis: int, keepdims: bool) -> Any:
    """Reduce the values along an axis of their elements, which have one shape."""
    function = logsumexp if name == "logsumexp" else getattr(pnp, name)
    return function(values, axis=axis, keepdims=keepdims)
