"""In which operands an operation is linear, jointly or each alone.

Coefficients of power series, and all rows of a Jacobian together, pass through a linear operation without its
derivative rule. If it is linear in each of two operands, as a product is, the other operand keeps its value. If it is
linear in several jointly, as a sum or a scatter is, zeros replace the operands that are constant. A constant among the
parameters, such as a gather's fill value, is replaced by zero too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr_text import holds_programs
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive

linear_operands = RuleKind("linear_operands", "from the ``transpose`` rule")
"""``rule(moving, count, **params) -> positions``: the positions, among ``count`` operands, in which an operation is
jointly linear if those at ``moving`` are not constant; None if it is not linear in these. It replaces ``linear_in``
(see ``Primitive.transpose``) for operations where the answer depends on the operands or parameters."""

homogeneous = RuleKind("homogeneous", "the parameters are unchanged")
"""``rule(**params) -> params``: for an operation whose parameters may add a constant, parameters that add zero."""


class LinearPart(NamedTuple):
    """The linear part of an operation that is affine in some operands: the operation without its constant term.

    To apply the linear part to some operands, bind the operation with ``params``, and pass zeros for the other operands
    at the positions ``joint``. Operands at all other positions keep their values.

    Attributes:
      joint: the positions of the operands in which the operation is jointly linear.
      params: the operation's parameters, changed so that they add no constant: a fill value becomes 0.
    """

    joint: Sequence[int]
    params: dict[str, Any]


def linear_part(primitive: Primitive, moving: Sequence[int], count: int, params: dict[str, Any]) -> LinearPart | None:
    """Return the linear part of an operation as a function of the operands at ``moving``; None if there is none.

    There is none if the operation is neither jointly linear nor affine in these operands, or if it holds programs, as a
    loop does.

    Args:
      primitive: the operation.
      moving: the positions of the operands that are not constant.
      count: the number of all operands.
      params: the parameters of the operation.

    >>> from pullback import lax
    >>> from pullback.core.linearity import linear_part
    >>> [linear_part(p, [0], 2, {}) for p in (lax.add_p, lax.mul_p)]
    [LinearPart(joint=range(0, 2), params={}), LinearPart(joint=[0], params={})]
    >>> print(linear_part(lax.mul_p, [0, 1], 2, {}))
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
