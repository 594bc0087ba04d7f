"""Cases of collectives: functions of one index of a named axis, whose values JAX has recorded in ``collectives.json``.

``python -m tests.primitives.collective_cases`` with JAX installed records them anew. Where JAX refuses a case, or
fails, nothing is recorded.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RECORDED = Path(__file__).with_name("collectives.json")
SIZE = 4
GROUPS = [[0, 3], [1, 2]]
PERM = [(0, 2), (2, 1), (3, 0), (1, 3)]
PART = [(0, 2), (2, 1), (3, 0)]


class Case(NamedTuple):
    """One collective.

    Attributes:
      name: of the case.
      run: takes a module of operations, ``lax``, and the operand of one index.
      shape: of that operand.
    """

    name: str
    run: Callable[[Any, Any], Any]
    shape: tuple[int, ...]

    def operand(self) -> np.ndarray[Any, Any]:
        """The operands of all indices."""
        return np.random.default_rng(sum(map(ord, self.name))).normal(size=(SIZE, *self.shape)).astype(np.float32)


CASES = [
    Case("psum", lambda lax, x: lax.psum(x, "i"), (2, 3)),
    Case("psum of a product", lambda lax, x: lax.psum(x * x, "i") * x, (3,)),
    Case("psum in groups", lambda lax, x: lax.psum(x, "i", axis_index_groups=GROUPS), (2,)),
    Case("pmean", lambda lax, x: lax.pmean(x, "i") * x, (2,)),
    Case("pmax", lambda lax, x: lax.pmax(x, "i"), (3,)),
    Case("pmin", lambda lax, x: lax.pmin(x, "i"), (3,)),
    Case("pmax in groups", lambda lax, x: lax.pmax(x, "i", axis_index_groups=GROUPS), (3,)),
    Case("all_gather", lambda lax, x: lax.all_gather(x, "i"), (2, 3)),
    Case("all_gather axis 1", lambda lax, x: lax.all_gather(x, "i", axis=1) ** 2, (2, 3)),
    Case("all_gather tiled", lambda lax, x: lax.all_gather(x, "i", axis=1, tiled=True), (2, 3)),
    Case("all_gather in groups", lambda lax, x: lax.all_gather(x, "i", axis_index_groups=GROUPS), (2,)),
    Case("psum_scatter", lambda lax, x: lax.psum_scatter(x, "i"), (SIZE, 2)),
    Case("psum_scatter dimension 1", lambda lax, x: lax.psum_scatter(x, "i", scatter_dimension=1), (2, SIZE)),
    Case("psum_scatter tiled", lambda lax, x: lax.psum_scatter(x, "i", tiled=True), (2 * SIZE, 2)),
    Case("psum_scatter in groups", lambda lax, x: lax.psum_scatter(x, "i", axis_index_groups=GROUPS), (2, 3)),
    Case("all_to_all", lambda lax, x: lax.all_to_all(x, "i", 0, 1), (SIZE, 3)),
    Case("all_to_all tiled", lambda lax, x: lax.all_to_all(x, "i", 1, 0, tiled=True), (2, 2 * SIZE)),
    Case("all_to_all in groups", lambda lax, x: lax.all_to_all(x, "i", 0, 0, axis_index_groups=GROUPS), (2, 3)),
    Case("ppermute", lambda lax, x: lax.ppermute(x, "i", PERM), (2,)),
    Case("ppermute in part", lambda lax, x: lax.ppermute(x, "i", PART), (2,)),
    Case("pshuffle", lambda lax, x: lax.pshuffle(x, "i", [2, 0, 3, 1]) * x, (2,)),
    Case("pswapaxes", lambda lax, x: lax.pswapaxes(x, "i", 1), (2, SIZE)),
    Case("pbroadcast", lambda lax, x: lax.pbroadcast(x, "i", 2), ()),
    Case("axis_index", lambda lax, x: x * lax.axis_index("i"), (2,)),
    Case("axis_size", lambda lax, x: x * lax.axis_size("i"), (2,)),
]


def weights(out: Any) -> np.ndarray[Any, Any]:
    """Weights for the elements of a result, so that no two of its elements are alike."""
    return np.cos(np.arange(out.size, dtype=np.float32)).reshape(out.shape)


def quantities(lib: Any, case: Case) -> dict[str, Callable[[], Any]]:
    """What is compared: the values of a case under ``vmap``, and derivatives of a weighted sum of these.

    Args:
      lib: a library with ``vmap``, ``grad``, ``jvp`` and ``lax``.
      case: the case.
    """
    x = case.operand()

    def loss(y: Any) -> Any:
        out = case.run(lib.lax, y)
        return (out * weights(out)).sum()

    def losses(xs: Any) -> Any:
        return lib.vmap(loss, axis_name="i")(xs)

    return {
        "values": lambda: lib.vmap(lambda y: case.run(lib.lax, y), axis_name="i")(x),
        "gradient of each index": lambda: lib.vmap(lib.grad(loss), axis_name="i")(x),
        "gradient of the sum": lambda: lib.grad(lambda xs: losses(xs).sum())(x),
        "tangents": lambda: lib.jvp(losses, (x,), (np.cos(x),))[1],
    }


def record() -> None:
    """Write what JAX returns for the cases, where it does not refuse them or fail."""
    import jax

    found: dict[str, dict[str, Any]] = {}
    for case in CASES:
        found[case.name] = {}
        for name, compute in quantities(jax, case).items():
            try:
                found[case.name][name] = np.asarray(compute()).tolist()
            except Exception as error:
                print(f"{case.name}, {name}: {type(error).__name__}")
    RECORDED.write_text(json.dumps({"jax": jax.__version__, "cases": found}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
