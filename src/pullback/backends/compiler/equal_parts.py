"""Outline equal regions of a program: layers, their backward passes, steps of an unrolled loop.

The time for compiling grows faster than the program, and the compiler treats each copy of a layer anew. This module
finds regions that differ only in their operands. They become calls of one function, which the compiler keeps as a
function, and compiles once.

The search takes linear time, except for sorting. Each equation becomes a number, the same for equations that differ
only in their operands. In this sequence of numbers

* the distances at which short stretches occur again are the candidates for periods;
* for each period the sequence is compared with itself, shifted by the period: a stretch that is equal for at least a
  period is a repetition, cut where the fewest bytes pass from one copy to the next; a shorter stretch is a region;
* the hashes of all windows of a region's length show where it occurs again;
* occurrences are copies if their operands come from the same positions within the region.

The function of a region takes as arguments all values from outside it, and constants that differ between the copies.
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
"""The attribute that keeps the compiler from inlining a function."""
FEWEST, MOST = 500, 100_000
"""The least equations of a program that is searched for regions, and the most of a program with inlined calls."""
SMALLEST = 16
"""The least weight of a region (see ``fusions``), so that single sums do not become calls."""
WORTH, SMALLER, SLOWER = 8_000, 3, 1.25
"""The least code that outlining must save, the least factor by which it must shrink the code, and the most by which a
run may slow down."""
PATIENCE = 67
"""How much time a run may lose further for each operation that is not compiled: 3,000 operations take a second to
compile, which 50,000 runs lose again."""

_STRETCH = 4
_MOST_PERIODS, _MOST_CANDIDATES = 24, 64
_BASE, _WORD = 0x9E3779B97F4A7C15, 2**64


class Repeat(NamedTuple):
    """One of several copies of a region of a program.

    Attributes:
      start, stop: the indices in the program of the copy's first equation, and of the equation after its last.
      function: the region as a program, which all copies share.
      key: a key of the function: equal functions have equal keys if the same table (:class:`Kinds`) numbers equations.
      operands: the operands of the call of ``function`` that replaces the copy.
      results: the variables of the program that this call defines.
    """

    start: int
    stop: int
    function: Jaxpr
    key: Any
    operands: list[Atom]
    results: list[Var]


def with_inlined_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inline the calls of a program.

    A program is returned unchanged if it has no calls, or if it would have fewer than ``FEWEST`` or more than ``MOST``
    equations afterwards.
    """
    count = _count(closed.jaxpr, {})
    if len(closed.jaxpr.eqns) == count or not FEWEST <= count <= MOST:
        return closed
    return flattened(closed, inlined)


def _count(jaxpr: Jaxpr, counted: dict[Jaxpr, int]) -> int:
    """Count the equations that a program has after inlining its calls; ``counted`` caches the counts by program."""
    if jaxpr not in counted:
        rules = {primitive: inlined.of(primitive) for primitive in {eqn.primitive for eqn in jaxpr.eqns}}
        calls = [rule(**eqn.params) for eqn in jaxpr.eqns if (rule := rules[eqn.primitive]) is not None]
        counted[jaxpr] = len(jaxpr.eqns) + sum([_count(call.jaxpr, counted) - 1 for call in calls])
    return counted[jaxpr]


class Kinds:
    """A table that numbers equations: those that differ only in their operands have the same number.

    The types of the operands, and the values of integer constants among them, must be equal too.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __getitem__(self, eqn: Eqn) -> int:
        """Look up or assign the number of an equation; an equation with an effect shares its number with no other."""
        if eqn.effect:
            return self._number(eqn)
        params = tuple([(name, self._parameter(value)) for name, value in eqn.params.items()]) if eqn.params else ()
        metadata = () if eqn.scope is None else eqn.scope.metadata
        return self._number((eqn.primitive, tuple(map(_operand_key, eqn.invars)), params, len(eqn.outvars), metadata))

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
            return id(value)  # unique as long as the program lives
        return kind, value

    def _program(self, jaxpr: Jaxpr) -> int:
        inputs = [*jaxpr.constvars, *jaxpr.invars]
        numbers: dict[Any, int] = {v: i for i, v in enumerate(inputs)}
        lines = []
        for eqn in jaxpr.eqns:
            operands = tuple([literal_key(a) if type(a) is Literal else numbers[a] for a in eqn.invars])
            lines.append((self[eqn], operands))
            numbers.update({v: len(numbers) + r for r, v in enumerate(eqn.outvars)})
        outs = tuple([literal_key(a) if type(a) is Literal else numbers[a] for a in jaxpr.outvars])
        return self._number((tuple([v.aval for v in inputs]), len(jaxpr.constvars), tuple(lines), outs))


def _operand_key(a: Atom) -> Any:
    """A key of an operand: the type, and for an integer constant the value, on which some lowering rules depend."""
    return literal_key(a) if type(a) is Literal and a.aval.dtype.kind in "biu" else (type(a) is Literal, a.aval)


def find(jaxpr: Jaxpr, kinds: Kinds) -> list[Repeat]:
    """Find the regions of a program that are worth outlining (turning into functions).

    Args:
      jaxpr: the program.
      kinds: the table that numbers equations; the equations of ``jaxpr`` are added to it.

    Returns:
      All copies of these regions, in program order.
    """
    if len(jaxpr.eqns) < FEWEST or fusions.is_small(jaxpr.eqns, jaxpr.outvars, WORTH):
        return []
    before = fusions.cost(jaxpr.eqns, jaxpr.outvars)
    if before.code <= WORTH:
        return []
    search = _Search(jaxpr, np.array([kinds[eqn] for eqn in jaxpr.eqns], np.int64))
    found = [copies for start, stop in search.candidates() if (copies := search.copies(start, stop))]
    regions = sorted([region for copies in found for region in copies], key=lambda region: region.start)
    return regions if regions and is_better_outlined(jaxpr, regions, before) else []


def is_better_outlined(jaxpr: Jaxpr, regions: Sequence[Repeat], before: fusions.Cost) -> bool:
    """Whether a program compiles faster, and runs about as fast, if its equal regions become calls of functions.

    Args:
      jaxpr: the program.
      regions: all copies of the equal regions.
      before: the cost of the program without these calls.
    """
    inside = {i for region in regions for i in range(region.start, region.stop)}
    rest = fusions.cost(
        [eqn for i, eqn in enumerate(jaxpr.eqns) if i not in inside],
        [*jaxpr.outvars, *(a for region in regions for a in region.operands)],
    )
    functions = {region.key: region.function for region in regions}
    costs = {key: fusions.cost(function.eqns, function.outvars) for key, function in functions.items()}
    code = rest.code + sum(c.code for c in costs.values())
    run = rest.run + sum(costs[region.key].run + fusions.CALL for region in regions)
    saved = before.code - code
    return saved > max((SMALLER - 1) * code, WORTH) and run < SLOWER * before.run + PATIENCE * saved


class _Search:
    """A search for equal regions in a program.

    Attributes:
      eqns: the equations.
      numbers: the number of each equation by the table of ``Kinds``.
      defined: for each variable the index of the equation that defines it, and its index in that equation's results.
      used: for each variable the indices of the equations that use it. If the program returns the variable, the number
        of equations follows.
      covered: for each equation whether it belongs to a region.
    """

    def __init__(self, jaxpr: Jaxpr, numbers: np.ndarray[Any, Any]) -> None:
        self.eqns = jaxpr.eqns
        self.numbers = numbers
        self.defined: dict[Any, tuple[int, int]] = {}
        self.used: dict[Any, list[int]] = {}
        for i, eqn in enumerate(self.eqns):
            for a in eqn.invars:
                self.used.setdefault(a, []).append(i)
            self.defined.update({v: (i, r) for r, v in enumerate(eqn.outvars)})
        for a in jaxpr.outvars:
            self.used.setdefault(a, []).append(len(self.eqns))
        self.covered = np.zeros(len(self.eqns), bool)
        weights = list(map(fusions.weight, self.eqns))
        self.weight = np.concatenate([[0], np.cumsum(weights)])  # the weight of all equations before each one
        # A rolling hash: prefix sums of numbers times powers, modulo the word size; a window's hash is a difference.
        self._inverses = _powers(pow(_BASE, -1, _WORD), len(numbers))
        scattered = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(_BASE)
        terms = (scattered ^ (scattered >> np.uint64(29))) * _powers(_BASE, len(numbers))
        self._sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])

    def windows(self, size: int) -> np.ndarray[Any, Any]:
        """The hashes of all sequences of ``size`` consecutive equations, in the order of their first equations."""
        return (self._sums[size:] - self._sums[:-size]) * self._inverses[: len(self.numbers) - size + 1]

    def window(self, start: int, stop: int) -> int:
        """The hash of the equations from index ``start`` up to ``stop``, which is excluded."""
        return (int(self._sums[stop]) - int(self._sums[start])) * int(self._inverses[start]) % _WORD

    def periods(self) -> list[int]:
        """The distances from short sequences of equations to their next occurrences, the most frequent first."""
        hashes = self.windows(_STRETCH)
        order = np.argsort(hashes, kind="stable")
        again = hashes[order][1:] == hashes[order][:-1]
        counts = np.bincount((order[1:] - order[:-1])[again], minlength=1)
        frequent = np.argsort(-counts, kind="stable")[:_MOST_PERIODS]
        return frequent[counts[frequent] > 0].tolist()  # type: ignore[no-any-return]

    def candidates(self) -> Iterator[tuple[int, int]]:
        """Yield the range (start, stop) of each sequence of equations that occurs again.

        The first is the sequence whose outlining saves the most equations.
        """
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
        """For each index of an equation, count the bytes of the values that are defined before it and used from it on.

        A use counts only if it is fewer than ``near`` equations after the definition.
        """
        change = np.zeros(len(self.eqns) + 2, np.int64)
        for v, (i, _) in self.defined.items():
            last = max([j for j in self.used.get(v, ()) if j - i < near], default=i)
            size = v.aval.size * v.aval.dtype.itemsize
            change[i + 1] += size
            change[last + 1] -= size
        return np.cumsum(change)

    def copies(self, start: int, stop: int) -> list[Repeat]:
        """Find the copies of the equations ``start`` to ``stop`` outside of earlier regions, and mark them as covered.

        Returns:
          The copies; empty if there are fewer than two.
        """
        size, end = stop - start, 0
        alike: dict[Any, list[int]] = {}
        covered = np.concatenate([[0], np.cumsum(self.covered)])
        for position in np.flatnonzero(self.windows(size) == np.uint64(self.window(start, stop))).tolist():
            if position >= end and covered[position] == covered[position + size]:
                alike.setdefault(self._sources(position, size), []).append(position)
                end = position + size
        sources, starts = max(alike.items(), key=lambda each: len(each[1]), default=((), []))
        if len(starts) < 2:
            return []
        for position in starts:
            self.covered[position : position + size] = True
        return self._repeats(sources, starts, size)

    def _sources(self, start: int, size: int) -> tuple[tuple[int, int] | None, ...]:
        """Find where the operands of ``size`` equations from index ``start`` are defined.

        Returns:
          For each operand a pair: the index of the equation that defines it, counted from ``start``, and its index in
          that equation's results; None for an operand that is defined outside of these equations.
        """
        found = [self.defined.get(a, (-1, 0)) for eqn in self.eqns[start : start + size] for a in eqn.invars]
        return tuple([(i - start, r) if i >= start else None for i, r in found])

    def _repeats(self, sources: tuple[Any, ...], starts: list[int], size: int) -> list[Repeat]:
        """Make the copies of a region, and the one function that they call.

        Args:
          sources: for each operand in the region its definition, as returned by :meth:`_sources`; equal in all copies.
          starts: the index of the first equation of each copy.
          size: the number of equations of the region.
        """
        stretches = [self.eqns[start : start + size] for start in starts]
        operands = [[a for eqn in eqns for a in eqn.invars] for eqns in stretches]
        parameters: dict[Any, int] = {}
        arguments: list[list[Atom]] = [[] for _ in starts]
        slots: list[int | None] = []  # for each operand its parameter of the function; None if it has none
        for source, atoms in zip(sources, zip(*operands, strict=True), strict=True):
            if source is not None or (type(atoms[0]) is Literal and len(set(map(literal_key, atoms))) == 1):
                slots.append(None)
                continue
            slot = parameters.setdefault(tuple(map(_identity, atoms)), len(parameters))
            slots.append(slot)
            if slot == len(arguments[0]):
                for each, a in zip(arguments, atoms, strict=True):
                    each.append(a)
        needed = [
            (i, r)
            for i, eqn in enumerate(stretches[0])
            for r in range(len(eqn.outvars))
            if any(
                self._is_needed(eqns[i].outvars[r], start + size) for eqns, start in zip(stretches, starts, strict=True)
            )
        ]
        function = _function(stretches[0], slots, [a.aval for a in arguments[0]], needed)
        constants = [
            literal_key(a) for a, s, m in zip(operands[0], slots, sources, strict=True) if s is None and m is None
        ]
        key = (
            tuple(self.numbers[starts[0] : starts[0] + size].tolist()), sources, tuple(slots), tuple(constants),
            tuple(needed),
        )  # fmt: skip
        return [
            Repeat(start, start + size, function, key, atoms, [eqns[i].outvars[r] for i, r in needed])
            for start, eqns, atoms in zip(starts, stretches, arguments, strict=True)
        ]

    def _is_needed(self, v: Var, stop: int) -> bool:
        return any(j >= stop for j in self.used.get(v, ()))


def _identity(a: Atom) -> Any:
    return literal_key(a) if type(a) is Literal else a


def _function(eqns: list[Eqn], slots: list[int | None], avals: list[Any], needed: list[tuple[int, int]]) -> Jaxpr:
    """Make a program of the equations of a region.

    Args:
      eqns: the equations.
      slots: for each operand of the equations the index of the parameter that replaces it; None for a constant, and
        for a value that the region defines.
      avals: the types of the parameters.
      needed: for each result of the region a pair: the index of its equation, and its index in the equation's results.
    """
    parameters = list(map(Var, avals))
    slot = iter(slots)
    own = [
        eqn.like([a if (s := next(slot)) is None else parameters[s] for a in eqn.invars], eqn.outvars) for eqn in eqns
    ]
    return Jaxpr([], parameters, own, [eqns[i].outvars[r] for i, r in needed])


def _powers(base: int, count: int) -> np.ndarray[Any, Any]:
    """The powers 0 to ``count`` - 1 of a number, modulo the word size."""
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)
