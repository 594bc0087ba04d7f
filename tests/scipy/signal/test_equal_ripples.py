"""Filters of equal ripples: SciPy's values, derivatives by all numbers beside differences, and filters without any."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import pullback.numpy as jnp
from pullback import errors, grad, jit, jvp
from pullback.scipy import signal
from pullback.test_util import check_grads
from tests.scipy.signal.comparisons import close, derivatives

pytestmark = pytest.mark.usefixtures("x64")
BANDS, GAINS, WEIGHTS = np.array([0.03, 0.16, 0.27, 0.44]), np.array([1.0, 0.2]), np.array([1.0, 3.0])


@pytest.mark.parametrize("type", ["bandpass", "differentiator", "hilbert"])
@pytest.mark.parametrize("numtaps", [10, 11])
def test_filters_have_derivatives_by_all_numbers(type: str, numtaps: int) -> None:
    def design(*x: Any) -> Any:
        return signal.remez(numtaps, *x[:2], weight=x[2], type=type, fs=x[3])

    arrays = BANDS * 100, GAINS, WEIGHTS, np.array(100.0)
    expected = scipy.signal.remez(numtaps, *arrays[:2], weight=WEIGHTS, type=type, fs=100.0)
    close(design(*arrays), expected)
    close(jvp(design, tuple(map(jnp.asarray, arrays)), tuple(map(jnp.ones_like, arrays)))[0], expected)
    derivatives(design, *arrays, compiled=True)


def test_second_derivatives_and_frequencies_at_the_ends() -> None:
    def design(inner: Any, gains: Any) -> Any:
        return signal.remez(13, jnp.concatenate([jnp.zeros(1), inner, jnp.full(1, 0.5)]), gains, grid_density=20)

    check_grads(design, (jnp.array([0.12, 0.23]), jnp.array(GAINS)), 2, eps=1e-5, rtol=1e-4, atol=1e-4)
    for type in ("differentiator", "hilbert"):  # the first frequencies of the grid are not those of the band
        small = lambda b: signal.remez(8, jnp.append(b, 0.4), [1.0], type=type)  # noqa: B023
        close(small(jnp.array([0.001])), scipy.signal.remez(8, [0.001, 0.4], [1.0], type=type))
        close(grad(lambda b: small(b)[1])(jnp.array([0.001])), np.zeros(1))  # noqa: B023


def test_a_filter_whose_ripples_rounding_hides_has_no_derivative() -> None:
    taps = lambda bands: signal.remez(30, bands, [1.0])[2]
    bands = jnp.array([0.2, 0.21])
    close(taps(bands), scipy.signal.remez(30, [0.2, 0.21], [1.0])[2])
    with pytest.raises(errors.DegenerateSolutionError, match="remez: the filter has no derivative: 16 alternating rip"):
        grad(taps)(bands)
    assert jnp.isnan(jit(grad(taps))(bands)).all()
