"""What ``import pullback`` sets up: what switches turn on, the end of the process, and the names that are not there."""

from __future__ import annotations

import atexit
import importlib
import sys
from typing import NoReturn

from pullback.core.config import config, observe
from pullback.core.source import hide_when_uncaught

__all__: list[str] = []


def set_up() -> None:
    """Have switches turn on what they name, and the process end in order; tracebacks leave out the library's frames."""
    observe("check_custom_rules", _check_custom_rules)
    observe("check_tracer_leaks", _check_tracer_leaks)
    atexit.register(_leave)
    hide_when_uncaught()


def _check_custom_rules(everywhere: bool) -> None:
    if config.check_custom_rules:
        from pullback.testing.rules import switch_on

        switch_on()


def _check_tracer_leaks(everywhere: bool) -> None:
    if config.check_tracer_leaks:
        from pullback.transforms.debugging.compile_time import switch_on

        switch_on()


def not_there(name: str) -> NoReturn:
    """Raise the error of a name that ``pullback`` has not, which says where it is if it is a function of trees."""
    known = name[:5] == "tree_" and hasattr(importlib.import_module("pullback.tree"), name[5:])
    hint = f"; it is pullback.tree.{name[5:]}" if known else ""
    raise AttributeError(f"module 'pullback' has no attribute {name!r}{hint}")


def _leave() -> None:
    ending = sys.modules.get("pullback.backends.processes.ending")
    if ending is not None:
        ending.leave()
