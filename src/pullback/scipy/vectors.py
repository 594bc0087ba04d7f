"""Conversion of trees of arrays to vectors, for methods that compute with vectors."""

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
    """Converts trees like ``like``, of inexact arrays or their types, to vectors of their common dtype and back.

    Attributes:
      size: the number of elements of the vectors.
      dtype: the dtype of the vectors.
    """

    def __init__(self, like: Any) -> None:
        leaves, self.treedef = tree.flatten(like)
        self.types = [x if isinstance(x, ShapedArray) else typeof(x) for x in leaves]
        self.dtype = dtypes.result_type(*[t.dtype for t in self.types]) if leaves else dtypes.default_float()
        self.size = sum(math.prod(t.shape) for t in self.types)

    def ravel(self, x: Any) -> Any:
        """Flatten a tree to a vector."""
        leaves = zip(tree.leaves(x), self.types, strict=True)
        vectors = [ops.convert_element_type(shapes.reshape(y, (math.prod(t.shape),)), self.dtype) for y, t in leaves]
        return vectors[0] if len(vectors) == 1 else concatenate(vectors)

    def tree(self, x: Any) -> Any:
        """Rebuild a tree from a vector."""
        leaves, start = [], 0
        for t in self.types:
            count = math.prod(t.shape)
            piece = x if count == self.size else x[start : start + count]
            if dtypes.is_complex(self.dtype) and not dtypes.is_complex(t.dtype):
                piece = ops.real(piece)
            leaves.append(ops.convert_element_type(shapes.reshape(piece, t.shape), t.dtype))
            start += count
        return tree.unflatten(self.treedef, leaves)
