"""Windows by which short-time Fourier transforms are inverted: dual windows."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import known
from pullback.scipy.signal.arguments import known_or_traced, promoted
from pullback.scipy.signal.windows import get_window

__all__ = ["check_COLA", "check_NOLA", "closest_STFT_dual_window"]


def window_of(name: str, what: str, window: Any, like: Any = None) -> Any:
    """Convert a window to a vector of finite floats; of the shape of ``like`` if that is not None."""
    x = known_or_traced(name, window)
    if len(x.shape) != 1 or not x.shape[0]:
        raise ShapeError(f"{name}: {what} must be a non-empty vector, got shape {x.shape}")
    if like is not None and x.shape != like.shape:
        raise ShapeError(f"{name}: {what} must have the shape of the window, {like.shape}, got {x.shape}")
    values = known(x)
    if values is not None and not np.isfinite(values).all():
        raise ArgumentError(f"{name}: {what} must have finite elements, got {quote(window)}")
    return x


def hop_of(name: str, hop: Any, most: int | None = None) -> int:
    step = known_int(name, "hop", hop)
    if step < 1 or (most is not None and step > most):
        limits = "positive" if most is None else f"from 1 to the {most} elements of the window"
        raise ArgumentError(f"{name}: hop must be {limits}, got {step}")
    return step


def over_slices(x: Any, hop: int) -> Any:
    """Return for each element the sum of the elements at distances that are multiples of ``hop``."""
    n = x.shape[0]
    rows = shapes.reshape(pnp.pad(x, [(0, -n % hop)]), (-(-n // hop), hop))
    return pnp.tile(pnp.sum(rows, axis=0), rows.shape[0])[:n]


def power_of(x: Any) -> Any:
    """Return squares of absolute values."""
    return ops.square(ops.real(x)) + ops.square(ops.imag(x)) if dtypes.is_complex(x.dtype) else ops.square(x)


def has_dual(window: Any, hop: int) -> bool | None:
    """Whether the transform of a window can be inverted; None if the window is traced."""
    if hop > window.shape[0]:
        return False
    sums = known(over_slices(power_of(window), hop))
    return None if sums is None else bool((sums >= np.finfo(sums.dtype).resolution * sums.max()).all())


def dual_of(name: str, window: Any, hop: int) -> Any:
    """Return the canonical dual window, that of least energy."""
    if has_dual(window, hop) is False:
        raise ArgumentError(
            f"{name}: the transform is not invertible, because slices of the window at distances hop={hop} leave "
            f"elements out; use a smaller hop"
        )
    return window / over_slices(power_of(window), hop)


def closest_STFT_dual_window(
    win: ArrayLike, hop: int, desired_dual: ArrayLike | None = None, *, scaled: bool = True
) -> tuple[Array, Any]:
    """Return the dual window that is closest to a desired one, by least squares.

    Args:
      win: the window, a vector of floats or complex numbers.
      hop: the distance of slices, from 1 to the number of elements.
      desired_dual: the desired dual window, a vector of the same size; ones by default.
      scaled: whether to return a dual window of ``alpha win``, with the best number ``alpha``.

    Returns:
      The dual window, of the shape of ``win``, and ``alpha``, which is 1 unless ``scaled``.

    Raises:
      ArgumentError: a ``hop`` out of range, or a window without a dual one (a TypeError and a ValueError).
      ShapeError: windows that are no vectors of one size (a TypeError and a ValueError).

    Source: Werther, Eldar and Subbanna 2005, "Dual Gabor frames: theory and computational aspects".

    >>> from pullback.scipy import signal
    >>> window = signal.windows.bartlett(4, sym=False)
    >>> print(*signal.closest_STFT_dual_window(window, 2))
    [1. 1. 1. 1.] 1.0
    """
    name = "closest_STFT_dual_window"
    window = window_of(name, "win", win)
    wanted = pnp.ones_like(window) if desired_dual is None else window_of(name, "desired_dual", desired_dual, window)
    window, wanted = promoted(name, window, wanted)
    step = hop_of(name, hop, window.shape[0])
    least = dual_of(name, window, step)
    share = least * over_slices(ops.conj(window) * wanted, step)
    if not scaled:
        return least + wanted - share, 1.0
    alpha = pnp.vdot(share, least) / pnp.sum(power_of(share))
    size = known(pnp.abs(alpha))
    if size is not None and not 0 < size < np.inf:
        raise ArgumentError(f"{name}: no multiple of the window is closest to desired_dual; use scaled=False")
    return least + alpha * (wanted - share), alpha


# Overlaps ------------------------------------------------------------------------------------------------------------


def _sums(name: str, window: Any, nperseg: Any, noverlap: Any, power: int) -> Any:
    """Return the sums of a power of a window's elements over slices, one for each position in a step."""
    size, overlap = known_int(name, "nperseg", nperseg), known_int(name, "noverlap", noverlap)
    if size < 1 or not 0 <= overlap < size:
        raise ArgumentError(
            f"{name}: nperseg must be positive, and noverlap from 0 to less than nperseg, got {size} and {overlap}"
        )
    x = get_window(window, size) if isinstance(window, (str, tuple)) else window_of(name, "window", window)
    values = known(x)
    if values is None:
        raise ArgumentError(f"{name}: the window must be known, but it is traced")
    if values.shape != (size,):
        raise ShapeError(f"{name}: the window must have nperseg={size} elements, got shape {values.shape}")
    step = size - overlap
    padded = np.pad(values.astype(np.result_type(values, np.float64)) ** power, (0, -size % step))
    return padded.reshape(-1, step).sum(0)


def check_COLA(
    window: str | tuple[Any, ...] | ArrayLike, nperseg: int, noverlap: int, tol: float = 1e-10
) -> bool:  # fmt: skip
    """Return whether the slices of a window add to a constant, so that segments can be added again.

    Args:
      window: the window, as for :func:`get_window`, or a vector.
      nperseg: the number of elements of a segment.
      noverlap: how many of them neighbouring segments share.
      tol: the largest difference of a sum from the median one.

    Returns:
      A bool.

    Raises:
      ArgumentError: numbers that make no sense, or a traced window (a TypeError and a ValueError).
      ShapeError: a window of another size (a TypeError and a ValueError).

    >>> from pullback.scipy import signal
    >>> print(signal.check_COLA("hann", 120, 60), signal.check_COLA("hann", 120, 10))
    True False
    """
    sums = _sums("check_COLA", window, nperseg, noverlap, 1)
    # Windows of single precision have its rounding errors.
    return bool(np.abs(sums - np.median(sums)).max() < max(tol, _rounding(sums)))


def check_NOLA(
    window: str | tuple[Any, ...] | ArrayLike, nperseg: int, noverlap: int, tol: float = 1e-10
) -> bool:  # fmt: skip
    """Return whether the squares of the slices of a window add to a positive number everywhere: :func:`istft` needs it.

    Args:
      window, nperseg, noverlap: as for :func:`check_COLA`.
      tol: the number than which all sums must be larger.

    Returns:
      A bool.

    Raises:
      ArgumentError, ShapeError: as for :func:`check_COLA`.

    >>> from pullback.scipy import signal
    >>> print(signal.check_NOLA("hann", 64, 32), signal.check_NOLA("hann", 64, 0))
    True False
    """
    return bool(_sums("check_NOLA", window, nperseg, noverlap, 2).min() > tol)


def _rounding(sums: Any) -> float:
    """Return the rounding error of sums of a window in the default precision."""
    return (
        0.0 if dtypes.default_float() == np.float64 else 4 * float(np.finfo(np.float32).eps) * float(np.abs(sums).max())
    )
