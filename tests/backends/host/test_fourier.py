"""Long Fourier transforms in two steps: accuracy, the same bits on any number of threads, and which are divided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.fft

import pullback.numpy as jnp
from pullback import vjp
from pullback.backends.host import fourier, own
from pullback.core.config import override

pytestmark = pytest.mark.skipif(own.loops is None, reason="the module in C is not installed")
SIZES = [1 << 16, 1 << 17, 100_000, 6**7, 7**3 * 13 * 2**5]


def _vector(n: int, dtype: Any) -> Any:
    rng = np.random.default_rng(n)
    return (rng.normal(size=n) + 1j * rng.normal(size=n)).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("is_inverse", [False, True])
def test_errors_are_those_of_pocketfft(is_inverse: bool, n: int) -> None:
    """The error of single precision is known from double precision, that of double precision from long doubles."""
    transform = scipy.fft.ifft if is_inverse else scipy.fft.fft
    kinds = [np.complex64, *[np.complex128] * bool(np.finfo(np.longdouble).eps < 1e-18)]
    for dtype in kinds:
        x = _vector(n, dtype)
        exact = transform(x.astype(np.complex128 if dtype == np.complex64 else np.clongdouble))
        size = np.linalg.norm(exact.astype(np.complex128))
        error, usual = (
            float(np.linalg.norm((v - exact).astype(np.complex128)) / size)
            for v in (fourier.transformed(x, is_inverse), transform(x))
        )
        assert error < 1.5 * usual, (error, usual)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_same_bits_on_any_number_of_threads(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = _vector(100_000, dtype)
    found = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(fourier, "cores", lambda threads=threads: threads)
        monkeypatch.setattr(fourier, "_SHARE", 1)
        found.append(fourier.transformed(x, False))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_roots_of_unity() -> None:
    for shape in ((1, 1), (3, 5), (7, 40), (64, 1025)):
        n = math.prod(shape)
        for is_inverse in (False, True):
            x = np.ones(shape, np.complex128)
            own.loops.turn(x, is_inverse, 2)
            turns = np.outer(*map(np.arange, shape)) % n / n
            np.testing.assert_allclose(x, np.exp((2j if is_inverse else -2j) * np.pi * turns), 0, 2e-15)
    for wrong in (np.ones((2, 2)), np.ones(4, complex), np.ones((4, 4), complex)[:, ::2]):
        with pytest.raises(ValueError, match="complex"):
            own.loops.turn(wrong, False, 0)


def test_which_transforms_are_divided() -> None:
    assert fourier.sides(10**6) == (1000, 1000)
    assert fourier.sides(1 << 17) == (256, 512)
    for n in (1000, 1 << 15, 100_003, 2 * 65_537, 17 * 2**13):
        assert fourier.sides(n) is None
    assert all(math.prod(fourier.sides(n)) == n for n in SIZES)  # type: ignore[arg-type]


def test_a_long_transform_and_its_derivative() -> None:
    with override("enable_x64", True):
        x, ct = _vector(1 << 16, np.complex128), _vector(1 << 16, np.complex128)
        for ours, theirs in ((jnp.fft.fft, np.fft.fft), (jnp.fft.ifft, np.fft.ifft)):
            out, pull = vjp(ours, jnp.asarray(x))
            np.testing.assert_allclose(out, theirs(x), 1e-9, 1e-12)
            np.testing.assert_allclose(pull(jnp.asarray(ct))[0], theirs(ct), 1e-9, 1e-12)
            np.testing.assert_allclose(ours(jnp.asarray(x[None])), theirs(x)[None], 1e-9, 1e-12)
