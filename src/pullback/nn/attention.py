"""Scaled dot-product attention: sums of values, weighted by the softmax of products of queries and keys."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.arguments import flag, is_listed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ArgumentError, BackendError, DtypeValueError, ShapeError
from pullback.nn.blockwise import Blocks, allowed, blockwise, both, largest_negative
from pullback.numpy.promotion import known_int, quote, strong
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg.contraction import dot_general

NAME = "dot_product_attention"

SCORES = 2**18
"""The number of scores of a block, unless its rows are too long: 512 by 512 scores stay in cache."""
FEWEST = 64
"""The least number of rows of a block; products of fewer rows are inefficient."""
SMALL = 2**16
"""Up to this number of scores in a head, their matrix is as large as the operands, and computed in one piece."""
FEW = 2**20
"""Up to this number of scores in all heads, the matrices are computed in one piece too."""


@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any: ...
# long: half of it is its documentation
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Compute ``softmax(query @ key.T * scale + bias) @ value`` for each head.

    The matrix of scores is computed a block at a time, and again in the backward pass, where it is larger than the
    operands: memory is linear in the lengths, for derivatives of any order whose first is in reverse mode.

    Args:
      query: floats of shape (batch, T, heads, size), or without the batch.
      key, value: floats of the dtype of ``query``, of shape (batch, S, key heads, size). The number of key heads
        divides the number of heads: each serves a group of neighbouring heads.
      bias: numbers to add to the scores, of at most four axes, which broadcast to (batch, heads, T, S).
      mask: booleans that broadcast in the same way: False where a score does not count. A row without scores that count
        has equal weights.
      scale: the factor of the scores; one over the square root of the size by default.
      is_causal: whether query i attends to keys up to i only.
      query_seq_lengths, key_value_seq_lengths: the numbers of queries, and of keys and values, that count in each
        element of the batch: int32 of shape (batch,). The result is zero for queries that do not count.
      local_window_size: how many keys before and after its position a query attends to: an int, or a pair.
      implementation: None, ``"xla"``, or ``"cudnn"``, whose device is not supported.
      return_residual: whether to return the logarithms of the rows' sums of exponentials too.

    Returns:
      An array of the shape and dtype of ``query``; with ``return_residual`` a pair, whose second array has the shape of
      ``query`` without its last axis, and is constant for derivatives.

    Raises:
      ShapeError: the operands do not fit each other (a TypeError and a ValueError).
      DtypeValueError: the operands are not floats, or a mask is not boolean (a TypeError and a ValueError).
      ArgumentError: an unknown implementation, or a window that is not an int or a pair (a TypeError and a ValueError).
      BackendError: the implementation is ``"cudnn"`` (a RuntimeError).

    Sources: Vaswani et al. 2017, "Attention is all you need"; by blocks: Rabe and Staats 2021, Dao et al. 2022.

    >>> import pullback.numpy as jnp
    >>> from pullback import nn
    >>> q, k = jnp.zeros((2, 1, 4)), jnp.ones((3, 1, 4))
    >>> v = jnp.arange(3.0).reshape(3, 1, 1) * jnp.ones(4)
    >>> print(nn.dot_product_attention(q, k, v, mask=jnp.array([True, True, False]))[:, 0])
    [[0.5 0.5 0.5 0.5]
     [0.5 0.5 0.5 0.5]]
    """
    return_residual = flag("dot_product_attention", "return_residual", return_residual)
    is_causal = flag("dot_product_attention", "is_causal", is_causal)
    _check_implementation(implementation)
    q, k, v = (strong(pnp.asarray(x)) for x in (query, key, value))
    _check_operands(q, k, v)
    shape, dtype = q.shape, q.dtype
    if len(shape) == 3:
        q, k, v = (shapes.expand_dims(x, (0,)) for x in (q, k, v))
    batch, length, heads, size = q.shape
    full = (batch, heads, length, k.shape[1])
    bias, mask = _over_scores("bias", bias, full), _over_scores("mask", mask, full)
    lengths = _lengths("key_value_seq_lengths", key_value_seq_lengths, batch)
    counted = _lengths("query_seq_lengths", query_seq_lengths, batch)
    wide = np.dtype(np.float32) if dtype.itemsize < 4 else dtype
    q, k, v = (ops.convert_element_type(shapes.transpose(x, (0, 2, 1, 3)), wide) for x in (q, k, v))
    factor = 1 / math.sqrt(max(size, 1)) if scale is None else scale
    q = ops.mul(q, factor if type(factor) in (int, float) else ops.convert_element_type(pnp.asarray(factor), wide))
    bias = None if bias is None else ops.convert_element_type(bias, wide)
    blocks = _division(full, bool(is_causal), _window(local_window_size), mask is None and lengths is None)
    attend = _in_one_piece if blocks.rows == 0 else _by_blocks
    out, residual = attend(blocks, q, k, v, bias, mask, lengths)
    residual = ops.stop_gradient_p.bind(residual)
    if counted is not None:
        real = ops.lt(
            slicing.iota(np.dtype(np.int32), (*out.shape[:3], 1), 2), shapes.reshape(counted, (batch, 1, 1, 1))
        )
        out = ops.where(real, out, 0)
        residual = ops.where(real, residual, largest_negative(wide))
    out = ops.convert_element_type(shapes.reshape(shapes.transpose(out, (0, 2, 1, 3)), shape), dtype)
    if not return_residual:
        return out
    rows = shapes.transpose(shapes.squeeze(residual, (3,)), (0, 2, 1))
    return out, ops.convert_element_type(shapes.reshape(rows, shape[:-1]), dtype)


# Computation --------------------------------------------------------------------------------------------------------


def _division(full: tuple[int, ...], causal: bool, window: tuple[int, int] | None, bounded: bool) -> Blocks:
    """Choose the division of a matrix of attention scores into blocks of rows.

    Args:
      full: the shape of the scores: (batch, heads, rows, columns).
      causal: whether a row attends to no later column.
      window: the numbers of columns before and after its own to which a row attends; None for no bound.
      bounded: whether masks depend on positions only. Then blocks may leave out the columns outside of the window.

    Returns:
      The division; its ``rows`` is 0 if all scores are computed in one piece.
    """
    rows, columns = full[2:]
    if rows * columns <= SMALL or math.prod(full) <= FEW:
        return Blocks(0, columns, causal, window)
    if causal and window is not None:
        window = (window[0], min(window[1], 0))
    width = columns
    count = min(rows, max(FEWEST, SCORES // columns))
    if window is not None and bounded and min(window) >= 0 and rows <= columns:
        count = min(rows, FEWEST)
        width = min(columns, count + sum(window))
    return Blocks(count, width, causal, window)


def _by_blocks(blocks: Blocks, q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any) -> tuple[Any, Any]:
    """Compute attention by blocks of rows; return the result, and the log-sum-exp of each row of scores.

    Args:
      blocks: the division into blocks.
      q, k, v: queries, keys and values.
      bias: an array that is added to the scores, or None.
      mask: booleans, False for scores to ignore, or None.
      lengths: the number of keys of each example, or None.
    """
    rows = q.shape[2]
    lacking = -rows % blocks.rows
    if lacking:
        q, bias, mask = (x if x is None or x.shape[2] == 1 else _padded(x, lacking) for x in (q, bias, mask))
    out, top, total = blockwise(blocks, q, k, v, bias, mask, lengths)
    residual = ops.add(top, ops.log(total))
    return (slicing.slice_in_dim(out, 0, rows, 2), slicing.slice_in_dim(residual, 0, rows, 2))


def _padded(x: Any, rows: int) -> Any:
    zero = shapes.full((), 0, x.dtype)
    return slicing.pad(x, zero, [(0, rows if a == 2 else 0, 0) for a in range(4)])


def _in_one_piece(blocks: Blocks, q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any) -> tuple[Any, Any]:
    """Compute attention from matrices of all scores; return the result, and the log-sum-exp of each row of scores.

    Args:
      blocks: holds the masks that depend on positions.
      q, k, v: queries, keys and values.
      bias: an array that is added to the scores, or None.
      mask: booleans, False for scores to ignore, or None.
      lengths: the number of keys of each example, or None.
    """
    batch, heads, rows, size = q.shape
    key_heads, columns = k.shape[1:3]
    grouped = shapes.reshape(q, (batch, key_heads, heads // key_heads * rows, size))
    scores = dot_general(grouped, k, (((3,), (3,)), ((0, 1), (0, 1))))
    scores = shapes.reshape(scores, (batch, heads, rows, columns))
    if bias is not None:
        scores = ops.add(scores, bias)
    unmasked = both(mask, allowed(blocks, 0, 0, rows, columns, None))
    if lengths is not None:
        positions = slicing.iota(np.dtype(np.int32), (1, 1, 1, columns), 3)
        unmasked = both(unmasked, ops.lt(positions, shapes.reshape(lengths, (batch, 1, 1, 1))))
    if unmasked is not None:
        scores = ops.where(unmasked, scores, largest_negative(scores.dtype))
    top = shapes.expand_dims(reductions.reduce_max(ops.stop_gradient_p.bind(scores), (3,)), (3,))
    e = ops.exp(ops.sub(scores, top))
    total = shapes.expand_dims(reductions.reduce_sum(e, (3,)), (3,))
    weights = shapes.reshape(e, (batch, key_heads, heads // key_heads * rows, columns))
    out = dot_general(weights, v, (((3,), (2,)), ((0, 1), (0, 1))))
    return ops.div(shapes.reshape(out, q.shape), total), ops.add(top, ops.log(total))


# Checks --------------------------------------------------------------------------------------------------------------


def _check_implementation(implementation: Any) -> None:
    if implementation == "cudnn":
        raise BackendError(f"{NAME}: implementation='cudnn' needs an NVIDIA device with cuDNN; leave it out")
    if not is_listed(implementation, (None, "xla")):
        raise ArgumentError(f"{NAME}: implementation must be None, 'xla' or 'cudnn', got {quote(implementation)}")


def _check_operands(q: Any, k: Any, v: Any) -> None:
    named = {"query": q, "key": k, "value": v}
    for name, x in named.items():
        if not dtypes.is_float(x.dtype):
            raise DtypeValueError(f"{NAME}: {name} must be an array of floats, got {dtypes.short_name(x.dtype)}")
        if x.dtype != q.dtype:
            raise DtypeValueError(
                f"{NAME}: query, key and value must have the same dtype, got {dtypes.short_name(q.dtype)} for query "
                f"and "
                f"{dtypes.short_name(x.dtype)} for {name}; convert them with astype"
            )
    shown = ", ".join(f"{name} {x.shape}" for name, x in named.items())
    if len(q.shape) not in (3, 4):
        raise ShapeError(f"{NAME}: query must have the axes ([batch,] T, heads, size), got {shown}")
    if k.shape != v.shape:
        raise ShapeError(f"{NAME}: key and value must have the same shape, got {shown}")
    if len(k.shape) != len(q.shape) or k.shape[-1] != q.shape[-1] or k.shape[:-3] != q.shape[:-3]:
        raise ShapeError(f"{NAME}: query and key must have the same batch and size (first and last axes), got {shown}")
    if k.shape[-2] == 0 or q.shape[-2] % k.shape[-2]:
        raise ShapeError(
            f"{NAME}: the number of query heads, {q.shape[-2]}, must be a multiple of that of key heads, "
            f"{k.shape[-2]}; got {shown}"
        )
    if k.shape[-3] == 0:
        raise ShapeError(f"{NAME}: the number of keys must not be zero; got {shown}")


def _over_scores(name: str, x: Any, full: tuple[int, ...]) -> Any:
    """Convert a bias or a mask to an array of four axes; raise unless it broadcasts to the shape ``full`` of scores."""
    if x is None:
        return None
    x = pnp.asarray(x)
    if name == "mask" and not dtypes.is_bool(x.dtype):
        raise DtypeValueError(
            f"{NAME}: mask must be an array of booleans, got {dtypes.short_name(x.dtype)}; pass numbers as bias"
        )
    if name == "bias" and not (dtypes.is_float(x.dtype) or dtypes.is_integer(x.dtype)):
        raise DtypeValueError(f"{NAME}: bias must be an array of real numbers, got {dtypes.short_name(x.dtype)}")
    rank = len(x.shape)
    shape = (1,) * (4 - rank) + x.shape
    if rank > 4 or any(n not in (1, m) for n, m in zip(shape, full, strict=True)):
        raise ShapeError(
            f"{NAME}: {name}, of shape {x.shape}, does not broadcast to (batch, heads, T, S), which is {full}"
        )
    return shapes.reshape(x, shape)


def _lengths(name: str, x: Any, batch: int) -> Any:
    if x is None:
        return None
    x = pnp.asarray(x)
    if not dtypes.is_integer(x.dtype):
        raise DtypeValueError(f"{NAME}: {name} must be an array of int32, got {dtypes.short_name(x.dtype)}")
    if x.shape != (batch,):
        raise ShapeError(f"{NAME}: {name} must have the shape ({batch},), one length for each example, got {x.shape}")
    return ops.convert_element_type(x, np.dtype(np.int32))


def _window(window: Any) -> tuple[int, int] | None:
    if window is None:
        return None
    pair = tuple(window) if isinstance(window, (tuple, list)) else (window, window)
    if len(pair) != 2:
        raise ArgumentError(f"{NAME}: local_window_size must be an int or a pair of ints, got {quote(window)}")
    before, after = (known_int(NAME, "local_window_size", n) for n in pair)
    return before, after
