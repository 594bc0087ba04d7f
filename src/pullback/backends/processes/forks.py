"""Processes that are forked after programs were compiled.

The threads of the compiler's runtime are not in the child, which has only the one that forked: a program would wait for
them for ever, as would the compiler, whose locks are as they were in the parent. So in such a child functions are
evaluated eagerly, as within ``disable_jit``, with a warning; what needs the runtime all the same is refused. Arrays
that the parent had computed can be read. A child whose parent had not used the runtime yet uses it as any process does.
"""

from __future__ import annotations

import os
from typing import Any

from pullback.core import source
from pullback.core.config import config
from pullback.core.errors import BackendError, ForkWarning
from pullback.core.runtime import runtime

used: list[Any] = []
"""The clients of the runtime that this process made or, while one is being made, what stands for it."""

_ADVICE = (
    "Start processes by 'spawn' or 'forkserver' (multiprocessing.get_context('spawn')), or fork before the first "
    "program is compiled."
)
_children: list[int] = []
"""Has this process, if it was forked from one that had used the compiler's runtime."""
_warnings = [
    "this process was forked from one that had compiled programs, whose threads are not in it: functions under jit are "
    f"evaluated eagerly here, which is slower. {_ADVICE}"
]
"""What such a child has not been told yet."""


def in_child() -> bool:
    """Whether this process was forked from one that had used the compiler's runtime."""
    return bool(_children)


def check(what: str) -> None:
    """Refuse what needs the runtime.

    Raises:
      BackendError: it is not in this process (a RuntimeError).
    """
    if in_child():
        raise refusal(what)


def refusal(what: str) -> BackendError:
    return BackendError(
        f"{what} is not possible in this process: it was forked from one that had compiled programs, and the threads "
        f"of the compiler's runtime are not in it. {_ADVICE}"
    )


def warn_eager() -> None:
    """In such a child, warn once that functions under ``jit`` run eagerly."""
    if in_child() and _warnings:
        source.warn(_warnings.pop(), ForkWarning)


def _after_fork() -> None:
    if not used:
        return
    _children.append(os.getpid())
    config.update("disable_jit", True)
    runtime.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
