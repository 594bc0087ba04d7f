"""The class of arrays whose rows have unequal lengths: construction, conversions, operators and reductions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes, tree
from pullback.core.annotations import DTypeLike, PyTree
from pullback.core.arguments import require_function, typed
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import (
    ArgumentError,
    DtypeError,
    IndexingError,
    OperandError,
    ShapeError,
    StaticArgumentError,
    UnsupportedArgumentError,
)
from pullback.core.tree_nodes import register_pytree_node_class
from pullback.numpy.promotion import axis_index, quote
from pullback.ragged import layout, segments


def _operators(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return an operator's method and its reflected method."""

    def method(self: Any, other: Any) -> Any:
        return elementwise(function)(self, other) if _is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return elementwise(function)(other, self) if _is_operand(other) else NotImplemented

    return method, reflected


def _is_operand(x: Any) -> bool:
    return isinstance(x, (Ragged, Array, np.ndarray, np.generic, int, float, complex))


def _reduction(name: str, what: str, empty: str) -> Any:
    """Return the method of a reduction."""

    def method(self: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        return self._reduced(name, axis, keepdims)

    method.__name__ = name
    method.__qualname__ = f"Ragged.{name}"
    method.__doc__ = f"""Return {what} of each row, or along another axis.

        Args:
          axis: 1 for the rows, an axis of an element, or None for all elements.
          keepdims: whether a reduced axis stays, with size 1.

        Returns:
          A dense array of shape (rows, *element) for axis 1, a number for None, else a ragged array. A row without
          elements has {empty}.

        Raises:
          UnsupportedArgumentError: ``axis`` is 0: rows of unequal lengths have no common positions (a
            NotImplementedError).
        """
    return method


@register_pytree_node_class
class Ragged:
    """An array whose rows have unequal lengths: the values of all rows one after another, and the length of each row.

    It stands for an array of shape ``(rows, length of the row, *element)``. Operators and :func:`elementwise` treat
    it so: a dense operand broadcasts against this shape, with size 1 along the axis of the lengths. Reductions along
    axis 1 return one value for each row.

    It is a pytree with two leaves, ``values`` and ``lengths``. So ``jit`` takes it as an argument and compiles once for
    all lengths of one number of values and rows. Gradients are with respect to the values: write
    ``grad(lambda values: f(x.with_values(values)))(x.values)``.

    Args:
      values: an array of shape (capacity, *element): the elements of the first row, of the second, and so on. Values
        after the last row are padding, which nothing reads.
      lengths: integers of shape (rows,), none negative: the length of each row. Their sum is at most ``capacity``.
      max_length: a bound of the lengths, a static integer, for :meth:`to_padded` while the lengths are traced. If a
        traced length is greater, the row is NaN there (the lowest integer, or False).

    Raises:
      ShapeError: ``values`` has no axis, ``lengths`` not one, or the rows have more elements than there are values (a
        TypeError and a ValueError).
      DtypeError: ``lengths`` are not integers (a TypeError).
      ArgumentError: a length is negative, or above ``max_length`` (a TypeError and a ValueError).

    Attributes:
      values: the values.
      lengths: the lengths.
      max_length: the bound, or None.

    >>> import pullback.numpy as jnp
    >>> from pullback.ragged import Ragged
    >>> x = Ragged.from_list([[1.0, 2.0], [], [3.0]])
    >>> x * 10
    Ragged([[10., 20.], [], [30.]], dtype=float32)
    >>> print(x.sum(axis=1), x.softmax().to_padded()[0])
    [3. 0. 3.] [0.2689414 0.7310586]
    """

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100  # NumPy's arrays defer operators to this class
    values: Array
    lengths: Array
    max_length: int | None

    def __init__(self, values: ArrayLike, lengths: ArrayLike, *, max_length: int | None = None) -> None:
        self.values, self.lengths, self.max_length = _array("values", values), _array("lengths", lengths), max_length
        if self.values.ndim == 0:
            raise ShapeError(f"Ragged: values must have at least one axis, (capacity, *element), got {self.values!r}")
        if self.lengths.ndim != 1:
            raise ShapeError(f"Ragged: lengths must have shape (rows,), got shape {self.lengths.shape}")
        if not dtypes.is_integer(self.lengths.dtype):
            raise DtypeError(f"Ragged: lengths must be integers, got {self.lengths.dtype}")
        if max_length is not None:
            self.max_length = max_length = operator.index(max_length)
        host = layout.known(self.lengths)
        if host is None:
            return
        if host.size and host.min() < 0:
            raise ArgumentError(f"Ragged: lengths must not be negative, got {quote(host)}")
        if host.sum() > len(self.values):
            raise ShapeError(f"Ragged: the lengths sum to {host.sum()}, but there are only {len(self.values)} values")
        if max_length is not None and host.size and host.max() > max_length:
            raise ArgumentError(f"Ragged: a row has {host.max()} elements, more than max_length={max_length}")

    # Construction and conversion ------------------------------------------------------------------------------------

    @classmethod
    def from_list(cls, rows: Sequence[Any], dtype: DTypeLike = None, *, max_length: int | None = None) -> Self:
        """Join rows to a ragged array.

        Args:
          rows: a sequence of arrays, or of nested lists, of shapes (length, *element). Rows without elements may be [].
          dtype: the dtype of the result; by default that to which the rows are promoted.
          max_length: as for :class:`Ragged`.

        Returns:
          A ragged array with a row for each.

        Raises:
          ShapeError: the elements of the rows have unequal shapes (a TypeError and a ValueError).

        >>> from pullback.ragged import Ragged
        >>> Ragged.from_list([[1, 2], [3]])
        Ragged([[1, 2], [3]], dtype=int32)
        """
        arrays = [_array(f"row {i}", row) for i, row in enumerate(rows)]
        if any(row.ndim == 0 for row in arrays):
            raise ShapeError(f"Ragged.from_list: rows must be sequences, got {quote(rows)}")
        full = [row for row in arrays if row.size or row.ndim > 1] or arrays[:1] or [pnp.zeros(0)]
        element = full[0].shape[1:]
        if bad := [row.shape for row in full if row.shape[1:] != element]:
            raise ShapeError(
                f"Ragged.from_list: the elements of all rows must have one shape, got rows of shapes "
                f"{full[0].shape} and {bad[0]}"
            )
        values = pnp.concatenate(full)
        lengths = np.array([len(row) for row in arrays], np.int32)
        return cls(values if dtype is None else values.astype(dtype), lengths, max_length=max_length)

    @classmethod
    def from_padded(cls, padded: ArrayLike, lengths: ArrayLike, *, capacity: int | None = None) -> Self:
        """Return the first elements of each row of an array.

        Args:
          padded: an array of shape (rows, longest, *element).
          lengths: integers of shape (rows,): how many elements of each row to take, at most ``longest``.
          capacity: the number of values of the result; by default the sum of the lengths, or rows times ``longest``
            while the lengths are traced.

        Returns:
          A ragged array with ``max_length=longest``.

        Raises:
          ShapeError: ``padded`` has less than two axes, or another number of rows than ``lengths`` (a TypeError and a
            ValueError).
          ArgumentError: a length is greater than ``longest`` (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> from pullback.ragged import Ragged
        >>> Ragged.from_padded(jnp.array([[1, 2], [3, 0]]), jnp.array([2, 1]))
        Ragged([[1, 2], [3]], dtype=int32)
        """
        x, counts = _array("padded", padded), _array("lengths", lengths)
        if x.ndim < 2 or counts.shape != x.shape[:1]:
            raise ShapeError(
                f"Ragged.from_padded: expected an array of shape (rows, longest, *element) and lengths of shape "
                f"(rows,), got shapes {x.shape} and {counts.shape}"
            )
        rows, longest = x.shape[:2]
        host = layout.known(counts)
        if capacity is None:
            capacity = rows * longest if host is None else int(host.sum())
        if host is not None and host.size and host.max() > longest:
            raise ArgumentError(f"Ragged.from_padded: a length is {host.max()}, but rows have {longest} elements")
        numbers = layout.row_numbers(counts if host is None else host, capacity)
        within = layout.offsets(counts if host is None else host, numbers, capacity)
        flat = x.reshape(rows * longest, *x.shape[2:])
        return cls(flat.take(numbers * longest + within, axis=0, mode="clip"), counts, max_length=longest)

    @classmethod
    def from_awkward(cls, array: Any, *, max_length: int | None = None) -> Self:
        """Convert an array of Awkward Array, of type ``rows * var * number`` or with regular axes within.

        Args:
          array: an ``awkward.Array``.
          max_length: as for :class:`Ragged`.

        Returns:
          A ragged array of the same rows.

        Raises:
          ShapeError: the rows have rows of unequal lengths themselves (a TypeError and a ValueError).
        """
        import awkward  # an optional dependency

        counts = awkward.to_numpy(awkward.num(array, axis=1)).astype(np.int32)
        try:
            values = awkward.to_numpy(awkward.flatten(array, axis=1))
        except ValueError as error:
            raise ShapeError(f"Ragged.from_awkward: only the second axis may be ragged, got {array.type}") from error
        return cls(values, counts, max_length=max_length)

    def to_awkward(self) -> PyTree:
        """Convert to an array of Awkward Array."""
        import awkward

        counts = self._lengths("to_awkward")
        return awkward.unflatten(np.asarray(self.values)[: counts.sum()], counts)

    def to_list(self) -> list[PyTree]:
        """Return the rows as nested lists of Python's numbers."""
        return [row.tolist() for row in self]

    def to_padded(self, fill_value: ArrayLike = 0, max_length: int | None = None) -> Array:
        """Return a dense array that has the elements of each row first.

        Args:
          fill_value: what stands after the last element of each row.
          max_length: the size of the second axis; by default the length of the longest row, or ``self.max_length``
            while the lengths are traced.

        Returns:
          An array of shape (rows, max_length, *element).

        Raises:
          StaticArgumentError: the lengths are traced, and there is no ``max_length`` (a TypeError and a ValueError).
          ArgumentError: a row is longer than ``max_length`` (a TypeError and a ValueError).

        >>> from pullback.ragged import Ragged
        >>> print(Ragged.from_list([[1, 2], [3]]).to_padded(-1))
        [[ 1  2]
         [ 3 -1]]
        """
        host = layout.known(self.lengths)
        longest = self.longest("to_padded") if max_length is None else operator.index(max_length)
        if host is not None and host.size and host.max() > longest:
            raise ArgumentError(f"Ragged.to_padded: a row has {host.max()} elements, more than max_length={longest}")
        if not self.capacity:
            return pnp.full((self.rows, longest, *self.element_shape), fill_value, self.dtype)
        at, inside = layout.grid(self.lengths if host is None else host, longest)
        padded = self.values.take(at, axis=0, mode="clip")
        out = pnp.where(layout.spread(inside, padded), padded, pnp.asarray(fill_value, self.dtype))
        if host is not None:
            return out
        return pnp.where(layout.spread(self.lengths > longest, out), segments.unknown(self.dtype), out)

    def with_values(self, values: ArrayLike) -> Self:
        """Return an array with the same lengths and other values.

        Args:
          values: an array of shape (capacity, ...).

        Returns:
          A ragged array.

        Raises:
          ShapeError: there are more or fewer values (a TypeError and a ValueError).
        """
        new = _array("values", values)
        if new.shape[:1] != (self.capacity,):
            raise ShapeError(f"Ragged.with_values: expected {self.capacity} values, got an array of shape {new.shape}")
        return self._like(new)

    def _like(self, values: Any) -> Self:
        return type(self).tree_unflatten(self.max_length, (values, self.lengths))

    def tree_flatten(self) -> tuple[tuple[PyTree, ...], PyTree]:
        """Return the values and the lengths, and the bound of the lengths."""
        return (self.values, self.lengths), self.max_length

    @classmethod
    def tree_unflatten(cls, static: PyTree, leaves: PyTree) -> Self:
        """Rebuild the array from leaves of any type, without checks."""
        out = object.__new__(cls)
        (out.values, out.lengths), out.max_length = leaves, static
        return out

    # What it is -----------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.lengths.shape[0])

    @property
    def capacity(self) -> int:
        """The number of values, with those that are padding."""
        return int(self.values.shape[0])

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The shape of an element of a row."""
        return tuple(self.values.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes: that of the rows, that of their lengths, and those of an element."""
        return self.values.ndim + 1

    @property
    def row_numbers(self) -> Array:
        """The number of the row of each value, of shape (capacity,); for padding, the number of rows."""
        return pnp.asarray(self._numbers())

    def _numbers(self) -> Any:
        return layout.row_numbers(self.lengths, self.capacity)

    def _padding(self, numbers: Any) -> Any:
        """Return where values are padding, of the shape of values with axes of size 1; or None if none is."""
        host = layout.known(self.lengths)
        if host is not None and host.sum() == self.capacity:
            return None
        return layout.spread(pnp.asarray(numbers == self.rows), self.values)

    def longest(self, name: str = "longest") -> int:
        """Return the length of the longest row, or the bound of the lengths while they are traced.

        Args:
          name: the method that asks, for the error.

        Raises:
          StaticArgumentError: the lengths are traced, and there is no bound (a TypeError and a ValueError).
        """
        host = layout.known(self.lengths)
        if host is not None:
            return int(host.max()) if host.size else 0
        if self.max_length is None:
            raise StaticArgumentError(
                f"Ragged.{name}: the lengths are traced, so that the longest row is unknown; give a bound "
                "where the array is made, Ragged(values, lengths, max_length=...)"
            )
        return self.max_length

    def _lengths(self, name: str) -> np.ndarray[Any, Any]:
        host = layout.known(self.lengths)
        if host is None:
            raise StaticArgumentError(
                f"Ragged.{name} needs the lengths, which are traced here: the shape of its result depends on them. "
                "Use to_padded() within jit, or call this outside of it"
            )
        return host

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Array]:
        counts = self._lengths("__iter__")
        stops = np.cumsum(counts)
        return (self.values[stop - n : stop] for n, stop in zip(counts.tolist(), stops.tolist(), strict=True))

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            if layout.known(self.lengths) is None or self.rows > 20 or self.capacity > 200:
                bound = "" if self.max_length is None else f", max_length={self.max_length}"
                return f"{name}({self.dtype}, rows={self.rows}, values={tuple(self.values.shape)}{bound})"
            shown = ", ".join(np.array2string(np.asarray(row), separator=", ") for row in self)
            return f"{name}([{shown}], dtype={self.dtype})"
        except (AttributeError, TypeError, ValueError):  # a tree whose leaves are no arrays
            return f"{name}({self.values!r}, {self.lengths!r})"

    def __getitem__(self, index: Any) -> Any:
        """Return a row as a dense array, for an integer; or some rows, for a slice, integers or booleans."""
        if isinstance(index, tuple):
            raise IndexingError(
                f"a Ragged is indexed by rows alone, got {quote(index)}; index its values for parts of all elements: "
                "x.with_values(x.values[:, 0])"
            )
        counts = self._lengths("__getitem__")
        chosen = np.arange(self.rows)[index if isinstance(index, slice) else np.asarray(index)]
        if chosen.ndim == 0:
            stop = int(counts[: chosen + 1].sum())
            return self.values[stop - int(counts[chosen]) : stop]
        return self.take(chosen)

    # Rows -----------------------------------------------------------------------------------------------------------

    def take(self, rows: ArrayLike, *, capacity: int | None = None) -> Self:
        """Return some rows, in the order in which they are named.

        Args:
          rows: integers of shape (n,), from 0 to the number of rows.
          capacity: the number of values of the result; by default as many as the rows have, or while lengths or rows
            are traced as many as this array has, which must be enough.

        Returns:
          A ragged array of n rows.

        Raises:
          ShapeError: ``rows`` has not one axis (a TypeError and a ValueError).
          IndexingError: a number is out of range (an IndexError).

        >>> from pullback.ragged import Ragged
        >>> Ragged.from_list([[1, 2], [3], []]).take([2, 0])
        Ragged([[], [1, 2]], dtype=int32)
        """
        wanted = _array("rows", rows)
        if wanted.ndim != 1 or not (dtypes.is_integer(wanted.dtype) or not wanted.size):
            raise ShapeError(f"Ragged.take: rows must be integers of shape (n,), got {typed(rows)}")
        chosen: Any = layout.known(wanted)
        host: Any = layout.known(self.lengths)
        if chosen is not None:
            chosen = chosen.astype(np.int32)
            if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.rows:
                raise IndexingError(f"Ragged.take: rows must be from 0 to {self.rows - 1}, got {quote(rows)}")
        static = chosen is not None and host is not None
        given, numbers = (host, chosen) if static else (self.lengths, wanted.astype(np.int32))
        counts = given[numbers]
        if capacity is None:
            capacity = int(counts.sum()) if static else self.capacity
        new = layout.row_numbers(counts, capacity)
        xp = np if static else pnp
        start = (layout.ends(given) - given)[numbers]
        source = layout.offsets(counts, new, capacity) + (start[xp.minimum(new, len(start) - 1)] if len(start) else 0)
        values = self.values.take(source, axis=0, mode="clip") if self.capacity else self.values
        return type(self)(values, counts, max_length=self.max_length)

    # Operators ------------------------------------------------------------------------------------------------------

    def astype(self, dtype: DTypeLike) -> Self:
        """Return the array with its values converted to a dtype."""
        return self._like(self.values.astype(dtype))

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Ragged):
            return NotImplemented
        if not self.element_shape:
            raise ShapeError("Ragged @ array needs elements with an axis, (rows, length, n), but these are numbers")
        return self._like(self.values @ other)

    def __abs__(self) -> Self:
        return self._like(abs(self.values))

    def __neg__(self) -> Self:
        return self._like(-self.values)

    def __invert__(self) -> Self:
        return self._like(~self.values)

    __add__, __radd__ = _operators(operator.add)
    __sub__, __rsub__ = _operators(operator.sub)
    __mul__, __rmul__ = _operators(operator.mul)
    __truediv__, __rtruediv__ = _operators(operator.truediv)
    __floordiv__, __rfloordiv__ = _operators(operator.floordiv)
    __mod__, __rmod__ = _operators(operator.mod)
    __pow__, __rpow__ = _operators(operator.pow)
    __and__, __rand__ = _operators(operator.and_)
    __or__, __ror__ = _operators(operator.or_)
    __xor__, __rxor__ = _operators(operator.xor)
    __lt__, __gt__ = _operators(operator.lt)[0], _operators(operator.gt)[0]
    __le__, __ge__ = _operators(operator.le)[0], _operators(operator.ge)[0]
    __eq__, __ne__ = _operators(operator.eq)[0], _operators(operator.ne)[0]

    # Reductions -----------------------------------------------------------------------------------------------------

    sum = _reduction("sum", "the sum", "0")
    prod = _reduction("prod", "the product", "1")
    max = _reduction("max", "the greatest element", "the lowest number of the dtype, -inf")
    min = _reduction("min", "the smallest element", "the greatest number of the dtype, inf")
    mean = _reduction("mean", "the mean", "NaN")
    var = _reduction("var", "the variance, without a correction,", "NaN")
    std = _reduction("std", "the standard deviation, without a correction,", "NaN")
    any = _reduction("any", "whether any element is true", "False")
    all = _reduction("all", "whether all elements are true", "True")
    logsumexp = _reduction("logsumexp", "the logarithm of the sum of exponentials", "-inf")

    def softmax(self) -> Self:
        """Return exp(x) divided by its sum over the row, for each element.

        >>> from pullback.ragged import Ragged
        >>> Ragged.from_list([[0.0, 0.0], [1.0]]).softmax()
        Ragged([[0.5, 0.5], [1.]], dtype=float32)
        """
        return self._like(segments.softmax(self._over_rows(), self.values))

    def log_softmax(self) -> Self:
        """Return the logarithm of :meth:`softmax`."""
        return self._like(segments.log_softmax(self._over_rows(), self.values))

    def _over_rows(self) -> segments.OfRows:
        numbers = self._numbers()
        return segments.OfRows(numbers, self._padding(numbers), self.lengths)

    def _reduced(self, name: str, axis: Any, keepdims: bool) -> Any:
        position = None if axis is None else axis_index(axis, self.ndim, name)
        if position is None:
            out = segments.OVER[name](segments.OfAll(self._padding(self._numbers()), self.lengths), self.values)
            return out.reshape((1,) * self.ndim) if keepdims else out
        if position == 0:
            raise UnsupportedArgumentError(
                f"Ragged.{name}: along axis 0 there is nothing to reduce, because rows of unequal lengths have no "
                "common positions; use axis=1, axis=None, or to_padded()"
            )
        if position > 1:
            return self._like(segments.along_element(name, self.values, position - 1, keepdims))
        out = segments.OVER[name](self._over_rows(), self.values)
        return out[:, None] if keepdims else out


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ragged arrays that applies ``function`` to all their elements.

    Args:
      function: takes arrays, and works element by element along their first axis, as ``jnp.sin`` does and a layer of
        a network that is applied to each element of each row. It may return a tree of arrays.

    Returns:
      A function that takes ragged arrays with equal lengths, dense arrays and numbers. A dense array
      broadcasts against the shape (rows, 1, *element). The result is ragged.

    Raises:
      OperandError: no argument is ragged (a TypeError).
      ShapeError: two ragged arrays have unequal lengths, or a dense array does not broadcast (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback.ragged import Ragged, elementwise
    >>> elementwise(jnp.maximum)(Ragged.from_list([[1.0, 2.0], [3.0]]), jnp.array([[1.5], [4.0]]))
    Ragged([[1.5, 2. ], [4.]], dtype=float32)
    """
    require_function("elementwise", "function", function)

    def applied(*operands: Any, **options: Any) -> Any:
        first = next((x for x in operands if isinstance(x, Ragged)), None)
        if first is None:
            raise OperandError(f"elementwise: expected a Ragged among the operands, got {quote(operands)}")
        like, values = _aligned(first, operands)
        result = function(*values, **options)
        return tree.tree_map(like.with_values, result)

    return applied


def _aligned(first: Ragged, operands: Sequence[Any]) -> tuple[Ragged, list[Any]]:
    """Return an array with the lengths of the operands, and the operands' values, which broadcast."""
    others = [x for x in operands if isinstance(x, Ragged)]
    for x in others:
        _check_lengths(first, x)
    capacity = min(x.capacity for x in others)
    like = first if first.capacity == capacity else first._like(first.values[:capacity])
    numbers = like._numbers()
    padding = layout.known(like.lengths) is None or int(layout.known(like.lengths).sum()) != capacity  # type: ignore[union-attr]
    unused = pnp.asarray(numbers == like.rows) if padding else None
    return like, [_values(like, numbers, unused, x) for x in operands]


def _check_lengths(x: Ragged, y: Ragged) -> None:
    if x.lengths is y.lengths:
        return
    a, b = layout.known(x.lengths), layout.known(y.lengths)
    if x.rows != y.rows or (a is not None and b is not None and not np.array_equal(a, b)):
        raise ShapeError(
            f"ragged operands must have equal lengths, got {quote(x.lengths.tolist() if a is not None else x)} and "
            f"{quote(y.lengths.tolist() if b is not None else y)}"
        )


def _values(like: Ragged, numbers: Any, unused: Any, x: Any) -> Any:
    """Return the values of an operand, of a shape that broadcasts against (capacity, *element).

    Padding repeats the first element: what a function makes of it is unused, but an infinite derivative there would
    make NaN of the zero that comes back.
    """
    if isinstance(x, Ragged):
        values = x.values[: like.capacity]
        return values if unused is None else pnp.where(layout.spread(unused, values), values[:1], values)
    if not hasattr(x, "ndim"):
        return x
    if x.ndim <= like.ndim - 2:
        return x
    rows, *rest = x.shape[x.ndim - like.ndim :] if x.ndim == like.ndim else (1, *x.shape)
    if x.ndim > like.ndim or rows not in (1, like.rows) or rest[0] != 1:
        raise ShapeError(
            f"an array of shape {tuple(x.shape)} does not broadcast against a Ragged of {like.rows} rows and elements "
            f"of shape {like.element_shape}: expected ({like.rows}, 1, *element), (1, 1, *element), or that of "
            "an element"
        )
    flat = pnp.asarray(x).reshape(rows, *rest[1:])
    return flat if rows == 1 else flat.take(numbers, axis=0, mode="clip")


def _array(what: str, x: Any) -> Array:
    try:
        return x if isinstance(x, Array) else pnp.asarray(x)
    except (TypeError, ValueError) as error:
        raise OperandError(f"Ragged: {what} must be an array, got {quote(x)}: {error}") from None
