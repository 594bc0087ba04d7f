# Made by `make stubs` from the module itself, for type checkers and editors.

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
]
