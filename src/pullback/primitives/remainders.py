"""Division of floats rounded down, and what it leaves: ``floor_div`` and ``floor_rem``.

Special values of the quotient are those of NumPy, Python and JAX: -5 divided by infinity, a little below zero, is -1,
and infinity divided by 5 is NaN. The array API standard has -0 and infinity there. A quotient of zero has the sign of
that of ``div``, and the remainder that of the divisor, as a zero too, as the standard says. Of integers, whose division
by zero differs between the two ends, both functions are formulas of others, in ``pullback.numpy.ufuncs``.
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
    """Where the quotient rounded towards zero, which leaves ``rest``, is one more than that rounded down."""
    return and_p.bind(ne_p.bind(lt(rest, 0), lt(y, 0)), ne_p.bind(rest, 0))


def _slope(x: Any, y: Any) -> Any:
    """The derivative of the remainder with respect to the divisor: minus the quotient, which is finite or NaN."""
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
