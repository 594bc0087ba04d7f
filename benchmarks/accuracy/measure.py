"""The errors of all functions, in both dtypes, of both libraries and of SciPy."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import reference
from benchmarks.accuracy.errors import subnormal, ulps
from benchmarks.accuracy.functions import FUNCTIONS
from benchmarks.accuracy.points import points
from benchmarks.accuracy.table import Function

SOURCES = ("eager", "compiled", "jax", "peer")
HERE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Error:
    """What is kept of the errors of a function at all points.

    Attributes:
      largest, most: the largest error, and the 99th percentile, in ulps.
      nans: at how many points the result is NaN where the exact one is a number that floats can be.
      worst: the operands of the largest error.
    """

    largest: float
    most: float
    nans: int
    worst: tuple[complex, ...]


@dataclass(frozen=True)
class Row:
    """One output of a function in one dtype: the errors by source, where there are results."""

    name: str
    output: str
    dtype: str
    count: int
    errors: dict[str, Error]

    @property
    def limit(self) -> float:
        """What our errors must not exceed: 4 ulps of a value, 16 of a derivative, or the largest error of JAX.

        Where JAX has no such function it is that of NumPy or SciPy.
        """
        own = 4.0 if self.output == "value" else 16.0
        other = self.errors.get("jax") or self.errors.get("peer")
        return own if other is None else max(own, other.largest)

    def faults(self) -> list[str]:
        """The sources among ours that exceed the limit, or are NaN where they must not be."""
        ours = ((s, self.errors[s]) for s in ("eager", "compiled") if s in self.errors)
        return [s for s, e in ours if e.nans or not e.largest <= self.limit]


def measure(chosen: Sequence[int], count: int) -> list[Row]:
    """Measure the functions of these numbers at so many points each."""
    where = {(i, t): points(FUNCTIONS[i], t, count) for i in chosen for t in FUNCTIONS[i].dtypes}
    results = {library: _computed(library, where) for library in ("pullback", "jax")}
    rows = []
    for (i, dtype), operands in where.items():
        function = FUNCTIONS[i]
        print(f"{function.label} {dtype} ...", file=sys.stderr, flush=True)
        for output, by, exact, scale in function.outputs():
            value = reference.exact(f"{function.label} {output} {dtype}", exact, operands)
            key = f"{i}/{dtype}/{output}"
            found = {
                "eager": results["pullback"].get(f"{key}/eager"),
                "compiled": results["pullback"].get(f"{key}/compiled"),
                "jax": results["jax"].get(f"{key}/compiled"),
                "peer": _peer(function, operands) if by is None else None,
            }
            errors = {}
            for source, result in found.items():
                if result is not None and result.shape == operands[0].shape and result.dtype in (dtype, _real(dtype)):
                    size = scale(*(x.astype(np.float64) for x in operands)) if callable(scale) else scale
                    error = ulps(result, value, dtype, size)
                    if source in ("compiled", "jax") or by is not None:  # compiled, a subnormal operand is read as zero
                        error = np.where(subnormal(operands), np.nan, error)
                    errors[source] = _summary(error, result, operands)
            rows.append(Row(function.label, output, str(dtype), int(np.sum(~np.isnan(value.high))), errors))
    return rows


def _real(dtype: np.dtype) -> np.dtype:
    """A complex dtype's parts are of this; of floats it is their own."""
    return np.finfo(dtype).dtype


def _summary(error: np.ndarray, result: np.ndarray, operands: list[np.ndarray]) -> Error:
    known = ~np.isnan(error)
    if not known.any():
        return Error(0.0, 0.0, 0, ())
    at = int(np.nanargmax(error))
    kept = np.sort(error[known])
    return Error(
        float(kept[-1]),
        float(kept[int(0.99 * (len(kept) - 1))]),
        int(np.sum(np.isinf(error) & np.isnan(result))),
        tuple(x[at].item() for x in operands),
    )


def _computed(library: str, where: dict[tuple[int, np.dtype], list[np.ndarray]]) -> dict[str, np.ndarray]:
    """What a library computes, in a process of its own."""
    arrays: dict[str, Any] = {f"{i}/{t}/{k}": x for (i, t), operands in where.items() for k, x in enumerate(operands)}
    environment = os.environ | {"PULLBACK_ENABLE_X64": "1", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch, "points.npz"), Path(scratch, "results.npz")
        np.savez(source, **arrays)
        command = [sys.executable, "-m", "benchmarks.accuracy.worker", library, str(source), str(target)]
        subprocess.run(command, check=True, cwd=HERE, env=environment)
        with np.load(target) as results:
            return {key: results[key] for key in results.files}


def _peer(function: Function, operands: list[np.ndarray]) -> np.ndarray | None:
    """What NumPy's or SciPy's own function returns."""
    if function.peer is None:
        return None
    module, _, name = function.peer.rpartition(".")
    found = getattr(importlib.import_module(module), name, None)
    if found is None:
        return None
    whole = [o.whole for o in function.operands]
    with np.errstate(all="ignore"):
        out = found(*(x.astype(np.int64) if w else x for x, w in zip(operands, whole, strict=True)))
    out = np.asarray(out if function.part is None else out[function.part])
    with np.errstate(over="ignore"):
        dtype = operands[-1].dtype
        return out.astype(dtype if out.dtype.kind == dtype.kind else _real(dtype), copy=False)
