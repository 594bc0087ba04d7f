"""Programs: jaxprs lowered and compiled for a device."""

from __future__ import annotations

import hashlib
import linecache
import logging
import re
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from pullback.backends import forks, options, small_loops
from pullback.backends.backend import Executable, backend
from pullback.backends.buffers import buffers_on, from_buffer, resident
from pullback.backends.devices import Device
from pullback.backends.emit import emit_module
from pullback.backends.hlo import _NONE, Aliases, Module
from pullback.core.array import ArrayImpl, DeviceArray, Signature, signature
from pullback.core.config import config
from pullback.core.errors import CompilationError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.locks import renewed

logger = logging.getLogger("pullback")


# Programs ------------------------------------------------------------------------------------------------------------


class Lowered:
    """A program as StableHLO text, for a device.

    Attributes:
      module: the text, and what it refers to.
      captured: the arrays that it takes after its inputs.
    """

    __slots__ = ("captured", "closed", "device", "module")

    def __init__(self, closed: ClosedJaxpr, name: str, device: Device, aliases: Aliases = _NONE) -> None:
        self.closed = closed
        self.device = device
        module, main = emit_module(closed, name, device.platform, aliases)
        self.module: Module = module
        self.captured = main.captured

    def compile(self, overrides: Sequence[tuple[str, Any]] = ()) -> Program:
        """The program, ready to run; compiled unless an equal one is at hand, in memory or on disk."""
        return Program(self, _executable(self, overrides))


class Program:
    """A program that is ready to run.

    Attributes:
      device: where it runs.
      run: ``run(buffers)`` starts it on the buffers of its inputs and of what it captured.
      captured: the arrays that it captured, on its device. Their buffers are looked up in each call: one that was
        deleted or donated meanwhile raises ``DeletedArrayError``.
      out_signatures: the signatures of its results, where nobody asked for the device.
    """

    __slots__ = ("captured", "device", "executable", "lowered", "out_signatures", "run")

    def __init__(self, lowered: Lowered, executable: Executable) -> None:
        self.lowered = lowered
        self.executable = executable
        self.device = executable.device
        self.run = executable.run
        self.captured = [resident(x, self.device) for x in lowered.captured] if lowered.captured else []
        avals = lowered.closed.out_avals
        self.out_signatures = [signature(a.shape, a.dtype, bool(a.weak_type)) for a in avals]

    def __call__(self, args: Sequence[ArrayImpl], stay: bool = False) -> list[DeviceArray]:
        """The results for some arrays, which stay on the device of the program if ``stay``: somebody asked for it."""
        forks.check(f"running the compiled program {self.lowered.module.name}")
        outs = self.run(buffers_on(self.device, args, self.captured))
        return list(map(from_buffer, outs, self.signatures() if stay else self.out_signatures))

    def signatures(self) -> list[Signature]:
        """The signatures of its results where somebody asked for its device, so that they stay there."""
        avals = [k.aval for k in self.out_signatures]
        return [signature(a.shape, a.dtype, a.weak_type, self.device) for a in avals]


_executables: weakref.WeakValueDictionary[Any, Executable] = weakref.WeakValueDictionary()
_compiling = threading.RLock()  # a signal handler of the user's, which may compile, runs while it is held
renewed(globals(), "_compiling", threading.RLock)


def _executable(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> Executable:
    """The executable for a text: one that is in use, or one from the disk, or a new one."""
    from pullback.backends import disk_cache

    device = lowered.device
    text = lowered.module.text(scopes=True)  # which profiles show, so that programs with others are others
    chosen = options.chosen(device.platform, text, overrides)
    out_avals = lowered.closed.out_avals
    if lowered.module.callbacks:
        return backend().executable(_compile(lowered, chosen), device, out_avals, calls_python=True)
    key = (hashlib.sha256(text.encode()).digest(), tuple(chosen), device)
    found = _executables.get(key)
    if found is not None:
        return found
    with _compiling:
        found = _executables.get(key)
        if found is None:
            start = time.perf_counter()
            loaded, where = disk_cache.load_or_compile(text, device, chosen, lambda: _compile(lowered, chosen))
            found = _executables[key] = backend().executable(loaded, device, out_avals)
            if config.log_compiles:
                took = time.perf_counter() - start
                logger.warning("%s %s in %.3f s", where, lowered.module.name, took)
    return found


def _compile(lowered: Lowered, overrides: Sequence[tuple[str, Any]], whole: bool = True) -> Any:
    module = lowered.module
    text = module.text(locations=True)
    if not whole:
        text = text.replace(f" {{{small_loops.ATTRIBUTES}}}", "")
    try:
        return backend().compile_text(text, lowered.device, overrides, module.callbacks)
    except CompilationError as error:
        unknown = re.search(r"No such compile option: '(\w+)'", str(error))
        if unknown and options.OPTIONS.pop(unknown[1], None) is not None:
            return _compile(lowered, [(name, value) for name, value in overrides if name != unknown[1]], whole)
        if whole and small_loops.ATTRIBUTES in text:  # perhaps it cannot be compiled to one function
            return _compile(lowered, overrides, whole=False)
        raise CompilationError(_refusal(str(error), module, text)) from None


def _refusal(message: str, module: Module, text: str) -> str:
    """What the compiler says of a program, with the operation and the user's line, as far as it tells the place."""
    found = re.match(_DIAGNOSTIC, message)
    if found is None:
        return f"the compiler refuses the program {module.name}: {message}"
    file, line, said = found[1], int(found[2]), found[3]
    legend = {number: (name, where, int(at)) for number, name, where, at in re.findall(_LEGEND, text)}
    if file == "-":  # a place in the text of the program
        written = text.splitlines()[line - 1].strip()
        number = written.rpartition(" loc(#loc")[2].rstrip(")")
        name, file, line = legend.get(number, ("", "", 0))
        said = f"{said}\n  in: {written}"
    else:
        name = next((name for name, where, at in legend.values() if (where, at) == (file, line)), "")
    operation = f"the operation {name}" if name else "an operation"
    place = f'\n  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}' if file else ""
    return f"the compiler refuses {operation} of the program {module.name}:{place}\n{said}"


_DIAGNOSTIC = r"(?:[A-Z_]+: )?(.*?):(\d+):\d+: error: (.*)"
_LEGEND = r'(?m)^#loc(\d+) = loc\("(.*)"\("(.*)":(\d+):0\)\)$'
