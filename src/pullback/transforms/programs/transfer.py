"""Arrays between host and devices: ``device_put``, ``device_get``, ``block_until_ready``."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

import numpy as np

from pullback.backends.compiler.backend import backend
from pullback.backends.devices import transfers
from pullback.backends.devices.buffers import buffer_of
from pullback.backends.devices.devices import Device, default_device, device
from pullback.backends.devices.shardings import NamedSharding
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayImpl, as_array, delete, fresh, is_on_device, signature_of
from pullback.core.errors import ArgumentError, OperandError, ShardingError
from pullback.primitives.operands import made
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.placement import (
    check_divides,
    committed,
    destination,
    device_put_p,
    is_placement,
    put,
)

T = TypeVar("T")


def device_of(x: Any) -> Any:
    """The device on which an array is, or its sharding over several."""
    if isinstance(x, ArrayImpl):
        chosen = signature_of(x).placement
        if chosen is not None:
            return chosen
        if hasattr(x, "_buffer"):
            return backend().device_of(x._buffer)
    return default_device()


def _destination(placement: Any) -> Any:
    if isinstance(placement, str):
        return device("cuda" if placement == "gpu" else placement, 0)
    return destination(placement, "device_put")


def _put_leaf(x: Any, destination: Any, donate: bool, may_alias: bool | None) -> Any:
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
                buffer_of(array, placement)
        return fresh(array) if may_alias is False and array is x else array
    if isinstance(destination, Device):
        backend().bound(destination)
    out = committed(array, destination)
    if donate and array is x:
        delete(array)
    return out


@api_boundary
def device_put(
    x: PyTree, device: PyTree = None, *, src: PyTree = None, donate: PyTree = False, may_alias: PyTree = None
) -> PyTree:
    """A tree of arrays on a device, or over several, where programs that are given them will run, and operations too.

    Args:
      x: a tree of arrays, numbers or NumPy arrays.
      device: one of ``devices()``, a sharding, a ``Format``, a ``PartitionSpec`` for the mesh that
        ``set_mesh`` has set, the name of a platform, or a tree of such that is a prefix of ``x``; None for where the
        arrays are, or else the default device, with no say in where programs run.
      src: ignored; an array knows where it is.
      donate: whether the memory of ``x`` may be given up; or a tree of booleans that is a prefix of ``x``.
      may_alias: False for results that are other arrays than those of ``x``, which donating or deleting these leaves
        alone; or such a tree. Memory is shared all the same while nobody takes it.

    Returns:
      A tree like ``x``. It is differentiated as the identity; cotangents go back to where the arrays were.

    Raises:
      BackendError: there is no such device (a RuntimeError).
      ShardingError: the sharding does not fit an array (a ValueError).
      MeshContextError: a specification has no mesh, and none is set (a RuntimeError).
      OperandError: a leaf is not an array (a TypeError).
      ArgumentError: ``donate`` or ``may_alias`` is no boolean and no prefix of ``x`` with such, or both are True
        for an array (a TypeError and ValueError).

    >>> import pullback
    >>> device_put([1.0, 2], pullback.devices()[0])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    leaves, treedef = tree.flatten(x)
    placements = (
        [device] * len(leaves) if is_placement(device) else tree.broadcast_prefix(device, x, is_leaf=is_placement)
    )
    given_up, aliases = _flags("donate", donate, x, len(leaves)), _flags("may_alias", may_alias, x, len(leaves))
    if any(map(operator.and_, map(bool, given_up), map(bool, aliases))):
        raise ArgumentError("device_put: may_alias and donate cannot both be True: what is donated is not shared")
    destinations = map(_destination, placements)
    return tree.unflatten(treedef, list(map(_put_leaf, leaves, destinations, given_up, aliases)))


def _flags(name: str, given: Any, x: Any, count: int) -> list[Any]:
    """An option of ``device_put`` for each leaf of ``x``: one boolean for all, or a tree of them; None where it may."""
    if given is None or type(given) is bool:
        return [given] * count
    try:
        found = tree.broadcast_prefix(given, x, is_leaf=lambda flag: flag is None)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"device_put: {name} must be a boolean, or a tree of booleans that is a prefix of x: {error}"
        ) from None
    for flag in found:
        if not (flag is None or isinstance(flag, (bool, np.bool_))):
            raise ArgumentError(f"device_put: {name} must be a boolean, or a tree of booleans, got {flag!r} in it")
    return found


def device_get(x: PyTree) -> PyTree:
    """A tree of arrays as NumPy arrays, once they are computed; random keys, which NumPy lacks, stay as they are.

    >>> import pullback.numpy as pnp
    >>> device_get({"a": pnp.ones(2)})
    {'a': array([1., 1.], dtype=float32)}
    """

    def get(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, Array) and not dtypes.is_key(leaf.dtype) else leaf

    with transfers.explicit():
        return tree.tree_map(get, x)


def block_until_ready(x: T) -> T:
    """A tree of arrays, once they are computed: compiled programs run while Python goes on.

    Raises:
      AllocationError: a program that was to compute them ran out of memory (a MemoryError and RuntimeError).
      ExecutionError: it failed otherwise (a RuntimeError).

    >>> block_until_ready(3.0)
    3.0
    """
    if type(x) is ArrayImpl:
        array: Any = x
        if is_on_device(array):
            backend().wait(array._buffer)
        return x
    waiting = [leaf._buffer for leaf in tree.leaves(x) if is_on_device(leaf)]
    if waiting:
        wait = backend().wait
        for buffer in waiting:
            wait(buffer)
    return x


def copy_to_host_async(x: T) -> T:
    """A tree of arrays, whose elements are on their way to the host."""
    for leaf in tree.leaves(x):
        if is_on_device(leaf) and not isinstance(signature_of(leaf).placement, NamedSharding):
            backend().fetch_ahead(leaf._buffer)
    return x
