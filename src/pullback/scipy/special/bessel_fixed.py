"""Bessel functions of the orders 0, 1 and 2 for compiled programs, by Chebyshev series.

The coefficients are of series for values of 45 digits. Up to 8 the functions J and Y are entire functions of x**2, and
for Y a logarithm beside (DLMF 10.2.2, 10.8.1); beyond, they are a modulus and a phase (10.17.3), whose factors P and Q
are smooth in 1 / x**2. K has a logarithm up to 1 (10.31.2); beyond, K sqrt(x) exp(x) is smooth in 1 / x.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core.interrupts import imported
from pullback.primitives.special import chebyshev

from pullback.primitives.formulas import (  # isort: skip
    cos, exp, formula, lifted, log, maximum, minimum, sin, sqrt, square, where,
)  # fmt: skip

chebyshev_sum = lifted(chebyshev.chebyshev_sum)
_TWO_OVER_PI = 2 / math.pi
_SPLIT = 8.0
"""Where the power series of J and Y end."""


def _near(x: Any) -> tuple[Any, Any]:
    """Return x up to 8, and the variable of the series in x**2."""
    x = minimum(x, _SPLIT)
    return x, square(x) * (1 / 32) - 1


def _far(x: Any, p: tuple[float, ...], q: tuple[float, ...]) -> tuple[Any, Any, Any, Any]:
    """Return sqrt(1 / (pi x)) times P and times Q for x from 8 on, and the sine and the cosine of x.

    The root has a half less than in the expansion, as the phase has a multiple of pi / 4, whose cosine is sqrt(1 / 2).
    """
    x = where(x < math.inf, maximum(x, _SPLIT), _SPLIT)
    w = _SPLIT / x
    v = 2 * square(w) - 1
    size = sqrt(1 / (math.pi * x))
    return size * chebyshev_sum(p, v), size * w * chebyshev_sum(q, v), sin(x), cos(x)


def _first(near: Any, far: Any, size: Any) -> Any:
    value = where(size < _SPLIT, near, where(size == math.inf, 0, far))
    return where(size == size, value, math.nan)


def _second(near: Any, far: Any, x: Any) -> Any:
    value = where(x == 0, -math.inf, _first(near, far, x))
    return where(x >= 0, value, math.nan)


@formula
def j0(x: Any) -> Any:
    size = abs(x)
    p, q, sine, cosine = _far(size, _P0, _Q0)
    return _first(chebyshev_sum(_J0, _near(size)[1]), p * (cosine + sine) - q * (sine - cosine), size)


@formula
def j1(x: Any) -> Any:
    size = abs(x)
    close, t = _near(size)
    p, q, sine, cosine = _far(size, _P1, _Q1)
    value = _first(close * chebyshev_sum(_J1, t), p * (sine - cosine) + q * (sine + cosine), size)
    return where(x < 0, -value, value)


@formula
def j2(x: Any) -> Any:
    """Evaluate J of order 2, beyond 8 by the recurrence in the order (DLMF 10.6.1)."""
    size = abs(x)
    close, t = _near(size)
    beyond = maximum(size, _SPLIT)
    far = 2 / beyond * j1(beyond) - j0(beyond)
    return _first(square(close) * chebyshev_sum(_J2, t), far, size)


@formula
def y0(x: Any) -> Any:
    close, t = _near(x)
    p, q, sine, cosine = _far(x, _P0, _Q0)
    safe = where(close > 0, close, 1)
    near = _TWO_OVER_PI * log(safe) * chebyshev_sum(_J0, t) + chebyshev_sum(_Y0, t)
    return _second(near, p * (sine - cosine) + q * (cosine + sine), x)


@formula
def y1(x: Any) -> Any:
    close, t = _near(x)
    p, q, sine, cosine = _far(x, _P1, _Q1)
    safe = where(close > 0, close, 1)
    product = safe * chebyshev_sum(_J1, t)
    near = _TWO_OVER_PI * (log(safe) * product - 1 / safe) + safe * chebyshev_sum(_Y1, t)
    return _second(near, q * (sine - cosine) - p * (sine + cosine), x)


@formula
def y2(x: Any) -> Any:
    """Evaluate Y of order 2 by the recurrence in the order, which does not cancel."""
    safe = where(x > 0, x, 1)
    value = where(x == 0, -math.inf, 2 / safe * y1(safe) - y0(safe))
    return where(x >= 0, value, math.nan)


def _scaled(x: Any, order: int) -> Any:
    """Evaluate K exp(x) of order 0 or 1."""
    safe = where(x > 0, minimum(x, 1), 1)
    t = 2 * square(safe) - 1
    if order:
        near = 1 / safe + safe * (log(safe) * chebyshev_sum(_I1, t) + chebyshev_sum(_K1, t))
    else:
        near = chebyshev_sum(_K0, t) - log(safe) * chebyshev_sum(_I0, t)
    beyond = maximum(x, 1)
    far = chebyshev_sum(_FAR_K1 if order else _FAR_K0, 2 / beyond - 1) / sqrt(beyond)
    value = where(x == 0, math.inf, where(x < 1, near * exp(safe), far))
    return where(x >= 0, value, math.nan)


def _with_decay(x: Any, order: int) -> Any:
    """Evaluate K: half of the exponent at a time, so that neither factor is subnormal before the product is."""
    half = exp(maximum(x, 0) * -0.5)
    return where(x == 0, math.inf, _scaled(x, order) * half * half)


@formula
def k0(x: Any) -> Any:
    return _with_decay(x, 0)


@formula
def k1(x: Any) -> Any:
    return _with_decay(x, 1)


@formula
def k2(x: Any) -> Any:
    """Evaluate K of order 2 by the recurrence in the order (DLMF 10.29.1)."""
    return where(x == 0, math.inf, 2 / where(x == 0, 1, x) * _with_decay(x, 1) + _with_decay(x, 0))


@formula
def gap(x: Any) -> Any:
    """Evaluate k1e less k0e, minus the derivative of k0e, beyond 1 without cancellation."""
    beyond = maximum(x, 1)
    far = chebyshev_sum(_GAP, 2 / beyond - 1) / (beyond * sqrt(beyond))
    safe = where(x > 0, minimum(x, 1), 1)
    value = where(x == 0, math.inf, where(x < 1, _scaled(safe, 1) - _scaled(safe, 0), far))
    return where(x >= 0, value, math.nan)


def host_gap(x: Any) -> Any:
    """Evaluate :func:`gap` of a NumPy array."""
    scipy, beyond = imported("scipy.special"), np.maximum(x, 1)
    far = np.polynomial.chebyshev.chebval(2 / beyond - 1, _GAP) / (beyond * np.sqrt(beyond))
    return np.where(x < 1, np.where(x == 0, math.inf, scipy.k1e(x) - scipy.k0e(x)), far)


@formula
def k0e(x: Any) -> Any:
    return _scaled(x, 0)


@formula
def k1e(x: Any) -> Any:
    return _scaled(x, 1)


_J0 = (
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977, 0.15806710233209725,
    -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504, 3.246032882100508e-05,
    -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09, 7.848696314479465e-11,
    -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16, 1.2218515873961411e-17,
)  # fmt: skip
_J1 = (
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791, 0.022213639654966037,
    -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05, 1.9858774049915165e-06,
    -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10, 3.160154580348003e-12,
    -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17, 3.6912682997929334e-19,
)  # fmt: skip
_J2 = (
    0.0259675044055018, -0.051662401237476965, 0.033313115677547085, -0.011412585648174543, 0.0023079312649903717,
    -0.00030576582069152526, 2.8593389509574438e-05, -1.9904910649136225e-06, 1.0728442457342493e-07,
    -4.613659922105544e-09, 1.620960599825292e-10, -4.7427232341091315e-12, 1.173993618450466e-13,
    -2.491363587126523e-15, 4.5839200705273085e-17, -7.383865115828454e-19,
)  # fmt: skip
_Y0 = (
    -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663, -0.17730201278114358,
    0.04719668959576339, -0.007287962479552079, 0.0007531135932577742, -5.632079141056987e-05,
    3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09, -1.5837552541812015e-10,
    4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15, -2.6977881152566837e-17,
    3.9032584173475982e-19,
)  # fmt: skip
_Y1 = (
    0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346, -0.028328123944594365,
    0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05, -3.53808001868935e-06,
    1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10, -6.4651518414115946e-12,
    1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17, -8.224911372021585e-19,
)  # fmt: skip
_P0 = (
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17, -2.880866169482871e-18,
)  # fmt: skip
_Q0 = (
    -0.015555854605337009, 6.838519942611649e-05, -7.414498411060647e-07, 1.7972457247968992e-08,
    -7.27191593686632e-10, 4.2201219046687385e-11, -3.206747420996635e-12, 3.006145125351706e-13,
    -3.336328185322427e-14, 4.255225040245461e-15, -6.09993013164005e-16, 9.662128970303257e-17,
    -1.6686065214378146e-17, 3.1082440486738143e-18, -6.191115787358145e-19, 1.3091448717220122e-19,
    -2.9211627152642775e-20,
)  # fmt: skip
_P1 = (
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
    -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
    -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
    -1.7312313216116335e-17, 3.0492991197665872e-18,
)  # fmt: skip
_Q1 = (
    0.04677778706953532, -9.62772354915708e-05, 9.138615257955454e-07, -2.0959781384083424e-08,
    8.229193327650554e-10, -4.686363688176945e-11, 3.5152187949686082e-12, -3.2643156743279e-13,
    3.5967765829165294e-14, -4.5612523950772974e-15, 6.508282957783384e-16, -1.0269147531823243e-16,
    1.767635548776479e-17, -3.2834519872981614e-18, 6.524081149589261e-19, -1.3765771484849487e-19,
)  # fmt: skip
_I0 = (
    1.1309968798433274, 0.1330189455061058, 0.002036004710704175, 1.3993234656991334e-05, 5.432173852590145e-08,
    1.3524109288948626e-10, 2.340971052794171e-13, 2.979284336165016e-16,
)  # fmt: skip
_I1 = (
    0.5322437035451373, 0.03257781367813631, 0.0003358430414281916, 1.7383068695084883e-06, 5.409660399587847e-09,
    1.1236679641687403e-11, 1.6684008395801842e-14, 1.8588275381236384e-17,
)  # fmt: skip
_K0 = (
    0.26515980836570446, 0.15251907576831567, 0.003318048844835395, 2.738519788401574e-05, 1.1973841928000323e-07,
    3.249474443679295e-10, 6.012730386689703e-13, 8.076060733536439e-16, 8.234977983698423e-19,
)  # fmt: skip
_K1 = (
    -0.35242753359380785, -0.045059890508404046, -0.0006017177632861077, -3.6154504483539617e-06,
    -1.245884783549044e-08, -2.7927150084633376e-11, -4.4036594695160716e-14, -5.154391531560412e-17,
)  # fmt: skip
_FAR_K0 = (
    1.1944330762167386, -0.053855323307629495, 0.004362000068251702, -0.0005521270349863234, 8.959565555755952e-05,
    -1.7138726856421186e-05, 3.695146089045472e-06, -8.737284518980525e-07, 2.225046272255236e-07,
    -6.025216756376064e-08, 1.7186668629418083e-08, -5.1272057810909205e-09, 1.5907351467912106e-09,
    -5.10958325791419e-10, 1.6929517419961088e-10, -5.7683063818637606e-11, 2.0159542597761383e-11,
    -7.210940065346495e-12, 2.6349075982806445e-12, -9.819576891759296e-13, 3.72695818784577e-13,
    -1.4388149744180521e-13, 5.6436532735816866e-14, -2.2469288334596896e-14, 9.072046991627365e-15,
    -3.711589997838162e-15, 1.537582290719742e-15, -6.445464362724762e-16, 2.7324144482527955e-16,
    -1.1707837700385628e-16, 5.067869397943657e-17, -2.215087912714289e-17, 9.772081357930309e-18,
    -4.3495197635403266e-18, 1.952511837703155e-18,
)  # fmt: skip
_FAR_K1 = (
    1.4532756675938414, 0.19051350202061165, -0.008406706460495654, 0.0008815363164514389, -0.000129995769583983,
    2.3441638979785087e-05, -4.853489413610226e-06, 1.1139969511197356e-06, -2.772707643805077e-07,
    7.37247184977708e-08, -2.0717892129028323e-08, 6.103966549420336e-09, -1.873778917957349e-09,
    5.963886884453419e-10, -1.96028004074301e-10, 6.632273899864202e-11, -2.3034250700407756e-11,
    8.193082518369976e-12, -2.9786645069974164e-12, 1.1049772078983365e-12, -4.1763277431648047e-13,
    1.6061141914625803e-13, -6.277632672531289e-14, 2.4911830875182032e-14, -1.002779686252293e-14,
    4.091059996919741e-15, -1.690331071434488e-15, 7.068360792264328e-16, -2.9895680121763374e-16,
    1.2781913900252084e-16, -5.521491188037584e-17, 2.4087033253210474e-17, -1.0606842599776098e-17,
    4.712904181351422e-18, -2.112162909518144e-18,
)  # fmt: skip
_GAP = (
    0.5507189450178337, -0.0660675245272565, 0.008172460331810178, -0.0013522222513532671, 0.00026663757664740654,
    -5.941860250771596e-05, 1.4521091712850466e-05, -3.81812292860776e-06, 1.0660557564362066e-06,
    -3.130901506887784e-07, 9.603208918747599e-08, -3.059227071995921e-08, 1.0077141574487456e-08,
    -3.4200686880099407e-09, 1.1923838584794685e-09, -4.259917420446438e-10, 1.5562283687893762e-10,
    -5.802910490590804e-11, 2.2051463267744343e-11, -8.528110050692885e-12, 3.3524964219384923e-12,
    -1.3381971655883296e-12, 5.4186957559042e-13, -2.2239342343702942e-13, 9.244174812275457e-14,
    -3.888944822508089e-14, 1.6547748306438838e-14, -7.117701836413704e-15, 3.0931854283842043e-15,
    -1.357462004526359e-15, 6.013286446940223e-16, -2.68769708300935e-16, 1.2116242142926126e-16,
    -5.507083038841314e-17, 2.522893512713202e-17, -1.1645738854736092e-17, 5.415043834585125e-18,
    -2.535640201797373e-18, 1.1954052719464626e-18, -5.67260270499915e-19,
)  # fmt: skip
