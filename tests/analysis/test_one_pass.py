"""Formulas in one pass have the bits of NumPy's operations, also where numbers are not finite."""

import numpy as np
import pytest

from pullback.analysis import double_double as dd
from pullback.analysis import one_pass
from pullback.analysis.double_double import Two

RNG = np.random.default_rng(0)
SHAPES = [((700,), (700,)), ((30, 40), (40,)), ((30, 1), (1, 40)), ((6, 7, 8), ()), ((5, 1, 30), (5, 40, 1))]


def _twos(shape, special):
    hi = RNG.standard_normal(shape) * np.exp(RNG.uniform(-30, 30, shape))
    if special and hi.ndim:
        hi.reshape(-1)[:5] = [np.inf, -np.inf, np.nan, 1e307, 0.0]
    with np.errstate(all="ignore"):
        lo = np.where(np.isfinite(hi), hi, 0.0) * 2.0**-54 * RNG.uniform(-1, 1, shape)
    return Two(np.asarray(hi)[()], np.asarray(lo)[()])


@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize(("first", "second"), SHAPES, ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "sub", "square"])
def test_the_bits_are_those_of_numpy(name, first, second, special, monkeypatch) -> None:
    x, y = _twos(first, special), _twos(second, special)
    operands = [x] if name == "square" else [x, y]
    runs: list[tuple] = []
    planned = one_pass._planned
    monkeypatch.setattr(one_pass, "_planned", lambda *args: runs.append(args) or planned(*args))
    with np.errstate(all="ignore"):
        found = getattr(dd, name)(*operands)
        assert runs or x.hi.size < one_pass.SMALLEST
        monkeypatch.setattr(one_pass, "SMALLEST", np.inf)
        expected = getattr(dd, name)(*operands)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
