"""Names of JAX that are no part of Pullback's own API, module by module; each says who needs it."""

from pullback.compat.serving import VERSION

__version__ = VERSION
__version_info__ = tuple(map(int, VERSION.split(".")))

__all__ = ["__version__", "__version_info__"]
