"""Spherical harmonics and Legendre's associated functions, by recurrences in the degree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.control.fori_loop import fori_loop
from pullback.core import dtypes
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.errors import ArgumentError, ConcretizationTypeError, DtypeError, UnsupportedArgumentError
from pullback.numpy import declare
from pullback.numpy.manipulation import roll
from pullback.numpy.promotion import known_int, operand
from pullback.primitives import elementwise as ops
from pullback.primitives.elementwise import add, gt, lt, mul, neg, sub
from pullback.primitives.formulas import formula, lifted, sqrt, where
from pullback.scipy.special.operands import real_operands


def sph_harm_y(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """Spherical harmonics of degree ``n`` and order ``m``, with the phase of Condon and Shortley.

    Args:
      n: an array of integers that are not negative.
      m: an array of integers, of sizes up to ``n``.
      theta: an array of polar angles, from 0 to pi.
      phi: an array of azimuths. All shapes broadcast against each other.
      diff_n: must be None or 0; differentiate by ``grad`` and ``jacfwd`` instead.
      n_max: the largest degree in ``n``; needed where ``n`` is traced.

    Returns:
      An array of complex numbers; 0 where the size of ``m`` is above ``n``, and NaN where ``n`` is negative or above
      ``n_max``.

    Raises:
      DtypeError: ``n`` or ``m`` are no integers, or the angles complex (a TypeError).
      ArgumentError: ``n_max`` is negative (a TypeError and a ValueError).
      ConcretizationTypeError: ``n`` is traced, and there is no ``n_max`` (a TypeError).
      UnsupportedArgumentError: ``diff_n`` (a NotImplementedError).
      ShapeError: the shapes do not fit (a TypeError and a ValueError).

    The normalised functions of Legendre are computed by the recurrence in the degree (DLMF 14.10.3), which is stable.

    >>> from pullback.scipy import special
    >>> print(f"{special.sph_harm_y(2, 1, 0.3, 0.0).real:.4f}")
    -0.2181
    """
    if not is_listed(diff_n, (0, None)):
        raise UnsupportedArgumentError(
            f"sph_harm_y: diff_n={diff_n!r} is not supported; use jacfwd, or grad of the real and imaginary parts"
        )
    degrees, order = _integers("sph_harm_y", "n", n), _integers("sph_harm_y", "m", m)
    theta, phi = real_operands("sph_harm_y", theta, phi)
    if n_max is None:
        if not isinstance(degrees, ArrayImpl):
            raise ConcretizationTypeError("sph_harm_y: with a traced n, pass the largest degree as n_max=...")
        n_max = int(np.max(np.asarray(degrees), initial=0))
    n_max = known_int("sph_harm_y", "n_max", n_max)
    if n_max < 0:
        raise ArgumentError(f"sph_harm_y: n_max, the largest degree, must not be negative, got {n_max}")
    dtype = theta.dtype
    degree, signed = (ops.convert_element_type(x, dtype) for x in (degrees, order))
    size = ops.abs(signed)
    value = _legendre(degree, size, ops.cos(theta), ops.sin(theta), n_max)
    angle = mul(size, phi)
    # For negative orders it is (-1)**m times the conjugate.
    negative = lt(signed, 0)
    odd = ops.ne_p.bind(ops.rem_p.bind(size, 2.0), 0)
    value = ops.where(ops.and_p.bind(negative, odd), neg(value), value)
    sine = ops.where(negative, neg(ops.sin(angle)), ops.sin(angle))
    outside = ops.or_p.bind(lt(degree, 0), gt(degree, n_max))
    value = ops.where(outside, math.nan, value)
    return ops.complex(mul(value, ops.cos(angle)), mul(value, sine))


def _integers(name: str, which: str, x: Any) -> Array:
    x = operand(name, x)
    if not dtypes.is_integer(x.dtype):
        raise DtypeError(f"{name}: {which} must be integers, got {dtypes.short_name(x.dtype)}")
    return x


@formula
def _legendre(n: Any, m: Any, x: Any, sine: Any, n_max: int) -> Any:
    """Return the associated Legendre function of degree n and order m >= 0, normalised for spherical harmonics.

    One loop over the degrees k up to ``n_max`` is run. While k <= m it multiplies by -sqrt((2 k + 1) / (2 k)) sin(θ),
    which yields the function of degree k and order k. Then it applies the recurrence in the degree, up to n.

    Args:
      n, m: the degree and the order.
      x, sine: cos(θ) and sin(θ).
      n_max: the largest degree.
    """
    zero = (n + m) * (x + sine) * 0
    start = zero + math.sqrt(0.25 / math.pi)

    @formula
    def body(k: Any, carry: Any) -> Any:
        before, value = carry
        k = lifted(ops.convert_element_type)(k, x.dtype)
        diagonal = -(sine * sqrt((2 * k + 1) / (2 * k)) * value)
        above, squared = k > m, m * m
        rest = where(above, k * k - squared, 1)
        scale = sqrt((4 * k * k - 1) / rest)
        last = where(above, (k - 1) * (k - 1) - squared, 0)
        back = sqrt(where(last > 0, last, 1) / where(k > 1, 4 * ((k - 1) * (k - 1)) - 1, 1))
        back = where(last > 0, back, 0)
        step = scale * (x * value - back * before)
        new = where(above, step, diagonal)
        going = k <= n
        return where(going, value, before), where(going, new, value)

    value = start
    if n_max:
        _, value = lifted(fori_loop)(1, n_max + 1, body, (zero, start))
    return where(m > n, 0, value)


def lpmn_values(m: ArrayLike, n: ArrayLike, z: ArrayLike, is_normalized: bool) -> Array:
    """Legendre's associated functions of all orders up to ``m`` and all degrees up to ``n``.

    Args:
      m: the largest order, an integer that is known.
      n: the largest degree, equal to ``m``.
      z: an array of one axis of real numbers from -1 to 1.
      is_normalized: whether the functions have the normalisation of spherical harmonics.

    Returns:
      An array of shape ``(m + 1, n + 1, len(z))``, 0 where the order is above the degree.

    Raises:
      ArgumentError: ``m`` and ``n`` differ, or are negative, or ``z`` does not have one axis (a TypeError and a
        ValueError).
      ShapeError: ``m`` or ``n`` is no integer (a TypeError and a ValueError).
      DtypeError: ``z`` is complex (a TypeError).

    The recurrence in the degree is the same as in :func:`sph_harm_y`.

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.lpmn_values(1, 1, jnp.array([0.5]), False)[0, :, 0].round(4))
    [1.  0.5]
    """
    m, n, z = _table_operands("lpmn_values", m, n, z)
    orders = ops.convert_element_type(_table_index(n, 1), z.dtype)
    degrees = ops.convert_element_type(_table_index(n, 0), z.dtype)
    value = _legendre(degrees, orders, z, ops.sqrt(mul(sub(1, z), add(1, z))), n)
    return value if is_normalized else mul(value, _unnormalised(n, z.dtype))


def lpmn(m: ArrayLike, n: ArrayLike, z: ArrayLike) -> tuple[Array, Array]:
    """Legendre's associated functions and their derivatives, of all orders up to ``m`` and all degrees up to ``n``.

    Args:
      m, n, z: as for :func:`lpmn_values`; ``z`` must lie strictly between -1 and 1 for the derivatives.

    Returns:
      Two arrays of shape ``(m + 1, n + 1, len(z))``: the values, and the derivatives by ``z``.

    Raises:
      ArgumentError, ShapeError: as for :func:`lpmn_values` (both a TypeError and a ValueError).
      DtypeError: ``z`` is complex (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy import special
    >>> print(special.lpmn(1, 1, jnp.array([0.5]))[1][0, :, 0].round(4))
    [0. 1.]
    """
    m, n, z = _table_operands("lpmn", m, n, z)
    values = lpmn_values(m, n, z, False)
    degrees = ops.convert_element_type(_table_index(n, 0), z.dtype)
    orders = ops.convert_element_type(_table_index(n, 1), z.dtype)
    below = ops.where(gt(degrees, 0), roll(values, 1, 1), 0)
    return values, _slope(degrees, orders, z, values, below)


@formula
def _slope(n: Any, m: Any, z: Any, value: Any, below: Any) -> Any:
    """Return the derivative of the Legendre function of degree n and order m at ``z`` (DLMF 14.10.5).

    ``value`` is the function at ``z``, and ``below`` the function of degree n - 1 there.
    """
    return ((n + m) * below - n * z * value) / ((1 - z) * (1 + z))


def _table_index(n: int, axis: int) -> Any:
    """Return the degrees (``axis`` 0) or the orders (``axis`` 1) of a table with orders as rows and degrees as columns.

    The shape is (n + 1, n + 1, 1).
    """
    index = np.arange(n + 1)
    return ArrayImpl(np.broadcast_to(index[:, None, None] if axis else index[None, :, None], (n + 1, n + 1, 1)).copy())


def _table_operands(name: str, m: Any, n: Any, z: Any) -> tuple[int, int, Array]:
    m, n = known_int(name, "the largest order m", m), known_int(name, "the largest degree n", n)
    if m != n or m < 0:
        raise ArgumentError(f"{name}: m and n must be equal and non-negative, got m={m} and n={n}")
    (z,) = real_operands(name, z)
    if len(z.shape) != 1:
        raise ArgumentError(f"{name}: z must have one axis, got shape {tuple(z.shape)}")
    return m, n, z


def _unnormalised(n: int, dtype: Any) -> Any:
    """Return the table of sqrt(4π / (2k + 1) (k + m)! / (k - m)!), with m as rows and k as columns up to ``n``.

    The elements with m > k are 0. The factors undo the normalisation of the Legendre functions of degree k and order m.
    The shape is (n + 1, n + 1, 1).
    """
    table = [
        [
            math.sqrt(4 * math.pi / (2 * k + 1) * math.perm(k + order, 2 * order)) if order <= k else 0.0
            for k in range(n + 1)
        ]
        for order in range(n + 1)
    ]
    return ArrayImpl(np.array(table, dtype)[:, :, None])


__all__ = declare.public_names(__name__, globals())
