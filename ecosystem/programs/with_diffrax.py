"""Diffrax: a neural ODE trained through `diffeqsolve`, a stiff equation, an event, and one driven by noise."""

import json

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax


class Field(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.mlp(y)


def solve(field, y0, times, adjoint, rtol):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), times[0], times[-1], 0.1, y0, saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=1e-6), adjoint=adjoint,
    )  # fmt: skip
    return solution.ys


@eqx.filter_value_and_grad
def loss(field, y0, targets, adjoint, rtol):
    return jnp.mean((jax.vmap(lambda y: solve(field, y, times, adjoint, rtol))(y0) - targets) ** 2)


@eqx.filter_jit
def step(field, state):
    value, grads = loss(field, y0, targets, diffrax.RecursiveCheckpointAdjoint(), 1e-3)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(field, updates), state, value


times = jnp.linspace(0.0, 2.0, 8)
y0 = jax.random.normal(jax.random.key(1), (4, 2))
targets = jax.vmap(lambda t: y0 @ jax.scipy.linalg.expm(t * jnp.array([[-0.1, 2.0], [-2.0, -0.1]])).T, out_axes=1)(
    times
)
field = Field(eqx.nn.MLP(2, 2, 16, 2, activation=jnp.tanh, key=jax.random.key(0)))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(field, eqx.is_inexact_array))
losses = []
for _ in range(10):
    field, state, value = step(field, state)
    losses.append(float(value))

# At a tolerance of 1e-3, the backward solve turns a change of the weights' last bits into one of 3e-4.
value, backward = eqx.filter_jit(loss)(field, y0, targets, diffrax.BacksolveAdjoint(), 1e-5)
stiff = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, mu: jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])), diffrax.Kvaerno3(),
    0.0, 3.0, 1e-3, jnp.array([2.0, 0.0]), args=20.0, stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
)  # fmt: skip
falling = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.81])), diffrax.Heun(), 0.0, 10.0, 0.01,
    jnp.array([5.0, 0.0]), stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-5),
    event=diffrax.Event(lambda t, y, args, **kwargs: y[0] < 0),
)  # fmt: skip
noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=jax.random.key(2))
terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.3, noise))
driven = diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.05, jnp.array(1.0))
figures = {
    "losses": losses[::3] + losses[-1:],
    "gradient by a backward solve": backward.mlp.layers[0].weight[:2].ravel().tolist(),
    "stiff": stiff.ys[0].tolist(),
    "steps": int(stiff.stats["num_accepted_steps"]),
    "event": float(falling.ts[0]),
    "driven": float(driven.ys[0]),
}
print(json.dumps(figures))
