"""Which digits of results are true, and which lines are named."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import analysis, lax, tree
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, MissingRuleError
from tests.grid.all_specs import OF_PRIMITIVES
from tests.helpers import chosen


def line_after(mark: str, function: Any) -> int:
    """The number of the line of a function that has a mark."""
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if mark in line)


def single(*numbers: float) -> Any:
    """An array in single precision."""
    return np.array(numbers, np.float32)


def cancels(x: Any) -> Any:
    y = 1 + x
    return y - 1  # lost


OTHERS = ("random", "convert_element_type", "reduce_precision", "nextafter", "bitcast_convert_type")
"""Operations that round or depend on bits: their shadows are not their results in doubles."""
ROWS = [s for s in OF_PRIMITIVES if set("fF") & set(s.dtypes) and not s.name.startswith(OTHERS)]


ONE_EACH = chosen(list({s.operation: s for s in ROWS}.values()), ROWS)


@pytest.mark.parametrize("spec", ONE_EACH, ids=str)
def test_shadows_are_the_operations_in_doubles(spec: Any) -> None:
    point = spec.point("f" if "f" in spec.dtypes else "F")
    found = analysis.precision(spec.function)(*map(jnp.asarray, point))
    wide = [
        x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) if x.dtype.kind in "fc" else x for x in point
    ]
    with enable_x64():
        wanted = [np.asarray(x) for x in tree.leaves(spec.function(*map(jnp.asarray, wide)))]
    for x, y in zip(tree.leaves(found.exact), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("spec", ONE_EACH, ids=str)
def test_shadows_of_doubles_agree_with_them(spec: Any) -> None:
    with enable_x64():
        given = spec.point("d" if "f" in spec.dtypes else "D")  # where some operands may be of singles
        point = [jnp.asarray(x.astype(np.float64) if x.dtype == np.float32 else x) for x in given]
        found = analysis.precision(spec.function)(*point)
        wanted = [np.asarray(x) for x in tree.leaves(spec.function(*point))]
    for x, y in zip(tree.leaves(found.exact), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "how", [lambda f: f, pullback.jit, pullback.vmap, pullback.checkpoint], ids=["eager", "jit", "vmap", "checkpoint"]
)
def test_a_cancellation_is_found_eagerly_and_in_programs(how: Any) -> None:
    x = single(1e-5, 2e-5)
    found = analysis.precision(how(cancels))(x)
    true = -np.log10(np.abs((np.float32(1) + x - np.float32(1)).astype(float) / x.astype(float) - 1))
    np.testing.assert_allclose(found.results[0].elements, true, atol=0.1)
    assert found.digits == pytest.approx(true.min(), abs=0.1)
    (loss,) = found.losses
    assert (loss.kind, loss.operation) == ("cancellation", "sub")
    assert loss.line.endswith(f"test_true_digits.py:{line_after('# lost', cancels)}")


def test_loops_and_branches_run_step_by_step() -> None:
    def f(x: Any) -> Any:
        total, _ = lax.scan(lambda c, y: (c + cancels(y), None), 0.0, x)
        last = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] / 3), (0, total))[1]
        return lax.cond(last > 0, lambda y: y * 3, lambda y: y * 0, last)

    x = single(1e-5, 2e-5, 3e-5)
    found = analysis.precision(f)(x)
    np.testing.assert_allclose(found.exact, x.astype(float).sum() / 9, rtol=1e-6)
    assert found.losses[0].line.endswith(f":{line_after('# lost', cancels)}")


def test_derivatives_have_shadows() -> None:
    def f(x: Any) -> Any:
        return jnp.log(1 - jnp.exp(-x)) + jnp.sum(jnp.sin(x))

    x = np.float32(1e-4)
    found = analysis.precision(pullback.grad(f))(x)
    np.testing.assert_allclose(found.exact, 1 / np.expm1(np.float64(x)) + np.cos(np.float64(x)), rtol=1e-12)
    assert 3 < found.digits < 4.5
    second = analysis.precision(pullback.grad(pullback.grad(jnp.sin)))(np.float32(1))
    np.testing.assert_allclose(second.exact, -np.sin(1.0), rtol=1e-12)


def test_custom_rules_are_followed() -> None:
    @pullback.custom_jvp
    def f(x: Any) -> Any:
        return cancels(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    assert analysis.precision(f)(np.float32(1e-5)).digits < 3
    assert float(analysis.precision(pullback.grad(f))(np.float32(1e-5)).exact) == 3


def test_overflow_is_named_where_it_begins() -> None:
    def f(x: Any) -> Any:
        large = jnp.exp(x)
        return jnp.log(jnp.sum(large))

    found = analysis.precision(f)(single(1000, 1001))
    assert found.digits == 0
    assert (found.losses[0].kind, found.losses[0].operation) == ("overflow", "exp")


def test_absorption_is_named_where_a_term_is_lost() -> None:
    def summed(total: Any, x: Any) -> Any:
        for _ in range(100):
            total = total + x  # lost
        return total

    found = analysis.precision(summed)(np.float32(2e8), np.float32(5))
    assert [(x.kind, x.operation) for x in found.losses] == [("absorption", "add")]
    assert found.losses[0].line.endswith(f":{line_after('# lost', summed)}")
    assert "compensation" in found.losses[0].advice
    assert float(found.value) == 2e8
    rounded = analysis.precision(summed)(np.float32(2e8), np.float32(20))  # each sum is rounded, and none is its term
    assert [x.kind for x in rounded.losses] == ["rounding"]


def test_absorption_is_named_where_a_difference_shows_it() -> None:
    def difference(x: Any) -> Any:
        y = x + 1  # lost
        return y - x

    found = analysis.precision(difference)(np.float32(1e9))
    assert (found.digits, found.losses[0].kind, found.losses[0].operation) == (0, "cancellation", "sub")
    (absorbed,) = [x for x in found.events if x.kind == "absorption"]
    assert absorbed.line.endswith(f":{line_after('# lost', difference)}")
    assert "absorption" not in [x.kind for x in analysis.precision(difference)(np.float32(1e5)).events]
    assert "absorption" not in [x.kind for x in analysis.precision(lambda x: x + 0 - x / 3 * 3)(np.float32(0.7)).events]


def test_differences_too_small_for_doubles_are_seen_by_two() -> None:
    x = np.float32(1e20)
    found = analysis.precision(lambda x: jnp.sqrt(x + 1) - jnp.sqrt(x))(x)
    np.testing.assert_allclose(found.exact, 0.5 / np.sqrt(np.float64(x)), rtol=1e-6)
    assert (found.digits, found.losses[0].kind) == (0, "cancellation")


def test_doubles_have_shadows_of_two() -> None:
    with enable_x64():
        found = analysis.precision(lambda x: (1 - jnp.cos(x)) / x**2)(jnp.float64(1e-6))
        under = analysis.precision(lambda x: jnp.log(jnp.exp(x) * jnp.exp(x)))(jnp.float64(-500))
    np.testing.assert_allclose(found.exact, 0.5, rtol=1e-12)
    assert found.digits == pytest.approx(-math.log10(abs((1 - math.cos(1e-6)) / 1e-12 / 0.5 - 1)), abs=0.1)
    assert (under.digits, under.losses[0].kind, under.losses[0].operation) == (0, "underflow", "mul")


def test_products_of_large_matrices_of_doubles_keep_digits_that_cancel() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 40)), rng.normal(size=(40, 24))
    left, right = np.concatenate([x, x, 1e-9 * x], 1), np.concatenate([y, -y, y])
    with enable_x64():
        found = analysis.precision(jnp.matmul)(left, right)
    exact = [
        [float(sum(Fraction(p) * Fraction(q) for p, q in zip(row, column, strict=True))) for column in right.T]
        for row in left
    ]
    np.testing.assert_allclose(found.exact, exact, rtol=1e-9)
    error = np.abs((np.asarray(found.value) - exact) / exact)
    np.testing.assert_allclose(found.results[0].elements, -np.log10(np.maximum(error, 2.0**-53)), atol=0.1)
    with enable_x64():
        assert np.isnan(np.asarray(analysis.precision(jnp.matmul)(left * np.inf, right).exact)).all()


def test_operations_without_two_doubles_are_listed() -> None:
    with enable_x64():
        found = analysis.precision(lambda x: pullback.scipy.special.gammaln(jnp.sin(x)))(jnp.float64(1))
    (assumed,) = found.assumed
    assert assumed.startswith("lgamma at ")
    assert not analysis.precision(jnp.sin)(np.float32(1)).assumed


def test_decisions_of_exact_numbers_are_seen() -> None:
    found = analysis.precision(lambda x: jnp.where((1 + x) - 1 > x, 1.0, 2.0))(np.float32(1e-4))
    assert "decision" in [e.kind for e in found.events]
    assert not analysis.precision(lambda x: x > 0)(np.float32(1e-4)).events


def test_rounding_and_bits_have_shadows_of_their_own() -> None:
    x = single(0.1, 0.7)
    found = analysis.precision(lambda x: x.astype(jnp.bfloat16).astype(jnp.float32))(x)
    np.testing.assert_array_equal(found.exact, x.astype(float))
    assert [(e.kind, e.operation) for e in found.losses] == [("narrowing", "convert_element_type")]
    np.testing.assert_array_equal(analysis.precision(lambda x: lax.reduce_precision(x, 8, 3))(x).exact, x.astype(float))
    following = jnp.nextafter(x, jnp.float32(9))
    np.testing.assert_array_equal(analysis.precision(lambda x: jnp.nextafter(x, 9))(x).exact, following)
    keys, numbers = lax.sort((single(2, 1, 2), single(5, 6, 7)), num_keys=1)
    found = analysis.precision(lambda *xs: lax.sort(xs, num_keys=1))(single(2, 1, 2), single(5, 6, 7))
    assert found.exact[0].tolist() == keys.tolist()
    assert found.exact[1].tolist() == numbers.tolist()


def test_infinities_of_poles_are_exact() -> None:
    found = analysis.precision(jnp.log)(np.float32(0))
    assert found.digits == pytest.approx(-math.log10(2.0**-24))
    assert [x.kind for x in found.events] == ["infinity"]
    assert not found.losses


def test_nan_is_named_where_it_begins() -> None:
    found = analysis.precision(lambda x: jnp.sqrt(x) + 1)(np.float32(-1))
    assert found.digits == 0
    assert (found.losses[0].kind, found.losses[0].operation) == ("NaN", "sqrt")


def test_losses_that_do_not_matter_cost_nothing() -> None:
    found = analysis.precision(lambda x: cancels(x) + 100)(np.float32(1e-5))
    assert found.digits > 7
    assert not found.losses
    assert [x.operation for x in found.events] == ["sub"]


def test_operations_without_shadows_are_named() -> None:
    def f(x: Any) -> Any:
        return pullback.pure_callback(np.sin, x, x)

    with pytest.raises(MissingRuleError, match=r"no shadow for the operation 'pure_callback', at .*test_true_digits"):
        analysis.precision(f)(jnp.float32(1))
    with pytest.raises(ArgumentError, match="precision: fun must be a function"):
        analysis.precision(3)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match=r"apply precision last, as in precision\(jit\(grad\(f\)\)\)"):
        pullback.jit(lambda x: analysis.precision(jnp.sin)(x).value)(1.0)


def test_an_inverse_is_told_from_a_solution() -> None:
    n = jnp.arange(1.0, 7.0)
    hilbert = 1 / (n[:, None] + n - 1)
    by_inverse = analysis.precision(lambda a, b: jnp.linalg.inv(a) @ b)(hilbert, n)
    assert by_inverse.digits < 4
    assert "jnp.linalg.solve" in str(by_inverse)
    by_solution = analysis.precision(lambda a, b: jnp.linalg.solve(a, b) @ b)(hilbert, n)
    assert "jnp.linalg.solve" not in str(by_solution)


OPERATORS = {
    "two of a dtype": lambda x, y: ((x + y) * (x - y) / (y * y), -x, abs(y)),
    "numbers on the right": lambda x, y: (x + 1, x - 2.5, x * 3, x / 7.0, y / 3, x + True),
    "numbers on the left": lambda x, y: (1 + x, 2.5 - x, 3 * x, 7.0 / y, 2 / y),
    "integers that are not doubles": lambda x, y: (x + (2**24 + 1), x * (2**60 + 1), 2**40 - y),
    "functions": lambda x, y: (jnp.exp(x), jnp.sin(y), jnp.tanh(x), jnp.sqrt(y), jnp.log1p(y), jnp.square(x)),
    "division by zero": lambda x, y: (x / (y - y), (x - x) / (y - y), 1 / (x - x)),  # NaN and infinities
    "another shape": lambda x, y: (jnp.stack([x, y]) * x, x[..., None] - jnp.stack([y, x], -1)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (5,), (3000,)], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_values_are_those_of_an_eager_run(name: str, shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    with pullback.enable_x64():
        x, y = (jnp.asarray(rng.uniform(0.5, 2, shape), dtype) for _ in range(2))
        found = tree.leaves(analysis.precision(OPERATORS[name])(x, y).value)
        wanted = tree.leaves(OPERATORS[name](x, y))
    assert [(a.dtype, a.weak_type, a.shape) for a in found] == [(a.dtype, a.weak_type, a.shape) for a in wanted]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64))


def test_operators_refuse_what_they_refuse_eagerly() -> None:
    x = jnp.arange(3.0)
    for function in (lambda x: x + "a", lambda x: x * x[:2], lambda x: None - x):
        with pytest.raises(TypeError):
            analysis.precision(function)(x)


def test_weak_numbers_stay_weak() -> None:
    found = analysis.precision(lambda x: x * 2 + jnp.exp(x))(jnp.asarray(1.5) * 1.0)
    weak = analysis.precision(lambda x: lax.full_like(x, 2.0) * x)(2.0)
    assert found.value.weak_type == (jnp.asarray(1.5) * 1.0).weak_type
    assert weak.value == 4.0


def test_lines_of_operators_are_those_of_the_user() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        z = y - 1  # cancels
        return z * 1

    [loss] = analysis.precision(function)(jnp.float32(1e-4)).losses
    assert loss.line.endswith(f":{line_after('# cancels', function)}")
