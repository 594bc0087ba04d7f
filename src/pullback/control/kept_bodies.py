"""Keeping the programs of loop bodies and branches, so that later calls with the same function do not trace it again.

A program is kept with its function, for a configuration, trees and types. It is used as long as what the function reads
from its surroundings is bound as it was after tracing: the variables that it closes over, its defaults, and the globals
that it names. Lists, tuples, dictionaries and sets among these count with their elements. What happens within other
objects is not seen, as under ``jit``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from pullback.core.array import ArrayImpl
from pullback.core.config import config
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.registry import OwnsPrograms
from pullback.core.trace import state
from pullback.core.types import ShapedArray
from pullback.transforms.jit.caches import bodies_of
from pullback.transforms.traces.refs import Ref

_MOST = 256
"""The largest number of objects that a function may read for its program to be kept: they are compared in each call."""
_DEEPEST = 3
"""How many containers and functions may be nested around an object that is compared."""
_UNBOUND = object()


class Kept(NamedTuple):
    """The program of a body.

    Attributes:
      bound: what the function read from its surroundings, after tracing.
      program: the program, without constants.
      consts: the arrays that it captured.
      read, written: the references that it reads only, and those that it writes.
      out_tree: the structure of the result.
    """

    bound: tuple[Any, ...]
    program: ClosedJaxpr
    consts: Sequence[Any]
    read: Sequence[Ref]
    written: Sequence[Ref]
    out_tree: Any


def full_key(key: Any, avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
    """Extend a key of the kind of a body by everything else that its program depends on.

    Args:
      key: the operation, and the trees of the arguments.
      avals: the types of the arguments.
    """
    return (key, config.trace_context, tuple(state.axes.items()), *avals)


def kept(function: Any, key: Any) -> Kept | None:
    """Return the program that was kept for a function and a key of :func:`full_key`; None if there is none to use."""
    cache = bodies_of(function, create=False)
    found: Kept | None = None if cache is None else cache.get(key)
    if found is None:
        return None
    bound = bound_by(function)
    if bound is None or len(bound) != len(found.bound) or any(a is not b for a, b in zip(bound, found.bound)):
        return None
    return found


def keep(
    function: Any, key: Any, program: ClosedJaxpr, consts: Sequence[Any], read: Sequence[Ref],
    written: Sequence[Ref], out_tree: Any,
) -> None:  # fmt: skip
    """Keep the program of a function, unless it depends on what may change unseen. See :class:`Kept`.

    Not kept is a program that captured a traced value, a reference made under a transformation, or a mutable value of
    a user's type, whose structure may change.
    """
    refs = (*read, *written)
    if any(not isinstance(x, ArrayImpl) for x in consts) or any(r.home is not None or type(r) is not Ref for r in refs):
        return
    bound = bound_by(function)
    cache = None if bound is None else bodies_of(function)
    if cache is not None and bound is not None:
        cache.keep(key, Kept(bound, program, consts, read, written, out_tree))


# What a function reads ------------------------------------------------------------------------------------------------


class _Unknown(Exception):
    """Raised for a function that reads too many objects, or an array that may change in place."""


def bound_by(function: Any) -> tuple[Any, ...] | None:
    """Return what a function reads from its surroundings, to be compared by identity; None if that cannot be known.

    >>> from pullback.control.kept_bodies import bound_by
    >>> scale = 2.0
    >>> bound_by(lambda x, n=3: scale * x)[1:]
    (3, 2.0)
    """
    found: list[Any] = []
    try:
        if isinstance(function, (FunctionType, functools.partial, OwnsPrograms)):
            _look_into(function, found, 0)
        else:
            found.append(function)
            call = getattr(type(function), "__call__", None)  # noqa: B004
            if type(call) is FunctionType:
                _look_into(call, found, 0)
            for value in getattr(function, "__dict__", {}).values():
                _look_into(value, found, 1)
    except _Unknown:
        return None
    return tuple(found)


def _look_into(x: Any, found: list[Any], depth: int) -> None:
    """Append an object, and what it contains or reads, to the list ``found``.

    ``depth`` is the number of containers and functions around it.
    """
    if isinstance(x, np.ndarray) or len(found) >= _MOST:
        raise _Unknown
    found.append(x)
    if depth > _DEEPEST:
        return
    kind = type(x)
    if kind is FunctionType:
        _look_into_function(x, found, depth)
    elif kind is functools.partial:
        _look_into_all((x.func, *x.args, *x.keywords.values()), found, depth + 1)
    elif kind is MethodType:
        found += (x.__func__, x.__self__)
    elif kind in (list, tuple, set, frozenset):
        _look_into_all(x, found, depth + 1)
    elif kind is dict:
        _look_into_all((*x, *x.values()), found, depth + 1)
    elif isinstance(x, OwnsPrograms):
        _look_into(getattr(x, "__wrapped__", None), found, depth + 1)


def _look_into_all(values: Any, found: list[Any], depth: int) -> None:
    """Apply :func:`_look_into` to each of ``values``."""
    for value in values:
        _look_into(value, found, depth)


def _look_into_function(f: FunctionType, found: list[Any], depth: int) -> None:
    """Append what a function closes over, its defaults, and the values of globals, to the list ``found``.

    Functions among the globals are not looked into: they lead to whole libraries.
    """
    for cell in f.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # an empty cell
            value = _UNBOUND
        if not any(value is x for x in found) or type(value) is not FunctionType:  # a function that calls itself
            _look_into(value, found, depth + 1)
    _look_into_all(f.__defaults__ or (), found, depth + 1)
    _look_into_all((f.__kwdefaults__ or {}).values(), found, depth + 1)
    values = f.__globals__
    for name in _global_names(f.__code__):
        value = values.get(name, _UNBOUND)
        if type(value) in (list, tuple, set, frozenset, dict) or isinstance(value, np.ndarray):
            _look_into(value, found, depth + 1)
        else:
            found.append(value)


@functools.lru_cache(maxsize=1024)
def _global_names(code: CodeType) -> tuple[str, ...]:
    """Return the names in the code of a function, and of functions within it, that may be globals."""
    names = list(code.co_names)
    for value in code.co_consts:
        if isinstance(value, CodeType):
            names += _global_names(value)
    return tuple(dict.fromkeys(names))
