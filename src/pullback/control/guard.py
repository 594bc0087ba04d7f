"""The primitive ``guard``, for operands of a function that runs for a batch, but is needed for some examples only.

A mapped branch runs for all examples, and its results are selected. For an example that does not need it, it may have
no finite derivative, and zero times infinity is NaN. So under differentiation the operands of these examples are
replaced by those of an example that needs the function. Otherwise the operands are unchanged, at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.check_rules import checked_program
from pullback.core.jaxpr import Eqn
from pullback.core.linear import is_linear
from pullback.core.lists import select
from pullback.core.taylor_rules import taylor_program
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis
from pullback.primitives.arrays.indexing import dynamic_slice
from pullback.primitives.arrays.shapes import front_aligned
from pullback.primitives.elementwise import where
from pullback.primitives.reductions import argmax, reduce_or
from pullback.primitives.rules import as_inferred, sharding_rule
from pullback.transforms.checks.trace import USER, CheckTrace
from pullback.transforms.programs.program_primitive import if_needed
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.known_linear import record_split

Mapped = tuple[bool, ...]
_int32 = np.dtype(np.int32)


def guard(needed: Any, operands: Sequence[Any], mapped: Sequence[bool]) -> list[Any]:
    """Return the operands of a function whose results only some examples of a batch need.

    The values are unchanged. Derivatives replace the operands of the other examples, so that a NaN or an infinity there
    does not reach the derivatives of shared operands.

    Args:
      needed: which examples need the function, booleans of shape ``(n,)``.
      operands: the operands of the function.
      mapped: which operands have an element for each example, along axis 0; the examples share the others.
    """
    return guard_p.bind(needed, *operands, mapped=tuple(mapped))  # type: ignore[no-any-return]


guard_p = Primitive("guard", multiple_results=True, keeps_weak_type=False, cost=Cost.SIMPLE, passes_nan=True)
sharding_rule(guard_p)(as_inferred)
guard_p.host(lambda needed, *operands, mapped: list(operands))
guard_p.abstract_eval(lambda needed, *operands, mapped: list(operands))
guard_p.lowering(lambda hlo, needed, *operands, mapped: list(operands))


@guard_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, mapped: Mapped) -> tuple[list[Any], list[Any]]:
    """The jvp rule. In place of examples that are not needed, it returns the operands of the first needed example.

    Their tangents are zero. ``mapped`` says for each operand whether it has an element for each example.
    """
    needed, *operands = primals
    some, first = reduce_or(needed, (0,)), argmax(needed, 0, _int32)
    outs = []
    for x, m in zip(operands, mapped, strict=True):
        if m and dtypes.is_inexact(x.dtype):
            starts = [first, *[0] * (len(x.shape) - 1)]
            x = where(_broadcastable(needed, x), x, dynamic_slice(x, starts, (1, *x.shape[1:])))
        outs.append(x)
    return outs, [
        ZERO if t is ZERO else where(_broadcastable(needed, t) if m else some, t, 0)
        for t, m in zip(tangents[1:], mapped, strict=True)
    ]


@taylor_program(guard_p)
def _taylor(order: int, primals: Sequence[Any], series: Sequence[Any], *, mapped: Mapped) -> Any:
    """The Taylor rule: apply the jvp rule to the coefficients ``series`` of each order.

    The coefficients of examples that are not needed become zero.
    """
    orders = [_jvp(primals, tangents, mapped=mapped)[1] for tangents in zip(*series, strict=True)]
    return _jvp(primals, [ZERO] * len(primals), mapped=mapped)[0], list(zip(*orders, strict=True))


def _broadcastable(needed: Any, x: Any) -> Any:
    """Reshape ``needed`` to broadcast against an operand."""
    return front_aligned(needed, 0, len(x.shape) - 1)


@guard_p.transpose
def _transpose(cts: Sequence[Any], needed: Any, *operands: Any, mapped: Mapped) -> list[Any]:
    some = reduce_or(needed, (0,))
    return [None] + [
        where(_broadcastable(needed, ct) if m else some, ct, 0) if is_linear(x) and ct is not ZERO else None
        for ct, x, m in zip(cts, operands, mapped, strict=True)
    ]


@guard_p.batch
def _batch(
    axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, mapped: Mapped
) -> tuple[list[Any], list[int | None]]:
    # The first example that needs the function differs along the new axis: replace operands now, as the jvp rule does.
    return batch_flat("guard", lambda *xs: _jvp(xs, [ZERO] * len(xs), mapped=mapped)[0], axis, args, dims)


@guard_p.dce
def _dce(used: Sequence[bool], eqn: Eqn) -> Eqn:
    needed, *operands = eqn.invars
    mapped = tuple(select(eqn.params["mapped"], used))
    return eqn.like([needed, *select(operands, used)], select(eqn.outvars, used), mapped=mapped)


@guard_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    """The rule for partial evaluation: split ``guard`` into one for the known and one for the unknown operands.

    If the first operand, the mask of needed examples, is unknown, all results are unknown.
    """
    results = [u or unknown[0] for u in unknown[1:]]
    return if_needed(_dce([not u for u in results], eqn)), if_needed(_dce(results, eqn)), results


guard_p.record(partial(record_split, guard_p))


@checked_program(guard_p)
def _checked(trace: CheckTrace, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The rule for ``checkify``: replace the operands of unneeded examples by those of the first needed example.

    Checks run for all examples; with these operands, an unneeded example causes no failure of its own.
    """
    if trace.errors == USER:
        return guard_p.bind(*args, **params)  # type: ignore[no-any-return]
    needed, *operands = args
    first = argmax(needed, 0, _int32)
    outs = []
    for x, m in zip(operands, params["mapped"], strict=True):
        if m:
            other = dynamic_slice(x, [first, *[0] * (len(x.shape) - 1)], (1, *x.shape[1:]))
            x = where(_broadcastable(needed, x), x, other)
        outs.append(x)
    return guard_p.bind(needed, *outs, **params)  # type: ignore[no-any-return]
