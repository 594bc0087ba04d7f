"""``jet`` and ``taylor``: derivatives along a curve agree with nested ``jvp``, through everything, under everything."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_jvp,
    custom_vjp,
    disable_jit,
    errors,
    float0,
    grad,
    jacfwd,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    nn,
    shard_map,
    tree,
    vjp,
    vmap,
)  # fmt: skip
from pullback.core.config import enable_x64
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.custom_batching import custom_vmap
from pullback.derivatives import derivative_tensor, jet, taylor
from pullback.experimental import io_callback
from pullback.experimental import jet as jax_spelling
from pullback.experimental.ode import odeint
from pullback.extend.core import Primitive
from pullback.primitives.power_series import sum_of_products_p
from pullback.scipy import special
from pullback.scipy.linalg import expm, solve_discrete_lyapunov, solve_sylvester, sqrtm

Function = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("all_in_x64")


def nested(f: Function, x: Any, order: int) -> list[Any]:
    """Taylor coefficients by ``jvp`` of ``jvp``."""
    out = []
    for k in range(order + 1):
        out.append(f(x) / math.factorial(k))
        f = lambda x, f=f: jvp(f, (x,), (jnp.ones_like(x),))[1]
    return out


def assert_taylor(f: Function, x: float = 0.4, order: int = 4) -> None:
    got = taylor(f, x, order)
    np.testing.assert_allclose(np.array(got), np.array(nested(f, jnp.asarray(x), order)), rtol=1e-10, atol=1e-12)


# The functions themselves --------------------------------------------------------------------------------------------


def test_jet_takes_and_returns_derivatives() -> None:
    """The derivatives of sin(t**3) at t = 0.5, by those of t**3 (Faà di Bruno's formula)."""
    h = 0.5**3, 3 * 0.5**2, 6 * 0.5, 6.0
    out, derivatives = jet(jnp.sin, (h[0],), (h[1:],))
    c, s = math.cos(h[0]), math.sin(h[0])
    expected = c * h[1], c * h[2] - s * h[1] ** 2, c * h[3] - 3 * s * h[1] * h[2] - c * h[1] ** 3
    np.testing.assert_allclose([out, *derivatives], [s, *expected], rtol=1e-14)


def test_jet_without_factorials_takes_and_returns_coefficients() -> None:
    _, derivatives = jet(jnp.exp, (0.0,), ((1.0, 2.0, 6.0),))
    _, coefficients = jet(jnp.exp, (0.0,), ((1.0, 1.0, 1.0),), factorial_scaled=False)
    np.testing.assert_allclose([c * math.factorial(k + 1) for k, c in enumerate(coefficients)], derivatives)


def test_jet_of_trees() -> None:
    def f(d: Any, y: Any) -> Any:
        return {"product": d["x"] * y, "sines": [jnp.sin(y), d["n"]]}

    x, n, y = np.array([1.0, 2.0]), 3, np.array([0.5, 0.25])
    series = {"x": [x, 0 * x], "n": [0, 0]}, [jnp.ones(2), jnp.zeros(2)]
    out, derivatives = jet(f, ({"x": x, "n": n}, y), series)
    np.testing.assert_allclose(out["product"], x * y)
    np.testing.assert_allclose(derivatives["product"], [x * y + x, 2 * x])
    np.testing.assert_allclose(derivatives["sines"][0], [np.cos(y), -np.sin(y)])
    assert out["sines"][1] == 3
    assert all(z.dtype == float0 for z in derivatives["sines"][1])


def test_results_that_do_not_depend_on_the_point_have_zeros() -> None:
    out, (first, second) = jet(lambda x: jnp.arange(3.0), (1.0,), ((1.0, 0.0),))
    np.testing.assert_array_equal(out, [0, 1, 2])
    np.testing.assert_array_equal([first, second], np.zeros((2, 3)))
    assert [float(c) for c in taylor(jnp.floor, 1.5, 2)] == [1, 0, 0]


def test_taylor_along_a_direction() -> None:
    coefficients = taylor(lambda p: p["a"] * p["b"] ** 2, {"a": 1.0, "b": 2.0}, 3, {"a": 1.0, "b": -1.0})
    np.testing.assert_allclose(coefficients, [4, 0, -3, 1])  # (1 + t) (2 - t)**2


def test_of_each_element() -> None:
    x = np.linspace(0.1, 1, 5)
    np.testing.assert_allclose(taylor(jnp.log, x, 3), [np.log(x), 1 / x, -1 / (2 * x**2), 1 / (3 * x**3)])


ROWS: dict[str, Function] = {
    "tanh": jnp.tanh,
    "quotient": lambda x: jnp.exp(x) / (2 + x * x),
    "power": lambda x: (1 + x) ** 2.5 * jnp.sqrt(2 + jnp.sin(x)),
    "linear": lambda x: jnp.tanh(x @ jnp.array([[0.5, -1.0], [0.25, 2.0]]))[..., ::-1],
    "mixed": lambda x: jnp.exp(jnp.sum(x, -1, keepdims=True)) * x * x[..., ::-1],
    "complex": lambda x: jnp.exp(1j * x).imag * nn.sigmoid(x),
    "of one power": lambda x: jnp.tanh(x * x) + jnp.exp(3 * x),
    "outer product": lambda x: x[..., :, None] * jnp.exp(x)[..., None, :],
}


@pytest.mark.parametrize("name", ROWS)
def test_small_arrays_and_large_ones(name: str) -> None:
    """Small arrays are computed by other calls of NumPy than large ones, and than compiled ones."""
    f = ROWS[name]
    rng = np.random.default_rng(0)
    terms = [0.5 * rng.normal(size=(6000, 2)) for _ in range(9)]
    nothing = np.zeros((6000, 2))
    for series in (terms, [terms[0], *[nothing] * 8], [nothing, nothing, *terms[2:]]):
        x = rng.uniform(0.1, 0.9, (6000, 2))
        large = jet(f, (x,), (series,))[1]
        small = jet(f, (x[:3],), ([c[:3] for c in series],))[1]
        np.testing.assert_allclose(np.array(small), np.array(large)[:, :3], rtol=1e-9, atol=1e-9)


def test_order_zero_is_the_value() -> None:
    assert [float(c) for c in taylor(jnp.exp, 0.0, 0)] == [1.0]
    assert jet(jnp.exp, (0.0,), ((),)) == (1.0, [])


def test_jax_s_name() -> None:
    assert jax_spelling.jet is jet


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jet(jnp.sin, 1.0, ((1.0,),)), "jet takes primals as a tuple or list"),
        (lambda: jet(jnp.sin, (1.0,), ((1.0,), (1.0,))), "got 1 primals and 2 series"),
        (lambda: jet(jnp.sin, (1.0,), (1.0,)), "the series of argument 0 must be a tree like the argument"),
        (lambda: jet(jnp.add, (1.0, 2.0), ((1.0,), (1.0, 0.0))), "all series must be of one length, got 1, 2"),
        (lambda: jet(jnp.sin, (1.0,), ((jnp.ones(2),),)), r"argument 0 \(x\): the value is f64\[\], so its deriv"),
        (lambda: taylor(jnp.sin, 1.0, -1), "order must be a non-negative integer, got -1"),
        (lambda: taylor(jnp.sin, 1.0, 1.5), "order must be a non-negative integer, got 1.5"),
        (lambda: taylor(jnp.sin, 1, 2), "taylor needs real or complex inputs, but"),
        (lambda: taylor(jnp.sin, 1.0, 2, (1.0,)), "the direction must have the tree of the point"),
    ],
)
def test_what_does_not_fit_is_refused(call: Function, message: str) -> None:
    with pytest.raises(TypeError, match=f"(?s){message}"):
        call()


def test_an_operation_without_a_derivative_is_named_with_its_line() -> None:
    hidden = Primitive("hidden")
    hidden.host(lambda x: x)
    hidden.abstract_eval(lambda x: x)

    def f(x: Any) -> Any:
        return hidden.bind(x)  # this line

    for g in (f, jit(f)):
        with pytest.raises(errors.MissingRuleError, match=r"'hidden' has no jvp rule, which Taylor mode") as raised:
            taylor(g, 1.0, 2)
        assert str(raised.value).endswith("return hidden.bind(x)  # this line")


# Operations ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, 2.5, 1.5, 0.5, -1.5, 0, 3, 5, -2])
def test_powers_of_any_exponent(exponent: float) -> None:
    assert_taylor(lambda x: lax.pow(x, exponent) if isinstance(exponent, float) else x**exponent, 0.7)


MOVING_POWERS: dict[str, Function] = {
    "x**x": lambda x: x**x,
    "of an array": lambda x: (jnp.array([2.0, 3.0]) ** x).sum(),
    "of a number": lambda x: lax.pow(2.0, x),
    "of both": lambda x: (1 + x * x) ** jnp.sin(x),
    "by an array": lambda x: (x ** jnp.array([2.5, -1.0, 3.0, 0.0])).sum(),
    "complex": lambda x: ((x + 0.2j) ** (x * 1j)).real,
}


@pytest.mark.parametrize("name", MOVING_POWERS)
def test_powers_of_moving_exponents(name: str) -> None:
    assert_taylor(MOVING_POWERS[name], 0.7)


EXPONENTS = (0.0, 1.0, 2.0, 3.0, 7.0, 2.5, -1.0, -3.0, 70.0)


@pytest.mark.parametrize("point", [0.7, -0.7])
def test_powers_by_arrays(point: float) -> None:
    """Of exponents that are known and of others, along a curve; not of a number are a negative one's powers by 2.5."""
    f = lambda x, y: lax.pow(point + x + 0.3 * x**2, y)
    for exponents in (np.array(EXPONENTS), np.array([2.0, 5.0]), np.array([-1.5, 0.5])):
        expected = np.array(nested(lambda x, y=exponents: f(x + jnp.zeros_like(y), jnp.asarray(y)), jnp.zeros(()), 4))
        along = lambda x, y: taylor(lambda x: f(x + jnp.zeros_like(y), y), x, 4)
        np.testing.assert_allclose(along(0.0, jnp.asarray(exponents)), expected, rtol=1e-11)
        np.testing.assert_allclose(vmap(along, (None, 0))(0.0, exponents), expected, rtol=1e-11)


@pytest.mark.parametrize("point", [0.0, 1e-3])
def test_whole_powers_by_arrays_are_products(point: float) -> None:
    """Near zero the recurrence of powers would lose digits, and there it is no number; so would its derivatives."""
    exponents = np.array([0.0, 1.0, 2.0, 3.0, 6.0, 63.0])
    terms = [1.0, 0.5, -2.0, 0.0, 1.0]
    fifth = lambda x, y: jet(lambda x: lax.pow(x * jnp.ones_like(y), y), (x,), (terms,))[1][4]
    expected = [jet(lambda x, n=n: x ** int(n), (point,), (terms,))[1][4] for n in exponents]
    slopes = [grad(lambda x, n=n: jet(lambda x: x ** int(n), (x,), (terms,))[1][4])(point) for n in exponents]
    np.testing.assert_allclose(fifth(point, jnp.asarray(exponents)), expected, rtol=1e-12)
    unknown = vmap(lambda y: (fifth(point, y), grad(fifth)(point, y)))
    np.testing.assert_allclose(jit(unknown)(exponents), [expected, slopes], rtol=1e-12)


def test_powers_at_zero() -> None:
    """Finite below the exponent, infinite above; of whole exponents all are finite."""
    np.testing.assert_array_equal(taylor(lambda x: lax.pow(x, 1.5), 0.0, 3), [0, 0, np.inf, -np.inf])
    np.testing.assert_array_equal(taylor(lambda x: lax.pow(x, 3.5), 0.0, 4), [0, 0, 0, 0, np.inf])
    for power in (lambda x: x**3, lambda x: x**3.0, lambda x: x ** jnp.array(3.0)):
        np.testing.assert_array_equal(taylor(power, 0.0, 4), [0, 0, 0, 1, 0])
    np.testing.assert_array_equal(taylor(lambda x: x ** (x + 2.5), 0.0, 2), [0, 0, 0])
    np.testing.assert_array_equal(taylor(lambda x: x ** (x + 1), 0.0, 1), [0, 1])
    assert not np.isfinite(taylor(lambda x: x ** (x + 2.5), 0.0, 3)[3])
    by_array = np.array(taylor(lambda x: lax.pow(x * jnp.ones(3), jnp.array([1.5, 2.0, -0.5])), 0.0, 3))
    np.testing.assert_array_equal(
        by_array.T, [[0, 0, np.inf, -np.inf], [0, 0, 1, 0], np.inf * np.array([1, -1, 1, -1])]
    )
    np.testing.assert_array_equal(taylor(jnp.sqrt, 0.0, 2), [0, np.inf, -np.inf])


def test_far_from_zero_nothing_cancels() -> None:
    """Derivatives that are small next to one, with all their digits."""
    np.testing.assert_allclose(taylor(nn.sigmoid, 30.0, 3)[3], math.exp(-30.0) / 6, rtol=1e-12)
    np.testing.assert_allclose(taylor(jnp.expm1, -30.0, 3)[3], math.exp(-30.0) / 6, rtol=1e-14)


OF_GAMMA: dict[str, Function] = {
    "lgamma": lambda x: lax.lgamma(x),
    "digamma": lambda x: lax.digamma(x),
    "polygamma of order 0": lambda x: lax.polygamma(0.0, x),
    "polygamma": lambda x: lax.polygamma(jnp.array([1.0, 2.0, 5.0]), x),
    "zeta of an odd integer": lambda x: lax.zeta(3.0, x),
    "zeta": lambda x: lax.zeta(jnp.array([2.0, 4.0]), x),
}


@pytest.mark.parametrize("name", OF_GAMMA)
def test_gamma_and_zeta_functions_along_a_curve(name: str) -> None:
    """On both sides of zero; compiled and mapped, where the side is not known before, with the derivatives of that."""
    of = OF_GAMMA[name]
    f = lambda x, point: of(point + x - 0.7 * x**2).sum()
    points = jnp.array([0.3, 4.0, 33.0, -0.3, -2.6])
    expected = np.array([nested(lambda x, p=p: f(x, p), jnp.zeros(()), 4) for p in points])
    np.testing.assert_allclose([taylor(lambda x, p=p: f(x, p), 0.0, 4) for p in points], expected, rtol=1e-11)
    third = vmap(grad(lambda x, point: taylor(lambda x: f(x, point), x, 3)[3]), (None, 0))
    np.testing.assert_allclose(jit(third)(0.0, points), 4 * expected[:, 4], rtol=1e-10)


def test_zeta_along_curves_of_both_operands() -> None:
    both = lambda x: lax.zeta(jnp.array([1.2, 3.0, 20.0]) + x, 1 + x * x)
    assert_taylor(lambda x: both(x).sum(), 0.4, 3)
    for nowhere in (lambda x: lax.zeta(3 + x, -0.5), lambda x: lax.zeta(2.5, x - 0.5)):
        assert np.isnan(taylor(nowhere, 0.0, 2)[1:]).all()
    third = grad(lambda x: taylor(lambda x: both(x).sum(), x, 3)[3])
    np.testing.assert_allclose(third(0.4), 4 * taylor(lambda x: both(x).sum(), 0.4, 4)[4], rtol=1e-10)


BY_FORMULAS: dict[str, Function] = {
    "exprel": special.exprel,
    "erfcx": special.erfcx,
    "dawsn": special.dawsn,
    "spence": lambda x: special.spence(abs(x) + 0.2),
    "sici": lambda x: special.sici(x)[0],
    "i1e": special.i1e,
    "xlogy": lambda x: special.xlogy(x, abs(x) + 0.2),
}


@pytest.mark.parametrize("name", BY_FORMULAS)
def test_coefficients_by_formulas_are_mapped_differentiated_and_compiled(name: str) -> None:
    """The nodes of integrals stand still at any point: derivatives of a coefficient do not see them."""
    f = BY_FORMULAS[name]
    points = jnp.array([-2.5, 0.4, 6.0])
    third = vmap(grad(lambda x: taylor(f, x, 3)[3]))
    fourth = [taylor(f, x, 4)[4] for x in points]
    np.testing.assert_allclose(third(points), 4 * np.array(fourth), rtol=1e-9)
    np.testing.assert_allclose(jit(third)(points), 4 * np.array(fourth), rtol=1e-9)


def test_bessel_functions_along_curves_of_both_operands() -> None:
    assert_taylor(lambda x: special.jv(1.5, 1 + x * x), 0.4, 3)
    orders, points = jnp.array([0.0, 2.0, 2.5]), jnp.array([-0.3, 3.0, 9.0])
    third = grad(lambda x: taylor(lambda x: special.iv(orders, abs(points) + x).sum(), x, 3)[3])
    fourth = taylor(lambda x: special.iv(orders, abs(points) + x).sum(), 0.0, 4)[4]
    np.testing.assert_allclose(third(0.0), 4 * fourth, rtol=1e-10)


def test_bessel_functions_along_curves_of_the_order() -> None:
    """Of elementary functions where both sides are known: K has the same of v and -v, and of 1/2 an exponential."""
    curve = lambda t: 0.5 + jnp.sin(t) - 0.7 * t**2
    right, left = (taylor(lambda t, s=s: special.kv(s * curve(t), 1.7), 0.3, 14) for s in (1, -1))
    np.testing.assert_allclose(right, left, rtol=1e-12)
    assert_taylor(lambda t: special.kv(curve(t), 1.7), 0.3, 2)
    points = jnp.array([0.3, 3.0, 20.0])
    third = vmap(grad(lambda v, x: taylor(lambda v: special.kv(v, x), v, 3)[3]), (None, 0))
    fourth = [taylor(lambda v, x=x: special.kv(v, x), 1.5, 4)[4] for x in points]
    np.testing.assert_allclose(jit(third)(1.5, points), 4 * np.array(fourth), rtol=1e-12)


def test_bessel_functions_of_many_elements_by_the_order() -> None:
    """They are computed in blocks."""
    points = jnp.linspace(0.1, 30, 2050).reshape(2, 1025)
    got = taylor(lambda v: special.kv(v, points), 1.5, 3)
    few = taylor(lambda v: special.kv(v, points[:, ::128]), 1.5, 3)
    for whole, part in zip(got, few, strict=True):
        np.testing.assert_allclose(whole[:, ::128], part, rtol=1e-12)


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_bessel_functions_of_singles(name: str) -> None:
    """Their power series and equations are those of doubles."""
    f, point = getattr(special, name), np.float32(3.7)
    expected = taylor(lambda x: f(2.0, x), np.float64(point), 5)
    got = taylor(lambda x: f(np.float32(2.0), x), point, 5)
    assert all(c.dtype == np.float32 for c in got)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_hypergeometric_functions_along_curves() -> None:
    """M(1, 1, x) is exp(x), F(a, 1; 1; x) is (1 - x)**-a."""
    curve = lambda t: jnp.sin(t) - 0.7 * t**2 + 0.3 * t**5
    got, expected = (taylor(lambda t, f=f: f(curve(t)), 0.4, 15) for f in (lambda x: special.hyp1f1(1, 1, x), jnp.exp))
    np.testing.assert_allclose(got, expected, rtol=1e-13)
    power = lambda x: special.hyp2f1(jnp.array([2.5, -2.0]), 1, 1, x).sum()
    got, expected = (
        taylor(lambda t, f=f: f(curve(t)), 0.4, 15) for f in (power, lambda x: (1 - x) ** -2.5 + (1 - x) ** 2)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_coefficients_of_hypergeometric_functions_are_differentiated_mapped_and_compiled() -> None:
    points = jnp.array([-30.0, -2.5, 0.0, 0.4])
    f = lambda x: special.hyp2f1(1.5, 0.5, 2.5, x)
    third = vmap(grad(lambda x: taylor(f, x, 3)[3]))
    expected = 4 * np.array([taylor(f, x, 4)[4] for x in points])
    np.testing.assert_allclose(third(points), expected, rtol=1e-13)
    np.testing.assert_allclose(jit(third)(points), expected, rtol=1e-13)


def test_coefficients_of_polynomials_are_differentiated_by_the_degree() -> None:
    """Where the sum ends, the derivative by a of what is zero is not."""
    by_a = grad(lambda a: taylor(lambda x: special.hyp1f1(a, 1.5, x), 0.0, 2)[2])
    np.testing.assert_allclose(by_a(-1.0), (2 * -1.0 + 1) / (1.5 * 2.5 * 2), rtol=1e-13)  # of a (a + 1) / ...


def test_polynomials_have_coefficients_where_other_hypergeometric_functions_are_infinite() -> None:
    """That is x**2 of 1 - 4 x + 2 x**2, and no more; the derivative too."""
    f = lambda x: special.hyp2f1(-2, 2, 1, x)
    np.testing.assert_allclose(taylor(f, 2.0, 4), [1 - 8 + 12, -4 + 12, 3, 0, 0], atol=1e-14)
    np.testing.assert_allclose(grad(lambda x: taylor(f, x, 3)[1])(2.0), 6.0)
    far = taylor(lambda x: special.hyp1f1(-1, 0.5, x), 800.0, 3)
    np.testing.assert_allclose(far, [-1599, -2, 0, 0])


@pytest.mark.parametrize("name", ["hyp1f1", "hyp2f1", "igamma", "betainc"])
def test_coefficients_of_singles_are_those_of_doubles(name: str) -> None:
    f, xs = getattr(special, {"igamma": "gammainc"}.get(name, name)), [1.5, 2.5, 3.5, 0.4]
    xs = xs if name == "hyp2f1" else xs[:2] if name == "igamma" else [*xs[:2], 0.4]
    moving = 0 if name in ("igamma", "betainc") else len(xs) - 1

    def along(dtype: Any) -> Any:
        operands = [jnp.asarray(x, dtype) for x in xs]
        return taylor(lambda x: f(*operands[:moving], x, *operands[moving + 1 :]), operands[moving], 5)

    got = along(np.float32)
    assert all(c.dtype == np.float32 for c in got)
    np.testing.assert_allclose(got, along(np.float64), rtol=2e-6)


BY_PARAMETERS: dict[str, Function] = {
    "igamma": lambda a, x: lax.igamma(a, x),
    "igammac": lambda a, x: lax.igammac(a, 2 * a),
    "betainc": lambda a, x: lax.betainc(a, 2.0, x / 10),
    "hyp1f1": lambda a, x: special.hyp1f1(a, 1 + a, x - 2),
}


@pytest.mark.parametrize("name", BY_PARAMETERS)
def test_coefficients_by_parameters_are_mapped_differentiated_and_compiled(name: str) -> None:
    """On both sides of the mean. At the ends of the domain there is nothing to differentiate."""
    f = BY_PARAMETERS[name]
    a, x = jnp.array([0.4, 3.0, 2.0]), jnp.array([2.0, 1.5, 3.0])
    second = vmap(grad(lambda a, x: taylor(lambda a: f(a, x), a, 1)[1]))
    expected = [2 * taylor(lambda a, x=x: f(a, x), a, 2)[2] for a, x in zip(a, x, strict=True)]
    np.testing.assert_allclose(jit(second)(a, x), expected, rtol=1e-12)
    np.testing.assert_array_equal(taylor(lambda a: lax.igamma(a, 0.0), 2.0, 3), 0)
    np.testing.assert_array_equal(taylor(lambda a: lax.igammac(a, 0.0), 2.0, 3), [1, 0, 0, 0])
    np.testing.assert_array_equal(taylor(lambda a: lax.betainc(a, 2.0, 1.0), 2.0, 3), [1, 0, 0, 0])


@pytest.mark.parametrize("x", [2.0, 4.0])
def test_derivatives_by_parameters_have_coefficients(x: float) -> None:
    """On both sides of the mean; by two parameters those of the one are the other's derivatives."""
    second = taylor(grad(grad(lambda a: lax.igamma(a, x))), 3.0, 2)
    expected = taylor(lambda a: lax.igamma(a, x), 3.0, 4)
    np.testing.assert_allclose(second, [2 * expected[2], 6 * expected[3], 12 * expected[4]], rtol=1e-12)
    f = lambda a, b: lax.betainc(a, b, x / 5)
    mixed = taylor(lambda b: grad(lambda a: f(a, b))(3.0), 2.0, 2)
    slopes = jacfwd(lambda a: jnp.array(taylor(lambda b: f(a, b), 2.0, 2)))(3.0)
    np.testing.assert_allclose(mixed, slopes, rtol=1e-12)
    twice = taylor(lambda b: grad(lambda a: grad(f, 1)(a, b))(3.0), 2.0, 1)
    np.testing.assert_allclose(twice, [slopes[1], 2 * slopes[2]], rtol=1e-12)


def test_zero_times_a_logarithm_is_zero_in_each_order() -> None:
    np.testing.assert_array_equal(taylor(lambda y: special.xlogy(0.0, y), 0.0, 3), 0)
    np.testing.assert_array_equal(taylor(lambda x: special.xlogy(x, 2.0), 0.0, 2), [0, math.log(2), 0])
    np.testing.assert_array_equal(taylor(lambda y: special.xlog1py(0.0, y), -1.0, 3), 0)


def matrix(x: Any) -> Any:
    return jnp.array([[2.0 + x, x, 0.1], [x * x, 3.0 - x, jnp.sin(x)], [0.2, x, 4.0]])


def symmetric(x: Any) -> Any:
    return matrix(x) + matrix(x).T


OF_MATRICES: dict[str, Function] = {
    "cholesky": lambda x: jnp.linalg.cholesky(symmetric(x)).sum(),
    "solve": lambda x: jnp.linalg.solve(matrix(x), jnp.array([x, 1.0, x * x])).sum(),
    "inv": lambda x: jnp.linalg.inv(matrix(x))[0, 1],
    "det": lambda x: jnp.linalg.det(matrix(x)),
    "slogdet": lambda x: jnp.linalg.slogdet(matrix(x))[1],
    "eigvalsh": lambda x: (jnp.linalg.eigvalsh(symmetric(x)) ** 2)[1],
    "eigh": lambda x: jnp.linalg.eigh(symmetric(x))[1][0, 1] ** 2,
    "svd": lambda x: jnp.linalg.svd(matrix(x))[1][1],
    "qr": lambda x: jnp.linalg.qr(matrix(x))[1].sum(),
    "triangular_solve": lambda x: lax.linalg.triangular_solve(
        matrix(x), jnp.ones((2, 3)) * x, lower=True, transpose_a=True, unit_diagonal=True
    ).sum(),
    "tridiagonal_solve": lambda x: lax.linalg.tridiagonal_solve(
        jnp.array([0.0, x, 1.0]), jnp.array([3.0, 4.0, 5 + x]), jnp.array([x, x * x, 0.0]), jnp.ones((3, 1)) + x
    ).sum(),
    "sylvester": lambda x: solve_sylvester(matrix(x), matrix(x * x), matrix(x) @ matrix(x))[0, 1],
    "lyapunov": lambda x: solve_discrete_lyapunov(matrix(x) / 10, matrix(x * x)).sum(),
    "stein": lambda x: solve_discrete_lyapunov(matrix(x), matrix(x * x))[0, 1],
    "sqrtm": lambda x: sqrtm(matrix(x) @ matrix(x)).real.sum(),
    "expm": lambda x: expm(matrix(x)).sum(),
    "conv": lambda x: jnp.convolve(jnp.array([x, 1.0, x * x]), jnp.array([jnp.sin(x), x]))[2],
    "einsum": lambda x: jnp.einsum("ij,jk,kl->il", matrix(x), matrix(x), matrix(x)).sum(),
}


@pytest.mark.parametrize("name", OF_MATRICES)
def test_of_matrices(name: str) -> None:
    assert_taylor(OF_MATRICES[name])


STRUCTURAL: dict[str, Function] = {
    "indexing": lambda x: (jnp.array([x, x * x, 1.0])[jnp.array([1, 0, 2, 1])] * jnp.arange(4.0)).sum(),
    "update": lambda x: jnp.zeros(3).at[1].set(x * x).at[jnp.array([1, 2])].add(jnp.array([x, x**3])).prod(),
    "where": lambda x: jnp.where(jnp.array([True, False]), x * x, 1.0).sum(),
    "sort": lambda x: (jnp.sort(jnp.array([x, -x, x * x])) * jnp.arange(3.0)).sum(),
    "extremes": lambda x: jnp.max(jnp.array([x, x * x])) + jnp.minimum(x, x * x) + jnp.clip(x * x, 0.1, 2.0),
    "reductions": lambda x: jnp.prod(jnp.array([x, x, 2.0])) + jnp.var(jnp.array([x, 1.0])),
    "cumulative": lambda x: jnp.cumprod(jnp.array([x, x + 1, x + 2]))[2] + jnp.cumsum(jnp.array([x, x * x]))[1],
    "fft": lambda x: jnp.abs(jnp.fft.fft(jnp.array([x, x * x, 1.0]))[1]),
    "complex": lambda x: jnp.real(jnp.exp(1j * x) * (x + 1j * x * x) ** 2),
    "stop_gradient": lambda x: x * lax.stop_gradient(x * x),
    "dtype": lambda x: (x.astype("complex128") ** 2).real.astype("float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structural_operations(name: str) -> None:
    assert_taylor(STRUCTURAL[name])


# Programs ------------------------------------------------------------------------------------------------------------


@custom_jvp
def sine(x: Any) -> Any:
    return jnp.sin(x)


sine.defjvps(lambda t, ans, x: t * cosine(x))


@custom_jvp
def cosine(x: Any) -> Any:
    return jnp.cos(x)


cosine.defjvps(lambda t, ans, x: -t * sine(x))


@custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (3 * x**2 * ct,))


@custom_vmap
def shifted(x: Any) -> Any:
    return jnp.sin(x) + 1


@shifted.def_vmap
def shifted_batch(size: int, mapped: Any, x: Any) -> Any:
    return jnp.sin(x) + 1, mapped[0]


@custom_jvp
def tripled(x: Any) -> Any:
    return x


tripled.defjvps(lambda t, ans, x: 3 * t * ans)


def root(x: Any) -> Any:
    """The solution of y**3 + y = x."""

    def newton(f: Any, y: Any) -> Any:
        for _ in range(30):
            y = y - f(y) / (3 * y**2 + 1)
        return y

    return lax.custom_root(lambda y: y**3 + y - x, 0.5, newton, lambda g, y: y / g(1.0))


PROGRAMS: dict[str, Function] = {
    "jit": jit(lambda x: jnp.sin(x) * x),
    "jit in jit": jit(lambda x: jit(jnp.exp)(x * x) + jit(lambda y: y * 2)(x)),
    "scan": lambda x: lax.scan(lambda c, a: (jnp.sin(c) * a, c * x), x, jnp.array([1.0, 2.0, x]))[0],
    "stacked": lambda x: lax.scan(lambda c, a: (jnp.sin(c) + a, (c * x, a)), x, jnp.arange(3.0))[1][0].sum(),
    "scan in reverse": lambda x: lax.scan(lambda c, a: (c + a * a, None), 0.0, jnp.array([x, 1.0]), reverse=True)[0],
    "while_loop": lambda x: lax.while_loop(lambda c: c[1] < 1.5, lambda c: (c[0] + 1, c[1] * x + 1), (0, x))[1],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, 1.0),
    "cond": lambda x: lax.cond(x > 0, jnp.sin, lambda x: 2.0, x),
    "traced cond": jit(lambda x: lax.cond(x > 0, jnp.sin, lambda x: 2.0, x)),
    "traced switch": jit(lambda x: lax.switch(1, [jnp.sin, lambda x: x * x], x) * lax.switch(0, [jnp.sin, jnp.cos], x)),
    "map": lambda x: lax.map(lambda a: jnp.sin(a * x), jnp.arange(3.0)).sum(),
    "associative_scan": lambda x: lax.associative_scan(jnp.multiply, jnp.array([x, x + 1, 2.0]))[2],
    "vmap": lambda x: vmap(lambda a: a * jnp.sin(x))(jnp.arange(3.0)).sum(),
    "grad": grad(lambda x: jnp.sin(x) * x**2),
    "vjp": lambda x: vjp(lambda a: a**3 * x, x)[1](x)[0],
    "jvp": lambda x: jvp(lambda a: a**3 * x, (x,), (x,))[1],
    "linearize": lambda x: linearize(lambda a: a**3 * x, x)[1](x),
    "checkpoint": checkpoint(lambda x: jnp.sin(jnp.sin(x)) * x),
    "grad of checkpoint": grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)) * x)),
    "custom_jvp": lambda x: sine(x) * cosine(x * x),
    "custom_jvp of itself": tripled,
    "custom_jvp in jit": jit(lambda x: sine(x) * tripled(x)),
    "custom_vjp": lambda x: cube(jnp.sin(x)),
    "custom_vjp in jit": jit(lambda x: cube(jnp.sin(x))),
    "custom_vmap": lambda x: shifted(x * x),
    "custom_root": root,
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda y: (2 + x) * y, x * x, lambda mv, b: b / mv(1.0), symmetric=True
    ),
    "nn": lambda x: nn.gelu(x) + nn.silu(x) + nn.relu(x) + nn.logsumexp(jnp.array([x, x * x])) + nn.softplus(x),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    assert_taylor(PROGRAMS[name], order=3)


@pytest.mark.slow
def test_solutions_of_differential_equations() -> None:
    f = lambda x: odeint(lambda y, t: -x * y, 1.0, jnp.array([0.0, 1.0]), rtol=1e-12, atol=1e-12)[1]
    np.testing.assert_allclose(taylor(f, 0.4, 3), taylor(lambda x: jnp.exp(-x), 0.4, 3), rtol=1e-9)
    assert_taylor(f, order=2)


def test_loops_in_python() -> None:
    with disable_jit():
        assert_taylor(PROGRAMS["scan"], order=2)
        assert_taylor(PROGRAMS["while_loop"], order=2)


def test_a_program_is_mapped_once() -> None:
    f = jit(lambda x: jnp.sin(x) * x)
    closed = [make_jaxpr(lambda x: taylor(f, x, 3))(1.0) for _ in range(2)]
    inner = [next(eqn for eqn in c.eqns if eqn.primitive.name == "jit").params["jaxpr"] for c in closed]
    assert inner[0] is inner[1]


def test_branches_on_values() -> None:
    """Python may look at values, as in ``jvp``."""
    assert_taylor(lambda x: jnp.sin(x) if x > 0 else jnp.cos(x), 0.5)
    assert_taylor(lambda x: jnp.sin(x) if x > 0 else jnp.cos(x), -0.5)


# Under other transformations -----------------------------------------------------------------------------------------


def third(x: Any) -> Any:
    return taylor(lambda y: jnp.tanh(y) * jnp.sin(2 * y), x, 3)[3]


def fourth_derivative(x: Any) -> Any:
    return 4 * taylor(lambda y: jnp.tanh(y) * jnp.sin(2 * y), x, 4)[4]


UNDER: dict[str, Function] = {
    "grad": grad(third),
    "jit of grad": jit(grad(third)),
    "grad of jit": grad(jit(third)),
    "jvp": lambda x: jvp(third, (x,), (1.0,))[1],
    "linearize": lambda x: linearize(third, x)[1](1.0),
    "jacfwd": jacfwd(third),
    "vmap of grad": lambda x: vmap(grad(third))(jnp.array([x, 2 * x]))[0],
    "grad of vmap": lambda x: grad(lambda x: vmap(third)(jnp.array([x, 0.0]))[0])(x),
    "checkpoint": grad(checkpoint(third)),
    "taylor": lambda x: taylor(third, x, 1)[1],
    "scan": lambda x: lax.scan(lambda c, a: (grad(third)(a), None), 0.0, jnp.array([x]))[0],
}


@pytest.mark.parametrize("name", UNDER)
def test_derivatives_of_a_coefficient(name: str) -> None:
    """The derivative of the third coefficient is four times the fourth."""
    np.testing.assert_allclose(UNDER[name](0.4), fourth_derivative(0.4), rtol=1e-12)


def test_taylor_of_taylor() -> None:
    """Of sin(x y), by y and then by x."""
    mixed = lambda x: taylor(lambda y: jnp.sin(x * y), 1.0, 2)[2]
    expected = taylor(lambda x: -jnp.sin(x) * x**2 / 2, 0.3, 3)
    np.testing.assert_allclose(taylor(mixed, 0.3, 3), expected, rtol=1e-12)


def test_batches() -> None:
    x = np.linspace(0.1, 0.9, 4)
    f = lambda x: taylor(lambda y: nn.gelu(y) ** 2, x, 4)
    np.testing.assert_allclose(vmap(f)(x), np.stack([np.array(f(a)) for a in x], 1), rtol=1e-12)
    series = np.random.default_rng(0).normal(size=(4, 3))
    along = lambda x, terms: jet(jnp.sin, (x,), (list(terms),))[1]
    np.testing.assert_allclose(
        vmap(along)(x, series), np.stack([np.array(along(a, s)) for a, s in zip(x, series, strict=True)], 1), rtol=1e-12
    )


def test_compiled() -> None:
    def network(w: Any, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ w) @ w).sum()

    w = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
    f = lambda x: taylor(lambda t: network(w, t * jnp.arange(3.0)), x, 5)
    np.testing.assert_allclose(jit(f)(0.3), f(0.3), rtol=1e-12)


def test_over_a_mesh() -> None:
    from pullback import P, make_mesh

    mesh = make_mesh((1,), ("i",))
    f = shard_map(lambda x: lax.psum(jnp.sin(x).sum(), "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    assert_taylor(lambda x: f(x * jnp.arange(4.0)), order=3)


# Cost ----------------------------------------------------------------------------------------------------------------


COSTS: dict[str, Function] = {
    "exp": jnp.exp,
    "log": jnp.log,
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "logistic": nn.sigmoid,
    "sqrt": jnp.sqrt,
    "power": lambda x: lax.pow(x, 2.5),
    "integer power": lambda x: x**7,
    "moving power": lambda x: x**x,
    "quotient": lambda x: 1 / (1 + x * x),
    "asin": jnp.arcsin,
    "erf": lax.erf,
    "gelu": nn.gelu,
    "atan2": lambda x: jnp.arctan2(x, 1 + x),
    "custom_jvp": tripled,
    "scan": lambda x: lax.scan(lambda c, a: (jnp.sin(c) * a, None), x, jnp.arange(2.0))[0],
    "while_loop": lambda x: lax.while_loop(lambda c: c < 5, lambda c: c * jnp.exp(x), x),
    "solve": lambda x: jnp.linalg.solve(jnp.eye(2) * x, jnp.ones(2)),
    "cholesky": lambda x: jnp.linalg.cholesky(jnp.eye(2) * x),
    "sylvester": lambda x: solve_sylvester(jnp.eye(2) * x, jnp.eye(2) * x, jnp.eye(2)),
    "lyapunov": lambda x: solve_discrete_lyapunov(jnp.eye(2) * x, jnp.eye(2)),
    "lgamma": lax.lgamma,
    "digamma": lax.digamma,
    "polygamma": lambda x: lax.polygamma(2.0, x),
    "zeta": lambda x: lax.zeta(2.5, x),
    "zeta by both": lambda x: lax.zeta(1 + x, x),
    "power by an array": lambda x: x ** jnp.array([2.5, 3.0, -1.0]),
    "power by what is not known": lambda x: vmap(lambda y: lax.pow(x, y))(jnp.array([2.5, 3.0])),
    "power by a complex number": lambda x: lax.pow(x + 0j, 2.5j),
    "exprel": special.exprel,
    "erfcx": special.erfcx,
    "dawsn": special.dawsn,
    "fresnel": special.fresnel,
    "expn": lambda x: special.expn(3, x),
    "sici": special.sici,
    "spence": special.spence,
    "ndtri": special.ndtri,
    "log_ndtr": special.log_ndtr,
    "igamma": lambda x: lax.igamma(1.5, x),
    "igammac": lambda x: lax.igammac(1.5, x),
    "igamma by its parameter": lambda x: lax.igamma(1 + x, 2.0),
    "igammac by both": lambda x: lax.igammac(1 + x, x),
    "betainc by a parameter": lambda x: lax.betainc(1 + x, 2.0, 0.3),
    "jv by its order": lambda x: special.jv(x, 1.5),
    "yv by its order": lambda x: special.yv(x, 1.5),
    "iv by its order": lambda x: special.iv(x, 1.5),
    "kv by its order": lambda x: special.kv(x, 1.5),
    "hyp1f1 by parameters": lambda x: special.hyp1f1(x, 1 + 2 * x, 0.7),
    "hyp2f1 by parameters": lambda x: special.hyp2f1(x, 1.5, 1 + x, -0.7),
    "hyp1f1": lambda x: special.hyp1f1(1.5, 2.5, x),
    "hyp2f1": lambda x: special.hyp2f1(1.5, 0.5, 2.5, x),
    "xlogy": lambda x: special.xlogy(x, 1 + x),
    "xlog1py": lambda x: special.xlog1py(x, x),
    "i0": special.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
    "jv": lambda x: special.jv(1.5, x),
    "yv": lambda x: special.yv(1.5, x),
    "iv": lambda x: special.iv(1.5, x),
    "kv": lambda x: special.kv(1.5, x),
}


def operations(closed: Any) -> int:
    """How many operations a program has, each product of a sum counted, and those of programs within it."""
    count = 0
    for eqn in closed.eqns:
        programs = [p for q in eqn.params.values() for p in (q if isinstance(q, tuple) else (q,)) if hasattr(p, "eqns")]
        count += sum(map(operations, programs))
        count += len(eqn.invars) // 2 if eqn.primitive.name == "sum_of_products" else 1
    return count


def cost(f: Function, order: int) -> int:
    """Of all derivatives along a curve of which none vanishes."""
    return operations(make_jaxpr(lambda x, terms: jet(f, (x,), (terms,)))(0.5, [0.1] * order))


@pytest.mark.parametrize("name", COSTS)
def test_cost_grows_as_the_square_of_the_order(name: str) -> None:
    """Twice the order takes at most four times the operations; a second ``jvp`` more takes twice as many."""
    assert cost(COSTS[name], 16) <= 4.2 * cost(COSTS[name], 8)


def test_functions_of_other_orders_are_computed_once() -> None:
    """As of Bessel functions, whose derivatives are those of the orders before and after: 11 functions, not 63."""
    orders: list[float] = []
    wave = Primitive("wave")
    wave.host(lambda n, x: orders.append(float(n)) or np.cos(x - n * math.pi / 2))
    wave.abstract_eval(lambda n, x: x)
    wave.jvp(lambda xs, ts: (wave.bind(*xs), ts[1] * (wave.bind(xs[0] - 1, xs[1]) - wave.bind(xs[0] + 1, xs[1])) / 2))
    got = taylor(lambda x: wave.bind(jnp.asarray(0.0), x), jnp.asarray(0.4), 5)
    np.testing.assert_allclose(got, taylor(jnp.cos, 0.4, 5), rtol=1e-13)
    assert sorted(set(orders)) == [float(n) for n in range(-5, 6)]
    assert len(orders) <= 12  # that of the value again


def test_effects_of_a_derivative_rule_happen_as_often_as_it_says() -> None:
    seen: list[float] = []
    see = lambda x: seen.append(float(x))

    @custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    def rule(primals: Any, tangents: Any) -> Any:
        for _ in range(2):
            io_callback(see, None, primals[0])
        return f(*primals), jnp.cos(primals[0]) * tangents[0]

    f.defjvp(rule)
    taylor(f, 0.5, 3)
    assert seen == [0.5, 0.5]


def test_tangents_of_sums_of_products_have_the_shape_of_the_sum() -> None:
    a = jnp.arange(3.0)
    out, t = jvp(lambda c: sum_of_products_p.bind(a, a, c, c, scale=0.5), (jnp.asarray(2.0),), (jnp.asarray(1.0),))
    np.testing.assert_array_equal(out, (a * a + 4) / 2)
    assert t.tolist() == [2.0, 2.0, 2.0]


def test_what_is_zero_costs_nothing() -> None:
    """Of a linear function there is one coefficient, of a polynomial as many as it has."""
    count = lambda f, order: operations(make_jaxpr(lambda x: taylor(f, x, order))(0.5))
    zeros = lambda order: count(lambda x: x, order)
    assert count(lambda x: 3 * x + 1, 20) - zeros(20) == count(lambda x: 3 * x + 1, 1) - zeros(1)
    assert count(lambda x: x**3, 20) - zeros(20) < 20


FREED: dict[str, Function] = {
    "tanh": jnp.tanh,
    "sine and logistic": lambda x: nn.sigmoid(jnp.sin(x)),
    "derivative rule": jnp.log,
    "quotient": lambda x: 1 / (1 + x * x),
    "power": lambda x: lax.pow(x, 2.5),
    "power by an array": lambda x: x ** jnp.array([2.5, 3.0]),
    "moving power": lambda x: x**x,
    "lgamma": lax.lgamma,
    "zeta": lambda x: lax.zeta(x + 1, x),
    "lyapunov": lambda x: solve_discrete_lyapunov(jnp.eye(2) * x / 2, jnp.eye(2)),
    "igamma": lambda x: lax.igamma(x, 2.0),
    "hyp1f1": lambda x: special.hyp1f1(1.5, 2.5, jnp.sin(x)),
    "kv by its order": lambda x: special.kv(jnp.sin(x), 1.5),
}


@pytest.mark.parametrize("name", FREED)
def test_series_are_freed_at_once(name: str) -> None:
    """Without a collection: nothing refers to itself, so that large coefficients do not wait for one."""
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        alive: list[Any] = []

        def f(x: Any) -> Any:
            x = lax.sin(x)
            y = FREED[name](x)
            alive.extend(map(weakref.ref, (x, y, x.series[4], y.series[4])))
            return jnp.sum(jnp.tanh(y))

        out = taylor(f, 0.5, 4)
        assert [ref() for ref in alive] == [None] * 4
        del out
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
def test_coefficients_have_the_dtype_of_the_value(dtype: str) -> None:
    for x in (jnp.ones((), dtype), jnp.ones(2, dtype)):
        coefficients = taylor(lambda x: jnp.sin(x) * x / (1 + x * x), x, 4)
        assert [(c.dtype, c.shape) for c in coefficients] == [(x.dtype, x.shape)] * 5


def test_every_leaf_is_an_array() -> None:
    assert all(isinstance(c, jnp.ndarray) for c in tree.leaves(taylor(lambda x: (x, 1.0), 0.5, 3)))


@pytest.mark.parametrize("fill", [0.25, math.nan])
def test_a_fill_value_is_in_no_coefficient(fill: float) -> None:
    f = lambda x: x.at[jnp.array([0, 2, 7])].get(mode="fill", fill_value=fill)
    x = jnp.arange(5.0)
    value, *coefficients = taylor(lambda t: f(x + t + t * t), 0.0, 3)
    np.testing.assert_array_equal(value, [0, 2, fill])
    for got, expected in zip(coefficients, ([1, 1, 0], [1, 1, 0], [0, 0, 0]), strict=True):
        np.testing.assert_array_equal(got, expected)
    tensor = derivative_tensor(lambda x: f(x) * x[:3], x, 2)
    np.testing.assert_allclose(tensor[:2], jacfwd(jacfwd(lambda x: f(x) * x[:3]))(x)[:2], atol=1e-12)


@pytest.mark.parametrize("f", [lax.igamma, lax.igammac])
def test_traced_coefficients_of_single_precision_that_are_computed_in_double(f: Any) -> None:
    second = lambda x: taylor(lambda x: f(0.3 * x, 0.5 * x), x, 2, jnp.ones_like(x))[2]
    with enable_x64(False):
        x = jnp.float32(0.7)
        (traced,) = jaxpr_as_fun(make_jaxpr(second)(x))(x)
        assert traced.dtype == np.float32
        np.testing.assert_allclose(traced, second(x), rtol=1e-5)
