"""How errors of elements are summed up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pullback.analysis import digits


@pytest.mark.parametrize("count", [1, 50, 51, 1000, digits.SAMPLE, digits.SAMPLE + 1, 100_000])
def test_few_elements_exceed_the_typical_error(count: int) -> None:
    errors = 10.0 ** np.random.default_rng(count).uniform(-16, -1, count)
    found = digits.typical_worst(errors)
    few = max((count - 50) // 5, 0)
    wanted = np.sort(errors)[count - 1 - few]
    assert wanted * (1 - 1e-12) <= found <= 1.01 * wanted
    assert np.count_nonzero(errors > found) <= few


def test_errors_of_large_arrays_may_be_zero() -> None:
    errors = np.zeros(2 * digits.SAMPLE)
    assert digits.typical_worst(errors) == 0
    errors[:10] = 0.5  # fewer than a fifth
    assert digits.typical_worst(errors) < 1e-19
    assert digits.typical_worst(np.full(2 * digits.SAMPLE, 0.25)) == pytest.approx(0.25, rel=0.02)


def test_errors_of_rounding_count_in_full() -> None:
    unit = digits.unit(np.dtype(np.float32))
    errors = np.zeros(100)
    errors[0] = 2 * unit
    assert digits.few_exceed(errors, np.dtype(np.float32)) == 2 * unit
    errors[0] = 3 * unit
    assert digits.few_exceed(errors, np.dtype(np.float32)) == 0
    errors[0] = math.nan
    assert math.isnan(digits.few_exceed(errors, np.dtype(np.float32)))
