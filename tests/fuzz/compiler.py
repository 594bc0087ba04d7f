"""Without the compiler, which takes longer for one operation than all the rest of an eager program takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.backends.compiler import programs


class NeedsCompiler(BaseException):
    """An operation without a rule for the host, or a loop that would be compiled."""


def _refuse(*args: Any, **keywords: Any) -> None:
    raise NeedsCompiler


@contextmanager
def without_compiler() -> Iterator[None]:
    """A block in which lowering a program raises ``NeedsCompiler``."""
    usual = programs.Lowered.__init__
    programs.Lowered.__init__ = _refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        programs.Lowered.__init__ = usual  # type: ignore[method-assign]
