"""Ctrl-C ends the wait for a loop that does not end, compiled or eager, and the process goes on."""

import _thread
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import clear_caches, debug, jit, lax, tree
from pullback.backends.compiler import beside
from pullback.backends.host import own
from pullback.control import while_primitive
from pullback.core.errors import LeftRunningWarning

ENDLESS = """
import signal, sys, time, warnings
import pullback.numpy as jnp
from pullback import jit, lax
from pullback.core.errors import LeftRunningWarning

kind, size = sys.argv[1], int(sys.argv[2])
x = jit(lambda: jnp.ones(size))().block_until_ready()

def endless(x):
    return lax.while_loop(lambda c: c[1] >= 0, lambda c: (jnp.sin(c[0]), (c[1] + 1) % 1000), (x, 0))

@jit
def finite(x):
    return lax.while_loop(lambda c: c[1] < 5, lambda c: (jnp.sin(c[0]), c[1] + 1), (x, 0))[0]

f = jit(endless) if kind == "jit" else endless
expected = finite(x).block_until_ready()
if kind == "jit":
    f.lower(x).compile()
signal.signal(signal.SIGALRM, signal.default_int_handler)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        f(x)[0].block_until_ready()
    except KeyboardInterrupt:
        print("interrupted", [w.category is LeftRunningWarning for w in caught])
assert (finite(x) == expected).all() and float(jit(lambda x: x + 1)(1.0)) == 2.0
"""


def run(program: str, *arguments: str) -> str:
    """The output of a program in a process of its own, which has to end well."""
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
@pytest.mark.parametrize("size", [1, 20_000])
@pytest.mark.parametrize("kind", ["jit", "eager"])
def test_an_interrupt_ends_the_wait_for_an_endless_loop(kind: str, size: int) -> None:
    asks = size >= while_primitive.LARGE and own.loops is not None
    assert run(ENDLESS, kind, str(size)) == f"interrupted {[True] if kind == 'jit' and not asks else []}\n"


STOPPED = """
import signal, sys, time, warnings
import pullback
import pullback.numpy as jnp
from pullback import jit, lax

kind, size, seen = sys.argv[1], int(sys.argv[2]), []
x = jit(lambda: jnp.ones(size))().block_until_ready()
matrices = [jnp.ones((100, 100)) * i for i in range(20 * (kind == "products"))]

@jit
def endless(x):
    def step(c):
        if kind == "calls":
            pullback.debug.callback(lambda i: seen.append(int(i)), c[1])
        y = jnp.sin(c[0])
        for matrix in matrices:
            y = (matrix @ y.reshape(100, 100)).ravel()
        return y, (c[1] + 1) % 1000
    loop = lambda x: lax.while_loop(lambda c: c[1] >= 0, step, (x, 0))
    out = loop(x)
    if kind == "nested":
        out = lax.while_loop(lambda c: c[1] >= 0, lambda c: loop(c[0]), out)
    pullback.debug.callback(lambda x: seen.append("the end"), out[0][0])
    return out

late = jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=30)[0])
endless.lower(x).compile()
late(x).block_until_ready()
signal.signal(signal.SIGALRM, signal.default_int_handler)
warnings.simplefilter("error")
for _ in range(4):  # more often than the runtime has threads
    begin = time.monotonic()
    try:
        y = late(x) if kind == "late" else x
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        endless(y)[0].block_until_ready()
    except KeyboardInterrupt:
        called = len(seen)
    y = jnp.ones((300, 300))
    float(jit(lambda y: (y @ y).sum() + jnp.sort(y.ravel())[0])(y))  # nothing keeps threads of the runtime
    assert len(seen) == called
print(called > 0, "the end" in seen)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
@pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("late", 200_000),  # which the compiler divides among threads
        pytest.param("products", 10_000, marks=pytest.mark.slow),  # also these, of small matrices
        pytest.param("nested", 5_000_000, marks=pytest.mark.slow),
        pytest.param("late", 5_000_000, marks=pytest.mark.slow),
        pytest.param("nested", 20_000, marks=pytest.mark.slow),
        pytest.param("nested", 200_000, marks=pytest.mark.slow),
        pytest.param("calls", 100_000, marks=pytest.mark.slow),
    ],
)
def test_large_loops_stop_when_they_are_interrupted(kind: str, size: int) -> None:
    assert run(STOPPED, kind, str(size)) == f"{kind == 'calls'} False\n"


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_small_loops_that_call_python_stop_when_they_are_interrupted() -> None:
    assert run(STOPPED, "calls", "10") == "True False\n"


OVER_DEVICES = """
import signal, time, warnings
import pullback
pullback.config.update("jax_num_cpu_devices", 2)
import pullback.numpy as jnp
from pullback import jit, lax
from pullback.backends.compiler import client

client._FOR_INTERRUPTED = 1.0

x = pullback.device_put(jnp.ones(20), pullback.NamedSharding(pullback.make_mesh((2,), ("d",)), pullback.P("d")))

@jit
def endless(x):
    return lax.while_loop(lambda c: c[1] >= 0, lambda c: (c[0] / c[0].sum(), (c[1] + 1) % 1000), (x, 0))

endless.lower(x).compile()
total = jit(lambda x: x.sum())
assert float(total(x)) == 20
signal.signal(signal.SIGALRM, signal.default_int_handler)
warnings.simplefilter("ignore", pullback.errors.LeftRunningWarning)
for _ in range(2):
    begin = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        endless(x)
    except KeyboardInterrupt:
        print("interrupted")
    try:
        total(x)
    except pullback.errors.ExecutionError as error:
        print("start a new process" in str(error))
    print(float(jit(lambda x: x + 1)(1.0)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
def test_programs_after_an_endless_one_over_devices_do_not_wait_for_ever() -> None:
    assert run(OVER_DEVICES) == "interrupted\nTrue\n2.0\n" * 2


@pytest.fixture(params=["C", "Python"])
def runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs run by a runner in C, or in Python."""
    if request.param == "C" and own.loops is None:
        pytest.skip("the module in C is not installed")
    beside._threads.close()
    monkeypatch.setattr(beside, "new_runner", own.loops.Runner if request.param == "C" else beside.Runner)
    yield
    beside._threads.close()


@pytest.mark.usefixtures("runner")
def test_programs_that_may_not_end_are_started_by_one_other_thread() -> None:
    threads = [beside.Program(lambda _: threading.get_ident()).run([]) for _ in range(3)]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()

    found = []
    thread = threading.Thread(target=lambda: found.append(beside.Program(lambda _: threading.get_ident()).run([])))
    thread.start()
    thread.join()
    assert found == [thread.ident]  # it has no signal handlers that would have to run


@pytest.mark.usefixtures("runner")
def test_the_error_of_a_program_is_raised() -> None:
    def failing(buffers: int) -> None:
        raise MemoryError(buffers)

    for i in range(3):
        with pytest.raises(MemoryError, match=str(i)):
            beside.Program(failing).run(i)
    assert beside.Program(lambda buffers: buffers + 1).run(1) == 2


@pytest.mark.usefixtures("runner")
def test_an_interrupted_program_is_left_behind_with_its_thread() -> None:
    end, ended = threading.Event(), threading.Event()
    used = beside.Program(lambda _: threading.get_ident()).run([])

    def endless(_: object) -> None:
        _thread.interrupt_main()
        end.wait()
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    try:
        with pytest.warns(LeftRunningWarning, match="goes on in the background"), pytest.raises(KeyboardInterrupt):
            beside.Program(endless).run([])
        assert beside.Program(lambda _: threading.get_ident()).run([]) != used
        assert not ended.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
        end.set()
    assert ended.wait(60)
    for runner, thread in beside._threads.all.items():
        if runner not in beside._threads.idle:
            thread.join(60)
            assert not thread.is_alive()


class Loops:
    """Stands for the module in C."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.any = threading.Event()

    def loops_go_on(self, go_on: bool) -> None:
        self.told.append(go_on)
        self.any.set()


@pytest.mark.usefixtures("runner")
def test_a_program_is_not_stopped_while_another_could_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would stop too, and have wrong results."""
    begun, end = threading.Event(), threading.Event()
    loops = Loops()
    monkeypatch.setattr(own, "loops", loops)

    def work(_: object) -> None:
        begun.set()
        end.wait(60)

    def interrupted(_: object) -> None:
        _thread.interrupt_main()
        end.wait(60)

    other = threading.Thread(target=beside.Program(work, asks=True).run, args=([],))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        other.start()
        assert begun.wait(60)
        with pytest.warns(LeftRunningWarning), pytest.raises(KeyboardInterrupt):
            beside.Program(interrupted, asks=True).run([])
    finally:
        signal.signal(signal.SIGINT, before)
        end.set()
        other.join(60)
    while beside._stoppable.running:
        time.sleep(0.01)
    assert not loops.told


@pytest.mark.usefixtures("runner")
def test_programs_wait_while_another_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would stop too."""
    loops = Loops()
    monkeypatch.setattr(own, "loops", loops)
    other = threading.Thread(target=beside.Program(lambda _: loops.told.append("other"), asks=True).run, args=([],))

    def interrupted(_: object) -> None:
        _thread.interrupt_main()
        assert loops.any.wait(60)
        other.start()
        time.sleep(0.2)
        loops.told.append("ended")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            beside.Program(interrupted, asks=True).run([])
    finally:
        signal.signal(signal.SIGINT, before)
    other.join(60)
    assert loops.told == [False, "ended", True, "other"]


@pytest.mark.usefixtures("runner")
def test_a_handler_that_runs_a_program_meanwhile() -> None:
    """Here within the program that it would interrupt: the first thread is at work, so that another one starts it."""
    inner = []

    def handler(number: int, frame: object) -> None:
        inner.append(float(double(1.0)))
        go_on.set()

    go_on = threading.Event()
    double = jit(lambda x: lax.while_loop(lambda c: c < 2, lambda c: 2 * c, x))
    assert float(double(1.0)) == 2.0
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert beside.Program(lambda _: (_thread.interrupt_main(), go_on.wait(60))[1]).run([])
    finally:
        signal.signal(signal.SIGINT, before)
    assert inner == [2.0]


def test_only_programs_with_loops_of_unknown_length_are_started_by_another_thread() -> None:
    def beside_main(f: object) -> bool:
        return isinstance(getattr(jit(f).lower(1.0).compile().execute, "__self__", None), beside.Program)

    assert beside_main(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + 1, x))
    assert beside_main(lambda x: jit(lambda x: lax.fori_loop(0, x.astype(int), lambda i, c: c + i, 0))(x))
    assert not beside_main(lambda x: lax.fori_loop(0, 10, lambda i, c: c + 1, x))
    assert not beside_main(lambda x: lax.scan(lambda c, _: (c + 1, c), x, None, 100))
    assert not beside_main(jnp.sin)


def loops(x: Any) -> Any:
    """Loops in loops, with a callback in a step and one in a condition."""

    def shown(c: Any) -> Any:
        debug.callback(lambda _: None, c[1])
        return c[1] < 5

    inner = lax.while_loop(lambda c: c[1] < 7, lambda c: (c[0] * 3 % 101, c[1] + 1), (x, 0))[0]
    outer = lax.while_loop(
        lambda c: (c[0] > -(10**9)).all() & (c[1] < 4),
        lambda c: (lax.while_loop(lambda d: d[1] < c[1], lambda d: (d[0] * c[0], d[1] + 1), c)[0] - inner, c[1] + 1),
        (x, 0),
    )
    return inner, outer, lax.while_loop(shown, lambda c: (c[0] // 3 + inner, c[1] + 1), (x, 0))


MATRIX = np.ones((64, 64), np.float32)
STEPS = {
    "computes a large array": (lambda x: jnp.sin(x), np.ones(1 << 14, np.float32), True),
    "computes a smaller one": (lambda x: jnp.sin(x), np.ones((1 << 14) - 1, np.float32), False),
    "reads a large array": (lambda x: x + jnp.ones(1 << 18).at[0].set(x).sum(), np.float32(1), True),
    "multiplies matrices": (lambda x: x @ MATRIX, MATRIX, True),
    "multiplies smaller ones": (lambda x: x @ x, np.ones((63, 63), np.float32), False),
    "keeps a row in a large array": (
        lambda x: lax.dynamic_update_slice(x, 2 * lax.dynamic_slice(x, (0, 0), (1, 4096)), (1, 0)),
        np.ones((64, 4096), np.float32),
        False,
    ),
    "computes it in a branch": (lambda x: lax.cond(x[0] > 2, jnp.sin, jnp.cos, x), np.ones(1 << 14, np.float32), True),
}


@pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")
@pytest.mark.parametrize(("step", "x", "asks"), STEPS.values(), ids=STEPS)
def test_loops_that_do_much_work_in_a_step_ask(step: Any, x: Any, asks: bool) -> None:
    loop = jit(lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (step(c[0]), c[1] + 1), (x, 0)))
    assert ("pullback_goes_on" in loop.lower(x).as_text()) == asks


@pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")
@pytest.mark.parametrize("first", [1, 5, 64])
def test_loops_that_ask_compute_the_same(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    x = jnp.arange(17)  # floats may be rounded otherwise, in loops that are one function
    expected = jit(lambda x: loops(x))(x)
    clear_caches()  # which know how large the arrays are
    monkeypatch.setattr(while_primitive, "LARGE", 1)
    monkeypatch.setattr(while_primitive, "FIRST", [(0, first)])
    asking = jit(lambda x: loops(x)).lower(x)
    assert asking.as_text().count("pullback_goes_on") >= 4
    for value, other in zip(tree.leaves(asking.compile()(x)), tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(value, other)
    clear_caches()
