"""Random programs of primitives, for laws that hold of every program.

A program is smooth almost everywhere, uses broadcasting, constants, Python numbers and dead code, and takes
values of moderate size to values of moderate size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pullback.core.array import ArrayImpl, as_array
from pullback.core.config import enable_x64
from pullback.primitives import elementwise, reductions
from pullback.primitives.arrays import shapes, slicing
from pullback.primitives.linalg import contraction

Shape = tuple[int, ...]
Draw = Callable[[Any], Any]
Operation = Callable[..., Any]

UNARY: dict[str, Operation] = {
    "sin": elementwise.sin,
    "cos": elementwise.cos,
    "tanh": elementwise.tanh,
    "logistic": elementwise.logistic,
    "neg": elementwise.neg,
    "atan": elementwise.atan_p.bind,
    "half_square": lambda x: elementwise.mul(0.5, elementwise.square(x)),
    "cube": lambda x: elementwise.integer_pow(elementwise.tanh(x), 3),
    "gauss": lambda x: elementwise.exp(elementwise.neg(elementwise.square(x))),
    "plus_one": lambda x: elementwise.add(x, 1),
    "times_float": lambda x: elementwise.mul(1.5, x),
    "abs": elementwise.abs,
    "copy": elementwise.copy_p.bind,
}
BINARY: dict[str, Operation] = {
    "add": elementwise.add,
    "sub": elementwise.sub,
    "mul": elementwise.mul,
    "over_one_plus_square": lambda x, y: elementwise.div(x, elementwise.add(elementwise.square(y), 1)),
    "max": elementwise.max_p.bind,
    "where_less": lambda x, y: elementwise.where(elementwise.lt(x, y), elementwise.sin(x), y),
    "stopped": lambda x, y: elementwise.mul(x, elementwise.stop_gradient_p.bind(y)),
}


@dataclass
class Instruction:
    """One operation on values that are there already."""

    name: str
    function: Operation
    operands: tuple[int, ...]

    def __repr__(self) -> str:
        return f"{self.name}{self.operands}"


@dataclass
class Program:
    """A function of arrays, which returns a list of arrays; and a point at which to run it."""

    inputs: list[np.ndarray[Any, Any]]
    instructions: list[Instruction]
    outputs: list[int]

    def __call__(self, *args: Any) -> list[Any]:
        values = list(args)
        for step in self.instructions:
            values.append(step.function(*[values[i] for i in step.operands]))
        return [values[i] for i in self.outputs]

    def scalar(self, *args: Any) -> Any:
        """The sum of the sines of all results."""
        total: Any = None
        for x in self(*args):
            part = reductions.reduce_sum(elementwise.sin(x), range(len(x.shape)))
            total = part if total is None else elementwise.add(total, part)
        return total

    def arguments(self) -> list[Any]:
        return [as_array(x) for x in self.inputs]

    def directions(self, seed: int) -> list[Any]:
        """Arrays like the inputs."""
        return random_like(self.inputs, seed)

    def __repr__(self) -> str:
        return f"Program({[x.shape for x in self.inputs]}, {self.instructions}, outputs={self.outputs})"


def random_like(values: Sequence[Any], seed: int) -> list[Any]:
    """Random arrays of the shapes and dtypes of others."""
    rng = np.random.default_rng(seed)
    return [as_array(np.asarray(rng.uniform(-1, 1, x.shape)).astype(x.dtype)) for x in values]


def _unary(draw: Draw, values: list[Any]) -> Instruction:
    name = draw(st.sampled_from(sorted(UNARY)))
    return Instruction(name, UNARY[name], (_pick(draw, values),))


def _binary(draw: Draw, values: list[Any]) -> Instruction:
    """Two operands that broadcast, or the same one twice."""
    i = _pick(draw, values)
    fitting = [j for j, y in enumerate(values) if _broadcasts(values[i].shape, y.shape)]
    j = draw(st.sampled_from(fitting))
    name = draw(st.sampled_from(sorted(BINARY)))
    return Instruction(name, BINARY[name], (i, j))


def _constant(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    (c,) = random_like([values[i]], draw(st.integers(0, 99)))
    return Instruction("times_constant", lambda x: elementwise.mul(x, c), (i,))


def _sum(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    axes = tuple(draw(st.sets(st.integers(0, values[i].ndim - 1)))) if values[i].ndim else ()
    return Instruction(f"sum{axes}", lambda x: reductions.reduce_sum(x, axes), (i,))


def _transpose(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    order = draw(st.permutations(range(values[i].ndim)))
    return Instruction(f"transpose{order}", lambda x: shapes.transpose(x, order), (i,))


def _reshape(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    shape = draw(st.sampled_from([(values[i].size,), (1, *values[i].shape), values[i].shape[::-1]]))
    return Instruction(f"reshape{shape}", lambda x: shapes.reshape(x, shape), (i,))


def _broadcast(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    old = values[i].shape
    if len(old) >= 3:
        return _unary(draw, values)
    shape = (*old[:1], 2, *old[1:])
    dims = (0, *range(2, len(shape)))[: len(old)]
    return Instruction(f"broadcast{shape}", lambda x: shapes.broadcast_in_dim(x, shape, dims), (i,))


def _slice(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    old = values[i].shape
    starts = [draw(st.integers(0, n - 1)) for n in old]
    limits = [draw(st.integers(s + 1, n)) for s, n in zip(starts, old, strict=True)]
    steps = [draw(st.integers(1, 2)) for _ in old]
    part = starts, limits, steps
    return Instruction(f"slice{part}", lambda x: slicing.slice(x, *part), (i,))


def _pad(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    triples = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))
    config = [draw(triples) for _ in values[i].shape]
    return Instruction(f"pad{config}", lambda x: slicing.pad(x, 0, config), (i,))


def _rev(draw: Draw, values: list[Any]) -> Instruction:
    i = _pick(draw, values)
    return Instruction("rev", lambda x: slicing.rev(x, range(len(x.shape))), (i,))


def _concatenate(draw: Draw, values: list[Any]) -> Instruction:
    """A value with another of its shape, along an axis."""
    i = _pick(draw, values)
    if not values[i].ndim:
        return _unary(draw, values)
    j = draw(st.sampled_from([j for j, y in enumerate(values) if y.shape == values[i].shape]))
    axis = draw(st.integers(0, values[i].ndim - 1))
    return Instruction(f"concatenate{axis}", lambda x, y: slicing.concatenate([x, y], axis), (i, j))


def _dot(draw: Draw, values: list[Any]) -> Instruction:
    """The mean of products over one pair of axes of the same size."""
    pairs = [
        (i, j, a, b)
        for i, x in enumerate(values) for j, y in enumerate(values)
        for a, m in enumerate(x.shape) for b, n in enumerate(y.shape)
        if m == n and x.ndim + y.ndim <= 4
    ]  # fmt: skip
    if not pairs:
        return _unary(draw, values)
    i, j, a, b = draw(st.sampled_from(pairs))
    dims = (((a,), (b,)), ((), ()))
    return Instruction(f"dot{a, b}", lambda x, y: contraction.dot_general(x, y, dims), (i, j))


FAMILIES = [
    _unary, _unary, _binary, _binary, _constant, _sum, _transpose, _reshape, _broadcast, _slice, _pad, _rev,
    _concatenate, _dot,
]  # fmt: skip


def _pick(draw: Draw, values: list[Any]) -> int:
    return int(draw(st.integers(0, len(values) - 1)))


def _broadcasts(a: Shape, b: Shape) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


@st.composite
def programs(draw: Draw, max_inputs: int = 3, max_instructions: int = 8, dtype: Any = np.float64) -> Program:
    """Random programs in float64 (run them with 64-bit types enabled) or another dtype."""
    sizes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
    given = draw(st.lists(sizes, min_size=1, max_size=max_inputs))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    inputs = [np.asarray(rng.uniform(-1, 1, shape)).astype(dtype) for shape in given]
    values: list[Any] = [ArrayImpl(x) for x in inputs]
    instructions: list[Instruction] = []
    with enable_x64():
        for _ in range(draw(st.integers(1, max_instructions))):
            step = draw(st.sampled_from(FAMILIES))(draw, values)
            value = step.function(*[values[i] for i in step.operands])
            if value.size <= 100 and np.abs(value).max(initial=0) < 1e3:
                instructions.append(step)
                values.append(value)
    last = len(values) - 1
    others = draw(st.lists(st.integers(0, last), max_size=2))
    return Program(inputs, instructions, [last, *others])
