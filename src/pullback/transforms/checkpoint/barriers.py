"""``optimization_barrier``: the compiler does not move operations across it, nor merge those on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from pullback.core import tree
from pullback.core.array import as_array, fresh
from pullback.core.jaxpr import Eqn
from pullback.core.lists import partition_list, scatter_where
from pullback.core.naming import named
from pullback.core.refs import RefCell
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.rules import as_moved, sharding_rule
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.jit_primitive import concrete
from pullback.transforms.programs.program_primitive import if_needed
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.refs import content_of, write

T = TypeVar("T")

optimization_barrier_p = Primitive(
    "optimization_barrier", multiple_results=True, keeps_weak_type=False, passes_nan=True
)
optimization_barrier_p.abstract_eval(lambda *avals: list(avals))
sharding_rule(optimization_barrier_p)(as_moved)
optimization_barrier_p.impl(lambda args, params: [fresh(concrete(x)) for x in args])


@named
@api_boundary
def optimization_barrier(operand: T) -> T:
    """Return the operand, and prevent the compiler from moving operations across this point.

    Args:
      operand: a tree of arrays and references. The results are available when all operands have been computed.

    Returns:
      The same tree, with the same references.

    Raises:
      OperandError: a leaf is no array (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jit, lax
    >>> print(jit(lambda x: lax.optimization_barrier(jnp.sin(x)))(0.0))
    0.0
    """
    leaves, treedef = tree.flatten(operand)
    outs = optimization_barrier_p.bind(*[content_of(x) if isinstance(x, RefCell) else as_array(x) for x in leaves])
    for i, x in enumerate(leaves):
        if isinstance(x, RefCell):
            write(x, outs[i])
            outs[i] = x
    same: T = tree.unflatten(treedef, outs)
    return same


@optimization_barrier_p.jvp
def _barrier_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    ts = optimization_barrier_p.bind(*[t for t in tangents if t is not ZERO])
    return optimization_barrier_p.bind(*primals), scatter_where([t is not ZERO for t in tangents], ts, ZERO)


@optimization_barrier_p.transpose
def _barrier_transpose(cts: Sequence[Any], *operands: Any) -> list[Any]:
    found = optimization_barrier_p.bind(*[ct for ct in cts if ct is not ZERO])
    return scatter_where([ct is not ZERO for ct in cts], found, None)


@optimization_barrier_p.partial_eval
def _barrier_partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    """Split a barrier into a barrier for the known operands, and a barrier for the unknown operands.

    Args:
      unknown: for each operand whether it is unknown.
      eqn: the equation of the barrier.

    Returns:
      A list with the equation for the known operands; a list with the equation for the unknown operands; and for each
      result whether it is unknown.
    """
    (known, rest), (known_outs, rest_outs) = partition_list(eqn.invars, unknown), partition_list(eqn.outvars, unknown)
    return if_needed(eqn.like(known, known_outs)), if_needed(eqn.like(rest, rest_outs)), unknown


optimization_barrier_p.record(partial(record_split, optimization_barrier_p))
optimization_barrier_p.batch(lambda axis, args, dims: (optimization_barrier_p.bind(*args), dims))


@optimization_barrier_p.lowering
def write_barrier(hlo: Any, *operands: Any, avals: Sequence[ShapedArray] | None = None) -> list[Any]:
    """Write a barrier before operands of the types ``avals``, by default those of the results.

    The compiler aborts if only some of them are unreduced: these have a barrier of their own.
    """
    found: dict[Any, dict[int, Any]] = {}
    for i, (x, a) in enumerate(zip(operands, hlo.results if avals is None else avals, strict=True)):
        found.setdefault(None if a.explicit is None else a.explicit.spec.unreduced or None, {})[i] = x
    outs: dict[int, Any] = {}
    for group in found.values():
        types = [(x.shape, x.dtype) for x in group.values()]
        results = hlo.multi_result("stablehlo.optimization_barrier", list(group.values()), types)
        outs.update(zip(group, results, strict=True))
    return [outs[i] for i in range(len(operands))]
