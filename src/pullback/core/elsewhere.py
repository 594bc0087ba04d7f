"""Eager operations on another device than the CPU on which NumPy computes.

An operation runs there if one of its operands is committed to such a device, or if the default device is one. A trace
of its own is then at the bottom of the thread's traces, so that eager code on the host asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pullback.core.array import ArrayImpl, CommittedArray
from pullback.core.runtime import runtime
from pullback.core.trace import EVAL, EvalTrace, Primitive, recorders, state
from pullback.core.watching import WatchedTrace, Watcher

Impl = Callable[[Sequence[Any], dict[str, Any]], Any]


def _process(inner: EvalTrace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Compile an operation, and run it where its operands are committed, or else on the default device."""
    if primitive.host_rule is None:
        return runtime.evaluate(primitive, args, params)
    if primitive.lowering_rule is None and primitive.decomposition_rule is None:  # a user's, for NumPy alone
        return inner.process(primitive, args, params)
    return runtime.evaluate_elsewhere(primitive, args, params)


ELSEWHERE = WatchedTrace(EVAL, Watcher(_process, elsewhere=True))
"""The trace at the bottom of a thread's traces while the default device is another than NumPy's."""


def default_is_elsewhere() -> bool:
    """Whether the default device of this thread is another one than the CPU on which NumPy computes."""
    return bool(recorders) and getattr(state.bottom, "elsewhere", False)


def is_elsewhere(x: Any) -> bool:
    """Whether eager operations on ``x``, an array or a number, run on another device than NumPy's."""
    return isinstance(x, CommittedArray) or default_is_elsewhere()


def is_here(x: Any) -> bool:
    """Whether an object is a concrete array, and NumPy computes eager operations on it."""
    return isinstance(x, ArrayImpl) and not is_elsewhere(x)


def on_host(primitive: Primitive) -> Callable[[Impl], Impl]:
    """Decorate an impl rule that reads its operands by NumPy: elsewhere the compiled operation runs instead."""

    def decorate(rule: Impl) -> Impl:
        @wraps(rule)
        def impl(operands: Sequence[Any], params: dict[str, Any]) -> Any:
            if any(map(is_elsewhere, operands)) or (not operands and default_is_elsewhere()):
                return runtime.evaluate_elsewhere(primitive, operands, params)
            return rule(operands, params)

        return impl

    return decorate
