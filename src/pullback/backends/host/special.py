"""Special functions of many numbers in single precision, by loops of the module in C.

NumPy's and SciPy's functions, which the rules call for fewer numbers, for other dtypes and where there is no module,
take two to a hundred times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backends.host import native, own, rules
from pullback.backends.host.parallel import cores

_single = np.dtype(np.float32)
LOOPED = frozenset(() if native.loops is None else (_single,))
"""The dtypes of which rules made by :func:`by_loop` compute many elements by a loop."""


def has_loop(x: Any, **params: Any) -> bool:
    """Whether rules made by :func:`by_loop` compute an operand by a loop, if it has enough elements."""
    return native.loops is not None and x.dtype == _single


def has_loop_of_two(x: Any, y: Any) -> bool:
    """The same for the rules of two operands, one of which may be a number."""
    return has_loop(x if hasattr(x, "dtype") else y)


def by_loop(rule: Callable[..., Any], name: str | Callable[..., str], many: float = math.inf) -> Callable[..., Any]:
    """Extend a host rule of one operand: a loop in C computes many numbers in single precision.

    Args:
      rule: the host rule for few numbers, and for other dtypes.
      name: the name of the loop without the dtype; or a function of the rule's parameters that returns it.
      many: the least numbers that the loop computes, if they are fewer than ``own.MANY``.
    """

    def loop_of(**params: Any) -> str:
        return name if isinstance(name, str) else name(**params)

    def of_many(x: Any, **params: Any) -> Any:
        return native.applied(loop_of(**params), x) if has_loop(x) else rule(x, **params)

    def translate(program: native.Program, dtype: np.dtype[Any], x: Any, **params: Any) -> native.Position:
        if dtype != _single:
            return native.translate(program, rule, params, dtype, [x])
        return native.by_own(loop_of(**params))(program, dtype, x)

    native.TRANSLATIONS[of_many] = translate
    native.QUICK_IN_SINGLE.add(of_many)
    if native.loops is None:
        return rule
    either = native.loops.BySize(rule, of_many, int(min(many, own.MANY)))
    BY_SIZE.append(either)
    return either


BY_SIZE: list[Any] = []
"""The functions made by :func:`by_loop`."""


def elementary(ufunc: np.ufunc, rule: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return the host rule of a function of NumPy's: many numbers are computed by a loop where NumPy's is slow.

    Args:
      ufunc: the function.
      rule: the host rule for other numbers, by default the function itself.
    """
    if ufunc not in own.REPLACED:
        return rule or ufunc
    if ufunc.nin == 2:
        return _of_two(ufunc)
    has_vectors = ufunc in (np.exp, np.log)  # of 256 bits: fewer numbers take less time than the call of the loop
    return by_loop(rule or ufunc, ufunc.__name__, math.inf if has_vectors else 512)


def _of_two(ufunc: np.ufunc) -> Callable[..., Any]:
    of_many = own.of_many(ufunc)

    def either(x: Any, y: Any) -> Any:
        return (of_many if rules.size_of_both(x, y) >= own.MANY_PAIRS else ufunc)(x, y)

    def translate(program: native.Program, dtype: np.dtype[Any], x: Any, y: Any) -> native.Position:
        return native.translate(program, ufunc, {}, dtype, [x, y])

    either.of_many = of_many  # type: ignore[attr-defined]
    native.TRANSLATIONS[of_many] = translate
    native.QUICK_IN_SINGLE.add(of_many)
    return either


exp, expm1, log1p = elementary(np.exp), elementary(np.expm1), elementary(np.log1p)
erf = by_loop(rules.special("erf"), "erf")
erfc = by_loop(rules.erfc, "erfc")
ndtr = by_loop(rules.ndtr, "ndtr")
gelu = by_loop(rules.gelu, "gelu")
gaussian = by_loop(rules.gaussian, lambda factor: "gaussian" if factor == 1 else "half_gaussian")
lgamma = by_loop(rules.lgamma, "lgamma")
digamma = by_loop(rules.digamma, "digamma")
_zeta = rules.special("zeta")
trigamma = by_loop(lambda x: _zeta(2.0, x), "trigamma", many=32)  # 1,000 numbers take SciPy 200 us, and the loop 15
logistic = by_loop(rules.logistic, "logistic")
logistic_slope = by_loop(rules.logistic_slope, "logistic_slope")

i0e, i1e = (by_loop(rules.special(name), name, many=128) for name in ("i0e", "i1e"))
ndtri = by_loop(rules.special("ndtri"), "ndtri", many=512)


def _by_loop_of_two(name: str, many: int) -> Callable[..., Any]:
    """Make the host rule of a function of SciPy's of two operands, many of which a loop in C computes.

    The loop returns NaN for the numbers that it leaves to SciPy's function.

    Args:
      name: that of the loop without the dtype, and of the function.
      many: the least numbers that the loop computes.
    """
    rule = rules.special(name)

    def of_two(x: Any, y: Any) -> Any:
        largest = x if np.ndim(x) > np.ndim(y) else y
        if native.loops is None or getattr(largest, "size", 0) < many or largest.dtype != _single:
            return rule(x, y)
        x, y = (np.asarray(v, _single, order="C") for v in (x, y))
        out = own.apply(f"{name} f", _single, x, y, helpers=min(cores() - 1, largest.size // _SHARE))
        if out is None:
            return rule(x, y)
        left = np.isnan(out)
        if left.any():
            out[left] = rule(*(v[left] if v.ndim else np.full(np.count_nonzero(left), v) for v in (x, y)))
        return out

    return of_two


gammainc = _by_loop_of_two("gammainc", 512)
zeta = _by_loop_of_two("zeta", 128)

_SHARE = 1 << 12  # The numbers that are worth a thread.
