"""Known ways to compute the same without the loss: a rule for the operation at the root of an expression.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, SIAM 2002, chapter 1;
M. Mächler, Accurately computing log(1 - exp(-|a|)), 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.analysis.expressions import Made, number, plain, same
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.linalg.contraction import dot_general_p
from pullback.primitives.linalg.determinants import det_p
from pullback.primitives.linalg.lu import linear_solve_p
from pullback.primitives.sums import reduce_sum_p

rewriting = RuleKind("rewriting", "no advice of `analysis.precision`")
"""``rule(made) -> advice``: how to compute an expression without loss; None where the rule does not match.

The operation is the last one of the expression ``made``, a :class:`Made`.
"""


def of(x: Any, *primitives: Primitive) -> list[Any] | None:
    """Return the operands of an expression if its last operation is one of some; otherwise None."""
    x = plain(x)
    return x.operands if type(x) is Made and x.primitive in primitives else None


def is_number(x: Any, value: float) -> bool:
    """Whether an operand is a certain number."""
    return number(x) == value


def _squared(x: Any) -> Any:
    """Return the expression whose square an expression is; None if it is none."""
    x = plain(x)
    if type(x) is not Made:
        return None
    power = x.primitive is ops.integer_pow_p and x.params.get("y") == 2
    product = x.primitive is ops.mul_p and same(*x.operands)
    return x.operands[0] if power or product or x.primitive is ops.square_p else None


def _either(operands: list[Any], test: Callable[[Any], bool]) -> tuple[Any, Any] | None:
    """Return the operand that passes a test, and the other; None if no operand does."""
    x, y = operands
    return (x, y) if test(x) else (y, x) if test(y) else None


@rewriting(ops.log_p)
def _log(made: Made) -> str | None:
    (x,) = made.operands
    if summed := of(x, reduce_sum_p):
        return "log(sum(exp(x))) is logsumexp(x) (pullback.nn.logsumexp)" if of(summed[0], ops.exp_p) else None
    if terms := of(x, ops.add_p):
        if all(of(t, ops.exp_p) for t in terms):
            return "log(exp(x) + exp(y)) is jnp.logaddexp(x, y)"
        if found := _either(terms, lambda t: is_number(t, 1)):
            return "log(1 + exp(x)) is nn.softplus(x)" if of(found[1], ops.exp_p) else "log(1 + x) is jnp.log1p(x)"
        if any(of(t, ops.sqrt_p) for t in terms):
            return "log(x + sqrt(x * x + 1)) is jnp.arcsinh(x), log(x + sqrt(x * x - 1)) is jnp.arccosh(x)"
    if (terms := of(x, ops.sub_p)) and is_number(terms[0], 1):
        if of(terms[1], ops.exp_p):
            return "log(1 - exp(x)) is jnp.log(-jnp.expm1(x)) for x > -log(2), and jnp.log1p(-jnp.exp(x)) below"
        return "log(1 - x) is jnp.log1p(-x)"
    if quotient := of(x, ops.div_p, ops.mul_p):
        if any(of(t, ops.exp_p) for t in quotient):
            return "log(softmax(x)) is nn.log_softmax(x), x - logsumexp(x)"
        if of(x, ops.div_p):
            return "log(x / y) is jnp.log1p((x - y) / y) where x is close to y"
    return _log_of_function(x)


def _log_of_function(x: Any) -> str | None:
    """Return the advice for the logarithm of a function that has a logarithm of its own."""
    if of(x, ops.logistic_p):
        return "log(sigmoid(x)) is nn.log_sigmoid(x)"
    if of(x, det_p):
        return "log(det(a)) is jnp.linalg.slogdet(a)[1]"
    if of(x, ops.ndtr_p):
        return "log(ndtr(x)) is scipy.special.log_ndtr(x)"
    if of(x, reductions.reduce_prod_p):
        return "log(prod(x)) is jnp.sum(jnp.log(x)): add logarithms, as for likelihoods"
    if of(x, ops.exp_p):
        return "log(exp(x)) is x"
    return None


@rewriting(ops.sub_p)
def _sub(made: Made) -> str | None:
    x, y = made.operands
    if is_number(y, 1) and (advice := _minus_one(x)):
        return advice
    if is_number(x, 1) and (advice := _one_minus(y)):
        return advice
    same_function = type(plain(x)) is Made and type(plain(y)) is Made and plain(x).primitive is plain(y).primitive
    if same_function and (advice := _of_two(plain(x).primitive)):
        return advice
    if of(y, ops.sqrt_p) or of(x, ops.sqrt_p):
        return "x - sqrt(y) is (x * x - y) / (x + sqrt(y)): a root of a quadratic from the other one, r, is c / (a * r)"
    if _squared(y) is not None:
        if _is_mean(x) or _is_mean(_squared(y)):
            return "mean(x * x) - mean(x)**2 is jnp.var(x): subtract the mean first"
        if _squared(x) is not None:
            return "x * x - y * y is (x - y) * (x + y)"
    if of(x, ops.mul_p) and of(y, ops.mul_p):
        return "a * b - c * d: compute the products in a wider dtype, or as a sum of products with rounding errors"
    if same(y, _inner(x)) or same(x, _inner(y)):
        return "f(x) - x: sum the terms of the series of f without the first, where x is small"
    return None


def _inner(x: Any) -> Any:
    x = plain(x)
    return x.operands[0] if type(x) is Made and len(x.operands) == 1 else None


def _is_mean(x: Any) -> bool:
    quotient = of(x, ops.div_p, ops.mul_p)
    return of(x, reduce_sum_p) is not None or (quotient is not None and any(of(t, reduce_sum_p) for t in quotient))


def _minus_one(x: Any) -> str | None:
    """Return the advice for ``x - 1``."""
    if of(x, ops.exp_p):
        return "exp(x) - 1 is jnp.expm1(x)"
    if of(x, ops.pow_p, ops.integer_pow_p):
        return "(1 + x)**n - 1 is jnp.expm1(n * jnp.log1p(x))"
    if of(x, ops.cosh_p):
        return "cosh(x) - 1 is 2 * jnp.sinh(x / 2)**2"
    if of(x, ops.sqrt_p):
        return "sqrt(1 + x) - 1 is x / (sqrt(1 + x) + 1)"
    return None


def _one_minus(x: Any) -> str | None:
    """Return the advice for ``1 - x``."""
    if of(x, ops.cos_p):
        return "1 - cos(x) is 2 * jnp.sin(x / 2)**2"
    if of(x, ops.exp_p):
        return "1 - exp(x) is -jnp.expm1(x)"
    if of(x, ops.logistic_p):
        return "1 - sigmoid(x) is nn.sigmoid(-x)"
    if of(x, ops.erf_p):
        return "1 - erf(x) is scipy.special.erfc(x)"
    if of(x, ops.ndtr_p):
        return "1 - ndtr(x) is scipy.special.ndtr(-x)"
    if of(x, ops.tanh_p):
        return "1 - tanh(x) is 2 * nn.sigmoid(-2 * x)"
    if of(x, ops.sqrt_p):
        return "1 - sqrt(1 - x) is x / (1 + sqrt(1 - x))"
    if _squared(x) is not None:
        return "1 - x * x is (1 - x) * (1 + x)"
    return None


_OF_TWO = {
    ops.sqrt_p: "sqrt(x) - sqrt(y) is (x - y) / (sqrt(x) + sqrt(y))",
    ops.cbrt_p: "cbrt(x) - cbrt(y) is (x - y) / (cbrt(x)**2 + cbrt(x) * cbrt(y) + cbrt(y)**2)",
    ops.log_p: "log(x) - log(y) is jnp.log1p((x - y) / y)",
    ops.exp_p: "exp(x) - exp(y) is exp(y) * jnp.expm1(x - y); exp(x) - exp(-x) is 2 * jnp.sinh(x)",
    ops.sin_p: "sin(x) - sin(y) is 2 * cos((x + y) / 2) * sin((x - y) / 2)",
    ops.cos_p: "cos(x) - cos(y) is -2 * sin((x + y) / 2) * sin((x - y) / 2)",
    ops.tan_p: "tan(x) - tan(y) is sin(x - y) / (cos(x) * cos(y))",
    ops.atan_p: "atan(x) - atan(y) is jnp.arctan2(x - y, 1 + x * y)",
    ops.div_p: "a / x - b / y is (a * y - b * x) / (x * y), with the difference written out",
    ops.square_p: "x * x - y * y is (x - y) * (x + y)",
}


def _of_two(primitive: Primitive) -> str | None:
    """Return the advice for the difference of two values of one function."""
    return _OF_TWO.get(primitive)


@rewriting(ops.add_p)
def _add(made: Made) -> str | None:
    roots, negated = (any(of(x, p) for x in made.operands) for p in (ops.sqrt_p, ops.neg_p))
    if roots and negated:
        return "-b + sqrt(b * b - 4 * a * c): compute q = -(b + sign(b) * sqrt(...)) / 2; the roots are q / a and c / q"
    return None


@rewriting(ops.sqrt_p)
def _sqrt(made: Made) -> str | None:
    (x,) = made.operands
    if (terms := of(x, ops.add_p)) and all(_squared(t) is not None for t in terms):
        return "sqrt(x * x + y * y) is jnp.hypot(x, y)"
    if (summed := of(x, reduce_sum_p)) and _squared(summed[0]) is not None:
        return "sqrt(sum(x * x)) is jnp.linalg.norm(x)"
    return None


@rewriting(ops.div_p)
def _div(made: Made) -> str | None:
    x, y = made.operands
    if of(x, ops.exp_p) and ((summed := of(y, reduce_sum_p)) and of(summed[0], ops.exp_p)):
        return "exp(x) / sum(exp(x)) is nn.softmax(x)"
    if of(x, ops.exp_p) and (terms := of(y, ops.add_p)) and any(of(t, ops.exp_p) for t in terms):
        return "exp(x) / (1 + exp(x)) is nn.sigmoid(x)"
    return None


@rewriting(ops.mul_p)
def _mul(made: Made) -> str | None:
    """A product with the slope of a function that is infinite, or NaN, where ``where`` has not chosen it."""
    if made.phase:
        return "choose safe operands first: custom_derivatives.safe_where, or where(ok, f(where(ok, x, 1)), y)"
    return None


@rewriting(ops.acos_p)
def _acos(made: Made) -> str | None:
    return "the angle near 0: jnp.arctan2 of the sine and the cosine, or 2 * jnp.arcsin(sqrt((1 - x) / 2))"


@rewriting(dot_general_p)
def _dot(made: Made) -> str | None:
    if any(_is_inverse(x) for x in made.operands):
        return "inv(a) @ b is jnp.linalg.solve(a, b)"
    return None


def _is_inverse(x: Any) -> bool:
    """Whether an expression is the solution for the identity, which is made of integers."""
    solved = of(x, linear_solve_p)
    right = solved[3] if solved else None
    return type(right) is Made and right.primitive is ops.convert_element_type_p and type(right.operands[0]) is not Made


MOST_TRIES = 8


def advise(tried: dict[Any, int], made: Made, events: Any) -> None:
    """Set the advice of those events without one that happened in an expression, if a rewriting is known for it.

    Args:
      tried: how often an operation of a line was looked at; it is not looked at any more after some times.
      made: the expression.
      events: the records of what happened.
    """
    rule = rewriting.of(made.primitive)
    if rule is None:
        return
    open_ = [e for e in events if e is not None and not e.advice]
    if not open_:
        return
    key = made.primitive, made.location
    tried[key] = tried.get(key, 0) + 1
    if tried[key] > MOST_TRIES:
        return
    advice = rule(made)
    if advice:
        for event in open_:
            if event.made is made or _contains(made, event.made, 6):
                event.advice = advice


def _contains(made: Any, other: Made, levels: int) -> bool:
    """Whether an expression has an operation of the same line as another, within some levels."""
    if type(made) is not Made or not levels:
        return False
    if made.primitive is other.primitive and made.location == other.location:
        return True
    return any(_contains(x, other, levels - 1) for x in made.operands)
