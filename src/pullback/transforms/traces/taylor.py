"""Taylor mode: propagating all Taylor coefficients of values along a curve in one pass.

A value that depends on t is represented by its Taylor coefficients at t = 0. Linear operations map them one by one, and
products convolve them. For every other operation they follow from its jvp rule: since y' = f'(x) x', the coefficient of
order k of y is that of order k - 1 of the right side, divided by k. The rule runs once, on lazy series. If the rule
refers to the result itself, as that of exp does, or rules refer to each other, as those of sin and cos do, this yields
the recurrences of Griewank and Walther: exp(x)' = exp(x) x' becomes y[k] = sum(j x[j] y[k - j]) / k.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., chapter 13; M. D. McIlroy, Squinting at power
series (1990), for lazy series.
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

_LOCATION = "\nThe operation is at:\n"


class TaylorTracer(PrimalTracer):
    """A value with its Taylor coefficients."""

    __slots__ = ("series",)

    def __init__(self, trace: Trace, series: Series, made_at: source.Location | None) -> None:
        self._trace = trace
        self.primal = series.known[0]
        self.series = series
        self.made_at = made_at


class TaylorTrace(Trace):
    """The trace of Taylor mode: computes the Taylor coefficients of each operation's results.

    Attributes:
      order: the order of the last coefficient.
      made: while a rule runs, a memo of its operations: parameters and results, by primitive and operands. An operation
        that the rule repeats, such as the operation that it differentiates, then returns the same series. None while no
        rule runs.
      alive: the operands of the operations in ``made``: kept alive, so that their ids are not reused.
    """

    __slots__ = ("alive", "made", "order")
    transformation = "Taylor mode (jet)"

    order: int
    made: dict[Any, list[tuple[dict[str, Any], Any]]] | None
    alive: list[Sequence[Any]]

    def __init__(self, parent: Trace, function: Any, order: int) -> None:
        Trace.__init__(self, parent, function)
        self.order = order
        self.made = None
        self.alive = []

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        own = [type(x) is TaylorTracer and x._trace is self for x in args]
        if True not in own:
            return self.parent.process(primitive, args, params)
        if self.made is not None:  # a rule is running
            return self._within_a_rule(primitive, args, own, params)
        made_at = source.here()
        outer = state.trace
        self.made = {}
        try:
            outs = self._within_a_rule(primitive, args, own, params)
            several = outs if primitive.multiple_results else [outs]
            moving = [x.series for x in several if type(x) is TaylorTracer]
            state.trace = self.parent
            # Not lazily, unlike within a rule: the memo and the series of the rule end with this call.
            for k in range(1, self.order + 1):
                for series in moving:
                    series[k]
        except MissingRuleError as error:
            if _LOCATION in str(error):  # added for an operation of an inner program
                raise
            where = source.format_location(state.source_loc or made_at)
            raise MissingRuleError(f"{error}{_LOCATION}{where}") from None
        finally:
            state.trace = outer
            self._forget()
        results = [_simplified(x, made_at) if type(x) is TaylorTracer else x for x in several]
        return results if primitive.multiple_results else results[0]

    def _forget(self) -> None:
        """Clear the memo of a rule's operations.

        Also break the reference cycles between series whose coefficients are computed from each other.
        """
        assert self.made is not None
        for made in self.made.values():
            for _, outs in made:
                for x in outs if isinstance(outs, list) else [outs]:
                    if type(x) is TaylorTracer:
                        x.series.next = None
        self.made = None
        self.alive.clear()

    def _within_a_rule(
        self, primitive: Primitive, args: Sequence[Any], own: Sequence[bool], params: dict[str, Any]
    ) -> Any:
        """Apply an operation while a rule of Taylor mode runs; return results with coefficients computed on demand.

        If the operation is in the memo, return its earlier results.

        Args:
          primitive, args, params: the operation.
          own: which operands are tracers of this trace.
        """
        assert self.made is not None
        key = primitive, *map(_identity, args)
        for others, outs in self.made.get(key, ()):
            if not primitive.effect and _is_same(primitive, others, params):  # effects happen again
                return outs
        outer, state.trace = state.trace, self.parent
        try:
            program = taylor_program.of(primitive)
            if program is None and feed.of(primitive) is not None:
                program = partial(_of_programs, primitive)
            if program is not None:
                return self._remember(key, args, params, self._program(primitive, program, args, own, params))
            values = tuple([x.primal if is_own else x for x, is_own in zip(args, own, strict=True)])
            outs = self.parent.process(primitive, values, params)
            if type(primitive.jvp_rule) is ZeroTangents:  # constant almost everywhere
                return outs
            several = outs if primitive.multiple_results else [outs]
            results = [TaylorTracer(self, Series([x]), None) if dtypes.is_inexact(x.dtype) else x for x in several]
            for x in results:
                if type(x) is TaylorTracer:
                    x.series.last = self.order
            # Before the coefficients are defined: the rule may ask for this operation again.
            found = self._remember(key, args, params, results if primitive.multiple_results else results[0])
            nexts = self._nexts(primitive, args, own, params, results)
        finally:
            state.trace = outer
        for x, following in zip(results, nexts, strict=True):
            if type(x) is TaylorTracer:
                x.series.next = following
        return found

    def _remember(self, key: Any, args: Sequence[Any], params: dict[str, Any], outs: Any) -> Any:
        """Add ``outs``, the results of an operation, to the memo under ``key``, and return them.

        The operands are kept alive, since the key has their ids.
        """
        assert self.made is not None
        self.made.setdefault(key, []).append((params, outs))
        self.alive.append(args)
        return outs

    # Methods to compute coefficients

    def _nexts(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        own: Sequence[bool],
        params: dict[str, Any],
        results: Sequence[Any],
    ) -> list[Coefficient]:
        """Return, for each result, a function from an order (1 or more) to the Taylor coefficient of this order.

        Args:
          primitive, args, params: the operation.
          own: which operands are tracers of this trace.
          results: the results, as tracers.
        """
        operands = [x.series if is_own else Series([x]) for x, is_own in zip(args, own, strict=True)]
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
            if not slopes:  # not earlier: the rule may need the results in the memo
                slopes.extend(self._derivatives(primitive, args, own, params, results))
            return times(slopes[i][k - 1], 1 / k)

        return [partial(coefficient, i=i) for i in range(len(results))]

    def _of_formula(self, formula: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Coefficient:
        """Return a function from an order to the Taylor coefficient of an operation's result, by an equivalent formula.

        ``formula`` consists of other operations; it runs once, when the first coefficient is needed.
        """
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
        """Return the Taylor series of ``x``: all coefficients of a tracer of this trace, otherwise a single term."""
        return x.series if type(x) is TaylorTracer and x._trace is self else Series([x])

    def _derivatives(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        own: Sequence[bool],
        params: dict[str, Any],
        results: Sequence[Any],
    ) -> list[Series]:
        """Return the Taylor series of the derivative of each result along the curve, by the operation's jvp rule.

        Args:
          primitive, args, params: the operation.
          own: which operands are tracers of this trace.
          results: the results of the operation, as tracers.
        """
        primals = tuple(args)
        tangents = tuple([self._tangent(x) if is_own else ZERO for x, is_own in zip(args, own, strict=True)])
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
        """Return the derivative of a value along the curve, which rules receive as its tangent.

        The same object is returned each time, so that operations on it are found in the memo.
        """
        assert self.made is not None
        key = "derivative", id(x)
        if key not in self.made:
            terms = x.series
            outer, state.trace = state.trace, self.parent
            try:
                first = zeros_like(terms.known[0]) if terms[1] is ZERO else terms[1]
            finally:
                state.trace = outer
            series = Series([first], lambda k: times(terms[k + 1], k + 1))
            self._remember(key, [x], {}, TaylorTracer(self, series, None))
        return self.made[key][0][1]

    def _program(
        self, primitive: Primitive, rule: Callable[..., Any], args: Sequence[Any], own: Sequence[bool], params: Any
    ) -> list[Any]:
        """Apply an operation that holds programs, such as a loop; return its results with their coefficients.

        Args:
          primitive, args, params: the operation.
          rule: computes the results, and their coefficients up to an order.
          own: which operands are tracers of this trace.
        """
        values = [x.primal if is_own else x for x, is_own in zip(args, own, strict=True)]

        def up_to(order: int) -> tuple[list[Any], list[Sequence[Any]]]:
            zeros = (ZERO,) * order
            coefficients = [
                tuple([x.series[k] for k in range(1, order + 1)]) if is_own else zeros
                for x, is_own in zip(args, own, strict=True)
            ]
            return rule(order, values, coefficients, **params)  # type: ignore[no-any-return]

        if all(_is_complete(x.series, self.order) for x, is_own in zip(args, own, strict=True) if is_own):
            outs, coefficients = up_to(self.order)
            return [
                x if all(c is ZERO for c in cs) else TaylorTracer(self, Series([x, *cs]), None)
                for x, cs in zip(outs, coefficients, strict=True)
            ]
        # Coefficients that are not known yet may depend on the results: compute the values first, then order by order.
        outs = self.parent.process(primitive, tuple(values), params)
        results = [TaylorTracer(self, Series([x]), None) if dtypes.is_inexact(x.dtype) else x for x in outs]
        nexts = _jointly(lambda k: [cs[k - 1] for cs in up_to(k)[1]], len(outs))
        for x, following in zip(results, nexts, strict=True):
            if type(x) is TaylorTracer:
                x.series.next = following
        return results


def _identity(x: Any) -> Any:
    """Return the key of an operand in the memo of operations.

    The key is the operand's id; for a scalar the value, as rules create new arrays for equal scalars.
    """
    if is_on_host(x) and x.shape == ():
        return x.dtype, x.weak_type, repr(host_value(x))
    return id(x) if isinstance(x, Array) else (type(x), repr(x))


def _is_complete(series: Series, order: int) -> bool:
    """Whether the coefficients of a series from order 0 to ``order`` have all been computed."""
    return series.next is None or len(series.known) > order


def _simplified(x: TaylorTracer, made_at: source.Location | None) -> Any:
    """Return a result whose coefficients are all known; store its source line ``made_at``.

    If all coefficients from order 1 on are zero, return only the value of the result.
    """
    known = x.series.known
    if all(c is ZERO for c in known[1:]):
        return known[0]
    x.made_at = made_at
    return x


def _is_same(primitive: Primitive, earlier: dict[str, Any], params: dict[str, Any]) -> bool:
    """Whether the parameters of an operation equal those of an earlier one, so that its results can be reused."""
    rule = repeats.of(primitive)
    if rule is not None:
        return rule(earlier, **params)  # type: ignore[no-any-return]
    try:
        return earlier == params
    except ValueError:  # arrays among a user's parameters
        return False


def _jointly(step: Coefficient, count: int) -> list[Coefficient]:
    """Return, for each of ``count`` results, a function from an order to the result's coefficient of this order.

    ``step`` computes the coefficients of all results for an order; it is called once for each order.
    """
    found: dict[int, Sequence[Any]] = {}

    def coefficient(k: int, i: int) -> Any:
        if k not in found:
            found[k] = step(k)
        return found[k][i]

    return [partial(coefficient, i=i) for i in range(count)]


def _by_rule(
    primitive: Primitive, operands: Sequence[Series], params: dict[str, Any], results: Sequence[Any]
) -> Coefficient | None:
    """Return a function from an order to the Taylor coefficients of an operation's results.

    The function applies the operation's Taylor rule, or the formula for products. Return None if the operation has no
    Taylor rule and is no product of two operands. ``results`` are the operation's results, as tracers.
    """
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
    """Return a function from an order to the Taylor coefficients of a linear operation's results.

    Return None if the operation is not jointly linear in the operands that ``own`` flags: those that depend on the
    curve's parameter. ``results`` are the operation's results, as tracers.
    """
    moving = [i for i, is_own in enumerate(own) if is_own]
    part = linear_part(primitive, moving, len(operands), params)
    if part is None or (len(part.joint) > 1 and taylor.of(primitive) is not None):
        return None
    values = [x.known[0] for x in operands]
    zero = [ZERO] * len(results) if primitive.multiple_results else ZERO
    if len(part.joint) == 1:
        (position,) = moving
        (x,) = (operands[i] for i in moving)
        together = _small_together(primitive, values, position, x, part.params)

        def of_one(k: int) -> Any:
            if x[k] is ZERO:
                return zero
            if together is not None:
                return together[k - 1]
            values[position] = x[k]
            return primitive.bind(*values, **part.params)

        return of_one

    def of_several(k: int) -> Any:
        args = [operands[i][k] if i in part.joint else value for i, value in enumerate(values)]
        if all(args[i] is ZERO for i in moving):
            return zero
        if primitive.tangent_rule is not None:  # of sums: it skips operands that are ``ZERO``
            return primitive.tangent_rule(results[0].series.known[0], values, args)
        dense = [_zeros(x) if c is ZERO else c for c, x in zip(args, values, strict=True)]
        return primitive.bind(*dense, **part.params)

    return of_several


_SMALL = 4096
"""The largest number of elements of a coefficient for which :func:`_small_together` stacks coefficients."""


def _small_together(
    primitive: Primitive, values: Sequence[Any], position: int, x: Series, params: dict[str, Any]
) -> list[Any] | None:
    """Apply a linear operation to all coefficients of one operand in one call; return the list of results.

    Return None if one call would not be faster. In eager mode it is faster for small arrays, since the overhead of a
    call exceeds the computation.

    Args:
      primitive, params: the operation.
      values: its operands.
      position: the index of the operand with coefficients.
      x: the coefficients of this operand.
    """
    known = x.known[1:]
    if x.next is not None or len(known) < 5 or not state.trace.quick:  # a few calls cost less than stacking
        return None
    if not all(is_on_host(c) and not c.weak_type for c in known) or not 0 < known[0].size <= _SMALL:
        return None
    if primitive.batch_rule is None or primitive.multiple_results:
        return None
    if primitive.axes_rule is not None or primitive.effect:
        return None
    stacked = ArrayImpl(np.array([host_value(c) for c in known]))
    operands = [stacked if i == position else v for i, v in enumerate(values)]
    dims = [0 if i == position else None for i in range(len(values))]
    out, dim = primitive.batch_rule(MappedAxis(None, len(known)), operands, dims, **params)
    if dim != 0 or not is_on_host(out):
        return None
    return [ArrayImpl(c, out.weak_type) for c in host_value(out)]


def _zeros(x: Any) -> Any:
    """Return zeros like the operand ``x``, for a coefficient of ``x`` that is ``ZERO``.

    Return an array of integers or booleans unchanged, as no operation is linear in it.
    """
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
    """Run a function on a curve; return its results, and for each result its Taylor coefficients from 1 to ``order``.

    A coefficient may be ``ZERO``.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point, as arrays.
      series: for each primal its Taylor coefficients from 1 to ``order``; ``ZERO`` is allowed.
      order: the order of the last coefficient.
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

Nonzero = tuple[tuple[bool, ...], ...]
"""For each value, which of its Taylor coefficients from order 1 on are nonzero."""


@cached_by_jaxpr
def taylor_jaxpr(
    closed: ClosedJaxpr, order: int, nonzero: Nonzero, instantiate: Sequence[bool] | bool = False
) -> tuple[ClosedJaxpr, Nonzero]:
    """Transform a jaxpr to one that also propagates Taylor coefficients.

    Args:
      closed: the program.
      order: the order of the last coefficient.
      nonzero: for each input, which of its coefficients from 1 to ``order`` are nonzero.
      instantiate: which results get all coefficients even if they are zero: a flag for all, or a flag for each.

    Returns:
      A jaxpr. It takes the inputs, then the nonzero coefficients of the first input, of the second, and so on. It
      returns the results and their nonzero coefficients in the same way. And which coefficients of each result are
      nonzero.

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.taylor import taylor_jaxpr
    >>> taylor_jaxpr(make_jaxpr(lax.square)(1.0), 2, ((True, False),))
    ({ lambda ; a:f32[] b:f32[]. let
        c:f32[] = square a
        d:f32[] = sum_of_products[scale=2] a b
        e:f32[] = sum_of_products[scale=1] b b
      in (c, d, e) }, ((True, True),))
    """
    forced = flags(instantiate, len(closed.out_avals), "results")
    coefficients = [tangent_aval(a) for a, ks in zip(closed.in_avals, nonzero, strict=True) for k in ks if k]
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

    return stage_flat(closed, run, closed.in_avals + coefficients), tuple(nonzero_out)


def grouped(values: Iterable[Any], nonzero: Sequence[tuple[bool, ...]]) -> list[tuple[Any, ...]]:
    """Group a flat list of nonzero coefficients by value, and insert ``ZERO`` for the other coefficients.

    ``nonzero`` says which coefficients of each value are nonzero. For ``[a, b, c]`` and
    ``((True, False), (True, True))`` the groups are ``[(a, ZERO), (b, c)]``.
    """
    rest = iter(values)
    return [tuple([next(rest) if n else ZERO for n in flags]) for flags in nonzero]


class Coefficients(Forward):
    """Taylor mode of programs.

    A value is represented by a pair of the value and its coefficients from 1 to an order, some of them ``ZERO``.

    The mark of a value says which coefficients are nonzero.
    """

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

    def extras(self, xs: Sequence[Any]) -> list[Any]:
        return [c for _, cs in xs for c in cs if c is not ZERO]

    def made(self, values: Sequence[Any], extras: Iterator[Any], marks: Sequence[tuple[bool, ...]]) -> list[Any]:
        return list(zip(values, grouped(extras, marks), strict=True))

    def carried(self, mark: tuple[bool, ...]) -> tuple[bool, ...]:
        # A step may turn one nonzero coefficient into several.
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
    """Apply an operation that holds programs to ``primals`` with the Taylor coefficients ``series``, up to ``order``.

    Return the results, and the coefficients of each result.
    """
    outs = lifted(primitive, Coefficients(order), list(zip(primals, series, strict=True)), params)
    return [x for x, _ in outs], [cs for _, cs in outs]
