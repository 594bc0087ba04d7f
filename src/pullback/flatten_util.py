"""Conversion of a tree of arrays to one vector and back, under the name of ``jax.flatten_util``."""

from collections.abc import Callable
from typing import Any

from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike
from pullback.core.faces import face
from pullback.core.naming import named

__all__ = ["ravel_pytree"]
face(globals())


@named
def ravel_pytree(pytree: PyTree) -> tuple[Array, Callable[[ArrayLike], PyTree]]:
    """Concatenate the leaves of a tree to a vector; also return the function that rebuilds the tree.

    Args:
      pytree: a tree of arrays and numbers.

    Returns:
      ``(flat, unravel)``: a vector of the dtype that all the leaves promote to, and a function from such a
      vector to a tree like ``pytree``, each leaf of its own shape and dtype (or, if all have the same, of the
      vector's). Both can be differentiated, and the functions of equal trees are equal.

    Raises:
      OperandError: a leaf is not an array of numbers.
      TypePromotionError: the leaves have no common dtype.

    >>> from pullback.flatten_util import ravel_pytree
    >>> flat, unravel = ravel_pytree({"a": 1.0, "b": (2.0, 3.0)})
    >>> flat.shape, float(unravel(2 * flat)["b"][1])
    ((3,), 6.0)
    """
    import pullback.numpy as pnp

    leaves, treedef = tree.flatten(pytree)
    types = [dtypes.dtype_of(leaf) for leaf in leaves]
    dtype = dtypes.result_type(*leaves) if leaves else dtypes.default_float()
    unravel = Unravel(treedef, tuple(tuple(pnp.shape(leaf)) for leaf in leaves), tuple(types), dtype)
    if not leaves:
        return pnp.zeros(0, dtype), unravel
    return pnp.concatenate([pnp.ravel(leaf) for leaf in leaves]), unravel


class Unravel:
    """The function from a vector to a tree that :func:`ravel_pytree` returns."""

    __slots__ = ("dtype", "shapes", "size", "treedef", "types")

    def __init__(self, treedef: Any, shapes: tuple[Any, ...], types: tuple[Any, ...], dtype: Any) -> None:
        self.treedef = treedef
        self.shapes = shapes
        self.types = types
        self.dtype = dtype
        self.size = sum(_size(shape) for shape in shapes)

    def __call__(self, flat: Any) -> Any:
        """Rebuild the tree from the vector of its leaves.

        Raises:
          TypeError: the leaves differ in dtype, and the vector's dtype is not their common one.
          ValueError: it is not a vector of as many elements.
        """
        import pullback.numpy as pnp

        shape, dtype = tuple(pnp.shape(flat)), dtypes.dtype_of(flat)
        mixed = any(leaf_dtype != self.dtype for leaf_dtype in self.types)
        if mixed and dtype != self.dtype:
            raise TypeError(f"unravel expected a vector of dtype {self.dtype}, got dtype {dtype}")
        if shape != (self.size,):
            raise ValueError(f"unravel expected a vector of shape ({self.size},), got shape {shape}")
        leaves, start = [], 0
        for leaf_shape, leaf_dtype in zip(self.shapes, self.types):
            stop = start + _size(leaf_shape)
            part = pnp.reshape(flat[start:stop], leaf_shape)
            if mixed and leaf_dtype != dtype:
                real = dtypes.is_complex(dtype) and not dtypes.is_complex(leaf_dtype)
                part = (pnp.real(part) if real else part).astype(leaf_dtype)
            leaves.append(part)
            start = stop
        return tree.unflatten(self.treedef, leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unravel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.treedef, self.shapes, self.types, self.dtype

    def __repr__(self) -> str:
        return f"<unravel a vector of {self.size} elements into {self.treedef}>"


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
