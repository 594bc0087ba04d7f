"""Taylor mode, in JAX's place; see :mod:`pullback.derivatives`."""

from pullback.derivatives.jets import jet

__all__ = ["jet"]
