"""Source locations in the user's program, found cheaply and formatted lazily."""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import itertools
import linecache
import opcode
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple, TypeVar

from pullback.core.config import config
from pullback.core.errors import PullbackError, where_explained
from pullback.core.registry import OwnsPrograms
from pullback.core.runtime import provides

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_internal: dict[str, bool] = {}
_excluded: list[str] = [_ROOT]
hidden_paths: list[str] = [_ROOT]
"""Path prefixes of the files that tracebacks of errors leave out; users' libraries add theirs."""

W = TypeVar("W")

Location = tuple[CodeType, int]
"""A code object and the index of an instruction in it, from which the line is computed later."""

FORWARD, TANGENT, BACKWARD = "", "jvp", "transpose"

Metadata = tuple[tuple[str, Any], ...]
"""Names with their values: strings, booleans or numbers."""


class Scope(NamedTuple):
    """The named scopes around an operation, the pass of differentiation that made it, and words for the compiler.

    Attributes:
      path: the names of the scopes, from the outermost, as in ``encoder/attention``.
      phase: ``FORWARD``, ``TANGENT`` (a derivative rule made the operation) or ``BACKWARD`` (transposition made it).
      metadata: names and values that the compiler reads with the operation, in the order of the names.
    """

    path: str
    phase: str = FORWARD
    metadata: Metadata = ()

    def within(self, outer: Scope | None) -> Scope:
        """Return this scope nested in ``outer``: ``path`` becomes ``outer.path/path``.

        The phase is the later one of the two scopes, in the order FORWARD, TANGENT, BACKWARD. Of metadata of one name,
        that of this scope counts.
        """
        if outer is None:
            return self
        path = f"{outer.path}/{self.path}" if outer.path and self.path else outer.path or self.path
        return Scope(path, max(self.phase, outer.phase), joined(outer.metadata, self.metadata))

    def label(self, operation: str) -> str:
        """Return the name of an operation in the scope, as in ``transpose(encoder/attention)/mul``."""
        if not self.phase:
            return f"{self.path}/{operation}" if self.path else operation
        return f"{self.phase}({self.path})/{operation}" if self.path else f"{self.phase}/{operation}"


def marked(metadata: Metadata) -> Scope | None:
    """Return the scope of operations that have metadata, and are in no named scope; None without metadata."""
    return Scope("", metadata=metadata) if metadata else None


def joined(outer: Metadata, inner: Metadata) -> Metadata:
    """Join metadata; a value of ``inner`` replaces that of the same name, and None removes it.

    >>> from pullback.core.source import joined
    >>> joined((("group", "1"), ("stage", "loss")), (("group", "2"), ("stage", None)))
    (('group', '2'),)
    """
    if not inner or not outer:
        return outer or tuple([(name, value) for name, value in inner if value is not None])
    return tuple(sorted((name, value) for name, value in {**dict(outer), **dict(inner)}.items() if value is not None))


def is_internal(filename: str) -> bool:
    """Whether a file belongs to Pullback, or was passed to :func:`exclude`. Source locations skip such files."""
    known = _is_internal.get(filename)
    if known is None:
        known = _is_internal[filename] = filename.startswith(tuple(_excluded))
    return known


def exclude(path: str) -> None:
    """Exclude a file or directory from source locations: its operations get the location of the line that calls it."""
    if path not in _excluded:
        _excluded.append(path)
        _is_internal.clear()


def is_hidden(filename: str) -> bool:
    """Whether tracebacks of errors leave out the frames of the file ``filename``."""
    return filename.startswith(tuple(hidden_paths)) or is_internal(filename)


def here() -> Location | None:
    """Return the location of the user's line that is being run; None if there is none.

    It is in the innermost frame on the stack that is not Pullback's own.
    """
    frame: FrameType | None = sys._getframe(1)
    internal = _is_internal
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if not (internal[name] if name in internal else is_internal(name)):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def called() -> str:
    """Return the name of the library function that the user called, as in ``roll``; empty if it is not known.

    It is for errors of what many functions share, for which the frames on the stack are searched.
    """
    name, frame = "", sys._getframe(1).f_back
    while frame is not None and is_internal(frame.f_code.co_filename):
        if frame.f_code.co_filename.startswith(_FUNCTIONS):
            own = _name_of_running(frame)
            name = own if own.isidentifier() and own[0] != "_" else name
        frame = frame.f_back
    return name


def _name_of_running(frame: FrameType) -> str:
    """Return the name of the function that a frame runs.

    Functions that others make share their code, and each has its name in the variable ``name``.
    """
    own = frame.f_code.co_name
    found: Any = frame.f_globals.get(own)
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    if getattr(found, "__code__", None) is not frame.f_code:
        own = frame.f_locals.get("name", "")
    return own if isinstance(own, str) else ""


def by_name(message: str) -> str:
    """Put the name of the library function that the user called in front of a message."""
    name = called()
    return f"{name}: {message}" if name else message


_FUNCTIONS = tuple(f"{_ROOT}{room}{os.sep}" for room in ("numpy", "lax", "nn", "random", "scipy"))
"""Where the library functions are that users call."""


def is_formatting() -> bool:
    """Whether the caller's caller evaluates ``text % values``, which converts a number to Python only to print it."""
    frame = sys._getframe(2)
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) - 1 and code[at] == _BINARY_OP and code[at + 1] in _REMAINDERS


_BINARY_OP = opcode.opmap["BINARY_OP"]
_REMAINDERS = (6, 19)  # Python's NB_REMAINDER and NB_INPLACE_REMAINDER


def calling_expression() -> str:
    """Return ``, in `math.sin(a)` at file:line`` for the user's expression that is being evaluated.

    Return only ``, at file:line`` if the expression is unknown or long, and an empty string if the line is unknown too.
    The expression shows which function was called even if the function is written in C, and so has no frame.
    """
    location = here()
    if location is None:
        return ""
    code, lasti = location
    first, last, start, end = next(itertools.islice(code.co_positions(), lasti // 2, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:
        return f", at {describe(location)}"
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]  # columns count bytes
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    text = " ".join(line.decode(errors="replace").strip() for line in lines)
    if dis.opname[code.co_code[lasti]] == "STORE_SUBSCR":
        text = f"{text} = ..."
    return f", in `{text}` at {describe(location)}" if 3 <= len(text) <= _LONGEST else f", at {describe(location)}"


_LONGEST = 80


def line_number(location: Location) -> int:
    """Return the line number of a location, a code object and the index of an instruction."""
    code, lasti = location
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def describe(location: Location | None) -> str:
    """Format a location as ``file:line (function)``."""
    if location is None:
        return "an unknown line"
    code = location[0]
    return f"{code.co_filename}:{line_number(location)} ({code.co_name})"


_DEEPEST = 20  # nested transformations; also bounds the search in objects that have every attribute


def describe_function(function: object) -> str:
    """Format a function as ``name at file:line``, or as its repr if it has no Python code."""
    if type(function) is FunctionType and not function.__dict__:  # fast path: it wraps nothing
        code = function.__code__
        if is_internal(code.co_filename):
            return function.__qualname__
        return f"{function.__qualname__} at {code.co_filename}:{code.co_firstlineno}"
    while isinstance(function, functools.partial):
        function = function.func
    for _ in range(_DEEPEST):
        wrapped = attribute(function, "__wrapped__")
        if wrapped is None:
            break
        function = wrapped
    name = attribute(function, "__qualname__") or attribute(function, "__name__") or _repr(function)
    code = attribute(function, "__code__")
    if not isinstance(code, CodeType) or is_internal(code.co_filename):
        return str(name)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}"


def attribute(x: object, name: str) -> Any:
    """Return ``getattr(x, name)``, or None if there is no such attribute or the look-up raises an error.

    It is for users' objects, whose errors must not replace ours.
    """
    try:
        return getattr(x, name, None)
    except Exception:
        return None


def attributes_of(function: object) -> dict[str, Any]:
    """Return the attributes of a callable that a wrapper for it should copy, as a dictionary.

    If a transformation of this library returned the callable, these are only its public attributes.
    """
    found = attribute(function, "__dict__")
    if not isinstance(found, dict):
        return {}
    return {k: x for k, x in found.items() if k[:1] != "_"} if isinstance(function, OwnsPrograms) else found


def _repr(x: object) -> str:
    try:
        return repr(x)
    except Exception:
        return f"an object of type {type(x).__name__}"


def plain_name(function: object) -> str:
    """Return the ``__name__`` of a function, or that of the function in a ``partial``; or ``<unnamed function>``."""
    while isinstance(function, functools.partial):
        function = function.func
    name = attribute(function, "__name__")
    return name if isinstance(name, str) else "<unnamed function>"


def signature(function: Any) -> inspect.Signature:
    """Return the signature of a function.

    Raises:
      ValueError: the signature cannot be determined.
    """
    try:
        return inspect.signature(function)
    except Exception as error:  # attribute access on a user's object may raise anything
        raise ValueError(f"no signature: {error}") from None


def named_as(function: Any, attributes: bool = True) -> Callable[[W], W]:
    """Return a decorator that gives a wrapper the name, docstring and attributes of ``function``.

    It does what ``functools.wraps`` does, also for callables with unusual attributes, such as a name that is not a
    string.

    Args:
      function: the user's function.
      attributes: whether to copy the other attributes of ``function`` too.
    """

    def decorate(wrapper: W) -> W:
        if attributes:
            vars(wrapper).update(attributes_of(function))
        for name in ("__module__", "__qualname__", "__doc__"):
            value = attribute(function, name)
            if isinstance(value, str) or name == "__doc__":  # not the docstring of the wrapper's class
                setattr(wrapper, name, value if isinstance(value, str) else None)
        hints = attribute(function, "__annotations__")
        wrapper.__annotations__ = hints if isinstance(hints, dict) else {}
        wrapper.__name__ = plain_name(function)  # type: ignore[attr-defined]
        wrapper.__wrapped__ = function  # type: ignore[attr-defined]
        return wrapper

    return decorate


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the user's line that is being run."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and is_internal(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def hide_internal_frames(error: BaseException) -> None:
    """Remove Pullback's own frames from the traceback of an error that propagates to the user.

    The traceback of a PullbackError then ends at the user's line. Any other error keeps the innermost frame, where it
    was raised. A cause that no frame of the user's is in, such as NumPy's error, is left out; others are shown in the
    same way. All frames stay if the switch ``traceback_filtering`` is ``"off"``; its other values mean the same.
    """
    if config.traceback_filtering == "off":
        return
    ours = isinstance(error, PullbackError)
    error.__traceback__ = _without_internal_frames(error.__traceback__, ours)
    while ours and error.__context__ is not None and _is_all_internal(error.__context__.__traceback__):
        error.__context__ = error.__context__.__context__  # NumPy's error, which ours replaces
    cause = error.__cause__
    if cause is None or cause.__traceback__ is None:
        return
    if ours and _is_all_internal(cause.__traceback__):
        error.__cause__ = None
    else:
        cause.__traceback__ = _without_internal_frames(cause.__traceback__, isinstance(cause, PullbackError))


@provides
def hide_frames(error: Exception) -> None:
    """Remove Pullback's own frames from the traceback of an error; see :func:`hide_internal_frames`."""
    hide_internal_frames(error)


def _is_all_internal(tb: TracebackType | None) -> bool:
    while tb is not None:
        if not is_hidden(tb.tb_frame.f_code.co_filename):
            return False
        tb = tb.tb_next
    return True


def hide_when_uncaught(advice: Callable[[Exception], str] = lambda error: "") -> None:
    """Install an exception hook that prints uncaught errors without Pullback's own frames, and what explains them.

    A transformation removes these frames when an error passes through it; eager operations do not, for speed.
    ``advice`` returns a line to print below an error that is not of a class of Pullback's, or an empty one.
    """
    show = sys.excepthook

    @functools.wraps(show)
    def hook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
        if isinstance(error, Exception) and tb is error.__traceback__:
            with contextlib.suppress(Exception):  # a failure here must not hide the error
                hide_internal_frames(error)
                tb = error.__traceback__
                note = where_explained(error) or advice(error)
                if note and note not in getattr(error, "__notes__", ()):  # a prompt may show an error twice
                    error.add_note(note)
        show(kind, error, tb)

    sys.excepthook = hook


def _without_internal_frames(tb: TracebackType | None, even_the_last: bool) -> TracebackType | None:
    frames: list[TracebackType] = []
    while tb is not None:
        last = tb.tb_next is None and not even_the_last
        if last or not is_hidden(tb.tb_frame.f_code.co_filename):
            frames.append(tb)
        tb = tb.tb_next
    result: TracebackType | None = None
    for step in reversed(frames):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result


def format_location(location: Location | None) -> str:
    """Format a location as in a traceback: the file, line number and function, and on a second line the source text."""
    if location is None:
        return "  (unknown line)"
    code = location[0]
    line = line_number(location)
    summary = traceback.FrameSummary(code.co_filename, line, code.co_name)
    return f'  File "{code.co_filename}", line {line}, in {code.co_name}\n    {summary.line}'
