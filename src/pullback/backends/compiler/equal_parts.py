"""Parts of a program that are equal but for their operands: layers, their backward passes, steps of an unrolled loop.

The compiler takes a time that grows faster than the program, and looks at each copy of a layer anew. Here the copies
are found, and become calls of one function, which the compiler keeps, and compiles once.

How they are found, in a time linear in the program but for sorting: each equation becomes a number, the same for
equations that are equal but for their operands. In this sequence of numbers

* the distances at which short stretches occur again are the candidates for periods;
* along each such distance the sequence is compared with itself: what is equal for a whole period is a repetition, which
  is cut where the fewest bytes pass from one part to the next; a shorter stretch is a part as it is;
* the hashes of all windows of a part's length tell where else it occurs;
* occurrences whose operands come from the same places within the part are copies.

What a part does not make itself is an argument of its function; a number that is not the same in all copies is, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.backends.compiler import fusions
from pullback.core.array import SCALARS
from pullback.core.inlining import flattened, inlined
from pullback.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from pullback.core.jaxpr_text import literal_key

ATTRIBUTES = 'mhlo.frontend_attributes = {inlineable = "false"}'
"""What makes the compiler keep a call."""
FEWEST, MOST = 500, 100_000
"""In smaller programs nobody looks for parts; and no program is flattened to a larger one."""
SMALLEST = 16
"""The least weight of a part (see ``fusions``), so that chains of sums are not called one by one."""
WORTH, SMALLER, SLOWER = 8_000, 3, 1.25
"""Parts have to save so much of the code, which must be so many times as much whole; and may be so much slower."""
PATIENCE = 67
"""How much slower a run may be besides, for each operation that need not be compiled: 3,000 of them take a second,
which 50,000 such runs take back."""

_STRETCH = 4
_MOST_PERIODS, _MOST_CANDIDATES = 24, 64
_BASE, _WORD = 0x9E3779B97F4A7C15, 2**64


class Repeat(NamedTuple):
    """One of several copies of a part of a program.

    Attributes:
      start, stop: its equations, of those of the program.
      function: what it does, as a program of its own.
      key: of the function: the same for equal ones of any programs whose kinds of equations are in one table.
      operands: what the function is applied to.
      results: the variables of the program that its results are.
    """

    start: int
    stop: int
    function: Jaxpr
    key: Any
    operands: list[Atom]
    results: list[Var]


def with_inlined_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program with the equations of those that it calls in place of the calls, if its size is one for parts."""
    count = _count(closed.jaxpr, {})
    if len(closed.jaxpr.eqns) == count or not FEWEST <= count <= MOST:
        return closed
    return flattened(closed, inlined)


def _count(jaxpr: Jaxpr, counted: dict[Jaxpr, int]) -> int:
    """The equations of a program and of those that it calls."""
    if jaxpr not in counted:
        rules = {primitive: inlined.of(primitive) for primitive in {eqn.primitive for eqn in jaxpr.eqns}}
        calls = [rule(**eqn.params) for eqn in jaxpr.eqns if (rule := rules[eqn.primitive]) is not None]
        counted[jaxpr] = len(jaxpr.eqns) + sum([_count(call.jaxpr, counted) - 1 for call in calls])
    return counted[jaxpr]


class Kinds:
    """A table of kinds of equations: equations have the same number if they are equal but for their operands."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __getitem__(self, eqn: Eqn) -> int:
        """The number of an equation; one with effects is like no other."""
        if eqn.effect:
            return self._number(eqn)
        params = tuple([(name, self._parameter(value)) for name, value in eqn.params.items()]) if eqn.params else ()
        return self._number((eqn.primitive, tuple(map(_operand_key, eqn.invars)), params, len(eqn.outvars)))

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _parameter(self, value: Any) -> Any:
        kind: Any = type(value)
        if kind in SCALARS:
            return kind, repr(value)
        if kind is tuple or kind is list:
            return tuple(map(self._parameter, value))
        if kind is ClosedJaxpr:
            return self._program(value.jaxpr), tuple(map(id, value.consts))
        if kind is Jaxpr:
            return self._program(value)
        if isinstance(value, np.generic):
            return kind, value.tobytes()
        try:
            hash(value)
        except TypeError:
            return id(value)  # which lives as long as the program
        return kind, value

    def _program(self, jaxpr: Jaxpr) -> int:
        inputs = [*jaxpr.constvars, *jaxpr.invars]
        places: dict[Any, int] = {v: i for i, v in enumerate(inputs)}
        lines = []
        for eqn in jaxpr.eqns:
            operands = tuple([literal_key(a) if type(a) is Literal else places[a] for a in eqn.invars])
            lines.append((self[eqn], operands))
            places.update({v: len(places) + r for r, v in enumerate(eqn.outvars)})
        outs = tuple([literal_key(a) if type(a) is Literal else places[a] for a in jaxpr.outvars])
        return self._number((tuple([v.aval for v in inputs]), len(jaxpr.constvars), tuple(lines), outs))


def _operand_key(a: Atom) -> Any:
    """What has to be equal of an operand: of whole numbers the value too, on which it depends how some are written."""
    return literal_key(a) if type(a) is Literal and a.aval.dtype.kind in "biu" else (type(a) is Literal, a.aval)


def find(jaxpr: Jaxpr, kinds: Kinds) -> list[Repeat]:
    """The parts of a program that are worth being functions, in order.

    Args:
      jaxpr: the program.
      kinds: the table of kinds of equations, to which those of the program are added.
    """
    if len(jaxpr.eqns) < FEWEST or fusions.is_small(jaxpr.eqns, jaxpr.outvars, WORTH):
        return []
    whole = fusions.cost(jaxpr.eqns, jaxpr.outvars)
    if whole.code <= WORTH:
        return []
    search = _Search(jaxpr, np.array([kinds[eqn] for eqn in jaxpr.eqns], np.int64))
    found = [copies for start, stop in search.candidates() if (copies := search.copies(start, stop))]
    parts = sorted([part for copies in found for part in copies], key=lambda part: part.start)
    return parts if parts and is_better_apart(jaxpr, parts, whole) else []


def is_better_apart(jaxpr: Jaxpr, parts: Sequence[Repeat], whole: fusions.Cost) -> bool:
    """Whether a program compiles sooner in parts, and then runs about as fast as whole, at that cost."""
    inside = {i for part in parts for i in range(part.start, part.stop)}
    rest = fusions.cost(
        [eqn for i, eqn in enumerate(jaxpr.eqns) if i not in inside],
        [*jaxpr.outvars, *(a for part in parts for a in part.operands)],
    )
    functions = {part.key: part.function for part in parts}
    costs = {key: fusions.cost(function.eqns, function.outvars) for key, function in functions.items()}
    code = rest.code + sum(c.code for c in costs.values())
    run = rest.run + sum(costs[part.key].run + fusions.CALL for part in parts)
    saved = whole.code - code
    return saved > max((SMALLER - 1) * code, WORTH) and run < SLOWER * whole.run + PATIENCE * saved


class _Search:
    """Looks for copies in a program.

    Attributes:
      eqns: the equations.
      numbers: the number of each.
      made: for each variable the equation that makes it, and which of its results it is.
      used: for each variable the equations that use it, and the length of the program if it returns it.
      taken: whether each equation belongs to a part.
    """

    def __init__(self, jaxpr: Jaxpr, numbers: np.ndarray[Any, Any]) -> None:
        self.eqns = jaxpr.eqns
        self.numbers = numbers
        self.made: dict[Any, tuple[int, int]] = {}
        self.used: dict[Any, list[int]] = {}
        for i, eqn in enumerate(self.eqns):
            for a in eqn.invars:
                self.used.setdefault(a, []).append(i)
            self.made.update({v: (i, r) for r, v in enumerate(eqn.outvars)})
        for a in jaxpr.outvars:
            self.used.setdefault(a, []).append(len(self.eqns))
        self.taken = np.zeros(len(self.eqns), bool)
        weights = list(map(fusions.weight, self.eqns))
        self.weight = np.concatenate([[0], np.cumsum(weights)])  # of the equations before each
        # Sums of numbers times powers, modulo the size of a word, of which windows have differences.
        self._inverses = _powers(pow(_BASE, -1, _WORD), len(numbers))
        scattered = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(_BASE)
        terms = (scattered ^ (scattered >> np.uint64(29))) * _powers(_BASE, len(numbers))
        self._sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])

    def windows(self, size: int) -> np.ndarray[Any, Any]:
        """A hash of each stretch of so many equations."""
        return (self._sums[size:] - self._sums[:-size]) * self._inverses[: len(self.numbers) - size + 1]

    def window(self, start: int, stop: int) -> int:
        """The hash of one stretch."""
        return (int(self._sums[stop]) - int(self._sums[start])) * int(self._inverses[start]) % _WORD

    def periods(self) -> list[int]:
        """The distances at which short stretches occur again, the most frequent first."""
        hashes = self.windows(_STRETCH)
        order = np.argsort(hashes, kind="stable")
        again = hashes[order][1:] == hashes[order][:-1]
        counts = np.bincount((order[1:] - order[:-1])[again], minlength=1)
        frequent = np.argsort(-counts, kind="stable")[:_MOST_PERIODS]
        return frequent[counts[frequent] > 0].tolist()  # type: ignore[no-any-return]

    def candidates(self) -> Iterator[tuple[int, int]]:
        """Stretches of the program that occur again, those first that save most."""
        found: dict[Any, tuple[int, int, int]] = {}
        periods = self.periods()
        passing = self._passing(max(periods, default=0))
        for period in periods:
            equal = np.concatenate([[False], self.numbers[period:] == self.numbers[:-period], [False]])
            changes = np.flatnonzero(equal[1:] != equal[:-1]).tolist()
            for start, stop in zip(changes[::2], changes[1::2], strict=True):
                saved = stop - start
                if saved >= period:  # a repetition
                    start += int(np.argmin(passing[start : start + period]))
                    stop = start + -(-SMALLEST // int(self.weight[start + period] - self.weight[start])) * period
                if stop - start <= saved and self.weight[stop] - self.weight[start] >= SMALLEST:
                    key = stop - start, self.window(start, stop)
                    found[key] = (saved + found.get(key, (0,))[0], start, stop)
        best = sorted(found.values(), key=lambda each: -each[0])
        return ((start, stop) for _, start, stop in best[:_MOST_CANDIDATES])

    def _passing(self, near: int) -> np.ndarray[Any, Any]:
        """For each place between equations how many bytes are made before it, and used after it within a distance."""
        change = np.zeros(len(self.eqns) + 2, np.int64)
        for v, (i, _) in self.made.items():
            last = max([j for j in self.used.get(v, ()) if j - i < near], default=i)
            size = v.aval.size * v.aval.dtype.itemsize
            change[i + 1] += size
            change[last + 1] -= size
        return np.cumsum(change)

    def copies(self, start: int, stop: int) -> list[Repeat]:
        """The copies of a stretch, as far as they are not in parts already; none if that saves nothing."""
        size, end = stop - start, 0
        alike: dict[Any, list[int]] = {}
        taken = np.concatenate([[0], np.cumsum(self.taken)])
        for place in np.flatnonzero(self.windows(size) == np.uint64(self.window(start, stop))).tolist():
            if place >= end and taken[place] == taken[place + size]:
                alike.setdefault(self._sources(place, size), []).append(place)
                end = place + size
        sources, places = max(alike.items(), key=lambda each: len(each[1]), default=((), []))
        if len(places) < 2:
            return []
        for place in places:
            self.taken[place : place + size] = True
        return self._parts(sources, places, size)

    def _sources(self, start: int, size: int) -> tuple[tuple[int, int] | None, ...]:
        """For each operand of a stretch where within it it is made; None if it is not."""
        found = [self.made.get(a, (-1, 0)) for eqn in self.eqns[start : start + size] for a in eqn.invars]
        return tuple([(i - start, r) if i >= start else None for i, r in found])

    def _parts(self, sources: tuple[Any, ...], places: list[int], size: int) -> list[Repeat]:
        """The copies at some places, whose operands come from the same places within them."""
        stretches = [self.eqns[place : place + size] for place in places]
        operands = [[a for eqn in eqns for a in eqn.invars] for eqns in stretches]
        parameters: dict[Any, int] = {}
        given: list[list[Atom]] = [[] for _ in places]
        slots: list[int | None] = []  # for each operand of the part its parameter; None if it has none
        for source, atoms in zip(sources, zip(*operands, strict=True), strict=True):
            if source is not None or (type(atoms[0]) is Literal and len(set(map(literal_key, atoms))) == 1):
                slots.append(None)
                continue
            slot = parameters.setdefault(tuple(map(_identity, atoms)), len(parameters))
            slots.append(slot)
            if slot == len(given[0]):
                for each, a in zip(given, atoms, strict=True):
                    each.append(a)
        needed = [
            (i, r)
            for i, eqn in enumerate(stretches[0])
            for r in range(len(eqn.outvars))
            if any(
                self._is_needed(eqns[i].outvars[r], place + size) for eqns, place in zip(stretches, places, strict=True)
            )
        ]
        function = _function(stretches[0], slots, [a.aval for a in given[0]], needed)
        constants = [
            literal_key(a) for a, s, m in zip(operands[0], slots, sources, strict=True) if s is None and m is None
        ]
        key = (
            tuple(self.numbers[places[0] : places[0] + size].tolist()), sources, tuple(slots), tuple(constants),
            tuple(needed),
        )  # fmt: skip
        return [
            Repeat(place, place + size, function, key, atoms, [eqns[i].outvars[r] for i, r in needed])
            for place, eqns, atoms in zip(places, stretches, given, strict=True)
        ]

    def _is_needed(self, v: Var, stop: int) -> bool:
        return any(j >= stop for j in self.used.get(v, ()))


def _identity(a: Atom) -> Any:
    return literal_key(a) if type(a) is Literal else a


def _function(eqns: list[Eqn], slots: list[int | None], avals: list[Any], needed: list[tuple[int, int]]) -> Jaxpr:
    """The equations of a part as a program of its own.

    Args:
      eqns: the equations.
      slots: for each of their operands the parameter that it is; None for a constant, and for what the part makes.
      avals: the types of the parameters.
      needed: the equation and the place in its results of each result of the part.
    """
    parameters = list(map(Var, avals))
    slot = iter(slots)
    own = [
        eqn.like([a if (s := next(slot)) is None else parameters[s] for a in eqn.invars], eqn.outvars) for eqn in eqns
    ]
    return Jaxpr([], parameters, own, [eqns[i].outvars[r] for i, r in needed])


def _powers(base: int, count: int) -> np.ndarray[Any, Any]:
    """The powers of a number from the zeroth on, modulo the size of a word."""
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)
