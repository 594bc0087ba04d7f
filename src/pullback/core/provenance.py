"""The line and the scope that an operation on a tape was recorded in, which what is made of it carries too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pullback.core import source
from pullback.core.trace import state

Provenance = tuple[source.Location | None, str]
"""The line that an operation was written in, and the path of its scope."""


@contextmanager
def within(source_loc: source.Location | None, scope: source.Scope | None) -> Iterator[None]:
    """A block whose operations carry a line and a scope."""
    before = state.source_loc, state.scope
    state.source_loc, state.scope = source_loc, scope
    try:
        yield
    finally:
        state.source_loc, state.scope = before


def current() -> Provenance | None:
    """The line and the scope of an operation that is recorded, if the thread is in a scope, or looks for NaNs."""
    scope = state.scope
    if scope is None and not state.bottom.watches:
        return None
    return state.source_loc or source.here(), "" if scope is None else scope.path


def of(provenance: Provenance, direction: str) -> AbstractContextManager[None]:
    """A block whose operations belong to a pass of differentiation of an operation."""
    source_loc, path = provenance
    return within(source_loc, source.Scope(path, direction))
