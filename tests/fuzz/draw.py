"""Draws programs: each instruction is evaluated as it is drawn, so that shapes, dtypes and values are known."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core.array import ArrayImpl
from tests.fuzz import operations, rows, transformations
from tests.fuzz.compiler import NeedsCompiler
from tests.fuzz.program import Case, Input, Instruction, Program, Type, Way, apply, call
from tests.fuzz.transformations import Entry

DOUBLE = Way(double=True)
PLAIN = Way(double=True, plain=True)
LARGEST = 48
"""How many elements a value may have."""
BOUND = 1e3
"""How large they may be."""
DEPTH = 3
COST = 120
"""How often the plain form of a program may run an operation."""


@dataclass
class Refusal:
    """An operation that raised an error though its plain form did not."""

    step: Instruction
    operands: list[Any]
    error: Exception


@dataclass
class Options:
    """What may be drawn.

    Attributes:
      jit: whether functions are compiled within programs, which takes a hundred times as long as all else.
      devices: whether shard_map is drawn, which needs eight.
      longest: how many operations a program has at most.
    """

    jit: bool = False
    devices: bool = False
    longest: int = 30


@dataclass
class Record:
    """What was drawn and refused, over all programs; and the results of the last one, in double precision."""

    drawn: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)


@dataclass
class Limits:
    """What holds where a program is being written.

    Attributes:
      depth: how many functions are around it.
      cost: how often it is run.
      forward: whether it has to have a forward mode.
      reverse: whether it has to have a reverse mode.
      letters: the letters of dtypes that are drawn.
    """

    depth: int = 0
    cost: int = 1
    forward: bool = True
    reverse: bool = True
    letters: str = "f"


def accepted(value: Any) -> bool:
    """Whether a result is an array of moderate size, in the precision of the program."""
    if not isinstance(value, ArrayImpl) or not 0 < value.size <= LARGEST or value.ndim > 4:
        return False
    kind = value.dtype.kind
    if (
        kind not in "fciub"
        or (kind == "f" and value.dtype.itemsize != 8)
        or (kind == "c" and value.dtype.itemsize != 16)
    ):
        return False
    x = np.asarray(value)
    if kind in "fc":
        largest = np.abs(x).max()
        return bool(largest <= BOUND)  # not if it is NaN
    return kind == "b" or bool(np.abs(x.astype(np.int64)).max() <= 2**20)


GIVEN: dict[str, Callable[[Any, Any], Any]] = {
    "x": lambda x, c: x,
    "c": lambda x, c: c,
    "0": lambda x, c: x[0],
    "1": lambda x, c: c[0],
    "l": lambda x, c: x[..., 0],
    "k": lambda x, c: jnp.asarray(1),
}
"""What a body is given, of the operands."""


class Writer:
    """A program in the making, and the values that it has at a point."""

    def __init__(
        self, rng: random.Random, args: Sequence[Any], limits: Limits, options: Options, record: Record
    ) -> None:
        self.rng, self.limits, self.options, self.record = rng, limits, options, record
        self.inputs = len(args)
        self.values: list[Any] = list(args)
        self.active = [True] + [False] * (len(args) - 1) if limits.depth else [True] * len(args)
        self.steps: list[Instruction] = []

    # Values ----------------------------------------------------------------------------------------------------------

    def add(
        self,
        kind: str,
        text: str,
        operands: Sequence[int] = (),
        bodies: Sequence[Program] = (),
        plain: str | None = None,
        smooth: bool = True,
    ) -> int | None:
        """The position of the result of one more instruction, or None if it does not fit."""
        smooth = smooth and "stop_gradient" not in text
        step = Instruction(kind, text, tuple(operands), tuple(bodies), plain, smooth=smooth)
        given = [self.values[i] for i in operands]
        with np.errstate(all="ignore"):
            try:
                value = apply(step, given, DOUBLE)
            except NeedsCompiler:
                self.record.refused["needs the compiler"] += 1
                return None
            except Exception as error:
                self.refuse(step, given, error)
                return None
        if not accepted(value):
            return None
        self.steps.append(replace(step, type=Type(value.shape, value.dtype.kind)))
        self.values.append(value)
        self.active.append(any(self.active[i] for i in operands) and value.dtype.kind in "fc")
        self.record.drawn[kind] += 1
        return len(self.values) - 1

    def refuse(self, step: Instruction, given: list[Any], error: Exception) -> None:
        """Note an error; it is a fault if the plain form has none."""
        self.record.refused[f"{step.kind}: {type(error).__name__}"] += 1
        if step.plain is None:
            return
        try:
            value = apply(step, given, PLAIN)
        except (Exception, NeedsCompiler):
            return
        if accepted(value):
            self.record.refusals.append(Refusal(step, given, error))

    def pick(self, fits: Callable[[Any], bool] = lambda x: True) -> int | None:
        """The position of a value: of the last ones, often; of active ones, in functions."""
        fitting = [i for i, x in enumerate(self.values) if fits(x)]
        if not fitting:
            return None
        if self.limits.depth and self.rng.random() < 0.6:
            fitting = [i for i in fitting if self.active[i]] or fitting
        return self.rng.choice(fitting[-3:] if self.rng.random() < 0.5 else fitting)

    def any_value(self) -> int:
        """The position of some value, which may be a new constant."""
        if self.rng.random() < 0.12:
            made = self.constant()
            if made is not None:
                return made
        i = self.pick()
        assert i is not None
        return i

    def constant(self) -> int | None:
        x = drawn_input(self.rng, self.rng.choice(["float32"] * 3 + ["int32", self.dtype()]))
        return self.add("constant", f"array({x.values!r}, {x.dtype})")

    def dtype(self) -> str:
        return rows.NAMES[self.rng.choice(self.limits.letters)]

    # Instructions ----------------------------------------------------------------------------------------------------

    def grow(self) -> int | None:
        """One more instruction, of any sort."""
        r = self.rng.random()
        if r < 0.3:
            return self.row()
        if r < (0.55 if self.limits.depth < DEPTH and self.limits.cost < COST / 3 else 0.3):
            return self.transformation()
        return self.operation()

    def operation(self) -> int | None:
        i = self.any_value()
        drawn = operations.drawn(self.rng, self.values[i].shape)
        if drawn is None:
            return None
        kind, text = drawn
        if "_1" not in text:
            return self.add(kind, text, [i])
        j = self.any_value()
        if kind == "two operands" and not _broadcast(self.values[i].shape, self.values[j].shape):
            text = text.replace("_1", "like(_1, _0)")
        return self.add(kind, text, [i, j])

    def row(self) -> int | None:
        row = self.rng.choice(rows.ROWS)
        letter = self.rng.choice(row.letters())
        kinds = rows.results(row.name, letter, self.options.jit)
        leaves = [k for k, kind in enumerate(kinds or ()) if kind]
        if not kinds or not leaves:
            return None
        differentiable = row.spec.differentiable
        positions, operands = [], []
        point = None
        for k, sample in enumerate(row.spec.samples):
            fixed = not rows.takes_value(sample) or (differentiable is not None and k not in differentiable)
            if fixed and rows.takes_value(sample):
                point = row.spec.point(letter) if point is None else point
                operands.append(rows.constant(point[k], letter))
                continue
            operands.append(rows.operand(sample, len(positions), letter))
            if not fixed:
                positions.append(self.any_value())
        text = rows.text(row, operands, self.rng.choice(leaves), len(kinds))
        complex_basis = letter in "FD" and any(
            name in row.name for name in ("svd", "eig", "schur", "qr", "polar", "basis", "hess")
        )
        smooth = (
            not complex_basis
            and {**dict.fromkeys("FD", "D"), **dict.fromkeys("fdhb", "d")}.get(letter, "") in row.spec.derivative
        )  # whose phases are not determined, if it is complex
        return self.add(row.spec.operation, text, positions, smooth=smooth)

    def transformation(self) -> int | None:
        family = self.rng.choice(transformations.FAMILIES)
        entry = self.rng.choice(family)
        if self.options.devices and not self.limits.depth and self.rng.random() < 0.15:
            entry = self.rng.choice(transformations.SHARDED)
        elif self.options.jit and self.rng.random() < 0.1:
            entry = transformations.JIT
        limits = self.limits
        if (entry.no_forward and limits.forward) or (entry.no_reverse and limits.reverse):
            return None
        i = self._first_operand(entry)
        j = self.pick((lambda x: x.ndim > 0 and len(x) <= 4) if 1 in entry.rows else lambda x: True)
        if i is None or j is None:
            return None
        size = self.values[i].size
        times = {"1": 1, "3": 3, "8": 8, "n": size + 1, "nn": 2 * size**2 + 1, "nnn": 3 * size**3 + 1}[entry.cost]
        if limits.cost * times > COST:
            return None
        within = Limits(
            limits.depth + 1, limits.cost * times,
            # a gradient's body needs no forward mode of its own, for the gradient's is that of what reverse mode does
            entry.forward or (limits.forward and not entry.reverse), entry.reverse or limits.reverse, limits.letters,
        )  # fmt: skip
        bodies = []
        for given in entry.bodies:
            args = self._given(given, i, j, bodies)
            body = Writer(self.rng, args, within, self.options, self.record).body()
            if body is None:
                return None
            bodies.append(body)
        return self.add(entry.kind, entry.text, [i, j] if "_1" in entry.text else [i], bodies, entry.plain)

    def _first_operand(self, entry: Entry) -> int | None:
        if entry.kind == "shard_map":
            return self.add(
                "spread", f"spread(_0, {self.rng.choice([(8,), (8, 2)])!r}, -1.5, 1.5, float32)", [self.any_value()]
            )
        if entry.active:
            i = self.pick(lambda x: x.dtype.kind == "f" and x.size <= {"n": 6, "nn": 4, "nnn": 2}.get(entry.cost, 6))
            if i is not None and self.rng.random() < 0.8:
                return i
            return self.add(
                "spread",
                f"spread(_0, {self.rng.choice([(), (2,), (3,), (2, 2), (1,)])!r}, -1.5, 1.5, float32)",
                [self.any_value()],
            )
        return self.pick(
            (lambda x: x.ndim > 0 and len(x) <= 4 and x.shape[-1] <= 4) if 0 in entry.rows else lambda x: True
        )

    def _given(self, given: str, i: int, j: int, bodies: list[Program]) -> list[Any]:
        """The values at which a body is written."""
        x, c = self.values[i], self.values[j]
        args = []
        for letter in given:
            if letter == "b":  # what the body before it returns, at its first arguments
                args.append(self._result(bodies[-1], i, j))
            else:
                args.append(GIVEN[letter](x, c))
        return args

    def _result(self, body: Program, i: int, j: int) -> Any:
        return call(body, DOUBLE, self.values[i][0], self.values[j])

    # Programs --------------------------------------------------------------------------------------------------------

    def body(self) -> Program | None:
        """A function of one result, which depends on its first argument if it can."""
        wanted = self.rng.choice([1, 1, 2, 2, 3, 4])
        for _ in range(3 * wanted):
            if len(self.steps) < wanted:
                self.grow()
        if not self.steps:
            return None
        last = [i for i in range(self.inputs, len(self.values)) if self.active[i]]
        out = last[-1] if last and self.rng.random() < 0.95 else len(self.values) - 1
        return Program(self.inputs, tuple(self.steps), (out,)).alive()

    def whole(self) -> Program:
        """A program of several results: the last value, or all that nothing else uses."""
        wanted = 3 + int((self.options.longest - 2) * self.rng.random() ** 5)
        for _ in range(2 * wanted):
            if len(self.steps) < wanted:
                self.grow()
        last = len(self.values) - 1
        outputs = [last]
        if self.rng.random() < 0.6:
            used = {i for step in self.steps for i in step.operands}
            outputs = [i for i in range(self.inputs, last + 1) if i not in used or i == last]
        self.record.results = [self.values[i] for i in outputs]
        return Program(self.inputs, tuple(self.steps), tuple(outputs)).alive()


def _broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


SHAPES = [(), (2,), (3,), (4,), (1,), (2, 3), (3, 2), (3, 1), (2, 2), (2, 1, 3)]


def drawn_input(rng: random.Random, dtype: str) -> Input:
    """Numbers of two decimals, or small integers."""
    shape = rng.choice(SHAPES)
    if dtype == "complex64":
        shape = (*shape, 2)
    size = int(np.prod(shape))
    if dtype in ("float32", "float16", "bfloat16", "complex64"):
        flat: list[Any] = [round(rng.uniform(-1.5, 1.5), 2) for _ in range(size)]
    elif dtype == "bool_":
        flat = [rng.random() < 0.5 for _ in range(size)]
    else:
        flat = [rng.randint(0 if dtype.startswith("u") else -4, 5) for _ in range(size)]
    return Input(np.array(flat).reshape(shape).tolist(), dtype)


def case(seed: int, number: int, options: Options, record: Record) -> Case:
    """Program number ``number`` of a seed."""
    rng = random.Random(f"{seed}/{number}")
    letters = rng.choice(["f", "f", "f", "fi", "fF", "fiu?", "fhb", "fiswu?", "fhbFisuw?"])
    inputs = [drawn_input(rng, "float32")]
    inputs += [drawn_input(rng, rows.NAMES[rng.choice(letters)]) for _ in range(rng.randint(0, 2))]
    # Programs without forward mode, or without reverse mode, are drawn too.
    forward, reverse = rng.choice([(True, True), (True, True), (True, False), (False, True)])
    limits = Limits(forward=forward, reverse=reverse, letters=letters)
    args = [x.array(double=True) for x in inputs]
    program = Writer(rng, args, limits, options, record).whole()
    return Case(program, tuple(inputs), f"{seed}/{number}")
