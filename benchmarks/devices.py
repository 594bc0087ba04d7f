"""What is measured of named axes, and of programs over two devices: virtual ones, into which the processor is divided.

As in ``compiled``: where tracing and lowering are timed, every repetition is a new function.
"""

import itertools
from typing import Any

from benchmarks.compiled import Task
from benchmarks.libraries import Library
from benchmarks.problems import Call
from benchmarks.shared import network as _mlp
from benchmarks.shared import normal as _normal

DEVICES = 2


def named_sum(library: Library) -> Call:
    """Each of 8 rows over the sum of all, by a collective."""
    transforms, x = library.transforms, _normal(library, 8, 4)
    lax = transforms.lax

    def share(row: Any) -> Any:
        return row / lax.psum(row * row, "rows")

    return lambda: transforms.vmap(share, axis_name="rows")(x)


def _mesh(library: Library) -> Any:
    """Devices in a row; JAX by itself makes axes whose shardings are parts of types."""
    transforms = library.transforms
    return transforms.make_mesh((DEVICES,), ("data",), axis_types=(transforms.sharding.AxisType.Auto,))


def trace_and_lower_mapped_step(library: Library) -> Task:
    """Tracing and lowering of a training step of a network over two devices, each with its part of the batch."""
    loss, parameters, x = _mlp(library, width=10, batch=4, layers=10)
    transforms, mesh, numbers = library.transforms, _mesh(library), itertools.count()
    split, whole = transforms.sharding.PartitionSpec("data"), transforms.sharding.PartitionSpec()

    def lowered() -> Any:
        rate = 1e-3 + 1e-9 * next(numbers)

        def step(parameters: Any, x: Any) -> Any:
            gradient = transforms.grad(lambda p: transforms.lax.pmean(loss(p, x), "data"))(parameters)
            return transforms.tree.map(lambda p, g: p - rate * g, parameters, gradient)

        mapped = transforms.shard_map(step, mesh=mesh, in_specs=(whole, split), out_specs=whole)
        return transforms.jit(mapped).lower(parameters, x)

    return Task(lowered, check=lambda: lowered().compile()(parameters, x))


def dispatch_over_devices(library: Library, count: int) -> Task:
    """A compiled function of ``count`` arrays over two devices, with as many results there."""
    transforms, mesh = library.transforms, _mesh(library)
    split = transforms.NamedSharding(mesh, transforms.sharding.PartitionSpec("data"))
    arrays = [transforms.device_put(_normal(library, 8, seed=i), split) for i in range(count)]
    add_one = transforms.jit(lambda arrays: [x + 1 for x in arrays])
    return Task(lambda: add_one(arrays), waits_once=True)
