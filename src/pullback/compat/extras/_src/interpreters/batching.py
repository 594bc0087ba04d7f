"""``jax._src.interpreters.batching``: the names of ``jax.interpreters.batching``, and tracers, for BrainState."""

from typing import Any as _Any

from pullback.core.array import Array as _Array
from pullback.core.faces import face as _face
from pullback.lax import iota as _iota
from pullback.transforms.traces.batch import BatchTrace as BatchTrace
from pullback.transforms.traces.batch import BatchTracer as BatchTracer


def make_iota(axis_size: int) -> _Array:
    """Return the positions along a mapped axis.

    >>> from pullback.compat.extras._src.interpreters.batching import make_iota
    >>> print(make_iota(3))
    [0 1 2]
    """
    return _iota("int32", axis_size)  # type: ignore[no-any-return]


def to_elt(trace: _Any, get_idx: _Any, x: _Any, spec: int | None) -> _Any:
    """Return an example of a batch, as ``vmap`` hands it to its function.

    Args:
      trace: the trace of the ``vmap``.
      get_idx: is ignored: arrays are sliced without the position.
      x: the batch, an array.
      spec: the position of the mapped axis; None if there is none.
    """
    return x if spec is None else BatchTracer(trace, x, spec % x.ndim, None)


_face(globals(), others=("pullback.interpreters.batching",))
