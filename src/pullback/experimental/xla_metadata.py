"""Marks of operations for the compiler: ``jax.experimental.xla_metadata``."""

from __future__ import annotations

from pullback.control.metadata import (
    fuse_limit as fuse_limit,
)
from pullback.control.metadata import (
    must_fuse_call as must_fuse_call,
)
from pullback.control.metadata import (
    set_xla_metadata as set_xla_metadata,
)
from pullback.control.metadata import (
    xla_metadata_call as xla_metadata_call,
)
from pullback.control.metadata import (
    xla_metadata_call2 as xla_metadata_call2,
)
from pullback.core.faces import face

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call2"]
face(globals())
