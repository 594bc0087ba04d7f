"""What is alive in a compiled program, from its text: the instructions are in the order in which they run."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from pullback.analysis.collectives import _Lines

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r"\s([a-z][\w\-]*)\(")
_SHAPE = re.compile(r"\b(pred|bf16|[a-z]+(\d+)\w*)\[([\d,]*)\]")
_NAMES = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(r"(?:body|condition|to_apply|true_computation|false_computation|calls)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_INDEX = re.compile(r"index=(\d+)")
_SAME = frozenset({"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "while", "after-all"})
_RUN = frozenset({"while", "conditional", "call"})


class Alive(NamedTuple):
    """The values of a compiled program.

    Attributes:
      live: the bytes that are alive at each instruction, in order, beside arguments and results.
      lines: the user's line of each instruction.
      alive: ``(line, bytes)`` of what is alive where most is, the largest first.
    """

    live: tuple[int, ...]
    lines: tuple[str, ...]
    alive: tuple[tuple[str, int], ...]


_Value = tuple[str, int]
"""The name of an instruction, and the index of one of its results."""


class Instruction(NamedTuple):
    """An instruction of a compiled program.

    Attributes:
      name, opcode: what the compiler calls it, and its kind.
      sizes: the bytes of its results; none for an instruction that only names values.
      operands: the names of its operands.
      called: the computations that a loop, a branch or a call runs.
      fused: the computations that a fusion consists of.
      line: the user's line, as in ``model.py:31``.
      is_root: whether its result is that of its computation.
      element: which element of a tuple it takes.
    """

    name: str
    sizes: list[int]
    opcode: str
    operands: list[str]
    called: list[str]
    fused: list[str]
    line: str
    is_root: bool
    element: int


def most_alive(text: str) -> Alive:
    """Return what is alive at each instruction of a compiled program, from its text."""
    computations, entry = computations_of(text)
    known: dict[str, Alive] = {}
    return _of(entry, computations, known) if entry else Alive((), (), ())


def computations_of(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """Return the computations of a compiled program, by their names, and the name of the one that runs first."""
    rows = text.splitlines()
    lines = _Lines(rows)
    computations: dict[str, list[Instruction]] = {}
    entry, current = "", None
    for row in rows:
        if head := _HEAD.match(row):
            current = computations.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif current is not None and (found := _INSTRUCTION.match(row)):
            current.append(_parsed(found[2], found[3], lines.of(row), bool(found[1])))
    return computations, entry


def _parsed(name: str, rest: str, line: str, is_root: bool) -> Instruction:
    opcode = _OPCODE.search(rest[_end(rest) :])
    kind = opcode[1] if opcode else ""
    head, _, tail = rest.partition(f" {kind}(")
    operands, _, attributes = tail.partition(")")
    branches = [n.strip().lstrip("%") for found in _BRANCHES.findall(attributes) for n in found.split(",")]
    named = [*_CALLED.findall(attributes), *branches]
    called, fused = (named, []) if kind in _RUN else ([], named if kind == "fusion" else [])
    where = os.path.basename(line) if line else "an unknown line"
    sizes, index = [] if kind in _SAME else _bytes(head), _INDEX.search(attributes)
    at = int(index[1]) if index else 0
    return Instruction(name, sizes, kind, _NAMES.findall(operands), called, fused, where, is_root, at)


def _end(text: str) -> int:
    """Return where the tuple at the beginning of a text ends; 0 if there is none."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i
    return 0


def _bytes(shapes: str) -> list[int]:
    """Return the size of an array, or of each array of a tuple, in bytes."""
    found = []
    for kind, bits, dims in _SHAPE.findall(shapes):
        count = 1
        for n in filter(None, dims.split(",")):
            count *= int(n)
        size = {"pred": 8, "bf16": 16}.get(kind) or int(bits or 0)
        found.append(count * size // 8)
    return found


def _of(name: str, computations: dict[str, list[Instruction]], known: dict[str, Alive]) -> Alive:
    """Return what is alive in a computation and in those that it runs."""
    if name in known:
        return known[name]
    instructions = computations.get(name, [])
    roots: dict[str, list[set[_Value]]] = {}  # of an array one set of values in memory, of a tuple one for each element
    last: dict[_Value, int] = {}
    for i, each in enumerate(instructions):
        own = [(each.name, k) for k in range(len(each.sizes))]
        found = [roots.get(n, [set()]) for n in each.operands]
        if each.opcode == "tuple":
            roots[each.name] = [set().union(*elements) for elements in found]
        elif each.opcode == "get-tuple-element" and each.element < len(found[0]):
            roots[each.name] = [found[0][each.element]]
        elif each.opcode in _SAME:
            roots[each.name] = found[0] if found else [set()]
        else:
            roots[each.name] = [{v} for v in own] or [set()]
        for elements in [*found, [set(own)]]:
            for n in set().union(*elements):
                last[n] = i
    returned = {n for each in instructions if each.is_root for elements in roots[each.name] for n in elements}
    sizes = {
        (each.name, k): (size, each.line)
        for each in instructions
        for k, size in enumerate(each.sizes)
        if (each.name, k) not in returned
    }
    ends: dict[int, list[_Value]] = {}
    for n in sizes:
        ends.setdefault(last[n], []).append(n)
    total, most = 0, -1
    live: list[int] = []
    now: dict[_Value, None] = {}
    held: dict[str, int] = {}
    for i, each in enumerate(instructions):
        inner = max(
            (_of(c, computations, known) for c in each.called), key=lambda a: max(a.live, default=0), default=None
        )
        inside = max(inner.live, default=0) if inner else 0
        for v in [(each.name, k) for k in range(len(each.sizes))]:
            if v in sizes:
                total += sizes[v][0]
                now[v] = None
        live.append(total + inside)
        if live[-1] > most:
            most, held = live[-1], {}
            for where, size in [*(sizes[n][::-1] for n in now), *(inner.alive if inner else ())]:
                held[where] = held.get(where, 0) + size
        for n in ends.get(i, ()):
            total -= sizes[n][0]
            now.pop(n)
    alive = tuple(sorted(held.items(), key=lambda item: -item[1]))
    known[name] = Alive(tuple(live), tuple([each.line for each in instructions]), alive)
    return known[name]
