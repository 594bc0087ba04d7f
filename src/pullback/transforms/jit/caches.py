"""What is kept of a function under ``jit``: its programs, traced and compiled, by the kind of arguments."""

from __future__ import annotations

import functools
import weakref
from types import FunctionType
from typing import Any

from pullback.core.locks import lock
from pullback.core.registry import OwnsPrograms, Registry
from pullback.transforms.jit.jit_arguments import Options

MOST_KINDS = 1024
"""How many kinds of arguments are kept for a function; the oldest is dropped for a new one."""

Pair = tuple["Cache", "Cache"]
"""What was compiled of a function, and what was traced, by the kind of arguments."""

all_caches: Registry[Cache] = Registry()
_adding = lock(globals(), "_adding")


class Cache(dict[Any, Any]):
    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]

    def keep(self, key: Any, value: Any) -> None:
        """Add an entry."""
        with _adding:
            while len(self) >= MOST_KINDS:
                del self[next(iter(self))]
            self[key] = value


class _Kept:
    """What is kept of a function, as an attribute of it.

    Programs may refer to the function that they came from: an equation does to a function with rules. In a table beside
    it, even one of weak references, they would keep it alive, and it them; in the function they are a circle that the
    collector finds. ``functools.wraps`` copies attributes, so that it says whose it is.
    """

    __slots__ = ("caches", "owner")

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner and weakref.ref(owner)
        self.caches: dict[Any, Pair] = {}

    def __reduce__(self) -> Any:  # a copy of the function, in another process for example, begins anew
        return _Kept, ()


_ATTRIBUTE = "__pullback_programs__"
_by_object: weakref.WeakKeyDictionary[Any, dict[Any, Pair]] = weakref.WeakKeyDictionary()
"""The same for callable objects, whose attributes are the user's."""


def _caches_by_options(fun: Any) -> dict[Any, Pair]:
    if not isinstance(fun, (FunctionType, functools.partial, OwnsPrograms)):
        return _by_object.setdefault(fun, {})
    attributes = vars(fun)
    found = attributes.get(_ATTRIBUTE)
    if found is None or found.owner is None or found.owner() is not fun:
        found = attributes[_ATTRIBUTE] = _Kept(fun)
    return found.caches


def caches_of(fun: Any, options: Options) -> Pair:
    """What was compiled and traced for a function: shared by all that ``jit`` made of it with equal options."""
    pair = Cache(), Cache()
    try:
        key = options.key()
        with _adding:
            found = _caches_by_options(fun).setdefault(key, pair)
    except TypeError:  # a function that cannot be referred to weakly, or has no hash
        found = pair
    if found is pair:
        for cache in pair:
            all_caches.add(cache)
    return found
