"""What threads look for while they have a switch on: NaNs, indices out of range, keys that are used twice.

At the bottom of the traces of a thread is one that evaluates. With a switch on it is another one, which looks at
operations on the way: so nothing is paid for while the switch is off. A switch that is set for the whole process
reaches all threads.
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
    """What a thread looks for at the bottom of its traces, while it has a switch on.

    Attributes:
      process: takes the trace that evaluates, and an operation; returns its results.
      run_program: takes that trace, and what :meth:`EvalTrace.run_program` does; None if it looks at no programs.
      quick: whether operations on arrays need not be handed to it.
      watches: whether it looks at what comes out.
    """

    process: Callable[[EvalTrace, Primitive, tuple[Any, ...], dict[str, Any]], Any]
    run_program: Callable[[EvalTrace, Any, Sequence[Any], Callable[[], Any]], Any] | None = None
    quick: bool = False
    watches: bool = False


class WatchedTrace(EvalTrace):
    """Computes by another trace, and looks for something.

    Attributes:
      inner: the trace that evaluates.
      watcher: what looks.
    """

    __slots__ = ("inner", "watcher", "watches")

    def __init__(self, inner: EvalTrace, watcher: Watcher) -> None:
        super().__init__(None)
        self.inner, self.watcher = inner, watcher
        self.quick = inner.quick and watcher.quick
        self.watches = inner.watches or watcher.watches

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        return self.watcher.process(self.inner, primitive, args, params)

    def run_program(self, closed: Any, leaves: Sequence[Any], run: Callable[[], Any]) -> Any:
        if self.watcher.run_program is None:
            return self.inner.run_program(closed, leaves, run)
        return self.watcher.run_program(self.inner, closed, leaves, run)


WATCHED = EvalTrace(None)
"""Evaluates, but not by the quick paths: for a thread whose operands are looked at, by the functions of arrays."""
WATCHED.quick = False


def _evaluator(own: Mapping[str, Any]) -> EvalTrace:
    """The trace that evaluates for a thread, by its own switches, which outweigh those of the process."""
    switches = {**vars(Config), **own}
    found = EVAL if switches["numpy_rank_promotion"] == "allow" else WATCHED
    for what, names in _WATCHED_FOR.items():
        if any(switches[name] in (True, "raise") for name in names):
            found = _watched(found, what)
    return found


def _watched(inner: EvalTrace, what: str) -> EvalTrace:
    """The trace that looks for something, on another one; ``WATCHED`` before the floor that has it is there."""
    if (inner, what) not in _watched_traces and what in _watchers:
        _watched_traces[inner, what] = WatchedTrace(inner, _watchers[what]())
    return _watched_traces.get((inner, what), WATCHED)


class SwitchedThread:
    """A thread, as others reach it that set a switch for the whole process.

    Attributes:
      dynamic: what the attributes of ``state`` are there.
      switches: the switches that the thread has set for itself.
    """

    __slots__ = ("__weakref__", "dynamic", "switches")

    def __init__(self, dynamic: dict[str, Any], switches: dict[str, Any]) -> None:
        self.dynamic, self.switches = dynamic, switches

    def apply_config(self) -> None:
        """Put the trace that the switches ask for at the bottom of those that are at work."""
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
    """Have this thread, or all, evaluate as their switches ask for."""
    with _lock:
        own = state.switched  # which is not among those that live before it is asked for
        living = _switched_threads.living()
        for thread in living if everywhere else [own]:
            thread.apply_config()
        quick = all(_evaluator(own).quick for own in ({}, *[thread.switches for thread in living]))
        if quick is (WATCHED in recorders):
            (recorders.remove if quick else recorders.append)(WATCHED)


def watch_by(what: str, make: Callable[[], Watcher]) -> None:
    """Set what looks for one of the keys of ``_WATCHED_FOR``, made when a switch first asks for it."""
    _watchers[what] = make
    _apply_config_to_all(True)


_WATCHED_FOR = {
    "numbers": ("debug_nans", "debug_infs"),
    "indices": ("check_indices", "error_checking_behavior_oob"),
    "keys": ("debug_key_reuse",),
}
"""What is looked for, from the first to the last that sees an operation's results, and the switches that ask for it."""
_watchers: dict[str, Callable[[], Watcher]] = {}
_watched_traces: dict[tuple[EvalTrace, str], EvalTrace] = {}
_lock = lock(globals(), "_lock")
_switched_threads: Registry[SwitchedThread] = Registry()


@provides
def begin_thread(state: Any) -> None:
    """Have a thread evaluate as its switches ask for, now and whenever one is set."""
    state.trace = state.bottom = _evaluator(vars(config))
    state.switched = SwitchedThread(vars(state), vars(config))
    _switched_threads.add(state.switched)


begin_thread(state)
for _name in ("numpy_rank_promotion", *(name for names in _WATCHED_FOR.values() for name in names)):
    observe(_name, _apply_config_to_all)
