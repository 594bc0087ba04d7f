"""Names of types for annotations. ``ArrayLike`` is in ``core/array``, beside ``Array``.

``DTypeLike`` is NumPy's for type checkers alone, since importing ``numpy.typing`` takes time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    from numpy.typing import DTypeLike as _NumpyDTypeLike

    DTypeLike = _NumpyDTypeLike | Any
else:
    DTypeLike = Any

Axes = int | Sequence[int] | None
"""One axis, several, or None for all."""
ShapeLike = SupportsIndex | Sequence[SupportsIndex]
"""A shape, or the size of the one axis."""
