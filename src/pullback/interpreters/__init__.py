"""Rules of primitives in JAX's older spelling: ``ad``, ``batching``, ``mlir``, ``partial_eval`` and ``xla``.

Code that was written for ``jax.interpreters`` runs after a change of its imports. It registers rules of
:class:`pullback.extend.Primitive`; new code should use that class.

>>> import numpy as np
>>> from pullback import core, grad
>>> from pullback.interpreters import ad
>>> cube_p = core.Primitive("cube")
>>> cube = cube_p.def_impl(lambda x: np.multiply(x, x * x))
>>> ad.defjvp(cube_p, lambda t, x: 3 * x * x * t)
>>> print(grad(cube_p.bind)(2.0))
12.0
"""

from pullback.core.faces import face as _face
from pullback.interpreters import ad as ad
from pullback.interpreters import batching as batching
from pullback.interpreters import mlir as mlir
from pullback.interpreters import partial_eval as partial_eval
from pullback.interpreters import xla as xla

_face(globals(), modules="ad batching mlir partial_eval xla")
