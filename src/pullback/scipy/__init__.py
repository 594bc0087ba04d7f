"""Functions of SciPy on Pullback's arrays, with SciPy's signatures where JAX has them; all can be transformed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.scipy import cluster as cluster
    from pullback.scipy import fft as fft
    from pullback.scipy import integrate as integrate
    from pullback.scipy import interpolate as interpolate
    from pullback.scipy import linalg as linalg
    from pullback.scipy import ndimage as ndimage
    from pullback.scipy import optimize as optimize
    from pullback.scipy import signal as signal
    from pullback.scipy import sparse as sparse
    from pullback.scipy import spatial as spatial
    from pullback.scipy import special as special
    from pullback.scipy import stats as stats

__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:  # imported when it is first used
        return importlib.import_module(f"pullback.scipy.{name}")
    raise AttributeError(f"module 'pullback.scipy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
