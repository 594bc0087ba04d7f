"""The exceptions of Pullback. See ``pullback.core.errors`` for the tree that they form."""

from pullback.core.errors import *  # noqa: F403
