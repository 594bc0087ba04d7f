"""Elementary functions of many singles by loops in C: right to the last digits, and NumPy's at the edges."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.backends.host import native, own, pending, special
from pullback.core.array import ArrayImpl
from pullback.core.config import override
from tests.helpers import small_blocks, value

pytestmark = [
    pytest.mark.skipif(native.loops is None, reason="the module in C is not installed"),
    pytest.mark.filterwarnings("ignore"),
]

SINGLE = np.dtype(np.float32)
ULPS = {
    "exp": 1.02, "expm1": 1.75, "sinh": 1.65, "cosh": 1.5, "log": 0.95, "log1p": 1.45, "tan": 1.0, "arctan": 1.9,
    "arctan2": 2.0,
}  # fmt: skip
"""The largest errors of functions that are not rounded from double precision, or not everywhere."""
DOMAINS: dict[str, tuple[float, float]] = {
    "exp": (-105, 90), "expm1": (-20, 90), "sinh": (-3, 3), "cosh": (-91, 91), "log": (0.5, 2), "log1p": (-1, 2),
    "tan": (-9e4, 9e4), "arcsin": (-1, 1), "arccos": (-1, 1), "arctan": (-4, 4), "arcsinh": (-2, 2),
    "arccosh": (1, 2), "arctanh": (-1, 1), "cbrt": (-10, 10), "arctan2": (-3, 3), "power": (0, 20),
}  # fmt: skip
EDGES = np.array(
    [
        0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, 3, -3, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 88.72283,
        88.73, -87.5, -103.9, -104, 89.4, -89.4, 1e-20, -1e-20, 1.0000001, 0.99999994, 1e5, 1e6, 16777216, 33554432,
    ],
    np.float32,
)  # fmt: skip


def operands_of(name: str, ufunc: np.ufunc) -> list[Any]:
    """Numbers of all sizes, of the function's domain, and edges in all combinations."""
    rng = np.random.default_rng(0)
    of_any_size = rng.integers(0, 2**32, (ufunc.nin, 200_000), dtype=np.uint32).view(np.float32)
    usual = rng.uniform(*DOMAINS[name], (ufunc.nin, 200_000)).astype(np.float32)
    edges = np.array(list(itertools.product(*[EDGES] * ufunc.nin)), np.float32).T
    return list(np.concatenate([of_any_size, usual, edges], axis=1))


@pytest.mark.parametrize("name", DOMAINS)
def test_results_are_right_to_the_last_digits(name: str) -> None:
    ufunc = getattr(np, name)
    operands = operands_of(name, ufunc)
    got = own.apply(f"{name} f", SINGLE, *operands)
    exact = ufunc(*[x.astype(np.float64) for x in operands])
    expected = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    zeros = (got == 0) & (expected == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))
    finite = np.isfinite(exact) & np.isfinite(got)
    ulps = np.abs(got[finite] - exact[finite]) / np.spacing(np.abs(expected[finite])).astype(np.float64)
    # Next to the largest number a rounding decides between it and infinity.
    assert ((got == expected) | finite | (np.abs(exact) > 3.4028e38))[~np.isnan(got)].all()
    assert ulps[np.isfinite(ulps)].max() < ULPS.get(name, 0.501)


@pytest.mark.parametrize("name", DOMAINS)
def test_an_element_has_the_same_bits_wherever_it_is(name: str) -> None:
    ufunc = getattr(np, name)
    operands = [x[150_000:260_000] for x in operands_of(name, ufunc)]
    everywhere = own.apply(f"{name} f", SINGLE, *operands, helpers=1)
    for part in (slice(5, 6), slice(7, 71), slice(1, 4100), slice(3, None, 5)):
        some = own.apply(f"{name} f", SINGLE, *[np.ascontiguousarray(x[part]) for x in operands])
        assert some.tobytes() == everywhere[part].tobytes()


def rule_of(name: str) -> Any:
    """The function of many numbers, whatever NumPy has on this processor."""
    return own.of_many(getattr(np, name))


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor for which NumPy has none of the functions."""
    monkeypatch.setattr(own, "REPLACED", frozenset(own._ELEMENTARY))


def test_functions_of_two_operands_are_broadcast(everywhere: None) -> None:
    x, y = np.linspace(0.1, 5, 120, dtype=np.float32).reshape(40, 3), np.float32([0.5, -2, 3])
    for name in ("arctan2", "power"):
        f, ufunc = rule_of(name), getattr(np, name)
        for operands in ((x, y), (y, x), (x.T, y[:, None]), (x, np.float32(2.5)), (x, 2.5), (2.5, x), (x[::2], y)):
            got, expected = f(*operands), ufunc(*operands)
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(got, expected, 3e-7)


def test_other_dtypes_are_left_to_numpy(everywhere: None) -> None:
    for dtype in (np.float64, np.float16, np.complex64):
        x = np.linspace(0.1, 0.9, 5000).astype(dtype)
        for name in ("exp", "log1p", "cosh"):
            assert rule_of(name)(x).tobytes() == getattr(np, name)(x).tobytes()
        assert rule_of("power")(x, x).tobytes() == np.power(x, x).tobytes()


@pytest.mark.parametrize("name", ["exp", "log", "expm1", "cosh", "arctan", "arctan2", "power", "logaddexp", "arcsinh"])
def test_pending_elements_have_the_bits_of_those_computed_at_once(name: str) -> None:
    f = getattr(jnp, name)
    operands = [jnp.asarray(x[::97]) for x in operands_of("power" if name == "logaddexp" else name, getattr(np, name))]
    with small_blocks():
        with override("eager_fusion", False):
            expected = np.asarray(f(*operands))
        got = np.asarray(f(*[pending.hold(ArrayImpl(value(x))) for x in operands]))
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("f", [jnp.exp, jnp.log1p, jnp.arctan, lambda x: jnp.arctan2(x, 2 * x + 1), lambda x: x**2.5])
def test_derivatives_of_many_numbers_are_those_of_few(f: Any) -> None:
    x = jnp.linspace(0.1, 2, 6000, dtype=jnp.float32)
    slope = lambda x: pullback.vjp(f, x)[1](jnp.ones_like(x))[0]
    few = np.concatenate([np.asarray(slope(x[i : i + 300])) for i in range(0, 6000, 300)])
    np.testing.assert_allclose(slope(x), few, 1e-6)


def test_numpys_wide_vectors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What NumPy says of its functions decides: those with vectors of 512 bits are quicker than the loops."""
    from numpy.lib import introspect

    said = {
        "exp": {"ff": {"current": "AVX512_SKX", "available": ""}},
        "log": {"ff": {"current": "X86_V4", "available": ""}},
        "tan": {"ff": {"current": "baseline(X86_V2)", "available": "X86_V4"}},
    }  # fmt: skip
    monkeypatch.setattr(introspect, "opt_func_info", lambda **_: said)
    assert own._with_wide_vectors() == {"exp", "log"}
    assert {f for f in own._ELEMENTARY if f.__name__ not in own._WIDE} == own.REPLACED


def test_few_numbers_are_numpys() -> None:
    for function in special.BY_SIZE:
        assert function.least >= 32
    x = np.linspace(0.1, 0.9, 500, dtype=np.float32)
    assert np.asarray(jnp.expm1(x)).tobytes() == np.expm1(x).tobytes()
