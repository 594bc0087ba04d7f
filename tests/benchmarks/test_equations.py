"""Error against work: the problems and the interpolated times."""

from __future__ import annotations

import numpy as np
import pytest

import pullback.numpy as jnp
from benchmarks.equations.page import time_at
from benchmarks.equations.problems import PROBLEMS
from pullback import jacfwd
from pullback.core.config import enable_x64


@pytest.mark.parametrize("name", PROBLEMS)
def test_slopes_are_alike_in_both_libraries(name: str) -> None:
    problem = PROBLEMS[name]
    with enable_x64():
        found = problem.slope(jnp, 0.5, jnp.asarray(problem.start + 0.1))
    np.testing.assert_allclose(found, problem.slope(np, 0.5, problem.start + 0.1), rtol=1e-10)


@pytest.mark.slow
def test_the_pattern_has_the_jacobian() -> None:
    problem = PROBLEMS["brusselator"]
    with enable_x64():
        jacobian = np.asarray(jacfwd(lambda y: problem.slope(jnp, 0.0, y))(jnp.asarray(problem.start)))
    assert not jacobian[problem.pattern.toarray() == 0].any()


def test_times_are_read_between_the_points() -> None:
    points = [[1e-3, 1e-2, 1.0], [1e-5, 1e-4, 4.0]]
    assert time_at(points, 1e-3) == pytest.approx(2.0)
    assert time_at(points, 1e-6) is None
