"""Boolean images, regions and measurements agree with SciPy's, eager and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage as oracle

import pullback.numpy as jnp
from pullback import grad, jit, vmap
from pullback.errors import ArgumentError, ConcretizationTypeError, DtypeError, ShapeError
from pullback.scipy import ndimage
from pullback.test_util import check_grads
from tests.helpers import EXHAUSTIVE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 7))
IMAGE = RNG.uniform(size=(8, 9)) > 0.35
L_SHAPE = np.array([[1, 0], [1, 1], [0, 1]])
LABELS = RNG.integers(0, 4, (6, 7))
INDEX = np.array([3, 1, 7])


@pytest.fixture(autouse=True)
def _doubles(x64: None) -> None:
    """All tests here compute in doubles."""


def agree(name: str, x: Any, *arguments: Any, **options: Any) -> None:
    """Compare a function with SciPy's: eager, and by own operations in a batch of one image."""
    expected = getattr(oracle, name)(x, *arguments, **options)
    function = lambda v: getattr(ndimage, name)(v, *arguments, **options)
    for found in (function(jnp.asarray(x)), vmap(function)(jnp.asarray(x)[None])[0]):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"{name} {arguments} {options}")


def test_erosions_and_dilations() -> None:
    for name in ("binary_erosion", "binary_dilation", "binary_opening", "binary_closing"):
        for border in (0, 1):
            agree(name, IMAGE, border_value=border)
            agree(name, IMAGE, structure=L_SHAPE, origin=(-1, 0), border_value=border)
            agree(name, IMAGE, iterations=2, border_value=border)
        agree(name, IMAGE.astype(int), mask=IMAGE[::-1])
    agree("binary_erosion", IMAGE, iterations=-1, mask=np.arange(9) > 2 + 0 * IMAGE)
    agree("binary_dilation", IMAGE[:, :1] & (np.arange(9) < 1), iterations=0, mask=IMAGE)
    agree("binary_dilation", IMAGE, axes=(1,))


def test_regions_that_grow() -> None:
    ring = np.zeros((7, 7), bool)
    ring[1:6, 1:6], ring[2:5, 2:5] = True, False
    agree("binary_fill_holes", ring)
    agree("binary_fill_holes", ring, structure=np.ones((5, 5)))
    agree("binary_propagation", IMAGE & (np.arange(9) == 4), mask=IMAGE)
    agree("binary_propagation", IMAGE & (np.arange(9) == 4), np.ones((3, 3)), IMAGE)
    agree("binary_hit_or_miss", IMAGE)
    agree("binary_hit_or_miss", IMAGE, L_SHAPE, np.array([[0, 1], [0, 0], [1, 0]]))
    np.testing.assert_array_equal(jit(ndimage.binary_fill_holes)(ring), oracle.binary_fill_holes(ring))


def test_structures() -> None:
    for rank in range(4):
        for connectivity in range(4):
            found = ndimage.generate_binary_structure(rank, connectivity)
            np.testing.assert_array_equal(found, oracle.generate_binary_structure(rank, connectivity))
    for count in (2, 3):
        ours, theirs = (m.iterate_structure(L_SHAPE, count, (0, -1)) for m in (ndimage, oracle))
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1] == theirs[1]


def test_distances() -> None:
    for sampling in (None, 0.5, (1.0, 2.0)):
        ours = ndimage.distance_transform_edt(IMAGE, sampling, return_indices=True)
        theirs = oracle.distance_transform_edt(IMAGE, sampling, return_indices=True)
        compiled = jit(lambda v, s=sampling: ndimage.distance_transform_edt(v, s, return_indices=True))(IMAGE)
        for a, b, c in zip(ours, theirs, compiled, strict=True):
            np.testing.assert_allclose(a, b)
            np.testing.assert_allclose(c, b)
    batched = vmap(ndimage.distance_transform_edt)(np.stack([IMAGE, IMAGE[::-1]]))
    np.testing.assert_allclose(batched[1], oracle.distance_transform_edt(IMAGE[::-1]))
    assert not grad(lambda v: ndimage.distance_transform_edt(v).sum())(X).any()


def test_labels() -> None:
    for structure in (None, np.ones((3, 3))):
        expected, count = oracle.label(IMAGE, structure)
        labels, found = ndimage.label(IMAGE, structure)
        np.testing.assert_array_equal(labels, expected)
        assert found == count
        assert type(found) is int
        labels, traced = jit(lambda v, s=structure: ndimage.label(v, s))(IMAGE)
        np.testing.assert_array_equal(labels, expected)
        assert int(traced) == count
    assert ndimage.find_objects(labels) == oracle.find_objects(expected)
    assert ndimage.find_objects(np.array([0, 2, 2]), 1) == [None]


MEASURES = ("sum_labels", "mean", "variance", "standard_deviation", "minimum", "maximum")


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_measurements(name: str) -> None:
    ours, theirs = getattr(ndimage, name), getattr(oracle, name)
    for labels, index in ((None, None), (LABELS, None), (LABELS, 2), (LABELS, INDEX), (LABELS, [[1, 2], [2, 0]])):
        with np.errstate(all="ignore"):
            expected = np.asarray(theirs(X, labels, index))
        f = lambda x, labels=labels, index=index: ours(x, labels, None if index is None else np.asarray(index))
        for found in (f(X), vmap(f)(X[None])[0]):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    f = lambda x: ours(x, LABELS, np.array([3, 1, 2]))
    check_grads(f, (X,), order=2 if EXHAUSTIVE else 1)
    whole = (9 * X).astype(int)
    np.testing.assert_allclose(ours(whole, LABELS, [1, 2]), theirs(whole, LABELS, [1, 2]))


def test_positions_and_extremes() -> None:
    distinct = abs(X) + 1  # which of equal elements SciPy names depends on its sort
    for labels, index in ((None, None), (LABELS, None), (LABELS, 2), (LABELS, [3, 1])):
        for name in ("minimum_position", "maximum_position", "center_of_mass", "extrema"):
            ours, theirs = (getattr(m, name)(distinct, labels, index) for m in (ndimage, oracle))
            np.testing.assert_allclose(_flat(ours), _flat(theirs), rtol=1e-12)
    compiled = jit(lambda x: ndimage.extrema(x, LABELS, np.array([3, 1])))(distinct)
    np.testing.assert_allclose(_flat(compiled), _flat(oracle.extrema(distinct, LABELS, [3, 1])))
    check_grads(
        lambda x: ndimage.center_of_mass(x, LABELS, np.array([1, 2]))[1], (abs(X),), order=2 if EXHAUSTIVE else 1
    )


def _flat(result: Any) -> list[float]:
    if isinstance(result, (tuple, list)):
        return [v for item in result for v in _flat(item)]
    return [float(v) for v in np.ravel(np.asarray(result))]


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ndimage.binary_erosion(IMAGE, np.ones(3)), ShapeError, "structure must have 2 axes and elements"),
    (lambda: ndimage.binary_erosion(IMAGE, mask=X), ShapeError, "mask must have the shape of the image"),
    (lambda: ndimage.binary_erosion(IMAGE, origin=2), ArgumentError, "the origin of 3 elements"),
    (lambda: ndimage.distance_transform_edt(IMAGE, return_distances=False), ArgumentError, "must be True"),
    (lambda: ndimage.distance_transform_edt(np.zeros((0, 2))), ShapeError, "takes a non-empty image"),
    (lambda: ndimage.label(IMAGE, np.ones((2, 2))), ShapeError, "structure must have shape (3, 3)"),
    (lambda: ndimage.label(IMAGE, [[1, 0, 0], [0, 1, 0], [0, 0, 0]]), ArgumentError, "must be symmetric"),
    (lambda: jit(lambda v: ndimage.find_objects(v))(LABELS), ConcretizationTypeError, "the labels are traced"),
    (lambda: ndimage.find_objects(X), DtypeError, "takes an array of integers"),
    (lambda: ndimage.sum_labels(X, index=[1]), ArgumentError, "index needs labels"),
    (lambda: ndimage.sum_labels(X, np.ones(3)), ShapeError, "labels must broadcast to the shape"),
    (lambda: jit(lambda i: ndimage.sum_labels(X, LABELS, i))(1), ArgumentError, "index must not be traced"),
    (lambda: ndimage.maximum(np.zeros(0)), ShapeError, "takes a non-empty image"),
]


@pytest.mark.parametrize("case", REFUSED, ids=[message for _, _, message in REFUSED])
def test_refusals(case: tuple[Callable[[], Any], type[Exception], str]) -> None:
    call, error, message = case
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
