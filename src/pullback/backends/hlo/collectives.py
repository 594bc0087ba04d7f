"""Lowering rules of collectives within ``shard_map``.

The number of a device in a program is its index in the flattened mesh. A group is a list of these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.hlo.builder import Builder
from pullback.backends.hlo.module import axis_names
from pullback.core.axes import axis_in_scope
from pullback.core.errors import UnboundAxisNameError
from pullback.core.types import Shape

Groups = tuple[tuple[int, ...], ...] | None


def _mesh(hlo: Any, axes: Sequence[Any]) -> Any:
    """The mesh of the enclosing ``shard_map``.

    Raises:
      UnboundAxisNameError: there is no mesh, or it lacks one of ``axes``.
    """
    mesh = hlo.module.manual
    for name in axes:
        if mesh is None or name not in mesh.axis_names:
            axis_in_scope(name)
            raise UnboundAxisNameError(
                f"the axis {name!r} is in scope, but the compiled program has no axis of this name"
            )
    return mesh


_MANY = 1024
"""Up to how many numbers of devices are written in decimal; more are written as bytes, which takes far less time."""


def _rows(hlo: Any, axes: Sequence[Any], groups: Groups) -> np.ndarray:
    """The groups of devices that communicate, a row of device numbers for each; -1 fills the rows of smaller groups.

    Args:
      hlo: the builder.
      axes: names of mesh axes. The devices of a group differ only in their indices along these axes.
      groups: lists of indices along ``axes``, which split each group further; None for no further division.
    """
    mesh = _mesh(hlo, axes)
    positions = [mesh.axis_names.index(name) for name in axes]
    grid = np.arange(mesh.size).reshape(mesh.axis_sizes)
    rest = [i for i in range(grid.ndim) if i not in positions]
    rows = grid.transpose([*rest, *positions]).reshape(-1, math.prod(grid.shape[i] for i in positions))
    if groups is None:
        return rows
    longest = max(map(len, groups))
    chosen = np.array([[*group, *[-1] * (longest - len(group))] for group in groups])
    return np.where(chosen < 0, -1, rows[:, chosen]).reshape(-1, longest)


def _numbers(table: np.ndarray) -> str:
    """Write a table of device numbers."""
    few = table.size <= _MANY
    content = str(table.tolist()) if few else f'"0x{table.astype("<i8").tobytes().hex().upper()}"'
    return f"dense<{content}> : tensor<{len(table)}x{table.shape[1]}xi64>"


def _attributes(hlo: Any, rows: np.ndarray, *more: str) -> str:
    channel = next(hlo.module.channels)
    return ", ".join([
        *more, f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>",
        f"replica_groups = {_numbers(rows)}", "use_global_device_ids",
    ])  # fmt: skip


def _across(hlo: Any, name: str, x: Any, shape: Shape, element: str, rows: np.ndarray, *more: str) -> Any:
    """Write a collective that combines elements of several devices, such as ``all_reduce``.

    Args:
      hlo: the builder.
      name: the name of the collective.
      x: the operand.
      shape: the shape of the result.
      element: the name of the operation that combines two elements, such as ``add``.
      rows: the groups of devices that communicate.
      more: further attributes, as text.
    """
    scalar = ((), x.dtype)
    body = hlo.region([scalar, scalar], lambda a, b: [hlo.elementwise(f"stablehlo.{element}", a, b)])
    return hlo.multi_result(f"stablehlo.{name}", [x], [(shape, x.dtype)], _attributes(hlo, rows, *more), [body])[0]


def all_reduce(element: str) -> Callable[..., Any]:
    """Make the lowering rule of a reduction over devices by ``element``: ``add``, ``maximum`` or ``minimum``."""

    def rule(hlo: Any, x: Any, *, axes: Sequence[Any], groups: Groups) -> Any:
        return _across(hlo, "all_reduce", x, x.shape, element, _rows(hlo, axes, groups))

    return rule


def all_gather(
    hlo: Any, x: Any, *, axes: Sequence[Any], axis_size: int, dimension: int, groups: Groups, tiled: bool
) -> Any:
    """Lower ``all_gather``: join the operands of ``axis_size`` devices along the axis ``dimension``.

    If ``tiled``, the operands are concatenated along this axis; otherwise it is a new axis.
    """
    if not tiled:
        x = hlo.reshape(x, (*x.shape[:dimension], 1, *x.shape[dimension:]))
    shape = (*x.shape[:dimension], x.shape[dimension] * axis_size, *x.shape[dimension + 1 :])
    attributes = _attributes(hlo, _rows(hlo, axes, groups), f"all_gather_dim = {dimension} : i64")
    return hlo.op("stablehlo.all_gather", [x], shape, x.dtype, attributes)


def reduce_scatter(
    hlo: Any, x: Any, *, axes: Sequence[Any], axis_size: int, dimension: int, groups: Groups, tiled: bool
) -> Any:
    """Lower ``reduce_scatter``: sum over ``axis_size`` devices, and return to each device a slice along ``dimension``.

    If not ``tiled``, the slice has size 1, and this axis is removed.
    """
    shape = (*x.shape[:dimension], x.shape[dimension] // axis_size, *x.shape[dimension + 1 :])
    rows = _rows(hlo, axes, groups)
    out = _across(hlo, "reduce_scatter", x, shape, "add", rows, f"scatter_dimension = {dimension} : i64")
    return out if tiled else hlo.reshape(out, (*shape[:dimension], *shape[dimension + 1 :]))


def all_to_all(
    hlo: Any, x: Any, *, axes: Sequence[Any], axis_size: int, split_axis: int, concat_axis: int, groups: Groups,
    tiled: bool,
) -> Any:  # fmt: skip
    """Lower ``all_to_all``: send slices along ``split_axis`` to ``axis_size`` devices, and join the received slices.

    If ``tiled``, the received slices are concatenated along ``concat_axis``. Otherwise ``split_axis``, of size
    ``axis_size``, is removed, and ``concat_axis`` is a new axis.
    """
    split, concat = split_axis, concat_axis
    if not tiled:  # a new axis of size 1 at the position where the shards will be concatenated
        rest = (*x.shape[:split], *x.shape[split + 1 :])
        where = concat + (concat > split)
        split += concat <= split
        concat = where
        x = hlo.reshape(x, (*x.shape[:concat], 1, *x.shape[concat:]))
    shape = list(x.shape)
    shape[split] //= axis_size
    shape[concat] *= axis_size
    attributes = _attributes(
        hlo, _rows(hlo, axes, groups), f"split_dimension = {split} : i64", f"concat_dimension = {concat} : i64",
        f"split_count = {axis_size} : i64",
    ).removesuffix(", use_global_device_ids")  # fmt: skip
    out = hlo.op("stablehlo.all_to_all", [x], tuple(shape), x.dtype, attributes)
    return out if tiled else hlo.reshape(out, (*rest[:concat_axis], axis_size, *rest[concat_axis:]))


def ppermute(hlo: Any, x: Any, *, axes: Sequence[Any], perm: Sequence[tuple[int, int]]) -> Any:
    """Lower ``ppermute``: for each pair (source, target) in ``perm``, send ``x`` from the source to the target.

    Sources and targets are indices along ``axes``. A device that is no target gets zeros.
    """
    if not perm:
        return hlo.splat(0, x.shape, x.dtype)
    pairs = _rows(hlo, axes, None)[:, np.array(perm)].reshape(-1, 2)
    channel = f"channel_handle = #stablehlo.channel_handle<handle = {next(hlo.module.channels)}, type = 1>"
    attributes = f"{channel}, source_target_pairs = {_numbers(pairs)}"
    return hlo.op("stablehlo.collective_permute", [x], x.shape, x.dtype, attributes)


def axis_index(hlo: Any, *, axes: Sequence[Any]) -> Any:
    """Lower ``axis_index``: the index of the device along the mesh axis that ``axes`` names."""
    mesh = _mesh(hlo, axes)
    (name,) = axes
    if mesh.shape[name] == 1:
        return hlo.number(np.int32(0), np.dtype(np.int32))
    rest = [n for n in mesh.axis_names if n not in hlo.module.manual_axes]
    if not rest:
        return _index(hlo, mesh, name)
    # The number of the device is known only where all axes of the mesh are manual, also those left to the compiler.
    # Along these the index is the same.
    shown = [text for n, text in zip(mesh.axis_names, axis_names(mesh), strict=True) if n in rest]
    attributes = (
        "in_shardings = #sdy.sharding_per_value<[]>, "
        f"out_shardings = #sdy.sharding_per_value<[<{hlo.module.mesh(mesh)}, []>]>, "
        f"manual_axes = #sdy<manual_axes{{{', '.join(shown)}}}>"
    )
    own = Builder(hlo.module, called=True)
    function = own.finish(hlo.module.unique("axis_index"), [_index(own, mesh, name)])
    body = hlo.region([], lambda: hlo.raw_call(function, []), "sdy.return")
    return hlo.multi_result("sdy.manual_computation", [], [((), np.dtype(np.int32))], attributes, [body])[0]


def _index(hlo: Any, mesh: Any, name: Any) -> Any:
    """Write the index of the device along an axis of a mesh, where all axes of the mesh are manual."""
    position = mesh.axis_names.index(name)
    unsigned, kind = np.dtype(np.uint32), np.dtype(np.int32)
    number = hlo.convert(hlo.op("stablehlo.partition_id", [], (), unsigned), kind)
    stride = hlo.number(np.int32(math.prod(mesh.axis_sizes[position + 1 :])), kind)
    quotient = hlo.elementwise("stablehlo.divide", number, stride)
    return hlo.elementwise("stablehlo.remainder", quotient, hlo.number(np.int32(mesh.axis_sizes[position]), kind))
