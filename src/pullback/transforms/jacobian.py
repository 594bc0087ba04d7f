"""Jacobians and Hessians: derivatives along every basis vector, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import ArrayImpl, typeof
from pullback.core.errors import NotDifferentiableError
from pullback.core.types import ShapedArray
from pullback.primitives import shapes
from pullback.primitives.elementwise import add_any
from pullback.primitives.slicing import slice_in_dim
from pullback.transforms.arguments import (
    Argnums,
    check_argnums,
    check_callable,
    check_differentiable,
    dense,
    flatten_one,
    name_of,
    out_leaf,
    positions,
    split_aux,
    to_array,
    unflatten_one,
    wraps,
)
from pullback.transforms.forward import jvp_flat
from pullback.transforms.linearize import linearize_flat
from pullback.transforms.vmap import vmap


class _Point:
    """A function at a point, flat: the chosen arguments as arrays, and how to run it on others in their place."""

    def __init__(
        self, fun: Any, argnums: Any, args: Sequence[Any], kwargs: Any, has_aux: bool, holomorphic: bool, allow_int: bool, name: str
    ) -> None:  # fmt: skip
        where = positions(argnums, len(args), name, fun)
        self.single = isinstance(argnums, int)
        chosen = args[where[0]] if self.single else tuple(args[i] for i in where)
        leaves, self.in_tree = flatten_one(chosen)
        self.primals = [to_array(x, fun, name) for x in leaves]
        for i, x in enumerate(self.primals):
            place = f"leaf {i} of the arguments chosen by argnums"
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
    check_callable(fun, "jacfwd")
    chosen = check_argnums(argnums, "jacfwd")

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        point = _Point(fun, chosen, args, kwargs, has_aux, holomorphic, False, "jacfwd")
        _check_real(point.primals, holomorphic, "jacfwd", "input", fun)
        outs: list[Any] = []

        def push(*tangents: Any) -> Any:
            values, ts = jvp_flat(fun, point.run, point.primals, tangents)
            outs[:] = values  # The primals are not mapped, so neither are the values.
            return [dense(t, x) for t, x in zip(ts[: point.count], values, strict=False)]

        columns = vmap(push, out_axes=-1, chunk_size=chunk_size)(*_basis(point.primals))
        avals = [typeof(x) for x in point.primals]
        rows = [unflatten_one(point.in_tree, _split(c, avals, c.shape[:-1], last=True)) for c in columns]
        return point.result(unflatten_one(point.out_tree, rows), outs)

    return wraps(fun, jacobian_of)


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
    check_callable(fun, "jacrev")
    chosen = check_argnums(argnums, "jacrev")

    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        point = _Point(fun, chosen, args, kwargs, has_aux, holomorphic, allow_int, "jacrev")
        outs, program = linearize_flat(fun, point.run, point.primals)
        values = outs[: point.count]
        program.outputs = program.outputs[: point.count]
        _check_real(values, holomorphic, "jacrev", "output", fun)

        def pull(*cts: Any) -> list[Any]:
            return [dense(t, x) for t, x in zip(program.transpose(cts, add_any), point.primals, strict=True)]

        if len(values) == 1 and values[0].size == 1:
            # One row needs no batch.
            rows = [shapes.reshape(r, (1, *r.shape)) if r.dtype != dtypes.float0 else r[None] for r in pull(_one(values[0]))]  # fmt: skip
        else:
            rows = vmap(pull, chunk_size=chunk_size)(*_basis(values))
        avals = [typeof(x) for x in values]
        by_input = [_split(r, avals, r.shape[1:], last=False) for r in rows]
        jacobian = [unflatten_one(point.in_tree, leaf) for leaf in zip(*by_input, strict=True)]
        return point.result(unflatten_one(point.out_tree, jacobian), outs)

    return wraps(fun, jacobian_of)


jacobian = jacrev


def hessian(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The Hessian of a function, forward over reverse. See :func:`jacfwd` for the arguments.

    Returns:
      A function that gives, for each leaf of the output, a tree of trees like the chosen arguments.

    >>> import pullback.numpy as pnp
    >>> print(hessian(lambda x: pnp.sum(x**3))(pnp.array([1.0, 2.0])))
    [[ 6.  0.]
     [ 0. 12.]]
    """
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic, chunk_size)


def _check_real(values: Sequence[Any], holomorphic: bool, transformation: str, what: str, fun: Any) -> None:
    for x in values:
        if holomorphic and not dtypes.is_complex(x.dtype):
            raise NotDifferentiableError(
                f"{transformation} with holomorphic=True needs complex {what}s, but {name_of(fun)} has an {what} {typeof(x)}"
            )
        if not holomorphic and dtypes.is_complex(x.dtype):
            raise NotDifferentiableError(
                f"{transformation} needs real {what}s, but {name_of(fun)} has an {what} {typeof(x)}. If the function is "
                "holomorphic, say so with holomorphic=True."
            )
        if what == "output" and not dtypes.is_inexact(x.dtype):
            raise NotDifferentiableError(
                f"{transformation} needs real or complex outputs, but {name_of(fun)} has an output {typeof(x)}"
            )


def _one(x: Any) -> Any:
    return shapes.full(x.shape, 1, x.dtype)


def _basis(values: Sequence[Any]) -> list[Any]:
    """The standard basis of the space of some arrays, along a new first axis of each."""
    sizes = [x.size for x in values]
    total = sum(sizes)
    basis = []
    start = 0
    for x, size in zip(values, sizes, strict=True):
        dtype = dtypes.tangent_dtype(x.dtype)
        if dtype == dtypes.float0:
            basis.append(np.zeros((total, *x.shape), dtype))
        else:
            basis.append(ArrayImpl(np.eye(total, size, -start, dtype).reshape(total, *x.shape)))
        start += size
    return basis


def _split(x: Any, avals: Sequence[ShapedArray], rest: tuple[int, ...], last: bool) -> list[Any]:
    """Cut the first (or last) axis of ``x`` into the elements of some arrays, and give each part their shapes."""
    if len(avals) == 1:
        return [shapes.reshape(x, rest + avals[0].shape if last else avals[0].shape + rest)]
    parts = []
    start = 0
    for a in avals:
        stop = start + a.size
        if isinstance(x, np.ndarray):
            part = x[..., start:stop] if last else x[start:stop]
            parts.append(part.reshape(rest + a.shape if last else a.shape + rest))
        else:
            part = slice_in_dim(x, start, stop, len(x.shape) - 1 if last else 0)
            parts.append(shapes.reshape(part, rest + a.shape if last else a.shape + rest))
        start = stop
    return parts


