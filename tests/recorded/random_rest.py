"""Cases of the distributions of ``random``: values, and derivatives of samples by their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.recorded.cases import Case, real

P = real(10, lo=0.05, hi=0.95)
SMALL, LARGE = real(10, lo=0.3, hi=4), real(10, lo=3, hi=60)


def drawn(name: str, *args: Any, seed: int = 0, **options: Any) -> Any:
    """A call of a function of ``random`` with a key of its own, of the operands first."""

    def run(lib: Any, *xs: Any) -> Any:
        with lib.threefry_partitionable(True):
            return getattr(lib.random, name)(lib.random.key(seed), *xs, *args, **options)

    return run


def initialized(name: str, axis: int, shape: tuple[int, ...]) -> Any:
    def run(lib: Any) -> Any:
        with lib.threefry_partitionable(True):
            initializer = getattr(lib.nn.initializers, name.removesuffix("_initializer"))(2.0, axis)
            return initializer(lib.random.PRNGKey(1), shape)

    return run


def of(name: str, *xs: Any, derivatives: bool = True, **options: Any) -> Case:
    """Ten samples."""
    return Case(name, drawn(name, **options), xs, elementwise=True, derivatives=derivatives)


COVARIANCE = np.array([[2, 0.5, 0.1], [0.5, 1, -0.3], [0.1, -0.3, 1.5]], np.float32)
TEN = range(10)

CASES = [
    of("gamma", SMALL), of("loggamma", SMALL / 4, derivatives=False), of("chisquare", LARGE, derivatives=False),
    of("t", SMALL + 1, derivatives=False), of("beta", SMALL, LARGE / 20, derivatives=False),
    of("f", SMALL + 1, LARGE, derivatives=False), of("generalized_normal", SMALL, shape=(10,), derivatives=False),
    of("poisson", LARGE), of("binomial", np.floor(LARGE), P, derivatives=False), of("geometric", P, derivatives=False),
    of("pareto", SMALL), of("rayleigh", SMALL), of("wald", SMALL), of("lognormal", SMALL),
    of("triangular", SMALL - 4, SMALL, SMALL + 3), of("weibull_min", SMALL, SMALL, shape=(10,)),
    of("double_sided_maxwell", SMALL, SMALL),
    *(Case(f"maxwell {s}", drawn("maxwell", (5,), seed=s)) for s in TEN),
    *(Case(f"ball {s}", drawn("ball", 3, 1 + s / 2, (2,), seed=s)) for s in TEN),
    *(Case(f"dirichlet {s}", drawn("dirichlet", real(3, 4, lo=0.4, hi=3), seed=s)) for s in TEN),
    *(Case(f"multinomial {s}", drawn("multinomial", np.float32(30 * s), real(2, 3, lo=0.1, hi=0.9), seed=s))
      for s in TEN),
    *(Case(f"multivariate_normal {method} {s}", drawn("multivariate_normal", method=method, seed=s),
           (real(2, 3), COVARIANCE)) for method in ("cholesky", "eigh", "svd") for s in TEN[:4]),
    *(Case(f"orthogonal {n} {m} {d}", drawn("orthogonal", n, (2,), d, m))
      for n, m in ((1, None), (2, None), (3, None), (2, 4), (4, 2)) for d in ("float32", "complex64")),
    *(Case(f"{name} {shape} {axis}", initialized(name, axis, shape))
      for name, shapes in (("orthogonal_initializer", ((2, 3), (3, 2), (2, 3, 4), (4, 4), (1, 5))),
                           ("delta_orthogonal", ((3, 2, 2), (2, 3, 3), (3, 3, 3, 2, 2), (4, 4, 4), (1, 2, 2, 1, 1))))
      for shape in shapes for axis in (-1, -2)),
]  # fmt: skip
