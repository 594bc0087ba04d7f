"""What type checkers see of arrays, whose operators and methods are attached when the package is imported.

``make lint`` checks this program as users check theirs, with mypy's ``--strict``: it has one error, which is ignored
where it is, and must be there to be ignored.
"""

import pullback
import pullback.numpy as jnp
from pullback import Array


def step(x: Array, y: Array) -> Array:
    z = 2 * x + y / 3 - x @ y
    if z.sum() > 0:
        return -(z[0] ** 2)
    return abs(x) + len(y) * float(x[0])


def main() -> None:
    print(pullback.grad(step)(jnp.ones(3), jnp.ones(3)))
    step("no array", jnp.ones(3))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
