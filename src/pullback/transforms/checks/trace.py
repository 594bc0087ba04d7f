"""The interpreter of ``checkify``: it passes each operation to its parent, and checks whether the operation failed.

It needs no tracers. Failures are arrays, values of the parent trace: the number of the failed check or 0, and the
values that the message shows (``report``). If they are known, as in eager code, only failures are stored, not checks
that hold. An operation that holds programs is replaced by one whose programs return their failures
(:func:`checked_jaxpr`); so loops carry failures, and a conditional returns those of the branch that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, source, traits, tree
from pullback.core.array import host_value, scalar_array, typeof
from pullback.core.check_rules import Failure, checked_program, checks
from pullback.core.errors import (
    CheckError,
    FailedCheckError,
    IndexCheckError,
    MissingRuleError,
    NanCheckError,
    OutOfBoundsError,
)
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var, jaxpr_as_fun, subjaxprs
from pullback.core.linear import LinearTracer
from pullback.core.lists import split_list
from pullback.core.trace import Primitive, Trace, Tracer, is_at_work, recorders, state
from pullback.core.types import MappedAxis, ShapedArray
from pullback.primitives.arrays.shapes import broadcast_in_dim
from pullback.primitives.discrete import eq_p, ne_p, or_p
from pullback.primitives.elementwise import convert_element_type, where
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_or
from pullback.primitives.varying import vary
from pullback.transforms.checks.report import (
    INT32,
    Check,
    ErrorLayout,
    Failures,
    earlier,
    first_along_axes,
    first_of_all,
    joined,
)
from pullback.transforms.custom.linear_map import LinearMap
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import Fed, Feed, feed, ignoring
from pullback.transforms.traces.stage import stage_flat

Errors = frozenset[type[CheckError]]
USER: Errors = frozenset({FailedCheckError})

check_p = Primitive("check", multiple_results=True, effect=True)
"""Fail if the first operand, the number of a check, is not 0; the other operands are the values that messages show.

The parameter ``checks`` is the table of checks. The first operand may have batch axes; they come first in the others.
"""


class CheckTrace(Trace):
    """A trace that passes operations to its parent, and collects their failures.

    Attributes:
      errors: the kinds of failures to collect.
      enclosed: whether there is an enclosing ``checkify``, which receives failures of user checks of other kinds.
      found: the failures so far, in order. A failure that is known not to have happened is left out.
      failed: whether the last of ``found`` is known to have happened; then later failures are ignored.
    """

    __slots__ = ("enclosed", "errors", "failed", "found")
    transformation = "checkify"

    def __init__(self, parent: Trace, function: Any, errors: Errors, enclosed: bool) -> None:
        super().__init__(parent, function)
        self.quick = False
        self.errors = errors
        self.enclosed = enclosed
        self.found: list[Failures] = []
        self.failed = False

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        outer, state.trace = state.trace, self.parent
        try:
            if primitive is check_p:  # no checked_program rule: that would also apply where indices alone are checked
                self._take(args, params)
                return []
            rule, feed_rule = checked_program.of(primitive), feed.of(primitive)
            if rule is not None:
                return rule(self, args, params)
            if feed_rule is not None:
                return self._apply(feed_rule(**params), args)
            _refuse_hidden(primitive, params)
            results = self.parent.process(primitive, args, params)
            if self.errors != USER and not self.failed:
                self._check(primitive, args, params, results)
            return results
        finally:
            state.trace = outer

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return ``function(*args, **kwargs)``, called with this trace as the current trace; then end the trace."""
        outer = state.trace
        try:
            recorders.append(self)
            state.trace = self
            return function(*args, **kwargs)
        finally:
            state.trace = outer
            self.live = False
            if self in recorders:
                recorders.remove(self)

    # Failures

    def add(self, failures: Failures) -> None:
        """Append the failures of a program or an operation to ``found``.

        Do nothing if it is known that they did not happen, or that an earlier failure happened.
        """
        if self.failed:
            return
        code = _known(failures.code)
        if code is not None and not code:
            return
        self.found.append(failures._replace(payload=[stop_gradient(x) for x in failures.payload]))
        self.failed = code is not None

    def total(self) -> Failures | None:
        """Return the first of the collected failures, computed under the current trace; None if no checks were made."""
        return first_of_all(self.found)

    def _take(self, args: Sequence[Any], params: dict[str, Any]) -> None:
        """Collect the failures of user checks, which the operation ``check_p`` reports, if ``errors`` has their kinds.

        Failures of other kinds are passed on to an enclosing ``checkify``; they are dropped if there is none. ``args``
        and ``params`` are the operands and the parameters of the operation.
        """
        code, *payload = args
        table: tuple[Check, ...] = params["checks"]
        own = [c.category in self.errors for c in table]
        if not all(own) and self.enclosed:
            check_p.bind(_only(code, [not c for c in own]), *payload, **params)
        if any(own):
            found = first_along_axes(_only(code, own), payload)
            if found is not None:
                self.add(Failures(found[0], found[1], table))

    def _check(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], results: Any) -> None:
        """Collect the failures of an operation: those that its rule ``checks`` returns, and NaNs in its ``results``."""
        rule = checks.of(primitive)
        if rule is not None:
            for failure in rule(results, *args, **params):
                if failure.category in self.errors:
                    self._fail(failure)
                elif OutOfBoundsError in self.errors and failure.category is IndexCheckError and not failure.meant:
                    self._fail(failure._replace(category=OutOfBoundsError))
        if NanCheckError not in self.errors or traits.passes_nan.of(primitive) or traits.moves.of(primitive):
            return
        for x in results if primitive.multiple_results else (results,):
            if dtypes.is_inexact(x.dtype) and type(x) is not LinearTracer:
                self._fail(Failure(NanCheckError, ne_p.bind(x, x), f"nan generated by primitive: {primitive.name}."))

    def _fail(self, failure: Failure) -> None:
        """Collect a failure of an operation; ``failure.failed`` is an array that says which elements failed.

        The message shows the values for the first element that failed.
        """
        failed = failure.failed
        shape = failed.shape
        value = _known(failed)
        if value is not None and not value.any():
            return
        location = state.source_loc or source.here()
        structure = tree.structure((tuple(failure.payload), {}))
        slots = tuple(range(len(failure.payload)))
        check = Check(failure.category, failure.message + _location_text(location), structure, slots, location)
        if not failure.payload:
            code = convert_element_type(reduce_or(failed, range(len(shape))), INT32)
            self.add(Failures(code, [], (check,)))
            return
        payload = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in failure.payload]
        found = first_along_axes(convert_element_type(failed, INT32), payload)
        if found is not None:
            self.add(Failures(*found, (check,)))

    # Programs

    def _apply(self, feeding: Feed, args: Sequence[Any]) -> list[Any]:
        """Apply an operation that holds programs to ``args``; return its results, and collect failures of the programs.

        ``feeding`` describes the operation. Its programs are transformed to return their failures before their results.
        """
        groups = split_list(args, *feeding.sizes)
        if feeding.carried is not None:
            return self._loop(feeding, feeding.carried, groups)
        with feeding.within():
            found = list(map(self.checked, feeding.programs))
        layouts = tuple([program.layout for program in found])
        programs = tuple([embedded(program.jaxpr, program.layout, layouts, i) for i, program in enumerate(found)])
        return self.without_failures(joined(layouts).layout, feeding.bind(Fed(programs, None, groups)))

    def _loop(self, feeding: Feed, carried: int, groups: list[list[Any]]) -> list[Any]:
        """Apply a loop whose steps carry the first failure so far; return its results, and collect the final failure.

        If the test of the loop has checks, it is evaluated before the loop and at the end of each step instead, since
        only a step can return failures.

        Args:
          feeding: the description of the loop.
          carried: the index of the group of operands that steps carry.
          groups: the operands, in groups.
        """
        test, takes = (None, ()) if feeding.test is None else (self.checked(feeding.test[0]), feeding.test[1])
        if test is not None and test.layout.checks:  # a test returns no failures, so the steps evaluate it
            holds = self.without_failures(test.layout, jaxpr_as_fun(test.jaxpr)(*[x for g in takes for x in groups[g]]))
            return self._loop(*_testing_after(feeding, carried, groups, holds))[len(holds) :]
        step, layout = self.checked(feeding.programs[0])
        condition = None if test is None else test.jaxpr
        failures = step.out_avals[: width(layout)]
        if failures:
            step = _carrying(step, layout, _start(carried, feeding.takes, groups))
            if condition is not None:
                condition = ignoring(condition, _start(carried, takes, groups), tuple(failures))
            groups[carried][:0] = [vary(x, a.varying) for x, a in zip(flat(layout.none()), failures, strict=True)]
        return self.without_failures(layout, feeding.bind(Fed((step,), condition, groups)))

    def linear(self, p: Primitive, args: Sequence[Any], linear_map: LinearMap, apply: Callable[..., Any]) -> list[Any]:
        """Apply a linear map, a Python function that may have checks; return its results, and collect its failures.

        In eager code, failures are collected while the function runs. Otherwise the function is traced and run once
        more for its failures, and the checks within the linear map are dropped.

        Args:
          p: the primitive that applies linear maps.
          args: the residuals and operands.
          linear_map: the map.
          apply: the function that applies a map to residuals and operands.
        """
        if self.parent.eager:
            results = p.bind(*args, linear_map=_CollectingMap(linear_map, self))
        elif any(type(x) is LinearTracer for x in args):
            results = p.bind(*args, linear_map=linear_map)
        else:
            closed, captured = hoisted(
                stage_flat(linear_map.function, partial(apply, linear_map=linear_map), [typeof(x) for x in args])
            )
            if has_checks(closed):
                program = checked_jaxpr(closed, self.errors & USER, self.enclosed)
                outs = jaxpr_as_fun(program.jaxpr)(*map(stop_gradient, args), *captured)
                self.without_failures(program.layout, outs)
                linear_map = _SilentMap(linear_map, self)
            results = p.bind(*args, linear_map=linear_map)
        if self.errors != USER and not self.failed:
            self._check(p, args, {"linear_map": linear_map}, results)
        return results  # type: ignore[no-any-return]

    def checked(self, closed: ClosedJaxpr) -> Checked:
        """Transform a program to return its failures, of the kinds that this trace collects, before its results."""
        return checked_jaxpr(closed, self.errors, self.enclosed)

    def without_failures(self, layout: ErrorLayout, results: Sequence[Any]) -> list[Any]:
        """Remove the failures, in the layout ``layout``, from the beginning of ``results``, and collect them.

        Return the other results.
        """
        count = width(layout)
        if count:
            self.add(Failures(results[0], list(results[1:count]), layout.checks))
        return list(results[count:])


def _location_text(location: source.Location | None) -> str:
    """Return the text of a source location for the end of a message template: braces are doubled, None becomes ""."""
    return f"\n{source.describe(location)}".replace("{", "{{").replace("}", "}}") if location else ""


def _only(code: Any, selected: Sequence[bool]) -> Any:
    """Replace numbers of checks in the array ``code`` by 0 (no failure), except numbers of selected checks.

    ``selected`` has a flag for each check; the first check has number 1.
    """
    if all(selected):
        return code
    keep = scalar_array(np.zeros((), bool))
    for i, select in enumerate(selected, 1):
        if select:
            keep = or_p.bind(keep, eq_p.bind(code, i))
    return where(keep, code, 0)


def _known(x: Any) -> Any:
    """Return the value of an array on the host; None if it is a tracer without a known value."""
    if isinstance(x, Tracer):
        x = x.concrete() if is_at_work(x._trace) else None
    return None if x is None else host_value(x)


def _refuse_hidden(primitive: Primitive, params: dict[str, Any]) -> None:
    """Raise if a parameter of an operation is a program with user checks.

    ``primitive`` has no rule by which ``checkify`` could collect their failures.
    """
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr) and has_checks(item):
                raise MissingRuleError(
                    f"the primitive {primitive.name!r} holds a program with a check, but has neither a feed rule "
                    f"nor a checked_program rule; checkify needs one to return the failure. Remove the check from "
                    f"the function."
                )


def has_checks(closed: ClosedJaxpr) -> bool:
    """Whether a program has user checks."""
    return check_p.name in closed.jaxpr.effects


def may_check(jaxpr: Jaxpr) -> bool:
    """Whether a program has user checks, or has linear maps.

    A linear map is a Python function, whose checks are found only when it runs.
    """
    if check_p.name in jaxpr.effects:
        return True
    return any("linear_map" in eqn.params or any(map(may_check, subjaxprs(eqn))) for eqn in jaxpr.eqns)


def is_checking(trace: Trace) -> bool:
    """Whether ``trace`` or one of its parents is a trace of ``checkify``."""
    while not isinstance(trace, CheckTrace):
        if trace is trace.parent:
            return False
        trace = trace.parent
    return True


class Checked(NamedTuple):
    """A program that returns its failures before its results.

    Attributes:
      jaxpr: the program. If ``layout`` has no checks, it returns only its results.
      layout: the layout of the failures.
    """

    jaxpr: ClosedJaxpr
    layout: ErrorLayout


def width(layout: ErrorLayout) -> int:
    """Return the number of arrays that represent failures of the layout ``layout``; 0 if it has no checks."""
    return 1 + len(layout.slots) if layout.checks else 0


def flat(failures: Failures) -> list[Any]:
    """Return the list of arrays that represent failures: the code, and the payload; empty if there are no checks."""
    return [failures.code, *failures.payload] if failures.checks else []


@cached_by_jaxpr
def checked_jaxpr(closed: ClosedJaxpr, errors: Errors, enclosed: bool) -> Checked:
    """Transform a program to return its failures before its results.

    Args:
      closed: the program.
      errors: the kinds of failures to return.
      enclosed: whether to keep checks of other kinds in the program, for an enclosing ``checkify``.
    """
    if errors == USER and not may_check(closed.jaxpr):
        return Checked(closed, ErrorLayout((), ()))
    layout = ErrorLayout((), ())

    def run(*args: Any) -> list[Any]:
        nonlocal layout
        trace = CheckTrace(state.trace, closed, errors, enclosed)
        outs = trace.run(jaxpr_as_fun(closed), *args)
        total = trace.total()
        if total is None:
            return outs  # type: ignore[no-any-return]
        layout = total.layout
        return [*flat(total), *outs]

    program = stage_flat(closed, run, closed.in_avals)
    return Checked(program if layout.checks or has_checks(closed) else closed, layout)


@cached_by_jaxpr
def embedded(closed: ClosedJaxpr, own: ErrorLayout, others: tuple[ErrorLayout, ...], i: int) -> ClosedJaxpr:
    """Return a program that returns its failures in the common layout of several programs.

    Args:
      closed: the program, which returns its failures in its own layout before its results.
      own: its own layout.
      others: the layouts of all programs.
      i: the index of the program.
    """
    common = joined(others)
    if common.layout == own:
        return closed
    count = width(own)

    def run(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        failures = Failures(outs[0], outs[1:count], own.checks) if count else ErrorLayout((), ()).none()
        return [*flat(common.embed(i, failures)), *outs[count:]]

    return stage_flat(closed, run, closed.in_avals)


def _start(group: int, takes: Sequence[int], groups: Sequence[Sequence[Any]]) -> int:
    """Return the index of a loop program's first input that belongs to a group of the loop's operands.

    Args:
      group: the number of the group.
      takes: the numbers of the groups that are the inputs of the program, in order.
      groups: the operands of the loop, in groups: consts, carry and so on.
    """
    return sum([len(groups[g]) for g in takes[: takes.index(group)]])


@cached_by_jaxpr
def _carrying(step: ClosedJaxpr, layout: ErrorLayout, at: int) -> ClosedJaxpr:
    """Return a step of a loop that carries the first failure.

    Args:
      step: the step, which returns its own failure before its results.
      layout: the layout of the failure.
      at: the index of the inputs of the new step for the arrays of an earlier failure.

    Returns:
      The new step. Before its results, it returns the earlier failure if there is one, and otherwise its own.
    """
    count = width(layout)

    def run(*values: Any) -> list[Any]:
        consts, before, others = split_list(values, at, count)
        outs = jaxpr_as_fun(step)(*consts, *others)
        first, second = (Failures(xs[0], list(xs[1:count]), layout.checks) for xs in (before, outs))
        return [*flat(earlier(first, second)), *outs[count:]]

    avals = step.in_avals
    return stage_flat(step, run, [*avals[:at], *step.out_avals[:count], *avals[at:]])


def _testing_after(
    feeding: Feed, carried: int, groups: list[list[Any]], holds: list[Any]
) -> tuple[Feed, int, list[list[Any]]]:
    """Move the test of a loop to the end of each step, which carries the result of the test.

    Args:
      feeding: the description of the loop.
      carried: the index of the group of operands that steps carry.
      groups: the operands, in groups.
      holds: the result of the test before the first step, as a list.

    Returns:
      The new description, the index of the group that steps carry, and the new groups.
    """
    assert feeding.test is not None
    test, takes = feeding.test
    own = next(g for g in feeding.takes if g != carried)
    moved = tuple([g for g in takes if g not in feeding.takes])
    sizes = tuple(map(len, groups))
    step, condition = _step_and_test(feeding.programs[0], test, feeding.takes, takes, carried, own, moved, sizes)
    added = {carried: holds, own: [x for g in moved for x in groups[g]]}
    groups = [[*added.get(g, ()), *group] for g, group in enumerate(groups)]
    return feeding._replace(programs=(step,), test=(condition, takes)), carried, groups


@cached_by_jaxpr
def _step_and_test(
    body: ClosedJaxpr, test: ClosedJaxpr, takes: tuple[int, ...], test_takes: tuple[int, ...], carried: int, own: int,
    moved: tuple[int, ...], sizes: tuple[int, ...],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:  # fmt: skip
    """Move the test of a loop to the end of its step; return the new step, and the new test.

    The new step carries the result of the test, and the new test returns this result. A loop's operands are in numbered
    groups.

    Args:
      body, test: the step, and the test.
      takes, test_takes: the numbers of the groups that are the inputs of the step, and of the test.
      carried: the number of the group that steps carry.
      own: the number of a group of consts of the step.
      moved: the numbers of the groups that only the test takes; the new step takes them before the group ``own``.
      sizes: the number of operands of each group.
    """
    avals: dict[int, list[ShapedArray]] = {}
    for closed, groups in ((body, takes), (test, test_takes)):
        avals.update(zip(groups, split_list(closed.in_avals, *[sizes[g] for g in groups]), strict=False))
    avals[own] = [a for g in (*moved, own) for a in avals[g]]
    avals[carried] = [*test.out_avals, *avals[carried]]

    def run(*values: Any) -> list[Any]:
        inputs = dict(zip(takes, split_list(values, *[len(avals[g]) for g in takes]), strict=False))
        inputs.update(zip((*moved, own), split_list(inputs[own], *[sizes[g] for g in moved]), strict=True))
        inputs[carried] = inputs[carried][len(test.out_avals) :]
        inputs[carried] = jaxpr_as_fun(body)(*[x for g in takes for x in inputs[g]])
        return [*jaxpr_as_fun(test)(*[x for g in test_takes for x in inputs[g]]), *inputs[carried]]

    invars = {g: list(map(Var, avals[g])) for g in test_takes}
    jaxpr = Jaxpr([], [v for g in test_takes for v in invars[g]], [], invars[carried][: len(test.out_avals)])
    return stage_flat(body, run, [a for g in takes for a in avals[g]]), ClosedJaxpr(jaxpr, [])


def batch_checked(
    p: Primitive, axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]
) -> tuple[list[Any], list[int | None]]:
    """Batch an operation that holds programs with user checks; return the results, and the mapped axis of each.

    Failures become results before the operation is batched. So an example has no failure from a branch that it does not
    take, or from steps of a loop after its own last step.

    Args:
      p: the primitive of the operation.
      axis: the mapped axis.
      args: the operands.
      dims: the position of the mapped axis in each operand, or None.
      params: the parameters of the operation.
    """

    def run(*values: Any) -> list[Any]:
        trace = CheckTrace(state.trace, p, USER, False)
        outs = trace.run(p.bind, *values, **params)
        total = trace.total()
        if total is not None:
            check_p.bind(total.code, *total.payload, checks=total.checks, debug=False)
        return outs  # type: ignore[no-any-return]

    return batch_flat(p, run, axis, args, dims)


@contextmanager
def collecting(trace: CheckTrace, found: list[Failures] | None = None) -> Iterator[None]:
    """Return a context manager in which failures of checks are collected for a trace, even if another trace is current.

    Args:
      trace: the trace. If it has ended and ``found`` is None, failures are not collected.
      found: a list that receives the failures instead of the trace.
    """
    if found is None and not trace.live:
        yield
        return
    inner = CheckTrace(state.trace, trace.function, trace.errors, trace.enclosed)
    inner.found = trace.found if found is None else found
    outer = state.trace
    try:
        recorders.append(inner)
        state.trace = inner
        yield
    finally:
        state.trace = outer
        inner.live = False
        if inner in recorders:
            recorders.remove(inner)
        trace.failed = trace.failed or (found is None and inner.failed)


class _CollectingMap(LinearMap):
    """A linear map like ``linear_map``. Running it adds its failures to ``trace``, unless ``trace`` has ended."""

    def __init__(self, linear_map: LinearMap, trace: CheckTrace) -> None:
        self.linear_map, self.trace = linear_map, trace
        self.function, self.count, self.out_avals = linear_map.function, linear_map.count, linear_map.out_avals

    def _collecting(self) -> Any:
        return collecting(self.trace)

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        with self._collecting():
            return self.linear_map.apply(residuals, tangents)

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        with self._collecting():
            return self.linear_map.transpose(residuals, cts)


class _SilentMap(_CollectingMap):
    """A linear map like ``linear_map``, without failures of checks, since ``trace`` collected them before."""

    def _collecting(self) -> Any:
        return collecting(self.trace, [])  # the list is discarded
