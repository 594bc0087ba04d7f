"""NumPy's own functions on Pullback's values, concrete and traced.

NumPy hands a call with one of our arrays among the operands to ``array_ufunc`` or ``array_function``, and these hand
it to the function of the same name in ``pullback.numpy``, so that ``grad(np.sin)`` works.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.array import Array
from pullback.core.errors import OperandError, UnsupportedFunctionError
from pullback.core.trace import Tracer

__all__: list[str] = []

_ALIASES = {"amax": "max", "amin": "min", "row_stack": "vstack", "round_": "round", "concat": "concatenate"}
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}

# What prints, writes, or asks about memory: these get NumPy arrays, which traced values cannot become.
_ON_THE_HOST = frozenset((
    "array2string", "array_repr", "array_str", "can_cast", "common_type", "copyto", "may_share_memory",
    "min_scalar_type", "save", "savetxt", "savez", "savez_compressed", "shares_memory",
))  # fmt: skip


def array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a NumPy ufunc, or of one of its methods.

    Raises:
      UnsupportedFunctionError: there is no such function here, or it cannot be done (a TypeError).

    >>> import pullback
    >>> import numpy as np
    >>> print(pullback.grad(np.sin)(0.0))
    1.0
    """
    name = ufunc.__name__
    out = kwargs.pop("out", None)
    if any(x is not None for x in (out if isinstance(out, tuple) else (out,))):
        # The user's own buffer, as in total += x: NumPy writes values into it, which traced arrays do not have.
        if any(isinstance(x, Tracer) for x in inputs):
            raise UnsupportedFunctionError(
                f"np.{name} cannot write a result computed from traced arrays into a NumPy array (out=, or an operator "
                f"such as +=); use the result, as in a = np.{name}(...)"
            )
        return getattr(ufunc, method)(*_on_the_host(inputs), out=out, **_on_the_host(kwargs))
    if method == "at":
        if isinstance(inputs[0], np.ndarray) and not any(isinstance(x, Tracer) for x in inputs):
            return ufunc.at(*_on_the_host(inputs))
        raise UnsupportedFunctionError(
            f"np.{name}.at changes its operand; use x.at[index] of Pullback's arrays instead"
        )
    for option in ("order", "subok", "casting"):
        kwargs.pop(option, None)
    if method == "__call__":
        return _call(name, inputs, kwargs)
    if method == "outer":
        return _outer(name, inputs, kwargs)
    if method in ("reduce", "accumulate"):
        known = (_REDUCTIONS if method == "reduce" else _ACCUMULATIONS).get(name)
        if known is not None:
            return _along_an_axis(_find("", known, f"np.{name}.{method}"), inputs, kwargs)
    raise UnsupportedFunctionError(f"np.{name}.{method} does not work on Pullback's arrays")


def _call(name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dtype = kwargs.pop("dtype", None)
    where = kwargs.pop("where", True)
    if where is not True:
        raise UnsupportedFunctionError(
            f"np.{name} does not take where= for Pullback's arrays; use pullback.numpy.where"
        )
    if kwargs:
        raise UnsupportedFunctionError(f"np.{name} does not take {', '.join(kwargs)} for Pullback's arrays")
    function = _find("", name, f"np.{name}")
    inputs = tuple(map(_from_list, inputs))
    if dtype is None:
        return function(*inputs)
    convert = _find("", "asarray", "np.asarray")
    return function(*(convert(x, dtype) for x in inputs))


def _outer(name: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pullback.numpy.promotion import operand
    from pullback.primitives.shapes import expand_dims

    x, y = (operand(f"np.{name}.outer", v) for v in inputs)
    rank = len(x.shape)
    return _call(name, (expand_dims(x, range(rank, rank + len(y.shape))), y), kwargs)


def _along_an_axis(function: Callable[..., Any], inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``ufunc.reduce(array, axis=0, ...)``, whose axis is the first by default, as the function's is not."""
    array, *rest = inputs
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    options = {"axis": 0, **dict(zip(names, rest)), **kwargs}
    return function(array, **{k: v for k, v in options.items() if k == "axis" or v is not None})


def array_function(function: Callable[..., Any], types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A call of one of NumPy's other functions.

    Raises:
      UnsupportedFunctionError: there is no such function here, or it cannot be done (a TypeError).

    >>> import pullback.numpy as pnp
    >>> import numpy as np
    >>> print(np.concatenate([pnp.ones(1), np.zeros(1)]))
    [1. 0.]
    """
    if not all(issubclass(kind, (Array, np.ndarray, np.generic)) for kind in types):
        return NotImplemented
    name = function.__name__
    module = function.__module__.removeprefix("numpy").lstrip(".")
    shown = ".".join(filter(None, ("np", module, name)))
    if name in _ON_THE_HOST and not module:
        return function(*_on_the_host(args), **_on_the_host(kwargs))
    if kwargs.get("out") is not None:
        leaves = tree.leaves((args, kwargs))
        if any(isinstance(x, Tracer) for x in leaves):
            raise UnsupportedFunctionError(f"{shown} cannot write traced arrays into out=; use the result")
        return function(*_on_the_host(args), **_on_the_host(kwargs))
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
    """An operand that is a list as an array: NumPy's functions take lists, and ours do not."""
    return _find("", "asarray", "np.asarray")(x) if isinstance(x, (list, tuple)) else x


def _on_the_host(values: Any) -> Any:
    return tree.tree_map(lambda x: np.asarray(x) if isinstance(x, Array) else x, values)


def _find(module: str, name: str, shown: str) -> Callable[..., Any]:
    """The function of ``pullback.numpy`` (or of a module in it) for one of NumPy's."""
    try:
        home = importlib.import_module(f"pullback.numpy.{module}" if module else "pullback.numpy")
    except ModuleNotFoundError:
        home = None
    found = getattr(home, name, None) or getattr(home, _ALIASES.get(name, name), None)
    if found is None:
        raise UnsupportedFunctionError(
            f"{shown} was called with Pullback's arrays, but pullback.numpy has no such function. "
            "Convert concrete arrays with np.asarray first; their derivatives are then lost."
        )
    return found  # type: ignore[no-any-return]
