"""What Pullback asks of a compiler: the protocol :class:`Backend`, and the one that is in use.

The adapter of ``jaxlib``, :mod:`pullback.backends.compiler.client`, is a module whose functions implement it. Another
compiler is another module of these functions: programs reach it as StableHLO text, and everything above works
unchanged, but for what only ``jaxlib`` has: its profiler, its bindings of MLIR and its names of LAPACK's routines.
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
"""A :class:`pullback.backends.devices.devices.Device`, or for programs a ``DeviceAssignment``. A device itself
asks the backend for what it does not know."""
Sharding = Any
"""A :class:`pullback.backends.devices.shardings.NamedSharding`."""
Buffer = Any
"""The elements of an array on a device: an object of the adapter's, on which ``is_ready()`` and attributes work."""


class Executable(Protocol):
    """A compiled program.

    Attributes:
      run: ``run(buffers)`` starts it, and returns the buffers of its results.
      execute, collect, handlers: the same in two calls without a frame of ours, for the quick path of ``jit``:
        ``collect(execute(buffers), handlers)``.
      loaded: what the runtime has of it.
      in_shardings, out_shardings: over several devices, how inputs and results are spread.
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
        """The program as the compiler optimised it."""

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimate of operations and memory traffic."""

    def memory_analysis(self) -> Any:
        """The bytes that arguments, results and temporary values take."""


class Service(Protocol):
    """The coordination service of several processes.

    Attributes:
      port: where it listens, on the loopback.
    """

    port: int

    def stop(self) -> None:
        """End it."""


GRACE = 3.0
"""How many seconds a program may still take after a process that takes part is known to be gone."""
SLICE = 1.0
"""How many seconds a call of the coordination service waits; it is made again."""


class Store(Protocol):
    """The values, by key, that processes have in common."""

    def put(self, key: str, value: bytes) -> None:
        """Set the value of a key that has none."""

    def get(self, key: str, process: int) -> bytes:
        """The value of a key, once a process has set it; ProcessLostError if that is gone and has not."""

    def delete(self, key: str) -> None:
        """Forget a key, and those that begin with it and a slash."""

    def close(self, reachable: bool) -> bool:
        """End the connection with the service, if that is reachable; whether it was."""


@dataclass(frozen=True)
class Group:
    """Several processes that compute together.

    Attributes:
      process: the number of this one.
      processes: how many there are.
      port: where on the loopback the coordination service is reached.
      host: this machine's address, for the others.
      seconds: how long to wait for the others.
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
        """The number of devices of a platform; BackendError if there is no such platform."""

    def device_ids(self, platform: str, process: int | None = None) -> list[int]:
        """The numbers of the devices of all processes, or of one; BackendError if there is no such platform."""

    def process_of(self, platform: str, number: int) -> int:
        """The number of the process that a device belongs to."""

    def bound(self, device: Device) -> Any:
        """What the runtime knows a device as; BackendError if it has no such device."""

    def client(self, platform: str = "cpu") -> Any:
        """The runtime of a platform."""

    def device_kind(self, device: Device) -> str:
        """What the maker calls a device."""

    def memory_stats(self, device: Device) -> dict[str, int] | None:
        """The use of a device's memory in bytes, where it is counted."""

    # Buffers

    def put(self, value: Any, aval: ShapedArray, device: Device, copy: bool = False) -> Buffer:
        """A NumPy value on a device; with ``copy`` the value may be written to afterwards."""

    def move(self, buffer: Buffer, device: Device) -> Buffer:
        """A buffer of one device on another."""

    def copied(self, buffer: Buffer) -> Buffer:
        """A copy of a buffer on the same device."""

    def from_dlpack(self, capsule: Any, device: Device) -> np.ndarray[Any, Any] | None:
        """The elements of a capsule of DLPack's, on the host; None if their dtype is not known."""

    def to_dlpack(self, value: np.ndarray[Any, Any], device: Device) -> Any:
        """A capsule of DLPack's of a copy of a NumPy array, on a device."""

    def put_shards(
        self, parts: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding
    ) -> Buffer:
        """An array over several devices, of NumPy values for each device of this process, as they are stored."""

    def parts(self, buffer: Buffer) -> list[Buffer]:
        """The buffers on single devices of this process of which a buffer over several consists."""

    def shard_values(self, buffer: Buffer) -> list[np.ndarray[Any, Any]]:
        """The elements of each of these parts, as they are stored."""

    def assembled(
        self, buffers: Sequence[Buffer], shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding
    ) -> Buffer:
        """A buffer over several devices that consists of those on each device of this process."""

    def device_of(self, buffer: Buffer) -> Device:
        """The device that a buffer is on."""

    def fetch(self, buffer: Buffer, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The elements of a buffer that holds an array of a dtype, once they are computed."""

    def fetch_ahead(self, buffer: Buffer) -> None:
        """Start to copy the elements of a buffer to the host."""

    def wait(self, buffer: Buffer) -> None:
        """Wait until the elements are computed; AllocationError or ExecutionError if the program failed."""

    # Programs

    def compile_text(
        self,
        text: str,
        device: Device,
        overrides: Sequence[tuple[str, Any]] = (),
        callbacks: Sequence[Callable[..., Any]] = (),
        in_this_thread: bool = False,
    ) -> Any:
        """StableHLO text compiled for a device, or for those of a mesh; CompilationError if the compiler refuses it.

        In this thread if the compiler calls the functions of :meth:`partitioning`.
        """

    def executable(
        self,
        loaded: Any,
        device: Device,
        out_avals: Sequence[ShapedArray],
        calls_python: bool = False,
        shardings: Any = None,
    ) -> Executable:
        """What :meth:`compile_text` or :meth:`deserialize` returned, ready to run.

        Over several devices ``shardings.found(tilings)`` says how inputs and results are spread, as the compiler has
        divided them.
        """

    def hlo_text(self, text: str) -> str:
        """StableHLO text in the compiler's own language, before it optimises."""

    def cost_analysis(self, text: str, device: Device) -> dict[str, float]:
        """The compiler's estimate for StableHLO text, before it optimises."""

    def inspection(self, told: Callable[[Any], None]) -> tuple[bytes, Any]:
        """What stands in a program for a function that is told how a value is divided; and what has to live
        until the program is compiled."""

    def partitioning(self, divided: Callable[[list[Any], list[Any]], Any], platform: str) -> tuple[str, Any]:
        """What stands in a program for a function that divides an operation, as ``hlo.PARTITIONED`` has it; and what
        has to live until the program is compiled, whose ``error`` is what the function has raised.

        The function takes how operands and results are divided, and returns a :class:`hlo_module.Divided`.
        """

    def tree_registry(self) -> Any:
        """A registry of nodes of trees, with ``register_node(class, flatten, unflatten)`` and ``flatten(tree)``, which
        returns the leaves and an object with ``unflatten(leaves)``."""

    # Programs for other processes

    def to_portable(self, text: str) -> bytes:
        """StableHLO text as bytes that other releases of the compiler read; CompilationError if it cannot be."""

    def from_portable(self, data: bytes) -> Any:
        """An object whose ``str`` is StableHLO text, from such bytes; CompilationError if they are none."""

    def functions_of(
        self, data: bytes, entry: str, operands: Sequence[str], results: Sequence[str], unique: Callable[[str], str]
    ) -> tuple[str, list[list[str]], dict[str, tuple[list[int], list[str]]]]:
        """From such bytes the function ``entry`` for operands of some types, and the others that it needs, with names
        that ``unique`` made: its name, and the lines of each; and for each mesh the sizes and names of its axes."""

    def hlo_sharding(self, sharding: Sharding, ndim: int) -> Any:
        """A sharding of arrays of a rank as the runtime writes it."""

    # Processes

    def serve(self, processes: int, seconds: float) -> Service:
        """Start the coordination service of several processes, on the loopback."""

    def join(self, group: Group) -> Store:
        """Make this process one of several; clients of platforms that are made from then on are theirs together."""

    # The cache on disk

    def serialize(self, loaded: Any, device: Device) -> bytes:
        """A compiled program as bytes; RuntimeError if the platform cannot."""

    def deserialize(self, data: bytes, device: Device) -> Any:
        """The compiled program from such bytes."""

    def options_as_bytes(self, overrides: Sequence[tuple[str, Any]]) -> bytes:
        """All options of a compilation, for the key of the cache."""

    def version(self, device: Device) -> str:
        """The releases of the compiler and of what runs its programs on a device."""


@functools.cache
def backend() -> Backend:
    """The adapter in use."""
    adapter: Any = importlib.import_module(ADAPTER)
    runtime.fetch = adapter.fetch  # type: ignore[method-assign]  # of whatever adapter is in use
    return adapter  # type: ignore[no-any-return]
