"""``jax.core``: those of its names that are defined in layers above ``pullback.core``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.core.array import ArrayImpl, operand_types, typeof
from pullback.core.dims import largest, smallest
from pullback.core.errors import ConcretizationTypeError
from pullback.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from pullback.core.trace import Tracer, state
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval as ensure_compile_time_eval

ParamDict = dict[str, Any]
Value = Any


def to_concrete_value(x: Any) -> Any:
    """Return the value of ``x`` if it is known, without derivatives; None if ``x`` is traced and its value is not."""
    return x.concrete() if isinstance(x, Tracer) else x


def is_concrete(x: Any) -> bool:
    """Whether the value of ``x`` is known, as it is for arrays, and for tracers of ``grad`` outside ``jit``."""
    return to_concrete_value(x) is not None


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """Return ``force(value)`` for the value of ``val``, which has to be known; without ``force`` the value itself.

    Raises:
      ConcretizationTypeError: ``val`` is traced, and its value is not known; ``context`` says what needs it.
    """
    if isinstance(val, Tracer):
        need = context or getattr(force, "__name__", "a conversion")
        val = val._known(ConcretizationTypeError, need, f"Compute outside of {val._trace.transformation}.")
    return val if force is None else force(val)


class Handlers(dict[type, Callable[..., Any]]):
    """A table of JAX's functions by operand type, to which libraries add their own types.

    Args:
      handler: the function for arrays and for NumPy's and Python's values.
      convert: converts values of added types to arrays; None if the libraries' functions convert them.
    """

    def __init__(self, handler: Callable[..., Any], convert: Callable[[Any], Any] | None = None) -> None:
        numbers = [np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"]
        super().__init__(dict.fromkeys((bool, int, float, complex, np.ndarray, *numbers, ArrayImpl), handler))
        self._convert = convert

    def __setitem__(self, kind: type, handler: Callable[..., Any]) -> None:
        super().__setitem__(kind, handler)
        operand_types.setdefault(kind, handler if self._convert is None else self._convert)


pytype_aval_mappings = Handlers(typeof, np.asarray)
"""For each type of operand the function that returns its abstract value. TensorFlow Probability adds its variables."""


@contextmanager
def eval_context() -> Iterator[None]:
    """A context manager without transformations, in which operations on concrete arrays are evaluated immediately.

    Equinox and others compute constants in it.

    >>> import pullback.numpy as jnp
    >>> from pullback import jit
    >>> from pullback.compat.extras.core import eval_context
    >>> def f(x):
    ...     with eval_context():
    ...         n = int(jnp.ones(3).sum())
    ...     return n * x
    >>> print(jit(f)(2.0))
    6.0
    """
    outer, state.trace = state.trace, state.bottom
    try:
        yield
    finally:
        state.trace = outer


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the larger of two sizes; a symbolic ``max`` if that cannot be decided.

    >>> from pullback import export
    >>> from pullback.compat.extras.core import max_dim
    >>> max_dim(2, 3), max_dim(export.symbolic_shape("a")[0], 3)
    (3, max(a, 3))
    """
    return largest(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the smaller of two sizes; a symbolic ``min`` if that cannot be decided.

    >>> from pullback import export
    >>> from pullback.compat.extras.core import min_dim
    >>> min_dim(2, 3), min_dim(export.symbolic_shape("a")[0], 3)
    (2, min(a, 3))
    """
    return smallest(d1, d2)


__all__ = [
    "InconclusiveDimensionOperation",
    "ParamDict",
    "Value",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_context",
    "is_concrete",
    "max_dim",
    "min_dim",
    "pytype_aval_mappings",
    "to_concrete_value",
]
