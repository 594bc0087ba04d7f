"""Special functions. Formulas are from the *Digital Library of Mathematical Functions* (https://dlmf.nist.gov).

The functions are those in ``__all__`` of the modules of this package.
"""

from pullback.core.faces import face as _face
from pullback.nn.normalized import logsumexp as logsumexp
from pullback.scipy.special.airy import *
from pullback.scipy.special.bessel import *
from pullback.scipy.special.bessel_kinds import *
from pullback.scipy.special.composed_functions import *
from pullback.scipy.special.elliptic import *
from pullback.scipy.special.error_functions import *
from pullback.scipy.special.exponential_integrals import *
from pullback.scipy.special.gammas import *
from pullback.scipy.special.host_functions import *
from pullback.scipy.special.hypergeometric import *
from pullback.scipy.special.inverses import *
from pullback.scipy.special.logistic import *
from pullback.scipy.special.polynomials import *
from pullback.scipy.special.spherical import *

_face(globals())
