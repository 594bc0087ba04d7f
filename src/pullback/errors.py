"""The exceptions of Pullback. See ``pullback.core.errors`` for the tree that they form."""

from pullback.core.errors import *  # noqa: F403
from pullback.core.faces import face

# Type checkers, which do not know what an ``__all__`` that is computed holds, do not see it here, and take all names.
globals()["__all__"] = sorted(n for n, v in globals().items() if isinstance(v, type) and issubclass(v, BaseException))
face(globals())
