"""Indices that are out of range, as the switch ``check_indices`` looks for them.

What NumPy indexes it checks itself. What is left gets to the bottom of the traces: gathers, scatters and slices at
computed places, and programs that hold some. There a thread with the switch on has a trace that looks at these by
``checkify``'s rules, and raises what they find: a compiled program returns its failure beside its results. It is as
``quick`` as what evaluates without it, so that other operations cost what they did.

Where indices are known in Python, ``numpy/index_lowering`` has looked before, and quotes them as they were written.
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


def _look(evaluate: EvalTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """The results of an operation; an error for an index that is out of range."""
    if all(kind.of(primitive) is None for kind in (checks, checked_program, feed)):
        return evaluate.process(primitive, args, params)
    before = state.trace, state.bottom
    state.trace = state.bottom = evaluate
    try:
        trace = CheckTrace(evaluate, primitive, _WANTED, False)
        results = trace.run(trace.process, primitive, args, params)
        found = trace.total()
        if found is not None:
            _raise(found)
        return results
    finally:
        state.trace, state.bottom = before


def _raise(found: Failures) -> None:
    code = int(host_value(found.code))
    if not code:
        return
    check = found.checks[code - 1]
    values = [found.payload[i] for i in check.slots]
    index, _, size = (int(np.asarray(host_value(x))) for x in values)
    text = str(check.error(values))
    if index < 0:
        text += f"\nA position that counts from the end is shown from the start: {index - size} as it was written."
    raise OutOfBoundsError(text)


def _watcher() -> Watcher:
    from pullback.transforms.checks import calls  # noqa: F401  (rules that most processes never need)

    return Watcher(_look, quick=True)


watch_by("indices", _watcher)
