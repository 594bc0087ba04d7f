"""Brownian paths that are functions of a key and of time.

A path is a tree of bridges: the key and the number of a node of the tree determine the value in the middle of the
node's interval, given the values and the integral at its ends. So a path has the same values however many of them are
asked for, in which order, and with which steps.

Source: Jelinčič, Foster and Kidger 2024, *Single-seed generation of Brownian paths and integrals for adaptive and high
order SDE solvers*; Li, Wong, Chen and Duvenaud 2020, *Scalable gradients for stochastic differential equations*.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as pnp
from pullback import random
from pullback.core import dtypes
from pullback.core.array import Array, ArrayImpl, ArrayLike
from pullback.core.tree import register_pytree_node_class
from pullback.numpy.promotion import shape_tuple
from pullback.primitives import elementwise as ops
from pullback.primitives.arrays import shapes
from pullback.primitives.operands import stop_gradient
from pullback.scipy.arguments import known, real_floats
from pullback.scipy.integrate.grids import span_of
from pullback.transforms.autodiff.vmap import vmap

LEVELS = 24
"""The depth of the tree: its leaves are 2**-24 of the span, as fine as times in single precision."""


def unit_path(key: Any, unit: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return a Brownian path on [0, 1] and its integral from 0, at times.

    Args:
      key: the key of the path.
      unit: the times, a vector; an array of NumPy where they are known.
      shape: the shape of a value, whose elements are independent.
      dtype: the dtype of the values.

    Returns:
      Two arrays, with a leading axis for the times.
    """
    unit = unit if isinstance(unit, np.ndarray) else stop_gradient(unit)
    depth = _depth(unit)
    xp: Any = np if isinstance(unit, np.ndarray) else pnp
    count = unit.shape[0]
    scaled = unit * float(2**depth)
    leaf = xp.clip(xp.floor(scaled), 0, 2**depth - 1)
    within = _constant(scaled - leaf, dtype)
    leaf = leaf.astype(np.uint32)
    full = min(depth, max(1, math.ceil(math.log2(max(count, 2)))))
    # Node 0 is the whole interval; nodes 2**l to 2**(l + 1) - 1 are the intervals of level l.
    nodes = [np.arange(2**full, dtype=np.uint32)]
    nodes += [(leaf >> np.uint32(depth - level)) + np.uint32(2**level) for level in range(full, depth)]
    ids = pnp.concatenate([pnp.asarray(x) for x in nodes])
    draws = vmap(lambda node: random.normal(random.fold_in(key, node), (2, *shape), dtype))(ids)
    first = draws[0]
    column = (count, *[1] * len(shape))
    value = pnp.zeros((count, *shape), dtype)
    total = pnp.zeros((count, *shape), dtype)
    rise = pnp.broadcast_to(first[0], value.shape)
    area = pnp.broadcast_to(first[1] * math.sqrt(1 / 12), value.shape)
    for level in range(depth):
        width = 2.0**-level
        if level < full:
            z = draws[np.uint32(2**level) + (leaf >> np.uint32(depth - level))]
        else:
            start = 2**full + (level - full) * count
            z = draws[start : start + count]
        bit = (leaf >> np.uint32(depth - level - 1)) & np.uint32(1)
        right = shapes.reshape(pnp.asarray(bit == 1), column)
        value, total, rise, area = _half(width, z, right, value, total, rise, area)
    width, theta = 2.0**-depth, shapes.reshape(within, column)
    # Within a leaf: the expected path, given the values and the integral at its ends.
    bulge = 6.0 * theta * (1.0 - theta)
    inner = theta * theta * (0.5 * rise + (3.0 - 2.0 * theta) * area)
    return value + theta * rise + bulge * area, total + width * (theta * value + inner)


def _half(width: float, z: Any, right: Any, value: Any, total: Any, rise: Any, area: Any) -> tuple[Any, ...]:
    """Go from an interval of a size to one of its halves.

    Args:
      width: the size of the interval.
      z: two standard normal numbers for each interval.
      right: whether the right half is wanted.
      value, total: the path and its integral at the start of the interval.
      rise, area: the path's increment, and the mean of its distance from the chord.
    """
    noise, other = z[:, 0] * math.sqrt(width / 16), z[:, 1] * math.sqrt(width / 48)
    tilt = 1.5 * area + noise
    left_rise = 0.5 * rise + tilt
    mean = 0.25 * area - 0.5 * noise
    left_area = mean + other
    middle = total + (0.5 * width) * (value + 0.5 * left_rise + left_area)
    return (
        ops.where(right, value + left_rise, value),
        ops.where(right, middle, total),
        ops.where(right, rise - left_rise, left_rise),
        ops.where(right, mean - other, left_area),
    )


def _constant(x: Any, dtype: np.dtype[Any]) -> Any:
    return ArrayImpl(x.astype(dtype)) if isinstance(x, np.ndarray) else ops.convert_element_type(x, dtype)


def _depth(unit: Any) -> int:
    """Return how deep the tree must be for times: less than :data:`LEVELS` if all are multiples of a power of 1/2."""
    if isinstance(unit, np.ndarray):
        for depth in range(1, LEVELS):
            scaled = unit * 2.0**depth
            if (scaled == np.rint(scaled)).all():
                return depth
    return LEVELS


@register_pytree_node_class
class BrownianPath:
    """A Brownian path that is a function of a key and of time.

    It is the path that :func:`solve_sde` uses with the same key and span: ``path(t)`` is its value, zero at the first
    time. Values at different times belong to one path, however many are asked for. The path is as fine as 2**-24 of the
    span. It has no derivative with respect to time. It is a tree whose leaves are the key and the span, so
    that it can be mapped over keys.

    Args:
      key: a random key.
      t_span: the first and the last time.
      shape: the shape of a value; the elements are independent.
      dtype: float32 or float64; the default float dtype if None.

    >>> import pullback.numpy as jnp
    >>> from pullback import random
    >>> from pullback.scipy.integrate import BrownianPath
    >>> path = BrownianPath(random.key(0), (0.0, 1.0))
    >>> few, many = path(jnp.array([0.5, 1.0])), path(jnp.linspace(0.0, 1.0, 9))
    >>> bool(jnp.allclose(few, many[jnp.array([4, 8])]))
    True

    Source: Jelinčič, Foster and Kidger 2024, *Single-seed generation of Brownian paths and integrals for adaptive and
    high order SDE solvers*.
    """

    def __init__(self, key: Array, t_span: Any, shape: Any = (), dtype: Any = None) -> None:
        self.dtype = np.dtype(dtypes.default_float() if dtype is None else dtypes.canonicalize_dtype(dtype))
        self.key = key
        self.shape = shape_tuple(shape, "BrownianPath")
        self.t_span = span_of("BrownianPath", t_span, self.dtype, forward=True)

    def __call__(self, t: ArrayLike) -> Array:
        """Return the values of the path at times, an array of any shape, followed by the axes of a value."""
        return self._at(t)[0]

    def with_integral(self, t: ArrayLike) -> tuple[Array, Array]:
        """Return the values of the path at times, and its integrals from the first time."""
        return self._at(t)

    def _at(self, t: Any) -> tuple[Any, Any]:
        times = ops.convert_element_type(real_floats("BrownianPath", t, "the times"), self.t_span[0].dtype)
        start, stop = self.t_span
        width = ops.sub(stop, start)
        flat = shapes.reshape(times, (times.size,))
        ends = known(start), known(stop), known(flat)
        if all(x is not None for x in ends):
            low, high, values = (np.asarray(x, np.float64) for x in ends)
            unit: Any = np.clip((values - low) / (high - low or 1.0), 0.0, 1.0)
        else:
            unit = ops.clamp_p.bind(0.0, ops.div(ops.sub(flat, start), ops.where(ops.eq(width, 0.0), 1.0, width)), 1.0)
        value, total = unit_path(self.key, unit, self.shape, self.dtype)
        scale = ops.sqrt(ops.convert_element_type(width, self.dtype))
        full = (*times.shape, *self.shape)
        return shapes.reshape(scale * value, full), shapes.reshape(scale**3 * total, full)

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        return (self.key, self.t_span), (self.shape, self.dtype)

    @classmethod
    def tree_unflatten(cls, fixed: tuple[Any, Any], leaves: tuple[Any, Any]) -> BrownianPath:
        self = object.__new__(cls)
        self.key, self.t_span = leaves
        self.shape, self.dtype = fixed
        return self
