"""The primitive ``checkpoint``: a program with a policy that selects the values to save for the backward pass.

Differentiation splits it as any program: into primal values with residuals, and a program that is linear in the
tangents. The second recomputes the residuals that the policy does not save, from the operands and the saved values. Its
transpose is the backward pass: first the recomputation, then the cotangents.

The compiler must not merge the recomputation with the first computation. On CPUs it passes gates, or is a branch; on
other platforms its operands pass an ``optimization_barrier``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.inlining import runs_once
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.types import ShapedArray
from pullback.transforms.checkpoint.barriers import write_barrier
from pullback.transforms.checkpoint.checkpoint_policies import Policy, everything_saveable, nothing_saveable
from pullback.transforms.checkpoint.gates import TURN, gated, with_named_cotangents
from pullback.transforms.programs.jit_primitive import at_bottom
from pullback.transforms.programs.program_primitive import program_primitive
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.remat import remat_partial_eval

Flags = Sequence[bool]


def _turned(back: ClosedJaxpr, cotangents: int, prevent_cse: bool, differentiated: bool, **rest: Any) -> ClosedJaxpr:
    """Name the cotangents of a transposed program that computes values again."""
    return with_named_cotangents(back, cotangents) if prevent_cse and differentiated else back


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


checkpoint_p = program_primitive("checkpoint", _cut, turned=_turned)
runs_once(checkpoint_p)(lambda jaxpr, **options: jaxpr)
checkpoint_p.impl(at_bottom(lambda args, params: jaxpr_as_fun(params["jaxpr"])(*args)))


@checkpoint_p.lowering
def _lowering(
    hlo: Any, *operands: Any, jaxpr: ClosedJaxpr, policy: Any, prevent_cse: bool, differentiated: bool
) -> list[Any]:
    if not (prevent_cse and differentiated):
        return write_program(hlo, jaxpr, operands)
    program = gated(jaxpr) if hlo.module.platform == "cpu" else None
    if program is not None and hlo.module.whole_arrays():  # gates read elements, which one device may not have
        turn = hlo.splat(0, (1,), TURN) if hlo.turn is None else hlo.turn
        *outs, hlo.turn = write_program(hlo, program, [*operands, turn])
        return outs
    reduces = any(a.explicit is not None and a.explicit.spec.unreduced for a in (*jaxpr.in_avals, *jaxpr.out_avals))
    if hlo.module.platform == "cpu" and not reduces:  # the compiler aborts if only some results are unreduced
        return _write_branch(hlo, operands, jaxpr)
    # The cotangents pass the barrier with the operands, so that the recomputation starts only when they are known.
    return write_program(hlo, jaxpr, write_barrier(hlo, *operands, avals=jaxpr.in_avals))


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
        values = write_barrier(hlo, *operands, avals=closed.in_avals)
        if not effect:
            return write_program(hlo, closed, values)
        hlo.order = order
        return [*write_program(hlo, closed, values), hlo.order]

    def zeros() -> list[Any]:
        return [hlo.splat(0, shape, dtype) for shape, dtype in types]

    always = write_barrier(hlo, hlo.number(True, bool_), avals=[ShapedArray((), bool_)])
    outs = hlo.multi_result("stablehlo.if", always, types, "", [hlo.region([], program), hlo.region([], zeros)])
    if effect:
        *outs, hlo.order = outs
    return outs  # type: ignore[no-any-return]
