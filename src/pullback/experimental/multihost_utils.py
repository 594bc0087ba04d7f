"""Communication between several processes; see :mod:`pullback.distributed`.

All processes call these functions, in the same order. If a process is lost meanwhile, the others raise a
``ProcessLostError``. In a program of one process they return their arguments. Data on the host pass through process 0:
large arrays are better sharded over devices, for programs to gather.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends.devices import devices
from pullback.backends.devices.meshes import Mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.backends.processes.distributed import exchange
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array
from pullback.core.errors import ArgumentError, ProcessMismatchError
from pullback.core.faces import face
from pullback.transforms.jit.jit import jit
from pullback.transforms.programs.sharded_arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from pullback.transforms.programs.transfer import device_put

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]
face(globals())


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """Return the values of all processes, in each process.

    Args:
      in_tree: a tree of array-likes, with the same structure, shapes and dtypes in all processes.
      tiled: whether to concatenate the arrays along their first axis, instead of stacking them along a new one. It must
        be true for arrays over the devices of several processes, which are returned as a whole.

    Returns:
      The same tree of NumPy arrays: of shape ``[processes, ...]``, or ``[processes * n, ...]`` for leaves of shape
      ``[n, ...]`` if ``tiled``, where numbers count as of shape ``[1]``.

    Raises:
      ArgumentError: an array over the devices of several processes, but not ``tiled`` (a ValueError).
      ProcessMismatchError: the processes have different trees (a RuntimeError and AssertionError).
      ProcessLostError: a process is gone (a RuntimeError).

    >>> from pullback.experimental import multihost_utils
    >>> multihost_utils.process_allgather({"loss": 0.5})
    {'loss': array([0.5])}
    """
    values, treedef = tree.flatten(in_tree)
    spread = [_is_global(x) for x in values]
    if any(spread) and not tiled:
        raise ArgumentError(
            "process_allgather: an array over the devices of several processes is gathered as a whole: pass tiled=True"
        )
    leaves, _ = _local_leaves([x for x, over in zip(values, spread, strict=True) if not over])
    if devices.here.processes == 1:
        return tree.unflatten(treedef, [x if tiled else x[np.newaxis] for x in leaves])
    parts = _exchanged(f"process_allgather({_outline(leaves, treedef)})", leaves)
    join = _concatenated if tiled else np.stack
    joined = iter([join(each) for each in zip(*parts, strict=True)])
    return tree.unflatten(
        treedef, [_gathered(x) if over else next(joined) for x, over in zip(values, spread, strict=True)]
    )


def _concatenated(values: Any) -> Any:
    return np.concatenate(list(map(np.atleast_1d, values)))


def _gathered(x: Any) -> np.ndarray[Any, Any]:
    """Return all elements of an array, which is sharded over the devices of several processes, as a NumPy array."""
    everywhere = NamedSharding(x.sharding.mesh, PartitionSpec())
    return np.asarray(jit(lambda y: y, out_shardings=everywhere)(x))


def _is_global(x: Any) -> bool:
    return isinstance(x, Array) and not x.is_fully_addressable


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """Return the values of one process, in each process.

    Args:
      in_tree: a tree of array-likes, with the same structure, shapes and dtypes in all processes.
      is_source: whether this process is the source; by default, process 0 is.

    Returns:
      The same tree of NumPy arrays, with the values of that process.

    Raises:
      ProcessMismatchError: the processes have different trees, or not exactly one is the source (a RuntimeError and
        AssertionError).
      ProcessLostError: a process is gone (a RuntimeError).

    >>> from pullback.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all({"seed": 3})
    {'seed': array(3)}
    """
    leaves, treedef = _local_leaves(in_tree)
    if devices.here.processes == 1:
        return tree.unflatten(treedef, leaves)
    source = devices.here.process == 0 if is_source is None else bool(is_source)
    what = f"broadcast_one_to_all({_outline(leaves, treedef)})"
    said = exchange(what, b"1" + _packed(leaves) if source else b"")
    sources = [i for i, data in enumerate(said) if data]
    if len(sources) != 1:
        raise ProcessMismatchError(
            f"broadcast_one_to_all: is_source must be True in exactly one process, but is True in {sources or 'none'}"
        )
    return tree.unflatten(treedef, _unpacked(said[sources[0]][1:], leaves))


def sync_global_devices(name: str) -> None:
    """Wait until all processes have called this function.

    Args:
      name: a name of the point in the program; the same in all processes.

    Raises:
      ProcessMismatchError: another process is at another point (a RuntimeError and AssertionError).
      ProcessLostError: a process is gone (a RuntimeError).

    >>> from pullback.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("after the first epoch")
    """
    exchange(f"sync_global_devices({name!r})", b"")


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Check that all processes have the same values.

    Args:
      in_tree: a tree of array-likes.
      fail_message: the beginning of the error's message.

    Raises:
      ProcessMismatchError: they have not (a RuntimeError and AssertionError). It names the processes whose values are
        not those of this one, and the first leaf that differs.
      ProcessLostError: a process is gone (a RuntimeError).

    >>> from pullback.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 10}, "the steps")
    """
    leaves, treedef = _local_leaves(in_tree)
    if devices.here.processes == 1:
        return
    parts = _exchanged(f"assert_equal({_outline(leaves, treedef)})", leaves)
    paths = tree.leaves_with_path(tree.unflatten(treedef, leaves))
    for i, other in enumerate(parts):
        for (path, own_value), theirs in zip(paths, other, strict=True):
            if own_value.tobytes() != theirs.tobytes() and not np.array_equal(own_value, theirs):
                begin = f"{fail_message}: " if fail_message else ""
                where = f" of {''.join(map(str, path))}" if path else ""
                raise ProcessMismatchError(
                    f"{begin}the values{where} are {own_value} in process {devices.here.process}, and {theirs} in "
                    f"process {i}"
                )


def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree) -> PyTree:
    """Make arrays over the devices of all processes from the blocks that each process has.

    Args:
      local_inputs: a tree of arrays: the blocks on the devices of this process.
      global_mesh: the mesh of all processes' devices.
      pspecs: a ``PartitionSpec`` for all of them, or a tree of them that is a prefix of ``local_inputs``.

    Returns:
      The same tree of arrays with the sharding ``NamedSharding(global_mesh, spec)``. An axis that is divided among
      processes is as long as their blocks together.

    Raises:
      ShardingError: a specification does not fit its array (a ValueError).

    >>> import numpy as np
    >>> from pullback import P, make_mesh
    >>> from pullback.experimental import multihost_utils
    >>> mesh = make_mesh((1,), ("data",))
    >>> multihost_utils.host_local_array_to_global_array(np.arange(2), mesh, P("data")).sharding.spec
    P('data',)
    """
    leaves, treedef = tree.flatten(local_inputs)
    placements = _placements(pspecs, local_inputs, global_mesh)
    made = [make_array_from_process_local_data(placement, x) for placement, x in zip(placements, leaves, strict=True)]
    return tree.unflatten(treedef, made)


def global_array_to_host_local_array(global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree) -> PyTree:
    """Return this process's blocks of arrays over the devices of all processes.

    Args:
      global_inputs: a tree of arrays.
      global_mesh: the mesh of all processes' devices.
      pspecs: a ``PartitionSpec`` for all of them, or a tree of them that is a prefix of ``global_inputs``, by which
        they are resharded first.

    Returns:
      The same tree of arrays over the devices of this process, with the sharding
      ``NamedSharding(global_mesh.local_mesh, spec)``.

    Raises:
      ShardingError: a specification does not fit its array (a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, make_mesh
    >>> from pullback.experimental import multihost_utils
    >>> mesh = make_mesh((1,), ("data",))
    >>> print(multihost_utils.global_array_to_host_local_array(jnp.arange(2), mesh, P("data")))
    [0 1]
    """
    leaves, treedef = tree.flatten(global_inputs)
    placements = _placements(pspecs, global_inputs, global_mesh)
    return tree.unflatten(
        treedef, [_block(x, placement, global_mesh) for x, placement in zip(leaves, placements, strict=True)]
    )


def _block(x: Any, placement: NamedSharding, mesh: Mesh) -> Any:
    spread = device_put(x, placement)
    local = NamedSharding(mesh.local_mesh, placement.spec)
    factors = local.factors(spread.ndim)
    shape = [n * k for n, k in zip(placement.shard_shape(spread.shape), factors, strict=True)]
    parts = [shard.data for shard in spread.addressable_shards]
    return make_array_from_single_device_arrays(shape, local, parts)


def _placements(pspecs: Any, inputs: Any, mesh: Mesh) -> list[NamedSharding]:
    specs = tree.broadcast_prefix(pspecs, inputs, is_leaf=lambda x: isinstance(x, PartitionSpec))
    return [NamedSharding(mesh, spec) for spec in specs]


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save their state now, since one of them is about to be ended.

    Args:
      step_id: the number of the step.

    Returns:
      False: processes are not notified. :func:`pullback.distributed.initialize` has lost processes detected, and raises
      ``ProcessLostError`` in the others.

    Raises:
      ArgumentError: ``step_id`` is no integer (a TypeError).

    >>> from pullback.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(3)
    False
    """
    if not isinstance(step_id, (int, np.integer)) or isinstance(step_id, bool):
        raise ArgumentError(f"reached_preemption_sync_point: step_id must be an int, got {step_id!r}")
    return False


def _local_leaves(in_tree: Any) -> tuple[list[np.ndarray[Any, Any]], Any]:
    """Return the leaves of a tree as NumPy arrays, and the tree's structure.

    If there are several processes, the leaves have canonical dtypes.
    """
    leaves, treedef = tree.flatten(in_tree)
    arrays = [np.asarray(leaf) for leaf in leaves]
    if devices.here.processes > 1:
        arrays = [np.asarray(a, dtypes.canonicalize_dtype(a.dtype), order="C") for a in arrays]
    return arrays, treedef


def _outline(leaves: list[np.ndarray[Any, Any]], treedef: Any) -> str:
    types = ", ".join(f"{dtypes.short_name(a.dtype)}{list(a.shape)}" for a in leaves)
    return f"{treedef} of {types}" if leaves else str(treedef)


def _packed(leaves: list[np.ndarray[Any, Any]]) -> bytes:
    return b"".join(leaf.tobytes() for leaf in leaves)


def _unpacked(data: bytes, like: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    arrays, start = [], 0
    for leaf in like:
        part = data[start : start + leaf.nbytes]
        arrays.append(np.frombuffer(bytearray(part), leaf.dtype).reshape(leaf.shape))
        start += leaf.nbytes
    return arrays


def _exchanged(what: str, leaves: list[np.ndarray[Any, Any]]) -> list[list[np.ndarray[Any, Any]]]:
    """Send this process's leaves to all processes; return a list of the leaves of each process.

    Every process calls this with leaves of the same shapes and dtypes. ``what`` is a name of the exchange, the same in
    all processes.
    """
    return [_unpacked(said, leaves) for said in exchange(what, _packed(leaves))]
