"""Conversion of positions in row-major order to positions along axes, and indices of open meshes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from pullback.core import dtypes
from pullback.core.annotations import ShapeLike
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import ShapeError
from pullback.core.trace import Tracer
from pullback.numpy.creation import listed
from pullback.numpy.indexing import nonzero
from pullback.numpy.promotion import known_int, positions_operand, promote_all, several
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes

__all__ = ["ix_", "unravel_index"]


def unravel_index(indices: ArrayLike | Sequence[Any], shape: ShapeLike) -> tuple[Array, ...]:
    """Convert positions in row-major order to positions along each axis.

    Args:
      indices: integers; negative ones count from the end, those out of range mean the first or last element.
      shape: the shape of the array, as an int or ints; they may be traced.

    Returns:
      For each axis an array of the shape of ``indices``.

    Raises:
      ShapeError: the array has no elements, or ``shape`` is not a shape (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(*jnp.unravel_index(jnp.array([5, 2]), (2, 3)))
    [1 0] [2 2]
    """
    flat = positions_operand("unravel_index", listed("unravel_index", indices))
    sizes: list[Any] = list(several(shape))
    if any(isinstance(n, Tracer) and n.concrete() is None for n in sizes):
        flat, *sizes = promote_all("unravel_index", [flat, *sizes])
        total: Any = functools.reduce(ops.mul, sizes)
        last = ops.sub(total, 1)
    else:
        sizes = [known_int("unravel_index", "a size", n) for n in sizes]
        total = math.prod(sizes)
        last = total - 1
        if total == 0:
            raise ShapeError(f"unravel_index: an array of shape {tuple(sizes)} has no elements")
    flat = ops.where(ops.lt(flat, 0), ops.add(flat, total), flat)
    flat = ops.min_p.bind(ops.max_p.bind(flat, 0), last)
    out = []
    for n in reversed(sizes):
        out.append(ops.rem_p.bind(flat, n))
        flat = ops.div(flat, n)
    return tuple(reversed(out))


def ix_(*args: ArrayLike | Sequence[Any]) -> tuple[Array, ...]:
    """Vectors of positions shaped so that they index an open mesh.

    Args:
      args: vectors of integers, or concrete vectors of booleans.

    Returns:
      An array of integers for each argument, which broadcast against each other.

    Raises:
      ShapeError: an argument is not one-dimensional (a ValueError).

    >>> import pullback.numpy as jnp
    >>> print(jnp.arange(6).reshape(2, 3)[jnp.ix_(jnp.array([0, 1]), jnp.array([0, 2]))])
    [[0 2]
     [3 5]]
    """
    out = []
    for k, arg in enumerate(args):
        x = listed("ix_", arg)
        if len(x.shape) != 1:
            raise ShapeError(f"ix_: arguments must be one-dimensional, got shape {x.shape}")
        if dtypes.is_bool(x.dtype):
            (x,) = nonzero(x)
        out.append(shapes.reshape(x, [x.shape[0] if i == k else 1 for i in range(len(args))]))
    return tuple(out)
