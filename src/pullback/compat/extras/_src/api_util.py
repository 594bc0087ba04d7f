"""``jax._src.api_util``: e3nn-jax takes ``infer_argnums_and_argnames``."""

import inspect
import operator
from typing import Any

from pullback.core.errors import ArgumentError
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


def _ensure_index(x: Any) -> int | tuple[int, ...]:
    """Return an int, or a tuple of ints; DESC needs it.

    >>> import numpy as np
    >>> from pullback.compat.extras._src.api_util import _ensure_index
    >>> _ensure_index(np.int32(1)), _ensure_index([0, 1])
    (1, (0, 1))
    """
    try:
        return operator.index(x)
    except TypeError:
        return tuple(map(operator.index, x))


def check_callable(fun: Any) -> None:
    """Raise an error if something is not a function. DESC needs it.

    Raises:
      ArgumentError: it is none (a TypeError).

    >>> from pullback.compat.extras._src.api_util import check_callable
    >>> check_callable(len)
    """
    if not callable(fun) or inspect.isgeneratorfunction(fun):
        raise ArgumentError(f"expected a function of arrays, got {fun!r}")


_face(globals(), others=("pullback.api_util",))
