"""The form in which a compiler runs a program: what a prediction of its memory has to know before fusion.

Calls are inlined, and equal regions become calls, as the lowering does. Operations that are formulas of others become
these. Products and convolutions read their operands in one order of axes: others are copied into it first. Equal
operations on equal operands run once.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pullback.backends.compiler import equal_parts
from pullback.core import dtypes, inlining
from pullback.core.config import config
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, holds_programs
from pullback.core.jaxpr_text import literal_key
from pullback.core.types import ShapedArray
from pullback.primitives import elementwise
from pullback.primitives.arrays import scatter
from pullback.primitives.arrays.shapes import broadcast_in_dim_p, transpose_p
from pullback.primitives.linalg.contraction import dot_general_p
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p
from pullback.transforms.checkpoint.gates import TURN, gated
from pullback.transforms.programs.jit_primitive import jit_p
from pullback.transforms.traces.stage import stage_flat

_formulas: dict[Any, Callable[..., Any]] = {
    elementwise.logistic_p: elementwise.logistic_formula,
    elementwise.logistic_slope_p: elementwise.logistic_slope_formula,
}
"""Operations that the compiler, or the lowering, writes as several: their parts may be shared, or kept in memory."""
_UPDATES = frozenset({
    scatter.scatter_p, scatter.scatter_add_p, scatter.scatter_mul_p, scatter.scatter_min_p, scatter.scatter_max_p,
})  # fmt: skip
_NOTHING = frozenset({elementwise.copy_p, elementwise.stop_gradient_p})
"""Operations for which the compiler has none: their results are their operands."""
_staged: dict[Any, ClosedJaxpr] = {}


class CompiledForm(NamedTuple):
    """A program as a compiler runs it.

    Attributes:
      program: the program.
      made_by: for each result of an outlined region, the operation of the region that makes it.
    """

    program: ClosedJaxpr
    made_by: dict[Var, Eqn]


def compiled_form(closed: ClosedJaxpr) -> CompiledForm:
    """Return a program in the form in which a compiler runs it."""
    flat = inlining.flattened(closed, inlining.inlined)
    jaxpr = flat.jaxpr
    calls: list[Eqn] = []
    made_by: dict[Var, Eqn] = {}
    start = 0
    for region in equal_parts.find(jaxpr, equal_parts.Kinds()) if config.equal_parts else ():
        calls += jaxpr.eqns[start : region.start]
        inside = {v: eqn for eqn in jaxpr.eqns[region.start : region.stop] for v in eqn.outvars}
        made_by.update((v, inside[v]) for v in region.results)
        last = jaxpr.eqns[region.stop - 1]
        params = {"jaxpr": ClosedJaxpr(region.function)}
        calls.append(Eqn(jit_p, list(region.operands), params, list(region.results), last.made_at, last.scope))
        start = region.stop
    calls += jaxpr.eqns[start:]
    eqns = [each for eqn in _with_gates(calls) for each in _written_out(eqn)]
    program = without_duplicates(ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), flat.consts))
    return CompiledForm(_with_copies(_with_folded_transpositions(program)), made_by)


def _with_gates(eqns: Sequence[Eqn]) -> Iterator[Eqn]:
    """Replace checkpointed functions by their operations, and by gates, except those that become branches."""
    turn: Var | None = None
    for eqn in eqns:
        if eqn.primitive is not checkpoint_p:
            yield eqn
        elif not (eqn.params["prevent_cse"] and eqn.params["differentiated"]):
            yield from _with_gates(list(_within(eqn, eqn.params["jaxpr"])))
        elif (program := gated(eqn.params["jaxpr"])) is None:
            yield eqn
        else:
            if turn is None:
                turn = Var(ShapedArray((1,), TURN))
                zero = Literal(TURN.type(0), ShapedArray((), TURN))
                yield Eqn(broadcast_in_dim_p, [zero], {"shape": (1,), "broadcast_dimensions": ()}, [turn])
            following = Var(turn.aval)
            yield from _with_gates(list(_within(eqn.like([*eqn.invars, turn], [*eqn.outvars, following]), program)))
            turn = following


def _written_out(eqn: Eqn) -> Iterator[Eqn]:
    """Return the operations that a compiler runs for an operation."""
    formula = _formulas.get(eqn.primitive)
    if formula is not None and dtypes.is_float(eqn.outvars[0].aval.dtype):
        yield from _by_formula(eqn, formula)
    elif "dimension_numbers" in eqn.params and len(eqn.invars) == 2 and eqn.params.get("feature_group_count", 1) == 1:
        yield from _with_ordered_axes(eqn)
    else:
        yield eqn


def _by_formula(eqn: Eqn, formula: Callable[..., Any]) -> Iterator[Eqn]:
    avals = tuple([a.aval for a in eqn.invars])
    key = eqn.primitive, avals
    if key not in _staged:
        _staged[key] = stage_flat(formula, lambda *xs: [formula(*xs)], avals)
    found = _staged[key]
    for each in _within(eqn, found):
        yield Eqn(each.primitive, each.invars, each.params, each.outvars, eqn.made_at, eqn.scope)


def _within(eqn: Eqn, program: ClosedJaxpr) -> Iterator[Eqn]:
    """Return the operations of the program of an operation, with its operands and results."""
    jaxpr = inlining.flattened(program, inlining.inlined).jaxpr
    names: dict[Any, Atom] = dict(zip(jaxpr.invars, eqn.invars, strict=True))
    results: dict[Any, Var] = {}
    for a, v in zip(jaxpr.outvars, eqn.outvars, strict=True):
        if type(a) is Var and a not in names:
            results.setdefault(a, v)
    for each in jaxpr.eqns:
        outvars = [results.get(v) or Var(v.aval) for v in each.outvars]
        operands = [names.get(a, a) if type(a) is Var else a for a in each.invars]
        names.update(zip(each.outvars, outvars, strict=True))
        yield each.like(operands, outvars)
    for a, v in zip(jaxpr.outvars, eqn.outvars, strict=True):  # results that are operands, constants, or others
        if results.get(a) is not v:
            yield Eqn(elementwise.copy_p, [names.get(a, a) if type(a) is Var else a], {}, [v], eqn.made_at, eqn.scope)


# Orders of axes ------------------------------------------------------------------------------------------------------


def _with_ordered_axes(eqn: Eqn) -> Iterator[Eqn]:
    """Return a product or a convolution, and before it the transpositions of the operands into the compiler's order."""
    numbers = eqn.params["dimension_numbers"]
    if hasattr(numbers, "rhs_spec"):
        orders = _convolution_orders(numbers)
    elif type(numbers) is tuple and len(numbers) == 2:
        orders = _product_orders(numbers, [len(a.aval.shape) for a in eqn.invars])
    else:
        yield eqn
        return
    operands: list[Atom] = []
    for a, order in zip(eqn.invars, orders, strict=False):
        if order == sorted(order) or type(a) is Literal:
            operands.append(a)
            continue
        moved = Var(_permuted(a.aval, order))
        yield Eqn(transpose_p, [a], {"permutation": tuple(order)}, [moved], eqn.made_at, eqn.scope)
        operands.append(moved)
    out = eqn.outvars[0]
    if len(orders) > 2 and orders[2] != sorted(orders[2]):
        moved = Var(_permuted(out.aval, orders[2]))
        yield Eqn(eqn.primitive, operands, eqn.params, [moved], eqn.made_at, eqn.scope)
        back = tuple(sorted(range(len(orders[2])), key=orders[2].__getitem__))
        yield Eqn(transpose_p, [moved], {"permutation": back}, [out], eqn.made_at, eqn.scope)
    else:
        yield Eqn(eqn.primitive, operands, eqn.params, [out], eqn.made_at, eqn.scope)


def _permuted(aval: ShapedArray, order: Sequence[int]) -> ShapedArray:
    return ShapedArray(tuple([aval.shape[i] for i in order]), aval.dtype)


def _convolution_orders(numbers: Any) -> list[list[int]]:
    """Return the orders: batch, space, features of operand and result; space, inputs, outputs of the kernel."""
    x, w, y = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec
    return [[x[0], *x[2:], x[1]], [*w[2:], w[1], w[0]], [y[0], *y[2:], y[1]]]


def _product_orders(numbers: Any, ranks: Sequence[int]) -> list[list[int]]:
    """Return the orders: batch, free, contracted of the first operand; batch, contracted, free of the second.

    A product of matrices, or of batches of matrices whose batch axes come first, is computed as it is, over either axis
    of its operands. Neighbouring contracted axes are one axis there, as the lowering merges them.
    """
    contracted, batch = numbers
    free = [
        [i for i in range(rank) if i not in axes and i not in shared]
        for rank, axes, shared in zip(ranks, contracted, batch, strict=True)
    ]
    pairs = sorted(zip(*contracted, strict=True))
    one_axis = all(b == (a[0] + 1, a[1] + 1) for a, b in itertools.pairwise(pairs))
    leading = all(tuple(axes) == tuple(range(len(axes))) for axes in batch)
    first, second = [*batch[0], *free[0], *contracted[0]], [*batch[1], *contracted[1], *free[1]]
    return [
        sorted(order) if one_axis and leading and len(axes) <= 1 else order
        for order, axes in zip((first, second), free, strict=True)
    ]


def _with_folded_transpositions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Let products of two matrices read a transposed operand as it was before."""
    jaxpr = closed.jaxpr
    before: dict[Var, Atom] = {}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is transpose_p and len(eqn.outvars[0].aval.shape) == 2:
            before[eqn.outvars[0]] = eqn.invars[0]
        elif eqn.primitive is dot_general_p and any(a in before for a in eqn.invars):
            (contracted, batch), operands = eqn.params["dimension_numbers"], list(eqn.invars)
            turned = [tuple(1 - i for i in axes) if a in before else axes
                      for a, axes in zip(operands, contracted, strict=True)]  # fmt: skip
            if not batch[0]:
                operands = [before.get(a, a) for a in operands]  # type: ignore[arg-type]
                eqn = eqn.like(operands, eqn.outvars, dimension_numbers=(tuple(turned), batch))
        eqns.append(eqn)
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), closed.consts) if before else closed


# Updates -------------------------------------------------------------------------------------------------------------


def updates(eqn: Eqn) -> bool:
    """Whether an operation returns its first operand with some elements written anew."""
    return eqn.primitive in _UPDATES


def _with_copies(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Copy the operands of updates that others read, too: an update writes over its operand."""
    jaxpr = closed.jaxpr
    if not any(map(updates, jaxpr.eqns)):
        return closed
    readers = collections.Counter(a for eqn in jaxpr.eqns for a in eqn.invars if type(a) is Var)
    readers.update([*jaxpr.constvars, *jaxpr.invars, *[a for a in jaxpr.outvars if type(a) is Var]])
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        a = eqn.invars[0] if eqn.invars else None
        if updates(eqn) and type(a) is Var and readers[a] > 1:
            own = Var(a.aval)
            eqns.append(Eqn(elementwise.copy_p, [a], {}, [own], eqn.made_at, eqn.scope))
            eqn = eqn.like([own, *eqn.invars[1:]], eqn.outvars)
        eqns.append(eqn)
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, jaxpr.outvars), closed.consts)


# Duplicates ----------------------------------------------------------------------------------------------------------


def without_duplicates(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program that computes each value once: compilers merge equal operations on equal operands."""
    first: dict[Any, list[Var]] = {}
    same: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    jaxpr = closed.jaxpr
    for eqn in jaxpr.eqns:
        invars = [same.get(a, a) for a in eqn.invars]
        if eqn.primitive in _NOTHING:
            same[eqn.outvars[0]] = invars[0]
            continue
        key = _key(eqn, invars)
        if key is not None and key in first:
            same.update(zip(eqn.outvars, first[key], strict=True))
            continue
        if key is not None:
            first[key] = eqn.outvars
        eqns.append(eqn if invars == eqn.invars else eqn.like(invars, eqn.outvars))
    if not same:
        return closed
    outvars = [same.get(a, a) for a in jaxpr.outvars]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outvars), closed.consts)


def _key(eqn: Eqn, invars: Sequence[Any]) -> Any:
    """Return a key that operations with equal results share; None if there is none, as for operations with effects."""
    if (eqn.params and holds_programs(eqn.params)) or eqn.primitive.effect:
        return None
    operands = tuple([a if type(a) is Var else (literal_key(a), a.aval) for a in invars])
    key = eqn.primitive, operands, tuple(sorted(eqn.params.items(), key=_name))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _name(item: tuple[str, Any]) -> str:
    return item[0]
