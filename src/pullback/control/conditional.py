"""``cond`` and ``switch``: one of several functions, chosen by a value, and the primitive ``cond``.

Operands of the primitive are the number of the branch, an int32 in range, and what all branches take. They give results
of the same types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    Body,
    aval_difference,
    concrete,
    dependent,
    divisible,
    interned,
    is_staged,
    known,
    leaf_names,
    leaves_of,
    op_count,
    run_interpreted,
    select,
    stage,
    transposed,
    tree_difference,
)
from pullback.control.guard import guard
from pullback.core import dtypes, tree
from pullback.core.array import Array, as_array, host_value
from pullback.core.config import config
from pullback.core.errors import ControlFlowError, JaxprError, OperandError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, jaxpr_as_fun, positions
from pullback.core.linear import is_linear
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.elementwise import (
    clamp_p,
    convert_element_type,
    convert_element_type_p,
    eq_p,
    ne_p,
    select_n,
)
from pullback.primitives.shapes import front_aligned
from pullback.primitives.slicing import front
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import check_callable, name_of, out_leaf
from pullback.transforms.interpreters.dce import dce_closed_jaxpr
from pullback.transforms.interpreters.jaxprs import batch_jaxpr, cached_by_jaxpr, jvp_jaxpr, staged_zeros
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.interpreters.stage import stage_flat
from pullback.transforms.programs.jit_primitive import run_compiled

Branches = tuple[ClosedJaxpr, ...]
_int32 = np.dtype(np.int32)
_NOTHING: Any = object()


# The public functions ------------------------------------------------------------------------------------------------


@api_boundary
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = _NOTHING
) -> Any:
    """The result of one of two functions, chosen by a value: only that one is run.

    Eager, the function is called as ordinary Python where the value is known. Where it is traced, both functions
    are, and must give the same types; under ``vmap``, if ``pred`` is mapped, both are run, and the results selected.

    Args:
      pred: a boolean or a number of no axes; a number counts as true if it is not zero.
      true_fun: called as ``true_fun(*operands)`` if ``pred`` holds.
      false_fun: called as ``false_fun(*operands)`` if not.
      operands: trees of arrays.
      operand: a single operand, by its name.

    Returns:
      What the function returns, a tree of arrays.

    Raises:
      ControlFlowError: ``pred`` is no scalar; or, where they are traced, the functions give different trees, shapes or
        dtypes (a TypeError and ValueError).

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


@api_boundary
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NOTHING) -> Any:
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
      ControlFlowError: there are no branches; ``index`` is no integer scalar; or, where they are traced, the functions
        give different trees, shapes or dtypes (a TypeError and ValueError).

    >>> import pullback.numpy as pnp
    >>> print(switch(1, [pnp.sin, pnp.cos, pnp.tan], 0.0))
    1.0
    """
    if not isinstance(branches, Sequence) or not branches:
        raise ControlFlowError(f"switch takes a sequence of at least one function, got {branches!r}")
    for branch in branches:
        check_callable(branch, "switch")
    number = _array_of(index, "switch", "the index")
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


def _array_of(x: Any, what: str, name: str) -> Array:
    try:
        return as_array(x)
    except OperandError as error:
        raise type(error)(f"{what}: {name}: {error}") from None


def _predicate(pred: Any) -> Any:
    """A condition as the number of a branch."""
    if type(pred) is bool:
        return as_array(np.int32(pred))
    x = _array_of(pred, "cond", "the predicate")
    aval: ShapedArray = x.aval
    if aval.shape != () or not (dtypes.is_bool(x.dtype) or dtypes.is_integer(x.dtype) or dtypes.is_inexact(x.dtype)):
        hint = " For arrays of conditions use jnp.where, or vmap." if aval.shape else ""
        raise ControlFlowError(f"cond: the predicate must be a boolean of no axes, got one of type {aval}.{hint}")
    if not dtypes.is_bool(x.dtype):
        x = ne_p.bind(x, 0)
    return convert_element_type(x, _int32)


def _choose(what: str, index: Any, functions: list[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """The result of the function whose number is ``index``."""
    value = known(index)
    if value is not None and (config.disable_jit or not is_staged()):
        return _called(functions[int(value)], what, operands)
    leaves, in_tree = leaves_of(operands, what, "operands")
    avals = [x.aval for x in leaves]

    def staged(function: Callable[..., Any]) -> Body:
        return stage(
            what, function, lambda *xs: function(*tree.unflatten(in_tree, xs)), avals,
            lambda: leaf_names("operands", in_tree),
        )  # fmt: skip

    bodies = [staged(f) for f in functions]
    names = ["false_fun", "true_fun"] if what == "cond" else [f"branches[{i}]" for i in range(len(functions))]
    programs = _agreeing(what, [f"{n} ({name_of(f)})" for n, f in zip(names, functions, strict=True)], bodies)
    captured: dict[int, Any] = {id(x): x for body in bodies for x in body.captured}
    branches = tuple(interned(_with_captured(p, b, captured)) for p, b in zip(programs, bodies, strict=True))
    outs = cond_p.bind(index, *captured.values(), *leaves, branches=branches)
    return tree.unflatten(bodies[0].out_tree, outs)


def _called(function: Callable[..., Any], what: str, operands: tuple[Any, ...]) -> Any:
    """The result of a branch that is run as ordinary Python: it takes and gives arrays, as one that is traced does."""
    if not all(isinstance(x, Array) for x in operands):
        leaves, in_tree = leaves_of(operands, what, "operands")
        operands = tree.unflatten(in_tree, leaves)
    out = function(*operands)
    return out if isinstance(out, Array) else tree.tree_map(lambda x: out_leaf(x, function), out)


def _agreeing(what: str, names: Sequence[str], bodies: Sequence[Body]) -> list[ClosedJaxpr]:
    """The programs of branches, which give the same types: a weakly typed result takes the dtype of the others."""
    first = bodies[0]
    for name, body in zip(names, bodies, strict=True):
        if body.out_tree != first.out_tree:
            where = f"from {names[0]}", f"from {name}"
            raise ControlFlowError(
                f"{what}: the branches must return the same tree, but "
                f"{tree_difference('the result', first.out_tree, body.out_tree, where)}. Return the same containers "
                "and keys."
            )
    columns = list(zip(*(body.jaxpr.out_avals for body in bodies), strict=True))
    wanted = []
    for i, avals in enumerate(columns):
        strong = next((a for a in avals if not a.weak_type), avals[0])
        for name, aval in zip(names, avals, strict=True):
            fits = aval.shape == strong.shape and (aval.dtype == strong.dtype or _gives_way(aval, strong))
            if not fits:
                leaf = leaf_names("the result", first.out_tree)[i]
                other = names[avals.index(strong)]
                cure = "Reshape one of them." if aval.shape != strong.shape else "Convert one of them, with astype."
                raise ControlFlowError(
                    f"{what}: the branches must return the same types, but {leaf} is {strong} from {other} and {aval} "
                    f"from {name}: {aval_difference(strong, aval)}. {cure}"
                )
        wanted.append(strong)
    return [_converted(body.jaxpr, wanted) for body in bodies]


def _gives_way(weak: ShapedArray, strong: ShapedArray) -> bool:
    """Whether a weakly typed value can have the dtype of another."""
    return weak.weak_type and not strong.weak_type and dtypes.result_type(weak, strong) == strong.dtype


def _converted(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A program whose results have the dtypes and weak types of the given types."""
    jaxpr = closed.jaxpr
    eqns, outvars = list(jaxpr.eqns), list(jaxpr.outvars)
    for i, (atom, aval) in enumerate(zip(jaxpr.outvars, avals, strict=True)):
        if atom.aval.dtype != aval.dtype or atom.aval.weak_type != aval.weak_type:
            params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type}
            converted = outvars[i] = Var(aval)
            eqns.append(Eqn(convert_element_type_p, [atom], params, [converted]))
    if len(eqns) == len(jaxpr.eqns):
        return closed
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, eqns, outvars), closed.consts)


def _with_captured(closed: ClosedJaxpr, body: Body, captured: dict[int, Any]) -> ClosedJaxpr:
    """A branch that takes what all branches captured."""
    jaxpr = closed.jaxpr
    own = {id(x): v for x, v in zip(body.captured, jaxpr.invars, strict=False)}
    inputs = [own[key] if key in own else Var(x.aval) for key, x in captured.items()]
    return ClosedJaxpr(Jaxpr([], [*inputs, *jaxpr.invars[len(own) :]], jaxpr.eqns, jaxpr.outvars))


# The primitive -------------------------------------------------------------------------------------------------------

cond_p = Primitive("cond", multiple_results=True, keeps_weak_type=False)


@cond_p.abstract_eval
def _shape(index: ShapedArray, *avals: ShapedArray, branches: Branches) -> list[ShapedArray]:
    if index.shape != () or index.dtype != _int32:
        raise JaxprError(f"cond takes a number of a branch of type i32[], but was given {index}")
    outs = [_types(b.out_avals) for b in branches]
    for branch in branches:
        if _types(branch.in_avals) != _types(avals):
            given, wanted = (", ".join(map(str, x)) for x in (avals, branch.in_avals))
            raise JaxprError(f"a branch of this cond takes ({wanted}), but was given ({given})")
    if any(types != outs[0] for types in outs):
        raise JaxprError(f"the branches of this cond give different types: {outs}")
    return branches[0].out_avals


def _types(avals: Sequence[ShapedArray]) -> list[Any]:
    return list(map(_type, avals))


def _type(aval: ShapedArray) -> Any:
    return aval.shape, aval.dtype


@divisible(cond_p)
def _dependence(operands: Sequence[bool], *, branches: Branches) -> list[bool]:
    return list(map(any, zip(*(dependent(b, operands[1:]) for b in branches), strict=True)))


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    index, *operands = [concrete(x) for x in args]
    branch = params["branches"][int(host_value(index))]
    if config.disable_jit or checking() or op_count(branch) <= INTERPRETED:
        return run_interpreted(branch, operands)
    return run_compiled(branch, operands, "cond")


cond_p.impl(_evaluate)


@cond_p.lowering
def _lowering(hlo: Any, index: Any, *operands: Any, branches: Branches) -> list[Any]:
    return emission.write_cond(hlo, index, operands, branches)


# Differentiation


@cond_p.jvp
def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> Any:
    index, *operands = primals
    nonzero = tuple(t is not ZERO for t in tangents[1:])
    given = [t for t in tangents[1:] if t is not ZERO]
    has_tangent = tuple(map(any, zip(*(jvp_jaxpr(b, nonzero)[1] for b in branches), strict=True)))
    count = len(has_tangent)
    both = tuple(jvp_jaxpr(b, nonzero, has_tangent)[0] for b in branches)
    results = cond_p.bind(index, *operands, *given, branches=both)
    ts = iter(results[count:])
    return results[:count], [next(ts) if n else ZERO for n in has_tangent]


class Split(NamedTuple):
    """Branches in two: what known operands determine, and the rest, which takes residuals from the first.

    Attributes:
      known: from the known operands to the known results, and then residuals: those of all branches, of which those
        with the same type are one, since only one branch is run.
      unknown: from residuals, and then the unknown operands, to the unknown results.
      sources: where each residual that ``unknown`` takes is, in the list of known operands and results of ``known``.
    """

    known: Branches
    unknown: Branches
    sources: list[int]


Part = tuple[ClosedJaxpr, ClosedJaxpr, Sequence[int]]
"""The known and the unknown part of a branch, and where the residuals are in the first one's inputs and results."""


def _merged(parts: Sequence[Part], results: int) -> Split:
    """Branches whose parts fit each other.

    Args:
      parts: those of each branch.
      results: how many known results there are.
    """
    operands = len(parts[0][0].in_avals)
    shared = operands + results
    common = sorted({i for _, _, sources in parts for i in sources if i < shared})
    in_common = positions(common)
    slots: list[ShapedArray] = []
    places: list[dict[int, int]] = []  # for each branch: where a residual of its own goes
    for first, _, sources in parts:
        free: dict[Any, list[int]] = {}
        for k in reversed(range(len(slots))):
            free.setdefault(_type(slots[k]), []).append(k)
        place: dict[int, int] = {}
        for i in sources:
            if i >= shared:
                aval = first.out_avals[i - operands]
                fitting = free.get(_type(aval))
                if fitting:
                    place[i] = fitting.pop()
                else:
                    place[i] = len(slots)
                    slots.append(aval)
        places.append(place)
    known_parts, unknown_parts = [], []
    for (first, second, sources), place in zip(parts, places, strict=True):
        known_parts.append(_with_residuals(first, results, {s: i - operands for i, s in place.items()}, slots))
        wanted = {(in_common[i] if i < shared else len(common) + place[i]): k for k, i in enumerate(sources)}
        all_avals = [*first.in_avals, *first.out_avals]
        avals = [*(all_avals[i] for i in common), *slots]
        unknown_parts.append(_with_inputs(second, len(sources), wanted, avals))
    return Split(tuple(known_parts), tuple(unknown_parts), [*common, *range(shared, shared + len(slots))])


def _with_residuals(
    closed: ClosedJaxpr, results: int, own: dict[int, int], slots: Sequence[ShapedArray]
) -> ClosedJaxpr:
    """A branch that gives a residual for each slot: one of its results, or zeros."""

    def run(*args: Any) -> list[Any]:
        outs = jaxpr_as_fun(closed)(*args)
        return outs[:results] + [outs[own[s]] if s in own else staged_zeros(a) for s, a in enumerate(slots)]

    return stage_flat(closed, run, closed.in_avals)


def _with_inputs(closed: ClosedJaxpr, residuals: int, own: dict[int, int], avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A branch that takes the residuals of all branches, of which only some are its own."""
    invars = closed.jaxpr.invars
    inputs = [invars[own[i]] if i in own else Var(a) for i, a in enumerate(avals)]
    jaxpr = Jaxpr(closed.jaxpr.constvars, [*inputs, *invars[residuals:]], closed.eqns, closed.jaxpr.outvars)
    return ClosedJaxpr(jaxpr, closed.consts)


@cond_p.transpose
def _transpose(cts: Sequence[Any], index: Any, *args: Any, branches: Branches) -> list[Any]:
    linear = tuple(map(is_linear, args))
    nonzero = tuple(ct is not ZERO for ct in cts)
    fixed = [x for x in args if not is_linear(x)]
    back = tuple(transposed(b, linear, nonzero) for b in branches)
    results = iter(cond_p.bind(index, *fixed, *(ct for ct in cts if ct is not ZERO), branches=back))
    return [None, *(next(results) if n else None for n in linear)]


# Partial evaluation, dead code


@cached_by_jaxpr
def _cut(first: ClosedJaxpr, others: Branches, unknown: Sequence[bool]) -> tuple[Split, list[bool]]:
    branches = (first, *others)
    flags = [partial_eval_jaxpr(b, unknown).unknown_outputs for b in branches]
    results = list(map(any, zip(*flags, strict=True)))
    parts: list[Part] = []
    for branch in branches:
        cut = partial_eval_jaxpr(branch, unknown, results)
        parts.append((cut.known, cut.unknown, cut.residual_sources))
    return _merged(parts, len(results) - sum(results)), results


def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    index, *operands = eqn.invars
    if unknown[0]:
        return [], [eqn], [True] * len(eqn.outvars)
    branches = eqn.params["branches"]
    split, results = _cut(branches[0], branches[1:], tuple(unknown[1:]))
    known_operands = select(operands, [not u for u in unknown[1:]])
    known_outs = select(eqn.outvars, [not u for u in results])
    unknown_outs = select(eqn.outvars, results)
    computed = [Var(a) for a in split.known[0].out_avals[len(known_outs) :]]
    bound = [*known_outs, *computed]
    values = [*known_operands, *bound]
    residuals = [values[i] for i in split.sources]

    def equation(branches: Branches, operands: list[Any], outs: list[Any]) -> list[Eqn]:
        made = Eqn(cond_p, [index, *operands], {"branches": branches}, outs, eqn.made_at, eqn.scope)
        return [made] if outs or made.effect else []

    first = equation(split.known, known_operands, bound)
    return first, equation(split.unknown, [*residuals, *select(operands, unknown[1:])], unknown_outs), results


cond_p.partial_eval(_partial_eval)


@cached_by_jaxpr
def _smaller(first: ClosedJaxpr, others: Branches, used: Sequence[bool]) -> tuple[Branches, list[bool]]:
    branches = (first, *others)
    needed = list(map(any, zip(*(dce_closed_jaxpr(b, used)[1] for b in branches), strict=True)))
    return tuple(dce_closed_jaxpr(b, used, needed)[0] for b in branches), needed


def _dce(used: list[bool], eqn: Eqn) -> Eqn | None:
    branches = eqn.params["branches"]
    smaller, needed = _smaller(branches[0], branches[1:], tuple(used))
    invars = [eqn.invars[0], *select(eqn.invars[1:], needed)]
    return Eqn(cond_p, invars, {"branches": smaller}, select(eqn.outvars, used), eqn.made_at, eqn.scope)


cond_p.dce(_dce)


# Batching


@cond_p.batch
def _batch(
    axis: MappedAxis, args: Sequence[Any], dims: Sequence[int | None], *, branches: Branches
) -> tuple[list[Any], list[int | None]]:
    index, *operands = args
    index_dim, *operand_dims = dims
    if index_dim is not None:
        return _select(axis, index, operands, operand_dims, branches)
    found = [batch_jaxpr(b, axis.size, operand_dims, axis.name)[1] for b in branches]
    mapped = tuple(any(d is not None for d in column) for column in zip(*found, strict=True))
    batched = tuple(batch_jaxpr(b, axis.size, operand_dims, axis.name, mapped)[0] for b in branches)
    return cond_p.bind(index, *operands, branches=batched), [0 if m else None for m in mapped]


def _select(
    axis: MappedAxis, index: Any, operands: Sequence[Any], dims: Sequence[int | None], branches: Branches
) -> tuple[list[Any], list[int | None]]:
    """All branches, and of each example the results of the branch that is its own."""
    fronted = [x if d is None else front(x, d, axis) for x, d in zip(operands, dims, strict=True)]
    mapped = tuple(None if d is None else 0 for d in dims)
    columns = []
    for i, branch in enumerate(branches):
        taken = eq_p.bind(index, _int32.type(i))
        program, _ = batch_jaxpr(branch, axis.size, mapped, axis.name, True)
        columns.append(jaxpr_as_fun(program)(*guard(taken, fronted, [d is not None for d in mapped])))
    outs = []
    for cases in zip(*columns, strict=True):
        which = front_aligned(index, 0, len(cases[0].shape) - 1)
        outs.append(select_n(which, *cases))
    return outs, [0] * len(outs)
