"""Operations as functions of some of their operands, beside constants that are not zero, for the laws of derivatives.

A case is a row of the table, and which of its operands are arguments. Those are real: a complex operand moves along a
line in its plane. So are the results: of a complex one there are both parts. The dense derivatives of a case come from
nested forward mode alone, the first and second ones also from differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import jvp, vmap
from pullback.core import dtypes, tree
from pullback.core.array import as_array, host_value
from pullback.primitives.elementwise import imag, real
from tests.grid.specs import LETTERS, Spec

TURN = 0.8 + 0.6j
"""The direction in which a complex operand moves."""


@dataclass(frozen=True, eq=False)
class Case:
    """A function of real arrays, to a list of real arrays, at a point.

    Attributes:
      name: the row, and which operands move.
      function: takes as many arrays as there are in the point.
      point: the arguments.
      second: whether it has second derivatives, and third ones.
    """

    name: str
    function: Callable[..., list[Any]]
    point: list[Any]
    second: bool = True

    def __repr__(self) -> str:
        return self.name

    def __call__(self, *xs: Any) -> list[Any]:
        return self.function(*xs)

    def scalar(self, *xs: Any) -> Any:
        """A number that is not linear in the results, but for those that are infinite, which it leaves out."""
        numbers = [jnp.where(jnp.isfinite(y), y, 0) for y in self(*xs)]
        return sum((jnp.sum(jnp.sin(0.3 * y + 0.1) * weights(y)) for y in numbers), 0.0)

    @property
    def argnums(self) -> tuple[int, ...]:
        return tuple(range(len(self.point)))

    @property
    def size(self) -> int:
        return sum(x.size for x in self.point)

    @cached_property
    def results(self) -> list[Any]:
        return self(*self.point)

    @cached_property
    def basis(self) -> list[Any]:
        """For each argument its part of the unit vectors, one after the other along a new first axis."""
        flat = np.split(np.eye(self.size), np.cumsum([x.size for x in self.point])[:-1], axis=1)
        return [as_array(rows.reshape(self.size, *x.shape)) for rows, x in zip(flat, self.point, strict=True)]

    def directions(self, seed: int) -> list[Any]:
        """A direction for each argument."""
        rng = np.random.default_rng([seed, self.size])
        return [as_array(rng.uniform(0.5, 1, x.shape) * rng.choice([-1, 1], x.shape)) for x in self.point]

    def cotangents(self) -> list[Any]:
        rng = np.random.default_rng(self.size)
        return [as_array(np.asarray(rng.uniform(0.5, 1, y.shape))) for y in self.results]

    @cached_property
    def jacobian(self) -> Any:
        """Of shape (elements of the results, elements of the arguments), by forward mode."""
        rows = vmap(lambda *v: jvp(self, self.point, v)[1])(*self.basis)
        flat = [host_value(x).reshape(self.size, y.size) for x, y in zip(rows, self.results, strict=True)]
        return np.concatenate([np.zeros((self.size, 0)), *flat], 1).T

    @cached_property
    def second_derivatives(self) -> Any:
        """Of shape (elements of the results, elements of the arguments, the same), by nested forward mode."""

        def along(v: Sequence[Any], w: Sequence[Any]) -> Any:
            return jvp(lambda *xs: jvp(self, xs, v)[1], self.point, w)[1]

        rows = vmap(lambda *v: vmap(lambda *w: along(v, w))(*self.basis))(*self.basis)
        n = self.size
        flat = [host_value(x).reshape(n, n, y.size) for x, y in zip(rows, self.results, strict=True)]
        return np.moveaxis(np.concatenate([np.zeros((n, n, 0)), *flat], 2), 2, 0)

    @cached_property
    def hessian(self) -> Any:
        """Of the scalar, by nested forward mode."""

        def along(v: Sequence[Any], w: Sequence[Any]) -> Any:
            return jvp(lambda *xs: jvp(self.scalar, xs, v)[1], self.point, w)[1]

        return host_value(vmap(lambda *v: vmap(lambda *w: along(v, w))(*self.basis))(*self.basis))


def vector(parts: Sequence[Any]) -> Any:
    """The elements of arrays as one vector of NumPy's."""
    return np.concatenate([np.zeros(0), *[np.ravel(host_value(x)) for x in parts]])


def weights(y: Any) -> Any:
    """Numbers for each element of an array, all different."""
    return as_array(np.cos(np.arange(math.prod(y.shape)) + 1.0).reshape(y.shape))


# Cases of rows -------------------------------------------------------------------------------------------------------


def real_parts(out: Any) -> list[Any]:
    """The inexact results of an operation, as real arrays."""
    found = [x for x in tree.leaves(out) if dtypes.is_inexact(x.dtype)]
    return [part for x in found for part in ([real(x), imag(x)] if dtypes.is_complex(x.dtype) else [x])]


def places(spec: Spec, point: Sequence[Any]) -> list[int]:
    """The operands of which an operation has derivatives."""
    wanted = range(len(point)) if spec.differentiable is None else spec.differentiable
    return [i for i in wanted if dtypes.is_inexact(point[i].dtype)]


def moving(where: Sequence[int]) -> list[tuple[int, ...]]:
    """Which operands move: all, each alone, and all but one in turn."""
    alone = [(i,) for i in where]
    without = [tuple(k for k in where if k != i) for i in where] if len(where) > 2 else []
    return list(dict.fromkeys([tuple(where), *alone, *without]))


def cases(spec: Spec, letter: str) -> Iterator[Case]:
    """The cases of a row, for a dtype; the constants among the operands are those of the row, of which none is zero."""
    point = [as_array(x) for x in spec.point(letter)]
    for own in moving(places(spec, point)):
        if own:
            yield case(f"{spec.name}[{letter}] in {own}", spec.function, point, own, spec.second)


def case(name: str, function: Callable[..., Any], point: Sequence[Any], own: Sequence[int], second: bool) -> Case:
    """A function of some of its arguments."""

    def f(*xs: Any) -> list[Any]:
        full = list(point)
        for i, x in zip(own, xs, strict=True):
            full[i] = full[i] + TURN * x if dtypes.is_complex(full[i].dtype) else x
        return real_parts(function(*full))

    start = [as_array(np.zeros(x.shape)) if dtypes.is_complex(x.dtype) else x for x in (point[i] for i in own)]
    return Case(name, f, start, second)


def in_double(spec: Spec) -> str:
    """The dtypes in which a row has derivatives."""
    return "".join(letter for letter in spec.derivative if LETTERS[letter].itemsize >= 8)
