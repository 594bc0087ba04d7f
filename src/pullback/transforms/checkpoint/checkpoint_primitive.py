"""The primitive ``checkpoint``: a program of which a policy says what is kept for the backward pass.

Differentiation cuts it in two, as any program: values with residuals, and what is linear in the tangents. Residuals
that the policy does not keep are computed again in the second part, from the operands and from what is kept.
Transposed, that is the backward pass: first the computation, then the cotangents.

``optimization_barrier`` is here too, which keeps the compiler from finding that the two parts compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import tree
from pullback.core.array import Array, as_array, fresh
from pullback.core.errors import JaxprError
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Var, appended, eval_jaxpr, positions
from pullback.core.linear import LinearTrace, LinearTracer, is_linear
from pullback.core.naming import named
from pullback.core.trace import Primitive, Tracer, leaked, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.transforms.checkpoint.checkpoint_policies import Policy, everything_saveable, nothing_saveable
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.interpreters.dce import close, dce_closed_jaxpr, live_equations
from pullback.transforms.interpreters.jaxprs import batch_jaxpr, cached_by_jaxpr, jvp_jaxpr, transpose_jaxpr
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.programs.jit_primitive import jit_p

Flags = Sequence[bool]
Dims = Sequence[int | None]

# The barrier ---------------------------------------------------------------------------------------------------------

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True, keeps_weak_type=False)
optimization_barrier_p.abstract_eval(lambda *avals: list(avals))
optimization_barrier_p.impl(lambda args, params: [fresh(concrete(x)) for x in args])  # type: ignore[arg-type]


def concrete(x: Any) -> Array:
    """An operand of an operation that is evaluated.

    Raises:
      UnexpectedTracerError: it is a tracer that leaked.
    """
    array = x if isinstance(x, Array) else as_array(x)
    if isinstance(array, Tracer):
        raise leaked(array)
    return array


@named
@api_boundary
def optimization_barrier(operand: Any) -> Any:
    """The same values, of which the compiler is kept from knowing anything: it moves no operation past the barrier.

    Args:
      operand: a tree of arrays. None of the results is there before all of the operands are.

    Returns:
      The same tree of arrays.

    Raises:
      OperandError: a leaf is no array (a TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import jit
    >>> print(jit(lambda x: optimization_barrier(pnp.sin(x)))(0.0))
    0.0
    """
    leaves, treedef = tree.flatten(operand)
    arrays = [x if isinstance(x, Array) else as_array(x) for x in leaves]
    return tree.unflatten(treedef, optimization_barrier_p.bind(*arrays))


@optimization_barrier_p.jvp
def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    given = iter(optimization_barrier_p.bind(*[t for t in tangents if t is not ZERO]))
    return optimization_barrier_p.bind(*primals), [t if t is ZERO else next(given) for t in tangents]


@optimization_barrier_p.transpose
def _barrier_transpose(cts: Sequence[Any], *operands: Any) -> list[Any]:
    given = iter(optimization_barrier_p.bind(*[ct for ct in cts if ct is not ZERO]))
    return [None if ct is ZERO else next(given) for ct in cts]


def _barrier_divide(trace: LinearTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    linear = [type(x) is LinearTracer and x._trace is trace for x in args]
    if all(linear):
        return None
    values = iter(optimization_barrier_p.bind(*[x for x, n in zip(args, linear, strict=True) if not n]))
    tangents = iter(optimization_barrier_p.bind(*[x for x, n in zip(args, linear, strict=True) if n]))
    return [next(tangents if n else values) for n in linear]


optimization_barrier_p.record(_barrier_divide)


@optimization_barrier_p.batch
def _barrier_batch(axis: MappedAxis, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
    return optimization_barrier_p.bind(*args), dims


@optimization_barrier_p.lowering
def _barrier_xla(hlo: Any, *operands: Any) -> list[Any]:
    if not operands:
        return []
    types = [(x.shape, x.dtype) for x in operands]
    return hlo.many("stablehlo.optimization_barrier", operands, types)  # type: ignore[no-any-return]


# The primitive -------------------------------------------------------------------------------------------------------

checkpoint_p = Primitive("checkpoint", multiple_results=True, keeps_weak_type=False)


class Options(NamedTuple):
    """The parameters of a checkpoint beside its program.

    Attributes:
      policy: says what is kept for the backward pass.
      prevent_cse: whether the compiler is kept from merging what is computed again with what was computed before.
      differentiated: whether it is the second part of a program that was cut, in which something is computed again.
    """

    policy: Policy | None
    prevent_cse: bool
    differentiated: bool


def bind(jaxpr: ClosedJaxpr, options: Options, operands: Sequence[Any]) -> list[Any]:
    """The results of a checkpointed program, under the current trace."""
    return checkpoint_p.bind(*operands, jaxpr=jaxpr, **options._asdict())  # type: ignore[no-any-return]


@checkpoint_p.abstract_eval
def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, **options: Any) -> list[ShapedArray]:
    expected = jaxpr.in_avals
    if [(a.shape, a.dtype) for a in avals] != [(a.shape, a.dtype) for a in expected]:
        given, wanted = (", ".join(map(str, x)) for x in (avals, expected))
        raise JaxprError(f"this checkpointed program takes ({wanted}), but was given ({given})")
    return jaxpr.out_avals


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    closed: ClosedJaxpr = params["jaxpr"]
    outer, state.trace = state.trace, state.bottom
    try:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    finally:
        state.trace = outer


checkpoint_p.impl(_evaluate)


@checkpoint_p.lowering
def _lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    from pullback.backends.emit import emit_jaxpr

    options = Options(**params)
    if not (options.prevent_cse and options.differentiated):
        return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, operands)
    if hlo.module.platform == "cpu":
        return _write_branch(hlo, operands, jaxpr)
    # The cotangents pass the barrier with the operands, so that nothing is computed again before they are there.
    return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, _barrier_xla(hlo, *operands))


def _write_branch(hlo: Any, operands: Sequence[Any], closed: ClosedJaxpr) -> list[Any]:
    """A program as a branch that is always taken, of which the compiler does not know that.

    On processors the compiler of jaxlib 0.10.2 drops barriers before it chooses the order of operations, and computes
    everything again at once. Gradient of 24 layers of 64 for a batch of 512, of which 6 times 4 are checkpointed, in
    arrays of the width of a layer, and milliseconds; with jaxlib 0.12.0 the branch costs the run next to nothing:

    | | 0.10.2: memory | run | compile | 0.12.0: memory | run | compile |
    |---|---|---|---|---|---|---|
    | without a checkpoint | 71 | 18 | | 71 | 18 | |
    | operands behind a barrier | 73 | 19 | 700 | 18 | 10.1 | 145 |
    | a branch | 18 | 9.4 | 220 | 18 | 10.1 | 160 |
    """
    from pullback.backends.emit import emit_jaxpr

    effect = closed.jaxpr.effect
    bool_ = np.dtype(bool)
    order = hlo.number(False, bool_) if hlo.order is None else hlo.order
    types = [*[(a.shape, a.dtype) for a in closed.out_avals], *[((), bool_)] * effect]
    if not types:
        return []

    def taken() -> list[Any]:
        # The barrier keeps a short branch from becoming a choice between two results, of which both are computed.
        values = _barrier_xla(hlo, *operands)
        if not effect:
            return emit_jaxpr(hlo, closed.jaxpr, closed.consts, values)
        hlo.order = order
        return [*emit_jaxpr(hlo, closed.jaxpr, closed.consts, values), hlo.order]

    def other() -> list[Any]:
        return [hlo.splat(0, shape, dtype) for shape, dtype in types]

    always = _barrier_xla(hlo, hlo.number(True, bool_))
    outs = hlo.many("stablehlo.if", always, types, "", [hlo.region([], taken), hlo.region([], other)])
    if effect:
        *outs, hlo.order = outs
    return outs  # type: ignore[no-any-return]


@checkpoint_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    mapped, out_dims = batch_jaxpr(jaxpr, axis.size, tuple(dims), axis.name)
    return bind(mapped, Options(**params), args), out_dims


@cached_by_jaxpr
def _smaller(closed: ClosedJaxpr, used: Flags) -> tuple[ClosedJaxpr, list[bool]]:
    return dce_closed_jaxpr(closed, used)


def _dce(used: list[bool], eqn: Eqn) -> Eqn | None:
    smaller, used_inputs = _smaller(eqn.params["jaxpr"], used)
    invars = [a for a, u in zip(eqn.invars, used_inputs, strict=True) if u]
    return _like(eqn, smaller, invars, [v for v, u in zip(eqn.outvars, used, strict=True) if u])


checkpoint_p.dce(_dce)


def _like(eqn: Eqn, jaxpr: ClosedJaxpr, operands: Sequence[Any], results: Sequence[Var], **changes: Any) -> Eqn:
    """An equation like another, for another program."""
    params = {**eqn.params, "jaxpr": jaxpr, **changes}
    return Eqn(eqn.primitive, list(operands), params, list(results), eqn.made_at, eqn.scope)


# What is computed again ----------------------------------------------------------------------------------------------


class RematSplit(NamedTuple):
    """Equations in two: those that are computed at first, and those that are computed again.

    Attributes:
      first: all of the equations; some give more results than they did.
      again: those that are needed once more, in order; of some only a part.
      kept: the variables that ``first`` binds and that are kept, so that ``again`` may read them.
    """

    first: list[Eqn]
    again: list[Eqn]
    kept: list[Var]


def remat_split(eqns: Sequence[Eqn], wanted: Iterable[Atom], policy: Policy, effects: bool) -> RematSplit:
    """Which equations have to be computed again for some variables, if a policy says what is kept.

    Args:
      eqns: the equations.
      wanted: the variables.
      policy: the policy.
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
        rule = eqn.primitive.remat_rule if policy is not nothing_saveable else None
        if rule is not None:
            halves = rule(eqn, flags, policy, effects)
        elif policy(eqn.primitive, *[a.aval for a in eqn.invars], **eqn.params):
            halves = RematSplit([eqn], [], [v for v, f in zip(eqn.outvars, flags, strict=True) if f])
        else:
            halves = RematSplit([eqn], [eqn], [])
        first += halves.first
        again += halves.again
        kept += halves.kept
        for part in halves.again:
            needed.update(a for a in part.invars if type(a) is Var)
    return RematSplit(first[::-1], again[::-1], kept[::-1])


RematRule = Callable[[Eqn, Flags, Policy, bool], RematSplit]


class _Program(NamedTuple):
    """A program in two halves.

    Attributes:
      first: it gives what the program does, and then those kept values that are not results anyway.
      again: from some inputs and kept values to the wanted results that are not kept.
      inputs: for each input, whether ``again`` takes it.
      takes: where the kept values that ``again`` takes, after the inputs, are in the results of ``first``.
      kept: where all kept values are in the results of ``first``.
      results: which results ``again`` gives.
    """

    first: ClosedJaxpr
    again: ClosedJaxpr
    inputs: list[bool]
    takes: list[int]
    kept: list[int]
    results: list[bool]


@cached_by_jaxpr
def _program_halves(closed: ClosedJaxpr, wanted: Flags, policy: Policy, effects: bool) -> _Program:
    jaxpr = closed.jaxpr
    halves = remat_split(jaxpr.eqns, [a for a, w in zip(jaxpr.outvars, wanted, strict=True) if w], policy, effects)
    kept = set(halves.kept)
    results = [w and a not in kept for a, w in zip(jaxpr.outvars, wanted, strict=True)]
    given = [a for a, r in zip(jaxpr.outvars, results, strict=True) if r]
    again, read = live_equations(halves.again, given)
    taken = [v for v in halves.kept if v in read]
    outs = appended(jaxpr.outvars, taken)
    place, carried = positions(outs), set(taken)
    inputs = [v in read for v in jaxpr.invars]
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    second = [*[v for v, i in zip(jaxpr.invars, inputs, strict=True) if i], *taken]
    return _Program(
        close(Jaxpr(jaxpr.constvars, jaxpr.invars, halves.first, outs), values),
        close(Jaxpr([v for v in jaxpr.constvars if v in read], second, again, given), values),
        inputs,
        [place[v] for v in taken],
        [i for i, v in enumerate(outs) if v in carried or (v in kept and wanted[i])],
        results,
    )


def _call_again(eqn: Eqn, wanted: Flags, policy: Policy, effects: bool) -> RematSplit:
    parts = _program_halves(eqn.params["jaxpr"], wanted, policy, effects)
    bound = [*eqn.outvars, *[Var(a) for a in parts.first.out_avals[len(eqn.outvars) :]]]
    operands = [a for a, i in zip(eqn.invars, parts.inputs, strict=True) if i]
    results = [v for v, r in zip(eqn.outvars, parts.results, strict=True) if r]
    first = _like(eqn, parts.first, eqn.invars, bound)
    again = _like(eqn, parts.again, [*operands, *[bound[i] for i in parts.takes]], results)
    return RematSplit([first], [again] if results or again.effect else [], [bound[i] for i in parts.kept])


for _primitive in (jit_p, checkpoint_p):
    _primitive.remat(_call_again)


class RematParts(NamedTuple):
    """A program in what its known inputs determine, and the rest, which computes again what a policy does not keep.

    Attributes:
      known: from the known inputs to the known results, and then those values that are kept and are not results anyway.
      unknown: from known inputs and kept values, and then the unknown inputs, to the unknown results.
      unknown_outputs: for each result of the whole, whether ``unknown`` gives it.
      sources: where the known inputs and kept values that ``unknown`` takes are, in the list of known inputs and
        results of ``known``.
      recomputes: whether ``unknown`` computes anything again.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    unknown_outputs: list[bool]
    sources: list[int]
    recomputes: bool


@cached_by_jaxpr
def remat_partial_eval(
    closed: ClosedJaxpr, unknown_inputs: Flags, instantiate: Flags | bool, policy: Policy | None
) -> RematParts:
    """Cut a program by which inputs are unknown; of what the rest needs, only what a policy says is kept.

    Args:
      closed: the program.
      unknown_inputs: for each input, whether it is unknown.
      instantiate: which results the unknown part gives, whatever they depend on.
      policy: None for nothing.

    >>> from pullback.primitives.elementwise import cos, mul, sin
    >>> from pullback.transforms.derivatives.tracing import make_jaxpr
    >>> closed = make_jaxpr(lambda x, y: mul(sin(cos(x)), y))(1.0, 2.0)
    >>> remat_partial_eval(closed, [False, True], False, None).unknown
    { lambda ; a:f32[] b:f32[]. let
        c:f32[] = cos a
        d:f32[] = sin c
        e:f32[] = mul d b
      in (e,) }
    """
    parts = partial_eval_jaxpr(closed, unknown_inputs, instantiate)
    if policy is everything_saveable:
        return RematParts(parts.known, parts.unknown, parts.unknown_outputs, parts.residual_sources, False)
    policy = nothing_saveable if policy is None else policy
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
    return RematParts(
        close(first, values), close(second, values), parts.unknown_outputs,
        [place[v] for v in [*taken, *kept]], bool(halves.again),
    )  # fmt: skip


# Differentiation -----------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _linearized(closed: ClosedJaxpr, nonzero: Flags, policy: Policy | None) -> tuple[RematParts, list[bool]]:
    """The values with what is kept, and what is linear in the tangents; and which results have tangents."""
    both, nonzero_out = jvp_jaxpr(closed, nonzero)
    inputs, results = len(closed.in_avals), len(closed.out_avals)
    unknown = [i >= inputs for i in range(len(both.in_avals))]
    return remat_partial_eval(both, unknown, [i >= results for i in range(len(both.out_avals))], policy), nonzero_out


@checkpoint_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    options = Options(**params)
    nonzero = tuple(t is not ZERO for t in tangents)
    given = [t for t in tangents if t is not ZERO]
    count = len(jaxpr.jaxpr.outvars)
    if any(type(t) is LinearTracer for t in given):
        parts, has_tangent = _linearized(jaxpr, nonzero, options.policy)
        results = bind(parts.known, options, primals)
        values = [*primals, *results]
        second = options._replace(differentiated=options.differentiated or parts.recomputes)
        ts = bind(parts.unknown, second, [*[values[i] for i in parts.sources], *given])
    else:
        both, has_tangent = jvp_jaxpr(jaxpr, nonzero)
        results = bind(both, options, [*primals, *given])
        ts = results[count:]
    rest = iter(ts)
    return results[:count], [next(rest) if n else ZERO for n in has_tangent]


@cached_by_jaxpr
def _transposed(closed: ClosedJaxpr, linear: Flags, nonzero: Flags) -> ClosedJaxpr:
    smaller, _ = dce_closed_jaxpr(closed, nonzero, instantiate=True)
    return transpose_jaxpr(smaller, linear)


@checkpoint_p.transpose
def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    linear = tuple(map(is_linear, args))
    nonzero = tuple(ct is not ZERO for ct in cts)
    fixed = [x for x in args if not is_linear(x)]
    back = _transposed(jaxpr, linear, nonzero)
    results = iter(bind(back, Options(**params), [*fixed, *(ct for ct in cts if ct is not ZERO)]))
    return [next(results) if n else None for n in linear]


def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    if all(unknown):
        return [], [eqn], [True] * len(eqn.outvars)
    parts = remat_partial_eval(eqn.params["jaxpr"], tuple(unknown), False, eqn.params["policy"])
    known_inputs = [a for a, u in zip(eqn.invars, unknown, strict=True) if not u]
    unknown_inputs = [a for a, u in zip(eqn.invars, unknown, strict=True) if u]
    known_outs = [v for v, u in zip(eqn.outvars, parts.unknown_outputs, strict=True) if not u]
    unknown_outs = [v for v, u in zip(eqn.outvars, parts.unknown_outputs, strict=True) if u]
    bound = [*known_outs, *[Var(a) for a in parts.known.out_avals[len(known_outs) :]]]
    values = [*known_inputs, *bound]
    first = _like(eqn, parts.known, known_inputs, bound)
    operands = [*[values[i] for i in parts.sources], *unknown_inputs]
    differentiated = eqn.params["differentiated"] or parts.recomputes
    second = _like(eqn, parts.unknown, operands, unknown_outs, differentiated=differentiated)
    known = [first] if bound or first.effect else []
    return known, [second] if unknown_outs or second.effect else [], parts.unknown_outputs


checkpoint_p.partial_eval(_partial_eval)
