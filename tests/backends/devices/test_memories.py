"""Kinds of memory: on CPUs they are one memory, and arrays remember in which they are."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, device_put, jit, memory
from pullback.errors import ShardingError
from pullback.sharding import NamedSharding, SingleDeviceSharding

DEVICE = NamedSharding(pullback.make_mesh((1,), ("i",)), P("i"))
HOST = DEVICE.with_memory_kind("pinned_host")
ALONE = SingleDeviceSharding(pullback.devices()[0], memory_kind="pinned_host")


def kind(x: Any) -> Any:
    return x.sharding.memory_kind


def test_shardings_have_a_kind_of_memory() -> None:
    assert (DEVICE.memory_kind, HOST.memory_kind) == ("device", "pinned_host")
    assert NamedSharding(DEVICE.mesh, P("i"), memory_kind="device") == DEVICE
    assert HOST != DEVICE
    assert HOST.with_memory_kind("device") == DEVICE
    assert HOST.update(spec=P()).memory_kind == "pinned_host"
    assert repr(HOST).endswith("spec=P('i',), memory_kind=pinned_host)")
    assert repr(ALONE) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=pinned_host)"
    assert SingleDeviceSharding(pullback.devices()[0]) != ALONE
    for sharding in (HOST, ALONE, DEVICE):
        assert pickle.loads(pickle.dumps(sharding)) == sharding
    for make in (DEVICE.with_memory_kind, ALONE.with_memory_kind):
        with pytest.raises(ShardingError, match=r"'device', 'pinned_host', 'unpinned_host', got memory_kind='disk'"):
            make("disk")


@pytest.mark.parametrize("sharding", [HOST, ALONE])
def test_arrays_remember_their_memory(sharding: Any) -> None:
    x = device_put(jnp.arange(4.0), sharding)
    assert x.sharding == sharding
    assert x.tolist() == [0, 1, 2, 3]
    assert kind(device_put(x, pullback.devices()[0])) == "device"
    assert kind(jnp.sin(x)) == kind(x[1:]) == kind(jnp.concatenate([x, x])) == kind(2 * x) == "pinned_host"
    assert kind(x + device_put(jnp.ones(4), sharding.with_memory_kind("device"))) == "device"
    assert kind(jit(lambda x: jnp.cos(x) * 2)(x)) == "pinned_host"
    compiled = jit(jnp.square, out_shardings=sharding).lower(jnp.ones(4)).compile()
    assert compiled.output_shardings.memory_kind == kind(compiled(jnp.ones(4))) == "pinned_host"


def test_programs_move_between_memories() -> None:
    x = device_put(jnp.arange(4.0), HOST)
    moved = jit(lambda x: device_put(x, DEVICE) * 2)
    assert moved(x).tolist() == [0, 2, 4, 6]
    assert kind(moved(x)) == "device"
    assert kind(jit(lambda x: device_put(x * 2, HOST))(device_put(x, DEVICE))) == "pinned_host"
    assert kind(pullback.grad(lambda x: (device_put(x, DEVICE) ** 2).sum())(x)) == "pinned_host"
    assert kind(jit(lambda x: x, out_shardings=DEVICE)(x)) == "device"
    doubled = jit(lambda x: 2 * x, in_shardings=DEVICE, out_shardings=HOST)
    assert kind(doubled(jnp.ones(4))) == "pinned_host"
    other = jit(lambda x: 2 * x, in_shardings=DEVICE, out_shardings=DEVICE)  # the same text
    assert kind(other(jnp.ones(4))) == "device"


def test_spaces() -> None:
    x = device_put(jnp.ones(2), memory.Space.Host)
    assert kind(x) == "pinned_host"
    assert kind(device_put(x, memory.Space.Device)) == "device"
    assert kind(device_put(x, memory.Space.Any)) == "pinned_host"
    assert jit(lambda x: device_put(x, memory.Space.Host) + 1)(jnp.ones(2)).tolist() == [2, 2]
