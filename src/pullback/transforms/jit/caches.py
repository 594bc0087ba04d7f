"""The caches of a function under ``jit``: its traced and compiled programs, by cache key."""

from __future__ import annotations

import functools
import weakref
from types import FunctionType
from typing import Any, TypeVar

from pullback.core.locks import lock
from pullback.core.registry import OwnsPrograms, Registry
from pullback.transforms.jit.jit_arguments import Options

T = TypeVar("T")

MOST_KINDS = 1024
"""The largest number of entries of a cache; the oldest entry is dropped first."""

Pair = tuple["Cache", "Cache"]
"""The cache of compiled programs and the cache of traced programs of a function."""

all_caches: Registry[Cache] = Registry()
_adding = lock(globals(), "_adding")


class Cache(dict[Any, Any]):
    """A cache of programs, by key. Caches are compared by identity, so that a set can hold them."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]

    def keep(self, key: Any, value: T, *, first: bool = False) -> T:
        """Add an entry, and return it; if the cache is full, drop the oldest entries.

        With ``first``, an entry that another thread has added meanwhile stays, and is returned.
        """
        with _adding:
            if first and key in self:
                found: T = self[key]
                return found
            while len(self) >= MOST_KINDS:
                del self[next(iter(self))]
            self[key] = value
            return value


class _FunctionCaches:
    """The caches of a function, stored as an attribute of the function.

    A cached program may refer to its function. A weak dictionary from functions to programs would then keep the
    function alive; an attribute makes a reference cycle, which the garbage collector finds.

    Attributes:
      owner: a weak reference to the function. ``functools.wraps`` copies the attribute to other functions, which must
        not use it.
      caches: from the key of the options of ``jit`` to a pair: the compiled and the traced programs.
    """

    __slots__ = ("caches", "owner")

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner and weakref.ref(owner)
        self.caches: dict[Any, Pair] = {}

    def __reduce__(self) -> Any:  # a copy of the function, as in another process, has empty caches
        return _FunctionCaches, ()


_ATTRIBUTE = "__pullback_programs__"
_WITH_ATTRIBUTES = FunctionType, functools.partial, OwnsPrograms
_by_object: weakref.WeakKeyDictionary[Any, dict[Any, Pair]] = weakref.WeakKeyDictionary()
"""The caches of callable objects, whose attributes belong to the user."""


def _caches_by_options(fun: Any) -> dict[Any, Pair]:
    """Return the caches of a function, by the key of the options of ``jit``; create them at the first call."""
    if not isinstance(fun, _WITH_ATTRIBUTES):
        return _by_object.setdefault(fun, {})
    attributes = vars(fun)
    found = attributes.get(_ATTRIBUTE)
    if found is None or found.owner is None or found.owner() is not fun:
        found = attributes[_ATTRIBUTE] = _FunctionCaches(fun)
    return found.caches


def caches_of(fun: Any, options: Options) -> Pair:
    """Return the cache of compiled programs and the cache of traced programs of ``fun`` under ``jit`` with ``options``.

    Calls with equal ``fun`` and equal options return the same caches.
    """
    pair = Cache(), Cache()
    try:
        key = options.key()
        with _adding:
            found = _caches_by_options(fun).setdefault(key, pair)
    except TypeError:  # no weak references to the object, or no hash
        found = pair
    if found is pair:
        for cache in pair:
            all_caches.add(cache)
    return found


class _Bodies(Cache):
    """The programs of a function as the body of a loop or as a branch, stored as an attribute of the function.

    Attributes:
      owner: a weak reference to the function, as of :class:`_FunctionCaches`.
    """

    __slots__ = ("owner",)

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner and weakref.ref(owner)

    def __reduce__(self) -> Any:
        return _Bodies, ()


_BODIES = "__pullback_bodies__"
_bodies_by_object: weakref.WeakKeyDictionary[Any, _Bodies] = weakref.WeakKeyDictionary()


def bodies_of(fun: Any, create: bool = True) -> Cache | None:
    """Return the cache of the programs of ``fun`` as the body of a loop or as a branch.

    Args:
      fun: a function, or an object that is called.
      create: whether to make a cache for a function that has none.

    Returns:
      The cache. None if there is none, or there can be none: an object that is compared by its value may change, and a
      bound method is a new object at each access.
    """
    if isinstance(fun, _WITH_ATTRIBUTES):
        attributes = vars(fun)
        found = attributes.get(_BODIES)
        if found is not None and found.owner is not None and found.owner() is fun:
            return found  # type: ignore[no-any-return]
        if create:
            found = attributes[_BODIES] = _Bodies(fun)
            all_caches.add(found)
            return found
        return None
    if getattr(type(fun), "__hash__", None) is not object.__hash__:
        return None
    try:
        with _adding:
            found = _bodies_by_object.get(fun)
            if found is None and create:
                found = _bodies_by_object[fun] = _Bodies()
                all_caches.add(found)
    except TypeError:  # no weak references to the object
        return None
    return found
