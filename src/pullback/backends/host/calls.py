"""Calls of Python functions by compiled programs.

The runtime calls a function on a thread of its own, or on the thread that started the program, with NumPy arrays that
are views of its memory, valid only during the call. The caller of such a program waits for its end: so an exception of
the function is raised there, with its own traceback, instead of later as an error of the runtime.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Callable
from typing import Any

from pullback.core.errors import BackendError

TARGET = "xla_ffi_python_cpu_callback"
"""The name by which programs call Python, with the number of the function as the attribute ``index``."""
MOST_STORED = 64
"""The most exceptions that are stored; a program that fails for another reason leaves one behind."""

_numbers = itertools.count()
_raised: dict[int, BaseException] = {}
_MARK = "raised by a host function, number "


class HostCall:
    """A wrapper of a host function, which the runtime calls.

    If the function raises an exception, the wrapper stores the exception under a number, and raises a RuntimeError with
    this number in its text, since the runtime passes on only the text.

    The wrapper refers to the function weakly, and the program's module refers to it strongly. The garbage collector
    does not see the runtime's references, so it could not free a cycle of the function and the compiled program.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., tuple[Any, ...]]) -> None:
        self.function = weakref.ref(function)

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        try:
            function = self.function()
            assert function is not None, "the program runs, and its module was freed"
            return function(*operands)
        except BaseException as error:
            number = next(_numbers)
            _raised[number] = error
            _raised.pop(number - MOST_STORED, None)
            raise RuntimeError(f"{_MARK}{number}") from None


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


def check_platform(platform: str) -> None:
    """Raise BackendError (a RuntimeError) unless programs for a platform can call Python functions."""
    if platform != "cpu":
        raise BackendError(
            f"compiled programs for {platform!r} cannot call Python functions (debug.print, debug.callback, "
            "pure_callback, io_callback), only those for 'cpu'. Leave the calls out, or run the function eager, "
            "within disable_jit()."
        )
