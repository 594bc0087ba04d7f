"""Discrete cosine and sine transforms of types 1 to 4 along the last axis, as one linear operation.

On the host they are pocketfft's, through ``scipy.fft``. When compiled, they are Fourier transforms of the same length
(twice the length for types 1 and 4), with factors before and after: Makhoul 1980, *A fast cosine transform in one and
two dimensions*. A sine transform is the cosine transform of the same type of the reversed operand, or with alternating
signs: Britanak, Yip and Rao 2007, *Discrete Cosine and Sine Transforms*, chapter 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import ArrayImpl
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.interrupts import imported
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.axis_maps import works_on_last
from pullback.primitives.rules import jvp_linear
from pullback.primitives.signals.fourier import FftType, fft


def cosine_transform(x: Any, type: int, sine: bool = False) -> Any:
    """Return the cosine transform of real numbers along the last axis, or the sine transform if ``sine``.

    ``type`` is 1 to 4, as in SciPy. The transform has no normalization factor (SciPy's norm "backward").
    """
    return cosine_transform_p.bind(x, type=type, sine=sine)


cosine_transform_p = Primitive("cosine_transform", keeps_weak_type=False, cost=Cost.SPECIAL)
works_on_last(cosine_transform_p, 1)
cosine_transform_p.jvp_rule = jvp_linear(cosine_transform_p)


@cosine_transform_p.host
def _host(x: Any, *, type: int, sine: bool) -> Any:
    if x.size == 0:  # an empty batch
        return np.empty(x.shape, x.dtype)
    scipy_fft = imported("scipy.fft")
    return (scipy_fft.dst if sine else scipy_fft.dct)(x, type)


@cosine_transform_p.abstract_eval
def _abstract_eval(x: ShapedArray, *, type: int, sine: bool) -> ShapedArray:
    if x.dtype.char not in "fd":
        raise DtypeError(f"cosine_transform takes float32 or float64, got {dtypes.short_name(x.dtype)}")
    least = 2 if type == 1 and not sine else 1
    if not x.shape or x.shape[-1] < least:
        raise ShapeError(
            f"a {'sine' if sine else 'cosine'} transform of type {type} needs at least {least} points along the axis, "
            f"got shape {x.shape}"
        )
    return x


@cosine_transform_p.transpose
def _transpose(ct: Any, x: LinearVar, *, type: int, sine: bool) -> Any:
    """Transpose a cosine or sine transform: return the cotangent of ``x`` for the cotangent ``ct`` of the result.

    The transpose of type 2 is type 3, and the transpose of type 3 is type 2. Types 1 and 4 are their own transposes.
    Weights correct for the end elements, whose terms in the sums of types 1 to 3 lack the factor 2.
    """
    n = x.shape[-1]
    multiplicities = np.ones(n, x.dtype)
    if type == 1 and not sine:
        multiplicities[[0, -1]] = 2
    elif type in (2, 3):
        multiplicities[-1 if sine else 0] = 2
    if type == 4 or (type == 1 and sine):
        return (cosine_transform(ct, type, sine),)
    weights = ArrayImpl(multiplicities)
    if type == 3:
        return (ops.div(cosine_transform(ct, 2, sine), weights),)
    out = cosine_transform(ops.mul(ct, weights), 1 if type == 1 else 3, sine)
    return (ops.div(out, weights) if type == 1 else out,)


# Compilation -------------------------------------------------------------------------------------------------------


@cosine_transform_p.lowering
def _lowering(hlo: Any, x: Any, *, type: int, sine: bool) -> Any:
    if 0 in x.shape:
        return hlo.splat(0, x.shape, x.dtype)
    return hlo.inline(lambda x: _by_fft(x, type, sine), x)


def _by_fft(x: Any, type: int, sine: bool) -> Any:
    """Evaluate the cosine transform of ``type`` 1 to 4, or the sine transform if ``sine``, by a Fourier transform."""
    last = len(x.shape) - 1
    n = x.shape[last]
    if type == 1:
        if sine:
            zero = shapes.full((*x.shape[:-1], 1), 0, x.dtype)
            odd = slicing.concatenate([zero, x, zero, ops.neg(slicing.rev(x, (last,)))], last)
            return ops.neg(ops.imag(slicing.slice_in_dim(fft(odd, FftType.RFFT, (2 * n + 2,)), 1, n + 1, last)))
        middle = slicing.rev(slicing.slice_in_dim(x, 1, n - 1, last), (last,))
        return ops.real(fft(slicing.concatenate([x, middle], last), FftType.RFFT, (2 * n - 2,)))
    signs = ArrayImpl(np.where(np.arange(n) % 2, -1, 1).astype(x.dtype))
    if sine and type == 2:
        return slicing.rev(_second(ops.mul(x, signs)), (last,))
    if sine:
        return ops.mul(signs, (_third if type == 3 else _fourth)(slicing.rev(x, (last,))))
    return (_second, _third, _fourth)[type - 2](x)


def _turns(numerators: Any, denominator: int, like: Any) -> ArrayImpl:
    """Return ``exp(-2πi k / d)`` for each numerator k and the denominator d.

    The result is computed in double precision, and rounded to the complex dtype with the precision of ``like``.
    """
    exact = np.exp(-2j * math.pi * np.asarray(numerators, np.float64) / denominator)
    return ArrayImpl(exact.astype(dtypes.to_complex(like.dtype)))


def _second(x: Any) -> Any:
    """The type 2 cosine transform, y[k] = 2 Σ x[j] cos(π k (2j + 1) / 2n), for n elements, by an FFT."""
    last = len(x.shape) - 1
    n = x.shape[last]
    zeros, ones = (0,) * last, (1,) * last
    even = slicing.slice(x, (*zeros, 0), x.shape, (*ones, 2))
    odd = slicing.slice(x, (*zeros, 1), x.shape, (*ones, 2))
    mixed = slicing.concatenate([even, slicing.rev(odd, (last,))], last)
    turned = ops.mul(fft(mixed, FftType.FFT, (n,)), _turns(np.arange(n), 4 * n, x))
    return ops.mul(2.0, ops.real(turned))


def _third(x: Any) -> Any:
    """The type 3 cosine transform, y[k] = x[0] + 2 Σ x[j] cos(π j (2k + 1) / 2n), for n elements.

    It is the inverse of the type 2 transform, multiplied by 2n.
    """
    last = len(x.shape) - 1
    n = x.shape[last]
    behind = slicing.slice_in_dim(x, 1, n, last)
    mirrored = slicing.concatenate([shapes.full((*x.shape[:-1], 1), 0, x.dtype), slicing.rev(behind, (last,))], last)
    turned = ops.mul(ops.complex(x, ops.neg(mirrored)), ops.conj(_turns(np.arange(n), 4 * n, x)))
    mixed = ops.mul(float(n), ops.real(fft(turned, FftType.IFFT, (n,))))
    half = (n + 1) // 2
    odd = slicing.rev(slicing.slice_in_dim(mixed, half, n, last), (last,))
    rest = [(0, 0, 0)] * last
    spread = slicing.pad(slicing.slice_in_dim(mixed, 0, half, last), 0, [*rest, (0, 1 - n % 2, 1)])
    return ops.add(spread, slicing.pad(odd, 0, [*rest, (1, n % 2, 1)])) if n > 1 else spread


def _fourth(x: Any) -> Any:
    """The type 4 cosine transform, y[k] = 2 Σ x[j] cos(π (2k + 1) (2j + 1) / 4n), for n elements."""
    last = len(x.shape) - 1
    n = x.shape[last]
    turned = ops.mul(ops.convert_element_type(x, dtypes.to_complex(x.dtype)), _turns(np.arange(n), 4 * n, x))
    longer = slicing.pad(turned, 0, [*[(0, 0, 0)] * last, (0, n, 0)])
    spectrum = slicing.slice_in_dim(fft(longer, FftType.FFT, (2 * n,)), 0, n, last)
    return ops.mul(2.0, ops.real(ops.mul(spectrum, _turns(2 * np.arange(n) + 1, 8 * n, x))))
