"""Arrays of rows of unequal lengths: what NumPy computes row by row, with known and traced lengths, padded or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp, nn, test_util, tree
from pullback.ragged import Ragged, concatenate, contract, dot_product_attention, elementwise, vmap

LENGTHS = [(3, 0, 2, 1), (0, 0, 6, 0), (0, 0), ()]
"""The first two have arrays of the same shapes, so that a program which is compiled for one takes the other."""
ELEMENTS: list[tuple[int, ...]] = [(), (2,), (2, 3)]


def random_rows(lengths: Any, element: tuple[int, ...] = (), dtype: Any = np.float32, seed: int = 0) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [(3 * generator.standard_normal((n, *element))).astype(dtype) for n in lengths]


def made(rows: list[Any], padding: int = 0, element: tuple[int, ...] = (), dtype: Any = np.float32) -> Ragged:
    """Join rows, with values after the last that must never be read."""
    unused = np.full((padding, *element), 77).astype(dtype)
    values = np.concatenate([*rows, unused]) if rows or padding else np.zeros((0, *element), dtype)
    return Ragged(values, np.array([len(row) for row in rows], np.int32), max_length=9)


def ways(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return a function as it is, and compiled, where all lengths are traced."""
    return [function, jit(function)]


REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x, axis=0),
    "prod": lambda x: np.prod(x, axis=0),
    "max": lambda x: np.max(x, axis=0, initial=-np.inf),
    "min": lambda x: np.min(x, axis=0, initial=np.inf),
    "mean": lambda x: np.mean(x, axis=0) if len(x) else np.full(x.shape[1:], np.nan),
    "var": lambda x: np.var(x, axis=0) if len(x) else np.full(x.shape[1:], np.nan),
    "std": lambda x: np.std(x, axis=0) if len(x) else np.full(x.shape[1:], np.nan),
    "any": lambda x: np.any(x > 0, axis=0),
    "all": lambda x: np.all(x > 0, axis=0),
    "logsumexp": lambda x: scipy.special.logsumexp(x, axis=0) if len(x) else np.full(x.shape[1:], -np.inf),
}


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_rows_are_those_of_numpy(name: str, padding: int) -> None:
    both = ways(lambda x: getattr(x, name)(axis=1))
    for lengths in LENGTHS:
        for element in ELEMENTS[:: 2 - padding % 2]:
            rows = random_rows(lengths, element)
            x = made(rows, padding, element)
            x = x > 0 if name in ("any", "all") else x
            expected = np.array([REDUCTIONS[name](row) for row in rows]).reshape(len(rows), *element)
            for way in both[: 2 if len(rows) == 4 else 1]:
                np.testing.assert_allclose(way(x), expected, rtol=2e-5, atol=1e-6)
            kept = getattr(x, name)(axis=1, keepdims=True)
            assert kept.shape == (len(rows), 1, *element)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_all_elements_and_of_an_axis_of_elements(name: str, padding: int) -> None:
    both = ways(lambda x: getattr(x, name)())
    for lengths in LENGTHS[:2]:
        rows = random_rows(lengths, (2, 3))
        x = made(rows, padding, (2, 3))
        x = x > 0 if name in ("any", "all") else x
        every = np.concatenate(rows).reshape(-1)
        for way in both:
            np.testing.assert_allclose(way(x), REDUCTIONS[name](every), rtol=2e-5)
        inner = getattr(x, name)(axis=-1)
        assert isinstance(inner, Ragged)
        assert inner.element_shape == (2,)
        for row, got in zip(rows, inner, strict=True):
            np.testing.assert_allclose(got, REDUCTIONS[name](np.moveaxis(row, 2, 0)), rtol=2e-5)
        assert getattr(x, name)(keepdims=True).shape == (1, 1, 1, 1)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.float16, np.float64, np.complex64])
def test_dtypes_of_reductions_are_those_of_numpy_functions(dtype: Any) -> None:
    rows = [np.array([1, 2], dtype), np.array([], dtype), np.array([3], dtype)]
    x = made(rows, 2, dtype=dtype)
    for name in ("sum", "prod", "mean", "var", "max", "min"):
        if name in ("max", "min") and dtype == np.complex64:
            continue
        like = getattr(jnp, name)(jnp.asarray(np.ones(2, dtype)))
        assert getattr(x, name)(axis=1).dtype == like.dtype == getattr(x, name)().dtype, name
    np.testing.assert_array_equal(x.sum(axis=1), [2 if dtype == np.bool_ else 3, 0, 1 if dtype == np.bool_ else 3])


def test_values_without_bounds_pass_through_logsumexp_and_softmax() -> None:
    rows = [
        np.array([-np.inf, -np.inf], np.float32),
        np.array([np.inf, 1.0], np.float32),
        np.array([1e4, 1e4 + 1], np.float32),
    ]
    x = made(rows, 2)
    np.testing.assert_allclose(x.logsumexp(axis=1), [-np.inf, np.inf, 1e4 + np.logaddexp(0, 1)], rtol=1e-6)
    np.testing.assert_allclose(x.softmax()[2], scipy.special.softmax(rows[2]), rtol=1e-5)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize("element", ELEMENTS)
def test_softmax_of_rows(element: tuple[int, ...], padding: int) -> None:
    both = ways(lambda x: (x.softmax().to_padded(), x.log_softmax().to_padded()))
    for lengths in LENGTHS:
        rows = random_rows(lengths, element)
        x = made(rows, padding, element)
        for way in both[: 2 if len(rows) == 4 else 1]:
            plain, logs = way(x)
            for row, a, b in zip(rows, plain, logs, strict=True):
                if len(row):
                    np.testing.assert_allclose(a[: len(row)], scipy.special.softmax(row, axis=0), rtol=1e-5)
                    np.testing.assert_allclose(
                        b[: len(row)], scipy.special.log_softmax(row, axis=0), rtol=1e-5, atol=1e-6
                    )
                assert not a[len(row) :].any()
                assert not b[len(row) :].any()


def test_lists_rows_and_padded_arrays_are_conversions_of_each_other() -> None:
    both = ways(lambda p, n: Ragged.from_padded(p, n))
    for lengths in LENGTHS:
        for element in ELEMENTS:
            rows = random_rows(lengths, element)
            x = made(rows, 2, element)
            assert x.to_list() == [row.tolist() for row in rows]
            assert len(x) == x.rows == len(rows)
            assert x.ndim == 2 + len(element)
            padded = x.to_padded(5)
            assert padded.shape == (len(rows), max(lengths, default=0), *element)
            for row, got in zip(rows, padded, strict=True):
                np.testing.assert_array_equal(got[: len(row)], row)
                assert (got[len(row) :] == 5).all()
            for way in both[: 2 if len(rows) == 4 else 1]:
                assert way(padded, x.lengths).to_list() == x.to_list()
            if rows:
                assert Ragged.from_list(rows).to_list() == x.to_list()
            np.testing.assert_array_equal(x.row_numbers[: sum(lengths)], np.repeat(np.arange(len(rows)), lengths))
            assert (x.row_numbers[sum(lengths) :] == len(rows)).all()
    assert Ragged.from_list([]).to_list() == []
    assert Ragged.from_list([[], []]).to_list() == [[], []]
    assert Ragged.from_list([[1, 2], []], dtype=np.float16).dtype == np.float16


def test_arrays_of_awkward() -> None:
    awkward = pytest.importorskip("awkward")
    x = Ragged.from_awkward(awkward.Array([[1.0, 2.0], [], [3.0]]))
    assert x.to_list() == [[1.0, 2.0], [], [3.0]] == (x * 1).to_awkward().to_list()
    with pytest.raises(errors.ShapeError, match="only the second axis"):
        Ragged.from_awkward(awkward.Array([[[1.0], [2.0, 3.0]]]))


@pytest.mark.parametrize("padding", [0, 3])
def test_operators_broadcast_numbers_elements_and_rows(padding: int) -> None:
    lengths = (3, 0, 2)
    rows, others = random_rows(lengths, (2,)), random_rows(lengths, (2,), seed=1)
    x, y = made(rows, padding, (2,)), made(others, 1, (2,))
    per_row = np.arange(6, dtype=np.float32).reshape(3, 1, 2) + 1
    element = np.array([10, 20], np.float32)
    cases: list[tuple[Any, Any, Any]] = [
        (x, y, others), (x, 2.5, [2.5] * 3), (x, jnp.asarray(per_row), list(per_row)),
        (x, element, [element] * 3), (x, per_row[:1], [per_row[0]] * 3),
        (x, per_row[:, :, :1], list(per_row[:, :, :1])),
    ]  # fmt: skip
    operations = (lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a < b)
    functions = [(f, ways(f) if i == 1 else [f]) for i, f in enumerate(operations)]
    for a, b, dense in cases:
        for function, both in functions:
            for way in both:
                out = way(a, b)
                assert isinstance(out, Ragged)
                for got, row, other in zip(out.to_list(), rows, dense, strict=True):
                    np.testing.assert_allclose(np.reshape(got, row.shape), function(row, other), rtol=1e-6)
    assert ((-x) + x == 0).all()
    assert (abs(x) >= 0).all()
    assert not (~(x > 0) & (x > 0)).any()
    assert (2 ** made([np.array([1, 2])])).to_list() == [[2, 4]]
    assert x.astype(np.int32).dtype == np.int32


def test_operands_that_do_not_fit_are_refused() -> None:
    x = Ragged.from_list([[1.0, 2.0], [3.0]])
    with pytest.raises(errors.ShapeError, match=r"equal lengths, got \[2, 1\] and \[1, 2\]"):
        x + Ragged.from_list([[1.0], [2.0, 3.0]])
    with pytest.raises(errors.ShapeError, match="does not broadcast against a Ragged of 2 rows"):
        x + jnp.ones(2)
    with pytest.raises(errors.ShapeError, match="does not broadcast"):
        x + jnp.ones((3, 1))
    with pytest.raises(errors.ShapeError, match="does not broadcast"):
        x + jnp.ones((1, 1, 1))
    with pytest.raises(errors.OperandError, match="a Ragged among the operands"):
        elementwise(jnp.sin)(1.0)
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(errors.OperandError):
        jnp.sin(x)  # type: ignore[arg-type]
    with pytest.raises(errors.UnsupportedArgumentError, match="along axis 0"):
        x.sum(axis=0)
    with pytest.raises(errors.AxisError):
        x.sum(axis=2)
    with pytest.raises(TypeError):
        hash(x)


def test_arguments_of_constructors_are_checked() -> None:
    with pytest.raises(errors.ShapeError, match="sum to 4, but there are only 3 values"):
        Ragged(np.ones(3), np.array([2, 2]))
    with pytest.raises(errors.ArgumentError, match="negative"):
        Ragged(np.ones(3), np.array([2, -1]))
    with pytest.raises(errors.DtypeError, match="integers"):
        Ragged(np.ones(3), np.array([2.0]))
    with pytest.raises(errors.ShapeError, match="at least one axis"):
        Ragged(np.float32(1), np.array([1]))
    with pytest.raises(errors.ShapeError, match=r"shape \(rows,\)"):
        Ragged(np.ones(3), np.array(3))
    with pytest.raises(errors.ArgumentError, match="more than max_length=2"):
        Ragged(np.ones(3), np.array([3]), max_length=2)
    with pytest.raises(errors.ShapeError, match="one shape"):
        Ragged.from_list([np.ones((1, 2)), np.ones((1, 3))])
    with pytest.raises(errors.ShapeError, match="sequences"):
        Ragged.from_list([1.0, 2.0])
    with pytest.raises(errors.OperandError, match="row 0"):
        Ragged.from_list([["a"]])
    with pytest.raises(errors.ArgumentError, match="a length is 3"):
        Ragged.from_padded(np.ones((1, 2)), np.array([3]))
    with pytest.raises(errors.ShapeError, match="lengths of shape"):
        Ragged.from_padded(np.ones((1, 2)), np.array([1, 1]))
    with pytest.raises(errors.ArgumentError, match="more than max_length=1"):
        Ragged.from_list([[1, 2]]).to_padded(max_length=1)
    with pytest.raises(errors.ShapeError, match="expected 2 values"):
        Ragged.from_list([[1, 2]]).with_values(np.ones(3))


def test_traced_lengths_need_a_bound_and_what_exceeds_it_is_unknown() -> None:
    x = Ragged.from_list([[1.0, 2.0], [3.0]])
    for function in (lambda x: x.to_padded(), lambda x: dot_product_attention(x, x, x)):
        with pytest.raises(errors.StaticArgumentError, match="max_length"):
            jit(function)(Ragged(jnp.ones((3, 1)), x.lengths))
    for function in (lambda x: x[0], lambda x: x.to_list(), lambda x: list(x), vmap(jnp.sort)):
        with pytest.raises(errors.StaticArgumentError, match="traced"):
            jit(function)(x)
    short = jit(lambda x: x.to_padded(max_length=1))
    np.testing.assert_array_equal(short(x), [[np.nan], [3.0]])
    assert short(x.astype(np.int32))[0, 0] == np.iinfo(np.int32).min
    compiled = jit(lambda x: x.sum(axis=1))
    for lengths in ([2, 1], [0, 3], [1, 0]):
        compiled(Ragged(jnp.ones(3), np.array(lengths, np.int32)))
    assert compiled._cache_size() == 1


def test_rows_are_indexed_and_taken() -> None:
    rows = random_rows((3, 0, 2, 1), (2,))
    x = made(rows, 2, (2,))
    for i in (0, 1, -1, np.int64(2)):
        np.testing.assert_array_equal(x[i], rows[i])
    for index in (
        slice(1, None),
        slice(None, None, -1),
        [2, 0, 2],
        np.array([True, False, True, True]),
        np.array([], int),
    ):
        chosen = np.arange(4)[index]
        assert x[index].to_list() == [rows[i].tolist() for i in chosen]
    with pytest.raises(errors.IndexingError, match="rows alone"):
        x[0, 1]
    with pytest.raises(IndexError):
        x[4]
    with pytest.raises(errors.IndexingError, match="from 0 to 3"):
        x.take([4])
    with pytest.raises(errors.ShapeError, match="integers of shape"):
        x.take([[1]])
    traced = jit(lambda x, i: x.take(i, capacity=12))(x, jnp.array([2, 0, 2, 1]))
    assert traced.to_list() == [rows[i].tolist() for i in (2, 0, 2, 1)]
    assert [row.shape for row in x] == [row.shape for row in rows]


def test_concatenation_joins_rows() -> None:
    parts = [made(random_rows(n, (2,), seed=i), i, (2,)) for i, n in enumerate([(2, 0), (), (1, 3)])]
    expected = [row for x in parts for row in x.to_list()]
    for way in ways(lambda xs: concatenate(xs)):
        assert way(parts).to_list() == expected
    with pytest.raises(errors.OperandError, match="at least one"):
        concatenate([])
    with pytest.raises(errors.OperandError, match="expected a Ragged"):
        concatenate([np.ones(2)])  # type: ignore[list-item]
    with pytest.raises(errors.ShapeError, match="one shape"):
        concatenate([parts[0], made([np.ones(2)])])


def test_products() -> None:
    rows, others = random_rows((3, 0, 2), (2,)), random_rows((3, 0, 2), (4,), seed=1)
    x, y = made(rows, 2, (2,)), made(others, 0, (4,))
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    for way in ways(lambda x: x @ matrix):
        for row, got in zip(rows, way(x).to_list(), strict=True):
            np.testing.assert_allclose(np.reshape(got, (-1, 3)), row @ matrix, rtol=1e-5)
    for way in ways(contract):
        np.testing.assert_allclose(way(x, y), [a.T @ b for a, b in zip(rows, others, strict=True)], rtol=1e-5)
    with pytest.raises(errors.ShapeError, match="elements with an axis"):
        x.sum(axis=-1) @ matrix
    with pytest.raises(errors.ShapeError, match="must be vectors"):
        contract(x, x.sum(axis=-1))


def one_head(q: Any, k: Any, v: Any, causal: bool) -> Any:
    if not len(k):
        return np.zeros((len(q), v.shape[-1]))
    scores = q @ k.T / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.arange(len(k)) <= np.arange(len(q))[:, None], scores, -np.inf)
    return scipy.special.softmax(scores, axis=-1) @ v


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_each_row(causal: bool) -> None:
    q, k, v = (random_rows(n, (3,), seed=i) for i, n in enumerate([(2, 3, 0, 1), (4, 0, 2, 1), (4, 0, 2, 1)]))
    expected = [one_head(*args, causal) for args in zip(q, k, v, strict=True)]
    for way in ways(lambda q, k, v: dot_product_attention(q, k, v, is_causal=causal)):
        out = way(made(q, 2, (3,)), made(k, 1, (3,)), made(v, 0, (3,)))
        for got, row in zip(out.to_list(), expected, strict=True):
            np.testing.assert_allclose(np.reshape(got, row.shape), row, rtol=1e-4, atol=1e-5)
    heads = random_rows((2, 1), (2, 3))
    out = dot_product_attention(*[made(heads, 0, (2, 3))] * 3, is_causal=causal)
    for got, row in zip(out, heads, strict=True):
        for h in range(2):
            np.testing.assert_allclose(got[:, h], one_head(*[row[:, h]] * 3, causal), rtol=1e-4, atol=1e-5)
    with pytest.raises(errors.ShapeError, match="as many rows"):
        dot_product_attention(made(q, 0, (3,)), *[made(heads, 0, (2, 3))] * 2)


def test_attention_has_no_nan_in_gradients_of_rows_without_keys() -> None:
    q, k = made(random_rows((2, 1), (3,)), 2, (3,)), made(random_rows((0, 2), (3,), seed=1), 1, (3,))
    loss = lambda a, b: (dot_product_attention(q.with_values(a), k.with_values(b), k.with_values(b)) * 1.0).sum()
    for way in ways(grad(loss, (0, 1))):
        for gradient in way(q.values, k.values):
            assert jnp.isfinite(gradient).all()


def test_vmap_over_rows_gets_each_row_as_it_is() -> None:
    rows = random_rows((3, 0, 2, 3), (2,))
    x, scale = made(rows, 2, (2,)), np.arange(4, dtype=np.float32)

    def function(row: Any, s: Any) -> Any:
        return {"cumsum": jnp.cumsum(row, axis=0) * s, "gram": row.T @ row, "length": jnp.asarray(row.shape[0])}

    out = vmap(function)(x, scale)
    for row, s, got in zip(rows, scale, out["cumsum"].to_list(), strict=True):
        np.testing.assert_allclose(np.reshape(got, row.shape), np.cumsum(row, axis=0) * s, rtol=1e-5)
    np.testing.assert_allclose(out["gram"], [row.T @ row for row in rows], rtol=1e-5)
    np.testing.assert_array_equal(out["length"], [3, 0, 2, 3])
    # A result that happens to be as long as one row is not ragged.
    assert vmap(lambda row: jnp.zeros(2))(made([np.ones(2)])).shape == (1, 2)
    none = vmap(function)(made([], 0, (2,)), np.zeros(0, np.float32))
    assert none["cumsum"].to_list() == []
    assert none["gram"].shape == (0, 2, 2)


def test_vmap_of_padded_rows_gets_a_mask() -> None:
    rows = random_rows((3, 0, 2))
    x = made(rows, 2)
    function = lambda row, inside: (jnp.where(inside, row, 0).sum(), row * 2)
    for way in ways(vmap(function, padded=True)):
        total, double = way(x)
        np.testing.assert_allclose(total, [row.sum() for row in rows], rtol=1e-5, atol=1e-6)
        assert double.to_list() == [(2 * row).tolist() for row in rows]
    with pytest.raises(errors.ShapeError, match="expected 3 rows"):
        vmap(lambda a, b: a)(x, np.ones(2))
    with pytest.raises(errors.OperandError, match="a Ragged among"):
        vmap(jnp.sort)(np.ones(2))


LOSSES: dict[str, Callable[[Ragged], Any]] = {
    "softmax": lambda x: (x.softmax() * x.softmax()).sum(),
    "log_softmax": lambda x: (x.log_softmax() * x).sum(),
    "logsumexp": lambda x: (x.logsumexp(axis=1)[:1] ** 2).sum(),
    "mean": lambda x: (x.mean(axis=1)[0] ** 3) + x.mean() ** 2,
    "var": lambda x: x.var(axis=1)[2] + x.std(),
    "prod": lambda x: x.prod(axis=1).sum() + x.prod(),
    "max": lambda x: x.max(axis=1)[0] * x.min(axis=1)[2] * x.max(),
    "rows": lambda x: (x * x.sum(axis=1, keepdims=True)).sum(),
    "padded": lambda x: (x.to_padded(1.0) ** 3).sum(),
    "taken": lambda x: (x.take(np.array([2, 0, 2]), capacity=9) ** 2).sum(axis=1) @ jnp.arange(3.0),
    "joined": lambda x: (concatenate([x, x * 2]) ** 2).sum(axis=1) @ jnp.arange(6.0),
    "logs": lambda x: elementwise(jnp.log)(x * x).sum(),
}


@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_differences(name: str, padding: int, x64: None) -> None:
    x = made(random_rows((3, 0, 2), dtype=np.float64), padding, dtype=np.float64)
    f = lambda values: LOSSES[name](x.with_values(values))
    test_util.check_grads(f, (x.values,), order=2, eps=1e-4, atol=1e-5, rtol=1e-5)
    traced = jit(lambda values, lengths: grad(lambda v: LOSSES[name](Ragged(v, lengths, max_length=3)))(values))
    got = traced(x.values, x.lengths)
    np.testing.assert_allclose(got, grad(f)(x.values), rtol=1e-9, atol=1e-12)
    assert not got[5:].any()


def test_padding_makes_no_nan_of_gradients() -> None:
    """Values of padding are those of rows that were dropped: a function may have no derivative there."""
    table = jnp.array([[0.0], [2.0], [3.0]])
    indices, lengths = np.array([1, 2, 1, 0, 0]), np.array([2, 1], np.int32)
    loss = lambda table, n: elementwise(jnp.sqrt)(Ragged(table[indices, 0], n)).sum()
    for way in ways(grad(loss)):
        np.testing.assert_allclose(way(table, lengths)[:, 0], [0, 1 / np.sqrt(2), 0.5 / np.sqrt(3)], rtol=1e-6)
    moved = lambda table, n: Ragged(table[indices, 0], n).var(axis=1).sum()
    assert jnp.isfinite(grad(moved)(jnp.array([[np.inf], [2.0], [3.0]]), lengths)[1:]).all()


def test_a_ragged_array_is_a_tree() -> None:
    x = Ragged.from_list([[1.0, 2.0], [3.0]], max_length=4)
    leaves, structure = tree.flatten(x)
    assert len(leaves) == 2
    assert tree.unflatten(structure, leaves).max_length == 4
    _, tangent = jvp(lambda v: x.with_values(v).sum(axis=1), (x.values,), (jnp.ones(3),))
    np.testing.assert_array_equal(tangent, [2.0, 1.0])
    assert repr(tree.map(lambda leaf: None, x)).startswith("Ragged(")
    assert repr(x) == "Ragged([[1., 2.], [3.]], dtype=float32)"
    assert "rows=30" in repr(Ragged(np.ones(30), np.ones(30, int)))
    shown = []
    jit(lambda x: shown.append(repr(x)))(x)
    assert shown == ["Ragged(float32, rows=2, values=(3,), max_length=4)"]
    layer = elementwise(lambda v: (nn.relu(v @ jnp.ones((2, 2))), v))
    out = layer(made(random_rows((2, 1), (2,)), 0, (2,)))
    assert [y.rows for y in out] == [2, 2]
