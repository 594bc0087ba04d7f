"""Signals: convolutions, filters and spectra, with SciPy's signatures: ``pullback.scipy.signal``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.signal.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from pullback.scipy.signal.filters import lfilter, lfilter_zi, savgol_filter, sosfilt
from pullback.scipy.signal.spectra import csd, detrend, istft, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "lfilter",
    "lfilter_zi", "savgol_filter", "sosfilt", "stft", "welch",
]  # fmt: skip
face(globals())
