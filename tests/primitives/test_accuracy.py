"""Points at which operations on elements or their derivatives were wrong by many units in the last place.

``make accuracy`` measures everywhere, and found them. The exact values are mpmath's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp

pytestmark = pytest.mark.usefixtures("optimised")

# A function, by which operand it is differentiated, the point, the dtype, the exact value, and the ulps allowed.
Row = tuple[str, int | None, tuple[complex, ...], str, complex, float]
ROWS: tuple[Row, ...] = (
    ("numpy.expm1", 0, (-30.0,), "float32", 9.357622968840175e-14, 4),
    ("numpy.expm1", 0, (-600.0,), "float64", 2.6503965530043108e-261, 4),
    ("numpy.log1p", None, (-3e-308,), "float64", -3e-308, 1),
    ("numpy.arcsin", None, (3e-308,), "float64", 3e-308, 1),
    ("numpy.arcsin", None, (1.3e-38,), "float32", 1.3e-38, 1),
    ("numpy.arcsin", None, (9e-5,), "float32", 9.000000012150001e-05, 2),
    ("scipy.special.spence", 0, (1e-30,), "float64", -69.07755278982137, 4),
    ("scipy.special.spence", 0, (0.4999,), "float32", -1.3864171014854758, 4),
    ("numpy.sinc", None, (3.0000002,), "float32", -7.947285338457847e-08, 4),
    ("numpy.sinc", None, (1000.0000001,), "float64", 9.999996563147131e-11, 4),
    ("numpy.sinc", 0, (400000.25,), "float64", 1.7677644413702283e-06, 16),
    ("scipy.special.erf", 0, (8.7,), "float32", 1.5160278006707226e-33, 16),
    ("scipy.special.erf", 0, (-26.1,), "float64", 1.6095743479277808e-296, 16),
    ("scipy.special.erfc", None, (26.1,), "float64", 3.081217493314593e-298, 8),
    ("scipy.special.erfc", None, (8.7,), "float32", 8.656352391300329e-35, 8),
    ("scipy.special.erfc", 0, (21.3,), "float64", -1.0408581919700148e-197, 16),
    ("scipy.special.ndtr", None, (-36.9,), "float64", 2.3105244811406173e-298, 8),
    ("scipy.special.ndtr", None, (-12.7,), "float32", 2.956492570319813e-37, 8),
    ("scipy.special.ndtr", 0, (-36.9,), "float64", 8.532087755636343e-297, 16),
    ("scipy.special.log_ndtr", None, (-26.5,), "float64", -355.322502226356, 4),
    ("scipy.special.log_ndtr", 0, (-26.5,), "float64", 26.537629135025263, 16),
    ("scipy.special.log_ndtr", 0, (-8.8,), "float32", 8.910875057935568, 16),
    ("scipy.special.log_ndtr", None, (20.3,), "float64", -6.4292444676983463e-92, 8),
    ("scipy.special.log_ndtr", 0, (7.3,), "float32", 1.0693822981833102e-12, 8),
    ("scipy.special.kl_div", None, (3.0, 3.0007), "float32", 8.1653253276537267e-8, 1),
    ("scipy.special.exp1", None, (0.96,), "float64", 0.23470798834425491, 4),
    ("scipy.special.expi", None, (8.75,), "float64", 836.02322650954389, 4),
    ("scipy.special.expi", None, (31.0,), "float64", 969455575968.39397, 4),
    ("scipy.special.expi", None, (72.5,), "float64", 4.2867817794105191e29, 4),
    ("scipy.special.expi", None, (0.37,), "float64", -0.0097901485000680834, 32),
    ("scipy.special.zeta", None, (4.0, -20.3), "float64", 128.17011539011922, 8),
    ("scipy.special.zeta", None, (3.0, -3.25), "float32", -61.977605519711011, 2),
    ("scipy.special.zeta", None, (6.5, 12.5), "float32", 2.0877675451483228e-7, 2),
    ("scipy.special.gammaln", None, (-1e-310,), "float64", 713.8013788281542, 2),
    ("scipy.special.digamma", None, (-0.9999999999999999,), "float64", -9007199254740992.0, 8),
    ("scipy.special.gammaln", 0, (-2.9999999999999,), "float64", -10007999171933.18, 16),
    ("scipy.special.gamma", None, (-5.980845676902128e-160,), "float64", -1.6720043519296514e159, 8),
    ("scipy.special.ndtri", 0, (1e-40,), "float64", 7.47092542910078e38, 16),
    ("scipy.special.ndtri", 0, (1e-30,), "float32", 8.658027756090292e28, 16),
    ("scipy.special.gammaln", None, (0.9999999999999,), "float64", 5.773951473346308e-14, 8),
    ("scipy.special.gammaln", None, (1.9999999999998,), "float64", -8.45831595705306e-14, 8),
    ("scipy.special.gammaln", None, (1.2,), "float64", -0.08537409000331583, 8),
    ("scipy.special.dawsn", None, (0.028716288105210097,), "float64", 0.02870050652799186, 4),
    ("scipy.special.spence", None, (0.4,), "float64", 0.7275863077163334, 4),
    ("scipy.special.spence", None, (0.52,), "float64", 0.5547560885549614, 4),
    ("scipy.special.spence", None, (1.99998,), "float64", -0.8224531704418725, 4),
    ("scipy.special.spence", None, (2.5,), "float64", -1.1473806603755707, 4),
    ("scipy.special.betaln", 0, (1000.0, 0.001), "float64", -1.000499666166717e-06, 16),
    ("scipy.special.betaln", 0, (2.5, 1e-9), "float64", -4.903577559821328e-10, 16),
    ("scipy.special.betaln", 0, (8.9, 1e-6), "float64", -1.1890770316992503e-07, 16),
    ("scipy.special.comb", 0, (59.25, 0.001), "float64", 1.6814433961007668e-05, 150),
    ("scipy.special.owens_t", 1, (5.9, 1.7), "float32", 1.6134852753165777e-31, 16),
    ("scipy.special.iv", 1, (0.0030661560595, 0.001), "float32", 3.0012954119260193, 16),
    ("scipy.special.jv", 1, (0.002, 0.001), "float64", 1.9716026474543007, 32),
    ("scipy.special.exprel", None, (88.9,), "float32", 4.5696015750789577e36, 4),
    ("scipy.special.logit", None, (0.50001,), "float64", 4.000000000515129e-05, 4),
    ("scipy.special.logit", None, (0.4999,), "float32", -0.0003999471717740915, 4),
    ("numpy.i0", None, (26.71521600712731,), "float64", 31036538614.830162, 4),
    ("lax.bessel_i0e", 0, (9999.0,), "float64", -1.9950854735200705e-07, 40),
    ("lax.bessel_i0e", 0, (-3000.0,), "float32", 1.214094490938151e-06, 16),
    ("lax.bessel_i1e", 0, (6.081002016983543,), "float64", -0.010564418302640407, 40),
    ("lax.igamma", 1, (31.9, 4.5), "float32", 2.915304587677439e-16, 16),
    ("lax.igamma", 1, (394.61, 990.0), "float64", 9.170458721143594e-104, 1000),
    ("lax.betainc", 2, (300.0, 200.0, 0.55), "float32", 1.3823977633900089, 16),
    (
        "numpy.square",
        None,
        (-3.1705197e-19 + 1.9407106e-20j,),
        "complex64",
        1.0014531580285142e-37 - 1.2306122595712983e-38j,
        4,
    ),
    ("numpy.sign", None, (5e-324 + 5e-324j,), "complex128", 0.7071067811865476 + 0.7071067811865476j, 4),
    ("numpy.sign", None, (1.7e308 - 1.7e308j,), "complex128", 0.7071067811865476 - 0.7071067811865476j, 4),
    (
        "numpy.true_divide",
        1,
        (3.396177326406364e38j, 0.6437023 - 0.8691115j),
        "complex64",
        2.7773231116322053e38 + 8.464335475480188e37j,
        16,
    ),
    (
        "numpy.true_divide",
        None,
        (1.7e308j, 1.2 + 1.5j),
        "complex128",
        6.910569105691057e307 + 5.528455284552845e307j,
        4,
    ),
    ("numpy.exp2", None, (0.3 + 900.1j,), "complex128", -0.35869124615722 + 1.1777339073154762j, 4),
    ("numpy.exp2", None, (0.3 + 900.1j,), "complex64", -0.35867131882203607 + 1.177739986844917j, 4),
    ("numpy.log", None, (-0.7665468475035615 + 1e-09j,), "complex128", -0.26585946381183384 + 3.1415926522852415j, 4),
    (
        "numpy.log1p",
        None,
        (1.7976931346530367e308 - 8.988465674311579e307j,),
        "complex128",
        709.894284668948 - 0.46364760904737223j,
        4,
    ),
    ("numpy.log1p", None, (-1 + 5.675928090491045e-306j,), "complex128", -702.8548043660071 + 1.5707963267948966j, 4),
    (
        "numpy.power",
        None,
        (-32739410 + 1.5556426e-14j, 7.0139475 + 31.903534j),
        "complex64",
        -1042770119.8493841 + 1106106232.7715116j,
        400,
    ),
    ("numpy.tan", 0, (-2.1837754 + 20.39931j,), "complex64", -2.5847518669120003e-18 + 7.196061884165452e-18j, 16),
    ("numpy.tanh", 0, (20.3 - 0.5j,), "complex128", 5.038959259488078e-18 + 7.847714074948078e-18j, 16),
    ("numpy.tanh", 0, (300 - 0.001j,), "complex128", 1.0601565008851887e-260 + 2.1203158288589032e-263j, 16),
    ("numpy.arcsin", 0, (1e200 + 1e250j,), "complex128", 1e-250 + 1.0000000000000002e-300j, 16),
    ("numpy.arcsin", 0, (2 + 0j,), "complex128", 0.5773502691896257j, 16),
    ("numpy.arcsin", 0, (complex(2.0, -0.0),), "complex128", -0.5773502691896257j, 16),
    ("numpy.arccos", 0, (complex(-3.0, -0.0),), "complex64", complex(-0.0, -0.3535533905932738), 16),
    ("numpy.arccos", 0, (1e30 - 3e31j,), "complex64", -3.3296337905946444e-32 + 1.1098779637422174e-33j, 16),
    ("numpy.arctan", None, (1.2e-38 + 1j,), "complex64", 0.7853981633974483 + 44.004529587892065j, 4),
    ("numpy.arctan", 0, (1e300 + 1e300j,), "complex128", complex(0.0, -0.0), 16),
    ("numpy.arctan", 0, (1e-09 + 0.9999999981373549j,), "complex128", 208375350.6294006 - 111870664.39650837j, 16),
    ("numpy.arcsinh", 0, (complex(-0.0, 2.0),), "complex128", 0.5773502691896257j, 16),
    ("numpy.arcsinh", 0, (2j,), "complex64", -0.5773502691896257j, 16),
    ("numpy.arccosh", 0, (complex(-2.0, -0.0),), "complex128", -0.5773502691896257 + 0j, 16),
    ("numpy.arctanh", 0, (-1e200 + 1e200j,), "complex128", complex(0.0, -0.0), 16),
    ("numpy.sinc", None, (1000.0000001 + 1e-09j,), "complex128", 9.999996563147232e-11 + 9.999999997999507e-13j, 8),
    ("numpy.sinc", 0, (1000.0000001 + 1e-09j,), "complex128", 0.0009999999997999506 - 2.0009869595008068e-15j, 16),
    (
        "scipy.special.logit",
        0,
        (32354606 + 2904.6992j,),
        "complex64",
        -9.552735914401533e-16 + 1.7152318405571126e-19j,
        16,
    ),
    ("scipy.special.logit", None, (0.5 + 1e-09j,), "complex128", 4e-09j, 4),
    (
        "scipy.special.boxcox",
        0,
        (-0.40664572 + 7.387e220j, 1.4998136 + 0.005j),
        "complex128",
        -2.4102830451425155e110 - 4.544409664986028e109j,
        2000,
    ),
    (
        "scipy.special.boxcox",
        1,
        (1.5 + 2.5j, 1e-300 + 1e-300j),
        "complex128",
        0.04164719569854934 + 1.102537291047674j,
        16,
    ),
    (
        "scipy.special.boxcox1p",
        0,
        (2.5e35 - 2.01j, 1.4478145 - 0.0059j),
        "complex64",
        6301286734174454 - 3287649303233836.5j,
        2000,
    ),
    (
        "scipy.special.loggamma",
        None,
        (1.0000000000000002 - 1e-20j,),
        "complex128",
        -1.2816762426960008e-16 + 5.7721566490153246e-21j,
        4,
    ),
    (
        "scipy.special.loggamma",
        None,
        (2.0000001 + 1e-09j,),
        "complex64",
        -3.224670151841324e-19 + 4.2278432314130955e-10j,
        4,
    ),
    ("scipy.special.wofz", None, (1e200 - 1.5j,), "complex128", complex(-0.0, 5.641895835477563e-201), 8),
    ("scipy.special.wofz", 0, (2.5 + 1.7e308j,), "complex128", complex(-0.0, 0.0), 16),
    ("scipy.special.erfcx", None, (-1.5 + 1e200j,), "complex128", complex(-0.0, -5.641895835477563e-201), 8),
)


def output(row: Row) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function that a row is about, and its operands."""
    name, by, point, dtype, *_ = row
    module, _, last = name.rpartition(".")
    function = getattr(importlib.import_module(f"pullback.{module}"), last)
    operands = tuple(pnp.array(x, dtype) for x in point)
    if by is None:
        return function, operands

    def slope(*xs: Any) -> Any:
        return pullback.jvp(lambda x: function(*xs[:by], x, *xs[by + 1 :]), (xs[by],), (pnp.ones_like(xs[by]),))[1]

    return slope, operands


TOGETHER = 20  # compiled in one program; the compiler's time grows faster than the program


@cache
def compiled(first: int) -> list[np.ndarray]:
    """The results of one compiled program for some rows."""
    functions, operands = zip(*map(output, ROWS[first : first + TOGETHER]), strict=True)
    program = pullback.jit(lambda points: [f(*xs) for f, xs in zip(functions, points, strict=True)])
    return [np.asarray(out) for out in program(list(operands))]


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("number", range(len(ROWS)), ids=[f"{r[0]}-{r[1]}-{r[2][0]}-{r[3]}" for r in ROWS])
def test_the_error_is_small(number: int, mode: str) -> None:
    _, _, point, dtype, exact, allowed = ROWS[number]
    with pullback.enable_x64(True):
        if mode == "compiled" and any(0 < max(abs(x.real), abs(x.imag)) < np.finfo(dtype).tiny for x in point):
            pytest.skip("the compiler reads subnormal numbers as zero")
        function, operands = output(ROWS[number])
        place = number % TOGETHER
        found = np.asarray(function(*operands) if mode == "eager" else compiled(number - place)[place])
    assert found.dtype == dtype
    ulp = float(np.spacing(np.finfo(dtype).dtype.type(abs(exact))))
    assert abs(found.item() - exact) <= allowed * ulp


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_the_slope_of_exprel_is_infinite_where_it_overflows(mode: str) -> None:
    def slope(x: Any) -> Any:
        return pullback.jvp(pullback.lax.exprel, (x,), (pnp.ones_like(x),))[1]

    x = pnp.array([200.0, 1e10, 3e38, np.inf], np.float32)
    out = (pullback.jit(slope) if mode == "compiled" else slope)(x)
    assert np.isposinf(np.asarray(out)).all()


def test_second_derivatives_of_what_has_rules_of_its_own() -> None:
    def second(function: Callable[[Any], Any], x: float) -> Any:
        return pullback.grad(pullback.grad(function))(x)

    special = pullback.scipy.special
    with pullback.enable_x64(True):
        density = np.exp(-0.32) / np.sqrt(2 * np.pi)
        np.testing.assert_allclose(second(special.ndtr, 0.8), -0.8 * density, rtol=1e-14)
        np.testing.assert_allclose(second(special.erf, 0.8), -3.2 / np.sqrt(np.pi) * np.exp(-0.64), rtol=1e-14)
        np.testing.assert_allclose(second(special.logit, 0.3), (2 * 0.3 - 1) / 0.21**2, rtol=1e-14)
        np.testing.assert_allclose(second(pnp.sinc, 1.0), 2.0, rtol=1e-14)
        # By 50 digits: the derivatives of order 2 of exp(-x) I0(x) and exp(-x) I1(x).
        for x in (0.5, 3.0):
            i0, i1 = float(special.i0e(x)), float(special.i1e(x))
            np.testing.assert_allclose(second(special.i0e, x), 2 * i0 - 2 * i1 - i1 / x, rtol=1e-12)
            of_first = i1 + i1 / x**2 - i0 / x - 2 * (i0 - i1 / x) + i1 + i1 / x**2
            np.testing.assert_allclose(second(special.i1e, x), of_first, rtol=1e-12)


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_the_slope_of_a_quotient_keeps_its_range(mode: str) -> None:
    """Where the cotangent over the divisor vanishes, or is infinite and the quotient zero, the slope is a number."""

    def slope(ct: Any, x: Any, y: Any) -> Any:
        return pullback.vjp(pnp.true_divide, x, y)[1](ct)[1]

    function = pullback.jit(slope) if mode == "compiled" else slope
    single = lambda *numbers: [pnp.array([number], "float32") for number in numbers]
    np.testing.assert_allclose(function(*single(1e-30, 1e20, 1e10)), -1e-30, rtol=1e-6)
    np.testing.assert_array_equal(function(*single(1e10, 0.0, 1e-30)), 0.0)


@pytest.mark.parametrize(("part", "x", "exact"), [("S", 5.9, 0.5163306915041534), ("C", -49.99, -0.49363252904316013)])
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_fresnel_keeps_the_angle(part: str, x: float, exact: float, mode: str) -> None:
    fresnel = pullback.scipy.special.fresnel
    with pullback.enable_x64(True):
        out = (pullback.jit(fresnel) if mode == "compiled" else fresnel)(x)["SC".index(part)]
    assert abs(float(out) - exact) <= 4 * np.spacing(abs(exact))


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_the_cosine_integral_does_not_cancel(mode: str) -> None:
    sici = pullback.scipy.special.sici
    with pullback.enable_x64(True):
        out = (pullback.jit(sici) if mode == "compiled" else sici)(3.9995)[1]
    assert abs(float(out) + 0.14089996367866225) <= 6 * np.spacing(0.14)
