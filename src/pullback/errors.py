"""The exceptions of Pullback. ``python -m pullback explain`` prints their tree, and with a name what one means."""

from pullback.core.errors import *  # noqa: F403
from pullback.core.faces import face

# Hidden from type checkers, which cannot evaluate a computed ``__all__``: without one, they export all names.
globals()["__all__"] = sorted(n for n, v in globals().items() if isinstance(v, type) and issubclass(v, BaseException))
face(globals())
