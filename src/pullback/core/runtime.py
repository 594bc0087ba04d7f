"""One object whose functions the core calls, and the floors above it provide, which it cannot import.

Each function has one provider. An event may have any number of listeners, on floors above the one that reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Event(list[Callable[..., None]]):
    """The listeners of an event, in the order in which they were added; calling it calls them."""

    def __call__(self, *args: Any) -> None:
        for listener in tuple(self):
            listener(*args)


class Runtime:
    """Functions that the core calls, each provided once by a module above it, by :func:`provides`; and events.

    Attributes:
      small_integers_requested: a dtype of 2 or 4 bits is requested, perhaps not for the first time.
      node_registered: ``(class, node)``: a class was registered as a node of trees.
      forked: this process is the child of a fork, and its parent had used the library.
      several_devices_used: a second device comes into use.
      compiling: ``(platform)``: a program is about to be compiled; a listener may refuse by an error.
    """

    def __init__(self) -> None:
        self.small_integers_requested = Event()
        self.node_registered = Event()
        self.forked = Event()
        self.several_devices_used = Event()
        self.compiling = Event()

    def begin_thread(self, state: Any) -> None:
        """Have a thread, of which this is the dynamic state, evaluate as its switches ask for."""

    def evaluate(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation that has no host rule."""
        raise NotImplementedError

    def evaluate_on_device(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation with operands on other devices than the host's."""
        raise NotImplementedError

    def is_recording(self) -> bool:
        """Whether this thread records a program."""
        return False

    def zeros(self, aval: Any) -> Any:
        """Zeros of a type, as an operation of the program that is recorded."""
        raise NotImplementedError

    def gather(self, buffer: Any, kind: Any) -> Any:
        """Copy the elements of an array to the host, from the devices that it is on."""
        raise NotImplementedError

    def fetch(self, buffer: Any, dtype: Any) -> Any:
        """Copy the elements of a buffer on one device to the host, as an array of a dtype."""
        raise NotImplementedError

    def reshard(self, x: Any, sharding: Any) -> Any:
        """Return the buffer of an array's elements by another sharding over the same devices."""
        raise NotImplementedError

    def size_value(self, size: Any) -> Any:
        """Return the value of a symbolic size in the program that is recorded."""
        raise NotImplementedError

    def sum_over(self, ct: Any, wanted: frozenset[Any], reduced: Sequence[Any]) -> Any:
        """Sum a cotangent over the reduced named axes that it varies along, and its variable does not."""
        raise NotImplementedError

    def transpose_over(self, node: Any, ct: Any, reduced: Sequence[Any]) -> Sequence[Any]:
        """Transpose an operation of a tape, and sum the cotangents of its operands over the reduced named axes."""
        raise NotImplementedError

    def hide_frames(self, error: Exception) -> None:
        """Take Pullback's own frames out of the traceback of an error."""
        raise NotImplementedError


runtime = Runtime()


def provides(function: F) -> F:
    """Install a function of the runtime, under its own name; a decorator in the module that has it.

    Raises:
      TypeError: the runtime has no such function, or has it already.
    """
    name = function.__name__
    if name in vars(runtime) or not hasattr(Runtime, name):
        raise TypeError(f"the runtime has no function {name!r} to provide, or has it already")
    setattr(runtime, name, function)
    return function
