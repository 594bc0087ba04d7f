"""``custom_vmap``: functions with custom batching rules."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import as_array, typeof
from pullback.core.config import config
from pullback.core.dtypes import is_inexact
from pullback.core.errors import CustomRuleError
from pullback.core.linear import LinearTracer
from pullback.core.lists import scatter_where, select, split_list
from pullback.core.trace import state
from pullback.core.types import ZERO, MappedAxis
from pullback.core.zeros import densify, instantiate
from pullback.primitives.arrays import slicing
from pullback.primitives.arrays.indexing import dynamic_slice
from pullback.primitives.arrays.shapes import moveaxis, squeeze
from pullback.primitives.axis_maps import front
from pullback.transforms.custom.closed_over import explained
from pullback.transforms.custom.custom_calls import CustomCall, OutDims, call_p, equation
from pullback.transforms.custom.custom_linear import is_traced_ahead
from pullback.transforms.custom.custom_rules import FunctionWithRules, by_position
from pullback.transforms.custom.linear_map import (
    Dims,
    LinearMap,
    linear_operation,
    of_inexact,
    pull_back,
    with_batch_axes,
)
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, structure_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction, flat_result
from pullback.transforms.traces.batch import BatchTrace, batch_flat
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.stage import stage_flat

F = TypeVar("F", bound=Callable[..., Any])

custom_vmap_call_p = equation("custom_vmap_call")
custom_vmap_linear_p = linear_operation("custom_vmap_linear")

Run = Callable[..., list[Any]]
Rule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]
"""``rule(size, mapped, operands) -> (results, mapped)``: ``mapped`` flags the values with the mapped axis, first."""


class VmapCall(CustomCall):
    """A call of a function with a batching rule.

    The derivative of a call is another ``VmapCall``, whose batching rule is the derivative of the user's rule; so is
    the transpose of the derivative. Thus differentiation keeps the rule, in both modes and to any order. The residuals
    are the operands, from which the backward pass computes the function's values again.

    In forward mode, the user's rule receives mapped operands only if some operand has both a mapped value and a mapped
    tangent. Otherwise the rule is traced without mapped operands, and its operations are then batched.

    Attributes:
      function: the user's function.
      run: the user's function, from flat operands to a list of results.
      rule: the user's rule, for flat operands.
      order: how many times the call was differentiated in forward mode.
      linear: how many of the last operands are linear inputs: cotangents, or tangents after a second transposition; 0
        in pure forward mode. If only linear inputs are mapped, as by ``jacrev``, the user's rule is not called, and the
        operations of the derivative are batched.
    """

    equation = custom_vmap_call_p

    def __init__(self, function: Any, run: Run, rule: Rule, order: int = 0, linear: int = 0) -> None:
        self.function = function
        self.run = run
        self.rule = rule
        self.order = order
        self.linear = linear

    def batch(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        own_dims = self.own(dims)
        if all(d is None for d in own_dims[: len(own_dims) - self.linear]):  # only tangents or cotangents are mapped
            return self._batch_without_rule(trace, args, dims)
        values = [x if d is None else moveaxis(x, d, 0) for x, d in zip(self.own(args), own_dims, strict=True)]
        outs, mapped = self.rule(trace.axis.size, [d is not None for d in own_dims], values)
        return outs, [0 if m else None for m in mapped]

    def _batch_without_rule(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """Batch a call without the user's rule: batch the operations of the function instead.

        This is for a call in which only tangents or cotangents are mapped. A further ``vmap`` of the batched call uses
        the rule again. Return the results, and the position of the mapped axis in each.
        """
        out_dims = OutDims(trace, dims)
        own_dims = self.own(dims)

        def run(*operands: Any) -> list[Any]:
            return out_dims.at_mapped_axis(trace.run(self.run, operands, dims))[0]

        def rule(size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            flags: list[bool] = []

            def inner(*operands: Any) -> list[Any]:
                outs, flags[:] = self.rule(size, mapped, operands)
                return outs

            outs = trace.run(inner, operands, _behind(own_dims, mapped))
            out_dims.fix(outs)
            return with_batch_axes(trace, outs, _behind(out_dims.dims, flags)), flags

        return call_p.bind(*args, call=self.like(run=run, rule=rule)), out_dims.dims

    def differentiate(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        if not is_traced_ahead(state.trace):  # no axis is mapped, so that no rule is needed
            return jvp_flat(self.function, self.run, primals, tangents)
        primals, tangents = self.own_pairs(primals, tangents)
        active = [t is not ZERO for t in tangents]
        nonzero = [t for t in tangents if t is not ZERO]
        if any(type(t) is LinearTracer for t in nonzero) or not state.trace.eager:  # separate the linear operation
            outs = call_p.bind(*primals, call=self)
            found = custom_vmap_linear_p.bind(*primals, *nonzero, linear_map=VmapLinearMap(self, active, outs))
        else:
            derivative, count = _derivative(self, active)
            results = call_p.bind(*primals, *nonzero, call=derivative)
            outs, found = results[: count[0]], results[count[0] :]
        return outs, scatter_where([is_inexact(x.dtype) for x in outs], found, ZERO)


def _behind(dims: Dims, mapped: Sequence[bool]) -> Dims:
    """Add 1 to the position of an axis in each value that has a new first axis: [0, None, 2] -> [1, None, 2].

    Args:
      dims: the position of the axis in each value, or None.
      mapped: for each value whether it has the new axis; in the example, [True, True, False].
    """
    return [d if d is None else d + m for d, m in zip(dims, mapped, strict=True)]


def _derivative(call: VmapCall, active: Sequence[bool]) -> tuple[VmapCall, list[int]]:
    """Return the derivative of a call, itself a call with a batching rule.

    The derivative takes the operands, and the tangents of the operands that ``active`` flags. It returns the results,
    and the tangents of the inexact results.

    Returns:
      The derivative; and a list of one number, which a run of the derivative sets to the number of results.
    """
    count = [0]

    def both(run: Run, operands: Sequence[Any]) -> list[Any]:
        primals, tangents = split_list(operands, len(active))
        outs, ts = jvp_flat(call.function, run, primals, scatter_where(active, tangents, ZERO))
        count[0] = len(outs)
        return [*outs, *of_inexact(list(map(instantiate, ts, outs)), outs)]

    def rule(size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        of_primals, of_tangents = split_list(mapped, len(active))
        if not call.linear and True not in map(operator.and_, of_primals, scatter_where(active, of_tangents, False)):
            return _by_example(call, size, mapped, operands, both)
        together = list(map(operator.or_, of_primals, scatter_where(active, of_tangents, False)))
        wanted = [*together, *select(together, active)]
        which: list[bool] = []

        def run(*primals: Any) -> list[Any]:
            outs, which[:] = call.rule(size, together, primals)
            return outs

        results = both(run, _mapped(size, operands, mapped, wanted))
        return results, [*which, *of_inexact(which, results[: len(which)])]

    linear = call.linear + sum(active) if call.linear else 0
    return VmapCall(call.function, lambda *operands: both(call.run, operands), rule, call.order + 1, linear), count


_Both = Callable[[Run, Sequence[Any]], list[Any]]
_MOST_TREES = 256
"""How many trees of results a function remembers."""
_unmapped = threading.local()
"""The functions, in this thread, whose rules are running with no operand mapped."""


def _by_example(
    call: VmapCall, size: int, mapped: Sequence[bool], operands: Sequence[Any], both: _Both
) -> tuple[list[Any], list[bool]]:
    """Compute a batch of results and tangents by the user's rule, without telling the rule that operands are mapped.

    The rule is traced for one example, and its operations are batched. This is for a batch in which no operand has both
    a mapped value and a mapped tangent.

    Args:
      call: the call.
      size: the size of the mapped axis.
      mapped: for each of ``operands`` whether it has the mapped axis, as its first axis.
      operands: the operands of the call, followed by the tangents of some operands.
      both: ``both(run, operands)`` returns the results and tangents of the function ``run`` for one example.

    Returns:
      The results and tangents; and for each whether it has the mapped axis, as its first axis.
    """
    active: list[Any] = _unmapped.__dict__.setdefault("functions", [])
    own = call.function, call.order
    if own in active:  # the rule calls the function itself: do not recurse
        run = call.run
    else:

        def run(*primals: Any) -> list[Any]:
            active.append(own)
            try:
                outs, which = call.rule(size, [False] * len(primals), primals)
            finally:
                active.remove(own)
            return [_element(x, position) if m else x for x, m in zip(outs, which, strict=True)]

    position: Any = None

    def example(index: Any, *values: Any) -> list[Any]:
        nonlocal position
        position = index
        return both(run, values)

    dims = [0, *[0 if m else None for m in mapped]]
    indices = slicing.iota(np.dtype(np.int32), (size,), 0)
    outs, out_dims = batch_flat(call.function, example, MappedAxis(None, size), [indices, *operands], dims)
    moved = [x if d is None else moveaxis(x, d, 0) for x, d in zip(outs, out_dims, strict=True)]
    return moved, [d is not None for d in out_dims]


def _element(x: Any, index: Any) -> Any:
    """Return ``x[index]``, for an index that may be traced."""
    zero = np.int32(0)
    starts = [index, *[zero] * (len(x.shape) - 1)]
    return squeeze(dynamic_slice(x, list(map(as_array, starts)), (1, *x.shape[1:])), (0,))


def _transpose(call: VmapCall, active: Sequence[bool], inexact: int) -> VmapCall:
    """Return the transpose of the derivative of a call, itself a call with a batching rule.

    The transpose takes the operands, and the cotangents of the inexact results. It returns the cotangents of the
    operands that ``active`` flags. ``inexact`` is the number of inexact results.
    """

    def back(run: Run, operands: Sequence[Any]) -> list[Any]:
        primals, cts = split_list(operands, len(active))
        return pull_back(call.function, run, primals, active, cts)

    def rule(size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        # Cotangents of active operands and of results differ between examples, so that all of these are mapped.
        wanted = [m or a for m, a in zip(mapped, active, strict=False)]
        every = [*wanted, *[True] * (len(mapped) - len(active))]

        def run(*primals: Any) -> list[Any]:
            outs, which = call.rule(size, wanted, primals)
            return _mapped(size, outs, which, [True] * len(outs))

        results = back(run, _mapped(size, operands, mapped, every))
        return results, [True] * len(results)

    return VmapCall(call.function, lambda *operands: back(call.run, operands), rule, call.order, call.linear + inexact)


def _mapped(size: int, values: Sequence[Any], mapped: Sequence[bool], wanted: Sequence[bool]) -> list[Any]:
    """Return ``values``, with some of them broadcast along a new first axis, the mapped axis.

    Args:
      size: the size of the axis.
      values: the values.
      mapped: for each value whether it has the axis already.
      wanted: for each value whether it must have the axis.
    """
    axis = MappedAxis(None, size)
    return [front(x, None, axis) if w and not m else x for x, m, w in zip(values, mapped, wanted, strict=True)]


class VmapLinearMap(LinearMap):
    """The derivative of a call with a batching rule, as a linear map. Its residuals are the operands of the call."""

    def __init__(self, call: VmapCall, active: Sequence[bool], outs: Sequence[Any]) -> None:
        self.call = call
        self.function = call.function
        self.active = active
        self.count = len(active)
        self.out_avals = [typeof(x) for x in outs if is_inexact(x.dtype)]

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        derivative, count = _derivative(self.call, self.active)
        return call_p.bind(*residuals, *tangents, call=derivative)[count[0] :]  # type: ignore[no-any-return]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        dense = densify(cts, self.out_avals)
        return call_p.bind(*residuals, *dense, call=_transpose(self.call, self.active, len(dense)))  # type: ignore[no-any-return]


class custom_vmap(FunctionWithRules):
    """A function with a custom batching rule.

    Args:
      fun: takes and returns trees of arrays.

    The method ``def_vmap`` sets the rule. Differentiation keeps the rule, in both modes and to any order: the
    derivative of a mapped call is the derivative of the rule. In reverse mode the function's values are computed a
    second time. In forward mode the rule is called with mapped operands only if both the value and the tangent of some
    operand are mapped. So if only values or only tangents are mapped, as by ``jacfwd``, it is called with no operand
    mapped.

    Raises:
      MissingCustomRuleError: from a call before the rule was set (an AttributeError).
      CustomRuleError: the result of the rule has another form than required (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, vmap
    >>> from pullback.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def f(x, y):
    ...     return x * y
    >>> @f.def_vmap
    ... def f_vmap(axis_size, in_batched, x, y):
    ...     return 10.0 * x * y, True
    >>> print(f(2.0, 3.0), vmap(f)(jnp.ones(2), jnp.ones(2)), vmap(grad(f))(jnp.ones(2), jnp.ones(2)))
    6.0 [10. 10.] [10. 10.]
    """

    _transformation, _setter = "custom_vmap", "def_vmap"

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__(fun)
        self.vmap_rule: Callable[..., Any] | None = None
        self._out_trees: dict[Any, Any] = {}

    def def_vmap(self, vmap_rule: F) -> F:
        """Set the batching rule.

        Args:
          vmap_rule: ``rule(axis_size, in_batched, *args) -> (out, out_batched)``. ``in_batched`` is a list of trees of
            booleans like the arguments: whether each array has the mapped axis, as its first axis. ``out_batched`` is a
            tree of booleans like ``out``.

        Returns:
          The rule, for use as a decorator.
        """
        require_function(f"def_vmap of {self.described}", "vmap_rule", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        if self.vmap_rule is None:
            raise self._without_rule()
        args = by_position(self.fun, "custom_vmap", args, kwargs)
        leaves, in_tree = tree.flatten(args)
        arrays = to_arrays(leaves, "custom_vmap", self.fun, args)
        flat = FlatFunction(self.fun, in_tree)

        def rule(size: int, mapped: Sequence[bool], values: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            outs, flat.out_tree, flags = self._batched(size, in_tree, mapped, values)
            self._check_tree(in_tree, mapped, values, flat.out_tree)
            flat.count = len(outs)
            return outs, flags

        if state.trace.is_bottom:
            return flat.result(flat(*arrays))
        return flat.result(explained(self.fun, call_p.bind, *arrays, call=VmapCall(self.fun, flat, rule)))

    def _check_tree(self, in_tree: Any, mapped: Sequence[bool], values: Sequence[Any], out_tree: Any) -> None:
        """Raise unless the rule has returned a result of the tree ``out_tree`` that the function returns.

        The function is traced once for arguments of a tree and types. What cannot be traced is not checked.

        Args:
          in_tree: the tree of the arguments.
          mapped: for each leaf of the arguments whether it has the mapped axis, as its first axis.
          values: the leaves.
          out_tree: the tree of the result, or None for a single array.
        """
        avals = [a.update(shape=a.shape[1:]) if m else a for a, m in zip(map(typeof, values), mapped, strict=True)]
        key = (in_tree, tuple(avals), config.trace_context, tuple(state.axes.items()))
        if key not in self._out_trees:
            flat = FlatFunction(self.fun, in_tree)
            if len(self._out_trees) >= _MOST_TREES:
                self._out_trees.clear()
            try:
                stage_flat(self.fun, flat, avals, "custom_vmap")
                self._out_trees[key] = flat.out_tree
            except Exception:  # it needs values, for instance, or the axis that the rule handles
                self._out_trees[key] = out_tree
        expected = self._out_trees[key]
        if expected != out_tree:
            shown = ["one array" if x is None else str(x) for x in (expected, out_tree)]
            raise CustomRuleError(
                f"the batching rule {name_of(self.vmap_rule)} of {name_of(self.fun)} must return a result of the same "
                f"tree as the function, {shown[0]}, but returned {shown[1]}"
            )

    def _batched(
        self, size: int, in_tree: Any, mapped: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], Any, list[bool]]:
        """Apply the user's rule; raise if its result has a wrong form.

        Args:
          size: the size of the mapped axis.
          in_tree: the tree of the arguments.
          mapped: for each leaf of the arguments whether it has the mapped axis.
          values: the leaves.

        Returns:
          The leaves of the result; the tree of the result, or None for a single array; and for each leaf of the result
          whether it has the mapped axis.
        """
        rule = self.vmap_rule
        assert rule is not None
        pair = rule(size, list(tree.unflatten(in_tree, mapped)), *tree.unflatten(in_tree, values))
        who = f"the batching rule {name_of(rule)} of {name_of(self.fun)}"
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise CustomRuleError(f"{who} must return a pair (out, out_batched), but it returned {pair!r}")
        outs, out_tree = flat_result(pair[0], rule)
        flags, flags_tree = tree.flatten(pair[1])
        if flags_tree != structure_of(out_tree) or any(type(f) is not bool for f in flags):
            raise CustomRuleError(
                f"{who} must return out_batched as a tree of booleans like out, which is "
                f"{'one array' if out_tree is None else out_tree}, but it returned {pair[1]!r}"
            )
        for i, (x, flag) in enumerate(zip(outs, flags, strict=True)):
            if flag and (not x.shape or x.shape[0] != size):
                raise CustomRuleError(
                    f"{who} says that result {i} is mapped, so its first axis must have size {size}, but it is "
                    f"{typeof(x)}"
                )
        return outs, out_tree, flags


tree.register_leaf_type(custom_vmap)
