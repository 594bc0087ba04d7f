"""Groups of operations that the compiler schedules together: ``jax.experimental.scheduling_groups``."""

from __future__ import annotations

from pullback.control.metadata import scheduling_group as scheduling_group
from pullback.core.faces import face

__all__ = ["scheduling_group"]
face(globals())
