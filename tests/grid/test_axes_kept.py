"""What operations say of the axes that they keep holds: each index of the result depends on that index alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from pullback import hessian, jit, lax, make_jaxpr, vmap
from pullback import numpy as jnp
from pullback.core import dtypes
from pullback.core.config import enable_x64
from pullback.derivatives import laplacian
from pullback.primitives.arrays import indexing, slicing
from pullback.primitives.linalg import decompositions, eigen, lu, matrix_equations, matrix_functions, qr, schur, svd
from pullback.primitives.rules import axis_kept
from pullback.primitives.signals import fourier
from pullback.primitives.signals.window_reductions import (
    Windows,
    put_chosen_p,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    take_chosen_p,
    window_positions_p,
)
from pullback.scipy import linalg
from tests.grid.all_specs import OF_PRIMITIVES
from tests.grid.decomposition_specs import Hermitian
from tests.grid.specs import Dominant, K, R, row
from tests.helpers import largest
from tests.primitives_of import all_primitives

WITH_RULE = {p.name: p for p in all_primitives() if axis_kept.of(p) is not None}
I = K(np.int32(0))
MORE = [
    row(slicing.pad_p, None, R(2, 3), R(), params={"padding_config": ((0, 0, 0), (1, -1, 1))}),
    row(slicing.slice_p, None, R(2, 3), params={"start_indices": (0, 1), "limit_indices": (2, 3), "strides": (1, 2)}),
    row(slicing.rev_p, None, R(2, 3), params={"dimensions": (1,)}),
    row(indexing.dynamic_slice_p, None, R(2, 3), I, I, params={"slice_sizes": (2, 1)}),
    row(indexing.dynamic_update_slice_p, None, R(2, 3), R(2, 1), I, I),
    row(fourier.fft_p, None, R(2, 3), params={"fft_type": fourier.FftType.FFT, "fft_lengths": (3,)}, dtypes="F"),
]
A, B = (2, 3, 3), (2, 3, 1)
"""Two matrices, and a column for each."""
MORE += [
    row(eigen.eigh_p, None, Hermitian(*A), params={"vectors": True}),
    row(eigen.eig_p, None, R(*A), params={"left": True, "right": True}),
    row(svd.svd_p, None, R(*A), params={"full_matrices": False, "vectors": True, "by_qr": False}),
    row(qr.qr_p, None, R(*A), params={"full_matrices": False, "pivoting": False}),
    row(schur.schur_p, None, R(*A), params={"vectors": True}),
    row(schur.hessenberg_p, None, R(*A)),
    row(
        lu.linear_solve_p,
        None,
        Dominant(*A),
        Dominant(*A),
        K(np.array([[0, 1, 2], [2, 1, 0]], np.int32)),
        R(*B),
        params={"transpose": False},
    ),
]
ZERO_VALUES = K(np.array([[False, False, True], [False, True, True]]))
MORE += [
    row(eigen.eigenbasis_p, None, Hermitian(*A), R(2, 3), R(*A), params={"turned": False}),
    row(svd.singular_basis_p, None, R(2, 3, 2), R(2, 2), R(2, 3, 2), R(2, 2, 2), params={"turned": False}),
    row(svd.vectors_of_zeros_p, None, ZERO_VALUES, R(*A), R(*A)),
    row(svd.pinv_p, None, R(*A), K(np.full(2, 1e-3)), params={"hermitian": False}),
    row(decompositions.undetermined_p, None, K(np.eye(3) + np.zeros(A) > 0), R(2, 3), R(*A)),
    row(matrix_functions.logm_frechet_p, None, Dominant(*A), R(*A), dtypes="D"),
    row(
        matrix_equations.matrix_equation_p,
        None,
        *[Dominant(*A)] * 6,
        R(*A),
        params={"stein": False, "conjugated": False, "tolerance": 0.0},
    ),
]
WINDOWS = {"windows": Windows((1, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))}
CHOSEN = K(np.array([[0, 1, 0], [1, 1, 0]], np.int32))
MORE += [
    *(row(p, None, R(2, 4), params=WINDOWS) for p in (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p)),
    row(window_positions_p, None, R(2, 4), params={**WINDOWS, "largest": True}),
    row(take_chosen_p, None, R(2, 4), CHOSEN, params=WINDOWS),
    row(put_chosen_p, None, R(2, 3), CHOSEN, params={**WINDOWS, "shape": (2, 4)}),
]
ROWS = [spec for spec in [*OF_PRIMITIVES, *MORE] if spec.operation in WITH_RULE and spec.samples]
OF_EAGER_DERIVATIVES = {
    "qr_differential", "qr_pull", "qr_pull_of_r", "eigenvalues_differential", "eigenvalues_pull"
}  # fmt: skip
"""Derivatives of one decomposition: tests/primitives/linalg has their batches."""
ELSEWHERE = OF_EAGER_DERIVATIVES | {
    "reduce_and", "reduce_or", "reduce_xor", "random_wrap", "random_unwrap", "lu_pivots_to_permutation"
}  # fmt: skip
"""These, and operations on bits and integers, which have no derivatives."""


def claims(spec: Any) -> list[tuple[int, int, int]]:
    """Operand, axis of it and axis of the result, for all that an operation says that it keeps."""
    letter = spec.derivative[:1] or spec.dtypes[0]
    args = spec.point(letter)
    rule: Any = axis_kept.of(WITH_RULE[spec.operation])
    shapes = [np.shape(x) for x in args]
    eqns = make_jaxpr(spec.function)(*args).eqns
    if len(eqns) != 1:  # what is compared is made of the results
        return []
    params = eqns[0].params
    found = []
    for i, x in enumerate(args):
        if dtypes.is_inexact(x.dtype):
            for axis in range(x.ndim):
                kept = rule(axis, i, *shapes, **params)
                if kept is not None:
                    found.append((i, axis, kept))
    return found


def changed(spec: Any, args: list[Any], i: int, axis: int, index: int) -> list[Any]:
    """Which elements of the results are others, where an index of an operand is."""

    def results(args: list[Any]) -> list[Any]:
        out = spec.function(*map(jnp.asarray, args))
        return [np.asarray(x) for x in (out if isinstance(out, (list, tuple)) else [out])]

    other = args[i].copy()
    at = (slice(None),) * axis + (index,)
    other[at] = other[at] * np.asarray(1.25, other.dtype)
    before, after = results(args), results([*args[:i], other, *args[i + 1 :]])
    return [~((a == b) | ((a != a) & (b != b))) for a, b in zip(before, after, strict=True)]


@pytest.mark.parametrize("spec", ROWS, ids=str)
def test_an_index_of_a_kept_axis_depends_on_that_index_alone(spec: Any) -> None:
    letter = spec.derivative[:1] or spec.dtypes[0]
    with enable_x64():
        args = spec.point(letter)
        for i, axis, kept in claims(spec):
            n = args[i].shape[axis]
            for index in {0, n // 2, n - 1} if n else ():
                for differs in changed(spec, args, i, axis, index):
                    assert differs.shape[kept] == n
                    others = np.delete(differs, index, axis=kept)
                    assert not others.any(), (i, axis, kept, index)


def test_every_operation_that_says_so_has_a_row_in_which_it_keeps_an_axis() -> None:
    with enable_x64():
        kept = {spec.operation for spec in ROWS if claims(spec)}
    assert WITH_RULE.keys() - kept - ELSEWHERE == set()


# Laplacians ----------------------------------------------------------------------------------------------------------

POSITIONS = np.array([2, 0])


def gram(x: Any) -> Any:
    return x[:, :, None] * x[:, None, :] + jnp.diag(jnp.arange(1.0, 4.0))


KEEPING = {
    "flip": lambda x: x[:, ::-1],
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "cumprod": lambda x: jnp.cumprod(x, 1),
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 1))),
    "take": lambda x: jnp.take(x, POSITIONS, axis=1),
    "positions": lambda x: x[:, POSITIONS],
    "sort": lambda x: jnp.sort(x, axis=1),
    "argsort": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "norm": lambda x: jnp.linalg.norm(x, axis=1),
    "sums of windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "SAME"),
    "maxima of windows": lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 1), "VALID"),
    "maximum": lambda x: x.max(1),
    "roll": lambda x: jnp.roll(x, 1, 1),
    "set": lambda x: x.at[:, 0].set(2.0 * x[:, 1]),
    "add": lambda x: x.at[:, 1].add(x[:, 0]),
    "fft": lambda x: jnp.fft.fft(x).real,
    "stack": lambda x: jnp.stack([x, x], 1)[:, 1],
    "unstack": lambda x: sum(jnp.unstack(x, axis=1)),
    "convolution": lambda x: lax.conv(x[:, None], jnp.ones((2, 1, 2)), (1,), "SAME"),
    "branches": lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: x[:, ::-1], x),
    "branches, one constant": lambda x: lax.switch((x.sum() > 0) * 1, [jnp.ones_like, lambda x: jnp.cumsum(x, 1)], x),
    "determinant": lambda x: jnp.linalg.det(gram(x)),
    "solution": lambda x: jnp.linalg.solve(gram(x), x[..., None]),
    "eigenvalues": lambda x: jnp.linalg.eigh(gram(x))[0],
    "singular values": lambda x: jnp.linalg.svd(gram(x), compute_uv=False),
    "triangular": lambda x: jnp.linalg.qr(gram(x))[1],
    "pseudo-inverse": lambda x: jnp.linalg.pinv(gram(x)),
    "nuclear norm": lambda x: jnp.linalg.norm(gram(x), "nuc", axis=(1, 2)),
    "unitary factor": lambda x: vmap(lambda a: linalg.polar(a)[0])(gram(x) + x[:, None])[:, 0, 0],
    "tridiagonal solution": lambda x: lax.linalg.tridiagonal_solve(x, 3 + x, x, x[..., None]),
    "updated factor": lambda x: lax.linalg.cholesky_update(jnp.linalg.cholesky(gram(x)).mT, x),
    "solution of Sylvester's equation": lambda x: vmap(linalg.solve_sylvester)(gram(x), gram(x), gram(x**2)),
}


@pytest.mark.parametrize("name", KEEPING)
def test_laplacians_keep_their_blocks(name: str) -> None:
    g = KEEPING[name]
    f = lambda x: (g(jnp.sin(x)) ** 2).sum()
    with enable_x64():
        x = jnp.asarray(np.random.default_rng(0).uniform(0.2, 1.2, (64, 3)))
        assert largest(make_jaxpr(laplacian(f))(x).jaxpr) <= 3 * 3 * x.size
        for rows in (x[:2], x[3:6]):
            expected = jnp.trace(hessian(f)(rows).reshape(rows.size, rows.size))
            np.testing.assert_allclose(laplacian(f)(rows), expected, rtol=1e-9)


BRANCHES = [jnp.sin, lambda x: x * x.mean(0), jnp.ones_like, lambda x: jnp.sin(x)[::-1], lambda x: x[:, ::-1]]
"""The Jacobians are blocks, dense, none, dense and blocks."""


def chosen_cubes(index: int, branches: list[Any], x: Any) -> Any:
    return (lax.switch(index + 0 * x.argmax(), branches, jnp.cos(x)) ** 3).sum()


@pytest.mark.parametrize("taken", range(len(BRANCHES)))
@pytest.mark.parametrize("weighted", [False, True])
def test_branches_whose_jacobians_are_of_different_kinds(taken: int, weighted: bool) -> None:
    with enable_x64():
        x = jnp.asarray(np.random.default_rng(0).uniform(0.2, 1.2, (4, 3)))
        weights = jnp.arange(1.0, 13.0).reshape(4, 3) if weighted else None
        for others in (BRANCHES, [BRANCHES[taken], BRANCHES[0]], [BRANCHES[taken], BRANCHES[2]]):
            index = others.index(BRANCHES[taken])
            f = partial(chosen_cubes, index, others)
            diagonal = jnp.diagonal(hessian(f)(x).reshape(12, 12)).reshape(4, 3)
            expected = (diagonal if weights is None else weights * diagonal).sum()
            np.testing.assert_allclose(laplacian(jit(f), weights=weights)(x), expected, rtol=1e-9)
