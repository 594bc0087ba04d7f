"""Taylor mode: the coefficients of values along a curve, all at once.

A value that depends on t is its Taylor coefficients at t = 0. Linear operations map them one by one, and products
convolve them. Every other operation has its coefficients from its derivative rule: as y' = f'(x) x', those of order k
are those of the right side of order k - 1, divided by k. The rule runs once, on series whose coefficients are
computed when they are asked for. So what it says of the result itself, and what the derivatives of several operations
say of each other, are the recurrences of Griewank and Walther: exp(x)' = exp(x) x' is y[k] = sum(j x[j] y[k - j]) / k.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 13; M. D. McIlroy, Squinting at power
series (1990), for series that are computed on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes, source
from pullback.core.array import Array, ArrayImpl, host_value, is_on_host, typeof
from pullback.core.errors import MissingRuleError
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linearity import linear_part
from pullback.core.taylor_rules import (
    Coefficient,
    Series,
    repeats,
    taylor,
    taylor_formula,
    taylor_program,
)
from pullback.core.trace import Primitive, Trace, check_result, missing_rule, state
from pullback.core.types import ZERO, MappedAxis
from pullback.core.zeros import instantiate, zeros_of
from pullback.primitives.arrays.shapes import zeros_like
from pullback.primitives.power_series import convolution, times
from pullback.primitives.rules import ZeroTangents
from pullback.transforms.traces.dce import flags
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import PrimalTracer
from pullback.transforms.traces.jaxprs import tangent_aval
from pullback.transforms.traces.lift import Forward, feed, lifted
from pullback.transforms.traces.stage import stage_flat

_PLACE = "\nThe operation is at:\n"


class TaylorTracer(PrimalTracer):
    """A value with its Taylor coefficients."""

    __slots__ = ("series",)

    def __init__(self, trace: Trace, series: Series, made_at: source.Location | None) -> None:
        self._trace = trace
        self.primal = series.known[0]
        self.series = series
        self.made_at = made_at


class TaylorTrace(Trace):
    """Computes the Taylor coefficients of each operation's results.

    Attributes:
      order: that of the last coefficient.
      made: while a derivative rule is at work, the parameters and results of the operations that it has made, by the
        primitive and the operands: it finds what it made before, the result itself among these. None otherwise.
      kept: the operands of these.
    """

    __slots__ = ("kept", "made", "order")
    transformation = "Taylor mode (jet)"

    order: int
    made: dict[Any, list[tuple[dict[str, Any], Any]]] | None
    kept: list[Sequence[Any]]

    def __init__(self, parent: Trace, function: Any, order: int) -> None:
        Trace.__init__(self, parent, function)
        self.order = order
        self.made = None
        self.kept = []

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        own = [type(x) is TaylorTracer and x._trace is self for x in args]
        if True not in own:
            return self.parent.process(primitive, args, params)
        if self.made is not None:
            return self._within_a_rule(primitive, args, own, params)
        made_at = source.here()
        outer = state.trace
        self.made = {}
        try:
            outs = self._within_a_rule(primitive, args, own, params)
            several = outs if primitive.multiple_results else [outs]
            moving = [x.series for x in several if type(x) is TaylorTracer]
            state.trace = self.parent
            for k in range(1, self.order + 1):
                for series in moving:
                    series[k]
        except MissingRuleError as error:
            if _PLACE in str(error):  # of a program within
                raise
            where = source.format_location(state.source_loc or made_at)
            raise MissingRuleError(f"{error}{_PLACE}{where}") from None
        finally:
            state.trace = outer
            self._forget()
        results = [_simplified(x, made_at) if type(x) is TaylorTracer else x for x in several]
        return results if primitive.multiple_results else results[0]

    def _forget(self) -> None:
        """Let go of what a derivative rule made: series that are computed from each other would keep each other."""
        assert self.made is not None
        for made in self.made.values():
            for _, outs in made:
                for x in outs if isinstance(outs, list) else [outs]:
                    if type(x) is TaylorTracer:
                        x.series.next = None
        self.made = None
        self.kept.clear()

    def _within_a_rule(
        self, primitive: Primitive, args: Sequence[Any], own: Sequence[bool], params: dict[str, Any]
    ) -> Any:
        """The results of an operation, whose coefficients are computed when they are asked for."""
        assert self.made is not None
        key = primitive, *map(_identity, args)
        for others, outs in self.made.get(key, ()):
            if not primitive.effect and _is_same(primitive, others, params):
                return outs
        outer, state.trace = state.trace, self.parent
        try:
            program = taylor_program.of(primitive)
            if program is None and feed.of(primitive) is not None:
                program = partial(_of_programs, primitive)
            if program is not None:
                return self._remember(key, args, params, self._program(primitive, program, args, own, params))
            values = tuple([x.primal if mine else x for x, mine in zip(args, own, strict=True)])
            outs = self.parent.process(primitive, values, params)
            if type(primitive.jvp_rule) is ZeroTangents:
                return outs
            several = outs if primitive.multiple_results else [outs]
            results = [TaylorTracer(self, Series([x]), None) if dtypes.is_inexact(x.dtype) else x for x in several]
            for x in results:
                if type(x) is TaylorTracer:
                    x.series.last = self.order
            found = self._remember(key, args, params, results if primitive.multiple_results else results[0])
            nexts = self._nexts(primitive, args, own, params, results)
        finally:
            state.trace = outer
        for x, following in zip(results, nexts, strict=True):
            if type(x) is TaylorTracer:
                x.series.next = following
        return found

    def _remember(self, key: Any, args: Sequence[Any], params: dict[str, Any], outs: Any) -> Any:
        """What an operation returned. Its operands are kept too, as the key knows them by their identity."""
        assert self.made is not None
        self.made.setdefault(key, []).append((params, outs))
        self.kept.append(args)
        return outs

    # The ways to coefficients

    def _nexts(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        own: Sequence[bool],
        params: dict[str, Any],
        results: Sequence[Any],
    ) -> list[Coefficient]:
        """How the coefficients of each result are computed, from order 1 on."""
        operands = [x.series if mine else Series([x]) for x, mine in zip(args, own, strict=True)]
        joint = _linear(primitive, operands, own, params, results)
        if joint is None:
            joint = _by_rule(primitive, operands, params, results)
        if joint is not None:
            return _jointly(joint, len(results)) if primitive.multiple_results else [joint]
        formula = taylor_formula.of(primitive)
        if formula is not None:
            return [self._of_formula(formula, args, params)]
        slopes: list[Series] = []

        def coefficient(k: int, i: int) -> Any:
            if not slopes:
                slopes.extend(self._derivatives(primitive, args, own, params, results))
            return times(slopes[i][k - 1], 1 / k)

        return [partial(coefficient, i=i) for i in range(len(results))]

    def _of_formula(self, formula: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Coefficient:
        """The coefficients of a formula of other operations, which runs when the first is asked for."""
        found: list[Series] = []

        def coefficient(k: int) -> Any:
            if not found:
                outer, state.trace = state.trace, self
                try:
                    found.append(self._series(formula(*args, **params)))
                finally:
                    state.trace = outer
            return found[0][k]

        return coefficient

    def _series(self, x: Any) -> Series:
        return x.series if type(x) is TaylorTracer and x._trace is self else Series([x])

    def _derivatives(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        own: Sequence[bool],
        params: dict[str, Any],
        results: Sequence[Any],
    ) -> list[Series]:
        """The derivatives of the results by t, as the derivative rule says them."""
        primals = tuple(args)
        tangents = tuple([self._tangent(x) if mine else ZERO for x, mine in zip(args, own, strict=True)])
        outer, state.trace = state.trace, self
        try:
            if primitive.tangent_rule is not None:
                found = [primitive.tangent_rule(results[0], primals, tangents)]
            elif primitive.jvp_rule is None:
                raise missing_rule(primitive, "jvp", "Taylor mode")
            else:
                found = primitive.jvp_rule(primals, tangents, **params)[1]
                found = found if primitive.multiple_results else [found]
        finally:
            state.trace = outer
        return [self._series(x) for x in found]

    def _tangent(self, x: TaylorTracer) -> Any:
        """The derivative of a value by t."""
        assert self.made is not None
        key = "derivative", id(x)
        if key not in self.made:
            of = x.series
            outer, state.trace = state.trace, self.parent
            try:
                first = zeros_like(of.known[0]) if of[1] is ZERO else of[1]
            finally:
                state.trace = outer
            series = Series([first], lambda k: times(of[k + 1], k + 1))
            self._remember(key, [x], {}, TaylorTracer(self, series, None))
        return self.made[key][0][1]

    def _program(
        self, primitive: Primitive, rule: Callable[..., Any], args: Sequence[Any], own: Sequence[bool], params: Any
    ) -> list[Any]:
        """The results of an operation that holds programs."""
        values = [x.primal if mine else x for x, mine in zip(args, own, strict=True)]

        def up_to(order: int) -> tuple[list[Any], list[Sequence[Any]]]:
            nothing = (ZERO,) * order
            given = [
                tuple([x.series[k] for k in range(1, order + 1)]) if mine else nothing
                for x, mine in zip(args, own, strict=True)
            ]
            return rule(order, values, given, **params)  # type: ignore[no-any-return]

        if all(_is_complete(x.series, self.order) for x, mine in zip(args, own, strict=True) if mine):
            outs, coefficients = up_to(self.order)
            return [
                x if all(c is ZERO for c in cs) else TaylorTracer(self, Series([x, *cs]), None)
                for x, cs in zip(outs, coefficients, strict=True)
            ]
        outs = self.parent.process(primitive, tuple(values), params)
        results = [TaylorTracer(self, Series([x]), None) if dtypes.is_inexact(x.dtype) else x for x in outs]
        nexts = _jointly(lambda k: [cs[k - 1] for cs in up_to(k)[1]], len(outs))
        for x, following in zip(results, nexts, strict=True):
            if type(x) is TaylorTracer:
                x.series.next = following
        return results


def _identity(x: Any) -> Any:
    """What an operand is known by. Rules compute orders and exponents anew, which are the same if they are equal."""
    if is_on_host(x) and x.shape == ():
        return x.dtype, x.weak_type, repr(host_value(x))
    return id(x) if isinstance(x, Array) else (type(x), repr(x))


def _is_complete(series: Series, order: int) -> bool:
    return series.next is None or len(series.known) > order


def _simplified(x: TaylorTracer, made_at: source.Location | None) -> Any:
    """A result of which all coefficients are known; one that does not depend on t as it is."""
    known = x.series.known
    if all(c is ZERO for c in known[1:]):
        return known[0]
    x.made_at = made_at
    return x


def _is_same(primitive: Primitive, earlier: dict[str, Any], params: dict[str, Any]) -> bool:
    """Whether the parameters of an operation are those of an earlier one."""
    rule = repeats.of(primitive)
    if rule is not None:
        return rule(earlier, **params)  # type: ignore[no-any-return]
    try:
        return earlier == params
    except ValueError:  # arrays among a user's parameters
        return False


def _jointly(step: Coefficient, count: int) -> list[Coefficient]:
    """How the coefficients of each result are computed, where those of all are computed at once."""
    found: dict[int, Sequence[Any]] = {}

    def coefficient(k: int, i: int) -> Any:
        if k not in found:
            found[k] = step(k)
        return found[k][i]

    return [partial(coefficient, i=i) for i in range(count)]


def _by_rule(
    primitive: Primitive, operands: Sequence[Series], params: dict[str, Any], results: Sequence[Any]
) -> Coefficient | None:
    """The coefficients of the results of an operation with a rule of its own, and of products."""
    rule = taylor.of(primitive)
    if rule is not None:
        series = [x.series if type(x) is TaylorTracer else Series([x]) for x in results]
        return rule(series if primitive.multiple_results else series[0], *operands, **params)  # type: ignore[no-any-return]
    if primitive.linear_in == "each" and len(operands) == 2:
        x, y = operands
        return partial(convolution, partial(primitive.bind, **params), x, y)
    return None


def _linear(
    primitive: Primitive,
    operands: Sequence[Series],
    own: Sequence[bool],
    params: dict[str, Any],
    results: Sequence[Any],
) -> Coefficient | None:
    """The coefficients of an operation that is linear in all operands that depend on t, jointly: one by one."""
    moving = [i for i, mine in enumerate(own) if mine]
    part = linear_part(primitive, moving, len(operands), params)
    if part is None or (len(part.joint) > 1 and taylor.of(primitive) is not None):
        return None
    values = [x.known[0] for x in operands]
    nothing = [ZERO] * len(results) if primitive.multiple_results else ZERO
    if len(part.joint) == 1:
        (position,) = moving
        (x,) = (operands[i] for i in moving)
        together = _small_together(primitive, values, position, x, part.params)

        def of_one(k: int) -> Any:
            if x[k] is ZERO:
                return nothing
            if together is not None:
                return together[k - 1]
            values[position] = x[k]
            return primitive.bind(*values, **part.params)

        return of_one

    def of_several(k: int) -> Any:
        given = [operands[i][k] if i in part.joint else value for i, value in enumerate(values)]
        if all(given[i] is ZERO for i in moving):
            return nothing
        if primitive.tangent_rule is not None:  # of sums, which knows what to do with zeros
            return primitive.tangent_rule(results[0].series.known[0], values, given)
        dense = [_zeros(x) if c is ZERO else c for c, x in zip(given, values, strict=True)]
        return primitive.bind(*dense, **part.params)

    return of_several


_SMALL = 4096


def _small_together(
    primitive: Primitive, values: Sequence[Any], position: int, x: Series, params: dict[str, Any]
) -> list[Any] | None:
    """What a linear operation makes of all coefficients at once, stacked; None where that saves nothing.

    Eager, the calls of small operations take longer than what they compute.
    """
    of = x.known[1:]
    if x.next is not None or len(of) < 5 or not state.trace.quick:
        return None
    if not all(is_on_host(c) and not c.weak_type for c in of) or not 0 < of[0].size <= _SMALL:
        return None
    if primitive.batch_rule is None or primitive.multiple_results:
        return None
    if primitive.axes_rule is not None or primitive.effect:
        return None
    stacked = ArrayImpl(np.array([host_value(c) for c in of]))
    operands = [stacked if i == position else v for i, v in enumerate(values)]
    dims = [0 if i == position else None for i in range(len(values))]
    out, dim = primitive.batch_rule(MappedAxis(None, len(of)), operands, dims, **params)
    if dim != 0 or not is_on_host(out):
        return None
    return [ArrayImpl(c, out.weak_type) for c in host_value(out)]


def _zeros(x: Any) -> Any:
    """Zeros in the place of an operand; one of integers or booleans, which nothing is linear in, stays."""
    if not isinstance(x, Array):
        return 0
    return zeros_like(x) if dtypes.is_inexact(x.dtype) else x


def taylor_flat(
    function: Any,
    run: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    order: int,
) -> tuple[list[Any], list[list[Any]]]:
    """The values of ``run`` along a curve, and their Taylor coefficients from 1 to ``order``, some of them ``ZERO``.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      series: for each primal its Taylor coefficients from 1 to ``order``; ``ZERO`` is allowed.
      order: that of the last coefficient.
    """
    trace = TaylorTrace(state.trace, function, order)
    args = [
        x if all(c is ZERO for c in cs) else TaylorTracer(trace, Series([x, *cs]), None)
        for x, cs in zip(primals, series, strict=True)
    ]
    state.trace = trace
    try:
        results = run(*args)
    finally:
        state.trace = trace.parent
        trace.live = False
    outs: list[Any] = []
    coefficients: list[list[Any]] = []
    for x in results:
        if type(x) is TaylorTracer and x._trace is trace:
            outs.append(x.primal)
            coefficients.append([x.series[k] for k in range(1, order + 1)])
        else:
            check_result(x)
            outs.append(x)
            coefficients.append([ZERO] * order)
    return outs, coefficients


# Programs ------------------------------------------------------------------------------------------------------------

Kept = tuple[tuple[bool, ...], ...]
"""For each value, which of its Taylor coefficients from order 1 on are there; the others are zero."""


@cached_by_jaxpr
def taylor_jaxpr(
    closed: ClosedJaxpr, order: int, nonzero: Kept, instantiate: Sequence[bool] | bool = False
) -> tuple[ClosedJaxpr, Kept]:
    """The program of the Taylor coefficients of a program's results.

    Args:
      closed: the program.
      order: that of the last coefficient.
      nonzero: for each input, which of its coefficients from 1 to ``order`` it has.
      instantiate: which results get all coefficients even if they are zero; one flag for all, or one for each.

    Returns:
      A jaxpr from the inputs, and then the coefficients of the first input that it has, those of the second, and so
      on, to the results, and then their coefficients in the same way; and for each result which it has.

    >>> from pullback.primitives.elementwise import square
    >>> from pullback.transforms.autodiff.tracing import make_jaxpr
    >>> taylor_jaxpr(make_jaxpr(square)(1.0), 2, ((True, False),))
    ({ lambda ; a:f32[] b:f32[]. let
        c:f32[] = square a
        d:f32[] = sum_of_products[scale=2] a b
        e:f32[] = sum_of_products[scale=1] b b
      in (c, d, e) }, ((True, True),))
    """
    forced = flags(instantiate, len(closed.out_avals), "results")
    given = [tangent_aval(a) for a, kept in zip(closed.in_avals, nonzero, strict=True) for k in kept if k]
    nonzero_out: list[tuple[bool, ...]] = []

    def run(*values: Any) -> list[Any]:
        primals, rest = values[: len(nonzero)], values[len(nonzero) :]
        series = grouped(rest, nonzero)
        outs, out_series = taylor_flat(closed, jaxpr_as_fun(closed), primals, series, order)
        nonzero_out[:] = [
            tuple([f or c is not ZERO for c in cs]) for f, cs in zip(forced, out_series, strict=True)
        ]  # fmt: skip
        return outs + [
            zeros_of(tangent_aval(typeof(x))) if c is ZERO else c
            for x, cs, f in zip(outs, out_series, forced, strict=True) for c in cs if f or c is not ZERO
        ]  # fmt: skip

    return stage_flat(closed, run, closed.in_avals + given), tuple(nonzero_out)


def grouped(values: Iterable[Any], kept: Sequence[tuple[bool, ...]]) -> list[tuple[Any, ...]]:
    """Coefficients by the values that they belong to, ``ZERO`` where one has none.

    For ``[a, b, c]`` and ``((True, False), (True, True))`` they are ``[(a, ZERO), (b, c)]``.
    """
    given = iter(values)
    return [tuple([next(given) if k else ZERO for k in flags]) for flags in kept]


class Coefficients(Forward):
    """Taylor mode: pairs of a value and its coefficients from 1 to an order, some of them ``ZERO``."""

    __slots__ = ("nothing", "order")
    moves_rows = False

    def __init__(self, order: int) -> None:
        super().__init__(order)
        self.order = order
        self.nothing = (False,) * order

    def marks(self, xs: Sequence[Any]) -> tuple[tuple[bool, ...], ...]:
        return tuple([tuple([c is not ZERO for c in cs]) for _, cs in xs])

    def width(self, mark: tuple[bool, ...]) -> int:
        return sum(mark)

    def beside(self, xs: Sequence[Any]) -> list[Any]:
        return [c for _, cs in xs for c in cs if c is not ZERO]

    def made(self, values: Sequence[Any], beside: Iterator[Any], marks: Sequence[tuple[bool, ...]]) -> list[Any]:
        return list(zip(values, grouped(beside, marks), strict=True))

    def carried(self, mark: tuple[bool, ...]) -> tuple[bool, ...]:
        return (any(mark),) * self.order

    def joined(self, marks: Sequence[tuple[bool, ...]]) -> tuple[bool, ...]:
        return (any(map(any, marks)),) * self.order

    def filled(self, x: Any, mark: tuple[bool, ...]) -> Any:
        return x[0], tuple([instantiate(c, x[0]) if m else c for c, m in zip(x[1], mark, strict=True)])

    def program(self, closed: ClosedJaxpr, marks: Sequence[Any], forced: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
        return taylor_jaxpr(closed, self.order, tuple(marks), tuple(map(any, forced)))


def _of_programs(
    primitive: Primitive, order: int, primals: Sequence[Any], series: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    """The results of an operation that holds programs, and their coefficients."""
    outs = lifted(primitive, Coefficients(order), list(zip(primals, series, strict=True)), params)
    return [x for x, _ in outs], [cs for _, cs in outs]
