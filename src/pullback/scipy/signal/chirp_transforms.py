"""Fourier transforms at chosen points as objects, which are trees of the points: ``CZT`` and ``ZoomFFT``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import axis_index, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.signal.arguments import constant, positive_int, promoted, signal
from pullback.scipy.signal.transforms import czt, zoom_fft

__all__ = ["CZT", "ZoomFFT", "czt_points"]


def czt_points(m: int, w: ArrayLike | None = None, a: ArrayLike = 1 + 0j) -> Array:
    """Return the points of a chirp z-transform, ``a w**-k``.

    Args:
      m: the number of points, positive.
      w: the quotient of a point and the next one, a number; ``exp(-2j pi / m)`` by default, the points of a Fourier
        transform.
      a: the first point, a number.

    Returns:
      Complex numbers, or real ones for real ``w`` and ``a``.

    Raises:
      ShapeError: points that are no numbers (a TypeError and a ValueError).
      ArgumentError: an ``m`` that is not positive (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.czt_points(3, 2.0, 1.0))
    [1.   0.5  0.25]
    """
    name = "czt_points"
    count = positive_int(name, "m", m)
    first, *step = promoted(name, a, *(() if w is None else (w,)))
    if first.shape or any(v.shape for v in step):
        raise ShapeError(f"{name}: the points w and a must be numbers, got shapes {[v.shape for v in (first, *step)]}")
    k = np.arange(count)
    if not step:
        wide = dtypes.to_complex(dtypes.to_real(first.dtype))
        return first.astype(wide) * constant(np.exp(2j * math.pi * k / count), wide)
    return first * pnp.stack([step[0] ** int(-i) for i in k])


class CZT:
    """The chirp z-transform of signals of one length at ``m`` points, which calls of the object return.

    Args:
      n: the length of the signals, positive.
      m: the number of points, positive; ``n`` by default.
      w, a: the quotient of a point and the next one, and the first point, numbers, as for :func:`czt`. The object is a
        tree of both.

    Raises:
      ShapeError, ArgumentError: as for :func:`czt_points`.

    Source: Bluestein 1970, "A linear filtering approach to the computation of discrete Fourier transform".

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> transform = signal.CZT(3, 1, a=2.0)
    >>> print(transform(jnp.array([1.0, 2.0, 3.0])).real.round(3), transform.points())
    [2.75] [2.+0.j]
    """

    n: int
    m: int
    _numbers: tuple[Any, ...]

    def __init__(self, n: int, m: int | None = None, w: ArrayLike | None = None, a: ArrayLike = 1 + 0j) -> None:
        self.n = positive_int("CZT", "n", n)
        self.m = self.n if m is None else positive_int("CZT", "m", m)
        czt_points(self.m, w, a)  # which checks both
        self._numbers = (None if w is None else promoted("CZT", w)[0], promoted("CZT", a)[0])

    @property
    def w(self) -> Any:
        """The quotient of a point and the next one."""
        return np.exp(-2j * math.pi / self.m) if self._numbers[0] is None else self._numbers[0]

    @property
    def a(self) -> Any:
        """The first point."""
        return self._numbers[1]

    def points(self) -> Array:
        """Return the points.

        Returns:
          Complex numbers, a vector of ``m`` elements.

        >>> from pullback.scipy import signal
        >>> print(signal.CZT(2).points().real)
        [ 1. -1.]
        """
        return czt_points(self.m, self._numbers[0], self._numbers[1])

    def _checked(self, x: Any, axis: Any) -> Any:
        name = type(self).__name__
        x = signal(name, x)
        size = x.shape[axis_index(axis, len(x.shape), name)]
        if size != self.n:
            raise ShapeError(f"{name}: the signal must have {self.n} elements along the axis, got {size}")
        return x

    def __call__(self, x: ArrayLike, *, axis: int = -1) -> Array:
        """Return the transform of signals of ``n`` elements along an axis."""
        return czt(self._checked(x, axis), self.m, self._numbers[0], self._numbers[1], axis=axis)


class ZoomFFT(CZT):
    """The Fourier transform of signals of one length at frequencies between limits, which calls of the object return.

    Args:
      n: the length of the signals, positive.
      fn: the limits, two frequencies; or the upper one, for a lower one of 0.
      m: the number of frequencies, positive; ``n`` by default.
      fs: the sampling frequency, a number. The object is a tree of it and the limits.
      endpoint: whether the upper limit is the last frequency.

    Raises:
      ShapeError, ArgumentError: as for :func:`zoom_fft`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import signal
    >>> transform = signal.ZoomFFT(4, [0.4, 0.6], 3, endpoint=True)
    >>> print(abs(transform(jnp.array([1.0, 0.0, -1.0, 0.0]))).round(3))
    [1.902 2.    1.902]
    """

    _endpoint: bool

    def __init__(
        self, n: int, fn: ArrayLike, m: int | None = None, *, fs: ArrayLike = 2, endpoint: bool = False
    ) -> None:  # fmt: skip
        self.n = positive_int("ZoomFFT", "n", n)
        self.m = self.n if m is None else positive_int("ZoomFFT", "m", m)
        self._endpoint = flag("ZoomFFT", "endpoint", endpoint)
        if self._endpoint and self.m == 1:
            raise ArgumentError("ZoomFFT: with endpoint=True m must be at least 2, got 1")
        limits, rate = promoted("ZoomFFT", fn, fs)
        if limits.shape not in ((), (1,), (2,)) or rate.shape:
            raise ShapeError(f"ZoomFFT: fn must be one or two numbers and fs a number, got {quote(fn)} and {quote(fs)}")
        self._numbers = (limits, rate)

    def _limits(self) -> tuple[Any, Any, Any]:
        limits, rate = pnp.ravel(self._numbers[0]), self._numbers[1]
        return (limits[0] if limits.shape[0] == 2 else 0 * limits[0]), limits[-1], rate

    @property
    def f1(self) -> Any:
        """The lower limit."""
        return self._limits()[0]

    @property
    def f2(self) -> Any:
        """The upper limit."""
        return self._limits()[1]

    @property
    def fs(self) -> Any:
        """The sampling frequency."""
        return self._numbers[1]

    @property
    def w(self) -> Any:
        """The quotient of a point and the next one."""
        first, last, rate = self._limits()
        return _on_circle((first - last) / (rate * (self.m - self._endpoint)))

    @property
    def a(self) -> Any:
        """The first point."""
        first, _, rate = self._limits()
        return _on_circle(first / rate)

    def points(self) -> Array:
        """Return the points, on the unit circle.

        Returns:
          Complex numbers, a vector of ``m`` elements.

        >>> from pullback.scipy import signal
        >>> print(signal.ZoomFFT(4, 2.0, 2).points().real.round(3))
        [ 1. -1.]
        """
        return czt_points(self.m, self.w, self.a)

    def __call__(self, x: ArrayLike, *, axis: int = -1) -> Array:
        """Return the transform of signals of ``n`` elements along an axis."""
        limits, rate = self._numbers
        return zoom_fft(self._checked(x, axis), limits, self.m, fs=rate, endpoint=self._endpoint, axis=axis)


def _on_circle(turns: Any) -> Any:
    angle = turns * constant(2 * math.pi, turns.dtype)
    return ops.complex(pnp.cos(angle), pnp.sin(angle))


def _register(kind: type[Any]) -> None:
    def flatten(transform: Any) -> tuple[Any, Any]:
        return transform._numbers, (transform.n, transform.m, getattr(transform, "_endpoint", None))

    def unflatten(sizes: Any, numbers: Any) -> Any:
        transform = object.__new__(kind)
        transform.n, transform.m, transform._endpoint = sizes
        transform._numbers = tuple(numbers)
        return transform

    tree.register_pytree_node(kind, flatten, unflatten)


_register(CZT)
_register(ZoomFFT)
