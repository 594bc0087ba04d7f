"""Orthogonal polynomials by the recurrences in their degree, with derivatives of any order.

Derivatives by the variable are polynomials of a degree less (DLMF 18.9.15 to 18.9.26); those by a parameter are taken
in forward mode of the recurrence. A polynomial of negative degree is zero here, as these rules need.

Degrees that are not integers, or negative, have hypergeometric functions, which SciPy computes on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.control import loops
from pullback.core.errors import NotDifferentiableError
from pullback.core.interrupts import imported
from pullback.core.trace import Primitive
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.formulas import formula, lifted, where
from pullback.scipy.special.differentiated import by_forward_mode
from pullback.scipy.special.relations import relation

Function = Callable[..., Any]
_while_loop, _reduce_max = lifted(loops.while_loop), lifted(reductions.reduce_max)


def _by_recurrence(n: Any, first: Any, step: Callable[[Any, Any, Any], Any]) -> Any:
    """Return the polynomial of degree n, where ``step(k, value, before)`` is that of degree k + 1, for k from 1 on.

    Args:
      n: the degrees, an array of integers in double precision.
      first: the polynomial of degree 1.
      step: takes k, and the polynomials of degrees k and k - 1.
    """
    top = _reduce_max(n, tuple(range(len(n.shape))))
    one = first * 0 + 1

    @formula
    def body(k: Any, value: Any, before: Any) -> Any:
        further = k < n
        return k + 1, where(further, step(k, value, before), value), where(further, value, before)

    start = lifted(shapes.full)((), 1.0, n.dtype), first, one
    _, value, _ = _while_loop(formula(lambda carry: carry[0] < top), formula(lambda carry: body(*carry)), start)
    return where(n < 0, 0, where(n == 0, one, value))


@formula
def _gegenbauer(n: Any, alpha: Any, x: Any) -> Any:
    def step(k: Any, value: Any, before: Any) -> Any:
        return (2 * (alpha + k) * x * value - (2 * alpha + (k - 1)) * before) / (k + 1)

    return _by_recurrence(n, 2 * alpha * x, step)


@formula
def _jacobi(n: Any, alpha: Any, beta: Any, x: Any) -> Any:
    both = alpha + beta
    difference = (alpha - beta) * both

    def step(k: Any, value: Any, before: Any) -> Any:
        twice = 2 * k + both
        slope = (twice + 1) * (x + difference / (twice * (twice + 2)))
        last = 2 * (k + alpha) * (k + beta) / twice
        return (slope * value - last * before) * (twice + 2) / (2 * (k + 1) * (k + 1 + both))

    first = (alpha + 1) + (both + 2) * (x - 1) * 0.5
    return _by_recurrence(n, first, step)


@formula
def _genlaguerre(n: Any, alpha: Any, x: Any) -> Any:
    def step(k: Any, value: Any, before: Any) -> Any:
        return ((2 * k + 1 + alpha - x) * value - (k + alpha) * before) / (k + 1)

    return _by_recurrence(n, 1 + alpha - x, step)


@formula
def _legendre(n: Any, x: Any) -> Any:
    return _by_recurrence(n, x, lambda k, value, before: ((2 * k + 1) * x * value - k * before) / (k + 1))


@formula
def _chebyt(n: Any, x: Any) -> Any:
    return _by_recurrence(n, x, lambda k, value, before: 2 * x * value - before)


@formula
def _chebyu(n: Any, x: Any) -> Any:
    return _by_recurrence(n, 2 * x, lambda k, value, before: 2 * x * value - before)


@formula
def _hermitenorm(n: Any, x: Any) -> Any:
    return _by_recurrence(n, x, lambda k, value, before: x * value - k * before)


@formula
def _hermite(n: Any, x: Any) -> Any:
    return _by_recurrence(n, 2 * x, lambda k, value, before: 2 * (x * value - k * before))


@formula
def _laguerre(n: Any, x: Any) -> Any:
    return _by_recurrence(n, 1 - x, lambda k, value, before: ((2 * k + 1 - x) * value - k * before) / (k + 1))


def _host(name: str) -> Function:
    """Return SciPy's function of integer degrees, which is zero for negative ones."""

    def call(n: Any, *xs: Any) -> Any:
        degrees = np.asarray(n).astype(np.int64)
        value = getattr(imported("scipy.special"), name)(np.maximum(degrees, 0), *xs)
        return value if degrees.size == 0 or degrees.min() >= 0 else np.where(degrees < 0, 0, value)

    return call


# Degrees that are integers -------------------------------------------------------------------------------------------


def _no_slope(name: str) -> Function:
    def refuse(*args: Any, **params: Any) -> Any:
        raise NotDifferentiableError(f"{name} has no derivative by its degree n; pass n as integers")

    return refuse


def _less(n: Any) -> Any:
    return ops.sub(n, 1)


def _with_parameters(name: str, arity: int, of: Function, slope: Function) -> tuple[Primitive, Function]:
    """Declare a polynomial of integer degree with parameters, whose derivative by x is ``slope(*operands, orders)``."""

    def by_x(t: Any, *operands: Any, orders: tuple[int, ...]) -> Any:
        return ops.mul(t, slope(*operands, orders=orders))

    slopes = (_no_slope(name), *[None] * (arity - 2), by_x)
    p = by_forward_mode(name, of, arity=arity, host=_host(name), slopes=slopes)
    return p, lambda *xs: p.bind(*xs, orders=(0,) * arity)


def _gegenbauer_by_x(n: Any, alpha: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    """Return 2 alpha times the polynomial of degree n - 1 and parameter alpha + 1, differentiated by alpha."""
    lower = _less(n), ops.add(alpha, 1), x
    twice = ops.mul(alpha, 2)
    total = ops.mul(twice, gegenbauer_p.bind(*lower, orders=orders))
    if orders[1]:
        less = gegenbauer_p.bind(*lower, orders=(0, orders[1] - 1, 0))
        total = ops.add(total, ops.mul(less, 2 * orders[1]))
    return total


def _jacobi_by_x(n: Any, alpha: Any, beta: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    """Return (n + alpha + beta + 1) / 2 times the polynomial of degree n - 1 and parameters larger by 1."""
    lower = _less(n), ops.add(alpha, 1), ops.add(beta, 1), x
    both = ops.add(alpha, beta)
    twice = ops.add(ops.add(n, both), 1)
    factor = ops.mul(twice, 0.5)
    total = ops.mul(factor, jacobi_p.bind(*lower, orders=orders))
    for i in (1, 2):
        if orders[i]:
            fewer = tuple(order - (k == i) for k, order in enumerate(orders))
            total = ops.add(total, ops.mul(jacobi_p.bind(*lower, orders=fewer), 0.5 * orders[i]))
    return total


def _genlaguerre_by_x(n: Any, alpha: Any, x: Any, *, orders: tuple[int, ...]) -> Any:
    """Return minus the polynomial of degree n - 1 and parameter alpha + 1."""
    return ops.neg(genlaguerre_p.bind(_less(n), ops.add(alpha, 1), x, orders=orders))


gegenbauer_p, gegenbauer = _with_parameters("eval_gegenbauer", 3, _gegenbauer, _gegenbauer_by_x)
jacobi_p, jacobi = _with_parameters("eval_jacobi", 4, _jacobi, _jacobi_by_x)
genlaguerre_p, genlaguerre = _with_parameters("eval_genlaguerre", 3, _genlaguerre, _genlaguerre_by_x)


def _constant(x: Any, value: float) -> Any:
    return shapes.full((), value, x.dtype)


legendre = relation(
    "eval_legendre", "n, x", None, lambda n, x: gegenbauer(_less(n), _constant(x, 1.5), x), formula=_legendre,
    host=_host("eval_legendre"),
)  # fmt: skip
chebyu = relation(
    "eval_chebyu", "n, x", None, lambda n, x: ops.mul(gegenbauer(_less(n), _constant(x, 2.0), x), 2), formula=_chebyu,
    host=_host("eval_chebyu"),
)  # fmt: skip
chebyt = relation(
    "eval_chebyt", "n, x", None, lambda n, x: ops.mul(chebyu(_less(n), x), n), formula=_chebyt,
    host=_host("eval_chebyt"),
)  # fmt: skip
laguerre = relation(
    "eval_laguerre", "n, x", None, lambda n, x: ops.neg(genlaguerre(_less(n), _constant(x, 1.0), x)),
    formula=_laguerre, host=_host("eval_laguerre"),
)  # fmt: skip
hermite: Function = relation(
    "eval_hermite", "n, x", None, lambda n, x: ops.mul(hermite(_less(n), x), ops.mul(n, 2)), formula=_hermite,
    host=_host("eval_hermite"),
)  # fmt: skip
hermitenorm: Function = relation(
    "eval_hermitenorm", "n, x", None, lambda n, x: ops.mul(hermitenorm(_less(n), x), n), formula=_hermitenorm,
    host=_host("eval_hermitenorm"),
)  # fmt: skip

# Other degrees -------------------------------------------------------------------------------------------------------


def _of_any(name: str) -> str:
    return f"{name}.of_any_degree"


def _scipys(name: str) -> Function:
    return lambda *xs: getattr(imported("scipy.special"), name)(*xs)


def _jacobi_slope(n: Any, alpha: Any, beta: Any, x: Any) -> Any:
    both = ops.add(alpha, beta)
    twice = ops.add(ops.add(n, both), 1)
    factor = ops.mul(twice, 0.5)
    return ops.mul(factor, any_jacobi(_less(n), ops.add(alpha, 1), ops.add(beta, 1), x))


def _gegenbauer_slope(n: Any, alpha: Any, x: Any) -> Any:
    return ops.mul(ops.mul(alpha, 2), any_gegenbauer(_less(n), ops.add(alpha, 1), x))


any_jacobi: Function = relation(
    _of_any("eval_jacobi"), "n, alpha, beta, x", None, None, None, _jacobi_slope, host=_scipys("eval_jacobi")
)
any_gegenbauer: Function = relation(
    _of_any("eval_gegenbauer"), "n, alpha, x", None, None, _gegenbauer_slope, host=_scipys("eval_gegenbauer")
)
any_genlaguerre: Function = relation(
    _of_any("eval_genlaguerre"), "n, alpha, x", None, None,
    lambda n, alpha, x: ops.neg(any_genlaguerre(_less(n), ops.add(alpha, 1), x)), host=_scipys("eval_genlaguerre"),
)  # fmt: skip
any_legendre = relation(
    _of_any("eval_legendre"), "n, x", None, lambda n, x: any_gegenbauer(_less(n), _constant(x, 1.5), x),
    host=_scipys("eval_legendre"),
)  # fmt: skip
any_chebyu = relation(
    _of_any("eval_chebyu"), "n, x", None, lambda n, x: ops.mul(any_gegenbauer(_less(n), _constant(x, 2.0), x), 2),
    host=_scipys("eval_chebyu"),
)  # fmt: skip
any_chebyt = relation(
    _of_any("eval_chebyt"), "n, x", None, lambda n, x: ops.mul(any_chebyu(_less(n), x), n), host=_scipys("eval_chebyt")
)
any_laguerre = relation(
    _of_any("eval_laguerre"), "n, x", None, lambda n, x: ops.neg(any_genlaguerre(_less(n), _constant(x, 1.0), x)),
    host=_scipys("eval_laguerre"),
)  # fmt: skip
