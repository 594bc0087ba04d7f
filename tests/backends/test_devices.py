"""Devices and their memories."""

import pytest

import pullback


def test_memories_of_a_device() -> None:
    (device,) = pullback.local_devices()[:1]
    assert device.addressable_memories() == [device.default_memory()] == [device.memory("device")]
    memory = device.default_memory()
    assert (memory.kind, memory.platform, memory.process_index) == ("device", device.platform, 0)
    assert memory.addressable_by_devices() == [device]
    with pytest.raises(RuntimeError, match="one kind of memory, 'device', got 'pinned_host'"):
        device.memory("pinned_host")
    assert device.client.platform == device.platform
