"""A ring of devices: a product of matrices, each divided over all devices, without gathering either.

Each device has some rows of ``a`` and some of ``b``. In each step it multiplies the columns of its ``a`` that belong
to the rows of ``b`` which it has, adds that to its rows of the result, and hands those rows of ``b`` on to its
neighbour with ``ppermute``. After as many steps as devices it has seen all of ``b``, and has never held more than two
parts of it. The derivative goes round the ring the other way. The process ends with a non-zero status if the result or
its derivatives are not those of ``a @ b``.

    python examples/ring.py
"""

from __future__ import annotations

import sys

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import Array, P, grad, jit, lax, shard_map

DEVICES, ROWS, INNER, COLUMNS = 4, 32, 48, 24


def ring_product(a: Array, b: Array) -> Array:
    """This device's rows of ``a @ b``: ``a`` of shape (ROWS / DEVICES, INNER), ``b`` of (INNER / DEVICES, COLUMNS)."""
    here, part = lax.axis_index("ring"), b.shape[0]
    to_next = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        total, b = state
        owner = (here - k) % DEVICES  # of the rows of b that have come here
        columns = lax.dynamic_slice_in_dim(a, owner * part, part, axis=1)
        return total + columns @ b, lax.ppermute(b, "ring", to_next)

    zeros = lax.pcast(jnp.zeros((a.shape[0], b.shape[1])), "ring", to="varying")
    total, _ = lax.fori_loop(0, DEVICES, step, (zeros, b))
    return total


def main() -> int:
    """Multiply, differentiate, compare; the exit status is 0 if all agrees."""
    pullback.config.update("num_cpu_devices", DEVICES)  # before the first program
    generator = np.random.default_rng(0)
    a = generator.normal(size=(ROWS, INNER)).astype(np.float32)
    b = generator.normal(size=(INNER, COLUMNS)).astype(np.float32)

    mesh = pullback.make_mesh((DEVICES,), ("ring",))
    product = jit(shard_map(ring_product, mesh=mesh, in_specs=(P("ring"), P("ring")), out_specs=P("ring")))
    result = product(a, b)
    print(f"a {result.shape} product over {DEVICES} devices, which have it as {result.sharding.spec}")

    def size_of_ring(a: Array, b: Array) -> Array:
        return jnp.sum(product(a, b) ** 2)

    found = [result, *grad(size_of_ring, (0, 1))(a, b)]
    expected = [a @ b, *grad(lambda a, b: jnp.sum((a @ b) ** 2), (0, 1))(a, b)]
    agree = True
    for name, x, y in zip(("product", "derivative by a", "derivative by b"), found, expected, strict=True):
        off = np.abs(np.asarray(x) - np.asarray(y)).max() / np.abs(np.asarray(y)).max()
        print(f"{name}: differs by {off:.1e} of the largest element")
        agree &= bool(off < 1e-5)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
