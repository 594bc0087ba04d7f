"""How an operation is linear: in which operands, and what stands beside these.

A derivative rule says what an operation does to tangents. What maps something else in their place, without the rule,
asks here: coefficients of a power series, all rows of a Jacobian at once. An operation that is linear in each of two
operands, as a product is, keeps the value of the other. One that is linear in several jointly, as a sum or a scatter
is, keeps none of theirs: zeros stand in the place of those that are constant. And a constant that the parameters hold,
as a gather's fill value, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr_text import holds_programs
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive

linear_operands = RuleKind("linear_operands", "as ``transpose`` says")
"""``rule(moving, count, **params) -> positions``: in which of ``count`` operands an operation is linear, jointly, where
those at the positions ``moving`` are not constant; None if it is not linear in these. It stands in the place of
``linear_in`` (see ``Primitive.transpose``) for operations where that depends on the operands or parameters."""

homogeneous = RuleKind("homogeneous", "the parameters as they are")
"""``rule(**params) -> params``: of an operation whose parameters may add a constant, those that add none."""


class LinearPart(NamedTuple):
    """What an operation does to the operands that are not constant.

    Attributes:
      joint: the positions in which it is linear, jointly. Zeros take the place of those of them that are constant;
        operands at other positions keep their values.
      params: its parameters, which add no constant.
    """

    joint: Sequence[int]
    params: dict[str, Any]


def linear_part(primitive: Primitive, moving: Sequence[int], count: int, params: dict[str, Any]) -> LinearPart | None:
    """The linear part of an operation that is linear, or affine, in some operands together; None of any other.

    Args:
      primitive, params: the operation. One that holds programs has rules that say how these are transformed.
      moving: the positions of the operands that are not constant.
      count: how many operands there are.

    >>> from pullback.primitives.elementwise import add_p, mul_p
    >>> [linear_part(p, [0], 2, {}) for p in (add_p, mul_p)]
    [LinearPart(joint=range(0, 2), params={}), LinearPart(joint=[0], params={})]
    >>> print(linear_part(mul_p, [0, 1], 2, {}))
    None
    """
    if primitive.transpose_rule is None or any(map(holds_programs, params.values())):
        return None
    rule = linear_operands.of(primitive)
    joint: Sequence[int] | None
    if rule is not None:
        joint = rule(moving, count, **params)
    elif primitive.linear_in is None:
        joint = range(count)
    elif primitive.linear_in == "each":
        joint = moving if len(moving) == 1 else None
    else:
        joint = primitive.linear_in  # type: ignore[assignment]
    if joint is None or not all(map(joint.__contains__, moving)):
        return None
    without = homogeneous.of(primitive)
    return LinearPart(joint, params if without is None else without(**params))
