"""Calls of Python functions by compiled programs.

The runtime calls a function on a thread of its own, or on the thread that started the program, with NumPy arrays that
are views of its memory, valid only during the call. The caller of such a program waits for its end: so an exception of
the function is raised there, with its own traceback, instead of later as an error of the runtime.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.errors import BackendError

_ON_GPU = "xla_ffi_python_gpu_callback"
TARGETS = {"cpu": "xla_ffi_python_cpu_callback", "cuda": _ON_GPU, "rocm": _ON_GPU}
"""By the platform, the name by which programs call Python, with the number of the function as the attribute ``index``.
On GPUs the runtime copies operands to the host and results back, and the stream waits meanwhile."""
MOST_STORED = 64
"""The most exceptions that are stored; a program that fails for another reason leaves one behind."""

_numbers = itertools.count()
_raised: dict[int, BaseException] = {}
_failures: weakref.WeakKeyDictionary[Callable[..., Any], list[BaseException]] = weakref.WeakKeyDictionary()
"""By the functions of programs over several devices: what the functions of the program have raised."""
_refused: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
"""The functions of programs that were interrupted, which are not called any more."""
_MARK = "raised by a host function, number "


class HostCall:
    """A wrapper of a host function, which the runtime calls.

    If the function raises an exception, the wrapper stores the exception under a number, and raises a RuntimeError with
    this number in its text, since the runtime passes on only the text. In a program over several devices, the others
    would wait for the device that failed, and the runtime would end the process. So the wrapper returns zeros there,
    and no function of the program is called again; :func:`check_failed` raises the exception after the program's end.

    The wrapper refers to the function weakly, and the program's module refers to it strongly. The garbage collector
    does not see the runtime's references, so it could not free a cycle of the function and the compiled program.
    """

    __slots__ = ("failures", "function")

    def __init__(self, function: Callable[..., tuple[Any, ...]], failures: list[BaseException] | None) -> None:
        self.function = weakref.ref(function)
        self.failures = failures

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        function, failures = self.function(), self.failures
        try:
            assert function is not None, "the program is running and its module was freed"
            if failures:
                return function.absent()  # type: ignore[attr-defined, no-any-return]
            if function in _refused:
                raise KeyboardInterrupt
            return function(*operands)
        except BaseException as error:
            if failures is not None and hasattr(function, "absent"):
                failures.append(error)
                return function.absent()  # type: ignore[union-attr, no-any-return]
            number = next(_numbers)
            _raised[number] = error
            _raised.pop(number - MOST_STORED, None)
            raise RuntimeError(f"{_MARK}{number}") from None


def host_calls(functions: Sequence[Callable[..., tuple[Any, ...]]], on_several: bool) -> list[HostCall]:
    """Wrap the host functions of a program.

    Args:
      functions: the functions; that of a program over several devices has a method ``absent``, which returns zeros like
        the results.
      on_several: whether the program runs on several devices.
    """
    failures: list[BaseException] | None = [] if on_several else None
    if failures is not None:
        _failures.update(dict.fromkeys(functions, failures))
    return [HostCall(f, failures) for f in functions]


def check_failed(functions: Sequence[Callable[..., Any]]) -> None:
    """Raise what a function raised in the program that has ended."""
    failures = _failures.get(functions[0]) if functions else None
    if failures:
        first = failures[0]
        failures.clear()
        raise first


def refuse(functions: Sequence[Callable[..., Any]]) -> None:
    """Do not call functions any more, since the program that calls them was interrupted."""
    _refused.update(functions)


def are_refused(functions: Sequence[Callable[..., Any]]) -> bool:
    """Whether functions are not called any more."""
    return functions[0] in _refused


def accept(functions: Sequence[Callable[..., Any]]) -> None:
    """Call functions again, since the program that was interrupted has ended."""
    _refused.difference_update(functions)


def original(error: BaseException) -> BaseException | None:
    """The exception of a host function that caused ``error``, an error of the runtime; None if no host function did.

    A signal handler may raise KeyboardInterrupt before the wrapper of the function can store it. The runtime's text is
    then all that is known.
    """
    text = str(error)
    found = re.search(_MARK + r"(\d+)", text)
    if found is not None:
        return _raised.pop(int(found[1]), None)
    interrupted = "error calling callback" in text and re.search(r"^KeyboardInterrupt\b", text, re.MULTILINE)
    return KeyboardInterrupt() if interrupted else None


def target_on(platform: str) -> str:
    """Return the name by which programs call Python; that of CPUs where :func:`check_platform` refuses it."""
    return TARGETS.get(platform, TARGETS["cpu"])


def check_platform(platform: str) -> None:
    """Raise BackendError (a RuntimeError) unless programs for a platform can call Python functions."""
    if platform not in TARGETS:
        raise BackendError(
            f"compiled programs for {platform!r} cannot call Python functions (debug.print, debug.callback, "
            f"pure_callback, io_callback), only those for {', '.join(map(repr, TARGETS))}. Remove the calls, or run "
            "the function eagerly, under disable_jit()."
        )
