"""Reductions of axes and of windows by any function, with checked operands, for ``pullback.lax``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from pullback.backends.devices.shardings import OutSharding
from pullback.core import dtypes, tree
from pullback.core.annotations import PyTree
from pullback.core.arguments import require_function
from pullback.core.array import SCALARS, Array, ArrayImpl, ArrayLike, from_scalar, scalar_array
from pullback.core.errors import ArgumentError, DtypeError, ShapeError, UnsupportedArgumentError
from pullback.core.jaxpr import Var
from pullback.core.trace import Primitive
from pullback.core.types import ShapedArray
from pullback.lax.arguments import ints
from pullback.primitives import elementwise as ops
from pullback.primitives import reductions
from pullback.primitives.arrays import shapes
from pullback.primitives.checks import BITS, NUMBER, ORDERED
from pullback.primitives.operands import array_operand, bind
from pullback.primitives.signals import window_reductions as in_windows
from pullback.primitives.sums import reduce_sum_p
from pullback.transforms.autodiff.vmap import vmap
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.functions.flat_function import FlatFunction
from pullback.transforms.traces.stage import stage_flat


def _ones(dtype: np.dtype[Any]) -> Any:
    return np.True_ if dtypes.is_bool(dtype) else ~np.zeros((), dtype)[()]


# For a binary operation: the reduction by it, the dtypes that this takes, and the identity element.
_KNOWN: dict[Primitive, tuple[Primitive, Any, Callable[[np.dtype[Any]], Any]]] = {
    ops.add_p: (reduce_sum_p, NUMBER, lambda dtype: dtype.type(0)),
    ops.mul_p: (reductions.reduce_prod_p, NUMBER, lambda dtype: dtype.type(1)),
    ops.max_p: (reductions.reduce_max_p, ORDERED, lambda dtype: reductions.extreme(dtype, largest=False)),
    ops.min_p: (reductions.reduce_min_p, ORDERED, lambda dtype: reductions.extreme(dtype, largest=True)),
    ops.and_p: (reductions.reduce_and_p, BITS, _ones),
    ops.or_p: (reductions.reduce_or_p, BITS, lambda dtype: dtype.type(0)),
    ops.xor_p: (reductions.reduce_xor_p, BITS, lambda dtype: dtype.type(0)),
}
_KNOWN_IN_WINDOWS: dict[Primitive, Primitive] = {
    ops.add_p: in_windows.reduce_window_sum_p,
    ops.max_p: in_windows.reduce_window_max_p,
    ops.min_p: in_windows.reduce_window_min_p,
}


def _holds(dtype: np.dtype[Any], number: np.dtype[Any]) -> bool:
    """Return whether a weakly typed number of dtype ``number`` can be converted to ``dtype``.

    The kind of ``dtype`` must be the same or a later one in the order boolean, integer, float, complex.
    """
    if dtypes.is_inexact(dtype):
        return dtypes.is_complex(dtype) or not dtypes.is_complex(number)
    return dtypes.is_bool(number) or (dtypes.is_integer(dtype) and dtypes.is_integer(number))


def _as_discrete(number: float, dtype: np.dtype[Any]) -> Any:
    """Convert a float to an integer or boolean ``dtype`` if this is exact, otherwise return the float.

    Infinities become the smallest and largest values of ``dtype``.
    """
    if math.isinf(number):
        return reductions.extreme(dtype, largest=number > 0)
    return dtype.type(number) if number == dtype.type(number) else number


_LEAF = tree.flatten(0)[1]
_recognised: dict[tuple[Any, np.dtype[Any]], Primitive | None] = {}
"""What public functions of the library are, on scalars of a dtype: users' functions may do something else each time."""


def _is_public(function: Any) -> bool:
    """Whether a function is one of ``lax`` or ``numpy`` of this library."""
    name = getattr(function, "__name__", None)
    modules = [sys.modules.get(f"pullback.{room}") for room in ("lax", "numpy")]
    return type(name) is str and any(vars(m).get(name) is function for m in modules if m is not None)


class _Reduction:
    """The checked arguments of a reduction by a user's function.

    Attributes:
      xs: the operands, arrays of one shape.
      starts: for each operand the initial value, a scalar of its dtype.
      known: the primitive that the user's function is, such as ``add_p``, if there is one operand and this primitive
        has a reduction primitive; otherwise None.
    """

    def __init__(self, name: str, operands: Any, starts: Any, computation: Callable[..., Any]) -> None:
        self.name, self.computation = f"lax.{name}", computation
        require_function(self.name, "computation", computation)
        leaves, self.treedef = tree.flatten(operands)
        first_leaves, treedef = tree.flatten(starts)
        if treedef != self.treedef:
            raise ArgumentError(
                f"{self.name}: the initial values must have the tree of the operands, {self.treedef}, got {treedef}"
            )
        if not leaves:
            raise ArgumentError(f"{self.name} needs at least one operand")
        self.xs = [array_operand(name, x) for x in leaves]
        if len({x.shape for x in self.xs}) > 1:
            shown = ", ".join(str(x.shape) for x in self.xs)
            raise ShapeError(f"{self.name}: all operands must have one shape, got {shown}")
        self.known = self._recognised_at_once()
        self.starts = [self._start(name, start, x) for x, start in zip(self.xs, first_leaves)]

    def _start(self, name: str, start: Any, x: Any) -> Any:
        if type(start) is float and self.known is not None and not dtypes.is_inexact(x.dtype):
            start = _as_discrete(start, x.dtype)
        start = from_scalar(start) if type(start) in SCALARS else array_operand(name, start)
        if start.shape:
            raise ShapeError(f"{self.name}: initial values must be scalars, got one of shape {start.shape}")
        if start.dtype == x.dtype:
            return start
        if not start.weak_type or not _holds(x.dtype, start.dtype):
            raise DtypeError(
                f"{self.name}: the initial value must have the dtype of its operand, {dtypes.short_name(x.dtype)}, got "
                f"{dtypes.short_name(start.dtype)}"
            )
        return ops.convert_element_type(start, x.dtype)

    def _recognised_at_once(self) -> Primitive | None:
        """Return what :meth:`_recognised` does; remember it for a function of this library and one operand."""
        key = (self.computation, self.xs[0].dtype) if self.treedef == _LEAF and _is_public(self.computation) else None
        if key is None:
            return self._recognised()
        if key not in _recognised:
            _recognised[key] = self._recognised()
        return _recognised[key]

    def _recognised(self) -> Primitive | None:
        """Trace and check the user's function, and recognise the primitive that it consists of.

        Return this primitive if there is one operand, and the primitive has its own reduction; otherwise None.
        """
        scalars = [ShapedArray((), x.dtype) for x in self.xs] * 2
        flat = FlatFunction(lambda *args: self._called(args), described=self.computation)
        closed = stage_flat(self.computation, flat, scalars)
        outs = closed.out_avals
        wanted = [(a.shape, a.dtype) for a in scalars[: len(self.xs)]]
        structure = flat.out_structure
        if structure != self.treedef or [(a.shape, a.dtype) for a in outs] != wanted:
            raise ArgumentError(
                f"{self.name}: {name_of(self.computation)} must return a tree of scalars like one of its arguments, "
                f"{tree.unflatten(self.treedef, list(map(format, scalars[: len(self.xs)])))}, got "
                f"{tree.unflatten(structure, list(map(format, outs)))}"
            )
        jaxpr = closed.jaxpr
        if len(self.xs) > 1 or len(jaxpr.eqns) != 1 or jaxpr.outvars != jaxpr.eqns[0].outvars:
            return None
        (eqn,) = jaxpr.eqns
        both = all(type(v) is Var for v in eqn.invars) and set(eqn.invars) == set(jaxpr.invars)
        known = _KNOWN.get(eqn.primitive)
        return eqn.primitive if known is not None and both and known[1](self.xs[0].dtype) else None

    def _called(self, args: Sequence[Any]) -> Any:
        count = len(args) // 2
        return self.computation(*[tree.unflatten(self.treedef, half) for half in (args[:count], args[count:])])

    def combine(self, one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
        """Apply the user's function elementwise to two lists of arrays of one shape; return a list of arrays."""
        if self.known is not None:
            return [self.known.bind(one[0], other[0])]
        shape = one[0].shape
        if 0 in shape:
            return list(one)
        if not shape:
            return list(tree.leaves(self._called([*one, *other])))
        flat = [shapes.reshape(x, (math.prod(shape),)) for x in (*one, *other)]
        outs = vmap(lambda *xs: list(tree.leaves(self._called(xs))))(*flat)
        return [shapes.reshape(out, shape) for out in outs]

    def starts_with_identity(self) -> bool:
        """Return whether the initial value is known to be the identity element of the user's function."""
        assert self.known is not None
        (start,) = self.starts
        if not isinstance(start, ArrayImpl):
            return False
        return bool(np.asarray(start) == _KNOWN[self.known][2](start.dtype))

    def from_start(self, out: Any) -> Any:
        """Combine the initial value with ``out``, the result of a reduction without the initial value."""
        assert self.known is not None
        return out if self.starts_with_identity() else self.known.bind(self.starts[0], out)


@overload
def reduce(
    operands: ArrayLike,
    init_values: ArrayLike,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> Array: ...
@overload
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> PyTree: ...
def reduce(
    operands: PyTree,
    init_values: PyTree,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: OutSharding = None,
) -> PyTree:
    """The elements along some axes, combined by a function.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: a scalar for each operand: the identity element of the function.
      computation: takes two trees of scalars like the tree of the operands, and returns one. It must be associative:
        the order of combination is not specified.
      dimensions: the axes.
      out_sharding: must be None.

    Returns:
      A tree of arrays without these axes, like the tree of the operands. It is differentiated as the function is.

    Raises:
      ShapeError, DtypeError, ArgumentError: the arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import lax
    >>> print(lax.reduce(jnp.arange(6.0).reshape(2, 3), 0.0, lax.add, (0,)))
    [3. 5. 7.]
    >>> def later_of_largest(one, other):
    ...     larger = other[0] >= one[0]
    ...     return tuple(lax.select(larger, b, a) for a, b in zip(one, other))
    >>> x = jnp.array([1.0, 5.0, 5.0, 2.0])
    >>> largest, where = lax.reduce((x, jnp.arange(4)), (-jnp.inf, -1), later_of_largest, (0,))
    >>> print(largest, where)
    5.0 2
    """
    if out_sharding is not None:
        raise UnsupportedArgumentError(f"lax.reduce: out_sharding must be None, got {out_sharding!r}")
    found = _Reduction("reduce", operands, init_values, computation)
    axes, rank = ints(dimensions), len(found.xs[0].shape)
    if len(set(axes)) != len(axes) or any(not 0 <= a < rank for a in axes):
        raise ShapeError(
            f"lax.reduce: dimensions must be distinct axes of operands of shape {found.xs[0].shape}, got {axes}"
        )
    if not axes:
        return operands
    if found.known is None:
        return tree.unflatten(found.treedef, in_windows.fold(found.combine, found.xs, found.starts, axes))
    out = bind(_KNOWN[found.known][0], found.xs[0], axes=axes)
    return tree.unflatten(found.treedef, [found.from_start(out)])


def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """The elements of each of many windows, combined by a function.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: a scalar for each operand: the identity element of the function.
      computation: takes two trees of scalars like the tree of the operands, and returns one. It must be associative:
        the order of combination is not specified.
      window_dimensions: the size of a window along each axis.
      window_strides: the distances between windows along each axis; 1 by default.
      padding: the padding before and after the operand along each axis, as pairs (negative numbers crop); or ``SAME``,
        ``SAME_LOWER`` or ``VALID`` (see :func:`padtype_to_pads`), for the operand before dilation.
      base_dilation: the distances between elements of the operand; 1 by default.
      window_dilation: the distances between elements of a window; 1 by default.

    Returns:
      A tree of arrays like the tree of the operands, with an element for each window; none along an axis where the
      window is longer than the padded operand. The derivative of a maximum or minimum is the derivative of the first
      largest or smallest element; other results are differentiated as the function is.

    Raises:
      ShapeError, DtypeError, ArgumentError: the arguments do not fit each other.

    >>> import pullback.numpy as jnp
    >>> from pullback import grad, lax
    >>> x = jnp.array([1.0, 3.0, 2.0, 5.0, 4.0])
    >>> print(lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,)))
    [3. 3. 5. 5.]
    >>> print(grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,)).sum())(x))
    [0. 2. 0. 2. 0.]
    """
    found = _Reduction("reduce_window", operand, init_value, computation)
    shape = found.xs[0].shape
    windows = in_windows.windows_on(
        shape, found.name, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    if found.known is None:
        outs = in_windows.fold_windows(found.combine, found.xs, found.starts, windows)
        starts = [shapes.broadcast_to(start, out.shape) for start, out in zip(found.starts, outs)]
        return tree.unflatten(found.treedef, found.combine(starts, outs))
    (x,) = found.xs
    primitive = _KNOWN_IN_WINDOWS.get(found.known)
    if primitive is not None:
        out = bind(primitive, x, windows=windows)
    else:
        nothing = scalar_array(_KNOWN[found.known][2](x.dtype))
        (out,) = in_windows.fold_windows(found.combine, [x], [nothing], windows)
    return tree.unflatten(found.treedef, [found.from_start(out)])
