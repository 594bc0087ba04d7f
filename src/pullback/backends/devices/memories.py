"""MemoryKinds of memory in programs: in which memory each result is, by that of the inputs.

The memories of a CPU are one. A program treats them alike, and its results remember the memory in which they are. A
program for another platform moves values between memories, and its text says in which memory inputs and results are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.devices import Device, Space
from pullback.backends.devices.shardings import NamedSharding, SingleDeviceSharding
from pullback.core.jaxpr import Eqn, Jaxpr, subjaxprs

DEVICE = "device"
KINDS = {Space.Device: DEVICE, Space.Host: "pinned_host"}
"""The kind of memory that a ``Space`` stands for."""
MemoryKinds = tuple[list[str], list[str]]
"""The kind of memory of each input of a program, and of each result."""


def kind_of(placement: Any) -> str:
    """The kind of memory of a placement; that of devices for None."""
    if isinstance(placement, NamedSharding):
        return placement.memory_kind
    return KINDS.get(placement, DEVICE) if isinstance(placement, Space) else DEVICE


def on_device(device: Device, kind: str) -> Any:
    """Return the placement of arrays in a kind of memory of a device."""
    return SingleDeviceSharding(device, memory_kind=kind).placement


def kinds_of_program(
    jaxpr: Jaxpr, in_placements: Sequence[Any], out_placements: Sequence[Any], platform: str
) -> MemoryKinds | None:
    """Return the kind of memory of each input and of each result; None if all values are in the devices' own.

    Args:
      jaxpr: the program.
      in_placements: the placement of each input, or None; an empty list if all are None.
      out_placements: the requested placement of each result, in the same form.
      platform: the platform of the program. In programs for CPUs, moves within loops and inner programs do not count.
    """
    if all(kind_of(p) == DEVICE for p in (*in_placements, *out_placements)) and not _moves(jaxpr, platform != "cpu"):
        return None
    inputs = in_placements or [None] * len(jaxpr.invars)
    return list(map(kind_of, inputs)), kinds_of_results(jaxpr, inputs, out_placements)


def _moves(jaxpr: Jaxpr, deep: bool) -> bool:
    """Whether an operation moves a value out of the devices' own memory; ``deep`` is to look in inner programs too."""
    for eqn in jaxpr.eqns:
        if kind_of(eqn.params.get("placement")) != DEVICE:
            return True
        if deep and any(_moves(inner, True) for inner in subjaxprs(eqn)):
            return True
    return False


def annotated(hlo: Any, x: Any, kind: str) -> Any:
    """Write that a value moves to a kind of memory, and return the moved value.

    The value itself is returned on CPUs, whose memories are one, and in programs that use the devices' own memory only.

    Args:
      hlo: the builder of the program.
      x: the value.
      kind: the kind of memory.
    """
    if hlo.module.memories is None:
        return x
    attributes = (
        f'call_target_name = "annotate_device_placement", has_side_effect = true, '
        f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind}"}}'
    )
    return hlo.op("stablehlo.custom_call", [x], x.shape, x.dtype, attributes)


def annotated_as_requested(hlo: Any, outs: list[Any], requested: Sequence[Any]) -> list[Any]:
    """Write that results move to the memories that are requested, and return the moved results.

    Args:
      hlo: the builder of the program.
      outs: the results.
      requested: the requested sharding of each result, or None; an empty list if there are no requests.
    """
    asked = requested or [None] * len(outs)
    return [x if s is None else annotated(hlo, x, kind_of(s)) for x, s in zip(outs, asked, strict=True)]


def in_memory(sharding: NamedSharding, kind: str) -> NamedSharding:
    """Return a sharding in a kind of memory: the sharding itself if it is there already."""
    return sharding if sharding.memory_kind == kind else sharding.with_memory_kind(kind)


def with_kinds(found: list[Any], jaxpr: Jaxpr, inputs: Sequence[Any], requested: Sequence[Any]) -> list[Any]:
    """Return shardings ``found`` of a program's results in the memories of the results, unless they are requested.

    Args:
      found: the sharding of each result, or None; empty if there are none.
      jaxpr, inputs, requested: as of :func:`kinds_of_results`.
    """
    if not found or found == requested:
        return found
    kinds = kinds_of_results(jaxpr, inputs, requested)
    asked = requested or [None] * len(kinds)
    return [s if s is None or a is not None else in_memory(s, k) for s, a, k in zip(found, asked, kinds, strict=True)]


def kinds_of_results(jaxpr: Jaxpr, inputs: Sequence[Any], results: Sequence[Any]) -> list[str]:
    """Return the kind of memory of each result of a program.

    An operation that moves its operand, such as ``device_put``, says where its result is. The results of others are in
    the memory of their operands, if all of these are in the same, and else in the devices' own. Constants, and inputs
    that are not committed, are anywhere. Branches, steps of loops and other inner programs say where their results are.

    Args:
      jaxpr: the program.
      inputs: the placement of each input, or None.
      results: the requested placement of each result, or None; an empty list if there are no requests.
    """
    kinds = _kinds(jaxpr, [None if at is None else kind_of(at) for at in inputs])
    requested = results or [None] * len(kinds)
    return [
        kind or DEVICE if placement is None else kind_of(placement)
        for kind, placement in zip(kinds, requested, strict=True)
    ]


def _kinds(jaxpr: Jaxpr, inputs: Sequence[str | None]) -> list[str | None]:
    """Return the kind of memory of each result of a program, by that of its inputs; None for anywhere."""
    kinds: dict[Any, str | None] = dict(zip(jaxpr.invars, inputs, strict=True))
    for eqn in jaxpr.eqns:
        operands = [kinds.get(a) for a in eqn.invars]
        if "placement" in eqn.params:
            kinds[eqn.outvars[0]] = kind_of(eqn.params["placement"])
        elif inner := [j for j in subjaxprs(eqn) if _computes_results(j, eqn)]:
            of_each = [_kinds(j, operands[len(operands) - len(j.invars) :]) for j in inner]
            kinds.update(zip(eqn.outvars, map(_common, zip(*of_each, strict=True)), strict=True))
        else:
            kinds.update(dict.fromkeys(eqn.outvars, _common(operands)))
    return [kinds.get(var) for var in jaxpr.outvars]


def _common(kinds: Sequence[str | None]) -> str | None:
    """The kind of memory that values have, of which None are anywhere; that of devices if they are in several."""
    found = {*kinds} - {None}
    return found.pop() if len(found) == 1 else DEVICE if found else None


def _computes_results(inner: Jaxpr, eqn: Eqn) -> bool:
    """Whether a program, such as a branch or a step of a loop, takes the last operands to results of the operation."""
    return len(inner.invars) <= len(eqn.invars) and len(inner.outvars) == len(eqn.outvars)
