"""Convolutions, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, PrecisionLike
from pullback.core.arguments import flag
from pullback.core.array import Array, ArrayLike
from pullback.core.config import PRECISIONS
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.core.types import Shape
from pullback.lax.arguments import ints
from pullback.lax.contraction import dot_general
from pullback.lax.precision import DotAlgorithm, Precision
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.operands import array_operand, bind
from pullback.primitives.signals.convolution import (
    ConvDimensionNumbers,
    Geometry,
    check_geometry,
    conv_general_dilated_p,
    dilated,
    padding_pairs,
    padtype_to_pads,
    window_count,
)
from pullback.transforms.programs.placement import spread

ConvDimensionNumbersLike = ConvDimensionNumbers | tuple[str, str, str] | Sequence[Any] | None
"""The forms of dimension numbers that users may pass: see :func:`conv_dimension_numbers`."""

# Arguments ---------------------------------------------------------------------------------------------------------


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: ConvDimensionNumbersLike
) -> ConvDimensionNumbers:
    """Convert the dimension numbers of a convolution to positions of axes.

    Args:
      lhs_shape: the shape of the operand.
      rhs_shape: the shape of the kernel.
      dimension_numbers: None for ``("NCHW", "OIHW", "NCHW")``, with a letter for each axis of space; three strings in
        which ``N`` is the batch, ``C`` features, ``O`` and ``I`` the features of the result and of the operand, and any
        other letter an axis of space, in the order of the kernel; three sequences of positions: batch and features (in
        the kernel: features of the result and of the operand), and then space; or a ``ConvDimensionNumbers``.

    Returns:
      The positions of the axes.

    Raises:
      ShapeError: they do not fit the ranks, or are not permutations (a TypeError, ValueError).

    >>> from pullback import lax
    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 5), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    lhs_shape, rhs_shape = ints(lhs_shape), ints(rhs_shape)
    rank = len(lhs_shape)
    if rank < 2 or len(rhs_shape) != rank:
        raise ShapeError(
            f"a convolution takes an operand and a kernel with the same number of axes, at least 2 (batch and "
            f"features), got shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    lhs: Any
    rhs: Any
    out: Any
    try:
        lhs, rhs, out = dimension_numbers
    except (TypeError, ValueError):
        raise ShapeError(
            "the dimension numbers of a convolution must be None, three strings, three sequences of axes or a "
            f"ConvDimensionNumbers, got {dimension_numbers!r}"
        ) from None
    if not all(isinstance(spec, str) for spec in (lhs, rhs, out)):
        try:
            specs = ConvDimensionNumbers(ints(lhs), ints(rhs), ints(out))
        except TypeError:
            raise ShapeError(
                f"dimension numbers must be strings or sequences of axes, got {dimension_numbers!r}"
            ) from None
        for spec in specs:
            if sorted(spec) != list(range(rank)):
                raise ShapeError(f"dimension numbers must be permutations of {rank} axes, got {spec} in {specs}")
        return specs
    return _from_letters(rank, lhs, rhs, out)


def _from_letters(rank: int, lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
    space = [letter for letter in rhs if letter not in "OI"]
    specs = []
    for what, spec, first in (("operand", lhs, "NC"), ("kernel", rhs, "OI"), ("result", out, "NC")):
        letters = [*first, *space]
        if len(spec) != rank or sorted(spec) != sorted(letters) or len(set(spec)) != rank:
            raise ShapeError(
                f"the dimension numbers of the {what} must be the {rank} letters of {first} and of the spatial "
                f"axes, each once, as in ('NCHW', 'OIHW', 'NCHW'); got {spec!r} in {(lhs, rhs, out)}"
            )
        specs.append(tuple(spec.index(letter) for letter in letters))
    return ConvDimensionNumbers(*specs)


def precisions(precision: PrecisionLike | DotAlgorithm) -> tuple[str, str] | None:
    """Convert a precision to a pair of the compiler's names, for the two operands.

    Raises:
      ArgumentError: it is not a precision (a TypeError, ValueError).
    """
    if precision is None:
        return None
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    names = [p.name if isinstance(p, Precision) else _PRECISIONS.get(p) if isinstance(p, str) else None for p in pair]
    if len(names) != 2 or None in names:
        raise ArgumentError(
            f"precision must be None, a lax.Precision, one of {', '.join(_PRECISIONS)}, or a pair of these, got "
            f"{precision!r}"
        )
    return names[0], names[1]  # type: ignore[return-value]


_PRECISIONS = {**PRECISIONS, "fastest": "DEFAULT"}


def _spatial(values: Any, count: int) -> Shape:
    return (1,) * count if values is None else ints(values)


def _converted(name: str, x: Any, y: Any, preferred: Any) -> tuple[Any, Any, Any]:
    """Convert the operands of a convolution to the dtype in which to accumulate.

    Args:
      name: the name of the function, for errors.
      x, y: the operands, which must have the same dtype.
      preferred: the dtype that the user requests for the result, or None.

    Returns:
      The converted operands, and the requested dtype. If ``preferred`` is None, the unchanged operands, and None.
    """
    if x.dtype != y.dtype:
        raise DtypeError(
            f"lax.{name} takes operands of one dtype, got {dtypes.short_name(x.dtype)} and "
            f"{dtypes.short_name(y.dtype)}; convert one with lax.convert_element_type"
        )
    if preferred is None:
        return x, y, None
    dtype = dtypes.requested_dtype(preferred, name)
    wide = dtypes.accumulator(dtype, x.dtype)
    if dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(x.dtype) or (
        dtypes.is_inexact(x.dtype) and wide != dtype
    ):  # fmt: skip
        raise DtypeError(
            f"lax.{name}: preferred_element_type must be able to represent the values of "
            f"{dtypes.short_name(x.dtype)}, got {dtypes.short_name(dtype)}"
        )
    return ops.convert_element_type(x, wide), ops.convert_element_type(y, wide), dtype


# Convolutions ------------------------------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionNumbersLike = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The convolution of an operand by a kernel, as in neural networks: the kernel is not flipped.

    Args:
      lhs: the operand, with axes for the batch, for features and for ``n`` dimensions of space.
      rhs: the kernel, with axes for the features of the result, for the features of the operand, and for space.
      window_strides: the distances between positions of the kernel, ``n`` integers.
      padding: zeros before and after the operand along each axis of space, ``n`` pairs (negative numbers crop); or
        ``SAME``, ``SAME_LOWER`` or ``VALID`` (see :func:`padtype_to_pads`).
      lhs_dilation: the distances between elements of the operand; 1 by default. Others need a padding in numbers.
      rhs_dilation: the distances between elements of the kernel; 1 by default.
      dimension_numbers: the roles of the axes, for example ``("NHWC", "HWIO", "NHWC")``; see
        :func:`conv_dimension_numbers`.
      feature_group_count: the number of groups of features; each group of the result is computed from one group of the
        operand.
      batch_group_count: the number of groups of the batch; each group of the result's features is computed from one of
        them.
      precision: a ``lax.Precision``, its name, or a pair for the two operands. CPUs compute in full precision.
      preferred_element_type: the dtype to accumulate in and to return; by default the dtype of the operands.
      out_sharding: how the result is spread over devices: a sharding, or a ``PartitionSpec``; None leaves it open.

    Returns:
      An array with the axes of the third of the dimension numbers. Along an axis of space it has an element for each
      position of the kernel; none if the kernel is longer than the padded operand.

    Raises:
      DtypeError, ShapeError, ArgumentError: the operands or arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> x, kernel = jnp.arange(5.0).reshape(1, 1, 5), jnp.array([1.0, 0.0, -1.0]).reshape(1, 1, 3)
    >>> print(lax.conv_general_dilated(x, kernel, (1,), "SAME")[0, 0])
    [-1. -2. -2. -2.  3.]
    """
    return _convolution(
        "conv_general_dilated", lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers,
        (feature_group_count, batch_group_count), precision, preferred_element_type, out_sharding,
    )  # fmt: skip


def _convolution(
    name: str, lhs: Any, rhs: Any, strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any, numbers: Any,
    groups: tuple[Any, Any], precision: Any, preferred: Any, out_sharding: Any = None,
) -> Any:  # fmt: skip
    """Check the arguments of the convolution function ``name``, and bind the convolution's primitive.

    ``numbers`` is the argument ``dimension_numbers``. ``groups`` is the pair of ``feature_group_count`` and
    ``batch_group_count``. ``preferred`` is the dtype that the user requests for the result, or None.
    """
    x, y = array_operand(name, lhs), array_operand(name, rhs)
    specs = conv_dimension_numbers(x.shape, y.shape, numbers)
    geometry = _geometry(
        name, x.shape, [y.shape[a] for a in specs.rhs_spec[2:]], strides, padding, lhs_dilation, rhs_dilation, specs
    )
    x, y, dtype = _converted(name, x, y, preferred)
    function = partial(
        bind, conv_general_dilated_p,
        geometry=geometry,
        dimension_numbers=specs,
        feature_group_count=operator.index(groups[0]),
        batch_group_count=operator.index(groups[1]),
        precision=precisions(precision),
    )  # fmt: skip
    out = spread(function, [x, y], out_sharding, f"lax.{name}")
    return out if dtype is None else ops.convert_element_type(out, dtype)


def _geometry(
    name: str, shape: Shape, window: Sequence[int], strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    specs: ConvDimensionNumbers,
) -> Geometry:  # fmt: skip
    """Check the strides, padding and dilations of a convolution, and return these in canonical form.

    Args:
      name: the name of the function, for errors.
      shape: the shape of the operand.
      window: the spatial sizes of the kernel.
      strides, padding, lhs_dilation, rhs_dilation: as the user passed them.
      specs: the dimension numbers.

    Returns:
      For each spatial axis the strides, the padding as pairs of integers, and the two dilations.
    """
    sizes = [shape[a] for a in specs.lhs_spec[2:]]
    count = len(sizes)
    base, step = _spatial(lhs_dilation, count), _spatial(rhs_dilation, count)
    plain = Geometry(ints(strides), ((0, 0),) * count, base, step)
    check_geometry(f"lax.{name}", plain, count)
    if isinstance(padding, str):
        if any(b != 1 for b in base):
            raise ArgumentError(
                f"lax.{name}: a padding by name, such as {padding!r}, is not defined for a dilated operand, here by "
                f"{base}; pass pairs of numbers, or use lax.conv_transpose"
            )
        spans = [dilated(k, r) for k, r in zip(window, step)]
        return plain._replace(padding=tuple(padtype_to_pads(sizes, spans, plain.strides, padding)))
    pairs = padding_pairs(f"lax.{name}", padding)
    if len(pairs) != count:
        raise ShapeError(f"lax.{name}: padding must be {count} pairs, one for each spatial axis, got {pairs}")
    for size, pair, b in zip(sizes, pairs, base):
        if min(pair) < -dilated(size, b) or sum(pair) < -dilated(size, b):
            raise ShapeError(
                f"lax.{name}: a negative padding must not remove more elements than the operand has, got {pairs} "
                f"for spatial axes of sizes {tuple(sizes)}"
            )
    return plain._replace(padding=pairs)


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The convolution of an operand of axes (batch, features, space) by a kernel (features out, features in, space).

    Args:
      lhs, rhs: the operand and the kernel.
      window_strides: the distances between positions of the kernel, along each axis of space.
      padding: ``SAME``, ``SAME_LOWER`` or ``VALID``.
      precision, preferred_element_type: as for :func:`conv_general_dilated`.

    Returns:
      An array of axes (batch, features, space).

    Raises:
      DtypeError, ShapeError, ArgumentError: the operands or arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.conv(jnp.ones((2, 3, 8, 8)), jnp.ones((5, 3, 3, 3)), (2, 2), "SAME").shape
    (2, 5, 4, 4)
    """
    return _convolution(
        "conv", lhs, rhs, window_strides, padding, None, None, None, (1, 1), precision, preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """:func:`conv` with any padding, and with dilations.

    Args:
      lhs, rhs: an operand of axes (batch, features, space), and a kernel of axes (features out, features in, space).
      window_strides, padding, lhs_dilation, rhs_dilation, precision, preferred_element_type: as for
        :func:`conv_general_dilated`.

    Returns:
      An array of axes (batch, features, space).

    Raises:
      DtypeError, ShapeError, ArgumentError: the operands or arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.conv_with_general_padding(jnp.ones((2, 3, 8)), jnp.ones((5, 3, 3)), (1,), [(2, 0)], (1,), (2,)).shape
    (2, 5, 6)
    """
    return _convolution(
        "conv_with_general_padding", lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, None, (1, 1),
        precision, preferred_element_type,
    )  # fmt: skip


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionNumbersLike = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution with fractional strides, which enlarges the operand: the transpose of one with these strides.

    Args:
      lhs: the operand.
      rhs: the kernel.
      strides: the dilation of the operand along each axis of space.
      padding: ``SAME`` or ``VALID``, of the convolution that is transposed; or pairs.
      rhs_dilation: the distances between elements of the kernel; 1 by default.
      dimension_numbers: the roles of the axes; by default ``("NHWC", "HWIO", "NHWC")``, for up to three dimensions of
        space.
      transpose_kernel: whether the kernel belongs to the convolution that is transposed; it is then flipped, and its
        axes of features are swapped.
      precision, preferred_element_type: as for :func:`conv_general_dilated`.
      use_consistent_padding: whether pairs are paddings of the convolution that is transposed, as words are; otherwise
        they pad the dilated operand.

    Returns:
      An array with the axes of the third of the dimension numbers.

    Raises:
      DtypeError, ShapeError, ArgumentError: the operands or arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.conv_transpose(jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 2, 5)), (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    x, y = array_operand(name := "conv_transpose", lhs), array_operand(name, rhs)
    rank = len(x.shape)
    if dimension_numbers is None:
        if not 2 <= rank <= 5:
            raise ShapeError(
                f"lax.conv_transpose: without dimension_numbers the operand must have 2 to 5 axes, got shape {x.shape}"
            )
        space = "HWD"[: rank - 2]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    specs = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    window = [y.shape[a] for a in specs.rhs_spec[2:]]
    strides, step = ints(strides), _spatial(rhs_dilation, len(window))
    consistent = flag(name, "use_consistent_padding", use_consistent_padding)
    pairs = _padding_of_transpose(window, strides, step, padding, consistent)
    if flag(name, "transpose_kernel", transpose_kernel):
        o, i, *space_axes = specs.rhs_spec
        order = list(range(rank))
        order[o], order[i] = i, o
        y = shapes.transpose(slicing.rev(y, space_axes), order)
    ones = (1,) * len(window)
    return _convolution(name, x, y, ones, pairs, strides, step, specs, (1, 1), precision, preferred_element_type)


def _padding_of_transpose(
    window: Sequence[int], strides: Shape, step: Shape, padding: Any, consistent: bool
) -> Sequence[tuple[int, int]]:
    """Return the padding that ``conv_transpose`` applies to its dilated operand, as pairs of integers.

    Args:
      window: the sizes of the kernel.
      strides: the strides.
      step: the dilations of the kernel.
      padding: a word such as ``SAME``, or pairs of integers.
      consistent: whether pairs are the padding of the convolution that is transposed. Otherwise they are the padding of
        the dilated operand, and are returned unchanged.
    """
    name, count = "lax.conv_transpose", len(window)
    check_geometry(name, Geometry(strides, ((0, 0),) * count, strides, step), count)
    spans = [dilated(k, r) for k, r in zip(window, step)]
    if isinstance(padding, str):
        return [_in_words(span, stride, padding) for span, stride in zip(spans, strides)]
    pairs = padding_pairs(name, padding)
    if not consistent or len(pairs) != count:
        return pairs
    return [(span - 1 - low, span - 1 - high) for span, (low, high) in zip(spans, pairs)]


def _in_words(span: int, stride: int, padding: str) -> tuple[int, int]:
    """Return the padding of the transpose of a ``SAME`` or ``VALID`` convolution along one axis, as a pair of integers.

    Args:
      span: the length of the dilated kernel.
      stride: the stride.
      padding: ``SAME`` or ``VALID``.
    """
    word = padding.upper()
    if word == "SAME":
        total = span + stride - 2
        low = span - 1 if stride > span - 1 else -(-total // 2)
    elif word == "VALID":
        total, low = span + stride - 2 + max(span - stride, 0), span - 1
    else:
        raise ArgumentError(
            f"lax.conv_transpose: padding must be 'SAME', 'VALID' or pairs of integers, got {padding!r}"
        )
    return low, total - low


# Patches -----------------------------------------------------------------------------------------------------------


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionNumbersLike = None,
    precision: PrecisionLike | DotAlgorithm = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The windows of a convolution, as features.

    Args:
      lhs: the operand.
      filter_shape: the sizes of the windows along the axes of space, in the order of the second of the dimension
        numbers.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as for :func:`conv_general_dilated`.
      precision: accepted for compatibility: elements are moved, not computed.
      preferred_element_type: the dtype of the result; by default the dtype of the operand.

    Returns:
      An array with the axes of the third of the dimension numbers, whose features are, for each feature of the operand,
      the elements of the window in row-major order.

    Raises:
      ShapeError, ArgumentError: the arguments do not fit the operand.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")[0])
    [[0. 1. 2.]
     [1. 2. 3.]]
    """
    name = "conv_general_dilated_patches"
    x, window = array_operand(name, lhs), ints(filter_shape)
    precisions(precision)
    rank = len(x.shape)
    if len(window) != rank - 2 or any(k < 1 for k in window):
        raise ShapeError(
            f"lax.{name}: filter_shape must be {max(rank - 2, 0)} positive integers for an operand of shape {x.shape}, "
            f"got {window}"
        )
    specs = conv_dimension_numbers(x.shape, (1,) * rank, dimension_numbers)
    geometry = _geometry(name, x.shape, window, window_strides, padding, lhs_dilation, rhs_dilation, specs)
    if preferred_element_type is not None:
        x = _converted(name, x, x, preferred_element_type)[0]
        x = ops.convert_element_type(x, dtypes.requested_dtype(preferred_element_type, name))
    x = shapes.transpose(x, specs.lhs_spec)
    config = [(low, high, base - 1) for (low, high), base in zip(geometry.padding, geometry.lhs_dilation)]
    patches = slicing.pad(x, 0, [(0, 0, 0)] * 2 + config)
    for a, k in enumerate(window):  # the axes: batch, features, windows so far, space
        patches = _cut_in_windows(patches, 2 + a, 2 + 2 * a, k, geometry.strides[a], geometry.rhs_dilation[a])
    n, c, *rest = patches.shape
    patches = shapes.reshape(patches, (n, c * math.prod(window), *rest[len(window) :]))
    order = sorted(range(rank), key=specs.out_spec.__getitem__)
    return shapes.transpose(patches, order)


def _cut_in_windows(x: Any, at: int, axis: int, size: int, stride: int, step: int) -> Any:
    """Extract the windows along ``axis``; the elements of a window are along a new axis.

    Args:
      x: the array.
      at: the position of the new axis.
      axis: the axis, which becomes the axis of windows.
      size: the number of elements of a window.
      stride: the distance between neighbouring windows.
      step: the distance between neighbouring elements of a window.
    """
    count = window_count(x.shape[axis], size, stride, (0, 0), 1, step)
    reach = (count - 1) * stride + 1 if count else 0
    if not count:
        return shapes.full((*x.shape[:at], size, *x.shape[at:axis], 0, *x.shape[axis + 1 :]), 0, x.dtype)
    return slicing.stack([slicing.slice_in_dim(x, i * step, i * step + reach, axis, stride) for i in range(size)], at)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDimensionNumbersLike = None,
    precision: PrecisionLike | DotAlgorithm = None,
) -> Array:
    """A convolution with a separate kernel at each position: a locally connected layer.

    Args:
      lhs: the operand.
      rhs: the kernels, with the axes of space of the result, and the features of the windows of the operand (see
        :func:`conv_general_dilated_patches`).
      window_strides, padding: as for :func:`conv_general_dilated`.
      filter_shape: the sizes of the windows along the axes of space, in the order of the second of the dimension
        numbers.
      lhs_dilation, rhs_dilation, dimension_numbers, precision: as for :func:`conv_general_dilated`.

    Returns:
      An array with the axes of the third of the dimension numbers.

    Raises:
      DtypeError, ShapeError, ArgumentError: the operands or arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> lax.conv_general_dilated_local(jnp.ones((2, 3, 5)), jnp.ones((4, 6, 4)), (1,), "VALID", (2,)).shape
    (2, 4, 4)
    """
    name = "conv_general_dilated_local"
    x, y = array_operand(name, lhs), array_operand(name, rhs)
    if x.dtype != y.dtype:
        _converted(name, x, y, None)
    precisions(precision)
    specs = conv_dimension_numbers(x.shape, y.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation,
        ConvDimensionNumbers(specs.lhs_spec, specs.rhs_spec, specs.out_spec),
    )  # fmt: skip
    (_, c, *spatial), (_, i, *kernels) = specs.out_spec, specs.rhs_spec
    wanted = [patches.shape[c], *(patches.shape[a] for a in spatial)]
    if [y.shape[a] for a in (i, *kernels)] != wanted:
        raise ShapeError(
            f"lax.{name}: kernels of shape {y.shape} do not match: along the axes {(i, *kernels)} they need the "
            f"sizes {tuple(wanted)}, those of the windows and of the result"
        )
    numbers = (((i,), (c,)), (tuple(kernels), tuple(spatial)))
    out = dot_general(y, patches, numbers, precision)  # the axes: space, features, batch
    space = len(spatial)
    order = [0] * len(x.shape)
    for a, source in zip(specs.out_spec, (space + 1, space, *range(space))):
        order[a] = source
    return shapes.transpose(out, order)
