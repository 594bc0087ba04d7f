"""Rows of ``scipy.signal``: convolutions, filters, splines, spectra, peaks, waves and windows."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.signal as oracle
import scipy.signal.windows as oracle_windows

from benchmarks.science.rows import Part, Row
from pullback import numpy as jnp
from pullback.scipy import signal
from pullback.scipy.signal import windows

LARGE = 10_000
DENOMINATOR = np.array([1.0, -0.9, 0.4])
SECTIONS = oracle.butter(4, 0.3, output="sos")
Make = Callable[[], Sequence[Any]]
Call = Callable[..., Any]


def joined(module: Any, out: Any) -> Any:
    """Return results as one real array: complex numbers as their parts, several arrays as one vector."""
    arrays = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(arrays) == 1 and not module.iscomplexobj(arrays[0]):
        return module.asarray(arrays[0])
    pieces = [module.ravel(module.asarray(x)) for x in arrays]
    real = [y for x in pieces for y in ((x.real, x.imag) if module.iscomplexobj(x) else (x,))]
    return module.concatenate(real)


def first(out: Any) -> Any:
    """Return the first of several results."""
    return out[0] if isinstance(out, (tuple, list)) else out


def written(function: Any) -> str:
    """Return the parameters of a function as the page shows them."""
    found = inspect.signature(function).parameters.values()
    names = ["**" + p.name if p.kind is p.VAR_KEYWORD else p.name for p in found if p.kind is not p.KEYWORD_ONLY]
    words = [p.name for p in found if p.kind is p.KEYWORD_ONLY and p.name not in ("size", "fill_value")]
    return f"({', '.join([*names, *(['*', *words] if words else [])])})"


def row(
    name: str, call: Call, small: Make, large: Make | None = None, *, apart: bool = False, module: Any = signal,
    **more: Any,
) -> Row:  # fmt: skip
    """Return a row of a function of a module of SciPy's or ours, and of arrays.

    Args:
      name: the name of the function.
      call: from the module and the arrays to one result or several.
      small, large: the arrays, as in the row; those of ``small`` if there are no others.
      apart: whether the times are those of the call alone, because results are joined for the checks.
      module: the module of ours.
      more: the other attributes of the row.
    """
    theirs, path = (oracle, "signal") if module is signal else (oracle_windows, "signal.windows")
    timed = (lambda *a: first(call(module, *a)), lambda *a: first(call(theirs, *a))) if apart else None
    return Row(
        f"scipy.{path}.{name}", written(getattr(module, name)), lambda *a: joined(jnp, call(module, *a)),
        lambda *a: joined(np, call(theirs, *a)), small, large or small, timed=timed, **more,
    )  # fmt: skip


def drawn(*shapes: Any) -> Make:
    """Return the function that draws normal numbers of some shapes."""
    return lambda: [np.random.default_rng(k).standard_normal(s) for k, s in enumerate(shapes)]


def given(*arrays: Any) -> Make:
    """Return the function that makes some arrays."""
    return lambda: [np.asarray(x, float) for x in arrays]


def of_signal(name: str, call: Call, n: int = 24, **more: Any) -> Row:
    """Return a row of a function of a signal of 10,000 elements, and ``n`` for the checks."""
    return row(name, call, drawn(n), drawn(LARGE), **more)


def of_image(name: str, call: Call, side: int = 7, **more: Any) -> Row:
    """Return a row of a function of an image of 100 by 100 elements, and about ``side`` by ``side`` for the checks."""
    return row(name, call, drawn((side, side - 1)), drawn((100, 100)), **more)


def by_jax(name: str, call: Call) -> dict[str, Any]:
    """Return the attributes of a row whose function JAX has too."""

    def peer() -> Call:
        import jax.scipy.signal

        return jax.jit(lambda *a: call(jax.scipy.signal, *a))  # type: ignore[no-any-return]

    return {"peer": peer, "peer_name": "jax.scipy"}


def also_in_jax(name: str, call: Call, small: Make, large: Make, **more: Any) -> Row:
    """Return a row of a function that JAX has too."""
    return row(name, call, small, large, **by_jax(name, call), **more)


def times(n: int, end: float) -> np.ndarray[Any, Any]:
    """Return increasing numbers between 0 and ``end`` at unequal distances."""
    return np.sort(np.random.default_rng(3).uniform(0.01, end, n))


def bumps(n: int) -> np.ndarray[Any, Any]:
    """Return a signal with high peaks."""
    return 5 * np.sin(0.9 * np.arange(n)) + 0.3 * np.random.default_rng(6).standard_normal(n)


def peaks(n: int) -> np.ndarray[Any, Any]:
    """Return the positions of the peaks of ``bumps``."""
    return oracle.find_peaks(bumps(n), prominence=2.0)[0]


def found_peaks(module: Any, x: Any, **options: Any) -> Any:
    """Return the prominences of the peaks of a signal."""
    return module.find_peaks(x, prominence=2.0, **options)[1]["prominences"]


def of_known_number(x: Any) -> Any:
    """Return the same for a number of peaks that is known, as a compiled function needs it."""
    return found_peaks(signal, x, size=len(peaks(x.shape[0])))


def of_peaks(name: str, call: Call) -> Row:
    """Return a row of a function of a signal with peaks."""
    return row(name, call, lambda: [bumps(30)], lambda: [bumps(LARGE)])


def sections(module: Any, b: Any, a: Any) -> Any:
    """Return the sections of a filter, whose fourth coefficients SciPy takes only if they are ones."""
    xp = jnp if module is signal else np
    return xp.concatenate([b, xp.ones((len(b), 1)), a], axis=1)


def short_time(module: Any, x: Any, window: Any) -> Any:
    """Return the transform of a signal by an object."""
    return module.ShortTimeFFT(window, 8, 1.0).stft(x)


FILTER = lambda n: lambda: [np.array([0.2, 0.3, 0.1]), DENOMINATOR, *drawn(n)()]
SOS = lambda n: lambda: [SECTIONS[:, :3], SECTIONS[:, 4:], *drawn(n)()]
FILTERS = Part(
    "Filters and spectra of signals",
    "`scipy.signal`. [Signals](signals.md) describes it. Signals have 10,000 elements, and images 100 by 100. Several\n"
    "results, and complex ones, are joined for the checks; then the times are those of the function alone, eager.",
    (
        also_in_jax("convolve", lambda m, x, y: m.convolve(x, y), drawn(9, 4), drawn(LARGE, 100)),
        also_in_jax("correlate", lambda m, x, y: m.correlate(x, y), drawn(9, 4), drawn(LARGE, 100)),
        also_in_jax("fftconvolve", lambda m, x, y: m.fftconvolve(x, y), drawn(9, 4), drawn(LARGE, 500)),
        row("oaconvolve", lambda m, x, y: m.oaconvolve(x, y), drawn(9, 4), drawn(LARGE, 500)),
        also_in_jax("convolve2d", lambda m, x, y: m.convolve2d(x, y), drawn((6, 5), (3, 3)), drawn((100, 100), (3, 3))),
        also_in_jax("correlate2d", lambda m, x, y: m.correlate2d(x, y), drawn((6, 5), (3, 3)),
                    drawn((100, 100), (3, 3))),
        row("deconvolve", lambda m, x: m.deconvolve(x, DENOMINATOR), drawn(9), drawn(LARGE), apart=True),
        row("lfilter", lambda m, b, a, x: m.lfilter(b, a, x), FILTER(20), FILTER(LARGE)),
        row("lfilter_zi", lambda m, b, a: m.lfilter_zi(b, a), given([0.2, 0.3, 0.1], DENOMINATOR)),
        row("lfiltic", lambda m, b, a, y: m.lfiltic(b, a, y), FILTER(2)),
        row("filtfilt", lambda m, b, a, x: m.filtfilt(b, a, x), FILTER(20), FILTER(LARGE)),
        row("sosfilt", lambda m, b, a, x: m.sosfilt(sections(m, b, a), x), SOS(20), SOS(LARGE)),
        row("sosfilt_zi", lambda m, s: m.sosfilt_zi(s), given(SECTIONS)),
        row("sosfiltfilt", lambda m, b, a, x: m.sosfiltfilt(sections(m, b, a), x), SOS(30), SOS(LARGE)),
        of_signal("savgol_filter", lambda m, x: m.savgol_filter(x, 7, 2)),
        of_signal("medfilt", lambda m, x: m.medfilt(x, 5)),
        of_image("medfilt2d", lambda m, x: m.medfilt2d(x, 3)),
        of_image("order_filter", lambda m, x: m.order_filter(x, np.ones((3, 3)), 2)),
        of_image("wiener", lambda m, x: m.wiener(x, 3)),
        row("symiirorder1", lambda m, x, c, z: m.symiirorder1(x, c, z), lambda: [*drawn(60)(), 0.7, 0.4],
            lambda: [*drawn(LARGE)(), 0.7, 0.4], anchor_error=1e-10),
        row("symiirorder2", lambda m, x, r, w: m.symiirorder2(x, r, w, 1e-24), lambda: [*drawn(90)(), 0.5, 0.6],
            lambda: [*drawn(LARGE)(), 0.5, 0.6], anchor_error=1e-10),
        of_signal("cspline1d", lambda m, x: m.cspline1d(x)),
        of_signal("qspline1d", lambda m, x: m.qspline1d(x)),
        row("cspline1d_eval", lambda m, c, t: m.cspline1d_eval(c, t), lambda: [*drawn(12)(), times(5, 11.0)],
            lambda: [*drawn(100)(), times(LARGE, 99.0)]),
        row("qspline1d_eval", lambda m, c, t: m.qspline1d_eval(c, t), lambda: [*drawn(12)(), times(5, 11.0)],
            lambda: [*drawn(100)(), times(LARGE, 99.0)]),
        row("gauss_spline", lambda m, t: m.gauss_spline(t, 3), lambda: [times(5, 2.0)], lambda: [times(LARGE, 2.0)]),
        of_image("cspline2d", lambda m, x: m.cspline2d(x), 16, anchor_error=1e-9),
        of_image("qspline2d", lambda m, x: m.qspline2d(x), 16, anchor_error=1e-9),
        of_image("spline_filter", lambda m, x: m.spline_filter(x, 1.0), 40, anchor_error=1e-6,
                 note="SciPy computes it in single precision."),
        row("sepfir2d", lambda m, x, r, c: m.sepfir2d(x, r, c), drawn((7, 6), 3, 3), drawn((100, 100), 3, 3)),
        of_signal("decimate", lambda m, x: m.decimate(x, 4), 60),
        of_signal("resample", lambda m, x: m.resample(x, 2 * x.shape[0] // 3)),
        of_signal("resample_poly", lambda m, x: m.resample_poly(x, 3, 2)),
        row("upfirdn", lambda m, h, x: m.upfirdn(h, x, 2, 3), drawn(5, 12), drawn(20, LARGE)),
        of_signal("hilbert", lambda m, x: m.hilbert(x), apart=True),
        of_image("hilbert2", lambda m, x: m.hilbert2(x), apart=True),
        of_signal("envelope", lambda m, x: m.envelope(x)),
        also_in_jax("detrend", lambda m, x: m.detrend(x), drawn(24), drawn(LARGE)),
        of_signal("periodogram", lambda m, x: m.periodogram(x)[1]),
        also_in_jax("welch", lambda m, x: m.welch(x, nperseg=16)[1], drawn(64), drawn(LARGE)),
        also_in_jax("csd", lambda m, x, y: m.csd(x, y, nperseg=16)[1].real, drawn(64, 64), drawn(LARGE, LARGE)),
        row("coherence", lambda m, x, y: m.coherence(x, y, nperseg=16)[1], drawn(64, 64), drawn(LARGE, LARGE)),
        of_signal("spectrogram", lambda m, x: m.spectrogram(x, nperseg=16)[2], 64),
        of_signal("stft", lambda m, x: m.stft(x, nperseg=16)[2], 40, apart=True),
        row("istft", lambda m, z: m.istft(z, nperseg=16)[1], drawn((9, 6)), drawn((9, 1200)), **by_jax(
            "istft", lambda m, z: m.istft(z, nperseg=16)[1])),
        row("ShortTimeFFT", short_time, lambda: [*drawn(40)(), oracle_windows.hann(16)],
            lambda: [*drawn(LARGE)(), oracle_windows.hann(16)], apart=True),
        row("closest_STFT_dual_window", lambda m, w, d: m.closest_STFT_dual_window(w, 4, d),
            given(oracle_windows.hann(16), np.ones(16)), apart=True),
        row("lombscargle", lambda m, t, x, f: m.lombscargle(t, x, f),
            lambda: [times(9, 6.0), *drawn(9)(), times(4, 3.0)],
            lambda: [times(1000, 60.0), *drawn(1000)(), times(100, 3.0)]),
        row("vectorstrength", lambda m, t, p: m.vectorstrength(t, p), lambda: [times(9, 6.0), np.array(1.3)],
            lambda: [times(LARGE, 60.0), np.array(1.3)], apart=True),
        of_signal("czt", lambda m, x: m.czt(x, 50), apart=True),
        row("czt_points", lambda m, a: m.czt_points(9, a=a), given(1.1), apart=True),
        row("CZT", lambda m, x: m.CZT(x.shape[0], 50)(x), drawn(12), drawn(LARGE), apart=True),
        row("zoom_fft", lambda m, x, f: m.zoom_fft(x, f, 50), lambda: [*drawn(12)(), np.array([0.2, 0.5])],
            lambda: [*drawn(LARGE)(), np.array([0.2, 0.5])], apart=True),
        row("ZoomFFT", lambda m, x: m.ZoomFFT(x.shape[0], [0.2, 0.5], 50)(x), drawn(12), drawn(LARGE), apart=True),
        dataclasses.replace(
            of_peaks("find_peaks", found_peaks), ours=of_known_number,
            timed=(lambda x: found_peaks(signal, x), lambda x: found_peaks(oracle, x)),
        ),
        of_peaks("peak_prominences", lambda m, x: m.peak_prominences(x, peaks(x.shape[0]))[0]),
        of_peaks("peak_widths", lambda m, x: m.peak_widths(x, peaks(x.shape[0]))[0]),
        row("chirp", lambda m, t: m.chirp(t, 1.0, 2.0, 3.0), lambda: [times(9, 2.0)], lambda: [times(LARGE, 2.0)]),
        row("gausspulse", lambda m, t: m.gausspulse(t, 2.0), lambda: [times(9, 1.0)], lambda: [times(LARGE, 1.0)]),
        row("sawtooth", lambda m, t: m.sawtooth(t, 0.3), lambda: [times(9, 9.0)], lambda: [times(LARGE, 9.0)]),
        row("square", lambda m, t: m.square(t), lambda: [times(9, 9.0)], lambda: [times(LARGE, 9.0)]),
        row("sweep_poly", lambda m, t, p: m.sweep_poly(t, p), lambda: [times(9, 2.0), np.array([0.3, 1.0, 2.0])],
            lambda: [times(LARGE, 2.0), np.array([0.3, 1.0, 2.0])]),
    ),
)  # fmt: skip


def window(name: str, call: Call, *numbers: float, **more: Any) -> Row:
    """Return a row of a window of 51 elements for the checks and 10,001 for the times, by its numbers."""
    found = row(name, lambda m, *xs: call(m, 51, *xs), given(*numbers), module=windows, **more)
    long = lambda m: lambda *xs: call(m, LARGE + 1, *xs)
    return dataclasses.replace(found, timed=(long(windows), long(oracle_windows)))


WINDOWS = Part(
    "Windows",
    "`scipy.signal.windows`, of 10,001 elements for the times. Those of a length alone are SciPy's arrays.",
    (
        window("chebwin", lambda m, n, at: m.chebwin(n, at), 60.0),
        window("dpss", lambda m, n, w: m.dpss(n, w), 2.5),
        window("exponential", lambda m, n, tau: m.exponential(n, tau=tau), 3.0),
        window("gaussian", lambda m, n, std: m.gaussian(n, std), 7.0),
        row("general_cosine", lambda m, a: m.general_cosine(51, a), given([0.5, 0.3, 0.2]), module=windows),
        window("general_gaussian", lambda m, n, p, s: m.general_gaussian(n, p, s), 1.5, 7.0),
        window("general_hamming", lambda m, n, a: m.general_hamming(n, a), 0.6),
        window("kaiser", lambda m, n, beta: m.kaiser(n, beta), 8.0),
        window("kaiser_bessel_derived", lambda m, n, beta: m.kaiser_bessel_derived(n - 1, beta), 8.0),
        window("taylor", lambda m, n, sll: m.taylor(n, 4, sll), 30.0),
        window("tukey", lambda m, n, alpha: m.tukey(n, alpha), 0.33),
        window("get_window", lambda m, n, beta: m.get_window(("kaiser", beta), n), 8.0),
    ),
)
