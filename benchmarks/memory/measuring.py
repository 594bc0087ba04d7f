"""Measuring the gradients of one library: temporaries in the compiler's count, and CPU seconds, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

SHARES = (0.75, 0.5, 0.3)
ATTEMPTS = 5
CALLS = 7
Name = TypeVar("Name", str, tuple[Any, str])


def compiled(lib: Any, step: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, int]:
    """Compile a function; return it, and the bytes of its temporaries."""
    found = lib.jit(step).lower(*args).compile()
    return found, int(found.memory_analysis().temp_size_in_bytes)


def on_device(lib: Any, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments as arrays of a library: NumPy's are copied in each call, or not, as the library likes."""
    return tuple(lib.tree.map(lib.numpy.asarray, args))


def cpu_seconds(lib: Any, steps: dict[Name, Any], args: Sequence[Any], calls: int = CALLS) -> dict[Name, float]:
    """Return the least CPU seconds of a call of each function; the functions take turns."""
    best = dict.fromkeys(steps, float("inf"))
    for turn in range(calls + 1):
        for name, step in steps.items():
            start = time.process_time()
            lib.block_until_ready(step(*args))
            if turn:  # the first call may still prepare something
                best[name] = min(best[name], time.process_time() - start)
    return best


def largest_difference(a: Any, b: Any, leaves: Callable[[Any], Any]) -> float:
    """Return the largest difference between two trees, relative to the largest element of each array."""
    pairs = [(np.asarray(x, np.float64), np.asarray(y, np.float64)) for x, y in zip(leaves(a), leaves(b), strict=True)]
    return max(float(np.max(np.abs(x - y)) / max(np.max(np.abs(x)), 1e-30)) for x, y in pairs)


def fitted(lib: Any, loss: Any, args: Sequence[Any], target: float) -> tuple[Any, int, int] | str:
    """Compile a gradient within ``target`` bytes of temporaries; correct the budget by what the compiler counts.

    Return the function, its temporaries and the budget; or why there is none.
    """
    budget, least = int(target), 0
    for _ in range(ATTEMPTS):
        try:
            step, found = compiled(lib, lib.value_and_grad(loss, memory=budget), args)
        except lib.errors.MemoryBudgetError as error:
            if least:
                return f"least {least}"
            budget = least = error.least  # the compiler may count less than is predicted
            continue
        if found <= target:
            return step, found, budget
        budget = int(0.985 * budget * target / found)
    return f"{found} bytes after {ATTEMPTS} attempts"


def budgeted(lib: Any, program: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compile a program without a budget, and at each share of its temporaries; return what is known, and the steps."""
    start = time.process_time()
    usual, temporaries = compiled(lib, lib.value_and_grad(program.loss), program.args)
    row: dict[str, Any] = {"usual": temporaries, "shares": {}}
    from pullback import analysis

    row["predicted"] = analysis.memory_profile(lib.value_and_grad(program.loss))(*program.args).predicted.peak
    steps = {"usual": usual}
    expected = usual(*program.args)
    for share in SHARES:
        found = fitted(lib, program.loss, program.args, share * temporaries)
        if isinstance(found, str):
            row["shares"][str(share)] = {"impossible": found}
            continue
        step, bytes_found, budget = found
        steps[str(share)] = step
        error = largest_difference(expected, step(*program.args), lib.tree.leaves)
        row["shares"][str(share)] = {"temporaries": bytes_found, "budget": budget, "difference": error}
    row["preparation"] = time.process_time() - start
    return row, steps


def _with_times(row: dict[str, Any], times: dict[str, float]) -> dict[str, Any]:
    row["seconds"] = times["usual"]
    for share, found in row["shares"].items():
        if share in times:
            found["seconds"] = times[share]
    return row


def of_pullback(lib: Any, program: Any) -> dict[str, Any]:
    """Measure a program without a budget, and at each share of its temporaries."""
    row, steps = budgeted(lib, program)
    return _with_times(row, cpu_seconds(lib, steps, on_device(lib, program.args)))


POLICIES = ("dots_saveable", "dots_with_no_batch_dims_saveable", "nothing_saveable")


def with_policies(lib: Any, name: str) -> tuple[dict[str, dict[str, float]], dict[str, Any], tuple[Any, ...]]:
    """Compile a program under each of JAX's policies, applied to all of it, and to each layer, block or step.

    Return what is known, the steps, and the arguments.
    """
    from benchmarks.memory.programs import programs

    def made(part: Any) -> Any:
        return next(p for p in programs(lib, part) if p.name == name)

    whole = made(lambda fun: fun)
    losses = {"everything": whole.loss}
    for policy in POLICIES:
        recomputed = partial(lib.checkpoint, policy=getattr(lib.checkpoint_policies, policy))
        losses[policy] = recomputed(whole.loss)
        losses[f"{policy} by part"] = made(recomputed).loss
    steps: dict[str, Any] = {}
    row: dict[str, dict[str, float]] = {}
    for way, loss in losses.items():
        steps[way], temporaries = compiled(lib, lib.value_and_grad(loss), whole.args)
        row[way] = {"temporaries": temporaries}
    return row, steps, whole.args


def of_jax(lib: Any, name: str) -> dict[str, Any]:
    """Measure a program under each of JAX's policies."""
    row, steps, args = with_policies(lib, name)
    for way, seconds in cpu_seconds(lib, steps, on_device(lib, args)).items():
        row[way]["seconds"] = seconds
    return row


def of_both(lib: Any, jax: Any, name: str) -> dict[str, Any]:
    """Measure a program with Pullback's budgets and JAX's policies in one process, which take turns."""
    from benchmarks.memory.programs import programs

    own, steps = budgeted(lib, next(p for p in programs(lib) if p.name == name))
    theirs, other_steps, args = with_policies(jax, name)
    waiting = {
        (library, way): partial(_waited, library, step, *on_device(library, args))
        for library, ways in ((lib, steps), (jax, other_steps))
        for way, step in ways.items()
    }
    times = cpu_seconds(lib, waiting, ())
    for way in theirs:
        theirs[way]["seconds"] = times[jax, way]
    return {"pullback": _with_times(own, {way: times[lib, way] for way in steps}), "jax": theirs}


def _waited(lib: Any, step: Any, *args: Any) -> None:
    lib.block_until_ready(step(*args))
