"""What operations tell Taylor mode, where their derivative rules would do, but cost more or be less exact.

A value that depends on t is there its Taylor coefficients at t = 0. An operation without any of these rules has its
coefficients by its linearity, or from its derivative rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.trace import RuleKind
from pullback.core.types import ZERO

Coefficient = Callable[[int], Any]
"""Returns the coefficient of an order, at least 1, when all below it are known."""


class Series:
    """The Taylor coefficients of a value, each computed when it is first asked for: ``series[k]``.

    Attributes:
      known: the first coefficients, of which the first is the value; others may be ``ZERO``.
      next: returns the first coefficient that is not known; None if all others are zero.
      last: the order of the last coefficient that will be asked for; 0 where that is not known.
      rows: what sums of products keep of the first coefficients, stacked.

    >>> powers_of_two = Series([1], lambda k: 2 * powers_of_two[k - 1])
    >>> powers_of_two[10]
    1024
    """

    __slots__ = ("known", "last", "next", "rows")

    def __init__(self, known: list[Any], next: Coefficient | None = None) -> None:
        self.known = known
        self.next = next
        self.last = 0
        self.rows: Any = None

    def __getitem__(self, k: int) -> Any:
        known = self.known
        if self.next is None:
            return known[k] if k < len(known) else ZERO
        while len(known) <= k:
            known.append(self.next(len(known)))
        return known[k]


taylor = RuleKind("taylor", "by the derivative rule, again for each order")
"""``rule(ans, *operands, **params) -> coefficient``, a function from an order, at least 1, to the result's coefficient.

Operands are :class:`Series`, and so is ``ans``, the result. When the coefficient of order k is asked for, those of the
operands may be asked for up to k, and those of the result below k. With ``multiple_results`` there is a list of each.
The rule itself may only ask for values, those of order 0. It runs with the parent of the trace current. It may return
None, which leaves an operation to its derivative rule.
Such rules are the recurrences of Griewank and Walther, Evaluating Derivatives, 2nd ed., chapter 13."""

taylor_program = RuleKind("taylor_program", "as an operation without programs")
"""``rule(order, primals, series, **params) -> (results, series)``, for an operation that holds programs.

For each operand and result, ``series`` has a sequence of its coefficients from 1 to ``order``. The rule runs with the
parent of the trace current."""

taylor_formula = RuleKind("taylor_formula", "by the derivative rule, again for each order")
"""``rule(*operands, **params) -> result``: the operation as a formula of others, of which it has the coefficients.

It runs in Taylor mode, and stands in the place of a derivative rule that asks for another function in each order: what
a formula costs grows as its operations do. Its own value is not used, so that it need only be as exact as coefficients
have to be. Nodes of integrals, and numbers of terms, may depend on the point by ``stop_gradient`` of the operands. The
operation may have one result only."""

repeats = RuleKind("repeats", "it is computed again")
"""``rule(earlier, **params) -> flag``: whether an operation of Python functions is one that was done before to the same
operands, with the parameters ``earlier``. A derivative rule that computes it again is then given those results."""
