"""``closure_convert`` and ``custom_gradient``: what functions close over, made explicit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import tree
from pullback.core.array import typeof
from pullback.core.dtypes import is_inexact
from pullback.core.errors import ArgumentError, CustomRuleError
from pullback.core.jaxpr import Jaxpr, eval_jaxpr
from pullback.core.trace import state
from pullback.transforms.custom.custom_linear import is_traced_ahead
from pullback.transforms.custom.custom_rules import custom_vjp
from pullback.transforms.custom.rule_adapter import zero_tangent
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import abstractify, check_callable, name_of, out_leaf
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.interpreters.stage import stage_flat


@api_boundary
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Turn the arrays that a function closes over into arguments, for rules that must be given them.

    Args:
      fun: takes and returns trees of arrays; it is traced here, once.
      example_args: arguments, or anything with ``shape`` and ``dtype``, of the types with which it will be called.

    Returns:
      A pair of a function ``converted(*args, *hoisted)`` and the list ``hoisted`` of those captured arrays that can be
      differentiated: real and complex ones. Other captured values stay where they are.

    >>> import pullback.numpy as pnp
    >>> from pullback import grad
    >>> def f(a):
    ...     converted, hoisted = closure_convert(lambda x: a * x, 1.0)
    ...     return converted(3.0, *hoisted)
    >>> print(grad(f)(2.0))
    3.0
    """
    check_callable(fun, "closure_convert")
    leaves, in_tree = tree.flatten(example_args)
    flat = FlatFunction(fun, in_tree)
    closed = stage_flat(fun, flat, [abstractify(x) for x in leaves], "closure_convert", literals=False)
    pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    hoisted = [(v, x) for v, x in pairs if is_inexact(x.dtype)]
    kept = [(v, x) for v, x in pairs if not is_inexact(x.dtype)]
    inputs = [*closed.jaxpr.invars, *[v for v, _ in hoisted]]
    jaxpr = Jaxpr([v for v, _ in kept], inputs, closed.jaxpr.eqns, closed.jaxpr.outvars)
    consts = [x for _, x in kept]
    count = len(example_args)

    def converted(*args: Any) -> Any:
        if len(args) != count + len(hoisted):
            raise ArgumentError(
                f"closure_convert of {name_of(fun)} gave a function of {count} arguments and then {len(hoisted)} "
                f"hoisted arrays, but it was called with {len(args)}"
            )
        values, treedef = tree.flatten(args[:count])
        if treedef != in_tree:
            raise ArgumentError(
                f"closure_convert of {name_of(fun)}: the function was traced for arguments of the tree {in_tree}, but "
                f"it was called with {treedef}"
            )
        return flat.result(eval_jaxpr(jaxpr, consts, *values, *args[count:]))

    return converted, [x for _, x in hoisted]


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the function for its own backward pass beside its result.

    Args:
      fun: ``fun(*args) -> (out, vjp_function)``, where ``vjp_function(ct)`` gives a tuple of one cotangent for each
        argument (or that cotangent, for a single one); it may close over whatever was computed on the way.

    Returns:
      A function of the same arguments that gives ``out``.

    Raises:
      CustomRuleError: ``fun`` gives something else, or its backward function does (a TypeError).

    Source: the interface is that of TensorFlow's ``tf.custom_gradient``.

    >>> from pullback import grad
    >>> @custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: (ct * x,)
    >>> print(f(3.0), grad(f)(3.0))
    9.0 3.0
    """
    check_callable(fun, "custom_gradient")

    def call(*args: Any) -> tuple[Any, Callable[[Any], Any]]:
        pair = fun(*args)
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and callable(pair[1])):
            raise CustomRuleError(
                f"{name_of(fun)} is a custom_gradient function, which must give a pair (out, vjp_function), "
                f"but it gave {pair!r}"
            )
        return pair[0], pair[1]

    @functools.wraps(fun)
    def only_value(*args: Any) -> Any:
        return call(*args)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, pull = call(*args)
        if is_traced_ahead(state.trace):
            program = BackwardProgram(pull, out)
            return out, (len(args), program, program.take_captured())
        return out, (len(args), pull, None)

    def backward(residuals: tuple[int, Any, Any], ct: Any) -> Any:
        count, pull, captured = residuals
        cts = pull.run(captured, ct) if isinstance(pull, BackwardProgram) else pull(ct)
        return (cts,) if count == 1 and not (isinstance(cts, tuple) and len(cts) == 1) else cts

    function = custom_vjp(only_value)
    function.defvjp(forward, backward)
    return function


class BackwardProgram:
    """A backward function as a program, since what it closes over is mapped or staged, and must be residuals.

    Attributes:
      jaxpr: from what it closed over and the cotangent to the cotangents of the arguments.
    """

    def __init__(self, pull: Callable[[Any], Any], out: Any) -> None:
        leaves, out_tree = tree.flatten(out)
        avals = [typeof(x) for x in leaves]
        self.inexact = [is_inexact(a.dtype) for a in avals]

        def run(*given: Any) -> list[Any]:
            rest = iter(given)
            cts = [next(rest) if i else zero_tangent(a, False) for a, i in zip(avals, self.inexact, strict=True)]
            results, self.tree = tree.flatten(pull(tree.unflatten(out_tree, cts)))
            return [out_leaf(x, pull) for x in results]

        closed = stage_flat(pull, run, [a for a, i in zip(avals, self.inexact, strict=True) if i])
        self.jaxpr = closed.jaxpr
        self.captured: list[Any] = closed.consts

    def take_captured(self) -> list[Any]:
        """What the function closed over, which is not kept here."""
        captured, self.captured = self.captured, []
        return captured

    def run(self, captured: Sequence[Any], ct: Any) -> Any:
        """The cotangents of the arguments."""
        given = [x for x, i in zip(tree.leaves(ct), self.inexact, strict=True) if i]
        return tree.unflatten(self.tree, eval_jaxpr(self.jaxpr, captured, *given))
