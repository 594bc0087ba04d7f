"""Operations that hold one program: transformations apply the same primitive to the transformed program.

Transformed programs are cached in the original program, so that no program is traced or compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from pullback.core.errors import JaxprError
from pullback.core.inlining import program_scope
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Var
from pullback.core.linear import is_linear
from pullback.core.lists import partition_list, scatter_where, select
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, ShapedArray
from pullback.transforms.traces.backward_logs import logs_within, of_one_program
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import transpose_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.lift import Feed, holds_programs
from pullback.transforms.traces.partial_eval import PartialEvaluation, partial_eval_jaxpr
from pullback.transforms.traces.remat import remat_program

Cut = Callable[..., tuple[PartialEvaluation, dict[str, Any]] | None]
"""A function for partial evaluation; see :func:`program_primitive`."""

Turned = Callable[..., ClosedJaxpr]
"""From a transposed program, the number of its last inputs that are cotangents, and the options, to the program."""

Scope = Callable[..., AbstractContextManager[None]]


def _everywhere(**options: Any) -> AbstractContextManager[None]:
    """The scope of a program that is transformed in the current context."""
    return nullcontext()


def _plain_cut(jaxpr: ClosedJaxpr, unknown: Sequence[bool], **options: Any) -> Any:
    """Split a program by partial evaluation, for a primitive whose options are the same in both programs.

    ``unknown`` flags the unknown inputs. Return the split, and an empty dictionary: no options change.
    """
    return partial_eval_jaxpr(jaxpr, unknown), {}


def _as_it_is(back: ClosedJaxpr, cotangents: int, **options: Any) -> ClosedJaxpr:
    """Return the transposed program of a primitive that does not change it."""
    return back


def _same(**options: Any) -> dict[str, Any]:
    """The options of the transpose of a program, where these are the options of the program."""
    return options


def program_primitive(
    name: str,
    cut: Cut = _plain_cut,
    scope: Scope = _everywhere,
    derived: Callable[..., dict[str, Any]] = _same,
    turned: Turned = _as_it_is,
) -> Primitive:
    """Make a primitive that runs a program, its parameter ``jaxpr``.

    Transformations of the primitive transform the program. They leave other parameters, the options, unchanged. The
    caller adds the rules for evaluation and lowering.

    Args:
      name: the name of the primitive.
      cut: ``cut(jaxpr, unknown, **options)`` splits the program by partial evaluation. It returns the split, and the
        options that differ for the unknown program; or None if the entire operation is unknown.
      scope: ``scope(**options)`` returns the context in which the program is transformed.
      derived: ``derived(**options)`` returns the options of the transposed program.
      turned: ``turned(back, cotangents, **options)`` returns the transposed program ``back``, perhaps changed;
        ``cotangents`` is the number of its last inputs that are cotangents.
    """
    p = Primitive(name, multiple_results=True, keeps_weak_type=False)

    @p.abstract_eval
    def abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, **options: Any) -> list[ShapedArray]:
        check_types(f"the program {options.get('name', '')} of this {name}", avals, jaxpr.in_avals)
        return jaxpr.out_avals

    def fed(*, jaxpr: ClosedJaxpr, **options: Any) -> Feed:
        bind = lambda f: p.bind(*f.groups[0], jaxpr=f.programs[0], **options)
        return Feed((jaxpr,), bind, scope=None if scope is _everywhere else lambda: scope(**options))

    holds_programs(p, fed, directional=True)
    if scope is not _everywhere:
        program_scope(p)(lambda *, jaxpr, **options: scope(**options))

    @p.transpose
    def transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **options: Any) -> list[Any]:
        linear = tuple(map(is_linear, args))
        with scope(**options):
            back = transposed(jaxpr, linear, tuple([ct is not ZERO for ct in cts]))
        given = [ct for ct in cts if ct is not ZERO]
        operands = [x for x, n in zip(args, linear, strict=True) if not n] + given
        back = turned(back, len(given), **options)
        return scatter_where(linear, p.bind(*operands, jaxpr=back, **derived(**options)), None)

    p.partial_eval(partial(_split, cut, scope))
    p.dce(_dce)
    logs_within(p)(of_one_program)
    p.remat(remat_program)
    p.record(partial(record_split, p))
    return p


def _split(cut: Cut, scope: Scope, unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    """The rule for partial evaluation: split the program by ``cut``, in the context ``scope``.

    ``unknown`` flags the unknown operands. Return the equations of the known program, those of the unknown program, and
    which results are unknown.
    """
    with scope(**{name: value for name, value in eqn.params.items() if name != "jaxpr"}):
        found = cut(unknown=tuple(unknown), **eqn.params)
    if found is None:
        return [], [eqn], [True] * len(eqn.outvars)
    split, changes = found
    known_inputs, unknown_inputs = partition_list(eqn.invars, unknown)
    known_outs, unknown_outs = partition_list(eqn.outvars, split.unknown_outputs)
    bound = [*known_outs, *map(Var, split.known.out_avals[len(known_outs) :])]
    operands = [*split.residuals(known_inputs, bound), *unknown_inputs]
    first = eqn.like(known_inputs, bound, jaxpr=split.known)
    second = eqn.like(operands, unknown_outs, jaxpr=split.unknown, **changes)
    return if_needed(first), if_needed(second), split.unknown_outputs


def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    """The rule for dead-code elimination: remove unused results, and inputs that only they need, from the program.

    ``used`` flags the used results. Return the smaller equation.
    """
    smaller, used_inputs = dce_closed_jaxpr(eqn.params["jaxpr"], tuple(used))
    return eqn.like(select(eqn.invars, used_inputs), select(eqn.outvars, used), jaxpr=smaller)


def if_needed(eqn: Eqn) -> list[Eqn]:
    """Return a list with the equation, or an empty list if the equation has neither results nor effects."""
    return [eqn] if eqn.outvars or eqn.effect else []


def check_types(what: str, actual: Sequence[ShapedArray], expected: Sequence[ShapedArray]) -> None:
    """Raise unless operands of the types ``actual`` have the shapes and dtypes of the types ``expected``.

    Raises:
      JaxprError: the types differ; the message begins with ``what``, a name of the program (an AssertionError).
    """
    if [(a.shape, a.dtype) for a in actual] == [(a.shape, a.dtype) for a in expected]:
        return
    got, wanted = (", ".join(map(format, x)) for x in (actual, expected))
    raise JaxprError(f"{what} takes ({wanted}), but got ({got})")


@cached_by_jaxpr
def transposed(closed: ClosedJaxpr, linear: Sequence[bool], nonzero: Sequence[bool]) -> ClosedJaxpr:
    """Transpose a program, so that it maps cotangents of results to cotangents of inputs.

    Args:
      closed: the program.
      linear: which inputs the program is linear in.
      nonzero: which results have cotangents that the transpose takes; the other cotangents are zero.
    """
    smaller, _ = dce_closed_jaxpr(closed, nonzero, instantiate=True)
    return transpose_jaxpr(smaller, linear)
