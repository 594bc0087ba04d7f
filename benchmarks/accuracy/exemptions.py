"""Functions that may exceed their limits, at most ten, each with the reason."""

_ROUNDED_DIFFERENCE = (
    "the derivative is a function of x - y, whose rounding makes an error of up to abs(x - y) / 2 ulps where the "
    "derivative is as small as exp(-abs(x - y)); JAX's is the same but for the points"
)

_BESSEL = (
    "of real order, which JAX has not: powers and gamma functions of the order, and SciPy's own values, lose some "
    "ulps for each unit of the order, in float64"
)

EXEMPT: dict[str, str] = {
    "numpy.logaddexp": _ROUNDED_DIFFERENCE,
    "numpy.logaddexp2": _ROUNDED_DIFFERENCE,
    "numpy.tanh": (
        "the derivative is 1 - tanh(x)**2 of the rounded value, right to 1.2e-7 (2e-16 in float64) and no more "
        "where it is small; a relative bound would cost an exponential in every backward pass of a network"
    ),
    "lax.bessel_i1e": "eager it is SciPy's, with an error of 5 ulps where JAX's is 4.2",
    "lax.igamma": "eager code uses SciPy's, which loses a factor of a in float64 for a in the hundreds, like JAX's",
    "lax.zeta": (
        "JAX has no derivatives; that by q is s zeta(s + 1, q), with an error of some s ulps, as SciPy's zeta has: 200 "
        "for s up to 60; compiled, float64 is a sum of powers and wrong by up to 5"
    ),
    "scipy.special.jv": f"{_BESSEL}; eager code uses SciPy's function, which loses 190 ulps of the oscillations",
    "scipy.special.yv": _BESSEL,
    "scipy.special.iv": f"{_BESSEL}; next to order 0 the derivative by the order is a small difference",
    "scipy.special.kv": _BESSEL,
}
