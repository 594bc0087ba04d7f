"""Compile training steps over large meshes by Pullback and by JAX, and write ``meshes.json`` and the page.

No step runs: the devices are virtual. Each program is compiled in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.meshes import page
from benchmarks.meshes.transformer import WAYS
from benchmarks.report import write_json

RESULTS = Path(__file__).parent / "meshes.json"
LIBRARIES = ("pullback", "jax")
COMPILED, LOWERED = (8, 64, 512), (8, 64, 512, 4096)


def measure(library: str, way: str, devices: int, compiles: bool) -> dict[str, Any]:
    """What a worker says of a program; its error if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        task = [library, way, str(devices), *([] if compiles else ["lower"])]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.meshes.worker", *task],
            env={**os.environ, "PULLBACK_COMPILATION_CACHE_DIR": scratch, "PULLBACK_TIERED": "off"},
            capture_output=True, text=True, check=False, timeout=1800,
        )  # fmt: skip
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _key(result: dict[str, Any]) -> tuple[int, int, bool]:
    """What a result is of: the order of the tables."""
    return [*WAYS].index(result["way"]), result["devices"], result["library"] != LIBRARIES[0]


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a line for each program, and write the page, with what was known of the other programs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.meshes", description=__doc__)
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--compiled", nargs="*", type=int, default=list(COMPILED), metavar="DEVICES")
    parser.add_argument("--lowered", nargs="*", type=int, default=list(LOWERED), metavar="DEVICES")
    chosen = parser.parse_args(arguments)
    results = []
    for way in chosen.ways:
        for devices in sorted({*chosen.compiled, *chosen.lowered}):
            for library in LIBRARIES:
                result = measure(library, way, devices, devices in chosen.compiled)
                results.append({"library": library, "way": way, "devices": devices, **result})
                print(page.line(results[-1]), flush=True)
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["results"] if RESULTS.exists() else []
    measured = {_key(each): each for each in (*known, *results)}
    results = [measured[key] for key in sorted(measured)]
    write_json(RESULTS, {"results": results})
    page.write(results)
    print(page.summary(results))


if __name__ == "__main__":
    main()
