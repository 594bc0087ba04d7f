"""A transformer over eight devices in three ways: data-parallel, fully sharded and tensor-parallel training.

The program is the same in all three; only the shardings of the parameters and of the batch differ, and the compiler
adds the collectives. The losses agree with those of one device up to rounding. For each way the program prints how much
of the parameters a device holds, and what each step moves between the devices. The processor is divided into eight
devices. The process ends with a non-zero status if the ways disagree, or if the network has not learnt.

    python examples/sharded_transformer.py
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import Array, NamedSharding, P, analysis, jit, nn, random, tree, value_and_grad
from pullback.sharding import AxisType

DEVICES, WIDTH, HEADS, BLOCKS, LETTERS, LENGTH, BATCH, STEPS, RATE = 8, 64, 4, 2, 12, 24, 32, 60, 0.1

Parameters = dict[str, Any]

# Which axis of the mesh divides each axis of a matrix. Fully sharded (Rajbhandari et al. 2020): each device has a part
# of every matrix. Tensor-parallel (Shoeybi et al. 2019): the heads of attention and the hidden units are divided.
WHOLE = {name: P() for name in ("letters", "positions", "query", "key", "value", "mixed", "wide", "narrow")}
FULLY = {
    **WHOLE, **dict.fromkeys(("query", "key", "value", "wide"), P("data")), "mixed": P(None, None, "data"),
    "narrow": P(None, "data"),
}  # fmt: skip
TENSOR = {
    **WHOLE, **dict.fromkeys(("query", "key", "value"), P(None, "heads")), "mixed": P("heads"),
    "wide": P(None, "heads"), "narrow": P("heads"),
}  # fmt: skip
WAYS = {
    "data-parallel": ({"data": DEVICES}, WHOLE),
    "fully sharded": ({"data": DEVICES}, FULLY),
    "tensor-parallel": ({"data": DEVICES // HEADS, "heads": HEADS}, TENSOR),
}


def initial(key: Array) -> Parameters:
    """Parameters; the axis of the heads is one of its own."""
    size = WIDTH // HEADS
    shapes = {
        "query": (WIDTH, HEADS, size), "key": (WIDTH, HEADS, size), "value": (WIDTH, HEADS, size),
        "mixed": (HEADS, size, WIDTH), "wide": (WIDTH, 4 * WIDTH), "narrow": (4 * WIDTH, WIDTH),
    }  # fmt: skip
    outer, *keys = random.split(key, BLOCKS + 1)

    def drawn(key: Array, shapes: dict[str, tuple[int, ...]]) -> Parameters:
        keys = random.split(key, len(shapes))
        return {name: 0.1 * random.normal(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}

    around = drawn(outer, {"letters": (LETTERS, WIDTH), "positions": (LENGTH, WIDTH)})
    return {**around, "blocks": [drawn(key, shapes) for key in keys]}


def network(parameters: Parameters, letters: Array) -> Array:
    """A score for each next letter; ``letters`` are of shape (batch, length)."""
    x = parameters["letters"][letters] + parameters["positions"]
    for block in parameters["blocks"]:
        y = nn.standardize(x)
        query, key, value = (jnp.einsum("blw,whs->blhs", y, block[name]) for name in ("query", "key", "value"))
        seen = nn.dot_product_attention(query, key, value, is_causal=True)
        x = x + jnp.einsum("blhs,hsw->blw", seen, block["mixed"])
        x = x + nn.gelu(nn.standardize(x) @ block["wide"]) @ block["narrow"]
    return nn.standardize(x) @ parameters["letters"].T


def loss(parameters: Parameters, text: Array) -> Array:
    """The mean of minus the logarithm of the probability of each letter that comes next."""
    scores = nn.log_softmax(network(parameters, text[:, :-1]))
    return -jnp.mean(jnp.sum(nn.one_hot(text[:, 1:], LETTERS) * scores, axis=-1))


def step(parameters: Parameters, text: Array) -> tuple[Parameters, Array]:
    """A step of gradient descent, and the loss before it."""
    value, gradient = value_and_grad(loss)(parameters, text)
    return tree.map(lambda p, g: p - RATE * g, parameters, gradient), value


def batch(number: int) -> np.ndarray:
    """Texts in which each letter is the one before it and the first of the text, added."""
    first = np.random.default_rng(number).integers(1, LETTERS, (BATCH, 1))
    return first * np.arange(1, LENGTH + 2) % LETTERS


def train(parameters: Parameters, run: Any) -> list[float]:
    losses = []
    for number in range(STEPS):
        parameters, value = run(parameters, batch(number))
        losses.append(float(value))
    return losses


def main() -> int:
    """Train on one device and in the three ways; the exit status is 0 if they agree."""
    pullback.config.update("num_cpu_devices", DEVICES)  # before the first program
    parameters = initial(random.key(0))
    expected = train(parameters, jit(step))
    print(f"one device: loss {expected[0]:.4f} at first, {expected[-1]:.4f} after {STEPS} steps")
    agree = expected[-1] < 0.5 * expected[0]
    for way, (sizes, specs) in WAYS.items():
        mesh = pullback.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
        of = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
        divided = tree.map_with_path(lambda path, _, of=of: of[path[-1].key], parameters)
        rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
        run = jit(step, in_shardings=(divided, rows), out_shardings=(divided, whole))
        start = pullback.device_put(parameters, divided)
        held = sum(leaf.addressable_shards[0].data.nbytes for leaf in tree.leaves(start))
        losses = train(start, run)
        off = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        print(f"{way}: loss {losses[-1]:.4f}, off by at most {off:.0e}; {held / 1e3:.0f} kB of parameters on a device")
        print("  " + analysis.cost(run)(parameters, batch(0)).describe(bandwidth=50e9).replace("\n", "\n  "))
        agree &= off < 1e-4  # rounding, which the steps carry on
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
