"""The primitive ``jit``, which holds a program to be compiled; and the evaluation of operations without a host rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backends.host import pending
from pullback.core.array import SCALARS, Absent, ArrayImpl, CommittedArray, as_array, signature_of
from pullback.core.config import config
from pullback.core.inlining import inlined, runs_once
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.runtime import provides
from pullback.core.trace import Primitive, Tracer, leaked, state
from pullback.core.traits import elementwise
from pullback.transforms.programs import lojax
from pullback.transforms.programs.program_primitive import program_primitive
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import feed

jit_p = program_primitive("jit")
runs_once(jit_p)(lambda jaxpr, **options: jaxpr)


# Evaluation --------------------------------------------------------------------------------------------------------


@cached_by_jaxpr
def _program(closed: ClosedJaxpr, name: str, device: Any, asked_for: bool, placements: tuple[Any, ...]) -> Any:
    """Compile a program for a device; the executable is cached in ``closed``.

    Args:
      closed: the program.
      name: its name.
      device: the device.
      asked_for: whether an operand is committed.
      placements: the placements of the operands.
    """
    from pullback.backends.compiler.programs import Lowered

    return Lowered(closed, f"jit_{name}", device, asked_for=asked_for, in_placements=placements).compile()


def run_compiled(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> list[Any]:
    """Compile a program for the device of its concrete arguments, and run it; return the results.

    ``name`` is the program's name.
    """
    from pullback.backends.devices.devices import device_for

    arrays = [concrete(x) for x in args]
    signatures = list(map(signature_of, arrays))
    device, asked_for = device_for([*signatures, *committed_signatures(closed.consts)], name)
    placements = tuple(sig.placement for sig in signatures) if asked_for and not device.is_host else ()
    return _program(closed, name, device, asked_for, placements)(arrays, asked_for)  # type: ignore[no-any-return]


def committed_signatures(arrays: Sequence[Any]) -> list[Any]:
    """Return the signature (type and placement) of each array that is committed to a placement."""
    return [x._signature for x in arrays if isinstance(x, CommittedArray)]


def concrete(x: Any) -> ArrayImpl:
    """Convert an operand to a concrete array.

    Raises:
      UnexpectedTracerError: the operand is a tracer, which has leaked.
    """
    array = x if isinstance(x, ArrayImpl) else as_array(x)
    if isinstance(array, Tracer):
        raise leaked(array)
    return array  # type: ignore[return-value]


def at_bottom(evaluate: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Decorate an impl rule so that operations in it are evaluated, and no enclosing transformation sees them."""

    def impl(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        outer, state.trace = state.trace, state.bottom
        try:
            return evaluate(args, params)
        finally:
            state.trace = outer

    return impl


@provides
def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation that has no host rule: by its impl rule, its decomposition, or as a compiled program."""
    evaluator = primitive.impl_rule
    if lojax.in_use and feed.of(primitive) is not None and lojax.needs_lowering(args, params):
        return lojax.apply_lowered(primitive, args, params)
    if evaluator is not None:
        return evaluator(args, params)
    if primitive.decomposition_rule is not None:
        return primitive.decomposition_rule(*args, **params)
    from pullback.backends.compiler import one_operation

    return one_operation.evaluate(primitive, [x if type(x) in SCALARS else concrete(x) for x in args], params)


def _run(args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The impl rule of ``jit``: run the compiled program, or its equations one by one if ``disable_jit`` is set."""
    closed = params["jaxpr"]
    if config.disable_jit:
        return eval_jaxpr(closed.jaxpr, closed.consts, *args)
    return run_compiled(closed, args, params["name"])


jit_p.impl(_run)


@provides
def evaluate_absent(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation whose operands or result are not all in NumPy's memory: pending, or on their device."""
    if config.eager_fusion and elementwise.of(primitive):
        out = pending.deferred(primitive, args, params)
        if out is not None:
            return out
    is_absent = is_committed = False
    for x in args:
        if type(x) is CommittedArray:
            is_committed = True
        elif type(x) is ArrayImpl and type(x._host_value) is Absent:
            is_absent = True
    if (is_absent and not is_committed) or pending.are_spread(args):
        return pending.evaluate(primitive, args, params)
    return evaluate_elsewhere(primitive, args, params)


@provides
def evaluate_elsewhere(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate an operation where its operands are committed, or on the default device, as a compiled program."""
    if primitive.lowering_rule is None and primitive.decomposition_rule is not None:
        return primitive.decomposition_rule(*args, **params)
    from pullback.backends.compiler import one_operation

    return one_operation.evaluate(primitive, [x if type(x) in SCALARS else concrete(x) for x in args], params)


@provides
def following(x: ArrayImpl, models: Sequence[Any]) -> ArrayImpl:
    """Commit a new array to the device of the operands that it belongs to; return it."""
    from pullback.backends.compiler import one_operation

    return one_operation.following(x, models)


# Compilation -------------------------------------------------------------------------------------------------------


inlined(jit_p)(lambda *, jaxpr, name: jaxpr)


@jit_p.lowering
def _lowering(hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    from pullback.backends.hlo.emit import emit_jaxpr, shared_function

    if jaxpr.jaxpr.effect:  # inlined: the token that orders effects does not cross functions
        return emit_jaxpr(hlo, jaxpr.jaxpr, jaxpr.consts, operands)
    return hlo.call(shared_function(hlo.module, jaxpr, name), operands)  # type: ignore[no-any-return]
