"""Names of JAX outside of Pullback's own API, module by module, each with the library that needs it."""

from pullback.compat.serving import VERSION

__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))

__all__ = ["__version__", "__version_info__"]
