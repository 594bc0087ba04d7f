"""Scatters: updates of windows of an array at indices that are values, by sum, product, extreme or assignment.

The dimension numbers are XLA's, as for ``gather``, with the windows in the updates.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pullback.backends.host import indexing as host_indexing
from pullback.core import dtypes
from pullback.core.check_rules import Failure, checks
from pullback.core.dims import smallest
from pullback.core.errors import DtypeError, ShapeError
from pullback.core.linear import LinearVar
from pullback.core.trace import Primitive
from pullback.core.traits import Cost
from pullback.core.types import ZERO, MappedAxis, Shape, ShapedArray
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.arrays.gather import gather_p
from pullback.primitives.arrays.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    batched_numbers,
    check_indices,
    check_numbers,
    check_windows,
    counting,
    host_indices,
    out_of_bounds,
    zeros,
)
from pullback.primitives.axis_maps import front
from pullback.primitives.checks import same_dtype
from pullback.primitives.masked import masked_by_amending
from pullback.primitives.reductions import is_extreme
from pullback.primitives.rules import axis_divided, axis_kept, jvp_linear_in


def _sizes(shape: Shape, updates_shape: Shape, numbers: ScatterDimensionNumbers) -> Shape:
    """Return the window size along each axis of the operand of a scatter.

    ``shape`` is the shape of the operand. The sizes are those of the updates, and 1 along axes that the updates lack.
    """
    windows = iter([updates_shape[i] for i in numbers.update_window_dims])
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    one = min if all(type(n) is int for n in shape) else smallest
    return tuple(one(n, 1) if d in dropped else next(windows) for d, n in enumerate(shape))


def _keeps(
    axis: int, operand: int, x: Shape, indices: Shape, updates: Shape, *, dimension_numbers: ScatterDimensionNumbers,
    **rest: Any,
) -> int | None:  # fmt: skip
    """Return the result axis that corresponds to axis ``axis`` of an operand; None if no result axis does.

    ``operand`` is 0 for the array and 2 for the updates. If every window covers an axis of the array entirely, this
    axis corresponds to the same axis of the result. The window axis of the updates along it corresponds to that result
    axis too.
    """
    if operand == 1:
        return None
    numbers = dimension_numbers
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    windows = dict(zip(numbers.update_window_dims, [i for i in range(len(x)) if i not in dropped], strict=True))
    for window, own in windows.items():
        if axis == (own if operand == 0 else window):
            is_full = updates[window] == x[own] and own not in numbers.scatter_dims_to_operand_dims
            return own if is_full else None
    return None


def _divided(
    axis: int, operand: int, x: Shape, indices: Shape, updates: Shape, *, dimension_numbers: ScatterDimensionNumbers,
    **rest: Any,
) -> int | None:  # fmt: skip
    """Return the result axis that corresponds to a batching axis of an operand; None for other axes."""
    numbers = dimension_numbers
    if operand == 0:
        return axis if axis in numbers.operand_batching_dims else None
    if operand == 2:
        others = [i for i in range(len(updates)) if i not in numbers.update_window_dims]
        axis = others.index(axis) if axis in others else -1
    batching = numbers.scatter_indices_batching_dims
    return numbers.operand_batching_dims[batching.index(axis)] if axis in batching else None


def _scatter(name: str, combine: Any, combine_p: Primitive | None, **traits: Any) -> Primitive:
    """Declare a scatter, which combines old and new elements by a function, or replaces the old elements.

    Args:
      name: the name of the primitive.
      combine, combine_p: the NumPy ufunc that combines two elements, and its primitive; None to replace.
    """
    p = Primitive(name, keeps_weak_type=False, cost=Cost.SIMPLE, **traits)
    axis_kept(p)(_keeps)
    axis_divided(p)(_divided)

    @p.host
    def host(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode,
    ) -> Any:  # fmt: skip
        if x.dtype != updates.dtype:
            raise TypeError("operands of different dtypes")
        if indices.dtype.kind != "i":
            indices = host_indices(name, indices)
        plan = _plan(name, x.shape, indices.shape, updates.shape, dimension_numbers)
        if not x.size:  # no window is inside, or can be moved inside
            return np.array(x, order="C")
        clip = mode is GatherScatterMode.CLIP
        return host_indexing.scatter(x, indices, updates, plan, combine, clip, unique_indices)

    @p.abstract_eval
    def shape(
        x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *, dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode,
    ) -> ShapedArray:  # fmt: skip
        dtype = same_dtype(name, [x, updates])
        if combine is not None and not (dtypes.is_inexact(dtype) or dtypes.is_integer(dtype) or dtypes.is_bool(dtype)):
            raise DtypeError(f"{name} takes numbers or booleans, got {dtypes.short_name(dtype)}")
        check_indices(name, indices)
        _check_shapes(name, x.shape, indices.shape, updates.shape, dimension_numbers)
        return ShapedArray(x.shape, dtype)

    @p.lowering
    def lowering(
        hlo: Any, x: Any, indices: Any, updates: Any, *, dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode,
    ) -> Any:  # fmt: skip
        from pullback.backends.hlo import indexing as hlo_indexing

        return hlo_indexing.scatter(
            hlo, x, indices, updates, dimension_numbers, _sizes(x.shape, updates.shape, dimension_numbers),
            lambda old, new: new if combine_p is None else hlo.inline(combine_p.bind, old, new),
            clip=mode is GatherScatterMode.CLIP, sorted_=indices_are_sorted, unique=unique_indices,
        )  # fmt: skip

    checks(p)(_checks)
    p.batch_rule = partial(batch, p)
    return p


def _checks(
    ans: Any, x: Any, indices: Any, updates: Any, *, dimension_numbers: ScatterDimensionNumbers,
    mode: GatherScatterMode, **params: Any,
) -> list[Failure]:  # fmt: skip
    if mode is GatherScatterMode.CLIP:
        return []
    axes, sizes = dimension_numbers.scatter_dims_to_operand_dims, _sizes(x.shape, updates.shape, dimension_numbers)
    return out_of_bounds(x.shape, indices, axes, [sizes[a] for a in axes], mode)


@functools.lru_cache(maxsize=4096)
def _plan(name: str, shape: Shape, indices: Shape, updates: Shape, numbers: ScatterDimensionNumbers) -> Any:
    """Check shapes and dimension numbers of a scatter; return the cached index layout that NumPy evaluation needs."""
    _check_shapes(name, shape, indices, updates, numbers)
    return host_indexing.layout(shape, indices, _sizes(shape, updates, numbers), numbers)


def _check_shapes(name: str, shape: Shape, indices: Shape, updates: Shape, numbers: ScatterDimensionNumbers) -> None:
    check_numbers(name, numbers, shape, indices)
    count = len(shape) - len(numbers.inserted_window_dims) - len(numbers.operand_batching_dims)
    windows = numbers.update_window_dims
    check_windows(f"{name}: update_window_dims", windows, count, len(updates))
    if tuple(n for i, n in enumerate(updates) if i not in windows) != indices[:-1]:
        raise ShapeError(
            f"{name}: updates of shape {updates}, with windows in the axes {windows}, do not fit indices of shape "
            f"{indices}: the other axes must be {indices[:-1]}"
        )
    sizes = _sizes(shape, updates, numbers)
    if any(s > n for s, n in zip(sizes, shape, strict=True)):
        raise ShapeError(f"{name}: windows of sizes {sizes} do not fit into an operand of shape {shape}")


def batch(p: Primitive, axis: MappedAxis, args: Any, dims: Any, **params: Any) -> Any:
    """Apply the scatter ``p`` to a batch; return the result, and 0, the position of its mapped axis.

    The mapped axis becomes a window axis if the indices are unmapped, and a batching axis if they are mapped.
    """
    (x, indices, updates), (dx, di, du) = args, dims
    x, updates = front(x, dx, axis), front(updates, du, axis)
    if di is not None:
        indices = shapes.moveaxis(indices, di, 0)
        params["indices_are_sorted"] = False
    params["dimension_numbers"] = batched_numbers(params["dimension_numbers"], True, di is not None)
    return p.bind(x, indices, updates, **params), 0


scatter_p = _scatter("scatter", None, None, moves=True)
scatter_add_p = _scatter("scatter_add", np.add, ops.add_p)
scatter_mul_p = _scatter("scatter_mul", np.multiply, ops.mul_p)
scatter_min_p = _scatter("scatter_min", np.minimum, ops.min_p, passes_nan=True)
scatter_max_p = _scatter("scatter_max", np.maximum, ops.max_p, passes_nan=True)

# The operations ----------------------------------------------------------------------------------------------------


def _operation(p: Primitive) -> Callable[..., Any]:
    """Make the public function of the scatter ``p``: ``mode`` may be a string, and the options have defaults."""

    def operation(
        x: Any, indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
        indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
    ) -> Any:  # fmt: skip
        return p.bind(
            x,
            indices,
            updates,
            dimension_numbers=dimension_numbers,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=GatherScatterMode.from_any(mode),
        )

    return operation


scatter, scatter_add, scatter_mul = _operation(scatter_p), _operation(scatter_add_p), _operation(scatter_mul_p)
scatter_min, scatter_max = _operation(scatter_min_p), _operation(scatter_max_p)


def scatter_sub(x: Any, indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, **options: Any) -> Any:
    return scatter_add(x, indices, ops.neg(updates), dimension_numbers, **options)


# Derivatives -------------------------------------------------------------------------------------------------------


def take_back(x: Any, indices: Any, shape: Shape, updates_shape: Shape, params: dict[str, Any]) -> Any:
    """Gather the windows of ``x`` at which a scatter writes its updates; return an array of ``updates_shape``.

    Where the scatter drops an update, the window is zero. ``params`` are the parameters of the scatter, and ``shape``
    is the shape of its operand.
    """
    if 0 in shape:  # all windows are dropped
        return zeros(updates_shape, x.dtype)
    numbers = params["dimension_numbers"]
    clip = params["mode"] is GatherScatterMode.CLIP
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers(*numbers),
        slice_sizes=_sizes(shape, updates_shape, numbers),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=GatherScatterMode.CLIP if clip else GatherScatterMode.FILL_OR_DROP,
        fill_value=0,
    )


@scatter_add_p.jvp
def _scatter_add_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    tx, _, tu = tangents
    ans = scatter_add_p.bind(x, indices, updates, **params)
    if tu is ZERO:
        return ans, tx
    tx = zeros(x.shape, x.dtype) if tx is ZERO else tx
    return ans, scatter_add_p.bind(tx, indices, tu, **params)


@partial(scatter_add_p.transpose, linear_in=(0, 2))
def _scatter_add_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    by_updates = take_back(ct, indices, ct.shape, updates.shape, params) if type(updates) is LinearVar else None
    return ct if type(x) is LinearVar else None, None, by_updates


@partial(gather_p.transpose, linear_in=(0,))
def _gather_transpose(
    ct: Any, x: LinearVar, indices: Any, *, dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
    indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode, fill_value: Any,
) -> Any:  # fmt: skip
    # A gather moves windows inside even with PROMISE_IN_BOUNDS; so must its transpose.
    drop = mode is GatherScatterMode.FILL_OR_DROP
    out = scatter_add(
        zeros(x.shape, ct.dtype),
        indices,
        ct,
        ScatterDimensionNumbers(*dimension_numbers),
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode if drop else GatherScatterMode.CLIP,
    )
    return out, None


scatter_p.jvp_rule = jvp_linear_in(scatter_p, 0, 2)


@partial(scatter_p.transpose, linear_in=(0, 2))
def _scatter_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    by_x = by_updates = None
    if type(x) is LinearVar:
        by_x = scatter_p.bind(ct, indices, zeros(updates.shape, ct.dtype), **params)
    if type(updates) is LinearVar:
        by_updates = take_back(ct, indices, ct.shape, updates.shape, params)
        if not params["unique_indices"]:
            by_updates = ops.where(_stays(ct.shape, indices, updates.shape, params), by_updates, 0)
    return by_x, None, by_updates


def _stays(shape: Shape, indices: Any, updates_shape: Shape, params: dict[str, Any]) -> Any:
    """Return a mask of the updates whose values are in the result of a scatter that replaces elements.

    Where several updates write the same element, the mask is true only for the update that remains. To find it, the
    function scatters the numbers of the updates in the same way, and gathers them again.
    """
    count = int(np.prod(updates_shape, dtype=np.int64))
    dtype = np.dtype(np.int32 if count < 2**31 else np.int64)
    numbers = shapes.reshape(counting(1, count + 1, dtype), updates_shape)
    written = scatter_p.bind(zeros(shape, dtype), indices, numbers, **params)
    return ops.eq(take_back(written, indices, shape, updates_shape, params), numbers)


@scatter_mul_p.jvp
def _scatter_mul_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    x, indices, updates = primals
    tx, _, tu = tangents
    ans = scatter_mul_p.bind(x, indices, updates, **params)
    by_x = ZERO if tx is ZERO else scatter_mul_p.bind(tx, indices, updates, **params)
    if tu is ZERO:
        return ans, by_x
    if params["unique_indices"]:
        others = take_back(x, indices, x.shape, updates.shape, params)
    else:
        others = _product_of_others(x, indices, updates, params)
    start = zeros(x.shape, x.dtype) if by_x is ZERO else by_x
    return ans, scatter_add_p.bind(start, indices, ops.mul(tu, others), **params)


def _product_of_others(x: Any, indices: Any, updates: Any, params: dict[str, Any]) -> Any:
    """Return, for each update of a scatter by multiplication, the product of all other factors of its element.

    The factors of an element are its old value in ``x`` and all updates to it. The function divides the product of the
    factors, where zero updates count as 1, by the update if that is not zero. It multiplies the quotient by the product
    of the other zero updates, in a form with the right first and second derivatives: 1 for no such update, their sum
    for one, (sum² - sum of squares) / 2 for two, and 0 for more.
    """
    zero = ops.eq(updates, 0)
    factors, left_out = ops.where(zero, 1, updates), ops.where(zero, updates, 0)

    def of_others(values: Any) -> Any:
        """Return, for each update, the sum of ``values`` over all other updates of the same element."""
        sums = scatter_add_p.bind(zeros(x.shape, values.dtype), indices, values, **params)
        return ops.sub(take_back(sums, indices, x.shape, updates.shape, params), values)

    count = of_others(ops.convert_element_type(zero, np.dtype(np.int32)))
    total = of_others(left_out)
    of_two = ops.mul(ops.sub(ops.square(total), of_others(ops.square(left_out))), 0.5)
    of_zeros = ops.where(ops.eq(count, 1), total, ops.where(ops.eq(count, 2), of_two, 0))
    product = scatter_mul_p.bind(x, indices, factors, **params)
    quotient = ops.div(take_back(product, indices, x.shape, updates.shape, params), factors)
    return ops.where(ops.eq(count, 0), quotient, ops.mul(quotient, of_zeros))


@partial(scatter_mul_p.transpose, linear_in=(0,))
def _scatter_mul_transpose(ct: Any, x: LinearVar, indices: Any, updates: Any, **params: Any) -> Any:
    return scatter_mul_p.bind(ct, indices, updates, **params), None, None


def _zero_times_updates(
    base: Primitive, out: Any, x: Any, indices: Any, updates: Any, *, zeros: tuple[bool, ...], **params: Any
) -> Any:
    return ops.where(ops.eq(x, 0), 0, out)


masked_scatter_mul_p = masked_by_amending(scatter_mul_p, _zero_times_updates)


def _extremum_jvp(p: Primitive) -> Any:
    """Make the jvp rule of a scatter by minimum or maximum.

    The tangent of a result element is the mean of the tangents of the old element and updates equal to the result.
    """

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        x, indices, updates = primals
        tx, _, tu = tangents
        if tx is ZERO and tu is ZERO:
            return p.bind(x, indices, updates, **params), ZERO
        x, updates = ops.materialized(x), ops.materialized(updates)
        ans = p.bind(x, indices, updates, **params)
        old = is_extreme(x, ans)
        new = is_extreme(updates, take_back(ans, indices, x.shape, updates.shape, params))
        share = ops.div(1, scatter_add_p.bind(old, indices, new, **params))
        total = zeros(x.shape, x.dtype) if tx is ZERO else ops.mul(tx, ops.mul(old, share))
        if tu is not ZERO:
            weight = ops.mul(new, take_back(share, indices, x.shape, updates.shape, params))
            total = scatter_add_p.bind(total, indices, ops.mul(tu, weight), **params)
        return ans, total

    return rule


scatter_min_p.jvp_rule = _extremum_jvp(scatter_min_p)
scatter_max_p.jvp_rule = _extremum_jvp(scatter_max_p)
