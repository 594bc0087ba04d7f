"""Indexing against NumPy itself: reading, updating, taking; eager, traced and batched."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback
import pullback.numpy as pnp
from pullback.core.config import enable_x64
from pullback.core.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    ImmutableArrayError,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerIntegerConversionError,
)
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.numpy import diagonals, indexing
from tests.helpers import assert_same, value


def assert_elements(x: Any, want: Any) -> None:
    """Assert that one of our arrays has given elements."""
    assert_same(value(x), want, dtypes=False)


def traced(f: Callable[..., Any], *args: Any) -> Any:
    """The function's value by way of its jaxpr."""
    return jaxpr_as_fun(pullback.make_jaxpr(f)(*args))(*args)[0]


# x[index] ----------------------------------------------------------------------------------------------------------


def an_index(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A random index of any form for an array of a shape, all in range."""
    batch = tuple(int(n) for n in rng.integers(1, 3, rng.integers(0, 3)))
    items: list[Any] = []
    axis = 0
    dots = False
    while axis < len(shape):
        n = shape[axis]
        match rng.integers(10):
            case 0:
                items.append(None)
            case 1 if not dots:
                items.append(...)
                axis += int(rng.integers(0, len(shape) - axis + 1))
                dots = True
            case 2 if axis + 1 < len(shape):
                mask = np.zeros(n * shape[axis + 1], bool)
                mask[rng.integers(0, mask.size, 1)] = True
                items.append(mask.reshape(n, shape[axis + 1]))
                axis += 2
            case 3 | 4:
                items.append(int(rng.integers(-n, n)))
                axis += 1
            case 5 | 6:
                some = batch if rng.random() < 0.7 else tuple(1 if rng.random() < 0.5 else m for m in batch)
                items.append(rng.integers(-n, n, some))
                axis += 1
            case 7:
                items.append(bool(rng.random() < 0.8))
            case _:
                ends = [None if rng.random() < 0.3 else int(i) for i in rng.integers(-n - 1, n + 2, 2)]
                items.append(slice(*ends, [None, 1, 2, -1, -2][rng.integers(5)]))
                axis += 1
        if not dots and rng.random() < 0.1:
            break
    return tuple(items)


def indexed(seed: int) -> tuple[Any, Any, Any]:
    """An array, an index, and what NumPy selects; other draws until NumPy takes it."""
    rng = np.random.default_rng(seed)
    while True:
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        x = rng.standard_normal(shape)
        index = an_index(rng, shape)
        try:
            return x, index, x[index]
        except IndexError:
            continue


seeds = st.integers(0, 2**32 - 1)


def as_ours(index: Any) -> Any:
    return tuple(pnp.asarray(i) if isinstance(i, np.ndarray) else i for i in index)


@given(seeds)
def test_every_form_of_index_selects_what_numpy_selects(seed: int) -> None:
    x, index, want = indexed(seed)
    with enable_x64(True):
        for form in (index, as_ours(index)):
            assert_elements(pnp.asarray(x)[form], want)
            assert_elements(traced(lambda a, form=form: a[form], pnp.asarray(x)), want)
        batched = pullback.vmap(lambda a: a[index], in_axes=1)(pnp.asarray(np.stack([x, -x], 1)))
        assert_elements(batched, np.stack([want, -want]))


@given(seeds)
def test_traced_and_batched_positions(seed: int) -> None:
    x, index, want = indexed(seed)
    arrays = [i for i in index if isinstance(i, np.ndarray) and i.dtype != bool]
    if not arrays:
        return

    def select(a: Any, *positions: Any) -> Any:
        rest = iter(positions)
        return a[tuple(next(rest) if isinstance(i, np.ndarray) and i.dtype != bool else i for i in index)]

    with enable_x64(True):
        assert_elements(traced(select, pnp.asarray(x), *map(pnp.asarray, arrays)), want)
        stacked = [pnp.asarray(np.stack([a, a])) for a in arrays]
        assert_elements(
            pullback.vmap(select, (None, *(0 for _ in stacked)))(pnp.asarray(x), *stacked), np.stack([want, want])
        )
        both = pullback.vmap(select)(pnp.asarray(np.stack([x, 2 * x])), *stacked)
        assert_elements(both, np.stack([want, 2 * want]))


@given(seeds)
def test_derivatives_of_selections(seed: int) -> None:
    x, index, want = indexed(seed)
    rng = np.random.default_rng(seed)
    with enable_x64(True):
        one_hot = np.zeros((*want.shape, *x.shape))
        flat = np.arange(x.size).reshape(x.shape)[index]
        for place, source in np.ndenumerate(flat):
            one_hot[place].flat[source] = 1
        t, ct = rng.standard_normal(x.shape), rng.standard_normal(want.shape)
        out, tangent = pullback.jvp(lambda a: a[index], (pnp.asarray(x),), (pnp.asarray(t),))
        assert_elements(out, want)
        assert_elements(tangent, t[index])
        (pulled,) = pullback.vjp(lambda a: a[index], pnp.asarray(x))[1](pnp.asarray(ct))
        np.testing.assert_allclose(value(pulled), np.tensordot(ct, one_hot, ct.ndim), atol=1e-12)


def test_a_slice_is_one_operation() -> None:
    x = pnp.ones((4, 3))

    def names(f: Any) -> list[str]:
        return [eqn.primitive.name for eqn in pullback.make_jaxpr(f)(x).eqns]

    assert names(lambda a: a[1:]) == ["slice"]
    assert names(lambda a: a[:-1, ::2]) == ["slice"]
    assert names(lambda a: a[:]) == []
    assert names(lambda a: a[0]) == ["slice", "squeeze"]
    assert names(lambda a: a[0, -1]) == ["slice", "squeeze"]
    assert names(lambda a: a[::-1]) == ["rev"]
    assert names(lambda a: a[None]) == ["reshape"]
    assert names(lambda a: a[np.array([0, 2])]) == ["gather"]
    assert names(lambda a: next(iter(a))) == ["unstack"]


def test_out_of_range() -> None:
    x = pnp.arange(5.0)
    far = pnp.array([7, -7, -1])
    for index in (7, np.int64(7), pnp.array(7)):
        assert float(x[index]) == 4.0
    assert float(x[-7]) == 0.0
    assert_elements(x[far], [4, 0, 4])
    assert_elements(traced(lambda i: x[i], far), [4, 0, 4])
    assert_elements(x.at[far].get(), [4, 0, 4])
    assert_elements(x.at[far].get(mode="fill"), [np.nan, np.nan, 4])
    assert_elements(x.at[far].get(mode="fill", fill_value=9), [9, 9, 4])
    assert_elements(x.at[7].get(mode="fill", fill_value=9), 9)
    assert_elements(x.at[far].set(8.0), [0, 1, 2, 3, 8])
    assert_elements(x.at[far].set(8.0, mode="clip"), [8, 1, 2, 3, 8])
    assert_elements(x.at[7].add(8.0), [0, 1, 2, 3, 4])
    assert_elements(pullback.grad(lambda a: a[far].sum())(x), [1, 0, 0, 0, 2])
    assert_elements(pullback.grad(lambda a: a.at[far].get(mode="fill", fill_value=0).sum())(x), [0, 0, 0, 0, 1])


X = pnp.arange(6.0).reshape(2, 3)
M = np.array([True, False])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: x[0, 0, 0], IndexError, r"too many indices: x\[0, 0, 0\] indexes 3 axes, .* 2-dimensional"),
        (lambda x: x[..., ...], IndexError, r"only one ellipsis .* got x\[\.\.\., \.\.\.\]"),
        (lambda x: x[1.0], TypeError, "an index must be an int, .* got 1.0, a float"),
        (lambda x: x[0, pnp.ones(2)], TypeError, "an array of float32 in x"),
        (lambda x: x["a"], TypeError, "got 'a', a str"),
        (lambda x: x[[0, 1]], TypeError, r"a list cannot be an index by itself: x\[\[0, 1\]\]"),
        (lambda x: x[0:1.5], TypeError, "the bounds of a slice must be ints or None"),
        (lambda x: x[::0], ValueError, "slice step cannot be zero"),
        (lambda x: x[:, M], IndexError, r"mask|one of shape \(2,\) for axes of shape \(3,\)"),
        (lambda x: x[np.array([0, 1]), np.array([0, 1, 2])], ShapeError, r"one shape, got shapes \(2,\), \(3,\)"),
        (lambda x: x[0:0][0], IndexError, "index 0 is out of bounds for axis 0 with size 0"),
        (lambda x: x.at[0].set(pnp.ones(2)), ShapeError, r"x.at\[0\]: a value of shape \(2,\) .* of shape \(3,\)"),
        (lambda x: x.at[0].set("a"), TypeError, r"x.at\[...\].set: expected an array or a number, got 'a'"),
        (lambda x: x.at[0].set(1.0, mode="bounce"), ArgumentError, "got 'bounce'"),
        (lambda x: indexing.take(x, 1.5), DtypeError, "take: indices must be integers"),
        (lambda x: indexing.take(x, 1, axis=2), ShapeError, "axis 2 is out of bounds"),
        (lambda x: indexing.take(x, 1, mode="raise"), ArgumentError, "mode='raise' does not work"),
        (lambda x: indexing.take_along_axis(x, pnp.array([0])), ShapeError, "as many axes as the array"),
        (lambda x: indexing.put(x, 0, 1.0), ArgumentError, "cannot change an array in place"),
        (lambda x: indexing.nonzero(x[0, 0]), ShapeError, "nonzero takes arrays with at least one axis"),
        (lambda x: diagonals.diag(x[None]), ShapeError, "one or two axes"),
        (lambda x: diagonals.tril(x[0]), ShapeError, "at least two axes"),
        (lambda x: list(x[0, 0]), TypeError, "scalar array"),
    ],
)
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call(X)
    with pytest.raises(error, match=message):
        pullback.make_jaxpr(call)(X)


def test_errors_of_traced_indices() -> None:
    with pytest.raises(NonConcreteBooleanIndexError, match=r"(?s)x\[Traced.*jnp.nonzero\(mask, size"):
        pullback.make_jaxpr(lambda a: a[a > 1])(X)
    with pytest.raises(TracerIntegerConversionError, match=r"lax.dynamic_slice"):
        pullback.make_jaxpr(lambda i: X[0:i])(1)
    with pytest.raises(ConcretizationTypeError, match=r"(?s)nonzero depends on traced values.*size="):
        pullback.make_jaxpr(indexing.nonzero)(X)


def test_masks_are_known_while_differentiating() -> None:
    assert_elements(pullback.grad(lambda a: (a[a > 1] ** 2).sum())(pnp.arange(4.0)), [0, 0, 4, 6])


def test_iteration() -> None:
    rows = list(indexing.iterate(X))
    assert_elements(rows[1], [3, 4, 5])
    assert [float(v) for v in indexing.iterate(rows[0])] == [0, 1, 2]
    assert_elements(pullback.grad(lambda a: sum(i * row[0] for i, row in enumerate(a)))(X), [[0, 0, 0], [1, 0, 0]])
    assert list(indexing.iterate(pnp.zeros((0, 2)))) == []


# x.at[index] -------------------------------------------------------------------------------------------------------

UPDATES: dict[str, Any] = {
    "set": operator.setitem,
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "divide": np.divide.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "power": np.power.at,
}


@given(seeds, st.sampled_from(sorted(UPDATES)))
def test_updates_are_those_of_numpys_ufuncs(seed: int, name: str) -> None:
    x, index, old = indexed(seed)
    x = np.abs(x) + 0.5
    rng = np.random.default_rng(seed)
    # Each axis of the value is whole, of size one, or missing in front.
    shape = tuple(n if rng.random() < 0.7 else 1 for n in old.shape)[rng.integers(0, old.ndim + 1) :]
    values = rng.uniform(0.5, 1.5, shape)
    want = x.copy()
    UPDATES[name](want, index, values)
    ours = as_ours(index)
    with enable_x64(True):
        a, v = pnp.asarray(x), pnp.asarray(values)

        def f(a: Any, v: Any) -> Any:
            return getattr(a.at[ours], name)(v)

        for out in (f(a, v), traced(f, a, v)):
            np.testing.assert_allclose(value(out), want, rtol=1e-12)
        for axes in ((0, None), (None, 0), (0, 0)):
            args = [z if d is None else pnp.stack([z, z + 1]) for z, d in zip((a, v), axes, strict=True)]
            out = pullback.vmap(f, axes)(*args)
            for k in range(2):
                one = [z if d is None else z[k] for z, d in zip(args, axes, strict=True)]
                np.testing.assert_allclose(value(out[k]), value(f(*one)), rtol=1e-12)
        ts = pnp.asarray(rng.standard_normal(x.shape)), pnp.asarray(rng.standard_normal(values.shape))
        _, tangent = pullback.jvp(f, (a, v), ts)
        h = 1e-6
        slope = (value(f(a + h * ts[0], v + h * ts[1])) - value(f(a - h * ts[0], v - h * ts[1]))) / (2 * h)
        np.testing.assert_allclose(value(tangent), slope, rtol=1e-5, atol=1e-6)
        ct = pnp.asarray(rng.standard_normal(x.shape))
        by_a, by_v = pullback.vjp(f, a, v)[1](ct)
        right = (value(by_a) * value(ts[0])).sum() + (value(by_v) * value(ts[1])).sum()
        np.testing.assert_allclose((value(tangent) * value(ct)).sum(), right, rtol=1e-9, atol=1e-9)


def test_apply_works_as_often_as_an_element_is_selected() -> None:
    x = pnp.arange(5.0)
    index = pnp.array([0, 0, 1, 4])
    assert_elements(x.at[index].apply(lambda v: v + 1), [2, 2, 2, 3, 5])
    assert_elements(traced(lambda i: x.at[i].apply(lambda v: v + 1), index), [2, 2, 2, 3, 5])
    assert_elements(x.at[1:3].apply(pnp.square), [0, 1, 4, 3, 4])
    assert_elements(pullback.grad(lambda a: a.at[index].apply(lambda v: 3 * v).sum())(x), [9, 3, 1, 1, 3])


def test_updates_of_other_dtypes() -> None:
    integers = pnp.arange(3)
    with pytest.warns(FutureWarning, match="dtype f32 lose precision .* the dtype of the array, i32"):
        assert_elements(integers.at[0].set(1.7), [1, 1, 2])
    assert integers.at[0].divide(2).dtype == "float32"
    assert integers.at[1].power(2).dtype == "int32"
    assert_elements(pnp.array([True, False]).at[1].max(True), [True, True])
    assert_elements(pnp.zeros(3, "uint8").at[0].subtract(2), [254, 0, 0])
    assert_elements(pnp.zeros(2, "complex64").at[:1].add(1j), [1j, 0])
    assert pnp.ones(2, "bfloat16").at[np.array([0, 0])].add(1).tolist() == [3, 1]
    assert_elements(X.at[0].set([1, 2, 3])[0], [1, 2, 3])


def test_the_array_that_is_updated_stays_as_it_is() -> None:
    x = pnp.zeros(2)
    x.at[0].set(1.0)
    x.at[0].add(1.0)
    assert_elements(x, [0, 0])
    assert repr(x.at[0, 1:]) == f"{x!r}.at[0, 1:]"


@pytest.mark.parametrize("method", ["add", "subtract", "set"])
def test_derivatives_by_updates_that_are_moved_inside(method: str) -> None:
    def f(u: Any, mode: Any) -> Any:
        return getattr(pnp.zeros(3).at[pnp.array([0, 9])], method)(u, mode=mode) @ pnp.array([1.0, 2.0, 3.0])

    sign = -1 if method == "subtract" else 1
    assert_elements(pullback.grad(f)(pnp.ones(2), "clip"), np.float32([sign, 3 * sign]))
    assert_elements(pullback.grad(f)(pnp.ones(2), "drop"), np.float32([sign, 0]))


# Functions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("mode", [None, "clip", "wrap"])
def test_take(axis: Any, mode: Any) -> None:
    indices = np.array([[0, 1], [-1, 1]]) if mode != "clip" else np.array([[0, 9], [-3, 1]])
    indices = indices + (9 if mode == "wrap" else 0)
    want = np.take(np.asarray(X), indices, axis=axis, mode=mode or "raise")
    assert_elements(indexing.take(X, indices, axis, mode=mode), want)
    assert_elements(traced(lambda x, i: indexing.take(x, i, axis, mode=mode), X, pnp.asarray(indices)), want)


def test_take_fills() -> None:
    assert_elements(indexing.take(X, pnp.array([7, 1]), axis=1), [[np.nan, 1], [np.nan, 4]])
    assert_elements(indexing.take(X, pnp.array(7), fill_value=2), 2)
    assert_elements(X.take(1), 1)


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_take_along_axis_and_back(axis: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 4))
    order = np.argsort(x, axis=axis)
    with enable_x64(True):
        a, i = pnp.asarray(x), pnp.asarray(order)
        want = np.take_along_axis(x, order, axis)
        assert_elements(indexing.take_along_axis(a, i, axis), want)
        assert_elements(traced(lambda a, i: indexing.take_along_axis(a, i, axis), a, i), want)
        assert_elements(indexing.put_along_axis(a, i, want, axis, inplace=False), x)
        if axis is not None:
            first = order.take([0], axis)
            assert_elements(
                traced(lambda a, i: indexing.take_along_axis(a, i, axis), a, pnp.asarray(first)), want.take([0], axis)
            )
            thin = order[:1] if axis else order[:, :1]
            assert_elements(
                traced(lambda a, i: indexing.take_along_axis(a, i, axis), a, pnp.asarray(thin)),
                np.take_along_axis(x, thin, axis),
            )
            out = pullback.vmap(lambda a, i: indexing.take_along_axis(a, i, axis))(
                pnp.stack([a, 2 * a]), pnp.stack([i, i])
            )
            assert_elements(out, np.stack([want, 2 * want]))


@pytest.mark.parametrize("method", ["set", "add", "multiply", "divide", "min", "max", "power"])
@pytest.mark.parametrize("index", [(0, [-1, 0, 1], -2), (0, slice(None), -2), (0, slice(0, 0), 0), ([True], ..., 1)])
def test_axes_of_one_before_those_that_are_replaced(method: str, index: Any) -> None:
    index = tuple(pnp.array(i) if isinstance(i, list) else i for i in index)
    x = pnp.ones((1, 3, 2))
    write = lambda x, v: getattr(x.at[index], method)(v)
    for shape in ((1, 3), (1, 1, 3), (1, 1, 1, 1)):
        v = pnp.arange(float(np.prod(shape))).reshape(shape)
        if x[index].size == 0 and shape[-1] == 3:
            continue
        want = write(x, v.reshape(shape[-1:]))
        for got in (
            write(x, v),
            pullback.jit(write)(x, v),
            pullback.vmap(write)(x[None], v[None])[0],
            pullback.jvp(write, (x, v), (x, v))[0],
        ):
            assert_elements(got, want)
    for f in (write, pullback.jit(write)):
        with pytest.raises(ShapeError, match=r"a value of shape \(2, 3\) does not fit"):
            f(x, pnp.ones((2, 3)))


def test_nonzero_and_kin() -> None:
    x = np.array([[0, 1, 2], [3, 0, 4]])
    ours = pnp.asarray(x)
    for mine, numpys in zip(indexing.nonzero(ours), np.nonzero(x), strict=True):
        assert_elements(mine, numpys)
    for size in (3, 4, 6):
        rows, columns = traced_pair(lambda a, size=size: indexing.nonzero(a, size=size, fill_value=(7, 8)), ours)
        assert_elements(rows, (list(np.nonzero(x)[0]) + [7] * 6)[:size])
        assert_elements(columns, (list(np.nonzero(x)[1]) + [8] * 6)[:size])
    assert_elements(indexing.argwhere(ours), np.argwhere(x))
    assert_elements(indexing.flatnonzero(ours, size=2), [1, 2])
    assert_elements(indexing.extract(ours > 1, ours), [2, 3, 4])
    assert_elements(traced(lambda a: indexing.extract(a > 1, a, size=4, fill_value=9), ours), [2, 3, 4, 9])
    assert_elements(indexing.compress([0, 1], ours, axis=1), [[1], [0]])
    assert_elements(indexing.compress(np.array([1, 0]), ours, axis=0), [[0, 1, 2]])
    with pytest.raises(ShapeError, match="holds beyond the 2 of axis 0"):
        indexing.compress([0, 1, 1], ours, axis=0)
    assert_elements(indexing.place(ours, ours > 1, pnp.array([9, 8]), inplace=False), [[0, 1, 9], [8, 0, 9]])
    assert_elements(indexing.put(ours, np.array([0, -1]), 5, inplace=False), [[5, 1, 2], [3, 0, 5]])


def traced_pair(f: Any, x: Any) -> Any:
    return jaxpr_as_fun(pullback.make_jaxpr(f)(x))(x)


def test_flat_and_multiple_positions() -> None:
    rows, columns = pnp.unravel_index(pnp.array([5, 9, -1, -9]), (2, 3))
    assert_elements(rows, [1, 1, 1, 0])
    assert_elements(columns, [2, 2, 2, 0])
    pairs = (pnp.array([1, 0]), pnp.array([2, 1]))
    for order in "CF":
        want = np.ravel_multi_index(([1, 0], [2, 1]), (2, 3), order=order)
        assert_elements(indexing.ravel_multi_index(pairs, (2, 3), order=order), want)
    for mode in ("clip", "wrap"):
        out = traced(lambda i, mode=mode: indexing.ravel_multi_index((i, i), (2, 3), mode=mode), pnp.array([-1, 5]))
        assert_elements(out, np.ravel_multi_index(([-1, 5], [-1, 5]), (2, 3), mode=mode))
    with pytest.raises(ShapeError, match=r"axis 1 are not all in range\(3\)"):
        indexing.ravel_multi_index((pnp.array([1]), pnp.array([4])), (2, 3))
    assert_elements(X[pnp.ix_(pnp.array([0, 1]), pnp.array([True, False, True]))], [[0, 2], [3, 5]])


def test_choose() -> None:
    cases = [np.array([1, 2, 3]), np.array([4, 5, 6])]
    ours = [*map(pnp.asarray, cases)]
    assert_elements(indexing.choose(pnp.array([0, 1, 0]), ours), [1, 5, 3])
    for mode in ("clip", "wrap"):
        which = np.array([0, 2, -1])
        out = traced(lambda a, mode=mode: indexing.choose(a, ours, mode=mode), pnp.asarray(which))
        assert_elements(out, np.choose(which, cases, mode=mode))
    assert_elements(indexing.choose(pnp.array([[1], [0]]), pnp.stack(ours)), [[4, 5, 6], [1, 2, 3]])
    with pytest.raises(ShapeError, match=r"range\(2\).*got \[2\]"):
        indexing.choose(pnp.array([2]), ours)


@pytest.mark.parametrize("k", [-4, -1, 0, 1, 2, 9])
def test_diagonals_and_triangles(k: int) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    with enable_x64(True):
        a = pnp.asarray(x)
        for axes in ((0, 1), (1, 2), (2, 0), (-1, -2)):
            want = np.diagonal(x, k, *axes)
            assert_elements(diagonals.diagonal(a, k, *axes), want)
            assert_elements(traced(lambda a, axes=axes: diagonals.diagonal(a, k, *axes), a), want)
        assert_elements(diagonals.diag(a[0], k), np.diag(x[0], k))
        assert_elements(diagonals.diag(a[0, 0], k), np.diag(x[0, 0], k))
        assert_elements(diagonals.diagflat(a[0], k), np.diagflat(x[0], k))
        for ours, numpys in ((diagonals.tril, np.tril), (diagonals.triu, np.triu)):
            assert_elements(ours(a, k), numpys(x, k))
            mapped = pullback.vmap(lambda m, ours=ours: ours(m, k), in_axes=2, out_axes=2)(a)
            assert_elements(mapped, np.stack([numpys(x[..., j], k) for j in range(4)], 2))
        for ours, numpys in ((diagonals.tril_indices, np.tril_indices), (diagonals.triu_indices, np.triu_indices)):
            for mine, his in zip(ours(3, k, 2), numpys(3, k, 2), strict=True):
                assert_elements(mine, his)
        # The diagonal of a diagonal matrix is what it was made of: the two are each other's transposes.
        v = a[0, 0]
        _, pull = pullback.vjp(lambda v: diagonals.diag(v, k), v)
        m = pnp.asarray(np.random.default_rng(0).standard_normal(np.diag(x[0, 0], k).shape))
        assert_elements(pull(m)[0], np.diagonal(np.asarray(m), k))


def test_more_diagonals() -> None:
    x = pnp.zeros((3, 2))
    assert_elements(diagonals.fill_diagonal(x, 5.0, inplace=False), [[5, 0], [0, 5], [0, 0]])
    assert_elements(x[diagonals.diag_indices(2)], [0, 0])
    assert_elements(diagonals.tril(pnp.ones((2, 2), bool)), [[True, False], [True, True]])
    assert diagonals.triu(pnp.ones((2, 2), "int8")).dtype == "int8"
    assert_elements(diagonals.mask_indices(3, diagonals.triu)[1], np.mask_indices(3, np.triu)[1])
    assert_elements(diagonals.triu_indices_from(x)[0], np.triu_indices_from(np.zeros((3, 2)))[0])
    assert_elements(diagonals.diag_indices_from(pnp.zeros((2, 2)))[0], [0, 1])


@pytest.mark.parametrize("wrap", [lambda f: f, pullback.jit])
def test_place_and_put_of_traced_operands(wrap: Any) -> None:
    rng = np.random.default_rng(0)
    for shape in ((6,), (2, 3), (1,), (0,)):
        x = rng.normal(size=shape).astype("f")
        for mask in (rng.normal(size=shape) > 0, np.zeros(shape, bool), np.ones(shape, bool)):
            for values in (np.float32(7), np.arange(1, 3, dtype="f"), np.arange(1, 9, dtype="f")):
                expected = x.copy()
                np.place(expected, mask, values)
                got = wrap(lambda x, m, v: pnp.place(x, m, v, inplace=False))(x, mask, values)
                np.testing.assert_array_equal(got, expected)
    x, ones = np.arange(6, dtype="f"), np.array([9.0, 8.0], "f")
    assert wrap(lambda x, m: pnp.place(x, m, ones, inplace=False))(x, np.arange(6)).tolist() == [0, 9, 8, 9, 8, 9]
    for indices, expected in (
        ([0, -1], [9, 1, 2, 3, 4, 8]),
        ([7, 1], [0, 8, 2, 3, 4, 9]),
        ([-9, 1], [9, 8, 2, 3, 4, 5]),
    ):
        got = wrap(lambda x, i: pnp.put(x, i, ones, inplace=False))(x, np.array(indices, np.int8))
        assert got.tolist() == expected
    table = np.zeros((2, 3), "f")
    got = wrap(lambda x, v: pnp.fill_diagonal(x, v, inplace=False))(table, ones)
    assert got.tolist() == [[9, 0, 0], [0, 8, 0]]
    got = wrap(lambda x, i: pnp.put_along_axis(x, i, 5.0, 1, inplace=False))(table, np.array([[0], [2]]))
    assert got.tolist() == [[5, 0, 0], [0, 0, 5]]


def test_place_is_differentiated_and_mapped() -> None:
    x, mask, values = pnp.arange(6.0), np.array([1, 0, 1, 0, 1, 0], bool), pnp.array([2.0, 3.0])
    total = lambda x, v: (pnp.place(x, mask, v, inplace=False) ** 2).sum()
    dx, dv = pullback.grad(total, (0, 1))(x, values)
    assert dx.tolist() == [0, 2, 0, 6, 0, 10]
    assert dv.tolist() == [8, 6]
    mapped = pullback.vmap(lambda x, m: pnp.place(x, m, values, inplace=False))(
        pnp.stack([x, x]), np.stack([mask, ~mask])
    )
    assert mapped.tolist() == [[2, 1, 3, 3, 2, 5], [0, 2, 2, 3, 4, 2]]
    with pytest.raises(ValueError, match=r"place needs at least one value, got an array of shape \(0,\)"):
        pnp.place(x, mask, pnp.zeros(0), inplace=False)
    with pytest.raises(ValueError, match="mask and array must have one size"):
        pullback.jit(lambda x, m: pnp.place(x, m, 1.0, inplace=False))(x, mask[:5])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32])
@pytest.mark.parametrize("size", [100, 128, 300, 40_000])
@pytest.mark.parametrize("concrete", [True, False])
def test_many_positions_of_any_dtype(dtype: Any, size: int, concrete: bool) -> None:
    x = np.arange(1.0, size + 1, dtype=np.float32)
    info = np.iinfo(dtype)
    inside = np.arange(max(info.min, -size), min(info.max, size - 1) + 1)
    for extra in ([], [info.min], [info.max], [min(info.max, size)]):
        i = np.concatenate([np.resize(inside, 9000), extra]).astype(dtype)
        at = i if concrete else pnp.array(i)
        i = i if concrete else np.asarray(at)  # of 32 bits
        wrapped = np.where(i.astype(np.int64) < 0, i.astype(np.int64) + size, i.astype(np.int64))
        valid = (wrapped >= 0) & (wrapped < size)
        assert_elements(pnp.array(x).at[at].get(mode="fill", fill_value=-1), np.where(valid, x[wrapped * valid], -1))
        assert_elements(pnp.array(x)[at], x[np.clip(wrapped, 0, size - 1)])
        want = np.zeros_like(x)
        np.add.at(want, wrapped[valid], np.float32(1))
        assert_elements(pnp.zeros(size, np.float32).at[at].add(1), want)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_positions_of_narrow_dtypes_in_long_arrays_from_the_end(dtype: Any) -> None:
    size = np.iinfo(dtype).max + 10
    positions = pnp.array(np.array([-1, -3, 5], dtype))
    gradient = pullback.grad(lambda x: (x[positions] * pnp.array([1.0, 2.0, 3.0])).sum())(pnp.zeros(size))
    want = np.zeros(size)
    want[[-1, -3, 5]] = [1, 2, 3]
    assert_elements(gradient, want)


def test_assignments_to_at_say_what_to_write() -> None:
    x: Any = pnp.zeros((3, 2))
    with pytest.raises(
        ImmutableArrayError, match=r"write x = x\.at\[0, :2\]\.set\(\.\.\.\), which returns a new array"
    ):
        x.at[0, :2] = 1.0
    for operation, name in (("+=", "add"), ("-=", "subtract"), ("*=", "multiply"), ("/=", "divide")):
        with pytest.raises(ImmutableArrayError, match=rf"write x = x\.at\[0\]\.{name}\("):
            exec(f"x.at[0] {operation} 2.0", {"x": x})
        assert hasattr(x.at[0], name)


def test_a_bool_is_written_under_strict_promotion() -> None:
    """Eager code wrote it, and compiled code refused it."""
    for dtype in ("int32", "uint8", "int4", "float32", "bfloat16", "float8_e4m3fn", "complex64", "bool"):
        x = pnp.zeros(3, dtype)
        with pullback.numpy_dtype_promotion("strict"):
            for run in (lambda f: f, pullback.jit):
                out = run(lambda x: x.at[1].set(True))(x)
                assert (out.dtype, out.tolist()) == (x.dtype, [0, 1, 0])


# Derivatives of take_along_axis ---------------------------------------------------------------------------------------


def _operations(x: Any, positions: Any, axis: int) -> list[str]:
    tape = pullback.vjp(lambda x: pnp.take_along_axis(x, positions, axis), x)[1].program  # type: ignore[attr-defined]
    return [node.primitive.name for node in tape.nodes]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("kind", ["int32", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_eager_derivatives_of_taking_along_an_axis_are_one_operation(axis: int, kind: str, dtype: str) -> None:
    rng = np.random.default_rng(axis)
    x = pnp.asarray(rng.integers(-3, 4, (3, 4, 5)), dtype)  # so that sums are exact
    positions = pnp.asarray(rng.integers(0, 3, (*x.shape[:axis], 6, *x.shape[axis + 1 :])), kind)  # some occur twice
    weights = pnp.asarray(rng.integers(-3, 4, positions.shape), dtype)

    def pull(x: Any) -> Any:
        return pullback.vjp(lambda x: pnp.take_along_axis(x, positions, axis), x)[1](weights)[0]

    assert _operations(x, positions, axis) == ["take_along_axis"]
    assert pull(x).dtype == x.dtype
    assert_same(pull(x), pullback.jit(pull)(x))
    assert_same(pullback.vmap(pull)(x[None])[0], pull(x))
    taken = lambda x: pnp.take_along_axis(x, positions, axis) * x[(slice(None),) * axis + (slice(0, 1),)]
    forwards = lambda x: pullback.jvp(taken, (x,), (x,))[1]
    assert_same(forwards(x), pullback.jit(forwards)(x))
    twice = lambda x: pullback.jvp(lambda x: pullback.vjp(taken, x)[1](weights)[0], (x,), (x,))[1]
    assert_same(twice(x), pullback.jit(twice)(x))


@pytest.mark.parametrize("positions", [[[0, -1]], [[0, 3]], [[0, 7]], [[-9, 1]], np.zeros((1, 0), int), [[0], [1]]])
def test_other_positions_have_the_same_derivatives_in_eager_code(positions: Any) -> None:
    """Those from the end, those out of range, none, and a vector for each of some rows that are one."""
    x, positions = pnp.array([[1.0, 2.0, 3.0]]), pnp.asarray(positions)
    pull = lambda x: pullback.vjp(lambda x: pnp.take_along_axis(x, positions, 1), x)[1](pnp.ones(positions.shape))[0]
    assert "take_along_axis" not in _operations(x, positions, 1)
    assert_same(pull(x), pullback.jit(pull)(x))
