"""Exact values by mpmath, kept on disk, for they take long.

A value is kept as a mantissa of two doubles and an exponent, so that neither range nor precision of a dtype limits it.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
from mpmath import mp

DIGITS = ((50, 80), (160, 240), (500, 700), (1500, 2000))
"""Each value is computed with two numbers of digits, and with more until the two agree to 10**-25."""


VERSION = 2
"""Of this file: another one makes what is kept void."""
SECONDS = 4.0
"""How long a value may take; a point whose value takes longer is left out."""


class _Slow(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _Slow


class Exact(NamedTuple):
    """``(high + low) * 2**exponent``, where ``high`` is from 1/2 to 1 in size; NaN where there is no finite value.

    Complex values have complex mantissas.
    """

    high: np.ndarray
    low: np.ndarray
    exponent: np.ndarray


def exact(name: str, function: Callable[..., Any], operands: list[np.ndarray]) -> Exact:
    """The values of a function at points, from the cache if they are there."""
    path = cache_directory() / f"{_digest(name, function, operands)}.npz"
    if path.exists():
        with np.load(path) as kept:
            return Exact(kept["high"], kept["low"], kept["exponent"])
    signal.signal(signal.SIGALRM, _stop)
    rows = [_split(_settled(function, point)) for point in zip(*(x.tolist() for x in operands), strict=True)]
    high, low, exponent = (np.array(column) for column in zip(*rows, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(partial, high=high, low=low, exponent=exponent)
    partial.replace(path)
    return Exact(high, low, exponent)


def cache_directory() -> Path:
    """Where is kept what takes long, outside the repository."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("PULLBACK_ACCURACY_CACHE") or Path(home) / "pullback-accuracy")


def _digest(name: str, function: Callable[..., Any], operands: list[np.ndarray]) -> str:
    digest = hashlib.sha256(repr((VERSION, name, DIGITS, _code(function))).encode())
    for x in operands:
        digest.update(repr(x.dtype).encode() + x.tobytes())
    return f"{name.replace(' ', '_')}-{digest.hexdigest()[:24]}"


def _code(function: Any, callers: tuple[Any, ...] = ()) -> Any:
    """What a function does, as far as it is its own code and that of the functions of its module that it calls.

    Functions may call each other: one that is among the ``callers`` is named.
    """
    code = getattr(function, "__code__", None)
    if code is None or function in callers:
        return getattr(function, "__name__", repr(type(function)))
    callers = (*callers, function)
    inner = [_code(cell.cell_contents, callers) for cell in function.__closure__ or () if callable(cell.cell_contents)]
    plain = [repr(c.cell_contents) for c in function.__closure__ or () if not callable(c.cell_contents)]
    module = function.__module__
    called = [function.__globals__.get(n) for n in code.co_names]
    called = [_code(f, callers) for f in called if getattr(f, "__module__", None) == module and f is not function]
    constants = [c.co_code if hasattr(c, "co_code") else c for c in code.co_consts]
    return code.co_code, repr(constants), code.co_names, inner, plain, called


def _settled(function: Callable[..., Any], point: tuple[float, ...]) -> Any:
    """The value, with as many digits as it takes; None where there is none."""
    for few, many in DIGITS:
        try:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            first, second = (_evaluated(function, point, digits) for digits in (few, many))
        except (ValueError, ZeroDivisionError, OverflowError, ArithmeticError, mp.NoConvergence, RecursionError, _Slow):
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if second and abs(first - second) <= abs(second) * mp.mpf(10) ** -25:
            return second
    return second if first == second else None  # a zero counts if it is one with the most digits


def _evaluated(function: Callable[..., Any], point: tuple[float, ...], digits: int) -> Any:
    with mp.workdps(digits):
        value = mp.mpmathify(function(*map(_number, point)))
        if isinstance(point[0], complex):
            return value if not 0 < abs(value) < mp.ldexp(1, -_CLOSE // 3) else mp.ldexp(1, -_CLOSE)
        if isinstance(value, mpmath.mpc):
            if value.imag:
                raise ValueError("a complex value")
            value = value.real
        return value


_CLOSE = 10000
"""Of complex numbers a zero stands for a number so close to it, on the side of its sign: the exponent of 2."""


def _number(x: complex) -> Any:
    """The number in mpmath's kind, which has no signed zeros.

    What stands for a zero depends on the precision, so that no value at a singularity is settled.
    """
    if not isinstance(x, complex):
        return mp.mpf(x)
    close = mp.ldexp(1, -_CLOSE - mp.prec)
    return mp.mpc(*(mp.mpf(v) if v else math.copysign(1, v) * c for v, c in ((x.real, close), (x.imag, close**2))))


def _split(value: Any) -> tuple[complex, complex, int]:
    if value is None or not mp.isfinite(value):
        return np.nan, np.nan, 0
    with mp.workdps(80):
        kind = complex if isinstance(value, mpmath.mpc) else float
        exponent = mp.frexp(abs(value))[1]
        mantissa = mp.ldexp(1, -exponent) * value
        high = kind(mantissa)
        return high, kind(mantissa - high), int(np.clip(exponent, -(10**6), 10**6))
