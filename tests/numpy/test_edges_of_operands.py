"""Operands at the edge of what a function takes: eager and compiled agree, and are right or refused."""

from __future__ import annotations

import numpy as np
import pytest

import pullback.numpy as pnp
from pullback import grad, hessian, jacfwd, jacrev, jit, jvp, lax, nn
from pullback.errors import ArgumentError, DtypeError

BOTH = pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])


@BOTH
def test_the_square_of_booleans_is_of_integers(how):
    out = how(lambda x: x**2)(pnp.array([True, False]))
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, [1, 0])


@BOTH
def test_integers_that_a_literal_cannot_hold_are_refused(how):
    with pytest.raises(OverflowError, match="1099511627776"):
        how(lambda x: x + 2**40)(pnp.arange(3))


@BOTH
def test_floats_beside_integers_beyond_their_range(how):
    np.testing.assert_array_equal(how(lambda x: x < 2**2000)(pnp.ones(2)), [True, True])
    np.testing.assert_array_equal(how(lambda x: x < -(2**2000))(pnp.ones(2)), [False, False])


@BOTH
@pytest.mark.parametrize("places", [39, 100, 1000, 10000])
def test_rounding_beyond_all_places(how, places):
    x = np.array([1.5, -2.25, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(how(lambda x: pnp.round(x, places))(x), x)
    np.testing.assert_array_equal(how(lambda x: pnp.round(x, -places))(x), [0, -0.0, np.inf, np.nan])
    z = np.array([1.5 + 2j], np.complex64)
    np.testing.assert_array_equal(how(lambda z: pnp.round(z, places))(z), z)
    np.testing.assert_array_equal(how(lambda z: pnp.round(z, -places))(z), [0])
    for dtype in ("int8", "uint8", "int32"):
        i = np.array([15, 99], dtype)
        np.testing.assert_array_equal(how(lambda i: pnp.round(i, places))(i), i)
        np.testing.assert_array_equal(how(lambda i: pnp.round(i, -places))(i), [0, 0])


@BOTH
def test_rounding_of_what_overflows_on_the_way(how):
    np.testing.assert_array_equal(how(lambda x: pnp.round(x, 2))(np.float32([3e38, 1.234])), np.float32([3e38, 1.23]))
    np.testing.assert_array_equal(how(lambda x: pnp.round(x, 5))(np.float16([1.5, 65000])), np.float16([1.5, 65000]))
    np.testing.assert_array_equal(how(lambda x: pnp.round(x, -2))(np.int8([99, 50, -51])), [100, 0, -100])
    assert grad(how(lambda x: pnp.round(x, 100)))(1.5) == 0


@BOTH
def test_linspace_of_one_point_has_no_step(how):
    out, step = how(lambda x: pnp.linspace(x, 1.0, num=1, retstep=True))(pnp.array([1.0, 2.0]))
    assert out.shape == (1, 2)
    assert step.shape == ()
    assert np.isnan(step)


@BOTH
def test_one_observation_of_three_variables(how):
    out = how(lambda x: pnp.cov(x, rowvar=False))(pnp.ones((1, 3)))
    assert out.shape == (3, 3)
    assert np.isnan(out).all()


@BOTH
@pytest.mark.parametrize("function", [pnp.cov, pnp.corrcoef])
def test_covariances_in_integers_are_refused(how, function):
    with pytest.raises(ArgumentError, match="dtype must be one of floats or complex numbers, got int32"):
        how(lambda x: function(x, dtype=int))(pnp.arange(6).reshape(2, 3))


@BOTH
@pytest.mark.parametrize("spacing", [1e-45, 1e-40, 1e-38])
def test_interpolation_between_points_at_subnormal_distance(how, spacing):
    """The compiler takes them for one point; the derivative is that of the interval that follows."""
    xp, fp = pnp.array([0.0, spacing, 1.0]), pnp.array([0.0, 1.0, 2.0])
    assert how(lambda x: pnp.interp(x, xp, fp))(spacing / 2) == 1.0
    assert how(grad(lambda x: pnp.interp(x, xp, fp)))(spacing / 2) == 1.0
    assert np.isfinite(how(grad(lambda xp: pnp.interp(spacing / 2, xp, fp)))(xp)).all()


MASKED = {
    "sum": pnp.sum, "prod": pnp.prod, "mean": pnp.mean, "var": pnp.var, "std": pnp.std, "all": pnp.all,
    "any": pnp.any, "nansum": pnp.nansum, "nanmean": pnp.nanmean, "nanvar": pnp.nanvar,
    "max": lambda x, where: pnp.max(x, where=where, initial=0),
    "nanmin": lambda x, where: pnp.nanmin(x, where=where, initial=0),
    "softmax": nn.softmax, "log_softmax": nn.log_softmax, "standardize": nn.standardize, "logsumexp": nn.logsumexp,
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("x", [pnp.arange(3.0), pnp.arange(3)], ids=["float", "int"])
def test_masks_are_booleans(how, name, x):
    with pytest.raises(ArgumentError, match="where must be an array of booleans, got int32"):
        how(lambda x: MASKED[name](x, where=pnp.array([1, 0, 2])))(x)


@BOTH
def test_sets_of_two_dtypes(how):
    a, b = pnp.array([1, 2, 100], pnp.int8), pnp.array([1.5, 2.0])
    out = how(lambda a, b: pnp.setdiff1d(a, b, size=2))(a, b)
    assert out.dtype == np.int8
    np.testing.assert_array_equal(out, [1, 100])
    np.testing.assert_array_equal(how(lambda a: pnp.setdiff1d(a, pnp.array([1, 258]), size=2))(a), [2, 100])


@BOTH
def test_places_and_membership_are_by_value(how):
    x = pnp.array([1, 44, 200], pnp.uint8)
    for value, place in ((300, 3), (-1, 0), (44, 1)):
        assert how(lambda x, n: pnp.searchsorted(x, n))(x, value) == place
        assert how(lambda x, v=value: pnp.searchsorted(x, v))(x) == place
        assert how(lambda x, v=value: pnp.isin(v, x))(x) == (value == 44)
    assert how(lambda x: pnp.digitize(300, x))(x) == 3
    wide = pnp.array([1, 2**32 - 1], pnp.uint32)
    np.testing.assert_array_equal(how(lambda x: pnp.isin(x, pnp.array([-1, 1])))(wide), [True, False])
    np.testing.assert_array_equal(how(lambda x: pnp.searchsorted(x, pnp.array([-1, 5])))(wide), [0, 1])
    np.testing.assert_array_equal(how(lambda x: pnp.searchsorted(pnp.array([-1, 5]), x))(wide), [1, 2])
    np.testing.assert_array_equal(how(lambda x: pnp.clip(x, -1, 300))(x), x)
    np.testing.assert_array_equal(how(pnp.clip)(x, -1, 300), x)


@BOTH
def test_what_has_no_order_is_refused(how):
    for function in (nn.relu, nn.relu6, nn.hard_tanh, nn.hard_sigmoid, nn.sparse_plus, nn.soft_sign, lax.round):
        with pytest.raises(DtypeError, match=r"takes (real numbers|floats), got c64"):
            how(function)(pnp.array([1j]))


@BOTH
def test_activations_of_integers(how):
    assert how(nn.relu)(pnp.array([True])).weak_type
    assert how(nn.relu6)(pnp.array([3], pnp.int8)).weak_type
    np.testing.assert_array_equal(how(nn.hard_tanh)(pnp.array([3, 0], pnp.uint8)), [1, 0])


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_small_integers_keep_their_dtype(dtype):
    kind = getattr(pnp, dtype)
    info = pnp.iinfo(kind)
    v = np.arange(int(info.min), int(info.max) + 1)
    x, y = (pnp.asarray(a.ravel()).astype(kind) for a in np.meshgrid(v, v))

    def every(x, y):
        unary = [-x, abs(x), ~x, pnp.sign(x), x**2, x**3, lax.clz(x), lax.population_count(x), x & 1, 1 | x]
        unary += [pnp.clip(x, 0, 1), lax.cummax(x), lax.cummin(x), pnp.max(x), pnp.min(x), pnp.square(x)]
        binary = [x + y, x - y, x * y, x // y, x % y, x & y, x | y, x ^ y, x << y, x >> y, lax.div(x, y), lax.rem(x, y)]
        binary += [lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y), pnp.gcd(x, y), pnp.fmod(x, y)]
        return [*unary, *binary, pnp.maximum(x, y), pnp.minimum(x, y)]

    for eager, compiled in zip(every(x, y), jit(every)(x, y), strict=True):
        assert eager.dtype == compiled.dtype == kind
        np.testing.assert_array_equal(np.asarray(eager).astype(int), np.asarray(compiled).astype(int))
    np.testing.assert_array_equal(
        np.asarray(lax.population_count(x)).astype(int),
        np.asarray(pnp.asarray([bin(int(i) & (2**info.bits - 1)).count("1") for i in x]).astype(kind)).astype(int),
    )


DERIVATIVES = {
    "grad": grad, "jacfwd": jacfwd, "jacrev": jacrev, "hessian": hessian,
    "jvp": lambda f: lambda x: jvp(f, (x,), (pnp.ones((), pnp.asarray(x).dtype),))[1],
}  # fmt: skip
SCALAR = {
    "max": lambda x: pnp.max(pnp.stack([x, x / 2])) * x,
    "clip": lambda x: pnp.clip(x, 0.0, 3.0) ** 2,
    "sum": lambda x: pnp.sum(pnp.array([x, x])) * x,
    "float32": lambda x: pnp.float32(x) * x,
    "interp": lambda x: pnp.interp(x, pnp.array([0.0, 2.0]), pnp.array([0.0, 2.0])) * x,
}


@BOTH
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", SCALAR)
def test_derivatives_are_as_weak_as_what_they_are_of(how, derivative, name):
    """Cotangents as the argument, tangents as the result: ``hessian(f)(1.) * half`` stays in half precision."""
    f, half = SCALAR[name], pnp.ones(2, pnp.float16)
    wanted = f(1.0).weak_type if derivative in ("jvp", "jacfwd") else True
    out = how(DERIVATIVES[derivative](f))(1.0)
    if derivative == "hessian":
        wanted = jacrev(f)(1.0).weak_type
    assert out.weak_type is wanted
    assert (out * half).dtype == (np.float16 if wanted else np.float32)
    assert not how(DERIVATIVES[derivative](f))(pnp.float32(1.0)).weak_type
