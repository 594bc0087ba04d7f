"""Calls of Python functions by compiled programs.

The runtime calls a function on a thread of its own or on the one that started the program, with NumPy arrays that look
into its memory and are gone afterwards. A program that calls Python is waited for where it is started: so an exception
of a function is raised there, with its own traceback, instead of as an error of the runtime somewhere later.
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
KEPT = 64
"""How many exceptions are kept, of programs that failed for another reason before anybody asked for them."""

_numbers = itertools.count()
_raised: dict[int, BaseException] = {}
_MARK = "raised by a host function, number "


class HostCall:
    """A function as the runtime calls it: what it raises is kept, and the runtime is told where.

    It refers to the function weakly. The module that the program came from has it, and lives as long as the program is
    run; the runtime's own references are none that the collector sees, so that a function which refers to the compiled
    one, as methods of an object do, would never go.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., tuple[Any, ...]]) -> None:
        self.function = weakref.ref(function)

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        try:
            function = self.function()
            assert function is not None, "the program is run by somebody who has let go of it"
            return function(*operands)
        except BaseException as error:
            number = next(_numbers)
            _raised[number] = error
            _raised.pop(number - KEPT, None)
            raise RuntimeError(f"{_MARK}{number}") from None


def original(error: BaseException) -> BaseException | None:
    """The exception of a host function that is behind an error of the runtime, if there is one."""
    found = re.search(_MARK + r"(\d+)", str(error))
    return None if found is None else _raised.pop(int(found[1]), None)


def check_platform(platform: str) -> None:
    """Refuse programs that call Python on platforms where they cannot.

    Raises:
      BackendError: they cannot (a RuntimeError).
    """
    if platform != "cpu":
        raise BackendError(
            f"compiled programs for {platform!r} cannot call Python functions (debug.print, debug.callback, "
            "pure_callback, io_callback), only those for 'cpu'. Leave the calls out, or run the function eager, "
            "within disable_jit()."
        )
