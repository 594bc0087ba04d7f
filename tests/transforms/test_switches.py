"""Switches for debugging: a program computes the same with them on as off, and in another thread nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import checkpoint, grad, hessian, jit, jvp, lax, linear_transpose, linearize, make_jaxpr, vjp, vmap
from pullback.core.config import override
from pullback.core.trace import EVAL, recorders, state
from pullback.custom_batching import custom_vmap
from pullback.custom_derivatives import linear_call
from tests.helpers import assert_elements_close


@contextmanager
def together(*blocks: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block)
        yield


SWITCHES: dict[str, Callable[[], Any]] = {
    "debug_nans": pullback.debug_nans,
    "debug_infs": pullback.debug_infs,
    "disable_jit": pullback.disable_jit,
    "masked_zeros": pullback.masked_zeros,
    "named_scope": lambda: pullback.named_scope("scope"),
    "numpy_rank_promotion": lambda: pullback.numpy_rank_promotion("raise"),
    "logs": lambda: together(pullback.log_compiles(), pullback.explain_cache_misses()),
    "checks": lambda: together(pullback.enable_checks(), pullback.check_custom_rules()),
    "no checks": lambda: override("enable_checks", False),
}


@pullback.custom_jvp
def by_jvp(x: Any) -> Any:
    return jnp.sin(x)


by_jvp.defjvps(lambda t, out, x: jnp.cos(x) * t)


@pullback.custom_vjp
def by_vjp(x: Any) -> Any:
    return jnp.sin(x)


by_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))


@custom_vmap
def by_vmap(x: Any) -> Any:
    return jnp.sin(x)


by_vmap.def_vmap(lambda size, batched, x: (jnp.sin(x), batched[0]))


def branching(x: Any) -> Any:
    return jnp.sin(x) if x > 0 else -x


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "operations": lambda x: x * jnp.sin(x) + x**2 / 3.0,
    "jit": jit(lambda x: jnp.sin(x) * 2.0),
    "checkpoint": checkpoint(lambda x: jnp.sin(jnp.cos(x))),
    "checkpoint of a branch": checkpoint(branching),
    "branch": branching,
    "custom_jvp": by_jvp,
    "custom_vjp": by_vjp,
    "custom_vmap": by_vmap,
    "linear_call": lambda x: linear_call(lambda r, x: x * r, lambda r, ct: ct * r, 2.0, x),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(
        lambda v: v * 2.0, x, lambda _, b: b / 2.0, symmetric=True
    ),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c), c * x), x, None, length=3)[1].sum(),
    "cond": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (jnp.sin(c[0]) * x, c[1] + 1), (x, 0))[0],
}
POINT, ROWS = 0.7, np.float32([0.3, 0.7, 1.1])
TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(POINT),
    "grad": lambda f: grad(f)(POINT),
    "grad(grad)": lambda f: grad(grad(f))(POINT),
    "hessian": lambda f: hessian(f)(POINT),
    "jvp": lambda f: jvp(f, (POINT,), (2.0,)),
    "vjp": lambda f: vjp(f, POINT)[1](2.0),
    "linearize": lambda f: linearize(f, POINT)[1](2.0),
    "linear_transpose": lambda f: linear_transpose(lambda t: linearize(f, POINT)[1](t), POINT)(2.0),
    "vmap": lambda f: vmap(f)(ROWS),
    "vmap(grad)": lambda f: vmap(grad(f))(ROWS),
    "jit": lambda f: jit(f)(POINT),
    "jit(grad)": lambda f: jit(grad(f))(POINT),
    "grad(jit)": lambda f: grad(jit(f))(POINT),
    "grad(checkpoint)": lambda f: grad(checkpoint(f))(POINT),
    "jit(vmap)": lambda f: jit(vmap(f))(ROWS),
}
NEEDS_VALUES = ("branch", "checkpoint of a branch")
NOT_RECORDED = ("while_loop", "linear_transpose")  # refused, since it carries more than tangents
STAGES = ("vmap", "vmap(grad)", "jit", "jit(grad)", "grad(jit)", "jit(vmap)")


def results(function: str, transformation: str) -> list[np.ndarray[Any, Any]]:
    out = TRANSFORMATIONS[transformation](FUNCTIONS[function])
    return [np.asarray(x) for x in pullback.tree.leaves(out)]


close = partial(assert_elements_close, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_a_switch_does_not_change_what_is_computed(transformation: str, function: str) -> None:
    if function in NEEDS_VALUES and transformation in STAGES:
        pytest.skip("it asks for the value of what is traced")
    if (function, transformation) == NOT_RECORDED:
        pytest.skip("it is refused")
    wanted = results(function, transformation)
    for switch in SWITCHES.values():
        with switch():
            close(results(function, transformation), wanted)
    close(results(function, transformation), wanted)


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_looking_for_leaks_does_not_change_what_is_computed(transformation: str) -> None:
    wanted = results("checkpoint", transformation)
    with pullback.checking_leaks():  # which looks through all objects, so that one function must do
        close(results("checkpoint", transformation), wanted)


def elsewhere(function: Callable[[], Any]) -> Any:
    """What a function returns in another thread."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_switch_does_nothing_in_another_thread(function: str, switch: str) -> None:
    def program() -> str:
        closed = make_jaxpr(grad(FUNCTIONS[function]))(POINT)
        return str([(eqn.primitive.name, eqn.scope) for eqn in closed.eqns])

    def work() -> Any:
        assert state.trace is EVAL
        names = [t for t in ("call", "grad", "linear_transpose") if (function, t) != NOT_RECORDED]
        found = [results(function, name) for name in names]
        return found, "" if function in NEEDS_VALUES else program()

    wanted, text = work()
    with SWITCHES[switch]():
        found, other = elsewhere(work)
    for a, b in zip(found, wanted, strict=True):
        close(a, b)
    assert other == text


# Looking for NaNs ----------------------------------------------------------------------------------------------------


def bad() -> Any:
    return jnp.log(jnp.arange(-1.0, 2.0))


def raises(function: Callable[[], Any]) -> bool:
    try:
        function()
    except FloatingPointError:
        return True
    return False


def test_each_thread_looks_for_nans_by_its_own_switch() -> None:
    with pullback.debug_nans():
        assert raises(bad)
        assert not elsewhere(lambda: raises(bad))
    assert not raises(bad)


def test_a_switch_may_be_the_first_thing_that_a_thread_does() -> None:
    zeros, rows = jnp.zeros(2), jnp.ones((3, 2))

    def checked() -> bool:
        with pullback.debug_nans():
            return raises(lambda: zeros / zeros)

    def ranked() -> bool:
        with pullback.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="numbers of axes"):
            zeros + rows
        return True

    assert elsewhere(checked)
    assert elsewhere(ranked)


def test_the_switch_of_the_process_reaches_threads_that_are_at_work() -> None:
    ready, go, done = (threading.Event() for _ in range(3))
    found: list[Any] = []

    def steps(x: Any) -> Any:  # the thread is within a transformation when the switch is put
        found.append(raises(bad))
        ready.set()
        go.wait(30)
        found.append(raises(bad))
        with pullback.debug_nans(False):
            found.append(raises(bad))
        found.append(raises(lambda: jnp.arange(-1.0, 2.0) / 0.0))
        return x

    def work() -> None:
        vmap(grad(steps))(jnp.ones(3))
        found.append(raises(bad))
        done.wait(30)
        found.append(raises(bad))

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(30)
    pullback.config.update("debug_nans", True)
    try:
        assert raises(bad)
        with pullback.debug_nans(False):
            assert not raises(bad)
        go.set()
        while len(found) < 5:
            thread.join(0.01)
    finally:
        pullback.config.update("debug_nans", False)
        go.set()
        done.set()
    thread.join()
    assert found == [False, True, False, True, True, False]
    assert state.trace is EVAL
    assert not raises(bad)


@pytest.mark.parametrize(
    "wrap", [grad, jit, lambda f: lambda x: jvp(f, (x,), (x,))[1], lambda f: lambda x: vmap(f)(x[None])[0]]
)
def test_a_block_within_a_transformation(wrap: Callable[[Any], Any]) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(raises(bad))
        with pullback.debug_nans():
            seen.append(raises(lambda: jnp.arange(-1.0, 2.0) / 0.0))
            y = jnp.sum(jnp.sin(x))
        seen.append(raises(bad))
        return y

    wrap(f)(jnp.ones(2))
    assert not seen[0]
    assert not seen[2]
    assert seen[1] is (wrap is not jit)  # which records it
    assert state.trace is EVAL


def test_what_failed_before() -> None:
    f = checkpoint(lambda x: jnp.sin(x) if x > 0 else -x)
    with pullback.debug_nans():
        np.testing.assert_allclose(np.asarray(grad(f)(2.0)), np.cos(2.0), rtol=1e-6)
        assert EVAL.quick
        assert EVAL.eager
        np.testing.assert_allclose(elsewhere(lambda: np.asarray(grad(f)(2.0))), np.cos(2.0), rtol=1e-6)


def test_nothing_is_left_of_a_switch() -> None:
    with pytest.raises(FloatingPointError), pullback.debug_nans():
        grad(lambda x: jnp.log(x - 1.0))(0.0)
    assert state.trace is EVAL
    assert state.bottom is EVAL


# Ranks ---------------------------------------------------------------------------------------------------------------


def refused() -> bool:
    try:
        jnp.ones(2) + jnp.ones((3, 2))
    except ValueError:
        return True
    return False


def test_each_thread_asks_for_ranks_by_its_own_switch() -> None:
    operators = dict(vars(type(jnp.ones(2))))
    with pullback.numpy_rank_promotion("raise"):
        assert refused()
        assert not elsewhere(refused)
        assert grad(lambda x: x * (not refused()))(1.0) == 0
        assert dict(vars(type(jnp.ones(2)))) == operators
        with pullback.debug_nans():
            assert refused()
        with pullback.numpy_rank_promotion("allow"):
            assert not refused()
            assert state.trace is EVAL
    assert not refused()
    assert state.trace is EVAL


def test_the_rank_switch_of_the_process_reaches_other_threads() -> None:
    pullback.config.update("numpy_rank_promotion", "raise")
    try:
        assert elsewhere(refused)
        with pullback.numpy_rank_promotion("allow"):
            assert not refused()
            assert elsewhere(refused)
        assert refused()
    finally:
        pullback.config.update("numpy_rank_promotion", "allow")
    assert not elsewhere(refused)
    assert not refused()
    assert not recorders


# Marks ---------------------------------------------------------------------------------------------------------------


def test_a_linear_function_is_still_checked_in_a_scope() -> None:
    with pullback.named_scope("scope"), pytest.raises(TypeError, match="affine"):
        linear_transpose(lambda x: jnp.concatenate([x, jnp.ones(1)]), jnp.ones(2))
