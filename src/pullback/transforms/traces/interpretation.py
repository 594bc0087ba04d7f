"""Abstract interpretation: evaluating programs on abstract information about values, instead of values.

An interpretation implements the evaluation of a program, of a choice among programs, and of a loop. The :class:`Feed`
of an operation says which of these it is, and how its operands become inputs of its programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.lists import split_list
from pullback.core.types import ShapedArray
from pullback.transforms.traces.lift import Feed, reordered


class Loop(NamedTuple):
    """A loop, with abstract information about its operands.

    Attributes:
      body: the step: takes consts, carry and elements; returns the next carry, and further results, which are stacked.
      consts, carry, rows: the information about the consts, the initial carry, and the arrays of the elements.
      length: the number of steps; None if there is a test.
      reverse: whether the steps go from the last element to the first.
      test: takes its own consts and the carry; returns whether there is another step. None if ``length`` is a number.
      test_consts: the information about the consts of the test.
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
        """Return the types of the consts, of the carry, of the elements, and of the stacked results, as four lists."""
        inputs = split_list(self.body.in_avals, len(self.consts), len(self.carry))
        return [*inputs, self.body.out_avals[len(self.carry) :]]


class Interpretation:
    """An abstract interpretation of programs: it computes information about results from information about operands."""

    def run(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """Return the information about the results of a program; ``operands`` has the information about its inputs."""
        raise NotImplementedError

    def choose(self, programs: Sequence[ClosedJaxpr], which: Any, operands: Sequence[Any]) -> list[Any]:
        """Return the information about the results of one of several programs.

        Args:
          programs: the programs.
          which: the information about the index of the program that runs.
          operands: the information about the operands of the programs.
        """
        raise NotImplementedError

    def loop(self, loop: Loop) -> list[Any]:
        """Return the information about the final carry of a loop, and about its stacked results."""
        raise NotImplementedError

    def enter(self, feeding: Feed, operands: Sequence[Any]) -> list[Any]:
        """Return the information about the results of an operation that holds programs.

        Args:
          feeding: says how the operands become the inputs of the programs.
          operands: the information about the operands.
        """
        groups = split_list(operands, *feeding.sizes)
        with feeding.within():
            if feeding.carried is not None:
                return self.loop(_loop(feeding, feeding.carried, groups))
            inputs = [x for g in feeding.takes for x in groups[g]]
            if feeding.choice is None:
                return self.run(feeding.programs[0], inputs)
            return self.choose(feeding.programs, groups[feeding.choice][0], inputs)


def _loop(feeding: Feed, carried: int, groups: list[list[Any]]) -> Loop:
    """Make a :class:`Loop` of an operation that is a loop.

    Args:
      feeding: says how the operands become the inputs of the loop's programs.
      carried: the index of the group of operands that is carried.
      groups: the information about each group of operands.
    """
    changing = [carried] if feeding.rows is None else [carried, feeding.rows]

    def ordered(closed: ClosedJaxpr, takes: Sequence[int]) -> tuple[ClosedJaxpr, list[Any]]:
        """Reorder a program's inputs, which are the groups ``takes`` of operands, to consts, carry, elements.

        Return the program, and the information about the consts.
        """
        fixed = [g for g in takes if g not in changing]
        order = [*fixed, *[g for g in changing if g in takes]]
        if order != list(takes):
            indices = split_list(range(len(closed.in_avals)), *[len(groups[g]) for g in takes])
            inputs = [i for g in order for i in indices[takes.index(g)]]
            closed = reordered(closed, inputs, range(len(closed.out_avals)))
        return closed, [x for g in fixed for x in groups[g]]

    body, consts = ordered(feeding.programs[0], feeding.takes)
    test, test_consts = (None, []) if feeding.test is None else ordered(*feeding.test)
    rows = [] if feeding.rows is None else groups[feeding.rows]
    return Loop(body, consts, groups[carried], rows, feeding.length, feeding.reverse, test, test_consts)
