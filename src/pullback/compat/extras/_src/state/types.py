"""``jax._src.state.types``: the type of references, which Flax NNX checks for."""

from __future__ import annotations

from typing import Any

from pullback.core.types import AbstractValue, ShapedArray


class AbstractRef(AbstractValue):
    """The type of a mutable reference, in JAX's spelling.

    Attributes:
      inner_aval: the type of the array in it.

    >>> import numpy as np
    >>> from pullback.compat.extras._src.state.types import AbstractRef
    >>> from pullback.extend import ShapedArray
    >>> ref = AbstractRef(ShapedArray((3,), np.dtype("float32")))
    >>> ref, ref.shape, ref.inner_aval
    (Ref{f32[3]}, (3,), ShapedArray(f32[3]))
    """

    __slots__ = ("inner_aval",)

    def __init__(self, inner_aval: ShapedArray) -> None:
        self.inner_aval = inner_aval

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "weak_type", "sharding"):
            return getattr(self.inner_aval, name)
        raise AttributeError(f"AbstractRef has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is AbstractRef and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"
