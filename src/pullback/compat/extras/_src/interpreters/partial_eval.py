"""``jax._src.interpreters.partial_eval``: the names of ``jax.interpreters.partial_eval``, each looked up when used."""

from typing import Any

from pullback.interpreters import partial_eval as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)


def __dir__() -> list[str]:
    return dir(_public)
