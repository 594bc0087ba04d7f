"""Filters of finite length whose largest deviation from a wanted response is least: all ripples are equally high.

SciPy finds the filter on the host. At its highest ripples the weighted deviation alternates between two numbers; these
are as many linear equations as there are unknowns, which the derivatives solve.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DegenerateSolutionError, ShapeError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import quote
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import known, on_host
from pullback.scipy.signal.arguments import constant, of_scipy, positive_int, real_number, real_vectors
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.programs.callbacks import pure_callback

__all__ = ["remez"]

_TYPES = ("bandpass", "differentiator", "hilbert")
_FIXED, _FROM_FIRST, _LAST = range(3)
"""What a frequency of the grid depends on: on nothing, on the first one of its band, or it is the last one."""


# long: half of it is its documentation
def remez(
    numtaps: int, bands: ArrayLike, desired: ArrayLike, *, weight: ArrayLike | None = None, type: str = "bandpass",
    maxiter: int = 25, grid_density: int = 16, fs: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Design a filter of finite length whose largest weighted deviation from a wanted response is least.

    Deviations are compared at a grid of frequencies. Those inside a band are at fixed distances from its first one.

    Args:
      numtaps: the number of coefficients, a positive int.
      bands: the first and the last frequency of each band, a vector, increasing: fractions of the sampling frequency,
        or in the units of ``fs``.
      desired: the wanted gain of each band, a vector.
      weight: the weight of each band, a vector; ones by default.
      type: ``"bandpass"`` for gains that are constant in a band, ``"differentiator"`` for gains that are multiples of
        the frequency, ``"hilbert"`` for an antisymmetric filter with constant gains.
      maxiter: the largest number of exchanges of frequencies, an int.
      grid_density: how many frequencies there are for each coefficient, an int.
      fs: the sampling frequency, a number; 1 by default.

    Returns:
      The coefficients, a vector, with derivatives by all numbers. They are NaN in compiled functions where there are
      none.

    Raises:
      ArgumentError: numbers or words that make no sense, or no convergence (a TypeError and a ValueError).
      ShapeError: vectors that do not fit (a TypeError and a ValueError).
      DegenerateSolutionError: the filter is differentiated where it has no derivative, because there are more or fewer
        alternating ripples of the largest height than one for each coefficient and one for the height, as where
        rounding hides those of many coefficients for a narrow band (a TypeError and a ValueError).

    Source: McClellan and Parks 1973, "A unified approach to the design of optimum FIR linear phase digital filters".

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy import signal
    >>> bands = jnp.array([0.0, 0.1, 0.3, 0.5])
    >>> print(signal.remez(3, bands, [1.0, 0.0]).round(3))
    [0.276 0.362 0.276]
    >>> print(grad(lambda bands: signal.remez(3, bands, [1.0, 0.0])[1])(bands).round(2))
    [ 0.    0.74  1.65 -0.  ]
    """
    name = "remez"
    if not isinstance(type, str) or type not in _TYPES:
        raise ArgumentError(f"{name}: type must be 'bandpass', 'differentiator' or 'hilbert', got {quote(type)}")
    count = positive_int(name, "numtaps", numtaps)
    steps, density = positive_int(name, "maxiter", maxiter), positive_int(name, "grid_density", grid_density)
    rate = real_number(name, "fs", 1.0 if fs is None else fs)
    given = {"bands": bands, "desired": desired, **({} if weight is None else {"weight": weight}), "fs": rate}
    edges, gains, *weights, per_second = real_vectors(name, **given)
    weights = weights or [pnp.ones_like(gains)]
    if edges.shape[0] % 2 or not edges.shape[0] or any(2 * x.shape[0] != edges.shape[0] for x in (gains, *weights)):
        raise ShapeError(
            f"{name}: bands must be pairs of frequencies, desired and weight a number for each band, got shapes "
            f"{', '.join(str(x.shape) for x in (edges, gains, *weights))}"
        )

    def design(*arrays: Any) -> Any:
        at, wanted, heavy, hertz = (np.asarray(x, np.float64) for x in arrays)
        call = lambda: imported("scipy.signal").remez(
            count, at, wanted, weight=heavy, type=type, maxiter=steps, grid_density=density, fs=hertz.item()
        )
        return of_scipy(name, call)

    operands = [edges, gains, weights[0], per_second]
    found = on_host(*operands)
    if found is not None:
        return constant(design(*found), edges.dtype)
    return _differentiated(name, count, type, density, design, operands)


def _differentiated(name: str, count: int, type: str, density: int, design: Any, operands: list[Any]) -> Any:
    """Return the filter of ``design`` with derivatives by the operands."""
    dtype = operands[0].dtype
    search = partial(_alternation, count, type, density)
    fixed = stop_gradient(operands)
    values = [known(x) for x in fixed]
    if all(v is not None for v in values):
        taps = design(*values)
        positions = search(taps, *values)
        if not positions.size:
            raise DegenerateSolutionError(
                f"{name}: the filter has no derivative: {_unknowns(count, type) + 1} alternating ripples of the "
                f"largest height would determine one, but there are more, or fewer, or rounding hides them"
            )
        value = constant(taps, dtype)
    else:

        def at_once(*arrays: Any) -> Any:
            taps = design(*arrays)
            found = search(taps, *arrays)
            full = found if found.size else np.zeros((4, _unknowns(count, type) + 1), np.int32)
            return taps.astype(dtype), full

        shapes = ShapeDtypeStruct((count,), dtype), ShapeDtypeStruct((4, _unknowns(count, type) + 1), np.int32)
        value, positions = pure_callback(at_once, shapes, *fixed, vmap_method="sequential")
        # Signs of zero stand for no derivative, which is NaN.
        spoil = pnp.where(positions[3, 0] == 0, constant(math.nan, dtype), constant(1, dtype))
        operands = [x * spoil for x in operands]
    slopes = _solved(count, type, density, positions, *operands)
    return value + (slopes - stop_gradient(slopes))


def _unknowns(count: int, type: str) -> int:
    """Return how many coefficients decide all; an antisymmetric filter of odd length has a zero in its middle."""
    return count // 2 if type != "bandpass" else (count + 1) // 2


def _grid(count: int, type: str, density: int, edges: Any) -> tuple[Any, Any]:
    """Return the frequencies where SciPy compares deviations, and for each its band, its kind and its steps."""
    gap, found, about = 0.5 / (density * _unknowns(count, type)), [], []
    antisymmetric = type != "bandpass"
    for band, (first, last) in enumerate(edges.reshape(-1, 2)):
        moved = antisymmetric and band == 0 and first < gap
        # SciPy adds the gap again and again; the number of steps must have the same rounding.
        most = int(max(last - first, 0.0) / gap) + 3
        values = np.cumsum([gap if moved else first, *[gap] * most])
        size = max(int(np.searchsorted(values, last, side="right")), 1)
        kinds = np.full(size, _FIXED if moved else _FROM_FIRST)
        kinds[-1] = _LAST
        found.append(np.append(values[: size - 1], last))
        about.append(np.stack([np.full(size, band), kinds, np.arange(size) + moved]))
    at, labels = np.concatenate(found), np.concatenate(about, axis=1)
    if antisymmetric == bool(count % 2) and at[-1] > 0.5 - gap:  # where the response is zero anyway
        at, labels = at[:-1], labels[:, :-1]
    return at, labels


def _response(count: int, type: str, at: Any) -> Any:
    """Return the matrix from the first coefficients to the real response at frequencies."""
    size = _unknowns(count, type)
    trig = pnp.cos if type == "bandpass" else pnp.sin
    steps = (count - 1) / 2 - np.arange(size)
    factors = np.where(steps == 0, 1.0, 2.0)
    return trig(at[:, None] * constant(2 * math.pi * steps, at.dtype)) * constant(factors, at.dtype)


def _wanted(type: str, at: Any, gain: Any, weight: Any) -> tuple[Any, Any]:
    """Return the wanted response at frequencies, and the inverse weight of deviations from it."""
    if type != "differentiator":
        return gain, 1 / weight
    return gain * at, pnp.where(gain >= 1e-4, at, pnp.ones_like(at)) / weight


def _alternation(count: int, type: str, density: int, taps: Any, *arrays: Any) -> Any:
    """Return bands, kinds, steps and signs of the frequencies of the highest ripples, or an empty array.

    The filter has a derivative if there is one more of them than coefficients, and the signs alternate.
    """
    edges, gains, weights, rate = (np.asarray(x, np.float64) for x in arrays)
    at, labels = _grid(count, type, density, edges / rate)
    steps = (count - 1) / 2 - np.arange(_unknowns(count, type))
    waves = (np.cos if type == "bandpass" else np.sin)(np.outer(at, 2 * math.pi * steps))
    response = waves @ (np.where(steps == 0, 1.0, 2.0) * taps[: len(steps)])
    gain, weight = gains[labels[0]], weights[labels[0]]
    if type == "differentiator":
        weight = np.where(gain >= 1e-4, weight / at, weight)
        gain = gain * at
    deviation = weight * (gain - response)
    height = np.abs(deviation)
    rounding = 1e4 * np.finfo(float).eps * np.abs(weight * gain).max()
    high = np.flatnonzero(height >= height.max() * (1 - 1e-6) - rounding)
    runs = np.split(high, np.flatnonzero(np.diff(np.sign(deviation[high]))) + 1)
    if len(runs) != len(steps) + 1 or height.max() <= 10 * rounding:
        return np.zeros((4, 0), np.int32)
    best = np.array([run[np.argmax(height[run])] for run in runs])
    return np.vstack([labels[:, best], np.sign(deviation[best])]).astype(np.int32)


def _solved(
    count: int, type: str, density: int, positions: Any, edges: Any, gains: Any, weights: Any, rate: Any
) -> Any:  # fmt: skip
    """Return the filter whose deviations at the frequencies of the highest ripples alternate."""
    band, kind, steps, sign = positions
    dtype, size = edges.dtype, _unknowns(count, type)
    ends = pnp.reshape(edges / rate, (-1, 2))
    gap = constant(0.5 / (density * size), dtype) * pnp.asarray(steps, dtype)
    start = pnp.where(kind == _FIXED, pnp.zeros_like(gap), ends[band, 0])
    at = pnp.where(kind == _LAST, ends[band, 1], start + gap)
    target, inverse = _wanted(type, at, gains[band], weights[band])
    alternating = (pnp.asarray(sign, dtype) * inverse)[:, None]
    matrix = pnp.concatenate([_response(count, type, at), alternating], axis=1)
    half = pnp.linalg.solve(matrix, target)[:size]
    rest = pnp.flip(half[: count // 2])
    if type == "bandpass":
        return pnp.concatenate([half, rest])
    middle = pnp.zeros(count % 2, dtype)
    return pnp.concatenate([half, middle, -rest])
