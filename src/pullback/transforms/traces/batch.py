"""Vectorisation: a function of one example becomes a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core import source
from pullback.core.array import typeof
from pullback.core.jaxpr import free_axes
from pullback.core.trace import Primitive, Trace, Tracer, check_result, missing_rule, state
from pullback.core.types import MappedAxis, ShapedArray
from pullback.transforms.traces.examples import Examples


class UnmappedResult(int):
    """The position of a mapped axis along which a value does not vary, though cotangents of it may.

    Only calls with rules make such values; an operation on these alone returns another one.
    """

    __slots__ = ()


class BatchTracer(Tracer):
    """A batch of values, seen as one of them."""

    __slots__ = ("dim", "value")

    _trace: BatchTrace

    def __init__(self, trace: BatchTrace, value: Any, dim: int, made_at: source.Location | None) -> None:
        self._trace = trace
        self.value = value
        self.dim = dim
        self.made_at = made_at

    @property
    def aval(self) -> ShapedArray:
        aval = typeof(self.value)
        axis = self._trace.axis
        varying = aval.varying if axis.name is None else aval.varying | {axis.key}
        return ShapedArray(self.shape, aval.dtype, aval.weak_type, varying)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each axis, without the mapped one."""
        shape = self.value.shape
        return shape[: self.dim] + shape[self.dim + 1 :]  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """The type of an element."""
        return self.value.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the type gives way to that of other operands."""
        return self.value.weak_type  # type: ignore[no-any-return]

    def differentiated(self) -> Tracer | None:
        return self.value.differentiated() if isinstance(self.value, Tracer) else None

    def shown(self) -> Any:
        value = self.value.shown() if isinstance(self.value, Tracer) else self.value
        return None if value is None else Examples(value, self._trace.axis.size, self.dim)


class BatchTag:
    """One use of ``vmap``, for whose tracers there may be several traces, one for each time that a function runs.

    Attributes:
      has_uniform: whether there is a value of which the mapped axis is at a ``UnmappedResult`` position.
    """

    has_uniform = False


class BatchTrace(Trace):
    """Applies each primitive's batching rule to values and the positions of their mapped axes.

    Attributes:
      axis: the name and size of the mapped axis.
      tag: the same for a trace and those that :meth:`run` makes of it, of which each takes the tracers of all.
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
        """What a function returns that runs under this transformation, on top of the trace that is current now.

        It may be called more than once, also when the transformation has ended: the Python functions of a call, its
        derivative rules for example, run where and when another trace calls them, and close over this one's tracers.
        Each time a trace of its own is made, so that several threads may do so: this one may be part of a program that
        is kept.

        Args:
          function: takes tracers.
          args: their values.
          dims: the position of the mapped axis in each, not negative, or None.
        """
        return BatchTrace(state.trace, self.axis, self.function, self.tag).run_once(function, args, dims)

    def run_once(self, function: Callable[..., Any], args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        """What a function returns that runs with this trace current, on top of its parent, after which it has ended."""
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
        """A result of a function that ran with this trace: its value, and where the mapped axis is in it."""
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
    """The results of ``run`` mapped over an axis, and where the mapped axis is in each (None: nowhere).

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
