"""Cases of ``scipy.linalg``, ``scipy.sparse.linalg`` and ``scipy.optimize``."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from tests.recorded.cases import Case
from tests.recorded.decompositions import OBLONG, SQUARE, Shape, made, squares

ONE: tuple[tuple[Shape, ...], ...] = (((3, 3),), ((2, 2),), ((1, 1),), ((4, 4),), ((5, 5),))
VECTORS: tuple[tuple[Shape, ...], ...] = (((3,),), ((2, 4),), ((5,),), ((2,),), ((2, 1, 3),))
PAIRS: Any = (((3,), (4,)), ((2, 3), (2,)), ((4,), (2,)), ((2,), (3,)), ((2, 2), (2, 3)))
SYSTEMS: Any = (((3, 3), (3,)), ((2, 2), (2,)), ((1, 1), (1,)), ((4, 4), (4,)), ((5, 5), (5,)))
TALL: tuple[tuple[Shape, ...], ...] = (((3, 2),), ((3, 3),), ((4, 2),), ((2, 3, 2),), ((5, 4),))
LESLIE: Any = (((3,), (2,)), ((2, 3), (2, 2)), ((4,), (3,)), ((2,), (1,)), ((5,), (4,)))

OF_A_SIZE: dict[str, Callable[..., Any]] = {
    "dft": lambda f, n: f(n, (None, "n", "sqrtn")[n % 3]),
    "hadamard": lambda f, n: f(2 ** (n % 5), dtype=(int, "float32")[n % 2]),
    "helmert": lambda f, n: f(n, bool(n % 2)),
    "hilbert": lambda f, n: f(n),
    "invhilbert": lambda f, n: f(n),
    "invpascal": lambda f, n: f(n, (None, "lower", "upper")[n % 3]),
    "pascal": lambda f, n: f(n, (None, "lower", "upper")[n % 3]).astype(
        "float32"
    ),  # JAX's dtype, whatever is computed with
}


def hermitian(np: Any, x: Any) -> Any:
    """JAX reads the Hermitian part; Pullback, like SciPy, one triangle."""
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def operations() -> Iterator[tuple[str, Callable[..., Any], tuple[tuple[Shape, ...], ...], str]]:
    """The name of each operation, how it is called, the shapes of operands, and how the first is made."""
    yield "block_diag", lambda np, la, x, y: la.block_diag(x, y, x), (((2, 3), (2,)), *PAIRS[2:4], *SYSTEMS[:2]), "any"
    for name in ("circulant", "fiedler", "companion", "fiedler_companion"):
        yield name, lambda np, la, x, name=name: getattr(la, name)(x + 3), VECTORS, "any"
    yield "convolution_matrix", lambda np, la, x: la.convolution_matrix(x, 3), VECTORS[:2], "any"
    for mode in ("same", "valid"):
        yield (
            f"convolution_matrix {mode}",
            lambda np, la, x, mode=mode: la.convolution_matrix(x, 4, mode),
            VECTORS[:2],
            "any",
        )
    yield "convolution_matrix long", lambda np, la, x: la.convolution_matrix(x, 2, "valid"), VECTORS[2:3], "any"
    yield "toeplitz", lambda np, la, x, y: (la.toeplitz(x, y), la.toeplitz(x)), PAIRS, "any"
    yield "hankel", lambda np, la, x, y: (la.hankel(x, y), la.hankel(x)), PAIRS, "any"
    yield "leslie", lambda np, la, x, y: la.leslie(x, y), LESLIE, "any"
    yield "eigh", lambda np, la, x: (lambda w, v: (w, squares(np, v)))(*la.eigh(hermitian(np, x))), SQUARE, "hermitian"
    yield (
        "eigh values",
        lambda np, la, x: la.eigh(hermitian(np, x), lower=False, eigvals_only=True),
        SQUARE,
        "hermitian",
    )
    yield "expm", lambda np, la, x: la.expm(x), SQUARE, "any"
    yield "expm large", lambda np, la, x: la.expm(3 * x), SQUARE[:1], "apart"
    yield "expm triangular", lambda np, la, x: la.expm(np.triu(x), upper_triangular=True), SQUARE[:1], "upper"
    directions: Any = (((2, 2),) * 2, ((3, 3),) * 2, ((2, 2, 2),) * 2, ((1, 1),) * 2, ((4, 4),) * 2)
    yield "expm_frechet", lambda np, la, x, e: la.expm_frechet(x, e), directions, "any"
    yield "funm", lambda np, la, x: la.funm(x, np.sin), ONE, "apart"
    yield "hessenberg", lambda np, la, x: la.hessenberg(x, calc_q=True), SQUARE, "any"
    yield "hessenberg alone", lambda np, la, x: la.hessenberg(x), SQUARE[:1], "any"
    yield "polar", lambda np, la, x: la.polar(x, method="svd"), TALL, "apart"
    yield "polar left", lambda np, la, x: la.polar(np.swapaxes(x, -1, -2), "left", method="svd"), TALL[:2], "apart"
    yield "qr", lambda np, la, x: la.qr(x, mode="economic"), OBLONG, "apart"
    yield "qr r", lambda np, la, x: la.qr(x, mode="r")[0], OBLONG[1:3], "apart"
    yield "qr_multiply", lambda np, la, x, c: la.qr_multiply(x, c), SYSTEMS, "apart"
    yield "qr_multiply left", lambda np, la, x, c: la.qr_multiply(x, c, "left", conjugate=True), SYSTEMS[:2], "apart"
    yield "schur", lambda np, la, x: la.schur(x), ONE, "hermitian"
    yield "schur complex", lambda np, la, x: squares(np, la.schur(x, "complex")[0]), ONE, "any"
    yield "rsf2csf", lambda np, la, x: [squares(np, y) for y in la.rsf2csf(*la.schur(x))], ONE, "any"
    equations: Any = (
        ((3, 3), (2, 2), (3, 2)), ((2, 2), (3, 3), (2, 3)), ((1, 1), (1, 1), (1, 1)), ((4, 4), (2, 2), (4, 2)),
        ((3, 3), (3, 3), (3, 3)),
    )  # fmt: skip
    yield "solve_sylvester", lambda np, la, a, b, c: la.solve_sylvester(a, b, c), equations, "apart"
    yield (
        "solve_sylvester eigen",
        lambda np, la, a, b, c: la.solve_sylvester(a, b, c, method="eigen"),
        equations[:2],
        "apart",
    )
    yield "sqrtm", lambda np, la, x: la.sqrtm(x), ONE, "apart"
    yield "svd", lambda np, la, x: [squares(np, y) for y in la.svd(x, full_matrices=False)], OBLONG, "apart"
    yield "svd values", lambda np, la, x: la.svd(x, compute_uv=False), OBLONG, "apart"


def tridiagonal() -> Iterator[Case]:
    for n in range(2, 12):
        rng = np.random.default_rng(n)
        chosen = {"select": "i", "select_range": (0, n // 2)} if n % 2 else {}

        def run(lib: Any, d: Any, e: Any, chosen: Any = chosen) -> Any:
            return linalg(lib).eigh_tridiagonal(d, e, eigvals_only=True, **chosen)

        operands = (rng.normal(size=n) + np.arange(n), rng.normal(size=n - 1))
        yield Case(f"scipy.linalg.eigh_tridiagonal {n}", run, operands, x64=True, derivatives=False)


def iterative() -> Iterator[Case]:
    """Systems of equations, to a tolerance that is far below that of the comparison."""
    for name in ("cg", "bicgstab", "gmres"):
        for (shape, vector), dtype in ((s, d) for s in SYSTEMS for d in ("float64", "complex128")):
            title = f"scipy.sparse.linalg.{name} {shape} {dtype}"
            rng = np.random.default_rng(sum(map(ord, title)))
            a, b = made(rng, shape, "apart", dtype), made(rng, vector, "any", dtype)

            def run(lib: Any, a: Any, b: Any, name: str = name) -> Any:
                solvers = import_module(f"{lib.__name__}.scipy.sparse.linalg")
                a = a @ lib.numpy.conj(a.T) if name == "cg" else a
                return getattr(solvers, name)(a, b, tol=1e-13)[0]

            yield Case(title, run, (a, b), x64=True, derivatives=name != "gmres")  # minutes of compiling in JAX


def linalg(lib: Any) -> Any:
    return import_module(f"{lib.__name__}.scipy.linalg")


def case(
    name: str, run: Callable[..., Any], shapes: tuple[Shape, ...], kind: str, dtype: str, derivatives: bool
) -> Case:
    title = f"scipy.linalg.{name} {shapes} {dtype}"
    rng = np.random.default_rng(sum(map(ord, title)))
    operands = tuple(
        made(rng, shape, kind if len(shape) > 1 and (i == 0 or kind == "apart") else "any", dtype)
        for i, shape in enumerate(shapes)
    )
    return Case(title, lambda lib, *xs: run(lib.numpy, linalg(lib), *xs), operands, x64=True, derivatives=derivatives)


CASES = [
    *(
        case(name, run, shapes, kind, dtype, derivatives=i < 2)  # JAX compiles derivatives for half a minute and more
        for name, run, variants, kind in operations()
        for i, shapes in enumerate(variants)
        for dtype in ("float64", "complex128")
    ),
    *(
        Case(
            f"scipy.linalg.{name} {n}",
            lambda lib, name=name, run=run, n=n: run(getattr(linalg(lib), name), n),
            x64=True,
        )
        for name, run in OF_A_SIZE.items()
        for n in range(1, 11)
    ),
    *tridiagonal(),
    *iterative(),
]
