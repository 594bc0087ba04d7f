"""Compile a training step over a mesh in a process of its own, and print what it costs as JSON.

``python -m benchmarks.meshes.worker pullback tensor 64`` compiles; with ``lower`` at the end it lowers only.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from typing import Any


def measured(name: str, way: str, devices: int, compiles: bool) -> dict[str, Any]:
    """Trace, lower and compile the step: the times, in seconds, the least of three for tracing and lowering."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    from benchmarks.meshes.transformer import WAYS
    from pullback.analysis import collectives

    library = importlib.import_module(name)
    importlib.import_module(f"{name}.numpy")
    library.devices()
    found: dict[str, Any] = {"trace": [], "lower": []}
    for _ in range(5):
        gc.collect()
        program = WAYS[way](library, devices)
        start = time.perf_counter()
        traced = program.step.trace(*program.arguments)
        middle = time.perf_counter()
        lowered = traced.lower()
        found["trace"].append(middle - start)
        found["lower"].append(time.perf_counter() - middle)
    result: dict[str, Any] = {key: min(times) for key, times in found.items()}
    if compiles:
        start = time.perf_counter()
        compiled = lowered.compile()
        result["compile"] = time.perf_counter() - start
        memory = compiled.memory_analysis()
        result["temporaries"] = memory.temp_size_in_bytes
        result["peak"] = (
            memory.temp_size_in_bytes
            + memory.argument_size_in_bytes
            + memory.output_size_in_bytes
            - memory.alias_size_in_bytes
        )
        result["collectives"] = [
            [each.kind, "+".join(each.axes), each.nbytes, each.times, each.moved * (each.times or 1)]
            for each in collectives(compiled.as_text(), program.mesh)
        ]
    return result


if __name__ == "__main__":
    library, way, devices, *rest = sys.argv[1:]
    print(json.dumps(measured(library, way, int(devices), rest != ["lower"])))
