"""Options of the compiler, chosen by measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backends.hlo import Module

OPTIONS: dict[str, Any] = {}
"""Overrides of the compiler's defaults."""


def for_program(module: Module, overrides: Sequence[tuple[str, Any]] = ()) -> list[tuple[str, Any]]:
    """The options for a program: those of the table, and then those that the user gave."""
    return sorted({**OPTIONS, **dict(overrides)}.items())
