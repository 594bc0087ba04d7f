"""Floor division of floats and its remainder: ``floor_div`` and ``floor_rem``.

Quotients have the special values of NumPy, Python and JAX: -5 divided by infinity, a little below zero, is -1, and
infinity divided by 5 is NaN, where the array API standard requires -0 and infinity. As the standard requires, a zero
quotient has the sign of ``div``, and a remainder the sign of the divisor, even if it is zero. For integers, whose
division by zero differs between host and compiler, ``pullback.numpy.ufuncs`` composes both functions from others.
"""

from __future__ import annotations

from typing import Any

from pullback.backends.host import rules as host
from pullback.core.array import as_array
from pullback.core.check_rules import Failure, checks
from pullback.core.errors import DivisionCheckError
from pullback.primitives.checks import FLOAT
from pullback.primitives.declare import COMPOSED, elementwise, spread
from pullback.primitives.elementwise import abs, and_p, div, eq_p, floor_p, lt, mul, ne_p, neg, rem_p, sign, sub, where


def is_above(rest: Any, y: Any) -> Any:
    """Return whether the truncated quotient of a division is one above the floor of the quotient.

    ``rest`` is the remainder of the truncated division, and ``y`` is the divisor.
    """
    return and_p.bind(ne_p.bind(lt(rest, 0), lt(y, 0)), ne_p.bind(rest, 0))


def _slope(x: Any, y: Any) -> Any:
    """Return the derivative of the remainder of ``x`` and ``y`` with respect to ``y``: minus the floor of ``x / y``."""
    quotient = div(x, y)
    towards_zero = mul(sign(quotient), floor_p.bind(abs(quotient)))
    return neg(where(is_above(rem_p.bind(x, y), y), sub(towards_zero, 1), towards_zero))


floor_div_p = elementwise("floor_div", of=FLOAT, arity=2, host=host.floor_div, hlo=COMPOSED)
floor_rem_p = elementwise(
    "floor_rem", of=FLOAT, arity=2, host=host.floor_rem, hlo=COMPOSED,
    jvp=(lambda t, x, y, ans: spread(t, x, ans), lambda t, x, y, ans: mul(t, _slope(x, y))),
)  # fmt: skip


@checks(floor_div_p)
def _floor_div_checks(ans: Any, x: Any, y: Any) -> list[Failure]:
    return [Failure(DivisionCheckError, eq_p.bind(as_array(y), 0), "division by zero")]
