"""The placements of the arguments and results of a compiled function, and the device of its program."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pullback.backends.devices import devices
from pullback.backends.devices.meshes import Mesh, current_mesh
from pullback.backends.devices.shardings import NamedSharding, between
from pullback.core import tree
from pullback.core.errors import ArgumentError, UnsupportedArgumentError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from pullback.core.types import ShapedArray
from pullback.core.user_types import HiType
from pullback.primitives.explicit_shardings import reshard_p
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.jit.jit_arguments import Call
from pullback.transforms.jit.jit_shardings import check_fits
from pullback.transforms.programs.jit_primitive import committed_signatures


def typed_by_placements(call: Call, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Return the types ``avals`` of the leaves of the arguments, with the shardings that ``in_shardings`` requests."""
    return [
        a.update(sharding=p) if isinstance(p, NamedSharding) else a
        for a, p in zip(avals, in_placements(call, avals), strict=True)
    ]


def in_placements(call: Call, avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the placement that ``in_shardings`` requests for each leaf of the positional arguments.

    A placement may be None. The list is empty without ``in_shardings``. ``avals`` are the types of the leaves.
    """
    requested = call.options.in_placements
    if requested is None:
        return []
    who = f"jit of {name_of(call.fun)}, in_shardings"
    if call.kwargs:
        raise ArgumentError(f"{who}: they apply to positional arguments, but got by keyword: {', '.join(call.kwargs)}")
    placements: list[Any] = requested.of(call.args, who, "the positional arguments")
    for i, (placement, aval) in enumerate(zip(placements, avals, strict=False)):
        if isinstance(aval, HiType):
            raise only_for_arrays(call.fun)
        check_fits(placement, aval.shape, f"{who}, {call.arg_name(i)}")
    return placements


def only_for_arrays(fun: Any) -> UnsupportedArgumentError:
    """Return the error for shardings of a function that takes or returns values of users' types."""
    return UnsupportedArgumentError(
        f"jit of {name_of(fun)}: in_shardings and out_shardings are for arrays, but there are values of users' types "
        "among the arguments or results; shard their arrays instead"
    )


def requested_or_actual(requested: Sequence[Any], actual: Sequence[Any]) -> list[Any]:
    """Return the requested placement of each leaf, or its actual placement if none is requested.

    ``requested`` may be shorter than ``actual``, and may hold None.
    """
    return [have if want is None else want for want, have in itertools.zip_longest(requested, actual)]


def with_devices(placement: Any) -> Any:
    """Replace an abstract mesh in a sharding by the mesh of ``set_mesh``; return any other placement unchanged."""
    if (
        isinstance(placement, NamedSharding)
        and not isinstance(placement.mesh, Mesh)
        and isinstance(current_mesh(), Mesh)
    ):
        return placement.update(mesh=current_mesh())
    return placement


def out_placements(call: Call, traced: Any) -> list[Any]:
    """Return the placement that ``out_shardings`` requests for each leaf of the result.

    A placement may be None. The list is empty without ``out_shardings``. ``traced`` is the traced function.
    """
    requested = call.options.out_placements
    if requested is None:
        return []
    who = f"jit of {name_of(call.fun)}, out_shardings"
    avals = traced.out_avals
    placements: list[Any] = requested.of(tree.unflatten(traced.out_tree, avals), who, "the results")
    for i, (placement, aval) in enumerate(zip(placements, avals, strict=True)):
        check_fits(placement, aval.shape, f"{who}, result {i}")
    return placements


def device_of_program(
    call: Call, placements: Sequence[Any], results: Sequence[Any], consts: Sequence[Any]
) -> tuple[Any, bool]:
    """Return the device, or devices, that a program runs on; raise if its inputs are on different devices.

    Args:
      call: the arguments and the options.
      placements: the placement of each argument, or None if it is not committed.
      results: the requested placements of results.
      consts: the arrays that the program captured.

    Returns:
      The device. And a flag: True if the user, an array or a sharding determines it, False for the default device.
    """
    if call.options.device is not None:
        return devices.device_named(call.options.device), True
    captured = [sig.placement for sig in committed_signatures(consts)]
    found: Any = None
    for placement in (*placements, *results, *captured):
        if placement is not None:
            what = f"the arguments, or shardings, of {call.fun_name}"
            found = placement.runs_on if found is None else devices.joined(found, placement.runs_on, what)
    return (devices.default_device(), False) if found is None else (found, True)


def moved_with_inputs(jaxpr: Jaxpr, results: list[Any], placements: Sequence[Any], actual: Sequence[Any]) -> list[Any]:
    """Complete the requested placements of results, for results that are unchanged inputs of the program.

    Such a result is placed like its input, if ``in_shardings`` moved the input and no placement is requested.

    Args:
      jaxpr: the program.
      results: for each result the requested placement, or None; an empty list if there are no requests.
      placements: for each input, the placement at which the program takes it.
      actual: for each input, the placement of the argument.
    """
    moved: dict[Any, Any] = {v: to for v, to, here in zip(jaxpr.invars, placements, actual, strict=True) if to != here}
    if moved and not moved.keys().isdisjoint(jaxpr.outvars):
        results = results or [None] * len(jaxpr.outvars)
        results = [moved.get(v) if to is None else to for v, to in zip(jaxpr.outvars, results, strict=True)]
    return results


def with_sums(closed: ClosedJaxpr, results: Sequence[Any]) -> ClosedJaxpr:
    """Return a program that reshards those results of which it is requested that they are unreduced, or are not.

    Args:
      closed: the program.
      results: for each result the requested placement, or None; an empty list if there are no requests.
    """
    eqns, outs = list[Eqn](), list(closed.jaxpr.outvars)
    for i, (to, aval) in enumerate(zip(results, closed.out_avals, strict=False)):
        if isinstance(to, NamedSharding):
            have = aval.explicit
            if to.spec.unreduced != (frozenset() if have is None else have.spec.unreduced):
                for sharding in (between(have, to), to):
                    if sharding is not None:
                        var = Var(aval.update(sharding=sharding))
                        eqns.append(Eqn(reshard_p, [outs[i]], {"sharding": sharding}, [var]))
                        outs[i] = var
    if not eqns:
        return closed
    return closed.map_jaxpr(lambda jaxpr: jaxpr.replace(eqns=[*jaxpr.eqns, *eqns], outvars=outs))


def of_the_program(out_placements: Sequence[Any], out_index: list[int] | None) -> list[Any]:
    """Select, from the placements of a function's results, the placements of the results that its program computes.

    The other results have a negative number in ``out_index``: each is an unchanged input.
    """
    if not out_placements or out_index is None:
        return list(out_placements)
    return [placement for placement, i in zip(out_placements, out_index, strict=True) if i >= 0]
