"""Exported programs: StableHLO for several platforms in one module, and calls of them from other programs."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.backends.compiler import foreign_programs
from pullback.backends.compiler.backend import backend
from pullback.backends.devices.memories import DEVICE, MemoryKinds, annotated_as_requested, kinds_of_program
from pullback.backends.devices.meshes import AbstractMesh
from pullback.backends.devices.shardings import NamedSharding
from pullback.backends.hlo import foreign
from pullback.backends.hlo.builder import Builder, Value
from pullback.backends.hlo.emit import emit_jaxpr, inline
from pullback.backends.hlo.module import Function, Module
from pullback.backends.hlo.sizes import sizes_of_arguments
from pullback.backends.host.calls import TARGETS
from pullback.core.dims import Variable, names_in
from pullback.core.errors import ExportError, UnsupportedExportError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.source import describe
from pullback.core.trace import Primitive

_INDEX = np.dtype(np.int32)


@dataclass(frozen=True)
class Portable:
    """A self-contained program, which can run in another process.

    Attributes:
      text: the program.
      entries: the name of the function for each platform.
      devices: how many devices the program runs on.
    """

    text: str
    entries: list[str]
    devices: int


def portable(
    closed: ClosedJaxpr,
    name: str,
    platforms: Sequence[str],
    in_shardings: Sequence[NamedSharding | None] = (),
    out_shardings: Sequence[NamedSharding | None] = (),
    placements: tuple[Sequence[Any], Sequence[Any]] = ((), ()),
) -> Portable:
    """Lower a program to self-contained text, with a function for each platform.

    Each of these functions takes the inputs. The text's function ``main`` takes the inputs too, with random keys as
    integer arrays. If there are several platforms, ``main`` first takes the index of the platform on which it runs, an
    int32.

    Args:
      closed: the program.
      name: its name.
      platforms: the platforms. They share one function if their texts are equal.
      in_shardings: the sharding that the functions impose on each input, over the devices on which the program will
        run; None for an input without one. An empty sequence imposes none.
      out_shardings: the sharding of each result, in the same form.
      placements: a pair: the placement of each input, and of each result, or None, which say in which memories they
        are; empty sequences if all are in the devices' own.

    Raises:
      UnsupportedExportError: the program calls Python functions (a ValueError and NotImplementedError).
    """
    shardings = (in_shardings or [None] * len(closed.in_avals), out_shardings or [None] * len(closed.out_avals))
    kinds = kinds_of_program(closed.jaxpr, *placements, next((p for p in platforms if p != "cpu"), "cpu"))
    memories = kinds, placements[1]
    separate = [
        _written(Module(name, platform, inline), closed, [platform], shardings, memories) for platform in platforms
    ]
    texts = [module.text() for module, _ in separate]
    if len(set(texts)) == 1:
        module, (function,) = separate[0]
        functions = [function] * len(platforms)
    else:
        module = Module(name, platforms[0], inline)
        module, functions = _written(module, closed, platforms, shardings, memories)
    _check(module, name)
    hlo = Builder(module)
    index = [hlo.argument((), _INDEX)] if len(platforms) > 1 else []
    args = [hlo.argument(a.shape, a.dtype) for a in closed.in_avals]
    if not index or len(set(texts)) == 1:
        outs = hlo.call(functions[0], args)
    else:
        branches = [hlo.region([], lambda f=f: hlo.call(f, args)) for f in functions]
        outs = hlo.multi_result("stablehlo.case", index, functions[0].results, regions=branches)
    several = module.size > 1
    if kinds is not None and {*platforms} != {"cpu"}:
        module.memories = [DEVICE] * len(index) + kinds[0], kinds[1]
    hlo.finish_main(outs, {}, [*[None] * len(index), *shardings[0]] if several else (), shardings[1] if several else ())
    return Portable(module.text(), [function.name for function in functions], module.size)


_Shardings = tuple[Sequence[NamedSharding | None], Sequence[NamedSharding | None]]
_Memories = tuple[MemoryKinds | None, Sequence[Any]]


def _written(
    module: Module, closed: ClosedJaxpr, platforms: Sequence[str], shardings: _Shardings, memories: _Memories
) -> tuple[Module, list[Function]]:
    """Write a function for each platform into ``module``; return the module and the functions.

    Args:
      module: the StableHLO module.
      closed: the program.
      platforms: the platforms.
      shardings: a pair: the sharding of each input, and of each result; None for one without.
      memories: the kinds of memory of inputs and results, and the requested placements of results.
    """
    module.portable = True
    functions = []
    for platform in platforms:
        module.platform = platform
        module.memories = None if platform == "cpu" else memories[0]
        module.shared.clear()
        hlo = Builder(module)
        args = [hlo.argument(a.shape, a.dtype) for a in closed.in_avals]
        unknown = sizes_of_arguments(hlo, args)
        args = _constrained(hlo, args, shardings[0])
        outs = [] if unknown else emit_jaxpr(hlo, closed.jaxpr, closed.consts, args)
        unknown |= {x for x, _ in hlo.hoisted.values() if isinstance(x, Variable)}  # sizes that the equations asked for
        unknown |= {name for x in closed.out_avals for n in x.shape for name in names_in(n)} - set(hlo.sizes)
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise ExportError(
                f"export of {module.name}: the sizes {names} cannot be computed from the shapes of the arguments: "
                f"each name must occur in a size that is linear in it, such as 2*b + 1"
            )
        outs = annotated_as_requested(hlo, _constrained(hlo, outs, shardings[1]), memories[1])
        functions.append(hlo.finish(module.unique("program"), outs))
    module.choose_devices()
    return module, functions


def _constrained(hlo: Builder, values: Sequence[Value], shardings: Sequence[NamedSharding | None]) -> list[Value]:
    return [x if s is None else hlo.constrained(x, s) for x, s in zip(values, shardings, strict=True)]


def _check(module: Module, name: str) -> None:
    """Raise UnsupportedExportError if a program calls Python functions of this process, or inspects shardings."""
    if module.callbacks:
        raise UnsupportedExportError(
            f"export: {name.removeprefix('jit_')} cannot be exported, because it calls Python functions of this "
            f"process: "
            f"{'; '.join(_host_calls(module))}. Remove pure_callback, io_callback and debug.print, or pass their "
            f"results as arguments."
        )
    if module.inspections:
        raise UnsupportedExportError(
            f"export: {name.removeprefix('jit_')} cannot be exported while it calls inspect_array_sharding: remove "
            f"the call"
        )


def _host_calls(module: Module) -> list[str]:
    """Describe each call of a Python function in a module: the function, the operation, and the user's line."""
    locations = {str(number): location for number, location in module.source_locations.values()}
    found: dict[str, None] = {}
    for line in itertools.chain.from_iterable(function.lines for function in module.functions):
        call = re.search(rf'"(?:{"|".join(TARGETS.values())})".*index = (\d+) : ui64', line)
        if call is not None:
            reference = re.search(r" loc\(#loc(\d+)\)$", line)
            where = "" if reference is None else f" at {describe(locations[reference[1]])}"
            found[f"{_shown(module.callbacks[int(call[1])])}{where}"] = None
    return list(found)


def _shown(callback: Any) -> str:
    """Describe a callback: the name of the Python function, and the operation that calls it."""
    args = getattr(callback, "args", ())
    call = next((a for a in args if hasattr(a, "avals")), callback)
    operation = next((f", by {a.name}" for a in args if isinstance(a, Primitive)), "")
    return f"{getattr(call, '__name__', call)}{operation}"


def foreign_calls(text: str) -> list[str]:
    """The targets of the custom calls in the text of a program, sorted."""
    found = re.findall(r'call_target_name = "([^"]+)"|custom_call @(?:"([^"]+)"|([\w.$]+))', text)
    return sorted({next(filter(None, names)) for names in found})


def call_portable(
    hlo: Builder,
    data: bytes,
    entry: str,
    operands: Sequence[Value],
    results: Sequence[Any],
    declared: Sequence[Any],
    devices: tuple[str, int],
    trusted: Collection[str],
) -> list[Value]:
    """Write a call of a function of a portable program, and copy the program's functions to the caller's module.

    Args:
      hlo: the builder of the calling function.
      data: the portable program.
      entry: the name of the function in it.
      operands: the operands of the call.
      results: the types of the results for these operands.
      declared: the types of results that the function declares, which may have symbolic sizes.
      devices: the user's name of the function, and how many devices it runs on.
      trusted: functions of the runtime that the program may call beside those that every program may.

    Returns:
      The results of the call.

    Raises:
      ExportError: the program has what no exported program has, or is too large (a ValueError).
      CompilationError: the bytes are no program, or none for these operands (a RuntimeError).
    """
    module = hlo.module
    shown = [v.type for v in operands]
    kinds = [(a.shape, a.dtype) for a in results]
    returned = [
        (Value("", a.shape, a.dtype).type, Value("", *kind).type) for a, kind in zip(declared, kinds, strict=True)
    ]
    key = (id(data), entry, tuple(shown), tuple(returned))
    found = module.shared.get(key)
    if found is None:
        allowed = {*trusted, *foreign.registered}
        check = functools.partial(foreign_programs.check, who=f"the exported {devices[0]}", allowed=allowed)
        name, functions, meshes = backend().functions_of(data, entry, shown, returned, module.unique, check)
        names = {old: module.mesh(AbstractMesh(*axes)) for old, axes in meshes.items()}
        for lines in functions:
            module.may_not_end |= any("stablehlo.while" in line for line in lines)
            module.functions.append(Function("", [_adapted(line, module, names) for line in lines], [], []))
        if meshes or devices[1] > 1:
            module.exported.append(devices)
        found = module.shared[key] = (data, Function(name, [], kinds, []))
    return hlo.raw_call(found[1], operands)


def _adapted(line: str, module: Module, meshes: dict[str, str]) -> str:
    """Adapt a line of another program to ``module``: rename its meshes, and replace its channel numbers with new ones.

    Args:
      line: the line.
      module: the module that will contain the line.
      meshes: the new name of each mesh, by its old name.
    """
    line = re.sub(r"<(@\w+)(?=, \[)", lambda name: f"<{meshes.get(name[1], name[1])}", line)
    return re.sub(r"(channel_handle<handle = )\d+", lambda found: f"{found[1]}{next(module.channels)}", line)
