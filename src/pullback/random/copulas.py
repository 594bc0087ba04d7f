"""Random points of the unit cube whose uniform components depend on each other, differentiable in the dependence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.errors import ArgumentError
from pullback.core.types import Shape
from pullback.numpy.promotion import operand
from pullback.primitives import elementwise as ops
from pullback.primitives.random.bits import Words, above, subkeys
from pullback.primitives.special.others import exprel_p
from pullback.random.arguments import DType, float_dtype, parameter, sample_shape, size_of
from pullback.random.continuous import normal_of_key, unit
from pullback.random.gammas import gamma_of
from pullback.random.keys import words_of
from pullback.scipy.special import ndtr
from pullback.scipy.stats import t
from pullback.scipy.stats.frank_copula import eulerian
from pullback.scipy.stats.inversion import root_between
from pullback.scipy.stats.matrix_formulas import correlation_of, square


def _float_of(name: str, dtype: Any, **parameters: Any) -> DType:
    """Return ``dtype`` as a float dtype; by default the common one of the parameters."""
    if dtype is not None:
        return float_dtype(name, dtype)
    operands = (operand(f"{name}: {what}", x) for what, x in parameters.items())
    return dtypes.to_real(dtypes.to_inexact(dtypes.common_dtype(*operands)))


def _inside(u: Any) -> Any:
    """Return numbers between 0 and 1, but not 0 or 1, to which rounding may have brought them."""
    limits = pnp.finfo(u.dtype)
    return pnp.clip(u, float(limits.tiny), 1 - float(limits.epsneg))


def _positive(words: Words, shape: Shape, dtype: DType) -> Any:
    """Draw uniform numbers that are neither 0 nor 1."""
    return above(unit(words, shape, dtype), dtype, float(pnp.finfo(dtype).tiny))


def _exponential(words: Words, shape: Shape, dtype: DType) -> Any:
    """Draw exponential numbers that are not 0."""
    return -pnp.log(_positive(words, shape, dtype))


# Elliptical copulas --------------------------------------------------------------------------------------------------


def _normal(name: str, key: Any, correlation: Any, shape: Any, dtype: Any, **more: Any) -> tuple[Any, Any, Any, Any]:
    """Return normal vectors with a correlation, their shape, the words for further numbers, and further parameters."""
    found = _float_of(name, dtype, correlation=correlation, **more)
    words = words_of(name, key)
    matrix = square(name, "correlation", parameter(name, "correlation", correlation, found))
    others = {what: parameter(name, what, value, found) for what, value in more.items()}
    n = matrix.shape[-1]
    factor = pnp.linalg.cholesky(correlation_of(name, matrix, n))
    size = sample_shape(name, shape, correlation=matrix.shape[:-2], **{k: v.shape for k, v in others.items()})
    for_normal, rest = subkeys(words, 2)
    noise = normal_of_key(for_normal, (*size, n), found)
    return pnp.einsum("...ij,...j->...i", factor, noise), size, rest, others


def gaussian_copula(
    key: KeyArray, correlation: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Points with the dependence of normal numbers: the ranks of the components of a normal vector.

    Args:
      key: a key.
      correlation: correlation matrices, of a shape that ends with (n, n); the other axes broadcast to ``shape``. Lower
        triangles are used; the result is nan where a matrix is not positive definite.
      shape: the shape of the result without its last axis; by default the other axes of ``correlation``.
      dtype: a floating-point dtype; by default the dtype of ``correlation``.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, between 0 and 1, differentiable in ``correlation``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, ``dtype`` is not a floating-point dtype, or diagonal
        elements of a known matrix are not 1.
      DtypeError: a parameter is not a real number.
      ShapeError: the shapes do not fit.

    The density is ``scipy.stats.gaussian_copula``.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> u = random.gaussian_copula(random.key(0), jnp.array([[1.0, 0.9], [0.9, 1.0]]), (1000,))
    >>> print(u.shape, jnp.corrcoef(u.T)[0, 1].round(1))
    (1000, 2) 0.9
    """
    return _inside(ndtr(_normal("gaussian_copula", key, correlation, shape, dtype)[0]))  # type: ignore[no-any-return]


def t_copula(
    key: KeyArray, correlation: ArrayLike, df: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Points with the dependence of Student's numbers: the ranks of the components of a vector of his distribution.

    Args:
      key: a key.
      correlation: correlation matrices, of a shape that ends with (n, n); the other axes broadcast to ``shape``. Lower
        triangles are used; the result is nan where a matrix is not positive definite.
      df: the degrees of freedom, which broadcast to ``shape``; the result is nan where they are not positive.
      shape: the shape of the result without its last axis; by default the broadcast shape of the parameters.
      dtype: a floating-point dtype; by default the dtype of the parameters.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, between 0 and 1, differentiable in ``correlation`` and ``df``.

    Raises:
      OperandError, ArgumentError, DtypeError, ShapeError: as for :func:`gaussian_copula`.

    The density is ``scipy.stats.t_copula``.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> u = random.t_copula(random.key(0), jnp.array([[1.0, 0.9], [0.9, 1.0]]), 3.0, (1000,))
    >>> print(u.shape, jnp.corrcoef(u.T)[0, 1].round(1))
    (1000, 2) 0.9
    """
    z, size, rest, others = _normal("t_copula", key, correlation, shape, dtype, df=df)
    degrees = others["df"]
    valid = degrees > 0
    half = pnp.where(valid, degrees, 1) / 2
    power = pnp.exp((gamma_of(rest, half, size, True) - pnp.log(half)) / 2)
    u = t.cdf(z / power[..., None], pnp.broadcast_to(2 * half, size)[..., None])
    return pnp.where(pnp.broadcast_to(valid, size)[..., None], _inside(u), math.nan)


# Archimedean copulas -------------------------------------------------------------------------------------------------


def _archimedean(
    name: str, key: Any, n: Any, theta: Any, shape: Any, dtype: Any, valid: Callable[[Any], Any], usual: float,
    draw: Callable[..., Any],
) -> Any:  # fmt: skip
    """Return points of a copula of one parameter.

    Args:
      name: the public function.
      key, n, theta, shape, dtype: its arguments.
      valid: whether the parameter is in its range.
      usual: a parameter in the range, for where another is not.
      draw: from words, the parameter with one axis more, and the shape of the result, to points.
    """
    found = _float_of(name, dtype, theta=theta)
    words, count = words_of(name, key), size_of(name, "n", n)
    if count < 2:
        raise ArgumentError(f"{name}: n must be at least 2, got {n}")
    theta = parameter(name, "theta", theta, found)
    size = sample_shape(name, shape, theta=theta.shape)
    theta = pnp.broadcast_to(theta, size)[..., None]
    good = valid(theta)
    return pnp.where(good, _inside(draw(words, pnp.where(good, theta, usual), (*size, count))), math.nan)


def clayton_copula(
    key: KeyArray, n: int, theta: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Points of Clayton's copula, whose components depend on each other most where they are small.

    Args:
      key: a key.
      n: the number of components, at least 2.
      theta: the dependence, positive, which broadcasts to ``shape``; the result is nan elsewhere. Kendall's tau is
        ``theta / (theta + 2)``.
      shape: the shape of the result without its last axis; by default the shape of ``theta``.
      dtype: a floating-point dtype; by default the dtype of ``theta``.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, between 0 and 1, differentiable in ``theta``.

    Raises:
      OperandError, ArgumentError: ``key`` is not a single key, ``n`` is less than 2, or ``dtype`` is not a
        floating-point dtype.
      DtypeError: a parameter is not a real number.
      ShapeError: the shapes do not fit.

    Source: Marshall and Olkin 1988, "Families of multivariate distributions": exponential numbers are divided by a
    common gamma number. The density is ``scipy.stats.clayton_copula``.

    >>> from pullback import random
    >>> print(random.clayton_copula(random.key(0), 3, 20.0).round(1))
    [0.6 0.6 0.6]
    """

    def draw(words: Words, theta: Any, shape: Shape) -> Any:
        first, second = subkeys(words, 2)
        common = gamma_of(first, 1 / theta[..., 0], shape[:-1], True)[..., None]
        alone = pnp.log(_exponential(second, shape, theta.dtype))
        return pnp.exp(-pnp.logaddexp(alone - common, 0) / theta)

    valid = lambda theta: (theta > 0) & (theta < math.inf)
    return _archimedean("clayton_copula", key, n, theta, shape, dtype, valid, 1.0, draw)  # type: ignore[no-any-return]


def gumbel_copula(
    key: KeyArray, n: int, theta: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Points of Gumbel's copula, whose components depend on each other most where they are large.

    Args:
      key: a key.
      n: the number of components, at least 2.
      theta: the dependence, at least 1, which broadcasts to ``shape``; the result is nan elsewhere. Kendall's tau is
        ``1 - 1 / theta``.
      shape: the shape of the result without its last axis; by default the shape of ``theta``.
      dtype: a floating-point dtype; by default the dtype of ``theta``.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, between 0 and 1, differentiable in ``theta`` where it is more than 1.

    Raises:
      OperandError, ArgumentError, DtypeError, ShapeError: as for :func:`clayton_copula`.

    Source: Marshall and Olkin 1988, "Families of multivariate distributions": exponential numbers are divided by a
    common stable number, which is that of Kanter 1975, "Stable densities under change of scale and total variation
    inequalities". The density is ``scipy.stats.gumbel_copula``.

    >>> from pullback import random
    >>> print(random.gumbel_copula(random.key(0), 3, 20.0).round(1))
    [0.8 0.7 0.8]
    """

    def draw(words: Words, theta: Any, shape: Shape) -> Any:
        first, second, third = subkeys(words, 3)
        alpha, dtype = 1 / theta, theta.dtype
        angle = math.pi * _positive(first, (*shape[:-1], 1), dtype)
        waiting = _exponential(second, (*shape[:-1], 1), dtype)
        rest = 1 - alpha
        # The logarithm of the common number, times alpha; its last part is 0 for independent components.
        common = alpha * pnp.log(pnp.sin(alpha * angle)) - pnp.log(pnp.sin(angle))
        common = common + pnp.where(rest > 0, rest * pnp.log(pnp.sin(rest * angle) / waiting), 0)
        alone = pnp.log(_exponential(third, shape, dtype))
        return pnp.exp(-pnp.exp(alpha * alone - common))

    valid = lambda theta: (theta >= 1) & (theta < math.inf)
    return _archimedean("gumbel_copula", key, n, theta, shape, dtype, valid, 2.0, draw)  # type: ignore[no-any-return]


def frank_copula(
    key: KeyArray, n: int, theta: ArrayLike, shape: ShapeLike | None = None, dtype: DTypeLike = None
) -> Array:
    """Points of Frank's copula, which depend alike where components are small and where they are large.

    Args:
      key: a key.
      n: the number of components, at least 2.
      theta: the dependence, which broadcasts to ``shape``: positive; 0 for independent components; negative for two of
        them that fall with each other. The result is nan elsewhere.
      shape: the shape of the result without its last axis; by default the shape of ``theta``.
      dtype: a floating-point dtype; by default the dtype of ``theta``.

    Returns:
      An array of ``shape + (n,)`` and ``dtype``, between 0 and 1, differentiable in ``theta``.

    Raises:
      OperandError, ArgumentError, DtypeError, ShapeError: as for :func:`clayton_copula`.

    Each component is the quantile of a uniform number, given the components before it; from the third on by bisection.
    Source: Hofert, Mächler and McNeil 2012, "Likelihood inference for Archimedean copulas in high dimensions". The
    density is ``scipy.stats.frank_copula``.

    >>> from pullback import random
    >>> print(random.frank_copula(random.key(0), 3, 60.0).round(1))
    [1. 1. 1.]
    """
    mirrored = size_of("frank_copula", "n", n) == 2
    valid = lambda theta: (abs(theta) < math.inf) & (theta >= (-math.inf if mirrored else 0))

    def draw(words: Words, theta: Any, shape: Shape) -> Any:
        negative, theta = theta[..., 0] < 0, pnp.abs(theta[..., 0])
        uniform = _positive(words, shape, theta.dtype)
        components = [uniform[..., 0]]
        # One minus the exponentials of the sum of generators so far, and the sum's remainder to one.
        y, rest = -pnp.expm1(-theta * components[0]), pnp.exp(-theta * components[0])
        for k in range(1, shape[-1]):
            ratio, other = _ratio(uniform[..., k], y, rest, k - 1)
            components.append(_component(ratio, other, theta))
            y, rest = y * ratio, other + ratio * rest
        if mirrored:
            components[1] = pnp.where(negative, 1 - components[1], components[1])
        return pnp.stack(components, axis=-1)

    return _archimedean("frank_copula", key, n, theta, shape, dtype, valid, 1.0, draw)  # type: ignore[no-any-return]


def _component(ratio: Any, other: Any, theta: Any) -> Any:
    """Return ``-log(1 - (1 - exp(-theta)) ratio) / theta``, where ``other`` is ``1 - ratio``."""
    small = theta < 1
    s = pnp.where(small, theta, 0)
    product = ratio * exprel_p.bind(-s)
    x = s * product
    zero = x < 1e-5
    quotient = -pnp.log1p(-pnp.where(zero, 0.5, x)) / pnp.where(zero, 1, x)
    near = product * pnp.where(zero, 1 + x * (0.5 + x / 3), quotient)
    large = pnp.where(small, 1, theta)
    return pnp.where(small, near, -pnp.log(pnp.exp(-large) - pnp.expm1(-large) * other) / large)


def _ratio(share: Any, y: Any, rest: Any, order: int) -> tuple[Any, Any]:
    """Return the r for which the polylogarithm of order ``-order`` at ``r y`` is a share of that at ``y``, and 1 - r.

    Args:
      share: numbers between 0 and 1.
      y, rest: the numbers y from 0 to 1, and 1 - y.
      order: an int from 0 on.
    """
    if order == 0:
        below = rest + share * y
        return share / below, rest * (1 - share) / below
    coefficients = np.array(eulerian(order)[::-1], y.dtype)

    def logarithm(r: Any, other: Any, y: Any, rest: Any) -> Any:
        """The logarithm of the polylogarithm, divided by y."""
        return pnp.log(r * pnp.polyval(coefficients, r * y)) - (order + 1) * pnp.log(other + r * rest)

    def excess(s: Any, share: Any, y: Any, rest: Any) -> Any:
        whole = logarithm(pnp.ones_like(s), pnp.zeros_like(s), y, rest)
        return logarithm(_logistic(s), _logistic(-s), y, rest) - whole - pnp.log(share)

    floor = float(pnp.finfo(y.dtype).tiny)
    rest = pnp.maximum(rest, floor)
    end = pnp.full_like(share, -2 * math.log(floor))
    logit = root_between(excess, -end, end, share, y, rest)
    return _logistic(logit), _logistic(-logit)


def _logistic(x: Any) -> Any:
    return ops.logistic_p.bind(x)
