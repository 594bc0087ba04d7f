"""Public functions of ``pullback.scipy`` that have no row in the tables, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

CONSTANT = "its result is Boolean, of positions or of labels: there are no derivatives"
OF_LENGTHS = "a constant array, SciPy's own, of ints"
AN_ORDER = "the result has an int, so that numbers must be known and no program is compiled"
A_CLASS = "a class of results or of parameters"
NO_ANCHOR = "SciPy has no such function"
OF_TESTS = "tests compare values and derivatives with SciPy's; times are not measured"

_BY_REASON: Mapping[str, Mapping[str, str]] = {
    CONSTANT: {
        "signal": "argrelextrema argrelmax argrelmin check_COLA check_NOLA choose_conv_method find_peaks_cwt "
        "unique_roots",
        "ndimage": "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss "
        "binary_opening binary_propagation distance_transform_edt find_objects generate_binary_structure "
        "iterate_structure label maximum_position minimum_position",
    },
    "it is two values and two positions: those of `minimum` and `maximum`": {"ndimage": "extrema"},
    "SciPy calls the mapping at each element: the times are those of Python": {"ndimage": "geometric_transform"},
    OF_LENGTHS: {
        "signal": "besselap buttap correlation_lags max_len_seq savgol_coeffs unit_impulse",
        "signal.windows": "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann "
        "lanczos nuttall parzen triang",
    },
    "frequencies for a plot, of roots: a guess, by powers of ten": {"signal": "findfreqs"},
    "the function of `signal.windows` has a row": {"signal": "get_window"},
    AN_ORDER: {"signal": "buttord cheb1ord cheb2ord ellipord iirdesign kaiserord"},
    "SciPy has no wavelet transforms; tests compare with figures of PyWavelets": {
        "signal.wavelets": "Wavelet dwt dwt2 dwt_coeff_len dwt_max_level idwt idwt2 wavedec wavedec2 wavelist "
        "waverec waverec2",
    },
    A_CLASS: {
        "optimize": "Bounds LeastSquaresResult LinearConstraint LinprogResult Marginals MilpResult "
        "NonlinearConstraint OptimizeResults QuadraticResult RootResults ScalarResult",
        "integrate": "BVPResult BrownianPath CubatureRegion CubatureResult OdeResult OdeSolution PhaseTrajectory "
        "Trajectory",
        "sparse.linalg": "Cholesky Entries LDL LsmrResult LsqrResult Slogdet SuperLU SvdsResult",
    },
    NO_ANCHOR: {"optimize": "solve_qp", "integrate": "solve_dde solve_hamiltonian solve_sde solve_symplectic"},
    OF_TESTS: {
        "optimize": "least_squares root",
        "integrate": "cubature dblquad nquad quad solve_bvp solve_ivp tplquad",
        "spatial.transform": "Rotation Slerp",
        "special": "ai_zeros bernoulli bessel_jn beta betainc betaln bi_zeros boxcox boxcox1p comb dawsn digamma "
        "entr erf erfc erfcinv erfcx erfinv eval_chebyc eval_chebys eval_chebyt eval_chebyu "
        "eval_gegenbauer eval_genlaguerre eval_hermite eval_hermitenorm eval_jacobi eval_laguerre "
        "eval_legendre eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi eval_sh_legendre exp1 expi expit "
        "expn exprel factorial fresnel gamma gammainc gammaincc gammaln gammasgn hyp1f1 hyp2f1 i0 i0e i1 "
        "i1e iv jn jn_zeros jnp_zeros jv kl_div kv log_ndtr log_softmax loggamma logit logsumexp lpmn "
        "lpmn_values multigammaln ndtr ndtri owens_t poch polygamma rel_entr roots_chebyc roots_chebys "
        "roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre roots_hermite roots_hermitenorm "
        "roots_jacobi roots_laguerre roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi "
        "roots_sh_legendre sici softmax spence sph_harm_y wofz xlog1py xlogy yn_zeros ynp_zeros yv zeta",
    },
    "a module": {"spatial": "distance transform"},
}
FAMILIES = {"stats": OF_TESTS, "stats.qmc": OF_TESTS}
"""Modules of which no function has a row."""

REASONS = {
    f"scipy.{module}.{name}": reason
    for reason, modules in _BY_REASON.items()
    for module, names in modules.items()
    for name in names.split()
}
"""The reason of each function, by its name below ``pullback``."""
