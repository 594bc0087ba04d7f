"""Programs as data: lists of instructions, whose texts are evaluated in single or double precision, plainly or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz import namespace

OPERANDS = 6
"""How many operands an instruction may have: ``_0`` to ``_5`` in its text."""
BODIES = 3


class Type(NamedTuple):
    """A shape, and the kind of the dtype: one of "f", "c", "i", "u" and "b"."""

    shape: tuple[int, ...]
    kind: str


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
    type: Type = Type((), "f")
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
        return namespace.names(double)["array"](self.values, namespace.names(double)[self.dtype])


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
    _count: int = field(default=0, repr=False)

    def disturbed(self, x: Any) -> Any:
        """A result, changed a little: elements by factors near 1, and all of them by a part of the largest."""
        if x.dtype.kind not in "fcV":
            return x
        self._count += 1
        rng = np.random.default_rng([self.seed, self._count])
        return x * (1 + self.noise * rng.uniform(-1, 1, x.shape)).astype(x.dtype)


@cache
def function_of(text: str, double: bool) -> Callable[..., Any]:
    """The function of an instruction's text: it takes the bodies' functions and the operands."""
    bodies = [f"f{k}" for k in range(BODIES) if f"f{k}" in text]
    operands = [f"_{k}" for k in range(OPERANDS) if f"_{k}" in text]
    code = f"lambda {', '.join([*bodies, *operands, '*rest'])}: {text}"
    made: Callable[..., Any] = eval(code, namespace.names(double))
    return made


def apply(step: Instruction, operands: Sequence[Any], way: Way) -> Any:
    """The result of one instruction."""
    text = step.plain if way.plain and step.plain is not None else step.text
    bodies = [partial(call, body, way) for body in step.bodies]
    used = [f for k, f in enumerate(bodies) if f"f{k}" in text]
    result = function_of(text, way.double)(*used, *[x for k, x in enumerate(operands) if f"_{k}" in text])
    return way.disturbed(result) if way.noise else result


def run(program: Program, args: Sequence[Any], way: Way) -> list[Any]:
    """The results of a program."""
    values = list(args)
    for step in program.instructions:
        values.append(apply(step, [values[i] for i in step.operands], way))
    return [values[i] for i in program.outputs]


def call(program: Program, way: Way, *args: Any) -> Any:
    """A program of one result, as a function."""
    return run(program, args, way)[0]
