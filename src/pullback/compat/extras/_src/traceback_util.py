"""``jax._src.traceback_util``: Equinox, jaxtyping and Flax leave their own lines out of tracebacks."""

from collections.abc import Callable
from types import FrameType
from typing import Any

from pullback.core import source
from pullback.transforms.functions import api_boundary as _boundary

_exclude_paths = source.hidden_paths
"""What the names of files begin with whose lines are left out; Flax adds to it and takes from it."""


def register_exclusion(path: str) -> None:
    """Leave the lines of a file, or of the files of a directory, out of the tracebacks of errors.

    Args:
      path: what the names of the files begin with.

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
    >>> include_frame(sys._getframe())
    True
    """
    return not source.is_hidden(f.f_code.co_filename)


def api_boundary(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A function out of which errors come without the lines of the library.

    Args:
      fun: the function.
      options: are taken for JAX's sake.

    >>> api_boundary(lambda x: x + 1)(1)
    2
    """
    return _boundary.api_boundary(fun)
