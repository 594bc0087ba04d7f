"""Programs of arrays only: values of users' types become the arrays of which they consist, as their types say.

An operation that holds programs is applied to the arrays, and to programs of arrays: its ``Feed`` says how operands
become their inputs. Other operations on users' values are replaced by what their rules for evaluation do. This happens
where a program is compiled or evaluated; all transformations before see the users' types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.array import as_array, typeof
from pullback.core.errors import CustomRuleError, OperandError
from pullback.core.inlining import inlined
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr, subjaxprs
from pullback.core.lists import split_list
from pullback.core.trace import Primitive, RelayTrace, state
from pullback.core.user_types import HiType, is_user_value, types_of_values
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import Fed, feed
from pullback.transforms.traces.stage import stage_flat

in_use: list[Any] = []
"""The classes of objects among parameters whose attribute ``is_high`` says that the operation stands for others,
perhaps on values of users' types. While there are none, programs are not looked through."""


def lo_types(avals: Sequence[Any]) -> list[Any]:
    """Return the types of the arrays of which values of some types consist."""
    return [lo for a in avals for lo in (lo_types(a.lo_ty()) if isinstance(a, HiType) else [a])]


def lowered_values(values: Sequence[Any]) -> list[Any]:
    """Return the arrays of which values consist; arrays stay as they are."""
    return [lo for x in values for lo in (_arrays_of(x) if is_user_value(x) else [x])]


def _arrays_of(x: Any) -> list[Any]:
    aval = typeof(x)
    found = [lo if is_user_value(lo) else as_array(lo) for lo in aval.lower_val(x)]
    expected = aval.lo_ty()
    for lo, t in zip(found, expected, strict=False):
        if not isinstance(t, HiType) and (lo.shape, lo.dtype) != (t.shape, t.dtype):
            raise CustomRuleError(f"lower_val of {aval} returned an array of type {typeof(lo)}, where lo_ty says {t}")
    if len(found) != len(expected):
        raise CustomRuleError(f"lower_val of {aval} returned {len(found)} arrays, where lo_ty has {len(expected)}")
    return lowered_values(found)


def raised_values(avals: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Return values of some types from the arrays of which they consist: the inverse of :func:`lowered_values`."""
    rest = iter(arrays)

    def value(aval: Any) -> Any:
        return aval.raise_val(*map(value, aval.lo_ty())) if isinstance(aval, HiType) else next(rest)

    return list(map(value, avals))


def is_high(closed: ClosedJaxpr) -> bool:
    """Whether a program has values of users' types, or operations that stand for others."""
    return bool(in_use) and _is_high(closed)


@cached_by_jaxpr
def _is_high(closed: ClosedJaxpr) -> bool:
    return _any_high(closed.jaxpr)


def _any_high(jaxpr: Any) -> bool:
    for eqn in jaxpr.eqns:
        if any(isinstance(v.aval, HiType) for v in eqn.outvars):
            return True
        if any(getattr(x, "is_high", False) for x in eqn.params.values()):
            return True
        if eqn.params and any(map(_any_high, subjaxprs(eqn))):
            return True
    return any(isinstance(v.aval, HiType) for v in (*jaxpr.invars, *jaxpr.constvars))


@cached_by_jaxpr
def lowered(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program of arrays only, whose inputs and results are the arrays of those of ``closed``."""
    if not is_high(closed):
        return closed
    closed, _ = dce_closed_jaxpr(closed, (True,) * len(closed.out_avals), instantiate=True)

    def run(*arrays: Any) -> list[Any]:
        operands = raised_values(closed.in_avals, arrays)
        trace = RelayTrace(state.trace, _relay, closed, "lowering of users' types")
        return lowered_values(trace.run(lambda: eval_jaxpr(closed.jaxpr, closed.consts, *operands)))

    return stage_flat(closed, run, lo_types(closed.in_avals))


def _relay(trace: RelayTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    if needs_lowering(args, params):
        return apply_lowered(primitive, args, params)
    outer, state.trace = state.trace, trace.parent
    try:
        return trace.parent.process(primitive, args, params)
    finally:
        state.trace = outer


def needs_lowering(args: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether an operation is on users' values, or holds a program that is."""
    if not in_use:
        return False
    if types_of_values and any(map(is_user_value, args)):
        return True
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if is_high(item) if isinstance(item, ClosedJaxpr) else getattr(item, "is_high", False):
                return True
    return False


def apply_lowered(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply an operation on users' values by operations on arrays, under the current trace; return its results."""
    rule = feed.of(primitive)
    if rule is None:
        program = inlined.of(primitive)
        if program is not None:
            closed = program(**params)
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)
        if primitive.decomposition_rule is not None:
            return primitive.decomposition_rule(*args, **params)
        if primitive.impl_rule is not None:
            return primitive.impl_rule(args, params)
        raise OperandError(f"{primitive.name} takes arrays, but got ({', '.join(format(typeof(x)) for x in args)})")
    feeding = rule(**params)
    with feeding.within():
        programs = tuple(map(lowered, feeding.programs))
        test = None if feeding.test is None else lowered(feeding.test[0])
    groups = [lowered_values(group) for group in split_list(args, *feeding.sizes)]
    results = primitive.abstract_eval_rule(*map(typeof, args), **params)  # type: ignore[misc]
    outs = feeding.bind(Fed(programs, test, groups))
    return raised_values(results, outs)


for _kind in (Jaxpr, ClosedJaxpr):  # an attribute of JAX's programs
    _kind.is_high = property(lambda self: _any_high(getattr(self, "jaxpr", self)))  # type: ignore[union-attr]
