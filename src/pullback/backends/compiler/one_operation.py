"""Operations that NumPy does not do, or not as fast: each is compiled as a program of one operation, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.compiler.programs import Lowered, Program
from pullback.backends.devices.devices import device_for
from pullback.backends.devices.meshes import current_mesh
from pullback.core.array import SCALARS, ArrayImpl, resolve_weak_scalars, signature_of, typeof
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, infer
from pullback.core.locks import lock
from pullback.core.trace import Primitive, missing_rule

_programs: dict[Any, Program] = {}
MOST_PROGRAMS = 512
"""How many programs are kept; the oldest is dropped for a new one."""
_keeping = lock(globals(), "_keeping")


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of an operation on concrete arrays and numbers, compiled.

    Raises:
      MissingRuleError: the primitive has neither a host rule nor a lowering rule.
    """
    if primitive.lowering_rule is None:
        raise missing_rule(primitive, "host", "evaluation")
    avals = resolve_weak_scalars([typeof(x) for x in args], args)
    arrays = [_fitted(x, a.dtype) for x, a in zip(args, avals, strict=True)]
    signatures = list(map(signature_of, arrays))
    device, asked_for = device_for(signatures, primitive.name)
    placements = tuple([sig.placement for sig in signatures]) if asked_for and not device.is_host else ()
    key = (primitive, current_mesh(), tuple(sorted(params.items())), tuple(avals), device, placements)
    program = _programs.get(key)
    if program is None:
        invars = [Var(a) for a in avals]
        out = infer(primitive, avals, params)
        outvars = [Var(a) for a in (out if primitive.multiple_results else [out])]
        jaxpr = Jaxpr([], invars, [Eqn(primitive, list(invars), params, outvars)], outvars)
        program = Lowered(
            ClosedJaxpr(jaxpr), primitive.name, device, asked_for=asked_for, in_placements=placements
        ).compile()
        with _keeping:
            while len(_programs) >= MOST_PROGRAMS:
                del _programs[next(iter(_programs))]
            _programs[key] = program
    outs = program(arrays, asked_for)
    return outs if primitive.multiple_results else outs[0]


def _fitted(x: Any, dtype: Any) -> ArrayImpl:
    """A number among the operands as an array of their dtype."""
    return ArrayImpl(dtype.type(x), True) if type(x) in SCALARS else x
