"""``jax.version``: Flax and Orbax read it."""

from pullback.compat.extras import __version__ as __version__
from pullback.compat.extras import __version_info__ as __version_info__

__all__ = ["__version__", "__version_info__"]
