"""Source locations of operations, under names of ``jax.extend.source_info_util``; Flax excludes its own files."""

from pullback.core import source as _source
from pullback.core.faces import face
from pullback.core.jaxpr_info import SourceInfo as SourceInfo
from pullback.core.trace import state as _state


def register_exclusion(path: str) -> None:
    """Exclude a file or directory from source locations: operations are attributed to its callers instead.

    Args:
      path: a prefix of the files' paths.

    >>> from pullback.extend.source_info_util import register_exclusion
    >>> register_exclusion("/opt/library/layers.py")
    """
    _source.exclude(path)


def current() -> SourceInfo:
    """Return the current location in the user's program, with its named scopes.

    Returns:
      The location.

    >>> from pullback.extend.source_info_util import current
    >>> current().function_name
    '<module>'
    """
    return SourceInfo(_state.source_loc or _source.here(), _state.scope)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Format a location in the user's program as ``file:line (function)``.

    Args:
      source_info: the location, from an equation or :func:`current`.
      num_frames: is ignored, since only one line is known; JAX has it.

    Returns:
      The text.

    >>> from pullback.extend.source_info_util import current, summarize
    >>> summarize(current()).endswith("(<module>)")
    True
    """
    return repr(source_info)


__all__ = ["SourceInfo", "current", "register_exclusion", "summarize"]
face(globals())
