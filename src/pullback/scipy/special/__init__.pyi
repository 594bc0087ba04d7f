# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.nn.normalized import logsumexp as logsumexp
from pullback.scipy.special.airy import ai_zeros as ai_zeros
from pullback.scipy.special.airy import airy as airy
from pullback.scipy.special.airy import airye as airye
from pullback.scipy.special.airy import bi_zeros as bi_zeros
from pullback.scipy.special.airy import itairy as itairy
from pullback.scipy.special.bessel import bessel_jn as bessel_jn
from pullback.scipy.special.bessel import i0 as i0
from pullback.scipy.special.bessel import i0e as i0e
from pullback.scipy.special.bessel import i1 as i1
from pullback.scipy.special.bessel import i1e as i1e
from pullback.scipy.special.bessel import iv as iv
from pullback.scipy.special.bessel import jn as jn
from pullback.scipy.special.bessel import jv as jv
from pullback.scipy.special.bessel import kv as kv
from pullback.scipy.special.bessel import yv as yv
from pullback.scipy.special.elliptic import ellipe as ellipe
from pullback.scipy.special.elliptic import ellipeinc as ellipeinc
from pullback.scipy.special.elliptic import ellipj as ellipj
from pullback.scipy.special.elliptic import ellipk as ellipk
from pullback.scipy.special.elliptic import ellipkinc as ellipkinc
from pullback.scipy.special.elliptic import ellipkm1 as ellipkm1
from pullback.scipy.special.elliptic import elliprc as elliprc
from pullback.scipy.special.elliptic import elliprd as elliprd
from pullback.scipy.special.elliptic import elliprf as elliprf
from pullback.scipy.special.elliptic import elliprg as elliprg
from pullback.scipy.special.elliptic import elliprj as elliprj
from pullback.scipy.special.error_functions import dawsn as dawsn
from pullback.scipy.special.error_functions import erf as erf
from pullback.scipy.special.error_functions import erfc as erfc
from pullback.scipy.special.error_functions import erfcinv as erfcinv
from pullback.scipy.special.error_functions import erfcx as erfcx
from pullback.scipy.special.error_functions import erfinv as erfinv
from pullback.scipy.special.error_functions import fresnel as fresnel
from pullback.scipy.special.error_functions import log_ndtr as log_ndtr
from pullback.scipy.special.error_functions import ndtr as ndtr
from pullback.scipy.special.error_functions import ndtri as ndtri
from pullback.scipy.special.error_functions import owens_t as owens_t
from pullback.scipy.special.error_functions import voigt_profile as voigt_profile
from pullback.scipy.special.error_functions import wofz as wofz
from pullback.scipy.special.exponential_integrals import exp1 as exp1
from pullback.scipy.special.exponential_integrals import expi as expi
from pullback.scipy.special.exponential_integrals import expn as expn
from pullback.scipy.special.exponential_integrals import exprel as exprel
from pullback.scipy.special.exponential_integrals import sici as sici
from pullback.scipy.special.exponential_integrals import spence as spence
from pullback.scipy.special.gammas import bernoulli as bernoulli
from pullback.scipy.special.gammas import beta as beta
from pullback.scipy.special.gammas import betainc as betainc
from pullback.scipy.special.gammas import betaln as betaln
from pullback.scipy.special.gammas import comb as comb
from pullback.scipy.special.gammas import digamma as digamma
from pullback.scipy.special.gammas import factorial as factorial
from pullback.scipy.special.gammas import gamma as gamma
from pullback.scipy.special.gammas import gammainc as gammainc
from pullback.scipy.special.gammas import gammaincc as gammaincc
from pullback.scipy.special.gammas import gammaln as gammaln
from pullback.scipy.special.gammas import gammasgn as gammasgn
from pullback.scipy.special.gammas import loggamma as loggamma
from pullback.scipy.special.gammas import multigammaln as multigammaln
from pullback.scipy.special.gammas import poch as poch
from pullback.scipy.special.gammas import polygamma as polygamma
from pullback.scipy.special.gammas import zeta as zeta
from pullback.scipy.special.hypergeometric import hyp1f1 as hyp1f1
from pullback.scipy.special.hypergeometric import hyp2f1 as hyp2f1
from pullback.scipy.special.inverses import betainccinv as betainccinv
from pullback.scipy.special.inverses import betaincinv as betaincinv
from pullback.scipy.special.inverses import gammainccinv as gammainccinv
from pullback.scipy.special.inverses import gammaincinv as gammaincinv
from pullback.scipy.special.inverses import lambertw as lambertw
from pullback.scipy.special.logistic import boxcox as boxcox
from pullback.scipy.special.logistic import boxcox1p as boxcox1p
from pullback.scipy.special.logistic import entr as entr
from pullback.scipy.special.logistic import expit as expit
from pullback.scipy.special.logistic import kl_div as kl_div
from pullback.scipy.special.logistic import log_softmax as log_softmax
from pullback.scipy.special.logistic import logit as logit
from pullback.scipy.special.logistic import rel_entr as rel_entr
from pullback.scipy.special.logistic import softmax as softmax
from pullback.scipy.special.logistic import xlog1py as xlog1py
from pullback.scipy.special.logistic import xlogy as xlogy
from pullback.scipy.special.polynomials import eval_chebyc as eval_chebyc
from pullback.scipy.special.polynomials import eval_chebys as eval_chebys
from pullback.scipy.special.polynomials import eval_chebyt as eval_chebyt
from pullback.scipy.special.polynomials import eval_chebyu as eval_chebyu
from pullback.scipy.special.polynomials import eval_gegenbauer as eval_gegenbauer
from pullback.scipy.special.polynomials import eval_genlaguerre as eval_genlaguerre
from pullback.scipy.special.polynomials import eval_hermite as eval_hermite
from pullback.scipy.special.polynomials import eval_hermitenorm as eval_hermitenorm
from pullback.scipy.special.polynomials import eval_jacobi as eval_jacobi
from pullback.scipy.special.polynomials import eval_laguerre as eval_laguerre
from pullback.scipy.special.polynomials import eval_legendre as eval_legendre
from pullback.scipy.special.polynomials import eval_sh_chebyt as eval_sh_chebyt
from pullback.scipy.special.polynomials import eval_sh_chebyu as eval_sh_chebyu
from pullback.scipy.special.polynomials import eval_sh_jacobi as eval_sh_jacobi
from pullback.scipy.special.polynomials import eval_sh_legendre as eval_sh_legendre
from pullback.scipy.special.polynomials import roots_chebyc as roots_chebyc
from pullback.scipy.special.polynomials import roots_chebys as roots_chebys
from pullback.scipy.special.polynomials import roots_chebyt as roots_chebyt
from pullback.scipy.special.polynomials import roots_chebyu as roots_chebyu
from pullback.scipy.special.polynomials import roots_gegenbauer as roots_gegenbauer
from pullback.scipy.special.polynomials import roots_genlaguerre as roots_genlaguerre
from pullback.scipy.special.polynomials import roots_hermite as roots_hermite
from pullback.scipy.special.polynomials import roots_hermitenorm as roots_hermitenorm
from pullback.scipy.special.polynomials import roots_jacobi as roots_jacobi
from pullback.scipy.special.polynomials import roots_laguerre as roots_laguerre
from pullback.scipy.special.polynomials import roots_legendre as roots_legendre
from pullback.scipy.special.polynomials import roots_sh_chebyt as roots_sh_chebyt
from pullback.scipy.special.polynomials import roots_sh_chebyu as roots_sh_chebyu
from pullback.scipy.special.polynomials import roots_sh_jacobi as roots_sh_jacobi
from pullback.scipy.special.polynomials import roots_sh_legendre as roots_sh_legendre
from pullback.scipy.special.spherical import lpmn as lpmn
from pullback.scipy.special.spherical import lpmn_values as lpmn_values
from pullback.scipy.special.spherical import sph_harm_y as sph_harm_y

__all__ = [
    "ai_zeros", "airy", "airye", "bernoulli", "bessel_jn", "beta", "betainc", "betainccinv", "betaincinv",
    "betaln", "bi_zeros", "boxcox", "boxcox1p", "comb", "dawsn", "digamma", "ellipe", "ellipeinc", "ellipj",
    "ellipk", "ellipkinc", "ellipkm1", "elliprc", "elliprd", "elliprf", "elliprg", "elliprj", "entr", "erf",
    "erfc", "erfcinv", "erfcx", "erfinv", "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu",
    "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi", "eval_laguerre",
    "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi", "eval_sh_legendre", "exp1", "expi",
    "expit", "expn", "exprel", "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "itairy", "iv", "jn",
    "jv", "kl_div", "kv", "lambertw", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "lpmn",
    "lpmn_values", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "rel_entr", "roots_chebyc",
    "roots_chebys", "roots_chebyt", "roots_chebyu", "roots_gegenbauer", "roots_genlaguerre", "roots_hermite",
    "roots_hermitenorm", "roots_jacobi", "roots_laguerre", "roots_legendre", "roots_sh_chebyt", "roots_sh_chebyu",
    "roots_sh_jacobi", "roots_sh_legendre", "sici", "softmax", "spence", "sph_harm_y", "voigt_profile", "wofz",
    "xlog1py", "xlogy", "yv", "zeta",
]
