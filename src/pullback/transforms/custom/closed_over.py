"""Errors about traced values that a function with rules, or one of its rules, closes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.errors import ClosedOverError, CustomRuleError, UnexpectedTracerError
from pullback.core.trace import is_at_work, state
from pullback.transforms.functions.arguments import name_of


def explained(function: Any, run: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """What ``run`` returns; an error about a value that a function or one of its rules closes over says what to do."""
    try:
        return run(*args, **params)
    except UnexpectedTracerError as error:
        raise _closed_over(function, error) or error from None


def run_rule(function: Any, rule: Callable[..., Any], *args: Any) -> Any:
    """What a rule of a function returns, which has lines of its own; see :func:`explained`."""
    outer, state.source_loc = state.source_loc, None
    try:
        return rule(*args)
    except UnexpectedTracerError as error:
        raise _closed_over(function, error) or error from None
    finally:
        state.source_loc = outer


def _closed_over(function: Any, error: UnexpectedTracerError) -> UnexpectedTracerError | None:
    """The error for a traced value that a function or one of its rules closes over."""
    trace: Any = error.trace
    if trace is None or isinstance(error, CustomRuleError):
        return None
    if is_at_work(trace):
        why = "where its rules do not apply to it: a rule returns derivatives with respect to arguments only"
    else:
        why = "which had ended when the rule ran: rules run when a derivative is asked for, the backward ones last"
    better = ClosedOverError(
        f"{name_of(function)} or one of its rules closes over a value that is traced by {trace.describe()}, {why}. "
        "Pass the value as an argument; pullback.closure_convert finds what a function given by the user closes over.\n"
        f"The value: {error}"
    )
    better.trace = trace
    return better
