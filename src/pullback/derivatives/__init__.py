"""Derivatives in other ways than one pass forwards or backwards."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.derivatives.preaccumulation import preaccumulate as preaccumulate

_NAMES = {
    "preaccumulate": "preaccumulation",
}  # each is imported when it is first used

__all__ = ["preaccumulate"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES} - {"Any", "TYPE_CHECKING", "annotations", "importlib"})
