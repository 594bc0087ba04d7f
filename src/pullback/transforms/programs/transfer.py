"""Transfer of arrays between host and devices: ``device_put``, ``device_get``, ``block_until_ready``."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

import numpy as np

from pullback.backends.compiler.backend import backend
from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import buffer_of
from pullback.backends.devices.devices import Device, Space, default_device, device
from pullback.backends.devices.memories import KINDS, kind_of
from pullback.backends.devices.shardings import NamedSharding
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayImpl, as_array, delete, fresh, is_on_device, is_on_host, signature_of
from pullback.core.errors import ArgumentError, OperandError, ShardingError
from pullback.core.trace import Tracer
from pullback.primitives.operands import made
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import (
    check_divides,
    committed,
    destination,
    device_put_p,
    in_space,
    is_placement,
    put,
)

T = TypeVar("T")


def device_of(x: Any) -> Any:
    """Return the placement of an array: its device, or its sharding over several devices."""
    if isinstance(x, ArrayImpl):
        placement = signature_of(x).placement
        if placement is not None:
            return placement
        if hasattr(x, "_buffer"):
            return backend().device_of(x._buffer)
    return default_device()


def _destination(placement: Any, x: Any) -> Any:
    """Convert the argument ``device`` of ``device_put`` to a device or sharding; a string names a platform.

    A memory is one of the devices of ``x``, the array or other leaf that is moved. That of a traced value stays as it
    is: the platform of the program decides.
    """
    if isinstance(placement, Space):
        if placement is Space.Any:
            return None
        if isinstance(x, Tracer):
            return placement
        at = device_of(x)
        return None if kind_of(at) == KINDS[placement] else in_space(at, placement)
    if isinstance(placement, str):
        return device("cuda" if placement == "gpu" else placement, 0)
    return destination(placement, "device_put")


def _put_leaf(x: Any, destination: Any, donate: bool, may_alias: bool | None) -> Any:
    """Apply ``device_put`` to the leaf ``x``, with the options ``donate`` and ``may_alias`` for this leaf."""
    try:
        array = x if isinstance(x, Array) else made(as_array(x))
    except OperandError as error:
        raise type(error)(f"device_put: {error}") from None
    if isinstance(destination, NamedSharding):
        try:
            check_divides(destination, array.shape)
        except ShardingError as error:
            raise type(error)(f"device_put: {error}") from None
    if not isinstance(array, ArrayImpl):
        return array if destination is None else put(device_put_p, array, destination)
    if destination is None:
        placement = device_of(array)
        if isinstance(placement, Device):
            with transfers.explicit():
                buffer_of(array, placement)  # transfers the array now, not at its first use
        return fresh(array) if may_alias is False and array is x else array
    if isinstance(destination, Device):
        backend().bound(destination)  # raises if the device does not exist
    out = committed(array, destination)
    if donate and array is x:  # a converted array is a temporary
        delete(array)
    return out


@api_boundary
def device_put(
    x: PyTree, device: PyTree = None, *, src: PyTree = None, donate: PyTree = False, may_alias: PyTree = None
) -> PyTree:
    """Commit a tree of arrays to a device, or to a sharding over several; programs and operations on them run there.

    Args:
      x: a tree of arrays, numbers or NumPy arrays.
      device: one of ``devices()``, a sharding, a ``Format``, a ``PartitionSpec`` for the mesh that
        ``set_mesh`` has set, the name of a platform, a ``memory.Space``, or a prefix tree of ``x`` with these as
        leaves. None leaves arrays on their device, or moves them from the host to the default device, uncommitted.
      src: ignored; an array knows its placement.
      donate: whether the memory of ``x`` may be reused; or a prefix tree of ``x`` of booleans.
      may_alias: False for results that remain valid if arrays of ``x`` are donated or deleted; or a prefix tree of
        booleans. Until then memory may be shared.

    Returns:
      A tree like ``x``. Its derivative is the identity; cotangents are moved back to the placement of the arrays.

    Raises:
      BackendError: the device does not exist (a RuntimeError).
      ShardingError: the sharding does not fit an array (a ValueError).
      IndivisibleError: the sharding does not divide an axis evenly (a ValueError).
      MeshContextError: a specification has no mesh, and no mesh is set (a RuntimeError).
      OperandError: a leaf is not an array (a TypeError).
      ArgumentError: ``donate`` or ``may_alias`` is no boolean and no prefix tree of booleans, or both are True for an
        array (a TypeError and ValueError).

    >>> from pullback import device_put, devices
    >>> device_put([1.0, 2], devices()[0])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    leaves, treedef = tree.flatten(x)
    placements = (
        [device] * len(leaves) if is_placement(device) else tree.broadcast_prefix(device, x, is_leaf=is_placement)
    )
    donated, aliases = _flags("donate", donate, x, len(leaves)), _flags("may_alias", may_alias, x, len(leaves))
    if any(map(operator.and_, map(bool, donated), map(bool, aliases))):
        raise ArgumentError("device_put: may_alias and donate cannot both be True: a donated array cannot be shared")
    destinations = map(_destination, placements, leaves)
    return tree.unflatten(treedef, list(map(_put_leaf, leaves, destinations, donated, aliases)))


def _flags(name: str, value: Any, x: Any, count: int) -> list[Any]:
    """Broadcast an option of ``device_put`` to the leaves of the tree ``x``; return a value for each leaf.

    Args:
      name: the name of the option, for error messages.
      value: the option: a boolean, None, or a prefix tree of these; otherwise an error is raised.
      x: the tree.
      count: the number of its leaves.
    """
    if value is None or type(value) is bool:
        return [value] * count
    try:
        found = tree.broadcast_prefix(value, x, is_leaf=lambda flag: flag is None)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"device_put: {name} must be a boolean, or a tree of booleans that is a prefix of x: {error}"
        ) from None
    for flag in found:
        if not (flag is None or isinstance(flag, (bool, np.bool_))):
            raise ArgumentError(f"device_put: {name} must be a boolean, or a tree of booleans, got {flag!r} in it")
    return found


def device_get(x: PyTree) -> PyTree:
    """Convert a tree of arrays to NumPy arrays, after waiting for them; random keys, which NumPy lacks, are unchanged.

    Args:
      x: a tree of arrays; other leaves are unchanged, and traced values too, which derivatives go through.

    Returns:
      A tree like ``x``.

    Raises:
      DeletedArrayError: an array was deleted (a RuntimeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import device_get
    >>> device_get({"a": jnp.ones(2)})
    {'a': array([1., 1.], dtype=float32)}
    """

    def get(leaf: Any) -> Any:
        kept = isinstance(leaf, Tracer) or not isinstance(leaf, Array) or dtypes.is_key(leaf.dtype)
        return leaf if kept else np.asarray(leaf)

    with transfers.explicit():
        return tree.tree_map(get, x)


def block_until_ready(x: T) -> T:
    """Wait until a tree of arrays has been computed, and return it; compiled programs run asynchronously.

    Args:
      x: a tree of arrays; other leaves are ready.

    Returns:
      The tree ``x`` itself.

    Raises:
      AllocationError: the program that computes an array ran out of memory (a MemoryError and RuntimeError).
      ExecutionError: the program failed otherwise (a RuntimeError).

    >>> from pullback import block_until_ready
    >>> block_until_ready(3.0)
    3.0
    """
    if type(x) is ArrayImpl:
        array: Any = x
        if is_on_device(array):
            backend().wait(array._buffer)
        else:
            array._value  # noqa: B018  (computes pending elements)
        return x
    leaves = tree.leaves(x)
    waiting = [leaf._buffer for leaf in leaves if is_on_device(leaf)]
    if waiting:
        wait = backend().wait
        for buffer in waiting:
            wait(buffer)
    if len(waiting) < len(leaves):
        for leaf in leaves:
            if is_on_host(leaf):
                leaf._value  # noqa: B018  (computes pending elements)
    return x


def copy_to_host_async(x: T) -> T:
    """Start to copy the arrays of a tree to the host; return the tree without waiting.

    Args:
      x: a tree of arrays. Of another leaf the method ``copy_to_host_async`` is called, if it has one.

    Returns:
      The tree ``x`` itself.

    >>> import numpy as np
    >>> import pullback.numpy as jnp
    >>> from pullback import copy_to_host_async
    >>> x = copy_to_host_async({"w": jnp.ones(2)})
    >>> np.asarray(x["w"])
    array([1., 1.], dtype=float32)
    """
    for leaf in tree.leaves(x):
        if isinstance(leaf, ArrayImpl):
            if is_on_device(leaf) and not isinstance(signature_of(leaf).placement, NamedSharding):
                backend().fetch_ahead(leaf._buffer)
        elif not isinstance(leaf, Tracer):
            getattr(leaf, "copy_to_host_async", bool)()
    return x
