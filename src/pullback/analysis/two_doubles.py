"""Shadows of two doubles each, for programs in doubles, and where a shadow in doubles has lost its digits too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.analysis import double_double as dd
from pullback.analysis.digits import sampled, unit
from pullback.analysis.double_double import Two
from pullback.analysis.expressions import line_of
from pullback.analysis.wide import (
    Arithmetic,
    missing,
    typical_error,
    wide_dtype,
    widened_parameters,
    zero_is_right,
)
from pullback.analysis.wide import (
    kernels as kernels,
)
from pullback.core import dtypes, source, traits
from pullback.core.array import ArrayImpl, host_value
from pullback.core.config import enable_x64
from pullback.core.errors import PullbackError
from pullback.core.rule_kinds import RuleKind
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO
from pullback.transforms.traces.forward import Direction, jvp_flat

two_doubles = RuleKind("two_doubles", "it is taken as right to the last digit of a double")
"""``rule(*operands, **params) -> result``: an operation on numbers of two doubles; other operands are NumPy values."""

beside: dict[Primitive, Callable[..., tuple[Two, float] | None]] = {}
"""The functions of operations that the module in C computes together with the errors of the values."""


class TwoDoubles(Arithmetic):
    """Shadows of two doubles."""

    def widened(self, x: Any) -> Any:
        return dd.two(x.astype(wide_dtype(x.dtype))) if dtypes.is_inexact(x.dtype) else x

    def rounded(self, wide: Two) -> Any:
        return wide.hi

    def sampled(self, wide: Two) -> Two:
        return Two(sampled(wide.hi), sampled(wide.lo))

    def difference(self, x: Any, wide: Two) -> Any:
        return (x - wide.hi) - wide.lo

    def minus(self, x: Two, y: Two) -> Two:
        return dd.sub(x, y)

    def moved(self, move: Callable[[Any], Any], wide: Two) -> Two:
        return Two(move(wide.hi), move(wide.lo))

    def clamped(self, wide: Two, huge: float) -> Two:
        infinite = np.isinf(wide.hi)
        return Two(np.where(infinite, np.copysign(huge, wide.hi.real), wide.hi)[()], np.where(infinite, 0, wide.lo)[()])

    def replaced(self, where: Any, wide: Two, number: float) -> Two:
        return dd.where(where, dd.two(np.full_like(wide.hi, number)), wide)

    def comparing_by_rule(self, primitive: Primitive) -> Callable[..., Any] | None:
        rule = two_doubles.of(primitive)
        if rule is None:
            return None
        zeros = zero_is_right(primitive)
        in_c = beside.get(primitive)
        return partial(_compared, rule, zeros) if in_c is None else partial(_compared_in_c, in_c, zeros)

    def evaluate(self, trace: Any, primitive: Primitive, wides: list[Any], outs: list[Any], params: Any) -> Any:
        rule = two_doubles.of(primitive)
        found = None if rule is None else state.silently(rule, *wides, **params)
        if found is None:
            found = self._componentwise(trace, primitive, wides, widened_parameters(params))
        elif not primitive.multiple_results:
            found = [found]
        return [_checked(primitive, y, x) for x, y in zip(outs, found, strict=True)]

    def _componentwise(self, trace: Any, primitive: Primitive, wides: list[Any], params: Any) -> list[Any]:
        """Return the results of an operation without a rule: at the first doubles, plus its derivatives along the rest.

        They are exact for operations that move elements.
        """
        moves = traits.moves.of(primitive)
        linear = primitive.transpose_rule is not None and traits.passes_nan.of(primitive)
        highs = [x.hi if isinstance(x, Two) else x for x in wides]
        if (moves or linear) and primitive.linear_in != "each":
            found = _run(trace, primitive, highs, params)
            if not any(isinstance(x, Two) and np.any(x.lo) for x in wides):
                return list(map(_two, found))
            lows = _run(trace, primitive, [x.lo if isinstance(x, Two) else x for x in wides], params)
            zeros = [np.zeros_like(x.lo) if isinstance(x, Two) else x for x in wides]
            added = _run(trace, primitive, zeros, params)  # such as a number that fills a gap
            return [
                Two(x, y - z) if dtypes.is_inexact(x.dtype) else x for x, y, z in zip(found, lows, added, strict=True)
            ]
        self.assumed.add((primitive.name, line_of(state.source_loc or source.here())))
        if not any(isinstance(x, Two) and np.any(x.lo) for x in wides):
            return list(map(_two, _run(trace, primitive, highs, params)))
        return _by_derivatives(trace, primitive, wides, highs, params)


def _run(trace: Any, primitive: Primitive, values: Sequence[Any], params: Any) -> list[Any]:
    """Return the results of an operation on NumPy values, as NumPy values."""
    with enable_x64():
        outs = trace.parent.process(primitive, tuple([ArrayImpl(np.asarray(x)[()]) for x in values]), params)
    return [host_value(x) for x in (outs if primitive.multiple_results else [outs])]


def _by_derivatives(trace: Any, primitive: Primitive, wides: Any, highs: Any, params: Any) -> list[Any]:
    """Return the results of an operation at the first doubles, plus its derivatives along the second ones."""
    primals = [ArrayImpl(np.asarray(x)[()]) for x in highs]
    tangents = [ArrayImpl(np.asarray(x.lo)[()]) if isinstance(x, Two) else ZERO for x in wides]
    many = primitive.multiple_results

    def run(*args: Any) -> Any:
        outs = primitive.bind(*args, **params)
        return outs if many else [outs]

    try:
        with enable_x64():
            outs, slopes = jvp_flat(primitive, run, primals, tangents, Direction.ONE)
    except (PullbackError, NotImplementedError):  # it has no derivative
        return list(map(_two, _run(trace, primitive, highs, params)))
    found = []
    for x, t in zip(outs, slopes, strict=True):
        value = host_value(x)
        if t is ZERO or not dtypes.is_inexact(value.dtype):
            found.append(_two(value))
            continue
        slope = host_value(t)
        with np.errstate(all="ignore"):
            found.append(dd.normal(value, np.where(np.isfinite(slope), slope, 0.0)[()]))
    return found


def _with_rest(x: Any, rest: Any, added: Any) -> Any:
    return Two(x, rest - added) if dtypes.is_inexact(x.dtype) else x


def _two(x: Any) -> Any:
    return dd.two(x) if dtypes.is_inexact(x.dtype) else x


def _checked(primitive: Primitive, wide: Any, out: Any) -> Any:
    """Return the shadow of the result ``out``; raise if it has another shape or dtype."""
    if not dtypes.is_inexact(out.dtype):
        return host_value(out)
    if not isinstance(wide, Two) or wide.hi.shape != out.shape or wide.hi.dtype != wide_dtype(out.dtype):
        raise missing(primitive, f"two doubles do not fit its result, {out.dtype}{list(out.shape)}")
    return wide


def _compared_in_c(in_c: Any, zeros: bool, wides: Sequence[Any], params: dict[str, Any], value: Any) -> Any:
    """Return the shadow of a result and its typical relative error; see :meth:`Arithmetic.comparing`."""
    if value.dtype.kind not in "fV":
        return None
    least = unit(value.dtype)
    return in_c(wides, value if value.dtype == _DOUBLE else value.astype(_DOUBLE), zeros, least)


def _compared(rule: Any, zeros: bool, wides: Sequence[Any], params: dict[str, Any], value: Any) -> Any:
    """Return the same for an operation that the module in C does not compute."""
    if value.dtype.kind not in "fV" or not value.size:
        return None
    wide = state.silently(rule, *wides, **(widened_parameters(params) if params else params))
    if type(wide) is not Two or wide.hi.dtype != _DOUBLE or wide.hi.shape != value.shape:
        return None
    error = typical_error(value, wide.hi, wide.lo, zeros)
    return None if error is None else (wide, error)


_DOUBLE = np.dtype(np.float64)


def coarse(x: Any, axes: tuple[int, ...], terms: int) -> Any:
    """Return doubles rounded to so few bits that sums along axes of ``terms`` products of two of them are exact.

    Source: K. Ozaki, T. Ogita, S. Oishi and S. M. Rump, Error-free transformations of matrix multiplication by using
    fast routines of matrix multiplication, Numerical Algorithms 59 (2012).
    """
    bits = math.ceil((53 + math.log2(max(terms, 1))) / 2)
    largest = np.maximum.reduce(np.abs(x), axes, keepdims=True)
    sigma = np.ldexp(0.75, np.frexp(largest)[1] + bits)
    return (x + sigma) - sigma
