"""Jobs on a cluster of Ray, on this machine; skipped where Ray is not installed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pullback.core.errors import ArgumentError
from pullback.distributed import ray as ours
from tests.distributed.programs import fail, own_rows, train

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def test_a_job_goes_on_after_a_loss(cluster: Any, tmp_path: Path) -> None:
    found = ours.run(train, str(tmp_path), 6, processes=2, devices_per_process=2, restarts=1)
    assert found == [(4, 6 * 1.5**6, "1")] * 2


def test_errors(cluster: Any) -> None:
    with pytest.raises(KeyError, match="no such key"):
        ours.run(fail, processes=1)
    with pytest.raises(ArgumentError, match=r"has not reserved .* for each of 7 processes within 2 seconds"):
        ours.run(fail, processes=7, wait=2)


def test_data_sets(cluster: Any) -> None:
    data = pytest.importorskip("ray.data")
    data.DataContext.get_current().execution_options.preserve_order = True
    numbers = data.range(16, override_num_blocks=5).materialize()
    found = ours.run(own_rows, ours.read, numbers, "id", processes=2, devices_per_process=2)
    assert found == [(list(range(8)), 120.0, 8), (list(range(8, 16)), 120.0, 8)]
    with pytest.raises(ArgumentError, match="expected rows with the column 'x', got 16 rows of"):
        ours.read(numbers, "x", None)
    with pytest.raises(ArgumentError, match="dataset must be materialized"):
        ours.read(data.range(3), "id", None)
