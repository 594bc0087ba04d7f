"""Results of SciPy's become arrays: without a copy if nobody else holds their memory."""

from __future__ import annotations

import numpy as np

from pullback.core.array import host_value
from pullback.scipy.arguments import of_own_memory


def test_only_memory_that_nobody_else_holds_is_not_copied() -> None:
    whole = np.ones((3, 4), np.float32)
    assert np.shares_memory(host_value(of_own_memory(whole)), whole)
    for part in (whole[:2], whole.T, whole[:, ::2], np.ones(3)):
        assert not np.shares_memory(host_value(of_own_memory(part)), part)
        np.testing.assert_array_equal(of_own_memory(part), part)
