"""``masked_zeros``: a tangent or cotangent of exactly zero stays zero, and no other derivative changes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import (
    checkpoint,
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
    masked_zeros,
    vjp,
    vmap,
)
from pullback.custom_derivatives import linear_call
from pullback.experimental.sparse import BCOO, bcoo_dot_general_sampled
from pullback.primitives.linalg.contraction import dot_general_p, masked_dot_general_p
from pullback.primitives.masked import masked_div_p, masked_mul_p
from pullback.primitives.reductions import masked_linear_recurrence_p
from pullback.primitives.signals.convolution import ConvDimensionNumbers, Geometry, masked_conv_general_dilated_p
from pullback.primitives.signals.recursive_filter import masked_recursive_filter_p
from pullback.scipy import signal
from tests.helpers import EXHAUSTIVE, ROOT, chosen
from tests.transforms.masked_functions import MODES, RECORDED, Case, cases, derivatives, table

CASES = cases(pullback)
NAMES = [case.name for case in CASES]


@pytest.fixture(name="on")
def switched_on() -> Iterator[None]:
    with masked_zeros():
        yield


def masked_log(x: Any) -> Any:
    return jnp.where(x > 0, jnp.log(x), 0.0)


# The table -----------------------------------------------------------------------------------------------------------


def assert_as_of_the_branch_taken(case: Case, mode: str, compiled: bool) -> None:
    """A derivative with masked zeros is that of the branches which are taken."""
    expected = derivatives(pullback, case.taken, case.point)[mode]()
    with masked_zeros():
        found = derivatives(pullback, jit(case.function) if compiled else case.function, case.point)[mode]()
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_derivatives_are_those_of_the_branches_that_are_taken(case: Case) -> None:
    point = jnp.array(case.point)
    np.testing.assert_allclose(case.function(point), case.taken(point), rtol=1e-5, atol=1e-6)
    for mode in MODES:
        assert_as_of_the_branch_taken(case, mode, compiled=False)


@pytest.mark.parametrize("case", chosen(CASES[::5], CASES), ids=chosen(NAMES[::5], NAMES))
def test_compiled_derivatives_are_those_of_the_branches_that_are_taken(case: Case) -> None:
    for mode in MODES if EXHAUSTIVE else [MODES[NAMES.index(case.name) // 5 % len(MODES)]]:
        assert_as_of_the_branch_taken(case, mode, compiled=True)


def test_the_table_says_where_jax_returns_nan() -> None:
    recorded = json.loads(RECORDED.read_text())
    assert list(recorded) == NAMES
    assert sum(bool(found) for found in recorded.values()) >= 60
    assert table() in (ROOT / "docs" / "masked_zeros.md").read_text()


def test_without_the_switch_they_are_nan_as_in_jax() -> None:
    """But for two whose derivatives Pullback knows to be zero in any case."""
    recorded = json.loads(RECORDED.read_text())
    finite = {
        case.name for case in CASES if not np.isnan(derivatives(pullback, case.function, case.point)["grad"]()).any()
    }
    assert finite == {name for name in NAMES if recorded[name].get("grad") != "nan"} | {"x**x", "linalg.norm at zero"}


# Ways to differentiate -----------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[Any], Any]] = {
    "grad": grad,
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: linearize(f, x)[1](1.0),
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "grad, grad": lambda f: grad(grad(f)),
    "jvp, grad": lambda f: jacfwd(grad(f)),
    "grad, jvp": lambda f: grad(jacfwd(f)),
    "jvp, jvp": lambda f: jacfwd(jacfwd(f)),
    "three times": lambda f: jacrev(jacfwd(jacrev(f))),
    "vmap, hessian": lambda f: lambda x: vmap(hessian(f))(jnp.stack([x, x]))[1],
    "hessian, vmap": lambda f: hessian(lambda x: vmap(f)(jnp.stack([x, x])).sum()),
    "jit, grad": lambda f: jit(grad(f)),
    "grad, jit": lambda f: grad(jit(f)),
    "jit, hessian": lambda f: jit(hessian(f)),
    "hessian, jit": lambda f: hessian(jit(f)),
    "grad, checkpoint": lambda f: grad(checkpoint(f)),
    "jit, jvp": lambda f: jit(lambda x: jvp(f, (x,), (1.0,))[1]),
    "grad, disable_jit": lambda f: partial(_without_jit, grad(jit(f))),
    "grad, while_loop": lambda f: grad(partial(_in_a_loop, f)),
}  # fmt: skip


def _without_jit(f: Any, x: Any) -> Any:
    with pullback.disable_jit():
        return f(x)


def _in_a_loop(f: Any, x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(x)), (0, x))[1]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_differentiate(way: str, on: None) -> None:
    def f(x: Any) -> Any:  # the tangent of a zero, and then the cotangent of a branch
        inner = jnp.sqrt(jnp.where(x > 1, x, 0.0))
        return jnp.where(x > 1, inner, jnp.where(x > 0, x * jnp.log(x), 0.0) * jnp.cos(x))

    np.testing.assert_array_equal(WAYS[way](f)(0.0), 0.0)
    assert np.isfinite(WAYS[way](f)(2.0))


def test_a_zero_tangent_stays_zero(on: None) -> None:
    for way in (lambda f: f, jit):
        assert way(lambda t: jvp(jnp.sqrt, (0.0,), (t,))[1])(0.0) == 0.0
        np.testing.assert_array_equal(
            way(lambda t: jvp(jnp.sqrt, (jnp.zeros(2),), (t,))[1])(jnp.array([0.0, 1.0])), [0.0, np.inf]
        )


def test_rules_of_users(on: None) -> None:
    @custom_vjp
    def log(x: Any) -> Any:
        return jnp.log(x)

    log.defvjp(lambda x: (log(x), x), lambda x, ct: ({"x": ct * (1 / x)}["x"],))

    def linear(x: Any) -> Any:
        return linear_call(lambda r, t: t / r, lambda r, ct: ct / r, jnp.sin(x), x)

    for function in (log, linear):
        f = lambda x, function=function: jnp.where(x > 0, function(x), 0.0)
        for way in (grad(f), jit(grad(f)), jacfwd(grad(f)), grad(grad(f))):
            assert way(0.0) == 0.0
        np.testing.assert_array_equal(vmap(grad(f))(jnp.zeros(3)), np.zeros(3))
        assert jvp(lambda x, f=function: f(0 * x), (1.0,), (1.0,))[1] == 0.0


def test_a_rule_runs_once_where_nothing_is_undefined(on: None) -> None:
    calls = []

    @custom_vjp
    def double(x: Any) -> Any:
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, ct: (calls.append(1) or 2 * ct,))
    assert grad(double)(3.0) == 2.0
    assert len(calls) == 1


# What does not change ------------------------------------------------------------------------------------------------


def test_derivatives_that_are_not_masked(on: None) -> None:
    for way in (lambda f: f, jit):
        assert way(grad(jnp.sqrt))(0.0) == np.inf
        assert np.isnan(way(grad(jnp.sqrt))(-1.0))
        assert np.isnan(way(lambda x: jvp(lambda x: x * jnp.log(x), (x,), (1.0,))[1])(0.0))
        x = jnp.array([1.0, 2.0])
        for bad in (np.nan, np.inf):
            data = jnp.array([[1.0, 2.0], [bad, 4.0]])
            found = np.asarray(
                way(grad(lambda x, data=data: jnp.sum(jnp.tanh(0.1 * data @ x)[:1]) + jnp.sum(data @ x)))(x)
            )
            assert not np.isfinite(found[0])
            assert np.isfinite(found[1])


def test_what_changes(on: None) -> None:
    """A zero that was computed is a zero too: here the limit, there a zero in place of a NaN where 1 is right."""
    assert grad(lambda x: x * jnp.log(x))(0.0) == -np.inf
    assert grad(lambda x: x / (1 + jnp.sqrt(x)))(0.0) == 1.0
    assert grad(lambda x: jnp.log(1 + jnp.exp(x)))(100.0) == 0.0


def test_numbers_that_are_not_finite_are_derivatives_too(on: None) -> None:
    for f in (lambda x: x / 0.0, lambda x: x * np.inf, lambda x: x * float("nan")):
        g = grad(lambda x, f=f: jnp.where(x > 5, f(x), 0.0))
        assert g(1.0) == jit(g)(1.0) == 0.0


BAD = np.array([1.0, np.inf, 2.0], np.float32)
"""Of three values one that is infinite, whose results are not taken."""
TAKEN = np.array([True, False, True])


def sparse_by_dense(x: Any) -> Any:
    matrix = BCOO((x, jnp.array([[0, 0], [1, 1], [2, 2]])), shape=(3, 3))
    return jnp.where(TAKEN, matrix @ jnp.asarray(BAD), 0.0)


def dense_by_sparse(x: Any) -> Any:
    return jnp.where(TAKEN, BCOO((jnp.asarray(BAD), jnp.array([[0, 0], [1, 1], [2, 2]])), shape=(3, 3)) @ x, 0.0)


def sampled_product(x: Any) -> Any:
    found = bcoo_dot_general_sampled(x[:, None], jnp.asarray(BAD)[None], jnp.array([[0, 0], [1, 1], [2, 2]]),
                                     dimension_numbers=(([1], [0]), ([], [])))  # fmt: skip
    return jnp.where(TAKEN, found, 0.0)


def rows_in_groups(x: Any) -> Any:
    out = lax.ragged_dot(jnp.asarray(BAD)[:, None], x[:, None, None], jnp.array([1, 1, 1]))
    return jnp.where(TAKEN, out[:, 0], 0.0)


def windows_of_rows(x: Any) -> Any:
    out = lax.ragged_dot(x[:, None], jnp.asarray(BAD)[:, None, None], jnp.array([1, 1, 1]))
    return jnp.where(TAKEN, out[:, 0], 0.0)


def multiplied_at(x: Any) -> Any:
    return jnp.where(TAKEN, x.at[jnp.arange(3)].multiply(jnp.asarray(BAD)), 0.0)


def filtered(x: Any) -> Any:
    return jnp.where(False, signal.lfilter(jnp.array([1.0]), jnp.array([1.0, np.inf, 1.0]), x), x * BAD[0])


def tridiagonal(x: Any) -> Any:
    out = lax.linalg.tridiagonal_solve(jnp.zeros(3), jnp.array([1.0, np.nan, 1.0]), jnp.zeros(3), x[:, None])[:, 0]
    return jnp.where(False, out, x * 2)


SUMS: dict[str, tuple[Any, list[float]]] = {
    "sparse by dense": (sparse_by_dense, [1.0, 0.0, 2.0]),
    "dense by sparse": (dense_by_sparse, [1.0, 0.0, 2.0]),
    "sampled product": (sampled_product, [1.0, 0.0, 2.0]),
    "rows in groups": (rows_in_groups, [1.0, 0.0, 2.0]),
    "windows of rows": (windows_of_rows, [1.0, 0.0, 2.0]),
    "multiplied at": (multiplied_at, [1.0, 0.0, 2.0]),
    "filter": (filtered, [1.0, 1.0, 1.0]),
    "tridiagonal": (tridiagonal, [2.0, 2.0, 2.0]),
    "recurrence": (lambda x: jnp.where(TAKEN[::2], jnp.cumprod(x * jnp.array([2.0, np.inf, 1.0]))[:1], 0), [4.0, 0, 0]),
    "named axis": (
        lambda x: vmap(lambda x: lax.psum(jnp.where(x > 0, jnp.log(x), 0.0), "i"), axis_name="i")(x - 1) / 3,
        [0.5, 0.0, 1.0],
    ),
}


@pytest.mark.parametrize("case", SUMS)
def test_sums_of_products_and_filters(case: str, on: None) -> None:
    f, expected = SUMS[case]
    point = jnp.array([3.0, 1.0, 2.0])
    gradient = grad(lambda x: jnp.sum(f(x)))
    for way in (gradient, jit(gradient), lambda x: vmap(gradient)(jnp.stack([x, x]))[1]):
        np.testing.assert_allclose(way(point), expected)
    np.testing.assert_allclose(jacfwd(lambda x: jnp.sum(f(x)))(point), expected)
    assert np.isfinite(jacfwd(gradient)(point)).all()
    with masked_zeros(False):
        assert np.isnan(gradient(point)).any()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("p", [masked_recursive_filter_p, masked_linear_recurrence_p], ids=["filter", "recurrence"])
def test_states_stay_zero_until_there_is_something(p: Any, compiled: bool) -> None:
    params = {"axis": 0} if p is masked_linear_recurrence_p else {}
    x = jnp.array([0.0, 3.0, 1.0, 0.0])
    factors = jnp.full(4, np.nan) if params else jnp.array([np.nan])
    for reverse, expected in ((False, [0, 3, np.nan, np.nan]), (True, [np.nan, np.nan, 1, 0])):
        run = partial(p.bind, zeros=(False, True), reverse=reverse, **params)
        np.testing.assert_array_equal((jit(run) if compiled else run)(factors, x), expected)


def test_numbers_are_no_products(on: None) -> None:
    text = str(make_jaxpr(grad(lambda x: 3 * jnp.sin(x) / 2))(1.0))
    assert text.count("masked_mul") == 1
    assert "masked_div" not in text
    with masked_zeros(False):
        assert "masked" not in str(make_jaxpr(grad(jnp.sin))(1.0))


# The switch ----------------------------------------------------------------------------------------------------------


def test_compiled_functions_follow_the_switch() -> None:
    f, inner = jit(grad(masked_log)), grad(jit(masked_log))
    for g in (f, inner):
        assert np.isnan(g(0.0))
        with masked_zeros():
            assert g(0.0) == 0.0
            with masked_zeros(False):
                assert np.isnan(g(0.0))
        assert np.isnan(g(0.0))


def test_the_switch_is_the_threads_own_or_the_process() -> None:
    assert not pullback.config.masked_zeros
    found: list[float] = []

    def elsewhere() -> None:
        found.append(float(grad(masked_log)(0.0)))

    def run() -> float:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return found.pop()

    with masked_zeros():
        assert np.isnan(run())
    pullback.config.update("masked_zeros", True)
    try:
        assert run() == 0.0
    finally:
        pullback.config.update("masked_zeros", False)


def test_debugging_reports_what_is_left() -> None:
    """The backward pass has no NaN of a masked product, and the forward pass has those that it had."""
    with pullback.debug_nans():
        with pytest.raises(FloatingPointError):
            grad(masked_log)(0.0)
        with masked_zeros():
            assert grad(masked_log)(0.0) == 0.0
            assert jit(grad(masked_log))(0.0) == 0.0
            assert jvp(lambda x: jnp.sqrt(0 * x), (1.0,), (1.0,))[1] == 0.0
            with pytest.raises(FloatingPointError, match="log"):
                grad(masked_log)(-1.0)
            with pytest.raises(FloatingPointError):
                jvp(lambda x: x * jnp.log(x), (0.0,), (1.0,))


def test_users_transposes(on: None) -> None:
    c = jnp.array([np.inf, 2.0])
    (ct,) = linear_transpose(lambda x: x * c, jnp.ones(2))(jnp.array([0.0, 1.0]))
    np.testing.assert_array_equal(ct, [0.0, 2.0])


# The products --------------------------------------------------------------------------------------------------------

SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("zeros", [(True, False), (False, True), (True, True)], ids=["first", "second", "both"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_products_of_special_values(compiled: bool, zeros: tuple[bool, bool]) -> None:
    x, y = SPECIAL[:, None], SPECIAL[None]
    nothing = (zeros[0] & (x == 0)) | (zeros[1] & (y == 0))
    for p, operation in ((masked_mul_p, np.multiply), (masked_div_p, np.divide)):
        run = partial(p.bind, zeros=zeros)
        with np.errstate(all="ignore"):
            expected = np.where(nothing, 0, operation(x, y))
        np.testing.assert_array_equal((jit(run) if compiled else run)(jnp.array(x), jnp.array(y)), expected)


def sum_of_products(x: Any, y: Any, zeros: tuple[bool, bool]) -> Any:
    """A matrix product without the terms that are masked; NaN in place of an infinite sum of which some are."""
    with np.errstate(all="ignore"):
        terms = x[:, :, None] * y[None]
        nothing = (zeros[0] & (x == 0))[:, :, None] | (zeros[1] & (y == 0))[None]
        usual, out = terms.sum(1), np.where(nothing, 0, terms).sum(1)
        return np.where(np.isnan(usual) & ~np.isfinite(out), np.nan, out)


@pytest.mark.parametrize("zeros", [(True, False), (False, True), (True, True)], ids=["first", "second", "both"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_sums_of_products_of_special_values(dtype: str, zeros: tuple[bool, bool]) -> None:
    random = np.random.default_rng(0)
    dims = {"dimension_numbers": (((1,), (0,)), ((), ()))}
    bad = [np.nan, np.inf, -np.inf] if dtype == "float32" else [np.nan]
    for n in (6, 48):  # few products, and many
        x, y = (random.integers(-3, 4, size=(n, n)).astype(dtype) for _ in range(2))
        x[: n // 2], y[:, n // 2 :] = 0, 0
        for operand, masked in ((x, zeros[1]), (y, zeros[0])):
            if masked:
                operand[random.integers(n, size=2), random.integers(n, size=2)] = random.choice(bad, size=2)
        expected = sum_of_products(x, y, zeros)
        usual = np.asarray(dot_general_p.bind(jnp.array(x), jnp.array(y), **dims))
        assert np.isnan(usual).sum() > np.isnan(expected).sum()
        assert not np.isfinite(expected).all()
        run = partial(masked_dot_general_p.bind, zeros=zeros, **dims)
        for way in (lambda f: f, jit):
            np.testing.assert_array_equal(way(run)(jnp.array(x), jnp.array(y)), expected)


PRODUCTS: dict[str, tuple[Any, tuple[int, ...], dict[str, Any]]] = {
    "mul": (masked_mul_p, (2, 2), {}),
    "dot_general": (masked_dot_general_p, (2, 2), {"dimension_numbers": (((1,), (0,)), ((), ()))}),
    "conv_general_dilated": (
        masked_conv_general_dilated_p, (1, 1, 2),
        {
            "geometry": Geometry((1,), ((0, 0),), (1,), (1,)), "feature_group_count": 1, "batch_group_count": 1,
            "dimension_numbers": ConvDimensionNumbers(*[(0, 1, 2)] * 3), "precision": None,
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("marked", [False, True], ids=["not marked", "marked"])
def test_a_transposed_product_keeps_the_mark_of_the_other_operand(product: str, marked: bool) -> None:
    p, shape, params = PRODUCTS[product]
    nothing = jnp.zeros(shape)
    for linear in (0, 1):
        zeros = (True, marked) if linear == 0 else (marked, True)

        def f(t: Any, zeros: tuple[bool, bool] = zeros, linear: int = linear) -> Any:
            return p.bind(*((t, nothing) if linear == 0 else (nothing, t)), zeros=zeros, **params)

        infinite = jnp.full(f(nothing).shape, np.inf)
        (found,) = linear_transpose(f, nothing)(infinite)
        np.testing.assert_array_equal(found, np.full(shape, 0.0 if marked else np.nan))
