"""NumPy's arrays that a checkpointed function closes over, as they were when it was called.

The function runs again in the backward pass, when the user may have written into them. So the copy that is made of
each when the function uses it is kept, in the order of use. The next run takes the copy where it comes to the same
array, and makes one of an array that it made itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, converting


class AsItWas:
    """A function of arrays that uses the contents which NumPy's arrays had in its first run.

    Attributes:
      run: the function.
    """

    __slots__ = ("_uses", "run")

    def __init__(self, run: Callable[..., Sequence[Any]]) -> None:
        self.run = run
        self._uses: list[_Use] | None = None

    def __call__(self, *operands: Any) -> Any:
        uses = self._uses
        if uses is None:
            uses = self._uses = []
            with converting(lambda x, convert: _record(uses, x, convert)):
                return self.run(*operands)
        following = iter(uses)
        with converting(lambda x, convert: _again(next(following, None), x, convert)):
            return self.run(*operands)


class _Use:
    """A use of an array: the array, as long as somebody else has it, and its copy as long as that."""

    __slots__ = ("__weakref__", "array", "copy")

    def __init__(self, x: np.ndarray[Any, Any], copy: ArrayImpl) -> None:
        self.copy: ArrayImpl | None = copy
        own = weakref.ref(self)

        def forget(_: Any) -> None:
            use = own()
            if use is not None:
                use.copy = None

        self.array = weakref.ref(x, forget)


def _record(uses: list[_Use], x: np.ndarray[Any, Any], convert: Callable[[Any], ArrayImpl]) -> ArrayImpl:
    copy = convert(x)
    for use in reversed(uses):
        if use.array() is x and use.copy is not None and _is_same(use.copy, copy):
            copy = use.copy  # one copy of an array that is used several times
            break
    uses.append(_Use(x, copy))
    return copy


def _is_same(x: ArrayImpl, y: ArrayImpl) -> bool:
    a, b = np.atleast_1d(x._value), np.atleast_1d(y._value)
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a.view(np.uint8), b.view(np.uint8))


def _again(use: _Use | None, x: np.ndarray[Any, Any], convert: Callable[[Any], ArrayImpl]) -> ArrayImpl:
    copy = convert(x)  # which counts the use in a run of a function around this one
    if use is not None and use.copy is not None and use.array() is x:
        return use.copy
    return copy
