"""Write files of ``jax.export``, and what their functions return, for the tests of reading them.

``python tests/export/recorded/record.py FOLDER`` runs where JAX is installed, and not Pullback.
"""

from __future__ import annotations

import collections
import json
import pathlib
import sys
from typing import Any

import numpy as np

Pair = collections.namedtuple("Pair", "first second")
Case = tuple[Any, dict[str, Any], tuple[Any, ...], dict[str, Any], int]
"""The function, options of export, arguments (or their types), keyword arguments, and the order of derivatives."""


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape, dtype=int)) / 7 - 0.5).astype("float32").reshape(shape)


def cases(jax: Any, jnp: Any, export: Any) -> dict[str, Case]:
    def of_trees(x: Any, *, scale: Any) -> Any:
        return {"p": jnp.tanh(x["w"] @ x["v"][0]), "q": [None, (scale * x["v"][1],)]}

    scope = export.SymbolicScope()
    symbolic = export.symbolic_args_specs(
        (np.ones((1, 3), "float32"), np.ones(3, "float32")), ("b, ...", None), scope=scope
    )
    return {
        "derivatives": (lambda x, y: jnp.sin(x) * y, {}, (numbers(3), numbers(3)), {}, 2),
        "trees": (of_trees, {}, ({"w": numbers(2, 3), "v": (numbers(3), numbers(2))},), {"scale": np.float32(2.0)}, 1),
        "named_tuples": (lambda p: Pair(p.second, p.first * 2), {}, (Pair(numbers(2), numbers(3)),), {}, 0),
        "platforms": (
            lambda x: jax.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x - 1),
            {"platforms": ("cpu", "cuda")}, (numbers(2),), {}, 1,
        ),
        "sizes": (lambda x, w: x @ w / x.shape[0] + jnp.arange(x.shape[0]), {}, symbolic, {}, 1),
        "narrow": (
            lambda a, b, c, d: (a * 2, b.astype("float32"), c + 1, ~d), {},
            (
                numbers(2).astype(jnp.bfloat16), numbers(2).astype(jnp.float8_e4m3fn), np.arange(3, dtype=jnp.int4),
                np.array([True]),
            ),
            {}, 0,
        ),
        "unused": (lambda x, unused, n: (x * 3, n), {}, (numbers(2), numbers(5), np.int32(4)), {}, 1),
        "linear_algebra": (lambda a: jnp.linalg.cholesky(a @ a.T + 3 * jnp.eye(3)), {}, (numbers(3, 3),), {}, 1),
        "keys": (lambda k: jax.random.normal(k, (2,)), {}, (jax.random.key(7),), {}, 0),
        "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.cos(c) + i, x), {}, (numbers(2),), {}, 1),
    }  # fmt: skip


CALLS = {"sizes": [(numbers(4, 3), numbers(3)), (numbers(1, 3), numbers(3))]}


def main(folder: str) -> None:
    import jax
    import jax.numpy as jnp
    from jax import export

    export.register_namedtuple_serialization(Pair, serialized_name="recorded.Pair")
    described = lambda tree: [np.asarray(x, "float64").tolist() for x in jax.tree.leaves(tree)]
    home = pathlib.Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    figures = {}
    for name, (f, options, args, kwargs, order) in cases(jax, jnp, export).items():
        exported = export.export(jax.jit(f), **options)(*args, **kwargs)
        (home / f"{name}.bin").write_bytes(exported.serialize(vjp_order=order))
        again = export.deserialize(bytearray((home / f"{name}.bin").read_bytes()))
        figures[name] = [described(again.call(*given, **kwargs)) for given in CALLS.get(name, [args])]
    (home / "figures.json").write_text(json.dumps({"jax": jax.__version__, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
