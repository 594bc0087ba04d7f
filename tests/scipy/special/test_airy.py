"""Airy functions: values, expansions, derivatives and ends."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
import pullback.numpy as jnp
from pullback import errors
from pullback.core.config import enable_x64
from pullback.scipy import special
from pullback.scipy.special import airy_formulas
from pullback.test_util import check_grads
from tests.helpers import eager_and_compiled


def points() -> Any:
    """Numbers on both sides of zero, near the grid's points and halves, and about the ends of the grid."""
    rng = np.random.default_rng(0)
    return np.concatenate(
        [rng.uniform(-25, 25, 200), np.arange(-12, 12, 0.125), [-12.0, 12.0, -12.01, 12.01, 90, -300]]
    )


def amplitude(x: Any) -> Any:
    """The size of Ai, Ai', Bi and Bi' at ``x``: for negative numbers, the radius of their oscillation."""
    ai, aip, bi, bip = scipy.special.airy(x)
    sizes = [np.where(x < 0, np.hypot(ai, bi), abs(ai)), np.where(x < 0, np.hypot(aip, bip), abs(aip))]
    return [*sizes, *(np.where(x < 0, size, abs(y)) for size, y in zip(sizes, (bi, bip), strict=True))]


def test_airy_functions_are_scipys() -> None:
    x = points()
    with enable_x64():
        for outs in eager_and_compiled(special.airy, x):
            for out, reference, size in zip(outs, scipy.special.airy(x), amplitude(x), strict=True):
                assert (abs(np.asarray(out) - reference) <= 3e-13 * size * np.maximum(1, abs(x) / 25)).all()


def test_compiled_airy_functions_are_right_to_the_last_bits() -> None:
    """From mpmath, of 40 digits, where SciPy's lose three and more."""
    x = np.array([-1617.9816426995383, 27.275429621444232, 76.61701848917475, 3.140625, -7.9])
    exact = [
        -0.017562769912105213595, 7.0488271829507434116e-43, 6.4533612559505977978e-196, 0.0050984463381835412005,
        0.041701883617386709387,
    ]  # fmt: skip
    with enable_x64():
        ai = np.asarray(pullback.jit(special.airy)(x)[0])
    np.testing.assert_allclose(ai, exact, rtol=1.5e-15)


def test_scaled_airy_functions_are_scipys() -> None:
    x = points()
    with enable_x64():
        for outs in eager_and_compiled(special.airye, x):
            for i, (out, reference) in enumerate(zip(outs, scipy.special.airye(x), strict=True)):
                assert (np.isnan(out) == (x < 0 if i < 2 else False)).all()
                size = np.maximum(abs(reference), np.where(x < 0, amplitude(x)[i], 0))
                error = abs(np.asarray(out) - reference) / size / np.maximum(1, abs(x) / 25)
                assert np.nanmax(error) < 3e-13


def test_complex_airy_functions_are_scipys() -> None:
    z = np.array([1 + 2j, -3 + 0.5j, 0.1j])
    with enable_x64():
        for name in ("airy", "airye"):
            for outs in eager_and_compiled(getattr(special, name), z):
                np.testing.assert_array_equal(np.asarray(outs), np.asarray(getattr(scipy.special, name)(z)))
        slope = pullback.grad(lambda z: special.airy(z)[1], holomorphic=True)(z[0])
        np.testing.assert_allclose(slope, z[0] * scipy.special.airy(z[0])[0], rtol=1e-14)
        with pytest.raises(errors.NotDifferentiableError, match="airye has no derivative by complex numbers"):
            pullback.grad(lambda z: special.airye(z)[0], holomorphic=True)(z[0])


@pytest.mark.parametrize("name", ["airy", "airye"])
def test_airy_functions_have_derivatives_of_any_order(name: str) -> None:
    with enable_x64():
        check_grads(getattr(special, name), (jnp.array([0.4, 1.7, 13.0 if name == "airye" else 2.5]),), order=2)
        check_grads(lambda x: getattr(special, name)(x)[2], (jnp.array([-0.4, -14.0]),), order=1, rtol=1e-5)


def test_derivatives_of_integrals_are_airy_functions() -> None:
    x = np.array([0.3, 2.5, 7.0])
    with enable_x64():
        _, tangents = pullback.jvp(special.itairy, (x,), (np.ones(3),))
        (ai, _, bi, _), (ai_left, _, bi_left, _) = scipy.special.airy(x), scipy.special.airy(-x)
        for out, reference in zip(tangents, (ai, bi, ai_left, bi_left), strict=True):
            np.testing.assert_allclose(out, reference, rtol=1e-15)
        for outs in eager_and_compiled(special.itairy, x):
            np.testing.assert_array_equal(np.asarray(outs), np.asarray(scipy.special.itairy(x)))


def test_third_derivatives_follow_from_airys_equation() -> None:
    with enable_x64():
        third = pullback.jit(pullback.grad(pullback.grad(pullback.grad(lambda x: special.airy(x)[0]))))
        ai, aip, _, _ = scipy.special.airy(1.3)
        assert float(third(1.3)) == pytest.approx(ai + 1.3 * aip, rel=1e-14)


def test_airy_functions_of_other_dtypes_and_shapes() -> None:
    assert special.airy(jnp.float32(1))[0].dtype == np.float32
    assert special.airy(jnp.bfloat16(1))[2].dtype == jnp.bfloat16
    assert special.airy(2)[0].dtype == np.float32
    assert [y.shape for y in special.airy(np.zeros((0, 3)))] == [(0, 3)] * 4
    x = np.linspace(-20, 20, 7, dtype=np.float32).reshape(7, 1)
    for out, mapped in zip(special.airy(x), pullback.vmap(special.airy)(x), strict=True):
        np.testing.assert_array_equal(out, mapped)
    with pytest.raises(errors.OperandError, match="airy"):
        special.airy("1")
    with pytest.raises(errors.DtypeError, match="itairy takes real numbers"):
        special.itairy(1j)


def test_airy_functions_at_the_ends() -> None:
    x = np.array([math.inf, -math.inf, math.nan])
    with enable_x64():
        for outs in eager_and_compiled(special.airy, x):
            assert np.isnan(np.asarray(outs)).all()
        ai, _, bi, _ = (float(y) for y in pullback.jit(special.airy)(jnp.array(110.0)))
        assert ai == 0
        assert bi == math.inf


def test_zeros_of_airy_functions() -> None:
    with enable_x64():
        for name, i in (("ai_zeros", 0), ("bi_zeros", 2)):
            zeros, of_slope, values, slopes = (np.asarray(x) for x in getattr(special, name)(5))
            assert abs(scipy.special.airy(zeros)[i]).max() < 1e-11
            assert abs(scipy.special.airy(of_slope)[i + 1]).max() < 1e-11
            np.testing.assert_allclose(values, scipy.special.airy(of_slope)[i], rtol=1e-9)
            np.testing.assert_allclose(slopes, scipy.special.airy(zeros)[i + 1], rtol=1e-9)
    with pytest.raises(errors.ArgumentError, match="ai_zeros: the number of zeros nt must be positive, got 0"):
        special.ai_zeros(0)


def test_coefficients_solve_airys_equation() -> None:
    """The Taylor coefficients at 0 are those of DLMF 9.4.1."""
    table = airy_formulas._table(False)
    middle = table[:, table.shape[1] // 2]
    c = 0.355028053887817239260
    assert middle[0] == c
    assert middle[2] == 0
    assert middle[3] == pytest.approx(float(Decimal(c) / 6), rel=1e-15)
    assert middle[6] == pytest.approx(c * 4 / math.factorial(6), rel=1e-15)
