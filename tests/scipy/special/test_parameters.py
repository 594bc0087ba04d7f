"""Derivatives by the parameters of 0F1, Wright's and Mathieu's functions, against values of mpmath and differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
import pullback.numpy as jnp
from pullback.core.config import enable_x64
from pullback.scipy import special
from pullback.scipy.special import mathieu
from tests.helpers import eager_and_compiled

# By mpmath 1.3.0 with 50 digits: v, z, and the first and the second derivative by v.
HYP0F1 = [
    (0.3, 0.5, -6.9802262503558605, 46.96879723021696),
    (1.0, 3.0, -8.08517995460822, 18.351176379615172),
    (2.5, -1.9, 0.18634851321134033, -0.1252143272846349),
    (7.0, -30.0, 0.0035888399663167392, 0.005533897940837843),
    (40.0, -900.0, -4.839829150279036e-13, -3.3070385161375157e-13),
    (-2.3, 50.0, -146890101.5430642, -1579716206.8889253),
    (-7.4, -5.0, 0.24068745988914061, 0.1465963919835361),
    (150.0, -900.0, 9.312002932007054e-05, 2.643104080616216e-06),
    (0.5, 2000.0, -2.012549731216696e39, 1.330973698502473e40),
    (1.5, 0.0, 0.0, 0.0),
    (30.0, -110.0, 0.002986370910614505, 0.00020140574936194653),
]
# a, b, x; the derivatives by a, by b, twice by a, and by both; that of the logarithm by a.
WRIGHT = [
    (0.0, 1.5, 3.0, -2.4810374136345024, -0.8270124712115008, -0.10946992193572956),
    (0.3, 0.0, 2.0, 9.809631619107321, 6.508281644481005, 2.2233282873825377),
    (1.0, 1.0, 1.0, -0.9999267693515113, -0.11389387274953344, -0.4386441552885996),
    (0.5, 2.2, 40.0, -1178661503.3793933, -84580254.9361289, -29.642431607329755),
    (2.5, 7.0, 300.0, -0.012769337169903017, -0.011443493655072462, -2.435588961758794),
    (1.0, 0.4, 0.0, 0.0, 1.1547341361415262, 0.0),
]
# The order, q, and three derivatives by q of an eigenvalue of the tridiagonal matrix.
CHARACTERISTIC = [
    ("mathieu_a", 1, 0.5, 0.8630650155894376, -0.297921245479654, -0.09579518261195497),
    ("mathieu_a", 2, 5.0, 0.5236761719836697, -0.20160077162810106, -0.018852125426589848),
    ("mathieu_a", 3, -12.0, 0.5515546598062865, -0.05551791610020016, -0.004817682780172104),
    ("mathieu_a", 6, 30.0, 0.7664868921411918, -0.0546932232688666, -0.0033995807202700603),
    ("mathieu_b", 1, 0.5, -1.1136851996889228, -0.20567762209453275, 0.08261245948245603),
    ("mathieu_b", 2, 5.0, -0.7004092615703608, -0.10049823457041814, 0.01599026740808067),
    ("mathieu_b", 3, -12.0, -0.267713983532883, -0.1269161645699776, -0.009966753328958583),
    ("mathieu_b", 6, 30.0, 0.04218402394489478, -0.028515940536970274, 0.00014299356724323568),
]
# The order, q, x; the derivatives by q of the function and of its slope, and the second ones.
EVEN = [
    (1, 0.5, 30.0, -0.013050758462780112, 0.4097496638043161, -0.029598825544464417, 0.06109190781370256),
    (2, 5.0, 77.0, 0.013535735493695779, -0.44298140635859407, -0.004510804594881313, -0.027809260707128504),
    (3, -12.0, -20.0, 0.04655548649896033, -0.1206755051710642, 0.002201216735678341, -0.016559165196782796),
]


def test_hyp0f1_by_its_parameter() -> None:
    first, second = pullback.grad(special.hyp0f1), pullback.grad(pullback.grad(special.hyp0f1))
    with enable_x64():
        for v, z, *expected in HYP0F1:
            assert float(first(v, z)) == pytest.approx(expected[0], rel=1e-12, abs=1e-300)
            assert float(second(v, z)) == pytest.approx(expected[1], rel=3e-12, abs=1e-300)
        assert math.isnan(first(301.0, -5000.0))
        mixed = pullback.grad(pullback.grad(special.hyp0f1), 1)(1.5, -3.0)
        assert float(pullback.grad(pullback.grad(special.hyp0f1, 1))(1.5, -3.0)) == pytest.approx(float(mixed), 1e-12)


@pytest.mark.slow
def test_wright_bessel_by_its_parameters() -> None:
    with enable_x64():
        for a, b, x, by_a, by_b, of_log in WRIGHT:
            assert float(pullback.grad(special.wright_bessel)(a, b, x)) == pytest.approx(by_a, rel=1e-12, abs=1e-300)
            assert float(pullback.grad(special.wright_bessel, 1)(a, b, x)) == pytest.approx(by_b, rel=1e-12)
            assert float(pullback.grad(special.log_wright_bessel)(a, b, x)) == pytest.approx(of_log, rel=1e-12, abs=0)
        assert math.isnan(pullback.grad(special.wright_bessel)(0.5, 1.0, -1.0))
        mixed = pullback.grad(pullback.grad(special.wright_bessel, 2))(0.5, 1.2, 2.0)
        again = pullback.grad(pullback.grad(special.wright_bessel), 2)(0.5, 1.2, 2.0)
        assert float(mixed) == pytest.approx(float(again), rel=1e-13)


def test_the_logarithm_of_wrights_function_is_differentiated_where_the_function_overflows() -> None:
    with enable_x64():
        a, b, x, h = 0.5, 1.0, 20000.0, 1e-4
        assert scipy.special.wright_bessel(a, b, x) == math.inf
        above, below = (scipy.special.log_wright_bessel(a, b + d, x) for d in (h, -h))
        found = float(pullback.grad(special.log_wright_bessel, 1)(a, b, x))
        assert found == pytest.approx(float(above - below) / (2 * h), rel=1e-8)
        assert math.isnan(pullback.grad(special.log_wright_bessel, 1)(0.1, b, 5000.0))  # of more than 2,000 terms


@pytest.mark.parametrize("row", CHARACTERISTIC, ids=lambda row: f"{row[0]}-{row[1]}")
def test_characteristic_values_to_the_third_order(row: Any) -> None:
    name, m, q, *expected = row
    with enable_x64():
        f = lambda q: getattr(special, name)(float(m), q)
        for value in expected:
            f = pullback.grad(f)
            assert float(f(q)) == pytest.approx(value, rel=1e-10, abs=1e-13)


def test_even_functions_by_the_parameter() -> None:
    with enable_x64():
        for m, q, x, *expected in EVEN:
            for result, (first, second) in enumerate(zip(expected[:2], expected[2:], strict=True)):
                f = lambda q, m=m, x=x, result=result: special.mathieu_cem(float(m), q, x)[result]
                assert float(pullback.grad(f)(q)) == pytest.approx(first, rel=1e-12)
                assert float(pullback.jvp(pullback.grad(f), (q,), (1.0,))[1]) == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize("odd", [False, True])
def test_fourier_sums_are_scipys_and_their_derivatives_those_of_differences(odd: bool) -> None:
    m, q = np.arange(1, 9)[:, None], np.array([-30.0, -3.0, 0.0, 0.5, 7.0, 60.0])
    reference = (scipy.special.mathieu_sem if odd else scipy.special.mathieu_cem)(m, q, 37.0)
    h = 1e-3
    for k in (0, 1):
        f = lambda q, n, k=k: mathieu.function(m, q, 37.0, odd=odd, order=n, order_of_x=k)
        np.testing.assert_allclose(f(q, 0), reference[k], atol=2e-12)
        for n in (1, 2):
            near, far = f(q + h, n - 1) - f(q - h, n - 1), f(q + 2 * h, n - 1) - f(q - 2 * h, n - 1)
            np.testing.assert_allclose(f(q, n), (8 * near - far) / (12 * h), atol=1e-8)


def test_functions_of_degrees_have_mixed_derivatives_within_compiled_batches() -> None:
    with enable_x64():
        of_q = lambda x: pullback.grad(lambda q: special.mathieu_sem(2.0, q, x)[0])(0.5)
        of_x = lambda q: pullback.grad(lambda x: special.mathieu_sem(2.0, q, x)[0])(30.0)
        assert float(pullback.grad(of_q)(30.0)) == pytest.approx(float(pullback.grad(of_x)(0.5)), rel=1e-12)
        slope = pullback.grad(lambda q: special.mathieu_sem(2.0, q, 30.0)[1])
        alone = [float(slope(q)) for q in (0.5, 2.0)]
        for out in eager_and_compiled(pullback.vmap(slope), jnp.array([0.5, 2.0])):
            np.testing.assert_allclose(out, alone, rtol=1e-14)


# By mpmath 1.3.0, of 33 harmonics around the order: the order, q, and the second to fourth derivatives by q.
LARGE_ORDERS = [
    (600.0, 50.0, 2.77778559432033571e-6, 4.01886984183206504e-15, 8.03774107916731201e-17),
    (600.0, 350.0, 2.77779041697419355e-6, 2.8132206115479304e-14, 8.03784155595930589e-17),
    (2000.0, -3000.0, 2.50000326172778049e-7, -1.75782064091008032e-16, 5.85943179975329934e-20),
]


@pytest.mark.parametrize("odd", [False, True])
def test_large_orders_have_four_derivatives(odd: bool) -> None:
    m, q, *expected = np.array(LARGE_ORDERS).T
    for order, values in enumerate(expected, 2):
        found = mathieu.higher_slope(m, q, odd=odd, order=order)
        np.testing.assert_allclose(found, values, rtol=1e-13 if order == 2 else 1e-10)
    assert np.isnan(mathieu.higher_slope(m, q, odd=odd, order=5)).all()


def test_numbers_that_are_no_orders() -> None:
    assert np.isnan(mathieu.higher_slope(2.5, 3.0, odd=False, order=2))
    assert np.isnan(mathieu.function(2.5, 1.0, 3.0, odd=False, order=1, order_of_x=0))
