"""Derivatives by the order of Struve's functions and of those of the parabolic cylinder: values of mpmath.

Beside them are the points at which formulas meet, the variable, both modes, and what is outside of the domains.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.core.config import enable_x64
from pullback.scipy import special
from tests.helpers import eager_and_compiled

# By mpmath 1.3.0 with 60 digits: the order, x, and the first and the second derivative by the order.
EXACT: dict[str, list[tuple[float, float, float, float]]] = {
    "struve": [
        (0.0, 1.0, -0.37069705368079886, -0.35145822469624793),
        (0.5, 0.3, -0.15069471529662418, 0.30682443734185516),
        (-0.5, 2.0, 0.8473729467028944, -1.0777606338277963),
        (-2.5, 1.5, -2.331253099401512, 1.867223336727574),
        (-3.3, 4.0, 1.0782025279199383, 0.636129381986753),
        (3.2, 5.9, -0.1662445548191051, -0.7506309204927378),
        (1.0, 7.0, 0.8188794042063876, 1.0358206773035061),
        (6.5, 6.4, -0.4565404260979669, 0.24626460908626746),
        (30.0, 20.0, -0.001596077041903585, 0.0016953883540382945),
        (20.0, 20.0, -8.220509735560915, 5.013121818374826),
        (10.0, 30.0, 7974.445781664891, 1295.113557615888),
        (-7.3, 9.0, 0.6070362573731373, 1.3194754309060488),
        (-12.5, 40.0, 0.10591269956565376, 0.4140358925508072),
        (1.5, 300.0, 31.701018273987252, 140.8770231354018),
        (150.0, 100.0, -1.9246436820965107e-09, 2.102299249239825e-09),
        (2.2, 1e-05, -3.937234953401166e-17, 5.256225478597133e-16),
        (-4.0, 0.2, 4074.8921822432117, -2457.6140313231886),
    ],
    "modstruve": [
        (0.0, 1.0, -0.5684741105285354, -0.14453661403788498),
        (0.5, 0.3, -0.15346752526627386, 0.31425516838078005),
        (-0.5, 2.0, 0.17519585908755053, -1.7419014173820633),
        (-2.5, 1.5, -1.0619419078365133, 2.6153198232666566),
        (-3.3, 4.0, 2.266111276029191, 0.9022224840413596),
        (3.2, 5.9, -13.453173200701135, 4.226480310112241),
        (1.0, 7.0, -24.816601375849146, -20.393317478003706),
        (6.5, 6.4, -3.1377684099794854, 2.644423534630435),
        (30.0, 20.0, -0.09793252207752026, 0.1160326162699285),
        (20.0, 20.0, -2844.278218749684, 2432.1232826339005),
        (10.0, 30.0, -48504858726.44705, 11462154187.982304),
        (-7.3, 9.0, 43.587373750767036, 28.616530599616116),
        (-12.5, 40.0, 652029889721740.8, 152474362303386.12),
        (1.5, 300.0, -2.2332532148188405e+126, -1.4776380683816758e+126),
        (150.0, 100.0, -0.10296827344347297, 0.12278399033131265),
        (2.2, 1e-05, -3.9372349534373533e-17, 5.256225478646441e-16),
        (-4.0, 0.2, 4055.7570031657483, -2459.809330064965),
    ],
    "pbdv": [
        (0.0, 1.0, 0.20772687709727158, -0.2425760183850799),
        (1.5, 0.7, -1.094404560601614, -0.816599672351991),
        (-2.5, 3.0, 0.0062523542559367665, 0.008008726744682188),
        (6.0, 2.0, 14.056274165219719, 33.95679251464736),
        (6.0, -2.0, -33.36812540118084, -40.41519327960745),
        (6.2, -9.0, -259122.7675516518, 701437.5896986851),
        (30.3, 4.0, 4528341334325729.0, -1.8428368744802276e+16),
        (30.0, 14.0, 2175486313587.4077, 5294726757601.137),
        (-20.3, 5.0, 1.3110179366696266e-19, 2.664014740707515e-19),
        (-20.3, -5.0, 12.416480776681091, 11.526287040325741),
        (0.3, 20.0, 2.738733833070016e-43, 8.203604318762932e-43),
        (2.5, -6.0, 28.620632684796668, 485.0714708493899),
        (-0.5, 0.0, -0.23882495111855173, -0.7260145656110325),
        (3.0, 0.0, 2.5066282746310007, 2.7972254897012037),
        (120.2, 3.0, 2.628121037922396e+99, 8.801988049095702e+99),
        (120.2, -3.0, -2.3940285795157717e+99, -9.676010940926294e+99),
        (12.5, -8.0, -86367.34248411248, 613524.1287815908),
        (11.5, -8.0, 28024.337952590868, -285760.6028398923),
        (2.1, 0.001, -0.145217088411088, 2.342207540474871),
    ],
    "pbdv.slope": [
        (0.0, 1.0, 0.4067803025310249, 0.6831932161261126),
        (-2.5, 3.0, -0.012365924986769238, -0.014290897242172846),
        (6.0, -2.0, 17.528005056722897, -136.59138533152463),
        (30.3, 4.0, 1.1374714774441045e+17, 2.2545804435172835e+17),
        (-20.3, 5.0, -6.660594631348031e-19, -1.340568727220517e-18),
        (0.3, 20.0, -2.730067136231452e-42, -8.163937605226481e-42),
        (-0.5, 0.0, 1.0273668680834016, 0.6839809526748188),
        (120.2, 3.0, -1.906209826670646e+100, -4.716143301588012e+99),
        (12.5, -8.0, 37271.41280682286, -1061862.344467109),
        (2.1, 0.001, -2.77011419787457, -2.4891240317058116),
    ],
    "pbvv": [
        (0.0, 1.0, -0.879134869370902, -0.9981986862136603),
        (1.5, 0.7, 0.12443943360511289, 1.2761581413201475),
        (-2.5, 3.0, -49.42546478140359, 63.082155672504776),
        (6.0, 2.0, -0.013996857012598249, -0.022690789677937303),
        (6.0, -2.0, 0.031653802634403996, 0.040819334526245254),
        (6.2, -9.0, 357.5794603514444, -326.8470230032732),
        (30.3, 4.0, 4.3091668002104356e-18, 2.873160759315996e-17),
        (30.0, 14.0, -2.5080369197193353e-13, 6.057353231714336e-13),
        (-20.3, 5.0, -2.4533027924088115e+18, 4.969263756219671e+18),
        (-20.3, -5.0, -1.6463481781338035e+18, 1.6598969339044172e+19),
        (0.3, 20.0, -1.3107747359340007e+42, 3.921890723919059e+42),
        (2.5, -6.0, 49.875058036129644, -164.18572256485393),
        (-0.5, 0.0, -0.943157725058075, -2.5260778519847467),
        (3.0, 0.0, -0.18568154352161073, -0.5592038969370424),
        (120.2, 3.0, -1.8036003466559893e-100, 4.0789993311204194e-100),
        (120.2, -3.0, 1.7313120399884804e-100, -2.777504800648141e-100),
        (12.5, -8.0, 0.00014160180427622327, -0.00042957347054463997),
        (11.5, -8.0, -0.0007487538150014496, 0.0024791832228160384),
        (2.1, 0.001, 0.6911133489254248, -1.0091117857662497),
    ],
    "pbvv.slope": [
        (0.0, 1.0, 0.653172246258615, 0.08713775113376966),
        (-2.5, 3.0, -108.35302454707002, 149.013592464146),
        (6.0, -2.0, -0.08700003996126765, 0.21562496659390853),
        (30.3, 4.0, -1.5421825398851662e-16, 2.879908049544041e-16),
        (-20.3, 5.0, -1.2583248794852876e+19, 2.5727308741852086e+19),
        (0.3, 20.0, -1.304416154619512e+43, 3.909466352847462e+43),
        (-0.5, 0.0, 1.0948539416022347, 0.6257530637508383),
        (120.2, 3.0, 1.865552137414932e-100, -3.2583826205095083e-99),
        (12.5, -8.0, -0.00018234659789655646, 0.0007608893406374785),
        (2.1, 0.001, 0.48118571308179603, 1.7832408981317294),
    ],
    "pbwa": [
        (0.0, 1.0, 0.4255763462877882, -2.6426258788831873),
        (1.5, 0.7, -0.15364510572117795, 0.156043679994186),
        (-2.5, 3.0, -0.044849788316617414, -0.5010994988960341),
        (4.9, 4.9, -9.380417059091039e-05, -0.0001327735040316641),
        (5.0, 2.0, -0.0036377054381531316, 0.0024411230459148513),
        (4.9, -4.9, 3263.490778610658, 3890.7269521816115),
        (-5.0, -4.0, 0.07551106225800841, 0.3789534202786129),
        (3.0, 3.0, -0.010343036408138554, 0.011921962127980143),
        (0.3, 0.0, -0.375010425581111, -0.3737807730714248),
        (2.0, -5.0, 8.621476678547264, 60.84745076341601),
    ],
    "pbwa.slope": [
        (0.0, 1.0, 0.753043676500302, -0.3890617819868231),
        (-2.5, 3.0, 1.2282671627349193, -0.035607343210201384),
        (5.0, 2.0, 0.005093670762496728, -0.0023291332060413725),
        (-5.0, -4.0, 1.3615983997256162, -0.16186061648378477),
        (0.3, 0.0, -0.20597406831132606, -0.3672130867687386),
    ],
}  # fmt: skip
LOST = {
    ("pbwa", 4.9, 4.9): 1e-7, ("pbwa", 5.0, 2.0): 1e-11, ("pbwa", 3.0, 3.0): 2e-11, ("pbwa.slope", 3.0, 3.0): 2e-11,
    ("pbwa.slope", 5.0, 2.0): 1e-11, ("modstruve", 1.5, 300.0): 1e-11,
}  # fmt: skip
"""The errors where W falls below another solution, which grows: SciPy's values have the same; and where terms of a
derivative of L cancel: the second is a three-hundredth of L, its terms are up to 25 times L."""


def of_name(name: str) -> Any:
    """Return the function of the order and x: a result of SciPy's function."""
    public = getattr(special, name.partition(".")[0])
    if name.startswith("pb"):
        return lambda v, x: public(v, x)[name.endswith("slope")]
    return public


def by_order(f: Any, rows: Any) -> Any:
    return lambda v, x: pullback.jvp(lambda v: f(v, x), (v,), (np.ones(len(rows)),))[1]


def check(name: str, f: Any, column: int) -> None:
    rows = np.array(EXACT[name])
    with enable_x64():
        out = np.asarray(f(jnp.array(rows[:, 0]), jnp.array(rows[:, 1])))
    for row, value in zip(rows, out, strict=True):
        error = LOST.get((name, row[0], row[1]), 4e-13)
        assert value == pytest.approx(row[column], rel=error), row


USUAL = ("struve", "modstruve", "pbdv")
"""What the usual run of tests differentiates; the others take the same ways."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in USUAL else [pytest.mark.slow]) for name in EXACT]
)
def test_first_derivatives_by_the_order(name: str) -> None:
    check(name, by_order(of_name(name), EXACT[name]), 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_second_derivatives_by_the_order(name: str) -> None:
    check(name, by_order(by_order(of_name(name), EXACT[name]), EXACT[name]), 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["struve", "modstruve", "pbdv", "pbdv.slope", "pbvv", "pbvv.slope", "pbwa"])
def test_mixed_derivatives_agree_in_both_modes(name: str) -> None:
    f = of_name(name)
    with enable_x64():
        v, x = 0.7, 1.3
        forward = pullback.jacfwd(pullback.jacfwd(f, 1))(v, x)
        for mixed in (pullback.grad(pullback.grad(f), 1), pullback.grad(pullback.grad(f, 1))):
            assert float(mixed(v, x)) == pytest.approx(float(forward), rel=1e-13)


@pytest.mark.slow
def test_compiled_batches_are_the_same() -> None:
    v, x = np.array([0.5, 6.5, 1.5]), np.array([1.0, 3.0, 20.0])
    with enable_x64():
        alone = [float(pullback.grad(special.struve)(a, b)) for a, b in zip(v, x, strict=True)]
        for out in eager_and_compiled(pullback.vmap(pullback.grad(special.struve)), v, x):
            np.testing.assert_allclose(out, alone, rtol=1e-15)


@pytest.mark.slow
def test_outside_of_their_domains_derivatives_are_nan_or_zero() -> None:
    with enable_x64():
        assert pullback.grad(special.struve)(0.5, 0.0) == 0
        assert math.isnan(pullback.grad(special.struve)(0.5, -1.0))
        assert math.isnan(pullback.grad(lambda a: special.pbwa(a, 6.0)[0])(0.5))


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_where_a_function_of_a_real_order_is_nan_its_derivatives_are(name: str) -> None:
    function = getattr(special, name)
    with enable_x64():
        for x in (-1.0, math.nan):
            assert math.isnan(function(0.5, x))
            assert math.isnan(pullback.grad(function)(0.5, x))


def test_second_derivatives_by_whole_orders_of_bessel_functions() -> None:
    """The cosine of the order has a second derivative at integers; mpmath's values."""
    with enable_x64():
        second = pullback.grad(pullback.grad(special.yv))(1.0, 7.0)
        assert float(second) == pytest.approx(0.6143452707619144, rel=1e-13)


def test_second_derivatives_of_large_reciprocals() -> None:
    """The square of the gamma function overflows from 99 on."""
    with enable_x64():
        x = 121.2
        psi, slope = float(special.digamma(x)), float(special.polygamma(1, x))
        second = pullback.grad(pullback.grad(special.rgamma))(x)
        assert float(second) == pytest.approx((psi**2 - slope) * float(special.rgamma(x)), rel=1e-13)
