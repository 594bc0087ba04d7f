"""Statistics of samples: modes, ranks and standard errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.numpy.promotion import axis_index, inexact_operand, known_int, operand
from pullback.primitives.checks import NUMBER, check_dtype
from pullback.primitives.operands import stop_gradient

POLICIES = ("propagate", "omit", "raise")
METHODS = ("average", "min", "max", "dense", "ordinal")


def _checked(name: str, x: Any, policy: str) -> Any:
    """Return a mask of the NaN in ``x``; None if ``x`` cannot hold NaN, or if ``policy`` is "raise".

    Under the policy "raise", raise an error if ``x`` holds NaN. ``name`` is the public function, for errors.
    """
    if not is_listed(policy, POLICIES):
        raise ArgumentError(f"{name}: nan_policy must be one of {', '.join(POLICIES)}, got {policy!r}")
    if not dtypes.is_inexact(x.dtype):
        return None
    missing = pnp.isnan(x)
    if policy == "raise":
        if not isinstance(x, ArrayImpl):
            raise UnsupportedArgumentError(
                f"{name}: nan_policy 'raise' cannot read the values of a traced array; check for NaN first, or use "
                f"'propagate' or 'omit'"
            )
        if bool(pnp.any(missing)):
            raise ArgumentError(f"{name}: the array contains NaN, which nan_policy 'raise' refuses")
        return None
    return missing


def _along(name: str, x: Any, axis: int | None) -> tuple[Any, int]:
    """Move an axis of ``x`` last, or flatten ``x`` if ``axis`` is None or ``x`` is a scalar.

    Return the array and the old position of the axis, which is 0 for a flattened array.
    """
    if axis is None or x.ndim == 0:
        return x.reshape(-1), 0
    position = axis_index(axis, x.ndim, name)
    return pnp.moveaxis(x, position, -1), position


class ModeResult(NamedTuple):
    """The result of :func:`mode`.

    Attributes:
      mode: the most frequent values.
      count: how often they occur.
    """

    mode: Array
    count: Array  # type: ignore[assignment]


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, the smallest if there are several.

    Args:
      a: an array of real numbers.
      axis: the axis, or None for the array as a flat one.
      nan_policy: ``"propagate"``: NaN is a value like others; ``"omit"``: it is left out; ``"raise"``: it is refused.
      keepdims: whether the result keeps the axis, with size one.

    Returns:
      The values, of the dtype of ``a``, and how often each occurs. For an empty array they are NaN and 0.

    Raises:
      ArgumentError: an unknown policy; or NaN, where the policy refuses it (a TypeError and a ValueError).
      AxisError: an axis out of range (a ValueError and an IndexError).
      UnsupportedArgumentError: the policy ``"raise"`` for a traced array (a NotImplementedError).
      OperandError: an argument is neither an array nor a number (a TypeError).

    The value is differentiated as the element is; the count has no derivative. As :func:`scipy.stats.mode`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import stats
    >>> print(*stats.mode(jnp.array([3, 1, 1, 2])))
    1 2
    """
    keepdims = flag("mode", "keepdims", keepdims)
    x = operand("mode", a)
    check_dtype("mode", NUMBER, x.dtype)
    missing = _checked("mode", x, nan_policy)
    rows, position = _along("mode", x, axis)
    if rows.shape[-1] == 0:
        empty = pnp.full(rows.shape[:-1], math.nan, dtypes.to_inexact(x.dtype))
        return _shaped(ModeResult(empty, pnp.zeros(empty.shape, empty.dtype)), x, axis, position, keepdims)
    ordered = pnp.sort(rows, -1)
    same = ordered[..., 1:] == ordered[..., :-1]
    if missing is not None:
        same = same | (pnp.isnan(ordered[..., 1:]) & pnp.isnan(ordered[..., :-1]))
    first = pnp.concatenate([pnp.ones((*ordered.shape[:-1], 1), bool), ~same], -1)
    indices = pnp.broadcast_to(pnp.arange(ordered.shape[-1]), ordered.shape)
    starts = pnp.maximum.accumulate(pnp.where(first, indices, 0), axis=-1)
    lengths = indices - starts + 1
    if missing is not None and nan_policy == "omit":
        present = ordered.shape[-1] - pnp.sum(_along("mode", missing, axis)[0], -1, keepdims=True)
        lengths = pnp.where(indices < pnp.maximum(present, 1), lengths, 0)
    best = pnp.argmax(lengths, -1, keepdims=True)
    value = pnp.take_along_axis(ordered, best, -1)[..., 0]
    count = pnp.take_along_axis(lengths, best, -1)[..., 0].astype(dtypes.default_int())
    if missing is not None and nan_policy == "omit":
        count = pnp.where(present[..., 0] > 0, count, 0)
    return _shaped(ModeResult(value, count), x, axis, position, keepdims)


def _shaped(result: ModeResult, x: Any, axis: int | None, position: int, keepdims: bool) -> ModeResult:
    if not keepdims:
        return result
    if axis is None:
        return ModeResult(*[v.reshape((1,) * x.ndim) for v in result])
    return ModeResult(*[pnp.expand_dims(v, position) for v in result])


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The ranks of the elements, from 1 on.

    Args:
      a: an array of real numbers.
      method: the ranks of equal elements: ``"average"``, ``"min"`` or ``"max"`` of those that they would have in order;
        ``"dense"``: the number of smaller values, and one; ``"ordinal"``: in the order in which they stand.
      axis: the axis along which elements are ranked, or None to rank all of them.
      nan_policy: ``"propagate"``: where one is NaN, all ranks are; ``"omit"``: the others are ranked, and NaN has
        the rank NaN; ``"raise"``: NaN is refused.

    Returns:
      An array of floats of the shape of ``a``; flat, where ``axis`` is None. They have no derivative.

    Raises:
      ArgumentError: an unknown method or policy; or NaN, where the policy refuses it (a TypeError and a ValueError).
      AxisError: an axis out of range (a ValueError and an IndexError).
      UnsupportedArgumentError: the policy ``"raise"`` for a traced array (a NotImplementedError).
      OperandError: an argument is neither an array nor a number (a TypeError).

    As :func:`scipy.stats.rankdata`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import stats
    >>> print(stats.rankdata(jnp.array([0, 2, 3, 2])))
    [1.  2.5 4.  2.5]
    """
    if not is_listed(method, METHODS):
        raise ArgumentError(f"rankdata: method must be one of {', '.join(METHODS)}, got {method!r}")
    x = operand("rankdata", a)
    check_dtype("rankdata", NUMBER, x.dtype)
    x = stop_gradient(x)
    missing = _checked("rankdata", x, nan_policy)
    rows, position = _along("rankdata", x, axis)
    order = pnp.argsort(rows, -1)
    back = pnp.argsort(order, -1)
    kind = dtypes.to_inexact(x.dtype) if dtypes.is_inexact(x.dtype) else dtypes.default_float()
    if method == "ordinal" or rows.shape[-1] == 0:
        ranks = (back + 1).astype(kind)
    else:
        ordered = pnp.take_along_axis(rows, order, -1)
        first = pnp.concatenate([pnp.ones((*rows.shape[:-1], 1), bool), ordered[..., 1:] != ordered[..., :-1]], -1)
        indices = pnp.arange(rows.shape[-1])
        low = pnp.maximum.accumulate(pnp.where(first, indices, 0), axis=-1)
        last = pnp.concatenate([first[..., 1:], pnp.ones((*rows.shape[:-1], 1), bool)], -1)
        high = pnp.flip(pnp.minimum.accumulate(pnp.flip(pnp.where(last, indices, rows.shape[-1]), -1), axis=-1), -1)
        found = {"min": low, "max": high, "average": (low + high) / 2, "dense": pnp.cumsum(first, -1) - 1}[method]
        ranks = pnp.take_along_axis(found.astype(kind) + 1, back, -1)
    if missing is not None:
        lost, _ = _along("rankdata", missing, axis)
        lost = lost if nan_policy == "omit" else pnp.any(lost, -1, keepdims=True)
        ranks = pnp.where(lost, math.nan, ranks)
    return ranks if axis is None or x.ndim == 0 else pnp.moveaxis(ranks, -1, position)


def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: the standard deviation of a sample, divided by the root of its size.

    Args:
      a: an array of real numbers; integers are converted.
      axis: the axis, or None for all elements.
      ddof: the number to subtract from the number of elements, for the variance.
      nan_policy: ``"propagate"``: a sample with NaN has the error NaN; ``"omit"``: NaN is left out; ``"raise"``: it is
        refused.
      keepdims: whether the result keeps the axis, with size one.

    Returns:
      An array of floats.

    Raises:
      ArgumentError: an unknown policy; or NaN, where the policy refuses it (a TypeError and a ValueError).
      AxisError: an axis out of range (a ValueError and an IndexError).
      ShapeError: ``ddof`` is no integer (a TypeError and a ValueError).
      UnsupportedArgumentError: the policy ``"raise"`` for a traced array (a NotImplementedError).
      OperandError: an argument is neither an array nor a number (a TypeError).

    As :func:`scipy.stats.sem`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import stats
    >>> print(f"{stats.sem(jnp.array([1.0, 2.0, 4.0])):.4f}")
    0.8819
    """
    keepdims = flag("sem", "keepdims", keepdims)
    x = inexact_operand("sem", a)
    ddof = known_int("sem", "ddof", ddof)
    missing = _checked("sem", x, nan_policy)
    if axis is not None:
        axis = axis_index(axis, x.ndim, "sem")
    if missing is not None and nan_policy == "omit":
        count = pnp.sum(~missing, axis, keepdims=keepdims).astype(x.dtype)
        return pnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / pnp.sqrt(count)
    elements = x.size if axis is None else x.shape[axis]
    return (
        pnp.std(x, axis, ddof=ddof, keepdims=keepdims) / math.sqrt(elements)
        if elements
        else pnp.std(x, axis, keepdims=keepdims)
    )
