"""Python's operators on arrays.

On traced values an operator is the function of ``pullback.numpy``. On concrete arrays it first applies Python's
operator to the two NumPy values; a result of the operands' dtype is right. In all other cases (mixed dtypes, errors) it
calls the function too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backends.host import blas, native, pending
from pullback.core import source
from pullback.core.array import SCALARS, Absent, Array, ArrayImpl, CommittedArray, as_array, is_of_jax
from pullback.core.config import config
from pullback.core.dtypes import python_scalar_kind
from pullback.core.errors import OperandError
from pullback.core.host_operands import NUMPY_REFUSES
from pullback.core.naming import quoted
from pullback.core.trace import Primitive, recorders, state
from pullback.numpy import logic, ufuncs
from pullback.primitives import elementwise as ops

__all__: list[str] = []

Method = Callable[[Any, Any], Any]
_new = object.__new__  # and then attributes: a third quicker than a call of the class
_PLAIN = (Array, np.ndarray, np.generic, *python_scalar_kind)


def _matmul(x: Any, y: Any) -> Any:
    from pullback.numpy.contraction import matmul

    return matmul(x, y)


# Operands ----------------------------------------------------------------------------------------------------------


def _deferring(name: str, symbol: str, function: Method, *, reflected: bool = False) -> Method:
    """Make the operator method ``name`` of arrays, which calls ``function`` with the two operands.

    The method returns NotImplemented if the other operand is of another library and has its own method for the
    operation, such as ``__radd__`` for ``__add__``. It raises for other types that are not numbers or arrays.

    Args:
      name: the name of the method, such as ``__add__``.
      symbol: the operator, such as "+", for the error.
      function: the operation.
      reflected: whether to call ``function(other, self)`` instead of ``function(self, other)``.
    """
    other_half = _REFLECTED.get(name, name)

    def method(self: Any, other: Any) -> Any:
        try:
            if type(other) not in SCALARS and not isinstance(other, _PLAIN):
                kind = type(other)
                if getattr(kind, "__jax_array__", None) is not None:
                    return method(self, other.__jax_array__())
                if is_of_jax(other) and hasattr(kind, "__array__"):  # JAX's operators refuse our arrays
                    return method(self, as_array(other))
                if kind.__module__ != "builtins":
                    if hasattr(kind, other_half) or not hasattr(kind, "__array__"):
                        return NotImplemented
                elif name in ("__eq__", "__ne__") and not isinstance(other, (list, tuple, dict, set)):
                    return NotImplemented
                raise _refusal(symbol, self, other)
            return function(other, self) if reflected else function(self, other)
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    return _named(method, name)


def _refusal(symbol: str, x: Any, other: Any) -> OperandError:
    hint = " Convert it with pullback.numpy.asarray first." if isinstance(other, (list, tuple)) else ""
    return OperandError(
        f"unsupported operand for {symbol}: an array of {x.aval} and {quoted(other)} of type "
        f"{type(other).__name__}.{hint}"
    )


def _named(method: Any, name: str) -> Any:
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    method.__doc__ = None
    return method


# Concrete arrays ---------------------------------------------------------------------------------------------------


def _fetched(*operands: Any) -> bool:
    """Copy the elements of operands that are only on a device to the host; return whether there were any.

    If the elements of any operand may be pending, return False: dispatch decides how to compute with them.
    """
    absent = [(x, held) for x in operands if type(x) is ArrayImpl and type(held := x._host_value) is Absent]
    if any(held.pending is not None for _, held in absent):
        return False
    for x, _ in absent:
        x._value  # noqa: B018  (copies the elements to the host, where they stay)
    return bool(absent)


def _of_large(primitive: Primitive | None, *operands: Any) -> Any:
    """Return the pending result of an operation on arrays of numbers that NumPy refused, and Python's numbers.

    Return None if dispatch has to decide how to compute it.

    Args:
      primitive: the operation, if these operands need no conversion.
      operands: its operands, the arrays among them of one dtype.
    """
    if primitive is None or not config.eager_fusion:
        return None
    are_integers = has_float = False
    for x in operands:
        if type(x) is ArrayImpl:
            held = x._host_value
            if type(held) is Absent and held.pending is None:
                return None
            if held.dtype not in _FLOATS:
                if held.dtype not in _INTEGERS:
                    return None
                are_integers = True
        elif type(x) is float:
            has_float = True
        elif type(x) is not int:
            return None
    if are_integers and (has_float or not _ON_INTEGERS.get(primitive)):  # the result is of floats
        return None
    return pending.deferred(primitive, operands, {})


def _eager(name: str, compute: Method, general: Method) -> Method:
    """Make the operator method ``name`` of concrete arrays.

    The method calls ``compute`` on the operands' NumPy arrays if these have the same dtype, or if one operand is a
    number that does not change the dtype. Otherwise it calls ``general`` on the operands.
    """
    primitive = _OF_FLOATS.get(name)

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is ArrayImpl:
            a = self._host_value
            b = other._host_value
            if a.dtype is b.dtype and (not recorders or state.trace.quick):
                try:
                    out = state.silently(compute, a, b)
                except NUMPY_REFUSES:
                    if (result := _of_large(primitive, self, other)) is not None:
                        return result
                    return (method if _fetched(self, other) else general)(self, other)
                result = _new(ArrayImpl)
                result._host_value = out
                result.weak_type = self.weak_type and other.weak_type
                return result
        elif kind in _NUMBERS and (not recorders or state.trace.quick):
            a = self._host_value
            try:
                out = state.silently(compute, a, other)
            except NUMPY_REFUSES:
                if (result := _of_large(primitive, self, other)) is not None:
                    return result
                return (method if _fetched(self) else general)(self, other)
            if out.dtype is a.dtype:
                result = _new(ArrayImpl)
                result._host_value = out
                result.weak_type = self.weak_type
                return result
        return general(self, other)

    return _named(method, name)


def _eager_reflected(name: str, compute: Method, general: Method) -> Method:
    """Make the reflected operator method ``name`` of concrete arrays, such as ``__radd__``.

    For a Python number whose result has the array's dtype, the method calls ``compute`` on the number and the NumPy
    array. Otherwise it calls ``general`` on the operands.
    """
    primitive = _OF_FLOATS.get(_REFLECTED[name])

    def method(self: Any, other: Any) -> Any:
        if type(other) in _NUMBERS and (not recorders or state.trace.quick):
            a = self._host_value
            try:
                out = state.silently(compute, other, a)
                same = out.dtype is a.dtype  # complex + np.float64 is a Python complex, without a dtype
            except (*NUMPY_REFUSES, AttributeError):
                result = _of_large(primitive, other, self)
                return general(self, other) if result is None else result
            if same:
                result = _new(ArrayImpl)
                result._host_value = out
                result.weak_type = self.weak_type
                return result
        return general(self, other)

    return _named(method, name)


def _eager_comparison(name: str, compute: Method, general: Method) -> Method:
    """Make the comparison method ``name`` of concrete arrays.

    The method calls ``compute`` on the operands' NumPy arrays where NumPy has the same rules. Otherwise, as for complex
    numbers and for two dtypes, it calls ``general`` on the operands.
    """
    primitive = _OF_FLOATS.get(name)

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is ArrayImpl:
            a = self._host_value
            b = other._host_value
            dtype = a.dtype
            if dtype is b.dtype and dtype in _ORDERED and state.trace.quick:
                try:
                    return ArrayImpl(state.silently(compute, a, b))
                except NUMPY_REFUSES:
                    if (result := _of_large(primitive, self, other)) is not None:
                        return result
                    return (method if _fetched(self, other) else general)(self, other)
        elif kind in _NUMBERS and (not recorders or state.trace.quick):
            a = self._host_value
            if a.dtype in _TAKES[kind]:
                try:
                    return ArrayImpl(state.silently(compute, a, other))
                except NUMPY_REFUSES:
                    if (result := _of_large(primitive, self, other)) is not None:
                        return result
                    return (method if _fetched(self, other) else general)(self, other)
        return general(self, other)

    return _named(method, name)


_SMALL_FACTORS = 1024  # Elements of two factors whose product BLAS computes on one thread.


def _eager_matmul(general: Method) -> Method:
    def method(self: Any, other: Any) -> Any:
        if type(other) is ArrayImpl:
            a = self._host_value
            b = other._host_value
            dtype = a.dtype
            if dtype is b.dtype and dtype in _BLAS and (not recorders or state.trace.quick):
                compute = operator.matmul if a.size + b.size < _SMALL_FACTORS else blas.product
                try:
                    out = state.silently(compute, a, b)
                except NUMPY_REFUSES:
                    if type(a) is Absent or type(b) is Absent:
                        plain = [ArrayImpl(x._value, x.weak_type) for x in (self, other)]
                        return pending.hold(method(*plain))
                    return general(self, other)
                result = _new(ArrayImpl)
                result._host_value = out
                result.weak_type = self.weak_type and other.weak_type
                return result
        return general(self, other)

    return _named(method, "__matmul__")


def _eager_power(general: Method) -> Method:
    """Make the method ``__pow__`` of concrete arrays: it multiplies if the exponent is 2, else calls ``general``."""
    square = _eager("__mul__", operator.mul, ufuncs.multiply)

    def method(self: Any, other: Any) -> Any:
        if type(other) is int and other == 2 and self._host_value.dtype.kind != "b":  # its square is an integer
            return square(self, self)
        return general(self, other)

    return _named(method, "__pow__")


def _eager_neg(general: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        if state.trace.quick:
            a = self._host_value
            try:
                out = state.silently(operator.neg, a)
            except NUMPY_REFUSES:
                result = _of_large(ops.neg_p, self)
                return general(self) if result is None else result
            if out.dtype is a.dtype:
                result = _new(ArrayImpl)
                result._host_value = out
                result.weak_type = self.weak_type
                return result
        return general(self)

    return _named(method, "__neg__")


# Without bool, which is an int to Python and a dtype here.
_NUMBERS = frozenset((float, int, complex))
_FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64")))
_INTEGERS = frozenset(map(np.dtype, ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")))
_ORDERED = _FLOATS | _INTEGERS | {np.dtype(bool)}
_TAKES: dict[type, frozenset[np.dtype[Any]]] = {float: _FLOATS, int: _FLOATS | _INTEGERS, complex: frozenset()}
_BLAS = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


def _bitwise(compute: Method) -> Method:
    """Wrap a NumPy operator on bits, so that it raises for integers of less than 8 bits.

    NumPy would compute with these in 8 bits.
    """

    def bits(a: Any, b: Any) -> Any:
        if (a if hasattr(a, "dtype") else b).dtype.kind == "V":
            raise TypeError("NumPy computes with these integers in 8 bits")
        return compute(a, b)

    return bits


def _divide(a: Any, b: Any) -> Any:
    dtype = a.dtype if hasattr(a, "dtype") else b.dtype
    if dtype.kind in "iub":
        raise TypeError("NumPy divides integers in double precision")
    return _PYTHON.truediv(a, b)


# The operations on two arrays of floats of one dtype, or on such an array and a number.
_OF_FLOATS: dict[str, Primitive] = {
    "__add__": ops.add_p, "__sub__": ops.sub_p, "__mul__": ops.mul_p, "__truediv__": ops.div_p, "__eq__": ops.eq_p,
    "__ne__": ops.ne_p, "__lt__": ops.lt_p, "__le__": ops.le_p, "__gt__": ops.gt_p, "__ge__": ops.ge_p,
}  # fmt: skip
_ON_INTEGERS = {primitive: name != "__truediv__" for name, primitive in _OF_FLOATS.items()}
"""Whether Python's operator on integers is the operation, which for a quotient rounds it towards zero."""
_PYTHON: Any = native.loops or operator  # the module's operators refuse small arrays whose result may be pending


# The table ---------------------------------------------------------------------------------------------------------

# Name, symbol, function, and Python's operator if NumPy values may use it.
_BINARY: tuple[tuple[str, str, Method, Method | None], ...] = (
    ("add", "+", ufuncs.add, _PYTHON.add),
    ("sub", "-", ufuncs.subtract, _PYTHON.sub),
    ("mul", "*", ufuncs.multiply, _PYTHON.mul),
    ("truediv", "/", ufuncs.true_divide, _divide),
    ("floordiv", "//", ufuncs.floor_divide, None),
    ("mod", "%", ufuncs.remainder, None),
    ("divmod", "divmod", ufuncs.divmod, None),
    ("pow", "**", ufuncs.power, None),
    ("matmul", "@", _matmul, None),
    ("and", "&", logic.bitwise_and, _bitwise(operator.and_)),
    ("or", "|", logic.bitwise_or, _bitwise(operator.or_)),
    ("xor", "^", logic.bitwise_xor, _bitwise(operator.xor)),
    ("lshift", "<<", logic.left_shift, None),
    ("rshift", ">>", logic.right_shift, None),
)
_COMPARISONS: tuple[tuple[str, str, Method, Method], ...] = (
    ("eq", "==", logic.equal, _PYTHON.eq),
    ("ne", "!=", logic.not_equal, _PYTHON.ne),
    ("lt", "<", logic.less, _PYTHON.lt),
    ("le", "<=", logic.less_equal, _PYTHON.le),
    ("gt", ">", logic.greater, _PYTHON.gt),
    ("ge", ">=", logic.greater_equal, _PYTHON.ge),
)
_REFLECTED = {f"__{name}__": f"__r{name}__" for name, *_ in _BINARY}
_REFLECTED |= {reflected: name for name, reflected in _REFLECTED.items()}
_REFLECTED |= {"__lt__": "__gt__", "__gt__": "__lt__", "__le__": "__ge__", "__ge__": "__le__"}


def _round(self: Any, ndigits: int | None = None) -> Any:
    return ufuncs.round(self, ndigits or 0).astype(int) if ndigits is None else ufuncs.round(self, ndigits)


def attach() -> None:
    """Add the operators to ``Array``, ``ArrayImpl`` and ``CommittedArray``."""
    for name, symbol, function, compute in _BINARY:
        slot, reflected = f"__{name}__", f"__r{name}__"
        general = _deferring(slot, symbol, function)
        swapped = _deferring(reflected, symbol, function, reflected=True)
        setattr(Array, slot, general)
        setattr(Array, reflected, swapped)
        if compute is not None:
            setattr(ArrayImpl, slot, _eager(slot, compute, general))
            setattr(ArrayImpl, reflected, _eager_reflected(reflected, compute, swapped))
            setattr(CommittedArray, slot, general)
            setattr(CommittedArray, reflected, swapped)
    for name, symbol, function, compute in _COMPARISONS:
        slot = f"__{name}__"
        general = _deferring(slot, symbol, function)
        setattr(Array, slot, general)
        setattr(ArrayImpl, slot, _eager_comparison(slot, compute, general))
        setattr(CommittedArray, slot, general)
    array: Any = Array
    concrete: Any = ArrayImpl
    array.__hash__ = None
    concrete.__hash__ = None
    concrete.__pow__ = _eager_power(array.__pow__)
    concrete.__matmul__ = _eager_matmul(array.__matmul__)
    concrete.__neg__ = _eager_neg(ufuncs.negative)
    committed: Any = CommittedArray
    committed.__hash__ = None
    committed.__pow__ = array.__pow__
    committed.__matmul__ = array.__matmul__
    committed.__neg__ = _named(lambda self: ufuncs.negative(self), "__neg__")
    array.__neg__ = _named(lambda self: ufuncs.negative(self), "__neg__")
    array.__pos__ = _named(lambda self: ufuncs.positive(self), "__pos__")
    array.__abs__ = _named(lambda self: ufuncs.absolute(self), "__abs__")
    array.__invert__ = _named(lambda self: logic.invert(self), "__invert__")
    array.__round__ = _named(_round, "__round__")


attach()
