"""Tables of rules, by primitive, in JAX's spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.trace import Primitive, Rule

Translation = Callable[[Primitive, Rule], Rule]


class Table:
    """The rules of one kind, as a mapping from each primitive to its rule.

    Assignment registers a rule with the primitive, translated from JAX's spelling. Look-up returns the assigned rule,
    or the primitive's own, translated to JAX's spelling.
    """

    __slots__ = ("_given", "_kind", "_own", "_register", "_spelled")

    def __init__(
        self,
        kind: str,
        own: Callable[[Primitive], Rule | None],
        register: Callable[[Primitive, Rule], None],
        spelled: Translation,
    ) -> None:
        """Make a table.

        Args:
          kind: the kind of rules, for messages.
          own: returns a primitive's own rule, if it has one.
          register: registers a rule in JAX's spelling with the primitive.
          spelled: returns a primitive's own rule in JAX's spelling.
        """
        self._kind = kind
        self._own = own
        self._register = register
        self._spelled = spelled
        self._given: dict[Primitive, tuple[Rule | None, Rule]] = {}

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        self._register(primitive, rule)
        self._given[primitive] = self._own(primitive), rule

    def __contains__(self, primitive: object) -> bool:
        return isinstance(primitive, Primitive) and self._own(primitive) is not None

    def __getitem__(self, primitive: Primitive) -> Rule:
        rule = self._own(primitive)
        if rule is None:
            raise KeyError(primitive)
        registered, given = self._given.get(primitive, (None, rule))
        return given if registered is rule else self._spelled(primitive, rule)

    def get(self, primitive: Primitive, default: Any = None) -> Any:
        """Return the rule of a primitive, or ``default`` if it has none."""
        try:
            return self[primitive]
        except KeyError:
            return default

    def __repr__(self) -> str:
        return f"<the {self._kind} rules of all primitives>"
