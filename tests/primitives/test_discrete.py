"""Operations that are constant almost everywhere: the next float, compiled, is NumPy's for every kind of number."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pullback.numpy as jnp
from pullback import enable_x64, jit


def _numbers(dtype: Any) -> Any:
    """Return numbers of all sizes and signs, with subnormal ones, zeros, infinities and NaN; in random order."""
    integer, limits = np.dtype(f"i{np.dtype(dtype).itemsize}"), ml_dtypes.finfo(dtype)
    some = np.random.default_rng(0).integers(np.iinfo(integer).min, np.iinfo(integer).max, 500, dtype=integer)
    sizes = np.array([0, limits.smallest_subnormal, limits.tiny, limits.max, np.inf, np.nan, 1], dtype)
    with np.errstate(all="ignore"):
        return np.concatenate([some.view(dtype), sizes, -sizes, sizes[1:4] / np.array(2, dtype)])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_the_next_float(dtype: Any) -> None:
    numbers = _numbers(dtype)
    x, y = (a.ravel() for a in np.meshgrid(numbers, numbers[-30:]))
    with enable_x64(True), np.errstate(all="ignore"):
        for a, b in ((x, y), (y, x), (x, x)):
            found, want = np.asarray(jit(jnp.nextafter)(a, b)), np.nextafter(a, b)
            is_nan = want != want  # NaN
            np.testing.assert_array_equal(found != found, is_nan)
            is_nan |= (a == b) & (
                dtype is np.float16
            )  # NumPy's result is then the first operand, in other types the second
            bits = np.dtype(f"i{want.dtype.itemsize}")
            np.testing.assert_array_equal(found.view(bits)[~is_nan], want.view(bits)[~is_nan])
