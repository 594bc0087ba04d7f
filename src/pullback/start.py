"""Set-up at ``import pullback``: actions of switches, exit handlers, and errors for unknown names."""

from __future__ import annotations

import atexit
import importlib
import sys
from typing import NoReturn

from pullback.core import faces
from pullback.core.config import config, observe
from pullback.core.source import hide_when_uncaught
from pullback.display import hooks

__all__: list[str] = []


def set_up() -> None:
    """Connect switches to their actions, register exit handlers, and hide the library's frames in tracebacks."""
    observe("check_custom_rules", _check_custom_rules)
    observe("check_tracer_leaks", _check_tracer_leaks)
    atexit.register(_leave)
    hide_when_uncaught(_advice)
    hooks.install()


def _check_custom_rules(everywhere: bool) -> None:
    if config.check_custom_rules:
        from pullback.testing.rules import switch_on

        switch_on()


def _check_tracer_leaks(everywhere: bool) -> None:
    if config.check_tracer_leaks:
        from pullback.transforms.debugging.compile_time import switch_on

        switch_on()


def _advice(error: Exception) -> str:
    if not isinstance(error, AttributeError):
        return ""
    from pullback.core.missing_attributes import advice

    return advice(error)


def not_there(name: str) -> NoReturn:
    """Raise the AttributeError for a name that ``pullback`` lacks, with a hint if another module has it."""
    known = name[:5] == "tree_" and hasattr(importlib.import_module("pullback.tree"), name[5:])
    if known:
        raise AttributeError(f"module 'pullback' has no attribute {name!r}; use pullback.tree.{name[5:]}", name=name)
    raise faces.not_there("pullback", name)


def _leave() -> None:
    ending = sys.modules.get("pullback.backends.processes.ending")
    if ending is not None:
        ending.leave()
