"""Images that extend beyond their borders, and the windows that filters look through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core.types import Shape
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, conv_general_dilated_p
from pullback.scipy.ndimage.arguments import PADDING

MANY = 64
"""From how many elements of a window on XLA's convolution takes the sum, instead of a sum of slices."""


def margins(size: int, origin: int) -> tuple[int, int]:
    """Return how many elements before and after an axis a window of ``size`` elements reads."""
    return size // 2 + origin, size - size // 2 - 1 - origin


def extended(x: Any, axis: int, widths: tuple[int, int], mode: str, cval: Any) -> Any:
    """Extend an image along an axis by the elements beyond its borders, as the mode of a filter says."""
    if not any(widths):
        return x
    pairs = [widths if i == axis else (0, 0) for i in range(len(x.shape))]
    kind = PADDING[mode]
    if kind == "constant":
        return pnp.pad(x, pairs, constant_values=cval)
    return pnp.pad(x, pairs, kind)


def extended_all(x: Any, sizes: Sequence[int], origins: Sequence[int], modes: Sequence[str], cval: Any) -> Any:
    """Extend an image along all axes by what a window of these sizes reads."""
    for axis, (size, origin, mode) in enumerate(zip(sizes, origins, modes, strict=True)):
        x = extended(x, axis, margins(size, origin), mode, cval)
    return x


def piece(x: Any, start: Sequence[int], shape: Shape) -> Any:
    """Return the elements that one element of the window reads, for all positions of the window."""
    return slicing.slice(x, start, [s + n for s, n in zip(start, shape, strict=True)])


def sum_of_products(x: Any, weights: Any, shape: Shape) -> Any:
    """Return the correlation of an extended image with weights of equally many axes, where they overlap.

    Args:
      x: the extended image.
      weights: an ``np.ndarray``, whose zeros are not read, or a traced array.
      shape: the shape of the result.
    """
    concrete = isinstance(weights, np.ndarray)
    positions = list(np.ndindex(weights.shape))
    if concrete:
        positions = [i for i in positions if weights[i]] or positions[:1]
    if len(positions) > MANY:
        return _convolved(x, weights)
    total = None
    for i in positions:
        weight = weights[i].item() if concrete else ops.convert_element_type(weights[i], x.dtype)
        term = piece(x, i, shape)
        if not concrete or weight != 1:
            term = ops.mul(term, weight)
        total = term if total is None else ops.add(total, term)
    return total


def _convolved(x: Any, weights: Any) -> Any:
    rank = len(x.shape)
    window = ops.convert_element_type(pnp.asarray(weights), x.dtype)
    out = conv_general_dilated_p.bind(
        shapes.reshape(x, (1, 1, *x.shape)),
        shapes.reshape(window, (1, 1, *weights.shape)),
        geometry=Geometry((1,) * rank, ((0, 0),) * rank, (1,) * rank, (1,) * rank),
        dimension_numbers=ConvDimensionNumbers(*[tuple(range(rank + 2))] * 3),
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
    )
    return shapes.reshape(out, out.shape[2:])


def stacked(x: Any, mask: np.ndarray[Any, Any], shape: Shape) -> Any:
    """Return the elements below the true elements of a window, along a new first axis.

    Args:
      x: the extended image.
      mask: the window, of equally many axes.
      shape: the shape of the image.
    """
    return pnp.stack([piece(x, i, shape) for i in np.ndindex(mask.shape) if mask[i]])
