"""What many processes cost on one machine: start, barriers, steps and the end; memory, threads and sockets of each.

``python -m benchmarks.many_processes`` runs jobs of 1 to 32 processes with one device each, and writes the tables of
``docs/many_processes.md`` between their marks. The processes share the cores of the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import write_json

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "many_processes.md", Path(__file__).parent / "many_processes.json"
BEGIN, END = "<!-- begin of the table -->", "<!-- end of the table -->"
COUNTS = (1, 2, 4, 8, 16, 32)
STEPS, BARRIERS, IDLE = 1000, 20, 10.0


def _cpu() -> float:
    """The seconds of CPU time that this process has taken."""
    return time.process_time()


def _sockets() -> int:
    """The open sockets of this process."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return found


def _memory() -> dict[str, float]:
    """The memory of this process in MB: ``resident``, and its ``own``, which is not shared with others."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    kilobytes = {name: int(text.split()[0]) for name, text in fields.items()}
    own = kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]
    return {"resident": kilobytes["Rss"] / 1e3, "own": own / 1e3}


def job(folder: Path, begun: float) -> None:
    """Measure as one process of a job, and write what was found to the folder."""
    import pullback
    import pullback.numpy as jnp
    from pullback.experimental import multihost_utils

    pullback.distributed.initialize(initialization_timeout=600)
    found: dict[str, Any] = {"start": time.time() - begun, "cpu_start": _cpu()}
    multihost_utils.sync_global_devices("begin")
    start = time.perf_counter()
    for i in range(BARRIERS):
        multihost_utils.sync_global_devices(f"barrier {i}")
    found["barrier"] = (time.perf_counter() - start) / BARRIERS

    mesh = pullback.make_mesh((pullback.device_count(),), ("data",), axis_types=(pullback.sharding.AxisType.Auto,))
    rows, whole = pullback.NamedSharding(mesh, pullback.P("data")), pullback.NamedSharding(mesh, pullback.P())
    n = pullback.device_count()
    x = pullback.make_array_from_callback((n, 16), rows, lambda index: jnp.ones((n, 16))[index])
    w = pullback.device_put(jnp.zeros(16), whole)
    step = pullback.jit(
        lambda w, x: w - 0.1 * pullback.grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w), out_shardings=whole
    )
    w = step(w, x)
    multihost_utils.sync_global_devices("steps")
    start, cpu = time.perf_counter(), _cpu()
    for _ in range(STEPS):
        w = step(w, x)
    w.block_until_ready()
    found["step"], found["cpu_step"] = (time.perf_counter() - start) / STEPS, (_cpu() - cpu) / STEPS
    multihost_utils.sync_global_devices("idle")
    cpu = _cpu()
    time.sleep(IDLE)
    found["cpu_idle"] = (_cpu() - cpu) / IDLE
    found |= {"sockets": _sockets(), "threads": len(os.listdir("/proc/self/task")), **_memory()}
    multihost_utils.sync_global_devices("end")
    start = time.perf_counter()
    pullback.distributed.shutdown()
    found["stop"] = time.perf_counter() - start
    write_json(folder / f"{pullback.process_index()}.json", found)


def measure(count: int) -> dict[str, Any]:
    """Run a job of ``count`` processes: what process 0 found, and the mean and the maximum of the others."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pullback", "launch", "--processes", str(count), "--devices", "1", "-m"]
        subprocess.run(
            [*command, "benchmarks.many_processes", "--job", scratch, str(time.time())],
            check=True, cwd=ROOT, timeout=1500, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        found = [json.loads((Path(scratch) / f"{i}.json").read_text()) for i in range(count)]
    others = found[1:] or found
    return {
        "processes": count, "first": found[0],
        "mean": {key: sum(each[key] for each in others) / len(others) for key in found[0]},
        "most": {key: max(each[key] for each in found) for key in found[0]},
    }  # fmt: skip


def table(results: list[dict[str, Any]]) -> str:
    """The results as a table of the page."""
    lines = [
        "| processes | start, s | barrier, ms | step, ms | end, s | own memory, MB | sockets, process 0 / others "
        "| threads, process 0 / others | CPU at rest, process 0 / others |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        first, mean, most = r["first"], r["mean"], r["most"]
        lines.append(
            f"| {r['processes']} | {most['start']:.1f} | {1e3 * most['barrier']:.1f} | {1e3 * most['step']:.2f} "
            f"| {most['stop']:.2f} | {mean['own']:.0f} | {first['sockets']} / {mean['sockets']:.0f} "
            f"| {first['threads']} / {mean['threads']:.0f} | {first['cpu_idle']:.1%} / {mean['cpu_idle']:.1%} |"
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run the jobs, and write the tables; or be a process of one."""
    if arguments[:1] == ["--job"]:
        job(Path(arguments[1]), float(arguments[2]))
        return
    counts = [int(text) for text in arguments] or list(COUNTS)
    results = []
    for count in counts:
        results.append(measure(count))
        print(table(results[-1:]).splitlines()[-1], flush=True)
    if not arguments:
        write_json(RESULTS, {"results": results})
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n\n{table(results)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
