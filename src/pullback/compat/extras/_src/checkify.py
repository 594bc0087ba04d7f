"""``jax._src.checkify``: Flax NNX takes from here what ``jax.experimental.checkify`` has."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    try:
        return getattr(importlib.import_module("pullback.experimental.checkify"), name)
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
