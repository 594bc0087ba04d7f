"""Functions at a point, and their derivatives by numerical differences, for checks of derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from pullback.core import dtypes, tree
from pullback.core.array import as_array
from pullback.core.config import config, enable_x64
from pullback.core.locks import cached_property

Vector = np.ndarray[Any, np.dtype[np.float64]]


def double_precision() -> AbstractContextManager[None]:
    """Return a context manager in which 64-bit types are enabled."""
    return nullcontext() if config.enable_x64 else enable_x64(True)


def random_vector(size: int, seed: int) -> Vector:
    return np.random.default_rng([size, seed]).uniform(-1, 1, size)


# Trees as vectors of real numbers ----------------------------------------------------------------------------------


class Space:
    """The real coordinates of the inexact leaves of a tree; for a complex leaf real parts, then imaginary parts.

    Args:
      value: the tree.
      labels: the names of the entries of a tuple of arguments, instead of ``argument 0`` and so on.
    """

    def __init__(self, value: Any, labels: Sequence[str] = ()) -> None:
        pairs, self.treedef = tree.flatten_with_path(value)
        self.labels = labels
        self.paths = [path for path, _ in pairs]
        self.leaves: list[Any] = [as_array(x) for _, x in pairs]
        self.complex = [dtypes.is_complex(x.dtype) for x in self.leaves]
        self.counts = [
            x.size * (2 if pair else 1) if dtypes.is_inexact(x.dtype) else 0
            for x, pair in zip(self.leaves, self.complex, strict=True)
        ]
        self.size = sum(self.counts)

    def vector(self, value: Any, dual: bool = False) -> Vector:
        """Return the coordinates of a tree like the tree of this space.

        With ``dual`` it is a tree of cotangents, whose imaginary parts have the other sign.
        """
        out = np.empty(self.size)
        begin = 0
        for x, count, pair in zip(tree.leaves(value), self.counts, self.complex, strict=True):
            if count:
                flat, end = np.asarray(x).ravel(), begin + count
                if pair:
                    middle = begin + count // 2
                    out[begin:middle], out[middle:end] = flat.real, -flat.imag if dual else flat.imag
                else:
                    out[begin:end] = flat
                begin = end
        return out

    def _arrays(self, vector: Vector, dual: bool = False) -> Iterator[np.ndarray[Any, Any]]:
        """Split a vector of coordinates: yield for each leaf an array of its shape and dtype.

        For integer leaves, yield zeros of dtype ``float0``. With ``dual`` the arrays are cotangents: the coordinates of
        their imaginary parts have the opposite sign.
        """
        begin = 0
        for x, count, pair in zip(self.leaves, self.counts, self.complex, strict=True):
            values = vector[begin : begin + count]
            begin += count
            if not dtypes.is_inexact(x.dtype):
                yield np.zeros(x.shape, dtypes.float0)
                continue
            if pair:
                half = count // 2
                values = values[:half] + (-1j if dual else 1j) * values[half:]
            yield values.reshape(x.shape).astype(x.dtype)

    def tangents(self, vector: Vector, dual: bool = False) -> Any:
        """Return the tree of tangents, or with ``dual`` of cotangents, that has the coordinates ``vector``."""
        arrays = self._arrays(vector, dual)
        return tree.unflatten(self.treedef, [t if t.dtype == dtypes.float0 else as_array(t) for t in arrays])

    def displaced(self, vector: Vector) -> Any:
        """Return the tree of this space with ``vector`` added to its coordinates."""
        moved = [
            x if t.dtype == dtypes.float0 else as_array(np.asarray(np.asarray(x) + t, x.dtype))
            for x, t in zip(self.leaves, self._arrays(vector), strict=True)
        ]
        return tree.unflatten(self.treedef, moved)

    def block(self, index: int) -> tuple[int, int]:
        """Return the index of the leaf that holds a coordinate, and the position of the coordinate in the leaf."""
        for i, count in enumerate(self.counts):
            if index < count:
                return i, index
            index -= count
        raise IndexError(index)

    def name(self, index: int, root: str) -> str:
        """Return the name of a coordinate, its leaf and element, as in ``argument 0['w'][3, 2]``."""
        i, position = self.block(index)
        x = self.leaves[i]
        component = ""
        if dtypes.is_complex(x.dtype):
            component = " (imaginary part)" if position >= x.size else " (real part)"
            position %= x.size
        element = [int(k) for k in np.unravel_index(position, x.shape)]
        return f"{self.leaf_name(i, root)}{element if element else ''}{component}"

    def indicator(self, i: int) -> Vector:
        """Return a vector with 1 for each coordinate of a leaf, and 0 for all others."""
        return np.repeat(np.arange(len(self.counts)) == i, self.counts).astype(np.float64)

    def leaf_name(self, i: int, root: str) -> str:
        """Return the name of a leaf, as in ``argument 0['w']``; the root "argument" stands for a tuple of arguments."""
        path = self.paths[i]
        if root == "argument":
            position = path[0].idx
            root, path = self.labels[position] if self.labels else f"argument {position}", path[1:]
        return f"{root}{tree.keystr(path)}"


# Differences -------------------------------------------------------------------------------------------------------


class Point:
    """A function at a point, in the precision in which its derivatives are compared."""

    def __init__(self, f: Any, args: tuple[Any, ...], eps: float | None = None, labels: Sequence[str] = ()) -> None:
        self.f = f
        self.args = args
        self.inputs = Space(args, labels)
        self.out = f(*self.inputs.displaced(np.zeros(self.inputs.size)))
        self.outputs = Space(self.out)
        self.value = self.outputs.vector(self.out)
        self.at = self.inputs.vector(args)
        found = [x.dtype for x in (*self.inputs.leaves, *self.outputs.leaves) if dtypes.is_inexact(x.dtype)]
        self.rounding = max((float(dtypes.finfo(d).eps) for d in found), default=2.0**-52)
        self.smallest = max((float(dtypes.finfo(d).smallest_normal) for d in found), default=2.0**-1022)
        self.eps = eps

    def __call__(self, displacement: Vector) -> Vector:
        return self.outputs.vector(self.f(*self.inputs.displaced(displacement)))

    @cached_property
    def noise(self) -> Vector:
        """The rounding error of each component of the value.

        It is measured by second differences over steps so short that the function is linear except for rounding errors
        (Moré and Wild 2011, Estimating computational noise). The size of the value does not show it: a component
        that is zero, as the difference of two large intermediates, has their rounding errors.
        """
        reach = np.where(self.at == 0, 1.0, np.abs(self.at)) * self.rounding**0.75
        found = np.zeros(len(self.value))
        with np.errstate(all="ignore"):
            for k in range(3):
                step = reach * random_vector(self.inputs.size, 20 + k)
                found = np.fmax(found, np.abs(self(step) - 2 * self.value + self(-step)) / 2)
        found[~np.isfinite(found)] = 0
        return found

    def steps(self, direction: Vector) -> list[float]:
        """Return step sizes along a direction for numerical differences, in the order in which to try them.

        Short steps have small truncation errors, long steps small rounding errors.
        """
        if self.eps is not None:
            return [float(self.eps)]
        longest = float(np.max(np.abs(self.at[direction != 0]), initial=0))
        unit = 2.0 ** np.ceil(np.log2(longest)) if longest > 1 else 1.0
        if self.rounding > 1e-10:
            return [unit * 2.0**k for k in (-5, -3, -1, -7)]
        ladder = [unit * 2.0**k for k in (-10, -14, -18, -22, -26)]
        return [*ladder, longest * 2.0**-6] if 0 < longest < ladder[1] else ladder

    def slope(self, direction: Vector) -> tuple[Vector, Vector]:
        """Return the derivative along a direction, by extrapolated central differences, and an error estimate."""
        best = np.zeros(len(self.value))
        error = np.full(len(self.value), np.inf)
        with np.errstate(all="ignore"):
            for h in self.steps(direction):
                coarse, rough = self._central(direction, h)
                fine, noise = self._central(direction, h / 2)
                estimate = fine + (fine - coarse) / 3
                doubt = np.abs(estimate - fine) + noise + rough
                better = doubt < error
                best[better], error[better] = estimate[better], doubt[better]
                if np.all(error <= 1e-7 * np.abs(best) + 64 * noise):
                    break
        return best, error

    def _central(self, direction: Vector, h: float) -> tuple[Vector, Vector]:
        """Return the central difference of the function along a direction with step ``h``, and its rounding error."""
        ahead, behind = self(h * direction), self(-h * direction)
        size = np.maximum(np.abs(ahead), np.abs(behind))
        return (ahead - behind) / (2 * h), 2 * (self.rounding * size + self.noise) / h


def precise_point(
    f: Any,
    args: tuple[Any, ...],
    eps: float | None = None,
    labels: Sequence[str] = (),
    overflow: bool = False,
) -> Point | None:
    """Return the function at the same point in float64; None if it raises or returns different values in float64.

    ``eps`` is the step of numerical differences, ``labels`` the names of the arguments. With ``overflow``, values that
    are not finite in the dtype of the arguments may be finite in float64.
    """
    try:
        wide = tree.tree_map(widened, args)
        point = Point(f, wide, eps, labels)
        narrow_out = Space(f(*Space(args).displaced(np.zeros(Space(args).size))))
    except Exception:
        return None
    out = point.outputs
    if point.rounding > 1e-10 or out.treedef != narrow_out.treedef or out.counts != narrow_out.counts:
        return None
    narrow = narrow_out.vector(tree.unflatten(narrow_out.treedef, narrow_out.leaves))
    scale = np.max(np.abs(point.value), initial=0) + 1e-30
    with np.errstate(all="ignore"):
        alike = np.abs(point.value - narrow) <= 0.02 * scale
    return point if np.all(alike | ~np.isfinite(narrow) if overflow else alike) else None


def widened(x: Any) -> Any:
    """Convert a leaf to double precision, if it is inexact."""
    x = as_array(x)
    if not dtypes.is_inexact(x.dtype):
        return x
    return as_array(np.asarray(x).astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64))


class Tolerance:
    """The largest errors allowed in derivatives at a point: by default the errors that rounding explains."""

    def __init__(self, point: Point, atol: float | None, rtol: float | None) -> None:
        self.rounding = rounding = point.rounding
        self.rtol = rtol if rtol is not None else min(1e4 * rounding, 8 * rounding + 0.05) if rounding > 1e-10 else 1e-6
        self.atol = atol
        size = np.max(np.abs(point.value), initial=0, where=np.isfinite(point.value))
        # Numbers below the smallest normal one have few bits, or none: compiled code flushes them to zero.
        self.floor = 16 * (rounding * size + np.max(point.noise, initial=0)) + 8 * point.smallest

    def allowed(self, expected: Vector, error: Vector | float = 0.0) -> Vector:
        """Return the largest error allowed in each component along the last axis, given the error of ``expected``."""
        atol: Any = self.atol
        if atol is None:
            largest = np.max(np.abs(expected), axis=-1, keepdims=True, initial=0, where=np.isfinite(expected))
            atol = 1e3 * self.rounding * largest + self.floor
        return np.asarray(atol + self.rtol * np.abs(expected) + 4 * error)
