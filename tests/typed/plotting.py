"""Arrays go to matplotlib and to NumPy, and come back."""

import math

import matplotlib as mpl
import numpy as np

import pullback.numpy as jnp
from pullback import Array, grad, vmap

mpl.use("Agg")
import matplotlib.pyplot as plt


def bump(x: Array) -> Array:
    return jnp.exp(-(x**2))


def table(x: Array) -> dict[str, float]:
    return {"mean": float(x.mean()), "largest": x.max().item(), "root": math.sqrt(x[0])}


def mistaken(x: Array) -> None:
    x.shape = (1, 2)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def main() -> None:
    x = jnp.linspace(0.0, 2.0, 50)
    figure, axes = plt.subplots()
    axes.plot(x, bump(x), label="bump")
    axes.plot(x, vmap(grad(bump))(x))
    axes.fill_between(x, bump(x) - 0.1, bump(x) + 0.1, alpha=0.2)
    axes.scatter(x[::10], jnp.zeros(5))
    plt.close(figure)
    host = np.asarray(bump(x))
    assert host.flags.writeable is False
    np.testing.assert_allclose(host.sum(), bump(x).sum(), rtol=1e-5)
    both = x * np.float32(2) + host - 1
    rows = [float(v) for v in both[:2]]
    names = ["a", "b", "c"]
    print(names[jnp.argmax(jnp.array([1, 3, 2]))], len(rows), sorted(table(x)))
    print(np.interp(0.5, x, host).round(2), jnp.asarray(host).at[0].set(0.0).nbytes)
