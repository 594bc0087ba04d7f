"""Names of JAX outside of Pullback's own API, module by module, each with the library that needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.compat.serving import VERSION
from pullback.core.errors import UnsupportedArgumentError
from pullback.core.trace import Primitive as _Primitive

__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))

# Whether an operation runs the program call_jaxpr, its parameter: Distrax asks, as it inverts programs.
_Primitive.call_primitive = _Primitive.map_primitive = False  # type: ignore[attr-defined]

__all__ = ["__version__", "__version_info__", "legacy_prng_key"]


@contextmanager
def legacy_prng_key(new_val: str) -> Iterator[None]:
    """A context, or decorator, in which keys that are integer arrays are allowed, as they always are (JAX's own tests).

    Raises:
      UnsupportedArgumentError: another value than ``"allow"`` (a NotImplementedError).
    """
    if new_val != "allow":
        raise UnsupportedArgumentError(f"legacy_prng_key: keys of integers are always allowed, got {new_val!r}")
    yield
