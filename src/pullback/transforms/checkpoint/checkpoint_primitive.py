"""The primitive ``checkpoint``: a program with a policy that selects the values to save for the backward pass.

Differentiation splits it as any program: into primal values with residuals, and a program that is linear in the
tangents. The second recomputes the residuals that the policy does not save, from the operands and the saved values. Its
transpose is the backward pass: first the recomputation, then the cotangents.

``optimization_barrier`` is here, too: it prevents the compiler from merging the two computations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from pullback.core import tree
from pullback.core.array import as_array, fresh
from pullback.core.inlining import runs_once
from pullback.core.jaxpr import ClosedJaxpr, Eqn, jaxpr_as_fun
from pullback.core.lists import partition_list, scatter_where
from pullback.core.naming import named
from pullback.core.refs import RefCell
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, ShapedArray
from pullback.primitives.rules import as_moved, sharding_rule
from pullback.transforms.checkpoint.checkpoint_policies import Policy, everything_saveable, nothing_saveable
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.programs.jit_primitive import at_bottom, concrete
from pullback.transforms.programs.program_primitive import if_needed, program_primitive
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.refs import content_of, write
from pullback.transforms.traces.remat import remat_partial_eval

T = TypeVar("T")

Flags = Sequence[bool]

# The barrier ---------------------------------------------------------------------------------------------------------

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
def _barrier_lowering(hlo: Any, *operands: Any, avals: Sequence[ShapedArray] | None = None) -> list[Any]:
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


# The primitive -------------------------------------------------------------------------------------------------------


def _cut(jaxpr: ClosedJaxpr, unknown: Flags, policy: Policy | None, differentiated: bool, **rest: Any) -> Any:
    """Split a program by partial evaluation, with only the residuals that the policy allows.

    Args:
      jaxpr: the program.
      unknown: for each input whether it is unknown.
      policy: the policy; None saves no results.
      differentiated: whether the program comes from an earlier split, and recomputes values.
      rest: ignored.

    Returns:
      None if all inputs are unknown. Otherwise a pair: the split, and a dict of the parameters that change in the
      equation of the unknown program.
    """
    if all(unknown):
        return None
    if policy is everything_saveable:
        return partial_eval_jaxpr(jaxpr, unknown), {}
    split = remat_partial_eval(jaxpr, unknown, False, None if policy is nothing_saveable else policy)
    return split, {"differentiated": differentiated or split.recomputes}


checkpoint_p = program_primitive("checkpoint", _cut)
runs_once(checkpoint_p)(lambda jaxpr, **options: jaxpr)
checkpoint_p.impl(at_bottom(lambda args, params: jaxpr_as_fun(params["jaxpr"])(*args)))


@checkpoint_p.lowering
def _lowering(
    hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, policy: Any, prevent_cse: bool, differentiated: bool
) -> list[Any]:
    if not (prevent_cse and differentiated):
        return write_program(hlo, jaxpr, operands)
    reduces = any(a.explicit is not None and a.explicit.spec.unreduced for a in (*jaxpr.in_avals, *jaxpr.out_avals))
    if hlo.module.platform == "cpu" and not reduces:  # the compiler aborts if only some results are unreduced
        return _write_branch(hlo, operands, jaxpr)
    # The cotangents pass the barrier with the operands, so that the recomputation starts only when they are known.
    return write_program(hlo, jaxpr, _barrier_lowering(hlo, *operands, avals=jaxpr.in_avals))


def _write_branch(hlo: Any, operands: Sequence[Any], closed: ClosedJaxpr) -> list[Any]:
    """Emit a program as a branch of a conditional, and return its results.

    The branch is always taken, but the compiler cannot prove that, and therefore does not recompute values early. On
    CPUs the compiler of jaxlib 0.10.2 drops barriers before it schedules operations. The table is for the gradient of
    24 layers of width 64, with a checkpoint around every 4 layers and a batch of 512: memory in arrays of 512 x 64, and
    times in milliseconds. With jaxlib 0.12.0 the branch costs almost no time:

    | | 0.10.2: memory | run | compile | 0.12.0: memory | run | compile |
    |---|---|---|---|---|---|---|
    | without a checkpoint | 71 | 18 | | 71 | 18 | |
    | operands behind a barrier | 73 | 19 | 700 | 18 | 10.1 | 145 |
    | a branch | 18 | 9.4 | 220 | 18 | 10.1 | 160 |
    """
    effect = closed.jaxpr.effect
    bool_ = np.dtype(bool)
    order = hlo.number(False, bool_) if hlo.order is None else hlo.order
    types = [*[(a.shape, a.dtype) for a in closed.out_avals], *[((), bool_)] * effect]
    if not types:
        return []

    def program() -> list[Any]:
        # Without the barrier the compiler turns a short branch into a select, for which both results are computed.
        values = _barrier_lowering(hlo, *operands, avals=closed.in_avals)
        if not effect:
            return write_program(hlo, closed, values)
        hlo.order = order
        return [*write_program(hlo, closed, values), hlo.order]

    def zeros() -> list[Any]:
        return [hlo.splat(0, shape, dtype) for shape, dtype in types]

    always = _barrier_lowering(hlo, hlo.number(True, bool_), avals=[ShapedArray((), bool_)])
    outs = hlo.multi_result("stablehlo.if", always, types, "", [hlo.region([], program), hlo.region([], zeros)])
    if effect:
        *outs, hlo.order = outs
    return outs  # type: ignore[no-any-return]
