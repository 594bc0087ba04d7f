"""``closure_convert`` and ``custom_gradient``: making the values that functions close over explicit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

from pullback.core import source, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import Array, typeof
from pullback.core.dtypes import is_inexact
from pullback.core.errors import ArgumentError, CustomRuleError, UnsupportedArgumentError
from pullback.core.jaxpr import Jaxpr, eval_jaxpr
from pullback.core.lists import partition_list, select
from pullback.core.trace import Tracer, state
from pullback.transforms.custom.custom_linear import is_traced_ahead
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, name_of, zero_cotangent
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.backward_logs import paired
from pullback.transforms.traces.stage import stage_flat

P = ParamSpec("P")
R = TypeVar("R")


@api_boundary
def closure_convert(fun: Callable[..., R], *example_args: PyTree) -> tuple[Callable[..., R], list[Array]]:
    """Turn the arrays that a function closes over into arguments, so that custom derivative rules apply to them.

    Args:
      fun: takes and returns trees of arrays; it is traced by this call.
      example_args: arguments, or objects with ``shape`` and ``dtype``, of the types of later calls.

    Returns:
      A pair: a function ``converted(*args, *hoisted)``, and the list ``hoisted`` of the traced real and complex arrays
      that ``fun`` closes over, which a transformation may be differentiating. ``converted`` still closes over other
      values.

    Raises:
      ArgumentError: ``fun`` is not a function, or ``converted`` is called with arguments of another structure (a
        TypeError and a ValueError).

    >>> from pullback import closure_convert, grad
    >>> def f(a):
    ...     converted, hoisted = closure_convert(lambda x: a * x, 1.0)
    ...     return converted(3.0, *hoisted)
    >>> print(grad(f)(2.0))
    3.0
    """
    require_function("closure_convert", "fun", fun)
    return _with_arguments(fun, example_args, lambda x: isinstance(x, Tracer) and is_inexact(x.dtype))


def without_tracers(fun: Callable[..., R], *example_args: PyTree) -> tuple[Callable[..., R], list[Array]]:
    """Turn all traced arrays that a function closes over into arguments; see :func:`closure_convert`.

    A transformation may have ended when a derivative rule runs, with all values that it traced: positions, too.
    """
    return _with_arguments(fun, example_args, lambda x: isinstance(x, Tracer))


def _with_arguments(
    fun: Callable[..., R], example_args: Sequence[Any], is_hoisted: Callable[[Any], bool]
) -> tuple[Callable[..., R], list[Array]]:
    leaves, in_tree = tree.flatten(example_args)
    flat = FlatFunction(fun, in_tree)
    closed = stage_flat(fun, flat, [abstractify(x) for x in leaves], "closure_convert")
    traced = [is_hoisted(x) for x in closed.consts]
    consts, hoisted = partition_list(closed.consts, traced)
    constvars, variables = partition_list(closed.jaxpr.constvars, traced)
    jaxpr = Jaxpr(constvars, [*closed.jaxpr.invars, *variables], closed.jaxpr.eqns, closed.jaxpr.outvars)
    count = len(example_args)

    def converted(*args: Any) -> Any:
        if len(args) != count + len(hoisted):
            raise ArgumentError(
                f"closure_convert of {name_of(fun)} returned a function of {count} arguments and then {len(hoisted)} "
                f"hoisted arrays, but it was called with {len(args)}"
            )
        values, treedef = tree.flatten(args[:count])
        if treedef != in_tree:
            raise ArgumentError(
                f"closure_convert of {name_of(fun)}: the function was traced for arguments of the tree {in_tree}, but "
                f"it was called with {treedef}"
            )
        return flat.result(eval_jaxpr(jaxpr, consts, *values, *args[count:]))

    return converted, hoisted


@overload
def custom_gradient(
    fun: Callable[P, tuple[R, Callable[..., Any]]],
    *,
    with_logs: bool = False,
    remat: bool = False,
    with_accums: None = None,
) -> Callable[P, R]: ...
@overload
def custom_gradient(
    fun: None = None, *, with_logs: bool = False, remat: bool = False, with_accums: None = None
) -> Callable[[Callable[P, tuple[R, Callable[..., Any]]]], Callable[P, R]]: ...
# long: half of it is its documentation
def custom_gradient(
    fun: Callable[..., Any] | None = None, *, with_logs: bool = False, remat: bool = False, with_accums: None = None
) -> Any:
    """Make a differentiable function from a function that returns its result and its backward function.

    Args:
      fun: ``fun(*args) -> (out, vjp_function)``, where ``vjp_function(ct)`` returns a tuple of one cotangent for each
        argument, or for a single argument its cotangent alone. ``vjp_function`` may close over intermediate values.
        Without ``fun``, a decorator is returned.
      with_logs: whether ``vjp_function`` returns a pair, of the cotangents and of a dictionary to log, as the rule of
        ``custom_vjp.defvjp_with_logs``.
      remat: must be False: the backward function is not a rule for ``checkpoint``.
      with_accums: must be None: the backward function returns cotangents.

    Returns:
      A function of the same arguments that returns ``out``.

    Raises:
      UnsupportedArgumentError: another value of these (a NotImplementedError).
      CustomRuleError: the result of ``fun`` or of its backward function has another form (a TypeError).

    Source: the interface of TensorFlow's ``tf.custom_gradient``.

    >>> from pullback import custom_gradient, grad
    >>> @custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: (ct * x,)
    >>> print(f(3.0), grad(f)(3.0))
    9.0 3.0
    """
    with_logs = flag("custom_gradient", "with_logs", with_logs)
    for name, value in {"remat": remat, "with_accums": with_accums}.items():
        if value:
            raise UnsupportedArgumentError(
                f"custom_gradient: {name}={value!r} is not supported: a backward function takes and returns cotangents"
            )
    if fun is None:
        return partial(custom_gradient, with_logs=with_logs)
    require_function("custom_gradient", "fun", fun)
    function: Callable[..., Any] = fun

    def call(*args: Any) -> tuple[Any, Callable[[Any], Any]]:
        pair: Any = function(*args)
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and callable(pair[1])):
            raise CustomRuleError(
                f"{name_of(fun)} is a custom_gradient function, which must return a pair (out, vjp_function), "
                f"but it returned {pair!r}"
            )
        return pair[0], pair[1]

    @source.named_as(fun)
    def only_value(*args: Any) -> Any:
        return call(*args)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pull = call(*args)
        captured: list[Any] = []
        if is_traced_ahead(state.trace):  # captured values have to become residuals
            pull, captured = _closed_pull(pull, out)
        return out, (len(args), pull, captured)

    def backward(residuals: tuple[int, Any, Any], ct: Any) -> Any:
        count, pull, captured = residuals
        cts, logs = pull(ct, *captured), None
        if with_logs:
            cts, logs = paired(cts, f"the backward function of {name_of(fun)}")
        cts = (cts,) if count == 1 and not (isinstance(cts, tuple) and len(cts) == 1) else cts
        return (cts, logs) if with_logs else cts

    with_rule: Any = custom_vjp(only_value)
    (with_rule.defvjp_with_logs if with_logs else with_rule.defvjp)(forward, backward)
    return with_rule


def _closed_pull(pull: Callable[[Any], Any], out: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Trace a backward function, so that the values that it closes over become arguments.

    Args:
      pull: the backward function, which takes a cotangent.
      out: the result of the forward function, a tree of arrays like the cotangent.

    Returns:
      A function of the cotangent and the captured values, and the list of captured values. These may be tracers of
      ``vmap`` or staging, so that the caller has to make them residuals.
    """
    leaves, out_tree = tree.flatten(out)
    avals = [typeof(x) for x in leaves]
    inexact = [is_inexact(a.dtype) for a in avals]

    def run(*cts: Any) -> list[Any]:
        rest = iter(cts)
        dense = [next(rest) if i else zero_cotangent(a) for a, i in zip(avals, inexact, strict=True)]
        return flat(*dense)

    flat = FlatFunction(lambda *cts: pull(tree.unflatten(out_tree, cts)), described=pull)
    closed = stage_flat(pull, run, select(avals, inexact))
    jaxpr = closed.jaxpr  # without the captured values, which it would keep alive

    def converted(ct: Any, *captured: Any) -> Any:
        return flat.result(eval_jaxpr(jaxpr, captured, *select(tree.leaves(ct), inexact)))

    return converted, closed.consts
