"""A convolutional network, trained on generated images: two convolutions, pooling, and statistics of the batch.

The images show a disc, a ring, a square or a cross, somewhere, with noise; the network says which. In training each
channel is normalised by the mean and variance of its batch, which are kept, as moving averages, for the test. The
process ends with a non-zero status if the network has not learnt. If matplotlib is installed, the curve of the loss is
drawn.

    python examples/convolution.py [loss.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pullback.numpy as jnp
from pullback import Array, jit, lax, nn, random, tree, value_and_grad

SIZE, BATCH, STEPS, CLASSES = 16, 64, 200, 4
AXES = ("NHWC", "HWIO", "NHWC")

Parameters = dict[str, Array]
Statistics = dict[str, tuple[Array, Array]]


def images(key: Any, count: int) -> tuple[Array, Array]:
    """Images of shape (count, SIZE, SIZE, 1), and what they show: 0 to 3."""
    kinds_key, place_key, radius_key, noise_key = random.split(key, 4)
    kinds = random.randint(kinds_key, (count,), 0, CLASSES)
    centre = random.uniform(place_key, (count, 2, 1, 1), minval=5.0, maxval=SIZE - 6.0)
    radius = random.uniform(radius_key, (count, 1, 1), minval=3.5, maxval=5.0)
    y = jnp.abs(jnp.arange(SIZE)[:, None] - centre[:, 0])
    x = jnp.abs(jnp.arange(SIZE)[None, :] - centre[:, 1])
    far = jnp.sqrt(y**2 + x**2)
    disc, square = far < radius, jnp.maximum(y, x) < 0.9 * radius
    ring = disc & (far > radius - 1.5)
    cross = (jnp.minimum(y, x) < 1.0) & (jnp.maximum(y, x) < radius)
    shown = jnp.select([kinds[:, None, None] == i for i in range(3)], [disc, ring, square], cross)
    noise = 0.3 * random.normal(noise_key, (count, SIZE, SIZE))
    return (shown + noise)[..., None], kinds


def normalised(x: Array, mean: Array, variance: Array, scale: Array, shift: Array) -> Array:
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift


def network(parameters: Parameters, x: Array, known: Statistics | None) -> tuple[Array, Statistics]:
    """A score for each class; the statistics are those of the batch, or ``known`` ones."""
    statistics = {}
    for name in ("first", "second"):
        x = lax.conv_general_dilated(x, parameters[name], (1, 1), "SAME", dimension_numbers=AXES)
        mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if known is None else known[name]
        statistics[name] = mean, variance
        x = normalised(x, mean, variance, parameters[f"{name} scale"], parameters[f"{name} shift"])
        x = nn.max_pool(nn.relu(x), (2, 2), (2, 2))
    x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(len(x), -1)
    return x @ parameters["last"] + parameters["bias"], statistics


def loss(parameters: Parameters, x: Array, kinds: Array) -> tuple[Array, Statistics]:
    scores, statistics = network(parameters, x, None)
    return -jnp.mean(jnp.sum(nn.one_hot(kinds, CLASSES) * nn.log_softmax(scores), axis=-1)), statistics


@jit
def step(state: Any, key: Any) -> tuple[Any, Array]:
    """A training step with momentum; the moving averages of the statistics; and the loss."""
    parameters, momentum, known = state
    (value, statistics), gradient = value_and_grad(loss, has_aux=True)(parameters, *images(key, BATCH))
    momentum = tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
    parameters = tree.map(lambda p, m: p - 0.02 * m, parameters, momentum)
    known = tree.map(lambda old, new: 0.9 * old + 0.1 * new, known, statistics)
    return (parameters, momentum, known), value


def draw(losses: Array, path: Path) -> None:
    """The curve of the loss as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.semilogy(losses)
    pyplot.xlabel("step")
    pyplot.ylabel("cross-entropy")
    pyplot.savefig(path)
    print(f"the loss is drawn in {path}")


def main() -> int:
    """Train the network and test it; the exit status is 0 if it has learnt."""
    *keys, train_key, test_key = random.split(random.key(0), 5)
    sizes = {"first": (3, 3, 1, 8), "second": (3, 3, 8, 16), "last": (64, CLASSES)}
    parameters: Parameters = {
        name: random.normal(key, shape) * jnp.sqrt(2 / jnp.prod(jnp.array(shape[:-1])))
        for (name, shape), key in zip(sizes.items(), keys, strict=True)
    }
    known: Statistics = {}
    for name in ("first", "second"):
        width = sizes[name][-1]
        parameters |= {f"{name} scale": jnp.ones(width), f"{name} shift": jnp.zeros(width)}
        known[name] = jnp.zeros(width), jnp.ones(width)
    parameters["bias"] = jnp.zeros(CLASSES)
    state = parameters, tree.map(jnp.zeros_like, parameters), known
    losses = []
    for key in random.split(train_key, STEPS):
        state, value = step(state, key)
        losses.append(value)
    parameters, _, known = state
    x, kinds = images(test_key, 512)
    scores, _ = jit(network)(parameters, x, known)
    right = float((scores.argmax(-1) == kinds).mean())
    first, last = (float(jnp.stack(part).mean()) for part in (losses[:10], losses[-10:]))
    print(f"cross-entropy: {first:.4f} in the first 10 of {STEPS} steps, {last:.4f} in the last 10")
    print(f"of 512 new images {100 * right:.1f} % are recognised")
    draw(jnp.stack(losses), Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "convolution.png")
    return 0 if last < first / 4 and right > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
