"""The file format of exported functions: magic bytes, version, checksum, a description in JSON, and programs.

::

    b"PULLBACK.EXPORT" | version: 1 byte | length of the rest: 8 bytes | SHA-256 of the rest
    rest: length of the description: 8 bytes | description in JSON | programs, concatenated

The description has one entry for the function and each of its derivatives, with the length of its program. Numbers are
little-endian. The programs are StableHLO's portable artifacts, which have a version of their own.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import AbstractMesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, names_in
from pullback.core import dtypes
from pullback.core.dims import SymbolicScope, is_symbolic, parse_size
from pullback.core.errors import ExportError
from pullback.core.types import ShapedArray
from pullback.export.checks import DisabledSafetyCheck
from pullback.export.structures import structure_from_data, structure_to_data

Exported = Any
"""A :class:`pullback.export.exported.Exported`; its module imports this one."""
MARK = b"PULLBACK.EXPORT"
VERSION = 2
"""The newest version that this release reads. Functions for one device are written as version 1, without shardings, so
that older releases can read them."""
_HEAD = len(MARK) + 1 + 8 + 32


def pack(chain: list[Exported]) -> bytearray:
    """Serialise a chain: a function, its derivative, the derivative of that derivative, and so on."""
    description = json.dumps([_describe(exported) for exported in chain]).encode()
    programs = b"".join(exported.mlir_module_serialized for exported in chain)
    rest = len(description).to_bytes(8, "little") + description + programs
    version = VERSION if any(exported.nr_devices > 1 for exported in chain) else 1
    head = MARK + bytes([version]) + len(rest).to_bytes(8, "little") + hashlib.sha256(rest).digest()
    return bytearray(head + rest)


def _describe(exported: Exported) -> dict[str, Any]:
    spread = {
        "devices": exported.nr_devices,
        "in_shardings": list(map(_sharding_to_data, exported.in_shardings)),
        "out_shardings": list(map(_sharding_to_data, exported.out_shardings)),
    }
    return {
        **(spread if exported.nr_devices > 1 or any((*exported.in_shardings, *exported.out_shardings)) else {}),
        "name": exported.fun_name,
        "in_tree": structure_to_data(exported.in_tree),
        "out_tree": structure_to_data(exported.out_tree),
        "in_avals": list(map(_aval_to_data, exported.in_avals)),
        "out_avals": list(map(_aval_to_data, exported.out_avals)),
        "constraints": next((n.scope.constraints for a in exported.in_avals for n in a.shape if is_symbolic(n)), ()),
        "platforms": exported.platforms,
        "entries": exported.entries,
        "kept": exported.module_kept_var_idx,
        "calling_convention": exported.calling_convention_version,
        "disabled_checks": list(map(str, exported.disabled_safety_checks)),
        "length": len(exported.mlir_module_serialized),
    }


def _aval_to_data(aval: ShapedArray) -> list[Any]:
    sizes = [str(n) if is_symbolic(n) else n for n in aval.shape]
    return [dtypes.dtype_name(aval.dtype), sizes, aval.weak_type]


def _sharding_to_data(sharding: NamedSharding | None) -> Any:
    """Convert a sharding to lists for serialization; None stays None.

    The first list has the names and sizes of the mesh's axes. The second has for each array axis the names of the mesh
    axes that shard it, or True if it is unconstrained.
    """
    if sharding is None:
        return None
    for name in sharding.mesh.axis_names:
        if not isinstance(name, str):
            raise ExportError(f"serialize: the axes of meshes must have strings for names, but one has {name!r}")
    entries = [True if entry is UNCONSTRAINED else list(names_in(entry)) for entry in sharding.spec.partitions]
    return [sharding.mesh.shape_tuple, entries]


def _sharding_from_data(data: Any) -> NamedSharding | None:
    if data is None:
        return None
    axes, entries = data
    mesh = AbstractMesh([size for _, size in axes], [name for name, _ in axes])
    return NamedSharding(mesh, PartitionSpec(*[UNCONSTRAINED if entry is True else entry for entry in entries]))


def _shardings_from_data(data: Any, avals: tuple[ShapedArray, ...]) -> tuple[NamedSharding | None, ...]:
    return (None,) * len(avals) if data is None else tuple(map(_sharding_from_data, data))


def _avals_from_data(entries: list[list[Any]], scope: SymbolicScope) -> tuple[ShapedArray, ...]:
    return tuple(
        ShapedArray(tuple(parse_size(n, scope) if isinstance(n, str) else n for n in shape), _dtype(name), weak_type)
        for name, shape, weak_type in entries
    )


def _dtype(name: str) -> Any:
    for special in (dtypes.float0, *dtypes.KEY_DTYPES.values()):
        if dtypes.dtype_name(special) == name:
            return special
    try:
        return np.dtype(name if name in np.sctypeDict else getattr(dtypes, name))
    except (AttributeError, TypeError) as error:
        raise ExportError(f"deserialize: the dtype {name!r} is unknown to this release") from error


def unpack(blob: bytes | bytearray) -> list[dict[str, Any]]:
    """Read the attributes of a function and of its derivatives from bytes.

    Raises:
      ExportError: the bytes are not from :func:`pack`, or from a newer release (a ValueError).
    """
    rest = _checked(blob)
    length = int.from_bytes(rest[:8], "little")
    at = 8 + length
    chain = []
    for entry in json.loads(rest[8:at]):
        scope = SymbolicScope(entry["constraints"])
        in_avals, out_avals = (_avals_from_data(entry[name], scope) for name in ("in_avals", "out_avals"))
        chain.append(
            {
                "fun_name": entry["name"],
                "in_tree": structure_from_data(entry["in_tree"]),
                "in_avals": in_avals,
                "out_tree": structure_from_data(entry["out_tree"]),
                "out_avals": out_avals,
                "nr_devices": entry.get("devices", 1),
                "in_shardings": _shardings_from_data(entry.get("in_shardings"), in_avals),
                "out_shardings": _shardings_from_data(entry.get("out_shardings"), out_avals),
                "platforms": tuple(entry["platforms"]),
                "entries": tuple(entry["entries"]),
                "module_kept_var_idx": tuple(entry["kept"]),
                "calling_convention_version": entry["calling_convention"],
                "disabled_safety_checks": tuple(map(DisabledSafetyCheck, entry["disabled_checks"])),
                "mlir_module_serialized": rest[at : at + entry["length"]],
            }
        )
        at += entry["length"]
    return chain


def _checked(blob: Any) -> bytes:
    """Check the header and the checksum of a serialized function; return the bytes after the header."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise ExportError(f"deserialize: expected bytes, got {type(blob).__name__}")
    data = bytes(blob)
    if not data.startswith(MARK):
        raise ExportError(
            f"deserialize: the bytes are no function that was exported by Pullback: they begin with {data[:16]!r}"
        )
    version = data[len(MARK)] if len(data) > len(MARK) else VERSION
    if version > VERSION:
        raise ExportError(
            f"deserialize: the bytes have version {version} of the format, but this release reads those up to "
            f"{VERSION}: install a newer release"
        )
    at = len(MARK) + 1
    length = int.from_bytes(data[at : at + 8], "little")
    if len(data) < _HEAD or len(data) < _HEAD + length:
        raise ExportError(f"deserialize: the bytes are cut off: there are only {len(data)}")
    rest = data[_HEAD : _HEAD + length]
    if len(data) > _HEAD + length or hashlib.sha256(rest).digest() != data[at + 8 : _HEAD]:
        raise ExportError("deserialize: the bytes are damaged: the checksum does not fit")
    return rest
