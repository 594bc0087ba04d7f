"""Checkpoints in a folder, by step."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from pullback.backends.processes import distributed
from pullback.checkpointing import files
from pullback.core import tree as trees
from pullback.core.array import Array, ArrayImpl, refuse_masked
from pullback.core.dtypes import dtype_name, exact_dtype, is_key
from pullback.core.errors import ArgumentError, CheckpointError, DtypeError, ProcessMismatchError
from pullback.core.trace import Tracer
from pullback.core.tree_nodes import keystr
from pullback.core.types import Shape
from pullback.random.keys import key_data, key_impl, wrap_key_data
from pullback.transforms.functions.arguments import as_weak
from pullback.transforms.programs.sharded_arrays import addressable_shards, make_array_from_callback, sharding_of
from pullback.transforms.programs.transfer import device_put

_PATIENCE = 600.0
"""After how many seconds without the files of another process to give up."""

_FAILED = "failed-"
"""How the names of files begin by which a process says that it could not do its part."""

_SCALARS: dict[str, Callable[[Any], Any]] = {"bool": bool, "int": int, "float": float.fromhex, "str": str}


class Checkpoints:
    """The checkpoints of a program in a folder: a step is there whole, or not at all.

    In a program of several processes each makes one for the same folder, which all of them reach, and all call the
    same methods in the same order. One program at a time uses a folder.

    Args:
      folder: the path of the folder; it is made when it is missing.
      keep: how many of the newest steps stay on disk; None keeps all.

    Raises:
      ArgumentError: ``keep`` is not a positive integer or None (a ValueError).

    A training that goes on where it was stopped, with the same bits as without a stop:

    >>> import tempfile
    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.checkpointing import Checkpoints
    >>> checkpoints = Checkpoints(tempfile.mkdtemp())
    >>> state = {"step": 0, "w": jnp.zeros(3), "key": random.key(0)}
    >>> if checkpoints.latest() is not None:
    ...     state = checkpoints.restore(state)
    >>> while state["step"] < 20:
    ...     key, noise = random.split(state["key"])
    ...     state = {"step": state["step"] + 1, "w": state["w"] + random.normal(noise, (3,)), "key": key}
    ...     if state["step"] % 5 == 0:
    ...         checkpoints.save(state["step"], state)
    >>> checkpoints.wait()
    >>> checkpoints.steps()
    [10, 15, 20]
    >>> bool(jnp.array_equal(checkpoints.restore(state, step=20)["w"], state["w"]))
    True
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int | None = 3) -> None:
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
            raise ArgumentError(f"Checkpoints: keep must be a positive integer or None, got {keep!r}")
        self.folder = Path(folder)
        self.keep = keep
        self._writing: threading.Thread | None = None
        self._failed: BaseException | None = None

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *exception: object) -> None:
        self.wait()

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.folder)!r}, keep={self.keep})"

    def steps(self) -> list[int]:
        """Return the steps that are on disk, in order."""
        try:
            names = [re.fullmatch(r"step-(\d+)", entry.name) for entry in os.scandir(self.folder)]
        except FileNotFoundError:
            return []
        return sorted(int(name[1]) for name in names if name is not None)

    def latest(self) -> int | None:
        """Return the newest step that is on disk, the same in all processes; None if there is none."""
        found = max(self.steps(), default=None)
        return json.loads(distributed.exchange("looking for a checkpoint", json.dumps(found).encode())[0])

    def save(self, step: int, tree: Any) -> None:
        """Write a tree as a step, in the background.

        The values are those at the time of the call: arrays that are donated or changed later do not matter. The call
        waits for the step before, if that is still being written, and for a copy of the arrays to the host.

        Args:
          step: the number of the step, which must not be there yet.
          tree: a tree of arrays, random keys, Python numbers and texts. In a program of several processes, a leaf that
            is not an array over the devices of all of them must be equal in all.

        Raises:
          ArgumentError: ``step`` is not an integer from 0, or a leaf is none of these (a TypeError and a ValueError).
          CheckpointError: the step is there, or writing the step before has failed (a RuntimeError).
          ProcessMismatchError: a leaf differs between processes (a RuntimeError).
        """
        if isinstance(step, bool) or not hasattr(type(step), "__index__") or step.__index__() < 0:
            raise ArgumentError(f"Checkpoints.save: step must be an integer from 0, got {step!r}")
        self.wait()
        step = step.__index__()
        target = self._path(step)
        if target.exists():
            raise CheckpointError(f"step {step} is there already, in {target}")
        named = [(keystr(path), leaf) for path, leaf in trees.leaves_with_path(tree)]
        leaves = {name: _copied(name, leaf) for name, leaf in named}
        if len(leaves) < len(named):
            names = [name for name, _ in named]
            twice = next(name for name in names if names.count(name) > 1)
            raise ArgumentError(f"Checkpoints.save: two leaves have the path {twice}. Give them different keys")
        me = _process()
        nonce = secrets.token_hex(8) if me == 0 else ""
        if me == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
        local = {name: leaf.digest for name, leaf in leaves.items()} if distributed.is_initialized() else {}
        messages = distributed.exchange(f"saving step {step}", json.dumps([nonce, local]).encode())
        said = [json.loads(message) for message in messages]
        _check_equal([digests for _, digests in said])
        new = self.folder / f"{target.name}.{said[0][0]}.new"
        self._writing = threading.Thread(
            target=self._write, args=(new, target, leaves, me, len(said)), name=f"checkpoint of step {step}"
        )
        self._writing.start()

    def wait(self) -> None:
        """Wait until the step that is being written is on disk.

        Raises:
          CheckpointError: it could not be written (a RuntimeError).
        """
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        failed, self._failed = self._failed, None
        if failed is not None:
            raise CheckpointError(f"a checkpoint could not be written to {self.folder}: {failed}") from failed

    def restore(self, like: Any, step: int | None = None) -> Any:
        """Return the tree of a step.

        Args:
          like: a tree of the same structure, whose leaves say what to make of what is on disk: an array, or a
            ``ShapeDtypeStruct``, one of its shape and dtype and with its sharding; a NumPy array or a Python number,
            one of its kind. Only their shapes, dtypes and shardings count.
          step: the step; the newest one by default.

        Returns:
          A tree of the structure of ``like``.

        Raises:
          CheckpointError: there is no such step (a RuntimeError).
          ArgumentError: what is on disk differs from ``like`` in structure, shape or dtype (a ValueError).
          FileFormatError: a file is damaged (a ValueError).
        """
        self.wait()
        step = self.latest() if step is None else step
        if step is None or not self._path(step).is_dir():
            there = f"the steps there are {self.steps()}" if self.steps() else "the folder has none"
            raise CheckpointError(
                f"no checkpoint{'' if step is None else f' of step {step}'} in {self.folder}: {there}"
            )
        reader = files.Reader(self._path(step))
        wanted = [keystr(path) for path, _ in trees.leaves_with_path(like)]
        if set(wanted) != set(reader.leaves):
            more, less = sorted(set(reader.leaves) - set(wanted)), sorted(set(wanted) - set(reader.leaves))
            raise ArgumentError(
                f"Checkpoints.restore: the tree of step {step} differs from like: "
                f"{_listed(more)} is on disk alone, {_listed(less)} in like alone"
            )
        return trees.map_with_path(lambda path, leaf: _restored(reader, keystr(path), leaf), like)

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def _remove_leftovers(self) -> None:
        """Remove what a process that was killed has left: steps that were being written, or removed."""
        for entry in list(os.scandir(self.folder)):
            if re.fullmatch(r"step-\d+\.\w+\.(new|old)", entry.name):
                shutil.rmtree(entry.path, ignore_errors=True)

    def _write(self, new: Path, target: Path, leaves: dict[str, _Leaf], me: int, count: int) -> None:
        """Write the pieces of this process; in process 0, make the step of those of all processes."""
        try:
            new.mkdir(exist_ok=True)
            for number, leaf in enumerate(leaves.values()):
                for i, (where, elements) in enumerate(leaf.pieces if me == 0 or leaf.divided else ()):
                    piece = files.write_piece(new, f"{number}-{me}-{i}.npy", where, elements)
                    leaf.manifest["pieces"].append(piece)
            files.write_json(new / f"part-{me}.json", {name: leaf.manifest for name, leaf in leaves.items()})
            if me == 0:
                self._finish(new, target, count)
            else:
                _wait_for(lambda: self._missing(target), new)
        except BaseException as error:
            self._failed = error
            with suppress(OSError):
                files.write_json(new / f"{_FAILED}{me}.json", str(error))  # the others need not wait

    def _missing(self, target: Path) -> list[str]:
        """Return what process 0 has to do yet: to make the step, or to remove those before."""
        return [] if target.exists() and len(self.steps()) <= (self.keep or math.inf) else [target.name]

    def _finish(self, new: Path, target: Path, count: int) -> None:
        parts = [new / f"part-{i}.json" for i in range(count)]
        _wait_for(lambda: [part.name for part in parts if not part.exists()], new)
        whole, *others = map(files.read_json, parts)
        for other in others:
            for name, leaf in other.items():
                whole[name].get("pieces", []).extend(leaf.get("pieces", ()))
        files.write_manifest(new, whole)
        files.sync(new)
        os.rename(new, target)
        files.sync(self.folder)
        for step in self.steps()[: -self.keep] if self.keep else ():
            old = self._path(step)
            os.rename(old, gone := old.with_name(f"{old.name}.{secrets.token_hex(8)}.old"))
            shutil.rmtree(gone, ignore_errors=True)


class _Leaf:
    """A leaf that is to be written: a copy of its elements on the host.

    Attributes:
      manifest: what the manifest says of it; its list of pieces is filled while they are written.
      pieces: where each piece of it is, and its elements.
      divided: whether each process has pieces of its own; otherwise process 0 has all of it.
    """

    def __init__(self, manifest: dict[str, Any], pieces: list[tuple[files.Bounds, Any]], divided: bool) -> None:
        self.manifest = manifest
        self.pieces = pieces
        self.divided = divided

    @property
    def digest(self) -> str:
        """What must be equal in all processes: the type, and the elements unless each process has its own."""
        crc = 0
        for where, elements in () if self.divided else self.pieces:
            crc = zlib.crc32(np.ascontiguousarray(elements).view(np.uint8).data if elements.size else b"", crc)
            crc = zlib.crc32(repr(where).encode(), crc)
        return f"{json.dumps(self.manifest)} {crc}"


def _copied(name: str, leaf: Any) -> _Leaf:
    for kind in (bool, int, float, str):
        if type(leaf) is kind:
            value = leaf.hex() if isinstance(leaf, float) else leaf if isinstance(leaf, bool | str) else str(leaf)
            return _Leaf({"python": kind.__name__, "value": value}, [], False)
    if isinstance(leaf, Tracer):
        raise ArgumentError(
            f"Checkpoints.save: the leaf {name} is a traced value. Save outside of transformed functions"
        )
    if isinstance(leaf, np.ndarray | np.generic):
        refuse_masked(leaf)
        _check_dtype(name, leaf.dtype)
        elements = np.array(leaf, leaf.dtype.newbyteorder("="))
        return _Leaf(_described(elements, None), [(tuple((0, n) for n in elements.shape), elements)], False)
    if not isinstance(leaf, ArrayImpl):
        raise ArgumentError(
            f"Checkpoints.save: the leaf {name} must be an array, a random key, a number or a text, got "
            f"{leaf!r:.100} of type {type(leaf).__name__}"
        )
    impl = str(key_impl(leaf)) if is_key(leaf.dtype) else None
    words: Any = leaf if impl is None else key_data(leaf)
    divided = not words.is_fully_addressable
    shards = [shard for shard in addressable_shards(words) if shard.replica_id == 0]
    pieces = [(files.bounds(shard.index, words.shape), np.array(shard.data)) for shard in shards]
    return _Leaf(_described(words, impl), pieces, divided)


def _check_dtype(name: str, dtype: Any) -> None:
    try:
        exact_dtype(dtype)
    except DtypeError as error:
        raise ArgumentError(f"Checkpoints.save: the leaf {name} cannot be written: {error}") from None


def _described(elements: Any, key: str | None) -> dict[str, Any]:
    """Return what the manifest says of an array, without its pieces."""
    return {"shape": list(elements.shape), "dtype": dtype_name(elements.dtype), "key": key, "pieces": []}


def _restored(reader: files.Reader, name: str, like: Any) -> Any:
    leaf = reader.leaves[name]
    if "python" in leaf or type(like) in (bool, int, float, str):
        if leaf.get("python") != type(like).__name__:
            raise _other(name, leaf.get("python") or _type(leaf), f"a Python {type(like).__name__}")
        return _SCALARS[leaf["python"]](leaf["value"])
    dtype, shape = getattr(like, "dtype", None), getattr(like, "shape", None)
    if dtype is None or shape is None:
        raise _other(name, _type(leaf), f"{like!r:.100} of type {type(like).__name__}")
    key = is_key(dtype)
    kept = tuple(leaf["shape"])[: -1 if leaf["key"] else None]
    if kept != tuple(shape) or (leaf["key"] is None) == key or (not key and leaf["dtype"] != dtype_name(dtype)):
        raise _other(name, _type(leaf), f"{dtype_name(dtype)}{list(shape)}")
    everything = tuple((0, n) for n in leaf["shape"])
    if isinstance(like, np.ndarray | np.generic):
        elements = reader.read(name, everything)
        return elements if isinstance(like, np.ndarray) else elements[()]
    made = _restored_array(reader, name, tuple(leaf["shape"]), _sharding(like, key))
    return wrap_key_data(made, impl=leaf["key"]) if key else as_weak(made, getattr(like, "weak_type", False))


def _sharding(like: Any, key: bool) -> Any:
    if isinstance(like, Array):
        return sharding_of(key_data(like) if key else like) if like.committed else None
    return getattr(like, "sharding", None)


def _restored_array(reader: files.Reader, name: str, shape: Shape, sharding: Any) -> Any:
    if sharding is None:
        return device_put(reader.read(name, tuple((0, n) for n in shape)))
    return make_array_from_callback(shape, sharding, lambda index: reader.read(name, files.bounds(index, shape)))


def _type(leaf: Any) -> str:
    return f"{leaf['key'] or leaf['dtype']}{leaf['shape']}"


def _other(name: str, there: str, wanted: str) -> ArgumentError:
    return ArgumentError(f"Checkpoints.restore: the leaf {name} is {there} on disk, but like has {wanted} there")


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:5])}{' ...' if len(names) > 5 else ''}" or "nothing"


def _process() -> int:
    member = distributed.here.member
    return 0 if member is None else member.link.process


def _check_equal(digests: list[dict[str, str]]) -> None:
    """Check that the leaves that process 0 writes are equal in all processes."""
    for process, theirs in enumerate(digests):
        names = sorted(name for name in digests[0].keys() | theirs.keys() if digests[0].get(name) != theirs.get(name))
        if names:
            raise ProcessMismatchError(
                f"Checkpoints.save: {_listed(names)} differs between process 0 and process {process}. Make an array "
                f"over the devices of all processes of what each has by itself (make_array_from_process_local_data)"
            )


def _wait_for(missing: Callable[[], list[str]], folder: Path) -> None:
    """Wait for what other processes do, as long as none of them has failed or is gone."""
    deadline = time.monotonic() + _PATIENCE
    while names := missing():
        for failed in folder.glob(f"{_FAILED}*.json"):
            raise CheckpointError(f"process {failed.stem.removeprefix(_FAILED)} failed: {files.read_json(failed)}")
        member = distributed.here.member
        if member is not None and member.link.gone:
            raise member.link.lost("saving a checkpoint")
        if time.monotonic() > deadline:
            raise CheckpointError(
                f"other processes did not do their part in {folder} within {_PATIENCE:.0f} seconds: {_listed(names)}"
            )
        time.sleep(0.02)
