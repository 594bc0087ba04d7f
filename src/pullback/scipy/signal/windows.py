"""Windows, with derivatives by their parameters: ``pullback.scipy.signal.windows``.

Windows of known numbers are SciPy's. For a parameter that is traced or differentiated, our operations compute the same
formula. In formulas ``x`` goes from -1 at the first point of a symmetric window to 1 at the last, ``d = 1 - abs(x)`` is
the distance from the nearest end, and ``n`` counts points from 0.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.core.interrupts import imported
from pullback.core.source import warn
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import (
    constant,
    default_floats,
    known_or_traced,
    of_scipy,
    positive_int,
    promoted,
    real_number,
)

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "chebwin", "cosine", "dpss",
    "exponential", "flattop", "gaussian", "general_cosine", "general_gaussian", "general_hamming", "get_window",
    "hamming", "hann", "kaiser", "kaiser_bessel_derived", "lanczos", "nuttall", "parzen", "taylor", "triang", "tukey",
]  # fmt: skip

# What windows share --------------------------------------------------------------------------------------------------


def _size(name: str, M: Any) -> int:
    """Return the number of points of a window, an int that is not negative."""
    size = known_int(name, "M", M)
    if size < 0:
        raise ArgumentError(f"{name}: M must not be negative, got {size}")
    return size


def _theirs(name: str, *arguments: Any, **options: Any) -> Any:
    """Return the window of SciPy of known numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # our own point to the user's line
        values = of_scipy(name, lambda: getattr(imported("scipy.signal.windows"), name)(*arguments, **options))
    return default_floats(values)


def _window(
    name: str, M: Any, sym: Any, parameters: dict[str, Any], formula: Callable[..., Any], **options: Any
) -> Any:
    """Return a window of numbers that may be traced.

    Args:
      name: the public function.
      M, sym: its arguments.
      parameters: for each parameter the value, a real number.
      formula: from the number of points of a symmetric window, of at least 2, and the parameters, arrays of one dtype,
        to the window.
      options: further arguments for SciPy's function.
    """
    size, symmetric = _size(name, M), flag(name, "sym", sym)
    values = [_number(name, what, value) for what, value in parameters.items()]
    if not any(isinstance(value, Array) for value in values):
        given = dict(zip(parameters, values, strict=True))
        return _theirs(name, size, **given, **options, sym=symmetric)
    arrays = promoted(name, *values)
    if size < 2:
        return constant(np.ones(size), arrays[0].dtype)
    return formula(size + (not symmetric), *arrays)[:size]


def _number(name: str, what: str, value: Any) -> Any:
    """Return a parameter as a float, or as an array if it is traced or differentiated."""
    if value is None:
        raise ArgumentError(f"{name}: {what} must be a real number, got None")
    return real_number(name, what, value)


def _cosines(size: int, count: int) -> np.ndarray[Any, Any]:
    """Return ``cos(j pi x)`` at the points of a window, as a matrix of the points and of j below ``count``."""
    return np.cos(np.linspace(-math.pi, math.pi, size)[:, None] * np.arange(count))


def _from_middle(size: int) -> np.ndarray[Any, Any]:
    """Return the signed distances of points from the middle of a window, in points."""
    return np.arange(size) - (size - 1) / 2


# Windows without parameters ------------------------------------------------------------------------------------------

_DOCUMENT = """Return {what}.

    Args:
      M: the number of points, an int that is not negative.
      sym: whether the window is symmetric, for filters; otherwise it is one period of a periodic one, for spectra:
        the symmetric window of ``M + 1`` points without the last.

    Returns:
      {formula}: a vector of ``M`` floats. A window of one point is 1.

    Raises:
      ArgumentError: an ``M`` that is negative or no int (a TypeError and a ValueError).

    >>> from pullback.scipy.signal import windows
    >>> print(windows.{name}(5).round(3))
    {example}
    """


def _fixed(name: str, what: str, formula: str, example: str, by_keyword: bool = False) -> Callable[..., Array]:
    """Return the function of a window without parameters.

    Args:
      name: its name.
      what: what it returns, in words.
      formula: the window, of the names in the docstring of this module.
      example: what five points print.
      by_keyword: whether ``sym`` is a keyword only.
    """

    def window(M: int, sym: bool = True) -> Array:
        return _window(name, M, sym, {}, NotImplemented)  # type: ignore[no-any-return]

    def of_keyword(M: int, *, sym: bool = True) -> Array:
        return window(M, sym)

    function: Any = of_keyword if by_keyword else window
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOCUMENT.format(name=name, what=what, formula=formula, example=example)
    return function  # type: ignore[no-any-return]


barthann = _fixed(
    "barthann", "the window of Bartlett and Hann, a triangle and a cosine",
    "``0.62 - 0.24 abs(x) + 0.38 cos(pi x)``", "[0.  0.5 1.  0.5 0. ]",
)  # fmt: skip
bartlett = _fixed("bartlett", "a triangle that is zero at both ends", "``d``", "[0.  0.5 1.  0.5 0. ]")
blackman = _fixed(
    "blackman", "Blackman's window, a sum of three cosines", "``0.42 + 0.5 cos(pi x) + 0.08 cos(2 pi x)``",
    "[-0.    0.34  1.    0.34 -0.  ]",
)  # fmt: skip
blackmanharris = _fixed(
    "blackmanharris", "the window of Blackman and Harris, a sum of four cosines with side lobes of -92 decibels",
    "``0.35875 + 0.48829 cos(pi x) + 0.14128 cos(2 pi x) + 0.01168 cos(3 pi x)``", "[0.    0.217 1.    0.217 0.   ]",
)  # fmt: skip
bohman = _fixed(
    "bohman", "Bohman's window, a half cosine convolved with itself",
    "``(1 - abs(x)) cos(pi abs(x)) + sin(pi abs(x)) / pi``, and 0 at both ends", "[0.    0.318 1.    0.318 0.   ]",
)  # fmt: skip
boxcar = _fixed("boxcar", "ones, the window of all points alike", "Ones", "[1. 1. 1. 1. 1.]")
cosine = _fixed(
    "cosine",
    "half a period of a sine",
    "``sin(pi (n + 0.5) / M)`` at the point ``n``",
    "[0.309 0.809 1.    0.809 0.309]",
)
flattop = _fixed(
    "flattop", "a window whose spectrum is flat in the middle, so that amplitudes are right between frequencies",
    "``0.21557895 + 0.41663158 cos(pi x) + 0.277263158 cos(2 pi x) + 0.083578947 cos(3 pi x) + 0.006947368 "
    "cos(4 pi x)``", "[-0.    -0.055  1.    -0.055 -0.   ]",
)  # fmt: skip
hamming = _fixed(
    "hamming", "Hamming's window, a cosine on a pedestal", "``0.54 + 0.46 cos(pi x)``", "[0.08 0.54 1.   0.54 0.08]"
)
hann = _fixed(
    "hann", "Hann's window, a raised cosine, which is zero at both ends", "``0.5 + 0.5 cos(pi x)``",
    "[0.  0.5 1.  0.5 0. ]",
)  # fmt: skip
lanczos = _fixed(
    "lanczos", "Lanczos' window, the main lobe of a normalised sinc", "``sin(pi x) / (pi x)``",
    "[0.    0.637 1.    0.637 0.   ]", by_keyword=True,
)  # fmt: skip
nuttall = _fixed(
    "nuttall", "Nuttall's window, a sum of four cosines with side lobes of -93 decibels",
    "``0.3635819 + 0.4891775 cos(pi x) + 0.1365995 cos(2 pi x) + 0.0106411 cos(3 pi x)``",
    "[0.    0.227 1.    0.227 0.   ]",
)  # fmt: skip
parzen = _fixed(
    "parzen", "Parzen's window, a piecewise cubic", "``1 - 6 y**2 + 6 y**3`` for ``y = 2 abs(n - (M - 1) / 2) / M`` up "
    "to 0.5, and ``2 (1 - y)**3`` beyond", "[0.016 0.424 1.    0.424 0.016]",
)  # fmt: skip
triang = _fixed(
    "triang", "a triangle that is not zero at its ends", "``1 - abs(n - (M - 1) / 2) / h``, ``h`` half of ``M + 1`` "
    "for an odd ``M``, and of ``M`` for an even one", "[0.333 0.667 1.    0.667 0.333]",
)  # fmt: skip

# Sums of cosines -----------------------------------------------------------------------------------------------------


def general_cosine(M: int, a: ArrayLike, sym: bool = True) -> Array:
    """Return a sum of cosines with given coefficients.

    Args:
      M: the number of points, an int that is not negative.
      a: the coefficients, a vector of real numbers.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``a[0] + a[1] cos(pi x) + a[2] cos(2 pi x) + ...``: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or coefficients that are no vector of real numbers (a
        TypeError and a ValueError).

    >>> from pullback.scipy.signal import windows
    >>> print(windows.general_cosine(5, [0.5, 0.5]))
    [0.  0.5 1.  0.5 0. ]
    """
    size, symmetric = _size("general_cosine", M), flag("general_cosine", "sym", sym)
    factors: Any = known_or_traced("general_cosine", a)
    if len(factors.shape) != 1 or not factors.shape[0] or dtypes.is_complex(factors.dtype):
        raise ArgumentError(f"general_cosine: a must be a non-empty vector of real numbers, got {quote(a)}")
    values = on_host(factors)
    if values is not None:
        return _theirs("general_cosine", size, values[0], symmetric)  # type: ignore[no-any-return]
    if size < 2:
        return constant(np.ones(size), factors.dtype)
    return pnp.matmul(constant(_cosines(size + (not symmetric), factors.shape[0]), factors.dtype), factors)[:size]


def general_hamming(M: int, alpha: ArrayLike, sym: bool = True) -> Array:
    """Return a cosine on a pedestal: Hann's window for 0.5, Hamming's for 0.54.

    Args:
      M: the number of points, an int that is not negative.
      alpha: the mean, a real number.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``alpha + (1 - alpha) cos(pi x)``: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or an ``alpha`` that is no real number (a TypeError and a
        ValueError).

    >>> from pullback.scipy.signal import windows
    >>> print(windows.general_hamming(5, 0.54).round(3))
    [0.08 0.54 1.   0.54 0.08]
    """

    def formula(size: int, alpha: Any) -> Any:
        wave = constant(_cosines(size, 2)[:, 1], alpha.dtype)
        return wave + alpha * (1 - wave)

    return _window("general_hamming", M, sym, {"alpha": alpha}, formula)  # type: ignore[no-any-return]


def tukey(M: int, alpha: ArrayLike = 0.5, sym: bool = True) -> Array:
    """Return ones between the two halves of a raised cosine.

    Args:
      M: the number of points, an int that is not negative.
      alpha: which part of the window the cosine is, a real number: all ones for 0 or less, Hann's window from 1 on.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``0.5 - 0.5 cos(pi d / alpha)`` where ``d < alpha``, and 1 elsewhere: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or an ``alpha`` that is no real number (a TypeError and a
        ValueError).

    Source: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier transform".

    >>> from pullback import grad
    >>> from pullback.scipy.signal import windows
    >>> print(windows.tukey(5, 0.8).round(3), grad(lambda alpha: windows.tukey(5, alpha)[1])(0.8).round(3))
    [0.    0.691 1.    0.691 0.   ] -1.134
    """

    def formula(size: int, alpha: Any) -> Any:
        d = constant(1 - np.abs(np.linspace(-1, 1, size)), alpha.dtype)
        wide = pnp.minimum(alpha, 1)
        falls = d < wide
        return 0.5 - 0.5 * pnp.cos(constant(math.pi, d.dtype) * pnp.where(falls, d / pnp.where(falls, wide, 1), 1))

    return _window("tukey", M, sym, {"alpha": alpha}, formula)  # type: ignore[no-any-return]


# Exponentials --------------------------------------------------------------------------------------------------------


def gaussian(M: int, std: ArrayLike, sym: bool = True) -> Array:
    """Return a Gaussian window.

    Args:
      M: the number of points, an int that is not negative.
      std: the standard deviation in points, a real number that is not zero.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``exp(-((n - (M - 1) / 2) / std)**2 / 2)`` at the point ``n``: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or an ``std`` that is no real number (a TypeError and a
        ValueError).

    >>> from pullback import grad
    >>> from pullback.scipy.signal import windows
    >>> print(windows.gaussian(5, 1.5).round(3), grad(lambda std: windows.gaussian(5, std)[0])(1.5).round(3))
    [0.411 0.801 1.    0.801 0.411] 0.487
    """

    def formula(size: int, std: Any) -> Any:
        return pnp.exp(-ops.square(constant(_from_middle(size), std.dtype) / std) / 2)

    return _window("gaussian", M, sym, {"std": std}, formula)  # type: ignore[no-any-return]


def general_gaussian(M: int, p: ArrayLike, sig: ArrayLike, sym: bool = True) -> Array:
    """Return a window of Gaussian type with another power: a Gaussian for ``p = 1``, a Laplace density for 0.5.

    Args:
      M: the number of points, an int that is not negative.
      p: half of the power, a positive number.
      sig: the width in points, a real number that is not zero.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``exp(-abs((n - (M - 1) / 2) / sig)**(2 p) / 2)`` at the point ``n``: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or parameters that are no real numbers (a TypeError and a
        ValueError).

    >>> from pullback.scipy.signal import windows
    >>> print(windows.general_gaussian(5, 1.5, 2.0).round(3))
    [0.607 0.939 1.    0.939 0.607]
    """

    def formula(size: int, p: Any, sig: Any) -> Any:
        far = np.abs(_from_middle(size))
        logarithms = constant(np.log(np.where(far == 0, 1, far)), p.dtype) - pnp.log(pnp.abs(sig))
        return pnp.where(far == 0, 1, pnp.exp(-pnp.exp(2 * p * logarithms) / 2))

    return _window("general_gaussian", M, sym, {"p": p, "sig": sig}, formula)  # type: ignore[no-any-return]


def exponential(M: int, center: ArrayLike | None = None, tau: ArrayLike = 1.0, sym: bool = True) -> Array:
    """Return a window that falls exponentially from its centre, Poisson's window.

    Args:
      M: the number of points, an int that is not negative.
      center: where it is 1, a real number of points; for a symmetric window None, which is the middle.
      tau: after how many points it falls to 1/e, a real number.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``exp(-abs(n - center) / tau)`` at the point ``n``: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, parameters that are no real numbers, or a centre of a
        symmetric window (a TypeError and a ValueError).

    >>> from pullback.scipy.signal import windows
    >>> print(windows.exponential(4, 0.0, 2.0, False).round(3))
    [1.    0.607 0.368 0.223]
    """
    if flag("exponential", "sym", sym) and center is not None:
        raise ArgumentError("exponential: with sym=True the center must be None; pass sym=False for another center")
    given = {"tau": tau} if center is None else {"tau": tau, "center": center}

    def formula(size: int, tau: Any, *center: Any) -> Any:
        points = constant(np.arange(size), tau.dtype)
        return pnp.exp(-pnp.abs(points - (center[0] if center else (size - 1) / 2)) / tau)

    return _window("exponential", M, sym, given, formula)  # type: ignore[no-any-return]


# Windows of optimal spectra ------------------------------------------------------------------------------------------


def kaiser(M: int, beta: ArrayLike, sym: bool = True) -> Array:
    """Return Kaiser's window, which nearly has the most energy in the main lobe of its spectrum.

    Args:
      M: the number of points, an int that is not negative.
      beta: the shape, a real number: ones for 0, like Hamming's window for 5, like Blackman's for 8.6.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      ``i0(beta sqrt(1 - x**2)) / i0(beta)``: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or a ``beta`` that is no real number (a TypeError and a
        ValueError).

    Source: Kaiser and Schafer 1980, "On the use of the I0-sinh window for spectrum analysis".

    >>> from pullback import grad
    >>> from pullback.scipy.signal import windows
    >>> print(windows.kaiser(5, 5.0).round(3), grad(lambda beta: windows.kaiser(5, beta)[1])(5.0).round(3))
    [0.037 0.553 1.    0.553 0.037] -0.075
    """
    return _window("kaiser", M, sym, {"beta": beta}, pnp.kaiser)  # type: ignore[no-any-return]


def kaiser_bessel_derived(M: int, beta: ArrayLike, *, sym: bool = True) -> Array:
    """Return the window derived from Kaiser's for the modified discrete cosine transform.

    Squares of the window and of the window moved by half its length add to 1.

    Args:
      M: the number of points, an even int that is not negative.
      beta: the shape of Kaiser's window, a real number.
      sym: must be true.

    Returns:
      Square roots of partial sums of Kaiser's window of ``M / 2 + 1`` points, divided by the whole sum, and their
      mirror image: a vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative, odd or no int, a ``beta`` that is no real number, or ``sym=False`` (a
        TypeError and a ValueError).

    >>> from pullback.scipy.signal import windows
    >>> print(windows.kaiser_bessel_derived(4, 3.0).round(3))
    [0.381 0.924 0.924 0.381]
    """
    if not flag("kaiser_bessel_derived", "sym", sym):
        raise ArgumentError("kaiser_bessel_derived: sym must be true, because the window is defined as symmetric")
    if _size("kaiser_bessel_derived", M) % 2:
        raise ArgumentError(f"kaiser_bessel_derived: M must be even, got {M}")

    def formula(size: int, beta: Any) -> Any:
        sums = pnp.cumsum(pnp.kaiser(size // 2 + 1, beta))
        half = pnp.sqrt(sums[:-1] / sums[-1])
        return pnp.concatenate([half, pnp.flip(half)])

    return _window("kaiser_bessel_derived", M, True, {"beta": beta}, formula)  # type: ignore[no-any-return]


def chebwin(M: int, at: ArrayLike, sym: bool = True) -> Array:
    """Return the window of Dolph and Chebyshev: all side lobes of its spectrum are equal, and the main lobe narrowest.

    Args:
      M: the number of points, an int that is not negative.
      at: how far the side lobes are below the main lobe in decibels, a real number that is not zero. Below 45 the
        window has peaks at its ends, and no use for spectra: a warning is issued where the number is known.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      The inverse discrete Fourier transform of values of a Chebyshev polynomial, divided by its largest element: a
      vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, or an ``at`` that is no real number (a TypeError and a
        ValueError).

    Source: Dolph 1946, "A current distribution for broadside arrays which optimizes the relationship between beam width
    and side-lobe level".

    >>> from pullback.scipy.signal import windows
    >>> print(windows.chebwin(5, 50.0).round(3))
    [0.205 0.701 1.    0.701 0.205]
    """
    decibels = known(_number("chebwin", "at", at))
    if decibels is not None and abs(decibels) < 45:
        warn(
            f"chebwin: side lobes at={float(decibels)} decibels below the main lobe are not suitable for spectra; "
            f"use 45 or more",
            UserWarning,
        )
    return _window("chebwin", M, sym, {"at": at}, _chebyshev_window)  # type: ignore[no-any-return]


def _chebyshev_window(size: int, at: Any) -> Any:
    order = size - 1
    edge = pnp.cosh(pnp.arccosh(10 ** (pnp.abs(at) / 20)) / order)
    points = edge * constant(np.cos(np.pi * np.arange(size) / size), at.dtype)
    inside = pnp.abs(points) < 1
    # Neither form is undefined where it is not used.
    waves = pnp.cos(order * pnp.arccos(pnp.where(inside, points, 0)))
    grows = pnp.cosh(order * pnp.arccosh(pnp.where(inside, 2, pnp.abs(points))))
    values = pnp.where(inside, waves, grows * pnp.where(points < 0, (-1) ** order, 1))
    if size % 2:
        half = pnp.fft.rfft(values).real
        window = pnp.concatenate([pnp.flip(half[1:]), half])
    else:
        angles = np.pi * np.arange(size) / size
        turned = ops.complex(values * constant(np.cos(angles), at.dtype), values * constant(np.sin(angles), at.dtype))
        half = pnp.fft.fft(turned).real[1 : size // 2 + 1]
        window = pnp.concatenate([pnp.flip(half), half])
    return window / pnp.max(window)


def taylor(M: int, nbar: int = 4, sll: ArrayLike = 30, norm: bool = True, sym: bool = True) -> Array:
    """Return Taylor's window, which is near to that of Chebyshev, with side lobes that fall after the first ones.

    Args:
      M: the number of points, an int that is not negative.
      nbar: the number of nearly equal side lobes, a positive int.
      sll: how far they are below the main lobe in decibels, a positive number.
      norm: whether to divide by the value in the middle.
      sym: whether the window is symmetric, or one period of a periodic one.

    Returns:
      A vector of ``M`` floats.

    Raises:
      ArgumentError: an ``M`` that is negative or no int, an ``nbar`` that is no positive int, or an ``sll`` that is no
        real number (a TypeError and a ValueError).

    Source: Carrara, Goodman and Majewski 1995, *Spotlight Synthetic Aperture Radar*, appendix D.2.

    >>> from pullback.scipy.signal import windows
    >>> print(windows.taylor(5).round(3))
    [0.332 0.772 1.    0.772 0.332]
    """
    lobes, normal = positive_int("taylor", "nbar", nbar), flag("taylor", "norm", norm)

    def formula(size: int, sll: Any) -> Any:
        waves = np.arange(1, lobes)
        squares = waves * waves
        root = ops.square(pnp.arccosh(10 ** (sll / 20)) / math.pi)
        stretch = lobes**2 / (root + (lobes - 0.5) ** 2)
        zeros = stretch * (root + constant((waves - 0.5) ** 2, sll.dtype))
        above = pnp.prod(1 - constant(squares[:, None], sll.dtype) / zeros[None], axis=1)
        others = np.where(np.eye(lobes - 1), 1, 1 - squares[:, None] / squares)
        factors = above * constant((-1.0) ** (waves + 1) / np.prod(others, axis=1), sll.dtype)
        at = np.append(_from_middle(size), 0) / size
        values = 1 + pnp.matmul(constant(np.cos(2 * math.pi * at[:, None] * waves), sll.dtype), factors)
        return values[:-1] / values[-1] if normal else values[:-1]

    return _window("taylor", M, sym, {"sll": sll}, formula, nbar=lobes, norm=normal)  # type: ignore[no-any-return]


# long: half of it is its documentation
def dpss(
    M: int, NW: ArrayLike, Kmax: int | None = None, sym: bool = True, norm: int | str | None = None,
    return_ratios: bool = False,
) -> Any:  # fmt: skip
    """Return Slepian's windows, which have the most energy in a band: discrete prolate spheroidal sequences.

    Args:
      M: the number of points, an int that is not negative.
      NW: half of the band's width times the number of points, a positive number that is less than ``M / 2``.
      Kmax: how many windows to return, orthogonal to each other; one without an axis for it by default.
      sym: whether the window is symmetric, or one period of a periodic one.
      norm: 2 for windows of norm 1, the default for several. Otherwise the largest element is 1; for an even ``M`` this
        is the largest element of the continuous window: ``"approximate"``, the default for one window, by the factor
        ``M**2 / (M**2 + NW)``, and ``"subsample"`` by its Fourier series.
      return_ratios: whether to return which parts of the energies are in the band.

    Returns:
      A vector of ``M`` floats, or a matrix of ``Kmax`` rows; with ``return_ratios`` a tuple of it and of a number, or a
      vector. Rows of even order have a positive sum, those of odd order a positive first lobe.

    Raises:
      ArgumentError: numbers that make no sense, or an unknown ``norm`` (a TypeError and a ValueError).

    Source: Percival and Walden 1993, *Spectral Analysis for Physical Applications*, chapter 8: the windows are
    eigenvectors of a tridiagonal matrix.

    >>> from pullback.scipy.signal import windows
    >>> print(windows.dpss(5, 1.5).round(3))
    [0.261 0.741 1.    0.741 0.261]
    """
    name = "dpss"
    size, symmetric, ratios = _size(name, M), flag(name, "sym", sym), flag(name, "return_ratios", return_ratios)
    count = None if Kmax is None else positive_int(name, "Kmax", Kmax)
    width = _number(name, "NW", NW)
    if norm is None:
        norm = "approximate" if count is None else 2
    if norm not in (2, "approximate", "subsample"):
        raise ArgumentError(f"dpss: norm must be 2, 'approximate' or 'subsample', got {quote(norm)}")
    found = known(width)
    if size > 1 and found is not None and not 0 < found < size / 2:
        raise ArgumentError(f"dpss: NW must be positive and less than half of M, {size / 2}, got {found}")
    if count is not None and count > size > 1:
        raise ArgumentError(f"dpss: Kmax must be at most M, {size}, got {count}")
    if not isinstance(width, Array):
        out = of_scipy(
            name,
            lambda: imported("scipy.signal.windows").dpss(size, width, count, symmetric, norm, ratios),
        )
        return tuple(map(default_floats, out)) if ratios else default_floats(out)
    (width,) = promoted(name, width)
    if size < 2:
        ones = constant(np.ones(size), width.dtype)
        return (ones, ones[0] if count is None else ones[:1]) if ratios else ones
    windows, energies = _slepian(size + (not symmetric), width, count or 1, norm)
    windows = windows[:, :size]
    if count is None:
        windows, energies = windows[0], energies[0]
    return (windows, energies) if ratios else windows


def _slepian(size: int, width: Any, count: int, norm: Any) -> tuple[Any, Any]:
    """Return windows of :func:`dpss`, rows of a matrix, and which parts of their energies are in the band."""
    along, k = lambda values: constant(values, width.dtype), np.arange(size)
    band = width / size
    # Divided by the square of the size, so that single precision suffices.
    off = along(k[1:] * (size - k[1:]) / (2 * size**2))
    middle = along(np.square(_from_middle(size) / size)) * pnp.cos(along(2 * math.pi) * band)
    vectors = pnp.linalg.eigh(pnp.diag(middle) + pnp.diag(off, 1) + pnp.diag(off, -1))[1]
    windows = pnp.flip(vectors.T[-count:], 0)
    # The first element that is no rounding error tells the sign of the first lobe.
    clear = pnp.argmax(ops.square(windows) > max(1e-7, 1 / size), axis=1)
    first = pnp.take_along_axis(windows, clear[:, None], 1)[:, 0]
    windows = windows * pnp.where(pnp.where(k[:count] % 2 == 0, pnp.sum(windows, 1), first) < 0, -1, 1)[:, None]
    lags = pnp.fft.irfft(ops.square(pnp.abs(pnp.fft.rfft(windows, 2 * size))), 2 * size)[:, :size]
    energies = pnp.matmul(lags, 2 * band * pnp.sinc(2 * band * along(k)) * along(np.where(k, 2, 1)))
    if norm == 2:
        return windows, energies
    windows = windows / pnp.max(windows)
    if size % 2 == 0 and norm == "approximate":
        windows = windows * (size**2 / (size**2 + width))
    elif size % 2 == 0:
        j = np.arange(size // 2 + 1)
        turns = np.where(j, 2, 1) * np.exp(1j * np.pi * (1 - 1 / size) * j)
        series = pnp.fft.rfft(windows[0]) * constant(turns, dtypes.to_complex(width.dtype))
        windows = windows * (size / pnp.sum(series.real))
    return windows, energies


# Windows by their names ----------------------------------------------------------------------------------------------

_NAMES = {
    barthann: "barthann brthan bth", bartlett: "bartlett bart brt", blackman: "blackman black blk",
    blackmanharris: "blackmanharris blackharr bkh", bohman: "bohman bman bmn",
    boxcar: "boxcar box ones rect rectangular", cosine: "cosine halfcosine", flattop: "flattop flat flt",
    hamming: "hamming hamm ham", hann: "hann han", lanczos: "lanczos sinc", nuttall: "nuttall nutl nut",
    parzen: "parzen parz par", triang: "triangle triang tri",
}  # fmt: skip
_WITH = {
    chebwin: "chebwin cheb", dpss: "dpss", gaussian: "gaussian gauss gss", general_cosine: "general_cosine",
    general_gaussian: "general_gaussian general_gauss ggs", general_hamming: "general_hamming", kaiser: "kaiser ksr",
    kaiser_bessel_derived: "kaiser_bessel_derived kbd", exponential: "exponential poisson", taylor: "taylor taylorwin",
    tukey: "tukey tuk",
}  # fmt: skip
_BY_NAME: dict[str, Any] = {
    name: f for table in (_NAMES, _WITH) for f, names in table.items() for name in names.split()
}


def get_window(window: str | ArrayLike | tuple[Any, ...], Nx: int, fftbins: bool = True) -> Array:
    """Return the window of a name.

    Args:
      window: the name, with ``_symmetric`` or ``_periodic`` at its end instead of ``fftbins``; a tuple of a name and
        parameters, which may be traced; or a number, the ``beta`` of :func:`kaiser`.
      Nx: the number of points, a positive int.
      fftbins: whether the window is one period of a periodic one, for spectra; otherwise it is symmetric.

    Returns:
      A vector of ``Nx`` floats.

    Raises:
      ArgumentError: an unknown name, parameters that are missing or too many, or an ``Nx`` that is not positive (a
        TypeError and a ValueError).

    >>> from pullback import grad
    >>> from pullback.scipy import signal
    >>> print(signal.get_window("hann", 4), signal.get_window("hann_symmetric", 3))
    [0.  0.5 1.  0.5] [0. 1. 0.]
    >>> print(grad(lambda std: signal.get_window(("gaussian", std), 5)[0])(1.5).round(3))
    0.462
    """
    size, sym = positive_int("get_window", "Nx", Nx), not flag("get_window", "fftbins", fftbins)
    if not isinstance(window, (str, tuple)):
        return kaiser(size, _number("get_window", "window", window), sym)
    if isinstance(window, tuple) and not (window and isinstance(window[0], str)):
        raise ArgumentError(f"get_window: the first element of a window must be its name, got {quote(window)}")
    name, parameters = (window, ()) if isinstance(window, str) else (window[0], window[1:])
    for ending, symmetric in (("_symmetric", True), ("_periodic", False)):
        if name.endswith(ending):
            name, sym = name.removesuffix(ending), symmetric
    function = _BY_NAME.get(name.replace(" ", "_"))
    if function is None:
        names = ", ".join(sorted({f.__name__ for f in _BY_NAME.values()}))
        raise ArgumentError(f"get_window: unknown window {quote(window)}; the names are {names}")
    if function in _NAMES and parameters:
        raise ArgumentError(f"get_window: the window {name!r} has no parameters, got {quote(window)}")
    if function in _WITH and not parameters and function not in (exponential, taylor, tukey):
        raise ArgumentError(f"get_window: the window {name!r} must be a tuple of the name and its parameters")
    if function is dpss and len(parameters) != 1:
        raise ArgumentError(f"get_window: the window 'dpss' has one parameter, NW, got {quote(window)}")
    try:
        return function(size, *parameters, sym=sym)  # type: ignore[no-any-return]
    except TypeError as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"get_window: the parameters of {quote(window)} do not fit: {error}") from None


face(globals())
