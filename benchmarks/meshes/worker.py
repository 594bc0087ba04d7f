"""Compile a training step over a mesh in a process of its own, and print what it costs as JSON.

Times are seconds of processor time, since other programs share the machine. ``python -m benchmarks.meshes.worker
pullback tensor 64`` compiles; with ``lower`` at the end it lowers only.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

PASSES = ("shardy-xla", "spmd-partitioning")
"""The passes of the compiler that choose the shardings within a program, and divide it."""


class Watch(threading.Thread):
    """Notes this process's time when the compiler writes the program before the first of the passes and after the last.

    Args:
      folder: where the compiler writes them.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(daemon=True)
        self._folder, self._ended = Path(folder), threading.Event()
        self._times: dict[str, float] = {}

    def run(self) -> None:
        """Look every two milliseconds."""
        wanted = {f"*.before_{PASSES[0]}.*": "first", f"*.after_{PASSES[-1]}.*": "last"}
        while not self._ended.wait(0.002) and len(self._times) < len(wanted):
            for pattern, name in wanted.items():
                if name not in self._times and any(self._folder.glob(pattern)):
                    self._times[name] = time.process_time()

    def seconds(self) -> float:
        """Return the time between the two, after the end of the compilation."""
        self._ended.set()
        self.join()
        return self._times["last"] - self._times["first"]


def measured(name: str, way: str, devices: int, compiles: bool) -> dict[str, Any]:
    """Trace, lower and compile the step: the times, in seconds, the least of five for tracing and lowering."""
    folder = tempfile.mkdtemp(dir=os.environ["PULLBACK_COMPILATION_CACHE_DIR"])
    flags = [f"--xla_force_host_platform_device_count={devices}"]
    if compiles:
        flags += [f"--xla_dump_to={folder}", f"--xla_dump_hlo_pass_re={'|'.join(PASSES)}"]
    os.environ["XLA_FLAGS"] = " ".join(flags)
    from benchmarks.meshes.transformer import WAYS
    from pullback.analysis import collectives

    library = importlib.import_module(name)
    importlib.import_module(f"{name}.numpy")
    library.devices()
    found: dict[str, Any] = {"trace": [], "lower": []}
    for _ in range(5):
        gc.collect()
        program = WAYS[way](library, devices)
        start = time.process_time()
        traced = program.step.trace(*program.arguments)
        middle = time.process_time()
        lowered = traced.lower()
        found["trace"].append(middle - start)
        found["lower"].append(time.process_time() - middle)
    result: dict[str, Any] = {key: min(times) for key, times in found.items()}
    if compiles:
        watch = Watch(folder)
        watch.start()
        start = time.process_time()
        compiled = lowered.compile()
        result["compile"] = time.process_time() - start
        result["partition"] = watch.seconds()
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
