"""Kinds of memory in programs: in which memory each result is, by that of the inputs.

The memories of a CPU are one. A program treats them alike, and its results remember the memory in which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.devices.shardings import NamedSharding
from pullback.core.jaxpr import Jaxpr

DEVICE = "device"


def kind_of(placement: Any) -> str:
    """The kind of memory of a placement; that of devices for None."""
    return placement.memory_kind if isinstance(placement, NamedSharding) else DEVICE


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
    that are not committed, are anywhere.

    Args:
      jaxpr: the program.
      inputs: the placement of each input, or None.
      results: the requested placement of each result, or None; an empty list if there are no requests.
    """
    kinds: dict[Any, str] = {var: kind_of(at) for var, at in zip(jaxpr.invars, inputs, strict=True) if at is not None}
    for eqn in jaxpr.eqns:
        if "placement" in eqn.params:
            found = {kind_of(eqn.params["placement"])}
        else:
            found = {kinds[a] for a in eqn.invars if a in kinds}
        if found:
            kinds.update(dict.fromkeys(eqn.outvars, found.pop() if len(found) == 1 else DEVICE))
    requested = results or [None] * len(jaxpr.outvars)
    return [
        kinds.get(var, DEVICE) if placement is None else kind_of(placement)
        for var, placement in zip(jaxpr.outvars, requested, strict=True)
    ]
