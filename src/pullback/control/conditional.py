"""``cond`` and ``switch``: one of several functions, chosen by a value, and the primitive ``cond``.

Operands of the primitive are the number of the branch, an int32 in range, and what all branches take. The branches
return results of the same types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np

from pullback.control import emission
from pullback.control.branch_types import branch_names, common_types, run_compared, staged_branches
from pullback.control.common import (
    INTERPRETED,
    Body,
    array_of,
    deduplicated,
    known,
    leaves_of,
    op_count,
    run_interpreted,
    with_varying_predicate,
    without_refs,
)
from pullback.control.guard import guard
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.array import Array, ArrayLike, as_array, host_value, typeof
from pullback.core.config import config
from pullback.core.errors import ControlFlowError, JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, jaxpr_as_fun
from pullback.core.linear import is_linear
from pullback.core.lists import partition_list, scatter_where, select
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.zeros import zeros_of
from pullback.primitives.arrays.shapes import front_aligned
from pullback.primitives.axis_maps import front
from pullback.primitives.collectives import vary
from pullback.primitives.elementwise import clamp_p, convert_element_type, convert_element_type_p, eq_p, ne_p, select_n
from pullback.transforms.checks.trace import batch_checked, has_checks
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import check_callable, out_leaf
from pullback.transforms.programs.jit_primitive import at_bottom, concrete, run_compiled
from pullback.transforms.programs.program_primitive import check_types, if_needed, transposed
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.jaxprs import batch_jaxpr
from pullback.transforms.traces.known_linear import record_split
from pullback.transforms.traces.lift import Feed, batch_of_programs, holds_programs
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr
from pullback.transforms.traces.refs import Ref, contents, write_all
from pullback.transforms.traces.stage import stage_flat

R = TypeVar("R")

Branches = tuple[ClosedJaxpr, ...]
_int32 = np.dtype(np.int32)
_NOTHING: Any = object()


# The public functions ------------------------------------------------------------------------------------------------


@overload
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., ArrayLike],
    false_fun: Callable[..., Any],
    *operands: PyTree,
    operand: PyTree = ...,
) -> Array: ...
@overload
def cond(
    pred: ArrayLike, true_fun: Callable[..., R], false_fun: Callable[..., Any], *operands: PyTree, operand: PyTree = ...
) -> R: ...
@overload
def cond(pred: ArrayLike, true_fun: PyTree, false_fun: Callable[..., Any], *operands: PyTree) -> PyTree: ...
@api_boundary
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: PyTree,
    operand: PyTree = _NOTHING,
) -> Any:
    """The result of one of two functions, chosen by a value: only that one is run.

    Both functions must return the same types. Eager, the one that is chosen is called as ordinary Python where the
    value is known. The first time for some functions and types of operands both are also traced, to compare what they
    return; not so if one of them looks at values, as ``if`` does. Under ``vmap``, if ``pred`` is mapped, both are run,
    and the results selected.

    Args:
      pred: a boolean or a number of no axes; a number counts as true if it is not zero.
      true_fun: called as ``true_fun(*operands)`` if ``pred`` holds.
      false_fun: called as ``false_fun(*operands)`` if not.
      operands: trees of arrays.
      operand: a single operand, by its name.

    Returns:
      What the function returns, a tree of arrays.

    Raises:
      ControlFlowError: ``pred`` is no scalar; or the functions return different trees, shapes or dtypes (a TypeError
        and ValueError).

    The older spelling ``cond(pred, true_operand, true_fun, false_operand, false_fun)`` is understood too.

    >>> import pullback.numpy as pnp
    >>> print(cond(2.0 > 1.0, pnp.sin, pnp.cos, 0.0))
    0.0
    """
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        first, second = false_fun, operands[1]
        pair = true_fun, operands[0]
        return cond(pred, lambda x, _: first(x), lambda _, x: second(x), *pair)
    check_callable(true_fun, "cond")
    check_callable(false_fun, "cond")
    index = _predicate(pred)
    return _choose("cond", index, [false_fun, true_fun], _operands("cond", operands, operand))


@overload
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., ArrayLike]], *operands: PyTree, operand: PyTree = ...
) -> Array: ...
@overload
def switch(index: ArrayLike, branches: Sequence[Callable[..., R]], *operands: PyTree, operand: PyTree = ...) -> R: ...
@api_boundary
def switch(
    index: ArrayLike, branches: Sequence[Callable[..., Any]], *operands: PyTree, operand: PyTree = _NOTHING
) -> Any:
    """The result of one of several functions, chosen by a number: only that one is run.

    See :func:`cond` for when the functions are run as ordinary Python, and when all of them are traced or run.

    Args:
      index: an integer of no axes; one that is out of range chooses the first or the last function.
      branches: functions, each called as ``branch(*operands)``.
      operands: trees of arrays.
      operand: a single operand, by its name.

    Returns:
      What the function returns, a tree of arrays.

    Raises:
      ControlFlowError: there are no branches; ``index`` is no integer scalar; or the functions return different trees,
        shapes or dtypes (a TypeError and ValueError).

    >>> import pullback.numpy as pnp
    >>> print(switch(1, [pnp.sin, pnp.cos, pnp.tan], 0.0))
    1.0
    """
    if not isinstance(branches, Sequence) or not branches:
        raise ControlFlowError(f"switch takes a sequence of at least one function, got {branches!r}")
    for branch in branches:
        check_callable(branch, "switch")
    number = array_of(index, "switch", "the index")
    if number.shape != () or not dtypes.is_integer(number.dtype):
        raise ControlFlowError(f"switch: the index must be an integer of no axes, got one of type {number.aval}")
    given = _operands("switch", operands, operand)
    if len(branches) == 1:
        return _called(branches[0], "switch", given)
    value = known(number)
    last = len(branches) - 1
    if value is not None:
        clamped: Any = as_array(np.int32(min(max(int(value), 0), last)))
    else:
        wide = number.dtype.type
        clamped = convert_element_type(
            clamp_p.bind(wide(0), number, wide(min(last, dtypes.iinfo(number.dtype).max))), _int32
        )
    return _choose("switch", clamped, list(branches), given)


def _operands(what: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _NOTHING:
        return operands
    if operands:
        raise ControlFlowError(f"{what} takes operands by position, or one by the name operand, but got both")
    return (operand,)


def _predicate(pred: Any) -> Any:
    """A condition as the number of a branch."""
    if type(pred) is bool:
        return as_array(np.int32(pred))
    x = array_of(pred, "cond", "the predicate")
    if x.shape != () or not (dtypes.is_bool(x.dtype) or dtypes.is_integer(x.dtype) or dtypes.is_inexact(x.dtype)):
        hint = " For arrays of conditions use jnp.where, or vmap." if x.shape else ""
        raise ControlFlowError(f"cond: the predicate must be a boolean of no axes, got one of type {x.aval}.{hint}")
    if not dtypes.is_bool(x.dtype):
        x = ne_p.bind(x, 0)
    return convert_element_type(x, _int32)


def _choose(what: str, index: Any, functions: list[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """The result of the function whose number is ``index``."""
    value = known(index)
    if value is not None and (config.disable_jit or state.trace.eager):
        if config.disable_jit:
            return _called(functions[int(value)], what, operands)
        return run_compared(what, int(value), functions, operands)
    operands, with_refs = without_refs(operands)
    leaves, in_tree = leaves_of(operands, what, "operands")
    bodies = staged_branches(what, functions, [x.aval for x in leaves], in_tree, with_refs)
    axes = typeof(index).varying
    if axes:
        bodies, leaves = [with_varying_predicate(body, axes) for body in bodies], [vary(x, axes) for x in leaves]
    wanted = common_types(what, branch_names(what, functions), bodies)
    refs = list(dict.fromkeys(ref for body in bodies for ref in body.refs))
    held = contents(refs)
    if refs:
        bodies, wanted = [_with_refs(body, refs, held) for body in bodies], [*wanted, *map(typeof, held)]
    captured: dict[Any, Any] = {}
    for body in bodies:
        captured.update(zip(_keys(body.captured), body.captured, strict=True))
    branches = tuple(deduplicated(_branch(body, captured, wanted)) for body in bodies)
    outs = cond_p.bind(index, *captured.values(), *leaves, *held, branches=branches)
    if refs:
        write_all(refs, outs[len(outs) - len(refs) :])
    return tree.unflatten(bodies[0].out_tree, outs[: len(outs) - len(refs)])


def _with_refs(body: Body, refs: Sequence[Ref], held: Sequence[Any]) -> Body:
    """A branch that takes what these references hold, and returns what they hold at the end, written or not."""
    jaxpr = body.jaxpr.jaxpr
    inputs, results = len(jaxpr.invars) - len(body.refs), len(jaxpr.outvars) - len(body.refs)
    before = dict(zip(body.refs, jaxpr.invars[inputs:], strict=True))
    after = dict(zip(body.refs, jaxpr.outvars[results:], strict=True))
    for ref, x in zip(refs, held, strict=True):
        if ref not in before:
            before[ref] = after[ref] = Var(typeof(x))
    invars = [*jaxpr.invars[:inputs], *[before[r] for r in refs]]
    outvars = [*jaxpr.outvars[:results], *[after[r] for r in refs]]
    return body._replace(jaxpr=ClosedJaxpr(Jaxpr([], invars, jaxpr.eqns, outvars)), refs=refs)


def _called(function: Callable[..., Any], what: str, operands: tuple[Any, ...]) -> Any:
    """The result of a branch that is run as ordinary Python: it takes and returns arrays, as a traced one does."""
    if not all(isinstance(x, Array) for x in operands):
        operands, with_refs = without_refs(operands)
        leaves, in_tree = leaves_of(operands, what, "operands")
        operands = with_refs(tree.unflatten(in_tree, leaves))
    out = function(*operands)
    return out if isinstance(out, Array) else tree.tree_map(lambda x: out_leaf(x, function), out)


def _keys(captured: Sequence[Any]) -> list[tuple[int, int]]:
    """What values are known by: a value that is there twice, as itself and as what a reference holds, has two keys."""
    counts: Counter[int] = Counter()
    keys = []
    for x in captured:
        keys.append((id(x), counts[id(x)]))
        counts[id(x)] += 1
    return keys


def _branch(body: Body, captured: dict[Any, Any], wanted: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A branch that takes what all branches captured, and whose results have the types that are wanted."""
    jaxpr = body.jaxpr.jaxpr
    own = dict(zip(_keys(body.captured), jaxpr.invars, strict=False))
    inputs = [own[key] if key in own else Var(x.aval) for key, x in captured.items()]
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    for i, (atom, aval) in enumerate(zip(jaxpr.outvars, wanted, strict=True)):
        if atom.aval.dtype != aval.dtype or atom.aval.weak_type != aval.weak_type:
            params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type}
            converted = outvars[i] = Var(aval)
            eqns.append(Eqn(convert_element_type_p, [atom], params, [converted]))
    return ClosedJaxpr(Jaxpr([], [*inputs, *jaxpr.invars[len(own) :]], eqns, outvars))


# The primitive -------------------------------------------------------------------------------------------------------

cond_p = Primitive("cond", multiple_results=True, keeps_weak_type=False)


@cond_p.abstract_eval
def _abstract_eval(index: ShapedArray, *avals: ShapedArray, branches: Branches) -> list[ShapedArray]:
    if index.shape != () or index.dtype != _int32:
        raise JaxprError(f"cond takes a number of a branch of type i32[], but was given {index}")
    outs = branches[0].out_avals
    for branch in branches:
        check_types("a branch of this cond", avals, branch.in_avals)
        check_types("what follows this cond", branch.out_avals, outs)
    if index.varying:
        return [a.update(varying=a.varying | index.varying) for a in outs]
    return outs


def _feed(branches: Branches) -> Feed:
    again = lambda fed: cond_p.bind(*fed.groups[0], *fed.groups[1], branches=fed.programs)
    return Feed(branches, again, (1,), (1,), choice=0)


holds_programs(cond_p, _feed)
cond_p.record(partial(record_split, cond_p))


@cond_p.impl
@at_bottom
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    index, *operands = [concrete(x) for x in args]
    branch = params["branches"][int(host_value(index))]
    if config.disable_jit or checking() or op_count(branch) <= INTERPRETED:
        return run_interpreted(branch, operands)
    return run_compiled(branch, operands, "cond")


cond_p.lowering(emission.write_cond)


# Transposition


@cond_p.transpose
def _transpose(cts: Sequence[Any], index: Any, *args: Any, branches: Branches) -> list[Any]:
    linear = tuple(map(is_linear, args))
    nonzero = tuple(ct is not ZERO for ct in cts)
    fixed, _ = partition_list(args, linear)
    back = tuple(transposed(b, linear, nonzero) for b in branches)
    results = cond_p.bind(index, *fixed, *select(cts, nonzero), branches=back)
    return [None, *scatter_where(linear, results, None)]


# Partial evaluation, dead code


@cached_by_jaxpr
def _cut(first: ClosedJaxpr, others: Branches, unknown: Sequence[bool]) -> tuple[Branches, Branches, list[bool]]:
    """Branches in two parts, which fit each other.

    Only one branch runs, so residuals of the same type from different branches share a place, a slot.

    Returns:
      The known parts, from ``known operands`` to ``known results, slots``; the unknown parts, from ``known operands,
      known results, slots, unknown operands`` to ``unknown results``; and for each result whether it is unknown.
    """
    branches = (first, *others)
    flags = [partial_eval_jaxpr(b, unknown).unknown_outputs for b in branches]
    results = list(map(any, zip(*flags, strict=True)))
    cuts = [partial_eval_jaxpr(b, unknown, results) for b in branches]
    operands = unknown.count(False)
    shared = operands + results.count(False)
    slots: list[ShapedArray] = []
    numbers: dict[Any, int] = {}  # of slots, by the type, and how many slots of that type a branch filled before
    places: list[dict[int, int]] = []  # for each branch: the slots of its own residuals
    for cut in cuts:
        filled: Counter[Any] = Counter()
        place: dict[int, int] = {}
        for i, aval in zip(cut.residual_sources, cut.residual_avals, strict=True):
            if i >= shared:
                kind = aval.shape, aval.dtype
                place[i] = numbers.setdefault((kind, filled[kind]), len(slots))
                if place[i] == len(slots):
                    slots.append(aval)
                filled[kind] += 1
        places.append(place)
    known = tuple(_with_slots(c.known, shared - operands, p, slots) for c, p in zip(cuts, places, strict=True))
    rest = []
    for cut, place in zip(cuts, places, strict=True):
        inputs = [Var(a) for a in (*cut.known.in_avals, *cut.known.out_avals[: shared - operands], *slots)]
        invars = cut.unknown.jaxpr.invars
        for v, i in zip(invars, cut.residual_sources, strict=False):
            inputs[shared + place[i] if i in place else i] = v
        inputs += invars[len(cut.residual_sources) :]
        rest.append(ClosedJaxpr(cut.unknown.jaxpr.replace(invars=inputs), cut.unknown.consts))
    return known, tuple(rest), results


def _with_slots(closed: ClosedJaxpr, results: int, own: dict[int, int], slots: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The known part of a branch, with a result for each slot: a residual of its own, or zeros."""
    filled = {k: i - len(closed.in_avals) for i, k in own.items()}

    def run(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        return outs[:results] + [outs[filled[k]] if k in filled else zeros_of(a) for k, a in enumerate(slots)]

    return stage_flat(closed, run, closed.in_avals)


@cond_p.partial_eval
def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    index, *operands = eqn.invars
    if unknown[0]:
        return [], [eqn], [True] * len(eqn.outvars)
    branches = eqn.params["branches"]
    known, rest, results = _cut(branches[0], branches[1:], tuple(unknown[1:]))
    known_operands, unknown_operands = partition_list(operands, unknown[1:])
    known_outs, unknown_outs = partition_list(eqn.outvars, results)
    bound = [*known_outs, *map(Var, known[0].out_avals[len(known_outs) :])]
    first = eqn.like([index, *known_operands], bound, branches=known)
    second = eqn.like([index, *known_operands, *bound, *unknown_operands], unknown_outs, branches=rest)
    return if_needed(first), if_needed(_dce([True] * len(unknown_outs), second)), results


@cond_p.dce
def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    branches: Branches = eqn.params["branches"]
    inputs = list(map(any, zip(*(dce_closed_jaxpr(b, used)[1] for b in branches), strict=True)))
    smaller = tuple(dce_closed_jaxpr(b, used, inputs)[0] for b in branches)
    return eqn.like([eqn.invars[0], *select(eqn.invars[1:], inputs)], select(eqn.outvars, used), branches=smaller)


# Batching


@cond_p.batch
def _batch(
    axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, branches: Branches
) -> tuple[list[Any], list[int | None]]:
    index, *operands = args
    index_dim, *operand_dims = dims
    if index_dim is not None:
        if any(map(has_checks, branches)):
            return batch_checked(cond_p, axis, args, dims, {"branches": branches})
        return _select(axis, index, operands, operand_dims, branches)
    return batch_of_programs(cond_p, axis, args, dims, branches=branches)


def _select(
    axis: MappedAxis, index: Any, operands: Sequence[Any], dims: Sequence[int | None], branches: Branches
) -> tuple[list[Any], list[int | None]]:
    """All branches, and of each example the results of the branch that is its own."""
    fronted = [x if d is None else front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
    mapped = tuple(None if d is None else 0 for d in dims)
    columns = []
    for i, branch in enumerate(branches):
        taken = eq_p.bind(index, _int32.type(i))
        program, _ = batch_jaxpr(branch, axis, mapped, True)
        columns.append(jaxpr_as_fun(program)(*guard(taken, fronted, [d is not None for d in mapped])))
    outs: list[Any] = []
    out_dims: list[int | None] = []
    for cases, position in zip(zip(*columns, strict=True), _handed_through(branches), strict=True):
        if position is not None and dims[position] is None:  # what all branches return, whatever the example
            outs.append(operands[position])
            out_dims.append(None)
        else:
            outs.append(select_n(front_aligned(index, 0, len(cases[0].shape) - 1), *cases))
            out_dims.append(0)
    return outs, out_dims


def _handed_through(branches: Branches) -> list[int | None]:
    """For each result the position of the operand that it is in all branches; None if it is none."""
    positions = []
    for closed in branches:
        inputs = {v: i for i, v in enumerate(closed.jaxpr.invars)}
        positions.append([inputs.get(v) if type(v) is Var else None for v in closed.jaxpr.outvars])
    return [column[0] if len(set(column)) == 1 else None for column in zip(*positions, strict=True)]
