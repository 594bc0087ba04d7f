"""``jax._src.interpreters.mlir``: the names of ``jax.interpreters.mlir``, each looked up when asked for."""

from typing import Any

from pullback.interpreters import mlir as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
