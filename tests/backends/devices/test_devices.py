"""Devices and their memories."""

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback.sharding import AbstractDevice, AbstractMesh, AxisType


def test_memories_of_a_device() -> None:
    (device,) = pullback.local_devices()[:1]
    assert device.addressable_memories()[0] == device.default_memory() == device.memory("device")
    assert [memory.kind for memory in device.addressable_memories()] == ["device", "pinned_host", "unpinned_host"]
    memory = device.default_memory()
    assert (memory.kind, memory.platform, memory.process_index) == ("device", device.platform, 0)
    assert memory.addressable_by_devices() == [device]
    with pytest.raises(RuntimeError, match="has the memories 'device', 'pinned_host', 'unpinned_host', got 'disk'"):
        device.memory("disk")
    assert device.client.platform == device.platform


SECOND_DEVICE = """
import numpy as np
import pullback
import pullback.numpy as jnp

f = pullback.jit(lambda x: 2 * x)
f(f(jnp.ones(3)))
with pullback.default_device(pullback.devices()[1]):
    y = pullback.jit(lambda x: x + 1)(np.ones(3, np.float32))
assert y.device == pullback.devices()[1]
np.testing.assert_array_equal(f(y), [4, 4, 4])
"""


def test_programs_look_at_devices_once_a_second_one_is_in_use():
    """A program that was compiled, and called, before that takes arrays that are on the other device."""
    environment = {**os.environ, "PULLBACK_NUM_CPU_DEVICES": "2"}
    subprocess.run([sys.executable, "-c", SECOND_DEVICE], env=environment, check=True)


def test_a_mesh_with_other_types_of_axes() -> None:
    mesh = AbstractMesh((2, 3), ("x", "y"))
    changed = mesh.update_axis_types({"y": AxisType.Explicit})
    assert changed.axis_types == (AxisType.Auto, AxisType.Explicit)
    assert changed.shape == mesh.shape
    assert mesh.abstract_device is None
    with pytest.raises(ValueError, match="there is no axis 'z' among"):
        mesh.update_axis_types({"z": AxisType.Auto})


def test_the_kind_of_device_of_a_mesh() -> None:
    kind = AbstractDevice("gpu", 1, "cuda")
    mesh = AbstractMesh((4,), ("x",), abstract_device=kind)
    assert mesh.abstract_device == kind
    assert mesh != AbstractMesh((4,), ("x",))
    assert mesh.update(axis_sizes=(2,)).abstract_device == kind
    assert repr(mesh) == ("AbstractMesh('x': 4, axis_types=(Auto,), device_kind=gpu, num_cores=1, platform=cuda)")
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    here = pullback.make_mesh((1,), ("x",)).abstract_mesh
    assert here.abstract_device == AbstractDevice("cpu", None, "cpu")
    assert here.update(axis_types=(AxisType.Auto,)).abstract_device == here.abstract_device
    again = AbstractMesh((1,), ("x",), here.axis_types, abstract_device=here.abstract_device)
    assert again == here
    assert hash(again) == hash(here)
    assert pickle.loads(pickle.dumps(here.abstract_device)) == again.abstract_device == here.abstract_device
    with pytest.raises(ValueError, match="must be an AbstractDevice or None, got 'cuda'"):
        AbstractMesh((4,), ("x",), abstract_device="cuda")  # type: ignore[arg-type]

    @pullback.jit
    def platform(x: Any) -> Any:
        found = pullback.sharding.get_abstract_mesh().abstract_device.platform
        return x + {"cpu": 1, "cuda": 2}[found]

    with pullback.sharding.use_abstract_mesh(mesh):
        assert "dense<2.0" in platform.lower(1.0).as_text()
    with pullback.sharding.use_abstract_mesh(mesh.update(abstract_device=AbstractDevice("cpu", None, "cpu"))):
        assert "dense<1.0" in platform.lower(1.0).as_text()


def test_shards_of_what_is_computed_over_a_mesh_of_one_device() -> None:
    rows = pullback.NamedSharding(pullback.make_mesh((1,), ("i",)), pullback.P("i"))
    x = pullback.jit(lambda x: x + 1)(pullback.device_put(jnp.arange(3.0), rows))
    (shard,) = x.addressable_shards
    assert (shard.data.tolist(), shard.replica_id) == ([1.0, 2.0, 3.0], 0)
