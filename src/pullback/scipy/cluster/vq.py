"""Vector quantisation: observations by the nearest vectors of a code book. ``pullback.scipy.cluster.vq``."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.control.scan import scan
from pullback.core import dtypes
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.faces import face
from pullback.numpy.promotion import inexact_operands
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient

__all__ = ["vq"]
face(globals())


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation the nearest vector of a code book, and its distance.

    Args:
      obs: the observations, (m, n) real numbers; or (m,) of one number each.
      code_book: the vectors, (k, n) or (k,), k at least 1.
      check_finite: accepted for compatibility; elements that are not finite have distances that are not finite.

    Returns:
      The indices into the code book, (m,) of int32, the first of equally near vectors; and the Euclidean distances,
      (m,), which can be differentiated. For n of 5 and more distances are compared by products of vectors, so that
      rounding may decide between nearly equal ones.

    Raises:
      ShapeError: operands of other shapes (a TypeError and a ValueError).
      DtypeError: complex operands (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.scipy.cluster.vq import vq
    >>> code, distance = vq(jnp.array([[1.0, 0.0], [0.0, 3.0]]), jnp.array([[0.0, 0.0], [0.0, 2.0]]))
    >>> print(code, distance)
    [0 1] [1. 1.]
    """
    check_finite = flag("vq", "check_finite", check_finite)
    x, book = inexact_operands("vq", obs, code_book)
    if dtypes.is_complex(x.dtype):
        raise DtypeError(f"vq takes real numbers, got {dtypes.short_name(x.dtype)}")
    if len(x.shape) not in (1, 2) or len(book.shape) != len(x.shape) or x.shape[1:] != book.shape[1:]:
        raise ShapeError(
            "vq takes observations (m, n) and a code book (k, n), or (m,) and (k,), got shapes "
            f"{x.shape} and {book.shape}"
        )
    if not book.shape[0]:
        raise ShapeError(f"vq takes a code book of at least one vector, got shape {book.shape}")
    if len(x.shape) == 1:
        x, book = shapes.expand_dims(x, (1,)), shapes.expand_dims(book, (1,))
    code = _nearest(stop_gradient(x), stop_gradient(book))
    return code, pnp.linalg.norm(ops.sub(x, book[code]), axis=-1)


_PAIRS = 1 << 20
"""The number of pairs of an observation and a vector whose distances are computed in one block."""
_FEW = 5
"""Vectors of so many elements or more have distances computed by products, as in SciPy."""


def _nearest(x: Any, book: Any) -> Any:
    """Return for each observation in ``x`` the index of the nearest vector of the code book.

    The observations are processed in blocks, which bounds the memory.
    """
    m, k = x.shape[0], book.shape[0]
    if book.shape[1] >= _FEW:  # centred vectors lose less in differences of squares
        middle = pnp.mean(book, axis=0)
        x, book = ops.sub(x, middle), ops.sub(book, middle)
    if m * k <= _PAIRS:
        return _nearest_of_block(x, book)
    size = max(_PAIRS // k, 1)
    count = -(-m // size)
    blocks = shapes.reshape(pnp.pad(x, ((0, count * size - m), (0, 0))), (count, size, x.shape[1]))
    _, found = scan(lambda carry, block: (carry, _nearest_of_block(block, book)), None, blocks)
    return shapes.reshape(found, (count * size,))[:m]


def _nearest_of_block(x: Any, book: Any) -> Any:
    if book.shape[1] < _FEW:
        squares = [
            ops.square(ops.sub(x[:, i : i + 1], shapes.reshape(book[:, i : i + 1], (1, book.shape[0]))))
            for i in range(book.shape[1])
        ]
        distances = sum(squares[1:], squares[0]) if squares else shapes.full((x.shape[0], book.shape[0]), 0, x.dtype)
    else:
        products = ops.mul(2.0, pnp.matmul(x, book.T))
        distances = ops.sub(pnp.sum(ops.square(book), axis=1), products)
    return ops.convert_element_type(pnp.argmin(distances, axis=1), np.dtype(np.int32))
