"""Functions of SciPy's linear algebra and optimisation: properties, derivatives against other ways, and bad input."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import pullback.numpy as jnp
from pullback import effects_barrier, grad, jacfwd, jacrev, jit, jvp, tree_util, vjp, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, DtypeError, OperandError, ShapeError, UnsupportedArgumentError
from pullback.experimental.sparse import BCOO
from pullback.scipy import linalg, optimize
from pullback.scipy.sparse import linalg as sparse

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(4, 4))
SHIFTED = SQUARE + 4 * np.eye(4)
SIDE = RNG.normal(size=4)


def largest_difference(xs: Any, ys: Any) -> float:
    pairs = zip(tree_util.tree_leaves(xs), tree_util.tree_leaves(ys), strict=True)
    return max(float(abs(np.asarray(x) - np.asarray(y)).max()) for x, y in pairs)


# Matrix functions and equations ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_functions_of_matrices_compiled() -> None:
    def all_of(a: Any) -> Any:
        root, log, sign = linalg.sqrtm(a), linalg.logm(a), linalg.signm(a - 4 * jnp.eye(4))
        stein = linalg.solve_discrete_lyapunov(a / 8, a)
        sylvester = linalg.solve_sylvester(a, a.T, a)
        return {
            "root": root @ root - a, "log": linalg.expm(log) - a, "sign": sign @ sign - jnp.eye(4),
            "stein": a @ stein @ a.T / 64 - stein + a, "sylvester": a @ sylvester + sylvester @ a.T - a,
            "funm": linalg.funm(a, jnp.exp) - linalg.expm(a),
            "polar": jnp.matmul(*linalg.polar(a)) - a, "left": jnp.matmul(*linalg.polar(a, "left")[::-1]) - a,
            "rsf2csf": (lambda t, z: z @ t @ z.conj().T - a)(*linalg.rsf2csf(*linalg.schur(a))),
            "hessenberg": (lambda h, q: q @ h @ q.T - a)(*linalg.hessenberg(a, calc_q=True)),
        }  # fmt: skip

    with enable_x64():
        for found in (all_of(jnp.array(SHIFTED)), jit(all_of)(jnp.array(SHIFTED))):
            for name, x in found.items():
                assert abs(x).max() < 1e-10, name


@pytest.mark.slow
def test_scaling_is_not_overdone() -> None:
    """Of a nilpotent part of great norm the exponential is exact, since powers are measured and not the norm."""
    a = np.array([[1.0, 1e6], [0.0, -1.0]])
    with enable_x64():
        expm = partial(linalg.expm, max_squarings=40)
        for f in (expm, jit(expm)):
            np.testing.assert_allclose(f(a), [[np.e, 1e6 * np.sinh(1)], [0, 1 / np.e]], rtol=1e-14)


@pytest.mark.slow
def test_what_has_no_root_or_logarithm_or_solution() -> None:
    nilpotent, singular = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.diag(jnp.array([1.0, 0.0]))

    def all_of(x: Any, y: Any) -> Any:
        return [
            linalg.sqrtm(x), linalg.logm(y), linalg.solve_sylvester(y, -y, y), linalg.solve_continuous_lyapunov(x, x),
            linalg.solve_discrete_lyapunov(jnp.eye(2), x), linalg.signm(x), linalg.expm(1e7 * y),
        ]  # fmt: skip

    for found in (all_of(nilpotent, singular), jit(all_of)(nilpotent, singular)):
        assert [bool(jnp.isnan(x).all()) for x in found] == [True] * 7
    np.testing.assert_array_equal(linalg.sqrtm(singular), singular)
    np.testing.assert_allclose(linalg.logm(-jnp.eye(2)), np.pi * 1j * np.eye(2), rtol=1e-6)


@pytest.mark.slow
def test_derivative_of_the_exponential_is_the_frechet_derivative() -> None:
    with enable_x64():
        a, e = jnp.array(SQUARE), jnp.array(SHIFTED)
        pushed = jit(lambda a, e: jvp(linalg.expm, (a,), (e,))[1])(a, e)
        np.testing.assert_allclose(pushed, scipy.linalg.expm_frechet(SQUARE, SHIFTED)[1], rtol=1e-12)
        np.testing.assert_allclose(linalg.expm_frechet(a, e, compute_expm=False), pushed, rtol=1e-12)


# Iterative solvers -------------------------------------------------------------------------------------------------

SOLVERS: dict[str, Any] = {
    "cg": lambda a, b: sparse.cg(a, b, tol=1e-13)[0],
    "minres": lambda a, b: sparse.minres(a, b, tol=1e-13)[0],
    "bicgstab": lambda a, b: sparse.bicgstab(a, b, tol=1e-13)[0],
    "gmres": lambda a, b: sparse.gmres(a, b, tol=1e-13, restart=4)[0],
    "lsqr": lambda a, b: sparse.lsqr(a, b, atol=1e-14, btol=1e-14).x,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_have_the_derivatives_of_the_solution(name: str) -> None:
    def program(solve: Any, a: Any, b: Any) -> Any:
        a = a @ a.T if name == "cg" else a + a.T if name == "minres" else a
        x, back = vjp(solve, a, b)
        if name != "cg":  # what follows is alike for all
            return x, back(b)
        second = jvp(lambda b: vjp(solve, a, b)[1](b)[0], (b,), (b,))[1]
        return x, jvp(solve, (a, b), (a.T, b))[1], back(b), second, vmap(solve, (None, 1))(a, a)

    with enable_x64():
        a, b = jnp.array(SHIFTED), jnp.array(SIDE)
        found = jit(lambda a, b: program(SOLVERS[name], a, b))(a, b)
        assert largest_difference(found, program(jnp.linalg.solve, a, b)) < 1e-9
        if name in ("cg", "lsqr"):
            matrix = BCOO.fromdense(a @ a.T)
            assert largest_difference(SOLVERS[name](matrix, b), jnp.linalg.solve(a @ a.T, b)) < 1e-9


@pytest.mark.slow
def test_trees_preconditioners_and_starts() -> None:
    a = jnp.array(SHIFTED @ SHIFTED.T, "float32")
    inverse = jnp.linalg.inv(a) + 0.001 * jnp.eye(4)
    tree = {"x": jnp.ones((2, 2)), "y": jnp.ones(3)}
    for f in (sparse.cg, sparse.gmres):
        x, info = f(a, a @ jnp.arange(4.0), M=inverse, x0=jnp.ones(4), tol=1e-6)
        np.testing.assert_allclose(x, np.arange(4), atol=1e-3)
        assert info == 0
        x, info = f(lambda t: tree_util.tree_map(lambda leaf: 2 * leaf, t), tree)
        assert info == 0
        assert x["x"].shape == (2, 2)
        np.testing.assert_allclose(x["y"], 0.5, rtol=1e-5)


@pytest.mark.slow
def test_solvers_say_when_they_fail() -> None:
    a, b = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.array([1.0, 2.0])
    assert sparse.gmres(a, b)[1] > 0
    assert sparse.bicgstab(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), b)[1] == -10
    np.testing.assert_allclose(sparse.minres(jnp.diag(jnp.array([1.0, 0.0])), b)[0], b)
    assert sparse.cg(jnp.array(SHIFTED @ SHIFTED.T, "float32"), jnp.arange(4.0), maxiter=1)[1] == 1
    assert sparse.lsqr(a, b, iter_lim=0).istop == 7


# Optimisation ------------------------------------------------------------------------------------------------------


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

A = jnp.array([[4.0, 1.0], [1.0, 3.0]])
B = jnp.ones(2)
REFUSED: list[tuple[Any, Any, str]] = [
    (lambda: linalg.expm(B), ShapeError, "square"),
    (lambda: linalg.expm(A.astype("float16")), DtypeError, "float16|f16"),
    (lambda: linalg.expm(A, max_squarings=-1), ArgumentError, "max_squarings must not be negative, got -1"),
    (lambda: linalg.expm_frechet(A, A[None]), ShapeError, "A and E must be of one shape"),
    (lambda: linalg.funm(A[None], jnp.exp), ShapeError, "one square matrix, got shape"),
    (lambda: linalg.funm(A, 3), ArgumentError, "func must be a function"),
    (lambda: linalg.funm(A, jnp.sum), DtypeError, "must return an array of the shape of its argument"),
    (lambda: linalg.polar(A, "up"), ArgumentError, "side must be 'right' or 'left', got 'up'"),
    (lambda: linalg.schur(A, "x"), ArgumentError, "output must be 'real' or 'complex', got 'x'"),
    (lambda: linalg.rsf2csf(A, B), ShapeError, "square matrices of one shape"),
    (lambda: linalg.qr(A, mode="x"), ArgumentError, "mode must be"),
    (lambda: linalg.qr(A, mode="raw", pivoting=True), UnsupportedArgumentError, "without pivoting"),
    (lambda: linalg.qr_multiply(A, jnp.ones(3)), ShapeError, "c must have 2 columns"),
    (lambda: linalg.eigh(A, A[:1]), ShapeError, "one shape"),
    (lambda: linalg.eigh(A, type=4), ArgumentError, "type must be 1, 2 or 3, got 4"),
    (lambda: linalg.eigh(A, eigvals=(0, 2)), ArgumentError, "0 <= first <= last < 2"),
    (lambda: linalg.eigh_tridiagonal(B, B), ShapeError, "one element less than d"),
    (lambda: linalg.eigh_tridiagonal(B, B[:1], select="v"), UnsupportedArgumentError, "select='v'"),
    (lambda: linalg.solve_sylvester(A, A, A[:1]), ShapeError, "must have 2 rows and 2 columns"),
    (lambda: linalg.solve_sylvester(A, A, A, method="x"), ArgumentError, "'schur' or 'eigen', got 'x'"),
    (lambda: linalg.hadamard(3), ArgumentError, "n must be a power of two, got 3"),
    (lambda: linalg.helmert(0), ArgumentError, "n must be at least 1, got 0"),
    (lambda: linalg.dft(3, "x"), ArgumentError, "scale must be None, 'sqrtn' or 'n', got 'x'"),
    (lambda: linalg.dft(3, dtype=float), DtypeError, "dtype must be complex"),
    (lambda: linalg.pascal(3, "x"), ArgumentError, "kind must be one of"),
    (lambda: linalg.leslie(B, B), ShapeError, "one element less than f"),
    (lambda: linalg.companion(jnp.ones(1)), ShapeError, "at least 2 elements"),
    (lambda: linalg.hankel(1.0), ShapeError, "at least one axis, got a number"),
    (lambda: linalg.convolution_matrix(B, 0), ArgumentError, "n must be at least one, got 0"),
    (lambda: linalg.block_diag(A[None]), ShapeError, "argument 0 must have at most two axes"),
    (lambda: sparse.cg(A[:1], B), ShapeError, "square matrix, got shape"),
    (lambda: sparse.cg(A, jnp.ones(3)), ShapeError, "b must be a vector of 2 elements"),
    (lambda: sparse.cg("A", B), OperandError, "a matrix, or a function"),
    (lambda: sparse.cg(A, {"b": B}), OperandError, "b must be an array where A is a matrix"),
    (lambda: sparse.cg(A, B, x0=jnp.ones(3)), ShapeError, "x0 must be of the tree and shapes of b"),
    (lambda: sparse.cg(lambda x: x[:1], B), ShapeError, "A must map a tree like b to another one"),
    (lambda: sparse.cg(A, B, M=lambda x: x[:1]), ShapeError, "M must map a tree like b"),
    (lambda: sparse.cg(A, B, maxiter=1.5), ArgumentError, "maxiter must be an integer"),
    (lambda: sparse.gmres(A, B, restart=0), ArgumentError, "restart must be at least one, got 0"),
    (lambda: sparse.gmres(A, B, solve_method="x"), ArgumentError, "'batched' or 'incremental', got 'x'"),
    (lambda: sparse.lsqr(lambda x: x, B), ArgumentError, "x0 shows its operand"),
    (lambda: sparse.lsqr(A, jnp.ones(3)), ShapeError, "b must be of shape"),
    (lambda: optimize.minimize(rosenbrock, B, method="x"), ArgumentError, "method must be 'BFGS'"),
    (lambda: optimize.minimize(rosenbrock, B, 2.0, method="BFGS"), ArgumentError, "args must be a tuple"),
    (lambda: optimize.minimize(lambda x: x, B, method="BFGS"), ShapeError, "must return one real number"),
    (lambda: optimize.minimize(rosenbrock, B, method="BFGS", options={"foo": 1}), ArgumentError, "no option 'foo'"),
    (lambda: optimize.root(rosenbrock, B + 1j), DtypeError, "x0 must be real"),
    (lambda: optimize.root(lambda x: x[:1], B), ShapeError, "of the shape of x0"),
    (lambda: optimize.root(lambda x: x, B, method="x"), ArgumentError, "method must be 'newton' or 'broyden'"),
    (lambda: optimize.least_squares(lambda x: x, B, method="trf"), ArgumentError, "method must be 'lm'"),
    (lambda: optimize.least_squares(lambda x: None, B), ShapeError, "must return an array of real numbers"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


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


# From real to complex Schur forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 10])
def test_complex_schur_forms_of_real_ones(n: int) -> None:
    rng = np.random.default_rng(n)
    with enable_x64():
        for _ in range(10):
            a = rng.normal(size=(n, n))
            t, z = map(np.asarray, linalg.rsf2csf(*scipy.linalg.schur(a)))
            np.testing.assert_allclose(z @ z.conj().T, np.eye(n), atol=1e-13)
            np.testing.assert_allclose(z @ t @ z.conj().T, a, atol=1e-12)
            np.testing.assert_array_equal(np.tril(t, -1), 0)


def test_complex_schur_forms_of_neighbouring_blocks() -> None:
    t = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, -5, -2], [0, 0, 2, -5]])
    with enable_x64():
        triangular, z = map(np.asarray, jit(linalg.rsf2csf)(t, np.eye(4)))
        np.testing.assert_allclose(z @ triangular @ z.conj().T, t, atol=1e-14)


def test_complex_schur_forms_of_batches() -> None:
    with enable_x64():
        batch = np.stack([scipy.linalg.schur(RNG.normal(size=(4, 4)))[0] for _ in range(3)])
        t, z = map(np.asarray, linalg.rsf2csf(batch, np.eye(4)))
        assert t.shape == z.shape == (3, 4, 4)
        np.testing.assert_allclose(z @ t @ z.conj().swapaxes(-1, -2), batch, atol=1e-13)
    with pytest.raises(ShapeError, match="square matrices of one shape"):
        linalg.rsf2csf(np.eye(3), np.eye(4))


def test_the_status_of_least_squares_says_what_ended_it() -> None:
    residuals = lambda x: jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0], 3 + jnp.sin(x[1])])
    start = jnp.asarray([-1.2, 1.0])
    status = lambda **options: int(optimize.least_squares(residuals, start, **options).status)
    none = {"ftol": 0.0, "xtol": 0.0, "gtol": 0.0}
    assert status(**{**none, "gtol": 1e-1}) == 1
    assert status(**{**none, "ftol": 1e-1}) == 2
    assert status(**{**none, "xtol": 1e-1}) == 3


# Minima over complex numbers ---------------------------------------------------------------------------------------


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
