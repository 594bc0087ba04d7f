"""Run lines of ``array_api_calls`` on the arrays of one library, and print what came of each as JSON.

python ecosystem/array_api_worker.py WAY MODULE FIRST

WAY is one of ``WAYS``. Lines before the number FIRST are left out: ``array_api_functions`` starts a worker anew behind
a line that ended the process.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import numbers
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import array_api_calls
import numpy as np

WAYS = ("plain", "served", "jax")
"""Pullback's arrays; the same after ``pullback.compat.install()`` and ``import jax``; the arrays of JAX itself."""

STEPS = ("concrete", "jit", "grad", "vmap")
SECONDS = 20
"""For each step of a line."""

YES, NOTHING = "yes", ""
"""What a step says if it works, and if it has nothing to do: integers have no derivatives."""

BATCH = 3
Values = dict[str, Any]


class Difference(Exception):
    """A result is not what NumPy's arrays give."""


def lines_of(module: str) -> list[str]:
    """Return the lines of a module, with one of each universal function that has none."""
    lines = [line.strip() for line in array_api_calls.CALLS[module].strip().splitlines()]
    if module == "scipy.special":
        special = importlib.import_module(module)
        called = {line.partition("(")[0] for line in lines}
        for name in sorted(set(special.__all__)):
            function = getattr(special, name)
            taken = getattr(getattr(np, name, None), "nin", None) or _operands(special, name)
            if callable(function) and taken and taken <= 4 and name not in called:
                lines.append(f"{name}({', '.join('xyvu'[:taken])})")
    return lines


def _operands(special: Any, name: str) -> int:
    ufuncs = importlib.import_module("scipy.special._ufuncs")
    return getattr(getattr(ufuncs, name, getattr(special, name)), "nin", 0)


class Line:
    """A line and the arrays that it names.

    Args:
      module: the module that the line's functions are of.
      text: an expression.
    """

    def __init__(self, module: str, text: str) -> None:
        self.code = compile(text, module, "eval")
        parsed = ast.parse(text, mode="eval")
        called = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
        self.scope = {"np": np, **vars(importlib.import_module(module))}
        for name in sorted(called - set(self.scope)):
            with contextlib.suppress(ImportError):
                self.scope[name] = importlib.import_module(f"{module}.{name}")
        self.values = {name: value for name, value in array_api_calls.arrays().items() if name in called}

    def __call__(self, values: Values) -> list[Any]:
        """Return the numbers and arrays in the value of the line, in a list."""
        return list(leaves(eval(self.code, {**self.scope, **values})))


def leaves(value: Any, depth: int = 4) -> Iterator[Any]:
    """Yield the numbers and arrays in a result, whose attributes are read if it is an object."""
    if isinstance(value, np.ndarray | np.generic | numbers.Number) or hasattr(value, "__array_namespace__"):
        yield value
    elif isinstance(value, dict):
        for name in sorted(value, key=str):
            yield from leaves(value[name], depth - 1)
    elif isinstance(value, tuple | list):
        for member in value:
            yield from leaves(member, depth - 1)
    elif depth > 0 and not isinstance(value, type) and not callable(value) and hasattr(value, "__dict__"):
        yield from leaves({name: v for name, v in vars(value).items() if not name.startswith("_")}, depth - 1)


def compare(found: list[Any], wanted: list[Any], rtol: float = 1e-5) -> None:
    """Refuse results that are not NumPy's, to roundoff of algorithms that stop at a tolerance."""
    if len(found) != len(wanted):
        raise Difference(f"{len(found)} results where NumPy's arrays give {len(wanted)}")
    for one, other in zip(found, wanted, strict=True):
        got, expected = np.asarray(one), np.asarray(other)
        if got.shape != expected.shape:
            raise Difference(f"shape {got.shape} where NumPy's arrays give {expected.shape}")
        if expected.dtype.kind in "biufc" and not np.allclose(got, expected, rtol, 1e-7, equal_nan=True):
            raise Difference("other values than with NumPy's arrays")


class Checker:
    """Runs lines on the arrays of a library.

    Args:
      library: the module with ``grad``, ``jit``, ``vmap`` and ``numpy``.
    """

    def __init__(self, library: Any) -> None:
        self.library = library

    def arrays(self, values: Values) -> Values:
        return {name: self.library.numpy.asarray(value) for name, value in values.items()}

    def concrete(self, line: Line) -> str:
        """Whether a line gives this library's arrays with NumPy's values."""
        wanted, found = line(line.values), line(self.arrays(line.values))
        compare(found, wanted)
        if any(isinstance(one, np.ndarray) for one in found):
            raise Difference("returns NumPy's arrays")
        return YES

    def jit(self, line: Line) -> str:
        """Whether a line gives NumPy's values for traced arrays."""
        compare(self.library.jit(line)(self.arrays(line.values)), line(line.values))
        return YES

    def grad(self, line: Line) -> str:
        """Whether a weighted sum of all results has the directional derivative that differences have."""
        moved = {name: value for name, value in line.values.items() if value.dtype.kind in "fc"}
        kinds = {np.asarray(one).dtype.kind for one in line(line.values)}
        if not moved or not kinds & set("fc"):
            return NOTHING
        rng = np.random.default_rng(3)
        along = {name: rng.normal(size=value.shape).astype(value.dtype) for name, value in moved.items()}

        def shifted(step: float) -> float:
            values = {name: value + step * along[name] for name, value in moved.items()}
            return float(weighted(np, line({**line.values, **values})))

        try:
            steps = [(shifted(h) - shifted(-h)) / (2 * h) for h in (2e-5, 1e-5)]
        except ValueError:  # a coefficient that has to be one, for instance
            return NOTHING
        if not np.isfinite(steps).all():
            return NOTHING
        whole = self.arrays(line.values)
        numpy = self.library.numpy
        slopes = self.library.grad(lambda values: weighted(numpy, line({**whole, **values})))(self.arrays(moved))
        found = sum(float(np.sum(np.real(np.asarray(slopes[name]) * along[name]))) for name in moved)
        allowed = 1e-4 * max(1.0, abs(steps[1])) + 10 * abs(steps[1] - steps[0])
        if not abs(found - steps[1]) <= allowed:
            raise Difference(f"a slope of {found:.6g}, differences give {steps[1]:.6g}")
        return YES

    def vmap(self, line: Line) -> str:
        """Whether a batch of arrays gives what NumPy's arrays give one by one."""
        moved = [name for name, value in line.values.items() if value.dtype.kind in "fc"] or list(line.values)
        if not moved:
            return NOTHING
        members = []
        for i in range(BATCH):
            scaled = {k: (v * (1 + 0.01 * i) if v.dtype.kind in "fc" else v) for k, v in line.values.items()}
            members.append(scaled)
        batches = {name: np.stack([member[name] for member in members]) for name in moved}
        whole = self.arrays(line.values)
        found = self.library.vmap(lambda values: line({**whole, **values}))(self.arrays(batches))
        for i, member in enumerate(members):
            compare([one[i] for one in found], line(member))
        return YES

    def check(self, line: Line) -> dict[str, str]:
        """Return what each step says: ``YES``, ``NOTHING`` or the reason why not."""
        try:
            line(line.values)
        except Exception as error:
            return {"numpy": reason(error)}
        return {step: limited(getattr(self, step), line) for step in STEPS}


def weighted(xp: Any, results: list[Any]) -> Any:
    """Return a sum of all elements of the floats among results, each with a weight of its own."""
    total: Any = 0.0
    for i, one in enumerate(results):
        array = xp.asarray(one)
        if np.dtype(array.dtype).kind in "fc":
            weights = np.cos(np.arange(array.size) + i).reshape(array.shape)
            total = total + xp.sum(weights * (xp.real(array) + 0.5 * xp.imag(array)))
    return total


def reason(error: BaseException) -> str:
    """Return an exception in a line: its type and the beginning of what it says."""
    text = re.split(r"\. |, but this one|, in `| at 0x|\[Traced|/", " ".join(str(error).split()))[0]
    text = text if len(text) <= 80 else f"{text[:77]}..."
    return text if isinstance(error, Difference) else f"{type(error).__name__}: {text}"


def limited(function: Callable[[Line], str], line: Line) -> str:
    """Return what a step says, or why it cannot be had within ``SECONDS``."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return function(line)
    except Exception as error:
        return reason(error)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def library_of(way: str) -> Any:
    """Return the library whose arrays a way takes, with 64 bits."""
    if way == "served":
        importlib.import_module("pullback.compat").install()
    library = importlib.import_module("pullback" if way == "plain" else "jax")
    importlib.import_module(f"{library.__name__}.numpy")
    library.config.update("jax_enable_x64", True)
    return library


def main(way: str, module: str, first: int) -> None:
    os.environ["SCIPY_ARRAY_API"] = "1"  # read by SciPy when it is imported
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is not the answer
    warnings.simplefilter("ignore")
    checker = Checker(library_of(way))
    if module == "sklearn":
        importlib.import_module("sklearn").set_config(array_api_dispatch=True)
    lines = lines_of(module)
    print(json.dumps(lines), file=told)
    for text in lines[first:]:
        print(json.dumps({text: checker.check(Line(module, text))}), file=told)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
