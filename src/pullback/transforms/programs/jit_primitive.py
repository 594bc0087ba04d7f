"""The primitive ``jit``: a program within a program, which every transformation maps to another such program.

The mapped programs are kept as long as the one they came from, so that nothing is traced or compiled twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.array import SCALARS, ArrayImpl, as_array, signature_of
from pullback.core.config import config
from pullback.core.errors import JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var, eval_jaxpr
from pullback.core.linear import LinearTracer, is_linear
from pullback.core.trace import EvalTrace, Primitive, Tracer, leaked
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.transforms.interpreters.dce import dce_closed_jaxpr
from pullback.transforms.interpreters.jaxprs import (
    batch_jaxpr,
    cached_by_jaxpr,
    jvp_jaxpr,
    linearize_jaxpr,
    transpose_jaxpr,
)
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.programs import offload_thresholds as offload_thresholds  # which changes some host rules

jit_p = Primitive("jit", multiple_results=True, keeps_weak_type=False)


@jit_p.abstract_eval
def _shape(*avals: ShapedArray, jaxpr: ClosedJaxpr, name: str) -> list[ShapedArray]:
    expected = jaxpr.in_avals
    if len(avals) != len(expected) or any(
        a.shape != b.shape or a.dtype != b.dtype for a, b in zip(avals, expected, strict=True)
    ):
        given, wanted = (", ".join(map(str, x)) for x in (avals, expected))
        raise JaxprError(f"the program {name} takes ({wanted}), but was given ({given})")
    return jaxpr.out_avals


# Evaluation --------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _program(closed: ClosedJaxpr, name: str, device: Any) -> Any:
    from pullback.backends.programs import Lowered

    return Lowered(closed, f"jit_{name}", device).compile()


def run_compiled(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """The results of a program for concrete arrays, compiled for the device on which they are."""
    from pullback.backends.devices import device_for

    arrays = [_concrete(x) for x in args]
    device, asked_for = device_for(map(signature_of, arrays), name)
    return _program(closed, name, device)(arrays, asked_for)  # type: ignore[no-any-return]


def _concrete(x: Any) -> ArrayImpl:
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    if isinstance(array, Tracer):
        raise leaked(array)
    return array  # type: ignore[return-value]


def _evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation without a host rule: in a way of its own, or as a compiled program of one operation."""
    evaluator = primitive.impl_rule
    if evaluator is not None:
        return evaluator(args, params)
    if primitive.decomposition_rule is not None:
        return primitive.decomposition_rule(*args, **params)
    from pullback.backends.one_operation import evaluate

    return evaluate(primitive, [x if type(x) in SCALARS else _concrete(x) for x in args], params)


def _run(args: Sequence[Any], params: dict[str, Any]) -> Any:
    closed = params["jaxpr"]
    if config.disable_jit:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    return run_compiled(closed, args, params["name"])


jit_p.impl(_run)
EvalTrace.without_host_rule = staticmethod(_evaluate)


# Differentiation ---------------------------------------------------------------------------------------------------


@jit_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str) -> Any:
    nonzero = tuple(t is not ZERO for t in tangents)
    given = [t for t in tangents if t is not ZERO]
    count = len(jaxpr.jaxpr.outvars)
    if any(type(t) is LinearTracer for t in given):
        # What does not depend on the tangents is one program, and what is linear in them another, which is recorded.
        parts = linearize_jaxpr(jaxpr, nonzero)
        results = jit_p.bind(*primals, jaxpr=parts.primal, name=name)
        values = [*primals, *results]
        residuals = [values[i] for i in parts.residual_sources]
        outs, ts = results[:count], jit_p.bind(*residuals, *given, jaxpr=parts.linear, name=name)
        has_tangent = parts.nonzero_tangents
    else:
        both, has_tangent = jvp_jaxpr(jaxpr, nonzero)
        results = jit_p.bind(*primals, *given, jaxpr=both, name=name)
        outs, ts = results[:count], results[count:]
    rest = iter(ts)
    return outs, [next(rest) if n else ZERO for n in has_tangent]


@cached_by_jaxpr
def _transposed(closed: ClosedJaxpr, linear: Sequence[bool], nonzero: Sequence[bool]) -> ClosedJaxpr:
    smaller, _ = dce_closed_jaxpr(closed, nonzero, instantiate=True)
    return transpose_jaxpr(smaller, linear)


@jit_p.transpose
def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    linear = tuple(map(is_linear, args))
    nonzero = tuple(ct is not ZERO for ct in cts)
    fixed = [x for x in args if not is_linear(x)]
    back = _transposed(jaxpr, linear, nonzero)
    results = iter(jit_p.bind(*fixed, *(ct for ct in cts if ct is not ZERO), jaxpr=back, name=name))
    return [next(results) if n else None for n in linear]


# Batching ----------------------------------------------------------------------------------------------------------


@jit_p.batch
def _batch(
    axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, name: str
) -> tuple[list[Any], list[int | None]]:
    mapped, out_dims = batch_jaxpr(jaxpr, axis.size, tuple(dims), axis.name)
    return jit_p.bind(*args, jaxpr=mapped, name=name), out_dims


# Programs within programs ------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _smaller(closed: ClosedJaxpr, used: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    return dce_closed_jaxpr(closed, used)


def _dce(used: list[bool], eqn: Eqn) -> Eqn | None:
    smaller, used_inputs = _smaller(eqn.params["jaxpr"], used)
    invars = [a for a, u in zip(eqn.invars, used_inputs, strict=True) if u]
    outvars = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    return Eqn(jit_p, invars, {**eqn.params, "jaxpr": smaller}, outvars, eqn.made_at, eqn.scope)


jit_p.dce(_dce)


@cached_by_jaxpr
def _cut(closed: ClosedJaxpr, unknown: Sequence[bool]) -> Any:
    return partial_eval_jaxpr(closed, unknown)


def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    parts = _cut(eqn.params["jaxpr"], tuple(unknown))
    known_inputs = [a for a, u in zip(eqn.invars, unknown, strict=True) if not u]
    unknown_inputs = [a for a, u in zip(eqn.invars, unknown, strict=True) if u]
    known_outs = [v for v, u in zip(eqn.outvars, parts.unknown_outputs, strict=True) if not u]
    unknown_outs = [v for v, u in zip(eqn.outvars, parts.unknown_outputs, strict=True) if u]
    computed = [Var(a) for a in parts.known.out_avals[len(known_outs) :]]
    bound = [*known_outs, *computed]
    residuals = parts.residuals(known_inputs, bound)
    first = Eqn(jit_p, known_inputs, {**eqn.params, "jaxpr": parts.known}, bound, eqn.made_at, eqn.scope)
    operands = [*residuals, *unknown_inputs]
    second = Eqn(jit_p, operands, {**eqn.params, "jaxpr": parts.unknown}, unknown_outs, eqn.made_at, eqn.scope)
    known = [first] if bound or first.effect else []
    return known, [second] if unknown_outs or second.effect else [], parts.unknown_outputs


jit_p.partial_eval(_partial_eval)


@jit_p.lowering
def _lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    from pullback.backends.emit import emit_jaxpr, shared_function

    if jaxpr.jaxpr.effect:  # the order of effects is kept within one function
        return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, operands)
    return hlo.call(shared_function(hlo.module, jaxpr, name), operands)  # type: ignore[no-any-return]
