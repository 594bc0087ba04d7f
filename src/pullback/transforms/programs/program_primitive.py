"""Operations that hold one program: every transformation maps one to another, which holds the transformed program.

The transformed programs are kept as long as the one that they came from, so that nothing is traced or compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.core.errors import JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var
from pullback.core.linear import is_linear
from pullback.core.lists import partition_list, scatter_where, select
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, ShapedArray
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import transpose_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.lift import Feed, holds_programs
from pullback.transforms.traces.partial_eval import PartialEvaluation, partial_eval_jaxpr
from pullback.transforms.traces.remat import remat_program

Cut = Callable[..., tuple[PartialEvaluation, dict[str, Any]] | None]


def _plain_cut(jaxpr: ClosedJaxpr, unknown: Sequence[bool], **options: Any) -> Any:
    return partial_eval_jaxpr(jaxpr, unknown), {}


def program_primitive(name: str, cut: Cut = _plain_cut) -> Primitive:
    """An operation whose parameters are a program, ``jaxpr``, and options, which transformations pass on.

    It lacks the rules for evaluation and lowering.

    Args:
      name: its name.
      cut: ``cut(jaxpr, unknown_inputs, **options)`` returns the program's partial evaluation, and the options that are
        others for the unknown part; or None, if all of the operation is unknown.
    """
    p = Primitive(name, multiple_results=True, keeps_weak_type=False)

    @p.abstract_eval
    def abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, **options: Any) -> list[ShapedArray]:
        check_types(f"the program {options.get('name', '')} of this {name}", avals, jaxpr.in_avals)
        return jaxpr.out_avals

    def fed(*, jaxpr: ClosedJaxpr, **options: Any) -> Feed:
        return Feed((jaxpr,), lambda f: p.bind(*f.groups[0], jaxpr=f.programs[0], **options))

    holds_programs(p, fed, directional=True)

    @p.transpose
    def transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **options: Any) -> list[Any]:
        linear = tuple(map(is_linear, args))
        back = transposed(jaxpr, linear, tuple([ct is not ZERO for ct in cts]))
        operands = [x for x, n in zip(args, linear, strict=True) if not n] + [ct for ct in cts if ct is not ZERO]
        return scatter_where(linear, p.bind(*operands, jaxpr=back, **options), None)

    @p.partial_eval
    def partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
        found = cut(unknown=tuple(unknown), **eqn.params)
        if found is None:
            return [], [eqn], [True] * len(eqn.outvars)
        parts, changes = found
        known_inputs, unknown_inputs = partition_list(eqn.invars, unknown)
        known_outs, unknown_outs = partition_list(eqn.outvars, parts.unknown_outputs)
        bound = [*known_outs, *map(Var, parts.known.out_avals[len(known_outs) :])]
        operands = [*parts.residuals(known_inputs, bound), *unknown_inputs]
        first = eqn.like(known_inputs, bound, jaxpr=parts.known)
        second = eqn.like(operands, unknown_outs, jaxpr=parts.unknown, **changes)
        return if_needed(first), if_needed(second), parts.unknown_outputs

    p.dce(_dce)
    p.remat(remat_program)
    p.record(partial(record_split, p))
    return p


def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    smaller, used_inputs = dce_closed_jaxpr(eqn.params["jaxpr"], tuple(used))
    return eqn.like(select(eqn.invars, used_inputs), select(eqn.outvars, used), jaxpr=smaller)


def if_needed(eqn: Eqn) -> list[Eqn]:
    """An equation, unless it has neither results nor effects."""
    return [eqn] if eqn.outvars or eqn.effect else []


def check_types(what: str, given: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> None:
    """Refuse operands whose shapes or dtypes are not those that a program takes.

    Raises:
      JaxprError: the message shows both (an AssertionError).
    """
    if [(a.shape, a.dtype) for a in given] == [(a.shape, a.dtype) for a in expected]:
        return
    came, wanted = (", ".join(map(str, x)) for x in (given, expected))
    raise JaxprError(f"{what} takes ({wanted}), but was given ({came})")


@cached_by_jaxpr
def transposed(closed: ClosedJaxpr, linear: Sequence[bool], nonzero: Sequence[bool]) -> ClosedJaxpr:
    """The transpose of a program for those cotangents of its results that are not zero."""
    smaller, _ = dce_closed_jaxpr(closed, nonzero, instantiate=True)
    return transpose_jaxpr(smaller, linear)
