"""Calls of Python functions from transformed and compiled functions."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    ShapeDtypeStruct,
    debug,
    disable_jit,
    enable_x64,
    errors,
    grad,
    jit,
    jvp,
    lax,
    linearize,
    make_jaxpr,
    pure_callback,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.backends.hlo.emit import emit_module
from pullback.backends.host import calls
from pullback.core.trace import state
from pullback.core.types import ShapedArray
from pullback.experimental import io_callback
from pullback.transforms.programs.callbacks import VMAP_METHODS, without_effects
from pullback.transforms.traces.dce import dce_closed_jaxpr
from pullback.transforms.traces.jaxprs import linearize_jaxpr
from pullback.transforms.traces.partial_eval import partial_eval_jaxpr

SCALAR = ShapeDtypeStruct((), "float32")
BOTH = pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
Way = Callable[[Any], Any]


def like(x: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


# pure_callback -------------------------------------------------------------------------------------------------------


@BOTH
def test_trees_of_arguments_and_results(way: Way) -> None:
    def host(pair: Any, *, scale: Any) -> Any:
        assert all(type(x) is np.ndarray for x in (*pair, scale))
        return {"sum": pair[0] + pair[1] * scale, "n": np.int32(pair[0].size)}

    def f(a: Any, b: Any) -> Any:
        shapes = {"sum": like(a), "n": ShapeDtypeStruct((), "int32")}
        return pure_callback(host, shapes, (a, b), scale=2.0)

    out = way(f)(np.arange(3.0, dtype=np.float32), jnp.ones(3))
    assert np.asarray(out["sum"]).tolist() == [2, 3, 4]
    assert int(out["n"]) == 3
    assert (out["sum"].dtype, out["n"].dtype) == (np.float32, np.int32)


@BOTH
@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int8", "uint8", "int32", "uint32", "int4", "float16", "bfloat16", "float32", "complex64"),
        *("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"),
    ],
)
def test_every_dtype_there_and_back(way: Way, dtype: str) -> None:
    x = jnp.asarray([[0, 1], [1, 1]]).astype(dtype)
    out = way(lambda x: pure_callback(lambda x: x, like(x), x))(x)
    assert out.dtype == x.dtype
    assert np.array_equal(np.asarray(out), np.asarray(x))


@BOTH
def test_random_keys_are_given_as_arrays_of_ours(way: Way) -> None:
    key = pullback.random.key(7)
    same = way(lambda key: pure_callback(lambda k: k, ShapeDtypeStruct((), key.dtype), key))(key)
    assert pullback.random.bits(same) == pullback.random.bits(key)
    keys = pullback.random.split(key, 3)
    draw = lambda k: pure_callback(pullback.random.uniform, SCALAR, k, vmap_method="sequential")
    expected = [float(pullback.random.uniform(k)) for k in keys]
    assert np.asarray(way(vmap(draw))(keys)).tolist() == expected


@BOTH
def test_numbers_and_wide_results_are_narrowed(way: Way) -> None:
    f = way(lambda x: pure_callback(lambda x: float(x), SCALAR, x))
    assert float(f(2.5)) == 2.5
    assert way(lambda x: pure_callback(np.float64, SCALAR, x))(2.5).dtype == np.float32
    with enable_x64():
        wide = ShapeDtypeStruct((), "float64")
        assert way(lambda x: pure_callback(np.float64, wide, x))(2.5).dtype == np.float64
    for call in (pure_callback, io_callback):
        with pytest.raises(ValueError, match=r"cannot specify 64-bit types such as int64 .* declare int32"):
            way(lambda x, call=call: call(lambda x: 1, ShapedArray((), np.dtype("int64")), x))(2.5)


@BOTH
def test_any_numpy_function_can_be_called(way: Way) -> None:
    import scipy.special

    x = jnp.linspace(0.5, 2.0, 4)
    out = way(lambda x: pure_callback(lambda x: scipy.special.jv(1, x), like(x), x))(x)
    np.testing.assert_allclose(np.asarray(out), scipy.special.jv(1, np.asarray(x)), rtol=1e-6)


@BOTH
def test_operands_are_read_only_and_stay(way: Way) -> None:
    kept: list[Any] = []

    def host(x: Any) -> Any:
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 5
        kept.append(x)
        return x * 2

    f = way(lambda x: jnp.sum(pure_callback(host, like(x), jnp.exp(x))))
    for i in range(5):
        f(jnp.full((1000,), float(i)))
    assert [float(x[0]) for x in kept] == pytest.approx([np.exp(np.float32(i)) for i in range(5)], rel=1e-6)


@BOTH
def test_what_the_function_keeps_and_changes_is_not_seen(way: Way) -> None:
    buffer = np.zeros(3, np.float32)

    def host(x: Any) -> Any:
        buffer[:] = x
        return buffer

    f = way(lambda x: pure_callback(host, like(x), x))
    first = f(jnp.ones(3))
    f(jnp.zeros(3))
    assert np.asarray(first).tolist() == [1, 1, 1]


@BOTH
@pytest.mark.parametrize("method", VMAP_METHODS)
@pytest.mark.parametrize("in_axes", [(0, None), (1, 0), (None, 0)])
def test_vmap(way: Way, method: str, in_axes: Any) -> None:
    shapes = []

    def host(x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return np.sum(x, -1) * y

    def f(x: Any, y: Any) -> Any:
        return pure_callback(host, SCALAR, x, y, vmap_method=method)

    x = np.arange(6, dtype=np.float32).reshape(3, 2) if in_axes[0] != 1 else np.ones((2, 3), np.float32)
    x = x[0] if in_axes[0] is None else x
    y = np.float32(2) if in_axes[1] is None else np.arange(3, dtype=np.float32)
    expected = vmap(lambda x, y: jnp.sum(x, -1) * y, in_axes)(x, y)
    np.testing.assert_array_equal(np.asarray(way(vmap(f, in_axes))(x, y)), np.asarray(expected))
    mapped = [axis is not None for axis in in_axes]
    if method.startswith("sequential"):
        assert shapes == [((2,), ())] * 3
    else:
        own = {"expand_dims": (1,), "broadcast_all": (3,), "legacy_vectorized": ()}[method]
        front = [(3,) if m else own for m in mapped]
        assert shapes == [((*front[0], 2), front[1])]


@pytest.mark.parametrize("method", VMAP_METHODS[:-1])
def test_vmap_of_vmap(method: str) -> None:
    def f(x: Any, y: Any) -> Any:
        return pure_callback(lambda x, y: x + y, SCALAR, x, y, vmap_method=method)

    x, y = np.arange(2, dtype=np.float32), np.arange(3, dtype=np.float32)
    table = vmap(vmap(f, (None, 0)), (0, None))(x, y)
    assert np.asarray(table).tolist() == [[0, 1, 2], [1, 2, 3]]
    both = vmap(vmap(f))(x[:, None] + y, np.ones((2, 3), np.float32))
    assert np.asarray(both).tolist() == [[1, 2, 3], [2, 3, 4]]


def test_vmap_over_nothing() -> None:
    f = vmap(lambda x: pure_callback(np.sin, SCALAR, x, vmap_method="sequential"))
    assert f(jnp.zeros(0)).shape == jit(f)(jnp.zeros(0)).shape == (0,)


def test_vmap_without_a_method_is_refused() -> None:
    with pytest.raises(errors.CallbackError, match="vmap_method is missing") as info:
        vmap(lambda x: pure_callback(np.sin, SCALAR, x))(jnp.ones(2))
    assert isinstance(info.value, NotImplementedError)
    assert vmap(lambda x: x + pure_callback(np.sin, SCALAR, 0.0))(jnp.ones(2)).shape == (2,)


def test_no_such_method() -> None:
    with pytest.raises(ValueError, match=r"vmap_method must be None or one of 'sequential'.*got 'all'"):
        pure_callback(np.sin, SCALAR, 1.0, vmap_method="all")


@BOTH
@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_derivatives_are_refused(way: Way, call: Any) -> None:
    f = way(lambda x: call(np.sin, SCALAR, x))
    with pytest.raises(errors.CallbackError, match=r"sin was differentiated.*custom_jvp") as info:
        grad(f)(1.0)
    assert isinstance(info.value, ValueError)
    with pytest.raises(errors.CallbackError, match="was differentiated"):
        jvp(f, (1.0,), (1.0,))


@BOTH
@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_results_are_checked(way: Way, call: Any) -> None:
    def returning(result: Any) -> Any:
        return way(lambda x: call(lambda x: result, SCALAR, x))

    with pytest.raises(errors.CallbackError, match=r"result 0 is declared as f32\[\].*returned f32\[3\]"):
        returning(np.ones(3, np.float32))(1.0)
    with pytest.raises(errors.CallbackError, match=r"result 0 is declared as f32\[\].*returned i32\[\]"):
        returning(np.int32(1))(1.0)
    with pytest.raises(errors.CallbackError, match="has 1 arrays, but the function returned 2"):
        returning((1.0, 2.0))(1.0)
    with pytest.raises(errors.OperandError, match="'text'"):
        returning("text")(1.0)


def test_operands_are_checked() -> None:
    with pytest.raises(errors.OperandError, match=r"pure_callback of .*'text'.*functools.partial"):
        pure_callback(np.sin, SCALAR, "text")
    with pytest.raises(errors.ArgumentError, match="pure_callback: callback must be a function, got 3"):
        pure_callback(3, SCALAR, 1.0)  # type: ignore[arg-type]


def test_a_pure_call_that_nobody_needs_is_left_out() -> None:
    def never(x: Any) -> Any:
        raise AssertionError

    def f(x: Any) -> Any:
        pure_callback(never, SCALAR, x)
        return x + 1

    assert float(jit(f)(1.0)) == 2.0


# Exceptions ----------------------------------------------------------------------------------------------------------


class Odd(BaseException):
    pass


@BOTH
@pytest.mark.parametrize("kind", [KeyError, Odd, KeyboardInterrupt, errors.ShapeError])
@pytest.mark.parametrize(
    "call",
    [
        lambda host, x: pure_callback(host, SCALAR, x),
        lambda host, x: io_callback(host, SCALAR, x),
        lambda host, x: io_callback(host, SCALAR, x, ordered=True),
        lambda host, x: debug.callback(host, x),
        lambda host, x: debug.callback(host, x, ordered=True),
    ],
)
def test_an_exception_reaches_the_caller_with_its_own_traceback(way: Way, kind: Any, call: Any) -> None:
    cause = LookupError("before")

    def host(x: Any) -> Any:
        raise kind("from the host") from cause

    with pytest.raises(kind, match="from the host") as info:
        way(lambda x: call(host, x))(1.0)
    raised = info.value
    outer = [frame.name for frame in traceback.extract_tb(raised.__traceback__)]
    if way is jit and issubclass(kind, Exception):  # what a program raises is an error of the runtime as well
        assert isinstance(raised, errors.JaxRuntimeError)
        raised = raised.__cause__
    assert type(raised) is kind
    assert raised.__cause__ is cause
    frames = [frame.name for frame in traceback.extract_tb(raised.__traceback__)]
    if kind is not errors.ShapeError:
        assert frames[-1] == "host"
    assert outer[0] == "test_an_exception_reaches_the_caller_with_its_own_traceback"
    assert float(way(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize("size", [1, 100_000])
def test_an_interrupt_before_the_call_of_a_host_function_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The runtime has only its text, for it comes before the wrapper of the function can store it."""

    def interrupted(*operands: Any) -> Any:
        raise KeyboardInterrupt

    x = jnp.ones(size)
    with monkeypatch.context() as patched:
        patched.setattr(calls.HostCall, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jit(lambda x: pure_callback(lambda v: v, x, x))(x)
    assert jit(lambda x: pure_callback(lambda v: v + 1, x, x))(x)[0] == 2.0


def test_exceptions_of_programs_in_several_threads() -> None:
    def host(x: Any) -> Any:
        raise ValueError(f"number {int(x)}")

    f = jit(lambda x: pure_callback(host, SCALAR, x) + 1)
    found: list[Any] = []

    def run(i: int) -> None:
        for _ in range(20):
            try:
                f(float(i))
            except ValueError as error:
                found.append((i, str(error)))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(text.endswith(f"raised an error: ValueError: number {i}") for i, text in found)


class Coded(Exception):
    """Its ``__init__`` takes more than a message."""

    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


@pytest.mark.parametrize(
    ("cause", "attributes"),
    [
        (ValueError("plain"), {}),
        (KeyError("key"), {}),
        (Coded(3, reason="tired"), {"code": 3, "reason": "tired"}),
        (FileNotFoundError(2, "no such file"), {}),
        (StopIteration(1), {}),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "why"), {}),
        (FloatingPointError("nan"), {}),
        (errors.CallbackError("ours"), {}),
        (MemoryError("much"), {}),
    ],
)
@pytest.mark.parametrize("wrapped", [jit, lambda f: jit(vmap(f)), lambda f: jit(lambda x: lax.map(f, x))])
def test_an_error_in_a_program_is_the_runtimes_and_also_of_its_own_class(
    cause: Exception, attributes: dict[str, Any], wrapped: Way
) -> None:
    def host(x: Any) -> Any:
        raise cause

    with pytest.raises(errors.JaxRuntimeError) as info:
        wrapped(lambda x: pure_callback(host, like(x), x, vmap_method="sequential"))(jnp.ones(2))
    raised: Any = info.value
    assert isinstance(raised, RuntimeError)
    assert isinstance(raised, type(cause))
    assert raised.__cause__ is cause
    assert raised.args == (str(raised),)
    assert f"pure_callback of host raised an error: {traceback.format_exception_only(cause)[0]}".strip() == str(raised)
    assert {name: getattr(raised, name) for name in attributes} == attributes
    copy = pickle.loads(pickle.dumps(raised)) if type(cause) is not Coded else raised
    assert type(copy) is type(raised)
    assert str(copy) == str(raised)


def test_an_error_whose_class_cannot_be_extended_is_still_the_cause() -> None:
    group = ExceptionGroup("two", [ValueError("a"), KeyError("b")])

    def host(x: Any) -> Any:
        raise group

    with pytest.raises(errors.JaxRuntimeError, match="two") as info:
        jit(lambda x: pure_callback(host, SCALAR, x))(1.0)
    assert info.value.__cause__ is group


def test_an_error_within_a_program_that_a_callback_runs_is_not_wrapped_twice() -> None:
    def host(x: Any) -> Any:
        raise ValueError("inside")

    inner = jit(lambda x: pure_callback(host, SCALAR, x))
    with pytest.raises(errors.JaxRuntimeError) as info:
        jit(lambda x: pure_callback(lambda x: np.asarray(inner(x)), SCALAR, x))(1.0)
    assert type(info.value.__cause__) is ValueError
    assert str(info.value).count("raised an error") == 1


def test_eager_callbacks_raise_what_the_function_raised() -> None:
    def host(x: Any) -> Any:
        raise ValueError("eager")

    with pytest.raises(ValueError, match=r"^eager$") as info:
        pure_callback(host, SCALAR, 1.0)
    assert type(info.value) is ValueError


@pytest.mark.parametrize("name", ["CompilationError", "ExecutionError", "AllocationError", "TransferGuardError"])
def test_errors_of_the_compiler_and_its_runtime_have_one_class(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.JaxRuntimeError)
    assert issubclass(errors.JaxRuntimeError, RuntimeError)


def test_the_first_of_several_programs_fails_where_it_is_called() -> None:
    x = jnp.ones((600, 600))

    def host(x: Any) -> Any:
        raise ValueError("late")

    slow = jit(lambda x: pure_callback(host, like(x), jnp.sin(x) @ x))
    for _ in range(5):
        with pytest.raises(ValueError, match="late"):
            slow(x + 0)


# Effects -------------------------------------------------------------------------------------------------------------


class Calls:
    """Counts calls of a function that has effects."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def __call__(self, x: Any) -> Any:
        self.seen.append(np.asarray(x).item())
        return np.asarray(x)

    def debug(self, x: Any, **options: Any) -> Any:
        debug.callback(self, x, **options)
        return jnp.sin(x)

    def io(self, x: Any, **options: Any) -> Any:
        io_callback(self, SCALAR, x, **options)
        return jnp.sin(x)


ONCE: dict[str, Any] = {
    "call": lambda f: f(2.0),
    "jit": lambda f: jit(f)(2.0),
    "jit of jit": lambda f: jit(lambda x: jit(f)(x) + 1)(2.0),
    "results that nobody needs": lambda f: jit(lambda x: (f(x), x)[1])(2.0),
    "nested results that nobody needs": lambda f: jit(lambda x: (jit(f)(x), x)[1])(2.0),
    "no results": lambda f: jit(lambda x: (f(x), None)[1])(2.0),
    "a result that is an argument": lambda f: jit(lambda x, y: (f(x), y)[1])(2.0, 3.0),
    "inline": lambda f: jit(lambda x: jit(f, inline=True)(x))(2.0),
    "unused kept": lambda f: jit(lambda x, y: (f(x), y)[1], keep_unused=True)(2.0, 3.0),
    "ahead of time": lambda f: jit(f).lower(2.0).compile()(2.0),
    "vmap of the rest": lambda f: vmap(lambda y: f(2.0) * y)(jnp.ones(3)),
    "jit of vmap of the rest": lambda f: jit(vmap(lambda y: f(2.0) * y))(jnp.ones(3)),
}
DIFFERENTIATED: dict[str, Any] = {
    "grad": lambda f: grad(f)(2.0),
    "value_and_grad": lambda f: value_and_grad(f)(2.0),
    "jit of grad": lambda f: jit(grad(f))(2.0),
    "grad of jit": lambda f: grad(jit(f))(2.0),
    "jit of grad of jit": lambda f: jit(grad(jit(f)))(2.0),
    "grad of jit of jit": lambda f: grad(jit(lambda x: jit(f)(x) * x))(2.0),
    "jvp": lambda f: jvp(f, (2.0,), (1.0,)),
    "jvp of jit": lambda f: jvp(jit(f), (2.0,), (1.0,)),
    "jit of jvp": lambda f: jit(lambda x: jvp(f, (x,), (x,)))(2.0),
    "vjp": lambda f: vjp(jit(f), 2.0)[1](1.0),
    "linearize": lambda f: (lambda linear: [linear(1.0), linear(2.0)])(linearize(jit(f), 2.0)[1]),
    "grad of grad": lambda f: grad(grad(jit(f)))(2.0),
    "hessian": lambda f: pullback.hessian(jit(f))(2.0),
    "gradient that nobody needs": lambda f: jit(lambda x: (grad(f)(x), x)[1])(2.0),
}


@pytest.mark.parametrize("name", [*ONCE, *DIFFERENTIATED])
@pytest.mark.parametrize("options", [{}, {"ordered": True}])
def test_a_call_for_its_effects_happens_once(name: str, options: Any) -> None:
    calls = Calls()
    program = {**ONCE, **DIFFERENTIATED}[name]
    program(lambda x: calls.debug(x, **options))
    pullback.effects_barrier()
    assert calls.seen == [2.0]


@pytest.mark.parametrize("name", ONCE)
def test_io_callback_happens_once(name: str) -> None:
    for options in ({}, {"ordered": True}):
        calls = Calls()
        ONCE[name](lambda x, calls=calls, options=options: calls.io(x, **options))
        assert calls.seen == [2.0]


@pytest.mark.parametrize("program", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f)), lambda f: vmap(grad(f))])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_mapped_call_happens_for_each_example(program: Any, ordered: bool) -> None:
    calls = Calls()
    program(lambda x: calls.debug(x, ordered=ordered))(jnp.arange(3.0))
    assert calls.seen == [0.0, 1.0, 2.0]


def test_mapped_io_callback() -> None:
    calls = Calls()
    f = vmap(lambda x: io_callback(calls, SCALAR, x))
    assert np.asarray(f(jnp.arange(3.0))).tolist() == np.asarray(jit(f)(jnp.arange(3.0))).tolist() == [0, 1, 2]
    assert calls.seen == [0, 1, 2] * 2
    with pytest.raises(errors.CallbackError, match="ordered=True cannot be mapped"):
        vmap(lambda x: io_callback(calls, SCALAR, x, ordered=True))(jnp.arange(3.0))


def test_equal_effects_are_not_merged() -> None:
    calls = Calls()

    def f(x: Any) -> Any:
        return io_callback(calls, SCALAR, x) + io_callback(calls, SCALAR, x)

    assert float(jit(f)(3.0)) == 6.0
    assert calls.seen == [3.0, 3.0]

    @jit
    def g(x: Any) -> Any:
        return calls.debug(x)

    assert float(jit(lambda x: g(x) + g(x))(0.5)) == pytest.approx(2 * np.sin(0.5))
    assert calls.seen == [3.0, 3.0, 0.5, 0.5]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_calls_keep_their_order(nested: bool, ordered: bool) -> None:
    order: list[int] = []

    def note(i: int) -> Callable[..., None]:
        return lambda *xs: order.append(i)

    def inner(x: Any) -> Any:
        debug.callback(note(100), jnp.tanh(x).sum(), ordered=ordered)
        return x * 2

    def f(x: Any) -> Any:
        for i in range(20):
            y = jnp.sin(x) @ x if i % 3 == 0 else x
            if i % 2:
                debug.callback(note(i), y, ordered=ordered)
            else:
                x = x + 0 * io_callback(lambda y, i=i: (order.append(i), np.float32(0))[1], SCALAR, y, ordered=ordered)
            if i == 10:
                x = (jit(inner) if nested else inner)(x)
        return x

    jit(f)(jnp.ones((200, 200)))
    assert order == [*range(11), 100, *range(11, 20)]


def test_effects_in_jaxprs_are_kept_by_their_transformations() -> None:
    calls = Calls()
    closed = make_jaxpr(jit(lambda x, y: (calls.debug(x), jnp.sin(y))))(1.0, 2.0)
    assert closed.jaxpr.effect
    assert [e.primitive.name for e in closed.eqns] == ["jit"]
    smaller, used = dce_closed_jaxpr(closed, [False, False])
    assert used == [True, False]
    assert smaller.eqns[0].effect
    parts = partial_eval_jaxpr(closed, [False, True])
    assert (parts.known.jaxpr.effect, parts.unknown.jaxpr.effect) == (True, False)
    parts = partial_eval_jaxpr(closed, [True, False])
    assert (parts.known.jaxpr.effect, parts.unknown.jaxpr.effect) == (False, True)
    linear = linearize_jaxpr(closed, [True, True])
    assert (linear.primal.jaxpr.effect, linear.linear.jaxpr.effect) == (True, False)
    assert not make_jaxpr(jnp.sin)(1.0).jaxpr.effect
    assert calls.seen == []


@BOTH
def test_io_callback_without_results(way: Way) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        assert io_callback(lambda x: seen.append(int(x)), None, x, ordered=True) is None
        return x

    way(f)(3)
    assert seen == [3]


def test_effects_that_are_left_out_in_one_thread_happen_in_another() -> None:
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: debug.callback(lambda: seen.append("other"))) for _ in range(2)]
    with without_effects():
        debug.callback(lambda: seen.append("own"))
        threads[0].start()
        threads[0].join()
    threads[1].start()
    threads[1].join()
    debug.callback(lambda: seen.append("own"))
    assert seen == ["other", "other", "own"]


# The state in which a function is called -----------------------------------------------------------------------------


@pytest.mark.parametrize("way", [lambda f: f, jit, grad, lambda f: jit(grad(f)), lambda f: grad(jit(f))])
def test_the_function_runs_outside_of_all_transformations(way: Way) -> None:
    seen: list[Any] = []

    def host(x: Any) -> None:
        seen.append((state.trace.transformation, dict(state.axes), float(grad(jnp.sin)(x)), float(jit(jnp.cos)(x))))

    def f(x: Any) -> Any:
        debug.callback(host, x)
        return x * x

    way(f)(0.0)
    assert seen == [("evaluation", {}, 1.0, 1.0)]


def test_it_keeps_the_switches_of_the_caller() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        debug.callback(lambda x: seen.append(jnp.asarray(1.0).dtype.name), x)
        return x @ x

    with enable_x64():
        compiled = jit(f)
        for _ in range(3):
            compiled(jnp.ones((300, 300), "float32"))
    assert seen == ["float64"] * 3


def test_numpy_warns_as_usual() -> None:
    def host(x: Any) -> Any:
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            return np.float32(1) / x

    assert np.isinf(float(pure_callback(host, SCALAR, 0.0)))


def test_programs_within_calls_of_programs() -> None:
    inner = jit(lambda x: jnp.sin(x) @ x)

    def f(x: Any) -> Any:
        return pure_callback(inner, like(x), x + 0) @ x

    x = jnp.ones((300, 300)) / 300
    np.testing.assert_allclose(np.asarray(jit(f)(x)), np.asarray(f(x)), rtol=1e-5)


# debug.print ---------------------------------------------------------------------------------------------------------


@BOTH
def test_print(way: Way, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, y: Any) -> Any:
        debug.print("x = {}, y = {y:.2f}, {{}} {}", x, "text", y=y)
        debug.print("{x[1]} {x.shape} {n} {flag!r}", x=x, n=3, flag=None)
        debug.print("nothing")
        return x

    way(f)(jnp.arange(3), 0.5)
    assert capsys.readouterr().out == "x = [0 1 2], y = 0.50, {} text\n1 (3,) 3 None\nnothing\n"


def test_print_under_transformations(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        debug.print("x = {}", x)
        return jnp.sin(x)

    grad(f)(1.0)
    jit(grad(f))(2.0)
    grad(jit(f))(3.0)
    vmap(f)(jnp.arange(2.0))
    jit(vmap(f))(jnp.arange(2.0))
    with disable_jit():
        jit(f)(4.0)
    values = [line.removeprefix("x = ") for line in capsys.readouterr().out.splitlines()]
    assert values == ["1.0", "2.0", "3.0", "0.0", "1.0", "0.0", "1.0", "4.0"]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (("{} {}", 1), {}, "refers to argument 1, but there are 1 positional"),
        (("{0} {2}", 1, 2), {}, "refers to argument 2"),
        (("{x}",), {"y": 1}, "refers to an argument 'x'"),
        (("{}", 1, 2), {}, "does not refer to argument 1"),
        (("text", 1), {}, "does not refer to argument 0"),
        (("{}", 1), {"x": 1}, "does not refer to the argument 'x'"),
        (("{",), {}, "not a valid format string"),
        (("{:{width}}", 1), {}, "refers to an argument 'width'"),
        ((3,), {}, "takes a format string"),
    ],
)
def test_a_text_that_does_not_fit_is_refused_at_once(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_jaxpr(lambda: debug.print(*args, **kwargs))()


def test_a_width_may_be_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    debug.print("{:{width}}|", 1, width=3)
    debug.print("{:{}}|", 1, 4)
    assert capsys.readouterr().out == "  1|\n   1|\n"


# debug.breakpoint ----------------------------------------------------------------------------------------------------

PROGRAM = """
import pullback
import pullback.numpy as jnp
def f(x):
    y = jnp.sin(x) * 2
    pullback.debug.breakpoint()
    return y
with pullback.disable_jit():
    print("result", pullback.jit(f)(0.5))
"""


def test_breakpoint_stops_in_the_users_function() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input="p 'y is', y\nc\n", capture_output=True, text=True, check=True
    )
    assert "('y is', Array(0.95885" in done.stdout
    assert "f()" in done.stdout
    assert "result 0.95885" in done.stdout


COMPILED = """
import pullback
import pullback.numpy as jnp
def f(x, n=3):
    y = {"sine": jnp.sin(x), "n": n}
    pullback.debug.breakpoint()
    return y["sine"] * x
g = pullback.jit(f)
print("result", g(0.5))
print("result", g(2.0))
print("result", pullback.jit(pullback.grad(f))(0.5))
print("result", pullback.vmap(g)(jnp.arange(2.0)))
"""


def test_breakpoint_stops_the_program_that_is_made_of_a_function(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(COMPILED)
    done = subprocess.run(
        [sys.executable, str(program)], input="p 'y is', y, x, n\nc\n" * 5, capture_output=True, text=True, check=True
    )
    line, text = (7, 'return y["sine"] * x') if sys.version_info < (3, 13) else (6, "pullback.debug.breakpoint()")
    assert done.stdout.count(f"program.py({line})f()") == 5  # two calls, a gradient, two examples
    assert done.stdout.count(f"-> {text}") == 5
    for sine, x in (("0.47942", 0.5), ("0.90929", 2), ("0.", 0), ("0.84147", 1)):
        assert re.search(rf"'y is', {{'n': 3, 'sine': array\({sine}\d*, [^)]*\)}}, array\({x}\.?,", done.stdout)
    assert [x[:6] for x in re.findall(r"result (\S+)", done.stdout)][:2] == ["0.2397", "1.8185"]


def test_breakpoints_of_other_debuggers_are_refused() -> None:
    with pytest.raises(errors.UnsupportedArgumentError, match="backend must be 'cli', Python's debugger; got 'web'"):
        jit(lambda x: debug.breakpoint(backend="web"))(1.0)


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_a_debugger_on_other_streams(way: Any) -> None:
    given, written = io.StringIO("p 2 * y\nc\n"), io.StringIO()

    def f(x: Any) -> Any:
        y = 4 * x
        debug.breakpoint(stdin=given, stdout=written)
        return y

    assert way(f)(3.0) == 12
    pullback.effects_barrier()
    assert "(Pdb) " in written.getvalue()
    assert "24." in written.getvalue()


# Elsewhere -----------------------------------------------------------------------------------------------------------


def test_platforms_that_cannot_call_python_say_so() -> None:
    from pullback.backends.host.calls import check_platform

    message = "compiled programs for 'tpu' cannot call Python functions .* only those for 'cpu', 'cuda', 'rocm'"
    with pytest.raises(errors.BackendError, match=message):
        check_platform("tpu")


@pytest.mark.parametrize(("platform", "target"), [("cuda", "gpu"), ("rocm", "gpu"), ("cpu", "cpu"), ("tpu", "cpu")])
def test_programs_for_gpus_call_python_by_another_name(platform: str, target: str) -> None:
    def f(x: Any) -> Any:
        debug.print("{}", x)
        return pullback.pure_callback(np.sin, x, x)

    from pullback.backends.host.calls import TARGETS, check_platform

    if platform in TARGETS:
        check_platform(platform)
    module, _ = emit_module(make_jaxpr(f)(jnp.ones(3)), "f", platform)
    assert set(re.findall(r"xla_ffi_python_\w+", module.text())) == {f"xla_ffi_python_{target}_callback"}


def test_options_of_debug_functions(capsys: Any, caplog: Any) -> None:
    seen: list[Any] = []
    jit(lambda x: debug.callback(ordered=True)(seen.append, x))(1.0)
    jit(lambda x: debug.callback(seen.append, x, partitioned=True))(2.0)
    assert seen == [1, 2]
    with caplog.at_level("INFO", logger="pullback"):
        jit(lambda x: debug.print("logged {}", x, _use_logging=True))(3.0)
    assert "logged 3.0" in caplog.text
    jit(lambda x: debug.print("shown", x, skip_format_check=True, partitioned=True))(4.0)
    debug.print(skip_format_check=True)("also shown", 5)
    assert capsys.readouterr().out == "shown\nalso shown\n"
    for call in (debug.callback, debug.print):
        with pytest.raises(ValueError, match="ordered=True contradicts partitioned=True"):
            call(ordered=True, partitioned=True)
