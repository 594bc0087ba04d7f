"""``while_loop``: repeating a step while a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from pullback.control.common import (
    Body,
    Carry,
    auto_preaccumulated,
    check_checkpoints,
    check_preaccumulate,
    deduplicated,
    known,
    leaves_of,
    stage,
    stage_step,
    varied_contents,
    with_varying_predicate,
)
from pullback.control.while_primitive import bind
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import Array, ArrayLike, as_array, typeof
from pullback.core.config import config
from pullback.core.errors import ControlFlowError, OperandError, RefError
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.lists import merge_lists, partition_list
from pullback.primitives.varying import vary
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.traces.lift import reordered
from pullback.transforms.traces.refs import write_all

R = TypeVar("R")


# The public functions ------------------------------------------------------------------------------------------------


@overload
def while_loop(
    cond_fun: Callable[..., ArrayLike],
    body_fun: Callable[..., ArrayLike],
    init_val: PyTree,
    *,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[..., ArrayLike],
    body_fun: Callable[..., R],
    init_val: PyTree,
    *,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> R: ...
@api_boundary
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: PyTree,
    *,
    checkpoints: int | None = None,
    preaccumulate: str | None = None,
) -> Any:
    """Apply a function repeatedly, while a condition holds.

    Also in eager mode a loop of more than a few operations runs as a compiled program, which is cached; under
    ``disable_jit`` it is a loop in Python. Ctrl-C ends an eager loop, and a loop under ``jit`` over arrays of 16,384
    elements or more. Of one over smaller arrays, or over several devices, Ctrl-C ends only the wait.

    Args:
      cond_fun: from the carry to a boolean scalar: whether there is another step.
      body_fun: from the carry to the carry after a step, of the same tree, shapes and dtypes.
      init_val: the initial carry, a tree of arrays. Weakly typed numbers take the dtype that ``body_fun`` returns for
        them.
      checkpoints: the number of states to save for reverse mode, whatever the number of steps; the others are
        recomputed. By default 128, or fewer if these would take more than 64 MB.
      preaccumulate: ``"auto"`` stores local Jacobians of regions of a step for reverse mode, as for ``scan``.

    Returns:
      The carry for which the condition does not hold. Under ``vmap`` each example has its own number of steps.

    Raises:
      ControlFlowError: ``body_fun`` returns another carry, or ``cond_fun`` no boolean (a TypeError and ValueError).

    Warns:
      LeftRunningWarning: Ctrl-C has ended the wait for a loop, which goes on in the background.

    >>> from pullback import lax
    >>> print(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    require_function("while_loop", "cond_fun", cond_fun)
    require_function("while_loop", "body_fun", body_fun)
    check_checkpoints("while_loop", checkpoints)
    check_preaccumulate("while_loop", preaccumulate)
    leaves, treedef = leaves_of(init_val, "while_loop", "init_val")
    if config.disable_jit:
        value = tree.unflatten(treedef, leaves)
        while True:
            holds = known(_condition(cond_fun(value), cond_fun))
            if holds is None:  # mapped: it differs between examples
                leaves, treedef = leaves_of(value, "while_loop", "carry")
                break
            if not holds:
                return value
            value = body_fun(value)
    carry = Carry("while_loop", body_fun, leaves, treedef, key=("while_loop", treedef))

    def step(*tracers: Any) -> Any:
        return body_fun(tree.unflatten(treedef, tracers)), None

    def test(*tracers: Any) -> Any:
        return _condition(cond_fun(tree.unflatten(treedef, tracers)), cond_fun)

    return tree.unflatten(treedef, run_while(carry, cond_fun, test, step, checkpoints, preaccumulate))


def _condition(holds: Any, function: Any) -> Any:
    """Convert ``holds``, the result of a loop's condition, to an array; raise unless it is a boolean scalar.

    ``function`` is the user's condition, for the error message.
    """
    try:
        x = as_array(holds)
    except OperandError:
        x = None
    if x is None or x.shape != () or not dtypes.is_bool(x.dtype):
        got = f"a {type(holds).__name__}" if x is None else f"{typeof(x)}"
        raise ControlFlowError(
            f"while_loop: the condition {name_of(function)} must return a scalar boolean, but it returned {got}. "
            "jnp.all and jnp.any reduce an array to one boolean; for a number write a comparison such as x != 0."
        )
    return x


def run_while(
    carry: Carry, test_function: Any, test: Callable[..., Any], step: Callable[..., Any], checkpoints: int | None,
    preaccumulate: str | None = None,
) -> list[Any]:  # fmt: skip
    """Stage and run a while loop; return the leaves of the final carry.

    Args:
      carry: the initial carry.
      test_function: the user's condition, for error messages.
      test: from the leaves of the carry to whether there is another step.
      step: from the leaves of the carry to a pair: the tree of the carry after a step, and None.
      checkpoints: the number of states to save for reverse mode.
      preaccumulate: ``"auto"`` to store local Jacobians instead of residuals wherever they are smaller.
    """
    body = stage_step(carry, step, [], carry.names)
    test_key = ("the condition", carry.key)
    refs = body.refs
    known_axes = {r: a.varying for r, a in zip(refs, body.jaxpr.in_avals[-len(refs) :], strict=True)} if refs else None
    condition = stage(carry.what, test_function, test, carry.avals, carry.names, refs, known_axes, test_key)
    if condition.writes():
        raise RefError(
            f"while_loop: the condition {name_of(test_function)} writes to a reference, but it may only read, "
            f"because it runs once more than the body. Write to the reference in the body."
        )
    init = [*carry.leaves, *varied_contents(body)]
    axes = condition.jaxpr.out_avals[0].varying
    if axes:
        init = [vary(x, axes) for x in init]
        body, condition = with_varying_predicate(body, axes), with_varying_predicate(condition, axes)
    # Carried values that no step changes become constants, which reverse mode need not save.
    inputs = body.jaxpr.jaxpr.invars[len(body.captured) :]
    fixed = [a is v for a, v in zip(body.jaxpr.jaxpr.outvars, inputs, strict=False)]
    results, _ = partition_list(range(len(fixed)), fixed)
    moving, constants = partition_list(init, fixed)

    def with_constants(staged: Body, results: Sequence[int]) -> ClosedJaxpr:
        count = len(staged.captured)
        changing, constant = partition_list(range(count, count + len(fixed)), fixed)
        return deduplicated(reordered(staged.jaxpr, [*range(count), *constant, *changing], results))

    program, predicate = with_constants(body, results), with_constants(condition, [0])
    operands = [*condition.captured, *constants], [*body.captured, *constants], moving
    if preaccumulate is not None:
        program = auto_preaccumulated(program, carry, range(len(operands[1]), len(program.in_avals)))
    outs = merge_lists(fixed, bind(predicate, program, *operands, checkpoints), constants)
    write_all(refs, outs[len(carry.leaves) :])
    return outs[: len(carry.leaves)]
