"""Formulas in infix bind what their prefix forms bind, promote nothing, and return arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import grad, jit, make_jaxpr, vmap
from pullback.core.array import ArrayImpl
from pullback.core.errors import DtypeError
from pullback.primitives import elementwise as ops
from pullback.primitives import formulas
from pullback.primitives.formulas import Formula, formula, lifted, where

Function = Callable[..., Any]

BINARY: list[tuple[Function, Any]] = [
    (lambda x, y: x + y, ops.add_p), (lambda x, y: x - y, ops.sub_p), (lambda x, y: x * y, ops.mul_p),
    (lambda x, y: x / y, ops.div_p), (lambda x, y: x**y, ops.pow_p), (lambda x, y: x < y, ops.lt_p),
    (lambda x, y: x <= y, ops.le_p), (lambda x, y: x > y, ops.gt_p), (lambda x, y: x >= y, ops.ge_p),
    (lambda x, y: x == y, ops.eq_p), (lambda x, y: x != y, ops.ne_p),
    (formulas.maximum, ops.max_p), (formulas.minimum, ops.min_p), (formulas.hypot, ops.hypot_p),
    (formulas.atan2, ops.atan2_p), (formulas.remainder, ops.rem_p), (formulas.complex, ops.complex_p),
]  # fmt: skip
UNARY: list[tuple[Function, Any]] = [
    (lambda x: -x, ops.neg_p), (abs, ops.abs_p),
    *((getattr(formulas, name), getattr(ops, f"{name}_p")) for name in (
        "exp", "log", "sqrt", "square", "sin", "cos", "expm1", "log1p", "cbrt", "lgamma", "sinh", "cosh", "asin",
        "asinh", "floor", "round", "is_finite", "stop_gradient",
    )),
]  # fmt: skip
LOGIC: list[tuple[Function, Any]] = [(lambda x, y: x & y, ops.and_p), (lambda x, y: x | y, ops.or_p)]

X, Y = jnp.array([0.25, 0.5], "float32"), jnp.array([0.5, 0.75], "float32")


def assert_binds(function: Function, p: Any, *xs: Any) -> None:
    bind = getattr(p, "bind", p)
    assert str(make_jaxpr(formula(function))(*xs)) == str(make_jaxpr(bind)(*xs))
    got, expected = formula(function)(*xs), bind(*xs)
    assert type(got) is ArrayImpl
    assert (got.dtype, got.weak_type) == (expected.dtype, expected.weak_type)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("function", "p"), BINARY, ids=lambda p: getattr(p, "name", ""))
def test_operators_bind_the_operations_that_they_say(function: Function, p: Any) -> None:
    assert_binds(function, p, X, Y)
    assert_binds(function, p, Y, X)


@pytest.mark.parametrize(("function", "p"), UNARY, ids=lambda p: getattr(p, "name", ""))
def test_functions_bind_the_operations_that_they_say(function: Function, p: Any) -> None:
    assert_binds(function, p, X)


@pytest.mark.parametrize(("function", "p"), LOGIC, ids=lambda p: getattr(p, "name", ""))
def test_logic(function: Function, p: Any) -> None:
    assert_binds(function, p, jnp.array([True, False]), jnp.array([True, True]))
    assert_binds(lambda x: ~x, ops.not_p, jnp.array([True, False]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int32"])
@pytest.mark.parametrize("number", [2, 2.0])
@pytest.mark.parametrize("weak", [False, True])
def test_numbers_stay_numbers_in_their_places(dtype: str, number: float, weak: bool) -> None:
    x = ops.convert_element_type(jnp.array([1, 2], dtype), jnp.dtype(dtype), weak)
    if dtype == "int32":
        number = int(number)
    for function, p in BINARY[:5]:
        assert_binds(lambda x, f=function: f(number, x), partial(p.bind, number), x)
        assert_binds(lambda x, f=function: f(x, number), lambda x, p=p: p.bind(x, number), x)


def test_a_comparison_turns_a_number_on_the_left_round() -> None:
    assert str(make_jaxpr(formula(lambda x: 1 < x))(X)) == str(make_jaxpr(lambda x: ops.gt(x, 1))(X))  # noqa: SIM300


@pytest.mark.parametrize(("function", "p"), BINARY[:5], ids=lambda p: getattr(p, "name", ""))
def test_nothing_is_promoted(function: Function, p: Any) -> None:
    """Dtypes that differ raise what the prefix form raises."""
    other = jnp.array([1, 2], "int32")
    with pytest.raises(DtypeError) as expected:
        make_jaxpr(p.bind)(X, other)
    with pytest.raises(DtypeError) as got:
        make_jaxpr(formula(function))(X, other)
    assert str(got.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_order_of_operands_is_that_of_the_text() -> None:
    written = make_jaxpr(formula(lambda x, y: (x - 2.0 * y) / (y * 3.0)))(X, Y)
    prefix = make_jaxpr(lambda x, y: ops.div(ops.sub(x, ops.mul(2.0, y)), ops.mul(y, 3.0)))(X, Y)
    assert str(written) == str(prefix)


def test_arrays_of_numpy_beside_a_formula() -> None:
    values = np.array([1.0, 2.0], "float32")
    for function, p in BINARY[:4]:
        np.testing.assert_array_equal(formula(lambda x, f=function: f(values, x))(X), p.bind(values, X))


def test_formulas_stay_within_formulas() -> None:
    seen = []

    @lifted
    def of_arrays(x: Any, pair: Any) -> Any:
        seen.extend([x, *pair])
        return pair[0], [pair[1], None]

    @formula
    def inner(x: Any) -> Any:
        return x * x

    @formula
    def outer(x: Any, n: int) -> Any:
        assert (type(x), n) == (Formula, 3)
        square = inner(x)
        assert (type(square), square.shape, square.dtype) == (Formula, X.shape, X.dtype)
        one, (two, nothing) = of_arrays(x, (square, x))
        assert (type(one), type(two), nothing) == (Formula, Formula, None)
        return where(one > 0, one, two), [two, 1]

    first, (second, number) = outer(X, 3)
    assert {type(inner(X)), type(first), type(second), *map(type, seen)} == {ArrayImpl}
    assert number == 1


@pytest.mark.parametrize(("function", "p"), BINARY[:5], ids=lambda p: getattr(p, "name", ""))
def test_an_array_may_stand_beside_a_formula(function: Function, p: Any) -> None:
    assert_binds(lambda x: function(Y, x), partial(p.bind, Y), X)
    assert_binds(lambda x: function(x, Y), lambda x: p.bind(x, Y), X)


def test_truth_is_that_of_the_array() -> None:
    assert not formula(lambda x: bool(x > 1))(jnp.array(0.5))
    assert repr(Formula(1)) == "Formula(1)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Formula(X))


def test_formulas_transform_as_other_functions() -> None:
    f = formula(lambda x: x * x * 0.5)
    np.testing.assert_array_equal(vmap(grad(f))(X), X)
    np.testing.assert_array_equal(jit(f)(X), f(X))


# No formula in the source nests calls --------------------------------------------------------------------------------

ARITHMETIC = {"add", "add_any", "sub", "mul", "div", "neg", "pow"}
STATEMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)


def called(function: ast.expr) -> str:
    """The name of what is called: of ``ops.add`` and of ``add_p.bind`` ``add``."""
    if isinstance(function, ast.Attribute):
        bound = called(function.value) if function.attr == "bind" else ""
        return bound.removesuffix("_p") if bound.endswith("_p") else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def depth(node: ast.AST) -> int:
    """How many calls of arithmetic are in each other: of ``mul(add(x, neg(y)), z)`` three."""
    own = isinstance(node, ast.Call) and called(node.func) in ARITHMETIC
    return own + max(map(depth, ast.iter_child_nodes(node)), default=0)


def nested(path: Path) -> list[int]:
    """The lines of statements with three or more calls of arithmetic in each other."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node.lineno for node in nodes if isinstance(node, STATEMENTS) and depth(node) >= 3]


def test_no_statement_nests_three_calls_of_arithmetic() -> None:
    """A long formula is in infix; one that is evaluated eagerly names intermediate values (docs/decisions/609)."""
    root = Path(pullback.__file__).parent
    sources = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    assert "primitives/elementwise.py" in sources
    found = [f"{name}:{line}" for name, path in sources.items() for line in nested(path)]
    assert not found


def test_nested_calls_are_found(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("x = mul(ops.add(x, exp(y)), z)\ny = mul(ops.add(x, exp(neg_p.bind(y))), z)\n")
    assert nested(program) == [2]


def test_nested_calls_are_counted() -> None:
    nested = "mul(ops.add(x, exp(neg_p.bind(y))), z)"
    assert [depth(ast.parse(text)) for text in (nested, "mul(add(x, y), add(y, z))", "x * y + np.sin(z)")] == [3, 2, 0]


@pytest.mark.parametrize("degree", [1, 2, 5, 6])
def test_polynomials_by_pairs_are_those_by_horners_rule(degree: int) -> None:
    coefficients = [(-0.5) ** k * (k + 1) for k in range(degree + 1)]
    x = np.linspace(-1, 1, 21)
    by_pairs = formula(lambda x: formulas.polynomial_by_pairs(x, coefficients))
    np.testing.assert_allclose(by_pairs(jnp.asarray(x, np.float32)), np.polyval(coefficients, x), 1e-6, 1e-6)
