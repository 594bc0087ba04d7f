"""``debug_nans`` and ``debug_infs``: an error at the first operation that returns a NaN or an infinity.

While a thread has one of the switches on, its bottom trace checks each result; this trace is not ``quick``, so that
operators do not bypass it. The results of a compiled program are checked; if one is not finite, the program runs again,
operation by operation, on the same inputs. So there is no cost while the switches are off, and none for other threads.
A differentiation that began before a switch was turned on has no provenance: its operations are reported as parts of
the forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.devices.buffers import from_buffer
from pullback.core import dtypes, source
from pullback.core.array import ArrayImpl, as_array, host_value, signature, typeof
from pullback.core.config import config, override
from pullback.core.errors import NonFiniteError
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.core.trace import EvalTrace, Primitive, state
from pullback.core.watching import Watcher, watch_by
from pullback.transforms.programs.callbacks import NotRepeatable, without_effects

_PASSES = {
    source.FORWARD: "in the forward pass",
    source.TANGENT: "in the computation of tangents",
    source.BACKWARD: "in the backward pass (transposition)",
}
_KINDS = {"NaN": np.isnan, "an infinity": np.isinf}


def checking() -> bool:
    """Whether the switch ``debug_nans`` or the switch ``debug_infs`` is on in this thread."""
    return config.debug_nans or config.debug_infs


def _found(value: Any) -> tuple[str, int] | None:
    """Look for NaNs or infinities in the array ``value``, whichever the switches of this thread ask for.

    Return a pair: ``NaN`` or ``an infinity``, and the number of such elements. Return None if there are none.
    """
    if dtypes.is_inexact(value.dtype):
        for wanted, (name, test) in zip((config.debug_nans, config.debug_infs), _KINDS.items(), strict=True):
            count = int(np.count_nonzero(test(value))) if wanted else 0
            if count:
                return name, count
    return None


def _error(primitive: Primitive, args: Sequence[Any], i: int, out: Any, name: str, count: int) -> NonFiniteError:
    """Return the error for a result of an operation with NaNs or infinities.

    Args:
      primitive, args: the operation and its operands.
      i, out: the index of the result, and the result.
      name: ``NaN`` or ``an infinity``.
      count: the number of such elements in the result.
    """
    aval = typeof(out)
    which = f"result {i}" if primitive.multiple_results else "its result"
    elements = f", in {count} of {aval.size} elements," if aval.shape else ""
    phase = _PASSES[state.scope.phase if state.scope else source.FORWARD]
    shown = source.format_location(state.source_loc or source.here())
    causes = [f"operand {k} had {what}" for k, x in enumerate(args) for what in _not_finite(host_value(as_array(x)))]
    operands = f"Already its {', '.join(causes)}." if causes else "Its operands were finite."
    if name == "NaN" and phase != _PASSES[source.FORWARD] and any("infinity" in cause for cause in causes):
        operands += (
            "\nA derivative is infinite, and zero times infinity is NaN: keep the operand of that function away from "
            "the point, as pullback.custom_derivatives.safe_where does."
        )
    what = f"{primitive.name} returned {name} in {which} of type {aval}{elements} {phase}"
    return NonFiniteError(f"{what}, at\n{shown}\n{operands}")


def _not_finite(value: Any) -> list[str]:
    """Return those of ``NaN`` and ``an infinity`` that occur in the array ``value``."""
    return [name for name, test in _KINDS.items() if dtypes.is_inexact(value.dtype) and test(value).any()]


# Eager ---------------------------------------------------------------------------------------------------------


def _checked(evaluate: EvalTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Evaluate an operation, and return its results; raise if a result has a NaN or an infinity.

    The switches ``debug_nans`` and ``debug_infs`` of this thread say for which of the two to check.
    """
    out = evaluate.process(primitive, args, params)
    for i, x in enumerate(out if primitive.multiple_results else (out,)):
        found = _found(x._value)
        if found is not None:
            closed = params.get("jaxpr") if "name" in params else None  # the primitive ``jit`` has both parameters
            if isinstance(closed, ClosedJaxpr):
                raise _run_again(closed, args, str(params.get("name", primitive.name)), found[0])
            raise _error(primitive, args, i, x, *found)
    return out


watch_by("numbers", lambda: Watcher(_checked, watches=True))


# Compiled ------------------------------------------------------------------------------------------------------------


def checked_run(program: Any) -> Callable[[list[Any]], list[Any]]:
    """Return a function that runs a compiled program, and raises if a result has NaNs or infinities.

    Args:
      program: the compiled program. It must not donate inputs: a second run on them finds the operation that is to
        blame.
    """
    closed: ClosedJaxpr = program.lowered.closed
    placements = program.in_shardings or [program.device if program.lowered.asked_for else None] * len(closed.in_avals)
    in_kinds = [
        signature(a.shape, a.dtype, bool(a.weak_type), p) for a, p in zip(closed.in_avals, placements, strict=True)
    ]
    out_kinds = program.signatures() if program.lowered.asked_for else program.out_signatures
    name = program.lowered.module.name.removeprefix("jit_")

    def run(buffers: list[Any]) -> list[Any]:
        outs: list[Any] = program.run(buffers)
        for buffer, kind in zip(outs, out_kinds, strict=True):
            found = _found(from_buffer(buffer, kind)._value) if dtypes.is_inexact(kind.aval.dtype) else None
            if found is not None:
                raise _run_again(closed, list(map(from_buffer, buffers, in_kinds)), name, found[0])
        return outs

    return run


def _run_again(closed: ClosedJaxpr, args: Sequence[ArrayImpl], name: str, what: str) -> NonFiniteError:
    """Run a compiled program again, operation by operation, to find the operation that produced a NaN or infinity.

    Args:
      closed: the program.
      args: its inputs.
      name: the name of the compiled function, for the error.
      what: ``NaN`` or ``an infinity``.

    Returns:
      The error to raise. It names the operation if the operation was found.
    """
    returned = f"the compiled function {name} returned {what}"
    trace, state.trace = state.trace, state.bottom
    try:
        with override("disable_jit", True), without_effects():  # effects happened in the first run
            eval_jaxpr(closed.jaxpr, closed.consts, *args)
    except NonFiniteError as error:
        return NonFiniteError(
            f"{error}\nThis is an operation of the compiled function {name}, which ran again eagerly."
        )
    except NotRepeatable:
        return NonFiniteError(
            f"{returned}. It calls io_callback, so it cannot run again to find the operation: call it under "
            f"disable_jit() to find it."
        )
    finally:
        state.trace = trace
    return NonFiniteError(
        f"{returned}, but none of its operations does when they run one by one, eagerly, on the same inputs: the "
        f"compiler rounds differently. debug.print shows values inside the compiled function."
    )
