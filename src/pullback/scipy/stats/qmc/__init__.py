"""Quasi-random numbers: points that fill the unit cube evenly, as in ``scipy.stats.qmc``.

``sobol``, ``halton`` and ``latin_hypercube`` are functions of a key, the number of points and the dimension, for
compiled and mapped functions. The classes are SciPy's engines, which count the points that they have drawn.

>>> from pullback.scipy.stats import qmc
>>> print(qmc.sobol(None, 4, 2))
[[0.   0.  ]
 [0.5  0.5 ]
 [0.75 0.25]
 [0.25 0.75]]
"""

from __future__ import annotations

from pullback.core.faces import face
from pullback.scipy.stats.qmc.engines import Halton, LatinHypercube, PoissonDisk, QMCEngine, Sobol
from pullback.scipy.stats.qmc.measures import discrepancy, geometric_discrepancy, scale, update_discrepancy
from pullback.scipy.stats.qmc.sequences import halton, latin_hypercube, sobol
from pullback.scipy.stats.qmc.transformed import MultinomialQMC, MultivariateNormalQMC

__all__ = [
    "Halton", "LatinHypercube", "MultinomialQMC", "MultivariateNormalQMC", "PoissonDisk", "QMCEngine", "Sobol",
    "discrepancy", "geometric_discrepancy", "halton", "latin_hypercube", "scale", "sobol", "update_discrepancy",
]  # fmt: skip
face(globals())
