"""``jax._src.lax.control_flow.loops``: how ``lax.map`` divides its elements into batches, for DESC."""

from typing import Any

from pullback import tree
from pullback.core.errors import ArgumentError
from pullback.core.faces import face as _face


def _batch_and_remainder(x: Any, batch_size: int) -> tuple[Any, Any]:
    """Divide the arrays of a tree along their first axis into batches, and what is left over.

    Args:
      x: a tree of arrays with first axes of one size.
      batch_size: the number of elements of a batch.

    Returns:
      The tree with arrays of shape ``(batches, batch_size, ...)``, None if there is no whole batch; and the tree of the
      elements left over, None if there are none.

    Raises:
      ArgumentError: there is no array, or the sizes differ (a ValueError and TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback.compat.extras._src.lax.control_flow.loops import _batch_and_remainder
    >>> batches, rest = _batch_and_remainder(jnp.arange(5), 2)
    >>> print(batches.tolist(), rest)
    [[0, 1], [2, 3]] [4]
    """
    sizes = {leaf.shape[0] for leaf in tree.leaves(x)}
    if len(sizes) != 1:
        raise ArgumentError(f"the arrays must have first axes of one size, got {sorted(sizes) or 'no array'}")
    count, rest = divmod(sizes.pop(), batch_size)
    end = count * batch_size
    batches = tree.map(lambda leaf: leaf[:end].reshape(count, batch_size, *leaf.shape[1:]), x) if count else None
    return batches, tree.map(lambda leaf: leaf[end:], x) if rest else None


_face(globals(), others=("pullback.lax",))
