"""The directory of the cache of compiled programs: ``jax.experimental.compilation_cache.compilation_cache``."""

from __future__ import annotations

import os

from pullback.core.config import config
from pullback.core.faces import face
from pullback.transforms.jit.jit import clear_caches

__all__ = ["reset_cache", "set_cache_dir"]
face(globals())


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in a directory, and look for them there: the switch ``compilation_cache_dir``.

    Programs in the cache run in the process that loads them. Whoever can write to the directory can run code there, so
    only directories that belong to the user alone are used.

    Args:
      path: the directory, which is made if it does not exist.

    >>> from pullback import config
    >>> from pullback.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir("/tmp/programs")
    >>> config.compilation_cache_dir
    '/tmp/programs'
    >>> compilation_cache.reset_cache()
    """
    config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Forget the programs of this process, and the directory that :func:`set_cache_dir` has set.

    >>> from pullback.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    config.update("compilation_cache_dir", None)
    clear_caches()
