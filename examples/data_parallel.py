"""Data-parallel training over several devices, in three ways that agree with one device.

Each device has all parameters and a part of the batch. The gradients of the parts are averaged by a collective, which
is written in the program (``pmap``, ``shard_map``) or added by the compiler (``jit`` of arrays over a mesh). The
processor is divided into four devices. The process ends with a non-zero status if two of the ways differ by more than
rounding.

    python examples/data_parallel.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import Array, NamedSharding, P, grad, jit, lax, pmap, random, shard_map, tree, value_and_grad

DEVICES, BATCH, STEPS, RATE = 4, 64, 100, 0.2

Parameters = list[tuple[Array, Array]]
Step = Callable[[Parameters, Array, Array], tuple[Parameters, Array]]


def network(parameters: Parameters, x: Array) -> Array:
    """The result for inputs of shape (batch, 2), of shape (batch,)."""
    *hidden, (weight, bias) = parameters
    for w, b in hidden:
        x = jnp.tanh(x @ w + b)
    return (x @ weight + bias)[:, 0]


def loss(parameters: Parameters, x: Array, y: Array) -> Array:
    return jnp.mean((network(parameters, x) - y) ** 2)


def moved(parameters: Parameters, gradient: Parameters) -> Parameters:
    return tree.map(lambda p, g: p - RATE * g, parameters, gradient)


def initial() -> Parameters:
    sizes = (2, 32, 32, 1)
    keys = random.split(random.key(0), len(sizes) - 1)
    return [
        (random.normal(key, (rows, columns)) / np.sqrt(rows), jnp.zeros(columns))
        for key, rows, columns in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Points in a square, and a function of them to be learnt."""
    generator = np.random.default_rng(0)
    for _ in range(STEPS):
        x = generator.uniform(-1, 1, (BATCH, 2)).astype(np.float32)
        yield x, np.sin(3 * x[:, 0]) * x[:, 1]


def one_device() -> tuple[Parameters, float]:
    """What the others have to agree with."""

    @jit
    def step(parameters: Parameters, x: Array, y: Array) -> tuple[Parameters, Array]:
        value, gradient = value_and_grad(loss)(parameters, x, y)
        return moved(parameters, gradient), value

    parameters = initial()
    for x, y in batches():
        parameters, value = step(parameters, x, y)
    return parameters, float(value)


def by_pmap() -> tuple[Parameters, float]:
    """One program a device. Parameters and batch have a leading axis of devices."""

    def step(parameters: Parameters, x: Array, y: Array) -> tuple[Parameters, Array]:
        value, gradient = value_and_grad(loss)(parameters, x, y)
        return moved(parameters, lax.pmean(gradient, "batch")), lax.pmean(value, "batch")

    mapped = pmap(step, axis_name="batch")
    parameters = tree.map(lambda p: jnp.stack([p] * DEVICES), initial())
    for x, y in batches():
        parameters, values = mapped(parameters, x.reshape(DEVICES, -1, 2), y.reshape(DEVICES, -1))
    return tree.map(lambda p: p[0], parameters), float(values[0])


def by_shard_map() -> tuple[Parameters, float]:
    """One program a device, and a specification of what each device sees of each array.

    The loss is averaged within the function that is differentiated. Its parameters do not vary over the devices, and so
    their gradient is summed over the devices without another word.
    """
    mesh = pullback.make_mesh((DEVICES,), ("batch",))

    def step(parameters: Parameters, x: Array, y: Array) -> tuple[Parameters, Array]:
        value, gradient = value_and_grad(lambda p: lax.pmean(loss(p, x, y), "batch"))(parameters)
        return moved(parameters, gradient), value

    mapped = jit(shard_map(step, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs=P()))
    parameters = initial()
    for x, y in batches():
        parameters, value = mapped(parameters, x, y)
    return parameters, float(value)


def by_sharded_jit() -> tuple[Parameters, float]:
    """The program of one device. Its arguments say where they are, and the compiler adds the collectives."""
    mesh = pullback.make_mesh((DEVICES,), ("batch",))
    everywhere, parts = NamedSharding(mesh, P()), NamedSharding(mesh, P("batch"))

    @jit
    def step(parameters: Parameters, x: Array, y: Array) -> tuple[Parameters, Array]:
        return moved(parameters, grad(loss)(parameters, x, y)), loss(parameters, x, y)

    parameters = pullback.device_put(initial(), everywhere)
    for x, y in batches():
        parameters, value = step(parameters, pullback.device_put(x, parts), pullback.device_put(y, parts))
    return parameters, float(value)


def distance(a: Parameters, b: Parameters) -> float:
    """The largest difference of two elements."""
    return max(float(np.abs(np.asarray(x) - np.asarray(y)).max()) for x, y in zip(tree.leaves(a), tree.leaves(b)))


def main() -> int:
    """Train in all ways; the exit status is 0 if they agree."""
    pullback.config.update("num_cpu_devices", DEVICES)  # before the first program
    expected, value = one_device()
    print(f"one device: loss {value:.6f} after {STEPS} steps")
    agree = True
    for way in (by_pmap, by_shard_map, by_sharded_jit):
        parameters, value = way()
        off = distance(parameters, expected)
        print(f"{way.__name__} over {DEVICES} devices: loss {value:.6f}, parameters differ by {off:.1e}")
        agree &= off < 1e-4  # rounding, which the steps carry on
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
