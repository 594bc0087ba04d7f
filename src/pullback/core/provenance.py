"""Provenance: the source line and the scope of an operation on a tape, which operations derived from it inherit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pullback.core import source
from pullback.core.config import config, exchange
from pullback.core.trace import state

Provenance = tuple[source.Location | None, str, source.Metadata]
"""The source location of an operation, and the path and the metadata of its scope."""


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
    """Return the source location, the path of named scopes and the metadata to record with an operation.

    Return None unless the thread is in a named scope or debugs NaNs.
    """
    scope = state.scope
    if scope is None and not state.bottom.watches:
        return None
    location = state.source_loc or source.here()
    return (location, "", ()) if scope is None else (location, scope.path, scope.metadata)


def of(provenance: Provenance, direction: str) -> AbstractContextManager[None]:
    """A context manager in which operations get the source location and scope of an earlier operation.

    Args:
      provenance: the location and scope of the earlier operation, from :func:`current`.
      direction: ``source.TANGENT`` or ``source.BACKWARD``: the pass of differentiation to which the new operations
        belong.
    """
    source_loc, path, metadata = provenance
    return within(source_loc, source.Scope(path, direction, metadata))


@contextmanager
def with_metadata(metadata: Mapping[str, Any]) -> Iterator[None]:
    """A context manager in which operations of programs have the metadata too; see :func:`source.joined`."""
    added = tuple(sorted(metadata.items()))
    before, scope = config.xla_metadata, state.scope
    try:
        exchange("xla_metadata", source.joined(before, added))
        state.scope = source.Scope("", metadata=added).within(scope)
        yield
    finally:
        state.scope = scope
        exchange("xla_metadata", before)
