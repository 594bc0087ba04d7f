"""Makes a program that fails smaller as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.program import Case, Input, Instruction, Program, Type

Fails = Callable[[Case], bool]
TRIES = 400
"""How many smaller programs are tried."""


def reduced(case: Case, fails: Fails, tries: int = TRIES) -> Case:
    """A smallest case that still fails: no single step of the reduction makes it smaller."""
    again = True
    while again:
        again = False
        for smaller in candidates(case):
            if tries <= 0:
                return case
            tries -= 1
            if fails(smaller):
                case, again = smaller, True
                break
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Cases that are one step smaller, the much smaller ones first."""
    for program in smaller(case.program, len(case.inputs)):
        yield _without_unused(replace(case, program=program))
    for i, x in enumerate(case.inputs):
        for y in _smaller_inputs(x):
            yield replace(case, inputs=(*case.inputs[:i], y, *case.inputs[i + 1 :]))


def _without_unused(case: Case) -> Case:
    """The same without the arguments that nothing uses; one stays."""
    program = case.program
    used = {i for step in program.instructions for i in step.operands} | set(program.outputs)
    kept = [i for i in range(program.inputs) if i in used] or [0]
    if len(kept) == program.inputs:
        return case
    place = {i: k for k, i in enumerate(kept)} | {
        program.inputs + k: len(kept) + k for k in range(len(program.instructions))
    }
    steps = tuple(replace(s, operands=tuple(place[i] for i in s.operands)) for s in program.instructions)
    moved = Program(len(kept), steps, tuple(place[i] for i in program.outputs))
    return replace(case, program=moved, inputs=tuple(case.inputs[i] for i in kept))


def smaller(program: Program, inputs: int) -> Iterator[Program]:
    """Programs that are one step smaller than another: fewer results, instructions, or smaller bodies."""
    if len(program.outputs) > 1:
        for i in program.outputs:
            yield replace(program, outputs=(i,)).alive()
    for k in range(len(program.instructions) - 1, -1, -1):
        yield from _without(program, k)
    for k, step in enumerate(program.instructions):
        for j, body in enumerate(step.bodies):
            for less in smaller(body, body.inputs):
                bodies = (*step.bodies[:j], less, *step.bodies[j + 1 :])
                yield _with(program, k, replace(step, bodies=bodies))


def _with(program: Program, k: int, step: Instruction) -> Program:
    return replace(program, instructions=(*program.instructions[:k], step, *program.instructions[k + 1 :])).alive()


def _without(program: Program, k: int) -> Iterator[Program]:
    """An instruction's result replaced by an earlier value of its type, by one of its operands, or by a constant."""
    step = program.instructions[k]
    position = program.inputs + k
    earlier = [i for i in range(program.inputs, position) if program.instructions[i - program.inputs].type == step.type]
    for i in dict.fromkeys([*step.operands[::-1], *earlier[:2], *range(program.inputs)]):
        yield _renamed(program, position, i)
    if step.kind != "constant":
        yield _with(program, k, constant(step.type))


def _renamed(program: Program, old: int, new: int) -> Program:
    change = lambda positions: tuple(new if i == old else i for i in positions)
    steps = tuple(replace(s, operands=change(s.operands)) for s in program.instructions)
    return Program(program.inputs, steps, change(program.outputs)).alive()


def constant(kind: Type) -> Instruction:
    """A constant of a type."""
    count = int(np.prod(kind.shape))
    numbers = [(7 * k + 3) % 5 - 1.75 for k in range(count)]
    if kind.kind == "c":
        values: Any = np.stack([numbers, numbers[::-1]], -1).reshape(*kind.shape, 2).tolist()
    elif kind.kind == "f":
        values = np.reshape(numbers, kind.shape).tolist()
    else:
        values = np.reshape([k % (2 if kind.kind == "b" else 3) for k in range(count)], kind.shape).tolist()
    dtype = {"f": "float32", "c": "complex64", "i": "int32", "u": "uint8", "b": "bool_"}[kind.kind]
    return Instruction("constant", f"array({values!r}, {dtype})", type=kind)


def _smaller_inputs(x: Input) -> Iterator[Input]:
    """Fewer elements along one axis; simpler numbers."""
    values = np.asarray(x.values)
    rank = values.ndim - (x.dtype == "complex64")
    for axis in range(rank):
        n = values.shape[axis]
        for fewer in dict.fromkeys((1, n - 1)):
            if 0 < fewer < n:
                yield Input(np.take(values, range(fewer), axis).tolist(), x.dtype)
    if x.dtype in ("float32", "float16", "bfloat16", "complex64") and (np.round(values, 1) != values).any():
        yield Input(np.round(values, 1).tolist(), x.dtype)
