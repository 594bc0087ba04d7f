"""``jax.core``: the names of it that are of higher floors here than ``pullback.core``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, operand_types, typeof
from pullback.core.dims import largest, smallest
from pullback.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from pullback.core.trace import state
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval as ensure_compile_time_eval

ParamDict = dict[str, Any]
Value = Any


class Handlers(dict[type, Callable[..., Any]]):
    """What JAX does with operands of a type, for libraries that enter types of their own.

    Args:
      handler: what it does with NumPy's and Python's, and with arrays.
      convert: makes arrays of values of types that are entered; None if what is entered with them does.
    """

    def __init__(self, handler: Callable[..., Any], convert: Callable[[Any], Any] | None = None) -> None:
        numbers = [np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"]
        super().__init__(dict.fromkeys((bool, int, float, complex, np.ndarray, *numbers, ArrayImpl), handler))
        self._convert = convert

    def __setitem__(self, kind: type, handler: Callable[..., Any]) -> None:
        super().__setitem__(kind, handler)
        operand_types.setdefault(kind, handler if self._convert is None else self._convert)


pytype_aval_mappings = Handlers(typeof, np.asarray)
"""For each type of operands what returns their abstract value. TensorFlow Probability enters its variables."""


@contextmanager
def eval_context() -> Iterator[None]:
    """A context without transformations: operations on concrete arrays are computed at once.

    Equinox and others compute constants in it.

    >>> import pullback
    >>> from pullback import numpy as pnp
    >>> def f(x):
    ...     with eval_context():
    ...         n = int(pnp.ones(3).sum())
    ...     return n * x
    >>> print(pullback.jit(f)(2.0))
    6.0
    """
    outer, state.trace = state.trace, state.bottom
    try:
        yield
    finally:
        state.trace = outer


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger of two sizes; of symbolic ones, where it is not known which, a size too.

    >>> from pullback import export
    >>> max_dim(2, 3), max_dim(export.symbolic_shape("a")[0], 3)
    (3, max(a, 3))
    """
    return largest(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller of two sizes; of symbolic ones, where it is not known which, a size too.

    >>> from pullback import export
    >>> min_dim(2, 3), min_dim(export.symbolic_shape("a")[0], 3)
    (2, min(a, 3))
    """
    return smallest(d1, d2)


__all__ = [
    "InconclusiveDimensionOperation",
    "ParamDict",
    "Value",
    "ensure_compile_time_eval",
    "eval_context",
    "max_dim",
    "min_dim",
    "pytype_aval_mappings",
]
