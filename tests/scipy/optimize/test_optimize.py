"""Minima, roots and least squares: those of SciPy, derivatives against other ways, and bad input."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.optimize

import pullback.numpy as jnp
from pullback import effects_barrier, grad, jacfwd, jacrev, jit, jvp, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, ShapeError
from pullback.scipy import optimize
from tests.helpers import largest_difference


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BFGS", "L-BFGS", "Newton-CG"])
def test_minimize(method: str) -> None:
    def found(p: Any, c: Any) -> Any:
        objective = lambda x, p: ((x - p) ** 4).sum() + c * ((x - p * p) ** 2).sum() + jnp.sin(x[0] * x[1])
        return optimize.minimize(objective, jnp.array([0.3, 0.2]), (p,), method=method, tol=1e-11)

    def program(p: Any, c: Any) -> Any:
        x = lambda p, c: found(p, c).x
        return jacfwd(x, (0, 1))(p, c), jacrev(x, (0, 1))(p, c), grad(lambda p: found(p, c).fun)(p), found(p, c)

    if method != "BFGS":  # derivatives do not depend on the method
        with enable_x64():
            p, c = np.array([0.5, 1.5]), 0.7
            result = jit(found)(p, c)
            expected = scipy.optimize.minimize(
                lambda x: ((x - p) ** 4).sum() + c * ((x - p * p) ** 2).sum() + np.sin(x[0] * x[1]), [0.3, 0.2]
            )
            assert result.success
            np.testing.assert_allclose(result.x, expected.x, atol=1e-5)
        return

    with enable_x64():
        p, c, step = jnp.array([0.5, 1.5]), jnp.array(0.7), 1e-5
        forward, backward, slope, result = jit(program)(p, c)
        assert result.success
        many = jit(vmap(found, (0, None)))(p + step * np.concatenate([np.eye(2), -np.eye(2)]), c)
        assert largest_difference(forward, backward) < 1e-9
        np.testing.assert_allclose(forward[0], (many.x[:2] - many.x[2:]).T / (2 * step), atol=1e-7)
        np.testing.assert_allclose(slope, (many.fun[:2] - many.fun[2:]) / (2 * step), atol=1e-7)


@pytest.mark.slow
def test_minimize_in_single_precision_ends() -> None:
    found = jit(lambda x: optimize.minimize(rosenbrock, x, method="BFGS"))(jnp.zeros(100))
    assert found.nit < 1000
    assert found.fun < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["newton", "broyden"])
def test_root(method: str) -> None:
    def found(p: Any) -> Any:
        equations = lambda x, p: jnp.array([x[0] ** 3 + x[1] - p[0], jnp.exp(x[1]) - x[0] - p[1]])
        return optimize.root(equations, jnp.array([3.0, 2.0]), (p,), method, tol=1e-12)

    with enable_x64():
        p, step = jnp.array([2.0, 1.0]), 1e-6
        result = jit(found)(p)
        assert result.success
        assert abs(result.fun).max() < 1e-11
        if method == "broyden":  # derivatives do not depend on the method
            return
        forward, backward = jit(lambda p: (jacfwd(lambda p: found(p).x)(p), jacrev(lambda p: found(p).x)(p)))(p)
        differences = [(found(p + d).x - found(p - d).x) / (2 * step) for d in step * np.eye(2)]
        np.testing.assert_allclose(forward, np.stack(differences, 1), atol=1e-7)
        assert largest_difference(forward, backward) < 1e-12


@pytest.mark.slow
def test_least_squares() -> None:
    t = np.linspace(0, 4, 20)
    y = 3 * np.exp(-0.7 * t) + 0.1 * np.sin(9 * t)

    def found(y: Any) -> Any:
        return optimize.least_squares(lambda x: x[0] * jnp.exp(-x[1] * t) - y, jnp.ones(2))

    with enable_x64():
        result = jit(found)(jnp.array(y))
        expected = scipy.optimize.least_squares(lambda x: x[0] * np.exp(-x[1] * t) - y, np.ones(2), method="lm")
        np.testing.assert_allclose(result.x, expected.x, rtol=1e-7)
        assert result.success
        forward, backward = jit(lambda y: [jac(lambda y: found(y).x)(y) for jac in (jacfwd, jacrev)])(jnp.array(y))
        assert largest_difference(forward, backward) < 1e-12
        step = 1e-4 * np.eye(20)[3]
        np.testing.assert_allclose(forward[:, 3], (found(y + step).x - found(y - step).x) / 2e-4, atol=1e-5)


@pytest.mark.slow
def test_optimisers_say_why_they_end() -> None:
    status = lambda f, x, **options: int(optimize.minimize(f, x, method="BFGS", **options).status)
    one = jnp.ones(1)
    assert status(lambda x: jnp.log(x).sum(), one) == 7
    assert status(lambda x: jnp.sqrt(x).sum(), -one) == 6
    assert status(lambda x: x.sum(), one, options={"maxiter": 2}) == 1
    for method in ("newton", "broyden"):
        assert not optimize.root(lambda x: x * x + 1, one, method=method).success
        assert optimize.root(lambda x: jnp.log(x), -one, method=method).status == 6
        assert optimize.root(lambda x: 0 * x + 1, one, method=method).status == 4
    assert optimize.least_squares(lambda x: jnp.log(x), -one).status == -1


def test_the_status_of_least_squares_says_what_ended_it() -> None:
    residuals = lambda x: jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0], 3 + jnp.sin(x[1])])
    start = jnp.asarray([-1.2, 1.0])
    status = lambda **options: int(optimize.least_squares(residuals, start, **options).status)
    none = {"ftol": 0.0, "xtol": 0.0, "gtol": 0.0}
    assert status(**{**none, "gtol": 1e-1}) == 1
    assert status(**{**none, "ftol": 1e-1}) == 2
    assert status(**{**none, "xtol": 1e-1}) == 3


@pytest.mark.slow
def test_minima_are_those_of_scipy() -> None:  # where JAX stops short, in four of these ten
    with enable_x64():
        for n in range(2, 12):
            rng = np.random.default_rng(n)
            a, start = rng.normal(size=n), rng.normal(size=n)

            def bowl(x: Any, lib: Any, a: Any = a) -> Any:
                return ((x - a) ** 2 * (1 + a**2)).sum() + lib.cosh(x.sum() / 2)

            expected = scipy.optimize.minimize(bowl, start, (np,), tol=1e-10)
            found = optimize.minimize(partial(bowl, lib=jnp), jnp.asarray(start), method="BFGS", tol=1e-9)
            assert bool(found.success)
            np.testing.assert_allclose(found.x, expected.x, atol=1e-7)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS", "Newton-CG"])
def test_a_minimum_over_complex_numbers(method: str) -> None:
    a, b = jnp.array([1 + 2j, -0.5j]), jnp.array([0.3 - 1j, 2.0])

    def distance(x: Any, a: Any) -> Any:
        return jnp.sum((x - a).real ** 2 + 2 * (x - a).imag ** 2)

    def smallest(t: Any) -> Any:
        return optimize.minimize(distance, jnp.zeros(2, a.dtype), (a + t * b,), method=method)

    with enable_x64():
        found = smallest(0.5)
        assert found.success
        np.testing.assert_allclose(found.x, a + 0.5 * b, atol=1e-5)
        np.testing.assert_allclose(found.jac, grad(distance)(found.x, a + 0.5 * b), atol=1e-8)
        np.testing.assert_allclose(jvp(lambda t: smallest(t).x, (0.5,), (1.0,))[1], b, atol=1e-5)


# Progress ----------------------------------------------------------------------------------------------------------


class FakeBar:
    """Records what a bar of tqdm is told."""

    made: ClassVar[list[FakeBar]] = []

    def __init__(self, total: int | None, desc: str | None = None) -> None:
        self.desc, self.n, self.closed = desc, 0, False
        FakeBar.made.append(self)

    def update(self, count: int) -> None:
        self.n += count

    def close(self) -> None:
        self.closed = True


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeBar, "made", [])
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=FakeBar))
    found = optimize.minimize(lambda x: (x**2).sum(), jnp.ones(2), method="BFGS", progress="descending")
    effects_barrier()
    assert [bar.desc for bar in FakeBar.made] == ["descending"]
    assert FakeBar.made[0].closed
    assert FakeBar.made[0].n >= found.nit


# Bad input ---------------------------------------------------------------------------------------------------------

B = jnp.ones(2)
REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: optimize.minimize(rosenbrock, B, method="x"), ArgumentError, "method must be 'BFGS'"),
    (lambda: optimize.minimize(rosenbrock, B, 2.0, method="BFGS"), ArgumentError, "args must be a tuple"),
    (lambda: optimize.minimize(lambda x: x, B, method="BFGS"), ShapeError, "must return one scalar float"),
    (lambda: optimize.minimize(rosenbrock, B, method="BFGS", options={"foo": 1}), ArgumentError, "no option 'foo'"),
    (lambda: optimize.root(rosenbrock, B + 1j), DtypeError, "x0 must be real"),
    (lambda: optimize.root(lambda x: x[:1], B), ShapeError, "of the shape of x0"),
    (lambda: optimize.root(lambda x: x, B, method="x"), ArgumentError, "method must be 'newton' or 'broyden'"),
    (lambda: optimize.least_squares(lambda x: x, B, method="trf"), ArgumentError, "method must be 'lm' or 'dogleg'"),
    (lambda: optimize.least_squares(lambda x: None, B), ShapeError, "must return an array of real numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
