"""Where in the user's program something happened, found cheaply and spelled out lazily."""

from __future__ import annotations

import os
import sys
import traceback
from types import CodeType, FrameType, TracebackType

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_internal: dict[str, bool] = {}

Location = tuple[CodeType, int]
"""A code object and the index of an instruction in it: everything needed to name a line later."""


def is_internal(filename: str) -> bool:
    """Whether a file belongs to Pullback itself (its examples and tests do not)."""
    known = _is_internal.get(filename)
    if known is None:
        known = _is_internal[filename] = filename.startswith(_ROOT)
    return known


def here() -> Location | None:
    """The innermost instruction on the stack that is not Pullback's own."""
    frame: FrameType | None = sys._getframe(1)
    internal = _is_internal
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if not (internal[name] if name in internal else is_internal(name)):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def line_number(location: Location) -> int:
    """The line of a location."""
    code, lasti = location
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def describe(location: Location | None) -> str:
    """A location as ``file:line (function)``."""
    if location is None:
        return "an unknown line"
    code = location[0]
    return f"{code.co_filename}:{line_number(location)} ({code.co_name})"


def describe_function(function: object) -> str:
    """A function as ``name at file:line``, or as its repr where it has no code of its own."""
    while hasattr(function, "func"):
        function = function.func
    function = getattr(function, "__wrapped__", function)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    code = getattr(function, "__code__", None)
    if code is None or is_internal(code.co_filename):
        return str(name)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}"


def without_internal_frames(tb: TracebackType | None) -> TracebackType | None:
    """A traceback less the frames of Pullback itself; the last one is kept if nothing else would be."""
    if tb is None:
        return None
    frames: list[TracebackType] = []
    step: TracebackType | None = tb
    while step is not None:
        if not is_internal(step.tb_frame.f_code.co_filename):
            frames.append(step)
        step = step.tb_next
    result: TracebackType | None = None
    for step in reversed(frames):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result if result is not None else tb


def format_location(location: Location | None) -> str:
    """A location with the text of its line, as a traceback shows it."""
    if location is None:
        return "  (unknown line)"
    code = location[0]
    line = line_number(location)
    summary = traceback.FrameSummary(code.co_filename, line, code.co_name)
    return f'  File "{code.co_filename}", line {line}, in {code.co_name}\n    {summary.line}'
