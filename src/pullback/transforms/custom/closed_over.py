"""Error messages about tracers that a function with custom rules, or one of its rules, closes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.errors import ClosedOverError, CustomRuleError, UnexpectedTracerError
from pullback.core.trace import is_at_work, state
from pullback.transforms.functions.arguments import name_of


def explained(function: Any, run: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Return ``run(*args, **params)``.

    If the call fails because ``function`` or one of its rules closes over a tracer, raise an error that says so.
    """
    try:
        return run(*args, **params)
    except UnexpectedTracerError as error:
        raise _closed_over(function, error) or error from None


def run_rule(function: Any, rule: Callable[..., Any], *args: Any) -> Any:
    """Return ``rule(*args)``, the result of a rule of ``function``.

    If the call fails because the rule or the function closes over a tracer, raise an error that says so.
    """
    # Operations of the rule have the source lines of the rule, not the line of the call.
    outer, state.source_loc = state.source_loc, None
    try:
        return rule(*args)
    except UnexpectedTracerError as error:
        raise _closed_over(function, error) or error from None
    finally:
        state.source_loc = outer


def _closed_over(function: Any, error: UnexpectedTracerError) -> UnexpectedTracerError | None:
    """Return an error which says that ``function`` or one of its rules closes over the tracer that ``error`` is about.

    Return None if ``error`` has another cause.
    """
    trace: Any = error.trace
    if trace is None or isinstance(error, CustomRuleError):
        return None
    if is_at_work(trace):
        why = "where its rules do not apply to it: a rule returns derivatives with respect to arguments only"
    else:
        why = "which had ended when the rule ran: rules run during differentiation, and backward rules last"
    better = ClosedOverError(
        f"{name_of(function)} or one of its rules closes over a value that is traced by {trace.describe()}, {why}. "
        "Pass the value as an argument; pullback.closure_convert finds the values that a function closes over.\n"
        f"The value: {error}"
    )
    better.trace = trace
    return better
