"""Errors for indices that are out of range, when the switch ``check_indices`` is on.

NumPy checks the indices that it evaluates. The other operations reach the bottom trace: gathers, scatters and slices at
computed positions, and programs that hold these. In a thread with the switch on, the bottom trace checks them by
``checkify``'s rules, and raises their failures; compiled programs return theirs with the results. It is ``quick``, so
that other operations cost the same as without the switch.

``numpy/index_lowering`` checks indices that are known in Python before, and quotes them as the user wrote them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.array import host_value
from pullback.core.check_rules import checked_program, checks
from pullback.core.errors import OutOfBoundsError
from pullback.core.trace import EvalTrace, Primitive, state
from pullback.core.watching import Watcher, watch_by
from pullback.transforms.checks.report import Failures
from pullback.transforms.checks.trace import CheckTrace, Errors
from pullback.transforms.traces.lift import feed

_WANTED: Errors = frozenset({OutOfBoundsError})


def _checked(evaluate: EvalTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Evaluate an operation by ``evaluate``, and return its results; raise an error if an index is out of range."""
    if all(kind.of(primitive) is None for kind in (checks, checked_program, feed)):
        return evaluate.process(primitive, args, params)
    outer = state.trace, state.bottom
    state.trace = state.bottom = evaluate
    try:
        trace = CheckTrace(evaluate, primitive, _WANTED, False)
        results = trace.run(trace.process, primitive, args, params)
        failures = trace.total()
        if failures is not None:
            _raise(failures)
        return results
    finally:
        state.trace, state.bottom = outer


def _raise(failures: Failures) -> None:
    """Raise an error if ``failures`` has a failure, an index that is out of range."""
    code = int(host_value(failures.code))
    if not code:
        return
    check = failures.checks[code - 1]
    values = [failures.payload[i] for i in check.slots]
    index, _, size = (int(np.asarray(host_value(x))) for x in values)
    text = str(check.error(values))
    if index < 0:  # the size was added to a negative index before the check
        text += f"\nYour index {index - size} counts from the end; the message shows it counted from the start."
    raise OutOfBoundsError(text)


def _watcher() -> Watcher:
    from pullback.transforms.checks import calls  # noqa: F401  (rules that most processes never need)

    return Watcher(_checked, quick=True)


watch_by("indices", _watcher)
