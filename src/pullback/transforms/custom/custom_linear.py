"""``linear_call`` and ``custom_transpose``: linear functions with custom transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import tree
from pullback.core.arguments import require_function
from pullback.core.array import typeof
from pullback.core.errors import CustomRuleError
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.core.lists import split_list
from pullback.core.masking import with_masked_zeros
from pullback.core.trace import Trace, state
from pullback.core.types import ShapedArray
from pullback.core.zeros import densify
from pullback.transforms.custom.closed_over import explained
from pullback.transforms.custom.custom_rules import FunctionWithRules
from pullback.transforms.custom.linear_map import LinearMap, linear_operation
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import (
    abstractify,
    flatten_one,
    name_of,
    out_leaf,
    to_arrays,
    unflatten_one,
)
from pullback.transforms.functions.flat_function import flat_result
from pullback.transforms.traces.batch import BatchTrace
from pullback.transforms.traces.captured import hoisted
from pullback.transforms.traces.laplacian import LaplacianTrace
from pullback.transforms.traces.stage import stage_flat

linear_call_p = linear_operation("linear_call")

Flat = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""A function of flat residuals and flat linear arguments."""


class LinearCall(LinearMap):
    """A call of a linear function with a custom transpose.

    Attributes:
      rule: the transpose.
      residuals, values: the leaves of the residual arguments and of the linear arguments, as arrays.
      residual_tree, linear_tree: the trees of these arguments.
      out_tree: the tree of the result, or None for a single array; it is set together with ``out_avals``.
    """

    def __init__(self, who: str, function: Any, rule: Any, residual_args: Any, linear_args: Any) -> None:
        require_function(who, "function", function)
        require_function(who, "rule", rule)
        self.function = function
        self.rule = rule
        residuals, self.residual_tree = tree.flatten(residual_args)
        values, self.linear_tree = tree.flatten(linear_args)
        arrays = to_arrays(residuals + values, who, function, (residual_args, linear_args))
        self.count = len(residuals)
        self.residuals, self.values = split_list(arrays, self.count)
        self.residual_avals = [typeof(x) for x in self.residuals]
        self.linear_avals = [typeof(x) for x in self.values]
        self.out_tree: Any = None
        self._out_avals: list[ShapedArray] | None = None

    @property
    def out_avals(self) -> list[ShapedArray]:  # type: ignore[override]
        """The types of the results. If they are not known yet, trace the function to find them."""
        if self._out_avals is None:
            self.staged(self.apply, self.linear_avals)
        assert self._out_avals is not None
        return self._out_avals

    def result_like(self, out: Any) -> None:
        """Set the tree and the types of the result to those of ``out``, to avoid tracing the function for them."""
        leaves, self.out_tree = flatten_one(out)
        self._out_avals = [abstractify(x) for x in leaves]

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Apply the function to residuals and linear arguments ``tangents``; return the leaves of its result."""
        return with_masked_zeros(self._apply, residuals, tangents)

    def _apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        out = self.function(tree.unflatten(self.residual_tree, residuals), tree.unflatten(self.linear_tree, tangents))
        outs, self.out_tree = flat_result(out, self.function)
        if self._out_avals is None:
            self._out_avals = [typeof(x) for x in outs]
        return outs

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Apply the transpose to residuals and cotangents of the result; return the cotangents of the linear arguments.

        Raise if their tree or types are wrong.
        """
        return with_masked_zeros(self._transpose, residuals, cts)

    def _transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        dense = unflatten_one(self.out_tree, densify(cts, self.out_avals))
        leaves, treedef = tree.flatten(self.rule(tree.unflatten(self.residual_tree, residuals), dense))
        who = f"the transpose rule {name_of(self.rule)} of {name_of(self.function)}"
        if treedef != self.linear_tree:
            raise CustomRuleError(
                f"{who} must return cotangents of the same tree as the linear arguments, {self.linear_tree}, but it "
                f"returned {treedef}"
            )
        results = [out_leaf(x, self.rule) for x in leaves]
        for i, (ct, aval) in enumerate(zip(results, self.linear_avals, strict=True)):
            if ct.shape != aval.shape or ct.dtype != aval.dtype:
                raise CustomRuleError(
                    f"{who} must return cotangents of the types of the linear arguments, but leaf {i} of these "
                    f"is {aval}, and its cotangent {typeof(ct)}"
                )
        return results

    def staged(self, run: Flat, avals: Sequence[ShapedArray]) -> tuple[Callable[..., list[Any]], list[Any]]:
        """Trace ``run``, which is ``apply`` or ``transpose``, so that the result closes over no tracers.

        Args:
          run: takes residuals and linear operands.
          avals: the types of the linear operands.

        Returns:
          A function of residuals, linear operands and captured tracers; and the list of captured tracers.
        """
        count = self.count
        closed = stage_flat(self.function, lambda *xs: run(xs[:count], xs[count:]), [*self.residual_avals, *avals])
        closed, captured = hoisted(closed)
        return jaxpr_as_fun(closed), captured


class CoupledLinearMap(LinearMap):
    """A linear map made of a user's linear function and its transpose. The transpose of the map exchanges these two.

    Attributes:
      run, back: the function and its transpose. Both take a list of residuals and a list of operands, and return a
        list.
      call: the call of the function, which has the types of its operands and results.
      turned: whether the two are exchanged, so that ``run`` is the transpose of the user's function.
    """

    def __init__(self, call: LinearCall, run: Flat, back: Flat, count: int, turned: bool = False) -> None:
        self.call = call
        self.function = call.rule if turned else call.function
        self.run = run
        self.back = back
        self.count = count
        self.turned = turned

    @property
    def out_avals(self) -> Sequence[ShapedArray]:  # type: ignore[override]
        return self.call.linear_avals if self.turned else self.call.out_avals

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        return self.run(residuals, tangents)

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        dense = densify(cts, self.out_avals)
        other = CoupledLinearMap(self.call, self.back, self.run, self.count, not self.turned)
        return linear_call_p.bind(*residuals, *dense, linear_map=other)  # type: ignore[no-any-return]


def is_traced_ahead(trace: Trace, recorded: bool = True) -> bool:
    """Whether a user's function must be traced when it is called, since it may close over traced values.

    This is so if ``trace`` or one of its parents is a trace of ``vmap`` or of the forward Laplacian, and while
    operations are staged. With ``recorded``, it is also so within a checkpointed function, which runs again in the
    backward pass, when the values that it closes over are gone.
    """
    while not trace.is_bottom:
        if isinstance(trace, (BatchTrace, LaplacianTrace)) or (recorded and trace.runs_again):
            return True
        trace = trace.parent
    return not state.trace.eager


@api_boundary
def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Call a function that is linear in some of its arguments, with a custom transpose.

    Args:
      fun: ``fun(residual_args, linear_args) -> out``, linear in its second argument.
      fun_transpose: ``fun_transpose(residual_args, ct) -> cts``, from a cotangent of ``out`` to one of ``linear_args``.
      residual_args, linear_args: trees of arrays.

    Returns:
      The result of ``fun``. Transposed, the call becomes a ``linear_call`` with the two functions exchanged; transposed
      twice, it is the original call. Whether the functions are transposes of each other is not checked.

    Raises:
      CustomRuleError: ``fun_transpose`` returns another tree, shape or dtype than ``linear_args`` has (a TypeError).

    >>> from pullback import linear_transpose
    >>> from pullback.custom_derivatives import linear_call
    >>> def divide(r, x):
    ...     return x / r
    >>> def divide_add(x, r):
    ...     return x + linear_call(divide, divide, r, x)
    >>> print(divide_add(9.0, 3.0), linear_transpose(lambda x: divide_add(x, 3.0), 1.0)(18.0)[0])
    12.0 24.0
    """
    return bind_linear_call(LinearCall("linear_call", fun, fun_transpose, residual_args, linear_args))


def bind_linear_call(call: LinearCall, transposable: bool = True) -> Any:
    """Apply a call of a linear function under the current trace, and return its result.

    Args:
      call: the function and its arguments.
      transposable: whether the user passed a transpose; if False, transposing the call raises.
    """
    run: Flat = call.apply
    back: Flat = call.transpose
    residuals, count = call.residuals, call.count
    if is_traced_ahead(state.trace):  # values that the functions close over become residuals
        first, captured = call.staged(call.apply, call.linear_avals)
        second, more = call.staged(call.transpose, call.out_avals) if transposable else (None, [])
        end = count + len(captured)
        residuals = [*residuals, *captured, *more]

        def run(rs: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
            return first(*rs[:count], *xs, *rs[count:end])

        if second is not None:

            def back(rs: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
                return second(*rs[:count], *cts, *rs[end:])

    rule = CoupledLinearMap(call, run, back, len(residuals))
    outs = explained(call.function, linear_call_p.bind, *residuals, *call.values, linear_map=rule)
    return unflatten_one(call.out_tree, outs)


class custom_transpose(FunctionWithRules):
    """A linear function with a custom transpose.

    Args:
      fun: ``fun(residual_args, linear_args) -> out``, linear in its second argument.

    It is called as ``f(out_types, residual_args, linear_args)``, where ``out_types`` is a tree like the result, of
    arrays or objects with ``shape`` and ``dtype``. The method ``def_transpose`` sets the rule.

    Raises:
      MissingCustomRuleError: from a call before the rule was set (an AttributeError).
      CustomRuleError: the rule returns another tree, shape or dtype than the linear arguments have (a TypeError).

    >>> from pullback import ShapeDtypeStruct, linear_transpose
    >>> from pullback.custom_derivatives import custom_transpose
    >>> @custom_transpose
    ... def divide(r, x):
    ...     return x / r
    >>> @divide.def_transpose
    ... def divide_transpose(r, ct):
    ...     return ct / r
    >>> scalar = ShapeDtypeStruct((), "float32")
    >>> print(linear_transpose(lambda x: divide(scalar, 3.0, x), 1.0)(18.0)[0])
    6.0
    """

    _transformation, _setter = "custom_transpose", "def_transpose"

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__(fun)
        self.transpose: Callable[..., Any] | None = None

    def def_transpose(self, transpose: Callable[..., Any]) -> Callable[..., Any]:
        """Set the transposition rule.

        Args:
          transpose: ``transpose(residual_args, ct) -> cts``, the cotangents of the linear arguments.

        Returns:
          The rule, for use as a decorator.
        """
        require_function(f"def_transpose of {self.described}", "transpose", transpose)
        self.transpose = transpose
        return transpose

    @api_boundary
    def __call__(self, out_types: Any, residual_args: Any, linear_args: Any) -> Any:
        if self.transpose is None:
            raise self._without_rule()
        call = LinearCall("custom_transpose", self.fun, self.transpose, residual_args, linear_args)
        call.result_like(out_types)
        outs = custom_transpose_p.bind(*call.residuals, *call.values, linear_map=call)
        return unflatten_one(call.out_tree, outs)


custom_transpose_p = linear_operation("custom_transpose_call")
tree.register_leaf_type(custom_transpose)
