"""Programs: jaxprs compiled for a device, and the buffers that they are run on."""

from __future__ import annotations

import hashlib
import linecache
import logging
import re
import threading
import time
import weakref
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from pullback.backends import client, options, small_loops, transfers
from pullback.backends.client import Buffer, Executable
from pullback.backends.devices import Device, default_device
from pullback.backends.emit import emit_module
from pullback.backends.hlo import _NONE, Aliases, Module
from pullback.core import array
from pullback.core.array import ArrayImpl, DeviceArray, Signature, signature, signature_of
from pullback.core.config import config
from pullback.core.errors import CompilationError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.locks import renewed

logger = logging.getLogger("pullback")
array.fetch = client.fetch
_new = object.__new__


# Buffers -------------------------------------------------------------------------------------------------------------


def buffer_of(x: ArrayImpl, device: Device) -> Buffer:
    """The elements of an array on a device; they are put there if they are not."""
    try:
        buffer = x._buffer
    except AttributeError:
        if device.platform != "cpu":
            transfers.check("host_to_device", x.aval)
        buffer = x._buffer = client.put(x._value, x.aval, device)
        return buffer
    if client.several_devices and client.device_of(buffer) is not device:
        transfers.check("device_to_device", x.aval)
        return client.move(buffer, device)
    return buffer


def resident(x: ArrayImpl, device: Device) -> ArrayImpl:
    """An array, or its copy, whose buffer is on a device."""
    buffer = buffer_of(x, device)
    return x if x._buffer is buffer else from_buffer(buffer, signature_of(x))


buffers_of = attrgetter("_buffer")


def from_buffer(buffer: Buffer, kind: Signature) -> DeviceArray:
    """An array of the elements in a buffer."""
    x = _new(DeviceArray)
    x._buffer = buffer
    x._signature = kind
    return x


def snapshot(x: np.ndarray[Any, Any]) -> DeviceArray:
    """The elements of a NumPy array, which may change later, on the default device."""
    kind = signature(x.shape, x.dtype, False)
    return from_buffer(client.put(x, kind.aval, default_device(), copy=True), kind)


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
        self.captured = [resident(x, self.device) for x in lowered.captured]
        avals = lowered.closed.out_avals
        self.out_signatures = [signature(a.shape, a.dtype, bool(a.weak_type)) for a in avals]

    def __call__(self, args: Sequence[ArrayImpl]) -> list[DeviceArray]:
        """The results for some arrays."""
        device = self.device
        outs = self.run([*[buffer_of(x, device) for x in args], *map(buffers_of, self.captured)])
        return list(map(from_buffer, outs, self.out_signatures))


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
        return Executable(_compile(lowered, chosen), device, out_avals, calls_python=True)
    key = (hashlib.sha256(text.encode()).digest(), tuple(chosen), device)
    found = _executables.get(key)
    if found is not None:
        return found
    with _compiling:
        found = _executables.get(key)
        if found is None:
            start = time.perf_counter()
            loaded, where = disk_cache.load_or_compile(text, device, chosen, lambda: _compile(lowered, chosen))
            found = _executables[key] = Executable(loaded, device, out_avals)
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
        return client.compile_text(text, lowered.device, overrides, module.callbacks)
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
