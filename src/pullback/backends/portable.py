"""Programs for other processes: written for several platforms at once, and called from other programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.backend import backend
from pullback.backends.emit import emit_jaxpr, inline
from pullback.backends.hlo import Builder, Value
from pullback.backends.hlo_module import Function, Module
from pullback.backends.hlo_sizes import sizes_of_arguments
from pullback.core.dims import Variable, names_in
from pullback.core.errors import ExportError, UnsupportedExportError
from pullback.core.jaxpr import ClosedJaxpr

_INDEX = np.dtype(np.int32)


def portable_text(closed: ClosedJaxpr, name: str, platforms: Sequence[str]) -> tuple[str, list[str]]:
    """A program as text that needs nothing of this process, and what runs on each of some platforms.

    Its function ``main`` takes the inputs as devices store them. If there are several platforms, the first argument
    is the position of the one on which it runs, a number of 32 bits. The function for a platform takes the inputs
    themselves.

    Args:
      closed: the program.
      name: its name.
      platforms: for which it is written. They share one function where the texts for all of them are equal.

    Returns:
      The text, and for each platform the name of its function.

    Raises:
      UnsupportedExportError: it calls Python functions, or is for several devices (a ValueError, NotImplementedError).
    """
    alone = [_written(Module(name, platform, inline), closed, [platform]) for platform in platforms]
    texts = [module.text() for module, _ in alone]
    if len(set(texts)) == 1:
        module, (function,) = alone[0]
        chosen = [function] * len(platforms)
    else:
        module = Module(name, platforms[0], inline)
        module, chosen = _written(module, closed, platforms)
    _check(module, name)
    hlo = Builder(module)
    index = hlo.argument((), _INDEX) if len(platforms) > 1 else None
    args = [hlo.argument(a.shape, a.dtype) for a in closed.in_avals]
    if index is None or len(set(texts)) == 1:
        outs = hlo.call(chosen[0], args)
    else:
        branches = [hlo.region([], lambda f=f: hlo.call(f, args)) for f in chosen]
        outs = hlo.many("stablehlo.case", [index], chosen[0].results, regions=branches)
    hlo.finish_main(outs)
    return module.text(), [function.name for function in chosen]


def _written(module: Module, closed: ClosedJaxpr, platforms: Sequence[str]) -> tuple[Module, list[Function]]:
    """A module with a function for each platform."""
    module.portable = True
    functions = []
    for platform in platforms:
        module.platform = platform
        module.shared.clear()
        hlo = Builder(module)
        args = [hlo.argument(a.shape, a.dtype) for a in closed.in_avals]
        unknown = sizes_of_arguments(hlo, args)
        outs = [] if unknown else emit_jaxpr(hlo, closed.jaxpr, closed.consts, args)
        unknown |= {x for x, _ in hlo.hoisted.values() if isinstance(x, Variable)}  # those that were asked for
        unknown |= {name for x in closed.out_avals for n in x.shape for name in names_in(n)} - set(hlo.sizes)
        if unknown:
            names = ", ".join(sorted(map(str, unknown)))
            raise ExportError(
                f"export of {module.name}: the sizes {names} do not follow from the shapes of the arguments: each name "
                "has to occur in a size that is linear in it, such as 2*b + 1"
            )
        functions.append(hlo.finish(module.unique("program"), outs))
    return module, functions


def _check(module: Module, name: str) -> None:
    """Refuse a program that needs this process, or several devices."""
    if module.callbacks:
        names = ", ".join(sorted({str(_name(f)) for f in module.callbacks}))
        raise UnsupportedExportError(
            f"export: {name} cannot be exported, for it calls Python functions of this process: {names}. Leave out "
            "pure_callback, io_callback and debug.print, or take what they compute as arguments."
        )
    if module.inspections:
        raise UnsupportedExportError(
            f"export: {name} cannot be exported with inspect_array_sharding in it: leave that out"
        )
    if module.meshes:
        raise UnsupportedExportError(
            f"export: {name} cannot be exported, for it runs on the devices of a mesh: export it for one device"
        )


def _name(callback: Any) -> Any:
    call = next((a for a in getattr(callback, "args", ()) if hasattr(a, "avals")), callback)
    return getattr(call, "__name__", call)


def foreign_calls(text: str) -> list[str]:
    """The names of functions of the runtime that a program calls."""
    found = re.findall(r'call_target_name = "([^"]+)"|custom_call @(?:"([^"]+)"|([\w.$]+))', text)
    return sorted({next(filter(None, names)) for names in found})


def call_portable(
    hlo: Builder, data: bytes, entry: str, operands: Sequence[Value], results: Sequence[Any], declared: Sequence[Any]
) -> list[Value]:
    """Write a call of a function of a portable program, whose text becomes part of this one.

    Args:
      hlo: the function that is being written.
      data: the program.
      entry: its function.
      operands: what it takes.
      results: the types of the results for these operands.
      declared: the types of the results that it declares.

    Returns:
      Its results.
    """
    module = hlo.module
    shown = [v.type for v in operands]
    key = (id(data), entry, tuple(shown))
    found = module.shared.get(key)
    if found is None:
        returned = [Value("", a.shape, a.dtype).type for a in declared]
        name, functions = backend().functions_of(data, entry, shown, returned, module.unique)
        for lines in functions:
            module.functions.append(Function("", lines, [], []))
        kinds = [(a.shape, a.dtype) for a in results]
        found = module.shared[key] = (data, Function(name, [], kinds, []))
    return hlo.call_given(found[1], operands)
