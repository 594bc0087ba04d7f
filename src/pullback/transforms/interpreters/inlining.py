"""Programs within a program that are only run once, such as functions under ``jit``: their equations instead."""

from __future__ import annotations

from typing import NamedTuple

from pullback.core import inlining
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.rule_kinds import RuleKind
from pullback.transforms.interpreters.derived import cached_by_jaxpr

programs_in_step = RuleKind("programs_in_step", "its programs are not looked into")
"""``rule(**params) -> programs``, for an operation that runs programs on its operands, such as a loop: each as a
``Stepped``."""


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


@cached_by_jaxpr
def flattened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program of the same results, in which the programs that are run once are replaced by their equations."""
    return inlining.flattened(closed, inlining.runs_once)
