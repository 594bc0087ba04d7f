"""Functions of ragged arrays row by row: concatenation, products, attention, and ``vmap``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback import nn
from pullback.core import tree
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import OperandError, ShapeError, StaticArgumentError
from pullback.numpy.promotion import quote
from pullback.ragged import layout
from pullback.ragged.arrays import Ragged, _check_lengths
from pullback.transforms.autodiff import tracing
from pullback.transforms.autodiff import vmap as mapping
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct


def concatenate(arrays: Sequence[Ragged]) -> Ragged:
    """Join the rows of several arrays to one array.

    Args:
      arrays: at least one ragged array; their elements have one shape.

    Returns:
      A ragged array with all rows, in order, of the dtype to which the arrays are promoted.

    Raises:
      OperandError: an element of ``arrays`` is no ragged array, or there is none (a TypeError).
      ShapeError: the elements have unequal shapes (a TypeError and a ValueError).

    >>> from pullback.ragged import Ragged, concatenate
    >>> concatenate([Ragged.from_list([[1, 2]]), Ragged.from_list([[], [3]])])
    Ragged([[1, 2], [], [3]], dtype=int32)
    """
    parts = list(arrays)
    for x in parts:
        _ragged("concatenate", x)
    if not parts:
        raise OperandError("ragged.concatenate: expected at least one array, got none")
    if bad := [x.element_shape for x in parts if x.element_shape != parts[0].element_shape]:
        raise ShapeError(
            f"ragged.concatenate: the elements must have one shape, got {parts[0].element_shape} and {bad[0]}"
        )
    counts = [layout.known(x.lengths) for x in parts]
    bounds = [x.max_length for x in parts]
    static = all(n is not None for n in counts)
    longest = None if None in bounds else max(n for n in bounds if n is not None)
    if static:
        used = [x.values[: n.sum()] for x, n in zip(parts, counts, strict=True) if n is not None]
        return Ragged(pnp.concatenate(used), np.concatenate(counts), max_length=longest)  # type: ignore[arg-type]
    values = pnp.concatenate([x.values for x in parts])
    starts = np.cumsum([0, *[x.capacity for x in parts[:-1]]]).astype(np.int32)
    first = pnp.concatenate([layout.ends(x.lengths) - x.lengths + n for x, n in zip(parts, starts, strict=True)])
    lengths = pnp.concatenate([pnp.asarray(x.lengths) for x in parts])
    numbers = layout.row_numbers(lengths, len(values))
    source = layout.offsets(lengths, numbers, len(values)) + first.take(numbers, mode="clip")
    return Ragged(values.take(source, axis=0, mode="clip"), lengths, max_length=longest)


def contract(x: Ragged, y: Ragged) -> Array:
    """Sum the outer products of corresponding elements over each row.

    Args:
      x: a ragged array with elements of shape (n,).
      y: a ragged array of the same lengths, with elements of shape (m,).

    Returns:
      An array of shape (rows, n, m): for each row ``x[i].T @ y[i]``, zeros if it has no elements.

    Raises:
      OperandError: an operand is not ragged (a TypeError).
      ShapeError: the lengths differ, or elements are not vectors (a TypeError and a ValueError).

    >>> from pullback.ragged import Ragged, contract
    >>> x = Ragged.from_list([[[1.0], [2.0]], [[3.0]]])
    >>> print(contract(x, x))
    [[[5.]]
    <BLANKLINE>
     [[9.]]]
    """
    for operand in (x, y):
        _vectors("contract", _ragged("contract", operand), 1)
    _check_lengths(x, y)
    longest = min(x.longest("contract"), y.longest("contract"))
    return pnp.einsum("rln,rlm->rnm", x.to_padded(0, longest), y.to_padded(0, longest))


def dot_product_attention(
    query: Ragged, key: Ragged, value: Ragged, *, scale: ArrayLike | None = None, is_causal: bool = False
) -> Ragged:
    """Compute ``softmax(query @ key.T * scale) @ value`` for each row, and each head.

    Row ``i`` of the queries attends to row ``i`` of the keys. Rows are padded to the longest.

    Args:
      query: a ragged array with elements of shape (heads, n), or (n,) for one head.
      key: a ragged array of as many rows, with elements of the same shape, or of fewer heads as in
        :func:`pullback.nn.dot_product_attention`.
      value: a ragged array with the lengths and the element shape of ``key``.
      scale: a number; by default ``1 / sqrt(n)``.
      is_causal: whether an element attends to the keys up to its own position only.

    Returns:
      A ragged array with the lengths of ``query`` and the elements of ``value``; zeros where a row has no keys.

    Raises:
      OperandError: an operand is not ragged (a TypeError).
      ShapeError: shapes or lengths do not fit each other (a TypeError and a ValueError).
      StaticArgumentError: the lengths are traced, and an operand has no ``max_length`` (a TypeError and a ValueError).

    >>> from pullback.ragged import Ragged, dot_product_attention
    >>> q, k = Ragged.from_list([[[1.0]], [[1.0], [2.0]]]), Ragged.from_list([[[0.0], [0.0]], [[5.0]]])
    >>> v = Ragged.from_list([[[2.0], [4.0]], [[7.0]]])
    >>> dot_product_attention(q, k, v).to_list()
    [[[3.0]], [[7.0], [7.0]]]
    """
    for x in (query, key, value):
        _ragged("dot_product_attention", x)
    if query.rows != key.rows or len(query.element_shape) not in (1, 2):
        raise ShapeError(
            f"ragged.dot_product_attention: expected as many rows of keys as of queries, and elements of shape "
            f"(heads, n) or (n,), got {query.rows} and {key.rows} rows, elements of shape {query.element_shape}"
        )
    _check_lengths(key, value)
    single = len(query.element_shape) == 1
    q, k, v = [x.to_padded(0)[:, :, None] if single else x.to_padded(0) for x in (query, key, value)]
    if not (q.size and k.size):
        shape = (
            (query.capacity, *value.element_shape)
            if single
            else (query.capacity, *query.element_shape[:1], v.shape[-1])
        )
        return query.with_values(pnp.zeros(shape, v.dtype))
    column = np.arange(k.shape[1])
    inside = pnp.asarray(column < key.lengths[:, None])[:, None, None, :]
    # A row without keys has equal weights for its padding, which is zeros.
    out = nn.dot_product_attention(q, k, v, mask=inside, scale=scale, is_causal=is_causal)
    return Ragged.from_padded(out[:, :, 0] if single else out, query.lengths, capacity=query.capacity)


def vmap(function: Callable[..., Any], *, padded: bool = False) -> Callable[..., Any]:
    """Return a function that applies ``function`` to each row of ragged arrays.

    Rows of equal length are mapped together, so that ``function`` gets rows as they are, without padding. While the
    lengths are traced this is impossible: write ``padded=True``.

    Args:
      function: takes a row of each ragged operand, of shape (length, *element), and a row of each dense one. Its
        results are trees of arrays.
      padded: whether the rows are padded to the longest with zeros, and mapped all together. Then ``function`` takes
        one more argument, the last: which elements are there, booleans of shape (longest,).

    Returns:
      A function of ragged arrays of equal lengths, and of dense arrays with an axis of the rows in front. Results whose
      first axis is as long as the row are joined to ragged arrays, others are stacked along a new first axis.

    Raises:
      OperandError: no operand is ragged (a TypeError).
      ShapeError: the lengths, or the numbers of rows, differ (a TypeError and a ValueError).
      StaticArgumentError: the lengths are traced, and ``padded`` is False or an operand has no ``max_length`` (a
        TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import ragged
    >>> x = ragged.Ragged.from_list([[3.0, 1.0], [2.0], [5.0, 4.0]])
    >>> ragged.vmap(jnp.sort)(x)
    Ragged([[1., 3.], [2.], [4., 5.]], dtype=float32)
    >>> print(ragged.vmap(jnp.median)(x))
    [2.  2.  4.5]
    """
    require_function("ragged.vmap", "function", function)

    def mapped(*operands: Any) -> Any:
        arrays = [x for x in operands if isinstance(x, Ragged)]
        if not arrays:
            raise OperandError(f"ragged.vmap: expected a Ragged among the operands, got {quote(operands)}")
        for x in arrays[1:]:
            _check_lengths(arrays[0], x)
        dense = [x if isinstance(x, Ragged) else pnp.asarray(x) for x in operands]
        if bad := [x.shape for x in dense if not isinstance(x, Ragged) and x.shape[:1] != (arrays[0].rows,)]:
            raise ShapeError(f"ragged.vmap: expected {arrays[0].rows} rows, got an array of shape {bad[0]}")
        return (_all_together if padded else _by_length)(function, arrays[0], dense)

    return mapped


def _all_together(function: Callable[..., Any], like: Ragged, operands: list[Any]) -> Any:
    longest = like.longest("vmap")
    given = [x.to_padded(0, longest) if isinstance(x, Ragged) else x for x in operands]
    inside = pnp.asarray(np.arange(longest) < like.lengths[:, None])
    results = mapping.vmap(function)(*given, inside)
    ragged = _as_long_as_the_row(function, operands, mask=True)
    join = lambda long, x: Ragged.from_padded(x, like.lengths, capacity=like.capacity) if long else x
    return tree.tree_map(join, ragged, results)


def _by_length(function: Callable[..., Any], like: Ragged, operands: list[Any]) -> Any:
    counts = layout.known(like.lengths)
    if counts is None:
        raise StaticArgumentError(
            "ragged.vmap: the lengths are traced, so that rows of equal length are unknown; write padded=True, and a "
            "function that takes the mask of the elements that are there, or map outside of jit"
        )
    ragged = _as_long_as_the_row(function, operands)
    groups = [np.flatnonzero(counts == n) for n in np.unique(counts)]
    results = [mapping.vmap(function)(*[_rows_of(x, group) for x in operands]) for group in groups]
    if not results:
        shapes = tracing.eval_shape(function, *[_row(x, 0) for x in operands])
        join = lambda long, s: _none(s, like) if long else pnp.zeros((0, *s.shape), s.dtype)
        return tree.tree_map(join, ragged, shapes)
    order = np.concatenate(groups)
    back = np.argsort(order, kind="stable")

    def join_all(long: bool, *parts: Any) -> Any:
        if not long:
            return pnp.concatenate(parts)[back]
        flat = pnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in parts])
        return Ragged(flat, counts[order], max_length=like.max_length).take(back)

    return tree.tree_map(join_all, ragged, *results)


def _none(shape: Any, like: Ragged) -> Ragged:
    return Ragged(pnp.zeros((0, *shape.shape[1:]), shape.dtype), np.zeros(0, np.int32), max_length=like.max_length)


def _rows_of(x: Any, group: np.ndarray[Any, Any]) -> Any:
    if not isinstance(x, Ragged):
        return x[group]
    length = int(np.asarray(x.lengths)[group[0]])
    return x.take(group).values.reshape(len(group), length, *x.element_shape)


def _row(x: Any, length: int) -> ShapeDtypeStruct:
    shape = (length, *x.element_shape) if isinstance(x, Ragged) else x.shape[1:]
    return ShapeDtypeStruct(shape, x.dtype)


def _as_long_as_the_row(function: Callable[..., Any], operands: list[Any], mask: bool = False) -> Any:
    """Return which results grow with the row: their shapes are compared for two lengths."""
    found = []
    for length in (2, 3):
        rows = [_row(x, length) for x in operands]
        found.append(tracing.eval_shape(function, *rows, *[ShapeDtypeStruct((length,), np.bool_)] * mask))
    return tree.tree_map(lambda a, b: bool(a.shape[:1] == (2,) and b.shape[:1] == (3,)), *found)


def _ragged(name: str, x: Any) -> Ragged:
    if not isinstance(x, Ragged):
        raise OperandError(f"ragged.{name}: expected a Ragged, got {quote(x)} of type {type(x).__name__}")
    return x


def _vectors(name: str, x: Ragged, rank: int) -> None:
    if len(x.element_shape) != rank:
        raise ShapeError(f"ragged.{name}: elements must be vectors, got elements of shape {x.element_shape}")
