"""What failed, as arrays: a number that says which check, and the values that its message shows.

Checks of a program are numbered from 1 in the order in which it comes to them. Only the first failure is kept, so that
values of the same type, of different checks, share a place, a slot. So a program's failures are as many arrays as the
largest message needs, and a loop can carry them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core import source, tree
from pullback.core.array import scalar_array, typeof
from pullback.core.errors import CheckError
from pullback.core.types import ShapedArray
from pullback.core.zeros import zeros_of
from pullback.primitives.arrays.indexing import dynamic_slice
from pullback.primitives.arrays.shapes import broadcast_in_dim, reshape
from pullback.primitives.discrete import eq_p, ne_p
from pullback.primitives.elementwise import add_p, where
from pullback.primitives.reductions import argmax

INT32 = np.dtype(np.int32)


class Check(NamedTuple):
    """A check of a program.

    Attributes:
      category: the kind of the failure.
      message: a template for ``str.format``.
      structure: the tree of the positional and keyword arguments of the template.
      slots: where the leaves of these are in the values of the program's failure.
      location: where the user wrote it, or the operation that is checked.
    """

    category: type[CheckError]
    message: str
    structure: Any
    slots: tuple[int, ...]
    location: source.Location | None

    def error(self, values: Sequence[Any]) -> CheckError:
        """The failure, from the values of the slots."""
        args, kwargs = tree.unflatten(self.structure, [values[i] for i in self.slots])
        return self.category(self.message.format(*args, **kwargs))

    def __reduce__(self) -> Any:
        return Check, (self.category, self.message, self.structure, self.slots, None)  # code objects have no pickle


class Failures(NamedTuple):
    """The first failure of a program, if there is one.

    Attributes:
      code: the number of the check that failed, 0 if none did.
      payload: the values of the slots.
      checks: the checks of the program.
    """

    code: Any
    payload: list[Any]
    checks: tuple[Check, ...]

    @property
    def layout(self) -> ErrorLayout:
        return ErrorLayout(self.checks, tuple([_slot(typeof(x)) for x in self.payload]))


class ErrorLayout(NamedTuple):
    """The types of failures: the checks, and the types of the slots."""

    checks: tuple[Check, ...]
    slots: tuple[ShapedArray, ...]

    def none(self) -> Failures:
        """No failure."""
        return Failures(scalar_array(np.int32(0)), [_zeros(a) for a in self.slots], self.checks)


def _slot(aval: ShapedArray) -> ShapedArray:
    return ShapedArray(aval.shape, aval.dtype)


def _zeros(aval: ShapedArray) -> Any:
    zero = zeros_of(ShapedArray((), aval.dtype))
    return broadcast_in_dim(zero, aval.shape, ()) if aval.shape else zero


class Joined(NamedTuple):
    """The layout of the failures of several programs together.

    Attributes:
      layout: of all.
      offsets: for each program, what is added to the numbers of its checks.
      places: for each program, where its slots are among those of all.
    """

    layout: ErrorLayout
    offsets: list[int]
    places: list[list[int]]

    def embed(self, i: int, failures: Failures) -> Failures:
        """The failures of program ``i`` as those of all."""
        code, offset = failures.code, self.offsets[i]
        if offset and self.layout.checks:
            code = where(eq_p.bind(code, 0), code, add_p.bind(code, offset))
        place = dict(zip(self.places[i], failures.payload, strict=True))
        values = [place[k] if k in place else _zeros(a) for k, a in enumerate(self.layout.slots)]
        return Failures(code, values, self.layout.checks)


def joined(layouts: Sequence[ErrorLayout]) -> Joined:
    """The layout for failures of one of several programs."""
    checks: list[Check] = []
    slots: list[ShapedArray] = []
    offsets, places = [], []
    for layout in layouts:
        free = dict(enumerate(slots))
        place = []
        for aval in layout.slots:
            k = next((k for k, a in free.items() if a.shape == aval.shape and a.dtype == aval.dtype), len(slots))
            if k == len(slots):
                slots.append(aval)
            else:
                del free[k]
            place.append(k)
        offsets.append(len(checks))
        places.append(place)
        checks += [c._replace(slots=tuple([place[i] for i in c.slots])) for c in layout.checks]
    return Joined(ErrorLayout(tuple(checks), tuple(slots)), offsets, places)


def earlier(first: Failures, second: Failures) -> Failures:
    """The first of two failures of the same layout that there is."""
    fine = eq_p.bind(first.code, 0)
    payload = [where(fine, b, a) for a, b in zip(first.payload, second.payload, strict=True)]
    return Failures(where(fine, second.code, first.code), payload, first.checks)


def first_of_all(parts: Sequence[Failures]) -> Failures | None:
    """The first failure of several programs that run one after the other; None if there are none."""
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    together = joined([part.layout for part in parts])
    found = together.embed(0, parts[0])
    for i, part in enumerate(parts[1:], 1):
        found = earlier(found, together.embed(i, part))
    return found


def first_along_axes(code: Any, payload: Sequence[Any]) -> tuple[Any, list[Any]] | None:
    """The first failure of an array of them, to whose axes the values may have more; None if it is empty."""
    shape = code.shape
    if not shape:
        return code, list(payload)
    count = math.prod(shape)
    if count == 0:
        return None
    flat = reshape(code, (count,))
    i = argmax(ne_p.bind(flat, 0), 0, INT32)

    def chosen(x: Any) -> Any:
        own = x.shape[len(shape) :]
        block = dynamic_slice(reshape(x, (count, *own)), [i, *[0] * len(own)], (1, *own))
        return reshape(block, own)

    return chosen(flat), [chosen(x) for x in payload]
