"""Declarations of special functions: the name, the operands, a sentence and an example of each.

A declared function promotes its operands to arrays of one inexact dtype, and hands them to ``compute``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.docs import describe, with_sections
from pullback.core.errors import DtypeError
from pullback.core.trace import state
from pullback.numpy.declare import Binary as Binary
from pullback.numpy.declare import Unary as Unary
from pullback.numpy.promotion import inexact_operand, inexact_operands, strong
from pullback.primitives.checks import broadcast_shape
from pullback.primitives.special.precision import doubled
from pullback.scipy.arguments import on_host

Function = Callable[..., Any]
Unaries = Callable[[ArrayLike], tuple[Array, ...]]
Binaries = Callable[[ArrayLike, ArrayLike], tuple[Array, ...]]
Ternaries = Callable[[ArrayLike, ArrayLike, ArrayLike], tuple[Array, ...]]
Ternary = Callable[[ArrayLike, ArrayLike, ArrayLike], Array]
Quaternary = Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], Array]

_NEITHER = "neither an array nor a number (a TypeError)."
_MAKERS: dict[int, Callable[[Function], Function]] = {
    1: lambda f: lambda x, /: f(x),
    2: lambda f: lambda x, y, /: f(x, y),
    3: lambda f: lambda x, y, z, /: f(x, y, z),
    4: lambda f: lambda x, y, z, w, /: f(x, y, z, w),
}


def declared(
    module: str, name: str, operands: str, compute: Function, sentence: str, example: tuple[str, str], *,
    note: str = "", results: int = 1, is_complex: bool = False,
) -> Any:  # fmt: skip
    """Make a public function.

    Args:
      module: the name of the module that it belongs to.
      name: its name.
      operands: the names of its operands, separated by commas.
      compute: a function of arrays of one inexact dtype.
      sentence: the first sentence of the docstring.
      example: the operands of an example, and what it prints, with four digits.
      note: more sentences for the docstring, such as the source of the method.
      results: the number of results; more than one are a tuple.
      is_complex: whether operands may be complex numbers.
    """

    host = getattr(compute, "host", None)

    def function(*xs: Any) -> Any:
        if host is not None:
            found = _of_doubles(host, xs)
            if found is not None:
                return found
        arrays = [inexact_operand(name, xs[0])] if len(xs) == 1 else inexact_operands(name, *xs)
        if not is_complex and dtypes.is_complex(arrays[0].dtype):
            raise DtypeError(f"{name} takes real numbers, got {dtypes.short_name(arrays[0].dtype)}")
        broadcast_shape(name, [x.shape for x in arrays])
        return compute(*[strong(x) if x.weak_type else x for x in arrays])

    return documented(
        function, module, name, operands, sentence, example, note=note, results=results, is_complex=is_complex
    )


def documented(
    function: Function, module: str, name: str, operands: str, sentence: str, example: tuple[str, str], *,
    note: str = "", results: int = 1, is_complex: bool = False,
) -> Any:  # fmt: skip
    """Make a public function of positional operands from ``function(*operands)``; see :func:`declared`."""
    names = operands.split(", ")
    public = _MAKERS[len(names)](function)
    returned = Array if results == 1 else tuple[(Array,) * results]  # type: ignore[misc]
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY, annotation=ArrayLike) for n in names]
    public.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
    public.__annotations__ = {**dict.fromkeys(names, ArrayLike), "return": returned}
    return describe(public, name, _text(name, names, sentence, example, note, results, is_complex), module=module)


def _text(
    name: str, names: list[str], sentence: str, example: tuple[str, str], note: str, results: int, is_complex: bool
) -> str:
    numbers = "floats or complex numbers" if is_complex else "floats"
    one = len(names) == 1
    takes = f"{names[0]}: an array of {numbers}, or a Python number." if one else (
        f"{', '.join(names)}: arrays of {numbers}, or Python numbers; their shapes broadcast."
    )  # fmt: skip
    count = {1: "An array", 2: "Two arrays", 3: "Three arrays", 4: "Four arrays"}[results]
    shape = f"the shape of ``{names[0]}``" if one else "the shape to which the operands broadcast"
    raises = f"OperandError: an operand is {_NEITHER}"
    if not is_complex:
        raises += "\nDtypeError: an operand is complex (a TypeError)."
    if not one:
        raises += "\nShapeError: the shapes do not broadcast (a TypeError and a ValueError)."
    text = with_sections(
        sentence, f"{takes}\n  Integers and booleans become floats.", f"{count} of {numbers}, of {shape}.", raises
    )
    call = f"special.{name}({example[0]})"
    shown = f'print(f"{{{call}:.4f}}")' if results == 1 else f"print(*(f'{{y:.4f}}' for y in {call}))"
    return f"{text}\n\n{note}\n\n>>> from pullback.scipy import special\n>>> {shown}\n{example[1]}\n"


def now(host: Function, *xs: Any) -> Any:
    """Return ``host`` of the elements of concrete arrays, in double precision and rounded once; None if one is traced.

    ``host`` returns an array, or a tuple of arrays.
    """
    values = on_host(*xs)
    if values is None:
        return None
    dtype = values[0].dtype
    double = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    if dtype is not double:
        values = [v.astype(double) for v in values]
    return _rounded(state.silently(host, *values), dtype)


def _rounded(found: Any, dtype: Any) -> Any:
    """Return an array, or a tuple of arrays, of NumPy's as ours of a dtype."""
    if type(found) is np.ndarray and found.dtype is dtype:
        return ArrayImpl(found)
    if isinstance(found, tuple):
        return tuple(ArrayImpl(np.asarray(y).astype(dtype, copy=False)) for y in found)
    return ArrayImpl(np.asarray(found).astype(dtype, copy=False))


def _of_doubles(host: Function, xs: Sequence[Any]) -> Any:
    """Return what :func:`now` does for arrays of double precision and one shape, after fewer checks; else None."""
    values = []
    shape = None
    for x in xs:
        value = x._host_value if type(x) is ArrayImpl and not x.weak_type else None
        if type(value) is not np.ndarray or value.dtype is not _DOUBLE or value.shape != (shape or value.shape):
            return None
        shape = value.shape
        values.append(value)
    return _rounded(state.silently(host, *values), _DOUBLE)


_DOUBLE = np.dtype(np.float64)


def composed(host: Function, formula: Function) -> Function:
    """Make a function of arrays: ``host`` if they are concrete, and else ``formula`` in double precision."""
    exact = doubled(formula)

    def compute(*xs: Any) -> Any:
        found = now(host, *xs)
        return exact(*xs) if found is None else found

    compute.host = host  # type: ignore[attr-defined]
    return compute
