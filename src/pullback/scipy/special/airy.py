"""Airy functions, their integrals and their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import Array, ArrayImpl
from pullback.core.errors import ArgumentError, NotDifferentiableError
from pullback.core.interrupts import imported
from pullback.numpy.promotion import known_int
from pullback.primitives import elementwise as ops
from pullback.scipy.special import airy_formulas as formulas
from pullback.scipy.special.declared import Function, Unaries, declared, now
from pullback.scipy.special.relations import relation, scipys

_SOURCE = (
    "Compiled, real arguments have Taylor polynomials with exact coefficients, and beyond 12 the expansions DLMF 9.7.5"
    "\nto 9.7.12; complex ones are computed on the host."
)


def _times(x: Any, f: Function) -> Any:
    return ops.mul(x, f(x))


ai: Function = relation(
    "airy.ai", "z", lambda z: aip(z), result=0, formula=formulas.airy(False, False), is_complex=True
)
aip: Function = relation(
    "airy.aip", "z", lambda z: _times(z, ai), result=1, formula=formulas.airy(False, True), is_complex=True
)
bi: Function = relation("airy.bi", "z", lambda z: bip(z), result=2, formula=formulas.airy(True, False), is_complex=True)
bip: Function = relation(
    "airy.bip", "z", lambda z: _times(z, bi), result=3, formula=formulas.airy(True, True), is_complex=True
)


def _scaled_slope(f: Function, rest: Function, sign: int) -> Function:
    """Return the slope ``rest(x) + sign sqrt(x) f(x)`` of a function with the factor ``exp(sign 2/3 x**(3/2))``."""

    def slope(x: Any) -> Any:
        if np.dtype(x.dtype).kind == "c":
            raise NotDifferentiableError(
                "airye has no derivative by complex numbers: it is not holomorphic; differentiate airy, and scale it"
            )
        root = ops.sqrt(ops.where(ops.gt(x, 0), x, 0))
        scaled = ops.mul(root, f(x))
        return ops.add(rest(x), ops.mul(scaled, sign))

    return slope


_aie: Function = relation(
    "airye.ai", "z", _scaled_slope(lambda x: _aie(x), lambda x: _aipe(x), 1), result=0,
    formula=formulas.airy(False, False, True), is_complex=True,
)  # fmt: skip
_aipe: Function = relation(
    "airye.aip", "z", _scaled_slope(lambda x: _aipe(x), lambda x: _times(x, _aie), 1), result=1,
    formula=formulas.airy(False, True, True), is_complex=True,
)  # fmt: skip
_bie: Function = relation(
    "airye.bi", "z", _scaled_slope(lambda x: _bie(x), lambda x: _bipe(x), -1), result=2,
    formula=formulas.airy(True, False, True), is_complex=True,
)  # fmt: skip
_bipe: Function = relation(
    "airye.bip", "z", _scaled_slope(lambda x: _bipe(x), lambda x: _times(x, _bie), -1), result=3,
    formula=formulas.airy(True, True, True), is_complex=True,
)  # fmt: skip


def all_of(name: str, *parts: Function, inside: Function | None = None) -> Function:
    """Return a function with several results: a single call of SciPy's if the operands are concrete.

    ``inside`` is that of :func:`scipys`.
    """
    host = scipys(name, inside)

    def compute(*xs: Any) -> tuple[Array, ...]:
        found = now(host, *xs)
        return tuple(part(*xs) for part in parts) if found is None else found

    return compute


airy: Unaries = declared(
    __name__, "airy", "z", all_of("airy", ai, aip, bi, bip),
    "The Airy functions Ai and Bi and their derivatives: solutions of ``w'' = z w``.",
    ("1.0", "0.1353 -0.1591 1.2074 0.9324"),
    note=f"The results are Ai, Ai', Bi and Bi'.\n\n{_SOURCE}", results=4, is_complex=True,
)  # fmt: skip
airye: Unaries = declared(
    __name__, "airye", "z", all_of("airye", _aie, _aipe, _bie, _bipe),
    "The Airy functions and their derivatives, without their exponential growth or fall.",
    ("1.0", "0.2635 -0.3100 0.6199 0.4787"),
    note="Ai and Ai' are multiplied by ``exp(2/3 z sqrt(z))``, so that they are NaN for negative numbers, and Bi and"
    f"\nBi' by ``exp(-abs(real(2/3 z sqrt(z))))``. There are derivatives by real numbers only.\n\n{_SOURCE}",
    results=4, is_complex=True,
)  # fmt: skip

_itairy = [
    relation("itairy.ai", "x", ai, result=0),
    relation("itairy.bi", "x", bi, result=1),
    relation("itairy.ai_left", "x", lambda x: ai(ops.neg(x)), result=2),
    relation("itairy.bi_left", "x", lambda x: bi(ops.neg(x)), result=3),
]
itairy: Unaries = declared(
    __name__, "itairy", "x", all_of("itairy", *_itairy),
    "The integrals of Ai(t), Bi(t), Ai(-t) and Bi(-t) over ``t`` from 0 to ``x``.",
    ("1.0", "0.2363 0.8728 0.4657 0.3730"),
    note="SciPy computes them, also within compiled programs.", results=4,
)  # fmt: skip


def _zeros(name: str, nt: Any) -> tuple[Array, ...]:
    count = known_int(name, "the number of zeros nt", nt)
    if count < 1:
        raise ArgumentError(f"{name}: the number of zeros nt must be positive, got {count}")
    found = getattr(imported("scipy.special"), name)(count)
    return tuple(ops.convert_element_type(ArrayImpl(x), np.dtype(np.float64)) for x in found)


def ai_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """Return the first zeros of Ai and of its derivative.

    Args:
      nt: how many, a positive integer that is known.

    Returns:
      Four arrays of ``nt`` floats: the zeros of Ai, the zeros of Ai', the values of Ai at the latter, and the values of
      Ai' at the former.

    Raises:
      ShapeError: ``nt`` is not an integer (a TypeError and a ValueError).
      ArgumentError: ``nt`` is not positive (a TypeError and a ValueError).

    SciPy computes them.

    >>> from pullback.scipy import special
    >>> print(special.ai_zeros(2)[0].round(4))
    [-2.3381 -4.0879]
    """
    a, b, c, d = _zeros("ai_zeros", nt)
    return a, b, c, d


def bi_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """Return the first negative zeros of Bi and of its derivative.

    Args:
      nt: how many, a positive integer that is known.

    Returns:
      Four arrays of ``nt`` floats: the zeros of Bi, the zeros of Bi', the values of Bi at the latter, and the values of
      Bi' at the former.

    Raises:
      ShapeError: ``nt`` is not an integer (a TypeError and a ValueError).
      ArgumentError: ``nt`` is not positive (a TypeError and a ValueError).

    SciPy computes them.

    >>> from pullback.scipy import special
    >>> print(special.bi_zeros(2)[0].round(4))
    [-1.1737 -3.2711]
    """
    a, b, c, d = _zeros("bi_zeros", nt)
    return a, b, c, d


__all__ = ["ai_zeros", "airy", "airye", "bi_zeros", "itairy"]
