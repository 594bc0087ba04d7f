"""check_rule passes right rules, and says of wrong ones what is wrong, where, and why probably."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pullback
import pullback.numpy as pnp
from pullback import custom_gradient, custom_jvp, custom_vjp, grad, hessian, jacrev, jit, jvp, make_jaxpr, vjp, vmap
from pullback.core.config import enable_x64
from pullback.custom_derivatives import SymbolicZero, clip_gradient, scale_gradient, straight_through
from pullback.errors import ArgumentError, MissingCustomRuleError, RuleCheckError
from pullback.test_util import check_rule
from pullback.testing import differences
from tests.random_programs import Program, programs

RNG = np.random.default_rng(0)
MATRIX = pnp.array(RNG.normal(size=(3, 3)), pnp.float32)
VECTOR = pnp.array([1.0, 2.0, 3.0])
MANY = pnp.linspace(0.1, 1, 3000)


def with_jvp(fun: Callable[..., Any], *rules: Any) -> custom_jvp:
    function = custom_jvp(fun)
    function.defjvps(*rules)
    return function


def with_vjp(fun: Callable[..., Any], bwd: Callable[..., Any], **options: Any) -> custom_vjp:
    """A function whose residuals are its arguments."""
    function = custom_vjp(fun)
    function.defvjp(lambda *args: (fun(*args), args), bwd, **options)
    return function


def findings(f: Any, *args: Any, **options: Any) -> list[tuple[str, str]]:
    """The kinds and messages of what is wrong."""
    with pytest.raises(RuleCheckError) as caught:
        check_rule(f, *args, **options)
    found: Any = caught.value.findings
    for finding in found:
        assert f"{finding.kind}: the {finding.rule} {finding.message}" in str(caught.value)
    return [(finding.kind, finding.message) for finding in found]


def finding(f: Any, *args: Any, **options: Any) -> tuple[str, str]:
    ((kind, message),) = findings(f, *args, **options)
    return kind, message


# What is right -------------------------------------------------------------------------------------------------------


def sine_times(x: Any, y: Any) -> Any:
    return pnp.sin(x) * y


SINE_JVP = with_jvp(
    sine_times, lambda t, ans, x, y: pnp.cos(x) * t * y, lambda t, ans, x, y: pnp.sin(x) * t
)  # fmt: skip
SINE_VJP = with_vjp(sine_times, lambda r, ct: (pnp.cos(r[0]) * ct * r[1], pnp.sin(r[0]) * ct))


@pytest.mark.parametrize("f", [SINE_JVP, SINE_VJP], ids=["jvp", "vjp"])
@pytest.mark.parametrize("shape", [(), (2, 3), (3000,)], ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
def test_a_right_rule_passes(f: Any, shape: tuple[int, ...], dtype: str) -> None:
    x, y = (pnp.array(RNG.normal(size=shape) + (1j if dtype == "complex64" else 0), dtype) for _ in range(2))
    check_rule(f, x, y)


def test_a_right_rule_passes_in_double_precision() -> None:
    with enable_x64():
        check_rule(SINE_JVP, 2.0, 3.0)
        check_rule(SINE_VJP, pnp.ones(3), pnp.ones(3))


def test_both_rules_of_one_function() -> None:
    f = with_vjp(sine_times, lambda r, ct: (pnp.cos(r[0]) * ct * r[1], pnp.sin(r[0]) * ct))
    f.defjvp(lambda primals, tangents: jvp(sine_times, primals, tangents))
    check_rule(f, 2.0, 3.0)


def test_trees_integers_and_arguments_that_are_not_differentiated() -> None:
    @functools.partial(custom_jvp, nondiff_argnums=(0,))
    def f(g: Any, p: Any, q: Any = 2.0) -> Any:
        return {"y": g(p["a"]) * q, "n": p["n"]}

    @f.defjvp
    def f_jvp(g: Any, primals: Any, tangents: Any) -> Any:
        out, t = jvp(lambda a, q: g(a) * q, (primals[0]["a"], primals[1]), (tangents[0]["a"], tangents[1]))
        return {"y": out, "n": primals[0]["n"]}, {"y": t, "n": tangents[0]["n"]}

    check_rule(f, pnp.sin, {"a": pnp.ones((2, 2)), "n": 3})
    check_rule(f, pnp.sin, {"a": pnp.ones((2, 2)), "n": 3}, 3.0)
    check_rule(functools.partial(f, pnp.sin), {"a": pnp.ones((2, 2)), "n": 3}, 3.0)


def test_integers_alone_and_nothing_at_all() -> None:
    f = custom_jvp(lambda n: n + 1)
    f.defjvp(lambda primals, tangents: (primals[0] + 1, tangents[0]))
    check_rule(f, 3)
    check_rule(f, pnp.zeros((0, 2)))
    check_rule(with_vjp(lambda x: (), lambda r, ct: (0 * r[0],)), 2.0)


def test_methods() -> None:
    class Line:
        def __init__(self, slope: float) -> None:
            self.slope = slope

        def __call__(self, x: Any) -> Any:
            return self.slope * x

        value = custom_jvp(__call__, nondiff_argnums=0)
        value.defjvp(lambda self, primals, tangents: (self(*primals), self(*tangents)))

    check_rule(Line(3.0).value, 2.0)
    Line.value.defjvp(lambda self, primals, tangents: (self(*primals), -self(*tangents)))
    kind, message = finding(Line(3.0).value, 2.0)
    assert kind == "derivative"
    assert "by argument 1 (x)" in message


def test_custom_gradient() -> None:
    check_rule(custom_gradient(lambda x: (x**2, lambda g: (2 * g * x,))), 3.0)
    kind, message = finding(custom_gradient(lambda x: (x**2, lambda g: (g * x,))), 3.0)
    assert kind == "derivative"
    assert "factor of 0.5" in message


def test_traced_arguments_whose_values_are_known() -> None:
    gradient = grad(lambda x: [check_rule(SINE_JVP, x, 3.0), SINE_JVP(x, 3.0)][1])(2.0)
    assert float(gradient) == pytest.approx(-1.2484405)


# Where the function itself is of no help -----------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.0, 3.0, 100.0, 500.0, 1000.0, np.asarray([-3.0, 0.0, 100.0], np.float32)], ids=str)
def test_a_rule_is_right_where_differentiation_gives_nan(x: Any) -> None:
    log1pexp = with_jvp(
        lambda x: pnp.log(1.0 + pnp.exp(x)), lambda t, ans, x: (1 - 1 / (1 + pnp.exp(x))) * t
    )  # fmt: skip
    check_rule(log1pexp, x)


def test_a_convention_at_a_singularity_passes_and_a_mistake_beside_it_does_not() -> None:
    def f(x: Any) -> Any:
        return pnp.sum(x / (1 + pnp.sqrt(x)))

    def derivative(x: Any) -> Any:
        return (1 + 0.5 * pnp.sqrt(x)) / (1 + pnp.sqrt(x)) ** 2

    x = pnp.array([0.0, 1.0, 4.0])
    assert np.isnan(grad(f)(x)[0])
    check_rule(with_jvp(f, lambda t, ans, x: pnp.sum(derivative(x) * t)), x)
    kind, message = finding(with_jvp(f, lambda t, ans, x: pnp.sum(2 * derivative(x) * t)), x)
    assert kind == "derivative"
    assert "returns 0.75 as the derivative of out by argument 0 (x)[1], expected 0.375 (by differences)" in message


def test_a_function_that_cannot_be_differentiated_is_compared_with_differences() -> None:
    scalar = pullback.ShapeDtypeStruct((), pnp.float32)

    def foreign(x: Any) -> Any:
        return pullback.pure_callback(lambda x: np.tanh(x).astype(np.float32), scalar, x)

    check_rule(with_jvp(foreign, lambda t, ans, x: (1 - ans**2) * t), 0.5)
    kind, message = finding(with_jvp(foreign, lambda t, ans, x: (1 - ans) * t), 0.5)
    assert kind == "derivative"
    assert "(by differences)" in message


def test_either_is_right_where_a_function_stops_its_gradient_on_purpose() -> None:
    def f(x: Any) -> Any:
        return x * pullback.lax.stop_gradient(x)

    check_rule(with_jvp(f, lambda t, ans, x: x * t), 3.0)
    check_rule(with_jvp(f, lambda t, ans, x: 2 * x * t), 3.0)
    assert finding(with_jvp(f, lambda t, ans, x: 3 * x * t), 3.0)[0] == "derivative"


def test_a_rule_that_overflows_in_the_dtype_of_the_arguments() -> None:
    f = with_jvp(lambda x: pnp.log1p(x), lambda t, ans, x: t * x * x / (x * x * (1 + x)))
    check_rule(f, 3.0)
    kind, message = finding(f, 1e20)
    assert kind == "precision"
    assert "derivative of out by argument 0 (x) in the dtype of the arguments, but 9.9999998e-21 in float64" in message


# What is wrong: structure and value ----------------------------------------------------------------------------------


def test_the_structure_of_a_jvp_rule() -> None:
    f = custom_jvp(lambda x: (x, x))
    f.defjvp(lambda primals, tangents: ((primals[0], primals[0]), [tangents[0], tangents[0]]))
    kind, message = finding(f, 2.0)
    assert kind == "structure"
    assert "must return a result and a tangent of the same tree" in message


def test_the_structure_of_a_backward_rule() -> None:
    kind, message = finding(with_vjp(lambda x, y: x * y, lambda r, ct: ct), 2.0, 3.0)
    assert kind == "structure"
    assert "must return a tuple of 2 cotangents" in message
    kind, message = finding(with_vjp(lambda x, y: x @ y, lambda r, ct: (ct, ct)), MATRIX, VECTOR)
    assert kind == "structure"
    assert "argument 0 is f32[3,3], so its cotangent must be f32[3,3], but it is f32[3]" in message


def test_results_of_another_shape_or_dtype_than_the_functions_own() -> None:
    f = custom_jvp(lambda x: pnp.sum(x))
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    kind, message = finding(f, VECTOR)
    assert kind == "structure"
    assert "returns f32[3] as out, where the function itself returns f32[]" in message


def test_a_rule_that_raises() -> None:
    def bwd(residuals: Any, ct: Any) -> Any:
        return (1 / 0,)

    kind, message = finding(with_vjp(lambda x: x, bwd), 2.0)
    assert kind == "structure"
    assert "raised ZeroDivisionError: division by zero (at " in message
    assert f"{bwd.__code__.co_filename}:{bwd.__code__.co_firstlineno + 1}, in bwd)" in message


def test_the_value_that_comes_with_a_derivative() -> None:
    f = custom_jvp(lambda x: (x, 2 * x))
    f.defjvp(lambda primals, tangents: ((primals[0], 3 * primals[0]), (tangents[0], 2 * tangents[0])))
    kind, message = finding(f, VECTOR)
    assert kind == "value"
    assert "returns 3.0 as out[1][0], where the function itself returns 2.0; 3 of 3 elements differ" in message


def test_an_infinite_value_must_be_infinite_with_the_rule_too() -> None:
    f = custom_jvp(lambda x: 1 / x)
    f.defjvp(lambda primals, tangents: (pnp.zeros(()), -tangents[0]))
    kind, message = finding(f, 0.0)
    assert kind == "value"
    assert "returns 0.0 as out, where the function itself returns inf" in message


# What is wrong: linearity --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tangent", "said"),
    [
        (lambda t: t + 1, "for a zero tangent it returns 1 as the tangent of out, where a linear rule returns 0"),
        (lambda t: t * abs(t), "is not linear in the tangents: for "),
        (lambda t: pnp.where(abs(t) < 10, t, 0), "for 64 times a tangent it returns 0"),
    ],
)
def test_a_jvp_rule_that_is_not_linear(tangent: Any, said: str) -> None:
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], tangent(tangents[0])))
    for linear in (True, False):
        kind, message = finding(f, 2.0, linear=linear)
        assert kind == "linearity"
        assert "is not linear in the tangents" in message
        assert said in message


def test_a_backward_rule_that_clips() -> None:
    f = with_vjp(lambda x: x, lambda r, ct: (pnp.clip(ct, -1, 1),))
    kind, message = finding(f, VECTOR)
    assert kind == "backward linearity"
    assert re.search(r"it returns -?1 as the cotangent of argument 0 \(x\)\[\d\], where a linear rule returns", message)
    assert "linear=False allows it" in message
    check_rule(f, VECTOR, linear=False)


def test_a_rule_that_is_linear_but_cannot_be_transposed() -> None:
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0] if tangents[0] > -1e9 else 0.0))
    kind, message = finding(f, 2.0)
    assert kind == "transposition"
    assert "cannot be transposed, but reverse mode has to transpose it" in message

    check_rule(with_vjp(lambda x: x, lambda r, ct: (ct if ct > -1e9 else 0.0,)), 2.0)  # forward mode says so if asked


# What is wrong: derivatives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["few", "many"])
def test_a_factor(size: str) -> None:
    x = VECTOR if size == "few" else MANY
    rules = (lambda t, ans, x, y: 1.5 * pnp.cos(x) * t * y, lambda t, ans, x, y: pnp.sin(x) * t)
    kind, message = finding(with_jvp(sine_times, *rules), x, 2 * x)
    assert kind == "derivative"
    assert "by argument 0 (x)[" in message
    assert "It differs by a factor of 1.5 everywhere." in message
    wrong = with_vjp(sine_times, lambda r, ct: (pnp.cos(r[0]) * ct * r[1], -0.5 * pnp.sin(r[0]) * ct))
    kind, message = finding(wrong, x, 2 * x)
    assert "by argument 1 (y)[" in message
    assert "It differs by a factor of -0.5 everywhere." in message


@pytest.mark.parametrize(
    ("by_y", "came", "said"),
    [
        (lambda x, ct: -x * ct, "returns -2", "It has the wrong sign everywhere."),
        (lambda x, ct: None, "returns 0", "It is zero everywhere"),
        (lambda x, ct: pnp.nan * ct, "returns nan", "It is not a number."),
        (lambda x, ct: pnp.inf * ct, "returns inf", "It is not finite."),
        (lambda x, ct: (x + 1) * ct, "returns 3", "It differs by a factor of 1.5 everywhere."),
    ],
)
def test_usual_mistakes_in_the_cotangent_of_one_argument(by_y: Any, came: str, said: str) -> None:
    f = with_vjp(lambda x, y: x * y, lambda r, ct: (r[1] * ct, by_y(r[0], ct)))
    kind, message = finding(f, 2.0, 5.0)
    assert kind == "derivative"
    assert f"{came} as the derivative of out by argument 1 (y), expected 2 (by differentiation of" in message
    assert said in message


def test_what_should_be_zero() -> None:
    kind, message = finding(with_vjp(lambda x, y: 1 * x, lambda r, ct: (ct, ct)), 2.0, 5.0)
    assert kind == "derivative"
    assert "It should be zero everywhere: the result does not depend on this argument." in message


@pytest.mark.parametrize("shape", [(), (3,), (100,)], ids=str)
def test_cotangents_in_the_wrong_order(shape: tuple[int, ...]) -> None:
    x, y = pnp.full(shape, 2.0), pnp.full(shape, 5.0)
    (_, first), (_, second) = findings(with_vjp(lambda x, y: x * y, lambda r, ct: (r[0] * ct, r[1] * ct)), x, y)
    assert "It is swapped with the one for argument 1 (y): the two are in the wrong order." in first
    assert "It is swapped with the one for argument 0 (x): the two are in the wrong order." in second
    (_, first), (_, second) = findings(
        with_jvp(lambda x, y: x * y, lambda t, ans, x, y: x * t, lambda t, ans, x, y: y * t), x, y
    )
    assert "It is swapped with the one for argument 1 (y)" in first
    assert "It is swapped with the one for argument 0 (x)" in second


def test_the_derivative_of_another_argument() -> None:
    f = with_vjp(lambda x, y: x**2 * y, lambda r, ct: (r[0] ** 2 * ct, r[0] ** 2 * ct))
    kind, message = finding(f, VECTOR, pnp.array([5.0, 7.0, 11.0]))
    assert kind == "derivative"
    assert "It is the one for argument 1 (y)." in message


@pytest.mark.parametrize("size", [3, 40])
def test_a_transposed_cotangent(size: int) -> None:
    a = pnp.array(RNG.normal(size=(size, size)), pnp.float32)
    x = pnp.array(RNG.normal(size=size), pnp.float32)
    f = with_vjp(lambda a, x: a @ x, lambda r, ct: (pnp.outer(r[1], ct), r[0].T @ ct))
    kind, message = finding(f, a, x)
    assert kind == "derivative"
    assert "by argument 0 (a)[" in message
    if size == 3:
        assert "It is transposed, as a matrix." in message


def test_a_transposed_tangent_and_a_transposed_jacobian() -> None:
    kind, message = finding(with_jvp(lambda x: 2 * x, lambda t, ans, x: 2 * t.T), MATRIX)
    assert kind == "derivative"
    assert "It is transposed, as a matrix." in message
    big = pnp.array(RNG.normal(size=(40, 40)), pnp.float32)
    assert "It is transposed, as a matrix." in finding(with_jvp(lambda x: 2 * x, lambda t, ans, x: 2 * t.T), big)[1]
    message = finding(with_jvp(lambda x: MATRIX @ x, lambda t, ans, x: MATRIX.T @ t), VECTOR)[1]
    assert "The matrix of derivatives is transposed." in message


@pytest.mark.parametrize(
    "rule",
    [lambda c, t: pnp.conj(c) * t, lambda c, t: pnp.conj(c * t), lambda c, t: c * pnp.conj(t)],
    ids=["factor", "result", "tangent"],
)
def test_a_complex_conjugate(rule: Any) -> None:
    c = pnp.array(2 + 3j)
    for f in (
        with_jvp(lambda z: c * z, lambda t, ans, z: rule(c, t)),
        with_vjp(lambda z: c * z, lambda r, ct: (rule(c, ct),)),
    ):
        for z in (1 + 1j, pnp.array([1 + 1j, 2 - 1j])):
            kind, message = finding(f, z)
            assert kind == "derivative"
            assert "It is the complex conjugate of the right value." in message
    check_rule(with_vjp(lambda z: c * z, lambda r, ct: (c * ct,)), 1 + 1j)


@pytest.mark.parametrize("mode", ["jvp", "vjp", "vjp of a sum"])
def test_one_component_of_many_is_found(mode: str) -> None:
    factor = np.ones(3000)
    factor[1234] = 1.01

    def slope(x: Any) -> Any:
        return pnp.cos(x) * pnp.array(factor, x.dtype)

    if mode == "jvp":
        f: Any = with_jvp(lambda x: pnp.sin(x), lambda t, ans, x: slope(x) * t)
    elif mode == "vjp":
        f = with_vjp(lambda x: pnp.sin(x), lambda r, ct: (slope(r[0]) * ct,))
    else:
        f = with_vjp(lambda x: pnp.sum(pnp.sin(x)), lambda r, ct: (slope(r[0]) * ct,))
    kind, message = finding(f, MANY)
    assert kind == "derivative"
    assert f"out{'' if mode == 'vjp of a sum' else '[1234]'} by argument 0 (x)[1234], expected" in message


def test_every_pair_of_leaves_is_reported() -> None:
    def f(p: Any, q: Any) -> Any:
        return {"s": p["a"] + q, "t": p["b"] * q}

    def bwd(residuals: Any, ct: Any) -> Any:
        p, q = residuals
        return {"a": 2 * ct["s"], "b": q * ct["t"]}, ct["s"] + 3 * p["b"] * ct["t"]

    found = findings(with_vjp(f, bwd), {"a": 1.0, "b": 2.0}, 5.0)
    assert [kind for kind, _ in found] == ["derivative"] * 2
    assert "derivative of out['s'] by argument 0 (p)['a']" in found[0][1]
    assert "derivative of out['t'] by argument 1 (q)" in found[1][1]


def test_a_derivative_that_is_meant_to_be_another_one() -> None:
    f = with_jvp(lambda x: x, lambda t, ans, x: 3 * t)
    with pytest.raises(RuleCheckError, match="pass derivative=False"):
        check_rule(f, 2.0)
    check_rule(f, 2.0, derivative=False)
    f.rule_check = {"derivative": False}
    check_rule(f, 2.0)
    with pytest.raises(RuleCheckError):
        check_rule(f, 2.0, derivative=True)


def test_two_rules_that_disagree() -> None:
    f = with_vjp(lambda x: x, lambda r, ct: (3 * ct,))
    f.defjvp(lambda primals, tangents: (primals[0], 2 * tangents[0]))
    kind, message = finding(f, VECTOR, derivative=False)
    assert kind == "consistency"
    assert "expected 2 (by the jvp rule" in message
    assert [kind for kind, _ in findings(f, VECTOR)] == ["derivative", "derivative"]


def test_tolerances() -> None:
    f = with_jvp(lambda x: 100 * x, lambda t, ans, x: 101 * t)
    assert finding(f, 2.0)[0] == "derivative"
    check_rule(f, 2.0, rtol=0.1)
    check_rule(f, 2.0, atol=2.0)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    f = with_vjp(lambda x, y: x * y, lambda r, ct: (ct + 1, ct))
    f.defjvp(lambda primals, tangents: (7 * primals[0], 2 * tangents[0] * primals[1] + primals[0] * tangents[1]))
    with pytest.raises(RuleCheckError) as caught:
        check_rule(f, 2.0, 3.0)
    message = str(caught.value)
    assert message.startswith(
        "check_rule found 3 faults in the rules of test_everything_that_is_wrong_is_said_at_once."
    )
    for kind in ("1. value: the jvp rule", "2. backward linearity: the backward rule", "3. derivative: the jvp rule"):
        assert kind in message
    assert f"{__file__}:" in message


# Symbolic zeros ------------------------------------------------------------------------------------------------------


def zero(t: Any) -> bool:
    return isinstance(t, SymbolicZero)


def test_symbolic_tangents() -> None:
    f = custom_jvp(lambda x, y: x * y)

    def right(primals: Any, tangents: Any) -> Any:
        (x, y), (a, b) = primals, tangents
        return x * y, (0 if zero(a) else a * y) + (0 if zero(b) else x * b)

    f.defjvp(right, symbolic_zeros=True)
    check_rule(f, 2.0, 3.0)

    def forgetful(primals: Any, tangents: Any) -> Any:
        (x, y), (a, b) = primals, tangents
        return x * y, a * y + x * b

    f.defjvp(forgetful, symbolic_zeros=True)
    kind, message = findings(f, 2.0, 3.0)[0]
    assert kind == "symbolic zeros"
    assert "raised TypeError" in message
    assert "where only argument 0 (x) has a tangent that is not a symbolic zero" in message

    def wrong(primals: Any, tangents: Any) -> Any:
        (x, y), (a, b) = primals, tangents
        return x * y, 2 * x * b if zero(a) else a * y + (0 if zero(b) else x * b)

    f.defjvp(wrong, symbolic_zeros=True)
    kind, message = finding(f, 2.0, 3.0)
    assert kind == "symbolic zeros"
    assert "where only argument 1 (y)" in message


def test_symbolic_cotangents() -> None:
    f = custom_vjp(lambda x, y: (x * y, x))

    def fwd(x: Any, y: Any) -> Any:
        return (x.value * y.value, x.value), (x, y)

    def right(residuals: Any, cts: Any) -> Any:
        (x, y), (a, b) = residuals, cts
        by_x = (0 if zero(a) else a * y.value) + (0 if zero(b) else b)
        return by_x, None if zero(a) or not y.perturbed else a * x.value

    f.defvjp(fwd, right, symbolic_zeros=True)
    check_rule(f, 2.0, 3.0)

    def wrong(residuals: Any, cts: Any) -> Any:
        (x, y), (a, b) = residuals, cts
        by_x = (0 if zero(a) else a * y.value) + (0 if zero(b) else b)
        return by_x, None if zero(a) or x.perturbed is not y.perturbed else a * x.value

    f.defvjp(fwd, wrong, symbolic_zeros=True)
    kind, message = finding(f, 2.0, 3.0)
    assert kind == "symbolic zeros"
    assert "returns 0 as cotangent of argument 1 (y) where derivatives are wanted by argument 1 (y) only" in message


# Bad input -----------------------------------------------------------------------------------------------------------


def test_what_is_not_a_function_with_rules() -> None:
    with pytest.raises(ArgumentError, match=r"check_rule takes a custom_jvp or custom_vjp function, .* got <built-in"):
        check_rule(abs, 1.0)
    with pytest.raises(MissingCustomRuleError, match=r"check_rule: sine_times at .* has no rule yet; .* with defjvp"):
        check_rule(custom_jvp(sine_times), 1.0, 2.0)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        check_rule(SINE_JVP, 1.0)


def test_values_must_be_known() -> None:
    with pytest.raises(ArgumentError, match=r"needs concrete arguments, got .*Traced"):
        jit(lambda x: [check_rule(SINE_JVP, x, 3.0), x][1])(2.0)


# The switch ----------------------------------------------------------------------------------------------------------

CALLS = {
    "plain": lambda f: f(2.0),
    "grad": lambda f: grad(f)(2.0),
    "jvp": lambda f: jvp(f, (2.0,), (1.0,)),
    "vmap": lambda f: vmap(f)(pnp.arange(1.0, 4.0)),
    "vmap(grad)": lambda f: vmap(grad(f))(pnp.arange(1.0, 4.0)),
    "grad(vmap)": lambda f: grad(lambda x: vmap(f)(x * pnp.ones(4)).sum())(2.0),
    "hessian": lambda f: hessian(f)(2.0),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_switch_checks_calls(call: str) -> None:
    wrong = with_jvp(lambda x: x**2, lambda t, ans, x: 3 * x * t)
    right = with_jvp(lambda x: x**2, lambda t, ans, x: 2 * x * t)
    CALLS[call](wrong)
    with pullback.check_custom_rules():
        CALLS[call](right)
        for _ in range(2):  # what is wrong is said again
            with pytest.raises(RuleCheckError, match=r"factor of 1\.5"):
                CALLS[call](wrong)
    CALLS[call](wrong)


@pytest.mark.parametrize("transformed", [lambda f: jit(f)(2.0), lambda f: make_jaxpr(f)(2.0)])
def test_the_switch_is_silent_where_values_are_not_known(transformed: Any) -> None:
    wrong = with_jvp(lambda x: x**2, lambda t, ans, x: 3 * x * t)
    with pullback.check_custom_rules():
        transformed(wrong)
        vmap(wrong)(pnp.zeros(0))


def test_the_switch_checks_what_is_constant_while_a_program_is_staged() -> None:
    wrong = with_jvp(lambda x: x**2, lambda t, ans, x: 3 * x * t)
    with pullback.check_custom_rules(), pytest.raises(RuleCheckError):
        jit(lambda x: x + wrong(2.0))(1.0)


def test_the_switch_checks_once_for_each_function_and_types_and_never_within_a_check() -> None:
    calls = []

    @custom_jvp
    def f(x: Any) -> Any:
        calls.append(x)
        return pnp.sin(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        return f(*primals), pnp.cos(primals[0]) * tangents[0]

    with pullback.check_custom_rules():
        f(1.0)
        assert len(calls) > 10
        counts = []
        for x in (1.0, 2.0, pnp.ones(2), pnp.zeros(2), pnp.zeros(2)):
            calls.clear()
            f(x)
            counts.append(len(calls))
        assert [count == 1 for count in counts] == [True, True, False, True, True]
    with pullback.check_custom_rules():
        calls.clear()
        f(1.0)
        assert len(calls) > 10


def test_effects_do_not_happen_again(capfd: Any) -> None:
    @custom_jvp
    def f(x: Any) -> Any:
        pullback.debug.print("called")
        return 2 * x

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    with pullback.check_custom_rules():
        f(1.0)
    assert capfd.readouterr().out == "called\n"


def test_a_function_that_must_run_once_is_not_checked() -> None:
    calls = []
    scalar = pullback.ShapeDtypeStruct((), pnp.float32)

    def count(x: Any) -> Any:
        calls.append(x)
        return np.float32(x)

    f = with_jvp(lambda x: pullback.experimental.io_callback(count, scalar, x), lambda t, ans, x: t)
    with pullback.check_custom_rules():
        f(1.0)
    assert len(calls) == 1


def test_helpers_whose_derivative_is_meant_to_be_another_one_pass() -> None:
    with pullback.check_custom_rules():
        grad(lambda x: clip_gradient(x, -1.0, 1.0) * 3)(2.0)
        grad(lambda x: scale_gradient(x, 2.0) * 3)(2.0)
        grad(lambda x: straight_through(pnp.round)(x) * 3)(2.0)


def test_the_environment_puts_the_switch_on() -> None:
    program = (
        "import pullback\n"
        "f = pullback.custom_jvp(lambda x: x)\n"
        "f.defjvps(lambda t, ans, x: 3 * t)\n"
        "try:\n"
        "    f(1.0)\n"
        "except pullback.errors.RuleCheckError:\n"
        "    print('found')\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={"PULLBACK_CHECK_CUSTOM_RULES": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout == "found\n"


# Random programs -----------------------------------------------------------------------------------------------------


def with_own_derivative(program: Program, scale: Callable[[int], float]) -> tuple[Any, Any]:
    """A program with both kinds of rules, which multiply the derivatives by the inputs by some numbers."""
    count = len(program.inputs)
    factors = [scale(i) for i in range(count)]
    forward = custom_jvp(lambda *xs: program(*xs))
    forward.defjvp(lambda primals, ts: jvp(program, primals, tuple(c * t for c, t in zip(factors, ts, strict=True))))
    reverse = custom_vjp(lambda *xs: program(*xs))
    reverse.defvjp(
        lambda *xs: (program(*xs), xs),
        lambda xs, cts: tuple(c * ct for c, ct in zip(factors, vjp(program, *xs)[1](cts), strict=True)),
    )
    return forward, reverse


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_true_derivatives_of_random_programs_pass(dtype: Any, data: Any) -> None:
    program = data.draw(programs(dtype=dtype))
    with enable_x64(dtype is np.float64):
        for f in with_own_derivative(program, lambda i: 1.0):
            check_rule(f, *program.arguments())


@given(programs(), st.data())
def test_a_false_derivative_by_one_input_of_random_programs_is_found(program: Program, data: Any) -> None:
    which = data.draw(st.integers(0, len(program.inputs) - 1))
    with enable_x64():
        arguments = program.arguments()
        largest = max(float(pnp.max(pnp.abs(j))) for j in jacrev(program, argnums=which)(*arguments))
        assume(largest > 1e-3)
        for f in with_own_derivative(program, lambda i: 1.01 if i == which else 1.0):
            found = findings(f, *arguments)
            assert {kind for kind, _ in found} == {"derivative"}
            assert all(f"by argument {which}" in message for _, message in found)
            assert any("differs by a factor of 1.01" in message for _, message in found)


def test_components_of_complex_arrays_have_names() -> None:
    space = differences.Space((np.zeros(2, np.complex64),))
    parts = [f"argument 0[{i}] ({part} part)" for part in ("real", "imaginary") for i in range(2)]
    assert [space.name(k, "argument") for k in range(4)] == parts
