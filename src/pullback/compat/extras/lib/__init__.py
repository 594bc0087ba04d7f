"""``jax.lib``: the version of ``jaxlib``. Equinox's tests ask for it; old releases of libraries import the module."""

from importlib.metadata import version as _version

__version__ = _version("jaxlib")

__all__ = ["__version__"]
