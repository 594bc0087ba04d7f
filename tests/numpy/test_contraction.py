"""Contractions: values against NumPy, derivatives and batching against their definitions, errors by their text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, enable_x64, grad, jacfwd, jacrev, jit, jvp, lax, make_jaxpr, vjp, vmap
from pullback.backends.compiler import portable
from pullback.core.errors import ArgumentError, OperandError, ShapeError
from tests.helpers import assert_elements_close

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


close = partial(assert_elements_close, rtol=1e-5, dtypes=False)


def check_derivative(f: Callable[..., Any], *args: Any) -> None:
    """<u, J v> = <J^T u, v>, and J v is the difference quotient of f, which is multilinear or nearly so."""
    tangents = [normal(*x.shape, dtype=x.dtype) for x in args]
    out, t = jvp(f, tuple(map(jnp.asarray, args)), tuple(map(jnp.asarray, tangents)))
    u = normal(*out.shape, dtype=out.dtype)
    cts = vjp(f, *map(jnp.asarray, args))[1](jnp.asarray(u))
    left = np.sum(u * np.asarray(t)).real
    right = sum(np.sum(np.asarray(c) * v).real for c, v in zip(cts, tangents, strict=True))
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)
    h = 1e-6
    ahead, behind = (
        np.asarray(f(*[jnp.asarray(x + s * h * v) for x, v in zip(args, tangents, strict=True)])) for s in (1, -1)
    )
    close(t, (ahead - behind) / (2 * h), rtol=1e-7)


def check_vmap(f: Callable[..., Any], *args: Any) -> None:
    """vmap over any axis of any operands is a loop."""
    n = 2
    for dims in itertools.product(*[(None, *range(x.ndim + 1)) for x in args]):
        if all(d is None for d in dims):
            continue
        batched = [
            x if d is None else normal(*x.shape[:d], n, *x.shape[d:], dtype=x.dtype)
            for x, d in zip(args, dims, strict=True)
        ]
        out = vmap(f, in_axes=dims)(*map(jnp.asarray, batched))
        rows = [
            np.asarray(f(*[jnp.asarray(x if d is None else x.take(i, d)) for x, d in zip(batched, dims, strict=True)]))
            for i in range(n)
        ]
        close(out, np.stack(rows), rtol=1e-10)


# dot_general -------------------------------------------------------------------------------------------------------

DIMS: list[Any] = [
    ((3,), (3,), (((0,), (0,)), ((), ()))),
    ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
    ((3, 2), (4, 3), (((0,), (1,)), ((), ()))),
    ((2,), (3,), (((), ()), ((), ()))),
    ((), (2, 3), (((), ()), ((), ()))),
    ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    ((2, 5, 3), (3, 4, 5), (((2,), (0,)), ((1,), (2,)))),
    ((5, 3), (5, 3), (((1,), (1,)), ((0,), (0,)))),
    ((5, 3), (5, 3), (((0, 1), (0, 1)), ((), ()))),
    ((3, 2, 4), (4, 5, 3), (((0, 2), (2, 0)), ((), ()))),
    ((2, 3, 4, 5), (5, 2, 4), (((3, 2), (0, 2)), ((0,), (1,)))),
    ((5, 6, 2), (6, 5, 3), (((), ()), ((0, 1), (1, 0)))),
    ((4, 0, 2), (4, 0), (((1,), (1,)), ((0,), (0,)))),
]


def formula(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], dims: Any) -> str:
    (xc, yc), (xb, yb) = dims
    left = [chr(97 + i) for i in range(x.ndim)]
    right = [chr(110 + i) for i in range(y.ndim)]
    for i, j in [*zip(xc, yc, strict=True), *zip(xb, yb, strict=True)]:
        right[j] = left[i]
    free_left = [c for i, c in enumerate(left) if i not in (*xc, *xb)]
    free_right = [c for i, c in enumerate(right) if i not in (*yc, *yb)]
    return f"{''.join(left)},{''.join(right)}->{''.join([*(left[i] for i in xb), *free_left, *free_right])}"


@pytest.mark.parametrize(("p", "q", "dims"), DIMS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.usefixtures("x64")
def test_dot_general_in_every_direction(p: Any, q: Any, dims: Any, dtype: Any) -> None:
    x, y = normal(*p, dtype=dtype), normal(*q, dtype=dtype)

    def f(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, dims)

    expected = np.einsum(formula(x, y, dims), x, y)
    close(f(jnp.asarray(x), jnp.asarray(y)), expected, rtol=1e-12)
    assert make_jaxpr(f)(jnp.asarray(x), jnp.asarray(y)).out_avals[0].shape == expected.shape
    check_derivative(f, x, y)
    if dtype is np.float64:
        check_vmap(f, x, y)
        check_vmap(lambda a, b: vjp(f, a, b)[1](f(a, b))[1], x, y)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize(("p", "q", "dims"), [DIMS[1], DIMS[3], DIMS[6], DIMS[7]])
def test_dot_general_of_other_dtypes(p: Any, q: Any, dims: Any, dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x, y = (RNG.integers(0, 3, size=shape).astype(kind) for shape in (p, q))
    got = np.asarray(lax.dot_general(jnp.asarray(x), jnp.asarray(y), dims))
    exact = np.einsum(formula(x, y, dims), x.astype(np.int64), y.astype(np.int64))
    assert got.dtype == kind
    assert np.array_equal(got, exact.astype(kind))


def test_narrow_floats_are_summed_in_wide_ones() -> None:
    ones = jnp.ones((1, 4096), "bfloat16")
    assert float(jnp.matmul(ones, ones.T)[0, 0]) == 4096
    large = jnp.asarray(np.full((2, 2), 100, np.int8))
    assert np.asarray(jnp.matmul(large, large)).tolist() == [[32, 32], [32, 32]]
    assert np.asarray(jnp.matmul(large, large, preferred_element_type="int32")).tolist() == [[20000] * 2] * 2


@pytest.mark.parametrize(
    ("p", "q", "dims", "message"),
    [
        ((2, 3), (4, 5), (((1,), (0,)), ((), ())), "contracting dimensions to have the same shape, got (3,) and (4,)"),
        (
            (2, 3),
            (3, 2),
            (((1,), (0,)), ((0,), (0,))),
            "the contracting axes (1,) and (0,) must be equally many distinct",
        ),
        (
            (2, 3, 4),
            (3, 4, 2),
            (((2,), (1,)), ((0,), (0,))),
            "batch dimensions to have the same shape, got (2,) and (3,)",
        ),
        ((2, 3), (3, 2), (((2,), (0,)), ((), ())), "the contracting axes (2,) and (0,)"),
        ((2, 3), (3, 2), (((1,), (0, 1)), ((), ())), "the contracting axes (1,) and (0, 1)"),
    ],
)
def test_dot_general_refuses(p: Any, q: Any, dims: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        lax.dot_general(jnp.ones(p), jnp.ones(q), dims)


# Products ----------------------------------------------------------------------------------------------------------

MATMUL: list[Any] = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)), ((1, 2, 3), (5, 3, 4)),
    ((7, 1, 2, 3), (5, 3, 4)), ((7, 5, 2, 3), (1, 5, 3, 4)), ((0, 2, 3), (1, 3, 4)), ((5, 2, 0), (5, 0, 4)),
    ((2, 3), (5, 1, 3, 4)), ((1, 1, 3), (1, 3, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("p", "q"), MATMUL)
@pytest.mark.usefixtures("x64")
def test_matmul_and_dot(p: Any, q: Any) -> None:
    x, y = normal(*p), normal(*q)
    close(jnp.matmul(jnp.asarray(x), jnp.asarray(y)), np.matmul(x, y))
    close(jnp.asarray(x) @ jnp.asarray(y), np.matmul(x, y))
    close(jnp.dot(jnp.asarray(x), jnp.asarray(y)), np.dot(x, y))
    check_derivative(jnp.matmul, x, y)
    if x.ndim + y.ndim <= 5:
        check_vmap(jnp.matmul, x, y)


@pytest.mark.usefixtures("x64")
def test_other_products() -> None:
    x, y, z = normal(2, 3, 4), normal(3, 4, 5), normal(2, 3, 4, dtype=np.complex128)
    a, b, c = map(jnp.asarray, (x, y, z))
    close(jnp.tensordot(a, b), np.tensordot(x, y))
    close(jnp.tensordot(a, b, ([2, 1], [1, 0])), np.tensordot(x, y, ([2, 1], [1, 0])))
    close(jnp.tensordot(a, b, 0), np.tensordot(x, y, 0))
    close(jnp.tensordot(a, b, (-1, -2)), np.tensordot(x, y, (-1, -2)))
    close(jnp.inner(a, a[0, 0]), np.inner(x, x[0, 0]))
    close(jnp.inner(a, 2.0), x * 2)
    close(jnp.outer(a, b), np.outer(x, y))
    close(jnp.vdot(c, c), np.vdot(z, z))
    close(jnp.vecdot(c, c, axis=1), np.einsum("ijk,ijk->ik", z.conj(), z))
    close(jnp.matvec(c, c[0, 0]), z @ z[0, 0])
    close(jnp.vecmat(c[0, 0], jnp.reshape(c, (2, 4, 3))), z[0, 0].conj() @ z.reshape(2, 4, 3))
    close(jnp.kron(a[0], a[0, 0]), np.kron(x[0], x[0, 0]))
    close(jnp.polyval(a[0, 0], b), np.polyval(x[0, 0], y))
    for f in (jnp.inner, jnp.outer, jnp.kron, jnp.vecdot, jnp.vdot):
        check_derivative(f, x[0], x[1])
    check_derivative(jnp.vdot, z[0], z[1])


@pytest.mark.parametrize("offset", range(-4, 5))
@pytest.mark.usefixtures("x64")
def test_trace(offset: int) -> None:
    x = normal(3, 4, 2)
    close(jnp.trace(jnp.asarray(x), offset), np.trace(x, offset))
    close(jnp.trace(jnp.asarray(x), offset, 2, 0), np.trace(x, offset, 2, 0))
    check_derivative(lambda a: jnp.trace(a, offset), x)


def test_trace_widens_integers() -> None:
    assert jnp.trace(jnp.ones((2, 2), "int8")).dtype == np.int32
    assert jnp.trace(jnp.ones((2, 2), "bool")).dtype == np.int32
    assert jnp.trace(jnp.ones((2, 2), "uint8")).dtype == np.uint32
    assert jnp.trace(jnp.ones((2, 2)), dtype="bfloat16").dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(("p", "q"), [((3,), (3,)), ((4, 3), (3,)), ((4, 1, 3), (5, 3))])
@pytest.mark.usefixtures("x64")
def test_cross(p: Any, q: Any) -> None:
    x, y = normal(*p), normal(*q)
    close(jnp.cross(jnp.asarray(x), jnp.asarray(y)), np.cross(x, y))
    check_derivative(jnp.cross, x, y)
    flat = x.copy()
    flat[..., 2] = 0
    close(jnp.cross(jnp.asarray(x[..., :2]), jnp.asarray(y)), np.cross(flat, y))
    close(jnp.cross(jnp.asarray(y), jnp.asarray(x[..., :2])), np.cross(y, flat))
    close(jnp.cross(jnp.asarray(x[..., :2]), jnp.asarray(x[..., :2])), np.cross(flat, flat)[..., 2])


def test_cross_along_other_axes() -> None:
    x, y = normal(3, 4), normal(4, 3)
    close(jnp.cross(jnp.asarray(x), jnp.asarray(y), 0, 1, 0), np.cross(x, y, 0, 1, 0))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.usefixtures("x64")
def test_convolve_and_correlate(mode: str) -> None:
    for n, m in itertools.product(range(1, 7), repeat=2):
        x, y = normal(n, dtype=np.complex128), normal(m, dtype=np.complex128)
        close(jnp.convolve(jnp.asarray(x), jnp.asarray(y), mode), np.convolve(x, y, mode))
        close(jnp.correlate(jnp.asarray(x), jnp.asarray(y), mode), np.correlate(x, y, mode))
    check_derivative(lambda a, b: jnp.convolve(a, b, mode), normal(5), normal(3))
    check_derivative(lambda a, b: jnp.correlate(a, b, mode), normal(3), normal(5))
    x, y = normal(5000), normal(3000)
    close(jnp.convolve(jnp.asarray(x), jnp.asarray(y), mode), np.convolve(x, y, mode), rtol=1e-9)


def test_promotion() -> None:
    assert jnp.dot(2, 3).weak_type
    assert jnp.dot(2.0, jnp.ones(2, "int8")).weak_type
    assert jnp.matmul(jnp.ones((2, 2), "float16"), jnp.ones((2, 2), "bfloat16")).dtype == np.float32
    assert jnp.einsum("i,->i", jnp.ones(2, "int8"), 2).dtype == np.int8
    assert (
        jnp.einsum("i,i", jnp.ones(2, "int8"), jnp.ones(2, "int8"), preferred_element_type="float32").dtype
        == np.float32
    )
    assert jnp.matmul(np.eye(2), jnp.ones(2)).dtype == np.float32
    assert jnp.convolve(jnp.arange(3), jnp.arange(2)).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jnp.dot(jnp.ones((2, 3)), jnp.ones((4, 3))), "got (3,) and (4,)"),
        (lambda: jnp.matmul(jnp.ones((2, 3)), jnp.ones(2)), "got (3,) and (2,)"),
        (lambda: jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((4, 3, 2))), "broadcasting: (5, 2, 3) and (4, 3, 2)"),
        (lambda: jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 2, 3))), "got (3,) and (2,)"),
        (lambda: jnp.matmul(2.0, jnp.ones(3)), "at least one axis, got shapes () and (3,)"),
        (lambda: jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2))), "got (2, 3) and (3, 2)"),
        (lambda: jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), 3), "axes=3 does not fit"),
        (lambda: jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), ([0, 1], [0])), "equally many distinct axes"),
        (lambda: jnp.vdot(jnp.ones((2, 3)), jnp.ones(5)), "got (6,) and (5,)"),
        (lambda: jnp.vecdot(jnp.ones((2, 3)), jnp.ones((2, 2))), "got (3,) and (2,)"),
        (lambda: jnp.matvec(jnp.ones(3), jnp.ones(3)), "matvec needs shapes (..., m, k) and (..., k)"),
        (lambda: jnp.cross(jnp.ones(4), jnp.ones(3)), "2 or 3 elements, got shapes (4,) and (3,)"),
        (lambda: jnp.convolve(jnp.ones((2, 2)), jnp.ones(3)), "two non-empty vectors, got shapes (2, 2)"),
        (lambda: jnp.convolve(jnp.ones(2), jnp.ones(3), "some"), "got 'some'"),
        (lambda: jnp.trace(jnp.ones(3)), "at least two axes, got shape (3,)"),
        (lambda: jnp.trace(jnp.ones((2, 2)), 0, 0, -2), "must be different axes"),
    ],
)
def test_products_refuse(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        call()


def test_operands_that_are_no_arrays() -> None:
    with pytest.raises(OperandError, match=r"dot: expected an array or a number, got \[1, 2\]"):
        jnp.dot([1, 2], jnp.ones(2))
    with pytest.raises(OperandError, match=r"matmul: .* got 'x' of type str"):
        jnp.matmul("x", jnp.ones(2))


# einsum ------------------------------------------------------------------------------------------------------------

FORMULAS: list[Any] = [
    ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]), ("ij->j", [(2, 3)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]),
    ("iji->j", [(3, 2, 3)]), ("iiij->ji", [(2, 2, 2, 3)]), ("i,i", [(3,), (3,)]), ("i,i->i", [(3,), (3,)]),
    ("i,j->ji", [(2,), (3,)]), ("ij,jk", [(2, 3), (3, 4)]), ("ij,kj->ki", [(2, 3), (4, 3)]),
    ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]), ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]), ("a,ab,abc->", [(2,), (2, 3), (2, 3, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 3)]), ("i...->...", [(2, 3, 4)]), ("...,...", [(2, 3), (3,)]),
    ("ij,jk->ik", [(2, 1), (3, 4)]), (",ij", [(), (2, 3)]), ("ii,jj->ij", [(2, 2), (3, 3)]),
    ("ij,ij,jk->ik", [(2, 3), (2, 3), (3, 4)]), ("i,j,k,l->likj", [(2,), (3,), (4,), (5,)]), ("ba", [(2, 3)]),
    ("...i->i", [(2, 3)]), ("ij,jk->ik", [(0, 3), (3, 4)]), ("ij,jk->ik", [(2, 0), (0, 4)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shapes"), FORMULAS)
@pytest.mark.usefixtures("x64")
def test_einsum_in_every_direction(text: str, shapes: Any) -> None:
    xs = [normal(*s) for s in shapes]
    expected = np.einsum(text if "...i->i" not in text else "ji->i", *xs)

    def f(*args: Any) -> Any:
        return jnp.einsum(text, *args)

    close(f(*map(jnp.asarray, xs)), expected)
    check_derivative(f, *xs)
    if sum(x.ndim for x in xs) <= 6:
        check_vmap(f, *xs)


@st.composite
def einsums(draw: Any) -> tuple[str, list[np.ndarray[Any, Any]], Any]:
    labels = "abcde"[: draw(st.integers(1, 5))]
    sizes = {c: draw(st.integers(0, 3)) for c in labels}
    dots = [draw(st.integers(1, 3)) for _ in range(2)] if draw(st.booleans()) else None
    terms, arrays = [], []
    for _ in range(draw(st.integers(1, 4))):
        term = "".join(draw(st.lists(st.sampled_from(labels), max_size=3)))
        shape = [sizes[c] for c in term]
        if dots is not None:
            term = f"...{term}"
            shape = [1 if draw(st.booleans()) else n for n in dots[draw(st.integers(0, 2)) :]] + shape
        terms.append(term)
        arrays.append(RNG.integers(-3, 4, size=shape))
    text = ",".join(terms)
    if draw(st.booleans()):
        used = sorted({c for term in terms for c in term} - {"."})
        output = draw(st.lists(st.sampled_from(used), unique=True)) if used else []
        text += "->" + ("..." if dots is not None else "") + "".join(output)
    return text, arrays, draw(st.sampled_from(["auto", "greedy", True, False]))


@given(einsums())
@settings(max_examples=300, deadline=None)
def test_random_einsums(case: tuple[str, list[np.ndarray[Any, Any]], Any]) -> None:
    text, arrays, optimize = case
    got = np.asarray(jnp.einsum(text, *map(jnp.asarray, arrays), optimize=optimize))
    assert np.array_equal(got, np.einsum(text, *arrays))
    mask = np.asarray(jnp.einsum(text, *[jnp.asarray(x > 0) for x in arrays], optimize=optimize))
    assert mask.dtype == bool
    assert np.array_equal(mask, np.einsum(text, *[(x > 0).astype(int) for x in arrays]) > 0)


def test_einsum_conventions() -> None:
    x, y = normal(2, 3, dtype=np.float32), normal(3, 4, dtype=np.float32)
    a, b = jnp.asarray(x), jnp.asarray(y)
    close(jnp.einsum(a, [0, 1], b, [1, 2], [0, 2]), x @ y)
    close(jnp.einsum(a, [5, 30], b, [30, 60]), x @ y)
    close(jnp.einsum(a, [..., 1], b, [1, 2]), x @ y)
    close(jnp.einsum(" i j , j k -> i k ", a, b), x @ y)
    close(jnp.einsum("ij,jk,k->i", a, b, b[0], optimize=["einsum_path", (1, 2), (0, 1)]), x @ y @ y[0])
    close(jnp.einsum("ij,jk,k->i", a, b, b[0], optimize=[(0, 1, 2)]), x @ y @ y[0])
    assert jnp.einsum_path("ij,jk,k->i", a, b, b[0])[0] == [(1, 2), (0, 1)]


def test_einsum_is_one_contraction() -> None:
    jaxpr = make_jaxpr(lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b))(jnp.ones((2, 3, 4, 5)), jnp.ones((2, 6, 4, 5)))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["dot_general"]
    jaxpr = make_jaxpr(lambda a, b: jnp.einsum("ij,kj->ki", a, b))(jnp.ones((2, 3)), jnp.ones((4, 3)))
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["dot_general"]


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("ij,jk", [(2, 3)], "has 2 terms, but there are 1 operands"),
        ("ij,jk->il", [(2, 3), (3, 4)], "the index 'l' of the result is not in any operand, in 'ij,jk->il'"),
        ("ij->ii", [(2, 3)], "'i' occurs more than once in the result"),
        ("ijk", [(2, 3)], "the indices 'ijk' do not fit operand 0 of shape (2, 3)"),
        ("i", [(2, 3)], "the indices 'i' do not fit operand 0 of shape (2, 3)"),
        ("ij,jk", [(2, 2), (3, 4)], "the sizes of the index 'j' disagree, in operand 1 of 'ij,jk' for (2, 2), (3, 4)"),
        ("ii", [(2, 3)], "the sizes of the index 'i' disagree"),
        ("...,...", [(2,), (3,)], "the sizes of the index '...' disagree"),
        ("i.j", [(2, 2)], "unexpected '.'"),
        ("ij->i->j", [(2, 2)], "unexpected '-'"),
    ],
)
def test_einsum_refuses(text: str, shapes: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)):
        jnp.einsum(text, *[jnp.ones(s) for s in shapes])


def test_einsum_refuses_other_arguments() -> None:
    with pytest.raises(ShapeError, match=r"the path .* does not fit 3 operands"):
        jnp.einsum("i,i,i", jnp.ones(2), jnp.ones(2), jnp.ones(2), optimize=[(0, 7)])
    with pytest.raises(ShapeError, match="out must be None"):
        jnp.einsum("i", jnp.ones(2), out=jnp.ones(2))


def test_indices_of_many_letters() -> None:
    """Each integer is an index of its own, also beyond the 52 letters: vectors of other sizes do not meet."""
    vectors = [np.full(i + 1, 1 / (i + 1)) for i in range(120)]
    operands = [part for i, v in enumerate(vectors) for part in (v, [i])]
    np.testing.assert_allclose(jnp.einsum(*operands, []), 1, rtol=1e-5)
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jnp.einsum(x, [70, 60], x, [70, 80]), x.T @ x)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32", "bool"])
@pytest.mark.parametrize(
    "sizes", [((30, 30), (30, 30)), ((200, 40), (3, 2)), ((2, 3), (60, 300)), ((300,), (6, 70))], ids=str
)
def test_large_kronecker_products(sizes: Any, dtype: str) -> None:
    """The products are those of NumPy to the bit; their transposes are sums over blocks."""
    x, y = ((4 * normal(*size, dtype="complex64" if dtype == "complex64" else "float32")) for size in sizes)
    x, y = x.astype(dtype), y.astype(dtype)
    np.testing.assert_array_equal(jnp.kron(x, y), np.kron(x, y))
    np.testing.assert_array_equal(vmap(jnp.kron)(np.stack([x, x[::-1]]), np.stack([y, y]))[1], np.kron(x[::-1], y))
    if dtype in ("float32", "complex64"):
        weights = normal(*np.kron(x, y).shape, dtype=dtype)
        by_x, by_y = vjp(jnp.kron, jnp.asarray(x), jnp.asarray(y))[1](jnp.asarray(weights))
        (m, n), (p, q) = ((1,) * (2 - len(size)) + size for size in sizes)
        blocks = weights.reshape(m, p, n, q)
        close(by_x, np.einsum("mpnq,pq->mn", blocks, y.reshape(p, q)).reshape(x.shape), rtol=1e-3)
        close(by_y, np.einsum("mpnq,mn->pq", blocks, x.reshape(m, n)).reshape(y.shape), rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16"])
def test_long_inner_products_are_compiled_as_sums(dtype: str) -> None:
    """The compiler computes sums of products twice as fast as products, where these are long."""
    with enable_x64():
        x, y = (
            jnp.asarray(normal(40_000, dtype="complex64" if dtype == "complex64" else "float64"), dtype) for _ in "xy"
        )
        program = jit(jnp.dot)
        text = program.lower(x, y).as_text()
        assert ("dot_general" in text) == (dtype not in ("float32", "float64"))
        assert "dot_general" in program.lower(x[:10], y[:10]).as_text()
        wide = [np.asarray(v).astype("complex128") for v in (x, y)]
        np.testing.assert_allclose(
            np.asarray(program(x, y)).astype("complex128"), np.dot(*wide), atol=4 if dtype == "bfloat16" else 0.01
        )


def test_a_compiled_kronecker_product_repeats_nothing() -> None:
    """Reductions of repeated elements are computed again and again by the loops into which the compiler fuses them."""
    x = jnp.ones((30, 30))
    assert str(make_jaxpr(jnp.kron)(x, x)).count("broadcast_in_dim") == 0


# The precision of products --------------------------------------------------------------------------------------------


def precisions(f: Callable[..., Any], *args: Any, platform: str = "cuda") -> list[str]:
    """The precisions of the products of a program for a platform."""
    text = portable.portable(make_jaxpr(f)(*args), "f", [platform]).text
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert products
    return [" ".join(re.findall(r"stablehlo<precision (\w+)>", line)) for line in products]


SQUARE = np.ones((4, 4), np.float32)
PRODUCTS: list[Callable[..., Any]] = [
    jnp.dot, jnp.matmul, jnp.inner, jnp.vdot, jnp.tensordot, jnp.vecdot, jnp.linalg.matmul, jnp.linalg.vecdot,
    jnp.linalg.tensordot, partial(jnp.einsum, "ij,jk->ik"), lax.dot,
]  # fmt: skip


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda f: getattr(f, "__name__", "einsum"))
def test_a_precision_is_that_of_programs_for_gpus(product: Callable[..., Any]) -> None:
    """Of the product and of its derivatives. By default GPUs round to TF32, as in JAX; CPUs never round."""
    f = partial(product, precision="highest")
    assert precisions(f, SQUARE, SQUARE) == ["HIGHEST HIGHEST"]
    assert precisions(product, SQUARE, SQUARE) == [""]
    assert precisions(f, SQUARE, SQUARE, platform="cpu") == [""]
    pulled = precisions(grad(lambda x: f(x, x).sum()), SQUARE)
    assert set(pulled) == {"HIGHEST HIGHEST"}
    assert precisions(vmap(f), SQUARE[None], SQUARE[None]) == ["HIGHEST HIGHEST"]
    np.testing.assert_array_equal(jit(f)(SQUARE, SQUARE), f(SQUARE, SQUARE))


@pytest.mark.parametrize(
    ("precision", "names"),
    [
        (lax.Precision.HIGH, "HIGH HIGH"), (("default", lax.Precision.HIGHEST), "DEFAULT HIGHEST"),
        ("FASTEST", "DEFAULT DEFAULT"),
        (lax.DotAlgorithmPreset.TF32_TF32_F32, ""), ((None, "float32"), "DEFAULT HIGHEST"),
    ],
    ids=str,
)  # fmt: skip
def test_forms_of_a_precision(precision: Any, names: str) -> None:
    assert precisions(partial(jnp.dot, precision=precision), SQUARE, SQUARE) == [names]


def test_a_precision_that_there_is_not() -> None:
    with pytest.raises(ArgumentError, match=r"precision must be None or one of default, .* got 'exact'"):
        jnp.dot(SQUARE, SQUARE, precision="exact")


def test_precision_of_what_rounding_would_spoil() -> None:
    """Derivatives of decompositions, selections by products, and algorithms that round operands themselves."""
    values = grad(lambda x: jnp.linalg.eigvalsh(x)[0])
    assert set(precisions(values, SQUARE)) == {"HIGHEST HIGHEST"}
    taken = lambda x: jnp.take_along_axis(x, np.array([[1], [0]]), axis=0, mode="one_hot")
    assert set(precisions(taken, SQUARE)) == {"HIGHEST HIGHEST"}
    mirrored = lambda x: jnp.pad(x, 1, mode="reflect", reflect_type="odd")
    assert set(precisions(mirrored, SQUARE)) == {"HIGHEST HIGHEST"}
    algorithm = partial(lax.dot, precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3)
    assert set(precisions(algorithm, SQUARE, SQUARE)) == {"HIGHEST HIGHEST"}


def test_a_precision_within_other_transformations() -> None:
    """Sums over named axes, and masked products, keep it."""
    f = lambda x, y: jnp.dot(x, y, precision="highest")
    hessian = jacfwd(jacrev(lambda x: f(x, x).sum()))
    assert set(precisions(hessian, SQUARE)) == {"HIGHEST HIGHEST"}
    summed = vmap(lambda x, y: grad(lambda y: lax.psum(f(x, y), "i").sum())(y), (0, None), axis_name="i")
    assert set(precisions(summed, SQUARE[None], SQUARE)) == {"HIGHEST HIGHEST"}


@pytest.mark.parametrize(
    ("shapes", "dtype", "copies"),
    [
        (((128, 512), (128, 256)), "float32", 1), (((128, 512), (128, 10)), "float32", 1),
        (((128, 512), (128, 256)), "float64", 1), (((128, 512), (128, 10)), "float64", 0),
        (((128, 10), (128, 512)), "float32", 0), (((16, 32), (16, 32)), "float32", 0),
        (((2, 64, 512), (2, 64, 256)), "float32", 1), (((1 << 16, 512), (1 << 16, 256)), "float32", 0),
        (((128, 512), (128, 256)), "int32", 0),
    ],
)  # fmt: skip
def test_products_of_columns_are_products_of_rows_where_that_is_quicker(
    shapes: Any, dtype: str, copies: int, x64: None
) -> None:
    """A barrier keeps the compiler from merging the transposition with the product."""
    axes = tuple(range(len(shapes[0]) - 1))
    contract = jit(lambda x, y: lax.dot_general(x, y, ((axes, axes), ((), ()))))
    types = [ShapeDtypeStruct(shape, dtype) for shape in shapes]
    assert contract.lower(*types).as_text().count("stablehlo.optimization_barrier") == copies
    assert "optimization_barrier" not in contract.trace(*types).lower(lowering_platforms=("cuda",)).as_text()
    if copies:
        x, y = (np.random.default_rng(0).standard_normal(shape).astype(dtype) for shape in shapes)
        expected = np.tensordot(x, y, (axes, axes))
        np.testing.assert_allclose(contract(x, y), expected, 1e-4, 1e-4)


@pytest.mark.parametrize(("rows", "loops"), [(1024, 1), (128, 0)])
def test_large_matrices_that_are_computed_are_in_memory_before_they_are_transposed(rows: int, loops: int) -> None:
    """The loop of no steps keeps the compiler from computing the matrix by columns."""
    x, y = (np.random.default_rng(0).standard_normal((rows, n)).astype("f") for n in (512, 256))
    of_given = jit(lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))))
    of_computed = jit(lambda x, y: of_given(jnp.tanh(x), y))
    assert of_computed.lower(x, y).as_text().count("stablehlo.while") == loops
    assert "stablehlo.while" not in of_given.lower(x, y).as_text()
    np.testing.assert_allclose(of_computed(x, y), np.tanh(x).T @ y, 1e-3, 1e-3)
