"""Arrays between host and devices: ``device_put``, ``device_get``, ``block_until_ready``."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backends import transfers
from pullback.backends.backend import backend
from pullback.backends.buffers import buffer_of, from_buffer
from pullback.backends.devices import Device, SingleDeviceSharding, default_device, device
from pullback.core import dtypes, tree
from pullback.core.array import Array, ArrayImpl, DeviceArray, as_array, delete, fresh, shared, signature, signature_of
from pullback.core.errors import BackendError, OperandError
from pullback.transforms.functions.api_boundary import api_boundary


def device_of(x: Any) -> Device:
    """The device on which an array is."""
    if isinstance(x, ArrayImpl):
        chosen = signature_of(x).device
        if chosen is not None:
            return chosen  # type: ignore[no-any-return]
        if hasattr(x, "_buffer"):
            return backend().device_of(x._buffer)  # type: ignore[no-any-return]
    return default_device()


def _destination(place: Any) -> Device | None:
    if place is None or isinstance(place, Device):
        return place
    if isinstance(place, SingleDeviceSharding):
        return next(iter(place.device_set))
    if isinstance(place, str):
        return device("cuda" if place == "gpu" else place, 0)
    raise BackendError(f"expected a device, one of devices(), or a SingleDeviceSharding, got {place!r}")


def _put_leaf(x: Any, destination: Device | None, donate: bool, may_alias: bool | None) -> Any:
    try:
        array = as_array(x)
    except OperandError as error:
        raise type(error)(f"device_put: {error}") from None
    if not isinstance(array, ArrayImpl):
        return array  # traced: where it will be is decided for the whole program
    with transfers.asked_for():
        buffer = buffer_of(array, device_of(array) if destination is None else destination)
    if destination is None:
        return fresh(array) if may_alias is False and array is x else array
    aval = array.aval
    kind = signature(aval.shape, aval.dtype, bool(aval.weak_type), destination)
    out = from_buffer(buffer, kind)
    backend().bound(destination)
    if array is x:
        if donate:
            delete(array)
        else:
            shared(out._buffer)
    return out


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, (Device, SingleDeviceSharding, str))


@api_boundary
def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: bool | None = None
) -> Any:
    """A tree of arrays on a device, where programs that are given them will run.

    Args:
      x: a tree of arrays, numbers or NumPy arrays.
      device: one of ``devices()``, a ``SingleDeviceSharding``, the name of a platform, or a tree of such that is a
        prefix of ``x``; None for where the arrays are, or else the default device, with no say in where programs run.
      src: ignored; an array knows where it is.
      donate: whether the memory of ``x`` may be given up.
      may_alias: False for results that are other arrays than those of ``x``, which donating or deleting these leaves
        alone. Memory is shared all the same while nobody takes it.

    Returns:
      A tree like ``x``. Traced values are returned as they are.

    Raises:
      BackendError: there is no such device (a RuntimeError).
      OperandError: a leaf is not an array (a TypeError).

    >>> import pullback
    >>> device_put([1.0, 2], pullback.devices()[0])
    [Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True)]
    """
    leaves, treedef = tree.flatten(x)
    places = [device] * len(leaves) if _is_place(device) else tree.broadcast_prefix(device, x, is_leaf=_is_place)
    outs = [_put_leaf(leaf, _destination(p), donate, may_alias) for leaf, p in zip(leaves, places, strict=True)]
    return tree.unflatten(treedef, outs)


def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy arrays, once they are computed; random keys, which NumPy lacks, stay as they are.

    >>> import pullback.numpy as pnp
    >>> device_get({"a": pnp.ones(2)})
    {'a': array([1., 1.], dtype=float32)}
    """

    def get(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, Array) and leaf.dtype != dtypes.key_dtype else leaf

    with transfers.asked_for():
        return tree.tree_map(get, x)


def block_until_ready(x: Any) -> Any:
    """A tree of arrays, once they are computed: compiled programs run while Python goes on.

    Raises:
      AllocationError: a program that was to compute them ran out of memory (a MemoryError and RuntimeError).
      ExecutionError: it failed otherwise (a RuntimeError).

    >>> block_until_ready(3.0)
    3.0
    """
    waiting = [leaf._buffer for leaf in tree.leaves(x) if type(leaf) is DeviceArray]
    if waiting:
        wait = backend().wait
        for buffer in waiting:
            wait(buffer)
    return x


def copy_to_host_async(x: Any) -> Any:
    """A tree of arrays, whose elements are on their way to the host."""
    for leaf in tree.leaves(x):
        if type(leaf) is DeviceArray:
            backend().fetch_ahead(leaf._buffer)
    return x
