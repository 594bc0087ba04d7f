"""Arrays written to files by TensorStore, in the background; Orbax and Flax's older checkpoints need it.

Each process writes and reads whole arrays: those that it holds.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from pullback.core.errors import ArgumentError, MissingLibraryError
from pullback.transforms.programs.transfer import device_put


def _tensorstore() -> Any:
    try:
        import tensorstore
    except ImportError as error:
        raise MissingLibraryError(
            "arrays are written to files by TensorStore: install the package tensorstore"
        ) from error
    return tensorstore


def get_tensorstore_spec(ckpt_path: str, ocdbt: bool = False, process_idx: int | None = None) -> dict[str, Any]:
    """Return TensorStore's specification of a stored array.

    Args:
      ckpt_path: an absolute path.
      ocdbt: whether to use TensorStore's database in one folder instead of a folder for each array; the last component
        of the path is then the name of the array in it.
      process_idx: is ignored; JAX has it. To write to separate files, processes pass separate paths.

    Returns:
      A specification of TensorStore's.

    Raises:
      ArgumentError: the path is not absolute (a ValueError).

    >>> from pullback.compat.extras.experimental.array_serialization.serialization import get_tensorstore_spec
    >>> get_tensorstore_spec("/folder/weights")["kvstore"]
    {'driver': 'file', 'path': '/folder/weights'}
    """
    path = str(ckpt_path)
    if not path.startswith("/") and "://" not in path:
        raise ArgumentError(f"get_tensorstore_spec: expected an absolute path, got {path!r}")
    if ocdbt:
        folder, _, name = path.rstrip("/").rpartition("/")
        return {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": f"file://{folder}", "path": name}}
    return {"driver": "zarr", "kvstore": {"driver": "file", "path": path}}


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The base class of managers that write arrays in the background, and read them."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise the error of the background thread, if any."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all arrays are written, and raise the error of the background thread, if any."""

    @abc.abstractmethod
    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        *,
        on_commit_callback: Callable[[], Any],
    ) -> None:
        """Start to write arrays, and call a function when they are written."""

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Read arrays, each with its sharding."""


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """A manager that writes arrays in a thread, one set at a time.

    Args:
      timeout_secs: the number of seconds that :meth:`wait_until_finished` waits.
    """

    def __init__(self, timeout_secs: float = 300) -> None:
        self._thread = ThreadPoolExecutor(1, "pullback-arrays")
        self._pending: Future[None] | None = None
        self._timeout = timeout_secs

    def check_for_errors(self) -> None:
        if self._pending is not None and self._pending.done():
            pending, self._pending = self._pending, None
            pending.result()

    def wait_until_finished(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result(self._timeout)

    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        *,
        on_commit_callback: Callable[[], Any],
    ) -> None:
        self.wait_until_finished()
        values = [np.array(x) for x in arrays]  # copies, since the arrays may be donated meanwhile

        def write() -> None:
            opened = [_open(spec, value) for spec, value in zip(tensorstore_specs, values, strict=True)]
            for done in [store.write(value) for store, value in zip(opened, values, strict=True)]:
                done.result()
            on_commit_callback()

        self._pending = self._thread.submit(write)

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> list[Any]:
        self.wait_until_finished()
        stores = [_tensorstore().open(spec, open=True).result() for spec in tensorstore_specs]
        values = [done.result() for done in [store.read() for store in stores]]
        if global_shapes is not None:
            values = [_resized(x, tuple(shape)) for x, shape in zip(values, global_shapes, strict=True)]
        if dtypes is not None:
            values = [x if d is None else x.astype(d) for x, d in zip(values, dtypes, strict=True)]
        return [device_put(x, sharding) for x, sharding in zip(values, shardings, strict=True)]


def _open(spec: dict[str, Any], value: np.ndarray[Any, Any]) -> Any:
    kind = {"dtype": value.dtype.name, "shape": value.shape}
    return _tensorstore().open(spec, create=True, delete_existing=True, **kind).result()


def _resized(value: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Crop an array to a shape, or pad it with zeros."""
    if value.shape == shape:
        return value
    out = np.zeros(shape, value.dtype)
    common = tuple(slice(0, min(a, b)) for a, b in zip(value.shape, shape, strict=True))
    out[common] = value[common]
    return out
