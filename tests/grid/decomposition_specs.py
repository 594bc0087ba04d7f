"""The rows for decompositions of matrices. Their values depend on choices, such as the signs of vectors: references
make those of LAPACK; where derivatives are checked, functions do not depend on what has no derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

import pullback.numpy as jnp
from pullback import grad, jvp, lax
from pullback.core import dtypes as core_dtypes
from pullback.primitives import elementwise as ew
from pullback.primitives.linalg import householder, qr, schur, svd, tridiagonal
from pullback.primitives.linalg.decompositions import undetermined_p
from pullback.primitives.linalg.eigen import adapted_p, eig_p, eigenbasis_p, eigh_p
from pullback.primitives.linalg.lapack import adjoint, product
from pullback.primitives.linalg.lu import identity
from tests.grid.numpy_specs import fn
from tests.grid.specs import K, R, Sample, Spec, row

NumpyArray = np.ndarray[Any, Any]
Function = Callable[..., Any]

# Samples -----------------------------------------------------------------------------------------------------------


class Hermitian(R):
    """A sample of Hermitian matrices whose eigenvalues are apart."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(dtype, seed) / 4
        n = self.shape[-1]
        return (x + x.swapaxes(-1, -2).conj() + np.diag(np.arange(n) * 2 - n)).astype(dtype)


class Apart(R):
    """A sample of matrices whose eigenvalues, and whose singular values, are apart, and not zero."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(dtype, seed) / 4
        m, n = self.shape[-2:]
        return (x + np.eye(m, n) * (2 + np.arange(n))).astype(dtype)


class Orthonormal(R):
    """A sample of matrices with orthonormal columns."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        return np.linalg.qr(super().draw(dtype, seed))[0].astype(dtype)


class Upper(R):
    """A sample of upper triangular matrices with a positive diagonal."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        x = super().draw(dtype, seed)
        return (np.triu(x, 1) + 2 * np.eye(self.shape[-1])).astype(dtype)


class Positive(Hermitian):
    """A sample of Hermitian matrices with positive eigenvalues."""

    def draw(self, dtype: np.dtype[Any], seed: int) -> NumpyArray:
        return (super().draw(dtype, seed) + 2 * self.shape[-1] * np.eye(self.shape[-1])).astype(dtype)


# References --------------------------------------------------------------------------------------------------------


def each_matrix(function: Function) -> Function:
    """A function of matrices, for those in the last two axes of the first operand; of the others' last axes alike."""

    def mapped(*xs: Any) -> Any:
        batch = xs[0].shape[:-2]
        if not batch:
            return function(*xs)
        outs = [function(*[x[i] for x in xs]) for i in np.ndindex(*batch)]
        if not isinstance(outs[0], (list, tuple)):
            return np.stack(outs).reshape(*batch, *outs[0].shape)
        return [np.stack(out).reshape(*batch, *out[0].shape) for out in zip(*outs, strict=True)]

    return mapped


def complex_of(x: Any) -> Any:
    return np.asarray(x).astype(core_dtypes.to_complex(x.dtype))


def eig_reference(x: Any, left: bool, right: bool) -> Any:
    w, u, v = scipy.linalg.eig(x, left=True, right=True)
    return [complex_of(w), *([complex_of(u)] if left else []), *([complex_of(v)] if right else [])]


def svd_reference(x: Any, full_matrices: bool, vectors: bool, by_qr: bool) -> Any:
    u, s, vh = scipy.linalg.svd(x, full_matrices, lapack_driver="gesvd" if by_qr else "gesdd")
    return [s, u, vh] if vectors else [s]


def qr_reference(x: Any, full_matrices: bool, pivoting: bool) -> Any:
    out = scipy.linalg.qr(x, mode="full" if full_matrices else "economic", pivoting=pivoting)
    return [*out[:2], *[p.astype(np.int32) for p in out[2:]]]


def reflections(a: Any, taus: Any) -> Any:
    """The product of all reflections."""
    m, k = a.shape[0], taus.shape[0]
    q = np.eye(m, dtype=a.dtype)
    for i in range(k):
        v = np.where(np.arange(m) < i, 0, a[:, i])
        v[i] = 1
        q = q - taus[i] * np.outer(q @ v, v.conj())
    return q.astype(a.dtype)


def tridiagonal_matrix(dl: Any, d: Any, du: Any) -> Any:
    return np.diag(dl[1:], -1) + np.diag(d) + np.diag(du[:-1], 1)


def solved_tridiagonal(dl: Any, d: Any, du: Any, b: Any) -> Any:
    return each_matrix(lambda b, *diagonals: np.linalg.solve(tridiagonal_matrix(*diagonals), b))(b, dl, d, du)


def updated(r: Any, w: Any) -> Any:
    r = np.triu(r)
    return np.linalg.cholesky(r.conj().T @ r + np.outer(w, w.conj())).conj().T


def lyapunov_reference(h: Any, c: Any) -> Any:
    return scipy.linalg.solve_sylvester(h, h, c).astype(c.dtype)


def polar_reference(x: Any) -> Any:
    return scipy.linalg.polar(x)[0].astype(x.dtype)


# Rows --------------------------------------------------------------------------------------------------------------


def made(operation: str, function: Function, reference: Any, *samples: Sample, label: str = "", **options: Any) -> Spec:
    """A row for a function by which an operation is checked."""
    shapes = "x".join(str(s.shape) for s in samples)
    options = {"dtypes": "fdFD", "derivative": "dD", "tolerance": 16, **options}
    return Spec(f"{operation}({shapes};{label})", operation, function, reference, samples, **options)


def without_phases(w: Any, v: Any) -> list[Any]:
    """The eigenvalues, and the projections to the spaces of single eigenvectors, stacked."""
    return [w, [product(v[..., i : i + 1], adjoint(v[..., i : i + 1])) for i in range(v.shape[-1])]]


def eigh_projections(x: Any) -> Any:
    return without_phases(*eigh_p.bind(x, vectors=True))


def svd_products(x: Any, full_matrices: bool) -> Any:
    """The singular values, products of pairs of singular vectors, and projections to what is beyond them."""
    s, u, vh = svd.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    pairs = [product(u[..., i : i + 1], vh[..., i : i + 1, :]) for i in range(k)]
    rest = [product(q, adjoint(q)) for q in (u[..., k:], adjoint(vh[..., k:, :])) if q.shape[-1]]
    return [s, *pairs, *rest]


def exponential(x: Any, rate: Any = 1.0) -> Any:
    return jnp.linalg.matrix_function(lambda w: jnp.exp(jnp.real(rate) * w / 4), x)


def exponential_reference(x: Any, rate: Any = 1.0) -> Any:
    return scipy.linalg.expm((x + x.swapaxes(-1, -2).conj()) / 2 * np.real(rate) / 4).astype(x.dtype)


def by_the_rate(x: Any, rate: Any) -> Any:
    return grad(lambda r: jnp.sum(jnp.real(exponential(x, r)) ** 2))(jnp.real(rate))


def of_basis(operation: Any, turned: bool, x: Any, values: Any, *vectors: Any) -> Any:
    return operation.bind(x, jnp.real(values), *vectors, turned=turned)


def as_basis(x: Any, values: Any, *vectors: Any) -> Any:
    return [values.real, *vectors]


def parts_of_zeros(zero: Sequence[int], left: Any, moved: Any) -> Any:
    """What is beyond the other left vectors, made of the vectors of zeros; and whether all vectors are orthonormal."""
    zero_column = np.array(zero, bool)
    kept = jnp.where(zero_column, 0, left)
    beyond = jnp.where(zero_column, moved - product(kept, product(adjoint(kept), moved)), 0)
    u, turn = svd.vectors_of_zeros(np.broadcast_to(zero_column, (*left.shape[:-2], len(zero))), left, beyond)
    inner = product(adjoint(u), product(beyond, turn))
    diagonal = inner * np.eye(len(zero), dtype=left.dtype)
    made_of = product(u, product(diagonal, adjoint(turn)))
    return [made_of, product(adjoint(u), u), product(adjoint(turn), turn), jnp.where(zero_column, 0, u)]


def parts_of_zeros_reference(zero: Sequence[int], left: Any, moved: Any) -> Any:
    kept, one = np.where(zero, 0, left), np.eye(len(zero), dtype=left.dtype)
    return [np.where(zero, moved - kept @ (kept.conj().T @ moved), 0), one, one, kept]


def full_qr(x: Any) -> Any:
    """R, and all columns of Q, the last of which follow from the first."""
    q, r = qr.qr(x, full_matrices=True)
    return [r, q]


def pseudo_inverse(x: Any, hermitian: bool = False) -> Any:
    return jnp.linalg.pinv(x, hermitian=hermitian)


ALL = {"dtypes": "fdFD", "tolerance": 16}
VALUES = {**ALL, "derivative": ""}
SQUARE: Sequence[tuple[int, ...]] = ((1, 1), (3, 3), (3, 2, 2), (0, 0), (2, 0, 0))
OBLONG: Sequence[tuple[int, ...]] = ((1, 1), (3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2), (2, 0))


def has_elements(shape: Sequence[int]) -> bool:
    return 0 not in shape


EIGENVALUES = [
    *(
        row(
            eigh_p,
            (lambda x: list(np.linalg.eigh(x))) if vectors else (lambda x: [np.linalg.eigvalsh(x)]),
            Hermitian(*shape),
            params={"vectors": vectors},
            **({**VALUES} if vectors else ALL),
        )
        for shape in SQUARE
        for vectors in (False, True)
    ),
    *(
        made(
            "eigenbasis", partial(of_basis, eigenbasis_p, turned), as_basis, *samples, label=str(turned), derivative=""
        )
        for samples in ((Hermitian(3, 3), R(3), R(3, 3)),)
        for turned in (False, True)
    ),
    *(
        row(adapted_p, reference, K(same, bool, fixed=True), Hermitian(*np.shape(same)), **VALUES)
        for same, reference in (
            (np.eye(3), lambda same, x: np.eye(3, dtype=x.dtype)),
            (np.ones((3, 3)), lambda same, x: np.linalg.eigh(x)[1]),
            ([[1, 1, 0], [1, 1, 0], [0, 0, 1]], None),
            ([np.eye(2), np.ones((2, 2)), np.eye(2)], None),
        )
    ),
    *(
        row(
            undetermined_p,
            lambda where, w, x: [w, np.where(where, np.nan, x)],
            K(where, bool, fixed=True),
            R(2),
            R(2, 2),
            dtypes="fd",
        )
        for where in (np.zeros((2, 2)),)
    ),
    *(
        made("matrix_function", exponential, exponential_reference, *samples)
        for samples in (
            *((Hermitian(*shape),) for shape in SQUARE if has_elements(shape)),
            (R(3, 3), R()),
            (K([[2.0, 0, 0], [0, 1, 0], [0, 0, 1]]), R()),
        )
    ),
    made("matrix_function_along", lambda x: jvp(exponential, (x,), (x,))[1], None, Hermitian(3, 3)),
    made("matrix_function_by_captured", partial(exponential, np.diag([1.0, 1, 2])), None, R(), derivative="d"),
    *(
        made(f"matrix_function_{name}", by_the_rate, None, Hermitian(2, 2), R())
        for name in ("cotangent", "cotangent_along")
    ),
    *(made("eigh", eigh_projections, None, Hermitian(*shape)) for shape in ((3, 3), (3, 2, 2))),
    *(
        row(
            eig_p,
            each_matrix(partial(eig_reference, left=left, right=right)) if has_elements(shape) else None,
            Apart(*shape),
            params={"left": left, "right": right},
            **{**ALL, "tolerance": 64, "derivative": "dD" if has_elements(shape) else ""},
        )
        for shape, left, right in (
            ((3, 3), False, False),
            ((3, 3), True, True),
            ((3, 3), False, True),
            ((3, 2, 2), True, False),
            ((0, 0), True, True),
        )
    ),
]

SINGULAR_VALUES = [
    made(
        "singular_basis",
        partial(of_basis, svd.singular_basis_p, False),
        as_basis,
        Apart(3, 2),
        R(2),
        R(3, 2),
        R(2, 2),
        derivative="",
    ),
    *(
        made(
            "vectors_of_zeros",
            partial(parts_of_zeros, zero),
            each_matrix(partial(parts_of_zeros_reference, zero)),
            Orthonormal(*shape),
            R(*shape),
            label=str(zero),
            derivative="",
        )
        for shape, zero in (((3, 3), (0, 0, 0)), ((4, 3), (0, 1, 1)), ((2, 3, 3), (0, 1, 1)), ((2, 2), (1, 1)))
    ),
    *(
        row(
            svd.svd_p,
            each_matrix(partial(svd_reference, **params)) if has_elements(shape) else None,
            Apart(*shape),
            params=params,
            **(VALUES if params["vectors"] else ALL),
        )
        for shape in OBLONG
        for params in (
            {"full_matrices": False, "vectors": False, "by_qr": False},
            {"full_matrices": False, "vectors": True, "by_qr": False},
            {"full_matrices": True, "vectors": True, "by_qr": True},
        )
    ),
    *(
        made("svd", partial(svd_products, full_matrices=full), None, Apart(*shape), label=f"products {full}")
        for shape in ((3, 3), (4, 2), (2, 3))
        for full in (False, True)
        if not full or shape != (3, 3)
    ),
    *(
        made("pinv", partial(pseudo_inverse), np.linalg.pinv, Apart(*shape))
        for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2))
    ),
    made("pinv", partial(pseudo_inverse, hermitian=True), np.linalg.pinv, Hermitian(3, 3), label="hermitian"),
    *(
        row(svd.polar_p, each_matrix(polar_reference) if has_elements(shape) else None, Apart(*shape), **ALL)
        for shape in ((1, 1), (3, 3), (4, 2), (2, 3, 2), (0, 0))
    ),
    *(
        row(
            svd.nuclear_norm_p,
            lambda x: np.linalg.norm(x, "nuc", (-2, -1)) if x.size else np.zeros(x.shape[:-2], x.real.dtype),
            Apart(*shape),
            **ALL,
        )
        for shape in ((3, 3), (4, 2), (2, 2, 3), (0, 2))
    ),
    *(
        row(
            svd.lyapunov_p,
            each_matrix(lyapunov_reference),
            Positive(*shape),
            R(*shape),
            **{**ALL, "differentiable": (1,)},
        )
        for shape in ((3, 3), (3, 2, 2))
    ),
    made(
        "lyapunov",
        lambda x, c: svd.lyapunov(ew.add(product(x, adjoint(x)), identity(x.shape[-1], x.dtype)), c),
        None,
        R(2, 2),
        R(2, 2),
        label="of a product",
    ),
]

ORTHOGONAL = [
    *(
        row(
            qr.qr_p,
            each_matrix(partial(qr_reference, **params)) if has_elements(shape) else None,
            Apart(*shape),
            params=params,
            **({**VALUES} if params["full_matrices"] and shape[-2] > shape[-1] else ALL),
        )
        for shape in OBLONG
        for params in (
            {"full_matrices": False, "pivoting": False},
            {"full_matrices": True, "pivoting": True},
        )
    ),
    *(made("qr", full_qr, None, Apart(*shape)) for shape in ((4, 2), (2, 3, 2))),
    *(row(householder.geqrf_p, None, R(*shape), **VALUES) for shape in ((3, 3), (4, 2), (2, 2, 3), (0, 2))),
    *(
        row(
            householder.householder_product_p,
            each_matrix(lambda a, t: reflections(a, t)[:, : a.shape[-1]]) if has_elements(a) else None,
            R(*a),
            R(*t),
            **ALL,
        )
        for a, t in (((3, 3), (3,)), ((4, 2), (2,)), ((4, 3), (2,)), ((3, 3, 2), (3, 2)), ((2, 0), (0,)))
    ),
    *(
        row(
            householder.ormqr_p,
            each_matrix(
                lambda a, t, c, transpose=transpose: (
                    (reflections(a, t).conj().T if transpose else reflections(a, t)) @ c
                )
            ),
            R(*a),
            R(*t),
            R(*c),
            params={"transpose": transpose},
            **ALL,
        )
        for a, t, c in (((3, 3), (3,), (3, 2)), ((4, 3), (2,), (4, 1)), ((3, 3, 2), (3, 2), (3, 3, 2)))
        for transpose in (False, True)
    ),
]

OTHERS = [
    *(
        row(
            schur.schur_p,
            each_matrix(lambda x: list(scipy.linalg.schur(x))) if has_elements(shape) and vectors else None,
            Apart(*shape),
            params={"vectors": vectors},
            **VALUES,
        )
        for shape in SQUARE
        for vectors in (True, False)
    ),
    *(row(schur.hessenberg_p, None, R(*shape), **VALUES) for shape in SQUARE),
    *(
        row(schur.tridiagonal_p, None, Hermitian(*shape), params={"lower": lower}, **VALUES)
        for shape in SQUARE
        for lower in (True, False)
    ),
    *(
        row(
            tridiagonal.tridiagonal_solve_p,
            solved_tridiagonal,
            R(*d),
            R(*d, lo=4, hi=5),
            R(*d),
            R(*b),
            **ALL,
        )
        for d, b in (((1,), (1, 2)), ((4,), (4, 2)), ((2, 3), (2, 3, 1)))
    ),
    *(
        row(tridiagonal.cholesky_update_p, each_matrix(updated), Upper(*r), R(*w), **ALL)
        for r, w in (((1, 1), (1,)), ((3, 3), (3,)), ((3, 2, 2), (3, 2)))
    ),
    *(
        made("symmetric_product", partial(lax.linalg.symmetric_product, alpha=2.0, beta=0.5),
             lambda a, c: 2 * a @ a.swapaxes(-1, -2) + c / 2, R(*a), R(*c))
        for a, c in (((3, 2), (3, 3)), ((3, 2, 4), (3, 2, 2)))
    ),
    *(
        made("qdwh", lambda x: lax.linalg.qdwh(x)[:2], lambda x: [y.astype(x.dtype) for y in scipy.linalg.polar(x)],
             Apart(*shape))
        for shape in ((3, 3), (4, 2))
    ),
]  # fmt: skip


def in_linalg(name: str, *samples: Sample, label: str = "", reference: Any = None, **options: Any) -> Spec:
    """A row for a function of ``numpy.linalg``; ``reference`` for those that NumPy's does not serve for."""
    keywords = options.pop("keywords", {})

    def call(module: Any, *xs: Any) -> Any:
        if module is np and reference is not None:
            return reference(*xs)
        return getattr(module.linalg, name)(*xs, **keywords)

    shown = label or ",".join(f"{k}={v}" for k, v in keywords.items())
    return fn(f"linalg.{name}", *samples, label=shown, call=call, **{"dtypes": "fdFD", "tolerance": 32, **options})


def lstsq_reference(a: Any, b: Any) -> Any:
    x, _, rank, s = np.linalg.lstsq(a, b)
    errors = np.abs(b - a @ x) ** 2
    return x, np.atleast_1d(errors.sum(0)), np.int32(rank), s


FUNCTIONS = [
    in_linalg("eigh", Hermitian(3, 3), derivative=""),
    in_linalg("eigvalsh", R(3, 3), reference=lambda x: np.linalg.eigvalsh((x + x.conj().T) / 2)),
    in_linalg("eigvalsh", R(3, 3), keywords={"UPLO": "U", "symmetrize_input": False},
              reference=lambda x: np.linalg.eigvalsh(x, "U")),
    in_linalg("eig", Apart(3, 3), reference=lambda x: eig_reference(x, False, True)),
    in_linalg("eigvals", Apart(3, 2, 2), reference=lambda x: complex_of(np.linalg.eigvals(x))),
    in_linalg("svd", Apart(3, 2), derivative=""),
    in_linalg("svd", Hermitian(3, 3), keywords={"hermitian": True}, derivative="",
              reference=lambda x: [*np.linalg.svd(x, hermitian=True)]),
    in_linalg("svd", Apart(3, 4), keywords={"compute_uv": False, "subset_by_index": (1, 3)},
              reference=lambda x: np.linalg.svd(x, compute_uv=False)[1:3]),
    in_linalg("svdvals", Apart(2, 3, 2)),
    in_linalg("qr", Apart(3, 2)),
    in_linalg("qr", Apart(3, 2), keywords={"mode": "r"}),
    in_linalg("qr", Apart(3, 2), keywords={"mode": "complete"}, derivative=""),
    in_linalg("qr", Apart(3, 2), keywords={"mode": "raw"}, derivative=""),
    in_linalg("lstsq", Apart(4, 2), R(4), reference=lstsq_reference, exact_dtype=False),
    in_linalg("lstsq", Apart(2, 4), R(2, 3), reference=lambda a, b: np.linalg.lstsq(a, b)[0]),
    in_linalg("pinv", Apart(4, 2)),
    in_linalg("matrix_rank", Apart(2, 3, 4), derivative="", exact_dtype=False),
    in_linalg("matrix_rank", Hermitian(3, 3), keywords={"hermitian": True}, derivative="", exact_dtype=False),
    *(in_linalg("cond", Apart(4, 3), keywords={"p": p}) for p in (None, -2)),
    *(in_linalg("cond", Apart(3, 3), keywords={"p": p}) for p in (1, "fro", "nuc")),
    *(in_linalg("norm", Apart(3, 2), keywords={"ord": p}) for p in (2, -2, "nuc")),
    in_linalg("norm", Apart(2, 3, 2), keywords={"ord": "nuc", "axis": (2, 0), "keepdims": True}),
    in_linalg("matrix_norm", Apart(3, 2), keywords={"ord": 2}),
    in_linalg("tensorinv", Apart(4, 4), label="of four axes", reference=lambda x: np.linalg.inv(x)),
    in_linalg("tensorsolve", Apart(4, 4), R(4)),
]  # fmt: skip
FUNCTIONS[-2].function = lambda x: jnp.linalg.tensorinv(x.reshape(2, 2, 2, 2)).reshape(4, 4)

DECOMPOSITIONS: list[Spec] = [*EIGENVALUES, *SINGULAR_VALUES, *ORTHOGONAL, *OTHERS]
DECOMPOSITION_FUNCTIONS: list[Spec] = FUNCTIONS

for _spec in DECOMPOSITION_FUNCTIONS:
    if _spec.name.startswith("numpy.linalg.lstsq((2, 4)"):  # nothing but rounding is left of these equations
        _spec.function = lambda a, b: jnp.linalg.lstsq(a, b)[0]
