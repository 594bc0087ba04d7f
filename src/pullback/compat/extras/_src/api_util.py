"""``jax._src.api_util``: e3nn-jax takes ``infer_argnums_and_argnames``."""

import inspect
from typing import Any

from pullback.core.faces import face as _face
from pullback.transforms.jit.jit_arguments import infer_argnums_argnames


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Any, argnames: Any
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Complete positions and names of the same arguments, one of which may be None.

    Args:
      sig: the signature of the function.
      argnums: positions: a number, several, or None.
      argnames: names: one, several, or None.

    >>> import inspect
    >>> from pullback.compat.extras._src.api_util import infer_argnums_and_argnames
    >>> infer_argnums_and_argnames(inspect.signature(lambda x, y: x), 1, None)
    ((1,), ('y',))
    """
    if argnums is not None and argnames is not None:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        return numbers, (argnames,) if isinstance(argnames, str) else tuple(argnames)
    function = lambda *args, **kwargs: None
    function.__signature__ = sig  # type: ignore[attr-defined]
    return infer_argnums_argnames(function, argnums, argnames, "infer", "infer_argnums_and_argnames")


_face(globals(), others=("pullback.api_util",))
