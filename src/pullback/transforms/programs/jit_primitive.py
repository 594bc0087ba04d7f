"""The primitive ``jit``: a program that is compiled; and how operations without a host rule are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.array import SCALARS, ArrayImpl, as_array, signature_of
from pullback.core.config import config
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.trace import EvalTrace, Primitive, Tracer, leaked, state
from pullback.transforms.interpreters.derived import cached_by_jaxpr
from pullback.transforms.programs import offload_thresholds as offload_thresholds  # which changes some host rules
from pullback.transforms.programs.program_primitive import program_primitive

jit_p = program_primitive("jit")


# Evaluation --------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _program(closed: ClosedJaxpr, name: str, device: Any) -> Any:
    from pullback.backends.programs import Lowered

    return Lowered(closed, f"jit_{name}", device).compile()


def run_compiled(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """The results of a program for concrete arrays, compiled for the device on which they are."""
    from pullback.backends.devices import device_for

    arrays = [concrete(x) for x in args]
    device, asked_for = device_for(map(signature_of, arrays), name)
    return _program(closed, name, device)(arrays, asked_for)  # type: ignore[no-any-return]


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


def _evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation without a host rule: in a way of its own, or as a compiled program of one operation."""
    evaluator = primitive.impl_rule
    if evaluator is not None:
        return evaluator(args, params)
    if primitive.decomposition_rule is not None:
        return primitive.decomposition_rule(*args, **params)
    from pullback.backends.one_operation import evaluate

    return evaluate(primitive, [x if type(x) in SCALARS else concrete(x) for x in args], params)


def _run(args: Sequence[Any], params: dict[str, Any]) -> Any:
    closed = params["jaxpr"]
    if config.disable_jit:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    return run_compiled(closed, args, params["name"])


jit_p.impl(_run)
EvalTrace.without_host_rule = staticmethod(_evaluate)


# Compilation -------------------------------------------------------------------------------------------------------


@jit_p.lowering
def _lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    from pullback.backends.emit import emit_jaxpr, shared_function

    if jaxpr.jaxpr.effect:  # the order of effects is kept within one function
        return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, operands)
    return hlo.call(shared_function(hlo.module, jaxpr, name), operands)  # type: ignore[no-any-return]
