"""Operands of every kind beside each other, and the elementwise functions that are called with them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

NAMES = [
    "True",
    "3",
    "0.5",
    "1j",
    "weak_int",
    "weak_float",
    "weak_complex",
    "np.bool",
    "np.int8",
    "np.int32",
    "np.float16",
    "np.float32",
    "bool",
    "uint8",
    "int8",
    "int32",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
]


def operands(m: Any) -> dict[str, Any]:
    """One of each kind; ``m`` is ``pullback.numpy``, or JAX's, which gave the recorded types."""
    made: dict[str, Any] = {
        "True": True, "3": 3, "0.5": 0.5, "1j": 1j,
        "weak_int": m.asarray(3), "weak_float": m.asarray(0.5), "weak_complex": m.asarray(1j),
        "np.bool": np.bool_(True), "np.int8": np.int8(3), "np.int32": np.int32(3),
        "np.float16": np.float16(0.5), "np.float32": np.float32(0.5),
        "bool": m.asarray([True, False, True]),
    }  # fmt: skip
    for dtype in NAMES[len(made) :]:
        made[dtype] = m.asarray([1, 2, 3], dtype=getattr(m, dtype))
    return made


def functions(m: Any) -> dict[str, Callable[[Any, Any], Any]]:
    """The functions of two elements and the operators, by name."""
    named = [
        "add",
        "subtract",
        "multiply",
        "true_divide",
        "floor_divide",
        "remainder",
        "fmod",
        "divmod",
        "power",
        "float_power",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "left_shift",
        "right_shift",
        "hypot",
        "arctan2",
        "logaddexp",
        "logaddexp2",
        "copysign",
        "heaviside",
        "nextafter",
        "ldexp",
        "gcd",
        "lcm",
        "isclose",
    ]
    symbols = [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
    ]
    found = {name: getattr(m, name) for name in named}
    found |= {f"operator.{name}": getattr(operator, name) for name in symbols}
    found["divmod()"] = divmod
    found["where"] = lambda x, y: m.where(m.asarray([True, False, True]), x, y)
    found["clip"] = lambda x, y: m.clip(x, y)
    found["clip to 1 and y"] = lambda x, y: m.clip(x, 1, y)
    return found


def code(x: Any) -> str:
    """The dtype of a result, with a star if it is weak: booleans are neither."""
    if isinstance(x, (tuple, list)):
        return "+".join(map(code, x))
    return np.dtype(x.dtype).name + ("*" if x.weak_type and x.dtype != np.bool_ else "")


def pairs(name: str) -> list[tuple[str, str]]:
    """The kinds of operands of a function; an operator needs an array, or it is Python's or NumPy's."""
    arrays = {n for n in NAMES if n.startswith("weak") or n[0] in "buifc"}
    every = [(a, b) for a in NAMES for b in NAMES]
    return [p for p in every if arrays & set(p)] if name.startswith("operator.") or name.endswith("()") else every
