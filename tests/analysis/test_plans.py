"""Plans of memory: tables, pictures, and the compiler's own count."""

import pytest

import pullback.numpy as jnp
from pullback import ShapeDtypeStruct, analysis, grad, jit, lax
from pullback.core.errors import ArgumentError, MemoryBudgetError
from pullback.display.pages import amount

KIND = ShapeDtypeStruct((48, 48), "float32"), ShapeDtypeStruct((600, 48), "float32")


def loss(w, x):
    for _ in range(10):
        x = jnp.tanh(x @ w)
    return jnp.sum(x)


@pytest.fixture(scope="module")
def plan():
    return analysis.plan_memory(loss, *KIND)


def test_the_curve_falls_and_its_ends_are_the_usual_and_the_least(plan) -> None:
    peaks, extras = [c.peak for c in plan.curve], [c.extra for c in plan.curve]
    assert peaks == sorted(peaks, reverse=True)
    assert len(peaks) > 3
    assert peaks[0] == plan.usual
    assert extras[0] == 0
    assert peaks[-1] == plan.least
    assert extras[-1] > 0
    assert len(str(plan).splitlines()) == 1 + len(peaks)
    assert "<svg" in plan._repr_html_()
    assert "time against memory of loss" in plan._repr_html_()


def test_a_choice_says_what_each_line_keeps(plan) -> None:
    choice = plan.at("75%")
    assert choice.peak <= 0.75 * plan.usual
    [(where, kept, again), *_] = choice.lines
    assert where.startswith("test_plans.py:")
    assert where.endswith(" loss")
    assert kept > 0
    assert again > 0
    assert where in str(choice)
    assert where in choice._repr_html_()


def test_the_compiler_counts_what_is_promised(plan) -> None:
    choice = plan.fitted("75%")
    assert plan.measured(choice.budget) <= 0.75 * plan.measured()
    own = jit(grad(loss, argnums=(0, 1), memory=choice.budget)).lower(*KIND).compile()
    assert own.memory_analysis().temp_size_in_bytes <= 0.75 * plan.measured()


def test_what_is_impossible_is_an_error(plan) -> None:
    with pytest.raises(MemoryBudgetError, match=r"plan_memory of loss at .*: memory=100 bytes cannot be kept"):
        plan.at(100)
    with pytest.raises(ArgumentError, match="memory must be"):
        plan.at("much")
    with pytest.raises(ArgumentError):
        analysis.plan_memory(3, *KIND)


def test_no_two_rows_have_the_same_memory() -> None:
    def steps(w, xs):
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), xs[0], xs)[0])

    found = analysis.plan_memory(
        steps, ShapeDtypeStruct((16, 16), "float32"), ShapeDtypeStruct((200, 8, 16), "float32")
    )
    assert found.curve[0].peak == found.usual
    rows = [line.split("%")[0] for line in str(found).splitlines()[1:]]
    assert len(set(rows)) == len(rows)


def test_a_picture_says_what_it_shows(plan) -> None:
    picture = plan._repr_html_()
    for text in (amount(plan.usual), f"peak {amount(plan.least)}", "1.00 of the time"):
        assert f">{text}</text>" in picture
