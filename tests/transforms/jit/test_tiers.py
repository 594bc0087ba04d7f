"""Calls that are answered operation by operation, while another thread compiles."""

from __future__ import annotations

import gc
import logging
import random
import re
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, lax, tree, vmap
from pullback import random as prandom
from pullback.backends.compiler import background, client, compile_progress, compile_times
from pullback.backends.host import blas
from pullback.backends.host.blas_threads import one_blas_thread
from pullback.core import waiting
from pullback.core.config import config, enable_x64, override
from pullback.core.errors import ArgumentError, CompilationError, DeletedArrayError, HostFunctionError
from pullback.debug import callback
from pullback.experimental import io_callback
from pullback.transforms.jit.caches import Cache
from pullback.transforms.jit.eager import EagerProgram, expected_seconds
from pullback.transforms.jit.stages import Compiled
from pullback.transforms.jit.tiers import Tiered
from tests.helpers import chosen
from tests.random_programs import programs
from tests.transforms.test_random_compositions import CONSTRUCTS, POINTS, TRANSFORMATIONS, total, unsupported


class Held:
    """Compilations that other threads are to do, and that wait until a test says so."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []

    def submit(self, job: Any) -> bool:
        self.jobs.append(job)
        return True

    def compile(self) -> None:
        """Do them now, each in a thread of its own, as they would be."""
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            thread = threading.Thread(target=job.run)
            thread.start()
            thread.join()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    found = Held()
    monkeypatch.setattr(background, "submit", found.submit)
    with override("tiered", "on"):
        yield found


def entry(f: Any) -> Any:
    """The one entry of the cache of a compiled function."""
    (found,) = f._compiled.values()
    return found


def described(out: Any) -> list[Any]:
    """The tree of some results, and the types of the arrays."""
    return [tree.structure(out), [(x.shape, x.dtype, x.weak_type, str(x.aval)) for x in tree.leaves(out)]]


# Results -------------------------------------------------------------------------------------------------------------


def test_the_first_calls_are_eager_and_the_others_compiled(held: Held) -> None:
    traced = []

    @jit
    def f(x: Any, y: Any) -> Any:
        traced.append(1)
        return {"a": jnp.tanh(x @ y), "b": (x.sum(), 2 * y[0, 0], 3.0, jnp.int32(4))}

    x, y = jnp.ones((2, 3)), jnp.full((3, 2), 0.5)
    first = f(x, y)
    assert type(entry(f)) is Tiered
    second = f(x, y)
    held.compile()
    third = f(x, y)
    assert type(entry(f)) is Compiled
    assert entry(f).simple
    fourth = f(x, y)
    assert len(traced) == 1
    for out in (second, third, fourth):
        assert described(out) == described(first)
        for got, expected in zip(tree.leaves(out), tree.leaves(first), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_each_kind_of_arguments_is_its_own_program(held: Held) -> None:
    f = jit(lambda x, n=2: x * n, static_argnames="n")
    assert (f(1.0), f(jnp.arange(2)).tolist(), f(1.0, n=3)) == (2.0, [0, 2], 3.0)
    assert len(held.jobs) == 3
    held.compile()
    assert (f(1.0), f(jnp.arange(2)).tolist(), f(1.0, n=3)) == (2.0, [0, 2], 3.0)
    assert {type(e) for e in f._compiled.values()} == {Compiled}


def test_random_bits_are_the_same(held: Held) -> None:
    f = jit(lambda key: (prandom.bits(key, (3, 5)), *prandom.split(key), prandom.fold_in(key, 7)))
    eager = f(prandom.key(3))
    held.compile()
    for got, expected in zip(f(prandom.key(3)), eager, strict=True):
        assert got.dtype == expected.dtype
        got, expected = (x if x.dtype == np.uint32 else prandom.key_data(x) for x in (got, expected))
        np.testing.assert_array_equal(got, expected)


def test_a_compiled_function_within_another_is_no_program_of_its_own(held: Held) -> None:
    inner = jit(lambda x: jnp.sin(x) + 1)
    f = jit(lambda x: vmap(inner)(x).sum())
    assert f(jnp.zeros(3)) == 3.0
    assert grad(lambda x: inner(x))(0.0) == 1.0
    assert len(held.jobs) == 1 or all(job is not None for job in held.jobs)
    assert not inner._compiled


def agree(f: Any, args: Any, held: Held, tolerance: float) -> None:
    """A function returns the same in all ways, and has its effects once a call."""
    log: list[Any] = []

    def g(*args: Any) -> Any:
        callback(lambda *x: log.append(("in", *map(float, x))), *[jnp.sum(a) for a in args], ordered=True)
        outs = f(*args)
        found = [io_callback(keep, x, x, ordered=True) for x in tree.leaves(outs)]
        callback(lambda: log.append("out"), ordered=True)
        return found

    def keep(x: Any) -> Any:
        log.append("kept")
        return x

    compiled = jit(g)
    expected = g(*args)
    once, log[:] = list(log), []
    outs = [compiled(*args)]
    assert type(entry(compiled)) is Tiered
    held.compile()
    outs.append(compiled(*args))
    assert type(entry(compiled)) is Compiled
    names = [x if isinstance(x, str) else x[0] for x in once]
    assert [x if isinstance(x, str) else x[0] for x in log] == 2 * names
    for out in outs:
        for got, want in zip(tree.leaves(out), tree.leaves(expected), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def check_composition(number: int, held: Held) -> bool:
    chance = random.Random(number)
    constructs = [chance.choice(list(CONSTRUCTS)) for _ in range(chance.choice([1, 1, 2, 2, 3]))]
    transformations = [chance.choice(list(TRANSFORMATIONS)) for _ in range(chance.choice([0, 1, 1, 2, 2]))]
    if unsupported(constructs, transformations):
        return False
    f: Any = lambda x, y: jnp.sin(x) * y + 0.5 * x * y
    for name in constructs:
        f = CONSTRUCTS[name][0](f)
    for name in transformations:
        f = TRANSFORMATIONS[name][0](total(f))
    agree(f, [jnp.asarray(x) for x in chance.choice(POINTS)], held, 1e-7)
    return True


OF_PROGRAMS: list[Callable[[Any], Any]] = [
    lambda p: p,
    lambda p: grad(p.scalar, tuple(range(len(p.inputs)))),
    lambda p: lambda *args: pullback.jvp(p, args, tuple(p.directions(3))),
    lambda p: lambda *args: vmap(p)(*[jnp.stack([x, 0.5 * x]) for x in args]),
    lambda p: lambda *args: pullback.hessian(p.scalar)(*args),
]


def check_programs(count: int, held: Held, number: int) -> None:
    """So many random programs, others for each number."""

    @seed(number)
    @settings(max_examples=count, database=None, derandomize=False)
    @given(programs(), st.sampled_from(OF_PROGRAMS))
    def run(program: Any, transformation: Any) -> None:
        agree(transformation(program), program.arguments(), held, 1e-9)

    run()


@pytest.mark.parametrize("number", range(chosen(6, 40)))
def test_compositions(number: int, held: Held) -> None:
    with enable_x64():
        check_composition(number, held)


def test_programs(held: Held) -> None:
    with enable_x64():
        check_programs(chosen(4, 100), held, 0)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(1, chosen(5, 21)))
def test_a_thousand_programs(batch: int, held: Held) -> None:
    with enable_x64():
        number, compositions = 10_000 * batch, 0
        while compositions < 25:
            compositions += check_composition(number, held)
            number += 1
        check_programs(25, held, batch)


def test_values_that_nothing_reads_any_more_are_let_go_of() -> None:
    def f(x: Any) -> Any:
        for i in range(30):
            x = x * 0.5 + i
        return x.sum()

    x = jnp.ones(200_000)
    run = EagerProgram(jit(f).trace(x).jaxpr)
    run([x])
    tracemalloc.start()
    run([x])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * x.nbytes


# Effects, donation, errors -------------------------------------------------------------------------------------------


def test_what_a_function_raises_is_raised_as_in_a_compiled_program(held: Held) -> None:
    def host(x: Any) -> Any:
        raise KeyError("key")

    f = jit(lambda x: lax.map(lambda y: io_callback(host, y, y), x))
    for _ in range(2):
        with pytest.raises(HostFunctionError, match="key") as caught:
            f(jnp.ones(2))
        assert isinstance(caught.value, KeyError)
        held.compile()


def test_an_error_leaves_the_state_as_it_was(held: Held) -> None:
    from pullback.core.trace import EVAL, state

    def host(x: Any) -> Any:
        raise ValueError

    f = jit(lambda x: io_callback(host, x, x))
    before = dict(vars(config))
    with pytest.raises(HostFunctionError):
        f(1.0)
    assert (state.trace, state.source_loc, state.scope, vars(config)) == (EVAL, None, None, before)


def test_donated_arrays_are_deleted(held: Held) -> None:
    f = jit(lambda x, y: (x + y, y), donate_argnums=0)
    for _ in range(2):
        x, y = jnp.arange(3.0), jnp.ones(3)
        out, same = f(x, y)
        assert x.is_deleted()
        assert not y.is_deleted()
        assert (out.tolist(), same.tolist()) == ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
        with pytest.raises(DeletedArrayError):
            f(x, y)
        held.compile()
    g = jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))
    with pytest.raises(ArgumentError, match="donated twice"):
        g(y, y)


@pytest.mark.parametrize("on_device", [False, True])
def test_results_are_arrays_of_their_own(on_device: bool, held: Held) -> None:
    """Donating one of them, or what they came from, leaves the others."""
    produce = jit(lambda x: x * 1, tiered="off") if on_device else lambda x: x
    consume = jit(lambda x: x + 1, donate_argnums=0, tiered="off")
    f = jit(lambda x: (x, jnp.reshape(x, (3,)), x[:], lax.stop_gradient(x), x.T))
    for _ in range(2):
        x = produce(jnp.arange(3.0))
        outs = f(x)
        for out in outs:
            assert out is not x
        assert len({id(out) for out in outs}) == len(outs)
        consume(x)
        consume(outs[1])
        assert [out.tolist() for i, out in enumerate(outs) if i != 1] == 4 * [[0.0, 1.0, 2.0]]
        held.compile()


def test_a_deleted_array_is_refused_though_nothing_reads_it(held: Held) -> None:
    f = jit(lambda x, y: y, keep_unused=True)
    x = jnp.ones(3)
    x.delete()
    for _ in range(2):
        with pytest.raises(DeletedArrayError):
            f(x, jnp.zeros(2))
        held.compile()


def test_references(held: Held) -> None:
    outer = pullback.new_ref(jnp.zeros(2))

    @jit
    def f(ref: Any, x: Any) -> Any:
        outer[...] += x
        ref[0] = x
        return ref[...].sum()

    inner = pullback.new_ref(jnp.zeros(3))
    assert f(inner, 2.0) == 2.0
    held.compile()
    assert f(inner, 3.0) == 3.0
    assert (outer[...].tolist(), inner[...].tolist()) == ([5.0, 5.0], [3.0, 0.0, 0.0])


def test_looking_for_nans_waits_for_the_compiler(held: Held) -> None:
    f = jit(lambda x: jnp.log(x) + 1)
    with pullback.debug_nans(), pytest.raises(FloatingPointError, match="an operation of the compiled function"):
        f(-1.0)
    assert not held.jobs
    assert np.isnan(f(-1.0))
    assert len(held.jobs) == 1


def test_a_program_that_does_not_compile_is_an_error_in_the_next_call(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise CompilationError("no")

    f = jit(lambda x: jnp.cos(x) * 1.75 - 3)
    with override("enable_compilation_cache", False), monkeypatch.context() as patch:
        patch.setattr(client, "compile_text", refuse)
        assert f(0.0) == -1.25
        held.compile()
        for _ in range(2):
            with pytest.raises(CompilationError):
                f(0.0)
    assert f(0.0) == -1.25
    assert type(entry(f)) is Compiled


# Switches, and what is worth it ---------------------------------------------------------------------------------------


def test_switched_off(held: Held) -> None:
    f = jit(lambda x: x * 1.5 + 2)
    assert f(1.0) == 3.5
    assert type(entry(f)) is Tiered
    with pullback.tiered("off"):  # waits, also where a call was answered eagerly before
        assert f(1.0) == 3.5
    assert type(entry(f)) is Compiled
    g = jit(lambda x: x * 1.5 + 3, tiered="off")
    assert g(1.0) == 4.5
    assert type(entry(g)) is Compiled
    with pullback.tiered("off"):
        h = jit(lambda x: x * 1.5 + 4, tiered="on")
        assert h(1.0) == 5.5
        assert type(entry(h)) is Tiered
    with pytest.raises(ArgumentError, match="tiered must be None or one of"):
        jit(jnp.sin, tiered=True)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="tiered must be one of"):
        config.update("tiered", "maybe")


def test_what_was_asked_of_the_compiler_waits_for_it(held: Held) -> None:
    options = {"xla_embed_ir_in_executable": True}
    for f in (jit(lambda x: x + 9, compiler_options=options), jit(lambda x: x + 9, device="cpu")):
        assert f(1.0) == 10.0
        assert type(entry(f)) is Compiled
    assert jit(lambda x: x + 10).lower(1.0).compile()(1.0) == 11.0
    assert not held.jobs


SLOW_TO_COMPILE = {"chain": lambda x: x * 0.75 + 1, "scan": lambda x: lax.scan(lambda c, _: (c * 0.75, c), x, None, 40)}


@pytest.mark.parametrize("name", SLOW_TO_COMPILE)
def test_auto_takes_programs_that_are_slow_to_compile(
    name: str, held: Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    f = SLOW_TO_COMPILE[name]
    with override("tiered", "auto"), override("compilation_cache_dir", str(tmp_path)):
        first = jit(lambda x: f(x))
        first(1.0)
        assert type(entry(first)) is Compiled  # it was expected to take no second
        monkeypatch.setattr(compile_times, "expected", lambda table: 5.0)
        at_hand = jit(lambda x: f(x))
        at_hand(1.0)
        assert type(entry(at_hand)) is Compiled
        new = jit(lambda x: tree.map(lambda y: y - 7, f(x)))
        new(1.0)
        assert type(entry(new)) is Tiered
        long = jit(lambda x: lax.while_loop(lambda y: y > 5, f, x))
        if name == "chain":
            long(10.0)
            assert type(entry(long)) is Compiled
        large = jit(lambda x: jnp.broadcast_to(tree.leaves(f(x))[0].sum(), (10**6,)).sort()[0])
        large.trace(1.0)
        assert expected_seconds(large.trace(1.0).jaxpr.jaxpr) > 0.05


def test_expected_times_of_calls() -> None:
    def seconds(f: Any, *args: Any) -> float:
        return expected_seconds(jit(f).trace(*args).jaxpr.jaxpr)

    x = jnp.ones((50, 50))
    one = seconds(lambda x: jnp.tanh(x) * 2, x)
    assert 0 < one < 1e-3
    many = seconds(lambda x: lax.scan(lambda c, _: (jnp.tanh(c) * 2, None), x, None, 1000)[0], x)
    assert many > 500 * one
    assert seconds(lambda x: lax.cond(x[0, 0] > 0, jnp.tanh, jnp.linalg.inv, x), x) < 1
    assert seconds(lambda x: lax.while_loop(lambda c: c[0, 0] < 1, jnp.tanh, x), x) == float("inf")
    assert seconds(lambda x: jnp.broadcast_to(x[0], (10**6, 50)).sum(), x) == float("inf")
    assert seconds(lambda x: jnp.convolve(x[0], x[1]), x) > 0
    assert seconds(lambda x: x @ x, jnp.ones((2000, 2000))) > 0.5
    assert seconds(lambda x: jnp.linalg.svd(x)[1], jnp.ones((1000, 1000))) > 1


def test_expected_times_of_the_compiler_follow_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_times, "_ratio", 1.0)
    lines = ["%1 = stablehlo.add %0, %0 : tensor<f32>", '%2 = "stablehlo.reduce"(%1, %0) ({ ... })']
    table = compile_times.by_table(lines * 100)
    assert 1 < table < 10
    assert compile_times.expected(table) == table
    compile_times.observe(compile_times.by_table(lines), 100.0)
    assert compile_times.expected(table) == table
    for _ in range(10):
        compile_times.observe(table, 0.1 * table)
    assert compile_times.expected(table) == pytest.approx(0.1 * table, rel=0.02)


def test_products_of_numpy_take_one_thread_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "is_ready", lambda: False)
    libraries = blas.libraries()
    if not libraries:
        pytest.skip("NumPy has another library")
    read = lambda: [read() for read, _ in libraries]
    one, two = [1] * len(libraries), [2] * len(libraries)
    before = read()
    for _, write in libraries:
        write(2)
    try:
        with one_blas_thread():
            assert read() == one
            with one_blas_thread():
                assert read() == one
            assert read() == one
        assert read() == two
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # of another thread, which ends first
        assert read() == one
        second.__exit__(None, None, None)
        assert read() == two
    finally:
        for (_, write), count in zip(libraries, before, strict=True):
            write(count)


# Threads -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A compiler that waits until the test lets it go on, and notes what it compiles."""

    class Compiler:
        entered = threading.Semaphore(0)
        go_on = threading.Event()
        texts: list[str] = []  # noqa: RUF012

    real = client.compile_text

    def compile_text(text: str, *args: Any, **kwargs: Any) -> Any:
        Compiler.texts.append(text)
        Compiler.entered.release()
        assert Compiler.go_on.wait(60)
        return real(text, *args, **kwargs)

    monkeypatch.setattr(client, "compile_text", compile_text)
    config.update("enable_compilation_cache", False)  # in all threads
    yield Compiler
    config.update("enable_compilation_cache", True)
    Compiler.go_on.set()
    for thread in list(background._threads):
        thread.join(60)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    pytest.fail("it did not happen within a minute")


def test_programs_compile_at_the_same_time(slow_compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "cores", lambda: 2)
    functions = [jit(lambda x, i=i: x * 0.375 + i, tiered="on") for i in range(3)]
    for i, f in enumerate(functions):
        assert f(1.0) == 0.375 + i
    assert slow_compiler.entered.acquire(timeout=60)
    assert slow_compiler.entered.acquire(timeout=60)
    assert len(slow_compiler.texts) == 2  # the third waits for its turn
    assert [f(2.0) for f in functions] == [0.75, 1.75, 2.75]
    slow_compiler.go_on.set()
    wait_for(lambda: all(entry(f).job.done for f in functions))
    assert len(slow_compiler.texts) == 3
    assert [f(2.0) for f in functions] == [0.75, 1.75, 2.75]
    assert {type(entry(f)) for f in functions} == {Compiled}
    wait_for(lambda: not background._threads)


def test_whoever_needs_the_program_waits_for_the_one_that_is_being_compiled(slow_compiler: Any) -> None:
    f = jit(lambda x: x * 0.625 + 11, tiered="on")
    assert f(1.0) == 11.625
    assert slow_compiler.entered.acquire(timeout=60)
    outs: list[Any] = []
    thread = threading.Thread(target=lambda: outs.append(f.lower(1.0).compile()(1.0)))
    thread.start()
    thread.join(0.2)
    assert not outs
    slow_compiler.go_on.set()
    thread.join(60)
    assert outs == [11.625]
    assert len(slow_compiler.texts) == 1


def test_several_threads_that_call_one_function_compile_it_once(slow_compiler: Any) -> None:
    f = jit(lambda x: x * 0.125 + 12, tiered="on")
    outs: list[Any] = []
    threads = [threading.Thread(target=lambda: outs.append(float(f(8.0)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outs == [13.0] * 4
    slow_compiler.go_on.set()
    wait_for(lambda: not background._threads)
    assert len(slow_compiler.texts) == 1
    assert f(8.0) == 13.0


def test_what_nobody_needs_any_more_is_not_compiled(slow_compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "cores", lambda: 1)
    first = jit(lambda x: x * 0.125 + 13, tiered="on")
    first(1.0)
    assert slow_compiler.entered.acquire(timeout=60)
    second = jit(lambda x: x * 0.125 + 14, tiered="on")
    second(1.0)
    gone = weakref.ref(entry(second))
    second.clear_cache()
    first.clear_cache()
    gc.collect()
    assert gone() is None
    slow_compiler.go_on.set()
    wait_for(lambda: not background._threads)
    assert len(slow_compiler.texts) == 1
    assert first(1.0) == 13.125
    assert len(first._compiled) == 1


def test_the_thread_has_the_switches_of_the_call() -> None:
    seen = []
    with override("log_compiles", True), enable_x64():
        job = background.Job(lambda: seen.append((config.log_compiles, config.enable_x64)))
    job_after = background.Job(lambda: seen.append((config.log_compiles, config.enable_x64)))
    for each in (job, job_after):
        assert background.submit(each)
        wait_for(lambda each=each: each.done)
    assert seen == [(True, True), (False, False)]


def test_without_threads_it_is_compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    wait_for(lambda: not background._threads)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    f = jit(lambda x: x * 0.125 + 15, tiered="on")
    assert f(8.0) == 16.0
    assert type(entry(f)) is Compiled


# What people see -----------------------------------------------------------------------------------------------------


class Terminal:
    """A stream that keeps what is written to it."""

    def __init__(self, interactive: bool = True) -> None:
        self.text = ""
        self.interactive = interactive

    def isatty(self) -> bool:
        return self.interactive

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(("interactive", "switch"), [(True, True), (True, False), (False, True)])
def test_a_compilation_that_takes_long_is_told_of(
    interactive: bool, switch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal(interactive)
    real = client.compile_text

    def slow(*args: Any, **kwargs: Any) -> Any:
        threading.Event().wait(0.3)
        return real(*args, **kwargs)

    monkeypatch.setattr(client, "compile_text", slow)
    monkeypatch.setattr(compile_progress, "PATIENCE", 0.05)
    monkeypatch.setattr(compile_progress, "_advised", False)
    monkeypatch.setattr(compile_progress.sys, "stderr", stream)
    with override("enable_compilation_cache", False), pullback.compile_progress(switch):

        def some_function(x: Any) -> Any:
            return x * 0.125 + 17

        jit(some_function)(1.0)
    lines = stream.text.splitlines()
    if not (interactive and switch):
        assert not lines
        return
    assert len(lines) == 2
    assert lines[0].startswith("pullback: compiling jit(some_function), about ")
    assert lines[0].endswith("runs calls uncompiled meanwhile, rounded otherwise (docs/compile_time.md)")
    assert 'config.update("tiered", "auto")' in lines[0]
    assert lines[1].startswith("pullback: compiled jit(some_function), in 0.")
    assert compile_progress._advice() == ""  # once a process


def test_where_nobody_looks_it_is_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(compile_progress, "PATIENCE", 0.0)
    monkeypatch.setattr(compile_progress.sys, "stderr", Terminal(False))
    monkeypatch.setattr(compile_progress, "_advised", False)
    with override("enable_compilation_cache", False), caplog.at_level(logging.INFO, "pullback"):
        jit(lambda x: x * 0.125 + 21)(1.0)
        with pullback.tiered("auto"):
            jit(lambda x: x * 0.125 + 22)(1.0)
    first, second = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r'compiled jit\(<lambda>\), in 0.\d s; config.update\("tiered", "auto"\) .*', first)
    assert re.fullmatch(r"compiled jit\(<lambda>\), in 0.\d s", second)


def test_a_compilation_that_takes_no_time_is_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(compile_progress.sys, "stderr", stream)
    with override("enable_compilation_cache", False):
        jit(lambda x: x * 0.125 + 18)(1.0)
    assert stream.text == ""


@pytest.mark.parametrize("stream", [None, object()], ids=["none", "no stream"])
def test_a_stream_that_is_none_is_no_terminal(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_progress.sys, "stderr", stream)
    assert not waiting.is_interactive()
    compile_progress._write("lost")


def test_notebooks_are_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Notebook:
        kernel = object()

    class Module:
        get_ipython = staticmethod(Notebook)

    monkeypatch.setitem(compile_progress.sys.modules, "IPython", Module)
    monkeypatch.setattr(compile_progress.sys, "stderr", Terminal(False))
    assert waiting.is_interactive()


def test_the_log_says_the_phases_and_why_a_program_was_not_in_the_cache(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def lines(switch: bool = True) -> list[str]:
        caplog.clear()

        def named(x: Any) -> Any:
            return x * 0.125 + 19

        with (
            override("compilation_cache_dir", str(tmp_path)), override("enable_compilation_cache", switch),
            pullback.log_compiles(), caplog.at_level(logging.WARNING, "pullback"),
        ):  # fmt: skip
            jit(named)(1.0)
        named = None  # so that the next call has no program in memory
        gc.collect()
        return [record.getMessage() for record in caplog.records]

    first, second, third = lines()
    assert first.startswith("traced named in 0.")
    assert second.startswith("lowered jit(named) in 0.")
    assert third.startswith("compiled jit_named in ")
    assert third.endswith(f": no program of this text is kept in {tmp_path}")
    assert lines()[2].startswith("loaded jit_named in ")
    assert lines(False)[2].endswith(": the cache is off (enable_compilation_cache)")
    (file,) = tmp_path.iterdir()
    name = file.name
    file.rename(tmp_path / (name[:32] + "0" * 32))
    assert "the program was compiled before, but with other options" in lines()[2]


def test_the_log_says_which_calls_are_answered_eagerly(held: Held, caplog: pytest.LogCaptureFixture) -> None:
    with pullback.log_compiles(), caplog.at_level(logging.WARNING, "pullback"):
        jit(lambda x: x * 0.125 + 20)(1.0)
    said = "calls of <lambda> run uncompiled while it compiles: about 1.6e-05 s each, and .* s for the compiler"
    assert re.search(said, caplog.text)


def test_the_first_entry_of_several_threads_is_that_of_all() -> None:
    cache: Cache = Cache()
    assert cache.keep("key", 1, first=True) == 1
    assert cache.keep("key", 2, first=True) == 1
    assert cache.keep("key", 3) == 3
    assert cache == {"key": 3}
