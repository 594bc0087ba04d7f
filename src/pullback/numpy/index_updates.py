"""``x.at[index]``: functional updates of the elements at an index."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.backends.host import moves
from pullback.core import dtypes
from pullback.core.array import SCALARS, Array, ArrayImpl, CommittedArray
from pullback.core.docs import describe, with_example
from pullback.core.elsewhere import is_here
from pullback.core.errors import ImmutableArrayError
from pullback.core.trace import Tracer, state
from pullback.numpy.index_lowering import lowered, quote, read, write
from pullback.numpy.promotion import fits, inexact_operand, operand
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import indexing, scatter, shapes
from pullback.primitives.arrays.indexing import GatherScatterMode
from pullback.primitives.explicit_shardings import to_auto
from pullback.transforms.programs.placement import spread

Mode = GatherScatterMode | str | None
Flags = tuple[bool, bool, bool]
"""Whether positions are sorted, whether no element occurs twice, whether negative positions count from the end.
"""

_DIRECT = frozenset((int, slice, type(None), type(Ellipsis), ArrayImpl, np.ndarray, bool))


def _change(name: str, how: Callable[..., Any], operation: Any, sentence: str, example: str, result: str) -> Any:
    """Make a method of ``x.at[index]``, such as ``add``, which changes the selected elements.

    Args:
      name: the name of the method.
      how: the private method that computes the result.
      operation: the operation on old and new elements.
      sentence, example, result: the docstring's first sentence, its example, and the output of the example.
    """

    def method(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        flags = (indices_are_sorted, unique_indices, wrap_negative_indices)
        if out_sharding is not None:
            index = _auto_index(self.index)
            change = lambda x, values: how(IndexUpdateRef(x, index), name, operation, values, flags, mode)
            return spread(change, [self.array, values], out_sharding, f"at[...].{name}")
        return how(self, name, operation, values, flags, mode)

    doc = with_example(sentence, "import pullback.numpy as jnp", example, result)
    return describe(method, name, doc, owner="IndexUpdateRef")


class IndexUpdateHelper:
    """The property ``x.at``, which takes an index."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise ImmutableArrayError(
            f"arrays are immutable: write x = x.at[{quote(index)}].set(...), which returns a new array"
        )

    def __repr__(self) -> str:
        return f"{self.array!r}.at"


class IndexUpdateRef:
    """The reference ``x.at[index]``: each method returns a new array with the elements at the index changed.

    Where elements are selected several times, ``set`` keeps the last value and all others apply each in turn, like the
    method ``at`` of NumPy's ufuncs. All take ``mode``: the treatment of positions out of range, "drop" (the default),
    "clip" or "promise_in_bounds"; ``indices_are_sorted`` and ``unique_indices``, which are promises; and
    ``wrap_negative_indices``: whether negative positions count from the end (the default) or are out of range.

    >>> import pullback.numpy as jnp
    >>> x = jnp.zeros(3)
    >>> print(x.at[0].set(5.0), x.at[1:].add(1.0), x.at[jnp.array([2, 2])].add(1.0))
    [5. 0. 0.] [0. 1. 1.] [0. 0. 2.]
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"{self.array!r}.at[{quote(self.index)}]"

    def __iadd__(self, other: Any) -> NoReturn:
        self._refuse("add")

    def __isub__(self, other: Any) -> NoReturn:
        self._refuse("subtract")

    def __imul__(self, other: Any) -> NoReturn:
        self._refuse("multiply")

    def __itruediv__(self, other: Any) -> NoReturn:
        self._refuse("divide")

    def _refuse(self, name: str) -> NoReturn:
        raise ImmutableArrayError(
            f"arrays are immutable: write x = x.at[{quote(self.index)}].{name}(...), which returns a new array"
        )

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: Any = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The selected elements, with a mode for positions out of range.

        Args:
          indices_are_sorted: a promise that the positions are in order.
          unique_indices: a promise that no element is selected twice.
          mode: "clip" (the default) the first or last element, "fill" the fill value.
          fill_value: a number; by default NaN, or the least signed, the greatest unsigned integer, or True.
          out_sharding: the sharding of the result; None leaves it open.
          wrap_negative_indices: whether negative positions count from the end; otherwise they are out of range.

        >>> import pullback.numpy as jnp
        >>> print(jnp.ones(3).at[7].get(mode="fill", fill_value=0.0))
        0.0
        """
        parsed = None if mode is None else GatherScatterMode.from_any(mode)
        if fill_value is not None and type(fill_value) not in SCALARS and not isinstance(fill_value, Tracer):
            fill_value = np.asarray(fill_value).item()
        flags = (indices_are_sorted, unique_indices, wrap_negative_indices)
        if out_sharding is not None:
            index = _auto_index(self.index)
            return spread(
                lambda x: read(x, index, parsed, fill_value, *flags), [self.array], out_sharding, "at[...].get"
            )
        return read(self.array, self.index, parsed, fill_value, *flags)

    def _update(self, name: str, operation: Any, values: Any, flags: Flags, mode: Mode) -> Any:
        x = self.array
        if mode is None and flags[2] and isinstance(x, ArrayImpl) and state.trace.quick:
            out = _update_at_once(name, x, self.index, values)
            if out is not None:
                return out
        return write(operation, x, self.index, _cast(values, x, name), mode, *flags)

    def _with_factors(self, name: str, operation: Any, values: Any, flags: Flags, mode: Mode) -> Any:
        """Update selected elements by an operation such as division, so that repeated indices are right.

        If an element is selected several times, the operation is applied once, to the product of all its values:
        ``op(op(a, x), y) == op(a, x * y)``.

        Args:
          name: the name of the method, such as "divide".
          operation: the operation.
          values: the values at the index.
          flags: the promises about the indices.
          mode: how to treat indices out of bounds.
        """
        x = inexact_operand("at[].divide", self.array) if name == "divide" else self.array
        if 0 in x.shape:  # nothing can be selected: this checks the index and the values
            return write(scatter.scatter, x, self.index, _cast(values, x, name), mode, *flags)
        ones = shapes.broadcast_to(shapes.full((), 1, x.dtype), x.shape)
        factors = write(scatter.scatter_mul, ones, self.index, _cast(values, x, name), mode, *flags)
        new = operation(self._get_again(x, flags), self._get_again(factors, flags))
        return write(scatter.scatter, x, self.index, new, mode, *flags)

    set = _change(
        "set", _update, scatter.scatter,
        "The array with ``values``, which broadcast to the shape of ``x[index]``, instead of the elements.",
        "jnp.zeros(3).at[::2].set(jnp.array([1.0, 2.0]))", "[1. 0. 2.]",
    )  # fmt: skip
    add = _change(
        "add", _update, scatter.scatter_add, "The array with ``values`` added to the elements.",
        "jnp.ones(3).at[0].add(2.0)", "[3. 1. 1.]",
    )  # fmt: skip
    subtract = _change(
        "subtract", _update, scatter.scatter_sub, "The array with ``values`` subtracted from the elements.",
        "jnp.ones(3).at[0].subtract(2.0)", "[-1.  1.  1.]",
    )  # fmt: skip
    multiply = mul = _change(
        "multiply", _update, scatter.scatter_mul, "The array with the elements multiplied by ``values``.",
        "jnp.ones(3).at[0].multiply(2.0)", "[2. 1. 1.]",
    )  # fmt: skip
    min = _change(
        "min", _update, scatter.scatter_min, "The array with the lesser of the elements and ``values``.",
        "jnp.ones(3).at[0].min(-2.0)", "[-2.  1.  1.]",
    )  # fmt: skip
    max = _change(
        "max", _update, scatter.scatter_max, "The array with the greater of the elements and ``values``.",
        "jnp.ones(3).at[0].max(2.0)", "[2. 1. 1.]",
    )  # fmt: skip
    divide = _change(
        "divide", _with_factors, ops.div, "The array with the elements divided by ``values``; integers become floats.",
        "jnp.ones(3).at[0].divide(2.0)", "[0.5 1.  1. ]",
    )  # fmt: skip
    power = _change(
        "power", _with_factors, ops.pow, "The array with the elements raised to the powers ``values``.",
        "jnp.array([3.0, 3.0]).at[0].power(2.0)", "[9. 3.]",
    )  # fmt: skip

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """The array with a function of one argument, which works on each element, applied to the elements.

        Args:
          func: takes and returns an array; applied as often as an element is selected.
          indices_are_sorted: a promise that the positions are in order.
          unique_indices: a promise that no element is selected twice. Without it, the function is called once for each
            position if positions are traced.
          mode: the treatment of positions out of range.
          wrap_negative_indices: whether negative positions count from the end; otherwise they are out of range.

        >>> import pullback.numpy as jnp
        >>> print(jnp.array([1.0, 4.0]).at[1].apply(jnp.sqrt))
        [1. 2.]
        """
        low, _ = lowered(self.index, self.array.shape, wrap_negative_indices)
        if 0 in self.array.shape:  # nothing can be selected
            return _cast(func(self.array), self.array, "apply")
        flags = indices_are_sorted, unique_indices, wrap_negative_indices
        chosen = self._get_again(self.array, flags)
        out = _cast(func(chosen), self.array, "apply")
        if not (low.unique or unique_indices):
            one = np.dtype(np.int32)
            counts = write(
                scatter.scatter_add, indexing.zeros(self.array.shape, one), self.index, shapes.full((), 1, one), mode,
                wrap=wrap_negative_indices,
            )  # fmt: skip
            times = self._get_again(counts, flags)
            for k in range(1, _most(counts, low)):
                out = ops.where(ops.gt(times, k), _cast(func(out), self.array, "apply"), out)
        return write(scatter.scatter, self.array, self.index, out, mode, *flags)

    def _get_again(self, x: Any, flags: Flags) -> Any:
        """Return the elements of ``x`` at the index of this update. ``x`` has the shape of the updated array."""
        return read(x, self.index, GatherScatterMode.CLIP, None, *flags)


def _auto_index(index: Any) -> Any:
    """Return an index whose arrays have no shardings in their types."""
    if isinstance(index, tuple):
        return tuple(map(_auto_index, index))
    return to_auto(index) if isinstance(index, Array) else index


def _most(counts: Any, low: Any) -> int:
    """Return an upper bound for the number of times that an update selects the same element.

    Args:
      counts: for each element how often it is selected. If this is concrete, the bound is the maximum.
      low: the lowered index. If ``counts`` is traced, the bound is the number of index vectors in ``low``.
    """
    known = counts.concrete() if isinstance(counts, Tracer) else counts
    if known is not None and is_here(known):
        return int(known._value.max(initial=0))
    total = 1
    for i, n in enumerate(low.shape):
        total *= 1 if i in low.numbers.offset_dims else n
    return total


def _cast(values: Any, x: Any, name: str) -> Any:
    """Convert the values of an update to the dtype of the updated array ``x``; warn if this may lose information.

    ``name`` is the name of the update method.
    """
    if isinstance(values, (list, tuple, range)):
        from pullback.numpy.creation import asarray

        values = asarray(values)
    is_bool = type(values) is bool and x.dtype.name in dtypes.NUMBERS  # strict promotion refuses it beside others
    if is_bool or (type(values) is int and _only_there(values, x.dtype)):
        return shapes.full((), values, x.dtype)
    value = operand(f"x.at[...].{name}", values)
    if value.dtype == x.dtype:
        return value
    if dtypes.result_type(x, value) != x.dtype:
        warnings.warn(
            f"x.at[...].{name}: values of dtype {dtypes.short_name(value.dtype)} lose precision when they are "
            f"converted to the dtype of the array, {dtypes.short_name(x.dtype)}; convert one of the two first",
            FutureWarning,
            stacklevel=4,
        )
    return ops.convert_element_type(value, x.dtype)


def _only_there(number: int, dtype: np.dtype[Any]) -> bool:
    """Return whether an integer ``dtype`` holds ``number`` and the default integer type does not.

    For example, uint32 holds ``2**32 - 1``, and int32 does not.
    """
    if not dtypes.is_integer(dtype):
        return False
    default, own = dtypes.iinfo(dtypes.default_int()), dtypes.iinfo(dtype)
    return bool(own.min <= number <= own.max and not default.min <= number <= default.max)


def _update_at_once(name: str, x: ArrayImpl, index: Any, values: Any) -> ArrayImpl | None:
    """Update a concrete array by NumPy's indexing, for the method ``name`` of ``x.at[index]``.

    Return None in cases that NumPy computes differently or does not support.
    """
    if isinstance(x, CommittedArray) or isinstance(values, CommittedArray):
        return None
    old = x._value
    if isinstance(values, ArrayImpl):
        new = values._value
        if new.dtype != old.dtype:
            return None
    elif type(values) in SCALARS and fits(type(values), old.dtype):
        new = values
    else:
        return None
    if type(index) is tuple:
        if not all(type(i) in _DIRECT for i in index):
            return None
        index = tuple(i._value if isinstance(i, ArrayImpl) else i for i in index)
    elif type(index) not in _DIRECT:
        return None
    elif isinstance(index, ArrayImpl):
        index = index._value
    out = moves.copied(old)
    try:
        state.silently(_UFUNCS[name], out, index, new)
    except (IndexError, ValueError, TypeError, OverflowError):
        return None
    return ArrayImpl(out if out.shape else out[()], x.weak_type)


_MOST_AXES = 32
"""The most axes of index arrays and values with which the method ``at`` of NumPy's ufuncs does not crash."""


def _at(ufunc: Any) -> Callable[[Any, Any, Any], None]:
    def update(x: Any, index: Any, value: Any) -> None:
        for i in index if type(index) is tuple else (index,):
            if type(i) is np.ndarray:
                if x.ndim != 1 or i.ndim > _MOST_AXES or np.ndim(value) > _MOST_AXES:
                    raise IndexError("NumPy is slow at this, or crashes")
                ufunc.at(x, index, value)
                return
        x[index] = ufunc(x[index], value)

    return update


_UFUNCS: dict[str, Callable[[Any, Any, Any], None]] = {
    "set": operator.setitem,
    "add": _at(np.add),
    "subtract": _at(np.subtract),
    "multiply": _at(np.multiply),
    "min": _at(np.minimum),
    "max": _at(np.maximum),
}
