"""Programs: jaxprs lowered and compiled for a device."""

from __future__ import annotations

import hashlib
import linecache
import re
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler import compile_progress, compile_times, options, small_loops
from pullback.backends.compiler.backend import Executable, backend
from pullback.backends.devices.buffers import buffer_at, buffers_of, buffers_on, from_buffer, resident
from pullback.backends.devices.devices import Device, Devices
from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, divides, sharding_of_tiles
from pullback.backends.hlo.builder import _NONE, Aliases, captured_shardings
from pullback.backends.hlo.emit import emit_module
from pullback.backends.hlo.module import Module
from pullback.backends.processes import forks
from pullback.core import monitoring
from pullback.core.array import ArrayImpl, Signature, signature, signature_of
from pullback.core.config import config
from pullback.core.errors import CompilationError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.locks import lock, renewed
from pullback.core.runtime import provides, runtime

# Programs ------------------------------------------------------------------------------------------------------------


class Lowered:
    """A program as StableHLO text, for a device or for those of a mesh.

    Args:
      closed: the program.
      name: its name.
      device: where it is to run, a device or the devices of a mesh.
      aliases: for some inputs, the result that takes their memory.
      asked_for: whether somebody asked for the device: otherwise operations of the program that name a mesh, and
        arrays that it captured, may choose another.
      in_placements: for each input its place, a device or a sharding; None where the compiler may decide. No places at
        all if nobody asked for any.
      out_placements: the same for results.
      mesh: the one by which shardings are expressed that the compiler chooses; by default the first that is named.

    Attributes:
      module: the text, and what it refers to.
      captured: the arrays that it takes after its inputs.
      device: where it runs.
      asked_for: whether somebody asked for that, so that results stay there.
      in_shardings, out_shardings: those of the places that are shardings over several devices.

    Raises:
      IncompatibleDevicesError: its operands and operations are on different devices (a RuntimeError and ValueError).
    """

    __slots__ = (
        "aliases", "asked_for", "captured", "closed", "device", "in_shardings", "module", "name", "out_shardings",
    )  # fmt: skip

    def __init__(
        self,
        closed: ClosedJaxpr,
        name: str,
        device: Devices,
        aliases: Aliases = _NONE,
        *,
        asked_for: bool = True,
        in_placements: Sequence[Any] = (),
        out_placements: Sequence[Any] = (),
        mesh: Any = None,
    ) -> None:
        self.closed = closed
        self.name = name
        self.aliases = aliases
        self.in_shardings = _shardings(in_placements)
        self.out_shardings = _shardings(out_placements)
        asked = device if asked_for else None
        shardings = self.in_shardings, self.out_shardings
        with monitoring.timed(monitoring.LOWER, fun_name=_called(name)):
            module, main = emit_module(closed, name, device.platform, aliases, asked, *shardings, mesh)
        self.device: Any = module.devices or device
        self.asked_for = module.devices is not None
        self.module: Module = module
        self.captured = main.captured

    @property
    def operations(self) -> int:
        """How many lines its text has: about as many as operations."""
        return sum(len(function.lines) for function in self.module.functions)

    @property
    def compile_time(self) -> float:
        """What :mod:`compile_times` says of it by its table, in seconds."""
        return compile_times.by_table(line for function in self.module.functions for line in function.lines)

    def compile(self, overrides: Sequence[tuple[str, Any]] = ()) -> Program:
        """The program, ready to run; compiled unless an equal one is at hand, in memory or on disk."""
        if isinstance(self.device, Device):
            return Program(self, self._executable(overrides))
        executable = self._executable(overrides)
        if None in (*executable.in_shardings, *executable.out_shardings):  # the compiler has divided an axis of a mesh
            whole = NamedSharding(next(iter(self.module.meshes)), PartitionSpec())
            again = Lowered(
                self.closed, self.name, self.device, self.aliases,
                in_placements=[s or whole for s in executable.in_shardings[: len(self.closed.in_avals)]],
                out_placements=[s or whole for s in executable.out_shardings],
            )  # fmt: skip
            return Program(again, again._executable(overrides))
        return Program(self, executable)

    def _executable(self, overrides: Sequence[tuple[str, Any]]) -> Executable:
        with monitoring.timed(monitoring.COMPILE, fun_name=_called(self.name)):
            return _executable(self, overrides)


def _called(name: str) -> str:
    """What listeners are told that a program is called, as JAX says it."""
    return f"jit({name.removeprefix('jit_')})"


def _shardings(places: Sequence[Any]) -> list[NamedSharding | None]:
    """Those of some places that are shardings over several devices; none at all if none is."""
    found = [place if isinstance(place, NamedSharding) else None for place in places]
    return found if any(found) else []


class Program:
    """A program that is ready to run.

    Attributes:
      device: where it runs.
      run: ``run(buffers)`` starts it on the buffers of its inputs and of what it captured.
      captured: the arrays that it captured, on its device. Their buffers are looked up in each call: one that was
        deleted or donated meanwhile raises ``DeletedArrayError``.
      in_shardings: over several devices, how each input is spread; None on one device.
      out_signatures: the signatures of its results, where nobody asked for the device.
    """

    __slots__ = ("captured", "device", "executable", "in_shardings", "lowered", "out_signatures", "run")

    def __init__(self, lowered: Lowered, executable: Executable) -> None:
        self.lowered = lowered
        self.executable = executable
        self.device = executable.device
        self.run = executable.run
        avals = lowered.closed.out_avals
        several = not isinstance(self.device, Device)
        count = len(lowered.closed.in_avals)
        self.in_shardings = executable.in_shardings[:count] if several else None
        if lowered.captured:
            places = executable.in_shardings[count:] if several else [self.device] * len(lowered.captured)
            self.captured = [resident(x, place) for x, place in zip(lowered.captured, places, strict=True)]
        else:
            self.captured = []
        self.out_signatures = [signature(a.shape, a.dtype, bool(a.weak_type)) for a in avals]
        if lowered.asked_for and (several or not self.device.is_host):
            self.out_signatures = self.signatures()

    def buffers(self, args: Sequence[ArrayImpl]) -> list[Any]:
        """The buffers of some arrays for its inputs, and of what it captured."""
        if self.in_shardings is None:
            return buffers_on(self.device, args, self.captured)
        return [*map(buffer_at, args, self.in_shardings), *map(buffers_of, self.captured)]

    def __call__(self, args: Sequence[ArrayImpl], stay: bool = False) -> list[ArrayImpl]:
        """The results for some arrays, which stay on the device of the program if ``stay``: somebody asked for it."""
        forks.check(f"running the compiled program {self.lowered.module.name}")
        outs = self.run(self.buffers(args))
        return list(map(from_buffer, outs, self.signatures() if stay else self.out_signatures))

    def signatures(self) -> list[Signature]:
        """The signatures of its results where somebody asked for its device, so that they stay there."""
        avals = [k.aval for k in self.out_signatures]
        places = [self.device] * len(avals) if self.in_shardings is None else self.executable.out_shardings
        return [signature(a.shape, a.dtype, a.weak_type, p) for a, p in zip(avals, places, strict=True)]


_reshardings: dict[Any, Program] = {}
MOST_RESHARDINGS = 256
"""How many programs that only move parts are kept; the oldest is dropped for a new one."""


@provides
def reshard(x: ArrayImpl, sharding: NamedSharding) -> Any:
    """The elements of an array by another sharding over the same devices: what a program returns that does nothing."""
    kind = signature_of(x)
    key = (kind, sharding)
    program = _reshardings.get(key)
    if program is None:
        aval = kind.aval
        var = Var(aval)
        closed = ClosedJaxpr(Jaxpr([], [var], [], [var]))
        lowered = Lowered(
            closed, "reshard", sharding.assignment, in_placements=[kind.placement], out_placements=[sharding]
        )
        program = lowered.compile()
        while len(_reshardings) >= MOST_RESHARDINGS:
            _reshardings.pop(next(iter(_reshardings), None), None)
        _reshardings[key] = program
    return program.run(program.buffers([x]))[0]


_executables: weakref.WeakValueDictionary[Any, Executable] = weakref.WeakValueDictionary()
_compiling: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
"""For each program that is being compiled a lock, so that another thread that wants the same waits for it."""
# A signal handler of the user's, which may compile, runs while locks are held.
_guard = lock(globals(), "_guard", reentrant=True)
renewed(globals(), "_compiling", weakref.WeakValueDictionary)


def _lock_of(key: Any) -> Any:
    """The lock of a program, which lives as long as somebody refers to it."""
    with _guard:
        return _compiling.setdefault(key, threading.RLock())


def is_at_hand(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> bool:
    """Whether a program on one device need not be compiled, since an equal one is in memory or on disk."""
    from pullback.backends.compiler import disk_cache

    if lowered.module.callbacks:
        return False
    text = lowered.module.text(scopes=True)
    chosen = options.chosen(lowered.device.platform, text, overrides)
    known = (hashlib.sha256(text.encode()).digest(), tuple(chosen), lowered.device, tuple(lowered.module.meshes))
    return known in _executables or disk_cache.has(text, lowered.device, chosen)


def _executable(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> Executable:
    """The executable for a text: one that is in use, or one from the disk, or a new one."""
    from pullback.backends.compiler import disk_cache

    device = lowered.device
    text = lowered.module.text(scopes=True)  # which profiles show, so that programs with others are others
    chosen = options.chosen(device.platform, text, overrides)
    out_avals = lowered.closed.out_avals
    shardings = None if isinstance(device, Device) else _Shardings(lowered)
    if lowered.module.inspections or lowered.module.partitions:
        loaded = _compile_watched(lowered, chosen)
        return backend().executable(loaded, device, out_avals, bool(lowered.module.callbacks), shardings)
    if lowered.module.callbacks:
        start = time.perf_counter()
        made = backend().executable(_compile(lowered, chosen), device, out_avals, True, shardings)
        if config.log_compiles:
            _log("compiled", lowered, start, "it calls functions of Python's, so that it is not kept")
        return made
    digest = hashlib.sha256(text.encode()).digest()
    if not (isinstance(device, Device) or device.is_local):
        from pullback.backends.processes import distributed  # with asyncio, whose import takes 40 ms

        of = sorted({d.process_index for d in device.devices})
        distributed.agree(lowered.module.name, hashlib.sha256(digest + repr(device.id).encode()).digest(), of)
    key = (digest, tuple(chosen), device, tuple(lowered.module.meshes))
    found = _executables.get(key)
    if found is not None:
        return found
    with _lock_of(key):
        found = _executables.get(key)
        if found is None:
            start = time.perf_counter()
            missing = disk_cache.why_missing(text, device, chosen) if config.log_compiles else None
            loaded, where = disk_cache.load_or_compile(text, device, chosen, lambda: _compile(lowered, chosen))
            found = _executables[key] = backend().executable(loaded, device, out_avals, False, shardings)
            if config.log_compiles:
                _log(where, lowered, start, missing)
    return found


def _log(where: str, lowered: Lowered, start: float, missing: str | None) -> None:
    """Log that a program was loaded, or compiled since it was ``missing`` in the cache, beginning at some time."""
    took, why = time.perf_counter() - start, "" if missing is None else f": {missing}"
    import logging

    logging.getLogger("pullback").warning(
        "%s %s in %.3f s, about %d operations%s", where, lowered.module.name, took, lowered.operations, why
    )


class _Shardings:
    """Finds out how inputs and results of a program over several devices are spread.

    Args:
      lowered: the program.
    """

    def __init__(self, lowered: Lowered) -> None:
        self.mesh = next(iter(lowered.module.meshes))
        grid = np.array(self.mesh.assignment.devices)
        others = [Mesh(grid.reshape(m.axis_sizes), m.axis_names) for m in lowered.module.logical_meshes]
        self.meshes = [self.mesh, *others]
        avals = lowered.closed.in_avals
        self.in_shapes = [a.shape for a in avals] + [x.shape for x in lowered.captured]
        self.out_shapes = [a.shape for a in lowered.closed.out_avals]
        inputs = lowered.in_shardings or [None] * len(avals)
        self.asked_in = [*inputs, *captured_shardings(lowered.captured, self.mesh)]
        self.asked_out = lowered.out_shardings or [None] * len(self.out_shapes)

    def found(self, tilings: Any) -> tuple[list[Any], list[Any]]:
        """The shardings of inputs and of results; None for one that no specification says.

        Args:
          tilings: those of inputs and of results, as the backend has them: for each None if every device has all of
            it, or the numbers of parts, and of the part of each device, along each axis.
        """
        given = (self.asked_in, self.in_shapes), (self.asked_out, self.out_shapes)
        return tuple(  # type: ignore[return-value]
            [
                self._one(*each)
                for each in zip(asked, shapes, (tiles or [None] * len(shapes))[: len(shapes)], strict=True)
            ]
            for (asked, shapes), tiles in zip(given, tilings, strict=True)
        )

    def _one(self, asked: NamedSharding | None, shape: Any, tiling: Any) -> NamedSharding | None:
        if asked is not None and UNCONSTRAINED not in asked.spec.partitions:
            return asked
        if tiling is None:
            return NamedSharding(self.mesh, PartitionSpec())
        for mesh in self.meshes:
            found = sharding_of_tiles(mesh, *tiling)
            if found is not None and divides(found, shape):
                return found
        return None


def _compile_watched(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> Any:
    """Compile a program, tell those who ask for it how its values are spread over devices, and let users' functions
    divide operations."""
    module = lowered.module
    text = module.text(locations=True)
    living: list[Any] = []
    if isinstance(lowered.device, Device):
        text = re.sub(r"(?m)^.*@@\d+@@.*\n", "", text)
        for _, told in module.inspections:
            told(lowered.device)
    for i, (_, told) in enumerate(module.inspections if not isinstance(lowered.device, Device) else ()):
        key, alive = backend().inspection(_ShardingObserver(next(iter(module.meshes)), told))
        living.append(alive)
        text = text.replace(f"@@{i}@@", "".join(f"\\{byte:02X}" for byte in key))
    partitions = []
    for i, partition in enumerate(module.partitions):
        name, divides_it = backend().partitioning(
            _PartitionCallback(next(iter(module.meshes)), partition), module.platform
        )
        partitions.append(divides_it)
        text = text.replace(f"@@partition {i}@@", name)
    try:
        return _compile(lowered, overrides, text=text)
    except CompilationError:
        failed = next((p.error for p in partitions if p.error is not None), None)
        if failed is None:
            raise
    raise failed


class _PartitionCallback:
    """Divides an operation as the compiler asks for it.

    Args:
      mesh: the mesh of the program.
      partition: see :data:`pullback.backends.hlo.module.Partition`.
    """

    def __init__(self, mesh: Any, partition: Any) -> None:
        self.mesh = mesh
        self.partition = partition

    def __call__(self, operands: list[Any], results: list[Any]) -> Any:
        return self.partition(self.mesh, list(map(self._named, operands)), list(map(self._named, results)))

    def _named(self, tiling: Any) -> NamedSharding:
        """The sharding for a tiling; every device has all of what no specification divides so."""
        found = None if tiling is None else sharding_of_tiles(self.mesh, *tiling)
        return found or NamedSharding(self.mesh, PartitionSpec())


class _ShardingObserver:
    """Tells a function how a value is spread.

    Args:
      mesh: the mesh of the program.
      told: takes a sharding.
    """

    def __init__(self, mesh: Any, told: Any) -> None:
        self.mesh = mesh
        self.told = told

    def __call__(self, tiling: Any) -> None:
        found = None if tiling is None else sharding_of_tiles(self.mesh, *tiling)
        self.told(found or NamedSharding(self.mesh, PartitionSpec()))


def _compile(
    lowered: Lowered, overrides: Sequence[tuple[str, Any]], whole: bool = True, text: str | None = None
) -> Any:
    module = lowered.module
    text = module.text(locations=True) if text is None else text
    if not whole:
        text = text.replace(f" {{{small_loops.ATTRIBUTES}}}", "")
    try:
        runtime.compiling(lowered.device.platform)
        start = time.perf_counter()
        with compile_progress.shown(_called(lowered.name), lowered.operations):
            made = backend().compile_text(text, lowered.device, overrides, module.callbacks, bool(module.partitions))
        compile_times.observe(lowered.compile_time, time.perf_counter() - start)
        return made
    except CompilationError as error:
        unknown = re.search(r"No such compile option: '(\w+)'", str(error))
        if unknown and options.OPTIONS.pop(unknown[1], None) is not None:
            return _compile(lowered, [(name, value) for name, value in overrides if name != unknown[1]], whole, text)
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
