"""A network of graphs of unequal sizes, without padding each: neighbours and nodes are ragged arrays.

A graph has 5 to 24 nodes, and a node any number of neighbours. Nodes gather the states of their neighbours, weighted by
a softmax over each neighbourhood (graph attention, Velickovic et al. 2018), in four rounds; the mean over the nodes of
each graph is the prediction. It learns the logarithm of the number of spanning trees, per node, which is the
determinant of the reduced Laplacian (Kirchhoff 1847). A batch of graphs is one large graph, so that ``jit`` compiles
the training step once for all batches, whatever their sizes. The process ends with a non-zero status if the network
explains less than 95 % of the variance of graphs that it has not seen, or if the step was traced twice. If matplotlib
is installed, predictions are drawn.

    python examples/ragged_graph_network.py [graphs.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as jnp
from pullback import Array, jit, nn, random, tree, value_and_grad
from pullback.ragged import Ragged, elementwise

GRAPHS, BATCH, STEPS, WIDTH, ROUNDS = 1024, 32, 600, 24, 4
NODES, EDGES = 24 * BATCH, 120 * BATCH
"""The most nodes and directed edges of a batch: the capacity of its arrays."""


class Batch(NamedTuple):
    """Graphs as one: the neighbours of each node, the nodes of each graph, and what to learn."""

    neighbours: Ragged
    sizes: Array
    target: Array


def graph(generator: np.random.Generator) -> tuple[list[np.ndarray], float]:
    """Return the neighbours of the nodes of a connected random graph, and its logarithm of spanning trees per node."""
    while True:
        n = int(generator.integers(5, 25))
        edges = np.triu(generator.random((n, n)) < generator.uniform(1.5, 4.0) / n, 1)
        edges |= edges.T
        laplacian = np.diag(edges.sum(1)) - edges
        sign, trees = np.linalg.slogdet(laplacian[1:, 1:].astype(float))
        if sign > 0 and trees > -0.5 and edges.sum() <= EDGES // BATCH:
            return [np.flatnonzero(row).astype(np.int32) for row in edges], trees / n


def join(graphs: list[tuple[list[np.ndarray], float]]) -> Batch:
    """Return a batch of the capacity; nodes are numbered through."""
    sizes = np.array([len(rows) for rows, _ in graphs], np.int32)
    first = np.cumsum(sizes) - sizes
    rows = [row + start for (rows, _), start in zip(graphs, first, strict=True) for row in rows]
    lengths = np.zeros(NODES, np.int32)
    lengths[: len(rows)] = [len(row) for row in rows]
    values = np.zeros(EDGES, np.int32)
    values[: lengths.sum()] = np.concatenate(rows)
    return Batch(Ragged(values, lengths), jnp.asarray(sizes), jnp.array([trees for _, trees in graphs], jnp.float32))


def init(key: Array) -> dict[str, Any]:
    """Draw the weights."""
    dense = nn.initializers.glorot_normal()
    names = ("query", "key", "self", "mean", "sum")
    drawn = {
        f"{name}{r}": dense(k, (WIDTH, WIDTH))
        for r in range(ROUNDS)
        for name, k in zip(names, random.split(random.fold_in(key, r), len(names)), strict=True)
    }
    return {
        **drawn,
        "first": jnp.ones(WIDTH) * jnp.linspace(-1, 1, WIDTH),
        "last": jnp.zeros(WIDTH),
        "bias": jnp.zeros(()),
    }


def predict(weights: dict[str, Any], batch: Batch) -> Array:
    """Return a number for each graph."""
    neighbours = batch.neighbours
    degrees = neighbours.lengths.astype(jnp.float32)
    state = jnp.tanh(jnp.log1p(degrees)[:, None] * weights["first"])
    for r in range(ROUNDS):
        query, key = state @ weights[f"query{r}"], state @ weights[f"key{r}"]
        of_neighbour = lambda table: elementwise(lambda j, table=table: table[j])(neighbours)
        score = (of_neighbour(key) * query[:, None]).sum(axis=2) / WIDTH**0.5
        messages = of_neighbour(state)
        attended = (messages * elementwise(lambda s: s[:, None])(score.softmax())).sum(axis=1)
        total = messages.sum(axis=1) / 4
        new = state @ weights[f"self{r}"] + attended @ weights[f"mean{r}"] + total @ weights[f"sum{r}"]
        state = state + jnp.tanh(new)
    return Ragged(state, batch.sizes).mean(axis=1) @ weights["last"] + weights["bias"]


TRACED: list[str] = []


@jit
def step(weights: Any, moments: Any, batch: Batch, count: Array) -> tuple[Any, Any, Array]:
    """One step of Adam with a rate that falls to zero (Kingma and Ba 2015)."""
    TRACED.append("step")
    error = lambda weights: ((predict(weights, batch) - batch.target) ** 2).mean()
    loss, slope = value_and_grad(error)(weights)
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slope)
    second = tree.map(lambda m, g: 0.99 * m + 0.01 * g * g, moments[1], slope)
    rate = 3e-3 * (1 - count / STEPS)
    scale = rate * jnp.sqrt(1 - 0.99 ** (count + 1)) / (1 - 0.9 ** (count + 1))
    weights = tree.map(lambda w, m, v: w - scale * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
    return weights, (first, second), loss


def draw(target: np.ndarray, found: np.ndarray, path: Path) -> None:
    """Predictions over what was to be learnt, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(figsize=(5, 5))
    axes.plot(target, found, ".")
    axes.axline((float(target.mean()), float(target.mean())), slope=1, color="grey")
    axes.set(xlabel="logarithm of spanning trees, per node", ylabel="predicted")
    pyplot.savefig(path)
    print(f"the predictions are drawn in {path}")


def main() -> int:
    """Train the network; the exit status is 0 if it explains 95 % of the variance."""
    generator = np.random.default_rng(0)
    graphs = [graph(generator) for _ in range(GRAPHS)]
    train, test = graphs[: -4 * BATCH], graphs[-4 * BATCH :]
    weights = init(random.key(0))
    zeros = tree.map(jnp.zeros_like, weights)
    moments = (zeros, zeros)
    for count in range(STEPS):
        chosen = generator.choice(len(train), BATCH, replace=False)
        batch = join([train[i] for i in chosen])
        weights, moments, loss = step(weights, moments, batch, jnp.float32(count))
        if count % 100 == 0 or count == STEPS - 1:
            nodes, edges = int(batch.sizes.sum()), int(batch.neighbours.lengths.sum())
            print(f"step {count:3}: {nodes} nodes, {edges // 2} edges, squared error {float(loss):.5f}")
    batches = [join(test[i : i + BATCH]) for i in range(0, len(test), BATCH)]
    found = np.concatenate([predict(weights, batch) for batch in batches])
    target = np.concatenate([batch.target for batch in batches])
    explained = 1 - float(((found - target) ** 2).mean() / target.var())
    print(
        f"graphs that it has not seen: {100 * explained:.1f} % of the variance; the step was traced {len(TRACED)} time"
    )
    draw(target, found, Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "graphs.png")
    return 0 if explained > 0.95 and len(TRACED) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
