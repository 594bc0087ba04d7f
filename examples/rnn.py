"""A recurrent network, trained on generated data: a scan within a compiled training step.

The network reads a sequence of numbers, some of which are marked, and has to give the sum of the marked ones. Its loss
after training is a small part of what it was; the process ends with a non-zero status if it is not. If matplotlib is
installed, the curve of the loss is drawn.

    python examples/rnn.py [loss.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pullback.numpy as jnp
from pullback import Array, jit, lax, random, tree, value_and_grad

LENGTH, WIDTH, BATCH, STEPS = 12, 32, 64, 600


def network(parameters: dict[str, Array], sequence: Array) -> Array:
    """The sum of the marked numbers, as the network sees it, for sequences of shape (LENGTH, BATCH, 2)."""

    def step(state: Array, element: Array) -> tuple[Array, None]:
        return jnp.tanh(state @ parameters["state"] + element @ parameters["input"] + parameters["bias"]), None

    start = jnp.zeros((sequence.shape[1], WIDTH))
    last, _ = lax.scan(step, start, sequence)
    return last @ parameters["output"]


def examples(key: Any) -> tuple[Array, Array]:
    """Sequences of numbers with marks, and the sums of the marked numbers."""
    numbers_key, marks_key = random.split(key)
    numbers = random.uniform(numbers_key, (LENGTH, BATCH), minval=-1.0, maxval=1.0)
    marks = random.bernoulli(marks_key, 0.3, (LENGTH, BATCH)).astype(jnp.float32)
    return jnp.stack([numbers, marks], axis=-1), (numbers * marks).sum(0)


def loss(parameters: dict[str, Array], key: Any) -> Array:
    sequences, sums = examples(key)
    return jnp.mean((network(parameters, sequences) - sums) ** 2)


@jit
def train(parameters: dict[str, Array], key: Any) -> tuple[dict[str, Array], Array]:
    """All training steps in one program: Adam, with a rate that falls to zero; and the loss at each step.

    The norm of a gradient is at most 1.
    """

    def step(carry: Any, inputs: Any) -> tuple[Any, Array]:
        parameters, first, second = carry
        i, key = inputs
        value, gradient = value_and_grad(loss)(parameters, key)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in tree.leaves(gradient)))
        gradient = tree.map(lambda g: g / jnp.maximum(norm, 1.0), gradient)
        first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, second, gradient)

        def moved(p: Array, m: Array, v: Array) -> Array:
            return p - 0.01 * (1 - i / (STEPS + 1)) * (m / (1 - 0.9**i)) / (jnp.sqrt(v / (1 - 0.99**i)) + 1e-8)

        return (tree.map(moved, parameters, first, second), first, second), value

    zeros = tree.map(jnp.zeros_like, parameters)
    inputs = jnp.arange(1.0, STEPS + 1), random.split(key, STEPS)
    (parameters, _, _), losses = lax.scan(step, (parameters, zeros, zeros), inputs)
    return parameters, losses


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
    pyplot.ylabel("mean squared error")
    pyplot.savefig(path)
    print(f"the loss is drawn in {path}")


def main() -> int:
    """Train the network; the exit status is 0 if it has learnt."""
    state_key, input_key, output_key, key = random.split(random.key(0), 4)
    parameters = {
        "state": random.normal(state_key, (WIDTH, WIDTH)) * 0.9 / jnp.sqrt(WIDTH),
        "input": random.normal(input_key, (2, WIDTH)) * 0.5,
        "bias": jnp.zeros(WIDTH),
        "output": random.normal(output_key, (WIDTH,)) / jnp.sqrt(WIDTH),
    }
    _, losses = train(parameters, key)
    first, last = float(losses[:20].mean()), float(losses[-20:].mean())
    print(f"mean squared error: {first:.4f} in the first 20 of {STEPS} steps, {last:.4f} in the last 20")
    draw(losses, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "rnn_loss.png")
    return 0 if last < first / 10 else 1


if __name__ == "__main__":
    sys.exit(main())
