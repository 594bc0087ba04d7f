"""The derivative of the QR decomposition of one eager matrix, which is one operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import enable_x64, grad, hessian, jacfwd, jacrev, jit, jvp, linearize, vjp, vmap
from pullback.core.errors import ShapeError
from pullback.primitives.linalg import qr
from pullback.primitives.linalg.qr import qr_differential_p, qr_pull_of_r_p, qr_pull_p

USES = {
    "q": lambda x: [jnp.linalg.qr(x)[0]],
    "r": lambda x: [jnp.linalg.qr(x)[1]],
    "both": lambda x: [*jnp.linalg.qr(x)],
}  # fmt: skip
SHAPES = [(1, 1), (4, 4), (6, 4), (5, 1), (70, 50), (128, 128)]


def draw(shape: tuple[int, ...], seed: int, dtype: Any = np.float64) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def weighted(of: Callable[[Any], list[Any]]) -> Callable[[Any], Any]:
    """A number that depends on all elements of the results."""

    def total(x: Any) -> Any:
        parts = [out * jnp.cos(jnp.arange(out.size).reshape(out.shape)) for out in of(x)]
        return sum((part.sum() + (part**2).sum() for part in parts), jnp.zeros((), x.dtype))

    return total


def by_operations(monkeypatch: pytest.MonkeyPatch, function: Callable[[], Any]) -> list[Any]:
    """The leaves of what a function returns if derivatives are composed of operations, as in programs."""
    with monkeypatch.context() as patch:
        patch.setattr(qr, "_is_one_eager_matrix", lambda q, r, t: False)
        return pullback.tree.leaves(function())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("use", USES)
def test_derivatives_of_one_matrix_are_those_by_operations(
    use: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with enable_x64(True):
        x, t, total = draw(shape, 0), draw(shape, 1), weighted(USES[use])
        size = float(abs(t).max())
        pushed = jvp(total, (x,), (t,))[1]
        np.testing.assert_allclose(pushed, (total(x + 1e-6 * t) - total(x - 1e-6 * t)) / 2e-6, 1e-4, 1e-4 * size)
        for of in (grad(total), lambda x: jvp(total, (x,), (t,))[1], lambda x: linearize(total, x)[1](t)):
            (expected,) = by_operations(monkeypatch, partial(of, x))
            np.testing.assert_allclose(of(x), expected, 1e-9, 1e-9 * float(abs(expected).max()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 4), (6, 4)], ids=str)
@pytest.mark.parametrize("use", USES)
def test_derivatives_of_derivatives_are_those_by_operations(
    use: str, shape: tuple[int, int], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with enable_x64(True):
        x, t, total = draw(shape, 0, dtype), draw(shape, 1, dtype), weighted(USES[use])
        steep = lambda x: (grad(total)(x) ** 2).sum()
        both = jnp.stack([t, 2 * t])

        def of_ct(ct: Any) -> Any:
            pull, linear = vjp(USES[use], x)[1], linearize(USES[use], x)[1]
            return (pull(linear(ct))[0] ** 2).sum()

        for of, operand in (
            (hessian(total), x), (jacfwd(USES[use]), x), (jacrev(USES[use]), x), (grad(steep), x),
            (vmap(grad(total)), jnp.stack([x, t])), (lambda t: vmap(linearize(USES[use], x)[1])(t), both),
            (grad(of_ct), t), (lambda t: jvp(grad(of_ct), (t,), (x,))[1], t), (vmap(grad(of_ct)), both),
        ):  # fmt: skip
            expected = by_operations(monkeypatch, partial(of, operand))
            for found, right in zip(pullback.tree.leaves(of(operand)), expected, strict=True):
                bound = (2e-3 if dtype == np.float32 else 1e-9) * (1 + float(abs(right).max()))
                np.testing.assert_allclose(found, right, 0, bound)


def test_derivatives_in_programs_are_those_of_eager_code() -> None:
    x = draw((6, 4), 0, np.float32)
    linear, pull = linearize(USES["both"], x)[1], vjp(USES["r"], x)[1]
    total = weighted(USES["both"])
    for of, operand in ((grad(total), x), (linear, x), (lambda ct: pull([ct]), draw((4, 4), 1, np.float32))):
        for found, right in zip(pullback.tree.leaves(of(operand)), pullback.tree.leaves(jit(of)(operand)), strict=True):
            np.testing.assert_allclose(found, right, 1e-4, 1e-4)


@pytest.mark.parametrize("use", USES)
def test_a_last_pivot_of_zero_divides_nothing(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[2.0, 1.0, 1.0], [0.0, 3.0, 2.0], [0.0, 0.0, 0.0]], np.float32)
    for of in (grad(weighted(USES[use])), lambda x: jvp(weighted(USES[use]), (x,), (jnp.ones((3, 3)),))[1]):
        found = np.asarray(of(jnp.asarray(x)))
        assert np.isfinite(found).all()
        (expected,) = by_operations(monkeypatch, partial(of, jnp.asarray(x)))
        np.testing.assert_allclose(found, expected, 1e-5, 1e-5)


def test_a_derivative_is_one_operation() -> None:
    x = draw((5, 4), 0, np.float32)
    program = pullback.make_jaxpr(linearize(USES["both"], x)[1])(x)
    assert [str(equation.primitive) for equation in program.eqns] == ["qr_differential"]
    pull = vjp(USES["r"], x)[1]
    program = pullback.make_jaxpr(lambda ct: pull([ct]))(jnp.ones((4, 4)))
    assert [str(equation.primitive) for equation in program.eqns] == ["qr_pull_of_r"]


@pytest.mark.parametrize("x", [
    draw((2, 5, 4), 0), draw((4, 5), 0), draw((5, 4), 0) + 1j * draw((5, 4), 1), jnp.zeros((0, 0)), jnp.zeros((4, 0)),
], ids=["several", "wide", "complex", "no elements", "no columns"])  # fmt: skip
def test_others_are_differentiated_by_operations(x: Any) -> None:
    program = pullback.make_jaxpr(linearize(USES["both"], x)[1])(x)
    assert "qr_differential" not in str(program)


def test_what_is_not_finite_stays_so() -> None:
    x = draw((5, 5), 0, np.float32).at[1, 2].set(np.nan)
    assert np.isnan(np.asarray(grad(weighted(USES["both"]))(x))).any()


def test_operands_that_do_not_fit_are_refused() -> None:
    first, upper = jnp.ones((5, 4)), jnp.ones((4, 4))
    with pytest.raises(ShapeError, match="qr_differential takes Q, R and the tangents"):
        qr_differential_p.bind(first, first, first)
    for p, operands in ((qr_pull_p, (first, upper, upper, upper)), (qr_pull_of_r_p, (first, upper, first))):
        with pytest.raises(ShapeError, match=f"{p.name} takes Q, R, and cotangents of their shapes"):
            p.bind(*operands)
