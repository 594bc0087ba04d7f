"""The user's line of an operation, as reports name it."""

from __future__ import annotations

import os

from pullback.core import source
from pullback.core.jaxpr import Eqn


def line_of(eqn: Eqn) -> str:
    """Return the line that an operation comes from, as ``file:line function``, with the named scope if it has one."""
    scope = f" [{eqn.scope.path}]" if eqn.scope is not None and eqn.scope.path else ""
    return f"{line_of_location(eqn.made_at)}{scope}"


def line_of_location(location: source.Location | None) -> str:
    """Return a source location as ``file:line function``."""
    if location is None or location[0].co_filename.startswith("<frozen "):
        return "an unknown line"
    code = location[0]
    return f"{os.path.basename(code.co_filename)}:{source.line_number(location)} {code.co_name}"
