"""Products of arrays: ``pullback.lax`` in front of the primitives."""

from __future__ import annotations

import enum
from typing import Any

from pullback.core import dtypes
from pullback.core.errors import ShapeError
from pullback.lax.arguments import ints
from pullback.primitives import contraction
from pullback.primitives import elementwise as ops
from pullback.primitives.operands import array_operand, bind


class Precision(enum.Enum):
    """How exactly products are computed: accepted for compatibility, for here they are computed in full precision."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The sum of products over some axes, for each index of others.

    Args:
      lhs, rhs: arrays; of different dtypes they are converted to their common one.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``.
      precision: accepted for compatibility.
      preferred_element_type: the dtype to sum in and to return; that of the operands by default.

    Returns:
      An array with the batch axes, then the other axes of ``lhs``, then those of ``rhs``.

    Raises:
      DtypeError, ShapeError: operands that do not fit each other or the axes.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.dot_general(pnp.ones((2, 3, 4)), pnp.ones((2, 4, 5)), (((2,), (1,)), ((0,), (0,)))).shape
    (2, 3, 5)
    """
    x, y = array_operand("dot_general", lhs), array_operand("dot_general", rhs)
    (xc, yc), (xb, yb) = dimension_numbers
    numbers = ((ints(xc), ints(yc)), (ints(xb), ints(yb)))
    if preferred_element_type is None:
        if x.dtype != y.dtype:
            wide = dtypes.promote_types(x.dtype, y.dtype)
            x, y = ops.convert_element_type(x, wide, x.weak_type), ops.convert_element_type(y, wide, y.weak_type)
        return bind(contraction.dot_general_p, x, y, dimension_numbers=numbers)
    dtype = dtypes.canonicalize_dtype(preferred_element_type)
    wide = dtypes.promote_types(dtypes.promote_types(x.dtype, y.dtype), dtype)
    x, y = ops.convert_element_type(x, wide), ops.convert_element_type(y, wide)
    return ops.convert_element_type(bind(contraction.dot_general_p, x, y, dimension_numbers=numbers), dtype)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of two vectors, of two matrices, or of a matrix and a vector; or what the dimension numbers say.

    Args:
      lhs, rhs: arrays; of different dtypes they are converted to their common one.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``; None for the usual
        product.
      precision: accepted for compatibility.
      preferred_element_type: the dtype to sum in and to return; that of the operands by default.

    Raises:
      DtypeError, ShapeError: operands that do not fit each other.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> print(lax.dot(pnp.array([1.0, 2.0]), pnp.array([3.0, 4.0])))
    11.0
    """
    x, y = array_operand("dot", lhs), array_operand("dot", rhs)
    if dimension_numbers is None:
        if len(x.shape) not in (1, 2) or len(y.shape) not in (1, 2) or x.shape[-1] != y.shape[0]:
            raise ShapeError(
                "lax.dot: without dimension_numbers the operands must be matrices or vectors that fit, got shapes "
                f"{x.shape} and {y.shape}"
            )
        dimension_numbers = (((len(x.shape) - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """The products of matrices in the last two axes, for each index of the others, which are equal.

    Args:
      lhs, rhs: arrays of shapes ``(..., n, k)`` and ``(..., k, m)``.
      precision: accepted for compatibility.

    Raises:
      DtypeError, ShapeError: operands that do not fit each other.

    >>> import pullback.numpy as pnp
    >>> from pullback import lax
    >>> lax.batch_matmul(pnp.ones((2, 3, 4)), pnp.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    x, y = array_operand("batch_matmul", lhs), array_operand("batch_matmul", rhs)
    rank = len(x.shape)
    if rank < 2 or len(y.shape) != rank:
        raise ShapeError(f"lax.batch_matmul needs operands of one rank of at least 2, got {x.shape} and {y.shape}")
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)
