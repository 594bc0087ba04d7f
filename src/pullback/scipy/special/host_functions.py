"""Kelvin's, Struve's, Mathieu's and Wright's functions, those of the parabolic cylinder, and integrals of Bessel's.

SciPy computes them on the host, also within compiled programs. Derivatives are relations between them (DLMF 10.61 to
10.68, 11.4, 12.2, 13.3 and 28).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.scipy.special import bessel_orders, cylinder_orders, hypergeometric_orders, mathieu, struve_orders
from pullback.scipy.special.airy import all_of
from pullback.scipy.special.composed_functions import rgamma
from pullback.scipy.special.declared import Binaries, Binary, Function, Ternaries, Ternary, Unaries, Unary, declared
from pullback.scipy.special.relations import relation

_HOST = "SciPy computes it on the host, also within compiled programs."
_plain = partial(declared, __name__, note=_HOST)


def _constant(x: Any, value: float) -> Any:
    return shapes.full((), value, x.dtype)


def _j(order: float) -> Function:
    return lambda x: bessel_orders.jv_p.bind(_constant(x, order), x, orders=(0, 0))


def _y(order: float) -> Function:
    return lambda x: bessel_orders.yv_p.bind(_constant(x, order), x, orders=(0, 0))


def _i(order: float) -> Function:
    return lambda x: bessel_orders.iv_p.bind(_constant(x, order), x, orders=(0, 0))


def _k(order: float) -> Function:
    return lambda x: bessel_orders.kv_p.bind(_constant(x, order), x, orders=(0, 0))


# Kelvin --------------------------------------------------------------------------------------------------------------


def _second(sign: int, other: Function, slope: Function) -> Function:
    """Return the second derivative ``sign * other(x) - slope(x) / x`` of a Kelvin function (DLMF 10.61.3)."""
    return lambda x: ops.sub(ops.mul(other(x), sign), ops.div(slope(x), x))


_ber: Function = relation("ber", "x", lambda x: _berp(x))
_bei: Function = relation("bei", "x", lambda x: _beip(x))
_ker: Function = relation("ker", "x", lambda x: _kerp(x))
_kei: Function = relation("kei", "x", lambda x: _keip(x))
_berp: Function = relation("berp", "x", _second(-1, _bei, lambda x: _berp(x)))
_beip: Function = relation("beip", "x", _second(1, _ber, lambda x: _beip(x)))
_kerp: Function = relation("kerp", "x", _second(-1, _kei, lambda x: _kerp(x)))
_keip: Function = relation("keip", "x", _second(1, _ker, lambda x: _keip(x)))

_kelvin = partial(declared, __name__, note=f"{_HOST} Second derivatives are NaN at 0.")
ber: Unary = _kelvin(
    "ber", "x", _ber, "Kelvin's function ber: the real part of ``J_0(x exp(3 pi i / 4))``.", ("1.0", "0.9844")
)
bei: Unary = _kelvin(
    "bei", "x", _bei, "Kelvin's function bei: the imaginary part of ``J_0(x exp(3 pi i / 4))``.", ("1.0", "0.2496")
)
ker: Unary = _kelvin(
    "ker", "x", _ker, "Kelvin's function ker: the real part of ``K_0(x exp(pi i / 4))``.", ("1.0", "0.2867")
)
kei: Unary = _kelvin(
    "kei", "x", _kei, "Kelvin's function kei: the imaginary part of ``K_0(x exp(pi i / 4))``.", ("1.0", "-0.4950")
)
berp: Unary = _kelvin("berp", "x", _berp, "The derivative of :func:`ber`.", ("1.0", "-0.0624"))
beip: Unary = _kelvin("beip", "x", _beip, "The derivative of :func:`bei`.", ("1.0", "0.4974"))
kerp: Unary = _kelvin("kerp", "x", _kerp, "The derivative of :func:`ker`.", ("1.0", "-0.6946"))
keip: Unary = _kelvin("keip", "x", _keip, "The derivative of :func:`kei`.", ("1.0", "0.3524"))

# Struve, and integrals of Bessel functions ---------------------------------------------------------------------------


def _excess(v: Any, x: Any) -> Any:
    """Return ``(x / 2)**v / (sqrt(pi) gamma(v + 3/2))``."""
    power = ops.pow(ops.mul(x, 0.5), v)
    share = rgamma(ops.add(v, 1.5))
    return ops.mul(ops.mul(power, share), 1 / math.sqrt(math.pi))


def _neighbours(f: Function, sign: int) -> Function:
    """Return half of ``f(v - 1, x) + sign f(v + 1, x)`` and the excess, a derivative (DLMF 11.4.28 and 11.4.30)."""

    def slope(v: Any, x: Any) -> Any:
        above = f(ops.add(v, 1), x)
        both = ops.add(f(ops.sub(v, 1), x), ops.mul(above, sign))
        return ops.mul(ops.add(both, _excess(v, x)), 0.5)

    return slope


def _by_order(p: Primitive, arity: int = 2, position: int = 0) -> Function:
    """Return the first derivative by the operand of a position, which has all others."""
    orders = tuple(int(i == position) for i in range(arity))
    return lambda *xs: p.bind(*xs, orders=orders)


_struve: Function = relation(
    "struve", "v, x", _by_order(struve_orders.struve_p), _neighbours(lambda v, x: _struve(v, x), -1)
)
_modstruve: Function = relation(
    "modstruve", "v, x", _by_order(struve_orders.modstruve_p), _neighbours(lambda v, x: _modstruve(v, x), 1)
)
_OF_STRUVE = (
    f"{_HOST} Derivatives by ``v``,\nfor positive ``x``, are of power series and of integrals (DLMF 11.2.1, 11.2.2, "
    "11.5.1 and\n11.5.2)."
)
struve: Binary = declared(
    __name__,
    "struve",
    "v, x",
    _struve,
    "Struve's function H of order ``v``.",
    ("0.5, 1.0", "0.3668"),
    note=_OF_STRUVE,
)
modstruve: Binary = declared(
    __name__,
    "modstruve",
    "v, x",
    _modstruve,
    "The modified Struve function L of order ``v``.",
    ("0.5, 1.0", "0.4333"),
    note=_OF_STRUVE,
)


def _over_x(f: Function, sign: int) -> Function:
    return lambda x: ops.div(ops.mul(f(x), sign), x)


_itstruve0 = relation("itstruve0", "x", lambda x: _struve(_constant(x, 0.0), x))
_it2struve0 = relation("it2struve0", "x", _over_x(lambda x: _struve(_constant(x, 0.0), x), -1))
_itmodstruve0 = relation("itmodstruve0", "x", lambda x: _modstruve(_constant(x, 0.0), x))
itstruve0: Unary = _plain(
    "itstruve0", "x", _itstruve0, "The integral of Struve's function of order 0 from 0 to ``x``.", ("1.0", "0.3011")
)
it2struve0: Unary = _plain(
    "it2struve0",
    "x",
    _it2struve0,
    "The integral of Struve's function of order 0 over t, from ``x`` to infinity.",
    ("1.0", "0.9572"),
)
itmodstruve0: Unary = _plain(
    "itmodstruve0",
    "x",
    _itmodstruve0,
    "The integral of the modified Struve function of order 0 from 0 to ``x``.",
    ("1.0", "0.3365"),
)

_itj0y0 = relation("itj0y0.j", "x", _j(0), result=0), relation("itj0y0.y", "x", _y(0), result=1)
_iti0k0 = relation("iti0k0.i", "x", _i(0), result=0), relation("iti0k0.k", "x", _k(0), result=1)
_it2j0y0 = (
    relation("it2j0y0.j", "x", lambda x: ops.div(ops.sub(1, _j(0)(x)), x), result=0),
    relation("it2j0y0.y", "x", _over_x(_y(0), -1), result=1),
)
_it2i0k0 = (
    relation("it2i0k0.i", "x", lambda x: ops.div(ops.sub(_i(0)(x), 1), x), result=0),
    relation("it2i0k0.k", "x", _over_x(_k(0), -1), result=1),
)
itj0y0: Unaries = _plain(
    "itj0y0",
    "x",
    all_of("itj0y0", *_itj0y0),
    "The integrals of the Bessel functions J0 and Y0 from 0 to ``x``.",
    ("1.0", "0.9197 -0.6371"),
    results=2,
)
iti0k0: Unaries = _plain(
    "iti0k0",
    "x",
    all_of("iti0k0", *_iti0k0),
    "The integrals of the modified Bessel functions I0 and K0 from 0 to ``x``.",
    ("1.0", "1.0865 1.2425"),
    results=2,
)
it2j0y0: Unaries = _plain(
    "it2j0y0",
    "x",
    all_of("it2j0y0", *_it2j0y0),
    "The integrals of ``(1 - J0(t)) / t`` from 0 to ``x``, and of ``Y0(t) / t`` from ``x`` to infinity.",
    ("1.0", "0.1212 0.3953"),
    results=2,
)
it2i0k0: Unaries = _plain(
    "it2i0k0",
    "x",
    all_of("it2i0k0", *_it2i0k0),
    "The integrals of ``(I0(t) - 1) / t`` from 0 to ``x``, and of ``K0(t) / t`` from ``x`` to infinity.",
    ("1.0", "0.1290 0.2085"),
    results=2,
)

# The parabolic cylinder ----------------------------------------------------------------------------------------------


def _of_moderate_order(v: Any, x: Any) -> Any:
    """Return a mask of orders up to 100,000: SciPy needs as many numbers in memory as the order.

    Beyond 1,000 its results are zero, infinite or NaN.
    """
    return np.abs(v) <= 1e5


def _weber(
    name: str, order: str, sign: int, shift: float, by_order: tuple[Primitive, Primitive]
) -> tuple[Function, Function]:
    """Declare a function of the parabolic cylinder, and its derivative.

    Their equation is ``w'' = sign (x**2 / 4 - order - shift) w`` (DLMF 12.2.2 and 12.2.3). Both of ``by_order`` have
    derivatives by the order.
    """

    def second(a: Any, x: Any) -> Any:
        quarter = ops.mul(ops.mul(x, x), 0.25)
        coefficient = ops.sub(quarter, ops.add(a, shift))
        return ops.mul(ops.mul(coefficient, value(a, x)), sign)

    inside = _of_moderate_order
    names, (first, other) = f"{order}, x", map(_by_order, by_order)
    value: Function = relation(name, names, first, lambda a, x: slope(a, x), result=0, inside=inside)
    slope: Function = relation(f"{name}.slope", names, other, second, result=1, inside=inside)
    return value, slope


def _parabolic(
    name: str, order: str, sign: int, shift: float, by_order: tuple[Primitive, Primitive], source: str, shown: str
) -> Binaries:
    """Declare a function of the parabolic cylinder, whose results are itself and its derivative."""
    functions = _weber(name, order, sign, shift, by_order)
    results = "The results are the function and its derivative by ``x``."
    note = f"{results} {_HOST}\nDerivatives by ``{order}`` are of {source}."
    return declared(  # type: ignore[no-any-return]
        __name__, name, f"{order}, x", all_of(name, *functions, inside=_of_moderate_order),
        f"The parabolic cylinder function {name[2].upper()}, and its derivative.", ("1.0, 0.5", shown), note=note,
        results=2,
    )  # fmt: skip


_BEYOND = "NaN beyond an ``x`` of 60 or\nan order of 2,000"
_OF_STEPS = "Taylor polynomials in steps from 0 (DLMF 12.2)"
pbdv: Binaries = _parabolic(
    "pbdv", "v", 1, 0.5, (cylinder_orders.pbdv_p, cylinder_orders.pbdv_slope_p),
    f"an integral and recurrences (DLMF 12.5.1 and 12.8.1), {_BEYOND}", "0.4697 0.8220",
)  # fmt: skip
pbvv: Binaries = _parabolic(
    "pbvv", "v", 1, 0.5, (cylinder_orders.pbvv_p, cylinder_orders.pbvv_slope_p), f"{_OF_STEPS}, {_BEYOND}",
    "-0.6538 0.5545",
)  # fmt: skip
pbwa: Binaries = _parabolic(
    "pbwa", "a", -1, 0.0, (cylinder_orders.pbwa_p, cylinder_orders.pbwa_slope_p),
    f"{_OF_STEPS}, NaN beyond 5,\nas SciPy's values", "0.4679 -0.3951",
)  # fmt: skip

# Mathieu -------------------------------------------------------------------------------------------------------------


def _characteristic(odd: bool, order: int) -> Function:
    """Declare the derivative of characteristic values by q, of an order from 0."""
    name = f"mathieu_{'b' if odd else 'a'}" + (f".{order}" if order else "")
    hosts = mathieu.characteristic, mathieu.slope, partial(mathieu.higher_slope, order=order)
    host = partial(hosts[min(order, 2)], odd=odd)
    return relation(name, "m, q", None, lambda m, q: _characteristic(odd, order + 1)(m, q), host=host)  # type: ignore[no-any-return]


def _angular(odd: bool, order: int, order_of_x: int) -> Function:
    """Declare a derivative of Mathieu functions, of an order from 1 by q, and by x in radians."""
    return relation(  # type: ignore[no-any-return]
        f"mathieu_{'sem' if odd else 'cem'}.{order}.{order_of_x}", "m, q, x", None,
        lambda m, q, x: _angular(odd, order + 1, order_of_x)(m, q, x),
        lambda m, q, x: ops.mul(_angular(odd, order, order_of_x + 1)(m, q, x), math.pi / 180),
        host=partial(mathieu.function, odd=odd, order=order, order_of_x=order_of_x),
    )  # fmt: skip


_mathieu_a, _mathieu_b = _characteristic(False, 0), _characteristic(True, 0)


def _few_coefficients(m: Any, q: Any, x: Any) -> Any:
    """Return a mask of orders and parameters for which SciPy has values: others need more than 251 coefficients.

    SciPy needs seconds to find that out.
    """
    return (np.abs(m) <= 500) & (np.abs(q) <= 5000)


def _mathieu(name: str, value: Function, radial: bool) -> tuple[Function, Function]:
    """Declare a Mathieu function and its derivative; ``x`` is in degrees, or for radial functions a plain number."""
    unit = 1.0 if radial else math.pi / 180
    swing = ops.cosh if radial else ops.cos

    def second(m: Any, q: Any, x: Any) -> Any:
        turned = swing(ops.mul(x, 2 * unit))
        swung = ops.mul(ops.mul(q, 2), turned)
        coefficient = ops.sub(swung, value(m, q))
        return ops.mul(ops.mul(coefficient, w(m, q, x)), -unit if radial else unit)

    def by_parameter(order_of_x: int) -> Function | None:
        return None if radial else lambda m, q, x: _angular("sem" in name, 1, order_of_x)(m, q, x)

    by_x = lambda m, q, x: ops.mul(slope(m, q, x), unit)
    inside = _few_coefficients
    w: Function = relation(name, "m, q, x", None, by_parameter(0), by_x, result=0, inside=inside)
    slope: Function = relation(f"{name}.slope", "m, q, x", None, by_parameter(1), second, result=1, inside=inside)
    return w, slope


_OF_ORDERS = f"{_HOST} The orders ``m`` are integers."
mathieu_a: Binary = declared(
    __name__,
    "mathieu_a",
    "m, q",
    _mathieu_a,
    "The characteristic values of the even Mathieu functions.",
    ("1.0, 0.5", "1.4668"),
    note=f"{_OF_ORDERS} It has derivatives by ``q``.",
)
mathieu_b: Binary = declared(
    __name__,
    "mathieu_b",
    "m, q",
    _mathieu_b,
    "The characteristic values of the odd Mathieu functions.",
    ("1.0, 0.5", "0.4707"),
    note=f"{_OF_ORDERS} It has derivatives by ``q``.",
)
_OF_MATHIEU = f"The results are the function and its derivative. {_OF_ORDERS}\nIt has derivatives by ``x``."
_DEGREES = (
    "The results are the function and its derivative; ``x`` is in degrees, but the derivative is by radians.\n"
    f"{_OF_ORDERS} It has derivatives by ``q`` and ``x``."
)


def _with_slope(name: str, characteristic: Any, modified: bool, sentence: str, example: tuple[str, str]) -> Ternaries:
    """Declare a Mathieu function, whose results are itself and its derivative."""
    function = all_of(name, *_mathieu(name, characteristic, modified), inside=_few_coefficients)
    note = _OF_MATHIEU if modified else _DEGREES
    return declared(__name__, name, "m, q, x", function, sentence, example, note=note, results=2)  # type: ignore[no-any-return]


mathieu_cem: Ternaries = _with_slope(
    "mathieu_cem",
    _mathieu_a,
    False,
    "The even Mathieu function, and its derivative.",
    ("1.0, 0.5, 30.0", "0.8629 -0.3035"),
)
mathieu_sem: Ternaries = _with_slope(
    "mathieu_sem",
    _mathieu_b,
    False,
    "The odd Mathieu function, and its derivative.",
    ("1.0, 0.5, 30.0", "0.4412 0.8594"),
)
mathieu_modcem1: Ternaries = _with_slope(
    "mathieu_modcem1",
    _mathieu_a,
    True,
    "The even modified Mathieu function of the first kind, and its derivative.",
    ("1.0, 0.5, 0.3", "0.5976 0.0717"),
)
mathieu_modsem1: Ternaries = _with_slope(
    "mathieu_modsem1",
    _mathieu_b,
    True,
    "The odd modified Mathieu function of the first kind, and its derivative.",
    ("1.0, 0.5, 0.3", "0.1984 0.6486"),
)
mathieu_modcem2: Ternaries = _with_slope(
    "mathieu_modcem2",
    _mathieu_a,
    True,
    "The even modified Mathieu function of the second kind, and its derivative.",
    ("1.0, 0.5, 0.3", "-0.7852 0.9710"),
)
mathieu_modsem2: Ternaries = _with_slope(
    "mathieu_modsem2",
    _mathieu_b,
    True,
    "The odd modified Mathieu function of the second kind, and its derivative.",
    ("1.0, 0.5, 0.3", "-0.8044 0.5791"),
)

# Hypergeometric functions --------------------------------------------------------------------------------------------


def _hyp0f1_slope(v: Any, z: Any) -> Any:
    return ops.div(_hyp0f1(ops.add(v, 1), z), v)


def _log_wright_slope(a: Any, b: Any, x: Any) -> Any:
    return ops.exp(ops.sub(_log_wright_bessel(a, ops.add(a, b), x), _log_wright_bessel(a, b, x)))


def _omega_slope(z: Any) -> Any:
    w = _wrightomega(z)
    return ops.div(w, ops.add(w, 1))


_hyp0f1: Function = relation("hyp0f1", "v, z", _by_order(hypergeometric_orders.hyp0f1_p), _hyp0f1_slope)
_by_parameters = [
    [_by_order(p, 3, i) for i in (0, 1)]
    for p in (hypergeometric_orders.wright_bessel_p, hypergeometric_orders.log_wright_bessel_p)
]
_wright_bessel: Function = relation(
    "wright_bessel", "a, b, x", *_by_parameters[0], lambda a, b, x: _wright_bessel(a, ops.add(a, b), x)
)
_log_wright_bessel: Function = relation("log_wright_bessel", "a, b, x", *_by_parameters[1], _log_wright_slope)
_wrightomega: Function = relation("wrightomega", "z", _omega_slope, is_complex=True)
_OF_WRIGHT = (
    f"{_HOST} Derivatives by ``a`` and ``b`` are of\nthe power series, NaN where it needs more than 2,000 terms."
)
hyp0f1: Binary = declared(
    __name__,
    "hyp0f1",
    "v, z",
    _hyp0f1,
    "The confluent hypergeometric limit function 0F1.",
    ("1.5, 0.5", "1.3683"),
    note=f"{_HOST} Derivatives by ``v`` are of the\npower series and a Bessel function (DLMF 10.16.9), "
    "NaN for ``v`` above 300 and\n``z`` below ``-4 v``.",
)
wright_bessel: Ternary = declared(
    __name__,
    "wright_bessel",
    "a, b, x",
    _wright_bessel,
    "Wright's generalised Bessel function.",
    ("1.0, 1.0, 1.0", "2.2796"),
    note=_OF_WRIGHT,
)
log_wright_bessel: Ternary = declared(
    __name__,
    "log_wright_bessel",
    "a, b, x",
    _log_wright_bessel,
    "The logarithm of :func:`wright_bessel`.",
    ("1.0, 1.0, 1.0", "0.8240"),
    note=_OF_WRIGHT,
)
wrightomega: Unary = _plain(
    "wrightomega",
    "z",
    _wrightomega,
    "Wright's omega function, a solution w of ``w + log(w) = z``.",
    ("1.0", "1.0000"),
    is_complex=True,
)

__all__ = [
    "bei", "beip", "ber", "berp", "hyp0f1", "it2i0k0", "it2j0y0", "it2struve0", "iti0k0", "itj0y0",
    "itmodstruve0", "itstruve0", "kei", "keip", "ker", "kerp", "log_wright_bessel", "mathieu_a", "mathieu_b",
    "mathieu_cem", "mathieu_modcem1", "mathieu_modcem2", "mathieu_modsem1", "mathieu_modsem2", "mathieu_sem",
    "modstruve", "pbdv", "pbvv", "pbwa", "struve", "wright_bessel", "wrightomega",
]  # fmt: skip
