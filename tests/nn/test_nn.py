"""Functions for neural networks at their corners: kinks, overflow, nothing to sum; with figures of JAX 0.10.2."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import pullback
import pullback.numpy as pnp
from pullback import grad, hessian, jacfwd, jacobian, jacrev, jit, jvp, masked_zeros, nn, random, vmap
from pullback.core.config import enable_x64, override
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError, TracerIntegerConversionError
from pullback.scipy import special
from tests.helpers import assert_elements_close

INF, NAN = np.inf, np.nan
X = [-1000.0, -20.0, -1.0, 0.0, 0.5, 3.0, 20.0, 1000.0]

# fmt: off
JAX = {  # values and derivatives at X
    "relu": ([0, 0, 0, 0, 0.5, 3, 20, 1000], [0, 0, 0, 0, 1, 1, 1, 1]),
    "relu6": ([0, 0, 0, 0, 0.5, 3, 6, 6], [0, 0, 0, 0, 1, 1, 0, 0]),
    "leaky_relu": ([-10, -0.2, -0.01, 0, 0.5, 3, 20, 1000], [0.01, 0.01, 0.01, 1, 1, 1, 1, 1]),
    "hard_tanh": ([-1, -1, -1, 0, 0.5, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0, 0]),
    "hard_sigmoid": ([0, 0, 0.3333333, 0.5, 0.5833334, 1, 1, 1], [0, 0, 0.1666667, 0.1666667, 0.1666667, 0, 0, 0]),
    "hard_silu": ([0, 0, -0.3333333, 0, 0.2916667, 3, 20, 1000], [0, 0, 0.1666667, 0.5, 0.6666667, 1, 1, 1]),
    "sparse_plus": ([0, 0, 0, 0.25, 0.5625, 3, 20, 1000], [0, 0, 0, 0.5, 0.75, 1, 1, 1]),
    "sparse_sigmoid": ([0, 0, 0, 0.5, 0.75, 1, 1, 1], [0, 0, 0.25, 0.5, 0.5, 0, 0, 0]),
    "sigmoid": (
        [0, 2.061154e-09, 0.2689414, 0.5, 0.6224594, 0.9525741, 1, 1],
        [0, 2.061154e-09, 0.1966119, 0.25, 0.2350037, 0.04517666, 2.061154e-09, 0],
    ),
    "log_sigmoid": (
        [-1000, -20, -1.313262, -0.6931472, -0.474077, -0.04858735, -2.061154e-09, 0],
        [1, 1, 0.7310585, 0.5, 0.3775407, 0.04742587, 2.061154e-09, 0],
    ),
    "softplus": (
        [0, 2.061154e-09, 0.3132617, 0.6931472, 0.974077, 3.048587, 20, 1000],
        [0, 2.061154e-09, 0.2689414, 0.5, 0.6224594, 0.9525741, 1, 1],
    ),
    "silu": (
        [0, -4.122307e-08, -0.2689414, 0, 0.3112297, 2.857722, 20, 1000],
        [0, -3.916192e-08, 0.07232949, 0.5, 0.7399612, 1.088104, 1, 1],
    ),
    "mish": (
        [0, -4.122307e-08, -0.3034014, 0, 0.3752452, 2.986536, 20, 1000],
        [0, -3.916192e-08, 0.05921675, 0.6, 0.8864244, 1.021106, 1, 1],
    ),
    "gelu": (
        [0, 0, -0.158808, 0, 0.345714, 2.996363, 20, 1000],
        [0, 0, -0.08296407, 0.5, 0.8673699, 1.011584, 1, 1],
    ),
    "elu": ([-1, -1, -0.6321205, 0, 0.5, 3, 20, 1000], [0, 0, 0.3678795, 1, 1, 1, 1, 1]),
    "selu": (
        [-1.758099, -1.758099, -1.111331, 0, 0.5253505, 3.152103, 21.01402, 1050.701],
        [0, 0, 0.6467686, 1.758099, 1.050701, 1.050701, 1.050701, 1.050701],
    ),
    "celu": ([-1, -1, -0.6321205, 0, 0.5, 3, 20, 1000], [0, 0, 0.3678795, 1, 1, 1, 1, 1]),
    "soft_sign": (
        [-0.999001, -0.952381, -0.5, 0, 0.3333333, 0.75, 0.952381, 0.999001],
        [9.980286e-07, 0.002267573, 0.25, 1, 0.4444445, 0.0625, 0.002267573, 9.980286e-07],
    ),
    "squareplus": (
        [0.00100708, 0.04987526, 0.618034, 1, 1.280776, 3.302776, 20.04988, 1000.001],
        [1.023989e-06, 0.002481371, 0.2763932, 0.5, 0.6212678, 0.9160252, 0.9975187, 0.999999],
    ),
}
# fmt: on


def f32(*values: float) -> Any:
    return pnp.array(values, np.float32)


close = partial(assert_elements_close, rtol=2e-6, atol=1e-8, dtypes=False)


# Activations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", JAX)
def test_values_and_derivatives_are_those_of_jax(name: str) -> None:
    f = getattr(nn, name)
    x = f32(*X)
    close(f(x), JAX[name][0])
    cancels = name in ("gelu", "squareplus")  # the derivative is a small difference of numbers near 1
    close(vmap(grad(f))(x), JAX[name][1], atol=3e-7 if cancels else 1e-8)
    assert nn.swish is nn.silu
    assert nn.hard_swish is nn.hard_silu


def test_derivatives_are_compiled() -> None:
    x = f32(*X, NAN, -INF, INF)
    derivatives = lambda x: {name: vmap(grad(getattr(nn, name)))(x) for name in JAX}
    eager, compiled = derivatives(x), jit(derivatives)(x)
    for name in JAX:
        close(compiled[name], eager[name], rtol=1e-5, atol=3e-7)


@pytest.mark.parametrize("name", [*JAX, "tanh", "identity"])
def test_nan_stays_and_nothing_else_becomes_nan(name: str) -> None:
    f = getattr(nn, name)
    assert np.isnan(np.asarray(f(f32(NAN)))).all()
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32):
        out = np.asarray(f(pnp.array([-30.0, -0.0, 0.0, 30.0], dtype)))
        assert out.dtype == dtype
        assert np.isfinite(out.astype(np.float32)).all()
    with enable_x64(True):
        x = pnp.array([*X, -1e6, 1e6, 1e-300])
        assert f(x).dtype == np.float64
        assert np.isfinite(np.asarray(vmap(grad(f))(x))).all()
        assert np.isfinite(np.asarray(vmap(grad(grad(f)))(x))).all()


def test_dtypes_of_integers() -> None:
    assert nn.relu(pnp.array([-1, 2])).dtype == np.int32
    assert nn.relu(pnp.array([True])).dtype == np.int32
    assert nn.hard_tanh(pnp.array([-4, 2])).dtype == np.int32
    for f in (nn.relu6, nn.leaky_relu, nn.sigmoid, nn.gelu, nn.elu, nn.softmax, nn.logsumexp):
        assert f(pnp.array([-4, 2])).dtype == np.float32


def test_slopes_may_be_arrays_and_are_differentiated() -> None:
    x, slope = f32(-2.0, 3.0), f32(0.5, 0.25)
    close(nn.leaky_relu(x, slope), [-1, 3])
    close(grad(lambda a: pnp.sum(nn.leaky_relu(x, a)))(slope), [-2, 0])
    close(grad(lambda a: nn.elu(-1.0, a))(2.0), np.expm1(-1))
    close(grad(lambda a: nn.celu(-1.0, a))(2.0), np.expm1(-0.5) + 0.5 * np.exp(-0.5))


def test_log1mexp() -> None:
    x = [1e-30, 1e-3, 0.5, 0.7, 5.0, 50.0]
    close(nn.log1mexp(f32(*x)), np.log(-np.expm1(-np.array(x))))
    close(vmap(grad(nn.log1mexp))(f32(*x[1:])), 1 / np.expm1(np.array(x[1:])))


def test_a_slope_where_the_square_overflows() -> None:
    largest = np.finfo(np.float32).max
    for f in (nn.sparse_plus, jit(nn.sparse_plus)):
        close(vmap(grad(f))(f32(-largest, largest)), [0, 1])


# Sums of exponentials ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "expected", "slope"),
    [
        ([1000.0, 1000.0], 1000.6931, [0.5, 0.5]),
        ([-1000.0, -1001.0], -999.68677, [0.7310586, 0.2689414]),
        ([-INF, 1.0], 1.0, [0, 1]),
        ([-INF, -INF], -INF, [0, 0]),
        ([3e38, -3e38], 3e38, [1, 0]),
        ([], -INF, []),
    ],
)
def test_logsumexp(a: Any, expected: float, slope: Any) -> None:
    close(nn.logsumexp(f32(*a)), expected)
    close(grad(nn.logsumexp)(f32(*a)), slope)
    if a:
        sign = nn.logsumexp(f32(*a), return_sign=True)[1]
        assert float(sign) == (0 if expected == -INF else 1)


def test_logsumexp_of_infinity_and_nan() -> None:
    assert float(nn.logsumexp(f32(INF, 1.0))) == INF
    assert float(nn.logsumexp(f32(INF, -INF))) == INF
    assert np.isnan(float(nn.logsumexp(f32(NAN, 1.0))))


@pytest.mark.parametrize("shape", [(4, 6), (3, 50, 100), (600, 500)])
@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logsumexp_of_rows_and_columns(dtype: Any, axis: int | None, shape: tuple[int, ...]) -> None:
    bound = 2e-6 if dtype == np.float32 else 1e-14
    with override("enable_x64", True):
        x = np.random.default_rng(0).normal(0, 5, shape).astype(dtype)
        x[0], x[1, ..., 2] = -INF, -INF
        wide, f = x.astype(np.float64), partial(nn.logsumexp, axis=axis)
        got = f(pnp.asarray(x))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, scipy.special.logsumexp(wide, axis), bound, bound)
        slope = np.asarray(grad(lambda x: f(x).sum())(pnp.asarray(x)))
        largest = wide.max(axis, keepdims=True)
        expected = np.where(largest == -INF, 0, scipy.special.softmax(np.where(largest == -INF, 0, wide), axis))
        np.testing.assert_allclose(slope, expected, 10 * bound, 1e-30)
        x[-1, ..., 3] = INF
        np.testing.assert_allclose(f(pnp.asarray(x)), jit(f)(x), bound, bound)
        got, expected = (way(grad(lambda x: f(x).sum()))(pnp.asarray(x)) for way in (lambda f: f, jit))
        np.testing.assert_allclose(got, expected, 10 * bound, 1e-30)


def test_elu_at_special_points() -> None:
    x = f32(0.0, -0.0, INF, -INF, NAN, 1e-30, -1e-30, 200.0, -200.0)
    for alpha in (1, 1.5, 0, -2.0):
        f = partial(nn.elu, alpha=alpha)
        for of in (f, lambda x, f=f: pullback.vjp(f, x)[1](pnp.ones_like(x))[0]):
            np.testing.assert_allclose(of(pnp.asarray(x)), jit(of)(pnp.asarray(x)), 1e-6)
    assert np.signbit(np.asarray(nn.elu(pnp.asarray(x)))[1])
    assert nn.elu(pnp.asarray([1, -1])).dtype == np.float32
    assert nn.elu(pnp.float32(-2.0)).shape == ()


def test_logsumexp_with_factors() -> None:
    a, b = f32(1.0, 2.0, 3.0), f32(1.0, -2.0, 0.1)
    assert np.isnan(float(nn.logsumexp(a, b=b)))
    size, sign = nn.logsumexp(a, b=b, return_sign=True)
    close([size, sign], [2.3076997, -1])
    by_a, by_b = grad(lambda a, b: nn.logsumexp(a, b=b, return_sign=True)[0], (0, 1))(a, b)
    close(by_a, [-0.27044144, 1.4702722, -0.1998307], rtol=1e-5)
    close(by_b, [-0.27044144, -0.7351361, -1.9983070], rtol=1e-5)
    close(nn.logsumexp(a, b=pnp.array([1, 0, 2])), 3.7586236)
    close(nn.logsumexp(a, b=np.ones((2, 3), np.float32), axis=1), [3.407606, 3.407606])
    assert float(nn.logsumexp(a, b=0.0)) == -INF


def test_factors_that_are_zero() -> None:
    """Their elements may be anything; the derivative by such a factor is right as long as it does not overflow."""
    assert float(nn.logsumexp(f32(INF, 1.0), b=f32(0.0, 1.0))) == 1
    assert float(nn.logsumexp(f32(NAN, 1.0), b=f32(0.0, 1.0))) == 1
    f = lambda a, b: nn.logsumexp(a, b=b)
    by_a, by_b = grad(f, (0, 1))(f32(1.0, 2.0, 3.0), f32(0.0, 1.0, 0.0))
    close(by_a, [0, 1, 0])
    close(by_b, np.exp([-1, 0, 1]))
    by_a, by_b = grad(f, (0, 1))(f32(1.0, 1000.0), f32(1.0, 0.0))
    close(by_a, [1, 0])
    assert np.isfinite(np.asarray(by_b)).all()


def test_logsumexp_of_some_elements() -> None:
    a = f32(1.0, NAN, 3.0)
    f = lambda a: nn.logsumexp(a, where=np.array([True, False, True]))
    close(f(a), 3.126928)
    close(grad(f)(a), [0.1192029, 0, 0.8807971])
    nothing = lambda a: nn.logsumexp(a, where=False)
    assert float(nothing(a)) == -INF
    close(grad(nothing)(a), [0, 0, 0])
    close(nn.logmeanexp(f32(1.0, 2.0, 3.0), where=np.array([True, False, True])), 2.433781)


def test_logsumexp_of_complex_numbers() -> None:
    c = pnp.array([1 + 2j, 3 - 1j], np.complex64)
    close(nn.logsumexp(c), 2.8563948 - 0.97795033j)
    size, sign = nn.logsumexp(c, return_sign=True)
    assert size.dtype == np.float32
    close(size, 2.8563948)
    close(sign, 0.5587236 - 0.82935393j)
    close(nn.logsumexp(c, b=f32(1.0, -1.0)), 3.1258762 + 2.1247523j)


def test_logsumexp_of_axes() -> None:
    a = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for axis in (0, -1, (0, 2), (2, 0), None, ()):
        for keepdims in (False, True):
            got = nn.logsumexp(a, axis=axis, keepdims=keepdims)
            wide = a.astype(np.float64)
            want = wide if axis == () else scipy.special.logsumexp(wide, axis=axis, keepdims=keepdims)
            assert got.shape == want.shape
            close(got, want, atol=1e-6)
    assert not nn.logsumexp(3.0).weak_type


@pytest.mark.parametrize("function", [nn.silu, partial(nn.gelu, approximate=False)])
def test_slopes_of_activations_are_accurate_in_eager_code(function: Any) -> None:
    """They have rules of their own there."""
    x = np.concatenate([np.linspace(-1, 12, 5001), np.linspace(-9, -3, 501)]).astype(np.float32)
    wide = x.astype(np.float64)
    if function is nn.silu:
        exact = scipy.special.expit(wide) * (1 + wide * scipy.special.expit(-wide))
    else:
        exact = scipy.special.ndtr(wide) + wide * np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi)
    for count in (100, len(x)):  # by SciPy's functions, and by loops
        ones = np.ones(count, np.float32)
        slope = pullback.vjp(function, pnp.asarray(x[:count]))[1](ones)[0]
        np.testing.assert_allclose(slope, exact[:count], 1e-6, 1e-7)
    assert pullback.vjp(nn.silu, pnp.asarray(1 + 1j))[1](pnp.asarray(1 + 0j))[0].dtype.kind == "c"


# Softmax -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 1 << 15), (600, 500), (1 << 18,)])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_softmax_of_large_arrays(shape: tuple[int, ...], axis: int | None) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for function in (nn.softmax, nn.log_softmax):
        got = function(x, axis)
        want = getattr(scipy.special, function.__name__)(x.astype(np.float64), axis)
        assert_elements_close(got, want, 2e-5, dtypes=False)
        with override("eager_fusion", False):
            np.testing.assert_array_equal(got, function(x, axis))
        by_operations = vmap(partial(function, axis=axis))(x[None])[0]
        np.testing.assert_allclose(got, by_operations, 1e-6, 1e-12)
        edges = x.copy()
        edges.flat[[3, 700, 900]] = INF, -INF, NAN
        by_operations = vmap(partial(function, axis=axis))(edges[None])[0]
        np.testing.assert_allclose(function(edges, axis), by_operations, 1e-6, 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
def test_derivatives_of_softmax_of_large_arrays(function: Any, dtype: Any) -> None:
    """Rows that are large are differentiated by one call of the module in C, whatever is done to the derivative."""
    rng = np.random.default_rng(0)
    with override("enable_x64", True):
        x, t, weights = (pnp.asarray(rng.normal(size=(600, 500)).astype(dtype)) for _ in range(3))
        wide = np.asarray(x, np.float64)
        y = scipy.special.softmax(wide, -1)
        dots = lambda a, b: np.sum(np.asarray(a, np.float64) * np.asarray(b), -1, keepdims=True)
        if function is nn.softmax:
            pushed, pulled = y * (t - dots(y, t)), y * (t - dots(y, t))
        else:
            pushed, pulled = t - dots(y, t), t - y * dots(np.ones_like(y), t)
        out, linear = pullback.linearize(function, x)
        pull = lambda ct: pullback.vjp(function, x)[1](ct)[0]
        bound = 3e-5 if dtype == np.float32 else 1e-12
        both = pnp.stack([t, 2 * t])
        for found, expected in (
            (out, np.log(y) if function is nn.log_softmax else y), (pullback.jvp(function, (x,), (t,))[1], pushed),
            (linear(t), pushed), (pull(t), pulled), (vmap(linear)(both)[1], 2 * pushed), (jit(linear)(t), pushed),
            (vmap(pull)(both)[1], 2 * pulled), (pullback.jvp(linear, (t,), (t,))[1], pushed),
            (grad(lambda t: (linear(t) * t).sum())(t), pushed + pulled),
            (grad(lambda ct: (pull(ct) * ct).sum())(t), pushed + pulled),
        ):  # fmt: skip
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, bound, bound)
        product = lambda f: grad(lambda x: (grad(lambda x: (f(x) ** 2 * weights).sum())(x) * t).sum())
        np.testing.assert_allclose(product(function)(x), jit(product(function))(x), 100 * bound, 100 * bound)


def test_a_derivative_of_softmax_is_one_operation() -> None:
    x = pnp.asarray(np.random.default_rng(0).normal(size=(600, 500)).astype(np.float32))
    for function, name in ((nn.softmax, "softmax_slope"), (nn.log_softmax, "log_softmax_slope")):
        program = pullback.make_jaxpr(pullback.linearize(function, x)[1])(x)
        assert [str(equation.primitive) for equation in program.eqns] == [name]


@pytest.mark.parametrize("shape", [(3, 4), (600, 500)])
@pytest.mark.parametrize(
    "f",
    [
        nn.gelu, nn.softmax, nn.log_softmax, partial(nn.softmax, axis=None), nn.elu, partial(nn.elu, alpha=0.5),
        partial(nn.logsumexp, axis=-1, keepdims=True), partial(nn.logsumexp, axis=0, keepdims=True),
    ],
)  # fmt: skip
def test_derivatives_of_eager_code_are_those_of_programs(f: Any, shape: tuple[int, ...]) -> None:
    x, w = (pnp.asarray(np.random.default_rng(seed).standard_normal(shape), np.float32) for seed in range(2))
    total = lambda x: pnp.sum(w * f(x))
    for of in (grad(total), lambda x: jvp(f, (x,), (w,))[1], vmap(grad(lambda x: f(x)[..., :1].sum()))):
        np.testing.assert_allclose(of(x), jit(of)(x), 2e-5, 1e-5)
    if x.size < 100:
        steep = lambda x: pnp.sum(grad(total)(x) ** 2)
        for of in (hessian(total), jacfwd(f), jacrev(f), grad(steep)):
            np.testing.assert_allclose(of(x), jit(of)(x), 1e-4, 1e-5)
        with masked_zeros():
            np.testing.assert_allclose(grad(total)(x), jit(grad(total))(x), 1e-5, 1e-6)


def test_the_backward_pass_of_gelu_keeps_its_operand_alone() -> None:
    x = pnp.asarray(np.random.default_rng(0).standard_normal((1000, 1000)), np.float32)
    step = grad(lambda x: pnp.sum(nn.gelu(x)))
    np.asarray(step(x))
    tracemalloc.start()
    try:
        np.asarray(step(x))
        assert tracemalloc.get_traced_memory()[1] < 1.5 * x.nbytes  # the result, and blocks
    finally:
        tracemalloc.stop()


def test_softmax_of_large_numbers() -> None:
    a = f32(1.0, -2.0, 1000.0)
    close(nn.softmax(a), [0, 0, 1])
    close(nn.log_softmax(a), [-999, -1002, 0])
    close(nn.softmax(f32(3e38, 3e38, -3e38)), [0.5, 0.5, 0])
    assert np.isfinite(np.asarray(jacobian(nn.softmax)(a))).all()
    close(jacobian(nn.softmax)(f32(1000.0, 1000.0)), [[0.25, -0.25], [-0.25, 0.25]])
    close(jacobian(nn.log_softmax)(a), [[1, 0, -1], [0, 1, -1], [0, 0, 0]])
    close(nn.softmax(f32(-INF, 0.0, 0.0)), [0, 0.5, 0.5])
    close(jacobian(nn.softmax)(f32(-INF, 0.0, 0.0)), [[0, 0, 0], [0, 0.25, -0.25], [0, -0.25, 0.25]])


def test_softmax_of_some_elements() -> None:
    a, where = f32(1.0, NAN, 3.0), np.array([True, False, True])
    close(nn.softmax(a, where=where), [0.1192029, 0, 0.8807971])
    close(nn.log_softmax(a, where=where), [-2.126928, -INF, -0.12692805])
    by = jacobian(lambda a: nn.softmax(a, where=where))(a)
    close(by, 0.10499359 * np.array([[1, 0, -1], [0, 0, 0], [-1, 0, 1]]))
    by = jacobian(lambda a: nn.log_softmax(a, where=where))(a)
    close(by, [[0.8807971, 0, -0.8807971], [0, 0, 0], [-0.1192029, 0, 0.1192029]])
    for f, rest in ((nn.softmax, 0), (nn.log_softmax, -INF)):
        close(f(a, where=np.zeros(3, bool)), [rest] * 3)
        close(jacobian(lambda a, f=f: f(a, where=np.zeros(3, bool)))(a), np.zeros((3, 3)))


def test_softmax_along_axes() -> None:
    a = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for axis in (-1, 0, (0, 2), None):
        close(nn.softmax(a, axis), scipy.special.softmax(a.astype(float), axis))
        close(nn.log_softmax(a, axis), scipy.special.log_softmax(a.astype(float), axis), atol=1e-6)
        close(special.softmax(a, axis=axis), nn.softmax(a, axis))
    assert nn.softmax(np.zeros((2, 0))).shape == (2, 0)
    assert nn.softmax(np.zeros((0, 2))).shape == (0, 2)


# Standardisation and one-hot encoding ------------------------------------------------------------------------------


def test_standardize() -> None:
    a = f32(1.0, 2.0, 4.0)
    close(nn.standardize(a), [-1.0690416, -0.26726049, 1.3363017])
    close(nn.standardize(pnp.array([1, 2, 4])), [-1.0690416, -0.26726049, 1.3363017])
    close(nn.standardize(a, where=np.array([True, True, False])), [-0.99998003, 0.99998003, 4.9999003])
    close(nn.standardize(a, mean=1.0), [0, 0.40824795, 1.2247438])
    close(nn.standardize(a, mean=1.0, variance=4.0), [0, 0.49999937, 1.4999981])
    close(nn.standardize(f32(3.0, 3.0)), [0, 0])
    close(nn.standardize(f32(1e4, 1e4 + 1, 1e4 + 2), algorithm="stable"), [-1.2247357, 0, 1.2247357], rtol=1e-5)
    assert np.isfinite(np.asarray(nn.standardize(f32(3e4 + 0.1, 3e4 + 0.2, 3e4)))).all()
    half = nn.standardize(pnp.array([300.0, 400.0], np.float16))
    assert half.dtype == np.float16
    close(half, [-1, 1])


def test_one_hot() -> None:
    close(nn.one_hot(pnp.array([0, 2, 5, -1]), 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert nn.one_hot(pnp.array([[0, 1], [2, 0]]), 3, axis=0).shape == (3, 2, 2)
    assert nn.one_hot([0, 1], 2, dtype=bool).dtype == np.bool_
    close(nn.one_hot(1, 3), [0, 1, 0])
    close(nn.one_hot(pnp.array([0.0, 1.0, 0.5]), 2), [[1, 0], [0, 1], [0, 0]])
    assert int(nn.one_hot(pnp.array([44], np.uint8), 300).sum()) == 1
    assert nn.one_hot(pnp.array([0]), 0).shape == (1, 0)
    with enable_x64(True):
        assert nn.one_hot([0], 2).dtype == np.float64


# Special functions -------------------------------------------------------------------------------------------------


def test_log_ndtr_in_the_tails() -> None:
    x = [-1000.0, -26.5, -25.5, -20.0, -9.5, -8.5, -1.0, 0.0, 4.0, 6.0, 9.0]
    expected = scipy.special.log_ndtr(np.array(x))
    slope = np.exp(-0.5 * np.square(x) - 0.5 * np.log(2 * np.pi) - expected)
    with enable_x64(True):
        close(special.log_ndtr(pnp.array(x)), expected, rtol=2e-12, atol=0)
        close(vmap(grad(special.log_ndtr))(pnp.array(x)), slope, rtol=1e-9, atol=0)
        assert np.isfinite(np.asarray(vmap(grad(grad(special.log_ndtr)))(pnp.array(x)))).all()
    close(special.log_ndtr(f32(*x)), expected, rtol=1e-5, atol=0)
    assert special.log_ndtr(pnp.array([-9.0], np.float16)).dtype == np.float16
    close(special.log_ndtr(-40.0, series_order=0), scipy.special.log_ndtr(-40.0), rtol=1e-5)


def test_products_with_logarithms() -> None:
    pairs = [(0.0, 0.0), (0.0, -1.0), (0.0, INF), (0.0, NAN), (2.0, 0.0), (-0.0, 3.0), (2.0, 3.0)]
    for x, y in pairs:
        np.testing.assert_equal(float(special.xlogy(x, y)), float(np.float32(scipy.special.xlogy(x, y))))
        np.testing.assert_allclose(float(special.xlog1py(x, y - 1)), scipy.special.xlog1py(x, y - 1), rtol=1e-6)
    by_x, by_y = grad(special.xlogy, (0, 1))(0.0, 2.0)
    close([by_x, by_y], [np.log(2), 0])
    by_x, by_y = grad(special.xlogy, (0, 1))(0.0, 0.0)
    assert (float(by_x), float(by_y)) == (-INF, 0)
    close(special.xlogy(2, 3), 2 * np.log(3))


def test_entr() -> None:
    close(special.entr(f32(-1.0, 0.0, 0.5, 1.0, INF)), scipy.special.entr(np.array([-1, 0, 0.5, 1, INF])))
    close(vmap(grad(special.entr))(f32(0.0, 0.5, 1.0)), [INF, np.log(2) - 1, -1])


def test_logit_and_its_inverse() -> None:
    p = f32(0.0, 1e-30, 0.25, 0.5, 0.9, 1.0)
    close(special.logit(p), scipy.special.logit(np.asarray(p, np.float64)))
    close(special.expit(special.logit(p)), p)
    close(vmap(grad(special.logit))(p), [INF, 1e30, 16 / 3, 4, 1 / 0.09, INF], rtol=1e-5)


def test_polygamma_takes_integers() -> None:
    close(special.polygamma(pnp.array([1, 2]), 2.0), scipy.special.polygamma([1, 2], 2.0))
    with pytest.raises(DtypeError, match=r"order n must be integers, got f32"):
        special.polygamma(f32(1.0), 2.0)


# Initializers ------------------------------------------------------------------------------------------------------

# fmt: off
WEIGHTS = {  # of random.key(0), as JAX returns them with jax_threefry_partitionable off
    "glorot_uniform": [0.1632223, -0.877044, 0.53012073, 0.8636013, 0.21156673, -0.10242009],
    "glorot_normal": [0.12884755, -0.85241526, 0.44269735, 0.8314643, 0.16762722, -0.08058809],
    "lecun_uniform": [0.14900088, -0.80062795, 0.48393178, 0.78835654, 0.19313312, -0.09349632],
    "he_normal": [0.16634148, -1.1004634, 0.57151985, 1.0734159, 0.21640582, -0.10403877],
}
SCALED: list[tuple[Any, Any, list[float]]] = [
    (
        ("fan_geo_avg", "normal"), {"in_axis": 0, "out_axis": 2},
        [0.760447, -0.7026386, 0.2834853, 0.38238809, -0.250399, 0.44254464, 0.29403111, -1.3217037, -0.13697776,
         -0.63244545, -0.43379793, 0.17483129],
    ),
    (
        ("fan_out", "uniform"), {"batch_axis": 0},
        [1.0833129, -1.0303003, 0.48468605, 0.63706547, -0.4311437, 0.72330195, 0.50150198, -1.3596451, -0.24006373,
         -0.95847362, -0.71109217, 0.30494356],
    ),
]
# fmt: on


@pytest.mark.parametrize("name", WEIGHTS)
def test_initial_weights_are_those_of_jax(name: str) -> None:
    got = getattr(nn.initializers, name)()(random.key(0), (3, 2))
    close(np.ravel(got), WEIGHTS[name], rtol=1e-5)


@pytest.mark.parametrize(("arguments", "axes", "expected"), SCALED)
def test_variance_scaling(arguments: Any, axes: Any, expected: list[float]) -> None:
    init = nn.initializers.variance_scaling(2.0, *arguments, **axes)
    close(np.ravel(init(random.key(0), (2, 2, 3))), expected, rtol=1e-5)


def test_distributions_of_weights() -> None:
    key, shape = random.key(1), (200, 300)
    for name in ("he_uniform", "he_normal", "kaiming_uniform", "kaiming_normal"):
        weights = np.asarray(getattr(nn.initializers, name)()(key, shape))
        close(weights.var(), 2 / 200, rtol=0.02)
        close(weights.mean(), 0, atol=1e-3)
    init = nn.initializers
    assert init.xavier_normal is init.glorot_normal
    uniform = np.asarray(init.uniform(2.0)(key, shape))
    assert 0 <= uniform.min() < uniform.max() < 2
    close(np.asarray(init.normal(3.0)(key, shape)).std(), 3, rtol=0.02)
    truncated = np.asarray(init.truncated_normal(3.0, lower=-1.0)(key, shape))
    assert -3 < truncated.min() < truncated.max() < 6
    assert init.lecun_normal(dtype=np.float16)(key, (2, 2)).dtype == np.float16
    assert init.normal()(key, (2,), ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16
    close(init.constant(pnp.arange(2))(key, (2, 2)), [[0, 1], [0, 1]])
    assert init.constant(3, np.int8)(key, 2).dtype == np.int8
    close(init.zeros(key, (2,)), [0, 0])
    assert init.ones(key, (2,), np.int32).dtype == np.int32
    kernel = init.lecun_normal(in_axis=2, out_axis=3)(key, (3, 3, 16, 64))
    close(np.asarray(kernel).var(), 1 / (3 * 3 * 16), rtol=0.05)


# Errors ------------------------------------------------------------------------------------------------------------

ONE = f32(1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.glu(ONE), ShapeError, "even size, got size 3 along axis -1"),
        (lambda: nn.softmax(ONE, 3), ShapeError, "softmax: axis 3 is out of bounds"),
        (lambda: nn.softmax(2.0), ShapeError, "softmax: axis -1 is out of bounds for an array of 0 axes"),
        (lambda: nn.softmax([1.0, 2.0]), OperandError, "softmax: .*list"),
        (lambda: nn.softmax(ONE, where=np.ones((2, 3), bool)), ShapeError, r"where, of shape \(2, 3\), does not"),
        (lambda: nn.logsumexp(ONE, where=np.ones(2, bool)), ShapeError, r"where, of shape \(2,\), does not"),
        (lambda: nn.logsumexp(ONE, b=f32(1.0, 2.0)), ShapeError, r"logsumexp .*\(3,\), \(2,\)"),
        (lambda: nn.standardize(ONE, algorithm="exact"), ArgumentError, "'fast' or 'stable', got 'exact'"),
        (lambda: nn.one_hot(ONE, 2.5), ArgumentError, "num_classes, .* must be a non-negative integer, got 2.5"),
        (lambda: nn.one_hot(ONE, -1), ArgumentError, "non-negative integer, got -1"),
        (lambda: nn.one_hot(ONE, 3, axis=2), ShapeError, "one_hot: axis 2 is out of bounds"),
        (lambda: vmap(lambda n: nn.one_hot(ONE, n))(pnp.arange(2)), TracerIntegerConversionError, "vmap"),
        (
            lambda: nn.initializers.he_normal()(random.key(0), (3,)),
            ShapeError,
            r"two axes, or in_axis, got shape \(3,\)",
        ),
        (
            lambda: nn.initializers.variance_scaling(1.0, "fan", "normal"),
            ArgumentError,
            "mode must be one of 'fan_in', .* got 'fan'",
        ),
        (
            lambda: nn.initializers.variance_scaling(1.0, "fan_in", "cauchy"),
            ArgumentError,
            "distribution must be one of .* got 'cauchy'",
        ),
        (lambda: special.log_ndtr(ONE, 31), ArgumentError, "from 0 to 30, got 31"),
        (lambda: special.erf(1j), DtypeError, "erf takes floats, got c64"),
        (lambda: nn.no_such, AttributeError, "module 'pullback.nn' has no attribute 'no_such'"),
        (lambda: pullback.scipy.no_such, AttributeError, "module 'pullback.scipy' has no attribute 'no_such'"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_modules_are_imported_when_they_are_first_used() -> None:
    code = (
        "import sys, pullback\n"
        "assert not [m for m in sys.modules if m.startswith(('pullback.nn', 'pullback.scipy'))]\n"
        "pullback.nn.relu(1.0)\n"
        "assert 'pullback.random' not in sys.modules\n"
        "pullback.nn.initializers.zeros, pullback.scipy.special.erf\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "softmax" in dir(nn)
    assert "special" in dir(pullback.scipy)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_the_slope_of_the_logistic_function_has_no_cancellation_and_one_exponential(wrap: Any) -> None:
    x = np.array([-100, -80.0, -20, -1, -1e-3, 0, 1e-3, 1, 20, 80, 100, INF, -INF, NAN], np.float32)
    slope = lambda x: pullback.vjp(nn.sigmoid, x)[1](pnp.ones_like(x))[0]
    second = lambda x: pullback.vjp(slope, x)[1](pnp.ones_like(x))[0]
    e = np.exp(-np.abs(x.astype(np.float64)))
    expected = e / (1 + e) ** 2
    np.testing.assert_allclose(wrap(slope)(pnp.asarray(x)), expected, 1e-6, 1e-37)
    curvature = -expected * np.sign(x) * (1 - e) / (1 + e)
    np.testing.assert_allclose(wrap(second)(pnp.asarray(x)), curvature, 1e-6, 1e-37)
    assert jit(slope).lower(pnp.asarray(x)).as_text().count("exponential") == 1


def test_the_slope_of_the_logistic_function_in_taylor_mode() -> None:
    from pullback.experimental.jet import jet

    s = scipy.special.expit(0.3)
    derivatives = [s * (1 - s) * (1 - 2 * s), s * (1 - s) * (1 - 6 * s + 6 * s * s)]
    slope, found = jet(grad(nn.sigmoid), (0.3,), ((1.0, 0.0),))
    np.testing.assert_allclose([slope, *found], [s * (1 - s), *derivatives], 1e-6)
    value, (first,) = jet(nn.sigmoid, (1j,), ((1.0,),))  # complex numbers have another rule
    np.testing.assert_allclose(first, value * (1 - value), 1e-6)
