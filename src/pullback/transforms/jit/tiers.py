"""Tiered execution: the first calls of a function run operation by operation, while another thread compiles it.

``entry_for`` decides on this when the function is lowered. ``Tiered`` is then the entry in the cache of ``jit``, until
the compiled program replaces it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.backends.compiler import background, compile_times, trees
from pullback.backends.devices import devices
from pullback.backends.devices.meshes import current_mesh
from pullback.backends.processes import forks
from pullback.core.array import delete, fresh
from pullback.core.config import config
from pullback.core.refs import RefCell
from pullback.transforms.debugging.debug_nans import checking
from pullback.transforms.jit.caches import Cache
from pullback.transforms.jit.eager import EagerProgram, expected_seconds
from pullback.transforms.jit.stages import Compiled, Lowered, check_donated_twice

LEAST_WAIT = 1.0
"""The shortest expected compile time, in seconds, for which calls run eagerly meanwhile."""
MOST_EAGER = 1.0
"""The longest expected time of an eager call, in seconds; a longer call waits for the compiler."""


def entry_for(lowered: Lowered, options: Any, cache: Cache, key: Any) -> Compiled | Tiered:
    """Return the cache entry for a lowered function: a compiled function, or one that runs eagerly at first.

    With the option ``tiered``, calls may run eagerly while another thread compiles. Of several threads that call the
    function for the first time, the first one's entry is the entry of all, so that the function is compiled once.

    Args:
      lowered: the function.
      options: the options of ``jit``.
      cache: the cache, to which the entry is added, and in which the compiled function will replace the eager entry.
      key: the key of the entry.
    """
    tier = options.tiered or config.tiered
    if tier == "off" or not (_may_be_eager(lowered, options) and (tier == "on" or _is_worth_it(lowered))):
        return cache.keep(key, Compiled(lowered, options.compiler_options))
    entry = Tiered(lowered, options, cache, key)
    kept: Compiled | Tiered = cache.keep(key, entry, first=True)
    if kept is not entry:
        return kept
    if not background.submit(entry.job):
        return cache.keep(key, Compiled(lowered, options.compiler_options))
    if config.log_compiles:
        _log(lowered)
    return entry


def _log(lowered: Lowered) -> None:
    """Log that calls of a function run eagerly while it is compiled, with the expected times of both."""
    import logging  # imported only if needed

    program = lowered.program
    call, wait = expected_seconds(program.closed.jaxpr), compile_times.expected(program.compile_time)
    logging.getLogger("pullback").warning(
        "calls of %s run uncompiled while it compiles: about %.2g s each, and %.2g s for the compiler",
        program.name.removeprefix("jit_"), call, wait,
    )  # fmt: skip


def _may_be_eager(lowered: Lowered, options: Any) -> bool:
    """Whether calls of a function may run eagerly instead of compiled, without any difference to the user.

    The function must run on the host, without options for the compiler, shardings or debugging checks.
    """
    program = lowered.program
    module = program.module
    return not (
        options.compiler_options or lowered.asked_for or not program.device.is_host
        or program.in_shardings or program.out_shardings or module.meshes or module.inspections or module.partitions
        or current_mesh() is not None or any(k is not None for k in lowered.actual_placements)
        or program.closed.jaxpr.axes or checking() or config.debug_key_reuse or forks.in_child()
    )  # fmt: skip


def _is_worth_it(lowered: Lowered) -> bool:
    """Whether calls should run eagerly during compilation.

    True if the compilation is expected to take long, an eager call is expected to be short, and the executable is not
    on disk.
    """
    from pullback.backends.compiler import programs

    program = lowered.program
    wait = compile_times.expected(program.compile_time)
    if wait < LEAST_WAIT or expected_seconds(program.closed.jaxpr) > min(MOST_EAGER, wait):
        return False
    return not programs.is_cached(program, ())


class Tiered:
    """An entry of the cache of ``jit`` that runs calls eagerly until its program is compiled.

    Attributes:
      job: the compilation, in another thread.
      simple: always False, so that ``jit`` does not use its fast path, which needs an executable.
    """

    __slots__ = ("__weakref__", "_cache", "_key", "_options", "_program", "job", "lowered", "simple", "unflatten")

    def __init__(self, lowered: Lowered, options: Any, cache: Cache, key: Any) -> None:
        self.lowered = lowered
        self.simple = False
        self.job: background.Job[Compiled] = background.Job(partial(Compiled, lowered, options.compiler_options))
        self._options = options
        self._cache = weakref.ref(cache)
        self._key = key
        self._program = EagerProgram(lowered.program.closed)
        out_tree = lowered.traced.out_tree
        self.unflatten: Callable[[list[Any]], Any] | None = None if out_tree.is_leaf() else trees.unflattener(out_tree)

    def run(self, leaves: Sequence[Any], own: Sequence[RefCell] = ()) -> Any:
        """Run the function on the leaves of the arguments; return the tree of the results.

        The function runs eagerly until its program is compiled. ``own`` are the references among the leaves: their new
        contents are written to them.
        """
        if self.job.done or (self._options.tiered or config.tiered) == "off":
            return self._compiled().run(leaves, own)
        lowered, refs = self.lowered, self.lowered.traced.refs
        if refs is not None:
            refs.check(own)
            leaves = [*leaves, *refs.contents()]
        check_donated_twice([leaves[i] for i in lowered.donated])
        operands = leaves if lowered.used is None else [leaves[i] for i in lowered.used]
        for x in operands:
            x._host_value  # noqa: B018  (raises for a deleted array, even if no operation reads its elements)
        outs = self._program(operands)
        if lowered.out_index is not None:
            outs = [outs[i] if i >= 0 else fresh(leaves[~i]) for i in lowered.out_index]
        for i in lowered.donated:
            delete(leaves[i])
        if refs is not None:
            outs = refs.written_back(outs, own)
        return outs[0] if self.unflatten is None else self.unflatten(outs)

    def _compiled(self) -> Compiled:
        """Return the compiled function, and replace this cache entry by it.

        If the other thread still compiles, wait for it. If its compilation failed, compile in this thread, to raise the
        error.
        """
        found = self.job.result or Compiled(self.lowered, self._options.compiler_options)
        if devices.here.several_in_use and not found.fits_shardings:  # perhaps only since the thread compiled it
            found.quick = found.simple = False
        cache = self._cache()
        if cache is not None and cache.get(self._key) is self:
            cache[self._key] = found
        return found
