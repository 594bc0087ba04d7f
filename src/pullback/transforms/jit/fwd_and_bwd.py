"""``fwd_and_bwd``: the forward and the backward pass of reverse mode as two compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.core import source
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.transforms.autodiff.grad import vjp
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import Argnums, check_argnums, positions
from pullback.transforms.jit.jit import jit

R = TypeVar("R")


@api_boundary
def fwd_and_bwd(
    fun: Callable[..., R], argnums: Argnums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., tuple[R, PyTree]], Callable[..., PyTree]]:
    """Make separate functions for the forward and the backward pass of a function.

    Args:
      fun: takes arrays or trees of them, and returns a tree of arrays; with ``has_aux``, a pair of this tree and other
        data.
      argnums: the positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair, whose second element ``fwd`` returns as well.
      jitted: whether to compile both functions.

    Returns:
      A pair ``fwd, bwd``. Each may be called many times. ``fwd(*args)`` returns ``(out, residuals)``, or with
      ``has_aux`` ``(out, residuals, aux)``. The residuals are a tree of arrays, which may be stored, or passed to
      compiled functions. ``bwd(residuals, ct)`` takes a cotangent like ``out``, and returns the cotangent of the
      argument, or a tuple of cotangents for several argnums.

    Raises:
      ArgumentError: ``argnums`` is invalid (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import fwd_and_bwd
    >>> fwd, bwd = fwd_and_bwd(lambda x, y: jnp.sin(x) * y, argnums=(0, 1))
    >>> out, residuals = fwd(0.0, 2.0)
    >>> print(*bwd(residuals, 1.0))
    2.0 0.0
    """
    require_function("fwd_and_bwd", "fun", fun)
    has_aux, jitted = flag("fwd_and_bwd", "has_aux", has_aux), flag("fwd_and_bwd", "jitted", jitted)
    wanted = check_argnums(argnums, "fwd_and_bwd")

    def fwd(*args: Any) -> Any:
        where = positions(wanted, len(args), "fwd_and_bwd", fun)

        @source.named_as(fun, attributes=False)
        def of_wanted(*values: Any) -> Any:
            replaced = list(args)
            for i, x in zip(where, values, strict=True):
                replaced[i] = x
            return fun(*replaced)

        return vjp(of_wanted, *[args[i] for i in where], has_aux=has_aux)

    def bwd(residuals: Any, outs: Any) -> Any:
        cotangents = residuals(outs)
        return cotangents if isinstance(wanted, tuple) else cotangents[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
