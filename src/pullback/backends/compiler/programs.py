"""Programs: jaxprs that are lowered and compiled for a device, or for the devices of a mesh."""

from __future__ import annotations

import functools
import hashlib
import linecache
import math
import re
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.compiler import compile_progress, compile_times, options, small_loops
from pullback.backends.compiler.backend import Executable, backend
from pullback.backends.devices import memories
from pullback.backends.devices.buffers import buffer_at, buffers_of, buffers_on, from_buffer, resident
from pullback.backends.devices.devices import Device, Devices
from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import (
    UNCONSTRAINED,
    NamedSharding,
    PartitionSpec,
    between,
    divides,
    of_types,
    sharding_of_tiles,
)
from pullback.backends.hlo.builder import _NONE, Aliases, tensor_type
from pullback.backends.hlo.emit import emit_module
from pullback.backends.hlo.module import TAKEN, Module, captured_shardings
from pullback.backends.processes import forks
from pullback.core import monitoring
from pullback.core.array import ArrayImpl, Signature, signature, signature_of
from pullback.core.config import config
from pullback.core.errors import CompilationError
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from pullback.core.locks import lock, renewed
from pullback.core.runtime import provides, runtime
from pullback.core.types import ShapedArray

# Programs ------------------------------------------------------------------------------------------------------------


class Lowered:
    """A program as StableHLO text, for a device or for the devices of a mesh.

    Args:
      closed: the program.
      name: its name.
      device: the device, or the devices of a mesh, on which the program is to run.
      aliases: the index of each donated input, and the index of the result that reuses its memory.
      asked_for: whether the caller chose the device; otherwise operations of the program that name a mesh, and arrays
        that the program captured, may choose another.
      in_placements: the device or sharding of each input, None where the compiler may decide; empty if no input has
        one.
      out_placements: the device or sharding of each result, in the same form.
      mesh: the mesh that expresses shardings chosen by the compiler; by default the first mesh that the program names.

    Attributes:
      module: the StableHLO module.
      memories: the kind of memory of each input and of each result; None if all are in the devices' own.
      captured: the captured arrays, which the program takes after its inputs.
      device: the device, or the devices of a mesh, on which the program runs.
      asked_for: whether the user, or an operation, chose the device, so that results stay there.
      in_shardings, out_shardings: the placements of inputs and results that are shardings over several devices, None
        for others; empty if there are none.

    Raises:
      IncompatibleDevicesError: operands and operations are on different devices (a RuntimeError and ValueError).
    """

    __slots__ = (
        "aliases", "asked_for", "captured", "closed", "device", "in_shardings", "memories", "module", "name",
        "out_shardings",
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
        self.out_shardings = _shardings(of_types(closed.out_avals, in_placements, out_placements))
        self.memories = memories.kinds_of_program(closed.jaxpr, in_placements, out_placements, device.target)
        if self.memories is not None and device.target != "cpu":  # a result reuses memory of its own kind
            inputs, results = self.memories
            self.aliases = aliases = {i: out for i, out in aliases.items() if inputs[i] == results[out]}
        required = device if asked_for else None
        shardings = self.in_shardings, self.out_shardings
        with monitoring.timed(monitoring.LOWER, fun_name=_called(name)):
            module, main = emit_module(
                closed, name, device.target, aliases, required, *shardings, mesh, memories=self.memories
            )
        self.device: Any = module.devices or device
        self.asked_for = module.devices is not None
        self.module: Module = module
        self.captured = main.captured

    @property
    def operations(self) -> int:
        """The number of lines of the text, which is about the number of operations."""
        return sum(len(function.lines) for function in self.module.functions)

    @property
    def compile_time(self) -> float:
        """The estimate of :mod:`compile_times` for compiling the program, in seconds."""
        return compile_times.by_table(line for function in self.module.functions for line in function.lines)

    def compile(self, overrides: Sequence[tuple[str, Any]] = ()) -> Program:
        """Compile the program, or find an equal executable in memory or on disk."""
        if isinstance(self.device, Device):
            return Program(self, self._executable(overrides))
        executable = self._executable(overrides)
        if None in (*executable.in_shardings, *executable.out_shardings):  # the compiler has divided an axis of a mesh
            replicated = NamedSharding(next(iter(self.module.meshes)), PartitionSpec())
            again = Lowered(
                self.closed, self.name, self.device, self.aliases,
                in_placements=[s or replicated for s in executable.in_shardings[: len(self.closed.in_avals)]],
                out_placements=[s or replicated for s in executable.out_shardings],
            )  # fmt: skip
            return Program(again, again._executable(overrides))
        return Program(self, executable)

    def _executable(self, overrides: Sequence[tuple[str, Any]]) -> Executable:
        with monitoring.timed(monitoring.COMPILE, fun_name=_called(self.name)):
            return _executable(self, overrides)


def _called(name: str) -> str:
    """The name of a program in JAX's form, ``jit(f)``, for monitoring listeners and messages."""
    return f"jit({name.removeprefix('jit_')})"


def _shardings(placements: Sequence[Any]) -> list[NamedSharding | None]:
    """Replace each placement on one device with None; return an empty list if all placements are replaced."""
    found = [placement if isinstance(placement, NamedSharding) else None for placement in placements]
    return found if any(found) else []


def reduced_as(shardings: Sequence[NamedSharding], requested: Sequence[NamedSharding | None]) -> list[NamedSharding]:
    """Return shardings that are reduced over the axes over which those that were requested are."""
    wanted = [frozenset() if s is None else s.spec.reduced for s in requested] or [frozenset()] * len(shardings)
    return [
        s if s.spec.reduced == axes else s.update(spec=s.spec.update(reduced=axes))
        for s, axes in zip(shardings, wanted, strict=True)
    ]


class Program:
    """A compiled program, ready to run on arrays.

    Attributes:
      device: the device, or the devices of a mesh, on which the program runs.
      run: ``run(buffers)`` starts the program on the buffers of its inputs and captured arrays.
      captured: the captured arrays, on the program's device. Each call looks up their buffers, and raises
        ``DeletedArrayError`` if one was deleted or donated meanwhile.
      in_shardings: the sharding of each input over several devices; None if the program runs on one device.
      out_shardings: the same for each result, in a program over several devices.
      out_signatures: the signatures of the program's results; they name the device only if the caller or an
        operation chose it.
    """

    __slots__ = (
        "captured",
        "device",
        "executable",
        "in_shardings",
        "lowered",
        "out_shardings",
        "out_signatures",
        "run",
    )

    def __init__(self, lowered: Lowered, executable: Executable) -> None:
        self.lowered = lowered
        self.executable = executable
        self.device = executable.device
        self.run = executable.run
        avals = lowered.closed.out_avals
        several = not isinstance(self.device, Device)
        count = len(lowered.closed.in_avals)
        self.in_shardings: list[Any] | None = executable.in_shardings[:count] if several else None
        self.out_shardings = executable.out_shardings
        if several:  # programs that differ in reduced axes only share an executable, for the compiler knows none
            self.in_shardings = reduced_as(executable.in_shardings[:count], lowered.in_shardings)
            self.out_shardings = reduced_as(self.out_shardings, lowered.out_shardings)
        if (
            self.in_shardings is not None and lowered.memories is not None
        ):  # the executable knows none: programs share it
            inputs, results = lowered.memories
            self.in_shardings = list(map(memories.in_memory, self.in_shardings, inputs))
            self.out_shardings = list(map(memories.in_memory, self.out_shardings, results))
        if lowered.captured:
            placements = executable.in_shardings[count:] if several else [self.device] * len(lowered.captured)
            self.captured = [resident(x, placement) for x, placement in zip(lowered.captured, placements, strict=True)]
        else:
            self.captured = []
        self.out_signatures = [signature(a.shape, a.dtype, bool(a.weak_type)) for a in avals]
        if lowered.asked_for and (several or not self.device.is_host):
            self.out_signatures = self.signatures()
        elif not several and lowered.memories is not None and self.device.platform != "cpu":
            pairs = zip(self.out_signatures, self.signatures(), lowered.memories[1], strict=True)
            self.out_signatures = [sig if kind == memories.DEVICE else there for sig, there, kind in pairs]

    def buffers(self, args: Sequence[ArrayImpl]) -> list[Any]:
        """The buffers of the arguments and of the captured arrays, on the program's device."""
        if self.in_shardings is None:
            return buffers_on(self.device, args, self.captured)
        return [*map(buffer_at, args, self.in_shardings), *map(buffers_of, self.captured)]

    def __call__(self, args: Sequence[ArrayImpl], stay: bool = False) -> list[ArrayImpl]:
        """Run the program on arrays.

        Args:
          args: the arrays.
          stay: whether to commit the results to the program's device even if nobody chose it.
        """
        forks.check(f"running the compiled program {self.lowered.module.name}")
        outs = self.run(self.buffers(args))
        return list(map(from_buffer, outs, self.signatures() if stay else self.out_signatures))

    def signatures(self) -> list[Signature]:
        """The signatures of the program's results, as arrays that are committed to the program's device."""
        avals = [k.aval for k in self.out_signatures]
        placements: Sequence[Any] = self.out_shardings
        if self.in_shardings is None:
            kinds = None if self.device.platform == "cpu" else self.lowered.memories
            placements = [self.device] * len(avals)
            if kinds is not None:
                placements = [memories.on_device(self.device, kind) for kind in kinds[1]]
        return [signature(a.shape, a.dtype, a.weak_type, p) for a, p in zip(avals, placements, strict=True)]


_reshardings: dict[Any, Program] = {}
MOST_RESHARDINGS = 256
"""How many resharding programs are cached; a new one displaces the oldest."""


@provides
def reshard(x: ArrayImpl, sharding: NamedSharding) -> Any:
    """Copy an array to another sharding over the same devices, and return the buffer of the copy.

    A compiled program that returns its input does this.
    """
    kind = signature_of(x)
    way = between(kind.placement, sharding)
    if way is not None:
        aval = kind.aval
        x = from_buffer(reshard(x, way), signature(aval.shape, aval.dtype, bool(aval.weak_type), way))
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


@provides
def taken(value: np.ndarray[Any, Any], device: Device) -> Any:
    """Move an array to memory of the runtime, which a program may take over, on the CPU; return the buffer.

    The array's own memory is given back to the system while it is read, and its elements are lost. So nobody else may
    refer to it. The dtype is one that devices store as it is.
    """
    aval = ShapedArray(value.shape, value.dtype)
    return _taking(aval, device).run([backend().put(value, aval, device)])[0]


@functools.lru_cache(maxsize=64)
def _taking(aval: ShapedArray, device: Device) -> Executable:
    from pullback.backends.compiler import disk_cache

    kind, size = tensor_type(aval.shape, aval.dtype), math.prod(aval.shape) * aval.dtype.itemsize
    text = f"""module @taken {{
  func.func public @main(%x: {kind}) -> {kind} {{
    %size = stablehlo.constant dense<{size}> : tensor<ui64>
    %y = stablehlo.custom_call @{TAKEN}(%x, %size) {{api_version = 4 : i32, backend_config = {{}}}}
      : ({kind}, tensor<ui64>) -> {kind}
    return %y : {kind}
  }}
}}"""
    selected = options.selected(device.target, text)
    loaded, _ = disk_cache.load_or_compile(
        text, device, selected, lambda: backend().compile_text(text, device, selected)
    )
    return backend().executable(loaded, device, [aval])


_executables: weakref.WeakValueDictionary[Any, Executable] = weakref.WeakValueDictionary()
_compiling: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
"""A lock for each program in compilation, on which threads that need the same program wait."""
# Reentrant: a user's signal handler, which may compile, can run while the lock is held.
_guard = lock(globals(), "_guard", reentrant=True)
renewed(globals(), "_compiling", weakref.WeakValueDictionary)


def _lock_of(key: Any) -> Any:
    """The lock for compiling the program of the given key. It is forgotten when no thread refers to it any more."""
    with _guard:
        return _compiling.setdefault(key, threading.RLock())


def _key(lowered: Lowered, text: str, selected: Sequence[tuple[str, Any]]) -> tuple[Any, ...]:
    """Return the key of a program in memory: a digest of its text, the compiler's options, the device, the meshes."""
    return hashlib.sha256(text.encode()).digest(), tuple(selected), lowered.device, tuple(lowered.module.meshes)


def is_cached(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> bool:
    """Whether an equal executable is in memory or on disk."""
    from pullback.backends.compiler import disk_cache

    text = lowered.module.text(scopes=True)
    selected = options.selected(lowered.device.target, text, overrides)
    return _key(lowered, text, selected) in _executables or disk_cache.has(text, lowered.device, selected)


def _executable(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> Executable:
    """Find the executable for a program in memory or on disk, or compile it."""
    from pullback.backends.compiler import disk_cache

    device = lowered.device
    text = lowered.module.text(scopes=True)  # scopes appear in profiles, so they are part of the key
    selected = options.selected(device.target, text, overrides)
    out_avals = lowered.closed.out_avals
    shardings = None if isinstance(device, Device) else _Shardings(lowered)
    module = lowered.module

    def made_of(loaded: Any) -> Executable:
        return backend().executable(
            loaded, device, out_avals, module.callbacks, shardings, module.may_not_end, module.asks
        )

    if module.inspections or module.partitions:
        return made_of(_compile_with_callbacks(lowered, selected))
    key, calls = _key(lowered, text, selected), module.callbacks
    if not (isinstance(device, Device) or device.is_local or calls):
        from pullback.backends.processes import distributed  # with asyncio, whose import takes 40 ms

        of = sorted({d.process_index for d in device.devices})
        distributed.agree(lowered.module.name, hashlib.sha256(key[0] + repr(device.id).encode()).digest(), of)
    found = _executables.get(key)
    if found is not None:
        return found
    with _lock_of(key):
        found = _executables.get(key)
        if found is None:
            start = time.perf_counter()
            missing = disk_cache.why_missing(text, device, selected) if config.log_compiles else None
            loaded, where = disk_cache.load_or_compile(
                text, device, selected, lambda: _compile(lowered, selected), calls
            )
            found = made_of(loaded)
            if not calls:  # an executable has its own Python functions; one on disk gets those of whoever loads it
                _executables[key] = found
            if config.log_compiles:
                _log(where, lowered, start, missing)
    return found


def compiled_bytes(lowered: Lowered) -> bytes:
    """Compile a program without Python functions, and serialise its executable.

    It is compiled in any case: the runtime writes executables incompletely that it has read itself.
    """
    text = lowered.module.text(scopes=True)
    loaded = backend().compile_text(text, lowered.device, options.selected(lowered.device.target, text))
    return backend().serialize(loaded, lowered.device)


def adopt(lowered: Lowered, data: bytes) -> Executable:
    """Load the executable of a program that another process has serialised; return it.

    As long as the executable is referred to, ``lowered.compile()`` finds it.

    Args:
      lowered: the program, without Python functions, for one device.
      data: bytes of the backend's ``serialize``.
    """
    text = lowered.module.text(scopes=True)
    key = _key(lowered, text, options.selected(lowered.device.target, text))
    found = _executables.get(key)
    if found is None:
        loaded = backend().deserialize(data, lowered.device)
        found = _executables[key] = backend().executable(loaded, lowered.device, lowered.closed.out_avals)
    return found


def _log(where: str, lowered: Lowered, start: float, missing: str | None) -> None:
    """Log that a program was loaded or compiled, and how long it took.

    Args:
      where: ``"loaded"`` or ``"compiled"``.
      lowered: the program.
      start: the time at which loading or compiling began, by ``time.perf_counter``.
      missing: the reason why the cache did not have the program; None if it had.
    """
    took, why = time.perf_counter() - start, "" if missing is None else f": {missing}"
    import logging

    logging.getLogger("pullback").warning(
        "%s %s in %.3f s, about %d operations%s", where, lowered.module.name, took, lowered.operations, why
    )


class _Shardings:
    """Converts tilings, the compiler's form of shardings, to shardings over the meshes of a program.

    A tiling does not say which axes of size 1 divide an array: a result that is divided like an input of its rank has
    the sharding of that input, as in JAX.
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
        self.requested_in = [*inputs, *captured_shardings(lowered.captured, self.mesh)]
        self.requested_out = lowered.out_shardings or [None] * len(self.out_shapes)

    def found(self, tilings: Any) -> tuple[list[Any], list[Any]]:
        """Convert the tilings of inputs and of results to shardings. A sharding that the caller requested stays.

        Args:
          tilings: a pair: the tilings of the inputs, and of the results. A tiling is None if every device has all
            elements; otherwise it is a pair: the number of shards along each axis, and for each device the index of its
            shard along each axis.

        Returns:
          The shardings of the inputs, and of the results; None for a tiling that no partition specification expresses.
        """
        requests = (self.requested_in, self.in_shapes), (self.requested_out, self.out_shapes)
        return tuple(  # type: ignore[return-value]
            [
                self._one(*each)
                for each in zip(requested, shapes, (tiles or [None] * len(shapes))[: len(shapes)], strict=True)
            ]
            for (requested, shapes), tiles in zip(requests, tilings, strict=True)
        )

    def _one(self, requested: NamedSharding | None, shape: Any, tiling: Any) -> NamedSharding | None:
        if requested is not None and UNCONSTRAINED not in requested.spec.partitions:
            return memories.in_memory(requested, memories.DEVICE)
        if tiling is None:
            return self._as_an_input(NamedSharding(self.mesh, PartitionSpec()), len(shape))
        for mesh in self.meshes:
            found = sharding_of_tiles(mesh, *tiling)
            if found is not None and divides(found, shape):
                return self._as_an_input(found, len(shape))
        return None

    def _as_an_input(self, found: NamedSharding, rank: int) -> NamedSharding:
        """Return the sharding of the first input of this rank that is divided as ``found`` says; else ``found``."""
        for sharding, shape in zip(self.requested_in, self.in_shapes, strict=False):
            if (
                sharding is not None and len(shape) == rank and sharding != found
                and UNCONSTRAINED not in sharding.spec.partitions and sharding.is_equivalent_to(found, rank)
            ):  # fmt: skip
                return sharding
        return found


def _compile_with_callbacks(lowered: Lowered, overrides: Sequence[tuple[str, Any]]) -> Any:
    """Compile a program with ``inspect_array_sharding`` or custom partitioning. The compiler calls their callbacks."""
    module = lowered.module
    text = module.text(locations=True)
    living: list[Any] = []
    if isinstance(lowered.device, Device):
        text = re.sub(r"(?m)^.*@@\d+@@.*\n", "", text)
        for _, callback in module.inspections:
            callback(lowered.device)
    for i, (_, callback) in enumerate(module.inspections if not isinstance(lowered.device, Device) else ()):
        key, alive = backend().inspection(_ShardingObserver(next(iter(module.meshes)), callback))
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
    """The compiler's callback for custom partitioning: it converts tilings to shardings, and calls ``partition``.

    Args:
      mesh: the mesh of the program.
      partition: ``partition(mesh, operand_shardings, result_shardings)``, which calls the user's rule and returns a
        ``Divided``: the program of each device, and the shardings of operands and results.
    """

    def __init__(self, mesh: Any, partition: Any) -> None:
        self.mesh = mesh
        self.partition = partition

    def __call__(self, operands: list[Any], results: list[Any]) -> Any:
        return self.partition(self.mesh, list(map(self._named, operands)), list(map(self._named, results)))

    def _named(self, tiling: Any) -> NamedSharding:
        """Convert a tiling (the compiler's form of a sharding) to a sharding; replicated if no spec expresses it."""
        found = None if tiling is None else sharding_of_tiles(self.mesh, *tiling)
        return found or NamedSharding(self.mesh, PartitionSpec())


class _ShardingObserver:
    """The compiler's callback for ``inspect_array_sharding``: it converts a tiling to a sharding for ``callback``.

    Args:
      mesh: the mesh of the program.
      callback: the user's function, which takes a sharding.
    """

    def __init__(self, mesh: Any, callback: Any) -> None:
        self.mesh = mesh
        self.callback = callback

    def __call__(self, tiling: Any) -> None:
        found = None if tiling is None else sharding_of_tiles(self.mesh, *tiling)
        self.callback(found or NamedSharding(self.mesh, PartitionSpec()))


def _compile(
    lowered: Lowered, overrides: Sequence[tuple[str, Any]], one_function: bool = True, text: str | None = None
) -> Any:
    """Compile a program, and return the runtime's own object for it.

    Args:
      lowered: the program.
      overrides: names and values of the compiler's options.
      one_function: False to ignore the attributes that request one machine function for a loop over small arrays.
      text: the text to compile; by default that of ``lowered``, with locations.

    Raises:
      CompilationError: the compiler refuses the program; the message quotes the operation and the user's line.
    """
    module = lowered.module
    text = module.text(locations=True) if text is None else text
    if not one_function:
        text = text.replace(f" {{{small_loops.ATTRIBUTES}}}", "")
    try:
        runtime.compiling(lowered.device.target)
        start = time.perf_counter()
        with compile_progress.shown(_called(lowered.name), lowered.operations):
            made = backend().compile_text(text, lowered.device, overrides, module.callbacks, bool(module.partitions))
        compile_times.observe(lowered.compile_time, time.perf_counter() - start)
        return made
    except CompilationError as error:
        unknown = re.search(r"No such compile option: '(\w+)'", str(error))
        if unknown and options.OPTIONS.pop(unknown[1], None) is not None:
            known = [(name, value) for name, value in overrides if name != unknown[1]]
            return _compile(lowered, known, one_function, text)
        if one_function and small_loops.ATTRIBUTES in text:  # perhaps it cannot be compiled to one function
            return _compile(lowered, overrides, one_function=False)
        raise CompilationError(_refusal(str(error), module, text)) from None


def _refusal(message: str, module: Module, text: str) -> str:
    """The error message for a program that the compiler refused.

    Args:
      message: the compiler's message. The result contains it, and adds the operation and the user's line if known.
      module: the program.
      text: the text that was compiled.
    """
    found = re.match(_DIAGNOSTIC, message)
    if found is None:
        return f"the compiler refuses the program {module.name}: {message}"
    file, line, said = found[1], int(found[2]), found[3]
    legend = {number: (name, where, int(at)) for number, name, where, at in re.findall(_LEGEND, text)}
    if file == "-":  # a line in the text of the program
        written = text.splitlines()[line - 1].strip()
        number = written.rpartition(" loc(#loc")[2].rstrip(")")
        name, file, line = legend.get(number, ("", "", 0))
        said = f"{said}\n  in: {written}"
    else:
        name = next((name for name, where, at in legend.values() if (where, at) == (file, line)), "")
    operation = f"the operation {name}" if name else "an operation"
    source = f'\n  File "{file}", line {line}\n    {linecache.getline(file, line).strip()}' if file else ""
    return f"the compiler refuses {operation} of the program {module.name}:{source}\n{said}"


_DIAGNOSTIC = r"(?:[A-Z_]+: )?(.*?):(\d+):\d+: error: (.*)"
_LEGEND = r'(?m)^#loc(\d+) = loc\("(.*)"\("(.*)":(\d+):0\)\)$'
