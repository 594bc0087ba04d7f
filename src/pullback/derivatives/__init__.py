"""Higher derivatives, and derivatives by their structure.

>>> from pullback.derivatives import taylor
>>> import pullback.numpy as pnp
>>> print([round(float(c), 4) for c in taylor(pnp.exp, 0.0, 4)])
[1.0, 1.0, 0.5, 0.1667, 0.0417]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.derivatives.jets import jet as jet
    from pullback.derivatives.jets import taylor as taylor
    from pullback.derivatives.mixed import derivative_tensor as derivative_tensor

_NAMES = {
    "derivative_tensor": "mixed",
    "jet": "jets",
    "taylor": "jets",
}  # the file of each, imported when it is first used

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'pullback.derivatives' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"pullback.derivatives.{_NAMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
