"""Named scopes: names that equations recorded within a scope carry, and equations of their derivatives, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ParamSpec, TypeVar

from pullback.core.arguments import require_function
from pullback.core.errors import ArgumentError
from pullback.core.source import Scope, attribute, named_as
from pullback.core.trace import state

P = ParamSpec("P")
R = TypeVar("R")


def named_scope(name: str) -> AbstractContextManager[None]:
    """Return a context manager, also usable as a decorator, that names operations for the compiler and in profiles.

    Args:
      name: the name. Within another scope, it is appended to the name of that scope, as in ``encoder/attention``.

    Returns:
      A context manager.

    Raises:
      ArgumentError: the name is no nonempty string (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit, named_scope
    >>> @jit
    ... def f(x):
    ...     with named_scope("encoder"):
    ...         return jnp.sin(x)
    >>> "encoder/sin" in f.lower(1.0).as_text(debug_info=True)
    True
    """
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"named_scope takes a non-empty string as name, got {name!r}")
    return _scope(name)


@contextmanager
def _scope(name: str) -> Iterator[None]:
    """Return a context manager that puts the operations of its block in the named scope ``name``."""
    outer = state.scope
    state.scope = Scope(name).within(outer)
    try:
        yield
    finally:
        state.scope = outer


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Wrap a function so that its operations are in a named scope.

    Args:
      fun: any function.
      name: the name of the scope; by default the name of the function.

    Returns:
      A function with the arguments and results of ``fun``.

    Raises:
      ArgumentError: ``fun`` is not a function (a TypeError and a ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit, named_call
    >>> "decode/tanh" in jit(named_call(jnp.tanh, name="decode")).lower(1.0).as_text(debug_info=True)
    True
    """
    require_function("named_call", "fun", fun)
    known = attribute(fun, "__name__")
    scope = name if name is not None else (known if isinstance(known, str) and known else type(fun).__name__)
    named_scope(scope)  # raises now if it is no name

    @named_as(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _scope(scope):
            return fun(*args, **kwargs)

    return call
