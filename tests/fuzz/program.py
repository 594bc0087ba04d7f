"""Programs as data: lists of instructions, whose texts are evaluated in single or double precision, plainly or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import pullback.numpy as jnp
from tests.fuzz import namespace

OPERAND = re.compile(r"(?<![\w.])_(\d)(?!\w)")
BODY = re.compile(r"(?<![\w.])f(\d)(?!\w)")
"""The names of operands and bodies in the texts of instructions."""


ROUNDING = 1.2e-7
"""Of single precision."""


class Type(NamedTuple):
    """A shape, and the kind of the dtype: one of "f", "c", "i", "u" and "b"."""

    shape: tuple[int, ...]
    kind: str


SCALAR = Type((), "f")


@dataclass(frozen=True)
class Instruction:
    """One operation on values that are there already.

    Attributes:
      kind: what is counted in the report.
      text: an expression of the operands ``_0``, ``_1``, ... and the bodies ``f0``, ``f1``, ...
      operands: positions of values, of the program's inputs first.
      bodies: the programs that the operation is given as functions.
      plain: an expression that has to be equal, made of other and simpler means; None if it is the same.
      type: of the result.
      smooth: whether its derivative is that of differences.
    """

    kind: str
    text: str
    operands: tuple[int, ...] = ()
    bodies: tuple[Program, ...] = ()
    plain: str | None = None
    type: Type = SCALAR
    smooth: bool = True


@dataclass(frozen=True)
class Program:
    """A function of arrays, which returns a list of arrays."""

    inputs: int
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    def __len__(self) -> int:
        return sum(1 + sum(map(len, step.bodies)) for step in self.instructions)

    def steps(self) -> Iterator[Instruction]:
        """All instructions, those of bodies included."""
        for step in self.instructions:
            yield step
            for body in step.bodies:
                yield from body.steps()

    def alive(self) -> Program:
        """The same without the instructions that no output needs."""
        needed = set(self.outputs)
        for k in reversed(range(len(self.instructions))):
            if self.inputs + k in needed:
                needed.update(self.instructions[k].operands)
        kept = [k for k in range(len(self.instructions)) if self.inputs + k in needed]
        if len(kept) == len(self.instructions):
            return self
        place = {i: i for i in range(self.inputs)} | {self.inputs + k: self.inputs + n for n, k in enumerate(kept)}
        steps = [self.instructions[k] for k in kept]
        moved = tuple(replace(step, operands=tuple(place[i] for i in step.operands)) for step in steps)
        return Program(self.inputs, moved, tuple(place[i] for i in self.outputs))


class Input(NamedTuple):
    """An argument of a program: numbers, and the name of a dtype."""

    values: Any
    dtype: str

    def array(self, double: bool) -> Any:
        """The argument, in the precision; complex numbers are pairs."""
        names = namespace.names(double)
        return names["array"](self.values, names[self.dtype])


@dataclass(frozen=True)
class Case:
    """A program and its arguments; and which of its derivatives exist."""

    program: Program
    inputs: tuple[Input, ...]
    seed: str = ""

    def arguments(self, double: bool) -> list[Any]:
        return [x.array(double) for x in self.inputs]

    def names(self) -> set[str]:
        return {x.dtype for x in self.inputs}


# Evaluation ----------------------------------------------------------------------------------------------------------


@dataclass
class Way:
    """How programs are evaluated.

    Attributes:
      double: in 64 bits, in which every inexact dtype is the widest.
      plain: by the plain expressions, where there are some.
      noise: the size of random relative changes that each inexact result suffers.
      seed: of these changes.
    """

    double: bool = False
    plain: bool = False
    noise: float = 0.0
    seed: int = 0
    count: int = field(default=0, repr=False)

    def disturbed(self, x: Any, operands: Sequence[Any]) -> Any:
        """A result, changed a little: by factors near 1, and by a function of the operands that is as small.

        So its derivatives by the operands change too, even if they are zero: an operation has roundings of its own.
        """
        if x.dtype.kind not in "fc":
            return x
        self.count += 1
        rng = np.random.default_rng([self.seed, self.count])
        total: Any = 1.0
        for y in operands:
            if isinstance(y, jnp.ndarray) and y.dtype.kind in "fc":
                total = total + jnp.sum(jnp.sin(y.real))
        single = x.dtype.itemsize == (8 if x.dtype.kind == "c" else 4)  # what functions make of integers
        noise = max(self.noise, ROUNDING) if single else self.noise
        factors, summands = noise * rng.uniform(-1, 1, (2, *x.shape))
        return x * (1 + factors) + summands * total


_at_work: list[Way] = []
"""The ways in which programs are being evaluated that disturb results."""


def _changed(x: Any, operands: Sequence[Any]) -> Any:
    return _at_work[-1].disturbed(x, operands)


class Function(NamedTuple):
    """An instruction's text as a function, and which bodies and operands it takes."""

    call: Callable[..., Any]
    bodies: tuple[int, ...]
    operands: tuple[int, ...]


@cache
def function_of(text: str, double: bool, disturbed: bool) -> Function:
    """The function of an instruction's text: it takes the bodies' functions and the operands that the text names."""
    bodies = tuple(sorted({int(k) for k in BODY.findall(text)}))
    operands = tuple(sorted({int(k) for k in OPERAND.findall(text)}))
    names = [*(f"f{k}" for k in bodies), *(f"_{k}" for k in operands)]
    return Function(
        eval(f"lambda {', '.join(names)}: {text}", namespace.names(double, _changed if disturbed else None)),
        bodies,
        operands,
    )


def apply(step: Instruction, operands: Sequence[Any], way: Way) -> Any:
    """The result of one instruction."""
    function = function_of(
        step.plain if way.plain and step.plain is not None else step.text, way.double, bool(way.noise)
    )
    bodies = [partial(call, step.bodies[k], way) for k in function.bodies]
    used = [operands[k] for k in function.operands]
    if not way.noise:
        return function.call(*bodies, *used)
    _at_work.append(way)
    try:
        return way.disturbed(function.call(*bodies, *used), used)
    finally:
        _at_work.pop()


def run(program: Program, args: Sequence[Any], way: Way) -> list[Any]:
    """The results of a program."""
    values = list(args)
    for step in program.instructions:
        values.append(apply(step, [values[i] for i in step.operands], way))
    return [values[i] for i in program.outputs]


def call(program: Program, way: Way, *args: Any) -> Any:
    """A program of one result, as a function."""
    return run(program, args, way)[0]
