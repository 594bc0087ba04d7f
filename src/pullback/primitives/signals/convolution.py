"""Convolutions of any number of dimensions, with strides, dilations and groups.

Both derivatives of a convolution are convolutions (Dumoulin and Visin, *A guide to convolution arithmetic for deep
learning*, 2016): with respect to the operand, strides and dilations change roles; with respect to the kernel, batch and
features do.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host import convolutions
from pullback.core import dtypes
from pullback.core.arguments import is_listed, quote
from pullback.core.array import ArrayImpl
from pullback.core.config import PRECISIONS, config
from pullback.core.dims import as_size
from pullback.core.elsewhere import on_host
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, pad, rev, slice
from pullback.primitives.arrays.windows import zeros
from pullback.primitives.checks import VALUE, check_dtype, same_dtype
from pullback.primitives.declare import jvp_bilinear
from pullback.primitives.linalg.contraction import dot_general
from pullback.primitives.masked import masked_sum_of_products
from pullback.primitives.rules import axis_divided, axis_kept
from pullback.primitives.signals import grouped_convolution, vector_convolution

Pairs = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """The axes of batch, features and space in a convolution's operand, kernel and result.

    Attributes:
      lhs_spec: the axes of the operand: batch, features, then space.
      rhs_spec: the axes of the kernel: features of the result, features of the operand, then space.
      out_spec: the axes of the result: batch, features, then space.

    >>> from pullback import lax
    >>> numbers = lax.conv_dimension_numbers((1, 8, 2), (3, 2, 4), ("NWC", "WIO", "NWC"))
    >>> numbers.lhs_spec, numbers.rhs_spec
    ((0, 2, 1), (2, 1, 0))
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


class Geometry(NamedTuple):
    """The strides, padding and dilations of a convolution, for each axis of space.

    Attributes:
      strides: the distance between neighbouring windows.
      padding: the numbers of zeros before and after the dilated operand; negative numbers remove elements.
      lhs_dilation: the distance between elements of the operand.
      rhs_dilation: the distance between elements of the kernel.
    """

    strides: Shape
    padding: Pairs
    lhs_dilation: Shape
    rhs_dilation: Shape


def dilated(size: int, dilation: int) -> int:
    """Return the length of an axis of ``size`` elements, whose neighbours are put at distance ``dilation``."""
    return 1 + (size - 1) * dilation if size else 0


def window_count(size: int, window: int, stride: int, padding: tuple[int, int], base: int, step: int) -> int:
    """Return the number of windows along an axis of a convolution.

    Args:
      size: the number of elements of the operand.
      window: the number of elements of the window.
      stride: the distance between neighbouring windows.
      padding: the numbers of zeros before and after the operand.
      base: the distance between neighbouring elements of the operand.
      step: the distance between neighbouring elements of the window.
    """
    room = dilated(size, base) + sum(padding) - dilated(window, step)
    return room // stride + 1 if room >= 0 else 0


def back_padding(size: int, window: int, count: int, stride: int, low: int, base: int, step: int) -> tuple[int, int]:
    """Return the padding, before and after, along an axis of a transposed convolution.

    Args:
      size: the size of the operand of the convolution, which is the result of the transposed convolution.
      window: the size of the window.
      count: the size of the result of the convolution.
      stride: the stride of the convolution.
      low: the padding of the convolution before the operand.
      base: the dilation of the operand.
      step: the dilation of the window.
    """
    return dilated(window, step) - 1 - low, dilated(size, base) + low - dilated(count, stride)


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Return the padding that a word stands for: for each axis the numbers of elements before and after it.

    Args:
      in_shape: the sizes of the axes.
      window_shape: the sizes of the windows.
      window_strides: the distances between neighbouring windows.
      padding: ``VALID`` for none; ``SAME`` for ``ceil(size / stride)`` windows, with an odd element at the end;
        ``SAME_LOWER`` for the same with the odd element at the start. Lower case is accepted.

    Returns:
      A list with a pair of ints for each axis.

    Raises:
      ArgumentError: the word is unknown (a TypeError, ValueError).

    >>> from pullback import lax
    >>> lax.padtype_to_pads((5, 6), (2, 3), (1, 2), "SAME")
    [(0, 1), (0, 1)]
    """
    word = padding.upper() if isinstance(padding, str) else padding
    for what, given in (("in_shape", in_shape), ("window_shape", window_shape), ("window_strides", window_strides)):
        if not isinstance(given, (Sequence, np.ndarray)) or isinstance(given, str):
            raise ArgumentError(f"padtype_to_pads: {what} must be a sequence of ints, got {quote(given)}")
    if word == "VALID":
        return [(0, 0)] * len(in_shape)
    if not is_listed(word, ("SAME", "SAME_LOWER")):
        raise ArgumentError(f"padding must be 'VALID', 'SAME', 'SAME_LOWER' or a sequence of pairs, got {padding!r}")
    pairs = []
    sizes = (map(as_size, values) for values in (in_shape, window_shape, window_strides))
    for size, window, stride in zip(*sizes, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pairs.append((less, more) if word == "SAME" else (more, less))
    return pairs


def padding_pairs(name: str, padding: Any) -> Pairs:
    """Return the ``padding`` that a user passed as a tuple of pairs of integers; raise if it is anything else.

    ``name`` is the name of the function in the error.
    """
    try:
        return tuple([(operator.index(low), operator.index(high)) for low, high in padding])
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}: padding must be 'VALID', 'SAME', 'SAME_LOWER' or a sequence of pairs of integers, got {padding!r}"
        ) from None


conv_general_dilated_p = Primitive("conv_general_dilated")
conv_general_dilated_p.jvp_rule = jvp_bilinear(conv_general_dilated_p)


@axis_kept(conv_general_dilated_p)
def _keeps(
    axis: int, operand: int, lhs: Shape, rhs: Shape, *, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, **params: Any,
) -> int | None:  # fmt: skip
    """Return the result axis that corresponds to axis ``axis`` of an operand; None if no result axis does.

    ``operand`` is 0 for the operand of the convolution, and 1 for the kernel. The operand's batch axis corresponds to
    the result's batch axis, and the axis of the kernel's output features to the result's features. The axis of the
    operand's features corresponds to the result's features if each feature is a group of its own with one output. With
    several batch groups the function returns None.
    """
    if batch_group_count > 1:
        return None
    batch, features, *_ = dimension_numbers.out_spec
    if operand == 1:
        return features if axis == dimension_numbers.rhs_spec[0] else None
    if axis == dimension_numbers.lhs_spec[0]:
        return batch
    is_depthwise = feature_group_count == lhs[axis] == rhs[dimension_numbers.rhs_spec[0]]
    return features if axis == dimension_numbers.lhs_spec[1] and is_depthwise else None


@axis_divided(conv_general_dilated_p)
def _divided(
    axis: int, operand: int, *shapes: Shape, dimension_numbers: ConvDimensionNumbers, **rest: Any
) -> int | None:
    """Return the result axis that corresponds to an axis in space; None for other axes."""
    in_space = () if operand else dimension_numbers.lhs_spec[2:]
    return dimension_numbers.out_spec[2 + in_space.index(axis)] if axis in in_space else None


# Types -------------------------------------------------------------------------------------------------------------


@conv_general_dilated_p.abstract_eval
def _conv_abstract_eval(
    lhs: ShapedArray, rhs: ShapedArray, *, geometry: Geometry, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, precision: tuple[str, str] | None,
) -> ShapedArray:  # fmt: skip
    dtype = same_dtype("conv_general_dilated", [lhs, rhs])
    check_dtype("conv_general_dilated", VALUE, dtype)
    groups = feature_group_count, batch_group_count
    return ShapedArray(_result_shape(lhs.shape, rhs.shape, geometry, dimension_numbers, groups), dtype)


@lru_cache(maxsize=4096)
def _result_shape(
    lhs: Shape, rhs: Shape, geometry: Geometry, numbers: ConvDimensionNumbers, groups: tuple[int, int]
) -> Shape:
    rank = len(lhs)
    if rank < 2 or len(rhs) != rank:
        raise ShapeError(
            "conv_general_dilated takes an operand and a kernel of one rank, of at least 2 axes (batch and features), "
            f"got shapes {lhs} and {rhs}"
        )
    _check_specs(numbers, rank)
    check_geometry("conv_general_dilated", geometry, rank - 2)
    (n, c, *space), (o, i, *window) = ([shape[a] for a in spec] for shape, spec in zip((lhs, rhs), numbers))
    _check_groups(n, c, o, i, *groups)
    if 0 in window:
        raise ShapeError(f"conv_general_dilated: a kernel of shape {rhs} has no elements along a spatial axis")
    sizes = [n // groups[1], o]
    for size, k, stride, padding, base, step in zip(space, window, *geometry):
        sizes.append(window_count(size, k, stride, padding, base, step))
    out = [0] * rank
    for a, size in zip(numbers.out_spec, sizes):
        out[a] = size
    return tuple(out)


def _check_specs(numbers: ConvDimensionNumbers, rank: int) -> None:
    for name, spec in zip(ConvDimensionNumbers._fields, numbers):
        if sorted(spec) != list(range(rank)):
            raise ShapeError(
                f"conv_general_dilated: {name} of the dimension numbers must be a permutation of the {rank} axes "
                f"{tuple(range(rank))}, got {spec}"
            )


def check_geometry(name: str, geometry: Geometry, rank: int) -> None:
    """Raise unless ``geometry`` has ``rank`` strides and dilations, all positive, and ``rank`` pairs of padding."""
    strides, padding, lhs_dilation, rhs_dilation = geometry
    for what, values in (("strides", strides), ("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation)):
        if len(values) != rank or any(v < 1 for v in values):
            raise ShapeError(
                f"{name}: {what} must be {rank} positive integers, one for each spatial axis, got {values}"
            )
    if len(padding) != rank:
        raise ShapeError(f"{name}: padding must be {rank} pairs, one for each spatial axis, got {padding}")


def _check_groups(n: int, c: int, o: int, i: int, features: int, batches: int) -> None:
    """Raise unless the group counts divide the batch and the features, and match the kernel.

    Args:
      n, c: the sizes of the operand's batch and features.
      o, i: the sizes of the kernel's output and input features.
      features, batches: the numbers of groups of features and of the batch.
    """
    name = "conv_general_dilated"
    for what, count in (("feature_group_count", features), ("batch_group_count", batches)):
        if count < 1:
            raise ShapeError(f"{name}: {what} must be a positive integer, got {count}")
    if features > 1 and batches > 1:
        raise ShapeError(
            f"{name}: at most one of feature_group_count and batch_group_count may be more than 1, got {features} and "
            f"{batches}"
        )
    for what, count, size, of in (
        ("feature_group_count", features, c, "features of the operand"),
        ("feature_group_count", features, o, "features of the result"),
        ("batch_group_count", batches, n, "elements of the batch"),
        ("batch_group_count", batches, o, "features of the result"),
    ):
        if size % count:
            raise ShapeError(f"{name}: {what} must divide the number of {of}, but {count} does not divide {size}")
    if c // features != i:
        raise ShapeError(
            f"{name}: a kernel for {i} features does not fit an operand of {c} features in {features} "
            f"group{'s' if features > 1 else ''} of {c // features}"
        )


# Evaluation --------------------------------------------------------------------------------------------------------


@conv_general_dilated_p.impl
@on_host(conv_general_dilated_p)
def _conv_eager(operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Convolve images whose features are the last axis by the module in C, and others by a compiled program."""
    lhs, rhs = operands
    geometry, numbers = params["geometry"], params["dimension_numbers"]
    ones = geometry.strides, geometry.lhs_dilation, geometry.rhs_dilation
    groups = params["feature_group_count"], params["batch_group_count"]
    if (
        numbers[::2] == _FEATURES_LAST
        and {*groups, *itertools.chain(*ones)} == {1}
        and lhs.dtype == rhs.dtype == _single
    ):
        o, i, *space = numbers.rhs_spec
        out = convolutions.convolved(lhs._value, rhs._value.transpose(*space, i, o), geometry.padding)
        if out is not None:
            return runtime.hold(ArrayImpl(out, lhs.weak_type and rhs.weak_type))
    out = _of_vectors(lhs, rhs, params)
    return runtime.evaluate_elsewhere(conv_general_dilated_p, operands, params) if out is None else out


def _of_vectors(lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """Convolve along one axis in steps of one element, if features need no product of matrices; else return None."""
    geometry, numbers = params["geometry"], params["dimension_numbers"]
    if lhs.dtype.char not in "fdFD" or len(geometry.strides) != 1:
        return None
    ((low, high),), (_, _, space), (_, _, k) = geometry.padding, numbers.lhs_spec, numbers.rhs_spec
    n, m = lhs.shape[space], rhs.shape[k]
    count = n + low + high - m + 1
    sizes = vector_convolution.sizes_of(lhs, rhs, (count,) * 3, **params)
    if sizes is None or 0 in sizes or n == 0 or min(sizes.c, sizes.o) > 1:
        return None
    x, kernel = lhs._value, rhs._value
    if x.size == n and kernel.size == m:
        shape = [1] * 3
        shape[numbers.out_spec[2]] = count
        out = convolutions.of_vector(x.reshape(n), kernel.reshape(m), low, high).reshape(shape)
    else:
        x, kernel = vector_convolution.operands(np, x, kernel, sizes, numbers)
        out = vector_convolution.result(np, convolutions.of_vectors(x, kernel, low, high), numbers)
    return runtime.hold(ArrayImpl(out, lhs.weak_type and rhs.weak_type))


_FEATURES_LAST = ((0, 3, 1, 2),) * 2
_single = np.dtype(np.float32)


# Transposition -----------------------------------------------------------------------------------------------------


@partial(conv_general_dilated_p.transpose, linear_in="each")
def _conv_transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    by_lhs = type(lhs) is LinearVar
    linear, other = (lhs, rhs) if by_lhs else (rhs, lhs)
    if 0 in ct.shape or 0 in other.shape:
        out = zeros(linear.shape, ct.dtype)
    elif by_lhs:
        out = _by_operand(ct, lhs.shape, rhs, **params)
    else:
        out = _by_kernel(ct, lhs, rhs.shape, **params)
    return (out, None) if by_lhs else (None, out)


def _by_operand(
    ct: Any, shape: Shape, kernel: Any, geometry: Geometry, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, precision: tuple[str, str] | None,
) -> Any:  # fmt: skip
    """Return the cotangent of the operand of a convolution, an array of ``shape``.

    It is a convolution of ``ct``, the cotangent of the result, dilated by the strides, with the reversed ``kernel``.
    The other arguments are the parameters of the convolution.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    o, i, *space = rhs_spec
    padding = []
    for a, k, b, stride, (low, _), base, step in zip(lhs_spec[2:], space, out_spec[2:], *geometry):
        padding.append(back_padding(shape[a], kernel.shape[k], ct.shape[b], stride, low, base, step))
    groups = max(feature_group_count, batch_group_count)
    if groups > 1:  # each group's output features become its input features
        kernel = _into(_out_of(kernel, o, groups), i)
    out = conv_general_dilated_p.bind(
        ct,
        rev(kernel, space),
        geometry=Geometry(geometry.lhs_dilation, tuple(padding), geometry.strides, geometry.rhs_dilation),
        dimension_numbers=ConvDimensionNumbers(out_spec, (i, o, *space), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
        precision=None if precision is None else precision[::-1],
    )
    if batch_group_count > 1:
        out = _into(_out_of(out, lhs_spec[1], batch_group_count), lhs_spec[0])
    return out


def _by_kernel(
    ct: Any, lhs: Any, shape: Shape, geometry: Geometry, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, precision: tuple[str, str] | None,
) -> Any:  # fmt: skip
    """Return the cotangent of the kernel of a convolution, an array of ``shape``.

    It is a convolution of the operand ``lhs`` with ``ct``, the cotangent of the result; the batch axes and the feature
    axes change roles. The other arguments are the parameters of the convolution.
    """
    (n, c, *xs), (o, i, *ks), (m, f, *ys) = dimension_numbers
    padding = []
    for a, k, b, stride, (low, _), base, step in zip(xs, ks, ys, *geometry):
        over = dilated(shape[k], step) - 1 + dilated(ct.shape[b], stride)
        padding.append((low, over - dilated(lhs.shape[a], base) - low))
    return conv_general_dilated_p.bind(
        lhs,
        ct,
        geometry=Geometry(geometry.rhs_dilation, tuple(padding), geometry.lhs_dilation, geometry.strides),
        dimension_numbers=ConvDimensionNumbers((c, n, *xs), (f, m, *ys), (i, o, *ks)),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision,
    )


def _out_of(x: Any, axis: int, groups: int) -> Any:
    """Split ``axis``, which holds groups, and move the group axis to the front: (a, groups * b) -> (groups, a, b)."""
    size = x.shape[axis] // groups
    return shapes.moveaxis(shapes.reshape(x, (*x.shape[:axis], groups, size, *x.shape[axis + 1 :])), axis, 0)


def _into(x: Any, axis: int) -> Any:
    """Merge the first axis of ``x``, a group axis, into ``axis`` of the others: (groups, a, b) -> (a, groups * b)."""
    moved = shapes.moveaxis(x, 0, axis)
    merged = moved.shape[axis] * moved.shape[axis + 1]
    return shapes.reshape(moved, (*moved.shape[:axis], merged, *moved.shape[axis + 2 :]))


# Batching ----------------------------------------------------------------------------------------------------------


@conv_general_dilated_p.batch
def _conv_batch(
    axis: MappedAxis, args: Any, dims: Any, *, geometry: Geometry, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, precision: tuple[str, str] | None,
) -> Any:  # fmt: skip
    """Apply a convolution to a batch: merge the mapped axis into another axis, and split the result.

    If only the operand is mapped, that is the batch axis; if only the kernel is, the axis of output features. If both
    are mapped, each example becomes a group of features (of the batch, if that has groups). In an axis that is divided
    into g groups, the mapped axis goes behind the group index: (g, a) becomes (g, mapped, a).

    Returns:
      The result, and the position of its mapped axis.
    """
    (lhs, rhs), (dl, dr) = args, dims
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = feature_group_count, batch_group_count
    if axis.size == 0:
        one = [x.shape if d is None else x.shape[:d] + x.shape[d + 1 :] for x, d in zip(args, dims, strict=True)]
        return zeros((0, *_result_shape(*one, geometry, dimension_numbers, groups)), lhs.dtype), 0
    if dl is not None and dr is not None:
        by_batch = batch_group_count > 1
        lhs = _merged_into_groups(lhs, dl, lhs_spec[0 if by_batch else 1], 1)
        rhs = _merged_into_groups(rhs, dr, rhs_spec[0], 1)
        more = axis.size
        groups = (1, batch_group_count * more) if by_batch else (feature_group_count * more, 1)
        cut, outer = out_spec[1], 1
    elif dl is not None:
        lhs = _merged_into_groups(lhs, dl, lhs_spec[0], batch_group_count)
        cut, outer = out_spec[0], 1
    else:
        outer = max(groups)
        rhs = _merged_into_groups(rhs, dr, rhs_spec[0], outer)
        cut = out_spec[1]
    out = conv_general_dilated_p.bind(
        lhs,
        rhs,
        geometry=geometry,
        dimension_numbers=dimension_numbers,
        feature_group_count=groups[0],
        batch_group_count=groups[1],
        precision=precision,
    )
    return _split_groups(out, cut, axis.size, outer), cut


def _merged_into_groups(x: Any, d: int, axis: int, groups: int) -> Any:
    """Merge the mapped axis into an axis of g groups with size a each: that axis (g, a) becomes (g, mapped, a).

    Args:
      x: the array.
      d: the position of the mapped axis.
      axis: the position of the axis of groups in an example.
      groups: the number of groups g.
    """
    size, n = x.shape[d], (x.shape[:d] + x.shape[d + 1 :])[axis]
    if groups == 1:
        x = shapes.moveaxis(x, d, axis)
        return shapes.reshape(x, (*x.shape[:axis], size * n, *x.shape[axis + 2 :]))
    x = shapes.moveaxis(x, d, 0)
    x = shapes.reshape(x, (*x.shape[: axis + 1], groups, n // groups, *x.shape[axis + 2 :]))
    x = shapes.moveaxis(x, 0, axis + 1)
    return shapes.reshape(x, (*x.shape[:axis], size * n, *x.shape[axis + 3 :]))


def _split_groups(x: Any, axis: int, size: int, groups: int) -> Any:
    """Split the mapped axis off an axis (g, mapped, a): two axes replace it, the mapped axis, then (g, a).

    Args:
      x: the array.
      axis: the position of the axis to split.
      size: the size of the mapped axis.
      groups: the number of groups g.
    """
    n = x.shape[axis] // (groups * size)
    if groups == 1:
        return shapes.reshape(x, (*x.shape[:axis], size, n, *x.shape[axis + 1 :]))
    x = shapes.reshape(x, (*x.shape[:axis], groups, size, n, *x.shape[axis + 1 :]))
    x = shapes.moveaxis(x, axis + 1, axis)
    return shapes.reshape(x, (*x.shape[: axis + 1], groups * n, *x.shape[axis + 3 :]))


masked_conv_general_dilated_p = masked_sum_of_products(conv_general_dilated_p)


# Compilation -------------------------------------------------------------------------------------------------------


@conv_general_dilated_p.lowering
def _conv_lowering(hlo: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    dtype, shape = lhs.dtype, hlo.result.shape
    if 0 in shape or 0 in lhs.shape or 0 in rhs.shape:
        return hlo.splat(0, shape, dtype)
    if dtypes.is_complex(dtype):
        return _complex_convolution(hlo, lhs, rhs, shape, params)
    wide = _accumulated(dtype)
    lhs, rhs = hlo.convert(lhs, wide), hlo.convert(rhs, wide)
    write = _on_host(lhs, rhs, shape, params) if hlo.module.platform == "cpu" else _convolution
    out = write(hlo, lhs, rhs, shape, **params)
    return hlo.compare(out, hlo.splat(0, shape, wide), "NE") if dtypes.is_bool(dtype) else hlo.convert(out, dtype)


def _on_host(lhs: Any, rhs: Any, shape: Shape, params: dict[str, Any]) -> Callable[..., Any]:
    """Return the function that emits a convolution for CPUs."""
    if _is_small_product(lhs, rhs, **params):
        return partial(_inlined, _product_of_windows)
    if grouped_convolution.is_by_features(lhs, rhs, **params):
        return partial(_inlined, grouped_convolution.by_features)
    if grouped_convolution.has_few_positions(lhs, rhs, shape, **params):
        return partial(_inlined, grouped_convolution.by_positions)
    sizes = vector_convolution.sizes_of(lhs, rhs, shape, **params)
    if sizes is not None and vector_convolution.is_of_vectors(sizes):
        return vector_convolution.emit
    return _in_order


def _inlined(function: Any, hlo: Any, lhs: Any, rhs: Any, shape: Shape, **params: Any) -> Any:
    return hlo.inline(partial(function, shape=shape, **params), lhs, rhs)


def _complex_convolution(hlo: Any, lhs: Any, rhs: Any, shape: Shape, params: dict[str, Any]) -> Any:
    """Emit a convolution of complex operands as four real convolutions; the compiler has no complex one for CPUs.

    ``shape`` is the shape of the result, and ``params`` are the parameters of the convolution.
    """
    real = np.dtype(f"f{lhs.dtype.itemsize // 2}")
    (a, b), (c, d) = (
        [hlo.op(f"stablehlo.{name}", [v], v.shape, real) for name in ("real", "imag")] for v in (lhs, rhs)
    )
    write = _on_host(a, c, shape, params) if hlo.module.platform == "cpu" else _convolution
    ac, bd, ad, bc = (write(hlo, v, w, shape, **params) for v, w in ((a, c), (b, d), (a, d), (b, c)))
    parts = [hlo.elementwise("stablehlo.subtract", ac, bd), hlo.elementwise("stablehlo.add", ad, bc)]
    return hlo.op("stablehlo.complex", parts, shape, lhs.dtype)


def _is_small_product(
    lhs: Any, rhs: Any, geometry: Geometry, dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
    batch_group_count: int, precision: Any,
) -> bool:  # fmt: skip
    """Return whether to emit a convolution as a matrix product of its windows and the kernel, which suits few features.

    For one feature the product takes a quarter of the time of the compiler's convolution: 0.54 instead of 1.96 ms for
    32 images of 28 x 28 and 32 kernels of 3 x 3. For 32 features it takes 1.5 times as long. The array of all windows
    must not be larger than the result.
    """
    del precision
    (n, c, *_), (o, _, *window), (m, f, *_) = dimension_numbers
    features, last = lhs.shape[c], len(lhs.shape) - 1
    return (
        feature_group_count == batch_group_count == 1
        and features <= FEW
        and features * math.prod(rhs.shape[k] for k in window) <= rhs.shape[o]
        and set(geometry.lhs_dilation) == {1}
        and (n, m, f) == (0, 0, last)
        and dtypes.is_float(lhs.dtype)
    )


FEW = 2
"""The most features of the operand for which a convolution may become a matrix product."""


def _product_of_windows(
    lhs: Any, rhs: Any, shape: Shape, geometry: Geometry, dimension_numbers: ConvDimensionNumbers, **_others: Any
) -> Any:
    """Compute a convolution as a matrix product: a matrix with a row for each window, times the kernel as a matrix.

    ``shape`` is the shape of the result; the other arguments are the parameters of the convolution.
    """
    (n, c, *space), (o, i, *window), (_, _, *out_space) = dimension_numbers
    x = shapes.transpose(lhs, (n, *space, c))
    x = pad(x, x.dtype.type(0), [(0, 0, 0), *((low, high, 0) for low, high in geometry.padding), (0, 0, 0)])
    sizes = [rhs.shape[k] for k in window]
    columns = []
    for element in itertools.product(*map(range, sizes)):
        first = [e * step for e, step in zip(element, geometry.rhs_dilation)]
        last = [f + dilated(shape[a], stride) for f, a, stride in zip(first, out_space, geometry.strides)]
        start, limit = (0, *first, 0), (x.shape[0], *last, x.shape[-1])
        columns.append(slice(x, start, limit, (1, *geometry.strides, 1)))
    windows = concatenate(columns, len(x.shape) - 1)
    depth = windows.shape[-1]
    kernel = shapes.reshape(shapes.transpose(rhs, (*window, i, o)), (depth, rhs.shape[o]))
    rows = shapes.reshape(windows, (math.prod(windows.shape[:-1]), depth))
    product = dot_general(rows, kernel, (((1,), (0,)), ((), ())))
    out = shapes.reshape(product, (*windows.shape[:-1], rhs.shape[o]))  # the axes: batch, space, features
    order = [0] * len(shape)
    for source, a in enumerate((0, *out_space, len(shape) - 1)):
        order[a] = source
    return shapes.transpose(out, order)


def _in_order(
    hlo: Any, lhs: Any, rhs: Any, shape: Shape, *, dimension_numbers: ConvDimensionNumbers, **params: Any
) -> Any:
    """Emit a convolution with feature axes last, the order for which the compiler has a fast library on CPUs.

    Inside of functions and loops the compiler does not reorder axes itself, and convolutions in another order run as
    scalar loops. The gradient of a network of 50 layers, each in a function, then takes ten times as long.
    """
    (n, c, *space), (o, i, *window), (m, f, *out_space) = dimension_numbers
    orders, last = ((n, *space, c), (*window, i, o), (m, *out_space, f)), len(shape) - 1
    own = ConvDimensionNumbers(
        (0, last, *range(1, last)), (last, last - 1, *range(last - 1)), (0, last, *range(1, last))
    )
    x, kernel = (_ordered(hlo, v, order) for v, order in zip((lhs, rhs), orders))
    out = _convolution(hlo, x, kernel, tuple(shape[a] for a in orders[2]), dimension_numbers=own, **params)
    back = sorted(range(len(shape)), key=orders[2].__getitem__)
    return _ordered(hlo, out, back)


def _ordered(hlo: Any, x: Any, order: Sequence[int]) -> Any:
    """Transpose ``x`` to the axis order ``order``; return it unchanged if that is the order already."""
    return x if list(order) == list(range(len(order))) else hlo.transpose(x, order)


def _convolution(
    hlo: Any, lhs: Any, rhs: Any, shape: Shape, *, geometry: Geometry, dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int, batch_group_count: int, precision: tuple[str, str] | None,
) -> Any:  # fmt: skip
    """Emit ``stablehlo.convolution`` of real operands, with a result of ``shape``."""
    specs = [_spec_text(spec, names) for spec, names in zip(dimension_numbers, ("bf", "oi", "bf"))]
    attributes = (
        f"batch_group_count = {batch_group_count} : i64, feature_group_count = {feature_group_count} : i64, "
        f"dimension_numbers = #stablehlo.conv<{specs[0]}x{specs[1]}->{specs[2]}>, "
        f"window_strides = {hlo.integers(geometry.strides)}, padding = {hlo.dense(geometry.padding)}, "
        f"lhs_dilation = {hlo.integers(geometry.lhs_dilation)}, rhs_dilation = {hlo.integers(geometry.rhs_dilation)}"
    )
    if precision is None and config.default_matmul_precision is not None:
        precision = (PRECISIONS[config.default_matmul_precision],) * 2
    if precision is not None:
        shown = ", ".join(f"#stablehlo<precision {p}>" for p in precision)
        attributes += f", precision_config = [{shown}]"
    return hlo.op("stablehlo.convolution", [lhs, rhs], shape, lhs.dtype, attributes)


def _spec_text(spec: Sequence[int], names: str) -> str:
    """Return the roles of axes as StableHLO text, such as ``[b, 0, 1, f]``.

    ``spec`` holds the positions of two special axes, then of the axes of space; ``names``, such as "bf", has a letter
    for each special axis.
    """
    found = [""] * len(spec)
    for a, name in zip(spec, [*names, *map(str, range(len(spec) - 2))]):
        found[a] = name
    return f"[{', '.join(found)}]"


def _accumulated(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which to compute a convolution: at least 32 bits, also for narrow integers and floats."""
    if dtypes.is_bool(dtype) or (dtypes.is_integer(dtype) and dtype.itemsize < 4):
        return np.dtype(np.int32)
    return np.dtype(np.float32) if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype
