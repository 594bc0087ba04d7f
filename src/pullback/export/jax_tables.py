"""The tables of the files that ``jax.export`` writes, which are FlatBuffers.

A file is a tree of tables. Each field has a number, its place in the table, and a type. Fields that are not there have
the value zero, or none; a reader passes over those that it does not know. So releases of JAX add fields, and read each
other's files. :data:`TABLES` has the fields that matter here, by their numbers; :func:`read` and :func:`write` go
through it. Reading is done here, since the library for these files does not look where a damaged one points to.
"""

from __future__ import annotations

import struct
from typing import Any

from pullback.core.errors import ExportError

NUMBERS = {"bool": ("?", 1), "u8": ("B", 1), "i8": ("b", 1), "u16": ("H", 2), "i16": ("h", 2), "u32": ("I", 4)}
"""Types of numbers, by the letters of ``struct`` and their widths."""

TABLES: dict[str, dict[str, tuple[int, str]]] = {
    "Exported": {
        "serialization_version": (0, "u16"), "name": (1, "text"), "in_tree": (2, "Tree"), "in_avals": (3, "[Aval]"),
        "out_tree": (4, "Tree"), "out_avals": (5, "[Aval]"), "devices_short": (6, "i16"),
        "in_shardings": (7, "[Sharding]"), "out_shardings": (8, "[Sharding]"), "platforms": (9, "[text]"),
        "ordered_effects": (10, "[Effect]"), "unordered_effects": (11, "[Effect]"), "checks": (12, "[Check]"),
        "program": (13, "[u8]"), "calling_convention": (14, "u16"), "kept": (15, "[u16]"),
        "global_constants": (16, "bool"), "vjp": (17, "Exported"), "devices": (18, "u32"),
        "unique_avals": (19, "[Aval]"), "unique_meshes": (20, "[Mesh]"), "unique_shardings": (21, "[NamedSharding]"),
        "in_aval_numbers": (22, "[u32]"), "out_aval_numbers": (23, "[u32]"), "in_sharding_numbers": (24, "[u32]"),
        "out_sharding_numbers": (25, "[u32]"),
    },
    "Tree": {
        "kind": (0, "i8"), "children": (1, "[Tree]"), "names": (2, "[text]"), "class": (3, "text"), "aux": (4, "[u8]"),
    },
    "Aval": {"kind": (0, "i8"), "shape": (1, "[text]"), "dtype": (2, "i8"), "memory": (3, "i8")},
    "Sharding": {"kind": (0, "i8"), "proto": (1, "[u8]"), "named": (2, "NamedSharding")},
    "NamedSharding": {"mesh": (0, "Mesh"), "spec": (1, "Spec"), "memory": (2, "text"), "mesh_number": (3, "u32")},
    "Mesh": {"sizes": (0, "[u32]"), "names": (1, "[text]"), "types": (2, "[u8]")},
    "Spec": {"partitions": (0, "[Partition]"), "reduced": (1, "[text]"), "unreduced": (2, "[text]")},
    "Partition": {"axes": (0, "[text]")},
    "Effect": {"name": (0, "text")},
    "Check": {"kind": (0, "i8"), "target": (1, "text")},
}  # fmt: skip
_MOST = 1_000_000
"""So many tables and numbers a file may have, apart from programs: a damaged one could refer to a table many times."""


def read(data: bytes) -> dict[str, Any]:
    """The table at the root of a file, as a dictionary of its fields; other tables are dictionaries in it.

    Raises:
      ExportError: the bytes are no such file, or damaged (a ValueError).
    """
    try:
        return _Reader(data).table(struct.unpack_from("<I", data)[0], "Exported")
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"deserialize: the bytes are no exported function, or they are damaged: {error}") from None


class _Reader:
    """Reads tables at positions of the bytes, each within their bounds."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.count = 0

    def _number(self, at: int, kind: str) -> Any:
        letter, size = NUMBERS[kind]
        if at < 0 or at + size > len(self.data):
            raise IndexError(f"position {at} is outside")
        return struct.unpack_from(f"<{letter}", self.data, at)[0]

    def table(self, at: int, name: str) -> dict[str, Any]:
        """The fields of a table: at its beginning is the distance back to the places of the fields in it."""
        self._counted(1)
        if at < 4 or at + 4 > len(self.data):
            raise IndexError(f"position {at} is outside")
        places = at - struct.unpack_from("<i", self.data, at)[0]
        size = self._number(places, "u16")
        found: dict[str, Any] = {}
        for field, (number, kind) in TABLES[name].items():
            entry = 4 + 2 * number
            offset = self._number(places + entry, "u16") if entry + 2 <= size else 0
            found[field] = self._value(at + offset, kind) if offset else _nothing(kind)
        return found

    def _value(self, at: int, kind: str) -> Any:
        if kind in NUMBERS:
            return self._number(at, kind)
        at += self._number(at, "u32")  # where what it refers to is
        if kind == "text":
            return self._bytes(at).decode()
        if kind == "[u8]":
            return self._bytes(at)
        if not kind.startswith("["):
            return self.table(at, kind)
        count, element = self._number(at, "u32"), kind[1:-1]
        size = NUMBERS[element][1] if element in NUMBERS else 4
        if at + 4 + count * size > len(self.data):
            raise IndexError(f"a list of {count} is cut off")
        self._counted(count)
        return [self._value(at + 4 + i * size, element) for i in range(count)]

    def _bytes(self, at: int) -> bytes:
        size = self._number(at, "u32")
        if at + 4 + size > len(self.data):
            raise IndexError(f"{size} bytes are cut off")
        return self.data[at + 4 : at + 4 + size]

    def _counted(self, count: int) -> None:
        self.count += count
        if self.count > _MOST:
            raise ValueError("there are more tables than bytes can hold")


def _nothing(kind: str) -> Any:
    """What a field is that is not there."""
    if kind in NUMBERS:
        return 0
    return "" if kind == "text" else b"" if kind == "[u8]" else [] if kind.startswith("[") else None


def write(fields: dict[str, Any]) -> bytearray:
    """The bytes of a file, from the fields of the table at its root."""
    import flatbuffers

    builder = flatbuffers.Builder(65536)
    builder.Finish(_write_table(builder, fields, "Exported"))
    return bytearray(builder.Output())


def _write_table(builder: Any, fields: dict[str, Any], name: str) -> int:
    """Write a table after all that it refers to; where it is."""
    known = TABLES[name]
    places = {
        field: _written(builder, value, known[field][1])
        for field, value in fields.items()
        if known[field][1] not in NUMBERS and value is not None
    }
    builder.StartObject(1 + max(number for number, _ in known.values()))
    for field, value in fields.items():
        number, kind = known[field]
        if kind in NUMBERS:
            _slot(builder, kind)(number, value, 0)
        elif value is not None:
            builder.PrependUOffsetTRelativeSlot(number, places[field], 0)
    return int(builder.EndObject())


def _slot(builder: Any, kind: str) -> Any:
    names = {"bool": "Bool", "i8": "Int8", "u8": "Uint8", "u16": "Uint16", "i16": "Int16", "u32": "Uint32"}
    return getattr(builder, f"Prepend{names[kind]}Slot")


def _written(builder: Any, value: Any, kind: str) -> int:
    if kind == "text":
        return int(builder.CreateString(value))
    if kind == "[u8]":
        return int(builder.CreateByteVector(bytes(value)))
    if not kind.startswith("["):
        return _write_table(builder, value, kind)
    element = kind[1:-1]
    if element in NUMBERS:
        size = NUMBERS[element][1]
        builder.StartVector(size, len(value), size)
        put = {"u16": builder.PrependUint16, "u32": builder.PrependUint32}[element]
        for x in reversed(value):
            put(x)
        return int(builder.EndVector())
    places = [_written(builder, x, element) for x in value]
    builder.StartVector(4, len(places), 4)
    for place in reversed(places):
        builder.PrependUOffsetTRelative(place)
    return int(builder.EndVector())
