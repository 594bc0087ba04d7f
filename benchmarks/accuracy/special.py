# long: a table
"""The rarer functions of ``scipy.special``: where they are measured, and their exact values in mpmath's numbers.

Complex numbers are not measured, nor functions of whole arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpmath import mp

from benchmarks.accuracy.elementary import pair, psi, unary
from benchmarks.accuracy.table import Exact, Function, Operand

# Exact functions ---------------------------------------------------------------------------------------------------


def _gamma_slope(x: Any) -> Any:
    return mp.gamma(x) * mp.psi(0, x)


def _beta_slope(a: Any, b: Any) -> Any:
    return mp.beta(a, b) * (mp.psi(0, a) - mp.psi(0, a + b))


def _log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def _poch(z: Any, m: Any) -> Any:
    return mp.gamma(z + m) / mp.gamma(z)


def _binomial_by_k(n: Any, k: Any) -> Any:
    return mp.binomial(n, k) * (mp.psi(0, n - k + 1) - mp.psi(0, k + 1))


def _multigammaln(a: Any) -> Any:
    return 1.5 * mp.log(mp.pi) + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(3))


def _quantile(p: Any) -> Any:
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def _erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def _dawson(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _owens_t(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-(h**2) * (1 + t * t) / 2) / (1 + t * t), mp.linspace(0, a, 4)) / (2 * mp.pi)


def _owens_t_by_h(h: Any, a: Any) -> Any:
    return -mp.exp(-(h**2) / 2) * mp.erf(a * h / mp.sqrt(2)) / (2 * mp.sqrt(2 * mp.pi))


def _owens_t_by_a(h: Any, a: Any) -> Any:
    return mp.exp(-(h**2) * (1 + a * a) / 2) / (2 * mp.pi * (1 + a * a))


def _box_cox_by_lambda(logarithm: Any, y: Any) -> Any:
    if y == 0:
        return logarithm**2 / 2
    return (mp.exp(y * logarithm) * (y * logarithm - 1) + 1) / y**2


def _box_cox(logarithm: Any, y: Any) -> Any:
    return mp.expm1(y * logarithm) / y if y else logarithm


def _by(function: Exact, operand: int) -> Exact:
    """The derivative by one operand, by mpmath's differences."""

    def slope(*xs: Any) -> Any:
        return mp.diff(lambda x: function(*xs[:operand], x, *xs[operand + 1 :]), xs[operand])

    return slope


def _by_x(function: Exact) -> Exact:
    """The derivative of a Bessel function by its variable."""
    return lambda v, x: function(v, x, 1)


def _kv_by_x(v: Any, x: Any) -> Any:
    return -(mp.besselk(v - 1, x) + mp.besselk(v + 1, x)) / 2


def _amplitude(v: Any, x: Any) -> Any:
    """Of the oscillations of a Bessel function, where it oscillates."""
    return np.where(x > v, np.sqrt(2 / (np.pi * x)), 0.0)


def _size_of_gamma(x: Any) -> Any:
    return np.abs(scipy_gamma(x))


def scipy_gamma(x: Any) -> Any:
    """SciPy's function: it is the size of what cancels in the derivative."""
    import scipy.special

    return scipy.special.gamma(x)


# Where the points are ----------------------------------------------------------------------------------------------

POSITIVE = Operand(1e-3, 1e3, usual=(0.05, 30.0), marks=(0.5, 1.0, 2.0, 10.0))
ORDER = Operand(0.0, 30.0, usual=(0.0, 10.0), marks=(0.0, 0.5, 1.0, 2.0), tiny=1e-3)
RADIUS = Operand(1e-3, 60.0, usual=(0.0, 30.0), marks=(1.0, 5.0))


def _of(name: str) -> str:
    return f"scipy.special.{name}"


def _result(name: str, part: int, title: str, exact: Exact, slope: Exact, operand: Operand, **rest: Any) -> Function:
    """One of the results of a function that has two."""
    return unary(_of(name), exact, slope, operand, part=part, title=f"{_of(name)} ({title})", **rest)


SPECIAL = (
    unary(_of("gamma"), mp.gamma, _gamma_slope,
          Operand(-170.0, 171.6, usual=(-10.0, 20.0), marks=(0.0, 1.0, -1.0, -2.0, 0.5)), points=1000,
          scales=(0.0, _size_of_gamma)),
    unary(_of("loggamma"), mp.loggamma, psi(0), Operand(0.0, usual=(0.0, 20.0), marks=(0.0, 1.0, 2.0)),
          points=1000, scales=(0.0, 1.0)),
    pair(_of("beta"), mp.beta, _beta_slope, lambda a, b: _beta_slope(b, a), POSITIVE, POSITIVE, points=500),
    pair(_of("betaln"), _log_beta, lambda a, b: mp.psi(0, a) - mp.psi(0, a + b),
         lambda a, b: mp.psi(0, b) - mp.psi(0, a + b), POSITIVE, POSITIVE, points=500, scales=(1.0,)),
    pair(_of("poch"), _poch, lambda z, m: _poch(z, m) * (mp.psi(0, z + m) - mp.psi(0, z)),
         lambda z, m: _poch(z, m) * mp.psi(0, z + m), Operand(0.1, 30.0, usual=(0.1, 20.0), marks=(1.0,)),
         Operand(0.0, 20.0, usual=(0.0, 10.0), marks=(0.0, 1.0), tiny=1e-3), points=300,
         scales=(0.0, 0.0, lambda z, m: scipy_gamma(z + m) / scipy_gamma(z))),
    unary(_of("factorial"), lambda x: mp.gamma(x + 1), lambda x: _gamma_slope(x + 1),
          Operand(0.0, 170.0, usual=(0.0, 30.0), marks=(0.0, 1.0)), points=500,
          scales=(0.0, lambda x: scipy_gamma(x + 1))),
    pair(_of("comb"), mp.binomial, lambda n, k: mp.binomial(n, k) * (mp.psi(0, n + 1) - mp.psi(0, n - k + 1)),
         _binomial_by_k, Operand(20.0, 60.0, usual=(20.0, 60.0), marks=(30.0,)),
         Operand(0.0, 19.5, usual=(0.0, 19.5), marks=(1.0,), tiny=1e-3), points=300),
    unary(_of("multigammaln"), _multigammaln, lambda a: sum(mp.psi(0, a - mp.mpf(j) / 2) for j in range(3)),
          Operand(1.01, 1e4, usual=(1.01, 30.0), marks=(2.0,)), points=300, scales=(1.0, 1.0), arguments={"d": 3},
          peer=None),
    unary(_of("zeta"), mp.zeta, lambda s: mp.zeta(s, 1, 1), Operand(1.001, 60.0, usual=(1.0, 20.0), marks=(2.0,)),
          points=200, title=_of("zeta (Riemann's)")),
    unary(_of("ndtri"), _quantile, lambda p: mp.sqrt(2 * mp.pi) * mp.exp(_quantile(p) ** 2 / 2),
          Operand(0.0, 1.0, usual=(0.0, 1.0), marks=(0.5, 0.135), tiny=1e-40), points=400),
    unary(_of("erfcx"), _erfcx, lambda x: 2 * x * _erfcx(x) - 2 / mp.sqrt(mp.pi),
          Operand(-26.0, 1e6, usual=(-5.0, 10.0), single=(-5.0, 10.0), marks=(0.0, 1.0)), points=600),
    unary(_of("dawsn"), _dawson, lambda x: 1 - 2 * x * _dawson(x),
          Operand(-1e3, 1e3, usual=(-10.0, 10.0), marks=(0.0, 0.9241388730045917)), points=600,
          scales=(0.0, lambda x: 1 / np.maximum(1.0, x * x))),
    _result("fresnel", 0, "S", mp.fresnels, lambda x: mp.sin(mp.pi * x * x / 2),
            Operand(-50.0, 50.0, usual=(-6.0, 6.0), marks=(0.0, 1.0)), points=400, scales=(0.0, 1.0)),
    _result("fresnel", 1, "C", mp.fresnelc, lambda x: mp.cos(mp.pi * x * x / 2),
            Operand(-50.0, 50.0, usual=(-6.0, 6.0), marks=(0.0, 1.0)), points=400, scales=(0.0, 1.0)),
    pair(_of("owens_t"), _owens_t, _owens_t_by_h, _owens_t_by_a,
         Operand(-6.0, 6.0, usual=(-5.0, 5.0), marks=(0.0, 1.0), tiny=1e-6),
         Operand(-5.0, 5.0, usual=(-4.0, 4.0), marks=(0.0, 1.0), tiny=1e-6), points=60),
    unary(_of("exp1"), mp.e1, lambda x: -mp.exp(-x) / x,
          Operand(0.0, 740.0, usual=(0.0, 20.0), marks=(0.0, 1.0, 2.0)), points=500),
    unary(_of("expi"), mp.ei, lambda x: mp.exp(x) / x,
          Operand(-700.0, 700.0, usual=(-20.0, 40.0), marks=(0.0, 0.37250741078136663, 6.0)), points=500,
          scales=(lambda x: np.where(np.abs(x - 0.37) < 0.3, 0.5, 0.0),)),
    pair(_of("expn"), lambda n, x: mp.expint(n, x), None, lambda n, x: -mp.expint(n - 1, x),
         Operand(0, 10, whole=True, marks=()), Operand(1e-3, 600.0, usual=(0.0, 20.0), marks=(1.0,)), points=300),
    _result("sici", 0, "Si", mp.si, lambda x: mp.sin(x) / x if x else mp.mpf(1),
            Operand(-1e4, 1e4, usual=(-20.0, 20.0), marks=(0.0, 4.0)), points=400),
    _result("sici", 1, "Ci", mp.ci, lambda x: mp.cos(x) / x,
            Operand(0.0, 1e4, usual=(0.0, 20.0), marks=(0.0, 4.0)), points=400,
            scales=(lambda x: 1 / np.maximum(x, 1.0), lambda x: 1 / np.maximum(x, 1.0))),
    unary(_of("spence"), lambda x: mp.re(mp.polylog(2, 1 - x)), lambda x: mp.log(x) / (1 - x) if x != 1 else -mp.mpf(1),
          Operand(0.0, 1e4, usual=(0.0, 6.0), marks=(0.0, 0.5, 1.0, 1.5, 2.0)), points=300),
    Function(_of("hyp1f1"), mp.hyp1f1,
             (_by(mp.hyp1f1, 0), _by(mp.hyp1f1, 1), lambda a, b, x: a / b * mp.hyp1f1(a + 1, b + 1, x)),
             (Operand(0.1, 5.0, usual=(0.1, 5.0), marks=(1.0,)), Operand(5.0, 10.0, usual=(5.0, 10.0), marks=(6.0,)),
              Operand(-20.0, 20.0, usual=(-20.0, 20.0), marks=(0.0, 1.0), tiny=1e-3)), _of("hyp1f1"), points=80),
    Function(_of("hyp2f1"), mp.hyp2f1,
             (_by(mp.hyp2f1, 0), _by(mp.hyp2f1, 1), _by(mp.hyp2f1, 2),
              lambda a, b, c, x: a * b / c * mp.hyp2f1(a + 1, b + 1, c + 1, x)),
             (Operand(0.1, 3.0, usual=(0.1, 3.0), marks=(1.0,)), Operand(0.1, 3.0, usual=(0.1, 3.0), marks=(1.0,)),
              Operand(3.0, 8.0, usual=(3.0, 8.0), marks=(4.0,)),
              Operand(-5.0, 0.95, usual=(-5.0, 0.95), marks=(0.5, -1.0), tiny=1e-3)), _of("hyp2f1"), points=60),
    unary(_of("i1"), lambda x: mp.besseli(1, x), lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,
          Operand(-720, 720, usual=(-30.0, 30.0), single=(-88.0, 88.0)), points=400),
    pair(_of("jv"), mp.besselj, _by(mp.besselj, 0), _by_x(mp.besselj), ORDER, RADIUS, points=80,
         scales=(_amplitude, _amplitude, _amplitude)),
    pair(_of("yv"), mp.bessely, _by(mp.bessely, 0), _by_x(mp.bessely), ORDER, RADIUS, points=80,
         scales=(_amplitude, _amplitude, _amplitude)),
    pair(_of("iv"), mp.besseli, _by(mp.besseli, 0), _by_x(mp.besseli), ORDER, RADIUS, points=80),
    pair(_of("kv"), mp.besselk, _by(mp.besselk, 0), _kv_by_x, ORDER, RADIUS, points=80),
    pair(_of("rel_entr"), lambda p, q: p * mp.log(p / q), lambda p, q: mp.log(p / q) + 1, lambda p, q: -p / q,
         POSITIVE, POSITIVE, points=500, scales=(0.0, 1.0)),
    pair(_of("kl_div"), lambda p, q: p * mp.log(p / q) - p + q, lambda p, q: mp.log(p / q), lambda p, q: 1 - p / q,
         POSITIVE, POSITIVE, points=500),
    pair(_of("boxcox"), lambda x, y: _box_cox(mp.log(x), y), lambda x, y: x ** (y - 1),
         lambda x, y: _box_cox_by_lambda(mp.log(x), y), POSITIVE, Operand(-5.0, 5.0, marks=(0.0, 1.0)), points=500),
    pair(_of("boxcox1p"), lambda x, y: _box_cox(mp.log1p(x), y), lambda x, y: (1 + x) ** (y - 1),
         lambda x, y: _box_cox_by_lambda(mp.log1p(x), y), Operand(-0.99, 1e6, marks=(0.0, 1.0)),
         Operand(-5.0, 5.0, marks=(0.0, 1.0)), points=500),
)  # fmt: skip
