"""Small operations of ``lax``: what they refuse, arguments that are accepted, algorithms of products, random bits."""

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import grad, jit, lax, make_jaxpr, vmap

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)
KEY = np.array([1, 2, 3, 4], np.uint32)
ROWS = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.exp(X, accuracy=3), ValueError, "accuracy must be a Tolerance, an AccuracyMode or None, got 3"),
        (lambda: lax.Tolerance(-1), ValueError, "must not be negative, got atol=-1"),
        (lambda: lax.dot(X, Y, precision="nope"), ValueError, "precision must be .*got 'nope'"),
        (lambda: lax.dot(X, Y, precision=("high", "F32_F32_F32")), ValueError, "precision must be"),
        (lambda: lax.dot(X.astype(int), Y.astype(int), precision="F32_F32_F32"), TypeError, "takes floats, got i32"),
        (lambda: lax.dot(X, Y, precision="ANY_F8_ANY_F8_F32"), TypeError, "8-bit floats, got f32"),
        (lambda: lax.tile(X, (2,)), ValueError, "a non-negative count for each axis of shape \\(4, 6\\)"),
        (lambda: lax.stack([]), ValueError, "at least one array"),
        (lambda: lax.stack([X, X], 3), ValueError, "axis 3 is out of bounds for an array of 3 axes"),
        (lambda: lax.unstack(X, 2), ValueError, "axis 2 is out of bounds"),
        (lambda: lax.broadcast_like(X, Y), ValueError, "incompatible shapes"),
        (lambda: lax.broadcast_like(X, X[:1]), ValueError, "cannot be broadcast"),
        (lambda: lax.bitcast_convert_type(X, bool), TypeError, "integers and floats to integers and floats, got f32"),
        (lambda: lax.bitcast_convert_type(X.astype(np.int8), "int32"), ValueError, "last axis has size 4"),
        (lambda: lax.reduce_precision(X, 0, 3), ValueError, "at least one exponent bit"),
        (lambda: lax.reduce_precision(X.astype(int), 5, 3), TypeError, "takes floats, got i32"),
        (lambda: lax.mulhi(X, X), TypeError, "mulhi takes integers, got f32"),
        (lambda: lax.approx_max_k(X, 7), ValueError, "k=7 must be from 0 to 6"),
        (lambda: lax.approx_max_k(X.astype(int), 1), TypeError, "approx_max_k takes floats"),
        (lambda: lax.approx_min_k(X, 1, recall_target=2.0), ValueError, "recall_target must be greater than 0"),
        (lambda: lax.approx_min_k(X, 1, recall_target=0.0), ValueError, "recall_target must be greater than 0"),
        (lambda: lax.index_take(X, (np.array([0]),), (0, 1)), ValueError, "one vector of positions for each axis"),
        (lambda: lax.index_take(X, (np.array([[0]]),), (0,)), ValueError, "vectors of one length, got shapes"),
        (lambda: lax.ragged_dot(X, Y, np.array([1])), ValueError, "takes arrays \\(m, k\\) and \\(g, k, n\\)"),
        (lambda: lax.ragged_dot(X, Y[None], np.array([1, 2])), ValueError, "group_sizes must have shape"),
        (lambda: lax.ragged_dot(X, Y[None], np.array([1.0])), TypeError, "group_sizes must be integers"),
        (lambda: lax.ragged_dot(X, X[None], np.array([1])), ValueError, "must have equal sizes"),
        (lambda: lax.ragged_dot(X, Y[None], np.array([4]), group_offset=0), NotImplementedError, "group_offset"),
        (lambda: lax.scaled_dot(X, Y, lhs_scale=np.ones((4, 4))), ValueError, "lhs_scale must have the shape"),
        (lambda: lax.scaled_dot(X, Y[0]), ValueError, "two matrices or two batches"),
        (lambda: lax.rng_bit_generator(KEY[:2], (2,)), ValueError, "takes a key of u32\\[4\\] or u64\\[2\\]"),
        (lambda: lax.rng_bit_generator(KEY, (2,), "int8"), TypeError, "returns uint8, .*got i8"),
        (lambda: lax.rng_bit_generator(KEY, (2,), algorithm=9), ValueError, "algorithm must be one of"),
        (lambda: lax.composite(lambda x: x, ""), ValueError, "name must be a non-empty string"),
        (lambda: lax.composite(lambda x: x, "f", -1), ValueError, "version must be"),
        (lambda: lax.platform_dependent(1.0, cuda=lambda x: x), NotImplementedError, "for the platform 'cpu'"),
        (lambda: jit(lambda: lax.platform_dependent(1.0, tpu=lambda x: x))(), NotImplementedError, "pass cpu="),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_accuracy_changes_nothing():
    for name in (
        "cbrt",
        "cos",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "logistic",
        "rsqrt",
        "sin",
        "sqrt",
        "tan",
        "tanh",
    ):
        f = getattr(lax, name)
        for accuracy in (lax.Tolerance(rtol=1e-3), lax.AccuracyMode.HIGHEST, None):
            assert f(0.5, accuracy=accuracy) == f(0.5)


def test_algorithms_of_products_are_numbered_as_in_jax():
    """A number that two names had would make them one."""
    assert {preset.name: preset.value for preset in lax.DotAlgorithmPreset} == {
        "DEFAULT": 0, "ANY_F8_ANY_F8_F32": 1, "ANY_F8_ANY_F8_F32_FAST_ACCUM": 2, "ANY_F8_ANY_F8_ANY": 3,
        "ANY_F8_ANY_F8_ANY_FAST_ACCUM": 4, "F16_F16_F16": 5, "F16_F16_F32": 6, "BF16_BF16_BF16": 7, "BF16_BF16_F32": 8,
        "BF16_BF16_F32_X3": 10, "BF16_BF16_F32_X6": 11, "BF16_BF16_F32_X9": 15, "TF32_TF32_F32": 12,
        "TF32_TF32_F32_X3": 13, "F32_F32_F32": 9, "F64_F64_F64": 14,
    }  # fmt: skip


@pytest.mark.parametrize("preset", list(lax.DotAlgorithmPreset))
def test_algorithms_of_products(preset):
    """Rounded as the name says, the more products the closer; differentiated and compiled."""
    if "F8" in preset.name:
        x, y = (pnp.array(v).astype("float8_e4m3fn") for v in (X, Y))
        exact = np.asarray(x.astype("float32")) @ np.asarray(y.astype("float32"))
        np.testing.assert_allclose(lax.dot(x, y, precision=preset, preferred_element_type="float32"), exact, rtol=1e-5)
        return
    f = lambda x: lax.dot(x, Y, precision=preset)
    error = np.abs(f(X) - X.astype(float) @ Y).max()
    bound = {"BF16": 3e-2, "TF32": 3e-3, "F16": 8e-3}.get(preset.name.split("_")[0], 2e-6)
    bound = {"X3": 1e-3 if "B" in preset.name else 1e-5, "X6": 1e-5, "X9": 1e-5}.get(preset.name.split("_")[-1], bound)
    assert error < bound * 2
    assert f(X).dtype == np.float32
    np.testing.assert_allclose(jit(f)(X), f(X), rtol=1e-5, atol=2e-2 if preset.name == "BF16_BF16_BF16" else 1e-5)
    np.testing.assert_allclose(grad(lambda x: f(x).sum())(X), Y.sum(1) + 0 * X, rtol=4e-2, atol=4e-2)
    assert (np.asarray(f(X)) == np.asarray(lax.dot(X, Y, precision=preset.name))).all()


def test_results_are_spread_as_asked():
    mesh = pullback.make_mesh((1,), ("i",), (pullback.sharding.AxisType.Auto,))
    rows = pullback.sharding.NamedSharding(mesh, pullback.P("i"))
    for f in (
        lambda: lax.broadcast(1.0, (2,), out_sharding=rows), lambda: lax.full((2,), 1.0, sharding=rows),
        lambda: lax.full_like(X, 1.0, sharding=rows), lambda: lax.empty(2, "float32", out_sharding=rows),
        lambda: lax.reshape(X, (24,), out_sharding=rows), lambda: lax.dot(X, Y, out_sharding=rows),
        lambda: lax.reduce_sum(X, (0,), out_sharding=rows),
        lambda: lax.broadcasted_iota("int32", (2,), 0, out_sharding=rows),
        lambda: lax.rng_bit_generator(KEY, (2,), out_sharding=rows)[1],
    ):  # fmt: skip
        assert f().sharding == rows
        np.testing.assert_allclose(jit(f)(), f(), rtol=1e-5)


@pytest.mark.parametrize("outside", [1, 4])
@pytest.mark.parametrize("batch", [1, 3])
def test_ragged_products_of_contracted_groups_with_other_axes(batch, outside):
    """Each group of the third axis by itself, with an axis of the batch and one more that is contracted."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, outside, 6, 2)).astype(np.float32)
    y = rng.normal(size=(5, batch, 6, outside)).astype(np.float32)
    sizes = np.array([[[(b + k) % 3, 2, 1] for k in range(outside)] for b in range(batch)])
    numbers = lax.RaggedDotDimensionNumbers((((1, 2), (3, 2)), ((0,), (1,))), [2], [])
    expected = np.zeros((3, batch, 2, 5))
    for b, k in np.ndindex(batch, outside):
        ends = np.cumsum(sizes[b, k])
        for g, (end, size) in enumerate(zip(ends, sizes[b, k], strict=True)):
            rows = slice(end - size, end)
            expected[g, b] += x[b, k, rows].T @ y[:, b, rows, k].T
    np.testing.assert_allclose(lax.ragged_dot_general(x, y, sizes, numbers), expected, rtol=1e-5, atol=1e-5)


def test_ragged_products_by_hand():
    w = np.random.default_rng(2).normal(size=(3, 6, 2)).astype(np.float32)
    sizes = np.array([1, 0, 2])
    expected = np.concatenate([X[:1] @ w[0], X[1:3] @ w[2], np.zeros((1, 2))])
    for how in (lambda f: f, jit):
        np.testing.assert_allclose(how(lax.ragged_dot)(X, w, sizes), expected, rtol=1e-5, atol=1e-6)
    loss = lambda x, w: (lax.ragged_dot(x, w, sizes) ** 2).sum()
    by_w = grad(loss, argnums=1)(pnp.array(X), pnp.array(w))
    assert [bool(g.any()) for g in by_w] == [True, False, True]
    xs = np.stack([X, 2 * X])
    mapped = vmap(grad(loss), in_axes=(0, None))(xs, w)
    np.testing.assert_allclose(mapped, [grad(loss)(x, w) for x in xs], rtol=1e-4, atol=1e-5)


def test_random_bits_of_several_keys():
    """As in JAX, a batch of keys has the bits of the first."""
    keys = np.stack([KEY, KEY + 7])
    f = lambda key: lax.rng_bit_generator(key, (2, 3))
    first, bits_of_first = lax.rng_bit_generator(keys[0], (2, 2, 3))
    for how in (lambda f: f, jit):
        new, bits = how(vmap(f))(keys)
        np.testing.assert_array_equal(new, [first, keys[1]])
        np.testing.assert_array_equal(bits, bits_of_first)
    assert vmap(f)(np.zeros((0, 4), np.uint32))[1].shape == (0, 2, 3)
    with pullback.enable_x64():
        wide = KEY.view(np.uint64)
        np.testing.assert_array_equal(
            lax.rng_bit_generator(wide, (3,), "uint32")[1], lax.rng_bit_generator(KEY, (3,))[1]
        )
        assert lax.rng_bit_generator(wide, (), "uint64")[1].dtype == np.uint64


def test_platforms_and_composites():
    f = lambda x: lax.platform_dependent(x, cpu=lambda x: x**2, cuda=lambda x: x + 1)
    for how in (lambda f: f, jit):
        assert how(grad(f))(3.0) == 6.0
        np.testing.assert_array_equal(how(vmap(f))(X), X**2)
    named = lax.composite(lambda x, *, by: x * by, name="my.scale")
    assert jit(grad(lambda x: named(x, by=3.0)))(2.0) == 3.0
    assert "my.scale" in jit(lambda x: named(x, by=3.0)).lower(1.0).as_text(debug_info=True)


def test_stage_lifts_into_the_trace():
    assert len(make_jaxpr(lambda: lax.stage(1.0))().eqns) == 1
    assert isinstance(lax.stage(np.ones(2)), pullback.Array)
    assert grad(lambda x: lax.stage(x) * 2)(1.0) == 2.0


def test_scan_takes_split_transpose():
    assert lax.scan(lambda c, x: (c + x, c), 0.0, X[0], _split_transpose=True)[0] == pytest.approx(X[0].sum(), rel=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_a_scalar_is_padded_by_nothing(dtype) -> None:
    x, zero = pnp.array(1, dtype), pnp.array(0, dtype)
    assert lax.pad(x, zero, ()) == jit(lambda x: lax.pad(x, zero, ()))(x) == 1


def test_precisions_and_algorithms_print_as_their_names():  # libraries look for the names in programs
    assert [str(p) for p in lax.Precision] == ["DEFAULT", "HIGH", "HIGHEST"]
    assert repr(lax.Precision.HIGHEST) == "Precision.HIGHEST"
    assert f"{lax.DotAlgorithmPreset.F32_F32_F32}" == "F32_F32_F32"
    assert repr(lax.DotAlgorithmPreset.F32_F32_F32) == "DotAlgorithmPreset.F32_F32_F32"
    assert str(lax.RandomAlgorithm.RNG_PHILOX) == "RNG_PHILOX"
    with pytest.raises(ValueError, match="precision must be"):  # a pair has precisions, not algorithms
        lax.dot(X, Y, precision=("high", lax.DotAlgorithmPreset.DEFAULT))


def test_a_description_says_the_shape_of_a_broadcast() -> None:
    like = pullback.ShapeDtypeStruct((2, 3), "int8")
    for run in (lambda f: f, jit):
        out = run(lambda x: lax.broadcast_like(x, like))(pnp.ones(3))
        assert (out.shape, out.dtype) == ((2, 3), np.float32)
