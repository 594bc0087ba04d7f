"""Broadcasting on the host, where large results are views."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pullback.core.errors import ShapeError
from pullback.primitives.arrays.shapes import broadcast_in_dim, repeated

LARGE = (70, 1, 90)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex128, ml_dtypes.bfloat16, "datetime64[s]", ">f4"])
def test_large_results_are_numpys_views(dtype: Any) -> None:
    """Of numbers, of arrays with fewer axes or axes of one, and of arrays whose elements are not side by side."""
    whole = np.arange(70 * 90).reshape(70, 90).astype(dtype)
    some = [whole[3, 4], whole[3, 4:5], whole[3], whole[0:1, None], whole[:, None], whole[:, None, :1], whole[3, ::-1]]
    for x in (*some, whole.T.copy().T[:, None]):
        out, expected = repeated(x, LARGE), np.broadcast_to(x, LARGE)
        np.testing.assert_array_equal(out, expected)
        assert out.dtype == expected.dtype
        assert not out.flags.writeable
        assert out.nbytes > x.nbytes or np.shares_memory(out, x)
        assert [s for s, n in zip(out.strides, LARGE, strict=True) if n > 1] == [
            s for s, n in zip(expected.strides, LARGE, strict=True) if n > 1
        ]


@pytest.mark.parametrize("shape", [(3,), (45,), (2, 1, 90), (1, 70, 1, 90)])
def test_what_does_not_fit_is_an_error(shape: tuple[int, ...]) -> None:
    """Also if there is as much memory as a view of that shape would read."""
    with pytest.raises(ValueError, match=r"could not be broadcast|more dimensions"):
        repeated(np.zeros(shape, np.float32), LARGE)
    with pytest.raises(ShapeError, match="does not fit"):
        broadcast_in_dim(np.zeros((8,), np.float32), (5000, 4), (1,))
