"""The runtime: functions that the core calls and that modules above it, which it cannot import, provide.

Each function has one provider. An event may have any number of listeners, in layers above the one that reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Event(list[Callable[..., None]]):
    """A list of listeners. Calling the event calls the listeners, in order, with the same arguments."""

    def __call__(self, *args: Any) -> None:
        for listener in tuple(self):
            listener(*args)


class Runtime:
    """Functions that the core calls and other modules define by :func:`provides`; and events, to which they listen.

    Attributes:
      small_integers_requested: a dtype of 2 or 4 bits is used for the first time.
      node_registered: ``(class, node)``: a class was registered as a node of trees.
      forked: this process is the child of a fork, and its parent had used the library.
      thread_begun: ``(state)``: a thread that uses the library has its state.
      memory_needed: a large array is about to be made: listeners let go of arrays that nobody else has.
      several_devices_used: a second device comes into use.
      compiling: ``(platform)``: a program is about to be compiled; a listener may raise an error to prevent it.
      has_explicit_types: whether a type has had a sharding over explicit axes of a mesh; until then none is looked for.
    """

    def __init__(self) -> None:
        self.small_integers_requested = Event()
        self.node_registered = Event()
        self.forked = Event()
        self.thread_begun = Event()
        self.memory_needed = Event()
        self.several_devices_used = Event()
        self.compiling = Event()
        self.has_explicit_types = False

    def begin_thread(self, state: Any) -> None:
        """Initialize ``state``, the thread-local state of a new thread: set the trace that evaluates its operations."""

    def as_subclass(self, x: Any, cls: type, /) -> bool:
        """Make ``x`` an instance of ``cls``, a subclass of its class that adds no fields; return whether it is one.

        Without the module in C it never is.
        """
        return False

    def evaluate(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation that has no host rule, and return its results."""
        raise NotImplementedError

    def evaluate_absent(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation whose operands, or result, are not all in NumPy's memory, and return it."""
        raise NotImplementedError

    def evaluate_elsewhere(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Evaluate an operation on another device than NumPy's, as a compiled program, and return its results."""
        raise NotImplementedError

    def following(self, x: Any, models: Sequence[Any]) -> Any:
        """Commit a new array to the device of the operands ``models``, if one is committed; return it."""
        raise NotImplementedError

    def in_memory(self, a: Any, b: Any) -> tuple[Any, Any] | None:
        """Return the elements ``a`` and ``b`` of two operands if NumPy has to compute with them now; else None."""
        raise NotImplementedError

    def is_recording(self) -> bool:
        """Whether this thread is tracing a program."""
        return False

    def copied(self, x: Any, dtype: Any) -> Any:
        """Copy a large NumPy array, in a dtype and in row-major order."""
        raise NotImplementedError

    def hold(self, x: Any) -> Any:
        """Return a large array ``x``, made such that the results of operations on it may be pending."""
        return x

    def zeros(self, aval: Any) -> Any:
        """Return zeros of the type ``aval``, as an operation of the program that is being traced."""
        raise NotImplementedError

    def gather(self, buffer: Any, kind: Any) -> Any:
        """Return the elements of a sharded array as a NumPy array, copied from its devices.

        Args:
          buffer: the buffer of the array.
          kind: its signature: its type, and how it is spread over devices.
        """
        raise NotImplementedError

    def fetch(self, buffer: Any, dtype: Any) -> Any:
        """Return the elements of a buffer on one device as a NumPy array of ``dtype``."""
        raise NotImplementedError

    def taken(self, value: Any, device: Any) -> Any:
        """Move a NumPy array, to which nobody else may refer, to memory that programs may take; return the buffer."""
        raise NotImplementedError

    def reshard(self, x: Any, sharding: Any) -> Any:
        """Return a buffer with the elements of the array ``x``, spread by ``sharding`` over the same devices."""
        raise NotImplementedError

    def zeros_of(self, aval: Any) -> Any:
        """Return zeros of a type."""
        raise NotImplementedError

    def sum_of_two(self, x: Any, y: Any) -> Any:
        """Return the sum of two cotangents, which are arrays."""
        raise NotImplementedError

    def size_value(self, size: Any) -> Any:
        """Return the value of a symbolic size, as an operation of the program that is being traced."""
        raise NotImplementedError

    def in_states(self, x: Any, aval: Any, names: frozenset[Any]) -> Any:
        """Return a value with the states of the type ``aval`` along the axes ``names`` of ``shard_map``."""
        raise NotImplementedError

    def sum_over(self, ct: Any, aval: Any, reduced: Sequence[Any]) -> Any:
        """Sum a cotangent over the ``reduced`` axes along which it varies and its variable does not.

        Args:
          ct: the cotangent.
          aval: the type of the variable.
          reduced: the named axes over which reverse mode sums.
        """
        raise NotImplementedError

    def transpose_over(self, node: Any, ct: Any, reduced: Sequence[Any]) -> Sequence[Any]:
        """Return the cotangents of the operands of an operation, from the cotangent of its result.

        If an operand does not vary along a ``reduced`` axis, sum its cotangent over this axis.

        Args:
          node: the operation, recorded on a tape.
          ct: the cotangent of its result.
          reduced: the named axes over which reverse mode sums.
        """
        raise NotImplementedError

    def undivided(self, shape: Sequence[int]) -> Any:
        """Return the sharding of the type of an array that is not sharded: over the current mesh, not divided."""
        raise NotImplementedError

    def explicit_results(self, primitive: Any, avals: Sequence[Any], params: dict[str, Any], out: Any) -> Any:
        """Return ``out``, one or several result types, with their shardings over the explicit axes of a mesh.

        Args:
          primitive: the operation.
          avals: the types of the operands, some of which have shardings.
          params: the parameters of the operation.
          out: the types of the results without shardings.

        Raises:
          ShardingTypeError: the shardings of the operands do not say that of a result (a TypeError and ValueError).
        """
        raise NotImplementedError

    def explicit_derivative(self, primitive: Any, rule: Any, primals: Any, tangents: Any, params: Any) -> Any:
        """Return what the jvp rule of an operation returns, where the shardings of operands do not suffice for it.

        The operation is not refused itself: the results and tangents have its shardings.
        """
        raise NotImplementedError

    def explicit_batch(self, primitive: Any, rule: Any, axis: Any, args: Any, dims: Any, params: Any) -> Any:
        """Return what the batch rule of an operation returns, where the shardings of operands do not suffice for it.

        The operation on an example is not refused: the results have its shardings, and that of the mapped axis.
        """
        raise NotImplementedError

    def explicit_cotangents(self, node: Any, ct: Any, reduced: Any) -> Any:
        """Return the cotangents of the operands of an operation, each with the sharding in the type of its operand.

        Args:
          node: the operation, recorded on a tape.
          ct: the cotangent of its result, or a list of them, with shardings in their types.
          reduced: the named axes over which reverse mode sums, or None.
        """
        raise NotImplementedError

    def by_terms(self, function: Any, operands: Sequence[Any], over: Any) -> list[Any]:
        """Return the list ``function(*operands)``, whose sums stay unreduced over the axes ``over`` of a mesh."""
        raise NotImplementedError

    def html_of(self, x: Any) -> str | None:
        """Return an object as HTML for a notebook, or None if its text serves."""
        return None

    def hide_frames(self, error: Exception) -> None:
        """Remove Pullback's own frames from the traceback of ``error``, in place."""
        raise NotImplementedError


runtime = Runtime()


def provides(function: F) -> F:
    """Install ``function`` as the runtime's function of the same name; for use as a decorator.

    Raises:
      TypeError: the runtime declares no function of this name, or another function was installed.
    """
    name = function.__name__
    if name in vars(runtime) or not hasattr(Runtime, name):
        raise TypeError(f"the runtime lacks the function {name!r}, or it is already registered")
    setattr(runtime, name, function)
    return function
