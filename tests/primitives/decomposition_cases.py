"""Cases of decompositions, whose values and gradients JAX has recorded in ``decompositions.json``.

``python decomposition_cases.py`` with JAX installed records them anew. Where JAX refuses a case, or returns NaN,
nothing is recorded. Results that hold a choice, such as the signs of vectors, are taken without it.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RECORDED = Path(__file__).with_name("decompositions.json")
Shape = tuple[int, ...]


class Case(NamedTuple):
    """One call of an operation.

    Attributes:
      name: of the operation, and what is special in the call.
      run: takes the module ``numpy`` and the module ``lax.linalg`` of a library, and arrays.
      shapes: of the arrays.
      kind: how they are made.
      dtype: their dtype.
    """

    name: str
    run: Callable[..., Any]
    shapes: tuple[Shape, ...]
    kind: str
    dtype: str

    @property
    def title(self) -> str:
        return f"{self.name} {self.shapes} {self.dtype}"

    def operands(self) -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(sum(map(ord, self.title)))
        return [made(rng, shape, self.kind if i == 0 else "any", self.dtype) for i, shape in enumerate(self.shapes)]


def made(rng: np.random.Generator, shape: Shape, kind: str, dtype: str) -> np.ndarray[Any, Any]:
    x = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    if kind != "any":
        x = x / 4 + np.eye(*shape[-2:]) * (1 + np.arange(shape[-1]))
    if kind == "hermitian":
        x = x + x.swapaxes(-1, -2).conj()
    if kind == "upper":
        x = np.triu(x, 1) + np.eye(shape[-1]) * (2 + np.arange(shape[-1]))
    return x.astype(dtype)


def squares(np: Any, x: Any) -> Any:
    """What is left of vectors without their phases."""
    return np.real(x * np.conj(x))


SQUARE: tuple[tuple[Shape, ...], ...] = (((2, 2),), ((3, 3),), ((2, 2, 2),), ((1, 1),), ((4, 4),))
OBLONG: tuple[tuple[Shape, ...], ...] = (((3, 2),), ((3, 3),), ((2, 3),), ((2, 3, 2),), ((4, 2),))


def operations() -> Iterator[tuple[str, Callable[..., Any], tuple[tuple[Shape, ...], ...], str]]:
    """The name of each operation, how it is called, the shapes of operands, and how the first is made."""
    yield "lax.eigh", lambda np, la, x: (la.eigh(x)[1], squares(np, la.eigh(x)[0])), SQUARE, "hermitian"
    yield "numpy.eigh", lambda np, la, x: (lambda w, v: (w, squares(np, v)))(*np.linalg.eigh(x)), SQUARE, "hermitian"
    yield "numpy.eigvalsh", lambda np, la, x: np.linalg.eigvalsh(x), SQUARE, "any"
    yield "lax.eig", lambda np, la, x: la.eig(x)[0], SQUARE, "apart"
    yield "lax.eig vectors", lambda np, la, x: [squares(np, v) for v in la.eig(x)[1:]], SQUARE, "apart"
    yield "numpy.eig", lambda np, la, x: squares(np, np.linalg.eig(x)[1]), SQUARE, "apart"
    yield "numpy.eigvals", lambda np, la, x: np.linalg.eigvals(x), SQUARE, "apart"
    yield "lax.svd", lambda np, la, x: [squares(np, y) for y in la.svd(x, full_matrices=False)], OBLONG, "apart"
    yield "lax.svd full", lambda np, la, x: squares(np, la.svd(x)[0][..., :1]), OBLONG, "apart"
    yield "numpy.svd", lambda np, la, x: np.linalg.svd(x, full_matrices=False)[1], OBLONG, "apart"
    yield "numpy.svdvals", lambda np, la, x: np.linalg.svdvals(x), OBLONG, "any"
    yield "lax.qr", lambda np, la, x: la.qr(x, full_matrices=False), OBLONG, "apart"
    yield "lax.qr pivoting", lambda np, la, x: la.qr(x, full_matrices=False, pivoting=True), OBLONG, "any"
    yield "numpy.qr", lambda np, la, x: np.linalg.qr(x, "r"), OBLONG, "any"
    yield "numpy.qr complete", lambda np, la, x: np.linalg.qr(x, "complete")[1], OBLONG, "any"
    yield "numpy.qr raw", lambda np, la, x: tuple(np.linalg.qr(x, "raw")), OBLONG, "any"
    yield "lax.schur", lambda np, la, x: la.schur(x), SQUARE, "apart"
    yield "lax.hessenberg", lambda np, la, x: tuple(la.hessenberg(x)), SQUARE, "any"
    yield "lax.tridiagonal", lambda np, la, x: tuple(la.tridiagonal(x)), SQUARE[:3] + SQUARE[4:], "hermitian"
    solves: Any = (((4,), (4,), (4,), (4, 2)), ((2, 3),) * 3 + ((2, 3, 1),), ((5,), (5,), (5,), (5, 1)))
    yield "lax.tridiagonal_solve", lambda np, la, a, d, c, b: la.tridiagonal_solve(a, d + 4, c, b), solves, "any"
    products: Any = (((3, 3), (3,)), ((3, 2), (2,)), ((2, 3, 2), (2, 2)), ((4, 3), (2,)), ((4, 1), (1,)))
    yield "lax.householder_product", lambda np, la, a, t: la.householder_product(a, t), products, "any"
    applied: Any = (((3, 3), (3,), (3, 2)), ((4, 2), (2,), (4, 1)), ((2, 3, 2), (2, 2), (2, 3, 2)))
    yield "lax.ormqr", lambda np, la, a, t, c: la.ormqr(a, t, c), applied, "any"
    yield "lax.ormqr transpose", lambda np, la, a, t, c: la.ormqr(a, t, c, transpose=True), applied, "any"
    updates: Any = (((2, 2), (2,)), ((3, 3), (3,)), ((1, 1), (1,)), ((4, 4), (4,)), ((5, 5), (5,)))
    yield "lax.cholesky_update", lambda np, la, r, w: la.cholesky_update(r, w), updates, "upper"
    yield "lax.qdwh", lambda np, la, x: la.qdwh(x)[:2], (((3, 3),), ((3, 2),), ((2, 2),), ((4, 3),), ((1, 1),)), "apart"
    symmetric: Any = (((3, 2), (3, 3)), ((2, 2), (2, 2)), ((2, 4), (2, 2)), ((1, 3), (1, 1)), ((4, 1), (4, 4)))
    yield (
        "lax.symmetric_product",
        lambda np, la, a, c: la.symmetric_product(a, c + np.swapaxes(c, -1, -2), alpha=2.0, beta=3.0,
                                                  symmetrize_output=True),
        symmetric,
        "any",
    )  # fmt: skip
    sides: Any = (((4, 2), (4,)), ((2, 4), (2,)), ((3, 3), (3, 2)), ((4, 2), (4, 3)), ((5, 3), (5,)))
    yield "numpy.lstsq", lambda np, la, a, b: np.linalg.lstsq(a, b)[0], sides, "apart"
    yield "numpy.lstsq others", lambda np, la, a, b: np.linalg.lstsq(a, b)[2:], sides, "apart"
    yield "numpy.pinv", lambda np, la, x: np.linalg.pinv(x), OBLONG, "apart"
    yield "numpy.pinv hermitian", lambda np, la, x: np.linalg.pinv(x, hermitian=True), SQUARE, "hermitian"
    yield "numpy.matrix_rank", lambda np, la, x: np.linalg.matrix_rank(x), OBLONG, "apart"
    yield "numpy.cond", lambda np, la, x: np.linalg.cond(x), OBLONG, "apart"
    yield "numpy.cond 1", lambda np, la, x: np.linalg.cond(x, 1), SQUARE, "apart"
    yield "numpy.norm 2", lambda np, la, x: np.linalg.norm(x, 2, (-2, -1)), OBLONG, "apart"
    yield "numpy.norm nuc", lambda np, la, x: np.linalg.norm(x, "nuc", (-2, -1)), OBLONG, "apart"
    yield "numpy.slogdet", lambda np, la, x: np.linalg.slogdet(x, method="qr")[1], SQUARE, "apart"
    tensors: Any = (((4, 2, 2),), ((6, 3, 2),), ((2, 2),), ((3, 3),), ((6, 2, 3),))
    yield "numpy.tensorinv", lambda np, la, x: np.linalg.tensorinv(x, ind=1), tensors, "any"
    solved: Any = (((2, 2, 4), (2, 2)), ((3, 3), (3,)), ((2, 3, 6), (2, 3)), ((4, 2, 2), (4,)), ((1, 1), (1,)))
    yield "numpy.tensorsolve", lambda np, la, a, b: np.linalg.tensorsolve(a, b), solved, "any"


REAL_ONLY = ("lax.cholesky_update", "lax.symmetric_product")
CASES = [
    Case(name, run, shapes, kind, dtype)
    for name, run, variants, kind in operations()
    for i, shapes in enumerate(variants)
    for dtype in ("float64", "complex128")
    if dtype == "float64" or (name not in REAL_ONLY and i < 2)
]


def flat(out: Any) -> list[Any]:
    return [out] if hasattr(out, "shape") else [leaf for x in out for leaf in flat(x)]


def loss(np: Any, out: Any) -> Any:
    """A real number that depends on all parts of all results."""
    total = 0.0
    for x in flat(out):
        weights = np.cos(np.arange(x.size, dtype="float64")).reshape(x.shape)
        total = total + (np.real(x) * weights).sum() + (np.imag(x) * np.sin(weights)).sum()
    return total


def quantities(lib: Any, np: Any, linalg: Any, case: Case) -> dict[str, Callable[[], list[Any]]]:
    """What is compared: values, and gradients with respect to all operands."""
    xs = case.operands()
    f = lambda *xs: loss(np, case.run(np, linalg, *xs))
    return {
        "values": lambda: lib.jit(lambda *xs: flat(case.run(np, linalg, *xs)))(*map(np.asarray, xs)),
        "gradient": lambda: list(lib.grad(f, argnums=tuple(range(len(xs))))(*map(np.asarray, xs))),
    }


def as_numbers(x: Any) -> Any:
    """Twelve digits of the real parts, and of the imaginary ones if there are any, in one list."""
    parts = [x.real, x.imag] if x.dtype.kind == "c" else [x]
    return [float(f"{v:.12g}") for part in parts for v in part.ravel().tolist()]


def record() -> None:
    """Write what JAX returns for the cases, and of derivatives where values are equal."""
    from types import SimpleNamespace

    import jax
    import jax.numpy as jnp
    from degenerate_cases import recorded_statuses

    jax.config.update("jax_enable_x64", True)
    compiled = SimpleNamespace(
        jit=jax.jit,
        grad=lambda f, argnums=0: jax.jit(jax.grad(f, argnums)),
        jvp=lambda f, xs, ts: jax.jit(lambda xs, ts: jax.jvp(f, xs, ts))(xs, ts),
    )
    found: dict[str, dict[str, Any]] = {}
    for case in CASES:
        found[case.title] = {}
        for name, compute in quantities(compiled, jnp, jax.lax.linalg, case).items():
            try:
                outs = [np.asarray(x) for x in compute()]
            except Exception as error:
                print(f"{case.title}, {name}: {type(error).__name__}")
                continue
            if all(np.isfinite(x).all() for x in outs):
                found[case.title][name] = [as_numbers(x) for x in outs]
    statuses = recorded_statuses(compiled, jnp, jax.lax.linalg)
    recorded = {"jax": jax.__version__, "cases": found, "degenerate": statuses}
    RECORDED.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
