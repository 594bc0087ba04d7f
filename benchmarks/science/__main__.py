"""Check and measure the functions for science: ``python -m benchmarks.science``.

It rewrites ``results.json``, ``docs/science.md``, and the tables of other pages. With ``--only`` it measures some rows,
and leaves the others as they are recorded; with ``--dry`` it only prints.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.science import (
    geometry,
    images,
    interpolation,
    optimisation,
    signals,
    sparse_linear_algebra,
    special_functions,
    systems,
)
from benchmarks.science.measure import checks, times
from benchmarks.science.page import PAGE, RESULTS, page, recorded, with_tables
from benchmarks.science.rows import Part

PARTS = (
    sparse_linear_algebra.PART, optimisation.PART, interpolation.PART, interpolation.INTEGRALS, geometry.PART,
    images.PART, signals.FILTERS, signals.WINDOWS, systems.DESIGNS, systems.SYSTEMS, special_functions.PART,
)  # fmt: skip


PAGES: dict[Path, Sequence[Part]] = {PAGE.with_name("interpolation.md"): (interpolation.PART, geometry.PART)}
"""Pages that have the tables of some parts."""


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Check and measure the functions for science.")
    parser.add_argument("--only", nargs="*", default=None, metavar="NAME", help="parts of the names of the rows")
    parser.add_argument("--dry", action="store_true", help="print, and rewrite nothing")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to repeat the calls of a row")
    options = parser.parse_args()

    from pullback import config

    config.update("enable_x64", True)
    peers = importlib.util.find_spec("jax") is not None
    if peers:
        import jax

        jax.config.update("jax_enable_x64", True)
    results: dict[str, Any] = recorded() if RESULTS.exists() else {}
    for row in (row for part in PARTS for row in part.rows):
        if options.only is None or any(name in row.name for name in options.only):
            results[row.name] = {**checks(row), **times(row, peers, options.seconds)}
            shown = ", ".join(f"{key} {value:.2g}" for key, value in results[row.name].items())
            print(f"{row.name}: {shown}", flush=True)
    if not options.dry:
        rounded = {name: {k: float(f"{v:.3g}") for k, v in found.items()} for name, found in sorted(results.items())}
        RESULTS.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(PARTS, rounded), encoding="utf-8")
        for path, parts in PAGES.items():
            path.write_text(with_tables(path.read_text(encoding="utf-8"), parts, rounded), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
