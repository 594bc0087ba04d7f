"""Clean-up of a program before it is written for the compiler."""

from __future__ import annotations

from pullback.core.jaxpr import ClosedJaxpr


def clean(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without what it does not need."""
    return closed
