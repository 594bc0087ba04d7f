"""Progress bars for loops, in eager and compiled code, also under transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.control.conditional import cond
from pullback.core.array import ArrayImpl, scalar_array
from pullback.core.errors import ControlFlowError, MissingLibraryError
from pullback.primitives import elementwise as ops
from pullback.primitives.reductions import reduce_max
from pullback.transforms.custom.custom_vmap import custom_vmap
from pullback.transforms.programs.callbacks import debug_callback

UPDATES = 20
"""The largest number of updates of a bar, whatever the number of steps: each update is a callback."""


def check_progress(what: str, progress: Any) -> None:
    """Raise unless ``progress`` is a bool or a string, and the library for bars is installed if one is requested."""
    if not isinstance(progress, (bool, str)):
        raise ControlFlowError(f"{what}: progress must be a bool, or a string that describes the bar, got {progress!r}")
    if progress:
        try:
            import tqdm  # noqa: F401
        except ImportError:
            raise MissingLibraryError(
                f"{what}: a progress bar needs the library tqdm, which is not installed: `pip install "
                f"'pullback[progress]'`"
            ) from None


class Bar:
    """A progress bar, which restarts for each run of a loop.

    Under ``vmap`` a single bar shows the progress of the example with the most steps.
    """

    def __init__(self, description: Any) -> None:
        self.description = description if isinstance(description, str) else None
        self._bar: Any = None
        self.start = for_all(self._start)
        self.tick = for_all(self._tick)

    def _start(self, total: Any) -> None:
        """Show the bar for ``total`` steps, before the first step; ``total`` may be traced."""
        debug_callback(self._show, total, ordered=True)

    def _tick(self, done: Any, total: Any) -> None:
        """Update the bar after ``done`` of ``total`` steps; about ``UPDATES`` times in a loop, and at its end."""
        every = ops.max_p.bind(ops.div(total, _like(UPDATES, total)), _like(1, total))
        now = ops.eq_p.bind(ops.rem_p.bind(done, every), _like(0, total))
        now = ops.or_p.bind(now, ops.ge_p.bind(done, total))
        cond(now, lambda *counts: debug_callback(self._move, *counts, ordered=True), lambda *counts: None, done, total)

    # Callbacks

    def _show(self, total: Any) -> None:
        """Close the bar of an earlier run, if any, and open a new bar for ``total`` steps."""
        from tqdm.auto import tqdm

        if self._bar is not None:
            self._bar.close()
        self._bar = tqdm(total=int(total), desc=self.description)

    def _move(self, done: Any, total: Any) -> None:
        """Move the bar to ``done`` steps, and close it if these are all."""
        if self._bar is not None:
            self._bar.update(int(done) - self._bar.n)
            if done >= total:
                self._bar.close()
                self._bar = None


def _like(n: int, x: Any) -> ArrayImpl:
    """The scalar ``n`` with the dtype of ``x``."""
    return scalar_array(np.dtype(x.dtype).type(n))


def for_all(call: Callable[..., None]) -> Any:
    """Make a function of counters that runs once for a batch under ``vmap``, with the maximum of each counter.

    ``call`` takes the counters, and returns None.
    """
    mapped = custom_vmap(call)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Any, *counters: Any) -> Any:
        return mapped(*[reduce_max(x, (0,)) if b else x for x, b in zip(counters, in_batched, strict=True)]), None

    return mapped
