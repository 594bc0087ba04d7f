"""Elliptic integrals and functions: exact values and derivatives, the edges of their domains, SciPy's signatures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import pullback
import pullback.numpy as jnp
from pullback import errors
from pullback.core.config import enable_x64
from pullback.scipy import special

NAMES = [
    "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf", "elliprg",
    "elliprj",
]  # fmt: skip

# By mpmath 1.3.0 with 40 digits: the value, first derivatives by each operand, and second ones by one operand.
EXACT: list[tuple[str, tuple[float, ...], float, list[float], list[float]]] = [
    (
        "elliprf",
        (1e-08, 3.0, 20000000.0),
        0.0020666975023310554,
        [-0.645459958695375, -3.726562645054525e-05, -4.607727086071525e-11],
        [32274861.110824674, 1.2421523663256567e-05, 3.3160412989424896e-18],
    ),
    (
        "elliprf",
        (0.5, 0.5, 0.5),
        1.4142135623730951,
        [-0.4714045207910317, -0.4714045207910317, -0.4714045207910317],
        [0.848528137423857, 0.848528137423857, 0.848528137423857],
    ),
    (
        "elliprc",
        (2.0, 0.25),
        1.2851111137672355,
        [-0.1651440950230537, -1.2490694673500413],
        [0.0910444542207212, 5.394345313119827],
    ),
    (
        "elliprc",
        (2.0, -0.25),
        1.175164782692724,
        [-0.10401288922359478, 1.51822645159669],
        [0.03005821608314388, 6.040465856168798],
    ),
    (
        "elliprd",
        (1e-06, 4.0, 0.125),
        11.650958796232013,
        [-16874.250920311508, -1.3988607542512177, -94.9129674113827],
        [8485077152.155458, 0.50796881904902, 1522.0715638053366],
    ),
    (
        "elliprg",
        (1e-06, 4.0, 0.125),
        1.041304593547372,
        [0.3912934710557752, 0.12171666912244782, 0.27028183192338945],
        [-351.9972474934234, -0.014615522140218563, -0.4676931056604319],
    ),
    (
        "elliprj",
        (1.5, 2.0, 0.125, 4.0),
        0.41844300300900716,
        [-0.08487952711548657, -0.06845998121463749, -0.3800532794972067, -0.07897964786846376],
        [0.06221280810159142, 0.03909693817421162, 2.1711749432464136, 0.03256480564015367],
    ),
    (
        "elliprj",
        (90000000.0, 60000000.0, 70000000.0, 1e-07),
        8.195724775618321e-11,
        [-4.474421893462621e-19, -6.678984210095878e-19, -5.736059878594972e-19, -2.439750182371164e-05],
        [7.37564918471476e-27, 1.647844895806509e-26, 1.2140604807525088e-26, 243.97501823713282],
    ),
    (
        "elliprj",
        (1.5, 2.0, 0.125, -0.75),
        -0.725014148846248,
        [0.3484121749850418, 0.2576903775843282, 2.336497181690633, 0.3233865894509015],
        [-0.35798647706878717, -0.20633433256249883, -14.272146967841842, 1.7512640759481388],
    ),
    ("ellipk", (0.3,), 1.713889448178791, [0.5848582159226464], [0.926328931788758]),
    ("ellipk", (-50.0,), 0.47103424540873334, [0.003270674869622428], [8.33645492077184e-05]),
    ("ellipkm1", (1e-09,), 11.747927282280077, [-499999997.43801814], [4.9999999987499994e17]),
    ("ellipe", (0.999,), 1.0021707908344453, [-1.9214022871450709], [-248.87016558705307]),
    ("ellipe", (-50.0,), 7.342304680771015, [-0.06871270435362282], [-0.0006544202948400039]),
    (
        "ellipkinc",
        (1.5, 0.999),
        3.2950027527258308,
        [12.911291691609168, 42.6678715760656],
        [151.71662168094187, 5444.6085869035805],
    ),
    (
        "ellipkinc",
        (-7.0, -2.5),
        -5.104845048711976,
        [0.69352889274834, -0.39670535619518504],
        [0.4130524833863988, -0.13089441409505786],
    ),
    (
        "ellipeinc",
        (1.5, 0.999),
        0.9986551831595046,
        [0.0774515845420705, -1.1493231078910542],
        [-0.9101097729977996, -20.78005428837565],
    ),
    (
        "ellipeinc",
        (7.0, -2.5),
        10.065845408896896,
        [1.4419009942573062, -0.992200072036984],
        [0.8587685281792804, -0.11909894316835978],
    ),
    (
        "amplitude",
        (0.75, 0.999),
        0.6882621081024153,
        [0.772612236861321, -0.060758257626629605],
        [-0.4901036309024358, 0.0021384145407395937],
    ),
    (
        "amplitude",
        (-1.25, 1e-09),
        -1.249999999762309,
        [0.9999999995497141, 0.23769098198982183],
        [2.992360722424029e-10, 0.002816387942754471],
    ),
]


def amplitude(u: Any, m: Any) -> Any:
    return special.ellipj(u, m)[3]


def function(name: str) -> Any:
    return amplitude if name == "amplitude" else getattr(special, name)


@pytest.mark.parametrize(("name", "xs", "value", "first", "second"), EXACT, ids=lambda v: str(v)[:40])
def test_values_and_derivatives_are_exact(
    name: str, xs: tuple[float, ...], value: float, first: list[float], second: list[float]
) -> None:
    f = function(name)
    with enable_x64():
        operands = [jnp.float64(x) for x in xs]
        # principal values are differences of integrals, which here lose a digit
        tolerance = 4e-14 if xs[-1] < 0 and "r" in name else 4e-15
        assert pullback.jit(f)(*operands) == pytest.approx(value, rel=tolerance, abs=0)
        for i in range(len(xs)):
            slope = pullback.grad(f, i)
            assert slope(*operands) == pytest.approx(first[i], rel=4 * tolerance, abs=0)
            assert pullback.grad(slope, i)(*operands) == pytest.approx(second[i], rel=50 * tolerance, abs=0)


def test_compiled_values_keep_digits_that_scipy_loses() -> None:
    with enable_x64():
        near = pullback.jit(special.ellipkinc)(math.pi / 2, 1 - 1e-12)
        assert near == pytest.approx(15.201815980008888, rel=1e-14)
        small = pullback.jit(special.elliprj)(98382076.0, 98382077.0, 98382078.0, 7.8e-8)
        assert small == pytest.approx(5.2504896031292225e-11, rel=1e-14)


EDGES: dict[str, list[tuple[float, ...]]] = {
    "ellipk": [(1.0,), (1.5,), (0.0,), (-math.inf,), (math.nan,)],
    "ellipkm1": [(0.0,), (-0.5,), (1.0,), (math.inf,), (math.nan,)],
    "ellipe": [(1.0,), (1.5,), (0.0,), (-math.inf,), (math.nan,)],
    "ellipkinc": [(0.0, 0.5), (-0.0, 0.5), (1.0, 1.0), (1.0, 1.5), (4.0, 1.0), (math.inf, 0.5), (1.0, -math.inf),
                  (math.nan, 0.5), (0.5, math.nan), (1e-300, 0.5)],
    "ellipeinc": [(0.0, 0.5), (-0.0, 0.5), (1.0, 1.0), (1.0, 1.5), (4.0, 1.0), (math.inf, 0.5), (1.0, -math.inf),
                  (math.nan, 0.5), (0.5, math.nan), (1e-300, 0.5)],
    "amplitude": [(0.0, 0.5), (1.0, 0.0), (1.0, 1.0), (-3.0, 1.0), (1.0, 1.5), (1.0, -0.5), (math.nan, 0.5),
                  (0.5, math.nan)],
    "elliprf": [(0.0, 1.0, 2.0), (0.0, 0.0, 1.0), (-1.0, 1.0, 2.0), (1.0, math.inf, 2.0), (math.nan, 1.0, 2.0)],
    "elliprg": [(0.0, 1.0, 2.0), (0.0, 0.0, 4.0), (0.0, 0.0, 0.0), (-1.0, 1.0, 2.0), (1.0, math.inf, 2.0),
                (math.nan, 1.0, 2.0)],
    "elliprc": [(0.0, 2.0), (1.0, 0.0), (1.0, -2.0), (0.0, -2.0), (-1.0, 2.0), (1.0, math.inf), (1.0, math.nan)],
    "elliprd": [(0.0, 1.0, 2.0), (1.0, 0.0, 2.0), (0.0, 0.0, 1.0), (1.0, 2.0, 0.0), (-1.0, 1.0, 2.0),
                (1.0, math.inf, 2.0), (math.nan, 1.0, 2.0)],
    "elliprj": [(0.0, 1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 2.0), (1.0, 2.0, 3.0, 0.0), (1.0, 2.0, 3.0, -2.0),
                (-1.0, 1.0, 2.0, 3.0), (1.0, math.inf, 2.0, 3.0), (1.0, 2.0, 3.0, math.nan), (1.0, 1.0, 1.0, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_scipys(name: str) -> None:
    operands = [np.array(x) for x in zip(*EDGES[name], strict=True)]
    reference = scipy.special.ellipj(*operands)[3] if name == "amplitude" else getattr(scipy.special, name)(*operands)
    with enable_x64():
        for f in (function(name), pullback.jit(function(name))):
            got = np.asarray(f(*operands))
            np.testing.assert_allclose(got, reference, rtol=1e-14, atol=0)
            assert (np.signbit(got) == np.signbit(reference))[np.isfinite(reference)].all()


def test_derivatives_at_the_edges() -> None:
    with enable_x64():
        assert pullback.grad(special.ellipe)(1.0) == -math.inf
        assert pullback.grad(special.ellipk)(0.0) == pytest.approx(math.pi / 8, rel=1e-15)
        assert pullback.grad(lambda y: special.elliprf(0.0, y, 1.0))(1.0) == pytest.approx(-math.pi / 8, rel=1e-15)
        # by the first terms of expansions at m = 0 and m = 1 (DLMF 22.10)
        u = 0.5
        at_zero, at_one = (pullback.grad(amplitude, 1)(u, m) for m in (0.0, 1.0))
        assert at_zero == pytest.approx((u - math.sin(u) * math.cos(u)) / -4, rel=1e-14)
        assert at_one == pytest.approx((math.sinh(u) * math.cosh(u) - u) / math.cosh(u) / -4, rel=1e-14)


def test_the_amplitude_is_the_inverse_of_the_integral() -> None:
    u, m = np.linspace(-9, 9, 41), np.linspace(0, 0.99, 41)
    with enable_x64():
        np.testing.assert_allclose(special.ellipkinc(amplitude(u, m), m), u, rtol=1e-12, atol=1e-13)
        sn, cn, dn, _ = map(np.asarray, special.ellipj(u, m))
        slopes = [pullback.vmap(pullback.grad(lambda u, m, k=k: special.ellipj(u, m)[k]))(u, m) for k in range(4)]
        for slope, expected in zip(slopes, (cn * dn, -sn * dn, -m * sn * cn, dn), strict=True):
            np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_operands(name: str) -> None:
    count = len(EDGES["amplitude" if name == "ellipj" else name][0])
    half = [jnp.full((), 0.5)] * (count - 1)
    f = getattr(special, name)
    with pytest.raises(errors.DtypeError, match=name):
        f(*half, 1j)
    with pytest.raises(errors.OperandError, match=name):
        f(*half, "0.5")
    if count > 1:
        with pytest.raises(errors.ShapeError):
            f(jnp.full((2,), 0.5), *half[1:], jnp.full((3,), 0.5))
    first = f(*half, 1) if name != "ellipj" else f(*half, 1)[0]
    assert first.dtype == np.float32
    assert not first.weak_type
    narrow = f(*[jnp.full((2, 1), 0.5, jnp.bfloat16)] * (count - 1), jnp.full((3,), 0.5, jnp.bfloat16))
    narrow = narrow[0] if name == "ellipj" else narrow
    assert narrow.dtype == jnp.bfloat16
    assert narrow.shape == ((2, 3) if count > 1 else (3,))
