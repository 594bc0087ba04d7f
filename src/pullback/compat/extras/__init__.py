"""Names of JAX outside of Pullback's own API, module by module, each with the library that needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.compat.serving import VERSION
from pullback.core.config import config, exchange, exchange_for_all
from pullback.core.errors import UnsupportedArgumentError
from pullback.core.trace import Primitive as _Primitive

__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))

# Whether an operation runs the program call_jaxpr, its parameter: Distrax asks, as it inverts programs.
_Primitive.call_primitive = _Primitive.map_primitive = False  # type: ignore[attr-defined]

__all__ = ["__version__", "__version_info__", "legacy_prng_key", "make_user_context"]


class UserContext:
    """A value on which the functions depend that ``jit`` compiles; see :func:`make_user_context`.

    Attributes:
      value: the value in this thread.
    """

    def __init__(self, default: Any) -> None:
        self._default = default

    @property
    def value(self) -> Any:
        return dict[Any, Any](config.user_contexts).get(self, self.get_global())

    def get_global(self) -> Any:
        """Return the value in threads that are not within a context."""
        return dict[Any, Any](config.user_defaults).get(self, self._default)

    def set_global(self, value: Any) -> None:
        """Set the value for all threads."""
        exchange_for_all("user_defaults", _with(config.user_defaults, self, value))

    @contextmanager
    def __call__(self, value: Any) -> Iterator[None]:
        """A context in which this thread has another value, which must be hashable."""
        before = exchange("user_contexts", _with(config.user_contexts, self, value))
        try:
            yield
        finally:
            exchange("user_contexts", before)


def _with(pairs: tuple[Any, ...], context: UserContext, value: Any) -> tuple[Any, ...]:
    """Return pairs of contexts and values with another value for a context; raise a TypeError if it is not hashable."""
    hash(value)
    return tuple({**dict(pairs), context: value}.items())


def make_user_context(default_value: Any = None) -> UserContext:
    """Make a value that is part of the key of compiled functions: where it differs, they are traced anew.

    Args:
      default_value: the value outside of contexts.

    Returns:
      A function: ``with context(value): ...`` sets the value in a block, for this thread. It has the attribute
      ``value`` and the methods ``get_global`` and ``set_global``.

    >>> from pullback import jit
    >>> from pullback.compat.extras import make_user_context
    >>> scale = make_user_context(1.0)
    >>> f = jit(lambda x: scale.value * x)
    >>> with scale(3.0):
    ...     inside = f(2.0)
    >>> print(inside, f(2.0))
    6.0 2.0
    """
    return UserContext(default_value)


@contextmanager
def legacy_prng_key(new_val: str) -> Iterator[None]:
    """A context, or decorator, in which keys that are integer arrays are allowed, as they always are (JAX's own tests).

    Raises:
      UnsupportedArgumentError: another value than ``"allow"`` (a NotImplementedError).
    """
    if new_val != "allow":
        raise UnsupportedArgumentError(f"legacy_prng_key: keys of integers are always allowed, got {new_val!r}")
    yield
