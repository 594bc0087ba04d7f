"""Linear maps given with their transposes: backward rules, transposed loops, and calls that are run again."""

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
from pullback.core.zeros import densify, instantiate
from pullback.primitives.arrays.shapes import broadcast_in_dim, moveaxis
from pullback.primitives.elementwise import add_any, convert_element_type, mul
from pullback.primitives.reductions import reduce_sum
from pullback.transforms.custom.closed_over import run_rule
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.traces.affine import checked_trace, refused_if_affine
from pullback.transforms.traces.batch import BatchTrace
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.inlining import write_program
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.stage import StageTrace, stage_flat

Dims = Sequence[int | None]
JVPRule = Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], list[Any]]]


class HoldsFunction:
    """What a program holds of a function of the user's: it has its name, and is equal to what does the same.

    Attributes:
      function: the user's function.
      key: compares equal for what does the same in a program; None if nothing is known of it.
    """

    function: Any

    @property
    def key(self) -> Any:
        return None

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __eq__(self, other: object) -> bool:
        """Equal parts of equal programs do the same, so that what was made of one program serves for the other."""
        if self is other or type(self) is not type(other) or self.key is None:
            return self is other
        return hash(self) == hash(other) and bool(self.key == other.key)

    def __hash__(self) -> int:
        key = self.key
        try:
            return id(self) if key is None else hash(key)
        except TypeError:  # an argument that is not differentiated, or a residual, without a hash
            return id(self)


class LinearMap(HoldsFunction):
    """A linear map and its transpose, both given: from tangents to tangents, and from cotangents to cotangents.

    What the map depends on are residuals, which both are called with. A backward rule is the transpose of one.

    Attributes:
      count: how many residuals there are.
      out_avals: the types of the results: of the tangents of the real and complex results of a function.
    """

    count: int
    out_avals: Sequence[ShapedArray]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """The cotangents of the operands, from those of the results; some may be ZERO."""
        raise NotImplementedError

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The results, under the current trace; by default ``transpose`` transposed."""
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
        """The results of the operation ``p`` that applies the map, and their tangents by those of the residuals."""
        rest: list[Any] = [ZERO] * (len(primals) - self.count)
        return jvp_flat(self.function, partial(_apply, linear_map=self), primals, [*tangents, *rest])

    def batch(self, p: Primitive, trace: BatchTrace, args: Sequence[Any], dims: Dims) -> tuple[list[Any], Dims]:
        """The results of the operation ``p`` for a batch, and where the mapped axis is in them."""
        out_dims = [0] * len(self.out_avals)
        mapped = BatchedLinearMap(self, trace, dims[: self.count], dims[self.count :], out_dims)
        return p.bind(*args, linear_map=mapped), out_dims

    def _not_linear(self, error: PullbackError) -> NotLinearError:
        return NotLinearError(
            f"forward mode differentiates {name_of(self.function)} by transposing its backward rule, which must be "
            "linear in the cotangent for that, and is not. Give the function a jvp rule as well, with "
            f"{self.__name__}.defjvp(rule): then each mode uses the rule that is for it.\nWhat is not linear: {error}"
        )


class WithJvpRule(LinearMap):
    """The backward rule of a function that has a jvp rule too, which takes the primals for more residuals."""

    def __init__(self, linear_map: LinearMap, jvp: JVPRule, perturbed: Sequence[bool]) -> None:
        self.linear_map = linear_map
        self.function = linear_map.function
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
    """A linear map mapped over an axis.

    Attributes:
      linear_map: that of one example.
      trace: which maps it.
      residual_dims, in_dims, out_dims: where the mapped axis is in the residuals, in the operands and in the
        results.
    """

    def __init__(
        self, linear_map: LinearMap, trace: BatchTrace, residual_dims: Dims, in_dims: Dims, out_dims: Dims
    ) -> None:
        self.linear_map = linear_map
        self.function = linear_map.function
        self.count = linear_map.count
        self.trace = trace
        self.residual_dims = residual_dims
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.out_avals = [a.batched(trace.axis, d) for a, d in zip(linear_map.out_avals, out_dims, strict=True)]

    def transpose(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        run = self.linear_map.transpose
        results = run_batched(self.trace, run, residuals, self.residual_dims, cts, self.out_dims)
        if all(d is None for d in self.out_dims):  # one call for all examples, with the sum of their cotangents
            return with_batch_axes(self.trace, results, [None] * len(results))
        return [summed(self.trace, x, d) for x, d in zip(results, self.in_dims, strict=True)]

    def apply(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        run = self.linear_map.apply
        results = run_batched(self.trace, run, residuals, self.residual_dims, tangents, self.in_dims)
        return with_batch_axes(self.trace, results, self.out_dims)


def run_batched(
    trace: BatchTrace, function: Any, primals: Sequence[Any], primal_dims: Dims, tangents: Sequence[Any], dims: Dims
) -> Any:
    """What a function of primals (or residuals) and tangents, some of which are ZERO, returns under a trace."""
    nonzero = [t is not ZERO for t in tangents]
    count = len(primals)

    def flat(*values: Any) -> Any:
        return function(values[:count], scatter_where(nonzero, values[count:], ZERO))

    return trace.run(flat, [*primals, *select(tangents, nonzero)], [*primal_dims, *select(dims, nonzero)])


def of_inexact(values: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """Of values that belong to results, their tangents for example, those of the real and complex results."""
    return [t for t, x in zip(values, outs, strict=True) if dtypes.is_inexact(x.dtype)]


def with_batch_axis(trace: BatchTrace, x: Any, wanted: int | None) -> Any:
    """The value of a result of a batched function, with the mapped axis where it is wanted."""
    value, dim = trace.value_of(x)
    if wanted is None:
        if dim is not None:
            raise CustomRuleError(
                f"a rule of {name_of(trace.function)} returned a result that varies along the axis that vmap maps, "
                "where the function's own does not: the rule closes over a mapped value. Pass it as an argument."
            )
        return value
    if dim is None:
        shape = (*value.shape[:wanted], trace.axis.size, *value.shape[wanted:])
        return broadcast_in_dim(value, shape, [i for i in range(len(shape)) if i != wanted])
    return moveaxis(value, dim, wanted)


def with_batch_axes(trace: BatchTrace, xs: Sequence[Any], wanted: Dims) -> list[Any]:
    """The values of some results, each with the mapped axis where it is wanted; ZERO stays as it is."""
    return [x if x is ZERO else with_batch_axis(trace, x, d) for x, d in zip(xs, wanted, strict=True)]


def summed(trace: BatchTrace, x: Any, dim: int | None) -> Any:
    """A cotangent of each example, for an operand whose mapped axis is at ``dim``, or for one that they share."""
    if x is ZERO:
        return ZERO
    if dim is not None:
        return with_batch_axis(trace, x, dim)
    value, where = trace.value_of(x)
    return repeated(value, trace.axis.size) if where is None else reduce_sum(value, (where,))


def repeated(value: Any, count: int) -> Any:
    """The sum of as many equal values."""
    if count == 0:
        return ZERO
    if value.dtype.itemsize >= 4:
        return mul(value, count)
    wide = mul(convert_element_type(value, np.dtype(np.float32)), count)  # a small type need not have the number
    return convert_element_type(wide, value.dtype)


def pull_back(
    function: Any, run: Callable[..., list[Any]], primals: Sequence[Any], active: Sequence[bool], cts: Sequence[Any]
) -> list[Any]:
    """The cotangents of the active primals, where ``run(*primals)`` has these for its real and complex results."""
    outs, program = linearize_flat(function, run, primals, active)
    given = iter(cts)
    seeds = [next(given) if dtypes.is_inexact(x.dtype) else ZERO for x in outs]
    return densify(program.transpose(seeds, add_any, consume=True), [v.aval for v in program.inputs])


# As an operation ------------------------------------------------------------------------------------------------------


def linear_operation(name: str, linear_in: Any = None) -> Primitive:
    """The primitive that applies linear maps: of residuals and tangents, with the map for a parameter.

    There are two primitives: the maps of one that is called may close over values of the traces that are at work,
    those of one that is recorded in a jaxpr may not.

    Args:
      name: that of both.
      linear_in: see ``Primitive.transpose``; None if it may turn out to be affine.
    """
    called, recorded = (Primitive(name, multiple_results=True, keeps_weak_type=False) for _ in range(2))
    for p in (called, recorded):
        p.impl(lambda args, params: _apply(*args, **params))
        p.abstract_eval(lambda *avals, linear_map: list(linear_map.out_avals))
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
        pairs = [trace.value_of(x) for x in trace.run(partial(_apply, linear_map=linear_map), args, dims)]
        return [x for x, _ in pairs], [d for _, d in pairs]

    @recorded.batch
    def batch_recorded(axis: MappedAxis, args: Sequence[Any], dims: Dims, *, linear_map: LinearMap) -> Any:
        trace = BatchTrace(state.trace, axis, linear_map.function)
        trace.live = False
        return linear_map.batch(recorded, trace, args, dims)

    return called


def _apply(*args: Any, linear_map: LinearMap) -> list[Any]:
    count = linear_map.count
    return run_rule(linear_map.function, linear_map.apply, args[:count], args[count:])  # type: ignore[no-any-return]


def _jvp(p: Primitive, primals: Sequence[Any], tangents: Sequence[Any], *, linear_map: LinearMap) -> Any:
    count = linear_map.count
    parts: list[list[Any]] = []
    if any(t is not ZERO for t in tangents[:count]):
        outs, ts = linear_map.jvp_by_residuals(p, primals, tangents[:count])
        parts.append(ts)
    else:
        outs = p.bind(*primals, linear_map=linear_map)
    if any(t is not ZERO for t in tangents[count:]):
        given = map(instantiate, tangents[count:], primals[count:])
        parts.append(p.bind(*primals[:count], *given, linear_map=linear_map))
    if len(parts) == 1:
        return outs, parts[0]
    return outs, [b if a is ZERO else add_any(a, b) for a, b in zip(*parts, strict=True)]


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
    """``checkify`` looks at the results, and into the map for checks of the user's."""
    return trace.linear(p, args, params["linear_map"], _apply)  # type: ignore[no-any-return]


def _lowering(hlo: Any, *operands: Any, linear_map: LinearMap) -> list[Any]:
    closed = stage_flat(linear_map.function, partial(_apply, linear_map=linear_map), hlo.avals(operands))
    return write_program(hlo, closed, operands)


linear_p = linear_operation("custom_vjp_linear", range(sys.maxsize))
