"""Elementwise functions with the methods of NumPy's ufuncs, such as ``reduce`` and ``outer``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from pullback.core import dtypes, source
from pullback.core.arguments import require_function
from pullback.core.array import ArrayLike
from pullback.core.errors import ArgumentError, IndexingError, ShapeError, UnsupportedArgumentError
from pullback.core.trace import Tracer
from pullback.numpy.promotion import axes_tuple, axis_index, known_int, operand, refuse_options, refuse_out
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.elementwise import convert_element_type
from pullback.primitives.reductions import cummax, cummin

__all__ = ["frompyfunc", "ufunc"]

_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_UPDATES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}
_METHODS = ("reduce", "accumulate", "at", "outer", "reduceat")


def _numpy(name: str) -> Callable[..., Any]:
    return getattr(import_module("pullback.numpy"), name)  # type: ignore[no-any-return]


class _UfuncMeta(type):
    """The metaclass of ``ufunc``, for which ``isinstance(jnp.add, ufunc)`` is true, although ``add`` is a function.

    The functions of this package are not objects with ``__call__``, since a call of such an object takes 5 to 8 %
    longer.
    """

    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls, value) or isinstance(getattr(value, "_ufunc", None), Ufunc)


class Ufunc:
    """The methods of NumPy's ufuncs, such as ``reduce``, for an elementwise function of this package."""

    def __init__(self, call: Callable[..., Any], name: str, nin: int, nout: int, identity: Any, replaced: Any) -> None:
        self.call, self.name, self.nin, self.nout, self.identity = call, name, nin, nout, identity
        for method, replacement in replaced.items():
            if replacement is not None:
                setattr(self, method, replacement)

    def _check_binary(self, method: str) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentError(
                f"{self.name}.{method} is for functions of two operands and one result; {self.name} has "
                f"{self.nin} and {self.nout}"
            )

    def _in_its_dtype(self, x: Any, dtype: Any) -> Any:
        """Convert the operand ``x`` to ``dtype``; if that is None, to the dtype of the function's results for ``x``.

        A reduction can then apply the function to its own results.
        """
        from pullback.transforms.autodiff.tracing import eval_shape

        if dtype is not None:
            return convert_element_type(x, dtypes.requested_dtype(dtype, self.name))
        one = shapes.full((), 0, x.dtype)
        return convert_element_type(x, eval_shape(self.call, one, one).dtype)

    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """Combine the elements along an axis to one, from the first to the last.

        Args:
          a: an array.
          axis: an axis, a tuple of axes, or None for all.
          dtype: the dtype to compute in; by default the dtype of the function's results.
          out: not supported, for arrays are immutable.
          keepdims: whether to keep the axes, with size one.
          initial: the initial value; by default the identity of the function, or the first element.
          where: booleans that broadcast with ``a``: the elements to combine.

        Raises:
          ArgumentError: the function does not take two operands (a TypeError and a ValueError).
          ShapeError: there is no initial value, or the axis is out of range (a ValueError).

        >>> import pullback.numpy as jnp
        >>> print(jnp.subtract.reduce(jnp.array([10, 1, 2])))
        7
        """
        self._check_binary("reduce")
        name = f"{self.name}.reduce"
        refuse_out(name, out)
        known = _REDUCTIONS.get(self.name)
        x = operand(name, a)
        if known in ("all", "any") and initial is None and dtype is None:
            return _numpy(known)(x, axis=axis, keepdims=keepdims, where=where)
        if known not in (None, "all", "any"):
            options = {} if known in ("max", "min") else {"dtype": dtype}
            if dtype is not None and not options:
                x = convert_element_type(x, dtypes.requested_dtype(dtype, self.name))
            return _numpy(known)(x, axis=axis, keepdims=keepdims, initial=initial, where=where, **options)
        return self._reduced(x, axis, dtype, keepdims, initial, where)

    def _reduced(self, x: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        from pullback.control.scan import scan

        rank = len(x.shape)
        axes = axes_tuple(axis, rank, f"{self.name}.reduce")
        rows = _rows(self._in_its_dtype(x, dtype), axes)
        mask = None if where is None else _rows(shapes.broadcast_to(_truth(where), x.shape), axes)
        start: Any
        if initial is None:
            initial = self.identity
        if initial is None and (where is not None or rows.shape[0] == 0):
            what = "a reduction with where" if where is not None else "a reduction of no elements"
            raise ShapeError(f"{self.name}.reduce: {what} needs initial, because {self.name} has no identity")
        if initial is None:
            start = shapes.squeeze(slicing.slice_in_dim(rows, 0, 1, 0), (0,))
            rows = slicing.slice_in_dim(rows, 1, rows.shape[0], 0)
        else:
            start = shapes.broadcast_to(convert_element_type(operand("reduce", initial), rows.dtype), rows.shape[1:])

        def step(total: Any, inputs: Any) -> tuple[Any, None]:
            element, included = inputs
            next_ = convert_element_type(self.call(total, element), total.dtype)
            return next_ if included is None else ops.where(included, next_, total), None

        total = scan(step, start, (rows, mask))[0]
        return shapes.expand_dims(total, axes) if keepdims else total

    def accumulate(self, a: Any, axis: int | None = 0, dtype: Any = None, out: None = None) -> Any:
        """Combine the elements along an axis cumulatively: element i of the result combines elements 0 to i.

        Args:
          a: an array.
          axis: an axis; None for the elements in row-major order.
          dtype: the dtype to compute in; by default the dtype of the function's results.
          out: not supported, for arrays are immutable.

        Raises:
          ArgumentError: the function does not take two operands (a TypeError and a ValueError).

        >>> import pullback.numpy as jnp
        >>> print(jnp.subtract.accumulate(jnp.array([10, 1, 2])))
        [10  9  7]
        """
        self._check_binary("accumulate")
        name = f"{self.name}.accumulate"
        refuse_out(name, out)
        x = operand(name, a)
        if axis is None:
            x, axis = shapes.reshape(x, (x.size,)), 0
        axis = axis_index(axis, len(x.shape), name)
        known = _ACCUMULATIONS.get(self.name)
        if known is not None:
            return _numpy(known)(x, axis=axis, dtype=dtype)
        x = self._in_its_dtype(x, dtype)
        if self.name in ("maximum", "minimum"):
            return (cummax if self.name == "maximum" else cummin)(x, axis)
        if x.shape[axis] == 0:
            return x
        from pullback.control.scan import scan

        rows = shapes.moveaxis(x, axis, 0)
        first = slicing.slice_in_dim(rows, 0, 1, 0)

        def step(total: Any, element: Any) -> tuple[Any, Any]:
            total = convert_element_type(self.call(total, element), total.dtype)
            return total, total

        rest = scan(step, shapes.squeeze(first, (0,)), slicing.slice_in_dim(rows, 1, rows.shape[0], 0))[1]
        return shapes.moveaxis(slicing.concatenate([first, rest], 0), 0, axis)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """An array in which the elements at some positions are replaced by results of the function.

        Args:
          a: an array.
          indices: as for indexing ``a``; a position that occurs several times is replaced several times, in order.
          b: the second operands of a function of two, which broadcast with ``a[indices]``.
          inplace: must be False, for arrays are immutable; NumPy changes ``a``.

        Raises:
          UnsupportedArgumentError: ``inplace`` is True (a NotImplementedError).

        >>> import pullback.numpy as jnp
        >>> print(jnp.add.at(jnp.zeros(3), jnp.array([0, 0, 1]), 1.0, inplace=False))
        [2. 1. 0.]
        """
        if inplace:
            raise UnsupportedArgumentError(
                f"{self.name}.at cannot change its operand, because arrays are immutable; pass inplace=False and "
                f"use the result"
            )
        if self.nout != 1 or self.nin not in (1, 2) or (b is None) != (self.nin == 1):
            raise ArgumentError(f"{self.name}.at: a function of {self.nin} operands takes {self.nin - 1} besides a")
        x = operand(f"{self.name}.at", a)
        known = _UPDATES.get(self.name)
        if known is not None:
            return getattr(x.at[indices], known)(b)
        from pullback.control.scan import scan

        flat = shapes.reshape(x, (x.size,))
        positions = shapes.reshape(np.arange(x.size, dtype=np.int32), x.shape)
        positions = operand(self.name, positions)[indices]
        operands: Any = (shapes.reshape(positions, (positions.size,)),)
        if b is not None:
            other = shapes.broadcast_to(operand(f"{self.name}.at", b), positions.shape)
            operands = (*operands, shapes.reshape(other, (positions.size,)))

        def step(values: Any, inputs: Any) -> tuple[Any, None]:
            index, *others = inputs
            return values.at[index].set(convert_element_type(self.call(values[index], *others), values.dtype)), None

        return shapes.reshape(scan(step, flat, operands)[0], x.shape)

    def outer(self, A: Any, B: Any, /) -> Any:
        """Apply the function to all pairs of elements.

        Args:
          A, B: arrays, of any shapes.

        Returns:
          An array of shape ``A.shape + B.shape``.

        >>> import pullback.numpy as jnp
        >>> print(jnp.add.outer(jnp.array([0, 10]), jnp.array([1, 2, 3])))
        [[ 1  2  3]
         [11 12 13]]
        """
        if self.nin != 2:
            raise ArgumentError(f"{self.name}.outer is for functions of two operands; {self.name} has {self.nin}")
        x, y = operand(f"{self.name}.outer", A), operand(f"{self.name}.outer", B)
        rank = len(x.shape)
        x = shapes.expand_dims(x, range(rank, rank + len(y.shape)))
        return self.call(x, shapes.expand_dims(y, range(rank)))

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Combine the elements of segments of an axis, each segment to one element.

        Args:
          a: an array.
          indices: the starts of the segments, a vector of integers. Each segment ends where the next starts, and the
            last at the end of the axis. A segment that would end before it starts is its first element alone.
          axis: an axis.
          dtype: the dtype to compute in; by default the dtype of the function's results.
          out: not supported, for arrays are immutable.

        Raises:
          IndexingError: a segment starts out of range (an IndexError); traced indices are clipped instead.

        >>> import pullback.numpy as jnp
        >>> print(jnp.add.reduceat(jnp.arange(8), jnp.array([0, 4, 6])))
        [ 6  9 13]
        """
        self._check_binary("reduceat")
        name = f"{self.name}.reduceat"
        refuse_out(name, out)
        x, starts = operand(name, a), _numpy("asarray")(indices)
        axis = axis_index(axis, len(x.shape), name)
        if len(starts.shape) != 1 or not dtypes.is_integer(starts.dtype):
            raise ShapeError(f"{name}: the indices must be a vector of integers, got {starts.aval}")
        n, count = x.shape[axis], starts.shape[0]
        rows = shapes.moveaxis(self._in_its_dtype(x, dtype), axis, 0)
        longest = n
        if not isinstance(starts, Tracer):
            known = np.asarray(starts)
            if known.size and not (known.min() >= 0 and known.max() < n):
                raise IndexingError(f"{name}: the indices must be in range({n}), got {known}")
            lengths = np.diff(known, append=n)
            longest = int(lengths.max(initial=1))
            if self.name in _UPDATES and self.name != "subtract" and np.maximum(lengths, 1).sum() <= 2 * n + count:
                return shapes.moveaxis(self._by_segment(rows, known, np.maximum(lengths, 1)), 0, axis)
        out_ = self._by_steps(rows, ops.min_p.bind(ops.max_p.bind(starts, 0), max(n - 1, 0)), longest)
        return shapes.moveaxis(out_, 0, axis)

    def _by_segment(self, rows: Any, starts: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> Any:
        """Reduce each segment of consecutive rows to one row, by one scatter into the first row of each segment.

        Args:
          rows: the rows, along the first axis.
          starts: the index of the first row of each segment.
          lengths: the number of rows in each segment.
        """
        take, of = _numpy("take"), np.repeat(np.arange(starts.size), lengths)
        within = np.arange(of.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        later = np.flatnonzero(within)
        positions = np.repeat(starts, lengths) + within
        first = take(rows, operand(self.name, starts.astype(np.int32)), axis=0)
        rest = take(rows, operand(self.name, positions[later].astype(np.int32)), axis=0)
        return getattr(first.at[of[later].astype(np.int32)], _UPDATES[self.name])(rest)

    def _by_steps(self, rows: Any, starts: Any, longest: int) -> Any:
        """Reduce each segment of consecutive rows to one row, by a scan: step t adds the t-th row of every segment.

        ``starts`` holds the index of the first row of each segment, and ``longest`` is the number of rows in the
        longest segment.
        """
        from pullback.control.scan import scan

        take, n = _numpy("take"), rows.shape[0]
        if not starts.shape[0]:
            return take(rows, starts, axis=0)
        ends = slicing.concatenate(
            [slicing.slice_in_dim(starts, 1, starts.shape[0], 0), shapes.full((1,), n, starts.dtype)], 0
        )
        lengths = shapes.reshape(ops.sub(ends, starts), starts.shape + (1,) * (len(rows.shape) - 1))

        def step(total: Any, t: Any) -> tuple[Any, None]:
            position = ops.min_p.bind(ops.add(starts, convert_element_type(t, starts.dtype)), n - 1)
            next_ = convert_element_type(self.call(total, take(rows, position, axis=0)), total.dtype)
            return ops.where(ops.gt(lengths, convert_element_type(t, starts.dtype)), next_, total), None

        steps = np.arange(1, max(longest, 1), dtype=np.int32)
        return scan(step, take(rows, starts, axis=0), operand(self.name, steps))[0]


def _truth(mask: Any) -> Any:
    return convert_element_type(operand("where", mask), np.dtype(bool))


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """Move the axes ``axes`` to the front, and merge them into one axis."""
    others = [i for i in range(len(x.shape)) if i not in axes]
    sizes = [x.shape[i] for i in others]
    moved = shapes.transpose(x, [*axes, *others])
    return shapes.reshape(moved, (math.prod(x.shape[i] for i in axes), *sizes))


def with_methods(function: Any, nin: int = 2, identity: Any = None) -> Any:
    """Add the attributes and methods of a ufunc to an elementwise function of this package; return the function.

    ``nin`` is its number of operands, and ``identity`` its neutral element, if any.
    """
    methods = Ufunc(function, function.__name__, nin, 1, identity, {})
    function._ufunc = methods
    function.nin, function.nout, function.nargs, function.identity = nin, 1, nin, identity
    for name in _METHODS:
        setattr(function, name, getattr(methods, name))
    return function


class ufunc(metaclass=_UfuncMeta):
    """An elementwise function of arrays that broadcast, with the methods of NumPy's ufuncs.

    ``add``, ``multiply`` and similar functions have the same methods, and are instances; see also :func:`frompyfunc`.

    Args:
      func: takes ``nin`` scalars, and returns ``nout``, a tuple if there are several.
      nin: the number of operands.
      nout: the number of results.
      name: its name; by default the name of ``func``.
      nargs: None or ``nin``.
      identity: the identity element of the function, with which reductions begin.
      call, reduce, accumulate, at, reduceat: functions to use instead of the mapped ``func``, or of the methods.

    Raises:
      ArgumentError: ``func`` is not a function, or ``nin`` or ``nout`` not a positive int (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> add = jnp.ufunc(lambda x, y: x + y, 2, 1, name="add", identity=0)
    >>> print(add(1, jnp.arange(3)), add.reduce(jnp.arange(3)))
    [1 2 3] 3
    >>> isinstance(jnp.add, jnp.ufunc)
    True
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: ArrayLike | None = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> None:
        if not callable(func):
            raise ArgumentError(f"ufunc: func must be a function, got {func!r} of type {type(func).__name__}")
        nin, nout = known_int("ufunc", "nin", nin), known_int("ufunc", "nout", nout)
        if nin < 1 or nout < 1 or nargs not in (None, nin):
            raise ArgumentError(
                f"ufunc: nin and nout must be positive, and nargs must equal nin; got {nin}, {nout}, {nargs}"
            )
        overrides = (call, reduce, accumulate, at, reduceat)
        for override in overrides:
            if override is not None:
                require_function("ufunc", "an override", override)
        name = name or getattr(func, "__name__", None) or type(func).__name__
        call = partial(call, self) if call is not None else _numpy("vectorize")(func)
        replaced = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        replaced = {k: None if v is None else partial(v, self) for k, v in replaced.items()}
        self._made_of = (func, nin, nout, name, *overrides)
        self._ufunc = methods = Ufunc(call, name, nin, nout, identity, replaced)
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin, identity
        self.reduce, self.accumulate, self.at = methods.reduce, methods.accumulate, methods.at
        self.outer, self.reduceat = methods.outer, methods.reduceat
        source.named_as(func)(self)
        self.__name__ = name

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        refuse_options(self.__name__, out, where)
        if len(args) != self.nin:
            raise ArgumentError(f"{self.__name__} takes {self.nin} operands, got {len(args)}")
        return self._ufunc.call(*args)

    def __repr__(self) -> str:
        return f"<pullback.numpy.ufunc {self.__name__!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ufunc) or type(other) is not type(self):
            return NotImplemented
        return self is other or (self._made_of, self.identity) == (other._made_of, other.identity)

    def __hash__(self) -> int:
        return hash(self._made_of)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: ArrayLike | None = None) -> ufunc:
    """Make a :class:`ufunc` of a function of scalars.

    Args:
      func: takes ``nin`` scalars, and returns ``nout``, a tuple if there are several; of functions that can be
        transformed.
      nin, nout: the numbers of operands and results.
      identity: the identity element of the function, with which reductions begin.

    Returns:
      A :class:`ufunc`, which is called with arrays that broadcast.

    Raises:
      ArgumentError: ``func`` is not a function, or ``nin`` or ``nout`` not a positive int (a TypeError and a
        ValueError).

    >>> import pullback.numpy as jnp
    >>> longer = jnp.frompyfunc(lambda x, y: jnp.sqrt(x * x + y * y), 2, 1)
    >>> print(longer(3.0, jnp.array([4.0, 0.0])), longer.reduce(jnp.array([2.0, 3.0, 6.0])))
    [5. 3.] 7.0
    """
    return ufunc(func, nin, nout, identity=identity)
