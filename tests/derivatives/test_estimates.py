"""Estimated traces, diagonals and spectra: exact where they must be, right on average, with honest errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import errors, jit, random
from pullback.derivatives import (
    hessian_diag,
    hessian_trace,
    lanczos,
    spectrum,
    stochastic_diag,
    stochastic_trace,
)
from tests.helpers import assert_close
from tests.helpers import random as sample

pytestmark = pytest.mark.usefixtures("all_in_x64")

ROWS = sample(20, 20)
MATRIX = ROWS @ ROWS.T
LARGER = sample(60, 90) @ sample(60, 90).T
LOW_RANK = ROWS[:, :3] @ ROWS[:, :3].T
METHODS = ["hutchinson", "hutch++"]


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_within_their_standard_errors(method: str) -> None:
    errors_of = []
    for seed in range(40):
        value, error = stochastic_trace(LARGER, random.key(seed), 60, method=method)
        errors_of.append(float((value - jnp.trace(LARGER)) / error))
    assert abs(np.mean(errors_of)) < 4 / np.sqrt(40)
    assert 0.7 < np.std(errors_of) < 1.4
    scores = []
    for seed in range(20):
        value, error = stochastic_diag(LARGER, random.key(seed), 60, method=method)
        scores.append(np.asarray((value - jnp.diag(LARGER)) / error))
    assert abs(np.mean(scores)) < 4 / np.sqrt(20)
    assert 0.7 < np.std(scores) < 1.4


def test_the_standard_error_is_that_of_a_mean_of_few_samples() -> None:
    """Each sample is 2 or -2, so that the sum of their squared deviations is known from the mean."""
    swap = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    mean, error = stochastic_trace(swap, random.key(3), 5, method="hutchinson")
    assert abs(mean) < 2
    assert_close(error**2, (4 - mean**2) / 4)


def test_hutch_plus_plus_is_exact_for_low_rank() -> None:
    value, error = stochastic_trace(LOW_RANK, random.key(0), 12, method="hutch++")
    assert_close(value, jnp.trace(LOW_RANK), 1e-10)
    assert float(error) < 1e-8
    value, error = stochastic_diag(LOW_RANK, random.key(0), 12, method="hutch++")
    assert_close(value, jnp.diag(LOW_RANK), 1e-10)
    assert float(stochastic_trace(LOW_RANK, random.key(0), 12).standard_error) > 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("estimate", [stochastic_trace, stochastic_diag])
def test_chunks_change_nothing_but_memory(estimate: Any, method: str) -> None:
    whole = estimate(MATRIX, random.key(1), 11, method=method)
    for chunk_size in (1, 2, 3, 4, 20):  # of which most do not divide the rows, nor the samples
        assert_close(estimate(MATRIX, random.key(1), 11, method=method, chunk_size=chunk_size), whole)


def test_hessians_of_trees_of_parameters() -> None:
    f = lambda p: jnp.sum(p["a"] ** 4) + p["b"] ** 2 * jnp.sum(p["a"])
    point = {"a": jnp.asarray(sample(3)), "b": jnp.asarray(2.0)}
    value, error = jit(lambda p, k: hessian_diag(f)(p, k, 400))(point, random.key(0))
    expected = {"a": 12 * point["a"] ** 2, "b": 2 * jnp.sum(point["a"])}
    assert np.all(np.abs(np.asarray(value["a"] - expected["a"])) <= 4 * np.asarray(error["a"]) + 1e-9)
    assert abs(float(value["b"] - expected["b"])) <= 4 * float(error["b"])
    trace = hessian_trace(f, method="hutch++")(point, random.key(0), 12)
    assert_close(trace.value, jnp.sum(expected["a"]) + expected["b"])


def test_estimates_refuse_what_does_not_fit() -> None:
    with pytest.raises(errors.ArgumentError, match="samples must be a Python integer of at least 2, got 1"):
        stochastic_trace(MATRIX, random.key(0), 1)
    with pytest.raises(errors.ArgumentError, match="at least 4, got 3"):
        stochastic_trace(MATRIX, random.key(0), 3, method="hutch++")
    with pytest.raises(errors.ArgumentError, match="method must be one of"):
        stochastic_trace(MATRIX, random.key(0), 3, method="exact")
    with pytest.raises(errors.ShapeError, match="a square matrix, got an array of shape \\(20, 3\\)"):
        stochastic_trace(MATRIX[:, :3], random.key(0), 3)
    with pytest.raises(errors.ArgumentError, match="chunk_size"):
        stochastic_trace(MATRIX, random.key(0), 3, chunk_size=0)
    with pytest.raises(errors.ArgumentError, match="steps must be at most 20"):
        lanczos(MATRIX, random.key(0), 21)
    with pytest.raises(errors.ArgumentError, match="start must be a vector of shape \\(20,\\)"):
        lanczos(MATRIX, jnp.ones(3), 2)


def test_lanczos_finds_all_eigenvalues_in_as_many_steps_as_rows() -> None:
    found = lanczos(MATRIX, random.key(0), 20)
    assert_close(found.basis @ found.basis.T, jnp.eye(20), 1e-12)
    values, vectors, bounds = found.ritz()
    assert_close(values, jnp.linalg.eigvalsh(MATRIX))
    assert_close(vectors @ MATRIX, values[:, None] * vectors, 1e-8)
    assert np.all(np.asarray(bounds) < 1e-8)


def test_the_bounds_of_ritz_values_hold() -> None:
    values, vectors, bounds = lanczos(MATRIX, random.key(0), 6).ritz()
    eigenvalues = np.linalg.eigvalsh(np.asarray(MATRIX))
    for value, vector, bound in zip(np.asarray(values), np.asarray(vectors), np.asarray(bounds), strict=True):
        assert np.min(np.abs(eigenvalues - value)) <= bound
        assert_close(np.linalg.norm(MATRIX @ vector - value * vector), np.float64(bound), 1e-8)


def test_lanczos_goes_on_where_the_space_is_invariant() -> None:
    repeated = jnp.diag(jnp.asarray([1.0, 1.0, 1.0, 5.0, 5.0]))
    found = lanczos(repeated, jnp.asarray([1.0, 0.0, 0.0, 1.0, 0.0]), 5)
    assert_close(found.ritz()[0], jnp.diag(repeated))
    assert_close(jit(lambda a, k: lanczos(a, k, 5))(repeated, random.key(3)).ritz()[0], jnp.diag(repeated))


def test_a_spectrum_has_the_moments_of_the_matrix() -> None:
    found = spectrum(MATRIX, random.key(0), 20, samples=40)
    assert_close(found.weights.sum(1), jnp.ones(40))
    for function, exact in ((jnp.log, jnp.linalg.slogdet(MATRIX)[1]), (lambda x: x, jnp.trace(MATRIX))):
        value, error = found.trace(function)
        assert abs(float(value - exact)) <= 4 * float(error)
