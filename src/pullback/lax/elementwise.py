"""Elementwise functions of ``pullback.lax``: primitives with checked operands.

Eager evaluation would let NumPy promote dtypes and broadcast ranks. A checked function applies the primitive's abstract
evaluation rule in every trace, which raises for operands that do not fit, and raises for different ranks.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import DTypeLike
from pullback.core.arguments import is_listed, typed
from pullback.core.array import SCALARS, Array, ArrayImpl, ArrayLike, typeof
from pullback.core.docs import describe, with_example, with_sections
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from pullback.core.trace import Primitive, state
from pullback.core.types import Shape
from pullback.numpy.promotion import sequence
from pullback.numpy.views import view
from pullback.primitives import bits as bits  # which declares more of them, as do two below
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import FLOAT, INEXACT, REAL_NUMBER, check_dtype, known_int
from pullback.primitives.declare import PUBLIC, Public
from pullback.primitives.operands import array_operand, bind, operands
from pullback.primitives.special import bessel as bessel
from pullback.primitives.special import others as others

# The mechanism -----------------------------------------------------------------------------------------------------


_TWO_OPERANDS = """, of one dtype.
  Their ranks are equal, or one is a scalar; axes of size one broadcast."""
_REFUSED_BY_ONE = """OperandError: ``x`` is neither an array nor a number (a TypeError).
DtypeError: ``x`` has another dtype (a TypeError)."""
_REFUSED_BY_TWO = """OperandError: an operand is neither an array nor a number (a TypeError).
DtypeError: the operands have different dtypes, or another one (a TypeError).
ShapeError: the ranks differ, or the shapes do not broadcast (a TypeError and a ValueError)."""


def checked(primitive: Primitive, public: Public) -> Callable[..., Any]:
    """Make the checked function of an elementwise primitive without parameters."""
    name = public.name
    accepted: set[Any] = set()  # dtypes that the abstract evaluation rule has accepted

    def unary(x: ArrayLike) -> Array:
        x = array_operand(name, x)
        if x.dtype not in accepted:
            primitive.abstract_eval_rule(typeof(x))  # type: ignore[misc]
            accepted.add(x.dtype)
        return state.trace.process(primitive, (x,), {})

    def binary(x: ArrayLike, y: ArrayLike) -> Array:
        if isinstance(x, Array) and isinstance(y, Array):
            dtype = x.dtype
            if dtype is y.dtype and dtype in accepted and x.shape == y.shape:
                return state.trace.process(primitive, (x, y), {})
        left, right = operands(name, (x, y))
        same_rank(name, [typeof(left).shape, typeof(right).shape])
        out = bind(primitive, left, right)
        if type(left) not in SCALARS:
            accepted.add(left.dtype)
        return out

    return describe(unary if public.arity == 1 else binary, name, _docstring(public))


def _docstring(public: Public, names: tuple[str, str] = ("x", "y"), more: str = "") -> str:
    """Return the docstring of the function of a declared operation.

    Args:
      public: the documentation in the declaration, where the operands are ``x`` and ``y``.
      names: the names of the operands in the function.
      more: the entries of further arguments, each with a line break before it.
    """
    if public.arity == 1:
        args, raises = f"x: an array{public.takes}, of any shape.", _REFUSED_BY_ONE
    else:
        args, raises = f"{', '.join(names)}: arrays{public.takes}{_TWO_OPERANDS}", _REFUSED_BY_TWO
    text = with_sections(public.sentence, args + more, public.returns, raises)
    for old, new in zip(("x", "y"), names):
        text = text.replace(f"``{old}``", f"``{new}``")
    call = f"lax.{public.name}({public.example})"
    return with_example(text, "from pullback import lax", call, public.result)


def same_rank(name: str, shapes_: Sequence[Shape]) -> None:
    """Raise if operands have different ranks; scalars may be among them."""
    if len({len(s) for s in shapes_ if s}) > 1:
        shown = ", ".join(map(str, shapes_))
        raise ShapeError(
            f"lax.{name}: arrays must have the same number of dimensions or be scalars, got shapes {shown}"
        )


# Accuracy ----------------------------------------------------------------------------------------------------------


class AccuracyMode(enum.Enum):
    """Values of the argument ``accuracy`` of some functions; without effect, since they are as accurate as possible.

    >>> from pullback import lax
    >>> print(lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST))
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The error that a function may have, as a value of its argument ``accuracy``.

    Attributes:
      atol: the absolute error, a number that is not negative.
      rtol: the relative error.
      ulps: the error in units in the last place, an int.

    Raises:
      ArgumentError: a tolerance is negative (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.exp(0.0, accuracy=lax.Tolerance(ulps=1)))
    1.0
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ArgumentError(f"a tolerance must not be negative, got atol={atol}, rtol={rtol}, ulps={ulps}")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


_WITH_ACCURACY = frozenset(
    ("cbrt", "cos", "erfc", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh")
)


_OF_ACCURACY = """
accuracy: a :class:`Tolerance` or an :class:`AccuracyMode`; without effect, since
  results are as accurate as possible."""


def _with_accuracy(function: Callable[[Any], Any], public: Public) -> Callable[..., Any]:
    """Add an argument ``accuracy`` to a function. It has no effect, as in XLA on CPUs."""
    name = public.name

    def called(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
        _check_accuracy(name, accuracy)
        return function(x)

    return describe(called, name, _docstring(public, more=_OF_ACCURACY))


def _check_accuracy(name: str, accuracy: Any) -> None:
    if accuracy is not None and not isinstance(accuracy, (Tolerance, AccuracyMode)):
        raise ArgumentError(f"lax.{name}: accuracy must be a Tolerance, an AccuracyMode or None, got {accuracy!r}")


# Operations on elements --------------------------------------------------------------------------------------------

FUNCTIONS = {public.name: checked(primitive, public) for primitive, public in PUBLIC.items()}
"""The functions of the operations that ``elementwise`` declares with ``doc``, which are names of this module too."""
_PUBLIC = {public.name: public for public in PUBLIC.values()}
FUNCTIONS |= {name: _with_accuracy(FUNCTIONS[name], _PUBLIC[name]) for name in _WITH_ACCURACY}


def _with_other_arguments(
    name: str, names: tuple[str, str] = ("x", "y"), more: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that replaces ``lax.<name>``, which was made from a declaration, by the decorated function.

    The decorated function is documented as declared; ``names`` and ``more`` are as in :func:`_docstring`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__doc__ = _docstring(_PUBLIC[name], names, more)
        FUNCTIONS[name] = function
        return function

    return decorate


_mul, _nextafter, _polygamma = FUNCTIONS["mul"], FUNCTIONS["nextafter"], FUNCTIONS["polygamma"]
_OF_OUT_DTYPE = """
out_dtype: the dtype of the result, to which the operands are converted first."""


@_with_other_arguments("mul", more=_OF_OUT_DTYPE)
def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike = None) -> Array:
    if out_dtype is not None:
        x, y = convert_element_type(x, out_dtype), convert_element_type(y, out_dtype)
    return _mul(x, y)


@_with_other_arguments("nextafter", ("x1", "x2"))
def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    return _nextafter(x1, x2)


@_with_other_arguments("polygamma", ("m", "x"))
def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    return _polygamma(m, x)


globals().update(FUNCTIONS)


def reciprocal(x: ArrayLike) -> Array:
    """Divide one by each element.

    Args:
      x: an array of numbers, of any shape.

    Returns:
      An array of the shape and dtype of ``x``; an integer is rounded towards zero.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> from pullback import lax
    >>> print(lax.reciprocal(4.0))
    0.25
    """
    return bind(ops.div_p, 1, array_operand("reciprocal", x))


def log2(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
    """Compute the logarithm to base 2 of each element.

    Args:
      x: an array of floats or complex numbers.
      accuracy: a :class:`Tolerance` or an :class:`AccuracyMode`; without effect.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> from pullback import lax
    >>> print(lax.log2(8.0))
    3.0
    """
    _check_accuracy("log2", accuracy)
    x = array_operand("log2", x)
    check_dtype("log2", INEXACT, x.dtype)
    return ops.over(ops.log_p.bind(x), math.log(2))


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """Evaluate the polynomial ``coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + ...`` by Horner's rule.

    Args:
      x: an array of numbers.
      coeffs: the coefficients, that of the lowest power first: numbers, or arrays that broadcast against ``x`` and have
        as many axes, or none.
      unroll: without effect: all steps are written out.

    Returns:
      An array of the dtype of ``x``, of the common shape; zeros if there are no coefficients.

    Raises:
      OperandError: ``x`` or a coefficient is neither an array nor a number, or ``coeffs`` is not a sequence (a
        TypeError).
      ShapeError: shapes that do not fit (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.polynomial(3.0, [1.0, 5.0, 2.0]))
    34.0
    """
    x = array_operand("polynomial", x)
    terms = [ops.convert_element_type(array_operand("polynomial", c), x.dtype) for c in sequence("polynomial", coeffs)]
    same_rank("polynomial", [typeof(a).shape for a in (x, *terms)])
    out = shapes.zeros_like(x)
    for term in reversed(terms):
        out = ops.add(ops.mul(out, x), term) if term is not terms[-1] else ops.add(out, term)
    return out


def conj(x: ArrayLike) -> Array:
    """The complex conjugate of each element; a real element as a complex number.

    Args:
      x: an array of floats or complex numbers, of any shape.

    Returns:
      An array of complex numbers, of the shape of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> from pullback import lax
    >>> print(lax.conj(1 + 2j))
    (1-2j)
    """
    x = array_operand("conj", x)
    if dtypes.is_complex(x.dtype):
        return bind(ops.conj_p, x)
    return bind(ops.complex_p, x, ops.convert_element_type(shapes.zeros_like(x), x.dtype, x.weak_type))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Raise each element to a fixed integer power.

    Args:
      x: an array of numbers, of any shape.
      y: the power, an int; a negative one of an integer is rounded towards zero.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number, or ``y`` is not an int (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).

    >>> from pullback import lax
    >>> print(lax.integer_pow(2.0, 3))
    8.0
    """
    try:
        power = operator.index(y)
    except TypeError:
        raise OperandError(f"lax.integer_pow: y must be an int, got {y!r} of type {type(y).__name__}") from None
    return bind(ops.integer_pow_p, array_operand("integer_pow", x), y=power)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Each element of ``x`` to the power of the element of ``y``, which may be an integer.

    Args:
      x: an array of numbers.
      y: an array of the dtype of ``x``, or of integers if ``x`` has floats or complex numbers. The ranks are equal, or
        one is a scalar.

    Returns:
      An array of the dtype of ``x``, of the shape to which both broadcast.

    Raises:
      OperandError: an operand is neither an array nor a number (a TypeError).
      DtypeError: the dtypes do not fit (a TypeError).
      ShapeError: the ranks differ, or the shapes do not broadcast (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.pow(2.0, 0.5))
    1.4142135
    """
    x, y = array_operand("pow", x), array_operand("pow", y)
    if dtypes.is_integer(y.dtype) and dtypes.is_inexact(x.dtype):
        exponent: Array = ops.convert_element_type(y, x.dtype, y.weak_type)
        y = exponent
    same_rank("pow", [x.shape, y.shape])
    return bind(ops.pow_p, x, y)


class RoundingMethod(enum.Enum):
    """The direction in which :func:`round` rounds halves.

    >>> from pullback import lax
    >>> print(lax.round(0.5, lax.RoundingMethod.AWAY_FROM_ZERO), lax.round(0.5, lax.RoundingMethod.TO_NEAREST_EVEN))
    1.0 0.0
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Round each element to the nearest integer.

    Args:
      x: an array of floats, of any shape.
      rounding_method: the direction in which halves are rounded.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      OperandError: ``x`` is neither an array nor a number (a TypeError).
      DtypeError: ``x`` has another dtype (a TypeError).
      ArgumentError: ``rounding_method`` is not a :class:`RoundingMethod` (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.round(2.5), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
    3.0 2.0
    """
    x = array_operand("round", x)
    check_dtype("round", FLOAT, x.dtype)
    if not is_listed(rounding_method, (*RoundingMethod, *(method.value for method in RoundingMethod))):
        raise ArgumentError(f"lax.round: rounding_method must be a RoundingMethod, got {typed(rounding_method)}")
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return bind(ops.round_p, x)
    size = ops.abs(x)
    floor = ops.floor_p.bind(size)
    up = ops.convert_element_type(ops.ge_p.bind(ops.sub(size, floor), 0.5), x.dtype, x.weak_type)
    return ops.mul(ops.sign(x), ops.add(floor, up))


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """The elements of ``on_true`` where ``pred`` is true, else those of ``on_false``.

    Args:
      pred: booleans, of the shape of the others or a scalar.
      on_true, on_false: arrays of one shape and dtype.

    Returns:
      An array of the shape and dtype of ``on_true``.

    Raises:
      DtypeError: they are of different dtypes, or ``pred`` is not boolean (a TypeError).
      ShapeError: the shapes differ (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4])))
    [1 4]
    """
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """The elements of several arrays, selected by ``which``: element i comes from array ``cases[which[i]]``.

    Args:
      which: int32, or booleans for two cases; of the shape of the cases or a scalar.
      cases: arrays of one shape and dtype.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      DtypeError: the cases are of different dtypes, or ``which`` is of another one (a TypeError).
      ShapeError: there are no cases, or the shapes differ (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.select_n(jnp.array([0, 1]), jnp.array([1, 2]), jnp.array([3, 4])))
    [1 4]
    """
    which = array_operand("select_n", which)
    arrays = [array_operand("select_n", c) for c in cases]
    if not arrays:
        raise ShapeError("lax.select_n needs at least one case")
    if dtypes.is_bool(which.dtype) and len(arrays) > 2:
        raise DtypeError(f"lax.select_n: booleans select one of two cases, got {len(arrays)}")
    shape = arrays[0].shape
    if any(c.shape != shape for c in arrays) or which.shape not in ((), shape):
        shown = ", ".join(str(c.shape) for c in arrays)
        raise ShapeError(
            f"lax.select: the cases must have one shape, and the selector this shape or (), got {shown} and "
            f"{which.shape}"
        )
    return bind(ops.select_n_p, which, *arrays)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """The elements of ``x``, limited to the bounds ``min`` and ``max``.

    Args:
      min, max: the bounds, of the shape of ``x`` or scalars.
      x: an array.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      DtypeError: the operands have different dtypes (a TypeError).
      ShapeError: a bound has another shape (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.clamp(0.0, jnp.array([-1.0, 0.5, 2.0]), 1.0))
    [0.  0.5 1. ]
    """
    low, operand, high = operands("clamp", (min, array_operand("clamp", x), max))
    for bound in (low, high):
        if typeof(bound).shape not in ((), operand.shape):
            raise ShapeError(
                f"lax.clamp: a bound must be a scalar or of shape {operand.shape}, got {typeof(bound).shape}"
            )
    return bind(ops.clamp_p, low, operand, high)


def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The array in another dtype; floats become integers by truncation, within their range.

    A Python int may be of any size: beyond a dtype of integers it wraps around.

    Args:
      operand: an array of numbers or booleans.
      new_dtype: the dtype of the result.

    Returns:
      An array of the shape of ``operand``.

    Raises:
      OperandError: ``operand`` is neither an array nor a number (a TypeError).
      DtypeError: ``new_dtype`` is None, or not a dtype (a TypeError).

    >>> from pullback import lax
    >>> print(lax.convert_element_type(2.7, "int32"))
    2
    """
    if new_dtype is None:
        raise DtypeError("lax.convert_element_type: expected a dtype, got None")
    return converted("convert_element_type", operand, dtypes.requested_dtype(new_dtype, "convert_element_type"))


def converted(name: str, x: Any, dtype: np.dtype[Any]) -> Array:
    """Convert an operand to ``dtype``; a Python integer beyond the default integer is rounded, or wraps."""
    if type(x) is int and not dtypes.holds(dtypes.default_int(), x):
        if not dtypes.is_integer(dtype):
            return ArrayImpl(dtype.type(x))
        low, high = dtypes.limits(dtype)
        return ArrayImpl(dtype.type((x - low) % (high - low + 1) + low))
    return ops.convert_element_type(array_operand(name, x), dtype)


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """The bits of the array read as another dtype.

    Args:
      operand: an array of integers or floats.
      new_dtype: a dtype of integers or floats. Of half the width, an element becomes two along a new last axis; of
        twice the width, two along the last axis become one; and so on. Of integers of less than 8 bits the first has
        the lowest bits of a byte.

    Returns:
      An array of dtype ``new_dtype``.

    Raises:
      DtypeError: booleans or complex numbers, unless the dtypes are equal (a TypeError).
      ShapeError: the size of the last axis does not fit the widths (a TypeError and a ValueError).

    >>> from pullback import lax
    >>> print(lax.bitcast_convert_type(1.0, "int32"))
    1065353216
    """
    x, dtype = array_operand("bitcast_convert_type", operand), dtypes.requested_dtype(new_dtype, "bitcast_convert_type")
    if x.dtype == dtype:
        return ops.convert_element_type(x, dtype)
    for one in (x.dtype, dtype):
        if not REAL_NUMBER(one):
            raise DtypeError(
                "lax.bitcast_convert_type takes integers and floats to integers and floats, got "
                f"{dtypes.short_name(x.dtype)} and {dtypes.short_name(dtype)}"
            )
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(dtype)
    if old == new or (old >= 8 and new >= 8):
        return bind(ops.bitcast_convert_type_p, x, new_dtype=dtype)
    if old > new:
        return view(shapes.expand_dims(x, (-1,)), dtype)
    if not x.shape or x.shape[-1] * old != new:
        raise ShapeError(
            f"bitcast_convert_type to {dtypes.short_name(dtype)} takes arrays whose last axis has size {new // old}, "
            f"for {dtypes.short_name(x.dtype)}; got shape {x.shape}"
        )
    return shapes.squeeze(view(x, dtype), (-1,))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to fewer bits, in the dtype that they have.

    Args:
      operand: an array of floats.
      exponent_bits: the number of bits of the exponent, at least 1. Numbers that are too large become infinite, and
        numbers below the smallest normal number 0.
      mantissa_bits: the number of bits of the mantissa; ties go to even.

    Returns:
      An array of the shape and dtype of ``operand``.

    Raises:
      DtypeError: the operand is not of floats (a TypeError).
      ShapeError: too few bits (a TypeError and a ValueError).

    Tangents and cotangents are rounded too.

    >>> from pullback import lax
    >>> print(lax.reduce_precision(3.14159, exponent_bits=5, mantissa_bits=4))
    3.125
    """
    bit_counts = (("exponent_bits", exponent_bits), ("mantissa_bits", mantissa_bits))
    counts = [known_int("lax.reduce_precision", what, n) for what, n in bit_counts]
    x = array_operand("reduce_precision", operand)
    return bind(bits.reduce_precision_p, x, exponent_bits=counts[0], mantissa_bits=counts[1])
