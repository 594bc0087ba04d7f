"""Inlining of programs that run once, such as functions under ``jit``; access to the programs of loops and branches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.core import inlining
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.trace import Primitive
from pullback.transforms.traces.derived import cached_by_jaxpr
from pullback.transforms.traces.lift import Feed, feed


class Stepped(NamedTuple):
    """A program that an operation may run many times or not at all: the body of a loop, or a branch.

    Attributes:
      program: the program.
      first: the index of the operand that is the program's first input; the following operands are its other inputs.
      changing: the indices of the inputs that a loop carries, which change in each step.
    """

    program: ClosedJaxpr
    first: int
    changing: range = range(0)


def programs_in_step(primitive: Primitive, params: dict[str, Any]) -> list[Stepped]:
    """Return the body of an operation that is a loop, or the branches of a choice, such as ``cond``.

    Return an empty list for any other operation.
    """
    rule = feed.of(primitive)
    if rule is None or inlining.runs_once.of(primitive) is not None:
        return []
    found: Feed = rule(**params)
    if found.scope is not None:  # the inputs of the program are shards of the operands
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
    """Emit the operations of a program with the StableHLO builder ``hlo``; return the program's results."""
    from pullback.backends.hlo.emit import emit_jaxpr

    return emit_jaxpr(hlo, closed.jaxpr, closed.consts, operands)


def on_terms(
    hlo: Any, aval: Any, terms: Sequence[Any], others: Sequence[Any], shape: Any, write: Callable[..., Any]
) -> Any:
    """Emit ``write(hlo, *terms, *others)``, on each device's own terms if the type ``aval`` is unreduced."""
    from pullback.backends.hlo.emit import on_terms

    return on_terms(hlo, aval, terms, others, shape, write)


@cached_by_jaxpr
def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inline nested programs that run exactly once: replace each equation that runs such a program by its equations."""
    return inlining.flattened(closed, inlining.runs_once)
