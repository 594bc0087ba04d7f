"""Views of references: some elements of a reference, as a reference of their own.

A view is a node of trees. Its children are the reference and the arrays of its index, so that a view may be passed to a
function wherever a reference may.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.array import Array, ArrayLike, Index, typeof
from pullback.core.zeros import zeros_of


def selects_all(idx: Any) -> bool:
    """Whether an index selects all elements: None, ``...`` or ``()``."""
    if isinstance(idx, tuple):
        return not idx or (len(idx) == 1 and idx[0] is Ellipsis)
    return idx is None or idx is Ellipsis


class RefAt:
    """The attribute ``at`` of a reference or a view, which takes an index and returns a :class:`RefView`."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getitem__(self, idx: Index) -> RefView:
        return RefView(self._target, idx)


class RefView:
    """The elements of a reference at an index, as a reference of their own: reads and writes are those of the whole.

    >>> import pullback.numpy as jnp
    >>> from pullback import new_ref
    >>> ref = new_ref(jnp.zeros(4))
    >>> view = ref.at[1:3]
    >>> view[0] = 5.0
    >>> view.at[1][...] += 7.0
    >>> print(ref[...], view.shape)
    [0. 5. 7. 0.] (2,)
    """

    __slots__ = ("_index", "ref")

    def __init__(self, ref: Any, index: Index) -> None:
        self.ref = ref
        self._index = index

    @property
    def at(self) -> RefAt:
        """Views of these elements, by an index among them."""
        return RefAt(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis."""
        return self.ref[self._index].shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self.ref.dtype  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def __getitem__(self, idx: Index) -> Array:
        elements = self.ref[self._index]
        return elements if selects_all(idx) else elements[idx]  # type: ignore[no-any-return]

    def __setitem__(self, idx: Index, x: ArrayLike) -> None:
        if selects_all(idx):
            self.ref[self._index] = x
        else:
            self.ref[self._index] = self.ref[self._index].at[idx].set(x, mode="clip")

    def get(self) -> Array:
        """Return the elements."""
        return self[...]

    def set(self, value: ArrayLike) -> None:
        """Replace the elements by those of an array of their shape."""
        self[...] = value

    def swap(self, value: ArrayLike) -> Array:
        """Replace the elements by those of an array of their shape, and return the old ones."""
        before = self[...]
        self[...] = value
        return before

    def addupdate(self, x: ArrayLike, idx: Index = ()) -> None:
        """Add ``x`` to the elements at an index among these; an element that is selected twice takes both."""
        if not selects_all(idx):
            x = zeros_of(typeof(self[...])).at[idx].add(x, mode="clip")
        self.ref.addupdate(x, self._index)

    def __repr__(self) -> str:
        return f"{self.ref!r}.at[{self._index!r}]"


def _flatten(view: RefView) -> tuple[list[Any], Any]:
    """Return the reference and the arrays of the index, and the rest of the index as hashable data.

    ref.at[a, 1:3] -> [ref, a], (True, (None, (slice, 1, 3, None))): ``None`` stands for an array.
    """
    indices = view._index if isinstance(view._index, tuple) else (view._index,)
    arrays: list[Any] = []
    fixed: list[Any] = []
    for i in indices:
        if isinstance(i, slice) and all(
            x is None or isinstance(x, (int, np.integer)) for x in (i.start, i.stop, i.step)
        ):
            fixed.append((slice, i.start, i.stop, i.step))
        elif i is None or i is Ellipsis or isinstance(i, (int, np.integer)):
            fixed.append((type(i), i))
        else:
            arrays.append(np.asarray(i) if isinstance(i, list) else i)
            fixed.append(None)
    return [view.ref, *arrays], (isinstance(view._index, tuple), tuple(fixed))


def _unflatten(data: Any, children: Any) -> RefView:
    is_tuple, fixed = data
    ref, *arrays = children
    rest = iter(arrays)
    index = tuple(next(rest) if x is None else slice(*x[1:]) if x[0] is slice else x[1] for x in fixed)
    return RefView(ref, index if is_tuple else index[0])


tree.register_pytree_node(RefView, _flatten, _unflatten)
