"""Eager evaluation of operations that NumPy lacks, or does slowly: each is compiled as a program, and cached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.compiler.backend import backend
from pullback.backends.compiler.programs import Lowered, Program
from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import buffer_of, from_buffer
from pullback.backends.devices.devices import Device, device_for
from pullback.backends.devices.meshes import current_mesh
from pullback.core.array import (
    SCALARS,
    Absent,
    ArrayImpl,
    CommittedArray,
    resolve_weak_scalars,
    shared,
    signature,
    signature_of,
    typeof,
)
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, infer
from pullback.core.locks import lock
from pullback.core.trace import Primitive, missing_rule

_programs: dict[Any, Program] = {}
_elsewhere: dict[Any, Program] = {}
"""Programs for other devices than the host, where all eager operations are compiled; also by operands' signatures."""
MOST_PROGRAMS, MOST_ELSEWHERE = 512, 4096
"""How many programs are cached; a new one displaces the oldest."""
_keeping = lock(globals(), "_keeping")


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Compile and run an operation on concrete arrays and numbers.

    Returns:
      The result, or the list of results if the primitive has several.

    Raises:
      MissingRuleError: the primitive has no lowering rule.
    """
    known = _known(primitive, args, params)
    found = None if known is None else _elsewhere.get(known)
    if found is not None:
        outs = found(_with_numbers(args, found), found.device.is_host)
        return outs if primitive.multiple_results else outs[0]
    if primitive.lowering_rule is None:
        raise missing_rule(primitive, "host", "evaluation")
    avals = resolve_weak_scalars([typeof(x) for x in args], args)
    arrays = [_as_array(x, a.dtype) for x, a in zip(args, avals, strict=True)]
    signatures = list(map(signature_of, arrays))
    device, asked_for = device_for(signatures, primitive.name)
    placements = tuple([sig.placement for sig in signatures]) if asked_for and not device.is_host else ()
    key = (primitive, current_mesh(), tuple(sorted(params.items())), tuple(avals), device, placements)
    if isinstance(device, Device) and not device.is_host:
        arrays = [_kept(x, device) for x in arrays]
    kept, most = (_programs, MOST_PROGRAMS) if device.is_host else (_elsewhere, MOST_ELSEWHERE)
    program = kept.get(key)
    if program is None:
        invars = [Var(a) for a in avals]
        out = infer(primitive, avals, params)
        outvars = [Var(a) for a in (out if primitive.multiple_results else [out])]
        jaxpr = Jaxpr([], invars, [Eqn(primitive, list(invars), params, outvars)], outvars)
        program = Lowered(
            ClosedJaxpr(jaxpr), primitive.name, device, asked_for=asked_for, in_placements=placements
        ).compile()
        _keep(kept, most, key, program)
    if known is not None:
        _keep(_elsewhere, MOST_ELSEWHERE, known, program)
    outs = program(arrays, asked_for and device.is_host)
    return outs if primitive.multiple_results else outs[0]


def _known(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return a key of a program, if all operands are committed, or Python's numbers: it is made in little time."""
    kinds: list[Any] = []
    committed = False
    for x in args:
        kind = type(x)
        if kind is CommittedArray:
            kinds += x._signature, x.weak_type
            committed = True
        elif kind in SCALARS:
            kinds.append(kind)
        else:
            return None
    return (primitive, current_mesh(), tuple(params.items()), *kinds) if committed else None


def _with_numbers(args: Sequence[Any], program: Program) -> list[ArrayImpl]:
    """Return the operands of a program that was found by :func:`_known`, with arrays instead of Python's numbers."""
    device = program.device
    arrays = []
    for x, aval in zip(args, program.lowered.closed.in_avals):
        if type(x) is not CommittedArray:
            value = aval.dtype.type(x)
            key = (device, aval.dtype, value.tobytes())
            x = _constants.get(key)
            if x is None:
                x = ArrayImpl(value, True)
                if isinstance(device, Device) and not device.is_host:
                    x = _keep(_constants, MOST_CONSTANTS, key, _kept(x, device))
        arrays.append(x)
    return arrays


_constants: dict[Any, ArrayImpl] = {}
MOST_CONSTANTS = 1024
SMALL = 1 << 14
"""The most bytes of an array on the host that is kept on other devices too, once an operation there needs it."""


def _kept(x: ArrayImpl, device: Device) -> ArrayImpl:
    """Return a small array on the host as an array on ``device``, which is kept; any other array is returned unchanged.

    Numbers and small arrays, such as indices and the constants of derivative rules, would otherwise be sent to the
    device for each operation. They are no transfers for the guard, as they are constants of the operation.
    """
    if type(x) is not ArrayImpl or hasattr(x, "_buffer"):
        return x
    held = x._host_value
    if type(held) is Absent or held.nbytes > SMALL:
        return x
    key = (device, signature_of(x), held.tobytes())
    found = _constants.get(key)
    if found is None:
        put = from_buffer(backend().put(held, x.aval, device), signature_of(x))
        found = _keep(_constants, MOST_CONSTANTS, key, put)
    return found


def _keep(kept: dict[Any, Any], most: int, key: Any, value: Any) -> Any:
    """Keep a value in a dictionary of at most ``most``, instead of the oldest one if it is full; return the value."""
    with _keeping:
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[key] = value
    return value


def following(x: ArrayImpl, models: Sequence[Any]) -> ArrayImpl:
    """Commit a new array to the device of the operands that it belongs to, and return it.

    Args:
      x: the new array, whose elements Python computed.
      models: the operands. If none is committed to a single device, ``x`` is returned unchanged.
    """
    for model in models:
        if type(model) is CommittedArray and isinstance(device := signature_of(model).placement, Device):
            with transfers.explicit():
                buffer = shared(buffer_of(_kept(x, device), device))
            aval = x.aval
            return from_buffer(buffer, signature(aval.shape, aval.dtype, bool(aval.weak_type), device))
    return x


def _as_array(x: Any, dtype: Any) -> ArrayImpl:
    """Convert a Python number to an array of ``dtype``; an array is returned unchanged."""
    return ArrayImpl(dtype.type(x), True) if type(x) in SCALARS else x
