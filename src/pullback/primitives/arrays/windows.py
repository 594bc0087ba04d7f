"""Modes, dimension numbers and checks that gathers and scatters share.

The dimension numbers are XLA's (the operation semantics of ``gather`` and ``scatter`` in the documentation of
StableHLO), with the index vector along the last axis of the indices.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.host import moves
from pullback.core import dtypes
from pullback.core.arguments import is_listed, quote
from pullback.core.array import ArrayImpl
from pullback.core.check_rules import Failure
from pullback.core.errors import AllocationError, ArgumentError, DtypeError, IndexCheckError, ShapeError
from pullback.core.trace import state
from pullback.core.types import Shape
from pullback.primitives.arrays import shapes
from pullback.primitives.discrete import gt_p, lt_p, or_p

# Modes and dimension numbers ---------------------------------------------------------------------------------------


class GatherScatterMode(enum.Enum):
    """How gathers and scatters treat windows that are out of bounds.

    ``CLIP`` moves these windows inside. ``FILL_OR_DROP`` gathers a fill value, and drops updates. ``PROMISE_IN_BOUNDS``
    asserts that no window is out of bounds; if one is, a gather moves it inside and a scatter drops it.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> elements = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> print(lax.gather(jnp.array([1.0, 2.0]), jnp.array([[5]]), elements, (1,), mode=lax.GatherScatterMode.CLIP))
    [2.]
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()

    @staticmethod
    def from_any(mode: GatherScatterMode | str | None) -> GatherScatterMode:
        """Return the mode of a name: ``clip``, ``fill``, ``drop`` or ``promise_in_bounds``; None is ``FILL_OR_DROP``.

        Raises:
          ArgumentError: the mode is unknown (a ValueError).

        >>> from pullback import lax
        >>> lax.GatherScatterMode.from_any("drop")
        <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        if is_listed(mode, _MODES):
            return _MODES[mode]
        names = ", ".join(repr(name) for name in _MODES if name is not None)
        raise ArgumentError(f"the mode for indices out of range must be one of {names}, got {mode!r}")

    def __str__(self) -> str:
        return self.name


_MODES: dict[Any, GatherScatterMode] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class GatherDimensionNumbers(NamedTuple):
    """The correspondence of the axes of a gather's operand, indices and result.

    Attributes:
      offset_dims: the window axes in the result; its other axes are the batch axes of the indices.
      collapsed_slice_dims: the axes of the operand, with windows of size 1, that the result lacks.
      start_index_map: the axis of the operand that each component of an index vector indexes.
      operand_batching_dims: the batching axes of the operand, each paired with an axis of the indices.
      start_indices_batching_dims: the paired axes of the indices.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> elements = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> print(lax.gather(jnp.array([1.0, 2.0, 3.0]), jnp.array([[2], [0]]), elements, (1,)))
    [3. 1.]
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The correspondence of the axes of a scatter's operand, indices and updates.

    Attributes:
      update_window_dims: the window axes in the updates; their other axes are the batch axes of the indices.
      inserted_window_dims: the axes of the operand that the updates lack.
      scatter_dims_to_operand_dims: the axis of the operand that each component of an index vector indexes.
      operand_batching_dims: the batching axes of the operand, each paired with an axis of the indices.
      scatter_indices_batching_dims: the paired axes of the indices.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> elements = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> print(lax.scatter_add(jnp.zeros(3), jnp.array([[1], [1]]), jnp.array([2.0, 3.0]), elements))
    [0. 5. 0.]
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def batched_numbers(numbers: Any, operand: bool, indices: bool) -> Any:
    """Return the dimension numbers of a gather or scatter for a batch, whose mapped axis comes first.

    The new axis also leads in the result of a gather, and in the updates of a scatter.

    Args:
      numbers: the dimension numbers of one example.
      operand: whether the operand has the mapped axis.
      indices: whether the indices have the mapped axis.
    """
    windows, dropped, indexed, operand_batching, indices_batching = numbers
    window = (0,) if operand and not indices else ()
    along = (0,) if operand and indices else ()
    return type(numbers)(
        window + _shifted(windows, 1),
        _shifted(dropped, operand),
        _shifted(indexed, operand),
        along + _shifted(operand_batching, operand),
        along + _shifted(indices_batching, indices),
    )


def _shifted(axes: Sequence[int], by: int) -> tuple[int, ...]:
    return tuple(a + by for a in axes)


def zeros(shape: Shape, dtype: np.dtype[Any]) -> Any:
    """Return zeros to scatter into: a new array in eager evaluation, an operation while a program is traced."""
    if shape and state.trace.quick:
        try:
            is_copied = moves.are_moved(math.prod(shape), dtype)  # what is written into, by all cores
            return ArrayImpl(shapes.repeated(np.zeros((), dtype), shape) if is_copied else np.zeros(shape, dtype))
        except (MemoryError, ValueError) as error:
            raise AllocationError(f"no memory for an array of shape {shape}: {error}") from None
    zero = shapes.full((), 0, dtype)
    return shapes.broadcast_in_dim(zero, shape, ()) if shape else zero


def check_numbers(name: str, numbers: Any, shape: Shape, indices_shape: Shape) -> None:
    """Raise unless the dimension numbers of a gather or scatter are consistent, and fit the shapes."""
    if not isinstance(numbers, tuple) or len(numbers) != 5:
        raise ShapeError(
            f"{name}: dimension_numbers must be a GatherDimensionNumbers or a ScatterDimensionNumbers, got "
            f"{quote(numbers)}"
        )
    _, collapsed, indexed, operand_batching, indices_batching = numbers
    if not indices_shape or len(indexed) != indices_shape[-1]:
        raise ShapeError(
            f"{name}: the last axis of the indices, of shape {indices_shape}, is the index vector; it needs "
            f"{len(indexed)} components, one for each of the axes {indexed} that are indexed"
        )
    rank, batch = len(shape), len(indices_shape) - 1
    for axes, bound in (
        ((*collapsed, *operand_batching), rank), ((*indexed, *operand_batching), rank), (indices_batching, batch)
    ):  # fmt: skip
        if len(set(axes)) != len(axes) or any(not 0 <= a < bound for a in axes):
            raise ShapeError(f"{name}: the axes {axes} are not distinct, or not in range({bound}), in {numbers}")
    if [shape[d] for d in operand_batching] != [indices_shape[d] for d in indices_batching]:
        raise ShapeError(
            f"{name}: the batching axes {operand_batching} of the operand, of shape {shape}, and {indices_batching} "
            f"of the indices, of shape {indices_shape}, must have the same sizes"
        )


def check_windows(what: str, axes: Shape, count: int, rank: int) -> None:
    """Raise unless ``axes`` is an increasing sequence of ``count`` axes of a result with ``rank`` axes.

    The error calls the axes ``what``.
    """
    if len(axes) != count or list(axes) != sorted(set(axes)) or any(not 0 <= a < rank for a in axes):
        raise ShapeError(f"{what} must be {count} increasing axes of a result with {rank} axes, got {axes}")


def check_indices(name: str, indices: Any) -> None:
    """Raise unless the indices are integers."""
    if not dtypes.is_integer(indices.dtype):
        got = f"{dtypes.short_name(indices.dtype)}[{','.join(map(str, indices.shape))}]"
        raise DtypeError(f"{name} takes integers as indices, got {got}")


def out_of_bounds(
    shape: Shape, indices: Any, axes: Sequence[int], sizes: Sequence[int], mode: GatherScatterMode | None = None
) -> list[Failure]:
    """Return a list of one ``Failure``, which reports indices of windows out of bounds; an empty list without axes.

    Args:
      shape: the shape of the array.
      indices: index vectors along the last axis.
      axes: for each component of an index vector the axis of the array that it indexes.
      sizes: the window size along each of these axes.
      mode: the mode of the gather or scatter; for ``FILL_OR_DROP`` the failure is marked as intended by the user.
    """
    if not axes:
        return []
    largest = int(dtypes.iinfo(indices.dtype).max)
    limits = [min(max(shape[a] - size, 0), largest) for a, size in zip(axes, sizes, strict=True)]
    vectors = indices.shape

    def of_vectors(values: Sequence[int], dtype: Any) -> Any:
        return shapes.broadcast_in_dim(ArrayImpl(np.array(values, dtype)), vectors, (len(vectors) - 1,))

    failed = or_p.bind(lt_p.bind(indices, 0), gt_p.bind(indices, of_vectors(limits, indices.dtype)))
    message = (
        f"out-of-bounds indexing for array of shape {shape}: index {{}} is out of bounds for axis {{}} with size {{}}."
    )
    numbers = of_vectors(axes, np.int32), of_vectors([min(shape[a], 2**31 - 1) for a in axes], np.int32)
    return [Failure(IndexCheckError, failed, message, (indices, *numbers), mode is GatherScatterMode.FILL_OR_DROP)]


def host_indices(name: str, indices: Any) -> Any:
    """Check that the indices are integers; return them, with uint64 clipped to the largest int64.

    NumPy would read larger indices as negative.
    """
    check_indices(name, indices)
    return np.minimum(indices, _LARGEST) if indices.dtype == np.uint64 else indices


_LARGEST = np.uint64(2**63 - 1)


def counting(start: int, stop: int, dtype: np.dtype[Any]) -> ArrayImpl:
    """Return the constant array ``start``, ``start + 1``, ..., ``stop - 1``."""
    return ArrayImpl(np.arange(start, stop, dtype=dtype))
