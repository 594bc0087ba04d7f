"""The name of the command line, for its messages."""

from __future__ import annotations

import os
import sys


def command_name() -> str:
    """Return how this process was started: ``pullback``, the console script, or ``python -m pullback``.

    >>> from pullback.core.command_name import command_name
    >>> command_name()
    'python -m pullback'
    """
    program = os.path.splitext(os.path.basename(sys.argv[0]))[0] if sys.argv else ""
    return "pullback" if program == "pullback" else "python -m pullback"
