"""The local Jacobian of a program: a program of its results and of the partial derivatives by its inputs.

Of a program of operations on elements each derivative is an array like the result, and the computational graph is
made Jacobian by elimination. Of any other program it is made column by column, or row by row, of which there must be
few.
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
"""How many entries a local Jacobian has at most, if it is not one of operations on elements."""
MOST_ENTRIES_AGAIN = 1_024
"""The same of the Jacobian of a Jacobian, which is better differentiated as any program if it is larger."""


class Entry(NamedTuple):
    """One partial derivative, of a result by an input.

    Attributes:
      result, operand: which these are.
      number: the derivative, where it is a number that is known; None for an array, the next result of the program.
      axes: the axes of that array that are those of the input; the others are those of the result. None of an
        operation on elements: element for element.
    """

    result: int
    operand: int
    number: int | float | None
    axes: tuple[int, ...] | None


class LocalJacobian(NamedTuple):
    """The results of a program and its derivatives.

    Attributes:
      program: from the inputs to the results, and then the arrays of the entries.
      entries: the partial derivatives that are not zero.
    """

    program: ClosedJaxpr
    entries: list[Entry]

    def apply(self, arrays: Sequence[Any], tangents: Sequence[Any], out_avals: Sequence[ShapedArray]) -> list[Any]:
        """The tangents of the results, ZERO where a result does not depend on an input that has one."""
        outs: list[Any] = [ZERO] * len(out_avals)
        given = iter(arrays)
        for entry in self.entries:
            aval = out_avals[entry.result]
            term = _applied(entry, next(given) if entry.number is None else None, tangents[entry.operand], aval)
            known = outs[entry.result]
            outs[entry.result] = term if known is ZERO else add_any(known, term)
        return outs


def _applied(entry: Entry, array: Any, t: Any, aval: ShapedArray) -> Any:
    """What an entry adds to the tangent of a result."""
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
    """The local Jacobian of a program.

    Args:
      closed: the program.
      active: for each input, whether to differentiate by it.
      order: of elimination, see :meth:`Graph.eliminate`. Where the Jacobian is made otherwise, ``"forward"`` makes
        columns, ``"reverse"`` rows, and ``"markowitz"`` whichever are fewer.
      name: of the function, for error messages.
      most: how many entries it may have, if it is not made by elimination.

    Raises:
      PreaccumulationError: it is neither a program of operations on elements, nor one of few inputs or results. The
        message names the operation and its line (a ValueError).
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
    return LocalJacobian(economical(dce_closed_jaxpr(program, used, instantiate=True)[0]), entries)


# By elimination ------------------------------------------------------------------------------------------------------


class NotElementwise(Exception):
    """An equation does not work element for element, so that its graph has no partial derivatives like its results."""

    def __init__(self, eqn: Eqn) -> None:
        self.eqn = eqn


REFUSALS = NotElementwise, MissingRuleError, CallbackError, ClosedOverError, ForeignCallError
"""What is raised for an equation that is in no part. It does not work element for element, or a derivative is refused:
perhaps by an operand that nobody differentiates by; who does is told. All other errors are faults, and come out."""


class Recorder:
    """Runs equations, and makes the computational graph of what they compute.

    Attributes:
      graph: the graph.
      dtypes: those of its vertices.
    """

    def __init__(self, inputs: Sequence[np.dtype[Any]]) -> None:
        self.graph = Graph(len(inputs))
        self.dtypes = list(inputs)

    def vertex(self, edges: Sequence[tuple[int, Any]], dtype: np.dtype[Any]) -> int:
        joined: dict[int, Any] = {}
        for v, x in edges:
            joined[v] = partials.plus(joined[v], x, dtype) if v in joined else x
        self.dtypes.append(dtype)
        return self.graph.vertex(joined)

    def run(self, eqn: Eqn, values: Sequence[Any], vertices: Vertices) -> tuple[list[Any], list[int | None]]:
        """The results of an equation, and their vertices: None for one that does not depend on the inputs.

        Raises:
          NotElementwise: it does not work element for element.
        """
        primitive = eqn.primitive
        active = [v is not None for v in vertices]

        def bind(*operands: Any) -> list[Any]:
            out = primitive.bind(*operands, **eqn.params)
            return list(out) if primitive.multiple_results else [out]

        if True not in active:
            outs = bind(*values)
            return outs, [None] * len(outs)
        if primitive.partial_eval_rule is None:
            outs, tape = linearize_flat(primitive, bind, values, active)
            places = {x.index: v for x, v in zip(tape.inputs, select(vertices, active), strict=True)}
            for node in tape.nodes:
                edges = partials.edges_of(node)
                if edges is None:
                    break
                found = [(v, p) for x, p in edges if (v := places[x.index]) is not None]
                places[node.index] = self.vertex(found, node.dtype)
            else:
                return outs, [None if x is ZERO else places[x.index] for x in tape.outputs]
        return self._forward(eqn, bind, values, vertices)

    def _forward(
        self, eqn: Eqn, bind: Any, values: Sequence[Any], vertices: Vertices
    ) -> tuple[list[Any], list[int | None]]:
        """The same of an operation on numbers, or of a loop: its derivatives in forward mode, all at once."""
        active = [v is not None for v in vertices]
        own = select(vertices, active)
        if not (_of_numbers(eqn, active) or _works_elementwise(eqn, active)):
            raise NotElementwise(eqn)
        basis = [_unit(i, len(own), a.aval) for i, a in enumerate(select(eqn.invars, active))]
        outs, columns = columns_of(eqn.primitive, bind, values, active, basis)
        places: list[int | None] = []
        for x, column in zip(outs, columns, strict=True):
            if column is ZERO:
                places.append(None)
                continue
            if dtypes.is_complex(x.dtype):
                raise NotElementwise(eqn)
            edges = [(v, reshape(slice_in_dim(column, i, i + 1, 0), x.shape)) for i, v in enumerate(own)]
            places.append(self.vertex(edges, x.dtype))
        return outs, places


def _of_numbers(eqn: Eqn, active: Sequence[bool]) -> bool:
    """Whether the active operands of an equation and its results are numbers."""
    atoms = [*select(eqn.invars, active), *eqn.outvars]
    return all(a.aval.shape == () for a in atoms if dtypes.is_inexact(a.aval.dtype))


def _works_elementwise(eqn: Eqn, active: Sequence[bool]) -> bool:
    """Whether an operation that holds programs, such as a loop, works element for element."""
    stepped = programs_in_step(eqn.primitive, eqn.params)
    for closed, first, _ in stepped:
        inputs = zip(eqn.invars[first:], active[first:], closed.in_avals, strict=True)
        if any(flag and a.aval.shape != aval.shape for a, flag, aval in inputs):
            return False  # it goes over the elements of an operand
        outs = [v.aval for v in eqn.outvars if dtypes.is_inexact(v.aval.dtype)]
        if [a.shape for a in outs] != [a.shape for a in closed.out_avals if dtypes.is_inexact(a.dtype)]:
            return False  # it stacks results
        if not is_elementwise(closed):
            return False
    return bool(stepped)


@cached_by_jaxpr
def is_elementwise(closed: ClosedJaxpr) -> bool:
    """Whether a program works element for element on all of its real inputs."""
    if any(dtypes.is_complex(a.dtype) for a in closed.in_avals):
        return False
    active = [dtypes.is_inexact(a.dtype) for a in closed.in_avals]
    try:
        stage_flat(closed, partial(_recorded, flattened(closed), active), closed.in_avals)
    except REFUSALS:
        return False
    return True


def _recorded(closed: ClosedJaxpr, active: Sequence[bool], *primals: Any) -> list[Any]:
    return record(closed, active, primals).outs


class Recorded(NamedTuple):
    """A program that ran, and its computational graph.

    Attributes:
      outs: the results.
      places: the vertex of each result; None for one that does not depend on the inputs.
      recorder: has the graph.
    """

    outs: list[Any]
    places: list[int | None]
    recorder: Recorder


def useful_variables(jaxpr: Jaxpr) -> set[Any]:
    """The real and complex variables on which such results depend, not by way of tests and integers alone."""
    useful: set[Any] = {a for a in jaxpr.outvars if dtypes.is_inexact(a.aval.dtype)}
    for eqn in reversed(jaxpr.eqns):
        if not useful.isdisjoint(eqn.outvars):
            useful.update(a for a in eqn.invars if dtypes.is_inexact(a.aval.dtype))
    return useful


def record(closed: ClosedJaxpr, active: Sequence[bool], primals: Sequence[Any]) -> Recorded:
    """Run a program, and make its computational graph.

    Raises:
      NotElementwise: an equation does not work element for element.
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
            counts = not useful.isdisjoint(eqn.outvars)
            outs, places = recorder.run(eqn, values, [vertices.get(a) if counts else None for a in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
            vertices.update(zip(eqn.outvars, places, strict=True))
    finally:
        state.source_loc = outer
    results = [env[a] if type(a) is Var else a.val for a in jaxpr.outvars]  # type: ignore[union-attr]
    return Recorded(results, [vertices.get(a) for a in jaxpr.outvars], recorder)


def _by_elimination(
    closed: ClosedJaxpr, active: Sequence[bool], order: str, entries: list[Entry], *primals: Any
) -> list[Any]:
    """The results of a program of operations on elements, and the arrays of its Jacobian."""
    outs, places, recorder = record(closed, active, primals)
    where = [i for i, flag in enumerate(active) if flag]
    results = [(i, recorder.vertex([(v, 1)], recorder.dtypes[v])) for i, v in enumerate(places) if v is not None]
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
    return sum(a.size for a in avals if dtypes.is_inexact(a.dtype))


def _fewer_columns(closed: ClosedJaxpr, active: Sequence[bool], order: str) -> bool:
    if order != "markowitz":
        return order == "forward"
    return _inexact(select(closed.in_avals, active)) <= _inexact(closed.out_avals)


def _check_real(closed: ClosedJaxpr, active: Sequence[bool], name: str) -> None:
    """Refuse complex inputs and results."""
    made = {v: eqn for eqn in closed.jaxpr.eqns for v in eqn.outvars}
    for a in (*select(closed.jaxpr.invars, active), *closed.jaxpr.outvars):
        if dtypes.is_complex(a.aval.dtype):
            eqn = made.get(a)
            what = "an argument" if eqn is None else f"the result of {eqn.primitive} at {source.describe(eqn.made_at)}"
            raise PreaccumulationError(
                f"preaccumulate of {name}: local Jacobians are of real numbers, but {what} is {a.aval}. Take real and "
                "imaginary parts apart, or leave preaccumulate out."
            )


def _check_size(closed: ClosedJaxpr, active: Sequence[bool], name: str, most: int, eqn: Eqn) -> None:
    """Refuse a local Jacobian that would be large, because of an equation that does not work element for element."""
    columns, rows = _inexact(select(closed.in_avals, active)), _inexact(closed.out_avals)
    if columns * rows > most:
        raise PreaccumulationError(
            f"preaccumulate of {name}: the local Jacobian would have {rows:,} rows and {columns:,} columns, more than "
            f"{most:,} entries, since {eqn.primitive} at {source.describe(eqn.made_at)} does not work element "
            "for element. Take a part of few inputs or few results, map the function over its points with vmap, or "
            "leave preaccumulate out."
        )


def columns_of(
    function: Any, run: Any, values: Sequence[Any], active: Sequence[bool], basis: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The results of ``run(*values)``, and batches of their tangents, for a batch of those of the active values."""
    kept: list[bool] = []

    def forward(*given: Any) -> list[Any]:
        outs, ts = jvp_flat(function, run, values, scatter_where(active, given, ZERO))
        kept[:] = [t is not ZERO for t in ts]
        return [*outs, *[t for t in ts if t is not ZERO]]

    count = basis[0].shape[0]
    found, at = batch_flat(function, forward, MappedAxis(None, count), basis, [0] * len(basis))
    size = len(kept)
    outs = [x if d is None else _first(x, d) for x, d in zip(found[:size], at[:size], strict=True)]
    columns = [_in_front(t, d, count) for t, d in zip(found[size:], at[size:], strict=True)]
    return outs, scatter_where(kept, columns, ZERO)


def _in_front(x: Any, dim: int | None, count: int) -> Any:
    """A batch with its axis first; what is the same for all is repeated."""
    return broadcast_to(x, (count, *x.shape)) if dim is None else moveaxis(x, dim, 0)


def _first(x: Any, dim: int) -> Any:
    """The value of one example of several equal ones."""
    return reshape(slice_in_dim(x, 0, 1, dim), (*x.shape[:dim], *x.shape[dim + 1 :]))


def _unit(index: int, count: int, aval: ShapedArray) -> Any:
    """Of ``count`` directions the tangents of one of as many values: ones in its own direction, else zeros."""
    own = convert_element_type(eq_p.bind(iota(np.int32, (count,), 0), index), dtypes.tangent_dtype(aval.dtype))
    return broadcast_in_dim(own, (count, *aval.shape), (0,))


def _basis(avals: Sequence[ShapedArray], count: int) -> list[Any]:
    """The unit vectors of the space of some values, as one batch of each; they are computed in the program."""
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
    """The parts of an array whose leading axis goes over the elements of some values, with their axes in its place."""
    parts, start = [], 0
    for aval in avals:
        part = slice_in_dim(block, start, start + aval.size, 0)
        parts.append(reshape(part, (*aval.shape, *block.shape[1:])))
        start += aval.size
    return parts


def _by_columns(closed: ClosedJaxpr, active: Sequence[bool], entries: list[Entry], *primals: Any) -> list[Any]:
    """The results of a program, and its Jacobian by forward mode."""
    where = [i for i, flag in enumerate(active) if flag]
    avals = select(closed.in_avals, active)
    basis = _basis(avals, sum(a.size for a in avals))
    outs, columns = columns_of(closed, jaxpr_as_fun(closed), primals, active, basis)
    arrays = []
    for r, column in enumerate(columns):
        if column is not ZERO:
            for i, part in zip(where, _split(column, avals), strict=True):
                entries.append(Entry(r, i, None, tuple(range(len(closed.in_avals[i].shape)))))
                arrays.append(part)
    return [*outs, *arrays]


def _by_rows(closed: ClosedJaxpr, active: Sequence[bool], entries: list[Entry], *primals: Any) -> list[Any]:
    """The results of a program, and its Jacobian by reverse mode."""
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
        for r, part, aval in zip(results, _split(_in_front(x, dim, count), avals), avals, strict=True):
            axes = tuple(range(len(aval.shape), len(part.shape)))
            entries.append(Entry(r, i, None, axes))
            arrays.append(convert_element_type(part, aval.dtype))
    return [*outs, *arrays]
