"""The exchange of slices of different sizes along a named axis: ``lax.ragged_all_to_all``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pullback import numpy as jnp
from pullback.core import dtypes
from pullback.core.annotations import AxisName
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError
from pullback.lax.collectives import Groups, all_gather, all_to_all
from pullback.primitives.operands import array_operand


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: Groups = None,
) -> Array:
    """Exchange slices of different sizes along a named axis: each index sends some to each other.

    The slices are divided evenly among the indices of the axis: the first ``K / size`` go to index 0, and so on. Each
    index gathers the operands of all others: the memory for these grows with the size of the axis.

    Args:
      operand: the rows to send, of shape ``(n, ...)``.
      output: the rows of the result before any is received, of shape ``(m, ...)``.
      input_offsets: the first row of each slice in ``operand``, integers of shape ``(K,)``.
      send_sizes: the number of its rows, of shape ``(K,)``.
      output_offsets: where it begins in the result of the index that receives it, of shape ``(K,)``.
      recv_sizes: the numbers of rows of the slices that are received, of shape ``(K,)``.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis_index_groups: a list of lists of indices, of one size: the exchange is within each group.

    Returns:
      ``output`` with the received slices in it; of rows that are received twice, those of the later slice.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ShapeError: shapes that do not fit (a TypeError and ValueError).
      DtypeError: ``operand`` and ``output`` have different dtypes, or offsets are not integers (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> rows, into, sizes = jnp.array([[1, 2, 2], [3, 4, 0]]), jnp.zeros((2, 4), int), jnp.array([[1, 2], [1, 1]])
    >>> at, to = jnp.array([0, 1]), jnp.array([[0, 0], [1, 2]])
    >>> exchange = lambda x, o, n, to, m: lax.ragged_all_to_all(x, o, at, n, to, m, axis_name="i")
    >>> print(vmap(exchange, axis_name="i")(rows, into, sizes, to, sizes.T))
    [[1 3 0 0]
     [2 2 4 0]]
    """
    given = (operand, output, input_offsets, send_sizes, output_offsets, recv_sizes)
    operand, output, *offsets_and_sizes = [array_operand("ragged_all_to_all", x) for x in given]
    _check(operand, output, offsets_and_sizes)
    input_offsets, _, output_offsets, sizes = offsets_and_sizes
    received = partial(
        all_to_all, axis_name=axis_name, split_axis=0, concat_axis=0, axis_index_groups=axis_index_groups, tiled=True
    )
    of_all = all_gather(operand, axis_name, axis_index_groups=axis_index_groups)
    first, begin = received(input_offsets), received(output_offsets)
    count = len(sizes)
    sender = jnp.arange(count) // (count // len(of_all))
    rows = jnp.arange(len(output))
    hit = (begin[:, None] <= rows) & (rows < (begin + sizes)[:, None])
    last = jnp.max(jnp.where(hit, jnp.arange(count)[:, None], -1), axis=0, initial=-1)
    found = of_all[sender[last], first[last] + rows - begin[last]]
    return jnp.where(jnp.reshape(last >= 0, (-1,) + (1,) * (output.ndim - 1)), found, output)


def _check(operand: Array, output: Array, offsets_and_sizes: Sequence[Array]) -> None:
    """Raise unless the operands of :func:`ragged_all_to_all` fit together."""
    if operand.ndim == 0 or operand.shape[1:] != output.shape[1:] or output.ndim == 0:
        raise ShapeError(
            "ragged_all_to_all takes operand and output that differ in the first axis at most, got shapes "
            f"{operand.shape} and {output.shape}"
        )
    shapes = {x.shape for x in offsets_and_sizes}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        names = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")
        shown = ", ".join(f"{name} {x.shape}" for name, x in zip(names, offsets_and_sizes, strict=True))
        raise ShapeError(f"ragged_all_to_all takes offsets and sizes of one shape (K,), got {shown}")
    if operand.dtype != output.dtype or not all(dtypes.is_integer(x.dtype) for x in offsets_and_sizes):
        kinds = ", ".join(dtypes.short_name(x.dtype) for x in (operand, output, *offsets_and_sizes))
        raise DtypeError(
            f"ragged_all_to_all takes operand and output of one dtype, and integers as offsets and sizes, got {kinds}"
        )
