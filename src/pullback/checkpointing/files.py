"""The files of a checkpoint: a ``.npy`` file for each piece of an array, and a manifest, which is written last."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pullback.core.dtypes import exact_dtype
from pullback.core.errors import FileFormatError
from pullback.core.types import Shape

MANIFEST = "manifest.json"
FORMAT = 1

Bounds = tuple[tuple[int, int], ...]


def sync(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # a file system without it, and folders on Windows
        pass
    finally:
        os.close(handle)


def write_json(path: Path, data: Any) -> None:
    """Write data to a file of this name, which is there whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(data), encoding="utf-8")
    sync(new)
    os.replace(new, path)


def read_json(path: Path) -> Any:
    """Return the data of a file that :func:`write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_manifest(folder: Path, leaves: Mapping[str, Any]) -> None:
    """Write the manifest of a checkpoint: what there is of each leaf, with a checksum, since it has numbers too."""
    data = {"format": FORMAT, "crc32": _checksum(leaves), "leaves": leaves}
    write_json(folder / MANIFEST, data)


def _checksum(data: Any) -> int:
    return zlib.crc32(json.dumps(data, sort_keys=True).encode())


def bounds(index: Sequence[slice], shape: Shape) -> Bounds:
    """Return where a shard begins and ends along each axis."""
    return tuple((i.start or 0, n if i.stop is None else i.stop) for i, n in zip(index, shape, strict=True))


def write_piece(folder: Path, name: str, where: Bounds, elements: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Write a piece of an array; return what the manifest says of it."""
    bits = np.ascontiguousarray(elements).reshape(elements.shape).view(_stored(elements.dtype))
    with open(folder / name, "wb") as file:
        np.save(file, bits, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return {"file": name, "where": where, "crc32": zlib.crc32(bits.data if bits.size else b"")}


def _stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the elements in a file: NumPy's files do not name those of ``ml_dtypes``."""
    return np.dtype(f"u{dtype.itemsize}") if dtype.isbuiltin == 2 else dtype


class Reader:
    """Reads the arrays of a checkpoint.

    Args:
      folder: the folder of the checkpoint.

    Attributes:
      leaves: what the manifest says of each leaf, by its path.

    Raises:
      FileFormatError: the manifest is damaged, or of a later version (a ValueError).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checked: set[str] = set()
        try:
            manifest = read_json(folder / MANIFEST)
            version, checksum = manifest["format"], manifest["crc32"]
            self.leaves: Mapping[str, Any] = manifest["leaves"]
        except (KeyError, OSError, TypeError, ValueError) as error:
            raise FileFormatError(f"{folder / MANIFEST} is damaged: {error}") from None
        if version != FORMAT:
            raise FileFormatError(f"{folder} has format {version}, but this version of Pullback reads format {FORMAT}")
        if _checksum(self.leaves) != checksum:
            raise FileFormatError(f"{folder / MANIFEST} is damaged: it is not what was written")

    def read(self, name: str, wanted: Bounds) -> np.ndarray[Any, Any]:
        """Return the elements of an array within bounds, from the pieces that have them."""
        leaf = self.leaves[name]
        result = np.empty([stop - start for start, stop in wanted], exact_dtype(leaf["dtype"]))
        found = 0
        for piece in leaf["pieces"]:
            shared = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(wanted, piece["where"], strict=True)]
            if result.size and all(start < stop for start, stop in shared):
                source = self._piece(name, piece, result.dtype)
                inside = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, piece["where"], strict=True))
                target = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(shared, wanted, strict=True))
                result[target] = source[inside]
                found += math.prod(stop - start for start, stop in shared)
        if found != result.size:
            raise FileFormatError(f"{self.folder} has {found} of the {result.size} elements of {name} at {wanted}")
        return result

    def _piece(self, name: str, piece: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        path = self.folder / piece["file"]
        try:
            bits = np.load(path, mmap_mode="r", allow_pickle=False)
            good = piece["file"] in self.checked or zlib.crc32(np.ascontiguousarray(bits).data) == piece["crc32"]
        except (EOFError, OSError, ValueError) as error:
            raise FileFormatError(f"{path}, a part of {name}, cannot be read: {error}") from None
        expected = _stored(dtype), [stop - start for start, stop in piece["where"]]
        if not good or (bits.dtype, list(bits.shape)) != expected:
            raise FileFormatError(f"{path}, a part of {name}, is damaged: it is not what was written")
        self.checked.add(piece["file"])
        return bits.view(dtype)
