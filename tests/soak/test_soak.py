"""A leak is found; short runs of what ``python -m tests.soak`` does find none."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import grad
from tests.helpers import ROOT
from tests.soak.kinds import KINDS, read, report
from tests.soak.load import MODES, PARTS, Load
from tests.soak.long import sampled, verdict
from tests.soak.memory import FLAT, Growth, Sample, growth, is_measurable, measured

pytestmark = pytest.mark.skipif(not is_measurable(), reason="the system does not say how much memory is resident")
SHORT = 1.5
"""The allocated blocks that a short run may grow by a call, while tables still fill; a kept result is two or more."""
FILLING = {"sparse_jacobian": 6, "new callbacks": 6, "new programs": 6}
"""The same, of kinds whose calls make programs, or many small arrays, of which NumPy keeps some of each size. A result
is more blocks."""


def kept(bytes_: int) -> Callable[[int], object]:
    """Return a call that leaks so many bytes, which neither Python nor the C library counts or had before."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    library.memset.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return lambda i: library.memset(library.mmap(None, bytes_, access, flags, -1, 0), 1, bytes_)


def alone(check: Callable[[], None]) -> None:
    """Make a check in a process of its own: one that has run thousands of tests takes a second to collect garbage."""
    program = f"from tests.soak import test_soak; test_soak.{check.__name__}()"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check_a_kept_result() -> None:
    results: list[Any] = []
    d = grad(lambda x: jnp.sum(jnp.sin(x)))
    leaking = measured(lambda i: results.append(d(jnp.ones(3))), 320, 100)
    assert leaking.leaks
    assert leaking.blocks_per_call > SHORT
    assert not measured(lambda i: d(jnp.ones(3)), 320, 300).leaks


def test_a_kept_result_is_a_leak() -> None:
    alone(check_a_kept_result)


def check_memory_that_python_does_not_count() -> None:
    leaking = measured(kept(2**16), 1600, 10)
    assert leaking.leaks
    assert leaking.blocks_per_call < 0.1
    assert leaking.bytes_per_call > 2**15


def test_memory_that_python_does_not_count_is_a_leak() -> None:
    alone(check_memory_that_python_does_not_count)


def test_what_fills_up_or_happens_once_is_no_leak() -> None:
    flat, steady = [100 * 2**20] * 17, [*range(0, 170, 10)]
    assert Growth(16, flat, steady).leaks
    assert not Growth(16, flat, [0] * 12 + [1000] * 5).leaks  # once
    assert not Growth(16, flat, [10 * (i % 4) for i in range(17)]).leaks  # emptied again
    assert not Growth(16, flat, [*range(0, 90, 10), *[80] * 8]).leaks  # filled in the first half
    growing = [(100 + i / 4) * 2**20 for i in range(17)]
    assert Growth(100_000, growing, [0] * 17).leaks
    assert not Growth(10_000_000, growing, [0] * 17).leaks  # less than 16 bytes a call


def test_growth_of_a_long_run_is_from_its_second_quarter_to_its_last() -> None:
    def samples(sizes: list[int]) -> list[Sample]:
        return [Sample(i + 1, size, 0, i) for i, size in enumerate(sizes)]

    assert growth(samples([10, 50, *[100] * 14])) == 0
    assert growth(samples([*[100] * 12, *[102] * 4])) == pytest.approx(0.02)


def test_the_status_says_whether_something_grows(capsys: pytest.CaptureFixture[str]) -> None:
    flat, leaking = Growth(16, [2**20] * 17, [0] * 17), Growth(16, [2**20] * 17, [*range(17)])
    assert report({"a": (flat, 1.0)}) == 0
    assert report({"a": (flat, 1.0), "b": (leaking, 1.0)}) == 1
    assert [line.startswith("| b |") for line in capsys.readouterr().out.splitlines() if "**grows**" in line] == [True]
    samples = [Sample(i, 2**20, 0, i) for i in range(16)]
    assert verdict("eager", samples, {}) == 0
    assert verdict("eager", [*samples, Sample(16, 2**21, 0, 16)], {}) == 1
    assert ["grows" in line for line in capsys.readouterr().out.splitlines() if line.startswith("| eager")] == [
        False,
        True,
    ]


def check_a_leak_in_a_long_run() -> None:
    load = Load("eager")
    for part in PARTS.values():
        for _ in range(10):
            part(load, load.rng)
    leak = kept(2**22)

    def leaking() -> None:
        load.step()
        leak(0)
        time.sleep(0.01)  # some hundred megabytes at most, however quick the processor is

    assert growth(sampled(load.step, 2.0, 0.1)) <= FLAT
    assert growth(sampled(leaking, 1.0, 0.05)) > FLAT


@pytest.mark.slow
def test_a_leak_in_a_long_run_is_found() -> None:
    alone(check_a_leak_in_a_long_run)  # beside what other tests keep and give back, a leak is a small part


@pytest.mark.slow
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "eager"])
def test_long_run(mode: str) -> None:
    """Memory still grows in the first seconds, while programs are compiled; the runs have to end without an error."""
    command = [sys.executable, "-m", "tests.soak", "long", "--minutes", "0.03", "--every", "0.2", "--mode", mode]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert f"\n| {mode} | 0." in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_kinds_of_calls(part: int) -> None:
    names = list(KINDS)[part::3]
    command = [sys.executable, "-m", "tests.soak", "kinds", "--here", "--calls", "200", "--only", *names]
    found = read(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    assert list(found) == names
    assert {name: grown for name, (grown, _) in found.items() if grown.blocks_per_call > FILLING.get(name, SHORT)} == {}
    assert {name: grown for name, (grown, _) in found.items() if grown.percent > 2} == {}
