"""Functions of the table of relations, and functions composed of others: values, derivatives and refusals.

Derivatives are compared with differences of SciPy's values.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import pullback
import pullback.numpy as jnp
from pullback import errors
from pullback.core.config import enable_x64
from pullback.scipy import special
from pullback.scipy.special import bessel_kinds, composed_functions, host_functions
from tests.helpers import eager_and_compiled

X = np.array([0.3, 0.7, 1.9, 4.2])
U = np.array([0.1, 0.3, 0.6, 0.95])
SIGNED = np.array([-3.1, -0.7, 0.4, 2.6])
ORDERS = np.array([0.0, 0.5, 1.7, 3.0])
WHOLE = np.array([1.0, 2.0, 3.0, 4.0])
COUNTS = np.array([0.0, 1.0, 2.0, 4.0]), np.array([5.0, 6.0, 7.0, 4.5])

OF_SIGNED = """
    psi cosm1 erfi exp10 exp2 expm1 cbrt sinc log_expit softplus sindg cosdg tandg cotdg ber bei berp beip j0 j1 shichi
    itstruve0 itmodstruve0 wrightomega rgamma
"""
OF_POSITIVE = "log1p ker kei kerp keip y0 y1 k0 k1 k0e k1e itj0y0 iti0k0 it2j0y0 it2i0k0 it2struve0"
CASES: dict[str, tuple[list[Any], int]] = {
    **dict.fromkeys(OF_SIGNED.split(), ([SIGNED], 0)),
    **dict.fromkeys(OF_POSITIVE.split(), ([X], 0)),
    "ndtri_exp": ([-3 * X], 0),
    "binom": ([np.array([5.5, 3, -2.5, 7]), np.array([2.5, 1.2, 1.5, -0.5])], 0),
    "agm": ([X, X[::-1]], 0), "powm1": ([X, SIGNED], 0), "huber": ([X, SIGNED + 0.1], 0),
    "pseudo_huber": ([X, SIGNED], 0),
    "inv_boxcox": ([SIGNED / 10, np.array([0, 0.5, 1.5, -1])], 0),
    "inv_boxcox1p": ([SIGNED / 10, np.array([0, 0.5, 1.5, -1])], 0),
    "chdtr": ([X + 0.5, X[::-1]], 0), "chdtrc": ([X + 0.5, X[::-1]], 0), "chdtri": ([X + 0.5, U], 0),
    "stdtr": ([X + 0.5, SIGNED], 0), "stdtrit": ([X + 0.5, U], 0),
    "pdtr": ([COUNTS[0], X], 1), "pdtrc": ([COUNTS[0], X], 1),
    "gdtr": ([X, X + 1, X[::-1]], 0), "gdtrc": ([X, X + 1, X[::-1]], 0), "betaincc": ([X, X + 1, U], 0),
    "fdtr": ([X, X + 1, X[::-1]], 0), "fdtrc": ([X, X + 1, X[::-1]], 0), "fdtri": ([X, X + 1, U], 0),
    **dict.fromkeys(["bdtr", "bdtrc"], ([np.floor(COUNTS[0]), COUNTS[1].astype(int), U], 2)),
    "nbdtr": ([*map(np.floor, COUNTS), U], 2), "nbdtrc": ([*map(np.floor, COUNTS), U], 2),
    # for derivatives by the order see test_orders.py: SciPy's values have errors that differences magnify
    **dict.fromkeys(["struve", "modstruve", "pbdv", "pbvv"], ([ORDERS, X], 1)),
    **dict.fromkeys(["jve", "yve", "ive", "kve"], ([ORDERS, X], 0)),
    "pbwa": ([ORDERS, X * 0.7], 1), "kn": ([WHOLE, X], 1), "yn": ([WHOLE, X], 1),
    **dict.fromkeys(["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"], ([WHOLE.astype(int), X], 1)),
    "mathieu_a": ([WHOLE, 3 * X], 1), "mathieu_b": ([WHOLE, 3 * X], 1),
    "mathieu_cem": ([WHOLE, X, 30 * X], 2), "mathieu_sem": ([WHOLE, X, 30 * X], 2),
    **dict.fromkeys(
        ["mathieu_modcem1", "mathieu_modsem1", "mathieu_modcem2", "mathieu_modsem2"], ([WHOLE, X, 0.3 * X], 2)
    ),
    "hyp0f1": ([X, SIGNED], 1),
    "wright_bessel": ([X, X + 1, X], 2), "log_wright_bessel": ([X, X + 1, X], 2),
}  # fmt: skip
"""For each function: its operands, and the number of first operands by which it is not differentiated here."""


def results(out: Any) -> list[Any]:
    return [np.asarray(x) for x in (out if isinstance(out, tuple) else (out,))]


def test_every_function_has_a_case() -> None:
    names = {*bessel_kinds.__all__, *composed_functions.__all__, *host_functions.__all__}
    others = {name for name in names if name.startswith("hankel") or name.endswith("_zeros")}
    assert names - others - {"jvp", "yvp", "ivp", "kvp"} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_values_are_scipys(name: str) -> None:
    operands, _ = CASES[name]
    with enable_x64():
        outs = results(getattr(special, name)(*operands))
        assert all(x.dtype == np.float64 for x in outs)
        for out, reference in zip(outs, results(getattr(scipy.special, name)(*operands)), strict=True):
            np.testing.assert_allclose(out, reference, rtol=1e-14)
    narrow = [x if x.dtype.kind == "i" else x.astype(np.float32) for x in operands]
    for out, reference in zip(results(getattr(special, name)(*narrow)), outs, strict=True):
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, reference, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_differences(name: str) -> None:
    operands, fixed = CASES[name]
    function, reference = getattr(special, name), getattr(scipy.special, name)
    with enable_x64():
        for k in range(fixed, len(operands)):
            before, after, h = operands[:k], operands[k + 1 :], 1e-5

            def of_one(f: Any, x: Any, before: Any = before, after: Any = after) -> Any:
                return f(*before, x, *after)

            _, tangents = pullback.jvp(lambda x, of=of_one: of(function, x), (operands[k],), (np.ones(4),))
            above, below = (results(of_one(reference, operands[k] + step)) for step in (h, -h))
            for out, high, low in zip(results(tangents), above, below, strict=True):
                np.testing.assert_allclose(out, (high - low) / (2 * h), rtol=3e-8, atol=3e-9 * abs(high).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in host_functions.__all__])
def test_compiled_values_are_scipys(name: str) -> None:
    operands, _ = CASES[name]
    with enable_x64():
        outs, references = pullback.jit(getattr(special, name))(*operands), getattr(scipy.special, name)(*operands)
        for out, reference in zip(results(outs), results(references), strict=True):
            np.testing.assert_allclose(out, reference, rtol=3e-14)


def test_the_host_computes_within_programs_batches_and_gradients() -> None:
    with enable_x64():
        f = pullback.jit(pullback.vmap(pullback.value_and_grad(special.struve, 1), (None, 0)))
        values, slopes = f(0.5, X)
        np.testing.assert_array_equal(values, scipy.special.struve(0.5, X))
        _, tangents = pullback.jvp(lambda x: special.struve(0.5, x), (X,), (np.ones(4),))
        np.testing.assert_allclose(slopes, tangents, rtol=1e-15)
        second = pullback.grad(pullback.grad(lambda x: special.pbdv(1.5, x)[0]))(0.7)
        assert float(second) == pytest.approx((0.7**2 / 4 - 2) * scipy.special.pbdv(1.5, 0.7)[0], rel=1e-14)


def test_operands_without_a_derivative_are_refused() -> None:
    with pytest.raises(errors.NotDifferentiableError, match="mathieu_modcem1 has no derivative by q, a formula of whi"):
        pullback.grad(lambda q: special.mathieu_modcem1(1, q, 0.3)[0])(0.5)
    with pytest.raises(errors.NotDifferentiableError, match="mathieu_a has no derivative by m"):
        pullback.grad(special.mathieu_a)(1.0, 0.5)


def test_derivatives_at_special_points() -> None:
    with enable_x64():
        assert pullback.grad(special.rgamma)(-3.0) == pytest.approx(-6, rel=1e-14)
        assert pullback.grad(pullback.grad(special.rgamma))(0.0) == pytest.approx(2 * np.euler_gamma, rel=1e-12)
        assert pullback.grad(special.inv_boxcox, 1)(0.5, 0.0) == pytest.approx(-math.exp(0.5) / 8, rel=1e-14)
        assert pullback.grad(special.pseudo_huber, 1)(1.0, 0.0) == 0
        mixed = pullback.grad(pullback.grad(special.stdtr), 1)(3.0, 0.0)
        densities = [scipy.stats.t.pdf(0, 3 + h) for h in (1e-4, -1e-4)]
        assert float(mixed) == pytest.approx((densities[0] - densities[1]) / 2e-4, rel=1e-7)
        assert pullback.grad(special.stdtr, 1)(3.0, 0.0) == pytest.approx(2 / (math.pi * math.sqrt(3)), rel=1e-14)
        assert pullback.grad(special.spherical_jn, 1)(1, 0.0) == pytest.approx(1 / 3, rel=1e-15)


@pytest.mark.parametrize("name", ["hankel1", "hankel1e", "hankel2", "hankel2e"])
def test_hankel_functions(name: str) -> None:
    with enable_x64():
        reference = getattr(scipy.special, name)(ORDERS, X)
        for out in eager_and_compiled(getattr(special, name), ORDERS, X):
            np.testing.assert_allclose(out, reference, rtol=1e-13)
    assert getattr(special, name)(jnp.float32(0), jnp.float32(1)).dtype == np.complex64


def test_derivatives_of_bessel_functions_by_name() -> None:
    with enable_x64():
        for name in ("jvp", "yvp", "ivp", "kvp"):
            for n in range(4):
                out = getattr(special, name)(ORDERS, X, n)
                np.testing.assert_allclose(out, getattr(scipy.special, name)(ORDERS, X, n), rtol=1e-11)
        slope = pullback.grad(special.jvp, 1)(1.5, 2.0)
        assert float(slope) == pytest.approx(scipy.special.jvp(1.5, 2.0, 2), rel=1e-13)
    with pytest.raises(errors.ArgumentError, match="jvp: the order of the derivative n must not be negative, got -1"):
        special.jvp(0, 1.0, -1)


def test_spherical_functions_take_negative_numbers_and_zero() -> None:
    n, z = np.array([[0], [1], [2]]), np.array([-1.5, 0.0, 2.0])
    with enable_x64():
        for name in ("jn", "yn", "in", "kn"):
            for out in eager_and_compiled(getattr(special, f"spherical_{name}"), n, z):
                np.testing.assert_allclose(out, getattr(scipy.special, f"spherical_{name}")(n, z), rtol=1e-13)
        slopes = special.spherical_kn(n, X, derivative=True)
        np.testing.assert_allclose(slopes, scipy.special.spherical_kn(n, X, derivative=True), rtol=1e-13)


def test_orders_for_which_scipy_takes_seconds() -> None:
    """Its loops go over all lower orders, or it needs as much memory."""
    with enable_x64():
        assert all(np.isnan(x) for x in special.mathieu_cem(4e9, 0.25, 0.3))
        assert all(np.isnan(x) for x in special.pbdv(np.array(4e9), 0.3))
        values = np.asarray(special.pbvv(np.array([0.5, 4e9]), 0.3)[0])
        np.testing.assert_array_equal(values, [scipy.special.pbvv(0.5, 0.3)[0], np.nan])
        n, z = np.array([10_001, 10_002, 10_001, 2]), np.array([-3e4, 3e4, 0.0, 3.0])
        for name in ("spherical_jn", "spherical_yn"):
            out, expected = getattr(special, name)(n, z), getattr(scipy.special, name)(n, z)
            np.testing.assert_allclose(out, expected, rtol=1e-6)
            assert np.isnan(getattr(special, name)(2_000_000, 4e9))


def test_zeros_of_bessel_functions() -> None:
    with enable_x64():
        for name in ("jn", "jnp", "yn", "ynp"):
            np.testing.assert_array_equal(
                getattr(special, f"{name}_zeros")(2, 3), getattr(scipy.special, f"{name}_zeros")(2, 3)
            )
    with pytest.raises(errors.ArgumentError, match="jn_zeros: the number of zeros nt must be positive, got 0"):
        special.jn_zeros(0, 0)


def test_signatures_are_positional_as_those_of_ufuncs() -> None:
    assert str(inspect.signature(special.struve)).startswith("(v: ")
    with pytest.raises(TypeError):
        special.struve(v=1.0, x=2.0)
    assert "the shape to which the operands broadcast" in str(special.struve.__doc__)


def test_shapes_that_do_not_broadcast_are_refused_by_every_function() -> None:
    for name in special.__all__:
        function = getattr(special, name)
        if not inspect.isfunction(function):
            continue
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        needed = [
            p for p in inspect.signature(function).parameters.values() if p.default is p.empty and p.kind in kinds
        ]
        if len(needed) > 1:
            with pytest.raises(errors.PullbackError):
                function(jnp.ones(3), *[jnp.ones(4)] * (len(needed) - 1))
