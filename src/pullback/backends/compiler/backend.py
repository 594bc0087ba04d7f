"""The protocol :class:`Backend`, by which Pullback calls a compiler, and the backend in use.

The adapter of ``jaxlib``, :mod:`pullback.backends.compiler.client`, is a module whose functions implement it. Another
compiler is another module with these functions: programs reach it as StableHLO text, and everything above works
unchanged, except features that only ``jaxlib`` has: its profiler, its MLIR bindings and its names of LAPACK's routines.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pullback.core.runtime import runtime

if TYPE_CHECKING:
    import numpy as np

    from pullback.backends.compiler.foreign_programs import Operation
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
      in_shardings, out_shardings: the shardings of the inputs and of the results; empty for a program on one device.
      device: the device, or the devices of a mesh, on which the program runs.
      loaded: the runtime's own object for the program.
      run: ``run(buffers)`` starts the program, and returns the buffers of its results.
      execute: ``execute(buffers)`` starts the program, and returns the runtime's results. The fast path of ``jit``
        calls ``execute`` and ``collect`` instead of ``run``.
      collect: ``collect(results, handlers)`` converts the runtime's results to buffers.
      handlers: the functions of the runtime that ``collect`` applies, one for each result.
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
    """The service by which several processes find each other and exchange values.

    Attributes:
      port: the port of the loopback interface on which the service listens.
    """

    port: int

    def stop(self, client_ended: bool) -> None:
        """Stop the service, or leave it to the end of the process if this process's client has not ended."""

    def forget(self) -> None:
        """Never free the service, in a forked child: its end would be told on the connections of the parent."""


GRACE = 3.0
"""Seconds that a program over several processes may still take after one of them is known to be gone."""
SLICE = 1.0
"""Seconds that one call of the coordination service waits, before it is repeated."""


class Store(Protocol):
    """A key-value store that several processes share."""

    def put(self, key: str, value: bytes) -> None:
        """Store ``value`` under ``key``, which has no value yet."""

    def get(self, key: str, of: Collection[int]) -> bytes:
        """Wait until ``key`` is set, and return the value; ProcessLostError if one of the processes ``of`` is gone."""

    def delete(self, key: str) -> None:
        """Delete ``key``, and all keys that begin with ``key`` and a slash."""

    def close(self, reachable: bool) -> bool:
        """Close the connection to the coordination service.

        Args:
          reachable: whether the service can be reached. If not, it is not contacted.

        Returns:
          Whether the service confirmed that the connection is closed.
        """

    def forget(self) -> None:
        """Never free the connection, in a forked child, as with ``Service.forget``."""


@dataclass(frozen=True)
class Group:
    """Several processes that compute together.

    Attributes:
      process: the number of this process.
      processes: the number of processes.
      port: the port of the loopback interface at which this process reaches the coordination service.
      host: the address by which the other processes reach this machine.
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
        """The numbers of the devices of ``process``, or of all processes if it is None.

        Raises:
          BackendError: the platform is unknown.
        """

    def process_of(self, platform: str, number: int) -> int:
        """The number of the process that a device belongs to."""

    def bound(self, device: Device) -> Any:
        """The runtime's own object for a device; BackendError if the runtime does not have the device."""

    def client(self, platform: str = "cpu") -> Any:
        """The runtime's client of a platform."""

    def device_kind(self, device: Device) -> str:
        """The vendor's name of a device's model."""

    def memory_kinds(self, device: Device) -> tuple[str, ...]:
        """The kinds of memory that a device can address; the first is its own."""

    def memory_stats(self, device: Device) -> dict[str, int] | None:
        """The use of a device's memory in bytes, or None where the platform does not count it."""

    # Buffers

    def put(self, value: Any, aval: ShapedArray, device: Device, copy: bool = False) -> Buffer:
        """Put a NumPy value on a device, and return the buffer.

        Args:
          value: the elements.
          aval: the type of the elements.
          device: the target.
          copy: whether to copy the value, so that the caller may change it afterwards; otherwise the buffer may share
            the value's memory.
        """

    def to_device(
        self, aval: ShapedArray, device: Device, copy: bool
    ) -> Callable[[np.ndarray[Any, Any] | complex], Buffer]:
        """Return a function that puts NumPy arrays of one type on a device, for programs to read.

        Args:
          aval: the type, of a dtype that devices store as it is.
          device: the target.
          copy: whether to copy the elements, as by :func:`put`.
        """

    def move(self, buffer: Buffer, device: Device) -> Buffer:
        """Copy a buffer to another device."""

    def copied(self, buffer: Buffer) -> Buffer:
        """A copy of a buffer on the same device."""

    def from_dlpack(self, capsule: Any, device: Device) -> np.ndarray[Any, Any] | None:
        """Read a DLPack capsule on ``device`` as a NumPy array; None if the runtime does not know its dtype."""

    def stream_of(self, device: Device) -> int | None:
        """The stream of a GPU on which the runtime waits for other libraries; None for a device without streams."""

    def shared_from_dlpack(self, capsule: Any, device: Device, stream: int | None, kind: int) -> Buffer:
        """Make a buffer of a DLPack capsule on ``device``, which shares its memory.

        Args:
          capsule: the capsule.
          device: the device that holds the elements.
          stream: the stream on which the capsule's library has ordered its work.
          kind: DLPack's type of the device.
        """

    def shared_to_dlpack(self, buffer: Buffer, stream: int | None) -> Any:
        """Return a DLPack capsule that shares the memory of a buffer; ``stream`` waits until it is computed."""

    def local_hardware_id(self, device: Device) -> int:
        """The number of a device among those of its machine."""

    def type_of(self, buffer: Buffer) -> ShapedArray:
        """The shape of a buffer and the dtype of its elements, as devices store them."""

    def to_dlpack(self, value: np.ndarray[Any, Any], device: Device) -> Any:
        """Copy a NumPy array to a device, and return a DLPack capsule of the copy."""

    def put_shards(
        self, shards: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding
    ) -> Buffer:
        """Put a NumPy shard on each device of this process, and return the whole array over several devices.

        Args:
          shards: a shard for each device of this process, in the dtype in which devices store elements of ``dtype``.
          shape, dtype: of the whole array.
          sharding: how the array is divided among the devices.
        """

    def shards(self, buffer: Buffer) -> list[Buffer]:
        """The shards of a buffer over several devices: a buffer for each device of this process."""

    def shard_values(self, buffer: Buffer) -> list[np.ndarray[Any, Any]]:
        """The elements of each shard of a buffer that this process holds, in the dtype in which devices store them."""

    def assembled(
        self, buffers: Sequence[Buffer], shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding
    ) -> Buffer:
        """Make a buffer over several devices from its shards.

        Args:
          buffers: the shard on each device of this process.
          shape, dtype: of the whole array.
          sharding: how the array is divided among the devices.
        """

    def device_of(self, buffer: Buffer) -> Device:
        """The device that holds a buffer."""

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Wait for the elements of a buffer, and return them as an array of ``dtype``."""

    def fetch_ahead(self, buffer: Buffer) -> None:
        """Start copying the elements of a buffer to the host."""

    def wait(self, buffer: Buffer) -> None:
        """Wait until a buffer is computed.

        Raises:
          AllocationError, ExecutionError: the program that computes the buffer failed.
        """

    # Programs

    def compile_text(
        self,
        text: str,
        device: Device,
        overrides: Sequence[tuple[str, Any]] = (),
        callbacks: Sequence[Callable[..., Any]] = (),
        in_this_thread: bool = False,
    ) -> Any:
        """Compile StableHLO text; raises CompilationError if the compiler refuses the program.

        Args:
          text: the program.
          device: the device, or the devices of a mesh, on which the program will run.
          overrides: names and values of the compiler's options.
          callbacks: the Python functions that the program calls; it refers to each by the index in this sequence.
          in_this_thread: whether to compile in this thread, as programs with callbacks of :meth:`partitioning` require.

        Returns:
          The runtime's own object for the compiled program.
        """

    def executable(
        self,
        loaded: Any,
        device: Device,
        out_avals: Sequence[ShapedArray],
        functions: Sequence[Callable[..., Any]] = (),
        shardings: Any = None,
        may_not_end: bool = False,
        asks: bool = False,
    ) -> Executable:
        """Make an :class:`Executable` of the runtime's object for a compiled program.

        Args:
          loaded: the runtime's object, a result of :meth:`compile_text` or :meth:`deserialize`.
          device: the device, or the devices of a mesh, on which the program runs.
          out_avals: the types of the program's results.
          functions: the Python functions that the program calls. If there are any, each run waits for its end.
          shardings: for a program over several devices, an object whose ``found(tilings)`` converts the compiler's
            tilings of inputs and results to shardings; otherwise None.
          may_not_end: whether the program has a loop of an unknown number of steps. Signal handlers run meanwhile.
          asks: whether such loops ask whether they are to go on.
        """

    def hlo_text(self, text: str) -> str:
        """Translate StableHLO text to the compiler's own language, without optimisation."""

    def cost_analysis(self, text: str, device: Device) -> dict[str, float]:
        """The compiler's estimates of operations and memory traffic for StableHLO text, before optimisation."""

    def inspection(self, callback: Callable[[Any], None]) -> tuple[bytes, Any]:
        """Register a callback that receives the tiling of a value (its division among devices) during compilation.

        Returns:
          The bytes by which the program refers to the callback, and an object to keep alive until compilation ends.
        """

    def partitioning(self, divided: Callable[[list[Any], list[Any]], Any], platform: str) -> tuple[str, Any]:
        """Register a callback that partitions an operation over devices when the program is compiled.

        Args:
          divided: the callback. It takes the tilings (divisions among devices) of operands and of results, and returns
            a ``Divided`` of ``hlo/module.py``: the program of each device, and the shardings of operands and results.
          platform: the platform of the program.

        Returns:
          The text by which the program's custom call of the target ``hlo.PARTITIONED`` names the callback; and an
          object that must live until the program is compiled. Its ``error`` is the exception that the callback raised.
        """

    def tree_registry(self) -> Any:
        """Make a registry of classes of pytree nodes.

        Its method ``register_node(class, flatten, unflatten)`` adds a class. Its method ``flatten(tree)`` returns the
        leaves of a tree, and an object whose ``unflatten(leaves)`` restores the tree.
        """

    # Programs for other processes

    def to_portable(self, text: str) -> bytes:
        """Serialise StableHLO text for other releases of the compiler; CompilationError if that is impossible."""

    def from_portable(self, data: bytes) -> Any:
        """Read bytes of :meth:`to_portable`, and return an object whose ``str`` is StableHLO text.

        Raises:
          CompilationError: the bytes are invalid.
        """

    def functions_of(
        self,
        data: bytes,
        entry: str,
        operands: Sequence[str],
        results: Sequence[tuple[str, str]],
        unique: Callable[[str], str],
        check: Callable[[dict[str, list[Operation]]], None],
    ) -> tuple[str, list[list[str]], dict[str, tuple[list[int], list[str]]]]:
        """Read a function, and the functions that it calls, from bytes of :meth:`to_portable`.

        Args:
          data: the bytes.
          entry: the name of the function.
          operands: the types of the operands. They replace the function's own types, which may be symbolic.
          results: for each result, the type that the function declares and the type for these operands.
          unique: takes the name of a function, and returns its new name.
          check: raises for operations that the program may not have; called before anything else is done with it.

        Returns:
          The new name of ``entry``, the lines of each function, and for each mesh its name, sizes and axis names.
        """

    def hlo_sharding(self, sharding: Sharding, ndim: int) -> Any:
        """Convert a sharding to the runtime's form, for arrays of rank ``ndim``."""

    # Processes

    def serve(self, processes: int) -> Service:
        """Start the coordination service on the loopback interface.

        Args:
          processes: the number of processes that will join.
        """

    def join(self, group: Group) -> Store:
        """Connect this process to a group, and return the key-value store that the group shares.

        Later calls of :meth:`client` return clients that list the devices of all processes of the group.
        """

    # The cache on disk

    def serialize(self, loaded: Any, device: Device) -> bytes:
        """Serialise a compiled program to bytes; RuntimeError if the platform does not support it."""

    def deserialize(self, data: bytes, device: Device, callbacks: Sequence[Callable[..., Any]] = ()) -> Any:
        """Load the compiled program from bytes of :meth:`serialize`.

        Args:
          data: the bytes.
          device: the device, or the devices of a mesh, on which the program runs.
          callbacks: the Python functions that it calls; it refers to each by the index in this sequence.
        """

    def has_option(self, name: str) -> bool:
        """Whether this release of the compiler may have an option; False for one that it is known to lack."""

    def options_as_bytes(self, overrides: Sequence[tuple[str, Any]]) -> bytes:
        """Serialise the compiler's options, with ``overrides`` instead of some defaults, for the cache key."""

    def version(self, device: Device) -> str:
        """The versions of the compiler and of the runtime of a device."""


@functools.cache
def backend() -> Backend:
    """Import the module that implements :class:`Backend`, and return it."""
    adapter: Any = importlib.import_module(ADAPTER)
    runtime.fetch = adapter.fetch  # type: ignore[method-assign]  # of whatever adapter is in use
    return adapter  # type: ignore[no-any-return]
