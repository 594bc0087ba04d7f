"""One library doing the operations of the catalogue, in a process of its own.

Each line on standard input is a task, ``["make", row, size, mode]`` or ``["turn", seconds]``; each answer is one line
of JSON on standard output. A made task has been called until what it needs is compiled and the caches are filled.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import repeat
from time import perf_counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.sizes.catalogue import ROWS, Row
from benchmarks.sizes.programs import digest

WARM_UP_SECONDS, BLOCK_SECONDS = 0.1, 2e-4
"""Blocks of calls are so short that what interrupts them, on a machine that does other things too, spares some."""
MODES = ("value", "gradient", "compiled value", "compiled gradient")


class Task(NamedTuple):
    """What a row is in a mode.

    Attributes:
      call: computes the value or the cotangents, and has finished when it returns.
      text: returns the optimised program as text; None of eager code.
    """

    call: Callable[[], Any]
    text: Callable[[], str] | None = None


class JaxLike:
    """A library with JAX's names: Pullback or JAX."""

    def __init__(self, package: str) -> None:
        self.library = importlib.import_module(package)
        parts = {
            "np": "numpy", "nn": "nn", "lax": "lax", "ops": "ops", "special": "scipy.special", "linalg": "scipy.linalg",
        }  # fmt: skip
        self.names = SimpleNamespace(**{k: importlib.import_module(f"{package}.{v}") for k, v in parts.items()})

    def task(self, row: Row, arrays: Sequence[Any], mode: str) -> Task:
        """A row's value, or its cotangents."""
        run, operands = row.jax(self.names), [self.names.np.asarray(a) for a in arrays]
        function = run
        if mode.endswith("gradient"):
            count = row.differentiable

            def function(weights: Any, *arrays: Any) -> Any:
                of_some = lambda *some: run(*some, *arrays[count:])
                return self.library.vjp(of_some, *arrays[:count])[1](weights)

            operands = [self.names.np.asarray(_weights(run(*operands))), *operands]
        if not mode.startswith("compiled"):
            return Task(self._finished(lambda: function(*operands)))
        compiled = self.library.jit(function)
        text = lambda: compiled.lower(*operands).compile().as_text()
        return Task(self._finished(lambda: compiled(*operands)), text)

    def _finished(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """A call that has finished when it returns: it waits for results that are not in NumPy's memory."""
        if self.library.__name__ == "pullback":
            in_memory = (np.ndarray, np.generic)
            if all(isinstance(x._host_value, in_memory) for x in self.library.tree.leaves(call())):
                return call
        wait = self.library.block_until_ready
        return lambda: wait(call())


class Torch:
    """PyTorch, eager, with its own reverse mode."""

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")

    def task(self, row: Row, arrays: Sequence[Any], mode: str) -> Task:
        """A row's value, or its cotangents."""
        if row.torch is None or mode.startswith("compiled"):
            raise LookupError("not measured")
        run = row.torch(self.torch)
        tensors = [self.torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]
        if mode == "value":
            return Task(lambda: run(*tensors))
        for x in tensors[: row.differentiable]:
            x.requires_grad_()
        weights = self.torch.from_numpy(_weights(run(*tensors).detach().numpy()))
        return Task(lambda: self.torch.autograd.grad(run(*tensors), tensors[: row.differentiable], weights))


LIBRARIES: dict[str, Callable[[], JaxLike | Torch]] = {
    "pullback": lambda: JaxLike("pullback"), "jax": lambda: JaxLike("jax"), "torch": Torch
}  # fmt: skip


def _weights(value: Any) -> np.ndarray[Any, Any]:
    """The cotangent of a result: numbers that differ, so that no derivative is a constant."""
    x = np.asarray(value)
    return (1 + np.sin(np.arange(x.size))).reshape(x.shape).astype(x.dtype)


def fingerprint(result: Any) -> list[float]:
    """The size, the sum and the sum of magnitudes of a result, or of all cotangents."""
    results = result if isinstance(result, tuple | list) else [result]
    # NumPy does not read PyTorch's bfloat16
    arrays = [np.asarray(x.float() if str(x.dtype) == "torch.bfloat16" else x) for x in results]
    arrays = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in arrays]
    return [
        float(sum(x.size for x in arrays)), float(sum(x.real.sum() for x in arrays)),
        float(sum(np.abs(x).sum() for x in arrays)),
    ]  # fmt: skip


def time_block(call: Callable[[], Any], calls: int) -> float:
    """Seconds a call, over a block of ``calls``."""
    start = perf_counter()
    for _ in repeat(None, calls):
        call()
    return (perf_counter() - start) / calls


class Session:
    """What a process has made: the call of the present task, and how often a block runs it."""

    def __init__(self, library: JaxLike | Torch) -> None:
        self.library = library
        self.call: Callable[[], Any] = lambda: None
        self.each = 0.0

    def make(self, name: str, size: int, mode: str) -> dict[str, Any]:
        """Set up a row at a size; the answer has what to compare results by, and compiled programs."""
        row = next(row for row in ROWS if row.name == name)
        arrays = row.operands(size, np.random.default_rng(0))
        self.call, text = self.library.task(row, arrays, mode)
        found = fingerprint(self.call())
        program = digest(text()) if text else None
        gc.collect()
        end, self.each = perf_counter() + WARM_UP_SECONDS, time_block(self.call, 1)
        while perf_counter() < end:
            self.each = min(self.each, time_block(self.call, self._calls()))
        return {"fingerprint": found, "program": program}

    def _calls(self) -> int:
        """How many calls a block has."""
        return max(1, round(BLOCK_SECONDS / self.each))

    def turn(self, seconds: float) -> dict[str, Any]:
        """Time blocks for so many seconds; the answer is the quickest.

        A call before them is not timed, since other libraries have filled the caches, unless it takes the whole turn:
        then what the caches hold makes no difference.
        """
        end, calls = perf_counter() + seconds, self._calls()
        if self.each < seconds:
            self.call()
        best = time_block(self.call, calls)
        while perf_counter() < end:
            best = min(best, time_block(self.call, calls))
        return {"seconds": best}


def main(library: str) -> None:
    """Answer tasks; any failure is an answer, and what libraries print goes elsewhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session(LIBRARIES[library]())
    if isinstance(session.library, JaxLike):  # some rows are of float64
        session.library.library.config.update("jax_enable_x64", True)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        kind, *arguments = json.loads(line)
        try:
            answer = session.make(*arguments) if kind == "make" else session.turn(*arguments)
        except Exception as error:  # whatever a library raises is its result
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
