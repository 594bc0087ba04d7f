"""Linear programs: the tape that linearisation records, to be run forwards or transposed.

``LinearVar`` is a variable of a linear program; a transposition rule receives it for each linear operand. A program
is data: its residuals can be extracted and replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import masking, provenance, source
from pullback.core.array import Array, ArrayImpl, resolve_weak_scalars, typeof
from pullback.core.config import config
from pullback.core.elementwise_shapes import elementwise_shape
from pullback.core.errors import NotLinearError, PullbackError, ShardingTypeError
from pullback.core.jaxpr import infer
from pullback.core.runtime import runtime
from pullback.core.trace import Primitive, Rule, Trace, Tracer, state
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray


class LinearVar:
    """A variable of a linear program, together with the operation that returns it. A program is a list of these.

    An operation of several results is a ``LinearVar`` of index -1, which lists the result variables in ``results``.

    Attributes:
      provenance: the source line and scope of the operation, which its transpose inherits; None if not recorded.
    """

    __slots__ = ("_aval", "_shape", "args", "index", "params", "primitive", "provenance", "results")

    def __init__(
        self,
        index: int,
        primitive: Primitive | None,
        args: tuple[Any, ...],
        params: dict[str, Any],
        aval: ShapedArray | None = None,
        results: list[LinearVar] | None = None,
    ) -> None:
        self.index = index
        self.primitive = primitive
        self.args = args
        self.params = params
        self._aval = aval
        self._shape: Shape | None = None
        self.results = results
        self.provenance: provenance.Provenance | None = None

    @property
    def aval(self) -> ShapedArray:
        """The variable's type, inferred from its operands' types; without recursion, since a tape may be long."""
        if self._aval is not None:
            return self._aval
        waiting = [self]
        while waiting:
            var = waiting[-1]
            unknown = [x for x in var.args if type(x) is LinearVar and x._aval is None]
            if unknown:
                waiting += unknown
                continue
            assert var.primitive is not None
            avals = operand_avals(var.args)
            try:
                var._aval = infer(var.primitive, avals, var.params)
            except ShardingTypeError:  # of tangents the compiler then decides
                var._aval = infer(var.primitive, [a.update(sharding=None) for a in avals], var.params)
            waiting.pop()
        assert self._aval is not None
        return self._aval

    @property
    def shape(self) -> Shape:
        shape = self._shape
        if shape is None:
            shape = elementwise_shape(self) if self._aval is None else None
            shape = self._shape = self.aval.shape if shape is None else shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.aval.size


def operand_avals(args: Sequence[Any]) -> list[ShapedArray]:
    """Return the type of each of ``args``, the operands of a recorded operation: linear variables or residuals."""
    return resolve_weak_scalars([x.aval if type(x) is LinearVar else typeof(x) for x in args], args)


def is_linear(x: Any) -> bool:
    """Whether ``x``, an operand that a transposition rule receives, is linear: a ``LinearVar`` and not a value."""
    return type(x) is LinearVar


class LinearTracer(Tracer):
    """A value that depends linearly on the inputs of a linear program."""

    __slots__ = ("variable",)

    def __init__(self, trace: Trace, var: LinearVar) -> None:
        self._trace = trace
        self.variable = var
        self.made_at = None

    @property
    def aval(self) -> ShapedArray:
        return self.variable.aval


class LinearTrace(Trace):
    """A trace that records the operations on its tracers, and passes all others to its parent.

    Attributes:
      nodes: the recorded operations, in order.
      count: the number of variables.
      masks: whether to record masked products, in which a linear factor of zero makes a zero (``core.masking``).
      notes: whether to call ``_note`` for each recorded operation, for ``watch`` or to record its provenance.
      watch: a function to call with this trace, each recorded operation, and its result tracers; or None.
      error: called with this trace, an operation, and the reason why it cannot be recorded; returns the error.
    """

    __slots__ = ("count", "error", "masks", "nodes", "notes", "watch")
    transformation = "linear_transpose"

    def __init__(
        self, parent: Trace, function: Any = None, watch: Watch | None = None, error: Refusal | None = None
    ) -> None:
        Trace.__init__(self, parent, function)
        self.nodes: list[LinearVar] = []
        self.count = 0
        self.masks = config.masked_zeros
        self.watch = watch
        self.error = _not_linear if error is None else error
        self.notes = watch is not None or not parent.quick

    def input(self, aval: ShapedArray) -> LinearTracer:
        """Add an input to the program, and return its tracer."""
        var = LinearVar(self.count, None, (), {}, aval)
        self.count += 1
        return LinearTracer(self, var)

    def end(self, x: Any) -> Any:
        """Return the variable of a result ``x``, or ZERO if ``x`` does not depend on the program's inputs."""
        return x.variable if type(x) is LinearTracer and x._trace is self else ZERO

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        # The fast path for two operands, as most operations have.
        if len(args) == 2:
            x, y = args
            x_is_own = type(x) is LinearTracer and x._trace is self
            y_is_own = type(y) is LinearTracer and y._trace is self
            if not (x_is_own or y_is_own):
                return self.parent.process(primitive, args, params)
            own: tuple[Any, ...] = (x.variable if x_is_own else x, y.variable if y_is_own else y)
        else:
            for x in args:
                if type(x) is LinearTracer and x._trace is self:
                    break
            else:
                return self.parent.process(primitive, args, params)
            own = tuple([x.variable if type(x) is LinearTracer and x._trace is self else x for x in args])
        if self.masks and primitive.masked is not None:
            primitive, params = masking.masked(primitive, params, own, tuple([type(x) is LinearVar for x in own]))
        linear_in = primitive.linear_in
        if primitive.transpose_rule is None or (linear_in is not None and not _fits(linear_in, own)):
            if primitive.decomposition_rule is None:
                raise self.not_linear(primitive)
            return self._run(primitive.decomposition_rule, *args, **params)
        if primitive.multiple_results:
            if primitive.record_rule is not None:
                results = self._run(primitive.record_rule, self, args, params)
                if results is not None:
                    return results
            return self._record_many(primitive, own, params)
        var = LinearVar(self.count, primitive, own, params)
        self.count += 1
        self.nodes.append(var)
        out = LinearTracer(self, var)
        if self.notes and (state.scope is not None or self.watch is not None or state.bottom.watches):
            self._note(var, [out])
        return out

    def _run(self, rule: Rule, *args: Any, **params: Any) -> Any:
        """Return ``rule(*args, **params)``, called with this trace as the current trace."""
        outer, state.trace = state.trace, self
        try:
            return rule(*args, **params)
        finally:
            state.trace = outer

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[LinearTracer]:
        """Record an operation of several results, which is linear in the tracers among ``args``; return its results."""
        own = tuple([x.variable if type(x) is LinearTracer and x._trace is self else x for x in args])
        return self._record_many(primitive, own, params)

    def _record_many(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> list[LinearTracer]:
        avals = infer(primitive, operand_avals(args), params)
        results = [LinearVar(self.count + i, None, (), {}, aval) for i, aval in enumerate(avals)]
        self.count += len(results)
        node = LinearVar(-1, primitive, args, params, None, results)
        self.nodes.append(node)
        outs = [LinearTracer(self, var) for var in results]
        if self.notes:
            self._note(node, outs)
        return outs

    def _note(self, node: LinearVar, tracers: list[LinearTracer]) -> None:
        """Set the provenance of the recorded operation ``node``, and call ``watch`` with its result ``tracers``."""
        if not self.parent.quick:
            node.provenance = provenance.current()
        if self.watch is not None:
            self.watch(self, node, tracers)

    def not_linear(self, primitive: Primitive, how: str = "") -> PullbackError:
        """Return the error for an operation that cannot be recorded; ``how`` is the reason, as in "is not linear"."""
        return self.error(self, primitive, how)


Watch = Callable[[LinearTrace, LinearVar, list[LinearTracer]], None]
Refusal = Callable[[LinearTrace, Primitive, str], PullbackError]


def _not_linear(trace: LinearTrace, primitive: Primitive, how: str) -> PullbackError:
    if not how:
        how = "is not linear" if primitive.transpose_rule else "is not linear (it has no transpose rule)"
    return NotLinearError(
        f"{primitive.name} {how}, so it cannot be transposed "
        f"(in {source.describe_function(trace.function)}, at {source.describe(state.source_loc or source.here())}). "
        "linear_transpose takes linear functions; vjp differentiates any function."
    )


def _fits(linear_in: str | tuple[int, ...], args: tuple[Any, ...]) -> bool:
    """Whether an operation is linear in all operands in ``args`` that are a ``LinearVar``, taken together.

    ``linear_in``: the positions in which it is jointly linear; or ``"each"``: linear in each, one at a time.
    """
    if linear_in == "each":
        count = 0
        for x in args:
            if type(x) is LinearVar:
                count += 1
        return count == 1
    return all(i in linear_in for i, x in enumerate(args) if type(x) is LinearVar)


def is_explicit(ct: Any) -> bool:
    """Whether the type of a cotangent, or of one in a list, has a sharding over explicit axes of a mesh."""
    values = ct if type(ct) is list else (ct,)
    return any(type(x) is not ArrayImpl and isinstance(x, Array) and x.aval.explicit is not None for x in values)


def _transposed(node: LinearVar, ct: Any, reduced: Sequence[MappedAxis] | None) -> Sequence[Any]:
    """Return the cotangents of the operands of ``node``, from the cotangent ``ct`` of its result.

    If an operand does not vary along a ``reduced`` axis, sum its cotangent over this axis.
    """
    if runtime.has_explicit_types and (is_explicit(ct) or is_explicit([*node.args])):
        return runtime.explicit_cotangents(node, ct, reduced)  # type: ignore[no-any-return]
    if reduced:
        return runtime.transpose_over(node, ct, reduced)
    return node.primitive.transpose_rule(ct, *node.args, **node.params)  # type: ignore[union-attr,misc,no-any-return]


class LinearProgram:
    """A linear function as data.

    Attributes:
      nodes: the operations, in order.
      inputs: the input variables.
      outputs: for each result a ``LinearVar``, or ``ZERO`` if the result is zero.
      count: the number of variables.
    """

    __slots__ = ("count", "inputs", "nodes", "outputs")

    def __init__(self, nodes: list[LinearVar], inputs: Sequence[LinearVar], outputs: Sequence[Any], count: int) -> None:
        self.nodes = nodes
        self.inputs = inputs
        self.outputs = outputs
        self.count = count

    def run(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the results of the program for its inputs ``tangents``; ``ZERO`` is allowed for unused inputs."""
        env: list[Any] = [ZERO] * self.count
        for var, t in zip(self.inputs, tangents, strict=True):
            env[var.index] = t
        for node in self.nodes:
            assert node.primitive is not None
            args = [env[x.index] if type(x) is LinearVar else x for x in node.args]
            if node.provenance is None:
                out = node.primitive.bind(*args, **node.params)
            else:
                with provenance.of(node.provenance, source.TANGENT):
                    out = node.primitive.bind(*args, **node.params)
            if node.results is None:
                env[node.index] = out
            else:
                for var, value in zip(node.results, out, strict=True):
                    env[var.index] = value
        return [ZERO if var is ZERO else env[var.index] for var in self.outputs]

    def transpose(self, cotangents: Sequence[Any], add: Callable[[Any, Any], Any], consume: bool = False) -> list[Any]:
        """Return a cotangent for each input, or ``ZERO`` if no result depends on it; runs under the current trace.

        Args:
          cotangents: one for each result; ``ZERO`` is allowed.
          add: ``add(ct, ct) -> ct`` sums two cotangents of the same variable.
          consume: whether to drop each operation, with its residuals, once it has been transposed.
        """
        env: list[Any] = [ZERO] * self.count
        reduced = [axis for axis in state.axes.values() if axis.reduced] if state.axes else None
        for var, ct in zip(self.outputs, cotangents, strict=True):
            if var is not ZERO and ct is not ZERO:
                if reduced:
                    ct = runtime.sum_over(ct, var.aval, reduced)
                known = env[var.index]
                env[var.index] = ct if known is ZERO else add(known, ct)
        nodes = self.nodes
        for k in range(len(nodes) - 1, -1, -1):
            node = nodes.pop() if consume else nodes[k]
            if node.results is None:
                ct = env[node.index]
                if ct is ZERO:
                    continue
                env[node.index] = ZERO
            else:
                ct = [env[var.index] for var in node.results]
                if all(c is ZERO for c in ct):
                    continue
            args = node.args
            if node.provenance is not None:
                with provenance.of(node.provenance, source.BACKWARD):
                    cts = _transposed(node, ct, reduced)
            elif reduced or runtime.has_explicit_types:
                cts = _transposed(node, ct, reduced)
            else:
                cts = node.primitive.transpose_rule(ct, *args, **node.params)  # type: ignore[union-attr,misc]
            for x, c in zip(args, cts):
                if type(x) is LinearVar and c is not ZERO and c is not None:
                    i = x.index
                    known = env[i]
                    env[i] = c if known is ZERO else add(known, c)
            if consume:
                node.args = ()
        return [env[var.index] for var in self.inputs]

    def dce_inputs(self, wanted: Sequence[int]) -> LinearProgram:
        """Return the program reduced to the operations that depend on the inputs with the indices ``wanted``."""
        reached = {self.inputs[i].index for i in wanted}
        nodes = []
        for node in self.nodes:
            if any(type(x) is LinearVar and x.index in reached for x in node.args):
                nodes.append(node)
                reached.update([node.index] if node.results is None else [var.index for var in node.results])
        return LinearProgram(nodes, self.inputs, self.outputs, self.count)
