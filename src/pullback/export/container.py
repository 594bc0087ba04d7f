"""The file format of exported functions: magic bytes, version, checksum, a description in JSON, and programs.

::

    b"PULLBACK.EXPORT" | version: 1 byte | length of the rest: 8 bytes | SHA-256 of all bytes but these 32
    rest: length of the description: 8 bytes | description in JSON | programs, concatenated

In versions 1 and 2, which are still read, the checksum is that of the rest.

The description has one entry for the function and each of its derivatives, with the length of its program. Numbers are
little-endian. The programs are StableHLO's portable artifacts, which have a version of their own.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import AbstractMesh, AxisType
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, names_in
from pullback.core import dtypes
from pullback.core.dims import SymbolicScope, is_symbolic, parse_size
from pullback.core.errors import ExportError
from pullback.core.types import ShapedArray
from pullback.export.checks import DisabledSafetyCheck
from pullback.export.descriptions import calling_convention, damaged, list_of, number, of_type
from pullback.export.structures import structure_from_data, structure_to_data

Exported = Any
"""A :class:`pullback.export.exported.Exported`; its module imports this one."""
MARK = b"PULLBACK.EXPORT"
VERSION = 3
"""The version that is written, and the newest that is read. In versions 1 and 2 the checksum was that of the rest."""
_AT_SUM = len(MARK) + 1 + 8
_HEAD = _AT_SUM + 32


def pack(chain: list[Exported]) -> bytearray:
    """Serialise a chain: a function, its derivative, the derivative of that derivative, and so on."""
    description = json.dumps([_describe(exported) for exported in chain]).encode()
    programs = b"".join(exported.mlir_module_serialized for exported in chain)
    rest = len(description).to_bytes(8, "little") + description + programs
    return bytearray(sealed(rest))


def sealed(rest: bytes, version: int = VERSION) -> bytes:
    """Put the header and the checksum of a version of the format before the rest of a file."""
    head = MARK + bytes([version]) + len(rest).to_bytes(8, "little")
    return head + _checksum(head, rest) + rest


def _checksum(head: bytes, rest: bytes) -> bytes:
    """Return the checksum of a file, whose header without checksum is ``head``."""
    return hashlib.sha256(rest if head[len(MARK)] < 3 else head + rest).digest()


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
        **_explicit_types(exported),
        "constraints": next((n.scope.constraints for a in exported.in_avals for n in a.shape if is_symbolic(n)), ()),
        "platforms": exported.platforms,
        "entries": exported.entries,
        "kept": exported.module_kept_var_idx,
        "calling_convention": exported.calling_convention_version,
        "disabled_checks": list(map(str, exported.disabled_safety_checks)),
        "length": len(exported.mlir_module_serialized),
    }


def _explicit_types(exported: Exported) -> dict[str, Any]:
    """Return the shardings in the types of arguments and results, by the side; nothing if there are none."""
    sides = {"in_explicit": exported.in_avals, "out_explicit": exported.out_avals}
    found = {side: list(map(_explicit_to_data, avals)) for side, avals in sides.items()}
    return {side: types for side, types in found.items() if any(types)}


def _explicit_to_data(aval: ShapedArray) -> Any:
    """Convert the sharding in a type: that of an array, the types of the mesh's axes, and sums that are not made."""
    if aval.explicit is None:
        return None
    spec, mesh = aval.explicit.spec, aval.explicit.mesh
    sums = sorted(spec.unreduced), sorted(spec.reduced)
    return [_sharding_to_data(aval.explicit), [kind.name for kind in mesh.axis_types], *sums]


def _with_explicit_types(avals: tuple[ShapedArray, ...], data: Any) -> tuple[ShapedArray, ...]:
    """Return the types with the shardings that :func:`_explicit_types` wrote; None for none."""
    if data is None:
        return avals
    found = []
    for aval, entry in zip(avals, of_type(list, data, "explicit types"), strict=True):
        if entry is None:
            found.append(aval)
            continue
        if len(of_type(list, entry, "an explicit type")) != 4:
            raise damaged("an explicit type must have four parts")
        plain = _sharding_from_data(entry[0])
        if plain is None:
            raise damaged("an explicit type has no sharding")
        kinds = [getattr(AxisType, kind) for kind in list_of(str, entry[1], "the types of axes")]
        mesh = AbstractMesh(plain.mesh.axis_sizes, plain.mesh.axis_names, kinds)
        sums = [frozenset(list_of(str, names, "the axes of sums")) for names in entry[2:]]
        spec = PartitionSpec(*plain.spec.partitions, unreduced=sums[0], reduced=sums[1])
        found.append(aval.update(sharding=NamedSharding(mesh, spec)))
    return tuple(found)


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
            raise ExportError(f"serialize: the names of mesh axes must be strings, but one is {name!r}")
    entries = [True if entry is UNCONSTRAINED else list(names_in(entry)) for entry in sharding.spec.partitions]
    return [sharding.mesh.shape_tuple, entries]


def _sharding_from_data(data: Any) -> NamedSharding | None:
    if data is None:
        return None
    axes, entries = _pair(data, "a sharding")
    named = [_pair(axis, "an axis of a mesh") for axis in of_type(list, axes, "the axes of a mesh")]
    mesh = AbstractMesh([number(n, "a size", 1) for _, n in named], [of_type(str, name, "a name") for name, _ in named])
    parts = [
        UNCONSTRAINED if entry is True else tuple(list_of(str, entry, "a partition"))
        for entry in of_type(list, entries, "the partitions")
    ]
    return NamedSharding(mesh, PartitionSpec(*parts))


def _pair(data: Any, what: str) -> tuple[Any, Any]:
    if len(of_type(list, data, what)) != 2:
        raise damaged(f"{what} must have two parts")
    return data[0], data[1]


def _shardings_from_data(data: Any, avals: tuple[ShapedArray, ...]) -> tuple[NamedSharding | None, ...]:
    return (None,) * len(avals) if data is None else tuple(map(_sharding_from_data, of_type(list, data, "shardings")))


def _avals_from_data(entries: Any, scope: SymbolicScope) -> tuple[ShapedArray, ...]:
    found = []
    for entry in list_of(list, entries, "types"):
        if len(entry) != 3:
            raise damaged("a type must have three parts")
        name, shape, weak_type = entry
        sizes = [parse_size(n, scope) if isinstance(n, str) else n for n in of_type(list, shape, "a shape")]
        found.append(ShapedArray(tuple(sizes), _dtype(of_type(str, name, "a dtype")), of_type(bool, weak_type, "weak")))
    return tuple(found)


_DTYPES = {dtypes.dtype_name(dtype): dtype for dtype in (dtypes.float0, *dtypes.KEY_DTYPES.values())}


def _dtype(name: str) -> Any:
    found = _DTYPES.get(name)
    if found is None and name not in dtypes.NUMBERS:
        raise ExportError(f"deserialize: the dtype {name!r} is unknown to this release")
    return np.dtype(getattr(dtypes, name, name)) if found is None else found


def unpack(blob: bytes | bytearray) -> list[dict[str, Any]]:
    """Read the attributes of a function and of its derivatives from bytes.

    Raises:
      ExportError: the bytes are not from :func:`pack`, or from a newer release (a ValueError).
    """
    rest = _checked(blob)
    at = 8 + int.from_bytes(rest[:8], "little")
    chain = []
    for entry in list_of(dict, json.loads(rest[8:at]), "the description"):
        end = at + number(entry["length"], "the length of a program", 0, len(rest) - at)
        chain.append(_attributes(entry, rest[at:end]))
        at = end
    if at != len(rest):
        raise damaged(f"{len(rest) - at} bytes belong to no function")
    return chain


def _attributes(entry: dict[str, Any], program: bytes) -> dict[str, Any]:
    """Read the attributes of a function from its entry in the description."""
    name = of_type(str, entry["name"], "a name")
    version = calling_convention(entry["calling_convention"], name)
    scope = SymbolicScope(list_of(str, entry["constraints"], "the constraints"))
    in_avals, out_avals = (
        _with_explicit_types(_avals_from_data(entry[f"{side}_avals"], scope), entry.get(f"{side}_explicit"))
        for side in ("in", "out")
    )
    return {
        "fun_name": name,
        "in_tree": structure_from_data(entry["in_tree"]),
        "in_avals": in_avals,
        "out_tree": structure_from_data(entry["out_tree"]),
        "out_avals": out_avals,
        "nr_devices": entry.get("devices", 1),
        "in_shardings": _shardings_from_data(entry.get("in_shardings"), in_avals),
        "out_shardings": _shardings_from_data(entry.get("out_shardings"), out_avals),
        "platforms": tuple(list_of(str, entry["platforms"], "the platforms")),
        "entries": tuple(list_of(str, entry["entries"], "the entries")),
        "module_kept_var_idx": tuple(list_of(int, entry["kept"], "the arguments that are used")),
        "calling_convention_version": version,
        "disabled_safety_checks": tuple(
            map(DisabledSafetyCheck, list_of(str, entry["disabled_checks"], "the disabled checks"))
        ),
        "mlir_module_serialized": program,
    }


def _checked(blob: Any) -> bytes:
    """Check the header and the checksum of a serialized function; return the bytes after the header."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise ExportError(f"deserialize: expected bytes, got {type(blob).__name__}")
    data = bytes(blob)
    if not data.startswith(MARK):
        raise ExportError(
            f"deserialize: the bytes are not a function exported by Pullback: they begin with {data[:16]!r}"
        )
    if len(data) < _HEAD:
        raise ExportError(f"deserialize: the bytes are truncated: there are only {len(data)}")
    version = data[len(MARK)]
    if not 1 <= version <= VERSION:
        raise ExportError(
            f"deserialize: the bytes have version {version} of the format, but this release reads versions 1 to "
            f"{VERSION}: install a newer release"
        )
    length = int.from_bytes(data[len(MARK) + 1 : _AT_SUM], "little")
    if len(data) < _HEAD + length:
        raise ExportError(f"deserialize: the bytes are truncated: there are only {len(data)}")
    rest = data[_HEAD:]
    if len(rest) > length or _checksum(data[:_AT_SUM], rest) != data[_AT_SUM:_HEAD]:
        raise ExportError("deserialize: the bytes are damaged: the checksum does not match")
    return rest
