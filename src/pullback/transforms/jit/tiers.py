"""The first calls of a compiled function: answered operation by operation, while another thread compiles.

Whether calls are answered so is decided once, when their program is lowered (``entry_for``). ``Tiered`` then stands in
the cache of ``jit`` in the place of the compiled program, until that is there.
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
from pullback.transforms.jit.stages import Compiled, Lowered, check_donated_once

LEAST_WAIT = 1.0
"""A shorter wait for the compiler is waited for, in seconds."""
MOST_EAGER = 1.0
"""A call that would take longer, in seconds, waits for the compiler."""


def entry_for(lowered: Lowered, options: Any, cache: Cache, key: Any) -> Compiled | Tiered:
    """What answers the calls of a lowered function: the compiled program, or one that stands in for it meanwhile.

    Args:
      lowered: the function.
      options: those of ``jit``.
      cache: where the entry will stand, so that the compiled program can take its place.
      key: its key there.
    """
    tier = options.tiered or config.tiered
    if tier == "off" or not (_may_be_eager(lowered, options) and (tier == "on" or _is_worth_it(lowered))):
        return Compiled(lowered, options.compiler_options)
    entry = Tiered(lowered, options, cache, key)
    if not background.submit(entry.job):
        return Compiled(lowered, options.compiler_options)
    if config.log_compiles:
        _log(lowered)
    return entry


def _log(lowered: Lowered) -> None:
    import logging  # not where nobody asks for it: a short start

    program = lowered.program
    call, wait = expected_seconds(program.closed.jaxpr), compile_times.expected(program.compile_time)
    logging.getLogger("pullback").warning(
        "calls of %s are answered eagerly while it compiles: about %.2g s each, and %.2g s for the compiler",
        program.name.removeprefix("jit_"), call, wait,
    )  # fmt: skip


def _may_be_eager(lowered: Lowered, options: Any) -> bool:
    """Whether a function means the same operation by operation: on the host, without requests to the compiler."""
    program = lowered.program
    module = program.module
    return not (
        options.compiler_options or lowered.asked_for or not program.device.is_host
        or program.in_shardings or program.out_shardings or module.meshes or module.inspections or module.partitions
        or current_mesh() is not None or any(k is not None for k in lowered.given_placements)
        or program.closed.jaxpr.axes or checking() or config.debug_key_reuse or forks.in_child()
    )  # fmt: skip


def _is_worth_it(lowered: Lowered) -> bool:
    """Whether the compiler is expected to take long, and a call without it is not."""
    from pullback.backends.compiler import programs

    program = lowered.program
    wait = compile_times.expected(program.compile_time)
    if wait < LEAST_WAIT or expected_seconds(program.closed.jaxpr) > min(MOST_EAGER, wait):
        return False
    return not programs.is_cached(program, ())


class Tiered:
    """An entry of the cache of ``jit`` that answers calls eagerly until its program is compiled.

    Attributes:
      job: the compilation, by another thread.
      simple: False: it has no program that could be run without asking it.
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
        """The results for the leaves of some arguments, of which some are the contents of ``own`` references."""
        if self.job.done or (self._options.tiered or config.tiered) == "off":
            return self._compiled().run(leaves, own)
        lowered, refs, given = self.lowered, self.lowered.traced.refs, leaves
        if refs is not None:
            refs.check(own)
            given = [*leaves, *refs.contents()]
        check_donated_once([given[i] for i in lowered.donated])
        taken = given if lowered.kept is None else [given[i] for i in lowered.kept]
        for x in taken:
            x._host_value  # noqa: B018  (which a deleted array refuses, though nothing may read its elements)
        outs = self._program(taken)
        if lowered.out_index is not None:
            outs = [outs[i] if i >= 0 else fresh(given[~i]) for i in lowered.out_index]
        for i in lowered.donated:
            delete(given[i])
        if refs is not None:
            outs = refs.written_back(outs, own)
        return outs[0] if self.unflatten is None else self.unflatten(outs)

    def _compiled(self) -> Compiled:
        """The compiled function, which takes the place of this entry.

        If the other thread failed, it is compiled here, which raises the error; if it is still at it, it is waited for.
        """
        found = self.job.result or Compiled(self.lowered, self._options.compiler_options)
        if devices.here.several_in_use and not found.fits_shardings:  # since the thread asked
            found.simple = False
        cache = self._cache()
        if cache is not None and cache.get(self._key) is self:
            cache[self._key] = found
        return found
