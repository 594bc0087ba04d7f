"""Vectorisation: the interpreter of ``vmap``, which runs a function of one example on a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import source
from pullback.core.array import typeof
from pullback.core.errors import ShardingTypeError
from pullback.core.jaxpr import free_axes
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, Trace, Tracer, check_result, missing_rule, state
from pullback.core.types import MappedAxis, ShapedArray
from pullback.transforms.traces.examples import Examples


class UnmappedResult(int):
    """The position of a mapped axis along which a value is constant, although the cotangents of the value may vary.

    Calls with custom rules return such positions; so does an operation if all its mapped operands have such positions.
    """

    __slots__ = ()


class BatchTracer(Tracer):
    """A batch of values, with the shape of one example.

    Attributes:
      value: the whole batch.
      dim: the position of the mapped axis in ``value``.
    """

    __slots__ = ("dim", "value")

    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, value: Any, dim: int, made_at: source.Location | None) -> None:
        self._trace = trace
        self.value = value
        self.dim = dim
        self.made_at = made_at

    batch_dim = property(lambda self: self.dim, doc="JAX's name of ``dim``.")

    @property
    def aval(self) -> ShapedArray:
        aval = typeof(self.value)
        axis = self._trace.axis
        if type(aval) is not ShapedArray:
            return aval.dec_rank(axis.size, self.dim)  # type: ignore[no-any-return]
        varying = aval.varying if axis.name is None else aval.varying | {axis.key}
        if aval.explicit is not None:
            return aval.without_axis(self.dim).update(varying=varying)
        return ShapedArray(self.shape, aval.dtype, aval.weak_type, varying)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis of an example."""
        shape = self.value.shape
        return shape[: self.dim] + shape[self.dim + 1 :]  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.value.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype is weak, and gives way to the dtypes of other operands."""
        return self.value.weak_type  # type: ignore[no-any-return]

    def differentiated(self) -> Tracer | None:
        return self.value.differentiated() if isinstance(self.value, Tracer) else None

    def shown(self) -> Any:
        value = self.value.shown() if isinstance(self.value, Tracer) else self.value
        return None if value is None else Examples(value, self._trace.axis.size, self.dim)


class BatchTag:
    """The identity of one use of ``vmap``, shared by its traces: each call of :meth:`BatchTrace.run` makes a new trace.

    Attributes:
      has_uniform: whether there is a value that is constant along its mapped axis (:class:`UnmappedResult`).
    """

    has_uniform = False


class BatchTrace(Trace):
    """The trace of ``vmap``: applies batching rules to values and the positions of their mapped axes.

    Attributes:
      axis: the name and size of the mapped axis.
      tag: the identity of this use of ``vmap``; traces with the same tag accept the tracers of each other.
    """

    __slots__ = ("axis", "tag")
    transformation = "vmap"

    def __init__(self, parent: Trace, axis: MappedAxis, function: Any, tag: BatchTag | None = None) -> None:
        super().__init__(parent, function)
        self.axis = axis
        self.tag = BatchTag() if tag is None else tag

    def is_same(self, other: object) -> bool:
        return isinstance(other, BatchTrace) and other.tag is self.tag

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        dims: list[int | None] = []
        constant = True
        tag = self.tag
        for x in args:
            if type(x) is BatchTracer and (x._trace is self or x._trace.tag is tag):
                constant = False
                values.append(x.value)
                dims.append(x.dim)
            else:
                values.append(x)
                dims.append(None)
        # The rule runs even without mapped operands if the operation calls a Python function, which may close over
        # tracers of this trace, or if it is a collective over the mapped axis.
        closure = primitive.stage_rule is not None
        if constant and not closure and (self.axis.name is None or self.axis.name not in free_axes(primitive, params)):
            return self.parent.process(primitive, args, params)
        rule = primitive.batch_rule
        if rule is None:
            raise missing_rule(primitive, "batch", "vmap")
        uniform = False
        if tag.has_uniform and not closure:
            uniform = all(d is None or type(d) is UnmappedResult for d in dims)
            dims = [d if d is None else int(d) for d in dims]
        previous, axes, name = state.trace, state.axes, self.axis.name
        state.trace = self.parent
        if name is not None and axes.get(name) is not self.axis:  # an inner axis has the same name
            state.axes = {**axes, name: self.axis}
        try:
            out, dim = rule(self if closure else self.axis, values, dims, **params)
        except ShardingTypeError:
            out, dim = runtime.explicit_batch(primitive, rule, self.axis, values, dims, params)
        finally:
            state.trace, state.axes = previous, axes
        made_at = source.here() if previous is self else None
        if uniform:
            same = [d if d is None else UnmappedResult(d) for d in (dim if primitive.multiple_results else (dim,))]
            dim = same if primitive.multiple_results else same[0]
        if primitive.multiple_results:
            return [o if d is None else BatchTracer(self, o, d, made_at) for o, d in zip(out, dim, strict=True)]
        return out if dim is None else BatchTracer(self, out, dim, made_at)

    def run(self, function: Callable[..., Any], args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        """Run a function under this transformation, on top of the current trace, and return its result.

        A function may also run after the transformation has ended. For example, the derivative rule of a call closes
        over tracers of this transformation, and runs when another trace calls the rule. Each run has a new
        trace, so that several threads may run functions of one cached program.

        Args:
          function: takes tracers.
          args: the values of the tracers.
          dims: the position of the mapped axis in each value, not negative, or None.
        """
        return BatchTrace(state.trace, self.axis, self.function, self.tag).run_once(function, args, dims)

    def run_once(self, function: Callable[..., Any], args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        """Run a function with this trace current, on top of its parent; end the trace, and return the results."""
        axes = state.axes
        if self.axis.name is not None:
            state.axes = {**axes, self.axis.name: self.axis}
        state.trace = self
        try:
            return function(
                *[x if d is None else BatchTracer(self, x, d, None) for x, d in zip(args, dims, strict=True)]
            )
        finally:
            state.trace, state.axes = self.parent, axes
            self.live = False

    def value_of(self, x: Any) -> tuple[Any, int | None]:
        """Split a result of a function that ran under this trace into its value and the position of its mapped axis."""
        if type(x) is BatchTracer and x._trace.tag is self.tag:
            return x.value, x.dim
        check_result(x)
        return x, None


def batch_flat(
    function: Any,
    run: Callable[..., Sequence[Any]],
    axis: MappedAxis,
    args: Sequence[Any],
    dims: Sequence[int | None],
) -> tuple[list[Any], list[int | None]]:
    """Map ``run`` over an axis; return the results, and the position of the mapped axis in each (None: not mapped).

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      axis: the name and size of the axis.
      args: the operands.
      dims: the position of the mapped axis in each operand, not negative, or None.
    """
    trace = BatchTrace(state.trace, axis, function)
    values = [trace.value_of(x) for x in trace.run_once(run, args, dims)]
    return [x for x, _ in values], [d for _, d in values]
