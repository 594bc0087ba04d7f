"""Special functions and their derivatives at hard points, against values of 40 digits; bad input; laws.

``python test_special_functions.py`` with mpmath prints the values anew.
"""

import numpy as np
import pytest
import scipy.special

import pullback.numpy as pnp
from pullback import errors, grad, jit, vmap
from pullback.core.config import enable_x64
from pullback.scipy import special
from tests.helpers import chosen

PLANE = [(0.3, 2.5, 6.0, 30.0, 0.01), (-4.2, -1.1, 0.4, 2.0, 7.3)]
"""Points of one operand: positive ones, and others."""
ORDERS = [(0.3, 0.02), (0.0, 2.7), (2.6, 1.1), (9.5, 14.0), (7.3, 7.2), (20.0, 90.0), (41.5, 13.0)]
"""Orders and variables: a point or more of each region of the formulas."""
CONFLUENT = [(1.5, 2.5, -3.0), (0.7, 1.2, 12.0), (2.5, 0.8, 160.0), (-1.5, 2.2, -130.0), (-2.0, 1.3, 0.9)]
GAUSS = [
    (0.5, 1.5, 2.5, 0.3),
    (1.2, 0.7, 2.9, 0.97),
    (1.5, 2.5, 1.1, 0.9),
    (0.4, 2.4, 1.5, -40.0),
    (1.0, 2.0, 3.0, -0.7),
]
PAIRS = [(0.4, 1.7), (3.2, 0.9), (12.0, 60.0), (0.02, 3.0)]
"""What each function of the table is evaluated at: a name, the derivatives' orders, the points."""
TABLE = {
    "erfcx": ((0,), (1,)), "dawsn": ((0,), (1,)), "exp1": ((0,), (1,)), "expi": ((0,), (1,)), "spence": ((0,), (1,)),
    "gamma": ((0,), (1,)), "jv": ((0, 0), (1, 0), (0, 1)), "yv": ((0, 0), (1, 0)),
    "iv": ((0, 0), (1, 0)), "kv": ((0, 0), (1, 0), (0, 1)), "hyp1f1": ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "hyp2f1": ((0, 0, 0, 0), (1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)), "betaln": ((0, 0), (1, 0)),
    "boxcox": ((0, 0), (0, 1)), "kl_div": ((0, 0), (1, 0)), "owens_t": ((0, 0), (1, 0), (0, 1)),
}  # fmt: skip
EXPECTED = {
    "erfcx (0,)": [
        0.73459933456765515,
        0.21080636406114358,
        0.092776567800538354,
        0.018795888861416751,
        0.98881546104634251,
        91618811.944531719,
        6.3052388444615536,
        0.67078778529476151,
        0.25539567631050574,
        0.076580608471478914,
    ],
    "erfcx (1,)": [
        -0.6876195663549195,
        -0.074347346789794671,
        -0.015060353489052321,
        -0.00062583541050748407,
        -1.1086028578745857,
        -769598021.46244564,
        -14.999904624910932,
        -0.59174893885970334,
        -0.1067964618534896,
        -0.010302283411920451,
    ],
    "dawsn (0,)": [
        0.28263166502131192,
        0.22308372216743548,
        0.084542688974543852,
        0.016675941401059176,
        0.0099993333599992383,
        -0.12276081600652292,
        -0.52620667997055252,
        0.35994348193488812,
        0.30134038892379197,
        0.069154794835621129,
    ],
    "dawsn (1,)": [
        0.83042100098721285,
        -0.11541861083717741,
        -0.014512267694526227,
        -0.00055648406355054791,
        0.99980001333280002,
        -0.031190854454792546,
        -0.15765469593521564,
        0.71204521445208949,
        -0.20536155569516786,
        -0.0096600046000684627,
    ],
    "exp1 (0,)": [
        0.90567665167584674,
        0.024914917870269735,
        0.00036008245216265866,
        3.0215520106888125e-15,
        4.0379295765381138,
    ],
    "exp1 (1,)": [
        -2.4693940689390597,
        -0.032833999449559518,
        -0.0004131253627777264,
        -3.1192076562800582e-15,
        -99.004983374916803,
    ],
    "expi (0,)": [
        -0.30266853926582593,
        7.0737658945786007,
        85.989762142439205,
        368973209407.2742,
        -4.0179294654266694,
        -0.0029687621819419472,
        -0.18599090453604013,
        0.10476521861932488,
        4.9542343560018902,
        245.11611221637407,
    ],
    "expi (1,)": [
        4.4995293585866771,
        4.8729975842813894,
        67.238132248789187,
        356215819384.14874,
        101.0050167084168,
        -0.0035703754334470721,
        -0.30261007608916318,
        3.7295617441031757,
        3.6945280494653251,
        202.78081199788288,
    ],
    "spence (0,)": [
        0.88937762428603876,
        -1.1473806603755708,
        -2.7492791260608083,
        -7.280084707384271,
        1.5886254480763753,
    ],
    "spence (1,)": [
        -1.7199611490370514,
        -0.61086048791610338,
        -0.358351893845611,
        -0.11728266833317777,
        -4.6516870565536276,
    ],
    "gamma (0,)": [
        2.9915689876875907,
        1.329340388179137,
        120.0,
        8.841761993739702e30,
        99.432585119150602,
        -0.16406105047761405,
        9.7148063829028945,
        2.2181595437576881,
        1.0,
        1271.4236336639088,
    ],
    "gamma (1,)": [
        -10.478042841758518,
        0.93473452162608553,
        204.73412021181606,
        2.992439645174224e31,
        -9999.0288029466807,
        -0.96360691319147068,
        98.645736843333186,
        -5.6815595728049146,
        0.42278433509846714,
        2438.3620998513855,
    ],
    "jv (0, 0)": [
        0.27986353471084983,
        -0.1424493700460119,
        0.052229359494008782,
        -0.015412169221365067,
        0.22000445592208517,
        -0.080345344044422494,
        9.211212396485257e-18,
    ],
    "jv (1, 0)": [
        -1.241452285313647,
        0.72335728336364364,
        -0.08928849492114534,
        0.20517762114484361,
        -0.11357210784813044,
        -0.038181632660436409,
        -1.6963946224839785e-17,
    ],
    "jv (0, 1)": [
        4.1958001522386575,
        -0.44160137911825305,
        0.11532144264183974,
        -0.18230778406869459,
        0.103994133228483,
        0.028037263658118231,
        2.7962532929893418e-17,
    ],
    "yv (0, 0)": [
        -3.5870852338130229,
        0.46050354907539485,
        -2.6556458987595554,
        0.24713226959125526,
        -0.41988577971886494,
        -0.028274110097231545,
        -876859386960441.04,
    ],
    "yv (1, 0)": [
        -6.4240077359298012,
        0.22375894722252247,
        -3.2178629056349096,
        0.02323768335436003,
        -0.18314804398592256,
        0.10816598948560676,
        -1591447177624812.6,
    ],
    "iv (0, 0)": [
        0.27990659395145361,
        3.8416509765959347,
        0.061789352776114136,
        5200.2195327547345,
        5.2935715687570527,
        5.5516089411796666e36,
        6.7311751744822136e-17,
    ],
    "iv (1, 0)": [
        -1.2416764177062942,
        -0.049255400915817582,
        -0.1085185355642718,
        -3392.1781925122287,
        -4.9090364226724065,
        -1.2303613232393062e36,
        -1.271198257640361e-16,
    ],
    "kv (0, 0)": [
        5.4122063077441663,
        0.049255400915817582,
        2.8451163418515074,
        5.6819850217926252e-6,
        0.00920383454292333,
        9.7689149642963041e-40,
        170803012518529.35,
    ],
    "kv (1, 0)": [
        10.219540135659907,
        0.0,
        4.0912740173050312,
        3.5176159766079186e-6,
        0.0078966334992472911,
        2.1420213900763407e-40,
        318817842058356.97,
    ],
    "kv (0, 1)": [
        -97.406293054225832,
        -0.057738398956525935,
        -7.5609621334691857,
        -7.0066332634823415e-6,
        -0.013432908690547594,
        -1.005882745365553e-39,
        -571981334026752.52,
    ],
    "hyp1f1 (0, 0, 0)": [
        0.22727824593178743,
        33689.830132634507,
        1.5254500788503643e73,
        403.81381122748262,
        -0.11371237458193979,
    ],
    "hyp1f1 (1, 0, 0)": [
        -0.27059794302524509,
        122315.82204641996,
        6.6994463980205943e73,
        -1507.0602723588007,
        0.31196362988046144,
    ],
    "hyp1f1 (0, 1, 0)": [
        0.14219392691396822,
        -92509.306223795359,
        -9.2281259716145037e73,
        -246.96319468762186,
        0.73891790919564655,
    ],
    "hyp1f1 (0, 0, 1)": [
        0.088745588781961745,
        32243.721454291957,
        1.5415080957525203e73,
        -4.5649384384262592,
        -0.93645484949832772,
    ],
    "hyp2f1 (0, 0, 0, 0)": [
        1.108062551056932,
        1.6974551213422699,
        1137.181025027641,
        0.17127001190566059,
        0.69131326097073309,
    ],
    "hyp2f1 (1, 0, 0, 0)": [
        0.22988108250652227,
        1.0353237837768654,
        3512.586858539031,
        -0.77585613022244079,
        -0.25014227099200328,
    ],
    "hyp2f1 (0, 0, 1, 0)": [
        -0.049363665853922282,
        -0.54429363410972761,
        -4009.8895072033326,
        0.077084598500622623,
        0.075236144211431918,
    ],
    "hyp2f1 (0, 0, 0, 1)": [
        0.43583029138730823,
        2.925733928970562,
        33331.862519272036,
        0.0017068607967480116,
        0.29450847672310292,
    ],
    "betaln (0, 0)": [0.65543238175023271, -0.96699612787531119, -32.665586735494891, 3.8822700472787982],
    "betaln (1, 0)": [-3.0467205132649483, -0.28526819874499922, -1.8270439198029804, -51.475441661813239],
    "boxcox (0, 0)": [-0.46434049841560118, 2.0540255846674577, 9.3912523921944642e62, -0.33333066666666667],
    "boxcox (0, 1)": [0.15961781662700945, 1.3992806612100109, 2.3179864645998249e63, 0.11109979016087441],
    "kl_div (0, 0)": [0.72123240682546975, 1.7592362414832231, 28.686745050790796, 2.8797872941180749],
    "kl_div (1, 0)": [-1.4469189829363254, 1.2685113254635072, -1.6094379124341004, -5.0106352940962557],
    "owens_t (0, 0)": [0.14532758013341625, 0.0003428190653829892, 8.882410560388395e-34, 0.19869635404178344],
    "owens_t (1, 0)": [-0.092711186411912286, -0.0011873036373166895, -1.0731918678315302e-32, -0.0095416615770476178],
    "owens_t (0, 1)": [0.029972163121266729, 8.307067398455503e-6, 0.0, 0.01588369513034972],
}


COMPILED_ANYWAY = ("jv", "yv", "iv", "kv", "hyp1f1", "hyp2f1")
"""Functions whose derivatives by parameters are compiled when they are eager too."""


USUAL = {"jv": 2, "yv": 1, "iv": 1, "hyp1f1": 2, "hyp2f1": 2}
"""How many of the table's orders the usual run takes, of functions that take a second to compile each."""


def points_of(name):
    if name in ("jv", "yv", "iv", "kv"):
        return ORDERS
    if name in ("hyp1f1", "hyp2f1"):
        return CONFLUENT if name == "hyp1f1" else GAUSS
    if name in ("betaln", "boxcox", "kl_div", "owens_t"):
        return PAIRS
    return [(x,) for x in (*PLANE[0], *(PLANE[1] if name in ("erfcx", "dawsn", "expi", "gamma") else ()))]


def record():
    """What mpmath returns."""
    import mpmath as mp

    mp.mp.dps = 40

    def owens(h, a):
        return mp.quad(lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), mp.linspace(0, a, 40)) / (2 * mp.pi)

    of = {
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x), "exp1": mp.e1, "expi": mp.ei, "gamma": mp.gamma,
        "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        "spence": lambda x: mp.re(mp.polylog(2, 1 - x)), "jv": mp.besselj, "yv": mp.bessely, "iv": mp.besseli,
        "kv": mp.besselk, "hyp1f1": mp.hyp1f1, "hyp2f1": mp.hyp2f1,
        "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
        "boxcox": lambda x, power: mp.expm1(power * mp.log(x)) / power,
        "kl_div": lambda p, q: p * mp.log(p / q) - p + q, "owens_t": owens,
    }  # fmt: skip

    def slope(f, point, which):
        h = mp.mpf(10) ** -13
        shifted = [[v + k * h * (i == which) for i, v in enumerate(point)] for k in (1, -1)]
        return (f(*shifted[0]) - f(*shifted[1])) / (2 * h)

    for name, orders in TABLE.items():
        for order in orders:
            values = []
            for point in points_of(name):
                exact = [mp.mpf(v) for v in point]
                values.append(slope(of[name], exact, order.index(1)) if any(order) else of[name](*exact))
            shown = ", ".join(mp.nstr(v, 17) for v in values)
            print(f'    "{name} {order}": [{shown}],')


def function_of(name, order):
    function = getattr(special, name)
    if not any(order):
        return function
    return lambda *xs: grad(lambda *ys: function(*ys).sum(), argnums=order.index(1))(*xs)


@pytest.mark.parametrize("name", TABLE)
def test_hard_points(name):
    """Eager and compiled, within 1e-11 in double precision; in single precision to its own last places."""
    orders = TABLE[name][: chosen(USUAL.get(name, 3), None)]
    functions = [function_of(name, order) for order in orders]
    expected = [EXPECTED[f"{name} {order}"] for order in orders]
    operands = [np.array(c) for c in zip(*points_of(name), strict=True)]

    def every(*xs):
        return [f(*xs) for f in functions]

    with enable_x64():
        compiled = jit(every)(*operands)
        eager = [f(*operands) for f in functions[: 1 if name in COMPILED_ANYWAY else None]]
    for order, got, want in zip(orders, compiled, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, err_msg=f"compiled {order}")
    for order, got, want in zip(orders, eager, expected, strict=False):
        np.testing.assert_allclose(got, want, rtol=1e-11, err_msg=f"eager {order}")


@pytest.mark.slow
def test_wronskians_and_neighbours():
    """DLMF 10.5.2, 10.28.2 and 10.6.1, where the formulas change."""
    order, x = (
        v.ravel() for v in np.meshgrid([-2.4, -1.0, 0.0, 0.4, 1.9, 2.1, 8.0, 30.5], [0.1, 2.0, 11.9, 12.1, 13.1, 70.0])
    )
    with enable_x64():

        @jit
        def found(v, x):
            both = pnp.stack([v, v + 1])
            (j, j1), (y, y1) = special.jv(both, x), special.yv(both, x)
            (i, i1), (k, k1) = special.iv(both, x), special.kv(both, x)
            return (j1 * y - j * y1) * np.pi * x / 2, (i * k1 + i1 * k) * x, j, y, i, k

        first, second, *rest = (np.asarray(v) for v in found(order, x))
    np.testing.assert_allclose(first, 1, rtol=1e-11)
    np.testing.assert_allclose(second, 1, rtol=1e-11)
    for got, name in zip(rest, ("jv", "yv", "iv", "kv"), strict=True):
        want = getattr(scipy.special, name)(order, x)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.slow
def test_ends_of_domains():
    inf, nan = np.inf, np.nan
    with enable_x64():
        got = jit(
            lambda: {
                "jv": special.jv(
                    pnp.array([0.0, 1.0, -1.0, 0.5, 2.0, 0.5]), pnp.array([0.0, 0.0, 0.0, 0.0, -1.0, -1.0])
                ),
                "yv": special.yv(pnp.array([0.0, 1.0, 1.0]), pnp.array([0.0, -1.0, inf])),
                "kv": special.kv(pnp.array([0.3, 0.3, 1e300]), pnp.array([0.0, inf, 1.0])),
                "iv": special.iv(pnp.array([0.0, 2.0, -2.0]), pnp.array([0.0, 0.0, 0.0])),
                "gamma": special.gamma(pnp.array([0.0, -0.0, -1.0, 171.7, -170.5, -inf])),
                "zeta": special.zeta(pnp.array([1.0, 0.0, -2.0, -1.0])),
                "spence": special.spence(pnp.array([0.0, 1.0, -0.1, inf])),
                "hyp2f1": special.hyp2f1(1.0, pnp.array([2.0, -2.0, 0.5]), 3.0, pnp.array([1.5, 1.5, 1.0])),
                "beta": special.beta(pnp.array([-2.5, -2.0, -2.0]), pnp.array([3e38, 2.0, 0.5])),
                "poch": special.poch(pnp.array([-2.0, -2.0, 3.0]), pnp.array([1.0, 3.0, -1.0])),
                "boxcox": special.boxcox(pnp.array([0.0, 0.0, inf, -1.0]), pnp.array([2.0, 0.0, -2.0, 1.0])),
                "fresnel": special.fresnel(pnp.array([inf, -inf, 1e300]))[0],
            }
        )()
    wanted = {
        "jv": [1, 0, 0, 0, 0.1149034849319005, nan], "yv": [-inf, nan, 0], "kv": [inf, 0, inf], "iv": [1, 0, 0],
        "gamma": [inf, -inf, nan, inf, -3.312753654084385e-309, nan], "zeta": [inf, -0.5, 0, -1 / 12],
        "spence": [np.pi**2 / 6, 0, nan, -inf], "hyp2f1": [inf, 0.375, 4 / 3],
        "beta": [-1.473590459442977e96, 0.5, inf], "poch": [-2, 0, 0.5], "boxcox": [-0.5, -inf, 0.5, nan],
        "fresnel": [0.5, -0.5, 0.5],
    }  # fmt: skip
    for name, want in wanted.items():
        np.testing.assert_allclose(got[name], want, rtol=1e-12, atol=1e-300, err_msg=name)


def test_no_cancellation():
    """Where formulas as they stand in books lose all digits."""
    with enable_x64():
        found = jit(
            lambda: [
                special.kl_div(1.0, 1.0 + 2.0**-30), special.boxcox(1.0 + 2.0**-40, 2.0**-30), special.erfcx(-26.5),
                special.betaln(1e-3, 1e8), grad(special.dawsn)(40.0), grad(special.erfcx)(1e3),
                grad(grad(special.boxcox, 1), 1)(3.0, 0.0), special.fresnel(12345.678)[1], special.ndtri(1e-300),
            ]
        )()  # fmt: skip
    want = [
        4.3368086872493725e-19, 9.0949470177251465e-13, 1.9245531624185688e305, 6.8887582046448963,
        -0.00031279342751785595, -5.6418873726549667e-7, 0.44198965338130244, 0.50002333469531803, -37.047096299361199,
    ]  # fmt: skip
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_mapped_and_of_second_order():
    with enable_x64():
        by_order = vmap(grad(grad(special.kv)))(np.array([0.0, 1.3]), np.array([0.7, 0.7]))
        step = 1e-3
        k = [scipy.special.kv(np.array([0.0, 1.3]) + d * step, 0.7) for d in (-1, 0, 1)]
        np.testing.assert_allclose(by_order, (k[0] - 2 * k[1] + k[2]) / step**2, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: special.dawsn(1j), errors.DtypeError, "dawsn takes floats, got c64"),
        (lambda: special.jv("a", 1.0), errors.OperandError, "jv"),
        (lambda: special.hyp2f1(pnp.ones(2), 1.0, 1.0, pnp.ones(3)), errors.ShapeError, "hyp2f1"),
        (lambda: special.bernoulli(-1), errors.ArgumentError, "the last index n must not be negative, got -1"),
        (lambda: special.bernoulli(1.5), errors.ShapeError, "bernoulli: the last index n must be an int, got 1.5"),
        (lambda: special.multigammaln(3.0, 0), errors.ArgumentError, "d must be a positive integer, got 0"),
        (lambda: special.factorial(3, exact=True), errors.UnsupportedArgumentError, "factorial: exact=True is not"),
        (lambda: special.bessel_jn(1.0, v=-1), errors.ArgumentError, "order v must not be negative, got -1"),
        (lambda: special.sph_harm_y(1.5, 0, 0.1, 0.2), errors.DtypeError, "sph_harm_y: n must be integers, got f32"),
        (lambda: special.sph_harm_y(1, 0, 0.1, 0.2, diff_n=1), errors.UnsupportedArgumentError, "diff_n=1"),
        (lambda: special.sph_harm_y(1, 0, 0.1, 0.2, n_max=-2), errors.ArgumentError, "must not be negative, got -2"),
        (
            lambda: jit(lambda n: special.sph_harm_y(n, 0, 0.1, 0.2))(1),
            errors.ConcretizationTypeError, "as n_max",
        ),
        (lambda: special.lpmn_values(1, 2, pnp.ones(1), False), errors.ArgumentError, "got m=1 and n=2"),
        (lambda: special.lpmn(1, 1, 0.5), errors.ArgumentError, "lpmn: z must have one axis, got shape ()"),
    ],
)  # fmt: skip
def test_bad_input(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


def test_parameters_out_of_range_are_no_numbers():
    assert np.isnan([special.expn(-1, 1.0), special.expn(2, -1.0), special.loggamma(-0.5)]).all()
    np.testing.assert_array_equal([special.comb(3, 5), special.comb(-3, 2), special.factorial(-2)], 0)
    table = special.sph_harm_y(pnp.array([1, 2, -1, 5]), pnp.array([2, 2, 0, 0]), 0.3, 0.2, n_max=3)
    np.testing.assert_array_equal(np.isnan(table), [False, False, True, True])
    assert table[0] == 0


def test_bessel_jn_is_right_where_recurrences_are_not():
    x = np.array([0.0, 1e-3, 1.0, 50.0], np.float32)
    np.testing.assert_allclose(
        special.bessel_jn(x, v=3), scipy.special.jv(np.arange(4)[:, None], x.astype(float)), rtol=1e-5, atol=1e-7
    )


if __name__ == "__main__":
    record()


@pytest.mark.parametrize("compile_", [lambda f: f, jit], ids=["eager", "compiled"])
def test_rising_factorials_of_large_numbers(compile_) -> None:
    """The references are those of mpmath."""
    values = {
        (700.0, 2.5): 12998920.342862608,
        (171.6, 2.5): 389960.14544951758,
        (68.1146952111993, -1.3344383609552306): 0.00366162986503582,
        (1e5, 3.3): 3.1623976697626591e16,
        (1000.0, 90.0): 4.8939907791189385e271,
        (200.0, -120.0): 2.2687105526952044e-256,
        (1e10, 2.5): 1.0000000001875e25,
    }
    with enable_x64():
        for (z, m), expected in values.items():
            np.testing.assert_allclose(compile_(special.poch)(z, m), expected, rtol=2.2e-16 * (4 + abs(m)))


def test_limits_of_combinations_and_integrals() -> None:
    with enable_x64():
        n, k = np.array([0.0, 0.0, -1.0, 3.0, -3.0]), np.array([0.0, 2.0, 0.0, 2.0, 2.0])
        np.testing.assert_array_equal(special.comb(n, k, repetition=True), [1, 0, 1, 6, 0])
        for f in (special.sici, jit(special.sici)):
            sine, cosine = f(pnp.array([-np.inf, np.inf, -3.0]))
            np.testing.assert_allclose(sine, scipy.special.sici([-np.inf, np.inf, -3.0])[0], rtol=1e-14)
            np.testing.assert_allclose(cosine, [np.nan, 0, scipy.special.sici(3.0)[1]], rtol=1e-13)
