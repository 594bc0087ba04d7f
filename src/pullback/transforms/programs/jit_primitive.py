"""The primitive ``jit``: a program that is compiled; and how operations without a host rule are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.array import SCALARS, ArrayImpl, CommittedArray, as_array, signature_of
from pullback.core.config import config
from pullback.core.inlining import inlined, runs_once
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.runtime import provides
from pullback.core.trace import Primitive, Tracer, leaked, state
from pullback.transforms.programs.program_primitive import program_primitive
from pullback.transforms.traces.derived import cached_by_jaxpr

jit_p = program_primitive("jit")
runs_once(jit_p)(lambda jaxpr, **options: jaxpr)


# Evaluation --------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _program(closed: ClosedJaxpr, name: str, device: Any, asked_for: bool, placements: tuple[Any, ...]) -> Any:
    from pullback.backends.compiler.programs import Lowered

    return Lowered(closed, f"jit_{name}", device, asked_for=asked_for, in_placements=placements).compile()


def run_compiled(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """The results of a program for concrete arrays, compiled for the device on which they are."""
    from pullback.backends.devices.devices import device_for

    arrays = [concrete(x) for x in args]
    signatures = list(map(signature_of, arrays))
    device, asked_for = device_for([*signatures, *committed_signatures(closed.consts)], name)
    placements = tuple(sig.placement for sig in signatures) if asked_for and not device.is_host else ()
    return _program(closed, name, device, asked_for, placements)(arrays, asked_for)  # type: ignore[no-any-return]


def committed_signatures(arrays: Sequence[Any]) -> list[Any]:
    """The signatures of those arrays that were put on other devices than the host's."""
    return [x._signature for x in arrays if isinstance(x, CommittedArray)]


def concrete(x: Any) -> ArrayImpl:
    """An operand of an operation that is evaluated.

    Raises:
      UnexpectedTracerError: it is a tracer that leaked.
    """
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    if isinstance(array, Tracer):
        raise leaked(array)
    return array  # type: ignore[return-value]


def at_bottom(evaluate: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """An impl rule that runs other operations, which no transformation sees."""

    def impl(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        outer, state.trace = state.trace, state.bottom
        try:
            return evaluate(args, params)
        finally:
            state.trace = outer

    return impl


@provides
def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation without a host rule: in a way of its own, or as a compiled program of one operation."""
    evaluator = primitive.impl_rule
    if evaluator is not None:
        return evaluator(args, params)
    if primitive.decomposition_rule is not None:
        return primitive.decomposition_rule(*args, **params)
    from pullback.backends.compiler import one_operation

    return one_operation.evaluate(primitive, [x if type(x) in SCALARS else concrete(x) for x in args], params)


def _run(args: Sequence[Any], params: dict[str, Any]) -> Any:
    closed = params["jaxpr"]
    if config.disable_jit:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    return run_compiled(closed, args, params["name"])


jit_p.impl(_run)


@provides
def evaluate_on_device(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation with operands on other devices than the host's: there."""
    if primitive.lowering_rule is None and primitive.decomposition_rule is not None:
        return primitive.decomposition_rule(*args, **params)
    from pullback.backends.compiler import one_operation

    return one_operation.evaluate(primitive, [x if type(x) in SCALARS else concrete(x) for x in args], params)


# Compilation -------------------------------------------------------------------------------------------------------


inlined(jit_p)(lambda *, jaxpr, name: jaxpr)


@jit_p.lowering
def _lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    from pullback.backends.hlo.emit import emit_jaxpr, shared_function

    if jaxpr.jaxpr.effect:  # the order of effects is kept within one function
        return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, operands)
    return hlo.call(shared_function(hlo.module, jaxpr, name), operands)  # type: ignore[no-any-return]
