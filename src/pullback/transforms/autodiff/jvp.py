"""``jvp``: the value of a function and a directional derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, overload

from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import flag, require_function
from pullback.core.array import Array, typeof
from pullback.core.errors import ArgumentError, TangentMismatchError
from pullback.core.refs import RefCell
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import (
    argument_name,
    dense,
    name_of,
    to_arrays,
    to_tangent,
)
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.batch import BatchTracer
from pullback.transforms.traces.forward import Direction, jvp_flat
from pullback.transforms.traces.refs import WithRefs, check_aliases, content_of, write_all

R = TypeVar("R")
S = TypeVar("S")


@overload
def jvp(fun: Callable[..., R], primals: PyTree, tangents: PyTree, has_aux: Literal[False] = False) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, S]], primals: PyTree, tangents: PyTree, has_aux: Literal[True]
) -> tuple[R, R, S]: ...
@overload
def jvp(fun: Callable[..., Any], primals: PyTree, tangents: PyTree, has_aux: bool) -> Any: ...
@api_boundary
def jvp(fun: Callable[..., Any], primals: PyTree, tangents: PyTree, has_aux: bool = False) -> Any:
    """Return the value of a function and the tangent of its output.

    Args:
      fun: takes and returns trees of arrays.
      primals: a tuple or list of the arguments.
      tangents: a tuple or list of their tangents: the same trees, shapes and dtypes (``float0`` for integers and
        booleans).
      has_aux: whether ``fun`` returns a pair of an output and auxiliary data.

    Returns:
      ``(out, tangent_out)``, or ``(out, tangent_out, aux)``.

    Raises:
      TangentMismatchError: a tangent of another tree, shape or dtype; the message names the argument (a TypeError).

    >>> import pullback.numpy as jnp
    >>> from pullback import jvp
    >>> out, tangent = jvp(jnp.sin, (0.0,), (1.0,))
    >>> print(out, tangent)
    0.0 1.0
    """
    require_function("jvp", "fun", fun)
    has_aux = flag("jvp", "has_aux", has_aux)
    arrays, ts, in_tree, refs = _pairs(fun, primals, tangents)
    flat = FlatFunction(fun, in_tree, has_aux=has_aux)
    run = WithRefs(flat, list(refs)) if refs else flat
    outs, out_ts = jvp_flat(fun, run, arrays, ts, _direction(arrays, ts))
    count = flat.count
    if refs:
        outs, out_ts = _without_refs(outs, out_ts, refs)
    dense_ts = [dense(t, x) for t, x in zip(out_ts[:count], outs[:count], strict=True)]
    return (flat.result(outs), flat.result(dense_ts), *((flat.aux(outs),) if has_aux else ()))


def _direction(primals: Sequence[Any], tangents: Sequence[Any]) -> Direction:
    """Return ``Direction.MANY`` if an enclosing ``vmap`` maps the tangent of a primal, but not the primal.

    Otherwise return ``Direction.ONE``: each primal has a single tangent. Some derivative rules need this.
    """
    mapped = any(type(t) is BatchTracer and type(x) is not BatchTracer for x, t in zip(primals, tangents, strict=True))
    return Direction.MANY if mapped else Direction.ONE


Refs = dict[int, tuple[Any, Any]]
"""References among the leaves of the arguments, by index, each with the reference of its tangent."""


def _without_refs(outs: list[Any], out_ts: list[Any], refs: Refs) -> tuple[list[Any], list[Any]]:
    """Write the final contents of references, and of the references of their tangents; return the other results.

    Args:
      outs, out_ts: the results and their tangents; the last ones are the final contents of the references.
      refs: the pairs of a reference and the reference of its tangent.

    Returns:
      The results and the tangents without the final contents.
    """
    count = len(outs) - len(refs)
    write_all([x for x, _ in refs.values()], outs[count:])
    write_all([t for _, t in refs.values()], list(map(dense, out_ts[count:], outs[count:])))
    return outs[:count], out_ts[:count]


def _pairs(fun: Any, primals: Any, tangents: Any) -> tuple[list[Any], list[Any], Any, Refs]:
    """Flatten and check the arguments and tangents of ``jvp``.

    Returns:
      A tuple of four: the leaves of the arguments; the leaves of their tangents; the tree of the arguments, or None if
      each argument is a single array; and the references. The last is a dict from the index of a leaf to a pair: the
      reference there, and the reference of its tangent. Both lists of leaves have the contents of these references.
    """
    for what, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            raise ArgumentError(
                f"jvp takes {what} as a tuple or list, one entry for each argument of {name_of(fun)}, "
                f"got {values!r} of type {type(values).__name__}"
            )
    for x, t in zip(primals, tangents):  # fast path: arrays that match need no trees
        if not (isinstance(x, Array) and isinstance(t, Array) and x.shape == t.shape and x.dtype is t.dtype):
            break
        if not dtypes.is_inexact(x.dtype):
            break
    else:
        if len(primals) == len(tangents):
            return list(primals), list(tangents), None, {}
    return _flat_pairs(fun, primals, tangents)


def _flat_pairs(fun: Any, primals: Any, tangents: Any) -> tuple[list[Any], list[Any], Any, Refs]:
    """Flatten and check the arguments and tangents of ``jvp``, which may be any trees.

    Return the same tuple of four as :func:`_pairs`.
    """
    leaves, in_tree = tree.flatten(tuple(primals))
    t_leaves, t_tree = tree.flatten(tuple(tangents))
    if in_tree != t_tree:
        raise TangentMismatchError(
            f"jvp of {name_of(fun)}: primals and tangents must have the same tree, got primals {in_tree} and "
            f"tangents {t_tree}"
        )
    refs = {i: (x, t) for i, (x, t) in enumerate(zip(leaves, t_leaves, strict=True)) if _are_refs(fun, x, t)}
    check_aliases([ref for pair in refs.values() for ref in pair], f"jvp of {name_of(fun)}")
    for i, (x, t) in refs.items():
        leaves[i], t_leaves[i] = content_of(x), content_of(t)
    arrays = to_arrays(leaves, "jvp", fun, primals)

    def describe(index: int) -> str:
        return f"jvp of {name_of(fun)}, {argument_name(index, fun, primals)}"

    pairs = enumerate(zip(arrays, t_leaves, strict=True))
    ts = [to_tangent(t, typeof(x), "tangent", partial(describe, i)) for i, (x, t) in pairs]
    return arrays, ts, in_tree, refs


def _are_refs(fun: Any, x: Any, t: Any) -> bool:
    """Whether an argument ``x`` and its tangent ``t`` are references; raise if only one of them is a reference."""
    if isinstance(x, RefCell) is not isinstance(t, RefCell):
        raise TangentMismatchError(
            f"jvp of {name_of(fun)}: the tangent of a reference is a reference, and that of an array is an array, but "
            f"the argument is {x!r} and its tangent {t!r}"
        )
    return isinstance(x, RefCell)
