"""Filters of images are those of SciPy in all modes: eager, compiled and batched, and their derivatives are right.

The eager values of concrete images are SciPy's own, so each comparison also runs the operations that transformations
see: by a batch of one image.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage as oracle

import pullback.numpy as jnp
from pullback import grad, jit, vmap
from pullback.core.config import enable_x64
from pullback.errors import ArgumentError, ConcretizationTypeError, DtypeError, ShapeError
from pullback.scipy import ndimage
from pullback.test_util import check_grads
from tests.helpers import EXHAUSTIVE

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant", "grid-wrap")
RNG = np.random.default_rng(0)
X, W, V = RNG.normal(size=(5, 7)), RNG.normal(size=(3, 4)), RNG.normal(size=4)
MASK = np.array([[0, 1, 1], [1, 0, 1]])


@pytest.fixture(autouse=True)
def _doubles(x64: None) -> None:
    """All tests here compute in doubles."""


def agree(name: str, x: Any, *arguments: Any, **options: Any) -> None:
    """Compare a function with SciPy's: eager, and by own operations in a batch of one image."""
    expected = getattr(oracle, name)(x, *arguments, **options)
    function = lambda v: getattr(ndimage, name)(v, *arguments, **options)
    for found in (function(jnp.asarray(x)), vmap(function)(jnp.asarray(x)[None])[0]):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=f"{name} {arguments} {options}")


@pytest.mark.parametrize("mode", MODES)
def test_linear_filters_of_all_modes(mode: str) -> None:
    for origin in (0, -1, 1):
        more = {"mode": mode, "cval": 0.7, "origin": origin}
        for name in ("correlate", "convolve"):
            agree(name, X, W, **more)
            agree(f"{name}1d", X, V, 0, **more)
        agree("uniform_filter", X, (4, 3), **more)
        agree("uniform_filter1d", X, 2, 0, **{**more, "origin": min(origin, 0)})
    more = {"mode": mode, "cval": 0.7}
    agree("gaussian_filter", X, (0.7, 3.0), (2, 1), **more)
    agree("gaussian_filter1d", X, 1.1, 0, 3, **more)
    for name in ("sobel", "prewitt"):
        agree(name, X, 0, **more)
    agree("laplace", X, **more)
    agree("gaussian_laplace", X, 1.1, **more)
    agree("gaussian_gradient_magnitude", X, (1.1, 0.6), **more)


@pytest.mark.parametrize("mode", MODES)
def test_filters_by_order_of_all_modes(mode: str) -> None:
    for origin in (0, (-1, 0)):
        more = {"mode": mode, "cval": 0.7, "origin": origin}
        for kind in ("minimum", "maximum"):
            agree(f"{kind}_filter", X, (2, 4), **more)
            agree(f"{kind}_filter", X, footprint=MASK, **more)
        agree("median_filter", X, (2, 3), **more)
        agree("rank_filter", X, -2, footprint=MASK, **more)
        agree("percentile_filter", X, 70, 3, **more)
        for name in ("grey_erosion", "grey_dilation", "white_tophat"):
            agree(name, X, (2, 4), **more)
            agree(name, X, footprint=MASK, **more)
            agree(name, X, structure=W[:, :3], **more)


def test_morphology_of_images() -> None:
    names = ("grey_opening", "grey_closing", "morphological_gradient", "morphological_laplace", "black_tophat")
    for name in names:
        agree(name, X, (3, 2))
        agree(name, X, footprint=MASK, mode="wrap")
        agree(name, (9 * X).astype(int), structure=np.arange(6).reshape(2, 3), mode="constant", cval=2)
    agree("white_tophat", X > 0, 3)
    agree("black_tophat", X > 0, (1, 3))


def test_windows_wider_than_the_image() -> None:
    small = X[:2, :3]
    for mode in MODES:
        agree("correlate1d", small, np.arange(9.0), mode=mode, cval=1.0)
        agree("gaussian_filter", small, 3.0, mode=mode)
        agree("maximum_filter", small, 7, mode=mode, cval=1.0)
    agree("gaussian_filter", X[:1], 2.0, mode="mirror")


def test_other_dtypes() -> None:
    whole = np.arange(-17, 18).reshape(5, 7)
    for dtype in (np.int32, np.int64, np.float32):
        x = whole.astype(dtype)
        agree("sobel", x)
        agree("median_filter", x, 3)
        agree("maximum_filter1d", x, 3, mode="constant", cval=2.7)
        agree("correlate", x, np.array([[1, 2], [0, -1]]))
        agree("uniform_filter", x, (3, 2))
    agree("gaussian_filter", np.arange(30).reshape(5, 6) ** 2, 1.5)
    agree("correlate", X + 1j * X[::-1], W, mode="wrap")
    agree("convolve", X, W * 1j + 1, mode="nearest")
    agree("correlate1d", X * 1j + 2, V * 1j + 1)
    agree("convolve1d", X, V * 1j + 1)
    agree("maximum_filter", X > 0, 3)
    agree("uniform_filter", whole, 3, output=np.float64)
    half = vmap(lambda v: ndimage.gaussian_filter(v, 1.0))(jnp.asarray(X, "float16")[None])[0]
    assert half.dtype == jnp.float16
    np.testing.assert_allclose(half, oracle.gaussian_filter(X, 1.0), atol=2e-3)


def test_axes() -> None:
    image = RNG.normal(size=(4, 3, 5))
    agree("correlate", image, W, axes=(0, 2))
    agree("convolve", image, V, axes=(1,), origin=-1)
    agree("gaussian_filter", image, (1.0, 2.0), (0, 1), axes=(0, 2), radius=(2, 3), mode=("wrap", "nearest"))
    agree("uniform_filter", image, (2, 3), axes=(2, 1), origin=(0, -1))
    agree("minimum_filter", image, (2, 3), axes=(2, 1))
    agree("maximum_filter", image, footprint=MASK, axes=(0, 2), origin=(0, 1))
    agree("median_filter", image, 3, axes=(0, 1))
    agree("grey_erosion", image, (3, 2), axes=(0, 2))
    agree("laplace", image, axes=(1,))
    agree("gaussian_laplace", image, 1.0, axes=(1, 2))


def test_compiled_filters_are_those_of_concrete_images() -> None:
    def all_of(x: Any) -> list[Any]:
        return [
            ndimage.gaussian_filter(x, 1.5, mode="wrap"), ndimage.uniform_filter(x, 3), ndimage.correlate(x, W),
            ndimage.median_filter(x, 3), ndimage.maximum_filter(x, 3), ndimage.sobel(x, 0, mode="constant"),
            ndimage.correlate(x, np.ones((9, 9)), mode="nearest"), ndimage.grey_dilation(x, structure=W),
        ]  # fmt: skip

    for ours, compiled in zip(all_of(jnp.asarray(X)), jit(all_of)(X), strict=True):
        np.testing.assert_allclose(ours, compiled, rtol=1e-12, atol=1e-12)


def test_generic_derivatives() -> None:
    def second(x: Any, axis: int, output: Any, mode: str, cval: float, *weights: float) -> Any:
        return ndimage.correlate1d(x, np.array(weights), axis, output, mode, cval)

    def theirs(x: Any, axis: int, output: Any, mode: str, cval: float, *weights: float) -> Any:
        return oracle.correlate1d(x, np.array(weights), axis, output, mode, cval)

    more: Any = {"mode": "wrap", "extra_arguments": (1.0, -2.0, 1.0)}
    np.testing.assert_allclose(ndimage.generic_laplace(X, second, **more), oracle.generic_laplace(X, theirs, **more))
    for function in ("sobel", "prewitt"):
        np.testing.assert_allclose(
            ndimage.generic_gradient_magnitude(X, getattr(ndimage, function)),
            oracle.generic_gradient_magnitude(X, getattr(oracle, function)),
        )


DIFFERENTIATED: dict[str, Callable[..., Any]] = {
    "gaussian_filter": lambda x: ndimage.gaussian_filter(x, 2.0, (0, 1)),
    "correlate": lambda x: ndimage.correlate(x, W, origin=-1, mode="mirror"),
    "uniform_filter": lambda x: ndimage.uniform_filter(x, 4, mode="wrap"),
    "sobel": lambda x: ndimage.sobel(x, mode="nearest"),
    "magnitude": lambda x: ndimage.gaussian_gradient_magnitude(x, 1.1),
    "median_filter": lambda x: ndimage.median_filter(x, 3),
    "maximum_filter": lambda x: ndimage.maximum_filter(x, footprint=MASK),
    "grey_opening": lambda x: ndimage.grey_opening(x, structure=W),
    "cval": lambda x, c: ndimage.correlate1d(x, V, mode="constant", cval=c),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives(name: str) -> None:
    arguments = (X, 0.7) if name == "cval" else (X,)
    check_grads(DIFFERENTIATED[name], arguments, order=2 if EXHAUSTIVE else 1)


@pytest.mark.parametrize("mode", MODES[:5])
def test_transposed_correlations(mode: str) -> None:
    """The transpose of the one operation of an eager gradient, and that of the operations that a program has."""
    loss = lambda x: (ndimage.convolve(x, W, mode=mode, origin=-1) ** 3).sum()
    lines = lambda x: (ndimage.correlate1d(x, np.arange(9.0), 0, mode=mode, origin=2) ** 3).sum()
    for f in (loss, lines):
        eager = grad(f)(X)
        np.testing.assert_allclose(vmap(grad(f))(X[None])[0], eager, rtol=1e-12, atol=1e-12)
        check_grads(f, (X,), order=1, modes=["rev"])


def test_derivatives_by_weights_and_widths() -> None:
    order = 2 if EXHAUSTIVE else 1
    check_grads(lambda x, w: ndimage.convolve(x, w, mode="nearest", origin=-1), (X, W), order=order)
    check_grads(lambda s: ndimage.gaussian_filter(X, s, order=(2, 0)), (1.3,), order=order)
    check_grads(lambda s: ndimage.gaussian_filter(X, (s, 2 * s)), (1.3,), order=1)
    check_grads(lambda b: ndimage.grey_dilation(X, structure=b), (W,), order=1)
    compiled = jit(lambda s: ndimage.gaussian_filter(X, s, radius=4))(1.3)
    np.testing.assert_allclose(compiled, oracle.gaussian_filter(X, 1.3, radius=4), rtol=1e-12)


def test_a_gradient_of_zero_has_a_derivative() -> None:
    assert not np.isnan(grad(lambda x: ndimage.gaussian_gradient_magnitude(x, 1.0).sum())(jnp.ones((3, 3)))).any()


def test_numbers_that_are_not_finite() -> None:
    x = np.array([1.0, np.nan, 3.0, 5.0, 4.0, 6.0])
    for function in (lambda v: ndimage.maximum_filter(v, 3), lambda v: ndimage.median_filter(v, 3)):
        for f in (function, jit(function)):
            assert np.isnan(f(x)).tolist() == [True, True, True, False, False, False]
    np.testing.assert_array_equal(np.isnan(ndimage.uniform_filter1d(x, 3)), np.isnan(jit(
        lambda v: ndimage.uniform_filter1d(v, 3))(x)))  # fmt: skip


def test_images_without_elements() -> None:
    empty = jnp.zeros((0, 3))
    for function in (
        lambda v: ndimage.gaussian_filter(v, 1.0), lambda v: ndimage.uniform_filter(v), lambda v: ndimage.sobel(v),
        lambda v: ndimage.maximum_filter(v, 3), lambda v: ndimage.median_filter(v, 3),
        lambda v: ndimage.grey_erosion(v, structure=W),
    ):  # fmt: skip
        assert function(empty).shape == jit(function)(empty).shape == (0, 3)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ndimage.correlate(2.0, W), ShapeError, "correlate takes an image with at least one axis"),
    (lambda: ndimage.correlate(X, V), ShapeError, "weights must be an array of 2 axes with elements"),
    (lambda: ndimage.correlate1d(X, W), ShapeError, "weights must be a non-empty vector"),
    (lambda: ndimage.correlate(X, W, mode="torn"), ArgumentError, "mode must be one of 'reflect'"),
    (lambda: ndimage.correlate(X, W, origin=2), ArgumentError, "the origin of 3 elements must be from -1 to 1, got 2"),
    (lambda: ndimage.correlate(X, W, output=np.zeros(3)), ArgumentError, "output must be a dtype or None"),
    (lambda: ndimage.correlate(X > 0, W), DtypeError, "correlate takes numbers, got Booleans"),
    (lambda: ndimage.correlate(X, W, axes=(0, 0)), ShapeError, "the axes must differ"),
    (lambda: ndimage.correlate(X, W, axes=(1, 0)), ArgumentError, "the axes of a window must increase"),
    (lambda: ndimage.uniform_filter(X, 0), ShapeError, "size must be positive, got 0"),
    (lambda: ndimage.uniform_filter(X, (1, 2, 3)), ShapeError, "size must be one for all axes or a sequence of 2"),
    (lambda: ndimage.uniform_filter(X, cval=V), ShapeError, "cval must be a number"),
    (lambda: ndimage.gaussian_filter(X, -1.0), ArgumentError, "sigma must be positive, got -1"),
    (lambda: ndimage.gaussian_filter(X, np.nan), ArgumentError, "sigma must be finite"),
    (lambda: ndimage.gaussian_filter(X, 1.0, -1), ArgumentError, "order must not be negative"),
    (lambda: ndimage.gaussian_filter(X, 1.0, radius=-1), ArgumentError, "radius must not be negative"),
    (lambda: jit(lambda s: ndimage.gaussian_filter(X, s))(1.0), ConcretizationTypeError, "pass radius"),
    (lambda: ndimage.gaussian_laplace(X, 1.0, width=3), ArgumentError, "the options truncate and radius, got 'width'"),
    (lambda: ndimage.median_filter(X), ArgumentError, "needs a size or a footprint"),
    (lambda: ndimage.median_filter(X, 3, MASK), ArgumentError, "takes a size or a footprint, got both"),
    (lambda: ndimage.median_filter(X, footprint=V), ShapeError, "footprint must have 2 axes and elements"),
    (lambda: ndimage.maximum_filter(X, footprint=np.zeros((2, 2))), ArgumentError, "an element that is true"),
    (lambda: ndimage.rank_filter(X, 9, 3), ArgumentError, "a window of 9 elements has no rank 9"),
    (lambda: ndimage.percentile_filter(X, 101, 3), ArgumentError, "percentile must be from -100 to 100"),
    (lambda: ndimage.maximum_filter(X * 1j, 3), DtypeError, "takes real numbers"),
    (lambda: ndimage.grey_erosion(X), ArgumentError, "needs a size, a footprint or a structure"),
    (lambda: ndimage.grey_erosion(X, structure=V), ShapeError, "structure must have 2 axes"),
    (lambda: ndimage.grey_erosion(X, footprint=MASK, structure=W), ShapeError, "must have the same shape"),
    (lambda: ndimage.generic_laplace(X, None), ArgumentError, "must be a function"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("case", REFUSED, ids=[message for _, _, message in REFUSED])
def test_refusals(case: tuple[Callable[[], Any], type[Exception], str]) -> None:
    call, error, message = case
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_single_precision() -> None:
    with enable_x64(False):
        x = X.astype(np.float32)
        for name, size in itertools.product(("gaussian_filter", "uniform_filter", "median_filter"), (2, 3)):
            found = getattr(ndimage, name)(x, size)
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, getattr(oracle, name)(x, size), rtol=1e-5)
            compiled = jit(lambda v, name=name, size=size: getattr(ndimage, name)(v, size))(x)
            np.testing.assert_allclose(compiled, found, rtol=1e-5, atol=1e-6)


def test_large_integers_are_exact_without_64_bits() -> None:
    """Sums of integers that single precision rounds: compiled and batched code agree with SciPy."""
    x = np.random.default_rng(1).integers(0, 2**32, (9, 11), dtype=np.uint32)
    cases: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda v: ndimage.uniform_filter(v, 3), oracle.uniform_filter(x, 3)),
        (lambda v: ndimage.uniform_filter(v, (4, 3), mode="constant", cval=7.9),
         oracle.uniform_filter(x, (4, 3), mode="constant", cval=7.9)),
        (lambda v: ndimage.convolve1d(v // 8, [1, 2, 3]), oracle.convolve1d(x // 8, [1, 2, 3])),
        (lambda v: ndimage.convolve1d(v // 8, [0.5, 1.25, 0.75]), oracle.convolve1d(x // 8, [0.5, 1.25, 0.75])),
        (lambda v: ndimage.grey_erosion(v // 8, structure=jnp.arange(3).reshape(1, 3)),
         oracle.grey_erosion(x // 8, structure=np.arange(3).reshape(1, 3))),
    ]  # fmt: skip
    with enable_x64(False):
        compiled = jit(lambda v: [f(v) for f, _ in cases])(jnp.asarray(x))
        batched = vmap(lambda v: [f(v) for f, _ in cases])(jnp.asarray(x)[None])
    for (_, expected), first, second in zip(cases, compiled, batched, strict=True):
        assert first.dtype == second.dtype == np.uint32
        np.testing.assert_array_equal(first, expected)
        np.testing.assert_array_equal(second[0], expected)


FAR = [1.5, -1.5, 300.7, -300.7, 7e4, -7e4, 2.0**31, -(2.0**31), 3e9, -3e9, 2.0**32 + 2**10, 1e12, -1e12, 2.0**62, 1e19]
"""Values within and beyond the ranges of integer dtypes."""


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_values_beyond_the_dtype_are_those_of_casts(dtype: Any) -> None:
    """Programs truncate as SciPy does on x86, where C defines no result."""
    x = np.array(FAR, np.float32)
    one = np.ones(1, dtype)
    with enable_x64(np.dtype(dtype).itemsize == 8):
        means = jit(lambda v: ndimage.uniform_filter1d(v, 1, output=dtype))(x)
        sums = jit(vmap(lambda w: ndimage.correlate1d(one, w)))(x[:, None])
    assert means.dtype == sums.dtype == dtype
    if platform.machine() == "x86_64":
        np.testing.assert_array_equal(means, oracle.uniform_filter1d(x, 1, output=dtype))
        assert sums[:, 0].tolist() == [oracle.correlate1d(one, w).item() for w in x[:, None]]
