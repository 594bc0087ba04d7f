"""Operations that move elements without changing them: broadcasting, reshaping, permuting axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.backends.host import moves
from pullback.core.array import LARGE, MOST_HOST_AXES, SCALARS, Array, ArrayImpl, CommittedArray, scalar_array, shape_of
from pullback.core.dims import any_symbolic
from pullback.core.elsewhere import default_is_elsewhere
from pullback.core.errors import AllocationError, ShapeError, ShardingTypeError
from pullback.core.linear import LinearVar
from pullback.core.runtime import provides, runtime
from pullback.core.trace import Primitive, state
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis, Shape, ShapedArray
from pullback.primitives.explicit_shardings import REMEDY, reshaped_entries, resharded
from pullback.primitives.rules import axis_kept, jvp_linear, sharding_rule

# Broadcasting ------------------------------------------------------------------------------------------------------


def broadcast_in_dim(x: Any, shape: Shape, dims: Sequence[int]) -> Any:
    """Broadcast ``x`` to ``shape``, where axis ``i`` of ``x`` becomes axis ``dims[i]``."""
    out = broadcast_in_dim_p.bind(x, shape=tuple(shape), broadcast_dimensions=tuple(dims))
    return runtime.hold(out) if type(out) is ArrayImpl and out._host_value.size >= LARGE else out


def broadcast_to(x: Any, shape: Shape) -> Any:
    """Broadcast ``x`` to ``shape`` by NumPy's rules."""
    have = shape_of(x)
    if have == shape and type(x) not in SCALARS:
        return x
    out = broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(range(len(shape) - len(have), len(shape))))
    return runtime.hold(out) if type(out) is ArrayImpl and out._host_value.size >= LARGE else out


broadcast_in_dim_p = Primitive("broadcast_in_dim", cost=Cost.LIGHT, moves=True)
broadcast_in_dim_p.jvp_rule = jvp_linear(broadcast_in_dim_p)


@broadcast_in_dim_p.host
def _broadcast_host(x: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
    rank = len(shape)
    if broadcast_dimensions != tuple(range(rank - len(broadcast_dimensions), rank)):
        have = [1] * rank
        for n, d in zip(x.shape, broadcast_dimensions, strict=True):
            have[d] = n
        x = x.reshape(have)
    return repeated(x, shape)


def repeated(x: Any, shape: Shape) -> np.ndarray[Any, Any]:
    """Broadcast a NumPy array to ``shape``: as a new array if the shape is small, otherwise as a view."""
    if math.prod(shape) <= _SMALL:
        out = np.empty(shape, x.dtype)
        out[...] = x
        return out
    new = len(shape) - x.ndim
    if new >= 0 and x.dtype.isbuiltin == 1 and x.flags.c_contiguous:
        steps = [step if n == size else 0 if n == 1 else -1 for n, size, step in zip(x.shape, shape[new:], x.strides)]
        if -1 not in steps:
            out = np.ndarray(shape, x.dtype, x, 0, [0] * new + steps)
            out.setflags(write=False)
            return out
    return np.broadcast_to(x, shape)


# Up to this many elements a copy is faster than np.broadcast_to, which is written in Python. It takes 2 us, and 5 us
# after a loop over a large array; the constructor takes 0.5 us.
_SMALL = 4096


@broadcast_in_dim_p.abstract_eval
def _broadcast_abstract_eval(x: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape) -> ShapedArray:
    dims = broadcast_dimensions
    if len(dims) != x.ndim or list(dims) != sorted(set(dims)) or any(not 0 <= d < len(shape) for d in dims):
        raise ShapeError(
            f"broadcast_in_dim: broadcast_dimensions must be {x.ndim} increasing axes of {shape} for an operand of "
            f"shape {x.shape}, got {dims}"
        )
    if any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
        raise ShapeError(f"broadcast_in_dim: an operand of shape {x.shape} does not fit {shape} along the axes {dims}")
    return ShapedArray(shape, x.dtype)


@broadcast_in_dim_p.batch
def _broadcast_batch(axis: MappedAxis, args: Any, dims: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
    x = moveaxis(args[0], dims[0], 0)
    return broadcast_in_dim(x, (axis.size, *shape), (0, *(d + 1 for d in broadcast_dimensions))), 0


@broadcast_in_dim_p.lowering
def _broadcast_lowering(hlo: Any, x: Any, *, shape: Shape, broadcast_dimensions: Shape) -> Any:
    return hlo.broadcast_in_dim(x, shape, broadcast_dimensions) if x.shape else hlo.broadcast(x, shape)


@axis_kept(broadcast_in_dim_p)
def _broadcast_keeps(axis: int, operand: int, x: Shape, *, shape: Shape, broadcast_dimensions: Shape) -> int | None:
    result_axis = broadcast_dimensions[axis]
    return result_axis if shape[result_axis] == x[axis] else None


def full(shape: Shape, value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Return an array filled with ``value``.

    While a program is traced, an operation makes the array, so that the program holds no constant.
    """
    number = np.asarray(value).astype(dtype)[()]
    if shape == ():
        return scalar_array(number, weak_type)
    trace = state.trace
    elsewhere = not trace.quick and (not trace.eager or default_is_elsewhere())
    if elsewhere or any_symbolic(shape) or len(shape) > MOST_HOST_AXES:
        return broadcast_in_dim_p.bind(scalar_array(number, weak_type), shape=tuple(shape), broadcast_dimensions=())
    try:
        return ArrayImpl(np.broadcast_to(number, shape), weak_type)
    except ValueError as error:
        raise AllocationError(f"no memory for an array of shape {tuple(shape)}: {error}") from None


def full_beside(x: Any, value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Return an array of the shape of ``x`` filled with ``value``, on the device that ``x`` is committed to."""
    if type(x) is not CommittedArray:
        return full(x.shape, value, dtype, weak_type)
    number = ArrayImpl(np.asarray(value).astype(dtype)[()], weak_type)
    return broadcast_to(runtime.following(number, [x]), x.shape)


def zeros_like(x: Any) -> Any:
    return full(x.shape, 0, x.dtype)


@provides
def zeros(aval: ShapedArray) -> Any:
    """Return zeros of the type ``aval``.

    While a program is traced, an operation makes them, so that the program holds no constant.
    """
    out = full(aval.shape, 0, aval.dtype, aval.weak_type)
    return out if aval.explicit is None else resharded(out, aval.explicit)


# Reshaping ---------------------------------------------------------------------------------------------------------


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """Reshape ``x``, in row-major order; return it unchanged if it has the shape already."""
    shape = tuple(shape)
    return x if shape == shape_of(x) else reshape_p.bind(x, new_sizes=shape)


def expand_dims(x: Any, axes: Sequence[int]) -> Any:
    """Insert axes of size one into ``x``, at positions ``axes`` of the result."""
    if not axes:
        return x
    sizes = iter(x.shape)
    rank = len(x.shape) + len(axes)
    where = {a % rank for a in axes}
    return reshape(x, [1 if i in where else next(sizes) for i in range(rank)])


def squeeze(x: Any, axes: Sequence[int]) -> Any:
    """Remove the axes ``axes`` of ``x``, which have size one."""
    return squeeze_p.bind(x, dimensions=tuple(a % len(x.shape) for a in axes)) if axes else x


reshape_p = Primitive("reshape", cost=Cost.LIGHT, moves=True, keeps_elements=True)


@reshape_p.host
def reshape_host(x: Any, *, new_sizes: Shape) -> Any:
    """Return ``x.reshape(new_sizes)``; large arrays whose elements are in another order are copied on all cores."""
    if x.flags.c_contiguous or not moves.are_moved(x.size, x.dtype):
        return x.reshape(new_sizes)
    try:
        return x.reshape(new_sizes, copy=False)
    except ValueError:  # the elements are in another order
        out = np.empty(x.shape, x.dtype)
        if x.shape[-1] <= _FEW_REPETITIONS and not x.strides[-1]:
            for i in range(x.shape[-1]):
                out[..., i] = x[..., 0]
        else:
            moves.copy(out, x)
        return out.reshape(new_sizes)


_FEW_REPETITIONS = 16  # up to which NumPy copies the repetitions of an element faster one after the other

reshape_p.jvp_rule = jvp_linear(reshape_p)
reshape_p.transpose(lambda ct, x, *, new_sizes: (reshape(ct, x.shape),))
reshape_p.lowering(lambda hlo, x, *, new_sizes: hlo.reshape(x, new_sizes))


@reshape_p.abstract_eval
def _reshape_abstract_eval(x: ShapedArray, *, new_sizes: Shape) -> ShapedArray:
    if math.prod(new_sizes) != x.size or any(n < 0 for n in new_sizes):
        raise ShapeError(f"cannot reshape an array of shape {x.shape} (size {x.size}) into shape {new_sizes}")
    return ShapedArray(new_sizes, x.dtype)


@reshape_p.batch
def _reshape_batch(axis: MappedAxis, args: Any, dims: Any, *, new_sizes: Shape) -> Any:
    return reshape(moveaxis(args[0], dims[0], 0), (axis.size, *new_sizes)), 0


@axis_kept(reshape_p)
def _reshape_keeps(axis: int, operand: int, x: Shape, *, new_sizes: Shape) -> int | None:
    before = math.prod(x[:axis])
    for result_axis, size in enumerate(new_sizes):
        if size == x[axis] and math.prod(new_sizes[:result_axis]) == before:
            return result_axis
    return None


@sharding_rule(reshape_p)
def _reshape_sharding(operands: Any, results: Any, *, new_sizes: Shape) -> Any:
    (x,) = operands
    found = reshaped_entries(x, new_sizes)
    if found is None:
        raise ShardingTypeError(
            f"This reshape is not supported: the sharding of {x} does not say how a result of shape {new_sizes} is "
            f"divided. {REMEDY}"
        )
    return [found]


squeeze_p = Primitive("squeeze", cost=Cost.LIGHT, moves=True, keeps_elements=True)
squeeze_p.jvp_rule = jvp_linear(squeeze_p)
squeeze_p.transpose(lambda ct, x, *, dimensions: (reshape(ct, x.shape),))
squeeze_p.lowering(lambda hlo, x, *, dimensions: hlo.reshape(x, hlo.result.shape))


@squeeze_p.host
def _squeeze_host(x: Any, *, dimensions: Shape) -> Any:
    if x.size == 1 and len(dimensions) == x.ndim:
        return x[(0,) * x.ndim]  # a NumPy scalar is faster than an array without axes
    return x.squeeze(dimensions)


@squeeze_p.abstract_eval
def _squeeze_abstract_eval(x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
    if any(not 0 <= d < x.ndim or x.shape[d] != 1 for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ShapeError(f"cannot squeeze the axes {dimensions} of an array of shape {x.shape}: they must be of size 1")
    return ShapedArray(tuple(n for i, n in enumerate(x.shape) if i not in dimensions), x.dtype)


@squeeze_p.batch
def _squeeze_batch(axis: MappedAxis, args: Any, dims: Any, *, dimensions: Shape) -> Any:
    return squeeze(moveaxis(args[0], dims[0], 0), [d + 1 for d in dimensions]), 0


@axis_kept(squeeze_p)
def _squeeze_keeps(axis: int, operand: int, x: Shape, *, dimensions: Shape) -> int | None:
    return None if axis in dimensions else axis - sum(d < axis for d in dimensions)


# Permuting axes ----------------------------------------------------------------------------------------------------


def transpose(x: Any, permutation: Sequence[int]) -> Array:
    """Permute the axes of ``x``: axis ``i`` of the result is axis ``permutation[i]`` of ``x``."""
    permutation = tuple(permutation)
    return x if permutation == tuple(range(len(permutation))) else transpose_p.bind(x, permutation=permutation)


def moveaxis(x: Any, source: int, destination: int) -> Array:
    """Move axis ``source`` of ``x`` to position ``destination``."""
    if source == destination:
        return x
    order = [i for i in range(len(x.shape)) if i != source]
    order.insert(destination, source)
    return transpose_p.bind(x, permutation=tuple(order))


def front_aligned(x: Any, dim: int, rank: int) -> Any:
    """Move the mapped axis ``dim`` of ``x`` to the front, and pad the example's shape with ones to ``rank`` axes.

    An example: for rank 3, (a, batch, b) -> (batch, 1, a, b).
    """
    x = moveaxis(x, dim, 0)
    shape = x.shape
    missing = rank - (len(shape) - 1)
    return reshape(x, (shape[0], *(1,) * missing, *shape[1:])) if missing else x


transpose_p = Primitive("transpose", cost=Cost.LIGHT, moves=True)
transpose_p.host_rule = lambda x, *, permutation: x.transpose(permutation)
transpose_p.jvp_rule = jvp_linear(transpose_p)
transpose_p.lowering(lambda hlo, x, *, permutation: hlo.transpose(x, permutation))


@transpose_p.abstract_eval
def _transpose_abstract_eval(x: ShapedArray, *, permutation: Shape) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise ShapeError(f"transpose: {permutation} is not a permutation of the axes of an array of shape {x.shape}")
    return ShapedArray(tuple(x.shape[i] for i in permutation), x.dtype)


@transpose_p.transpose
def _transpose_transpose(ct: Any, x: LinearVar, *, permutation: Shape) -> Any:
    inverse = [0] * len(permutation)
    for i, p in enumerate(permutation):
        inverse[p] = i
    return (transpose(ct, inverse),)


@transpose_p.batch
def _transpose_batch(axis: MappedAxis, args: Any, dims: Any, *, permutation: Shape) -> Any:
    (d,) = dims
    return transpose(args[0], [d, *(p + (p >= d) for p in permutation)]), 0


axis_kept(transpose_p)(lambda axis, operand, x, *, permutation: permutation.index(axis))
