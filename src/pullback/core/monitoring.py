"""Events, durations and numbers that are recorded while programs are traced and compiled, and their listeners.

Each kind of record has its listeners: functions that are called immediately, in the thread that records. Pullback
records, under the names that JAX documents:

* ``/jax/core/compile/jaxpr_trace_duration``, ``/jax/core/compile/jaxpr_to_mlir_module_duration`` and
  ``/jax/core/compile/backend_compile_duration``: each as a number (the start time), as a duration in seconds, and as a
  time span; with ``fun_name``.
* ``/jax/compilation_cache/compile_requests_use_cache``, ``cache_hits`` and ``cache_misses``: events, if the
  persistent cache of compiled programs is on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from pullback.core.config import config
from pullback.core.errors import ArgumentError, ListenerError

Listener = Callable[..., None]
TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"

_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Call each event listener with an event.

    Args:
      event: the name of the event, such as ``"/my_library/start"``.
      kwargs: further information, which listeners take by keyword.

    >>> from pullback import monitoring
    >>> monitoring.register_event_listener(lambda event, **more: print(event, more))
    >>> monitoring.record_event("/example", step=3)
    /example {'step': 3}
    >>> monitoring.clear_event_listeners()
    """
    for listener in list(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call each duration listener with a duration.

    Args:
      event: the name of what took this time.
      duration: the number of seconds.
      kwargs: further information, which listeners take by keyword.

    >>> from pullback import monitoring
    >>> monitoring.register_event_duration_secs_listener(lambda event, seconds, **more: print(event, seconds))
    >>> monitoring.record_event_duration_secs("/example/solve", 0.25)
    /example/solve 0.25
    >>> monitoring.clear_event_listeners()
    """
    for listener in list(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call each time span listener with a start time and an end time.

    Args:
      event: the name of what took this time.
      start_time, end_time: in seconds since the epoch.
      kwargs: further information, which listeners take by keyword.

    >>> from pullback import monitoring
    >>> monitoring.register_event_time_span_listener(lambda event, start, end, **more: print(event, end - start))
    >>> monitoring.record_event_time_span("/example/solve", 10.0, 12.5)
    /example/solve 2.5
    >>> monitoring.clear_event_listeners()
    """
    for listener in list(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call each scalar listener with a number.

    Args:
      event: the name of the number.
      value: the number.
      kwargs: further information, which listeners take by keyword.

    >>> from pullback import monitoring
    >>> monitoring.register_scalar_listener(lambda event, value, **more: print(event, value))
    >>> monitoring.record_scalar("/example/loss", 0.5)
    /example/loss 0.5
    >>> monitoring.clear_event_listeners()
    """
    for listener in list(_scalars):
        listener(event, value, **kwargs)


def _register(listeners: list[Listener], callback: Listener) -> None:
    if not callable(callback):
        raise ArgumentError(f"a listener must be a function, got {callback!r} of type {type(callback).__name__}")
    listeners.append(callback)


def _unregister(listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise ListenerError(f"{callback!r} is not registered as a listener of this kind")
    listeners.remove(callback)


def register_event_listener(callback: Listener) -> None:
    """Call ``callback`` for each event that is recorded from now on.

    Args:
      callback: takes the name of the event, and further information by keyword.

    Raises:
      ArgumentError: ``callback`` is no function (a TypeError).

    >>> from pullback import monitoring
    >>> monitoring.register_event_listener(lambda event, **more: print(event, more))
    >>> monitoring.record_event("/example", step=3)
    /example {'step': 3}
    >>> monitoring.clear_event_listeners()
    """
    _register(_events, callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Call ``callback`` for each duration that is recorded from now on.

    Args:
      callback: takes the name of the event, the seconds that it took, and further information by keyword.

    Raises:
      ArgumentError: ``callback`` is no function (a TypeError).

    >>> from pullback import jit, monitoring
    >>> seen = []
    >>> listener = lambda event, seconds, **more: seen.append(event.split("/")[-1])
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> lowered = jit(lambda x: x + 1).lower(1.0)
    >>> seen
    ['jaxpr_trace_duration', 'jaxpr_to_mlir_module_duration']
    >>> monitoring.clear_event_listeners()
    """
    _register(_durations, callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Call ``callback`` for each time span that is recorded from now on.

    Args:
      callback: takes the name of the event, the times when it began and ended, and further information by keyword.

    Raises:
      ArgumentError: ``callback`` is no function (a TypeError).

    >>> from pullback import monitoring
    >>> monitoring.register_event_time_span_listener(lambda event, start, end, **more: print(event, end - start))
    >>> monitoring.record_event_time_span("/example/solve", 10.0, 12.5)
    /example/solve 2.5
    >>> monitoring.clear_event_listeners()
    """
    _register(_spans, callback)


def register_scalar_listener(callback: Listener) -> None:
    """Call ``callback`` for each number that is recorded from now on.

    Args:
      callback: takes the name of the number, its value, and further information by keyword.

    Raises:
      ArgumentError: ``callback`` is no function (a TypeError).

    >>> from pullback import monitoring
    >>> monitoring.register_scalar_listener(lambda event, value, **more: print(event, value))
    >>> monitoring.record_scalar("/example/loss", 0.5)
    /example/loss 0.5
    >>> monitoring.clear_event_listeners()
    """
    _register(_scalars, callback)


def unregister_event_listener(callback: Listener) -> None:
    """Stop calling ``callback`` for events.

    Args:
      callback: a function that was registered as an event listener.

    Raises:
      ListenerError: ``callback`` is not registered for events (an AssertionError).

    >>> from pullback import monitoring
    >>> seen = []
    >>> def listener(*event, **more):
    ...     seen.append(event)
    >>> monitoring.register_event_listener(listener)
    >>> monitoring.record_event("/example")
    >>> monitoring.unregister_event_listener(listener)
    >>> monitoring.record_event("/example")
    >>> len(seen)
    1
    """
    _unregister(_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Stop calling ``callback`` for durations.

    Args:
      callback: a function that was registered as a duration listener.

    Raises:
      ListenerError: ``callback`` is not registered for durations (an AssertionError).

    >>> from pullback import monitoring
    >>> seen = []
    >>> def listener(*event, **more):
    ...     seen.append(event)
    >>> monitoring.register_event_duration_secs_listener(listener)
    >>> monitoring.record_event_duration_secs("/example", 0.25)
    >>> monitoring.unregister_event_duration_listener(listener)
    >>> monitoring.record_event_duration_secs("/example", 0.25)
    >>> len(seen)
    1
    """
    _unregister(_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Stop calling ``callback`` for time spans.

    Args:
      callback: a function that was registered as a time span listener.

    Raises:
      ListenerError: ``callback`` is not registered for time spans (an AssertionError).

    >>> from pullback import monitoring
    >>> seen = []
    >>> def listener(*event, **more):
    ...     seen.append(event)
    >>> monitoring.register_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/example", 10.0, 12.5)
    >>> monitoring.unregister_event_time_span_listener(listener)
    >>> monitoring.record_event_time_span("/example", 10.0, 12.5)
    >>> len(seen)
    1
    """
    _unregister(_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Stop calling ``callback`` for numbers.

    Args:
      callback: a function that was registered as a scalar listener.

    Raises:
      ListenerError: ``callback`` is not registered for numbers (an AssertionError).

    >>> from pullback import monitoring
    >>> seen = []
    >>> def listener(*event, **more):
    ...     seen.append(event)
    >>> monitoring.register_scalar_listener(listener)
    >>> monitoring.record_scalar("/example", 0.5)
    >>> monitoring.unregister_scalar_listener(listener)
    >>> monitoring.record_scalar("/example", 0.5)
    >>> len(seen)
    1
    """
    _unregister(_scalars, callback)


def clear_event_listeners() -> None:
    """Unregister all listeners of all kinds.

    >>> from pullback import monitoring
    >>> monitoring.register_event_listener(lambda event, **more: print(event))
    >>> monitoring.clear_event_listeners()
    >>> monitoring.record_event("/example")
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


_NOTHING = nullcontext()


_LOGGED = {TRACE: "traced", LOWER: "lowered"}
"""The verbs of the log for tracing and lowering; the compiler logs compilations itself, in more detail."""


def timed(event: str, **kwargs: str | int) -> AbstractContextManager[None]:
    """A context manager that measures the time of its block, and reports it as ``event`` with ``kwargs``.

    The listeners receive the start time as a number, the duration, and the time span. With ``log_compiles`` on, the
    durations of tracing and lowering are also logged.
    """
    return _timed(event, kwargs) if _scalars or _durations or _spans or config.log_compiles else _NOTHING


@contextmanager
def _timed(event: str, kwargs: dict[str, str | int]) -> Iterator[None]:
    start = time.time()
    record_scalar(event, start, **kwargs)
    yield
    end = time.time()
    record_event_duration_secs(event, end - start, **kwargs)
    record_event_time_span(event, start, end, **kwargs)
    if config.log_compiles and event in _LOGGED:
        import logging  # imported only if used: import time of the package

        logging.getLogger("pullback").warning("%s %s in %.3f s", _LOGGED[event], kwargs.get("fun_name"), end - start)
