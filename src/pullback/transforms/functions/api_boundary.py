"""The boundary of the public API: transformed functions, and errors whose tracebacks omit internal frames."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

from pullback.core import source, tree
from pullback.core.registry import OwnsPrograms
from pullback.transforms.functions.arguments import name_of

P = ParamSpec("P")
R = TypeVar("R")

watching: list[Callable[..., Any]] = []
"""A stack of hooks. The last one runs each call across the API boundary: ``hook(call, args, kwargs)``."""


class Transformed(OwnsPrograms):
    """A transformed function, with the name and signature of the original function.

    Tracebacks of its errors omit Pullback's own frames. If the original can be pickled, so can the transformed
    function: by its name, if its module has it under this name (a decorated function), and otherwise as ``maker``,
    ``fun`` and ``options``.

    Args:
      fun: the original function.
      call: the implementation: ``call(args, kwargs)``.
      maker: the transformation: unpickling calls ``maker(fun, *options)``, which returns an equal function. None if the
        function is not pickled.
      options: the further arguments of ``maker``.
    """

    def __init__(
        self,
        fun: Any,
        call: Callable[[tuple[Any, ...], dict[str, Any]], Any],
        maker: Any = None,
        *options: Any,
    ) -> None:
        if type(fun) is FunctionType:  # fast path: users often transform on every call: ``grad(f)(x)``
            if fun.__dict__:
                self.__dict__.update(fun.__dict__)
            self._call = call
            self._again = maker, (fun, *options)
            self.__wrapped__ = fun
            self.__annotations__ = fun.__annotations__
            self.__name__ = fun.__name__
            self.__qualname__ = fun.__qualname__
            self.__module__ = fun.__module__
            self.__doc__ = fun.__doc__
            return
        ours = isinstance(fun, OwnsPrograms)  # these have copied the attributes below already
        # All of its ``__dict__``: to select entries takes longer than the rest of this method.
        self.__dict__.update(fun.__dict__ if ours else source.attributes_of(fun))
        self._call = call
        self._again = maker, (fun, *options)
        self.__wrapped__ = fun
        if ours:
            return
        self.__name__ = source.plain_name(fun)
        for name, kind in (("__qualname__", str), ("__module__", str), ("__doc__", str), ("__annotations__", dict)):
            value = source.attribute(fun, name)
            if isinstance(value, kind):
                setattr(self, name, value)

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


def qualified_name(x: Any) -> str | None:
    """Return the qualified name of an object, by which ``pickle`` refers to the object.

    Return None if the module of the object does not have the object under this name.
    """
    name = getattr(x, "__qualname__", None)
    found: Any = sys.modules.get(x.__module__)
    if name is None or found is None:
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is x else None


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function so that tracebacks of its errors omit Pullback's own frames."""
    hide, watches = source.hide_internal_frames, watching

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs) if not watches else watches[-1](function, args, kwargs)
        except Exception as error:
            hide(error)
            raise

    # With the globals of its module: by these doctest finds the functions that a module defines.
    own = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return functools.wraps(function)(own)
