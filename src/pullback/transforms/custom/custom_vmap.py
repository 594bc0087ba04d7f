"""``custom_vmap``: functions whose batching is given by a rule of the user's."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pullback.core import tree
from pullback.core.annotations import PyTree
from pullback.core.array import as_array, typeof
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
from pullback.transforms.functions.arguments import check_callable, name_of, structure_of, to_arrays
from pullback.transforms.functions.flat_function import FlatFunction, flat_result
from pullback.transforms.traces.batch import BatchTrace, batch_flat
from pullback.transforms.traces.forward import jvp_flat

F = TypeVar("F", bound=Callable[..., Any])

custom_vmap_call_p = equation("custom_vmap_call")
custom_vmap_linear_p = linear_operation("custom_vmap_linear")

Run = Callable[..., list[Any]]
Rule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]
"""From the size of the mapped axis, which operands have it in front, and these, to the results and which have it."""


class VmapCall(CustomCall):
    """A call with a batching rule.

    Differentiation makes of it calls of the same kind: of its derivative, and of the transpose of that, whose batching
    rules are the derivative of the user's rule and its transpose. So the rule is kept in both modes and to any order.
    What is kept for the backward pass are the operands, from which the function's values are computed once more.

    In forward mode an operand is mapped for the user's rule if its value and its tangent are, as in JAX. Where that is
    so for none, the rule is told that nothing is mapped, and what it does is mapped as anything else.

    Attributes:
      rule: the user's, flat.
      order: how many times it is a derivative in forward mode.
      linear: how many operands at the end are cotangents, or tangents of these and of the others, of which the user's
        rule knows nothing. Where these alone are mapped, as ``jacrev`` and ``hessian`` do, the function is not, and its
        derivative is mapped without the rule. None are counted in forward mode alone.
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
        if all(d is None for d in own_dims[: len(own_dims) - self.linear]):
            return self._batch_without_rule(trace, args, dims)
        values = [x if d is None else moveaxis(x, d, 0) for x, d in zip(self.own(args), own_dims, strict=True)]
        outs, mapped = self.rule(trace.axis.size, [d is not None for d in own_dims], values)
        return outs, [0 if m else None for m in mapped]

    def _batch_without_rule(self, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """The results where no argument of the user's function is mapped; the rule is there for other axes."""
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
        if not is_traced_ahead(state.trace):  # nothing is mapped, so that no rule is needed
            return jvp_flat(self.function, self.run, primals, tangents)
        primals, tangents = self.own_pairs(primals, tangents)
        active = [t is not ZERO for t in tangents]
        given = [t for t in tangents if t is not ZERO]
        if any(type(t) is LinearTracer for t in given) or not state.trace.eager:  # a part of its own for the tangents
            outs = call_p.bind(*primals, call=self)
            found = custom_vmap_linear_p.bind(*primals, *given, linear_map=VmapLinearMap(self, active, outs))
        else:
            derivative, count = _derivative(self, active)
            results = call_p.bind(*primals, *given, call=derivative)
            outs, found = results[: count[0]], results[count[0] :]
        return outs, scatter_where([is_inexact(x.dtype) for x in outs], found, ZERO)


def _behind(dims: Dims, mapped: Sequence[bool]) -> Dims:
    """The positions of an axis where another one comes first in some values."""
    return [d if d is None else d + m for d, m in zip(dims, mapped, strict=True)]


def _derivative(call: VmapCall, active: Sequence[bool]) -> tuple[VmapCall, list[int]]:
    """The derivative of a call, and how many results the call has, which is known once one of its functions ran.

    It goes from operands, and the tangents of the active ones, to results, and the tangents of the inexact ones.
    """
    count = [0]

    def both(run: Run, operands: Sequence[Any]) -> list[Any]:
        primals, given = split_list(operands, len(active))
        outs, ts = jvp_flat(call.function, run, primals, scatter_where(active, given, ZERO))
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
_told = threading.local()
"""The functions whose rules are being told, in this thread, that nothing is mapped."""


def _by_example(
    call: VmapCall, size: int, mapped: Sequence[bool], operands: Sequence[Any], both: _Both
) -> tuple[list[Any], list[bool]]:
    """Results and tangents where no operand is mapped for the rule: it is told so, for one example after the other.

    Args:
      call: the call.
      size: the size of the axis.
      mapped: which operands have it in front.
      operands: the operands of the call, and the tangents of some.
      both: from the function of one example and its operands to the results and their tangents.
    """
    within: list[Any] = _told.__dict__.setdefault("functions", [])
    own = call.function, call.order
    if own in within:  # the rule calls the function itself
        run = call.run
    else:

        def run(*primals: Any) -> list[Any]:
            within.append(own)
            try:
                outs, which = call.rule(size, [False] * len(primals), primals)
            finally:
                within.remove(own)
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
    """An element along the first axis."""
    zero = np.int32(0)
    starts = [index, *[zero] * (len(x.shape) - 1)]
    return squeeze(dynamic_slice(x, list(map(as_array, starts)), (1, *x.shape[1:])), (0,))


def _transpose(call: VmapCall, active: Sequence[bool], inexact: int) -> VmapCall:
    """The transpose of the derivative of a call: from the operands, and the cotangents of so many inexact results, to
    those of the active operands."""

    def back(run: Run, operands: Sequence[Any]) -> list[Any]:
        primals, cts = split_list(operands, len(active))
        return pull_back(call.function, run, primals, active, cts)

    def rule(size: int, mapped: Sequence[bool], operands: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        # Each example has a cotangent of its own for each active operand and result, so that all of these are mapped.
        wanted = [m or a for m, a in zip(mapped, active, strict=False)]
        every = [*wanted, *[True] * (len(mapped) - len(active))]

        def run(*primals: Any) -> list[Any]:
            outs, which = call.rule(size, wanted, primals)
            return _mapped(size, outs, which, [True] * len(outs))

        results = back(run, _mapped(size, operands, mapped, every))
        return results, [True] * len(results)

    return VmapCall(call.function, lambda *operands: back(call.run, operands), rule, call.order, call.linear + inexact)


def _mapped(size: int, values: Sequence[Any], mapped: Sequence[bool], wanted: Sequence[bool]) -> list[Any]:
    """Some values, with a mapped axis in front where it is wanted."""
    axis = MappedAxis(None, size)
    return [front(x, None, axis) if w and not m else x for x, m, w in zip(values, mapped, wanted, strict=True)]


class VmapLinearMap(LinearMap):
    """The derivative of a call with a batching rule, and its transpose; the residuals are the operands."""

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
    """A function with a batching rule of its own.

    Args:
      fun: takes and returns trees of arrays.

    The rule is given by the method ``def_vmap``. It is kept by differentiation, in both modes and to any order: the
    derivative of a mapped call is that of the rule. In reverse mode the function's values are computed a second time.
    In forward mode the rule is told that an operand is mapped if its value and its tangent are, as in JAX; so where
    only values or only tangents are mapped, as by ``jacfwd``, it is told that nothing is, and must serve for that.

    Raises:
      MissingCustomRuleError: from a call before there is a rule (an AttributeError).
      CustomRuleError: the rule returns something else than it must (a TypeError).

    >>> import pullback.numpy as pnp
    >>> from pullback import grad, vmap
    >>> @custom_vmap
    ... def f(x, y):
    ...     return x * y
    >>> @f.def_vmap
    ... def f_vmap(axis_size, in_batched, x, y):
    ...     return 10.0 * x * y, True
    >>> print(f(2.0, 3.0), vmap(f)(pnp.ones(2), pnp.ones(2)), vmap(grad(f))(pnp.ones(2), pnp.ones(2)))
    6.0 [10. 10.] [10. 10.]
    """

    _transformation, _giver = "custom_vmap", "def_vmap"

    def __init__(self, fun: Callable[..., Any]) -> None:
        super().__init__(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: F) -> F:
        """Give the rule.

        Args:
          vmap_rule: ``rule(axis_size, in_batched, *args) -> (out, out_batched)``. ``in_batched`` is a list of trees of
            booleans like the arguments, which tell where there is a mapped axis; it is in front. ``out_batched`` is
            such a tree like ``out``.

        Returns:
          The rule, so that this can be used as a decorator.
        """
        check_callable(vmap_rule, f"def_vmap of {self.described}")
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
            flat.count = len(outs)
            return outs, flags

        if state.trace.is_bottom:
            return flat.result(flat(*arrays))
        return flat.result(explained(self.fun, call_p.bind, *arrays, call=VmapCall(self.fun, flat, rule)))

    def _batched(
        self, size: int, in_tree: Any, mapped: Sequence[bool], values: Sequence[Any]
    ) -> tuple[list[Any], Any, list[bool]]:
        """The results of the rule, flat, their tree, and which of them are mapped."""
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
