"""Symbolic sizes in programs: int32 scalars, computed from the sizes of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.dims import Dim, Function, Size, Variable, any_symbolic, partial_solution
from pullback.core.types import Shape

_INDEX = np.dtype(np.int32)
_BINARY = {"max": "stablehlo.maximum", "min": "stablehlo.minimum"}


def sizes_of_arguments(hlo: Any, args: Sequence[Any]) -> set[Variable]:
    """Write the computation of the variables in symbolic sizes from the shapes of a function's arguments.

    Args:
      hlo: the builder of the function. Its ``sizes`` become the values of the variables.
      args: the arguments.

    Returns:
      The variables that the shapes do not determine.
    """
    expected = [("", n) for x in args for n in x.shape]
    axes = [(x, i) for x in args for i in range(x.ndim)]

    def solved(have: Any, rest: Size, coefficient: int, found: dict[Variable, Any]) -> Any:
        x, i = have
        hlo.sizes = found
        value = hlo.op("stablehlo.get_dimension_size", [x], (), _INDEX, f"dimension = {i} : i64")
        if rest != 0:
            value = hlo.elementwise("stablehlo.subtract", value, size_value(hlo, rest))
        return (
            value if coefficient == 1 else hlo.elementwise("stablehlo.divide", value, hlo.number(coefficient, _INDEX))
        )

    hlo.sizes, unsolved = partial_solution(expected, axes, "", solved)
    return unsolved


def size_value(hlo: Any, size: Size) -> Any:
    """Write the computation of a size, which may be symbolic, as an int32 scalar."""
    if not isinstance(size, Dim):
        return hlo.number(size, _INDEX)
    total = None
    for monomial, c in size.terms:
        term = None if c == 1 and monomial else hlo.number(c, _INDEX)
        for factor, power in monomial:
            value = hlo.variable_size(factor) if isinstance(factor, Variable) else _function_value(hlo, factor)
            for _ in range(power):
                term = value if term is None else hlo.elementwise("stablehlo.multiply", term, value)
        total = term if total is None else hlo.elementwise("stablehlo.add", total, term)
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
    """Write the computation of a shape, whose sizes may be symbolic, as an int32 array."""
    if not any(isinstance(n, Dim) for n in shape):
        return hlo.array(np.array(shape, _INDEX))
    sizes = [hlo.reshape(size_value(hlo, n), (1,)) for n in shape]
    return sizes[0] if len(sizes) == 1 else hlo.concatenate(sizes, 0)


def with_shapes(hlo: Any, count: int, results: Sequence[tuple[Shape, Any]], more: str) -> tuple[list[Any], str]:
    """Write the shapes of the results of a runtime function as further operands, if one of them is symbolic.

    Args:
      hlo: the builder.
      count: how many operands there are already.
      results: the shape and dtype of each result.
      more: attributes of the call as text, among them perhaps the layouts of the operands.

    Returns:
      The operands, and ``more`` with what the further operands need.
    """
    if not any(any_symbolic(shape) for shape, _ in results):
        return [], more
    shapes = [shape_value(hlo, shape) for shape, _ in results]
    positions = ", ".join(str(count + i) for i in range(len(shapes)))
    known = f"indices_of_shape_operands = dense<[{positions}]> : tensor<{len(shapes)}xi64>"
    layouts = ", dense<0> : tensor<1xindex>" * len(shapes)
    more = more.replace("], result_layouts", f"{layouts}], result_layouts")
    return shapes, f"{more}, {known}" if more else known
