"""Linear maps with their transposes, as operations: for backward rules, transposed loops and rematerialised calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.check_rules import checked_program
from pullback.core.errors import CustomRuleError, NotLinearError, PullbackError, UnexpectedTracerError
from pullback.core.linear import LinearVar
from pullback.core.linearity import linear_operands
from pullback.core.lists import scatter_where, select
from pullback.core.trace import Primitive, state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.user_types import MappingSpec
from pullback.core.zeros import densify, instantiate
from pullback.primitives.arrays.shapes import broadcast_in_dim, moveaxis
from pullback.primitives.elementwise import add_any, convert_element_type, mul
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.rules import as_inferred, sharding_rule
from pullback.transforms.custom.closed_over import run_rule
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.programs.lojax import lowered
from pullback.transforms.traces.affine import checked_trace, refused_if_affine
from pullback.transforms.traces.batch import BatchTrace
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.stage import StageTrace, stage_flat

Dims = Sequence[int | None]
JVPRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class HoldsFunction:
    """An object in a program that holds a user's function. It has the function's name.

    Attributes:
      function: the user's function.
      key: equal for objects that have the same effect in a program; None if objects are compared by identity.
    """

    function: Any

    @property
    def key(self) -> Any:
        return None

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __eq__(self, other: object) -> bool:
        """Whether types and keys are equal; objects whose key is None are equal only to themselves.

        Equal programs with equal objects can share derivatives and compiled code.
        """
        if self is other or type(self) is not type(other) or self.key is None:
            return self is other
        return hash(self) == hash(other) and bool(self.key == other.key)

    def __hash__(self) -> int:
        key = self.key
        try:
            return id(self) if key is None else hash(key)
        except TypeError:  # the key has an argument or a residual without a hash
            return id(self)


class LinearMap(HoldsFunction):
    """A linear map from tangents to tangents, with its transpose, from cotangents to cotangents.

    Both take residuals, the values that the map depends on. A user's backward rule is the transpose of a linear map.

    Attributes:
      count: the number of residuals.
      out_avals: the types of the results: the tangents of the inexact results of a function.
      is_high: whether the map consists of operations on values of users' types.
    """

    is_high = False

    count: int
    out_avals: Sequence[ShapedArray]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the operands, from the cotangents ``cts`` of the results; all may be ``ZERO``."""
        raise NotImplementedError

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Apply the map to ``tangents`` under the current trace, and return the tangents of the results.

        By default, record the method ``transpose`` as a linear program, and run the transpose of this program.
        """
        trace = checked_trace(self.function)
        try:
            _, program = refused_if_affine(trace, lambda *cts: self.transpose(residuals, cts), self.out_avals)
            outs = program.transpose(tangents, add_any)
        except PullbackError as error:
            if isinstance(error, NotLinearError) or error.trace is trace:
                raise self._not_linear(error) from None
            raise
        return densify(outs, self.out_avals)

    def jvp_by_residuals(self, p: Primitive, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Apply the map, and differentiate it with respect to its residuals.

        Args:
          p: the primitive that applies the map.
          primals: the residuals, followed by the operands.
          tangents: the tangent of each residual.

        Returns:
          The results, and their tangents for constant operands.
        """
        rest: list[Any] = [ZERO] * (len(primals) - self.count)
        return jvp_flat(self.function, partial(_apply, linear_map=self), primals, [*tangents, *rest])

    def batch(self, p: Primitive, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """Apply the map to a batch; return the results, and the position of the mapped axis in each.

        Args:
          p: the primitive that applies the map.
          trace: the trace of ``vmap``.
          args: the residuals and the operands.
          dims: the position of the mapped axis in each of ``args``, or None.
        """
        out_dims = [0] * len(self.out_avals)
        mapped = BatchedLinearMap(self, trace, dims[: self.count], dims[self.count :], out_dims)
        return p.bind(*args, linear_map=mapped), out_dims

    def _not_linear(self, error: PullbackError) -> NotLinearError:
        """Return the error for a backward rule that cannot be transposed, because of ``error``."""
        return NotLinearError(
            f"forward mode of {name_of(self.function)} transposes its backward rule, which must be linear in the "
            f"cotangent, but is not. Add a jvp rule with {self.__name__}.defjvp(rule): then each mode uses its own "
            f"rule.\nThe nonlinear operation: {error}"
        )


class WithJvpRule(LinearMap):
    """The derivative of a function that has both a backward rule and a jvp rule.

    The method ``transpose`` uses the backward rule, and ``apply`` the jvp rule. The residuals are those of the backward
    rule, followed by the primals, which the jvp rule takes.
    """

    def __init__(self, linear_map: LinearMap, jvp: JVPRule, perturbed: Sequence[bool]) -> None:
        self.linear_map = linear_map
        self.function, self.is_high = linear_map.function, linear_map.is_high
        self.out_avals = linear_map.out_avals
        self.count = linear_map.count + len(perturbed)
        self.jvp = jvp
        self.perturbed = perturbed

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        return self.linear_map.transpose(residuals[: self.linear_map.count], cts)

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        outs, ts = self.jvp(residuals[self.linear_map.count :], scatter_where(self.perturbed, tangents, ZERO))
        return densify(of_inexact(ts, outs), self.out_avals)


class BatchedLinearMap(LinearMap):
    """A linear map of a batch: another linear map, mapped over an axis by ``vmap``.

    Attributes:
      linear_map: the linear map of one example.
      trace: the trace of ``vmap``.
      residual_dims, in_dims, out_dims: the positions of the mapped axis in residuals, operands and results.
    """

    def __init__(
        self, linear_map: LinearMap, trace: BatchTrace, residual_dims: Dims, in_dims: Dims, out_dims: Dims
    ) -> None:
        self.linear_map = linear_map
        self.function, self.is_high = linear_map.function, linear_map.is_high
        self.count = linear_map.count
        self.trace = trace
        self.residual_dims = residual_dims
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.out_avals = [a.batched(trace.axis, d) for a, d in zip(linear_map.out_avals, out_dims, strict=True)]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        run = self.linear_map.transpose
        results = run_batched(self.trace, run, residuals, self.residual_dims, cts, self.out_dims)
        if all(d is None for d in self.out_dims):  # a single call for all examples, with the sum of their cotangents
            return with_batch_axes(self.trace, results, [None] * len(results))
        return [summed(self.trace, x, d) for x, d in zip(results, self.in_dims, strict=True)]

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        run = self.linear_map.apply
        results = run_batched(self.trace, run, residuals, self.residual_dims, tangents, self.in_dims)
        return with_batch_axes(self.trace, results, self.out_dims)


def run_batched(
    trace: BatchTrace, function: Any, primals: Sequence[Any], primal_dims: Dims, tangents: Sequence[Any], dims: Dims
) -> Any:
    """Run a function of primals and tangents under the trace ``trace`` of ``vmap``; return its result, with tracers.

    Args:
      trace: the trace.
      function: takes a list of primals (or residuals) and a list of tangents.
      primals: the primals.
      primal_dims: the mapped axis of each primal, or None.
      tangents: the tangents, which may be ``ZERO``.
      dims: the mapped axis of each tangent, or None; entries for ``ZERO`` are ignored.
    """
    nonzero = [t is not ZERO for t in tangents]
    count = len(primals)

    def flat(*values: Any) -> Any:
        return function(values[:count], scatter_where(nonzero, values[count:], ZERO))

    return trace.run(flat, [*primals, *select(tangents, nonzero)], [*primal_dims, *select(dims, nonzero)])


def of_inexact(values: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """Return the entries of ``values`` for those results ``outs`` that have an inexact dtype.

    ``values`` has an entry for each result.
    """
    return [t for t, x in zip(values, outs, strict=True) if dtypes.is_inexact(x.dtype)]


def with_batch_axis(trace: BatchTrace, x: Any, wanted: int | None) -> Any:
    """Return the batch of a result of a batched function, with the mapped axis at position ``wanted``.

    Args:
      trace: the trace of ``vmap``.
      x: the result. If it does not vary along the mapped axis, it is broadcast.
      wanted: the position; None to return ``x`` without the axis, and to raise if ``x`` varies along it.
    """
    value, dim = trace.value_of(x)
    if isinstance(wanted, MappingSpec) and dim == wanted:
        return value
    if wanted is None:
        if dim is not None:
            raise CustomRuleError(
                f"a rule of {name_of(trace.function)} returned a result that varies along the axis that vmap maps, "
                "but the function's own result does not: the rule closes over a mapped value. Pass it as an argument."
            )
        return value
    if dim is None:
        shape = (*value.shape[:wanted], trace.axis.size, *value.shape[wanted:])
        return broadcast_in_dim(value, shape, [i for i in range(len(shape)) if i != wanted])
    return moveaxis(value, dim, wanted)


def with_batch_axes(trace: BatchTrace, xs: Sequence[Any], wanted: Dims) -> list[Any]:
    """Return the batches of several results, with the mapped axes at the positions ``wanted``; see ``with_batch_axis``.

    ``ZERO`` among the results is returned unchanged.
    """
    return [x if x is ZERO else with_batch_axis(trace, x, d) for x, d in zip(xs, wanted, strict=True)]


def summed(trace: BatchTrace, x: Any, dim: int | None) -> Any:
    """Return the cotangent of an operand of a batched function, from the cotangents of all examples.

    Args:
      trace: the trace of ``vmap``.
      x: the cotangents of the examples: a tracer of ``trace``, or a single value if all are equal.
      dim: the mapped axis of the operand. If it is None, all examples share the operand, and cotangents are summed.
    """
    if x is ZERO:
        return ZERO
    if dim is not None:
        return with_batch_axis(trace, x, dim)
    value, where = trace.value_of(x)
    return repeated(value, trace.axis.size) if where is None else reduce_sum(value, (where,))


def repeated(value: Any, count: int) -> Any:
    """Return the sum of ``count`` cotangents that are all equal to ``value``; ``ZERO`` if ``count`` is 0."""
    if count == 0:
        return ZERO
    if value.dtype.itemsize >= 4:
        return mul(value, count)
    wide = mul(convert_element_type(value, np.dtype(np.float32)), count)  # a small dtype may not represent the number
    return convert_element_type(wide, value.dtype)


def pull_back(
    function: Any, run: Callable[..., list[Any]], primals: Sequence[Any], active: Sequence[bool], cts: Sequence[Any]
) -> list[Any]:
    """Return the cotangents of some arguments of a function, by linearising and transposing the function.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      primals: the point.
      active: for each argument whether to differentiate with respect to it.
      cts: the cotangents of the results of an inexact dtype.
    """
    outs, program = linearize_flat(function, run, primals, active)
    rest = iter(cts)
    seeds = [next(rest) if dtypes.is_inexact(x.dtype) else ZERO for x in outs]
    return densify(program.transpose(seeds, add_any, consume=True), [v.aval for v in program.inputs])


# As an operation ------------------------------------------------------------------------------------------------------


def linear_operation(name: str, linear_in: Any = None) -> Primitive:
    """Make a primitive that applies a linear map, its parameter ``linear_map``, to residuals and tangents.

    In jaxprs, a second primitive of the same name represents it. A map in a jaxpr must not close over values of active
    traces.

    Args:
      name: the name of both primitives.
      linear_in: the positions of the operands in which the primitive is linear; None if the user's map may be affine.
    """
    called, recorded = (Primitive(name, multiple_results=True, keeps_weak_type=False) for _ in range(2))
    for p in (called, recorded):
        p.impl(lambda args, params: _apply(*args, **params))
        p.abstract_eval(lambda *avals, linear_map: list(linear_map.out_avals))
        sharding_rule(p)(as_inferred)
        p.jvp(partial(_jvp, p))
        p.transpose(_transpose, linear_in)
        p.lowering(_lowering)
        linear_operands(p)(lambda moving, count, linear_map: range(linear_map.count, count))
        checked_program(p)(partial(_checked, p))

    @called.stage
    def stage(trace: StageTrace, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return trace.process(recorded, tuple(args), params)

    @called.batch
    def batch(trace: BatchTrace, args: Sequence[Any], dims: Dims, *, linear_map: LinearMap) -> Any:
        if any(d is not None for d in dims):
            return linear_map.batch(called, trace, args, dims)
        try:
            outs = called.bind(*args, linear_map=linear_map)
            return outs, [None] * len(outs)
        except UnexpectedTracerError as error:
            if not trace.is_same(error.trace):
                raise
        # The map closes over values of this trace.
        pairs = [trace.value_of(x) for x in trace.run(partial(_apply, linear_map=linear_map), args, dims)]
        return [x for x, _ in pairs], [d for _, d in pairs]

    @recorded.batch
    def batch_recorded(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, linear_map: LinearMap) -> Any:
        trace = BatchTrace(state.trace, axis, linear_map.function)
        trace.live = False
        return linear_map.batch(recorded, trace, args, dims)

    return called


def _apply(*args: Any, linear_map: LinearMap) -> list[Any]:
    """Apply a linear map to ``args``, its residuals followed by tangents; return the tangents of the results."""
    count = linear_map.count
    return run_rule(linear_map.function, linear_map.apply, args[:count], args[count:])  # type: ignore[no-any-return]


def _jvp(p: Primitive, primals: Sequence[Any], tangents: Sequence[Any], *, linear_map: LinearMap) -> Any:
    """Differentiate an application of ``linear_map`` by the primitive ``p``; return the results and their tangents.

    A tangent is the sum of two terms: the derivative of the map along the tangents of the residuals, and the map
    applied to the tangents of the operands.

    Args:
      p: the primitive.
      primals: the residuals of the map, followed by its operands.
      tangents: the tangents of ``primals``.
      linear_map: the map.
    """
    count = linear_map.count
    terms: list[list[Any]] = []
    if any(t is not ZERO for t in tangents[:count]):
        outs, ts = linear_map.jvp_by_residuals(p, primals, tangents[:count])
        terms.append(ts)
    else:
        outs = p.bind(*primals, linear_map=linear_map)
    if any(t is not ZERO for t in tangents[count:]):
        dense = map(instantiate, tangents[count:], primals[count:])
        terms.append(p.bind(*primals[:count], *dense, linear_map=linear_map))
    if len(terms) == 1:
        return outs, terms[0]
    return outs, [b if a is ZERO else add_any(a, b) for a, b in zip(*terms, strict=True)]


def _transpose(cts: Sequence[Any], *args: Any, linear_map: LinearMap) -> list[Any]:
    count = linear_map.count
    if LinearVar in map(type, args[:count]):
        raise NotLinearError(
            f"the derivative of {name_of(linear_map.function)} is not linear in its residuals, so it cannot be "
            "transposed with respect to them"
        )
    results = run_rule(linear_map.function, linear_map.transpose, args[:count], cts)
    return [None] * count + [ct if type(x) is LinearVar else None for x, ct in zip(args[count:], results, strict=True)]


def _checked(p: Primitive, trace: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Apply a linear map under ``checkify``; check its results for NaNs, and collect the failures of checks within it.

    Return the results. ``trace`` is the trace of ``checkify``, and ``p`` the primitive that applies the map.
    """
    return trace.linear(p, args, params["linear_map"], _apply)  # type: ignore[no-any-return]


def _lowering(hlo: Any, *operands: Any, linear_map: LinearMap) -> list[Any]:
    closed = stage_flat(linear_map.function, partial(_apply, linear_map=linear_map), hlo.avals(operands))
    return write_program(hlo, lowered(closed), operands)


linear_p = linear_operation("custom_vjp_linear", range(sys.maxsize))
