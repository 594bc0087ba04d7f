"""Compressed products: the elements of a sparse derivative from a few products in forward or reverse mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback.core import dtypes
from pullback.core.array import ArrayImpl, typeof
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.types import ShapedArray
from pullback.core.zeros import densify
from pullback.derivatives.patterns.colouring import Colouring, Forest
from pullback.derivatives.patterns.reading import read
from pullback.primitives.arrays import shapes
from pullback.primitives.elementwise import add_any, convert_element_type
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.debugging.compile_time import ensure_compile_time_eval
from pullback.transforms.traces.forward import jvp_flat
from pullback.transforms.traces.inlining import flattened
from pullback.transforms.traces.linearize import linearize_flat
from pullback.transforms.traces.stage import stage_flat

MOST_MASKED = 50_000_000
"""The largest total size of a program's values for which nonzero masks are computed, at a byte per element."""

Run = Callable[..., Sequence[Any]]

FOLDED = 1_000_000
"""Up to this many elements, linear operations are applied to the seed vectors during tracing.

The compiled program then holds the results as constants instead of these operations: a convolution's Jacobian takes a
fifth of the time, a reaction-diffusion equation's half. With more elements, the constants would take too much memory.
"""


def elements(
    run: Run, primals: Sequence[Any], colouring: Colouring, chunk_size: int | None, fun: Any, fold: bool = True
) -> Any:
    """Return a vector of the elements of a derivative that are in the pattern, in the pattern's order.

    Args:
      run: the function, from flat arrays to a list of arrays.
      primals: the arguments at which to differentiate.
      colouring: the pattern and its colours.
      chunk_size: the number of products to compute at a time; None for all.
      fun: the user's function, for error messages.
      fold: whether linear operations may be applied to the constant seed vectors during tracing. It is False if the
        function refers to a named axis.
    """
    of_columns, of_rows = colouring.counts
    positions = colouring.positions
    if not of_columns + of_rows:
        run(*primals)  # for its effects
        return pnp.zeros(len(positions), primals[0].dtype if primals else None)

    def products(*xs: Any) -> list[Any]:
        parts: list[Any] = []
        with ensure_compile_time_eval() if small else nullcontext():
            if of_columns:
                parts.append(_pushed(run, xs, colouring.columns, of_columns, chunk_size, fun))
            if of_rows:
                parts.append(_pulled(run, xs, colouring.rows, of_rows, chunk_size, fun))
            return [parts[0] if len(parts) == 1 else pnp.concatenate(parts)]

    size = of_columns * len(colouring.columns) + of_rows * len(colouring.rows)
    small = fold and max(size, len(positions)) <= FOLDED
    program = flattened(stage_flat(fun, products, list(map(typeof, primals)))) if small else None
    if program is None or not _may_read(program):
        (flat,) = products(*primals)
        found = flat[_narrow(positions, flat.shape[0])]
    else:
        with ensure_compile_time_eval():
            found = read(program, primals, positions)
    return found if colouring.forest is None else _resolved(found, colouring.forest)


def _may_read(program: ClosedJaxpr) -> bool:
    """Return whether selected elements of the program's results may be computed without computing the other elements.

    This needs a program that has no effects, and whose values are not too large.
    """
    sizes = [math.prod(v.aval.shape) for eqn in program.eqns for v in eqn.outvars]
    return sum(sizes) <= MOST_MASKED and not any(eqn.effect for eqn in program.eqns)


def _narrow(positions: Any, size: int) -> Any:
    return positions.astype(np.int32) if size < 2**31 else positions


def _pushed(run: Run, primals: Sequence[Any], colours: Any, count: int, chunk: int | None, fun: Any) -> Any:
    """Multiply a Jacobian by a seed vector for each colour of columns, by forward mode.

    The seed of a colour is 1 at the columns of this colour, and 0 at other columns.

    Args:
      run: the function, from flat arrays to a list of arrays.
      primals: the arguments at which to differentiate.
      colours: the colour of each column.
      count: the number of colours.
      chunk: the number of products to compute at a time; None for all.
      fun: the user's function, for error messages.

    Returns:
      The products of all colours, concatenated to one vector.
    """
    avals = [typeof(x) for x in primals]

    def product(*tangents: Any) -> Any:
        outs, ts = jvp_flat(fun, run, primals, tangents)
        return _joined(densify(ts, [typeof(x) for x in outs]))

    return _along(product, _seeds(colours, count, avals), chunk)


def _pulled(run: Run, primals: Sequence[Any], colours: Any, count: int, chunk: int | None, fun: Any) -> Any:
    """Multiply a seed vector for each colour of rows by a Jacobian, by reverse mode.

    The seed of a colour is 1 at the rows of this colour, and 0 at other rows.

    Args:
      run: the function, from flat arrays to a list of arrays.
      primals: the arguments at which to differentiate.
      colours: the colour of each row.
      count: the number of colours.
      chunk: the number of products to compute at a time; None for all.
      fun: the user's function, for error messages.

    Returns:
      The products of all colours, concatenated to one vector.
    """
    outs, program = linearize_flat(fun, run, primals, [True] * len(primals))
    avals = [typeof(x) for x in outs]

    def product(*cotangents: Any) -> Any:
        return _joined(densify(program.transpose(cotangents, add_any), [v.aval for v in program.inputs]))

    return _along(product, _seeds(colours, count, avals), chunk)


def _joined(parts: Sequence[Any]) -> Any:
    """Flatten arrays, promote them to one dtype, and concatenate them to one vector."""
    dtype = np.result_type(*[x.dtype for x in parts])
    flat = [convert_element_type(shapes.reshape(x, (x.size,)), dtype) for x in parts]
    return flat[0] if len(flat) == 1 else pnp.concatenate(flat)


def _along(product: Callable[..., Any], seeds: Sequence[Any], chunk: int | None) -> Any:
    """Apply ``product`` to each slice of the seeds along their leading axis; return all results as one vector.

    Args:
      product: a function of one slice of each array of seeds, which returns a vector.
      seeds: arrays with equally many slices.
      chunk: the number of slices to compute at a time; None for all.
    """
    out = vmap(product, chunk_size=chunk)(*seeds)
    return shapes.reshape(out, (out.size,))


def _seeds(colours: Any, count: int, avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the seeds of all colours: for each of ``avals`` an array of shape ``(count, *shape)``.

    Slice k is 1 at the elements of colour k, and 0 at the others.

    Args:
      colours: the colour of each element of all arrays, one array after the other.
      count: the number of colours.
      avals: the types of the arrays.
    """
    seeds = []
    start = 0
    for aval in avals:
        own_colours = colours[start : start + aval.size].reshape(aval.shape)
        start += aval.size
        numbers = np.arange(count, dtype=np.int32).reshape(count, *(1,) * len(aval.shape))
        dtype = dtypes.tangent_dtype(aval.dtype)
        if count * aval.size <= FOLDED:
            seeds.append(ArrayImpl((own_colours[None] == numbers).astype(dtype)))
        else:  # computed by the program, instead of constants in it
            seeds.append(convert_element_type(pnp.asarray(own_colours)[None] == pnp.asarray(numbers), dtype))
    return seeds


def _resolved(read: Any, forest: Forest) -> Any:
    """Compute the elements of a Hessian from entries of its products with the seeds of an acyclic colouring.

    In an acyclic colouring each element of the Hessian is an edge of a tree. The element is the sum of the entries of
    this edge and of all edges below it, with alternating signs.

    Args:
      read: the entry of each edge.
      forest: the trees.

    Returns:
      A vector of the elements, in the order of the pattern.
    """
    signs = pnp.asarray(forest.signs.astype(np.int8)).astype(read.dtype)
    total = read * signs
    for jump in forest.jumps():
        moving = np.flatnonzero(jump >= 0)
        total = total.at[jump[moving]].add(total[moving])
    return (total * signs)[forest.elements]
