"""Many calls of one kind after another, each kind in a process of its own: what a call leaves behind."""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pullback
import pullback.numpy as jnp
from pullback import P, checkpoint, config, export, grad, jit, lax, pure_callback, random, shard_map, tree, vmap
from pullback.derivatives import sparse_jacobian
from tests.helpers import ROOT
from tests.soak.memory import MOST_BLOCKS, MOST_BYTES, MOST_PERCENT, PIECES, Growth, measured

Call = Callable[[int], object]
"""Makes call ``i`` of a kind."""


class Kind(NamedTuple):
    """A kind of calls.

    Attributes:
      prepare: makes what all calls share; returns the function that makes a call.
      share: how many calls are made, as a share of those of quick kinds: as many as take some six minutes.
      fills: how many calls fill the bounded caches that the calls add to; so many are made before anything is measured.
    """

    prepare: Callable[[], Call]
    share: float
    fills: int


KINDS: dict[str, Kind] = {}


def kind(name: str, share: float = 1.0, fills: int = 0) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    """Add a kind to ``KINDS``."""

    def add(prepare: Callable[[], Call]) -> Callable[[], Call]:
        KINDS[name] = Kind(prepare, share, fills)
        return prepare

    return add


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def energy(x: Any) -> Any:
    return jnp.sum(jnp.sin(x) * jnp.tanh(x) ** 2)


# Calls of one function ------------------------------------------------------------------------------------------------


@kind("eager grad")
def _() -> Call:
    x, d = jnp.asarray(numbers(3)), grad(energy)
    return lambda i: d(x)


@kind("jit call")
def _() -> Call:
    x, f = jnp.asarray(numbers(3)), jit(energy)
    return lambda i: f(x)


@kind("vmap")
def _() -> Call:
    x, f = jnp.asarray(numbers(4, 3)), vmap(energy)
    return lambda i: f(x)


@kind("scan")
def _() -> Call:
    xs = jnp.asarray(numbers(3, 2))
    return lambda i: lax.scan(lambda c, x: (jnp.sin(c + x), c.sum()), xs[0], xs)


@kind("custom rules")
def _() -> Call:
    @pullback.custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    return lambda i: grad(f)(1.5)


@kind("custom_jvp")
def _() -> Call:
    @pullback.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * jnp.cos(primals[0])))
    return lambda i: grad(f)(1.5)


@kind("linearize")
def _() -> Call:
    x = jnp.asarray(numbers(3))
    return lambda i: pullback.linearize(energy, x)[1](x)


@kind("checkpoint")
def _() -> Call:
    x, d = jnp.asarray(numbers(3)), grad(checkpoint(energy))
    return lambda i: d(x)


@kind("static arguments", fills=1_200)
def _() -> Call:
    f = jit(lambda x, n: x * 1.0, static_argnums=1)  # one entry of the cache, and one trace, for each n
    x = jnp.asarray(numbers(3))
    return lambda i: f(x, i)


@kind("refs")
def _() -> Call:
    @jit
    def count(ref: Any, x: Any) -> Any:
        ref[...] += x
        return ref[...] * 2

    def call(i: int) -> None:
        ref = pullback.new_ref(jnp.zeros(3))
        ref[0] = 1.0
        count(ref, ref[...])

    return call


@kind("keys")
def _() -> Call:
    return lambda i: random.normal(random.split(random.key(i))[0], (3,))


@kind("trees")
def _() -> Call:
    data = {"a": jnp.ones(3), "b": [jnp.zeros(2), (None, 1.5)], "c": {"d": 1, "e": ()}}

    def call(i: int) -> None:
        leaves, structure = tree.flatten(tree.map(lambda x: x, data))
        tree.unflatten(structure, leaves)
        tree.leaves_with_path({str(i % 7): data})

    return call


# Functions made anew --------------------------------------------------------------------------------------------------


@kind("same lambda jit-ed anew")
def _() -> Call:
    x = jnp.asarray(numbers(3))
    return lambda i: jit(lambda x: jnp.sin(x) * 2)(x)


@kind("jit(grad) anew")
def _() -> Call:
    x = jnp.asarray(numbers(3))
    return lambda i: jit(grad(lambda x: jnp.sum(jnp.sin(x) * 2)))(x)


@kind("new programs", 0.025)
def _() -> Call:
    x = jnp.asarray(numbers(3))
    return lambda i: jit(lambda x: jnp.sin(x) * (2 + i / 2**20))(x)


@kind("tiered anew")
def _() -> Call:
    x = jnp.asarray(numbers(3))

    def call(i: int) -> None:
        f = jit(lambda x: jnp.sin(x) * (2 + i % 50))
        with pullback.tiered("on"):
            f(x), f(x)
        if i % 10 == 0:
            f(x)  # waits for the compiler

    return call


@kind("make_jaxpr")
def _() -> Call:
    x = jnp.asarray(numbers(3))
    return lambda i: pullback.make_jaxpr(lambda x: jnp.sin(x) * 2)(x)


@kind("sparse_jacobian", 0.3)
def _() -> Call:
    x = jnp.asarray(numbers(6))
    return lambda i: sparse_jacobian(lambda x: x[1:] * x[:-1])(x)


@kind("export, deserialize, call", 0.3, fills=600)
def _() -> Call:
    x = jnp.asarray(numbers(3))

    def call(i: int) -> None:
        exported = export.export(jit(lambda x: jnp.sin(x) * 2))(x)
        export.deserialize(exported.serialize()).call(x)

    return call


@kind("clear_caches")
def _() -> Call:
    x, f = jnp.asarray(numbers(3)), jit(lambda x: jnp.sin(x) * 2)

    def call(i: int) -> None:
        f(x)
        pullback.clear_caches()

    return call


# What goes in and out -------------------------------------------------------------------------------------------------


@kind("device_put")
def _() -> Call:
    x, device = numbers(3), pullback.devices()[0]
    return lambda i: pullback.device_put(x, device)


@kind("1 MB device_put")
def _() -> Call:
    x, device = numbers(2**18), pullback.devices()[0]
    return lambda i: pullback.device_put(x, device)


@kind("callbacks")
def _() -> Call:
    like = pullback.ShapeDtypeStruct((3,), "float32")
    x, f = jnp.asarray(numbers(3)), jit(lambda x: pure_callback(np.sin, like, x))
    return lambda i: f(x)


@kind("new callbacks", 0.15)
def _() -> Call:
    like = pullback.ShapeDtypeStruct((3,), "float32")
    x = jnp.asarray(numbers(3))
    return lambda i: jit(lambda x: pure_callback(lambda v: v * i, like, x))(x)


@kind("shard_map over 8")
def _() -> Call:
    mesh = pullback.make_mesh((8,), ("i",))
    f = jit(shard_map(lambda x: x - lax.pmean(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    x = numbers(8, 2)
    return lambda i: np.asarray(f(x))


@kind("new threads")
def _() -> Call:
    x, f = jnp.asarray(numbers(3)), jit(grad(energy))

    def call(i: int) -> None:
        thread = threading.Thread(target=lambda: (f(x), grad(energy)(x)))
        thread.start()
        thread.join()

    return call


# Errors ---------------------------------------------------------------------------------------------------------------


@kind("exceptions in traces")
def _() -> Call:
    def fail(x: Any) -> Any:
        raise KeyError(float(jnp.sin(x).shape == ()))

    ways = (grad(fail), jit(fail), vmap(fail), jit(grad(fail)), lambda x: lax.scan(lambda c, y: fail(c), 1.0, x))
    x = jnp.asarray(numbers(3))

    def call(i: int) -> None:
        with contextlib.suppress(KeyError):
            ways[i % len(ways)](x[0] if i % len(ways) in (0, 3) else x)
            raise AssertionError

    return call


@kind("leaked tracers")
def _() -> Call:
    def call(i: int) -> None:
        kept: list[Any] = []
        (grad, jit)[i % 2](lambda x: kept.append(x) or x * 2)(1.0)
        with contextlib.suppress(pullback.errors.UnexpectedTracerError):
            _ = kept[0] + 1
            raise AssertionError

    return call


# Runs -----------------------------------------------------------------------------------------------------------------


def row(name: str, grown: Growth, seconds: float) -> str:
    """Return a row of the table."""
    first, half, last = (grown.resident[i] / 2**20 for i in (0, PIECES // 2, PIECES))
    return (
        f"| {name} | {grown.calls:,} | {seconds:,.0f} | {first:.1f} | {half:.1f} | {last:.1f} "
        f"| {grown.bytes_per_call:.1f} | {grown.percent:+.2f} % | {grown.blocks_per_call:.4f} "
        f"| {'**grows**' if grown.leaks else 'flat'} |"
    )


TITLES = (
    "kind",
    "calls",
    "seconds",
    "MB before",
    "halfway",
    "after",
    "bytes a call",
    "growth",
    "live objects a call",
    "",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what ``python -m tests.soak kinds`` takes."""
    parser.add_argument(
        "--calls", type=int, default=100_000, help="of each kind; those that take long make fewer, in proportion"
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="NAME")
    parser.add_argument("--here", action="store_true", help="in this process, printing JSON; for short runs")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run kinds, each in a process of its own; print a table; return 1 if one of them leaks, and 0 otherwise."""
    names = given.only or list(KINDS)
    if given.here:
        config.update("tiered", "off")
        if "shard_map over 8" in names:
            config.update("num_cpu_devices", 8)
        with tempfile.TemporaryDirectory(prefix="pullback-soak-") as folder:
            config.update("compilation_cache_dir", folder)  # new programs are not left in the user's cache
            gc.collect()
            gc.freeze()  # what was imported needs no look at each measurement
            for name in names:
                print(json.dumps([name, *run_here(name, given.calls)]), flush=True)
        return 0
    found = {}
    one_arena = {**os.environ, "MALLOC_ARENA_MAX": "1"}  # each of many takes megabytes for pieces that its threads left
    for name in names:
        command = [sys.executable, "-m", "tests.soak", "kinds", "--here", "--calls", str(given.calls), "--only", name]
        found |= read(subprocess.run(command, cwd=ROOT, env=one_arena, stdout=subprocess.PIPE, check=True).stdout)
        print(row(name, *found[name]), file=sys.stderr, flush=True)
    return report(found)


def report(found: dict[str, tuple[Growth, float]]) -> int:
    """Print a table of kinds, what grew and the seconds; return 1 if one of them leaks, and 0 otherwise."""
    print("| " + " | ".join(TITLES) + " |", "|---" * len(TITLES) + "|", sep="\n")
    print(*(row(name, grown, seconds) for name, (grown, seconds) in found.items()), sep="\n")
    print(f"\nThe last four columns are of the second half of the calls. What leaks grows by over {MOST_PERCENT:g} %")
    print(f"and {MOST_BYTES:g} bytes a call, or by over {MOST_BLOCKS:g} live objects a call.")
    return int(any(grown.leaks for grown, _ in found.values()))


def run_here(name: str, calls: int) -> tuple[int, list[int], list[int], float]:
    """Make calls of a kind in this process; return the fields of a ``Growth``, and the seconds that all took."""
    kind = KINDS[name]
    start = time.monotonic()
    calls = max(round(kind.share * calls), PIECES)
    warm = max(min(calls, 300 + calls // 10), kind.fills)
    grown = measured(kind.prepare(), calls, warm)
    return calls, list(grown.resident), list(grown.blocks), time.monotonic() - start


def read(printed: bytes) -> dict[str, tuple[Growth, float]]:
    """Read what ``--here`` has printed: for each kind what grew, and the seconds that it took."""
    found = {}
    for line in printed.splitlines():
        if line.startswith(b"["):
            name, calls, resident, blocks, seconds = json.loads(line)
            found[name] = Growth(calls, resident, blocks), seconds
    return found
