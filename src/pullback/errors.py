"""The exceptions of Pullback. ``python -m pullback explain`` prints their tree, and with a name what one means."""

from pullback.core.errors import *  # noqa: F403
from pullback.core.faces import face

# Hidden from type checkers, which cannot evaluate a computed ``__all__``: without one, they export all names.
_CLASSES = {v for v in globals().values() if isinstance(v, type) and issubclass(v, BaseException)}
globals()["__all__"] = sorted(v.__name__ for v in _CLASSES)  # without JaxprTypeError, a second name of one of them
face(globals())
