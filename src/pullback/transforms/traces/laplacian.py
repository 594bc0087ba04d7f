"""The forward Laplacian: propagating values, their Jacobians, and their weighted sums of second derivatives.

A value y is carried with its Jacobian J, whose row i is the derivative along direction i, and with its Laplacian L,
the sum over i of w_i times the second derivative along direction i. An operation z = g(y) has

    J_i(z) = g'(y) J_i,    L(z) = g'(y) L + sum_i w_i g''(y)[J_i, J_i].

Only the last term is not linear, and it is summed as soon as it is computed. So a network costs one pass with one
tangent for each direction and one for the Laplacian; Hessian-vector products cost several for each direction.

Source: R. Li, H. Ye, D. Jiang et al., A computational framework for neural network-based variational Monte Carlo with
Forward Laplacian, Nature Machine Intelligence 6 (2024); F. Dangel, T. Siebert, M. Zeinhofer and A. Walther, Collapsing
Taylor mode automatic differentiation, NeurIPS 2025, for operations for which only derivative rules are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, source, traits
from pullback.core.array import ArrayImpl, shape_of, typeof
from pullback.core.errors import MissingRuleError
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.linearity import LinearPart, linear_part
from pullback.core.lists import scatter_where, split_list
from pullback.core.trace import Primitive, Trace, check_result, state
from pullback.core.types import ZERO, MappedAxis
from pullback.core.zeros import zeros_of
from pullback.primitives.arrays import shapes
from pullback.primitives.elementwise import add_any, convert_element_type, mul, where
from pullback.primitives.linalg.contraction import dot_general
from pullback.primitives.reductions import reduce_sum
from pullback.primitives.rules import axis_kept, unsummed
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import PrimalTracer, jvp_flat
from pullback.transforms.traces.lift import Forward, feed, lifted
from pullback.transforms.traces.stage import stage_flat


class Blocks(NamedTuple):
    """A block-sparse Jacobian: each index along one axis of the value has its own directions.

    With ``n`` indices and ``m`` directions for each, the derivatives of index ``e`` are nonzero only along the
    directions ``m * e + c``, for ``0 <= c < m``. Only these are stored: ``1 / n`` of the elements.

    Attributes:
      rows: the derivatives, of shape ``(m, *shape of the value)``: ``rows[c]`` has the derivatives along ``m * e + c``.
      axis: the axis of the value.
    """

    rows: Any
    axis: int

    def to_dense(self) -> Any:
        """The dense Jacobian, of shape ``(n * m, *shape of the value)``."""
        m, *shape = self.rows.shape
        n = shape[self.axis]
        along = tuple(1 if i != self.axis else n for i in range(len(shape)))
        diagonal = shapes.reshape(ArrayImpl(np.eye(n, dtype=bool)), (n, 1, *along))
        return shapes.reshape(where(diagonal, shapes.expand_dims(self.rows, [0]), 0), (n * m, *shape))


class LaplacianTriple(NamedTuple):
    """A value with its derivatives along some directions.

    Attributes:
      value: the value.
      jacobian: the first derivatives: an array with the directions along a new first axis, :class:`Blocks`, or
        ``ZERO``.
      laplacian: the weighted sum of the second derivatives, with the value's shape; or ``ZERO``.
    """

    value: Any
    jacobian: Any = ZERO
    laplacian: Any = ZERO


class Directions(NamedTuple):
    """The directions of the derivatives.

    Attributes:
      size: the number of directions; for block-sparse Jacobians, the number for each index along ``axis``.
      weights: the weight of each direction in the sum of second derivatives, as a vector; None if each is 1.
      axis: for block-sparse Jacobians (:class:`Blocks`), the axis of the result whose indices have their own
        directions.
    """

    size: int
    weights: Any = None
    axis: int | None = None

    def weighted(self, terms: Any) -> Any:
        """Multiply ``terms``, which have the directions along their first axis, by the weights."""
        if self.weights is None:
            return terms
        w = convert_element_type(self.weights, terms.dtype)
        others = [1] * (len(terms.shape) - 1)
        if self.axis is not None:
            w = shapes.transpose(shapes.reshape(w, (w.shape[0] // self.size, self.size)), (1, 0))
            others[self.axis] = w.shape[1]
        return mul(terms, shapes.reshape(w, (self.size, *others)))

    def total(self, terms: Any) -> Any:
        """Sum ``terms`` over the directions, their first axis, with the weights."""
        return reduce_sum(self.weighted(terms), (0,))

    def total_of_products(self, x: Any, y: Any) -> Any:
        """Sum the elementwise products of ``x`` and ``y`` over the directions, their first axis, with the weights."""
        if x.shape != y.shape:
            return self.total(mul(x, y))
        elements = tuple(range(1, len(x.shape)))  # a contraction takes two thirds of the time of product and sum
        return dot_general(self.weighted(x), y, (((0,), (0,)), (elements, elements)))


class LaplacianTracer(PrimalTracer):
    """A value with its Jacobian and its Laplacian."""

    __slots__ = ("jacobian", "laplacian")

    def __init__(self, trace: Trace, carried: LaplacianTriple, made_at: source.Location | None) -> None:
        self._trace = trace
        self.primal = carried.value
        self.made_at = made_at
        self.jacobian, self.laplacian = carried.jacobian, carried.laplacian


class LaplacianTrace(Trace):
    """The trace that propagates Jacobians and Laplacians, by formulas for classes of operations, or by jvp rules."""

    __slots__ = ("directions",)
    transformation = "the forward Laplacian"

    def __init__(self, parent: Trace, function: Any, directions: Directions) -> None:
        super().__init__(parent, function)
        self.directions = directions

    def carried(self, x: Any) -> LaplacianTriple:
        """Return an operand or result as a triple; the derivatives of a constant are ``ZERO``."""
        if type(x) is LaplacianTracer and x._trace is self:
            return LaplacianTriple(x.primal, x.jacobian, x.laplacian)
        return LaplacianTriple(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        operands = [self.carried(x) for x in args]
        if all(x.jacobian is ZERO for x in operands):
            return self.parent.process(primitive, args, params)
        previous, state.trace = state.trace, self.parent
        try:
            outs = _outs(primitive, self.directions, operands, params)
        except MissingRuleError as error:
            where = f"in {self.describe()}, at {source.describe(source.here())}"
            if where in str(error):  # added by an inner call, as of a program within a program
                raise
            raise MissingRuleError(f"{error} ({where})") from None
        finally:
            state.trace = previous
        made_at = source.here() if previous is self else None
        tracers = [x.value if x.jacobian is ZERO else LaplacianTracer(self, x, made_at) for x in outs]
        return tracers if primitive.multiple_results else tracers[0]


def laplacian_flat(
    function: Any, run: Callable[..., Sequence[Any]], operands: Sequence[LaplacianTriple], directions: Directions
) -> list[LaplacianTriple]:
    """Run a function, and return its results with their Jacobians and Laplacians.

    Args:
      function: the user's function, for error messages.
      run: takes and returns flat sequences of arrays.
      operands: the value of each input, and its derivatives along the directions.
      directions: the number of directions, and their weights.
    """
    trace = LaplacianTrace(state.trace, function, directions)
    args = [x.value if x.jacobian is ZERO else LaplacianTracer(trace, x, None) for x in operands]
    state.trace = trace
    try:
        results = run(*args)
    finally:
        state.trace = trace.parent
        trace.live = False
    outs = [trace.carried(x) for x in results]
    for x in outs:
        check_result(x.value)
    return outs


# One operation -------------------------------------------------------------------------------------------------------


def _outs(
    primitive: Primitive, directions: Directions, operands: list[LaplacianTriple], params: Any
) -> list[LaplacianTriple]:
    """Apply an operation to operands; return its results with their derivatives, by the cheapest method that fits."""
    rule = feed.of(primitive)
    if rule is not None and not rule(**params).keeps_shapes:
        weights = directions.weights
        forward = Curvatures(directions.size, weights is not None)
        return lifted(primitive, forward, operands, params, [] if weights is None else [weights])
    if not any(type(x.jacobian) is Blocks for x in operands):
        return _dense(primitive, directions, list(map(dense, operands)), params)
    axis = _block_axis(primitive, operands, params)
    if axis is not None:
        rows = [x if x.jacobian is ZERO else x._replace(jacobian=x.jacobian.rows) for x in operands]
        count = next(x.jacobian.shape[0] for x in rows if x.jacobian is not ZERO)
        outs = _dense(primitive, Directions(count, directions.weights, axis), rows, params)
        return [x if x.jacobian is ZERO else x._replace(jacobian=Blocks(x.jacobian, axis)) for x in outs]
    unsummed_result = None if primitive.multiple_results else _sparse_linear(primitive, operands, params)
    return [unsummed_result] if unsummed_result else _dense(primitive, directions, list(map(dense, operands)), params)


def dense(x: LaplacianTriple) -> LaplacianTriple:
    """Return the triple with a dense array as Jacobian, converted from :class:`Blocks`; other triples unchanged."""
    return x._replace(jacobian=x.jacobian.to_dense()) if type(x.jacobian) is Blocks else x


def _block_axis(primitive: Primitive, operands: Sequence[LaplacianTriple], params: Any) -> int | None:
    """Return the axis of the result along which its Jacobian is block-sparse (:class:`Blocks`).

    Return None if it is not block-sparse. It is so if each operand's Jacobian is ``ZERO`` or block-sparse along an
    axis, and all these axes become the same axis of the result.
    """
    all_shapes = [shape_of(x.value) for x in operands]
    rank = max(map(len, all_shapes))
    rule = axis_kept.of(primitive)
    found = set()
    for i, x in enumerate(operands):
        if x.jacobian is ZERO:
            continue
        if type(x.jacobian) is not Blocks:
            return None
        axis = x.jacobian.axis
        if traits.elementwise.of(primitive):
            aligned = axis + rank - len(all_shapes[i])
            size = max(shape[aligned - rank] for shape in all_shapes if len(shape) >= rank - aligned)
            found.add(aligned if size == all_shapes[i][axis] else None)  # a broadcast axis shares its directions
        else:
            found.add(None if rule is None else rule(axis, i, *all_shapes, **params))
    return found.pop() if len(found) == 1 else None


def _sparse_linear(primitive: Primitive, operands: Sequence[LaplacianTriple], params: Any) -> LaplacianTriple | None:
    """Apply a linear operation that sums over the axis of a block-sparse Jacobian (:class:`Blocks`).

    Return the result with a dense Jacobian; None if the operation is of another kind. Each term of the sum has its own
    directions, so that the derivatives of the terms need not be summed: together they are the Jacobian.
    """
    rule = unsummed.of(primitive)
    active = [i for i, x in enumerate(operands) if x.jacobian is not ZERO]
    if rule is None or len(active) > 1:
        return None
    (i,) = active
    blocks, values = operands[i].jacobian, [x.value for x in operands]
    found = rule(blocks.axis, i, *map(shape_of, values), **params)
    if found is None:
        return None
    other, axis = found
    terms = _mapped(primitive, blocks.rows.shape[0], values, {i: blocks.rows}, other)
    terms = shapes.moveaxis(terms, axis + 1, 0)
    laplacian = operands[i].laplacian
    if laplacian is not ZERO:
        laplacian = primitive.bind(*_replaced(values, {i: laplacian}), **params)
    out = primitive.bind(*values, **params)
    return LaplacianTriple(out, shapes.reshape(terms, (terms.shape[0] * terms.shape[1], *out.shape)), laplacian)


def _dense(
    primitive: Primitive, directions: Directions, operands: list[LaplacianTriple], params: Any
) -> list[LaplacianTriple]:
    """Apply an operation to operands whose Jacobians are dense; return its results with their derivatives.

    The derivatives are computed by a formula for the class of the operation, or by jvps.
    """
    active = [i for i, x in enumerate(operands) if x.jacobian is not ZERO]
    part = None if primitive.multiple_results else linear_part(primitive, active, len(operands), params)
    if part is not None:
        return [_linear(primitive, directions, operands, active, params, part)]
    real = not any(dtypes.is_complex(operands[i].value.dtype) for i in active)
    if traits.elementwise.of(primitive) and real and primitive.linear_in != "each":
        return [_on_elements(primitive, directions, operands, active, params)]
    if primitive.linear_in == "each" and not primitive.multiple_results and len(active) == 2:
        return [_bilinear(primitive, directions, operands, active, params)]
    return _by_derivatives(primitive, directions, operands, params, 2)


def _linear(
    primitive: Primitive,
    directions: Directions,
    operands: list[LaplacianTriple],
    active: Sequence[int],
    params: Any,
    part: LinearPart,
) -> LaplacianTriple:
    """Apply an operation that is linear or affine in the operands that have derivatives.

    Return the result; its derivatives are the linear part of the operation, applied to the Jacobian and the Laplacian.

    Args:
      primitive, params: the operation.
      directions: the directions of the derivatives.
      operands: the operands.
      active: the indices of the operands that have derivatives.
      part: the linear part of the operation.
    """
    if len(part.joint) > 1:  # the derivative rule handles operands whose derivatives are zero
        return _by_derivatives(primitive, directions, operands, params, 1)[0]
    (i,) = active
    values = [x.value for x in operands]
    x = operands[i]
    # Stacking value, Jacobian and Laplacian for one product was tried: it takes as long.
    out = primitive.bind(*values, **params)
    if not dtypes.is_inexact(out.dtype):
        return LaplacianTriple(out)
    jacobian = _mapped(primitive, directions.size, values, {i: x.jacobian}, part.params)
    laplacian = ZERO
    if x.laplacian is not ZERO:
        laplacian = primitive.bind(*_replaced(values, {i: x.laplacian}), **part.params)
    return LaplacianTriple(out, jacobian, laplacian)


def _replaced(values: Sequence[Any], others: dict[int, Any]) -> list[Any]:
    """Return a copy of a list, with the elements in ``others`` at their indices."""
    return [others.get(i, x) for i, x in enumerate(values)]


def _mapped(primitive: Primitive, count: int, values: Sequence[Any], rows: dict[int, Any], params: Any) -> Any:
    """Map an operation over the first axes of some operands; the result has the mapped axis first.

    Args:
      primitive, params: the operation.
      count: the size of the mapped axis.
      values: the operands that are not mapped, at their indices; the others are ignored.
      rows: the mapped operands, by index.
    """
    dims = [0 if i in rows else None for i in range(len(values))]
    run = lambda *xs: [primitive.bind(*xs, **params)]
    outs, ends = batch_flat(primitive, run, MappedAxis(None, count), _replaced(values, rows), dims)
    return _in_front(outs[0], ends[0], count)


def _in_front(x: Any, dim: int | None, count: int) -> Any:
    """Move the mapped axis ``dim`` to the front; if ``dim`` is None, broadcast ``x`` along a new first axis.

    ``count`` is the size of the new axis.
    """
    return shapes.broadcast_to(x, (count, *x.shape)) if dim is None else shapes.moveaxis(x, int(dim), 0)


def _sum(terms: Sequence[Any]) -> Any:
    """Return the sum of the terms that are not ``ZERO``; return ``ZERO`` if there are none."""
    nonzero = [t for t in terms if t is not ZERO]
    return reduce(add_any, nonzero) if nonzero else ZERO


def _on_elements(
    primitive: Primitive, directions: Directions, operands: list[LaplacianTriple], active: Sequence[int], params: Any
) -> LaplacianTriple:
    """Apply an elementwise operation; return the result, with derivatives by the formula for elementwise operations.

    The first and second partial derivatives have one number for each element; jvps with tangents of ones compute them.
    ``active`` are the indices of the operands that have derivatives.
    """
    values = [x.value for x in operands]
    ones = {i: shapes.broadcast_to(shapes.full((), 1, values[i].dtype), values[i].shape) for i in active}

    def run(*xs: Any) -> list[Any]:
        return [primitive.bind(*xs, **params)]

    def along(i: int) -> list[Any]:
        return [ones[i] if k == i else ZERO for k in range(len(values))]

    out: Any = None
    first: dict[int, Any] = {}
    second: dict[tuple[int, int], Any] = {}
    # Nested forward mode: ``first[i]`` is dg/dx_i, and ``second[a, b]`` is d2g/dx_a dx_b, for a <= b.
    for a in active:

        def slope(*xs: Any, a: int = a) -> list[Any]:
            outs, tangents = jvp_flat(primitive, run, xs, along(a))
            return [*outs, *[t for t in tangents if t is not ZERO]]

        for b in active:
            if b < a:
                continue
            outs, slopes = jvp_flat(primitive, slope, values, along(b))
            out, first[b] = outs[0], slopes[0]
            second[a, b] = slopes[1] if len(slopes) == 2 else ZERO
    rank = len(out.shape)
    rows = {i: shapes.front_aligned(operands[i].jacobian, 0, rank) for i in active}
    jacobian = _sum([mul(first[i], rows[i]) for i in active if first[i] is not ZERO])
    if jacobian is ZERO:
        return LaplacianTriple(out)
    curved = [
        mul(second[a, b], directions.total_of_products(rows[a], rows[b] if a == b else mul(2, rows[b])))
        for a, b in second if second[a, b] is not ZERO
    ]  # fmt: skip
    pushed = [
        mul(first[i], operands[i].laplacian)
        for i in active if first[i] is not ZERO and operands[i].laplacian is not ZERO
    ]  # fmt: skip
    return LaplacianTriple(out, jacobian, _sum([*curved, *pushed]))


def _bilinear(
    primitive: Primitive, directions: Directions, operands: list[LaplacianTriple], active: Sequence[int], params: Any
) -> LaplacianTriple:
    """Apply a bilinear operation; return the result, with derivatives by the product rule.

    A second derivative of a product ``x y`` has the term ``2 x' y'``: the operation, applied to first derivatives.
    ``active`` are the indices of the operands that have derivatives.
    """
    (out,) = _by_derivatives(primitive, directions, operands, params, 1)
    rows = {i: operands[i].jacobian for i in active}
    pairs = _mapped(primitive, directions.size, [x.value for x in operands], rows, params)
    return out._replace(laplacian=_sum([mul(2, directions.total(pairs)), out.laplacian]))


def _by_derivatives(
    primitive: Primitive, directions: Directions, operands: list[LaplacianTriple], params: Any, order: int
) -> list[LaplacianTriple]:
    """Apply any operation; return its results, with derivatives by nested jvps that are mapped over the directions.

    If ``order`` is 1, the second derivatives of the operation are omitted.
    """
    values = [x.value for x in operands]
    flags_of: list[list[bool]] = [[], []]  # which results have first derivatives, and which of these second derivatives

    def run(*xs: Any) -> list[Any]:
        out = primitive.bind(*xs, **params)
        return out if primitive.multiple_results else [out]

    def along(*rows: Any) -> list[Any]:
        ts = [ZERO if x.jacobian is ZERO else row for x, row in zip(operands, rows, strict=True)]

        def first(*xs: Any) -> list[Any]:
            outs, tangents = jvp_flat(primitive, run, xs, ts)
            flags_of[0] = [t is not ZERO for t in tangents]
            return [*outs, *[t for t in tangents if t is not ZERO]]

        if order == 1:
            return first(*values)
        outs, tangents = jvp_flat(primitive, first, values, ts)
        seconds = tangents[len(flags_of[0]) :]
        flags_of[1] = [t is not ZERO for t in seconds]
        return [*outs, *[t for t in seconds if t is not ZERO]]

    rows = [x.value if x.jacobian is ZERO else x.jacobian for x in operands]
    dims = [None if x.jacobian is ZERO else 0 for x in operands]
    found, ends = batch_flat(primitive, along, MappedAxis(None, directions.size), rows, dims)
    moving, curved = flags_of
    count = len(moving)
    outs = found[:count] if all(d is None for d in ends[:count]) else run(*values)  # a rule may map primals, too
    derivatives = iter([_in_front(x, d, directions.size) for x, d in zip(found[count:], ends[count:], strict=True)])
    jacobians = scatter_where(moving, [next(derivatives) for m in moving if m], ZERO)
    sums = scatter_where(curved, list(map(directions.total, derivatives)), ZERO) or [ZERO] * sum(moving)
    laplacians = [x.laplacian for x in operands]
    pushed = [ZERO] * count
    if any(t is not ZERO for t in laplacians):
        pushed = jvp_flat(primitive, run, values, laplacians)[1]
    curvature = scatter_where(moving, sums, ZERO)
    return [LaplacianTriple(x, j, _sum([c, t])) for x, j, c, t in zip(outs, jacobians, curvature, pushed, strict=True)]


# Programs ------------------------------------------------------------------------------------------------------------


Kind = int | None
"""The form of a Jacobian: None for ``ZERO``, -1 for a dense array, or the axis of :class:`Blocks`."""


def _kind(x: Any) -> Kind:
    """The kind of a Jacobian: None for ``ZERO``, -1 for a dense array, and the axis for :class:`Blocks`."""
    return None if x is ZERO else x.axis if type(x) is Blocks else -1


@cached_by_jaxpr
def laplacian_jaxpr(
    closed: ClosedJaxpr, marks: Sequence[tuple[Kind, bool]], count: int, weighted: bool,
    forced: Sequence[tuple[Kind, bool]],
) -> tuple[ClosedJaxpr, list[tuple[Kind, bool]]]:  # fmt: skip
    """Transform a jaxpr to one that also propagates Jacobians and Laplacians.

    Args:
      closed: the program.
      marks: for each input, the kind of its Jacobian (None, -1 if it is dense, or the axis of :class:`Blocks`), and
        whether it has a Laplacian.
      count: the number of directions.
      weighted: whether the directions have weights.
      forced: for each result, the derivatives that must be arrays, even of zeros, in the form of ``marks``.

    Returns:
      A jaxpr. It takes the weights, if there are any, and the inputs, followed by the Jacobian and Laplacian of each.
      It returns the results, followed by the Jacobian and Laplacian of each. And the marks of the results.
    """
    derivative_avals: list[Any] = []
    first: Any = None
    for aval, (kind, curved) in zip(closed.in_avals, marks, strict=True):
        if kind is not None:
            rows = aval.update(shape=(count if kind < 0 else count // aval.shape[kind], *aval.shape))
            first = rows if first is None else first
            derivative_avals.append(rows)
        derivative_avals += [aval] * curved
    weight_avals = [first.update(shape=(count,), weak_type=False)] if weighted else []
    found: list[LaplacianTriple] = []

    def run(*values: Any) -> list[Any]:
        weights, primals, derivatives = split_list(values, int(weighted), len(marks))
        rest = iter(derivatives)
        operands = [_made(rest, x, *mark) for x, mark in zip(primals, marks, strict=True)]
        directions = Directions(count, weights[0] if weighted else None)
        outs = laplacian_flat(closed, jaxpr_as_fun(closed), operands, directions)
        found[:] = [_of_kind(x, count, *least) for x, least in zip(outs, forced, strict=True)]
        return [*[x.value for x in found], *[t for x in found for t in _derivatives(x)]]

    jaxpr = stage_flat(closed, run, [*weight_avals, *closed.in_avals, *derivative_avals])
    return jaxpr, [(_kind(x.jacobian), x.laplacian is not ZERO) for x in found]


def filled(x: LaplacianTriple, count: int) -> LaplacianTriple:
    """Return the triple with a dense Jacobian, and with arrays of zeros instead of ``ZERO``.

    ``count`` is the number of directions.
    """
    aval = typeof(x.value)
    jacobian = zeros_of(aval.update(shape=(count, *aval.shape))) if x.jacobian is ZERO else dense(x).jacobian
    return LaplacianTriple(x.value, jacobian, zeros_of(aval) if x.laplacian is ZERO else x.laplacian)


def _of_kind(x: LaplacianTriple, count: int, kind: Kind, curved: bool) -> LaplacianTriple:
    """Return a triple with its Jacobian in another form.

    Args:
      x: the triple.
      count: the number of directions.
      kind: None to leave the Jacobian unchanged, -1 for a dense array, or the axis of :class:`Blocks`.
      curved: whether a Laplacian that is ``ZERO`` becomes an array.
    """
    if kind is not None and kind != _kind(x.jacobian):
        if kind < 0 or x.jacobian is not ZERO:
            x = x._replace(jacobian=filled(x, count).jacobian)
        else:
            aval = typeof(x.value)
            rows = zeros_of(aval.update(shape=(count // aval.shape[kind], *aval.shape)))
            x = x._replace(jacobian=Blocks(rows, kind))
    return x._replace(laplacian=zeros_of(typeof(x.value))) if curved and x.laplacian is ZERO else x


def _derivatives(x: LaplacianTriple) -> list[Any]:
    """Return the arrays of a value's Jacobian and Laplacian, without those that are ``ZERO``."""
    jacobian = x.jacobian.rows if type(x.jacobian) is Blocks else x.jacobian
    return [t for t in (jacobian, x.laplacian) if t is not ZERO]


def _made(derivatives: Iterator[Any], value: Any, kind: Kind, curved: bool) -> LaplacianTriple:
    """Make a triple of a value and the next arrays in an iterator, the inverse of ``_derivatives``.

    Args:
      derivatives: the iterator over the arrays of Jacobians and Laplacians.
      value: the value.
      kind: the kind of the Jacobian: None for ``ZERO``, -1 for a dense array, or the axis of :class:`Blocks`.
      curved: whether the value has a Laplacian.
    """
    rows = ZERO if kind is None else next(derivatives)
    jacobian = rows if kind is None or kind < 0 else Blocks(rows, kind)
    return LaplacianTriple(value, jacobian, next(derivatives) if curved else ZERO)


class Curvatures(Forward):
    """The forward Laplacian of programs.

    The mark of a value says what derivatives it has. It is a pair: the kind of its Jacobian (None for none, -1 for
    dense, or the axis of :class:`Blocks`), and whether it has a Laplacian.

    If a loop slices or stacks an array, the Jacobian of the array has the axis of the steps first, and the axis of the
    directions second. The axis of :class:`Blocks` is never the axis of the steps.
    """

    __slots__ = ("count", "weighted")
    nothing = None, False

    def __init__(self, count: int, weighted: bool) -> None:
        super().__init__(count, weighted)
        self.count, self.weighted = count, weighted

    def marks(self, xs: Sequence[LaplacianTriple]) -> tuple[tuple[Kind, bool], ...]:
        return tuple([(_kind(x.jacobian), x.laplacian is not ZERO) for x in xs])

    def width(self, mark: tuple[Kind, bool]) -> int:
        return (mark[0] is not None) + mark[1]

    def extras(self, xs: Sequence[LaplacianTriple]) -> list[Any]:
        return [t for x in xs for t in _derivatives(x)]

    def made(
        self, values: Sequence[Any], extras: Iterator[Any], marks: Sequence[tuple[Kind, bool]]
    ) -> list[LaplacianTriple]:
        return [_made(extras, x, *mark) for x, mark in zip(values, marks, strict=True)]

    def carried(self, mark: tuple[Kind, bool]) -> tuple[Kind, bool]:
        return mark[0], mark[0] is not None

    def joined(self, marks: Sequence[tuple[Kind, bool]]) -> tuple[Kind, bool]:
        kinds = {kind for kind, _ in marks if kind is not None}
        return None if not kinds else kinds.pop() if len(kinds) == 1 else -1, any(curved for _, curved in marks)

    def filled(self, x: LaplacianTriple, mark: tuple[Kind, bool]) -> LaplacianTriple:
        return _of_kind(x, self.count, *mark)

    def row(self, x: LaplacianTriple) -> LaplacianTriple:
        if x.jacobian is ZERO:
            return x
        if type(x.jacobian) is Blocks and x.jacobian.axis:
            return x._replace(jacobian=Blocks(shapes.moveaxis(x.jacobian.rows, 0, 1), x.jacobian.axis))
        return x._replace(jacobian=shapes.moveaxis(dense(x).jacobian, 0, 1))

    def element(self, mark: tuple[Kind, bool]) -> tuple[Kind, bool]:
        kind, curved = mark
        return kind if kind is None or kind < 0 else kind - 1, curved

    def stacked(self, x: LaplacianTriple) -> LaplacianTriple:
        if x.jacobian is ZERO:
            return x
        if type(x.jacobian) is Blocks:
            return x._replace(jacobian=Blocks(shapes.moveaxis(x.jacobian.rows, 1, 0), x.jacobian.axis + 1))
        return x._replace(jacobian=shapes.moveaxis(x.jacobian, 1, 0))

    def program(self, closed: ClosedJaxpr, marks: Sequence[Any], forced: Sequence[Any]) -> tuple[ClosedJaxpr, Any]:
        return laplacian_jaxpr(closed, tuple(marks), self.count, self.weighted, tuple(forced))
