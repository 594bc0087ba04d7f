"""The references that a compiled function uses: its program takes their contents, and returns new contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.lists import select
from pullback.core.refs import RefCell
from pullback.core.user_types import has_user_types
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.traces.refs import Scope, check_aliases, contents, write_all


class UsedRefs:
    """The references that a traced function uses.

    The inputs of its program are the leaves of the arguments, followed by the contents of the references that the
    function closes over. The results of the program are the results of the function, followed by the new contents of
    the references among the arguments, and of the closed-over references that the function writes.

    Attributes:
      fun: the function, for error messages.
      closed_over: the references that the function closes over.
      written: the references among ``closed_over`` that the function writes.
      inputs: the number of leaves of the arguments.
      results: the number of results of the function.
      in_rules: whether custom rules take references: the program does not say when these rules use them.
      own_written: for each reference among the arguments, whether the function writes it.
    """

    __slots__ = ("closed_over", "fun", "in_rules", "inputs", "own_written", "results", "written")

    def __init__(self, fun: Any, scope: Scope, inputs: int, results: int, own_written: Sequence[bool]) -> None:
        self.fun = fun
        self.closed_over: list[RefCell] = [*scope.read, *scope.written]
        self.written: list[RefCell] = [*scope.written]
        self.inputs = inputs
        self.results = results
        self.in_rules = scope.in_rules
        self.own_written = own_written

    def are_lasting(self) -> bool:
        """Whether the program can be cached.

        True if all references that the function closes over were made outside of transformations, and so remain valid.
        """
        return all(ref.home is None for ref in self.closed_over)

    def of_user_types(self) -> bool:
        """Whether the content of a reference that the function closes over is a value of a user's type."""
        return has_user_types([ref.inner for ref in self.closed_over])

    def check(self, own: Sequence[RefCell]) -> None:
        """Raise if the function closes over one of ``own``, the references among its arguments."""
        check_aliases(own, f"jit of {name_of(self.fun)}", self.closed_over)

    def contents(self) -> list[Any]:
        """Return the current contents of the references that the function closes over."""
        return contents(self.closed_over)

    def written_back(self, outs: Sequence[Any], own: Sequence[RefCell]) -> list[Any]:
        """Write the new contents of references, the last of a program's results ``outs``, to the references.

        Return the other results, those of the function. ``own`` are the references among the arguments.
        """
        self.check(own)
        new = outs[self.results :]
        write_all(select(own, self.own_written), select(new[: len(own)], self.own_written))
        write_all(self.written, new[len(own) :])
        return list(outs[: self.results])
