"""Rematerialisation: which equations run again in the backward pass, if a policy says what the forward pass keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.lists import appended, fixpoint, positions, select, split_list
from pullback.transforms.traces.dce import close, live_equations
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.partial_eval import PartialEvaluation, partial_eval_jaxpr

Flags = Sequence[bool]
Policy = Callable[..., bool]
"""``policy(primitive, *avals, **params)``: whether the results of an operation may be kept."""


class RematSplit(NamedTuple):
    """Equations in two: those that are computed at first, and those that are computed again.

    Attributes:
      first: all of the equations; some return more results than they did.
      again: those that are needed once more, in order; of some only a part.
      kept: the variables that ``first`` binds and that are kept, so that ``again`` may read them.
    """

    first: list[Eqn]
    again: list[Eqn]
    kept: list[Var]


def remat_split(eqns: Sequence[Eqn], wanted: Iterable[Atom], policy: Policy | None, effects: bool) -> RematSplit:
    """Which equations have to be computed again for some variables, if a policy says what is kept.

    Args:
      eqns: the equations.
      wanted: the variables.
      policy: the policy; None keeps nothing.
      effects: whether equations with effects are done again, needed or not.
    """
    needed: set[Atom] = set(wanted)
    first: list[Eqn] = []
    again: list[Eqn] = []
    kept: list[Var] = []
    for eqn in reversed(eqns):
        flags = tuple([v in needed for v in eqn.outvars])
        if not any(flags) and not (effects and eqn.effect):
            first.append(eqn)
            continue
        if policy is None:
            halves = RematSplit([eqn], [eqn], [])
        elif eqn.primitive.remat_rule is not None:
            halves = eqn.primitive.remat_rule(eqn, flags, policy, effects)
        elif policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params):
            halves = RematSplit([eqn], [], select(eqn.outvars, flags))
        else:
            halves = RematSplit([eqn], [eqn], [])
        first += halves.first
        again += halves.again
        kept += halves.kept
        for part in halves.again:
            needed.update(a for a in part.invars if type(a) is Var)
    return RematSplit(first[::-1], again[::-1], kept[::-1])


class RematSteps(NamedTuple):
    """A program in two: the forward pass, and one that computes again what a policy does not keep.

    It may be a step of a loop. In ``carry (c), xs (x) -> carry (sin(x) * c), ys (exp(x))`` with ``sin(x)`` kept,
    ``first`` is ``c, x -> sin(x) * c, exp(x), sin(x)``. If only ``ys`` is wanted, ``again`` is ``x -> exp(x)``.

    Attributes:
      first: the program with kept values as further results.
      again: the program that computes again; kept values are its last inputs.
      inputs: for each input, whether ``again`` takes it: ``[False, True]``.
      taken: the kept values that ``again`` takes, as indices into the results of ``first``: ``[]``.
      kept: all kept values, as indices into the results of ``first``: ``[2]``.
      results: for each result, whether ``again`` returns it: ``[False, True]``.
    """

    first: ClosedJaxpr
    again: ClosedJaxpr
    inputs: list[bool]
    taken: list[int]
    kept: list[int]
    results: list[bool]


@cached_by_jaxpr
def remat_steps(
    closed: ClosedJaxpr, wanted: Flags, policy: Policy, effects: bool, num_consts: int = 0, num_carry: int = 0
) -> RematSteps:
    """Cut a program, whose inputs may begin with constants and a carry, and its results with the carry."""
    jaxpr = closed.jaxpr
    carry_in = jaxpr.invars[num_consts : num_consts + num_carry]
    carry_out, others = split_list(jaxpr.outvars, num_carry)
    wanted_carry, wanted_others = split_list(wanted, num_carry)
    last = set(remat_split(jaxpr.eqns, select(carry_out, wanted_carry), policy, False).kept) if num_carry else set()

    def step(carry: list[bool]) -> Any:  # a carry that a step reads must be carried
        halves = remat_split(jaxpr.eqns, [*select(carry_out, carry), *select(others, wanted_others)], policy, effects)
        kept = set(halves.kept)
        results = [*carry, *(w and a not in kept for a, w in zip(others, wanted_others, strict=True))]
        again, read = live_equations(halves.again, select(jaxpr.outvars, results))
        return [c or v in read for c, v in zip(carry, carry_in, strict=True)], (halves, results, again, read)

    start = [w and a not in last for a, w in zip(carry_out, wanted_carry, strict=True)]
    carry, (halves, results, again, read) = fixpoint(step, start)
    kept, taken = set(halves.kept), [v for v in halves.kept if v in read]
    columns = appended(others, taken)
    place, carried = positions(columns), set(taken)
    inputs = [v in read for v in jaxpr.invars]
    inputs[num_consts : num_consts + num_carry] = carry
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    own = [v in last and w for v, w in zip(carry_out, wanted_carry, strict=True)]
    own += [v in carried or (v in kept and wanted_others[i]) for i, v in enumerate(columns)]
    second = [*select(jaxpr.invars, inputs), *taken]
    return RematSteps(
        close(Jaxpr(jaxpr.constvars, jaxpr.invars, halves.first, [*carry_out, *columns]), values),
        close(Jaxpr([v for v in values if v in read], second, again, select(jaxpr.outvars, results)), values),
        inputs,
        [num_carry + place[v] for v in taken],
        [i for i, o in enumerate(own) if o],
        results,
    )


def remat_program(eqn: Eqn, wanted: Flags, policy: Policy, effects: bool) -> RematSplit:
    """The remat rule of an operation that holds one program, ``jaxpr``: the policy goes for the operations in it."""
    parts = remat_steps(eqn.params["jaxpr"], wanted, policy, effects)
    bound = [*eqn.outvars, *map(Var, parts.first.out_avals[len(eqn.outvars) :])]
    first = eqn.like(eqn.invars, bound, jaxpr=parts.first)
    operands = [*select(eqn.invars, parts.inputs), *[bound[i] for i in parts.taken]]
    again = eqn.like(operands, select(eqn.outvars, parts.results), jaxpr=parts.again)
    return RematSplit([first], [again] if again.outvars or again.effect else [], [bound[i] for i in parts.kept])


@cached_by_jaxpr
def remat_partial_eval(
    closed: ClosedJaxpr, unknown_inputs: Flags, instantiate: Flags | bool, policy: Policy | None
) -> PartialEvaluation:
    """Cut a program by which inputs are unknown; of what the rest needs, only what a policy says is kept.

    Args:
      closed: the program.
      unknown_inputs: for each input, whether it is unknown.
      instantiate: which results the unknown part returns, whatever they depend on.
      policy: None for nothing.

    >>> from pullback.primitives.elementwise import cos, mul, sin
    >>> from pullback.transforms.autodiff.tracing import make_jaxpr
    >>> closed = make_jaxpr(lambda x, y: mul(sin(cos(x)), y))(1.0, 2.0)
    >>> remat_partial_eval(closed, [False, True], False, None).unknown
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = cos a
        d:f32[] = sin c
        e:f32[] = mul d b
      in (e,) }
    """
    parts = partial_eval_jaxpr(closed, unknown_inputs, instantiate)
    known, rest = parts.known.jaxpr, parts.unknown.jaxpr
    count = len(parts.residual_sources)
    inputs = set(known.invars)
    residuals = [v for v in rest.invars[:count] if v not in inputs]
    results = known.outvars[: len(parts.unknown_outputs) - sum(parts.unknown_outputs)]
    halves = remat_split(known.eqns, residuals, policy, False)
    if halves.again:
        halves = remat_split(known.eqns, residuals, policy, True)
    unknown_eqns, read = live_equations([*halves.again, *rest.eqns], rest.outvars)
    kept = [v for v in halves.kept if v in read]
    taken = [v for v in known.invars if v in read]
    outs = appended(results, kept)
    known_eqns, needed = live_equations(halves.first, outs)
    values = dict(zip(known.constvars, parts.known.consts, strict=True))
    values.update(zip(rest.constvars, parts.unknown.consts, strict=True))
    first = Jaxpr([v for v in values if v in needed], known.invars, known_eqns, outs)
    second = Jaxpr([v for v in values if v in read], [*taken, *kept, *rest.invars[count:]], unknown_eqns, rest.outvars)
    place = positions([*known.invars, *outs])
    residuals = [*taken, *kept]
    return PartialEvaluation(
        close(first, values), close(second, values), parts.unknown_outputs, [v.aval for v in residuals],
        [place[v] for v in residuals], bool(halves.again),
    )  # fmt: skip
