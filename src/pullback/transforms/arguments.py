"""What the transformations share: choosing arguments, flattening them, and checking what comes out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, source, tree
from pullback.core.array import SCALARS, Array, ArrayImpl, as_array, from_scalar, typeof
from pullback.core.errors import ArgumentError, NotDifferentiableError, OperandError, TangentMismatchError
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import zeros_of

Argnums = int | Sequence[int]


def name_of(fun: Any) -> str:
    """The name of a function in an error message."""
    return source.describe_function(fun)


def wraps(fun: Any, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Give a transformed function the name, documentation and signature of the original (quickly)."""
    name = getattr(fun, "__name__", None)
    if name is not None:
        wrapper.__name__ = name
    wrapper.__wrapped__ = fun  # type: ignore[attr-defined]
    doc = getattr(fun, "__doc__", None)
    if doc is not None:
        wrapper.__doc__ = doc
    return wrapper


def check_callable(fun: Any, transformation: str) -> None:
    """Refuse what cannot be called."""
    if not callable(fun):
        raise ArgumentError(f"{transformation} takes a function, got {fun!r} of type {type(fun).__name__}")


def check_argnums(argnums: Any, transformation: str) -> int | tuple[int, ...]:
    """``argnums`` as an int or a tuple of ints."""
    if type(argnums) is int:
        return argnums
    try:
        if isinstance(argnums, (tuple, list)):
            if not argnums:
                raise ArgumentError(f"{transformation}: argnums must name at least one argument, got {argnums!r}")
            return tuple(operator.index(i) for i in argnums)
        return operator.index(argnums)
    except TypeError as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"{transformation}: argnums must be an int or a tuple of ints, got {argnums!r} of type {type(argnums).__name__}"
        ) from None


def positions(argnums: int | tuple[int, ...], count: int, transformation: str, fun: Any) -> tuple[int, ...]:
    """``argnums`` as positions that are not negative, checked against the number of arguments."""
    if isinstance(argnums, int):
        if 0 <= argnums < count:
            return (argnums,)
        nums: tuple[int, ...] = (argnums,)
    else:
        nums = argnums
    for i in nums:
        if not -count <= i < count:
            raise ArgumentError(
                f"{transformation} with respect to argnums={argnums} needs at least {i + 1 if i >= 0 else -i} positional "
                f"arguments, but {name_of(fun)} was called with {count}. Arguments given by keyword are not differentiated."
            )
    resolved = tuple(i % count for i in nums)
    if len(set(resolved)) != len(resolved):
        raise ArgumentError(f"{transformation}: argnums={argnums} names an argument twice")
    return resolved


def to_array(x: Any, fun: Any, transformation: str) -> Any:
    """A leaf of an argument as an array."""
    if type(x) is ArrayImpl:
        return x
    if type(x) in SCALARS:
        return from_scalar(x)
    try:
        return as_array(x)
    except OperandError as error:
        raise OperandError(f"{transformation} of {name_of(fun)}: {error}") from None


def check_differentiable(
    aval: ShapedArray, transformation: str, fun: Any, holomorphic: bool, allow_int: bool, where: str
) -> None:
    """Refuse inputs that cannot be differentiated with respect to, as asked."""
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise NotDifferentiableError(
                f"{transformation} with holomorphic=True needs complex inputs, but {where} of {name_of(fun)} is {aval}"
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        raise NotDifferentiableError(
            f"{transformation} needs real or complex inputs, but {where} of {name_of(fun)} is {aval}. "
            "Give it floats (2. instead of 2), leave it out of argnums, or set allow_int=True for a gradient of type float0."
        )


def out_leaf(x: Any, fun: Any) -> Any:
    """A leaf of a result as an array."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except OperandError as error:
        raise OperandError(f"{name_of(fun)} returned something that is not an array: {error}") from None


def split_aux(out: Any, fun: Any) -> tuple[Any, Any]:
    """The parts of ``(out, aux)``."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise ArgumentError(
            f"with has_aux=True {name_of(fun)} must return a pair (out, aux), but it returned {type(out).__name__}"
        )
    return out[0], out[1]


def zero_cotangent(aval: ShapedArray) -> Any:
    """A dense zero gradient for an input: of type float0 if it is not differentiable."""
    dtype = dtypes.tangent_dtype(aval.dtype)
    if dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return zeros_of(aval.update(dtype=dtype))


def dense(ct: Any, primal: Any) -> Any:
    """A cotangent, made dense if it is the symbolic zero."""
    return zero_cotangent(typeof(primal)) if ct is ZERO else ct


def is_float0(x: Any) -> bool:
    return getattr(x, "dtype", None) == dtypes.float0


def to_tangent(t: Any, aval: ShapedArray, what: str, place: Callable[[], str]) -> Any:
    """A tangent or cotangent of a value of a given type; ``ZERO`` for one of type float0.

    Args:
      t: what was given.
      aval: the type of the value that it belongs to.
      what: tangent or cotangent.
      place: says where it was given, if there is an error.
    """
    expected = dtypes.tangent_dtype(aval.dtype)
    if isinstance(t, Array) and t.shape == aval.shape and t.dtype == expected:
        return t
    where = place()
    if is_float0(t):
        if dtypes.is_inexact(aval.dtype):
            raise TangentMismatchError(f"{where}: the value is {aval}, so its {what} must not be of type float0")
        if t.shape != aval.shape:
            raise TangentMismatchError(f"{where}: the value has shape {aval.shape}, but its {what} has shape {t.shape}")
        return ZERO
    try:
        t = as_array(t)
    except OperandError as error:
        raise OperandError(f"{where}: {error}") from None
    if t.shape != aval.shape:
        raise TangentMismatchError(f"{where}: the value has shape {aval.shape}, but its {what} has shape {t.shape}")
    if t.dtype != expected:
        raise TangentMismatchError(
            f"{where}: the value has dtype {dtypes.short_name(aval.dtype)}, so its {what} must have dtype "
            f"{dtypes.short_name(expected)}, but it has {dtypes.short_name(t.dtype)}"
        )
    return t


def flatten_one(x: Any) -> tuple[list[Any], Any]:
    """``tree.flatten``, quick for a single leaf; the tree is then None."""
    if type(x) is ArrayImpl or type(x) in SCALARS or isinstance(x, Array):
        return [x], None
    return tree.flatten(x)


def unflatten_one(treedef: Any, leaves: Sequence[Any]) -> Any:
    """The inverse of :func:`flatten_one`."""
    return leaves[0] if treedef is None else tree.unflatten(treedef, leaves)
