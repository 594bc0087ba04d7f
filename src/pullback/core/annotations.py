"""Names of types for annotations. ``ArrayLike`` is in ``core/array``, beside ``Array``.

``DTypeLike`` is NumPy's for type checkers alone, since importing ``numpy.typing`` takes time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike as _NumpyDTypeLike

    DTypeLike = _NumpyDTypeLike | Any
else:
    DTypeLike = Any

Axes = int | Sequence[int] | None
"""One axis, several, or None for all."""
ShapeLike = SupportsIndex | Sequence[SupportsIndex]
"""A shape, or the size of the one axis."""


class HasShapeAndDtype(Protocol):
    """What stands for an array of which only the type is asked for, such as ``ShapeDtypeStruct``."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
