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
* **pipeline**: {GROUP} devices have a layer each, and pass eight parts of their batch on; the parameters become varying
  over the rows before the loop (`lax.pcast`), otherwise gradients would be summed over the rows in each of its steps;
* **expert**: {GROUP} devices have a network each, and tokens choose among them (Fedus et al. 2021).

*Moved* is what a device sends in one step, by the algorithm that sends least; *formula* is the same by the papers. The
compiler for CPUs makes a sum over all devices of a sum of which each device needs a shard, which moves twice as much;
compilers for accelerators do not. It also sums the cotangents of the query, the key and the value one by one, which
makes six sums a layer of the papers' four (*tensor*, *sequence*). Parameters are gathered once where the papers gather
them twice. JAX's columns are for the same program and shardings, compiled by JAX.
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
print(found.describe(bandwidth=50e9))  # each call moves 1.84 MB a device over data; at 50 GB/s that is 37 µs
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
    times += f", partition {result['partition']:.3f} s, compile {result['compile']:.2f} s"
    return f"{head}  {times}; {sizes}; {kinds(result)}"


def _by_key(results: Sequence[Result]) -> dict[tuple[str, int, str], Result]:
    return {(r["way"], r["devices"], r["library"]): r for r in results if "error" not in r}


def _growth(known: Mapping[tuple[str, int, str], Result], way: str, devices: int, library: str) -> float | None:
    """The time to lower for so many devices over that for 8."""
    many, few = (known.get((way, count, library)) for count in (devices, 8))
    return many["lower"] / few["lower"] if many and few else None


def summary(results: Sequence[Result]) -> str:
    """Where more is moved than by JAX, and the time to lower for the most devices over that for 8."""
    known, lines = _by_key(results), []
    for way, devices, library in known:
        ours, theirs = (known.get((way, devices, name)) for name in ("pullback", "jax"))
        if library == "pullback" and ours and theirs and (moved(ours) or 0) > (moved(theirs) or 0):
            lines.append(f"{way} over {devices} devices moves more than JAX's: {moved(ours)}, {moved(theirs)} bytes")
    for way in WAYS:
        most = max((count for name, count, library in known if (name, library) == (way, "pullback")), default=8)
        if growth := _growth(known, way, most, "pullback"):
            lines.append(f"{way}: {most} devices take {growth:.2f} of the time of 8 to lower")
    return "\n".join(lines)


TIMES = """
## Time to trace, lower, divide and compile

In milliseconds of CPU time, with JAX's after the stroke; the least of five for tracing and lowering. *Divide* is
the time of the passes that choose the shardings within the program and divide it; *compile* contains it. The last
column says how the time to lower grows from 8 devices on. With 4,096 devices the step is traced and lowered only, since
the compiler takes at most 2,047 virtual devices; where a matrix would have more shards than rows, each of eight copies
of it is divided over 512 devices.

| way | devices | trace | lower | divide | compile | lowering, of 8 devices |
|---|---|---|---|---|---|---|"""


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
    rows.append(TIMES)
    for (way, devices, library), ours in known.items():
        theirs = known.get((way, devices, "jax"))
        if library != "pullback" or theirs is None:
            continue
        cells = [
            f"{1e3 * ours[key]:.0f} / {1e3 * theirs[key]:.0f}" if key in ours and key in theirs else ""
            for key in ("trace", "lower", "partition", "compile")
        ]
        grown = [_growth(known, way, devices, name) for name in ("pullback", "jax")]
        cells.append(" / ".join(f"{each:.2f}" for each in grown if each is not None))
        rows.append(f"| {way} | {devices} | {' | '.join(cells)} |")
    PAGE.write_text(HEAD + "\n" + "\n".join(rows) + "\n" + FOOT, encoding="utf-8")
