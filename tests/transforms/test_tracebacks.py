"""Tracebacks: a user sees frames of their own, unless the switch ``traceback_filtering`` says otherwise."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import pullback.numpy as jnp
from pullback import (
    eval_shape,
    extend,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core import source
from pullback.core.config import override
from pullback.core.trace import EVAL, state

x3 = jnp.asarray([1.0, 2.0, 3.0])


def fails(x: Any) -> Any:
    return deeper(x)


def deeper(x: Any) -> Any:
    raise ValueError("on purpose")


RUNS: dict[str, Callable[[Callable[..., Any]], Any]] = {
    "grad": lambda f: grad(f)(1.0),
    "value_and_grad": lambda f: value_and_grad(f)(1.0),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: vjp(f, 1.0),
    "linearize": lambda f: linearize(f, 1.0),
    "linear_transpose": lambda f: linear_transpose(f, 1.0),
    "vmap": lambda f: vmap(f)(x3),
    "vmap in chunks": lambda f: vmap(f, chunk_size=2)(x3),
    "jacfwd": lambda f: jacfwd(f)(1.0),
    "jacrev": lambda f: jacrev(f)(x3),
    "hessian": lambda f: hessian(f)(1.0),
    "make_jaxpr": lambda f: make_jaxpr(f)(1.0),
    "eval_shape": lambda f: eval_shape(f, 1.0),
    "grad of vmap": lambda f: grad(lambda x: jnp.sum(vmap(f)(x)))(x3),
    "grad of grad of grad": lambda f: grad(grad(grad(f)))(1.0),
    "make_jaxpr of vmap of grad": lambda f: make_jaxpr(vmap(grad(f)))(x3),
}


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    return traceback.extract_tb(error.__traceback__)


def own(error: BaseException) -> list[str]:
    """The functions of this file in a traceback."""
    return [f.name for f in frames(error) if f.filename == __file__]


def internal(error: BaseException) -> list[str]:
    return [f.name for f in frames(error) if source.is_internal(f.filename)]


@pytest.mark.parametrize("switch", ["auto", "on"])
@pytest.mark.parametrize("run", RUNS)
def test_an_error_of_the_users(run: str, switch: str) -> None:
    with override("traceback_filtering", switch), pytest.raises(ValueError, match=r"^on purpose$") as caught:
        RUNS[run](fails)
    assert own(caught.value)[-2:] == ["fails", "deeper"]
    assert internal(caught.value) == []
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert state.trace is EVAL


def test_all_frames_on_request() -> None:
    with override("traceback_filtering", "off"), pytest.raises(ValueError, match="on purpose") as caught:
        RUNS["grad of vmap"](fails)
    assert own(caught.value)[-2:] == ["fails", "deeper"]
    assert {"linearize_flat", "batch_flat"} <= set(internal(caught.value))


@pytest.mark.parametrize("run", RUNS)
def test_an_error_of_pullback_ends_at_the_users_line(run: str) -> None:
    def adds(x: Any) -> Any:
        return jnp.add(x, "a")

    with pytest.raises(TypeError, match="'a' of type str") as caught:
        RUNS[run](adds)
    assert frames(caught.value)[-1].name == "adds"
    assert internal(caught.value) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: grad(jnp.sin)(x3),
        lambda: vmap(jnp.sin)(1.0),
        lambda: vjp(jnp.sin, 1.0)[1](x3),
        lambda: linearize(jnp.sin, 1.0)[1](x3),
        lambda: jvp(jnp.sin, 1.0, 1.0),
    ],
)
def test_an_error_in_what_is_given_ends_at_the_call(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert frames(caught.value)[-1].name == "<lambda>"


def test_causes_and_contexts_are_kept() -> None:
    def wraps_an_error(x: Any) -> Any:
        try:
            return {}[x.shape]
        except KeyError as error:
            raise RuntimeError("no such shape") from error

    with pytest.raises(RuntimeError) as caught:
        grad(lambda x: jnp.sum(vmap(wraps_an_error)(x)))(x3)
    assert type(caught.value.__cause__) is KeyError
    assert caught.value.__context__ is caught.value.__cause__
    assert [f.name for f in frames(caught.value.__cause__)] == ["wraps_an_error"]


def test_a_mistake_within_pullback_keeps_the_frame_that_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pullback.transforms.derivatives.grad.linearize_flat", None)
    with pytest.raises(TypeError, match="NoneType") as caught:
        grad(jnp.sin)(1.0)
    assert internal(caught.value) == ["_value_and_grad"]


def test_post_mortem_finds_the_users_variables() -> None:
    def divides(x: Any) -> Any:
        divisor = 0
        return x / (1 // divisor)

    with pytest.raises(ZeroDivisionError) as caught:
        vmap(grad(divides))(x3)
    tb = caught.value.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    assert tb is not None
    assert tb.tb_frame.f_locals["divisor"] == 0


def test_an_error_caught_within_a_transformed_function() -> None:
    def recovers(x: Any) -> Any:
        try:
            grad(fails)(x)
        except ValueError:
            return x * x
        return x

    assert float(grad(recovers)(3.0)) == 6.0


def test_an_error_in_a_users_rule() -> None:
    p = extend.Primitive("fragile")

    @p.host
    def evaluate(x: Any) -> Any:
        raise ArithmeticError("in the rule")

    with pytest.raises(ArithmeticError, match="in the rule") as caught:
        vmap(lambda x: p.bind(3.0))(x3)
    assert frames(caught.value)[-1].name == "evaluate"
    assert internal(caught.value) == []


def test_names_and_signatures_are_those_of_the_function() -> None:
    def named(x: float, *, y: float = 2.0) -> float:
        """What it does."""
        return x

    for transformation in (grad, value_and_grad, vmap, jacfwd, jacrev, hessian, make_jaxpr):
        function = transformation(named)
        assert (function.__name__, function.__doc__) == ("named", "What it does.")
        assert inspect.signature(function) == inspect.signature(named)
    assert (vjp.__name__, vjp.__module__) == ("vjp", "pullback.transforms.derivatives.grad")
    assert vjp.__globals__["__name__"] == "pullback.transforms.derivatives.grad"
