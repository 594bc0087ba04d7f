"""``debug_nans`` and ``debug_infs``: the first operation that returns a NaN, or an infinity, raises an error.

While a thread has one of the switches on, the trace at the bottom of its own is one that looks at each result; it is
not ``quick``, so that operators ask it too. Of a compiled program the results are looked at; if one is not finite, the
program is run again, operation by operation, on the same inputs. So nothing is paid for while the switches are off, and
other threads compute as they did. A derivative that is under way when the switch is put on keeps no marks: what its
rules compute is then said to be of the forward pass.
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
    """Whether this thread looks for NaNs or infinities."""
    return config.debug_nans or config.debug_infs


def _found(value: Any) -> tuple[str, int] | None:
    """What an array has that is looked for, and in how many elements."""
    if dtypes.is_inexact(value.dtype):
        for wanted, (name, test) in zip((config.debug_nans, config.debug_infs), _KINDS.items(), strict=True):
            count = int(np.count_nonzero(test(value))) if wanted else 0
            if count:
                return name, count
    return None


def _error(primitive: Primitive, args: Sequence[Any], i: int, out: Any, name: str, count: int) -> NonFiniteError:
    aval = typeof(out)
    which = f"result {i}" if primitive.multiple_results else "its result"
    elements = f", in {count} of {aval.size} elements," if aval.shape else ""
    phase = _PASSES[state.scope.phase if state.scope else source.FORWARD]
    shown = source.format_location(state.source_loc or source.here())
    given = [f"operand {k} had {what}" for k, x in enumerate(args) for what in _not_finite(host_value(as_array(x)))]
    operands = f"Already its {', '.join(given)}." if given else "Its operands were finite."
    what = f"{primitive.name} returned {name} in {which} of type {aval}{elements} {phase}"
    return NonFiniteError(f"{what}, at\n{shown}\n{operands}")


def _not_finite(value: Any) -> list[str]:
    """What is not finite in an array."""
    return [name for name, test in _KINDS.items() if dtypes.is_inexact(value.dtype) and test(value).any()]


# Eager ---------------------------------------------------------------------------------------------------------


def _look(evaluate: EvalTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The results of an operation; an error for one that has what is looked for."""
    out = evaluate.process(primitive, args, params)
    for i, x in enumerate(out if primitive.multiple_results else (out,)):
        found = _found(x._value)
        if found is not None:
            closed = params.get("jaxpr") if "name" in params else None  # which a compiled function has
            if isinstance(closed, ClosedJaxpr):
                raise _run_again(closed, args, str(params.get("name", primitive.name)), found[0])
            raise _error(primitive, args, i, x, *found)
    return out


watch_by("numbers", lambda: Watcher(_look, watches=True))


# Compiled ------------------------------------------------------------------------------------------------------------


def checked_run(program: Any) -> Callable[[list[Any]], list[Any]]:
    """What runs a compiled program and looks at its results.

    Args:
      program: it must not take the memory of its inputs, which may be needed again.
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
    """The error for a compiled program that returned a NaN or an infinity: its operations run one by one."""
    returned = f"the compiled function {name} returned {what}"
    trace, state.trace = state.trace, state.bottom
    try:
        with override("disable_jit", True), without_effects():
            eval_jaxpr(closed.jaxpr, closed.consts, *args)
    except NonFiniteError as error:
        return NonFiniteError(f"{error}\nThis is an operation of the compiled function {name}, run again eager.")
    except NotRepeatable:
        return NonFiniteError(
            f"{returned}. It calls io_callback, so that it cannot be run again to find the operation: call it within "
            "disable_jit() to find it."
        )
    finally:
        state.trace = trace
    return NonFiniteError(
        f"{returned}, but none of its operations does when they are run one by one, eager, on the same inputs: the "
        "compiler rounds otherwise. debug.print shows values within the compiled function."
    )
