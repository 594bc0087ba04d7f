"""Programs of several processes on a cluster of Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    jobs.library(name, "cloudpickle", "ray")
    jobs.check_seconds(name, "wait", wait)
    bundle = {"CPU": 1.0} if resources is None else _bundle(name, resources)
    call = jobs.pickled(name, function, args, kwargs)
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

    The rows keep the dataset's order. Ray reads the blocks, and sends a process the rows of its shards; leave a CPU to
    it that :func:`run` does not reserve. The sharding may divide the first axis only.

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
    library = jobs.library(name, "ray", "ray")
    data = jobs.library(name, "ray.data.dataset", "ray")
    if not isinstance(dataset, data.MaterializedDataset):
        raise ArgumentError(
            f"{name}: dataset must be materialized, dataset.materialize(), got {type(dataset).__name__}"
        )
    if not library.is_initialized():
        library.init(log_to_driver=False)
    count = dataset.count()
    first = _rows(dataset, column, 0, 1) if count else {}
    if column not in first:
        raise ArgumentError(
            f"{name}: expected rows with the column {column!r}, got {count} rows of {dataset.columns()}"
        )
    example = first[column]

    def shard(index: Any) -> Any:
        start, stop, _ = index[0].indices(count)
        return _rows(dataset, column, start, stop)[column][(slice(None), *index[1:])]

    return make_array_from_callback((count, *example.shape[1:]), sharding, shard, dtype=example.dtype)


def _rows(dataset: Any, column: str, start: int, stop: int) -> dict[str, np.ndarray]:
    """Return rows of a dataset as NumPy's arrays."""
    pieces = [position for position in (start, stop) if 0 < position < dataset.count()]
    parts = dataset.split_at_indices(pieces) if pieces else [dataset]
    chosen: dict[str, np.ndarray] = parts[1 if start else 0].take_batch(stop - start, batch_format="numpy")
    return chosen


face(globals())
