"""``python -m benchmarks.memory``: measure the twelve programs; ``--page`` writes the page of the results.

``--library both`` measures Pullback's budgets and JAX's policies in one process, where they take turns; ``--library
torch`` measures Pullback's and PyTorch's budgets in two processes, which take turns, on one thread each. Both need an
environment that has the library. Results are collected in a file of JSON, so that programs can be measured one by one;
``--missing`` measures those of which the file has none, to go on with a run that was interrupted. ``--one-thread`` is
for busy machines: threads that wait for each other spin, which counts as CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.memory import alternating, measuring, report, torch_budgets
from benchmarks.memory.programs import programs

RESULTS = Path(__file__).with_name("results.json")


def _measurements(library: str) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """Return the names of the programs that a library can run, with functions that measure it.

    They return what was measured of each library.
    """
    if library == "torch":
        return [(name, partial(_beside_torch, name)) for name in torch_budgets.NAMES]
    names = ("jax", "pullback") if library == "both" else (library,)
    libs = [_imported(name) for name in names]
    if library == "both":
        return [(p.name, partial(measuring.of_both, libs[1], libs[0], p.name)) for p in programs(libs[1])]
    if library == "jax":
        return [(p.name, partial(_alone, library, measuring.of_jax, libs[0], p.name)) for p in programs(libs[0])]
    return [(p.name, partial(_alone, library, measuring.of_pullback, libs[0], p)) for p in programs(libs[0])]


def _beside_torch(name: str) -> dict[str, Any]:
    return {"beside torch": alternating.alternated(name, ("pullback", "torch"))}


def _prepared(library: str, name: str) -> alternating.Prepared:
    """Compile the gradients of a program in a library; return what :func:`alternating.serve` measures."""
    if library == "torch":
        return torch_budgets.prepared(name)
    lib = _imported(library)
    program = next(p for p in programs(lib) if p.name == name)
    row, steps = measuring.budgeted(lib, program)
    return row, lib, steps, measuring.on_device(lib, program.args)


_RECORDED = {"both": "jax", "torch": "beside torch"}
"""Under which name the results of a run are recorded, where it is not that of the library."""


def _alone(library: str, measure: Callable[..., Any], *args: Any) -> dict[str, Any]:
    return {library: measure(*args)}


def _imported(library: str) -> Any:
    for name in ("numpy", "nn", "scipy.linalg", "lax"):
        importlib.import_module(f"{library}.{name}")
    return importlib.import_module(library)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=("pullback", "jax", "both", "torch"), default="pullback")
    parser.add_argument("--only", action="append", default=[], help="names of programs; repeatable")
    parser.add_argument("--page", action="store_true", help="write docs/memory_budgets.md from the results")
    parser.add_argument("--missing", action="store_true", help="measure programs that have no results of the library")
    parser.add_argument("--one-thread", action="store_true", help="run on one thread of one CPU")
    parser.add_argument("--serve", choices=("pullback", "torch"), help="measure a program for another process")
    options = parser.parse_args()
    if options.serve or options.one_thread:
        alternating.hold_to_one_cpu()
    if options.serve:
        alternating.serve(partial(_prepared, options.serve, *options.only))
        return
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.page:
        report.write_page(known)
        return
    for name, measure in _measurements(options.library):
        recorded = _RECORDED.get(options.library, options.library) in known.get(name, {})
        if (options.only and name not in options.only) or (options.missing and recorded):
            continue
        row = measure()
        if options.one_thread and "pullback" in row:
            row["pullback"]["threads"] = 1
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        known.setdefault(name, {}).update(row)
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
