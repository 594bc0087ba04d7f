"""What is computed while a function is traced, and traced values that outlive that: two blocks for programs under test.

``ensure_compile_time_eval`` computes operations on concrete arrays at once, also where operations are being recorded.
``check_tracer_leaks`` finds traced values that are kept beyond their transformation.
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

# Computing while tracing -------------------------------------------------------------------------------------------


def _at_once(trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Compute an operation on concrete arrays, and hand on one on traced values."""
    current = state.trace  # not always this one: a trace above may hand an operation down without leaving
    state.trace = trace.parent if any(isinstance(x, Tracer) for x in args) else state.bottom
    try:
        return state.trace.process(primitive, args, params)
    finally:
        state.trace = current


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A block in which operations on arrays whose values are known are computed at once, while a function is traced.

    Their results can be looked at in Python; operations on traced values are recorded as usual.

    >>> import pullback
    >>> import pullback.numpy as pnp
    >>> @pullback.jit
    ... def f(x):
    ...     with ensure_compile_time_eval():
    ...         n = int(pnp.sum(pnp.arange(3)))
    ...     return x * n
    >>> print(f(2.0))
    6.0
    """
    outer = state.trace
    trace = RelayTrace(outer, _at_once, transformation="ensure_compile_time_eval")
    trace.eager, trace.quick = True, state.bottom.quick
    state.trace = trace
    try:
        yield
    finally:
        state.trace = outer
        trace.live = False


# Leaks -------------------------------------------------------------------------------------------------------------

_known: dict[int, weakref.ref[Tracer]] = {}
"""Traced values, by their ids, that had leaked before the switch was turned on, or were reported: they have no hash."""


class _Depth(threading.local):
    """How many transformed functions are running in this thread."""

    value = 0


_depth = _Depth()


def _watch(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call, after which no value of a transformation that has ended may be left."""
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
    """The values of transformations that have ended."""
    return [x for x in gc.get_objects() if isinstance(x, Tracer) and not x._trace.live]


def _new() -> list[Tracer]:
    return [x for x in _ended() if id(x) not in _known or _known[id(x)]() is not x]


def check() -> None:
    """Refuse values of transformations that have ended.

    Raises:
      UnexpectedTracerError: there are some: the first is named, with the line that made it.
    """
    if not _new():
        return
    gc.collect()  # those that only cycles keep
    found = _new()
    if not found:
        return
    _remember()
    others = f", and {len(found) - 1} more" if len(found) > 1 else ""
    raise UnexpectedTracerError(
        f"Leaked tracer: a traced value of type {found[0].aval}{others} is still kept, through a global, a closure, an "
        f"attribute or a list, although its transformation has ended. It comes from {found[0].origin()}\n"
        "Return the value from the transformed function (has_aux=True returns extra values) instead of storing it."
    )


def _remember() -> None:
    _known.clear()
    _known.update((id(x), weakref.ref(x)) for x in _ended())


def switch_on() -> None:
    """What ``check_tracer_leaks`` does when it is put on: calls are watched, where it is on, from then on."""
    _remember()
    api_boundary.watching[:] = [_watch]
