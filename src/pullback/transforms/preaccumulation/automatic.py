"""Which parts of a program keep their local Jacobian: those that then hold less memory, by counting.

A part is a run of consecutive equations that work element for element. In its place reverse mode keeps an array for
each of its inputs that each of its results depends on. Without, it keeps what the derivatives of its equations
multiply by. Disjoint parts are chosen for which the difference, summed over all, is largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from pullback.core import dtypes
from pullback.core.array import Array, typeof
from pullback.core.errors import ArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, free_axes
from pullback.core.lists import scatter_where, select
from pullback.core.types import ShapedArray
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.preaccumulation import partials
from pullback.transforms.preaccumulation.local_jacobians import REFUSALS, NotElementwise, Recorder, useful_variables
from pullback.transforms.preaccumulation.primitive import Region, preaccumulate_p, run_freeing
from pullback.transforms.traces.dce import close
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.equal_programs import deduplicated
from pullback.transforms.traces.inlining import flattened, programs_in_step
from pullback.transforms.traces.jaxprs import linearize_jaxpr
from pullback.transforms.traces.stage import StageTracer, stage_flat

LONGEST = 200
"""How many equations a part has at most: the search takes a time that grows with it."""
MOST_WORK = 2
"""How many times as many products a Jacobian may take as the backward pass. It takes as many at most for each input, or
for each result, whichever are fewer."""


def preaccumulated(
    function: Any, run: Callable[..., Sequence[Any]], primals: Sequence[Any], transformation: str
) -> Callable[..., list[Any]]:
    """A function that is to be differentiated at a point, as a program of which parts keep their local Jacobian.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences, of arrays but for what stands beside the results.
      primals: the point, as arrays.
      transformation: its name.
    """
    avals = [typeof(x) for x in primals]
    others: dict[int, Any] = {}  # what stands beside the result and is no array

    def arrays_of(*args: Any) -> list[Any]:
        outs = run(*args)
        others.update((i, x) for i, x in enumerate(outs) if not isinstance(x, Array))
        return [x for x in outs if isinstance(x, Array)]

    def as_returned(arrays: Sequence[Any]) -> list[Any]:
        rest = iter(arrays)
        return [others[i] if i in others else next(rest) for i in range(len(arrays) + len(others))]

    closed = stage_flat(function, arrays_of, avals, f'{transformation} with preaccumulate="auto"')
    jaxpr, consts = closed.jaxpr, closed.consts
    program = deduplicated(ClosedJaxpr(Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars)))
    active = [*[False] * len(consts), *[dtypes.is_inexact(a.dtype) for a in avals]]
    chosen = automatic(program, tuple(active), name_of(function))
    return lambda *args: as_returned(run_freeing(chosen, [*consts, *args]))


def check_choice(what: str, preaccumulate: Any) -> None:
    """Refuse another choice of parts than none or ``"auto"``."""
    if preaccumulate is not None and not (isinstance(preaccumulate, str) and preaccumulate == "auto"):
        raise ArgumentError(
            f'{what}: preaccumulate must be "auto", or None, got {preaccumulate!r}. For one function there is '
            "pullback.derivatives.preaccumulate."
        )


@cached_by_jaxpr
def automatic(closed: ClosedJaxpr, active: Sequence[bool], name: str, changing: range = range(0)) -> ClosedJaxpr:
    """A program of the same results, of which parts keep their local Jacobian, in the bodies of its loops too.

    It is the program itself if no part is worth it.

    Args:
      closed: the program.
      active: for each input, whether it is differentiated by it.
      name: of the function, for error messages.
      changing: the numbers of the inputs that are others in each step of a loop, so that keeping them takes memory.
        What depends on the inputs before them alone is the same in all steps, and is computed once, outside of parts.
    """
    flat = flattened(closed)
    same = _same_in_all_steps(flat.jaxpr, changing)
    ordered = [*(eqn for eqn in flat.jaxpr.eqns if eqn in same), *(eqn for eqn in flat.jaxpr.eqns if eqn not in same)]
    jaxpr = Jaxpr(flat.jaxpr.constvars, flat.jaxpr.invars, ordered, flat.jaxpr.outvars)
    inner = [_within(eqn, name) for eqn in jaxpr.eqns]
    costs = costs_of(ClosedJaxpr(jaxpr, flat.consts), active, changing)
    costs[: len(same)] = [Cost(False)] * len(same)
    eqns: list[Eqn] = []
    last = _last_uses(jaxpr)
    done = 0
    parts = chosen_parts(jaxpr, costs)
    if not parts and inner == jaxpr.eqns:
        return closed
    for start, end in parts:
        eqns += inner[done:start]
        eqns.append(_part_of(jaxpr, start, end, last, name))
        done = end
    eqns += inner[done:]
    return close(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), dict(zip(jaxpr.constvars, flat.consts)))


def _same_in_all_steps(jaxpr: Jaxpr, changing: range) -> set[Eqn]:
    """The equations of a step that depend on the constants of the loop alone."""
    fixed = set(jaxpr.invars[: changing.start])
    same: set[Eqn] = set()
    for eqn in jaxpr.eqns:
        operands = [a for a in eqn.invars if type(a) is Var]
        if operands and fixed.issuperset(operands) and not eqn.effect:
            same.add(eqn)
            fixed.update(eqn.outvars)
    return same


def _within(eqn: Eqn, name: str) -> Eqn:
    """An equation that holds programs, with parts of these that keep their local Jacobian."""
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
    """A step of a loop, with parts that keep their local Jacobian; see :func:`automatic`."""
    active = tuple([dtypes.is_inexact(a.dtype) for a in closed.in_avals])
    found = automatic(closed, active, name, changing)
    return closed if found is closed else deduplicated(found)


def _last_uses(jaxpr: Jaxpr) -> dict[Any, int]:
    """For each variable the number of the last equation that reads it; of a result that of all equations."""
    last = {a: i for i, eqn in enumerate(jaxpr.eqns) for a in eqn.invars}
    last.update(dict.fromkeys(jaxpr.outvars, len(jaxpr.eqns)))
    return last


def _part_of(jaxpr: Jaxpr, start: int, end: int, last: dict[Any, int], name: str) -> Eqn:
    """Some consecutive equations of a program as one, which keeps its local Jacobian."""
    eqns = jaxpr.eqns[start:end]
    bound = {v for eqn in eqns for v in eqn.outvars}
    inputs = list(dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in bound))
    outs = [v for eqn in eqns for v in eqn.outvars if last.get(v, -1) >= end]
    program = deduplicated(ClosedJaxpr(Jaxpr([], inputs, eqns, list(outs))))
    part = Region(program, name, "markowitz")
    return Eqn(preaccumulate_p, [*inputs], {"jaxpr": program, "part": part}, outs, eqns[0].made_at, eqns[0].scope)


# Counting ------------------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What an equation costs in reverse mode, as it is.

    Attributes:
      elementwise: whether it may be in a part.
      operands: those that depend on what is differentiated by, if the equation matters.
      results: the same of its results.
      kept: the bytes of each value that its derivative multiplies by, found by the variable that it is.
    """

    elementwise: bool
    operands: Sequence[Any] = ()
    results: Sequence[Any] = ()
    kept: Mapping[Any, int] = MappingProxyType({})


def costs_of(closed: ClosedJaxpr, active: Sequence[bool], changing: range) -> list[Cost]:
    """The cost of each equation of a program."""
    costs: list[Cost] = []
    stage_flat(closed, partial(_counted, closed, active, changing, costs), closed.in_avals)
    return costs


def _counted(
    closed: ClosedJaxpr, active: Sequence[bool], changing: range, costs: list[Cost], *primals: Any
) -> list[Any]:
    """Run a program, and note the cost of each of its equations."""
    jaxpr = closed.jaxpr
    useful = useful_variables(jaxpr)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, primals, strict=True))
    given = {x.variable for i, x in enumerate(primals) if i not in changing}
    same = _same_in_all_steps(jaxpr, changing)
    depends: set[Any] = {v for v, flag in zip(jaxpr.invars, active, strict=True) if flag}
    for eqn in jaxpr.eqns:
        values = [env[a] if type(a) is Var else a.val for a in eqn.invars]  # type: ignore[union-attr]
        counts = not useful.isdisjoint(eqn.outvars)
        outs, cost = _cost_of(eqn, values, [counts and a in depends for a in eqn.invars])
        # An argument is there anyway, and what all steps have in common is there once.
        if eqn in same:
            given.update(x.variable for x in outs if type(x) is StageTracer)
        costs.append(cost._replace(kept={v: size for v, size in cost.kept.items() if v not in given}))
        depends.update(cost.results)
        env.update(zip(eqn.outvars, outs, strict=True))
    return []


def _cost_of(eqn: Eqn, values: Sequence[Any], own: Sequence[bool]) -> tuple[list[Any], Cost]:
    """The results of an equation under staging, and its cost if it is differentiated by some of its operands.

    An equation is in a part only if it works element for element on all of its operands: another transformation may
    differentiate by the others.
    """
    primitive, params = eqn.primitive, eqn.params
    inexact = [dtypes.is_inexact(a.aval.dtype) for a in eqn.invars]
    recorder = Recorder([a.aval.dtype for a in select(eqn.invars, inexact)])
    operands = select(eqn.invars, own)
    places = scatter_where(inexact, range(sum(inexact)), None)
    plain = not any(dtypes.is_complex(a.aval.dtype) for a in (*eqn.invars, *eqn.outvars))
    try:
        if not plain or eqn.effect or free_axes(primitive, params):
            raise NotElementwise(eqn)
        outs, ends = recorder.run(eqn, values, places)
    except REFUSALS:
        out = primitive.bind(*values, **params)
        outs = list(out) if primitive.multiple_results else [out]
        return outs, Cost(False, operands, *_as_a_whole(eqn, values, own))
    if True not in own:
        return outs, Cost(True)
    if primitive.partial_eval_rule is not None:
        return outs, Cost(True, operands, *_as_a_whole(eqn, values, own))
    reached = {v for v, flag in zip(places, own, strict=True) if flag}
    kept: dict[Any, int] = {}
    for v in range(recorder.graph.inputs, len(recorder.graph.before)):
        for u, x in recorder.graph.before[v].items():
            if u in reached:
                reached.add(v)
                value = partials.held(x)
                if type(value) is StageTracer:
                    kept[value.variable] = _bytes(value.aval)
    return outs, Cost(True, operands, [v for v, end in zip(eqn.outvars, ends, strict=True) if end in reached], kept)


def _as_a_whole(eqn: Eqn, values: Sequence[Any], own: Sequence[bool]) -> tuple[list[Any], dict[Any, int]]:
    """The results of an equation that depend on some operands, and what it keeps, linearised by itself."""
    if True not in own:
        return [], {}
    invars, outvars = [Var(a.aval) for a in eqn.invars], [Var(v.aval) for v in eqn.outvars]
    whole = ClosedJaxpr(Jaxpr([], [*invars], [eqn.like([*invars], outvars)], [*outvars]))
    parts = linearize_jaxpr(whole, own)
    kept: dict[Any, int] = {}
    for source, aval in zip(parts.residual_sources, parts.linear.in_avals, strict=False):
        value = values[source] if source < len(values) else None
        kept[value.variable if type(value) is StageTracer else (eqn, source)] = _bytes(aval)
    return select(eqn.outvars, parts.nonzero_tangents), kept


def _bytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


# Choosing ------------------------------------------------------------------------------------------------------------


def chosen_parts(jaxpr: Jaxpr, costs: Sequence[Cost]) -> list[tuple[int, int]]:
    """The parts of a program that together save the most: the first equation of each, and the one after its last.

    By dynamic programming: the most that can be saved in the first equations is either what can be in one fewer, or
    what a part that ends there saves, and what can be before it.
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
    parts = []
    end = count
    while end:
        first = begin[end]
        if first is None:
            end -= 1
        else:
            parts.append((first, end))
            end = first
    return parts[::-1]


def _users(costs: Sequence[Cost]) -> dict[Any, tuple[int, int]]:
    """For each value that is kept, the first equation that keeps it and the last."""
    users: dict[Any, tuple[int, int]] = {}
    for i, cost in enumerate(costs):
        for v in cost.kept:
            users[v] = users.get(v, (i, i))[0], i
    return users


def _savings(
    jaxpr: Jaxpr, costs: Sequence[Cost], users: dict[Any, tuple[int, int]], last: dict[Any, int], start: int
) -> Iterator[tuple[int, int]]:
    """For the parts that begin with an equation: where they end, and how many bytes each saves, if it saves any."""
    inputs: dict[Any, int] = {}  # each active input, and its bit in the sets of inputs
    depends: dict[Any, int] = {}  # for each active variable of the part, on which inputs it depends
    live: dict[Any, int] = {}  # those that are read later, each with the bytes of its derivatives
    saved = 0
    for end in range(start + 1, min(start + LONGEST, len(costs)) + 1):
        eqn, cost = jaxpr.eqns[end - 1], costs[end - 1]
        if not cost.elementwise:
            return
        saved += sum(size for v, size in cost.kept.items() if users[v][0] >= start and users[v][1] == end - 1)
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
        held = sum(live.values())
        if saved > held and min(len(inputs), len(live)) <= MOST_WORK:
            yield end, saved - held
