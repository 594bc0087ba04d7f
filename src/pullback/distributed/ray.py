"""Programs of several processes on a cluster of Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.core.errors import ArgumentError
from pullback.core.faces import face
from pullback.distributed import jobs
from pullback.distributed.jobs import Outcome
from pullback.transforms.programs.sharded_arrays import make_array_from_callback

__all__ = ["read", "run"]


def run(
    function: Callable[..., Any], *args: Any, processes: int, devices_per_process: int | None = None,
    restarts: int = 0, grace: float = 10.0, wait: float = 60.0, resources: Mapping[str, float] | None = None,
    **kwargs: Any,
) -> list[Any]:  # fmt: skip
    """Run a function in several processes on a Ray cluster, and return the results of all.

    The processes have joined when the function begins: ``pullback.devices()`` are those of all. Each belongs to an
    actor with the resources of one bundle of a placement group, and the lines that it prints appear in the driver's
    program. ``ray.init()`` is called if the program has not done so.

    If a process fails or its actor is lost, the others get some seconds to save their state. Then the job starts again,
    up to ``restarts`` times, with new actors: a function that saves checkpoints (:mod:`pullback.checkpointing`) goes
    on from the newest. ``PULLBACK_RESTART`` in the environment is how many times the job was started again.

    Args:
      function: runs in each process. It and its arguments are pickled by cloudpickle.
      args: its positional arguments.
      processes: the number of processes.
      devices_per_process: the number of CPU devices of each; by default as the environment says.
      restarts: how many times to start the job again.
      grace: the number of seconds that the others may go on after a failure.
      wait: how long to wait for the resources, in seconds.
      resources: what Ray reserves for each process, such as ``{"CPU": 4, "GPU": 1}``; by default one CPU.
      kwargs: keyword arguments of ``function``.

    Returns:
      The results in the order of the processes' numbers.

    Raises:
      MissingLibraryError: Ray is not installed (an ImportError).
      ArgumentError: an argument is invalid, cannot be pickled, or asks for more than the cluster has (a ValueError).
      ProcessLostError: a process was killed, or its actor lost, in the last attempt (a RuntimeError).
      Exception: what the function raised in the process that failed first, in the last attempt.

    >>> import pullback.distributed.ray
    >>> def train(steps):
    ...     import pullback
    ...     return pullback.device_count(), steps
    >>> pullback.distributed.ray.run(train, 10, processes=2, devices_per_process=2)  # doctest: +SKIP
    [(4, 10), (4, 10)]
    """
    name = "distributed.ray.run"
    library = jobs.library(name, "ray", "ray")
    pickle = jobs.library(name, "cloudpickle", "ray")
    jobs.check_seconds(name, "wait", wait)
    bundle = {"CPU": 1.0} if resources is None else _bundle(name, resources)
    call = jobs.pickled(name, function, args, kwargs, _pickler(library, pickle))
    settings = jobs.settings_of(name, devices_per_process)
    if not library.is_initialized():
        library.init()
    settings["RAY_ADDRESS"] = library.get_runtime_context().gcs_address
    return jobs.run(
        name, call, processes, restarts, grace, settings, lambda: _Workers(library, processes, wait, bundle)
    )


def _bundle(name: str, resources: Any) -> dict[str, float]:
    """Return what Ray reserves for each process; raise unless it is something."""
    if (
        not isinstance(resources, Mapping)
        or not resources
        or not all(isinstance(kind, str) for kind in resources)
        or not all(isinstance(count, int | float) and count > 0 for count in resources.values())
    ):
        raise ArgumentError(
            f"{name}: resources must be a dictionary of positive numbers, such as {{'CPU': 4}}, got {resources!r}"
        )
    return {kind: float(count) for kind, count in resources.items()}


def _pickler(library: Any, cloudpickle: Any) -> Any:
    """Return a class of picklers that let Ray write its references to objects, such as the blocks of a data set.

    Other picklers leave out who owns the object.
    """

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, library.ObjectRef):
                return _reference, (library.cloudpickle.dumps(value),)
            return super().reducer_override(value)

    return Pickler


def _reference(written: bytes) -> Any:
    """Return a reference to an object in a process of the job, which joins the cluster first."""
    library = _joined("distributed.ray.run")
    return library.cloudpickle.loads(written)


def _joined(name: str) -> Any:
    """Return the library, after this process has joined the cluster."""
    library = jobs.library(name, "ray", "ray")
    if not library.is_initialized():
        library.init(log_to_driver=False)
    return library


class _Workers:
    """The actors of one attempt, one in each bundle of a placement group."""

    def __init__(self, library: Any, processes: int, wait: float, bundle: dict[str, float]) -> None:
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self._library, self._running, self._wait = library, dict[Any, int](), wait
        self._group, self._remove = placement_group([bundle] * processes, strategy="PACK"), remove_placement_group
        if not self._group.wait(wait):
            remove_placement_group(self._group)
            raise ArgumentError(
                f"distributed.ray.run: Ray has not reserved {bundle} for each of {processes} processes within {wait:g} "
                f"seconds. The cluster has {library.cluster_resources()}: pass fewer processes, or other resources="
            )
        others = {kind: count for kind, count in bundle.items() if kind not in ("CPU", "GPU")}
        self._actors = [
            library.remote(_Worker).options(
                num_cpus=bundle.get("CPU", 0), num_gpus=bundle.get("GPU", 0), resources=others, max_restarts=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, number),
            ).remote()
            for number in range(processes)
        ]  # fmt: skip

    def address(self) -> str | Outcome:
        try:
            found: str = self._library.get(self._actors[0].address.remote(), timeout=max(self._wait, 1))
        except self._library.exceptions.RayError as error:
            return Outcome(lost=f"its actor is gone: {str(error).splitlines()[0]}")
        return found

    def start(self, number: int, task: bytes, settings: Mapping[str, str]) -> None:
        self._running[self._actors[number].run.remote(number, task, dict(settings))] = number

    def ended(self, seconds: float) -> list[tuple[int, Outcome]]:
        done, _ = self._library.wait(list(self._running), timeout=seconds)
        found = []
        for reference in done:
            try:
                outcome = self._library.get(reference)
            except self._library.exceptions.RayError as error:
                outcome = Outcome(lost=f"its actor is gone: {str(error).splitlines()[0]}")
            found.append((self._running.pop(reference), outcome))
        return found

    def end(self) -> None:
        for actor in self._actors:
            self._library.kill(actor)
        self._remove(self._group)


class _Worker:
    """An actor that runs a process of the job."""

    def address(self) -> str:
        import ray

        return jobs.free_address(ray.util.get_node_ip_address())

    def run(self, number: int, task: bytes, settings: Mapping[str, str]) -> Outcome:
        return jobs.run_child(str(number), task, settings, lambda line: print(f"[{number}] {line}", flush=True))


def read(dataset: Any, column: str, sharding: Any) -> Any:
    """Return a column of a Ray dataset as an array with a sharding, of which each process reads its own rows.

    The rows are in the order of the dataset's blocks, which Ray leaves open while it makes a dataset, unless
    ``DataContext.get_current().execution_options.preserve_order`` is True. Ray takes the rows of a shard out of the
    blocks where they are, and sends a process these alone.

    Args:
      dataset: a ``ray.data.Dataset``, materialized. All processes pass the same one.
      column: the name of a column of numbers, or of arrays of one shape.
      sharding: the sharding of the result, such as ``NamedSharding(mesh, P("data"))``.

    Returns:
      The array, whose first axis has the rows.

    Raises:
      MissingLibraryError: Ray is not installed (an ImportError).
      ArgumentError: the dataset is not a materialized one, or has no rows or no such column (a ValueError).

    >>> import pullback
    >>> from pullback import NamedSharding, P
    >>> from pullback.distributed.ray import read
    >>> mesh = pullback.make_mesh((1,), ("data",))
    >>> import ray  # doctest: +SKIP
    >>> read(ray.data.range(1000).materialize(), "id", NamedSharding(mesh, P("data"))).shape  # doctest: +SKIP
    (1000,)
    """
    name = "distributed.ray.read"
    data = jobs.library(name, "ray.data.dataset", "ray")
    if not isinstance(dataset, data.MaterializedDataset):
        raise ArgumentError(
            f"{name}: dataset must be materialized, dataset.materialize(), got {type(dataset).__name__}"
        )
    library = _joined(name)
    bundles = list(dataset.iter_internal_ref_bundles())
    blocks = [
        (reference, metadata.num_rows)
        for bundle in bundles
        for reference, metadata in zip(bundle.block_refs, bundle.metadata, strict=True)
    ]
    count = sum(rows for _, rows in blocks)
    if count != sum(bundle.num_rows() for bundle in bundles):  # Ray may let a data set begin within a block
        raise ArgumentError(
            f"{name}: dataset has parts of blocks: pass whole ones, dataset.repartition({len(blocks)}).materialize()"
        )
    if not count or column not in dataset.columns():
        raise ArgumentError(
            f"{name}: expected rows with the column {column!r}, got {count} rows of {dataset.columns()}"
        )
    example = _rows(library, blocks, column, 0, 1)

    def shard(index: Any) -> Any:
        start, stop, _ = index[0].indices(count)
        return _rows(library, blocks, column, start, stop)[(slice(None), *index[1:])]

    return make_array_from_callback((count, *example.shape[1:]), sharding, shard, dtype=example.dtype)


def _rows(library: Any, blocks: Sequence[tuple[Any, int]], column: str, start: int, stop: int) -> np.ndarray:
    """Return rows of a column, which tasks of Ray take out of the blocks; ``blocks`` are references and lengths."""
    take = library.remote(_taken).options(num_cpus=0)
    parts, before = [], 0
    for reference, rows in blocks:
        first, last = max(start - before, 0), min(stop - before, rows)
        if first < last:
            parts.append(take.remote(reference, column, first, last))
        before += rows
    return np.concatenate(library.get(parts))


def _taken(block: Any, column: str, first: int, last: int) -> np.ndarray:
    """Return rows of a column of a block."""
    from ray.data.block import BlockAccessor

    part = BlockAccessor.for_block(block).slice(first, last, copy=True)
    return np.asarray(BlockAccessor.for_block(part).to_numpy(column))


face(globals())
