"""Kinds of rules, such as one transformation's rules for all operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.core.errors import ArgumentError, MissingRuleError

Rule = Callable[..., Any]
F = TypeVar("F", bound=Callable[..., Any])


class RuleKind:
    """A kind of rules: a table from operations to the rules that one transformation applies.

    A transformation outside of Pullback declares a kind, and registers its rules by using the kind as a decorator.

    Args:
      name: the key of the rules in ``more_rules`` of each primitive.
      otherwise: what happens to an operation without a rule: a phrase for the reference page of rules.

    >>> from pullback import lax
    >>> from pullback.extend import RuleKind
    >>> interval = RuleKind("interval")
    >>> @interval(lax.neg_p)
    ... def _(x):
    ...     return -x[1], -x[0]
    >>> interval.of(lax.neg_p)((1.0, 2.0))
    (-2.0, -1.0)
    """

    def __init__(self, name: str, otherwise: str = "an error that names the operation") -> None:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ArgumentError(f"RuleKind: the name must be an identifier, got {name!r}")
        self.name, self.otherwise = name, otherwise

    def __call__(self, primitive: Any) -> Callable[[F], F]:
        """Return a decorator that registers a function as the rule of ``primitive``."""

        def register(rule: F) -> F:
            primitive.more_rules[self.name] = rule
            return rule

        return register

    def of(self, primitive: Any) -> Rule | None:
        """Return the rule of ``primitive``, or None if it has none of this kind."""
        return primitive.more_rules.get(self.name)  # type: ignore[no-any-return]

    def needed(self, primitive: Any, transformation: str) -> Rule:
        """Return the rule of ``primitive``, or raise an error that names the transformation that needs the rule.

        Raises:
          MissingRuleError: ``primitive`` has no rule of this kind (a NotImplementedError).
        """
        rule = self.of(primitive)
        if rule is None:
            raise MissingRuleError(
                f"the primitive {primitive.name!r} has no {self.name} rule, which {transformation} needs; register one "
                f"with the RuleKind {self.name!r}: @kind(primitive)"
            )
        return rule

    def __repr__(self) -> str:
        return f"RuleKind({self.name!r})"
