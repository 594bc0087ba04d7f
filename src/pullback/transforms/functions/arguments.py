"""What the transformations share: choosing arguments, flattening them, and checking what comes out."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from pullback.core import dtypes, source, tree
from pullback.core.array import SCALARS, Array, ArrayImpl, DeviceArray, as_array, fresh, from_scalar, signature, typeof
from pullback.core.errors import ArgumentError, NotDifferentiableError, OperandError, TangentMismatchError
from pullback.core.registry import OwnsPrograms
from pullback.core.types import ZERO, ShapedArray
from pullback.core.zeros import zeros_of
from pullback.primitives.elementwise import convert_element_type

Argnums = int | Sequence[int]
P = ParamSpec("P")
R = TypeVar("R")


def name_of(fun: Any) -> str:
    """The name of a function in an error message."""
    return source.describe_function(fun)


watching: list[Callable[..., Any]] = []
"""Where it is not empty, its last element runs calls of transformed functions: ``watch(call, args, kwargs)``."""

# Entrances ---------------------------------------------------------------------------------------------------------


class Transformed(OwnsPrograms):
    """What a transformation returns: a function with the name and signature of the original.

    It can be pickled where the original can: by reference if it is found under its own name, as decorated functions
    are, and else by the transformation and what that was given.
    """

    def __init__(
        self, fun: Any, call: Callable[[tuple[Any, ...], dict[str, Any]], Any], again: tuple[Any, ...]
    ) -> None:
        self._call = call
        self._again = again
        if type(fun) is FunctionType:  # written out: transformations are often called in the place where they are used
            self.__name__ = fun.__name__
            self.__qualname__ = fun.__qualname__
            self.__module__ = fun.__module__
            self.__doc__ = fun.__doc__
            self.__wrapped__ = fun
        else:
            copy_name(self, fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._call(args, kwargs) if not watching else watching[-1](self._call, (args, kwargs), {})
        except Exception as error:
            source.hide_internal_frames(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return qualified_name(self) or self._again

    def __repr__(self) -> str:
        return f"<transformed {name_of(self.__wrapped__)}>"


tree.register_leaf_type(Transformed)


def transformed(
    fun: Any, call: Callable[[tuple[Any, ...], dict[str, Any]], Any], maker: Any = None, *options: Any
) -> Callable[..., Any]:
    """The function that a transformation returns: ``call(args, kwargs)``, with the name and signature of the original.

    Errors leave it without Pullback's own frames.

    Args:
      fun: the original.
      call: what to do.
      maker: the transformation; ``maker(fun, *options)`` makes an equal function, from a pickle of this one. None if
        the function is for one use.
      options: see ``maker``.
    """
    return Transformed(fun, call, (maker, (fun, *options)))


def copy_name(target: Any, fun: Any) -> None:
    """Give an object the name, the module and the docstring of a function."""
    attributes = target.__dict__
    attributes["__wrapped__"] = fun
    own = getattr(fun, "__dict__", attributes)
    for name in _NAMES:
        value = own[name] if name in own else getattr(fun, name, None)
        if value is not None:
            attributes[name] = value


_NAMES = "__name__", "__qualname__", "__module__", "__doc__"


def qualified_name(x: Any) -> str | None:
    """The name under which an object is found in its module, by which ``pickle`` refers to it; None if it is not."""
    name = getattr(x, "__qualname__", None)
    found: Any = sys.modules.get(x.__module__)
    if name is None or found is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is x else None


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors out of a public function without Pullback's own frames."""
    hide, watches = source.hide_internal_frames, watching

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs) if not watches else watches[-1](function, args, kwargs)
        except Exception as error:
            hide(error)
            raise

    # With the globals of its module, for doctest and others that ask a function where it is from.
    own = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.wraps(function)(own)


# What is wrong with arguments --------------------------------------------------------------------------------------


def check_callable(fun: Any, transformation: str) -> None:
    """Refuse what cannot be called."""
    if not callable(fun):
        raise ArgumentError(f"{transformation} takes a function, got {fun!r} of type {type(fun).__name__}")


def check_argnums(argnums: Any, transformation: str, option: str = "argnums") -> int | tuple[int, ...]:
    """``argnums`` as an int or a tuple of ints."""
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
    """``argnums`` as positions that are not negative, checked against the number of arguments."""
    if isinstance(argnums, int):
        if 0 <= argnums < count:
            return (argnums,)
        nums: tuple[int, ...] = (argnums,)
    else:
        nums = argnums
    for i in nums:
        if not -count <= i < count:
            least = i + 1 if i >= 0 else -i
            raise ArgumentError(
                f"{transformation} with respect to argnums={argnums} needs at least {least} positional "
                f"argument{'s' * (least > 1)}, but {name_of(fun)} was called with {count}. "
                "Arguments given by keyword are not differentiated."
            )
    resolved = tuple(i % count for i in nums)
    if len(set(resolved)) != len(resolved):
        raise ArgumentError(f"{transformation}: argnums={argnums} names an argument of {name_of(fun)} twice")
    return resolved


def check_chunk_size(chunk_size: Any, transformation: str) -> None:
    """Refuse what is not a number of rows."""
    if chunk_size is not None and (type(chunk_size) is not int or chunk_size < 1):
        raise ArgumentError(f"{transformation}: chunk_size must be a positive int, or None for all, got {chunk_size!r}")


def argument_name(
    index: int, fun: Any, args: Sequence[Any], where: Sequence[int] | None = None, kwargs: Any = None
) -> str:
    """Which leaf of the arguments is meant, as in ``argument 0 (params['w'])``.

    Args:
      index: the leaf, counted through the positional arguments ``where`` (all by default) and then ``kwargs``.
      fun: the function that has parameters for them.
      args: the positional arguments.
      where: positions among them.
      kwargs: the arguments given by keyword.
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
    """The names of a function's positional parameters, as far as they are known."""
    try:
        parameters = inspect.signature(fun).parameters.values()
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
    """The leaves of arguments as arrays; see :func:`argument_name`."""
    try:
        return [x if type(x) is ArrayImpl else from_scalar(x) if type(x) in SCALARS else as_array(x) for x in leaves]
    except OperandError:
        for i, x in enumerate(leaves):
            try:
                as_array(x)
            except OperandError as error:
                place = argument_name(i, fun, args, where, kwargs)
                raise type(error)(f"{transformation} of {name_of(fun)}, {place}: {error}") from None
        raise


def check_differentiable(
    aval: ShapedArray, transformation: str, fun: Any, holomorphic: bool, allow_int: bool, place: Callable[[], str]
) -> None:
    """Refuse inputs that cannot be differentiated with respect to, as asked."""
    dtype = aval.dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise NotDifferentiableError(
                f"{transformation} with holomorphic=True needs complex inputs, but {place()} of {name_of(fun)} has "
                f"dtype {dtypes.dtype_name(dtype)}. Convert it to a complex dtype, or leave holomorphic out."
            )
    elif not dtypes.is_inexact(dtype) and not allow_int:
        instead = ""
        if transformation != "linear_transpose":
            instead += ", or leave it out of argnums"
        if transformation in ("grad", "value_and_grad", "jacrev"):
            instead += "; allow_int=True gives it a gradient of type float0"
        raise NotDifferentiableError(
            f"{transformation} needs real or complex inputs, but {place()} of {name_of(fun)} is {aval}. "
            f"Give it floats (2. instead of 2){instead}."
        )


def out_leaf(x: Any, fun: Any) -> Any:
    """A leaf of a result as an array."""
    if isinstance(x, Array):
        return x
    try:
        return as_array(x)
    except OperandError as error:
        raise type(error)(
            f"{name_of(fun)} returned something that is not an array: {error} A transformed function returns arrays, "
            "numbers, or trees of them."
        ) from None


def split_aux(out: Any, fun: Any) -> tuple[Any, Any]:
    """The parts of ``(out, aux)``."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        what = f"a {type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) else repr(out)
        raise ArgumentError(f"with has_aux=True {name_of(fun)} must return a pair (out, aux), but it returned {what}")
    return out[0], out[1]


def zero_cotangent(aval: ShapedArray) -> Any:
    """A dense zero gradient for an input: of type float0 if it is not differentiable."""
    dtype = dtypes.tangent_dtype(aval.dtype)
    if dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return zeros_of(aval.update(dtype=dtype))


def dense(ct: Any, primal: Any) -> Any:
    """A tangent or cotangent, made dense if it is the symbolic zero, and as weakly typed as its primal value."""
    if ct is ZERO:
        return zero_cotangent(primal if isinstance(primal, ShapedArray) else typeof(primal))
    return ct if ct.weak_type == primal.weak_type else as_weak(ct, primal.weak_type)


def as_weak(x: Any, weak_type: bool) -> Any:
    """An array whose type gives way to others, or does not."""
    if type(x) is ArrayImpl:
        return ArrayImpl(x._value, weak_type)
    if type(x) is DeviceArray:  # which need not be computed yet
        kind = x._signature
        x = fresh(x)
        x._signature = signature(kind.aval.shape, kind.aval.dtype, weak_type, kind.device)
        return x
    return convert_element_type(x, x.dtype, weak_type)


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
    if is_float0(t):
        if t.shape == aval.shape and expected == dtypes.float0:
            return ZERO
    else:
        try:
            t = as_array(t)
        except OperandError as error:
            raise type(error)(f"{place()}: {error}") from None
        if t.shape == aval.shape and t.dtype == expected:
            return t
    wanted = aval.update(dtype=expected)
    if expected == dtypes.float0:
        hint = f"; np.zeros({aval.shape}, pullback.float0) is one"
    elif t.shape == aval.shape:
        hint = "; convert it, with astype for example"
    else:
        hint = ""
    got = aval.update(shape=t.shape, dtype=t.dtype)
    raise TangentMismatchError(f"{place()}: the value is {aval}, so its {what} must be {wanted}, but it is {got}{hint}")


def flatten_one(x: Any) -> tuple[list[Any], Any]:
    """``tree.flatten``, quick for a single leaf; the tree is then None."""
    if type(x) is ArrayImpl or type(x) in SCALARS or isinstance(x, Array):
        return [x], None
    return tree.flatten(x)


def unflatten_one(treedef: Any, leaves: Sequence[Any]) -> Any:
    """The inverse of :func:`flatten_one`."""
    return leaves[0] if treedef is None else tree.unflatten(treedef, leaves)
