"""Where operations are written, under names of ``jax.extend.source_info_util``: Flax leaves its own files out."""

from pullback.core import source as _source
from pullback.core.faces import face
from pullback.core.jaxpr_info import SourceInfo as SourceInfo
from pullback.core.trace import state as _state


def register_exclusion(path: str) -> None:
    """Count a file, or all files of a directory, as no user's: operations are not said to be written there.

    Args:
      path: what the names of the files begin with.

    >>> register_exclusion("/opt/library/layers.py")
    """
    _source.exclude(path)


def current() -> SourceInfo:
    """Where the user's program is, and in which named scopes.

    >>> current().function_name
    '<module>'
    """
    return SourceInfo(_state.source_loc or _source.here(), _state.scope)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """A place in the user's program as text, ``file:line (function)``.

    Args:
      source_info: the place: that of an equation, or :func:`current`.
      num_frames: is taken for JAX's sake: one line is known.

    >>> summarize(current()).endswith("(<module>)")
    True
    """
    return repr(source_info)


__all__ = ["SourceInfo", "current", "register_exclusion", "summarize"]
face(globals())
