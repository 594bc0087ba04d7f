"""``python -m benchmarks.memory``: measure the twelve programs; ``--page`` writes the page of the results.

``--library jax`` measures JAX's policies, and ``--library torch`` PyTorch's budgets in ``torch.compile``, in an
environment that has the library. Results are collected in a file of JSON, so that programs can be measured one by one.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.memory import measuring, report, torch_budgets
from benchmarks.memory.programs import programs

RESULTS = Path(__file__).with_name("results.json")


def _measurements(library: str) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """Return the names of the programs that a library can run, with functions that measure it."""
    if library == "torch":
        return [(name, partial(torch_budgets.of_torch, name)) for name in torch_budgets.NAMES]
    lib = importlib.import_module(library)
    for name in ("numpy", "nn", "scipy.linalg", "lax"):
        importlib.import_module(f"{library}.{name}")
    if library == "jax":
        return [(program.name, partial(measuring.of_jax, lib, program.name)) for program in programs(lib)]
    return [(program.name, partial(measuring.of_pullback, lib, program)) for program in programs(lib)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=("pullback", "jax", "torch"), default="pullback")
    parser.add_argument("--only", action="append", default=[], help="names of programs; repeatable")
    parser.add_argument("--page", action="store_true", help="write docs/memory_budgets.md from the results")
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.page:
        report.write_page(known)
        return
    for name, measure in _measurements(options.library):
        if options.only and name not in options.only:
            continue
        row = measure()
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        known.setdefault(name, {})[options.library] = row
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
