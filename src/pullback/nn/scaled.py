"""Products of arrays in formats of few bits, whose blocks of neighbours share a scale.

The formats are those of the Open Compute Project (Rouhani et al. 2023, "Microscaling data formats for deep learning").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.annotations import DotDimensionNumbers, DTypeLike
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.numpy.promotion import operand, quote
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg.contraction import dot_general, pairs_of_axes
from pullback.transforms.custom.custom_rules import custom_vjp

_FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class BlockScaleConfig:
    """The format of few bits to which an operand is rounded.

    Attributes:
      mode: the name of the format.
      block_size: the number of neighbours along the contracted axis that share a scale.
      data_type: the dtype of the elements.
      scale_type: the dtype of the scales.
      global_scale: an array with one element, the scale of all blocks, or None.
      infer_only: whether gradients are refused.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """The configuration of an operand of :func:`scaled_dot_general`.

    Args:
      mode: ``"mxfp8"``: 8 bits, blocks of 32, scales that are powers of two; ``"nvfp4"``: 4 bits, blocks of 16, scales
        of 8 bits.
      global_scale: an array with one element, an additional scale of all blocks of ``"nvfp4"``; 1 by default.

    Returns:
      The configuration.

    Raises:
      ArgumentError: an unknown mode, or a ``global_scale`` for ``"mxfp8"`` (a TypeError and a ValueError).

    >>> from pullback import nn
    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    import ml_dtypes

    if is_listed(mode, ("nvfp4",)):
        scale = pnp.ones((1,), _FLOAT) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, scale, False)
    if not is_listed(mode, ("mxfp8",)):
        raise ArgumentError(f"get_scaled_dot_general_config: mode must be 'nvfp4' or 'mxfp8', got {quote(mode)}")
    if global_scale is not None:
        raise ArgumentError("get_scaled_dot_general_config: 'mxfp8' takes no global_scale; leave it out")
    return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None, False)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = _FLOAT,
) -> Array:
    """The product of a batch of matrices and transposed matrices, where neighbours along the last axis share a scale.

    Args:
      lhs, rhs: arrays of shapes (B, M, K) and (B, N, K).
      lhs_scales, rhs_scales: arrays of shapes (B, M, L) and (B, N, L), where L divides K.
      preferred_element_type: the dtype of the result. Products are summed in float32, or in float64 if an operand is
        float64.

    Returns:
      An array of shape (B, M, N).

    Raises:
      ShapeError: the operands do not fit each other (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> a, b = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[4.0, 5.0, 6.0]]])
    >>> print(nn.scaled_matmul(a, b, jnp.full((1, 1, 1), 0.5), jnp.full((1, 1, 1), 0.5)))
    [[[8.]]]
    """
    x, y, p, q = (operand("scaled_matmul", v) for v in (lhs, rhs, lhs_scales, rhs_scales))
    shown = f"lhs {x.shape}, rhs {y.shape}, lhs_scales {p.shape}, rhs_scales {q.shape}"
    if any(len(v.shape) != 3 for v in (x, y, p, q)):
        raise ShapeError(f"scaled_matmul: operands and scales must have three axes, got {shown}")
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[2]:
        raise ShapeError(f"scaled_matmul: lhs and rhs must agree in their first and last axes, got {shown}")
    if p.shape[:2] != x.shape[:2] or q.shape[:2] != y.shape[:2]:
        raise ShapeError(f"scaled_matmul: scales must have the first two axes of their operands, got {shown}")
    if p.shape[2] != q.shape[2] or p.shape[2] == 0 or x.shape[2] % p.shape[2]:
        raise ShapeError(
            f"scaled_matmul: the last axes of both scales must have one size, which divides that of the operands, "
            f"got {shown}"
        )
    wide = np.dtype(np.float64) if _is_wide(x, y) else _FLOAT
    out = _batched(_times(x, p, wide), _times(y, q, wide))
    return ops.convert_element_type(out, dtypes.requested_dtype(preferred_element_type, "scaled_matmul"))


def _is_wide(*xs: Any) -> bool:
    """Return whether any of the arrays has double precision."""
    return any(x.dtype == np.float64 for x in xs)


def _times(x: Any, scales: Any, wide_dtype: Any) -> Any:
    """Convert an operand to ``wide_dtype``, and multiply blocks of it by their scales.

    ``x`` has the shape (batch, rows, k). ``scales`` has the shape (batch, rows, blocks): one scale for each block of
    consecutive elements along k.
    """
    blocks = (*scales.shape, x.shape[-1] // scales.shape[-1])
    wide = shapes.reshape(ops.convert_element_type(x, wide_dtype), blocks)
    factors = shapes.expand_dims(ops.convert_element_type(scales, wide_dtype), (3,))
    return shapes.reshape(ops.mul(wide, factors), x.shape)


def _batched(x: Any, y: Any) -> Any:
    return dot_general(x, y, (((2,), (2,)), ((0,), (0,))))


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = _FLOAT,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """The contraction of two arrays, each rounded to few bits first, as are cotangents in the backward pass.

    Args:
      lhs, rhs: arrays of floats.
      dimension_numbers: ``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``.
      preferred_element_type: the dtype of the result. Products are summed in float32, or in float64 if an operand is
        float64.
      configs: three results of :func:`get_scaled_dot_general_config`: for ``lhs``, for ``rhs`` and for cotangents; None
        for a contraction without rounding.
      implementation: ignored.

    Returns:
      An array with the batch axes, the other axes of ``lhs``, and the other axes of ``rhs``. Derivatives treat the
      rounding as the identity (straight through).

    Raises:
      DtypeError: the operands are not floats (a TypeError).
      ArgumentError: ``configs`` are not three configurations (a TypeError and a ValueError).
      ShapeError: the dimension numbers do not fit the operands (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> print(nn.scaled_dot_general(jnp.array([[1.03]]), jnp.array([[2.0]]), (((1,), (1,)), ((), ())), configs=configs))
    [[2.]]
    """
    x, y = operand("scaled_dot_general", lhs), operand("scaled_dot_general", rhs)
    for name, v in (("lhs", x), ("rhs", y)):
        if not dtypes.is_float(v.dtype):
            raise DtypeError(f"scaled_dot_general takes floats, got {dtypes.short_name(v.dtype)} for {name}")
    wanted = dtypes.requested_dtype(preferred_element_type, "scaled_dot_general")
    pairs_of_axes("scaled_dot_general", dimension_numbers)
    wide = np.dtype(np.float64) if configs is None and _is_wide(x, y) else _FLOAT
    x, y = ops.convert_element_type(x, wide), ops.convert_element_type(y, wide)
    if configs is None:
        return ops.convert_element_type(dot_general(x, y, dimension_numbers), wanted)
    if (
        not isinstance(configs, (list, tuple))
        or len(configs) != 3
        or not all(isinstance(c, BlockScaleConfig) for c in configs)
    ):
        raise ArgumentError(
            "scaled_dot_general: configs must be three results of get_scaled_dot_general_config, for lhs, rhs and "
            f"cotangents, got {quote(configs)}"
        )
    (xc, yc), (xb, yb) = (tuple(map(tuple, pair)) for pair in dimension_numbers)
    shape = _shape_of(x, y, ((xc, yc), (xb, yb)))
    formats: Any = tuple(c.mode for c in configs)
    scales = [pnp.asarray(1.0 if c.global_scale is None else c.global_scale, _FLOAT).reshape(()) for c in configs]
    out = _product(formats, _three_axes(x, xb, xc), _three_axes(y, yb, yc), scales)
    return ops.convert_element_type(shapes.reshape(out, shape), wanted)


def _shape_of(x: Any, y: Any, numbers: Any) -> tuple[int, ...]:
    """Return the shape of the contraction of ``x`` and ``y`` by ``dot_general``; raise if the operands do not fit.

    ``numbers`` are the dimension numbers.
    """
    from pullback.core.types import ShapedArray
    from pullback.primitives.linalg.contraction import dot_general_p

    assert dot_general_p.abstract_eval_rule is not None
    aval = dot_general_p.abstract_eval_rule(
        ShapedArray(x.shape, x.dtype), ShapedArray(y.shape, y.dtype), dimension_numbers=numbers
    )
    return tuple(aval.shape)  # type: ignore[union-attr]


def _three_axes(x: Any, batch: tuple[int, ...], contracted: tuple[int, ...]) -> Any:
    """Reshape an operand to three axes: its batch axes, its free axes and its contracted axes, each merged to one."""
    free = [a for a in range(len(x.shape)) if a not in batch and a not in contracted]
    sizes = [math.prod(x.shape[a] for a in axes) for axes in (batch, free, contracted)]
    return shapes.reshape(shapes.transpose(x, (*batch, *free, *contracted)), sizes)


# Rounding ------------------------------------------------------------------------------------------------------------


def _rounded(mode: str, x: Any, global_scale: Any) -> Any:
    """Round an array (batch, rows, k) to a narrow format, and convert it back to single precision.

    Each block of consecutive elements along the last axis has its own scale.

    Args:
      mode: the name of the format, such as ``mxfp8``.
      x: the array.
      global_scale: elements are divided by this before they are rounded, and multiplied by it afterwards.
    """
    config = get_scaled_dot_general_config(mode)
    lacking = -x.shape[2] % config.block_size
    if lacking:
        zero = shapes.full((), 0, _FLOAT)
        padded = slicing.pad(x, zero, [(0, 0, 0), (0, 0, 0), (0, lacking, 0)])
        return slicing.slice_in_dim(_rounded(mode, padded, global_scale), 0, x.shape[2], 2)
    if not x.shape[2]:
        return x
    blocks = shapes.reshape(x, (*x.shape[:2], x.shape[2] // config.block_size, config.block_size))
    blocks = ops.div(blocks, global_scale)
    most = float(dtypes.finfo(config.data_type).max)
    scale = ops.div(shapes.expand_dims(reductions.reduce_max(ops.abs(blocks), (3,)), (3,)), most)
    if mode == "mxfp8":  # the least power of two that is not smaller, so that no element is out of range
        scale = pnp.exp2(pnp.ceil(pnp.log2(ops.where(ops.eq(scale, 0), 1, scale))))
    else:
        narrow = np.dtype(config.scale_type)
        least = pnp.minimum(scale, float(dtypes.finfo(narrow).max))
        scale = ops.convert_element_type(ops.convert_element_type(least, narrow), _FLOAT)
        scale = ops.where(ops.eq(scale, 0), 1, scale)
    values = pnp.clip(ops.div(blocks, scale), -most, most)
    values = ops.convert_element_type(ops.convert_element_type(values, np.dtype(config.data_type)), _FLOAT)
    return shapes.reshape(ops.mul(ops.mul(values, scale), global_scale), x.shape)


@partial(custom_vjp, nondiff_argnums=(0,))
def _product(modes: tuple[str, str, str], x: Any, y: Any, scales: Any) -> Any:
    """Round two operands to narrow formats, and multiply them: (B, M, K) times (B, N, K) is (B, M, N).

    Args:
      modes: the names of formats: the first is for ``x``, the second for ``y``.
      x, y: the operands.
      scales: the global scales: the first is for ``x``, the second for ``y``.
    """
    return _batched(_rounded(modes[0], x, scales[0]), _rounded(modes[1], y, scales[1]))


def _product_fwd(modes: tuple[str, str, str], x: Any, y: Any, scales: Any) -> Any:
    return _product(modes, x, y, scales), (x, y, scales)


def _product_bwd(modes: tuple[str, str, str], residuals: Any, ct: Any) -> Any:
    x, y, scales = residuals
    left, right, back = modes
    by_y = _product((back, right, back), ct, _transposed(y), [scales[2], scales[1], scales[2]])
    by_x = _product((back, left, back), _transposed(ct), _transposed(x), [scales[2], scales[0], scales[2]])
    return by_y, by_x, None


def _product_jvp(modes: tuple[str, str, str], primals: Any, tangents: Any) -> Any:
    (x, y, scales), (tx, ty, _) = primals, tangents
    a, b = _rounded(modes[0], x, scales[0]), _rounded(modes[1], y, scales[1])
    return _product(modes, x, y, scales), ops.add(_batched(tx, b), _batched(a, ty))


def _transposed(x: Any) -> Any:
    return shapes.transpose(x, (0, 2, 1))


_product.defvjp(_product_fwd, _product_bwd)
_product.defjvp(_product_jvp)
