"""Splines of images and geometric transforms agree with SciPy's in all modes and orders, and with differences.

The eager values of concrete images are SciPy's own, so each comparison also runs the operations that transformations
see: by a batch of one image.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage as oracle

import pullback.numpy as jnp
from pullback import enable_x64, grad, jit, vmap
from pullback.errors import ArgumentError, ConcretizationTypeError, ShapeError, UnsupportedArgumentError
from pullback.scipy import ndimage
from pullback.test_util import check_grads
from tests.helpers import EXHAUSTIVE

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant", "grid-wrap")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 27))
SMALL = X[:6, :5]
MATRIX = np.array([[0.9, 0.31], [-0.253, 1.1]])
POINTS = RNG.uniform(-40, 70, (2, 50))
POINTS[:, :4] = [[0, 29, -29, 58], [26, 0, 52, -26]]
POINTS[:, 4:7] = [[-0.5, 0.5, 3.0], [25.5, -0.5, -1.0]]


@pytest.fixture(autouse=True)
def _doubles(x64: None) -> None:
    """All tests here compute in doubles."""


def agree(name: str, x: Any, *arguments: Any, ours: Any = None, **options: Any) -> None:
    """Compare a function with SciPy's: eager, and by own operations in a batch of one image."""
    expected = getattr(oracle, name)(x, *arguments, **options)
    function = lambda v: getattr(ndimage, name)(v, *arguments, **options, **(ours or {}))
    for found in (function(jnp.asarray(x)), vmap(function)(jnp.asarray(x)[None])[0]):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=f"{name} {arguments} {options}")


@pytest.mark.parametrize("mode", MODES)
def test_all_modes_and_orders(mode: str) -> None:
    for order in range(6):
        more: Any = {"order": order, "mode": mode, "cval": 0.7}
        agree("map_coordinates", X, ours={"scipy_modes": True}, coordinates=POINTS, **more)
        agree("affine_transform", X, MATRIX, (1.03, -2.07), (20, 25), **more)
        agree("shift", X, (1.3, -2.7), **more)
        agree("zoom", X, (1.3, 0.7), **more)
        if order > 1:
            agree("spline_filter1d", X, order, 0, mode=mode)
    more = {"order": 3, "mode": mode, "cval": 0.7}
    agree("map_coordinates", X, ours={"scipy_modes": True}, coordinates=POINTS, prefilter=False, **more)
    agree("affine_transform", X, np.array([0.7, 1.3]), (1.0, -2.0), **more)
    agree("rotate", X, 33.0, **more)
    agree("rotate", X, 90.0, **more)
    agree("rotate", X, -200.0, reshape=False, **more)
    if mode not in ("constant", "wrap"):
        agree("zoom", X, (1.3, 0.7), grid_mode=True, **more)


def test_modes_of_jax_are_those_of_scipy_by_other_names() -> None:
    for (mode, theirs), order in itertools.product((("constant", "grid-constant"), ("wrap", "grid-wrap")), (1, 3)):
        found = ndimage.map_coordinates(X, POINTS, order, mode, 0.7)
        expected = oracle.map_coordinates(X, POINTS, order=order, mode=theirs, cval=0.7)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    halves = [np.array([-0.5, 0.5, 1.5])]
    values = jnp.array([1.0, 2.0, 3.0])
    assert ndimage.map_coordinates(values, halves, 0).tolist() == [0.0, 2.0, 3.0]
    assert jit(lambda p: ndimage.map_coordinates(values, p, 0))(halves).tolist() == [0.0, 2.0, 3.0]
    assert ndimage.map_coordinates(values, halves, 0, "nearest", scipy_modes=True).tolist() == [1.0, 2.0, 3.0]


def test_planes_shapes_and_dtypes() -> None:
    image = RNG.normal(size=(26, 3, 28))
    agree("rotate", image, 20.0, axes=(0, 2))
    agree("affine_transform", X, np.array([[0.9], [0.3]]), (1.0, 2.0), (20,))
    agree("affine_transform", X, np.array([[0.9, 0.1, 2.0], [0.3, 1.0, 1.0], [0.0, 0.0, 1.0]]))
    agree("geometric_transform", X, lambda o: (o[0] * 0.9 + 1, o[1] + 0.05 * o[0]), order=2)
    agree("geometric_transform", X, lambda o, s: (o[0] * s, o[0]), (7,), extra_arguments=(0.5,), mode="nearest")
    agree("shift", X * 1j + 1, (0.3, 0.2))
    agree("rotate", (30 * X).astype(int), 10.0)
    agree("zoom", X.astype(np.float32), 1.0)
    agree("spline_filter", X, 4, mode="grid-wrap")
    assert ndimage.shift(X > 0, (1, 0), order=0).dtype == bool


def test_the_last_element_stays_where_scipy_rounds_past_it() -> None:
    image = np.arange(28.0) + 1
    found = ndimage.zoom(image, 0.5, order=1)
    assert oracle.zoom(image, 0.5, order=1)[-1] == 0.0
    np.testing.assert_allclose(found, np.linspace(1, 28, 14), rtol=1e-12)


def test_short_axes() -> None:
    """SciPy's recursion starts from rounded sums there; a spline passes through its elements."""
    at = np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0), indexing="ij"))
    for order, mode in itertools.product((2, 3, 4, 5), ("reflect", "mirror", "grid-wrap")):
        found = ndimage.map_coordinates(SMALL, at, order, mode)
        np.testing.assert_allclose(found, SMALL, rtol=1e-10, atol=1e-10)


DIFFERENTIATED: dict[str, tuple[Callable[..., Any], Any]] = {
    **{
        f"spline_filter, {mode}": (lambda x, mode=mode: ndimage.spline_filter(x, 5, mode=mode), ())
        for mode in ("mirror", "reflect", "grid-wrap")
    },
    "map_coordinates": (
        lambda x, p: ndimage.map_coordinates(x, p, 5, "nearest"), (np.array([[0.3, 2.2], [3.3, 1.1]]),)
    ),
    "affine_transform": (
        lambda x, a, b: ndimage.affine_transform(x, a, b, mode="reflect", order=4), (MATRIX, np.array([0.31, 0.22]))
    ),
    "a diagonal": (lambda x, a: ndimage.affine_transform(x, a, 0.1), (np.array([0.8, 0.7]),)),
    "shift": (lambda x, s: ndimage.shift(x, s, mode="grid-wrap"), (np.array([0.3, -1.2]),)),
    "zoom": (lambda x: ndimage.zoom(x, 1.7), ()),
    "rotate": (lambda x, a: ndimage.rotate(x, a), (25.0,)),
    "geometric_transform": (
        lambda x, p: ndimage.geometric_transform(x, lambda o: (o[0] * p + 0.1, o[1] - 0.2)), (0.9,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives(name: str) -> None:
    function, more = DIFFERENTIATED[name]
    check_grads(function, (SMALL, *more), order=2 if EXHAUSTIVE else 1)


def test_compiled_gradients_are_eager_ones() -> None:
    loss = lambda x, a: (ndimage.rotate(x, a, reshape=False, mode="nearest") ** 3).sum()
    for ours, compiled in zip(grad(loss, (0, 1))(SMALL, 20.0), jit(grad(loss, (0, 1)))(SMALL, 20.0), strict=True):
        np.testing.assert_allclose(ours, compiled, rtol=1e-9, atol=1e-9)


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ndimage.shift(X, 1.0, order=6), UnsupportedArgumentError, "the order of a spline must be from 0 to 5"),
    (lambda: ndimage.shift(X, 1.0, mode="torn"), UnsupportedArgumentError, "mode must be one of"),
    (lambda: ndimage.shift(X, (1.0, 2.0, 3.0)), ShapeError, "shift must be a number or 2 numbers"),
    (lambda: ndimage.shift(np.zeros((0, 2)), 1.0), ShapeError, "takes a non-empty image"),
    (lambda: ndimage.spline_filter(X, 1), ArgumentError, "the order must be from 2 to 5"),
    (lambda: ndimage.zoom(X, 0.0), ArgumentError, "zoom must be positive"),
    (lambda: jit(lambda z: ndimage.zoom(X, z))(2.0), ConcretizationTypeError, "a real number that is known"),
    (lambda: ndimage.affine_transform(X, np.eye(4)), ShapeError, "matrix must have 2 rows"),
    (lambda: ndimage.affine_transform(X, np.ones((3, 3))), ArgumentError, "the last row of a homogeneous matrix"),
    (lambda: ndimage.affine_transform(X, MATRIX, output_shape=(3,)), ShapeError, "the result must have 2 axes"),
    (lambda: ndimage.affine_transform(X, MATRIX, np.ones(3)), ShapeError, "offset must be a number or 2 numbers"),
    (lambda: ndimage.rotate(X[0], 10.0), ShapeError, "an image of at least 2 axes"),
    (lambda: ndimage.rotate(X, 10.0, (1, 1)), ShapeError, "the two axes must differ"),
    (lambda: jit(lambda a: ndimage.rotate(X, a))(1.0), ConcretizationTypeError, "pass reshape=False"),
    (lambda: ndimage.geometric_transform(X, lambda o: (o[0],)), ShapeError, "must return 2 coordinates, got 1"),
    (lambda: ndimage.geometric_transform(X, 3), ArgumentError, "mapping must be a function"),  # type: ignore[arg-type]
    (lambda: ndimage.map_coordinates(X, POINTS, 1, scipy_modes=1), ArgumentError, "must be True or False"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("case", REFUSED, ids=[message for _, _, message in REFUSED])
def test_refusals(case: tuple[Callable[[], Any], type[Exception], str]) -> None:
    call, error, message = case
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_large_integers_without_64_bits() -> None:
    """Programs compute coordinates and values in doubles, as SciPy does."""
    x = np.random.default_rng(1).integers(0, 2**32, (9, 11), dtype=np.uint32)
    a = np.array([[0.9, 0.2], [-0.3, 1.1]], np.float32)
    b = np.array([0.37, 0.81], np.float32)
    transforms: list[Callable[..., Any]] = [
        lambda m, x, a, b: m.affine_transform(x, a, b),
        lambda m, x, a, b: m.affine_transform(x, a[0], b, mode="nearest"),
        lambda m, x, a, b: m.shift(x, b, order=1, mode="mirror"),
        lambda m, x, a, b: m.rotate(x, b[0] * 64, reshape=False),
        lambda m, x, a, b: m.zoom(x, 1.7),
    ]
    with enable_x64(False):
        compiled = jit(lambda *given: [f(ndimage, *given) for f in transforms])(x, a, b)
        batched = vmap(lambda *given: [f(ndimage, *given) for f in transforms])(x[None], a[None], b[None])
    for f, first, second in zip(transforms, compiled, batched, strict=True):
        expected = f(oracle, x, a.astype(float), b.astype(float))
        assert first.dtype == second.dtype == np.uint32
        np.testing.assert_array_equal(first, expected)
        np.testing.assert_array_equal(second[0], expected)


def test_derivatives_of_transformed_integers_without_64_bits() -> None:
    x = np.random.default_rng(1).integers(0, 9, (6, 7), dtype=np.int32)
    weights = np.random.default_rng(2).normal(size=x.shape)
    loss = lambda v, s: (ndimage.shift(v, s, output=float, mode="mirror") * weights).sum()
    s = np.array([0.3, -0.6])
    with enable_x64(False):
        found = [jit(grad(lambda t: loss(jnp.asarray(x), t)))(s), grad(lambda t: loss(jnp.asarray(x), t))(s)]
    expected = grad(lambda t: loss(jnp.asarray(x, float), t))(s)
    for slope in found:
        assert slope.dtype == np.float32
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-5)
