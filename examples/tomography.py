"""Tomography: an image from its projections in many directions, by regularised least squares.

A projection is the sum of the rotated image along its columns, a linear function of the image (Natterer 2001, *The
Mathematics of Computerized Tomography*). Its transpose, which smears projections back over the image, is derived by
`linear_transpose`. The image of which the projections are nearest to noisy ones, with a penalty on the differences of
neighbours, solves linear equations, by conjugate gradients. The process ends with a non-zero status if the transpose
is none, if the gradient of the sum of squares is not zero at the solution, or if the solution is far from the image.
If matplotlib is installed, the image, its projections and the solution are drawn.

    python examples/tomography.py [tomography.png]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import pullback.numpy as jnp
from pullback import Array, enable_x64, grad, jit, linear_transpose, random, vmap
from pullback.scipy import ndimage
from pullback.scipy.sparse.linalg import cg

SIZE, NOISE, PENALTY = 40, 0.2, 0.3
ANGLES = jnp.arange(0.0, 180.0, 6.0)


def phantom() -> Array:
    """An image of ellipses, some within others."""
    rows, columns = (np.indices((SIZE, SIZE)) - (SIZE - 1) / 2) / (SIZE / 2)
    image = np.zeros((SIZE, SIZE))
    for height, y, x, tall, wide in ((1, 0, 0, 0.8, 0.6), (-0.4, 0, 0.25, 0.3, 0.15), (0.5, -0.3, -0.2, 0.15, 0.2)):
        image[((rows - y) / tall) ** 2 + ((columns - x) / wide) ** 2 < 1] += height
    return jnp.asarray(image)


def projections(image: Array) -> Array:
    """The sums of the image along its columns, after rotations by all angles."""
    return vmap(lambda angle: ndimage.rotate(image, angle, reshape=False, order=1).sum(0))(ANGLES)


def roughness(image: Array) -> Array:
    """Half of the sum of the squares of the differences of neighbours."""
    return 0.5 * (jnp.sum(jnp.diff(image, axis=0) ** 2) + jnp.sum(jnp.diff(image, axis=1) ** 2))


def draw(images: dict[str, Array], path: Path) -> None:
    """Images beside each other, as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, panels = pyplot.subplots(1, len(images), figsize=(4 * len(images), 4))
    for panel, (title, image) in zip(panels, images.items(), strict=True):
        panel.imshow(image, cmap="gray", aspect="auto")
        panel.set_title(title)
    pyplot.savefig(path)
    print(f"the images are drawn in {path}")


def main() -> int:
    """Find the image from its projections, and check it; the exit status is 0 if it is right."""
    image = phantom()
    forward = jit(projections)
    backward = jit(lambda ct: linear_transpose(projections, image)(ct)[0])
    exact = forward(image)
    data = exact + NOISE * random.normal(random.key(0), exact.shape)
    gap = float(abs(jnp.vdot(exact, data) - jnp.vdot(image, backward(data))) / jnp.vdot(exact, data))
    print(f"{len(ANGLES)} projections of {SIZE} sums; both sides of the transpose differ by {gap:.0e} of them")

    normal = jit(lambda x: backward(forward(x)) + PENALTY * grad(roughness)(x))
    found, _ = cg(normal, backward(data), tol=1e-8, maxiter=400)
    loss = lambda x: 0.5 * jnp.sum((projections(x) - data) ** 2) + PENALTY * roughness(x)
    slope = float(jnp.linalg.norm(jit(grad(loss))(found)) / jnp.linalg.norm(backward(data)))
    error = float(jnp.linalg.norm(found - image) / jnp.linalg.norm(image))
    print(f"the gradient at the solution is {slope:.0e}, and its error is {error:.2f} of the image")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "tomography.png"
    draw({"image": image, "projections": data, "solution": found}, path)
    return 0 if gap < 1e-10 and slope < 1e-6 and error < 0.3 else 1


if __name__ == "__main__":
    with enable_x64():
        sys.exit(main())
