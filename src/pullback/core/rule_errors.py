"""Errors for missing rules, and explanations for failures of host rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pullback.core.array import resolve_weak_scalars, typeof
from pullback.core.errors import AllocationError, IntegerRangeError, MissingRuleError, PullbackError
from pullback.core.source import called


def missing_rule(primitive: Any, rule: str, need: str, instead: str = "") -> MissingRuleError:
    """Return an error that says that a primitive lacks a rule and how to register it.

    Args:
      primitive: the primitive.
      rule: the name of the missing rule, such as "batch".
      need: what needs the rule, such as "vmap".
      instead: advice for the end of the message.
    """
    return MissingRuleError(
        f"the primitive {primitive.name!r} has no {rule} rule, which {need} needs; "
        f"register one with @{primitive.name}_p.{rule}{instead}"
    )


def explain(error: Exception, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Exception:
    """Return the error to raise instead of ``error``, which a host rule raised for the operands ``args``.

    This is a more specific error if the primitive has no host rule, memory ran out, or its abstract evaluation rule
    raises an error for these operands; otherwise it is ``error`` itself.
    """
    if isinstance(error, PullbackError):
        return error
    if primitive.host_rule is None:
        return missing_rule(primitive, "host", "evaluation")
    if isinstance(error, MemoryError) or (isinstance(error, ValueError) and re.search(_TOO_LARGE, str(error))):
        avals = ", ".join(format(typeof(x)) for x in args)
        shown = ", ".join(f"{k}={v}" for k, v in params.items())
        return AllocationError(f"no memory for the result of {primitive.name}({avals}) [{shown}]: {error}")
    if primitive.abstract_eval_rule is not None:
        try:
            primitive.abstract_eval_rule(*resolve_weak_scalars([typeof(x) for x in args], args), **params)
        except Exception as better:
            return better.with_traceback(None)
    if isinstance(error, OverflowError):
        return IntegerRangeError(f"{called() or primitive.name}: {error}")
    return error


_TOO_LARGE = "(array|iterator) is too (big|large)|[Mm]aximum (allowed|supported) dimension"
"""A pattern for NumPy's message, in a ValueError, about shapes whose sizes overflow."""
