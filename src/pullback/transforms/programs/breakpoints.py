"""``debug.breakpoint``: stopping in Python's debugger, in an eager function or in a compiled program."""

from __future__ import annotations

import ast
import sys
from types import FrameType
from typing import Any

from pullback.core import source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import is_listed
from pullback.core.errors import UnsupportedArgumentError
from pullback.core.trace import Tracer, is_at_work, state
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.callbacks import call_for_effect
from pullback.transforms.traces.stage import StageTrace


@api_boundary
def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: object = None,
    **kwargs: PyTree,
) -> None:
    """Stop in Python's debugger: at the call, or before Python 3.13 at the line that follows the call.

    A function that is being traced, for example by ``jit``, has no values yet. Then the compiled program stops in each
    run, with the values of the variables that the function had at the call. Changes of these variables in the
    debugger do not affect the program.

    Args:
      backend: the debugger: ``"cli"``, Python's own, or None for it.
      ordered: whether a program stops at several breakpoints in program order.
      kwargs: ``stdin`` and ``stdout``, streams of text that the debugger reads and writes instead of the process's;
        others have no effect.
      filter_frames, num_frames, token: accepted for compatibility with JAX; without effect.

    Raises:
      UnsupportedArgumentError: another debugger (a NotImplementedError).

    >>> from pullback import debug, jit
    >>> def f(x):
    ...     y = 2 * x
    ...     debug.breakpoint()
    ...     return y
    >>> compiled = jit(f).lower(1.0).compile()  # each call of it stops in the debugger, which knows x and y
    """
    if not is_listed(backend, (None, "cli")):
        raise UnsupportedArgumentError(f"debug.breakpoint: backend must be 'cli', Python's debugger; got {backend!r}")
    streams = {name: kwargs[name] for name in ("stdin", "stdout") if kwargs.get(name) is not None}
    frame = sys._getframe(1)
    while frame.f_back is not None and source.is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    trace = state.trace
    while not trace.is_bottom:
        if isinstance(trace, StageTrace):
            _stop_later(frame, ordered, streams)
            return
        trace = trace.parent
    _stop(frame, streams)


def _stop(frame: FrameType, streams: dict[str, Any]) -> None:
    """Start the debugger in the frame ``frame``; ``streams`` are its ``stdin`` and ``stdout``, where they are given."""
    from pdb import Pdb

    Pdb(nosigint=True, **streams).set_trace(frame)


def _stop_later(frame: FrameType, ordered: bool, streams: dict[str, Any]) -> None:
    """Record a callback that stops in the debugger, and shows the values of the variables of ``frame``.

    Args:
      frame: the frame.
      ordered: whether the callback keeps its position among other ordered callbacks.
      streams: the ``stdin`` and ``stdout`` of the debugger, where they are given.
    """
    variables = dict(frame.f_locals)
    traced = {name: x for name, x in variables.items() if _has_values_later(x)}
    filename, line = frame.f_code.co_filename, frame.f_lineno
    # Compile a fake frame for the debugger: in the user's file, at the line after the call, with these variables.
    program = ast.parse("__stop__()\n__stop__")
    ast.increment_lineno(program, line - 1)
    code = compile(program, filename, "exec").replace(co_name=frame.f_code.co_name)
    surroundings = {**frame.f_globals, "__stop__": lambda: _stop(sys._getframe(1), streams)}

    def breakpoint(**values: Any) -> None:
        exec(code, surroundings, {**variables, **values})

    call_for_effect(breakpoint, (), traced, ordered, numbers=False)


def _has_values_later(x: Any) -> bool:
    """Whether a tree has traced leaves, and a callback can receive their values when the program runs.

    It can if all traced leaves belong to active transformations.
    """
    try:
        traced = [leaf for leaf in tree.leaves(x) if isinstance(leaf, Tracer)]
    except Exception:  # a user's container that is not fully constructed yet
        return False
    return bool(traced) and all(is_at_work(leaf._trace) for leaf in traced)
