"""``associative_scan``: all partial results of an associative operation, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.control.common import ARGUMENT_AND_RESULT, aval_difference, leaf_names, leaves_of, tree_difference
from pullback.core import tree
from pullback.core.arguments import flag, require_function
from pullback.core.array import typeof
from pullback.core.errors import ControlFlowError
from pullback.primitives.arrays.shapes import reshape
from pullback.primitives.arrays.slicing import concatenate, rev, slice_in_dim, stack
from pullback.transforms.functions.api_boundary import api_boundary
from pullback.transforms.functions.arguments import name_of, out_leaf

T = TypeVar("T")

Leaves = list[Any]


# long: half of it is its documentation
@api_boundary
def associative_scan(fn: Callable[..., Any], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """Compute all partial results (prefix sums, for example) of an associative operation along an axis.

    Args:
      fn: ``fn(a, b)`` combines the elements of two trees like ``elems``, whose arrays have any number of elements along
        the axis. It must be associative. The number of calls is about twice the logarithm of the number of elements.
      elems: a tree of arrays with the same number of elements along the axis.
      reverse: whether to go from the last element to the first: the first argument of ``fn`` is then the later one.
      axis: the axis.

    Returns:
      A tree like ``elems``, whose element k is the combination of elements 0 to k.

    Raises:
      ControlFlowError: the numbers of elements differ, an array lacks the axis, or ``fn`` returns other types than it
        takes (a TypeError and ValueError).

    Source: R. E. Ladner and M. J. Fischer, Parallel prefix computation, Journal of the ACM 27 (1980).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.associative_scan(jnp.maximum, jnp.array([1.0, 3.0, 2.0, 5.0])))
    [1. 3. 3. 5.]
    """
    reverse = flag("lax.associative_scan", "reverse", reverse)
    require_function("associative_scan", "fn", fn)
    leaves, treedef = leaves_of(elems, "associative_scan", "elems")
    if not leaves:
        return elems
    names = leaf_names("elems", treedef)
    axes = [_axis(name, x, axis) for name, x in zip(names, leaves, strict=True)]
    sizes = {x.shape[a] for x, a in zip(leaves, axes, strict=True)}
    if len(sizes) > 1:
        shown = ", ".join(f"{name} has {x.shape[a]}" for name, x, a in zip(names, leaves, axes, strict=True))
        raise ControlFlowError(
            f"associative_scan: all arrays must have the same number of elements along axis {axis}, but {shown}"
        )

    def combine(first: Leaves, second: Leaves) -> Leaves:
        out, out_tree = tree.flatten(fn(tree.unflatten(treedef, first), tree.unflatten(treedef, second)))
        if out_tree != treedef:
            raise ControlFlowError(
                f"associative_scan: {name_of(fn)} must return a tree like elems, but "
                f"{tree_difference('elems', treedef, out_tree, ARGUMENT_AND_RESULT)}"
            )
        out = [out_leaf(x, fn) for x in out]
        for name, x, y in zip(names, first, out, strict=True):
            how = aval_difference(typeof(x), typeof(y))
            if how:
                raise ControlFlowError(
                    f"associative_scan: {name_of(fn)} must return the types of its arguments, but {name} is "
                    f"{typeof(x)} when it is given and {typeof(y)} when it is returned: {how}"
                )
        return out

    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    out = _partial_results(combine, leaves, axes)
    if reverse:
        out = [rev(x, (a,)) for x, a in zip(out, axes, strict=True)]
    results: T = tree.unflatten(treedef, out)
    return results


def _axis(name: str, x: Any, axis: int) -> int:
    """Convert the axis of a leaf ``x`` to a non-negative number; raise if ``x`` has no such axis.

    ``name`` is the name of the leaf, for the error message.
    """
    if not -len(x.shape) <= axis < len(x.shape):
        raise ControlFlowError(f"associative_scan: {name} of type {typeof(x)} has no axis {axis}")
    return axis % len(x.shape)


def _partial_results(combine: Callable[[Leaves, Leaves], Leaves], leaves: Leaves, axes: list[int]) -> Leaves:
    """Return, for each k, the combination of elements 0 to k.

    Combining the pairs of elements (0, 1), (2, 3), ... halves the number of elements. The recursion on these pairs
    returns the results for odd k. The result for an even k combines the result for k - 1 with element k.

    Args:
      combine: the associative function.
      leaves: the leaves of the elements.
      axes: for each leaf, the axis along which the elements are.
    """
    count = leaves[0].shape[axes[0]]
    if count < 2:
        return leaves

    def cut(values: Leaves, start: int, stop: int, stride: int = 1) -> Leaves:
        return [slice_in_dim(x, start, stop, a, stride) for x, a in zip(values, axes, strict=True)]

    pairs = combine(cut(leaves, 0, count - 1, 2), cut(leaves, 1, count, 2))
    odd = _partial_results(combine, pairs, axes)
    if count > 2:
        rest = cut(leaves, 2, count, 2)
        before = cut(odd, 0, rest[0].shape[axes[0]])
        even = [concatenate([x, y], a) for x, y, a in zip(cut(leaves, 0, 1), combine(before, rest), axes, strict=True)]
    else:
        even = cut(leaves, 0, 1)
    return [_interleaved(x, y, a) for x, y, a in zip(even, odd, axes, strict=True)]


def _interleaved(even: Any, odd: Any, axis: int) -> Any:
    """Interleave two arrays along an axis; ``even`` has as many elements as ``odd``, or one more."""
    shape, count = odd.shape, odd.shape[axis]
    pairs = stack([slice_in_dim(even, 0, count, axis), odd], axis + 1)
    joined = reshape(pairs, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    if even.shape[axis] == count:
        return joined
    return concatenate([joined, slice_in_dim(even, count, count + 1, axis)], axis)
