"""FlowJAX: an autoregressive flow of rational splines trained on data, a coupling flow by variational inference."""

import json

import jax
import jax.numpy as jnp
import optax
from flowjax import bijections, flows
from flowjax.distributions import Normal, StandardNormal, Transformed
from flowjax.train import fit_to_data, fit_to_key_based_loss
from flowjax.train.losses import ElboLoss

keys = jax.random.split(jax.random.key(0), 6)
angle = jax.random.uniform(keys[0], (400,), maxval=jnp.pi)
moon = jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1) + 0.1 * jax.random.normal(keys[1], (400, 2))
flow = flows.masked_autoregressive_flow(
    keys[2], base_dist=Normal(jnp.zeros(2)), transformer=bijections.RationalQuadraticSpline(knots=5, interval=4.0),
    flow_layers=2, nn_width=16,
)  # fmt: skip
points = jnp.array([[0.0, 1.0], [0.5, -0.3], [-1.0, 0.1]])
before = flow.log_prob(points)
flow, losses = fit_to_data(keys[3], flow, moon, learning_rate=3e-3, max_epochs=4, batch_size=80, show_progress=False)


def target(x):
    return Normal(1.0, 0.5).log_prob(x[0]) + Normal(x[0] ** 2, 0.8).log_prob(x[1])


guide = flows.coupling_flow(keys[4], base_dist=StandardNormal((2,)), flow_layers=2, nn_width=8, invert=False)
guide, elbo = fit_to_key_based_loss(
    keys[5], guide, loss_fn=ElboLoss(target, num_samples=32), optimizer=optax.adam(1e-2), steps=30, show_progress=False
)
tail = Transformed(
    Normal(jnp.zeros(3)), bijections.Chain([bijections.Affine(1.0, jnp.arange(1.0, 4.0)), bijections.Exp((3,))])
)
there, log_det = flow.bijection.inverse_and_log_det(points[0])
figures = {
    "log density, untrained": before.tolist(),
    "training losses": [float(loss) for loss in losses["train"]],
    "validation losses": [float(loss) for loss in losses["val"]],
    "log density": flow.log_prob(points).tolist(),
    "samples": flow.sample(keys[1], (3,)).tolist(),
    "inverse": there.tolist(),
    "log determinant": float(log_det),
    "evidence": [float(loss) for loss in elbo[::6]],
    "log-normal": tail.log_prob(jnp.array([0.5, 1.0, 4.0])).tolist(),
}
print(json.dumps(figures))
