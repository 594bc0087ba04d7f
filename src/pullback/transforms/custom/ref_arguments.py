"""References as arguments of functions with derivative rules.

A rule gets the reference itself if its content is concrete, and may write to it when the backward pass runs. A content
that is traced, and may be differentiated, is an operand of the call: the function gets a reference to it, from which it
reads, and the backward rule returns its cotangent. A reference among the residuals is again the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.errors import RefError
from pullback.core.trace import Tracer
from pullback.transforms.custom.linear_map import LinearMap
from pullback.transforms.custom.rule_adapter import CustomVJPPrimal, RuleAdapter
from pullback.transforms.functions.arguments import name_of
from pullback.transforms.traces.refs import Ref, argument_ref, content_of


def with_contents(
    application: RuleAdapter, refs: dict[int, Any], arrays: list[Any]
) -> tuple[RuleAdapter, dict[int, Any] | None]:
    """Make the traced contents of references operands of a call.

    Args:
      application: the call.
      refs: the references among its arguments, by index.
      arrays: the operands, in which contents replace what stands for references.

    Returns:
      The call, and the other references, which the rules get themselves; None if there are no others.
    """
    own = {i: ref for i, ref in refs.items() if isinstance(ref.content, Tracer)}
    if not own:
        return application, refs
    for i, ref in own.items():
        arrays[i] = content_of(ref)
    return _WithContents(application, own), {i: ref for i, ref in refs.items() if i not in own} or None


def _value(x: Any) -> Any:
    """Return an operand of a rule, which may come with the statement whether it is perturbed."""
    return x.value if isinstance(x, CustomVJPPrimal) else x


class _WithContents(RuleAdapter):
    """A call, some of whose arguments are references to operands.

    Attributes:
      refs: the references that the caller passed, by index.
      made: those that the function got instead in the last run, by index.
      contents: the operands to which they were made.
    """

    __slots__ = ("contents", "made", "refs")

    def __init__(self, call: RuleAdapter, refs: dict[int, Ref]) -> None:
        super().__init__(call.owner, call.nondiff, call.in_tree)
        self.refs = refs
        self.made: dict[int, Ref] = {}
        self.contents: dict[int, Any] = {}

    def __call__(self, *leaves: Any) -> list[Any]:
        outs = super().__call__(*leaves)
        self._check_unwritten()
        return outs

    def arguments(self, leaves: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        return super().arguments(self._with_refs(leaves))

    def _differentiated(self, primals: Sequence[Any]) -> Any:
        return super()._differentiated(self._with_refs(primals))

    def _with_refs(self, leaves: Sequence[Any]) -> list[Any]:
        self.contents = {i: _value(leaves[i]) for i in self.refs}
        self.made = {i: argument_ref(x) for i, x in self.contents.items()}
        return [self.made.get(i, x) for i, x in enumerate(leaves)]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        pair = super().jvp(primals, tangents)
        self._check_unwritten()
        return pair

    def forward(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> tuple[list[Any], list[Any], LinearMap]:
        outs, residuals, linear_map = super().forward(primals, perturbed)
        self._check_unwritten()
        originals = {id(made): self.refs[i] for i, made in self.made.items()}
        linear_map.fixed = tuple([originals.get(id(x), x) for x in linear_map.fixed])  # type: ignore[attr-defined]
        return outs, residuals, linear_map

    def _check_unwritten(self) -> None:
        """Raise if the function wrote to a reference: its rule has no derivative of the new content."""
        for i, ref in self.made.items():
            if ref.content is not self.contents[i]:
                raise RefError(
                    f"{name_of(self.fun)} has derivative rules and writes to {self.refs[i].described()}, whose content "
                    f"is being differentiated. Return the new content, and write it outside of the function"
                )
