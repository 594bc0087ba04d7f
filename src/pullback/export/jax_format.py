"""Reading and writing of exported functions in the format of ``jax.export``."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import AbstractMesh
from pullback.backends.devices.shardings import UNCONSTRAINED, NamedSharding, PartitionSpec, names_in
from pullback.core import dtypes
from pullback.core.dims import SymbolicScope, parse_size
from pullback.core.errors import ArgumentError, ExportError
from pullback.core.types import ShapedArray
from pullback.export import jax_tables
from pullback.export.checks import DisabledSafetyCheck
from pullback.export.descriptions import calling_convention
from pullback.export.structures import fields_in_json, namedtuple_called, structure_from_data, structure_to_data

Exported = Any
"""A :class:`pullback.export.exported.Exported`; its module imports this one."""
_WRITTEN = 3
"""The version that is written, JAX's before 0.12: its older releases refuse others."""

_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bfloat16", "int4", "uint4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn",
)  # fmt: skip
"""The dtypes by their numbers in files; numbers from 27 on are random keys."""
_NODES = ("leaf", "none", "tuple", "list", "dict", "node")
"""The kinds of pytree nodes by their numbers in files."""
_PLATFORM, _CUSTOM_CALL = 0, 1
_DEVICE_MEMORY, _AUTO = 1, 1


def is_jax(data: bytes) -> bool:
    """Whether bytes may be in JAX's format: they begin with the position of the root, within bounds."""
    return len(data) >= 16 and 4 <= int.from_bytes(data[:4], "little") <= len(data) - 4


# Reading -------------------------------------------------------------------------------------------------------------


def unpack(data: bytes) -> list[dict[str, Any]]:
    """Read the attributes of a function, of its derivative, of its second derivative, ..., from bytes in JAX's format.

    Raises:
      ExportError: the bytes are in another format, are damaged, or use an unsupported feature (a ValueError).
    """
    fields: dict[str, Any] | None = jax_tables.read(data)
    chain = []
    while fields is not None:
        chain.append(_attributes(fields))
        fields = fields["vjp"]
    return chain


def _attributes(fields: dict[str, Any]) -> dict[str, Any]:
    name = fields["name"]
    version = calling_convention(fields["calling_convention"], name)
    if fields["ordered_effects"]:
        effects = ", ".join(effect["name"] for effect in fields["ordered_effects"])
        raise ExportError(f"deserialize: {name} has ordered effects, which are not supported: {effects}")
    scope = SymbolicScope(())
    unique = [_aval(entry, scope, name) for entry in fields["unique_avals"]]
    meshes = [_mesh(entry) for entry in fields["unique_meshes"]]
    spread = [_sharding(entry, meshes) for entry in fields["unique_shardings"]]
    in_avals, out_avals = (
        _looked_up(unique, fields[f"{side}_aval_numbers"])
        or tuple(_aval(e, scope, name) for e in fields[f"{side}_avals"])
        for side in ("in", "out")
    )
    in_tree, out_tree = (structure_from_data(_tree(fields[f"{side}_tree"])) for side in ("in", "out"))
    return {
        "fun_name": name,
        "in_tree": in_tree,
        "in_avals": in_avals,
        "out_tree": out_tree,
        "out_avals": out_avals,
        "nr_devices": fields["devices"] or fields["devices_short"] or 1,
        "in_shardings": _shardings(fields, "in", meshes, spread, len(in_avals)),
        "out_shardings": _shardings(fields, "out", meshes, spread, len(out_avals)),
        "platforms": tuple(fields["platforms"]),
        "entries": ("main",) * len(fields["platforms"]),
        "module_kept_var_idx": tuple(fields["kept"]),
        "calling_convention_version": version,
        "disabled_safety_checks": tuple(_check(entry) for entry in fields["checks"]),
        "mlir_module_serialized": fields["program"],
    }


def _looked_up(table: list[Any], numbers: list[int]) -> tuple[Any, ...]:
    if any(i >= len(table) for i in numbers):
        raise ExportError("deserialize: a type refers to a missing number: the bytes are damaged")
    return tuple(table[i] for i in numbers)


def _aval(fields: dict[str, Any], scope: SymbolicScope, name: str) -> ShapedArray:
    number = fields["dtype"]
    if fields["kind"] or not 0 <= number < len(_DTYPES):
        what = "random keys" if number in (27, 28, 29) else f"the dtype number {number}"
        raise ExportError(
            f"deserialize: {name} takes or returns {what}, which cannot be read from a file written by JAX. Take "
            f"and return keys as integers, jax.random.key_data(keys)."
        )
    dtype = (
        dtypes.float0 if _DTYPES[number] == "float0" else np.dtype(getattr(dtypes, _DTYPES[number], _DTYPES[number]))
    )
    try:
        sizes = [parse_size(text, scope) for text in fields["shape"]]
    except ArgumentError as error:
        raise ExportError(f"deserialize: a shape of {name}: {error}") from None
    return ShapedArray(tuple(sizes), dtype, False)


def _tree(fields: dict[str, Any] | None) -> Any:
    """Convert a tree structure from JAX's format to nested lists, the form of Pullback's own format.

    Raise ExportError if ``fields`` is None, or if the tree structure is damaged.
    """
    if fields is None or not 0 <= fields["kind"] < len(_NODES):
        raise ExportError("deserialize: a tree is missing, or of an unknown kind: the bytes are damaged")
    kind, children = _NODES[fields["kind"]], [_tree(child) for child in fields["children"]]
    if kind in ("leaf", "none"):
        return [kind]
    if kind in ("tuple", "list"):
        return [kind, children]
    if kind == "dict":
        if len(fields["names"]) != len(children):
            raise ExportError(
                "deserialize: a dictionary has different numbers of names and values: the bytes are damaged"
            )
        return [kind, fields["names"], children]
    return [kind, fields["class"], base64.b64encode(fields["aux"]).decode(), children]


def _mesh(fields: dict[str, Any]) -> AbstractMesh:
    if len(fields["sizes"]) != len(fields["names"]):
        raise ExportError("deserialize: a mesh has different numbers of names and axes: the bytes are damaged")
    return AbstractMesh(fields["sizes"], fields["names"])


def _sharding(fields: dict[str, Any], meshes: list[AbstractMesh]) -> NamedSharding:
    mesh = _looked_up(meshes, [fields["mesh_number"]])[0] if meshes else _mesh(fields["mesh"])
    spec = fields["spec"]
    if spec["reduced"] or spec["unreduced"]:
        raise ExportError(
            "deserialize: a sharding is unreduced (its shards are still to be summed), which is not supported"
        )
    entries = [tuple(partition["axes"]) or None for partition in spec["partitions"]]
    return NamedSharding(mesh, PartitionSpec(*[e[0] if e and len(e) == 1 else e for e in entries]))


def _shardings(
    fields: dict[str, Any], side: str, meshes: list[AbstractMesh], spread: list[NamedSharding], count: int
) -> tuple[NamedSharding | None, ...]:
    numbers, entries = fields[f"{side}_sharding_numbers"], fields[f"{side}_shardings"]
    if numbers:
        found = list(_looked_up([None, *spread], numbers))
    else:
        found = [None if e["named"] is None else _sharding(e["named"], meshes) for e in entries]
        if any(e["proto"] for e in entries) and (fields["devices"] or fields["devices_short"]) > 1:
            raise ExportError(
                f"deserialize: {fields['name']} is sharded in the format of JAX before 2026: export it again"
            )
    return tuple(found) or (None,) * count


def _check(fields: dict[str, Any]) -> DisabledSafetyCheck:
    if fields["kind"] == _CUSTOM_CALL:
        return DisabledSafetyCheck.custom_call(fields["target"])
    return DisabledSafetyCheck.platform()


# Writing -------------------------------------------------------------------------------------------------------------


def pack(chain: list[Exported]) -> bytearray:
    """Serialise a chain of functions, each the reverse-mode derivative of the function before it, in JAX's format.

    Raises:
      ExportError: the format cannot express a type or tree of the function (a ValueError).
    """
    fields: dict[str, Any] | None = None
    for exported in reversed(chain):
        fields = {**_fields(exported), "vjp": fields}
    assert fields is not None
    return jax_tables.write(fields)


def _fields(exported: Exported) -> dict[str, Any]:
    spread = [*exported.in_shardings, *exported.out_shardings]
    meshes: list[Any] = []
    for s in spread:
        if s is not None and s.mesh not in meshes:
            meshes.append(s.mesh)
    entries = [_sharding_fields(s, meshes) for s in spread]
    count = len(exported.in_avals)
    return {
        "serialization_version": _WRITTEN,
        "name": exported.fun_name,
        "in_tree": _tree_fields(structure_to_data(exported.in_tree)),
        "in_avals": [_aval_fields(a, exported) for a in exported.in_avals],
        "out_tree": _tree_fields(structure_to_data(exported.out_tree)),
        "out_avals": [_aval_fields(a, exported) for a in exported.out_avals],
        "devices_short": min(exported.nr_devices, 2**15 - 1),
        "in_shardings": entries[:count],
        "out_shardings": entries[count:],
        "platforms": list(exported.platforms),
        "ordered_effects": [],
        "unordered_effects": [],
        "checks": [_check_fields(check) for check in exported.disabled_safety_checks],
        "program": exported.mlir_module_serialized,
        "calling_convention": exported.calling_convention_version,
        "kept": list(exported.module_kept_var_idx),
        "global_constants": exported.uses_global_constants,
        "devices": exported.nr_devices,
        "unique_meshes": [_mesh_fields(mesh) for mesh in meshes],
    }


def _aval_fields(aval: ShapedArray, exported: Exported) -> dict[str, Any]:
    name = "float0" if aval.dtype == dtypes.float0 else dtypes.dtype_name(aval.dtype)
    if name not in _DTYPES:
        raise ExportError(
            f"serialize: {exported.fun_name} takes or returns {aval}, which JAX's format cannot store. Take and "
            f"return random keys as integers, random.key_data(keys)."
        )
    shape = [str(n) for n in aval.shape]
    return {"kind": 0, "shape": shape, "dtype": _DTYPES.index(name), "memory": _DEVICE_MEMORY}


def _tree_fields(data: Any) -> dict[str, Any]:
    kind, *rest = data
    if kind not in _NODES:
        raise ExportError(f"serialize: JAX's format has no nodes of the kind {kind}: use dictionaries instead")
    fields: dict[str, Any] = {"kind": _NODES.index(kind)}
    children = rest[-1] if rest else []
    if children:
        fields["children"] = [_tree_fields(child) for child in children]
    if kind == "dict" and children:
        fields["names"] = rest[0]
    if kind == "node":
        named = namedtuple_called(rest[0])
        fields["class"] = rest[0]
        fields["aux"] = base64.b64decode(rest[1]) if named is None else fields_in_json(named)
    return fields


def _mesh_fields(mesh: Any) -> dict[str, Any]:
    for name in mesh.axis_names:
        if not isinstance(name, str):
            raise ExportError(f"serialize: the names of mesh axes must be strings, but one is {name!r}")
    sizes = [size for _, size in mesh.shape_tuple]
    return {"sizes": sizes, "names": list(mesh.axis_names), "types": bytes([_AUTO] * len(sizes))}


def _sharding_fields(sharding: NamedSharding | None, meshes: list[Any]) -> dict[str, Any]:
    if sharding is None:
        return {"kind": 0}
    entries = sharding.spec.partitions
    if any(entry is UNCONSTRAINED for entry in entries):
        raise ExportError("serialize: JAX's format cannot store shardings that leave an axis to the compiler")
    named = {
        "mesh": _mesh_fields(sharding.mesh),
        "spec": {"partitions": [{"axes": list(names_in(e))} for e in entries], "reduced": [], "unreduced": []},
        "mesh_number": meshes.index(sharding.mesh),
    }
    return {"kind": 0, "named": named}


def _check_fields(check: DisabledSafetyCheck) -> dict[str, Any]:
    target = check.is_custom_call()
    return {"kind": _PLATFORM} if target is None else {"kind": _CUSTOM_CALL, "target": target}
