"""The discrete Fourier transform over the last axes of an array, as one linear operation of four kinds.

On the host it is pocketfft's, through ``scipy.fft``, which computes single precision in single precision; NumPy's takes
twice the time for real operands, and ten times for several axes.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import fourier as host
from pullback.core import dtypes
from pullback.core.array import ArrayImpl
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.large import compiled_from
from pullback.primitives.rules import jvp_linear


class FftType(enum.IntEnum):
    """The kind of a Fourier transform.

    FFT is the forward transform, and IFFT the inverse transform, both of complex numbers. RFFT is the forward transform
    of real numbers, and IRFFT its inverse, which returns real numbers.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.fft(jnp.array([1.0, 0.0, 0.0, 0.0]), lax.FftType.RFFT, (4,)))
    [1.+0.j 1.+0.j 1.+0.j]
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: Any, kind: FftType, lengths: Sequence[int]) -> Any:
    """Return the Fourier transform of a ``kind`` over the last ``len(lengths)`` axes.

    The transformed axes have the sizes ``lengths``. There is one exception: the last axis has only
    ``lengths[-1] // 2 + 1`` elements in the result of RFFT and in the operand of IRFFT. ``FFT`` and ``IFFT`` accept
    real operands too. The inverse transforms are divided by the product of the lengths.
    """
    return fft_p.bind(x, fft_type=kind, fft_lengths=tuple(lengths))


fft_p = Primitive("fft", keeps_weak_type=False, cost=Cost.SPECIAL)
works_on_last(fft_p, lambda params: len(params["fft_lengths"]))
fft_p.jvp_rule = jvp_linear(fft_p)

_HOST = {FftType.FFT: "fft", FftType.IFFT: "ifft", FftType.RFFT: "rfft", FftType.IRFFT: "irfft"}


@fft_p.host
def _fft_host(x: Any, *, fft_type: FftType, fft_lengths: Shape) -> Any:
    if x.size == 0:  # an empty batch
        shape = _result_shape(x.shape, fft_type, fft_lengths)
        return np.empty(shape, _result_dtype(x.dtype, fft_type))
    count = len(fft_lengths)
    if not count:
        return x.astype(_result_dtype(x.dtype, fft_type), copy=False)
    if _is_divided(x, fft_type=fft_type, fft_lengths=fft_lengths):
        return host.transformed(x, fft_type is FftType.IFFT)
    halved = fft_type is FftType.IRFFT
    scipy_fft = imported("scipy.fft")
    if count == 1:
        out = getattr(scipy_fft, _HOST[fft_type])(x, fft_lengths[0] if halved else None)
    else:
        transform = getattr(scipy_fft, _HOST[fft_type] + "n")
        out = transform(x, fft_lengths if halved else None, tuple(range(-count, 0)))
    if x.dtype.kind == "f" and fft_type is not FftType.RFFT:
        out += 0  # half of it are conjugates, with -0 where a complex transform has 0
    return out


def _is_divided(x: Any, *, fft_type: FftType, fft_lengths: Shape) -> bool:
    """Whether the host divides a transform into many short ones, which takes less time than the compiler's."""
    is_of_vectors = len(fft_lengths) == 1 and fft_type in (FftType.FFT, FftType.IFFT)
    return is_of_vectors and host.is_divided(x.shape, x.dtype)


compiled_from(fft_p, 100_000, unless=_is_divided)  # 512 x 512: 2596 / 1222


# Types -------------------------------------------------------------------------------------------------------------


@fft_p.abstract_eval
def _fft_abstract_eval(x: ShapedArray, *, fft_type: FftType, fft_lengths: Shape) -> ShapedArray:
    return ShapedArray(_result_shape(x.shape, fft_type, fft_lengths), _result_dtype(x.dtype, fft_type))


def _result_dtype(dtype: np.dtype[Any], kind: FftType) -> np.dtype[Any]:
    accepted = {FftType.RFFT: "fd", FftType.IRFFT: "FD"}.get(kind, "fdFD")
    if dtype.char not in accepted:
        shown = " or ".join(str(np.dtype(char)) for char in accepted)
        raise DtypeError(f"fft of kind {kind.name} takes {shown}, got {dtypes.short_name(dtype)}; convert with astype")
    return dtypes.to_real(dtype) if kind is FftType.IRFFT else dtypes.to_complex(dtypes.to_real(dtype))


def _result_shape(shape: Shape, kind: FftType, lengths: Shape) -> Shape:
    first = len(shape) - len(lengths)
    if first < 0:
        raise ShapeError(f"fft: {len(lengths)} lengths, {lengths}, for an array of shape {shape}, which has fewer axes")
    if any(n < 1 for n in lengths):
        raise ShapeError(f"fft: a transform needs at least one point along each axis, got lengths {lengths}")
    halved = (*lengths[:-1], lengths[-1] // 2 + 1) if lengths else ()
    before, after = (halved if kind is which else lengths for which in (FftType.IRFFT, FftType.RFFT))
    if shape[first:] != before:
        raise ShapeError(
            f"fft of kind {kind.name} with lengths {lengths} takes an array whose last axes have sizes {before}, got "
            f"shape {shape}"
        )
    return (*shape[:first], *after)


# Transposition -----------------------------------------------------------------------------------------------------


@fft_p.transpose
def _fft_transpose(ct: Any, x: LinearVar, *, fft_type: FftType, fft_lengths: Shape) -> Any:
    """Transpose a Fourier transform: return the cotangent of ``x`` for the cotangent ``ct`` of the result.

    FFT and IFFT are their own transposes. The transpose of RFFT is IRFFT, and the transpose of IRFFT is RFFT, with
    conjugation and weights. The weights are needed since some coefficients of a real transform also represent their
    conjugates.
    """
    if not fft_lengths:
        return (ct if dtypes.is_complex(x.dtype) or fft_type is FftType.IRFFT else ops.real(ct),)
    if fft_type is FftType.RFFT:
        weights = math.prod(fft_lengths) / _multiplicities(fft_lengths[-1])
        weighted = ops.mul(ops.conj(ct), ArrayImpl(weights.astype(ct.dtype)))
        return (fft(weighted, FftType.IRFFT, fft_lengths),)
    if fft_type is FftType.IRFFT:
        weights = _multiplicities(fft_lengths[-1]) / math.prod(fft_lengths)
        out = ops.conj(fft(ct, FftType.RFFT, fft_lengths))
        return (ops.mul(out, ArrayImpl(weights.astype(out.dtype))),)
    out = fft(ct, fft_type, fft_lengths)
    return (out if dtypes.is_complex(x.dtype) else ops.real(out),)


def _multiplicities(length: int) -> Any:
    """Return how many coefficients of the complex transform each coefficient of a real transform determines: 1 or 2.

    ``length`` is the number of real elements. A coefficient counts twice if it also determines its conjugate.
    """
    counts = np.full(length // 2 + 1, 2.0)
    counts[0] = 1
    if length % 2 == 0:
        counts[-1] = 1
    return counts


# Batching ----------------------------------------------------------------------------------------------------------


@fft_p.batch
def _fft_batch(axis: MappedAxis, args: Any, dims: Any, *, fft_type: FftType, fft_lengths: Shape) -> Any:
    (x,), (d,) = args, dims
    if d >= len(x.shape) - len(fft_lengths):
        x, d = shapes.moveaxis(x, d, 0), 0
    return fft(x, fft_type, fft_lengths), d


# Compilation -------------------------------------------------------------------------------------------------------

_MOST_AXES = 3
"""The most axes of one transform of the compiler."""


@fft_p.lowering
def _fft_lowering(hlo: Any, x: Any, *, fft_type: FftType, fft_lengths: Shape) -> Any:
    result = hlo.result
    if 0 in result.shape:
        return hlo.splat(0, result.shape, result.dtype)
    is_complex = fft_type in (FftType.FFT, FftType.IFFT)
    if not fft_lengths:
        real = not is_complex and fft_type is FftType.IRFFT
        return hlo.op("stablehlo.real", [x], x.shape, result.dtype) if real else hlo.convert(x, result.dtype)
    if is_complex:
        x = hlo.convert(x, result.dtype)
    last = fft_lengths[-_MOST_AXES:]
    others = fft_lengths[:-_MOST_AXES]
    complex_kind = FftType.FFT if fft_type in (FftType.FFT, FftType.RFFT) else FftType.IFFT
    if fft_type is not FftType.RFFT:  # a transform to real numbers is the last step, one from them the first
        x = _over_more_axes(hlo, x, complex_kind, others, len(last))
    x = _written(hlo, x, fft_type, last)
    return _over_more_axes(hlo, x, complex_kind, others, len(last)) if fft_type is FftType.RFFT else x


def _written(hlo: Any, x: Any, kind: FftType, lengths: Shape) -> Any:
    shape = _result_shape(x.shape, kind, lengths)
    sizes = ", ".join(map(str, lengths))
    attributes = f"fft_type = #stablehlo<fft_type {kind.name}>, fft_length = array<i64: {sizes}>"
    out = hlo.op("stablehlo.fft", [x], shape, _result_dtype(x.dtype, kind), attributes)
    return _row_major(hlo, out) if hlo.module.platform == "cpu" and len(shape) > 1 else out


def _row_major(hlo: Any, x: Any) -> Any:
    """Emit a copy of ``x`` that is constrained to be row-major, the only layout that the compiler's transform accepts.

    The compiler makes arrays column-major if LAPACK uses them in the same program.
    """
    layout = f"[dense<{list(reversed(range(len(x.shape))))}> : tensor<{len(x.shape)}xindex>]"
    return hlo.op(
        "stablehlo.custom_call", [x], x.shape, x.dtype,
        f'call_target_name = "LayoutConstraint", api_version = 1 : i32, operand_layouts = {layout}, '
        f"result_layouts = {layout}",
    )  # fmt: skip


def _over_more_axes(hlo: Any, x: Any, kind: FftType, lengths: Shape, skipped: int) -> Any:
    """Emit the complex transform over the axes before the last ``skipped`` axes.

    There is one transformed axis for each element of ``lengths``. The axes are transformed at most three at a time,
    the compiler's limit.
    """
    for end in range(len(lengths), 0, -_MOST_AXES):
        here = lengths[max(end - _MOST_AXES, 0) : end]
        stop = len(x.shape) - skipped - (len(lengths) - end)
        moved = range(stop - len(here), stop)
        order = [*(i for i in range(len(x.shape)) if i not in moved), *moved]
        inverse = sorted(range(len(order)), key=order.__getitem__)
        x = hlo.transpose(_written(hlo, hlo.transpose(x, order), kind, here), inverse)
    return x
