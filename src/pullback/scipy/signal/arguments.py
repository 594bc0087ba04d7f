"""What the functions for signals share: their operands in one precision, and arrays that continue beyond both ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, as_array
from pullback.core.errors import ArgumentError, ShapeError
from pullback.numpy.promotion import inexact_operands, known_int, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import slicing
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import inexact, known, on_host
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval
from pullback.transforms.programs.callbacks import pure_callback


def promoted(name: str, *xs: Any) -> list[Array]:
    """Promote operands, which may be lists, to one dtype of single or double precision, not weak."""
    return promoted_arrays(name, *(inexact(name, x) if isinstance(x, (list, tuple)) else x for x in xs))


def promoted_arrays(name: str, *xs: Any) -> list[Array]:
    """Promote operands, which must be arrays or numbers, as :func:`promoted` does."""
    arrays = inexact_operands(name, *xs)
    dtype = arrays[0].dtype if arrays[0].dtype.char in "fdFD" else np.dtype(np.float32)
    return [ops.convert_element_type(x, dtype) if x.weak_type or x.dtype != dtype else x for x in arrays]


def signal(name: str, x: Any) -> Array:
    """Convert a signal to an array of single or double precision with at least one axis."""
    (x,) = promoted(name, x)
    if not x.shape:
        raise ShapeError(f"{name} takes an array with at least one axis, got a number")
    return x  # type: ignore[no-any-return]


def vector(name: str, x: Any, what: str) -> Array:
    """Convert coefficients to a non-empty vector; a number is a vector of one. ``what`` names them in errors."""
    (x,) = promoted(name, x)
    if not x.shape:
        x = pnp.reshape(x, (1,))
    check_vector(name, x, what)
    return x  # type: ignore[no-any-return]


def check_vector(name: str, x: Any, what: str) -> None:
    """Raise unless ``x`` is a vector with elements; ``what`` names it in errors."""
    if len(x.shape) != 1 or not x.shape[0]:
        raise ShapeError(f"{name}: {what} must be a non-empty vector, got shape {x.shape}")


def positive_int(name: str, what: str, value: Any) -> int:
    """Convert an argument to an int that is at least 1; ``what`` is its name."""
    number = known_int(name, what, value)
    if number < 1:
        raise ArgumentError(f"{name}: {what} must be positive, got {number}")
    return number


def constant(values: Any, dtype: Any) -> ArrayImpl:
    """Return NumPy's array as ours, in a dtype."""
    return ArrayImpl(np.asarray(values, dtype, order="C"))


def default_floats(values: Any) -> ArrayImpl:
    """Return floats or complex numbers in the default precision."""
    values = np.asarray(values)
    real = dtypes.default_float()
    return constant(values, dtypes.to_complex(real) if values.dtype.kind == "c" else real)


def real_number(name: str, what: str, value: Any) -> Any:
    """Return a real number: a float where it is known and not differentiated, else an array; None is None."""
    if value is None:
        return None
    x = known_or_traced(name, value)
    if x.shape or dtypes.is_complex(x.dtype):
        raise ArgumentError(f"{name}: {what} must be a real number, got {quote(value)}")
    found = known(x)
    if what == "fs" and found is not None and not 0 < found < math.inf:
        raise ArgumentError(f"{name}: fs must be a positive number, got {found}")
    return x if on_host(x) is None else float(value)


def known_or_traced(name: str, value: Any) -> Any:
    """Promote numbers to an array; what is known stays known while a function is traced."""
    with ensure_compile_time_eval():
        return promoted(name, value)[0]


def real_vectors(name: str, **given: Any) -> list[Any]:
    """Return real vectors of one dtype, of known elements if they are known."""
    arrays = promoted(name, *(known_or_traced(name, x) for x in given.values()))
    for what, x in zip(given, arrays, strict=True):
        if dtypes.is_complex(x.dtype):
            raise ArgumentError(f"{name}: {what} must be real numbers, got {dtypes.short_name(x.dtype)}")
    return [pnp.ravel(x) for x in arrays]


def of_scipy(name: str, call: Callable[[], Any]) -> Any:
    """Return the result of a function of SciPy; an error of an argument is one of ours, with the same text."""
    try:
        return call()
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        raise ArgumentError(f"{name}: {error}") from None


def found_on_host(positions: Callable[..., Any], shape: tuple[int, ...], *operands: Any) -> Any:
    """Return int32 positions that the host finds, without derivatives by the operands."""
    fixed = stop_gradient(operands)
    values = [known(v) for v in fixed]
    if all(v is not None for v in values):
        return as_array(positions(*values))
    return pure_callback(positions, ShapeDtypeStruct(shape, np.int32), *fixed, vmap_method="sequential")


# Beyond the ends -----------------------------------------------------------------------------------------------------

MODES = (
    "constant", "symmetric", "edge", "smooth", "reflect", "antisymmetric", "antireflect", "wrap", "line",
)  # fmt: skip
"""How a signal continues beyond its ends."""


def check_mode(name: str, mode: Any, modes: Sequence[str] = MODES) -> None:
    """Raise unless ``mode`` is one of ``modes``."""
    if not isinstance(mode, str) or mode not in modes:
        raise ArgumentError(f"{name}: mode must be one of {', '.join(map(repr, modes))}, got {quote(mode)}")


def extended(x: Any, before: int, after: int, mode: str, cval: Any = 0.0) -> Any:
    """Continue the last axis of ``x``, which has elements, by some elements at both ends; see ``MODES``.

    Every mode is affine in ``x``: each new element is a multiple of one element, plus multiples of those at the ends.
    """
    n, last = x.shape[-1], len(x.shape) - 1
    ends = [np.arange(-before, 0), np.arange(n, n + after)]
    sides = [_beyond(x, positions, mode, cval) for positions in ends if positions.size]
    if not sides:
        return x
    return slicing.concatenate([*sides[: before > 0], x, *sides[before > 0 :]], last)


def _beyond(x: Any, positions: np.ndarray[Any, Any], mode: str, cval: Any) -> Any:
    """Return the elements at some positions before the first of ``x``, or after the last, along the last axis."""
    n, shape = x.shape[-1], (*x.shape[:-1], len(positions))
    if mode == "constant":
        return pnp.broadcast_to(ops.convert_element_type(pnp.asarray(cval), x.dtype), shape)
    first, final = x[..., :1], x[..., -1:]
    near, beyond = (first, positions) if positions[0] < 0 else (final, positions - (n - 1))
    along = lambda values: constant(values, x.dtype)
    if mode == "edge" or (n == 1 and mode in ("reflect", "smooth", "line", "antireflect")):
        return pnp.broadcast_to(near, shape)
    if mode == "smooth":
        slope = x[..., 1:2] - first if positions[0] < 0 else final - x[..., -2:-1]
        return near + slope * along(beyond)
    if mode == "line":
        return near + (final - first) * along(beyond / (n - 1))
    period = {"wrap": n, "symmetric": 2 * n, "antisymmetric": 2 * n}.get(mode, 2 * (n - 1))
    turns, phase = np.divmod(positions, period)
    mirrored = phase >= n
    inner = 2 * n - 1 - phase if mode in ("symmetric", "antisymmetric") else period - phase
    values = x[..., np.where(mirrored, inner, phase)]
    if mode == "antisymmetric":
        return values * along(np.where(mirrored, -1, 1))
    if mode == "antireflect":
        # The two mirror images of odd type shift the signal by twice the difference of its ends.
        return (
            values * along(np.where(mirrored, -1, 1))
            + (final * along(2 * mirrored))
            + ((final - first) * along(2 * turns))
        )
    return values
