"""Registration of two images: the rotation, the scale and the shift between them, found by derivatives.

An image is sampled through a known transform, and noise is added. The transform is found again by least squares of the
differences of the two images, which are smoothed by Gaussians, first wide ones and then narrower ones, so that the
search ends in the right minimum (Thevenaz, Ruttimann and Unser 1998, "A pyramid approach to subpixel registration based
on intensity"). The Jacobian is that of a cubic spline by the coordinates at which it is evaluated; it also yields the
standard deviations. The process ends with a non-zero status if the parameters are not found within five standard
deviations. If matplotlib is installed, the differences before and after are drawn.

    python examples/image_registration.py [registered.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, jacfwd, jit, random
from pullback.scipy import ndimage
from pullback.scipy.optimize import least_squares

SIZE = 64
TRUTH = np.array([0.21, 1.07, 3.4, -2.6])
"""The angle in radians, the scale, and the shift in elements."""
NOISE = 0.01
WIDTHS = (4.0, 1.0)


def scene() -> Array:
    """An image of some blobs."""
    rng = np.random.default_rng(0)
    rows, columns = np.indices((SIZE, SIZE))
    image = np.zeros((SIZE, SIZE))
    for _ in range(12):
        y, x, width = *rng.uniform(14, SIZE - 14, 2), rng.uniform(2.5, 5)
        image += rng.uniform(0.3, 1) * np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * width**2))
    return jnp.asarray(image)


def moved(image: Array, parameters: Array) -> Array:
    """The image after a rotation and a scaling about its middle, and a shift."""
    angle, scale, *shift = parameters
    turn = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]]) / scale
    middle = (SIZE - 1) / 2
    offset = middle - turn @ (middle + jnp.stack(shift))
    return ndimage.affine_transform(image, turn, offset, mode="nearest")


def draw(before: Array, after: Array, path: Path) -> None:
    """The differences of the images before and after the registration, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, panels = pyplot.subplots(1, 2, figsize=(9, 4))
    limit = float(abs(before).max())
    for panel, image, title in zip(panels, (before, after), ("before", "after"), strict=True):
        panel.imshow(image, cmap="RdBu", vmin=-limit, vmax=limit)
        panel.set_title(title)
    pyplot.savefig(path)
    print(f"the differences are drawn in {path}")


def main() -> int:
    """Find the transform, and check it; the exit status is 0 if it is right."""
    image = scene()
    target = moved(image, jnp.asarray(TRUTH)) + NOISE * random.normal(random.key(0), image.shape)
    found = jnp.array([0.0, 1.0, 0.0, 0.0])
    for width in WIDTHS:
        goal = ndimage.gaussian_filter(target, width)
        residuals = jit(lambda p, w=width, g=goal: (ndimage.gaussian_filter(moved(image, p), w) - g).ravel())
        found = least_squares(residuals, found).x
        print(f"after smoothing by {width}: {np.round(found, 4)}")
    sharp = jit(lambda p: (moved(image, p) - target).ravel())
    found = least_squares(sharp, found).x
    jacobian = jacfwd(sharp)(found)
    spread = NOISE * jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian)))
    for name, value, deviation, truth in zip(("angle", "scale", "rows", "columns"), found, spread, TRUTH, strict=True):
        print(f"{name}: {float(value):.5f} +- {float(deviation):.5f}, sampled with {truth}")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "registered.png"
    draw(image - target, moved(image, found) - target, path)
    return 0 if bool((abs(found - TRUTH) < 5 * spread).all()) else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
