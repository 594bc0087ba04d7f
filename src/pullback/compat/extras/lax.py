"""Names of ``jax.lax`` beyond its documented ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core import tree
from pullback.core.array import as_array
from pullback.core.errors import UnsupportedArgumentError
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import MappedAxis

__all__ = ["dce_sink", "dce_sink_p"]

dce_sink_p = Primitive("dce_sink", multiple_results=True, effect=True, cost=Cost.LIGHT)
dce_sink_p.host(lambda x: [])
dce_sink_p.abstract_eval(lambda x: [])
dce_sink_p.jvp(lambda primals, tangents: (dce_sink_p.bind(*primals), []))
dce_sink_p.lowering(lambda hlo, x: [])


@dce_sink_p.batch
def _batch(axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[Any]]:
    return dce_sink_p.bind(*args), []


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Mark arrays as used, so that the equations that compute them stay in traced programs.

    Args:
      val: a tree of arrays.
      prevent_mlir_dce: must be False: the compiler may still omit what has no effect on results.

    Raises:
      UnsupportedArgumentError: ``prevent_mlir_dce`` is True (a NotImplementedError).

    >>> from pullback import grad, lax, make_jaxpr
    >>> from pullback.compat.extras.lax import dce_sink
    >>> f = lambda x: (dce_sink(lax.sin(x)), x)[1]
    >>> print(make_jaxpr(lambda x: grad(f)(x))(1.0).eqns[0].primitive)
    sin
    """
    if prevent_mlir_dce:
        raise UnsupportedArgumentError(
            "dce_sink: prevent_mlir_dce=True is not supported: return the value from the compiled function instead"
        )
    for leaf in tree.leaves(val):
        dce_sink_p.bind(as_array(leaf))
