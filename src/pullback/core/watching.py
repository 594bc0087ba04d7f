"""Debugging switches that watch operations for NaNs, indices out of range, and random keys that are used twice.

While such a switch is on, another trace replaces the evaluating trace of a thread, and inspects operations; while it is
off, it costs nothing. A switch that is set for the whole process reaches all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pullback.core.config import Config, config, observe
from pullback.core.locks import lock
from pullback.core.registry import Registry
from pullback.core.runtime import provides
from pullback.core.trace import EVAL, EvalTrace, Primitive, recorders, state


class Watcher(NamedTuple):
    """The functions by which a :class:`WatchedTrace` inspects operations while a switch is on.

    Attributes:
      process: ``process(inner, primitive, args, params)`` evaluates an operation by the trace ``inner``, inspects it,
        and returns its results.
      run_program: ``run_program(inner, program, args, run)`` returns ``run()``, the results of a compiled program, and
        inspects them. None if compiled programs are not inspected.
      quick: whether operations on arrays may use fast paths that do not call ``process``.
      watches: whether ``process`` inspects results.
      elsewhere: whether ``process`` evaluates operations on another device than NumPy's.
    """

    process: Callable[[EvalTrace, Primitive, tuple[Any, ...], dict[str, Any]], Any]
    run_program: Callable[[EvalTrace, Any, Sequence[Any], Callable[[], Any]], Any] | None = None
    quick: bool = False
    watches: bool = False
    elsewhere: bool = False


class WatchedTrace(EvalTrace):
    """An evaluating trace that inspects operations by a watcher, and evaluates them by another evaluating trace.

    Attributes:
      inner: the other evaluating trace.
      watcher: the functions that inspect operations.
    """

    __slots__ = ("elsewhere", "inner", "watcher", "watches")

    def __init__(self, inner: EvalTrace, watcher: Watcher) -> None:
        super().__init__(None)
        self.inner, self.watcher = inner, watcher
        self.quick = inner.quick and watcher.quick
        self.watches = inner.watches or watcher.watches
        self.elsewhere = watcher.elsewhere or getattr(inner, "elsewhere", False)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.watcher.process(self.inner, primitive, args, params)

    def run_program(self, closed: Any, leaves: Sequence[Any], run: Callable[[], Any]) -> Any:
        if self.watcher.run_program is None:
            return self.inner.run_program(closed, leaves, run)
        return self.watcher.run_program(self.inner, closed, leaves, run)


WATCHED = EvalTrace(None)
"""An evaluating trace without fast paths, for threads whose operands are checked by the functions of arrays."""
WATCHED.quick = False


def _evaluator(own: Mapping[str, Any]) -> EvalTrace:
    """Return the evaluating trace for the debugging switches of a thread.

    ``own`` has the switches that the thread has set. All others have their values for the whole process.
    """
    switches = {**vars(Config), **own}
    found = EVAL if switches["numpy_rank_promotion"] == "allow" else WATCHED
    if not switches["eager_on_host"]:
        found = _where[0](switches) or found
    for what, names in _WATCHED_FOR.items():
        if any(switches[name] in (True, "raise") for name in names):
            found = _watched(found, what)
    return found


def _watched(inner: EvalTrace, what: str) -> EvalTrace:
    """Return a trace that evaluates operations by ``inner``, and watches them by the watcher for ``what``.

    ``what`` is "numbers" (NaNs), "indices" (out of range) or "keys" (used twice). If the module with this watcher is
    not imported yet, return a trace that only lacks fast paths.
    """
    if (inner, what) not in _watched_traces and what in _watchers:
        _watched_traces[inner, what] = WatchedTrace(inner, _watchers[what]())
    return _watched_traces.get((inner, what), WATCHED)


_where: list[Callable[[Mapping[str, Any]], EvalTrace | None]] = [lambda switches: None]


def decide_where(trace_for: Callable[[Mapping[str, Any]], EvalTrace | None]) -> None:
    """Register the function that returns, of switches, the trace of their default device; None if that is NumPy's."""
    _where[0] = trace_for
    _apply_config_to_all(True)


def stay_on_host() -> None:
    """Evaluate eager operations by NumPy from now on, in a process whose only thread is this one."""
    _where[0] = lambda switches: None
    state.switched.apply_config()  # without the lock, which another thread may have held before the fork


class SwitchedThread:
    """A handle of a thread, by which another thread that sets a switch for the whole process changes its trace.

    Attributes:
      dynamic: the attributes of the thread's ``state``.
      switches: the switches that the thread has set for itself.
    """

    __slots__ = ("__weakref__", "dynamic", "switches")

    def __init__(self, dynamic: dict[str, Any], switches: dict[str, Any]) -> None:
        self.dynamic, self.switches = dynamic, switches

    def apply_config(self) -> None:
        """Replace the thread's evaluating trace by the one for its present switches, also below active traces."""
        found = _evaluator(self.switches)
        self.dynamic["bottom"] = found
        if self.dynamic["trace"].is_bottom:
            self.dynamic["trace"] = found
            return
        above = [self.dynamic["trace"]]
        for trace in above:
            for side in ("parent", "rules"):
                below = getattr(trace, side, found)
                if below.is_bottom and hasattr(trace, side):
                    setattr(trace, side, found)
                elif not below.is_bottom and below not in above:
                    above.append(below)
        for trace in above:
            trace.quick = found.quick and trace.eager


def _apply_config_to_all(everywhere: bool) -> None:
    """Update the evaluating trace of this thread, or of all threads if ``everywhere``, after a switch was set."""
    with _lock:
        own = state.switched  # reading it adds this thread to the living ones
        living = _switched_threads.living()
        for thread in living if everywhere else [own]:
            thread.apply_config()
        quick = all(_evaluator(own).quick for own in ({}, *[thread.switches for thread in living]))
        if quick is (WATCHED in recorders):
            (recorders.remove if quick else recorders.append)(WATCHED)


def watch_by(what: str, make: Callable[[], Watcher]) -> None:
    """Register a function ``make`` that makes the watcher for ``what``: "numbers", "indices" or "keys".

    It is called when a switch that needs this watcher, such as ``debug_nans`` for "numbers", is first set.
    """
    _watchers[what] = make
    _apply_config_to_all(True)


_WATCHED_FOR = {
    "numbers": ("debug_nans", "debug_infs"),
    "indices": ("check_indices", "error_checking_behavior_oob"),
    "keys": ("debug_key_reuse",),
}
"""The kinds of watchers, in the order in which they see an operation's results, with the switches that select each."""
_watchers: dict[str, Callable[[], Watcher]] = {}
_watched_traces: dict[tuple[EvalTrace, str], EvalTrace] = {}
_lock = lock(globals(), "_lock")
_switched_threads: Registry[SwitchedThread] = Registry()


@provides
def begin_thread(state: Any) -> None:
    """Initialize ``state``, the thread-local state of a new thread: set its evaluating trace.

    The trace depends on the debugging switches, and is replaced whenever such a switch is set later.
    """
    state.trace = state.bottom = _evaluator(vars(config))
    state.switched = SwitchedThread(vars(state), vars(config))
    _switched_threads.add(state.switched)


begin_thread(state)
for _name in (
    "numpy_rank_promotion",
    "default_device",
    "platforms",
    "eager_on_host",
    *(name for names in _WATCHED_FOR.values() for name in names),
):
    observe(_name, _apply_config_to_all)
