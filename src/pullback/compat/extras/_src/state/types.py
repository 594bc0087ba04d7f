"""``jax._src.state.types``: the type of references, which Flax NNX checks for."""

from __future__ import annotations

from pullback.core.refs import AbstractRef

__all__ = ["AbstractRef"]
