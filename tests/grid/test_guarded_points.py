"""At points where a derivative rule needs care: gradients are right, and Hessians symmetric, in all orders of modes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from pullback import jacfwd, jacrev, jit
from pullback.core.array import as_array
from pullback.core.config import enable_x64
from tests.grid.guarded_specs import GUARDED
from tests.helpers import spread

MODES = {"forward": jacfwd, "reverse": jacrev}
ORDERS = list(itertools.product(MODES, MODES))


def agree(got: Any, expected: Any, what: str) -> None:
    """Equal numbers, where there is a figure. Beside infinite ones others may be NaN: zero times infinity is."""
    got, expected = np.asarray(got), np.asarray(expected, float)
    infinite = np.isinf(expected)
    excused = np.isnan(expected) | (np.isnan(got) & ((infinite.sum() > infinite) if expected.size > 1 else False))
    np.testing.assert_allclose(got[~excused], expected[~excused], rtol=1e-12, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("index", range(len(GUARDED)), ids=[row.name for row in GUARDED])
def test_derivatives_at_guarded_points(index: int) -> None:
    """Eager in all orders of modes; compiled in one of them, by turns, or in all in the exhaustive run."""
    row = GUARDED[index]

    def derivatives(x: Any, orders: Sequence[tuple[str, str]] = ORDERS) -> Any:
        first = {mode: jac(row.function)(x) for mode, jac in MODES.items()}
        return first, {(a, b): MODES[a](MODES[b](row.function))(x) for a, b in orders}

    with enable_x64():
        point = as_array(np.array(row.point, float))
        eager = derivatives(point)
        gradient_there = eager[0]["reverse"] if row.gradient is None else row.gradient
        hessian_there = np.asarray(eager[1]["forward", "reverse"] if row.hessian is None else row.hessian)
        np.testing.assert_allclose(hessian_there, hessian_there.T, rtol=1e-12, atol=1e-12)
        compiled = jit(partial(derivatives, orders=spread(ORDERS, index, 1)))(point)
        for how, (gradients, hessians) in (("eager", eager), ("compiled", compiled)):
            for mode, gradient in gradients.items():
                agree(gradient, gradient_there, f"{how}, {mode}")
            for order, hessian in hessians.items():
                agree(hessian, hessian_there, f"{how}, {order}")
