"""``ensure_compile_time_eval``, and the switch ``check_tracer_leaks``.

``ensure_compile_time_eval`` evaluates operations on concrete arrays immediately, even while a function is traced.
``check_tracer_leaks`` finds tracers that are still referenced after their transformation has ended.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback.core.config import config
from pullback.core.errors import UnexpectedTracerError
from pullback.core.trace import Primitive, RelayTrace, Trace, Tracer, state
from pullback.transforms.functions import api_boundary

# Evaluation while tracing -----------------------------------------------------------------------------------------


def _evaluate_concrete(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Evaluate an operation immediately if no operand is a tracer; otherwise pass it to the parent of ``trace``.

    Return the results.
    """
    current = state.trace  # not always ``trace``: a trace on top of it may pass operations down while it is current
    state.trace = trace.parent if any(isinstance(x, Tracer) for x in args) else state.bottom
    try:
        return state.trace.process(primitive, args, params)
    finally:
        state.trace = current


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Return a context manager in which operations on concrete arrays run immediately, even while a function is traced.

    Python code can read their values. Operations on tracers are recorded as usual.

    Returns:
      A context manager.

    >>> import pullback.numpy as jnp
    >>> from pullback import ensure_compile_time_eval, jit
    >>> @jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.arange(3)))
    ...     return x * n
    >>> print(f(2.0))
    6.0
    """
    outer = state.trace
    trace = RelayTrace(outer, _evaluate_concrete, transformation="ensure_compile_time_eval")
    trace.eager, trace.quick = True, state.bottom.quick
    state.trace = trace
    try:
        yield
    finally:
        state.trace = outer
        trace.live = False


# Leaks -------------------------------------------------------------------------------------------------------------

_known: dict[int, weakref.ref[Tracer]] = {}
"""Tracers that leaked before the switch was turned on, or were reported already; by id, as tracers have no hash."""


class _Depth(threading.local):
    """The number, in the attribute ``value``, of transformed functions that are running in this thread."""

    value = 0


_depth = _Depth()


def _watch(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``call(*args, **kwargs)``, the result of a transformed function; then raise if a tracer has leaked.

    Only the outermost call of a thread looks for leaked tracers. The API boundary runs each public function by this
    hook.
    """
    if not config.check_tracer_leaks:
        return call(*args, **kwargs)
    _depth.value += 1
    try:
        out = call(*args, **kwargs)
    finally:
        _depth.value -= 1
    if _depth.value == 0 and state.trace.is_bottom:
        check()
    return out


def _ended() -> list[Tracer]:
    """Return all tracers in this process whose transformations have ended."""
    return [x for x in gc.get_objects() if isinstance(x, Tracer) and not x._trace.live]


def _new() -> list[Tracer]:
    """Return the tracers that have outlived their transformations, except those in ``_known``."""
    return [x for x in _ended() if id(x) not in _known or _known[id(x)]() is not x]


def check() -> None:
    """Raise if a tracer has outlived its transformation, and was not reported before.

    Raises:
      UnexpectedTracerError: the message describes the first such tracer, with the line that made it.
    """
    if not _new():
        return
    gc.collect()  # reference cycles are no leaks
    found = _new()
    if not found:
        return
    _remember()
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    raise UnexpectedTracerError(
        f"Leaked tracer: a traced value of type {found[0].aval}{others} is still referenced by a global, a closure, "
        f"an attribute or a list, although its transformation has ended. It comes from {found[0].origin()}\n"
        "Return the value from the transformed function (has_aux=True returns extra values) instead of storing it."
    )


def _remember() -> None:
    """Put all leaked tracers into ``_known``, so that they are not reported again."""
    _known.clear()
    _known.update((id(x), weakref.ref(x)) for x in _ended())


def switch_on() -> None:
    """Install the check in the API boundary; called when ``check_tracer_leaks`` is turned on."""
    _remember()
    api_boundary.watching[:] = [_watch]
