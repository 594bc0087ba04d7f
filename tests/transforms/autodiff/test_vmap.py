"""``vmap``: every placement of axes agrees with a loop in Python."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    grad,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    make_jaxpr,
    pure_callback,
    vjp,
    vmap,
)
from pullback.core.array import as_array
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.trace import state
from pullback.custom_batching import custom_vmap
from pullback.custom_derivatives import linear_call
from pullback.derivatives import preaccumulate
from tests.helpers import assert_arrays_close as close
from tests.helpers import with_jvp, with_vjp

Point = namedtuple("Point", "x y")
rng = np.random.RandomState(0)


def normal(*shape: int) -> Any:
    return as_array(rng.standard_normal(shape).astype(np.float32))


def in_a_loop(f: Any, in_axes: tuple[Any, ...], out_axis: int, *args: Any) -> Any:
    """What ``vmap`` should give, for arrays in and one array out."""
    size = next(x.shape[a] for x, a in zip(args, in_axes, strict=True) if a is not None)
    rows = [
        f(*(x if a is None else as_array(np.take(np.asarray(x), i, a)) for x, a in zip(args, in_axes, strict=True)))
        for i in range(size)
    ]
    return np.stack([np.asarray(r) for r in rows], out_axis)


FUNCTIONS: dict[str, Any] = {
    "elementwise": lambda x, y: jnp.sin(x) * y + 1.0,
    "product": lambda x, y: x @ y.T,
    "sum": lambda x, y: jnp.sum(x, 0) + jnp.sum(y, 1)[0],
    "broadcast": lambda x, y: x[:, None] * y[0],
    "of one": lambda x, y: jnp.tanh(x),
    "constant": lambda x, y: jnp.ones((2, 3)),
    "gradient": lambda x, y: grad(lambda v: jnp.sum(jnp.sin(v) * y))(x),
    "closure": lambda x, y: jvp(lambda v: v * y, (x,), (x,))[1],
}


@pytest.mark.parametrize(
    "axes", [a for a in itertools.product((0, 1, 2, -1, -2, -3, None), repeat=2) if a != (None, None)], ids=str
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_axis(name: str, axes: tuple[Any, Any]) -> None:
    f = FUNCTIONS[name]
    args = [as_array(np.moveaxis(np.asarray(normal(4, 2, 3)), 0, a)) if a is not None else normal(2, 3) for a in axes]
    rank = len(f(normal(2, 3), normal(2, 3)).shape)
    for out in (0, rank, -1, -rank - 1):
        close(vmap(f, axes, out)(*args), in_a_loop(f, axes, out, *args))
        close(vmap(f, axes, out, chunk_size=3)(*args), in_a_loop(f, axes, out, *args))


# Trees of arguments and results ------------------------------------------------------------------------------------


def test_prefixes_of_arguments() -> None:
    p = {"w": normal(3, 4), "b": (normal(4), normal(3, 4))}
    x = normal(4, 3)

    def f(p: Any, x: Any) -> Any:
        return p["w"] @ x + p["b"][0] + jnp.sum(p["b"][1])

    got = vmap(f, ({"w": 1, "b": (0, -1)}, 0))(p, x)
    w, b0, b1, xs = (np.asarray(v) for v in (p["w"], *p["b"], x))
    close(got, np.array([np.dot(w[:, i], xs[i]) + b0[i] + b1[:, i].sum() for i in range(4)]))
    close(vmap(lambda p, x: p.x * x + p.y, (Point(None, 0), None))(Point(2.0, x), 1.0), 2.0 + xs)
    close(vmap(lambda p, x: p["a"] * x, (None, 0))({"a": 2.0}, x), 2 * xs)
    close(vmap(lambda p, x: p["a"] * x, [{"a": None}, 0])({"a": 2.0}, x), 2 * xs)
    close(vmap(lambda x, n: x if n is None else n)(x, None), xs)


def test_prefixes_of_results() -> None:
    x = normal(4, 3)

    def f(x: Any) -> Any:
        return {"a": (x, jnp.sum(x)), "b": None, "c": 2.0, "p": Point(x, 1)}

    got = vmap(f, 0, {"a": (1, 0), "b": None, "c": None, "p": 0})(x)
    close(got["a"], (np.asarray(x).T, np.asarray(x).sum(1)))
    assert got["b"] is None
    close(got["c"], 2.0)
    close(got["p"], Point(x, np.ones(4)))
    close(vmap(lambda x: (x, x), out_axes=(0, -1))(x), (x, np.asarray(x).T))
    assert vmap(lambda x: None)(x) is None
    assert vmap(lambda x: {})(x) == {}


def test_keywords_are_mapped_over_axis_0() -> None:
    x, y = normal(4), normal(4, 2)
    close(vmap(lambda x, *, y: x * y)(x, y=y), np.asarray(x)[:, None] * np.asarray(y))
    close(vmap(lambda x, *, y: x * y["a"], in_axes=(None,))(2.0, y={"a": y}), 2 * np.asarray(y))
    close(vmap(lambda *, y: y + 1)(y=y), np.asarray(y) + 1)


def test_axis_size_and_constants() -> None:
    close(vmap(lambda: jnp.ones(2), axis_size=3)(), np.ones((3, 2)))
    close(vmap(lambda x: x, None, axis_size=3)(2.0), np.full(3, 2.0))
    close(vmap(lambda x: x, None, None, axis_size=3)(2.0), 2.0)
    close(vmap(lambda x: 1.0)(normal(4)), np.ones(4))
    close(vmap(lambda x: np.ones(2), out_axes=1)(normal(4)), np.ones((2, 4)))
    assert vmap(lambda x: x * 2)(normal(0, 3)).shape == (0, 3)
    assert vmap(lambda x: 3)(normal(4)).dtype == np.int32


def test_other_dtypes() -> None:
    close(vmap(lambda i: i * 2 + 1)(jnp.arange(4)), 2 * np.arange(4) + 1)
    assert vmap(lambda b: ~b)(jnp.asarray([True, False])).dtype == bool
    close(vmap(lambda z: z * z)(jnp.asarray([1j, 2 + 1j])), np.array([1j, 2 + 1j]) ** 2)
    close(vmap(lambda i, x: x[i])(jnp.asarray([2, 0]), jnp.asarray([[1.0, 2, 3], [4, 5, 6]])), np.array([3.0, 4.0]))
    assert vmap(lambda x: x.astype("bfloat16"))(normal(2)).dtype == jnp.bfloat16
    close(vmap(lambda x, y: x + y)(jnp.ones(2), np.arange(2.0)), np.array([1.0, 2.0]))


# Nesting -----------------------------------------------------------------------------------------------------------


def test_nested() -> None:
    x, y = normal(3), normal(4)
    outer = np.multiply.outer(np.asarray(x), np.asarray(y))
    close(vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, y), outer)
    close(vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0))(x, y), outer.T)
    close(vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0), 1)(x, y), outer)
    close(vmap(lambda a: vmap(lambda b: vmap(lambda c: a * b * c)(x))(y))(x),
          np.einsum("i,j,k->ijk", np.asarray(x), np.asarray(y), np.asarray(x)))  # fmt: skip
    m = normal(2, 3, 4)
    close(vmap(vmap(vmap(jnp.sin)))(m), np.sin(np.asarray(m)))
    close(vmap(vmap(jnp.sum, -1), -1)(m), np.asarray(m).sum(0).T)


def test_with_the_derivatives() -> None:
    m = normal(4, 3)
    f = lambda x: jnp.sum(jnp.sin(x) * x[0])
    rows = [as_array(np.asarray(m)[i]) for i in range(4)]
    for t in (grad, jacfwd, jacrev, lambda f: lambda x: jacfwd(grad(f))(x)):
        close(vmap(t(f))(m), np.stack([np.asarray(t(f)(r)) for r in rows]))
        close(vmap(t(f), chunk_size=3)(m), np.stack([np.asarray(t(f)(r)) for r in rows]))
    close(grad(lambda x: jnp.sum(vmap(f)(x)))(m), np.stack([np.asarray(grad(f)(r)) for r in rows]))
    close(vmap(lambda x: vjp(f, x)[1](1.0)[0])(m), vmap(grad(f))(m))
    close(vmap(lambda x, t: jvp(f, (x,), (t,))[1])(m, m), np.array([float(jvp(f, (r,), (r,))[1]) for r in rows]))
    closed = make_jaxpr(vmap(grad(f)))(m)
    close(jaxpr_as_fun(closed)(m)[0], vmap(grad(f))(m))
    inner = make_jaxpr(f)(rows[0])
    close(vmap(lambda x: jaxpr_as_fun(inner)(x)[0])(m), vmap(f)(m))


def test_the_matrix_jacobian_products_of_the_cookbook() -> None:
    w, x = normal(5, 3), normal(3)
    f = lambda v: jnp.tanh(w @ v)
    _, pull = vjp(f, x)
    close(vmap(pull)(jnp.eye(5))[0], jacrev(f)(x))
    close(vmap(lambda t: jvp(f, (x,), (t,))[1], out_axes=1)(jnp.eye(3)), jacfwd(f)(x))


# Names and chunks --------------------------------------------------------------------------------------------------


def test_axis_names_are_tracked() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append({name: axis.size for name, axis in state.axes.items()})
        return x

    vmap(lambda x: vmap(f, axis_name="j")(x), axis_name="i")(normal(4, 3))
    vmap(f, axis_name="i", chunk_size=3)(normal(4))
    assert seen == [{"i": 4, "j": 3}, {"i": 3}, {"i": 1}]
    assert state.axes == {}


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7, 8, 100])
def test_chunks(chunk_size: int) -> None:
    x, y = normal(7, 2), normal(2, 7)
    sizes = []

    def f(x: Any, y: Any, c: Any) -> Any:
        sizes.append(x)
        return {"a": x * y + c, "b": jnp.sum(x), "c": c}

    for a in (1, -1):
        sizes.clear()
        got = vmap(f, (0, 1, None), {"a": a, "b": 0, "c": None}, chunk_size=chunk_size)(x, y, 2.0)
        close(got, vmap(f, (0, 1, None), {"a": a, "b": 0, "c": None})(x, y, 2.0))
        assert len(sizes) == -(-7 // chunk_size) + 1


def test_chunks_bound_the_memory() -> None:
    n = 200_000
    f = lambda x: jnp.sum(jnp.sin(jnp.ones(n) * x))

    def used(options: Any) -> float:
        tracemalloc.start()
        vmap(f, **options)(jnp.ones(32))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most / (4 * n)

    def peak(**options: Any) -> float:
        """In arrays of n float32, beyond what there is before; the least of three, for other threads allocate too."""
        return min(used(options) for _ in range(3))

    assert peak() > 32
    assert peak(chunk_size=4) < 16
    assert peak(chunk_size=1) < 6


def recurrence(x: Any, k: Any, w: Any) -> Any:
    return lax.scan(lambda c, _: (jnp.sin(c * k) + x, None), w, None, length=2)[0]


def with_vmap(f: Any) -> Any:
    g = custom_vmap(f)
    g.def_vmap(lambda size, mapped, x: (vmap(f)(x) if mapped[0] else f(x), mapped[0]))
    return g


PROGRAMS_WITHIN = {
    "scan": recurrence,
    "while": lambda x, k, w: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.sin(c[1] * k) + x), (0, w))[1],
    "fori": lambda x, k, w: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c * k) + x, w),
    "reduction": lambda x, k, w: jnp.logaddexp.reduce(jnp.stack([x * k, w])),
    "jit": lambda x, k, w: jit(lambda c: jnp.sin(c * k) + x)(w),
    "cond": lambda x, k, w: lax.cond(x > 0, lambda c: jnp.sin(c * k), lambda c: c + x, w),
    "checkpoint": lambda x, k, w: checkpoint(lambda c, x: jnp.sin(c * k) + x)(w, x),
    "custom_jvp": lambda x, k, w: with_jvp(lambda c, x: jnp.sin(c) + x)(w * k, x),
    "preaccumulate": lambda x, k, w: preaccumulate(lambda c, x: jnp.sin(c) + x)(w * k, x),
    "preaccumulate, gradient": lambda x, k, w: grad(lambda x: preaccumulate(lambda c, x: jnp.sin(c * x))(w * k, x))(x),
    "linear solve": lambda x, k, w: lax.custom_linear_solve(
        lambda y: (3 + jnp.sin(k)) * y, w + x, lambda f, b: b / (3 + jnp.sin(k)), lambda f, b: b / (3 + jnp.sin(k))
    ),
    "linear call": lambda x, k, w: linear_call(lambda r, y: y * r, lambda r, ct: ct * r, k, x) + w,
    "root": lambda x, k, w: lax.custom_root(
        lambda y: y - w * jnp.sin(k) - x, w, lambda f, y: y - f(y), lambda f, b: b / f(1.0)
    ),
    "callback": lambda x, k, w: pure_callback(lambda x, k: x * k, x, x, k, vmap_method="expand_dims") + w,
    "custom_vjp": lambda x, k, w: grad(lambda w: with_vjp(lambda c, x: jnp.sin(c) + x)(w * k, x))(w),
    "custom_vmap": lambda x, k, w: with_vmap(lambda c: jnp.sin(c) + x)(w * k),
}


@pytest.mark.parametrize("f", PROGRAMS_WITHIN.values(), ids=PROGRAMS_WITHIN)
def test_what_comes_out_of_vmap_varies_along_its_axis_no_more(f: Any) -> None:
    """A loop around it was staged again and again."""
    xs = normal(3)
    mapped = lambda c, _: (vmap(lambda x: f(x, 0.7, c), axis_name="i")(xs).sum(), None)
    assert all(not aval.varying for aval in make_jaxpr(lambda c: mapped(c, None)[0])(0.3).out_avals)
    close(lax.scan(mapped, jnp.float32(0.3), None, length=1)[0], mapped(0.3, None)[0])


@pytest.mark.parametrize("loop", PROGRAMS_WITHIN.values(), ids=PROGRAMS_WITHIN)
@pytest.mark.parametrize("staged", [False, True])
def test_programs_that_vary_along_an_axis_whose_name_another_has(loop: Any, staged: bool) -> None:
    """Loops were staged again and again, for a carry cannot be made to vary along it by name; and so on."""
    xs, ks = normal(2), normal(3)

    def run(name: str) -> Any:
        of_one = lambda k: vmap(lambda x: loop(x, k, 0.3), axis_name=name)(xs)
        return (jit(vmap(of_one, axis_name="i")) if staged else vmap(of_one, axis_name="i"))(ks)

    close(run("i"), run("j"))


@pytest.mark.parametrize("reduce_axes", [(), ("i",)])
def test_gradients_are_summed_over_an_axis_whose_name_another_has(reduce_axes: Any) -> None:
    xs, ks = normal(2), normal(3)

    def gradients(name: str) -> Any:
        loss = lambda w, k: vmap(lambda x: recurrence(x, k, w), axis_name=name)(xs).sum()
        return vmap(lambda k: grad(loss, reduce_axes=reduce_axes)(0.3, k), axis_name="i")(ks)

    close(gradients("i"), gradients("j"))
    each = in_a_loop(lambda k: grad(lambda w: recurrence(xs[0], k, w) + recurrence(xs[1], k, w))(0.3), (0,), 0, ks)
    close(gradients("i"), jnp.full(3, each.sum()) if reduce_axes else jnp.asarray(each))
