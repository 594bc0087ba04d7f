"""Convolutions in groups on CPUs, for which the compiler has no library, by operations that it computes quickly.

A convolution of each feature by itself is a sum of products of the operand, moved, with one element of the window. The
derivative of a grouped convolution by its kernel has few positions: each is a product of matrices for each group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pullback.core import dtypes
from pullback.core.types import Shape
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, pad, slice
from pullback.primitives.linalg.contraction import dot_general

MOST_TERMS = 64
"""The most elements of a window, or positions of a result, that become terms of a program."""
FEW_FEATURES = 8
"""The most features of a group for which each becomes a term."""


def is_by_features(
    lhs: Any, rhs: Any, *, dimension_numbers: Any, feature_group_count: int, batch_group_count: int, **_others: Any
) -> bool:
    """Whether groups of few features have kernels of their own, of few elements."""
    _, i, *window = dimension_numbers.rhs_spec
    sizes = [rhs.shape[a] for a in (i, *window)]
    return feature_group_count > 1 and _is_at_most(sizes[:1], FEW_FEATURES) and _is_at_most(sizes, MOST_TERMS)


def _is_at_most(sizes: Sequence[Any], bound: int) -> bool:
    """Whether a product of sizes is known, and at most a bound."""
    return all(isinstance(n, int) for n in sizes) and math.prod(sizes) <= bound


def by_features(
    lhs: Any, rhs: Any, shape: Shape, *, geometry: Any, dimension_numbers: Any, feature_group_count: int, **_others: Any
) -> Any:
    """Compute a convolution of groups of few features: a sum over the elements of the window, and the features.

    ``shape`` is the shape of the result; the other arguments are the parameters of the convolution.
    """
    (n, c, *space), (o, i, *window), (m, f, *out_space) = dimension_numbers
    x = _padded(shapes.transpose(lhs, (n, *space, c)), geometry, before=1)
    x = shapes.reshape(x, (*x.shape[:-1], feature_group_count, rhs.shape[i]))
    kernel = shapes.transpose(rhs, (*window, i, o))
    sizes, kernels = kernel.shape[:-2], kernel.shape[-1] // feature_group_count
    kernel = shapes.reshape(kernel, (*kernel.shape[:-1], feature_group_count, kernels))
    alike = (shape[m], *[shape[a] for a in out_space], feature_group_count, kernels)
    rank = len(alike) - 1
    total: Any = None
    for element in itertools.product(*map(range, sizes)):
        part = _moved(x, element, geometry.rhs_dilation, alike[1:-2], geometry.strides, before=1)
        for feature in range(rhs.shape[i]):
            start, limit = [0] * rank + [feature], [*part.shape[:-1], feature + 1]
            of_feature = shapes.reshape(slice(part, start, limit), alike[:-1])
            at = (*element, feature)
            weights = slice(kernel, (*at, 0, 0), (*[e + 1 for e in at], *alike[-2:]))
            weights = shapes.broadcast_in_dim(shapes.reshape(weights, alike[-2:]), alike, (rank - 1, rank))
            term = ops.mul_p.bind(shapes.broadcast_in_dim(of_feature, alike, range(rank)), weights)
            total = term if total is None else ops.add_p.bind(total, term)
    out = shapes.reshape(total, (*alike[:-2], feature_group_count * kernels))
    return _in_axes(out, (m, *out_space, f))


def has_few_positions(
    lhs: Any, rhs: Any, shape: Shape, *, dimension_numbers: Any, feature_group_count: int, batch_group_count: int,
    **_others: Any,
) -> bool:  # fmt: skip
    """Whether groups of a batch have kernels of their own, of several features, at few positions.

    So is the derivative of a grouped convolution by its kernel.
    """
    if batch_group_count == 1 or not _is_at_most([shape[a] for a in dimension_numbers.out_spec[2:]], MOST_TERMS):
        return False
    of_groups = lhs.shape[dimension_numbers.lhs_spec[0]], rhs.shape[dimension_numbers.rhs_spec[0]]
    return any(n != batch_group_count for n in of_groups) and dtypes.is_inexact(lhs.dtype)


def by_positions(
    lhs: Any, rhs: Any, shape: Shape, *, geometry: Any, dimension_numbers: Any, batch_group_count: int,
    precision: Any, **_others: Any,
) -> Any:  # fmt: skip
    """Compute a convolution of groups of a batch: for each position of the result a product of each group.

    ``shape`` is the shape of the result; the other arguments are the parameters of the convolution.
    """
    (n, c, *space), (o, i, *window), (m, f, *out_space) = dimension_numbers
    groups, last = batch_group_count, len(space) + 2
    x = _padded(shapes.transpose(lhs, (n, c, *space)), geometry, before=2)
    kernel = shapes.transpose(rhs, (o, i, *window))
    sizes = kernel.shape[2:]
    kernel = shapes.reshape(kernel, (groups, kernel.shape[0] // groups, *kernel.shape[1:]))
    contracted = tuple(range(2, last + 1))
    parts = []
    for position in itertools.product(*[range(shape[a]) for a in out_space]):
        part = _moved(x, position, geometry.strides, sizes, geometry.rhs_dilation, before=2)
        part = shapes.reshape(part, (groups, part.shape[0] // groups, *part.shape[1:]))
        product = dot_general(part, kernel, ((contracted, contracted), ((0,), (0,))), precision)
        parts.append(shapes.reshape(product, (1, *product.shape)))
    out = concatenate(parts, 0)  # the axes: positions, groups, batch, features
    out = shapes.transpose(out, (2, 0, 1, 3))
    out = shapes.reshape(out, (out.shape[0], *[shape[a] for a in out_space], groups * out.shape[-1]))
    return _in_axes(out, (m, *out_space, f))


def _padded(x: Any, geometry: Any, before: int) -> Any:
    """Pad and dilate the spatial axes of an operand, which come after ``before`` other axes."""
    steps = [(low, high, base - 1) for (low, high), base in zip(geometry.padding, geometry.lhs_dilation, strict=True)]
    widths = [*[(0, 0, 0)] * before, *steps, *[(0, 0, 0)] * (len(x.shape) - before - len(steps))]
    return x if all(w == (0, 0, 0) for w in widths) else pad(x, x.dtype.type(0), widths)


def _moved(
    x: Any, element: Sequence[int], steps: Sequence[int], counts: Sequence[int], strides: Sequence[int], before: int
) -> Any:
    """Return the elements that some windows have at one position: ``counts`` of them along the spatial axes."""
    first = [e * step for e, step in zip(element, steps, strict=True)]
    last = [f + (count - 1) * stride + 1 for f, count, stride in zip(first, counts, strides, strict=True)]
    after = len(x.shape) - before - len(first)
    start, limit = (*[0] * before, *first, *[0] * after), (*x.shape[:before], *last, *x.shape[len(x.shape) - after :])
    return slice(x, start, limit, (*[1] * before, *strides, *[1] * after))


def _in_axes(x: Any, axes: Sequence[int]) -> Any:
    """Move each axis of ``x`` to the position that ``axes`` has for it."""
    return shapes.transpose(x, sorted(range(len(axes)), key=axes.__getitem__))
