"""Programs of local Jacobians: nothing is computed twice, little is held, and the values stay the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import pullback.numpy as jnp
from pullback import grad, make_jaxpr, vmap
from pullback.core.jaxpr import ClosedJaxpr, eval_jaxpr
from pullback.derivatives import preaccumulate
from pullback.primitives import elementwise
from pullback.transforms.preaccumulation import on_host
from pullback.transforms.preaccumulation.on_host import host_program
from pullback.transforms.preaccumulation.ordering import economical, peak_elements, without_repeats, without_signs
from tests.helpers import assert_close, chosen, operations_of
from tests.random_programs import Program, programs

pytestmark = pytest.mark.usefixtures("all_in_x64")

PLACES = np.array([0.0, -0.0, 1.5, -3.0, np.inf, -np.inf, 5e-324, -2e-308, 1e308])


def run(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *map(jnp.asarray, args))


def gradient_of(p: Program) -> ClosedJaxpr:
    return make_jaxpr(grad(p.scalar, tuple(range(len(p.inputs)))))(*p.arguments())


@given(programs())
@settings(max_examples=chosen(25, 200))
def test_values_stay_the_same(p: Program) -> None:
    closed, args = gradient_of(p), p.arguments()
    assert_close(run(economical(closed), *args), run(closed, *args), 1e-14)


@given(programs())
@settings(max_examples=chosen(25, 200))
def test_numpy_computes_the_same(p: Program) -> None:
    closed, args = gradient_of(p), p.arguments()
    kept = [np.array(x) for x in args]
    least, on_host.LARGE = on_host.LARGE, 0
    try:
        program = host_program(closed)
    finally:
        on_host.LARGE = least
    if program is not None:
        assert_close(program.run(args), run(closed, *args), 1e-14)
        assert_close(args, kept, 0)


def test_memory_that_a_view_has_is_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_host, "LARGE", 0)

    def f(x: Any) -> Any:
        y = x * 2.0
        view = y.T
        z = y + 1.0  # the last to read y, whose memory the view still has
        return view, z * z

    x = np.arange(4.0).reshape(2, 2)
    program = host_program(make_jaxpr(f)(x))
    assert program is not None
    assert any(step.into is not None for step in program.steps)
    view, square = program.run([jnp.asarray(x)])
    assert_close((view, square), ((x * 2).T, (2 * x + 1) ** 2))


SIGNS = {
    "sum": lambda x, y: x + -y,
    "sum, the other": lambda x, y: -x + y,
    "sum of both": lambda x, y: -x + -y,
    "difference": lambda x, y: x - -y,
    "difference, the other": lambda x, y: -x - y,
    "difference of both": lambda x, y: -x - -y,
    "product": lambda x, y: x + -x * y,
    "product of both": lambda x, y: x - -x * -y,
    "quotient": lambda x, y: x / -y - x,
    "quotient of both": lambda x, y: x - -x / -y,
    "chain": lambda x, y: x - (-x * y) / x * -y,
    "sum within a product": lambda x, y: x + (-x - y) * y,
    "itself": lambda x, y: -x - -x + y,
    "used twice": lambda x, y: (x + -y) * jnp.exp(-y),
    "result": lambda x, y: [-y, x - -y],
    "negative of a negative": lambda x, y: x - jnp.negative(-y),
}


@pytest.mark.parametrize("case", SIGNS)
def test_signs_are_exact(case: str) -> None:
    closed = make_jaxpr(SIGNS[case])(PLACES[0], PLACES[0])
    signless = without_signs(closed.jaxpr.eqns, closed.jaxpr.outvars)
    assert [eqn.primitive.name for eqn in signless].count("neg") <= operations_of(closed).count("neg")
    x, y = np.array(list(itertools.product(PLACES, PLACES))).T
    closed = make_jaxpr(SIGNS[case])(x, y)
    for got, expected in zip(run(economical(closed), x, y), run(closed, x, y), strict=True):
        assert np.array_equal(got, expected, equal_nan=True)
        numbers = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


def test_signs_go_where_a_sum_takes_them_over() -> None:
    closed = make_jaxpr(lambda x, y: x + -y * x / y - y)(1.0, 2.0)
    assert operations_of(closed) == ["neg", "mul", "div", "add", "sub"]
    assert operations_of(economical(closed)) == ["mul", "div", "sub", "sub"]
    one = make_jaxpr(lambda x, y: [(n := -x) * y, n * x, n / y])(1.0, 2.0)  # where three results would be negated
    assert operations_of(economical(one)) == ["neg", "mul", "mul", "div"]


def test_what_is_repeated_is_computed_once() -> None:
    closed = make_jaxpr(lambda x: [jnp.sin(x) * 2.0, jnp.sin(x) * 2.0, jnp.sin(x) * 3.0, jnp.sum(x, 0), jnp.sum(x, 1)])(
        np.ones((2, 2))
    )
    eqns, outs = without_repeats(closed.jaxpr.eqns, closed.jaxpr.outvars)
    assert [eqn.primitive.name for eqn in eqns] == ["sin", "mul", "mul", "reduce_sum", "reduce_sum"]
    assert outs[0] is outs[1] is not outs[2]
    zeros = make_jaxpr(lambda x: [jnp.arctan2(0.0, x), jnp.arctan2(-0.0, x)])(-1.0)
    assert run(economical(zeros), -1.0) == [np.pi, -np.pi]


def steps(x: Any, count: int) -> Any:
    for _ in range(count):
        x = x - (x * jnp.sin(x) - 0.5) / (jnp.sin(x) + x * jnp.cos(x))
    return x


def test_few_values_are_held() -> None:
    def jacobian(count: int) -> ClosedJaxpr:
        program = make_jaxpr(vmap(grad(preaccumulate(lambda x: steps(x, count)))))(np.ones(4))
        return program.eqns[0].params["jaxpr"]  # type: ignore[no-any-return]

    held = [peak_elements(p.jaxpr.eqns, p.jaxpr.outvars) for p in map(jacobian, (3, 6, 12))]
    assert held[0] == held[1] == held[2]
    assert operations_of(jacobian(12)).count("sin") == operations_of(jacobian(12)).count("cos") == 12


def test_programs_of_large_arrays_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.backends.compiler import one_operation

    seen: list[Any] = []
    monkeypatch.setattr(one_operation, "evaluate", lambda p, *rest: seen.append(p))
    x = np.linspace(0.5, 1.0, on_host.LARGE)
    gradients = [vmap(grad(f))(x) for f in (preaccumulate(lambda x: steps(x, 12)), lambda x: steps(x, 12))]
    assert seen == []
    assert_close(*gradients)


def test_an_error_of_a_large_program_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(x: Any) -> Any:
        raise ZeroDivisionError("within the host rule")

    monkeypatch.setattr(elementwise.sin_p, "host_rule", faulty)
    with pytest.raises(ZeroDivisionError, match="within the host rule"):
        preaccumulate(lambda x: steps(x, 13))(np.linspace(0.5, 1.0, on_host.LARGE))
