"""Penzai: a small transformer built of named axes, trained and changed by selectors."""

import json

import jax
import jax.numpy as jnp
import optax
from penzai import pz
from penzai.models.transformer.variants import llamalike_common
from penzai.toolshed import basic_training

config = llamalike_common.LlamalikeTransformerConfig(
    num_kv_heads=1, query_head_multiplier=2, embedding_dim=8, projection_dim=4, mlp_hidden_dim=16, num_decoder_blocks=2,
    vocab_size=11, mlp_variant="geglu_approx", tie_embedder_and_logits=True,
)  # fmt: skip
model = llamalike_common.build_llamalike_transformer(config, jax.random.key(0), name="small")
tokens = pz.nx.wrap(jax.random.randint(jax.random.key(1), (4, 9), 1, 11)).tag("batch", "seq")
inputs, following = tokens[{"seq": pz.slice[:-1]}], tokens[{"seq": pz.slice[1:]}]


def loss(model, state, rng, inputs, following):
    logits = model(inputs, token_positions=pz.nx.arange("seq", 8), token_segment_ids=None)
    log_probabilities = pz.nx.nmap(jax.nn.log_softmax)(logits.untag("vocabulary")).tag("vocabulary")
    chosen = log_probabilities.untag("vocabulary")[following]
    value = -chosen.untag("batch", "seq").unwrap().mean()
    return value, state, {"loss": value}


def logits(model):
    found = model(inputs, token_positions=pz.nx.arange("seq", 8), token_segment_ids=None)
    return found.unwrap("batch", "seq", "vocabulary")


before = logits(model)
trainer = basic_training.StatefulTrainer.build(jax.random.key(2), model, optax.adam(1e-2), loss)
losses = [float(trainer.step(inputs=inputs, following=following)["loss"]) for _ in range(8)]
halved = (
    model.select()
    .at_instances_of(pz.nn.Elementwise)
    .apply(lambda layer: pz.nn.Sequential([layer, pz.nn.ConstantRescale(0.5)]))
)
linear = pz.select(model).at_instances_of(pz.nn.Linear)
summed = pz.nx.nmap(jnp.sum)(pz.nx.wrap(jnp.arange(12.0).reshape(3, 4)).tag("a", "b").untag("b"))
figures = {
    "logits": before[0, -1].tolist(),
    "losses": losses,
    "trained": logits(model)[0, -1].tolist(),
    "halved": logits(halved)[0, -1].tolist(),
    "linear layers": linear.count(),
    "sum": summed.unwrap("a").tolist(),
}
print(json.dumps(figures))
