"""Orbax: the state of a training loop saved in steps, the last kept, restored as it was and into another dtype."""

import json
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

x = jax.random.normal(jax.random.key(0), (16, 3))
y = x @ jnp.array([1.0, -1.0, 2.0])


@jax.jit
def step(state):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(state["params"])
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], grads)
    params = jax.tree.map(lambda p, m: p - 0.05 * m, state["params"], momentum)
    return {"params": params, "momentum": momentum, "step": state["step"] + 1}


params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
state = {"params": params, "momentum": jax.tree.map(jnp.zeros_like, params), "step": jnp.array(0)}

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    with ocp.CheckpointManager(folder / "run", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
        for i in range(6):
            state = step(state)
            if i % 2:
                manager.save(i, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
        kept = [int(i) for i in manager.all_steps()]
        restored = manager.restore(kept[0], args=ocp.args.StandardRestore(jax.tree.map(jnp.zeros_like, state)))

    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder / "single", state)
        checkpointer.wait_until_finished()
        single = checkpointer.restore(folder / "single", jax.tree.map(jnp.ones_like, state))

    with ocp.PyTreeCheckpointer() as checkpointer:
        checkpointer.save(folder / "tree", {"params": state["params"], "name": "run", "rate": 0.05})
        half = checkpointer.restore(
            folder / "tree",
            restore_args={"params": jax.tree.map(lambda _: ocp.ArrayRestoreArgs(dtype=jnp.bfloat16), params),
                          "name": ocp.RestoreArgs(), "rate": ocp.RestoreArgs()},
        )  # fmt: skip

continued = step(step(restored))
figures = {
    "kept": kept,
    "restored": restored["params"]["w"].tolist() + [int(restored["step"])],
    "same": all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), continued, state))),
    "single": jnp.asarray(single["momentum"]["w"]).tolist(),
    "half": [float(v) for v in half["params"]["w"]] + [half["rate"], int(half["params"]["w"].dtype == jnp.bfloat16)],
}
print(json.dumps(figures))
