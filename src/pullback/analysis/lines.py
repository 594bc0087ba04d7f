"""The user's line of an operation, as reports name it."""

from __future__ import annotations

import os

from pullback.core import source
from pullback.core.jaxpr import Eqn


def line_of(eqn: Eqn) -> str:
    """Return the line that an operation comes from, as ``file:line function``, with the named scope if it has one."""
    scope = f" [{eqn.scope.path}]" if eqn.scope is not None and eqn.scope.path else ""
    if eqn.made_at is None or eqn.made_at[0].co_filename.startswith("<frozen "):
        return f"an unknown line{scope}"
    code = eqn.made_at[0]
    return f"{os.path.basename(code.co_filename)}:{source.line_number(eqn.made_at)} {code.co_name}{scope}"
