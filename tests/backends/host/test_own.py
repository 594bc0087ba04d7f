"""Host rules by the module in C compute the same bits as by NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pullback.backends.host import own, rules, special

EDGES = [-np.inf, -2.5, -0.0, 0.0, 1e-42, 1.5, np.inf, np.nan]
FLOATS = [np.float32, np.float64]


def by_both(monkeypatch: pytest.MonkeyPatch, rule: Any, *operands: Any, calls: bool = True) -> None:
    """Compare a rule with and without the module; ``calls`` is whether it should call a loop of the module."""
    with monkeypatch.context() as patch:
        patch.setattr(rules, "_MANY_CHOICES", 4)
        patch.setattr(own, "MANY", 4)
        used: list[Any] = []
        apply = own.apply

        def recorded(*args: Any) -> Any:
            used.append(apply(*args))
            return used[-1]

        patch.setattr(own, "apply", recorded)
        got = rule(*operands)
        assert any(x is not None for x in used) == (calls and own.loops is not None)
        patch.setattr(own, "loops", None)
        expected = rule(*operands)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes(), (got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rule", [rules.maximum, rules.minimum, rules.max_share, rules.min_share])
def test_extremes(rule: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (a.astype(dtype) for a in np.meshgrid(EDGES, EDGES))
    by_both(monkeypatch, rule, x, y)
    by_both(monkeypatch, rule, x, dtype(0))
    by_both(monkeypatch, rule, x, y[:1], calls=False)
    by_both(monkeypatch, rule, x[:, ::2], y[:, ::2], calls=False)
    by_both(monkeypatch, rule, x.astype(np.float16), y.astype(np.float16), calls=False)


@pytest.mark.parametrize("dtype", FLOATS)
def test_signs(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.tile(np.array(EDGES, dtype), (5, 1))
    by_both(monkeypatch, rules.sign, x)
    by_both(monkeypatch, rules.sign, x.T, calls=False)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, ml_dtypes.bfloat16, np.float32, np.complex64, np.int64])
def test_choices(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.arange(12).reshape(3, 4).astype(dtype), (7 * np.ones((3, 4))).astype(dtype)
    which = np.arange(12).reshape(3, 4) % 3 == 0
    one = np.asarray(1, dtype)
    for operands in ((which, x, y), (which, x, one), (which, one, y), (which, one, one), (which[::-1].copy(), x, y)):
        by_both(monkeypatch, rules.select, *operands)
    by_both(monkeypatch, rules.select, which, x.T.copy().T, y, calls=False)
    by_both(monkeypatch, rules.select, which.T, x.T, y.T, calls=False)


def test_choices_of_wide_elements_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(12.0) * 1j
    by_both(monkeypatch, rules.select, x.imag > 3, x, -x, calls=False)


def test_two_operands_as_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of one shape, and a number beside an array, are not copied; the bits are those of broadcast operands."""
    if np.arctan2 not in own.REPLACED:
        pytest.skip("NumPy computes arc tangents")
    function = own.of_many(np.arctan2)
    x = np.linspace(-2, 3, 1200, dtype=np.float32).reshape(30, 40)
    for y in (np.cos(x), np.float32(1.5), 1.5, -0.0, np.cos(x[:1]), np.cos(x).T.copy().T):
        with monkeypatch.context() as patch:
            if not isinstance(y, np.ndarray) or (y.flags.c_contiguous and y.shape == x.shape):
                patch.setattr(np, "broadcast_arrays", None)
            got = function(x, y)
        wide = np.ascontiguousarray(np.broadcast_to(np.float32(y), x.shape))
        assert got.dtype == np.float32
        assert got.tobytes() == function(x, wide).tobytes()


def test_the_least_arrays_of_two_operands() -> None:
    if np.arctan2 not in own.REPLACED:
        pytest.skip("NumPy computes arc tangents")
    x = np.linspace(-2, 3, own.MANY_PAIRS, dtype=np.float32)
    y = np.cos(x)
    assert special.elementary(np.arctan2)(x, y).tobytes() == own.of_many(np.arctan2)(x, y).tobytes()
    assert special.elementary(np.arctan2)(x[1:], y[1:]).tobytes() == np.arctan2(x[1:], y[1:]).tobytes()
