"""The references that a compiled function uses: its program takes what they hold, and returns what they are to hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.refs import RefCell
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.traces.refs import Scope, check_aliases, contents, write_all


class UsedRefs:
    """The references of a traced function.

    Its program takes the contents of those that it closes over after the leaves of its arguments, and returns after
    its results those of its arguments, and then those of the ones that it closes over and writes.

    Attributes:
      fun: the function, for error messages.
      closed_over: those that it closes over.
      written: those of them that it writes.
      inputs: how many leaves the arguments have.
      results: how many results the function has.
    """

    __slots__ = ("closed_over", "fun", "inputs", "results", "written")

    def __init__(self, fun: Any, scope: Scope, inputs: int, results: int) -> None:
        self.fun = fun
        self.closed_over: list[RefCell] = [*scope.read, *scope.written]
        self.written: list[RefCell] = [*scope.written]
        self.inputs = inputs
        self.results = results

    def are_lasting(self) -> bool:
        """Whether those that it closes over belong to no transformation, which would end."""
        return all(ref.home is None for ref in self.closed_over)

    def check(self, own: Sequence[RefCell]) -> None:
        """Refuse arguments that the function closes over as well."""
        check_aliases(own, f"jit of {name_of(self.fun)}", self.closed_over)

    def contents(self) -> list[Any]:
        """What those that it closes over hold now."""
        return contents(self.closed_over)

    def written_back(self, outs: Sequence[Any], own: Sequence[RefCell]) -> list[Any]:
        """Write what a run returned to the references; the results of the function remain."""
        self.check(own)
        write_all([*own, *self.written], outs[self.results :])
        return list(outs[: self.results])
