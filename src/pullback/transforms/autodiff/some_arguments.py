"""Differentiating a function in some of its arguments: the others count as constants."""

from __future__ import annotations

from typing import Any

from pullback.core import source, tree
from pullback.core.arguments import flag, require_function
from pullback.core.errors import ArgumentError
from pullback.primitives.operands import stop_gradient


def of_some_arguments(fun: Any, primals: tuple[Any, ...], in_nzs: Any, transformation: str) -> Any:
    """Return a function like ``fun`` that is constant in some arguments.

    Args:
      fun: the function.
      primals: the arguments.
      in_nzs: a prefix of the arguments' tree, with False for the constant ones; None returns ``fun`` itself.
      transformation: the name of the public function that was called, for error messages.

    Raises:
      ArgumentError: ``in_nzs`` is no such prefix (a TypeError and ValueError).
    """
    if in_nzs is None:
        return fun
    require_function(transformation, "fun", fun)
    try:
        wanted = [flag(transformation, "in_nzs", x) for x in tree.broadcast_prefix(in_nzs, primals)]
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{transformation}: in_nzs must be booleans in the tree of the arguments, or a prefix of it: {error}"
        ) from None

    @source.named_as(fun)
    def of_some(*args: Any) -> Any:
        leaves, treedef = tree.flatten(args)
        kept = [x if is_wanted else stop_gradient(x) for x, is_wanted in zip(leaves, wanted, strict=True)]
        return fun(*tree.unflatten(treedef, kept))

    return of_some
