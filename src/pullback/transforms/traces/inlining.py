"""Programs within a program that are only run once, such as functions under ``jit``: their equations instead."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core import inlining
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.trace import Primitive
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import Feed, feed


class Stepped(NamedTuple):
    """A program that an operation runs on its operands, perhaps several times.

    Attributes:
      program: the program.
      first: the number of the operand that is its first input.
      changing: the numbers of the inputs that are others in each step, and no operands of the whole.
    """

    program: ClosedJaxpr
    first: int
    changing: range = range(0)


def programs_in_step(primitive: Primitive, params: dict[str, Any]) -> list[Stepped]:
    """The programs that a loop or a choice runs on its operands; those that run once and always are none of these."""
    rule = feed.of(primitive)
    if rule is None or inlining.runs_once.of(primitive) is not None:
        return []
    found: Feed = rule(**params)
    if found.scope is not None:  # whose inputs are parts of the operands
        return []
    starts = [0, *itertools.accumulate(found.sizes)]
    first = starts[found.takes[0]]
    changing = range(0)
    if found.carried is not None:
        begin = starts[found.carried]
        inputs = len(found.programs[0].in_avals)
        end = begin + found.sizes[found.carried] if found.carried < len(found.sizes) else first + inputs
        changing = range(begin - first, end - first)
    return [Stepped(closed, first, changing) for closed in found.programs]


def write_program(hlo: Any, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """Write a program where the builder is, and return its results."""
    from pullback.backends.hlo.emit import emit_jaxpr

    return emit_jaxpr(hlo, closed.jaxpr, closed.consts, operands)


@cached_by_jaxpr
def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program of the same results, in which the programs that are run once are replaced by their equations."""
    return inlining.flattened(closed, inlining.runs_once)
