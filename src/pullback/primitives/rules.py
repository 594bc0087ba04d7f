"""Rules that families of primitives share, and that bind no other primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.trace import Primitive, RuleKind
from pullback.core.types import ZERO, MappedAxis, Shape
from pullback.core.zeros import instantiate

axis_kept = RuleKind(
    "axis_kept", "elementwise operations: by their trait; others: the Laplacian has all directions for each element"
)
"""``rule(axis, operand, *shapes, **params) -> axis``: the axis of each result that corresponds to axis ``axis`` of
operand number ``operand``, if the operation treats its indices separately, else None. Elementwise operations need no
rule."""


unsummed = RuleKind("unsummed", "the sum is computed for each direction")
"""``rule(axis, operand, *shapes, **params) -> (params, axis)``, for a linear operation that may sum over axis ``axis``
of operand number ``operand``: the parameters with which it omits that sum, and the position of the axis in the result;
or None."""


axis_divided = RuleKind("axis_divided", "operands must not be sharded along axes whose indices meet")
"""``rule(axis, operand, *shapes, **params) -> axis``: for axis ``axis`` of operand number ``operand``, whose indices
meet in the operation: the axis of each result that a mesh divides if it divides this axis; ``GONE`` if the results lack
the axis, and None if the operation refuses to work along a divided axis."""


def stays(axis: int, operand: int, *shapes: Shape, **params: Any) -> int:
    """The rule ``axis_divided`` of an operation that moves elements along a divided axis, which stays where it is."""
    return axis


GONE = -1
"""Says that an operation takes the elements along a divided axis together."""


sharding_rule = RuleKind("sharding_rule", "the result's sharding follows from the axis map")
"""``rule(operands, results, **params) -> entries``: for each result the entries of its sharding, a list with one for
each axis; or None if the types ``results``, those of abstract evaluation, have their shardings. ``operands`` are types.
The rule may raise a ``ShardingTypeError``."""


def as_inferred(operands: Any, results: Any, **params: Any) -> None:
    """The ``sharding_rule`` of an operation whose abstract evaluation returns types with their shardings."""


def as_moved(operands: Any, results: Any, **params: Any) -> None:
    """The ``sharding_rule`` of an operation that moves a value from any sharding to the one of its parameters.

    Its operand may be unreduced: then it computes the sums.
    """


class ZeroTangents:
    """The jvp rule of an operation whose tangents are zero: it is constant almost everywhere or not differentiable."""

    __slots__ = ("primitive",)

    def __init__(self, primitive: Primitive) -> None:
        self.primitive = primitive

    def __call__(self, primals: Any, tangents: Any, **params: Any) -> Any:
        out = self.primitive.bind(*primals, **params)
        return out, [ZERO] * len(out) if self.primitive.multiple_results else ZERO


jvp_zero = ZeroTangents


def jvp_linear(p: Primitive) -> Callable[..., Any]:
    """Make the jvp rule of ``p``, an operation that is linear in its only operand: apply ``p`` to the tangent too."""

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        return p.bind(*primals, **params), p.bind(*tangents, **params)

    return rule


def jvp_linear_in(p: Primitive, *positions: int) -> Callable[..., Any]:
    """Make the jvp rule of ``p``, an operation that is jointly linear in the operands at ``positions`` (default: all).

    The rule applies ``p`` to the tangents of these operands. The other operands must not have tangents.
    """

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        out = p.bind(*primals, **params)
        moved, constant = list(primals), True
        for i in positions or range(len(primals)):
            moved[i] = tangents[i]
            constant = constant and tangents[i] is ZERO
        if constant:
            return out, [ZERO] * len(out) if p.multiple_results else ZERO
        for i, t in enumerate(moved):
            if t is ZERO:
                moved[i] = instantiate(ZERO, primals[i])
        return out, p.bind(*moved, **params)

    return rule


def batch_unary(p: Primitive) -> Callable[..., Any]:
    """Make the batching rule of ``p``, an elementwise operation with one operand: the mapped axis stays where it is."""

    def rule(axis: MappedAxis, args: Any, dims: Any, **params: Any) -> Any:
        return p.bind(*args, **params), dims[0]

    return rule
