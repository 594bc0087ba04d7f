"""The Fourier transform, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import dtypes
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.lax.arguments import ints
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import array_operand, bind
from pullback.primitives.signals.fourier import FftType, fft_p


def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last axes.

    Args:
      x: an array, whose last ``len(fft_lengths)`` axes are transformed: real for ``RFFT``, complex for ``IRFFT``.
      fft_type: the kind, a :class:`FftType`, its name ("FFT", "IFFT", "RFFT", "IRFFT"), or its number.
      fft_lengths: the sizes of these axes; on the complex side of a real transform the last one is ``n // 2 + 1``.

    Returns:
      Complex numbers, or real ones for ``IRFFT``. Inverse transforms are divided by the product of the lengths.

    Raises:
      ShapeError: the lengths do not fit, a length is zero, or the kind is unknown (a TypeError and a ValueError).
      DtypeError: complex numbers for ``RFFT`` or others for ``IRFFT``, or less than single precision (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), "RFFT", (4,)))
    [10.+0.j -2.+2.j -2.+0.j]
    """
    x = array_operand("fft", x)
    kind = _kind(fft_type)
    lengths = ints(fft_lengths if isinstance(fft_lengths, (tuple, list)) else (fft_lengths,))
    if kind in (FftType.FFT, FftType.IFFT) and not dtypes.is_inexact(x.dtype):
        x = ops.convert_element_type(x, dtypes.to_inexact(x.dtype))
    return bind(fft_p, x, fft_type=kind, fft_lengths=lengths)


def _kind(requested: Any) -> FftType:
    try:
        return FftType[requested.upper()] if isinstance(requested, str) else FftType(requested)
    except (KeyError, ValueError):
        shown = ", ".join(kind.name for kind in FftType)
        raise ShapeError(f"lax.fft: fft_type must be one of {shown}, or its number, got {requested!r}") from None
