"""Jobs on a cluster of Dask, on this machine; skipped where Dask is not installed."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pullback.core.errors import ArgumentError, DistributedTimeoutError, ProcessLostError
from pullback.distributed import dask
from tests.distributed.programs import fail, own_rows, train

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    made = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with made as cluster, distributed.Client(cluster) as client:
        yield client


def test_a_job_goes_on_after_a_loss(client: Any, tmp_path: Path) -> None:
    found = dask.run(client, train, str(tmp_path), 6, processes=2, devices_per_process=2, restarts=1)
    assert found == [(4, 6 * 1.5**6, "1")] * 2


def test_errors(client: Any) -> None:
    with pytest.raises(KeyError, match="no such key"):
        dask.run(client, fail, processes=1)
    with pytest.raises(ArgumentError, match=r"client must be a dask\.distributed\.Client, got 3"):
        dask.run(3, fail, processes=1)
    with pytest.raises(ArgumentError, match="wait must be a number of seconds, 0 or more, got 'long'"):
        dask.run(client, fail, processes=1, wait="long")  # type: ignore[arg-type]


def test_a_cluster_without_workers() -> None:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as idle,
        pytest.raises(DistributedTimeoutError, match=r"the cluster has had no worker for 0\.2 seconds: start workers"),
    ):
        dask.run(idle, fail, processes=1, wait=0.2)


def test_a_lost_worker(client: Any) -> None:
    """The worker itself is killed; Dask starts another."""

    def kill_worker() -> str:
        import signal
        import time

        if os.environ["PULLBACK_RESTART"] == "0":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(100)
        return os.environ["PULLBACK_RESTART"]

    assert dask.run(client, kill_worker, processes=1, restarts=1) == ["1"]
    with pytest.raises(ProcessLostError, match=r"the worker .* is gone|its task on the worker"):
        dask.run(client, kill_worker, processes=1)


def test_arrays(client: Any) -> None:
    array = pytest.importorskip("dask.array")
    found = dask.run(client, own_rows, dask.read, array.arange(16, chunks=3), processes=2, devices_per_process=2)
    assert found == [(list(range(8)), 120.0, 8), (list(range(8, 16)), 120.0, 8)]
    with pytest.raises(ArgumentError, match=r"must be a dask\.array\.Array, got list"):
        dask.read([1], None)
    x = array.arange(16, chunks=3)
    with pytest.raises(ArgumentError, match="the shape of x must be known"):
        dask.read(x[x > 3], None)
