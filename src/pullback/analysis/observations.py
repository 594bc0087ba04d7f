"""What the interpreter of shadows observes: which lines lose digits, and where special values begin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.analysis import digits
from pullback.analysis.digits import Accuracy, changed
from pullback.analysis.expressions import Made, root
from pullback.analysis.rewritings import advise
from pullback.core import dtypes, traits
from pullback.core.array import SCALARS, ArrayImpl, host_value
from pullback.core.errors import PullbackError
from pullback.core.trace import Primitive, state

CANCELLATION = "cancellation"
ROUNDING = "rounding"
ABSORPTION = "absorption"
CONDITION = "condition"
NARROWING = "narrowing"
OVERFLOW = "overflow"
UNDERFLOW = "underflow"
INFINITY = "infinity"
NAN = "NaN"
DECISION = "decision"

NOTHING: dict[Any, float] = {}
"""The losses of a value that lost no digits."""
FEW = 10**digits.LEAST
"""How many units of rounding an error has that is not put down to any line."""
HUGE = 1e300
TINY = 1e-300
"""The shadows of numbers that overflow and underflow even in doubles."""


class Observed:
    """What happened at an operation of a line.

    Attributes:
      kind: what it is.
      made: an expression in which it happened.
      count: how often it happened.
      worst: the most digits that a result lost there.
      advice: how to write it instead, or an empty string.
    """

    __slots__ = ("advice", "count", "kind", "made", "worst")

    def __init__(self, kind: str, made: Made) -> None:
        self.kind, self.made = kind, made
        self.count, self.worst, self.advice = 0, 0.0, ""


class Observations:
    """What was observed, by line, operation and kind.

    Attributes:
      events: everything that lost digits or began a special value.
      tried: how often the operations of lines were looked at for known rewritings.
      too_deep: whether a difference was so small that the shadows may have lost all their digits too.
    """

    def __init__(self) -> None:
        self.events: dict[Any, Observed] = {}
        self.too_deep = False
        self.tried: dict[Any, int] = {}

    def event(self, kind: str, made: Made, lost: float = 0.0) -> Observed:
        """Return the record of what happens at an operation, which is new if it has not happened there before."""
        key = made.line, made.primitive, kind, made.phase
        found = self.events.get(key)
        if found is None:
            found = self.events[key] = Observed(kind, made)
        found.count += 1
        found.worst = max(found.worst, lost)
        return found

    def weigh(
        self, trace: Any, operands: Sequence[Any], out: Any, wide: Any, error: float, made: Made
    ) -> tuple[Any, Accuracy]:
        """Return the shadow of a result and its accuracy, as :meth:`judge` does.

        Args:
          error: the relative error that few elements exceed; 1, infinity or NaN where it takes a closer look.
        """
        if not error < 1:
            return state.silently(self.judge, trace, made.primitive, operands, out, wide, made)  # type: ignore[no-any-return]
        least = digits.unit(out.dtype)
        losing = False
        for x in operands:
            if x is not None:
                _, narrowest, losses = x.accuracy
                if losses:
                    losing = True
                if narrowest < least:
                    least = narrowest
        if not losing:
            if error <= FEW * least:
                return wide, Accuracy(error, least, NOTHING)
            losses = NOTHING
        else:
            losses = _dominant(trace, made.primitive, [x for x in operands if x is not None]).accuracy.losses
            lost = math.log10(error / least) if error > least else 0.0
            if lost - sum(losses.values()) < digits.LEAST:
                losses = changed(losses, lost, None)
                if error > 2 * least:
                    advise(self.tried, made, losses)
                return wide, Accuracy(error, least, losses)
        value, exact = host_value(out), trace.arithmetic.rounded(wide)
        return wide, state.silently(
            self._lost, trace, operands, value, exact, Accuracy(error, least, losses), None, made
        )

    def judge(
        self, trace: Any, primitive: Primitive, operands: Sequence[Any], out: Any, wide: Any, made: Made
    ) -> tuple[Any, Accuracy]:
        """Return the shadow of a result and its accuracy; record what the operation lost.

        The shadow of a number that overflows is a huge number.
        """
        value, exact, error, special, wide = self._error(trace, primitive, operands, out, wide, made)
        found = [x for x in operands if x is not None]
        dominant = _dominant(trace, primitive, found)
        own = digits.unit(out.dtype)
        least = min([own, *[x.accuracy.unit for x in found]]) if found else own
        losses = dominant.accuracy.losses if dominant is not None else {}
        accuracy = Accuracy(error, least, losses)
        if error <= 2 * least:
            if not exact.all() and len(found) == 2 and not self.too_deep and traits.signs.of(primitive):
                self._is_too_deep(exact, found)
            return wide, accuracy._replace(losses=changed(losses, accuracy.lost, None)) if losses else accuracy
        lost = accuracy.lost
        if lost - sum(losses.values()) < digits.LEAST:
            if losses:
                losses = changed(losses, lost, None)
                advise(self.tried, made, losses)
            return wide, accuracy._replace(losses=losses)
        return wide, self._lost(trace, operands, value, exact, accuracy, special, made)

    def _lost(
        self,
        trace: Any,
        operands: Sequence[Any],
        value: Any,
        exact: Any,
        accuracy: Accuracy,
        special: Observed | None,
        made: Made,
    ) -> Accuracy:
        """Record that an operation lost digits; return the accuracy of its result.

        Args:
          value, exact: elements of the result, and of its shadow.
          accuracy: that of the result, with the losses of the operand whose error dominates.
          special: the record of a special value that begins here, or None.
        """
        primitive, losses, lost = made.primitive, accuracy.losses, accuracy.lost
        more = lost - sum(losses.values())
        found = [x for x in operands if x is not None]
        if special is None:
            kind = _kind(primitive, found, value, exact, digits.unit(value.dtype))
            special = self.event(ABSORPTION if kind == ROUNDING and absorbs(made, value) else kind, made, more)
            if special.kind in (ROUNDING, ABSORPTION):
                special.advice = "sum in a wider dtype, or with compensation (Kahan), or sum small terms first"
            if kind == CANCELLATION:
                for x in found:
                    if type(x.made) is Made and absorbs(x.made, x.primal):
                        self.event(ABSORPTION, x.made, more)
        special.worst = max(special.worst, more)
        if traits.signs.of(primitive) and accuracy.error > 0.1:
            self._is_too_deep(exact, found)
        losses = changed(losses, lost, special)
        advise(self.tried, made, losses)
        return accuracy._replace(losses=losses)

    def _error(
        self, trace: Any, primitive: Primitive, operands: Sequence[Any], out: Any, wide: Any, made: Made
    ) -> tuple[Any, Any, float, Observed | None, Any]:
        """Compare a result with its shadow.

        Returns:
          The elements that are compared, their shadows, the relative error that few elements exceed, the record of a
          special value that begins here, or None, and the shadow of the whole result.
        """
        arithmetic = trace.arithmetic
        full = host_value(out)
        exact = arithmetic.rounded(wide)
        if self._is_usual(primitive, full, exact, made):
            value, some = digits.sampled(full), digits.sampled(exact)
            errors = np.abs(arithmetic.difference(value, arithmetic.sampled(wide))) / np.abs(some)
            error = digits.few_exceed(errors, full.dtype) if errors.size else 0.0
            if error < math.inf:
                return value, some, min(error, 1.0), None, wide
        special, unknown = None, 1.0
        if not (np.isfinite(full).all() and np.isfinite(exact).all()):
            special, unknown, wide = self._special(trace, operands, full, wide, made)
            exact = arithmetic.rounded(wide)
        if not full.all() and traits.elementwise.of(primitive) and not made.exact:
            wide = self._nonzero(trace, primitive, operands, full, wide, made)
            exact = arithmetic.rounded(wide)
        value, exact = digits.sampled(full), digits.sampled(exact)
        difference = arithmetic.difference(value, arithmetic.sampled(wide))
        error = digits.typical_worst(digits.relative_errors(value, difference, exact, unknown))
        return value, exact, error, special, wide

    @staticmethod
    def _is_usual(primitive: Primitive, full: Any, exact: Any, made: Made) -> bool:
        """Whether no special value is among the elements of a result, as far as those that are compared do not tell."""
        if full.size <= digits.SAMPLE:
            return True
        if not (np.isfinite(full).all() and np.isfinite(exact).all()):
            return False
        return bool(full.all()) or not traits.elementwise.of(primitive) or made.exact

    def _is_too_deep(self, exact: Any, found: Sequence[Any]) -> None:
        """Note whether a sum cancels so far that its shadow is not known; a zero is, if both terms are one value."""
        sizes = list(map(_size, found))
        if len(sizes) < 2 or not min(sizes):
            return
        smallest = float(np.min(np.abs(exact), initial=np.inf))
        if smallest > 1e-13 * max(sizes):
            return
        if smallest == 0 and root(found[0]) is root(found[1]):
            return
        if exact_so_far(found[0]) and exact_so_far(found[1]):
            return
        self.too_deep = True

    def _special(
        self, trace: Any, operands: Sequence[Any], value: Any, wide: Any, made: Made
    ) -> tuple[Observed | None, float, Any]:
        """Look at a result that is not finite, or whose shadow is not.

        Returns:
          The record of what begins here, or None; the error of NaN that the shadow shares; and the shadow.
        """
        arithmetic = trace.arithmetic
        found = [x for x in operands if x is not None]
        nan_before = [x for x in found if np.isnan(host_value(x.primal)).any()]
        unknown = max((x.accuracy.error for x in nan_before), default=1.0)
        exact = arithmetic.rounded(wide)
        event = None
        finite_before = all(np.isfinite(host_value(x.primal)).all() for x in found)
        infinite = np.isinf(exact)
        began = infinite.any() and all(np.isfinite(arithmetic.rounded(x.wide)).all() for x in found)
        if began and not self._is_pole(trace, made):
            wide = arithmetic.clamped(wide, HUGE)
        if np.isnan(value).any():
            if not nan_before:
                event = self.event(NAN, made)
        elif np.isinf(value).any() and finite_before:
            event = self.event(INFINITY if self._is_pole(trace, made) else OVERFLOW, made)
        return event, unknown, wide

    def _nonzero(
        self, trace: Any, primitive: Primitive, operands: Sequence[Any], value: Any, wide: Any, made: Made
    ) -> Any:
        """Return the shadow of a result, with a tiny number for those elements that underflow in doubles too.

        They are zero, although no operand is, also for operands that are close, but not for operands nearer to 1.
        """
        arithmetic = trace.arithmetic
        if traits.signs.of(primitive) or traits.moves.of(primitive) or traits.passes_nan.of(primitive):
            return wide
        zero = (arithmetic.rounded(wide) == 0) & (value == 0)
        for x, tracer in zip(made.values, operands, strict=True):
            operand = value_of(x) if tracer is None else arithmetic.rounded(tracer.wide)
            zero = zero & (operand != 0) & np.isfinite(operand)
        if zero.any() and not all(x is None or exact_so_far(x) for x in operands):
            self.too_deep = True  # such as the logarithm of a number that has become 1
        for change in (lambda x: _moved(x, 1e-6), lambda x: _moved(x, -1e-6), _nearer):
            if not zero.any():
                return wide
            out = trace.parent.process(primitive, tuple(map(change, made.values)), made.params)
            zero = zero & ((host_value(out) == 0) != (change is _nearer))
        return arithmetic.replaced(zero, wide, TINY) if zero.any() else wide

    def _is_pole(self, trace: Any, made: Made) -> bool:
        """Whether an infinite result of finite operands is exact, and not too large a number.

        It is if the operation is finite at operands that are close, or infinite even if all operands are 1 or -1.
        """
        close = [self._is_finite(trace, made, [_moved(x, step) for x in made.values]) for step in (1e-6, -1e-6)]
        return any(close) or not self._is_finite(trace, made, list(map(_sign, made.values)))

    def _is_finite(self, trace: Any, made: Made, operands: list[Any]) -> bool:
        """Whether the operation that made a value has finite results for other operands."""
        try:
            out = trace.parent.process(made.primitive, tuple(operands), made.params)
        except (PullbackError, ArithmeticError, TypeError, ValueError):  # it refuses these operands
            return False
        outs = out if made.primitive.multiple_results else [out]
        return all(np.isfinite(host_value(x)).all() for x in outs if dtypes.is_inexact(x.dtype))

    def decide(
        self, trace: Any, primitive: Primitive, operands: Sequence[Any], primals: Any, outs: Any, params: Any
    ) -> None:
        """Record an operation with a result of integers or booleans that exact numbers decide otherwise."""
        rule = primitive.host_rule
        if rule is None or all(x is None or exact_so_far(x) for x in operands):
            return
        exact = [
            value_of(x) if t is None else trace.arithmetic.rounded(t.wide)
            for x, t in zip(primals, operands, strict=True)
        ]
        if len(exact) == 2 and traits.elementwise.of(primitive) and operands[0] is not None and operands[1] is not None:
            exact = [trace.arithmetic.rounded(trace.arithmetic.minus(operands[0].wide, operands[1].wide)), 0.0]
        try:
            found = rule(*exact, **params)
        except (PullbackError, ArithmeticError, TypeError, ValueError):  # it refuses the wider operands
            return
        for x, y in zip(outs, found if primitive.multiple_results else [found], strict=True):
            count = int(np.count_nonzero(host_value(x) != y))
            if count:
                self.event(DECISION, Made(primitive, primals, operands, params)).count += count - 1


def value_of(x: Any) -> Any:
    """Return an operand as NumPy value; Python numbers as they are."""
    return x if type(x) in SCALARS else host_value(x)


def exact_so_far(x: Any) -> bool:
    """Whether a value is an input or a constant, or consists of elements of some."""
    return x.made is None or x.made.exact


def _size(x: Any) -> float:
    return _largest(digits.sampled(host_value(x.primal)))


def _largest(x: Any) -> float:
    """Return the largest absolute value of an array; 0 of an empty one."""
    if x.ndim == 0:
        return float(abs(x))
    return float(np.maximum.reduce(np.abs(x), None)) if x.size else 0.0


def _any(mask: Any) -> bool:
    """Whether some element of an array is true."""
    return bool(mask if mask.ndim == 0 else mask.any())


def _changed(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return an operand of changed elements; a number, and an array of integers or booleans, as it is."""
    if type(x) in SCALARS or not dtypes.is_inexact(x.dtype):
        return x
    value = host_value(x)
    return ArrayImpl(np.asarray(change(value)).astype(value.dtype)[()])


def _moved(x: Any, step: float) -> Any:
    """Return an operand of which each element is changed a little."""
    return _changed(x, lambda x: x * (1 + step) + np.where(x == 0, step, 0))


def _sign(x: Any) -> Any:
    """Return an operand whose elements are 1 or -1, with the signs of another."""
    return _changed(x, lambda x: np.where(x.real < 0, -1, 1))


def _nearer(x: Any) -> Any:
    """Return an operand whose elements are nearer to 1 and -1."""
    return _changed(x, lambda x: x if x.dtype.kind == "c" else np.sign(x) * np.sqrt(np.sqrt(np.abs(x))))


def _dominant(trace: Any, primitive: Primitive, found: Sequence[Any]) -> Any:
    """Return the operand whose error dominates that of the result; None if no operand has a shadow."""
    if len(found) < 2:
        return found[0] if found else None
    if not any(x.accuracy.losses for x in found):
        return found[0]
    if traits.signs.of(primitive):
        return max(found, key=lambda x: _absolute(trace.arithmetic, x))
    return max(found, key=lambda x: x.accuracy.error)


def _absolute(arithmetic: Any, x: Any) -> float:
    """Return the largest absolute error of a value; infinity if there are NaN."""
    value = digits.sampled(host_value(x.primal))
    largest = _largest(arithmetic.difference(value, arithmetic.sampled(x.wide)))
    return math.inf if math.isnan(largest) else largest


def absorbs(made: Made, out: Any) -> bool:
    """Whether a sum of two values is one of them, in some element, although the other is not zero."""
    if len(made.values) != 2 or not traits.signs.of(made.primitive):
        return False
    value = digits.sampled(host_value(out))
    x, y = map(value_of, made.values)
    if value.ndim:
        x, y = (digits.sampled(np.broadcast_to(z, np.shape(out))) for z in (x, y))
    return _any((np.abs(value) == np.abs(x)) & (y != 0) | (np.abs(value) == np.abs(y)) & (x != 0))


def _kind(primitive: Primitive, found: Sequence[Any], value: Any, exact: Any, own: float) -> str:
    """Return what an operation did that made its result less true than its operands."""
    sizes = np.abs(exact)
    summed = traits.signs.of(primitive)
    if not summed and _any((sizes < 2 * max(digits.tiny(value.dtype), TINY)) & (exact != value)):
        return UNDERFLOW
    if any(digits.unit(x.dtype) != own for x in found):
        return NARROWING
    linear = primitive.transpose_rule is not None and not traits.multiplicative.of(primitive)
    if not linear:
        return CONDITION
    size = max(map(_size, found), default=0.0)
    least = float(sizes if sizes.ndim == 0 else np.min(sizes, initial=np.inf))
    return CANCELLATION if size > 8 * least else ROUNDING
