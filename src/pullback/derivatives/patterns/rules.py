"""Sparsity rules of linear operations: elementwise, moves, sums, products and transforms.

An operation that moves elements is run on their numbers, which yields the source of each element of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.control.guard import guard_p
from pullback.core.jaxpr import Eqn
from pullback.core.types import Shape
from pullback.derivatives.patterns import boolean
from pullback.derivatives.patterns.dependence import (
    UNKNOWN,
    is_tangent,
    numbers,
    sparsity,
    spread,
    union,
)
from pullback.primitives import collectives, elementwise, explicit_shardings, reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.linalg import contraction, decompositions, householder, lu, ragged, tridiagonal
from pullback.primitives.linalg import lapack as linalg
from pullback.primitives.signals import convolution, recursive_filter, window_reductions
from pullback.transforms.checkpoint.barriers import optimization_barrier_p
from pullback.transforms.programs.placement import device_put_p, sharding_constraint_p
from pullback.transforms.traces.interpretation import Interpretation

# Elements ------------------------------------------------------------------------------------------------------------


def _product(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of elementwise products: find the inputs on which each element depends.

    These are the inputs on which either factor's element depends; none where a factor is a constant zero. Return a list
    with the dependence matrix of the product.
    """
    (rows,) = union(walk, eqn, operands)
    for x in operands:
        if isinstance(x, np.ndarray):
            rows = boolean.keep(rows, np.broadcast_to(x != 0, eqn.outvars[0].aval.shape))
    return [rows]


def _nothing(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    return [UNKNOWN] * len(eqn.outvars)


def _each(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> Sequence[Any]:
    """Sparsity rule of operations whose result k depends, element by element, on the inputs of one operand.

    The last operands correspond to the results, in order. Return their dependence matrices.
    """
    return operands[-len(eqn.outvars) :]


for _p in (device_put_p, sharding_constraint_p, explicit_shardings.mesh_cast_p, explicit_shardings.reshard_p):
    sparsity(_p)(union)
for _p in (shapes.reshape_p, shapes.squeeze_p):
    sparsity(_p)(_each)
for _p in (
    optimization_barrier_p, guard_p, decompositions.undetermined_p,
    collectives.pvary_p, collectives.psum_p, collectives.ppermute_p,
):  # fmt: skip
    sparsity(_p)(_each)
sparsity(elementwise.mul_p)(_product)
sparsity(elementwise.stop_gradient_p)(_nothing)


@sparsity(elementwise.select_n_p)
def _select_n(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    which, *cases = operands
    if not isinstance(which, np.ndarray):
        return union(walk, eqn, operands)
    to = eqn.outvars[0].aval.shape
    parts = [
        boolean.keep(spread(x, v.aval.shape, to), np.broadcast_to(which == i, to))
        for i, (x, v) in enumerate(zip(cases, eqn.invars[1:], strict=True)) if is_tangent(x)
    ]  # fmt: skip
    return [boolean.union(parts)]


# Sums ----------------------------------------------------------------------------------------------------------------


@sparsity(reductions.reduce_sum_p)
def _sum(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    return [merged(operands[0], eqn.invars[0].aval.shape, eqn.params["axes"])]


def merged(rows: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Return the dependence matrix of the sums of an array over ``axes``.

    Args:
      rows: the dependence matrix of the array: a row for each element, a column for each input.
      shape: the shape of the array.
      axes: the axes to sum over.
    """
    once = [1 if a in axes else n for a, n in enumerate(shape)]
    return boolean.merge(rows, np.broadcast_to(numbers(once), shape), math.prod(once))


def _running(count: int, reverse: bool) -> Any:
    """Return the boolean matrix of a cumulative sum of ``count`` elements: element i depends on elements 0 to i.

    With ``reverse``, element i depends on element i and all later ones.
    """
    i, j = np.tril_indices(count)
    return boolean.from_pairs(j if reverse else i, i if reverse else j, (count, count))


@sparsity(reductions.cumsum_p)
def _cumsum(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    shape, axis = eqn.invars[0].aval.shape, eqn.params["axis"]
    return [boolean.along(operands[0], shape, {axis: _running(shape[axis], eqn.params["reverse"])})]


@sparsity(reductions.linear_recurrence_p)
def _recurrence(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    shape, axis = eqn.outvars[0].aval.shape, eqn.params["axis"]
    (rows,) = union(walk, eqn, operands)
    return [boolean.along(rows, shape, {axis: _running(shape[axis], eqn.params["reverse"])})]


# Products ------------------------------------------------------------------------------------------------------------


@sparsity(contraction.dot_general_p)
@sparsity(collectives.psum_dot_general_p)
def _dot(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    (xc, yc), (xb, yb) = eqn.params["dimension_numbers"]
    x, y = (v.aval.shape for v in eqn.invars)
    x_free = [i for i in range(len(x)) if i not in (*xc, *xb)]
    y_free = [i for i in range(len(y)) if i not in (*yc, *yb)]
    b, k = math.prod(x[i] for i in xb), math.prod(x[i] for i in xc)
    m, n = math.prod(x[i] for i in x_free), math.prod(y[i] for i in y_free)
    # As matrices, each a batch of them: x is (b, m, k) and y is (b, n, k), and the result is (b, m, n).
    left, right = [*xb, *x_free, *xc], [*yb, *y_free, *yc]
    parts = []
    if is_tangent(operands[0]):
        rows = boolean.select(operands[0], numbers(x).transpose(left))
        parts.append(_contracted(rows, (b, m, k), _arranged(operands[1], right, (b, n, k))))
    if is_tangent(operands[1]):
        rows = boolean.select(operands[1], numbers(y).transpose(right))
        turned = _contracted(rows, (b, n, k), _arranged(operands[0], left, (b, m, k)))
        parts.append(boolean.select(turned, numbers((b, n, m)).swapaxes(1, 2)))
    return [boolean.union(parts)]


def _arranged(x: Any, order: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Return a mask of the nonzero elements of an operand, transposed by ``order`` and reshaped to ``shape``.

    Args:
      x: the abstract value of the operand, which does not depend on inputs.
      order: the permutation of the operand's axes.
      shape: (batch, rows, columns).

    Returns:
      The mask; or if all elements may be nonzero, only the number of rows.
    """
    if not isinstance(x, np.ndarray):
        return shape[1]
    nonzero = (x != 0).transpose(order).reshape(shape)
    return shape[1] if nonzero.all() else nonzero


def _contracted(rows: Any, shape: tuple[int, int, int], other: Any) -> Any:
    """Return the dependence matrix of ``out[b, m, n] = sum(x[b, m, k] * y[b, n, k] for k)``, where y is constant.

    Args:
      rows: the dependence matrix of x: a row for each element, a column for each input.
      shape: the shape of x, (b, m, k).
      other: a mask of the nonzero elements of y, (b, n, k); or only n, if all may be nonzero.
    """
    b, m, k = shape
    if isinstance(other, int):
        summed = boolean.merge(rows, np.broadcast_to(numbers((b, m, 1)), shape), b * m)
        return boolean.select(summed, np.broadcast_to(numbers((b, m, 1)), (b, m, other)))
    n = other.shape[1]
    at_b, at_n, at_k = np.nonzero(other)
    each = np.arange(m)[:, None]
    out, into = (at_b * m + each) * n + at_n, (at_b * m + each) * k + at_k
    return boolean.times(boolean.from_pairs(out.ravel(), into.ravel(), (b * m * n, b * m * k)), rows)


def _groups_of_rows(sizes: Any, count: int) -> Any:
    """Return for each of ``count`` rows the number of its group, as an array (batch, count).

    ``sizes`` (batch, groups) are the numbers of consecutive rows in the groups. Rows after the last group get the
    number of groups.
    """
    ends = np.cumsum(np.maximum(sizes, 0), -1, dtype=np.int64)
    return (ends[:, None, :] <= np.arange(count)[:, None]).sum(-1)


@sparsity(ragged.grouped_rows_p)
def _grouped_rows(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of the product of each row with its group's matrix: find the inputs on which each element depends.

    The product is ``out[b, m, n] = sum(x[b, m, k] * y[b, group of m, k, n] for k)``; it is 0 for rows in no group.
    Return a list with the dependence matrix of ``out``.
    """
    x, y, sizes = operands
    (b, m, _), (_, g, _, n) = (v.aval.shape for v in eqn.invars[:2])
    parts = [blend(x, eqn.invars[0].aval.shape, (2,), (b, m, n))] if is_tangent(x) else []
    if not isinstance(sizes, np.ndarray):
        if is_tangent(y):
            summed = merged(y, eqn.invars[1].aval.shape, (1, 2))
            parts.append(boolean.select(summed, np.broadcast_to(numbers((b, 1, n)), (b, m, n))))
        return [boolean.union(parts)]
    group = _groups_of_rows(sizes, m)
    if is_tangent(y):
        summed = merged(y, eqn.invars[1].aval.shape, (2,))
        positions = (
            numbers((b, g, n))[np.arange(b)[:, None], np.minimum(group, g - 1)] if g else np.zeros((b, m, n), int)
        )
        parts.append(boolean.select(summed, positions))
    return [boolean.keep(boolean.union(parts), np.broadcast_to((group < g)[..., None], (b, m, n)))]


@sparsity(ragged.grouped_products_p)
def _grouped_products(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of a matrix product over the rows of each group: find the inputs on which each element depends.

    The product is ``out[b, g, k, n] = sum(x[b, m, k] * y[b, m, n] for m in group g)``. Return a list with the
    dependence matrix of ``out``.
    """
    *factors, sizes = operands
    to = eqn.outvars[0].aval.shape
    parts = []
    for which, rows in enumerate(factors):
        if not is_tangent(rows):
            continue
        b, m, k = eqn.invars[which].aval.shape
        own = (b, to[1], k)
        if isinstance(sizes, np.ndarray):
            group = _groups_of_rows(sizes, m)
            position = numbers((b, to[1] + 1, k))[np.arange(b)[:, None], group]
            summed = boolean.select(
                boolean.merge(rows, position, b * (to[1] + 1) * k), numbers((b, to[1] + 1, k))[:, :-1]
            )
        else:
            summed = boolean.select(merged(rows, (b, m, k), (1,)), np.broadcast_to(numbers((b, 1, k)), own))
        parts.append(boolean.select(summed, np.broadcast_to(np.expand_dims(numbers(own), 3 - which), to)))
    return [boolean.union(parts)]


@sparsity(convolution.conv_general_dilated_p)
def _convolution(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of convolutions: return a list with the dependence matrix of the result.

    The convolution is ``out[n, o, s] = sum(x[n', c, at(s, w)] * y[o, i, w])``, over the input features i of the kernel
    y and over its spatial offsets w. ``at(s, w)`` is the position in x of offset w in window s. The batch element n'
    and the feature c follow from n, o and i by the groups.
    """
    numbers_, groups = eqn.params["dimension_numbers"], eqn.params["feature_group_count"]
    shapes_ = [v.aval.shape for v in (*eqn.invars, *eqn.outvars)]
    (bx, cx, *space), (o, i, *window), (bo, _, *positions) = (
        [shape[a] for a in spec] for shape, spec in zip(shapes_, numbers_, strict=True)
    )
    # Pairs of batch element and feature of the operand, with the features of the kernel and result that they meet.
    at_b, at_o, at_i = (a.ravel() for a in np.indices((bo, o, i)))
    batch = at_o // (o // eqn.params["batch_group_count"]) * bo + at_b
    feature = at_o // (o // groups) * i + at_i
    features = at_b * o + at_o, batch * cx + feature, at_o * i + at_i
    terms: list[tuple[Any, Any, Any]] = [features]
    for axis, size in enumerate(positions):
        terms.append(_window_positions(size, space[axis], window[axis], *[v[axis] for v in eqn.params["geometry"]]))
    sizes = [(bo * o, bx * cx, o * i), *zip(positions, space, window, strict=True)]
    arranged = [_order(shape, spec) for shape, spec in zip(shapes_, numbers_, strict=True)]
    return _bilinear(terms, sizes, arranged, operands)


def _order(shape: Sequence[int], spec: Sequence[int]) -> Any:
    """Return the row-major numbers of the elements of an array, read with its axes in the order ``spec``."""
    return numbers(shape).transpose(spec).ravel()


def _window_positions(
    count: int, size: int, window: int, stride: int, padding: Any, base: int, step: int
) -> tuple[Any, Any, Any]:
    """Return all pairs of a window and an offset in it that read an element of the operand, along one spatial axis.

    Args:
      count: the number of windows.
      size: the size of the operand.
      window: the size of a window.
      stride: the distance between windows.
      padding: the padding before and after the operand.
      base, step: the dilation of the operand, and of the window.

    Returns:
      Three vectors: the window, the index in the operand, and the offset in the window.
    """
    s, w = (a.ravel() for a in np.indices((count, window)))
    at = s * stride - padding[0] + w * step
    inside = (at >= 0) & (at % base == 0) & (at // base < size)
    return s[inside], at[inside] // base, w[inside]


def _bilinear(terms: Any, sizes: Any, arranged: Any, operands: Sequence[Any]) -> list[Any]:
    """Return the dependence matrix of a sum of products: ``out[i] += x[j] * y[k]`` for all terms (i, j, k).

    Here i, j and k are multi-indices with equally many components. Terms are chosen separately for each component.

    Args:
      terms: for each component three vectors: the indices i, j and k of its terms.
      sizes: for each component the sizes of out, x and y along it.
      arranged: for x, y and out the row-major numbers of the elements, in the order of the multi-indices.
      operands: the abstract values of x and y.
    """
    parts = []
    for side in (0, 1):
        rows, other = operands[side], operands[1 - side]
        if not is_tangent(rows):
            continue
        rows = boolean.select(rows, arranged[side])
        if isinstance(other, np.ndarray) and not other.all():
            flat = [_flat([t[k] for t in terms], [s[k] for s in sizes]) for k in range(3)]
            there = other.ravel()[arranged[1 - side]][flat[2 - side]] != 0
            shape = tuple(math.prod(s[k] for s in sizes) for k in (0, side + 1))
            which = boolean.from_pairs(flat[0][there], flat[side + 1][there], shape)
        else:
            which = boolean.kron(
                [boolean.from_pairs(t[0], t[side + 1], (s[0], s[side + 1])) for t, s in zip(terms, sizes, strict=True)]
            )
        parts.append(boolean.times(which, rows))
    back = np.argsort(arranged[2])
    return [boolean.select(boolean.union(parts), back)]


def _flat(positions: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return the row-major numbers of all combinations of one position along each axis.

    Args:
      positions: for each axis a vector of positions.
      sizes: the size of each axis.
    """
    flat = np.zeros(1, np.int64)
    for position, size in zip(positions, sizes, strict=True):
        flat = (flat[:, None] * size + position).ravel()
    return flat


# Windows -------------------------------------------------------------------------------------------------------------


def _windows(windows: Any, shape: Sequence[int], counts: Sequence[int]) -> dict[int, Any]:
    """Return for each axis a boolean matrix (windows, indices) that is True where the window contains the index.

    Args:
      windows: five lists with an entry for each axis: the window's size, the stride, the padding, and the dilations of
        the operand and of the window.
      shape: the shape of the operand.
      counts: the number of windows along each axis.
    """
    sizes, *geometry = windows
    axes = {}
    for a, (count, size) in enumerate(zip(counts, shape, strict=True)):
        out, into, _ = _window_positions(count, size, sizes[a], *[v[a] for v in geometry])
        axes[a] = boolean.from_pairs(out, into, (count, size))
    return axes


@sparsity(window_reductions.reduce_window_sum_p)
@sparsity(window_reductions.take_chosen_p)
def _window_sum(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    """Sparsity rule of sums over windows: a result depends on all elements of its window.

    This is also the rule of operations that select one element of each window. Return a list with the dependence matrix
    of the results.
    """
    shape, counts = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    return [boolean.along(operands[0], shape, _windows(eqn.params["windows"], shape, counts))]


@sparsity(window_reductions.put_chosen_p)
def _put_chosen(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    counts, shape = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    axes = _windows(eqn.params["windows"], shape, counts)
    return [boolean.along(operands[0], counts, {a: m.T.tocsr() for a, m in axes.items()})]


# Transforms and solves -----------------------------------------------------------------------------------------------


def blend(rows: Any, shape: Sequence[int], axes: Sequence[int], to: Sequence[int] | None = None) -> Any:
    """Return the dependence matrix of an operation that mixes all elements along some axes of an array.

    Args:
      rows: the dependence matrix of the array.
      shape: the shape of the array.
      axes: the axes along which each result depends on all elements.
      to: the shape of the result; None if it is ``shape``.
    """
    to = shape if to is None else to
    once = [1 if a in axes else n for a, n in enumerate(shape)]
    return boolean.select(merged(rows, shape, axes), np.broadcast_to(numbers(once), to))


@sparsity(recursive_filter.recursive_filter_p)
def _filter(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    shape = eqn.outvars[0].aval.shape
    rows = spread(operands[1], eqn.invars[1].aval.shape, shape)
    return [boolean.along(rows, shape, {len(shape) - 1: _running(shape[-1], eqn.params["reverse"])})]


def _solved(
    axis: Callable[[dict[str, Any]], int], walk: Interpretation, eqn: Eqn, operands: Sequence[Any]
) -> list[Any]:
    """Sparsity rule of linear systems: return a list with the dependence matrix of the solution.

    An element of the solution depends on all elements of the right-hand side along one axis. If a matrix depends on
    inputs, each element depends on all inputs of all operands.

    Args:
      axis: returns this axis, counted from the end, from the parameters of the operation.
      walk: the interpreter.
      eqn: the equation.
      operands: the abstract values of the matrices, followed by that of the right-hand side.
    """
    *matrices, rows = operands
    shape = eqn.invars[-1].aval.shape
    if any(map(is_tangent, matrices)):  # a derivative is not linear in the matrix
        return [boolean.everything([x for x in operands if is_tangent(x)], math.prod(shape))]
    return [blend(rows, shape, (len(shape) + axis(eqn.params),))]


for _p in (lu.linear_solve_p, tridiagonal.tridiagonal_solve_p, householder.ormqr_p):
    sparsity(_p)(partial(_solved, lambda params: -2))
sparsity(linalg.triangular_solve_p)(partial(_solved, lambda params: -2 if params["left_side"] else -1))

# Along named axes -----------------------------------------------------------------------------------------------------

# The derivative has the same direction at each index of a named axis, so that a value from another index has the same
# dependence as here: a sum over a named axis, or a permutation of it, keeps the pattern.


def _scattered(rows: Any, shape: Shape, dimension: int, size: int, tiled: bool) -> tuple[Any, Shape]:
    """Return the dependence matrix and the shape of one slice of an array that is split into ``size`` slices.

    The index along a named axis decides which slice this is. So the matrix is the union over all slices.

    Args:
      rows: the dependence matrix of the array.
      shape: the shape of the array.
      dimension: the dimension that is split.
      size: the number of slices.
      tiled: whether a slice keeps the dimension; otherwise the dimension is dropped.
    """
    divided = (*shape[:dimension], size, *([shape[dimension] // size] if tiled else []), *shape[dimension + 1 :])
    return merged(rows, divided, (dimension,)), (*divided[:dimension], *divided[dimension + 1 :])


def _gathered(rows: Any, shape: Shape, dimension: int, size: int, tiled: bool) -> Any:
    """Return the dependence matrix of ``size`` arrays, one for each index of a named axis, combined along a dimension.

    Args:
      rows: the dependence matrix of each array.
      shape: the shape of each array.
      dimension: the dimension along which they are combined.
      size: the number of arrays.
      tiled: whether they are concatenated; otherwise they are stacked.
    """
    own = numbers(shape)
    return boolean.select(rows, np.concatenate([own] * size, dimension) if tiled else np.stack([own] * size, dimension))


@sparsity(collectives.reduce_scatter_p)
def _reduce_scatter(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    size, dimension, tiled = (eqn.params[k] for k in ("axis_size", "dimension", "tiled"))
    return [_scattered(operands[0], eqn.invars[0].aval.shape, dimension, size, tiled)[0]]


@sparsity(collectives.all_gather_invariant_p)
@sparsity(collectives.all_gather_p)
def _all_gather(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    size, dimension, tiled = (eqn.params[k] for k in ("axis_size", "dimension", "tiled"))
    return [_gathered(operands[0], eqn.invars[0].aval.shape, dimension, size, tiled)]


@sparsity(collectives.all_to_all_p)
def _all_to_all(walk: Interpretation, eqn: Eqn, operands: Sequence[Any]) -> list[Any]:
    size, tiled = eqn.params["axis_size"], eqn.params["tiled"]
    rows, shape = _scattered(operands[0], eqn.invars[0].aval.shape, eqn.params["split_axis"], size, tiled)
    return [_gathered(rows, shape, eqn.params["concat_axis"], size, tiled)]


# With masked zeros these replace products and solves.
for _p in (
    elementwise.mul_p, contraction.dot_general_p, convolution.conv_general_dilated_p,
    lu.linear_solve_p, linalg.triangular_solve_p, tridiagonal.tridiagonal_solve_p, reductions.linear_recurrence_p,
    recursive_filter.recursive_filter_p, ragged.grouped_rows_p, ragged.grouped_products_p,
):  # fmt: skip
    _masked, _rule = _p.masked, sparsity.of(_p)
    assert _masked is not None
    assert _rule is not None
    sparsity(_masked)(_rule)
