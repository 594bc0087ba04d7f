"""The forms in which shapes, axes, indices and positions come: arrays, ranges, tuples, traced integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import export, lax
from pullback.errors import IndexingError, IndexKindError, NonConcreteBooleanIndexError, OperandError, ShapeError
from tests.helpers import eager_and_compiled

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)

INTS: list[Callable[[list[int]], Any]] = [tuple, list, np.array, pnp.array, iter, lambda n: tuple(map(np.int64, n))]


@pytest.mark.parametrize("form", INTS)
def test_shapes(form: Callable[[list[int]], Any]) -> None:
    for shape in ([6, 4], [-1, 4], [2, -1, 2], [24]):
        for ran in (lambda f: f, pullback.jit):  # a shape that is made in a program is not known there
            known = form(shape)
            out = ran(lambda x, known=known: x.reshape(known))(pnp.asarray(X))
            np.testing.assert_array_equal(out, X.reshape(shape))
    assert pnp.reshape(X, np.array(-1)).shape == (24,)
    assert pnp.asarray(X).reshape(np.int32(6), np.int64(-1)).shape == (6, 4)
    assert lax.reshape(X, np.array([4, 6])).shape == (4, 6)
    with pytest.raises(ShapeError, match="only one size may be -1"):
        pnp.reshape(X, form([-1, -1]))
    with pytest.raises(ShapeError, match=r"must not be negative|into shape \(-2, 4\)"):
        pnp.reshape(X, form([-2, 4]))


def test_a_shape_of_symbolic_sizes_and_ints() -> None:
    def f(x: Any) -> Any:
        b = x.shape[0]
        return pnp.reshape(x, (b, 3, 1)), pnp.reshape(x, (-1, b)), x.reshape(b * 3)

    (b,) = export.symbolic_shape("b")
    exported = export.export(pullback.jit(f))(pullback.ShapeDtypeStruct((b, 3), np.dtype("float32")))
    for out, want in zip(exported.call(np.ones((5, 3), "float32")), ((5, 3, 1), (3, 5), (15,)), strict=True):
        assert out.shape == want


AXES: list[Callable[[list[int]], Any]] = [*INTS[:4], lambda axes: range(axes[0], axes[-1] + 1)]
OVER_AXES: list[Callable[[Any], Any]] = [
    lambda axis: pnp.sum(X, axis),
    lambda axis: pnp.mean(X, axis, keepdims=True),
    lambda axis: pnp.var(X, axis),
    lambda axis: pnp.max(X, axis),
    lambda axis: pnp.any(X, axis),
    lambda axis: pnp.ptp(X, axis),
    lambda axis: pnp.median(X, axis),
    lambda axis: pnp.average(X, axis),
    lambda axis: pnp.quantile(X, 0.5, axis),
    lambda axis: pnp.count_nonzero(X, axis),
    lambda axis: pnp.nansum(X, axis),
    lambda axis: pnp.nanmedian(X, axis),
    lambda axis: pnp.flip(X, axis),
    lambda axis: pnp.roll(X, 1, axis),
    lambda axis: pnp.squeeze(X[:1, :1], axis),
    lambda axis: pnp.expand_dims(X, axis),
    lambda axis: pnp.moveaxis(X, axis, (2, 1)),
    lambda axis: pnp.transpose(X[0], axis),
    lambda axis: pnp.gradient(X, axis=axis),
    lambda axis: pnp.apply_over_axes(pnp.sum, X, axis),
    lambda axis: pnp.fft.fftn(X, axes=axis),
    lambda axis: pnp.fft.fftshift(X, axis),
    lambda axis: pnp.linalg.norm(X, axis=axis),
    lambda axis: pnp.linalg.vector_norm(X, axis=axis),
    lambda axis: pnp.tensordot(X, X, (axis, (0, 1))),
    lambda axis: pnp.add.reduce(X, axis),
    lambda axis: pullback.nn.softmax(X, axis),
    lambda axis: pullback.nn.standardize(X, axis),
    lambda axis: lax.reduce_sum(X, axis),
]


@pytest.mark.parametrize("form", AXES)
@pytest.mark.parametrize("number", range(len(OVER_AXES)))
def test_axes(number: int, form: Callable[[list[int]], Any]) -> None:
    function = OVER_AXES[number]
    np.testing.assert_array_equal(function(form([0, 1])), function((0, 1)))


def test_an_axis_that_is_none_of_these() -> None:
    with pytest.raises(ShapeError, match=r"axis must be an int, got '01'"):
        pnp.sum(X, "01")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"axis must be an int, got \{0, 1\}"):  # which has no order
        pnp.sum(X, {0, 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        pullback.jit(lambda axis: pnp.sum(X, axis))(np.array([0, 1]))
    assert pnp.sum(X, range(0)).shape == X.shape


INDICES = [
    (0, (1, 2)),
    (slice(None), (0, 2)),
    (Ellipsis, (0, 2)),
    ((0, 1), (1, 2)),
    (1, ((1, 2), (0, 1))),
    (0, ()),
    ((0, 1),),
    (slice(None), None, (1, 0), Ellipsis, (0, 1)),
    (0, (True, False, True)),
    (0, [True, False, True]),
    np.zeros((0,), bool),
    np.zeros((0, 3), bool),
    np.zeros((2, 0), bool),
    (slice(None), np.zeros((0, 4), bool)),
]


@pytest.mark.parametrize("index", INDICES)
def test_an_index_that_holds_a_tuple_or_an_empty_mask(index: Any) -> None:
    for out in eager_and_compiled(lambda x: x[index], pnp.asarray(X)):
        np.testing.assert_array_equal(out, X[index])
    want = X.copy()
    want[index] = 1
    for out in eager_and_compiled(lambda x: x.at[index].set(1.0), pnp.asarray(X)):
        np.testing.assert_array_equal(out, want)
    want = np.zeros_like(X)
    np.add.at(want, index, 1)
    np.testing.assert_array_equal(pullback.grad(lambda x: x[index].sum())(X), want)


def test_an_index_that_holds_traced_integers_in_a_sequence() -> None:
    for kind in (list, tuple):
        out = pullback.jit(lambda x, i, kind=kind: x[0, kind([i, 1])])(X, 2)
        np.testing.assert_array_equal(out, X[0, [2, 1]])
        out = pullback.jit(lambda x, i, kind=kind: x.at[0, kind([i, 1])].add(1.0))(X, 2)
        assert float(out.sum() - X.sum()) == 8


def test_what_is_no_index() -> None:
    for index in ({1}, {}, object(), "x", 1.0, (0, 1.0), (0, (0, slice(None)))):
        with pytest.raises(IndexKindError, match="an index must be an int, a slice") as caught:
            pnp.asarray(X)[index]
        assert isinstance(caught.value, OperandError)
        assert isinstance(caught.value, IndexError)
    with pytest.raises(IndexingError, match=r"in x\[array\(\[\], shape=\(0, 2\), dtype=bool\)\]"):
        pullback.jit(lambda x: x[np.zeros((0, 2), bool)])(X)
    with pytest.raises(NonConcreteBooleanIndexError):
        pullback.jit(lambda x, m: x[0, [m, m, m]])(X, True)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("where", [1, -1, 0, [1], [0, 1], [1, 1, 0], [2, -1], []])
def test_insert_at_traced_positions(axis: int | None, where: Any) -> None:
    where = np.array(where, int)
    for values in (np.float32(9), np.arange(10.0, 10 + where.size, dtype=np.float32)):
        if values.ndim and axis is not None:
            values = values.reshape([-1 if i == axis % 3 else 1 for i in range(3)])
        if where.ndim == 0 and values.ndim:
            values = values.ravel()
        want = np.insert(X, where, values, axis)
        got = pullback.jit(lambda x, i, v: pnp.insert(x, i, v, axis))(X, where, values)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(pnp.insert(X, where, values, axis), want)


def test_insert_at_traced_positions_out_of_range_and_mapped() -> None:
    x = np.arange(3.0, dtype=np.float32)
    got = pullback.vmap(lambda i: pnp.insert(x, i, 9.0))(np.array([0, 1, 3, 7, -1, -9]))
    want = [np.insert(x, i, 9.0) for i in (0, 1, 3, 3, -1, 0)]
    np.testing.assert_array_equal(got, want)
    got = pullback.jit(pullback.grad(lambda x, i: (pnp.insert(x, i, 9.0) * np.arange(4.0)).sum()))(x, 1)
    np.testing.assert_array_equal(got, [0, 2, 3])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("where", [1, -1, [1], [1, 0], [0, -1], []])
def test_delete_at_traced_positions(axis: int | None, where: Any) -> None:
    where = np.array(where, int)
    got = pullback.jit(lambda x, i: pnp.delete(x, i, axis, assume_unique_indices=True))(X, where)
    np.testing.assert_array_equal(got, np.delete(X, where, axis))


def test_delete_at_traced_positions_that_may_be_equal() -> None:
    np.testing.assert_array_equal(pullback.jit(lambda x, i: pnp.delete(x, i, 1))(X, 1), np.delete(X, 1, 1))
    with pytest.raises(TypeError):  # the shape depends on whether they are
        pullback.jit(lambda x, i: pnp.delete(x, i, 1))(X, np.array([0, 1]))


def test_unravel_index_with_traced_sizes() -> None:
    flat = np.array([0, 5, 7, -1, -30, 30])
    want = pnp.unravel_index(flat, (2, 3, 4))
    for sizes in ((2, 3, 4), np.array([2, 3, 4])):
        for got in (pullback.jit(pnp.unravel_index)(flat, sizes), pnp.unravel_index(flat, sizes)):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
    got = pullback.jit(lambda n: pnp.unravel_index(flat, (2, n, 4)))(3)
    np.testing.assert_array_equal(got[0], want[0])


def test_ravel_multi_index_that_ignores_the_range() -> None:
    for out in eager_and_compiled(
        lambda i, j: pnp.ravel_multi_index((i, j), (2, 3), mode="ignore"), np.array([1, 5]), np.array([1, 1])
    ):
        np.testing.assert_array_equal(out, [4, 16])
    with pytest.raises(ValueError, match="'raise', 'clip', 'wrap' or 'ignore', got 'fill'"):
        pnp.ravel_multi_index((1, 1), (2, 3), mode="fill")


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "complex64", "uint8"])
def test_take_along_axis_by_a_product(dtype: str) -> None:
    x = (X % 5 > 2).astype(dtype) if dtype == "bool" else X.astype(dtype)
    for axis in (0, 1, -1):
        positions = np.arange(24).reshape(2, 3, 4) % x.shape[axis] - (np.arange(4) % 2) * x.shape[axis]
        for out in eager_and_compiled(
            lambda x, i, axis=axis: pnp.take_along_axis(x, i, axis, mode="one_hot"), x, positions
        ):
            assert out.dtype == dtype
            np.testing.assert_array_equal(out, np.take_along_axis(x, positions, axis))
    assert not pnp.take_along_axis(x, np.array([[[9]]]), 0, mode="one_hot").any()


def test_positions_that_an_axis_cannot_have() -> None:
    with pytest.raises(IndexingError, match=r"take: axis 0 of an array of shape \(0, 3\) has no elements"):
        pnp.take(np.ones((0, 3)), np.array([0]), axis=0)
    with pytest.raises(ValueError, match="take: indices must be integers"):
        pnp.take(X, 1.0)  # type: ignore[arg-type]


def test_dimensions_of_a_broadcast_in_any_order() -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    for out in eager_and_compiled(lambda x: lax.broadcast_in_dim(x, (3, 4, 2), (2, 0)), x):
        np.testing.assert_array_equal(out, np.broadcast_to(x.T[:, None, :], (3, 4, 2)))


# More axes than NumPy allows ---------------------------------------------------------------------------------------

MANY = (1,) * 68


def test_arrays_of_more_than_64_axes() -> None:
    for make in (pnp.zeros, pnp.ones, lambda shape: pnp.full(shape, 3), lambda shape: pnp.broadcast_to(2.0, shape)):
        for x in eager_and_compiled(lambda: make((2, *MANY, 3))):  # noqa: B023
            assert x.shape == (2, *MANY, 3)
            flat = np.asarray(x.reshape(-1))
            np.testing.assert_array_equal((x + 1).reshape(6), flat + 1)
            assert x.sum() == flat.sum()
            assert pnp.max(x, axis=-1).shape == (2, *MANY)
            assert pnp.squeeze(x).shape == (2, 3)
            assert x.T.shape == (3, *MANY, 2)
            assert x[0].shape == (*MANY, 3)
            np.testing.assert_array_equal(pullback.jit(lambda x: (x * x).reshape(-1))(x), flat * flat)
    assert pnp.stack([pnp.ones((1,) * 64)] * 2).shape == (2, *(1,) * 64)
    assert pnp.ones((1,) * 64)[None].ndim == 65
    assert pnp.expand_dims(pnp.arange(3), tuple(range(300))).ndim == 301
    np.testing.assert_array_equal(pnp.ones((1,) * 300).reshape(1), [1])


def test_transformations_of_arrays_of_many_axes() -> None:
    f = lambda x: (pnp.sin(x.reshape((*MANY, 3))) ** 2).sum()
    x = np.arange(3.0, dtype=np.float32)
    for slopes in eager_and_compiled(pullback.grad(f), x):
        np.testing.assert_allclose(slopes, np.sin(2 * x), rtol=1e-6)
    for values in eager_and_compiled(pullback.vmap(f), pnp.stack([x, x + 1])):
        np.testing.assert_allclose(values, (np.sin([x, x + 1]) ** 2).sum(1), rtol=1e-6)
    y = pnp.ones(MANY)
    assert pullback.grad(lambda y: pnp.sin(y).sum())(y).shape == MANY
    assert pullback.jit(lambda y: y + 1)(pullback.jit(lambda y: y + 1)(y)).reshape(()) == 3


def test_the_elements_of_arrays_of_many_axes_are_not_numpys() -> None:
    x = pnp.ones(MANY)
    assert repr(x).startswith("Array(shape=(1, 1,")
    for read in (np.asarray, lambda x: x.item(), lambda x: x.tolist()):
        with pytest.raises(ShapeError, match=r"68 axes exists only on a device.*have at most 64; read x.reshape\(-1\)"):
            read(x)


def test_vectorized_functions_under_rank_promotion() -> None:
    """The axes that are mapped over are compared, as in JAX."""
    m, v = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    with pullback.numpy_rank_promotion("raise"):
        for f, args in ((pnp.vectorize(pnp.add), (m, v)), (pnp.vectorize(pnp.dot, signature="(n),(n)->()"), (m, v))):
            with pytest.raises(ShapeError, match=r"vectorize: operands of shapes .* have different numbers of axes"):
                f(*args)
        assert pnp.vectorize(pnp.add)(m, 1.0).shape == (2, 3)
        assert pnp.vectorize(pnp.dot, signature="(n),(n)->()")(m, m).shape == (2,)


def test_kinds_of_errors() -> None:
    """Each is also the built-in kind that JAX's tests ask for."""
    for call, error in (
        (lambda: pullback.jit(lambda x, i: x[i:])(X, 1), IndexError),
        (lambda: pnp.hypot(1j, 1.0), ValueError),
        (lambda: pnp.r_["asdf", X], ValueError),
        (lambda: pnp.array(None), ValueError),
        (lambda: pnp.sin(None), TypeError),
    ):
        with pytest.raises(error):
            call()
    assert pnp.ogrid[:].shape == (0,)
    assert pnp.mgrid[:].dtype == np.int32


def test_indices_into_an_axis_without_elements() -> None:
    x = pnp.ones((2, 0))
    for call in (
        lambda: x[0, np.array([0])],
        lambda: pullback.jit(lambda i: x[0, i])(0),
        lambda: x.at[0, np.array([0])].get(mode="fill"),
    ):
        with pytest.raises(IndexError, match="is out of bounds for axis 1 with size 0"):
            call()
    assert x.at[0, np.array([0])].set(1.0).shape == (2, 0)
    assert x[0, np.array([], int)].shape == (0,)


def test_slices_by_arrays_in_programs() -> None:
    cut = slice(pnp.array(1), np.array(11), pnp.array(1))
    for out in eager_and_compiled(lambda x: x[cut], np.arange(12)):
        np.testing.assert_array_equal(out, np.arange(1, 11))


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_zeros_alone_are_trimmed(trim: str) -> None:
    for x in (np.zeros(3), np.zeros((3, 2)), np.zeros((3, 0)), np.array([[0, 0], [0, 1], [0, 0]])):
        np.testing.assert_array_equal(pnp.trim_zeros(x, trim), np.trim_zeros(x, trim))
        assert pnp.trim_zeros(x, trim).shape == np.trim_zeros(x, trim).shape


def test_updates_keep_the_type_of_the_array() -> None:
    """A weakly typed array stays one; an integer that only the dtype of the array holds is taken as it is."""
    for update in (
        lambda x: x.at[()].set(2.0),
        lambda x: x.at[()].add(np.float32(2)),
        lambda x: x.at[()].multiply(2.0),
        lambda x: x.at[()].divide(4.0),
        lambda x: x.at[()].apply(pnp.sin),
    ):
        for out in eager_and_compiled(update, pnp.asarray(2.0)):
            assert out.weak_type
        for out in eager_and_compiled(update, pnp.float32(2)):
            assert not out.weak_type
    for out in eager_and_compiled(lambda x: x.at[0].set(2**32 - 1), pnp.zeros(2, np.uint32)):
        assert out.tolist() == [2**32 - 1, 0]
    for out in eager_and_compiled(lambda x: x.at[0].add(2**32 - 1), pnp.ones(2, np.uint32)):
        assert out.tolist() == [0, 1]


def test_stretches_of_no_positions() -> None:
    add = pnp.frompyfunc(lambda x, y: x + y, 2, 1)
    for out in eager_and_compiled(lambda x: add.reduceat(x, np.array([], int)), np.arange(6)):
        assert out.shape == (0,)


def test_no_windows_fit_into_an_empty_operand() -> None:
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    for out in eager_and_compiled(
        lambda x, i: lax.gather(x, i, numbers, (1,)), np.zeros(0, np.float32), np.zeros((0, 1), int)
    ):
        assert out.shape == (0,)
        assert out.dtype == np.float32
    with pytest.raises(ShapeError, match="do not fit into an operand"):
        lax.gather(np.zeros(0, np.float32), np.zeros((2, 1), int), numbers, (1,))


def test_paddings_of_a_word_are_ints() -> None:
    pairs = lax.padtype_to_pads(np.array([5, 6]), np.array([2, 3]), np.array([1, 2]), "SAME")
    assert pairs == [(0, 1), (0, 1)]
    assert {type(n) for pair in pairs for n in pair} == {int}


def test_programs_are_printed_without_colors() -> None:
    program = pullback.make_jaxpr(lambda x: x + 1)(1.0)
    assert program.pretty_print(use_color=False) == str(program) == program.jaxpr.pretty_print(use_color=True)


def test_programs_of_arrays_of_many_axes() -> None:
    x = pnp.ones(MANY)
    assert lax.scan(lambda c, _: (c + 1, None), x, None, length=2)[0].reshape(()) == 3
    assert lax.cond(True, lambda x: x + 1, lambda x: x, x).sum() == 2
    assert x.at[0].set(2.0).sum() == 2
    assert pullback.checkpoint(lambda x: (x * 3).sum())(x) == 3
    assert [part.shape for part in pnp.ones((2, *MANY))] == [MANY, MANY]
    y = pullback.jit(lambda x: x * 2, donate_argnums=0)(x + 1)
    assert y.reshape(()) == 4
    assert x.copy().shape == x.astype("int32").shape == pullback.device_put(x).shape == MANY
    np.testing.assert_array_equal(pullback.hessian(lambda v: (v.reshape(MANY) ** 3).sum())(pnp.ones(1)), [[6]])
