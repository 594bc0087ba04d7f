"""Sparse Jacobians and Hessians: their elements are the dense ones, under all transformations."""

from __future__ import annotations

import itertools
import pickle
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
from pullback.derivatives import (
    Colouring,
    Pattern,
    colour_jacobian,
    hessian_pattern,
    jacobian_pattern,
    sparse_hessian,
    sparse_jacobian,
    sparsity,
)
from pullback.errors import (
    ArgumentError,
    ConcretizationTypeError,
    MissingRuleError,
    NotDifferentiableError,
    OperandError,
    PatternError,
)
from pullback.extend import Primitive, ShapedArray
from tests.helpers import assert_close
from tests.random_programs import Program, programs

X = np.float32([0.7, -1.2, 0.4, 1.9, -0.3, 1.1])


def chain(x: Any) -> Any:
    return jnp.sin(x[1:]) * x[:-1] + x[0]


def energy(x: Any) -> Any:
    return jnp.sum(jnp.cos(x[1:] * x[:-1])) + jnp.sum(x[::2]) ** 2 + x[3]


@pytest.mark.usefixtures("all_in_x64")
@settings(max_examples=30)
@given(programs(max_instructions=6))
def test_elements_of_random_programs(p: Program) -> None:
    args = p.arguments()
    every = tuple(range(len(args)))
    f = lambda *xs: p(*xs)
    with jax.disable_jit():
        for mode in ("forward", "reverse", "both"):
            found = sparse_jacobian(f, every, mode=mode)(*args)
            assert_close([[b.todense() for b in row] for row in found], list(map(list, jax.jacfwd(f, every)(*args))))


@pytest.mark.usefixtures("all_in_x64")
@settings(max_examples=20)
@given(programs(max_inputs=2, max_instructions=4))
def test_elements_of_hessians_of_random_programs(p: Program) -> None:
    args = p.arguments()
    every = tuple(range(len(args)))
    with jax.disable_jit():
        for method in ("star", "acyclic", "columns"):
            found = sparse_hessian(p.scalar, every, method=method)(*args)
            assert_close(
                [[b.todense() for b in row] for row in found], list(map(list, jax.hessian(p.scalar, every)(*args)))
            )


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_compiled_jacobians(mode: str) -> None:
    jacobian = sparse_jacobian(chain, mode=mode)
    for x in (X, 2 * X):
        assert_close(jacobian(x).todense(), jax.jacfwd(chain)(x), 1e-5)
    assert jacobian(X).indices_sorted
    assert jacobian(X).unique_indices


@pytest.mark.parametrize("method", ["auto", "star", "acyclic", "columns"])
def test_compiled_hessians(method: str) -> None:
    hessian = sparse_hessian(energy, method=method)
    for x in (X, 2 * X):
        assert_close(hessian(x).todense(), jax.hessian(energy)(x), 1e-5)


def test_chunks_are_the_same() -> None:
    for chunk in (1, 2, 100):
        assert_close(sparse_jacobian(chain, chunk_size=chunk)(X).data, sparse_jacobian(chain)(X).data, 1e-6)


def test_trees_shapes_and_arguments() -> None:
    def f(p: Any, n: int, s: Any, *, shift: Any) -> Any:
        return {"a": p["u"][:n] * s + shift, "b": (p["v"][:, None] * p["u"][1:3], p["w"])}

    p = {"u": X, "v": X[:3], "w": np.float32(2)}
    jacobian = sparse_jacobian(f)
    for s in (2.0, 3.0, np.float32(4)):
        found, dense = jacobian(p, 3, s, shift=X[:3]), jax.jacfwd(f)(p, 3, s, shift=X[:3])
        assert_close(jax.tree.map(lambda b: b.todense(), found, is_leaf=lambda b: hasattr(b, "nse")), dense)
    assert found["b"][0]["u"].shape == (3, 2, 6)
    assert found["b"][1]["w"].shape == ()
    assert len(jacobian._kept) == 2  # floats are arguments of one program, which is not the one for an array
    both = sparse_jacobian(lambda x, y: x[1:] * y, (0, 1))(X, X[1:])
    assert_close(tuple(b.todense() for b in both), jax.jacfwd(lambda x, y: x[1:] * y, (0, 1))(X, X[1:]))
    twice = sparse_hessian(lambda x, y: jnp.sum(x[1:] ** 2 * y), (0, 1))(X, X[1:])
    dense = jax.hessian(lambda x, y: jnp.sum(x[1:] ** 2 * y), (0, 1))(X, X[1:])
    assert_close(tuple(tuple(b.todense() for b in row) for row in twice), dense)
    assert isinstance(sparse_jacobian(chain, (0,))(jnp.asarray(X)), tuple)
    assert isinstance(sparse_jacobian(chain, (0,))(jnp.asarray(X)), tuple)


def test_matrices_of_scipy() -> None:
    found = sparse_jacobian(lambda x: x.reshape(2, 3).T * 2, format="scipy")(X)
    assert isinstance(found, sp.csr_array)
    assert found.shape == (6, 6)
    np.testing.assert_array_equal(found.toarray(), jax.jacfwd(lambda x: x.reshape(2, 3).T * 2)(X).reshape(6, 6))
    with pytest.raises(ConcretizationTypeError, match="format='scipy' returns a SciPy matrix"):
        jax.jit(sparse_jacobian(chain, format="scipy"))(X)


# Transformations -----------------------------------------------------------------------------------------------------

Transformation = Callable[[Callable[..., Any]], Callable[..., Any]]
AROUND: dict[str, Transformation] = {
    "jit": jax.jit,
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x * x,))[1],
    "grad": lambda f: jax.grad(lambda x: jnp.sum(jnp.sin(f(x)))),
    "checkpoint": jax.checkpoint,
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
}


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(AROUND, AROUND)))
def test_compositions_of_two_transformations_around(outer: str, inner: str) -> None:
    transformed = lambda f: AROUND[outer](AROUND[inner](f))
    with jax.disable_jit("jit" not in (outer, inner)):
        for sparse, dense in (
            (lambda x: sparse_jacobian(chain)(x).todense(), jax.jacfwd(chain)),
            (lambda x: sparse_hessian(energy, method="acyclic")(x).todense(), jax.hessian(energy)),
        ):
            assert_close(transformed(sparse)(X), transformed(dense)(X), 1e-4)


INSIDE: dict[str, Transformation] = {
    **AROUND,
    "scan": lambda f: lambda x: lax.scan(lambda c, a: (c, f(c) * a), x, x[:2])[1],
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, lambda x: 2 * f(x), x),
}


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(INSIDE, INSIDE)))
def test_compositions_of_two_transformations_within(outer: str, inner: str) -> None:
    f = INSIDE[outer](INSIDE[inner](chain))
    with jax.disable_jit("jit" not in (outer, inner)):
        assert_close(sparse_jacobian(f)(X).todense(), jax.jacfwd(f)(X), 1e-4)


def test_results_of_vmap_are_batches() -> None:
    found = jax.vmap(sparse_jacobian(chain))(np.stack([X, 2 * X]))
    assert (found.n_batch, found.shape) == (1, (2, 5, 6))
    assert_close(found.todense(), jax.vmap(jax.jacfwd(chain))(np.stack([X, 2 * X])), 1e-5)


def test_functions_that_close_over_traced_values() -> None:
    def loss(a: Any) -> Any:
        return jnp.sum(sparse_jacobian(lambda x: a * x[1:] * x[:-1])(X).data ** 2)

    assert_close(float(jax.grad(loss)(2.0)), 4 * float(np.sum(X[1:] ** 2 + X[:-1] ** 2)), 1e-5)
    assert_close(jax.jit(loss)(2.0), loss(2.0), 1e-5)


def test_named_axes() -> None:
    def centred(derivative: Any) -> Any:
        return jax.vmap(derivative(lambda x: x**2 - lax.pmean(x, "i")), axis_name="i")(np.stack([X, 2 * X]))

    assert_close(centred(lambda f: lambda x: sparse_jacobian(f)(x).todense()), centred(jax.jacfwd), 1e-5)


def test_functions_of_little() -> None:
    assert sparse_jacobian(lambda x: x * 2)(np.zeros(0, np.float32)).shape == (0, 0)
    assert sparse_jacobian(lambda x: x**2)(3.0).todense() == 6
    assert sparse_hessian(lambda x: x**2)(3.0).todense() == 2
    assert sparse_jacobian(lambda x: jnp.ones(3))(X).nse == 0
    assert sparse_hessian(jnp.sum)(X).todense().shape == (6, 6)
    for method in ("star", "acyclic"):
        hessian = sparse_hessian(lambda x: jnp.sum(x**2), method=method)(jnp.ones(1))
        np.testing.assert_array_equal(hessian.todense(), [[2]])
    assert sparse_jacobian(lambda x: ())(X) == ()
    narrow = sparse_jacobian(lambda x: {"a": x[1:], "b": x.astype("float16")})(X)
    assert [narrow[k].dtype for k in "ab"] == [np.float32, np.float16]


# Patterns and colourings that are given ------------------------------------------------------------------------------


def test_a_program_is_traced_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return chain(x)

    jacobian = sparse_jacobian(f)
    jacobian.prepare(X)
    for k in range(3):
        jacobian(k * X)
        jacobian(jnp.asarray(k * X))
    assert len(calls) == 1
    jacobian(X[:4])
    assert len(calls) == 2


def test_prepared_colourings_serve_in_another_process(tmp_path: Any) -> None:
    sparse_jacobian(chain).prepare(jax.ShapeDtypeStruct((6,), "float32")).save(tmp_path / "colouring.npz")
    colouring = Colouring.load(tmp_path / "colouring.npz")
    found = sparse_jacobian(chain, colouring=colouring)(X)
    assert_close(found.todense(), jax.jacfwd(chain)(X), 1e-5)
    hessian = sparse_hessian(energy, method="acyclic")
    again = pickle.loads(pickle.dumps(hessian.prepare(X)))
    assert_close(sparse_hessian(energy, colouring=again)(X).data, hessian(X).data)
    assert pickle.loads(pickle.dumps(sparse_jacobian(chain)))(X).nse == found.nse


def test_given_patterns_are_checked() -> None:
    exact = jacobian_pattern(chain)(X)
    wide = Pattern(np.ones((5, 6)))
    for fits in (exact, wide, exact.to_scipy().toarray()):
        assert_close(sparse_jacobian(chain, pattern=fits)(X).todense(), jax.jacfwd(chain)(X), 1e-5)
    small = exact.to_scipy().toarray()
    small[2, 0] = False
    with pytest.raises(PatternError, match=r"lacks elements of the derivative of chain .* in 1 of 5 rows \(2\)"):
        sparse_jacobian(chain, pattern=small)(X)
    assert sparse_jacobian(chain, pattern=small, check=False)(X).nse == exact.nnz - 1
    inside = sparse_jacobian(chain, pattern=exact)  # concrete arguments, in a function that is traced
    assert_close(jax.jit(lambda a: a * inside(X).data)(2.0), 2 * sparse_jacobian(chain)(X).data, 1e-5)
    with pytest.raises(PatternError, match="is a matrix of 5 rows and 6 columns, but the pattern has 6 and 6"):
        sparse_jacobian(chain, pattern=np.eye(6))(X)
    with pytest.raises(PatternError, match="lacks elements"):
        sparse_hessian(energy, pattern=np.eye(6))(X)
    with pytest.raises(PatternError, match="rows and 6 columns"):
        sparse_jacobian(chain, colouring=colour_jacobian(np.eye(6)))(X)


def test_local_derivatives() -> None:
    f = lambda x: lax.cond(x[0] > 0, lambda x: x * jnp.roll(x, 1), lambda x: x**2, x)
    jacobian = sparse_jacobian(f, local=True)
    for x, nnz in ((X, 12), (-X, 6)):
        assert jacobian(x).nse == nnz
        assert_close(jacobian(x).todense(), jax.jacfwd(f)(x), 1e-5)
    assert sparse_jacobian(f)(X).nse == 12


# What is refused -----------------------------------------------------------------------------------------------------


def test_arguments_that_make_no_sense() -> None:
    with pytest.raises(ArgumentError, match="sparse_jacobian: fun must be a function, got 3"):
        sparse_jacobian(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="must be one of auto, forward, reverse, both, got 'up'"):
        sparse_jacobian(chain, mode="up")
    with pytest.raises(ArgumentError, match="format must be one of bcoo, scipy, got 'csr'"):
        sparse_hessian(energy, format="csr")
    with pytest.raises(ArgumentError, match="takes at most one of colouring, pattern and local"):
        sparse_jacobian(chain, local=True, pattern=np.eye(6))
    with pytest.raises(ArgumentError, match="colouring must be a Colouring, as prepare returns it, got 'x'"):
        sparse_jacobian(chain, colouring="x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="chunk_size must be a positive int"):
        sparse_jacobian(chain, chunk_size=0)


def test_functions_without_real_derivatives() -> None:
    with pytest.raises(NotDifferentiableError, match=r"argument 0 \(x\) of chain .* is i32\[2\]"):
        sparse_jacobian(chain)(np.int32([1, 2]))
    with pytest.raises(NotDifferentiableError, match=r"sparse_jacobian needs real outputs.*c64\[6\]"):
        sparse_jacobian(lambda x: x + 1j)(X)
    with pytest.raises(NotDifferentiableError, match=r"needs real outputs, but .* bool\[6\]"):
        jacobian_pattern(lambda x: x > 0)(X)
    with pytest.raises(NotDifferentiableError, match=r"a single scalar result, but chain .* f32\[5\]"):
        sparse_hessian(chain)(X)
    with pytest.raises(NotDifferentiableError, match="returned nothing"):
        hessian_pattern(lambda x: ())(X)
    with pytest.raises(OperandError, match=r"sparse_jacobian of chain .*, argument 0 \(x\)"):
        sparse_jacobian(chain)("text")


def test_an_operation_without_a_derivative_is_named() -> None:
    half_p = Primitive("half")
    half_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    with pytest.raises(MissingRuleError, match="the primitive 'half' has no jvp rule"):
        sparse_jacobian(half_p.bind)(X)


def test_an_operation_of_the_users_is_dense_unless_it_has_a_rule() -> None:
    double_p = Primitive("double")
    double_p.host(lambda x: 2 * x)
    double_p.abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    double_p.jvp(lambda primals, tangents: (double_p.bind(*primals), double_p.bind(*tangents)))
    assert jacobian_pattern(double_p.bind)(X).nnz == 36
    sparsity(double_p)(lambda walk, eqn, operands: operands)
    assert jacobian_pattern(double_p.bind)(X) == Pattern(np.eye(6))


# Size ----------------------------------------------------------------------------------------------------------------


def test_memory_for_a_tridiagonal_jacobian_is_linear_in_its_size() -> None:
    f = lambda x: x.at[1:].add(-(x[:-1] ** 2)).at[:-1].add(jnp.sin(x[1:]))
    per_column = []
    for n in (20_000, 200_000):
        tracemalloc.start()
        c = sparse_jacobian(f).prepare(jax.ShapeDtypeStruct((n,), "float32"))
        per_column.append(tracemalloc.get_traced_memory()[1] / n)
        tracemalloc.stop()
        assert (c.count, c.pattern.nnz) == (3, 3 * n - 2)
    assert per_column[1] < 1.5 * per_column[0]


@pytest.mark.slow
def test_a_tridiagonal_jacobian_of_size_one_million() -> None:
    n = 1_000_000
    f = lambda x: x[1:-1] ** 2 - 2 * x[:-2] + jnp.sin(x[2:])
    x = np.linspace(0, 1, n, dtype=np.float32)
    found = sparse_jacobian(f, format="scipy")(x)
    assert found.nnz == 3 * (n - 2)
    np.testing.assert_allclose(found.diagonal(1), 2 * x[1:-1], rtol=1e-6)
    np.testing.assert_allclose(found.diagonal(2), np.cos(x[2:]), rtol=1e-5)
