"""Programs that move values between memories: where those for GPUs and TPUs say so, without a GPU.

``python -m tests.recorded memories`` records those of JAX in ``memories.json``; ``tests/recorded/test_memories.py``
compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("memories.json")
OPERAND = np.ones((4, 4), np.float32)


def _to_host_and_back(lib: Any) -> Any:
    space = lib.memory.Space
    return lambda x: lib.numpy.sin(lib.device_put(lib.device_put(x * 2, space.Host), space.Device))


def _result(lib: Any) -> Any:
    return lambda x: (lib.device_put(x * 2, lib.memory.Space.Host), x + 1)


def _batch(lib: Any) -> Any:
    return lib.vmap(lambda x: lib.numpy.sin(lib.device_put(x * 2, lib.memory.Space.Host)))


def _shardings(lib: Any) -> Any:
    s = lib.sharding
    device = s.NamedSharding(s.Mesh(np.array(lib.devices()[:1]), ("a",)), s.PartitionSpec("a"))
    host = device.with_memory_kind("pinned_host")
    return lambda x: lib.device_put(lib.device_put(x * 2, host), device) + 1


def _inner(lib: Any) -> Any:
    return lambda x: lib.jit(lambda y: lib.device_put(y * 2, lib.memory.Space.Host))(x)


def _only_device(lib: Any) -> Any:
    return lambda x: lib.device_put(x * 2, lib.memory.Space.Device) + 1


def _dots(lib: Any) -> Any:
    policy = lib.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    f = lib.checkpoint(lambda x: lib.numpy.sin(lib.numpy.sin(x) @ x), policy=policy)
    return lib.grad(lambda x: f(x).sum())


def _names(lib: Any) -> Any:
    name = import_module(f"{lib.__name__}.ad_checkpoint").checkpoint_name
    policy = lib.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["z"], names_which_can_be_offloaded=["y"], offload_src="device",
        offload_dst="pinned_host",
    )  # fmt: skip

    def step(c: Any, _: Any) -> Any:
        return lib.numpy.sin(name(lib.numpy.sin(name(lib.numpy.sin(c), "y")), "z")), None

    return lib.grad(lambda x: lib.lax.scan(lib.checkpoint(step, policy=policy), x, None, length=3)[0].sum())


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "to the host and back": _to_host_and_back,
    "a result": _result,
    "a batch": _batch,
    "shardings": _shardings,
    "an inner program": _inner,
    "the device alone": _only_device,
    "offloaded products": _dots,
    "offloaded names in a loop": _names,
}


def exported(lib: Any, name: str, platform: str) -> str:
    """The text of a program for a platform; that named ``in and out`` is sharded in the memory of the host."""
    if name == "in and out":
        host = lib.sharding.SingleDeviceSharding(lib.devices()[0], memory_kind="pinned_host")
        f = lib.jit(lambda x: x * 2, in_shardings=host, out_shardings=host)
        operand = lib.ShapeDtypeStruct((4, 4), np.float32, sharding=host)
    else:
        f, operand = lib.jit(PROGRAMS[name](lib)), OPERAND
    text: str = import_module(f"{lib.__name__}.export").export(f, platforms=[platform])(operand).mlir_module()
    return text


NAMES = (*PROGRAMS, "in and out")


def memories(text: str) -> dict[str, list[str]]:
    """The moves in a program, in order, and the memories of inputs and of results where the program names them."""
    moves = re.findall(r"custom_call @annotate_device_placement\(%[\w#]+\) (\{.*\} : \(.*\) -> tensor<\w+>)", text)
    (main,) = re.findall(r"func\.func public @main(.*)", text)
    inputs, _, results = main.partition(" -> ")
    found = [re.findall(r'mhlo\.memory_kind = "(\w+)"', side) for side in (inputs, results)]
    return {"moves": moves, "inputs": found[0], "results": found[1]}
