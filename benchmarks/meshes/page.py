"""The results as lines, and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.meshes.transformer import GROUP, HEADS, HIDDEN, LAYERS, SEQUENCE, WAYS, WIDTH, by_the_literature

PAGE = Path(__file__).resolve().parents[2] / "docs" / "large_meshes.md"
Result = Mapping[str, Any]

HEAD = f"""# Training over large meshes

These tables show what a training step exchanges over 8, 64 and 512 devices, and how long the step takes to trace, lower
and compile. No step runs: the devices are virtual, and the partitioned program is read
([`analysis.cost`](#your-own-program)). `python -m benchmarks.meshes` writes this page, in an environment with JAX.

The network has {LAYERS} layers of a transformer: width {WIDTH}, {HEADS} heads, {HIDDEN} hidden units, sequences of
{SEQUENCE}, single precision. Each row of the mesh has eight sequences. The step is divided in six ways:

* **data**: each device has all parameters, and a part of the batch;
* **fully sharded**: each device has a shard of each matrix (Rajbhandari et al. 2020);
* **tensor**: {GROUP} devices share the heads and the hidden units of a row (Shoeybi et al. 2019);
* **sequence**: as tensor, and between the products each device has a part of the sequences (Korthikanti et al. 2022);
* **pipeline**: {GROUP} devices have a layer each, and pass eight parts of their batch on;
* **expert**: {GROUP} devices have a network each, and tokens choose among them (Fedus et al. 2021).

*Moved* is what a device sends in one step, by the algorithm that sends least; *formula* is the same by the papers. The
compiler for CPUs makes a sum over all devices of a sum of which each device needs a shard, which moves twice as much;
compilers for accelerators do not. Parameters are gathered once where the papers gather them twice.
"""

FOOT = """
## Your own program

```python
import pullback

pullback.config.update("num_cpu_devices", 8)
import pullback.numpy as jnp
from pullback import P, analysis
from pullback.sharding import AxisType, NamedSharding

mesh = pullback.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
batch, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())


def step(w, x):
    return w - 0.1 * pullback.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)


step = pullback.jit(step, in_shardings=(whole, batch), out_shardings=whole)
found = analysis.cost(step)(
    pullback.ShapeDtypeStruct((512, 512), "float32"), pullback.ShapeDtypeStruct((64, 512), "float32")
)
print(found)
print(f"{1e6 * found.seconds(bandwidth=50e9):.0f} microseconds at 50 GB/s")
```

`found.collectives` has each exchange with its size, its axes, how often it runs, and the line of your program. The
compiler takes at most 2,047 virtual devices; tracing and lowering have no limit.
"""


def moved(result: Result) -> float | None:
    """The bytes that a device sends in one step; None if the program was not compiled."""
    return sum(each[4] for each in result["collectives"]) if "collectives" in result else None


def kinds(result: Result) -> str:
    """The collectives by their kinds, such as ``16 all-gather, 1 all-reduce``."""
    counts = Counter(each[0] for each in result["collectives"])
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def line(result: Result) -> str:
    """A result as a line."""
    head = f"{result['library']:9} {result['way']:14} {result['devices']:5}"
    if "error" in result:
        return f"{head}  {result['error']}"
    times = f"trace {result['trace']:.3f} s, lower {result['lower']:.3f} s"
    if "collectives" not in result:
        return f"{head}  {times}"
    sizes = f"{(moved(result) or 0) / 1e6:.2f} MB moved, {result['peak'] / 1e6:.1f} MB"
    return f"{head}  {times}, compile {result['compile']:.2f} s; {sizes}; {kinds(result)}"


def _by_key(results: Sequence[Result]) -> dict[tuple[str, int, str], Result]:
    return {(r["way"], r["devices"], r["library"]): r for r in results if "error" not in r}


def summary(results: Sequence[Result]) -> str:
    """Where more is moved than by JAX, and the time to lower for the most devices over that for the fewest."""
    known, lines = _by_key(results), []
    for way, devices, library in known:
        ours, theirs = (known.get((way, devices, name)) for name in ("pullback", "jax"))
        if library == "pullback" and ours and theirs and (moved(ours) or 0) > (moved(theirs) or 0):
            lines.append(f"{way} over {devices} devices moves more than JAX's: {moved(ours)}, {moved(theirs)} bytes")
    for way in WAYS:
        times = {
            r["devices"]: r["trace"] + r["lower"]
            for (w, _, name), r in known.items()
            if w == way and name == "pullback"
        }
        if len(times) > 1:
            few, many = min(times), max(times)
            lines.append(
                f"{way}: {many} devices take {times[many] / times[few]:.2f} of the time of {few} to trace and lower"
            )
    return "\n".join(lines)


def write(results: Sequence[Result]) -> None:
    """Write the page."""
    known = _by_key(results)
    rows = [
        "## What is exchanged\n",
        "| way | devices | collectives | moved, MB | JAX | formula | memory of a device, MB | JAX |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (way, devices, library), ours in known.items():
        theirs = known.get((way, devices, "jax"))
        if library == "pullback" and theirs and "collectives" in ours and "collectives" in theirs:
            sent = [moved(ours) or 0, moved(theirs) or 0, by_the_literature(way, devices)]
            cells = [f"{each / 1e6:.2f}" for each in sent] + [f"{r['peak'] / 1e6:.1f}" for r in (ours, theirs)]
            rows.append(f"| {way} | {devices} | {kinds(ours)} | {' | '.join(cells)} |")
    rows += [
        "", "## Time to trace, lower and compile\n",
        "In JAX's time; the last columns say how the time to trace and lower grows from 8 devices on.\n",
        "| way | devices | trace | lower | compile | time of 8 devices | JAX's |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for (way, devices, library), ours in known.items():
        theirs = known.get((way, devices, "jax"))
        if library != "pullback" or theirs is None:
            continue
        ratios = [
            f"{ours[k] / theirs[k]:.2f}" if k in ours and k in theirs else "" for k in ("trace", "lower", "compile")
        ]
        growth = []
        for name, result in (("pullback", ours), ("jax", theirs)):
            base = known.get((way, 8, name))
            growth.append(
                f"{(result['trace'] + result['lower']) / (base['trace'] + base['lower']):.2f}" if base else ""
            )
        rows.append(f"| {way} | {devices} | {' | '.join(ratios)} | {' | '.join(growth)} |")
    PAGE.write_text(HEAD + "\n" + "\n".join(rows) + "\n" + FOOT, encoding="utf-8")
