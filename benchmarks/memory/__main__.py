"""``python -m benchmarks.memory``: measure the twelve programs; ``--page`` writes the page of the results.

``--library jax`` measures JAX's policies, in an environment that has JAX. Results are collected in a file of JSON, so
that programs can be measured one by one.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from benchmarks.memory import measuring, report
from benchmarks.memory.programs import programs

RESULTS = Path(__file__).with_name("results.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=("pullback", "jax"), default="pullback")
    parser.add_argument("--only", action="append", default=[], help="names of programs; repeatable")
    parser.add_argument("--page", action="store_true", help="write docs/memory_budgets.md from the results")
    options = parser.parse_args()
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.page:
        report.write_page(known)
        return
    lib = importlib.import_module(options.library)
    for name in ("numpy", "nn", "scipy.linalg", "lax"):
        importlib.import_module(f"{options.library}.{name}")
    for program in programs(lib):
        if options.only and program.name not in options.only:
            continue
        row = (
            measuring.of_pullback(lib, program)
            if options.library == "pullback"
            else measuring.of_jax(lib, program.name)
        )
        known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        known.setdefault(program.name, {})[options.library] = row
        RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(program.name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
