"""Functions that are exported by one of JAX and Pullback, and called by the other.

``python -m tests.export.recorded.both_ways --jax PYTHON``, where PYTHON has JAX, writes them here and calls them
there, and the other way round: results, derivatives of first and second order, and what is spread over two devices.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import ml_dtypes
import numpy as np

Pair = collections.namedtuple("Pair", "first second")


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape, dtype=int)) / 7 - 0.5).astype("float32").reshape(shape)


NARROW = (
    numbers(2).astype(ml_dtypes.bfloat16), numbers(2).astype(ml_dtypes.float8_e4m3fn),
    np.arange(3).astype(ml_dtypes.int4), np.array([True]),
)  # fmt: skip


def cases(jax: Any, jnp: Any, export: Any) -> dict[str, Any]:
    """By name: the function, options of export, arguments, those for which it is exported, the order of derivatives."""
    scope = export.SymbolicScope()
    ones = np.ones((1, 3), "float32"), np.ones(3, "float32")
    sizes = export.symbolic_args_specs(ones, ("b, ...", None), scope=scope)
    by_platform = lambda x: jax.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x - 1)
    of_trees = lambda x, by: {"p": jnp.tanh(x["w"] @ x["v"][0]), "q": [None, (by * x["v"][1],)]}
    tree = ({"w": numbers(2, 3), "v": (numbers(3), numbers(2))}, np.float32(2))
    both = {"platforms": ("cpu", "cuda")}
    return {
        "derivatives": (lambda x, y: jnp.sin(x) * y, {}, (numbers(3), numbers(3)), None, 2),
        "trees": (of_trees, {}, tree, None, 1),
        "named_tuples": (lambda p: Pair(p.second, p.first * 2), {}, (Pair(numbers(2), numbers(3)),), None, 1),
        "platforms": (by_platform, both, (numbers(2),), None, 1),
        "platforms_alike": (lambda x: x * 2, both, (numbers(2),), None, 1),
        "narrow": (lambda a, b, c, d: (a * 2, b.astype("float32"), c + 1, ~d), {}, NARROW, None, 0),
        "unused": (lambda x, u, n: (x * 3, n), {}, (numbers(2), numbers(5), np.int32(4)), None, 1),
        "cholesky": (lambda a: jnp.linalg.cholesky(a @ a.T + 3 * jnp.eye(3)), {}, (numbers(3, 3),), None, 1),
        "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jnp.cos(c) + i, x), {}, (numbers(2),), None, 1),
        "sizes": (lambda x, w: x @ w + jnp.arange(x.shape[0]), {}, (numbers(4, 3), numbers(3)), sizes, 1),
    }  # fmt: skip


def loaded(who: str) -> tuple[Any, Any, Any]:
    if who == "pullback":
        import pullback as library
        import pullback.numpy as jnp
        from pullback import export
    else:
        import jax as library
        import jax.numpy as jnp
        from jax import export
    export.register_namedtuple_serialization(Pair, serialized_name="recorded.Pair")
    return library, jnp, export


def spread(library: Any) -> tuple[Any, Any]:
    """A function over two devices, and how its argument is spread."""
    mesh = library.sharding.Mesh(np.array(library.devices()[:2]), ("i",))
    sharding = library.sharding.NamedSharding(mesh, library.sharding.PartitionSpec("i"))
    return library.jit(lambda x: x - x.mean(0), in_shardings=sharding, out_shardings=sharding), sharding


def write(who: str, folder: pathlib.Path) -> None:
    library, jnp, export = loaded(who)
    options = {"format": "jax"} if who == "pullback" else {}
    for name, (f, settings, args, described, order) in cases(library, jnp, export).items():
        exported = export.export(library.jit(f), **settings)(*(described or args))
        (folder / f"{name}.bin").write_bytes(exported.serialize(vjp_order=order, **options))
    exported = export.export(spread(library)[0])(library.ShapeDtypeStruct((4, 2), "float32"))
    (folder / "spread.bin").write_bytes(exported.serialize(vjp_order=1, **options))


def difference(library: Any, xs: Any, ys: Any) -> float:
    pairs = zip(library.tree.leaves(xs), library.tree.leaves(ys), strict=True)
    return max(float(np.abs(np.asarray(x, "float64") - np.asarray(y, "float64")).max()) for x, y in pairs)


def slopes(library: Any, jnp: Any, g: Any, args: Any, order: int) -> Any:
    """The gradient of the sum of squares of what is real in the results; of the sum of its elements again."""

    def total(*xs: Any) -> Any:
        leaves = library.tree.leaves(g(*xs))
        return sum(jnp.sum(x * x) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating))

    if order == 1:
        return library.grad(total, allow_int=True)(*args)
    return library.grad(lambda *xs: library.grad(total)(*xs).sum())(*args)


def call(who: str, folder: pathlib.Path) -> None:
    library, jnp, export = loaded(who)
    worst = 0.0
    for name, (f, _, args, _, order) in cases(library, jnp, export).items():
        again = export.deserialize(bytearray((folder / f"{name}.bin").read_bytes())).call
        found = [difference(library, library.jit(f)(*args), again(*args))]
        for k in range(1, order + 1):
            first, second = (slopes(library, jnp, g, args, k) for g in (f, again))
            found.append(difference(library, first, second))
        print(f"{who} calls {name}: off by {', '.join(f'{x:.1e}' for x in found)}")
        worst = max(worst, *found)
    f, sharding = spread(library)
    again = library.jit(export.deserialize(bytearray((folder / "spread.bin").read_bytes())).call)
    x = library.device_put(np.arange(8.0, dtype="float32").reshape(4, 2), sharding)
    slope = lambda g: library.jit(library.grad(lambda x: (g(x) ** 2).sum()))(x)
    found = [difference(library, f(x), again(x)), difference(library, slope(f), slope(again))]
    print(f"{who} calls what is spread over two devices: off by {', '.join(f'{x:.1e}' for x in found)}")
    if max(worst, *found) > 1e-6:
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", metavar="PYTHON", help="the interpreter of an environment with JAX")
    parser.add_argument("--step", nargs=3, metavar=("DO", "WHO", "FOLDER"), help="used by the program itself")
    options = parser.parse_args()
    if options.step:
        do, who, folder = options.step
        {"write": write, "call": call}[do](who, pathlib.Path(folder))
        return
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_NUM_CPU_DEVICES": "2"}
    interpreters = {"pullback": sys.executable, "jax": options.jax}
    for writer, caller in (("pullback", "jax"), ("jax", "pullback")):
        with tempfile.TemporaryDirectory() as folder:
            for do, who in (("write", writer), ("call", caller)):
                command = [interpreters[who], "-W", "ignore", __file__, "--step", do, who, folder]
                subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
