"""Signals: convolutions, filters, spectra and peaks, with SciPy's signatures: ``pullback.scipy.signal``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.signal.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from pullback.scipy.signal.filters import lfilter, lfilter_zi, savgol_filter, sosfilt
from pullback.scipy.signal.peaks import (
    argrelextrema,
    argrelmax,
    argrelmin,
    find_peaks,
    peak_prominences,
    peak_widths,
)
from pullback.scipy.signal.resampling import decimate, resample, resample_poly, upfirdn
from pullback.scipy.signal.spectra import csd, detrend, istft, stft, welch
from pullback.scipy.signal.zero_phase import filtfilt, lfiltic, sosfilt_zi, sosfiltfilt

__all__ = [
    "argrelextrema", "argrelmax", "argrelmin", "convolve", "convolve2d", "correlate", "correlate2d", "csd",
    "decimate", "detrend", "fftconvolve", "filtfilt", "find_peaks", "istft", "lfilter", "lfilter_zi", "lfiltic",
    "peak_prominences", "peak_widths", "resample", "resample_poly", "savgol_filter", "sosfilt", "sosfilt_zi",
    "sosfiltfilt", "stft", "upfirdn", "welch",
]  # fmt: skip
face(globals())
