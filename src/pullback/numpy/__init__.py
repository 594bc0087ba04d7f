"""NumPy's functions on Pullback's arrays, with NumPy's signatures; all of them can be transformed.

A module of functions is imported when one of its names is first used, so that a program starts as quickly as it can.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pullback.numpy.operators  # noqa: F401

_NAMES = {
    "einstein": (
        "einsum einsum_path "
    ),
    "logic": (
        "allclose array_equal array_equiv bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
        "bitwise_or bitwise_right_shift bitwise_xor clip equal fmax fmin gcd greater greater_equal invert isclose "
        "iscomplex iscomplexobj isfinite isinf isnan isneginf isposinf isreal isrealobj lcm left_shift less "
        "less_equal logical_and logical_not logical_or logical_xor nan_to_num not_equal right_shift select where "
    ),
    "ufuncs": (
        "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh around asin asinh "
        "atan atan2 atanh cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod exp exp2 expm1 "
        "fabs fix float_power floor floor_divide fmod frexp heaviside hypot imag ldexp log log10 log1p log2 logaddexp "
        "logaddexp2 maximum minimum mod modf multiply negative nextafter positive pow power rad2deg radians real "
        "reciprocal remainder rint round sign signbit sin sinc sinh sqrt square subtract tan tanh true_divide trunc "
    ),
}

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
_SUBMODULES = frozenset(("linalg",))
__all__ = sorted([*_MODULE_OF, *_SUBMODULES])

if importlib.util.find_spec("pullback.numpy.methods"):  # temporary, until it lands
    import pullback.numpy.methods  # noqa: F401


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is not None:
        value = getattr(importlib.import_module(f"pullback.numpy.{module}"), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"pullback.numpy.{name}")
    else:
        raise AttributeError(f"module 'pullback.numpy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
