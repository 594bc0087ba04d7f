"""The local Jacobian of a program: a program that returns its results and their partial derivatives by its inputs.

For an elementwise program each derivative is an array like the result, and elimination in the computational graph
computes it. For any other program forward mode computes columns, or reverse mode rows, which must be few.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.core import dtypes, source
from pullback.core.array import SCALARS
from pullback.core.errors import (
    CallbackError,
    ClosedOverError,
    ForeignCallError,
    MissingRuleError,
    PreaccumulationError,
)
from pullback.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, jaxpr_as_fun
from pullback.core.lists import scatter_where, select
from pullback.core.trace import state
from pullback.core.types import ZERO, MappedAxis, ShapedArray
from pullback.core.zeros import zeros_of
from pullback.primitives.arrays.shapes import broadcast_in_dim, broadcast_to, moveaxis, reshape
from pullback.primitives.arrays.slicing import iota, slice_in_dim
from pullback.primitives.discrete import eq_p
from pullback.primitives.elementwise import add, add_any, convert_element_type, mul, neg
from pullback.primitives.linalg.contraction import dot_general
from pullback.transforms.preaccumulation import partials
from pullback.transforms.preaccumulation.elimination import Graph
from pullback.transforms.preaccumulation.ordering import economical
from pullback.transforms.traces.batch import batch_flat
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.inlining import flattened, programs_in_step
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.stage import stage_flat

Vertices = Sequence[int | None]

MOST_ENTRIES = 65_536
"""The largest number of elements of a local Jacobian of a program that is not elementwise."""
MOST_ENTRIES_AGAIN = 1_024
"""The same for the Jacobian of a Jacobian; if it would be larger, ordinary differentiation is cheaper."""


class Entry(NamedTuple):
    """A partial derivative of a result by an input.

    Attributes:
      result, operand: the indices of the result and of the input.
      number: the derivative, if it is a constant number. None if it is an array: the program of :class:`LocalJacobian`
        returns the arrays of all such entries, in order.
      axes: the axes of the array that correspond to axes of the input; the others correspond to axes of the result.
        None for an elementwise derivative.
    """

    result: int
    operand: int
    number: int | float | None
    axes: tuple[int, ...] | None


class LocalJacobian(NamedTuple):
    """A program that computes the results of another program, and its nonzero partial derivatives.

    Attributes:
      program: takes the inputs; returns the results, followed by the partial derivatives that are arrays.
      entries: the nonzero partial derivatives: constant numbers, or arrays that ``program`` computes.
    """

    program: ClosedJaxpr
    entries: list[Entry]

    def apply(self, arrays: Sequence[Any], tangents: Sequence[Any], out_avals: Sequence[ShapedArray]) -> list[Any]:
        """Multiply the Jacobian by tangents of the inputs; return the tangent of each result, or ``ZERO``.

        Args:
          arrays: the partial derivatives that are arrays, in the order of ``entries``.
          tangents: the tangents of the inputs.
          out_avals: the types of the results.
        """
        outs: list[Any] = [ZERO] * len(out_avals)
        rest = iter(arrays)
        for entry in self.entries:
            aval = out_avals[entry.result]
            term = _applied(entry, next(rest) if entry.number is None else None, tangents[entry.operand], aval)
            known = outs[entry.result]
            outs[entry.result] = term if known is ZERO else add_any(known, term)
        return outs


def _applied(entry: Entry, array: Any, t: Any, aval: ShapedArray) -> Any:
    """Return the product of a partial derivative and the tangent of an input, a term of the tangent of a result.

    Args:
      entry: the partial derivative.
      array: the partial derivative as an array; None if it is the constant number ``entry.number``.
      t: the tangent of the input.
      aval: the type of the result.
    """
    t = convert_element_type(t, aval.dtype)
    if entry.axes:
        return dot_general(array, t, ((entry.axes, range(len(t.shape))), ((), ())))
    if array is not None:
        t = mul(t, array)
    elif entry.number == -1:
        t = neg(t)
    elif entry.number != 1:
        t = mul(t, entry.number)
    return t if t.shape == aval.shape else broadcast_to(t, aval.shape)


@cached_by_jaxpr
def local_jacobian(closed: ClosedJaxpr, active: Sequence[bool], order: str, name: str, most: int) -> LocalJacobian:
    """Compute the local Jacobian of a program: its results, and its partial derivatives by some inputs.

    Args:
      closed: the program.
      active: for each input, whether to differentiate with respect to it.
      order: ``"forward"``, ``"reverse"`` or ``"markowitz"``, the order in which an elementwise program's operations are
        eliminated; see :meth:`Graph.eliminate`. For other programs, ``"forward"`` computes columns of the Jacobian,
        ``"reverse"`` rows, and ``"markowitz"`` whichever are fewer.
      name: the name of the function, for error messages.
      most: the largest number of elements of the Jacobian of a program that is not elementwise.

    Raises:
      PreaccumulationError: the program is not elementwise, and the Jacobian would be too large. The message names the
        operation and its line (a ValueError).
    """
    flat = flattened(closed)
    _check_real(flat, active, name)
    entries: list[Entry] = []
    try:
        program = stage_flat(closed, partial(_by_elimination, flat, active, order, entries), closed.in_avals)
    except NotElementwise as found:
        _check_size(closed, active, name, most, found.eqn)
        run = _by_columns if _fewer_columns(closed, active, order) else _by_rows
        program = stage_flat(closed, partial(run, closed, active, entries), closed.in_avals)
    used = [True] * len(program.out_avals)
    # All inputs are retained, since entries have their indices.
    return LocalJacobian(economical(dce_closed_jaxpr(program, used, instantiate=True)[0]), entries)


# By elimination ------------------------------------------------------------------------------------------------------


class NotElementwise(Exception):
    """Raised for an equation that is not elementwise, to which elimination does not apply.

    An equation is elementwise if its partial derivatives have the shapes of its results.
    """

    def __init__(self, eqn: Eqn) -> None:
        self.eqn = eqn


REFUSALS = NotElementwise, MissingRuleError, CallbackError, ClosedOverError, ForeignCallError
"""Errors that exclude an equation from regions: it is not elementwise, or cannot be differentiated, perhaps only with
respect to an operand that is not active; otherwise differentiation raises the error again. Other errors propagate."""


class Recorder:
    """Evaluates equations, and builds their computational graph, whose edges are partial derivatives.

    Attributes:
      graph: the graph.
      dtypes: the dtypes of its vertices.
    """

    def __init__(self, inputs: Sequence[np.dtype[Any]]) -> None:
        self.graph = Graph(len(inputs))
        self.dtypes = list(inputs)

    def vertex(self, edges: Sequence[tuple[int, Any]], dtype: np.dtype[Any]) -> int:
        """Add a vertex of a dtype to the graph; return its number.

        Each of ``edges`` is a pair: the number of an operand's vertex, and the partial derivative by this operand. The
        derivatives by one vertex that occurs twice, as in ``x * x``, are summed.
        """
        joined: dict[int, Any] = {}
        for v, x in edges:
            joined[v] = partials.plus(joined[v], x, dtype) if v in joined else x
        self.dtypes.append(dtype)
        return self.graph.vertex(joined)

    def run(self, eqn: Eqn, values: Sequence[Any], vertices: Vertices) -> tuple[list[Any], list[int | None]]:
        """Evaluate an equation, and add its results to the graph.

        Args:
          eqn: the equation.
          values: its operands.
          vertices: for each operand its vertex in the graph; None for a constant.

        Returns:
          The results; and for each result its vertex, or None if it depends on no input.

        Raises:
          NotElementwise: the equation is not elementwise.
        """
        primitive = eqn.primitive
        active = [v is not None for v in vertices]

        def bind(*operands: Any) -> list[Any]:
            out = primitive.bind(*operands, **eqn.params)
            return list(out) if primitive.multiple_results else [out]

        if True not in active:
            outs = bind(*values)
            return outs, [None] * len(outs)
        if primitive.partial_eval_rule is None:  # :meth:`_forward` is for operations with programs
            outs, tape = linearize_flat(primitive, bind, values, active)
            by_index = {x.index: v for x, v in zip(tape.inputs, select(vertices, active), strict=True)}
            for node in tape.nodes:
                edges = partials.edges_of(node)
                if edges is None:
                    break
                found = [(v, p) for x, p in edges if (v := by_index[x.index]) is not None]
                by_index[node.index] = self.vertex(found, node.dtype)
            else:
                return outs, [None if x is ZERO else by_index[x.index] for x in tape.outputs]
        return self._forward(eqn, bind, values, vertices)

    def _forward(
        self, eqn: Eqn, bind: Any, values: Sequence[Any], vertices: Vertices
    ) -> tuple[list[Any], list[int | None]]:
        """Evaluate an operation on scalars, or an elementwise loop, and add its results to the graph.

        The partial derivatives are computed in one forward pass, which is mapped over the active operands.

        Args:
          eqn: the equation.
          bind: applies the equation's primitive to operands.
          values: the operands.
          vertices: the vertex of each operand, or None for a constant.

        Returns:
          The results; and for each result its vertex, or None if it depends on no input.
        """
        active = [v is not None for v in vertices]
        own = select(vertices, active)
        if not (_of_numbers(eqn, active) or _works_elementwise(eqn, active)):
            raise NotElementwise(eqn)
        basis = [_unit(i, len(own), a.aval) for i, a in enumerate(select(eqn.invars, active))]
        outs, columns = columns_of(eqn.primitive, bind, values, active, basis)
        out_vertices: list[int | None] = []
        for x, column in zip(outs, columns, strict=True):
            if column is ZERO:
                out_vertices.append(None)
                continue
            if dtypes.is_complex(x.dtype):
                raise NotElementwise(eqn)
            edges = [(v, reshape(slice_in_dim(column, i, i + 1, 0), x.shape)) for i, v in enumerate(own)]
            out_vertices.append(self.vertex(edges, x.dtype))
        return outs, out_vertices


def _of_numbers(eqn: Eqn, active: Sequence[bool]) -> bool:
    """Whether all inexact values among the results, and among the operands that ``active`` flags, are scalars."""
    atoms = [*select(eqn.invars, active), *eqn.outvars]
    return all(a.aval.shape == () for a in atoms if dtypes.is_inexact(a.aval.dtype))


def _works_elementwise(eqn: Eqn, active: Sequence[bool]) -> bool:
    """Whether an operation that holds programs, such as a loop, is elementwise in its flagged operands."""
    stepped = programs_in_step(eqn.primitive, eqn.params)
    for closed, first, _ in stepped:
        inputs = zip(eqn.invars[first:], active[first:], closed.in_avals, strict=True)
        if any(flag and a.aval.shape != aval.shape for a, flag, aval in inputs):
            return False  # a scan slices an operand
        outs = [v.aval for v in eqn.outvars if dtypes.is_inexact(v.aval.dtype)]
        if [a.shape for a in outs] != [a.shape for a in closed.out_avals if dtypes.is_inexact(a.dtype)]:
            return False  # a scan stacks results
        if not is_elementwise(closed):
            return False
    return bool(stepped)


@cached_by_jaxpr
def is_elementwise(closed: ClosedJaxpr) -> bool:
    """Whether a program has no complex inputs, and is elementwise in all of its inexact inputs."""
    if any(dtypes.is_complex(a.dtype) for a in closed.in_avals):
        return False
    active = [dtypes.is_inexact(a.dtype) for a in closed.in_avals]
    try:
        stage_flat(closed, partial(_recorded, flattened(closed), active), closed.in_avals)
    except REFUSALS:
        return False
    return True


def _recorded(closed: ClosedJaxpr, active: Sequence[bool], *primals: Any) -> list[Any]:
    """Return the results of a program at ``primals``.

    Raise ``NotElementwise`` if the program is not elementwise in the inputs that ``active`` flags.
    """
    return record(closed, active, primals).outs


class Recorded(NamedTuple):
    """The results of a program, and its computational graph.

    Attributes:
      outs: the results.
      vertices: the vertex of each result; None for a result that depends on no active input.
      recorder: the recorder, which has the graph.
    """

    outs: list[Any]
    vertices: list[int | None]
    recorder: Recorder


def useful_variables(jaxpr: Jaxpr) -> set[Any]:
    """The inexact variables that the inexact results of a program depend on.

    Dependence through integers or booleans does not count, since it has no derivative.
    """
    useful: set[Any] = {a for a in jaxpr.outvars if dtypes.is_inexact(a.aval.dtype)}
    for eqn in reversed(jaxpr.eqns):
        if not useful.isdisjoint(eqn.outvars):
            useful.update(a for a in eqn.invars if dtypes.is_inexact(a.aval.dtype))
    return useful


def record(closed: ClosedJaxpr, active: Sequence[bool], primals: Sequence[Any]) -> Recorded:
    """Evaluate a program at ``primals``, and build its computational graph, from the inputs that ``active`` flags.

    Raises:
      NotElementwise: an equation is not elementwise.
    """
    jaxpr = closed.jaxpr
    where = [v for v, flag in zip(jaxpr.invars, active, strict=True) if flag]
    recorder = Recorder([v.aval.dtype for v in where])
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, primals, strict=True))
    vertices: dict[Any, int | None] = {v: k for k, v in enumerate(where)}
    useful = useful_variables(jaxpr)
    outer = state.source_loc
    try:
        for eqn in jaxpr.eqns:
            state.source_loc = eqn.made_at or outer
            values = [env[a] if type(a) is Var else a.val for a in eqn.invars]  # type: ignore[union-attr]
            counts = not useful.isdisjoint(eqn.outvars)  # otherwise the equation need not be elementwise
            outs, out_vertices = recorder.run(eqn, values, [vertices.get(a) if counts else None for a in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
            vertices.update(zip(eqn.outvars, out_vertices, strict=True))
    finally:
        state.source_loc = outer
    results = [env[a] if type(a) is Var else a.val for a in jaxpr.outvars]  # type: ignore[union-attr]
    return Recorded(results, [vertices.get(a) for a in jaxpr.outvars], recorder)


def _by_elimination(
    closed: ClosedJaxpr, active: Sequence[bool], order: str, entries: list[Entry], *primals: Any
) -> list[Any]:
    """Evaluate an elementwise program, and compute its Jacobian by elimination in the graph of its operations.

    The partial derivatives are appended to ``entries``. Return the results, followed by the partial derivatives that
    are arrays.
    """
    outs, vertices, recorder = record(closed, active, primals)
    where = [i for i, flag in enumerate(active) if flag]
    # A copy of each result's vertex: outputs must have no successors, but results may be operands of each other.
    results = [(i, recorder.vertex([(v, 1)], recorder.dtypes[v])) for i, v in enumerate(vertices) if v is not None]
    rows = recorder.graph.eliminate(
        [v for _, v in results],
        order,
        lambda outer, inner, v: partials.times(outer, inner, recorder.dtypes[v]),
        lambda a, b, v: partials.plus(a, b, recorder.dtypes[v]),
    )
    arrays = []
    for (i, vertex), row in zip(results, rows, strict=True):
        for k, x in row.items():
            number = x if type(x) in SCALARS else None
            entries.append(Entry(i, where[k], number, None))
            if number is None:
                arrays.append(partials.as_array(x, recorder.dtypes[vertex]))
    return [*outs, *arrays]


# By columns and rows -------------------------------------------------------------------------------------------------


def _inexact(avals: Sequence[ShapedArray]) -> int:
    """Return the total number of elements of the arrays of types ``avals``, without integers and booleans."""
    return sum(a.size for a in avals if dtypes.is_inexact(a.dtype))


def _fewer_columns(closed: ClosedJaxpr, active: Sequence[bool], order: str) -> bool:
    """Whether to compute a program's Jacobian by columns (in forward mode) instead of by rows.

    ``active`` flags the inputs to differentiate by. The order ``"forward"`` asks for columns, ``"reverse"`` for rows;
    with ``"markowitz"``, the Jacobian is computed by columns unless it has fewer rows.
    """
    if order != "markowitz":
        return order == "forward"
    return _inexact(select(closed.in_avals, active)) <= _inexact(closed.out_avals)


def _check_real(closed: ClosedJaxpr, active: Sequence[bool], name: str) -> None:
    """Raise if an active input or a result is complex. The error message names the function ``name``."""
    made = {v: eqn for eqn in closed.jaxpr.eqns for v in eqn.outvars}
    for a in (*select(closed.jaxpr.invars, active), *closed.jaxpr.outvars):
        if dtypes.is_complex(a.aval.dtype):
            eqn = made.get(a)
            what = "an argument" if eqn is None else f"the result of {eqn.primitive} at {source.describe(eqn.made_at)}"
            raise PreaccumulationError(
                f"preaccumulate of {name}: local Jacobians must be real, but {what} is {a.aval}. Separate real "
                "and imaginary parts, or leave preaccumulate out."
            )


def _check_size(closed: ClosedJaxpr, active: Sequence[bool], name: str, most: int, eqn: Eqn) -> None:
    """Raise if the Jacobian of a program, by the inputs that ``active`` flags, would have more than ``most`` elements.

    The error message names ``eqn``, an equation that is not elementwise, and the function ``name``.
    """
    columns, rows = _inexact(select(closed.in_avals, active)), _inexact(closed.out_avals)
    if columns * rows > most:
        raise PreaccumulationError(
            f"preaccumulate of {name}: the local Jacobian would have {rows:,} rows and {columns:,} columns, more "
            f"than {most:,} entries, because {eqn.primitive} at {source.describe(eqn.made_at)} is not elementwise. "
            "Preaccumulate a function of few inputs or few results, map the function over its points with vmap, or "
            "leave preaccumulate out."
        )


def columns_of(
    function: Any, run: Any, values: Sequence[Any], active: Sequence[bool], basis: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Evaluate a function, and its derivatives along a batch of tangents.

    Args:
      function: the function, for error messages.
      run: takes the values, and returns a list of results.
      values: the point.
      active: which values have tangents.
      basis: the tangents of the active values, with the batch along axis 0.

    Returns:
      The results; and the tangent of each result, with the batch along axis 0, or ``ZERO``.
    """
    nonzero: list[bool] = []

    def forward(*tangents: Any) -> list[Any]:
        outs, ts = jvp_flat(function, run, values, scatter_where(active, tangents, ZERO))
        nonzero[:] = [t is not ZERO for t in ts]
        return [*outs, *[t for t in ts if t is not ZERO]]

    count = basis[0].shape[0]
    found, at = batch_flat(function, forward, MappedAxis(None, count), basis, [0] * len(basis))
    size = len(nonzero)
    outs = [x if d is None else _first(x, d) for x, d in zip(found[:size], at[:size], strict=True)]
    columns = [_in_front(t, d, count) for t, d in zip(found[size:], at[size:], strict=True)]
    return outs, scatter_where(nonzero, columns, ZERO)


def _in_front(x: Any, dim: int | None, count: int) -> Any:
    """Move the mapped axis ``dim`` to the front; if ``dim`` is None, repeat ``x`` along a new first axis.

    ``count`` is the size of the new axis.
    """
    return broadcast_to(x, (count, *x.shape)) if dim is None else moveaxis(x, dim, 0)


def _first(x: Any, dim: int) -> Any:
    """The first example of ``x``, a batch along the axis ``dim`` whose examples are all equal."""
    return reshape(slice_in_dim(x, 0, 1, dim), (*x.shape[:dim], *x.shape[dim + 1 :]))


def _unit(index: int, count: int, aval: ShapedArray) -> Any:
    """Return a batch of ``count`` tangents for one of ``count`` values: ones at ``index`` of axis 0, zeros elsewhere.

    Args:
      index: the index of the value.
      count: the number of values, and of tangents.
      aval: the type of the value.
    """
    units = convert_element_type(eq_p.bind(iota(np.int32, (count,), 0), index), dtypes.tangent_dtype(aval.dtype))
    return broadcast_in_dim(units, (count, *aval.shape), (0,))


def _basis(avals: Sequence[ShapedArray], count: int) -> list[Any]:
    """Return the standard basis of the space of several values: a batch of ``count`` tangents for each value.

    ``count`` is the number of elements of all values. The basis is computed from indices, so that a compiled program
    need not store it.
    """
    rows, start = iota(np.int32, (count, 1), 0), 0
    batches = []
    for aval in avals:
        size = aval.size
        columns = iota(np.int32, (1, size), 1)
        units = eq_p.bind(rows, columns if not start else add(columns, start))
        batches.append(reshape(convert_element_type(units, dtypes.tangent_dtype(aval.dtype)), (count, *aval.shape)))
        start += size
    return batches


def _split(block: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Split an array whose first axis is over the elements of several values into an array for each value.

    ``avals`` are the types of the values. In each array, the axes of the value replace the first axis.
    """
    slices, start = [], 0
    for aval in avals:
        rows = slice_in_dim(block, start, start + aval.size, 0)
        slices.append(reshape(rows, (*aval.shape, *block.shape[1:])))
        start += aval.size
    return slices


def _by_columns(closed: ClosedJaxpr, active: Sequence[bool], entries: list[Entry], *primals: Any) -> list[Any]:
    """Evaluate a program, and compute its Jacobian in forward mode.

    The partial derivatives are appended to ``entries``. Return the results, followed by the partial derivatives, which
    are arrays.
    """
    where = [i for i, flag in enumerate(active) if flag]
    avals = select(closed.in_avals, active)
    basis = _basis(avals, sum(a.size for a in avals))
    outs, columns = columns_of(closed, jaxpr_as_fun(closed), primals, active, basis)
    arrays = []
    for r, column in enumerate(columns):
        if column is not ZERO:
            for i, array in zip(where, _split(column, avals), strict=True):
                entries.append(Entry(r, i, None, tuple(range(len(closed.in_avals[i].shape)))))
                arrays.append(array)
    return [*outs, *arrays]


def _by_rows(closed: ClosedJaxpr, active: Sequence[bool], entries: list[Entry], *primals: Any) -> list[Any]:
    """Evaluate a program, and compute its Jacobian in reverse mode.

    The partial derivatives are appended to ``entries``. Return the results, followed by the partial derivatives, which
    are arrays.
    """
    outs, tape = linearize_flat(closed, jaxpr_as_fun(closed), primals, active)
    where = [i for i, flag in enumerate(active) if flag]
    results = [i for i, x in enumerate(tape.outputs) if x is not ZERO]
    if not results:
        return outs
    avals = [closed.out_avals[i] for i in results]
    count = sum(a.size for a in avals)

    def backward(*cts: Any) -> list[Any]:
        back = tape.transpose(scatter_where([x is not ZERO for x in tape.outputs], cts, ZERO), add_any)
        return [zeros_of(a) if ct is ZERO else ct for ct, a in zip(back, select(closed.in_avals, active), strict=True)]

    found, at = batch_flat(closed, backward, MappedAxis(None, count), _basis(avals, count), [0] * len(avals))
    arrays = []
    for i, x, dim in zip(where, found, at, strict=True):
        for r, array, aval in zip(results, _split(_in_front(x, dim, count), avals), avals, strict=True):
            axes = tuple(range(len(aval.shape), len(array.shape)))
            entries.append(Entry(r, i, None, axes))
            arrays.append(convert_element_type(array, aval.dtype))  # the dtype of tangents of the result
    return [*outs, *arrays]
