"""``preaccumulate``: the same values and derivatives under all transformations, of which less is kept."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    checkpoint,
    custom_jvp,
    custom_vjp,
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
    nn,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from pullback.ad_checkpoint import saved_residuals
from pullback.core.errors import ArgumentError, PreaccumulationError
from pullback.derivatives import preaccumulate
from pullback.experimental import checkify
from tests.helpers import ROOT, assert_close, chosen

pytestmark = pytest.mark.usefixtures("x64")


# Parts, of two numbers -----------------------------------------------------------------------------------------------


def newton(a: Any, b: Any) -> Any:
    """A root of x**3 + b x - a, by some steps of Newton's method."""
    x = a
    for _ in range(3):
        x = x - (x**3 + b * x - a) / (3 * x**2 + b)
    return x


def newton_loop(a: Any, b: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, x: x - (x**3 + b * x - a) / (3 * x**2 + b), a)


def heron(a: Any, b: Any) -> Any:
    def step(c: Any) -> Any:
        return 0.5 * (c[0] + a / c[0]), c[0]

    return b * lax.while_loop(lambda c: jnp.abs(c[0] - c[1]) > 1e-3, step, (a, 0.0 * b))[0]


def branches(a: Any, b: Any) -> Any:
    return lax.cond(a > b, lambda: jnp.sin(a) * b, lambda: jnp.cos(b) + a)


def several(a: Any, b: Any) -> Any:
    return {
        "chosen": jnp.where(a > b, jnp.sqrt(a), a * b),
        "largest": jnp.maximum(a, b) * jnp.arctan2(a, b),
        "rules": jit(lambda x: nn.relu(x) * nn.silu(x) + cubed(x))(a) + squared(b),
        "unchanged": b,
        "constant": 2.0,
        "number": jnp.floor(a).astype(int),
    }


@custom_jvp
def cubed(x: Any) -> Any:
    return x**3


cubed.defjvp(lambda primals, tangents: (cubed(*primals), 3 * primals[0] ** 2 * tangents[0]))


@custom_vjp
def squared(x: Any) -> Any:
    return x * x


squared.defvjp(lambda x: (squared(x), x), lambda x, ct: (2 * x * ct,))


def arrays(a: Any, b: Any) -> Any:
    v = jnp.stack([a, b, a * b])
    return jnp.linalg.norm(v @ jnp.arange(9.0).reshape(3, 3)), jnp.cumsum(v)


PARTS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (newton, newton_loop, heron, branches, several, arrays)
}  # fmt: skip


def around(part: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of one number that has a part within it."""

    def f(x: Any) -> Any:
        outs = tree.leaves(part(x, jnp.sin(x) + 1.3))
        return sum(jnp.sum(jnp.cos(y)) for y in outs)

    return f


# Laws ----------------------------------------------------------------------------------------------------------------

POINTS = np.array([1.0, 0.7, 1.9])

TRANSFORMATIONS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "grad": grad,
    "value_and_grad": lambda f: lambda x: sum(value_and_grad(f)(x)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (0.7,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](0.3),
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.5)[0],
    "vmap": lambda f: lambda x: jnp.sum(vmap(f)(x * POINTS)),
    "jit": jit,
    "checkpoint": checkpoint,
    "scan": lambda f: lambda x: lax.scan(lambda c, s: (jnp.sin(c + 0.1 * f(c) * s) + 1, None), x, POINTS)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, jnp.sin, x),
    "preaccumulate": preaccumulate,
    "auto": lambda f: grad(f, preaccumulate="auto"),
}
"""Each makes a function of a number of one."""

PAIRS = [(outer, inner) for outer in TRANSFORMATIONS for inner in TRANSFORMATIONS]


def compare(transformed: Callable[..., Any], part: str, point: float = 1.6, **options: Any) -> None:
    plain, changed = (around(f) for f in (PARTS[part], preaccumulate(PARTS[part], **options)))
    assert_close(transformed(changed)(point), transformed(plain)(point), 1e-9)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_nothing_changes_under_a_transformation(name: str, part: str) -> None:
    compare(TRANSFORMATIONS[name], part)


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_nothing_changes_under_two_transformations(outer: str, inner: str) -> None:
    row, column = (list(TRANSFORMATIONS).index(name) for name in (outer, inner))
    names = list(PARTS)
    for part in chosen([names[(row + column) % len(names)]], names):
        compare(lambda f: TRANSFORMATIONS[outer](TRANSFORMATIONS[inner](f)), part)


@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("part", PARTS)
def test_orders_change_nothing(part: str, order: str) -> None:
    compare(grad, part, order=order)
    compare(lambda f: jvp_of(grad(f)), part, order=order)


def jvp_of(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("part", PARTS)
def test_results_and_jacobians_of_both_inputs(part: str) -> None:
    f, g = PARTS[part], preaccumulate(PARTS[part])
    assert_close(g(1.6, 1.1), tree.map(jnp.asarray, f(1.6, 1.1)))
    floats = lambda f: lambda *xs: [y for y in tree.leaves(f(*xs)) if jnp.result_type(y) == "float64"]
    for transformation in (jacfwd, jacrev):
        assert_close(transformation(floats(g), (0, 1))(1.6, 1.1), transformation(floats(f), (0, 1))(1.6, 1.1))
    total = lambda f: lambda *xs: sum(jnp.sum(y) for y in floats(f)(*xs))
    assert_close(hessian(total(g), (0, 1))(1.6, 1.1), hessian(total(f), (0, 1))(1.6, 1.1))


@pytest.mark.parametrize("part", ["newton", "heron", "arrays"])
@pytest.mark.parametrize(
    ("mapping", "shapes"),
    [
        (lambda f: vmap(f, (0, None)), ((3,), ())),
        (lambda f: vmap(vmap(f, (0, None)), (None, 0)), ((3,), (2,))),
        (lambda f: vmap(vmap(f), (0, 1), out_axes=-1), ((2, 3), (3, 2))),
    ],
    ids=["one", "product", "nested"],
)
def test_maps_over_any_axes(part: str, mapping: Any, shapes: Any) -> None:
    xs = [1.2 + 0.4 * np.cos(np.arange(np.prod(shape))).reshape(shape) for shape in shapes]

    def total(f: Any) -> Any:
        return lambda *xs: sum(jnp.sum(jnp.sin(y)) for y in tree.leaves(mapping(f)(*xs)))

    f, g = total(PARTS[part]), total(preaccumulate(PARTS[part]))
    assert_close(grad(g, (0, 1))(*xs), grad(f, (0, 1))(*xs))
    assert_close(jit(grad(g, (0, 1)))(*xs), grad(f, (0, 1))(*xs))


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_results_that_are_the_same_for_all_examples(count: int, argnums: Any) -> None:
    """Found by random programs: their tangents had the mapped axis, since the Jacobian of all results is one."""

    def part(d: Any, e: Any) -> Any:
        return jnp.sum(d**2), e * d[0], jnp.sum(d) * 3.0

    args = jnp.array([-1.4, 2.0, 0.3]), jnp.arange(1.0, count + 1)
    results = [lambda a, xs, f=f: vmap(lambda x: f(a, x))(xs) for f in (part, preaccumulate(part))]
    for transformation in (jacfwd, jacrev, lambda f, a: jit(jacfwd(jacrev(f, a), a))):
        expected, got = (transformation(f, argnums)(*args) for f in results)
        tree.map(assert_close, got, expected)


# Arrays --------------------------------------------------------------------------------------------------------------


def loop_of_arrays(a: Any, b: Any) -> Any:
    return lax.scan(lambda x, _: (x - (x**3 + b * x - a) / (3 * x**2 + b), None), a + 0 * b, None, 4)[0]


def while_of_arrays(a: Any, b: Any) -> Any:
    start = a + 0 * b, 0.0 * b + 0 * a
    step = lambda c: (0.5 * (c[0] + a / c[0]), c[0])
    return b * lax.while_loop(lambda c: jnp.max(jnp.abs(c[0] - c[1])) > 1e-3, step, start)[0]


def branch_of_arrays(a: Any, b: Any) -> Any:
    return lax.cond(jnp.sum(a) > 0, lambda: a * jnp.sin(b), lambda: b + 0 * a)


@pytest.mark.parametrize("f", [newton, loop_of_arrays, while_of_arrays, branch_of_arrays])
@pytest.mark.parametrize(
    "b", [np.array([1.1, 1.4, 0.8]), np.float64(1.1), np.array([[1.1], [0.9]])], ids=["same", "number", "column"]
)
def test_arrays_element_for_element(f: Any, b: Any) -> None:
    a = np.array([1.5, 0.6, 2.0])
    total = lambda f: lambda a, b: jnp.sum(jnp.sin(f(a, b)))
    assert_close(grad(total(preaccumulate(f)), (0, 1))(a, b), grad(total(f), (0, 1))(a, b))
    sizes = [aval.shape for aval, _ in saved_residuals(preaccumulate(f), a, b)]
    assert sizes == [np.broadcast_shapes(a.shape, b.shape)] * 2


def test_a_loop_over_elements_is_made_row_by_row() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, y: (c * jnp.sin(y), None), 1.0, x)[0]

    x = np.array([1.0, 2.0, 0.5])
    assert_close(grad(preaccumulate(f))(x), grad(f)(x))
    assert_close(hessian(preaccumulate(f))(x), hessian(f)(x))
    assert [str(aval) for aval, _ in saved_residuals(preaccumulate(f), x)] == ["float64[3]"]


def test_dtypes_of_results_and_tangents() -> None:
    def f(x: Any, y: Any) -> Any:
        wide = jnp.asarray(x, "float64") / y
        return (jnp.sin(wide) * y).astype("float32"), wide, jnp.where(y > 0, wide, 2.0).astype("float16")

    x, y = np.float32(0.7), np.float64(1.3)
    total = lambda f: lambda *xs: sum(jnp.sum(z.astype("float64")) for z in f(*xs))
    got, expected = (grad(total(g), (0, 1))(x, y) for g in (preaccumulate(f), f))
    assert_close(got, expected, 1e-3)
    got, expected = (jvp(g, (x, y), (np.float32(1), np.float64(2))) for g in (preaccumulate(f), f))
    assert_close(got, expected, 1e-3)


def test_an_operand_that_is_not_chosen_has_no_say() -> None:
    f = preaccumulate(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))  # whose derivative is infinite at zero
    assert jvp(f, (0.0,), (1.0,))[1] == 0


def test_derivatives_that_are_numbers_are_not_kept() -> None:
    f = preaccumulate(lambda x, y: (-x, x + y, x - x, 3.0 * y))
    assert_close(jacrev(f, (0, 1))(2.0, 5.0), jacrev(lambda x, y: (-x, x + y, x - x, 3.0 * y), (0, 1))(2.0, 5.0))
    assert saved_residuals(f, 2.0, 5.0) == []


def test_the_examples_of_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "preaccumulation.md").read_text()
    with pullback.enable_x64(False):
        exec(compile("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), "preaccumulation.md", "exec"), {})
    said = re.findall(r"# (\d+), and (\d+)", page)
    assert capsys.readouterr().out.splitlines()[1:] == [number for pair in said for number in pair]


# What is kept --------------------------------------------------------------------------------------------------------


def twelve_steps(step: Callable[[Any], Any], x: Any, loop: bool) -> Any:
    if loop:
        return lax.fori_loop(0, 12, lambda i, x: step(x), x)
    for _ in range(12):
        x = step(x)
    return x


@pytest.mark.parametrize("loop", [False, True])
def test_a_solver_keeps_a_thirtieth(loop: bool) -> None:
    def solve(a: Any, b: Any) -> Any:
        return twelve_steps(lambda x: x - (x**3 + b * jnp.sin(x) - a) / (3 * x**2 + b * jnp.cos(x)), a, loop)

    points = np.linspace(0.5, 2.0, 50), np.linspace(1.0, 2.0, 50)
    counts = []
    for f in (vmap(solve), vmap(preaccumulate(solve))):
        tape = {id(x): x for x in tree.leaves(vjp(f, *points)[1])}
        held = sum(x.nbytes for x in tape.values())
        staged = sum(a.size * a.dtype.itemsize for a, _ in saved_residuals(f, *points))
        counts.append((held, staged))
    (plain, plain_staged), (held, staged) = counts
    assert held == staged == 2 * 50 * 8
    assert held <= plain / 20
    assert staged <= plain_staged / 20


def test_a_loop_keeps_the_jacobian_of_each_step() -> None:
    def step(c: Any, x: Any) -> Any:
        return jnp.tanh(jnp.sin(c) * jnp.exp(-c * x) + c / (1 + c**2)), None

    xs = np.arange(5.0)
    run = lambda f: lambda c: lax.scan(f, c, xs)[0]
    assert len(saved_residuals(run(step), 0.3)) >= 5
    assert [str(aval) for aval, _ in saved_residuals(run(preaccumulate(step)), 0.3)] == ["float64[5]"]


def test_results_that_nobody_uses_are_not_computed() -> None:
    f = preaccumulate(lambda x, y: (jnp.sin(x), jnp.cos(y)))
    program = str(jit(lambda x: f(x, 2 * x)[0]).trace(1.0).jaxpr)
    assert "sin" in program
    lowered = jit(lambda x: f(x, 2 * x)[0]).lower(1.0).as_text()
    assert "cosine" not in lowered


def test_equal_functions_share_what_was_made_of_them() -> None:
    def once(i: int) -> Any:
        return make_jaxpr(grad(preaccumulate(lambda x: newton(x, 1.5))))(2.0).eqns[0].params["jaxpr"]

    assert once(0) is once(1)


def test_a_large_part_is_compiled_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.backends.compiler import one_operation

    seen: list[str] = []
    evaluate = one_operation.evaluate
    monkeypatch.setattr(one_operation, "evaluate", lambda p, *rest: seen.append(p.name) or evaluate(p, *rest))
    assert_close(preaccumulate(newton)(2.0, 1.5), newton(2.0, 1.5))
    assert seen == []

    def long(a: Any, b: Any) -> Any:
        for _ in range(5):
            a = newton(a, b)
        return a

    assert_close(preaccumulate(long)(jnp.asarray(2.0), jnp.asarray(1.5)), long(2.0, 1.5))
    assert seen == ["preaccumulate"]


# What it may be given ------------------------------------------------------------------------------------------------


def test_trees_keywords_and_captured_values() -> None:
    def outer(wrap: Any, x: Any, y: Any) -> Any:
        f = wrap(lambda p, *, scale: {"r": jnp.sin(p["a"] * y) * scale, "i": p["n"]})
        out = f({"a": x, "n": 3}, scale=y)
        return out["r"] * out["i"]

    plain, changed = (lambda x, y, wrap=wrap: outer(wrap, x, y) for wrap in (lambda f: f, preaccumulate))
    assert_close(grad(changed, (0, 1))(1.2, 0.4), grad(plain, (0, 1))(1.2, 0.4))
    assert_close(hessian(changed, (0, 1))(1.2, 0.4), hessian(plain, (0, 1))(1.2, 0.4))


def test_without_real_inputs_or_results() -> None:
    assert preaccumulate(lambda: 3.0)() == 3.0
    assert preaccumulate(lambda n: n + 1)(2) == 3
    assert grad(lambda x: preaccumulate(lambda x: (x, jnp.floor(x)))(x)[1])(1.5) == 0.0


def test_a_linear_function_is_transposed() -> None:
    f = preaccumulate(lambda x: 3.0 * x - jnp.sum(x))
    assert_close(linear_transpose(f, jnp.ones(2))(jnp.array([1.0, 2.0])), (jnp.array([0.0, 3.0]),))


def test_python_runs_where_nothing_is_compiled() -> None:
    with pullback.disable_jit():
        assert grad(preaccumulate(lambda x: x**2 if x > 0 else x))(3.0) == 6.0


def test_looking_for_nans_names_the_line_within() -> None:
    f = preaccumulate(lambda x: jnp.log(x) * 2)
    with pullback.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        f(-1.0)


def test_checkify_sees_the_results() -> None:
    error, _ = checkify.checkify(preaccumulate(jnp.log), errors=checkify.nan_checks)(-1.0)
    assert "nan" in error.get()


def test_it_is_pickled() -> None:
    f = pickle.loads(pickle.dumps(preaccumulate(newton, order="reverse")))
    assert_close(grad(f)(2.0, 1.5), grad(newton)(2.0, 1.5))


# What it refuses -----------------------------------------------------------------------------------------------------


def test_orders_that_there_are() -> None:
    with pytest.raises(ArgumentError, match="order must be one of markowitz, forward, reverse, got 'best'"):
        preaccumulate(newton, order="best")


def test_a_large_jacobian_names_the_operation() -> None:
    f = preaccumulate(lambda x: jnp.cumsum(jnp.sin(x)))
    with pytest.raises(PreaccumulationError, match=r"300 rows and 300 columns.* because cumsum at .*test_pre"):
        jvp(f, (jnp.ones(300),), (jnp.ones(300),))


def test_the_derivative_of_a_jacobian_may_be_large() -> None:
    f = lambda x: jnp.cumsum(jnp.sin(x))  # of 60 results and inputs, and 3,600 entries
    x = np.linspace(0, 1, 60)
    total = lambda f: lambda x: jnp.sum(jnp.cos(f(x)))
    assert_close(jvp_of_gradient(total(preaccumulate(f)))(x), jvp_of_gradient(total(f))(x))


def jvp_of_gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jvp(grad(f), (x,), (jnp.ones_like(x),))[1]


def test_complex_numbers_name_the_operation() -> None:
    with pytest.raises(PreaccumulationError, match=r"result of mul at .*test_preaccumulate.* is c128"):
        jvp(preaccumulate(lambda x: x * 1j), (1.0,), (1.0,))
    with pytest.raises(PreaccumulationError, match="an argument is c128"):
        grad(preaccumulate(lambda z: z.real))(1j)
    f = lambda x: jnp.abs(jnp.exp(1j * x) + x)  # complex numbers within a part
    assert_close(grad(preaccumulate(f))(0.7), grad(f)(0.7))


def test_effects_and_named_axes_name_the_operation() -> None:
    def shows(x: Any) -> Any:
        pullback.debug.print("{}", x)
        return x

    with pytest.raises(PreaccumulationError, match=r"debug_callback at .*test_preaccumulate.* has an effect"):
        preaccumulate(shows)(1.0)
    f = preaccumulate(lambda x: x - lax.pmean(x, "rows"))
    with pytest.raises(PreaccumulationError, match=r"psum at .*test_preaccumulate.* along the named axis rows"):
        vmap(f, axis_name="rows")(jnp.ones(3))


def test_tests_of_values_are_refused() -> None:
    with pytest.raises(pullback.errors.TracerBoolConversionError, match="preaccumulate"):
        preaccumulate(lambda x: x if x > 0 else -x)(1.0)
