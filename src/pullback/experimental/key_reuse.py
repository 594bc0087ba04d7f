"""Looking for random keys that are used twice: the switch ``debug_key_reuse``.

Random functions draw the same numbers whenever they are given the same key. While the switch is on, a key that is
used a second time raises :class:`KeyReuseError`. It is on for the process by
``pullback.config.update("debug_key_reuse", True)`` or the environment's ``PULLBACK_DEBUG_KEY_REUSE=1``, and within a
block by ``with pullback.debug_key_reuse(): ...``.

* Every function of ``pullback.random`` that draws numbers uses its key, and so does ``split``. ``fold_in`` and
  ``key_data`` do not, and what ``clone`` returns is another key.
* Operations that move elements, such as indexing, keep keys apart: ``keys[0]`` and ``keys[1]`` are two keys, and
  ``keys[0]`` twice is one. Where the place is not known, as with an index in a compiled function, all keys of the array
  count as used together. To draw from many copies of a key in one call, as under ``vmap``, is one use.
* A compiled function uses the keys that its program uses, and is refused before it runs. In a loop a key from outside
  the body may not be used, unless there is only one step; a carried key has to be replaced by a new one. Of branches,
  what any of them uses counts as used; eager, ``cond`` runs one of them, and the others are not looked at.
* Keys that are given as their words, as those of ``random.PRNGKey``, are not looked at.

The backward pass of ``checkpoint`` computes again, with the same keys: that counts as another use, as in JAX.

An operation of one's own that takes or returns keys has a rule by ``key_reuse``; without one, a key that it returns
counts as any of those that it takes.

>>> import pullback
>>> from pullback import random
>>> with pullback.debug_key_reuse():
...     key = random.key(0)
...     first, second = random.split(key)
...     x, y = random.normal(first), random.normal(second)
...     random.normal(first)
Traceback (most recent call last):
    ...
pullback.core.errors.KeyReuseError: random.normal takes a key that was used before, by random.normal, at
...
"""

from pullback.core.errors import KeyReuseError
from pullback.core.faces import face
from pullback.random.key_reuse import key_reuse

__all__ = ["KeyReuseError", "key_reuse"]
face(globals())
