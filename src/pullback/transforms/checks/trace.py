"""The interpreter of ``checkify``: it hands each operation on, and looks whether it failed.

It needs no tracers. What it finds are arrays, values of the trace below: a number that is 0 or says which check
failed, and what the message shows (``report``). Where these are known, as in eager code, nothing that holds is kept.
Of an operation that holds programs the trace makes another, whose programs return their failures
(:func:`checked_jaxpr`); so loops carry them, and of branches those of the one that is taken come out.
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
from pullback.primitives.collectives import vary
from pullback.primitives.discrete import eq_p, ne_p, or_p
from pullback.primitives.elementwise import convert_element_type, where
from pullback.primitives.operands import stop_gradient
from pullback.primitives.reductions import reduce_or
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
"""Fails where its first operand, the number of a check, is not 0; its others are what the messages show.

The parameter ``checks`` has the checks of these numbers. The first operand may have axes, of batches; the others have
these in front of their own.
"""


class CheckTrace(Trace):
    """Hands operations on, and collects what failed.

    Attributes:
      errors: the kinds of failures that it collects.
      enclosed: whether another such trace is below, which takes the failures of the user's checks that this one leaves.
      found: the failures so far, in order, each as far as it is not known to be none.
      failed: whether the last of these is known to be one, so that what comes later does not matter.
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
            rule, held = checked_program.of(primitive), feed.of(primitive)
            if rule is not None:
                return rule(self, args, params)
            if held is not None:
                return self._enter(held(**params), args)
            _refuse_hidden(primitive, params)
            results = self.parent.process(primitive, args, params)
            if self.errors != USER and not self.failed:
                self._look(primitive, args, params, results)
            return results
        finally:
            state.trace = outer

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a function returns that runs with this trace current, after which the trace has ended."""
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
        """Take what a program, or an operation, returned as its failure."""
        if self.failed:
            return
        code = _known(failures.code)
        if code is not None and not code:
            return
        self.found.append(failures._replace(payload=[stop_gradient(x) for x in failures.payload]))
        self.failed = code is not None

    def total(self) -> Failures | None:
        """The first failure of all, under the current trace; None if there are no checks."""
        return first_of_all(self.found)

    def _take(self, args: Sequence[Any], params: dict[str, Any]) -> None:
        """The failures of the user's checks, and those that were found by others and are checked by the user."""
        code, *payload = args
        table: tuple[Check, ...] = params["checks"]
        mine = [c.category in self.errors for c in table]
        if not all(mine) and self.enclosed:
            check_p.bind(_only(code, [not m for m in mine]), *payload, **params)
        if any(mine):
            found = first_along_axes(_only(code, mine), payload)
            if found is not None:
                self.add(Failures(found[0], found[1], table))

    def _look(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], results: Any) -> None:
        """Look whether an operation failed."""
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
        failed = failure.failed
        shape = failed.shape
        value = _known(failed)
        if value is not None and not value.any():
            return
        location = state.source_loc or source.here()
        structure = tree.structure((tuple(failure.payload), {}))
        slots = tuple(range(len(failure.payload)))
        check = Check(failure.category, failure.message + _place(location), structure, slots, location)
        if not failure.payload:
            code = convert_element_type(reduce_or(failed, range(len(shape))), INT32)
            self.add(Failures(code, [], (check,)))
            return
        payload = [x if x.shape == shape else broadcast_in_dim(x, shape, ()) for x in failure.payload]
        found = first_along_axes(convert_element_type(failed, INT32), payload)
        if found is not None:
            self.add(Failures(*found, (check,)))

    # Programs

    def _enter(self, held: Feed, args: Sequence[Any]) -> list[Any]:
        """The results of an operation whose programs return their failures first, where a loop also carries them."""
        groups = split_list(args, *held.sizes)
        if held.carried is not None:
            return self._loop(held, held.carried, groups)
        with held.within():
            found = list(map(self.checked, held.programs))
        layouts = tuple([program.layout for program in found])
        programs = tuple([embedded(program.jaxpr, program.layout, layouts, i) for i, program in enumerate(found)])
        return self.taken(joined(layouts).layout, held.bind(Fed(programs, None, groups)))

    def _loop(self, held: Feed, carried: int, groups: list[list[Any]]) -> list[Any]:
        """The results of a loop. A test that can fail runs before the loop, and then at the end of each step."""
        test, tests = (None, ()) if held.test is None else (self.checked(held.test[0]), held.test[1])
        if test is not None and test.layout.checks:
            holds = self.taken(test.layout, jaxpr_as_fun(test.jaxpr)(*[x for g in tests for x in groups[g]]))
            return self._loop(*_testing_after(held, carried, groups, holds))[len(holds) :]
        step, layout = self.checked(held.programs[0])
        condition = None if test is None else test.jaxpr
        failures = step.out_avals[: width(layout)]
        if failures:
            step = _carrying(step, layout, _start(carried, held.takes, groups))
            if condition is not None:
                condition = ignoring(condition, _start(carried, tests, groups), tuple(failures))
            groups[carried][:0] = [vary(x, a.varying) for x, a in zip(flat(layout.none()), failures, strict=True)]
        return self.taken(layout, held.bind(Fed((step,), condition, groups)))

    def linear(self, p: Primitive, args: Sequence[Any], linear_map: LinearMap, apply: Callable[..., Any]) -> list[Any]:
        """The results of a linear map, a Python function, in which the user may have checks.

        In eager code these hand on their failures when it runs. Else the failures are those of the map run once more,
        and the operation does without its checks.
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
                self.taken(program.layout, outs)
                linear_map = _SilentMap(linear_map, self)
            results = p.bind(*args, linear_map=linear_map)
        if self.errors != USER and not self.failed:
            self._look(p, args, {"linear_map": linear_map}, results)
        return results  # type: ignore[no-any-return]

    def checked(self, closed: ClosedJaxpr) -> Checked:
        """A program that returns its failures."""
        return checked_jaxpr(closed, self.errors, self.enclosed)

    def taken(self, layout: ErrorLayout, results: Sequence[Any]) -> list[Any]:
        """The results of an operation without those that are the failures of its programs, which the trace takes."""
        count = width(layout)
        if count:
            self.add(Failures(results[0], list(results[1:count]), layout.checks))
        return list(results[count:])


def _place(location: source.Location | None) -> str:
    """Where an operation is that failed, as a part of a template."""
    return f"\n{source.describe(location)}".replace("{", "{{").replace("}", "}}") if location else ""


def _only(code: Any, mine: Sequence[bool]) -> Any:
    """The numbers of some of the checks, and 0 for the others."""
    if all(mine):
        return code
    keep = scalar_array(np.zeros((), bool))
    for i, m in enumerate(mine, 1):
        if m:
            keep = or_p.bind(keep, eq_p.bind(code, i))
    return where(keep, code, 0)


def _known(x: Any) -> Any:
    """The value of an array, where Python may look at it."""
    if isinstance(x, Tracer):
        x = x.concrete() if is_at_work(x._trace) else None
    return None if x is None else host_value(x)


def _refuse_hidden(primitive: Primitive, params: dict[str, Any]) -> None:
    """Refuse an operation of unknown kind that holds a program with checks of the user's."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr) and has_checks(item):
                raise MissingRuleError(
                    f"the primitive {primitive.name!r} holds a program with a check, and has neither a feed nor a "
                    "checked_program rule, by which checkify would hand on its failure. Take the check out of the "
                    "function that it is given."
                )


def has_checks(closed: ClosedJaxpr) -> bool:
    """Whether a program has checks of the user's."""
    return check_p.name in closed.jaxpr.effects


def may_check(jaxpr: Jaxpr) -> bool:
    """Whether a program has checks of the user's, or linear maps, Python functions that may have some."""
    if check_p.name in jaxpr.effects:
        return True
    return any("linear_map" in eqn.params or any(map(may_check, subjaxprs(eqn))) for eqn in jaxpr.eqns)


def is_checking(trace: Trace) -> bool:
    """Whether checks reach a ``checkify``."""
    while not isinstance(trace, CheckTrace):
        if trace is trace.parent:
            return False
        trace = trace.parent
    return True


class Checked(NamedTuple):
    """A program that returns its failures before its results.

    Attributes:
      jaxpr: if it has no checks, it returns just its results.
      layout: of the failures.
    """

    jaxpr: ClosedJaxpr
    layout: ErrorLayout


def width(layout: ErrorLayout) -> int:
    """How many results failures are: none if there are no checks."""
    return 1 + len(layout.slots) if layout.checks else 0


def flat(failures: Failures) -> list[Any]:
    """Failures as results."""
    return [failures.code, *failures.payload] if failures.checks else []


@cached_by_jaxpr
def checked_jaxpr(closed: ClosedJaxpr, errors: Errors, enclosed: bool) -> Checked:
    """The program that also returns its failures.

    Args:
      closed: the program.
      errors: the kinds of failures.
      enclosed: whether checks of other kinds stay in the program; else they are dropped.
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
    """A checked program that returns failures as one of several programs, of which it is number ``i``."""
    together = joined(others)
    if together.layout == own:
        return closed
    count = width(own)

    def run(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        failures = Failures(outs[0], outs[1:count], own.checks) if count else ErrorLayout((), ()).none()
        return [*flat(together.embed(i, failures)), *outs[count:]]

    return stage_flat(closed, run, closed.in_avals)


def _start(group: int, takes: Sequence[int], groups: Sequence[Sequence[Any]]) -> int:
    """The first input of a program that is of a group."""
    return sum([len(groups[g]) for g in takes[: takes.index(group)]])


@cached_by_jaxpr
def _carrying(step: ClosedJaxpr, layout: ErrorLayout, at: int) -> ClosedJaxpr:
    """A checked step of a loop, which takes what failed before, from an input on, and returns what failed first."""
    count = width(layout)

    def run(*values: Any) -> list[Any]:
        consts, before, others = split_list(values, at, count)
        outs = jaxpr_as_fun(step)(*consts, *others)
        first, second = (Failures(xs[0], list(xs[1:count]), layout.checks) for xs in (before, outs))
        return [*flat(earlier(first, second)), *outs[count:]]

    avals = step.in_avals
    return stage_flat(step, run, [*avals[:at], *step.out_avals[:count], *avals[at:]])


def _testing_after(
    held: Feed, carried: int, groups: list[list[Any]], holds: list[Any]
) -> tuple[Feed, int, list[list[Any]]]:
    """A loop whose steps end with the test, and so take its constants before theirs; what it returned is carried."""
    assert held.test is not None
    test, tests = held.test
    own = next(g for g in held.takes if g != carried)
    moved = tuple([g for g in tests if g not in held.takes])
    sizes = tuple(map(len, groups))
    step, condition = _step_and_test(held.programs[0], test, held.takes, tests, carried, own, moved, sizes)
    before = {carried: holds, own: [x for g in moved for x in groups[g]]}
    groups = [[*before.get(g, ()), *group] for g, group in enumerate(groups)]
    return held._replace(programs=(step,), test=(condition, tests)), carried, groups


@cached_by_jaxpr
def _step_and_test(
    body: ClosedJaxpr, test: ClosedJaxpr, takes: tuple[int, ...], tests: tuple[int, ...], carried: int, own: int,
    moved: tuple[int, ...], sizes: tuple[int, ...],
) -> tuple[ClosedJaxpr, ClosedJaxpr]:  # fmt: skip
    """A step that ends with the test, and the test that is left: it reads what that returned.

    Args:
      body, test: the step, and the test.
      takes, tests: the groups of operands that are their inputs.
      carried: the group that is carried.
      own: a group of constants of the step.
      moved: the groups of constants that only the test takes, and the step before its own from now on.
      sizes: the number of operands of each group.
    """
    avals: dict[int, list[ShapedArray]] = {}
    for closed, groups in ((body, takes), (test, tests)):
        avals.update(zip(groups, split_list(closed.in_avals, *[sizes[g] for g in groups]), strict=False))
    avals[own] = [a for g in (*moved, own) for a in avals[g]]
    avals[carried] = [*test.out_avals, *avals[carried]]

    def run(*values: Any) -> list[Any]:
        given = dict(zip(takes, split_list(values, *[len(avals[g]) for g in takes]), strict=False))
        given.update(zip((*moved, own), split_list(given[own], *[sizes[g] for g in moved]), strict=True))
        given[carried] = given[carried][len(test.out_avals) :]
        given[carried] = jaxpr_as_fun(body)(*[x for g in takes for x in given[g]])
        return [*jaxpr_as_fun(test)(*[x for g in tests for x in given[g]]), *given[carried]]

    left = {g: list(map(Var, avals[g])) for g in tests}
    jaxpr = Jaxpr([], [v for g in tests for v in left[g]], [], left[carried][: len(test.out_avals)])
    return stage_flat(body, run, [a for g in takes for a in avals[g]]), ClosedJaxpr(jaxpr, [])


def batch_checked(
    p: Primitive, axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]
) -> tuple[list[Any], list[int | None]]:
    """The batching rule of an operation whose programs have checks of the user's, and run only for some examples.

    The failures of each example are found first, and then mapped with the results; so none is of an example that does
    not take a branch, or has left a loop.
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
    """Within it checks are collected for a trace, while that is at work, also where what is below it is current.

    Args:
      trace: which collects.
      found: where the failures go; by default they are the trace's.
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
    """A linear map that hands the failures of its checks to a trace, while that is at work."""

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
    """A linear map without its checks."""

    def _collecting(self) -> Any:
        return collecting(self.trace, [])
