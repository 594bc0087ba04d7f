"""Random directions around a mean one, differentiable in the mean direction and the concentration."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.loops import while_loop
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.types import Shape
from pullback.numpy.promotion import operand
from pullback.primitives.operands import stop_gradient
from pullback.random.arguments import float_dtype, parameter, sample_shape
from pullback.random.continuous import normal, uniform
from pullback.random.keys import fold_in, split, words_of
from pullback.scipy.stats.vonmises_fisher import check_directions, mean_deviation
from pullback.transforms.custom.custom_rules import custom_jvp

_NODES = 64


def von_mises_fisher(
    key: KeyArray, mu: ArrayLike, kappa: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Directions of the distribution of von Mises and Fisher, around a mean direction.

    Args:
      key: a key.
      mu: the mean directions, vectors of length 1 with n components, at least 2, along the last axis; the other axes
        broadcast to ``shape``.
      kappa: the concentration, not negative, which broadcasts to ``shape``; the result is nan elsewhere. Directions are
        uniformly distributed for 0.
      shape: the shape of the result without its last axis; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; by default the dtype of the parameters.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, vectors of length 1, differentiable in ``mu`` and ``kappa``: the
      derivative by ``kappa`` keeps the distribution function at the component along ``mu``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, ``dtype`` is not a floating-point dtype, or a known
        ``mu`` is not of length 1.
      DtypeError: a parameter is not a real number.
      ShapeError: the shapes do not fit.

    Source: Wood 1994, "Simulation of the von Mises Fisher distribution", by rejection. The distribution is that of
    ``scipy.stats.vonmises_fisher``.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> x = random.von_mises_fisher(random.key(0), jnp.array([0.6, 0.8]), 100.0, (1000,))
    >>> print(x.mean(0).round(1))
    [0.6 0.8]
    """
    name = "von_mises_fisher"
    operands = [operand(f"{name}: {what}", x) for what, x in (("mu", mu), ("kappa", kappa))]
    common = dtypes.to_real(dtypes.to_inexact(dtypes.common_dtype(*operands)))
    found = common if dtype is None else float_dtype(name, dtype)
    words_of(name, key, use=False)
    mean, spread = parameter(name, "mu", mu, found), parameter(name, "kappa", kappa, found)
    check_directions(name, "mu", mean)
    n, size = mean.shape[-1], sample_shape(name, shape, mu=mean.shape[:-1], kappa=spread.shape)
    valid = (spread >= 0) & (spread < math.inf)
    safe = pnp.broadcast_to(pnp.where(valid, spread, 1), size)
    for_deviation, for_rest = split(key)
    start = _rejection(for_deviation, stop_gradient(safe), n, size)
    deviation = _deviations(n)(start, safe)[..., None]
    rest = normal(for_rest, (*size, n - 1), found)
    rest = rest / pnp.linalg.norm(rest, axis=-1, keepdims=True)
    x = pnp.concatenate([1 - deviation, pnp.sqrt(deviation * (2 - deviation)) * rest], axis=-1)
    return pnp.where(pnp.broadcast_to(valid, size)[..., None], _reflected(x, pnp.broadcast_to(mean, x.shape)), math.nan)


def _reflected(x: Any, mean: Any) -> Any:
    """Return vectors mapped by an orthogonal matrix that maps the first axis to ``mean``.

    The matrix is a reflection, times the sign of the first component of ``mean``, so that nothing cancels.
    """
    sign = pnp.where(mean[..., :1] < 0, -1, 1)
    first = np.zeros(mean.shape[-1], mean.dtype)
    first[0] = 1
    normal_vector = mean + sign * pnp.broadcast_to(first, mean.shape)
    share = pnp.sum(x * normal_vector, -1, keepdims=True) / (1 + sign * mean[..., :1])
    return sign * (share * normal_vector - x)


def _rejection(key: Any, kappa: Any, n: int, size: Shape) -> Any:
    """Draw ``1 - x``, where ``x`` is the component along the mean direction."""
    m, dtype = n - 1, kappa.dtype
    b = m / (2 * kappa + pnp.sqrt(4 * kappa**2 + m**2))
    middle = 2 * b / (1 + b)

    def proposal(i: Any) -> tuple[Any, Any]:
        """Return a deviation, from that of a uniform direction, and whether it is accepted."""
        first, second = split(fold_in(key, i))
        vectors = normal(first, (*size, n), dtype)
        z = pnp.sum(vectors[..., 1:] ** 2, -1) / pnp.sum(vectors**2, -1)
        # The deviation of the uniform direction, from 0 to 2, by the smaller of both sides.
        cosine = vectors[..., 0] / pnp.linalg.norm(vectors, axis=-1)
        half = pnp.where(cosine > 0, z / (1 + cosine), 1 - cosine) / 2
        deviation = 2 * b * half / (1 - (1 - b) * half)
        x0, level = 1 - middle, pnp.log(uniform(second, size, dtype, float(pnp.finfo(dtype).tiny)))
        quotient = (middle + x0 * deviation) / (middle * (2 - middle))
        return deviation, kappa * (middle - deviation) + m * pnp.log(quotient) >= level

    def going(state: tuple[Any, Any, Any]) -> Any:
        return pnp.any(~state[1])

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        i, done, found = state
        deviation, accepted = proposal(i)
        return i + 1, done | accepted, pnp.where(done, found, deviation)

    start = (pnp.zeros((), np.uint32), pnp.zeros(size, bool), pnp.zeros(size, dtype))
    return while_loop(going, step, start)[2]


def _deviations(n: int) -> Any:
    """Return the function of a deviation and the concentration that is the deviation, with its derivative."""

    @custom_jvp
    def deviation(start: Any, kappa: Any) -> Any:
        return start

    @deviation.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        ans = deviation(*primals)
        return ans, partial(_slope, n)(ans, primals[1]) * tangents[1]

    return deviation


def _slope(n: int, deviation: Any, kappa: Any) -> Any:
    """Return the derivative of a deviation by the concentration that keeps the distribution function there.

    It is the integral of ``(v - mean) f(v)`` over the deviations ``v`` below, divided by the density ``-f`` at the
    deviation; or that over the deviations above, which is the same. With the angle as the variable of integration
    nothing is singular. Far above, densities are below the rounding error.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    mean = mean_deviation(kappa, n)
    angle = lambda v: 2 * pnp.arcsin(pnp.sqrt(pnp.clip(v / 2, float(pnp.finfo(v.dtype).tiny), 1)))
    below, here = deviation <= mean, angle(pnp.minimum(deviation, 2 - 1e-6))
    # What the end is beyond this makes no difference, so that it is constant.
    far = stop_gradient(angle(pnp.minimum(deviation + 40 / pnp.maximum(kappa, 20), 2)))
    end = pnp.where(below, 0, far)
    width = (end - here) / 2
    points = here[..., None] + width[..., None] * (1 + nodes.astype(deviation.dtype))
    v = 2 * pnp.sin(points / 2) ** 2
    sines = (n - 2) * (pnp.log(pnp.sin(points)) - pnp.log(pnp.sin(here))[..., None]) if n > 2 else 0
    values = (v - mean[..., None]) * pnp.exp(sines + kappa[..., None] * (deviation[..., None] - v))
    return -pnp.sin(here) * width * pnp.sum(values * weights.astype(deviation.dtype), -1)
