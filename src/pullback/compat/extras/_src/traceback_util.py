"""``jax._src.traceback_util``: Equinox, jaxtyping and Flax hide their own frames in tracebacks."""

from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from pullback.core import source
from pullback.transforms.functions import api_boundary as _boundary

_exclude_paths = source.hidden_paths
"""Path prefixes of the files to hide; Flax adds and removes entries."""


def register_exclusion(path: str) -> None:
    """Hide the frames of a file, or of the files of a directory, in the tracebacks of errors.

    Args:
      path: a prefix of the files' paths.

    >>> from pullback.compat.extras._src.traceback_util import _exclude_paths, register_exclusion
    >>> register_exclusion("/opt/library/")
    >>> _exclude_paths.pop()
    '/opt/library/'
    """
    if path not in _exclude_paths:
        _exclude_paths.append(path)


def include_frame(f: FrameType) -> bool:
    """Whether tracebacks of errors show a frame.

    Args:
      f: the frame.

    >>> import sys
    >>> from pullback.compat.extras._src.traceback_util import include_frame
    >>> include_frame(sys._getframe())
    True
    """
    return not source.is_hidden(f.f_code.co_filename)


def filter_traceback(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of the library and of excluded files. jaxls and BrainState need it.

    >>> from pullback.compat.extras._src.traceback_util import filter_traceback
    >>> filter_traceback(None)
    """
    return source._without_internal_frames(tb, True)


def api_boundary(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Wrap a function so that the library's frames are removed from the tracebacks of its errors.

    Args:
      fun: the function.
      options: are ignored; JAX has them.

    >>> from pullback.compat.extras._src.traceback_util import api_boundary
    >>> api_boundary(lambda x: x + 1)(1)
    2
    """
    return _boundary.api_boundary(fun)
