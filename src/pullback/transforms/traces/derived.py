"""Caching the results of transformations of jaxprs, as long as the jaxpr lives."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pullback.core.config import config
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.locks import lock
from pullback.core.registry import Registry
from pullback.core.trace import state

P = ParamSpec("P")
R = TypeVar("R")


def cached_by_jaxpr(
    transform: Callable[Concatenate[ClosedJaxpr, P], R],
) -> Callable[Concatenate[ClosedJaxpr, P], R]:
    """Decorate a function of a jaxpr, and perhaps other arguments, so that its results are cached in the jaxpr.

    The other arguments, the configuration and the named axes are the key.

    >>> from pullback import make_jaxpr
    >>> from pullback.transforms.traces.derived import cached_by_jaxpr
    >>> count = cached_by_jaxpr(lambda closed: [len(closed.eqns)])
    >>> closed = make_jaxpr(lambda x: x)(1.0)
    >>> count(closed) is count(closed)
    True
    """

    @wraps(transform)
    def cached(closed: ClosedJaxpr, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key: Any = transform, args, tuple(sorted(kwargs.items())), config.trace_context, tuple(state.axes.items())
        try:
            results = closed._derived
        except AttributeError:
            results = _begin(closed)
        try:
            return results[key]  # type: ignore[no-any-return]
        except KeyError:
            pass
        except TypeError:  # unhashable: an argument is a list, of flags for example
            key = _hashable(key)
            if key in results:
                return results[key]  # type: ignore[no-any-return]
        # If several threads compute it at the same time, all continue with the result of the first that is ready.
        return results.setdefault(key, transform(closed, *args, **kwargs))  # type: ignore[no-any-return]

    return cached


_transformed: Registry[ClosedJaxpr] = Registry()
_beginning = lock(globals(), "_beginning")
caches: list[MutableMapping[Any, Any]] = []
"""Further caches of derived programs, which ``clear_caches`` empties too."""


def _begin(closed: ClosedJaxpr) -> dict[Any, Any]:
    """Create the cache of a program, and return it; return the existing cache if another thread was faster.

    The program is registered, so that ``clear_derived`` clears its cache.
    """
    with _beginning:
        if not hasattr(closed, "_derived"):
            closed._derived = {}
    _transformed.add(closed)
    return closed._derived


def clear_derived() -> None:
    """Clear the results that :func:`cached_by_jaxpr` stores in programs, and the caches in the list ``caches``."""
    for cache in caches:
        cache.clear()
    for closed in _transformed.living():
        closed._derived.clear()


def _hashable(x: Any) -> Any:
    """Convert ``x`` and all lists nested in it, also within tuples, to tuples, so that it can be a key."""
    return tuple(map(_hashable, x)) if isinstance(x, (list, tuple)) else x
