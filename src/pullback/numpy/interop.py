"""NumPy's own functions on Pullback's values.

NumPy hands a call with one of our arrays among the operands to ``array_ufunc`` or ``array_function``. Concrete arrays
go back to NumPy as NumPy arrays, so that results are what NumPy returns, and can be written to. Where an operand is
traced, the function of the same name in ``pullback.numpy`` or ``pullback.scipy.special`` is called instead, so that
``grad(np.sin)`` works.
"""

from __future__ import annotations

import importlib
import opcode
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.array import Array, ArrayImpl, is_masked
from pullback.core.errors import ImmutableArrayError, OperandError, UnsupportedFunctionError
from pullback.core.source import is_internal
from pullback.core.trace import Tracer

__all__: list[str] = []

_ALIASES = {"amax": "max", "amin": "min", "row_stack": "vstack", "round_": "round", "concat": "concatenate"}
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}

# The ufuncs that NumPy calls for operators with a NumPy array on the left, and our reflected methods.
_OPERATORS: dict[Any, str] = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__", np.divmod: "__rdivmod__", np.power: "__rpow__",
    np.matmul: "__rmatmul__", np.bitwise_and: "__rand__", np.bitwise_or: "__ror__", np.bitwise_xor: "__rxor__",
    np.left_shift: "__rlshift__", np.right_shift: "__rrshift__", np.equal: "__eq__", np.not_equal: "__ne__",
    np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__",
}  # fmt: skip

# Functions that read only shapes, and need no elements.
_OF_THE_TYPE = frozenset((np.shape, np.ndim, np.size))

# Functions that print, write or inspect memory: they get NumPy arrays, to which traced values cannot be converted.
_NAMED = (np.savez, np.savez_compressed)
"""Functions whose keyword arguments are arrays under names that users choose, which may be ``out``."""
_ON_THE_HOST = frozenset((
    "array2string", "array_repr", "array_str", "can_cast", "common_type", "copyto", "may_share_memory",
    "min_scalar_type", "save", "savetxt", "savez", "savez_compressed", "shares_memory",
))  # fmt: skip


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Evaluate a call of a NumPy ufunc, or of one of its methods.

    An operator with a NumPy array on the left, as in ``a + x``, is also a call of a ufunc, and cannot be distinguished
    from ``np.add(a, x)``. It returns one of our arrays. So does ``a += x``, which binds ``a`` to the result, and does
    not change the NumPy array.

    Raises:
      ImmutableArrayError: the call would write into one of our arrays (a TypeError).
      UnsupportedFunctionError: an operand is traced, and Pullback has no such function (a TypeError).

    >>> import numpy as np
    >>> import pullback
    >>> import pullback.numpy as jnp
    >>> print(pullback.grad(np.sin)(0.0))
    1.0
    >>> np.sin(jnp.zeros(2))
    array([0., 0.], dtype=float32)
    >>> np.ones(2) + jnp.ones(2)
    Array([2., 2.], dtype=float32)
    """
    name = ufunc.__name__
    out = kwargs.get("out")
    outs = [x for x in (out if isinstance(out, tuple) else (out,)) if x is not None]
    if any(isinstance(x, Array) for x in outs):
        raise ImmutableArrayError(_no_writing(f"np.{name}"))
    traced = any(isinstance(x, Tracer) for x in inputs)
    if method == "at" and (traced or isinstance(inputs[0], Array)):
        raise UnsupportedFunctionError(f"np.{name}.at changes its operand; use x.at[index] instead")
    if outs and ufunc in _OPERATORS and _is_in_place(inputs, outs):
        return getattr(inputs[1], _OPERATORS[ufunc])(inputs[0])
    if not traced:
        if ufunc in _OPERATORS and _is_operator(method, inputs, kwargs):
            return getattr(inputs[1], _OPERATORS[ufunc])(inputs[0])
        return getattr(ufunc, method)(*map(_to_numpy, inputs), **{k: _to_numpy(v) for k, v in kwargs.items()})
    if outs:
        raise UnsupportedFunctionError(
            f"np.{name} cannot write a result of traced arrays into a NumPy array (out=, or an operator such as "
            f"+=); use the returned result, as in a = np.{name}(...)"
        )
    for option in ("out", "order", "subok", "casting"):
        kwargs.pop(option, None)
    if method == "__call__":
        return _call(ufunc, inputs, kwargs)
    if method == "outer":
        return _outer(ufunc, inputs, kwargs)
    if method in ("reduce", "accumulate"):
        known = (_REDUCTIONS if method == "reduce" else _ACCUMULATIONS).get(name)
        if known is not None:
            return _along_an_axis(_find("", known, f"np.{name}.{method}"), inputs, kwargs)
    raise UnsupportedFunctionError(f"np.{name}.{method} does not work on traced arrays")


def _is_operator(method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the call of a ufunc may come from an operator, such as ``a + x`` with a NumPy array ``a``.

    This is False for calls with options, and for masked arrays, which have operators of their own.
    """
    left = inputs[0]
    return method == "__call__" and not kwargs and isinstance(left, (np.ndarray, np.generic)) and not is_masked(left)


def _is_in_place(inputs: tuple[Any, ...], outs: list[Any]) -> bool:
    """Return whether the call of a ufunc comes from an operator such as ``a += x``, not from ``np.add(a, x, out=a)``.

    Here ``a`` is a NumPy array, and ``x`` one of this library. Both calls have the same arguments. So the current
    bytecode instruction of the caller is inspected; for callers without bytecode, such as C code, the result is False.
    """
    if len(inputs) != 2 or outs[0] is not inputs[0] or not isinstance(inputs[1], Array):
        return False
    caller: Any = sys._getframe(2)
    while caller is not None and is_internal(caller.f_code.co_filename):
        caller = caller.f_back
    if caller is None:
        return False
    at = caller.f_lasti
    code = caller.f_code.co_code
    return 0 <= at < len(code) - 1 and code[at] == _BINARY_OP and code[at + 1] in _INPLACE_OPERATORS


_BINARY_OP = opcode.opmap["BINARY_OP"]
_INPLACE_OPERATORS = range(13, 26)  # Python's NB_INPLACE_ADD, ..., NB_INPLACE_XOR


def _no_writing(name: str) -> str:
    return (
        f"{name} cannot write into a Pullback array, which is immutable: use the returned result or "
        f"x.at[index].set(...), or write into a NumPy array, such as np.array(x)"
    )


def _to_numpy(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, ArrayImpl) else x


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = ufunc.__name__
    dtype = kwargs.pop("dtype", None)
    where = kwargs.pop("where", True)
    if where is not True:
        raise UnsupportedFunctionError(f"np.{name} does not take where= for traced arrays; use pullback.numpy.where")
    if kwargs:
        raise UnsupportedFunctionError(f"np.{name} does not take {', '.join(kwargs)} for traced arrays")
    function = _function_for(ufunc)
    inputs = tuple(map(_from_list, inputs))
    if dtype is None:
        return function(*inputs)
    convert = _find("", "asarray", "np.asarray")
    return function(*(convert(x, dtype) for x in inputs))


def _function_for(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return this library's function for a ufunc of NumPy or of ``scipy.special``; raise if there is none."""
    name = ufunc.__name__
    special = sys.modules.get("scipy.special")
    if getattr(special, name, None) is not ufunc:
        return _find("", name, f"np.{name}")
    found = getattr(importlib.import_module("pullback.scipy.special"), name, None)
    if found is None:
        raise UnsupportedFunctionError(
            f"scipy.special.{name} was called with traced arrays, but pullback.scipy.special has no such function"
        )
    return found  # type: ignore[no-any-return]


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pullback.numpy.promotion import operand
    from pullback.primitives.arrays.shapes import expand_dims

    x, y = (operand(f"np.{ufunc.__name__}.outer", v) for v in inputs)
    rank = len(x.shape)
    return _call(ufunc, (expand_dims(x, range(rank, rank + len(y.shape))), y), kwargs)


def _along_an_axis(function: Callable[..., Any], inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``function`` with the arguments of a call ``ufunc.reduce(array, axis, ...)``, whose default axis is 0."""
    array, *rest = inputs
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    options = {"axis": 0, **dict(zip(names, rest)), **kwargs}
    return function(array, **{k: v for k, v in options.items() if k == "axis" or v is not None})


def array_function(function: Callable[..., Any], types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Evaluate a call of a NumPy function that is not a ufunc.

    Raises:
      ImmutableArrayError: the call would write into one of our arrays (a TypeError).
      UnsupportedFunctionError: an operand is traced, and Pullback has no such function (a TypeError).

    >>> import numpy as np
    >>> import pullback
    >>> import pullback.numpy as jnp
    >>> np.concatenate([jnp.ones(1), jnp.zeros(1)])
    array([1., 0.], dtype=float32)
    >>> print(pullback.grad(lambda x: np.sum(np.concatenate([x, x])))(jnp.ones(1)))
    [2.]
    """
    if not all(issubclass(kind, (Array, np.ndarray, np.generic)) for kind in types):
        return NotImplemented
    name = function.__name__
    module = function.__module__.removeprefix("numpy").lstrip(".")
    shown = ".".join(filter(None, ("np", module, name)))
    out = None if function in _NAMED else kwargs.get("out")
    if any(isinstance(x, Array) for x in (out if isinstance(out, tuple) else (out,))):
        raise ImmutableArrayError(_no_writing(shown))
    if not any(isinstance(x, Tracer) for x in tree.leaves((args, kwargs))):
        if function in _OF_THE_TYPE:
            return _find("", name, shown)(*args, **kwargs)
        try:
            return function(*_on_the_host(args), **_on_the_host(kwargs))
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise ImmutableArrayError(_no_writing(shown)) from None
    if name in _ON_THE_HOST and not module:
        return function(*_on_the_host(args), **_on_the_host(kwargs))
    if out is not None:
        raise UnsupportedFunctionError(f"{shown} cannot write traced arrays into out=; use the returned result")
    found = _find(module, name, shown)
    try:
        return found(*args, **kwargs)
    except OperandError as error:
        if not any(isinstance(x, (list, tuple)) for x in args):
            raise
        try:
            return found(*map(_from_list, args), **kwargs)
        except (TypeError, ValueError):
            raise error from None


def _from_list(x: Any) -> Any:
    """Convert a list to an array: NumPy's functions take lists, and this library's do not. Return others unchanged."""
    return _find("", "asarray", "np.asarray")(x) if isinstance(x, (list, tuple)) else x


def _on_the_host(values: Any) -> Any:
    return tree.tree_map(lambda x: np.asarray(x) if isinstance(x, Array) else x, values)


def _find(module: str, name: str, shown: str) -> Callable[..., Any]:
    """Return the function of this library that corresponds to NumPy's function ``name``; raise if there is none.

    Args:
      module: the submodule of ``numpy``, such as "linalg"; empty for ``numpy`` itself.
      name: the name of the function.
      shown: the full name of the function, for the error.
    """
    try:
        home = importlib.import_module(f"pullback.numpy.{module}" if module else "pullback.numpy")
    except ModuleNotFoundError:
        home = None
    found = getattr(home, name, None) or getattr(home, _ALIASES.get(name, name), None)
    if found is None:
        raise UnsupportedFunctionError(
            f"{shown} was called with traced arrays, but pullback.numpy has no such function. NumPy's function "
            f"takes concrete arrays only; compiled programs can call it with pullback.pure_callback."
        )
    return found  # type: ignore[no-any-return]
