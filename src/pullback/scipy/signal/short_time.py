"""Short-time Fourier transforms as an object: a window, its dual window, and where its slices are in a signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import axis_index, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import constant, default_floats, of_scipy, signal
from pullback.scipy.signal.dual_windows import dual_of, has_dual, hop_of, over_slices, power_of, window_of
from pullback.scipy.signal.spectra import along_last, cut_segments, overlap_add, trend_of, without_trend
from pullback.scipy.signal.windows import get_window
from pullback.transforms.autodiff.vmap import vmap

__all__ = ["ShortTimeFFT"]

_MODES = ("twosided", "centered", "onesided", "onesided2X")
_PADDINGS: dict[str, dict[str, Any]] = {
    "zeros": {}, "edge": {"mode": "edge"}, "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
}  # fmt: skip


# long: half of it is its documentation
class ShortTimeFFT:
    """A short-time Fourier transform and its inverse: Fourier transforms of windowed slices of a signal.

    The slice ``p`` has the middle of the window at the element ``p hop`` of the signal. The slices that touch the
    signal are from ``p_min``, which is not positive, to ``p_max(n) - 1``. The object is a tree of its windows, by which
    results have derivatives. A window that is traced when the object is made counts as nowhere zero.

    Args:
      win: the window, a vector of floats or complex numbers.
      hop: the distance of slices, a positive int.
      fs: the sampling frequency, a positive number.
      fft_mode: which frequencies: ``"onesided"`` for those that are not negative, ``"onesided2X"`` for the same with
        the power of the others added to them, ``"twosided"``, or ``"centered"`` for increasing ones.
      mfft: the length of the transforms, at least that of the window; the same by default.
      dual_win: the dual window, a vector of the same size; the canonical one, of least energy, by default.
      scale_to: ``"magnitude"`` or ``"psd"`` for a scaled window, see :meth:`scale_to`.
      phase_shift: which element of a slice has phase zero, counted from the middle of the window, an int between
        ``-mfft`` and ``mfft``; None for the first element of the slice.

    Raises:
      ArgumentError: numbers or words that make no sense (a TypeError and a ValueError).
      ShapeError: windows that are no vectors of one size (a TypeError and a ValueError).

    Source: Gröchenig 2001, *Foundations of Time-Frequency Analysis*. As ``scipy.signal.ShortTimeFFT``.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> transform = signal.ShortTimeFFT(signal.windows.hann(4, sym=False), 2, 1.0)
    >>> x = jnp.array([1.0, 2.0, 3.0, 4.0, 3.0])
    >>> print(abs(transform.stft(x)).round(2))
    [[2.   6.   5.  ]
     [1.41 3.16 3.61]
     [0.   0.   1.  ]]
    >>> print(transform.istft(transform.stft(x), k1=5).round(4))
    [1. 2. 3. 4. 3.]
    """

    def __init__(
        self, win: ArrayLike, hop: int, fs: float, *, fft_mode: str = "onesided", mfft: int | None = None,
        dual_win: ArrayLike | None = None, scale_to: str | None = None, phase_shift: int | None = 0,
    ) -> None:  # fmt: skip
        window = window_of("ShortTimeFFT", "win", win)
        dual = None if dual_win is None else window_of("ShortTimeFFT", "dual_win", dual_win, window)
        values = known(window)
        there = np.ones(window.shape, bool) if values is None else values != 0
        self._window, self._given_dual, self._scaling = window, dual, cast("str | None", None)
        self._there = tuple(there.tolist())
        self._doubled = False
        length = window.shape[0] if mfft is None else known_int("ShortTimeFFT", "mfft", mfft)
        self._engine = _engine(self._there, hop_of("ShortTimeFFT", hop), fs, length)
        if scale_to is not None:
            self.scale_to(scale_to)
        self.fft_mode, self.phase_shift = fft_mode, phase_shift

    @classmethod
    def from_dual(
        cls, dual_win: ArrayLike, hop: int, fs: float, *, fft_mode: str = "onesided", mfft: int | None = None,
        scale_to: str | None = None, phase_shift: int | None = 0,
    ) -> ShortTimeFFT:  # fmt: skip
        """Return the transform with a given dual window, whose window is the canonical dual one of that.

        Args:
          dual_win: the dual window, a vector of floats or complex numbers.
          hop, fs, fft_mode, mfft, scale_to, phase_shift: as for the class.

        Returns:
          A :class:`ShortTimeFFT`.

        Raises:
          ArgumentError, ShapeError: as for the class; a window without a dual one.

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT.from_dual([1.0, 2.0], 1, 1.0).win)
        [0.2 0.4]
        """
        dual = window_of("ShortTimeFFT.from_dual", "dual_win", dual_win)
        window = dual_of("ShortTimeFFT.from_dual", dual, hop_of("ShortTimeFFT.from_dual", hop))
        return cls(
            window, hop, fs, fft_mode=fft_mode, mfft=mfft, dual_win=dual, scale_to=scale_to, phase_shift=phase_shift
        )

    @classmethod
    def from_window(
        cls, win_param: str | tuple[Any, ...] | ArrayLike, fs: float, nperseg: int, noverlap: int, *,
        symmetric_win: bool = False, fft_mode: str = "onesided", mfft: int | None = None,
        scale_to: str | None = None, phase_shift: int | None = 0,
    ) -> ShortTimeFFT:  # fmt: skip
        """Return the transform with a window by its name.

        Args:
          win_param: the window, as for :func:`get_window`; its parameters may be traced.
          fs, fft_mode, mfft, scale_to, phase_shift: as for the class.
          nperseg: the size of the window, a positive int.
          noverlap: how many elements neighbouring slices share, less than ``nperseg``.
          symmetric_win: whether the window is symmetric, instead of one period of a periodic one.

        Returns:
          A :class:`ShortTimeFFT`.

        Raises:
          ArgumentError: as for the class and :func:`get_window`.

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT.from_window("hann", 1.0, 4, 2).win)
        [0.  0.5 1.  0.5]
        """
        size, overlap = (
            known_int("ShortTimeFFT.from_window", what, value)
            for what, value in (("nperseg", nperseg), ("noverlap", noverlap))
        )
        return cls(
            get_window(win_param, size, not symmetric_win), size - overlap, fs, fft_mode=fft_mode, mfft=mfft,
            scale_to=scale_to, phase_shift=phase_shift,
        )  # fmt: skip

    @classmethod
    def from_win_equals_dual(
        cls, desired_win: ArrayLike, hop: int, fs: float, *, fft_mode: str = "onesided", mfft: int | None = None,
        scale_to: str | None = None, phase_shift: int | None = 0,
    ) -> ShortTimeFFT:  # fmt: skip
        """Return the transform whose window is its own dual, up to a factor, and closest to a desired one.

        Args:
          desired_win: the desired window, a vector of floats or complex numbers.
          hop: the distance of slices, from 1 to the size of the window.
          fs, fft_mode, mfft, phase_shift: as for the class.
          scale_to: ``"magnitude"``, ``"psd"``, or ``"unitary"`` for a transform that preserves scalar products.

        Returns:
          A :class:`ShortTimeFFT`.

        Raises:
          ArgumentError, ShapeError: as for the class; a window without a dual one.

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT.from_win_equals_dual([3.0, 4.0], 1, 1.0).win)
        [0.6 0.8]
        """
        name = "ShortTimeFFT.from_win_equals_dual"
        window = window_of(name, "desired_win", desired_win)
        step = hop_of(name, hop, window.shape[0])
        if scale_to not in (None, "magnitude", "psd", "unitary"):
            raise ArgumentError(f"{name}: scale_to must be 'magnitude', 'psd', 'unitary' or None, got {scale_to!r}")
        if has_dual(window, step) is False:
            raise ArgumentError(f"{name}: slices of desired_win at distances hop={step} leave elements out")
        length = window.shape[0] if mfft is None else known_int(name, "mfft", mfft)
        window = window / pnp.sqrt(over_slices(power_of(window), step))
        factor = float(np.sqrt(length)) if scale_to == "unitary" else 1.0
        scaled = None if scale_to == "unitary" else scale_to
        made = cls(
            window / factor, step, fs, fft_mode=fft_mode, mfft=length, dual_win=window * factor, scale_to=scaled,
            phase_shift=phase_shift,
        )  # fmt: skip
        made._scaling = scale_to
        return made

    # Windows ---------------------------------------------------------------------------------------------------------

    @property
    def win(self) -> Array:
        """The window, a vector."""
        return self._window  # type: ignore[no-any-return]

    @property
    def dual_win(self) -> Array:
        """The dual window, a vector; an ArgumentError if there is none."""
        if self._given_dual is not None:
            return self._given_dual  # type: ignore[no-any-return]
        return dual_of("ShortTimeFFT.dual_win", self._window, self.hop)  # type: ignore[no-any-return]

    @property
    def invertible(self) -> bool:
        """Whether there is a dual window; an UnsupportedArgumentError if the window is traced."""
        if self._given_dual is not None:
            return True
        found = has_dual(self._window, self.hop)
        if found is None:
            raise UnsupportedArgumentError("ShortTimeFFT.invertible: the window is traced, so that this is not known")
        return found

    @property
    def scaling(self) -> str | None:
        """How the window is scaled: "magnitude", "psd", "unitary" or None."""
        return self._scaling

    @property
    def fac_magnitude(self) -> Any:
        """The factor of transforms for a spectrum of magnitudes, 1 if the window is scaled so."""
        return 1.0 if self._scaling == "magnitude" else 1 / pnp.abs(pnp.sum(self._window))

    @property
    def fac_psd(self) -> Any:
        """The factor of transforms for a density of power, 1 if the window is scaled so."""
        return 1.0 if self._scaling == "psd" else 1 / pnp.sqrt(pnp.sum(power_of(self._window)) * self.fs)

    def scale_to(self, scaling: str) -> None:
        """Scale the window, in place, and the dual one by the inverse.

        Args:
          scaling: ``"magnitude"`` for a window of sum 1, so that transforms are amplitudes, or ``"psd"`` for one whose
            squares have the sum ``1 / fs``, so that squares of transforms are densities of power.

        Raises:
          ArgumentError: another word (a TypeError and a ValueError).

        >>> from pullback.scipy import signal
        >>> transform = signal.ShortTimeFFT([1.0, 3.0], 1, 1.0)
        >>> transform.scale_to("magnitude")
        >>> print(transform.win)
        [0.25 0.75]
        """
        if scaling not in ("magnitude", "psd"):
            raise ArgumentError(f"ShortTimeFFT.scale_to: scaling must be 'magnitude' or 'psd', got {quote(scaling)}")
        if scaling == self._scaling:
            return
        factor = self.fac_magnitude if scaling == "magnitude" else self.fac_psd
        self._window = self._window * factor
        if self._given_dual is not None:
            self._given_dual = self._given_dual / factor
        self._scaling = scaling

    # Parameters ------------------------------------------------------------------------------------------------------

    @property
    def hop(self) -> int:
        """The distance of slices, in elements of the signal."""
        return int(self._engine.hop)

    @property
    def fs(self) -> float:
        """The sampling frequency, a positive number that can be set."""
        return float(self._engine.fs)

    @fs.setter
    def fs(self, v: float) -> None:
        self._set("fs", _frequency(v))

    @property
    def T(self) -> float:
        """The time from one element of the signal to the next, ``1 / fs``, which can be set."""
        return float(self._engine.T)

    @T.setter
    def T(self, v: float) -> None:
        self._set("T", _frequency(v))

    @property
    def mfft(self) -> int:
        """The length of the Fourier transforms, at least ``m_num``, which can be set."""
        return int(self._engine.mfft)

    @mfft.setter
    def mfft(self, n_: int) -> None:
        self._set("mfft", known_int("ShortTimeFFT", "mfft", n_))

    @property
    def fft_mode(self) -> str:
        """Which frequencies transforms have: "onesided", "onesided2X", "twosided" or "centered"; can be set."""
        return "onesided2X" if self._doubled else cast("str", self._engine.fft_mode)

    @fft_mode.setter
    def fft_mode(self, t: str) -> None:
        if not isinstance(t, str) or t not in _MODES:
            raise ArgumentError(f"ShortTimeFFT: fft_mode must be one of {', '.join(map(repr, _MODES))}, got {quote(t)}")
        if t.startswith("onesided") and dtypes.is_complex(self._window.dtype):
            raise ArgumentError(f"ShortTimeFFT: with fft_mode={t!r} the window must be real; use 'twosided'")
        if t == "onesided2X" and self._scaling is None:
            raise ArgumentError("ShortTimeFFT: fft_mode='onesided2X' needs a scaled window; use scale_to")
        self._doubled = t == "onesided2X"
        self._set("fft_mode", t.removesuffix("2X"))

    @property
    def phase_shift(self) -> int | None:
        """Which element of a slice has phase zero, counted from the middle of the window; can be set."""
        return cast("int | None", self._engine.phase_shift)

    @phase_shift.setter
    def phase_shift(self, v: int | None) -> None:
        self._set("phase_shift", None if v is None else known_int("ShortTimeFFT", "phase_shift", v))

    def _set(self, what: str, value: Any) -> None:
        of_scipy("ShortTimeFFT", lambda: setattr(self._engine, what, value))

    def _ask(self, what: str, *arguments: Any) -> Any:
        """Return what SciPy's object says of positions."""
        return of_scipy(f"ShortTimeFFT.{what}", lambda: getattr(self._engine, what)(*arguments))

    # Positions -------------------------------------------------------------------------------------------------------

    @property
    def m_num(self) -> int:
        """The number of elements of the window."""
        return int(self._engine.m_num)

    @property
    def m_num_mid(self) -> int:
        """The position of the middle of the window, ``m_num // 2``."""
        return int(self._engine.m_num_mid)

    @property
    def k_min(self) -> int:
        """The position in the signal of the first element that a slice touches, not positive."""
        return int(self._engine.k_min)

    @property
    def p_min(self) -> int:
        """The number of the first slice that touches the signal, not positive."""
        return int(self._engine.p_min)

    def k_max(self, n: int) -> int:
        """Return the position after the last element that a slice touches.

        Args:
          n: the number of elements of the signal, at least half of the window's.

        Returns:
          An int.

        Raises:
          ArgumentError: a shorter signal (a TypeError and a ValueError).

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).k_max(5))
        8
        """
        return int(self._ask("k_max", n))

    def p_max(self, n: int) -> int:
        """Return the number after that of the last slice that touches the signal.

        Args:
          n: as for :meth:`k_max`.

        Returns:
          An int.

        Raises:
          ArgumentError: as for :meth:`k_max`.

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).p_max(5))
        4
        """
        return int(self._ask("p_max", n))

    def p_num(self, n: int) -> int:
        """Return the number of slices, ``p_max(n) - p_min``.

        Args:
          n: as for :meth:`k_max`.

        Returns:
          An int.

        Raises:
          ArgumentError: as for :meth:`k_max`.

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).p_num(5))
        4
        """
        return int(self._ask("p_num", n))

    def p_range(self, n: int, p0: int | None = None, p1: int | None = None) -> tuple[int, int]:
        """Return the first slice and the one after the last, checked.

        Args:
          n: as for :meth:`k_max`.
          p0, p1: the first slice, and the one after the last; ``p_min`` and ``p_max(n)`` by default.

        Returns:
          Two ints.

        Raises:
          ArgumentError: slices that are not in increasing order from ``p_min`` to ``p_max(n)`` (a TypeError and a
            ValueError).

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).p_range(5))
        (0, 4)
        """
        first, last = self._ask("p_range", n, p0, p1)
        return int(first), int(last)

    @property
    def lower_border_end(self) -> tuple[int, int]:
        """The first element and the first slice for which no window sticks out before the signal."""
        k, p = self._engine.lower_border_end
        return int(k), int(p)

    def upper_border_begin(self, n: int) -> tuple[int, int]:
        """Return the first element and the first slice for which a window sticks out after the signal.

        Args:
          n: as for :meth:`k_max`.

        Returns:
          Two ints.

        Raises:
          ArgumentError: as for :meth:`k_max`.

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).upper_border_begin(5))
        (2, 2)
        """
        k, p = self._ask("upper_border_begin", n)
        return int(k), int(p)

    def nearest_k_p(self, k: int, left: bool = True) -> int:
        """Return the nearest position that is the middle of a slice.

        Args:
          k: a position, an int.
          left: whether to look before it, instead of after it.

        Returns:
          An int, a multiple of ``hop``.

        Raises:
          ArgumentError: a position that is no int (a TypeError and a ValueError).

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).nearest_k_p(5))
        4
        """
        return int(self._ask("nearest_k_p", known_int("ShortTimeFFT.nearest_k_p", "k", k), left))

    @property
    def delta_t(self) -> float:
        """The time from one slice to the next."""
        return float(self._engine.delta_t)

    @property
    def delta_f(self) -> float:
        """The distance of frequencies."""
        return float(self._engine.delta_f)

    @property
    def f_pts(self) -> int:
        """The number of frequencies."""
        return int(self._engine.f_pts)

    @property
    def onesided_fft(self) -> bool:
        """Whether transforms have no negative frequencies."""
        return bool(self._engine.onesided_fft)

    @property
    def f(self) -> Array:
        """The frequencies, a vector of ``f_pts`` floats."""
        return default_floats(self._engine.f)

    def t(self, n: int, p0: int | None = None, p1: int | None = None, k_offset: int = 0) -> Array:
        """Return the times of slices.

        Args:
          n: as for :meth:`k_max`.
          p0, p1: the first slice, and the one after the last; ``p_min`` and ``p_max(n)`` by default.
          k_offset: the position of time 0 in the signal.

        Returns:
          A vector of floats.

        Raises:
          ArgumentError: slices out of range (a TypeError and a ValueError).

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).t(5))
        [0. 2. 4. 6.]
        """
        return default_floats(self._ask("t", n, p0, p1, k_offset))

    def extent(
        self, n: int, axes_seq: str = "tf", center_bins: bool = False
    ) -> tuple[float, float, float, float]:  # fmt: skip
        """Return the least and the largest time and frequency, as Matplotlib's ``imshow`` takes them.

        Args:
          n: as for :meth:`k_max`.
          axes_seq: ``"tf"`` for the times first, ``"ft"`` for the frequencies first.
          center_bins: whether the limits are half a step lower, so that values are in the middle of their pixels.

        Returns:
          Four floats.

        Raises:
          ArgumentError: another word, or an ``fft_mode`` of ``"twosided"`` (a TypeError and a ValueError).

        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0, 1.0, 1.0], 2, 1.0).extent(5))
        (0.0, 8.0, 0.0, 0.75)
        """
        return tuple(map(float, self._ask("extent", n, axes_seq, center_bins)))  # type: ignore[return-value]

    # Transforms ------------------------------------------------------------------------------------------------------

    def stft(
        self, x: ArrayLike, p0: int | None = None, p1: int | None = None, *, k_offset: int = 0, padding: str = "zeros",
        axis: int = -1,
    ) -> Array:  # fmt: skip
        """Return the short-time Fourier transform of a signal.

        Args:
          x: the signal, an array of floats or complex numbers of any shape; integers are converted.
          p0, p1: the first slice, and the one after the last; ``p_min`` and ``p_max(n)`` by default.
          k_offset: the position of time 0 in the signal.
          padding: how the signal continues beyond its ends: ``"zeros"``, ``"edge"`` by its last element, ``"even"`` or
            ``"odd"`` by its mirror image.
          axis: along which axis.

        Returns:
          Complex numbers, whose frequencies are along ``axis``, and whose slices are along a new last axis.

        Raises:
          ArgumentError: slices out of range, or an unknown word (a TypeError and a ValueError).
          ShapeError: a signal of less than half of the window's elements, or an axis out of range (a TypeError and a
            ValueError).
          DtypeError: a complex signal, if the transform is one-sided (a TypeError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import signal
        >>> transform = signal.ShortTimeFFT([1.0, 1.0], 1, 1.0)
        >>> print(transform.stft(jnp.array([1.0, 2.0, 4.0])).real)
        [[ 1.  3.  6.  4.]
         [ 1.  1.  2. -4.]]
        """
        return self.stft_detrend(x, None, p0, p1, k_offset=k_offset, padding=padding, axis=axis)

    def stft_detrend(
        self, x: ArrayLike, detr: str | Callable[[Any], Any] | None, p0: int | None = None, p1: int | None = None, *,
        k_offset: int = 0, padding: str = "zeros", axis: int = -1,
    ) -> Array:  # fmt: skip
        """Return the short-time Fourier transform of a signal from whose slices trends are subtracted.

        Args:
          detr: the trend of each slice: ``"constant"`` for the mean, ``"linear"`` for the line that fits best, None for
            none; or a function of a slice, whose elements are along the last axis.
          x, p0, p1, k_offset, padding, axis: as for :meth:`stft`.

        Returns:
          Complex numbers, as for :meth:`stft`.

        Raises:
          ArgumentError, ShapeError, DtypeError: as for :meth:`stft`.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import signal
        >>> transform = signal.ShortTimeFFT([1.0, 1.0], 1, 1.0)
        >>> print(transform.stft_detrend(jnp.array([1.0, 2.0, 4.0]), "constant").real)
        [[ 0.  0.  0.  0.]
         [ 1.  1.  2. -4.]]
        """
        name = "ShortTimeFFT.stft"
        if not isinstance(padding, str) or padding not in _PADDINGS:
            raise ArgumentError(f"{name}: padding must be one of {', '.join(map(repr, _PADDINGS))}, got {padding!r}")
        x = signal(name, x)
        if self.onesided_fft and dtypes.is_complex(x.dtype):
            raise DtypeError(f"{name}: with fft_mode={self.fft_mode!r} the signal must be real; use 'twosided'")
        trend = detr if detr is None or callable(detr) else trend_of(name, detr)
        where, last = axis_index(axis, len(x.shape), name), len(x.shape) - 1
        n, least = x.shape[where], self.m_num - self.m_num_mid
        if n < least:
            raise ShapeError(f"{name}: the signal must have at least half of the window's elements, {least}, got {n}")
        first, stop = self.p_range(n, p0, p1)
        start = first * self.hop - self.m_num_mid + known_int(name, "k_offset", k_offset)
        end = start + (stop - first - 1) * self.hop + self.m_num
        x = shapes.moveaxis(x, where, last)[..., max(start, 0) : max(min(end, n), 0)]
        x = pnp.pad(x, [(0, 0)] * last + [(max(-start, 0), max(end - n, 0))], **_PADDINGS[padding])
        slices = cut_segments(x, self.m_num, self.hop)
        if callable(trend):
            slices = vmap(trend, in_axes=last, out_axes=last)(slices)
        elif trend is not None:
            slices = without_trend(slices, trend, (0, self.m_num))
        spectra = self._transformed(along_last(ops.mul, slices, ops.conj(self._window)))
        return shapes.moveaxis(spectra, last + 1, where)

    def spectrogram(
        self, x: ArrayLike, y: ArrayLike | None = None, detr: str | Callable[[Any], Any] | None = None, *,
        p0: int | None = None, p1: int | None = None, k_offset: int = 0, padding: str = "zeros", axis: int = -1,
    ) -> Array:  # fmt: skip
        """Return the squares of absolute values of the transform of a signal, or the products of two transforms.

        Args:
          y: another signal of the same shape; ``x`` by default.
          x, detr, p0, p1, k_offset, padding, axis: as for :meth:`stft_detrend`.

        Returns:
          Real numbers; for two signals the transform of the first times the conjugate of that of the second.

        Raises:
          ArgumentError, ShapeError, DtypeError: as for :meth:`stft`.

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import signal
        >>> print(signal.ShortTimeFFT([1.0, 1.0], 1, 1.0).spectrogram(jnp.array([1.0, 2.0, 4.0])))
        [[ 1.  9. 36. 16.]
         [ 1.  1.  4. 16.]]
        """
        of = lambda v: self.stft_detrend(v, detr, p0, p1, k_offset=k_offset, padding=padding, axis=axis)
        return power_of(of(x)) if y is None or y is x else of(x) * ops.conj(of(y))  # type: ignore[no-any-return]

    def istft(
        self, S: ArrayLike, k0: int = 0, k1: int | None = None, *, f_axis: int = -2, t_axis: int = -1
    ) -> Array:  # fmt: skip
        """Return the signal of a short-time Fourier transform.

        Args:
          S: the transform, complex numbers; its first slice is ``p_min``.
          k0, k1: the first element of the signal, and the one after the last; 0 and the last that a slice has.
          f_axis, t_axis: the axes of the frequencies and of the slices.

        Returns:
          Real numbers if the transform is one-sided, else complex ones; along the axis ``f_axis``, or ``t_axis`` if
          that is the last one.

        Raises:
          ArgumentError: elements out of range, or a window without a dual one (a TypeError and a ValueError).
          ShapeError: an array that does not fit (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.scipy import signal
        >>> transform = signal.ShortTimeFFT([1.0, 1.0], 1, 1.0)
        >>> print(transform.istft(transform.stft(jnp.array([1.0, 2.0, 4.0])), k1=3))
        [1. 2. 4.]
        """
        name = "ShortTimeFFT.istft"
        z = signal(name, S)
        rank = len(z.shape)
        if rank < 2:
            raise ShapeError(f"{name} takes an array with axes of frequencies and slices, got shape {z.shape}")
        which, when = axis_index(f_axis, rank, name), axis_index(t_axis, rank, name)
        if which == when:
            raise ShapeError(f"{name}: f_axis and t_axis must differ, got {f_axis} and {t_axis}")
        least = self.m_num - self.m_num_mid
        if z.shape[which] != self.f_pts or z.shape[when] < self.p_num(least):
            raise ShapeError(
                f"{name} takes an array of {self.f_pts} frequencies and at least {self.p_num(least)} slices, got shape "
                f"{z.shape}"
            )
        z = pnp.moveaxis(z, (which, when), (-1, -2))
        after = z.shape[-2] + self.p_min
        most = (after - 1) * self.hop + self.m_num - self.m_num_mid
        start = known_int(name, "k0", k0)
        stop = most if k1 is None else known_int(name, "k1", k1)
        if not self.k_min <= start < stop <= most or stop - start < least:
            raise ArgumentError(
                f"{name}: k0 and k1 must be from {self.k_min} to {most}, and at least {least} apart, got {start} and "
                f"{stop}"
            )
        first = max(start // self.hop + (self.p_min if start >= 0 else 0), self.p_min)
        last = min(self.p_max(stop), after)
        parts = along_last(ops.mul, self._inverse(z[..., first - self.p_min : last - self.p_min, :]), self.dual_win)
        x, base = overlap_add(parts, self.hop), first * self.hop - self.m_num_mid
        x = slicing.slice_in_dim(x, max(start - base, 0), min(stop - base, x.shape[-1]), rank - 2)
        missing = stop - start - x.shape[-1]
        if missing:
            x = pnp.pad(x, [(0, 0)] * (rank - 2) + [(0, missing)])
        return shapes.moveaxis(x, rank - 2, which if which < rank - 1 else when)

    def _turn(self) -> int:
        """Return by how many elements slices are rotated, so that phases count from the middle of the window."""
        assert self.phase_shift is not None
        return (self.phase_shift + self.m_num_mid) % self.m_num

    def _doubling(self, dtype: Any) -> Any:
        """Return the factors of the frequencies that stand for negative ones too."""
        factors = np.full(self.f_pts, np.sqrt(2.0) if self._scaling == "psd" else 2.0)
        factors[0] = 1
        if self.mfft % 2 == 0:
            factors[-1] = 1
        return constant(factors, dtypes.to_real(dtype))

    def _transformed(self, slices: Any) -> Any:
        """Return Fourier transforms of slices, which are along the last axis."""
        if self.phase_shift is not None:
            slices = pnp.pad(slices, [(0, 0)] * (len(slices.shape) - 1) + [(0, self.mfft - self.m_num)])
            slices = pnp.roll(slices, -self._turn(), -1)
        out = (pnp.fft.rfft if self.onesided_fft else pnp.fft.fft)(slices, self.mfft)
        if self.fft_mode == "centered":
            return pnp.fft.fftshift(out, -1)
        return along_last(ops.mul, out, self._doubling(out.dtype)) if self._doubled else out

    def _inverse(self, spectra: Any) -> Any:
        """Return the slices of Fourier transforms, which are along the last axis."""
        if self._doubled:
            spectra = along_last(ops.div, spectra, self._doubling(spectra.dtype))
        if self.fft_mode == "centered":
            spectra = pnp.fft.ifftshift(spectra, -1)
        x = (pnp.fft.irfft if self.onesided_fft else pnp.fft.ifft)(spectra, self.mfft)
        return (x if self.phase_shift is None else pnp.roll(x, self._turn(), -1))[..., : self.m_num]


def _frequency(value: Any) -> float:
    found = known(value)
    if found is None or found.shape or found.dtype.kind not in "iuf":
        raise ArgumentError(f"ShortTimeFFT: the sampling frequency must be a known real number, got {quote(value)}")
    return float(found)


def _engine(there: tuple[bool, ...], hop: int, fs: Any, mfft: int) -> Any:
    """Return SciPy's object for a window that is zero where ours is: it knows the positions of slices."""
    rate, window = _frequency(fs), np.array(there, np.float64)
    return of_scipy("ShortTimeFFT", lambda: imported("scipy.signal").ShortTimeFFT(window, hop, rate, mfft=mfft))


def _flatten(transform: ShortTimeFFT) -> tuple[Any, Any]:
    engine = transform._engine
    numbers = (engine.hop, engine.fs, engine.mfft, transform.fft_mode, transform.phase_shift)
    return (transform._window, transform._given_dual), (transform._there, transform._scaling, numbers)


def _unflatten(of: Any, children: Any) -> ShortTimeFFT:
    transform = object.__new__(ShortTimeFFT)
    there, transform._scaling, (hop, fs, mfft, mode, shift) = of
    transform._there, (transform._window, transform._given_dual) = there, children
    transform._doubled = mode == "onesided2X"
    transform._engine = _engine(there, hop, fs, mfft)
    transform._engine.fft_mode, transform._engine.phase_shift = mode.removesuffix("2X"), shift
    return transform


tree.register_pytree_node(ShortTimeFFT, _flatten, _unflatten)
