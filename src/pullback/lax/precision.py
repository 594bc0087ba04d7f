"""The precision of products of arrays: ``Precision``, and algorithms that round the operands first.

An algorithm is composed of other operations, so that it is the same eager and compiled, on every device: XLA has few of
them on CPUs, and not for all shapes.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.config import PRECISIONS
from pullback.core.errors import ArgumentError, DtypeError
from pullback.primitives import bits
from pullback.primitives import elementwise as ops


class _Named(enum.Enum):
    """An enumeration whose members print as their names."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class Precision(_Named):
    """The precision of products on GPUs and TPUs; CPUs compute in full precision.

    By default GPUs round operands in single precision to TF32, whose fraction has 10 bits; ``HIGHEST`` does not.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.Precision.HIGHEST))
    3.0
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


@dataclass(frozen=True)
class DotAlgorithm:
    """An algorithm for products of arrays: the dtypes to which operands are rounded, and in which products are summed.

    Attributes:
      lhs_precision_type, rhs_precision_type: the dtypes that the operands are rounded to.
      accumulation_type: the dtype in which products are summed.
      lhs_component_count, rhs_component_count: the number of components of that dtype into which an operand is split;
        each rounds the remainder of those before.
      num_primitive_operations: the number of products of components that are summed, the largest ones.
      allow_imprecise_accumulation: without effect.

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> algorithm = lax.DotAlgorithm(np.float16, np.float16, np.float32)
    >>> print(lax.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]), precision=algorithm))
    11.0
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(_Named):
    """Algorithms by name: the dtypes to which operands are rounded, and in which products are summed.

    With the suffix ``X3``, ``X6`` or ``X9`` an operand is the sum of two or three rounded numbers, and 3, 6 or 9 of
    their products are summed. ``TF32`` has 10 bits of mantissa. ``ANY_F8`` takes operands of 8-bit floats.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> x = jnp.array([1.0, 0.001])
    >>> print(lax.dot(x, x, precision=lax.DotAlgorithmPreset.BF16_BF16_F32))
    1.000001
    """

    DEFAULT = 0
    ANY_F8_ANY_F8_F32 = 1
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 2
    ANY_F8_ANY_F8_ANY = 3
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 4
    F16_F16_F16 = 5
    F16_F16_F32 = 6
    BF16_BF16_BF16 = 7
    BF16_BF16_F32 = 8
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 15
    TF32_TF32_F32 = 12
    TF32_TF32_F32_X3 = 13
    F32_F32_F32 = 9
    F64_F64_F64 = 14


_ROUNDED = {"F16": "float16", "BF16": "bfloat16", "TF32": "tf32", "F32": "float32", "F64": "float64", "ANY": "any"}
_PRODUCTS = {"X3": (2, 3), "X6": (3, 6), "X9": (3, 9)}

Algorithm = DotAlgorithm | None
"""An algorithm, or None for full precision."""


def algorithm_of(name: str, precision: Any) -> Algorithm:
    """The algorithm that an argument ``precision`` specifies; None for a plain precision.

    Raises:
      ArgumentError: it is not a precision (a TypeError and a ValueError).
    """
    if precision is None or isinstance(precision, (Precision, DotAlgorithm)):
        return precision if isinstance(precision, DotAlgorithm) else None
    if isinstance(precision, DotAlgorithmPreset):
        return _of_preset(precision)
    if isinstance(precision, str):
        if precision.lower() in PRECISIONS or precision.lower() == "fastest":
            return None
        if precision in DotAlgorithmPreset.__members__:
            return _of_preset(DotAlgorithmPreset[precision])
    elif isinstance(precision, (tuple, list)) and len(precision) == 2 and all(map(_is_plain, precision)):
        return None
    raise ArgumentError(
        f"lax.{name}: precision must be None, a Precision or the name of one ({', '.join(PRECISIONS)}), a pair of "
        f"these, a DotAlgorithm, a DotAlgorithmPreset or the name of one; got {precision!r}"
    )


def _is_plain(precision: Any) -> bool:
    """Return whether ``precision`` is None or a member of ``Precision`` or its name, instead of an algorithm."""
    named = isinstance(precision, str) and precision.lower() in PRECISIONS
    return named or precision is None or isinstance(precision, Precision)


def _of_preset(preset: DotAlgorithmPreset) -> Algorithm:
    if preset is DotAlgorithmPreset.DEFAULT:
        return None
    fields = preset.name.replace("ANY_F8", "ANY").split("_")
    components, products = _PRODUCTS.get(fields[-1], (1, 1))
    left, right, total = (_ROUNDED[field] for field in fields[:3])
    return DotAlgorithm(left, right, total, components, components, products)


def apply(name: str, algorithm: DotAlgorithm, contract: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Contract two arrays by an algorithm; the result has its dtype of accumulation."""
    if algorithm.accumulation_type == "any":
        total = np.dtype(np.float32)
    else:
        total = np.dtype(_parsed(algorithm.accumulation_type))
    xs = _components(name, x, algorithm.lhs_precision_type, algorithm.lhs_component_count)
    ys = _components(name, y, algorithm.rhs_precision_type, algorithm.rhs_component_count)
    pairs = sorted(itertools.product(range(len(xs)), range(len(ys))), key=lambda pair: (sum(pair), pair))
    selected = pairs[: algorithm.num_primitive_operations]
    out: Any = None
    for i, j in reversed(selected):  # the smallest first
        term = contract(ops.convert_element_type(xs[i], total), ops.convert_element_type(ys[j], total))
        out = term if out is None else ops.add(out, term)
    return out


def _components(name: str, x: Any, kind: Any, count: int) -> list[Any]:
    """Split ``x`` into ``count`` arrays of the dtype ``kind``, whose sum is nearly ``x``; the first is the largest.

    With "any" for ``kind``, return ``x`` alone, which must have a dtype of 8-bit floats. ``name`` is the name of the
    algorithm, for errors.
    """
    if kind == "any":
        if not (dtypes.is_float(x.dtype) and x.dtype.itemsize == 1):
            raise DtypeError(f"lax.{name}: this precision takes 8-bit floats, got {dtypes.short_name(x.dtype)}")
        return [x]
    if not dtypes.is_float(x.dtype):
        raise DtypeError(f"lax.{name}: a DotAlgorithm takes floats, got {dtypes.short_name(x.dtype)}")
    out = []
    for i in range(count):
        if kind == "tf32":
            component = bits.reduce_precision(ops.convert_element_type(x, np.dtype(np.float32)), 8, 10)
        else:
            component = ops.convert_element_type(x, np.dtype(_parsed(kind)))
        out.append(component)
        if i + 1 < count:
            x = ops.sub(x, ops.convert_element_type(component, x.dtype))
    return out


def _parsed(kind: Any) -> Any:
    """Convert ``kind`` to a dtype, without narrowing float64 when 64-bit types are disabled."""
    return np.dtype(np.float64) if kind in ("float64", np.float64) else dtypes.canonicalize_dtype(kind)
