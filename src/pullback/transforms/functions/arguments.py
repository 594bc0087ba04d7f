"""Helpers of all transformations: selecting, flattening and checking arguments and results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.backends.devices.meshes import needed_mesh
from pullback.backends.devices.shardings import NamedSharding, PartitionSpec
from pullback.core import dtypes, source, tree
from pullback.core.array import (
    SCALARS,
    Array,
    ArrayImpl,
    as_array,
    as_value,
    fresh,
    from_scalar,
    is_literal,
    is_on_host,
    refuse_masked,
    scalar_array,
    signature,
    typeof,
)
from pullback.core.dims import any_symbolic
from pullback.core.errors import (
    ArgumentError,
    DtypeError,
    NotDifferentiableError,
    OperandError,
    RefError,
    TangentMismatchError,
)
from pullback.core.refs import RefCell
from pullback.core.types import ZERO, AbstractValue, ShapedArray
from pullback.core.user_types import HiType, has_tangents, is_user_value
from pullback.core.zeros import zeros_of
from pullback.primitives.elementwise import convert_element_type

Argnums = int | Sequence[int]


def name_of(fun: Any) -> str:
    """Return the name of a function for an error message."""
    return source.describe_function(fun)


def check_argnums(argnums: Any, transformation: str, option: str = "argnums") -> int | tuple[int, ...]:
    """Return ``argnums`` as an int or a tuple of ints; raise unless it is an int, or a tuple or list of ints.

    ``transformation`` and ``option`` name the function and its option in the error message.
    """
    if type(argnums) is int:
        return argnums
    many = isinstance(argnums, (tuple, list))
    try:
        if many and argnums and bool not in map(type, argnums):
            return tuple(operator.index(i) for i in argnums)
        if not many and type(argnums) is not bool:
            return operator.index(argnums)
    except TypeError:
        pass
    raise ArgumentError(
        f"{transformation}: {option} must be an int or a tuple of at least one int, the positions of arguments, "
        f"got {argnums!r} of type {type(argnums).__name__}"
    )


def positions(argnums: int | tuple[int, ...], count: int, transformation: str, fun: Any) -> tuple[int, ...]:
    """Return the positions ``argnums`` as a tuple of nonnegative ints; negative ones count from the end.

    Args:
      argnums: a position, or several.
      count: the number of arguments.
      transformation, fun: the name of the transformation, and the function, for error messages.

    Raises:
      ArgumentError: a position is out of range, or occurs twice.
    """
    nums = (argnums,) if isinstance(argnums, int) else argnums
    for i in nums:
        if not -count <= i < count:
            least = i + 1 if i >= 0 else -i
            raise ArgumentError(
                f"{transformation} with respect to argnums={argnums} needs at least {least} positional "
                f"argument{'s' * (least > 1)}, but {name_of(fun)} was called with {count}. Keyword arguments are "
                f"not differentiated."
            )
    resolved = tuple(i % count for i in nums)
    if len(set(resolved)) != len(resolved):
        raise ArgumentError(f"{transformation}: argnums={argnums} names an argument of {name_of(fun)} twice")
    return resolved


def check_chunk_size(chunk_size: Any, transformation: str) -> None:
    """Raise unless ``chunk_size`` is None or a positive int."""
    if chunk_size is not None and (type(chunk_size) is not int or chunk_size < 1):
        raise ArgumentError(f"{transformation}: chunk_size must be a positive int, or None for all, got {chunk_size!r}")


def argument_name(
    index: int, fun: Any, args: Sequence[Any], where: Sequence[int] | None = None, kwargs: Any = None
) -> str:
    """Name a leaf of the arguments for an error message, as in ``argument 0 (params['w'])``.

    Args:
      index: the index of the leaf among the leaves of the positional arguments, followed by the leaves of ``kwargs``.
      fun: the function, whose parameter names are used.
      args: the positional arguments.
      where: the positions in ``args`` of the arguments whose leaves are counted; None for all.
      kwargs: the keyword arguments.
    """
    parameters = _parameters(fun)
    names = []
    for i in range(len(args)) if where is None else where:
        name = parameters[i] if i < len(parameters) else ""
        for path, _ in tree.leaves_with_path(args[i]):
            names.append(f"argument {i} ({name}{tree.keystr(path)})" if name else f"argument {i}{tree.keystr(path)}")
    for path, _ in tree.leaves_with_path(kwargs or {}):
        names.append(f"argument {path[0].key}{tree.keystr(path[1:])}")
    return names[index]


def _parameters(fun: Any) -> list[str]:
    """Return the names of a function's positional parameters; empty if the function has no signature."""
    try:
        parameters = source.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def to_arrays(
    leaves: Sequence[Any],
    transformation: str,
    fun: Any,
    args: Sequence[Any],
    where: Sequence[int] | None = None,
    kwargs: Any = None,
) -> list[Any]:
    """Convert leaves of arguments to arrays; raise an error that names the argument if a leaf is no array.

    Args:
      leaves: the leaves of the positional arguments at ``where``, followed by those of ``kwargs``.
      transformation, fun: the name of the transformation, and the function, for error messages.
      args: all positional arguments.
      where: the positions in ``args`` of the arguments whose leaves are converted; None for all.
      kwargs: the keyword arguments.
    """
    try:
        return [x if isinstance(x, Array) else from_scalar(x) if type(x) in SCALARS else as_value(x) for x in leaves]
    except OperandError:
        for i, x in enumerate(leaves):  # once more, to find the leaf that failed
            try:
                as_value(x)
            except OperandError as error:
                argument = argument_name(i, fun, args, where, kwargs)
                raise type(error)(f"{transformation} of {name_of(fun)}, {argument}: {error}") from None
        raise


def abstractify(x: Any) -> ShapedArray:
    """Return the type of an array, a number, or any object with a shape and a dtype."""
    if is_user_value(x) or isinstance(x, HiType):
        return x if isinstance(x, HiType) else typeof(x)  # type: ignore[return-value]
    if type(x) is RefCell:  # made from the description of a reference
        return x.inner  # type: ignore[no-any-return]
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, Array):
        refuse_masked(x)
        try:
            dtype = dtypes.canonicalize_dtype(x.dtype)
        except DtypeError as error:
            raise OperandError(f"expected an array of numbers, got {x!r} of type {type(x).__name__}: {error}") from None
        sharding = getattr(x, "sharding", None)
        if isinstance(sharding, PartitionSpec):
            sharding = NamedSharding(needed_mesh("ShapeDtypeStruct", repr(sharding), abstract=True), sharding)
        typed = sharding if isinstance(sharding, NamedSharding) else None
        return ShapedArray(tuple(x.shape), dtype, getattr(x, "weak_type", False), sharding=typed)
    return typeof(x)


def check_differentiable(
    aval: ShapedArray, transformation: str, fun: Any, holomorphic: bool, allow_int: bool, describe: Callable[[], str]
) -> None:
    """Raise unless an input of type ``aval`` can be differentiated.

    Args:
      aval: the type.
      transformation, fun: the name of the transformation, and the function, for the error message.
      holomorphic: whether the input must be complex; otherwise it must be real or complex.
      allow_int: whether inputs of other dtypes are allowed, unless ``holomorphic``.
      describe: returns the name of the input, for the error message.
    """
    if not isinstance(aval, ShapedArray) and has_tangents(aval) and not holomorphic:
        return
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise NotDifferentiableError(
                f"{transformation} with holomorphic=True needs complex inputs, but {describe()} of {name_of(fun)} has "
                f"dtype {dtypes.dtype_name(dtype)}. Convert it to a complex dtype, or leave holomorphic out."
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        instead = ""
        if transformation != "linear_transpose":
            instead += ", or leave it out of argnums"
        if transformation in ("grad", "value_and_grad", "jacrev"):
            instead += "; allow_int=True returns a gradient of type float0 for it"
        raise NotDifferentiableError(
            f"{transformation} needs real or complex inputs, but {describe()} of {name_of(fun)} is {aval}. "
            f"Pass floats (2. instead of 2){instead}."
        )


def out_leaf(x: Any, fun: Any) -> Any:
    """Convert a leaf of a result of ``fun`` to an array; raise if it is a reference or no array."""
    if isinstance(x, Array):
        return x
    if isinstance(x, RefCell):
        raise RefError(
            f"{name_of(fun)} returned {x.described()}. A transformed function cannot return a reference: return its "
            f"content, ref[...]; or make the reference outside and pass it as an argument."
        )
    try:
        return as_value(x)
    except OperandError as error:
        raise type(error)(
            f"{name_of(fun)} returned something that is not an array: {error} A transformed function returns arrays, "
            "numbers, or trees of them."
        ) from None


def split_aux(out: Any, fun: Any) -> tuple[Any, Any]:
    """Split the result of a function with ``has_aux=True`` into output and auxiliary data; raise if it is no pair.

    ``fun`` is the function, for the error message.
    """
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        what = f"a {type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) else repr(out)
        raise ArgumentError(f"with has_aux=True {name_of(fun)} must return a pair (out, aux), but it returned {what}")
    return out[0], out[1]


def zero_cotangent(aval: Any) -> Any:
    """Return an array of zeros, the gradient of an input of type ``aval``.

    Its dtype is float0 if the input is not real or complex.
    """
    if not isinstance(aval, ShapedArray):  # the type of values of a user's
        aval = aval.to_ct_aval()
        if not isinstance(aval, ShapedArray):
            return zeros_of(aval)
    dtype = dtypes.tangent_dtype(aval.dtype)
    if dtype == dtypes.float0 and not any_symbolic(aval.shape):
        return np.zeros(aval.shape, dtypes.float0)
    return zeros_of(aval.update(dtype=dtype) if aval.explicit is None else aval.to_ct_aval())


def dense(ct: Any, primal: Any) -> Any:
    """Return the tangent or cotangent ``ct`` as an array, also if it is ``ZERO``.

    The array has the weak type of the primal value; ``primal`` is this value or its type.
    """
    if ct is ZERO:
        return zero_cotangent(primal if isinstance(primal, AbstractValue) else typeof(primal))
    try:
        return ct if ct.weak_type == primal.weak_type else as_weak(ct, primal.weak_type)
    except AttributeError:
        if is_user_value(primal) or is_user_value(ct):
            return ct
        raise


def as_weak(x: Any, weak_type: bool) -> Any:
    """Return the array ``x``, with ``weak_type`` as its weak type."""
    if is_on_host(x):
        return scalar_array(x._host_value, weak_type) if is_literal(x) else ArrayImpl(x._host_value, weak_type)
    if isinstance(x, ArrayImpl):  # not on the host, perhaps not computed yet: change the type without waiting
        sig = x._signature
        x = fresh(x)
        x._signature = sig = signature(sig.aval.shape, sig.aval.dtype, weak_type, sig.placement)
        x._host_value = sig.absent
        x.weak_type = weak_type
        return x
    return convert_element_type(x, x.dtype, weak_type)


def is_float0(x: Any) -> bool:
    """Whether ``x`` is an array of dtype float0, the tangent of an integer or boolean."""
    return getattr(x, "dtype", None) == dtypes.float0


def to_tangent(t: Any, aval: ShapedArray, what: str, describe: Callable[[], str]) -> Any:
    """Convert a tangent or cotangent from the user to an array; return ``ZERO`` if it is an array of dtype float0.

    Raise unless its shape and dtype fit the primal value.

    Args:
      t: the tangent or cotangent.
      aval: the type of the primal value.
      what: ``"tangent"`` or ``"cotangent"``, for errors.
      describe: returns the name of the argument, for errors.
    """
    if not isinstance(aval, ShapedArray):
        return _user_tangent(t, aval.to_tangent_aval(), describe)
    expected = dtypes.tangent_dtype(aval.dtype)
    if not isinstance(t, Array) and not is_float0(t):
        try:
            t = as_array(t)
        except OperandError as error:
            raise type(error)(f"{describe()}: {error}") from None
    if t.shape == aval.shape and t.dtype == expected:
        return t if isinstance(t, Array) else ZERO
    if expected == dtypes.float0:
        hint = f"; pass np.zeros({aval.shape}, pullback.float0)"
    elif t.shape == aval.shape:
        hint = "; convert it, with astype for example"
    else:
        hint = ""
    raise TangentMismatchError(f"{describe()}: {mismatch('the value', aval, what, t)}{hint}")


def _user_tangent(t: Any, expected: Any, describe: Callable[[], str]) -> Any:
    """Check a tangent or cotangent of a value of a user's type, whose own type must be ``expected``; return it."""
    if is_float0(t):
        return ZERO
    t = t if isinstance(t, Array) else as_value(t)
    found = typeof(t)
    arrays = isinstance(found, ShapedArray) and isinstance(expected, ShapedArray)
    if (found.shape, found.dtype) != (expected.shape, expected.dtype) if arrays else found != expected:
        raise TangentMismatchError(f"{describe()}: it must be of type {expected}, but it is {found}")
    return t


def mismatch(value: str, aval: ShapedArray, what: str, t: Any) -> str:
    """Describe, for an error message, that ``t`` does not have the tangent type of a primal value.

    Args:
      value: the name of the primal value.
      aval: the type of the primal value.
      what: ``"tangent"`` or ``"cotangent"``.
      t: the tangent or cotangent.
    """
    wanted, got = aval.update(dtype=dtypes.tangent_dtype(aval.dtype)), aval.update(shape=t.shape, dtype=t.dtype)
    return f"{value} is {aval}, so its {what} must be {wanted}, but it is {got}"


def flatten_one(x: Any) -> tuple[list[Any], Any]:
    """Flatten ``x``: return its leaves and its tree, or None instead of the tree if ``x`` is a single array or number.

    For a single array, this is faster than ``tree.flatten``.
    """
    if type(x) is ArrayImpl or type(x) in SCALARS or isinstance(x, Array):
        return [x], None
    return tree.flatten(x)


def structure_of(treedef: Any) -> Any:
    """Return ``treedef``, or for None the tree structure of a single leaf.

    :func:`flatten_one` returns None instead of the tree of a single array.
    """
    return tree.structure(0) if treedef is None else treedef


def unflatten_one(treedef: Any, leaves: Sequence[Any]) -> Any:
    """Rebuild a tree from its leaves; if ``treedef`` is None, return the single leaf."""
    return leaves[0] if treedef is None else tree.unflatten(treedef, leaves)
