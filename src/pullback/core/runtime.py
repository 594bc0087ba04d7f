"""The runtime: functions that the core calls and that modules above it, which it cannot import, provide.

Each function has one provider. An event may have any number of listeners, in layers above the one that reports it.
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
    """Functions that the core calls, and other modules define with :func:`provides`; and events, as attributes.

    Attributes:
      small_integers_requested: a dtype of 2 or 4 bits is requested; each listener is called once, and removed.
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
        """Set the evaluating trace of a new thread, by its switches; ``state`` is its thread-local state."""

    def evaluate(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation that has no host rule."""
        raise NotImplementedError

    def evaluate_absent(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation whose operands, or result, are not all in NumPy's memory."""
        raise NotImplementedError

    def is_recording(self) -> bool:
        """Whether this thread is tracing a program."""
        return False

    def hold(self, x: Any) -> Any:
        """Return a large array ``x``, made such that the results of operations on it may be pending."""
        return x

    def zeros(self, aval: Any) -> Any:
        """Return zeros of a type, as an operation of the program that is being traced."""
        raise NotImplementedError

    def gather(self, buffer: Any, kind: Any) -> Any:
        """Copy the elements of an array, a buffer of signature ``kind``, from its devices to the host."""
        raise NotImplementedError

    def fetch(self, buffer: Any, dtype: Any) -> Any:
        """Copy the elements of a buffer on one device to the host, as an array of a dtype."""
        raise NotImplementedError

    def reshard(self, x: Any, sharding: Any) -> Any:
        """Return a buffer with the elements of the array ``x``, laid out by ``sharding`` over the same devices."""
        raise NotImplementedError

    def size_value(self, size: Any) -> Any:
        """Return the value of a symbolic size in the program that is being traced."""
        raise NotImplementedError

    def sum_over(self, ct: Any, wanted: frozenset[Any], reduced: Sequence[Any]) -> Any:
        """Sum a cotangent over the named axes along which it varies and its variable does not.

        Args:
          ct: the cotangent.
          wanted: the axes along which the variable varies.
          reduced: the named axes over which reverse mode sums.
        """
        raise NotImplementedError

    def transpose_over(self, node: Any, ct: Any, reduced: Sequence[Any]) -> Sequence[Any]:
        """Return the cotangents of the operands of an operation ``node``, whose result has the cotangent ``ct``.

        Each is summed over those of the named axes ``reduced`` along which its operand does not vary.
        """
        raise NotImplementedError

    def hide_frames(self, error: Exception) -> None:
        """Take Pullback's own frames out of the traceback of an error."""
        raise NotImplementedError


runtime = Runtime()


def provides(function: F) -> F:
    """Install a function in the runtime under its own name; a decorator.

    Raises:
      TypeError: the runtime has no such function, or has it already.
    """
    name = function.__name__
    if name in vars(runtime) or not hasattr(Runtime, name):
        raise TypeError(f"the runtime has no function {name!r} to provide, or has it already")
    setattr(runtime, name, function)
    return function
