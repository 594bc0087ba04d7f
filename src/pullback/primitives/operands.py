"""Conversion and checks of users' operands before a primitive is bound, and of arrays that are created for users.

Host rules do not check operands, and NumPy would promote dtypes and broadcast ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, from_scalar
from pullback.core.errors import OperandError
from pullback.core.linear import operand_avals
from pullback.core.trace import Primitive, state
from pullback.primitives.elementwise import stop_gradient_p

T = TypeVar("T")


def array_operand(name: str, x: Any) -> Array:
    """Convert an operand to an array; raise for lists, strings and None, with ``name``, the function, in the error."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except OperandError as error:
        raise type(error)(f"lax.{name}: {error}") from None


def made(x: Any) -> Any:
    """Return an array created for the user; while a program is traced, make the array a constant of this program."""
    return x if state.trace.eager or not isinstance(x, ArrayImpl) else state.trace.adopt(x)


def operands(name: str, xs: Sequence[Any]) -> list[Any]:
    """Convert operands to arrays, but keep Python numbers whose default dtype is the dtype of the first array."""
    arrays = [x if type(x) in SCALARS else array_operand(name, x) for x in xs]
    dtype = next((x.dtype for x in arrays if type(x) not in SCALARS), None)
    return [from_scalar(x) if type(x) in SCALARS and not _fits(type(x), dtype) else x for x in arrays]


def _fits(kind: type, dtype: np.dtype[Any] | None) -> bool:
    """Return whether a Python number of type ``kind`` has the default dtype ``dtype``; False if ``dtype`` is None.

    As in JAX, the functions of ``lax`` do not promote dtypes.
    """
    return dtype is not None and dtypes.scalar_dtype(kind) == dtype


def bind(primitive: Primitive, *xs: Any, **params: Any) -> Any:
    """Check the operands of a primitive by its abstract evaluation rule, then apply it in the current trace.

    Raises:
      DtypeError, ShapeError: the operands do not fit the operation.
    """
    if primitive.abstract_eval_rule is not None:
        primitive.abstract_eval_rule(*operand_avals(xs), **params)
    return state.trace.process(primitive, xs, params)


def stop_gradient(x: T) -> T:
    """Return a tree of arrays unchanged, but stop the flow of derivatives through it.

    Args:
      x: a tree of arrays or numbers.

    Returns:
      A tree like ``x``.

    Raises:
      OperandError: a leaf is neither an array nor a number (a TypeError).

    >>> from pullback import grad, lax
    >>> print(grad(lambda x: x * lax.stop_gradient(x))(3.0))
    3.0
    """

    def stop(leaf: Any) -> Any:
        leaf = array_operand("stop_gradient", leaf)
        return stop_gradient_p.bind(leaf) if dtypes.is_inexact(leaf.dtype) else leaf

    return stop(x) if isinstance(x, Array) else tree.tree_map(stop, x)
