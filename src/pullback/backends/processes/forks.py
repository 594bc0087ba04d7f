"""Processes that are forked after programs were compiled.

A forked child has only the thread that forked, without the threads of the compiler's runtime: a program would wait for
them for ever, and so would the compiler, whose locks have the state that they had in the parent. So in this child
functions are evaluated eagerly, as within ``disable_jit``, with a warning; other uses of the runtime raise an error.
Arrays that the parent had computed can be read. If the parent had not used the runtime, the child can use it.
"""

from __future__ import annotations

import os
from typing import Any

from pullback.core import source, systems
from pullback.core.config import config
from pullback.core.errors import BackendError, ForkWarning
from pullback.core.runtime import runtime

used: list[Any] = []
"""Names of the uses of the runtime by this process: platforms, background threads, process groups."""

_ADVICE = (
    "Start processes by 'spawn' or 'forkserver' (multiprocessing.get_context('spawn')), or fork before the first "
    "program is compiled."
)
_children: list[int] = []
"""The number of this process, if it was forked after the runtime was used; else empty."""
_warnings = [
    f"this process was forked from one that had compiled programs, and the compiler's threads do not exist here: "
    f"functions under jit run eagerly, which is slower. {_ADVICE}"
]
"""The warning for a child that was forked after the runtime was used, until it is issued."""


def in_child() -> bool:
    """Whether this process was forked from a process that had used the compiler's runtime."""
    return bool(_children)


def check(what: str) -> None:
    """Raise BackendError (a RuntimeError) if this process is a forked child, which cannot use the compiler's runtime.

    ``what`` names the action that needs the runtime, for the message.
    """
    if in_child():
        raise refusal(what)


def refusal(what: str) -> BackendError:
    return BackendError(
        f"{what} is not possible in this process: it was forked from one that had compiled programs, and the "
        f"threads of the compiler's runtime do not exist here. {_ADVICE}"
    )


def warn_eager() -> None:
    """Warn once, in a forked child without the runtime, that functions under ``jit`` run eagerly."""
    if in_child() and _warnings:
        source.warn(_warnings.pop(), ForkWarning)


def _after_fork() -> None:
    if not used:
        return
    _children.append(os.getpid())
    config.update("disable_jit", True)
    runtime.forked()


systems.at_fork(in_child=_after_fork)
