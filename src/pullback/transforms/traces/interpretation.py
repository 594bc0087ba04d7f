"""Abstract interpretations: programs run on what is known of each value, in the place of the value.

An interpretation says what it makes of the equations of a program, of a choice among programs, and of a loop. Which of
these an operation is, and what goes where, it knows from the :class:`Feed` of the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.lists import split_list
from pullback.core.types import ShapedArray
from pullback.transforms.traces.lift import Feed, reordered


class Loop(NamedTuple):
    """A loop, with what is known of its operands.

    Attributes:
      body: a step, from constants, the carry and elements to the next carry and further results, which are stacked.
      consts, carry, rows: what is known of the constants, of the first carry, and of the arrays of the elements.
      length: the number of steps; None if a test says whether there is another.
      reverse: whether the steps go from the last element to the first.
      test: from constants of its own and the carry to whether there is another step; None without.
      test_consts: what is known of these constants.
    """

    body: ClosedJaxpr
    consts: list[Any]
    carry: list[Any]
    rows: list[Any]
    length: int | None
    reverse: bool
    test: ClosedJaxpr | None
    test_consts: list[Any]

    def avals(self) -> list[list[ShapedArray]]:
        """The types of the constants, of the carry, of the elements, and of what a step adds to stacked results."""
        given = split_list(self.body.in_avals, len(self.consts), len(self.carry))
        return [*given, self.body.out_avals[len(self.carry) :]]


class Interpretation:
    """An abstract interpretation of programs."""

    def run(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """What is known of the results of a program."""
        raise NotImplementedError

    def choose(self, programs: Sequence[ClosedJaxpr], which: Any, operands: Sequence[Any]) -> list[Any]:
        """What is known of the results of one of several programs.

        Args:
          programs: the programs.
          which: what is known of the number of the one that runs.
          operands: what is known of their operands.
        """
        raise NotImplementedError

    def loop(self, loop: Loop) -> list[Any]:
        """What is known of the last carry of a loop, and of its stacked results."""
        raise NotImplementedError

    def enter(self, held: Feed, operands: Sequence[Any]) -> list[Any]:
        """What is known of the results of an operation that holds programs."""
        groups = split_list(operands, *held.sizes)
        with held.within():
            if held.carried is not None:
                return self.loop(_loop(held, held.carried, groups))
            inputs = [x for g in held.takes for x in groups[g]]
            if held.choice is None:
                return self.run(held.programs[0], inputs)
            return self.choose(held.programs, groups[held.choice][0], inputs)


def _loop(held: Feed, carried: int, groups: list[list[Any]]) -> Loop:
    changing = [carried] if held.rows is None else [carried, held.rows]

    def ordered(closed: ClosedJaxpr, takes: Sequence[int]) -> tuple[ClosedJaxpr, list[Any]]:
        """A program that takes constants, then the carry and elements; and the constants."""
        fixed = [g for g in takes if g not in changing]
        order = [*fixed, *[g for g in changing if g in takes]]
        if order != list(takes):
            places = split_list(range(len(closed.in_avals)), *[len(groups[g]) for g in takes])
            inputs = [i for g in order for i in places[takes.index(g)]]
            closed = reordered(closed, inputs, range(len(closed.out_avals)))
        return closed, [x for g in fixed for x in groups[g]]

    body, consts = ordered(held.programs[0], held.takes)
    test, test_consts = (None, []) if held.test is None else ordered(*held.test)
    rows = [] if held.rows is None else groups[held.rows]
    return Loop(body, consts, groups[carried], rows, held.length, held.reverse, test, test_consts)
