"""``jax.extend.source_info_util``: the names that ``pullback.extend.source_info_util`` lacks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pullback.core.faces import face as _face
from pullback.core.trace import state as _state
from pullback.extend.source_info_util import SourceInfo as SourceInfo
from pullback.extend.source_info_util import current as current

SourceInfo.traceback = property(lambda self: self.location)  # type: ignore[attr-defined]  # JAX's name, for KFAC-JAX


class Frame(NamedTuple):
    """A line of a user's program, for jaxls."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int = 0
    end_line: int = 0
    end_column: int = 0


def new_source_info() -> SourceInfo:
    """Return an unknown location.

    >>> from pullback.compat.extras.extend.source_info_util import new_source_info
    >>> new_source_info().file_name
    """
    return SourceInfo(None, None)


def current_name_stack() -> str:
    """Return the current named scopes, separated by slashes.

    >>> from pullback import named_scope
    >>> from pullback.compat.extras.extend.source_info_util import current_name_stack
    >>> with named_scope("layer"):
    ...     current_name_stack()
    'layer'
    """
    return current().name_stack


def user_frame(source_info: SourceInfo) -> Frame | None:
    """Return the line of the user's program that a location is in; None if it is unknown.

    >>> from pullback.compat.extras.extend.source_info_util import current, user_frame
    >>> user_frame(current()).function_name
    '<module>'
    """
    if source_info.file_name is None:
        return None
    line = source_info.line or 0
    return Frame(source_info.file_name, source_info.function_name or "", line, 0, line, 0)


@contextmanager
def user_context(c: Any, *, name_stack: Any = None) -> Iterator[None]:
    """Attribute the operations of a block to another line, whose location is ``c``; None leaves them unchanged.

    Args:
      c: the location, the ``traceback`` of a :class:`SourceInfo`.
      name_stack: is ignored; JAX has it.
    """
    before = _state.source_loc
    _state.source_loc = c or before
    try:
        yield
    finally:
        _state.source_loc = before


_face(globals(), others=("pullback.extend.source_info_util",))
