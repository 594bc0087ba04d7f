"""Detection of random keys that are used twice: the switch ``debug_key_reuse``.

Random functions draw the same numbers for the same key. While the switch is on, a second use of a key raises
:class:`KeyReuseError`. It is on for the process by
``pullback.config.update("debug_key_reuse", True)`` or the environment's ``PULLBACK_DEBUG_KEY_REUSE=1``, and within a
block by ``with pullback.debug_key_reuse(): ...``.

* Every function of ``pullback.random`` that draws numbers uses its key, and so does ``split``. ``fold_in`` and
  ``key_data`` do not, and the result of ``clone`` is another key.
* Operations that move elements, such as indexing, keep track of each key: ``keys[0]`` and ``keys[1]`` are two keys, and
  ``keys[0]`` twice is one. If the index is unknown, as in a compiled function, all keys of the array count as used. To
  draw from many copies of a key in one call, as under ``vmap``, is one use.
* A compiled function uses the keys that its program uses, and is refused before it runs. In a loop a key from outside
  the body may not be used, unless there is only one step; a carried key has to be replaced by a new one. A key that any
  branch uses counts as used; an eager ``cond`` runs one branch, and only that counts.
* Raw keys, arrays of words as ``random.PRNGKey`` returns them, are not checked.

The backward pass of ``checkpoint`` recomputes with the same keys, which counts as another use, as in JAX.

A user's operation that takes or returns keys has a rule by ``key_reuse``; without one, a key that it returns counts as
each of the keys that it takes.

>>> from pullback import debug_key_reuse, random
>>> with debug_key_reuse():
...     key = random.key(0)
...     first, second = random.split(key)
...     x, y = random.normal(first), random.normal(second)
...     random.normal(first)
Traceback (most recent call last):
    ...
pullback.core.errors.KeyReuseError: random.normal takes a key that random.normal has already used, at
...
"""

from pullback.core.errors import KeyReuseError
from pullback.core.faces import face
from pullback.random.key_reuse import key_reuse

__all__ = ["KeyReuseError", "key_reuse"]
face(globals())
