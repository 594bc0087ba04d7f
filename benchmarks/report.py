"""The results as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.libraries import OURS, PEERS, TITLES
from benchmarks.measure import Measurement, Settings
from benchmarks.workloads import ORDER_OF_COST, Workload

Results = Mapping[str, Mapping[str, Measurement]]


def ratio(measurements: Mapping[str, Measurement], peer: str) -> float | None:
    """Our median time over the peer's; ``None`` if either has none."""
    ours, theirs = measurements.get(OURS), measurements.get(peer)
    if ours is None or theirs is None or ours.failed or theirs.failed:
        return None
    return ours.median / theirs.median


def _time(measurement: Measurement | None) -> str:
    """Median and minimum in microseconds, or what went wrong."""
    if measurement is None:
        return "-"
    if measurement.failed:
        return f"failed: {measurement.failed[:60]}"
    median, minimum = (1e6 * seconds for seconds in (measurement.median, measurement.minimum))
    digits = 2 if median < 10 else 1 if median < 100 else 0
    return f"{median:,.{digits}f} ({minimum:,.{digits}f})"


def _verdict(workload: Workload, measurements: Mapping[str, Measurement], peer: str) -> str:
    """The ratio, and whether it is within its bound."""
    value = ratio(measurements, peer)
    if value is None:
        return "-"
    bound = workload.peers[peer]
    if bound is None:
        return f"{value:.3f}"
    return f"{value:.3f} (<= {bound:g} {'met' if value <= bound else 'MISSED'})"


def _order_of_cost(results: Results) -> list[str]:
    """Whether the ways to a Hessian-vector product cost what they should, in order."""
    ours = [results[name][OURS] for name in ORDER_OF_COST if name in results and OURS in results[name]]
    if len(ours) < len(ORDER_OF_COST) or any(measurement.failed for measurement in ours):
        return []
    medians = [measurement.median for measurement in ours]
    verdict = "met" if medians == sorted(medians) else "MISSED"
    return [f"Order of cost {' < '.join(ORDER_OF_COST)}: {verdict}"]


def by_group(workloads: Sequence[Workload]) -> dict[str, list[Workload]]:
    """The workloads of each part of the report."""
    groups: dict[str, list[Workload]] = {}
    for workload in workloads:
        groups.setdefault(workload.group, []).append(workload)
    return groups


def table(workloads: Sequence[Workload], results: Results) -> str:
    """Markdown tables: median (minimum) microseconds a call, and ratios of medians with their bounds."""
    tables = [_table(group, members, results) for group, members in by_group(workloads).items()]
    threads = {TITLES[name]: m.threads for measured in results.values() for name, m in measured.items() if m.threads}
    told = ", ".join(f"{title} {count}" for title, count in threads.items())
    return "\n\n".join([*tables, f"Threads: {told}"] + _order_of_cost(results))


def _table(group: str, workloads: Sequence[Workload], results: Results) -> str:
    """The table of one part of the report."""
    names = [name for name in TITLES if any(name in results[workload.name] for workload in workloads)]
    peers = [name for name in names if name in PEERS]
    header = [f"{group}, microseconds: median (min)", *(TITLES[name] for name in names)]
    header += [f"ours / {TITLES[name]}" for name in peers if OURS in names]
    rows = [header]
    for workload in workloads:
        measured = results[workload.name]
        row = [workload.title, *(_time(measured.get(name)) for name in names)]
        row += [_verdict(workload, measured, name) for name in peers if OURS in names]
        rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows)


def as_json(workloads: Sequence[Workload], results: Results, settings: Settings) -> dict[str, Any]:
    """Everything that was measured, with what is needed to read it later. Times are in seconds."""
    measurements = [item for measured in results.values() for item in measured.items()]
    versions = {name: m.version for name, m in measurements if m.version}
    threads = {name: m.threads for name, m in measurements if m.threads}
    return {
        "machine": machine(),
        "versions": versions,
        "threads": threads,
        "rounds": settings.rounds,
        "workloads": [
            {
                "name": workload.name,
                "title": workload.title,
                "group": workload.group,
                "libraries": {name: _as_json(m) for name, m in results[workload.name].items()},
                "ratios": {
                    peer: {"ratio": ratio(results[workload.name], peer), "bound": bound}
                    for peer, bound in workload.peers.items()
                },
            }
            for workload in workloads
        ],
    }


def _as_json(measurement: Measurement) -> dict[str, Any]:
    if measurement.failed:
        return {"failed": measurement.failed}
    return {
        "median": _rounded(measurement.median),
        "minimum": _rounded(measurement.minimum),
        "calls_a_block": measurement.calls,
        "blocks": [_rounded(seconds) for seconds in measurement.seconds],
    }


def _rounded(seconds: float) -> float:
    """More digits than these are noise."""
    return float(f"{seconds:.4g}")


def machine() -> dict[str, Any]:
    """What the results depend on."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def _processor() -> str:
    """The processor's name, where the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write the results so that a change shows as a readable difference."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
