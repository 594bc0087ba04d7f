"""Integrals over regions whose limits depend on other variables, one variable after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag, typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.numpy.promotion import inexact_operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import stop_gradient
from pullback.scipy.integrate.adaptive import edges_of, integral_of, options_of, warn_of

__all__ = ["dblquad", "nquad", "tplquad"]

_OPTIONS = ("epsabs", "epsrel", "limit", "points")


# long: half of it is its documentation
def nquad(
    func: Callable[..., ArrayLike],
    ranges: Sequence[Any],
    args: tuple[Any, ...] | None = None,
    opts: Any = None,
    full_output: bool = False,
) -> tuple[Array, Array]:
    """The integral of a function of several variables, one after the other, each by :func:`quad`.

    The limits of a variable may depend on the variables after it, and may be infinite. The integral can be compiled and
    mapped, and differentiated in both modes with respect to the limits, to ``args``, and to arrays that the functions
    close over. Its cost grows with the power of the number of variables: over a box, :func:`cubature` is faster.

    Args:
      func: ``func(x0, ..., xn, *args) -> y``, real numbers without axes. It is traced.
      ranges: for each variable, in the same order, a pair of limits, or a function
        ``(x[i + 1], ..., xn, *args) -> (low, high)``. The first variable is the innermost.
      args: further arguments of ``func``, of the ranges and of the options.
      opts: options of :func:`quad`, "epsabs", "epsrel", "limit" and "points", in a dictionary for all variables, or a
        list with a dictionary for each; a dictionary may be a function of the arguments of the variable's range.
      full_output: must be False: the number of evaluations of compiled programs is not counted.

    Returns:
      The integral, and an estimate of its absolute error: that of the outermost integral, plus the integral of those
      within.

    Raises:
      ArgumentError: ``ranges`` is empty, a range is not a pair, an unknown option, or lists of two lengths (a TypeError
        and a ValueError).
      DtypeError: a complex integrand (a TypeError).
      ShapeError: limits or integrands that are not numbers (a TypeError and a ValueError).
      UnsupportedArgumentError: ``full_output`` (a NotImplementedError).

    Source: Piessens et al. 1983, *QUADPACK*, for each variable.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad
    >>> from pullback.scipy.integrate import nquad
    >>> area = lambda r: nquad(lambda y, x: 1.0, [lambda x: (0.0, jnp.sqrt(r**2 - x**2)), (0.0, r)])[0]
    >>> print(area(2.0).round(3), grad(area)(2.0).round(3))
    3.142 3.142
    """
    if flag("nquad", "full_output", full_output):
        raise UnsupportedArgumentError("nquad: full_output must be False; evaluations are not counted")
    return _nested("nquad", func, ranges, () if args is None else args, opts)


def dblquad(
    func: Callable[..., ArrayLike],
    a: ArrayLike,
    b: ArrayLike,
    gfun: ArrayLike | Callable[..., ArrayLike],
    hfun: ArrayLike | Callable[..., ArrayLike],
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Array, Array]:
    """The double integral of ``func(y, x)`` for x from ``a`` to ``b`` and y from ``gfun(x)`` to ``hfun(x)``.

    It is differentiated as :func:`nquad` is.

    Args:
      func: ``func(y, x, *args)``, real numbers without axes.
      a, b: the limits of x.
      gfun, hfun: the limits of y, numbers or functions of x.
      args: further arguments of ``func``.
      epsabs, epsrel: bounds of the absolute and the relative error of each integral.

    Returns:
      The integral, and an estimate of its absolute error.

    Raises:
      ArgumentError: bounds of the error that are not numbers from zero (a TypeError and a ValueError).
      DtypeError: a complex integrand (a TypeError).
      ShapeError: limits or integrands that are not numbers (a TypeError and a ValueError).

    >>> from pullback.scipy.integrate import dblquad
    >>> print(dblquad(lambda y, x: x * y, 0.0, 1.0, 0.0, lambda x: x)[0].round(4))
    0.125
    """
    inner = lambda x, *_: (_limit(gfun, x), _limit(hfun, x))
    return _nested("dblquad", func, [inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Callable[..., ArrayLike],
    a: ArrayLike,
    b: ArrayLike,
    gfun: ArrayLike | Callable[..., ArrayLike],
    hfun: ArrayLike | Callable[..., ArrayLike],
    qfun: ArrayLike | Callable[..., ArrayLike],
    rfun: ArrayLike | Callable[..., ArrayLike],
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Array, Array]:
    """The triple integral of ``func(z, y, x)`` over a region between surfaces.

    It is differentiated as :func:`nquad` is.

    Args:
      func: ``func(z, y, x, *args)``, real numbers without axes.
      a, b: the limits of x.
      gfun, hfun: the limits of y, numbers or functions of x.
      qfun, rfun: the limits of z, numbers or functions of x and y.
      args, epsabs, epsrel: as of :func:`dblquad`.

    Returns:
      The integral, and an estimate of its absolute error.

    Raises:
      ArgumentError, DtypeError, ShapeError: as of :func:`dblquad`.

    >>> from pullback.scipy.integrate import tplquad
    >>> print(tplquad(lambda z, y, x: 1.0, 0.0, 1.0, 0.0, lambda x: x, 0.0, lambda x, y: y)[0].round(4))
    0.1667
    """
    inmost = lambda y, x, *_: (_limit(qfun, x, y), _limit(rfun, x, y))
    inner = lambda x, *_: (_limit(gfun, x), _limit(hfun, x))
    return _nested("tplquad", func, [inmost, inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def _limit(limit: Any, *variables: Any) -> Any:
    return limit(*variables) if callable(limit) else limit


def _nested(name: str, func: Any, ranges: Any, args: Any, opts: Any) -> tuple[Any, Any]:
    if not callable(func):
        raise ArgumentError(f"{name}: func must be a function, got {typed(func)}")
    if not isinstance(args, tuple):
        args = (args,)
    if not isinstance(ranges, (list, tuple)) or not ranges:
        raise ArgumentError(f"{name}: ranges must be a list with a range for each variable, got {quote(ranges)}")
    options = list(opts) if isinstance(opts, (list, tuple)) else [{} if opts is None else opts] * len(ranges)
    if len(options) != len(ranges):
        raise ArgumentError(
            f"{name}: opts must have {len(ranges)} dictionaries, one for each range, got {len(options)}"
        )

    def level(i: int, outer: tuple[Any, ...]) -> tuple[Any, Any]:
        """Integrate over the variables up to the one numbered ``i``; return the integral and its error."""
        low, high = _pair(name, ranges[i], (*outer, *args))
        settings = _settings(name, options[i], (*outer, *args))
        points = settings.pop("points", None)
        checked = options_of(name, **{"epsabs": 1.49e-8, "epsrel": 1.49e-8, "limit": 50, **settings})

        def integrand(x: Any) -> Any:
            if i:
                return pnp.stack(level(i - 1, (x, *outer)))
            y = inexact_operand(f"{name}: the integrand", func(x, *outer, *args))
            if y.shape:
                raise ShapeError(f"{name}: the integrand must return a number, got shape {y.shape}")
            if dtypes.is_complex(y.dtype):
                raise DtypeError(f"{name}: the integrand must be real, got {y.dtype}; integrate both parts separately")
            return y

        value, error, _ = integral_of(integrand, edges_of(name, low, high, points), checked)
        number = value[0] if i else value
        if i == len(ranges) - 1:
            warn_of(name, number, error, checked)
        if i:  # the second element is the integral of the inner errors
            error = ops.add(error, ops.convert_element_type(ops.abs(value[1]), error.dtype))
        return number, stop_gradient(ops.convert_element_type(error, number.dtype))

    return level(len(ranges) - 1, ())


def _pair(name: str, given: Any, variables: tuple[Any, ...]) -> tuple[Any, Any]:
    found = given(*variables) if callable(given) else given
    if not isinstance(found, (list, tuple, Array)) or len(found) != 2:
        raise ArgumentError(f"{name}: a range must be a pair of limits, got {quote(found)}")
    return found[0], found[1]


def _settings(name: str, given: Any, variables: tuple[Any, ...]) -> dict[str, Any]:
    found = given(*variables) if callable(given) else given
    if not isinstance(found, Mapping):
        raise ArgumentError(f"{name}: options must be a dictionary, got {quote(found)}")
    unknown = [key for key in found if key not in _OPTIONS]
    if unknown:
        raise ArgumentError(f"{name}: an option must be one of {', '.join(_OPTIONS)}, got {quote(unknown[0])}")
    return dict(found)
