"""Failures as arrays: the number of the check that failed, and the values that its message shows.

The checks of a program are numbered from 1 in program order. Only the first failure is stored, so different checks
share slots for values of the same type. Therefore the failures of a program are as many arrays as its largest message
needs, and a loop can carry them.
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
    """A check in a program: what can fail, and how to report the failure.

    Attributes:
      category: the kind of the failure.
      message: a template for ``str.format``.
      structure: the tree of the positional and keyword arguments of the template.
      slots: for each leaf of these arguments, the index of its value in ``Failures.payload``.
      location: the line of the user's code with the check, or with the operation that is checked.
    """

    category: type[CheckError]
    message: str
    structure: Any
    slots: tuple[int, ...]
    location: source.Location | None

    def error(self, values: Sequence[Any]) -> CheckError:
        """Return the exception for a failure of this check; ``values`` is the ``payload`` of the failure."""
        args, kwargs = tree.unflatten(self.structure, [values[i] for i in self.slots])
        return self.category(self.message.format(*args, **kwargs))

    def __reduce__(self) -> Any:
        return Check, (self.category, self.message, self.structure, self.slots, None)  # code objects have no pickle


class Failures(NamedTuple):
    """The first failure of a program, as arrays.

    Attributes:
      code: the number of the first check that failed, from 1 on; 0 if none failed.
      payload: values for messages. Several checks share an entry; only the entries of the failed check are valid.
      checks: the checks of the program, in order.
    """

    code: Any
    payload: list[Any]
    checks: tuple[Check, ...]

    @property
    def layout(self) -> ErrorLayout:
        return ErrorLayout(self.checks, tuple([_slot(typeof(x)) for x in self.payload]))


class ErrorLayout(NamedTuple):
    """A description of the :class:`Failures` of a program, without their values.

    Attributes:
      checks: the checks of the program.
      slots: the type of each entry of ``Failures.payload``.
    """

    checks: tuple[Check, ...]
    slots: tuple[ShapedArray, ...]

    def none(self) -> Failures:
        """Return :class:`Failures` of this layout without a failure: the code is 0, and the payload is zeros."""
        return Failures(scalar_array(np.int32(0)), [_zeros(a) for a in self.slots], self.checks)


def _slot(aval: ShapedArray) -> ShapedArray:
    """Return the type ``aval`` reduced to shape and dtype, so that more checks can share an entry of ``payload``."""
    return ShapedArray(aval.shape, aval.dtype)


def _zeros(aval: ShapedArray) -> Any:
    zero = zeros_of(ShapedArray((), aval.dtype))
    return broadcast_in_dim(zero, aval.shape, ()) if aval.shape else zero


class Joined(NamedTuple):
    """A common layout for the failures of several programs, with the conversions to it.

    Attributes:
      layout: the common layout.
      offsets: for each program, the number to add to the numbers of its checks.
      slot_maps: for each program, and each entry of its ``payload``, the index of the entry in the common ``payload``.
    """

    layout: ErrorLayout
    offsets: list[int]
    slot_maps: list[list[int]]

    def embed(self, i: int, failures: Failures) -> Failures:
        """Convert the failures of program ``i`` to the common layout."""
        code, offset = failures.code, self.offsets[i]
        if offset and self.layout.checks:
            code = where(eq_p.bind(code, 0), code, add_p.bind(code, offset))
        filled = dict(zip(self.slot_maps[i], failures.payload, strict=True))
        values = [filled[k] if k in filled else _zeros(a) for k, a in enumerate(self.layout.slots)]
        return Failures(code, values, self.layout.checks)


def joined(layouts: Sequence[ErrorLayout]) -> Joined:
    """Return a common layout for several programs, with the checks of all.

    Programs share entries of the common ``payload`` that have the same type.
    """
    checks: list[Check] = []
    slots: list[ShapedArray] = []
    offsets, slot_maps = [], []
    for layout in layouts:
        free = dict(enumerate(slots))  # each slot holds one value of a program
        slot_map = []
        for aval in layout.slots:
            k = next((k for k, a in free.items() if a.shape == aval.shape and a.dtype == aval.dtype), len(slots))
            if k == len(slots):
                slots.append(aval)
            else:
                del free[k]
            slot_map.append(k)
        offsets.append(len(checks))
        slot_maps.append(slot_map)
        checks += [c._replace(slots=tuple([slot_map[i] for i in c.slots])) for c in layout.checks]
    return Joined(ErrorLayout(tuple(checks), tuple(slots)), offsets, slot_maps)


def earlier(first: Failures, second: Failures) -> Failures:
    """Return ``first`` if it has a failure, and otherwise ``second``; both have the same layout."""
    fine = eq_p.bind(first.code, 0)
    payload = [where(fine, b, a) for a, b in zip(first.payload, second.payload, strict=True)]
    return Failures(where(fine, second.code, first.code), payload, first.checks)


def first_of_all(failures: Sequence[Failures]) -> Failures | None:
    """Return the first failure of several programs that run one after the other, in a common layout.

    ``failures`` has the :class:`Failures` of each program, in order. Return None if there are no programs.
    """
    if not failures:
        return None
    if len(failures) == 1:
        return failures[0]
    common = joined([each.layout for each in failures])
    first = common.embed(0, failures[0])
    for i, each in enumerate(failures[1:], 1):
        first = earlier(first, common.embed(i, each))
    return first


def first_along_axes(code: Any, payload: Sequence[Any]) -> tuple[Any, list[Any]] | None:
    """Select the first failure from arrays that hold many.

    Args:
      code: an array of numbers of failed checks, 0 where no check failed.
      payload: the values for messages; each has the axes of ``code`` first.

    Returns:
      The ``code`` and the ``payload`` of the first failure, without these axes; None if ``code`` has no elements.
    """
    shape = code.shape
    if not shape:
        return code, list(payload)
    count = math.prod(shape)
    if count == 0:
        return None
    flat = reshape(code, (count,))
    i = argmax(ne_p.bind(flat, 0), 0, INT32)

    def selected(x: Any) -> Any:
        own = x.shape[len(shape) :]
        block = dynamic_slice(reshape(x, (count, *own)), [i, *[0] * len(own)], (1, *own))
        return reshape(block, own)

    return selected(flat), [selected(x) for x in payload]
