"""Signals: convolutions, filters, designs, spectra and peaks, with SciPy's signatures: ``pullback.scipy.signal``."""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.signal.chirp_transforms import CZT, ZoomFFT, czt_points
from pullback.scipy.signal.convolutions import (
    choose_conv_method,
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
    oaconvolve,
)
from pullback.scipy.signal.designs import (
    bessel,
    butter,
    cheby1,
    cheby2,
    ellip,
    firwin,
    iirfilter,
    iirnotch,
    iirpeak,
    kaiser_atten,
    kaiser_beta,
    kaiserord,
)
from pullback.scipy.signal.dual_windows import check_COLA, check_NOLA, closest_STFT_dual_window
from pullback.scipy.signal.envelopes import envelope, max_len_seq
from pullback.scipy.signal.equal_ripples import remez
from pullback.scipy.signal.filters import lfilter, lfilter_zi, savgol_coeffs, savgol_filter, sosfilt
from pullback.scipy.signal.fir_designs import firls, firwin2, firwin_2d, minimum_phase
from pullback.scipy.signal.irregular import lombscargle, vectorstrength
from pullback.scipy.signal.linear_systems import StateSpace, TransferFunction, ZerosPolesGain, dlti, lti
from pullback.scipy.signal.local_filters import medfilt, medfilt2d, order_filter, wiener
from pullback.scipy.signal.orders import band_stop_obj, buttord, cheb1ord, cheb2ord, ellipord, iirdesign
from pullback.scipy.signal.partial_fractions import deconvolve, invres, invresz, residue, residuez, unique_roots
from pullback.scipy.signal.peaks import (
    argrelextrema,
    argrelmax,
    argrelmin,
    find_peaks,
    find_peaks_cwt,
    peak_prominences,
    peak_widths,
)
from pullback.scipy.signal.periodograms import coherence, periodogram, spectrogram
from pullback.scipy.signal.pole_placement import place_poles
from pullback.scipy.signal.prototypes import besselap, buttap, cheb1ap, cheb2ap, ellipap
from pullback.scipy.signal.representations import sos2tf, sos2zpk, tf2sos, tf2zpk, zpk2sos, zpk2tf
from pullback.scipy.signal.resampling import decimate, resample, resample_poly, upfirdn
from pullback.scipy.signal.responses import (
    findfreqs,
    freqs,
    freqs_zpk,
    freqz,
    freqz_sos,
    freqz_zpk,
    group_delay,
    sosfreqz,
)
from pullback.scipy.signal.short_time import ShortTimeFFT
from pullback.scipy.signal.simulations import dimpulse, dlsim, dstep, impulse, lsim, step
from pullback.scipy.signal.special_filters import gammatone, iircomb
from pullback.scipy.signal.spectra import csd, detrend, istft, stft, welch
from pullback.scipy.signal.splines import (
    cspline1d,
    cspline1d_eval,
    cspline2d,
    gauss_spline,
    qspline1d,
    qspline1d_eval,
    qspline2d,
    sepfir2d,
    spline_filter,
    symiirorder1,
    symiirorder2,
)
from pullback.scipy.signal.state_space import abcd_normalize, cont2discrete, normalize, ss2tf, ss2zpk, tf2ss, zpk2ss
from pullback.scipy.signal.system_responses import bode, dbode, dfreqresp, freqresp
from pullback.scipy.signal.transformations import (
    bilinear,
    bilinear_zpk,
    lp2bp,
    lp2bp_zpk,
    lp2bs,
    lp2bs_zpk,
    lp2hp,
    lp2hp_zpk,
    lp2lp,
    lp2lp_zpk,
)
from pullback.scipy.signal.transforms import correlation_lags, czt, hilbert, hilbert2, zoom_fft
from pullback.scipy.signal.waveforms import chirp, gausspulse, sawtooth, square, sweep_poly, unit_impulse
from pullback.scipy.signal.windows import get_window
from pullback.scipy.signal.zero_phase import filtfilt, lfiltic, sosfilt_zi, sosfiltfilt

__all__ = [
    "CZT", "ShortTimeFFT", "StateSpace", "TransferFunction", "ZerosPolesGain", "ZoomFFT", "abcd_normalize",
    "argrelextrema", "argrelmax", "argrelmin", "band_stop_obj", "bessel", "besselap", "bilinear", "bilinear_zpk",
    "bode", "buttap", "butter", "buttord", "cheb1ap", "cheb1ord", "cheb2ap", "cheb2ord", "cheby1", "cheby2",
    "check_COLA", "check_NOLA", "chirp", "choose_conv_method", "closest_STFT_dual_window", "coherence",
    "cont2discrete", "convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "csd", "cspline1d",
    "cspline1d_eval", "cspline2d", "czt", "czt_points", "dbode", "decimate", "deconvolve", "detrend", "dfreqresp",
    "dimpulse", "dlsim", "dlti", "dstep", "ellip", "ellipap", "ellipord", "envelope", "fftconvolve", "filtfilt",
    "find_peaks", "find_peaks_cwt", "findfreqs", "firls", "firwin", "firwin2", "firwin_2d", "freqresp", "freqs",
    "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "gammatone", "gauss_spline", "gausspulse", "get_window",
    "group_delay", "hilbert", "hilbert2", "iircomb", "iirdesign", "iirfilter", "iirnotch", "iirpeak", "impulse",
    "invres", "invresz", "istft", "kaiser_atten", "kaiser_beta", "kaiserord", "lfilter", "lfilter_zi", "lfiltic",
    "lombscargle", "lp2bp", "lp2bp_zpk", "lp2bs", "lp2bs_zpk", "lp2hp", "lp2hp_zpk", "lp2lp", "lp2lp_zpk", "lsim",
    "lti", "max_len_seq", "medfilt", "medfilt2d", "minimum_phase", "normalize", "oaconvolve", "order_filter",
    "peak_prominences", "peak_widths", "periodogram", "place_poles", "qspline1d", "qspline1d_eval", "qspline2d",
    "remez", "resample", "resample_poly", "residue", "residuez", "savgol_coeffs", "savgol_filter", "sawtooth",
    "sepfir2d", "sos2tf", "sos2zpk", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram",
    "spline_filter", "square", "ss2tf", "ss2zpk", "step", "stft", "sweep_poly", "symiirorder1", "symiirorder2",
    "tf2sos", "tf2ss", "tf2zpk", "unique_roots", "unit_impulse", "upfirdn", "vectorstrength", "welch", "wiener",
    "zoom_fft", "zpk2sos", "zpk2ss", "zpk2tf",
]  # fmt: skip
face(globals(), modules="wavelets windows")
