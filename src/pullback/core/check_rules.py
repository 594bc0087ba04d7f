"""Rules for ``checkify``: the ways in which an operation can fail, and how a program within it is checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.core.errors import CheckError
from pullback.core.trace import RuleKind


class Failure(NamedTuple):
    """A way in which an operation can fail.

    Attributes:
      category: the kind of the failure.
      failed: an array of booleans, true where the operation failed.
      message: a template for ``str.format``, with a placeholder for each value of ``payload``.
      payload: values for the message, such as an index: arrays of the shape of ``failed``, or scalars.
      meant: whether the user chose, by the ``mode`` of an indexing function, what happens when the operation fails.
    """

    category: type[CheckError]
    failed: Any
    message: str
    payload: Sequence[Any] = ()
    meant: bool = False


checks = RuleKind("checks", "it is checked for NaN only")
"""``rule(result, *operands, **params) -> failures``: the ways in which an operation can fail, as :class:`Failure`."""

checked_program = RuleKind("checked_program", "by its inner programs, or an error if one contains a check")
"""``rule(trace, operands, params) -> results``, for an operation that holds functions, or a program that fails on
each device separately: it checks these, and hands their failures to the trace. It runs with the parent of the trace
current."""
