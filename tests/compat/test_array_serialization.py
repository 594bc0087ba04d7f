"""Arrays in files, by the names that Orbax and Flax import."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback.compat.extras.experimental.array_serialization import serialization
from pullback.core.errors import ArgumentError


@pytest.mark.parametrize("ocdbt", [False, True])
def test_what_is_written_is_read(tmp_path: Path, ocdbt: bool) -> None:
    pytest.importorskip("tensorstore")
    arrays = [pnp.arange(6.0).reshape(2, 3), pnp.ones(3, pnp.bfloat16), pnp.array([True, False]), pnp.arange(3)]
    specs = [serialization.get_tensorstore_spec(str(tmp_path / f"a{i}"), ocdbt) for i in range(4)]
    manager, done = serialization.GlobalAsyncCheckpointManager(), []
    manager.serialize(arrays, specs, on_commit_callback=lambda: done.append(1))
    manager.wait_until_finished()
    assert done == [1]
    read = manager.deserialize([x.sharding for x in arrays], specs)
    for found, x in zip(read, arrays, strict=True):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))
    (cut,) = manager.deserialize([arrays[0].sharding], specs[:1], [(3, 2)], [np.float16])
    np.testing.assert_array_equal(np.asarray(cut), np.array([[0, 1], [3, 4], [0, 0]], np.float16))


def test_what_goes_wrong_in_the_background_is_raised(tmp_path: Path) -> None:
    pytest.importorskip("tensorstore")
    manager = serialization.GlobalAsyncCheckpointManager()
    manager.serialize([pnp.ones(2)], [{"driver": "no such"}], on_commit_callback=print)
    with pytest.raises(ValueError, match="driver"):
        manager.wait_until_finished()
    manager.check_for_errors()


def test_a_path_that_is_not_absolute() -> None:
    with pytest.raises(ArgumentError, match="absolute path, got 'here'"):
        serialization.get_tensorstore_spec("here")
