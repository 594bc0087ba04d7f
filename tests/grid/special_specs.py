"""The rows for ``pullback.scipy.special`` and its primitives: references are SciPy's functions, or formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as special
import scipy.stats

from pullback.core.trace import Primitive
from pullback.primitives import elementwise
from pullback.primitives.special import bessel, incomplete, log_incomplete, precision, transformed
from pullback.primitives.special import error_functions as errors
from pullback.primitives.special import exponential_integrals as integrals
from pullback.primitives.special import gamma_functions as gammas
from pullback.primitives.special import others as primitives
from pullback.scipy import special as ours
from pullback.scipy.special import elliptic_formulas as elliptic
from pullback.scipy.special import inverses, relations
from pullback.scipy.special import polynomial_formulas as polynomials
from tests.grid.specs import K, R, Sample, Spec, row
from tests.helpers import EXHAUSTIVE


def wide(reference: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that computes in double precision, and rounds once."""

    def function(*xs: Any) -> Any:
        dtype = xs[-1].dtype
        doubles = [np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64) for x in xs]
        narrow = {"f": dtype, "c": np.dtype(f"c{2 * dtype.itemsize if dtype.kind == 'f' else dtype.itemsize}")}
        out = reference(*doubles)
        if isinstance(out, tuple):
            return tuple(np.asarray(x).astype(dtype) for x in out)
        return np.asarray(out).astype(narrow[np.asarray(out).dtype.kind])

    return function


def by_differences(function: Callable[..., Any], step: float = 1e-3) -> Callable[..., Any]:
    """The derivative of a smooth function by its first operand, by differences of the sixth order."""

    def derivative(x: Any, *rest: Any) -> Any:
        weights = ((1, 0.75), (2, -0.15), (3, 1 / 60))
        return sum(w * (function(x + k * step, *rest) - function(x - k * step, *rest)) for k, w in weights) / step

    return derivative


def of(p: Primitive, reference: Callable[..., Any], *bounds: tuple[float, float], **options: Any) -> Spec:
    """A row for a primitive on elements: two rows of three by operand, or three where there are several operands."""
    samples = [R(2, 3, lo=lo, hi=hi) if i == 0 else R(3, lo=lo, hi=hi) for i, (lo, hi) in enumerate(bounds)]
    return row(p, wide(reference), *samples, **{"dtypes": "fd", "derivative": "d", "tolerance": 4, **options})


def function(name: str, *samples: Sample, reference: Any = None, label: str = "", **options: Any) -> Spec:
    """A row for a function whose primitive has rows of its own."""
    options = {"dtypes": "f", "derivative": "", "tolerance": 4, **options}
    call = options.pop("call", getattr(ours, name))
    title = f"scipy.special.{name}({'x'.join(str(s.shape) for s in samples)}{';' + label if label else ''})"
    expected = wide(getattr(special, name) if reference is None else reference)
    return Spec(title, f"scipy.special.{name}", call, expected, samples, **options)


def of_trials(name: str) -> Callable[..., Any]:
    """SciPy's function of numbers of trials that are integers; it warns of others."""
    return lambda k, n, p: getattr(special, name)(k, n.astype(int), p)


def entropy_slope(p: Any, q: Any) -> Any:
    return np.log(p / q)


def log_ratio(y: Any) -> Any:
    return np.log1p(y) / y


def sinc(x: Any) -> Any:
    return np.sin(x) / x


def power_slope(x: Any, power: Any) -> Any:
    return by_differences(lambda power, x: special.boxcox(x, power))(power, x)


DIFFERENCES = {"dtypes": "f", "tolerance": 64}
COMPLEX = {"dtypes": "FD", "derivative": "D", "tolerance": 16}

SPECIAL_PRIMITIVES: list[Spec] = [
    of(errors.erfcx_p, special.erfcx, (-2, 3)),
    of(errors.erfcx_derivative_p, by_differences(special.erfcx), (-1, 3), params={"order": 1}, **DIFFERENCES),
    of(errors.dawsn_p, special.dawsn, (-3, 9)),
    of(errors.dawsn_derivative_p, by_differences(special.dawsn), (0.1, 8), params={"order": 1}, **DIFFERENCES),
    of(errors.wofz_p, special.wofz, (-2, 2), **COMPLEX),
    of(errors.wofz_derivative_p, by_differences(special.wofz), (-2, 2), params={"order": 1},
       **{**COMPLEX, "dtypes": "F", "tolerance": 64}),
    of(errors.voigt_p, lambda z, s: special.wofz(z / s / 2**0.5) / s / (2 * np.pi) ** 0.5, (0.2, 2), (0.2, 2),
       params={"order": 0}, **{**COMPLEX, "tolerance": 64}),
    of(errors.voigt_profile_p, special.voigt_profile, (-3, 3), (0.2, 2), (0.2, 2), tolerance=16),
    of(inverses.lambertw_p, lambda z, k: special.lambertw(z), (0.3, 2), (0, 0), **COMPLEX),
    of(errors.ndtri_p, special.ndtri, (0.01, 0.99)),
    of(errors.fresnel_s_p, lambda x: special.fresnel(x)[0], (-3, 3)),
    of(errors.fresnel_c_p, lambda x: special.fresnel(x)[1], (-3, 3)),
    of(errors.fresnel_turn_p, lambda x: np.sin(np.pi / 2 * x * x), (-2, 2), params={"quarters": 0}),
    of(errors.owens_t_p, special.owens_t, (-2, 2), (-2, 2), tolerance=16),
    *(
        of(getattr(elliptic, f"{name}_p"), getattr(special, name), *bounds, tolerance=8, **options)
        for name, bounds, options in (
            ("elliprf", [(0.1, 3)] * 3, {}), ("elliprg", [(0.1, 3)] * 3, {}),
            ("elliprc", [(0.1, 3), (0.2, 3)], {"params": {"orders": (0, 0)}}),
            ("elliprd", [(0.1, 3)] * 3, {"params": {"orders": (0, 0, 0)}}),
            ("elliprj", [(0.1, 3)] * 4, {"params": {"orders": (0, 0, 0, 0)}, "second": EXHAUSTIVE}),
            ("ellipk", [(-3, 0.9)], {}), ("ellipkm1", [(0.1, 3)], {}), ("ellipe", [(-3, 0.9)], {}),
            ("ellipkinc", [(-4, 4), (-2, 0.9)], {}), ("ellipeinc", [(-4, 4), (-2, 0.9)], {}),
        )
    ),
    of(elliptic.jacobi_am_p, lambda u, m: special.ellipj(u, m)[3], (-4, 4), (0.1, 0.9), tolerance=16),
    of(relations.scipy_special_p, lambda x: special.airy(x)[0], (-14, 14), params={"function": "airy.ai"},
       tolerance=8),
    of(relations.scipy_special_p, lambda x: special.airy(x)[0], (-2, 2), params={"function": "airy.ai"}, **COMPLEX,
       label="complex"),
    row(relations.scipy_special_p, wide(special.eval_legendre), K(np.array([0, 3, 7]), np.float32, fixed=True),
        R(2, 3, lo=-1, hi=1), params={"function": "eval_legendre"}, dtypes="f", derivative="", tolerance=4),
    *(
        row(p, wide(lambda n, *xs, name=p.name: getattr(special, name)(n.astype(int), *xs)),
            K(np.array([0, 2, 5]), np.float32, fixed=True), *[R(3, lo=0.5, hi=2)] * count, R(2, 3, lo=-0.9, hi=0.9),
            params={"orders": (0,) * (count + 2)}, dtypes="f", derivative="", tolerance=16)
        for p, count in ((polynomials.jacobi_p, 2), (polynomials.gegenbauer_p, 1), (polynomials.genlaguerre_p, 1))
    ),
    of(integrals.exp1_p, special.exp1, (0.1, 3)),
    of(integrals.expi_p, special.expi, (0.5, 4)),
    row(integrals.expn_p, wide(special.expn), K(np.array([1, 2, 5]), np.float32), R(2, 3, lo=0.1, hi=3),
        dtypes="f", derivative="", tolerance=4),
    of(integrals.sine_integral_p, lambda x: special.sici(x)[0], (-5, 5)),
    of(integrals.cosine_integral_p, lambda x: special.sici(x)[1], (0.8, 3), tolerance=16),
    of(integrals.sinc_derivative_p, sinc, (0.5, 6), params={"order": 0}),
    of(integrals.sinc_derivative_p, by_differences(sinc), (0.5, 6), params={"order": 1}, **DIFFERENCES),
    of(integrals.spence_p, special.spence, (0.1, 4), tolerance=16),
    of(integrals.log_ratio_p, log_ratio, (-0.6, 3), params={"order": 0}),
    of(integrals.log_ratio_p, by_differences(log_ratio), (0.3, 3), params={"order": 1}, **DIFFERENCES),
    of(gammas.gamma_p, special.gamma, (0.3, 4), tolerance=8),
    of(gammas.gamma_p, special.gamma, (-1.8, -1.2), tolerance=8, label="negative"),
    of(gammas.gamma_sign_p, special.gammasgn, (-2.9, 2)),
    of(gammas.beta_p, special.beta, (0.3, 4), (0.4, 5), tolerance=16),
    of(gammas.digamma_gap_p, lambda a, b: special.digamma(a + b) - special.digamma(a), (0.3, 12), (0.4, 5),
       tolerance=16),
    of(gammas.betaln_p, special.betaln, (0.3, 4), (0.4, 5), tolerance=16),
    of(gammas.binomial_p, special.binom, (4, 9), (0.4, 3.5), tolerance=32),
    of(gammas.poch_p, special.poch, (0.5, 4), (0.4, 2), tolerance=32),
    of(transformed.rel_entr_p, special.rel_entr, (0.1, 2), (0.3, 3), tolerance=8),
    of(transformed.kl_div_p, special.kl_div, (0.1, 0.5), (1, 3), tolerance=8),
    of(transformed.log_of_ratio_p, entropy_slope, (0.1, 2), (0.3, 3), params={"extra": 0.0}, tolerance=8),
    of(transformed.boxcox_p, special.boxcox, (0.3, 3), (-1, 2), tolerance=8),
    of(transformed.boxcox1p_p, special.boxcox1p, (-0.5, 3), (-1, 2), tolerance=8),
    of(transformed.boxcox_derivative_p, power_slope, (0.3, 3), (-1, 2), params={"order": 1}, **DIFFERENCES),
    of(transformed.boxcox1p_derivative_p, lambda x, power: power_slope(1 + x, power), (-0.5, 3), (-1, 2),
       params={"order": 1}, **DIFFERENCES),
    of(elementwise.gaussian_p, lambda x: np.exp(-x * x / 2), (-3, 3), params={"factor": 0.5}),
    of(elementwise.ndtr_p, special.ndtr, (-4, 3)),
    of(elementwise.trigamma_p, lambda x: special.polygamma(1, x), (0.2, 4), tolerance=4),
    of(elementwise.trigamma_p, lambda x: special.polygamma(1, x), (-1.8, -1.2), tolerance=32, label="negative"),
    of(elementwise.logistic_slope_p, lambda x: special.expit(x) * special.expit(-x), (-5, 5), tolerance=8),
    of(log_incomplete.normal_hazard_p, lambda x: np.exp(-x * x / 2) / special.ndtr(x) / np.sqrt(2 * np.pi), (-3, 3),
       tolerance=8),
    of(primitives.logit_p, special.logit, (0.1, 0.9)),
    of(primitives.entr_p, special.entr, (0.5, 3)),
    of(precision.log_of_positive_p, np.log, (0.3, 9)),
    of(bessel.bessel_fall_p, lambda x: special.i0e(x) - special.i1e(np.abs(x)), (0.3, 9), tolerance=16),
    of(incomplete.gamma_density_p, lambda a, x: scipy.stats.gamma.pdf(x, a), (0.5, 5), (0.3, 7), tolerance=16),
    of(incomplete.beta_density_p, lambda a, b, x: scipy.stats.beta.pdf(x, a, b), (0.5, 5), (0.5, 4), (0.1, 0.9),
       tolerance=16),
]  # fmt: skip

ONE = R(2, 3, lo=0.2, hi=0.9)
TWO = (R(2, 3, lo=0.2, hi=0.9), R(3, lo=0.5, hi=2))
DEGREES = K(np.array([0, 1, 2, 4]), np.int32, fixed=True)
ORDERS = K(np.array([0, -1, 2, 3]), np.int32, fixed=True)
WHOLE = {"derivative": "d"}
WHOLE_DEGREES = K(np.array([0, 2, 5]), np.int32, fixed=True)


def of_degrees(name: str) -> Callable[..., Any]:
    """SciPy's polynomial, of integer degrees."""
    return lambda n, *xs: getattr(special, name)(n.astype(int), *xs)


def zeros_of(name: str) -> dict[str, Any]:
    """The function and reference of a row for three zeros, which are added to an operand."""
    return {
        "call": lambda x: getattr(ours, name)(3)[0].astype(x.dtype) + x,
        "reference": lambda x: getattr(special, name)(3)[0] + x,
    }


def rule_of(name: str, *parameters: float) -> dict[str, Any]:
    """The function and reference of a row for a quadrature of four nodes, which are added to an operand."""
    return {
        "call": lambda x: getattr(ours, name)(4, *parameters)[0].astype(x.dtype) + x,
        "reference": lambda x: getattr(special, name)(4, *parameters)[0] + x,
    }


SPECIAL: list[Spec] = [
    *(function(name, ONE) for name in (
        "erfcx", "dawsn", "ndtri", "exp1", "expi", "spence", "gamma", "loggamma", "gammasgn", "i0", "i1", "i0e", "i1e",
        "fresnel", "sici", "factorial",
    )),
    *(function(name, R(2, 3, lo=0.1, hi=3)) for name in ("airy", "airye", "itairy")),
    *(function(f"{letter}i_zeros", K(np.zeros(3)), **zeros_of(f"{letter}i_zeros")) for letter in "ab"),
    *(
        function(f"eval_{name}", WHOLE_DEGREES, *[R(3, lo=1.5, hi=2)] * count, R(2, 3, lo=0.1, hi=0.9), tolerance=32,
                 reference=of_degrees(f"eval_{name}"))
        for name, count in (
            ("legendre", 0), ("chebyt", 0), ("chebyu", 0), ("chebyc", 0), ("chebys", 0), ("hermite", 0),
            ("hermitenorm", 0), ("laguerre", 0), ("genlaguerre", 1), ("gegenbauer", 1), ("jacobi", 2),
            ("sh_legendre", 0), ("sh_chebyt", 0), ("sh_chebyu", 0), ("sh_jacobi", 2),
        )
    ),
    *(
        function(f"roots_{name}", K(np.zeros(4)), **rule_of(f"roots_{name}", *(0.7, 0.4)[:count]))
        for name, count in (
            ("legendre", 0), ("chebyt", 0), ("chebyu", 0), ("chebyc", 0), ("chebys", 0), ("hermite", 0),
            ("hermitenorm", 0), ("laguerre", 0), ("genlaguerre", 1), ("gegenbauer", 1), ("jacobi", 2),
            ("sh_legendre", 0), ("sh_chebyt", 0), ("sh_chebyu", 0), ("sh_jacobi", 2),
        )
    ),
    *(
        function(name, R(2, 3, lo=0.3, hi=3), tolerance=16)
        for name in (
            "psi", "rgamma", "cosm1", "erfi", "exp10", "exp2", "expm1", "cbrt", "sinc", "log_expit", "softplus",
            "sindg", "cosdg", "tandg", "cotdg", "log1p", "ber", "bei", "berp", "beip", "ker", "kei", "kerp",
            "keip", "j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e", "shichi", "itj0y0", "iti0k0", "it2j0y0",
            "it2i0k0", "itstruve0", "it2struve0", "itmodstruve0", "wrightomega",
        )
    ),
    function("ndtri_exp", R(2, 3, lo=-4, hi=-0.2), tolerance=16),
    *(
        function(name, R(2, 3, lo=0.3, hi=3), R(3, lo=0.2, hi=0.9), tolerance=32)
        for name in (
            "binom", "agm", "powm1", "huber", "pseudo_huber", "inv_boxcox", "inv_boxcox1p", "chdtr", "chdtrc", "chdtri",
            "pdtr", "pdtrc", "struve", "modstruve", "jve", "yve", "pbdv", "pbvv",
            "pbwa", "hyp0f1", "hankel1", "hankel1e", "hankel2", "hankel2e", "jvp", "yvp", "ivp", "kvp",
        )
    ),
    *(
        function(name, WHOLE_DEGREES, R(2, 3, lo=0.3, hi=3), reference=of_degrees(name), tolerance=32)
        for name in ("kn", "yn", "spherical_jn", "spherical_yn", "spherical_in", "spherical_kn")
    ),
    *(
        function(name, R(2, 3, lo=0.3, hi=3), R(3, lo=1, hi=3), R(3, lo=0.2, hi=0.9), tolerance=32)
        for name in (
            "betaincc", "gdtr", "gdtrc", "fdtr", "fdtrc", "fdtri", "wright_bessel", "log_wright_bessel",
        )
    ),
    *(
        function(name, K(np.array([0, 1, 2]), np.float32, fixed=True), K(np.array([5, 4, 3]), np.float32, fixed=True),
                 R(2, 3, lo=0.2, hi=0.9), reference=of_trials(name), tolerance=32)
        for name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc")
    ),
    *(
        function(f"mathieu_{name}", K(np.array([1, 2, 3]), np.float32, fixed=True), *[R(2, 3, lo=0.3, hi=2)] * count,
                 tolerance=32)
        for name, count in (
            ("a", 1), ("b", 1), ("cem", 2), ("sem", 2), ("modcem1", 2), ("modsem1", 2), ("modcem2", 2), ("modsem2", 2),
        )
    ),
    *(
        function(f"{name}_zeros", K(np.zeros(3)), call=lambda x, name=name: getattr(ours, f"{name}_zeros")(1, 3) + x,
                 reference=lambda x, name=name: getattr(special, f"{name}_zeros")(1, 3) + x)
        for name in ("jn", "jnp", "yn", "ynp")
    ),
    function("wofz", ONE),
    function("loggamma", R(2, 3, lo=-2, hi=2), dtypes="FD", derivative="D", tolerance=64, label="complex"),
    function("gamma", R(2, 3, lo=-2, hi=2), dtypes="F", tolerance=64, label="complex"),
    function("erfcx", R(2, 3, lo=-1, hi=2), dtypes="F", tolerance=64, label="complex"),
    *(function(name, *TWO) for name in (
        "owens_t", "beta", "betaln", "gammainc", "gammaincc", "poch", "rel_entr", "kl_div", "boxcox", "boxcox1p",
    )),
    *(
        function(name, *(R(2, 3, lo=0.1, hi=3) if i == 0 else R(3, lo=0.1, hi=3) for i in range(count)), tolerance=8)
        for name, count in (("elliprc", 2), ("elliprd", 3), ("elliprf", 3), ("elliprg", 3), ("elliprj", 4))
    ),
    *(
        function(name, R(2, 3, lo=0.5, hi=4), R(3, lo=0.1, hi=0.9), tolerance=8)
        for name in ("gammaincinv", "gammainccinv")
    ),
    *(
        function(name, R(2, 3, lo=0.5, hi=4), R(3, lo=0.5, hi=4), R(3, lo=0.1, hi=0.9), tolerance=8)
        for name in ("betaincinv", "betainccinv")
    ),
    function("voigt_profile", R(2, 3, lo=-3, hi=3), R(3, lo=0.2, hi=2), R(3, lo=0.2, hi=2), tolerance=16),
    function("lambertw", R(2, 3, lo=0.2, hi=2), tolerance=8),
    *(function(name, R(2, 3, lo=0.1, hi=0.9), tolerance=8) for name in ("ellipk", "ellipkm1", "ellipe")),
    *(
        function(name, R(2, 3, lo=-4, hi=4), R(3, lo=0.1, hi=0.9), tolerance=8)
        for name in ("ellipkinc", "ellipeinc", "ellipj")
    ),
    function("zeta", R(2, 3, lo=1.5, hi=4), R(3, lo=0.5, hi=2), tolerance=16),
    function("zeta", R(2, 3, lo=-3.5, hi=0.8), label="Riemann", dtypes="fd", tolerance=64, **WHOLE),
    function("betainc", R(2, 3, lo=0.5, hi=2), R(3, lo=0.5, hi=2), R(3, lo=0.2, hi=0.8), tolerance=16),
    function("expn", K(np.array([1, 2, 5]), np.int32, fixed=True), R(2, 3, lo=0.1, hi=3), **WHOLE),
    function("comb", R(2, 3, lo=4, hi=6), R(3, lo=1, hi=3), tolerance=32, reference=special.binom),
    function(
        "multigammaln", R(2, 3, lo=2, hi=5), dtypes="fd", tolerance=32, **WHOLE,
        call=lambda x: ours.multigammaln(x, 3), reference=lambda x: special.multigammaln(x, 3),
    ),
    function(
        "bernoulli", K(np.zeros(13)), call=lambda x: ours.bernoulli(12) + x,
        reference=lambda x: special.bernoulli(12) + x,
    ),
    function("hyp1f1", R(2, lo=0.5, hi=2), R(2, lo=1, hi=3), R(2, lo=-3, hi=3), dtypes="d", tolerance=64,
             second=EXHAUSTIVE, **WHOLE),  # its second derivatives take seconds
    function(
        "hyp2f1", R(3, lo=0.5, hi=2), R(3, lo=1, hi=3), R(3, lo=1, hi=3), R(3, lo=-0.9, hi=0.9), dtypes="fd",
        tolerance=64, second=False, **WHOLE,
    ),
    *(
        function(name, R(2, lo=0.2, hi=4), R(2, lo=0.5, hi=6), second=name == "kv", **WHOLE)
        for name in ("jv", "yv", "iv", "kv")
    ),
    *(
        function(name, R(2, 3, lo=0.3, hi=3), R(3, lo=0.2, hi=0.9), tolerance=32, second=False, **WHOLE)
        for name in ("ive", "kve", "stdtr", "stdtrit")
    ),
    function("jv", R(6, lo=3, hi=20), K(np.array([0.3, 2, 5, 9, 14, 25]), np.float64, fixed=True), dtypes="d",
             label="regions", tolerance=64),
    function("jn", K(np.array([0, 1, 3]), np.float32), R(2, 3, lo=-3, hi=6)),
    function(
        "bessel_jn", R(3, lo=-3, hi=6), call=lambda z: ours.bessel_jn(z, v=2),
        reference=lambda z: special.jv(np.arange(3.0)[:, None], z),
    ),
    function(
        "sph_harm_y", DEGREES, ORDERS, R(4, lo=0.3, hi=2), R(4, lo=0, hi=3), dtypes="fd", tolerance=16, **WHOLE,
        call=lambda n, m, theta, phi: ours.sph_harm_y(n, m, theta, phi, n_max=4),
        reference=lambda n, m, theta, phi: special.sph_harm_y(n.astype(int), m.astype(int), theta, phi),
    ),
    function(
        "lpmn_values", R(3, lo=-0.9, hi=0.9), dtypes="fd", tolerance=16, **WHOLE,
        call=lambda z: ours.lpmn_values(2, 2, z, False),
        reference=lambda z: np.array([[special.assoc_legendre_p(n, m, z)[0] for n in range(3)] for m in range(3)]),
    ),
    function(
        "lpmn", R(3, lo=-0.9, hi=0.9), dtypes="fd", tolerance=16, call=lambda z: ours.lpmn(2, 2, z),
        reference=lambda z: tuple(
            np.array([[special.assoc_legendre_p(n, m, z, diff_n=1)[k] for n in range(3)] for m in range(3)])
            for k in range(2)
        ),
    ),
]  # fmt: skip
