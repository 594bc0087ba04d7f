"""``custom_jvp`` and ``custom_vjp`` under transformations: orders and modes, closures, programs, effects, a debugger.

What rules are given and may give is in ``test_custom_rules.py``.
"""

from __future__ import annotations

import bdb
import io
import itertools
import pdb
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import (
    custom_jvp,
    custom_vjp,
    debug,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.core.jaxpr import ClosedJaxpr, jaxpr_as_fun
from pullback.core.trace import EVAL, state
from pullback.errors import ClosedOverError, NotLinearError, UnexpectedTracerError
from tests.transforms.custom.custom_functions import (
    COMPILED,
    along,
    clipped,
    close,
    doubled,
    log1pexp,
    ones4,
    plain,
    sine_times_jvp,
    sine_times_vjp,
    x3,
)

Function = Callable[..., Any]


# Order and mode ---------------------------------------------------------------------------------------------


@COMPILED
@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_rules_that_call_the_function_itself(kind: str, compiled: Function) -> None:
    f: Any
    if kind == "custom_jvp":  # f' = 3 f, while f is exp
        f = custom_jvp(jnp.exp)
        f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * f(*primals) * tangents[0]))
    else:
        f = custom_vjp(jnp.exp)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (3.0 * f(x) * ct,))
    value = np.exp(0.5)
    for first, second, third in itertools.product([grad, along], repeat=3):
        close(compiled(first(compiled(f)))(0.5), 3.0 * value)
        close(compiled(first(second(compiled(f))))(0.5), 9.0 * value)
        close(first(second(third(compiled(f))))(0.5), 27.0 * value)
    close(hessian(compiled(f))(0.5), 9.0 * value)
    close(compiled(vmap(grad(grad(grad(f)))))(x3), 27.0 * np.exp(np.asarray(x3)))


@COMPILED
@pytest.mark.parametrize("f", [sine_times_vjp, sine_times_jvp])
def test_all_of_forward_mode(f: Any, compiled: Function) -> None:
    def true(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    args = x3, jnp.asarray([0.5, -1.0, 2.0])
    tangents = args[1], args[0]
    close(jvp(compiled(f), args, tangents)[1], jvp(true, args, tangents)[1])
    close(compiled(lambda *xs: linearize(f, *xs)[1](*tangents))(*args), jvp(true, args, tangents)[1])
    _, derivative = linearize(compiled(f), *args)
    close(derivative(*tangents), jvp(true, args, tangents)[1])
    close(linear_transpose(derivative, *args)(ones4[:3])[0], vjp(true, *args)[1](ones4[:3])[0])
    for got, expected in zip(jacfwd(compiled(f), (0, 1))(*args), jacfwd(true, (0, 1))(*args), strict=True):
        close(got, expected)
    for transformation in (
        hessian,
        lambda g: jacfwd(jacfwd(g)),
        lambda g: jacrev(jacfwd(g)),
        lambda g: jacrev(jacrev(g)),
    ):
        close(compiled(transformation(f))(*args), hessian(true)(*args))
        close(transformation(compiled(f))(*args), hessian(true)(*args))


def test_examples_of_the_specification_in_forward_mode() -> None:
    """Each function with a rule for reverse mode that is the true one, against the plain function."""
    clip = clipped(-0.75, 0.75)
    with pytest.raises(NotLinearError, match="defjvp"):
        jacfwd(clip)(1.0)
    stable = custom_vjp(log1pexp)
    stable.defvjp(lambda x: (log1pexp(x), x), lambda x, ct: ((1 - 1 / (1 + jnp.exp(x))) * ct,))
    for x in (-1.0, 0.0, 2.0):
        close(jacfwd(stable)(x), jacfwd(log1pexp)(x))
        close(hessian(stable)(x), hessian(log1pexp)(x))
    close(jacfwd(stable)(100.0), 1.0)


def both_rules() -> Any:
    """x², whose rule for forward mode says 3x, and whose rule for reverse mode 5x."""
    f = custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (5.0 * x * ct,))
    f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * primals[0] * tangents[0]))
    return f


REVERSE: list[Callable[[Function], Function]] = [
    grad,
    lambda f: lambda x: vjp(f, x)[1](jnp.ones_like(x))[0],
    jacrev,
    lambda f: lambda x: value_and_grad(f)(x)[1],
    lambda f: lambda x: linear_transpose(linearize(f, x)[1], x)(jnp.ones_like(x))[0],
]
FORWARD: list[Callable[[Function], Function]] = [
    along,
    jacfwd,
    lambda f: lambda x: linearize(f, x)[1](jnp.ones_like(x)),
]


@pytest.mark.parametrize("around", [plain, jit], ids=["", "jit of"])
@pytest.mark.parametrize("within", [plain, jit], ids=["", "of jit"])
@pytest.mark.parametrize("mapped", [plain, vmap], ids=["", "vmap of"])
def test_both_rules_on_one_function(around: Function, mapped: Function, within: Function) -> None:
    f = both_rules()
    x = 2.0 if mapped is plain else x3
    for modes, factor in ((REVERSE, 5.0), (FORWARD, 3.0)):
        for mode in modes:
            close(around(mapped(mode(within(f))))(x), factor * np.asarray(x))
            if mapped is vmap and mode in (along, grad):
                whole = along(within(vmap(f))) if mode is along else grad(lambda x: jnp.sum(within(vmap(f))(x)))
                close(around(whole)(x), factor * np.asarray(x))


def test_both_rules_at_second_order() -> None:
    f = both_rules()
    for compiled in (plain, jit):
        close(jacfwd(jacrev(compiled(f)))(2.0), 5.0)
        close(jacfwd(jacfwd(compiled(f)))(2.0), 3.0)
        close(jacrev(jacrev(compiled(f)))(2.0), 5.0)
        close(jacrev(jacfwd(compiled(f)))(2.0), 3.0)
        close(jacrev(compiled(jacfwd(f)))(2.0), 3.0)


# Backward rules that are not linear --------------------------------------------------------------------------------


def clip_to_one() -> Any:
    clip = custom_vjp(lambda x: x)
    clip.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1.0, 1.0),))
    return clip


FORWARD_OF_CLIP: dict[str, tuple[Callable[[Function], Any], Any]] = {
    "jvp": (lambda f: along(f)(2.0), 1.0),
    "jit of jvp": (lambda f: jit(along(f))(2.0), 1.0),
    "jvp of jit": (lambda f: along(jit(f))(2.0), 1.0),
    "vmap of jvp": (lambda f: vmap(along(f))(x3), [1.0] * 3),
    "vmap of jvp of jit": (lambda f: vmap(along(jit(f)))(x3), [1.0] * 3),
    "jit of vmap of jvp": (lambda f: jit(vmap(along(f)))(x3), [1.0] * 3),
    "jvp of vmap": (lambda f: along(vmap(f))(x3), [1.0] * 3),
    "jacfwd": (lambda f: jacfwd(f)(x3), np.eye(3)),
    "linearize": (lambda f: linearize(f, 2.0)[1](1.0), 1.0),
    "linearize of jit": (lambda f: linearize(jit(f), 2.0)[1](1.0), 1.0),
    "grad of jvp": (lambda f: grad(along(lambda x: f(x) ** 2))(2.0), 2.0),
    "evaluated jaxpr of jvp": (lambda f: jaxpr_as_fun(make_jaxpr(along(f))(2.0))(2.0)[0], 1.0),
}


@pytest.mark.parametrize("how", FORWARD_OF_CLIP)
def test_a_backward_rule_that_is_not_linear_in_forward_mode(how: str) -> None:
    clip = clip_to_one()
    run, expected = FORWARD_OF_CLIP[how]
    with pytest.raises(NotLinearError, match=r"(?s)<lambda> at .*:\d+ .*linear in the cotangent.*\.defjvp\(rule\)"):
        run(clip)
    close(grad(jit(lambda x: 10.0 * clip(x)))(2.0), 1.0)
    clip.defjvp(lambda primals, tangents: (primals[0], tangents[0]))  # as the message says
    close(run(clip), expected)


def test_a_backward_rule_that_is_not_linear_in_reverse_mode() -> None:
    clip = clip_to_one()
    close(hessian(lambda x: clip(x) ** 2)(0.1), 2.0)
    close(hessian(lambda x: clip(x) ** 2)(1.0), 0.0)
    close(grad(grad(lambda x: clip(x) ** 2))(0.1), 2.0)
    close(linear_transpose(linearize(clip, 1.0)[1], 1.0)(10.0)[0], 1.0)


@pytest.mark.parametrize(
    "bwd", [lambda _, ct: (ct + 1.0,), lambda _, ct: (2.0,), lambda _, ct: (ct if ct > 0 else -ct,)]
)
def test_other_backward_rules_that_are_not_linear(bwd: Function) -> None:
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), bwd)
    with pytest.raises(NotLinearError, match=r"defjvp\(rule\)(?s:.*)The nonlinear operation: .*"):
        along(f)(2.0)
    assert np.isfinite(grad(f)(2.0))


# Closures ----------------------------------------------------------------------------------------------------------


def times_closed_over(kind: str, everywhere: bool = True) -> Function:
    """A function of y and x: y x, by a function of x with rules that close over y and say 3 y; or x, by rules alone."""

    def run(y: Any, x: Any) -> Any:
        def function(x: Any) -> Any:
            return y * x if everywhere else x

        f: Any
        if kind == "custom_jvp":
            f = custom_jvp(function)
        else:
            f = custom_vjp(function)
            f.defvjp(lambda x: (f(x), y), lambda r, ct: (3.0 * y * ct + 0.0 * r,))
        if kind != "custom_vjp":
            f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0] * y))
        return f(x)

    return run


KINDS = pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp", "both"])
MODES = ["grad", "jvp", "linearize", "vjp"]
OVER_X: list[Callable[[Function], Function]] = [
    lambda f: grad(f, 1),
    lambda f: lambda y, x: along(lambda x: f(y, x))(x),
    lambda f: lambda y, x: linearize(lambda x: f(y, x), x)[1](1.0),
    lambda f: lambda y, x: vjp(lambda x: f(y, x), x)[1](jnp.ones_like(x))[0],
]


@KINDS
@pytest.mark.parametrize("mode", OVER_X, ids=MODES)
def test_closures_over_mapped_values(kind: str, mode: Function) -> None:
    f = times_closed_over(kind)
    close(vmap(f, (0, None))(x3, 5.0), 5.0 * x3)
    close(vmap(f)(x3, x3), x3 * x3)
    close(vmap(mode(f), (0, None))(x3, 5.0), 3.0 * x3)
    close(vmap(mode(f))(x3, x3), 3.0 * x3)
    close(vmap(lambda y: mode(f)(y, 5.0))(x3), 3.0 * x3)
    close(vmap(vmap(mode(f), (0, None)), (None, 0))(x3, x3), np.outer(np.ones(3), 3.0 * np.asarray(x3)))


@pytest.mark.parametrize("mode", OVER_X, ids=MODES)
def test_a_mapped_value_that_the_backward_rule_alone_depends_on(mode: Function) -> None:
    def run(y: Any, x: Any) -> Any:
        f = custom_vjp(lambda x: 2.0 * x)
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (3.0 * ct * y,))
        return f(x)

    close(vmap(lambda y: mode(run)(y, 5.0))(x3), 3.0 * x3)


@KINDS
@pytest.mark.parametrize("mode", OVER_X[:2] + OVER_X[3:], ids=["grad", "jvp", "vjp"])
def test_closures_over_values_that_are_traced_by_the_same_jit(kind: str, mode: Function) -> None:
    f = times_closed_over(kind)
    close(jit(f)(2.0, 5.0), 10.0)
    close(jit(mode(f))(2.0, 5.0), 6.0)
    close(jit(vmap(mode(f), (0, None)))(x3, 5.0), 3.0 * x3)
    close(vmap(jit(mode(f)), (0, None))(x3, 5.0), 3.0 * x3)
    close(jaxpr_as_fun(make_jaxpr(mode(f))(0.0, 0.0))(2.0, 5.0)[0], 6.0)


@KINDS
@pytest.mark.parametrize("mode", OVER_X, ids=MODES)
def test_rules_that_close_over_values_of_an_outer_differentiation(kind: str, mode: Function) -> None:
    f = times_closed_over(kind, everywhere=False)
    for outer in (grad, along):
        if mode is OVER_X[2] and kind != "custom_jvp":  # the backward rule runs as a rule of what linearize returned
            with pytest.raises(ClosedOverError, match="Pass the value as an argument"):
                outer(lambda y: mode(f)(y, 5.0))(2.0)
        else:
            close(outer(lambda y: mode(f)(y, 5.0))(2.0), 3.0)
    for inner in OVER_X[:1] + OVER_X[3:]:
        close(mode(lambda y, x, inner=inner: inner(f)(x, y))(5.0, 2.0), 3.0)


@KINDS
def test_closures_over_values_whose_derivative_is_stopped(kind: str) -> None:
    f = times_closed_over(kind)

    def run(y: Any, x: Any) -> Any:
        return f(lax.stop_gradient(y), x)

    for compiled in (plain, jit):
        close(compiled(grad(run, (0, 1)))(2.0, 5.0), (0.0, 6.0))
        close(compiled(along(run))(2.0, 5.0), 6.0)


def evaluated(f: Function) -> Function:
    closed = make_jaxpr(f)(0.0, 0.0)
    return lambda *args: jaxpr_as_fun(closed)(*args)[0]


CLOSED_OVER: dict[str, Callable[[Function], Any]] = {
    "grad of the value": lambda f: grad(lambda y: f(y, 5.0))(2.0),
    "grad of both": lambda f: grad(f, (0, 1))(2.0, 5.0),
    "jvp of the value": lambda f: along(lambda y: f(y, 5.0))(2.0),
    "jvp of both": lambda f: along(f)(2.0, 5.0),
    "vjp of both": lambda f: vjp(f, 2.0, 5.0)[1](1.0),
    "linearize of both": lambda f: linearize(f, 2.0, 5.0)[1](1.0, 1.0),
    "vmap of grad of the value": lambda f: vmap(grad(lambda y: f(y, 5.0)))(x3),
    "jit of grad of the value": lambda f: jit(grad(lambda y: f(y, 5.0)))(2.0),
    "grad of jit of the value": lambda f: grad(jit(lambda y: f(y, 5.0)))(2.0),
    "grad of grad": lambda f: grad(lambda y: grad(f, 1)(y, 5.0))(2.0),
    "grad of jit": lambda f: grad(jit(f), 1)(2.0, 5.0),
    "jvp of jit": lambda f: along(jit(f))(2.0, 5.0),
    "jit of grad": lambda f: jit(grad(f, (0, 1)))(2.0, 5.0),
    "jit of jvp": lambda f: jit(along(f))(2.0, 5.0),
    "grad of jit of vmap": lambda f: grad(lambda y: jit(vmap(f, (None, 0)))(y, x3).sum())(2.0),
    "grad of vmap of an evaluated jaxpr": lambda f: grad(lambda x: vmap(evaluated(f))(x3, x).sum())(x3),
    "grad of vmap of both": lambda f: grad(lambda y: vmap(f)(y, y).sum())(x3),
    "vmap of grad of both": lambda f: vmap(grad(f, (0, 1)))(x3, x3),
}


FUNCTION_TOO = [name for name in CLOSED_OVER if name.endswith("the value")] + ["grad of grad", "grad of jit of vmap"]
"""What works if rules alone close over the value."""


@KINDS
@pytest.mark.parametrize(
    ("how", "everywhere"), [(how, e) for how in CLOSED_OVER for e in (True, False) if e or how not in FUNCTION_TOO]
)
def test_closures_that_cannot_work_say_what_to_do(kind: str, how: str, everywhere: bool) -> None:
    f = times_closed_over(kind, everywhere)
    with pytest.raises(ClosedOverError) as caught:
        CLOSED_OVER[how](f)
    message = str(caught.value)
    assert isinstance(caught.value, UnexpectedTracerError)
    assert isinstance(caught.value, TypeError)
    assert re.search(r"times_closed_over.<locals>.run.<locals>.function at .*test_custom_composition.py:\d+", message)
    assert "Pass the value as an argument" in message
    assert "closure_convert" in message
    assert state.trace is EVAL


# Pullbacks as values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [sine_times_vjp, sine_times_jvp])
def test_a_pullback_as_argument_and_result(f: Any) -> None:
    traces = 0

    def apply(pull: Any, ct: Any) -> Any:
        nonlocal traces
        traces += 1
        return pull(ct)

    compiled = jit(apply)
    for x in (2.0, 3.0, 0.5):
        _, pull = vjp(f, x, 3.0)
        close(compiled(pull, 1.0), pull(1.0))
        close(compiled(pull, 2.0), pull(2.0))
    assert traces == 1  # the rules are equal, the residuals arguments
    out, pull = jit(lambda x, y: vjp(f, x, y))(2.0, 3.0)
    close(out, 2.7278922)
    close(pull(1.0)[0], -1.2484405)
    close(compiled(pull, 1.0)[0], -1.2484405)
    _, pulls = vmap(lambda x: vjp(f, x, 3.0))(x3)
    close(vmap(lambda pull: pull(1.0)[0])(pulls), 3.0 * np.cos(np.asarray(x3)))
    _, derivative = jit(lambda x: linearize(f, x, 3.0))(2.0)
    close(derivative(1.0, 0.0), -1.2484405)
    close(jit(lambda d: d(1.0, 0.0))(derivative), -1.2484405)


def test_a_pullback_with_what_is_not_an_array() -> None:
    """Programs are shared by pullbacks whose fixed residuals and arguments are equal, and only by these."""
    traces = 0

    def apply(pull: Any, ct: Any) -> Any:
        nonlocal traces
        traces += 1
        return pull(ct)[0]

    compiled = jit(apply)
    f = custom_vjp(lambda how, x, n: x, nondiff_argnums=0)
    f.defvjp(lambda how, x, n: (x, {"n": n, "factor": factor}), lambda how, r, ct: (r["factor"] * len(how) * ct, None))
    for how, given, expected in (
        ("aa", 3.0, 6.0),
        ("aa", 3.0, 6.0),
        ("aaa", 3.0, 9.0),
        ("aa", 5.0, 10.0),
        ("aa", 3.0, 6.0),
    ):
        factor = given
        _, pull = vjp(lambda x, how=how: f(how, x, 1), 1.0)
        close(compiled(pull, 1.0), expected)
        close(pull(1.0)[0], expected)
    assert traces == 3
    f.defvjp(
        lambda how, x, n: (x, [{1, 2}, len]), lambda how, r, ct: (len(r[0]) * ct, None)
    )  # a residual without a hash
    _, pull = vjp(lambda x: f("a", x, 1), 1.0)
    close(compiled(pull, 1.0), 2.0)


def test_a_gradient_is_traced_once() -> None:
    counts = {"f": 0, "fwd": 0, "bwd": 0}

    def f(x: Any) -> Any:
        counts["f"] += 1
        return x * x

    g = custom_vjp(f)

    def fwd(x: Any) -> Any:
        counts["fwd"] += 1
        return x * x, x

    def bwd(x: Any, ct: Any) -> Any:
        counts["bwd"] += 1
        return (3.0 * x * ct,)

    g.defvjp(fwd, bwd)
    compiled = jit(g)
    for _ in range(3):
        close(compiled(2.0), 4.0)
        close(grad(compiled)(2.0), 6.0)
        close(vmap(grad(compiled))(x3), 3.0 * x3)
    assert counts["f"] <= 2
    first = dict(counts)
    for x in (3.0, 4.0):
        close(grad(compiled)(x), 3.0 * x)
        close(compiled(x), x * x)
        close(vmap(grad(compiled))(x3 + x), 3.0 * (x3 + x))
    assert counts == first


# Programs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "name"), [(sine_times_jvp, "custom_jvp_call"), (sine_times_vjp, "custom_vjp_call")])
def test_a_jaxpr_shows_one_equation_that_holds_the_function(f: Any, name: str) -> None:
    closed = make_jaxpr(lambda x, y: f(x, y) + 1.0)(2.0, 3.0)
    first, second = closed.eqns
    assert (first.primitive.name, second.primitive.name) == (name, "add")
    (inner,) = [v for v in first.params.values() if isinstance(v, ClosedJaxpr)]
    assert [eqn.primitive.name for eqn in inner.eqns] == ["sin", "mul"]
    text = str(closed)
    assert f"{name}[" in text
    assert "call_jaxpr={ lambda ;" in text
    assert "sine_times" in text
    nested = make_jaxpr(jit(vmap(f)))(x3, x3)
    assert name in str(nested)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_an_evaluated_jaxpr_keeps_rules(kind: str) -> None:
    f = doubled(kind)

    def again(f: Function) -> Function:
        closed = make_jaxpr(f)(1.0)
        return lambda x: jaxpr_as_fun(closed)(x)[0]

    for g in (again(f), again(again(f)), again(jit(f)), jit(again(f)), again(jit(again(f)))):
        close(g(1.0), 2.0)
        close(grad(g)(1.0), 3.0)
        close(along(g)(1.0), 3.0)
        close(vmap(grad(g))(ones4), [3.0] * 4)
        close(grad(lambda x, g=g: vmap(g)(x).sum())(ones4), [3.0] * 4)
        close(grad(grad(lambda x, g=g: g(x) ** 2))(1.0), 18.0)


def test_rules_in_a_jaxpr_are_not_traced_ahead() -> None:
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda *_: pytest.fail("the rule was traced"))
    g = custom_vjp(lambda x: x)
    g.defvjp(lambda *_: pytest.fail("the rule was traced"), lambda *_: pytest.fail("the rule was traced"))
    for h in (f, g):
        close(jit(lambda x, h=h: h(x) + 1.0)(1.0), 2.0)
        close(vmap(jit(h))(x3), x3)
        close(jit(vmap(h))(x3), x3)
        close(grad(lambda x, h=h: x * jit(h)(3.0))(1.0), 3.0)


# Python within functions and rules ---------------------------------------------------------------------------------


def test_python_in_functions_and_rules() -> None:
    """Control flow on values, printing and exceptions, as long as nothing is compiled."""
    events = []

    @custom_vjp
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    def fwd(x: Any) -> Any:
        events.append(f"fwd {x}")
        try:
            if x > 1:
                raise OverflowError("large")
        except OverflowError as error:
            events.append(str(error))
        return f(x), bool(x > 0)

    def bwd(positive: bool, ct: Any) -> Any:
        events.append(f"bwd {ct}")
        return (3.0 * ct if positive else -3.0 * ct,)

    f.defvjp(fwd, bwd)
    close(grad(f)(2.0), 3.0)
    close(grad(f)(-2.0), -3.0)
    close(grad(grad(lambda x: f(x) ** 2))(-2.0), 18.0)
    assert events[:5] == ["fwd 2.0", "large", "bwd 1.0", "fwd -2.0", "bwd 1.0"]
    g = custom_jvp(lambda x: x if x > 0 else -x)
    g.defjvp(lambda primals, tangents: (g(*primals), 3.0 * tangents[0] if primals[0] > 0 else -3.0 * tangents[0]))
    close(grad(g)(-2.0), -3.0)
    close(along(g)(-2.0), -3.0)
    with pytest.raises(TypeError, match="needs a concrete value"):
        jit(grad(f))(2.0)


def test_what_a_rule_does_when_it_is_not_needed() -> None:
    """Without differentiation the function runs, and no rule; with it the rule runs, and not the function."""
    runs: list[str] = []
    f = custom_vjp(lambda x: runs.append("f") or x)
    f.defvjp(lambda x: runs.append("fwd") or (x, None), lambda _, ct: runs.append("bwd") or (ct,))
    g = custom_jvp(lambda x: runs.append("g") or x)
    g.defjvp(lambda primals, tangents: runs.append("jvp") or (primals[0], tangents[0]))
    both = custom_vjp(lambda x: x)
    both.defvjp(lambda x: runs.append("fwd") or (x, None), lambda _, ct: runs.append("bwd") or (ct,))
    both.defjvp(lambda primals, tangents: runs.append("jvp") or (primals[0], tangents[0]))
    for run, expected in (
        (lambda: along(both)(1.0), "jvp"), (lambda: grad(both)(1.0), "fwd bwd"),
        (lambda: f(1.0), "f"), (lambda: vmap(f)(x3), "f"), (lambda: grad(f)(1.0), "fwd bwd"),
        (lambda: vmap(grad(f))(x3), "fwd bwd"), (lambda: vjp(f, 1.0), "fwd"),
        (lambda: grad(lambda x: x * f(2.0))(1.0), "f"), (lambda: g(1.0), "g"), (lambda: grad(g)(1.0), "jvp"),
        (lambda: along(g)(1.0), "jvp"), (lambda: grad(lambda x: x * g(2.0))(1.0), "g"),
    ):  # fmt: skip
        runs.clear()
        run()
        assert runs == expected.split()


EFFECTS = {
    "f": lambda f: f(2.0),
    "jit": lambda f: jit(f)(2.0),
    "grad": lambda f: grad(f)(2.0),
    "grad of jit": lambda f: grad(jit(f))(2.0),
    "jit of grad": lambda f: jit(grad(f))(2.0),
    "jvp": lambda f: along(f)(2.0),
    "jvp of jit": lambda f: along(jit(f))(2.0),
    "jit of jvp": lambda f: jit(along(f))(2.0),
    "vjp of jit": lambda f: vjp(jit(f), 2.0)[1](1.0)[0],
    "grad of jit of jit": lambda f: grad(jit(jit(f)))(2.0),
}


@pytest.mark.parametrize("how", EFFECTS)
def test_effects_happen_once(how: str) -> None:
    seen: list[str] = []

    def note(text: str, x: Any) -> Any:
        debug.callback(lambda value: seen.append(f"{text} {value}"), x)
        return x

    f = custom_vjp(lambda x: 2.0 * note("f", x))
    f.defvjp(lambda x: (2.0 * note("fwd", x), x), lambda x, ct: (1.5 * note("bwd", x) * ct,))
    close(EFFECTS[how](f), 3.0 if how not in ("f", "jit") else 4.0)
    assert sorted(seen) == (["f 2.0"] if how in ("f", "jit") else ["bwd 2.0", "fwd 2.0"])
    seen.clear()
    g = custom_jvp(lambda x: 2.0 * note("g", x))
    g.defjvp(lambda primals, tangents: (2.0 * note("jvp", primals[0]), 3.0 * tangents[0]))
    close(EFFECTS[how](g), 3.0 if how not in ("f", "jit") else 4.0)
    assert seen == (["g 2.0"] if how in ("f", "jit") else ["jvp 2.0"])


def test_printing_in_compiled_rules(capfd: pytest.CaptureFixture[str]) -> None:
    f = custom_vjp(jnp.sin)

    def bwd(x: Any, ct: Any) -> Any:
        debug.print("bwd of x = {}, ct = {ct}", x, ct=ct)
        return (3.0 * ct,)

    f.defvjp(lambda x: (jnp.sin(x), x), bwd)
    close(jit(grad(lambda x: 5.0 * f(x)))(2.0), 15.0)
    assert capfd.readouterr().out == "bwd of x = 2.0, ct = 5.0\n"
    close(vmap(grad(jit(f)))(x3), [3.0] * 3)
    assert capfd.readouterr().out.count("bwd of x = ") == 3


# A debugger in a backward pass -------------------------------------------------------------------------------------


@contextmanager
def a_debugger(*commands: str) -> Iterator[tuple[Function, io.StringIO]]:
    """``set_trace`` of a debugger that is given its commands, and what it writes."""
    output = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=output, nosigint=True, readrc=False)
    previous = sys.gettrace()
    try:
        yield lambda: debugger.set_trace(sys._getframe(1)), output
    finally:
        sys.settrace(previous)


def log1pexp_with_a_breakpoint(set_trace: Function) -> Any:
    f = custom_vjp(log1pexp)

    def bwd(x: Any, ct: Any) -> Any:
        result = ct * (1 - 1 / (1 + jnp.exp(x)))
        set_trace()
        return (result,)

    f.defvjp(lambda x: (log1pexp(x), x), bwd)
    return f


def test_a_debugger_in_a_backward_rule() -> None:
    with a_debugger("p x", "p float(ct)", "p float(x) + 1", "up", "continue") as (set_trace, output):
        gradient = grad(log1pexp_with_a_breakpoint(set_trace))(3.0)
    close(gradient, 0.95257413)
    written = output.getvalue()
    assert ")bwd()" in written
    assert "(Pdb) Array(3., dtype=float32, weak_type=True)" in written
    assert "(Pdb) 1.0" in written
    assert "(Pdb) 4.0" in written


def test_a_debugger_in_a_backward_rule_that_is_mapped() -> None:
    with a_debugger("p x", "p result.shape", "next", "continue") as (set_trace, output):
        gradients = vmap(grad(log1pexp_with_a_breakpoint(set_trace)))(x3)
    close(gradients, [0.5, 0.7310586, 0.8807971])
    written = output.getvalue()
    assert "(Pdb) Traced<f32[]: [0. 1. 2.] (3 examples along axis 0)> by vmap" in written
    assert "(Pdb) ()" in written


def test_a_debugger_can_change_values_and_leave() -> None:
    with a_debugger("result = 7.0 * ct", "continue") as (set_trace, _):
        close(grad(log1pexp_with_a_breakpoint(set_trace))(3.0), 7.0)
    with a_debugger("quit") as (set_trace, _), pytest.raises(bdb.BdbQuit):
        grad(log1pexp_with_a_breakpoint(set_trace))(3.0)
    assert state.trace is EVAL


def test_pdb_set_trace_itself() -> None:
    program = textwrap.dedent("""
        import pdb
        import pullback.numpy as jnp
        from pullback import custom_vjp, grad, vmap

        f = custom_vjp(jnp.sin)

        def bwd(x, ct):
            pdb.set_trace()
            return (3.0 * ct,)

        f.defvjp(lambda x: (jnp.sin(x), x), bwd)
        print("one:", grad(f)(2.0))
        print("many:", vmap(grad(f))(jnp.arange(2.0)))
    """)
    commands = "p float(x), float(ct)\nc\np x.shape\nc\n"
    done = subprocess.run(
        [sys.executable, "-c", program], input=commands, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "(2.0, 1.0)" in done.stdout
    assert "one: 3.0" in done.stdout
    assert "many: [3. 3.]" in done.stdout
