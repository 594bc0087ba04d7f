"""``checkpoint``: functions for which reverse mode saves few residuals, and recomputes the others.

In eager mode a checkpointed function is ordinary Python, which is called once, on values. Its arguments are saved, and
its operations recorded; the backward pass evaluates them again, and linearises them. If the function is staged or
mapped, or has a policy, the call is an equation that holds its program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import typeof
from pullback.core.errors import ArgumentError, ConcretizationTypeError, StaticArgumentError, UnsupportedArgumentError
from pullback.core.refs import RunsAgain, take_refs
from pullback.core.trace import Tracer, state
from pullback.transforms.autodiff.saving import Budget, check_memory, storing_less
from pullback.transforms.checkpoint.checkpoint_policies import (
    Policy,
    check_policy,
    everything_saveable,
    nothing_saveable,
)
from pullback.transforms.checkpoint.checkpoint_primitive import checkpoint_p
from pullback.transforms.checkpoint.eager_remat import eager_remat, in_reverse_mode
from pullback.transforms.checkpoint.recording import Recorded, recording
from pullback.transforms.custom.custom_linear import is_traced_ahead
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import argument_name, check_argnums, name_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.jit.jit_arguments import infer_argnums_argnames
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.refs import Scope, contents, write_all
from pullback.transforms.traces.stage import stage_flat

# The public function -------------------------------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")


class CheckpointDecorator(Protocol):
    """The type of ``checkpoint`` with options but without a function: a decorator."""

    def __call__(self, fun: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | PyTree = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
    memory: Budget = None,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool | PyTree = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
    memory: Budget = None,
) -> CheckpointDecorator: ...
# long: half of it is its documentation
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | PyTree = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    concrete: bool = False,
    memory: Budget = None,
) -> Any:
    """Make a function whose reverse-mode derivatives need less memory, and more computation.

    Reverse mode saves residuals of each operation. For a checkpointed function it saves only the arguments, or the
    values that a policy selects, and computes the operations again when the backward pass needs them. Values and
    derivatives are the same, to any order. In eager mode and without a policy the function remains ordinary Python: it
    may branch on values, print, and be debugged. It is called once; the backward pass repeats its operations, with
    their effects, such as callbacks, on the branches that it took.

    Args:
      fun: takes and returns trees of arrays. Without it, the result is a decorator.
      prevent_cse: whether to keep the compiler from merging the recomputation with the first computation, which would
        undo the checkpoint. The body of a loop has no such duplicates, and False is a little faster. A tree of
        booleans, as JAX accepts it, counts as True if any is True.
      policy: ``policy(primitive, *avals, **params) -> bool`` says whether the results of an operation may be saved; for
        example the members of ``checkpoint_policies``. None saves no results. It also applies to operations within
        functions under ``jit`` and within ``scan``; an inner checkpointed function has its own policy.
      static_argnums, static_argnames: arguments that are not traced, by position and by name.
      concrete: JAX's older option for functions that read values. Eager functions may always read them; otherwise use
        ``static_argnums``.
      memory: a budget for the function and its backward pass together, beside the arguments and results: a number of
        bytes, a text such as ``"500MB"`` or ``"50%"``, or a float, the share of the usual peak. The values to keep and
        those to compute again are chosen for the least time; see ``pullback.analysis.plan_memory``. The function is
        traced where it is differentiated. There is no other policy then.

    Returns:
      A function of the same arguments.

    Raises:
      UnsupportedArgumentError: ``concrete`` is True (a NotImplementedError).
      ArgumentError: the policy cannot be called, the static arguments do not fit, or ``memory`` is no budget (a
        TypeError and ValueError).
      MemoryBudgetError: from a derivative, for a budget that cannot be kept (a ValueError and MemoryError).
      StaticArgumentError: from a call, for a static argument that is traced (a TypeError and ValueError).
      OperandError: from a call, for an argument or a result that is no array (a TypeError).

    Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapter 12.

    >>> import pullback.numpy as jnp
    >>> from pullback import checkpoint, grad
    >>> @checkpoint
    ... def f(x):
    ...     return jnp.sin(jnp.sin(x)) if x > 0 else x
    >>> print(grad(f)(2.0))
    -0.2556391
    """
    maker = functools.partial(
        checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
        static_argnames=static_argnames, memory=memory,
    )  # fmt: skip
    if flag("checkpoint", "concrete", concrete):
        raise UnsupportedArgumentError("checkpoint: concrete=True is no longer supported; use static_argnums")
    if fun is None:
        return maker
    require_function("checkpoint", "fun", fun)
    if policy is not None:
        check_policy(policy, f"checkpoint of {name_of(fun)}")
        policy = policy if isinstance(policy, Hashable) else functools.partial(policy)
    if memory is not None:
        check_memory("checkpoint", memory)
        if policy is not None:
            raise ArgumentError(f"checkpoint of {name_of(fun)} takes a policy or a budget, memory={memory!r}, not both")
    flags = tree.leaves(prevent_cse)
    if not flags or any(type(flag) is not bool for flag in flags):
        raise ArgumentError(
            f"checkpoint of {name_of(fun)}: prevent_cse must be True or False, or a tree of them, got {prevent_cse!r}"
        )
    nums = None if static_argnums in (None, ()) else check_argnums(static_argnums, "checkpoint", "static_argnums")
    static = infer_argnums_argnames(fun, nums, static_argnames or None, "static", "checkpoint")
    options = {"policy": policy, "prevent_cse": any(flags), "differentiated": False}
    return Transformed(fun, lambda args, kwargs: _results(fun, static, options, memory, args, kwargs), maker)


def _results(
    fun: Any,
    static: tuple[tuple[int, ...], tuple[str, ...]],
    options: dict[str, Any],
    memory: Budget,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a checkpointed function under the current trace, and return its result.

    Args:
      fun: the function.
      static: the positions and the names of the static arguments.
      options: the parameters of ``checkpoint_p``, except the program.
      memory: the budget, or None.
      args, kwargs: the arguments.
    """
    nums, names = static
    fixed = {i % len(args): args[i] for i in nums if -len(args) <= i < len(args)}
    where = [i for i in range(len(args)) if i not in fixed]
    by_name = {k: kwargs[k] for k in names if k in kwargs}
    kwargs = {k: x for k, x in kwargs.items() if k not in by_name}
    if static != ((), ()):
        _check_static(fun, {**fixed, **by_name})
    leaves, in_tree = tree.flatten(([args[i] for i in where], kwargs))
    refs = take_refs(leaves)
    arrays = to_arrays(leaves, "checkpoint", fun, args, where, kwargs)
    static_args = [x if i in fixed else None for i, x in enumerate(args)]  # without traced values
    call = FlatFunction(fun, in_tree, static_args, where if fixed else None, by_name, keywords=True)
    call.opaque = refs
    name_input = functools.partial(argument_name, fun=fun, args=args, where=where, kwargs=kwargs)
    if memory is not None:
        differentiated = is_traced_ahead(state.trace, recorded=False) or in_reverse_mode(state.trace)
        run = storing_less(fun, call, arrays, "checkpoint", (None, memory)) if differentiated else call
        return call.result(run(*arrays))
    return call.result(_outs(call, options, arrays, name_input))


def _outs(
    call: FlatFunction, options: dict[str, Any], arrays: Sequence[Any], name_input: Callable[[int], str]
) -> list[Any]:
    """Call a checkpointed function, and return the leaves of its result.

    In eager mode the function runs, and its operations are recorded, so that the backward pass can repeat them.
    Otherwise the function is traced, and its program becomes one ``checkpoint`` equation.

    Args:
      call: the flat version of the function.
      options: the parameters of ``checkpoint_p``, except the program.
      arrays: the leaves of the arguments.
      name_input: from the index of a leaf to its name, for error messages.
    """
    policy = options["policy"]
    saves_nothing = policy is None or policy is nothing_saveable
    uses_refs = False
    if not is_traced_ahead(state.trace, recorded=False):
        try:
            if not in_reverse_mode(state.trace):
                return recording(state.trace, options, lambda: call(*arrays))  # type: ignore[no-any-return]
            if policy is everything_saveable:
                return call(*arrays)
            if saves_nothing:
                return eager_remat(call.fun, Recorded(call.fun, call, arrays), arrays)
        except RunsAgain:  # it uses references, which the backward pass must not change again
            uses_refs = True
    scope = Scope()
    try:
        avals = [typeof(x) for x in arrays]
        closed, captured = hoisted(stage_flat(call.fun, call, avals, _STAGING, name_input, outside=scope))
    except ConcretizationTypeError as error:
        trace: Any = error.trace
        if getattr(trace, "transformation", None) != _STAGING or trace.function is not call.fun:
            raise
        if uses_refs or not (saves_nothing and state.trace.eager):
            better = type(error)(
                f"{error}\nThe arguments of a checkpointed function are traced if it is compiled or mapped, uses "
                f"references from outside, or has a policy, even if their values are known outside; static_argnums "
                f"passes an argument without tracing it."
            )
            better.trace = error.trace
            raise better from None
        # Under vmap the values that are not mapped are known: recording may succeed where staging failed.
        return eager_remat(call.fun, Recorded(call.fun, call, arrays), arrays)
    if scope.in_rules and in_reverse_mode(state.trace):  # the backward pass may write to references: keep its residuals
        return call(*arrays)
    operands = [*arrays, *contents(scope.read), *contents(scope.written), *captured]
    outs: list[Any] = checkpoint_p.bind(*operands, jaxpr=closed, **options)
    count = len(outs) - len(scope.written)
    write_all(scope.written, outs[count:])
    return outs[:count]


_STAGING = "checkpoint"


def _check_static(fun: Any, static: dict[Any, Any]) -> None:
    """Raise if one of the static arguments of ``fun`` is traced; ``static`` has them by position or by name."""
    for what, value in static.items():
        for x in tree.leaves(value):
            if isinstance(x, Tracer):
                raise StaticArgumentError(
                    f"checkpoint of {name_of(fun)}: the static argument {what!r} must be a concrete value, but it "
                    f"is traced: {x!r}. Do not declare it static, or pass a concrete value. It comes from {x.origin()}"
                )
