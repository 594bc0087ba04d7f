"""Sparse arrays: laws against dense computation, derivatives, transformations, and what is refused."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, lax
from pullback.core.errors import SparseEfficiencyWarning
from pullback.experimental import sparse
from tests.helpers import assert_elements_close

RNG = np.random.default_rng(0)


def drawn(*shape):
    return (RNG.normal(size=shape) * (RNG.random(shape) < 0.5)).astype(np.float32)


def layouts(rank, step=1):
    every = [(b, d) for b, d in itertools.product(range(rank + 1), repeat=2) if b + d <= rank]
    return every[::step]


def doubled(x, n_batch, n_dense):
    """A BCOO of ``x`` each element of which is stored in two halves, with padding that is not zero."""
    half = sparse.BCOO.fromdense(x / 2, n_batch=n_batch, n_dense=n_dense)
    lead = (slice(None),) * n_batch
    data, indices = [half.data, half.data], [half.indices, half.indices]
    if half.n_sparse:
        data.append(jnp.full_like(half.data[(*lead, slice(0, 1))], 7))
        indices.append(jnp.full_like(half.indices[(*lead, slice(0, 1))], 99))
    return sparse.BCOO((jnp.concatenate(data, n_batch), jnp.concatenate(indices, n_batch)), shape=x.shape)


X = drawn(3, 4, 2, 3)
LAYOUTS = layouts(4)
BROADCASTS = (
    ((2, 3, 4, 2, 3), (1, 2, 3, 4)),
    ((3, 4, 2, 3, 2), (0, 1, 2, 3)),
    ((3, 2, 4, 2, 3), (0, 2, 3, 4)),
)


def assert_dense(got, wanted):
    """Assert that an array is close to a dense one, from which it may differ in whether it is sparse."""
    got = got.todense() if isinstance(got, sparse.JAXSparse) else got
    assert_elements_close(got, wanted, rtol=1e-4, atol=1e-5, dtypes=False)


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_elements_are_moved_as_those_of_dense_arrays(n_batch, n_dense):
    m = doubled(X, n_batch, n_dense)
    assert (m.n_batch, m.n_dense, m.n_sparse) == (n_batch, n_dense, 4 - n_batch - n_dense)
    assert_dense(m, X)
    for order in ((1, 0, 2, 3), (3, 1, 0, 2), (0, 1, 3, 2), (0, 2, 1, 3)):
        assert_dense(sparse.bcoo_transpose(m, permutation=order), X.transpose(order))
    for shape in ((12, 6), (72,), (3, 2, 2, 2, 3), (12, 2, 3), (1, 3, 4, 2, 3, 1)):
        assert_dense(m.reshape(shape), X.reshape(shape))
    for axes in ((0,), (1,), (3,), (0, 2), (0, 1, 2, 3)):
        assert_dense(sparse.bcoo_reduce_sum(m, axes=axes), X.sum(axes))
    assert_dense(
        sparse.bcoo_slice(m, start_indices=(1, 0, 0, 1), limit_indices=(3, 4, 2, 3), strides=(1, 2, 1, 1)),
        X[1:3, ::2, :, 1:],
    )
    assert_dense(sparse.bcoo_dynamic_slice(m, (1, jnp.array(3), -1, 0), (2, 2, 1, 3)), X[1:3, 2:4, 1:2])
    assert_dense(sparse.bcoo_rev(m, (0, 1, 3)), X[::-1, ::-1, :, ::-1])
    for axis in range(4):
        assert_dense(sparse.bcoo_concatenate([m, m], dimension=axis), np.concatenate([X, X], axis))
    for shape, dims in BROADCASTS:
        out = sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=dims)
        assert_dense(out, lax.broadcast_in_dim(X, shape, dims))
    summed = m.sum_duplicates()
    assert summed.unique_indices
    assert summed.indices_sorted
    assert summed.nse <= m.nse
    assert_dense(summed, X)
    for other in LAYOUTS[::3]:
        assert_dense(sparse.bcoo_update_layout(m, n_batch=other[0], n_dense=other[1], on_inefficient=None), X)


CONTRACTIONS = (
    ((1,), (4, 5), (0,), (), ()),
    ((3, 1), (5, 4, 3), (2, 1), (), ()),
    ((2,), (3, 2, 5), (1,), (0,), (0,)),
    ((1, 2), (3, 4, 2, 3), (1, 2), (3, 0), (3, 0)),
    ((), (2,), (), (), ()),
)


@pytest.mark.parametrize(("n_batch", "n_dense"), LAYOUTS)
def test_products_are_those_of_dense_arrays(n_batch, n_dense):
    m = doubled(X, n_batch, n_dense)
    for xc, shape, yc, xb, yb in CONTRACTIONS:
        v = RNG.normal(size=shape).astype(np.float32)
        numbers, turned = ((xc, yc), (xb, yb)), ((yc, xc), (yb, xb))
        wanted = lax.dot_general(X, v, numbers)
        assert_dense(sparse.bcoo_dot_general(m, v, dimension_numbers=numbers), wanted)
        assert_dense(sparse.bcoo_dot_general(v, m, dimension_numbers=turned), lax.dot_general(v, X, turned))
        assert_dense(sparse.bcoo_dot_general(m, sparse.BCOO.fromdense(v), dimension_numbers=numbers), wanted)
    v = drawn(3, 1, 2, 1)
    assert_dense(m * v, X * v)
    y = drawn(3, 4, 2, 3)
    for other in LAYOUTS[::4]:
        assert_dense(m * doubled(y, *other), X * y)
        assert_dense(m - doubled(y, *other), X - y)
    assert_dense(m + y, X + y)
    assert_dense(y - m, y - X)
    assert_dense(m / (y + 9), X / (y + 9))
    assert_dense(abs(m) ** 2, X**2)
    assert_dense(2 * m, 2 * X)


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_windows_are_those_of_dense_arrays(mode):
    dense = np.where(np.arange(60).reshape(5, 4, 3) % 3 == 1, np.arange(60.0).reshape(5, 4, 3), 0).astype("float32")
    x = sparse.bcoo_fromdense(dense, n_dense=0)
    starts = jnp.asarray([[[3, 0], [0, 1]], [[1, 2], [2, 3]], [[-1, 0], [4, 1]]])  # the last two lie outside
    for collapsed, offset, sizes in (((0,), (1, 3), (1, 2, 3)), ((), (0, 1, 4), (2, 2, 3)), ((0, 1), (2,), (1, 1, 3))):
        numbers = lax.GatherDimensionNumbers(offset, collapsed, (0, 1))
        expected = lax.gather(dense, starts, numbers, sizes, mode=mode, fill_value=0 if mode == "fill" else None)
        found = sparse.bcoo_gather(x, starts, numbers, sizes, mode=mode)
        np.testing.assert_array_equal(found.todense(), expected)
    none = sparse.bcoo_gather(x, starts[:0], numbers, sizes, mode=mode)
    assert none.shape == (0, 2, 3)


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_derivatives_with_respect_to_data(n_batch, n_dense):
    x = drawn(2, 3, 4) + 0
    m = doubled(x, n_batch, n_dense)
    v = RNG.normal(size=(4, 2)).astype(np.float32)

    def loss(data, v, lib_dense=False):
        mat = sparse.BCOO((data, m.indices), shape=m.shape)
        mat = mat.todense() if lib_dense else mat
        return jnp.sin(mat @ v).sum() + (mat * mat).sum()

    def compute(of_dense):
        f = lambda d, v: loss(d, v, of_dense)
        g = pullback.grad(f, (0, 1))(m.data, v)
        t = pullback.jvp(f, (m.data, v), (jnp.cos(m.data), jnp.cos(v)))[1]
        second = pullback.jvp(lambda d: pullback.grad(f)(d, v), (m.data,), (jnp.ones_like(m.data),))[1]
        return [*g, t, second]

    wanted = compute(True)
    for a, b in zip(compute(False), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    for a, b in zip(pullback.jit(lambda: compute(False))(), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_gradients_of_sparse_arguments_are_sparse():
    m, v = sparse.BCOO.fromdense(drawn(3, 4)), RNG.normal(size=4).astype(np.float32)
    f = lambda tree, v: jnp.sin(tree["m"] @ v).sum()
    g = sparse.grad(f)({"m": m}, v)["m"]
    assert isinstance(g, sparse.BCOO)
    np.testing.assert_array_equal(g.indices, m.indices)
    wanted = np.cos(m.todense() @ v)[:, None] * v * (np.asarray(m.todense()) != 0)
    assert_dense(g, wanted)
    value, (gm, gv) = sparse.value_and_grad(f, (0, 1))({"m": m}, v)
    assert_dense(gm["m"], wanted)
    np.testing.assert_allclose(value, f({"m": m}, v))
    np.testing.assert_allclose(gv, np.cos(m.todense() @ v) @ m.todense(), rtol=1e-5)
    for jacobian in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        j = jacobian(lambda m: jnp.sin(m @ v))(m)
        assert j.n_batch == 1
        dense = pullback.jacrev(lambda x: jnp.sin(x @ v))(m.todense())
        assert_dense(j, dense * (np.asarray(m.todense()) != 0))


def test_vmap_and_scan_take_the_first_batch_axis():
    x, v = drawn(3, 4, 5), RNG.normal(size=5).astype(np.float32)
    m = sparse.BCOO.fromdense(x, n_batch=1)
    np.testing.assert_allclose(pullback.vmap(lambda m: m @ v)(m), x @ v, rtol=1e-5)
    out = pullback.vmap(lambda m: 2 * m)(m)
    assert out.shape == (3, 4, 5)
    assert_dense(out, 2 * x)
    total, rows = lax.scan(lambda c, m: (c + m.sum(), m.T), 0.0, m)
    np.testing.assert_allclose(total, x.sum(), rtol=1e-5)
    assert_dense(rows, x.swapaxes(1, 2))
    assert_dense(pullback.vmap(lambda v: m @ v)(jnp.stack([v, 2 * v])), np.stack([x @ v, 2 * x @ v]))


def dense_code(x, v):
    y = x @ v + (x * 2).sum(1) - jnp.sin(x).T.sum(0) + jnp.stack([x, x]).mean() + jnp.linalg.norm(x)
    y = pullback.jit(lambda a, x: a * (x @ v))(y, x)
    y = lax.cond(y[0] > 0, lambda x: x + x, lambda x: 2 * x, x) @ y[:4]
    total, rows = lax.scan(lambda c, r: (c + r @ v, r * 2), 0.0, x)
    grown = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[1]), (0, x))[1]
    return (
        y,
        total,
        rows,
        grown,
        x[0],
        x[:, 1:3],
        x[::-1],
        x[None],
        x[jnp.array([2, 0])],
        jnp.concatenate([x, x]),
        jnp.roll(x, 3, 1),
    )


def test_sparsify_evaluates_dense_code():
    x, v = drawn(4, 4), RNG.normal(size=4).astype(np.float32)
    wanted = dense_code(x + jnp.zeros(()), v)
    m = sparse.BCOO.fromdense(x)
    for form in (m, doubled(x, 0, 0), sparse.BCSR.from_bcoo(m)):
        for got, want in zip(sparse.sparsify(dense_code)(form, v), wanted, strict=True):
            assert_dense(got, want)
    compiled = pullback.jit(sparse.sparsify(lambda x, v: jnp.sin(x) @ v))(m, v)
    assert_dense(compiled, np.sin(x) @ v)
    assert isinstance(sparse.sparsify(lambda x: sparse.todense(x) + 1)(m), pullback.Array)


def test_sparsify_keeps_row_pointers():
    columns, bounds = jnp.array([2, 0, 0, 0]), jnp.array([0, 2, 4])
    m = sparse.BCSR((jnp.arange(1.0, 5.0), columns, bounds), shape=(2, 3))
    negative = sparse.sparsify(lax.neg)(m)
    assert negative.indices is m.indices
    assert negative.indptr is m.indptr
    assert negative.data.tolist() == [-1, -2, -3, -4]
    for f in (jnp.sin, lambda x: x.T, lambda x: x + x, lambda x: jnp.concatenate([x, x]), jit(jnp.sin), square):
        got = sparse.sparsify(f)(m)
        assert isinstance(got, sparse.BCSR)
        assert_dense(got, f(m.todense()))
    assert isinstance(sparse.sparsify(lambda x, y: x + y)(m, m.to_bcoo()), sparse.BCOO)


@pullback.custom_jvp
def square(x):
    return x**2


square.defjvp(lambda primals, tangents: (primals[0] ** 2, 10 * tangents[0] * primals[0]))


def test_sparsify_evaluates_functions_with_custom_rules():
    m = sparse.BCOO.fromdense(jnp.arange(3.0))
    assert sparse.sparsify(square)(m).data.tolist() == [1, 4]
    assert sparse.sparsify(grad(lambda x: square(x).sum()))(m).data.tolist() == [10, 20]


def test_duplicates_stay_where_conversions_keep_sums():
    m = sparse.BCOO((jnp.array([1, 2, 3]), jnp.array([[1], [1], [0]])), shape=(2,))
    with pullback.numpy_dtype_promotion("strict"):
        for convert in (lambda x: x.astype(np.float32), sparse.sparsify(jnp.copy), sparse.sparsify(jnp.float32)):
            assert convert(m).data.tolist() == [1, 2, 3]
        narrow = m.astype(np.float32).astype(jnp.float8_e5m2)
    assert narrow.data.tolist() == [3, 3, 0]
    assert narrow.dtype == jnp.float8_e5m2


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 0), (0, 2), (2, 0), (1, 1)])
def test_a_new_axis_keeps_the_layout(n_batch, n_dense):
    x = drawn(3, 4)
    m = sparse.BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    for item, batch in (((None,), 1), ((slice(None), None), n_batch > 0), ((Ellipsis, None), n_batch > 1)):
        assert m[item].n_batch == n_batch + batch
        assert_dense(m[item], x[item])
    assert sparse.BCSR.fromdense(x)[None].n_batch == 1


def test_negative_starts_count_from_the_end():
    m = sparse.BCOO.fromdense(X, n_batch=1, n_dense=1)
    start = (-2, -3, 0, -1)
    assert_dense(sparse.bcoo_dynamic_slice(m, start, (1, 2, 2, 1)), lax.dynamic_slice(X, start, (1, 2, 2, 1)))


def test_no_operation_broadcasts_ranks():
    m, small = doubled(X, 1, 1), sparse.BCSR.fromdense(X[0, :, :, 0])
    with pullback.numpy_rank_promotion("raise"):
        for relaid in ((0, 0), (2, 1), (1, 2)):
            numbers = dict(zip(("n_batch", "n_dense"), relaid, strict=True))
            assert_dense(sparse.bcoo_update_layout(m, **numbers, on_inefficient=None), X)
        assert_dense(sparse.bcoo_slice(m, start_indices=(0, 1, 0, 0), limit_indices=(3, 3, 2, 3)), X[:, 1:3])
        assert_dense(sparse.bcoo_dynamic_slice(m, (0, 1, 0, 0), (3, 2, 2, 3)), X[:, 1:3])
        assert_dense(sparse.bcoo_rev(m, (0, 1, 2)), X[::-1, ::-1, ::-1])
        assert_dense(sparse.bcoo_concatenate([m, m], dimension=1), np.concatenate([X, X], 1))
        assert_dense(m[1:, ..., [2, 0]], X[1:, ..., [2, 0]])
        assert_dense(small @ small.T, X[0, :, :, 0] @ X[0, :, :, 0].T)
        assert_dense(jit(lambda x: x @ x.T)(small), X[0, :, :, 0] @ X[0, :, :, 0].T)


def test_other_formats():
    x, v = drawn(4, 5), RNG.normal(size=5).astype(np.float32)
    for kind in (sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC):
        for nse in (None, 18):
            m = kind.fromdense(x, nse=nse)
            assert_dense(m, x)
            assert_dense(m.T, x.T)
            assert_dense(m @ v, x @ v)
            assert_dense(pullback.jit(lambda m: x.T @ m)(m), x.T @ x)
            assert_dense(m + m, 2 * x)
            assert_dense(m[1:3], x[1:3])
            assert m.sum().shape == ()
    assert isinstance(sparse.CSR.fromdense(x).T, sparse.CSC)


def test_scipy_and_back():
    theirs = scipy.sparse.random_array(
        (5, 6), density=0.4, dtype=np.float32, rng=np.random.default_rng(1), format="csr"
    )
    for kind in (sparse.BCOO, sparse.BCSR):
        ours = kind.from_scipy_sparse(theirs)
        assert_dense(ours, theirs.toarray())
        np.testing.assert_array_equal(ours.to_scipy_sparse().toarray(), theirs.toarray())
    with pytest.raises(TypeError, match="takes a sparse array of SciPy"):
        sparse.BCOO.from_scipy_sparse(np.eye(2))


def test_constructors():
    assert_dense(sparse.eye(3, 4, k=1), np.eye(3, 4, 1))
    for b, d in layouts(2):
        assert_dense(sparse.eye(4, 3, k=-1, n_batch=b, n_dense=d), np.eye(4, 3, -1))
    for name in ("bcoo", "bcsr", "coo", "csr", "csc"):
        assert_dense(sparse.empty((2, 3), sparse_format=name), np.zeros((2, 3)))
    m = sparse.random_bcoo(pullback.random.key(0), (100, 200), nse=0.01, sorted_indices=True, dtype="float32")
    assert m.nse == 200
    assert m.sum_duplicates().nse == 200
    assert m.unique_indices
    assert repr(m) == "BCOO(float32[100, 200], nse=200)"


def test_padding_has_no_part_whatever_it_holds():
    m = sparse.BCOO((jnp.array([1.0, jnp.nan, jnp.inf]), jnp.array([[0, 1], [-1, 0], [2, 9]])), shape=(3, 2))
    for f in (lambda m: m.todense(), lambda m: m @ jnp.ones(2), lambda m: jnp.ones(3) @ m, lambda m: m.sum()):
        for out in (f(m), pullback.jit(f)(m)):
            assert np.isfinite(out).all()
    f = lambda d: (sparse.BCOO((d, m.indices), shape=m.shape) @ jnp.full(2, jnp.inf)).sum()
    g = pullback.jit(pullback.grad(f))
    np.testing.assert_array_equal(g(jnp.zeros(3)), [jnp.inf, 0, 0])


def test_no_rule_holds_more_than_operands_and_results():
    """The products of each element with 256 columns would be 256 times as large as the data."""
    m = sparse.random_bcoo(pullback.random.key(0), (64, 64), nse=4000, dtype="float32")
    v = jnp.ones((64, 256))
    f = sparse.grad(lambda m, v: ((m @ v) ** 2).sum(), (0, 1))
    analysis = pullback.jit(f).lower(m, v).compile().memory_analysis()
    assert analysis.temp_size_in_bytes < 8 * (4000 * 3 + 64 * 256) * 4
    want = pullback.grad(lambda x: ((x @ v) ** 2).sum())(m.todense())
    assert_dense(f(m, v)[0], np.asarray(want) * (np.asarray(m.todense()) != 0))
    got = pullback.jit(f)(m, v)
    np.testing.assert_allclose(got[0].data, f(m, v)[0].data, rtol=1e-4)


M = sparse.BCOO.fromdense(np.eye(3, 4, dtype=np.float32))
ONES = np.ones(3, np.float32)
REFUSED = {
    "dtype of indices": (lambda: sparse.BCOO((ONES, np.zeros((3, 2))), shape=(3, 4)), TypeError, "array of integers"),
    "numbers of elements": (
        lambda: sparse.BCOO((ONES, np.zeros((2, 2), int)), shape=(3, 4)),
        ValueError,
        "must be the same",
    ),
    "axes": (lambda: sparse.BCOO((ONES, np.zeros((3, 3), int)), shape=(3, 4)), ValueError, "n_sparse=3"),
    "shape": (lambda: sparse.BCOO((ONES, np.zeros((3, 2), int)), shape=(3, -4)), ValueError, "non-negative"),
    "tuple": (lambda: sparse.BCOO(ONES, shape=(3,)), TypeError, r"takes a tuple \(data, indices\)"),
    "rows": (
        lambda: sparse.BCSR((ONES, np.zeros(3, int), np.zeros(3, int)), shape=(3, 4)),
        ValueError,
        "one more than",
    ),
    "matmul": (lambda: M @ ONES, TypeError, "do not match"),
    "add": (lambda: M + M.T, TypeError, "do not broadcast"),
    "dense sum": (lambda: M + 1, NotImplementedError, "would be dense"),
    "exp": (lambda: sparse.sparsify(jnp.exp)(M), NotImplementedError, "exp of a sparse array would be dense"),
    "no rule": (lambda: sparse.sparsify(jnp.cumsum)(M), NotImplementedError, "has no rule"),
    "equal": (lambda: M == M, NotImplementedError, "would be dense"),
    "traced nse": (lambda: pullback.jit(sparse.bcoo_sum_duplicates)(M), ValueError, "is static"),
    "traced fromdense": (lambda: pullback.jit(sparse.BCOO.fromdense)(np.eye(2)), ValueError, "is static"),
    "nse": (lambda: sparse.BCOO.fromdense(np.eye(2), nse=-1), ValueError, "non-negative"),
    "layout": (lambda: sparse.BCOO.fromdense(np.eye(2), n_batch=2, n_dense=1), ValueError, "are more than"),
    "inefficient": (lambda: M.update_layout(n_batch=1), ValueError, "many zeros"),
    "option": (lambda: M.update_layout(n_batch=1, on_inefficient="x"), ValueError, "'error', 'warn' or None"),
    "format": (lambda: sparse.eye(2, sparse_format="x"), ValueError, "must be one of"),
    "as an array": (lambda: np.asarray(M), TypeError, "x.todense"),
    "reshape": (lambda: M.reshape(5), ValueError, "cannot have the shape"),
    "transpose": (lambda: M.transpose(0, 0), ValueError, "not distinct axes"),
    "places": (lambda: sparse.random_bcoo(pullback.random.key(0), (2, 2), nse=9), ValueError, "different indices"),
    "jacobian": (lambda: sparse.jacrev(lambda m: 2 * m)(M), TypeError, "returns a sparse array"),
    "argnums": (lambda: sparse.grad(lambda m: m.sum(), argnums=3)(M), TypeError, "argnums=3"),
    "dense operand": (lambda: sparse.bcoo_todense(np.eye(2)), TypeError, "takes a BCOO"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


def test_inefficient_layouts_warn_if_asked_to():
    with pytest.warns(SparseEfficiencyWarning, match="many zeros"):
        assert_dense(M.update_layout(n_batch=1, on_inefficient="warn"), np.eye(3, 4))


FORMATS = [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_what_scipys_arrays_have(kind):
    dense = np.array([[0.0, 1, 0, 4], [2, 0, 3, 0], [0, 5, 0, 6]], np.float32)
    x, theirs = kind.fromdense(jnp.array(dense)), scipy.sparse.coo_array(dense)
    assert x.nnz == theirs.nnz == 6
    np.testing.assert_array_equal(x.toarray(), dense)
    for k in range(-4, 6):
        np.testing.assert_array_equal(x.diagonal(k), np.diagonal(dense, k) if -3 < k < 4 else [])
    for name in ("tocoo", "tocsr", "tocsc"):
        made = getattr(x, name)()
        assert made.format == name[2:]
        np.testing.assert_array_equal(made.toarray(), dense)
    np.testing.assert_array_equal(scipy.sparse.csr_matrix(x.to_scipy_sparse()).toarray(), dense)
    with pytest.raises(ValueError, match="unrecognized csr_matrix") as refused:
        scipy.sparse.csr_matrix(x)
    assert "x.to_scipy_sparse() for a SciPy array" in str(refused.value.__cause__)


def test_diagonals_of_sums_and_of_padding():
    x = sparse.BCOO((jnp.array([1.0, 2.0, 9.0, 4.0]), jnp.array([[1, 1], [1, 1], [3, 3], [0, 1]])), shape=(3, 3))
    assert x.nnz == 3  # one is padding
    np.testing.assert_array_equal(x.diagonal(), [0.0, 3.0, 0.0])
    np.testing.assert_array_equal(jit(lambda x: x.diagonal(1))(x), [4.0, 0.0])
    of_data = grad(lambda data: (sparse.BCOO((data, x.indices), shape=(3, 3)).diagonal() ** 2).sum())
    np.testing.assert_array_equal(of_data(x.data), [6.0, 6.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="a single sparse matrix, without batch and dense axes"):
        sparse.BCOO.fromdense(jnp.ones((2, 2, 2))).diagonal()


def test_elements_that_no_index_tells_apart_are_not_called_unique():
    vector = sparse.BCOO((jnp.ones(2), jnp.array([[0], [2]])), shape=(3,), unique_indices=True)
    rows = sparse.bcoo_update_layout(vector, n_batch=1, on_inefficient=None)
    assert not rows.unique_indices
    assert np.array_equal(rows.todense(), [1, 0, 1])


def test_padding_is_not_divided_by_zero():
    padded = sparse.BCOO((jnp.array([2.0, 0.0]), jnp.array([[1], [3]])), shape=(3,))
    out = padded / jnp.array([0.0, 4.0, 0.0])
    assert np.array_equal(out.data, [0.5, 0])
