"""Memory of large eager arrays is where compiled programs can read it, on every thread; the user's is NumPy's."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import pullback
import pullback.numpy as jnp
from pullback.backends.compiler import programs
from pullback.backends.devices import buffers
from pullback.backends.host import aligned, native
from pullback.core.runtime import runtime
from pullback.core.trace import state
from tests.helpers import small_blocks

pytestmark = pytest.mark.skipif(native.loops is None, reason="there is no module in C")

N = 300_007
MADE: dict[str, Callable[[], Any]] = {
    "ones": lambda: jnp.ones(N),
    "full": lambda: jnp.full((7, N), 3.0),
    "copied": lambda: jnp.asarray(np.arange(N, dtype=np.float32)),
    "converted": lambda: jnp.asarray(np.arange(N, dtype=np.float64)),
    "by columns": lambda: jnp.asarray(np.ones((601, 603), np.float32).T),
    "one operation": lambda: jnp.ones(N) * 2,
    "an expression": lambda: jnp.sin(jnp.ones(N)) * 2 + 1,
    "a product": lambda: jnp.ones((400, 300)) @ jnp.ones((300, 400)),
    "complex": lambda: jnp.ones(N, "complex64") * 2,
    "sorted": lambda: jnp.sort(jnp.ones(N)),
    "random": lambda: pullback.random.normal(pullback.random.key(0), (N,)),
    "a gradient": lambda: pullback.grad(lambda x: (jnp.sin(x) ** 2).sum())(jnp.ones(N)),
}


def _is_aligned(x: Any) -> bool:
    return bool(x._value.ctypes.data % 64 == 0)


@pytest.mark.parametrize("name", MADE)
def test_large_arrays_are_aligned(name: str) -> None:
    made = [MADE[name]() for _ in range(3)]  # which cannot share memory
    assert all(map(_is_aligned, made))


def test_results_of_expressions_by_numpy_are_aligned() -> None:
    with small_blocks(1 << 14, 1 << 16, True):
        assert _is_aligned(jnp.sin(jnp.ones(N)) * 2 + 1)


def test_threads_align_too() -> None:
    found: list[bool] = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: found.append(_is_aligned(jnp.ones(N) * 2)))
        thread.start()
        thread.join()
    assert found == [True] * 3


def test_the_memory_of_users_is_numpys() -> None:
    x = jnp.ones(N) * 2
    assert get_handler_name(x._value) == "pullback"
    assert get_handler_name(np.ones(N)) == "default_allocator"
    assert get_handler_name(np.asarray(x) + 1) == "default_allocator"


def test_compiled_programs_read_the_memory_where_it_is() -> None:
    x = jnp.ones(N) * 2
    assert pullback.jit(lambda x: x.sum())(x) == 2 * N
    assert x._buffer.unsafe_buffer_pointer() == x._value.ctypes.data


@pytest.mark.parametrize("make", ["ones", "copied", "one operation"])
def test_memory_that_a_program_has_read_is_free_when_the_next_is_needed(make: str) -> None:
    x = jnp.ones(N) * 2
    assert pullback.jit(lambda x: x.sum())(x) == 2 * N
    memory = weakref.ref(x._value)
    del x
    for _ in range(500):  # the runtime's thread may not be done with it yet
        MADE[make]()
        if memory() is None:
            return
        time.sleep(0.01)
    raise AssertionError("the memory is still there")


def test_memory_grows_and_shrinks() -> None:
    grown = state.silently(np.fromiter, iter(range(100_000)), np.float64)
    np.testing.assert_array_equal(grown, np.arange(100_000))
    few = state.silently(np.fromiter, iter(range(10)), np.float64, 10)
    x = state.silently(np.ones, 1 << 16)
    assert get_handler_name(x) == "pullback"
    for size in (10, 1 << 17, 3, 1 << 16):
        x.resize(size, refcheck=False)
        few.resize(size, refcheck=False)
        x[:] = few[:] = size
    assert (x == size).all()
    assert (few == size).all()
    zeros = state.silently(np.zeros, 1 << 17)
    assert not zeros.any()


def test_too_much_memory_is_an_error() -> None:
    with pytest.raises(MemoryError):
        aligned.new((1 << 60,), np.dtype(np.float32))
    with pytest.raises(MemoryError):
        jnp.ones(1 << 55)


DONATED: dict[str, Callable[[], Any]] = {
    **{name: MADE[name] for name in ("ones", "full", "copied", "one operation", "complex")},
    "float16": lambda: jnp.ones(N, "float16") * 2,
    "bytes": lambda: jnp.arange(N).astype("uint8"),
}


@pytest.mark.parametrize("name", DONATED)
def test_donated_memory_is_handed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "TAKEN", 1 << 16)
    taken = []
    hand_over = programs.taken
    monkeypatch.setattr(
        runtime, "taken", lambda value, device: (taken.append(value.shape), hand_over(value, device))[1]
    )
    x = DONATED[name]()
    expected = np.array(DONATED[name]()) + 1
    y = pullback.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(y, expected)
    assert x.is_deleted()
    assert taken == [y.shape]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_no_array_has_wrong_elements_when_the_hand_over_fails(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(value: Any, device: Any) -> None:
        if error is KeyboardInterrupt:
            value[:] = 0
        raise error

    assert runtime.taken is programs.taken
    x = jnp.arange(N) * 0.5
    monkeypatch.setattr(buffers, "TAKEN", 1 << 16)
    monkeypatch.setattr(runtime, "taken", failing)
    with pytest.raises(error):
        pullback.jit(lambda x: x + 1, donate_argnums=0)(x)
    if error is KeyboardInterrupt:
        assert x.is_deleted()
    else:
        np.testing.assert_array_equal(x, np.arange(N, dtype=np.float32) * 0.5)


KEPT: dict[str, Callable[[Any], Any]] = {
    "NumPy's view": np.asarray,
    "a memoryview": lambda x: memoryview(np.asarray(x)),
    "a view of ours": lambda x: x.reshape(-1, 1),
    "an expression": lambda x: jnp.sin(x) * 2,
    "an expression of what is pending": lambda x: jnp.sin(x) * 2,
    "a tape": lambda x: pullback.vjp(lambda x: x * x, x)[1](jnp.ones(N))[0],
    "a copy by reference": jnp.asarray,
}


@pytest.mark.parametrize("name", KEPT)
def test_memory_that_others_can_read_is_not_handed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "TAKEN", 1 << 16)
    x = jnp.arange(N) * 0.5
    if "pending" not in name:
        x.block_until_ready()
    expected = np.array(KEPT[name](jnp.arange(N) * 0.5))
    kept = KEPT[name](x)
    y = pullback.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(y, np.arange(N, dtype=np.float32) * 0.5 + 1)
    if kept is not x:
        np.testing.assert_array_equal(np.asarray(kept), expected)


PEAK = """
import re, sys
import pullback, pullback.numpy as jnp
from pullback import lax
programs = {
    "gradient": pullback.jit(pullback.grad(lambda v: (jnp.sin(v) ** 2).sum())),
    "scan": pullback.jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c) + 1, None), x, None, 4)[0]),
    "copy to NumPy": pullback.jit(lambda v: v + 1),
    "donated": pullback.jit(lambda v: v.at[0].add(1), donate_argnums=0),
}
f = programs[sys.argv[1]]
f(jnp.ones(3)).block_until_ready()
f.lower(jnp.ones(3)).compile()
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
if sys.argv[1] == "donated":
    f(jnp.ones(32 << 20)).block_until_ready()
x = jnp.ones(32 << 20) * 2
x.block_until_ready()
pullback.jit(f).lower(x).compile()  # whose memory is not counted
before = peak()
result = f(x)
result.block_until_ready()
jnp.asarray(result)
print((peak() - before) / (128 << 10))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says how much memory there was")
@pytest.mark.parametrize("program", ["gradient", "scan", "copy to NumPy"])
def test_a_program_takes_memory_for_its_result_alone(program: str) -> None:
    """Of as many bytes as the argument has; the rest is what the compiler took meanwhile."""
    found = subprocess.run([sys.executable, "-c", PEAK, program], check=True, capture_output=True, text=True)
    assert 0.9 < float(found.stdout) < 1.3


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says how much memory there was")
def test_an_update_in_donated_memory_takes_none() -> None:
    found = subprocess.run([sys.executable, "-c", PEAK, "donated"], check=True, capture_output=True, text=True)
    assert float(found.stdout) < 0.1


@pytest.mark.parametrize("call", ["pullback.grad(np.sum)", "pullback.jit(lambda x: x)", "pullback.vmap(lambda x: x)"])
def test_a_large_array_may_be_the_first_operand_of_a_process(call: str) -> None:
    code = f"import numpy as np, pullback; {call.replace('np.sum', 'lambda x: x[0]')}(np.ones(500_000, np.float32))"
    subprocess.run([sys.executable, "-c", code], check=True)
