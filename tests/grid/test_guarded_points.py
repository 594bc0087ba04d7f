"""At points where a derivative rule needs care: gradients are right, and Hessians symmetric, in all orders of modes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from guarded_specs import GUARDED, Guarded

from pullback import jacfwd, jacrev, jit
from pullback.core.array import as_array
from pullback.core.config import enable_x64

MODES = {"forward": jacfwd, "reverse": jacrev}
ORDERS = list(itertools.product(MODES, MODES))


def agree(got: Any, expected: Any, what: str) -> None:
    """Equal numbers, where there is a figure. Beside infinite ones others may be NaN: zero times infinity is."""
    got, expected = np.asarray(got), np.asarray(expected, float)
    infinite = np.isinf(expected)
    excused = np.isnan(expected) | (np.isnan(got) & ((infinite.sum() > infinite) if expected.size > 1 else False))
    np.testing.assert_allclose(got[~excused], expected[~excused], rtol=1e-12, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("row", GUARDED, ids=[row.name for row in GUARDED])
def test_derivatives_at_guarded_points(row: Guarded) -> None:
    def derivatives(x: Any) -> Any:
        first = {mode: jac(row.function)(x) for mode, jac in MODES.items()}
        return first, {(a, b): MODES[a](MODES[b](row.function))(x) for a, b in ORDERS}

    with enable_x64():
        point = as_array(np.array(row.point, float))
        for how, (gradients, hessians) in (("eager", derivatives(point)), ("compiled", jit(derivatives)(point))):
            for mode, gradient in gradients.items():
                agree(gradient, gradients["reverse"] if row.gradient is None else row.gradient, f"{how}, {mode}")
            for order, hessian in hessians.items():
                expected = np.asarray(hessians["forward", "reverse"] if row.hessian is None else row.hessian)
                agree(hessian, expected, f"{how}, {order}")
                np.testing.assert_allclose(expected, expected.T, rtol=1e-12, atol=1e-12)
