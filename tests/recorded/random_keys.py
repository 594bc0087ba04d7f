"""Cases of ``random`` with keys of all generators and layouts, and derivatives of samples in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

TEN = range(10)
BLOCKS = ("rbg", "unsafe_rbg")
Draw = Callable[[Any, Any], Any]


def words(random: Any, keys: Any) -> Any:
    return random.key_data(keys)


DRAWN: dict[str, Draw] = {
    "split": lambda r, k: words(r, r.split(k, (2, 3))),
    "fold_in": lambda r, k: words(r, r.fold_in(r.fold_in(k, 7), 3)),
    "bits": lambda r, k: tuple(r.bits(k, (7,), f"uint{n}") for n in (8, 16, 32)),
    "uniform": lambda r, k: (r.uniform(k, (3, 3)), r.uniform(k, (3,), "float16"), r.uniform(k, (2,), "bfloat16")),
    "normal": lambda r, k: (r.normal(k, (5,)), r.normal(k, (2,), "complex64")),
    "randint": lambda r, k: (r.randint(k, (5,), -3, 1000), r.randint(k, (4,), 0, 100, "uint8")),
    "permutation": lambda r, k: r.permutation(k, 9),
    "choice": lambda r, k: (r.choice(k, 9, (4,), replace=False), r.choice(k, 9, (4,))),
    "categorical": lambda r, k: r.categorical(k, np.log(np.float32([0.1, 0.2, 0.7])), shape=(6,)),
    "bernoulli": lambda r, k: r.bernoulli(k, 0.3, (6,)),
    "gamma": lambda r, k: r.gamma(k, np.float32([0.3, 1, 4])),
    "dirichlet": lambda r, k: r.dirichlet(k, np.float32([0.5, 1, 2])),
    "binomial": lambda r, k: r.binomial(k, np.float32([5, 40, 90]), np.float32(0.4)),
    "seed": lambda r, k: words(r, k),
}
"""What is drawn from one key."""

MAPPED: dict[str, Callable[[Any], Draw]] = {
    "vmap_split": lambda lib: lambda r, keys: words(r, lib.vmap(lambda k: r.split(k, 2))(keys)),
    "vmap_fold_in": lambda lib: lambda r, keys: words(r, lib.vmap(r.fold_in)(keys, np.arange(3, dtype=np.uint32))),
    "vmap_normal": lambda lib: lambda r, keys: lib.vmap(lambda k: r.normal(k, (2,)))(keys),
    "scan_uniform": lambda lib: (
        lambda r, keys: lib.lax.scan(lambda c, k: (r.split(c)[0], r.uniform(k)), keys[0], keys)[1]
    ),
}
"""What is drawn from three keys."""


def of_key(draw: Draw, impl: str, seed: int) -> Any:
    """Keys of four words, whose halves are split by the default generator in either layout."""

    def run(lib: Any) -> Any:
        with lib.threefry_partitionable(seed % 2 == 0):
            return draw(lib.random, lib.random.key(seed - 1, impl=impl))

    return run


def of_keys(make: Callable[[Any], Draw], impl: str, seed: int) -> Any:
    def run(lib: Any) -> Any:
        with lib.threefry_partitionable(seed % 2 == 0):
            return make(lib)(lib.random, lib.random.split(lib.random.key(seed, impl=impl), 3))

    return run


def sampled(name: str, *args: Any, layout: bool, impl: str = "threefry2x32") -> Any:
    """Samples of some parameters, which come first."""

    def run(lib: Any, *xs: Any) -> Any:
        with lib.threefry_partitionable(layout):
            return getattr(lib.random, name)(lib.random.key(3, impl=impl), *xs, *args)

    return run


def in_double(*shape: int, lo: float, hi: float) -> np.ndarray[Any, Any]:
    return real(*shape, lo=lo, hi=hi).astype(np.float64)


PARAMETERS: dict[str, tuple[Any, ...]] = {
    "gamma": (in_double(10, lo=0.3, hi=5),),
    "loggamma": (in_double(10, lo=0.1, hi=3),),
    "beta": (in_double(10, lo=0.4, hi=3), in_double(10, lo=0.5, hi=4)),
    "t": (in_double(10, lo=1, hi=6),),
    "chisquare": (in_double(10, lo=1, hi=9),),
    "f": (in_double(10, lo=1, hi=6), in_double(10, lo=2, hi=9)),
    "dirichlet": (in_double(10, 3, lo=0.4, hi=3),),
}

CASES = [
    *(Case(f"{name} {impl} {seed}", of_key(draw, impl, seed))
      for name, draw in DRAWN.items() for impl in BLOCKS for seed in TEN[:5]),
    *(Case(f"{name} {impl} {seed}", of_keys(make, impl, seed))
      for name, make in MAPPED.items() for impl in BLOCKS for seed in TEN[:5]),
    *(Case(f"{name}_in_double {layout}", sampled(name, layout=layout), xs, x64=True, elementwise=True)
      for name, xs in PARAMETERS.items() for layout in (True, False)),
    *(Case(f"{name}_in_double {impl}", sampled(name, layout=True, impl=impl), PARAMETERS[name], x64=True)
      for name in ("gamma", "beta") for impl in BLOCKS),
]  # fmt: skip
