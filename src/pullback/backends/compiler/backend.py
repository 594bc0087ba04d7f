"""The protocol :class:`Backend`, by which Pullback calls a compiler, and the backend in use.

The adapter of ``jaxlib``, :mod:`pullback.backends.compiler.client`, is a module whose functions implement it. Another
compiler is another module with these functions: programs reach it as StableHLO text, and everything above works
unchanged, except features that only ``jaxlib`` has: its profiler, its MLIR bindings and its names of LAPACK's routines.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pullback.core.runtime import runtime

if TYPE_CHECKING:
    import numpy as np

    from pullback.core.types import ShapedArray

ADAPTER = "pullback.backends.compiler.client"
"""The module that implements the protocol. It is imported at first use: arrays are computed eagerly without it."""

Device = Any
"""A :class:`pullback.backends.devices.devices.Device`, or for programs a ``DeviceAssignment``."""
Sharding = Any
"""A :class:`pullback.backends.devices.shardings.NamedSharding`."""
Buffer = Any
"""The memory of an array on a device: the adapter's own object, with a method ``is_ready()``."""


class Executable(Protocol):
    """A compiled program.

    Attributes:
      run: ``run(buffers)`` starts it, and returns the buffers of its results.
      execute, collect, handlers: the steps of ``run``, ``collect(execute(buffers), handlers)``, for the fast path of
        ``jit``; ``handlers`` has for each result the runtime's function that wraps it.
      loaded: the runtime's own object for the program.
      in_shardings, out_shardings: over several devices, the shardings of inputs and results.
    """

    in_shardings: list[Any]
    out_shardings: list[Any]
    device: Device
    loaded: Any
    run: Callable[[list[Buffer]], list[Buffer]]
    execute: Callable[[list[Buffer]], Any]
    collect: Callable[[Any, Any], list[Buffer]]
    handlers: Any

    def text(self) -> str:
        """The optimised program, in the compiler's own language."""

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of operations and memory traffic, by name."""

    def memory_analysis(self) -> Any:
        """The sizes in bytes of arguments, results and temporary values."""


class Service(Protocol):
    """The coordination service of several processes.

    Attributes:
      port: the port of the loopback interface on which it listens.
    """

    port: int

    def stop(self) -> None:
        """Stop the service."""


GRACE = 3.0
"""Seconds that a program over several processes may still take after one of them is known to be gone."""
SLICE = 1.0
"""Seconds that one call of the coordination service waits, before it is repeated."""


class Store(Protocol):
    """A key-value store that several processes share."""

    def put(self, key: str, value: bytes) -> None:
        """Set a key that has no value yet."""

    def get(self, key: str, process: int) -> bytes:
        """Wait until ``process`` has set a key, and return the value; ProcessLostError if that process is gone."""

    def delete(self, key: str) -> None:
        """Delete a key, and all keys that begin with it and a slash."""

    def close(self, reachable: bool) -> bool:
        """Close the connection; return whether the service confirmed it. It is contacted only if ``reachable``."""


@dataclass(frozen=True)
class Group:
    """Several processes that compute together.

    Attributes:
      process: the number of this process.
      processes: how many there are.
      port: the port of the loopback interface at which this process reaches the coordination service.
      host: this machine's address, for the other processes.
      seconds: how long to wait for the other processes.
      visible: the numbers of the machine's devices that this process uses; None for all.
      link: a :class:`pullback.backends.processes.links.Link`, which knows which processes are gone.
    """

    process: int
    processes: int
    port: int
    host: str
    seconds: float
    visible: tuple[int, ...] | None
    link: Any


class Backend(Protocol):
    """A compiler and the runtime of its programs."""

    # Devices

    def count(self, platform: str) -> int:
        """The number of devices of a platform; BackendError if the platform is unknown."""

    def device_ids(self, platform: str, process: int | None = None) -> list[int]:
        """The numbers of the devices of all processes, or of one process; BackendError if the platform is unknown."""

    def process_of(self, platform: str, number: int) -> int:
        """The number of the process that a device belongs to."""

    def bound(self, device: Device) -> Any:
        """The runtime's own object for a device; BackendError if the runtime does not have it."""

    def client(self, platform: str = "cpu") -> Any:
        """The runtime's client of a platform."""

    def device_kind(self, device: Device) -> str:
        """The vendor's name of a device's model."""

    def memory_stats(self, device: Device) -> dict[str, int] | None:
        """The use of a device's memory in bytes, or None where the platform does not count it."""

    # Buffers

    def put(self, value: Any, aval: ShapedArray, device: Device, copy: bool = False) -> Buffer:
        """Put a NumPy value on a device; with ``copy`` the caller may change the value afterwards."""

    def move(self, buffer: Buffer, device: Device) -> Buffer:
        """Copy a buffer to another device."""

    def copied(self, buffer: Buffer) -> Buffer:
        """A copy of a buffer on the same device."""

    def from_dlpack(self, capsule: Any, device: Device) -> np.ndarray[Any, Any] | None:
        """Read a DLPack capsule on ``device`` as a NumPy array; None if the runtime does not know its dtype."""

    def to_dlpack(self, value: np.ndarray[Any, Any], device: Device) -> Any:
        """Copy a NumPy array to a device, and return a DLPack capsule of the copy."""

    def put_shards(
        self, shards: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding
    ) -> Buffer:
        """An array over several devices, from a NumPy shard for each device of this process.

        The shards are in storage form: in the dtype that devices use for elements of ``dtype``.
        """

    def shards(self, buffer: Buffer) -> list[Buffer]:
        """The shards of a buffer over several devices: a buffer for each device of this process."""

    def shard_values(self, buffer: Buffer) -> list[np.ndarray[Any, Any]]:
        """The elements of each shard that this process holds, in the dtype in which devices store them."""

    def assembled(
        self, buffers: Sequence[Buffer], shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding
    ) -> Buffer:
        """A buffer over several devices, from its shards on each device of this process."""

    def device_of(self, buffer: Buffer) -> Device:
        """The device that holds a buffer."""

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Wait for the elements of a buffer, and return them as an array of ``dtype``."""

    def fetch_ahead(self, buffer: Buffer) -> None:
        """Start copying the elements of a buffer to the host."""

    def wait(self, buffer: Buffer) -> None:
        """Wait until the elements of a buffer are computed; AllocationError or ExecutionError if the program failed."""

    # Programs

    def compile_text(
        self,
        text: str,
        device: Device,
        overrides: Sequence[tuple[str, Any]] = (),
        callbacks: Sequence[Callable[..., Any]] = (),
        in_this_thread: bool = False,
    ) -> Any:
        """Compile StableHLO text for a device, or for the devices of a mesh; CompilationError if it is refused.

        Args:
          text: the program.
          device: the device, or the devices of a mesh.
          overrides: names and values of the compiler's options.
          callbacks: the Python functions that the program calls, by their index.
          in_this_thread: whether to compile in this thread, as programs with callbacks of :meth:`partitioning` require.
        """

    def executable(
        self,
        loaded: Any,
        device: Device,
        out_avals: Sequence[ShapedArray],
        calls_python: bool = False,
        shardings: Any = None,
    ) -> Executable:
        """The executable for a result of :meth:`compile_text` or :meth:`deserialize`.

        Args:
          loaded: that result, the runtime's object.
          device: the device, or the devices of a mesh, on which it runs.
          out_avals: the types of its results.
          calls_python: whether the program calls Python functions, so that each run waits for its end.
          shardings: over several devices, ``shardings.found(tilings)`` converts the compiler's tilings of inputs and
            results to shardings.
        """

    def hlo_text(self, text: str) -> str:
        """Translate StableHLO text to the compiler's own language, without optimisation."""

    def cost_analysis(self, text: str, device: Device) -> dict[str, float]:
        """The compiler's estimates of operations and memory traffic for StableHLO text, before optimisation."""

    def inspection(self, callback: Callable[[Any], None]) -> tuple[bytes, Any]:
        """Register a callback that receives the tiling (the division among devices) of a value in compilation.

        Returns:
          The bytes that refer to the callback in the program, and an object that must live until it is compiled.
        """

    def partitioning(self, divided: Callable[[list[Any], list[Any]], Any], platform: str) -> tuple[str, Any]:
        """Register a callback that partitions an operation over devices when the program is compiled.

        The callback takes the tilings (divisions among devices) of operands and of results. It returns a ``Divided``
        of ``hlo/module.py``: the program of each device, and the shardings of operands and results.

        Returns:
          The text that names the callback in the program's custom call of the target ``hlo.PARTITIONED``; and an
          object that must live until the program is compiled, whose ``error`` is the exception of the callback.
        """

    def tree_registry(self) -> Any:
        """A registry of pytree nodes, with ``register_node(class, flatten, unflatten)`` and ``flatten(tree)``, which
        returns the leaves and an object with ``unflatten(leaves)``."""

    # Programs for other processes

    def to_portable(self, text: str) -> bytes:
        """Serialise StableHLO text for other releases of the compiler; CompilationError if that is impossible."""

    def from_portable(self, data: bytes) -> Any:
        """Read bytes of :meth:`to_portable`: an object whose ``str`` is StableHLO; CompilationError if invalid."""

    def functions_of(
        self, data: bytes, entry: str, operands: Sequence[str], results: Sequence[str], unique: Callable[[str], str]
    ) -> tuple[str, list[list[str]], dict[str, tuple[list[int], list[str]]]]:
        """Read the function ``entry`` and its callees from bytes of :meth:`to_portable`, renamed by ``unique``.

        The types of ``operands`` replace the function's own, which may be symbolic; ``results`` are its declared types.

        Returns:
          Its new name, the lines of each function, and the sizes and names of the axes of each mesh, by mesh name.
        """

    def hlo_sharding(self, sharding: Sharding, ndim: int) -> Any:
        """The runtime's form of a sharding, for arrays of rank ``ndim``."""

    # Processes

    def serve(self, processes: int, seconds: float) -> Service:
        """Start the coordination service, on the loopback; it waits ``seconds`` for all ``processes`` to join."""

    def join(self, group: Group) -> Store:
        """Connect this process to a group: later calls of :meth:`client` list the devices of all its processes."""

    # The cache on disk

    def serialize(self, loaded: Any, device: Device) -> bytes:
        """Serialise a compiled program to bytes; RuntimeError if the platform does not support it."""

    def deserialize(self, data: bytes, device: Device) -> Any:
        """Load the compiled program from bytes of :meth:`serialize`."""

    def options_as_bytes(self, overrides: Sequence[tuple[str, Any]]) -> bytes:
        """All options of a compilation with some overrides, serialised for the cache key."""

    def version(self, device: Device) -> str:
        """The releases of the compiler and of the runtime of a device."""


@functools.cache
def backend() -> Backend:
    """Import and return the adapter in use."""
    adapter: Any = importlib.import_module(ADAPTER)
    runtime.fetch = adapter.fetch  # type: ignore[method-assign]  # of whatever adapter is in use
    return adapter  # type: ignore[no-any-return]
