"""Patterns of Jacobians and Hessians: never too small, and exact where nothing but the program decides."""

from __future__ import annotations

import contextlib
import io
import pickle
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.core import traits
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.derivatives import Pattern, hessian_pattern, jacobian_pattern, sparse_jacobian, taylor
from pullback.derivatives.patterns import programs as sparsity_of_programs
from pullback.derivatives.patterns.dependence import sparsity
from pullback.errors import PatternError
from pullback.experimental.sparse import BCOO, bcoo_dot_general_sampled
from pullback.primitives.linalg.householder import ormqr
from pullback.primitives.rules import axis_kept
from pullback.scipy.integrate import quad
from pullback.scipy.linalg import expm_frechet, solve_sylvester
from pullback.scipy.signal import lfilter
from tests.helpers import ROOT
from tests.primitives_of import all_primitives
from tests.random_programs import Program, programs

X = np.float32([0.7, -1.2, 0.4, 1.9, -0.3, 1.1])
MASK = np.array([True, False, True, True, False, True])
BANDS = np.eye(6, dtype=np.float32) + np.eye(6, k=2, dtype=np.float32)
ROUND = np.arange(6)
SPARSE = BCOO.fromdense(BANDS)


def dense(f: Callable[..., Any], *args: Any) -> np.ndarray[Any, Any]:
    """Where the dense Jacobian of a function of one array is not zero, as a matrix."""
    found = np.asarray(jax.jacfwd(f)(*args))
    return found.reshape(-1, np.size(args[0])) != 0


def pattern(f: Callable[..., Any], *args: Any, local: bool = False) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = jacobian_pattern(f, local=local)(*args).to_scipy().toarray()
    return found


@pytest.mark.usefixtures("all_in_x64")
@settings(max_examples=200)
@given(programs())
def test_no_element_of_a_random_program_is_missing(p: Program) -> None:
    args = p.arguments()
    every = tuple(range(len(args)))
    rows = jax.jacfwd(lambda *xs: p(*xs), every)(*args)
    matrix = np.hstack(
        [
            np.vstack([np.asarray(row[k]).reshape(-1, args[k].size) for row in rows]).astype(np.float64)
            for k in range(len(args))
        ]
    )
    found = jacobian_pattern(lambda *xs: p(*xs), every)(*args).to_scipy().toarray()
    assert not ((matrix != 0) & ~found).any()
    at_point = jacobian_pattern(lambda *xs: p(*xs), every, local=True)(*args).to_scipy().toarray()
    assert not ((matrix != 0) & ~at_point).any()
    assert not (at_point & ~found).any()


@pytest.mark.usefixtures("all_in_x64")
@settings(max_examples=50)
@given(programs(max_inputs=1, max_instructions=5))
def test_no_element_of_a_hessian_of_a_random_program_is_missing(p: Program) -> None:
    (x,) = p.arguments()
    matrix = np.asarray(jax.hessian(p.scalar)(x)).reshape(x.size, x.size)
    found = hessian_pattern(p.scalar)(x).to_scipy().toarray()
    assert not ((matrix != 0) & ~found).any()
    assert np.array_equal(found, found.T)


@jax.custom_jvp
def with_jvp_rule(x: Any) -> Any:
    return jnp.cumsum(x)


with_jvp_rule.defjvp(lambda primals, tangents: (with_jvp_rule(*primals), 3 * tangents[0]))


@jax.custom_vjp
def with_vjp_rule(x: Any) -> Any:
    return jnp.cumsum(x)


with_vjp_rule.defvjp(lambda x: (with_vjp_rule(x), x), lambda x, ct: (2 * x * ct,))

EXACT: dict[str, Callable[[Any], Any]] = {
    "slices": lambda x: x[2:] - 2 * x[1:-1] * x[:-2],
    "strides": lambda x: x[::2] * x[1::2],
    "roll": lambda x: jnp.roll(x, 2) * x,
    "gather": lambda x: x[np.array([0, 2, 2, 5])] ** 2,
    "gather of rows": lambda x: x.reshape(3, 2)[np.array([2, 0])],
    "set": lambda x: x.at[np.array([0, 2])].set(x[:2] * 2),
    "set many": lambda x: x.at[2:5].set(x[:3] * 2),
    "add": lambda x: x.at[np.array([0, 2, 2])].add(x[3:] ** 2),
    "concatenate": lambda x: jnp.concatenate([x[3:], x[:3] ** 2]),
    "stack": lambda x: jnp.stack([x[:3], x[3:]], axis=1),
    "pad": lambda x: jnp.pad(x[1:3], 2) + x,
    "transpose": lambda x: x.reshape(2, 3).T * x.reshape(3, 2),
    "sum": lambda x: jnp.sum(x.reshape(2, 3) ** 2, axis=0),
    "cumsum": jnp.cumsum,
    "reverse cumsum": lambda x: lax.cumsum(x, reverse=True),
    "cumprod": jnp.cumprod,
    "where": lambda x: jnp.where(MASK, x**2, 0),
    "mask": lambda x: MASK * x,
    "matrix": lambda x: BANDS @ x,
    "matrix from the right": lambda x: x.reshape(2, 3) @ BANDS[:3, :3],
    "batched matrices": lambda x: jnp.einsum("bij,bj->bi", np.stack([BANDS[:3, :3], BANDS[1:4, 1:4]]), x.reshape(2, 3)),
    "outer": lambda x: jnp.outer(x[:2], x[2:]),
    "convolution": lambda x: jnp.convolve(x, np.float32([1, 0, 2]), "same"),
    "convolution with a kernel of inputs": lambda x: jnp.convolve(np.float32([1, 2, 3, 4]), x[:3], "full"),
    "features": lambda x: lax.conv_general_dilated(
        x.reshape(1, 2, 3), np.float32([[[1.0, 2.0]], [[3.0, 4.0]]]), (1,), "VALID", feature_group_count=2
    ),
    "window sum": lambda x: lax.reduce_window(x, np.float32(0), lax.add, (2,), (2,), "VALID"),
    "fft": lambda x: jnp.abs(jnp.fft.rfft(x.reshape(2, 3))),
    "solve": lambda x: jnp.linalg.solve(np.float32([[2, 1], [1, 3]]), x.reshape(2, 3)),
    "scan": lambda x: lax.scan(lambda c, a: (c * a, c + a), x[0], x[1:])[1],
    "reverse scan": lambda x: lax.scan(lambda c, a: (c * a, c + a), x[0], x[1:], reverse=True)[1],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y.at[i].set(y[i + 1] * y[i]), x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * jnp.roll(c[1], 1)), (0, x))[
        1
    ],
    "cond of a constant": lambda x: lax.cond(np.bool_(False), jnp.cumsum, jnp.sin, x),
    "jit": jax.jit(lambda x: x[1:] * x[:-1]),
    "checkpoint": jax.checkpoint(lambda x: x[1:] * jnp.sin(x[:-1])),
    "jvp rule": with_jvp_rule,
    "vjp rule": with_vjp_rule,
    "vmap": lambda x: jax.vmap(lambda a: a[0] * a[1])(x.reshape(3, 2)),
    "stop_gradient": lambda x: x * lax.stop_gradient(jnp.roll(x, 1)),
    "elementwise": lambda x: jnp.exp(x) * jnp.tanh(x) + jnp.logaddexp(x, 2) + jnp.abs(x) / (1 + x**2),
    "dynamic_slice at a constant": lambda x: lax.dynamic_slice(x, (2,), (3,)),
    "dynamic_update_slice at a constant": lambda x: lax.dynamic_update_slice(x, x[:2] ** 2, (3,)),
    "multiplied": lambda x: x.at[np.array([0, 2])].multiply(np.float32([2, 3])),
    "barrier": lambda x: lax.optimization_barrier((x * 2, x[:2]))[1],
    "filter": lambda x: lfilter(np.float32([1, 2]), np.float32([1, 0.5]), x.reshape(2, 3)),
    "sparse matrix": lambda x: SPARSE @ x,
    "transposed sparse matrix": lambda x: x @ SPARSE,
    "sparse matrix of inputs": lambda x: BCOO((x, np.stack([ROUND, ROUND[::-1] // 2], 1)), shape=(6, 3)) @ X[:3],
    "blocks of a product": lambda x: bcoo_dot_general_sampled(
        x.reshape(3, 2), x.reshape(2, 3), np.int32([[0, 1], [2, 0]]), dimension_numbers=(((1,), (0,)), ((), ()))
    ),
    "nothing": lambda x: jnp.sign(x) + jnp.floor(x) + (x > 0),
}


@pytest.mark.parametrize("name", EXACT)
def test_patterns_of_structured_operations_are_exact(name: str) -> None:
    np.testing.assert_array_equal(pattern(EXACT[name], X), dense(EXACT[name], X))


LARGER: dict[str, tuple[Callable[[Any], Any], Any]] = {
    # What may be there at other points than X: each depends on all of a row, a column, or on one more place.
    "sort": (jnp.sort, np.ones((6, 6), bool)),
    "sort of rows": (lambda x: jnp.sort(x.reshape(2, 3)).ravel(), np.kron(np.eye(2), np.ones((3, 3))) != 0),
    "maximum": (lambda x: jnp.max(x.reshape(2, 3), axis=1), np.kron(np.eye(2), np.ones((1, 3))) != 0),
    "unknown gather": (lambda x: x[jnp.argmax(x)], np.ones((1, 6), bool)),
    "unknown gather of rows": (lambda x: x.reshape(3, 2)[jnp.argmax(x[:3])], np.kron(np.ones((1, 3)), np.eye(2)) != 0),
    "unknown update": (lambda x: x[1:].at[jnp.argmax(x)].set(x[0]), np.eye(5, 6, 1) + np.eye(1, 6) != 0),
    "cond": (
        lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: jnp.roll(x, 1), x),
        np.eye(6) + np.roll(np.eye(6), 1, 0) != 0,
    ),
    "while_loop": (
        lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: 2 * jnp.roll(c, 2), x),
        (ROUND[:, None] - ROUND) % 2 == 0,
    ),
    "sparse matrix at unknown places": (
        lambda x: BCOO((np.ones(2, np.float32), jnp.argsort(x)[:4].reshape(2, 2) % 3), shape=(3, 3)) @ x[:3],
        np.eye(3, 6) + np.ones((3, 6)) * (ROUND < 3) != 0,
    ),
    "set one place twice": (
        lambda x: x.at[np.array([1, 1])].set(x[4:]),
        np.eye(6) + np.eye(6)[[1]].T @ (ROUND > 3)[None] != 0,
    ),
    "windows": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "VALID"),
        np.kron(np.eye(3), np.ones((1, 2))) != 0,
    ),
    "solve for inputs": (
        lambda x: jnp.linalg.solve(jnp.diag(1 + x[:2] ** 2), x[2:4]),
        np.eye(1, 6) + np.ones((2, 6)) * (ROUND < 4) != 0,
    ),
}


@pytest.mark.parametrize("name", LARGER)
def test_patterns_where_values_decide_are_those_of_all_points(name: str) -> None:
    f, expected = LARGER[name]
    found = pattern(f, X)
    np.testing.assert_array_equal(found, expected)
    assert not (dense(f, X) & ~found).any()


@pytest.mark.parametrize("name", [*EXACT, *LARGER])
def test_local_patterns_hold_the_derivative_and_no_more_than_global_ones(name: str) -> None:
    f = EXACT[name] if name in EXACT else LARGER[name][0]
    local = pattern(f, X, local=True)
    assert not (dense(f, X) & ~local).any()
    assert not (local & ~pattern(f, X)).any()


@pytest.mark.parametrize("seed", range(8))
def test_convolutions_and_windows_of_any_geometry(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank, groups = seed % 2 + 1, seed // 2 % 2 + 1
    strides, base, step, sizes = (tuple(rng.integers(1, 3, rank).tolist()) for _ in range(4))
    padding = [tuple(pair) for pair in rng.integers(0, 3, (rank, 2)).tolist()]
    kernel = rng.choice([0, 1, 2], (2 * groups, 2, *[2] * rank)).astype(np.float32)
    x = rng.uniform(1, 2, (2, 2 * groups, *rng.integers(3, 6, rank))).astype(np.float32)
    dilations = {"lhs_dilation": base, "rhs_dilation": step, "feature_group_count": groups}
    convolved = lambda x, k: lax.conv_general_dilated(x, k, strides, padding, **dilations)
    summed = lambda y: lax.reduce_window(y, np.float32(0), lax.add, sizes, strides, padding, base, step)
    with jax.disable_jit():
        for f, at in ((lambda x: convolved(x, kernel), x), (lambda k: convolved(x, k), kernel), (summed, x[0, 0])):
            np.testing.assert_array_equal(pattern(f, at), dense(f, at))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("masked", [False, True])
def test_products_of_rows_in_groups(seed: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    m, k, n, g = rng.integers(1, 5, 4).tolist()
    sizes = rng.integers(0, 3, g)
    x, y, ct = (rng.uniform(1, 2, s).astype(np.float32) for s in ((m, k), (g, k, n), (m, n)))
    by_weights = lambda x, ct, sizes: jax.vjp(lambda y: lax.ragged_dot(x, y, sizes), y)[1](ct)[0]
    functions: list[tuple[Callable[..., Any], Any]] = [
        (lambda x, sizes: lax.ragged_dot(x, y, sizes), x),
        (lambda y, sizes: lax.ragged_dot(x, y, sizes), y),
        (lambda x, sizes: by_weights(x, ct, sizes), x),
        (lambda ct, sizes: by_weights(x, ct, sizes), ct),
    ]
    with jax.disable_jit(), jax.masked_zeros(masked):
        for f, at in functions:
            np.testing.assert_array_equal(
                pattern(lambda a, f=f: f(a, sizes), at), dense(lambda a, f=f: f(a, sizes), at)
            )
            unknown = pattern(lambda a, f=f: f(a, jnp.asarray(sizes) + 0 * jnp.argmax(a)), at)
            assert not (dense(lambda a, f=f: f(a, sizes), at) & ~unknown).any()
            assert unknown.sum() <= f(at, sizes).size * max(g, m) * k * n


NAMED: dict[str, tuple[Callable[[Any], Any], int]] = {
    "psum": (lambda x: lax.psum(x * x, "i"), 8),
    "psum of groups": (lambda x: lax.psum(x * x, "i", axis_index_groups=[[0, 1], [2, 3]]), 8),
    "pmean": (lambda x: lax.pmean(x, "i"), 8),
    "pmax": (lambda x: lax.pmax(x, "i"), 8),
    "ppermute": (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (3, 0)]), 8),
    "all_gather": (lambda x: lax.all_gather(x, "i"), 4 * 8),
    "all_gather of rows": (lambda x: lax.all_gather(x.reshape(4, 2), "i", axis=1), 4 * 8),
    "tiled all_gather": (lambda x: lax.all_gather(x.reshape(4, 2), "i", axis=1, tiled=True), 4 * 8),
    "all_gather of groups": (lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2, 3]]), 2 * 8),
    "psum_scatter": (lambda x: lax.psum_scatter(x.reshape(2, 4), "i", scatter_dimension=1), 8),
    "tiled psum_scatter": (lambda x: lax.psum_scatter(x, "i", tiled=True), 8),
    "all_to_all": (lambda x: lax.all_to_all(x.reshape(2, 4), "i", 1, 0), 4 * 8),
    "tiled all_to_all": (lambda x: lax.all_to_all(x.reshape(2, 4), "i", 1, 0, tiled=True), 4 * 8),
}


@pytest.mark.parametrize("name", NAMED)
def test_along_named_axes_elements_of_all_indices_count_as_the_same(name: str) -> None:
    """Each index of the axis has the same direction. Each was dense: 64 elements for each element of its results."""
    f, count = NAMED[name]
    xs = np.random.default_rng(0).uniform(1, 2, (4, 8)).astype(np.float32)
    found = []

    def derivative(x: Any) -> Any:
        found.append(jacobian_pattern(f)(x).to_scipy().toarray())
        return jax.jacfwd(f)(x).reshape(-1, 8)

    matrices = np.asarray(jax.vmap(derivative, axis_name="i")(xs)) != 0
    assert not (matrices & ~found[0]).any()
    assert found[0].sum() == count
    for mode, of in (("forward", jax.jacfwd), ("reverse", jax.jacrev)):
        sparse = sparse_jacobian(f, mode=mode)
        a, b = (
            jax.vmap(lambda x, run=run: run(x).reshape(-1, 8), axis_name="i")(xs)
            for run in (lambda x, sparse=sparse: sparse(x).todense(), of(f))
        )
        np.testing.assert_allclose(a, b, 1e-5)


def test_linear_maps_of_matrices_keep_batches_and_columns() -> None:
    x = np.random.default_rng(0).uniform(1, 2, (2, 3, 3)).astype(np.float32)
    a = np.float32(np.diag([1, 2, 3]) + 0.1)
    blocks = np.kron(np.eye(2), np.ones((9, 9))) != 0
    columns = np.kron(np.eye(2), np.kron(np.ones((3, 3)), np.eye(3))) != 0
    solve = jax.vmap(lambda c: solve_sylvester(a, a, c))
    exponential = jax.vmap(lambda e: expm_frechet(a, e, compute_expm=False))
    reflected = lambda c: ormqr(jnp.stack([a, a]), jnp.ones((2, 3), jnp.float32), c, transpose=False)
    for f, expected in ((solve, blocks), (exponential, blocks), (reflected, columns)):
        np.testing.assert_array_equal(pattern(f, x), expected)
        assert not (dense(f, x) & ~expected).any()


def test_an_operation_that_keeps_axes_is_dense_along_the_others_alone() -> None:
    """It says which axes of its operands are which of its results, and has no rule for patterns."""
    mixed_p = Primitive("mixed", multiple_results=True, cost=traits.Cost.SIMPLE)
    mixed_p.host(lambda x, y: [x.transpose(1, 2, 0) @ np.ones((2, 5), x.dtype) + y.sum(), x.sum((0, 2))])
    mixed_p.abstract_eval(lambda x, y: [ShapedArray((3, 4, 5), x.dtype), ShapedArray((3,), x.dtype)])
    mixed_p.jvp(lambda primals, tangents: (mixed_p.bind(*primals), mixed_p.bind(tangents[0], 0 * primals[1])))
    mixed_p.transpose(lambda cts, x, y: [None, None])
    axis_kept(mixed_p)(lambda axis, operand, *shapes: {1: 0}.get(axis) if operand == 0 else None)
    swapped_p = Primitive("swapped", cost=traits.Cost.SIMPLE)
    swapped_p.host(lambda x: np.cumsum(x.transpose(2, 1, 0), 1))
    swapped_p.abstract_eval(lambda x: ShapedArray(x.shape[::-1], x.dtype))
    swapped_p.jvp(lambda primals, tangents: (swapped_p.bind(*primals), swapped_p.bind(*tangents)))
    swapped_p.transpose(lambda ct, x: [None])
    axis_kept(swapped_p)(lambda axis, operand, x: None if axis == 1 else 2 - axis)
    x = np.random.default_rng(0).uniform(1, 2, (2, 3, 4)).astype(np.float32)
    functions: list[tuple[Callable[..., Any], int]] = [
        (lambda x: mixed_p.bind(x, np.ones(2, np.float32))[0], 60 * 8),
        (lambda x: mixed_p.bind(x, x)[1], 3 * 8),
        (swapped_p.bind, 24 * 3),
    ]
    with jax.disable_jit():
        for f, count in functions:
            found = pattern(f, x)
            columns = [jax.jvp(f, (x,), (e.reshape(x.shape),))[1].ravel() for e in np.eye(24, dtype=np.float32)]
            assert not ((np.stack(columns, 1) != 0) & ~found).any()
            assert found.sum() == count


def test_local_patterns_follow_values() -> None:
    f = lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: jnp.roll(x, 1), jnp.where(x > 0, x, 0) * x[1])
    np.testing.assert_array_equal(pattern(f, X, local=True), dense(f, X))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="a local pattern depends on the values of its point"):
        jax.jit(lambda x: jacobian_pattern(f, local=True)(x).nnz)(X)


def test_hessians_know_what_is_linear() -> None:
    f = lambda x: jnp.sum(BANDS @ x) + x[0] * x[1] + jnp.sum(x[2:4]) ** 2 + jnp.cumsum(x)[-1]
    expected = np.zeros((6, 6), bool)
    expected[0, 1] = expected[1, 0] = expected[2:4, 2:4] = True
    np.testing.assert_array_equal(hessian_pattern(f)(X).to_scipy().toarray(), expected)


@pytest.mark.parametrize("loop", [False, True])
def test_hessians_through_loops(loop: bool) -> None:
    def f(x: Any) -> Any:
        step = lambda c, a: (c + a[0] ** 2 * a[1], None)
        if not loop:
            return lax.scan(step, np.float32(0), (x[1:], x[:-1]))[0]
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * c[1]), (0, x))[1].sum()

    matrix = np.asarray(jax.hessian(f)(X)) != 0
    found = hessian_pattern(f)(X).to_scipy().toarray()
    assert not (matrix & ~found).any()
    if not loop:
        np.testing.assert_array_equal(found, matrix)


def test_long_loops_are_exact_where_all_steps_do_the_same() -> None:
    def f(x: Any) -> Any:
        c, ys = lax.scan(lambda c, i: (jnp.roll(c, 2), c[0]), x, jnp.arange(100_001))
        return jnp.concatenate([c, ys[-2:]])

    np.testing.assert_array_equal(pattern(f, X), dense(f, X))


@pytest.mark.parametrize("step_by_step", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_loops_with_constants_carries_and_elements(
    reverse: bool, step_by_step: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparsity_of_programs, "LARGE_STATE", 1 if step_by_step else 100)

    def f(x: Any) -> Any:
        a, b, c = x[:2], x[2:4], x[4:]

        def step(carry: Any, element: Any) -> Any:
            u, v = carry
            return (v * element[0], jnp.sin(u) + b[1]), (u * element[1], element * b[0])

        (u, v), (y, z) = lax.scan(step, (a[0], c[0]), jnp.stack([x[:3], x[3:]], axis=1), reverse=reverse)
        return jnp.concatenate([jnp.stack([u, v]), y, z.ravel()])

    np.testing.assert_array_equal(pattern(f, X), dense(f, X))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 1000])
def test_the_last_state_of_a_loop(length: int) -> None:
    """A wave that moves to the right, with a source: the last state depends on what came along, and on the source."""

    def f(x: Any) -> Any:
        step = lambda c, _: (jnp.concatenate([x[5:] * 2, c[:-1]]), None)
        return lax.scan(step, x[:5] * 1, None, length=length)[0]

    np.testing.assert_array_equal(pattern(f, X), dense(f, X))


def test_a_long_simulation_keeps_no_state_but_the_last() -> None:
    size, steps = 2_000, 200
    f = lambda u: lax.fori_loop(0, steps, lambda i, u: u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), u)
    assert jacobian_pattern(f)(jax.ShapeDtypeStruct((size,), "float32")).nnz == size * (2 * steps + 1)


def test_stacked_results_of_a_large_state_keep_no_other_states() -> None:
    """The patterns of all states are 400 elements for each column, of which the results have 20 in all."""
    size, steps = 2_000, 20

    def first_points(u: Any) -> Any:
        step = lambda u, _: (u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), u[0])
        return lax.scan(step, u, None, length=steps)[1]

    x = jax.ShapeDtypeStruct((size,), "float32")
    jacobian_pattern(first_points)(jax.ShapeDtypeStruct((100,), "float32"))  # what is imported and kept once
    tracemalloc.start()
    try:
        found = jacobian_pattern(first_points)(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(np.diff(found.bounds), 2 * np.arange(steps) + 1)
    assert peak < 2_500 * size


def test_loops_whose_steps_differ_have_a_fixed_point_where_they_are_long() -> None:
    def f(x: Any, length: int) -> Any:
        step = lambda c, i: (c.at[i % 2].set(c[i % 3]), None)
        return lax.scan(step, x, jnp.arange(length))[0]

    short = lambda x: f(x, 3)
    np.testing.assert_array_equal(pattern(short, X), dense(short, X))
    expected = np.eye(6, dtype=bool)
    expected[:2, :3] = True
    found = pattern(lambda x: f(x, 100_000), X)
    assert not (expected & ~found).any()


def test_trees_arguments_and_keywords() -> None:
    def f(p: Any, n: int, *, shift: Any) -> Any:
        return {"a": p["u"][:n] + shift, "b": p["v"] * p["u"][0]}

    found = jacobian_pattern(f)({"u": X, "v": X[:2]}, 3, shift=X[:3]).to_scipy().toarray()
    expected = np.zeros((5, 8), bool)
    expected[:3, :3] = np.eye(3)
    expected[3:, 0] = True
    expected[3:, 6:] = np.eye(2)
    np.testing.assert_array_equal(found, expected)


def test_shapes_are_enough() -> None:
    found = jacobian_pattern(lambda x: x[1:] * x[:-1])(jax.ShapeDtypeStruct((4,), "float32"))
    assert found == Pattern([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])


def test_too_dense_a_derivative_names_the_operation_and_the_line() -> None:
    f = lambda x: x - jnp.mean(x)
    with pytest.raises(PatternError, match=r"operation '\w+' at .*test_sparse_patterns\.py:\d+ .*not sparse enough"):
        jacobian_pattern(f)(jax.ShapeDtypeStruct((40_000,), "float32"))


def test_patterns_compare_pickle_and_show_themselves() -> None:
    p = Pattern(sp.eye_array(3, format="coo"))
    assert p == Pattern(np.eye(3)) == pickle.loads(pickle.dumps(p))
    assert p != Pattern(np.eye(3, 4))
    assert p != Pattern(np.ones((3, 3)))
    assert p != "p"
    assert Pattern(np.ones((3, 3))).contains(p)
    assert not p.contains(Pattern(np.ones((3, 3))))
    assert len({p, Pattern(np.eye(3))}) == 1
    assert str(p) == "x..\n.x.\n..x"
    assert str(Pattern(sp.eye_array(1000))) == "Pattern(1000 x 1000, 1000 elements)"
    assert p._repr_svg_().count("<rect") == 4
    assert Pattern(BCOO.fromdense(jnp.eye(3))) == p
    for wrong in (np.zeros((2, 2, 2)), "text", BCOO.fromdense(jnp.ones(3))):
        with pytest.raises(PatternError, match="takes a"):
            Pattern(wrong)


def test_the_page_lists_the_operations_without_a_rule_and_its_examples_print_what_it_says() -> None:
    page = (ROOT / "docs" / "sparse_derivatives.md").read_text()
    linear = {p for p in all_primitives() if p.transpose_rule is not None and p.decomposition_rule is None}
    by_traits = {p for p in linear if traits.elementwise.of(p) or (traits.moves.of(p) and p.host_rule is not None)}
    by_axes = {p for p in linear if axis_kept.of(p) is not None}
    without = {p.name for p in linear - by_traits - by_axes if sparsity.of(p) is None} - LOOKED_INTO
    listed = page.split("-->\n")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == without
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    expected = re.findall(r"# (?!a rod|as an)(.*)$", "\n".join(blocks), re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n".join(blocks), "sparse_derivatives.md", "exec"), {})
    assert printed.getvalue().splitlines() == expected


LOOKED_INTO = {
    "checkpoint", "checkpoint_linear", "cond", "custom_transpose_call", "custom_vjp_linear", "custom_vmap_linear",
    "jit", "linear_call", "scan", "while", "while_transpose", "while_transpose_derivative",
}  # fmt: skip
"""Operations that run programs of their own, which are walked through."""


def test_patterns_of_masked_products_and_of_taylor_coefficients_are_as_narrow() -> None:
    kernel = jnp.array([[[1.0, -1.0]]])

    def f(x: Any) -> Any:
        y = jnp.exp(x) / (1 + x * x)
        y = lax.conv(y.reshape(1, 1, -1), kernel, (1,), "SAME").reshape(-1)
        return jnp.diag(jnp.array([2.0, 0, 1, 3])) @ y

    x = np.linspace(0.1, 1, 4)
    expected = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]], bool)
    with jax.masked_zeros():
        assert jacobian_pattern(f)(x) == Pattern(expected)
        triangular = jacobian_pattern(lambda b: lax.linalg.triangular_solve(jnp.eye(2), b, left_side=True))
        assert triangular(np.ones((2, 2))).nnz == 8
    diagonals = jnp.ones((3, 2, 2)) * jnp.array([0.1, 2, 0.1])[:, None, None]
    recurrences: dict[str, Any] = {  # of the rows of a matrix
        "recurrence": lambda x: jnp.cumprod(x, axis=1),
        "filter": lambda x: lfilter(jnp.ones(1), jnp.array([1.0, 0.5]), x),
        "tridiagonal": lambda x: lax.linalg.tridiagonal_solve(*diagonals, x[:, :, None]),
    }
    for name, function in recurrences.items():
        total = lambda x, function=function: jnp.sum(function(x.reshape(2, 2)) ** 2)
        with jax.masked_zeros():
            found = jacobian_pattern(jax.grad(total))(x)
        assert found == jacobian_pattern(jax.grad(total))(x), name
        assert found.nnz == 8
    assert jacobian_pattern(lambda x: taylor(lambda x: jnp.sin(x) * x, x, 3)[3])(x) == Pattern(np.eye(4))


AT_INDICES: dict[str, Callable[[Any, Any], Any]] = {
    "gather": lambda x, i: jnp.arange(4.0)[jnp.stack([i, i])],
    "scatter": lambda x, i: jnp.ones(2).at[i].set(x[0]),
    "scatter_add": lambda x, i: jnp.ones(2).at[i].add(x[0]),
    "dynamic_slice": lambda x, i: lax.dynamic_slice(jnp.arange(4.0), (i,), (2,)),
    "dynamic_update_slice": lambda x, i: lax.dynamic_update_slice(jnp.ones(2), x[:1], (i,)),
    "take_along_axis": lambda x, i: jnp.take_along_axis(jnp.arange(4.0), jnp.stack([i, i]), 0),
}


@pytest.mark.parametrize("name", AT_INDICES)
def test_indices_that_depend_on_tangents(name: str) -> None:
    """A derivative that is not linear, such as that of an integral to a tolerance, looks at its tangents."""
    f = jax.custom_jvp(lambda x: x)

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (t,) = tangents
        return primals[0], AT_INDICES[name](primals[0], (t[1] > 0).astype(int))

    assert np.asarray(jacobian_pattern(f)(np.ones(2)).to_scipy().toarray())[:, 1].all()


def test_an_integral_to_a_tolerance() -> None:
    f = lambda p: quad(lambda x: jnp.sin(p[0] * x), 0.0, p[1])[0]
    np.testing.assert_array_equal(jacobian_pattern(f)(np.array([0.5, 2.0])).to_scipy().toarray(), [[True, True]])
