"""The programs of `ecosystem/programs`, how one is run in a process of its own, and how figures are compared."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "recorded.json"
TIMES = HERE / "times.json"

# Each program, by the distribution of the library that it shows. Its file is `programs/with_NAME.py`: a file with the
# library's own name would be imported in the library's place.
PROGRAMS = {
    "optax": "optax",
    "chex": "chex",
    "jaxtyping": "jaxtyping",
    "equinox": "equinox",
    "lineax": "lineax",
    "optimistix": "optimistix",
    "diffrax": "diffrax",
    "flax_linen": "flax",
    "flax_nnx": "flax",
    "haiku": "dm-haiku",
    "numpyro": "numpyro",
    "blackjax": "blackjax",
    "jaxopt": "jaxopt",
    "jraph": "jraph",
    "e3nn": "e3nn-jax",
    "keras": "keras",
    "orbax": "orbax-checkpoint",
    "scipy": "scipy",
    "scikit_learn": "scikit-learn",
    "pennylane": "pennylane",
    "evosax": "evosax",
    "penzai": "penzai",
    "gpjax": "gpjax",
    "flowjax": "flowjax",
    "jax_cosmo": "jax-cosmo",
    "tfp": "tfp-nightly",
    "distrax": "distrax",
    "dynamax": "dynamax",
    "quax": "quax",
    "jax_md": "jax-md",
    "s2fft": "s2fft",
    "mjx": "mujoco-mjx",
    "brax": "brax",
}

TOLERANCE = 1e-4
"""How far a figure may be from the recorded one, as a part of the figure's largest element."""

STANDARD_ERRORS = 4.0
"""How far the mean of a chain may be from the recorded one."""


class ProgramError(RuntimeError):
    """A program ended with an error, did not end in time, or printed no figures. ``stderr`` is what it wrote."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr


class Ended(NamedTuple):
    """The end of a program: its figures, what it wrote to the stream of errors, and its seconds by clock and CPU."""

    figures: dict[str, Any]
    stderr: str
    seconds: float
    cpu_seconds: float


def path_of(name: str) -> Path:
    return HERE / "programs" / f"with_{name}.py"


def chosen(names: Sequence[str]) -> list[str]:
    """The names that were asked for, all if none was."""
    for name in names:
        if name not in PROGRAMS:
            raise SystemExit(f"there is no program {name!r}; those that there are: {', '.join(PROGRAMS)}")
    return list(names) or list(PROGRAMS)


def described(name: str) -> str:
    """The first sentence of a program's docstring."""
    return _docstring(name).split("\n\n")[0].replace("\n", " ")


def tolerances(name: str) -> dict[str, float]:
    """Tolerances that a program's docstring states, by the figure: lines such as ``minima: to 1e-3, because ...``."""
    found = re.findall(r"^([\w, -]+): to (\S+), because ", _docstring(name), re.MULTILINE)
    return {figure: float(size) for figure, size in found}


def _docstring(name: str) -> str:
    return ast.get_docstring(ast.parse(path_of(name).read_text())) or ""


def run(command: Sequence[str], timeout: float, cache: str = "") -> Ended:
    """Run a program in a process of its own and a folder of its own.

    Args:
      command: what to start.
      timeout: seconds after which it is ended.
      cache: the folder in which compiled programs are kept; by default the usual one of Pullback, and none of JAX's.

    Returns:
      The figures that it printed as its last line, what it wrote to the stream of errors, and its times.

    Raises:
      ProgramError: it failed, took too long, or its last line is no figures.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "KERAS_HOME": folder, **_kept_in(cache)}
        start, before = time.perf_counter(), _cpu_seconds()
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            written = error.stderr.decode() if isinstance(error.stderr, bytes) else error.stderr or ""
            raise ProgramError(f"it did not end within {timeout:.0f} seconds", written) from error
        seconds, cpu_seconds = time.perf_counter() - start, _cpu_seconds() - before
    if ended.returncode:
        raise ProgramError(_last_error(ended.stderr) or f"it ended with status {ended.returncode}", ended.stderr)
    lines = ended.stdout.strip().splitlines()
    try:
        figures = json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        raise ProgramError("its last line is not a JSON object of figures", ended.stderr) from error
    return Ended(figures, ended.stderr, seconds, cpu_seconds)


def run_twice(command: Sequence[str], timeout: float, name: str, system: str) -> Ended:
    """Run a program with an empty cache of compiled programs, then with what that left; add the times to ``TIMES``."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = run(command, timeout, cache), run(command, timeout, cache)
    times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    found = [cold.seconds, cold.cpu_seconds, warm.seconds, warm.cpu_seconds]
    times.setdefault(name, {})[system] = [round(seconds, 2) for seconds in found]
    lines = [f" {json.dumps(name)}: {json.dumps(times[name])}" for name in PROGRAMS if name in times]
    TIMES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return warm


def _kept_in(cache: str) -> dict[str, str]:
    """The variables by which Pullback and JAX keep every compiled program in the folder ``cache``."""
    if not cache:
        return {}
    names = {"PULLBACK_COMPILATION_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache}
    return {**names, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


def _cpu_seconds() -> float:
    """The CPU time of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_error(stderr: str) -> str:
    """The line with the exception, of a traceback."""
    raised = [line for line in stderr.splitlines() if re.match(r"[\w.]*(Error|Exception|Interrupt|Exit)\b", line)]
    return raised[-1] if raised else ""


def differences(found: dict[str, Any], recorded: dict[str, Any], allowed: dict[str, float]) -> list[str]:
    """Where figures differ from those recorded, one sentence for each that does.

    Args:
      found: figures of a program: each a number, a list of numbers, or a chain's ``{"mean": ..., "error": ...}``.
      recorded: the same of another run.
      allowed: tolerances of single figures, where they are not ``TOLERANCE``.

    >>> differences({"a": [1.0, 2.00001]}, {"a": [1.0, 2.0]}, {})
    []
    >>> differences({"a": [1.0, 2.01]}, {"a": [1.0, 2.0]}, {})
    ['a: 2.01 instead of 2, 5e-03 of the largest element; 1e-04 is allowed']
    >>> differences({"m": {"mean": 1.0, "error": 0.1}}, {"m": {"mean": 2.0, "error": 0.1}}, {})
    ['m: the mean is 1.000 instead of 2.000, 7.1 standard errors away; 4 are allowed']
    """
    said = [f"{name}: no such figure was {place}" for name, place in _unpaired(found, recorded)]
    for name in recorded:
        if name in found:
            ours, theirs = found[name], recorded[name]
            chain = isinstance(theirs, dict)
            if chain is not isinstance(ours, dict):
                said.append(f"{name}: one is a chain, the other is not")
            elif chain:
                said += _of_chains(name, ours, theirs)
            else:
                said += _of_numbers(name, ours, theirs, allowed.get(name, TOLERANCE))
    return said


def _unpaired(found: dict[str, Any], recorded: dict[str, Any]) -> list[tuple[str, str]]:
    printed = [(name, "recorded") for name in found if name not in recorded]
    return printed + [(name, "printed") for name in recorded if name not in found]


def _of_chains(name: str, ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    error = math.hypot(ours["error"], theirs["error"])
    away = abs(ours["mean"] - theirs["mean"]) / error if error else math.inf
    if away <= STANDARD_ERRORS:  # a NaN is no agreement
        return []
    means = f"{ours['mean']:.3f} instead of {theirs['mean']:.3f}"
    return [f"{name}: the mean is {means}, {away:.1f} standard errors away; {STANDARD_ERRORS:.0f} are allowed"]


def _of_numbers(name: str, ours: Any, theirs: Any, tolerance: float) -> list[str]:
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    if a.shape != b.shape:
        return [f"{name}: of shape {a.shape} instead of {b.shape}"]
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.abs(b[np.isfinite(b)])
    scale = finite.max() if finite.size and finite.max() > 0 else 1.0
    with np.errstate(invalid="ignore"):
        away = np.where(same, 0.0, np.nan_to_num(np.abs(a - b) / scale, nan=np.inf))
    if not away.size or away.max() <= tolerance:
        return []
    i = int(away.argmax())
    where = f"{a.flat[i]:.7g} instead of {b.flat[i]:.7g}"
    return [f"{name}: {where}, {away.flat[i]:.0e} of the largest element; {tolerance:.0e} is allowed"]
