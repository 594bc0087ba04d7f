"""Conversions of traced values by Python: to numbers, conditions, indices, formats and text, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from pullback.core import source
from pullback.core.array import Array
from pullback.core.errors import (
    ConcretizationTypeError,
    LostDerivativeError,
    PullbackError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from pullback.core.manual_axes import ManualAxisType
from pullback.core.types import ShapedArray

_FORMAT = (
    'pullback.debug.print("{x:.3f}", x=x) prints the value when the function runs; formatting without a format '
    "specification shows the type."
)
_BRANCH = (
    "Use jnp.where, lax.cond or lax.while_loop (& | ~ for and, or, not; jnp.maximum for max), or compute the condition "
    "from values that are not traced."
)
_CONVERT = (
    "Keep it as an array (x.astype(...) changes its dtype; jnp.exp(x) instead of math.exp(x)), or return it from the "
    "transformed function with has_aux."
)
_ARRAY = "Use the function of pullback.numpy, or return the value from the transformed function with has_aux."
_INDEX = (
    "Shapes, ranges and list indices must be static: use x.shape, declare the argument static (static_argnums), loop "
    "with lax.fori_loop, or index an array with jnp.take."
)

computing: Final[dict[Any, Callable[[Any], Any]]] = {}
"""For a trace that records an eager call: a function that computes the value of one of its tracers now, or None."""


class LookedAt(Array):
    """The base class of tracers: converts a traced value to a Python value, or explains why that is impossible.

    Conversions, such as ``__bool__`` and ``__index__``, use the concrete value if there is one, and else raise an
    error.
    """

    __slots__ = ()

    _trace: Any
    made_at: source.Location | None

    @property
    def aval(self) -> ShapedArray:
        """The abstract value."""
        raise NotImplementedError

    @property
    def mat(self) -> ManualAxisType:
        """The axes of ``shard_map`` along which the value varies, or over which it is unreduced or reduced."""
        return self.aval.mat

    def concrete(self) -> Any:
        """Return the concrete value, without its derivative; None if there is no concrete value."""
        return None

    def differentiated(self) -> Any:
        """Return this tracer or the one that it wraps, whichever is being differentiated; None if neither is."""
        return None

    def abstract_part(self) -> Any:
        """Return this tracer, or the tracer that it wraps, that has no concrete value; None if there is a value."""
        return self

    def dependence(self) -> str:
        """Return a sentence that names the arguments that this value depends on, for error messages; may be empty."""
        return ""

    def _leak(self) -> UnexpectedTracerError | None:
        """Return the error for a tracer used after or outside its transformation; None while its trace is active."""
        raise NotImplementedError

    def _leaked(self) -> UnexpectedTracerError:
        """Return the error for a tracer that is used while its trace is not active."""
        raise NotImplementedError

    def _known(self, error: type[PullbackError], what: str, instead: str) -> Any:
        value = self.concrete() if self._leak() is None else None
        if value is None:
            part = self.abstract_part()
            value = computing[part._trace](part) if part._trace in computing else None
        if value is None:
            raise self._unknown(error, f"{what} needs a concrete value", instead)
        return value

    def concrete_value(self, what: str, instead: str = _CONVERT) -> Any:
        """Return the concrete value, for Python to compute with.

        Args:
          what: the operation that needs the value, such as "float()": the beginning of the error message.
          instead: advice for the end of the error message.

        Raises:
          ConcretizationTypeError: there is no concrete value.
          LostDerivativeError: the value is being differentiated, and its derivative would be lost.
        """
        value = self._known(ConcretizationTypeError, what, instead)
        own = self.differentiated()
        if own is None:
            return value
        lost = LostDerivativeError(
            f"{what} would lose a derivative{source.calling_expression()}: it takes the value of an array of type "
            f"{own.aval}, whose derivative is being taken by {own._trace.describe()}.\nUse the functions of "
            f"pullback.numpy, such as jnp.sin instead of math.sin. If you want the value only, stop the derivative "
            f"first: float(lax.stop_gradient(x))."
        )
        lost.trace = own._trace
        raise lost

    def _unknown(self, error: type[PullbackError], need: str, instead: str) -> PullbackError:
        """Return the error for a value that leaked, or that has no concrete value.

        Args:
          error: the class of the error in the second case.
          need: the beginning of the message, such as "float() needs a concrete value".
          instead: advice for the end of the message.
        """
        part = self.abstract_part()
        for leak in (self._leak(), part._leak()):
            if leak is not None:
                return leak
        made = f", made here:\n{source.format_location(self.made_at)}" if self.made_at else "."
        unknown = error(
            f"{need}, but this one of type {part.aval} is traced, by {part._trace.describe()}{made}\n"
            f"{part.dependence()}{instead}"
        )
        unknown.trace = part._trace
        return unknown

    def __bool__(self) -> bool:
        return bool(
            self._known(TracerBoolConversionError, "a condition in Python (if, while, and, or, not, bool)", _BRANCH)
        )

    def __float__(self) -> float:
        # "%.3f" % x shows the value, as f"{x:.3f}" does
        if self.differentiated() is not None and source.is_formatting():
            return float(self._known(ConcretizationTypeError, "a format", _FORMAT))
        return float(self.concrete_value("float()"))

    def __int__(self) -> int:
        return int(self._known(ConcretizationTypeError, "int()", _CONVERT))

    def __complex__(self) -> complex:
        return complex(self.concrete_value("complex()"))

    def __index__(self) -> int:
        known = self._known(TracerIntegerConversionError, "a Python index, range() or shape", _INDEX)
        return int(known.__index__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise self._unknown(
            TracerArrayConversionError,
            "np.asarray() and NumPy functions that Pullback lacks need a concrete value",
            _ARRAY,
        )

    def shown(self) -> Any:
        """Return the concrete value to print: under ``vmap``, that of the whole batch; None if there is none."""
        return self.concrete()

    def __repr__(self) -> str:
        value = self.shown()
        elements = "" if value is None else ": " + " ".join(map(str.strip, str(value).splitlines()))
        return f"Traced<{self.aval}{elements}> by {self._trace.transformation}"

    def __str__(self) -> str:
        value = self.shown()
        return repr(self) if value is None else str(value)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        value = self.shown()
        if value is None:
            raise self._unknown(ConcretizationTypeError, f"the format {spec!r} needs a concrete value", _FORMAT)
        return format(value, spec)

    def __reduce__(self) -> Any:
        raise ConcretizationTypeError(f"traced values cannot be pickled: {self!r}")

    def __copy__(self) -> LookedAt:
        return self  # it does not change, and has no memory of its own

    def __deepcopy__(self, memo: Any) -> LookedAt:
        return self
