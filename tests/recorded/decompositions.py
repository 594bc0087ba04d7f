"""Cases of decompositions. Results that hold a choice, such as the signs of vectors, are taken without it."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.recorded.cases import Case

Shape = tuple[int, ...]


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
SYMMETRIC = (*SQUARE[:3], ((4, 4),), ((2, 1, 3, 3),))
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
    yield "lax.schur", lambda np, la, x: [squares(np, y) for y in la.schur(x)], SQUARE, "apart"
    yield "lax.hessenberg", lambda np, la, x: tuple(la.hessenberg(x)), SQUARE, "any"
    yield "lax.tridiagonal", lambda np, la, x: tuple(la.tridiagonal(x)), SYMMETRIC, "hermitian"
    solves: Any = (
        ((4,), (4,), (4,), (4, 2)),
        ((2, 3),) * 3 + ((2, 3, 1),),
        ((5,), (5,), (5,), (5, 1)),
        ((3,),) * 3 + ((3, 4),),
        ((1,),) * 3 + ((1, 2),),
    )
    yield "lax.tridiagonal_solve", lambda np, la, a, d, c, b: la.tridiagonal_solve(a, d + 4, c, b), solves, "any"
    products: Any = (((3, 3), (3,)), ((3, 2), (2,)), ((2, 3, 2), (2, 2)), ((4, 3), (2,)), ((4, 1), (1,)))
    yield "lax.householder_product", lambda np, la, a, t: la.householder_product(a, t), products, "any"
    applied: Any = (((3, 3), (3,), (3, 2)), ((4, 2), (2,), (4, 1)), ((2, 3, 2), (2, 2), (2, 3, 2)))
    yield "lax.ormqr", lambda np, la, a, t, c: la.ormqr(a, t, c), applied, "any"
    yield "lax.ormqr transpose", lambda np, la, a, t, c: la.ormqr(a, t, c, transpose=True), applied, "any"
    updates: Any = (
        ((2, 2), (2,)),
        ((3, 3), (3,)),
        ((1, 1), (1,)),
        ((4, 4), (4,)),
        ((5, 5), (5,)),
        *(((n, n), (n,)) for n in (6, 7, 8, 9, 10)),
    )
    yield "lax.cholesky_update", lambda np, la, r, w: la.cholesky_update(r, w), updates, "upper"
    yield "lax.qdwh", lambda np, la, x: la.qdwh(x)[:2], (((3, 3),), ((3, 2),), ((2, 2),), ((4, 3),), ((1, 1),)), "apart"
    symmetric: Any = (
        ((3, 2), (3, 3)),
        ((2, 2), (2, 2)),
        ((2, 4), (2, 2)),
        ((1, 3), (1, 1)),
        ((4, 1), (4, 4)),
        ((2, 3), (2, 2)),
        ((3, 3), (3, 3)),
        ((5, 2), (5, 5)),
        ((1, 1), (1, 1)),
        ((3, 4), (3, 3)),
    )
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
    yield "numpy.slogdet qr", lambda np, la, x: np.linalg.slogdet(x, method="qr")[1], SQUARE, "apart"
    yield "numpy.slogdet lu", lambda np, la, x: np.linalg.slogdet(x, method="lu")[1], SQUARE, "apart"
    tensors: Any = (((4, 2, 2),), ((6, 3, 2),), ((2, 2),), ((3, 3),), ((6, 2, 3),))
    yield "numpy.tensorinv", lambda np, la, x: np.linalg.tensorinv(x, ind=1), tensors, "any"
    solved: Any = (((2, 2, 4), (2, 2)), ((3, 3), (3,)), ((2, 3, 6), (2, 3)), ((4, 2, 2), (4,)), ((1, 1), (1,)))
    yield "numpy.tensorsolve", lambda np, la, a, b: np.linalg.tensorsolve(a, b), solved, "any"


REAL_ONLY = ("lax.cholesky_update", "lax.symmetric_product", "numpy.slogdet qr")
WRONG_IN_JAX = {"lax.qr pivoting ((2, 3),) float64", "lax.qr pivoting ((2, 3),) complex128"}
"""Cases whose derivatives in JAX are not those of differences, with which the grid compares ours."""


def case(name: str, run: Callable[..., Any], shapes: tuple[Shape, ...], kind: str, dtype: str) -> Case:
    title = f"{name} {shapes} {dtype}"
    rng = np.random.default_rng(sum(map(ord, title)))
    operands = tuple(made(rng, shape, kind if i == 0 else "any", dtype) for i, shape in enumerate(shapes))
    return Case(
        title,
        lambda lib, *xs: run(lib.numpy, lib.lax.linalg, *xs),
        operands,
        x64=True,
        derivatives=title not in WRONG_IN_JAX,
    )


CASES = [
    case(name, run, shapes, kind, dtype)
    for name, run, variants, kind in operations()
    for shapes in variants
    for dtype in ("float64", "complex128")
    if dtype == "float64" or name not in REAL_ONLY
]
