"""Provenance: the source line and the scope of an operation on a tape, which operations derived from it inherit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pullback.core import source
from pullback.core.trace import state

Provenance = tuple[source.Location | None, str]
"""The source location of an operation, and the path of its scope."""


@contextmanager
def within(source_loc: source.Location | None, scope: source.Scope | None) -> Iterator[None]:
    """A context manager in which recorded operations get this source location and this named scope."""
    before = state.source_loc, state.scope
    state.source_loc, state.scope = source_loc, scope
    try:
        yield
    finally:
        state.source_loc, state.scope = before


def current() -> Provenance | None:
    """Return the source location and the path of named scopes to record with an operation.

    Return None unless the thread is in a named scope or debugs NaNs.
    """
    scope = state.scope
    if scope is None and not state.bottom.watches:
        return None
    return state.source_loc or source.here(), "" if scope is None else scope.path


def of(provenance: Provenance, direction: str) -> AbstractContextManager[None]:
    """A context manager in which operations get the source location and scope of an earlier operation.

    Args:
      provenance: the location and scope of the earlier operation, from :func:`current`.
      direction: ``source.TANGENT`` or ``source.BACKWARD``: the pass of differentiation to which the new operations
        belong.
    """
    source_loc, path = provenance
    return within(source_loc, source.Scope(path, direction))
