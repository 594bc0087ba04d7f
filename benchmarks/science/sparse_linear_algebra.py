"""Rows of ``scipy.sparse.linalg``: a Laplace operator with varying coefficients on a grid."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as oracle

from benchmarks.science.rows import Part, Row
from pullback import numpy as jnp
from pullback.experimental.sparse import BCOO
from pullback.scipy.sparse import linalg

SMALL, LARGE = 4, 100


class Grid:
    """Symmetric matrices on a grid, by one number for each pair of neighbours and for each point.

    Attributes:
      indices: the row and column of each element, (nse, 2), row by row.
      which: the number, among the parameters, that stands at each position.
      size: how many parameters there are.
    """

    def __init__(self, side: int) -> None:
        line = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(side, side))
        pattern = sp.csr_array(sp.kronsum(line, line)).tocoo()
        order = np.lexsort((pattern.col, pattern.row))
        pairs = np.stack([pattern.row, pattern.col], axis=1)[order].astype(np.int32)
        self.shape = (side * side,) * 2
        self.indices = jnp.asarray(pairs)
        self.pairs = pairs
        ends = np.sort(pairs, axis=1).astype(np.int64)
        _, self.which = np.unique(ends[:, 0] * side * side + ends[:, 1], return_inverse=True)
        self.size = int(self.which.max()) + 1
        self.on_diagonal = np.zeros(self.size, bool)
        self.on_diagonal[self.which[pairs[:, 0] == pairs[:, 1]]] = True

    def parameters(self) -> Any:
        """Return parameters that make the matrix positive definite, all eigenvalues simple."""
        noise = 0.2 * np.random.default_rng(0).random(self.size)
        return np.where(self.on_diagonal, 4.1 + noise, -1 - noise / 4)

    def ours(self, p: Any) -> BCOO:
        """Return the matrix of ours."""
        return BCOO(
            (jnp.asarray(p)[self.which], self.indices), shape=self.shape, indices_sorted=True, unique_indices=True
        )

    def theirs(self, p: Any) -> Any:
        """Return the matrix of SciPy."""
        return sp.csc_array((p[self.which], (self.pairs[:, 0], self.pairs[:, 1])), shape=self.shape)


SMALL_GRID, LARGE_GRID = Grid(SMALL), Grid(LARGE)
SMALLER_GRID = Grid(40)


def right(grid: Grid) -> Any:
    """Return a right side."""
    return np.random.default_rng(1).standard_normal(grid.shape[0])


def of_grid(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the parameters of a grid's matrix, and of further arrays; it knows the grid by its size."""
    grids = {grid.size: grid for grid in (SMALL_GRID, SMALLER_GRID, LARGE_GRID)}
    return lambda p, *args: function(grids[p.shape[0]], p, *args)


def problem(grid: Grid, vector: bool = True) -> Callable[[], Sequence[Any]]:
    """Return the function that makes the arrays of a problem: parameters, and a right side."""
    return lambda: (grid.parameters(), right(grid)) if vector else (grid.parameters(),)


def row(
    name: str, signature: str, ours: Any, theirs: Any, vector: bool = True, large: Grid = LARGE_GRID, **more: Any
) -> Row:
    """Make a row of functions of a grid, of its parameters, and of a right side if ``vector``."""
    small = problem(SMALL_GRID, vector)
    return Row(
        f"scipy.sparse.linalg.{name}", signature, of_grid(ours), of_grid(theirs), small, problem(large, vector), **more
    )


def solves(name: str, ours: Any, theirs: Any, **more: Any) -> Row:
    """Make a row of an iterative solver, on the smaller grid; it runs to the precision of the derivatives."""
    signature = "(A, b, x0, *, tol, atol, maxiter, M)"
    exact = lambda g, p, b: theirs(g.theirs(p), b, rtol=1e-12, atol=0.0)[0]
    return row(
        name, signature, lambda g, p, b: ours(g.ours(p), b, tol=1e-12)[0], exact, large=SMALLER_GRID, **more
    )  # fmt: skip


def preconditioned(name: str, signature: str, make: Any, theirs: Any, note: str = "") -> Row:
    """Make a row of a preconditioner: the solution by ``bicgstab`` with it."""
    exact = lambda g, p, b: oracle.bicgstab(g.theirs(p), b, rtol=1e-12, M=theirs(g.theirs(p)))[0]
    found = lambda g, p, b: linalg.bicgstab(g.ours(p), b, M=make(g.ours(p)), tol=1e-12)[0]
    return row(name, signature, found, exact, large=SMALLER_GRID, note=note)


def approximate_inverse(matrix: Any) -> Any:
    """SciPy's preconditioner by ``spilu``."""
    return oracle.LinearOperator(matrix.shape, oracle.spilu(matrix.tocsc()).solve)


def diagonal(matrix: Any) -> Any:
    """SciPy's preconditioner by the diagonal."""
    return sp.diags_array(1 / matrix.diagonal())


def solved_by_jax() -> Callable[..., Any]:
    """Return the function of JAX's experimental module."""
    from jax.experimental.sparse.linalg import spsolve

    grid = LARGE_GRID
    bounds = np.searchsorted(grid.pairs[:, 0], np.arange(grid.shape[0] + 1)).astype(np.int32)
    return lambda p, b: spsolve(p[grid.which], grid.pairs[:, 1], bounds, b)


def iterated_by_jax(name: str) -> Callable[[], Callable[..., Any]]:
    """Return the maker of an iterative solver of JAX, compiled, with a matrix of its experimental module."""

    def make() -> Callable[..., Any]:
        import jax

        Theirs: Any = importlib.import_module("jax.experimental.sparse").BCOO

        grid = SMALLER_GRID
        solver = getattr(jax.scipy.sparse.linalg, name)
        matrix = lambda p: Theirs(
            (p[grid.which], grid.pairs), shape=grid.shape, indices_sorted=True, unique_indices=True
        )
        return jax.jit(lambda p, b: solver(matrix(p), b, tol=1e-12)[0])  # type: ignore[no-any-return]

    return make


def once_factorised() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what is timed of ``splu``: ten solutions with one factorisation."""
    ours, theirs = linalg.splu(LARGE_GRID.ours(jnp.asarray(LARGE_GRID.parameters()))), oracle.splu(
        LARGE_GRID.theirs(LARGE_GRID.parameters())
    )  # fmt: skip
    repeat = lambda lu: lambda p, b: sum(lu.solve(b) for _ in range(10))
    return repeat(ours), repeat(theirs)


def by_factors(a: Any, b: Any) -> Any:
    """Return the solution of A x = b by L and D."""
    f = linalg.ldl(a)
    return f.apply_Pt(f.solve_Lt(f.solve_L(f.apply_P(b)) / f.D()))


def symmetric(g: Grid, p: Any, b: Any) -> Any:
    """Return SciPy's solution with pivots on the diagonal."""
    options = {"SymmetricMode": True}
    return oracle.splu(g.theirs(p), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve(b)


def logarithm(g: Grid, p: Any) -> Any:
    """The logarithm of the determinant, from SciPy's factors."""
    lu = oracle.splu(g.theirs(p))
    return np.log(np.abs(lu.U.diagonal())).sum()


def by_vectors(values: Any, vectors: Any) -> Any:
    """What does not depend on the signs of eigenvectors."""
    return (vectors[:3] ** 2) * values


def singular(u: Any, s: Any, vh: Any) -> Any:
    """What does not depend on the signs of singular vectors."""
    return (u[:3] * s) * vh[:, :3].T


PART = Part(
    "Sparse linear algebra",
    "`scipy.sparse.linalg`. Matrices are those of `experimental.sparse`, such as the results of `sparse_jacobian` and\n"
    "`sparse_hessian`, or SciPy's, as constants. Derivatives are by the elements, whose cotangent has the matrix's\n"
    "pattern. The matrix is a Laplace operator with varying coefficients, of 10,000 unknowns for direct solvers and\n"
    "1,600 for the others.",
    (
        row(
            "spsolve", "(A, b, permc_spec)", lambda g, p, b: linalg.spsolve(g.ours(p), b),
            lambda g, p, b: oracle.spsolve(g.theirs(p), b),
            peer=solved_by_jax, peer_name="jax.experimental",
        ),
        row(
            "splu", "(A, permc_spec, diag_pivot_thresh, relax, panel_size, options)",
            lambda g, p, b: linalg.splu(g.ours(p)).solve(b, "T"),
            lambda g, p, b: oracle.splu(g.theirs(p)).solve(b, "T"), timed=once_factorised(),
            note="times of ten solutions with one factorisation.",
        ),
        row(
            "factorized", "(A)", lambda g, p, b: linalg.factorized(g.ours(p))(b),
            lambda g, p, b: oracle.factorized(g.theirs(p))(b),
        ),
        row(
            "cholesky", "(A, beta)", lambda g, p, b: linalg.cholesky(g.ours(p)).solve_A(b), symmetric,
            note="`solve_A`; SciPy's column is of `splu` with pivots on the diagonal.",
        ),
        row(
            "ldl", "(A, beta)", lambda g, p, b: by_factors(g.ours(p), b), symmetric,
            note="the solution by L and D, whose elements have derivatives, beside the same `splu`.",
        ),
        row(
            "slogdet", "(A)", lambda g, p: linalg.slogdet(g.ours(p)).logabsdet, logarithm, vector=False,
            note="SciPy has no such function; its column is of the sum of the logarithms of the factor's diagonal.",
        ),
        row(
            "eigsh", "(A, k, sigma, which, v0, ncv, maxiter, tol, return_eigenvectors)",
            lambda g, p: by_vectors(*linalg.eigsh(g.ours(p), 3, sigma=0.0)),
            lambda g, p: by_vectors(*oracle.eigsh(g.theirs(p), 3, sigma=0.0)), vector=False, large=SMALLER_GRID,
        ),
        row(
            "svds", "(A, k, ncv, tol, which, v0, maxiter, return_singular_vectors)",
            lambda g, p: singular(*linalg.svds(g.ours(p), 3)),
            lambda g, p: singular(*oracle.svds(g.theirs(p), 3)), vector=False, large=SMALLER_GRID,
        ),
        row(
            "expm_multiply", "(A, B, start, stop, num, endpoint, traceA)",
            lambda g, p, b: linalg.expm_multiply(g.ours(p), b), lambda g, p, b: oracle.expm_multiply(g.theirs(p), b),
            second=False, note="second derivatives are loops within loops; a test compares first ones with `expm`.",
        ),
        preconditioned(
            "spilu", "(A, drop_tol, fill_factor, drop_rule, permc_spec, ...)", lambda a: linalg.spilu(a).solve,
            approximate_inverse, "with `bicgstab`; as are `jacobi` and `ichol`, which SciPy does not have.",
        ),
        preconditioned("jacobi", "(A)", linalg.jacobi, diagonal),
        preconditioned("ichol", "(A, shift)", linalg.ichol, diagonal),
        solves("cg", linalg.cg, oracle.cg, peer=iterated_by_jax("cg"), peer_name="jax.scipy"),
        solves("minres", linalg.minres, lambda a, b, rtol, atol: oracle.minres(a, b, rtol=rtol)),
        solves(
            "gmres", linalg.gmres, oracle.gmres, peer=iterated_by_jax("gmres"), peer_name="jax.scipy"
        ),
        solves(
            "bicgstab", linalg.bicgstab, oracle.bicgstab, peer=iterated_by_jax("bicgstab"),
            peer_name="jax.scipy",
        ),
        row(
            "lsqr", "(A, b, damp, atol, btol, iter_lim, x0)",
            lambda g, p, b: linalg.lsqr(g.ours(p), b, 0.5, atol=1e-13, btol=1e-13).x,
            lambda g, p, b: oracle.lsqr(g.theirs(p), b, 0.5, atol=1e-13, btol=1e-13)[0], large=SMALLER_GRID,
        ),
        row(
            "lsmr", "(A, b, damp, atol, btol, conlim, maxiter, x0)",
            lambda g, p, b: linalg.lsmr(g.ours(p), b, 0.5, atol=1e-13, btol=1e-13).x,
            lambda g, p, b: oracle.lsmr(g.theirs(p), b, 0.5, atol=1e-13, btol=1e-13)[0], large=SMALLER_GRID,
        ),
    ),
)  # fmt: skip
