"""Rules of operations for Taylor mode, which are faster or more accurate than their derivative rules.

Taylor mode represents a value that depends on t by its Taylor coefficients at t = 0. For an operation without any of
these rules, it computes the coefficients by linearity, or from the derivative rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.trace import RuleKind
from pullback.core.types import ZERO

Coefficient = Callable[[int], Any]
"""A function that returns the coefficient of an order, at least 1, once all lower ones are known."""


class Series:
    """The Taylor coefficients of a value. ``series[k]`` is the coefficient of order k, computed at its first use.

    Attributes:
      known: the list of the coefficients computed so far, from order 0, which is the value; others may be ``ZERO``.
      next: ``next(k)`` returns the coefficient of order k, once the lower ones are known. None if the coefficients
        beyond ``known`` are zero.
      last: the highest order that will be used; 0 if that is unknown.
      rows: the known coefficients stacked in one array, cached for sums of products; or None.

    >>> from pullback.core.taylor_rules import Series
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


taylor = RuleKind("taylor", "by the jvp rule")
"""``rule(ans, *operands, **params) -> coefficient``; ``coefficient(k)`` returns the result's, of order k >= 1.

The operands and ``ans``, the result, are :class:`Series`. ``coefficient(k)`` may use coefficients of the operands up to
k, and of the result below k. With ``multiple_results``, results and coefficients are lists.
The rule itself may use only values, the coefficients of order 0. It runs with the parent of the trace current. If it
returns None, the derivative rule is used.
Such rules are the recurrences of Griewank and Walther, Evaluating Derivatives, 2nd ed., chapter 13."""

taylor_program = RuleKind("taylor_program", "like an operation without inner programs")
"""``rule(order, primals, series, **params) -> (results, series)``, for an operation that holds programs.

``series`` has, for each operand or result, the sequence of its coefficients from 1 to ``order``. The rule runs with
the parent of the trace current."""

taylor_formula = RuleKind("taylor_formula", "by the jvp rule")
"""``rule(*operands, **params) -> result``: the operation as a formula of others, which yields its coefficients.

It runs in Taylor mode, and replaces a derivative rule that would need another function for each order. Only its
coefficients of order 1 and higher are used, so that its value need not be fully accurate. Nodes of integrals, and
numbers of terms, may depend on the point by ``stop_gradient`` of the operands. The operation must have one result."""

repeats = RuleKind("repeats", "it is computed again")
"""``rule(earlier, **params) -> flag``: whether an operation of Python functions, applied before to the same operands
with the parameters ``earlier``, has the same results. A derivative rule that repeats it then reuses these."""
