"""Integers of 2 and 4 bits on the host: NumPy has few operations on them, so rules compute in 8 bits and truncate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import dtypes

Rule = Callable[..., Any]


def usual(rule: Any) -> Any:
    """Return the host rule that a rule of this module extends, for dtypes that are not narrow; or the rule itself."""
    return getattr(rule, "usual", rule)


def in_eight_bits(rule: Rule) -> Rule:
    """Extend a host rule to integers of 2 and 4 bits: compute in 8 bits, and convert the result back."""

    def widened(*values: Any, **params: Any) -> Any:
        narrow = _narrow(values)
        if narrow is None:
            return rule(*values, **params)
        return rule(*[_wide(v, narrow) for v in values], **params).astype(narrow)

    widened.usual = rule  # type: ignore[attr-defined]
    return widened


def on_bits(rule: Rule) -> Rule:
    """Extend a rule on bits to integers of 2 and 4 bits: widen the first operand to 8 bits; the new bits are 0."""

    def widened(x: Any, *others: Any) -> Any:
        narrow = _narrow((x, *others))
        if narrow is None:
            return rule(x, *others)
        return rule(_bits(x, narrow), *[_wide(v, narrow).view(np.uint8) for v in others]).astype(narrow)

    widened.usual = rule  # type: ignore[attr-defined]
    return widened


def with_sign(rule: Rule) -> Rule:
    """Extend a rule that reads the highest bit of its first operand as a sign to integers of 2 and 4 bits.

    The operand is widened to 8 bits by copies of its highest bit.
    """

    def widened(x: Any, *others: Any) -> Any:
        narrow = _narrow((x, *others))
        if narrow is None:
            return rule(x, *others)
        spare = np.int8(8 - dtypes.itemsize_bits(narrow))
        signed = (_bits(x, narrow).view(np.int8) << spare) >> spare
        return rule(signed, *[_wide(v, narrow).view(np.int8) for v in others]).view(np.uint8).astype(narrow)

    widened.usual = rule  # type: ignore[attr-defined]
    return widened


def leading_zeros(rule: Rule) -> Rule:
    """Extend the rule that counts leading zeros to integers of 2 and 4 bits.

    Counts in 8 bits, and subtracts the number of added bits.
    """

    def widened(x: Any) -> Any:
        narrow = _narrow((x,))
        if narrow is None:
            return rule(x)
        return (rule(_bits(x, narrow)) - np.uint8(8 - dtypes.itemsize_bits(narrow))).astype(narrow)

    widened.usual = rule  # type: ignore[attr-defined]
    return widened


def _bits(x: Any, narrow: np.dtype[Any]) -> Any:
    return _wide(x, narrow).view(np.uint8) & np.uint8((1 << dtypes.itemsize_bits(narrow)) - 1)


def _narrow(values: tuple[Any, ...]) -> np.dtype[Any] | None:
    """The dtype of 2 or 4 bits among the dtypes of operands; None if there is none."""
    for v in values:
        dtype = getattr(v, "dtype", None)
        if dtype is not None and dtype.kind == "V" and dtypes.is_integer(dtype):
            return dtype  # type: ignore[no-any-return]
    return None


def _wide(value: Any, narrow: np.dtype[Any]) -> Any:
    """Widen an operand to 8 bits; a Python number is first converted to the dtype ``narrow``, of 2 or 4 bits."""
    if getattr(value, "dtype", None) == np.bool_:
        return value
    wide = np.uint8 if dtypes.iinfo(narrow).min == 0 else np.int8
    return np.asarray(value, narrow).astype(wide)
