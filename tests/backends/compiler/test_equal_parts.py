"""Equal parts of programs become functions, and programs of such functions do what they do whole."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import pullback.numpy as jnp
from pullback import Array, config, custom_jvp, debug, enable_x64, grad, hessian, jit, jvp, lax, make_jaxpr, tree, vmap
from pullback.backends.compiler import equal_parts, fusions
from pullback.backends.compiler.equal_parts import Kinds, Repeat, find, with_inlined_calls
from pullback.core.jaxpr import ClosedJaxpr
from tests.backends.compiler.loop_bodies import BODIES, X
from tests.random_programs import Program, programs

better_apart, WORTH = equal_parts.is_better_outlined, equal_parts.WORTH
STEPS = 6


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also small programs are taken apart, and those that are better whole."""
    monkeypatch.setattr(equal_parts, "FEWEST", 10)
    monkeypatch.setattr(equal_parts, "SMALLEST", 2)
    monkeypatch.setattr(equal_parts, "WORTH", -1)
    monkeypatch.setattr(equal_parts, "is_better_outlined", lambda *args: True)


def parts_of(function: Any, *args: Any) -> list[Repeat]:
    return find(with_inlined_calls(make_jaxpr(function)(*args)).jaxpr, Kinds())


def calls(function: Any, *args: Any) -> int:
    return str(jit(function).lower(*args).as_text()).count(equal_parts.ATTRIBUTES)


def whole(function: Any, *args: Any) -> Any:
    config.update("equal_parts", False)
    try:
        return jit(lambda *args: function(*args))(*args)
    finally:
        config.update("equal_parts", True)


def repeated(step: Any, steps: int = STEPS) -> Any:
    def function(x: Array) -> Array:
        for i in range(steps):
            x = step(i, x)
        return x

    return function


def wave(i: int, x: Array) -> Array:
    return jnp.sin(x) * jnp.cos(x + 1) - jnp.exp(x) / 3


@pytest.mark.parametrize("name", BODIES)
def test_steps_that_are_written_again_and_again(name: str) -> None:
    """Each operation in a step of an unrolled loop: its values and its gradient are those of the eager function.

    The whole program is not compiled: some take the compiler very long.
    """
    function, x = repeated(BODIES[name]), jnp.asarray(X)
    if name == "population_count":  # of negative numbers as whole ones without sign, which are the machine's
        x = jnp.abs(x)
    np.testing.assert_allclose(jit(function)(x), function(x), rtol=2e-5, atol=1e-6)
    if name in ("nextafter", "population_count"):
        return

    def loss(x: Array) -> Array:
        return jnp.sum(function(x) ** 2)

    np.testing.assert_allclose(jit(grad(loss))(x), grad(loss)(x), rtol=1e-4, atol=1e-4)


def test_steps_are_found() -> None:
    parts = parts_of(repeated(wave), X)
    assert len(parts) == STEPS
    assert len({id(part.function) for part in parts}) == 1
    assert [part.stop - part.start for part in parts] == [7] * STEPS
    assert all(len(part.operands) == len(part.results) == 1 for part in parts)
    assert calls(repeated(wave), X) == STEPS


def test_the_backward_pass_too() -> None:
    found = parts_of(grad(lambda x: repeated(wave)(x).sum()), X)
    assert len({id(part.function) for part in found}) == 2
    assert len(found) >= 2 * STEPS - 2


def test_an_unrolled_loop_over_slices() -> None:
    """The steps are not next to each other: the slices between them differ."""

    def function(x: Array, xs: Array) -> Array:
        for i in range(STEPS):
            x = wave(i, x) + xs[i]
        return x

    xs = np.linspace(-1, 0, STEPS * X.size, dtype=np.float32).reshape(STEPS, -1)
    assert len({id(part.function) for part in parts_of(function, X, xs)}) == 1
    np.testing.assert_allclose(jit(function)(X, xs), whole(function, X, xs), rtol=1e-5)


def test_numbers_that_differ_are_arguments() -> None:
    def step(i: int, x: Array) -> Array:
        return jnp.sin(x) * (i / 7) + jnp.cos(x) * 0.5 + jnp.exp(x) * (i / 7)

    parts = parts_of(repeated(step), X)
    assert len(parts) == STEPS
    assert {len(part.operands) for part in parts} == {2}
    np.testing.assert_allclose(jit(repeated(step))(X), whole(repeated(step), X), rtol=1e-5)


def test_signed_zeros_and_nans_are_different_numbers() -> None:
    def step(i: int, x: Array) -> Array:
        return jnp.sin(x) / ([0.0, -0.0, np.nan][i % 3]) + jnp.cos(x) * 0.5 + jnp.tanh(x)

    def function(x: Array) -> list[Array]:
        return [step(i, x) for i in range(6)]

    for got, wanted in zip(jit(function)(X), whole(function, X), strict=True):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_whole_numbers_are_part_of_what_is_done() -> None:
    def step(i: int, x: Array) -> Array:
        return jnp.sin(x) + x[i] * jnp.cos(x) + lax.dynamic_index_in_dim(x, i, keepdims=False)

    np.testing.assert_allclose(jit(repeated(step))(X), whole(repeated(step), X), rtol=1e-5)


def test_equal_operations_on_other_operands_are_other_parts() -> None:
    """The same operations in the same order, of which the second reads the first's operand in half of the steps."""

    def step(i: int, x: Array) -> Array:
        a = jnp.sin(x)
        b = jnp.cos(a if i % 2 else x)
        return a * b + jnp.exp(b)

    parts = parts_of(repeated(step, 12), X)
    assert len(parts) >= 6
    np.testing.assert_allclose(jit(repeated(step, 12))(X), whole(repeated(step, 12), X), rtol=1e-5)


def test_other_results_of_one_operation_are_other_parts() -> None:
    def step(i: int, x: Array) -> Array:
        found = lax.sort((x, jnp.cos(x)), num_keys=1)
        return jnp.sin(found[i % 2]) + jnp.exp(-x)

    got, wanted = jit(repeated(step))(X), repeated(step)(jnp.asarray(X))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_values_that_only_some_copies_hand_out() -> None:
    def function(x: Array) -> tuple[Array, Array, Array]:
        kept = []
        for i in range(STEPS):
            y = jnp.sin(x)
            x = jnp.exp(-y) * jnp.cos(y) + x
            if i in (2, 4):
                kept.append(y)
        return x, *kept  # type: ignore[return-value]

    for got, wanted in zip(jit(function)(X), whole(function, X), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_calls_are_opened() -> None:
    """Functions under jit, with rules of their own, of which each call has another program."""

    @custom_jvp
    def own(x: Array) -> Array:
        return jnp.sin(x) * 2

    own.defjvps(lambda t, ans, x: 3 * t)

    def step(i: int, x: Array) -> Array:
        return jit(lambda x: own(x) + jnp.exp(x) * jnp.cos(x))(x) * 0.5

    assert len({id(part.function) for part in parts_of(repeated(step), X)}) == 1
    np.testing.assert_allclose(jit(repeated(step))(X), whole(repeated(step), X), rtol=1e-5)


def test_programs_are_opened_if_they_are_large_enough_with_what_they_call() -> None:
    inner = jit(lambda x: jnp.sin(jnp.cos(x)))

    def calls(count: int, more: int) -> ClosedJaxpr:
        def program(x: Array) -> Array:
            for _ in range(count):
                x = inner(x)
            for _ in range(more):
                x = jnp.exp(x)
            return x

        return make_jaxpr(program)(X)

    count, more = equal_parts.FEWEST // 2 - 1, 2
    assert len(with_inlined_calls(calls(count, more)).jaxpr.eqns) == equal_parts.FEWEST
    assert len(with_inlined_calls(calls(count, more - 1)).jaxpr.eqns) == count + more - 1


def test_captured_arrays_are_operands() -> None:
    weights = [jnp.asarray(np.random.default_rng(i).normal(size=(40, 40)).astype(np.float32)) for i in range(STEPS)]

    def step(i: int, x: Array) -> Array:
        return jnp.sin(jit(lambda x: x @ weights[i])(x)) * jnp.cos(x) * 0.1

    x = np.linspace(0, 1, 40, dtype=np.float32)
    assert len({id(part.function) for part in parts_of(repeated(step), x)}) == 1
    np.testing.assert_allclose(jit(repeated(step))(x), whole(repeated(step), x), rtol=1e-4, atol=1e-6)


def test_effects_stay_outside_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    def step(i: int, x: Array) -> Array:
        x = wave(i, x)
        debug.print("{x:.3f}", x=x[0], ordered=True)
        return x

    jit(repeated(step))(X)
    got = capsys.readouterr().out
    x, wanted = X, []
    for i in range(STEPS):
        x = wave(i, x)
        wanted.append(f"{float(x[0]):.3f}")
    assert got.split() == wanted


def test_in_the_bodies_of_loops() -> None:
    def function(x: Array) -> Array:
        return lax.scan(lambda c, _: (repeated(wave)(c), c.sum()), x, length=3)[0]

    np.testing.assert_allclose(jit(function)(X), whole(function, X), rtol=1e-4)


def test_parts_of_two_bodies_share_a_function() -> None:
    def function(x: Array) -> Array:
        x = lax.fori_loop(0, 3, lambda i, x: repeated(wave)(x), x)
        return lax.fori_loop(0, 2, lambda i, x: repeated(wave, 4)(x) + 1, x)

    x = np.linspace(0, 1, 2000, dtype=np.float32)
    text = jit(function).lower(x).as_text()
    assert text.count("func.func private @part") == 1
    assert text.count("call @part") == STEPS + 4


def test_donated_arguments() -> None:
    x = jnp.asarray(X) + 0
    got = jit(repeated(wave), donate_argnums=0)(x)
    np.testing.assert_allclose(got, whole(repeated(wave), X), rtol=1e-5)
    assert x.is_deleted()


@given(programs())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_programs(program: Program) -> None:
    """A random program, written three times, with its derivatives."""

    def loss(*inputs: Array) -> Array:
        shifted = [[x + k / 3 for x in inputs] for k in range(3)]
        return sum(jnp.sum(jnp.sin(y)) for each in shifted for y in program(*each))  # type: ignore[return-value]

    with enable_x64():
        for function in (loss, grad(loss), lambda *xs: jvp(loss, xs, xs), lambda *xs: hessian(loss)(*xs)):
            got, wanted = (tree.leaves(run(*program.inputs)) for run in (jit(function), partial(whole, function)))
            for a, b in zip(got, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_mapped_over_a_batch() -> None:
    xs = np.stack([X, X + 1])
    np.testing.assert_allclose(jit(vmap(repeated(wave)))(xs), whole(vmap(repeated(wave)), xs), rtol=1e-5)


def test_finding_takes_a_time_linear_in_the_program() -> None:
    """Counted: the equations that are looked at for their operands, for twice as many steps about twice as many."""

    class Counted(list[Any]):
        reads = 0

        def __getitem__(self, i: Any) -> Any:
            found = super().__getitem__(i)
            Counted.reads += len(found) if isinstance(i, slice) else 1
            return found

    def reads(steps: int) -> int:
        jaxpr = make_jaxpr(repeated(wave, steps))(X).jaxpr
        jaxpr.eqns = Counted(jaxpr.eqns)
        Counted.reads = 0
        assert len(find(jaxpr, Kinds())) == steps
        return Counted.reads

    assert reads(80) < 2.2 * reads(40)


# Which programs are better apart --------------------------------------------------------------------------------------


def _is_better_apart(function: Any, *args: Any) -> bool:
    closed = with_inlined_calls(make_jaxpr(function)(*args))
    parts = find(closed.jaxpr, Kinds())
    assert parts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_parts, "WORTH", WORTH)
        return better_apart(closed.jaxpr, parts, fusions.cost(closed.jaxpr.eqns, closed.jaxpr.outvars))


def test_the_cost_of_a_loop_that_reads_an_array_twice() -> None:
    """It is read once, and so is each operation computed."""
    jaxpr = make_jaxpr(lambda x, y: (jnp.sin(x) + y) * x)(jnp.ones(10), jnp.ones(10)).jaxpr
    operations = fusions.HEAVY + 1 + 1
    run = fusions.KERNEL + 10 * (operations + fusions.NEAR * (1 + 2))
    assert fusions.cost(jaxpr.eqns, jaxpr.outvars) == (fusions.CODE + operations, run)


@given(programs(max_instructions=20))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_small_programs_have_no_more_code_than_the_bound(program: Program) -> None:
    """The bound of a gradient, found by bisection, is at least its code."""
    with enable_x64():
        gradient = grad(lambda *inputs: sum(map(jnp.sum, program(*inputs))))
        jaxpr = with_inlined_calls(make_jaxpr(gradient)(*program.inputs)).jaxpr
    low, high = -1, 2**40
    assert fusions.is_small(jaxpr.eqns, jaxpr.outvars, high)
    while high - low > 1:
        middle = (low + high) // 2
        is_small = fusions.is_small(jaxpr.eqns, jaxpr.outvars, middle)
        low, high = (low, middle) if is_small else (middle, high)
    assert high >= fusions.cost(jaxpr.eqns, jaxpr.outvars).code


def test_the_code_of_one_loop_is_its_bound() -> None:
    """One more than it is not; nor is less for results that are returned, written for a product, or reduced."""
    two, one = jnp.ones((3, 3)), jnp.ones(3)
    for function, operations in (
        (lambda x, y: (jnp.sin(x) + y) * x, fusions.HEAVY + 2),
        (lambda x, y: jnp.dot(jnp.sin(x), y), fusions.HEAVY),
        (lambda x, y: jnp.sin(x).sum(0), fusions.HEAVY),
        (lambda x, y: jnp.sin(x).sum(1), 2 * fusions.HEAVY),
    ):
        jaxpr = make_jaxpr(function)(two, one).jaxpr
        code = fusions.CODE + operations
        assert fusions.cost(jaxpr.eqns, jaxpr.outvars).code == code
        assert fusions.is_small(jaxpr.eqns, jaxpr.outvars, code)
        assert not fusions.is_small(jaxpr.eqns, jaxpr.outvars, code - 1)


def test_programs_that_are_too_small_to_gain_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts_of(repeated(wave), X)
    monkeypatch.setattr(equal_parts, "WORTH", WORTH)
    monkeypatch.setattr(equal_parts, "_Search", None)  # which would raise
    assert not parts_of(repeated(wave), X)


def test_a_chain_that_the_compiler_would_compute_again_for_each_use() -> None:
    """The gradient by a number that each of 100 steps adds sums over the elements of each step."""

    def loss(x: Array, s: Any) -> Array:
        for _ in range(100):
            x = jnp.sin(x) + s
        return x.sum()

    assert _is_better_apart(grad(loss, (0, 1)), np.ones(10_000, np.float32), np.float32(0.1))


def test_a_chain_of_products_stays_whole() -> None:
    """Its steps would wait for memory."""

    def loss(x: Array, s: Any) -> Array:
        for _ in range(100):
            x = s * x * (1 - x)
        return x.sum()

    assert not _is_better_apart(grad(loss), np.ones(100_000, np.float32), np.float32(0.1))


@pytest.mark.parametrize("residual", [False, True])
def test_residual_networks_with_norms_grow_and_others_do_not(residual: bool) -> None:
    def loss(weights: list[Array], x: Array) -> Array:
        for w in weights:
            y = x - jnp.mean(x, -1, keepdims=True)
            y = jnp.tanh(y / jnp.sqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5) @ w)
            x = x + y if residual else y
        return jnp.sum(x**2)

    weights = [np.ones((16, 16), np.float32)] * 60
    assert _is_better_apart(grad(loss), weights, np.ones((4, 16), np.float32)) == residual
