"""The FlatBuffers tables of the files of ``jax.export``.

A file is a tree of tables. Each field has a number, its index in the table, and a type. Missing fields are zero or
empty, and a reader skips fields that it does not know. So releases of JAX can add fields, and read each other's files.
:data:`TABLES` has the fields that this library uses; :func:`read` and :func:`write` follow it. The reader is
Pullback's own, since the library for FlatBuffers does not check the offsets of a damaged file.
"""

from __future__ import annotations

import struct
from typing import Any

from pullback.core.errors import ExportError

NUMBERS = {"bool": ("?", 1), "u8": ("B", 1), "i8": ("b", 1), "u16": ("H", 2), "i16": ("h", 2), "u32": ("I", 4)}
"""The types of numbers: the format character of ``struct``, and the width."""

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
"""The most tables and numbers of a file, without programs: a damaged file could refer to a table many times."""


def read(data: bytes) -> dict[str, Any]:
    """Read the root table of a FlatBuffers file of ``jax.export`` as a dictionary; nested tables are dictionaries.

    Raises:
      ExportError: the bytes are no file of this kind, or damaged (a ValueError).
    """
    try:
        return _Reader(data).table(struct.unpack_from("<I", data)[0], "Exported")
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, RecursionError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(
            f"deserialize: the bytes are not an exported function, or they are damaged: {error}"
        ) from None


class _Reader:
    """A reader of tables in a FlatBuffers file, which checks every offset against the bounds of the file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.count = 0

    def _number(self, at: int, kind: str) -> Any:
        letter, size = NUMBERS[kind]
        if at < 0 or at + size > len(self.data):
            raise IndexError(f"position {at} is outside")
        return struct.unpack_from(f"<{letter}", self.data, at)[0]

    def table(self, at: int, name: str) -> dict[str, Any]:
        """Read the table at the offset ``at``, with the schema ``name``, as a dictionary of its fields.

        A table begins with the distance back to its vtable, which holds the offsets of its fields.
        """
        self._counted(1)
        if at < 4 or at + 4 > len(self.data):
            raise IndexError(f"position {at} is outside")
        vtable = at - struct.unpack_from("<i", self.data, at)[0]
        size = self._number(vtable, "u16")
        found: dict[str, Any] = {}
        for field, (number, kind) in TABLES[name].items():
            entry = 4 + 2 * number
            offset = self._number(vtable + entry, "u16") if entry + 2 <= size else 0
            found[field] = self._value(at + offset, kind) if offset else _missing(kind)
        return found

    def _value(self, at: int, kind: str) -> Any:
        if kind in NUMBERS:
            return self._number(at, kind)
        at += self._number(at, "u32")  # follow the offset
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


def _missing(kind: str) -> Any:
    """Return the value of a field that a FlatBuffers table omits, by its type in the schema, such as ``u8``."""
    if kind in NUMBERS:
        return 0
    return "" if kind == "text" else b"" if kind == "[u8]" else [] if kind.startswith("[") else None


def write(fields: dict[str, Any]) -> bytearray:
    """Serialise a FlatBuffers file of ``jax.export``, from the fields of its root table."""
    import flatbuffers

    builder = flatbuffers.Builder(65536)
    builder.Finish(_write_table(builder, fields, "Exported"))
    return bytearray(builder.Output())


def _write_table(builder: Any, fields: dict[str, Any], name: str) -> int:
    """Write a FlatBuffers table, after the objects that its fields refer to; return its offset.

    Args:
      builder: the FlatBuffers builder.
      fields: the value of each field.
      name: the name of the table's schema.
    """
    known = TABLES[name]
    offsets = {
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
            builder.PrependUOffsetTRelativeSlot(number, offsets[field], 0)
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
    offsets = [_written(builder, x, element) for x in value]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())
