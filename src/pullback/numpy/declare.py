"""Declarations of elementwise functions: one line for each function that is one primitive.

A declared function checks and promotes its operands and hands them to the current trace. On concrete arrays of one of
NumPy's own float types, where no promotion is needed, it calls NumPy directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import Axes, DTypeLike
from pullback.core.array import SCALARS, Absent, Array, ArrayImpl, ArrayLike, as_array, from_scalar
from pullback.core.config import config
from pullback.core.docs import describe, with_example, with_sections
from pullback.core.errors import DtypeError
from pullback.core.host_operands import NUMPY_REFUSES
from pullback.core.trace import Primitive, recorders, state
from pullback.numpy import promotion
from pullback.numpy.promotion import fits, inexact_operand, operand, promote, promote_all, refuse_options, strong
from pullback.primitives.checks import FLOAT, kinds
from pullback.primitives.declare import PUBLIC
from pullback.primitives.elementwise import convert_element_type

REAL = frozenset(map(np.dtype, ("float16", "float32", "float64")))
COMPLEX = REAL | frozenset(map(np.dtype, ("complex64", "complex128")))

F = TypeVar("F", bound=Callable[..., Any])
Unary = Callable[[ArrayLike], Array]
Binary = Callable[[ArrayLike, ArrayLike], Array]


class BinaryUfunc(Protocol):
    """A function of two operands with the methods of NumPy's ufuncs, as type checkers see it."""

    __name__: str
    nin: int
    nout: int
    nargs: int
    identity: Any

    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...
    def accumulate(self, a: ArrayLike, axis: int | None = 0, dtype: DTypeLike = None, out: None = None) -> Array: ...
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array: ...
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array: ...
    def reduce(
        self,
        a: ArrayLike,
        axis: Axes = 0,
        dtype: DTypeLike = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def reduceat(
        self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike = None, out: None = None
    ) -> Array: ...


Doc = tuple[str, str, str]
"""The contents of a docstring: a sentence, the operands of an example, and its output."""


_NEITHER = "neither an array nor a number (a TypeError)."
_REFUSED_BY_ONE = f"OperandError: ``x`` is {_NEITHER}\nDtypeError: ``x`` has another dtype (a TypeError)."
_REFUSED_BY_TWO = f"""OperandError: an operand is {_NEITHER}
DtypeError: an operand has another dtype (a TypeError).
TypePromotionError: the dtypes have no common one (a ValueError).
ShapeError: the shapes do not broadcast (a TypeError and a ValueError)."""


def document(
    function: Any, name: str, doc: Doc | Primitive, module: str, *, takes: str, returns: str, converts: bool = False
) -> Any:
    """Set the name and the docstring of an elementwise function.

    Args:
      function: the function, of one operand ``x``, or of two, ``x`` and ``y``.
      name: the new name.
      doc: the sentence and the example; or a primitive that is declared with them.
      module: the name of the module that the function belongs to.
      takes: the kinds of numbers that the function takes, such as "floats".
      returns: the dtype of the result, such as "of floats".
      converts: whether the function converts integers and booleans to floats.
    """
    sentence, example, result = PUBLIC[doc][2:5] if isinstance(doc, Primitive) else doc
    if module.startswith("pullback.numpy."):
        sentence, imported, short = f"{sentence}\n\nAs :data:`numpy.{name}`.", "import pullback.numpy as jnp", "jnp"
    else:  # a file of a public package, such as pullback.scipy.special.logistic
        package, short, _ = module.rsplit(".", 2)
        imported = f"from {package} import {short}"
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    if "y" in parameters:
        args, raises = f"x, y: arrays of {takes}, or Python numbers; their shapes broadcast", _REFUSED_BY_TWO
        shape = "the shape to which ``x`` and ``y`` broadcast"
    else:
        args, raises, shape = f"x: an array of {takes}, or a Python number", _REFUSED_BY_ONE, "the shape of ``x``"
    args += ".\n  Integers and booleans become floats." if converts else "."
    args += "\nout: not supported, for arrays are immutable." if "out" in parameters else ""
    text = with_sections(sentence, args, f"An array {returns}, of {shape}.", raises)
    doc_ = with_example(text, imported, f"{short}.{name}({example})", result)
    return describe(function, name, doc_, module=module)


def public_names(module: str, names: dict[str, Any]) -> list[str]:
    """The names without a leading underscore of the functions that ``module`` defines."""
    return sorted(n for n, v in names.items() if n[0] != "_" and getattr(v, "__module__", None) == module)


@overload
def positional(function: Binary) -> BinaryUfunc: ...
@overload
def positional(function: F) -> F: ...
def positional(function: Any) -> Any:
    """Drop the options ``out`` and ``where``, which ``function`` refuses, from its signature.

    So it can have derivative rules, which take all arguments by position.
    """
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
    function.__signature__ = inspect.Signature(parameters, return_annotation=function.__annotations__["return"])
    return function


def quickly(host: Callable[..., Any], x: Any, *args: Any) -> Array | None:
    """Return a function of an array of floats that NumPy computes now; None if ``x`` is another operand.

    Args:
      host: ``host(value, *args)`` returns an array of the shape and dtype of ``value``, a NumPy array or scalar.
      x: the operand. Its elements must be in NumPy's memory and not pending, and nothing may record the operation.
      args: further arguments of ``host``.
    """
    if type(x) is ArrayImpl and state.trace.quick:
        value = x._host_value
        if value.dtype in REAL and type(value) is not Absent:
            try:
                return ArrayImpl(state.silently(host, value, *args), x.weak_type)
            except NUMPY_REFUSES:
                return None
    return None


def inexact_unary(name: str, primitive: Primitive, module: str, fast: frozenset[np.dtype[Any]] = COMPLEX) -> Unary:
    """Make a function that binds ``primitive`` to floats or complex numbers; it converts integers and booleans."""
    host: Any = primitive.host_rule

    def function(x: ArrayLike, /) -> Array:
        if type(x) is ArrayImpl and state.trace.quick:
            value = x._host_value
            if value.dtype in fast:
                try:
                    return ArrayImpl(state.silently(host, value), x.weak_type)
                except NUMPY_REFUSES:
                    return primitive.bind(x)
        if not isinstance(x, Array) or not dtypes.is_inexact(x.dtype):
            x = inexact_operand(name, x)
        return state.trace.process(primitive, (x,), {})

    of = kinds(PUBLIC[primitive].of)
    return document(  # type: ignore[no-any-return]
        function, name, primitive, module, takes=of, returns=f"of {of}", converts=True
    )


def binary(name: str, primitive: Primitive, module: str, doc: Doc | None = None) -> BinaryUfunc:
    """Make a function that binds ``primitive`` to two operands, which it promotes to one dtype."""

    def function(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
        if out is not None or where is not None:
            refuse_options(name, out, where)
        pair = promote(name, x, y)
        try:
            return state.trace.process(primitive, pair, {})
        except (OverflowError, DtypeError) as error:
            return state.trace.process(primitive, wrapped(name, pair, error), {})

    takes = kinds(PUBLIC[primitive].of)
    return document(  # type: ignore[no-any-return]
        positional(function), name, doc or primitive, module, takes=takes, returns="of the dtype to which they promote"
    )


def wrapped(name: str, operands: tuple[Any, ...], error: Exception) -> tuple[Any, ...]:
    """Convert promoted operands that raised ``error`` to arrays; a Python integer too large for the dtype wraps.

    Raise ``error`` again if there is no Python integer among them.
    """
    if not any(type(x) is int for x in operands):
        raise error
    return tuple(promote_all(name, operands))


def inexact_binary(name: str, primitive: Primitive, module: str, doc: Doc | None = None) -> Binary:
    """Make a function that binds ``primitive`` to two operands, which it promotes to a float or complex dtype."""

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        return state.trace.process(primitive, _inexact_pair(name, x, y), {})

    of = "floats" if PUBLIC[primitive].of is FLOAT else "floats or complex numbers"
    return document(  # type: ignore[no-any-return]
        function, name, doc or primitive, module, takes=of, returns=f"of {of}", converts=True
    )


def inexact_pair(name: str, x: Any, y: Any) -> tuple[Array, Array]:
    """Convert two operands to arrays of their common float or complex dtype."""
    return no_numbers(*_inexact_pair(name, x, y))


def _inexact_pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Promote two operands to one float or complex dtype.

    A Python number is not converted if the dtype of the other operand holds it. ``name`` is the function, for errors.
    """
    if recorders and config.numpy_rank_promotion != "allow":
        promotion.check_ranks(name, x, y)
    if isinstance(x, Array):
        if isinstance(y, Array):
            if x.dtype is y.dtype and dtypes.is_inexact(x.dtype):
                return x, y
        elif type(y) in SCALARS and dtypes.is_inexact(x.dtype) and fits(type(y), x.dtype):
            return x, y
    elif type(x) in SCALARS and isinstance(y, Array) and dtypes.is_inexact(y.dtype) and fits(type(x), y.dtype):
        return x, y
    a, b = operand(name, x), operand(name, y)
    dtype, weak = dtypes.result_type(a, b, return_weak_type_flag=True)
    dtype = dtypes.to_inexact(dtype)
    return tuple(v if v.dtype == dtype else convert_element_type(v, dtype, weak) for v in (a, b))  # type: ignore[return-value]


def no_numbers(a: Any, b: Any) -> tuple[Any, Any]:
    """Convert a Python number among two promoted operands to an array of the other's dtype."""
    if type(a) in SCALARS:
        return convert_element_type(from_scalar(a), b.dtype, True), b
    if type(b) in SCALARS:
        return a, convert_element_type(from_scalar(b), a.dtype, True)
    return a, b


def numeric(name: str, x: Any) -> Array:
    """Convert an operand to an array of numbers; booleans become integers."""
    x = operand(name, x)
    return convert_element_type(x, dtypes.default_int(), x.weak_type) if dtypes.is_bool(x.dtype) else x


def numeric_pair(name: str, x: Any, y: Any) -> tuple[Array, Array]:
    """Convert two operands to arrays of their common dtype; two booleans become integers."""
    try:
        a, b = no_numbers(*promote(name, x, y))
    except OverflowError:
        a, b = promote_all(name, (x, y))
    return (numeric(name, a), numeric(name, b)) if dtypes.is_bool(a.dtype) else (a, b)


def strong_pair(x: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the promoted operands ``a`` and ``b``, strongly typed unless the original ``x`` and ``y`` are both weak.

    Promotion makes weak floats of an integer array and a weak float. Functions whose results are strong in that case,
    as in JAX, use this. A Python number stays one.
    """
    if type(a) in SCALARS or type(b) in SCALARS or not (a.weak_type and b.weak_type):
        return a, b
    return (a, b) if all(as_array(v).weak_type for v in (x, y)) else (strong(a), b)
