"""``debug_nans`` and ``debug_infs``: which operation, which line, which pass."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import debug_infs, debug_nans, grad, jit, jvp, linearize, vjp, vmap
from pullback.core.trace import EVAL, Primitive, recorders, state
from pullback.core.types import ShapedArray
from pullback.errors import NonFiniteError
from pullback.transforms.traces.forward import JVPTrace

X = np.array([-1.0, 2.0], np.float32)
AT_ZERO = np.array([0.0, 1.0], np.float32)


def logarithm(x: Any) -> Any:
    y = jnp.log(x)  # the line of the logarithm
    return y.sum()


def root(x: Any) -> Any:
    y = jnp.sqrt(x)  # the line of the root
    return jnp.sum(0.0 * y)


def message(function: Callable[[], Any]) -> str:
    with pytest.raises(FloatingPointError) as info:
        function()
    assert isinstance(info.value, NonFiniteError)
    return str(info.value)


# Eager ---------------------------------------------------------------------------------------------------------


def test_it_names_operation_line_type_and_pass() -> None:
    with debug_nans():
        text = message(lambda: logarithm(X))
    assert text.startswith("log returned NaN in its result of type f32[2], in 1 of 2 elements, in the forward pass, at")
    assert "test_debug_nans.py" in text
    assert "y = jnp.log(x)  # the line of the logarithm" in text
    assert text.endswith("Its operands were finite.")


def test_the_error_ends_at_the_users_line() -> None:
    with debug_nans(), pytest.raises(NonFiniteError) as info:
        jit(logarithm)(X)
    assert "pullback" + os.sep + "transforms" not in str(info.traceback[-1].path)


@pytest.mark.parametrize(
    ("function", "operation"),
    [
        (lambda x: x / x, "div"),
        (lambda x: x * np.float32(np.inf), "mul"),
        (lambda x: (x / 0.0) - (x / 0.0), "div"),
        (lambda x: 0.0 / x, "div"),
        (lambda x: jnp.arccosh(x + 0.0), "acosh"),
        (lambda x: (x * 1e38 * 1e38) @ (1 - x), "dot_general"),
        (lambda x: -(x - 0.0 / x), "div"),
        (lambda x: (x * 0.0 / x + 1) ** 2, "div"),
    ],
)
def test_operators_of_concrete_arrays_are_looked_at(function: Any, operation: str) -> None:
    with debug_nans():
        assert message(lambda: function(jnp.asarray(AT_ZERO))).startswith(f"{operation} returned NaN")
    with debug_nans(), pytest.raises(NonFiniteError):
        jit(function)(AT_ZERO)
    assert not np.isfinite(np.asarray(function(jnp.asarray(AT_ZERO)))).all()


def test_infinities() -> None:
    with debug_infs():
        text = message(lambda: 1 / jnp.asarray(AT_ZERO))
        assert "div returned an infinity" in text
        assert np.isnan(np.asarray(jnp.log(X))[0])
    with debug_nans():
        assert np.isinf(np.asarray(1 / jnp.asarray(AT_ZERO))[0])
        assert "Already its operand 0 had an infinity, operand 1 had an infinity." in message(
            lambda: jnp.exp(jnp.asarray([100.0])) - jnp.exp(jnp.asarray([100.0]))
        )


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"]
)
def test_every_dtype_that_has_nans(dtype: str) -> None:
    x = jnp.asarray([1.0, 0.0]).astype(dtype)
    with debug_nans():
        assert (x + x).dtype == dtype
        with pytest.raises(NonFiniteError):
            (x - x) / (x - x)


def test_what_has_no_nans_passes() -> None:
    with debug_nans(), debug_infs():
        assert int(jit(lambda n, b: jnp.where(b, n // 2, n + 1))(5, True)) == 2
        key = pullback.random.key(0)
        assert pullback.random.normal(key, (3,)).shape == (3,)
        assert np.isfinite(float(jit(grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))(1.0)))


def test_vmap_and_linearize() -> None:
    with debug_nans():
        assert "the line of the logarithm" in message(lambda: vmap(logarithm)(X.reshape(2, 1)))
        assert "the line of the logarithm" in message(lambda: linearize(logarithm, X))
        assert "the line of the logarithm" in message(lambda: jvp(jit(logarithm), (X,), (X,)))


# Passes --------------------------------------------------------------------------------------------------------------


def compiled_outside(f: Any) -> Any:
    return jit(f)


def test_the_backward_pass_un_compiled() -> None:
    with debug_nans():
        text = message(lambda: grad(root)(AT_ZERO))
    assert "mul returned NaN" in text
    assert "in the backward pass (transposition), at" in text
    assert "y = jnp.sqrt(x)  # the line of the root" in text
    assert "Already its operand" in text
    assert "zero times infinity is NaN: keep the operand of that function away from the point" in text
    with debug_nans():
        forward = message(lambda: jnp.asarray([np.float32(np.inf)]) * 0.0)
    assert "Already its operand 0 had an infinity" in forward
    assert "safe_where" not in forward


@pytest.mark.parametrize("transform", [lambda f: jit(grad(f)), lambda f: grad(jit(f)), lambda f: jit(grad(jit(f)))])
def test_the_backward_pass_compiled(transform: Any) -> None:
    with debug_nans():
        text = message(lambda: transform(root)(AT_ZERO))
    assert "mul returned NaN" in text
    assert "in the backward pass (transposition), at" in text
    assert "y = jnp.sqrt(x)  # the line of the root" in text
    assert "of the compiled function" in text


def test_the_backward_pass_of_a_vjp_function() -> None:
    with debug_nans():
        _, back = vjp(root, AT_ZERO)
        assert "in the backward pass" in message(lambda: back(1.0))
        assert "in the backward pass" in message(lambda: jit(back)(1.0))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: jvp(f, (x,), (x,)),
        lambda f: jit(lambda x: jvp(f, (x,), (x,))),
        lambda f: lambda x: jvp(jit(f), (x,), (x,)),
        lambda f: pullback.jacfwd(f),
    ],
)
def test_the_tangents(transform: Any) -> None:
    with debug_nans():
        text = message(lambda: transform(root)(AT_ZERO))
    assert "in the computation of tangents, at" in text
    assert "y = jnp.sqrt(x)  # the line of the root" in text


@pytest.mark.parametrize("transform", [lambda f: grad(f), lambda f: jit(grad(f)), lambda f: grad(jit(f))])
def test_the_forward_pass_within_differentiation(transform: Any) -> None:
    with debug_nans():
        text = message(lambda: transform(lambda x: logarithm(x) * logarithm(x))(X))
    assert "log returned NaN" in text
    assert "in the forward pass" in text


def test_a_derivative_rule_computes_with_infinities() -> None:
    with debug_infs():
        text = message(lambda: grad(root)(AT_ZERO))
    assert "div returned an infinity" in text
    assert "in the computation of tangents" in text


# Compiled ------------------------------------------------------------------------------------------------------------


def test_a_compiled_function_is_run_again() -> None:
    with debug_nans():
        text = message(lambda: jit(logarithm)(X))
    assert text.startswith("log returned NaN in its result of type f32[2], in 1 of 2 elements, in the forward pass, at")
    assert "y = jnp.log(x)  # the line of the logarithm" in text
    assert text.endswith("This is an operation of the compiled function logarithm, which ran again eagerly.")


def test_nested_programs_are_taken_apart() -> None:
    with debug_nans():
        text = message(lambda: jit(lambda x: 2 * jit(logarithm)(x))(X))
    assert text.startswith("log returned NaN")
    assert text.count("compiled function") == 1


def test_the_first_call_and_the_following() -> None:
    f = jit(logarithm)
    assert np.isnan(float(f(X)))
    with debug_nans():
        message(lambda: f(X))
        message(lambda: f(X))
        assert np.isfinite(float(f(AT_ZERO + 1)))
    assert np.isnan(float(f(X)))


def test_donated_arguments_are_there_to_run_again() -> None:
    f = jit(lambda x: jnp.log(x), donate_argnums=0)
    with debug_nans():
        x = jnp.asarray(X) + 0
        assert "log returned NaN" in message(lambda: f(x))
        good = jnp.asarray(AT_ZERO) + 1
        f(good)
        with pytest.raises(pullback.errors.DeletedArrayError):
            good.sum()
    with pytest.raises(pullback.errors.DeletedArrayError):
        f(x).sum() + x


def test_unused_and_captured_arguments() -> None:
    large = jnp.full((100,), -1.0)
    with debug_nans():
        assert "log returned NaN" in message(lambda: jit(lambda a, b: jnp.log(b + large))(1.0, 0.5))


def test_ahead_of_time() -> None:
    with debug_nans():
        compiled = jit(logarithm).lower(X).compile()
        assert "log returned NaN" in message(lambda: compiled(X))


def test_what_does_not_happen_again_is_said() -> None:
    odd_p = Primitive("odd")

    @odd_p.abstract_eval
    def shape(x: ShapedArray) -> ShapedArray:
        return x

    @odd_p.host
    def host(x: Any) -> Any:
        return np.abs(x)

    @odd_p.lowering
    def xla(hlo: Any, x: Any) -> Any:
        return hlo.elementwise("stablehlo.log", x)

    with debug_nans():
        text = message(lambda: jit(lambda x: odd_p.bind(x), inline=False)(X))
    assert "returned NaN, but none of its operations does when they run one by one" in text


def test_effects_do_not_happen_again(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        pullback.debug.print("x = {}", x)
        return jnp.log(x)

    with debug_nans():
        assert "log returned NaN" in message(lambda: jit(f)(-1.0))
    assert capsys.readouterr().out == "x = -1.0\n"


def test_what_io_callback_gives_cannot_be_had_again() -> None:
    calls = []

    def read() -> Any:
        calls.append(1)
        return np.float32(-1)

    f = jit(lambda: jnp.log(pullback.experimental.io_callback(read, pullback.ShapeDtypeStruct((), "float32"))))
    with debug_nans():
        assert "It calls io_callback, so it cannot run again" in message(f)
    assert len(calls) == 1


# Switching -----------------------------------------------------------------------------------------------------------


def is_off() -> bool:
    return JVPTrace.process.__name__ == "process" and state.trace is EVAL and EVAL.quick and not recorders


def test_while_it_is_off_everything_is_as_it_was() -> None:
    assert is_off()
    with debug_nans():
        assert not is_off()
        with debug_infs():
            pass
        with debug_nans(False):
            assert np.isnan(np.asarray(jnp.log(X))[0])
            assert np.isnan(np.asarray(jit(jnp.log)(X))[0])
        assert not is_off()
    assert is_off()
    with pytest.raises(NonFiniteError), debug_nans():
        logarithm(X)
    assert is_off()


def test_the_whole_process() -> None:
    pullback.config.update("jax_debug_nans", True)
    try:
        pullback.config.update("debug_nans", True)
        message(lambda: logarithm(X))
    finally:
        pullback.config.update("debug_nans", False)
    assert is_off()
    assert np.isnan(float(logarithm(X)))


def test_other_threads_are_left_alone() -> None:
    results: list[Any] = []
    with debug_nans():
        thread = threading.Thread(target=lambda: results.extend([logarithm(X), jit(logarithm)(X), grad(root)(AT_ZERO)]))
        thread.start()
        thread.join()
    assert [bool(np.isnan(np.asarray(x)).any()) for x in results] == [True, True, True]


def test_the_environment() -> None:
    code = "import pullback.numpy as jnp; jnp.log(jnp.asarray([-1.0]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PULLBACK_DEBUG_NANS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "NonFiniteError: log returned NaN" in done.stderr
