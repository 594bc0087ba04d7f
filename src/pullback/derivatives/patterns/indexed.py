"""Sparsity rules of indexing operations: exact for known indices, otherwise for any index within range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, host_value
from pullback.core.jaxpr import Eqn
from pullback.core.trace import state
from pullback.derivatives.patterns import boolean
from pullback.derivatives.patterns.dependence import conservative, is_tangent, number_operands, numbers, sparsity
from pullback.derivatives.patterns.rules import blend
from pullback.primitives.arrays import gather, indexing, scatter, sorting
from pullback.primitives.linalg import sparse_products as sparse
from pullback.transforms.traces.interpretation import Interpretation


def _known(indices: Sequence[Any]) -> bool:
    return all(isinstance(x, np.ndarray) for x in indices)


def _zeros(eqn: Eqn, first: int) -> list[Any]:
    """Return arrays of zeros like the operands of ``eqn`` from position ``first`` on, to stand for unknown indices."""
    return [np.zeros(v.aval.shape, v.aval.dtype) for v in eqn.invars[first:]]


def _unless_indices_move(rule: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Extend the sparsity rule of an indexing operation to indices that depend on an input to differentiate by.

    For these indices, the extended rule lets each element of the result depend on all inputs of all operands. For
    constant indices it calls ``rule``.
    """

    def guarded(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
        values = eqn.primitive.linear_in
        assert isinstance(values, tuple)
        if any(is_tangent(x) for i, x in enumerate(operands) if i not in values):
            return conservative(eqn, operands)
        return rule(walk, eqn, operands)

    return guarded


@sparsity(gather.gather_p)
@_unless_indices_move
def _gather(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    rows, indices = operands
    shape = eqn.invars[0].aval.shape
    params = eqn.params
    if not isinstance(indices, np.ndarray):
        # With unknown indices, the dependence is made uniform along indexed axes, so that zeros will do as indices.
        rows = blend(rows, shape, params["dimension_numbers"].start_index_map)
        (indices,) = _zeros(eqn, 1)
    return [boolean.select(rows, _gathered(numbers(shape) + 1, indices, params) - 1)]


def _gathered(numbered: Any, indices: Any, params: dict[str, Any]) -> Any:
    assert gather.gather_p.host_rule is not None
    return gather.gather_p.host_rule(numbered, indices, **{**params, "fill_value": 0})


@sparsity(scatter.scatter_p)
@_unless_indices_move
def _scatter(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    shape, updates_shape = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    if not isinstance(operands[1], np.ndarray):
        return _scatter_add(walk, eqn, operands)
    positions = taken_back(shape, operands[1], updates_shape, eqn.params)
    if np.bincount(positions[positions > 0]).max(initial=0) > 1:  # which of several updates wins is undefined
        return _scatter_add(walk, eqn, operands)
    (x, _, updates), rows = number_operands(eqn, operands)
    assert scatter.scatter_p.host_rule is not None
    return [boolean.select(rows, scatter.scatter_p.host_rule(x, operands[1], updates, **eqn.params) - 1)]


@sparsity(scatter.scatter_add_p)
@_unless_indices_move
def _scatter_add(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    x, indices, updates = operands
    shape, updates_shape = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    parts = [x] if is_tangent(x) else []
    if is_tangent(updates):
        taken = indices if isinstance(indices, np.ndarray) else _zeros(eqn, 1)[0]
        # The target in the operand of each element of the updates.
        positions = taken_back(shape, taken, updates_shape, eqn.params)
        added = boolean.merge(updates, positions - 1, math.prod(shape))
        if taken is not indices:
            added = blend(added, shape, eqn.params["dimension_numbers"].scatter_dims_to_operand_dims)
        parts.append(added)
    return [boolean.union(parts)]


def taken_back(shape: Any, indices: Any, updates_shape: Any, params: dict[str, Any]) -> Any:
    """Return for each element of a scatter's updates the number of the operand's element that the update goes to.

    Elements are numbered in row-major order from 1 on; 0 marks an update that is dropped because it is out of bounds.

    Args:
      shape: the shape of the operand.
      indices: the indices of the scatter.
      updates_shape: the shape of the updates.
      params: the parameters of the scatter.
    """
    outer, state.trace = state.trace, state.bottom
    try:
        found = scatter.take_back(ArrayImpl(numbers(shape) + 1), indices, shape, updates_shape, params)
    finally:
        state.trace = outer
    return host_value(found)


@sparsity(scatter.scatter_mul_p)
def _scatter_mul(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of a scatter that multiplies elements of its operand by updates.

    If the updates are constant, the result depends on inputs exactly as the operand does. Otherwise each element of the
    result depends on all inputs of all operands. Return a list with the dependence matrix of the result.
    """
    return [operands[0]] if is_tangent(operands[0]) and not is_tangent(operands[2]) else conservative(eqn, operands)


@sparsity(indexing.dynamic_slice_p)
@_unless_indices_move
def _dynamic_slice(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    rows, *starts = operands
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    if not _known(starts):
        known = [i for i, x in enumerate(starts) if not isinstance(x, np.ndarray)]
        rows = blend(rows, shape, [a for a in known if sizes[a] < shape[a]])
        starts = [x if isinstance(x, np.ndarray) else np.zeros((), np.int32) for x in starts]
    assert indexing.dynamic_slice_p.host_rule is not None
    return [boolean.select(rows, indexing.dynamic_slice_p.host_rule(numbers(shape), *starts, slice_sizes=sizes))]


@sparsity(indexing.dynamic_update_slice_p)
@_unless_indices_move
def _dynamic_update_slice(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    x, update, *starts = operands
    shape, sizes = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape
    (numbered, updates, *_), rows = number_operands(eqn, operands)
    host = indexing.dynamic_update_slice_p.host_rule
    assert host is not None
    if _known(starts):
        return [boolean.select(rows, host(numbered, updates, *starts) - 1)]
    parts = [x] if is_tangent(x) else []
    if is_tangent(update):
        anywhere = [a for a, s in enumerate(starts) if not isinstance(s, np.ndarray) and sizes[a] < shape[a]]
        at = [s if isinstance(s, np.ndarray) else np.zeros((), np.int32) for s in starts]
        at_positions = boolean.select(update, host(np.zeros(shape, np.int64), numbers(sizes) + 1, *at) - 1)
        parts.append(blend(at_positions, shape, anywhere))
    return [boolean.union(parts)]


@sparsity(sorting.take_along_axis_p)
@_unless_indices_move
def _take_along_axis(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    rows, indices = operands
    shape, axis = eqn.invars[0].aval.shape, eqn.params["axis"]
    if not isinstance(indices, np.ndarray):
        rows = blend(rows, shape, (axis,))
        (indices,) = _zeros(eqn, 1)
    assert sorting.take_along_axis_p.host_rule is not None
    return [boolean.select(rows, sorting.take_along_axis_p.host_rule(numbers(shape) + 1, indices, **eqn.params) - 1)]


@sparsity(sorting.add_along_axis_p)
@_unless_indices_move
def _add_along_axis(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    rows, indices = operands
    shape, out = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    axis = eqn.params["axis"]
    to = (*out[:axis], shape[axis], *out[axis + 1 :])
    rows = boolean.select(rows, np.broadcast_to(numbers(shape), to))
    if not isinstance(indices, np.ndarray):
        return [blend(rows, to, (axis,), out)]
    wrapped = np.broadcast_to(np.where(indices < 0, indices + out[axis], indices), to)
    inside = (wrapped >= 0) & (wrapped < out[axis])
    positions = np.take_along_axis(numbers(out), np.where(inside, wrapped, 0).astype(np.int64), axis)
    return [boolean.merge(rows, np.where(inside, positions, -1), math.prod(out))]


# Products of sparse matrices ----------------------------------------------------------------------------------------


def _positions_of_blocks(indices: Any, rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Return the row, the column and the number of each block of a block-sparse matrix, as three vectors.

    Args:
      indices: the row and column of each block, (blocks, 2). If these are not known, the number of blocks; then each
        block is paired with every row and column.
      rows, columns: the numbers of block rows and block columns; blocks beyond these are left out.
    """
    if isinstance(indices, np.ndarray):
        i, j = indices.T.astype(np.int64)
        inside = np.flatnonzero((i >= 0) & (i < rows) & (j >= 0) & (j < columns))
        return i[inside], j[inside], inside
    count = indices
    i, j, number = (a.ravel() for a in np.indices((rows, columns, count)))
    return i, j, number


@sparsity(sparse.blocks_times_dense_p)
def _blocks_times_dense(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of the product of a block-sparse and a dense matrix: return a list with its dependence matrix.

    The product is ``out[i] += data[e] @ dense[j]`` for each block e at row i and column j. With the parameter
    ``transposed`` it is ``out[j] += data[e].T @ dense[i]``.
    """
    data, indices, dense = operands
    (count, p, k), (others, _, q) = (eqn.invars[n].aval.shape for n in (0, 2))
    size, transposed = eqn.params["size"], eqn.params["transposed"]
    given = indices if isinstance(indices, np.ndarray) else count
    first, second = (others, size) if transposed else (size, others)
    i, j, e = _positions_of_blocks(given, first, second)
    at, (out, into) = (j, (k, p)) if transposed else (i, (p, k))
    source = i if transposed else j
    # The terms of each block: by row and column of the block, and column of the dense matrix.
    a, b, c = (x.ravel() for x in np.indices((out, into, q)))
    result = ((at[:, None] * out + a) * q + c).ravel()
    parts = []
    if is_tangent(data):
        block = (e[:, None] * p * k + (b * k + a if transposed else a * k + b)).ravel()
        parts.append(boolean.times(boolean.from_pairs(result, block, (size * out * q, count * p * k)), data))
    if is_tangent(dense):
        position = ((source[:, None] * into + b) * q + c).ravel()
        parts.append(boolean.times(boolean.from_pairs(result, position, (size * out * q, others * into * q)), dense))
    return [boolean.union(parts)]


@sparsity(sparse.blocks_of_product_p)
def _blocks_of_product(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of selected blocks of the product of two matrices: return a list with their dependence matrix.

    These are ``out[e] = x[i] @ y[j].T`` for each block e at row i and column j.
    """
    indices = operands[2]
    (r, p, q), (c, k, _) = (eqn.invars[n].aval.shape for n in (0, 1))
    count = eqn.invars[2].aval.shape[0]
    i, j, e = _positions_of_blocks(indices if isinstance(indices, np.ndarray) else count, r, c)
    a, b, m = (x.ravel() for x in np.indices((p, k, q)))
    result = (e[:, None] * p * k + a * k + b).ravel()
    parts = []
    for rows, at, height, inner in ((operands[0], i, p, a), (operands[1], j, k, b)):
        if is_tangent(rows):
            position = ((at[:, None] * height + inner) * q + m).ravel()
            parts.append(boolean.times(boolean.from_pairs(result, position, (count * p * k, rows.shape[0])), rows))
    return [boolean.union(parts)]


# With masked zeros these replace products.
for _p, _rule in (
    (scatter.scatter_mul_p, _scatter_mul),
    (sparse.blocks_times_dense_p, _blocks_times_dense),
    (sparse.blocks_of_product_p, _blocks_of_product),
):
    assert _p.masked is not None
    sparsity(_p.masked)(_rule)
