"""Operations on shadows: evaluation in the wider dtype, and the rules of operations for which this does not do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.analysis.digits import SAMPLE, Accuracy, few_exceed, sampled, unit
from pullback.analysis.double_double import pairs, use_tables
from pullback.core import dtypes, source, traits
from pullback.core.array import SCALARS, ArrayImpl, host_value
from pullback.core.config import enable_x64
from pullback.core.errors import MissingRuleError
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive, state

wider = RuleKind("wider", "it is evaluated in the wider dtype")
"""``rule(arithmetic, values, wides, outs, params) -> wides``: the shadows of the results of an operation.

``values`` and ``outs`` are the values of the operands and of the results, as NumPy arrays, ``wides`` the shadows of the
operands.
"""


kernels: dict[Primitive, int] = {}
"""The indices of functions in the module in C, which it computes together with the errors of the values."""


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of doubles that holds the numbers of an inexact dtype."""
    return np.dtype(np.complex128) if dtypes.is_complex(dtype) else np.dtype(np.float64)


def value_of(x: Any) -> Any:
    """Return an operand as NumPy value; Python numbers as they are."""
    return x if type(x) in SCALARS else host_value(x)


class Arithmetic:
    """Numbers that are wider than those of the program.

    Attributes:
      assumed: the operations whose own rounding is taken as right to the last digit of a double, with their lines.
    """

    def __init__(self) -> None:
        self.assumed: set[tuple[str, str]] = set()
        self._exact: dict[Any, Accuracy] = {}

    def exact(self, dtype: np.dtype[Any]) -> Accuracy:
        """Return the accuracy of an exact value of ``dtype``."""
        found = self._exact.get(dtype)
        if found is None:
            found = self._exact[dtype] = Accuracy(0.0, unit(dtype), {})
        return found

    def widened(self, x: Any) -> Any:
        """Return the shadow of an exact NumPy value."""
        raise NotImplementedError

    def rounded(self, wide: Any) -> Any:
        """Return a shadow rounded to doubles."""
        raise NotImplementedError

    def sampled(self, wide: Any) -> Any:
        """Return some elements of a shadow; see :func:`digits.sampled`."""
        raise NotImplementedError

    def difference(self, x: Any, wide: Any) -> Any:
        """Return a value minus its shadow, in doubles."""
        raise NotImplementedError

    def minus(self, x: Any, y: Any) -> Any:
        """Return the difference of two shadows."""
        raise NotImplementedError

    def moved(self, move: Callable[[Any], Any], wide: Any) -> Any:
        """Return a shadow whose elements are moved as ``move`` moves the elements of an array."""
        raise NotImplementedError

    def clamped(self, wide: Any, huge: float) -> Any:
        """Return a shadow with ``huge`` instead of infinities."""
        raise NotImplementedError

    def replaced(self, where: Any, wide: Any, number: float) -> Any:
        """Return a shadow with a number where a mask is set."""
        raise NotImplementedError

    def evaluate(self, trace: Any, primitive: Primitive, wides: list[Any], outs: list[Any], params: Any) -> Any:
        """Return the shadows of the results of an operation without a rule of its own."""
        raise NotImplementedError

    def comparing(self, primitive: Primitive) -> Callable[..., Any] | None:
        """Return ``compare(wides, params, value)`` for an operation with one result and no rule of its own, or None.

        It returns the shadow of the result and the largest relative error of ``value``, the result; or None, if this
        needs the general way, such as for special values.
        """
        if primitive.multiple_results or wider.of(primitive) or traits.cost.of(primitive) is traits.Cost.CALL:
            return None
        return self.comparing_by_rule(primitive)

    def comparing_by_rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        """Return :meth:`comparing` for an operation without a rule of the kind ``wider``."""
        return None

    def apply(
        self, trace: Any, primitive: Primitive, primals: Sequence[Any], operands: Sequence[Any], outs: Any, params: Any
    ) -> Any:
        """Return the shadows of the results of an operation.

        Args:
          trace: the interpreter.
          primitive, params: the operation.
          primals: the values of the operands.
          operands: the tracers of those that have shadows, None for the others.
          outs: the values of the results.
        """
        rule = wider.of(primitive)
        if rule is None and traits.cost.of(primitive) is traits.Cost.CALL:
            raise missing(primitive, "it calls a function that is not made of Pullback's operations")
        made_of_integers = all(x is None for x in operands) and not any(
            type(x) in SCALARS or dtypes.is_inexact(x.dtype) for x in primals
        )
        if rule is None and made_of_integers:
            return [self.widened(host_value(x)) for x in outs]  # made of integers, or of nothing
        wides = self._wides(primals, operands, outs)
        if rule is not None:
            values = list(map(value_of, primals))
            return state.silently(rule, self, values, wides, list(map(host_value, outs)), params)
        return self.evaluate(trace, primitive, wides, outs, params)

    def _wides(self, primals: Sequence[Any], operands: Sequence[Any], outs: Any) -> list[Any]:
        found = []
        for x, tracer in zip(primals, operands, strict=True):
            if tracer is not None:
                found.append(tracer.wide)
            elif type(x) in SCALARS:
                found.append(self._scalar(x, primals, outs))
            elif dtypes.is_inexact(x.dtype):
                found.append(self.widened(host_value(x)))
            else:
                found.append(host_value(x))
        return found

    def _scalar(self, x: Any, primals: Sequence[Any], outs: Any) -> Any:
        """Return the shadow of a Python number: it is rounded to the dtype of the other operands, and exact then."""
        dtype = next((y.dtype for y in primals if type(y) not in SCALARS), outs[0].dtype)
        return self.widened(dtype.type(x)) if dtypes.is_inexact(dtype) else x


class DoublesFound(Exception):
    """A value of a program with shadows in doubles is a double itself: it needs wider shadows."""


class Doubles(Arithmetic):
    """Shadows in doubles, for programs in narrower numbers."""

    def widened(self, x: Any) -> Any:
        if type(x) is np.float32:
            return np.float64(x)
        if not dtypes.is_inexact(x.dtype):
            return x
        wide = wide_dtype(x.dtype)
        if x.dtype == wide:
            raise DoublesFound
        return x.astype(wide)

    def rounded(self, wide: Any) -> Any:
        return wide

    def sampled(self, wide: Any) -> Any:
        return sampled(wide)

    def difference(self, x: Any, wide: Any) -> Any:
        return x - wide

    def minus(self, x: Any, y: Any) -> Any:
        return x - y

    def moved(self, move: Callable[[Any], Any], wide: Any) -> Any:
        return move(wide)

    def clamped(self, wide: Any, huge: float) -> Any:
        return _clamped(wide, huge)

    def replaced(self, where: Any, wide: Any, number: float) -> Any:
        return np.where(where, number, wide)[()]

    def comparing_by_rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        rule = primitive.host_rule
        kernel = kernels.get(primitive)
        if rule is None or kernel is None:
            return None if rule is None else partial(_compared, rule, zero_is_right(primitive))
        use_tables()
        return partial(_compared_in_c, kernel, rule, zero_is_right(primitive))

    def evaluate(self, trace: Any, primitive: Primitive, wides: list[Any], outs: list[Any], params: Any) -> Any:
        params = widened_parameters(params)
        rule = primitive.host_rule
        if rule is not None:
            try:
                found = state.silently(rule, *wides, **params)
            except Exception as error:
                raise missing(primitive, f"it does not compute with doubles: {error}") from error
        else:
            with enable_x64():
                found = trace.parent.process(primitive, tuple([ArrayImpl(np.asarray(x)) for x in wides]), params)
        listed = list(found) if primitive.multiple_results else [found]
        return [_checked(primitive, y, x) for x, y in zip(outs, listed, strict=True)]


_DOUBLE = np.dtype(np.float64)


def _compared(rule: Any, zeros: bool, wides: Sequence[Any], params: dict[str, Any], value: Any) -> Any:
    """Return the shadow of a result and its typical relative error; see :meth:`Arithmetic.comparing`."""
    if value.dtype == _DOUBLE or not value.size:
        return None
    try:
        wide = state.silently(rule, *wides, **(widened_parameters(params) if params else params))
    except Exception:  # the general way reports it
        return None
    if wide.dtype != _DOUBLE or wide.shape != value.shape:
        return None
    error = typical_error(value, wide, None, zeros)
    return None if error is None else (wide, error)


_SINGLE = np.dtype(np.float32)


def _compared_in_c(
    kernel: int, rule: Any, zeros: bool, wides: Sequence[Any], params: dict[str, Any], value: Any
) -> Any:
    """Return the same for an operation that the module in C computes."""
    if pairs is not None and value.dtype.kind != "c" and value.dtype != _DOUBLE:
        single = value if value.dtype is _SINGLE else value.astype(_SINGLE)
        found = pairs.apply(kernel, single, zeros, unit(value.dtype), *wides)
        if found is not None:
            return found
    return _compared(rule, zeros, wides, params, value)


def zero_is_right(primitive: Primitive) -> bool:
    """Whether a result of zero whose shadow is zero needs no closer look, as it does where numbers may underflow."""
    signs = traits.signs.of(primitive)
    return len(signs) == 1 if signs else bool(traits.moves.of(primitive) or traits.passes_nan.of(primitive))


def typical_error(value: Any, hi: Any, lo: Any, zeros: bool) -> float | None:
    """Return the relative error that few elements exceed, of values whose exact numbers are ``hi + lo``.

    Args:
      value: the elements as the program has them.
      hi: doubles.
      lo: further ones, or None.
      zeros: whether a value of zero may be right.

    Returns:
      None for errors of 1 or more, special values, and a zero that may not be right.
    """
    least = unit(value.dtype)
    if pairs is not None:
        value = value if value.dtype.char in "fd" else value.astype(np.float32)
        found = pairs.error(value, zeros, least, hi, lo)
        if found is not None or value.flags.c_contiguous:
            return found  # type: ignore[no-any-return]
    if value.size > SAMPLE and not (np.isfinite(value).all() and np.isfinite(hi).all()):
        return None
    if not zeros and not value.all():
        return None
    some, exact = sampled(value), sampled(hi)
    with np.errstate(all="ignore"):
        difference = some - exact if lo is None else (some - exact) - sampled(lo)
        error = few_exceed(np.where(difference == 0, 0.0, np.abs(difference / exact)), value.dtype)
    return error if error < 1 else None


def widened_parameters(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an operation, with the dtype of doubles for a narrower one."""
    return {k: wide_dtype(x) if isinstance(x, np.dtype) and dtypes.is_inexact(x) else x for k, x in params.items()}


def _checked(primitive: Primitive, wide: Any, out: Any) -> Any:
    """Return the shadow of the result ``out``; raise if it is no double of the same shape."""
    if not dtypes.is_inexact(out.dtype):
        return host_value(out)
    if out.dtype == wide_dtype(out.dtype):
        raise DoublesFound
    wide = wide if isinstance(wide, (np.ndarray, np.generic)) else host_value(wide)
    if wide.shape != out.shape or wide.dtype != wide_dtype(out.dtype):
        raise missing(
            primitive, f"in doubles it returns {wide.dtype}{list(wide.shape)}, not {out.dtype}{list(out.shape)}"
        )
    return wide


def missing(primitive: Primitive, why: str) -> MissingRuleError:
    """Return the error for an operation that has no shadow, which says why."""
    where = source.describe(state.source_loc or source.here())
    return MissingRuleError(
        f"precision: no shadow for the operation {primitive.name!r}, at {where}: {why}. Register a rule of the kind "
        "'wider' for it"
    )


def _clamped(x: Any, huge: float) -> Any:
    """Return doubles with ``huge`` instead of infinities."""
    if x.dtype.kind == "c":
        return _clamped(x.real, huge) + 1j * _clamped(x.imag, huge)
    return np.where(np.isinf(x), np.copysign(huge, x), x)[()]
