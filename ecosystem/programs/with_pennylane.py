"""PennyLane's `jax` interface: circuits trained, batched, differentiated by backpropagation and by parameter shifts."""

import json

import jax
import jax.numpy as jnp
import optax
import pennylane as qml

device = qml.device("default.qubit", wires=3)


def ansatz(weights, x):
    qml.AngleEmbedding(x, wires=range(3))
    qml.StronglyEntanglingLayers(weights, wires=range(3))


@qml.qnode(device, interface="jax", diff_method="backprop")
def circuit(weights, x):
    ansatz(weights, x)
    return qml.expval(qml.PauliZ(0) @ qml.PauliX(2))


@qml.qnode(device, interface="jax", diff_method="parameter-shift", max_diff=2)
def shifted(angles):
    qml.RX(angles[0], wires=0)
    qml.CNOT(wires=[0, 1])
    qml.RY(angles[1], wires=1)
    return qml.expval(qml.PauliZ(1))


@qml.qnode(device, interface="jax")
def state(angle):
    qml.Hadamard(wires=0)
    qml.CRZ(angle, wires=[0, 1])
    qml.QFT(wires=range(2))
    return qml.state()


@qml.qnode(device, interface="jax")
def probabilities(angle):
    qml.RX(angle, wires=0)
    qml.cond(angle > 0.5, qml.PauliX)(1)
    return qml.probs(wires=[0, 1])


keys = jax.random.split(jax.random.key(0), 2)
weights = jax.random.uniform(keys[0], (2, 3, 3), maxval=2.0)
inputs = jax.random.normal(keys[1], (4, 3))
targets = jnp.array([0.2, -0.1, 0.4, 0.0])


def loss(weights):
    return jnp.mean((jax.vmap(circuit, (None, 0))(weights, inputs) - targets) ** 2)


optimizer = optax.adam(0.1)


@jax.jit
def step(carry, _):
    weights, optimizer_state = carry
    value, gradient = jax.value_and_grad(loss)(weights)
    updates, optimizer_state = optimizer.update(gradient, optimizer_state)
    return (optax.apply_updates(weights, updates), optimizer_state), value


_, losses = jax.lax.scan(step, (weights, optimizer.init(weights)), None, length=10)
angles = jnp.array([0.4, 0.9])
amplitudes = state(jnp.array(0.7))
figures = {
    "expectation": float(circuit(weights, inputs[0])),
    "gradient": jax.jit(jax.grad(circuit))(weights, inputs[0])[0].tolist(),
    "parameter shift": jax.grad(shifted)(angles).tolist(),
    "hessian": jax.hessian(shifted)(angles).tolist(),
    "state": [amplitudes.real.tolist(), amplitudes.imag.tolist()],
    "probabilities": [probabilities(jnp.array(t)).tolist() for t in (0.3, 0.8)],
    "losses": losses.tolist(),
}
print(json.dumps(figures))
