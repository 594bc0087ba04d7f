"""Kinds of memory: on CPUs they are one memory, and arrays remember in which they are."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace
from typing import Any

import pytest

import pullback
import pullback.numpy as jnp
from pullback import P, checkpoint_policies, device_put, jit, lax, make_jaxpr, memory
from pullback.backends.compiler import client, programs
from pullback.backends.devices import devices
from pullback.backends.devices.meshes import Mesh
from pullback.core.jaxpr import ClosedJaxpr
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


# Programs for GPUs, which nothing here runs -------------------------------------------------------------------------

GPU = devices.Device("cuda", 0)


@pytest.fixture
def mesh_of_gpus(monkeypatch: Any) -> Mesh:
    """A mesh of two GPUs, which a client says have the memories ``"device"``, ``"pinned_host"`` and ``"disk"``."""
    kinds = [SimpleNamespace(kind=kind) for kind in ("pinned_host", "device", "disk")]
    raw = SimpleNamespace(
        device_kind="none", addressable_memories=lambda: kinds, default_memory=lambda: SimpleNamespace(kind="device")
    )
    members = [GPU, devices.Device("cuda", 1)]
    for member in members:
        monkeypatch.setattr(member, "bound", SimpleNamespace(raw=raw))
    return Mesh(members, ("i",))


def traced(f: Any) -> ClosedJaxpr:
    return make_jaxpr(f)(jnp.ones(2))


def moves(closed: ClosedJaxpr, **options: Any) -> list[str]:
    text = programs.Lowered(closed, "f", GPU, **options).module.text()
    return re.findall(r'_xla_buffer_placement = "(\w+)"', text)


def test_the_client_names_the_memories_of_a_device(mesh_of_gpus: Mesh) -> None:
    assert [m.kind for m in devices.Device("cuda", 0).addressable_memories()] == ["device", "pinned_host"]
    assert [m.kind for m in GPU.addressable_memories()] == ["device", "pinned_host", "disk"]
    for sharding in (SingleDeviceSharding(GPU), NamedSharding(mesh_of_gpus, P())):
        assert sharding.with_memory_kind("disk").memory_kind == "disk"
        with pytest.raises(ShardingError, match="'device', 'pinned_host', 'disk', got memory_kind='unpinned_host'"):
            sharding.with_memory_kind("unpinned_host")
    here = pullback.devices()[0]
    assert client.memory_kinds(here)[0] == client.bound(here).raw.default_memory().kind


def test_cotangents_move_to_the_other_memory() -> None:
    there = lambda x: device_put(jnp.sin(x), memory.Space.Host)
    assert moves(traced(pullback.grad(lambda x: jnp.cos(there(x)).sum()))) == ["pinned_host", "device"]
    assert moves(traced(lambda x: pullback.jvp(there, (x,), (x,)))) == ["pinned_host"] * 2
    step = lambda c, x: (jnp.sin(device_put(device_put(c * x, memory.Space.Host), memory.Space.Device)), None)
    loop = lambda x: lax.scan(step, 1.0, x)[0]
    assert moves(traced(pullback.grad(loop))) == ["pinned_host", "device"] * 2
    assert moves(traced(pullback.vmap(lambda x: loop(x[None])))) == ["pinned_host", "device"]
    assert moves(traced(lambda x: device_put(x, memory.Space.Any))) == []


def test_branches_and_loops_say_where_their_results_are() -> None:
    there = lambda x: device_put(x + 1, memory.Space.Host)
    back = lambda x: device_put(x, memory.Space.Device)
    programs_and_kinds = [
        (lambda x: lax.cond(x[0] > 0, there, there, x), "pinned_host"),
        (lambda x: lax.cond(x[0] > 0, there, back, x), "device"),
        (lambda x: lax.while_loop(lambda x: x[0] < 9, there, x), "pinned_host"),
        (lambda x: lax.scan(lambda c, y: (c, there(y)), 0.0, x)[1], "pinned_host"),
        (lambda x: back(jit(there)(x)) * 2, "device"),
    ]
    for f, expected in programs_and_kinds:
        text = programs.Lowered(traced(f), "f", GPU).module.text()
        assert re.findall(r'@main.*memory_kind = "(\w+)"', text) == [expected]


def test_programs_over_gpus_say_where_inputs_and_results_are(mesh_of_gpus: Mesh) -> None:
    on_gpus = NamedSharding(mesh_of_gpus, P("i"))
    host = on_gpus.with_memory_kind("pinned_host")
    lowered = programs.Lowered(
        traced(lambda x: x * 2), "f", on_gpus.assignment, {0: 0}, in_placements=[host], out_placements=[on_gpus]
    )
    main = lowered.module.text().split("@main")[1]
    assert re.findall(r"memory_kind = \"(\w+)\"|(donor|alias)|placement = \"(\w+)\"", main) == [
        ("pinned_host", "", ""), ("device", "", ""), ("", "", "device")
    ]  # fmt: skip
    same = programs.Lowered(
        traced(lambda x: x * 2), "f", on_gpus.assignment, {0: 0}, in_placements=[host], out_placements=[host]
    )
    assert "jax.buffer_donor" in same.module.text()


@pytest.mark.usefixtures("mesh_of_gpus")
def test_results_in_the_memory_of_the_host_are_committed_there() -> None:
    lowered = programs.Lowered(traced(lambda x: (device_put(x, memory.Space.Host), x + 1)), "f", GPU, asked_for=False)
    executable: Any = SimpleNamespace(device=GPU, run=None, in_shardings=[], out_shardings=[])
    first, second = programs.Program(lowered, executable).out_signatures
    assert first.placement == SingleDeviceSharding(GPU, memory_kind="pinned_host").placement
    assert second.placement is None


def test_offloaded_residuals_of_an_inner_loop_move_together() -> None:
    policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    loop = lambda x: lax.scan(lambda c, _: (jnp.sin(c @ c), None), jnp.outer(x, x), None, length=3)[0].sum()
    closed = traced(pullback.grad(pullback.checkpoint(loop, policy=policy)))
    assert moves(closed) == ["pinned_host", "device"]
    text = programs.Lowered(closed, "f", GPU).module.text()
    assert len(re.findall(r"annotate_device_placement.*-> tensor<3x2x2xf32>", text)) == 2


def test_offloading_changes_no_program_for_cpus() -> None:
    texts = []
    policy = checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    for chosen in (policy, checkpoint_policies.dots_with_no_batch_dims_saveable):
        f = pullback.checkpoint(lambda x: jnp.sin(jnp.outer(x, x) @ jnp.outer(x, x)), policy=chosen)
        gradient = jit(pullback.grad(lambda x, f=f: f(x).sum()))
        assert kind(pullback.grad(lambda x, f=f: f(x).sum())(jnp.ones(2))) == "device"
        texts.append(gradient.lower(jnp.ones(2)).as_text())
    assert texts[0] == texts[1]
