"""Programs of several processes on a cluster of Dask."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from pullback.core.errors import ArgumentError, DistributedTimeoutError
from pullback.core.faces import face
from pullback.distributed import jobs
from pullback.distributed.jobs import Outcome
from pullback.transforms.programs.sharded_arrays import make_array_from_callback

__all__ = ["read", "run"]
SCHEDULER = "PULLBACK_DASK_SCHEDULER"


def run(
    client: Any, function: Callable[..., Any], *args: Any, processes: int, devices_per_process: int | None = None,
    restarts: int = 0, grace: float = 10.0, wait: float = 60.0, **kwargs: Any,
) -> list[Any]:  # fmt: skip
    """Run a function in several processes on the workers of a Dask cluster, and return the results of all.

    The processes have joined when the function begins: ``pullback.devices()`` are those of all. Each runs beside the
    worker that started it, on its machine, and the lines that it prints appear in the client's program. While the job
    runs, the workers take other tasks too.

    If a process fails or a worker is lost, the others get some seconds to save their state. Then the job starts again,
    up to ``restarts`` times, on workers that the cluster has by then: a function that saves checkpoints
    (:mod:`pullback.checkpointing`) goes on from the newest. ``PULLBACK_RESTART`` in the environment is how many
    times the job was started again.

    Args:
      client: a ``dask.distributed.Client``.
      function: runs in each process. It and its arguments are pickled by cloudpickle.
      args: its positional arguments.
      processes: the number of processes; a worker may run several.
      devices_per_process: the number of CPU devices of each; by default as the environment says.
      restarts: how many times to start the job again.
      grace: the number of seconds that the others may go on after a failure.
      wait: how long to wait for a first worker, in seconds.
      kwargs: keyword arguments of ``function``.

    Returns:
      The results in the order of the processes' numbers.

    Raises:
      MissingLibraryError: Dask's ``distributed`` is not installed (an ImportError).
      ArgumentError: an argument is invalid, or cannot be pickled (a ValueError).
      DistributedTimeoutError: the cluster has no worker (a TimeoutError).
      ProcessLostError: a process was killed, or its worker lost, in the last attempt (a RuntimeError).
      Exception: what the function raised in the process that failed first, in the last attempt.

    >>> import pullback.distributed.dask
    >>> def train(steps):
    ...     import pullback
    ...     return pullback.device_count(), steps
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> pullback.distributed.dask.run(client, train, 10, processes=2, devices_per_process=2)  # doctest: +SKIP
    [(4, 10), (4, 10)]
    """
    name = "distributed.dask.run"
    distributed = jobs.library(name, "distributed", "dask")
    if not isinstance(client, distributed.Client):
        raise ArgumentError(f"{name}: client must be a dask.distributed.Client, got {client!r}")
    if client.asynchronous:
        raise ArgumentError(f"{name}: client must not be asynchronous: make it with Client(asynchronous=False)")
    jobs.library(name, "cloudpickle", "dask")
    jobs.check_seconds(name, "wait", wait)
    call = jobs.pickled(name, function, args, kwargs)
    settings = {**jobs.settings_of(name, devices_per_process), SCHEDULER: client.scheduler.address}
    return jobs.run(name, call, processes, restarts, grace, settings, lambda: _Workers(client, processes, wait))


class _Workers:
    """The workers of one attempt: a task on each runs the child, and leaves the worker's threads to other tasks."""

    def __init__(self, client: Any, processes: int, wait: float) -> None:
        import distributed

        try:
            client.wait_for_workers(1, timeout=wait)
        except TimeoutError:
            raise DistributedTimeoutError(
                f"distributed.dask.run: the cluster has had no worker for {wait:g} seconds: start workers, or pass a "
                "longer wait="
            ) from None
        known = sorted(client.scheduler_info(n_workers=-1)["workers"])
        self._client, self._job, self._library = client, secrets.token_hex(4), distributed
        self._wait = wait
        self._workers = [known[number % len(known)] for number in range(processes)]
        self._running: dict[int, Any] = {}

    def address(self) -> str | Outcome:
        future = self._client.submit(_address, workers=[self._workers[0]], pure=False, retries=0)
        try:
            found: str = future.result(timeout=max(self._wait, 1))
        except Exception as error:  # it is lost, or does not answer in time
            return Outcome(lost=f"the worker {self._workers[0]} does not answer: {type(error).__name__}")
        finally:
            future.cancel(force=True)
        return found

    def start(self, number: int, task: bytes, settings: Mapping[str, str]) -> None:
        self._running[number] = self._client.submit(
            _run_child, self._key(number), number, task, dict(settings), workers=[self._workers[number]], pure=False,
            retries=0,
        )  # fmt: skip

    def ended(self, seconds: float) -> list[tuple[int, Outcome]]:
        with contextlib.suppress(self._library.TimeoutError):
            self._library.wait(list(self._running.values()), timeout=seconds, return_when="FIRST_COMPLETED")
        alive = self._client.scheduler_info(n_workers=-1)["workers"]
        found = []
        for number, future in list(self._running.items()):
            if future.done():
                lost = f"its task on the worker {self._workers[number]} is {future.status}"
                found.append((number, future.result() if future.status == "finished" else Outcome(lost=lost)))
            elif self._workers[number] not in alive:
                found.append((number, Outcome(lost=f"the worker {self._workers[number]} is gone")))
                future.cancel(force=True)
            else:
                continue
            del self._running[number]
        return found

    def end(self) -> None:
        alive = self._client.scheduler_info(n_workers=-1)["workers"]
        for number, future in self._running.items():
            if self._workers[number] in alive:
                self._client.run(jobs.end_child, self._key(number), workers=[self._workers[number]])
            future.cancel(force=True)

    def _key(self, number: int) -> str:
        return f"{self._job}-{number}"


def _address() -> str:
    """Return the address of this worker's machine, with a free port."""
    import distributed

    return jobs.free_address(distributed.get_worker().ip)


def _run_child(key: str, number: int, task: bytes, settings: Mapping[str, str]) -> Outcome:
    """Run the child from a task, which gives its thread back to the worker for as long."""
    import distributed

    distributed.secede()
    return jobs.run_child(key, task, settings, lambda line: distributed.print(f"[{number}] {line}"))


@functools.cache
def _client(address: str) -> Any:
    """Return this process's client of a scheduler."""
    return jobs.library("distributed.dask.read", "distributed", "dask").Client(address, set_as_default=False)


def read(x: Any, sharding: Any) -> Any:
    """Return a Dask array as an array with a sharding, of which each process reads its own shards.

    Within :func:`run` the cluster computes the shards, and sends each to the process that needs it. Elsewhere this
    process computes them. No process holds the whole array, unless the sharding says so.

    Args:
      x: a ``dask.array.Array`` of known shape. All processes pass the same one.
      sharding: the sharding of the result, such as ``NamedSharding(mesh, P("data"))``.

    Returns:
      The array, of the shape of ``x``.

    Raises:
      MissingLibraryError: Dask is not installed (an ImportError).
      ArgumentError: ``x`` is not a Dask array, or its shape is not known (a ValueError).

    >>> import pullback
    >>> from pullback import NamedSharding, P
    >>> from pullback.distributed.dask import read
    >>> mesh = pullback.make_mesh((1,), ("data",))
    >>> import dask.array  # doctest: +SKIP
    >>> read(dask.array.arange(1_000_000, chunks=1000), NamedSharding(mesh, P("data"))).shape  # doctest: +SKIP
    (1000000,)
    """
    array = jobs.library("distributed.dask.read", "dask.array", "dask")
    if not isinstance(x, array.Array):
        raise ArgumentError(f"distributed.dask.read: x must be a dask.array.Array, got {type(x).__name__}")
    if any(size != size for size in x.shape):
        raise ArgumentError(
            f"distributed.dask.read: the shape of x must be known, got {x.shape}: call compute_chunk_sizes()"
        )
    scheduler = os.environ.get(SCHEDULER)

    def shard(index: Any) -> Any:
        return x[index].compute() if scheduler is None else _client(scheduler).compute(x[index]).result()

    return make_array_from_callback(x.shape, sharding, shard, dtype=x.dtype)


face(globals())
