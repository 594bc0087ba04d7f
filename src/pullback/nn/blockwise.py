"""Attention a block of scores at a time, forwards and backwards, so that memory is linear in the lengths.

A block has some rows of one head's matrix of scores, and all of their columns that are not masked. Softmax is along
rows, so that blocks are independent. The forward pass saves the largest score of each row, and the sum of its
exponentials; from these the backward pass computes the block's probabilities again (Rabe and Staats 2021,
"Self-attention does not need O(n^2) memory"; Dao et al. 2022, "FlashAttention").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import indexing, shapes, slicing
from pullback.primitives.linalg.contraction import dot_general
from pullback.transforms.checkpoint.checkpoint import checkpoint
from pullback.transforms.custom.custom_rules import custom_vjp

INT = np.dtype(np.int32)
INDEX = (0,) * 4


@dataclass(frozen=True)
class Blocks:
    """The division of scores into blocks, and their masks by position.

    Attributes:
      rows: the number of rows of a block, a divisor of the number of rows.
      columns: the number of columns of a block: all, or those in the windows of its rows.
      causal: whether a row attends to no later column.
      window: the numbers of columns before and after its own to which a row attends; None for no bound.
    """

    rows: int
    columns: int
    causal: bool
    window: tuple[int, int] | None

    def first_column(self, row: Any, count: int) -> Any:
        """The first column of the block whose first row is ``row``, of ``count`` columns in all."""
        if self.columns == count:
            return np.int32(0)
        assert self.window is not None
        return ops.max_p.bind(ops.min_p.bind(ops.sub(row, self.window[0]), count - self.columns), 0)


def largest_negative(dtype: Any) -> float:
    """The score of masked elements: finite, so that an entirely masked row has equal probabilities, not NaN."""
    return -0.7 * float(dtypes.finfo(dtype).max)


def allowed(blocks: Blocks, row: Any, column: Any, rows: int, columns: int, length: Any) -> Any:
    """The mask of a block of scores at ``row`` and ``column`` by position, True where they count; None if all do."""
    i = ops.add(slicing.iota(INT, (rows, columns), 0), row)
    j = ops.add(slicing.iota(INT, (rows, columns), 1), column)
    masks = [ops.le_p.bind(j, i)] if blocks.causal else []
    if blocks.window is not None:
        before, after = blocks.window
        masks += [ops.le_p.bind(ops.sub(i, before), j), ops.le_p.bind(j, ops.add(i, after))]
    if length is not None:
        masks.append(ops.lt(j, length))
    return both(*masks)


def both(*masks: Any) -> Any:
    """The conjunction of the masks that are not None; None if all are."""
    found = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else ops.and_p.bind(found, mask)
    return found


# One block -----------------------------------------------------------------------------------------------------------


def _product(x: Any, y: Any, contracted_x: int, contracted_y: int) -> Any:
    return dot_general(x, y, (((contracted_x,), (contracted_y,)), ((), ())))


def _slice(x: Any, start: tuple[Any, ...], rows: int, columns: int) -> Any:
    """Return the elements of ``x`` that belong to a block of attention scores, as a matrix.

    Args:
      x: an array with axes (batch, heads, rows, columns). An axis of size one stands for any size, and stays as it is.
      start: the index of the block's first score along each of these axes.
      rows, columns: the size of the block.
    """
    sizes = (1, 1, min(rows, x.shape[2]), min(columns, x.shape[3]))
    return shapes.reshape(indexing.dynamic_slice(x, _start(x, start), sizes), sizes[2:])


def _start(x: Any, start: tuple[Any, ...]) -> list[Any]:
    return [np.int32(0) if n == 1 else s for n, s in zip(x.shape, start, strict=True)]


class _Block:
    """A block of attention scores, some rows of one head's matrix, with the block's mask."""

    def __init__(self, blocks: Blocks, q: Any, k: Any, others: tuple[Any, Any, Any], at: tuple[Any, Any, Any]) -> None:
        bias, mask, lengths = others
        rows, columns, (batch, head, row) = blocks.rows, blocks.columns, at
        column = blocks.first_column(row, k.shape[0])
        self.start = (batch, head, row, column)
        self.k = self.columns_of(k, columns)
        scores = _product(q, self.k, 1, 1)
        if bias is not None:
            scores = ops.add(scores, _slice(bias, self.start, rows, columns))
        length = None if lengths is None else shapes.reshape(indexing.dynamic_slice(lengths, [batch], (1,)), ())
        by_position = allowed(blocks, row, column, rows, columns, length)
        self.mask = both(by_position, None if mask is None else _slice(mask, self.start, rows, columns))
        self.scores = self.masked(scores, largest_negative(scores.dtype))

    def columns_of(self, x: Any, columns: int) -> Any:
        """Return the rows of ``x``, keys or values, that belong to the columns of this block of scores.

        ``columns`` is the number of columns of the block.
        """
        if columns == x.shape[0]:
            return x
        return indexing.dynamic_slice(x, [self.start[3], np.int32(0)], (columns, x.shape[1]))

    def masked(self, x: Any, value: float) -> Any:
        return x if self.mask is None else ops.where(self.mask, x, value)


def _forward(blocks: Blocks, q: Any, k: Any, v: Any, others: Any, at: Any) -> tuple[Any, Any, Any]:
    """Compute one block of attention.

    Args:
      blocks: the division into blocks.
      q: the block's rows of the queries.
      k, v: the keys and values of the head.
      others: bias, mask and lengths, each an array or None.
      at: the batch index, head and first row of the block.

    Returns:
      The block's rows of the result; and for each row the largest score and the sum of exponentials.
    """
    block = _Block(blocks, q, k, others, at)
    top = shapes.expand_dims(reductions.reduce_max(block.scores, (1,)), (1,))
    e = ops.exp(ops.sub(block.scores, top))
    total = shapes.expand_dims(reductions.reduce_sum(e, (1,)), (1,))
    return ops.div(_product(e, block.columns_of(v, blocks.columns), 1, 0), total), top, total


def _backward(blocks: Blocks, q: Any, k: Any, v: Any, others: Any, at: Any, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Compute the terms of one block in the cotangents of q, k, v and bias; the term of bias is None without a bias.

    Args:
      blocks: the division into blocks.
      q: the block's rows of the queries.
      k, v: the keys and values of the head.
      others: bias, mask and lengths, each an array or None.
      at: the batch index, head and first row of the block.
      row: four arrays: for each row its largest score, its sum of exponentials, the cotangent of the result, and the
        sum of result times cotangent.
    """
    top, total, ct, delta = row
    block = _Block(blocks, q, k, others, at)
    p = ops.mul(ops.exp(ops.sub(block.scores, top)), ops.div(1, total))
    ct_v = shapes.transpose(_product(ct, p, 0, 0), (1, 0))  # three times as fast as p transposed times ct
    ct_p = _product(ct, block.columns_of(v, blocks.columns), 1, 1)
    ct_s = block.masked(ops.mul(p, ops.sub(ct_p, delta)), 0)
    ct_k = shapes.transpose(_product(q, ct_s, 0, 0), (1, 0))
    bias = others[0]
    ct_bias = None
    if bias is not None:
        summed = tuple(a for a in (0, 1) if bias.shape[2 + a] == 1)
        ct_bias = shapes.expand_dims(reductions.reduce_sum(ct_s, summed), summed) if summed else ct_s
    return _product(ct_s, block.k, 1, 0), ct_k, ct_v, ct_bias


# All blocks ----------------------------------------------------------------------------------------------------------


def _loop(step: Any, carry: Any, xs: tuple[Any, ...], count: int) -> tuple[Any, Any]:
    """Run ``step(carry, i, elements)`` for i from 0 to ``count - 1``, by ``scan``.

    Args:
      step: returns the next carry and a result.
      carry: the initial carry.
      xs: arrays; ``elements`` are their slices with index i along the first axis.
      count: the number of iterations.

    Returns:
      The final carry, and the stacked results.
    """
    return scan(lambda c, x: step(c, x[0], x[1:]), carry, (slicing.iota(INT, (count,), 0), *xs))


def _divided(x: Any, heads: int, rows: int) -> Any:
    """Divide the rows of an array (batch, heads, length, n) into blocks of ``rows`` rows.

    Args:
      x: the array.
      heads: the number of key heads, each shared by equally many of the array's heads.
      rows: the number of rows of a block.

    Returns:
      An array (batch * key heads, blocks of a key head, rows of a block, n).
    """
    batch, all_heads, length, n = x.shape
    return shapes.reshape(x, (batch * heads, all_heads // heads * (length // rows), rows, n))


def _at(blocks: Blocks, shape: tuple[int, ...], heads: int, i: Any, j: Any) -> tuple[Any, Any, Any]:
    """Return the batch index, the head and the first row of a block of queries.

    Args:
      blocks: the division into blocks.
      shape: the shape (batch, heads, rows, n) of the queries.
      heads: the number of key heads, each shared by equally many heads.
      i: the batch index times ``heads``, plus the index of the key head.
      j: the index of the block among the blocks of this key head.
    """
    count, group = shape[2] // blocks.rows, shape[1] // heads
    head = ops.add(ops.mul(ops.rem_p.bind(i, heads), group), _quotient(j, count))
    return _quotient(i, heads), head, ops.mul(ops.rem_p.bind(j, count), blocks.rows)


def _quotient(i: Any, n: int) -> Any:
    return ops.div(i, n) if n > 1 else i


@partial(custom_vjp, nondiff_argnums=(0,))
def blockwise(blocks: Blocks, q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """Compute attention by blocks.

    Args:
      blocks: the division of the scores.
      q: queries with their scale, of shape (batch, heads, rows, size).
      k, v: keys and values, of shape (batch, key heads, columns, size); the key heads divide the heads.
      bias, mask: of shape (batch, heads, rows, columns), where any size may be 1; or None.
      lengths: the number of columns for each element of the batch, or None.

    Returns:
      The result, of the shape of ``q``; the largest score of each row, as a constant; and the sum of the exponentials
      of its differences from the largest; both of shape (batch, heads, rows, 1).
    """
    batch, heads = k.shape[:2]
    xs = _divided(q, heads, blocks.rows)

    def key_head(_: Any, i: Any, x: Any) -> Any:
        q1, k1, v1 = x

        def block(_: Any, j: Any, y: Any) -> Any:
            at = _at(blocks, q.shape, heads, i, j)
            return None, _forward(blocks, y[0], k1, v1, (bias, mask, lengths), at)

        return None, _loop(block, None, (q1,), xs.shape[1])[1]

    inputs = (xs, _merged(k), _merged(v))
    _, results = _loop(key_head, None, inputs, batch * heads)
    return tuple(shapes.reshape(x, (*q.shape[:3], x.shape[-1])) for x in results)  # type: ignore[return-value]


def _merged(x: Any) -> Any:
    return shapes.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _blockwise_fwd(blocks: Blocks, q: Any, k: Any, v: Any, bias: Any, mask: Any, lengths: Any) -> Any:
    out = blockwise(blocks, q, k, v, bias, mask, lengths)
    return out, (q, k, v, bias, mask, lengths, out)


def _blockwise_bwd(blocks: Blocks, residuals: Any, cts: Any) -> tuple[Any, ...]:
    q, k, v, bias, mask, lengths, (out, top, total) = residuals
    ct, _, ct_total = cts
    batch, heads, columns, _ = k.shape
    # The probabilities add up to 1, so that the mean of their cotangents drops out; the total has its own cotangent.
    mean = shapes.expand_dims(reductions.reduce_sum(ops.mul(ct, out), (3,)), (3,))
    delta = ops.sub(mean, ops.mul(total, ct_total))
    rows = tuple(_divided(x, heads, blocks.rows) for x in (q, top, total, ct, delta))

    def key_head(ct_bias: Any, i: Any, x: Any) -> Any:
        k1, v1, *rest = x

        def block(carry: Any, j: Any, y: Any) -> Any:
            ct_k, ct_v, ct_bias = carry
            at = _at(blocks, q.shape, heads, i, j)
            backward = checkpoint(partial(_backward, blocks), prevent_cse=False)
            terms = backward(y[0], k1, v1, (bias, mask, lengths), at, tuple(y[1:]))
            first = blocks.first_column(at[2], columns)
            ct_k, ct_v = (_added(c, term, [first, np.int32(0)]) for c, term in ((ct_k, terms[1]), (ct_v, terms[2])))
            if bias is not None:
                term = shapes.expand_dims(terms[3], (0, 1))
                ct_bias = _added(ct_bias, term, _start(ct_bias, (*at, first)))
            return (ct_k, ct_v, ct_bias), terms[0]

        zeros = (shapes.zeros_like(k1), shapes.zeros_like(v1), ct_bias)
        (ct_k, ct_v, ct_bias), ct_q = _loop(block, zeros, tuple(rest), rows[0].shape[1])
        return ct_bias, (ct_q, ct_k, ct_v)

    start = None if bias is None else shapes.zeros_like(bias)
    ct_bias, found = _loop(key_head, start, (_merged(k), _merged(v), *rows), batch * heads)
    ct_q, ct_k, ct_v = (shapes.reshape(x, like.shape) for x, like in zip(found, (q, k, v), strict=True))
    return ct_q, ct_k, ct_v, ct_bias, None, None


def _added(x: Any, term: Any, start: list[Any]) -> Any:
    """Add ``term`` to the elements of ``x`` in the slice of the same shape that begins at the index ``start``."""
    if x.shape == term.shape:
        return ops.add(x, term)
    old = indexing.dynamic_slice(x, start, term.shape)
    return indexing.dynamic_update_slice(x, ops.add(old, term), start)


blockwise.defvjp(_blockwise_fwd, _blockwise_bwd)
