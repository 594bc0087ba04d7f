"""Fourier transforms: what is refused, laws that the grid cannot say, and sizes that are odd, large, or none."""

import numpy as np
import pytest

import pullback
import pullback.numpy as pnp
from pullback import grad, jit, jvp, lax, vjp, vmap
from pullback.core.errors import DtypeError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
Z = (X + 1j * X[::-1]).astype(np.complex64)
fft = pnp.fft


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fft.fft(X, axis=3), ValueError, "fft: axis 3 is out of bounds for an array of 3 axes"),
        (lambda: fft.fft(X, axis=(0, 1)), ValueError, "fft takes one axis, got .*; use fftn"),
        (lambda: fft.fft(X, 0), ValueError, "at least one point along each axis, got \\(0,\\)"),
        (lambda: fft.fft(X, -3), ValueError, "at least one point"),
        (lambda: fft.fft(X, 2.5), ShapeError, "fft: n must be an int, got 2.5"),
        (lambda: fft.irfft(Z[..., :1]), ValueError, "irfft: a transform needs at least one point"),
        (lambda: fft.fft(X, norm="x"), ValueError, 'fft: norm must be "backward", "ortho", "forward" or None, got'),
        (lambda: fft.hfft(X, norm="x"), ValueError, "hfft: norm must be"),
        (lambda: fft.rfft(Z), DtypeError, "rfft takes real numbers, got c64; use fft"),
        (lambda: fft.ihfft(Z), DtypeError, "takes real numbers"),
        (lambda: fft.fft2(X, axes=(0,)), ValueError, "fft2 takes two axes, got .*; use fftn"),
        (lambda: fft.fft2(X[0, 0]), ValueError, "fft2: axis -2 is out of bounds"),
        (lambda: fft.fftn(X, axes=(0, -3)), ValueError, "the axes must differ"),
        (lambda: fft.fftn(X, s=(2, 3), axes=(0,)), ValueError, "s and axes must have the same length"),
        (lambda: fft.fftn(X, s=(2, 3, 4, 5)), ValueError, "4 sizes, .*, for an array of 3 axes"),
        (lambda: fft.fftn(X, s=3), ShapeError, "s must be a sequence of ints, got 3"),
        (lambda: fft.rfftn(X, axes=()), ValueError, "needs at least one axis"),
        (lambda: fft.fftfreq(0), ValueError, "fftfreq: n must be positive, got 0"),
        (lambda: fft.rfftfreq(2.0), ShapeError, "rfftfreq: n must be an int"),
        (lambda: fft.fftfreq(3, np.ones(2)), ShapeError, "d must be a scalar, got shape \\(2,\\)"),
        (lambda: fft.fftshift(X, 3), ValueError, "fftshift: axis 3 is out of bounds"),
        (lambda: fft.fft([1.0, 2.0]), TypeError, "fft"),
        (lambda: lax.fft(X, "DCT", (5,)), ValueError, "fft_type must be one of FFT, IFFT, RFFT, IRFFT.*got 'DCT'"),
        (lambda: lax.fft(X, 7, (5,)), ValueError, "got 7"),
        (lambda: lax.fft(X, "FFT", (4,)), ValueError, "last axes have sizes \\(4,\\), got shape \\(3, 4, 5\\)"),
        (lambda: lax.fft(Z, "IRFFT", (5,)), ValueError, "kind IRFFT with lengths \\(5,\\) takes .* sizes \\(3,\\)"),
        (lambda: lax.fft(X, "FFT", (1, 3, 4, 5)), ValueError, "4 lengths"),
        (lambda: lax.fft(X, "IRFFT", (8,)), DtypeError, "kind IRFFT takes complex64 or complex128, got f32"),
        (lambda: lax.fft(Z, "RFFT", (5,)), DtypeError, "kind RFFT takes float32 or float64, got c64"),
        (lambda: lax.fft(X.astype(np.float16), "FFT", (5,)), DtypeError, "got f16"),
    ],
)
@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])
def test_what_does_not_fit_is_refused(call, error, message, how):
    with pytest.raises(error, match=message):
        how(call)()


@pytest.mark.parametrize("kind", list(lax.FftType))
def test_kinds_by_name_and_number(kind):
    x, lengths = (Z, (8,)) if kind is lax.FftType.IRFFT else (X, (5,))
    expected = lax.fft(x, kind, lengths)
    for given in (kind.name, kind.name.lower(), kind.value):
        np.testing.assert_array_equal(lax.fft(x, given, lengths), expected)


def test_half_precision_and_integers_are_computed_in_single():
    for dtype in ("float16", "bfloat16", "int8", "bool"):
        x = pnp.array(X[0, 0] > 0).astype(dtype)
        assert fft.fft(x).dtype == np.complex64
        assert fft.irfft(fft.rfft(x), 5).dtype == np.float32


def test_there_and_back_over_many_axes():
    x = np.random.default_rng(1).normal(size=(2, 3, 2, 4, 3, 2, 5)).astype(np.float32)
    for there, back in ((fft.fftn, fft.ifftn), (fft.rfftn, lambda y: fft.irfftn(y, x.shape))):
        for how in (lambda f: f, jit):
            np.testing.assert_allclose(how(lambda x: back(there(x)))(x), x, atol=1e-5)  # noqa: B023


def test_large_primes():
    x = np.random.default_rng(2).normal(size=(2, 1009)).astype(np.float32)
    expected = np.fft.fft(x.astype(np.float64))
    for f in (fft.fft, jit(fft.fft)):
        assert np.abs(f(x) - expected).max() < 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2)])
@pytest.mark.parametrize("mapped", [0, 1, 2, 3])
def test_mapped_along_any_axis(axes, mapped):
    x = np.random.default_rng(3).normal(size=(2, 3, 4, 2)).astype(np.float32)
    f = lambda x: fft.rfftn(x, axes=axes)
    expected = np.stack([f(part) for part in np.moveaxis(x, mapped, 0)])
    for how in (lambda g: g, jit):
        np.testing.assert_allclose(how(vmap(f, in_axes=mapped))(x), expected, atol=1e-5)


def test_a_batch_of_none_has_no_transforms():
    for how in (lambda f: f, jit):
        assert how(fft.rfft)(np.zeros((0, 6))).shape == (0, 4)
        assert how(lambda x: fft.irfftn(x, axes=(1, 2)))(np.zeros((0, 3, 4), np.complex64)).shape == (0, 3, 6)
    assert fft.fftn(X, axes=()).dtype == np.complex64


def test_the_energy_is_kept_and_its_gradient_is_the_signal():
    energy = lambda x: (abs(fft.fftn(x, norm="ortho")) ** 2).sum()
    np.testing.assert_allclose(energy(X), (X**2).sum(), rtol=1e-5)
    for how in (lambda f: f, jit):
        np.testing.assert_allclose(how(grad(energy))(X), 2 * X, rtol=1e-4, atol=1e-5)


def test_a_real_operand_has_a_real_cotangent():
    out, back = vjp(fft.fft, pnp.array(X))
    assert back(out)[0].dtype == np.float32
    _, tangent = jvp(fft.irfft, (pnp.array(Z),), (pnp.array(Z),))
    np.testing.assert_allclose(tangent, np.fft.irfft(Z), atol=1e-5)


def test_convolution_by_the_theorem():
    a, b = X[0, 0], X[1, 1]
    by_fft = lambda a, b: fft.irfft(fft.rfft(a, 9) * fft.rfft(b, 9), 9)
    np.testing.assert_allclose(by_fft(a, b), np.convolve(a, b), atol=1e-5)
    g = jit(grad(lambda a: (by_fft(a, b) ** 2).sum()))(a)
    np.testing.assert_allclose(g, grad(lambda a: (pnp.convolve(a, b) ** 2).sum())(pnp.array(a)), atol=1e-4)


def test_frequencies():
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1), rtol=1e-6)
        np.testing.assert_allclose(fft.rfftfreq(n, 0.1), np.fft.rfftfreq(n, 0.1), rtol=1e-6)
    assert fft.fftfreq(4, dtype="float16").dtype == np.float16
    assert grad(lambda d: fft.fftfreq(4, d)[1])(2.0) == -1 / 16
    assert fft.fftfreq(4, device=pullback.devices()[0]).shape == (4,)


def test_transforms_of_numpy_on_traced_arrays_are_ours():
    np.testing.assert_allclose(grad(lambda x: (abs(np.fft.rfft(x)) ** 2).sum())(pnp.array(X)).shape, X.shape)


SMALL = np.sin(np.arange(9, dtype=np.float32).reshape(3, 3))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: pnp.linalg.inv(fft.fft(x) + 3 * pnp.eye(3)),
        lambda x: pnp.linalg.inv(fft.fft(x.T) + 3 * pnp.eye(3)),
        lambda x: pnp.linalg.inv(fft.irfft(fft.rfft(pnp.linalg.inv(x.T + 2 * pnp.eye(3))), 3)),
        lambda x: pnp.linalg.cholesky(fft.ifft2(fft.fft2(x @ x.T + pnp.eye(3))).real),
        lambda x: pnp.linalg.solve(x + 2 * pnp.eye(3), fft.rfft(x)[:, :1].real),
        lambda x: vmap(lambda y: pnp.linalg.inv(fft.fft(y) + 3 * pnp.eye(3)))(pnp.stack([x, x.T])),
        lambda x: pnp.linalg.svd(fft.fft(x), compute_uv=False),
    ],
)
def test_a_transform_whose_result_lapack_takes(f):
    """Compiled, transforms failed: the compiler had their results column-major, as LAPACK wants its operands."""
    np.testing.assert_allclose(jit(f)(SMALL), f(SMALL), rtol=1e-4, atol=1e-4)
