"""Jraph: a graph network trained to add up edges, on padded batches; attention and convolution on graphs."""

import json

import jax
import jax.numpy as jnp
import jraph
import numpy as np

HIDDEN = 8


def dense(params, *inputs):
    return jnp.tanh(jnp.concatenate(inputs, axis=-1) @ params)


def network(params, graph):
    step = jraph.GraphNetwork(
        update_edge_fn=lambda edges, sent, received, globals_: dense(params["edge"], edges, sent, received),
        update_node_fn=lambda nodes, sent, received, globals_: dense(params["node"], nodes, received),
        update_global_fn=lambda nodes, edges, globals_: dense(params["global"], nodes, edges),
    )
    embed = jraph.GraphMapFeatures(lambda e: e @ params["embed edge"], lambda n: n @ params["embed node"])
    return step(step(embed(graph))).globals @ params["out"]


def random_graph(rng):
    nodes, edges = rng.integers(3, 6), rng.integers(4, 9)
    return jraph.GraphsTuple(
        nodes=rng.normal(size=(nodes, 2)).astype(np.float32), edges=rng.normal(size=(edges, 1)).astype(np.float32),
        senders=rng.integers(0, nodes, edges), receivers=rng.integers(0, nodes, edges),
        n_node=np.array([nodes]), n_edge=np.array([edges]), globals=np.zeros((1, HIDDEN), np.float32),
    )  # fmt: skip


rng = np.random.default_rng(0)
graphs = [random_graph(rng) for _ in range(6)]
targets = jnp.array([g.edges.sum() for g in graphs] + [0.0])
batch = jraph.pad_with_graphs(jraph.batch(graphs), n_node=32, n_edge=64, n_graph=7)
shapes = {
    "embed edge": (1, HIDDEN), "embed node": (2, HIDDEN), "edge": (3 * HIDDEN, HIDDEN), "node": (2 * HIDDEN, HIDDEN),
    "global": (2 * HIDDEN, HIDDEN), "out": (HIDDEN, 1),
}  # fmt: skip
keys = jax.random.split(jax.random.key(0), len(shapes))
params = {name: 0.3 * jax.random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items(), strict=True)}


@jax.jit
def step(params):
    def loss(params):
        errors = (network(params, batch)[:, 0] - targets) ** 2
        return jnp.sum(errors * jraph.get_graph_padding_mask(batch)) / len(graphs)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.02 * g, params, grads), value


losses = []
for _ in range(60):
    params, value = step(params)
    losses.append(float(value))

convolution = jraph.GraphConvolution(lambda nodes: nodes, add_self_edges=True, symmetric_normalization=True)
attention = jraph.GAT(lambda nodes: nodes, lambda sent, received, edges: (sent * received).sum(1, keepdims=True))
figures = {
    "losses": losses[::20] + losses[-1:],
    "predictions": network(params, batch)[:6, 0].tolist(),
    "convolution": jax.jit(convolution)(graphs[0]).nodes.ravel().tolist(),
    "attention": attention(graphs[1]).nodes.ravel().tolist(),
    "softmax": jraph.segment_softmax(batch.edges[:8, 0], batch.receivers[:8], 32).tolist(),
    "graphs": [len(jraph.unbatch(batch)), int(jraph.unpad_with_graphs(batch).n_node.sum())],
}
print(json.dumps(figures))
