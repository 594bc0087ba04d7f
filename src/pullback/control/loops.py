"""``while_loop`` and ``fori_loop``, and the primitive ``while``.

Operands of the primitive are what its condition captured, what its body captured, and the initial carry. Two programs,
of the condition and of the body, take what is theirs and the carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from pullback.control import emission
from pullback.control.common import (
    INTERPRETED,
    Carry,
    check_checkpoints,
    concrete,
    dependent,
    divisible,
    interned,
    known,
    leaves_of,
    op_count,
    reordered,
    run_interpreted,
    select,
    split_list,
    stage,
    stage_step,
    typed,
    without_effects,
    zero_tangent,
)
from pullback.control.guard import guard
from pullback.control.progress import Bar, check_progress
from pullback.control.scan import checked_unroll, run_scan
from pullback.control.scan_primitive import Loop, with_tangents
from pullback.core import dtypes, tree
from pullback.core.array import Array, as_array, host_value, typeof
from pullback.core.config import config
from pullback.core.errors import ControlFlowError, JaxprError, OperandError
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, jaxpr_as_fun
from pullback.core.trace import Primitive
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.elementwise import add, convert_element_type, lt_p, sub, where
from pullback.primitives.reductions import reduce_or
from pullback.primitives.shapes import front_aligned
from pullback.primitives.slicing import front
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import check_callable, name_of
from pullback.transforms.interpreters.dce import dce_closed_jaxpr
from pullback.transforms.interpreters.jaxprs import batch_jaxpr, cached_by_jaxpr, jvp_jaxpr
from pullback.transforms.interpreters.partial_eval import partial_eval_jaxpr
from pullback.transforms.interpreters.stage import stage_flat

Flags = Sequence[bool]
Dims = Sequence[int | None]
_BOOL = np.dtype(bool)


# The public functions ------------------------------------------------------------------------------------------------


@api_boundary
def while_loop(
    cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any, *, checkpoints: int | None = None
) -> Any:
    """Apply a function again and again, as long as a condition holds.

    Eager, too, a loop of more than a few operations runs as one compiled program, which is kept; under
    ``disable_jit`` it is a loop in Python.

    Args:
      cond_fun: from the carry to a boolean of no axes: whether there is another step.
      body_fun: from the carry to the carry after a step, of the same tree, shapes and dtypes.
      init_val: the carry of the first step, a tree of arrays. Weakly typed numbers take the dtype that ``body_fun``
        gives them.
      checkpoints: how many states are kept for reverse mode, whatever the number of steps; those between are computed
        again. By default 128, or fewer if these took more than 64 MB.

    Returns:
      The carry for which the condition does not hold. Under ``vmap`` each example ends with its own.

    Raises:
      ControlFlowError: ``body_fun`` gives another carry than it takes, or ``cond_fun`` no boolean (a TypeError and
        ValueError).

    >>> print(while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    check_callable(cond_fun, "while_loop")
    check_callable(body_fun, "while_loop")
    check_checkpoints("while_loop", checkpoints)
    leaves, treedef = leaves_of(init_val, "while_loop", "init_val")
    if config.disable_jit:
        value = tree.unflatten(treedef, leaves)
        while True:
            holds = known(_condition(cond_fun(value), cond_fun))
            if holds is None:  # it differs from example to example
                leaves, treedef = leaves_of(value, "while_loop", "carry")
                break
            if not holds:
                return value
            value = body_fun(value)
    carry = Carry(leaves, treedef)

    def step(*tracers: Any) -> Any:
        return body_fun(tree.unflatten(treedef, tracers)), None

    def test(*tracers: Any) -> Any:
        return _condition(cond_fun(tree.unflatten(treedef, tracers)), cond_fun)

    return tree.unflatten(treedef, run_while("while_loop", cond_fun, test, body_fun, step, carry, checkpoints))


def _condition(holds: Any, function: Any) -> Any:
    """What a condition gave, checked."""
    try:
        x = as_array(holds)
    except OperandError:
        x = None
    if x is None or x.shape != () or not dtypes.is_bool(x.dtype):
        got = f"a {type(holds).__name__}" if x is None else f"{typeof(x)}"
        raise ControlFlowError(
            f"while_loop: the condition {name_of(function)} must return a boolean of no axes, but it returned {got}. "
            "jnp.all and jnp.any make one of many; a number is compared, as in x != 0."
        )
    return x


def run_while(
    what: str,
    test_function: Any,
    test: Callable[..., Any],
    function: Any,
    step: Callable[..., Any],
    carry: Carry,
    checkpoints: int | None,
) -> list[Any]:
    """The leaves of the final carry.

    Args:
      what: the loop, for error messages.
      test_function: the user's condition, for error messages.
      test: from the leaves of the carry to whether there is another step.
      function: the user's function, for error messages.
      step: from the leaves of the carry to a pair of the tree of the carry after a step, and None.
      carry: the initial carry.
      checkpoints: how many states are kept for reverse mode.
    """
    body = stage_step(what, function, step, carry, [], carry.names)
    condition = stage(what, test_function, test, carry.avals, carry.names)
    captured, own = body.captured, condition.captured
    # What no step changes is no part of the carry, but a constant.
    outs = body.jaxpr.jaxpr.outvars
    first = len(captured)
    fixed = [a is v for a, v in zip(outs, body.jaxpr.jaxpr.invars[first:], strict=False)]
    moving = [not f for f in fixed]
    init = carry.leaves

    def with_constants(jaxpr: ClosedJaxpr, count: int, results: Sequence[int]) -> ClosedJaxpr:
        places = range(count, count + len(init))
        return interned(reordered(jaxpr, [*range(count), *select(places, fixed), *select(places, moving)], results))

    program = with_constants(body.jaxpr, first, select(range(len(init)), moving))
    predicate = with_constants(condition.jaxpr, len(own), [0])
    constants = select(init, fixed)
    operands = [*own, *constants], [*captured, *constants], select(init, moving)
    values = iter(bind(predicate, program, *operands, checkpoints))
    return [x if f else next(values) for x, f in zip(init, fixed, strict=True)]


@api_boundary
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    checkpoints: int | None = None,
    progress: bool | str = False,
) -> Any:
    """Apply a function for each integer from ``lower`` to ``upper - 1``.

    If both bounds are integers known in Python it is a :func:`scan`, otherwise a :func:`while_loop`.

    Args:
      lower: the first integer; or a float, to count in steps of one from there.
      upper: the one after the last; there are no steps if it is not larger.
      body_fun: ``body_fun(i, carry) -> carry``, of the same tree, shapes and dtypes.
      init_val: the carry of the first step, a tree of arrays. Weakly typed numbers take the dtype that ``body_fun``
        gives them.
      unroll: how many steps one round of the compiled loop takes, as for ``scan``; only if the bounds are known.
      checkpoints: how many states are kept for reverse mode; by default all if the bounds are known, and otherwise as
        for ``while_loop``.
      progress: whether to show a progress bar, or a text to show beside it; this needs the library ``tqdm``.

    Returns:
      The carry after the last step.

    Raises:
      ControlFlowError: ``body_fun`` gives another carry than it takes; or the bounds are no integer scalars, or of
        different dtypes (a TypeError and ValueError).

    >>> print(fori_loop(1, 5, lambda i, product: i * product, 1))
    24
    """
    check_callable(body_fun, "fori_loop")
    check_checkpoints("fori_loop", checkpoints)
    check_progress("fori_loop", progress)
    first, last = _bounds(lower, upper)
    if progress:
        body_fun = _with_bar(body_fun, first, last, progress)
    leaves, treedef = leaves_of(init_val, "fori_loop", "init_val")
    start, stop = known(first), known(last)
    if start is None or stop is None or not dtypes.is_integer(first.dtype):
        if unroll is not None:
            raise ControlFlowError(
                "fori_loop: unroll needs integer bounds that are known in Python, but one of them is traced or a "
                "float; leave it out"
            )
        return _unbounded(first, last, body_fun, leaves, treedef, checkpoints)
    if config.disable_jit:
        value = tree.unflatten(treedef, leaves)
        for i in range(int(start), int(stop)):
            value = body_fun(convert_element_type(as_array(i), first.dtype, first.weak_type), value)
        return value
    length = max(int(stop) - int(start), 0)
    loop = Loop(length, False, checked_unroll("fori_loop", unroll or 1, length))
    return _bounded(first, loop, body_fun, leaves, treedef, checkpoints)


def _bounded(
    first: Array, loop: Loop, body_fun: Any, leaves: list[Array], treedef: Any, checkpoints: int | None
) -> Any:
    """A loop of a number of steps that is known in Python."""

    def step(i: Any, *tracers: Any) -> Any:
        return (add(i, 1), body_fun(i, tree.unflatten(treedef, tracers))), None

    carry = Carry([first, *leaves], treedef, ["i"])
    outs, _, _ = run_scan("fori_loop", body_fun, step, carry, [], tree.structure(None), loop, checkpoints)
    return tree.unflatten(treedef, outs[1:])


def _with_bar(body_fun: Callable[..., Any], first: Array, last: Array, progress: bool | str) -> Callable[..., Any]:
    """A step that also moves a progress bar, which is shown at once."""
    bar, total = Bar(progress), sub(last, first)
    bar.start(total)

    @wraps(body_fun)
    def step(i: Any, carry: Any) -> Any:
        carry = body_fun(i, carry)
        bar.tick(add(sub(i, first), 1), total)
        return carry

    return step


def _unbounded(
    first: Array, last: Array, body_fun: Any, leaves: list[Array], treedef: Any, checkpoints: int | None
) -> Any:
    """A loop from one integer to another that are not known in Python."""

    def step(i: Any, upper: Any, *tracers: Any) -> Any:
        return (add(i, 1), upper, body_fun(i, tree.unflatten(treedef, tracers))), None

    def test(i: Any, upper: Any, *tracers: Any) -> Any:
        return lt_p.bind(i, upper)

    carry = Carry([first, last, *leaves], treedef, ["i", "upper"])
    return tree.unflatten(treedef, run_while("fori_loop", body_fun, test, body_fun, step, carry, checkpoints)[2:])


def _bounds(lower: Any, upper: Any) -> tuple[Array, Array]:
    """The bounds as arrays of one dtype."""
    arrays = []
    for x, name in ((lower, "lower"), (upper, "upper")):
        try:
            array = as_array(x)
        except OperandError as error:
            raise type(error)(f"fori_loop: the bound {name}: {error}") from None
        if array.shape != () or not (dtypes.is_integer(array.dtype) or dtypes.is_float(array.dtype)):
            raise ControlFlowError(
                f"fori_loop: the bound {name} must be an integer or a float of no axes, got one of type {typeof(array)}"
            )
        arrays.append(array)
    first, last = arrays
    if first.dtype != last.dtype:
        if not (first.weak_type or last.weak_type) or dtypes.is_integer(first.dtype) != dtypes.is_integer(last.dtype):
            raise ControlFlowError(
                f"fori_loop: the bounds must have one dtype, but lower is {typeof(first)} and upper is {typeof(last)}. "
                "Convert one of them."
            )
        dtype = last.dtype if first.weak_type else first.dtype
        for x, name in ((first, "lower"), (last, "upper")):
            if dtypes.is_integer(dtype) and x.dtype != dtype and not _holds(dtype, x):
                raise ControlFlowError(
                    f"fori_loop: the bound {name}, {x!r}, does not fit into {dtype}, the dtype of the other bound"
                )
        first, last = (convert_element_type(x, dtype) for x in (first, last))
    return first, last


def _holds(dtype: Any, x: Array) -> bool:
    """Whether an integer surely does not change in another dtype."""
    limits, value = dtypes.iinfo(dtype), known(x)
    own = dtypes.iinfo(x.dtype)
    least, most = (own.min, own.max) if value is None else (int(value), int(value))
    return bool(limits.min <= least and most <= limits.max)


# The primitive -------------------------------------------------------------------------------------------------------

while_p = Primitive("while", multiple_results=True, keeps_weak_type=False)


def bind(
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_consts: Sequence[Any],
    body_consts: Sequence[Any],
    init: Sequence[Any],
    checkpoints: int | None,
) -> list[Any]:
    """The final carry of a loop."""
    return while_p.bind(  # type: ignore[no-any-return]
        *cond_consts, *body_consts, *init, cond_jaxpr=cond_jaxpr, cond_nconsts=len(cond_consts), body_jaxpr=body_jaxpr,
        body_nconsts=len(body_consts), checkpoints=checkpoints,
    )  # fmt: skip


@while_p.abstract_eval
def _shape(
    *avals: ShapedArray,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None,
) -> list[ShapedArray]:
    cond_consts, body_consts, init = split_list(avals, cond_nconsts, body_nconsts)
    for what, program, consts in (("condition", cond_jaxpr, cond_consts), ("body", body_jaxpr, body_consts)):
        if _types(program.in_avals) != _types([*consts, *init]):
            given, wanted = (", ".join(map(str, x)) for x in ([*consts, *init], program.in_avals))
            raise JaxprError(f"the {what} of this while takes ({wanted}), but is given ({given})")
    outs = body_jaxpr.out_avals
    if _types(outs) != _types(init):
        raise JaxprError(f"the body of this while takes {init} as a carry, but gives {outs}")
    if _types(cond_jaxpr.out_avals) != [((), _BOOL)]:
        raise JaxprError(f"the condition of this while must give a bool[], but gives {cond_jaxpr.out_avals}")
    return outs


def _types(avals: Sequence[ShapedArray]) -> list[Any]:
    return [(a.shape, a.dtype) for a in avals]


@divisible(while_p)
def _dependence(
    operands: Flags, *, cond_nconsts: int, body_jaxpr: ClosedJaxpr, body_nconsts: int, **params: Any
) -> list[bool]:
    _, consts, carry = split_list(operands, cond_nconsts, body_nconsts)
    while True:
        both = [c or f for c, f in zip(carry, dependent(body_jaxpr, (*consts, *carry)), strict=True)]
        if both == carry:
            return carry
        carry = both


# Evaluation


def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The first steps operation by operation, the others, if there are many, as a compiled program."""
    cond_jaxpr, body_jaxpr = params["cond_jaxpr"], params["body_jaxpr"]
    cond_consts, body_consts, carry = split_list(
        list(map(concrete, args)), params["cond_nconsts"], params["body_nconsts"]
    )
    to_the_end = config.disable_jit or checking()
    step = op_count(cond_jaxpr) + op_count(body_jaxpr)
    done = 0
    while to_the_end or done <= INTERPRETED:
        if not host_value(run_interpreted(cond_jaxpr, [*cond_consts, *carry])[0]):
            return [typed(x, a) for x, a in zip(carry, body_jaxpr.out_avals, strict=True)]
        carry = run_interpreted(body_jaxpr, [*body_consts, *carry])
        done += step
    from pullback.backends.one_operation import evaluate

    return evaluate(while_p, [*cond_consts, *body_consts, *carry], params)  # type: ignore[no-any-return]


while_p.impl(_evaluate)


# Forward differentiation


@cached_by_jaxpr
def _jvp_body(closed: ClosedJaxpr, consts: Flags, init: Flags) -> tuple[ClosedJaxpr, list[bool]]:
    """A step of values and tangents, each group's tangents after its values; and which carries have a tangent."""
    carry = list(init)
    while True:
        both, found = jvp_jaxpr(closed, (*consts, *carry), carry)
        if found == carry:
            break
        carry = found
    inputs = with_tangents([consts, carry])
    return reordered(both, inputs, range(len(both.out_avals))), carry


@cached_by_jaxpr
def _ignoring(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A program that takes more inputs than it reads."""
    jaxpr = closed.jaxpr
    inputs = [*jaxpr.invars, *map(Var, avals)]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, inputs, jaxpr.eqns, jaxpr.outvars), closed.consts)


@while_p.jvp
def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None,
) -> tuple[list[Any], list[Any]]:
    cond_consts, body_consts, init = split_list(primals, cond_nconsts, body_nconsts)
    _, const_ts, init_ts = split_list(tangents, cond_nconsts, body_nconsts)
    nonzero_consts = tuple(t is not ZERO for t in const_ts)
    program, carry = _jvp_body(body_jaxpr, nonzero_consts, tuple(t is not ZERO for t in init_ts))
    moving = [(zero_tangent(typeof(x)) if t is ZERO else t) for x, t, c in zip(init, init_ts, carry, strict=True) if c]
    condition = _ignoring(cond_jaxpr, tuple(typeof(t) for t in moving))
    consts = [*body_consts, *select(const_ts, nonzero_consts)]
    outs = bind(condition, program, cond_consts, consts, [*init, *moving], checkpoints)
    ts = iter(outs[len(init) :])
    return outs[: len(init)], [next(ts) if c else ZERO for c in carry]


# Partial evaluation, dead code


def _counts(params: dict[str, Any]) -> tuple[int, int]:
    return params["cond_nconsts"], params["body_nconsts"]


@cached_by_jaxpr
def unknown_carry(closed: ClosedJaxpr, consts: Flags, init: Flags) -> list[bool]:
    """Which carries depend on unknown operands."""
    carry = list(init)
    while True:
        found = partial_eval_jaxpr(closed, [*consts, *carry], carry).unknown_outputs
        if found == carry:
            return carry
        carry = found


def _partial_eval(unknown: list[bool], eqn: Eqn) -> tuple[list[Eqn], list[Eqn], list[bool]]:
    """What goes its own way is known; the rest needs it in each step, and so is a loop that does it once more."""
    params = eqn.params
    cond_flags, const_flags, init = split_list(unknown, *_counts(params))
    carry = unknown_carry(params["body_jaxpr"], tuple(const_flags), tuple(init))
    if partial_eval_jaxpr(params["cond_jaxpr"], [*cond_flags, *carry]).unknown_outputs[0]:
        return [], [eqn], [True] * len(eqn.outvars)
    first = [_dce([not u for u in carry], eqn)] if eqn.effect or not all(carry) else []
    if not any(carry):
        return first, [], carry
    again = {name: without_effects(params[name]) for name in ("cond_jaxpr", "body_jaxpr")}
    rest = [v if u else Var(v.aval) for v, u in zip(eqn.outvars, carry, strict=True)]
    return first, [Eqn(while_p, eqn.invars, {**params, **again}, rest, eqn.made_at, eqn.scope)], carry


while_p.partial_eval(_partial_eval)


@cached_by_jaxpr
def _smaller(
    body: ClosedJaxpr, condition: ClosedJaxpr, body_nconsts: int, cond_nconsts: int, used: Flags
) -> tuple[tuple[ClosedJaxpr, list[bool]], tuple[ClosedJaxpr, list[bool]], list[bool]]:
    """The condition and the body of a loop for some of its carry, each with the inputs that it takes; and the carry."""
    tested = dce_closed_jaxpr(condition, [True])[1][cond_nconsts:]
    carry = [u or t for u, t in zip(used, tested, strict=True)]
    while True:
        smaller, inputs = dce_closed_jaxpr(body, carry, [*[False] * body_nconsts, *carry])
        if inputs[body_nconsts:] == carry:
            break
        carry = inputs[body_nconsts:]
    return dce_closed_jaxpr(condition, [True], [*[False] * cond_nconsts, *carry]), (smaller, inputs), carry


def _dce(used: list[bool], eqn: Eqn) -> Eqn:
    params = eqn.params
    cond_consts, body_consts, init = split_list(eqn.invars, *_counts(params))
    (condition, cond_inputs), (body, body_inputs), carry = _smaller(
        params["body_jaxpr"], params["cond_jaxpr"], len(body_consts), len(cond_consts), tuple(used)
    )
    cond_consts = select(cond_consts, cond_inputs[: len(cond_consts)])
    body_consts = select(body_consts, body_inputs[: len(body_consts)])
    changed = {
        **params, "cond_jaxpr": condition, "cond_nconsts": len(cond_consts), "body_jaxpr": body,
        "body_nconsts": len(body_consts),
    }  # fmt: skip
    invars = [*cond_consts, *body_consts, *select(init, carry)]
    return Eqn(while_p, invars, changed, select(eqn.outvars, carry), eqn.made_at, eqn.scope)


while_p.dce(_dce)


# Batching


@while_p.batch
def _batch(
    axis: MappedAxis,
    args: Sequence[Any],
    dims: Dims,
    *,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None,
) -> tuple[list[Any], list[int | None]]:
    fronted = [x if d is None else front(x, d, axis) for x, d in zip(args, dims, strict=True)]
    cond_consts, body_consts, init = split_list(fronted, cond_nconsts, body_nconsts)
    cond_flags, body_flags, flags = map(tuple, split_list([d is not None for d in dims], cond_nconsts, body_nconsts))
    loop = _batched(body_jaxpr, cond_jaxpr, axis.size, axis.name, cond_flags, body_flags, flags)
    carry = [front(x, None, axis) if c and not f else x for x, f, c in zip(init, flags, loop.carry, strict=True)]
    out_dims = [0 if c else None for c in loop.carry]
    if not loop.each:
        return bind(loop.condition, loop.body, cond_consts, body_consts, carry, checkpoints), out_dims
    holds = jaxpr_as_fun(loop.test)(*cond_consts, *carry)
    consts = [*cond_consts, *body_consts]
    return bind(loop.condition, loop.body, [], consts, [*holds, *carry], checkpoints)[1:], out_dims


class Batched(NamedTuple):
    """A loop over a batch.

    Attributes:
      condition: its condition.
      body: its body.
      carry: for each carry, whether it is mapped (then axis 0 is).
      each: whether each example has a condition of its own. These are then carried, before the rest; the loop goes on
        as long as one of them holds, and examples whose own does not stay as they are.
      test: the condition of each example.
    """

    condition: ClosedJaxpr
    body: ClosedJaxpr
    carry: list[bool]
    each: bool
    test: ClosedJaxpr


@cached_by_jaxpr
def _batched(
    body: ClosedJaxpr, condition: ClosedJaxpr, size: int, name: Any, cond_consts: Flags, body_consts: Flags, init: Flags
) -> Batched:
    carry, each = list(init), False
    while True:
        cond_dims, body_dims = (
            tuple(0 if f else None for f in (*consts, *carry)) for consts in (cond_consts, body_consts)
        )
        test, (test_dim,) = batch_jaxpr(condition, size, cond_dims, name)
        if test_dim is not None and not each:
            each, carry = True, [True] * len(carry)
            continue
        step, out_dims = batch_jaxpr(body, size, body_dims, name, carry)
        found = [d is not None for d in out_dims]
        if found == carry:
            break
        carry = found
    if not each:
        return Batched(test, step, carry, False, test)
    flags, own = ShapedArray((size,), _BOOL), test.in_avals[len(cond_consts) :]
    const_avals = [*test.in_avals[: len(cond_consts)], *step.in_avals[: len(body_consts)]]

    def goes_on(holds: Any, *values: Any) -> list[Any]:
        return [reduce_or(holds, (0,))]

    def run(*values: Any) -> list[Any]:
        for_test, for_step, (holds,), old = split_list(values, len(cond_consts), len(body_consts), 1)
        new = jaxpr_as_fun(step)(*guard(holds, [*for_step, *old], [*body_consts, *carry]))
        kept = [where(front_aligned(holds, 0, len(x.shape) - 1), x, y) for x, y in zip(new, old, strict=True)]
        return [*jaxpr_as_fun(test)(*for_test, *kept), *kept]

    conditions = stage_flat(condition, goes_on, [flags, *own])
    return Batched(conditions, stage_flat(body, run, [*const_avals, flags, *own]), carry, True, test)


# Compilation


@while_p.lowering
def _lowering(
    hlo: Any,
    *operands: Any,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    checkpoints: int | None,
) -> list[Any]:
    cond_consts, body_consts, init = split_list(operands, cond_nconsts, body_nconsts)

    def test(carry: list[Any]) -> list[Any]:
        return emission.inlined(hlo, cond_jaxpr, [*cond_consts, *carry])

    def step(carry: list[Any]) -> list[Any]:
        return emission.inlined(hlo, body_jaxpr, [*body_consts, *carry])

    effect = cond_jaxpr.jaxpr.effect or body_jaxpr.jaxpr.effect
    if not cond_jaxpr.jaxpr.effect:
        return emission.write_while(hlo, init, test, step, effect)

    # A condition with effects is tested after each step, within the body, and what it gave is carried.
    def step_and_test(carry: list[Any]) -> list[Any]:
        after = step(carry[1:])
        return [*test(after), *after]

    begin = [*test(list(init)), *init]
    return emission.write_while(hlo, begin, lambda carry: carry[:1], step_and_test, effect)[1:]
