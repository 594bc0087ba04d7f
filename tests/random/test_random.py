"""Random numbers: the figures of the generator's paper, recorded figures of JAX 0.10.2, and laws."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import random
from pullback.core import dtypes
from pullback.core.config import enable_x64, threefry_partitionable
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.primitives.random import bits as random_bits

# Figures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
@pytest.mark.parametrize("size", [None, 1, 3, 256, 257, 40000])
def test_known_answers_of_the_generator(key: Any, counter: Any, expected: Any, size: int | None) -> None:
    """The known answers that Random123, the generator's reference implementation, is tested with."""
    shape = () if size is None else (size,)
    words = [np.uint32(x) for x in key] + [np.full(shape, x, np.uint32) for x in counter]
    got = random_bits.threefry2x32(*map(pnp.asarray, words))
    for x, e in zip(got, expected, strict=True):
        assert x.dtype == np.uint32
        assert x.shape == shape
        assert np.all(np.asarray(x) == e)


FIGURES = json.loads((Path(__file__).parent / "figures.json").read_text())


def decoded(x: Any) -> Any:
    if isinstance(x, dict):
        return pnp.asarray(np.array(x["array"], x["dtype"]))
    return tuple(x) if isinstance(x, list) else x


def figure_name(case: dict[str, Any]) -> str:
    shown = ",".join(f"{k}={v['array'] if isinstance(v, dict) else v}" for k, v in case["arguments"].items())
    return f"{case['function']}({case['seed']};{shown}){'x64' if case['x64'] else ''}".replace(" ", "")


def as_figure(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(random.key_data(x) if x.dtype == dtypes.key_dtype else x)


@pytest.mark.parametrize("layout", ["original", "partitionable"])
@pytest.mark.parametrize("case", FIGURES, ids=figure_name)
def test_figures(case: dict[str, Any], layout: str) -> None:
    expected = case[layout]
    with enable_x64(case["x64"]), threefry_partitionable(layout == "partitionable"):
        arguments = {k: decoded(v) for k, v in case["arguments"].items()}
        out = as_figure(getattr(random, case["function"])(random.key(case["seed"]), **arguments))
    assert list(out.shape) == expected["shape"]
    assert out.dtype.name == expected["dtype"]
    if "crc32" in expected:
        assert zlib.crc32(np.ascontiguousarray(out).tobytes()) == expected["crc32"]
    flat = out.ravel()
    shown = flat if flat.size <= 12 else np.concatenate([flat[:4], flat[-4:]])
    values = np.array(expected["values"], np.float64)
    if out.dtype.kind == "c":
        shown, values = np.stack([shown.real, shown.imag], -1), values.reshape(-1, 2)
    # JAX's functions are a few units in the last place off the exact ones (its inverse error function up to 81).
    eps = float(dtypes.finfo(out.dtype).eps) if dtypes.is_inexact(out.dtype) else 0.0
    np.testing.assert_allclose(shown.astype(np.float64), values, rtol=90 * eps if eps < 1e-6 else 8 * eps, atol=8 * eps)


def test_figures_of_the_specification() -> None:
    _, weights, bias = random.split(random.key(0), 3)
    np.testing.assert_allclose(random.normal(weights, (3,)), [-0.36838785, -2.275689, 0.01144757], rtol=1e-5)
    np.testing.assert_allclose(random.normal(bias, ()), 0.8535516, rtol=1e-5)
    x = random.normal(random.PRNGKey(1234), (5,))
    expected = [0.48228705, 0.45585024, 0.99329686, 0.0953269, 0.8153717]
    np.testing.assert_allclose(pullback.vmap(pullback.grad(pnp.tanh))(x), expected, rtol=1e-5)


# Keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "narrow", "wide"),
    [
        (0, (0, 0), (0, 0)),
        (-1, (0, 2**32 - 1), (2**32 - 1, 2**32 - 1)),
        (2**40 + 3, (0, 3), (256, 3)),
        (-(2**63), (0, 0), (2**31, 0)),
        (True, (0, 1), (0, 1)),
        (np.int64(-3), (0, 2**32 - 3), (2**32 - 1, 2**32 - 3)),
        (np.uint64(2**63 + 5), (0, 5), (2**31, 5)),
        (np.int8(-3), (0, 2**32 - 3), (0, 2**32 - 3)),
        (np.uint8(200), (0, 200), (0, 200)),
    ],
)
def test_seeds(seed: Any, narrow: Any, wide: Any) -> None:
    assert tuple(np.asarray(random.PRNGKey(seed))) == narrow
    with enable_x64():
        assert tuple(np.asarray(random.PRNGKey(seed))) == wide
        assert tuple(np.asarray(random.key_data(random.key(seed)))) == wide


def test_seed_that_is_traced() -> None:
    seeds = pnp.arange(-2, 3)
    expected = [np.asarray(random.PRNGKey(i)) for i in range(-2, 3)]
    np.testing.assert_array_equal(pullback.vmap(random.PRNGKey)(seeds), expected)
    np.testing.assert_array_equal(random.key_data(pullback.vmap(random.key)(seeds)), expected)


def test_typed_keys_are_arrays() -> None:
    keys = random.split(random.key(7), (2, 3))
    assert keys.shape == (2, 3)
    assert keys.dtype == dtypes.key_dtype
    assert dtypes.issubdtype(keys.dtype, dtypes.prng_key)
    words = random.key_data(keys)
    assert words.shape == (2, 3, 2)
    assert words.dtype == np.uint32
    np.testing.assert_array_equal(random.key_data(keys[1, 2]), words[1, 2])
    np.testing.assert_array_equal(random.key_data(keys[1]), words[1])
    np.testing.assert_array_equal(random.key_data(random.wrap_key_data(words)), words)
    np.testing.assert_array_equal(random.key_data(keys.reshape(6)), words.reshape(6, 2))
    _, second = keys
    np.testing.assert_array_equal(random.key_data(second), words[1])
    assert random.key_data(random.split(random.key(0), 0)).shape == (0, 2)


def test_typed_and_raw_keys_draw_the_same() -> None:
    typed, raw = random.key(3), random.PRNGKey(3)
    np.testing.assert_array_equal(random.normal(typed, (4,)), random.normal(raw, (4,)))
    np.testing.assert_array_equal(random.normal(np.array([0, 3], "uint32"), (4,)), random.normal(raw, (4,)))
    np.testing.assert_array_equal(random.key_data(random.split(typed, 3)), random.split(raw, 3))
    np.testing.assert_array_equal(random.key_data(random.fold_in(typed, 3)), random.fold_in(raw, 3))
    assert random.key_impl(typed) == random.key_impl(raw) == "threefry2x32"
    np.testing.assert_array_equal(random.key_data(random.clone(typed)), random.clone(raw))
    np.testing.assert_array_equal(random.key_data(raw), raw)


def test_fold_in_takes_numbers_of_any_dtype() -> None:
    key = random.PRNGKey(0)
    expected = random.fold_in(key, 2**32 - 1)
    np.testing.assert_array_equal(random.fold_in(key, np.int64(-1)), expected)
    np.testing.assert_array_equal(random.fold_in(key, pnp.int32(-1)), expected)
    np.testing.assert_array_equal(random.fold_in(key, 3.7), random.fold_in(key, 3))


# Transformations ---------------------------------------------------------------------------------------------------

DRAWS: dict[str, Any] = {
    "bits": lambda k: random.bits(k, (3,)),
    "bits8": lambda k: random.bits(k, (2, 3), "uint8"),
    "uniform": lambda k: random.uniform(k, (3,), minval=-1.0, maxval=2.0),
    "normal": lambda k: random.normal(k, (2, 3)),
    "normal0": lambda k: random.normal(k),
    "complex": lambda k: random.normal(k, (3,), "complex64"),
    "split": lambda k: random.key_data(random.split(k, 3)),
    "fold_in": lambda k: random.key_data(random.fold_in(k, 5)),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (3,)),
    "bernoulli_high": lambda k: random.bernoulli(k, 0.3, (3,), mode="high"),
    "randint": lambda k: random.randint(k, (3,), -4, 9),
    "randint_arrays": lambda k: random.randint(k, (3,), pnp.array([0, 5, 9]), 9),
    "permutation": lambda k: random.permutation(k, 7),
    "permutation2": lambda k: random.permutation(k, pnp.arange(12).reshape(3, 4), axis=1, independent=True),
    "choice": lambda k: random.choice(k, 7, (3,), replace=False),
    "choice_p": lambda k: random.choice(k, 3, (4,), p=pnp.array([0.2, 0.3, 0.5])),
    "choice_p_distinct": lambda k: random.choice(k, 3, (2,), replace=False, p=pnp.array([0.2, 0.3, 0.5])),
    "categorical": lambda k: random.categorical(k, pnp.zeros((2, 5)), shape=(3, 2)),
    "gumbel": lambda k: random.gumbel(k, (3,), mode="high"),
    "exponential": lambda k: random.exponential(k, (3,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (3,)),
    "laplace": lambda k: random.laplace(k, (3,)),
    "logistic": lambda k: random.logistic(k, (3,)),
    "cauchy": lambda k: random.cauchy(k, (3,)),
    "rademacher": lambda k: random.rademacher(k, (3,)),
}


@pytest.mark.parametrize("layout", [False, True], ids=["original", "partitionable"])
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "raw"])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_vmap_over_keys_is_a_loop(draw: Any, typed: bool, layout: bool) -> None:
    with threefry_partitionable(layout):
        keys = random.split(random.key(5) if typed else random.PRNGKey(5), 4)
        expected = np.stack([np.asarray(draw(keys[i])) for i in range(4)])
        np.testing.assert_array_equal(pullback.vmap(draw)(keys), expected)
        np.testing.assert_array_equal(
            pullback.vmap(draw, in_axes=-1 if typed else 0, out_axes=-1)(keys)[..., 2], expected[2]
        )


@pytest.mark.parametrize("layout", [False, True], ids=["original", "partitionable"])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_staged_is_eager(draw: Any, layout: bool) -> None:
    key = random.key(5)
    with threefry_partitionable(layout):
        expected = np.asarray(draw(key))
        closed = pullback.make_jaxpr(draw)(key)
    (out,) = pullback.core.jaxpr.eval_jaxpr(closed.jaxpr, closed.consts, key)
    pullback.core.jaxpr_check.check_jaxpr(closed)
    assert out.dtype == expected.dtype
    np.testing.assert_array_equal(out, expected)
    vmapped = pullback.make_jaxpr(pullback.vmap(draw))(random.split(key, 2))
    pullback.core.jaxpr_check.check_jaxpr(vmapped)


def test_vmap_of_vmap_over_keys() -> None:
    keys = random.split(random.key(5), (2, 3))
    out = pullback.vmap(pullback.vmap(lambda k: random.normal(k, (4,))), in_axes=1)(keys)
    assert out.shape == (3, 2, 4)
    np.testing.assert_array_equal(out[2, 1], random.normal(keys[1, 2], (4,)))


def test_large_and_small_draws_have_the_same_layout() -> None:
    """Few counters are hashed by other means than many; a draw within a mapped function by the same as outside."""
    key = random.key(11)
    for count in (510, 511, 512, 513, 514, 40001):
        expected = pullback.make_jaxpr(lambda k, n=count: random.bits(k, (n,)))(key)
        (staged,) = pullback.core.jaxpr.eval_jaxpr(expected.jaxpr, expected.consts, key)
        np.testing.assert_array_equal(random.bits(key, (count,)), staged)
        twice = pullback.vmap(lambda k, n=count: random.bits(k, (n,)))(pnp.stack([random.PRNGKey(11)] * 2))
        np.testing.assert_array_equal(twice[1], staged)


def test_eval_shape_draws_nothing() -> None:
    struct = pullback.eval_shape(lambda k: random.normal(k, (10**4, 10**5)), random.key(0))
    assert (struct.shape, struct.dtype) == ((10**4, 10**5), np.dtype("float32"))


def test_layout_is_fixed_when_staged() -> None:
    key = random.key(0)
    with threefry_partitionable():
        closed = pullback.make_jaxpr(lambda k: random.bits(k, (5,)))(key)
        expected = random.bits(key, (5,))
    np.testing.assert_array_equal(pullback.core.jaxpr.eval_jaxpr(closed.jaxpr, closed.consts, key)[0], expected)


def test_vmap_over_parameters() -> None:
    key, bounds = random.key(0), pnp.array([1.0, 2.0, 3.0])
    got = pullback.vmap(lambda b: random.uniform(key, (4,), minval=-b, maxval=b))(bounds)
    expected = np.stack([np.asarray(random.uniform(key, (4,), minval=-b, maxval=b)) for b in (1.0, 2.0, 3.0)])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_derivatives_by_bounds() -> None:
    key = random.key(1)
    u = np.asarray(random.uniform(key, (5,)))
    low, high = pullback.grad(lambda a, b: random.uniform(key, (5,), minval=a, maxval=b).sum(), (0, 1))(-1.0, 2.0)
    np.testing.assert_allclose(low, np.sum(1 - u), rtol=1e-5)
    np.testing.assert_allclose(high, np.sum(u), rtol=1e-5)
    assert pullback.vmap(pullback.grad(lambda b, k: random.uniform(k, maxval=b)), (None, 0))(
        2.0, random.split(key)
    ).shape == (2,)


def test_derivative_of_truncated_normal_is_that_of_its_quantiles() -> None:
    def draw(a: Any) -> Any:
        return random.truncated_normal(random.key(1), a, 2.0, (3,))

    with enable_x64():
        step = 1e-6
        expected = (np.asarray(draw(-1 + step)) - np.asarray(draw(-1 - step))) / (2 * step)
        np.testing.assert_allclose(pullback.jacfwd(draw)(-1.0), expected, rtol=1e-6)
        np.testing.assert_allclose(pullback.jacrev(draw)(-1.0), expected, rtol=1e-6)


def test_key_in_a_differentiated_function() -> None:
    def loss(w: Any, key: Any) -> Any:
        return (w * random.normal(key, (3,))).sum()

    key = random.key(2)
    np.testing.assert_allclose(pullback.grad(loss)(2.0, key), np.asarray(random.normal(key, (3,))).sum(), rtol=1e-6)
    out, tangent = pullback.jvp(lambda s: random.gumbel(key) * s, (2.0,), (1.0,))
    np.testing.assert_allclose(out, 2 * tangent, rtol=1e-6)
    logits = pnp.array([0.5, 0.2])
    assert pullback.jvp(lambda x: random.categorical(key, x) * 1.0, (logits,), (logits,))[1] == 0


# Distributions -----------------------------------------------------------------------------------------------------

CUMULATIVE: dict[str, Any] = {
    "uniform": lambda x: np.clip(x, 0, 1),
    "normal": lambda x: 0.5 + 0.5 * np.vectorize(math.erf)(x / math.sqrt(2)),
    "exponential": lambda x: -np.expm1(-x),
    "gumbel": lambda x: np.exp(-np.exp(-x)),
    "laplace": lambda x: np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0))),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "cauchy": lambda x: 0.5 + np.arctan(x) / np.pi,
}
COUNT = 20000


def kolmogorov_distance(sample: Any, cumulative: Any) -> float:
    x = np.sort(np.asarray(sample, np.float64).ravel())
    steps = np.arange(x.size + 1) / x.size
    f = cumulative(x)
    return float(max(np.max(steps[1:] - f), np.max(f - steps[:-1])))


@pytest.mark.parametrize("name", CUMULATIVE)
def test_distribution(name: str) -> None:
    sample = getattr(random, name)(random.key(123), (COUNT,))
    assert np.all(np.isfinite(sample))
    assert kolmogorov_distance(sample, CUMULATIVE[name]) < 1.63 / math.sqrt(COUNT)  # the 1 % level


def test_distribution_of_truncated_normal() -> None:
    normal = CUMULATIVE["normal"]
    ends = normal(np.array([-0.5, 1.5]))
    sample = np.asarray(random.truncated_normal(random.key(1), -0.5, 1.5, (COUNT,)))
    assert sample.min() > -0.5
    assert sample.max() < 1.5
    assert kolmogorov_distance(sample, lambda x: (normal(x) - ends[0]) / (ends[1] - ends[0])) < 1.63 / math.sqrt(COUNT)


def test_truncated_normals_never_are_their_bounds() -> None:
    low = np.float32(1)
    between = np.nextafter(low, np.float32(2))
    high = np.nextafter(between, np.float32(2))
    for a, b, x in ((low, high, between), (-high, -low, -between)):
        np.testing.assert_array_equal(random.truncated_normal(random.key(0), a, b, (100,)), np.full(100, x))


def test_moments_of_complex_normals() -> None:
    z = np.asarray(random.normal(random.key(1), (COUNT,), "complex64"))
    np.testing.assert_allclose(np.mean(np.abs(z) ** 2), 1, rtol=0.03)
    np.testing.assert_allclose(np.mean(z**2), 0, atol=0.03)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats(dtype: str) -> None:
    x = np.asarray(random.uniform(random.key(1), (COUNT,), dtype)).astype(np.float64)
    assert x.min() >= 0
    assert x.max() < 1
    np.testing.assert_allclose(x.mean(), 0.5, atol=0.02 + float(dtypes.finfo(dtype).eps))


def chi_square(counts: Any, chances: Any) -> float:
    expected = np.asarray(chances, np.float64) * np.sum(counts)
    return float(np.sum((np.asarray(counts) - expected) ** 2 / expected))


def test_distribution_of_integers_and_choices() -> None:
    limit = 21.7  # the 1 % level of chi-square with 9 degrees of freedom
    key = random.key(9)
    uniform = np.full(10, 0.1)
    assert chi_square(np.bincount(random.randint(key, (COUNT,), 0, 10), minlength=10), uniform) < limit
    assert chi_square(np.bincount(random.choice(key, 10, (COUNT,)), minlength=10), uniform) < limit
    p = np.arange(1, 11) / 55
    chosen = random.choice(key, 10, (COUNT,), p=pnp.asarray(p))
    assert chi_square(np.bincount(chosen, minlength=10), p) < limit
    drawn = random.categorical(key, pnp.log(pnp.asarray(p)), shape=(COUNT,))
    assert chi_square(np.bincount(drawn, minlength=10), p) < limit
    first = pullback.vmap(lambda k: random.permutation(k, 10)[0])(random.split(key, 5000))
    assert chi_square(np.bincount(first, minlength=10), uniform) < limit


def test_bernoulli_and_rademacher() -> None:
    assert abs(np.mean(random.bernoulli(random.key(0), 0.3, (COUNT,))) - 0.3) < 0.01
    signs = np.asarray(random.rademacher(random.key(0), (COUNT,)))
    assert set(signs.tolist()) == {-1, 1}
    assert abs(signs.mean()) < 0.02


def test_permutations_and_choices_keep_the_elements() -> None:
    x = np.arange(24).reshape(4, 6)
    for options in ({"axis": 0}, {"axis": 1}, {"axis": 1, "independent": True}):
        out = np.asarray(random.permutation(random.key(3), pnp.asarray(x), **options))
        axis = options["axis"]
        np.testing.assert_array_equal(np.sort(out, axis), x)
    keys = random.split(random.key(0), 5)
    words = np.asarray(random.key_data(random.permutation(random.key(1), keys)))
    assert sorted(map(tuple, words)) == sorted(map(tuple, np.asarray(random.key_data(keys))))
    assert random.choice(random.key(0), keys, (2, 3)).shape == (2, 3)
    assert random.choice(random.key(0), pnp.ones((2, 3)), (0,), axis=1).shape == (2, 0)
    distinct = np.asarray(random.choice(random.key(0), 50, (50,), replace=False))
    np.testing.assert_array_equal(np.sort(distinct), np.arange(50))


def test_derivative_of_a_permuted_array() -> None:
    x = pnp.array([1.0, 2.0, 3.0])
    jacobian = np.asarray(pullback.jacrev(lambda x: random.permutation(random.key(0), x))(x))
    np.testing.assert_array_equal(jacobian @ np.asarray(x), random.permutation(random.key(0), x))


# Errors ------------------------------------------------------------------------------------------------------------

KEY = random.key(0)
MANY = random.split(KEY, 3)
ERRORS: list[tuple[Any, Any, str]] = [
    (lambda: random.normal(0), OperandError, "normal: expected a random key.*got 0 of type int"),
    (lambda: random.normal("seed"), OperandError, "got 'seed' of type str"),
    (lambda: random.normal(None), OperandError, "got None of type NoneType"),
    (lambda: random.uniform([0, 1]), OperandError, "got \\[0, 1\\] of type list"),
    (lambda: random.normal(pnp.zeros(2)), OperandError, "got an array of shape \\(2,\\) and dtype float32"),
    (lambda: random.normal(pnp.zeros(3, "uint32")), OperandError, "shape \\(3,\\) and dtype uint32"),
    (lambda: random.normal(MANY), ArgumentError, "normal takes one key, got an array of keys.*\\(3,\\); use vmap"),
    (lambda: random.normal(random.key_data(MANY)), ArgumentError, "shape \\(3,\\); use vmap"),
    (lambda: random.split(MANY), ArgumentError, "split takes one key"),
    (lambda: random.split(KEY, -1), ShapeError, "must not be negative"),
    (lambda: random.split(KEY, 2.5), ShapeError, "split: a shape must be an int"),
    (lambda: random.fold_in(KEY, -1), OverflowError, "must be from 0 to 2\\*\\*32 - 1, got -1"),
    (lambda: random.fold_in(KEY, 2**32), OverflowError, "got 4294967296"),
    (lambda: random.fold_in(KEY, pnp.arange(2)), ArgumentError, "data must be a scalar, got .* shape \\(2,\\)"),
    (lambda: random.fold_in(KEY, "a"), OperandError, "data must be an integer, got 'a' of type str"),
    (lambda: random.fold_in(KEY, KEY), OperandError, "data must be an integer, got key<fry>"),
    (lambda: random.key(1.5), OperandError, "key: the seed must be an integer, got f32: 1.5"),
    (lambda: random.key("a"), OperandError, "the seed must be an integer, got 'a' of type str"),
    (lambda: random.PRNGKey(None), OperandError, "PRNGKey: the seed must be an integer, got None"),
    (lambda: random.key(KEY), OperandError, "the seed must be an integer, got key<fry>"),
    (lambda: random.key(pnp.arange(3)), ArgumentError, "the seed must be a scalar.*\\(3,\\); use vmap"),
    (lambda: random.key(2**63), OverflowError, "the seed 9223372036854775808 does not fit into 64 bits"),
    (lambda: random.key(0, impl="dice"), ArgumentError, "unknown random generator 'dice'; the generators are"),
    (lambda: random.key_data(pnp.zeros(2)), OperandError, "key_data: expected a random key"),
    (lambda: random.key_impl(3), OperandError, "key_impl: expected a random key"),
    (lambda: random.clone("k"), OperandError, "clone: expected a random key"),
    (lambda: random.wrap_key_data(KEY), OperandError, "got an array of keys"),
    (lambda: random.wrap_key_data(pnp.zeros((2, 3), "uint32")), OperandError, "shape \\(2, 3\\) and dtype uint32"),
    (lambda: random.normal(KEY, (-1,)), ShapeError, "must not be negative"),
    (lambda: random.normal(KEY, (2.5,)), ShapeError, "normal: a shape must be an int or a sequence of ints"),
    (lambda: random.normal(KEY, (3,), int), ArgumentError, "its dtype must be inexact, got i32"),
    (lambda: random.uniform(KEY, (3,), "int8"), ArgumentError, "its dtype must be floating-point, got i8"),
    (lambda: random.uniform(KEY, (3,), "complex64"), ArgumentError, "got c64"),
    (lambda: random.uniform(KEY, (3,), "no such"), DtypeError, "unknown dtype 'no such'"),
    (lambda: random.uniform(KEY, (3,), minval=pnp.zeros(4)), ShapeError, "minval of shape \\(4,\\).*is \\(3,\\)"),
    (lambda: random.uniform(KEY, (3,), minval=pnp.zeros((2, 3))), ShapeError, "minval of shape \\(2, 3\\)"),
    (lambda: random.uniform(KEY, (3,), minval="a"), OperandError, "uniform: minval"),
    (lambda: random.uniform(KEY, (3,), maxval=1j), DtypeError, "maxval must be a real number, got c64"),
    (lambda: random.bits(KEY, (3,), "int32"), ArgumentError, "bits returns unsigned integers"),
    (lambda: random.bits(KEY, (2**17, 2**17)), ShapeError, "split the key"),
    (lambda: random.bernoulli(KEY, 1), DtypeError, "p must have a floating-point dtype, got i32: 1"),
    (lambda: random.bernoulli(KEY, pnp.zeros(3), (4,)), ShapeError, "p of shape \\(3,\\)"),
    (lambda: random.bernoulli(KEY, 0.5, mode="x"), ArgumentError, "mode must be 'low' or 'high'"),
    (lambda: random.gumbel(KEY, mode="x"), ArgumentError, "mode must be 'low' or 'high'"),
    (lambda: random.randint(KEY, (3,), 0, 5, "float32"), ArgumentError, "randint returns integers"),
    (lambda: random.randint(KEY, (3,), 0, 2**40), OverflowError, "maxval=1099511627776 is out of the range of i32"),
    (lambda: random.randint(KEY, (3,), -(2**40), 0), OverflowError, "minval=-1099511627776"),
    (lambda: random.randint(KEY, (3,), pnp.zeros(4, int), 5), ShapeError, "minval of shape \\(4,\\)"),
    (lambda: random.randint(KEY, (3,), 0, 1j), DtypeError, "maxval must be an integer, got c64"),
    (lambda: random.truncated_normal(KEY, pnp.zeros(2), pnp.ones(3)), ShapeError, "lower .*2,\\), upper .*3,\\)"),
    (lambda: random.permutation(KEY, 3.0), DtypeError, "x must be an integer or an array with axes, got 3.0"),
    (lambda: random.permutation(KEY, pnp.arange(3), axis=1), ShapeError, "axis 1 is out of bounds"),
    (lambda: random.choice(KEY, 5, (3,), p=pnp.ones(4)), ShapeError, "p must have shape \\(5,\\).*got shape \\(4,\\)"),
    (lambda: random.choice(KEY, 0, (3,)), ArgumentError, "cannot draw from a population of 0"),
    (lambda: random.choice(KEY, 2, (3,), replace=False), ArgumentError, "3 elements cannot be drawn from 2"),
    (lambda: random.categorical(KEY, pnp.zeros(3), axis=2), ShapeError, "axis 2 is out of bounds"),
    (lambda: random.categorical(KEY, 1.0), ShapeError, "an axis of categories"),
    (lambda: random.categorical(KEY, pnp.zeros((2, 3)), shape=(3,)), ShapeError, "logits of shape \\(2,\\)"),
    (lambda: random.categorical(KEY, pnp.zeros(3), shape=(4,), replace=False), ArgumentError, "4 categories cannot"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[m for _, _, m in ERRORS])
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_errors_of_the_primitives() -> None:
    word = pnp.uint32(1)
    with pytest.raises(DtypeError, match="threefry2x32 takes operands of uint32"):
        pullback.make_jaxpr(random_bits.threefry2x32)(word, word, word, 1.5)
    with pytest.raises(ShapeError, match="incompatible shapes"):
        random_bits.threefry2x32(word, word, pnp.zeros(2, "uint32"), pnp.zeros(3, "uint32"))
    with pytest.raises(ShapeError, match="a shape that ends with 2"):
        pullback.make_jaxpr(random_bits.random_wrap)(pnp.zeros(3, "uint32"))
    with pytest.raises(DtypeError, match="expected typed random keys"):
        pullback.make_jaxpr(random_bits.random_unwrap)(pnp.zeros(3))


def test_traced_key_of_the_wrong_kind() -> None:
    with pytest.raises(OperandError, match="expected a random key"):
        pullback.make_jaxpr(random.normal)(pnp.zeros(2))
    with pytest.raises(ArgumentError, match="use vmap"):
        pullback.vmap(random.normal)(random.split(KEY, (2, 3)))


# Costs -------------------------------------------------------------------------------------------------------------


def test_scipy_is_not_imported_before_it_is_needed() -> None:
    program = (
        "import sys; from pullback import random; random.uniform(random.key(0), (3,)); "
        "assert not any(m.startswith('scipy') for m in sys.modules), [m for m in sys.modules if 'scipy' in m]"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_keys_of_their_own_dtype_by_a_switch():
    made = pullback.jit(lambda: random.PRNGKey(3))
    assert made().dtype == np.uint32
    with pullback.enable_custom_prng():
        for key in (random.PRNGKey(3), made()):
            assert pullback.dtypes.issubdtype(key.dtype, pullback.dtypes.prng_key)
            np.testing.assert_array_equal(random.key_data(key), [0, 3])


def test_the_sharding_of_an_array_outside_of_meshes() -> None:
    """Optax draws arrays with the sharding of each parameter, also where there is no mesh."""
    sharding: Any = pullback.typeof(pnp.ones(3)).sharding
    out = random.uniform(random.key(0), (3,), out_sharding=sharding)
    np.testing.assert_array_equal(out, random.uniform(random.key(0), (3,)))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "philox4x32"])
def test_keys_out_of_bounds_are_the_greatest_words(impl: str) -> None:
    """They were keys of zeros, which are the keys of the seed zero."""
    keys = random.split(random.key(0, impl=impl), 3)
    words = random.key_data(keys)
    for run in (lambda f: f, pullback.jit):
        for take in (lambda k: k.at[100].get(mode="fill"), lambda k: pnp.take(k, 100, mode="fill")):
            out = run(take)(keys)
            assert out.dtype == keys.dtype
            assert random.key_data(out).tolist() == [0xFFFFFFFF] * words.shape[1]
