"""Attributes of traces that libraries written for JAX read."""

from __future__ import annotations

from typing import Any


class TraceNames:
    """The base class of traces."""

    __slots__ = ()

    @property
    def main(self) -> Any:
        """The trace itself, by which Equinox recognizes the tracers of a transformation."""
        return self

    def full_raise(self, x: Any) -> Any:
        """Return ``x`` unchanged: a trace takes the values of its parents as they are. Quax calls this method."""
        return x
