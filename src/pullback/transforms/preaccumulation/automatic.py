"""Automatic preaccumulation: choosing the regions of a program whose local Jacobian takes less memory than residuals.

A region is a run of consecutive elementwise equations. If it is preaccumulated, reverse mode stores an array for each
pair of a result and an input that it depends on; otherwise the residuals of its equations. The disjoint regions are
chosen that save the most memory in total.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from pullback.core import dtypes
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, free_axes
from pullback.core.lists import scatter_where, select
from pullback.core.types import ShapedArray
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.preaccumulation import partials
from pullback.transforms.preaccumulation.local_jacobians import REFUSALS, NotElementwise, Recorder, useful_variables
from pullback.transforms.preaccumulation.primitive import Region, preaccumulate_p, run_freeing, stage_arrays
from pullback.transforms.traces.dce import close
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.equal_programs import deduplicated
from pullback.transforms.traces.inlining import flattened, programs_in_step
from pullback.transforms.traces.jaxprs import linearize_jaxpr
from pullback.transforms.traces.stage import StageTracer, stage_flat

LONGEST = 200
"""The largest number of equations of a region; the time of the search grows with it."""
MOST_WORK = 2
"""The largest number of inputs or of results of a region, whichever is smaller. Its local Jacobian takes at most so
many times the products of the backward pass."""


def preaccumulated(
    function: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Any], transformation: str
) -> Callable[..., list[Any]]:
    """Trace a function that is to be differentiated, and return a function of arrays that computes the same results.

    Some regions of the returned function are preaccumulated: the forward pass computes their local Jacobian, which
    reverse mode stores instead of the intermediate values.

    Args:
      function: the user's function, for error messages.
      run: the function to trace; it takes and returns flat sequences of arrays; auxiliary results may be any objects.
      primals: the point, as arrays.
      transformation: the name of the transformation, for error messages.
    """
    closed, as_returned = stage_arrays(function, run, primals, f'{transformation} with preaccumulate="auto"')
    jaxpr, consts = closed.jaxpr, closed.consts
    # Constants become inputs, so that the programs of different calls are equal and share derivatives.
    program = deduplicated(ClosedJaxpr(Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars)))
    active = [*[False] * len(consts), *[dtypes.is_inexact(a.dtype) for a in closed.in_avals]]
    result = automatic(program, tuple(active), name_of(function))
    return lambda *args: as_returned(run_freeing(result, [*consts, *args]))


def check_choice(what: str, preaccumulate: Any) -> None:
    """Raise unless the option ``preaccumulate`` of the transformation ``what`` is None or ``"auto"``."""
    if preaccumulate is not None and not (isinstance(preaccumulate, str) and preaccumulate == "auto"):
        raise ArgumentError(
            f'{what}: preaccumulate must be "auto" or None, got {preaccumulate!r}. '
            "For a single function use pullback.derivatives.preaccumulate."
        )


@cached_by_jaxpr
def automatic(closed: ClosedJaxpr, active: Sequence[bool], name: str, changing: range = range(0)) -> ClosedJaxpr:
    """Replace regions of a program, and of the bodies of its loops, by equations that store a local Jacobian.

    A region is replaced if reverse mode then stores fewer bytes. Return ``closed`` itself if there is no such region.

    Args:
      closed: the program.
      active: for each input, whether the program is differentiated with respect to it.
      name: the name of the function, for error messages.
      changing: for the body of a loop, the indices of the inputs that change in each step. Equations that depend only
        on the inputs before ``changing`` are loop-invariant, and are in no region.
    """
    flat = flattened(closed)
    invariant = _loop_invariant(flat.jaxpr, changing)
    # Loop-invariant equations go first, so that they do not separate the others, which regions consist of.
    eqns = flat.jaxpr.eqns
    ordered = [*(eqn for eqn in eqns if eqn in invariant), *(eqn for eqn in eqns if eqn not in invariant)]
    jaxpr = Jaxpr(flat.jaxpr.constvars, flat.jaxpr.invars, ordered, flat.jaxpr.outvars)
    inner = [_within(eqn, name) for eqn in jaxpr.eqns]
    costs = costs_of(ClosedJaxpr(jaxpr, flat.consts), active, changing)
    costs[: len(invariant)] = [Cost(False)] * len(invariant)
    eqns = []
    last = _last_uses(jaxpr)
    done = 0
    regions = choose_regions(jaxpr, costs)
    if not regions and inner == jaxpr.eqns:
        return closed
    for start, end in regions:
        eqns += inner[done:start]
        eqns.append(_region_equation(jaxpr, start, end, last, name))
        done = end
    eqns += inner[done:]
    return close(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), dict(zip(jaxpr.constvars, flat.consts)))


def _loop_invariant(jaxpr: Jaxpr, changing: range) -> set[Eqn]:
    """Return the equations of a loop's body that depend only on consts.

    The consts are the inputs before ``changing``, which has the indices of the inputs that change in each step.
    """
    fixed = set(jaxpr.invars[: changing.start])
    invariant: set[Eqn] = set()
    for eqn in jaxpr.eqns:
        operands = [a for a in eqn.invars if type(a) is Var]
        if operands and fixed.issuperset(operands) and not eqn.effect:
            invariant.add(eqn)
            fixed.update(eqn.outvars)
    return invariant


def _within(eqn: Eqn, name: str) -> Eqn:
    """Replace regions of the loop body or branches of an equation by equations that store a local Jacobian.

    Return the new equation, or ``eqn`` itself if there is no such region. ``name`` is the function's name, for error
    messages.
    """
    stepped = programs_in_step(eqn.primitive, eqn.params)
    programs = {closed: in_step(closed, name, changing) for closed, _, changing in stepped}
    if all(closed is found for closed, found in programs.items()):
        return eqn

    def changed(value: Any) -> Any:
        if isinstance(value, ClosedJaxpr):
            return programs.get(value, value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    return eqn.like(eqn.invars, eqn.outvars, **{key: changed(value) for key, value in eqn.params.items()})


def in_step(closed: ClosedJaxpr, name: str, changing: range) -> ClosedJaxpr:
    """Replace regions of a loop's body, or of a branch, by equations that store a local Jacobian; return the program.

    Args:
      closed: the program; reverse mode differentiates with respect to all its inexact inputs.
      name: the name of the function, for error messages.
      changing: the indices of the inputs that change in each step; empty for a branch.
    """
    active = tuple([dtypes.is_inexact(a.dtype) for a in closed.in_avals])
    found = automatic(closed, active, name, changing)
    return closed if found is closed else deduplicated(found)


def _last_uses(jaxpr: Jaxpr) -> dict[Any, int]:
    """Return, for each variable, the index of the last equation that reads it.

    For a result of the program, this is the number of equations.
    """
    last = {a: i for i, eqn in enumerate(jaxpr.eqns) for a in eqn.invars}
    last.update(dict.fromkeys(jaxpr.outvars, len(jaxpr.eqns)))
    return last


def _region_equation(jaxpr: Jaxpr, start: int, end: int, last: dict[Any, int], name: str) -> Eqn:
    """Replace the equations ``start`` to ``end - 1`` of a program by one ``preaccumulate`` equation; return it.

    Args:
      jaxpr: the program.
      start, end: the range of equations.
      last: for each variable, the index of the last equation that reads it.
      name: the name of the function, for error messages.
    """
    eqns = jaxpr.eqns[start:end]
    bound = {v for eqn in eqns for v in eqn.outvars}
    inputs = list(dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in bound))
    outs = [v for eqn in eqns for v in eqn.outvars if last.get(v, -1) >= end]
    program = deduplicated(ClosedJaxpr(Jaxpr([], inputs, eqns, list(outs))))
    region = Region(program, name, "markowitz")
    return Eqn(preaccumulate_p, [*inputs], {"jaxpr": program, "region": region}, outs, eqns[0].made_at, eqns[0].scope)


# Counting ------------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """The cost of an equation in reverse mode, without preaccumulation.

    Attributes:
      elementwise: whether the equation may be in a region that is replaced by its local Jacobian.
      operands: the operands that depend on differentiated inputs; empty if no derivative is needed.
      results: the results that depend on differentiated inputs.
      residuals: the size in bytes of each residual that reverse mode would store, by variable.
    """

    elementwise: bool
    operands: Sequence[Any] = ()
    results: Sequence[Any] = ()
    residuals: Mapping[Any, int] = MappingProxyType({})


def costs_of(closed: ClosedJaxpr, active: Sequence[bool], changing: range) -> list[Cost]:
    """Return the cost of each equation of a program in reverse mode.

    Args:
      closed: the program.
      active: for each input, whether the program is differentiated with respect to it.
      changing: for the body of a loop, the indices of the inputs that change in each step.
    """
    costs: list[Cost] = []
    stage_flat(closed, partial(_counted, closed, active, changing, costs), closed.in_avals)
    return costs


def _counted(
    closed: ClosedJaxpr, active: Sequence[bool], changing: range, costs: list[Cost], *primals: Any
) -> list[Any]:
    """Trace a program, and append the cost of each of its equations in reverse mode to ``costs``; return an empty list.

    Args:
      closed: the program.
      active: for each input, whether the program is differentiated with respect to it.
      changing: for the body of a loop, the indices of the inputs that change in each step.
      costs: receives the costs.
      primals: the inputs, as tracers.
    """
    jaxpr = closed.jaxpr
    useful = useful_variables(jaxpr)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, primals, strict=True))
    free = {x.variable for i, x in enumerate(primals) if i not in changing}
    invariant = _loop_invariant(jaxpr, changing)
    depends: set[Any] = {v for v, flag in zip(jaxpr.invars, active, strict=True) if flag}
    for eqn in jaxpr.eqns:
        values = [env[a] if type(a) is Var else a.val for a in eqn.invars]  # type: ignore[union-attr]
        counts = not useful.isdisjoint(eqn.outvars)
        outs, cost = _cost_of(eqn, values, [counts and a in depends for a in eqn.invars])
        # Storing an argument takes no memory, and storing a loop-invariant value takes it for a single step.
        if eqn in invariant:
            free.update(x.variable for x in outs if type(x) is StageTracer)
        costs.append(cost._replace(residuals={v: size for v, size in cost.residuals.items() if v not in free}))
        depends.update(cost.results)
        env.update(zip(eqn.outvars, outs, strict=True))
    return []


def _cost_of(eqn: Eqn, values: Sequence[Any], own: Sequence[bool]) -> tuple[list[Any], Cost]:
    """Evaluate an equation on tracers; return its results, and its cost in reverse mode.

    The equation may be in a region that is replaced by its local Jacobian only if it is elementwise in all operands:
    another transformation may differentiate with respect to operands that are not active.

    Args:
      eqn: the equation.
      values: its operands.
      own: which operands are active, so that reverse mode differentiates with respect to them.
    """
    primitive, params = eqn.primitive, eqn.params
    inexact = [dtypes.is_inexact(a.aval.dtype) for a in eqn.invars]
    recorder = Recorder([a.aval.dtype for a in select(eqn.invars, inexact)])
    operands = select(eqn.invars, own)
    vertices = scatter_where(inexact, range(sum(inexact)), None)
    is_real = not any(dtypes.is_complex(a.aval.dtype) for a in (*eqn.invars, *eqn.outvars))
    try:
        if not is_real or eqn.effect or free_axes(primitive, params):
            raise NotElementwise(eqn)
        outs, ends = recorder.run(eqn, values, vertices)
    except REFUSALS:
        out = primitive.bind(*values, **params)
        outs = list(out) if primitive.multiple_results else [out]
        return outs, Cost(False, operands, *_linearized(eqn, values, own))
    if True not in own:
        return outs, Cost(True)
    if primitive.partial_eval_rule is not None:
        return outs, Cost(True, operands, *_linearized(eqn, values, own))
    reached = {v for v, flag in zip(vertices, own, strict=True) if flag}
    residuals: dict[Any, int] = {}
    for v in range(recorder.graph.inputs, len(recorder.graph.before)):
        for u, x in recorder.graph.before[v].items():
            if u in reached:
                reached.add(v)
                value = partials.stored(x)
                if type(value) is StageTracer:
                    residuals[value.variable] = _bytes(value.aval)
    active_results = [v for v, end in zip(eqn.outvars, ends, strict=True) if end in reached]
    return outs, Cost(True, operands, active_results, residuals)


def _linearized(eqn: Eqn, values: Sequence[Any], own: Sequence[bool]) -> tuple[list[Any], dict[Any, int]]:
    """Linearise an equation at the operands ``values`` with respect to the operands that ``own`` flags.

    Return the results that depend on these operands, and the size in bytes of each residual, by variable.
    """
    if True not in own:
        return [], {}
    invars, outvars = [Var(a.aval) for a in eqn.invars], [Var(v.aval) for v in eqn.outvars]
    program = ClosedJaxpr(Jaxpr([], [*invars], [eqn.like([*invars], outvars)], [*outvars]))
    linearized = linearize_jaxpr(program, own)
    residuals: dict[Any, int] = {}
    for source, aval in zip(linearized.residual_sources, linearized.linear.in_avals, strict=False):
        value = values[source] if source < len(values) else None
        residuals[value.variable if type(value) is StageTracer else (eqn, source)] = _bytes(aval)
    return select(eqn.outvars, linearized.nonzero_tangents), residuals


def _bytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


# Choosing ------------------------------------------------------------------------------------------------------------


def choose_regions(jaxpr: Jaxpr, costs: Sequence[Cost]) -> list[tuple[int, int]]:
    """Choose the regions that save the most memory; return the range ``(start, end)`` of each, without ``end``.

    ``costs`` has the cost of each equation. The choice is by dynamic programming. The largest saving in the first
    ``end`` equations is either that in the first ``end - 1``, or the saving of a region from ``start`` to ``end``, plus
    the largest saving in the first ``start`` equations.
    """
    count = len(jaxpr.eqns)
    ending: list[list[tuple[int, int]]] = [[] for _ in range(count + 1)]
    users = _users(costs)
    last = _last_uses(jaxpr)
    for start in range(count):
        if costs[start].elementwise and costs[start].operands:
            for end, saved in _savings(jaxpr, costs, users, last, start):
                ending[end].append((start, saved))
    best = [0] * (count + 1)
    begin: list[int | None] = [None] * (count + 1)
    for end in range(1, count + 1):
        best[end] = best[end - 1]
        for start, saved in ending[end]:
            if best[start] + saved > best[end]:
                best[end], begin[end] = best[start] + saved, start
    regions = []
    end = count
    while end:
        first = begin[end]
        if first is None:
            end -= 1
        else:
            regions.append((first, end))
            end = first
    return regions[::-1]


def _users(costs: Sequence[Cost]) -> dict[Any, tuple[int, int]]:
    """Return, for each residual, the indices of the first and the last equation that need it.

    ``costs`` has the cost, with the residuals, of each equation.
    """
    users: dict[Any, tuple[int, int]] = {}
    for i, cost in enumerate(costs):
        for v in cost.residuals:
            users[v] = users.get(v, (i, i))[0], i
    return users


def _savings(
    jaxpr: Jaxpr, costs: Sequence[Cost], users: dict[Any, tuple[int, int]], last: dict[Any, int], start: int
) -> Iterator[tuple[int, int]]:
    """Yield ``(end, bytes saved)`` for each region that begins with the equation ``start`` and saves memory.

    Args:
      jaxpr: the program.
      costs: the cost of each of its equations.
      users: for each residual, the first and the last equation that need it.
      last: for each variable, the last equation that reads it.
      start: the index of the first equation of the region."""
    inputs: dict[Any, int] = {}  # each active input, and its bit in the sets of inputs
    depends: dict[Any, int] = {}  # for each active variable of the region, the set of inputs that it depends on
    live: dict[Any, int] = {}  # the variables that are read after the region, with the bytes of their derivatives
    saved = 0
    for end in range(start + 1, min(start + LONGEST, len(costs)) + 1):
        eqn, cost = jaxpr.eqns[end - 1], costs[end - 1]
        if not cost.elementwise:
            return
        # A residual is saved only if no equation outside of the region needs it.
        saved += sum(size for v, size in cost.residuals.items() if users[v][0] >= start and users[v][1] == end - 1)
        for a in eqn.invars:
            if last[a] < end:
                live.pop(a, None)
        if not cost.operands:
            continue
        on = 0
        for a in cost.operands:
            on |= depends[a] if a in depends else inputs.setdefault(a, 1 << len(inputs))
        for v in cost.results:
            depends[v] = on
            if last.get(v, -1) >= end:
                live[v] = _bytes(v.aval) * on.bit_count()
        stored = sum(live.values())
        if saved > stored and min(len(inputs), len(live)) <= MOST_WORK:
            yield end, saved - stored
