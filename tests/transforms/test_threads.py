"""Threads that share functions and programs: each computes as if it were alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, grad, jit, jvp, lax, make_jaxpr, vjp, vmap
from pullback.core.jaxpr import jaxpr_as_fun
from pullback.custom_batching import custom_vmap

THREADS = 8
X, ROWS = jnp.arange(3.0) + 0.5, jnp.arange(12.0).reshape(4, 3) + 0.5


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """What functions return that run at the same time, each in a thread of its own; an error of one is raised here."""
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []
    start = threading.Barrier(len(functions))

    def run(i: int) -> None:
        try:
            start.wait()
            results[i] = functions[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "the threads wait for each other"
    if errors:
        raise errors[0]
    return results


@pytest.fixture
def often() -> Iterator[None]:
    """Threads take turns a hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def meeting(rule: Callable[..., Any], parties: int) -> tuple[Callable[..., Any], threading.Event]:
    """A rule in whose midst threads wait for each other, from when the event is set."""
    barrier, on = threading.Barrier(parties, timeout=30), threading.Event()

    def meet(*args: Any) -> Any:
        if on.is_set():
            barrier.wait()
        out = rule(*args)
        if on.is_set():
            barrier.wait()
        return out

    return meet, on


def test_the_rules_of_a_mapped_program_run_in_two_threads_at_once() -> None:
    rule, on = meeting(lambda primals, tangents: (jnp.sin(primals[0]), jnp.cos(primals[0]) * tangents[0]), 2)
    f = pullback.custom_jvp(jnp.sin)
    f.defjvp(rule)
    program = jaxpr_as_fun(make_jaxpr(vmap(f))(ROWS))
    on.set()
    first, second = in_threads(
        lambda: jvp(program, (ROWS,), (ROWS,))[1][0], lambda: make_jaxpr(lambda x: jvp(program, (x,), (x,)))(ROWS)
    )
    np.testing.assert_allclose(np.asarray(first), np.cos(np.asarray(ROWS)) * np.asarray(ROWS), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jaxpr_as_fun(second)(ROWS)[1]), np.asarray(first), rtol=1e-6)


def test_what_vjp_returned_runs_in_two_threads_at_once() -> None:
    rule, on = meeting(lambda x, ct: (jnp.cos(x) * ct,), 2)
    f = pullback.custom_vjp(jnp.sin)
    f.defvjp(lambda x: (jnp.sin(x), x), rule)
    out, back = vjp(vmap(f), ROWS)
    on.set()
    first, second = in_threads(lambda: back(out)[0], lambda: make_jaxpr(back)(out))
    np.testing.assert_allclose(np.asarray(first), np.cos(np.asarray(ROWS)) * np.asarray(out), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jaxpr_as_fun(second)(out)[0]), np.asarray(first), rtol=1e-6)


def test_a_checkpointed_function_that_closes_over_its_trace_runs_again_in_two_threads_at_once() -> None:
    sine, on = meeting(jnp.sin, 2)
    _, back = vjp(lambda w: checkpoint(lambda y: sine(y * w))(w), X)
    on.set()
    first, second = in_threads(lambda: back(jnp.ones(3))[0], lambda: make_jaxpr(back)(jnp.ones(3)))
    np.testing.assert_allclose(np.asarray(first), 2 * np.asarray(X) * np.cos(np.asarray(X) ** 2), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(jaxpr_as_fun(second)(jnp.ones(3))[0]), np.asarray(first), rtol=1e-6)


def test_a_backward_rule_closes_over_a_mapped_value_when_vmap_has_ended() -> None:
    def scaled(s: Any, x: Any) -> Any:
        f = pullback.custom_vjp(lambda x: x * 2.0)
        f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * s,))
        return f(x)

    scales = jnp.arange(4.0)
    out, back = vjp(lambda x: vmap(scaled)(scales, x), jnp.ones(4))
    for found in in_threads(*[lambda: back(out)[0]] * 4):
        np.testing.assert_allclose(np.asarray(found), 2.0 * np.arange(4.0))


def shared_programs() -> dict[str, Callable[[], Any]]:
    f = pullback.custom_vjp(lambda x: jnp.sin(x) * 2.0)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 2.0 * jnp.cos(x),))
    g = pullback.custom_jvp(lambda x: jnp.sin(x) * 2.0)
    g.defjvps(lambda t, out, x: 2.0 * jnp.cos(x) * t)
    h = custom_vmap(jnp.sin)
    h.def_vmap(lambda size, batched, x: (jnp.sin(x), batched[0]))

    def whole(x: Any) -> Any:
        y = g(f(x)) + h(x) + lax.cond(x[0] > 0, jnp.sin, jnp.cos, x)
        return lax.scan(lambda c, _: (f(c), None), y, None, length=2)[0]

    compiled = jit(whole)
    out, back = vjp(vmap(whole), ROWS)
    return {
        "jit": lambda: compiled(X),
        "vmap": lambda: vmap(compiled)(ROWS),
        "grad": lambda: grad(lambda x: compiled(x).sum())(X),
        "vmap of grad": lambda: vmap(grad(lambda x: compiled(x).sum()))(ROWS),
        "jvp of vmap": lambda: jvp(vmap(jit(lambda x: g(f(x)))), (ROWS,), (ROWS,))[1],
        "vjp": lambda: back(out)[0],
        "eager": lambda: vmap(lambda x: g(f(x)) + h(x))(ROWS),
    }


def run_often(programs: dict[str, Callable[[], Any]], times: int, forget: bool) -> None:
    wanted = {name: np.asarray(program()) for name, program in programs.items()}
    pullback.clear_caches()

    def work(number: int) -> None:
        for i in range(times):
            name = list(programs)[(i + number) % len(programs)]
            np.testing.assert_allclose(np.asarray(programs[name]()), wanted[name], rtol=1e-5)
            if forget and number == 0 and i % 20 == 0:
                pullback.clear_caches()

    in_threads(*[lambda i=i: work(i) for i in range(THREADS)])


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("forget", [False, True])
def test_threads_share_programs(forget: bool) -> None:
    run_often(shared_programs(), 21, forget)


@pytest.mark.slow
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", ["jit", "vmap"])
def test_thousands_of_calls_in_eight_threads(name: str) -> None:
    run_often({name: shared_programs()[name]}, 4_000 // THREADS, forget=False)


@pytest.mark.usefixtures("often")
def test_threads_fetch_an_array_at_the_same_time() -> None:
    double = jit(lambda x: x * 2.0)
    for _ in range(20):
        x = double(X)
        readers: list[Callable[[Any], Any]] = [np.asarray, lambda x: x + 1.0, lambda x: x._value, lambda x: x.sum()]
        for found in in_threads(*[partial(read, x) for read in readers * 2]):
            assert np.shape(found) in ((3,), ())
        np.testing.assert_allclose(np.asarray(x), 2.0 * np.asarray(X))
