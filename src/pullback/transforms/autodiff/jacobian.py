"""Jacobians and Hessians: derivatives along all basis vectors in one batch, or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import ArrayImpl, typeof
from pullback.core.errors import AllocationError, NotDifferentiableError
from pullback.core.trace import state
from pullback.core.types import ShapedArray
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.slicing import concatenate, iota, slice_in_dim
from pullback.primitives.elementwise import add, eq, indicator
from pullback.transforms.autodiff.saving import auto_preaccumulated, check_preaccumulate
from pullback.transforms.autodiff.vjp_functions import transposed
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.api_boundary import Transformed
from pullback.transforms.functions.arguments import (
    Argnums,
    check_chunk_size,
    dense,
    name_of,
)
from pullback.transforms.functions.flat_function import (
    DerivativeOptions,
    FlatFunction,
    differentiable,
    unflatten_arguments,
)
from pullback.transforms.traces.forward import Direction, jvp_flat
from pullback.transforms.traces.linearize import linearize_flat


def jacfwd(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., PyTree]:
    """Make a function that computes the Jacobian of ``fun`` by columns, in forward mode: for functions with few inputs.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data.
      holomorphic: the promise that ``fun`` is holomorphic; its inputs are then complex.
      chunk_size: the number of columns to compute at a time, which bounds memory use; by default all.

    Returns:
      A function of the same arguments that returns, for each leaf of the output, a tree like the arguments ``argnums``,
      of arrays of shape ``output shape + input shape``.

    Raises:
      NotDifferentiableError: an input that is not real, or not complex with ``holomorphic`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jacfwd
    >>> print(jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    options = DerivativeOptions.checked("jacfwd", argnums, has_aux, holomorphic)
    return _jacfwd(fun, options, chunk_size)


def _jacfwd(fun: Callable[..., Any], options: DerivativeOptions, chunk_size: int | None) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of ``fun`` in forward mode, ``chunk_size`` columns at a time."""
    name, _, _, holomorphic, _ = options
    require_function(name, "fun", fun)
    check_chunk_size(chunk_size, name)

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat, primals = differentiable(FlatFunction, fun, options, args, kwargs)
        _check_real(primals, holomorphic, name, "input", fun)
        outs: list[Any] = []

        def push(*tangents: Any) -> Any:
            # The auxiliary output is returned for all columns, so that it must not depend on the direction.
            values, ts = jvp_flat(fun, flat, primals, tangents, Direction.MANY if flat.has_aux else Direction.ONE)
            outs[:] = values  # not mapped, since the primals are not
            return [dense(t, x) for t, x in zip(ts[: flat.count], values, strict=False)]

        columns = _along_basis(push, primals, chunk_size, -1, name)
        avals = [typeof(x) for x in primals]
        rows = [
            unflatten_arguments(options.argnums, flat.in_tree, split_axis(c, avals, c.shape[:-1], last=True))
            for c in columns
        ]
        jacobian = flat.result(rows)
        return (jacobian, flat.aux(outs)) if flat.has_aux else jacobian

    return Transformed(fun, jacobian_of, _jacfwd, options, chunk_size)


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | None = None,
    *,
    preaccumulate: str | None = None,
) -> Callable[..., PyTree]:
    """Make a function that computes the Jacobian of ``fun`` by rows, in reverse mode: for functions with few outputs.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data.
      holomorphic: the promise that ``fun`` is holomorphic; its outputs are then complex.
      allow_int: whether to accept integer and boolean inputs, whose derivatives have dtype ``float0``.
      chunk_size: the number of rows to compute at a time, which bounds memory use; by default all.
      preaccumulate: ``"auto"`` stores local Jacobians of regions of ``fun``, as for :func:`grad`.

    Returns:
      A function of the same arguments that returns, for each leaf of the output, a tree like the arguments ``argnums``,
      of arrays of shape ``output shape + input shape``.

    Raises:
      NotDifferentiableError: an output that is not real, or not complex with ``holomorphic`` (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jacrev
    >>> print(jacrev(lambda x: x**2)(jnp.array([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    options = DerivativeOptions.checked("jacrev", argnums, has_aux, holomorphic, allow_int)
    return _jacrev(fun, options, chunk_size, preaccumulate)


def _jacrev(
    fun: Callable[..., Any], options: DerivativeOptions, chunk_size: int | None, preaccumulate: str | None = None
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of ``fun`` in reverse mode, ``chunk_size`` rows at a time."""
    name, _, _, holomorphic, _ = options
    require_function(name, "fun", fun)
    check_chunk_size(chunk_size, name)
    check_preaccumulate(name, preaccumulate)

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        flat, primals = differentiable(FlatFunction, fun, options, args, kwargs)
        active = [dtypes.is_inexact(x.dtype) for x in primals]
        inputs = [x for x, a in zip(primals, active, strict=True) if a]
        run = flat if preaccumulate is None else auto_preaccumulated(fun, flat, primals, name)
        outs, program = linearize_flat(fun, run, primals, active)
        values = outs[: flat.count]
        program.outputs = program.outputs[: flat.count]
        _check_real(values, holomorphic, name, "output", fun)

        def pull(*cts: Any) -> list[Any]:
            return [dense(t, x) for t, x in zip(transposed(program, cts, values), inputs, strict=True)]

        if len(values) == 1 and values[0].size == 1:
            # A single row needs no batch.
            rows = [shapes.reshape(r, (1, *r.shape)) for r in pull(_one(values[0]))]
        else:
            rows = _along_basis(pull, values, chunk_size, 0, name)
        avals = [typeof(x) for x in values]
        blocks = iter([split_axis(r, avals, r.shape[1:], last=False) for r in rows])
        by_input = [
            next(blocks) if a else [np.zeros((*v.shape, *x.shape), dtypes.float0) for v in values]
            for x, a in zip(primals, active, strict=True)
        ]
        leaves = [[block[i] for block in by_input] for i in range(len(values))]
        rows = [unflatten_arguments(options.argnums, flat.in_tree, leaf) for leaf in leaves]
        jacobian = flat.result(rows)
        return (jacobian, flat.aux(outs)) if flat.has_aux else jacobian

    return Transformed(fun, jacobian_of, _jacrev, options, chunk_size, preaccumulate)


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., PyTree]:
    """Make a function that computes the Hessian of ``fun``, forward over reverse.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data, which is returned with the Hessian.
      holomorphic: the promise that ``fun`` is holomorphic; its inputs and outputs are then complex.
      chunk_size: the number of columns to compute at a time, which bounds memory use; by default all.

    Returns:
      A function that returns, for each leaf of the output, a tree of trees like the arguments ``argnums``.

    >>> import pullback.numpy as jnp
    >>> from pullback import hessian
    >>> print(hessian(lambda x: jnp.sum(x**3))(jnp.array([1.0, 2.0])))
    [[ 6.  0.]
     [ 0. 12.]]
    """
    options = DerivativeOptions.checked("hessian", argnums, has_aux, holomorphic)
    return _jacfwd(_jacrev(fun, options, None), options, chunk_size)


def _check_real(values: Sequence[Any], holomorphic: bool, transformation: str, what: str, fun: Any) -> None:
    """Raise if a value has a dtype that a Jacobian does not allow.

    With ``holomorphic``, all values must be complex. Otherwise inputs must not be complex, and outputs must be real
    floats.

    Args:
      values: the inputs or outputs of ``fun``.
      holomorphic: whether the user promised that ``fun`` is holomorphic.
      transformation: the name of the transformation, for the error message.
      what: "input" or "output".
      fun: the function, for the error message.
    """
    for x in values:
        if holomorphic and not dtypes.is_complex(x.dtype):
            wrong, hint = f"needs complex {what}s when holomorphic=True", "Leave holomorphic out for a real function."
        elif not holomorphic and dtypes.is_complex(x.dtype):
            wrong = f"needs real {what}s"
            hint = "If the function is holomorphic, pass holomorphic=True; otherwise use jvp or vjp."
        elif what == "output" and not dtypes.is_inexact(x.dtype):
            wrong, hint = "needs real or complex outputs", "Convert it to a float."
        else:
            continue
        raise NotDifferentiableError(
            f"{transformation} {wrong}, but {name_of(fun)} has an {what} of type {typeof(x)}. {hint}"
        )


def _one(x: Any) -> Any:
    """Return an array of ones with the shape and dtype of ``x``."""
    return shapes.full(x.shape, 1, x.dtype)


def _along_basis(
    function: Callable[..., Any], values: Sequence[Any], chunk_size: int | None, axis: int, transformation: str
) -> list[Any]:
    """Apply a linear function to all standard basis vectors of its arguments, by ``vmap``; return the stacked results.

    A basis vector is a list of arrays: one element of one array is 1, and all other elements are 0.

    Args:
      function: takes as many arrays as ``values`` has, and returns a list of arrays.
      values: arrays with the shapes and dtypes of the function's arguments.
      chunk_size: the number of basis vectors to map over at a time; None for all.
      axis: the position, in each result, of the new axis that runs over the basis vectors.
      transformation: the name of the transformation, for error messages.
    """
    total = sum(x.size for x in values)
    step = chunk_size or max(total, 1)
    chunks = []
    for start in range(0, max(total, 1), step):
        stop = min(start + step, total)
        try:
            chunk = standard_basis(values, start, stop)
        except MemoryError as error:
            raise AllocationError(
                f"{transformation}: no memory for {stop - start} basis vectors of {total} elements ({error}); "
                "pass chunk_size to compute fewer at a time"
            ) from None
        chunks.append(vmap(function, out_axes=axis, axis_size=stop - start)(*chunk))
    if len(chunks) == 1:
        return chunks[0]  # type: ignore[no-any-return]
    return [concatenate(xs, axis % len(xs[0].shape)) for xs in zip(*chunks, strict=True)]


def standard_basis(values: Sequence[Any], start: int, stop: int) -> list[Any]:
    """Return the basis vectors ``start`` to ``stop - 1`` of the space of the arrays ``values``.

    A basis vector has an array for each of ``values``: one element of one array is 1, and all others are 0. The vectors
    are stacked: each array that is returned has a new first axis of size ``stop - start``.
    """
    basis: list[Any] = []
    offset = start
    count = stop - start
    for x in values:
        dtype = dtypes.tangent_dtype(x.dtype)
        if state.trace.eager:
            basis.append(ArrayImpl(np.eye(count, x.size, offset, dtype).reshape(count, *x.shape)))
        else:  # computed, so that the compiler fuses it with its uses instead of storing a constant
            rows = iota(np.int32, (count, *(1,) * len(x.shape)), 0)
            rows = add(rows, offset) if offset else rows
            columns = shapes.reshape(iota(np.int32, (x.size,), 0), (1, *x.shape))
            basis.append(indicator(eq(rows, columns), dtype))
        offset -= x.size
    return basis


def split_axis(x: Any, avals: Sequence[ShapedArray], rest: tuple[int, ...], last: bool) -> list[Any]:
    """Split the first or the last axis of ``x``, which runs over the elements of several arrays, into a block for each.

    With ``avals`` of shapes (2, 3) and (4,), and ``rest`` (5,): ``x`` of shape (10, 5) -> blocks (2, 3, 5) and (4, 5).

    Args:
      x: the array to split.
      avals: the types of the several arrays.
      rest: the sizes of the other axes of ``x``.
      last: whether to split the last axis of ``x`` instead of the first.
    """
    if len(avals) == 1:
        return [shapes.reshape(x, rest + avals[0].shape if last else avals[0].shape + rest)]
    blocks = []
    start = 0
    for a in avals:
        stop = start + a.size
        block = slice_in_dim(x, start, stop, len(x.shape) - 1 if last else 0)
        blocks.append(shapes.reshape(block, rest + a.shape if last else a.shape + rest))
        start = stop
    return blocks
