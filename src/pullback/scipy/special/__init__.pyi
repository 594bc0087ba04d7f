# Made by `make stubs` from the module itself, for type checkers and editors.

from pullback.nn.normalized import logsumexp as logsumexp
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
from pullback.scipy.special.spherical import lpmn as lpmn
from pullback.scipy.special.spherical import lpmn_values as lpmn_values
from pullback.scipy.special.spherical import sph_harm_y as sph_harm_y

__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betainccinv", "betaincinv", "betaln", "boxcox", "boxcox1p",
    "comb", "dawsn", "digamma", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1", "elliprc",
    "elliprd", "elliprf", "elliprg", "elliprj", "entr", "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp1",
    "expi", "expit", "expn", "exprel", "factorial", "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "iv", "jn", "jv",
    "kl_div", "kv", "lambertw", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "lpmn",
    "lpmn_values", "multigammaln", "ndtr", "ndtri", "owens_t", "poch", "polygamma", "rel_entr", "sici", "softmax",
    "spence", "sph_harm_y", "voigt_profile", "wofz", "xlog1py", "xlogy", "yv", "zeta",
]
