"""Functions that move, join, split, pad and edit: values against NumPy, derivatives, batching, errors by their text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback.numpy as jnp
from pullback import grad, jvp, make_jaxpr, vjp, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, OperandError, ShapeError, TracerArrayConversionError
from pullback.test_util import check_grads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
V = np.arange(6, dtype=np.int32)
BYTES = V.astype(np.uint8)
RANKS = (X, X[0], X[0, 0], X[0, 0, 0])
ORDERS = ("big", "little")
MOVING = ("constant", "edge", "reflect", "symmetric", "wrap")
STATISTICS = ("maximum", "minimum", "mean", "median")


def equal(got: Any, expected: Any) -> None:
    """The same shape, dtype (but for widths) and elements; sequences part by part."""
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            equal(g, e)
        return
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    assert got.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


# For each function calls that are the same for NumPy and for us.
CALLS: dict[str, list[Callable[[Any, Callable[[Any], Any]], Any]]] = {
    "reshape": [
        lambda np, a: np.reshape(a(X), (4, 6)),
        lambda np, a: np.reshape(a(X), (2, -1)),
        lambda np, a: np.reshape(a(X), [-1, 3, 2]),
        lambda np, a: np.reshape(a(X), -1),
        lambda np, a: np.reshape(a(X), (6, 4), order="F"),
        lambda np, a: np.reshape(a(X[0, 0, 0]), (1, 1)),
        lambda np, a: np.reshape(a(X[:, :0]), (0, 5)),
    ],
    "ravel": [lambda np, a: np.ravel(a(X)), lambda np, a: np.ravel(a(X), "F"), lambda np, a: np.ravel(a(X[0, 0, 0]))],
    "transpose": [
        lambda np, a: np.transpose(a(X)),
        lambda np, a: np.transpose(a(X), (1, -1, 0)),
        lambda np, a: np.transpose(a(V)),
    ],
    "permute_dims": [lambda np, a: np.permute_dims(a(X), (1, 2, 0))],
    "matrix_transpose": [lambda np, a: np.matrix_transpose(a(X))],
    "swapaxes": [lambda np, a: np.swapaxes(a(X), 0, -1), lambda np, a: np.swapaxes(a(X), 1, 1)],
    "moveaxis": [lambda np, a: np.moveaxis(a(X), 0, -1), lambda np, a: np.moveaxis(a(X), (0, 1), (-1, 0))],
    "rollaxis": [lambda np, a: [np.rollaxis(a(X), i, j) for i in range(-3, 3) for j in range(-3, 4)]],
    "expand_dims": [lambda np, a: np.expand_dims(a(X), -1), lambda np, a: np.expand_dims(a(X), (0, 2, -1))],
    "squeeze": [lambda np, a: np.squeeze(a(X[:1, :, :1])), lambda np, a: np.squeeze(a(X[:1, :, :1]), -1)],
    "broadcast": [
        lambda np, a: np.broadcast_to(a(X[0, :1]), (2, 3, 4)),
        lambda np, a: np.broadcast_to(a(X[0, 0, 0]), 3),
        lambda np, a: np.broadcast_arrays(a(X), a(X[0]), a(X[:, :1, :1])),
        lambda np, a: np.broadcast_shapes((2, 1), (3,), 1),
    ],
    "concatenate": [
        lambda np, a: np.concatenate([a(X), a(X[:1])]),
        lambda np, a: np.concatenate((a(X), a(X)), axis=-1),
        lambda np, a: np.concatenate([a(X), a(V)], axis=None),
        lambda np, a: np.concatenate([a(V), a(X[0, 0])]),
        lambda np, a: np.concatenate([a(V), a(V)], dtype="float32"),
        lambda np, a: np.concatenate(a(X)),
        lambda np, a: np.concat([a(X), a(X)], axis=1),
    ],
    "stack": [
        lambda np, a: [np.stack([a(X), a(X)], axis=i) for i in range(-4, 4)],
        lambda np, a: np.stack([a(X[0, 0, 0]), a(X[0, 0, 1])]),
        lambda np, a: np.stack([a(V), a(V * 1.5)]),
        lambda np, a: np.stack(a(X), axis=1),
    ],
    "stacks": [
        lambda np, a: [f([a(x), a(x)]) for f in (np.vstack, np.hstack, np.dstack) for x in RANKS],
        lambda np, a: [np.column_stack([a(V), a(V)]), np.column_stack([a(X[0]), a(X[1, :, 0])])],
        lambda np, a: np.vstack([a(X[0]), a(X[0, 0])]),
        lambda np, a: [np.vstack([a(V), a(V)], dtype="float32"), np.hstack([a(V), a(V)], dtype="float32")],
        lambda np, a: np.hstack([a(X[0, 0, 0]), a(V)]),
    ],
    "block": [
        lambda np, a: np.block([[a(X[0]), a(X[1])], [a(X[1]), a(X[0])]]),
        lambda np, a: np.block([a(V), a(V)]),
        lambda np, a: np.block(a(V)),
        lambda np, a: np.block([[a(X)], [a(X)]]),
    ],
    "split": [
        lambda np, a: np.split(a(V), 3),
        lambda np, a: np.split(a(V), [1, 4, 9]),
        lambda np, a: np.split(a(X), 2, axis=-1),
        lambda np, a: np.split(a(V), [4, 2, -1]),
        lambda np, a: np.array_split(a(V), 4),
        lambda np, a: [*np.vsplit(a(X), 2), *np.hsplit(a(X), 3), *np.dsplit(a(X), 2), *np.hsplit(a(V), 2)],
        lambda np, a: np.unstack(a(X), axis=1),
    ],
    "tile": [lambda np, a: [np.tile(a(X), r) for r in (2, (2,), (1, 2), (2, 1, 3), (2, 1, 1, 2), 0, (1, 1, 1))]],
    "repeat": [
        lambda np, a: [np.repeat(a(X), 2, axis=i) for i in (None, 0, 1, -1)],
        lambda np, a: np.repeat(a(X), [1, 0, 2], axis=1),
        lambda np, a: np.repeat(a(X), 0),
    ],
    "flip": [
        lambda np, a: [np.flip(a(X)), np.flip(a(X), 1), np.flip(a(X), (0, -1)), np.flipud(a(X)), np.fliplr(a(X))],
        lambda np, a: [np.rot90(a(X), k) for k in range(-1, 5)],
        lambda np, a: np.rot90(a(X), 1, (2, 0)),
    ],
    "roll": [
        lambda np, a: [np.roll(a(X), k) for k in (-7, -1, 0, 1, 30)],
        lambda np, a: [np.roll(a(X), 1, axis=i) for i in range(-3, 3)],
        lambda np, a: [np.roll(a(X), (1, -2), (0, 2)), np.roll(a(X), 1, (0, 1))],
        lambda np, a: np.roll(a(V[:0]), 1),
    ],
    "atleast": [
        lambda np, a: [f(a(x)) for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d) for x in RANKS],
        lambda np, a: np.atleast_2d(a(V), a(X)),
    ],
    "pad": [
        lambda np, a: [np.pad(a(X), w, mode=m) for m in MOVING for w in (1, (0, 2), ((5, 6), (0, 0), (1, 9)))],
        lambda np, a: [np.pad(a(V), (2, 3), mode=m) for m in ("linear_ramp", *STATISTICS)],
        lambda np, a: [np.pad(a(X), 2, mode=m) for m in ("linear_ramp", *STATISTICS)],
        lambda np, a: [np.pad(a(X), 2, mode=m, stat_length=((1, 2),)) for m in STATISTICS],
        lambda np, a: np.pad(a(X), ((3, 2), (3, 9), (1, 1)), mode="reflect", reflect_type="odd"),
        lambda np, a: np.pad(a(X), ((3, 2), (3, 9), (1, 1)), mode="symmetric", reflect_type="odd"),
        lambda np, a: np.pad(a(X), 1, constant_values=7),
        lambda np, a: np.pad(a(X), 1, constant_values=((1, 2), (3, 4), (5, 6))),
        lambda np, a: np.pad(a(V), (2, 2), constant_values=(1, 2)),
        lambda np, a: np.pad(a(V), (4, 3), "linear_ramp", end_values=(5, -4)),
        lambda np, a: np.pad(a(X), 0, mode="reflect"),
    ],
    "append": [
        lambda np, a: np.append(a(V), 7),
        lambda np, a: np.append(a(X), a(X), axis=1),
        lambda np, a: np.append(a(X), a(V)),
    ],
    "insert": [
        lambda np, a: [np.insert(a(V), i, 9) for i in range(-6, 7)],
        lambda np, a: np.insert(a(V), slice(1, 5, 2), a(V[:2])),
        lambda np, a: [np.insert(a(V), [3, 0, 3], a(V[:3])), np.insert(a(V), [2], a(V[:3])), np.insert(a(V), [], 1)],
        lambda np, a: [np.insert(a(X), 1, 9, axis=i) for i in range(-3, 3)],
        lambda np, a: [np.insert(a(X[0]), 1, a(X[0, :, 0]), axis=1), np.insert(a(X[0]), [1], a(X[0, :, :2]), axis=1)],
        lambda np, a: np.insert(a(X[0]), 1, a(X[:, 0]), axis=0),
    ],
    "delete": [
        lambda np, a: [np.delete(a(V), i) for i in range(-6, 6)],
        lambda np, a: [np.delete(a(V), slice(1, 5, 2)), np.delete(a(V), [0, -1, 0]), np.delete(a(V), [])],
        lambda np, a: np.delete(a(X), [0, 2], axis=1),
    ],
    "resize": [
        lambda np, a: [np.resize(a(V), s) for s in ((2, 2), 13, (0,), (3, 4))],
        lambda np, a: np.resize(a(V[:0]), (2, 2)),
    ],
    "trim_zeros": [
        lambda np, a: [np.trim_zeros(a(V * (V < 4)), t) for t in ("fb", "f", "b")],
        lambda np, a: np.trim_zeros(a(V * 0)),
    ],
    "bits": [
        lambda np, a: [np.packbits(a(X > 0), axis=i, bitorder=o) for i in (None, 0, 1, -1) for o in ORDERS],
        lambda np, a: [np.unpackbits(a(BYTES), count=c, bitorder=o) for c in (None, 3, 60, -2) for o in ORDERS],
        lambda np, a: np.unpackbits(a((X * 50).astype("uint8")), axis=1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_same_as_numpy(name: str) -> None:
    for call in CALLS[name]:
        equal(call(jnp, jnp.asarray), call(np, np.asarray))


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("trim_zeros", "bits", "broadcast")])
def test_traced_values_give_the_same(name: str) -> None:
    """Under grad the same values come out as without, and the derivative is the dot-product identity's."""
    for call in CALLS[name]:
        leaves: list[Any] = []

        def keep(x: Any, leaves: list[Any] = leaves) -> Any:
            leaves.append(jnp.asarray(x))
            return leaves[-1]

        call(jnp, keep)
        if any(x.dtype != np.float32 for x in leaves):
            continue

        def total(*args: Any, call: Any = call) -> Any:
            source = iter(args)
            out = call(jnp, lambda x: next(source))
            parts = out if isinstance(out, (list, tuple)) else [out]
            return jnp.concatenate([jnp.ravel(p) for p in parts])

        tangents = [RNG.normal(size=x.shape).astype(np.float32) for x in leaves]
        out, t = jvp(total, tuple(leaves), tuple(map(jnp.asarray, tangents)))
        value, pull = vjp(total, *leaves)
        equal(out, total(*leaves))
        equal(value, out)
        u = RNG.normal(size=out.shape).astype(np.float32)
        right = sum(np.vdot(np.asarray(c), v) for c, v in zip(pull(jnp.asarray(u)), tangents, strict=True))
        assert np.vdot(u, np.asarray(t)) == pytest.approx(right, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.reshape(x, (3, 2)),
        jnp.ravel,
        jnp.transpose,
        lambda x: jnp.stack([x, x], axis=1),
        lambda x: jnp.tile(x, (2, 2)),
        lambda x: jnp.repeat(x, np.array([1, 2]), axis=0),
        lambda x: jnp.roll(x, 1, axis=0),
        lambda x: jnp.pad(x, ((1, 2), (0, 4)), mode="reflect"),
        lambda x: jnp.pad(x, 2, mode="mean"),
        lambda x: jnp.insert(x, 1, 5.0, axis=1),
        lambda x: jnp.rot90(x),
        lambda x: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(x, jnp.ones(3)),
        lambda x: jnp.apply_along_axis(jnp.cumsum, 0, x),
        lambda x: jnp.split(x, [1], axis=1)[1],
    ],
)
def test_vmap_is_a_loop(function: Callable[[Any], Any]) -> None:
    for d in range(3):
        x = RNG.normal(size=(2, 3)[:d] + (5,) + (2, 3)[d:]).astype(np.float32)
        expected = np.stack([np.asarray(function(jnp.asarray(x.take(i, d)))) for i in range(5)])
        equal(vmap(function, in_axes=d)(jnp.asarray(x)), expected)


@given(st.lists(st.integers(0, 4), max_size=4), st.data())
@settings(max_examples=200, deadline=None)
def test_random_reshapes_and_permutations(shape: list[int], data: st.DataObject) -> None:
    x = RNG.normal(size=shape).astype(np.float32)
    order = data.draw(st.permutations(range(len(shape))))
    equal(jnp.transpose(jnp.asarray(x), order), np.transpose(x, order))
    target = [shape[i] for i in order]
    equal(jnp.reshape(jnp.asarray(x), target), x.reshape(target))
    if target and (all(target[1:]) or len(target) == 1):
        equal(jnp.reshape(jnp.asarray(x), (-1, *target[1:])), x.reshape((-1, *target[1:])))


def test_dtypes_and_weak_types() -> None:
    with enable_x64():
        assert jnp.stack([jnp.ones(2), jnp.ones(2, "int8")]).dtype == np.float64
    assert jnp.stack([1, 2.0]).weak_type
    assert jnp.stack([jnp.float32(1), 2.0]).dtype == np.float32
    assert not jnp.stack([jnp.float32(1), 2.0]).weak_type
    assert jnp.concatenate([jnp.ones(1, "bfloat16"), jnp.ones(1, "float16")]).dtype == np.float32
    assert jnp.atleast_1d(1.0).weak_type


def test_a_stack_of_concrete_arrays_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [jnp.ones(3)] * 128

    def forbidden(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a primitive was bound")

    from pullback.core.trace import EvalTrace

    monkeypatch.setattr(EvalTrace, "process", forbidden)
    for f in (jnp.vstack, jnp.hstack, jnp.stack, jnp.concatenate, jnp.dstack, jnp.column_stack):
        assert f(rows).size == 384


def test_shapes_are_arrays_too() -> None:
    n = jnp.asarray(2)
    assert jnp.reshape(jnp.ones(4), (n, 2)).shape == (2, 2)
    assert jnp.broadcast_to(1.0, (np.int64(2),)).shape == (2,)
    assert jnp.tile(jnp.ones(2), n).shape == (4,)
    assert jnp.repeat(jnp.ones(2), n).shape == (4,)


def test_repeat_of_a_given_total_length() -> None:
    x = jnp.arange(3)
    assert jnp.repeat(x, jnp.asarray([1, 2, 0]), total_repeat_length=5).tolist() == [0, 1, 1, 2, 2]
    assert jnp.repeat(x, 2, total_repeat_length=3).tolist() == [0, 0, 1]
    counts = jnp.asarray([[1, 2, 0], [0, 0, 4]])
    rows = vmap(lambda c: jnp.repeat(x, c, total_repeat_length=5))(counts)
    assert rows.tolist() == [[0, 1, 1, 2, 2], [2, 2, 2, 2, 2]]
    with pytest.raises(TracerArrayConversionError):
        make_jaxpr(lambda c: jnp.repeat(x, c))(counts[0])


def test_the_transpose_of_a_roll_is_a_roll() -> None:
    x, w = (jnp.asarray(RNG.normal(size=(3, 4)).astype(np.float32)) for _ in range(2))
    for shift, axis in ((5, None), (-1, 1), ((1, 2), (0, 1))):
        rolled = partial(jnp.roll, shift=shift, axis=axis)
        back = vjp(rolled, x)[1]
        equal(back(w)[0], np.roll(w, np.negative(shift), axis))
        names = {eqn.primitive.name for eqn in make_jaxpr(back)(w).eqns}
        assert "roll" in names
        assert not names & {"pad", "slice", "concatenate"}
        check_grads(lambda x, rolled=rolled: rolled(x) * x, (x,), 2)
    assert make_jaxpr(lambda x: jnp.roll(x, 4, 1))(x).eqns == []


def test_roll_by_a_traced_shift() -> None:
    shifts = np.arange(-7, 8)
    rows = vmap(lambda k: jnp.roll(jnp.arange(5), k))(jnp.asarray(shifts))
    equal(rows, np.stack([np.roll(np.arange(5), k) for k in shifts]))


def test_pad_by_a_function_and_by_traced_values() -> None:
    def fill(vector: Any, widths: Any, axis: int, options: dict[str, Any]) -> Any:
        return vector.at[: widths[0]].set(options["value"])

    assert jnp.pad(jnp.ones(2), (2, 1), fill, value=5.0).tolist() == [5, 5, 1, 1, 0]
    slope = grad(lambda v: jnp.pad(jnp.ones((2, 2)), 1, constant_values=v).sum())(1.0)
    assert slope == 12
    slope = grad(lambda v: jnp.pad(jnp.ones(2), 2, mode="linear_ramp", end_values=v).sum())(3.0)
    assert slope == 3


# Functions of functions --------------------------------------------------------------------------------------------


def test_apply_along_and_over_axes() -> None:
    x = jnp.asarray(X)
    for axis in range(-3, 3):
        equal(jnp.apply_along_axis(jnp.sum, axis, x), np.apply_along_axis(np.sum, axis, X))
        equal(jnp.apply_along_axis(jnp.cumsum, axis, x), np.apply_along_axis(np.cumsum, axis, X))
        equal(
            jnp.apply_along_axis(lambda v: jnp.outer(v, v[:2]), axis, x),
            np.apply_along_axis(lambda v: np.outer(v, v[:2]), axis, X),
        )
    equal(jnp.apply_along_axis(lambda v, k, scale=1: v * k * scale, 0, x, 2, scale=3), X * 6)
    equal(jnp.apply_over_axes(jnp.sum, x, (0, -1)), np.apply_over_axes(np.sum, X, (0, -1)))
    with pytest.raises(ShapeError, match="keep the number of axes or remove one"):
        jnp.apply_over_axes(lambda a, i: a[None], x, 0)


def test_vectorize() -> None:
    def f(a: Any, b: Any) -> Any:
        assert a.shape == b.shape == ()
        return a * 2 + b

    x, y = X[0], X[0, :, :1]
    equal(jnp.vectorize(f)(jnp.asarray(x), jnp.asarray(y)), x * 2 + y)
    equal(jnp.vectorize(f)(jnp.asarray(x), b=jnp.asarray(y)), x * 2 + y)
    equal(jnp.vectorize(f)(2.0, 3.0), np.float32(7))
    product = jnp.vectorize(jnp.matmul, signature="(m,k),(k,n)->(m,n)")
    equal(product(jnp.asarray(X[:, None]), jnp.asarray(X.transpose(0, 2, 1))), X[:, None] @ X.transpose(0, 2, 1))
    both = jnp.vectorize(lambda v: (v.sum(), v * 2), signature="(n)->(),(n)")
    total, double = both(jnp.asarray(X))
    equal(total, X.sum(-1))
    equal(double, X * 2)
    scaled = jnp.vectorize(lambda v, how, by=1: v * by if how else v, excluded={1, "by"}, signature="(n)->(n)")
    equal(scaled(jnp.asarray(X), "so", by=3), X * 3)


@pytest.mark.parametrize(
    ("signature", "args", "error", "message"),
    [
        ("(n)->", (jnp.ones(2),), ArgumentError, "a signature must look like '(m,n),(n)->(m)', got '(n)->'"),
        ("(n),(n)->()", (jnp.ones(2),), ArgumentError, "has 2 operands, but there are 1"),
        ("(n),(n)->()", (jnp.ones(2), jnp.ones(3)), ShapeError, "of the signature '(n),(n)->()' has the sizes 2 and 3"),
        ("(n),(n)->()", (1.0, jnp.ones(3)), ShapeError, "an operand of shape () lacks axes"),
        ("(n),(n)->(n)", (jnp.ones(3), jnp.ones(3)), ShapeError, "results of shapes () do not fit the signature"),
        ("(n),(n)->(),()", (jnp.ones(3), jnp.ones(3)), ShapeError, "results of shapes () do not fit the signature"),
    ],
)  # fmt: skip
def test_vectorize_refuses(signature: str, args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        jnp.vectorize(lambda *xs: xs[0].sum(), signature=signature)(*args)


def test_piecewise() -> None:
    x = np.linspace(-3, 3, 7).astype(np.float32)
    for functions in ([lambda v: v * v, lambda v: v * 3], [lambda v: v * v, 5.0, lambda v: -v]):
        got = jnp.piecewise(jnp.asarray(x), [jnp.asarray(x < -1), jnp.asarray(x > -2)], functions)
        equal(got, np.piecewise(x, [x < -1, x > -2], functions))
    equal(jnp.piecewise(jnp.asarray(x), jnp.asarray(x > 0), [1.0, 2.0]), np.piecewise(x, x > 0, [1.0, 2.0]))
    slope = grad(lambda v: jnp.piecewise(v, [v > 0], [lambda u: u**2, lambda u: -u]))
    assert (slope(3.0), slope(-3.0)) == (6, -1)
    with pytest.raises(ShapeError, match="1 conditions need 1 or 2 functions, got 3"):
        jnp.piecewise(jnp.asarray(x), [jnp.asarray(x > 0)], [1, 2, 3])


# Errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: jnp.reshape(x, (4, 2)), "cannot reshape an array of shape (2, 3) (size 6) into shape (4, 2)"),
        (lambda x: jnp.reshape(x, (4, -1)), "cannot reshape an array of shape (2, 3) (size 6) into shape (4, -1)"),
        (lambda x: jnp.reshape(x, (-1, -1)), "only one size may be -1, got (-1, -1)"),
        (lambda x: jnp.reshape(x, (-2, -3)), "into shape (-2, -3)"),
        (lambda x: jnp.reshape(x, (2.0, 3)), "a shape must be an int or a sequence of ints, got 2.0"),
        (lambda x: jnp.reshape(x, (3, 2), order="K"), "order must be 'C', 'F' or 'A', got 'K'"),
        (lambda x: jnp.transpose(x, (0, 0)), "(0, 0) is not a permutation of the axes of an array of shape (2, 3)"),
        (lambda x: jnp.transpose(x, (0, 2)), "axis 2 is out of bounds for an array of 2 axes"),
        (lambda x: jnp.squeeze(x, 0), "the axes 0 of shape (2, 3) must have size 1"),
        (lambda x: jnp.expand_dims(x, (0, 0)), "repeated axis in (0, 0)"),
        (lambda x: jnp.moveaxis(x, (0, 1), 0), "must be equally many distinct axes"),
        (lambda x: jnp.broadcast_to(x, (2, 2)), "for broadcasting: (2, 3) and requested shape (2, 2)"),
        (lambda x: jnp.broadcast_to(jnp.ones((1, 3)), (3,)), "(1, 3) and requested shape (3,)"),
        (lambda x: jnp.broadcast_arrays(x, x[:, :2]), "incompatible shapes for broadcasting: (2, 3), (2, 2)"),
        (lambda x: jnp.concatenate([]), "concatenate needs at least one array"),
        (lambda x: jnp.concatenate([1.0, 2.0]), "scalar arrays cannot be concatenated"),
        (lambda x: jnp.concatenate([x, x[:, :2]]), "shapes must agree in every axis but axis 0, got (2, 3), (2, 2)"),
        (lambda x: jnp.concatenate([x, x], 2), "axis 2 is out of bounds"),
        (lambda x: jnp.stack([x, x[:1]]), "all arrays must have the same shape, got (2, 3), (1, 3)"),
        (lambda x: jnp.vstack([x, x[:, :2]]), "vstack: shapes must agree in every axis but axis 0, got (2, 3), (2, 2)"),
        (lambda x: jnp.block([[x], x]), "nested equally deep"),
        (lambda x: jnp.split(x, 2, axis=1), "axis 1 of an array of shape (2, 3) cannot be divided into 2 equal chunks"),
        (lambda x: jnp.repeat(x, [1, 2], axis=1), "the counts [1 2] do not fit axis 1 of an array of shape (2, 3)"),
        (lambda x: jnp.repeat(x, -1), "the counts -1 do not fit"),
        (lambda x: jnp.tile(x, -1), "a shape must not be negative"),
        (lambda x: jnp.roll(x, (1, 2, 3), (0, 1)), "the shifts (1, 2, 3) do not fit the axes (0, 1)"),
        (lambda x: jnp.rot90(x, 1, (1, 1)), "two different axes, got (1, 1)"),
        (lambda x: jnp.pad(x, 1, mode="funny"), "unknown mode 'funny'; the modes are: constant, edge"),
        (lambda x: jnp.pad(x, 1, mode="edge", constant_values=1), "does not take the argument 'constant_values'"),
        (lambda x: jnp.pad(x, (1, 2, 3)), "pad_width must be an int, a pair, or 2 pairs, got (1, 2, 3)"),
        (lambda x: jnp.pad(x, -1), "widths must not be negative, got -1"),
        (lambda x: jnp.pad(x, 1.5), "pad_width must be of ints, got 1.5"),
        (lambda x: jnp.pad(x[:0], 1, mode="edge"), "axis 0 of shape (0, 3) is empty"),
        (lambda x: jnp.delete(x, 5, axis=0), "5 does not fit axis 0 of an array of shape (2, 3)"),
        (lambda x: jnp.insert(x, 5, 1.0, axis=0), "5 does not fit axis 0 of an array of shape (2, 3)"),
        (lambda x: jnp.insert(x, [0, 1], x, axis=1), "(2, 3) and requested shape (2, 2)"),
    ],
)  # fmt: skip
def test_refuses(call: Callable[[Any], Any], message: str) -> None:
    for x in (jnp.ones((2, 3)), None):
        with pytest.raises(ShapeError, match=re.escape(message)):
            call(x) if x is not None else make_jaxpr(call)(jnp.ones((2, 3)))


def test_operands_that_are_no_arrays() -> None:
    with pytest.raises(OperandError, match="reshape: expected an array or a number"):
        jnp.reshape([1, 2], (2, 1))
    with pytest.raises(OperandError, match="stack: expected an array or a number"):
        jnp.stack([[1, 2], [3, 4]])
    with pytest.raises(OperandError, match="concatenate takes a sequence of arrays, got 'ab'"):
        jnp.concatenate("ab")
    with pytest.raises(OperandError, match="got None of type NoneType"):
        jnp.ravel(None)


def test_every_combination_of_axes_of_moveaxis() -> None:
    for source, destination in itertools.product(itertools.permutations(range(3), 2), repeat=2):
        equal(jnp.moveaxis(jnp.asarray(X), source, destination), np.moveaxis(X, source, destination))
