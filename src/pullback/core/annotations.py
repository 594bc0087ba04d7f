"""Names of types for annotations. ``ArrayLike`` is in ``core/array``, next to ``Array``.

``DTypeLike`` is NumPy's for type checkers only, since importing ``numpy.typing`` takes time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, SupportsIndex, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike as _NumpyDTypeLike

    DTypeLike = _NumpyDTypeLike | Any
else:
    DTypeLike = Any

Axes = int | Sequence[int] | None
"""An axis, several axes, or None for all axes."""
ShapeLike = SupportsIndex | Sequence[SupportsIndex]
"""A shape, or the size of the one axis."""

AxisName = Hashable
"""The name of an axis of ``vmap`` or of a mesh; a tuple of names where several are taken."""
PrecisionLike = str | Enum | Sequence[str | Enum] | None
"""How exactly products are computed: a ``lax.Precision`` or its name, or one for each operand."""
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""``((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs))``."""
PyTree = Any
"""A tree of arrays of any Python types: an argument or a result of the user's function."""

Placement = Any
"""A device or a sharding, whose classes are on a floor above; above it, annotations name them."""


class HasShapeAndDtype(Protocol):
    """An object with the type of an array and no elements, such as ``ShapeDtypeStruct``."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...


class SupportsArray(Protocol):
    """An object that NumPy can convert to an array."""

    def __array__(self) -> np.ndarray[Any, Any]: ...


class SupportsDLPack(Protocol):
    """An array of any library that keeps the DLPack protocol."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


class Decorator(Protocol):
    """A decorator: a transformation with its options bound, which takes only the function to transform."""

    def __call__(self, fun: Callable[P, R], /) -> Callable[P, R]: ...
