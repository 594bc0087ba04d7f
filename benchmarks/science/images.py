"""Rows of ``scipy.ndimage``: filters, morphology, splines and transforms of images of 128 by 128 elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.ndimage as oracle

from benchmarks.science.rows import Part, Row
from pullback import numpy as jnp
from pullback.scipy import ndimage

SIDE = 128
ANGLE = 0.3
TURN = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])
WINDOW = np.array([[0.2, -0.3, 0.1], [0.5, 1.0, 0.4], [-0.2, 0.3, 0.6]])


def image(*shape: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes an image."""
    return lambda: (np.random.default_rng(0).standard_normal(shape),)


def with_window(*shape: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes an image and the weights of a window."""
    return lambda: (*image(*shape)(), WINDOW)


def with_points(*shape: int) -> Callable[[], Sequence[Any]]:
    """Return the function that makes an image and as many points among its elements."""

    def make() -> Sequence[Any]:
        (values,) = image(*shape)()
        limits = np.array(shape).reshape(2, 1, 1) - 1.5
        return values, np.random.default_rng(1).uniform(0.5, 1.0, (2, *shape)) * limits

    return make


def of_image(name: str, signature: str, call: Callable[..., Any], make: Callable[..., Any] = image, **more: Any) -> Row:
    """Return a row of a function of a module, an image, and more arrays."""
    return Row(
        f"scipy.ndimage.{name}", signature, lambda *a: call(ndimage, *a), lambda *a: call(oracle, *a),
        make(5, 6), make(SIDE, SIDE), **more,
    )  # fmt: skip


def at_points(module: Any, x: Any, points: Any) -> Any:
    """The values of an image at points, by cubic splines; ours has JAX's modes."""
    options = {"scipy_modes": True} if module is ndimage else {}
    return module.map_coordinates(x, points, order=3, mode="mirror", **options)


def centre(module: Any, x: Any) -> Any:
    """The mean position of the elements of an image, which are made positive, as an array."""
    out = module.center_of_mass(2 + x * x)
    return np.array(out) if module is oracle else jnp.stack(out)


MORPHOLOGY = "(input, size, footprint, structure, output, mode, cval, origin, *, axes)"
FILTER = "(input, size, footprint, output, mode, cval, origin, *, axes)"
SMOOTH = "(input, sigma, order, output, mode, cval, truncate, *, radius, axes)"

PART = Part(
    "Images",
    "`scipy.ndimage`. [Images](images.md) describes it. Images have 128 by 128 elements, and windows 3 by 3.\n"
    "Eagerly most values are SciPy's own.",
    (
        of_image("convolve", "(input, weights, output, mode, cval, origin, *, axes)", lambda m, x, w: m.convolve(x, w),
                 with_window),
        of_image("correlate1d", "(input, weights, axis, output, mode, cval, origin)",
                 lambda m, x: m.correlate1d(x, WINDOW[0])),
        of_image("gaussian_filter", SMOOTH, lambda m, x: m.gaussian_filter(x, 1.5)),
        of_image("uniform_filter", "(input, size, output, mode, cval, origin, *, axes)",
                 lambda m, x: m.uniform_filter(x, 3)),
        of_image("sobel", "(input, axis, output, mode, cval)", lambda m, x: m.sobel(x)),
        of_image("laplace", "(input, output, mode, cval, *, axes)", lambda m, x: m.laplace(x)),
        of_image("gaussian_gradient_magnitude", "(input, sigma, output, mode, cval, *, axes, **kwargs)",
                 lambda m, x: m.gaussian_gradient_magnitude(x, 1.0)),
        of_image("maximum_filter", FILTER, lambda m, x: m.maximum_filter(x, 3),
                 note="second derivatives of filters by order are zero."),
        of_image("median_filter", FILTER, lambda m, x: m.median_filter(x, 3)),
        of_image("grey_dilation", "(input, size, footprint, structure, output, mode, cval, origin, *, axes)",
                 lambda m, x: m.grey_dilation(x, 3)),
        of_image("spline_filter", "(input, order, output, mode)", lambda m, x: m.spline_filter(x)),
        of_image("map_coordinates", "(input, coordinates, order, mode, cval, *, output, prefilter, scipy_modes)",
                 at_points, with_points, note="cubic, at as many points as the image has elements."),
        of_image("affine_transform", "(input, matrix, offset, output_shape, output, order, mode, cval, prefilter)",
                 lambda m, x: m.affine_transform(x, TURN, mode="nearest")),
        of_image("rotate", "(input, angle, axes, reshape, output, order, mode, cval, prefilter)",
                 lambda m, x: m.rotate(x, 20.0)),
        of_image("shift", "(input, shift, output, order, mode, cval, prefilter)", lambda m, x: m.shift(x, (0.3, 1.4))),
        of_image("zoom", "(input, zoom, output, order, mode, cval, prefilter, *, grid_mode)",
                 lambda m, x: m.zoom(x, 1.5)),
        of_image("convolve1d", "(input, weights, axis, output, mode, cval, origin)",
                 lambda m, x: m.convolve1d(x, WINDOW[0])),
        of_image("correlate", "(input, weights, output, mode, cval, origin, *, axes)",
                 lambda m, x, w: m.correlate(x, w), with_window),
        of_image("gaussian_filter1d", "(input, sigma, axis, order, output, mode, cval, truncate, *, radius)",
                 lambda m, x: m.gaussian_filter1d(x, 1.5)),
        of_image("uniform_filter1d", "(input, size, axis, output, mode, cval, origin)",
                 lambda m, x: m.uniform_filter1d(x, 3)),
        of_image("prewitt", "(input, axis, output, mode, cval)", lambda m, x: m.prewitt(x)),
        of_image("gaussian_laplace", "(input, sigma, output, mode, cval, *, axes, **kwargs)",
                 lambda m, x: m.gaussian_laplace(x, 1.0)),
        of_image("generic_laplace",
                 "(input, derivative2, output, mode, cval, extra_arguments, extra_keywords, *, axes)",
                 lambda m, x: m.generic_laplace(x, m.sobel)),
        of_image("generic_gradient_magnitude",
                 "(input, derivative, output, mode, cval, extra_arguments, extra_keywords, *, axes)",
                 lambda m, x: m.generic_gradient_magnitude(x, m.sobel)),
        of_image("minimum_filter", FILTER, lambda m, x: m.minimum_filter(x, 3)),
        of_image("minimum_filter1d", "(input, size, axis, output, mode, cval, origin)",
                 lambda m, x: m.minimum_filter1d(x, 3)),
        of_image("maximum_filter1d", "(input, size, axis, output, mode, cval, origin)",
                 lambda m, x: m.maximum_filter1d(x, 3)),
        of_image("rank_filter", "(input, rank, size, footprint, output, mode, cval, origin, *, axes)",
                 lambda m, x: m.rank_filter(x, 2, 3)),
        of_image("percentile_filter", "(input, percentile, size, footprint, output, mode, cval, origin, *, axes)",
                 lambda m, x: m.percentile_filter(x, 30, 3)),
        *(of_image(name, MORPHOLOGY, lambda m, x, name=name: getattr(m, name)(x, 3)) for name in (
            "grey_erosion", "grey_opening", "grey_closing", "morphological_gradient", "morphological_laplace",
            "white_tophat", "black_tophat",
        )),
        of_image("spline_filter1d", "(input, order, axis, output, mode)", lambda m, x: m.spline_filter1d(x)),
        *(of_image(name, "(input, labels, index)", lambda m, x, name=name: getattr(m, name)(x)) for name in (
            "sum_labels", "mean", "standard_deviation", "maximum", "minimum",
        )),
        of_image("center_of_mass", "(input, labels, index)", centre),
        of_image("variance", "(input, labels, index)", lambda m, x: m.variance(x)),
    ),
)  # fmt: skip
