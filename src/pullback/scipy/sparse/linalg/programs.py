"""Iterative methods as compiled programs, which later calls with matrices of the same structure share.

Tracing a method takes as long as a hundred steps with a thousand unknowns, so that it is traced once for known
matrices. A function that multiplies by a matrix is traced in each call, since what it closes over may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.array import ArrayImpl
from pullback.core.trace import state
from pullback.scipy.sparse.linalg.direct import SuperLU
from pullback.scipy.sparse.linalg.entries import Constant, entries_of, is_scipy_sparse
from pullback.scipy.sparse.linalg.preconditioners import Inverse, Quotient
from pullback.transforms.jit.jit import jit

_NUMBERS = (int, float, complex)


class Shared:
    """An iterative method: a compiled program if the matrices are known, and otherwise traced with its caller.

    Attributes:
      name: the name of the public function, for errors.
      method: ``method(a, m, *rest, **static)`` for the matrix, the preconditioner or None, and further operands.
      program: the method, compiled.
    """

    def __init__(self, name: str, method: Callable[..., Any], static: tuple[str, ...] = ()) -> None:
        self.name = name
        self.method = method
        self.program = jit(method, static_argnames=static)

    def __call__(self, a: Any, m: Any, *rest: Any, **static: Any) -> Any:
        """Apply the method to the matrix, the preconditioner or None, and trees of arrays and numbers."""
        trace = state.trace
        if trace.is_bottom and trace.eager and all(type(x) in _NUMBERS or _is_known(x) for x in tree.leaves(rest)):
            matrix = Constant(entries_of(self.name, a, square=False)) if is_scipy_sparse(a) else a
            inverse = Inverse(m.__self__) if _is_solve(m) else m
            if _is_matrix(matrix) and (m is None or _is_matrix(inverse)):
                return self.program(matrix, inverse, *rest, **static)
        return self.method(a, m, *rest, **static)


def _is_solve(m: Any) -> bool:
    lu = getattr(m, "__self__", None)
    return type(lu) is SuperLU and bool(m == lu.solve)


def _is_matrix(x: Any) -> bool:
    """Whether ``x`` is a matrix or a preconditioner whose elements are known, and whose structure is not a function."""
    if _is_known(x):
        return True
    if not isinstance(x, (Constant, Inverse, Quotient)) and not hasattr(x, "n_dense"):
        return False
    return all(map(_is_known, tree.leaves(x)))


def _is_known(x: Any) -> bool:
    """Whether ``x`` is a concrete array of floats or complex numbers, or of integers that no switch would narrow."""
    return type(x) is ArrayImpl or (isinstance(x, np.ndarray) and x.dtype.kind in "fc" and x.dtype.itemsize <= 16)
