"""``jax._src.flatten_util``: BlackJAX takes ``ravel_pytree``."""

from pullback.flatten_util import ravel_pytree as ravel_pytree

__all__ = ["ravel_pytree"]
