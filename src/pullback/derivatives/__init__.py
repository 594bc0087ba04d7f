"""Derivatives beyond ``grad``, ``jvp`` and ``vmap``: sparse Jacobians and Hessians.

>>> import numpy as np
>>> from pullback.derivatives import sparse_jacobian
>>> print(sparse_jacobian(lambda x: x[1:] * x[:-1])(np.float32([1, 2, 3])).todense())
[[2. 1. 0.]
 [0. 3. 2.]]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pullback.derivatives.sparse.colouring import Colouring as Colouring
    from pullback.derivatives.sparse.colouring import colour_hessian as colour_hessian
    from pullback.derivatives.sparse.colouring import colour_jacobian as colour_jacobian
    from pullback.derivatives.sparse.dependence import sparsity as sparsity
    from pullback.derivatives.sparse.hessian import hessian_pattern as hessian_pattern
    from pullback.derivatives.sparse.hessian import sparse_hessian as sparse_hessian
    from pullback.derivatives.sparse.jacobian import jacobian_pattern as jacobian_pattern
    from pullback.derivatives.sparse.jacobian import sparse_jacobian as sparse_jacobian
    from pullback.derivatives.sparse.pattern import Pattern as Pattern

_NAMES = {
    "Colouring": "sparse.colouring",
    "Pattern": "sparse.pattern",
    "colour_hessian": "sparse.colouring",
    "colour_jacobian": "sparse.colouring",
    "hessian_pattern": "sparse.hessian",
    "jacobian_pattern": "sparse.jacobian",
    "sparse_hessian": "sparse.hessian",
    "sparse_jacobian": "sparse.jacobian",
    "sparsity": "sparse.dependence",
}  # imported when they are first used

__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'pullback.derivatives' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"pullback.derivatives.{_NAMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES} - {"Any", "TYPE_CHECKING", "annotations", "importlib"})
