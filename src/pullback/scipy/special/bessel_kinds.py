"""Bessel functions of fixed orders, scaled ones, those of Hankel, spherical ones, their derivatives and zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.docs import describe
from pullback.core.errors import ArgumentError
from pullback.core.interrupts import imported
from pullback.core.trace import Primitive, state
from pullback.numpy.promotion import known_int, strong
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.arguments import on_host
from pullback.scipy.special import bessel_fixed, bessel_orders, bessel_spherical
from pullback.scipy.special.declared import Binary, Function, Unary, composed, declared
from pullback.scipy.special.differentiated import by_forward_mode
from pullback.scipy.special.operands import real_operands
from pullback.scipy.special.relations import relation, scipy_special_p, wide

from pullback.primitives.formulas import (  # isort: skip
    exp, floor, formula, lifted, sqrt, stop_gradient, where,
)  # fmt: skip


_double = np.dtype(np.float64)


def _constant(x: Any, value: float) -> Any:
    return shapes.full((), value, x.dtype)


def _of_order(p: Any, order: float) -> Function:
    return lambda x: p.bind(_constant(x, order), x, orders=(0, 0))


def jv(v: Any, x: Any) -> Any:
    return bessel_orders.jv_p.bind(v, x, orders=(0, 0))


def yv(v: Any, x: Any) -> Any:
    return bessel_orders.yv_p.bind(v, x, orders=(0, 0))


def iv(v: Any, x: Any) -> Any:
    return bessel_orders.iv_p.bind(v, x, orders=(0, 0))


def kv(v: Any, x: Any) -> Any:
    return bessel_orders.kv_p.bind(v, x, orders=(0, 0))


# Fixed orders --------------------------------------------------------------------------------------------------------


def _of_two(name: str) -> Any:
    """Return SciPy's function of order 2."""
    return lambda x: getattr(imported("scipy.special"), name)(2, x)


def _difference(zero: Function, two: Function, sign: int) -> Function:
    """Return half of ``zero(x) + sign two(x)``: the derivative of order 1 (DLMF 10.6.1, 10.29.1)."""

    def slope(x: Any) -> Any:
        other = ops.mul(two(x), sign)
        return ops.mul(ops.add(zero(x), other), 0.5)

    return slope


def _family(letter: str, p: Primitive, sign: int, outer: int) -> tuple[Function, Function]:
    """Declare the functions of order 0 and 1, and that of order 2, of which their second derivatives are made.

    The derivative of order n is ``outer / 2`` times the function of order n - 1 plus ``sign`` times that of n + 1.
    """
    one, two = (lambda x, n=n: scipy_special_p.bind(x, function=f"{letter}{n}") for n in (1, 2))
    zero = relation(f"{letter}0", "x", lambda x: ops.neg(one(x)), formula=getattr(bessel_fixed, f"{letter}0"))
    slopes = (_difference(zero, two, sign), _difference(one, _of_order(p, 3), sign))
    for n, slope in enumerate(slopes, 1):
        name = f"{letter}{n}"
        rule = slope if outer > 0 else lambda x, slope=slope: ops.neg(slope(x))
        relation(
            name, "x", rule, formula=getattr(bessel_fixed, name),
            host=_of_two({"j": "jv", "y": "yv", "k": "kv"}[letter]) if n == 2 else None,
        )  # fmt: skip
    return zero, one


_j0, _j1 = _family("j", bessel_orders.jv_p, -1, 1)
_y0, _y1 = _family("y", bessel_orders.yv_p, -1, 1)
_k0, _k1 = _family("k", bessel_orders.kv_p, 1, -1)


def _named(name: str, compute: Function, kind: str, general: str, shown: str) -> Any:
    return declared(
        __name__, name, "x", compute, f"{kind}, of order {name[1]}.", ("1.0", shown),
        note=f"Compiled it is a Chebyshev series, and its third derivative is of :func:`{general}`.",
    )  # fmt: skip


j0: Unary = _named("j0", _j0, "The Bessel function of the first kind", "jv", "0.7652")
j1: Unary = _named("j1", _j1, "The Bessel function of the first kind", "jv", "0.4401")
y0: Unary = _named("y0", _y0, "The Bessel function of the second kind", "yv", "0.0883")
y1: Unary = _named("y1", _y1, "The Bessel function of the second kind", "yv", "-0.7812")
k0: Unary = _named("k0", _k0, "The modified Bessel function of the second kind", "kv", "0.4210")
k1: Unary = _named("k1", _k1, "The modified Bessel function of the second kind", "kv", "0.6019")
kn: Binary = declared(
    __name__,
    "kn",
    "n, x",
    kv,
    "The modified Bessel function of the second kind, as :func:`kv`, under SciPy's other name.",
    ("1, 1.0", "0.6019"),
)
_LOOPS = 10_000
"""The largest order for SciPy's functions that loop over all lower orders."""


def _host_yn(n: Any, x: Any) -> Any:
    """Return SciPy's function of integer orders, of which a few take a tenth of the time, or that of real orders."""
    scipy = imported("scipy.special")
    integers = np.all((n == np.floor(n)) & (np.abs(n) <= _LOOPS))
    return scipy.yn(n.astype(np.int64), x) if integers else scipy.yv(n, x)


yn: Binary = declared(
    __name__, "yn", "n, x", composed(_host_yn, yv),
    "The Bessel function of the second kind, as :func:`yv`, under SciPy's other name.", ("1, 1.0", "-0.7812"),
)  # fmt: skip

# Scaled functions ----------------------------------------------------------------------------------------------------


def _wide_host(name: str, *xs: Any) -> Any:
    return getattr(imported("scipy.special"), name)(*map(wide, xs))


@formula
def _kve_formula(v: Any, x: Any) -> Any:
    return bessel_orders._kve(where(stop_gradient(v) < 0, -v, v), stop_gradient(x))


@formula
def _ive_formula(v: Any, x: Any) -> Any:
    """Evaluate ``exp(-abs(x)) I_v(x)``; negative orders follow from DLMF 10.27.2."""
    x, fixed = stop_gradient(x), stop_gradient(v)
    size, order = abs(x), where(fixed < 0, -v, v)
    bounded = where(size < 1e15, size, 1e15)
    value = bessel_orders._ive(order, bounded)
    safe = where(size > bessel_orders._LEAST, bounded, bessel_orders._LEAST)
    turn = bessel_orders._sin_pi(order)
    other = bessel_orders._times(turn, bessel_orders._kve(order, safe) * exp(-2 * safe)) * (2 / math.pi)
    value = where(fixed < 0, value + other, value)
    flipped = where(floor(fixed) == fixed, bessel_orders._parity(fixed) * value, math.nan)
    return where(x < 0, flipped, where((x == x) & (fixed == fixed), value, math.nan))


def _neighbours(p: Primitive, v: Any, x: Any, orders: tuple[int, ...]) -> Any:
    """Return half of the sum of the functions of both neighbouring orders."""
    lower, upper = bessel_orders._of_both(p, ops.sub(v, 1), ops.add(v, 1), x, orders)
    return ops.mul(ops.add(lower, upper), 0.5)


def _ive_slope(t: Any, v: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    scale = ops.mul(ops.sign(x), ive_p.bind(v, x, orders=orders))
    return ops.mul(t, ops.sub(_neighbours(ive_p, v, x, orders), scale))


def _kve_slope(t: Any, v: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    return ops.mul(t, ops.sub(kve_p.bind(v, x, orders=orders), _neighbours(kve_p, v, x, orders)))


ive_p, kve_p = (
    by_forward_mode(name, of, arity=2, host=partial(_wide_host, name), integrals=True, slopes=(None, slope))
    for name, of, slope in (("ive", _ive_formula, _ive_slope), ("kve", _kve_formula, _kve_slope))
)


def _ive(v: Any, x: Any) -> Any:
    return ive_p.bind(v, x, orders=(0, 0))


def _kve(v: Any, x: Any) -> Any:
    return kve_p.bind(v, x, orders=(0, 0))


_k0e: Function = relation("k0e", "x", lambda x: ops.neg(_gap(x)), formula=bessel_fixed.k0e)
_k1e: Function = relation("k1e", "x", lambda x: ops.sub(_gap(x), ops.div(_k1e(x), x)), formula=bessel_fixed.k1e)
_gap: Function = relation(
    "k1e - k0e", "x", lambda x: ops.sub(ops.mul(_gap(x), 2), ops.div(_k1e(x), x)),
    host=bessel_fixed.host_gap, formula=bessel_fixed.gap,
)  # fmt: skip
ive: Binary = declared(
    __name__,
    "ive",
    "v, x",
    _ive,
    "The modified Bessel function of the first kind times ``exp(-abs(x))``.",
    ("0.5, 1.0", "0.3450"),
)
kve: Binary = declared(
    __name__,
    "kve",
    "v, x",
    _kve,
    "The modified Bessel function of the second kind times ``exp(x)``.",
    ("0.5, 1.0", "1.2533"),
)
k0e: Unary = declared(
    __name__,
    "k0e",
    "x",
    _k0e,
    "The modified Bessel function of the second kind, of order 0, times ``exp(x)``.",
    ("1.0", "1.1445"),
)
k1e: Unary = declared(
    __name__,
    "k1e",
    "x",
    _k1e,
    "The modified Bessel function of the second kind, of order 1, times ``exp(x)``.",
    ("1.0", "1.6362"),
)
jve: Binary = declared(
    __name__,
    "jve",
    "v, x",
    jv,
    "The Bessel function of the first kind times ``exp(-abs(imag(x)))``.",
    ("0.5, 1.0", "0.6714"),
    note="For real numbers, which it takes, it is :func:`jv`.",
)
yve: Binary = declared(
    __name__,
    "yve",
    "v, x",
    yv,
    "The Bessel function of the second kind times ``exp(-abs(imag(x)))``.",
    ("0.5, 1.0", "-0.4311"),
    note="For real numbers, which it takes, it is :func:`yv`.",
)

# Hankel --------------------------------------------------------------------------------------------------------------


def _hankel(name: str, sign: int, scaled: bool) -> Any:
    """Make a Hankel function of real numbers: ``jv + sign 1j yv``, times ``exp(-sign 1j x)`` if ``scaled``."""

    def of_doubles(v: Any, x: Any) -> Any:
        first, second = jv(v, x), ops.mul(yv(v, x), sign)
        if not scaled:
            return ops.complex(first, second)
        cosine, sine = ops.cos(x), ops.mul(ops.sin(x), -sign)
        real = ops.sub(ops.mul(first, cosine), ops.mul(second, sine))
        return ops.complex(real, ops.add(ops.mul(first, sine), ops.mul(second, cosine)))

    def compute(v: Any, x: Any) -> Any:
        values = on_host(v, x)
        width = dtypes.to_complex(x.dtype)
        if values is not None:
            wide = [value.astype(np.float64) for value in values]
            found = state.silently(getattr(imported("scipy.special"), name), *wide)
            return ArrayImpl(np.asarray(found).astype(width))
        return ops.convert_element_type(of_doubles(*[ops.convert_element_type(y, _double) for y in (v, x)]), width)

    kind = "first" if sign > 0 else "second"
    factor = f", times ``exp({'-' if sign > 0 else ''}1j x)``" if scaled else ""
    v = {1: "jv + 1j yv", -1: "jv - 1j yv"}[sign]
    return declared(
        __name__, name, "v, x", compute, f"The Hankel function of the {kind} kind, ``{v}``{factor}.",
        ("0.0, 1.0", _SHOWN[name]), note="The result is complex. It has derivatives by both operands.",
    )  # fmt: skip


_SHOWN = {
    "hankel1": "0.7652+0.0883j", "hankel1e": "0.4877-0.5962j", "hankel2": "0.7652-0.0883j",
    "hankel2e": "0.4877+0.5962j",
}  # fmt: skip
hankel1: Binary = _hankel("hankel1", 1, False)
hankel2: Binary = _hankel("hankel2", -1, False)
hankel1e: Binary = _hankel("hankel1e", 1, True)
hankel2e: Binary = _hankel("hankel2e", -1, True)

# Derivatives ---------------------------------------------------------------------------------------------------------


def _differentiated(name: str, of: Function, sign: int, outer: int, v: Any, z: Any, n: Any) -> Array:
    """Return the derivative of order n, a binomial sum of functions of orders v - n to v + n (DLMF 10.6.7, 10.29.5)."""
    v, z = map(strong, real_operands(name, v, z))
    order = known_int(name, "the order of the derivative n", n)
    if order < 0:
        raise ArgumentError(f"{name}: the order of the derivative n must not be negative, got {order}")
    total = of(ops.sub(v, order), z)
    for k in range(1, order + 1):
        term = ops.mul(of(ops.add(v, 2 * k - order), z), sign**k * math.comb(order, k))
        total = ops.add(total, term)
    return ops.mul(total, outer**order / 2**order)


def jvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """Return the derivative of the Bessel function of the first kind, of order ``n``, by its variable.

    Args:
      v: the orders of the function, an array of real numbers.
      z: an array of real numbers, which broadcasts against ``v``.
      n: the order of the derivative, an integer that is known and not negative.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      OperandError: ``v`` or ``z`` is neither an array nor a number (a TypeError).
      DtypeError: an operand is complex (a TypeError).
      ShapeError: ``n`` is not an integer, or the shapes do not broadcast (a TypeError and a ValueError).
      ArgumentError: ``n`` is negative (a TypeError and a ValueError).

    It is a sum of functions of neighbouring orders (DLMF 10.6.7).

    >>> from pullback.scipy import special
    >>> print(f"{special.jvp(0.0, 1.0):.4f}")
    -0.4401
    """
    return _differentiated("jvp", jv, -1, 1, v, z, n)


def yvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """Return the derivative of the Bessel function of the second kind, of order ``n``, by its variable.

    Args:
      v, z, n: as for :func:`jvp`.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      OperandError, DtypeError, ShapeError, ArgumentError: as for :func:`jvp`.

    It is a sum of functions of neighbouring orders (DLMF 10.6.7).

    >>> from pullback.scipy import special
    >>> print(f"{special.yvp(0.0, 1.0):.4f}")
    0.7812
    """
    return _differentiated("yvp", yv, -1, 1, v, z, n)


def ivp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """Return the derivative of the modified Bessel function of the first kind, of order ``n``, by its variable.

    Args:
      v, z, n: as for :func:`jvp`.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      OperandError, DtypeError, ShapeError, ArgumentError: as for :func:`jvp`.

    It is a sum of functions of neighbouring orders (DLMF 10.29.5).

    >>> from pullback.scipy import special
    >>> print(f"{special.ivp(0.0, 1.0):.4f}")
    0.5652
    """
    return _differentiated("ivp", iv, 1, 1, v, z, n)


def kvp(v: ArrayLike, z: ArrayLike, n: int = 1) -> Array:
    """Return the derivative of the modified Bessel function of the second kind, of order ``n``, by its variable.

    Args:
      v, z, n: as for :func:`jvp`.

    Returns:
      An array of floats, of the broadcast shape.

    Raises:
      OperandError, DtypeError, ShapeError, ArgumentError: as for :func:`jvp`.

    It is a sum of functions of neighbouring orders (DLMF 10.29.5).

    >>> from pullback.scipy import special
    >>> print(f"{special.kvp(0.0, 1.0):.4f}")
    -0.6019
    """
    return _differentiated("kvp", kv, 1, -1, v, z, n)


# Spherical functions -------------------------------------------------------------------------------------------------


_MOST = 1e9
"""The largest number for spherical functions of larger orders: of others SciPy's cylindrical functions return zero."""


def _spherical(name: str, of: Function, before: int, after: int, at_zero: float) -> tuple[Function, Function]:
    """Declare a spherical Bessel function of integer order.

    Its derivative is ``(before n f(n - 1) + after (n + 1) f(n + 1)) / (2 n + 1)`` (DLMF 10.51.2 and 10.51.5).

    Args:
      name: SciPy's name.
      of: the cylindrical function.
      before, after: the signs in the derivative.
      at_zero: the value of order 0 at 0; other orders are 0 there if it is finite.
    """

    kind = {"j": "jv", "y": "yv", "i": "iv", "k": "kv"}[name[-2]]

    direct = bessel_spherical.KINDS.get(name)

    @formula
    def of_second_kind(n: Any, z: Any) -> Any:
        value = where(z == 0, at_zero, lifted(direct)(n, where(z == 0, 1, z)))
        return where((n < 0) | (floor(n) != n), math.nan, value)

    @formula
    def of_first_kind(n: Any, z: Any) -> Any:
        size = abs(z)
        safe = where(size == 0, 1, size)
        value = sqrt(math.pi / 2 / safe) * lifted(of)(n + 0.5, safe)
        value = where(z == 0, where(n == 0, at_zero, z * 0), value)
        odd = n - 2 * floor(n / 2)
        return where((n < 0) | (floor(n) != n), math.nan, where(z < 0, (1 - 2 * odd) * value, value))

    def host(n: Any, z: Any) -> Any:
        scipy = imported("scipy.special")
        whole, loops = n == np.floor(n), (n > _LOOPS) & (kind in ("jv", "yv"))
        found = getattr(scipy, name)(np.where(whole & ~loops, n, -1).astype(np.int64), z)
        if not np.any(loops):
            return found
        size, turned = np.where(z == 0, 1, np.abs(z)), (z < 0) & (n % 2 == (1 if kind == "jv" else 0))
        value = np.where(turned, -1, 1) * np.sqrt(math.pi / 2 / size) * getattr(scipy, kind)(n + 0.5, size)
        value = np.where(z == 0, 0 if kind == "jv" else -math.inf, value)
        value = np.where(size > _MOST, math.nan, value)
        return np.where(loops & whole, value, found)

    def slope(n: Any, z: Any) -> Any:
        next_ = ops.add(n, 1)
        lower = ops.mul(ops.mul(n, before), f(ops.max_p.bind(ops.sub(n, 1), 0.0), z))
        upper = ops.mul(ops.mul(next_, after), f(next_, z))
        return ops.div(ops.add(lower, upper), ops.add(n, next_))

    f = relation(name, "n, z", None, slope, host=host, formula=of_second_kind if direct else of_first_kind)
    return f, slope


def _with_flag(name: str, f: Function, slope: Function, kind: str, shown: str) -> Any:
    """Make the public function of a spherical Bessel function."""

    def function(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
        degrees, points = map(strong, real_operands(name, n, z))
        return (slope if flag(name, "derivative", derivative) else f)(degrees, points)

    text = f"""{kind}, of integer order.

Args:
  n: the orders, an array of integers; others return NaN.
  z: an array of real numbers, which broadcasts against ``n``.
  derivative: whether to return the derivative by ``z`` instead.

Returns:
  An array of floats, of the broadcast shape.

Raises:
  OperandError: ``n`` or ``z`` is neither an array nor a number (a TypeError).
  DtypeError: an operand is complex (a TypeError).
  ShapeError: the shapes do not broadcast (a TypeError and a ValueError).

Compiled it is a recurrence in the order, or a cylindrical function (DLMF 10.47). Derivatives are functions of the
neighbouring orders (10.51).

>>> from pullback.scipy import special
>>> print(f"{{special.{name}(1, 1.0):.4f}}")
{shown}
"""
    return describe(function, name, text, module=__name__)


Spherical = Callable[..., Array]
_jn = _spherical("spherical_jn", jv, 1, -1, 1.0)
_yn = _spherical("spherical_yn", yv, 1, -1, -math.inf)
_in = _spherical("spherical_in", iv, 1, 1, 1.0)
_kn = _spherical("spherical_kn", kv, -1, -1, math.inf)
spherical_jn: Spherical = _with_flag("spherical_jn", *_jn, "The spherical Bessel function of the first kind", "0.3012")
spherical_yn: Spherical = _with_flag(
    "spherical_yn", *_yn, "The spherical Bessel function of the second kind", "-1.3818"
)
spherical_in: Spherical = _with_flag(
    "spherical_in", *_in, "The modified spherical Bessel function of the first kind", "0.3679"
)
spherical_kn: Spherical = _with_flag(
    "spherical_kn", *_kn, "The modified spherical Bessel function of the second kind", "1.1557"
)

# Zeros ---------------------------------------------------------------------------------------------------------------


def _zeros(name: str, of: str, shown: str) -> Any:
    """Make the function that returns the first positive zeros of a function of integer order."""

    def function(n: int, nt: int) -> Array:
        order, count = known_int(name, "the order n", n), known_int(name, "the number of zeros nt", nt)
        if count < 1:
            raise ArgumentError(f"{name}: the number of zeros nt must be positive, got {count}")
        found = getattr(imported("scipy.special"), name)(order, count)
        return ops.convert_element_type(ArrayImpl(found), dtypes.default_float())

    text = f"""Return the first positive zeros of {of}.

Args:
  n: the order of the function, an integer that is known.
  nt: the number of zeros, a positive integer that is known.

Returns:
  An array of ``nt`` floats of the default dtype.

Raises:
  ShapeError: ``n`` or ``nt`` is not an integer (a TypeError and a ValueError).
  ArgumentError: ``nt`` is not positive (a TypeError and a ValueError).

SciPy computes them.

>>> from pullback.scipy import special
>>> print(special.{name}(0, 2).round(4))
{shown}
"""
    return describe(function, name, text, module=__name__)


Zeros = Callable[[int, int], Array]
jn_zeros: Zeros = _zeros("jn_zeros", "the Bessel function of the first kind", "[2.4048 5.5201]")
jnp_zeros: Zeros = _zeros("jnp_zeros", "the derivative of the Bessel function of the first kind", "[3.8317 7.0156]")
yn_zeros: Zeros = _zeros("yn_zeros", "the Bessel function of the second kind", "[0.8936 3.9577]")
ynp_zeros: Zeros = _zeros("ynp_zeros", "the derivative of the Bessel function of the second kind", "[2.1971 5.4297]")

__all__ = [
    "hankel1", "hankel1e", "hankel2", "hankel2e", "ive", "ivp", "j0", "j1", "jn_zeros", "jnp_zeros", "jve", "jvp", "k0",
    "k0e", "k1", "k1e", "kn", "kve", "kvp", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn", "y0", "y1",
    "yn", "yn_zeros", "ynp_zeros", "yve", "yvp",
]  # fmt: skip
