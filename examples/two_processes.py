"""Data-parallel training in two processes, each of which has its own half of the data.

Started by itself, the program starts two processes of itself with ``python -m pullback launch``. Each of them makes
arrays of which the other has the rest, and both run the same compiled step. The first process trains on all data alone
as well, and ends with a non-zero status if the parameters differ by more than rounding.

    python examples/two_processes.py
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import Array, NamedSharding, P, grad, jit

PROCESSES, EXAMPLES, STEPS, RATE = 2, 128, 50, 0.3


def loss(w: Array, x: Array, y: Array) -> Array:
    """The cross-entropy of a logistic regression: ``x`` of shape (examples, 3), ``y`` 0 or 1."""
    logits = x @ w
    return jnp.mean(jnp.logaddexp(0.0, logits) - y * logits)


@jit
def step(w: Array, x: Array, y: Array) -> Array:
    return w - RATE * grad(loss)(w, x, y)


def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(EXAMPLES, 3)).astype(np.float32)
    noise = generator.normal(size=EXAMPLES)
    return x, (x @ [1.0, -2.0, 0.5] + noise > 0).astype(np.float32)


def train(w: Array, x: Array, y: Array) -> Array:
    for _ in range(STEPS):
        w = step(w, x, y)
    return w


def main() -> int:
    """One of the processes; the exit status is 0 if all agrees."""
    pullback.distributed.initialize()
    me, x, y = pullback.process_index(), *data()
    half = slice(me * EXAMPLES // PROCESSES, (me + 1) * EXAMPLES // PROCESSES)

    mesh = pullback.make_mesh((pullback.device_count(),), ("data",))
    rows = NamedSharding(mesh, P("data"))
    mine = [pullback.make_array_from_process_local_data(rows, part[half]) for part in (x, y)]
    start = pullback.device_put(jnp.zeros(3), NamedSharding(mesh, P()))
    w = np.asarray(train(start, *mine))
    print(f"has {len(x[half])} of {EXAMPLES} examples; the parameters are {w.round(4)}")

    alone = np.asarray(train(jnp.zeros(3), jnp.asarray(x), jnp.asarray(y)))
    agree = np.abs(w - alone).max() < 1e-5
    pullback.distributed.shutdown()
    return 0 if agree else 1


if __name__ == "__main__":
    if "PULLBACK_PROCESS_ID" in os.environ:
        sys.exit(main())
    command = [sys.executable, "-m", "pullback", "launch", "--processes", str(PROCESSES), __file__]
    sys.exit(subprocess.run(command, check=False).returncode)
