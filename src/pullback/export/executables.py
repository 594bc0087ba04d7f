"""Compiled functions as bytes.

The bytes hold the program in StableHLO's portable form, and its executable. Where the compiler, the device and the CPU
are those that made the executable, it is loaded; elsewhere the program is compiled.
"""

from __future__ import annotations

import copy
import hashlib
import struct
from collections.abc import Sequence
from typing import Any

from pullback.backends.compiler import disk_cache, programs
from pullback.backends.devices.devices import Device, default_device
from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.errors import ArgumentError, ExportError
from pullback.export import exported as _exported
from pullback.transforms.autodiff.tracing import ShapeDtypeStruct
from pullback.transforms.jit.jit import jit
from pullback.transforms.jit.stages import Compiled, Lowered

_MARK = b"pullback executable 1\n"
_SIZE = struct.Struct("<Q")
_DIGEST = hashlib.sha256().digest_size


def serialize(compiled: Compiled) -> tuple[bytes, PyTree, PyTree]:
    """Serialise a compiled function.

    Args:
      compiled: the result of ``jit(f).lower(...).compile()``.

    Returns:
      The bytes, and the structures of the arguments and of the results, for :func:`deserialize_and_load`.

    Raises:
      UnsupportedExportError: the program calls Python functions, or uses references (a NotImplementedError).
      ArgumentError: ``compiled`` is no compiled function (a TypeError and a ValueError).

    >>> from pullback import jit
    >>> from pullback.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = jit(lambda x: 2 * x).lower(1.0).compile()
    >>> print(deserialize_and_load(*serialize(compiled))(3.0))
    6.0
    """
    if not isinstance(compiled, Compiled):
        raise ArgumentError(f"serialize takes a compiled function, jit(f).lower(...).compile(), got {compiled!r}")
    device = compiled.program.device
    exported = copy.copy(_exported.exported_of(compiled.lowered.traced, (device.target,)))
    exported.in_tree = tree.structure(((0,) * len(exported.in_avals), {}))
    exported.out_tree = tree.structure([0] * len(exported.out_avals))
    data = bytes(exported.serialize())
    again = _lowered(_exported.deserialize(data), compiled.in_tree, compiled.out_tree, device)
    content = b"".join(
        [disk_cache.environment(device), _SIZE.pack(len(data)), data, programs.compiled_bytes(again.program)]
    )
    return _MARK + hashlib.sha256(content).digest() + content, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTree,
    out_tree: PyTree,
    backend: Any = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """Load a compiled function from bytes of :func:`serialize`.

    Such bytes can run any code: load only those that you trust.

    Args:
      serialized: the bytes.
      in_tree, out_tree: the structures of the arguments and of the results.
      backend: without effect: the function runs on the platform for which it was compiled.
      execution_devices: a list with the device on which it is to run; by default the default device.

    Returns:
      The compiled function.

    Raises:
      ExportError: the bytes are damaged, or of another kind (a ValueError and TypeError).
      ArgumentError: the trees do not fit, or there are several devices (a TypeError and a ValueError).

    >>> from pullback import jit
    >>> from pullback.experimental.serialize_executable import deserialize_and_load, serialize
    >>> data, in_tree, out_tree = serialize(jit(lambda x, y: {"sum": x + y}).lower(1.0, 2.0).compile())
    >>> deserialize_and_load(data, in_tree, out_tree)(1.0, 2.0)
    {'sum': Array(3., dtype=float32, weak_type=True)}
    """
    if not isinstance(serialized, bytes) or not serialized.startswith(_MARK):
        raise ExportError("deserialize_and_load takes the bytes that serialize returned")
    devices = [default_device()] if execution_devices is None else list(execution_devices)
    if len(devices) != 1:
        raise ArgumentError(f"deserialize_and_load: execution_devices must hold one device, got {len(devices)}")
    begin = len(_MARK) + _DIGEST
    if hashlib.sha256(serialized[begin:]).digest() != serialized[len(_MARK) : begin]:
        raise ExportError("the bytes of a compiled function are damaged: their checksum does not fit")
    environment, begin = serialized[begin : begin + _DIGEST], begin + _DIGEST
    (size,) = _SIZE.unpack_from(serialized, begin)
    begin += _SIZE.size
    lowered = _lowered(_exported.deserialize(serialized[begin : begin + size]), in_tree, out_tree, devices[0])
    if environment != disk_cache.environment(devices[0]):
        return lowered.compile()
    found = programs.adopt(lowered.program, serialized[begin + size :])
    compiled = lowered.compile()
    del found  # which kept it in memory until now
    return compiled


def _lowered(exported: Any, in_tree: Any, out_tree: Any, device: Any) -> Lowered:
    """Lower the call of an exported function of flat arguments, with the structures of the original function."""
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(exported.in_avals), len(exported.out_avals)):
        raise ArgumentError(
            f"deserialize_and_load: the function has {len(exported.in_avals)} arguments and {len(exported.out_avals)} "
            f"results, but the trees have {in_tree.num_leaves} and {out_tree.num_leaves} leaves"
        )

    def call(*args: Any, **kwargs: Any) -> Any:
        return tree.unflatten(out_tree, exported.call(*tree.leaves((args, kwargs))))

    call.__name__ = exported.fun_name
    args, kwargs = tree.unflatten(
        in_tree, [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in exported.in_avals]
    )
    return jit(call, device=device).lower(*args, **kwargs)
