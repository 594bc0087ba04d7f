"""Quasi-random points: SciPy's sequences bit for bit, laws of scrambled ones, and measures of evenness."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc as oracle

import pullback.numpy as jnp
from pullback import grad, jit, random, vmap
from pullback.core.config import enable_x64
from pullback.core.errors import ArgumentError, ShapeError, UnsupportedArgumentError
from pullback.scipy.stats import qmc
from pullback.test_util import check_grads
from pullback.typing import Array

KEY = random.key(3)


# Sequences ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [None, 12, 32, 64])
def test_sobol_points_are_those_of_scipy(bits: int | None) -> None:
    with enable_x64():
        for d, start, n in ((1, 0, 64), (7, 0, 64), (40, 0, 1), (11, 77, 100), (3, 1023, 2)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of SciPy, about numbers that are no powers of two
                expected = oracle.Sobol(d, scramble=False, bits=bits).random(start + n)[start:]
            np.testing.assert_array_equal(qmc.sobol(None, n, d, start=start, bits=bits or 30), expected)


def test_sobol_points_of_all_dimensions() -> None:
    with enable_x64():
        expected = oracle.Sobol(21_201, scramble=False).random(8)[:, ::50]
        np.testing.assert_array_equal(qmc.sobol(None, 8, 21_201)[:, ::50], expected)


def test_halton_points_are_those_of_scipy() -> None:
    with enable_x64():
        for d, start, n in ((1, 0, 100), (9, 12345, 50), (200, 0, 7)):
            expected = oracle.Halton(d, scramble=False).fast_forward(start).random(n)
            np.testing.assert_array_equal(qmc.halton(None, n, d, start=start), expected)


@pytest.mark.parametrize("wide", [False, True])
def test_scrambled_points_are_a_net(wide: bool) -> None:
    """Each elementary interval of 64 has one of the first 64 points of the first two dimensions."""
    with enable_x64(wide):
        points = np.asarray(qmc.sobol(KEY, 64, 3))
    for rows in range(7):
        cells = np.floor(points[:, :2] * [2**rows, 2 ** (6 - rows)]).astype(int)
        assert len({*map(tuple, cells)}) == 64
    one = np.sort(points[:, 2])
    np.testing.assert_array_equal(np.floor(one * 64), np.arange(64))
    assert points.max() < 1
    assert points.min() >= 0


def test_scrambled_points_of_keys_are_unbiased() -> None:
    """Over 400 keys the mean of the first point is a half within 5 standard errors, and its digits are independent."""
    with enable_x64():
        points = np.asarray(vmap(lambda k: qmc.sobol(k, 2, 3))(random.split(KEY, 400)))
        other = np.asarray(vmap(lambda k: qmc.halton(k, 2, 3))(random.split(KEY, 400)))
    for found in (points, other):
        error = 5 * math.sqrt(1 / 12 / 400)
        np.testing.assert_allclose(found.mean(0), 0.5, atol=error)
        np.testing.assert_allclose(found.var(0), 1 / 12, atol=5 * math.sqrt(1 / 180 / 400))


@pytest.mark.parametrize("wide", [False, True])
def test_sequences_are_compiled_and_mapped(wide: bool) -> None:
    def every(key: Array) -> list[Any]:
        return [
            qmc.sobol(key, 6, 3, start=5), qmc.halton(key, 6, 3), qmc.latin_hypercube(key, 6, 2),
            qmc.latin_hypercube(key, 9, 3, strength=2),
        ]  # fmt: skip

    keys = random.split(KEY, 2)
    with enable_x64(wide):
        eager = [every(k) for k in keys]
        tolerance = 1e-15 if wide else 1e-7
        for got, expected in zip(jit(every)(keys[1]), eager[1], strict=True):
            assert got.dtype == (np.float64 if wide else np.float32)
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
        for i, got in enumerate(vmap(every)(keys)):
            np.testing.assert_allclose(got, [e[i] for e in eager], rtol=tolerance, atol=tolerance)


def test_scrambled_sequences_continue() -> None:
    for of in (qmc.sobol, qmc.halton):
        whole = np.asarray(of(KEY, 20, 3))
        np.testing.assert_array_equal(of(KEY, 7, 3, start=13), whole[13:])


@pytest.mark.parametrize(("n", "d", "strength"), [(10, 3, 1), (1, 2, 1), (49, 8, 2), (4, 3, 2)])
def test_latin_hypercubes(n: int, d: int, strength: int) -> None:
    with enable_x64():
        points = np.asarray(qmc.latin_hypercube(KEY, n, d, strength=strength))
        middle = np.asarray(qmc.latin_hypercube(KEY, n, d, strength=strength, scramble=False))
    for x in (points, middle):
        np.testing.assert_array_equal(np.floor(np.sort(x, 0) * n), np.arange(n)[:, None] * np.ones(d))
    np.testing.assert_allclose(middle * n % 1, 0.5)
    if strength == 2:
        cells = np.floor(points * math.isqrt(n)).astype(int)
        for i, j in itertools.combinations(range(d), 2):
            assert len({*map(tuple, cells[:, [i, j]])}) == n


def test_no_points() -> None:
    assert qmc.sobol(None, 0, 3).shape == qmc.sobol(KEY, 0, 3).shape == (0, 3)
    assert qmc.halton(None, 0, 3).shape == qmc.halton(KEY, 0, 3).shape == (0, 3)
    assert qmc.latin_hypercube(KEY, 0, 3).shape == (0, 3)


# Engines -----------------------------------------------------------------------------------------------------------


def test_engines_count_their_points() -> None:
    for make in (
        lambda: qmc.Sobol(2, rng=7), lambda: qmc.Sobol(2, scramble=False), lambda: qmc.Halton(2, rng=random.key(7)),
        lambda: qmc.Halton(2, scramble=False),
    ):  # fmt: skip
        whole = np.asarray(make().random(16))
        engine = make()
        np.testing.assert_array_equal(np.concatenate([engine.random(8), engine.random(4)]), whole[:12])
        assert engine.num_generated == 12
        np.testing.assert_array_equal(engine.reset().fast_forward(3).random(2), whole[3:5])
    np.testing.assert_array_equal(qmc.Sobol(2, rng=7).random(4), qmc.Sobol(2, seed=random.key(7)).random(4))
    np.testing.assert_array_equal(qmc.Sobol(2, rng=7).random(4), qmc.sobol(random.key(7), 4, 2))


def test_latin_hypercubes_of_an_engine_differ() -> None:
    engine = qmc.LatinHypercube(2, rng=1)
    first, second = np.asarray(engine.random(5)), np.asarray(engine.random(5))
    assert (first != second).any()
    np.testing.assert_array_equal(engine.reset().random(5), first)


def test_poisson_disks_keep_their_distance() -> None:
    engine = qmc.PoissonDisk(2, radius=0.15, rng=4)
    points = engine.fill_space()
    assert engine.num_generated == len(points) > 20
    assert qmc.geometric_discrepancy(points) >= 0.15
    np.testing.assert_array_equal(engine.reset().random(5), qmc.PoissonDisk(2, radius=0.15, rng=4).random(5))


def test_integers_of_engines() -> None:
    with enable_x64():
        for arguments in ({"l_bounds": 3}, {"l_bounds": [0, -4], "u_bounds": [2, 9], "endpoint": True}):
            ours = qmc.Halton(2, scramble=False).integers(**arguments, n=40)  # type: ignore[arg-type]
            theirs = oracle.Halton(2, scramble=False).integers(**arguments, n=40)
            np.testing.assert_array_equal(ours, theirs)


def test_unbalanced_points_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="power of two"):
        qmc.Sobol(2, scramble=False).random(3)


def test_normal_vectors() -> None:
    mean, cov = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]])
    with enable_x64():
        for inverse in (True, False):
            engine = oracle.Halton(3 if inverse else 4, scramble=False).fast_forward(5)
            own = qmc.Halton(3 if inverse else 4, scramble=False).fast_forward(5)
            expected = oracle.MultivariateNormalQMC(mean, cov, engine=engine, inv_transform=inverse).random(20)
            got = qmc.MultivariateNormalQMC(mean, cov, engine=own, inv_transform=inverse).random(20)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)
        singular = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        x = np.asarray(qmc.MultivariateNormalQMC(mean, singular, rng=0).random(256))
        np.testing.assert_allclose(x[:, 0] - x[:, 1], 3.0, atol=1e-7)
        np.testing.assert_allclose(np.cov(x.T), singular, atol=0.05)


def test_normal_vectors_have_derivatives() -> None:
    def total(mean: Array, cov: Array) -> Array:
        return jnp.sum(jnp.sin(qmc.MultivariateNormalQMC(mean, cov, rng=0).random(8)))

    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    with enable_x64():
        check_grads(lambda m, c: total(m, c @ c.T), (mean, cov), order=1, rtol=1e-5)


def test_counts_of_categories() -> None:
    p = np.array([0.2, 0.3, 0.5])
    with enable_x64():
        engine, own = oracle.Sobol(1, scramble=False), qmc.Sobol(1, scramble=False)
        expected = oracle.MultinomialQMC(p, 16, engine=engine).random(3)
        np.testing.assert_array_equal(qmc.MultinomialQMC(p, 16, engine=own).random(3), expected)


# Measures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["CD", "WD", "MD", "L2-star"])
@pytest.mark.parametrize("iterative", [False, True])
def test_discrepancies_are_those_of_scipy(method: str, iterative: bool) -> None:
    x = np.random.default_rng(0).uniform(size=(13, 3))
    with enable_x64():
        expected = oracle.discrepancy(x, method=method, iterative=iterative)  # type: ignore[arg-type]
        compute = lambda x: qmc.discrepancy(x, method=method, iterative=iterative)
        for way in (compute, jit(compute)):
            np.testing.assert_allclose(way(x), expected, rtol=1e-13)
        if iterative:
            check_grads(jit(compute), (x[:3],), order=2 if method == "CD" else 1, rtol=1e-5, atol=1e-6)


def test_discrepancies_are_updated() -> None:
    x = np.random.default_rng(0).uniform(size=(9, 3))
    with enable_x64():
        first = oracle.discrepancy(x[:8], iterative=True)
        expected = oracle.update_discrepancy(x[8], x[:8], first)
        np.testing.assert_allclose(qmc.update_discrepancy(x[8], x[:8], first), expected, rtol=1e-13)
        slope = grad(lambda new: qmc.update_discrepancy(new, x[:8], first))(x[8])
        whole = grad(lambda x: qmc.discrepancy(x))(x)
        np.testing.assert_allclose(slope, whole[8], rtol=1e-10)


@pytest.mark.parametrize("method", ["mindist", "mst"])
def test_geometric_discrepancies_are_those_of_scipy(method: str) -> None:
    x = np.random.default_rng(1).uniform(size=(20, 3))
    with enable_x64():
        expected = oracle.geometric_discrepancy(x, method)  # type: ignore[arg-type]
        compute = lambda x: qmc.geometric_discrepancy(x, method)
        for way in (compute, jit(compute)):
            np.testing.assert_allclose(way(x), expected, rtol=1e-13)
        check_grads(jit(compute), (x,), order=1, modes=("rev",), rtol=1e-6)


def test_scaled_points() -> None:
    x, low, high = np.random.default_rng(1).uniform(size=(4, 2)), np.array([-2.0, 1.0]), np.array([3.0, 1.5])
    with enable_x64():
        there = qmc.scale(x, low, high)
        np.testing.assert_allclose(there, oracle.scale(x, low, high), rtol=1e-15)
        np.testing.assert_allclose(qmc.scale(there, low, high, reverse=True), x, rtol=1e-13)
        np.testing.assert_allclose(grad(lambda h: qmc.scale(x, low, h).sum())(high), x.sum(0))
        np.testing.assert_allclose(jit(qmc.scale)(x, low, high), there)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: qmc.sobol(None, 4, 21_202), ArgumentError, "d must be at most 21201"),
        (lambda: qmc.sobol(None, 4, 0), ArgumentError, "d must be positive"),
        (lambda: qmc.sobol(None, -4, 1), ArgumentError, "n must not be negative"),
        (lambda: qmc.sobol(None, 4, 1, bits=65), ArgumentError, "from 1 to 64, got 65"),
        (lambda: qmc.sobol(None, 4, 1, bits=2, start=1), ArgumentError, r"has 2\*\*2 points"),
        (lambda: qmc.sobol(KEY, 4, 1, bits=40), UnsupportedArgumentError, "enable_x64"),
        (lambda: qmc.sobol(KEY, 4, 1, dtype=int), ArgumentError, "floating-point"),
        (lambda: qmc.Sobol(2), ArgumentError, r"scramble=True needs a key.*rng=random.key\(0\)"),
        (lambda: qmc.Sobol(2, rng=0, seed=1), ArgumentError, "not both"),
        (lambda: qmc.Sobol(2, rng=0, optimization="lloyd"), UnsupportedArgumentError, "'lloyd'"),
        (lambda: qmc.Halton(2, rng=np.random.default_rng(0)), UnsupportedArgumentError, "NumPy's Generator"),  # type: ignore[arg-type]
        (lambda: qmc.Sobol(1, scramble=False).fast_forward(1).random_base2(1), ArgumentError, "not a power of two"),
        (lambda: qmc.Sobol(1, scramble=False, bits=2).random(8), ArgumentError, "pass more bits"),
        (lambda: qmc.latin_hypercube(KEY, 10, 2, strength=2), ArgumentError, "square of a prime"),
        (lambda: qmc.latin_hypercube(KEY, 4, 4, strength=2), ArgumentError, "at most 3 for 4 points"),
        (lambda: qmc.latin_hypercube(KEY, 4, 4, strength=3), ArgumentError, "1 or 2, got 3"),
        (lambda: qmc.LatinHypercube(2), ArgumentError, "needs a key"),
        (lambda: qmc.PoissonDisk(2, rng=0, radius=-1), ArgumentError, "radius must be positive"),
        (lambda: qmc.discrepancy(np.ones(3)), ShapeError, r"\(n, d\)"),
        (lambda: qmc.discrepancy(np.full((3, 2), 1.5)), ArgumentError, "in the unit cube"),
        (lambda: qmc.discrepancy(np.ones((3, 2)), method="XD"), ArgumentError, "'XD'"),
        (lambda: qmc.geometric_discrepancy(np.ones((1, 2))), ShapeError, "two points"),
        (lambda: qmc.geometric_discrepancy(np.ones((3, 2)), "mst", "cityblock"), ArgumentError, "'cityblock'"),
        (lambda: qmc.scale(np.ones((3, 2)), 1.0, 0.0), ArgumentError, "below u_bounds"),
        (lambda: qmc.scale(np.ones((3, 2)), np.zeros(3), 1.0), ShapeError, r"\(2,\)"),
        (lambda: qmc.MultivariateNormalQMC(np.ones(2), np.eye(3), rng=0), ShapeError, r"cov must have the shape"),
        (lambda: qmc.MultivariateNormalQMC(np.ones(2), -np.eye(2), rng=0), ArgumentError, "semidefinite"),
        (lambda: qmc.MultivariateNormalQMC(np.ones(2), engine=qmc.Sobol(3, rng=0)), ShapeError, "dimension 2, got 3"),
        (lambda: qmc.MultinomialQMC(np.array([0.5, 0.6]), 3, rng=0), ArgumentError, "sum must be one"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
