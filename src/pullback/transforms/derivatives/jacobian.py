"""Jacobians and Hessians: derivatives along every basis vector, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import ArrayImpl, typeof
from pullback.core.errors import AllocationError, NotDifferentiableError
from pullback.core.types import ShapedArray
from pullback.primitives import shapes
from pullback.primitives.elementwise import add_any
from pullback.primitives.slicing import concatenate, slice_in_dim
from pullback.transforms.derivatives.vmap import vmap
from pullback.transforms.functions.arguments import (
    Argnums,
    argument_name,
    check_argnums,
    check_callable,
    check_chunk_size,
    check_differentiable,
    dense,
    flatten_one,
    name_of,
    out_leaf,
    positions,
    split_aux,
    to_arrays,
    transformed,
    unflatten_one,
)
from pullback.transforms.interpreters.forward import jvp_flat
from pullback.transforms.interpreters.linearize import linearize_flat

_Options = tuple[str, int | tuple[int, ...], bool, bool, bool]
"""The name of the transformation; ``argnums``, ``has_aux``, ``holomorphic`` and ``allow_int``."""


class _Point:
    """A function at a point, flat: the chosen arguments as arrays, and how to run it on others in their place."""

    def __init__(self, fun: Any, options: _Options, args: Sequence[Any], kwargs: Any) -> None:
        name, argnums, has_aux, holomorphic, allow_int = options
        where = positions(argnums, len(args), name, fun)
        self.single = isinstance(argnums, int)
        leaves, self.in_tree = flatten_one(args[where[0]] if self.single else tuple(args[i] for i in where))
        self.primals = to_arrays(leaves, name, fun, args, where)
        for i, x in enumerate(self.primals):
            place = partial(argument_name, i, fun, args, where)
            check_differentiable(typeof(x), name, fun, holomorphic, allow_int, place)
        self.fun, self.args, self.kwargs, self.where, self.has_aux = fun, args, kwargs, where, has_aux
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.count = 0

    def run(self, *tracers: Any) -> list[Any]:
        chosen = unflatten_one(self.in_tree, tracers)
        args = list(self.args)
        for i, x in zip(self.where, (chosen,) if self.single else chosen, strict=True):
            args[i] = x
        out = self.fun(*args, **self.kwargs)
        aux: list[Any] = []
        if self.has_aux:
            out, aux_value = split_aux(out, self.fun)
            aux, self.aux_tree = tree.flatten(aux_value)
        leaves, self.out_tree = flatten_one(out)
        self.count = len(leaves)
        return [out_leaf(x, self.fun) for x in leaves] + aux

    def result(self, jacobian: Any, outs: Sequence[Any]) -> Any:
        return (jacobian, tree.unflatten(self.aux_tree, outs[self.count :])) if self.has_aux else jacobian


def jacfwd(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian of a function, column by column in forward mode: for functions with few inputs.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of an output and anything else.
      holomorphic: the promise that ``fun`` is holomorphic; its inputs are then complex.
      chunk_size: how many columns to compute at a time, which bounds the memory that is used; all by default.

    Returns:
      A function of the same arguments that gives, for each leaf of the output, a tree like the chosen arguments, of
      arrays of shape ``output shape + input shape``.

    Raises:
      NotDifferentiableError: an input that is not real, or not complex with ``holomorphic`` (a TypeError).

    >>> import pullback.numpy as pnp
    >>> print(jacfwd(lambda x: x**2)(pnp.array([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    return _jacfwd(fun, ("jacfwd", check_argnums(argnums, "jacfwd"), has_aux, holomorphic, False), chunk_size)


def _jacfwd(fun: Callable[..., Any], options: _Options, chunk_size: int | None) -> Callable[..., Any]:
    name, _, _, holomorphic, _ = options
    check_callable(fun, name)
    check_chunk_size(chunk_size, name)

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point = _Point(fun, options, args, kwargs)
        _check_real(point.primals, holomorphic, name, "input", fun)
        outs: list[Any] = []

        def push(*tangents: Any) -> Any:
            values, ts = jvp_flat(fun, point.run, point.primals, tangents)
            outs[:] = values  # The primals are not mapped, so neither are the values.
            return [dense(t, x) for t, x in zip(ts[: point.count], values, strict=False)]

        columns = _along_basis(push, point.primals, chunk_size, -1, name)
        avals = [typeof(x) for x in point.primals]
        rows = [unflatten_one(point.in_tree, _split(c, avals, c.shape[:-1], last=True)) for c in columns]
        return point.result(unflatten_one(point.out_tree, rows), outs)

    return transformed(fun, jacobian_of, _jacfwd, options, chunk_size)


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Jacobian of a function, row by row in reverse mode: for functions with few outputs.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of an output and anything else.
      holomorphic: the promise that ``fun`` is holomorphic; its outputs are then complex.
      allow_int: whether to accept integer and boolean inputs, whose derivatives have dtype ``float0``.
      chunk_size: how many rows to compute at a time, which bounds the memory that is used; all by default.

    Returns:
      A function of the same arguments that gives, for each leaf of the output, a tree like the chosen arguments, of
      arrays of shape ``output shape + input shape``.

    Raises:
      NotDifferentiableError: an output that is not real, or not complex with ``holomorphic`` (a TypeError).

    >>> import pullback.numpy as pnp
    >>> print(jacrev(lambda x: x**2)(pnp.array([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    options = "jacrev", check_argnums(argnums, "jacrev"), has_aux, holomorphic, allow_int
    return _jacrev(fun, options, chunk_size)


def _jacrev(fun: Callable[..., Any], options: _Options, chunk_size: int | None) -> Callable[..., Any]:
    name, _, _, holomorphic, _ = options
    check_callable(fun, name)
    check_chunk_size(chunk_size, name)

    def jacobian_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point = _Point(fun, options, args, kwargs)
        active = [dtypes.is_inexact(x.dtype) for x in point.primals]
        inputs = [x for x, a in zip(point.primals, active, strict=True) if a]
        outs, program = linearize_flat(fun, point.run, point.primals, active)
        values = outs[: point.count]
        program.outputs = program.outputs[: point.count]
        _check_real(values, holomorphic, name, "output", fun)

        def pull(*cts: Any) -> list[Any]:
            return [dense(t, x) for t, x in zip(program.transpose(cts, add_any), inputs, strict=True)]

        if len(values) == 1 and values[0].size == 1:
            # One row needs no batch.
            rows = [shapes.reshape(r, (1, *r.shape)) for r in pull(_one(values[0]))]
        else:
            rows = _along_basis(pull, values, chunk_size, 0, name)
        avals = [typeof(x) for x in values]
        blocks = iter([_split(r, avals, r.shape[1:], last=False) for r in rows])
        by_input = [
            next(blocks) if a else [np.zeros((*v.shape, *x.shape), dtypes.float0) for v in values]
            for x, a in zip(point.primals, active, strict=True)
        ]
        leaves = [[block[i] for block in by_input] for i in range(len(values))]
        jacobian = [unflatten_one(point.in_tree, leaf) for leaf in leaves]
        return point.result(unflatten_one(point.out_tree, jacobian), outs)

    return transformed(fun, jacobian_of, _jacrev, options, chunk_size)


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Hessian of a function, forward over reverse.

    Args:
      fun: takes and returns trees of arrays.
      argnums: which positional arguments to differentiate with respect to.
      has_aux: whether ``fun`` returns a pair of an output and anything else, which is returned beside the Hessian.
      holomorphic: the promise that ``fun`` is holomorphic; its inputs and outputs are then complex.
      chunk_size: how many columns to compute at a time, which bounds the memory that is used; all by default.

    Returns:
      A function that gives, for each leaf of the output, a tree of trees like the chosen arguments.

    >>> import pullback.numpy as pnp
    >>> print(hessian(lambda x: pnp.sum(x**3))(pnp.array([1.0, 2.0])))
    [[ 6.  0.]
     [ 0. 12.]]
    """
    options = "hessian", check_argnums(argnums, "hessian"), has_aux, holomorphic, False
    return _jacfwd(_jacrev(fun, options, None), options, chunk_size)


def _check_real(values: Sequence[Any], holomorphic: bool, transformation: str, what: str, fun: Any) -> None:
    for x in values:
        if holomorphic and not dtypes.is_complex(x.dtype):
            wrong, hint = f"needs complex {what}s when holomorphic=True", "Leave holomorphic out for a real function."
        elif not holomorphic and dtypes.is_complex(x.dtype):
            wrong = f"needs real {what}s"
            hint = "If the function is holomorphic, say so with holomorphic=True; otherwise use jvp or vjp."
        elif what == "output" and not dtypes.is_inexact(x.dtype):
            wrong, hint = "needs real or complex outputs", "Convert it to a float."
        else:
            continue
        raise NotDifferentiableError(
            f"{transformation} {wrong}, but {name_of(fun)} has an {what} of type {typeof(x)}. {hint}"
        )


def _one(x: Any) -> Any:
    return shapes.full(x.shape, 1, x.dtype)


def _along_basis(
    function: Callable[..., Any], values: Sequence[Any], chunk_size: int | None, axis: int, transformation: str
) -> list[Any]:
    """A linear function mapped over the standard basis of the space of some arrays, some vectors at a time.

    Args:
      function: takes one vector for each array, and returns a list of arrays.
      values: the arrays.
      chunk_size: how many vectors there are at a time; None for all.
      axis: where the mapped axis goes in the results.
      transformation: its name, for error messages.
    """
    total = sum(x.size for x in values)
    step = chunk_size or max(total, 1)
    chunks = []
    for start in range(0, max(total, 1), step):
        stop = min(start + step, total)
        try:
            chunk = _basis(values, start, stop)
        except MemoryError as error:
            raise AllocationError(
                f"{transformation}: no memory for {stop - start} basis vectors of {total} elements ({error}); "
                "chunk_size computes fewer at a time"
            ) from None
        chunks.append(vmap(function, out_axes=axis, axis_size=stop - start)(*chunk))
    if len(chunks) == 1:
        return chunks[0]  # type: ignore[no-any-return]
    return [concatenate(parts, axis % len(parts[0].shape)) for parts in zip(*chunks, strict=True)]


def _basis(values: Sequence[Any], start: int, stop: int) -> list[Any]:
    """The vectors from ``start`` to ``stop`` of the standard basis, along a new first axis of each array."""
    basis = []
    offset = start
    for x in values:
        block = np.eye(stop - start, x.size, offset, dtypes.tangent_dtype(x.dtype))
        basis.append(ArrayImpl(block.reshape(stop - start, *x.shape)))
        offset -= x.size
    return basis


def _split(x: Any, avals: Sequence[ShapedArray], rest: tuple[int, ...], last: bool) -> list[Any]:
    """Cut the first (or last) axis of ``x`` into the elements of some arrays, and give each part their shapes."""
    if len(avals) == 1:
        return [shapes.reshape(x, rest + avals[0].shape if last else avals[0].shape + rest)]
    parts = []
    start = 0
    for a in avals:
        stop = start + a.size
        part = slice_in_dim(x, start, stop, len(x.shape) - 1 if last else 0)
        parts.append(shapes.reshape(part, rest + a.shape if last else a.shape + rest))
        start = stop
    return parts
