"""``cond`` and ``switch``, which run one of several functions, and the primitive ``cond``.

The operands of the primitive are the index of the branch, an int32 in range, and the operands of all branches. The
branches return results of the same types.
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
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayLike, as_array, host_value, is_on_device, typeof
from pullback.core.config import config
from pullback.core.elsewhere import is_elsewhere, on_host
from pullback.core.errors import ControlFlowError, JaxprError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, jaxpr_as_fun
from pullback.core.linear import is_linear
from pullback.core.lists import partition_list, scatter_where, select
from pullback.core.trace import Primitive, Tracer, is_at_work, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.zeros import zeros_of
from pullback.primitives.arrays.shapes import front_aligned
from pullback.primitives.axis_maps import front
from pullback.primitives.elementwise import clamp_p, convert_element_type, convert_element_type_p, eq_p, ne_p, select_n
from pullback.primitives.varying import vary
from pullback.transforms.checks.trace import batch_checked, has_checks
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import out_leaf
from pullback.transforms.programs.jit_primitive import at_bottom, concrete, run_compiled
from pullback.transforms.programs.program_primitive import check_types, if_needed, transposed
from pullback.transforms.traces.backward_logs import CondSum, Logs, logs_within, moved, with_logs_as_results
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
    """Run one of two functions, as a predicate says; the other does not run.

    Both functions must return the same types. In eager mode, if the predicate is known, the function is called as
    ordinary Python. The first time for some functions and operand types, both are also traced, to compare their result
    types, unless one reads values, as ``if`` does. Under ``vmap`` with a mapped ``pred`` both run, and the results are
    selected.

    Args:
      pred: a boolean or numeric scalar; a number is true if it is not zero.
      true_fun: called as ``true_fun(*operands)`` if ``pred`` is true.
      false_fun: called as ``false_fun(*operands)`` otherwise.
      operands: trees of arrays.
      operand: a single operand, as a keyword argument.

    Returns:
      The result of the function, a tree of arrays.

    Raises:
      ControlFlowError: ``pred`` is no scalar; or the functions return different trees, shapes or dtypes (a TypeError
        and ValueError).

    The older form ``cond(pred, true_operand, true_fun, false_operand, false_fun)`` is accepted, too.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.cond(2.0 > 1.0, jnp.sin, jnp.cos, 0.0))
    0.0
    """
    if not callable(true_fun) and len(operands) == 2 and callable(false_fun) and callable(operands[1]):
        first, second = false_fun, operands[1]
        pair = true_fun, operands[0]
        return cond(pred, lambda x, _: first(x), lambda _, x: second(x), *pair)
    require_function("cond", "true_fun", true_fun)
    require_function("cond", "false_fun", false_fun)
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
    """Run one of several functions, as an index says; the others do not run.

    See :func:`cond` for when the functions run as ordinary Python, and when all of them are traced or run.

    Args:
      index: an integer scalar; it is clamped to the range of the branches.
      branches: functions, each called as ``branch(*operands)``.
      operands: trees of arrays.
      operand: a single operand, as a keyword argument.

    Returns:
      The result of the function, a tree of arrays.

    Raises:
      ControlFlowError: there are no branches; ``index`` is no integer scalar; or the functions return different trees,
        shapes or dtypes (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.switch(1, [jnp.sin, jnp.cos, jnp.tan], 0.0))
    1.0
    """
    if not isinstance(branches, Sequence) or not branches:
        raise ControlFlowError(f"switch takes a sequence of at least one function, got {branches!r}")
    for i, branch in enumerate(branches):
        require_function("switch", f"branches[{i}]", branch)
    number = array_of(index, "switch", "the index")
    if number.shape != () or not dtypes.is_integer(number.dtype):
        raise ControlFlowError(f"switch: the index must be a scalar integer, got one of type {number.aval}")
    operands = _operands("switch", operands, operand)
    if len(branches) == 1:
        return _called(branches[0], "switch", operands)
    value = known(number)
    last = len(branches) - 1
    if value is not None:
        clamped: Any = as_array(np.int32(min(max(int(value), 0), last)))
    else:
        wide = number.dtype.type
        clamped = convert_element_type(
            clamp_p.bind(wide(0), number, wide(min(last, dtypes.iinfo(number.dtype).max))), _int32
        )
    return _choose("switch", clamped, list(branches), operands)


def _operands(what: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """Return the positional ``operands``, or the keyword argument ``operand`` as a tuple; raise if there are both.

    ``what`` is the operation, for the error message.
    """
    if operand is _NOTHING:
        return operands
    if operands:
        raise ControlFlowError(f"{what} takes positional operands or the keyword operand, but got both")
    return (operand,)


def _predicate(pred: Any) -> Any:
    """Convert a predicate to the index of a branch, 0 or 1; raise unless it is a scalar."""
    if type(pred) is bool:
        return as_array(np.int32(pred))
    x = array_of(pred, "cond", "the predicate")
    if x.shape != () or not (dtypes.is_bool(x.dtype) or dtypes.is_integer(x.dtype) or dtypes.is_inexact(x.dtype)):
        hint = " For an array of conditions use jnp.where or vmap." if x.shape else ""
        raise ControlFlowError(f"cond: the predicate must be a scalar boolean, got type {x.aval}.{hint}")
    if not dtypes.is_bool(x.dtype):
        x = ne_p.bind(x, 0)
    return convert_element_type(x, _int32)


def _is_far(x: Any) -> bool:
    """Whether a known index is on another device than the host, so that reading it would wait for the device.

    A traced index is far if the value that it stands for is.
    """
    if isinstance(x, Tracer) and is_at_work(x._trace):
        x = x.concrete()
    return is_elsewhere(x) and is_on_device(x)


def _choose(what: str, index: Any, functions: list[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """Apply the function at ``index`` to the operands.

    In eager mode, if the index is a known number, call the function as ordinary Python. Otherwise trace all functions,
    and bind the primitive ``cond``.
    """
    value = known(index) if config.disable_jit or not _is_far(index) else None
    if value is not None and (config.disable_jit or state.trace.eager):
        if config.disable_jit:
            return _called(functions[int(value)], what, operands)
        return run_compared(what, int(value), functions, operands)
    plain, with_refs = without_refs(operands)
    leaves, in_tree = leaves_of(plain, what, "operands")
    bodies = staged_branches(what, functions, [x.aval for x in leaves], in_tree, with_refs, plain is operands)
    axes = typeof(index).varying
    if axes:
        bodies, leaves = [with_varying_predicate(body, axes) for body in bodies], [vary(x, axes) for x in leaves]
    wanted = common_types(what, branch_names(what, functions), bodies)
    refs = list(dict.fromkeys(ref for body in bodies for ref in body.refs))
    before = contents(refs)
    if refs:
        bodies, wanted = [_with_refs(body, refs, before) for body in bodies], [*wanted, *map(typeof, before)]
    captured: dict[Any, Any] = {}
    for body in bodies:
        captured.update(zip(_keys(body.captured), body.captured, strict=True))
    branches = tuple(deduplicated(_branch(body, captured, wanted)) for body in bodies)
    outs = cond_p.bind(index, *captured.values(), *leaves, *before, branches=branches)
    if refs:
        write_all(refs, outs[len(outs) - len(refs) :])
    return tree.unflatten(bodies[0].out_tree, outs[: len(outs) - len(refs)])


def _with_refs(body: Body, refs: Sequence[Ref], values: Sequence[Any]) -> Body:
    """Extend a branch to take the contents of all of ``refs``, and to return their new contents.

    The content of a reference that the branch does not write is returned unchanged.

    Args:
      body: the branch, which takes and returns the contents only of the references that it writes.
      refs: the references that at least one of the branches writes.
      values: the contents of ``refs``.
    """
    jaxpr = body.jaxpr.jaxpr
    inputs, results = len(jaxpr.invars) - len(body.refs), len(jaxpr.outvars) - len(body.refs)
    before = dict(zip(body.refs, jaxpr.invars[inputs:], strict=True))
    after = dict(zip(body.refs, jaxpr.outvars[results:], strict=True))
    for ref, x in zip(refs, values, strict=True):
        if ref not in before:
            before[ref] = after[ref] = Var(typeof(x))
    invars = [*jaxpr.invars[:inputs], *[before[r] for r in refs]]
    outvars = [*jaxpr.outvars[:results], *[after[r] for r in refs]]
    return body._replace(jaxpr=ClosedJaxpr(Jaxpr([], invars, jaxpr.eqns, outvars)), refs=refs)


def _called(function: Callable[..., Any], what: str, operands: tuple[Any, ...]) -> Any:
    """Call a branch as ordinary Python; convert its operands and results to arrays, as tracing would.

    ``what`` is the name of the operation, for error messages.
    """
    if not all(isinstance(x, Array) for x in operands):
        operands, with_refs = without_refs(operands)
        leaves, in_tree = leaves_of(operands, what, "operands")
        operands = with_refs(tree.unflatten(in_tree, leaves))
    out = function(*operands)
    return out if isinstance(out, Array) else tree.tree_map(lambda x: out_leaf(x, function), out)


def _keys(captured: Sequence[Any]) -> list[tuple[int, int]]:
    """For each captured value, a key: its id, and the number of its earlier occurrences in the list.

    A value may occur twice, for example if a reference also holds the value.
    """
    counts: Counter[int] = Counter()
    keys = []
    for x in captured:
        keys.append((id(x), counts[id(x)]))
        counts[id(x)] += 1
    return keys


def _branch(body: Body, captured: dict[Any, Any], wanted: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Make the program of a branch, with inputs and types of results that are the same for all branches.

    Args:
      body: the branch.
      captured: the values that the branches captured, by their keys (see :func:`_keys`). All become inputs.
      wanted: the types to convert the results to.
    """
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
        raise JaxprError(f"cond takes an index of a branch of type i32[], but got {index}")
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
@on_host(cond_p)
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
    """The transposition rule: a ``cond`` of the transposed branches."""
    linear = tuple(map(is_linear, args))
    nonzero = tuple(ct is not ZERO for ct in cts)
    fixed, _ = partition_list(args, linear)
    back = tuple(transposed(b, linear, nonzero) for b in branches)
    results = cond_p.bind(index, *fixed, *select(cts, nonzero), branches=back)
    return [None, *scatter_where(linear, results, None)]


@logs_within(cond_p)
def _logs_within(eqn: Eqn) -> tuple[Eqn, list[Any], Logs]:
    """Let each branch return what it logs, and zeros for what the others log."""
    branches: Branches = eqn.params["branches"]
    logging, logs = zip(*map(with_logs_as_results, branches), strict=True)
    count = len(eqn.outvars)
    extra = [b.out_avals[count:] for b in logging]
    firsts = [1 + sum(map(len, extra[:i])) for i in range(len(extra))]  # the index of the branch comes before

    def completed(i: int) -> ClosedJaxpr:
        def run(*operands: Any) -> list[Any]:
            outs = jaxpr_as_fun(logging[i])(*operands)
            slots = [outs[count:] if i == j else [zeros_of(a) for a in avals] for j, avals in enumerate(extra)]
            return outs[:count] + [x for slot in slots for x in slot]

        return stage_flat(branches[i], run, branches[i].in_avals)

    results = [Var(a) for avals in extra for a in avals]
    slots = [moved(of_branch, first) for of_branch, first in zip(logs, firsts, strict=True)]
    sums = {key: CondSum(0, tuple([x.get(key) for x in slots])) for x in slots for key in x}
    outvars = [*eqn.outvars, *results]
    more = eqn.like(eqn.invars, outvars, branches=tuple(map(completed, range(len(branches)))))
    return more, [eqn.invars[0], *results], sums


# Partial evaluation, dead code


@cached_by_jaxpr
def _cut(first: ClosedJaxpr, others: Branches, unknown: Sequence[bool]) -> tuple[Branches, Branches, list[bool]]:
    """Split branches by partial evaluation into known and unknown branches of common types.

    A slot is an output that all known branches have, for residuals of one type. As only one branch runs, residuals from
    different branches share a slot.

    Args:
      first: the first branch.
      others: the other branches.
      unknown: for each operand, whether it is unknown.

    Returns:
      The known branches, from ``known operands`` to ``known results, slots``; the unknown branches, from ``known
      operands, known results, slots, unknown operands`` to ``unknown results``; and for each result whether it is
      unknown.
    """
    branches = (first, *others)
    flags = [partial_eval_jaxpr(b, unknown).unknown_outputs for b in branches]
    results = list(map(any, zip(*flags, strict=True)))
    cuts = [partial_eval_jaxpr(b, unknown, results) for b in branches]
    operands = unknown.count(False)
    shared = operands + results.count(False)
    slots: list[ShapedArray] = []
    numbers: dict[Any, int] = {}  # the slot of the n-th residual of a type in a branch, by (type, n)
    branch_slots: list[dict[int, int]] = []  # for each branch, the slots of its residuals
    for cut in cuts:
        filled: Counter[Any] = Counter()
        slot_of: dict[int, int] = {}
        for i, aval in zip(cut.residual_sources, cut.residual_avals, strict=True):
            if i >= shared:
                kind = aval.shape, aval.dtype
                slot_of[i] = numbers.setdefault((kind, filled[kind]), len(slots))
                if slot_of[i] == len(slots):
                    slots.append(aval)
                filled[kind] += 1
        branch_slots.append(slot_of)
    known = tuple(_with_slots(c.known, shared - operands, s, slots) for c, s in zip(cuts, branch_slots, strict=True))
    rest = []
    for cut, slot_of in zip(cuts, branch_slots, strict=True):
        inputs = [Var(a) for a in (*cut.known.in_avals, *cut.known.out_avals[: shared - operands], *slots)]
        invars = cut.unknown.jaxpr.invars
        for v, i in zip(invars, cut.residual_sources, strict=False):
            inputs[shared + slot_of[i] if i in slot_of else i] = v
        inputs += invars[len(cut.residual_sources) :]
        rest.append(ClosedJaxpr(cut.unknown.jaxpr.replace(invars=inputs), cut.unknown.consts))
    return known, tuple(rest), results


def _with_slots(closed: ClosedJaxpr, results: int, own: dict[int, int], slots: Sequence[ShapedArray]) -> ClosedJaxpr:
    """Extend a known branch to return its results, and then for each slot a residual, or zeros.

    Args:
      closed: the branch, which returns results and its own residuals.
      results: the number of results without residuals.
      own: maps each residual of this branch to its slot. A residual is an index into the inputs of ``closed`` followed
        by its results.
      slots: the types of the slots.
    """
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
    """Batch a ``cond`` whose index differs between examples.

    Run all branches for all examples, and select for each example the results of the branch at its index.

    Returns:
      The results, and for each result its mapped axis: 0, or None if it is equal for all examples.
    """
    fronted = [x if d is None else front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
    mapped = tuple(None if d is None else 0 for d in dims)
    columns = []
    for i, branch in enumerate(branches):
        needed = eq_p.bind(index, _int32.type(i))
        program, _ = batch_jaxpr(branch, axis, mapped, True)
        columns.append(jaxpr_as_fun(program)(*guard(needed, fronted, [d is not None for d in mapped])))
    outs: list[Any] = []
    out_dims: list[int | None] = []
    for cases, position in zip(zip(*columns, strict=True), _forwarded(branches), strict=True):
        if position is not None and dims[position] is None:  # equal for all examples, whatever the branch
            outs.append(operands[position])
            out_dims.append(None)
        else:
            outs.append(select_n(front_aligned(index, 0, len(cases[0].shape) - 1), *cases))
            out_dims.append(0)
    return outs, out_dims


def _forwarded(branches: Branches) -> list[int | None]:
    """For each result, the index of the operand that every branch returns unchanged as this result; None if none is."""
    positions = []
    for closed in branches:
        inputs = {v: i for i, v in enumerate(closed.jaxpr.invars)}
        positions.append([inputs.get(v) if type(v) is Var else None for v in closed.jaxpr.outvars])
    return [column[0] if len(set(column)) == 1 else None for column in zip(*positions, strict=True)]
