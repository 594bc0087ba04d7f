"""Symbolic sizes in programs: numbers of 32 bits, computed from the sizes of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.dims import Dim, Function, Size, Variable, partial_solution
from pullback.core.types import Shape

_INDEX = np.dtype(np.int32)
_BINARY = {"max": "stablehlo.maximum", "min": "stablehlo.minimum"}


def sizes_of_arguments(hlo: Any, args: Sequence[Any]) -> set[Variable]:
    """Compute the sizes of the names in the shapes of a function's arguments.

    Args:
      hlo: the builder of the function, which knows the sizes from then on.
      args: the arguments.

    Returns:
      The names whose sizes do not follow.
    """
    expected = [("", n) for x in args for n in x.shape]
    given = [(x, i) for x in args for i in range(x.ndim)]

    def solved(have: Any, rest: Size, coefficient: int, found: dict[Variable, Any]) -> Any:
        x, i = have
        hlo.sizes = found
        value = hlo.op("stablehlo.get_dimension_size", [x], (), _INDEX, f"dimension = {i} : i64")
        if rest != 0:
            value = hlo.elementwise("stablehlo.subtract", value, size_value(hlo, rest))
        return (
            value if coefficient == 1 else hlo.elementwise("stablehlo.divide", value, hlo.number(coefficient, _INDEX))
        )

    hlo.sizes, left = partial_solution(expected, given, "", solved)
    return left


def size_value(hlo: Any, size: Size) -> Any:
    """A size as a number of 32 bits."""
    if not isinstance(size, Dim):
        return hlo.number(size, _INDEX)
    total = None
    for monomial, c in size.terms:
        part = None if c == 1 and monomial else hlo.number(c, _INDEX)
        for factor, power in monomial:
            value = hlo.variable_size(factor) if isinstance(factor, Variable) else _function_value(hlo, factor)
            for _ in range(power):
                part = value if part is None else hlo.elementwise("stablehlo.multiply", part, value)
        total = part if total is None else hlo.elementwise("stablehlo.add", total, part)
    return total


def _function_value(hlo: Any, function: Function) -> Any:
    x, y = (size_value(hlo, operand) for operand in function.operands)
    if function.name in _BINARY:
        return hlo.elementwise(_BINARY[function.name], x, y)
    quotient, rest = hlo.elementwise("stablehlo.divide", x, y), hlo.elementwise("stablehlo.remainder", x, y)
    zero = hlo.number(0, _INDEX)
    other_sign = hlo.compare(
        hlo.elementwise("stablehlo.multiply", rest, y), zero, "LT"
    )  # rounded towards zero, not down
    if function.name == "mod":
        return hlo.select(other_sign, hlo.elementwise("stablehlo.add", rest, y), rest)
    return hlo.select(other_sign, hlo.elementwise("stablehlo.subtract", quotient, hlo.number(1, _INDEX)), quotient)


def shape_value(hlo: Any, shape: Shape) -> Any:
    """A shape as an array of numbers of 32 bits."""
    if not any(isinstance(n, Dim) for n in shape):
        return hlo.array(np.array(shape, _INDEX))
    parts = [hlo.reshape(size_value(hlo, n), (1,)) for n in shape]
    return parts[0] if len(parts) == 1 else hlo.concatenate(parts, 0)
