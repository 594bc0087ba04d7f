"""Incomplete gamma and beta functions, zeta and Bessel functions at hard points: against values of 40 digits.

``python test_incomplete.py`` with mpmath prints the values anew.
"""

import numpy as np
import pytest

from pullback import grad, jit, lax
from pullback.core.config import enable_x64
from pullback.test_util import check_grads

GAMMA = [
    (1e-3, 1e-2),
    (0.3, 0.9),
    (0.7, 1.1),
    (2.5, 0.01),
    (9.9, 10.1),
    (50.0, 30.0),
    (200.0, 260.0),
    (3e3, 3.1e3),
    (3e4, 3e4),
]
BETA = [(0.1, 0.2, 0.999), (0.5, 3.0, 0.02), (5.0, 0.3, 0.9), (20.0, 30.0, 0.4), (300.0, 500.0, 0.35), (2e3, 1e3, 0.68)]
ZETA = [(1.01, 1.0), (2.0, 1e-3), (3.5, 20.0), (30.0, 2.5), (1.5, 1e3)]
BESSEL = [1e-5, 0.3, 7.9, 8.1, 40.0, 1e4]
EXPECTED = {
    "igamma": [
        0.99596940303351316,
        0.90225264802966954,
        0.78777584284017502,
        2.9876015319065938e-6,
        0.56716117107265911,
        0.00051889146254803429,
        0.99995249987555699,
        0.96499998630095364,
        0.50076776491877105,
    ],
    "igammac": [
        0.0040305969664868442,
        0.097747351970330455,
        0.21222415715982498,
        0.99999701239846809,
        0.43283882892734089,
        0.99948110853745197,
        4.7500124443008756e-5,
        0.035000013699046358,
        0.49923223508122895,
    ],
    "igamma_grad_a": [
        -4.0232716518012267,
        -0.38261386075942127,
        -0.38801333662723098,
        -1.7056647497778207e-5,
        -0.12634015939444906,
        -0.00028300944471259043,
        -1.3284959110062084e-5,
        -0.0014031076087078633,
        -0.0023033007278647027,
    ],
    "betainc": [
        0.91395987796148384,
        0.26165072224245818,
        0.18915060861296631,
        0.50770019965764801,
        0.071020751118609971,
        0.94008897214457435,
    ],
    "betainc by a": [
        -0.59548918682531812,
        -0.74916964515651095,
        -0.035394195729227811,
        -0.069775119224570087,
        -0.0063556342431222762,
        -0.0015105888891424857,
    ],
    "betainc by b": [
        0.87077889333819485,
        0.045458495460353497,
        0.64706141109344326,
        0.046387678845244213,
        0.003612256412459844,
        0.0031142476820854814,
    ],
    "zeta": [
        100.57794333849678,
        1000001.6425331958,
        0.00023798942002684447,
        1.1529691685630236e-12,
        0.063261368544514927,
    ],
    "zeta by s": [
        -9999.927281160435,
        6907754.3406305727,
        -0.00080227913232219656,
        -1.0564710072825998e-12,
        -0.56348515629051207,
    ],
    "bessel_i0e": [
        0.99999000007499958,
        0.75758062518254786,
        0.14436986414104192,
        0.14251180948829528,
        0.06327827987523533,
        0.0039894726746047321,
    ],
    "bessel_i1e": [
        4.999950000312499e-6,
        0.1123775606398388,
        0.13489649943989377,
        0.13340068832583663,
        0.062482229074442061,
        0.0039892731959836623,
    ],
}


def record():
    """What mpmath returns: the functions, and their derivatives by the first operand."""
    import mpmath as mp

    mp.mp.dps = 40

    def lower(a, x):
        term = total = mp.mpf(1)
        k = 0
        while term > total * mp.mpf(10) ** -50:
            k += 1
            term *= x / (a + k)
            total += term
        return total * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))

    def beta(a, b, x):
        term = total = mp.mpf(1)
        k = 0
        while term > total * mp.mpf(10) ** -50:
            term *= (a + b + k) / (a + 1 + k) * x
            k += 1
            total += term
        return total * mp.exp(a * mp.log(x) + b * mp.log1p(-x) - mp.log(a) - mp.log(mp.beta(a, b)))

    def slope(f, a, *rest):
        h = a * mp.mpf(10) ** -14
        return (f(a + h, *rest) - f(a - h, *rest)) / (2 * h)

    of = lambda points: [tuple(mp.mpf(v) for v in p) for p in points]
    found = {
        "igamma": [lower(*p) for p in of(GAMMA)],
        "igammac": [1 - lower(*p) for p in of(GAMMA)],
        "igamma_grad_a": [slope(lower, *p) for p in of(GAMMA)],
        "betainc": [beta(*p) for p in of(BETA)],
        "betainc by a": [slope(beta, *p) for p in of(BETA)],
        "betainc by b": [slope(lambda b, a, x: beta(a, b, x), p[1], p[0], p[2]) for p in of(BETA)],
        "zeta": [mp.zeta(*p) for p in of(ZETA)],
        "zeta by s": [mp.zeta(*p, 1) for p in of(ZETA)],
        "bessel_i0e": [mp.besseli(0, x) * mp.exp(-x) for (x,) in of([(x,) for x in BESSEL])],
        "bessel_i1e": [mp.besseli(1, x) * mp.exp(-x) for (x,) in of([(x,) for x in BESSEL])],
    }
    for name, values in found.items():
        print(f'    "{name}": [')
        print("".join(f"        {mp.nstr(v, 17)},\n" for v in values), end="    ],\n")


def columns(points):
    return [np.array(c) for c in zip(*points, strict=True)]


def by(argnum, f):
    """The derivative by one operand of a function of elements."""
    return lambda *xs: grad(lambda *ys: f(*ys).sum(), argnums=argnum)(*xs)


POINTS = {
    "igamma": (lax.igamma, columns(GAMMA)),
    "igammac": (lax.igammac, columns(GAMMA)),
    "igamma_grad_a": (lax.igamma_grad_a, columns(GAMMA)),
    "betainc": (lax.betainc, columns(BETA)),
    "betainc by a": (by(0, lax.betainc), columns(BETA)),
    "betainc by b": (by(1, lax.betainc), columns(BETA)),
    "zeta": (lax.zeta, columns(ZETA)),
    "zeta by s": (by(0, lax.zeta), columns(ZETA)),
    "bessel_i0e": (lax.bessel_i0e, [np.array(BESSEL)]),
    "bessel_i1e": (lax.bessel_i1e, [np.array(BESSEL)]),
}


@pytest.mark.parametrize("name", POINTS)
def test_hard_points(name):
    """In double precision within 1e-12; the host is SciPy, whose series for large parameters is cut off earlier."""
    function, operands = POINTS[name]
    with enable_x64():
        for how in (lambda f: f, jit):
            np.testing.assert_allclose(how(function)(*operands), EXPECTED[name], rtol=1e-12)
    single = [x.astype(np.float32) for x in operands]
    with enable_x64():
        exact = np.asarray(function(*[x.astype(np.float64) for x in single]))
    np.testing.assert_allclose(jit(function)(*single), exact, rtol=2e-6)


EDGES = [
    (lax.igamma, (0.0, 1.0), 1), (lax.igamma, (0.0, 0.0), np.nan), (lax.igamma, (1.0, 0.0), 0),
    (lax.igamma, (1.0, np.inf), 1), (lax.igamma, (np.inf, 1.0), 0), (lax.igamma, (-1.0, 1.0), np.nan),
    (lax.igammac, (1.0, 0.0), 1), (lax.igammac, (1.0, np.inf), 0), (lax.igammac, (1.0, -1.0), np.nan),
    (lax.igamma_grad_a, (2.0, 0.0), 0), (lax.igamma_grad_a, (2.0, np.inf), 0), (lax.igamma_grad_a, (-1.0, 2.0), np.nan),
    (lax.random_gamma_grad, (2.0, 0.0), 0), (lax.betainc, (0.0, 1.0, 0.5), 1), (lax.betainc, (1.0, 0.0, 0.5), 0),
    (lax.betainc, (2.0, 3.0, 0.0), 0), (lax.betainc, (2.0, 3.0, 1.0), 1), (lax.betainc, (2.0, 3.0, 1.5), np.nan),
    (lax.betainc, (np.inf, 3.0, 0.5), 0), (lax.betainc, (2.0, np.inf, 0.5), 1), (lax.betainc, (-2.0, 1.0, 0.5), np.nan),
    (lax.zeta, (1.0, 2.0), np.inf), (lax.zeta, (0.5, 2.0), np.nan), (lax.zeta, (2.0, 0.0), np.inf),
    (lax.zeta, (2.0, -3.0), np.inf), (lax.zeta, (2.5, -0.5), np.nan),
    (lax.bessel_i0e, (0.0,), 1), (lax.bessel_i0e, (np.inf,), 0), (lax.bessel_i1e, (0.0,), 0),
]  # fmt: skip


def test_edges_of_the_domains():
    for function, operands, expected in EDGES:
        np.testing.assert_equal(float(function(*operands)), expected, err_msg=f"{function.__name__}{operands}")
    compiled = jit(lambda: [function(*operands) for function, operands, _ in EDGES])()
    np.testing.assert_array_equal(np.array(compiled), [expected for *_, expected in EDGES])


@pytest.mark.slow
def test_derivatives_of_third_order():
    with enable_x64():
        for function, operands in (
            (lax.igamma, (2.5, 1.3)), (lax.igammac, (0.4, 2.3)), (lax.random_gamma_grad, (1.3, 0.8)),
            (lax.zeta, (2.3, 1.4)), (lax.bessel_i1e, (0.7,)),
        ):  # fmt: skip
            check_grads(function, tuple(map(np.asarray, operands)), order=3, modes=("fwd",))


def test_the_derivative_of_a_sample_does_not_underflow():
    """Far in the tail, where the density is zero in single precision."""
    x = np.float32(200.0)
    assert np.exp(-x) == 0
    found = float(lax.random_gamma_grad(np.float32(2.0), x))
    assert 1 < found < np.inf


def test_large_arrays_are_compiled():
    a, x = np.linspace(0.5, 5, 3000), np.linspace(9, 0.1, 3000)
    with enable_x64():
        whole = np.asarray(lax.igamma_grad_a(a, x))
        np.testing.assert_allclose(whole[::300], lax.igamma_grad_a(a[::300], x[::300]), rtol=1e-12)
    program = jit(lax.igamma).lower(*np.ones((2, 100_000), np.float32)).compile()
    assert program.memory_analysis().temp_size_in_bytes < 20e6  # an integral of all at once would take 40 MB and more


@pytest.mark.parametrize("function", [lax.igamma, lax.igammac, lax.igamma_grad_a, lax.random_gamma_grad, lax.zeta])
def test_operands_that_do_not_fit_are_refused(function):
    with pytest.raises(TypeError, match="takes floats, got i32"):
        function(np.int32(1), np.int32(2))
    with pytest.raises(TypeError, match="one dtype"):
        function(np.float32(1), np.float16(2))
    with pytest.raises(ValueError, match="same number of dimensions"):
        function(np.ones((2, 3), np.float32), np.ones(3, np.float32))


if __name__ == "__main__":
    record()
