"""Products of arrays, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

from typing import Any

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DotDimensionNumbers as DotDimensionNumbers
from pullback.core.annotations import DTypeLike, PrecisionLike
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError
from pullback.lax import precision as precisions
from pullback.lax.arguments import ints
from pullback.lax.precision import DotAlgorithm
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg import contraction
from pullback.primitives.linalg.contraction import pairs_of_axes
from pullback.primitives.operands import array_operand, bind
from pullback.transforms.programs.placement import spread


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """The contraction of some axes of two arrays, for each index of their batch axes.

    Args:
      lhs, rhs: arrays; different dtypes are promoted.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``.
      precision: a :class:`Precision`, its name, or a pair for the operands, by which GPUs and TPUs compute; CPUs
        compute in full precision. Or a :class:`DotAlgorithm`, or a :class:`DotAlgorithmPreset` or its name, by which
        products are computed everywhere.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: how the result is spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      An array with the batch axes, the other axes of ``lhs``, and the other axes of ``rhs``.

    Raises:
      DtypeError, ShapeError: the operands do not fit each other or the axes.
      ArgumentError: ``precision`` is not one of these (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.dot_general(jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5)), (((2,), (1,)), ((0,), (0,)))).shape
    (2, 3, 5)
    """
    x, y = array_operand("dot_general", lhs), array_operand("dot_general", rhs)
    (xc, yc), (xb, yb) = pairs_of_axes("dot_general", dimension_numbers)
    numbers = ((ints(xc), ints(yc)), (ints(xb), ints(yb)))
    algorithm = precisions.algorithm_of("dot_general", precision)
    names = None if precision is None else contraction.precision_names(precision)
    if algorithm is not None:  # it rounds the operands itself
        names = contraction.HIGHEST
    contract = lambda x, y: _contracted(x, y, numbers, names, algorithm, preferred_element_type)
    return spread(contract, [x, y], out_sharding, "lax.dot_general")


def _contracted(x: Any, y: Any, numbers: Any, names: Any, algorithm: Any, preferred_element_type: Any) -> Any:
    params = {} if names is None else {"precision": names}

    def contract(x: Any, y: Any) -> Any:
        return bind(contraction.dot_general_p, x, y, dimension_numbers=numbers, **params)

    if preferred_element_type is None:
        result = dtypes.common_dtype(x.dtype, y.dtype)
    else:
        result = dtypes.requested_dtype(preferred_element_type, "dot_general")
    if algorithm is not None:
        return ops.convert_element_type(precisions.apply("dot_general", algorithm, contract, x, y), result)
    if preferred_element_type is None:
        if x.dtype != y.dtype:
            x, y = ops.convert_element_type(x, result, x.weak_type), ops.convert_element_type(y, result, y.weak_type)
        return contract(x, y)
    wide = dtypes.accumulator(result, x.dtype, y.dtype)
    return ops.convert_element_type(
        contract(ops.convert_element_type(x, wide), ops.convert_element_type(y, wide)), result
    )


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The product of two vectors, of two matrices, or of a matrix and a vector; or as the dimension numbers say.

    Args:
      lhs, rhs: arrays; different dtypes are promoted.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``; None for the usual
        product.
      precision: a :class:`Precision`, its name, or a pair for the operands, by which GPUs and TPUs compute; CPUs
        compute in full precision. Or a :class:`DotAlgorithm`, or a :class:`DotAlgorithmPreset` or its name, by which
        products are computed everywhere.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: how the result is spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      An array of the dtype to which the operands promote.

    Raises:
      DtypeError, ShapeError: the operands do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
    11.0
    """
    x, y = array_operand("dot", lhs), array_operand("dot", rhs)
    if dimension_numbers is None:
        if len(x.shape) not in (1, 2) or len(y.shape) not in (1, 2) or x.shape[-1] != y.shape[0]:
            raise ShapeError(
                "lax.dot: without dimension_numbers the operands must be matrices or vectors of matching sizes, got "
                "shapes "
                f"{x.shape} and {y.shape}"
            )
        dimension_numbers = (((len(x.shape) - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike | DotAlgorithm = None) -> Array:
    """The products of matrices in the last two axes, for each index of the leading axes, which are equal.

    Args:
      lhs, rhs: arrays of shapes ``(..., n, k)`` and ``(..., k, m)``.
      precision: a :class:`Precision`, its name, or a pair for the operands, by which GPUs and TPUs compute; CPUs
        compute in full precision. Or a :class:`DotAlgorithm`, or a :class:`DotAlgorithmPreset` or its name, by which
        products are computed everywhere.

    Returns:
      An array of shape ``(..., n, m)``.

    Raises:
      DtypeError, ShapeError: the operands do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.batch_matmul(jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5))).shape
    (2, 3, 5)
    """
    x, y = array_operand("batch_matmul", lhs), array_operand("batch_matmul", rhs)
    rank = len(x.shape)
    if rank < 2 or len(y.shape) != rank:
        raise ShapeError(
            f"lax.batch_matmul needs operands with the same number of axes, at least 2, got {x.shape} and {y.shape}"
        )
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The product of two arrays, each multiplied by scales, one for each block of neighbours along contracted axes.

    Args:
      lhs, rhs: arrays of floats.
      lhs_scale, rhs_scale: the scales, of the shape of their operand, except that the size of a contracted axis is a
        divisor of the operand's size and at most half of it; None for no scale.
      dimension_numbers: as for :func:`dot_general`; the product of matrices, or of two batches of them, by default.
      preferred_element_type: the dtype of the result; bfloat16 by default.

    Returns:
      An array of dtype ``preferred_element_type``: the batch axes, then the free axes of ``lhs`` and of ``rhs``.

    Raises:
      ShapeError: the operands and scales do not fit each other (a TypeError and a ValueError).
      DtypeError: the operands are not floats (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.array([[2.0, 3.0]])))
    [[10]]
    """
    x, y = array_operand("scaled_dot", lhs), array_operand("scaled_dot", rhs)
    rank = len(x.shape)
    if dimension_numbers is None:
        if rank not in (2, 3) or len(y.shape) != rank:
            raise ShapeError(
                f"lax.scaled_dot: without dimension_numbers the operands must be two matrices or two batches of "
                f"matrices, got shapes {x.shape} and {y.shape}"
            )
        batch = tuple(range(rank - 2))
        dimension_numbers = (((rank - 1,), (rank - 2,)), (batch, batch))
    (xc, yc), _ = pairs_of_axes("scaled_dot", dimension_numbers)
    total = dtypes.requested_dtype(
        "bfloat16" if preferred_element_type is None else preferred_element_type, "scaled_dot"
    )
    wide = dtypes.promote_types(total, "float32")
    x = _scaled("lhs", x, lhs_scale, ints(xc), wide)
    y = _scaled("rhs", y, rhs_scale, ints(yc), wide)
    return ops.convert_element_type(dot_general(x, y, dimension_numbers), total)


def _scaled(which: str, x: Any, scale: Any, contracted: tuple[int, ...], dtype: Any) -> Any:
    """Convert an operand of ``scaled_dot`` to ``dtype``, and multiply each of its blocks by the block's scale.

    Args:
      which: the name of the operand, for errors.
      x: the operand.
      scale: an array with one scale for each block of elements along the contracted axes; None for no scaling.
      contracted: the contracted axes.
      dtype: the dtype of the result.
    """
    if not dtypes.is_float(x.dtype):
        raise DtypeError(f"lax.scaled_dot takes floats, got {dtypes.short_name(x.dtype)} for {which}")
    out = ops.convert_element_type(x, dtype)
    if scale is None:
        return out
    factors = array_operand("scaled_dot", scale)
    fits = len(factors.shape) == len(x.shape) and all(
        (n % max(m, 1) == 0 and 2 * m <= n) if a in contracted else m == n
        for a, (m, n) in enumerate(zip(factors.shape, x.shape, strict=False))
    )
    if not fits:
        raise ShapeError(
            f"lax.scaled_dot: {which}_scale must have the shape of {which}, {x.shape}, except along the contracted "
            f"axes {contracted}, whose size must divide the operand's size and be at most half of it; got "
            f"{factors.shape}"
        )
    blocks = [s for m, n in zip(factors.shape, x.shape, strict=True) for s in (m, n // max(m, 1))]
    ones = [s for m in factors.shape for s in (m, 1)]
    spread = shapes.reshape(ops.convert_element_type(factors, dtype), ones)
    return shapes.reshape(ops.mul(shapes.reshape(out, blocks), spread), x.shape)
