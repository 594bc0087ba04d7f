"""Collectives: operations over all indices of named axes, of ``vmap``, ``pmap`` and ``shard_map``.

Each takes a tree of arrays and the name of an axis, or a tuple of names, which act as one axis whose last name varies
fastest.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from pullback.backends.devices.meshes import current_mesh
from pullback.core import tree
from pullback.core.annotations import AxisName
from pullback.core.arguments import flag, is_listed
from pullback.core.array import SCALARS, Array, typeof
from pullback.core.axes import axis_in_scope, axis_names
from pullback.core.axes import axis_size as size_of
from pullback.core.errors import ArgumentError, ShapeError, ShardMapError, UnsupportedArgumentError
from pullback.core.trace import state
from pullback.lax.arguments import ints
from pullback.primitives import collectives as ops
from pullback.primitives import elementwise
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import known_int
from pullback.primitives.operands import array_operand
from pullback.primitives.varying import (
    all_gather_reduced_p,
    preduced_p,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
    vary,
    vary_unreduced_cast_p,
)

T = TypeVar("T")

Groups = Sequence[Sequence[int]] | None


def _groups(name: str, names: tuple[Any, ...], groups: Groups, one_size: bool) -> ops.Groups:
    """Check the argument ``axis_index_groups``, and convert it to tuples; None stays None.

    Raise unless each index of the axis is in exactly one group.

    Args:
      name: the name of the function, for errors.
      names: the named axes, whose last varies fastest in the indices.
      groups: the groups of indices.
      one_size: whether all groups must have the same size.
    """
    if groups is None:
        return None
    size = size_of(names)
    try:
        found = tuple([tuple([operator.index(i) for i in group]) for group in groups])
    except TypeError:
        found = ()
    if sorted([i for group in found for i in group]) != list(range(size)):
        of = f"the axis {names[0]!r}" if len(names) == 1 else f"the axes {names}"
        raise ArgumentError(
            f"lax.{name}: axis_index_groups must contain each index of {of}, 0 to {size - 1}, once, got {groups!r}"
        )
    if one_size and len(set(map(len, found))) > 1:
        raise ArgumentError(f"lax.{name}: axis_index_groups must have one size, got {groups!r}")
    return found


def _size(names: tuple[Any, ...], groups: ops.Groups) -> int:
    return len(groups[0]) if groups else size_of(names)


def _axis(name: str, axis: Any, rank: int, what: str) -> int:
    """Convert an argument that is an axis of an array to an int from 0 to ``rank - 1``; raise if it is invalid.

    Args:
      name: the name of the function, for errors.
      axis: the argument, perhaps negative.
      rank: the number of axes of the array.
      what: the name of the argument, for errors.
    """
    try:
        position = operator.index(axis)
    except TypeError:
        raise ArgumentError(f"lax.{name}: {what} must be an int, got {axis!r}") from None
    if not -rank <= position < rank:
        raise ShapeError(f"lax.{name}: {what}={axis} for an array of {rank} axes")
    return position % rank


# Reductions ----------------------------------------------------------------------------------------------------------


def psum(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The sum of each array over all indices of named axes.

    Args:
      x: a tree of arrays, of any shapes; booleans are counted. The sum of a Python number is a Python number: ``psum(1,
        name)`` is the size of the axis.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis_index_groups: a list of lists of indices: each group is summed separately.

    Returns:
      A tree like ``x``, with the same shapes; the same at all indices (of a group). Within ``shard_map``, the sum of
      an unreduced array is the sum of its terms.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: a name twice, or groups that do not have each index once (a TypeError and ValueError).
      ShardingTypeError: an array is reduced over an axis (a TypeError and ValueError).
      UnsupportedArgumentError: groups, and an array that is unreduced (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [0.25 0.75]
    """
    names = axis_names(axis_name, "lax.psum")
    groups = _groups("psum", names, axis_index_groups, False)
    leaves, treedef = tree.flatten(x)
    if leaves and all(type(leaf) in SCALARS for leaf in leaves) and (groups is None or len(set(map(len, groups))) == 1):
        size = _size(names, groups)
        return tree.unflatten(treedef, [leaf * size for leaf in leaves])
    return tree.unflatten(treedef, [_psum(leaf, names, groups) for leaf in leaves])


def _psum(x: Any, names: tuple[Any, ...], groups: ops.Groups) -> Any:
    x = array_operand("psum", x)
    if x.dtype == np.bool_:
        x = elementwise.convert_element_type(x, np.dtype(np.int32))
    terms = _terms("psum", x, names, groups)
    if terms:
        x = unreduced_psum_p.bind(x, axes=terms)
    return ops.psum(x, tuple([name for name in names if name not in terms]), groups)


def _terms(name: str, x: Any, names: tuple[Any, ...], groups: ops.Groups) -> tuple[Any, ...]:
    """Return the axes among ``names`` over which an array is unreduced; raise if they are divided into groups."""
    explicit = typeof(x).explicit
    if explicit is None or not explicit.spec.unreduced:
        return ()
    terms = tuple([axis for axis in names if axis in typeof(x).mat.unreduced])
    if terms and groups is not None:
        raise UnsupportedArgumentError(
            f"lax.{name}: an array that is unreduced, of type {typeof(x)}, is the sum over all indices of {terms}: "
            "leave axis_index_groups out"
        )
    return terms


def pmean(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The mean of each array over all indices of named axes.

    Args:
      x: a tree of arrays of any shapes.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis_index_groups: a list of lists of indices, of one size: the mean is over each group.

    Returns:
      A tree like ``x``, with the same shapes; integers become floats.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: a name twice, or groups that are not of one size (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [-1.  1.]
    """
    names = axis_names(axis_name, "lax.pmean")
    size = _size(names, _groups("pmean", names, axis_index_groups, True))
    return tree.tree_map(lambda s: s / size, psum(x, axis_name, axis_index_groups=axis_index_groups))


def _extreme(name: str, primitive: Any, x: Any, axis_name: AxisName, groups: Groups) -> Any:
    names = axis_names(axis_name, f"lax.{name}")
    found = _groups(name, names, groups, False)
    return tree.tree_map(lambda leaf: primitive.bind(array_operand(name, leaf), axes=names, groups=found), x)


def pmax(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The elementwise maximum of each array over all indices of named axes.

    Its derivative is the derivative of the greatest element, or the mean of several if they tie.

    Args:
      x: a tree of arrays of real numbers or booleans.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis_index_groups: a list of lists of indices: the maximum is over each group.

    Returns:
      A tree like ``x``, with the same shapes and dtypes.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: a name twice, or groups that do not have each index once (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [3. 3.]
    """
    return _extreme("pmax", ops.pmax_p, x, axis_name, axis_index_groups)


def pmin(x: T, axis_name: AxisName, *, axis_index_groups: Groups = None) -> T:
    """The elementwise minimum of each array over all indices of named axes; see :func:`pmax`.

    Args:
      x: a tree of arrays of real numbers or booleans.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis_index_groups: a list of lists of indices: the minimum is over each group.

    Returns:
      A tree like ``x``, with the same shapes and dtypes.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: a name twice, or groups that do not have each index once (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [1. 1.]
    """
    return _extreme("pmin", ops.pmin_p, x, axis_name, axis_index_groups)


# Gathering, scattering, exchanging -----------------------------------------------------------------------------------


def all_gather(
    x: T,
    axis_name: AxisName,
    *,
    axis_index_groups: Groups = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> T:
    """The arrays of all indices of named axes, along an axis of the result.

    Args:
      x: a tree of arrays of any shapes.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis_index_groups: a list of lists of indices, of one size: each group is gathered separately.
      axis: the axis of the result along which the arrays are joined.
      tiled: whether they are concatenated along an existing axis, instead of stacked along a new one.
      to: how the result counts: ``"varying"``, as different at each index, ``"invarying"``, as the same, or
        ``"reduced"``, as the same with cotangents that are still to be summed; see :func:`pcast`.

    Returns:
      A tree like ``x``; an array of shape ``(3,)`` becomes one of ``(size, 3)``, or ``(size * 3,)`` if it is tiled.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ShapeError: ``axis`` is not an axis of the result (a TypeError and ValueError).
      ShardingTypeError: an array is reduced or unreduced over an axis (a TypeError and ValueError).
      UnsupportedArgumentError: another ``to``; groups with another ``to`` than ``"varying"``; or ``"reduced"`` for an
        axis that no ``shard_map`` maps (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [[1. 3.]
     [1. 3.]]
    """
    tiled = flag("lax.all_gather", "tiled", tiled)
    if not is_listed(to, ("varying", "invarying", "reduced")):
        raise UnsupportedArgumentError(f"lax.all_gather: to must be 'varying', 'invarying' or 'reduced', got to={to!r}")
    names = axis_names(axis_name, "lax.all_gather")
    if to != "varying" and axis_index_groups is not None:
        raise UnsupportedArgumentError(
            "lax.all_gather: axis_index_groups need to='varying': the result differs between the groups"
        )
    if to == "reduced" and not _checked_axes(names, "lax.all_gather", to):
        to = "varying"
    primitive = {"varying": ops.all_gather_p, "invarying": ops.all_gather_invariant_p}.get(to, all_gather_reduced_p)
    groups = _groups("all_gather", names, axis_index_groups, True)
    of_groups = {} if to == "reduced" else {"groups": groups}

    def gathered(leaf: Any) -> Any:
        leaf = array_operand("all_gather", leaf)
        position = _axis("all_gather", axis, len(leaf.shape) + (not tiled), "axis")
        leaf = vary(leaf, ops.keys_of(names)) if to == "reduced" else leaf
        for some in [names] if groups else [(name,) for name in reversed(names)]:
            params = {"axes": some, "axis_size": _size(some, groups), **of_groups}
            leaf = primitive.bind(leaf, dimension=position, tiled=tiled or some[-1] is not names[-1], **params)
        return leaf

    return tree.tree_map(gathered, x)


def _scatterable(name: str, what: str, size: int, count: int, tiled: bool) -> None:
    """Raise unless the size of an array's axis fits the size of the named axes over which it is split.

    Args:
      name: the name of the function, for errors.
      what: the name of the array's axis, for errors.
      size: the size of the array's axis.
      count: the size of the named axes.
      tiled: whether ``size`` may be a multiple of ``count``; otherwise they must be equal.
    """
    if tiled and size % count:
        raise ShapeError(
            f"lax.{name}: with tiled=True, the size of {what}, {size}, must be a multiple of the size of the axis, "
            f"{count}"
        )
    if not tiled and size != count:
        raise ShapeError(
            f"lax.{name}: the size of {what}, {size}, must be the size of the axis, {count}; with tiled=True it may "
            f"be a multiple"
        )


def psum_scatter(
    x: T, axis_name: AxisName, *, scatter_dimension: int = 0, axis_index_groups: Groups = None, tiled: bool = False
) -> T:
    """The sum over all indices of named axes, divided into blocks: each index gets one block of ``psum``.

    Args:
      x: a tree of arrays.
      axis_name: the name of an axis in scope, or a tuple of names.
      scatter_dimension: the axis of the arrays to divide; its size is the size of the named axes, or with ``tiled`` a
        multiple.
      axis_index_groups: a list of lists of indices, of one size: each group is summed separately.
      tiled: whether to keep the axis, with a fraction of its size; otherwise it is removed.

    Returns:
      A tree like ``x``. Within ``shard_map``, the sum of an unreduced array is the sum of its terms.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ShapeError: the size of the axis does not fit (a TypeError and ValueError).
      ShardingTypeError: an array is reduced over an axis (a TypeError and ValueError).
      UnsupportedArgumentError: groups, and an array that is unreduced (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [4. 6.]
    """
    tiled = flag("lax.psum_scatter", "tiled", tiled)
    names = axis_names(axis_name, "lax.psum_scatter")
    groups = _groups("psum_scatter", names, axis_index_groups, True)

    def scattered(leaf: Any) -> Any:
        leaf = array_operand("psum_scatter", leaf)
        position = _axis("psum_scatter", scatter_dimension, len(leaf.shape), "scatter_dimension")
        count = _size(names, groups)
        _scatterable("psum_scatter", f"scatter_dimension={scatter_dimension}", leaf.shape[position], count, tiled)
        terms = _terms("psum_scatter", leaf, names, groups)
        for some in [names] if groups else [(name,) for name in names]:
            params: dict[str, Any] = {"axes": some, "axis_size": _size(some, groups), "dimension": position}
            params["tiled"] = tiled or some[-1] is not names[-1]
            if some[0] in terms:
                leaf = unreduced_reduce_scatter_p.bind(leaf, **params)
            else:
                leaf = ops.reduce_scatter_p.bind(leaf, groups=groups, **params)
        return leaf

    return tree.tree_map(scattered, x)


def all_to_all(
    x: T,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Groups = None,
    tiled: bool = False,
) -> T:
    """An exchange: each index sends the blocks along an axis to the others, and gets theirs along another axis.

    Args:
      x: a tree of arrays.
      axis_name: the name of an axis in scope, or a tuple of names.
      split_axis: the axis whose blocks are sent; its size is the size of the named axes, or with ``tiled`` a multiple.
      concat_axis: the axis of the result along which the received blocks are.
      axis_index_groups: a list of lists of indices, of one size: the exchange is within each group.
      tiled: whether to keep both axes, ``split_axis`` with a fraction of its size; otherwise ``split_axis`` is removed,
        and ``concat_axis`` is new.

    Returns:
      A tree like ``x``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ShapeError: the size of ``split_axis`` does not fit, or an axis is out of range (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> print(vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(x))
    [[1. 3.]
     [2. 4.]]
    """
    names = axis_names(axis_name, "lax.all_to_all")
    groups = _groups("all_to_all", names, axis_index_groups, True)

    def exchanged(leaf: Any) -> Any:
        leaf = array_operand("all_to_all", leaf)
        rank = len(leaf.shape)
        split = _axis("all_to_all", split_axis, rank, "split_axis")
        concat = _axis("all_to_all", concat_axis, rank, "concat_axis")
        count = _size(names, groups)
        _scatterable("all_to_all", f"split_axis={split_axis}", leaf.shape[split], count, tiled)
        if len(names) > 1 and groups is None:
            return _exchange_all(leaf, names, split, concat, tiled)
        params = {"axes": names, "axis_size": count, "groups": groups, "tiled": tiled}
        return ops.all_to_all_p.bind(leaf, split_axis=split, concat_axis=concat, **params)

    return tree.tree_map(exchanged, x)


def _exchange_all(x: Any, names: tuple[Any, ...], split: int, concat: int, tiled: bool) -> Any:
    """Compute ``all_to_all`` over several named axes: exchange blocks over one named axis after the other.

    Args:
      x: the operand.
      names: the named axes.
      split: the axis of ``x`` along which to split it into blocks.
      concat: the axis along which to join the received blocks.
      tiled: whether blocks are concatenated; otherwise they are stacked along a new axis.
    """
    sizes = [axis_in_scope(name).size for name in names]
    count = math.prod(sizes)
    x = shapes.moveaxis(x, split, 0)
    rest = x.shape[1:]
    x = shapes.reshape(x, (*sizes, x.shape[0] // count, *rest))
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        params = {"axes": (name,), "axis_size": size, "groups": None, "tiled": False}
        x = ops.all_to_all_p.bind(x, split_axis=i, concat_axis=i, **params)
    x = shapes.reshape(x, (count, *x.shape[len(names) :]))  # [source, block, rest]
    if not tiled:
        return shapes.moveaxis(shapes.reshape(x, (count, *rest)), 0, concat)
    x = shapes.moveaxis(shapes.moveaxis(x, 1, split + 1), 0, concat)
    return shapes.reshape(x, (*x.shape[:concat], x.shape[concat] * x.shape[concat + 1], *x.shape[concat + 2 :]))


def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """Arrays sent from index to index of named axes.

    Args:
      x: a tree of arrays of any shapes.
      axis_name: the name of an axis in scope, or a tuple of names.
      perm: pairs of a source and a target; an index that is not a target gets zeros.

    Returns:
      A tree like ``x``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: a source or a target twice, or out of range (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> around = [(0, 1), (1, 2), (2, 0)]
    >>> print(vmap(lambda x: lax.ppermute(x, "i", around), axis_name="i")(jnp.arange(3)))
    [2 0 1]
    """
    names = axis_names(axis_name, "lax.ppermute")
    pairs = _pairs("ppermute", perm, size_of(names))
    return tree.tree_map(lambda leaf: ops.ppermute_p.bind(array_operand("ppermute", leaf), axes=names, perm=pairs), x)


def _pairs(name: str, perm: Any, size: int) -> tuple[tuple[int, int], ...]:
    try:
        pairs = tuple([(operator.index(source), operator.index(target)) for source, target in perm])
    except (TypeError, ValueError):
        raise ArgumentError(f"lax.{name}: perm must be a list of pairs of indices, got {perm!r}") from None
    for what, indices in zip(("source", "target"), zip(*pairs, strict=True), strict=False):
        twice = sorted({i for i in indices if indices.count(i) > 1})
        if twice:
            raise ArgumentError(f"lax.{name}: perm has a {what} twice: {', '.join(map(str, twice))}, in {perm!r}")
        beyond = [i for i in indices if not 0 <= i < size]
        if beyond:
            raise ArgumentError(f"lax.{name}: the {what} {beyond[0]} is not an index of an axis of size {size}")
    return pairs


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Arrays permuted along named axes: index ``i`` gets the arrays of index ``perm[i]``.

    Args:
      x: a tree of arrays of any shapes.
      axis_name: the name of an axis in scope, or a tuple of names.
      perm: a permutation of all indices.

    Returns:
      A tree like ``x``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: ``perm`` is not a permutation of all indices (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3)))
    [2 0 1]
    """
    size = size_of(axis_names(axis_name, "lax.pshuffle"))
    if sorted(ints(perm)) != list(range(size)):
        raise ArgumentError(f"lax.pshuffle: perm must be a permutation of 0 to {size - 1}, got {perm!r}")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def pswapaxes(x: T, axis_name: AxisName, axis: int, *, axis_index_groups: Groups = None) -> T:
    """Swap an axis of arrays with a named axis of the same size.

    Args:
      x: a tree of arrays.
      axis_name: the name of an axis in scope, or a tuple of names.
      axis: the axis of the arrays.
      axis_index_groups: a list of lists of indices, of one size: the exchange is within each group.

    Returns:
      A tree like ``x``, with the same shapes.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ShapeError: the axis and the named axis differ in size (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]])))
    [[1 3]
     [2 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """The arrays of one index of named axes, at all indices.

    Args:
      x: a tree of arrays of any shapes.
      axis_name: the name of an axis in scope, or a tuple of names.
      source: the index.

    Returns:
      A tree like ``x``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: ``source`` is not an index of the axis (a TypeError and ValueError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3)))
    [1 1 1]
    """
    names = axis_names(axis_name, "lax.pbroadcast")
    size = size_of(names)
    source = known_int("lax.pbroadcast", "source", source)
    if not 0 <= source < size:
        raise ArgumentError(f"lax.pbroadcast: source={source} is not an index of an axis of size {size}")
    here = elementwise.eq(axis_index(axis_name), source)

    def of_source(leaf: Any) -> Any:
        leaf = array_operand("pbroadcast", leaf)
        dtype = leaf.dtype
        if dtype == np.bool_:
            leaf = elementwise.convert_element_type(leaf, np.dtype(np.int8))
        mask = shapes.broadcast_in_dim(here, leaf.shape, ())
        out = ops.psum(elementwise.select_n(mask, shapes.zeros_like(leaf), leaf), names)
        return elementwise.convert_element_type(out, dtype) if dtype == np.bool_ else out

    return tree.tree_map(of_source, x)


# Indices, sizes, types -----------------------------------------------------------------------------------------------


def axis_index(axis_name: AxisName) -> Array:
    """The index of this call along named axes, as an ``int32``.

    Args:
      axis_name: the name of an axis in scope, or a tuple of names; the last varies fastest.

    Returns:
      An integer scalar of dtype ``int32``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: x * lax.axis_index("i"), axis_name="i")(jnp.array([5, 6, 7])))
    [ 0  6 14]
    """
    names = axis_names(axis_name, "lax.axis_index")
    index: Any = None
    for name in names:
        own = ops.axis_index_p.bind(axes=(name,))
        index = own if index is None else index * axis_in_scope(name).size + own
    return cast(Any, np.int32(0)) if index is None else index


def axis_size(axis_name: AxisName) -> int:
    """The number of indices of named axes, as a Python int.

    Args:
      axis_name: the name of an axis in scope, or a tuple of names.

    Returns:
      An int of Python's.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.ones(4)))
    [0.25 0.25 0.25 0.25]
    """
    return size_of(axis_names(axis_name, "lax.axis_size"))


def pvary(x: T, axis_name: AxisName) -> T:
    """The arrays unchanged, with a type that says that they vary along named axes.

    The gradient with respect to the result of ``pvary`` is separate for each index; with respect to a value that does
    not vary, reverse mode sums it over the axis.

    Args:
      x: a tree of arrays.
      axis_name: the name of an axis in scope, or a tuple of names.

    Returns:
      A tree like ``x``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).

    >>> import pullback.numpy as jnp
    >>> from pullback import lax, vmap
    >>> print(vmap(lambda x: lax.pvary(2.0, "i") * x, axis_name="i")(jnp.arange(3.0)))
    [0. 2. 4.]
    """
    return _varying(x, axis_name, "lax.pvary")


def _varying(x: T, axis_name: AxisName, who: str) -> T:
    """Do what :func:`pvary` says; ``who`` is the function, for error messages."""
    names = axis_names(_known_axes(axis_name, who), who)

    def varying(leaf: Any) -> Any:
        leaf = array_operand(who.removeprefix("lax."), leaf)
        return vary(leaf, frozenset([axis_in_scope(name).key for name in names]))

    return tree.tree_map(varying, x)


def _known_axes(axis_name: Any, who: str) -> Any:
    """Return the names without those of unmapped axes of the current mesh of size 1: along them nothing varies.

    Raises:
      ShardMapError: a name is that of an axis of the current mesh, and nothing maps it (a TypeError and ValueError).
    """
    current = current_mesh()
    if current is None or current.manual_axes:
        return axis_name
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    unmapped = [name for name in names if name in current.axis_names and name not in state.axes]
    for name in unmapped:
        if current.shape[name] > 1:
            raise ShardMapError(
                f"{who}: {name!r} is an axis of the mesh {current!r}, and no function is mapped over it here: call "
                f"{who} within shard_map"
            )
    return tuple([name for name in names if name not in unmapped])


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """The arrays unchanged, with another type: along an axis of ``shard_map`` a value is in one of four states.

    It is varying or invarying, see :func:`pvary`; or unreduced, a sum whose terms the devices have; or reduced, the
    same on all devices, with cotangents that are unreduced. The cotangents of unreduced values are reduced.

    Args:
      x: a tree of arrays.
      axis_name: the name of an axis in scope, or a tuple of names.
      to: ``"varying"``, for values that are invarying or reduced; ``"unreduced"``, for varying values: those of the
        devices are the terms of the sum; or ``"reduced"``, for invarying values. Axes of ``vmap`` have the first alone.

    Returns:
      A tree like ``x``.

    Raises:
      UnboundAxisNameError: no such axis is in scope (a NameError).
      ArgumentError: another ``to``; an array has another state along an axis; or a set of names, which have no order (a
        TypeError and ValueError).
      UnsupportedArgumentError: ``"unreduced"`` or ``"reduced"`` where no ``shard_map`` over all axes of the mesh maps
        the axis (a NotImplementedError).

    >>> import pullback.numpy as jnp
    >>> from pullback import P, lax, make_mesh, shard_map, typeof
    >>> def total(x):
    ...     terms = lax.pcast(x, "i", to="unreduced")
    ...     print(typeof(terms))
    ...     return lax.psum(terms, "i")
    >>> print(shard_map(total, mesh=make_mesh((1,), ("i",)), in_specs=P("i"), out_specs=P())(jnp.ones(2)))
    float32[2]{U:i}
    [1. 1.]
    """
    if isinstance(axis_name, (set, frozenset)):
        raise ArgumentError(f"lax.pcast: axis_name must be a name or a tuple of names, got {axis_name!r}")
    if not is_listed(to, ("varying", "unreduced", "reduced")):
        raise ArgumentError(
            f"lax.pcast: to must be 'varying', 'unreduced' or 'reduced', got {to!r}: psum and pmean return values that "
            "do not vary"
        )
    if to == "varying":
        return _varying(x, axis_name, "lax.pcast")
    names = axis_names(axis_name, "lax.pcast")
    checked = _checked_axes(names, "lax.pcast", to)
    source, cast = _CASTS[to]

    def changed(leaf: Any) -> Any:
        leaf = array_operand("pcast", leaf)
        if not checked:
            return vary(leaf, ops.keys_of(names)) if to == "unreduced" else leaf
        for name in names:
            have = _state_along(leaf, name)
            if have != source:
                raise ArgumentError(
                    f"lax.pcast: jax.lax.pcast can only accept axis_name which has one state, and to={to!r} takes "
                    f"values that are {source}, but along {name!r} one of the type {typeof(leaf)} is {have}"
                )
        return cast.bind(leaf, axes=names)

    return tree.tree_map(changed, x)


_CASTS = {"unreduced": ("varying", vary_unreduced_cast_p), "reduced": ("invarying", preduced_p)}
"""The state that a cast takes, and its operation."""


def _state_along(x: Any, name: Any) -> str:
    states = typeof(x).mat
    for state_, axes in ("varying", states.varying), ("unreduced", states.unreduced), ("reduced", states.reduced):
        if name in axes:
            return state_
    return "invarying"


def _checked_axes(names: tuple[Any, ...], who: str, to: str) -> bool:
    """Return whether types record the states of values along axes of ``shard_map``: not with ``check_vma=False``.

    Raises:
      UnsupportedArgumentError: something else maps them; or the types of shards have further axes, which are explicit
        (a NotImplementedError).
    """
    axes = [axis_in_scope(name) for name in names]
    others = [axis for axis in axes if axis.mapped_by != "shard_map"]
    mesh = current_mesh()
    if others:
        raise UnsupportedArgumentError(
            f"{who}: to={to!r} is for the axes of shard_map, and {others[0].mapped_by} maps {others[0].name!r}"
        )
    if mesh is None or mesh.explicit_axes:
        raise UnsupportedArgumentError(
            f"{who}: to={to!r} needs a shard_map in full manual mode, over all axes of the mesh, which is {mesh!r}"
        )
    return all(axis.checked for axis in axes)
