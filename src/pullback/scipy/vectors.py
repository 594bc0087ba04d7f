"""Trees of arrays as single vectors, for methods that compute with vectors."""

from __future__ import annotations

import math
from typing import Any

from pullback.core import dtypes, tree
from pullback.core.array import typeof
from pullback.core.types import ShapedArray
from pullback.numpy.joining import concatenate
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes


class Vectors:
    """Trees like a given one, of inexact arrays or of the types of such, as vectors of their common dtype.

    Attributes:
      size: how many elements they have.
      dtype: of the vectors.
    """

    def __init__(self, like: Any) -> None:
        leaves, self.treedef = tree.flatten(like)
        self.types = [x if isinstance(x, ShapedArray) else typeof(x) for x in leaves]
        self.dtype = dtypes.result_type(*[t.dtype for t in self.types]) if leaves else dtypes.default_float()
        self.size = sum(math.prod(t.shape) for t in self.types)

    def ravel(self, x: Any) -> Any:
        """A tree as a vector."""
        leaves = zip(tree.leaves(x), self.types, strict=True)
        parts = [ops.convert_element_type(shapes.reshape(y, (math.prod(t.shape),)), self.dtype) for y, t in leaves]
        return parts[0] if len(parts) == 1 else concatenate(parts)

    def tree(self, x: Any) -> Any:
        """A vector as a tree."""
        leaves, start = [], 0
        for t in self.types:
            count = math.prod(t.shape)
            part = x if count == self.size else x[start : start + count]
            if dtypes.is_complex(self.dtype) and not dtypes.is_complex(t.dtype):
                part = ops.real(part)
            leaves.append(ops.convert_element_type(shapes.reshape(part, t.shape), t.dtype))
            start += count
        return tree.unflatten(self.treedef, leaves)
