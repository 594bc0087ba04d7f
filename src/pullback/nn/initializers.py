"""Initializers of weights: functions of a random key, a shape and a dtype, and builders of these functions.

For equal keys the numbers are bit for bit JAX's, as in ``pullback.random``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pullback.numpy as pnp
from pullback import random
from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes
from pullback.core.annotations import DTypeLike, ShapeLike
from pullback.core.arguments import is_listed
from pullback.core.array import Array, ArrayLike, KeyArray
from pullback.core.docs import describe, with_example
from pullback.core.errors import ArgumentError, ShapeError
from pullback.core.faces import face
from pullback.numpy.promotion import axis_index, shape_tuple
from pullback.primitives import elementwise as ops
from pullback.transforms.programs.placement import spread


class Initializer(Protocol):
    """``initializer(key, shape, dtype=...)`` returns an array of that shape and dtype.

    Those of this module take ``out_sharding=`` too: how the result is spread over devices.
    """

    def __call__(self, key: KeyArray, shape: ShapeLike, dtype: DTypeLike = ..., /) -> Array: ...


def _spreading(draw: Callable[..., Any], dtype: DTypeLike) -> Any:
    """Return an initializer ``draw`` with the option ``out_sharding``; ``dtype`` is that of weights by default."""

    def init(key: KeyArray, shape: ShapeLike, dtype: DTypeLike = dtype, out_sharding: OutSharding = None) -> Array:
        return spread(lambda: draw(key, shape, dtype), (), out_sharding, "initializer")  # type: ignore[no-any-return]

    return init


Axis = int | Sequence[int]


def zeros(key: KeyArray, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: OutSharding = None) -> Array:
    """Zeros; the key is not used.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: the dtype of the result; ``float32`` (or 64) by default.
      out_sharding: how the result is spread over devices, a sharding or a ``PartitionSpec``.

    Returns:
      An array of zeros of that shape and dtype.

    >>> from pullback import nn, random
    >>> print(nn.initializers.zeros(random.key(0), (2,)))
    [0. 0.]
    """
    return pnp.zeros(shape, dtype, out_sharding=out_sharding)


def ones(key: KeyArray, shape: ShapeLike, dtype: DTypeLike = None, out_sharding: OutSharding = None) -> Array:
    """Ones; the key is not used.

    Args:
      key: a key.
      shape: the shape of the result.
      dtype: the dtype of the result; ``float32`` (or 64) by default.
      out_sharding: how the result is spread over devices, a sharding or a ``PartitionSpec``.

    Returns:
      An array of ones of that shape and dtype.

    >>> from pullback import nn, random
    >>> print(nn.initializers.ones(random.key(0), (2,)))
    [1. 1.]
    """
    return pnp.ones(shape, dtype, out_sharding=out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike = None) -> Initializer:
    """An initializer that returns one value, or an array that broadcasts, everywhere.

    Args:
      value: the value.
      dtype: the dtype of the weights if none is requested; None for the default float.

    Returns:
      An initializer: ``init(key, shape, dtype)`` returns an array.

    >>> from pullback import nn, random
    >>> print(nn.initializers.constant(-7)(random.key(0), (2,)))
    [-7. -7.]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        return pnp.full(shape, value, _dtype(dtype))

    return _spreading(init, dtype)


def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike = None) -> Initializer:
    """An initializer that returns uniformly distributed numbers.

    Args:
      scale: their upper bound; the lower one is 0.
      dtype: the dtype of the weights if none is requested; None for the default float.

    Returns:
      An initializer: ``init(key, shape, dtype)`` returns an array.

    >>> from pullback import nn, random
    >>> print(nn.initializers.uniform(10.0)(random.key(0), (2,)))
    [2.1629536 8.041241 ]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        dtype = _dtype(dtype)
        return random.uniform(key, shape, dtype) * pnp.array(scale, dtype)

    return _spreading(init, dtype)


def normal(stddev: ArrayLike = 0.01, dtype: DTypeLike = None) -> Initializer:
    """An initializer that returns normally distributed numbers.

    Args:
      stddev: their standard deviation.
      dtype: the dtype of the weights if none is requested; None for the default float.

    Returns:
      An initializer: ``init(key, shape, dtype)`` returns an array.

    Raises:
      DtypeError: from the initializer, for a dtype of integers (a TypeError).

    >>> from pullback import nn, random
    >>> print(nn.initializers.normal(10.0)(random.key(0), (2,)))
    [-7.84766   8.564449]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        dtype = _dtype(dtype)
        return random.normal(key, shape, dtype) * pnp.array(stddev, dtype)

    return _spreading(init, dtype)


def truncated_normal(
    stddev: ArrayLike = 0.01, dtype: DTypeLike = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Initializer:
    """An initializer that returns normally distributed numbers between bounds.

    Args:
      stddev: the standard deviation of the numbers before they are restricted.
      dtype: the dtype of the weights if none is requested; None for the default float.
      lower, upper: the bounds, in standard deviations.

    Returns:
      An initializer: ``init(key, shape, dtype)`` returns an array.

    >>> from pullback import nn, random
    >>> print(nn.initializers.truncated_normal(10.0)(random.key(0), (2,)))
    [-7.4147086  8.074152 ]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        dtype = _dtype(dtype)
        return random.truncated_normal(key, lower, upper, shape, dtype) * pnp.array(stddev, dtype)

    return _spreading(init, dtype)


def _dtype(dtype: Any) -> Any:
    return dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "an initializer")


# Scaled to the shape of the weights --------------------------------------------------------------------------------

_TRUNCATED_STDDEV = 0.87962566103423978
"""The standard deviation of a standard normal number between -2 and 2."""
_COMPLEX_TRUNCATED_STDDEV = 0.95311164380491208
"""JAX's value for complex numbers of a modulus up to 2, so that keys make the same weights. (It should be 0.9620; the
variance is 1.019 times the requested one.)
"""

_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}


def _truncated(key: Any, shape: Any, dtype: Any, variance: Any) -> Any:
    if dtypes.is_complex(dtype):
        scale = pnp.sqrt(variance) / pnp.array(_COMPLEX_TRUNCATED_STDDEV, dtype)
        return _in_a_disk(key, shape, dtype, lambda u: -pnp.log1p(-(1 - math.exp(-4)) * u)) * scale
    scale = pnp.sqrt(variance) / pnp.array(_TRUNCATED_STDDEV, dtype)
    return random.truncated_normal(key, -2, 2, shape, dtype) * scale


def _normal(key: Any, shape: Any, dtype: Any, variance: Any) -> Any:
    return random.normal(key, shape, dtype) * pnp.sqrt(variance)


def _uniform(key: Any, shape: Any, dtype: Any, variance: Any) -> Any:
    if dtypes.is_complex(dtype):
        return _in_a_disk(key, shape, dtype, lambda u: 2 * u) * pnp.sqrt(variance)
    return random.uniform(key, shape, dtype, -1) * pnp.sqrt(pnp.array(3, dtype) * variance)


def _in_a_disk(key: Any, shape: Any, dtype: Any, square: Callable[[Any], Any]) -> Any:
    """Draw complex random numbers with uniformly distributed directions.

    The squared modulus of a number is ``square(u)``, where u is uniformly distributed from 0 to 1.
    """
    radii, turns = random.split(key)
    real = dtypes.to_real(dtype)
    angle = 2 * math.pi * random.uniform(turns, shape, real)
    modulus = pnp.sqrt(square(random.uniform(radii, shape, real)))
    return ops.complex(modulus * pnp.cos(angle), modulus * pnp.sin(angle))


_DISTRIBUTIONS = {"truncated_normal": _truncated, "normal": _normal, "uniform": _uniform}


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axis = -2,
    out_axis: Axis = -1,
    batch_axis: Axis = (),
    dtype: DTypeLike = None,
) -> Initializer:
    """An initializer whose numbers have mean 0 and variance ``scale / n``, where ``n`` is a number of units.

    Other axes of the weights, such as the axes of space of a convolution's kernel, multiply both the number of inputs
    and the number of outputs.

    Args:
      scale: a positive number.
      mode: the meaning of ``n``: ``"fan_in"``, the number of inputs of a unit; ``"fan_out"``, the number of its
        outputs; ``"fan_avg"`` or ``"fan_geo_avg"``, their arithmetic or geometric mean.
      distribution: ``"truncated_normal"`` (at two standard deviations), ``"normal"`` or ``"uniform"``; complex numbers
        are of any direction, and ``"uniform"`` is the distribution of the square of their modulus.
      in_axis: the axis of the weights, or several, along which the inputs are.
      out_axis: likewise for the outputs.
      batch_axis: axes that do not count.
      dtype: the dtype of the weights if none is requested; None for the default float.

    Returns:
      An initializer. It raises ShapeError (a ValueError) for weights of fewer than two axes where ``in_axis`` is -2.

    Raises:
      ArgumentError: an unknown mode or distribution (a ValueError).

    >>> from pullback import nn, random
    >>> init = nn.initializers.variance_scaling(3.0, "fan_in", "uniform")
    >>> print(init(random.key(0), (3, 1)).shape)
    (3, 1)
    """
    _check("mode", mode, _MODES)
    _check("distribution", distribution, _DISTRIBUTIONS)

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        dtype = _dtype(dtype)
        sizes = shape_tuple(shape, "variance_scaling")
        count = _MODES[mode](*_fans(sizes, in_axis, out_axis, batch_axis))
        variance = pnp.array(scale / max(1.0, count), dtype)
        return _DISTRIBUTIONS[distribution](key, sizes, dtype, variance)

    return _spreading(init, dtype)


def _check(what: str, got: Any, known: dict[str, Any]) -> None:
    if not is_listed(got, known):
        raise ArgumentError(f"variance_scaling: {what} must be one of {', '.join(map(repr, known))}, got {got!r}")


def _fans(shape: tuple[int, ...], in_axis: Axis, out_axis: Axis, batch_axis: Axis) -> tuple[float, float]:
    """Return the fan-in and the fan-out of weights: the numbers of inputs and of outputs of each unit.

    Args:
      shape: the shape of the weights.
      in_axis, out_axis: the axes of inputs and of outputs.
      batch_axis: axes that are not counted. The sizes of all other axes, such as the spatial axes of a convolution's
        kernel, multiply both numbers.
    """
    if len(shape) < 2 and type(in_axis) is int and in_axis == -2:
        raise ShapeError(f"weights scaled by their shape need at least two axes, or in_axis, got shape {shape}")

    def size(axes: Axis) -> int:
        listed = (axes,) if isinstance(axes, int) else axes
        return math.prod(shape[axis_index(a, len(shape), "variance_scaling")] for a in listed)

    inputs, outputs = size(in_axis), size(out_axis)
    others = math.prod(shape) / max(1, inputs * outputs * size(batch_axis))
    return inputs * others, outputs * others


class Builder(Protocol):
    """A builder of initializers with a fixed scale, mode and distribution."""

    def __call__(
        self, in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: DTypeLike = None
    ) -> Initializer: ...


def _named(name: str, scale: float, mode: str, distribution: str, source: str) -> Builder:
    """Make a public function such as ``he_normal``, which builds initializers by :func:`variance_scaling`.

    Args:
      name: the name of the function.
      scale, mode, distribution: fixed arguments of :func:`variance_scaling`.
      source: a reference for the docstring.
    """

    def build(in_axis: Axis = -2, out_axis: Axis = -1, batch_axis: Axis = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    text = (
        f"As :func:`variance_scaling` with scale {scale}, mode ``{mode}`` and distribution ``{distribution}``.\n\n"
        f"The source is {source}.\n\nArgs:\n  in_axis, out_axis, batch_axis, dtype: as in :func:`variance_scaling`.\n\n"
        "Returns:\n  An initializer: ``init(key, shape, dtype)`` returns an array."
    )
    example = "from pullback import nn, random", f"nn.initializers.{name}()(random.key(0), (2, 3)).shape", "(2, 3)"
    return describe(build, name, with_example(text, *example))


_GLOROT = "Glorot and Bengio 2010"
_LECUN = "LeCun et al. 1998, *Efficient BackProp*"
_HE = "He et al. 2015, *Delving deep into rectifiers*"
glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None) -> Initializer:
    """An initializer that returns uniformly distributed orthogonal matrices.

    Args:
      scale: a factor.
      column_axis: the axis of the columns; the other axes together are the rows. The columns are orthonormal, or the
        rows if there are fewer.
      dtype: the dtype of the weights if none is requested; None for the default float.

    Returns:
      An initializer, which takes shapes of two axes or more.

    Raises:
      ShapeError: the initializer is called for a shape without rows or columns.

    Source: Saxe, McClelland and Ganguli, *Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks*, ICLR 2014.

    >>> from pullback import nn, random
    >>> w = nn.initializers.orthogonal()(random.key(0), (2, 2))
    >>> print((w @ w.T).round(3) + 0)
    [[1. 0.]
     [0. 1.]]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        size = shape_tuple(shape, "orthogonal")
        if len(size) < 2:
            raise ShapeError(f"orthogonal takes shapes of two axes or more, got {size}")
        axis = axis_index(column_axis, len(size), "orthogonal")
        rest = (*size[:axis], *size[axis + 1 :])
        found = _dtype(dtype)
        matrix = random.orthogonal(key, math.prod(rest), dtype=found, m=size[axis])
        return pnp.array(scale, found) * pnp.moveaxis(matrix.reshape(*rest, size[axis]), -1, axis)

    return _spreading(init, dtype)


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike = None) -> Initializer:
    """An initializer for convolutions that keep lengths: orthogonal in the middle of the window, zeros elsewhere.

    Args:
      scale: a factor.
      column_axis: the axis of the columns, one of the last two.
      dtype: the dtype of the weights if none is requested; None for the default float.

    Returns:
      An initializer, which takes shapes of one to three axes of the window and two of features, the second not smaller
      than the first.

    Raises:
      ShapeError: the initializer is called for another shape.

    Source: Xiao, Bahri, Sohl-Dickstein, Schoenholz and Pennington, *Dynamical isometry and a mean field theory of
    CNNs*, ICML 2018.

    >>> from pullback import nn, random
    >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        size = shape_tuple(shape, "delta_orthogonal")
        if len(size) not in (3, 4, 5):
            raise ShapeError(f"delta_orthogonal takes shapes of three to five axes, got {size}")
        if size[-1] < size[-2]:
            raise ShapeError(
                f"delta_orthogonal takes shapes whose last axis (output features) is at least as long as the one "
                f"before (input features), got {size}"
            )
        axis = axis_index(column_axis, len(size), "delta_orthogonal") - len(size)
        if axis not in (-1, -2):
            raise ShapeError(f"delta_orthogonal: column_axis must be one of the last two axes, got {column_axis}")
        found = _dtype(dtype)
        matrix = orthogonal(scale, axis)(key, size[-2:], found)
        middle = tuple((n - 1) // 2 for n in size[:-2])
        return pnp.zeros(size, found).at[middle].set(matrix)

    return _spreading(init, dtype)


__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip
face(globals())
