"""Rematerialisation: which equations run again in the backward pass, under a policy that says what to save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.lists import appended, fixpoint, positions, select, split_list
from pullback.transforms.traces.dce import close, live_equations
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.partial_eval import PartialEvaluation, partial_eval_jaxpr

Flags = Sequence[bool]
Policy = Callable[..., Any]
"""``policy(primitive, *avals, **params)``: whether the results of an operation may be saved; or an ``Offload``."""


class Offload(Protocol):
    """The answer of a policy that saves values in another memory."""

    def moves(self, value: Var, stored: Var) -> tuple[Eqn, Eqn]:
        """Return the equation that moves ``value`` to ``stored``, in the other memory, and the equation back."""


class RematSplit(NamedTuple):
    """Equations, split for the forward pass and for recomputation in the backward pass.

    Attributes:
      first: all equations, for the forward pass; some have further results, which are saved.
      again: the equations to run again, in order; a loop or an inner program may be smaller than in ``first``.
      saved: the variables that ``first`` computes and that are saved, so that ``again`` may read them.
      offloads: how to save those of them that are saved in another memory.
    """

    first: list[Eqn]
    again: list[Eqn]
    saved: list[Var]
    offloads: dict[Var, Offload] = {}  # noqa: RUF012  (never changed)


def remat_split(eqns: Sequence[Eqn], wanted: Iterable[Atom], policy: Policy | None, effects: bool) -> RematSplit:
    """Split equations for rematerialisation: find the equations that must run again to compute some variables.

    Args:
      eqns: the equations.
      wanted: the variables.
      policy: says which results the forward pass saves; with None, it saves no results.
      effects: whether all equations with effects run again, even if no wanted variable needs them.
    """
    needed: set[Atom] = set(wanted)
    with_operand = getattr(policy, "keeps_operand", None)  # an equation whose result equals its operand
    same = {a for eqn in eqns if with_operand(eqn) for a in eqn.invars} if with_operand else set[Any]()
    first: list[Eqn] = []
    again: list[Eqn] = []
    saved: list[Var] = []
    offloads: dict[Var, Offload] = {}
    for eqn in reversed(eqns):  # readers first: an equation runs again only if ``again`` reads an unsaved result of it
        flags = tuple([v in needed for v in eqn.outvars])
        if not any(flags) and not (effects and eqn.effect):
            first.append(eqn)
            continue
        if policy is None:
            halves = RematSplit([eqn], [eqn], [])
        elif same and same.issuperset(select(eqn.outvars, flags)):
            halves = RematSplit([eqn], [], select(eqn.outvars, flags))
        elif eqn.primitive.remat_rule is not None:
            halves = eqn.primitive.remat_rule(eqn, flags, policy, effects)
        elif verdict := policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params):
            kept = select(eqn.outvars, flags)
            halves = RematSplit([eqn], [], kept, {v: verdict for v in kept if hasattr(verdict, "moves")})
        else:
            halves = RematSplit([eqn], [eqn], [])
        first += halves.first
        again += halves.again
        saved += halves.saved
        offloads.update(halves.offloads)
        for eqn_again in halves.again:
            needed.update(a for a in eqn_again.invars if type(a) is Var)
    return RematSplit(first[::-1], again[::-1], saved[::-1], offloads)


class RematSteps(NamedTuple):
    """A program, split into the forward pass and a program that recomputes the values that a policy does not save.

    The program may be a step of a loop, for example ``carry (c), xs (x) -> carry (sin(x) * c), ys (exp(x))``. If
    ``sin(x)`` is saved, ``first`` is ``c, x -> sin(x) * c, exp(x), sin(x)``. If only ``ys`` is wanted, ``again`` is
    ``x -> exp(x)``.

    Attributes:
      first: the program with saved values as further results.
      again: the program that recomputes; its last inputs are residuals.
      inputs: for each input, whether ``again`` takes it; in the example ``[False, True]``.
      residuals: the saved values that ``again`` takes, as indices into the results of ``first``; in the example ``[]``.
      saved: all saved values, as indices into the results of ``first``; in the example ``[2]``.
      results: for each result, whether ``again`` returns it; in the example ``[False, True]``.
      offloads: how to save the saved values that are saved in another memory, by their indices into the results of
        ``first``.
    """

    first: ClosedJaxpr
    again: ClosedJaxpr
    inputs: list[bool]
    residuals: list[int]
    saved: list[int]
    results: list[bool]
    offloads: dict[int, Offload]

    def offloads_of(self, bound: Sequence[Var]) -> dict[Var, Offload]:
        """Return how to save values in another memory, by the variables ``bound`` to the results of ``first``."""
        return {bound[i]: offload for i, offload in self.offloads.items()}


@cached_by_jaxpr
def remat_steps(
    closed: ClosedJaxpr, wanted: Flags, policy: Policy, effects: bool, num_consts: int = 0, num_carry: int = 0
) -> RematSteps:
    """Split a program for rematerialisation.

    Args:
      closed: the program; perhaps the step of a scan, from consts, carry and xs to carry and ys.
      wanted: which results are needed again.
      policy: says which results of operations the forward pass saves.
      effects: whether all operations with effects run again, even if no wanted result needs them.
      num_consts, num_carry: the number of consts and of carried values, if it is a step."""
    jaxpr = closed.jaxpr
    carry_in = jaxpr.invars[num_consts : num_consts + num_carry]
    carry_out, others = split_list(jaxpr.outvars, num_carry)
    wanted_carry, wanted_others = split_list(wanted, num_carry)
    last = set(remat_split(jaxpr.eqns, select(carry_out, wanted_carry), policy, False).saved) if num_carry else set()

    def step(carry: list[bool]) -> Any:  # ``again`` has to compute each carry that it reads
        halves = remat_split(jaxpr.eqns, [*select(carry_out, carry), *select(others, wanted_others)], policy, effects)
        saved = set(halves.saved)
        results = [*carry, *(w and a not in saved for a, w in zip(others, wanted_others, strict=True))]
        again, read = live_equations(halves.again, select(jaxpr.outvars, results))
        return [c or v in read for c, v in zip(carry, carry_in, strict=True)], (halves, results, again, read)

    start = [w and a not in last for a, w in zip(carry_out, wanted_carry, strict=True)]
    carry, (halves, results, again, read) = fixpoint(step, start)
    saved, residuals = set(halves.saved), [v for v in halves.saved if v in read]
    columns = appended(others, residuals)
    index, read_again = positions(columns), set(residuals)
    inputs = [v in read for v in jaxpr.invars]
    inputs[num_consts : num_consts + num_carry] = carry
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    own = [v in last and w for v, w in zip(carry_out, wanted_carry, strict=True)]
    own += [v in read_again or (v in saved and wanted_others[i]) for i, v in enumerate(columns)]
    second = [*select(jaxpr.invars, inputs), *residuals]
    outs = [*carry_out, *columns]
    return RematSteps(
        close(Jaxpr(jaxpr.constvars, jaxpr.invars, halves.first, outs), values),
        close(Jaxpr([v for v in values if v in read], second, again, select(jaxpr.outvars, results)), values),
        inputs,
        [num_carry + index[v] for v in residuals],
        [i for i, o in enumerate(own) if o],
        results,
        {i: halves.offloads[v] for i, (v, o) in enumerate(zip(outs, own, strict=True)) if o and v in halves.offloads},
    )


def remat_program(eqn: Eqn, wanted: Flags, policy: Policy, effects: bool) -> RematSplit:
    """The remat rule of an operation that holds one program: split the program by the policy.

    Args:
      eqn: the equation.
      wanted: which of its results are needed again.
      policy: says which results of operations the forward pass saves.
      effects: whether all operations with effects run again, even if no wanted result needs them.
    """
    steps = remat_steps(eqn.params["jaxpr"], wanted, policy, effects)
    bound = [*eqn.outvars, *map(Var, steps.first.out_avals[len(eqn.outvars) :])]
    first = eqn.like(eqn.invars, bound, jaxpr=steps.first)
    operands = [*select(eqn.invars, steps.inputs), *[bound[i] for i in steps.residuals]]
    again = eqn.like(operands, select(eqn.outvars, steps.results), jaxpr=steps.again)
    rest = [again] if again.outvars or again.effect else []
    return RematSplit([first], rest, [bound[i] for i in steps.saved], steps.offloads_of(bound))


@cached_by_jaxpr
def remat_partial_eval(
    closed: ClosedJaxpr, unknown_inputs: Flags, instantiate: Flags | bool, policy: Policy | None
) -> PartialEvaluation:
    """Split a jaxpr by partial evaluation, with only the residuals that a policy allows.

    The unknown program recomputes the other known values that it needs.

    Args:
      closed: the program.
      unknown_inputs: for each input, whether it is unknown.
      instantiate: which results the unknown program returns even if they are known: a flag for all, or for each.
      policy: which values may be residuals; None for none, except inputs. Residuals that it saves in another memory are
        moved there at the end of the known program, and back at the beginning of the unknown one.

    >>> from pullback import lax, make_jaxpr
    >>> from pullback.transforms.traces.remat import remat_partial_eval
    >>> closed = make_jaxpr(lambda x, y: lax.mul(lax.sin(lax.cos(x)), y))(1.0, 2.0)
    >>> remat_partial_eval(closed, [False, True], False, None).unknown
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = cos a
        d:f32[] = sin c
        e:f32[] = mul d b
      in (e,) }
    """
    split = partial_eval_jaxpr(closed, unknown_inputs, instantiate)
    known, rest = split.known.jaxpr, split.unknown.jaxpr
    count = len(split.residual_sources)
    inputs = set(known.invars)
    residuals = [v for v in rest.invars[:count] if v not in inputs]
    results = known.outvars[: len(split.unknown_outputs) - sum(split.unknown_outputs)]
    halves = remat_split(known.eqns, residuals, policy, False)
    if halves.again:  # effects run again only if anything does
        halves = remat_split(known.eqns, residuals, policy, True)
    unknown_eqns, read = live_equations([*halves.again, *rest.eqns], rest.outvars)
    saved = [v for v in halves.saved if v in read]
    inputs_again = [v for v in known.invars if v in read]
    stored = [Var(v.aval) if v in halves.offloads else v for v in saved]
    pairs = [(v, to) for v, to in zip(saved, stored, strict=True) if v is not to]
    moves = [halves.offloads[v].moves(v, to) for v, to in pairs]
    unknown_eqns = [*[back for _, back in moves], *unknown_eqns]
    saved = stored
    outs = appended(results, saved)
    known_eqns, needed = live_equations([*halves.first, *[away for away, _ in moves]], outs)
    values = dict(zip(known.constvars, split.known.consts, strict=True))
    values.update(zip(rest.constvars, split.unknown.consts, strict=True))
    first = Jaxpr([v for v in values if v in needed], known.invars, known_eqns, outs)
    residuals = [*inputs_again, *saved]
    second = Jaxpr([v for v in values if v in read], [*residuals, *rest.invars[count:]], unknown_eqns, rest.outvars)
    index = positions([*known.invars, *outs])
    return PartialEvaluation(
        close(first, values), close(second, values), split.unknown_outputs, [v.aval for v in residuals],
        [index[v] for v in residuals], bool(halves.again),
    )  # fmt: skip
