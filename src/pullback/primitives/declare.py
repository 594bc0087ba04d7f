"""Functions that declare families of primitives, and the rules that the members of a family share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes
from pullback.core.array import SCALARS, Absent, ArrayImpl, shape_of
from pullback.core.elsewhere import is_here
from pullback.core.host_operands import NUMPY_REFUSES
from pullback.core.trace import Primitive, RuleKind, Tracer, state
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import ANY, COMPLEX, Of, broadcast_shape, check_dtype, kinds, same_dtype
from pullback.primitives.rules import batch_unary, jvp_zero
from pullback.primitives.sums import add_any_p

JVP = Callable[..., Any]
_double = np.dtype(np.float64)


class Public(NamedTuple):
    """The documentation of a public elementwise operation, shared by all of its public functions.

    Attributes:
      name: the name of its function in ``pullback.lax``.
      arity: the number of operands.
      sentence: the first sentence of each docstring.
      example: the operands of an example, as source.
      result: what the example prints.
      of: a predicate on dtypes, from ``checks``: the dtypes that the operation accepts.
      out: maps the dtype of the operands to that of the result; None if they are equal.
    """

    name: str
    arity: int
    sentence: str
    example: str
    result: str
    of: Of
    out: Callable[[np.dtype[Any]], np.dtype[Any]] | None

    @property
    def takes(self) -> str:
        """What an operand is, such as "of floats", or nothing if its dtype may be any."""
        return "" if self.of is ANY else f" of {kinds(self.of)}"

    @property
    def returns(self) -> str:
        """The shape and dtype of the result, as a sentence."""
        shape = "the shape of ``x``" if self.arity == 1 else "the shape to which ``x`` and ``y`` broadcast"
        if self.out is None:
            own = "the shape and dtype of ``x``" if self.arity == 1 else f"their dtype, and of {shape}"
            return f"An array of {own}."
        if self.out is dtypes.to_complex:
            return f"An array of complex numbers, of {shape}."
        if self.out is dtypes.to_real:
            own = "" if self.of is COMPLEX else "of the dtype of ``x``, or for complex numbers "
            return f"An array {own}of the dtype of their parts; of {shape}."
        return f"An array of booleans, of {shape}."


PUBLIC: dict[Primitive, Public] = {}
"""The public elementwise operations: ``pullback.lax`` makes its functions from this table."""


def elementwise(
    name: str,
    *,
    of: Of,
    host: Callable[..., Any],
    jvp: JVP | Sequence[JVP | None] | None = None,
    out: Callable[[np.dtype[Any]], np.dtype[Any]] | None = None,
    arity: int = 1,
    hlo: str | Callable[..., Any] | None = None,
    hlo_complex: str | None = None,
    doc: tuple[str, str, str] | None = None,
    lax: str = "",
    cost: Cost = Cost.SIMPLE,
    **traits: Any,
) -> Primitive:
    """Declare an elementwise operation, whose operands broadcast against each other as in NumPy.

    Args:
      name: the name in jaxprs and errors.
      of: a predicate on dtypes, from ``checks``: the dtypes that the operation accepts.
      host: the NumPy function.
      jvp: for one operand a rule ``rule(t, x, ans) -> tangent``; for several, a sequence with a rule ``rule(t,
        *operands, ans) -> tangent`` for each operand, or None where that derivative is zero. Tangents have the shape of
        ``ans``. None instead of rules for an operation that is constant almost everywhere.
      out: maps the dtype of the operands to the dtype of the result; by default they are equal.
      arity: the number of operands.
      hlo: the name of an operation of StableHLO, or of another dialect as in ``chlo.asin``; or ``rule(hlo, *operands)
        -> value`` for operands of one shape; or ``COMPOSED`` if ``primitives.special.compositions`` registers that
        rule.
      hlo_complex: the same for complex operands; by default ``hlo``.
      doc: makes the operation public, with a function in ``pullback.lax``, and documents it: a sentence on the
        operation, with operands ``x`` and ``y``; the operands of an example; the output of the example.
      lax: the name of that function, if it differs from ``name``.
      cost: the cost of one element; by default the cost of a sine.
      **traits: further traits, by their names in ``core.traits``.
    """
    p = Primitive(name, keeps_weak_type=out is None, elementwise=True, cost=cost, **traits)
    p.host_rule = host
    if doc is not None:
        PUBLIC[p] = Public(lax or name, arity, *doc, of, out)
    if hlo is not None:
        p.lowering_rule = xla_elementwise(p, hlo, hlo_complex)

    @p.abstract_eval
    def shape(*avals: ShapedArray) -> ShapedArray:
        dtype = avals[0].dtype if arity == 1 else same_dtype(name, avals)
        check_dtype(name, of, dtype)
        shape = avals[0].shape if arity == 1 else broadcast_shape(name, [a.shape for a in avals])
        return ShapedArray(shape, dtype if out is None else out(dtype))

    p.batch_rule = batch_unary(p) if arity == 1 else batch_broadcasting(p)
    if jvp is None:
        p.jvp_rule = jvp_zero(p)
    elif arity == 1:
        p.tangent(lambda ans, primals, tangents: jvp(tangents[0], primals[0], ans))  # type: ignore[operator]
    else:
        p.tangent(_tangent_of_each(tuple(jvp)))  # type: ignore[arg-type]
    return p


def host_fused(
    name: str,
    *,
    host: Callable[..., Any] | None,
    otherwise: Callable[..., Any],
    results: int = 1,
    large: float = math.inf,
    fused: Callable[..., bool] | None = None,
    jvp: JVP | None = None,
) -> Callable[..., Any]:
    """Make a function of one array that is a single NumPy call in eager evaluation, and several operations in traces.

    Args:
      name: the name in errors.
      host: the NumPy function, which takes an array and the parameters; None if ``jvp`` is all that is special.
      otherwise: the same function, composed of other operations.
      results: the number of results.
      large: the least elements of arrays that are evaluated by several operations too, which fuse by themselves.
      fused: ``fused(x, **params)`` returns whether a large array is nevertheless evaluated by ``host``.
      jvp: ``jvp(t, x, ans, **params) -> tangent``, by which the outermost derivative of eager code is computed in fewer
        passes than those of the operations.
    """
    p = Primitive(name, multiple_results=results > 1, cost=Cost.SIMPLE)
    p.host_rule = host
    p.decomposition_rule = otherwise
    if jvp is not None:

        @p.jvp
        def rule(primals: Any, tangents: Any, **params: Any) -> Any:
            ans = function(*primals, **params)
            return ans, jvp(*tangents, *primals, ans, **params)

    def function(x: Any, **params: Any) -> Any:
        trace = state.trace
        if not trace.quick or (host is None and not trace.differentiates):
            return otherwise(x, **params)
        if host is not None and is_here(x):
            fits = x.size < large or (fused is not None and fused(x, **params))
        else:
            fits = jvp is not None and is_differentiated_here(x)
        return p.bind(x, **params) if fits else otherwise(x, **params)

    return function


def in_one(
    name: str,
    *,
    host: Callable[..., Any],
    otherwise: Callable[..., Any],
    operand: Callable[[Any], Any] | None = None,
    cost: Cost = Cost.LIGHT,
    of: frozenset[np.dtype[Any]] = frozenset(map(np.dtype, ("float16", "float32", "float64"))),
) -> Callable[..., Any]:
    """Make an elementwise function of an array of floats that is one operation in eager evaluation, and else several.

    Large arrays have pending elements (``backends/host/pending``), for which ``backends/host/native`` translates
    ``host``.

    Args:
      name: the name in errors.
      host: the NumPy function, which takes an array and the parameters, and returns one of its shape and dtype.
      otherwise: the same function, composed of other operations. It takes any operand.
      operand: converts an operand of ``otherwise``.
      cost: what an element costs.
      of: the dtypes of which it is one operation.
    """
    p = Primitive(name, elementwise=True, cost=cost)
    p.host_rule = host
    p.decomposition_rule = otherwise
    p.abstract_eval(lambda x, **params: ShapedArray(x.shape, x.dtype))

    def function(x: Any, **params: Any) -> Any:
        if type(x) is ArrayImpl and state.trace.quick and (value := x._host_value).dtype in of:
            if type(value) is not Absent:
                try:
                    return ArrayImpl(state.silently(host, value, **params), x.weak_type)
                except NUMPY_REFUSES:  # dispatch explains it, or computes within a host rule
                    pass
            return p.bind(x, **params)
        return otherwise(x if operand is None else operand(x), **params)

    return function


def is_differentiated_here(x: Any) -> bool:
    """Whether ``x`` is a tracer of the innermost trace, which differentiates operations on the host's arrays."""
    trace = state.trace
    return trace.differentiates and isinstance(x, Tracer) and x._trace is trace and is_here(x.primal)  # type: ignore[attr-defined]


def composite(name: str, *, of: Of, formula: Callable[..., Any], jvp: Sequence[JVP]) -> Primitive:
    """Declare an elementwise operation by a formula of other operations, with its own derivative rules.

    Some formulas have guards, such as a selection that avoids 0 times infinity. A guarded formula has the right value,
    but its derivative is wrong, so that the derivative needs a rule with a formula of its own.

    Args:
      name: the name in jaxprs and errors.
      of: a predicate on dtypes: the dtypes that the operation accepts.
      formula: ``formula(*operands, **params)`` returns the result; operands are arrays with operators (``Formula``).
      jvp: for each operand ``rule(t, *operands, **params) -> tangent``, with the shape of the result.
    """
    p = Primitive(name, elementwise=True, cost=Cost.SIMPLE)
    p.decomposition(formula)
    p.batch_rule = batch_broadcasting(p)

    @p.abstract_eval
    def shape(*avals: ShapedArray, **params: Any) -> ShapedArray:
        dtype = same_dtype(name, avals)
        check_dtype(name, of, dtype)
        return ShapedArray(broadcast_shape(name, [a.shape for a in avals]), dtype)

    @p.jvp
    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        terms = [one(t, *primals, **params) for one, t in zip(jvp, tangents, strict=True) if t is not ZERO]
        return p.bind(*primals, **params), reduce(add_any_p.bind, terms)

    return p


COMPOSED = "composed"
real_lowering = RuleKind("real_lowering", "``hlo`` of the declaration")
complex_lowering = RuleKind("complex_lowering", "``hlo`` of the declaration")
"""``rule(hlo, *operands) -> value``, for operands of one shape: the lowering rules, for real and for complex operands,
of operations declared with ``COMPOSED``. They are in ``primitives.special.compositions``."""


def xla_elementwise(
    p: Primitive, operation: str | Callable[..., Any], of_complex: str | None = None
) -> Callable[..., Any]:
    """Make a lowering rule that broadcasts the operands and then emits ``operation`` (``of_complex`` for complex)."""
    write = write_real = _written(p, operation, real_lowering)
    if of_complex is not None:
        write_complex = _written(p, of_complex, complex_lowering)

        def write(hlo: Any, *operands: Any) -> Any:
            return (write_complex if dtypes.is_complex(operands[0].dtype) else write_real)(hlo, *operands)

    def rule(hlo: Any, *operands: Any) -> Any:
        shape = hlo.results[0].shape
        return write(hlo, *[x if x.shape == shape else hlo.broadcast(x, shape) for x in operands])

    return rule


def _written(p: Primitive, operation: str | Callable[..., Any], kind: RuleKind) -> Callable[..., Any]:
    """Make a rule that emits an operation for operands of one shape.

    Args:
      p: the primitive.
      operation: the name of a StableHLO operation; or a rule, which is returned unchanged; or ``COMPOSED`` for the
        rule that is registered for ``p`` in the table ``kind``.
      kind: a table of lowering rules.
    """
    if not isinstance(operation, str):
        return operation
    if operation == COMPOSED:
        return lambda hlo, *operands: kind.needed(p, "compilation")(hlo, *operands)
    dialect, _, last = operation.rpartition(".")
    full = f"{dialect or 'stablehlo'}.{last}"

    def write(hlo: Any, *operands: Any) -> Any:
        dtype = hlo.results[0].dtype
        if not dialect and operands[0].dtype == dtype:
            return hlo.elementwise(full, *operands)
        if dialect and dtype.itemsize == 1:  # the compiler expands these dtypes for minutes
            single = np.dtype(np.float32)
            wide = [hlo.convert(x, single) for x in operands]
            return hlo.convert(hlo.op(full, wide, operands[0].shape, single), dtype)
        return hlo.op(full, operands, operands[0].shape, dtype)

    return write


def _tangent_of_each(each: tuple[JVP | None, ...]) -> Callable[..., Any]:
    """Make the rule for the tangent of a result, which is a sum with a term for each operand.

    ``each`` holds, for each operand, the rule that computes its term, or None if the term is zero.
    """

    def rule(ans: Any, primals: Any, tangents: Any) -> Any:
        total: Any = ZERO
        for one, t in zip(each, tangents):
            if t is not ZERO and one is not None:
                term = one(t, *primals, ans)
                total = term if total is ZERO else add_any_p.bind(total, term)
        return total

    return rule


def in_double(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Make a lowering rule that evaluates ``formula`` in double precision, on operands broadcast to one shape."""

    def rule(hlo: Any, *operands: Any) -> Any:
        shape = hlo.result.shape
        dtype = np.dtype(np.complex128) if dtypes.is_complex(operands[0].dtype) else _double
        wide = [hlo.convert(hlo.broadcast(x, shape), dtype) for x in operands]
        return hlo.convert(hlo.inline(formula, *wide), hlo.result.dtype)

    return rule


def in_single(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Make a lowering rule that evaluates ``formula`` in single precision, on operands broadcast to one shape."""

    def rule(hlo: Any, *operands: Any) -> Any:
        single = [hlo.convert(hlo.broadcast(x, hlo.result.shape), np.dtype(np.float32)) for x in operands]
        return hlo.convert(hlo.inline(formula, *single), hlo.result.dtype)

    return rule


def jvp_bilinear(p: Primitive) -> Callable[..., Any]:
    """Make the jvp rule of an operation that is linear in each of its two operands."""

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        x, y = primals
        tx, ty = tangents
        ans = p.bind(x, y, **params)
        if ty is ZERO:
            return ans, p.bind(tx, y, **params)
        if tx is ZERO:
            return ans, p.bind(x, ty, **params)
        return ans, add_any_p.bind(p.bind(tx, y, **params), p.bind(x, ty, **params))

    return rule


def batch_broadcasting(p: Primitive) -> Callable[..., Any]:
    """Make the batching rule of an operation whose operands broadcast against each other."""

    def rule(axis: MappedAxis, args: Any, dims: Any, **params: Any) -> Any:
        dim = _common_axis(args, dims)
        if dim is None:
            rank = max(len(shape_of(x)) - (d is not None) for x, d in zip(args, dims, strict=True))
            args = [x if d is None else shapes.front_aligned(x, d, rank) for x, d in zip(args, dims, strict=True)]
            dim = 0
        out = p.bind(*args, **params)
        return out, [dim] * len(out) if p.multiple_results else dim

    return rule


def _common_axis(args: Any, dims: Any) -> int | None:
    """Return the position of the mapped axis if it is the same in all mapped operands, and they broadcast as they are.

    Return None if the operands must be aligned first, for example if their ranks differ.
    """
    dim = None
    rank = 0
    for x, d in zip(args, dims):
        if d is not None:
            r = len(x.shape)
            if dim is None:
                dim, rank = d, r
            elif d != dim or r != rank:
                return None
    for x, d in zip(args, dims):
        if d is None and type(x) not in SCALARS:
            r = len(x.shape)
            if r and (dim != 0 or r >= rank):
                return None
    return dim


def spread(t: Any, x: Any, ans: Any) -> Any:
    """Broadcast ``t``, the tangent of the operand ``x``, to the shape of the result ``ans``."""
    return t if shape_of(x) == ans.shape else shapes.broadcast_to(t, ans.shape)
